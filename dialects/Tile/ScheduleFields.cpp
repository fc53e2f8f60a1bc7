//===- ScheduleFields.cpp - The fields of a schedule ----------------------===//
//
// Parser, printer and domains of #tile.schedule, for the fields that
// ScheduleFields.td declares.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/ScheduleFields.h"
#include "lib/Support/NearestNames.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera::tile;

std::optional<NumberList> NumberList::get(ArrayRef<int64_t> numbers) {
  if (numbers.empty() || numbers.size() > kMost)
    return std::nullopt;
  if (llvm::all_equal(numbers))
    return NumberList(numbers.front());
  NumberList list;
  list.size = numbers.size();
  llvm::copy(numbers, list.numbers.begin());
  return list;
}

std::optional<NumberList> NumberList::parse(StringRef text) {
  SmallVector<StringRef> items;
  if (text.consume_front("[")) {
    if (!text.consume_back("]"))
      return std::nullopt;
    text.split(items, ',');
  } else {
    items.push_back(text);
  }
  SmallVector<int64_t> numbers;
  for (StringRef item : items)
    if (item.trim().getAsInteger(10, numbers.emplace_back()))
      return std::nullopt;
  return get(numbers);
}

raw_ostream &tessera::tile::operator<<(raw_ostream &os, const NumberList &list) {
  ArrayRef<int64_t> numbers = list.getNumbers();
  if (numbers.size() == 1)
    return os << numbers.front();
  os << "[";
  llvm::interleaveComma(numbers, os);
  return os << "]";
}

//===----------------------------------------------------------------------===//
// Values as text
//===----------------------------------------------------------------------===//

static std::optional<bool> readValue(StringRef text, std::optional<bool>) {
  if (text == "true" || text == "false")
    return text == "true";
  return std::nullopt;
}
static std::optional<int64_t> readValue(StringRef text, std::optional<int64_t>) {
  int64_t value;
  return text.getAsInteger(10, value) ? std::nullopt : std::optional(value);
}
static std::optional<NumberList> readValue(StringRef text, std::optional<NumberList>) {
  return NumberList::parse(text);
}
template <typename Enum>
static std::optional<Enum> readValue(StringRef text, std::optional<Enum>) {
  return symbolizeEnum<Enum>(text);
}

static std::string printValue(bool value) { return value ? "true" : "false"; }
static std::string printValue(int64_t value) { return std::to_string(value); }
static std::string printValue(const NumberList &value) { return llvm::formatv("{0}", value); }
template <typename Enum>
static std::string printValue(Enum value) {
  return stringifyEnum(value).str();
}

/// The first part of `value` that is outside the domain of its field, as text; nothing when none
/// is.
template <typename T>
static std::optional<std::string> findOutside(const ScheduleFieldInfo &info, const T &value) {
  std::string text = printValue(value);
  return llvm::is_contained(info.values, text) ? std::nullopt : std::optional(text);
}
static std::optional<std::string> findOutside(const ScheduleFieldInfo &info,
                                              const NumberList &value) {
  for (int64_t number : value.getNumbers())
    if (std::optional<std::string> outside = findOutside(info, number))
      return outside;
  return std::nullopt;
}

/// Reads one `name = value` into `fields`.
static LogicalResult setNamedField(ScheduleFields &fields, StringRef name, StringRef value,
                                   function_ref<InFlightDiagnostic()> emitError) {
  const ScheduleFieldInfo *known = nullptr;
  bool isRead = false;
  fields.visit([&](const ScheduleFieldInfo &info, auto &field) {
    if (info.name != name)
      return;
    known = &info;
    field = readValue(value, field);
    isRead = field.has_value();
  });
  if (isRead)
    return success();
  if (known)
    return emitError() << "schedule field '" << name << "' takes " << known->expected << ", got '"
                       << value << "'";
  SmallVector<StringRef> names;
  for (const ScheduleFieldInfo &info : ScheduleAttr::getFieldInfos())
    names.push_back(info.name);
  InFlightDiagnostic diag = emitError() << "unknown schedule field '" << name << "'"
                                        << tessera::suggestNames(name, names) << "; known are ";
  llvm::interleaveComma(names, diag);
  return diag;
}

//===----------------------------------------------------------------------===//
// Older texts
//===----------------------------------------------------------------------===//

namespace {
/// Reads fields one after the other, of this version and of those before, which had `overlap` in
/// four fields, `producer`, `store`, `transpose`, `cluster` and `work` in two each, and what is no
/// choice any more.
class FieldReader {
public:
  LogicalResult read(StringRef name, StringRef value, function_ref<InFlightDiagnostic()> emitError);
  /// What was read, when all of it has been.
  FailureOr<ScheduleFields> finish(function_ref<InFlightDiagnostic()> emitError);

private:
  StringRef old(StringRef name) const {
    auto found = before.find(name);
    return found == before.end() ? StringRef() : StringRef(found->second);
  }
  std::optional<ProducerKind> convertProducer() const;
  std::optional<OverlapKind> convertOverlap() const;
  std::optional<int64_t> convertTranspose() const;
  std::optional<ClusterKind> convertCluster() const;

  ScheduleFields fields;
  llvm::StringMap<std::string> before; ///< fields of the versions before
};

/// A field of earlier versions that has one value now, and what to write in place of others.
struct FixedField {
  StringLiteral name, value, instead;
};
} // namespace

static constexpr FixedField kFixedFields[] = {
    {"split", "true", ", or compile with --no-split, which leaves masks in all iterations"},
    {"pdl", "false", ", or compile with --pdl"},
    {"operands", "registers", ": computed first operands of dots are in registers"},
    {"sums", "any", ", and write fixed_sums in the head of the kernel"}};

LogicalResult FieldReader::read(StringRef name, StringRef value,
                                function_ref<InFlightDiagnostic()> emitError) {
  // What follows from the program: no choice was measured with another number.
  if (int64_t number; name == "helper_registers" || name == "reducer_registers") {
    if (!value.getAsInteger(10, number))
      return success();
    return emitError() << "'" << name
                       << "' is no field of a schedule any more and took a number, not '" << value
                       << "'; leave it out: the program says what these roles need";
  }
  for (const FixedField &fixed : kFixedFields)
    if (name == fixed.name) {
      if (value == fixed.value)
        return success();
      return emitError() << "'" << name << "' is no field of a schedule any more; leave it out"
                         << fixed.instead;
    }
  bool isOld = llvm::is_contained({"warp_specialize", "loads", "lead", "rescale", "pack", "staging",
                                   "transposer_warps", "exchange", "pin_waits"},
                                  name) ||
               (name == "transpose" && (value == "own" || value == "apart"));
  if (!isOld)
    return setNamedField(fields, name, value, emitError);
  if (value.empty())
    return emitError() << "schedule field '" << name << "' has no value";
  before[name] = value.str();
  return success();
}

/// The value of `producer` that stands for `warp_specialize` and `loads`, if there is one.
std::optional<ProducerKind> FieldReader::convertProducer() const {
  StringRef specialized = old("warp_specialize"), loads = old("loads");
  bool isKnown = (specialized.empty() || specialized == "true" || specialized == "false") &&
                 (loads.empty() || loads == "direct" || loads == "pipe");
  if (fields.producer || !isKnown || (specialized == "false" && loads == "pipe"))
    return std::nullopt;
  return specialized == "false" ? ProducerKind::None
         : loads == "pipe"      ? ProducerKind::All
                                : ProducerKind::Operands;
}

/// The value of `overlap` that stands for `lead`, `rescale` and `pack` too, if there is one.
std::optional<OverlapKind> FieldReader::convertOverlap() const {
  auto isOpenOr = [&](StringRef name, StringRef value) {
    return old(name).empty() || old(name) == value;
  };
  if (fields.overlap == OverlapKind::One && isOpenOr("rescale", "before") &&
      isOpenOr("pack", "before"))
    return old("lead") == "1" ? OverlapKind::Lead : OverlapKind::One;
  if (fields.overlap == OverlapKind::Two && isOpenOr("lead", "0") && isOpenOr("pack", "after"))
    return old("rescale") == "before" ? OverlapKind::Scaled : OverlapKind::Two;
  if (fields.overlap == OverlapKind::Three && isOpenOr("lead", "1") &&
      isOpenOr("rescale", "after") && isOpenOr("pack", "after"))
    return OverlapKind::Three;
  return std::nullopt;
}

/// The value of `transpose` that stands for `transposer_warps` too, if there is one. A transposer
/// of an open number of warps is preferably a warpgroup.
std::optional<int64_t> FieldReader::convertTranspose() const {
  if (old("transpose") == "own")
    return 0;
  int64_t warps = 4;
  if (!old("transposer_warps").empty() && old("transposer_warps").getAsInteger(10, warps))
    return std::nullopt;
  return warps;
}

/// The value of `cluster` that stands for `exchange` too, if there is one.
std::optional<ClusterKind> FieldReader::convertCluster() const {
  if (old("exchange") == "0")
    return fields.cluster.value_or(ClusterKind::One);
  bool isPair = fields.cluster.value_or(ClusterKind::Two) == ClusterKind::Two;
  return old("exchange") == "1" && isPair ? std::optional(ClusterKind::Exchange) : std::nullopt;
}

FailureOr<ScheduleFields> FieldReader::finish(function_ref<InFlightDiagnostic()> emitError) {
  // That there is a producer, whatever it loads, is what an open field prefers.
  bool isOpen = old("warp_specialize") == "true" && old("loads").empty() && !fields.producer;
  if (!isOpen && (!old("warp_specialize").empty() || !old("loads").empty())) {
    fields.producer = convertProducer();
    if (!fields.producer)
      return emitError() << "'warp_specialize' and 'loads' are part of schedule field 'producer', "
                            "and this is none of its values; write producer = none, operands or "
                            "all";
  }
  if (!old("lead").empty() || !old("rescale").empty() || !old("pack").empty()) {
    fields.overlap = convertOverlap();
    if (!fields.overlap)
      return emitError()
             << "'lead', 'rescale' and 'pack' are part of schedule field 'overlap', and "
                "this is none of its values; write overlap = 1, 2, 3, lead or scaled";
  }
  if (!old("transpose").empty() || !old("transposer_warps").empty()) {
    fields.transpose = convertTranspose();
    if (!fields.transpose)
      return emitError() << "schedule field 'transpose' is the warps that transpose; write "
                            "transpose = 4, or 1 to 3 for warps beside the producer, or 0";
  }
  if (!old("exchange").empty()) {
    fields.cluster = convertCluster();
    if (!fields.cluster)
      return emitError() << "'exchange' is part of schedule field 'cluster', and this is none of "
                            "its values; write cluster = exchange, or 1, 2 or 4";
  }
  if (StringRef pins = old("pin_waits"); !pins.empty() && pins != "false") {
    if (pins != "true" || fields.work.value_or(WorkKind::tiles) != WorkKind::tiles)
      return emitError() << "'pin_waits' is part of schedule field 'work', and this is none of its "
                            "values; write work = pinned, or tiles";
    fields.work = WorkKind::pinned;
  }
  if (old("staging") == "shared")
    return emitError() << "'staging' is no field of a schedule any more; leave it out";
  return fields;
}

//===----------------------------------------------------------------------===//
// The struct
//===----------------------------------------------------------------------===//

ScheduleAttr ScheduleFields::get(MLIRContext *context) const {
  return ScheduleAttr::get(context, *this);
}

ScheduleAttr ScheduleFields::getChecked(MLIRContext *context,
                                        function_ref<InFlightDiagnostic()> emitError) const {
  return ScheduleAttr::getChecked(emitError, context, *this);
}

void ScheduleFields::setFixedDefaults() {
  visit([](const ScheduleFieldInfo &info, auto &field) {
    if (!field && !info.fixedDefault.empty())
      field = readValue(info.fixedDefault, field);
  });
}

void ScheduleFields::forEachSet(function_ref<void(StringRef, const std::string &)> take) const {
  ScheduleFields copy = *this;
  copy.visit([&](const ScheduleFieldInfo &info, auto &field) {
    if (field)
      take(info.name, printValue(*field));
  });
}

LogicalResult ScheduleFields::reportAbsent(Operation *op, ArrayRef<StringRef> absent) {
  if (absent.empty())
    return success();
  return op->emitError("has a schedule without ")
         << llvm::join(absent, ", ") << "; run tile-choose-schedule first";
}

std::string tessera::tile::printScheduleFields(ScheduleAttr schedule) {
  std::string text;
  schedule.getFields().forEachSet([&](StringRef name, const std::string &value) {
    text += llvm::formatv("{0}{1} = {2}", text.empty() ? "" : ", ", name, value);
  });
  return text;
}

//===----------------------------------------------------------------------===//
// The attribute
//===----------------------------------------------------------------------===//

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError, Fields fields) {
  LogicalResult result = success();
  fields.visit([&](const FieldInfo &info, auto &field) {
    if (failed(result) || !field)
      return;
    if (std::optional<std::string> outside = findOutside(info, *field))
      result = emitError() << "schedule field '" << info.name << "' is " << info.expected
                           << ", got " << *outside;
  });
  return result;
}

Attribute ScheduleAttr::parse(AsmParser &parser, Type) {
  FieldReader reader;
  SMLoc loc = parser.getCurrentLocation();
  auto parseField = [&]() -> ParseResult {
    SMLoc fieldLoc = parser.getCurrentLocation();
    StringRef name, keyword;
    std::string value;
    int64_t integer;
    if (parser.parseKeyword(&name) || parser.parseEqual())
      return failure();
    auto parseNumber = [&]() -> ParseResult {
      if (parser.parseInteger(integer))
        return failure();
      value += (value.empty() ? "[" : ",") + std::to_string(integer);
      return success();
    };
    // Keywords first: parseInteger would take `true` for a number.
    if (succeeded(parser.parseOptionalKeyword(&keyword)))
      value = keyword.str();
    else if (succeeded(parser.parseOptionalLSquare())) {
      if (parser.parseCommaSeparatedList(parseNumber) || parser.parseRSquare())
        return failure();
      value += "]";
    } else if (succeeded(parser.parseInteger(integer)))
      value = std::to_string(integer);
    else
      return failure();
    return reader.read(name, value, [&] { return parser.emitError(fieldLoc); });
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseField))
    return {};
  auto emitError = [&] { return parser.emitError(loc); };
  FailureOr<ScheduleFields> fields = reader.finish(emitError);
  return failed(fields) ? Attribute() : fields->getChecked(parser.getContext(), emitError);
}

void ScheduleAttr::print(AsmPrinter &printer) const {
  printer << "<" << printScheduleFields(*this) << ">";
}

FailureOr<ScheduleAttr> ScheduleAttr::parseText(MLIRContext *context, StringRef text,
                                                function_ref<InFlightDiagnostic()> emitError) {
  // As an error shows what would work.
  if (text = text.trim(); text.consume_front("#tile.schedule<") && !text.consume_back(">"))
    return emitError() << "expected '>' at the end of #tile.schedule<...>";
  FieldReader reader;
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
    if (failed(reader.read(name.trim(), value.trim(), emitError)))
      return failure();
  }
  FailureOr<ScheduleFields> fields = reader.finish(emitError);
  if (failed(fields))
    return failure();
  ScheduleAttr attr = fields->getChecked(context, emitError);
  if (!attr)
    return failure();
  return attr;
}

ScheduleAttr ScheduleAttr::overriddenBy(ScheduleAttr other) const {
  ScheduleFields fields = getFields(), theirs = other.getFields();
  fields.visitWith(theirs, [](const FieldInfo &, auto &mine, const auto &given) {
    if (given)
      mine = given;
  });
  return fields.get(getContext());
}
