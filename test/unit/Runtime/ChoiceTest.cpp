//===- ChoiceTest.cpp - Choices among kernels -----------------------------===//

#include "FakeDriver.h"
#include "TestBundle.h"

#include "lib/Runtime/Error.h"
#include "lib/Runtime/Launch.h"

#include "gtest/gtest.h"

#include <cmath>
#include <queue>
#include <random>
#include <thread>

using namespace tessera::runtime;
using namespace tessera::runtime::test;
namespace json = llvm::json;

//===----------------------------------------------------------------------===//
// Expected times
//===----------------------------------------------------------------------===//

namespace {

/// A model whose tiles have `factor` * index of x + `constant` iterations.
struct Model {
  std::vector<TimeTerm> terms;
  TimeModel model = {};

  Model(int64_t factor, int64_t constant, int order, int64_t section = 1000) {
    terms = {{TIME_INDEX, 0},
             {TIME_NUMBER, factor},
             {TIME_MUL, 0},
             {TIME_NUMBER, constant},
             {TIME_ADD, 0}};
    model = {terms.data(), static_cast<int>(terms.size()), order, section, 132, 0.9, 2.7};
  }
  TimeExpected expect(std::array<int64_t, 3> grid) const {
    TimeExpected expected;
    expectTime(&model, nullptr, grid.data(), &expected);
    return expected;
  }
  double predict(std::array<int64_t, 3> grid) const {
    TimeExpected expected = expect(grid);
    return findTime(&expected, TIME_NEVER);
  }

  /// Each tile given to the place that is free first, one by one.
  double simulate(std::array<int64_t, 3> grid) const {
    std::priority_queue<double, std::vector<double>, std::greater<double>> places;
    for (int64_t i = 0; i < model.atATime; ++i)
      places.push(0);
    double end = 0;
    auto run = [&](int64_t x) {
      double index[3][TIME_SAMPLES] = {{double(x)}}, iterations[TIME_SAMPLES];
      countIterations(&model, nullptr, index, iterations);
      double time = places.top() + model.endsTime + model.iterationTime * iterations[0];
      places.pop();
      places.push(time);
      end = std::max(end, time);
    };
    int64_t rest = grid[1] * grid[2];
    if (model.order == TIME_LINEAR)
      for (int64_t i = 0; i < rest; ++i)
        for (int64_t x = 0; x < grid[0]; ++x)
          run(x);
    int64_t fitting = model.section * std::min(rest * grid[0], model.atATime) / grid[0];
    int64_t size = std::min(rest, std::max<int64_t>(fitting, 1));
    for (int64_t start = 0; model.order != TIME_LINEAR && start < rest; start += size)
      for (int64_t x = 0; x < grid[0]; ++x)
        for (int64_t i = start; i < std::min(start + size, rest); ++i)
          run(model.order == TIME_DESCENDING ? grid[0] - 1 - x : x);
    return end;
  }
};

} // namespace

TEST(LaunchTimeTest, CountsWavesOfTilesOfOneLength) {
  Model model(0, 96, TIME_LINEAR);
  double tile = 2.7 + 96 * 0.9;
  EXPECT_DOUBLE_EQ(model.predict({24, 5, 1}), tile);
  EXPECT_DOUBLE_EQ(model.predict({24, 14, 1}), 3 * tile);
  EXPECT_DOUBLE_EQ(model.predict({132, 1, 1}), tile);
  EXPECT_DOUBLE_EQ(model.predict({133, 1, 1}), 2 * tile);
  EXPECT_DOUBLE_EQ(model.predict({1 << 20, 132, 64}), tile * (1 << 20) * 64);
  EXPECT_DOUBLE_EQ(model.predict({0, 14, 1}), 0);
}

/// Tiles up to 8 in x have each their length.
TEST(LaunchTimeTest, FollowsTheSimulationOfTilesOfManyLengths) {
  std::mt19937 random(1);
  for (int order : {TIME_DESCENDING, TIME_ASCENDING})
    for (int i = 0; i < 300; ++i) {
      Model model(1 + random() % 9, random() % 5, order);
      std::array<int64_t, 3> grid = {1 + int64_t(random() % 8), 1 + int64_t(random() % 64),
                                     1 + int64_t(random() % 8)};
      double exact = model.simulate(grid);
      EXPECT_NEAR(model.predict(grid), exact, 0.02 * exact) << grid[0] << " " << grid[1] * grid[2];
    }
  // Of more of them some stand for others.
  for (int i = 0; i < 200; ++i) {
    Model model(1 + random() % 9, random() % 5, TIME_DESCENDING);
    std::array<int64_t, 3> grid = {17 + int64_t(random() % 240), 1 + int64_t(random() % 64), 1};
    double exact = model.simulate(grid);
    EXPECT_NEAR(model.predict(grid), exact, 0.09 * exact) << grid[0] << " " << grid[1];
  }
}

/// As attention does it: two tiles of each place in a section.
TEST(LaunchTimeTest, FollowsTheSimulationOfSections) {
  std::mt19937 random(3);
  double worst = 0, sum = 0;
  constexpr int kCount = 400;
  for (int i = 0; i < kCount; ++i) {
    Model model(1 + random() % 9, random() % 5, TIME_DESCENDING, 2);
    std::array<int64_t, 3> grid = {2 + int64_t(random() % 127), 1 + int64_t(random() % 64),
                                   1 + int64_t(random() % 8)};
    double exact = model.simulate(grid), error = std::fabs(model.predict(grid) / exact - 1);
    worst = std::max(worst, error);
    sum += error;
  }
  EXPECT_LT(worst, 0.12);
  EXPECT_LT(sum / kCount, 0.02);
  // 14 heads of 24 tiles: 11 heads are a section, and the other 3 begin with long tiles again.
  Model model(4, 4, TIME_DESCENDING, 2);
  EXPECT_NEAR(model.predict({24, 14, 1}), model.simulate({24, 14, 1}), 4);
  EXPECT_GT(model.predict({24, 14, 1}), 1.3 * Model(4, 4, TIME_DESCENDING).predict({24, 14, 1}));
}

/// Levels of places stand for places one by one.
TEST(LaunchTimeTest, PlacesTilesAsOneByOne) {
  std::mt19937 random(5);
  for (int i = 0; i < 3000; ++i) {
    const int64_t atATime = 1 + random() % 200;
    TimeLevels levels;
    levels.first = TIME_LEVELS - 1;
    levels.times[levels.first] = random() % 100;
    levels.places[levels.first] = atATime;
    levels.times[TIME_LEVELS] = TIME_NEVER;
    std::priority_queue<double, std::vector<double>, std::greater<double>> places;
    for (int64_t place = 0; place < atATime; ++place)
      places.push(levels.times[levels.first]);
    // Whole numbers, so that sums are exact, and lengths that meet and that do not.
    const int64_t most = 1 + random() % (i % 2 ? 5 : 1000);
    for (int sample = 0; sample < TIME_SECTIONS * TIME_SAMPLES; ++sample) {
      const int64_t count = random() % (2 * atATime); // Of more, some are not looked at.
      const double length = random() % most;
      placeTiles(&levels, atATime, count, length);
      for (int64_t tile = 0; tile < count; ++tile) {
        places.push(places.top() + length);
        places.pop();
      }
    }
    ASSERT_GE(levels.first, 0);
    for (int level = levels.first; level < TIME_LEVELS; ++level)
      for (int64_t place = 0; place < levels.places[level]; ++place, places.pop())
        ASSERT_EQ(levels.times[level], places.top());
    EXPECT_TRUE(places.empty());
  }
}

TEST(LaunchTimeTest, TakesTilesInTheOrderOfTheGridForLonger) {
  std::mt19937 random(2);
  for (int i = 0; i < 200; ++i) {
    int64_t factor = 1 + random() % 9;
    std::array<int64_t, 3> grid = {2 + int64_t(random() % 15), 1 + int64_t(random() % 64), 4};
    Model linear(factor, 1, TIME_LINEAR);
    double exact = linear.simulate(grid);
    EXPECT_NEAR(linear.predict(grid), exact, 0.35 * exact) << grid[0] << " " << grid[1];
  }
}

static Model drawModel(std::mt19937 &random) {
  // Most as those of attention; also sections that are simulated otherwise.
  return Model(random() % 9, random() % 5, random() % 3,
               random() % 8 ? 1 + random() % 3 : 1 + random() % 40);
}
static std::array<int64_t, 3> drawGrid(std::mt19937 &random) {
  int64_t longest = random() % 8 ? 200 : 4000;
  return {1 + int64_t(random() % longest), 1 + int64_t(random() % 64), 1 + int64_t(random() % 8)};
}

/// A time is found, or one that is no less than what it has to be below, and no more than it is.
TEST(LaunchTimeTest, LeavesOutWhatIsNotTheLeast) {
  std::mt19937 random(5);
  unsigned left = 0;
  for (int i = 0; i < 20000; ++i) {
    Model model = drawModel(random);
    TimeExpected expected = model.expect(drawGrid(random));
    double time = findTime(&expected, TIME_NEVER), least = time * (0.3 + 0.01 * (random() % 100));
    EXPECT_LE(expected.lower, time);
    EXPECT_GE(expected.upper, time);
    double found = findTime(&expected, least);
    EXPECT_LE(found, time);
    if (found == time)
      continue;
    ++left;
    EXPECT_GE(found, least);
    EXPECT_GE(time, least);
  }
  EXPECT_GT(left, 1000u);
}

/// The first of the least times, of which few are found.
TEST(LaunchTimeTest, TakesTheFirstOfTheLeast) {
  std::mt19937 random(7);
  unsigned certain = 0, equal = 0;
  constexpr int kChoices = 20000;
  for (int i = 0; i < kChoices; ++i) {
    std::vector<Model> models;
    std::vector<TimeExpected> launches;
    std::vector<double> times;
    // Some of them equal, and some that cannot be launched.
    for (int j = 0, count = 1 + random() % 4; j < count; ++j)
      models.push_back(j && random() % 4 == 0 ? models[random() % j] : drawModel(random));
    std::array<int64_t, 3> grid = drawGrid(random);
    for (Model &model : models) {
      model.model.terms = model.terms.data();
      launches.push_back(model.expect(grid));
      if (random() % 16 == 0)
        expectExactly(&launches.back(), std::numeric_limits<double>::infinity());
      times.push_back(findTime(&launches.back(), TIME_NEVER));
    }
    auto least = std::min_element(times.begin(), times.end());
    ASSERT_EQ(findFastestLaunch(launches.data(), launches.size()), least - times.begin()) << i;
    equal += std::count(times.begin(), times.end(), *least) > 1;
    certain += llvm::none_of(launches, [&](const TimeExpected &other) {
      return &other - launches.data() != least - times.begin() &&
             other.lower <= launches[least - times.begin()].upper;
    });
  }
  EXPECT_GT(equal, 1000u);
  EXPECT_GT(certain, kChoices / 4u);
}

TEST(LaunchTimeTest, ComputesIterations) {
  // ceildiv(min(max(x * 256 + 256 + SK - SQ, 1), SK), 64), as causal attention has it.
  std::vector<TimeTerm> terms = {
      {TIME_INDEX, 0}, {TIME_NUMBER, 256}, {TIME_MUL, 0}, {TIME_NUMBER, 256}, {TIME_ADD, 0},
      {TIME_DIM, 1},   {TIME_ADD, 0},      {TIME_DIM, 0}, {TIME_SUB, 0},      {TIME_NUMBER, 1},
      {TIME_MAX, 0},   {TIME_DIM, 1},      {TIME_MIN, 0}, {TIME_NUMBER, 64},  {TIME_CEIL_DIV, 0}};
  TimeModel model = {terms.data(), static_cast<int>(terms.size()), TIME_DESCENDING, 2, 132, 1, 0};
  auto count = [&](int64_t x, int64_t sq, int64_t sk) {
    // The same in each lane.
    int64_t dims[] = {sq, sk};
    double index[3][TIME_SAMPLES], iterations[TIME_SAMPLES];
    for (double &lane : index[0])
      lane = x;
    countIterations(&model, dims, index, iterations);
    for (double other : iterations)
      EXPECT_EQ(other, iterations[0]);
    return iterations[0];
  };
  EXPECT_EQ(count(0, 6144, 6144), 4);
  EXPECT_EQ(count(23, 6144, 6144), 96);
  EXPECT_EQ(count(0, 6144, 100), 1);
  EXPECT_EQ(count(0, 1, 1000), 16);
  // Numbers that all tiles share are computed once, others by lanes.
  auto apply = [](int op, double left, double right) {
    double lefts[TIME_SAMPLES], rights[TIME_SAMPLES];
    std::fill_n(lefts, TIME_SAMPLES, left);
    std::fill_n(rights, TIME_SAMPLES, right);
    applyTimes(op, lefts, rights);
    double others[TIME_SAMPLES];
    std::fill_n(others, TIME_SAMPLES, left);
    applyCommonTime(op, others, right);
    EXPECT_TRUE(std::equal(lefts, lefts + TIME_SAMPLES, others));
    EXPECT_EQ(std::count(lefts, lefts + TIME_SAMPLES, applyTime(op, left, right)), TIME_SAMPLES);
    return lefts[0];
  };
  const double limit = TIME_LIMIT;
  EXPECT_EQ(apply(TIME_FLOOR_DIV, -7, 2), -4);
  EXPECT_EQ(apply(TIME_CEIL_DIV, -7, 2), -3);
  EXPECT_EQ(apply(TIME_CEIL_DIV, 7, 0), 0);
  EXPECT_EQ(apply(TIME_MUL, limit, limit), limit);
  EXPECT_EQ(apply(TIME_MUL, limit, -limit), -limit);
  EXPECT_EQ(apply(TIME_SUB, -limit, 1), -limit);
  // One less than a multiple, as near to it as quotients of such numbers come.
  EXPECT_EQ(apply(TIME_FLOOR_DIV, limit - 1, 2), limit / 2 - 1);
  EXPECT_EQ(apply(TIME_FLOOR_DIV, 1048575.0 * 1048576 - 1, 1048576), 1048574);
  EXPECT_EQ(apply(TIME_CEIL_DIV, 1048575.0 * 1048576 + 1, 1048576), 1048576);
}

//===----------------------------------------------------------------------===//
// Choices of a bundle
//===----------------------------------------------------------------------===//

namespace {

/// The test kernel with tiles of 128 and of 64 rows. A tile of 64 takes 0.6 of the time.
class ChoiceTest : public testing::Test {
protected:
  void SetUp() override {
    fake::reset();
    fake::setCurrentDevice(0);
    fake::getState().parameterSizes = kParameterSizes;
    json::Object &bundle = *description.getAsObject();
    json::Array &kernels = *bundle.getArray("kernels");
    json::Object choice{{"name", "attend"},
                        {"dims", json::Array(*getKernel(description).getArray("dims"))},
                        {"arguments", json::Array(*getKernel(description).getArray("arguments"))}};
    kernels.push_back(json::Value(kernels[0]));
    json::Array alternatives;
    for (int64_t rows : {128, 64}) {
      json::Object &kernel = *kernels[rows == 64].getAsObject();
      std::string name = "attend_" + std::to_string(rows);
      kernel["name"] = name;
      kernel["symbol"] = name;
      json::Array grid = *kernel.getArray("grid");
      (*grid[0].getAsObject())["divisor"] = rows;
      kernel["grid"] = json::Array(grid);
      json::Object model{{"iteration_us", rows == 64 ? 0.6 : 1.0},
                         {"ends_us", rows == 64 ? 1.8 : 3.0},
                         {"tiles_at_a_time", 132},
                         {"order", "linear"},
                         {"section", 1},
                         {"iterations", json::Array{"ceildiv", "SQ", 64}},
                         {"grid", std::move(grid)}};
      alternatives.push_back(json::Object{{"kernel", name}, {"model", std::move(model)}});
    }
    choice["alternatives"] = std::move(alternatives);
    bundle["version"] = 3;
    bundle["choices"] = json::Array{std::move(choice)};
  }

  json::Object &choice() {
    return *(*description.getAsObject()->getArray("choices"))[0].getAsObject();
  }
  json::Object &alternative(unsigned i) {
    return *(*choice().getArray("alternatives"))[i].getAsObject();
  }
  json::Object &model(unsigned i) { return *alternative(i).getObject("model"); }

  std::unique_ptr<Bundle> load() {
    return llvm::cantFail(Bundle::create(toText(description), &fake::getTable()));
  }
  /// What loading says, "" for none.
  std::string loadError() {
    llvm::Expected<std::unique_ptr<Bundle>> bundle =
        Bundle::create(toText(description), &fake::getTable());
    return bundle ? "" : llvm::toString(bundle.takeError());
  }
  void setShape(int64_t batch, int64_t heads, int64_t rows) {
    for (int i : {TestArguments::Q, TestArguments::K, TestArguments::O, TestArguments::LSE}) {
      arguments.shapes[i][0] = batch;
      arguments.shapes[i][1] = i == TestArguments::K ? heads / 2 : heads;
      arguments.shapes[i][2] = rows;
      int64_t stride = 1;
      for (size_t d = arguments.shapes[i].size(); d-- > 0;) {
        arguments.strides[i][d] = stride;
        stride *= arguments.shapes[i][d];
      }
    }
    arguments.update();
  }
  std::string launched(Kernel &kernel) {
    if (llvm::Error error = kernel.launch(-1, nullptr, arguments.arguments))
      return llvm::toString(std::move(error));
    return fake::getState().launches.back().symbol;
  }

  json::Value description = makeBundle();
  TestArguments arguments;
};

} // namespace

TEST_F(ChoiceTest, LaunchesTheFastest) {
  std::unique_ptr<Bundle> bundle = load();
  ASSERT_EQ(bundle->getKernels().size(), 3u);
  Kernel &kernel = bundle->getKernels()[2];
  EXPECT_EQ(kernel.getSignature().name, "attend");
  Chooser &chooser = *kernel.getChooser();
  // 128 tiles of 128 rows are one wave, 256 of 64 rows are two.
  setShape(4, 4, 1024);
  EXPECT_EQ(launched(kernel), "attend_128");
  // 72 and 144: one wave and two. 40 and 80: one wave each.
  setShape(1, 8, 1152);
  EXPECT_EQ(launched(kernel), "attend_128");
  setShape(1, 8, 640);
  EXPECT_EQ(launched(kernel), "attend_64");
  int64_t dims[] = {1, 8, 640, 4};
  EXPECT_EQ(chooser.choose(dims), 1u);
  EXPECT_DOUBLE_EQ(chooser.predict(0, dims), 13);
  EXPECT_DOUBLE_EQ(chooser.predict(1, dims), 7.8);
  // 136 and 272: two waves and three.
  setShape(1, 8, 2176);
  EXPECT_EQ(launched(kernel), "attend_64");
}

TEST_F(ChoiceTest, LaunchesWhatIsForced) {
  std::unique_ptr<Bundle> bundle = load();
  Kernel &kernel = bundle->getKernels()[2];
  setShape(1, 8, 640);
  EXPECT_EQ(launched(kernel.getAlternative(0)), "attend_128");
  EXPECT_EQ(launched(kernel.getAlternative(1)), "attend_64");
  EXPECT_EQ(fake::getState().launches.back().grid, (std::array<unsigned, 3>{10, 8, 1}));
}

TEST_F(ChoiceTest, LeavesOutWhatDoesNotTakeTheExtents) {
  json::Object &narrow = *(*description.getAsObject()->getArray("kernels"))[1].getAsObject();
  narrow.getArray("requirements")
      ->push_back(
          json::Object{{"divisor", json::Object{{"dim", "HK"}, {"factor", 4}}}, {"dividend", "H"}});
  narrow.getArray("requirements")->push_back(json::Object{{"dim", "SQ"}, {"at_most", 640}});
  std::unique_ptr<Bundle> bundle = load();
  Kernel &kernel = bundle->getKernels()[2];
  setShape(1, 8, 640);
  EXPECT_EQ(launched(kernel), "attend_128");
  int64_t dims[] = {1, 8, 640, 4}, groups[] = {1, 8, 640, 2}, longer[] = {1, 8, 2176, 2};
  EXPECT_TRUE(std::isinf(kernel.getChooser()->predict(1, dims)));
  EXPECT_EQ(kernel.getChooser()->choose(groups), 1u);
  EXPECT_EQ(kernel.getChooser()->choose(longer), 0u);
}

TEST_F(ChoiceTest, RemembersAndForgets) {
  std::unique_ptr<Bundle> bundle = load();
  Chooser &chooser = *bundle->getKernels()[2].getChooser();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int64_t rows = 1; rows < 3000; rows += 7) {
        int64_t dims[] = {1, 8, rows, 4};
        unsigned fastest = chooser.predict(1, dims) < chooser.predict(0, dims);
        EXPECT_EQ(chooser.choose(dims), fastest);
        EXPECT_EQ(chooser.choose(dims), fastest);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

/// The kernel that is launched says what is wrong, as without a choice.
TEST_F(ChoiceTest, RefusesWhatItsKernelsRefuse) {
  std::unique_ptr<Bundle> bundle = load();
  Kernel &kernel = bundle->getKernels()[2];
  arguments.arguments[TestArguments::Q].rank = 1;
  EXPECT_EQ(launched(kernel),
            "kernel 'attend_128': argument 'q': has rank 1; the kernel takes rank "
            "4, [B, H, SQ, 128]");
  arguments.update();
  arguments.shapes[TestArguments::Q][2] = -5;
  EXPECT_EQ(launched(kernel), "kernel 'attend_128': argument 'q': dimension 2 has extent -5; an "
                              "extent is at least 1 and below 2^31");
  llvm::Error error = kernel.launch(-1, nullptr, {});
  EXPECT_EQ(llvm::toString(std::move(error)),
            "kernel 'attend_128' takes 5 arguments; 0 were given");
  EXPECT_EQ(llvm::toString(kernel.getCapacity(0).takeError()),
            "choice 'attend' launches one of several kernels, of which each has a grid of its own; "
            "ask one of 'attend_128', 'attend_64'");
  EXPECT_EQ(llvm::toString(kernel.readTimeline(0, nullptr).takeError()),
            "choice 'attend' launches one of several kernels, of which each has a timeline of its "
            "own; ask one of 'attend_128', 'attend_64'");
}

TEST_F(ChoiceTest, RefusesDamagedChoices) {
  auto expect = [&](llvm::StringRef text) {
    EXPECT_EQ(loadError(), ("damaged bundle: " + text).str());
  };
  const json::Value whole = description;
  auto check = [&](auto &&damage, llvm::StringRef text) {
    damage();
    expect(text);
    description = json::Value(whole);
  };
  check([&] { choice()["name"] = "attend_64"; },
        "is the name of a kernel at bundle.choices[0].name");
  check([&] { choice()["alternatives"] = json::Array(); },
        "expected at least one kernel at bundle.choices[0].alternatives");
  check([&] { alternative(1)["kernel"] = "attend"; },
        "names no entry of \"kernels\" at bundle.choices[0].alternatives[1].kernel");
  check([&] { choice().getArray("arguments")->pop_back(); },
        "takes other arguments than the choice at bundle.choices[0].alternatives[0].kernel");
  check([&] { alternative(0).erase("model"); },
        "expected an object at bundle.choices[0].alternatives[0].model");
  std::string at = " at bundle.choices[0].alternatives[0].model.";
  check([&] { model(0)["iteration_us"] = -1; },
        "expected a number of microseconds" + at + "iteration_us");
  check([&] { model(0)["order"] = "random"; },
        "expected \"linear\", \"ascending\" or \"descending\"" + at + "order");
  check([&] { model(0)["tiles_at_a_time"] = 0; },
        "expected an integer from 1 to 2147483647" + at + "tiles_at_a_time");
  check([&] { model(0).erase("iterations"); },
        "expected the iterations of a tile" + at + "iterations");
  check(
      [&] { model(0)["iterations"] = json::Array{"power", "SQ", 2}; },
      "expected \"add\", \"sub\", \"mul\", \"floordiv\", \"ceildiv\", \"min\" or \"max\", with two "
      "operands" +
          at + "iterations");
  check([&] { model(0)["iterations"] = json::Array{"add", "SQ", "D"}; },
        "names no entry of \"dims\"" + at + "iterations[2]");
  check([&] { model(0)["iterations"] = json::Object{{"grid", 3}}; },
        "expected the number of a dimension of the grid" + at + "iterations.grid");
  json::Value deep = 1;
  for (int i = 0; i < 20; ++i)
    deep = json::Array{"add", 1, std::move(deep)};
  check([&] { model(0)["iterations"] = deep; },
        "operations are nested too deeply, or there are too many" + at + "iterations" +
            "[2][2][2][2][2][2][2][2][2][2][2][2][2][2][2][2]");
  check([&] { description.getAsObject()->erase("choices"); },
        "expected an array at bundle.choices");
}

TEST_F(ChoiceTest, HasACInterface) {
  std::string text = toText(description);
  tessera_bundle *bundle;
  ASSERT_EQ(tessera_bundle_load(text.data(), text.size(), &bundle), TESSERA_RUNTIME_SUCCESS);
  tessera_kernel *kernel, *forced, *named;
  ASSERT_EQ(tessera_kernel_get(bundle, nullptr, &kernel), TESSERA_RUNTIME_SUCCESS);
  EXPECT_STREQ(tessera_kernel_name(kernel), "attend");
  EXPECT_EQ(tessera_kernel_alternative_count(kernel), 2u);
  int64_t dims[] = {1, 8, 640, 4};
  size_t position = 7;
  double times[2];
  ASSERT_EQ(tessera_kernel_choice(kernel, dims, 4, &position, times), TESSERA_RUNTIME_SUCCESS);
  EXPECT_EQ(position, 1u);
  EXPECT_DOUBLE_EQ(times[0], 13);
  EXPECT_DOUBLE_EQ(times[1], 7.8);
  ASSERT_EQ(tessera_kernel_alternative(kernel, 1, &forced), TESSERA_RUNTIME_SUCCESS);
  ASSERT_EQ(tessera_kernel_get(bundle, "attend_64", &named), TESSERA_RUNTIME_SUCCESS);
  EXPECT_EQ(forced, named);
  EXPECT_EQ(tessera_kernel_alternative_count(forced), 0u);
  auto refuses = [&](tessera_runtime_status status, const char *reason) {
    EXPECT_EQ(status, TESSERA_RUNTIME_INVALID_ARGUMENT);
    EXPECT_STREQ(tessera_last_error(), reason);
  };
  refuses(tessera_kernel_alternative(kernel, 2, &forced),
          "'attend' has 2 alternatives; there is none at position 2");
  refuses(tessera_kernel_choice(forced, dims, 4, &position, nullptr),
          "'attend_64' is no choice among kernels; compile with alternatives");
  refuses(tessera_kernel_choice(kernel, dims, 3, &position, nullptr),
          "choice 'attend' has 4 extents; 3 were given");
  dims[2] = -1;
  refuses(tessera_kernel_choice(kernel, dims, 4, &position, nullptr),
          "choice 'attend': the extent 'SQ' is -1; an extent is at least 1 and below 2^31");
  tessera_bundle_destroy(bundle);
}
