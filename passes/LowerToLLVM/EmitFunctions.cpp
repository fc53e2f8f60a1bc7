//===- EmitFunctions.cpp - Quotients, logarithms and angles ---------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "passes/Analysis/IndexFunctions.h"
#include "passes/LowerToLLVM/Emitter.h"
#include <array>
#include <cmath>

using namespace mlir;
using namespace tessera;

/// Whether `value` is a constant that div.approx divides by, which gives 0 for larger ones (PTX ISA
/// 9.7.3.8).
static bool isModerateConstant(Value value) {
  FloatAttr constant;
  if (!matchPattern(value, m_Constant(&constant)))
    return false;
  double size = std::fabs(constant.getValueAsDouble());
  return size >= 0x1p-126 && size <= 0x1p126;
}

/// A reciprocal is right for all divisors (PTX ISA 9.7.3.14), as is div.full, which scales its
/// operands. What may be approximate in the sense of LLVM's `afn` is div.approx.
Value Emitter::emitDivision(arith::DivFOp op, Value a, Value b) {
  if (!mayBeApproximate(op) && !matchPattern(a, m_OneFloat()) && !isModerateConstant(b))
    return intrinsic("llvm.nvvm.div.full.ftz", a.getType(), {a, b});
  auto approximate = LLVM::FastmathFlagsAttr::get(
      op->getContext(), LLVM::FastmathFlags::afn | LLVM::FastmathFlags::contract);
  return LLVM::FDivOp::create(builder, loc, a.getType(), a, b, approximate);
}

/// The operand of a sine or cosine, brought to -pi to pi, from where the machine's have a small
/// error (PTX ISA 9.7.3.18): less the nearest multiple of 2 pi, in two parts. A fused multiply-add
/// rounds once, and the first difference is exact.
Value Emitter::reduceAngle(Value x) {
  constexpr float perTurn = 0x1.45f306p-3f, turn = 0x1.921fb6p+2f, rest = -0x1.777a5cp-23f;
  constexpr float toInteger = 0x1.8p23f;
  Type f32Type = builder.getF32Type();
  auto fma = [&](Value a, Value b, Value c) {
    return intrinsic("llvm.nvvm.fma.rn.f", f32Type, {a, b, c});
  };
  Value rounded = fma(x, f32(perTurn), f32(toInteger));
  Value turns = LLVM::FAddOp::create(builder, loc, f32Type, rounded, f32(-toInteger));
  return fma(turns, f32(-rest), fma(turns, f32(-turn), x));
}

/// Near 0 the polynomial in `variable` of these coefficients, from the highest degree down, times
/// `x`, and `far` where |x| is `limit` or more.
Value Emitter::chooseNearZero(Value x, Value variable, ArrayRef<double> coefficients, double limit,
                              Value far) {
  Type type = x.getType();
  auto contract = LLVM::FastmathFlagsAttr::get(builder.getContext(), LLVM::FastmathFlags::contract);
  Value sum = f32(coefficients.front());
  for (double next : coefficients.drop_front())
    sum = LLVM::FMAOp::create(builder, loc, type, sum, variable, f32(next), contract);
  Value near = LLVM::FMulOp::create(builder, loc, type, sum, x, contract);
  Value size = LLVM::FAbsOp::create(builder, loc, type, x, contract);
  Value isNear = LLVM::FCmpOp::create(builder, loc, LLVM::FCmpPredicate::olt, size, f32(limit));
  return LLVM::SelectOp::create(builder, loc, isNear, near, far);
}

/// The machine's logarithm has an error of 2^-22 near 1, where it is 0 itself (PTX ISA 9.7.3.20).
/// That of 1 + x has none of it for x between -1/4 and 1/4, as a polynomial is taken there: the
/// best in relative terms of those that are x at 0, to 2^-22.7. Beyond, that error is 2^-20.3 of
/// it.
Value Emitter::emitLogarithm(Operation *op, Value x) {
  // log(1 + x) / x
  constexpr std::array<double, 7> coefficients = {0.15446247517215094,
                                                  -0.18162523684146033,
                                                  0.19967442770631792,
                                                  -0.24951086970390753,
                                                  0.33333553098743321,
                                                  -0.50000395736605734,
                                                  1.0};
  constexpr double ln2 = 0.6931471805599453;
  Type type = x.getType();
  auto contract = LLVM::FastmathFlagsAttr::get(op->getContext(), LLVM::FastmathFlags::contract);
  Value argument = x;
  if (isa<math::Log1pOp>(op))
    argument = LLVM::FAddOp::create(builder, loc, type, x, f32(1.0), contract);
  Value binary = intrinsic("llvm.nvvm.lg2.approx.ftz.f", type, argument);
  if (isa<math::Log2Op>(op))
    return binary;
  Value natural = LLVM::FMulOp::create(builder, loc, type, binary, f32(ln2), contract);
  if (isa<math::LogOp>(op))
    return natural;
  return chooseNearZero(x, x, coefficients, 0.25, natural);
}
