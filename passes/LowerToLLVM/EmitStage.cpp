//===- EmitStage.cpp - Tiles of registers in shared memory ----------------===//
//
// How the threads of a warpgroup write a tile in the accumulator layout where bulk
// copies and products read it, and read one that a bulk copy has written. 16-bit tiles go
// as 8x8 matrices (stmatrix, ldmatrix), by rows or transposed; words go two neighbours at a
// time. Rows may be in pairs. In another layout a thread moves as many neighbours as it has.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/Machine.h"
#include "passes/LowerToLLVM/Emitter.h"

using namespace mlir;
using namespace tessera;

/// Whether rows are in pairs, as columns of 8 bits are read.
static bool hasRowPairs(RankedTensorType type) {
  return hop::getLayout(type) == hop::LayoutAttr::getRowPairs(type.getContext());
}

void Emitter::emitStage(hop::StageOp op) {
  const SharedPlace target = sharedTiles.find(op.getDestination())->second;
  auto type = cast<RankedTensorType>(op.getTile().getType());
  if (type.getRank() == 1)
    stageVector(op, target);
  else if (!hop::getLayout(type).isAccumulator() && !hasRowPairs(type))
    stageRuns(op, target);
  else if (target.layout.elementBytes == 2)
    op.getTransposed() ? stageColumns(op, target) : stageRows(op, target);
  else
    op.getTransposed() ? stageWordColumns(op, target) : stageWords(op, target);
}

LogicalResult Emitter::emitFetch(hop::FetchOp op) {
  auto type = cast<RankedTensorType>(op.getTile().getType());
  auto accumulator = hop::LayoutAttr::getAccumulator(op.getContext());
  bool isVector = type.getRank() == 1;
  if (!isVector && hop::wordsOfRun(type)) {
    fetchRuns(op, sharedTiles.find(op.getSource())->second);
    return success();
  }
  if (op.getTransposed()) {
    fetchBytePairs(op, sharedTiles.find(op.getSource())->second);
    return success();
  }
  if (!isVector && hop::getLayout(type).isByteAccumulator() &&
      tile::isByteFloat(type.getElementType())) {
    fetchBytes(op, sharedTiles.find(op.getSource())->second);
    return success();
  }
  auto pairs = hop::LayoutAttr::getRowPairs(op.getContext());
  hop::LayoutAttr layout = hop::getLayout(type);
  bool isOfRows = isVector && type.getElementType().isF32() &&
                  (layout == accumulator.getSlice(0) || layout == pairs.getSlice(0));
  bool isKnown = isVector ? isOfRows || layout == accumulator.getSlice(1)
                          : layout == accumulator || layout == pairs;
  if (!isKnown)
    return op.emitError("reads a tile ")
           << (isVector ? "of rank 1 for the columns of accumulators" : "for accumulators")
           << " (producer = all), and here it is laid out as " << type
           << "; use producer = operands";
  const SharedPlace source = sharedTiles.find(op.getSource())->second;
  if (isOfRows)
    fetchRowVector(op, source);
  else if (isVector)
    fetchVector(op, source);
  else if (hop::isPacked(type))
    fetchRows(op, source);
  else
    fetchWords(op, source);
  return success();
}

/// Reads two neighbours at a time, as lanes hold the columns of an accumulator.
void Emitter::fetchVector(hop::FetchOp op, const SharedPlace &source) {
  auto type = cast<RankedTensorType>(op.getTile().getType());
  hop::FragmentLayout layout(type);
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  Value first = add(source.address, mul(thread.firstColumn, bytes));
  Type element = type.getElementType();
  // Two of 16 bits are one register.
  bool isPair = hop::isPacked(type);
  std::string constraint = element.isF32() ? "=f" : bytes == 8 ? "=l" : "=r";
  Values results;
  for (int64_t i = 0; i < layout.size(); i += 2) {
    std::string offset = "+" + std::to_string(layout.offset(i, 0) * bytes) + "];";
    if (isPair)
      results.push_back(assembly("ld.shared.b32 $0, [$1" + offset, "=r,r", {first},
                                 TypeRange(builder.getI32Type()))
                            .front());
    else
      llvm::append_range(
          results, assembly("ld.shared.v2.b" + Twine(8 * bytes) + " {$0, $1}, [$2" + offset,
                            constraint + "," + constraint + ",r", {first}, {element, element}));
  }
  bind(op, std::move(results));
}

/// Writes what each row has one of, by the first of the lanes that have the row.
void Emitter::stageVector(hop::StageOp op, const SharedPlace &target) {
  auto type = cast<RankedTensorType>(op.getTile().getType());
  hop::FragmentLayout layout(type);
  Value row = firstPlace(layout.getLayoutAttr(), 0);
  Value first = add(target.address, mul(row, hopper::registerBytes));
  Value isFirst = isFirstSharer(type);
  for (auto [i, value] : llvm::enumerate(elements(op.getTile())))
    assembly("@$2 st.shared.b32 [$0+" + Twine(layout.offset(i, 0) * hopper::registerBytes) +
                 "], $1;",
             "r,f,b", {first, value, isFirst}, {});
}

/// Reads it, as all lanes of a row hold it.
void Emitter::fetchRowVector(hop::FetchOp op, const SharedPlace &source) {
  hop::FragmentLayout layout(op.getTile().getType());
  Value row = firstPlace(layout.getLayoutAttr(), 0);
  Value first = add(source.address, mul(row, hopper::registerBytes));
  Values results;
  for (int64_t i = 0; i < layout.size(); ++i)
    llvm::append_range(results,
                       assembly("ld.shared.b32 $0, [$1+" +
                                    Twine(layout.offset(i, 0) * hopper::registerBytes) + "];",
                                "=f,r", {first}, TypeRange(builder.getF32Type())));
  bind(op, std::move(results));
}

/// The warp's first row, without the lane's part of it.
Value Emitter::warpRow() {
  return LLVM::SubOp::create(builder, loc, thread.firstRow,
                             LLVM::LShrOp::create(builder, loc, thread.lane, i32(2)));
}

/// Stores four 8x8 matrices. A lane's address is `address` with the bits `flips` exchanged, and
/// `offset` on.
void Emitter::storeMatrices(Value address, int64_t flips, int64_t offset, ArrayRef<Value> matrices,
                            bool transposed) {
  assembly("{\n.reg .b32 to;\nxor.b32 to, $0, " + Twine(flips) +
               ";\nstmatrix.sync.aligned.m8n8.x4" + (transposed ? ".trans" : "") +
               ".shared.b16 [to+" + Twine(offset) + "], {$1, $2, $3, $4};\n}",
           "r,r,r,r,r", {address, matrices[0], matrices[1], matrices[2], matrices[3]}, {});
}

/// Calls `visit` for each four 8x8 matrices of a 16-bit tile in the accumulator layout (PTX ISA
/// 9.7.15.3 and 9.7.14.5.15, x4): lane l gives the address of row l % 8 of matrix l / 8; matrices
/// are rows 0-7 and 8-15, or even and odd ones, of two neighbouring column blocks. A lane's address
/// is `address` with the bits `flips` exchanged, and `offset` on; the four words of its elements
/// begin at `element`.
void Emitter::forEachMatrices(RankedTensorType type, const SharedPlace &place, PlaceVisitor visit) {
  int64_t columns = type.getDimSize(1), perBlock = columns / 4, units = columns / 8;
  int64_t unitsPerChunk = place.layout.swizzle / hopper::swizzleUnit;
  Value rowInMatrix = LLVM::AndOp::create(builder, loc, thread.lane, i32(7));
  Value matrix = LLVM::LShrOp::create(builder, loc, thread.lane, i32(3));
  Value lowHigh = LLVM::AndOp::create(builder, loc, matrix, i32(1));
  Value unitOfLane = LLVM::LShrOp::create(builder, loc, matrix, i32(1));
  Value row = hasRowPairs(type) ? add(add(warpRow(), lowHigh), mul(rowInMatrix, 2))
                                : add(add(warpRow(), mul(lowHigh, 8)), rowInMatrix);
  // The swizzle exchanges 16-byte units by the row's place in its repeat.
  Value pattern = LLVM::AndOp::create(
      builder, loc, LLVM::LShrOp::create(builder, loc, mul(row, place.layout.swizzle), i32(7)),
      i32(unitsPerChunk - 1));
  Value firstUnit = LLVM::XOrOp::create(builder, loc, unitOfLane, pattern);
  Value first =
      add(add(place.address, mul(row, place.layout.swizzle)), mul(firstUnit, hopper::swizzleUnit));
  // A row of a chunk starts at a multiple of its bytes, so that other units differ in the bits of
  // their number alone; all else is an immediate, and a loop keeps one address.
  for (int64_t block = 0; block < type.getDimSize(0) / hopper::mmaRows; ++block)
    for (int64_t unit = 0; unit < units; unit += 2)
      visit(first, unit % unitsPerChunk * hopper::swizzleUnit,
            hopper::mmaRows * block * place.layout.swizzle +
                unit / unitsPerChunk * place.layout.chunkBytes(),
            block * perBlock + unit * 2);
}

void Emitter::stageRows(hop::StageOp op, const SharedPlace &target) {
  const Values packed = elements(op.getTile());
  forEachMatrices(cast<RankedTensorType>(op.getTile().getType()), target,
                  [&](Value address, int64_t flips, int64_t offset, int64_t word) {
                    storeMatrices(address, flips, offset, ArrayRef(packed).slice(word, 4),
                                  /*transposed=*/false);
                  });
}

void Emitter::fetchRows(hop::FetchOp op, const SharedPlace &source) {
  Type word = builder.getI32Type();
  Values results;
  forEachMatrices(cast<RankedTensorType>(op.getTile().getType()), source,
                  [&](Value address, int64_t flips, int64_t offset, int64_t) {
                    llvm::append_range(
                        results, assembly("{\n.reg .b32 from;\nxor.b32 from, $4, " + Twine(flips) +
                                              ";\nldmatrix.sync.aligned.m8n8.x4.shared.b16 {$0, "
                                              "$1, $2, $3}, [from+" +
                                              Twine(offset) + "];\n}",
                                          "=r,=r,=r,=r,r", {address}, {word, word, word, word}));
                  });
  bind(op, std::move(results));
}

/// Writes the columns of a tile as rows (stmatrix.trans). Matrix m of a lane's address is rows 8 (m
/// % 2) on and column block m / 2 of two; what it stores is a row of 8 elements for each of its
/// columns. 64 rows are one chunk of the widest swizzle, so that a warp's 16 are two of its units.
void Emitter::stageColumns(hop::StageOp op, const SharedPlace &target) {
  auto type = cast<RankedTensorType>(op.getTile().getType());
  const Values packed = elements(op.getTile());
  int64_t columns = type.getDimSize(1), perBlock = columns / 4, swizzle = target.layout.swizzle;
  Value rowInMatrix = LLVM::AndOp::create(builder, loc, thread.lane, i32(7));
  Value matrix = LLVM::LShrOp::create(builder, loc, thread.lane, i32(3));
  Value unit = add(LLVM::LShrOp::create(builder, loc, warpRow(), i32(3)),
                   LLVM::AndOp::create(builder, loc, matrix, i32(1)));
  Value row = add(mul(LLVM::LShrOp::create(builder, loc, matrix, i32(1)), 8), rowInMatrix);
  // Rows of a matrix are those of the swizzle's repeat.
  Value place = LLVM::XOrOp::create(builder, loc, unit, rowInMatrix);
  Value first = add(add(target.address, mul(row, swizzle)), mul(place, hopper::swizzleUnit));
  for (int64_t block = 0; block < type.getDimSize(0) / hopper::mmaRows; ++block)
    for (int64_t column = 0; column < columns; column += 16)
      storeMatrices(first, 0, block * target.layout.chunkBytes() + column * swizzle,
                    ArrayRef(packed).slice(block * perBlock + column / 4, 4), /*transposed=*/true);
}

/// Calls `visit` for each two neighbours of a row of a tile of words in the accumulator layout, of
/// which `element` is the number of the first; addresses as for matrices.
void Emitter::forEachPair(RankedTensorType type, const SharedPlace &place, PlaceVisitor visit) {
  hop::FragmentLayout layout(type);
  int64_t swizzle = place.layout.swizzle, chunkColumns = place.layout.chunkColumns(),
          unitColumns = hopper::swizzleUnit / place.layout.elementBytes;
  Value unit =
      LLVM::LShrOp::create(builder, loc, thread.firstColumn, i32(llvm::Log2_64(unitColumns)));
  Value inUnit = LLVM::AndOp::create(builder, loc, thread.firstColumn, i32(unitColumns - 1));
  Value row = firstPlace(layout.getLayoutAttr(), 0);
  Value pattern = LLVM::AndOp::create(builder, loc,
                                      LLVM::LShrOp::create(builder, loc, mul(row, swizzle), i32(7)),
                                      i32(swizzle / hopper::swizzleUnit - 1));
  Value exchanged = LLVM::XOrOp::create(builder, loc, unit, pattern);
  Value first =
      add(add(place.address, mul(row, swizzle)),
          add(mul(exchanged, hopper::swizzleUnit), mul(inUnit, place.layout.elementBytes)));
  for (int64_t i = 0; i < layout.size(); i += 2) {
    int64_t below = layout.offset(i, 0) * swizzle, column = layout.offset(i, 1);
    // Rows of a thread are apart by multiples of the swizzle's repeat, or neighbours.
    int64_t ofRow = below / hopper::widestSwizzle % (swizzle / hopper::swizzleUnit);
    visit(first, (column % chunkColumns / unitColumns ^ ofRow) * hopper::swizzleUnit,
          below + column / chunkColumns * place.layout.chunkBytes() +
              column % unitColumns * place.layout.elementBytes,
          i);
  }
}

/// What is written of a tile: its elements as registers hold them, or rounded to tf32, whose lower
/// 13 bits are 0.
Emitter::Values Emitter::writtenElements(hop::StageOp op) {
  Values all = elements(op.getTile());
  if (op.getTf32())
    for (Value &element : all) {
      Value bits = intrinsic("llvm.nvvm.f2tf32.rn", builder.getI32Type(), element);
      element = LLVM::BitcastOp::create(builder, loc, builder.getF32Type(), bits);
    }
  return all;
}

void Emitter::stageWords(hop::StageOp op, const SharedPlace &target) {
  auto type = cast<RankedTensorType>(op.getTile().getType());
  const Values words = writtenElements(op);
  auto bitsOf = [&](Value word) {
    return LLVM::BitcastOp::create(builder, loc, builder.getI32Type(), word).getResult();
  };
  auto store = [&](Value address, int64_t flips, int64_t offset, Value low, Value high) {
    assembly("{\n.reg .b32 to;\nxor.b32 to, $0, " + Twine(flips) + ";\nst.shared.v2.b32 [to+" +
                 Twine(offset) + "], {$1, $2};\n}",
             "r,r,r", {address, bitsOf(low), bitsOf(high)}, {});
  };
  // A store of 8 bytes a lane takes half a warp at a time, which is four rows. The swizzle of 128
  // bytes puts the same columns of rows 2r and 2r + 1 into the same banks. So odd rows go first
  // where even ones go last of two column blocks that are 64 bytes apart.
  // Of pairs these are even rows, whose units are apart.
  bool exchanges =
      target.layout.swizzle == 128 && type.getDimSize(1) % 32 == 0 && !hasRowPairs(type);
  constexpr int64_t apart = 64, columnsApart = apart / 4, wordsApart = columnsApart / 2;
  if (!exchanges)
    return forEachPair(type, target, [&](Value address, int64_t flips, int64_t offset, int64_t i) {
      store(address, flips, offset, words[i], words[i + 1]);
    });
  Value isOdd = LLVM::TruncOp::create(builder, loc, builder.getI1Type(), thread.firstRow);
  auto either = [&](int64_t odd, int64_t even) {
    return LLVM::SelectOp::create(builder, loc, isOdd, words[odd], words[even]).getResult();
  };
  Value exchanged;
  forEachPair(type, target, [&](Value address, int64_t flips, int64_t offset, int64_t i) {
    if (!exchanged)
      exchanged = LLVM::SelectOp::create(
          builder, loc, isOdd, LLVM::XOrOp::create(builder, loc, address, i32(apart)), address);
    int64_t other = i ^ wordsApart;
    store(exchanged, flips, offset, either(other, i), either(other + 1, i + 1));
  });
}

/// Writes the columns of a tile of words as rows, one word at a time. Rows have multiples of 64
/// words, so that the swizzle is the widest: what the lanes of a warp write at once is in as many
/// banks, as the swizzle exchanges units by rows that are apart by 2.
void Emitter::stageWordColumns(hop::StageOp op, const SharedPlace &target) {
  hop::FragmentLayout layout(cast<RankedTensorType>(op.getTile().getType()));
  constexpr int64_t bytes = hopper::registerBytes;
  int64_t swizzle = target.layout.swizzle;
  Value column = mul(thread.firstRow, bytes);
  Value inUnit = LLVM::AndOp::create(builder, loc, column, i32(hopper::swizzleUnit - 1));
  Value first = add(swizzledAddress(target, thread.firstColumn, column), inUnit);
  for (auto [i, word] : llvm::enumerate(writtenElements(op))) {
    int64_t row = layout.offset(i, 1), byte = layout.offset(i, 0) * bytes;
    int64_t flips = byte % swizzle ^ row % hopper::swizzleRows * hopper::swizzleUnit;
    int64_t offset = row * swizzle + byte / swizzle * target.layout.chunkBytes();
    assembly("{\n.reg .b32 to;\nxor.b32 to, $0, " + Twine(flips) + ";\nst.shared.b32 [to+" +
                 Twine(offset) + "], $1;\n}",
             "r,r",
             {first, LLVM::BitcastOp::create(builder, loc, builder.getI32Type(), word).getResult()},
             {});
  }
}

void Emitter::fetchWords(hop::FetchOp op, const SharedPlace &source) {
  auto type = cast<RankedTensorType>(op.getTile().getType());
  Type element = type.getElementType();
  StringRef constraint = element.isF32() ? "=f,=f,r" : "=r,=r,r";
  Values results;
  forEachPair(type, source, [&](Value address, int64_t flips, int64_t offset, int64_t) {
    llvm::append_range(results, assembly("{\n.reg .b32 from;\nxor.b32 from, $2, " + Twine(flips) +
                                             ";\nld.shared.v2.b32 {$0, $1}, [from+" +
                                             Twine(offset) + "];\n}",
                                         constraint, {address}, {element, element}));
  });
  bind(op, std::move(results));
}

/// Reads two neighbours of 8 bits at a time, as an accumulator has them, and no more: so each two
/// are a register by themselves, of which one instruction makes two of 16 bits.
void Emitter::fetchBytes(hop::FetchOp op, const SharedPlace &source) {
  Values pairs, words;
  forEachPair(op.getTile().getType(), source,
              [&](Value address, int64_t flips, int64_t offset, int64_t) {
                llvm::append_range(
                    pairs, assembly("{\n.reg .b32 from;\nxor.b32 from, $1, " + Twine(flips) +
                                        ";\nld.shared.u16 $0, [from+" + Twine(offset) + "];\n}",
                                    "=h,r", {address}, TypeRange(builder.getI16Type())));
              });
  for (size_t i = 0; i < pairs.size(); i += 2)
    words.push_back(LLVM::BitcastOp::create(builder, loc, builder.getI32Type(),
                                            joinHalves(pairs[i], pairs[i + 1])));
  bind(op, std::move(words));
}

/// Reads columns of 8 bits as rows. ldmatrix.trans moves units of 16 bits: it gives lane 4g + t of
/// the columns 2g and 2g + 1 of 16 the rows 2t and 2t + 1 of 8, and a byte permute puts those of a
/// column side by side. Lane l has the address of row l of 32, which are four matrices.
void Emitter::fetchBytePairs(hop::FetchOp op, const SharedPlace &source) {
  constexpr int64_t byColumns = 0x3120, rowsAtOnce = hopper::warpThreads;
  RankedTensorType type = op.getTile().getType();
  Type word = builder.getI32Type();
  int64_t swizzle = source.layout.swizzle;
  auto addressOf = [&](int64_t column) {
    Value own = source.column ? add(add(source.column, column), warpRow()) : warpRow();
    return swizzledAddress(source, thread.lane, own);
  };
  Value first = addressOf(0);
  Values words;
  for (int64_t column = 0; column < type.getDimSize(0); column += hopper::mmaRows) {
    // From amid a chunk on, other columns are no constant away.
    if (source.column && column > 0)
      first = addressOf(column);
    int64_t away = source.column ? 0 : column;
    for (int64_t row = 0; row < type.getDimSize(1); row += rowsAtOnce) {
      int64_t offset = away / swizzle * source.layout.chunkBytes() + row * swizzle;
      for (Value pairs : assembly("{\n.reg .b32 from;\nxor.b32 from, $4, " + Twine(away % swizzle) +
                                      ";\nldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
                                      "{$0, $1, $2, $3}, [from+" +
                                      Twine(offset) + "];\n}",
                                  "=r,=r,=r,=r,r", {first}, {word, word, word, word}))
        words.push_back(permuteBytes(pairs, i32(0), i32(byColumns)));
    }
  }
  bind(op, std::move(words));
}

/// Calls `visit` for each of the runs of neighbours that a thread moves at once, of which `element`
/// is the number of the first word; addresses as for matrices. What the lanes span is within a
/// swizzle's span, and the rows of a thread are apart by multiples of its repeat.
void Emitter::forEachRun(RankedTensorType type, const SharedPlace &place, PlaceVisitor visit) {
  hop::FragmentLayout layout(type);
  int64_t bytes = place.layout.elementBytes, swizzle = place.layout.swizzle;
  int64_t inRegister = hop::elementsPerRegister(type);
  Value column = mul(firstPlace(layout.getLayoutAttr(), 1), bytes);
  Value inUnit = LLVM::AndOp::create(builder, loc, column, i32(hopper::swizzleUnit - 1));
  Value first = add(swizzledAddress(place, firstPlace(layout.getLayoutAttr(), 0), column), inUnit);
  for (int64_t i = 0; i < layout.size(); i += hop::wordsOfRun(type) * inRegister) {
    int64_t offset = layout.offset(i, 1) * bytes;
    visit(first, offset % swizzle,
          layout.offset(i, 0) * swizzle + offset / swizzle * place.layout.chunkBytes(),
          i / inRegister);
  }
}

void Emitter::fetchRuns(hop::FetchOp op, const SharedPlace &source) {
  auto type = cast<RankedTensorType>(op.getTile().getType());
  int64_t words = hop::wordsOfRun(type);
  bool isFloat = type.getElementType().isF32();
  Type word = isFloat ? Type(builder.getF32Type()) : Type(builder.getI32Type());
  std::string constraints;
  for (int64_t i = 0; i < words; ++i)
    constraints += isFloat ? "=f," : "=r,";
  Values results;
  forEachRun(type, source, [&](Value address, int64_t flips, int64_t offset, int64_t) {
    llvm::append_range(results,
                       assembly("{\n.reg .b32 from;\nxor.b32 from, $" + Twine(words) + ", " +
                                    Twine(flips) + ";\nld.shared.v" + Twine(words) + ".b32 " +
                                    vectorOf(0, words) + ", [from+" + Twine(offset) + "];\n}",
                                constraints + "r", {address}, SmallVector<Type>(words, word)));
  });
  bind(op, std::move(results));
}

void Emitter::stageRuns(hop::StageOp op, const SharedPlace &target) {
  auto type = cast<RankedTensorType>(op.getTile().getType());
  int64_t words = hop::wordsOfRun(type);
  const Values all = writtenElements(op);
  std::string constraints = "r";
  for (int64_t i = 0; i < words; ++i)
    constraints += ",r";
  forEachRun(type, target, [&](Value address, int64_t flips, int64_t offset, int64_t first) {
    Values operands = {address};
    for (Value word : ArrayRef(all).slice(first, words))
      operands.push_back(LLVM::BitcastOp::create(builder, loc, builder.getI32Type(), word));
    assembly("{\n.reg .b32 to;\nxor.b32 to, $0, " + Twine(flips) + ";\nst.shared.v" + Twine(words) +
                 ".b32 [to+" + Twine(offset) + "], " + vectorOf(1, words) + ";\n}",
             constraints, operands, {});
  });
}
