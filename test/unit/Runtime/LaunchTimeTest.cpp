//===- LaunchTimeTest.cpp - What launches are expected to take ------------===//

#include "lib/Runtime/LaunchTime.h"
#include "lib/Runtime/LinearIterations.h"

#include "gtest/gtest.h"

#include <array>
#include <cmath>
#include <queue>
#include <random>
#include <tuple>
#include <vector>

using namespace tessera::runtime;
using Grid = std::array<double, 3>;
using Terms = std::vector<TimeTerm>;

namespace {

/// The extents that terms of these tests have.
constexpr double kDims[] = {6144, 4096};

/// A model whose tiles have `factor` * index of x + `constant` iterations.
struct Model {
  Terms terms;
  TimeModel model = {};

  Model(Terms written, int order, int64_t section = 1000) : terms(std::move(written)) {
    model.order = order;
    model.section = section;
    model.atATime = 132;
    model.iterationTime = 0.9;
    model.endsTime = 2.7;
    refer();
  }
  Model(int64_t factor, int64_t constant, int order, int64_t section = 1000)
      : Model({{TIME_INDEX, 0},
               {TIME_NUMBER, factor},
               {TIME_MUL, 0},
               {TIME_NUMBER, constant},
               {TIME_ADD, 0}},
              order, section) {}
  Model(const Model &other) : terms(other.terms), model(other.model) { refer(); }

  void refer() {
    model.terms = terms.data();
    model.termCount = terms.size();
  }
  TimeExpected expect(Grid grid, const double *dims = kDims) {
    TimeExpected expected;
    for (int i = 0; i < 3; ++i)
      model.grid[i] = makeTimeGrid(-1, grid[i], 1);
    expectTime(&model, dims, &expected);
    return expected;
  }
  double predict(Grid grid, const double *dims = kDims) {
    TimeExpected expected = expect(grid, dims);
    return findTime(&expected, TIME_NEVER);
  }

  /// Each tile given to the place that is free first, one by one.
  double simulate(Grid grid) const {
    std::priority_queue<double, std::vector<double>, std::greater<double>> places;
    for (int64_t i = 0; i < model.atATime; ++i)
      places.push(0);
    double end = 0;
    auto run = [&](int64_t x) {
      double index[3][TIME_LANES] = {{double(x)}}, iterations[TIME_LANES];
      countIterations(model.terms, model.termCount, kDims, index, iterations);
      double time = places.top() + model.endsTime + model.iterationTime * iterations[0];
      places.pop();
      places.push(time);
      end = std::max(end, time);
    };
    int64_t steps = grid[0], rest = grid[1] * grid[2];
    if (model.order == TIME_LINEAR)
      for (int64_t i = 0; i < rest; ++i)
        for (int64_t x = 0; x < steps; ++x)
          run(x);
    int64_t fitting = model.section * std::min(rest * steps, model.atATime) / steps;
    int64_t full = std::min(rest, std::max<int64_t>(fitting, 1)), size = full;
    for (int64_t start = 0; model.order != TIME_LINEAR && start < rest; start += size) {
      // What is less than half a section belongs to the one before.
      size = 2 * (rest - start) < 3 * full ? rest - start : full;
      for (int64_t x = 0; x < steps; ++x)
        for (int64_t i = start; i < start + size; ++i)
          run(model.order == TIME_DESCENDING ? steps - 1 - x : x);
    }
    return end;
  }
};

/// How far predictions are from simulations, relative to these.
struct Errors {
  double worst = 0, sum = 0;
  int count = 0;

  void add(Model &model, Grid grid) {
    double exact = model.simulate(grid), error = std::fabs(model.predict(grid) / exact - 1);
    worst = std::max(worst, error);
    sum += error;
    ++count;
  }
  double mean() const { return sum / count; }
};

/// A whole number from `least` to `most`.
double draw(std::mt19937 &random, int least, int most) {
  return least + int(random() % (most - least + 1));
}

Model drawModel(std::mt19937 &random) {
  // Most as those of attention; also others.
  int64_t section = random() % 8 ? draw(random, 1, 3) : draw(random, 1, 40);
  if (random() % 2)
    return Model(draw(random, 0, 9), draw(random, 0, 4), draw(random, 0, 2), section);
  // One that falls.
  if (random() % 4 == 0)
    return Model({{TIME_DIM, 0},
                  {TIME_INDEX, 0},
                  {TIME_NUMBER, int64_t(draw(random, 1, 99))},
                  {TIME_MUL, 0},
                  {TIME_SUB, 0},
                  {TIME_NUMBER, int64_t(draw(random, -9, 9))},
                  {TIME_MAX, 0}},
                 TIME_ASCENDING, section);
  // Causal attention, of as many keys as queries, of fewer and of more.
  int64_t rows = 64 * draw(random, 1, 4), columns = random() % 4 ? 64 : 80;
  Model model({{TIME_INDEX, 0},
               {TIME_NUMBER, rows},
               {TIME_MUL, 0},
               {TIME_NUMBER, int64_t(draw(random, -1, 1)) * 1000 + rows},
               {TIME_ADD, 0},
               {TIME_NUMBER, 1},
               {TIME_MAX, 0},
               {TIME_DIM, int64_t(random() % 2)},
               {TIME_MIN, 0},
               {TIME_NUMBER, columns},
               {random() % 2 ? TIME_CEIL_DIV : TIME_FLOOR_DIV, 0}},
              random() % 4 ? TIME_DESCENDING : draw(random, 0, 1), section);
  return model;
}
Grid drawGrid(std::mt19937 &random) {
  return {draw(random, 1, random() % 8 ? 100 : 4000), draw(random, 1, 64), draw(random, 1, 8)};
}

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

TEST(LaunchTimeTest, CountsWholeClusters) {
  Model model(0, 96, TIME_LINEAR);
  setTimeCluster(model.model, 2);
  double tile = 2.7 + 96 * 0.9;
  EXPECT_DOUBLE_EQ(model.predict({132, 1, 1}), tile);
  EXPECT_DOUBLE_EQ(model.predict({3, 33, 1}), tile);
  EXPECT_DOUBLE_EQ(model.predict({3, 34, 1}), 2 * tile);
  EXPECT_DOUBLE_EQ(model.predict({1, 132, 1}), 2 * tile);
}

TEST(LaunchTimeTest, WaitsForRowsAmidSectors) {
  Model model(0, 96, TIME_LINEAR);
  model.model.rows = {{0, 1}, 1.0 / 16, 1.5};
  double whole = 2.7 + 96 * 0.9, amid = 2.7 + 96 * 1.5;
  for (auto [first, second, expected] : {std::tuple(80.0, 112.0, whole),
                                         {72.0, 112.0, amid},
                                         {80.0, 120.0, amid},
                                         {8.0, 8.0, amid}}) {
    double dims[] = {first, second};
    EXPECT_DOUBLE_EQ(model.predict({1, 1, 1}, dims), expected);
  }
  model.model.rows.time = 0.5; // They come beside the products.
  double dims[] = {72, 72};
  EXPECT_DOUBLE_EQ(model.predict({1, 1, 1}, dims), whole);
}

/// All tiles in one section.
TEST(LaunchTimeTest, FollowsTheSimulationOfSortedTiles) {
  std::mt19937 random(1);
  Errors few, many;
  for (int i = 0; i < 400; ++i) {
    Model model(draw(random, 1, 9), draw(random, 0, 4), TIME_DESCENDING);
    few.add(model, {draw(random, 1, 8), draw(random, 1, 64), draw(random, 1, 8)});
    many.add(model, {draw(random, 17, 256), draw(random, 1, 64), 1});
  }
  EXPECT_LT(few.mean(), 0.015);
  EXPECT_LT(few.worst, 0.22);
  EXPECT_LT(many.mean(), 0.005);
  EXPECT_LT(many.worst, 0.08);
}

/// As attention does it: two tiles of each place in a section.
TEST(LaunchTimeTest, FollowsTheSimulationOfSections) {
  std::mt19937 random(3);
  Errors errors, longer;
  for (int i = 0; i < 400; ++i) {
    Model model(draw(random, 1, 9), draw(random, 0, 4), TIME_DESCENDING, 2);
    errors.add(model, {draw(random, 2, 128), draw(random, 1, 64), draw(random, 1, 8)});
    // More steps than places.
    longer.add(model, {draw(random, 133, 500), draw(random, 1, 8), 1});
  }
  EXPECT_LT(errors.mean(), 0.005);
  EXPECT_LT(errors.worst, 0.12);
  EXPECT_LT(longer.mean(), 0.015);
  EXPECT_LT(longer.worst, 0.08);
  // 17 heads of 24 tiles: 11 heads are a section, and the other 6 begin with long tiles again. 5
  // belong to that section.
  Model model(4, 4, TIME_DESCENDING, 2), together(4, 4, TIME_DESCENDING);
  EXPECT_NEAR(model.predict({24, 17, 1}), model.simulate({24, 17, 1}), 4);
  EXPECT_GT(model.predict({24, 17, 1}), 1.1 * together.predict({24, 17, 1}));
  EXPECT_DOUBLE_EQ(model.predict({24, 16, 1}), together.predict({24, 16, 1}));
}

TEST(LaunchTimeTest, TakesTheFirstIndexesOrderForThatOfTheLongest) {
  Model down(4, 4, TIME_DESCENDING, 2), up(-4, 4 + 4 * 23, TIME_ASCENDING, 2);
  EXPECT_DOUBLE_EQ(down.predict({24, 14, 1}), up.predict({24, 14, 1}));
}

TEST(LaunchTimeTest, TakesTilesInTheOrderOfTheGridForLonger) {
  std::mt19937 random(2);
  for (int i = 0; i < 200; ++i)
    for (int order : {TIME_LINEAR, TIME_ASCENDING}) {
      Grid grid = {draw(random, 2, 16), draw(random, 1, 64), 4};
      Model model(draw(random, 1, 9), 1, order);
      double exact = model.simulate(grid);
      EXPECT_NEAR(model.predict(grid), exact, 0.35 * exact) << grid[0] << " " << grid[1];
    }
}

/// Of whatever a bundle may say and a caller may ask.
TEST(LaunchTimeTest, HasATimeForEachGrid) {
  std::mt19937 random(17);
  auto drawExtent = [&] { return double(uint32_t(random()) >> (1 + random() % 31)) + 1; };
  for (int i = 0; i < 20000; ++i) {
    Model model = drawModel(random);
    model.model.section = drawExtent();
    model.model.atATime = drawExtent();
    if (random() % 2)
      model.model.line = findLinearIterations(model.terms);
    double dims[] = {drawExtent(), drawExtent()};
    Grid grid = {drawExtent(), drawExtent(), drawExtent()};
    TimeExpected expected = model.expect(grid, dims);
    double time = findTime(&expected, TIME_NEVER);
    ASSERT_GE(time, expected.lower) << i;
    TimeTiles tiles = measureEnds(&expected, findForm(&expected));
    ASSERT_GE(time, std::max(tiles.ends[0], tiles.ends[1])) << i;
    ASSERT_LT(time, TIME_NEVER) << i;
  }
}

/// A time is found, or more than what it has to be below, and never less than was known before.
TEST(LaunchTimeTest, LeavesOutWhatIsNotTheLeast) {
  std::mt19937 random(5);
  unsigned left = 0;
  for (int i = 0; i < 20000; ++i) {
    Model model = drawModel(random);
    if (random() % 2)
      model.model.line = findLinearIterations(model.terms);
    TimeExpected expected = model.expect(drawGrid(random));
    double time = findTime(&expected, TIME_NEVER), least = time * (0.3 + 0.01 * (random() % 100));
    EXPECT_LE(expected.lower, time);
    double found = findTime(&expected, least);
    EXPECT_LE(found, time);
    if (found == time)
      continue;
    ++left;
    EXPECT_GT(found, least);
  }
  EXPECT_GT(left, 1000u);
}

/// The first of the least times, of which few are found.
TEST(LaunchTimeTest, TakesTheFirstOfTheLeast) {
  std::mt19937 random(7);
  unsigned equal = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<Model> models;
    std::vector<TimeExpected> launches;
    std::vector<double> times;
    // Some of them equal, and some that cannot be launched.
    for (int j = 0, count = draw(random, 1, 4); j < count; ++j) {
      models.push_back(j && random() % 4 == 0 ? models[random() % j] : drawModel(random));
      if (random() % 2)
        models.back().model.line = findLinearIterations(models.back().terms);
    }
    Grid grid = drawGrid(random);
    for (Model &model : models) {
      model.refer();
      launches.push_back(model.expect(grid));
      if (random() % 16 == 0)
        expectExactly(&launches.back(), std::numeric_limits<double>::infinity());
      times.push_back(findTime(&launches.back(), TIME_NEVER));
    }
    auto least = std::min_element(times.begin(), times.end());
    ASSERT_EQ(findFastestLaunch(launches.data(), launches.size()), least - times.begin()) << i;
    equal += std::count(times.begin(), times.end(), *least) > 1;
  }
  EXPECT_GT(equal, 1000u);
}

//===----------------------------------------------------------------------===//
// Iterations
//===----------------------------------------------------------------------===//

/// ceildiv(min(max(x * 256 + 256 + SK - SQ, 1), SK), divisor), as causal attention has it.
static Terms causal(int64_t divisor) {
  return {{TIME_INDEX, 0}, {TIME_NUMBER, 256},     {TIME_MUL, 0},     {TIME_NUMBER, 256},
          {TIME_ADD, 0},   {TIME_DIM, 1},          {TIME_ADD, 0},     {TIME_DIM, 0},
          {TIME_SUB, 0},   {TIME_NUMBER, 1},       {TIME_MAX, 0},     {TIME_DIM, 1},
          {TIME_MIN, 0},   {TIME_NUMBER, divisor}, {TIME_CEIL_DIV, 0}};
}

TEST(LaunchTimeTest, ComputesIterations) {
  Model model(causal(64), TIME_DESCENDING);
  auto count = [&](int64_t x, int64_t sq, int64_t sk) {
    // The same in each lane.
    double dims[] = {double(sq), double(sk)};
    double index[3][TIME_LANES], iterations[TIME_LANES];
    for (double &lane : index[0])
      lane = x;
    countIterations(model.model.terms, model.model.termCount, dims, index, iterations);
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
    double lefts[TIME_LANES], rights[TIME_LANES];
    std::fill_n(lefts, TIME_LANES, left);
    std::fill_n(rights, TIME_LANES, right);
    applyTimes(op, lefts, rights);
    double others[TIME_LANES];
    std::fill_n(others, TIME_LANES, left);
    applyCommonTime(op, others, right);
    EXPECT_TRUE(std::equal(lefts, lefts + TIME_LANES, others));
    EXPECT_EQ(std::count(lefts, lefts + TIME_LANES, applyTime(op, left, right)), TIME_LANES);
    return lefts[0];
  };
  const double limit = TIME_LIMIT;
  EXPECT_EQ(apply(TIME_FLOOR_DIV, -7, 2), -4);
  EXPECT_EQ(apply(TIME_CEIL_DIV, -7, 2), -3);
  EXPECT_EQ(apply(TIME_FLOOR_DIV, 7, -2), -4);
  EXPECT_EQ(apply(TIME_CEIL_DIV, 7, -2), -3);
  EXPECT_EQ(apply(TIME_CEIL_DIV, 7, 0), 0);
  EXPECT_EQ(apply(TIME_MUL, limit, limit), limit);
  EXPECT_EQ(apply(TIME_MUL, limit, -limit), -limit);
  EXPECT_EQ(apply(TIME_SUB, -limit, 1), -limit);
  // One less than a multiple, as near to it as quotients of such numbers come.
  EXPECT_EQ(apply(TIME_FLOOR_DIV, limit - 1, 2), limit / 2 - 1);
  EXPECT_EQ(apply(TIME_FLOOR_DIV, 1048575.0 * 1048576 - 1, 1048576), 1048574);
  EXPECT_EQ(apply(TIME_CEIL_DIV, 1048575.0 * 1048576 + 1, 1048576), 1048576);
}

/// Quotients are exact whatever the inverse is rounded to.
TEST(LaunchTimeTest, DividesExactly) {
  std::mt19937_64 random(9);
  for (int i = 0; i < 200000; ++i) {
    int64_t divisor = 1 + random() % (i % 2 ? 300 : TIME_LIMIT);
    int64_t value = random() % TIME_LIMIT - TIME_LIMIT / 2;
    value -= i % 3 ? value % divisor : 0; // multiples, and numbers next to them
    value += i % 5 ? 0 : int(random() % 3) - 1;
    int64_t floor = value / divisor - (value % divisor < 0), ceil = floor + (value % divisor != 0);
    double inverse = 1.0 / divisor;
    for (double near : {inverse, std::nextafter(inverse, 0.0), std::nextafter(inverse, 2.0)}) {
      ASSERT_EQ(floorTime(value, near), floor) << value << " / " << divisor;
      ASSERT_EQ(ceilTime(value, near), ceil) << value << " / " << divisor;
      ASSERT_EQ(floorTime(value + 0.5, near), floor) << value << " / " << divisor;
    }
  }
}

TEST(LaunchTimeTest, FindsLines) {
  LinearIterations line = findLinearIterations(causal(64));
  EXPECT_EQ(line.divisor, 64);
  EXPECT_TRUE(line.isWhole);
  EXPECT_EQ(line.factor, 4);
  EXPECT_EQ(line.offset.number, 256);
  EXPECT_EQ(line.offset.factors[0] * kDims[line.offset.dims[0]] +
                line.offset.factors[1] * kDims[line.offset.dims[1]],
            kDims[1] - kDims[0]);
  EXPECT_EQ(line.least, 1);
  EXPECT_EQ(line.most.factors[0], 1);
  EXPECT_EQ(line.most.dims[0], 1);
  line = findLinearIterations(causal(80));
  EXPECT_EQ(line.divisor, 80);
  EXPECT_FALSE(line.isWhole);
  EXPECT_EQ(line.factor, 256);
  // ceildiv(SK, 64)
  line = findLinearIterations({{TIME_DIM, 1}, {TIME_NUMBER, 64}, {TIME_CEIL_DIV, 0}});
  EXPECT_EQ(line.factor, 0);
  EXPECT_EQ(line.divisor, 64);
}

TEST(LaunchTimeTest, FindsNoLinesInOtherTerms) {
  auto isLine = [](Terms terms) { return findLinearIterations(terms).divisor != 0; };
  Terms index = {{TIME_INDEX, 0}}, dim = {{TIME_DIM, 0}};
  auto operate = [](Terms left, const Terms &right, int op) {
    left.insert(left.end(), right.begin(), right.end());
    left.push_back({op, 0});
    return left;
  };
  auto number = [](int64_t value) { return Terms{{TIME_NUMBER, value}}; };
  Terms sum = operate(index, dim, TIME_ADD);
  EXPECT_TRUE(isLine(sum));
  EXPECT_TRUE(isLine(operate(number(4), sum, TIME_MUL)));
  EXPECT_FALSE(isLine(index)); // no extents
  EXPECT_FALSE(isLine(operate({{TIME_INDEX, 1}}, dim, TIME_ADD)));
  EXPECT_FALSE(isLine(operate(index, dim, TIME_MUL)));
  EXPECT_FALSE(isLine(operate(sum, dim, TIME_CEIL_DIV)));
  EXPECT_FALSE(isLine(operate(sum, number(0), TIME_CEIL_DIV)));
  EXPECT_FALSE(isLine(operate(sum, index, TIME_MIN)));
  EXPECT_FALSE(isLine(operate(operate(sum, dim, TIME_MIN), number(1), TIME_MAX)));
  EXPECT_FALSE(isLine(operate(operate(sum, number(4), TIME_CEIL_DIV), dim, TIME_MIN)));
  EXPECT_FALSE(isLine(operate(operate(sum, dim, TIME_MIN), number(1), TIME_ADD)));
  EXPECT_FALSE(isLine(operate(operate(sum, {{TIME_DIM, 1}}, TIME_ADD), {{TIME_DIM, 2}}, TIME_ADD)));
  // Beyond 2^40 with the longest extents.
  EXPECT_FALSE(isLine(operate(operate(index, number(512), TIME_MUL), dim, TIME_ADD)));
}

/// By lines and by terms: the same lengths, and the same times where terms look at each length.
TEST(LaunchTimeTest, TakesTheSameTimeByLines) {
  std::mt19937 random(11);
  unsigned equal = 0;
  for (int i = 0; i < 20000; ++i) {
    Model model = drawModel(random), other = model;
    double dims[] = {draw(random, 1, 20000), draw(random, 1, 20000)};
    Grid grid = drawGrid(random);
    other.model.line = findLinearIterations(other.terms);
    TimeExpected expected = other.expect(grid, dims), byTerms = model.expect(grid, dims);
    if (other.model.line.divisor == 0)
      continue;
    TimeTiles tiles = measureEnds(&expected, findForm(&expected));
    TimeTiles tilesByTerms = measureEnds(&byTerms, TIME_TERMS);
    ASSERT_EQ(tiles.ends[0], tilesByTerms.ends[0]) << i;
    ASSERT_EQ(tiles.ends[1], tilesByTerms.ends[1]) << i;
    if (!tiles.differ)
      continue;
    double time = findTime(&expected, TIME_NEVER), sampled = findTime(&byTerms, TIME_NEVER);
    if (other.model.line.isWhole && grid[0] > TIME_LANES)
      continue; // The mean is exact by lines only.
    ASSERT_NEAR(time, sampled, 1e-9 * time) << i;
    ++equal;
  }
  EXPECT_GT(equal, 1000u);
}

/// The mean over a line that is whole is exact.
TEST(LaunchTimeTest, AveragesLines) {
  std::mt19937 random(13);
  unsigned lines = 0;
  for (int i = 0; i < 20000; ++i) {
    Model model = drawModel(random);
    double dims[] = {draw(random, 1, 20000), draw(random, 1, 20000)};
    model.model.line = findLinearIterations(model.terms);
    TimeExpected expected = model.expect({draw(random, 2, 200), 64, 8}, dims);
    if (!model.model.line.isWhole || !measureEnds(&expected, TIME_WHOLE).differ)
      continue;
    double sum = 0;
    for (int step = 0; step < expected.steps; ++step)
      sum += measureStep(&expected, step, /*isWhole=*/true);
    ASSERT_NEAR(averageLine(&expected), sum / expected.steps, 1e-9 * sum) << i;
    ++lines;
  }
  EXPECT_GT(lines, 3000u);
}
