//===- Layout.cpp - Layouts of tiles in registers -------------------------===//
//
// The attribute #hop.layout: its text, its rules and what follows from its digits.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/Hop.h"
#include "dialects/Hop/Machine.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::hop;

//===----------------------------------------------------------------------===//
// The layouts that have names
//===----------------------------------------------------------------------===//

LayoutAttr LayoutAttr::getAccumulator(MLIRContext *context) {
  constexpr int64_t lanesPerColumn = hopper::warpThreads / hopper::lanesPerRow,
                    warpRows = hopper::mmaRows / 4;
  const LayoutDigit registers[] = {{2, {0, 1}}, {2, {lanesPerColumn, 0}}},
                    lanes[] = {{hopper::lanesPerRow, {0, 2}}, {lanesPerColumn, {1, 0}}},
                    warps[] = {{4, {warpRows, 0}}};
  return get(context, 2, registers, lanes, warps, {}, /*partial=*/false);
}

/// The digits of the registers of four bytes, of the lanes of a row and of its rows as wgmma has
/// them for A, and for the elements of an accumulator.
static LayoutAttr getByteLayout(MLIRContext *context, ArrayRef<LayoutDigit> registers,
                                int64_t laneColumns) {
  constexpr int64_t lanesPerColumn = hopper::warpThreads / hopper::lanesPerRow;
  const LayoutDigit lanes[] = {{hopper::lanesPerRow, {0, laneColumns}}, {lanesPerColumn, {1, 0}}},
                    warps[] = {{4, {hopper::mmaRows / 4, 0}}};
  return LayoutAttr::get(context, 2, registers, lanes, warps, {}, /*partial=*/false);
}

LayoutAttr LayoutAttr::getByteOperand(MLIRContext *context) {
  return getByteLayout(context, {{4, {0, 1}}, {2, {8, 0}}, {2, {0, 16}}}, /*laneColumns=*/4);
}

LayoutAttr LayoutAttr::getByteAccumulator(MLIRContext *context) {
  return getByteLayout(context, {{2, {0, 1}}, {2, {0, 8}}, {2, {8, 0}}, {2, {0, 16}}},
                       /*laneColumns=*/2);
}

LayoutAttr LayoutAttr::getRowPairs(MLIRContext *context) {
  constexpr int64_t lanesPerColumn = hopper::warpThreads / hopper::lanesPerRow;
  const LayoutDigit registers[] = {{2, {0, 1}}, {2, {1, 0}}},
                    lanes[] = {{hopper::lanesPerRow, {0, 2}}, {lanesPerColumn, {2, 0}}},
                    warps[] = {{4, {hopper::mmaRows / 4, 0}}};
  return get(context, 2, registers, lanes, warps, {}, /*partial=*/false);
}

/// The layouts that are spelled by a name.
static SmallVector<std::pair<StringLiteral, LayoutAttr>> namedLayouts(MLIRContext *context) {
  LayoutAttr accumulator = LayoutAttr::getAccumulator(context), row = accumulator.getSlice(0);
  return {{"accumulator", accumulator},
          {"row", row},
          {"row_partial", row.withPartial(true)},
          {"column", accumulator.getSlice(1)},
          {"row_pairs", LayoutAttr::getRowPairs(context)},
          {"operand8", LayoutAttr::getByteOperand(context)},
          {"accumulator8", LayoutAttr::getByteAccumulator(context)}};
}

//===----------------------------------------------------------------------===//
// What follows from the digits
//===----------------------------------------------------------------------===//

/// `digits` as they move along `axis` alone. Registers that do not move hold one element less;
/// threads that do not move hold the same elements.
static SmallVector<LayoutDigit> sliceDigits(ArrayRef<LayoutDigit> digits, int64_t axis,
                                            bool keepsUnmoved) {
  SmallVector<LayoutDigit> slice;
  for (const LayoutDigit &digit : digits)
    if (keepsUnmoved || digit.moves(axis))
      slice.push_back({digit.extent, {digit.steps[axis], 0}});
  return slice;
}

LayoutAttr LayoutAttr::getSlice(int64_t axis) const {
  return get(getContext(), 1, sliceDigits(getRegisters(), axis, /*keepsUnmoved=*/false),
             sliceDigits(getLanes(), axis, true), sliceDigits(getWarps(), axis, true),
             sliceDigits(getWarpgroups(), axis, true), /*partial=*/false);
}

LayoutAttr LayoutAttr::withPartial(bool partial) const {
  return get(getContext(), getRank(), getRegisters(), getLanes(), getWarps(), getWarpgroups(),
             partial);
}

int64_t LayoutAttr::getExtent(int64_t axis) const {
  int64_t extent = 1;
  for (ArrayRef<LayoutDigit> digits : {getRegisters(), getLanes(), getWarps(), getWarpgroups()})
    for (const LayoutDigit &digit : digits)
      if (digit.moves(axis))
        extent *= digit.extent;
  return extent;
}

int64_t LayoutAttr::getRun() const {
  int64_t run = 1;
  for (const LayoutDigit &digit : getRegisters()) {
    if (digit.steps[getRank() - 1] != run)
      break;
    run *= digit.extent;
  }
  return run;
}

int64_t LayoutAttr::getWarpParts() const {
  int64_t parts = 1;
  for (ArrayRef<LayoutDigit> digits : {getWarps(), getWarpgroups()})
    for (const LayoutDigit &digit : digits)
      if (!digit.moves(0))
        parts *= digit.extent;
  return parts;
}

int64_t LayoutAttr::getBlockParts(int64_t warpgroups) const {
  int64_t parts = 1, count = 1;
  for (const LayoutDigit &digit : getWarpgroups()) {
    if (count >= warpgroups && !digit.moves(0))
      parts *= digit.extent;
    count *= digit.extent;
  }
  return parts;
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

static int64_t countOf(ArrayRef<LayoutDigit> digits) {
  int64_t count = 1;
  for (const LayoutDigit &digit : digits)
    count *= digit.extent;
  return count;
}

/// Checks the digits that move along `axis`: in the order of their steps each step is what the
/// digits before it span.
static LogicalResult verifyAxis(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<LayoutDigit> digits, int64_t axis) {
  SmallVector<LayoutDigit> moving;
  llvm::copy_if(digits, std::back_inserter(moving),
                [&](const LayoutDigit &digit) { return digit.moves(axis); });
  llvm::sort(moving, [&](const LayoutDigit &a, const LayoutDigit &b) {
    return a.steps[axis] < b.steps[axis];
  });
  int64_t span = 1;
  for (const LayoutDigit &digit : moving) {
    if (digit.steps[axis] != span)
      return emitError() << "the digits of a layout reach each place once; along axis " << axis
                         << " a step of " << digit.steps[axis] << " follows digits that span "
                         << span;
    span *= digit.extent;
  }
  return success();
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rank,
                                 ArrayRef<LayoutDigit> registers, ArrayRef<LayoutDigit> lanes,
                                 ArrayRef<LayoutDigit> warps, ArrayRef<LayoutDigit> warpgroups,
                                 bool partial) {
  SmallVector<LayoutDigit> all;
  for (ArrayRef<LayoutDigit> digits : {registers, lanes, warps, warpgroups})
    llvm::append_range(all, digits);
  constexpr int64_t most = 4096; // beyond any thread's registers, or the tile of a block
  if (rank < 1 || rank > 2 || (partial && rank == 2))
    return emitError() << "a layout is of rank 1 or 2, and partial only of rank 1";
  for (const LayoutDigit &digit : all) {
    bool isSmall = digit.extent >= 2 && digit.extent <= most &&
                   llvm::all_of(digit.steps, [&](int64_t step) { return step >= 0; });
    if (!isSmall)
      return emitError() << "a digit of a layout has 2 to " << most
                         << " values and steps of 0 or more, got " << digit.extent << " values";
    if (digit.moves(0) && digit.moves(1))
      return emitError() << "a digit of a layout moves along one axis, got steps ("
                         << digit.steps[0] << ", " << digit.steps[1] << ")";
  }
  for (const LayoutDigit &digit : registers)
    if (!digit.moves(0) && !digit.moves(1))
      return emitError() << "each digit of the registers moves to another element";
  for (const LayoutDigit &digit : all)
    if (rank == 2 && !digit.moves(0) && !digit.moves(1))
      return emitError() << "each digit moves to another element of a tile of rank 2";
  if (all.size() > 16 || countOf(lanes) != hopper::warpThreads ||
      countOf(warps) != hopper::warpgroupThreads / hopper::warpThreads)
    return emitError() << "the digits of a layout make up 32 lanes and 4 warps, got "
                       << countOf(lanes) << " and " << countOf(warps);
  for (int64_t axis = 0; axis < rank; ++axis)
    if (failed(verifyAxis(emitError, all, axis)))
      return failure();
  return success();
}

LogicalResult LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                         function_ref<InFlightDiagnostic()> emitError) const {
  bool fits = static_cast<int64_t>(shape.size()) == getRank() && elementType.isIntOrFloat();
  for (auto [axis, extent] : llvm::enumerate(shape))
    fits = fits && extent > 0 && extent % getExtent(axis) == 0;
  if (fits)
    return success();
  InFlightDiagnostic error = emitError();
  error << "the layout " << *this << " is of ";
  if (getRank() == 2)
    return error << "rank 2, with multiples of " << getExtent(0) << " rows and " << getExtent(1)
                 << " columns of integers or floats";
  return error << "rank 1, with a multiple of " << getExtent(0)
               << " elements that are integers or floats";
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// `4:(0, 2)`, or `4:2` of rank 1, to which `rank` is set by the first digit.
static ParseResult parseDigit(AsmParser &parser, int64_t &rank, LayoutDigit &digit) {
  digit.steps = {0, 0};
  if (parser.parseInteger(digit.extent) || parser.parseColon())
    return failure();
  SMLoc loc = parser.getCurrentLocation();
  int64_t axes = 1;
  if (succeeded(parser.parseOptionalLParen())) {
    axes = 2;
    if (parser.parseInteger(digit.steps[0]) || parser.parseComma() ||
        parser.parseInteger(digit.steps[1]) || parser.parseRParen())
      return failure();
  } else if (parser.parseInteger(digit.steps[0])) {
    return failure();
  }
  if (rank && rank != axes)
    return parser.emitError(loc, "the digits of a layout have as many steps, got ")
           << axes << " after " << rank;
  rank = axes;
  return success();
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<LayoutDigit> lists[4];
  constexpr StringLiteral names[] = {"registers", "lanes", "warps", "warpgroups"};
  int64_t rank = 0;
  bool partial = false;
  LayoutAttr named;
  auto parseDigits = [&](SmallVectorImpl<LayoutDigit> &digits) {
    return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
      return parseDigit(parser, rank, digits.emplace_back());
    });
  };
  auto parseOne = [&]() -> ParseResult {
    SMLoc place = parser.getCurrentLocation();
    StringRef word;
    if (parser.parseKeyword(&word))
      return failure();
    for (auto [name, layout] : namedLayouts(parser.getContext()))
      if (name == word)
        return named = layout, success();
    if (word == "partial")
      return partial = true, success();
    const auto *found = llvm::find(names, word);
    if (found == std::end(names))
      return parser.emitError(place, "expected registers, lanes, warps or warpgroups, partial, or "
                                     "accumulator, row, row_partial, column, row_pairs, operand8 "
                                     "or accumulator8");
    return failure(parser.parseEqual() || parseDigits(lists[found - std::begin(names)]));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseOne))
    return {};
  if (named)
    return named;
  // The constructor that verifies takes exactly these types.
  auto digits = [&](size_t i) { return ArrayRef<LayoutDigit>(lists[i]); };
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), rank, digits(0),
                    digits(1), digits(2), digits(3), partial);
}

void LayoutAttr::print(AsmPrinter &printer) const {
  for (auto [name, layout] : namedLayouts(getContext()))
    if (layout == *this) {
      printer << "<" << name << ">";
      return;
    }
  printer << "<";
  StringRef separator = "";
  auto printDigits = [&](StringRef name, ArrayRef<LayoutDigit> digits) {
    if (digits.empty())
      return;
    printer << separator << name << " = [";
    separator = ", ";
    llvm::interleaveComma(digits, printer.getStream(), [&](const LayoutDigit &digit) {
      printer << digit.extent << ":";
      if (getRank() == 1)
        printer << digit.steps[0];
      else
        printer << "(" << digit.steps[0] << ", " << digit.steps[1] << ")";
    });
    printer << "]";
  };
  printDigits("registers", getRegisters());
  printDigits("lanes", getLanes());
  printDigits("warps", getWarps());
  printDigits("warpgroups", getWarpgroups());
  printer << (getPartial() ? ", partial>" : ">");
}

LayoutAttr hop::getLayout(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<LayoutAttr>(tensor.getEncoding()) : LayoutAttr();
}

RankedTensorType hop::withLayout(RankedTensorType type, LayoutAttr layout) {
  return RankedTensorType::get(type.getShape(), type.getElementType(), layout);
}

Type hop::wholeOf(Type type) {
  LayoutAttr layout = getLayout(type);
  return layout ? withLayout(cast<RankedTensorType>(type), layout.withPartial(false)) : type;
}
