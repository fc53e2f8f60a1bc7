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

/// What a file of the session is read as.
static llvm::Expected<Session> writeAndLoad(const Session &session) {
  llvm::SmallString<128> path;
  int file;
  EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("session", "json", file, path));
  llvm::FileRemover remover(path);
  llvm::raw_fd_ostream(file, /*shouldClose=*/true) << session.print();
  return Session::load(path);
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
    contestant.candidate.schedule = i ? "stages = 3" : "stages = 2";
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
  llvm::Expected<Session> read = writeAndLoad(session);
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
  EXPECT_EQ(entries[0].schedule, "stages = 2");
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

/// Two kernels of a sequence: the first chose BM = 256 and cares for nothing else, the second SM.
static Session makeSequenceSession() {
  Session session = makeSession();
  TargetSequence &sequence = session.sequences.emplace_back();
  sequence.name = "both";
  for (const char *bm : {"128", "256"})
    for (const char *sm : {"4", "8"}) {
      SequenceForm &form = sequence.forms.emplace_back();
      form.tuned = {{"BM", bm}, {"SM", sm}};
      form.parameters = form.tuned;
      form.programs = {{"gemm", bm == std::string("128") ? "standard" : "large"},
                       {"sum", std::string("sum ") + sm}};
      form.bundle = "form.bundle";
    }
  Target sum = session.targets[0];
  sum.kernel = "sum";
  sum.program = "sum 4";
  for (unsigned i = 0; i < 2; ++i)
    for (Target *target : {&session.targets[0], &sum}) {
      Candidate &candidate = target->contestants[i].candidate;
      candidate.tuned = {{"BM", "128"}, {"SM", "4"}};
      candidate.tuned[target == &sum ? "SM" : "BM"] =
          target == &sum ? (i ? "8" : "4") : (i ? "256" : "128");
      candidate.parameters.insert(candidate.tuned.begin(), candidate.tuned.end());
      if (target == &sum)
        candidate.program = i ? "sum 8" : "sum 4";
    }
  session.targets.push_back(sum);
  for (Target &target : session.targets) {
    target.sequence = 0;
    target.aloneMs = {1, 1, 1};
  }
  return session;
}

TEST(SessionTest, EntriesOfASequenceHaveTheTilesOfAllItsKernels) {
  Session session = makeSequenceSession();
  EXPECT_EQ(session.sequences[0].findForm({{"gemm", "large"}, {"sum", "sum 4"}})->tuned,
            (Values{{"BM", "256"}, {"SM", "4"}}));
  EXPECT_EQ(session.sequences[0].findForm({{"gemm", "other"}}), nullptr);
  std::vector<Entry> entries = makeEntries(session);
  ASSERT_EQ(entries.size(), 8u);
  for (const Entry &entry : entries) {
    bool isLong = entry.shapeClass == "many-long";
    EXPECT_EQ(entry.parameters.at("BM"), isLong ? "256" : "128");
    EXPECT_EQ(entry.parameters.at("SM"), isLong ? "8" : "4");
    EXPECT_EQ(entry.measured.sequence, "both");
  }
}

TEST(SessionTest, WhatDoesNotGoWithTheTilesIsNoModel) {
  Session session = makeSequenceSession();
  Target &sum = session.targets[1];
  sum.contestants[0].timings[1].reset();
  EXPECT_EQ(&getModelChoice(sum, {1, 2}), &sum.contestants[1]);
  EXPECT_EQ(&getModelChoice(sum, {0}), &sum.contestants[0]);
  sum.sequence.reset();
  EXPECT_EQ(&getModelChoice(sum, {1, 2}), &sum.contestants[0]);
}

TEST(SessionTest, SequencesSurvivePrinting) {
  Session session = makeSequenceSession();
  llvm::Expected<Session> read = writeAndLoad(session);
  ASSERT_TRUE(static_cast<bool>(read)) << toString(read.takeError());
  EXPECT_EQ(read->print(), session.print());
  // As where measuring ended early.
  session.targets[1].aloneMs.pop_back();
  ASSERT_TRUE(static_cast<bool>(read = writeAndLoad(session))) << toString(read.takeError());
  EXPECT_EQ(read->targets[1].aloneMs.size(), 2u);
  std::string text;
  llvm::raw_string_ostream os(text);
  printResults(os, *read);
  EXPECT_NE(text.find("sum, 50% of sequence 'both', M = 1024"), std::string::npos) << text;
  EXPECT_NE(text.find("sum, in sequence 'both', M = 4096"), std::string::npos) << text;
  session.targets[1].sequence = 1;
  read = writeAndLoad(session);
  ASSERT_FALSE(static_cast<bool>(read));
  EXPECT_NE(toString(read.takeError()).find("targets[1].sequence"), std::string::npos);
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
  printPlan(os, session);
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
    EXPECT_FALSE(spec.space.varied.empty() && !spec.space.fields);
  }
}
