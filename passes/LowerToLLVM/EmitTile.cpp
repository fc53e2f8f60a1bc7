//===- EmitTile.cpp - Reductions, broadcasts and index tiles --------------===//

#include "passes/LowerToLLVM/Emitter.h"

using namespace mlir;
using namespace tessera;
using hop::FragmentLayout;
using hop::LayoutKind;

Value Emitter::combine(tile::ReduceKind kind, Value a, Value b) {
  switch (kind) {
  case tile::ReduceKind::sum:
    return LLVM::FAddOp::create(builder, loc, a, b);
  case tile::ReduceKind::max:
    return LLVM::MaxNumOp::create(builder, loc, a, b);
  case tile::ReduceKind::min:
    return LLVM::MinNumOp::create(builder, loc, a, b);
  case tile::ReduceKind::maximum:
    return LLVM::MaximumOp::create(builder, loc, a, b);
  case tile::ReduceKind::minimum:
    return LLVM::MinimumOp::create(builder, loc, a, b);
  }
  return {};
}

/// Combines the four lanes of a quad, which hold one row.
Value Emitter::quadReduce(Value value, tile::ReduceKind kind) {
  for (int64_t distance : {1, 2})
    value = combine(kind, value, shuffle("bfly", value, i32(distance)));
  return value;
}

/// True when the sign cannot be set. The NaN of a product has none (PTX ISA, floating-point
/// instructions), which is not said of an absolute value; that is a modifier of FMNMX anyway.
static bool hasNoSign(Value value) {
  if (auto product = value.getDefiningOp<LLVM::FMulOp>())
    return product.getLhs() == product.getRhs();
  if (auto choice = value.getDefiningOp<LLVM::SelectOp>())
    return hasNoSign(choice.getTrueValue()) && hasNoSign(choice.getFalseValue());
  FloatAttr constant;
  return matchPattern(value, m_Constant(&constant)) && !constant.getValue().isNegative();
}

/// The bits of `elements` when their order as integers is that of a maximum that NaN wins: then one
/// instruction (VIMNMX3) combines three.
static std::optional<SmallVector<Value>>
orderedBits(OpBuilder &builder, Location loc, tile::ReduceKind kind, ArrayRef<Value> elements) {
  if (kind != tile::ReduceKind::maximum || !llvm::all_of(elements, hasNoSign))
    return std::nullopt;
  return llvm::map_to_vector(elements, [&](Value element) -> Value {
    return LLVM::BitcastOp::create(builder, loc, builder.getI32Type(), element);
  });
}

LogicalResult Emitter::emitReduce(tile::ReduceOp op) {
  auto sourceType = cast<RankedTensorType>(op.getSource().getType());
  if (!sourceType.getElementType().isF32())
    return op.emitError("reduces ") << sourceType.getElementType() << "; extend it to f32 first";
  FragmentLayout layout(sourceType), resultLayout(cast<RankedTensorType>(op.getType()));
  // Two chains for each row: the latency of one addition is hidden behind the other.
  constexpr int64_t chains = 2;
  SmallVector<Value> partial(resultLayout.size() * chains);
  Values source = elements(op.getSource());
  auto bits = orderedBits(builder, loc, op.getKind(), source);
  for (auto [i, element] : llvm::enumerate(bits ? *bits : source)) {
    Value &part = partial[layout.rowIndex(i) * chains + i % chains];
    if (!part)
      part = element;
    else if (bits)
      part = LLVM::SMaxOp::create(builder, loc, part, element);
    else
      part = combine(op.getKind(), part, element);
  }
  if (bits)
    for (Value &part : partial)
      part = LLVM::BitcastOp::create(builder, loc, builder.getF32Type(), part);
  Values results;
  for (int64_t row = 0; row < resultLayout.size(); ++row) {
    Value result = combine(op.getKind(), partial[row * chains], partial[row * chains + 1]);
    if (resultLayout.kind != LayoutKind::RowPartial)
      result = quadReduce(result, op.getKind());
    results.push_back(result);
  }
  bind(op, std::move(results));
  return success();
}

LogicalResult Emitter::emitConvertLayout(hop::ConvertLayoutOp op) {
  bool toWhole = hop::getLayout(op.getType()) == LayoutKind::Row;
  Values results;
  const Values source = elements(op.getSource());
  for (Value element : source) {
    if (toWhole) {
      results.push_back(quadReduce(element, op.getKind()));
      continue;
    }
    if (op.getKind() != tile::ReduceKind::sum) {
      results.push_back(element);
      continue;
    }
    Value isFirst =
        LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, thread.firstColumn, i32(0));
    results.push_back(LLVM::SelectOp::create(builder, loc, isFirst, element, f32(0.0)));
  }
  bind(op, std::move(results));
  return success();
}

LogicalResult Emitter::emitBroadcast(tile::BroadcastOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  if (hop::isPacked(type))
    return op.emitError("repeats 16-bit elements; extend them with arith.extf first");
  FragmentLayout layout(type);
  auto indexOf = [&](int64_t i) {
    return op.getAxis() == 1 ? layout.rowIndex(i) : layout.columnIndex(i);
  };
  if (auto affine = affineTiles.find(op.getSource()); affine != affineTiles.end()) {
    AffineTile result{affine->second.base, {}};
    for (int64_t i = 0; i < layout.size(); ++i)
      result.offsets.push_back(affine->second.offsets[indexOf(i)]);
    affineTiles[op] = std::move(result);
    return success();
  }
  const Values source = elements(op.getSource());
  Values results;
  for (int64_t i = 0; i < layout.size(); ++i)
    results.push_back(source[indexOf(i)]);
  bind(op, std::move(results));
  return success();
}

LogicalResult Emitter::emitSplat(tile::SplatOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  int64_t size = FragmentLayout(type).size();
  Value source = scalar(op.getSource());
  if (type.getElementType().isInteger(32)) {
    affineTiles[op] = {source, SmallVector<int64_t>(size, 0)};
    return success();
  }
  if (hop::isPacked(type))
    return op.emitError(
        "makes a tile of 16-bit elements; make it of f32 and round with arith.truncf");
  bind(op, Values(size, source));
  return success();
}

LogicalResult Emitter::emitIota(tile::IotaOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  FragmentLayout layout(type);
  bool alongRows = type.getRank() == 2 ? op.getAxis() == 0 : layout.kind != LayoutKind::Column;
  Value start = scalar(op.getStart()), first = alongRows ? thread.firstRow : thread.firstColumn;
  auto offset = [&](int64_t i) { return alongRows ? layout.rowOffset(i) : layout.columnOffset(i); };
  int64_t period = op.getPeriodOrExtent();
  bool repeats = period < type.getDimSize(op.getAxis());
  if (repeats && !llvm::isPowerOf2_64(period)) {
    Values values;
    for (int64_t i = 0; i < layout.size(); ++i) {
      Value index = add(first, offset(i));
      values.push_back(
          add(start, LLVM::URemOp::create(builder, loc, index, i32(period)).getResult()));
    }
    bind(op, std::move(values));
    return success();
  }
  // A thread's first place and the offsets of its elements have no bit in common.
  int64_t mask = repeats ? period - 1 : -1;
  AffineTile tile;
  tile.base = add(start, repeats ? LLVM::AndOp::create(builder, loc, first, i32(mask)) : first);
  for (int64_t i = 0; i < layout.size(); ++i)
    tile.offsets.push_back(offset(i) & mask);
  affineTiles[op] = std::move(tile);
  return success();
}
