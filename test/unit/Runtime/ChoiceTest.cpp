//===- ChoiceTest.cpp - Choices among kernels -----------------------------===//

#include "FakeDriver.h"
#include "TestBundle.h"

#include "lib/Runtime/Error.h"
#include "lib/Runtime/Launch.h"

#include "gtest/gtest.h"

#include <cmath>
#include <thread>

using namespace tessera::runtime;
using namespace tessera::runtime::test;
namespace json = llvm::json;

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
  auto rows = [](json::Value dims, json::Value multiple, json::Value time) {
    return json::Object{{"dims", std::move(dims)},
                        {"multiple", std::move(multiple)},
                        {"iteration_us", std::move(time)}};
  };
  check([&] { model(0)["unaligned"] = rows(json::Array{"D"}, 16, 1.0); },
        "expected the name of a dimension" + at + "unaligned.dims[0]");
  check([&] { model(0)["unaligned"] = rows(json::Array{"SQ", 5}, 16, 1.0); },
        "expected the name of a dimension" + at + "unaligned.dims[1]");
  check([&] { model(0)["unaligned"] = rows(json::Array(), 16, 1.0); },
        "expected one or two dimensions, and a power of two as \"multiple\"" + at +
            "unaligned.dims");
  check([&] { model(0)["unaligned"] = rows(json::Array{"SQ"}, 12, 1.0); },
        "expected one or two dimensions, and a power of two as \"multiple\"" + at +
            "unaligned.dims");
  check([&] { model(0)["unaligned"] = rows(json::Array{"SQ"}, 0, 1.0); },
        "expected an integer from 1 to 32" + at + "unaligned.multiple");
  check([&] { model(0)["unaligned"] = rows(json::Array{"SQ"}, 16, "long"); },
        "expected a number of microseconds" + at + "unaligned.iteration_us");
  json::Value deep = 1;
  for (int i = 0; i < 20; ++i)
    deep = json::Array{"add", 1, std::move(deep)};
  check([&] { model(0)["iterations"] = deep; },
        "operations are nested too deeply, or there are too many" + at + "iterations" +
            "[2][2][2][2][2][2][2][2][2][2][2][2][2][2][2][2]");
  check([&] { description.getAsObject()->erase("choices"); },
        "expected an array at bundle.choices");
}

namespace {

/// The kernel with tiles of 128 rows, or a sequence of it for half of the rows and that of 64.
class SequenceChoiceTest : public ChoiceTest {
protected:
  void SetUp() override {
    ChoiceTest::SetUp();
    json::Object &bundle = *description.getAsObject();
    bundle["version"] = 5;
    json::Value sequence = llvm::cantFail(json::parse(R"({
      "name": "attend_twice",
      "derived_dims": [{"name": "HALF", "factors": ["SQ"], "divisor": 2}],
      "workspaces": [
        {"name": "half_q", "element": "bf16", "dims": ["B", "H", "HALF", 128]},
        {"name": "half_k", "element": "bf16", "dims": ["B", "HK", "HALF", 128]},
        {"name": "half_o", "element": "bf16", "dims": ["B", "H", "HALF", 128]},
        {"name": "half_lse", "element": "f32", "dims": ["B", "H", "HALF"]}],
      "launches": [
        {"kernel": "attend_128", "arguments": ["half_q", "half_k", "half_o", "half_lse", "scale"]},
        {"kernel": "attend_64", "arguments": ["q", "k", "o", "lse", "scale"]}]})"));
    for (llvm::StringRef shared : {"dims", "arguments"})
      (*sequence.getAsObject())[shared] = *choice().get(shared);
    bundle["sequences"] = json::Array{std::move(sequence)};
    json::Array models{json::Value(json::Object(model(0))), json::Value(json::Object(model(1)))};
    alternative(1) = json::Object{
        {"sequence", "attend_twice"}, {"launch_us", 0.5}, {"models", std::move(models)}};
  }
};

} // namespace

TEST_F(SequenceChoiceTest, AddsTheTimesOfLaunches) {
  std::unique_ptr<Bundle> bundle = load();
  Kernel &kernel = bundle->getKernels().back();
  int64_t dims[] = {1, 8, 640, 4};
  // 320 rows, of 5 iterations and the ends of 128 rows, and 640, of 10 of 64.
  EXPECT_DOUBLE_EQ(kernel.getChooser()->predict(1, dims), 0.5 + 8 + 7.8);
  EXPECT_DOUBLE_EQ(kernel.getChooser()->predict(0, dims), 13);
  EXPECT_EQ(kernel.getChooser()->choose(dims), 0u);
  int64_t groups[] = {1, 8, 640, 3};
  EXPECT_TRUE(std::isinf(kernel.getChooser()->predict(1, groups)));
}

TEST_F(SequenceChoiceTest, LaunchesWhatIsFaster) {
  setShape(1, 8, 640);
  std::unique_ptr<Bundle> whole = load();
  Kernel &first = whole->getKernels().back();
  EXPECT_EQ(launched(first), "attend_128");
  EXPECT_EQ(llvm::cantFail(first.getWorkspaceBytes(arguments.arguments)), 0u);
  EXPECT_EQ(launched(first.getAlternative(1)), "attend_64");
  model(0)["ends_us"] = 20;
  std::unique_ptr<Bundle> divided = load();
  fake::getState().launches.clear();
  Kernel &second = divided->getKernels().back();
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(launched(second), "attend_64");
  ASSERT_EQ(fake::getState().launches.size(), 4u);
  EXPECT_EQ(fake::getState().launches[2].symbol, "attend_128");
  EXPECT_EQ(fake::getState().launches[2].grid, (std::array<unsigned, 3>{3, 8, 1}));
  // Each of three views of 8 or 4 heads of 320 rows of 256 bytes, and 8 x 320 numbers.
  uint64_t bytes = llvm::cantFail(second.getWorkspaceBytes(arguments.arguments));
  EXPECT_EQ(bytes, uint64_t(8 + 4 + 8) * 320 * 256 + 8 * 320 * 4);
  llvm::Error error =
      second.launch(-1, nullptr, arguments.arguments, LentMemory{1 << 20, bytes - 1});
  EXPECT_EQ(llvm::toString(std::move(error)), "sequence 'attend_twice': the workspace has 1648639 "
                                              "bytes; this call needs 1648640");
  EXPECT_EQ(llvm::toString(second.getCapacity(0).takeError()),
            "choice 'attend' launches one of several kernels, of which each has a grid of its own; "
            "ask one of 'attend_128', 'attend_64'");
}

TEST_F(SequenceChoiceTest, RefusesDamagedChoices) {
  const json::Value whole = description;
  std::string at = " at bundle.choices[0].alternatives[1]";
  auto check = [&](auto &&damage, const std::string &text) {
    damage();
    EXPECT_EQ(loadError(), "damaged bundle: " + text);
    description = json::Value(whole);
  };
  auto sequence = [&]() -> json::Object & {
    return *(*description.getAsObject()->getArray("sequences"))[0].getAsObject();
  };
  check([&] { alternative(1)["sequence"] = "attend_64"; },
        "names no entry of \"sequences\"" + at + ".sequence");
  check([&] { (*(*sequence().getArray("arguments"))[4].getAsObject())["type"] = "i32"; },
        "takes other arguments than the choice" + at + ".sequence");
  check([&] { choice()["name"] = "attend_twice"; },
        "is the name of a sequence at bundle.choices[0].name");
  check([&] { alternative(1).getArray("models")->pop_back(); },
        "expected as many objects as the sequence has launches" + at + ".models");
  check([&] { (*alternative(1).getArray("models"))[1] = 3; },
        "expected an object" + at + ".models[1]");
  check([&] { alternative(1).erase("launch_us"); },
        "expected a number of microseconds" + at + ".launch_us");
  check(
      [&] { (*sequence().getArray("workspaces"))[0].getAsObject()->getArray("dims")->pop_back(); },
      "is of a launch that gets views of other ranks than its kernel takes" + at + ".models[0]");
  // Before version 5 nothing but kernels is read.
  check([&] { (*description.getAsObject())["version"] = 3; },
        "expected a string that is not empty" + at + ".kernel");
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
