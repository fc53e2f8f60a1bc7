#include "passes/Analysis/InductionBounds.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace tessera;

/// A number of 64 bits that is further from 0 counts as this. What is compared with it is not.
constexpr int64_t kFarthestNumber = int64_t(1) << 48;
/// Sums of less than this do not wrap in 64 bits, nor do those with what their users add.
constexpr double kFarthestSum = 0x1p60;

bool tessera::addProduct(int64_t &sum, int64_t value, int64_t factor) {
  int64_t product;
  return !llvm::MulOverflow(value, factor, product) && !llvm::AddOverflow(sum, product, sum);
}

bool InductionBound::add(const InductionBound &other, int64_t factor) {
  bool fits =
      addProduct(slope, other.slope, factor) && addProduct(constant, other.constant, factor);
  for (auto [symbol, coefficient] : other.symbols)
    fits = fits && addProduct(symbols[symbol], coefficient, factor);
  for (FloorQuotient quotient : other.quotients) {
    int64_t scaled = 0;
    fits = fits && addProduct(scaled, quotient.coefficient, factor);
    quotients.push_back({scaled, quotient.dividend, quotient.divisor});
  }
  return fits;
}

//===----------------------------------------------------------------------===//
// How large numbers may be
//===----------------------------------------------------------------------===//

static double sizeOf(int64_t number) { return std::fabs(static_cast<double>(number)); }

/// How far from 0 the numbers of `range` are at most.
static double reachOf(IntegerRange range) {
  return std::max(sizeOf(range.least), sizeOf(range.most));
}

/// Whether `range` has numbers of 64 bits that are cut off.
static bool isCut(IntegerRange range) { return reachOf(range) > kFarthestNumber; }

namespace {
/// How far from 0 the part of a bound without the induction variable may be.
struct Reach {
  double sum;          ///< without symbols that are cut off
  double ofPlaces;     ///< the same where multiples of places are places, as the columns of blocks
  bool isFar;          ///< some symbol is, or the constant
  unsigned numCut = 0; ///< symbols that are cut off
  double cut = 0;      ///< what these come to

  Reach(const InductionBound &bound, IntegerRanges &ranges)
      : sum(sizeOf(bound.constant)), ofPlaces(sum), isFar(sum > kFarthestPlace) {
    for (auto [symbol, coefficient] : bound.symbols)
      add(ranges.of(symbol), sizeOf(coefficient));
    for (const FloorQuotient &quotient : bound.quotients)
      add(Reach(*quotient.dividend, ranges), quotient);
  }

private:
  void add(IntegerRange range, double factor) {
    isFar |= range.isFar();
    if (isCut(range)) {
      ++numCut;
      cut += factor * kFarthestNumber;
      return;
    }
    double reach = factor * reachOf(range), place = kFarthestPlace;
    sum += reach;
    ofPlaces += range.isFar() ? reach : std::min(reach, place);
  }
  void add(const Reach &dividend, const FloorQuotient &quotient) {
    isFar |= dividend.isFar;
    // A quotient of a number that is cut off says nothing.
    numCut += 2 * dividend.numCut;
    double factor = sizeOf(quotient.coefficient), divisor = quotient.divisor;
    sum = std::max(sum + factor * (dividend.sum / divisor + 1), dividend.sum);
    ofPlaces = std::max(ofPlaces + factor * (dividend.ofPlaces / divisor + 1), dividend.ofPlaces);
  }
};
} // namespace

bool tessera::isRepresentable(const InductionBound &bound, IntegerRanges &ranges) {
  Reach reach(bound, ranges);
  double all = reach.sum + sizeOf(bound.slope) * kFarthestPlace;
  return reach.numCut == 0 ? all < kFarthestSum
                           : reach.numCut == 1 && all < kFarthestNumber && reach.cut < kFarthestSum;
}

//===----------------------------------------------------------------------===//
// Bounds as arithmetic
//===----------------------------------------------------------------------===//

namespace {
/// Writes arithmetic in indices, or in 64 bits.
class BoundWriter {
public:
  BoundWriter(const InductionBound &bound, int64_t sign, int64_t offset,
              ImplicitLocOpBuilder &builder);

  /// sign * (the part of `bound` without the induction variable) + offset.
  Value write(const InductionBound &bound, int64_t sign, int64_t offset);
  Value constant(int64_t value) {
    return arith::ConstantOp::create(builder, builder.getIntegerAttr(type, value));
  }
  /// What has been computed, as the nearest index.
  Value toIndex(Value value);

private:
  Value convert(Value symbol);
  Value add(Value sum, Value term, int64_t coefficient);

  ImplicitLocOpBuilder &builder;
  IntegerRanges ranges;
  Type type; ///< of index where 32 bits are enough, else 64 bits
};
} // namespace

BoundWriter::BoundWriter(const InductionBound &bound, int64_t sign, int64_t offset,
                         ImplicitLocOpBuilder &builder)
    : builder(builder) {
  Reach reach(bound, ranges);
  // What is computed of places alone is one.
  double largest = std::numeric_limits<int32_t>::max();
  bool isNarrow = !reach.isFar || (reach.numCut == 0 && reach.ofPlaces + sizeOf(offset) < largest);
  type = isNarrow ? Type(builder.getIndexType()) : builder.getI64Type();
}

Value BoundWriter::convert(Value symbol) {
  if (symbol.getType() == type)
    return symbol;
  if (symbol.getType().isIndex() || type.isIndex())
    return arith::IndexCastOp::create(builder, type, symbol);
  return arith::ExtSIOp::create(builder, type, symbol);
}

Value BoundWriter::add(Value sum, Value term, int64_t coefficient) {
  if (coefficient != 1)
    term = arith::MulIOp::create(builder, term, constant(coefficient));
  return arith::AddIOp::create(builder, sum, term);
}

Value BoundWriter::write(const InductionBound &bound, int64_t sign, int64_t offset) {
  Value sum = constant(sign * bound.constant + offset);
  for (auto [symbol, coefficient] : bound.symbols) {
    Value term = convert(symbol);
    if (isCut(ranges.of(symbol))) {
      term = arith::MinSIOp::create(builder, term, constant(kFarthestNumber));
      term = arith::MaxSIOp::create(builder, term, constant(-kFarthestNumber));
    }
    sum = add(sum, term, sign * coefficient);
  }
  for (const FloorQuotient &quotient : bound.quotients) {
    Value dividend = write(*quotient.dividend, /*sign=*/1, /*offset=*/0);
    Value term = arith::FloorDivSIOp::create(builder, dividend, constant(quotient.divisor));
    sum = add(sum, term, sign * quotient.coefficient);
  }
  return sum;
}

Value BoundWriter::toIndex(Value value) {
  if (type.isIndex())
    return value;
  Type index = builder.getIndexType();
  if (unsigned bits = bitsOfIntegers(index); !ranges.of(value).fits(bits)) {
    IntegerRange all = IntegerRange::ofBits(bits);
    value = arith::MaxSIOp::create(builder, value, constant(all.least));
    value = arith::MinSIOp::create(builder, value, constant(all.most));
  }
  return arith::IndexCastOp::create(builder, index, value);
}

Value tessera::writeQuotient(const InductionBound &bound, int64_t sign, int64_t offset,
                             int64_t divisor, bool roundsUp, ImplicitLocOpBuilder &builder) {
  BoundWriter writer(bound, sign, offset, builder);
  Value sum = writer.write(bound, sign, offset), by = writer.constant(divisor);
  return writer.toIndex(roundsUp ? Value(arith::CeilDivSIOp::create(builder, sum, by))
                                 : Value(arith::FloorDivSIOp::create(builder, sum, by)));
}

Value tessera::writeComparison(const InductionBound &bound, arith::CmpIPredicate predicate,
                               int64_t number, ImplicitLocOpBuilder &builder) {
  BoundWriter writer(bound, /*sign=*/1, /*offset=*/0, builder);
  Value limit = writer.constant(number), sum = writer.write(bound, /*sign=*/1, /*offset=*/0);
  return arith::CmpIOp::create(builder, predicate, sum, limit);
}
