//===- MathHandlers.cpp - Operations of the math dialect, and sigmoid -----===//
//
// Each function is computed in double by the C library and rounded once, but for exponentials that
// tile-polynomial-exp marks and for an approximate tanh.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/PolynomialExp.h"
#include "dialects/Tile/Tile.h"
#include "lib/Interpreter/Elementwise.h"
#include "lib/Support/Rounding.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

/// exp2(scale * x) as `function` gives it, or as the machine does where that is marked: by a
/// polynomial. Which elements are polynomials depends on their places in registers; here all are.
template <typename OpT, typename Fn>
static void addMarkedExponential(HandlerTable &table, double scale, Fn function) {
  table.add<OpT>([scale, function](Frame &frame, Operation *op) {
    ArrayRef<double> x = frame.floats(op->getOperand(0));
    Floats out(x.size());
    bool isPolynomial =
        frame.isRounded() && op->hasAttr(tile::TileDialect::PolynomialAttrHelper::getNameStr());
    bool isPrecise = op->hasAttr(tile::TileDialect::PolynomialPreciseAttrHelper::getNameStr());
    auto polynomial = isPrecise ? tile::precisePolynomialExp2 : tile::polynomialExp2;
    for (size_t i = 0, e = x.size(); i != e; ++i)
      out[i] = isPolynomial ? polynomial(scale * x[i]) : function(x[i]);
    frame.set(op->getResult(0), std::move(out));
    return success();
  });
}

static void addExponentialHandlers(HandlerTable &table) {
  addMarkedExponential<math::ExpOp>(table, 1.4426950408889634,
                                    [](double x) { return std::exp(x); });
  addMarkedExponential<math::Exp2Op>(table, 1.0, [](double x) { return std::exp2(x); });
  addFloatUnary<tile::SigmoidOp>(table, [](double x) { return 1 / (1 + std::exp(-x)); });
  addFloatUnary<math::ExpM1Op>(table, [](double x) { return std::expm1(x); });
  addFloatUnary<math::LogOp>(table, [](double x) { return std::log(x); }, &Frame::setProduct);
  addFloatUnary<math::Log2Op>(table, [](double x) { return std::log2(x); });
  addFloatUnary<math::Log10Op>(table, [](double x) { return std::log10(x); });
  addFloatUnary<math::Log1pOp>(table, [](double x) { return std::log1p(x); }, &Frame::setProduct);
  addFloatUnary<math::SqrtOp>(table, [](double x) { return std::sqrt(x); });
  addFloatUnary<math::RsqrtOp>(table, [](double x) { return 1 / std::sqrt(x); });
  addFloatUnary<math::CbrtOp>(table, [](double x) { return std::cbrt(x); });
  addFloatUnary<math::ErfOp>(table, [](double x) { return std::erf(x); });
  addFloatUnary<math::ErfcOp>(table, [](double x) { return std::erfc(x); });
  addFloatBinary<math::PowFOp>(table, [](double x, double y) { return std::pow(x, y); });
}

/// The machine's approximation has a relative error of 2^-11: so much is lost by rounding to 11
/// bits.
static double roundTo11Bits(double x) {
  int exponent;
  double fraction = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, 11)), exponent - 11);
}

static LogicalResult runTanh(Frame &frame, Operation *op) {
  ArrayRef<double> x = frame.floats(op->getOperand(0));
  bool isApproximate =
      frame.isRounded() &&
      arith::bitEnumContainsAll(cast<math::TanhOp>(op).getFastmath(), arith::FastMathFlags::afn);
  Floats out(x.size());
  for (size_t i = 0, e = x.size(); i != e; ++i)
    out[i] = isApproximate ? roundTo11Bits(std::tanh(x[i])) : std::tanh(x[i]);
  frame.set(op->getResult(0), std::move(out));
  return success();
}

static void addTrigonometricHandlers(HandlerTable &table) {
  addFloatUnary<math::SinOp>(table, [](double x) { return std::sin(x); });
  addFloatUnary<math::CosOp>(table, [](double x) { return std::cos(x); });
  addFloatUnary<math::TanOp>(table, [](double x) { return std::tan(x); });
  addFloatUnary<math::AsinOp>(table, [](double x) { return std::asin(x); });
  addFloatUnary<math::AcosOp>(table, [](double x) { return std::acos(x); });
  addFloatUnary<math::AtanOp>(table, [](double x) { return std::atan(x); });
  addFloatUnary<math::SinhOp>(table, [](double x) { return std::sinh(x); });
  addFloatUnary<math::CoshOp>(table, [](double x) { return std::cosh(x); });
  table.add<math::TanhOp>(runTanh);
  addFloatUnary<math::AsinhOp>(table, [](double x) { return std::asinh(x); });
  addFloatUnary<math::AcoshOp>(table, [](double x) { return std::acosh(x); });
  addFloatUnary<math::AtanhOp>(table, [](double x) { return std::atanh(x); });
  addFloatBinary<math::Atan2Op>(table, [](double x, double y) { return std::atan2(x, y); });
  table.add<math::SincosOp>([](Frame &frame, Operation *op) {
    ArrayRef<double> x = frame.floats(op->getOperand(0));
    Floats sine(x.size()), cosine(x.size());
    for (size_t i = 0, e = x.size(); i != e; ++i) {
      sine[i] = std::sin(x[i]);
      cosine[i] = std::cos(x[i]);
    }
    frame.set(op->getResult(0), std::move(sine));
    frame.set(op->getResult(1), std::move(cosine));
    return success();
  });
}

static void addRoundingHandlers(HandlerTable &table) {
  addFloatUnary<math::AbsFOp>(table, [](double x) { return std::fabs(x); });
  addFloatUnary<math::FloorOp>(table, [](double x) { return std::floor(x); });
  addFloatUnary<math::CeilOp>(table, [](double x) { return std::ceil(x); });
  addFloatUnary<math::TruncOp>(table, [](double x) { return std::trunc(x); });
  addFloatUnary<math::RoundOp>(table, [](double x) { return std::round(x); });
  // The default rounding mode, which nothing here changes, is to nearest even.
  addFloatUnary<math::RoundEvenOp>(table, [](double x) { return std::nearbyint(x); });
  addFloatBinary<math::CopySignOp>(table, [](double x, double y) { return std::copysign(x, y); });
}

/// a * b + c, rounded once to the result's type.
static LogicalResult runFma(Frame &frame, Operation *op) {
  ArrayRef<double> a = frame.floats(op->getOperand(0)), b = frame.floats(op->getOperand(1)),
                   c = frame.floats(op->getOperand(2));
  bool isDouble = frame.program.precision == Precision::Exact ||
                  getElementTypeOrSelf(op->getResult(0).getType()).isF64();
  Floats out(a.size());
  for (size_t i = 0, e = a.size(); i != e; ++i)
    out[i] = isDouble ? std::fma(a[i], b[i], c[i]) : fusedToOdd(a[i], b[i], c[i]);
  frame.set(op->getResult(0), std::move(out));
  return success();
}

/// NaN when any operand is, as a chain of maximumf and minimumf.
static LogicalResult runClamp(Frame &frame, Operation *op) {
  ArrayRef<double> x = frame.floats(op->getOperand(0)), low = frame.floats(op->getOperand(1)),
                   high = frame.floats(op->getOperand(2));
  Floats out(x.size());
  for (size_t i = 0, e = x.size(); i != e; ++i)
    out[i] = minimum(maximum(x[i], low[i]), high[i]);
  frame.set(op->getResult(0), std::move(out));
  return success();
}

static LogicalResult runFPowI(Frame &frame, Operation *op) {
  ArrayRef<double> x = frame.floats(op->getOperand(0));
  ArrayRef<int64_t> y = frame.ints(op->getOperand(1));
  Floats out(x.size());
  for (size_t i = 0, e = x.size(); i != e; ++i)
    out[i] = std::pow(x[i], static_cast<double>(y[i]));
  frame.set(op->getResult(0), std::move(out));
  return success();
}

/// x^y with wrapping products; a negative power is 0 except of 1 and -1.
static uint64_t integerPower(int64_t x, int64_t y) {
  if (y < 0) {
    if (x == 1 || x == -1)
      return y % 2 ? x : 1;
    return 0;
  }
  uint64_t result = 1, factor = x;
  for (; y; y >>= 1, factor *= factor)
    if (y & 1)
      result *= factor;
  return result;
}

static LogicalResult runIPowI(Frame &frame, Operation *op) {
  ArrayRef<int64_t> x = frame.ints(op->getOperand(0)), y = frame.ints(op->getOperand(1));
  Ints out(x.size());
  for (size_t i = 0, e = x.size(); i != e; ++i) {
    if (x[i] == 0 && y[i] < 0)
      return frame.fail(op, "raises 0 to the power " + Twine(y[i]));
    out[i] = integerPower(x[i], y[i]);
  }
  frame.set(op->getResult(0), std::move(out));
  return success();
}

static void addIntegerHandlers(HandlerTable &table) {
  addIntUnary<math::AbsIOp>(table, [](int64_t x, unsigned) { return x < 0 ? 0 - uint64_t(x) : x; });
  addIntUnary<math::CtPopOp>(
      table, [](int64_t x, unsigned width) { return llvm::popcount(zeroExtend(x, width)); });
  addIntUnary<math::CountLeadingZerosOp>(table, [](int64_t x, unsigned width) {
    return llvm::countl_zero(zeroExtend(x, width)) - (64 - static_cast<int>(width));
  });
  addIntUnary<math::CountTrailingZerosOp>(table, [](int64_t x, unsigned width) {
    return std::min<int>(llvm::countr_zero(zeroExtend(x, width)), width);
  });
}

/// A classification of elements: `function(x, smallest normal number of x's type)`.
template <typename OpT, typename Fn>
static void addClassifier(HandlerTable &table, Fn function) {
  table.add<OpT>([function](Frame &frame, Operation *op) {
    ArrayRef<double> x = frame.floats(op->getOperand(0));
    auto type = cast<FloatType>(getElementTypeOrSelf(op->getOperand(0).getType()));
    double smallestNormal =
        toDouble(llvm::APFloat::getSmallestNormalized(type.getFloatSemantics()));
    Ints out(x.size());
    for (size_t i = 0, e = x.size(); i != e; ++i)
      out[i] = function(x[i], smallestNormal) ? -1 : 0;
    frame.set(op->getResult(0), std::move(out));
    return success();
  });
}

void interp::addMathHandlers(HandlerTable &table) {
  addExponentialHandlers(table);
  addTrigonometricHandlers(table);
  addRoundingHandlers(table);
  addIntegerHandlers(table);
  table.add<math::FmaOp>(runFma);
  table.add<math::ClampFOp>(runClamp);
  table.add<math::FPowIOp>(runFPowI);
  table.add<math::IPowIOp>(runIPowI);
  addClassifier<math::IsFiniteOp>(table, [](double x, double) { return std::isfinite(x); });
  addClassifier<math::IsInfOp>(table, [](double x, double) { return std::isinf(x); });
  addClassifier<math::IsNaNOp>(table, [](double x, double) { return x != x; });
  addClassifier<math::IsNormalOp>(table, [](double x, double smallestNormal) {
    return std::isfinite(x) && std::fabs(x) >= smallestNormal;
  });
}
