//===- TileHandlers.cpp - Operations of the tile dialect ------------------===//

#include "dialects/Tile/LoadedIndex.h"
#include "dialects/Tile/TileBox.h"
#include "lib/Interpreter/Engine.h"
#include "lib/Interpreter/MatrixProduct.h"
#include "lib/Support/Rounding.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>
#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// "(1, 0, 2)": the grid point of a linear index.
static std::string formatPoint(const Launch &launch, int64_t point) {
  std::string text = "(";
  for (auto [i, extent] : llvm::enumerate(launch.grid)) {
    text += (i ? ", " : "") + std::to_string(point % extent);
    point /= extent;
  }
  return text + ")";
}

std::string interp::formatElement(ArrayRef<int64_t> shape, int64_t linear) {
  std::string text;
  for (size_t i = shape.size(); i-- > 0; linear /= shape[i])
    text = std::to_string(linear % shape[i]) + (text.empty() ? "" : ", ") + text;
  return "[" + text + "]";
}

/// Evaluates the indices of an access that covers `extents` elements; along all but the innermost
/// `tileRank` dimensions these must lie inside the view. Where one that comes from memory does not,
/// `isInside` becomes false.
static LogicalResult readIndices(Frame &frame, Operation *op, Value view, ValueRange operands,
                                 ArrayRef<int64_t> extents, int64_t tileRank,
                                 SmallVectorImpl<int64_t> &indices, bool &isInside) {
  const HostTensor &tensor = frame.view(view).getTensor();
  for (auto [i, operand] : llvm::enumerate(operands)) {
    // Of a tile of indices each element is looked at by itself.
    if (isa<RankedTensorType>(operand.getType())) {
      indices.push_back(0);
      continue;
    }
    int64_t index = frame.scalar(operand);
    indices.push_back(index);
    if (static_cast<int64_t>(i + tileRank) >= static_cast<int64_t>(operands.size()))
      continue;
    if ((index < 0 || index >= tensor.shape[i]) && tile::comesFromMemory(operand)) {
      isInside = false;
      continue;
    }
    if (index < 0 || index >= tensor.shape[i])
      return frame.fail(op, llvm::formatv("index {0} is {1} at grid point {2}, outside the extent "
                                          "{3} of dimension {0}; only the tile's own dimensions "
                                          "may reach outside the view",
                                          i, index, formatPoint(frame.program.launch, frame.point),
                                          tensor.shape[i]));
    if (extents[i] > tensor.shape[i] - index)
      return frame.fail(op, llvm::formatv("the box covers {0} elements from index {1} of dimension "
                                          "{2} at grid point {3}, past its extent {4}; only the "
                                          "innermost {5} may reach outside the view",
                                          extents[i], index, i,
                                          formatPoint(frame.program.launch, frame.point),
                                          tensor.shape[i], tileRank == 1 ? "dimension" : "two"));
  }
  return success();
}

static LogicalResult failConflict(Frame &frame, Operation *op, Value view,
                                  const Conflict &conflict) {
  const Launch &launch = frame.program.launch;
  tile::KernelOp kernel = frame.program.kernel;
  std::string element =
      "element " + formatElement(frame.view(view).getTensor().shape, conflict.linear) + " of '" +
      kernel.getArgumentName(cast<BlockArgument>(view).getArgNumber()).str() + "'";
  // Named in grid order, so that the message does not depend on which thread came first.
  auto [low, high] = std::minmax(frame.point, conflict.otherPoint);
  std::string mine = formatPoint(launch, frame.point);
  std::string other = conflict.otherPoint < 0 ? "others" : formatPoint(launch, conflict.otherPoint);
  std::string what;
  if (tile::loadsFromView(op))
    what = "grid point " + mine + " loads " + element + ", which " + other + " stores";
  else if (!conflict.otherStored)
    what = "grid point " + mine + " stores " + element + ", which " + other + " loaded";
  else
    what = "grid points " + formatPoint(launch, low) + " and " + formatPoint(launch, high) +
           " both store " + element;
  return frame.fail(op, what + "; grid points run in no particular order and may not communicate",
                    high);
}

/// The rows and columns of a scalar (one of each) or a tile of rank 1 (one row) or 2.
static std::pair<int64_t, int64_t> rowsAndColumns(ArrayRef<int64_t> shape) {
  return {shape.size() == 2 ? shape[0] : 1, shape.empty() ? 1 : shape.back()};
}

/// Cuts the box of `extents` at `indices` into the rectangles of its innermost dimensions, as many
/// as the tile has. Calls `visit(indices, first element of the tile)` until it returns a conflict.
template <typename Visitor>
static std::optional<Conflict> forEachRectangle(ArrayRef<int64_t> extents, int64_t tileRank,
                                                SmallVector<int64_t> indices, int64_t elements,
                                                Visitor visit) {
  ArrayRef<int64_t> outer = extents.drop_back(tileRank), inner = extents.take_back(tileRank);
  int64_t step =
      std::accumulate(inner.begin(), inner.end(), int64_t(1), std::multiplies<int64_t>());
  const SmallVector<int64_t> origin = indices;
  for (int64_t first = 0; first < elements; first += step) {
    int64_t rest = first / step;
    for (size_t dim = outer.size(); dim-- > 0; rest /= outer[dim])
      indices[dim] = origin[dim] + rest % outer[dim];
    if (auto conflict = visit(indices, first))
      return conflict;
  }
  return std::nullopt;
}

/// The extents of a box that moves a tile, or of an access to one element.
static SmallVector<int64_t> extentsOf(tile::ViewType view, RankedTensorType tile,
                                      std::optional<ArrayRef<int64_t>> box) {
  return tile ? llvm::to_vector(tile::TileBox(view, tile, box).getExtents())
              : SmallVector<int64_t>(view.getRank(), 1);
}

/// The rows of a tile, of so many, that are there: those before the end, where the rows have one.
static int64_t rowsBeforeEnd(Frame &frame, ValueRange indices, int64_t rows) {
  auto row =
      indices.size() < 2 ? tile::RowOp() : indices.drop_back().back().getDefiningOp<tile::RowOp>();
  if (!row)
    return rows;
  return std::clamp<int64_t>(frame.scalar(row.getEnd()) - frame.scalar(row.getRow()), 0, rows);
}

static LogicalResult runRow(Frame &frame, Operation *op) {
  auto row = cast<tile::RowOp>(op);
  int64_t place = frame.scalar(row.getRow()), end = frame.scalar(row.getEnd());
  if (place < 0 || end < 0)
    return frame.fail(op,
                      llvm::formatv("row {0} below {1} at grid point {2}; neither is below 0",
                                    place, end, formatPoint(frame.program.launch, frame.point)));
  frame.set(row.getResult(), Ints{place});
  return success();
}

/// Gives `result`, of either kind, elements of `view` as its tensor has them.
static void setLoaded(Frame &frame, Value result, Value view, Floats elements) {
  if (isa<FloatType>(getElementTypeOrSelf(result.getType())))
    return frame.set(result, std::move(elements));
  if (!frame.view(view).getTensor().holdsIntegers)
    return frame.set(result, Ints(elements.begin(), elements.end()));
  Ints integers(elements.size());
  llvm::transform(elements, integers.begin(), llvm::bit_cast<int64_t, double>);
  frame.set(result, std::move(integers));
}

static LogicalResult runLoad(Frame &frame, Operation *op) {
  auto load = cast<tile::LoadOp>(op);
  auto tile = dyn_cast<RankedTensorType>(load.getType());
  int64_t tileRank = tile ? tile.getRank() : 0;
  SmallVector<int64_t> extents = extentsOf(load.getView().getType(), tile, load.getBox()), indices;
  bool isInside = true;
  if (failed(readIndices(frame, op, load.getView(), load.getIndices(), extents, tileRank, indices,
                         isInside)))
    return failure();
  Floats out(elementCount(load.getType()));
  if (!isInside) {
    setLoaded(frame, load.getResult(), load.getView(), std::move(out));
    return success();
  }
  auto [rows, columns] = rowsAndColumns(ArrayRef(extents).take_back(tileRank));
  if (tileRank == 2)
    rows = rowsBeforeEnd(frame, load.getIndices(), rows);
  auto conflict = forEachRectangle(
      extents, tileRank, indices, out.size(),
      [&, rows = rows, columns = columns](ArrayRef<int64_t> at, int64_t first) {
        return frame.view(load.getView())
            .load(frame.point, at, tileRank == 2, rows, columns, out.data() + first);
      });
  if (conflict)
    return failConflict(frame, op, load.getView(), *conflict);
  setLoaded(frame, load.getResult(), load.getView(), std::move(out));
  return success();
}

/// Calls `visit` with the number and the place of each row of `shape` that the numbers of `op` name
/// inside of its view. A failure, or what `visit` says of a conflict.
template <typename AccessOp>
static LogicalResult
forEachNamedRow(Frame &frame, AccessOp op, ArrayRef<int64_t> shape,
                function_ref<std::optional<Conflict>(size_t, ArrayRef<int64_t>)> visit) {
  ArrayRef<int64_t> ofView = frame.view(op.getView()).getTensor().shape;
  SmallVector<int64_t> indices;
  bool isInside = true;
  const int64_t first = op.getFirstNumberedDim();
  if (failed(readIndices(frame, op, op.getView(), op.getIndices(),
                         SmallVector<int64_t>(ofView.size(), 1), ofView.size() - first, indices,
                         isInside)))
    return failure();
  const SmallVector<int64_t> origin = indices;
  for (int64_t row = 0; isInside && row < shape[0]; ++row) {
    bool isThere = true;
    for (auto [i, numbers] : llvm::enumerate(op.getRows())) {
      int64_t dim = first + i;
      // A sum that overflows is no row.
      isThere &= !llvm::AddOverflow(origin[dim], frame.ints(numbers)[row], indices[dim]) &&
                 indices[dim] >= 0 && indices[dim] < ofView[dim];
    }
    if (!isThere)
      continue;
    if (auto conflict = visit(row, indices))
      return failConflict(frame, op, op.getView(), *conflict);
  }
  return success();
}

/// Calls `visit` with the number and the place of each row of `op` that lies inside of its view.
static LogicalResult
forEachRowOfRuns(Frame &frame, tile::GatherRunsOp op, int64_t rows,
                 function_ref<std::optional<Conflict>(size_t, ArrayRef<int64_t>)> visit) {
  ArrayRef<int64_t> ofView = frame.view(op.getView()).getTensor().shape;
  const int64_t run = op.getRun(), first = op.getFirstNumberedDim(), last = op.getRowDim();
  SmallVector<int64_t> origin;
  bool isInside = true;
  if (failed(readIndices(frame, op, op.getView(), op.getIndices(),
                         SmallVector<int64_t>(ofView.size(), 1), ofView.size() - first, origin,
                         isInside)))
    return failure();
  Block &body = op.getBody().front();
  for (auto [argument, capture] :
       llvm::zip_equal(body.getArguments().drop_front(), op.getCaptures()))
    frame.set(argument, frame.get(capture));
  for (int64_t row = 0; isInside && row < rows; ++row) {
    if (row % run == 0) {
      frame.set(body.getArgument(0), Ints{row / run});
      if (failed(frame.runBlock(body)))
        return failure();
    }
    SmallVector<int64_t> place(origin);
    for (auto [i, number] : llvm::enumerate(op.getYielded().drop_back()))
      place[first + i] += frame.scalar(number);
    place[last] += row % run;
    bool isThere = row % run < frame.scalar(op.getYielded().back()) &&
                   llvm::all_of(
                       llvm::seq(first, last + 1),
                       [&](int64_t dim) { return place[dim] >= 0 && place[dim] < ofView[dim]; });
    if (!isThere)
      continue;
    if (auto conflict = visit(row, place))
      return failConflict(frame, op, op.getView(), *conflict);
  }
  return success();
}

static LogicalResult runGather(Frame &frame, Operation *op) {
  Value result = op->getResult(0), view = op->getOperand(0);
  ArrayRef<int64_t> shape = shapeOf(result);
  int64_t columns = shape.size() == 2 ? shape[1] : 1;
  ViewMemory &memory = frame.view(view);
  Floats out(elementCount(result.getType()));
  auto load = [&](size_t row, ArrayRef<int64_t> at) {
    return memory.load(frame.point, at, shape.size() == 2, 1, columns, out.data() + row * columns);
  };
  auto runs = dyn_cast<tile::GatherRunsOp>(op);
  if (failed(runs ? forEachRowOfRuns(frame, runs, shape[0], load)
                  : forEachNamedRow(frame, cast<tile::GatherOp>(op), shape, load)))
    return failure();
  setLoaded(frame, result, view, std::move(out));
  return success();
}

/// Calls `visit` with the number and the place of each of `count` elements that lies inside `view`,
/// as `indices` say, which are scalars and tiles. A failure, or what `visit` says of a conflict.
static LogicalResult
forEachElement(Frame &frame, Operation *op, Value view, ValueRange operands, size_t count,
               function_ref<std::optional<Conflict>(size_t, ArrayRef<int64_t>)> visit) {
  ArrayRef<int64_t> shape = frame.view(view).getTensor().shape;
  SmallVector<int64_t> indices;
  bool isInside = true;
  if (failed(readIndices(frame, op, view, operands, SmallVector<int64_t>(shape.size(), 1),
                         /*tileRank=*/0, indices, isInside)))
    return failure();
  SmallVector<std::pair<size_t, ArrayRef<int64_t>>> ofElements;
  for (auto [dim, index] : llvm::enumerate(operands))
    if (isa<RankedTensorType>(index.getType()))
      ofElements.emplace_back(dim, frame.ints(index));
  for (size_t i = 0; isInside && i < count; ++i) {
    bool isThere = true;
    for (auto [dim, values] : ofElements) {
      indices[dim] = values[i];
      isThere &= values[i] >= 0 && values[i] < shape[dim];
    }
    if (!isThere)
      continue;
    if (auto conflict = visit(i, indices))
      return failConflict(frame, op, view, *conflict);
  }
  return success();
}

static LogicalResult runGatherElements(Frame &frame, Operation *op) {
  auto gather = cast<tile::GatherElementsOp>(op);
  ViewMemory &memory = frame.view(gather.getView());
  Floats out(elementCount(gather.getType()));
  auto load = [&](size_t i, ArrayRef<int64_t> at) {
    return memory.load(frame.point, at, /*hasRows=*/false, 1, 1, &out[i]);
  };
  if (failed(forEachElement(frame, op, gather.getView(), gather.getIndices(), out.size(), load)))
    return failure();
  setLoaded(frame, gather.getResult(), gather.getView(), std::move(out));
  return success();
}

static LogicalResult runScatterAdd(Frame &frame, Operation *op) {
  auto scatter = cast<tile::ScatterAddOp>(op);
  ViewMemory &memory = frame.view(scatter.getView());
  ArrayRef<double> in = frame.floats(scatter.getValue());
  auto add = [&](size_t i, ArrayRef<int64_t> at) -> std::optional<Conflict> {
    memory.add(at, /*hasRows=*/false, 1, 1, &in[i], frame.isRounded());
    return std::nullopt;
  };
  return forEachElement(frame, op, scatter.getView(), scatter.getIndices(), in.size(), add);
}

/// The elements of a tile to store as the tensor of the view has them; a failure where one is no
/// double.
static LogicalResult readStored(Frame &frame, Operation *store, Floats &elements) {
  const Datum &datum = frame.get(store->getOperand(0));
  if (datum.floats) {
    elements = *datum.floats;
    return success();
  }
  if (frame.view(store->getOperand(1)).getTensor().holdsIntegers) {
    elements.resize(datum.ints->size());
    llvm::transform(*datum.ints, elements.begin(), llvm::bit_cast<double, int64_t>);
    return success();
  }
  elements.assign(datum.ints->begin(), datum.ints->end());
  for (int64_t integer : *datum.ints)
    if (integer < -mostExactInteger || integer > mostExactInteger)
      return frame.fail(store, "stores " + Twine(integer) +
                                   "; the interpreter keeps elements as doubles, which hold "
                                   "integers up to 2^53");
  return success();
}

static LogicalResult runStore(Frame &frame, Operation *op) {
  auto store = cast<tile::StoreOp>(op);
  auto tile = dyn_cast<RankedTensorType>(store.getValue().getType());
  int64_t tileRank = tile ? tile.getRank() : 0;
  SmallVector<int64_t> extents = extentsOf(store.getView().getType(), tile, store.getBox()),
                       indices;
  bool isInside = true;
  Floats in;
  if (failed(readIndices(frame, op, store.getView(), store.getIndices(), extents, tileRank, indices,
                         isInside)) ||
      failed(readStored(frame, store, in)))
    return failure();
  if (!isInside)
    return success();
  auto [rows, columns] = rowsAndColumns(ArrayRef(extents).take_back(tileRank));
  if (tileRank == 2)
    rows = rowsBeforeEnd(frame, store.getIndices(), rows);
  auto conflict =
      forEachRectangle(extents, tileRank, indices, in.size(),
                       [&, rows = rows, columns = columns](
                           ArrayRef<int64_t> at, int64_t first) -> std::optional<Conflict> {
                         ViewMemory &view = frame.view(store.getView());
                         const double *from = in.data() + first;
                         if (!store.getAdd())
                           return view.store(frame.point, at, tileRank == 2, rows, columns, from);
                         view.add(at, tileRank == 2, rows, columns, from, frame.isRounded());
                         return std::nullopt;
                       });
  if (conflict)
    return failConflict(frame, op, store.getView(), *conflict);
  return success();
}

static LogicalResult runScatter(Frame &frame, Operation *op) {
  auto scatter = cast<tile::ScatterOp>(op);
  ArrayRef<int64_t> shape = shapeOf(scatter.getValue());
  int64_t columns = shape.size() == 2 ? shape[1] : 1;
  ViewMemory &memory = frame.view(scatter.getView());
  Floats in;
  if (failed(readStored(frame, op, in)))
    return failure();
  std::map<SmallVector<int64_t>, size_t> rows;
  std::optional<std::pair<size_t, size_t>> alike;
  auto store = [&](size_t row, ArrayRef<int64_t> at) {
    auto [known, isNew] = rows.try_emplace(SmallVector<int64_t>(at), row);
    if (!isNew && !alike)
      alike = {known->second, row};
    return memory.store(frame.point, at, shape.size() == 2, 1, columns, in.data() + row * columns);
  };
  if (failed(forEachNamedRow(frame, scatter, shape, store)))
    return failure();
  if (alike)
    return frame.fail(op, llvm::formatv("rows {0} and {1} of the tile go to one row of the view at "
                                        "grid point {2}; which of them it holds then is not said",
                                        alike->first, alike->second,
                                        formatPoint(frame.program.launch, frame.point)));
  return success();
}

static LogicalResult runDim(Frame &frame, Operation *op) {
  auto dim = cast<tile::DimOp>(op);
  auto it = frame.program.launch.dims.find(dim.getDim());
  frame.set(dim.getResult(), Ints{it->second});
  return success();
}

static LogicalResult runCommonBound(Frame &frame, Operation *op) {
  frame.set(op->getResult(0), Datum(frame.get(cast<tile::CommonBoundOp>(op).getOwn())));
  return success();
}

/// Here grid points run one after the other, each through its loops from their beginnings.
static LogicalResult runWalksDown(Frame &frame, Operation *op) {
  frame.set(op->getResult(0), Ints{0});
  return success();
}

static LogicalResult runWalk(Frame &frame, Operation *op) {
  auto walk = cast<tile::WalkOp>(op);
  int64_t step = frame.scalar(walk.getStep());
  int64_t fromEnd = frame.scalar(walk.getLower()) + frame.scalar(walk.getUpper()) - 1 - step;
  frame.set(walk.getResult(), Ints{frame.scalar(walk.getDown()) ? fromEnd : step});
  return success();
}

/// Here no grid point loads for another one.
static LogicalResult runSkipLoads(Frame &, Operation *) { return success(); }

//===----------------------------------------------------------------------===//
// Computation
//===----------------------------------------------------------------------===//

/// Adds the products of the terms that `a` and `b` are sums of, the smallest first.
static void multiplyTerms(tile::DotOp dot, tile::DotTerms terms, Floats a, Floats b, Floats &out) {
  auto cut = [&](Floats &rest) {
    std::vector<Floats> parts;
    for (int64_t i = 0; i < terms.count; ++i) {
      Floats &term = parts.emplace_back(rest);
      roundAll(terms.type, term);
      llvm::transform(llvm::zip_equal(rest, term), rest.begin(),
                      [](auto pair) { return std::get<0>(pair) - std::get<1>(pair); });
    }
    return parts;
  };
  std::vector<Floats> ofA = cut(a), ofB = cut(b);
  ArrayRef<int64_t> shape = shapeOf(dot.getA());
  for (int64_t last = terms.count - 1; last >= 0; --last)
    for (int64_t i = last; i >= 0; --i)
      multiplyInFloat(ofA[i].data(), ofB[last - i].data(), out.data(), shape[0],
                      shapeOf(dot.getB())[1], shape[1]);
}

/// Numbers of f32 as the operands of a dot with precision tf32, however they come there.
static Floats roundedToTF32(Floats numbers) {
  llvm::transform(numbers, numbers.begin(), tessera::roundToTF32);
  return numbers;
}

static LogicalResult runDot(Frame &frame, Operation *op) {
  auto dot = cast<tile::DotOp>(op);
  ArrayRef<int64_t> a = shapeOf(dot.getA()), b = shapeOf(dot.getB());
  Floats out(a[0] * b[1]);
  if (dot.getAcc())
    out = *frame.get(dot.getAcc()).floats;
  bool exact = frame.program.precision == Precision::Exact;
  std::optional<tile::DotTerms> terms = dot.getTerms();
  if (exact)
    multiplyInDouble(frame.floats(dot.getA()).data(), frame.floats(dot.getB()).data(), out.data(),
                     a[0], b[1], a[1]);
  else if (dot.getPrecision() == tile::DotPrecision::tf32)
    multiplyInFloat(roundedToTF32(frame.floats(dot.getA())).data(),
                    roundedToTF32(frame.floats(dot.getB())).data(), out.data(), a[0], b[1], a[1]);
  else if (terms)
    multiplyTerms(dot, *terms, frame.floats(dot.getA()), frame.floats(dot.getB()), out);
  else
    multiplyInFloat(frame.floats(dot.getA()).data(), frame.floats(dot.getB()).data(), out.data(),
                    a[0], b[1], a[1]);
  frame.set(dot.getResult(), std::move(out));
  return success();
}

/// Moves elements of either kind: `move(source elements, result elements)`.
template <typename Move>
static void moveElements(Frame &frame, Operation *op, Move move) {
  Value result = op->getResult(0);
  const Datum &source = frame.get(op->getOperand(0));
  size_t count = elementCount(result.getType());
  if (source.floats) {
    Floats out(count);
    move(source.floats->data(), out.data());
    frame.set(result, Datum::of(std::move(out)));
  } else {
    Ints out(count);
    move(source.ints->data(), out.data());
    frame.set(result, Datum::of(std::move(out)));
  }
}

static LogicalResult runBroadcast(Frame &frame, Operation *op) {
  auto broadcast = cast<tile::BroadcastOp>(op);
  ArrayRef<int64_t> shape = shapeOf(broadcast.getResult());
  int64_t rows = shape[0], columns = shape[1];
  bool alongColumns = broadcast.getAxis() == 1;
  moveElements(frame, op, [&](auto *in, auto *out) {
    for (int64_t i = 0; i < rows; ++i, out += columns)
      if (alongColumns)
        std::fill_n(out, columns, in[i]);
      else
        std::copy_n(in, columns, out);
  });
  return success();
}

static LogicalResult runSplat(Frame &frame, Operation *op) {
  size_t count = elementCount(op->getResult(0).getType());
  moveElements(frame, op, [&](auto *in, auto *out) { std::fill_n(out, count, *in); });
  return success();
}

static LogicalResult runTranspose(Frame &frame, Operation *op) {
  ArrayRef<int64_t> shape = shapeOf(op->getOperand(0));
  int64_t rows = shape[0], columns = shape[1];
  // In squares, so that lines of both sides stay in cache.
  constexpr int64_t side = 16;
  moveElements(frame, op, [&](auto *in, auto *out) {
    for (int64_t i0 = 0; i0 < rows; i0 += side)
      for (int64_t j0 = 0; j0 < columns; j0 += side)
        for (int64_t i = i0; i < std::min(rows, i0 + side); ++i)
          for (int64_t j = j0; j < std::min(columns, j0 + side); ++j)
            out[j * rows + i] = in[i * columns + j];
  });
  return success();
}

static LogicalResult runIota(Frame &frame, Operation *op) {
  auto iota = cast<tile::IotaOp>(op);
  ArrayRef<int64_t> shape = shapeOf(iota.getResult());
  // Wraps like the i32 it makes.
  uint64_t start = frame.scalar(iota.getStart());
  auto [rows, columns] = rowsAndColumns(shape);
  bool alongRows = shape.size() == 2 && iota.getAxis() == 0;
  int64_t period = iota.getPeriodOrExtent();
  Ints out(rows * columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      out[i * columns + j] = start + (alongRows ? i : j) % period;
  frame.set(iota.getResult(), std::move(out));
  return success();
}

void interp::addTileHandlers(HandlerTable &table) {
  table.add<tile::LoadOp>(runLoad);
  table.add<tile::GatherOp>(runGather);
  table.add<tile::GatherRunsOp>(runGather);
  table.add<tile::GatherElementsOp>(runGatherElements);
  table.add<tile::ScatterOp>(runScatter);
  table.add<tile::ScatterAddOp>(runScatterAdd);
  table.add<tile::StoreOp>(runStore);
  table.add<tile::DimOp>(runDim);
  table.add<tile::CommonBoundOp>(runCommonBound);
  table.add<tile::WalksDownOp>(runWalksDown);
  table.add<tile::WalkOp>(runWalk);
  table.add<tile::RowOp>(runRow);
  table.add<tile::SkipLoadsOp>(runSkipLoads);
  table.add<tile::DotOp>(runDot);
  table.add<tile::BroadcastOp>(runBroadcast);
  table.add<tile::SplatOp>(runSplat);
  table.add<tile::TransposeOp>(runTranspose);
  table.add<tile::IotaOp>(runIota);
}
