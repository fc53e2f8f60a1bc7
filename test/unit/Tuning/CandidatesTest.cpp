//===- CandidatesTest.cpp -------------------------------------------------===//

#include "lib/Tuning/Candidates.h"
#include "dialects/Tile/ScheduleFields.h"
#include "lib/Database/Json.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <set>

using namespace tessera;
using namespace tessera::tuning;

namespace {
class CandidatesTest : public ::testing::Test {
protected:
  Enumeration run(const SearchSpace &space, CompileStatus expected = CompileStatus::Success) {
    // Its rules lie beside it.
    static const std::string path = TESSERA_SOURCE_DIR "/kernels/gemm.tile";
    static const std::string source = cantFail(readFile(path));
    Enumeration result;
    EXPECT_EQ(enumerateCandidates(
                  source, path, space,
                  [&](const Diagnostic &diagnostic) { errors.push_back(diagnostic.message); },
                  result),
              expected);
    return result;
  }

  std::vector<std::string> errors;
};
} // namespace

TEST_F(CandidatesTest, TheModelsChoiceIsFirst) {
  SearchSpace space;
  space.budget = 1;
  Enumeration result = run(space);
  ASSERT_EQ(result.candidates.size(), 1u);
  EXPECT_EQ(result.kernel, "gemm");
  EXPECT_EQ(result.candidates[0].parameters.at("BM"), "128");
  EXPECT_NE(result.candidates[0].schedule.find("consumers = 2, stages = 4"), std::string::npos);
  EXPECT_TRUE(result.isCut);
}

TEST_F(CandidatesTest, VariesEveryFieldOnceAndNoCandidateTwice) {
  SearchSpace space;
  space.fields = {"stages", "store"};
  space.budget = 1000;
  Enumeration result = run(space);
  EXPECT_FALSE(result.isCut);
  std::set<std::string> schedules;
  for (const Candidate &candidate : result.candidates)
    EXPECT_TRUE(schedules.insert(candidate.schedule).second) << candidate.schedule;
  auto isTried = [&](const std::string &stages, const std::string &store) {
    return llvm::any_of(schedules, [&](llvm::StringRef schedule) {
      return schedule.contains(", stages = " + stages + ",") &&
             schedule.contains(", store = " + store + ",");
    });
  };
  for (const char *stages : {"2", "3"})
    for (const char *store : {"direct", "tma", "writer"})
      EXPECT_TRUE(isTried(stages, store)) << stages << " with " << store;
  // Four slots do not fit beside a tile that is staged.
  EXPECT_TRUE(isTried("4", "direct"));
  EXPECT_FALSE(isTried("4", "tma"));
  bool isExplained = false;
  for (const Rejection &rejection : result.rejections)
    isExplained |= rejection.candidate == "stages = 5" &&
                   rejection.reason.find("a CTA can have 232448") != std::string::npos;
  EXPECT_TRUE(isExplained);
}

TEST_F(CandidatesTest, ColumnsOfASumAreCutForEachNumberOfConsumers) {
  SearchSpace space;
  space.defines = {{"BM", "64"}, {"BN", "192"}};
  space.fields = {"placement", "consumers"};
  space.budget = 100;
  Enumeration result = run(space);
  auto isTried = [&](llvm::StringRef consumers) {
    return llvm::any_of(result.candidates, [&](const Candidate &candidate) {
      llvm::StringRef schedule = candidate.schedule;
      return schedule.contains("placement = divided") && schedule.contains(consumers);
    });
  };
  EXPECT_TRUE(isTried("consumers = 2,"));
  EXPECT_TRUE(isTried("consumers = 3,"));
  space.defines = {{"BM", "192"}, {"BN", "16"}};
  space.schedule = "consumers=3";
  space.fields = {"placement"};
  bool isExplained = false;
  for (const Rejection &rejection : run(space).rejections)
    isExplained |= rejection.candidate == "placement = divided" &&
                   llvm::StringRef(rejection.reason)
                       .contains("a tile is cut into 3 parts of a multiple of 8 along its columns, "
                                 "and has 16 of them");
  EXPECT_TRUE(isExplained);
}

TEST_F(CandidatesTest, TriesNoMoreMisfitsThanTheBudgetHasRoomFor) {
  SearchSpace space;
  space.defines = {{"BM", "64"}, {"BN", "192"}};
  space.fields = {"placement", "stages", "consumers"};
  space.budget = 1000;
  size_t all = run(space).candidates.size();
  // The last one is of two changes, of which one does not fit by itself, and comes behind others.
  space.budget = all + 1;
  Enumeration result = run(space);
  EXPECT_LT(result.candidates.size(), all);
  EXPECT_TRUE(result.isCut);
}

TEST_F(CandidatesTest, TilesComeBeforeFields) {
  SearchSpace space;
  space.varied = {{"BN", {"128", "256"}}, {"BM", {"64", "128", "192"}}};
  space.fields = {"stages"};
  space.budget = 8;
  Enumeration result = run(space);
  ASSERT_EQ(result.candidates.size(), 8u);
  std::set<Values> tiles;
  for (size_t i = 0; i < 6; ++i)
    EXPECT_TRUE(tiles.insert(result.candidates[i].tuned).second);
  EXPECT_EQ(result.candidates[0].tuned, (Values{{"BM", "128"}, {"BN", "256"}}));
}

TEST_F(CandidatesTest, FixedFieldsStay) {
  SearchSpace space;
  space.schedule = "stages=2";
  space.budget = 12;
  for (const Candidate &candidate : run(space).candidates)
    EXPECT_NE(candidate.schedule.find("stages = 2,"), std::string::npos);
}

TEST_F(CandidatesTest, RefusesWhatMakesNoSense) {
  auto expectError = [&](const SearchSpace &space, const char *text) {
    errors.clear();
    run(space, CompileStatus::UsageError);
    ASSERT_EQ(errors.size(), 1u);
    EXPECT_NE(errors[0].find(text), std::string::npos) << errors[0];
  };
  SearchSpace space;
  space.varied = {{"BX", {}}};
  expectError(space, "no parameter 'BX'");
  space.varied = {{"BM", {}}};
  space.defines = {{"BM", "64"}};
  expectError(space, "has a value already, by -D");
  space = {};
  space.varied = {{"BIAS", {}}};
  expectError(space, "--vary BIAS=");
  space = {};
  space.fields = {"stage"};
  expectError(space, "unknown schedule field 'stage'; known are producer, ");
  space.fields = {"stages"};
  space.schedule = "stages=2";
  expectError(space, "both fixed and varied");
  space = {};
  space.kernel = "gem";
  expectError(space, "no kernel 'gem'");
  space = {};
  space.schedule = "consumers=9";
  expectError(space, "'consumers' is 1 to 4");
}

TEST_F(CandidatesTest, TilesThatChangeArgumentsOrFailAreRejected) {
  SearchSpace space;
  space.varied = {{"T", {"bf16", "f16"}}, {"BM", {"128", "100"}}};
  space.budget = 4;
  space.fields = {"work"};
  std::set<std::string> reasons;
  for (const Rejection &rejection : run(space).rejections)
    reasons.insert(rejection.reason);
  EXPECT_TRUE(reasons.count("this changes the arguments of the kernel"));
  EXPECT_GE(reasons.size(), 2u);
}

TEST_F(CandidatesTest, SpeculationIsAFieldOfKernelsThatSpeculate) {
  std::string source = cantFail(readFile(TESSERA_SOURCE_DIR "/kernels/attention_fwd.tile"));
  SearchSpace space;
  space.fields = {"speculate"};
  Enumeration result;
  ASSERT_EQ(enumerateCandidates(source, "attention_fwd.tile", space, {}, result),
            CompileStatus::Success);
  std::set<std::string> values;
  for (const Candidate &candidate : result.candidates)
    for (const char *field : {"speculate = true", "speculate = false"})
      if (candidate.schedule.find(field) != std::string::npos)
        values.insert(field);
  EXPECT_EQ(values.size(), 2u);
  Enumeration product = run(space);
  EXPECT_EQ(product.candidates.size(), 1u);
  ASSERT_EQ(product.rejections.size(), 1u);
  EXPECT_EQ(product.rejections[0].candidate, "speculate = true");
}

/// The text of `field`'s value when the other fields are absent, or nothing when it is refused.
std::optional<std::string> readField(mlir::MLIRContext &context, llvm::StringRef name,
                                     llvm::StringRef value) {
  mlir::ScopedDiagnosticHandler silence(&context,
                                        [](mlir::Diagnostic &) { return llvm::success(); });
  auto schedule = tile::ScheduleAttr::parseText(&context, (name + " = " + value).str(), [&] {
    return mlir::emitError(mlir::UnknownLoc::get(&context));
  });
  if (failed(schedule))
    return std::nullopt;
  return tile::printScheduleFields(*schedule);
}

/// The domain that is listed is the one that parser and verifier accept, value by value.
TEST(ScheduleFieldsTest, DomainsAreWhatIsAccepted) {
  mlir::MLIRContext context;
  context.loadDialect<tile::TileDialect>();
  for (const tile::ScheduleFieldInfo &field : tile::ScheduleAttr::getFieldInfos()) {
    ASSERT_FALSE(field.values.empty()) << field.name.str();
    for (llvm::StringRef value : field.values)
      EXPECT_EQ(readField(context, field.name, value), (field.name + " = " + value).str());
    for (const char *value : {"-1", "257", "other", "[1, 0]", ""})
      EXPECT_EQ(readField(context, field.name, value), std::nullopt) << field.name.str();
    if (!field.fixedDefault.empty())
      EXPECT_TRUE(llvm::is_contained(field.values, field.fixedDefault)) << field.name.str();
  }
}

TEST(ScheduleFieldsTest, FixedDefaultsLeaveWhatIsSet) {
  tile::ScheduleFields fields;
  fields.cluster = tile::ClusterKind::Two;
  fields.setFixedDefaults();
  EXPECT_EQ(fields.cluster, tile::ClusterKind::Two);
  EXPECT_EQ(fields.consumers, std::nullopt) << "the search decides";
  tile::ScheduleFields open;
  open.setFixedDefaults();
  EXPECT_EQ(open.cluster, tile::ClusterKind::One);
}

/// Every field is part of what makes two schedules equal.
TEST(ScheduleFieldsTest, EachFieldDistinguishes) {
  mlir::MLIRContext context;
  context.loadDialect<tile::TileDialect>();
  tile::ScheduleAttr empty = tile::ScheduleFields().get(&context);
  for (const tile::ScheduleFieldInfo &field : tile::ScheduleAttr::getFieldInfos()) {
    auto read = [&](llvm::StringRef value) {
      return *tile::ScheduleAttr::parseText(&context, (field.name + " = " + value).str(), [&] {
        return mlir::emitError(mlir::UnknownLoc::get(&context));
      });
    };
    tile::ScheduleAttr first = read(field.values.front()), last = read(field.values.back());
    EXPECT_EQ(first, read(field.values.front()));
    EXPECT_NE(first, last) << field.name.str();
    EXPECT_NE(first, empty) << field.name.str();
    EXPECT_EQ(first.overriddenBy(last), last) << field.name.str();
    EXPECT_EQ(first.overriddenBy(empty), first) << field.name.str();
  }
}
