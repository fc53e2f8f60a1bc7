//===- CostModel.cpp - The numbers of cards, from their file --------------===//

#include "passes/Schedule/CostModel.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace tessera;
namespace json = llvm::json;
using llvm::StringRef;
using llvm::Twine;

/// The text of kernels/cards.json, from the build.
extern const char tesseraCards[];

namespace {
/// A number, or several in a list.
struct RowValue {
  std::vector<double> numbers;
  bool isList = false;
};

/// A row: a number of one card, or of all.
struct Row {
  std::string name, card, why, record;
  RowValue value;
};

/// The file.
struct Cards {
  std::string format, defaultCard;
  int64_t version;
  std::vector<Row> numbers;
};

bool fromJSON(const json::Value &value, RowValue &row, json::Path path) {
  row.isList = value.kind() == json::Value::Array;
  if (row.isList)
    return json::fromJSON(value, row.numbers, path);
  return json::fromJSON(value, row.numbers.emplace_back(), path);
}

bool fromJSON(const json::Value &value, Row &row, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("name", row.name) && map.map("value", row.value) &&
         map.mapOptional("card", row.card) && map.mapOptional("why", row.why) &&
         map.mapOptional("record", row.record);
}

bool fromJSON(const json::Value &value, Cards &cards, json::Path path) {
  json::ObjectMapper map(value, path);
  if (!map || !map.map("format", cards.format) || !map.map("version", cards.version) ||
      !map.map("default_card", cards.defaultCard) || !map.map("numbers", cards.numbers))
    return false;
  if (cards.format == "tessera-cards" && cards.version == 1)
    return true;
  path.field("format").report("expected tessera-cards of version 1");
  return false;
}

/// Whether integers are from 1 to `most`, if that is not 0; sets them, of which there is room.
template <typename Integers>
bool setIntegers(Integers &integers, llvm::ArrayRef<double> values, int64_t most) {
  for (auto [integer, value] : llvm::zip_equal(integers, values)) {
    integer = static_cast<int64_t>(value);
    if (value != static_cast<double>(integer) || value < 1 || (most && integer > most))
      return false;
  }
  return !values.empty();
}

/// Whether `value` is one of the type of `number`; sets it.
bool set(double &number, const RowValue &value, int64_t) {
  return !value.isList && (number = value.numbers.front()) > 0;
}
bool set(int64_t &number, const RowValue &value, int64_t most) {
  llvm::MutableArrayRef<int64_t> one(number);
  return !value.isList && setIntegers(one, value.numbers, most);
}
bool set(ElementCost &cost, const RowValue &value, int64_t) {
  if (!value.isList || value.numbers.size() != 2)
    return false;
  cost = {value.numbers[0], value.numbers[1]};
  return cost.functions >= 0 && cost.instructions >= 0;
}
bool set(NumbersInOrder &numbers, const RowValue &value, int64_t most) {
  numbers.resize(value.numbers.size());
  return value.isList && setIntegers(numbers, value.numbers, most);
}
bool set(NumbersByConsumers &numbers, const RowValue &value, int64_t most) {
  return value.isList && value.numbers.size() == numbers.size() &&
         setIntegers(numbers, value.numbers, most);
}

/// What a value of such a type is.
std::string describeValue(double, int64_t) { return "a number above 0"; }
std::string describeValue(int64_t, int64_t most) {
  return most ? "an integer from 1 to " + std::to_string(most) : "an integer above 0";
}
std::string describeValue(const ElementCost &, int64_t) {
  return "a list of special functions and instructions, two numbers of at least 0";
}
std::string describeValue(const NumbersInOrder &, int64_t most) {
  return "a list of integers from 1 to " + std::to_string(most);
}
std::string describeValue(const NumbersByConsumers &, int64_t most) {
  return "a list of an integer from 1 to " + std::to_string(most) + " for 1 to 4 consumers";
}

struct Number {
  llvm::StringLiteral name;
  bool (*set)(CostModel &model, const RowValue &value);
  std::string (*describe)();
};
} // namespace

static constexpr Number kNumbers[] = {
#define CARD_NUMBER(type, name, most)                                                              \
  {#name, [](CostModel &model, const RowValue &value) { return set(model.name, value, most); },    \
   [] { return describeValue(type(), most); }},
#include "passes/Schedule/CardNumbers.def"
};

static std::string print(const RowValue &value) {
  std::string text =
      llvm::formatv("{0:$[, ]}", llvm::make_range(value.numbers.begin(), value.numbers.end()));
  return value.isList ? "[" + text + "]" : text;
}

/// Sets the numbers of a card: of two rows for one number that which names it counts.
static llvm::Expected<CostModel> makeModel(const Cards &cards, StringRef card) {
  CostModel model;
  llvm::StringMap<bool> isOwn;
  for (const Row &row : cards.numbers) {
    const Number *number =
        llvm::find_if(kNumbers, [&](const Number &known) { return known.name == row.name; });
    if (number == std::end(kNumbers))
      return llvm::createStringError("there is no number '" + row.name + "' of a card");
    CostModel given;
    if (!number->set(given, row.value))
      return llvm::createStringError(
          llvm::formatv("'{0}' is {1}; it is {2}", row.name, print(row.value), number->describe()));
    if (!row.card.empty() && row.card != card)
      continue;
    auto [known, isNew] = isOwn.try_emplace(row.name, !row.card.empty());
    if (!isNew && known->second == !row.card.empty())
      return llvm::createStringError("two rows have '" + row.name + "' of one card");
    if (isNew || !known->second)
      number->set(model, row.value);
    known->second |= !row.card.empty();
  }
  for (const Number &number : kNumbers)
    if (!isOwn.count(number.name))
      return llvm::createStringError("no row has '" + Twine(number.name) + "' of " +
                                     (card.empty() ? "all cards" : card));
  return model;
}

llvm::Expected<CostModel> tessera::parseCards(StringRef text, StringRef card) {
  llvm::Expected<Cards> cards = json::parse<Cards>(text, "cards");
  if (!cards)
    return cards.takeError();
  return makeModel(*cards, card.empty() ? StringRef(cards->defaultCard) : card);
}

namespace {
/// The models of all cards that the file names, the default one first.
struct Models {
  Models() {
    Cards cards = take(json::parse<Cards>(tesseraCards, "cards"));
    names.push_back(cards.defaultCard);
    for (const Row &row : cards.numbers)
      if (!row.card.empty() && !llvm::is_contained(names, row.card))
        names.push_back(row.card);
    for (const std::string &name : names)
      models.push_back(take(makeModel(cards, name)));
  }

  template <typename T>
  static T take(llvm::Expected<T> made) {
    if (!made)
      llvm::reportFatalInternalError(
          StringRef("kernels/cards.json: " + toString(made.takeError())));
    return std::move(*made);
  }

  std::vector<std::string> names;
  std::vector<CostModel> models;
};
} // namespace

static const Models &getModels() {
  static const Models models;
  return models;
}

llvm::ArrayRef<std::string> tessera::getCards() { return getModels().names; }

const CostModel &tessera::getCostModel(StringRef card) {
  const Models &known = getModels();
  auto found = llvm::find(known.names, card);
  return known.models[found == known.names.end() ? 0 : found - known.names.begin()];
}

const CostModel &tessera::getCostModel(mlir::Operation *op) {
  auto module = llvm::dyn_cast<mlir::ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<mlir::ModuleOp>();
  auto card = module ? module->getAttrOfType<mlir::StringAttr>(kCardAttr) : mlir::StringAttr();
  return getCostModel(card ? card.getValue() : StringRef());
}
