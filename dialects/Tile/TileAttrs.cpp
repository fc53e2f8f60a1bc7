//===- TileAttrs.cpp - Attributes of the tile dialect ---------------------===//

#include "dialects/Tile/Tile.h"
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

namespace {
/// The fields of a schedule while they are being read, and the one place that knows their names.
struct ScheduleFields {
  std::optional<bool> warpSpecialize;
  std::optional<int64_t> consumers, stages, overlap;
  std::optional<bool> pingpong, split;
  std::optional<StoreKind> store;
  std::optional<int64_t> producerRegisters, consumerRegisters;

  ScheduleFields() = default;
  explicit ScheduleFields(ScheduleAttr attr)
      : warpSpecialize(attr.getWarpSpecialize()), consumers(attr.getConsumers()),
        stages(attr.getStages()), overlap(attr.getOverlap()), pingpong(attr.getPingpong()),
        split(attr.getSplit()), store(attr.getStore()),
        producerRegisters(attr.getProducerRegisters()),
        consumerRegisters(attr.getConsumerRegisters()) {}

  /// Calls `visit(name, field)` for every field, in the order in which they print.
  template <typename Visitor> void visit(Visitor &&visit) {
    visit("warp_specialize", warpSpecialize);
    visit("consumers", consumers);
    visit("stages", stages);
    visit("overlap", overlap);
    visit("pingpong", pingpong);
    visit("split", split);
    visit("store", store);
    visit("producer_registers", producerRegisters);
    visit("consumer_registers", consumerRegisters);
  }

  ScheduleAttr get(MLIRContext *context, function_ref<InFlightDiagnostic()> emitError) {
    return ScheduleAttr::getChecked(emitError, context, warpSpecialize, consumers, stages, overlap,
                                    pingpong, split, store, producerRegisters, consumerRegisters);
  }
};

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
StringRef readField(std::optional<StoreKind> &field, StringRef text) {
  field = symbolizeStoreKind(text);
  return field ? StringRef() : "direct or tma";
}

void printField(raw_ostream &os, bool value) { os << (value ? "true" : "false"); }
void printField(raw_ostream &os, int64_t value) { os << value; }
void printField(raw_ostream &os, StoreKind value) { os << stringifyStoreKind(value); }

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

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   std::optional<bool> warpSpecialize,
                                   std::optional<int64_t> consumers, std::optional<int64_t> stages,
                                   std::optional<int64_t> overlap, std::optional<bool> pingpong,
                                   std::optional<bool> split, std::optional<StoreKind> store,
                                   std::optional<int64_t> producerRegisters,
                                   std::optional<int64_t> consumerRegisters) {
  auto inRange = [&](StringRef name, std::optional<int64_t> value, int64_t low,
                     int64_t high) -> LogicalResult {
    if (value && (*value < low || *value > high))
      return emitError() << "schedule field '" << name << "' is " << low << " to " << high
                         << ", got " << *value;
    return success();
  };
  if (failed(inRange("consumers", consumers, 1, 4)) || failed(inRange("stages", stages, 1, 8)) ||
      failed(inRange("overlap", overlap, 1, 2)))
    return failure();
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
    // Keywords first: parseInteger would take `true` for a number.
    if (succeeded(parser.parseOptionalKeyword(&keyword)))
      value = keyword.str();
    else if (succeeded(parser.parseInteger(integer)))
      value = std::to_string(integer);
    else
      return failure();
    return readNamedField(fields, name, value, [&] { return parser.emitError(fieldLoc); });
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseField))
    return {};
  return fields.get(parser.getContext(), [&] { return parser.emitError(loc); });
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
  SmallVector<StringRef> items;
  text.split(items, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef item : items) {
    auto [name, value] = item.split('=');
    if (failed(readNamedField(fields, name.trim(), value.trim(), emitError)))
      return failure();
  }
  ScheduleAttr attr = fields.get(context, emitError);
  if (!attr)
    return failure();
  return attr;
}

ScheduleAttr ScheduleAttr::overriddenBy(ScheduleAttr other) const {
  auto pick = [](auto mine, auto theirs) { return theirs ? theirs : mine; };
  return get(getContext(), pick(getWarpSpecialize(), other.getWarpSpecialize()),
             pick(getConsumers(), other.getConsumers()), pick(getStages(), other.getStages()),
             pick(getOverlap(), other.getOverlap()), pick(getPingpong(), other.getPingpong()),
             pick(getSplit(), other.getSplit()), pick(getStore(), other.getStore()),
             pick(getProducerRegisters(), other.getProducerRegisters()),
             pick(getConsumerRegisters(), other.getConsumerRegisters()));
}

bool ScheduleAttr::isComplete() const {
  bool complete = true;
  ScheduleFields(*this).visit([&](StringRef, auto &field) { complete &= field.has_value(); });
  return complete;
}
