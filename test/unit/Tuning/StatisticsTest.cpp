//===- StatisticsTest.cpp -------------------------------------------------===//

#include "lib/Tuning/Statistics.h"
#include "gtest/gtest.h"

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
