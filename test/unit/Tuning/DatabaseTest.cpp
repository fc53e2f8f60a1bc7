//===- DatabaseTest.cpp ---------------------------------------------------===//

#include "lib/Database/Database.h"
#include "gtest/gtest.h"

using namespace tessera;
using namespace tessera::tuning;

static Entry makeEntry() {
  Entry entry;
  entry.program = "0123";
  entry.kernel = "gemm";
  entry.gpu = "NVIDIA H200";
  entry.shapeClass = "many-long";
  entry.parameters = {{"BM", "128"}, {"T", "bf16"}};
  entry.tuned = {"BM"};
  entry.schedule = "stages = 3";
  entry.measured.shapes = {{{"M", 8192}, {"N", 4096}}};
  entry.measured.ms = {1.5};
  entry.measured.modelMs = {1.75};
  entry.measured.spread = 0.01;
  entry.measured.contestants = 12;
  return entry;
}

static std::string parseError(const std::string &text) {
  llvm::Expected<Database> database = Database::parse(text);
  return database ? "" : toString(database.takeError());
}

TEST(DatabaseTest, SurvivesPrinting) {
  Database database;
  Entry entry = makeEntry();
  database.insert(entry, {132});
  entry.program = "4567";
  entry.tunedProgram = "89ab";
  entry.parameters["T"] = "f16";
  entry.measured.measuredWith = {{"T", "bf16"}};
  entry.measured.compiler = "1f77ba2";
  entry.measured.ptxas = "12.9";
  entry.measured.date = "2026-11-22";
  entry.measured.record = "times.json";
  entry.measured.clock = 1755;
  entry.fixed = "work=pinned";
  database.insert(entry, {132});
  llvm::Expected<Database> read = Database::parse(database.print());
  ASSERT_TRUE(static_cast<bool>(read)) << toString(read.takeError());
  EXPECT_EQ(read->print(), database.print());
  ASSERT_EQ(read->getEntries().size(), 2u);
  const Entry &second = read->getEntries()[1];
  EXPECT_EQ(second.parameters, entry.parameters);
  EXPECT_EQ(second.program, "4567");
  EXPECT_EQ(second.getMeasuredProgram(), "89ab");
  EXPECT_EQ(read->getEntries()[0].getMeasuredProgram(), "0123");
  EXPECT_EQ(second.schedule, "stages = 3");
  EXPECT_EQ(second.measured.record, "times.json");
  EXPECT_EQ(second.measured.describeOrigin(), "compiler 1f77ba2, ptxas 12.9, 2026-11-22, 1755 MHz");
  // What nobody knows is neither invented nor written.
  EXPECT_EQ(read->getEntries()[0].measured.describeOrigin(), "");
  EXPECT_EQ(second.fixed, "work=pinned");
  EXPECT_EQ(second.measured.shapes, entry.measured.shapes);
  EXPECT_EQ(second.measured.measuredWith, entry.measured.measuredWith);
  EXPECT_EQ(read->getGpus().at("NVIDIA H200").multiprocessors, 132);
  EXPECT_EQ(read->getDefaultGpu(), "NVIDIA H200");
}

TEST(DatabaseTest, TimesOfTiles) {
  std::string front = R"({"format": "tessera-schedules", "version": 2, "default_gpu": "G", )"
                      R"("gpus": {"G": {"multiprocessors": 132}}, "entries": [], )"
                      R"("fits": {"of 2026": ["a.json"]}, "times": [)"
                      R"({"program": "0123", "kernel": "gemm", "parameters": {"BM": "128"}, )"
                      R"("gpu": "G", "shapes": 7, "fit": "of 2026", )";
  auto complete = [&](const std::string &numbers) { return front + numbers + "}]}"; };
  llvm::Expected<Database> database =
      Database::parse(complete(R"("iteration_us": 0.5, "ends_us": 1.25)"));
  ASSERT_TRUE(static_cast<bool>(database)) << toString(database.takeError());
  llvm::Expected<Database> read = Database::parse(database->print());
  ASSERT_TRUE(static_cast<bool>(read)) << toString(read.takeError());
  EXPECT_EQ(read->print(), database->print());
  const TileTimes *times = read->findTimes("0123", "G");
  ASSERT_TRUE(times);
  EXPECT_EQ(times->iteration, 0.5);
  EXPECT_EQ(times->ends, 1.25);
  EXPECT_EQ(times->shapes, 7);
  EXPECT_EQ(times->fit, "of 2026");
  EXPECT_NE(database->print().find("a.json"), std::string::npos);
  EXPECT_EQ(times->parameters, (Values{{"BM", "128"}}));
  EXPECT_FALSE(read->findTimes("0123", "H"));
  EXPECT_FALSE(read->findTimes("4567", "G"));
  for (const char *numbers :
       {R"("iteration_us": 0, "ends_us": 1)", R"("iteration_us": 1, "ends_us": -1)"})
    EXPECT_NE(parseError(complete(numbers)).find("needs an \"iteration_us\" above 0"),
              std::string::npos);
  EXPECT_NE(parseError(complete(R"("iteration_us": 1)")).find("ends_us"), std::string::npos);
  front.replace(front.find("of 2026"), 7, "of 2025");
  EXPECT_NE(parseError(complete(R"("iteration_us": 1, "ends_us": 1)")).find("not among \"fits\""),
            std::string::npos);
}

TEST(DatabaseTest, KeyLeavesOutWhatWasTuned) {
  Entry old = makeEntry(), other = makeEntry();
  other.parameters["BM"] = "256";
  // The same name and parameters, of which the program was edited since.
  other.program = "4567";
  EXPECT_TRUE(other.hasKeyOf(old));
  // The first was measured when BM was not varied.
  old.tuned.clear();
  EXPECT_TRUE(other.hasKeyOf(old));
  for (auto change :
       {+[](Entry &e) { e.shapeClass = "few-long"; }, +[](Entry &e) { e.gpu = "NVIDIA H100"; },
        +[](Entry &e) { e.fixed = "work=pinned"; }}) {
    Entry changed = makeEntry();
    change(changed);
    EXPECT_FALSE(changed.hasKeyOf(makeEntry()));
  }
  // One program has one key, whatever its name and how its parameters are called; other ones are
  // told apart by both.
  for (auto change :
       {+[](Entry &e) { e.parameters["T"] = "f16"; }, +[](Entry &e) { e.kernel = "attention"; }}) {
    Entry changed = makeEntry();
    change(changed);
    EXPECT_TRUE(changed.hasKeyOf(makeEntry()));
    changed.program = "4567";
    EXPECT_FALSE(changed.hasKeyOf(makeEntry()));
  }
  EXPECT_EQ(other.describe(), "'gemm', many-long, NVIDIA H200, T = bf16");
  // One alternative does not take the place of another, or of what the source prefers.
  old = makeEntry();
  other.given = {"BM"};
  EXPECT_FALSE(other.hasKeyOf(old));
  EXPECT_FALSE(old.hasKeyOf(other));
  old.given = {"BM"};
  EXPECT_FALSE(other.hasKeyOf(old));
  old.parameters["BM"] = "256";
  EXPECT_TRUE(other.hasKeyOf(old));
  other.fixed = "work=pinned";
  EXPECT_EQ(other.describe(), "'gemm', many-long, NVIDIA H200, T = bf16, work=pinned");
}

TEST(DatabaseTest, InsertReplaces) {
  Database database;
  database.insert(makeEntry(), {132});
  Entry entry = makeEntry();
  entry.parameters["BM"] = "256";
  database.insert(entry, {132});
  ASSERT_EQ(database.getEntries().size(), 1u);
  EXPECT_EQ(database.getEntries()[0].parameters.at("BM"), "256");
  entry.gpu = "NVIDIA H100";
  database.insert(entry, {114});
  EXPECT_EQ(database.getEntries().size(), 2u);
  EXPECT_EQ(database.getDefaultGpu(), "NVIDIA H200");
}

TEST(DatabaseTest, NamesWhatIsWrong) {
  Database database;
  database.insert(makeEntry(), {132});
  std::string text = database.print();
  auto replaced = [&](const std::string &from, const std::string &to) {
    std::string copy = text;
    size_t place = copy.find(from);
    EXPECT_NE(place, std::string::npos) << from;
    return copy.replace(place, from.size(), to);
  };
  EXPECT_NE(parseError("{").find("is not JSON"), std::string::npos);
  EXPECT_NE(parseError("{}").find("\"format\""), std::string::npos);
  EXPECT_NE(parseError(replaced("\"version\": 2", "\"version\": 3")).find("version 2"),
            std::string::npos);
  EXPECT_NE(
      parseError(replaced("\"program\": \"0123\"", "\"program\": \"\"")).find("entries[0].program"),
      std::string::npos);
  EXPECT_NE(parseError(replaced("\"stages = 3\"", "3")).find("entries[0].schedule"),
            std::string::npos);
  EXPECT_NE(
      parseError(replaced("\"gpu\": \"NVIDIA H200\"", "\"gpu\": \"X\"")).find("entries[0].gpu"),
      std::string::npos);
  EXPECT_NE(parseError(replaced("\"tuned\": [\n    \"BM\"", "\"tuned\": [\n    \"BN\""))
                .find("entries[0].tuned"),
            std::string::npos);
  EXPECT_NE(parseError(replaced("1.75", "1, 2")).find("model_ms"), std::string::npos);
}

/// The first version knows kernels by their names alone: it is read by what adds the programs.
TEST(DatabaseTest, AnOldVersionSaysWhatToDo) {
  Database database;
  database.insert(makeEntry(), {132});
  std::string text = database.print();
  text.replace(text.find("\"version\": 2"), 12, "\"version\": 1");
  EXPECT_NE(parseError(text).find("is of version 1: its entries do not say which programs"),
            std::string::npos);
  EXPECT_NE(parseError(text).find("--adopt"), std::string::npos);
  llvm::Expected<Database> old = Database::parse(text, Database::oldestVersion);
  ASSERT_TRUE(static_cast<bool>(old)) << toString(old.takeError());
  EXPECT_EQ(old->getEntries().size(), 1u);
}
