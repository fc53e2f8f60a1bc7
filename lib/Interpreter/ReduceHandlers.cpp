//===- ReduceHandlers.cpp - Reductions and scans of tiles -----------------===//

#include "lib/Interpreter/Engine.h"
#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

/// Combines along `axis` in ascending order, rounding after each step.
template <typename Combine>
static Floats reduce(ArrayRef<double> in, ArrayRef<int64_t> shape, int64_t axis, Type roundTo,
                     Combine combine) {
  int64_t rows = shape[0], columns = shape[1];
  if (axis == 0) {
    Floats out(in.begin(), in.begin() + columns);
    for (int64_t i = 1; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j)
        out[j] = combine(out[j], in[i * columns + j]);
      if (roundTo)
        roundAll(roundTo, out);
    }
    return out;
  }
  Floats out(rows);
  for (int64_t i = 0; i < rows; ++i)
    out[i] = in[i * columns];
  // Column by column, so that one loop rounds all rows at once.
  for (int64_t j = 1; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i)
      out[i] = combine(out[i], in[i * columns + j]);
    if (roundTo)
      roundAll(roundTo, out);
  }
  return out;
}

static double add(double a, double b) { return a + b; }
static double takeProduct(double a, double b) { return a * b; }

static double (*combinerOf(tile::ReduceKind kind))(double, double) {
  switch (kind) {
  case tile::ReduceKind::sum:
    return add;
  case tile::ReduceKind::max:
    return maximumNumber;
  case tile::ReduceKind::min:
    return minimumNumber;
  case tile::ReduceKind::maximum:
    return maximum;
  case tile::ReduceKind::minimum:
    return minimum;
  case tile::ReduceKind::product:
    return takeProduct;
  }
  llvm_unreachable("a kind of reduction");
}

static LogicalResult runReduce(Frame &frame, Operation *op) {
  auto reduction = cast<tile::ReduceOp>(op);
  // Only sums round.
  bool rounds =
      frame.program.precision == Precision::Kernel && reduction.getKind() == tile::ReduceKind::sum;
  Type element = cast<RankedTensorType>(reduction.getType()).getElementType();
  Floats out =
      reduce(frame.floats(reduction.getSource()), shapeOf(reduction.getSource()),
             reduction.getAxis(), rounds ? element : Type(), combinerOf(reduction.getKind()));
  if (std::optional<llvm::APFloat> limit = reduction.getLimit())
    for (double &sum : out)
      if (sum > limit->convertToFloat())
        sum = std::numeric_limits<double>::infinity();
  frame.set(reduction.getResult(), std::move(out));
  return success();
}

static LogicalResult runReduceIndex(Frame &frame, Operation *op) {
  auto reduction = cast<tile::ReduceIndexOp>(op);
  ArrayRef<double> source = frame.floats(reduction.getSource());
  ArrayRef<int64_t> shape = shapeOf(reduction.getSource());
  const bool alongColumns = reduction.getAxis() == 1;
  Floats values =
      reduce(source, shape, reduction.getAxis(), Type(), combinerOf(reduction.getKind()));
  Ints places(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    auto isFirst = [&](int64_t place) {
      double element = source[alongColumns ? i * shape[1] + place : place * shape[1] + i];
      return element == values[i] || (std::isnan(element) && std::isnan(values[i]));
    };
    while (!isFirst(places[i]))
      ++places[i];
  }
  frame.set(reduction.getValue(), std::move(values));
  frame.set(reduction.getIndex(), std::move(places));
  return success();
}

static LogicalResult runMaskedMax(Frame &frame, Operation *op) {
  auto largest = cast<tile::MaskedMaxOp>(op);
  ArrayRef<double> source = frame.floats(largest.getSource()), old = frame.floats(largest.getOld());
  Floats out(old.begin(), old.end());
  if (llvm::is_contained(source, 0.0)) {
    Floats rows = reduce(source, shapeOf(largest.getSource()), /*axis=*/1, Type(),
                         combinerOf(tile::ReduceKind::maximum));
    for (auto [largest, row] : llvm::zip_equal(out, rows))
      largest = maximum(largest, row);
  }
  frame.set(largest.getResult(), std::move(out));
  return success();
}

static LogicalResult runReference(Frame &frame, Operation *op) {
  auto reference = cast<tile::ReferenceOp>(op);
  frame.set(reference.getResult(), Floats(frame.floats(reference.getSource())));
  return success();
}

static LogicalResult runReduceAll(Frame &frame, Operation *op) {
  auto reduction = cast<tile::ReduceAllOp>(op);
  bool rounds =
      frame.program.precision == Precision::Kernel && reduction.getKind() == tile::ReduceKind::sum;
  const Floats &all = frame.floats(reduction.getSource());
  int64_t shape[] = {static_cast<int64_t>(all.size()), 1};
  frame.set(reduction.getResult(),
            reduce(all, shape, /*axis=*/0, rounds ? reduction.getType() : Type(),
                   combinerOf(reduction.getKind())));
  return success();
}

/// What an exclusive scan gives where it has no element.
template <typename T>
static T startOf(tile::ReduceKind kind, unsigned bits) {
  bool isLargest = kind == tile::ReduceKind::min || kind == tile::ReduceKind::minimum;
  if (kind == tile::ReduceKind::sum || kind == tile::ReduceKind::product)
    return kind == tile::ReduceKind::product;
  if constexpr (std::is_floating_point_v<T>)
    return isLargest ? std::numeric_limits<T>::infinity() : -std::numeric_limits<T>::infinity();
  else
    return isLargest ? llvm::maxIntN(bits) : llvm::minIntN(bits);
}

/// Combines elements along the axis of `op`, one after the other.
template <typename T, typename Combine>
static std::vector<T> scan(tile::ScanOp op, ArrayRef<T> in, Combine combine) {
  ArrayRef<int64_t> shape = shapeOf(op.getSource());
  auto type = cast<RankedTensorType>(op.getType());
  int64_t inner = shape.size() == 2 && op.getAxis() == 0 ? shape[1] : 1,
          extent = shape[op.getAxis()], others = static_cast<int64_t>(in.size()) / extent;
  std::vector<T> out(in.size());
  for (int64_t other = 0; other < others; ++other) {
    std::optional<T> before;
    if (op.getExclusive())
      before = startOf<T>(op.getKind(), type.getElementTypeBitWidth());
    for (int64_t i = 0; i < extent; ++i) {
      int64_t place = other / inner * extent * inner + other % inner +
                      (op.getReverse() ? extent - 1 - i : i) * inner;
      T next = before ? combine(*before, in[place]) : in[place];
      out[place] = op.getExclusive() ? *before : next;
      before = next;
    }
  }
  return out;
}

static LogicalResult runScan(Frame &frame, Operation *op) {
  auto scanned = cast<tile::ScanOp>(op);
  Type element = cast<RankedTensorType>(scanned.getType()).getElementType();
  tile::ReduceKind kind = scanned.getKind();
  if (!isa<FloatType>(element)) {
    auto combine = [&](int64_t a, int64_t b) {
      if (kind == tile::ReduceKind::sum)
        return signExtend(uint64_t(a) + uint64_t(b), intWidth(element));
      if (kind == tile::ReduceKind::product)
        return signExtend(uint64_t(a) * uint64_t(b), intWidth(element));
      return kind == tile::ReduceKind::max ? std::max(a, b) : std::min(a, b);
    };
    frame.set(scanned.getResult(),
              Datum::of(scan<int64_t>(scanned, frame.ints(scanned.getSource()), combine)));
    return success();
  }
  bool isCount = kind == tile::ReduceKind::sum || kind == tile::ReduceKind::product;
  bool rounds = frame.program.precision == Precision::Kernel && isCount;
  auto combineExactly = combinerOf(kind);
  auto combine = [&](double a, double b) {
    double both = combineExactly(a, b);
    return rounds ? roundToType(element, both) : both;
  };
  frame.set(scanned.getResult(),
            Datum::of(scan<double>(scanned, frame.floats(scanned.getSource()), combine)));
  return success();
}

static LogicalResult runAny(Frame &frame, Operation *op) {
  auto any = cast<tile::AnyOp>(op);
  bool some = llvm::any_of(frame.ints(any.getSource()), [](int64_t element) { return element; });
  frame.set(any.getResult(), Ints{some});
  return success();
}

void interp::addReduceHandlers(HandlerTable &table) {
  table.add<tile::ReduceOp>(runReduce);
  table.add<tile::ReduceIndexOp>(runReduceIndex);
  table.add<tile::MaskedMaxOp>(runMaskedMax);
  table.add<tile::ReferenceOp>(runReference);
  table.add<tile::ReduceAllOp>(runReduceAll);
  table.add<tile::ScanOp>(runScan);
  table.add<tile::AnyOp>(runAny);
}
