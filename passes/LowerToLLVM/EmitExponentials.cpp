//===- EmitExponentials.cpp - Exponentials, also on the FMA pipes ---------===//

#include "dialects/Tile/PolynomialExp.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/Analysis/IndexFunctions.h"
#include "passes/LowerToLLVM/Emitter.h"

using namespace mlir;
using namespace tessera;

/// True for a tile of few different values: what is made of them once serves many elements.
static bool isUniform(Value tile) {
  Operation *source = tile.getDefiningOp();
  return source && isa<tile::SplatOp, tile::BroadcastOp, arith::ConstantOp>(source);
}

/// The operand of `op` on the given side, where it is uniform and `op` has no use but the one that
/// asks.
static bool hasUniform(Operation *op, unsigned side) {
  return op->hasOneUse() && isUniform(op->getOperand(side));
}

namespace {
/// tile * factors + offsets, element by element, where factors and offsets have few different
/// values.
class LinearForm {
public:
  using Values = SmallVector<Value>;
  LinearForm(OpBuilder &builder, Location loc, Value tile, Value factor, Value offset, size_t size)
      : tile(tile), factors(size, factor), offsets(size, offset), builder(builder), loc(loc) {}

  /// Takes a multiplication or an addition of uniform values into the form, so that it need not be
  /// computed; `elements` gives those of a tile. False when the tile is nothing of that kind.
  bool takeIn(llvm::function_ref<Values(Value)> elements) {
    Operation *op = tile.getDefiningOp();
    if (!op || !isa<arith::MulFOp, arith::AddFOp, arith::SubFOp>(op))
      return false;
    unsigned side = hasUniform(op, 1) ? 1 : 0;
    if (!hasUniform(op, side))
      return false;
    const Values uniform = elements(op->getOperand(side));
    // b - t = (-1) t + b; t - b = t + (-1) b.
    bool negatesTile = isa<arith::SubFOp>(op) && side == 0;
    bool negatesOffset = isa<arith::SubFOp>(op) && side == 1;
    for (auto [value, factor, offset] : llvm::zip_equal(uniform, factors, offsets)) {
      if (isa<arith::MulFOp>(op)) {
        factor = times(value, factor);
        continue;
      }
      offset = plus(offset, value, negatesOffset ? negated(factor) : factor);
      if (negatesTile)
        factor = negated(factor);
    }
    tile = op->getOperand(1 - side);
    return true;
  }

  Value tile;
  Values factors, offsets;

private:
  Value times(Value a, Value b) {
    Value &result = made[{a, {b, Value()}}];
    if (!result)
      result = LLVM::FMulOp::create(builder, loc, a.getType(), a, b);
    return result;
  }
  Value negated(Value a) {
    Value &result = made[{a, {Value(), Value()}}];
    if (!result)
      result = LLVM::FNegOp::create(builder, loc, a);
    return result;
  }
  /// sum + a * b
  Value plus(Value sum, Value a, Value b) {
    Value &result = made[{sum, {a, b}}];
    if (!result)
      result = LLVM::FMAOp::create(builder, loc, a.getType(), a, b, sum);
    return result;
  }

  OpBuilder &builder;
  Location loc;
  /// What is the same for several elements is computed once.
  llvm::DenseMap<std::pair<Value, std::pair<Value, Value>>, Value> made;
};
} // namespace

/// tile::polynomialExp2 behind `position`, in seven instructions.
Value Emitter::polynomialExp2(Value position) {
  using namespace tile::polynomial_exp;
  Type f32Type = builder.getF32Type(), i32Type = builder.getI32Type();
  auto fma = [&](StringRef mode, Value a, Value b, Value c) {
    return intrinsic(("llvm.nvvm.fma." + mode + ".f").str(), f32Type, {a, b, c});
  };
  Value octave = fma("rp", position, f32(kOctaves), f32(kFirst));
  Value number = LLVM::FAddOp::create(builder, loc, f32Type, octave, f32(-kFirst));
  Value fraction = fma("rn", position, f32(-kOctaves), number);
  Value power = f32(kCoefficients.front());
  for (float coefficient : ArrayRef<float>(kCoefficients).drop_front())
    power = fma("rn", power, fraction, f32(coefficient));
  Value octaveBits = LLVM::BitcastOp::create(builder, loc, i32Type, octave);
  Value powerBits = LLVM::BitcastOp::create(builder, loc, i32Type, power);
  Value scaled =
      LLVM::MulOp::create(builder, loc, octaveBits, i32(static_cast<int32_t>(kFieldFactor)));
  Value bits = LLVM::AddOp::create(builder, loc, scaled, powerBits);
  return LLVM::BitcastOp::create(builder, loc, f32Type, bits);
}

/// tile::precisePolynomialExp2, in ten instructions.
Value Emitter::precisePolynomialExp2(Value exponent) {
  using namespace tile::precise_exp;
  Type f32Type = builder.getF32Type(), i32Type = builder.getI32Type();
  auto fma = [&](StringRef mode, Value a, Value b, Value c) {
    return intrinsic(("llvm.nvvm.fma." + mode + ".f").str(), f32Type, {a, b, c});
  };
  Value position = fma("rn.sat", exponent, f32(-1.0f / kOctaves), f32(kTop));
  Value octave = fma("rn", position, f32(kOctaves), f32(kFirst));
  Value zero = fma("rn", octave, f32(-0.5), f32(kMiddle));
  Value place = fma("rn.sat", exponent, f32(-0.5), zero);
  Value power = f32(kCoefficients.front());
  for (float coefficient : ArrayRef<float>(kCoefficients).drop_front())
    power = fma("rn", power, place, f32(coefficient));
  Value octaveBits = LLVM::BitcastOp::create(builder, loc, i32Type, octave);
  Value powerBits = LLVM::BitcastOp::create(builder, loc, i32Type, power);
  Value scaled = LLVM::MulOp::create(builder, loc, octaveBits, i32(-(1 << 23)));
  Value bits = LLVM::AddOp::create(builder, loc, scaled, powerBits);
  return LLVM::BitcastOp::create(builder, loc, f32Type, bits);
}

/// What the machine's exponential, of base 2, takes of the operand of `op`, which is made of one.
std::optional<double> Emitter::exponentialScale(Operation *op) {
  constexpr double log2e = 1.4426950408889634;
  if (!getElementTypeOrSelf(op->getResult(0)).isF32())
    return std::nullopt;
  if (isa<math::ExpOp>(op))
    return log2e;
  if (isa<tile::SigmoidOp>(op))
    return -log2e;
  if (isa<math::TanhOp>(op) && !mayBeApproximate(op))
    return 2 * log2e;
  return std::nullopt;
}

/// The result of `op`, whose operand is `exponent` over its exponentialScale.
Value Emitter::emitExponential(Operation *op, Value exponent) {
  Type type = exponent.getType();
  auto flags = [&](LLVM::FastmathFlags flags) {
    return LLVM::FastmathFlagsAttr::get(op->getContext(), flags | LLVM::FastmathFlags::contract);
  };
  auto contract = flags(LLVM::FastmathFlags::none);
  Value power = LLVM::Exp2Op::create(builder, loc, type, exponent, flags(LLVM::FastmathFlags::afn));
  if (isa<math::ExpOp>(op))
    return power;
  Value denominator = LLVM::FAddOp::create(builder, loc, type, power, f32(1.0), contract);
  // A reciprocal of infinity or of what is close to it is 0; a division takes care of more.
  Value reciprocal = intrinsic("llvm.nvvm.rcp.approx.ftz.f", type, denominator);
  if (isa<tile::SigmoidOp>(op))
    return reciprocal;
  // tanh is 1 - 2 / (exp(2x) + 1): exact at both ends, absolute error of a few 2^-24 between.
  Value twice = LLVM::FMulOp::create(builder, loc, type, reciprocal, f32(2.0), contract);
  Value far = LLVM::FSubOp::create(builder, loc, type, f32(1.0), twice, contract);
  return chooseTanh(exponent, far);
}

/// tanh where 2^exponent is exp(2x), and `far` is what that gives. For x below 1/4 it is an odd
/// polynomial, the best in relative terms of those that are x at 0, to 2^-21. It is one in the
/// exponent, as that is there.
Value Emitter::chooseTanh(Value exponent, Value far) {
  constexpr double perExponent = 0.34657359027997264; // ln(2) / 2
  constexpr double square = perExponent * perExponent;
  // tanh(x) / x, a polynomial in x^2
  constexpr double c2 = 0.12876421259429786, c1 = -0.33324571413088645;
  auto contract = LLVM::FastmathFlagsAttr::get(builder.getContext(), LLVM::FastmathFlags::contract);
  Value squared =
      LLVM::FMulOp::create(builder, loc, exponent.getType(), exponent, exponent, contract);
  return chooseNearZero(
      exponent, squared,
      {c2 * square * square * perExponent, c1 * square * perExponent, perExponent},
      0.25 / perExponent, far);
}

/// Emits `op`, made of an exponential, where its operand is a product with uniform factors: these
/// take in the scale. False where there is none.
bool Emitter::emitExponentialOfProduct(Operation *op) {
  std::optional<double> scale = exponentialScale(op);
  if (!scale)
    return false;
  Value operand = op->getOperand(0);
  LinearForm form(builder, loc, operand, f32(*scale), f32(0.0), elements(operand).size());
  while (form.tile.getDefiningOp<arith::MulFOp>() &&
         form.takeIn([&](Value tile) { return elements(tile); }))
    ;
  if (form.tile == operand)
    return false;
  auto contract = LLVM::FastmathFlagsAttr::get(op->getContext(), LLVM::FastmathFlags::contract);
  Values results = elements(form.tile);
  for (auto [value, factor] : llvm::zip_equal(results, form.factors))
    value = LLVM::FMulOp::create(builder, loc, value.getType(), value, factor, contract);
  for (Value &value : results)
    value = emitExponential(op, value);
  bind(op->getResult(0), std::move(results));
  return true;
}

/// `sixteenths` of 16 elements by polynomials, evenly among the others, so that both pipes have
/// work all the time. For one of third degree, the position of an exponent is how many octaves it
/// is below the largest, as a part of all of them, saturated to 0 to 1, which costs nothing. What
/// the exponent is multiplied with and what is added to it is part of the same instruction.
void Emitter::emitExponentials(Operation *op, int64_t sixteenths) {
  double scale = exponentialScale(op).value_or(1.0);
  bool isPrecise =
      tile::TileDialect::PolynomialPreciseAttrHelper(op->getContext()).isAttrPresent(op);
  Type f32Type = builder.getF32Type();
  const Values exponents = elements(op->getOperand(0));
  LinearForm form(builder, loc, op->getOperand(0),
                  f32(-1.0 / tile::polynomial_exp::kOctaves * scale),
                  f32(tile::polynomial_exp::kTop), exponents.size());
  while (!isPrecise && form.takeIn([&](Value tile) { return elements(tile); }))
    ;
  const Values tile = elements(form.tile);
  auto polynomial = [&](size_t i) -> Value {
    if (!isPrecise)
      return polynomialExp2(intrinsic("llvm.nvvm.fma.rn.sat.f", f32Type,
                                      {tile[i], form.factors[i], form.offsets[i]}));
    return precisePolynomialExp2(
        scale == 1.0 ? exponents[i]
                     : LLVM::FMulOp::create(builder, loc, f32Type, exponents[i], f32(scale)));
  };
  Values results;
  for (size_t i = 0; i < exponents.size(); ++i) {
    bool isPolynomial =
        (i + 1) * sixteenths / tile::kExponentialShares > i * sixteenths / tile::kExponentialShares;
    results.push_back(isPolynomial ? polynomial(i) : emitScalar(op, exponents[i]));
  }
  bind(op->getResult(0), std::move(results));
}
