//===- EmitBytes.cpp - Elements of 8 bits where wgmma reads them ----------===//
//
// Four elements of 8 bits share a register. An accumulator gives a thread two pairs
// of them that are 8 columns apart, and wgmma wants four neighbours: either the
// lanes of a row exchange pairs, or the other operand has its rows in the order of
// the pairs.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/Machine.h"
#include "passes/LowerToLLVM/Emitter.h"

using namespace mlir;
using namespace tessera;
using hop::FragmentLayout;

/// Bytes of two registers in one (PTX ISA 9.7.9.7, prmt): digits 0 to 3 of `selector` are those of
/// `a`, 4 to 7 those of `b`, the lowest first.
Value Emitter::permuteBytes(Value a, Value b, Value selector) {
  return intrinsic("llvm.nvvm.prmt", builder.getI32Type(), {a, b, selector});
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

LogicalResult Emitter::emitRearrange(hop::RearrangeOp op) {
  auto from = cast<RankedTensorType>(op.getSource().getType()),
       to = cast<RankedTensorType>(op.getType());
  if (tile::isByteFloat(from.getElementType())) {
    bind(op, exchangePairs(elements(op.getSource())));
    return success();
  }
  // A thread has the same elements, so that their places say which register is which.
  FragmentLayout source(from), result(to);
  int64_t inRegister = hop::elementsPerRegister(from);
  auto placeOf = [](const FragmentLayout &layout, int64_t i) {
    return std::pair(layout.offset(i, 0), layout.offset(i, 1));
  };
  llvm::DenseMap<std::pair<int64_t, int64_t>, int64_t> registers;
  for (int64_t i = 0; i < source.size(); i += inRegister)
    registers[placeOf(source, i)] = i / inRegister;
  const Values given = elements(op.getSource());
  Values renamed;
  for (int64_t i = 0; i < result.size(); i += inRegister)
    renamed.push_back(given[registers.lookup(placeOf(result, i))]);
  bind(op, std::move(renamed));
  return success();
}

/// Of a block of 16 columns lane l of a row holds columns 2l and 2l + 1 in the low half of a
/// register and 8 + 2l and 9 + 2l in the high half, and is to hold 4l to 4l + 3: the halves l / 2
/// of lanes 2 (l % 2) and that plus 1. Two shuffles move the registers of two rows: in the first,
/// even lanes send the low halves and odd ones the high halves, in the second it is the other way
/// round.
///
///     lane               0        1        2        3
///     first, from lane   0 low    2 low    1 high   3 high
///     second             1 low    3 low    0 high   2 high
Emitter::Values Emitter::exchangePairs(ValueRange words) {
  constexpr int64_t lows = 0x5410, highs = 0x7632, lowsSwapped = 0x1054, highsSwapped = 0x3276;
  auto hasBit = [&](int64_t bit) -> Value {
    Value masked = LLVM::AndOp::create(builder, loc, thread.lane, i32(bit));
    return LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, masked, i32(0));
  };
  auto choose = [&](Value condition, int64_t a, int64_t b) -> Value {
    return LLVM::SelectOp::create(builder, loc, condition, i32(a), i32(b));
  };
  Value isOdd = hasBit(1), isSecond = hasBit(2);
  Value sentFirst = choose(isOdd, highs, lows), sentSecond = choose(isOdd, lows, highs);
  Value upper = choose(isSecond, lowsSwapped, lows), lower = choose(isSecond, highsSwapped, highs);
  Value quad = LLVM::AndOp::create(builder, loc, thread.lane, i32(~int64_t(3)));
  Value fromFirst = add(add(quad, choose(isOdd, 2, 0)), choose(isSecond, 1, 0));
  Value fromSecond = LLVM::XOrOp::create(builder, loc, fromFirst, i32(1));
  Values exchanged;
  for (size_t i = 0; i < words.size(); i += 2) {
    Value first = shuffle("idx", permuteBytes(words[i], words[i + 1], sentFirst), fromFirst);
    Value second = shuffle("idx", permuteBytes(words[i], words[i + 1], sentSecond), fromSecond);
    exchanged.push_back(permuteBytes(first, second, upper));
    exchanged.push_back(permuteBytes(first, second, lower));
  }
  return exchanged;
}

/// A lane's word has two bytes of each of two blocks of 8 columns: all low halves are one block.
void Emitter::joinPairs(MutableArrayRef<Value> words) {
  constexpr int64_t lowHalves = 0x5410, highHalves = 0x7632;
  const SmallVector<Value> from(words);
  for (int64_t i : {0, 1}) {
    words[i] = permuteBytes(from[2 * i], from[2 * i + 1], i32(lowHalves));
    words[2 + i] = permuteBytes(from[2 * i], from[2 * i + 1], i32(highHalves));
  }
}

//===----------------------------------------------------------------------===//
// Transposition
//===----------------------------------------------------------------------===//

/// The address of the 16 bytes of `row` that begin at byte `column`, a multiple of 16.
Value Emitter::swizzledAddress(const SharedPlace &tile, Value row, Value column) {
  const hop::SharedLayout &layout = tile.layout;
  int64_t swizzle = layout.swizzle, units = swizzle / hopper::swizzleUnit;
  auto divide = [&](Value value, int64_t by) -> Value {
    return LLVM::UDivOp::create(builder, loc, value, i32(by));
  };
  Value unit =
      LLVM::AndOp::create(builder, loc, divide(column, hopper::swizzleUnit), i32(units - 1));
  Value pattern = LLVM::AndOp::create(
      builder, loc, divide(mul(row, swizzle), hopper::widestSwizzle), i32(units - 1));
  Value place = mul(LLVM::XOrOp::create(builder, loc, unit, pattern), hopper::swizzleUnit);
  Value chunk = mul(divide(column, swizzle), layout.chunkBytes());
  return add(add(tile.address, chunk), add(mul(row, swizzle), place));
}

/// A warp moves 16 rows of 32 bytes at a time, the warps of the warpgroup in turn. ldmatrix.trans
/// of 16-bit units gives lane l, of two neighbouring columns 2 (l / 4) and the next, rows 2 (l % 4)
/// and the next, and from the second matrix the rows 8 below them. Byte permutes make a word of
/// each column of them, which stmatrix writes as four bytes of a row.
void Emitter::emitTranspose(hop::TransposeOp op) {
  const SharedPlace source = sharedTiles.find(op.getSource())->second,
                    destination = sharedTiles.find(op.getDestination())->second;
  RankedTensorType tile = op.getSource().getType().getTile();
  constexpr int64_t unitRows = 16, unitColumns = 32;
  int64_t rowUnits = tile.getDimSize(0) / unitRows,
          units = rowUnits * (tile.getDimSize(1) / unitColumns);
  constexpr int64_t warps = hopper::warpgroupThreads / hopper::warpThreads;
  auto bits = [&](int64_t shift, int64_t mask) -> Value {
    Value shifted = LLVM::LShrOp::create(builder, loc, thread.lane, i32(shift));
    return LLVM::AndOp::create(builder, loc, shifted, i32(mask));
  };
  // Lane l gives the address of row l % 8 of matrix l / 8.
  Value row = bits(0, 7), second = bits(3, 1), right = bits(4, 1);
  Value warp = LLVM::LShrOp::create(builder, loc, thread.inGroup, i32(5));
  for (int64_t first = 0; first < units; first += warps) {
    Value unit = add(warp, first);
    Block *after = nullptr;
    if (first + warps > units)
      after =
          enterIf(LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ult, unit, i32(units)));
    Value firstRow = mul(LLVM::URemOp::create(builder, loc, unit, i32(rowUnits)), unitRows),
          firstColumn = mul(LLVM::UDivOp::create(builder, loc, unit, i32(rowUnits)), unitColumns);
    Value from = swizzledAddress(source, add(firstRow, add(mul(second, 8), row)),
                                 add(firstColumn, mul(right, 16)));
    Value to = swizzledAddress(
        destination, add(firstColumn, add(add(mul(right, 16), mul(row, 2)), second)), firstRow);
    Values loaded =
        assembly("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];",
                 "=r,=r,=r,=r,r", {from}, SmallVector<Type>(4, builder.getI32Type()));
    Values columns = {to};
    for (int64_t half : {0, 2})
      for (int64_t bytes : {0x6420, 0x7531})
        columns.push_back(permuteBytes(loaded[half], loaded[half + 1], i32(bytes)));
    assembly("stmatrix.sync.aligned.m8n8.x4.shared.b16 [$0], {$1, $2, $3, $4};", "r,r,r,r,r",
             columns, {});
    if (after) {
      LLVM::BrOp::create(builder, loc, after);
      builder.setInsertionPointToStart(after);
    }
  }
}
