//===- EmitGlobal.cpp - Global memory from registers ----------------------===//
//
// Tiles that do not go through shared memory: each thread loads and stores its own
// elements, or adds them, guarded by the view's extents. Where a layout gives it
// neighbours, up to 16 bytes are moved at once. 16-bit accumulators are exchanged within quads
// before they are stored, so that a thread has 16 bytes of one row.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/Machine.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "passes/Analysis/IndexFacts.h"
#include "passes/LowerToLLVM/Emitter.h"
#include "llvm/Support/FormatVariadic.h"
#include <numeric>

using namespace mlir;
using namespace tessera;
using hop::FragmentLayout;

/// Elements of 16 bits that a thread stores at once.
static constexpr int64_t kUnit = hopper::widestAccess / 2;
/// A unit of neighbours is two registers or four.
static constexpr int64_t kLeastUnitBytes = 8;
/// Columns that the lanes of a row of an accumulator store at once.
static constexpr int64_t kQuadColumns = hopper::lanesPerRow * kUnit;

/// Where a tile lies in a view.
struct Emitter::Access {
  Value pointer;       ///< element 0 of the view's row 0, at the outer indices
  Value rowStride;     ///< in elements, i64; none for rank-1 tiles
  Value row, column;   ///< the tile's first row and column, i32; a rank-1 tile has only the latter
  Value rows, columns; ///< extents, i32
  /// This thread's first row and column within the tile, i32.
  Value threadRow, threadColumn;
  /// What is known of a tile whose rows are moved in units of 16 bytes: none of its columns is
  /// outside the view; none is before its first; none of its units has the last one in its midst.
  bool columnsInside = false, columnsStarted = false, unitsWhole = false;
  int64_t unit = 1;  ///< elements that a thread moves at once
  bool adds = false; ///< to what the view holds
  int64_t elementBytes;
  Type element;
  /// Of a box whose rows (elements, of a rank-1 tile) run over several dimensions of the view: the
  /// extents of all but the first of them, and the strides of all but the last, from the inside
  /// out.
  SmallVector<int64_t> periods;
  Values strides;
};

/// A place in a view: its row and column there, i32, of which a rank-1 tile has only one, and the
/// distance from Access::pointer along outer dimensions of a box, i64, if it has such.
struct Emitter::Place {
  Value row, column, outer;
};

/// The number of elements between neighbours along `dim`, i64.
Value Emitter::strideOf(Value view, int64_t dim) {
  if (dim == cast<tile::ViewType>(view.getType()).getRank() - 1)
    return i64(1);
  return function.getArgument(
      parameters.position(LaunchParameter::Stride, cast<BlockArgument>(view).getArgNumber(), dim));
}

/// The address of element 0 of `view` at its `outer` indices.
Value Emitter::outerAddress(Value view, ValueRange outer) {
  Value offset = i64(0);
  for (auto [dim, index] : llvm::enumerate(outer)) {
    Value wide = LLVM::ZExtOp::create(builder, loc, builder.getI64Type(), scalar(index));
    offset = add(offset, LLVM::MulOp::create(builder, loc, wide, strideOf(view, dim)));
  }
  Value base = function.getArgument(
      parameters.position(LaunchParameter::Pointer, cast<BlockArgument>(view).getArgNumber()));
  Type element = cast<tile::ViewType>(view.getType()).getElementType();
  return LLVM::GEPOp::create(builder, loc, base.getType(), element, base, offset);
}

template <typename AccessOp>
Emitter::Access Emitter::makeAccess(AccessOp op, RankedTensorType type) {
  Value view = op.getView();
  ValueRange indices = op.getIndices();
  auto viewType = cast<tile::ViewType>(view.getType());
  int64_t rank = viewType.getRank(), outer = rank - type.getRank();
  auto extent = [&](int64_t dim) -> Value {
    if (viewType.getStaticDim(dim) != ShapedType::kDynamic)
      return i32(viewType.getStaticDim(dim));
    return function.getArgument(parameters.dimPosition(viewType.getDimName(dim)));
  };
  Access access;
  access.element = viewType.getElementType();
  access.elementBytes = viewType.getElementBytes();
  access.pointer = outerAddress(view, indices.take_front(outer));
  hop::LayoutAttr layout = hop::getLayout(type);
  if (type.getRank() == 2) {
    access.rowStride = strideOf(view, rank - 2);
    access.row = scalar(indices[rank - 2]);
    access.rows = extent(rank - 2);
    access.threadRow = firstPlace(layout, 0);
  }
  access.column = scalar(indices[rank - 1]);
  access.columns = extent(rank - 1);
  access.threadColumn = firstPlace(layout, type.getRank() - 1);
  tile::TileBox box(viewType, type, op.getBox());
  for (int64_t dim = box.getLastRowDim(); dim > box.getFirstRowDim(); --dim) {
    access.periods.push_back(box.getExtent(dim));
    access.strides.push_back(strideOf(view, dim - 1));
  }
  return access;
}

/// The place of the element that lies so many rows and columns from this thread's first.
Emitter::Place Emitter::placeOf(const Access &access, int64_t rowOffset, int64_t columnOffset) {
  Place place;
  if (access.row)
    place.row = add(add(access.row, access.threadRow), rowOffset);
  place.column = add(add(access.column, access.threadColumn), columnOffset);
  if (access.periods.empty())
    return place;
  // The digits of the row's number within the tile are the rows along each dimension.
  Value rest =
      access.row ? add(access.threadRow, rowOffset) : add(access.threadColumn, columnOffset);
  auto takeDigit = [&](int64_t period) -> Value {
    Value digit = LLVM::URemOp::create(builder, loc, rest, i32(period));
    rest = LLVM::UDivOp::create(builder, loc, rest, i32(period));
    return digit;
  };
  (access.row ? place.row : place.column) =
      add(access.row ? access.row : access.column, takeDigit(access.periods.front()));
  for (auto [i, stride] : llvm::enumerate(access.strides)) {
    Value digit = i + 1 < access.periods.size() ? takeDigit(access.periods[i + 1]) : rest;
    Value wide = LLVM::ZExtOp::create(builder, loc, builder.getI64Type(), digit);
    Value distance = LLVM::MulOp::create(builder, loc, wide, stride);
    place.outer = place.outer ? add(place.outer, distance) : distance;
  }
  return place;
}

Value Emitter::addressOf(const Access &access, const Place &place) {
  Value offset = place.outer ? place.outer : i64(0);
  if (place.row) {
    Value wide = LLVM::SExtOp::create(builder, loc, builder.getI64Type(), place.row);
    offset = add(offset, LLVM::MulOp::create(builder, loc, wide, access.rowStride));
  }
  if (place.column)
    offset = add(offset, LLVM::SExtOp::create(builder, loc, builder.getI64Type(), place.column));
  return LLVM::GEPOp::create(builder, loc, access.pointer.getType(), access.element, access.pointer,
                             offset);
}

Value Emitter::inBounds(const Access &access, const Place &place) {
  Value inside;
  auto check = [&](Value index, Value extent) {
    // Unsigned: an index before the view's start is outside too.
    Value test = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ult, index, extent);
    inside = inside ? Value(LLVM::AndOp::create(builder, loc, inside, test)) : test;
  };
  if (place.row)
    check(place.row, access.rows);
  if (place.column)
    check(place.column, access.columns);
  return toI32(inside);
}

/// Every thread loads the element; the volatile assembly keeps its place among the stores.
LogicalResult Emitter::emitScalarLoad(tile::LoadOp op) {
  bool half = op.getType().getIntOrFloatBitWidth() == 16;
  Value bits = assembly(half ? "ld.global.b16 $0, [$1];" : "ld.global.b32 $0, [$1];",
                        half ? "=h,l" : "=r,l", outerAddress(op.getView(), op.getIndices()),
                        TypeRange(half ? builder.getI16Type() : builder.getI32Type()))
                   .front();
  bind(op, {LLVM::BitcastOp::create(builder, loc, op.getType(), bits)});
  return success();
}

LogicalResult Emitter::emitLoad(tile::LoadOp op) {
  if (!isa<RankedTensorType>(op.getType()))
    return emitScalarLoad(op);
  auto type = cast<RankedTensorType>(op.getType());
  Access access = makeAccess(op, type);
  int64_t unit = hopper::widestAccess / access.elementBytes;
  bool hasUnits = hop::getLayout(type).getRun() % unit == 0 && movesUnits(access, op, unit);
  bind(op, hasUnits ? loadUnits(access, type) : loadElements(access, type));
  return success();
}

/// One load an element: bounds may fall between two neighbours.
Emitter::Values Emitter::loadElements(const Access &access, RankedTensorType type) {
  FragmentLayout layout(type);
  bool half = access.elementBytes == 2;
  Values results;
  for (int64_t i = 0; i < layout.size(); ++i) {
    Place place = placeOf(access, type.getRank() == 2 ? layout.offset(i, 0) : 0,
                          layout.offset(i, type.getRank() - 1));
    Value inside = inBounds(access, place);
    Value address = addressOf(access, place);
    Value loaded = assembly(half ? "{\n.reg .pred p;\nsetp.ne.b32 p, $2, 0;\nmov.b16 $0, 0;\n@p "
                                   "ld.global.b16 $0, [$1];\n}"
                                 : "{\n.reg .pred p;\nsetp.ne.b32 p, $2, 0;\nmov.b32 $0, 0;\n@p "
                                   "ld.global.b32 $0, [$1];\n}",
                            half ? "=h,l,r" : "=r,l,r", {address, inside},
                            TypeRange(half ? builder.getI16Type() : builder.getI32Type()))
                       .front();
    results.push_back(LLVM::BitcastOp::create(builder, loc, type.getElementType(), loaded));
  }
  return hop::isPacked(type) ? joinWords(results) : results;
}

/// Pairs of 16-bit elements as 32-bit registers.
Emitter::Values Emitter::joinWords(ValueRange elements) {
  Values words;
  for (size_t i = 0; i < elements.size(); i += 2) {
    Value vector = undef(VectorType::get(2, elements[i].getType()));
    vector = LLVM::InsertElementOp::create(builder, loc, vector, elements[i], i32(0));
    vector = LLVM::InsertElementOp::create(builder, loc, vector, elements[i + 1], i32(1));
    words.push_back(LLVM::BitcastOp::create(builder, loc, builder.getI32Type(), vector));
  }
  return words;
}

/// The two 16-bit elements of each of `words`.
Emitter::Values Emitter::splitWords(ValueRange words, Type element) {
  Values halves;
  auto pair = VectorType::get(2, element);
  for (Value word : words) {
    Value vector = LLVM::BitcastOp::create(builder, loc, pair, word);
    for (int64_t i = 0; i < 2; ++i)
      halves.push_back(LLVM::ExtractElementOp::create(builder, loc, vector, i32(i)));
  }
  return halves;
}

/// Whether a tile whose threads have `unit` neighbours can be moved by so many, and what is known
/// of the units then.
template <typename AccessOp>
bool Emitter::movesUnits(Access &access, AccessOp op, int64_t unit) {
  if (!access.row && !access.periods.empty()) // neighbours in the tile are none in the view
    return false;
  access.unit = unit;
  Value column = op.getIndices().back();
  if (!isMultipleOf(column, unit)) {
    op.emitRemark(isa<tile::LoadOp>(op) ? "loads" : "stores")
        << " single elements: its first column is not known to be a multiple of " << unit;
    return false;
  }
  auto view = cast<tile::ViewType>(op.getView().getType());
  int64_t columns = view.getStaticDim(view.getRank() - 1);
  std::optional<int64_t> first = getConstantIntValue(column);
  auto type = cast<RankedTensorType>(isa<tile::LoadOp>(op) ? op->getResult(0).getType()
                                                           : op->getOperand(0).getType());
  access.columnsStarted = isNonNegative(column);
  access.unitsWhole = columns != ShapedType::kDynamic && columns % unit == 0;
  access.columnsInside = columns != ShapedType::kDynamic && first && *first >= 0 &&
                         *first <= columns - type.getShape().back();
  return true;
}

LogicalResult Emitter::emitStore(tile::StoreOp op) {
  auto type = cast<RankedTensorType>(op.getValue().getType());
  Access access = makeAccess(op, type);
  access.adds = op.getAdd();
  hop::LayoutAttr layout = hop::getLayout(type);
  int64_t widest = hopper::widestAccess / access.elementBytes;
  bool exchanges =
      layout.isAccumulator() && hop::isPacked(type) && type.getDimSize(1) % kQuadColumns == 0;
  int64_t unit = exchanges ? widest : std::gcd(layout.getRun(), widest);
  bool hasNeighbours = unit * access.elementBytes >= kLeastUnitBytes;
  if ((!exchanges && !hasNeighbours) || !movesUnits(access, op, unit))
    storeElements(access, op);
  else if (exchanges)
    storePackedRows(access, op);
  else
    storeUnits(access, op);
  return success();
}

//===----------------------------------------------------------------------===//
// Units of neighbours
//===----------------------------------------------------------------------===//

/// Neighbours in a row that a thread moves at once.
struct Emitter::Unit {
  int64_t element; ///< the first of its elements, of the thread's
  Value row;       ///< i64: the address of the thread's first element of the row
  int64_t offset;  ///< of the unit from there, in bytes
  Value whole;     ///< i32: all of it is in the view
  Value partial;   ///< i32: some of it is; none where that cannot be
  Value left;      ///< i32: how many of its elements and those behind it are
};

/// Visits the units of a tile, row by row. What units of a row have in common is computed once.
void Emitter::forEachUnit(const Access &access, RankedTensorType type,
                          function_ref<void(const Unit &)> visit) {
  FragmentLayout layout(type);
  int64_t count = access.unit, columnAxis = type.getRank() - 1;
  auto isTrue = [&](LLVM::ICmpPredicate predicate, Value a, Value b) {
    return toI32(LLVM::ICmpOp::create(builder, loc, predicate, a, b));
  };
  auto both = [&](Value a, Value b) -> Value { return LLVM::AndOp::create(builder, loc, a, b); };
  struct Row {
    Value address, inside;
  };
  llvm::SmallDenseMap<int64_t, Row> rows;
  Place start = placeOf(access, 0, 0);
  Value left = LLVM::SubOp::create(builder, loc, access.columns, start.column);
  for (int64_t i = 0; i < layout.size(); i += count) {
    int64_t rowOffset = access.row ? layout.offset(i, 0) : 0,
            columnOffset = layout.offset(i, columnAxis);
    auto [entry, isNew] = rows.try_emplace(rowOffset);
    Row &row = entry->second;
    if (isNew) {
      Place place = placeOf(access, rowOffset, 0);
      row.address = addressOf(access, place);
      row.inside = place.row ? isTrue(LLVM::ICmpPredicate::ult, place.row, access.rows) : i32(1);
    }
    Unit unit{i, row.address, columnOffset * access.elementBytes, row.inside, {}, {}};
    if (!access.columnsStarted) // what is before the first column are whole units
      unit.whole = both(unit.whole,
                        isTrue(LLVM::ICmpPredicate::sge, add(start.column, columnOffset), i32(0)));
    if (!access.columnsInside) {
      Value started = unit.whole;
      unit.whole = both(started, isTrue(LLVM::ICmpPredicate::sge, left, i32(columnOffset + count)));
      if (!access.unitsWhole) {
        unit.partial = both(started, LLVM::XOrOp::create(builder, loc, unit.whole, i32(1)));
        unit.left = add(left, -columnOffset);
      }
    }
    visit(unit);
  }
}

/// Loads of the elements of a partial unit at operand 4, each in a register of its own or half of
/// one.
static std::string loadPartialUnit(int64_t offset, int64_t elementBytes) {
  std::string text = "setp.ne.b32 p, $6, 0;\n";
  for (int64_t i = 0; i < hopper::widestAccess / elementBytes; ++i) {
    bool isHalf = elementBytes == 2;
    int64_t word = i * elementBytes / 4;
    if (isHalf && i % 2 == 0)
      text += llvm::formatv("mov.b32 {{lo, hi}, ${0};\n", word);
    std::string target = !isHalf ? llvm::formatv("${0}", word).str() : i % 2 ? "hi" : "lo";
    text += llvm::formatv("setp.gt.and.s32 q, $7, {0}, p;\n@q ld.global.b{1} {2}, [$4+{3}];\n", i,
                          8 * elementBytes, target, offset + elementBytes * i);
    if (isHalf && i % 2)
      text += llvm::formatv("mov.b32 ${0}, {{lo, hi};\n", word);
  }
  return text;
}

Emitter::Values Emitter::loadUnits(const Access &access, RankedTensorType type) {
  Values words;
  SmallVector<Type> results(4, builder.getI32Type());
  forEachUnit(access, type, [&](const Unit &unit) {
    std::string text = "{\n.reg .pred p, q;\n.reg .b16 lo, hi;\nsetp.ne.b32 p, $5, 0;\n";
    for (int64_t i = 0; i < 4; ++i)
      text += llvm::formatv("mov.b32 ${0}, 0;\n", i);
    text += llvm::formatv("@p ld.global.v4.b32 {{$0, $1, $2, $3}, [$4+{0}];\n", unit.offset);
    Values operands = {unit.row, unit.whole};
    if (unit.partial) {
      text += loadPartialUnit(unit.offset, access.elementBytes);
      operands.append({unit.partial, unit.left});
    }
    llvm::append_range(words, assembly(text + "}",
                                       unit.partial ? "=r,=r,=r,=r,l,r,r,r" : "=r,=r,=r,=r,l,r",
                                       operands, results));
  });
  if (hop::isPacked(type))
    return words;
  if (access.elementBytes == 2)
    return splitWords(words, type.getElementType());
  for (Value &word : words)
    word = LLVM::BitcastOp::create(builder, loc, type.getElementType(), word);
  return words;
}

void Emitter::storeUnits(const Access &access, tile::StoreOp op) {
  auto type = cast<RankedTensorType>(op.getValue().getType());
  Values words = elements(op.getValue());
  if (access.elementBytes == 2 && !hop::isPacked(type))
    words = joinWords(words);
  else if (access.elementBytes == 4)
    for (Value &word : words)
      word = LLVM::BitcastOp::create(builder, loc, builder.getI32Type(), word);
  Value owner;
  if (type.getRank() == 1)
    owner = toI32(LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq,
                                       sharerOf(hop::getLayout(type)), i32(0)));
  forEachUnit(access, type, [&](const Unit &unit) {
    auto mine = [&](Value flag) -> Value {
      return owner ? Value(LLVM::AndOp::create(builder, loc, flag, owner)) : flag;
    };
    ArrayRef<Value> ofUnit = ArrayRef(words).slice(unit.element * access.elementBytes / 4,
                                                   access.unit * access.elementBytes / 4);
    storeUnit(access, unit.row, unit.offset, ofUnit, mine(unit.whole));
    if (unit.partial)
      storePartialUnit(access, unit.row, unit.offset, ofUnit, mine(unit.partial), unit.left);
  });
}

/// Exchanges 4x4 values within each quad: lane q gives units[j] to lane j and gets lane j's
/// units[q] as units[j].
void Emitter::transposeQuad(MutableArrayRef<Value> units) {
  for (int64_t distance : {1, 2}) {
    Value bit = LLVM::AndOp::create(builder, loc, thread.lane, i32(distance));
    Value isOdd = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, bit, i32(0));
    for (int64_t low : {0, 1, 2, 3}) {
      if (low & distance)
        continue;
      int64_t high = low | distance;
      auto select = [&](Value a, Value b) -> Value {
        return LLVM::SelectOp::create(builder, loc, isOdd, a, b);
      };
      Value sent = select(units[low], units[high]), kept = select(units[high], units[low]);
      Value got = shuffle("bfly", sent, i32(distance));
      units[low] = select(got, kept);
      units[high] = select(kept, got);
    }
  }
}

/// After the exchange lane q of a quad holds columns 8q..8q+7 of each kQuadColumns.
void Emitter::storePackedRows(const Access &access, tile::StoreOp op) {
  auto type = cast<RankedTensorType>(op.getValue().getType());
  int64_t columns = type.getDimSize(1), perBlock = columns / hopper::lanesPerRow;
  const Values packed = elements(op.getValue());
  Value laneColumn = add(access.column, mul(access.threadColumn, 4));
  for (int64_t half = 0; half < 2 * type.getDimSize(0) / hopper::mmaRows; ++half) {
    int64_t block = half / 2, parity = half % 2;
    Place place = placeOf(access, hopper::mmaRows * block + 8 * parity, 0);
    place.column = {};
    Value rowInside = inBounds(access, place);
    for (int64_t column = 0; column < columns; column += kQuadColumns) {
      SmallVector<Value> unit;
      for (int64_t j = 0; j < 4; ++j)
        unit.push_back(packed[block * perBlock + (column / 8 + j) * 2 + parity]);
      transposeQuad(unit);
      place.column = add(laneColumn, column);
      Value started = rowInside;
      if (!access.columnsStarted) { // what is before the first column are whole units
        Value test =
            LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::sge, place.column, i32(0));
        started = LLVM::AndOp::create(builder, loc, rowInside, toI32(test));
      }
      storeExchanged(access, place, started, unit);
    }
  }
}

/// What writes `elements` of `bits` bits each, or adds them, at a place that follows.
static std::string writeText(bool adds, int64_t elements, int64_t bits) {
  std::string vector = elements > 1 ? llvm::formatv(".v{0}", elements).str() : std::string();
  return adds ? llvm::formatv("red.relaxed.gpu.global.add{0}.f32", vector).str()
              : llvm::formatv("st.global{0}.b{1}", vector, bits).str();
}

/// Stores a unit at `address` + `offset`.
void Emitter::storeUnit(const Access &access, Value address, int64_t offset, ArrayRef<Value> unit,
                        Value whole) {
  std::string place = offset ? llvm::formatv("[$0+{0}]", offset).str() : "[$0]";
  std::string constraints = "l", list;
  Values operands = {address};
  for (auto [i, word] : llvm::enumerate(unit)) {
    list += llvm::formatv("{0}${1}", i ? ", " : "", i + 1);
    constraints += ",r";
    operands.push_back(word);
  }
  operands.push_back(whole);
  assembly("{\n.reg .pred p;\nsetp.ne.b32 p, $" + Twine(unit.size() + 1) + ", 0;\n@p " +
               writeText(access.adds, unit.size(), 32) + " " + place + ", {" + list + "};\n}",
           constraints + ",r", operands, {});
}

/// The last unit of a row: of its elements the first `left` are stored.
void Emitter::storePartialUnit(const Access &access, Value address, int64_t offset,
                               ArrayRef<Value> unit, Value partial, Value left) {
  size_t words = unit.size();
  int64_t bytes = access.elementBytes;
  std::string text = llvm::formatv(
      "{{\n.reg .pred p, q;\n.reg .b16 lo, hi;\nsetp.ne.b32 p, ${0}, 0;\n", words + 1);
  for (int64_t i = 0; i < access.unit; ++i) {
    bool isHalf = bytes == 2;
    int64_t word = 1 + i * bytes / 4;
    if (isHalf && i % 2 == 0)
      text += llvm::formatv("mov.b32 {{lo, hi}, ${0};\n", word);
    std::string source = !isHalf ? llvm::formatv("${0}", word).str() : i % 2 ? "hi" : "lo";
    text += llvm::formatv("setp.gt.and.s32 q, ${0}, {1}, p;\n@q {2} [$0+{3}], {4};\n", words + 2, i,
                          writeText(access.adds, 1, 8 * bytes), offset + bytes * i, source);
  }
  Values operands = {address};
  llvm::append_range(operands, unit);
  operands.append({partial, left});
  std::string constraints = "l";
  for (size_t i = 0; i < words + 2; ++i)
    constraints += ",r";
  assembly(text + "}", constraints, operands, {});
}

/// Stores 8 elements of an accumulator's row from `place`: at once where they are inside, else one
/// by one.
void Emitter::storeExchanged(const Access &access, const Place &place, Value rowInside,
                             ArrayRef<Value> unit) {
  Value address = addressOf(access, place);
  Value whole = rowInside;
  if (!access.columnsInside) {
    Value end = add(place.column, kUnit);
    Value fits = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::sle, end, access.columns);
    whole = LLVM::AndOp::create(builder, loc, rowInside, toI32(fits));
  }
  storeUnit(access, address, 0, unit, whole);
  if (access.columnsInside || access.unitsWhole)
    return;
  Value partial = LLVM::AndOp::create(builder, loc, rowInside,
                                      LLVM::XOrOp::create(builder, loc, whole, i32(1)));
  Value left = LLVM::SubOp::create(builder, loc, access.columns, place.column);
  storePartialUnit(access, address, 0, unit, partial, left);
}

void Emitter::storeElements(const Access &access, tile::StoreOp op) {
  auto type = cast<RankedTensorType>(op.getValue().getType());
  FragmentLayout layout(type);
  Values values = elements(op.getValue());
  if (hop::isPacked(type))
    values = splitWords(values, builder.getI16Type());
  // Several threads hold an element of a tile of rank 1: one of them stores.
  Value mayStore;
  if (type.getRank() == 1)
    mayStore = toI32(LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq,
                                          sharerOf(layout.getLayoutAttr()), i32(0)));
  bool half = access.elementBytes == 2;
  for (int64_t i = 0; i < layout.size(); ++i) {
    Place place = placeOf(access, type.getRank() == 2 ? layout.offset(i, 0) : 0,
                          layout.offset(i, type.getRank() - 1));
    Value inside = inBounds(access, place);
    if (mayStore)
      inside = LLVM::AndOp::create(builder, loc, inside, mayStore);
    Type bits = half ? builder.getI16Type() : builder.getI32Type();
    Value value = values[i].getType() == bits
                      ? values[i]
                      : Value(LLVM::BitcastOp::create(builder, loc, bits, values[i]));
    assembly("{\n.reg .pred p;\nsetp.ne.b32 p, $2, 0;\n@p " +
                 writeText(access.adds, 1, 8 * access.elementBytes) + " [$0], $1;\n}",
             half ? "l,h,r" : "l,r,r", {addressOf(access, place), value, inside}, {});
  }
}
