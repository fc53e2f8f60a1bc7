//===- DerivativeRules.cpp - Derivatives of operations on scalars ---------===//
//
// One rule for each operation. Rules use results where that saves a function: the
// derivative of exp is its result.
//
//===----------------------------------------------------------------------===//

#include "passes/Tile/DerivativeRules.h"
#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;

namespace {
constexpr double kLn2 = 0.69314718055994530942;

/// The arithmetic of the rules, on values of one type.
class Arithmetic {
public:
  explicit Arithmetic(ImplicitLocOpBuilder &builder) : builder(builder) {}

  Value constant(Value like, double value) {
    return arith::ConstantOp::create(builder, builder.getFloatAttr(like.getType(), value));
  }
  Value multiply(Value a, Value b) { return arith::MulFOp::create(builder, a, b); }
  Value multiply(Value a, double b) { return multiply(a, constant(a, b)); }
  Value divide(Value a, Value b) { return arith::DivFOp::create(builder, a, b); }
  Value subtract(Value a, Value b) { return arith::SubFOp::create(builder, a, b); }
  Value negate(Value a) { return arith::NegFOp::create(builder, a); }
  Value compare(arith::CmpFPredicate predicate, Value a, Value b) {
    return arith::CmpFOp::create(builder, predicate, a, b);
  }
  Value select(Value condition, Value a, Value b) {
    return arith::SelectOp::create(builder, condition, a, b);
  }

  ImplicitLocOpBuilder &builder;
};
} // namespace

/// The cotangents of what a condition chooses between.
static void addChosen(Arithmetic &of, Value condition, Value cotangent, unsigned whereTrue,
                      AddCotangent add) {
  Value zero = of.constant(cotangent, 0.0);
  add(whereTrue, of.select(condition, cotangent, zero));
  add(whereTrue + 1, of.select(condition, zero, cotangent));
}

/// The cotangent of the operand of `op`, a function of one operand `x` with the result `y`, from
/// `d`, that of the result; null for another operation.
static Value differentiateUnary(Operation *op, Value d, Arithmetic &of) {
  if (op->getNumOperands() != 1)
    return {};
  Value x = op->getOperand(0), y = op->getResult(0);
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](arith::NegFOp) { return of.negate(d); })
      .Case([&](math::ExpOp) { return of.multiply(d, y); })
      .Case([&](math::Exp2Op) { return of.multiply(of.multiply(d, y), kLn2); })
      .Case([&](math::LogOp) { return of.divide(d, x); })
      .Case([&](math::Log2Op) { return of.divide(of.multiply(d, 1 / kLn2), x); })
      .Case([&](math::Log1pOp) {
        return of.divide(d, arith::AddFOp::create(of.builder, of.constant(x, 1.0), x));
      })
      .Case([&](math::SqrtOp) { return of.divide(of.multiply(d, 0.5), y); })
      .Case([&](math::RsqrtOp) {
        return of.multiply(of.multiply(d, -0.5), of.multiply(y, of.multiply(y, y)));
      })
      .Case([&](math::TanhOp) {
        return of.multiply(d, of.subtract(of.constant(d, 1.0), of.multiply(y, y)));
      })
      .Case([&](tile::SigmoidOp) {
        return of.multiply(of.multiply(d, y), of.subtract(of.constant(d, 1.0), y));
      })
      .Case([&](math::SinOp sin) {
        return of.multiply(d, math::CosOp::create(of.builder, x, sin.getFastmath()));
      })
      .Case([&](math::CosOp cos) {
        return of.negate(of.multiply(d, math::SinOp::create(of.builder, x, cos.getFastmath())));
      })
      .Case([&](math::AbsFOp) {
        Value below = of.compare(arith::CmpFPredicate::OLT, x, of.constant(x, 0.0));
        return of.select(below, of.negate(d), d);
      })
      .Case<arith::ExtFOp, arith::TruncFOp>([&](Operation *) -> Value {
        bool isWider = d.getType().getIntOrFloatBitWidth() < x.getType().getIntOrFloatBitWidth();
        if (isWider)
          return arith::ExtFOp::create(of.builder, x.getType(), d);
        return arith::TruncFOp::create(of.builder, x.getType(), d);
      })
      .Default([](Operation *) { return Value(); });
}

LogicalResult tessera::applyDerivativeRule(Operation *op, Value d, ImplicitLocOpBuilder &builder,
                                           AddCotangent add) {
  Arithmetic of(builder);
  if (Value cotangent = differentiateUnary(op, d, of)) {
    add(0, cotangent);
    return success();
  }
  auto operand = [&](unsigned i) { return op->getOperand(i); };
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](arith::AddFOp) {
        add(0, d);
        add(1, d);
        return success();
      })
      .Case([&](arith::SubFOp) {
        add(0, d);
        add(1, of.negate(d));
        return success();
      })
      .Case([&](arith::MulFOp) {
        add(0, of.multiply(d, operand(1)));
        add(1, of.multiply(d, operand(0)));
        return success();
      })
      .Case([&](arith::DivFOp) {
        Value share = of.divide(d, operand(1));
        add(0, share);
        add(1, of.negate(of.multiply(share, op->getResult(0))));
        return success();
      })
      .Case([&](math::FmaOp) {
        add(0, of.multiply(d, operand(1)));
        add(1, of.multiply(d, operand(0)));
        add(2, d);
        return success();
      })
      .Case<arith::MaximumFOp, arith::MaxNumFOp>([&](Operation *) {
        Value first = of.compare(arith::CmpFPredicate::OGE, operand(0), operand(1));
        addChosen(of, first, d, 0, add);
        return success();
      })
      .Case<arith::MinimumFOp, arith::MinNumFOp>([&](Operation *) {
        Value first = of.compare(arith::CmpFPredicate::OLE, operand(0), operand(1));
        addChosen(of, first, d, 0, add);
        return success();
      })
      .Case([&](arith::SelectOp select) {
        addChosen(of, select.getCondition(), d, 1, add);
        return success();
      })
      // Steps: their derivative is 0 but where they have none.
      .Case<math::FloorOp, math::CeilOp>([](Operation *) { return success(); })
      .Default([](Operation *) { return failure(); });
}

StringRef tessera::getDifferentiableOperations() {
  return "arith.addf, subf, mulf, divf, negf, maximumf, maxnumf, minimumf, minnumf, select, extf "
         "and truncf, and "
         "math.absf, ceil, cos, exp, exp2, floor, fma, log, log1p, log2, rsqrt, sin, sqrt and "
         "tanh, "
         "and tile.sigmoid";
}
