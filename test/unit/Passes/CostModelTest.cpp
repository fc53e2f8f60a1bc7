//===- CostModelTest.cpp - The search follows the numbers of its model ----===//

#include "passes/Schedule/CostModel.h"
#include "dialects/Tile/ScheduleFields.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "passes/Schedule/Exponentials.h"
#include "passes/Schedule/ScheduleChoice.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace tessera;
namespace json = llvm::json;

namespace {
class CostModelTest : public ::testing::Test {
protected:
  CostModelTest() {
    context
        .loadDialect<arith::ArithDialect, math::MathDialect, scf::SCFDialect, tile::TileDialect>();
  }

  /// The module of a file of test/Passes.
  OwningOpRef<ModuleOp> parse(const Twine &name) {
    auto module =
        parseSourceFile<ModuleOp>((TESSERA_SOURCE_DIR "/test/Passes/" + name).str(), &context);
    EXPECT_TRUE(module) << name.str();
    return module;
  }

  /// What the search makes of a kernel of test/Passes/Inputs with `model`.
  ScheduleChoice choose(StringRef name) {
    OwningOpRef<ModuleOp> module = parse("Inputs/" + name + ".mlir");
    tile::KernelOp kernel = *module->getOps<tile::KernelOp>().begin();
    auto choices = chooseSchedules(kernel, {tile::ScheduleFields().get(&context)}, &model);
    EXPECT_TRUE(succeeded(choices));
    return choices->front();
  }

  tile::ScheduleFields chosen(StringRef name) {
    ScheduleChoice choice = choose(name);
    EXPECT_TRUE(choice.schedule) << name.str();
    return choice.schedule ? choice.schedule.getFields() : tile::ScheduleFields();
  }

  MLIRContext context;
  CostModel model = getCostModel();
};
} // namespace

TEST_F(CostModelTest, TurnsPayBetweenTheThresholds) {
  EXPECT_EQ(chosen("attention").pingpong, true);
  model.mostDotsForTurns = 0;
  EXPECT_EQ(chosen("attention").pingpong, false);
}

TEST_F(CostModelTest, CostsOfOperationsCount) {
  EXPECT_EQ(chosen("attention").pingpong, true);
  model.singleFunction.functions = 10;
  EXPECT_EQ(chosen("attention").pingpong, false);
}

TEST_F(CostModelTest, PolynomialsWhereSpecialFunctionsLimit) {
  EXPECT_EQ(chosen("attention").polynomialExp, 0);
  model.functionUse = 0.1;
  EXPECT_EQ(chosen("attention").polynomialExp, 16);
  model.polynomialShares = {2, 4, 6};
  EXPECT_EQ(chosen("attention").polynomialExp, 6);
}

TEST_F(CostModelTest, WeightsDecideTheShare) {
  CycleBudget budget;
  budget.dots = 1536;
  budget.functions = 4608;
  budget.instructions = 2190;
  budget.exponentials = 1536;
  budget.polynomials = 1152;
  EXPECT_EQ(fastestShare(budget, model), 16);
  model.instructionWeight = 2;
  EXPECT_EQ(fastestShare(budget, model), 0);
}

TEST_F(CostModelTest, MostStages) {
  EXPECT_EQ(chosen("gemm").stages, tile::NumberList(4));
  model.mostStages = 2;
  EXPECT_EQ(chosen("gemm").stages, tile::NumberList(2));
}

TEST_F(CostModelTest, WideAccumulatorsAreScaledBefore) {
  EXPECT_EQ(chosen("attention").overlap, tile::OverlapKind::Two);
  model.wideColumns = 64;
  EXPECT_EQ(chosen("attention").overlap, tile::OverlapKind::Scaled);
}

TEST_F(CostModelTest, RegistersOfTheRoles) {
  EXPECT_EQ(chosen("gemm").producerRegisters, 24);
  model.producerRegisters[1] = 40;
  model.consumerRegisters[1] = 232;
  EXPECT_EQ(chosen("gemm").producerRegisters, 40);
  EXPECT_EQ(chosen("gemm").consumerRegisters, tile::NumberList(232));
}

TEST_F(CostModelTest, RegistersBesideTiles) {
  model.fixedRegisters = 200;
  ScheduleChoice choice = choose("gemm");
  EXPECT_FALSE(choice.schedule);
  bool isSaid = llvm::any_of(choice.rejections, [](const ScheduleRejection &rejection) {
    return StringRef(rejection.reason).contains("a consumer thread needs 328 registers");
  });
  EXPECT_TRUE(isSaid);
}

TEST_F(CostModelTest, RegistersSparedForPtxas) {
  model.registersPerSpare = 2;
  EXPECT_FALSE(choose("gemm").schedule);
}

/// Also where consumers of different dots take tiles of 8 bits otherwise than others.
TEST_F(CostModelTest, TheListBeginsWithTheChoice) {
  OwningOpRef<ModuleOp> module = parse("tile-choose-schedule/bytes-divided.tile");
  tile::KernelOp kernel = *module->getOps<tile::KernelOp>().begin();
  tile::ScheduleFields fields;
  fields.consumers = 2;
  tile::ScheduleAttr requested = fields.get(&context);
  auto choices = chooseSchedules(kernel, {requested});
  ASSERT_TRUE(succeeded(choices));
  SmallVector<tile::ScheduleAttr> listed = listSchedules(kernel, requested, /*most=*/8);
  ASSERT_FALSE(listed.empty());
  EXPECT_EQ(listed.front(), choices->front().schedule);
  EXPECT_EQ(listed.front().getPlacement(), tile::PlacementKind::divided);
}

namespace {
/// A value of each type that no card has.
void change(double &number) { number = 2 * number + 1; }
void change(int64_t &number) { number = number == 1 ? 2 : number - 1; }
void change(ElementCost &cost) { cost = {cost.functions + 1, cost.instructions + 3}; }
void change(NumbersInOrder &numbers) {
  llvm::for_each(numbers, [](int64_t &x) { change(x); });
}
void change(NumbersByConsumers &numbers) {
  llvm::for_each(numbers, [](int64_t &x) { change(x); });
}

json::Value toJSON(double number) { return number; }
json::Value toJSON(int64_t number) { return number; }
json::Value toJSON(const ElementCost &cost) {
  return json::Array{cost.functions, cost.instructions};
}
json::Value toJSON(ArrayRef<int64_t> numbers) { return json::Array(numbers); }
} // namespace

/// Numbers of cards as kernels/cards.json has them, with `rows` in place of those of clocks.
static std::string writeCards(StringRef rows) {
  auto file = llvm::MemoryBuffer::getFile(TESSERA_SOURCE_DIR "/kernels/cards.json");
  std::string text = (*file)->getBuffer().str(), kept;
  for (StringRef line : llvm::split(text, '\n'))
    if (!line.contains("clockGHz"))
      kept += line.str() + "\n";
  size_t place = kept.find("  {");
  return kept.insert(place, rows.str());
}

TEST(CardsTest, RowsOfACardCount) {
  std::string text = writeCards(R"({"name": "clockGHz", "value": 2},
    {"name": "clockGHz", "card": "Tomorrow", "value": 3},)");
  EXPECT_EQ(llvm::cantFail(parseCards(text, "")).clockGHz, 2);
  EXPECT_EQ(llvm::cantFail(parseCards(text, "Tomorrow")).clockGHz, 3);
  EXPECT_EQ(llvm::cantFail(parseCards(text, "Another")).clockGHz, 2);
  EXPECT_EQ(llvm::cantFail(parseCards(text, "Tomorrow")).waitCycles, getCostModel().waitCycles);
}

TEST(CardsTest, RowsOverrideEachNumber) {
  // A made-up card has another value of every number.
  CostModel other = getCostModel();
  std::string rows;
  llvm::raw_string_ostream os(rows);
#define CARD_NUMBER(type, name, most)                                                              \
  change(other.name);                                                                              \
  os << json::Value(                                                                               \
            json::Object{{"name", #name}, {"card", "Tomorrow"}, {"value", toJSON(other.name)}})    \
     << ",\n";
#include "passes/Schedule/CardNumbers.def"
  os << R"({"name": "clockGHz", "value": 2},)";
  CostModel read = llvm::cantFail(parseCards(writeCards(rows), "Tomorrow"));
#define CARD_NUMBER(type, name, most)                                                              \
  EXPECT_EQ(toJSON(read.name), toJSON(other.name)) << #name;                                       \
  EXPECT_NE(toJSON(read.name), toJSON(getCostModel().name)) << #name;
#include "passes/Schedule/CardNumbers.def"
}

TEST(CardsTest, WrongRows) {
  auto refuse = [](StringRef rows, StringRef reason) {
    llvm::Expected<CostModel> model = parseCards(writeCards(rows), "Tomorrow");
    EXPECT_FALSE(model);
    EXPECT_EQ(toString(model.takeError()), reason.str());
  };
  refuse("", "no row has 'clockGHz' of Tomorrow");
  refuse(R"({"name": "clockGHz", "value": 2}, {"name": "clockGHz", "value": 3},)",
         "two rows have 'clockGHz' of one card");
  refuse(R"({"name": "clockGhz", "value": 2},)", "there is no number 'clockGhz' of a card");
  refuse(R"({"name": "clockGHz", "value": 0},)", "'clockGHz' is 0.00; it is a number above 0");
  refuse(R"({"name": "mostStages", "card": "Tomorrow", "value": 2.5},)",
         "'mostStages' is 2.50; it is an integer above 0");
  refuse(R"({"name": "mostStages", "card": "Tomorrow", "value": [2]},)",
         "'mostStages' is [2.00]; it is an integer above 0");
  refuse(R"({"name": "consumers", "card": "Tomorrow", "value": [5, 2]},)",
         "'consumers' is [5.00, 2.00]; it is a list of integers from 1 to 4");
  refuse(
      R"({"name": "division", "card": "Tomorrow", "value": 2},)",
      "'division' is 2.00; it is a list of special functions and instructions, two numbers of at "
      "least 0");
  refuse(
      R"({"name": "producerRegisters", "card": "Tomorrow", "value": [24, 24, 24]},)",
      "'producerRegisters' is [24.00, 24.00, 24.00]; it is a list of an integer from 1 to 256 for "
      "1 to 4 consumers");
}

TEST(CardsTest, ModulesNameTheirCard) {
  MLIRContext context;
  OwningOpRef<ModuleOp> module(ModuleOp::create(UnknownLoc::get(&context)));
  EXPECT_EQ(&getCostModel(*module), &getCostModel());
  (*module)->setAttr(kCardAttr, StringAttr::get(&context, "NVIDIA H100 80GB HBM3"));
  EXPECT_LT(getCostModel(*module).bytesOfWait(), getCostModel().bytesOfWait());
  EXPECT_TRUE(llvm::is_contained(getCards(), "NVIDIA H100 80GB HBM3"));
}
