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
#include <numeric>

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

/// A thread has four elements of each 8 columns of its rows, those of each 64 rows side by side.
void Emitter::emitColumns(hop::ColumnsOp op) {
  auto whole = cast<RankedTensorType>(op.getTile().getType()),
       part = cast<RankedTensorType>(op.getPart().getType());
  const Values source = elements(op.getTile());
  int64_t ofBlock = whole.getDimSize(1) / 2, ofPart = part.getDimSize(1) / 2;
  Values results;
  for (int64_t block = 0; block < whole.getDimSize(0) / hopper::mmaRows; ++block)
    llvm::append_range(results,
                       ArrayRef(source).slice(block * ofBlock + op.getIndex() * ofPart, ofPart));
  bind(op, std::move(results));
}

LogicalResult Emitter::emitRearrange(hop::RearrangeOp op) {
  auto from = cast<RankedTensorType>(op.getSource().getType()),
       to = cast<RankedTensorType>(op.getType());
  if (tile::isByteFloat(from.getElementType())) {
    bind(op, exchangePairs(elements(op.getSource())));
    return success();
  }
  bind(op, renameRegisters(op.getSource(), to, /*exchangesAxes=*/false));
  return success();
}

/// The thread keeps its elements.
void Emitter::emitExchange(tile::TransposeOp op) {
  bind(op, renameRegisters(op.getSource(), cast<RankedTensorType>(op.getType()),
                           /*exchangesAxes=*/true));
}

/// The registers of `source` in the order of `type`, of which a thread has the same elements: their
/// places say which is which.
Emitter::Values Emitter::renameRegisters(Value source, RankedTensorType type, bool exchangesAxes) {
  auto from = cast<RankedTensorType>(source.getType());
  FragmentLayout given(from), result(type);
  int64_t inRegister = hop::elementsPerRegister(from);
  auto placeOf = [](const FragmentLayout &layout, int64_t i, bool exchanges) {
    return std::pair(layout.offset(i, exchanges), layout.offset(i, !exchanges));
  };
  llvm::DenseMap<std::pair<int64_t, int64_t>, int64_t> registers;
  for (int64_t i = 0; i < given.size(); i += inRegister)
    registers[placeOf(given, i, false)] = i / inRegister;
  const Values all = elements(source);
  Values renamed;
  for (int64_t i = 0; i < result.size(); i += inRegister)
    renamed.push_back(all[registers.lookup(placeOf(result, i, exchangesAxes))]);
  return renamed;
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
  Value pattern = swizzlePattern(layout, row);
  Value place = mul(LLVM::XOrOp::create(builder, loc, unit, pattern), hopper::swizzleUnit);
  Value chunk = mul(divide(column, swizzle), layout.chunkBytes());
  return add(add(tile.address, chunk), add(mul(row, swizzle), place));
}

/// What the swizzle adds, by exclusive or, to the numbers of the units of 16 bytes in `row`.
Value Emitter::swizzlePattern(const hop::SharedLayout &layout, Value row) {
  Value span =
      LLVM::UDivOp::create(builder, loc, mul(row, layout.swizzle), i32(hopper::widestSwizzle));
  return LLVM::AndOp::create(builder, loc, span, i32(layout.swizzle / hopper::swizzleUnit - 1));
}

/// A tile that warps transpose, in units of 16 rows and 32 columns. A warp loads a batch of them
/// before it stores the first: rows of a chunk of columns of the source.
struct Emitter::Transposition {
  static constexpr int64_t rowsOfUnit = 16, columnsOfUnit = 32, mostOfBatch = 4;

  Transposition(RankedTensorType tile, const SharedPlace &source, const SharedPlace &destination)
      : source(source), destination(destination) {
    int64_t rows = tile.getDimSize(0) / rowsOfUnit;
    columnsOfBatch = source.layout.swizzle / columnsOfUnit;
    rowsOfBatch = std::gcd(rows, mostOfBatch / columnsOfBatch);
    batchesOfColumns = source.layout.chunks();
    batches = rows / rowsOfBatch * batchesOfColumns;
  }

  SharedPlace source, destination;
  int64_t rowsOfBatch, columnsOfBatch; ///< in units
  int64_t batches, batchesOfColumns;   ///< of the tile, and of a row of units
  /// What the lane adds to the address of a batch: of the source by column of units; and of the
  /// destination, with what the swizzle adds to the unit of 16 bytes.
  Values from;
  Value to, pattern;
  Value firstBytes, secondBytes; ///< of two rows' words: those of the two matrices that it writes
};

/// Lane l gives the addresses of row l % 8 of matrix l / 8: of the source 8 rows of 16 bytes, of
/// which the second matrix is below the first and the third beside it; of the destination one row
/// of each two, the even ones and then the odd ones, but from the fifth on the other way round. So
/// the 8 rows of a matrix are in 8 different banks, whatever the swizzle.
void Emitter::setLanes(Transposition &tile) {
  auto bits = [&](int64_t shift, int64_t mask) -> Value {
    Value shifted = LLVM::LShrOp::create(builder, loc, thread.lane, i32(shift));
    return LLVM::AndOp::create(builder, loc, shifted, i32(mask));
  };
  auto exclusive = [&](Value a, Value b) -> Value {
    return LLVM::XOrOp::create(builder, loc, a, b);
  };
  Value row = bits(0, 7), second = bits(3, 1), right = bits(4, 1);
  const hop::SharedLayout &source = tile.source.layout, &destination = tile.destination.layout;
  Value rows = mul(add(row, mul(second, 8)), source.swizzle), pattern = swizzlePattern(source, row);
  for (int64_t column = 0; column < tile.columnsOfBatch; ++column)
    tile.from.push_back(
        add(rows, mul(exclusive(add(right, 2 * column), pattern), hopper::swizzleUnit)));
  Value place = add(mul(row, 2), exclusive(second, bits(2, 1)));
  tile.pattern = swizzlePattern(destination, place);
  tile.to = mul(add(place, mul(right, Transposition::rowsOfUnit)), destination.swizzle);
  // Lanes 16 and on have the words of rows 4 to 7 of a matrix.
  constexpr int64_t even = 0x6420, odd = 0x7531;
  Value isLate = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, right, i32(0));
  tile.firstBytes = LLVM::SelectOp::create(builder, loc, isLate, i32(odd), i32(even));
  tile.secondBytes = LLVM::SelectOp::create(builder, loc, isLate, i32(even), i32(odd));
}

/// ldmatrix.trans of 16-bit units gives lane l, of two neighbouring columns 2 (l / 4) and the next,
/// rows 2 (l % 4) and the next, and from the second matrix the rows 8 below them. Byte permutes
/// make a word of each column of them, which stmatrix writes as four bytes of a row.
void Emitter::emitBatch(const Transposition &tile, Value number) {
  const hop::SharedLayout &source = tile.source.layout, &destination = tile.destination.layout;
  auto [columnBatch, rowBatch] = divideBy(number, tile.batchesOfColumns);
  Value firstRow = mul(rowBatch, tile.rowsOfBatch);
  constexpr int64_t rowsOfUnit = Transposition::rowsOfUnit;
  Value from = add(add(tile.source.address, mul(columnBatch, source.chunkBytes())),
                   mul(firstRow, rowsOfUnit * source.swizzle));
  SmallVector<Values> loaded;
  for (int64_t row = 0; row < tile.rowsOfBatch; ++row)
    for (Value lane : tile.from)
      loaded.push_back(
          assembly("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4+" +
                       Twine(row * rowsOfUnit * source.swizzle) + "];",
                   "=r,=r,=r,=r,r", {add(from, lane)}, SmallVector<Type>(4, builder.getI32Type())));
  int64_t rowOfUnits = Transposition::columnsOfUnit * destination.swizzle;
  Value to = add(add(tile.destination.address, tile.to),
                 mul(columnBatch, tile.columnsOfBatch * rowOfUnits));
  for (int64_t row = 0; row < tile.rowsOfBatch; ++row) {
    auto [unit, chunk] = divideBy(add(firstRow, row), destination.swizzle / hopper::swizzleUnit);
    Value place = LLVM::XOrOp::create(builder, loc, unit, tile.pattern);
    Value address =
        add(add(to, mul(chunk, destination.chunkBytes())), mul(place, hopper::swizzleUnit));
    for (int64_t column = 0; column < tile.columnsOfBatch; ++column) {
      const Values &words = loaded[row * tile.columnsOfBatch + column];
      Values written = {address};
      for (int64_t half : {0, 2})
        for (Value bytes : {tile.firstBytes, tile.secondBytes})
          written.push_back(permuteBytes(words[half], words[half + 1], bytes));
      assembly("stmatrix.sync.aligned.m8n8.x4.shared.b16 [$0+" + Twine(column * rowOfUnits) +
                   "], {$1, $2, $3, $4};",
               "r,r,r,r,r", written, {});
    }
  }
}

/// The warps of the role take batches in turn, each where the others take theirs.
void Emitter::emitTranspose(hop::TransposeOp op) {
  Transposition tile(op.getSource().getType().getTile(), sharedTiles.find(op.getSource())->second,
                     sharedTiles.find(op.getDestination())->second);
  setLanes(tile);
  int64_t warps = role.getNumWarps();
  auto isBatch = [&](Value number) {
    return LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ult, number, i32(tile.batches));
  };
  if (tile.batches <= warps) {
    Block *after = tile.batches < warps ? enterIf(isBatch(thread.warp)) : nullptr;
    emitBatch(tile, thread.warp);
    if (!after)
      return;
    LLVM::BrOp::create(builder, loc, after);
    builder.setInsertionPointToStart(after);
    return;
  }
  Block *after = splitBlock();
  Block *body = builder.createBlock(after);
  Value number = body->addArgument(builder.getI32Type(), loc);
  builder.setInsertionPointToEnd(body->getPrevNode());
  LLVM::BrOp::create(builder, loc, ValueRange{thread.warp}, body);
  builder.setInsertionPointToEnd(body);
  emitBatch(tile, number);
  Value next = add(number, warps);
  LLVM::CondBrOp::create(builder, loc, isBatch(next), body, ValueRange{next}, after, ValueRange());
  builder.setInsertionPointToStart(after);
}
