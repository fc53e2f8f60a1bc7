//===- EmitHelpers.cpp - Values and instructions --------------------------===//

#include "passes/LowerToLLVM/Emitter.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;

Value Emitter::i32(int64_t value) {
  return LLVM::ConstantOp::create(builder, loc, builder.getI32Type(),
                                  builder.getI32IntegerAttr(static_cast<int32_t>(value)));
}

Value Emitter::i64(int64_t value) {
  return LLVM::ConstantOp::create(builder, loc, builder.getI64Type(),
                                  builder.getI64IntegerAttr(value));
}

Value Emitter::f32(double value) {
  return LLVM::ConstantOp::create(builder, loc, builder.getF32Type(),
                                  builder.getF32FloatAttr(value));
}

Value Emitter::undef(Type type) { return LLVM::PoisonOp::create(builder, loc, type); }

Value Emitter::add(Value a, Value b) { return LLVM::AddOp::create(builder, loc, a, b); }

Value Emitter::add(Value a, int64_t b) {
  return b == 0 ? a : add(a, a.getType().isInteger(64) ? i64(b) : i32(b));
}

Value Emitter::mul(Value a, int64_t b) {
  return b == 1 ? a : Value(LLVM::MulOp::create(builder, loc, a, i32(b)));
}

std::pair<Value, Value> Emitter::divideBy(Value a, int64_t b) {
  Value remainder = LLVM::URemOp::create(builder, loc, a, i32(b));
  return {remainder, LLVM::UDivOp::create(builder, loc, a, i32(b))};
}

Value Emitter::intrinsic(StringRef name, Type type, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(builder, loc, type, builder.getStringAttr(name), operands)
      .getResult(0);
}

Value Emitter::shuffle(StringRef mode, Value value, Value lane) {
  bool isFloat = value.getType().isF32();
  std::string name = ("llvm.nvvm.shfl.sync." + mode + (isFloat ? ".f32" : ".i32")).str();
  return intrinsic(name, value.getType(), {i32(-1), value, lane, i32(31)});
}

Value Emitter::toI32(Value flag) {
  return LLVM::ZExtOp::create(builder, loc, builder.getI32Type(), flag);
}

std::string tessera::vectorOf(int64_t first, int64_t count) {
  if (count == 1)
    return llvm::formatv("${0}", first);
  std::string text = "{";
  for (int64_t i = 0; i < count; ++i)
    text += llvm::formatv("{0}${1}", i ? ", " : "", first + i);
  return text + "}";
}

Emitter::Values Emitter::assembly(const Twine &text, StringRef constraints, ValueRange operands,
                                  TypeRange results) {
  Type type;
  if (results.size() == 1)
    type = results.front();
  else if (!results.empty())
    type = LLVM::LLVMStructType::getLiteral(builder.getContext(), SmallVector<Type>(results));
  auto op = LLVM::InlineAsmOp::create(
      builder, loc, type ? TypeRange(type) : TypeRange(), operands, text.str(), constraints,
      /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(builder.getContext(), LLVM::AsmDialect::AD_ATT),
      /*operand_attrs=*/ArrayAttr());
  Values values;
  if (results.size() == 1)
    values.push_back(op.getResult(0));
  else
    for (size_t i = 0; i < results.size(); ++i)
      values.push_back(LLVM::ExtractValueOp::create(builder, loc, op.getResult(0), i));
  return values;
}

/// An index has 32 bits, and LLVM has no floats of 8 bits.
Type Emitter::lowered(Type type) {
  if (tile::isByteFloat(type))
    return builder.getI8Type();
  return type.isIndex() ? builder.getI32Type() : type;
}

Emitter::Values Emitter::elements(Value value) {
  auto found = fragments.find(value);
  if (found != fragments.end())
    return found->second;
  // An index tile is written out where something other than an index operation wants it, each
  // time anew: the block of one use need not dominate the next.
  const AffineTile &tile = affineTiles.find(value)->second;
  Values written;
  for (int64_t offset : tile.offsets)
    written.push_back(add(tile.base, offset));
  return written;
}

Value Emitter::scalar(Value value) { return elements(value).front(); }
