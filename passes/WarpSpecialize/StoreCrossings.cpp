//===- StoreCrossings.cpp - Sums and stores of a role ----------------------===//
//
// How a role writes a store: where it goes, the tickets that it waits for and passes on, and the
// products of a sum whose parts leave one after the other. See Slicer.h.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Analysis/OperandBuffers.h"
#include "passes/WarpSpecialize/Slicer.h"

using namespace mlir;
using namespace tessera;

SmallVector<Value> Slicer::placeOf(tile::StoreOp store, const ReducerSum *sum, int64_t number,
                                   OpBuilder &builder) {
  Location loc = store.getLoc();
  SmallVector<Value> indices = wholeOf(store.getIndices());
  auto move = [&](bool rows, Value offset) {
    Value &moved = indices[indices.size() - (rows ? 2 : 1)];
    moved = arith::AddIOp::create(builder, loc, moved, offset);
  };
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  if (!sum)
    return indices;
  SumParts parts = plan.partsOf(*sum);
  if (plan.exchanges) {
    Value rank = hop::ClusterRankOp::create(builder, loc, builder.getIndexType());
    move(/*rows=*/false,
         arith::MulIOp::create(builder, loc, rank,
                               constant(parts.ofColumns() * parts.tile.getDimSize(1))));
  }
  if (int64_t part = number / parts.pieces())
    move(parts.ofRows, constant(part * parts.tile.getDimSize(!parts.ofRows)));
  if (int64_t piece = number % parts.pieces())
    move(/*rows=*/false, constant(piece * parts.stored.getDimSize(1)));
  return indices;
}

/// The number of the ticket of this block, and the extents of what has one: where both blocks of a
/// cluster add to a tile, half of its columns.
std::pair<Value, SmallVector<int64_t>> Slicer::ticketOf(tile::StoreOp store, OpBuilder &builder) {
  auto tile = cast<RankedTensorType>(store.getValue().getType());
  SmallVector<int64_t> extents(tile.getShape());
  Value number = whole.lookupOrDefault(store.getTicket());
  Location loc = store.getLoc();
  if (plan.exchanges) {
    extents.back() /= exchangingBlocks;
    Value rank = hop::ClusterRankOp::create(builder, loc, builder.getIndexType());
    number = arith::AddIOp::create(builder, loc, number, rank);
  }
  return {number, extents};
}

void Slicer::writeTicketWait(tile::StoreOp store, OpBuilder &builder) {
  if (!store.getTicket())
    return;
  auto [number, extents] = ticketOf(store, builder);
  hop::TicketWaitOp::create(builder, store.getLoc(), whole.lookup(store.getView()), number, extents,
                            whole.lookupOrDefault(store.getFrom()), /*peeked=*/Value());
}

void Slicer::writeTicketPass(tile::StoreOp store, OpBuilder &builder) {
  if (!store.getTicket())
    return;
  auto [number, extents] = ticketOf(store, builder);
  hop::TicketPassOp::create(builder, store.getLoc(), whole.lookup(store.getView()), number, extents,
                            whole.lookupOrDefault(store.getTo()), /*condition=*/Value());
}

/// The product of part `number` of a sum; where the blocks of a cluster make it together, with that
/// of the other block's operands behind it.
Value Slicer::writeProduct(const ReducerSum &sum, int64_t number, OpBuilder &builder) {
  tile::DotOp dot = sum.dot;
  Location loc = dot.getLoc();
  SumParts parts = plan.partsOf(sum);
  Operand a = operands.find(dot.getA())->second, b = operands.find(dot.getB())->second;
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  int64_t ofRows = parts.ofRows ? parts.count : 1, ofColumns = parts.ofColumns();
  Value row = constant(parts.ofRows ? number : 0), column = constant(parts.ofRows ? 0 : number);
  auto multiply = [&](Value left, Value right, Value acc, int64_t columns, Value at) -> Value {
    return hop::MmaOp::create(
        builder, loc, parts.tile, partOf(left, a.transposed, ofRows, row, loc, builder),
        partOf(right, !b.transposed, columns, at, loc, builder), acc, a.transposed, b.transposed);
  };
  if (!plan.exchanges)
    return multiply(a.tile, b.tile, /*acc=*/Value(), ofColumns, column);
  Value theirA = theirs.lookup(sum.operand->getResult(0)),
        theirB = theirs.lookup(loadedOperand(dot.getB()).getResult()), own;
  if (b.tile.getType() == theirB.getType()) {
    own = multiply(a.tile, b.tile, /*acc=*/Value(), ofColumns, column);
  } else {
    Value rank = hop::ClusterRankOp::create(builder, loc, builder.getIndexType());
    Value first = arith::MulIOp::create(builder, loc, rank, constant(ofColumns));
    own = multiply(a.tile, b.tile, /*acc=*/Value(), exchangingBlocks * ofColumns,
                   arith::AddIOp::create(builder, loc, first, column));
  }
  return multiply(theirA, theirB, own, ofColumns, column);
}

/// Hands part `number` of a sum on, or adds it to memory, as a whole or piece by piece.
void Slicer::writePieces(const ReducerSum &sum, int64_t number, Value part, OpBuilder &builder) {
  tile::StoreOp store = sum.store;
  Location loc = store.getLoc();
  SumParts parts = plan.partsOf(sum);
  int64_t first = number * parts.pieces();
  SmallVector<Value> place;
  if (!plan.isPiped(store))
    place = placeOf(store, &sum, first, builder);
  for (int64_t i = 0; i < parts.pieces(); ++i) {
    Value piece = part;
    if (parts.pieces() > 1)
      piece = hop::ColumnsOp::create(builder, loc, parts.stored, part, i);
    if (plan.isPiped(store))
      writeTile(loc, piece, plan.pipeOf(store), builder);
    else
      tile::StoreOp::create(builder, loc, piece, whole.lookup(store.getView()),
                            i == 0 ? place : placeOf(store, &sum, first + i, builder),
                            store.getBoxAttr(), store.getAdd(), /*ticketed=*/false, plan.exchanges);
  }
}

/// Makes the parts of a sum one after the other, and adds each to memory.
void Slicer::writeSum(const ReducerSum &sum, OpBuilder &builder) {
  tile::StoreOp store = sum.store;
  bool adds = !plan.isPiped(store);
  for (int64_t i = 0, count = plan.partsOf(sum).count; i < count; ++i) {
    Value part = writeProduct(sum, i, builder);
    if (i == 0 && adds)
      writeTicketWait(store, builder);
    writePieces(sum, i, part, builder);
  }
  if (adds)
    writeTicketPass(store, builder);
}

/// Copies a result, or the parts of a sum.
void Slicer::writeBulkStore(tile::StoreOp store, OpBuilder &builder) {
  Location loc = store.getLoc();
  const ReducerSum *sum = plan.sumOf(store);
  bool isFirst = true;
  for (int64_t i = 0, count = sum ? plan.partsOf(*sum).stores() : 1; i < count; ++i) {
    PipeInfo &info = plan.pipeOf(store);
    auto wait = hop::PipeWaitOp::create(builder, loc, slotType(info.pipe), info.pipe);
    if (std::exchange(isFirst, false))
      writeTicketWait(store, builder);
    hop::BulkStoreOp::create(builder, loc, wait.getTile(), whole.lookup(store.getView()),
                             placeOf(store, sum, i, builder), store.getBoxAttr(), store.getAdd(),
                             /*inFlight=*/0, sum && plan.exchanges);
    waits.push_back(wait);
  }
  writeTicketPass(store, builder);
}
