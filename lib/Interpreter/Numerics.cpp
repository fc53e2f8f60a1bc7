//===- Numerics.cpp - Elements of tiles as doubles and 64-bit integers ----===//

#include "lib/Interpreter/Numerics.h"
#include "lib/Interpreter/Interpreter.h"
#include "lib/Support/Rounding.h"
#include "llvm/ADT/APFloat.h"
#include <cmath>

using namespace mlir;

namespace tessera::interp {

bool isSupportedFloat(Type type) {
  auto floatType = dyn_cast<FloatType>(type);
  return floatType && floatType.getWidth() <= 64 &&
         llvm::APFloat::isRepresentableBy(floatType.getFloatSemantics(),
                                          llvm::APFloat::IEEEdouble());
}

bool isSupportedInt(Type type) {
  return type.isIndex() || (type.isSignlessInteger() && type.getIntOrFloatBitWidth() >= 1 &&
                            type.getIntOrFloatBitWidth() <= 64);
}

unsigned intWidth(Type type) { return type.isIndex() ? 64 : type.getIntOrFloatBitWidth(); }

static llvm::APFloat roundToSemantics(FloatType type, double value) {
  llvm::APFloat result(value);
  bool losesInfo;
  result.convert(type.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return result;
}

double toDouble(const llvm::APFloat &value) {
  llvm::APFloat wide(value);
  bool losesInfo;
  wide.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return wide.convertToDouble();
}

template <typename Round>
static void applyAll(MutableArrayRef<double> values, Round round) {
  for (double &value : values)
    value = round(value);
}

void roundAll(Type type, MutableArrayRef<double> values) {
  if (type.isF64())
    return;
  if (type.isF32())
    return applyAll(values, [](double x) { return roundToF32(x); });
  if (type.isBF16())
    return applyAll(values, [](double x) { return roundToBF16(x); });
  if (type.isF16())
    return applyAll(values, [](double x) { return roundToF16(x); });
  if (isa<Float8E4M3FNType>(type))
    return applyAll(values, [](double x) { return roundToE4M3(x); });
  if (isa<Float8E5M2Type>(type))
    return applyAll(values, [](double x) { return roundToE5M2(x); });
  applyAll(values, [&](double x) { return toDouble(roundToSemantics(cast<FloatType>(type), x)); });
}

uint64_t encodeFloat(FloatType type, double value) {
  roundAll(type, value);
  return roundToSemantics(type, value).bitcastToAPInt().getZExtValue();
}

double decodeFloat(FloatType type, uint64_t bits) {
  return toDouble(
      llvm::APFloat(type.getFloatSemantics(), llvm::APInt(type.getWidth(), bits, false, true)));
}

double maximum(double a, double b) {
  if (a != a || b != b)
    return a != a ? a : b;
  return maximumNumber(a, b);
}
double minimum(double a, double b) { return -maximum(-a, -b); }

double maximumNumber(double a, double b) {
  if (a == b) // Only zeros of different sign are equal and distinct.
    return std::signbit(a) ? b : a;
  return a > b || b != b ? a : b;
}
double minimumNumber(double a, double b) { return -maximumNumber(-a, -b); }

} // namespace tessera::interp

double tessera::roundToType(Type type, double value) {
  if (isa<IntegerType>(type)) {
    double limit = std::ldexp(1.0, type.getIntOrFloatBitWidth() - 1);
    return value != value ? 0 : std::clamp(std::nearbyint(value), -limit, limit - 1);
  }
  interp::roundAll(type, value);
  return value;
}
