//===- ProgramsTest.cpp ---------------------------------------------------===//

#include "lib/Tuning/Programs.h"
#include "gtest/gtest.h"

using namespace tessera::tuning;

static const char kSource[] = R"(
param N : int = 64
tile.kernel @copy(%x: !tile.view<[M, $N], f16>, %y: !tile.view<[M, $N], f16>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %t = tile.load %x[%row, %c0] : !tile.view<[M, $N], f16> -> tensor<64x$Nxf16>
  tile.store %t, %y[%row, %c0] : tensor<64x$Nxf16>, !tile.view<[M, $N], f16>
}
)";

/// The source with every `from` replaced.
static std::string edit(std::string text, const std::string &from, const std::string &to) {
  EXPECT_NE(text.find(from), std::string::npos) << from;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

static std::string identify(const std::string &source, const std::string &kernel = "copy",
                            const Defines &defines = {}) {
  llvm::Expected<std::string> program = identifyProgram(source, "copy.tile", kernel, defines);
  return program ? *program : "error: " + toString(program.takeError());
}

TEST(ProgramsTest, NamesAndPositionsAreNoPartOfAProgram) {
  std::string program = identify(kSource);
  EXPECT_EQ(program.size(), 16u) << program;
  EXPECT_EQ(identify(kSource), program);
  EXPECT_EQ(identify(edit(kSource, "@copy", "@other"), "other"), program);
  EXPECT_EQ(identify(edit(kSource, "%x", "%input")), program);
  EXPECT_EQ(identify(edit(kSource, "%row", "%r")), program);
  EXPECT_EQ(identify(edit(kSource, "  %c64", "  // A comment.\n\n  %c64")), program);
  EXPECT_EQ(
      identify(edit(kSource, "ceildiv 64)", "ceildiv 64) schedule #tile.schedule<stages = 2>")),
      program);
}

TEST(ProgramsTest, WhatChangesNothingIsNoPartOfAProgram) {
  std::string program = identify(kSource);
  // A parameter whose default leaves things as they are, and what is not used.
  std::string added = edit(kSource, "param N", "param STEP : int = 1\nparam N");
  std::string used = edit(added, "%row = arith.muli %m, %c64",
                          "%step = arith.constant $STEP : index\n"
                          "  %scaled = arith.muli %c64, %step : index\n"
                          "  %row = arith.muli %m, %scaled");
  EXPECT_EQ(identify(added), program);
  EXPECT_EQ(identify(used), program);
  EXPECT_NE(identify(used, "copy", {{"STEP", "2"}}), program);
}

TEST(ProgramsTest, OtherProgramsDiffer) {
  std::string program = identify(kSource);
  EXPECT_NE(identify(kSource, "copy", {{"N", "128"}}), program);
  EXPECT_NE(identify(edit(kSource, "f16", "bf16")), program);
  EXPECT_NE(identify(edit(kSource, "[%row, %c0]", "[%row, %c64]")), program);
  EXPECT_NE(identify(edit(kSource, "[M, $N]", "[ROWS, $N]")), program);
  EXPECT_NE(identify(edit(kSource, "ceildiv 64)", "ceildiv 64) requires(8 * M divides M)")),
            program);
}

TEST(ProgramsTest, ATicketIsPartOfAProgram) {
  std::string source = edit(edit(kSource, "f16", "f32"), "%y[%row, %c0]", "%y[%row, %c0] add");
  std::string program = identify(source);
  std::string ticketed = edit(source, "add", "add ticket %m from %c0 to %c64");
  EXPECT_EQ(program.size(), 16u) << program;
  EXPECT_EQ(identify(ticketed).size(), 16u) << identify(ticketed);
  EXPECT_NE(identify(ticketed), program);
  EXPECT_NE(identify(edit(source, "add", "add ticket %m from %c64 to %c0")), identify(ticketed));
}

TEST(ProgramsTest, Errors) {
  EXPECT_EQ(identify(kSource, "other"), "error: the source has no kernel 'other'");
  EXPECT_NE(identify(kSource, "copy", {{"N", "many"}}).find("error: "), std::string::npos);
}

/// An entry of which the source knows no program yet, or another one.
static Database makeDatabase(Values parameters) {
  Entry entry;
  entry.program = "old";
  entry.kernel = "copy";
  entry.gpu = "NVIDIA H200";
  entry.shapeClass = "many-long";
  entry.parameters = std::move(parameters);
  entry.tuned = {"N"};
  Database database;
  database.insert(entry, {132});
  entry.program = "kept";
  entry.kernel = "another";
  database.insert(entry, {132});
  return database;
}

TEST(ProgramsTest, AdoptingKnowsTheProgramThatWasMeasured) {
  Database database = makeDatabase({{"N", "128"}});
  llvm::Expected<size_t> count = adoptPrograms(database, kSource, "copy.tile");
  ASSERT_TRUE(static_cast<bool>(count)) << toString(count.takeError());
  EXPECT_EQ(*count, 1u);
  const Entry &other = database.getEntries()[0], &entry = database.getEntries()[1];
  EXPECT_EQ(entry.program, identify(kSource));
  EXPECT_EQ(entry.tunedProgram, identify(kSource, "copy", {{"N", "128"}}));
  EXPECT_EQ(other.program, "kept");

  Database standard = makeDatabase({{"N", "64"}});
  ASSERT_TRUE(static_cast<bool>(count = adoptPrograms(standard, kSource, "copy.tile")));
  EXPECT_EQ(standard.getEntries()[1].tunedProgram, "");

  Database unknown = makeDatabase({{"K", "64"}, {"N", "64"}});
  count = adoptPrograms(unknown, kSource, "copy.tile");
  ASSERT_FALSE(static_cast<bool>(count));
  EXPECT_NE(toString(count.takeError()).find("is not of 'copy.tile'"), std::string::npos);
}
