//===- StatisticsTest.cpp -------------------------------------------------===//

#include "lib/Tuning/Statistics.h"
#include "gtest/gtest.h"
#include <map>
#include <set>

using namespace tessera::tuning;

TEST(StatisticsTest, QuantilesInterpolate) {
  std::vector<double> samples{4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(quantile(samples, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(samples, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile(samples, 0.25), 1.75);
  EXPECT_DOUBLE_EQ(quantile(samples, 1), 4);
  EXPECT_DOUBLE_EQ(quantile({7.0}, 0.5), 7);
}

TEST(StatisticsTest, SummaryIgnoresOutliers) {
  Summary summary = summarize({10, 10, 10, 10, 10, 10, 10, 90});
  EXPECT_DOUBLE_EQ(summary.median, 10);
  EXPECT_DOUBLE_EQ(summary.min, 10);
  EXPECT_DOUBLE_EQ(summary.spread, 0);
  EXPECT_EQ(summary.count, 8u);
  EXPECT_DOUBLE_EQ(summarize({8, 12, 10, 10, 11}).spread, 0.1);
  EXPECT_EQ(summarize({}).count, 0u);
}

TEST(StatisticsTest, WinnerIsFastestOverAllShapes) {
  // The second wins one shape by 20% and loses the other by 10%.
  EXPECT_EQ(chooseWinner({{1.0, 1.2}, {1.1, 1.0}}, 0.005), 1u);
  EXPECT_EQ(chooseWinner({{1.0, 1.0}, {1.1, 0.95}}, 0.005), 0u);
}

TEST(StatisticsTest, TiesGoToTheFirst) {
  EXPECT_EQ(chooseWinner({{1.004}, {1.0}}, 0.005), 0u);
  EXPECT_EQ(chooseWinner({{1.006}, {1.0}}, 0.005), 1u);
}

TEST(StatisticsTest, IncompleteContestantsDoNotWin) {
  EXPECT_EQ(chooseWinner({{1.0, 1.0}, {0.5, 0.0}}, 0.005), 0u);
  EXPECT_EQ(chooseWinner({{0.0}, {0.0}}, 0.005), 2u);
  EXPECT_EQ(chooseWinner({}, 0.005), 0u);
}

TEST(StatisticsTest, EachFollowsEachEquallyOften) {
  for (size_t count = 1; count <= 9; ++count) {
    size_t turns = count % 2 ? 2 * count : count;
    std::map<std::pair<size_t, size_t>, size_t> follows;
    for (size_t turn = 0; turn < turns; ++turn) {
      std::vector<size_t> order = balancedOrder(count, turn);
      EXPECT_EQ(std::set<size_t>(order.begin(), order.end()).size(), count);
      for (size_t i = 1; i < count; ++i)
        ++follows[{order[i - 1], order[i]}];
    }
    EXPECT_EQ(follows.size(), count * (count - 1));
    for (const auto &[pair, times] : follows)
      EXPECT_EQ(times, turns / count) << pair.first << " " << pair.second << " of " << count;
  }
}
