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
/// A row: a number of one card, or of all.
struct Row {
  std::string name, card, why, record;
  double value;
};

/// The file.
struct Cards {
  std::string format, defaultCard;
  int64_t version;
  std::vector<Row> numbers;
};

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

struct Number {
  llvm::StringLiteral name;
  double CardNumbers::*real = nullptr;
  int64_t CardNumbers::*whole = nullptr;

  constexpr Number(llvm::StringLiteral name, double CardNumbers::*real) : name(name), real(real) {}
  constexpr Number(llvm::StringLiteral name, int64_t CardNumbers::*whole)
      : name(name), whole(whole) {}

  /// Whether a value is one of this number; sets it.
  bool set(CardNumbers &numbers, double value) const {
    if (real)
      numbers.*real = value;
    else
      numbers.*whole = static_cast<int64_t>(value);
    return value > 0 && (real || value == static_cast<double>(numbers.*whole));
  }
};
} // namespace

static constexpr Number kNumbers[] = {
    {"functionUse", &CardNumbers::functionUse},
    {"dotWeight", &CardNumbers::dotWeight},
    {"functionWeight", &CardNumbers::functionWeight},
    {"instructionWeight", &CardNumbers::instructionWeight},
    {"leastGainOfPolynomials", &CardNumbers::leastGainOfPolynomials},
    {"unalignedRowCycles", &CardNumbers::unalignedRowCycles},
    {"multiprocessors", &CardNumbers::multiprocessors},
    {"clockGHz", &CardNumbers::clockGHz},
    {"iterationsOfEnds", &CardNumbers::iterationsOfEnds},
    {"otherTiles", &CardNumbers::otherTiles},
    {"waitCycles", &CardNumbers::waitCycles},
    {"memoryBytesPerSecond", &CardNumbers::memoryBytesPerSecond},
    {"mostDotsForTurns", &CardNumbers::mostDotsForTurns},
    {"mostFunctionsForTurns", &CardNumbers::mostFunctionsForTurns},
    {"leastWorkForLead", &CardNumbers::leastWorkForLead},
    {"leastDotAhead", &CardNumbers::leastDotAhead},
    {"bytesOfSums", &CardNumbers::bytesOfSums},
    {"bytesInFlight", &CardNumbers::bytesInFlight},
    {"mostStages", &CardNumbers::mostStages},
    {"mostStagesBetweenDots", &CardNumbers::mostStagesBetweenDots},
    {"mostStagesOfLists", &CardNumbers::mostStagesOfLists},
    {"mostStagesOfBounds", &CardNumbers::mostStagesOfBounds},
    {"sectionOfShared", &CardNumbers::sectionOfShared},
    {"mergedElements", &CardNumbers::mergedElements},
    {"loadedElements", &CardNumbers::loadedElements},
    {"sparesOfShare", &CardNumbers::sparesOfShare},
    {"leastRun", &CardNumbers::leastRun},
};

/// Sets the numbers of a card: of two rows for one number that which names it counts.
static llvm::Expected<CostModel> makeModel(const Cards &cards, StringRef card) {
  CostModel model = {};
  llvm::StringMap<bool> isOwn;
  for (const Row &row : cards.numbers) {
    const Number *number =
        llvm::find_if(kNumbers, [&](const Number &known) { return known.name == row.name; });
    if (number == std::end(kNumbers))
      return llvm::createStringError("there is no number '" + row.name + "' of a card");
    CardNumbers given = {};
    if (!number->set(given, row.value))
      return llvm::createStringError(llvm::formatv("'{0}' is {1}; it is {2} above 0", row.name,
                                                   row.value,
                                                   number->real ? "a number" : "an integer"));
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
