//===- ArithHandlers.cpp - Operations of the arith dialect ----------------===//

#include "lib/Interpreter/Elementwise.h"
#include "lib/Support/Rounding.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// Wrapping arithmetic: unsigned, where overflow has a meaning.
static void addWrappingHandlers(HandlerTable &table) {
  using U = uint64_t;
  addIntBinary<arith::AddIOp>(table, [](int64_t x, int64_t y, unsigned) { return U(x) + U(y); });
  addIntBinary<arith::SubIOp>(table, [](int64_t x, int64_t y, unsigned) { return U(x) - U(y); });
  addIntBinary<arith::MulIOp>(table, [](int64_t x, int64_t y, unsigned) { return U(x) * U(y); });
  addIntBinary<arith::AndIOp>(table, [](int64_t x, int64_t y, unsigned) { return x & y; });
  addIntBinary<arith::OrIOp>(table, [](int64_t x, int64_t y, unsigned) { return x | y; });
  addIntBinary<arith::XOrIOp>(table, [](int64_t x, int64_t y, unsigned) { return x ^ y; });
  addIntBinary<arith::MaxSIOp>(table,
                               [](int64_t x, int64_t y, unsigned) { return std::max(x, y); });
  addIntBinary<arith::MinSIOp>(table,
                               [](int64_t x, int64_t y, unsigned) { return std::min(x, y); });
  // Sign extension keeps the order of unsigned values too.
  addIntBinary<arith::MaxUIOp>(table,
                               [](int64_t x, int64_t y, unsigned) { return std::max<U>(x, y); });
  addIntBinary<arith::MinUIOp>(table,
                               [](int64_t x, int64_t y, unsigned) { return std::min<U>(x, y); });
  addIntBinary<arith::ShLIOp>(table, [](int64_t x, int64_t y, unsigned width) {
    U count = zeroExtend(y, width);
    return count < width ? U(x) << count : 0;
  });
  addIntBinary<arith::ShRUIOp>(table, [](int64_t x, int64_t y, unsigned width) {
    U count = zeroExtend(y, width);
    return count < width ? zeroExtend(x, width) >> count : 0;
  });
  addIntBinary<arith::ShRSIOp>(table, [](int64_t x, int64_t y, unsigned width) {
    return x >> std::min<U>(zeroExtend(y, width), width - 1);
  });
}

/// A division: `function(x, y, width)` is called with y != 0 and without overflow.
template <typename OpT, typename Fn>
static void addDivision(HandlerTable &table, bool isSigned, Fn function) {
  table.add<OpT>([=](Frame &frame, Operation *op) -> LogicalResult {
    ArrayRef<int64_t> x = frame.ints(op->getOperand(0)), y = frame.ints(op->getOperand(1));
    unsigned width = intWidth(getElementTypeOrSelf(op->getOperand(0).getType()));
    int64_t smallest = signExtend(static_cast<int64_t>(uint64_t(1) << (width - 1)), width);
    Ints out(x.size());
    for (size_t i = 0, e = x.size(); i != e; ++i) {
      if (y[i] == 0)
        return frame.fail(op, "divides " + Twine(x[i]) + " by 0");
      if (isSigned && y[i] == -1 && x[i] == smallest)
        return frame.fail(op, "divides " + Twine(x[i]) + " by -1, which overflows " + Twine(width) +
                                  " bits");
      out[i] = function(x[i], y[i], width);
    }
    frame.set(op->getResult(0), std::move(out));
    return success();
  });
}

static void addDivisionHandlers(HandlerTable &table) {
  auto unsignedDivision = [](auto divide) {
    return [divide](int64_t x, int64_t y, unsigned width) -> uint64_t {
      return divide(zeroExtend(x, width), zeroExtend(y, width));
    };
  };
  using U = uint64_t;
  addDivision<arith::DivUIOp>(table, false, unsignedDivision([](U x, U y) { return x / y; }));
  addDivision<arith::RemUIOp>(table, false, unsignedDivision([](U x, U y) { return x % y; }));
  addDivision<arith::CeilDivUIOp>(table, false,
                                  unsignedDivision([](U x, U y) { return x / y + (x % y != 0); }));
  addDivision<arith::DivSIOp>(table, true, [](int64_t x, int64_t y, unsigned) { return x / y; });
  addDivision<arith::RemSIOp>(table, true, [](int64_t x, int64_t y, unsigned) { return x % y; });
  addDivision<arith::CeilDivSIOp>(table, true, [](int64_t x, int64_t y, unsigned) {
    return x / y + (x % y != 0 && (x < 0) == (y < 0));
  });
  addDivision<arith::FloorDivSIOp>(table, true, [](int64_t x, int64_t y, unsigned) {
    return x / y - (x % y != 0 && (x < 0) != (y < 0));
  });
}

/// An operation with two results: `function(x, y, width)` returns both.
template <typename OpT, typename Fn>
static void addExtended(HandlerTable &table, Fn function) {
  table.add<OpT>([function](Frame &frame, Operation *op) {
    ArrayRef<int64_t> x = frame.ints(op->getOperand(0)), y = frame.ints(op->getOperand(1));
    unsigned width = intWidth(getElementTypeOrSelf(op->getOperand(0).getType()));
    Ints low(x.size()), high(x.size());
    for (size_t i = 0, e = x.size(); i != e; ++i)
      std::tie(low[i], high[i]) = function(x[i], y[i], width);
    frame.set(op->getResult(0), std::move(low));
    frame.set(op->getResult(1), std::move(high));
    return success();
  });
}

static void addExtendedHandlers(HandlerTable &table) {
  addExtended<arith::AddUIExtendedOp>(table, [](int64_t x, int64_t y, unsigned width) {
    uint64_t sum = uint64_t(x) + uint64_t(y);
    bool carry = zeroExtend(sum, width) < zeroExtend(x, width);
    return std::pair<int64_t, int64_t>(sum, carry);
  });
  addExtended<arith::MulSIExtendedOp>(table, [](int64_t x, int64_t y, unsigned width) {
    __int128 product = static_cast<__int128>(x) * y;
    return std::pair<int64_t, int64_t>(product, product >> width);
  });
  addExtended<arith::MulUIExtendedOp>(table, [](int64_t x, int64_t y, unsigned width) {
    unsigned __int128 product =
        static_cast<unsigned __int128>(zeroExtend(x, width)) * zeroExtend(y, width);
    return std::pair<int64_t, int64_t>(product, product >> width);
  });
}

//===----------------------------------------------------------------------===//
// Comparisons and selection
//===----------------------------------------------------------------------===//

/// One loop per predicate, so that the predicate is not looked at for each element.
template <typename T, typename Fn>
static LogicalResult compare(Frame &frame, Operation *op, ArrayRef<T> x, ArrayRef<T> y,
                             Fn predicate) {
  Ints out(x.size());
  for (size_t i = 0, e = x.size(); i != e; ++i)
    out[i] = predicate(x[i], y[i]) ? -1 : 0;
  frame.set(op->getResult(0), std::move(out));
  return success();
}

static LogicalResult runCmpI(Frame &frame, Operation *op) {
  auto run = [&](auto predicate) {
    return compare(frame, op, frame.ints(op->getOperand(0)), frame.ints(op->getOperand(1)),
                   predicate);
  };
  using S = int64_t;
  using U = uint64_t;
  switch (cast<arith::CmpIOp>(op).getPredicate()) {
  case arith::CmpIPredicate::eq:
    return run([](S x, S y) { return x == y; });
  case arith::CmpIPredicate::ne:
    return run([](S x, S y) { return x != y; });
  case arith::CmpIPredicate::slt:
    return run([](S x, S y) { return x < y; });
  case arith::CmpIPredicate::sle:
    return run([](S x, S y) { return x <= y; });
  case arith::CmpIPredicate::sgt:
    return run([](S x, S y) { return x > y; });
  case arith::CmpIPredicate::sge:
    return run([](S x, S y) { return x >= y; });
  case arith::CmpIPredicate::ult:
    return run([](U x, U y) { return x < y; });
  case arith::CmpIPredicate::ule:
    return run([](U x, U y) { return x <= y; });
  case arith::CmpIPredicate::ugt:
    return run([](U x, U y) { return x > y; });
  case arith::CmpIPredicate::uge:
    return run([](U x, U y) { return x >= y; });
  }
  llvm_unreachable("all integer predicates are handled");
}

static LogicalResult runCmpF(Frame &frame, Operation *op) {
  auto run = [&](auto predicate) {
    return compare(frame, op, frame.floats(op->getOperand(0)), frame.floats(op->getOperand(1)),
                   predicate);
  };
  using P = arith::CmpFPredicate;
  switch (cast<arith::CmpFOp>(op).getPredicate()) {
  case P::AlwaysFalse:
    return run([](double, double) { return false; });
  case P::OEQ:
    return run([](double x, double y) { return x == y; });
  case P::OGT:
    return run([](double x, double y) { return x > y; });
  case P::OGE:
    return run([](double x, double y) { return x >= y; });
  case P::OLT:
    return run([](double x, double y) { return x < y; });
  case P::OLE:
    return run([](double x, double y) { return x <= y; });
  case P::ONE:
    return run([](double x, double y) { return x < y || x > y; });
  case P::ORD:
    return run([](double x, double y) { return x == x && y == y; });
  case P::UEQ:
    return run([](double x, double y) { return !(x < y || x > y); });
  case P::UGT:
    return run([](double x, double y) { return !(x <= y); });
  case P::UGE:
    return run([](double x, double y) { return !(x < y); });
  case P::ULT:
    return run([](double x, double y) { return !(x >= y); });
  case P::ULE:
    return run([](double x, double y) { return !(x > y); });
  case P::UNE:
    return run([](double x, double y) { return x != y; });
  case P::UNO:
    return run([](double x, double y) { return x != x || y != y; });
  case P::AlwaysTrue:
    return run([](double, double) { return true; });
  }
  llvm_unreachable("all floating-point predicates are handled");
}

static LogicalResult runSelect(Frame &frame, Operation *op) {
  auto select = cast<arith::SelectOp>(op);
  const Datum &yes = frame.get(select.getTrueValue()), &no = frame.get(select.getFalseValue());
  ArrayRef<int64_t> condition = frame.ints(select.getCondition());
  if (!isa<RankedTensorType>(select.getCondition().getType())) {
    frame.set(select.getResult(), Datum(condition.front() ? yes : no));
    return success();
  }
  auto pick = [&](auto &x, auto &y) {
    auto out = y;
    for (size_t i = 0, e = out.size(); i != e; ++i)
      out[i] = condition[i] ? x[i] : y[i];
    frame.set(select.getResult(), Datum::of(std::move(out)));
  };
  if (yes.floats)
    pick(*yes.floats, *no.floats);
  else
    pick(*yes.ints, *no.ints);
  return success();
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

/// Passes elements on; `Frame::set` rounds them to the new type.
static LogicalResult runFloatConversion(Frame &frame, Operation *op) {
  if (auto truncate = dyn_cast<arith::TruncFOp>(op);
      truncate && truncate.getRoundingmode() &&
      *truncate.getRoundingmode() != arith::RoundingMode::to_nearest_even)
    return frame.fail(op, "the interpreter rounds to nearest even; remove the rounding mode");
  frame.set(op->getResult(0), Floats(*frame.get(op->getOperand(0)).floats));
  return success();
}

/// Converts to an integer of `width` bits: towards zero, saturating, NaN to 0.
template <typename Int>
static Int saturate(double x, unsigned width) {
  constexpr bool isSigned = std::is_signed_v<Int>;
  double bound = std::ldexp(1.0, isSigned ? width - 1 : width);
  Int high = isSigned ? static_cast<Int>((uint64_t(1) << (width - 1)) - 1)
                      : static_cast<Int>(~uint64_t(0) >> (64 - width));
  if (x != x)
    return 0;
  if (x >= bound)
    return high;
  if (x <= (isSigned ? -bound : 0))
    return isSigned ? -high - 1 : 0;
  return static_cast<Int>(x);
}

template <typename OpT, typename Int>
static void addFloatToInt(HandlerTable &table) {
  table.add<OpT>([](Frame &frame, Operation *op) {
    ArrayRef<double> x = frame.floats(op->getOperand(0));
    unsigned width = intWidth(getElementTypeOrSelf(op->getResult(0).getType()));
    Ints out(x.size());
    for (size_t i = 0, e = x.size(); i != e; ++i)
      out[i] = saturate<Int>(x[i], width);
    frame.set(op->getResult(0), std::move(out));
    return success();
  });
}

/// The double nearest to an integer, to odd when it is between two: rounding once more to a
/// narrower type is then correct.
template <typename Int>
static double toOddDouble(Int value) {
  double nearest = static_cast<double>(value);
  // The remainder of integers below 2^64 fits easily; a double beyond it does not occur.
  __int128 error = static_cast<__int128>(value) - static_cast<__int128>(nearest);
  if (error == 0 || (bitsOf(nearest) & 1))
    return nearest;
  bool away = (error > 0) == (nearest > 0);
  return fromBits(bitsOf(nearest) + (away ? 1 : -1));
}

template <typename OpT, bool isSigned>
static void addIntToFloat(HandlerTable &table) {
  table.add<OpT>([](Frame &frame, Operation *op) {
    ArrayRef<int64_t> x = frame.ints(op->getOperand(0));
    unsigned width = intWidth(getElementTypeOrSelf(op->getOperand(0).getType()));
    // A double result is rounded here, every other one when it is set.
    bool isFinal = frame.program.precision == Precision::Exact ||
                   getElementTypeOrSelf(op->getResult(0).getType()).isF64();
    Floats out(x.size());
    for (size_t i = 0, e = x.size(); i != e; ++i) {
      if constexpr (isSigned)
        out[i] = isFinal ? static_cast<double>(x[i]) : toOddDouble(x[i]);
      else
        out[i] = isFinal ? static_cast<double>(zeroExtend(x[i], width))
                         : toOddDouble(zeroExtend(x[i], width));
    }
    frame.set(op->getResult(0), std::move(out));
    return success();
  });
}

/// Reinterprets bits. A floating-point source is rounded to its type first in either precision.
static LogicalResult runBitcast(Frame &frame, Operation *op) {
  const Datum &source = frame.get(op->getOperand(0));
  Type from = getElementTypeOrSelf(op->getOperand(0).getType()),
       to = getElementTypeOrSelf(op->getResult(0).getType());
  size_t count = source.floats ? source.floats->size() : source.ints->size();
  auto bitsAt = [&](size_t i) -> uint64_t {
    return source.floats ? encodeFloat(cast<FloatType>(from), (*source.floats)[i])
                         : (*source.ints)[i];
  };
  if (auto floatType = dyn_cast<FloatType>(to)) {
    Floats out(count);
    for (size_t i = 0; i < count; ++i)
      out[i] = decodeFloat(floatType, bitsAt(i));
    frame.set(op->getResult(0), std::move(out));
    return success();
  }
  Ints out(count);
  for (size_t i = 0; i < count; ++i)
    out[i] = bitsAt(i);
  frame.set(op->getResult(0), std::move(out));
  return success();
}

static void addConversionHandlers(HandlerTable &table) {
  table.add<arith::ExtFOp>(runFloatConversion);
  table.add<arith::TruncFOp>(runFloatConversion);
  addFloatToInt<arith::FPToSIOp, int64_t>(table);
  addFloatToInt<arith::FPToUIOp, uint64_t>(table);
  addIntToFloat<arith::SIToFPOp, true>(table);
  addIntToFloat<arith::UIToFPOp, false>(table);
  table.add<arith::BitcastOp>(runBitcast);
  // `Frame::set` wraps to the new width.
  auto keep = [](int64_t x, unsigned) { return x; };
  auto zero = [](int64_t x, unsigned width) { return zeroExtend(x, width); };
  addIntUnary<arith::ExtSIOp>(table, keep);
  addIntUnary<arith::ExtUIOp>(table, zero);
  addIntUnary<arith::TruncIOp>(table, keep);
  addIntUnary<arith::IndexCastOp>(table, keep);
  addIntUnary<arith::IndexCastUIOp>(table, zero);
}

//===----------------------------------------------------------------------===//
// Floating point
//===----------------------------------------------------------------------===//

static void addFloatHandlers(HandlerTable &table) {
  addFloatUnary<arith::NegFOp>(table, [](double x) { return -x; });
  addSum<arith::AddFOp>(table, [](double x, double y) { return x + y; });
  addSum<arith::SubFOp>(table, [](double x, double y) { return x - y; });
  addFloatBinary<arith::MulFOp>(
      table, [](double x, double y) { return x * y; }, &Frame::setProduct);
  addFloatBinary<arith::DivFOp>(table, [](double x, double y) { return x / y; });
  addFloatBinary<arith::RemFOp>(table, [](double x, double y) { return std::fmod(x, y); });
  addFloatBinary<arith::MaximumFOp>(table, [](double x, double y) { return maximum(x, y); });
  addFloatBinary<arith::MinimumFOp>(table, [](double x, double y) { return minimum(x, y); });
  addFloatBinary<arith::MaxNumFOp>(table, [](double x, double y) { return maximumNumber(x, y); });
  addFloatBinary<arith::MinNumFOp>(table, [](double x, double y) { return minimumNumber(x, y); });
}

void interp::addArithHandlers(HandlerTable &table) {
  addWrappingHandlers(table);
  addDivisionHandlers(table);
  addExtendedHandlers(table);
  table.add<arith::CmpIOp>(runCmpI);
  table.add<arith::CmpFOp>(runCmpF);
  table.add<arith::SelectOp>(runSelect);
  addConversionHandlers(table);
  addFloatHandlers(table);
}
