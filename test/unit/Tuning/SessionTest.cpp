//===- SessionTest.cpp ----------------------------------------------------===//

#include "lib/Tuning/Session.h"
#include "lib/Database/Json.h"
#include "lib/Tuning/Merge.h"
#include "lib/Tuning/Report.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "gtest/gtest.h"

using namespace tessera::tuning;

static Timing makeTiming(double ms) {
  Timing timing;
  timing.ms = {ms, ms * 0.9, 0.01, 20};
  timing.waves = 1.5;
  timing.mhz = 1700 + ms;
  return timing;
}

/// Two contestants on a short and two long shapes; the second is faster on the long ones.
static Session makeSession() {
  Session session;
  session.compiler = "1f77ba2";
  session.ptxas = "12.9";
  session.device = Device{"NVIDIA H200", 132};
  session.date = "2026-11-22";
  Target &target = session.targets.emplace_back();
  target.file = "gemm.tile";
  target.kernel = "gemm";
  target.program = "standard";
  target.also = {{{"T", "f16"}}};
  target.alsoPrograms = {"standard, f16"};
  target.shapes = {
      {{{"M", 64}}, {500, 4}}, {{{"M", 1024}}, {500, 128}}, {{{"M", 4096}}, {500, 256}}};
  const double times[2][3] = {{1, 4, 16}, {1.5, 3, 15}};
  for (unsigned i = 0; i < 2; ++i) {
    Contestant &contestant = target.contestants.emplace_back();
    contestant.candidate.tuned = {{"BM", i ? "256" : "128"}};
    contestant.candidate.parameters = {{"BM", i ? "256" : "128"}, {"T", "bf16"}};
    contestant.candidate.schedule = i ? "stages = 3, split = true" : "stages = 2, split = true";
    contestant.candidate.program = i ? "large" : "standard";
    contestant.alsoPrograms = {i ? "large, f16" : "standard, f16"};
    contestant.alsoParameters = {{{"BM", i ? "256" : "128"}, {"T", "f16"}}};
    for (double ms : times[i])
      contestant.timings.push_back(makeTiming(ms));
  }
  target.rejections.push_back({"stages = 9", "too many"});
  return session;
}

TEST(SessionTest, SurvivesPrinting) {
  Session session = makeSession();
  session.targets[0].contestants[1].timings[0]->failure = "it hangs";
  session.targets[0].contestants[1].timings[2].reset();
  llvm::SmallString<128> path;
  int file;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("session", "json", file, path));
  llvm::FileRemover remover(path);
  llvm::raw_fd_ostream(file, /*shouldClose=*/true) << session.print();
  llvm::Expected<Session> read = Session::load(path);
  ASSERT_TRUE(static_cast<bool>(read)) << toString(read.takeError());
  EXPECT_EQ(read->device->multiprocessors, 132);
  const Contestant &second = read->targets[0].contestants[1];
  EXPECT_EQ(second.timings[0]->failure, "it hangs");
  EXPECT_DOUBLE_EQ(second.timings[1]->ms.median, 3);
  EXPECT_FALSE(second.timings[2].has_value());
  EXPECT_EQ(read->print(), session.print());
}

TEST(SessionTest, SameContestants) {
  Session measured = makeSession(), plan = makeSession();
  plan.device.reset();
  plan.date.clear();
  for (Contestant &contestant : plan.targets[0].contestants)
    contestant.timings.assign(3, std::nullopt);
  EXPECT_TRUE(measured.hasSameContestants(plan));
  plan.targets[0].contestants[0].candidate.schedule = "stages = 1";
  EXPECT_FALSE(measured.hasSameContestants(plan));
}

TEST(SessionTest, WinnersByClass) {
  Session session = makeSession();
  std::vector<ClassShapes> groups = groupShapes(session.targets[0], *session.device);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].name, "many-short");
  EXPECT_EQ(groups[1].shapes, (std::vector<size_t>{1, 2}));

  std::vector<Entry> entries = makeEntries(session);
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[0].schedule, "stages = 2, split = true");
  const Entry &large = entries[2], &also = entries[3];
  EXPECT_EQ(large.shapeClass, "many-long");
  EXPECT_EQ(large.gpu, "NVIDIA H200");
  EXPECT_EQ(large.parameters, (Values{{"BM", "256"}, {"T", "bf16"}}));
  EXPECT_EQ(large.tuned, std::vector<std::string>{"BM"});
  EXPECT_EQ(large.measured.ms, (std::vector<double>{3, 15}));
  EXPECT_EQ(large.measured.modelMs, (std::vector<double>{4, 16}));
  EXPECT_EQ(large.measured.contestants, 2);
  EXPECT_EQ(large.program, "standard");
  EXPECT_EQ(large.tunedProgram, "large");
  EXPECT_EQ(entries[0].tunedProgram, "");
  EXPECT_EQ(large.measured.describeOrigin(), "compiler 1f77ba2, ptxas 12.9, 2026-11-22, 1709 MHz");
  EXPECT_EQ(also.program, "standard, f16");
  EXPECT_EQ(also.tunedProgram, "large, f16");
  EXPECT_EQ(also.parameters.at("T"), "f16");
  EXPECT_EQ(also.measured.measuredWith, (Values{{"T", "bf16"}}));
}

TEST(SessionTest, AClassThatNobodyRanHasNoEntry) {
  Session session = makeSession();
  for (Contestant &contestant : session.targets[0].contestants)
    contestant.timings[1]->failure = "it hangs";
  std::vector<Entry> entries = makeEntries(session);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].shapeClass, "many-short");
}

TEST(SessionTest, TableSaysWhoWonAndWhyOthersLost) {
  Session session = makeSession();
  session.targets[0].contestants[1].timings[0]->failure = "it hangs";
  std::string text;
  llvm::raw_string_ostream os(text);
  printResults(os, session);
  printPlan(os, session.targets[0]);
  EXPECT_NE(text.find("failed: BM = 256; stages = 3: it hangs"), std::string::npos) << text;
  EXPECT_NE(text.find("class many-short: the model's choice"), std::string::npos) << text;
  EXPECT_NE(text.find("class many-long: BM = 256; stages = 3, 33.3% faster"), std::string::npos)
      << text;
  EXPECT_NE(text.find("rejected: stages = 9: too many"), std::string::npos) << text;
}

TEST(SessionTest, ListsAreRelativeToTheirFile) {
  std::vector<TargetSpec> specs =
      cantFail(readTargetList(TESSERA_SOURCE_DIR "/kernels/tuning.json"));
  ASSERT_FALSE(specs.empty());
  for (const TargetSpec &spec : specs) {
    EXPECT_TRUE(llvm::sys::fs::exists(spec.file)) << spec.file;
    EXPECT_FALSE(spec.shapes.empty());
    EXPECT_FALSE(spec.space.varied.empty() && spec.space.fields.empty());
  }
}
