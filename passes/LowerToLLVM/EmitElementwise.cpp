//===- EmitElementwise.cpp - arith and math on scalars and tiles ----------===//

#include "dialects/Tile/LoadedIndex.h"
#include "dialects/Tile/PolynomialExp.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "passes/Analysis/IndexFunctions.h"
#include "passes/Analysis/IntegerRanges.h"
#include "passes/LowerToLLVM/Emitter.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;

static bool isPackedTile(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile && hop::isPacked(tile);
}

/// Whether the reduction of what `op` adds has made its result.
bool Emitter::isMadeByReduction(Operation *op) {
  return isa<arith::AddFOp>(op) && llvm::any_of(op->getOperands(), [&](Value operand) {
           auto reduce = operand.getDefiningOp<tile::ReduceOp>();
           return reduce && additionOf(reduce) == op;
         });
}

LogicalResult Emitter::emitElementwise(Operation *op) {
  if (isa<arith::ConstantOp>(op))
    return emitConstant(op);
  if (op->getNumResults() != 1)
    return op->emitError("cannot be lowered to machine code");
  if (isMadeByReduction(op))
    return success();
  Type resultType = op->getResult(0).getType();
  if (isa<arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp>(op) && isPackedTile(resultType))
    return emitPack(op);
  if (isa<arith::ExtFOp>(op) && isPackedTile(op->getOperand(0).getType()))
    return emitUnpack(op);
  if (llvm::any_of(op->getOperandTypes(), isPackedTile) || isPackedTile(resultType))
    return op->emitError(
        "computes on tiles of 16 or 8 bits; extend them with arith.extf, compute in f32 and round "
        "with arith.truncf");
  if (emitAffine(op) || emitAffineFloats(op))
    return success();
  if (auto select = dyn_cast<arith::SelectOp>(op); select && emitMasked(select))
    return success();

  if (IntegerAttr share = tile::TileDialect::PolynomialAttrHelper(op->getContext()).getAttr(op)) {
    emitExponentials(op, share.getInt());
    return success();
  }
  if (emitOfIndex(op) || emitExponentialOfProduct(op))
    return success();

  SmallVector<Values> operands;
  size_t count = 1;
  for (Value operand : op->getOperands()) {
    operands.push_back(elements(operand));
    count = std::max(count, operands.back().size());
  }
  Values results;
  for (size_t i = 0; i < count; ++i) {
    Values arguments;
    for (const Values &operand : operands)
      arguments.push_back(operand.size() == 1 ? operand.front() : operand[i]);
    Value result = emitScalar(op, arguments);
    if (!result)
      return op->emitError(
                 "cannot be lowered to machine code: no Hopper instruction sequence is known for "
                 "it on ")
             << resultType;
    results.push_back(result);
  }
  bind(op->getResult(0), std::move(results));
  return success();
}

LogicalResult Emitter::emitConstant(Operation *op) {
  auto constant = cast<arith::ConstantOp>(op);
  Attribute value = constant.getValue();
  auto tile = dyn_cast<RankedTensorType>(constant.getType());
  if (!tile) {
    if (constant.getType().isIndex())
      value = builder.getI32IntegerAttr(cast<IntegerAttr>(value).getInt());
    bind(constant, {LLVM::ConstantOp::create(builder, loc, lowered(constant.getType()), value)});
    return success();
  }
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense || !dense.isSplat())
    return op->emitError("is a constant tile of different elements; build it from tile.iota");
  int64_t size = hop::FragmentLayout(tile).size();
  if (hop::isPacked(tile)) {
    // In a register that is no other value's: where a product had it as an operand, and an
    // accumulator began with the same bits, both would be one register of the product.
    APInt bits = dense.getSplatValue<APFloat>().bitcastToAPInt();
    Values word = assembly("mov.b32 $0, $1;", "=r,n", i32(APInt::getSplat(32, bits).getZExtValue()),
                           builder.getI32Type());
    bind(constant, Values(size / hop::elementsPerRegister(tile), word.front()));
    return success();
  }
  if (tile.getElementType().isInteger(32) && dense.getSplatValue<APInt>().isSignedIntN(31)) {
    affineTiles[constant] =
        AffineTile::ofAll(i32(dense.getSplatValue<APInt>().getSExtValue()), size);
    return success();
  }
  if (tile.getElementType().isInteger(64)) {
    affineTiles[constant] =
        AffineTile::ofAll(i64(dense.getSplatValue<APInt>().getSExtValue()), size);
    return success();
  }
  Value element = LLVM::ConstantOp::create(builder, loc, tile.getElementType(),
                                           dense.getSplatValue<Attribute>());
  bind(constant, Values(size, element));
  return success();
}

/// Whether the elements of `tile` are made of those of vectors, numbers and indices alone, so that
/// a tile of another shape may have the same.
static bool isMadeOfVectors(Value tile) {
  llvm::SetVector<Value> values;
  values.insert(tile);
  for (size_t i = 0; i < values.size(); ++i) {
    Operation *op = values[i].getDefiningOp();
    if (isa_and_nonnull<tile::BroadcastOp, tile::SplatOp, tile::IotaOp, arith::ConstantOp>(op))
      continue;
    if (!op || !OpTrait::hasElementwiseMappableTraits(op))
      return false;
    values.insert(op->operand_begin(), op->operand_end());
  }
  return true;
}

/// Whether equal registers of `tile` and of another value must stay two: a product reads the tile
/// from registers, and nothing else may use these before it ends.
static bool needsOwnRegisters(Value tile) {
  return llvm::any_of(tile.getUsers(), llvm::IsaPred<hop::MmaIssueOp>) && isMadeOfVectors(tile);
}

/// Two f32 as two elements of 16 or 8 bits (PTX ISA 9.7.9.21, cvt): 8-bit ones saturate.
Value Emitter::roundPair(Type element, Value low, Value high) {
  if (tile::isByteFloat(element)) {
    bool isE4M3 = isa<Float8E4M3FNType>(element);
    return intrinsic(isE4M3 ? "llvm.nvvm.ff.to.e4m3x2.rn" : "llvm.nvvm.ff.to.e5m2x2.rn",
                     builder.getI16Type(), {high, low});
  }
  return intrinsic(element.isBF16() ? "llvm.nvvm.ff2bf16x2.rn" : "llvm.nvvm.ff2f16x2.rn",
                   VectorType::get(2, element), {high, low});
}

/// Rounds the elements that share a register. Of integers, canonicalization makes one conversion of
/// that to f32 and its rounding; it is two again here, and rounds once as far as f32 is exact
/// (2^24).
LogicalResult Emitter::emitPack(Operation *op) {
  auto tile = cast<RankedTensorType>(op->getResult(0).getType());
  Type element = tile.getElementType(), i32Type = builder.getI32Type();
  Values source = elements(op->getOperand(0));
  if (!isa<arith::TruncFOp>(op))
    for (Value &value : source)
      value = isa<arith::SIToFPOp>(op)
                  ? Value(LLVM::SIToFPOp::create(builder, loc, builder.getF32Type(), value))
                  : Value(LLVM::UIToFPOp::create(builder, loc, builder.getF32Type(), value));
  bool owns = needsOwnRegisters(op->getResult(0));
  Values packed;
  for (size_t i = 0; i < source.size(); i += hop::elementsPerRegister(tile)) {
    Value word = roundPair(element, source[i], source[i + 1]);
    if (tile::isByteFloat(element))
      word = joinHalves(word, roundPair(element, source[i + 2], source[i + 3]));
    Value bits = LLVM::BitcastOp::create(builder, loc, i32Type, word);
    packed.push_back(owns ? assembly("mov.b32 $0, $1;", "=r,r", bits, i32Type).front() : bits);
  }
  bind(op->getResult(0), std::move(packed));
  return success();
}

/// Two values of 16 bits side by side.
Value Emitter::joinHalves(Value low, Value high) {
  Value vector = undef(VectorType::get(2, low.getType()));
  vector = LLVM::InsertElementOp::create(builder, loc, vector, low, i32(0));
  return LLVM::InsertElementOp::create(builder, loc, vector, high, i32(1));
}

/// Whether an operation is in a loop that issues products, on a tile whose registers are loaded as
/// they are.
static bool isBesideProducts(Operation *op) {
  auto loop = op->getParentOfType<scf::ForOp>();
  return loop && !op->getOperand(0).getDefiningOp<tile::GatherElementsOp>() &&
         loop.walk([](hop::MmaIssueOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// The elements of registers in f32 or 16 bits; those of 8 bits by way of f16, which has them all.
LogicalResult Emitter::emitUnpack(Operation *op) {
  auto tile = cast<RankedTensorType>(op->getOperand(0).getType());
  Type element = tile.getElementType(), wide = getElementTypeOrSelf(op->getResult(0).getType());
  Values words = elements(op->getOperand(0));
  if (tile::isByteFloat(element)) {
    StringRef name = isa<Float8E4M3FNType>(element) ? "llvm.nvvm.e4m3x2.to.f16x2.rn"
                                                    : "llvm.nvvm.e5m2x2.to.f16x2.rn";
    element = builder.getF16Type();
    Values pairs;
    for (Value half : splitWords(words, builder.getI16Type()))
      pairs.push_back(intrinsic(name, VectorType::get(2, element), half));
    words = std::move(pairs);
  }
  auto pair = VectorType::get(2, element);
  Values unpacked;
  auto addWord = [&](Value vector) {
    unpacked.push_back(LLVM::BitcastOp::create(builder, loc, builder.getI32Type(), vector));
  };
  auto addBits = [&](Value bits) {
    unpacked.push_back(LLVM::BitcastOp::create(builder, loc, builder.getF32Type(), bits));
  };
  // The bits of bf16 are the upper ones of f32. ptxas converts with the special functions, 16 a
  // clock and multiprocessor, which loops with products need for what is beside them. Elsewhere it
  // is left to that: there the other way is not measured.
  bool byBits = element.isBF16() && wide.isF32() &&
                (isBesideProducts(op) || kernel.getSchedule().getFields().keepsOperands());
  for (Value word : words) {
    if (byBits) {
      addBits(LLVM::ShlOp::create(builder, loc, word, i32(16)));
      addBits(LLVM::AndOp::create(builder, loc, word, i32(static_cast<int32_t>(0xffff0000))));
      continue;
    }
    Value vector = LLVM::BitcastOp::create(builder, loc, pair, word);
    if (wide.isF16()) {
      addWord(vector);
      continue;
    }
    size_t first = unpacked.size();
    for (int64_t i = 0; i < 2; ++i) {
      Value half = LLVM::ExtractElementOp::create(builder, loc, vector, i32(i));
      unpacked.push_back(LLVM::FPExtOp::create(builder, loc, builder.getF32Type(), half));
    }
    if (!wide.isF32()) {
      Value rounded = roundPair(wide, unpacked[first], unpacked[first + 1]);
      unpacked.truncate(first);
      addWord(rounded);
    }
  }
  bind(op->getResult(0), std::move(unpacked));
  return success();
}

Value Emitter::emitScalar(Operation *op, ValueRange operands) {
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return LLVM::SelectOp::create(builder, loc, operands[0], operands[1], operands[2]);
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return LLVM::ICmpOp::create(builder, loc,
                                static_cast<LLVM::ICmpPredicate>(compare.getPredicate()),
                                operands[0], operands[1]);
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return LLVM::FCmpOp::create(builder, loc,
                                static_cast<LLVM::FCmpPredicate>(compare.getPredicate()),
                                operands[0], operands[1]);
  if (Value cast = operands.size() == 1 ? emitCast(op, operands[0]) : Value())
    return cast;
  if (Value integer = emitScalarInteger(op, operands))
    return integer;
  return emitScalarFloat(op, operands);
}

/// The nearest number of 32 bits: a number beyond stays one that is outside of any view.
Value Emitter::clampTo32Bits(Value wide) {
  Value least = i64(std::numeric_limits<int32_t>::min()),
        most = i64(std::numeric_limits<int32_t>::max());
  return LLVM::SMinOp::create(builder, loc, LLVM::SMaxOp::create(builder, loc, wide, least), most);
}

Value Emitter::emitCast(Operation *op, Value operand) {
  Type from = operand.getType(), to = getElementTypeOrSelf(op->getResult(0).getType());
  to = lowered(to);
  auto make = [&](auto tag) -> Value { return decltype(tag)::create(builder, loc, to, operand); };
  return TypeSwitch<Operation *, Value>(op)
      .Case<arith::IndexCastOp, arith::IndexCastUIOp>([&](auto) -> Value {
        unsigned fromBits = from.getIntOrFloatBitWidth(), toBits = to.getIntOrFloatBitWidth();
        if (fromBits == toBits)
          return operand;
        if (fromBits > toBits && tile::comesFromMemory(op->getOperand(0)))
          operand = clampTo32Bits(operand);
        if (fromBits > toBits)
          return make(LLVM::TruncOp());
        return isa<arith::IndexCastOp>(op) ? make(LLVM::SExtOp()) : make(LLVM::ZExtOp());
      })
      .Case([&](arith::ExtSIOp) { return make(LLVM::SExtOp()); })
      .Case([&](arith::ExtUIOp) { return make(LLVM::ZExtOp()); })
      .Case([&](arith::TruncIOp) { return make(LLVM::TruncOp()); })
      .Case([&](arith::SIToFPOp) { return make(LLVM::SIToFPOp()); })
      .Case([&](arith::UIToFPOp) { return make(LLVM::UIToFPOp()); })
      .Case([&](arith::FPToSIOp) { return make(LLVM::FPToSIOp()); })
      .Case([&](arith::FPToUIOp) { return make(LLVM::FPToUIOp()); })
      .Case([&](arith::ExtFOp) { return make(LLVM::FPExtOp()); })
      .Case([&](arith::TruncFOp) { return make(LLVM::FPTruncOp()); })
      .Case([&](arith::BitcastOp) { return make(LLVM::BitcastOp()); })
      .Default([](Operation *) { return Value(); });
}

/// Of a shift by as many places as there are, or more, zeros or signs are left; LLVM's leave
/// anything.
Value Emitter::emitShift(Operation *op, Value number, Value places) {
  Type type = number.getType();
  int64_t bits = type.getIntOrFloatBitWidth();
  auto constant = [&](int64_t value) -> Value {
    return LLVM::ConstantOp::create(builder, loc, type, builder.getIntegerAttr(type, value));
  };
  auto shift = [&](auto tag, Value by) -> Value {
    return decltype(tag)::create(builder, loc, number, by);
  };
  IntegerRange range = IntegerRanges().of(op->getOperand(1));
  bool isInside = range.least >= 0 && range.most < bits;
  if (isa<arith::ShRSIOp>(op))
    return shift(LLVM::AShrOp(),
                 isInside ? places
                          : LLVM::UMinOp::create(builder, loc, places, constant(bits - 1)));
  Value shifted =
      isa<arith::ShLIOp>(op) ? shift(LLVM::ShlOp(), places) : shift(LLVM::LShrOp(), places);
  if (isInside)
    return shifted;
  Value holds =
      LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ult, places, constant(bits));
  return LLVM::SelectOp::create(builder, loc, holds, shifted, constant(0));
}

/// A quotient rounded down or a remainder of the elements of a tile by a constant above 0, in the
/// few instructions that it takes where no sign counts; null elsewhere.
Value Emitter::emitElementDivision(Operation *op, Value a, Value b) {
  if (!isa<arith::FloorDivSIOp, arith::DivSIOp, arith::RemSIOp>(op) ||
      !isa<RankedTensorType>(op->getResult(0).getType()))
    return {};
  IntegerRanges ranges;
  IntegerRange divisor = ranges.of(op->getOperand(1));
  if (divisor.least != divisor.most || divisor.least <= 0)
    return {};
  if (isa<arith::FloorDivSIOp>(op) && llvm::isPowerOf2_64(divisor.least)) {
    Value places =
        LLVM::ConstantOp::create(builder, loc, a.getType(),
                                 builder.getIntegerAttr(a.getType(), llvm::Log2_64(divisor.least)));
    return LLVM::AShrOp::create(builder, loc, a, places);
  }
  if (ranges.of(op->getOperand(0)).least < 0)
    return {};
  return isa<arith::RemSIOp>(op) ? Value(LLVM::URemOp::create(builder, loc, a, b))
                                 : Value(LLVM::UDivOp::create(builder, loc, a, b));
}

Value Emitter::emitScalarInteger(Operation *op, ValueRange v) {
  if (Value quotient = v.size() == 2 ? emitElementDivision(op, v[0], v[1]) : Value())
    return quotient;
  auto make = [&](auto tag) -> Value { return decltype(tag)::create(builder, loc, v[0], v[1]); };
  auto less = [&](Value a, Value b) -> Value {
    return LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::slt, a, b);
  };
  auto zero = [&] {
    return LLVM::ConstantOp::create(builder, loc, v[0].getType(),
                                    builder.getIntegerAttr(v[0].getType(), 0));
  };
  /// Quotient rounded towards `up` (ceil) or down (floor), from the truncated one.
  auto roundedDivision = [&](bool up) -> Value {
    Value quotient = LLVM::SDivOp::create(builder, loc, v[0], v[1]);
    Value product = LLVM::MulOp::create(builder, loc, quotient, v[1]);
    Value remainder = LLVM::SubOp::create(builder, loc, v[0], product);
    Value inexact = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, remainder, zero());
    Value opposite = LLVM::XOrOp::create(builder, loc, less(v[0], zero()), less(v[1], zero()));
    if (up)
      opposite = LLVM::XOrOp::create(
          builder, loc, opposite,
          LLVM::ConstantOp::create(builder, loc, builder.getI1Type(), builder.getBoolAttr(true)));
    Value adjust = LLVM::AndOp::create(builder, loc, inexact, opposite);
    Value one = LLVM::ZExtOp::create(builder, loc, quotient.getType(), adjust);
    return up ? Value(LLVM::AddOp::create(builder, loc, quotient, one))
              : Value(LLVM::SubOp::create(builder, loc, quotient, one));
  };
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](arith::AddIOp) { return make(LLVM::AddOp()); })
      .Case([&](arith::SubIOp) { return make(LLVM::SubOp()); })
      .Case([&](arith::MulIOp) { return make(LLVM::MulOp()); })
      .Case([&](arith::DivUIOp) { return make(LLVM::UDivOp()); })
      .Case([&](arith::DivSIOp) { return make(LLVM::SDivOp()); })
      .Case([&](arith::RemUIOp) { return make(LLVM::URemOp()); })
      .Case([&](arith::RemSIOp) { return make(LLVM::SRemOp()); })
      .Case([&](arith::AndIOp) { return make(LLVM::AndOp()); })
      .Case([&](arith::OrIOp) { return make(LLVM::OrOp()); })
      .Case([&](arith::XOrIOp) { return make(LLVM::XOrOp()); })
      .Case<arith::ShLIOp, arith::ShRUIOp, arith::ShRSIOp>(
          [&](auto) { return emitShift(op, v[0], v[1]); })
      .Case([&](arith::MaxSIOp) { return make(LLVM::SMaxOp()); })
      .Case([&](arith::MinSIOp) { return make(LLVM::SMinOp()); })
      .Case([&](arith::MaxUIOp) { return make(LLVM::UMaxOp()); })
      .Case([&](arith::MinUIOp) { return make(LLVM::UMinOp()); })
      .Case([&](math::AbsIOp) -> Value {
        return LLVM::AbsOp::create(builder, loc, v[0].getType(), v[0],
                                   /*is_int_min_poison=*/false);
      })
      .Case([&](arith::FloorDivSIOp) { return roundedDivision(false); })
      .Case([&](arith::CeilDivSIOp) { return roundedDivision(true); })
      .Case([&](arith::CeilDivUIOp) -> Value {
        Value quotient = LLVM::UDivOp::create(builder, loc, v[0], v[1]);
        Value remainder = LLVM::URemOp::create(builder, loc, v[0], v[1]);
        Value inexact =
            LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, remainder, zero());
        return LLVM::AddOp::create(builder, loc, quotient,
                                   LLVM::ZExtOp::create(builder, loc, quotient.getType(), inexact));
      })
      .Default([](Operation *) { return Value(); });
}

/// Fused with the product that it is, a value less itself would be that product's rounding error.
/// An addition with a rounding mode is not fused (PTX ISA 9.7.3.3).
Value Emitter::emitDifference(Value a, Value b, LLVM::FastmathFlagsAttr contract) {
  if (a == b)
    return intrinsic("llvm.nvvm.add.rn.ftz.f", a.getType(),
                     {a, LLVM::FNegOp::create(builder, loc, a)});
  return LLVM::FSubOp::create(builder, loc, a.getType(), a, b, contract);
}

Value Emitter::emitScalarFloat(Operation *op, ValueRange v) {
  if (v.empty() || !v[0].getType().isF32())
    return {};
  // The dialect allows contraction; approximate functions are the special-function unit's.
  auto contract = LLVM::FastmathFlagsAttr::get(op->getContext(), LLVM::FastmathFlags::contract);
  auto approximate = LLVM::FastmathFlagsAttr::get(
      op->getContext(), LLVM::FastmathFlags::afn | LLVM::FastmathFlags::contract);
  auto binary = [&](auto tag) -> Value {
    return decltype(tag)::create(builder, loc, v[0].getType(), v[0], v[1], contract);
  };
  auto unary = [&](auto tag) -> Value {
    return decltype(tag)::create(builder, loc, v[0].getType(), v[0], approximate);
  };
  auto onAngle = [&](auto tag) -> Value {
    return decltype(tag)::create(builder, loc, v[0].getType(),
                                 mayBeApproximate(op) ? v[0] : reduceAngle(v[0]), approximate);
  };
  if (std::optional<double> scale = exponentialScale(op))
    return emitExponential(
        op, LLVM::FMulOp::create(builder, loc, v[0].getType(), v[0], f32(*scale), contract));
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](arith::AddFOp) { return binary(LLVM::FAddOp()); })
      .Case([&](arith::SubFOp) { return emitDifference(v[0], v[1], contract); })
      .Case([&](arith::MulFOp) { return binary(LLVM::FMulOp()); })
      .Case([&](arith::DivFOp div) { return emitDivision(div, v[0], v[1]); })
      .Case([&](arith::NegFOp) { return Value(LLVM::FNegOp::create(builder, loc, v[0])); })
      .Case([&](arith::MaxNumFOp) { return binary(LLVM::MaxNumOp()); })
      .Case([&](arith::MinNumFOp) { return binary(LLVM::MinNumOp()); })
      .Case([&](arith::MaximumFOp) { return binary(LLVM::MaximumOp()); })
      .Case([&](arith::MinimumFOp) { return binary(LLVM::MinimumOp()); })
      .Case([&](math::FmaOp) -> Value {
        return LLVM::FMAOp::create(builder, loc, v[0].getType(), v[0], v[1], v[2], contract);
      })
      .Case([&](math::Exp2Op) { return unary(LLVM::Exp2Op()); })
      .Case<math::LogOp, math::Log2Op, math::Log1pOp>(
          [&](Operation *) { return emitLogarithm(op, v[0]); })
      .Case([&](math::SqrtOp) { return unary(LLVM::SqrtOp()); })
      .Case([&](math::RsqrtOp) {
        return intrinsic("llvm.nvvm.rsqrt.approx.ftz.f", v[0].getType(), v[0]);
      })
      .Case([&](math::AbsFOp) { return unary(LLVM::FAbsOp()); })
      .Case([&](math::FloorOp) { return unary(LLVM::FFloorOp()); })
      .Case([&](math::CeilOp) { return unary(LLVM::FCeilOp()); })
      .Case([&](math::SinOp) { return onAngle(LLVM::SinOp()); })
      .Case([&](math::CosOp) { return onAngle(LLVM::CosOp()); })
      // tanh.approx.f32, relative error 2^-11.
      .Case([&](math::TanhOp) { return unary(LLVM::TanhOp()); })
      .Default([](Operation *) { return Value(); });
}
