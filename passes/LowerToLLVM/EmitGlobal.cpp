//===- EmitGlobal.cpp - Global memory from registers ----------------------===//
//
// Tiles that do not go through shared memory: each thread loads and stores its own
// elements, or adds them, guarded by the view's extents; several at once by EmitUnits.cpp.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/LoadedIndex.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "passes/Analysis/IndexFacts.h"
#include "passes/Analysis/TileLayout.h"
#include "passes/LowerToLLVM/GlobalAccess.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>
#include <numeric>

using namespace mlir;
using namespace tessera;
using hop::FragmentLayout;

/// The number of elements between neighbours along `dim`, i64.
Value Emitter::strideOf(Value view, int64_t dim) {
  if (dim == cast<tile::ViewType>(view.getType()).getRank() - 1)
    return i64(1);
  return function.getArgument(
      parameters.position(LaunchParameter::Stride, cast<BlockArgument>(view).getArgNumber(), dim));
}

/// The address of element 0 of `view` at its `outer` indices.
Value Emitter::outerAddress(Value view, ValueRange outer) {
  return placeAddress(view, llvm::map_to_vector(outer, [&](Value index) { return scalar(index); }));
}

/// The same of indices that are lowered, of a scalar or of an element.
Value Emitter::placeAddress(Value view, ArrayRef<Value> outer) {
  Value offset = i64(0);
  for (auto [dim, index] : llvm::enumerate(outer)) {
    Value wide = index.getType().isInteger(64)
                     ? index
                     : LLVM::ZExtOp::create(builder, loc, builder.getI64Type(), index);
    offset = add(offset, LLVM::MulOp::create(builder, loc, wide, strideOf(view, dim)));
  }
  Value base = function.getArgument(
      parameters.position(LaunchParameter::Pointer, cast<BlockArgument>(view).getArgNumber()));
  Type element = lowered(cast<tile::ViewType>(view.getType()).getElementType());
  return LLVM::GEPOp::create(builder, loc, base.getType(), element, base, offset);
}

/// The extent of dimension `dim`, i32.
Value Emitter::extentOf(tile::ViewType view, int64_t dim) {
  if (view.getStaticDim(dim) != ShapedType::kDynamic)
    return i32(view.getStaticDim(dim));
  return function.getArgument(parameters.dimPosition(view.getDimName(dim)));
}

/// i1: those of the `outer` indices that come from memory lie inside the view; none where there are
/// no such.
Value Emitter::outerInside(tile::ViewType view, ValueRange outer) {
  Value inside;
  for (auto [dim, index] : llvm::enumerate(outer))
    if (tile::comesFromMemory(index)) {
      Value test = isBelow(scalar(index), extentOf(view, dim));
      inside = inside ? Value(LLVM::AndOp::create(builder, loc, inside, test)) : test;
    }
  return inside;
}

/// i1: 0 <= index < extent. An index before the view's start is a large unsigned number.
Value Emitter::isBelow(Value index, Value extent) {
  if (index.getType() != extent.getType())
    extent = LLVM::ZExtOp::create(builder, loc, index.getType(), extent);
  return LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ult, index, extent);
}

/// Whether numbers name the rows that it moves.
template <typename AccessOp>
static constexpr bool movesNamedRows =
    llvm::is_one_of<AccessOp, tile::GatherOp, tile::ScatterOp, hop::GatherOp>::value;

template <typename AccessOp>
Emitter::Access Emitter::makeAccess(AccessOp op, RankedTensorType type) {
  Value view = op.getView();
  ValueRange indices = op.getIndices();
  auto viewType = cast<tile::ViewType>(view.getType());
  int64_t rank = viewType.getRank(), outer = rank - type.getRank();
  if constexpr (movesNamedRows<AccessOp>)
    outer = op.getFirstNumberedDim();
  auto extent = [&](int64_t dim) { return extentOf(viewType, dim); };
  Access access;
  access.element = lowered(viewType.getElementType());
  access.elementBytes = viewType.getElementBytes();
  access.unitBytes = directBytes(viewType, type.getRank());
  access.outerInside = outerInside(viewType, indices.take_front(outer));
  access.pointer = outerAddress(view, indices.take_front(outer));
  hop::LayoutAttr layout = hop::getLayout(type);
  if (type.getRank() == 2) {
    access.rowStride = strideOf(view, rank - 2);
    access.row = scalar(indices[rank - 2]);
    auto row = indices[rank - 2].getDefiningOp<tile::RowOp>();
    access.rows = row ? scalar(row.getEnd()) : extent(rank - 2);
    access.threadRow = firstPlace(layout, 0);
  }
  access.column = scalar(indices[rank - 1]);
  access.columns = extent(rank - 1);
  access.threadColumn = firstPlace(layout, type.getRank() - 1);
  if constexpr (movesNamedRows<AccessOp>) {
    setNamed(access, type, view, indices, op.getRows());
  } else {
    tile::TileBox box(viewType, type, op.getBox());
    for (int64_t dim = box.getLastRowDim(); dim > box.getFirstRowDim(); --dim) {
      access.periods.push_back(box.getExtent(dim));
      access.strides.push_back(strideOf(view, dim - 1));
    }
  }
  bool hasColumns = access.row || (access.periods.empty() && access.named.empty());
  access.columnsInside =
      hasColumns && liesInside(op, viewType, rank - 1, indices[rank - 1], type.getShape().back());
  return access;
}

template Emitter::Access Emitter::makeAccess(hop::GatherOp, RankedTensorType);

/// The place of each of this thread's rows: 64 bits hold the sum of any two of 32. `numbers` are
/// along as many dimensions of `view`, the last of which is that of rows.
void Emitter::setNamed(Access &access, RankedTensorType type, Value view, ValueRange indices,
                       ValueRange numbers) {
  FragmentLayout layout(type);
  auto viewType = cast<tile::ViewType>(view.getType());
  auto wide = [&](Value value) -> Value {
    return value.getType().isInteger(64)
               ? value
               : LLVM::SExtOp::create(builder, loc, builder.getI64Type(), value);
  };
  int64_t rowDim = viewType.getRank() - type.getRank();
  for (auto [i, ofDim] : llvm::enumerate(numbers)) {
    int64_t dim = rowDim + 1 - static_cast<int64_t>(numbers.size() - i);
    Value first = wide(scalar(indices[dim]));
    const Values rows = elements(ofDim);
    llvm::SmallDenseSet<int64_t> known;
    for (int64_t element = 0; element < layout.size(); ++element) {
      if (!known.insert(layout.offset(element, 0)).second)
        continue;
      NamedRow &row = access.named[layout.offset(element, 0)];
      Value place = add(first, wide(rows[layout.sliceIndex(element, 0)]));
      if (dim == rowDim) {
        row.number = place;
        continue;
      }
      Value distance = LLVM::MulOp::create(builder, loc, place, strideOf(view, dim));
      row.outer = row.outer ? add(row.outer, distance) : distance;
      Value inside = isBelow(place, extentOf(viewType, dim));
      row.inside =
          row.inside ? Value(LLVM::AndOp::create(builder, loc, row.inside, inside)) : inside;
    }
  }
}

/// The place of the element that lies so many rows and columns from this thread's first.
Emitter::Place Emitter::placeOf(const Access &access, int64_t rowOffset, int64_t columnOffset) {
  Place place;
  if (!access.named.empty()) {
    const NamedRow row = access.named.lookup(access.row ? rowOffset : columnOffset);
    place.row = access.row ? row.number : Value();
    place.column =
        access.row ? add(add(access.column, access.threadColumn), columnOffset) : row.number;
    place.outer = row.outer;
    place.inside = row.inside;
    return place;
  }
  if (access.row)
    place.row = add(add(access.row, access.threadRow), rowOffset);
  place.column = add(add(access.column, access.threadColumn), columnOffset);
  if (access.periods.empty())
    return place;
  // The digits of the row's number within the tile are the rows along each dimension.
  Value number =
      access.row ? add(access.threadRow, rowOffset) : add(access.threadColumn, columnOffset);
  auto takeDigit = [&](size_t i, Value digit) {
    if (i == 0) {
      (access.row ? place.row : place.column) = add(access.row ? access.row : access.column, digit);
      return;
    }
    Value wide = LLVM::ZExtOp::create(builder, loc, builder.getI64Type(), digit);
    Value distance = LLVM::MulOp::create(builder, loc, wide, access.strides[i - 1]);
    place.outer = place.outer ? add(place.outer, distance) : distance;
  };
  tile::splitRow<Value>(
      number, access.periods, [&](Value rest, int64_t period) { return divideBy(rest, period); },
      takeDigit);
  return place;
}

Value Emitter::addressOf(const Access &access, const Place &place) {
  Value offset = place.outer ? place.outer : i64(0);
  auto wide = [&](Value index) -> Value {
    return index.getType().isInteger(64)
               ? index
               : LLVM::SExtOp::create(builder, loc, builder.getI64Type(), index);
  };
  if (place.row)
    offset = add(offset, LLVM::MulOp::create(builder, loc, wide(place.row), access.rowStride));
  if (place.column)
    offset = add(offset, wide(place.column));
  return LLVM::GEPOp::create(builder, loc, access.pointer.getType(), access.element, access.pointer,
                             offset);
}

/// i32: the place lies inside of the view; null where nothing has to be asked.
Value Emitter::inBounds(const Access &access, const Place &place) {
  Value inside = access.outerInside;
  auto require = [&](Value test) {
    inside = inside ? Value(LLVM::AndOp::create(builder, loc, inside, test)) : test;
  };
  auto check = [&](Value index, Value extent) { require(isBelow(index, extent)); };
  if (place.inside)
    require(place.inside);
  if (place.row)
    check(place.row, access.rows);
  if (place.column && !access.columnsInside)
    check(place.column, access.columns);
  return inside ? toI32(inside) : Value();
}

/// The element of `type` in the register of an ElementMove, and the register for an element.
Value Emitter::fromRegister(Value bits, Type type) {
  if (type.getIntOrFloatBitWidth() < bits.getType().getIntOrFloatBitWidth())
    bits = LLVM::TruncOp::create(builder, loc, builder.getIntegerType(type.getIntOrFloatBitWidth()),
                                 bits);
  return LLVM::BitcastOp::create(builder, loc, type, bits);
}
Value Emitter::toRegister(Value element, Type type) {
  unsigned bits = element.getType().getIntOrFloatBitWidth();
  if (bits < type.getIntOrFloatBitWidth()) {
    Value integer = LLVM::BitcastOp::create(builder, loc, builder.getIntegerType(bits), element);
    return LLVM::ZExtOp::create(builder, loc, type, integer);
  }
  return element.getType() == type ? element
                                   : Value(LLVM::BitcastOp::create(builder, loc, type, element));
}

/// Every thread loads the element; the volatile assembly keeps its place among the stores.
LogicalResult Emitter::emitScalarLoad(tile::LoadOp op) {
  auto view = cast<tile::ViewType>(op.getView().getType());
  ElementMove move(builder, view.getElementBytes());
  Value address = outerAddress(op.getView(), op.getIndices());
  Value inside = outerInside(view, op.getIndices());
  Value bits = loadGuarded(move.suffix, move.constraint, move.type, address,
                           inside ? toI32(inside) : Value());
  bind(op, {fromRegister(bits, op.getType())});
  return success();
}

/// What lies at `address`, or 0 where `inside` is 0; null where nothing has to be asked.
Value Emitter::loadGuarded(StringRef suffix, StringRef constraint, Type type, Value address,
                           Value inside) {
  if (!inside)
    return assembly(("ld.global." + suffix + " $0, [$1];").str(), ("=" + constraint + ",l").str(),
                    address, type)
        .front();
  std::string text = llvm::formatv("{{\n.reg .pred p;\nsetp.ne.b32 p, $2, 0;\nmov.b{0} $0, 0;\n@p "
                                   "ld.global.{1} $0, [$1];\n}",
                                   type.getIntOrFloatBitWidth(), suffix);
  return assembly(text, ("=" + constraint + ",l,r").str(), {address, inside}, type).front();
}

LogicalResult Emitter::emitLoad(tile::LoadOp op) {
  if (!isa<RankedTensorType>(op.getType()))
    return emitScalarLoad(op);
  return emitTileLoad(op);
}

LogicalResult Emitter::emitGather(tile::GatherOp op) { return emitTileLoad(op); }

Emitter::ElementPlaces Emitter::placesOf(Value view, ValueRange indices) {
  ElementPlaces places{view, {}, {}};
  for (auto [dim, index] : llvm::enumerate(indices)) {
    bool differs = isa<RankedTensorType>(index.getType());
    places.ofAll.push_back(differs ? Value() : scalar(index));
    if (!differs && tile::comesFromMemory(index))
      places.insideOfAll = checkPlace(places, places.insideOfAll, places.ofAll.back(), dim);
  }
  return places;
}

/// The indices of a thread's elements, by dimension; none where an index is the same for all.
SmallVector<Emitter::Values> Emitter::indicesOfElements(ValueRange indices) {
  return llvm::map_to_vector(indices, [&](Value index) {
    return isa<RankedTensorType>(index.getType()) ? elements(index) : Values();
  });
}

/// `inside`, which may be null, and whether `index` lies inside of dimension `dim`.
Value Emitter::checkPlace(const ElementPlaces &places, Value inside, Value index, size_t dim) {
  Value test = isBelow(index, extentOf(cast<tile::ViewType>(places.view.getType()), dim));
  return inside ? Value(LLVM::AndOp::create(builder, loc, inside, test)) : test;
}

/// The address of the element with these indices where they differ, by dimension, and i1: it lies
/// inside of the view.
std::pair<Value, Value> Emitter::placeOf(const ElementPlaces &places,
                                         function_ref<Value(size_t)> indexOf) {
  Values place = places.ofAll;
  Value inside = places.insideOfAll;
  for (auto [dim, index] : llvm::enumerate(place))
    if (!index) {
      index = indexOf(dim);
      inside = checkPlace(places, inside, index, dim);
    }
  return {placeAddress(places.view, place), inside};
}

/// By how much the indices of element `i` differ from those that all elements have in common.
/// Nothing where these are not known to be one value plus a constant each.
std::optional<SmallVector<int64_t>> Emitter::offsetsOf(ValueRange indices, int64_t i) {
  SmallVector<int64_t> offsets;
  for (Value index : indices) {
    if (!isa<RankedTensorType>(index.getType()))
      continue;
    auto affine = affineTiles.find(index);
    if (affine == affineTiles.end())
      return std::nullopt;
    offsets.push_back(affine->second.offsets[i]);
  }
  return offsets;
}

/// The element of a view with these indices where they differ, by dimension; 0 where that is
/// outside.
Value Emitter::loadElement(tile::GatherElementsOp op, const ElementPlaces &places,
                           function_ref<Value(size_t)> indexOf) {
  auto view = cast<tile::ViewType>(op.getView().getType());
  ElementMove move(builder, view.getElementBytes());
  auto [address, inside] = placeOf(places, indexOf);
  return fromRegister(loadGuarded(move.suffix, move.constraint, move.type, address, toI32(inside)),
                      lowered(view.getElementType()));
}

/// One load an element, from wherever its indices say; 0 where that is outside of the view.
/// Elements at one place, as those of rows and columns with the same difference, have one load.
void Emitter::emitGatherElements(tile::GatherElementsOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  if (emitWindows(op))
    return;
  ElementPlaces places = placesOf(op.getView(), op.getIndices());
  SmallVector<Values> indices = indicesOfElements(op.getIndices());
  Values results;
  std::map<SmallVector<int64_t>, Value> loaded;
  for (int64_t i = 0, count = FragmentLayout(type).size(); i < count; ++i) {
    std::optional<SmallVector<int64_t>> offsets = offsetsOf(op.getIndices(), i);
    if (auto known = offsets ? loaded.find(*offsets) : loaded.end(); known != loaded.end()) {
      results.push_back(known->second);
      continue;
    }
    results.push_back(loadElement(op, places, [&](size_t dim) { return indices[dim][i]; }));
    if (offsets)
      loaded.emplace(*offsets, results.back());
  }
  if (!loaded.empty() && loaded.size() < results.size())
    op.emitRemark("elements at one place are loaded once: a thread has ")
        << results.size() << " of " << loaded.size();
  bind(op, hop::isPacked(type) ? joinWords(results) : results);
}

template <typename LoadOp>
LogicalResult Emitter::emitTileLoad(LoadOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  Access access = makeAccess(op, type);
  int64_t unit = access.unitBytes / access.elementBytes;
  bool hasUnits = hop::getLayout(type).getRun() % unit == 0 && movesUnits(access, op, unit);
  bind(op, hasUnits ? loadUnits(access, type) : loadElements(access, type));
  return success();
}

/// One load an element: bounds may fall between two neighbours.
Emitter::Values Emitter::loadElements(const Access &access, RankedTensorType type) {
  FragmentLayout layout(type);
  ElementMove move(builder, access.elementBytes);
  Values results;
  for (int64_t i = 0; i < layout.size(); ++i) {
    Place place = placeOf(access, type.getRank() == 2 ? layout.offset(i, 0) : 0,
                          layout.offset(i, type.getRank() - 1));
    Value inside = inBounds(access, place);
    Value loaded =
        loadGuarded(move.suffix, move.constraint, move.type, addressOf(access, place), inside);
    results.push_back(fromRegister(loaded, access.element));
  }
  return hop::isPacked(type) ? joinWords(results) : results;
}

/// Elements as 32-bit registers: several of them in one, or one of 64 bits in two.
Emitter::Values Emitter::joinWords(ValueRange elements) {
  Values words;
  Type i32Type = builder.getI32Type();
  int64_t bits = elements.front().getType().getIntOrFloatBitWidth();
  if (bits >= 32) {
    for (Value element : elements)
      llvm::append_range(words, bitcastElements(element, i32Type, bits / 32));
    return words;
  }
  for (size_t i = 0, count = 32 / bits; i < elements.size(); i += count) {
    Value vector = undef(VectorType::get(count, elements[i].getType()));
    for (size_t j = 0; j < count; ++j)
      vector = LLVM::InsertElementOp::create(builder, loc, vector, elements[i + j], i32(j));
    words.push_back(LLVM::BitcastOp::create(builder, loc, i32Type, vector));
  }
  return words;
}

/// `value` as so many values of `type`.
Emitter::Values Emitter::bitcastElements(Value value, Type type, int64_t count) {
  if (count == 1)
    return {LLVM::BitcastOp::create(builder, loc, type, value)};
  Value vector = LLVM::BitcastOp::create(builder, loc, VectorType::get(count, type), value);
  Values parts;
  for (int64_t i = 0; i < count; ++i)
    parts.push_back(LLVM::ExtractElementOp::create(builder, loc, vector, i32(i)));
  return parts;
}

/// The elements that `joinWords` made `words` of.
Emitter::Values Emitter::splitWords(ValueRange words, Type element) {
  Values elements;
  int64_t bits = element.getIntOrFloatBitWidth();
  for (size_t i = 0, step = std::max<int64_t>(bits / 32, 1); i < words.size(); i += step) {
    Value word = words[i];
    if (step == 2) {
      word = undef(VectorType::get(2, word.getType()));
      for (int64_t j = 0; j < 2; ++j)
        word = LLVM::InsertElementOp::create(builder, loc, word, words[i + j], i32(j));
    }
    llvm::append_range(elements, bitcastElements(word, element, std::max<int64_t>(32 / bits, 1)));
  }
  return elements;
}

/// What is known of the columns of a tile that is moved in units.
void Emitter::setColumns(Access &access, Value view, Value column) {
  auto viewType = cast<tile::ViewType>(view.getType());
  int64_t columns = viewType.getStaticDim(viewType.getRank() - 1);
  access.columnsStarted = isNonNegative(column);
  access.unitsWhole = columns != ShapedType::kDynamic && columns % access.unit == 0;
}

/// Whether a tile whose threads have `unit` neighbours is moved by so many at once, and what is
/// known of the units then. Where it is not, or by less than 16 bytes, a remark says why.
template <typename AccessOp>
bool Emitter::movesUnits(Access &access, AccessOp op, int64_t unit) {
  bool stores = tile::storesToView(op);
  StringRef does = stores ? "stores" : "loads";
  // Neighbours in the tile that are none in the view.
  if (!access.row && !(access.periods.empty() && access.named.empty()))
    return false;
  auto view = cast<tile::ViewType>(op.getView().getType());
  int64_t columns = view.getStaticDim(view.getRank() - 1);
  // Rows of any length start anywhere.
  if (columns == ShapedType::kDynamic && access.unitBytes < hopper::widestAccess)
    return false;
  if (access.unitBytes < hopper::widestAccess)
    op.emitRemark(does) << " " << access.unitBytes << " bytes at a time: rows of " << columns
                        << " elements of " << view.getElementType() << " are no multiple of "
                        << hopper::widestAccess << " bytes";
  int64_t bytes = unit * access.elementBytes;
  if (bytes < std::min(access.unitBytes, kLeastUnitBytes) || bytes < hopper::registerBytes)
    return false;
  access.unit = unit;
  Value column = op.getIndices().back();
  if (!isMultipleOf(column, unit)) {
    op.emitRemark(does) << " single elements: its first column is not known to be a multiple of "
                        << unit;
    return false;
  }
  setColumns(access, op.getView(), column);
  return true;
}

/// One thread of the role stores the element.
LogicalResult Emitter::emitScalarStore(tile::StoreOp op) {
  auto view = cast<tile::ViewType>(op.getView().getType());
  ElementMove move(builder, view.getElementBytes());
  Value isFirst =
      LLVM::AndOp::create(builder, loc, thread.isLeader,
                          toI32(LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq,
                                                     thread.amongTiles, i32(0))));
  if (Value inside = outerInside(view, op.getIndices()))
    isFirst = LLVM::AndOp::create(builder, loc, isFirst, toI32(inside));
  assembly("{\n.reg .pred p;\nsetp.ne.b32 p, $2, 0;\n@p " +
               writeText(op.getAdd(), 1, 8 * view.getElementBytes()) + " [$0], $1;\n}",
           ("l," + move.constraint + ",r").str(),
           {outerAddress(op.getView(), op.getIndices()),
            toRegister(scalar(op.getValue()), move.type), isFirst},
           {});
  return success();
}

LogicalResult Emitter::emitStore(tile::StoreOp op) {
  if (!isa<RankedTensorType>(op.getValue().getType()))
    return emitScalarStore(op);
  return emitTileStore(op, op.getAdd());
}

LogicalResult Emitter::emitScatter(tile::ScatterOp op) { return emitTileStore(op, /*adds=*/false); }

template <typename StoreOp>
LogicalResult Emitter::emitTileStore(StoreOp op, bool adds) {
  auto type = cast<RankedTensorType>(op.getValue().getType());
  Access access = makeAccess(op, type);
  access.adds = adds;
  hop::LayoutAttr layout = hop::getLayout(type);
  bool exchanges = (layout.isAccumulator() || layout.isByteAccumulator()) && hop::isPacked(type) &&
                   access.unitBytes == hopper::widestAccess &&
                   type.getDimSize(1) * access.elementBytes % kQuadBytes == 0;
  int64_t widest = access.unitBytes / access.elementBytes;
  if (!movesUnits(access, op, exchanges ? widest : std::gcd(layout.getRun(), widest)))
    storeElements(access, op.getValue());
  else if (exchanges)
    storePackedRows(access, op.getValue());
  else
    storeUnits(access, op.getValue());
  return success();
}

void Emitter::storeElements(const Access &access, Value stored) {
  auto type = cast<RankedTensorType>(stored.getType());
  FragmentLayout layout(type);
  ElementMove move(builder, access.elementBytes);
  Values values = elements(stored);
  if (hop::isPacked(type))
    values = splitWords(values, builder.getIntegerType(8 * access.elementBytes));
  // Several threads hold an element of a tile of rank 1: one of them stores.
  Value mayStore;
  if (type.getRank() == 1)
    mayStore = toI32(LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq,
                                          sharerOf(layout.getLayoutAttr()), i32(0)));
  for (int64_t i = 0; i < layout.size(); ++i) {
    Place place = placeOf(access, type.getRank() == 2 ? layout.offset(i, 0) : 0,
                          layout.offset(i, type.getRank() - 1));
    Value inside = inBounds(access, place);
    if (mayStore)
      inside = inside ? LLVM::AndOp::create(builder, loc, inside, mayStore) : mayStore;
    if (!inside)
      inside = i32(1);
    assembly("{\n.reg .pred p;\nsetp.ne.b32 p, $2, 0;\n@p " +
                 writeText(access.adds, 1, 8 * access.elementBytes) + " [$0], $1;\n}",
             ("l," + move.constraint + ",r").str(),
             {addressOf(access, place), toRegister(values[i], move.type), inside}, {});
  }
}
