//===- TileAttrs.cpp - Attributes of the tile dialect ---------------------===//

#include "dialects/Tile/ScheduleFields.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tessera::tile;

LogicalResult GridDimAttr::verify(function_ref<InFlightDiagnostic()> emitError, Attribute extent,
                                  int64_t divisor) {
  if (!isa<StringAttr, IntegerAttr>(extent))
    return emitError() << "a grid extent is the name of a run-time dimension or an integer, got "
                       << extent;
  if (divisor < 1)
    return emitError() << "the divisor of a grid extent is at least 1, got " << divisor;
  return success();
}

LogicalResult DividesAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr,
                                  StringAttr, int64_t factor) {
  // Extents are below 2^31, so that the product fits 64 bits.
  if (factor < 1 || factor > INT32_MAX)
    return emitError() << "the factor of a requirement is 1 to 2^31 - 1, got " << factor;
  return success();
}

ScheduleFields::ScheduleFields(ScheduleAttr attr)
    : warpSpecialize(attr.getWarpSpecialize()), consumers(attr.getConsumers()),
      stages(attr.getStages()), outerStages(attr.getOuterStages()), overlap(attr.getOverlap()),
      lead(attr.getLead()), rescale(attr.getRescale()), pack(attr.getPack()),
      operands(attr.getOperands()), polynomialExp(attr.getPolynomialExp()),
      pinWaits(attr.getPinWaits()), pingpong(attr.getPingpong()), split(attr.getSplit()),
      speculate(attr.getSpeculate()), store(attr.getStore()), staging(attr.getStaging()),
      persistent(attr.getPersistent()), order(attr.getOrder()), section(attr.getSection()),
      cluster(attr.getCluster()), l2Hints(attr.getL2Hints()), pdl(attr.getPdl()),
      producerRegisters(attr.getProducerRegisters()),
      consumerRegisters(attr.getConsumerRegisters()) {}

ScheduleAttr ScheduleFields::get(MLIRContext *context) const {
  return ScheduleAttr::get(context, warpSpecialize, consumers, stages, outerStages, overlap, lead,
                           rescale, pack, operands, polynomialExp, pinWaits, pingpong, split,
                           speculate, store, staging, persistent, order, section, cluster, l2Hints,
                           pdl, producerRegisters, consumerRegisters);
}

ScheduleAttr ScheduleFields::getChecked(MLIRContext *context,
                                        function_ref<InFlightDiagnostic()> emitError) const {
  return ScheduleAttr::getChecked(
      emitError, context, warpSpecialize, consumers, stages, outerStages, overlap, lead, rescale,
      pack, operands, polynomialExp, pinWaits, pingpong, split, speculate, store, staging,
      persistent, order, section, cluster, l2Hints, pdl, producerRegisters, consumerRegisters);
}

std::optional<StageCounts> StageCounts::get(ArrayRef<int64_t> counts) {
  if (counts.empty() || counts.size() > kMost)
    return std::nullopt;
  if (llvm::all_equal(counts))
    return StageCounts(counts.front());
  StageCounts stages;
  stages.size = counts.size();
  llvm::copy(counts, stages.counts.begin());
  return stages;
}

std::optional<StageCounts> StageCounts::parse(StringRef text) {
  SmallVector<StringRef> items;
  if (text.consume_front("[")) {
    if (!text.consume_back("]"))
      return std::nullopt;
    text.split(items, ',');
  } else {
    items.push_back(text);
  }
  SmallVector<int64_t> counts;
  for (StringRef item : items)
    if (item.trim().getAsInteger(10, counts.emplace_back()))
      return std::nullopt;
  return get(counts);
}

raw_ostream &tessera::tile::operator<<(raw_ostream &os, const StageCounts &stages) {
  ArrayRef<int64_t> counts = stages.getCounts();
  if (counts.size() == 1)
    return os << counts.front();
  os << "[";
  llvm::interleaveComma(counts, os);
  return os << "]";
}

namespace {
/// Sets `field` from `text`; returns what would be accepted when it cannot.
StringRef readField(std::optional<bool> &field, StringRef text) {
  if (text != "true" && text != "false")
    return "true or false";
  field = text == "true";
  return {};
}
StringRef readField(std::optional<int64_t> &field, StringRef text) {
  int64_t value;
  if (text.getAsInteger(10, value))
    return "an integer";
  field = value;
  return {};
}
StringRef readField(std::optional<StageCounts> &field, StringRef text) {
  field = StageCounts::parse(text);
  return field ? StringRef() : "an integer or a list of at most 8, like [3, 2]";
}
StringRef readField(std::optional<StoreKind> &field, StringRef text) {
  field = symbolizeStoreKind(text);
  return field ? StringRef() : "direct or tma";
}
StringRef readField(std::optional<StagingKind> &field, StringRef text) {
  field = symbolizeStagingKind(text);
  return field ? StringRef() : "own or shared";
}
StringRef readField(std::optional<OperandKind> &field, StringRef text) {
  field = symbolizeOperandKind(text);
  return field ? StringRef() : "registers or shared";
}
StringRef readField(std::optional<PersistentKind> &field, StringRef text) {
  field = symbolizePersistentKind(text);
  return field ? StringRef() : "none, static or dynamic";
}
StringRef readField(std::optional<OrderKind> &field, StringRef text) {
  field = symbolizeOrderKind(text);
  return field ? StringRef() : "linear, ascending or descending";
}

StringRef readField(std::optional<JoinKind> &field, StringRef text) {
  field = symbolizeJoinKind(text);
  return field ? StringRef() : "before or after";
}

void printField(raw_ostream &os, bool value) { os << (value ? "true" : "false"); }
void printField(raw_ostream &os, int64_t value) { os << value; }
void printField(raw_ostream &os, const StageCounts &value) { os << value; }
void printField(raw_ostream &os, StoreKind value) { os << stringifyEnum(value); }
void printField(raw_ostream &os, StagingKind value) { os << stringifyEnum(value); }
void printField(raw_ostream &os, OperandKind value) { os << stringifyEnum(value); }
void printField(raw_ostream &os, PersistentKind value) { os << stringifyEnum(value); }
void printField(raw_ostream &os, OrderKind value) { os << stringifyEnum(value); }
void printField(raw_ostream &os, JoinKind value) { os << stringifyEnum(value); }

/// Reads one `name = value` into `fields`.
LogicalResult readNamedField(ScheduleFields &fields, StringRef name, StringRef value,
                             function_ref<InFlightDiagnostic()> emitError) {
  bool known = false;
  StringRef expected;
  fields.visit([&](StringRef fieldName, auto &field) {
    if (fieldName != name)
      return;
    known = true;
    expected = readField(field, value);
  });
  if (known && expected.empty())
    return success();
  if (known)
    return emitError() << "schedule field '" << name << "' takes " << expected << ", got '" << value
                       << "'";
  InFlightDiagnostic diag = emitError() << "unknown schedule field '" << name << "'; known are ";
  bool first = true;
  fields.visit([&](StringRef fieldName, auto &) {
    diag << (first ? "" : ", ") << fieldName;
    first = false;
  });
  return diag;
}
} // namespace

LogicalResult ScheduleAttr::verify(
    function_ref<InFlightDiagnostic()> emitError, std::optional<bool>,
    std::optional<int64_t> consumers, std::optional<StageCounts> stages,
    std::optional<int64_t> outerStages, std::optional<int64_t> overlap, std::optional<int64_t> lead,
    std::optional<JoinKind>, std::optional<JoinKind>, std::optional<OperandKind>,
    std::optional<int64_t> polynomialExp, std::optional<bool>, std::optional<bool>,
    std::optional<bool>, std::optional<bool>, std::optional<StoreKind>, std::optional<StagingKind>,
    std::optional<PersistentKind>, std::optional<OrderKind>, std::optional<int64_t> section,
    std::optional<int64_t> cluster, std::optional<bool>, std::optional<bool>,
    std::optional<int64_t> producerRegisters, std::optional<int64_t> consumerRegisters) {
  auto inRange = [&](StringRef name, std::optional<int64_t> value, int64_t low,
                     int64_t high) -> LogicalResult {
    if (value && (*value < low || *value > high))
      return emitError() << "schedule field '" << name << "' is " << low << " to " << high
                         << ", got " << *value;
    return success();
  };
  if (failed(inRange("consumers", consumers, 1, 4)) ||
      failed(inRange("outer_stages", outerStages, 1, 2)) ||
      failed(inRange("overlap", overlap, 1, 3)) ||
      failed(inRange("polynomial_exp", polynomialExp, 0, 16)) ||
      failed(inRange("lead", lead, 0, 1)))
    return failure();
  if (stages)
    for (int64_t count : stages->getCounts())
      if (failed(inRange("stages", count, 1, 8)))
        return failure();
  if (cluster && *cluster != 1 && *cluster != 2 && *cluster != 4)
    return emitError() << "schedule field 'cluster' is 1, 2 or 4, got " << *cluster;
  if (section && (*section < 1 || *section > 16 || !llvm::isPowerOf2_64(*section)))
    return emitError() << "schedule field 'section' is 1, 2, 4, 8 or 16, got " << *section;
  for (auto [name, value] : {std::pair("producer_registers", producerRegisters),
                             std::pair("consumer_registers", consumerRegisters)}) {
    if (failed(inRange(name, value, 24, 256)))
      return failure();
    if (value && *value % 8 != 0)
      return emitError() << "schedule field '" << name << "' is a multiple of 8, got " << *value;
  }
  return success();
}

Attribute ScheduleAttr::parse(AsmParser &parser, Type) {
  ScheduleFields fields;
  SMLoc loc = parser.getCurrentLocation();
  auto parseField = [&]() -> ParseResult {
    SMLoc fieldLoc = parser.getCurrentLocation();
    StringRef name, keyword;
    std::string value;
    int64_t integer;
    if (parser.parseKeyword(&name) || parser.parseEqual())
      return failure();
    auto parseCount = [&]() -> ParseResult {
      if (parser.parseInteger(integer))
        return failure();
      value += (value.empty() ? "[" : ",") + std::to_string(integer);
      return success();
    };
    // Keywords first: parseInteger would take `true` for a number.
    if (succeeded(parser.parseOptionalKeyword(&keyword)))
      value = keyword.str();
    else if (succeeded(parser.parseOptionalLSquare())) {
      if (parser.parseCommaSeparatedList(parseCount) || parser.parseRSquare())
        return failure();
      value += "]";
    } else if (succeeded(parser.parseInteger(integer)))
      value = std::to_string(integer);
    else
      return failure();
    return readNamedField(fields, name, value, [&] { return parser.emitError(fieldLoc); });
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseField))
    return {};
  return fields.getChecked(parser.getContext(), [&] { return parser.emitError(loc); });
}

void ScheduleAttr::print(AsmPrinter &printer) const {
  raw_ostream &os = printer.getStream();
  os << "<";
  bool first = true;
  ScheduleFields(*this).visit([&](StringRef name, auto &field) {
    if (!field)
      return;
    os << (first ? "" : ", ") << name << " = ";
    printField(os, *field);
    first = false;
  });
  os << ">";
}

FailureOr<ScheduleAttr> ScheduleAttr::parseText(MLIRContext *context, StringRef text,
                                                function_ref<InFlightDiagnostic()> emitError) {
  ScheduleFields fields;
  while (!text.empty()) {
    // Commas in a list do not separate fields.
    size_t open = text.find('['), end = text.find(',');
    if (open < end)
      end = text.find(',', text.find(']', open));
    StringRef item = text.take_front(end);
    text = text.drop_front(std::min(item.size() + 1, text.size()));
    if (item.empty())
      continue;
    auto [name, value] = item.split('=');
    if (failed(readNamedField(fields, name.trim(), value.trim(), emitError)))
      return failure();
  }
  ScheduleAttr attr = fields.getChecked(context, emitError);
  if (!attr)
    return failure();
  return attr;
}

ScheduleAttr ScheduleAttr::overriddenBy(ScheduleAttr other) const {
  ScheduleFields fields(*this), theirs(other);
  fields.visitWith(theirs, [](StringRef, auto &mine, const auto &given) {
    if (given)
      mine = given;
  });
  return fields.get(getContext());
}

bool ScheduleAttr::isComplete() const {
  bool complete = true;
  ScheduleFields(*this).visit([&](StringRef, auto &field) { complete &= field.has_value(); });
  return complete;
}
