//===- PipeCrossings.cpp - Loads and values as fills of pipes and waits ------===//
//
// How a role writes a load or a value that crosses the boundary between roles. See Slicer.h; stores
// and sums are in StoreCrossings.cpp.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/Machine.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Analysis/GridOrder.h"
#include "passes/Analysis/OperandBuffers.h"
#include "passes/WarpSpecialize/Slicer.h"

using namespace mlir;
using namespace tessera;

LogicalResult Slicer::cloneLoad(tile::LoadOp load, OpBuilder &builder) {
  if (assignment.prefetches(role, load))
    return writePrefetch(load, builder), success();
  if (!plan.isPiped(load))
    return cloneDirectLoad(load, builder), success();
  PipeInfo &info = plan.pipeOf(load);
  // What is loaded ahead is loaded there, and taken by the load that follows.
  if (assignment.fills(role, load) && load.getAhead() == info.isAhead)
    writeFill(load, info, builder);
  if (!assignment.reads(role, plan.accesses.lookup(load)))
    return success();
  if (load.getAhead())
    return writePeek(load, info, builder), success();
  if (info.isTransposed)
    writeTransposed(load, info, builder);
  else if (plan.fetched.contains(load) && assignment.has(role, load.getResult()))
    writeFetch(load, info, builder);
  else if (!info.ownHalf || spec.task != RoleTask::Sum)
    writeWait(load.getResult(), info, builder);
  if (info.theirs && spec.task == RoleTask::Sum)
    writeHalfWaits(load, info, builder);
  return success();
}

/// Waits for what this block multiplies of both blocks' tiles.
void Slicer::writeHalfWaits(tile::LoadOp load, PipeInfo &info, OpBuilder &builder) {
  auto wait = [&](Value pipe) {
    waits.push_back(hop::PipeWaitOp::create(builder, load.getLoc(), slotType(pipe), pipe));
    return waits.back().getTile();
  };
  theirs[load.getResult()] = wait(info.theirs);
  if (info.ownHalf)
    operands[load.getResult()] = {wait(info.ownHalf), false};
}

void Slicer::writePrefetch(tile::LoadOp load, OpBuilder &builder) {
  auto type = dyn_cast<RankedTensorType>(load.getType());
  hop::L2PrefetchOp::create(builder, load.getLoc(), whole.lookup(load.getView()),
                            wholeOf(load.getIndices()), type ? type.getNumElements() : 1);
}

void Slicer::cloneGather(tile::GatherOp gather, OpBuilder &builder) {
  if (!plan.isPiped(gather))
    return cloneGeneric(gather, builder);
  PipeInfo &info = plan.pipeOf(gather);
  if (assignment.fills(role, gather))
    writeGather(gather, info, builder);
  if (assignment.reads(role, plan.accesses.lookup(gather)))
    writeWait(gather.getResult(), info, builder);
}

/// All threads of the role copy, each its part of the rows, and hand over when that has come.
void Slicer::writeGather(tile::GatherOp gather, PipeInfo &info, OpBuilder &builder) {
  Location loc = gather.getLoc();
  Value slot = hop::PipeAcquireOp::create(builder, loc, slotType(info.pipe), info.pipe);
  SmallVector<Value> rows =
      llvm::map_to_vector(gather.getRowsMutable(), [&](OpOperand &use) { return lookup(use); });
  hop::GatherOp::create(builder, loc, slot, whole.lookup(gather.getView()),
                        wholeOf(gather.getIndices()), rows,
                        /*layout=*/hop::LayoutAttr());
  hop::PipeCommitOp::create(builder, loc, info.pipe, slot);
}

void Slicer::cloneRuns(tile::GatherRunsOp gather, OpBuilder &builder) {
  PipeInfo &info = plan.pipeOf(gather);
  if (assignment.fills(role, gather))
    writeRuns(gather, info, builder);
  if (assignment.reads(role, plan.accesses.lookup(gather)))
    writeWait(gather.getResult(), info, builder);
}

/// Where one thread starts copies: the one that runs the role, or one of its first warpgroup.
OpBuilder Slicer::onOneThread(Location loc, OpBuilder &builder) {
  if (spec.isElected())
    return builder;
  auto elected = hop::ElectedOp::create(builder, loc, builder.getI1Type(), warpgroup);
  auto guard = scf::IfOp::create(builder, loc, elected.getResult(), /*withElseRegion=*/false);
  return guard.getThenBodyBuilder();
}

/// Whether nothing but products reads `tile`: what arithmetic reads is not rounded.
static bool isMultipliedAlone(Value tile) {
  return llvm::all_of(tile.getUsers(), [&](Operation *user) {
    if (auto dot = dyn_cast<tile::DotOp>(user))
      return dot.getA() == tile || dot.getB() == tile;
    return isa<tile::TransposeOp>(user) && isMultipliedAlone(user->getResult(0));
  });
}

/// Copies round the operands of products of words. Nothing else reads them, as checkDots has seen.
static UnitAttr tf32Of(tile::LoadOpInterface load, OpBuilder &builder) {
  Value tile = load.getResult();
  return isRoundedOperand(tile) && feedsDot(tile) ? builder.getUnitAttr() : UnitAttr();
}

/// The thread finds where runs lie, and copies each.
void Slicer::writeRuns(tile::GatherRunsOp gather, PipeInfo &info, OpBuilder &outer) {
  Location loc = gather.getLoc();
  OpBuilder builder = onOneThread(loc, outer);
  SmallVector<Value> captures = llvm::map_to_vector(
      gather.getCaptures(), [&](Value value) { return whole.lookupOrDefault(value); });
  auto load = hop::PipeLoadOp::create(builder, loc, info.pipe, whole.lookup(gather.getView()),
                                      wholeOf(gather.getIndices()), /*box=*/nullptr,
                                      /*alike=*/nullptr, tf32Of(gather, builder), captures,
                                      gather.getRunAttr(),
                                      /*runsCount=*/1);
  IRMapping inside = whole;
  gather.getBody().cloneInto(&load.getRuns().front(), inside);
  Operation *end = load.getBodyOfRun().getTerminator();
  OpBuilder atEnd(end);
  hop::YieldOp::create(atEnd, end->getLoc(), end->getOperands());
  end->erase();
}

void Slicer::writeFill(tile::LoadOp load, PipeInfo &info, OpBuilder &builder) {
  OpBuilder inner = onOneThread(load.getLoc(), builder);
  hop::PipeLoadOp::create(inner, load.getLoc(), info.pipe, whole.lookup(load.getView()),
                          wholeOf(load.getIndices()), load.getBoxAttr(), load.getAlikeAttr(),
                          tf32Of(load, inner));
  if (info.theirs)
    writeTheirFill(load, info, inner);
  if (info.ownHalf)
    writeHalfFill(load, info.ownHalf, wholeOf(load.getIndices()), inner);
}

/// Loads what this block multiplies of the tile that the other block of the cluster loads here.
/// There is none past the end of the grid: zeros, as no row of the view is before the first one.
void Slicer::writeTheirFill(tile::LoadOp load, PipeInfo &info, OpBuilder &builder) {
  Location loc = load.getLoc();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto kernel = load->getParentOfType<tile::KernelOp>();
  Value index = kernel.getGridIndex(0);
  Value neighbour = arith::XOrIOp::create(builder, loc, whole.lookup(index), constant(1));
  Value exists = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, neighbour,
                                       countTiles(kernel.getGridDim(0), builder, loc));
  IRMapping known;
  known.map(index, neighbour);
  SmallVector<Value> place = llvm::map_to_vector(
      load.getIndices(), [&](Value value) { return theirsOf(value, known, builder); });
  Value &row = place[place.size() - 2];
  row = arith::SelectOp::create(builder, loc, exists, row, constant(-info.theirTile.getDimSize(0)));
  writeHalfFill(load, info.theirs, std::move(place), builder);
}

/// Loads the half of the columns that this block multiplies of the tile at `place`.
void Slicer::writeHalfFill(tile::LoadOp load, Value pipe, SmallVector<Value> place,
                           OpBuilder &builder) {
  Location loc = load.getLoc();
  int64_t columns = slotType(pipe).getTile().getDimSize(1);
  Value rank = hop::ClusterRankOp::create(builder, loc, builder.getIndexType());
  Value half = arith::MulIOp::create(builder, loc, rank,
                                     arith::ConstantIndexOp::create(builder, loc, columns));
  place.back() = arith::AddIOp::create(builder, loc, place.back(), half);
  hop::PipeLoadOp::create(builder, loc, pipe, whole.lookup(load.getView()), place,
                          load.getBoxAttr(), /*alike=*/UnitAttr(), tf32Of(load, builder));
}

/// `value` as the other block of the cluster has it: what arithmetic makes of what it has.
Value Slicer::theirsOf(Value value, IRMapping &known, OpBuilder &builder) {
  if (Value found = known.lookupOrNull(value))
    return found;
  Value own = whole.lookupOrDefault(value);
  Operation *op = value.getDefiningOp();
  bool differs = false;
  if (op && op->getNumRegions() == 0 && isPure(op))
    for (Value operand : op->getOperands())
      differs |= theirsOf(operand, known, builder) != whole.lookupOrDefault(operand);
  known.map(value, differs ? builder.clone(*op, known)->getResult(0) : own);
  return known.lookup(value);
}

void Slicer::writeWait(Value tile, PipeInfo &info, OpBuilder &builder) {
  Location loc = tile.getLoc();
  auto wait = hop::PipeWaitOp::create(builder, loc, slotType(info.pipe), info.pipe);
  waits.push_back(wait);
  operands[tile] = {wait.getTile(), false};
  if (!info.isExchanged)
    return;
  auto half = [&](int64_t number) {
    return partOf(wait.getTile(), /*ofColumns=*/false, exchangingBlocks,
                  arith::ConstantIndexOp::create(builder, loc, number), loc, builder);
  };
  operands[tile].tile = half(0);
  theirs[tile] = half(1);
}

/// Reads a tile that the next load of its pipe takes.
void Slicer::writePeek(tile::LoadOp load, PipeInfo &info, OpBuilder &builder) {
  if (llvm::none_of(load->getUsers(), [&](Operation *user) { return assignment.runs(role, user); }))
    return;
  auto peek = hop::PipePeekOp::create(builder, load.getLoc(), slotType(info.pipe), info.pipe);
  operands[load.getResult()] = {peek.getTile(), false};
}

/// Waits for a computed tile of another role, to multiply it or, where this role computes with it,
/// to take it into the registers of the same lanes.
void Slicer::writeCrossing(Operation *op, PipeInfo &info, OpBuilder &builder) {
  writeWait(op->getResult(0), info, builder);
  if (!spec.part)
    return;
  crossings.push_back(waits.back());
  if (plan.division->takesIntoRegisters(*spec.part, op))
    whole.map(op->getResult(0),
              hop::FetchOp::create(builder, op->getLoc(), typeOf(op->getResult(0)),
                                   operands.find(op->getResult(0))->second.tile)
                  .getTile());
}

/// How far the upper half of a bound of 64 bits is shifted.
constexpr int64_t bitsOfValue = 32;

/// Puts a bound into the pipe, one of 64 bits in halves.
static void handOnBound(Location loc, Value bound, Value pipe, OpBuilder &builder) {
  Type i32 = builder.getI32Type();
  if (bound.getType() == i32) {
    hop::PipePutOp::create(builder, loc, pipe, bound);
    return;
  }
  Value shift = arith::ConstantIntOp::create(builder, loc, bound.getType(), bitsOfValue);
  Value high = arith::ShRUIOp::create(builder, loc, bound, shift);
  for (Value half : {bound, high})
    hop::PipePutOp::create(builder, loc, pipe, arith::TruncIOp::create(builder, loc, i32, half));
}

/// Gets it.
static Value takeBound(tile::ReduceRangeOp bound, Value pipe, OpBuilder &builder) {
  Location loc = bound.getLoc();
  Type type = bound.getType();
  auto take = [&]() -> Value {
    return hop::PipeGetOp::create(builder, loc, builder.getI32Type(), pipe);
  };
  if (type == builder.getI32Type())
    return take();
  Value low = arith::ExtUIOp::create(builder, loc, type, take());
  Value high = arith::ExtUIOp::create(builder, loc, type, take());
  Value shift = arith::ConstantIntOp::create(builder, loc, type, bitsOfValue);
  return arith::OrIOp::create(builder, loc, low, arith::ShLIOp::create(builder, loc, high, shift));
}

/// Finds a bound, or takes it. Bounds are handed on behind the last one of a block, as those of the
/// same integers load them once where nothing stands between.
void Slicer::writeBound(tile::ReduceRangeOp bound, PipeInfo &info, OpBuilder &builder) {
  if (plan.fillerOf(info) != role) {
    whole.map(bound.getResult(), takeBound(bound, info.pipe, builder));
    return;
  }
  builder.clone(*bound, whole);
  SmallVector<tile::ReduceRangeOp> bounds = plan.boundsIn(bound->getBlock());
  if (bound != bounds.back())
    return;
  for (tile::ReduceRangeOp each : bounds)
    handOnBound(each.getLoc(), whole.lookup(each.getResult()), info.pipe, builder);
}

/// Moves waits for tiles of other consumers to their first uses: what does not need them comes
/// first.
void Slicer::sinkCrossings() {
  for (hop::PipeWaitOp wait : crossings) {
    Block *block = wait->getBlock();
    bool isAlone = llvm::all_of(wait.getPipe().getUsers(), [&](Operation *user) {
      return user == wait || user->getBlock() != block || !isa<hop::PipeWaitOp>(user);
    });
    Operation *first = nullptr;
    hop::FetchOp fetch;
    auto visit = [&](Value value, auto &self) -> void {
      for (Operation *user : value.getUsers()) {
        if (auto taken = dyn_cast<hop::FetchOp>(user)) {
          fetch = taken;
          self(taken.getTile(), self);
          continue;
        }
        Operation *ancestor = block->findAncestorOpInBlock(*user);
        if (!first || ancestor->isBeforeInBlock(first))
          first = ancestor;
      }
    };
    visit(wait.getTile(), visit);
    if (!first || !isAlone)
      continue;
    wait->moveBefore(first);
    if (fetch)
      fetch->moveBefore(first);
  }
}

/// Transposes a tile on its way, or takes what a transposer has made of it.
void Slicer::writeTransposed(tile::LoadOp load, PipeInfo &info, OpBuilder &builder) {
  Location loc = load.getLoc();
  hop::SharedType slot = slotType(info.transposed);
  if (plan.roleOf(RoleTask::Transpose) != role) {
    auto wait = hop::PipeWaitOp::create(builder, loc, slot, info.transposed);
    operands[load.getResult()] = {wait.getTile(), /*transposed=*/true, /*inAccumulatorOrder=*/true};
    waits.push_back(wait);
    return;
  }
  Value tile = hop::PipeWaitOp::create(builder, loc, slotType(info.pipe), info.pipe);
  Value own = hop::PipeAcquireOp::create(builder, loc, slot, info.transposed);
  hop::TransposeOp::create(builder, loc, tile, own);
  // All threads have read and written.
  hop::WarpgroupSyncOp::create(builder, loc);
  hop::PipeCommitOp::create(builder, loc, info.transposed, own);
  hop::PipeReleaseOp::create(builder, loc, info.pipe, tile);
}

/// Takes a tile from its slot into registers: the warpgroup's rows where it is divided.
void Slicer::writeFetch(tile::LoadOp load, PipeInfo &info, OpBuilder &builder) {
  auto wait = hop::PipeWaitOp::create(builder, load.getLoc(), slotType(info.pipe), info.pipe);
  waits.push_back(wait);
  Value slot = wait.getTile();
  if (rows.isPartitioned(load.getResult()))
    slot = sliceOf(slot, /*ofColumns=*/false, load.getLoc(), builder);
  whole.map(load.getResult(),
            hop::FetchOp::create(builder, load.getLoc(), typeOf(load.getResult()), slot));
}

/// Makes the tile that another role multiplies, for this role too, and hands it over.
LogicalResult Slicer::writeOperand(Operation *op, PipeInfo &info, OpBuilder &builder) {
  Value tile = op->getResult(0);
  if (rows.getParts() > 1 && !rows.isPartitioned(tile))
    return op->emitError("makes a tile that each of the ")
           << rows.getParts()
           << " consumer warpgroups has as a whole, and a reducer gets the rows of all "
              "(placement = apart); use placement = rows, or consumers = 1";
  if (failed(cloneOwn(op, builder)))
    return failure();
  if (!plan.isHandedOverLate(op))
    writeOperandTile(op, info, builder);
  return success();
}

/// Hands the operand of the sum that `op` multiplies over where the program multiplies it, behind
/// the dots of this role.
void Slicer::writeLate(Operation *op, OpBuilder &builder) {
  const ReducerSum *sum = plan.sumOf(op);
  if (!sum || op != sum->dot || !assignment.fills(role, sum->operand) ||
      !plan.isHandedOverLate(sum->operand) || !handedOver.insert(sum->operand).second)
    return;
  writeOperandTile(sum->operand, plan.pipeOf(sum->operand), builder);
}

/// Writes a tile that another role multiplies.
void Slicer::writeOperandTile(Operation *op, PipeInfo &info, OpBuilder &builder) {
  Value tile = op->getResult(0);
  writeTile(op->getLoc(), whole.lookup(tile), info, builder,
            isRoundedOperand(tile) && isMultipliedAlone(tile));
}

/// Each warpgroup writes its rows of the slot, and hands them over by one thread.
void Slicer::writeTile(Location loc, Value value, PipeInfo &info, OpBuilder &builder, bool tf32) {
  Value slot = hop::PipeAcquireOp::create(builder, loc, slotType(info.pipe), info.pipe);
  int64_t parts = rows.getParts() * (info.isExchanged ? exchangingBlocks : 1);
  hop::StageOp::create(builder, loc, value,
                       partOf(slot, /*ofColumns=*/false, parts, warpgroup, loc, builder),
                       /*transposed=*/false, tf32);
  hop::WarpgroupSyncOp::create(builder, loc);
  hop::PipeCommitOp::create(builder, loc, info.pipe, slot);
}

/// Makes an operand of a loaded tile part by part, so that few registers hold it, and hands it over
/// when all threads have written.
void Slicer::writeConversion(const Conversion &conversion, PipeInfo &info, OpBuilder &builder) {
  Operation *last = conversion.operations.back();
  Location loc = last->getLoc();
  Value source = operands.find(conversion.load->getResult(0))->second.tile;
  Value target = hop::PipeAcquireOp::create(builder, loc, slotType(info.pipe), info.pipe);
  // A part of the columns has the numbers of all rows.
  bool ofColumns = conversion.rowVectors > 0;
  int64_t parts = countConvertedParts(info.tile, ofColumns);
  for (int64_t i = 0; i < parts; ++i) {
    Value number = arith::ConstantIndexOp::create(builder, loc, i);
    Value from = partOf(source, ofColumns, parts, number, loc, builder),
          to = partOf(target, ofColumns, parts, number, loc, builder);
    RankedTensorType tile = cast<hop::SharedType>(from.getType()).getTile();
    writePart(conversion, {i, ofColumns, tile, {}}, from, to, builder);
  }
  hop::WarpgroupSyncOp::create(builder, loc);
  hop::PipeCommitOp::create(builder, loc, info.pipe, target);
}

/// Computes the elements of `target` from those of `source`.
void Slicer::writePart(const Conversion &conversion, Part part, Value source, Value target,
                       OpBuilder &builder) {
  Value loaded = conversion.load->getResult(0);
  part.known.map(loaded,
                 hop::FetchOp::create(builder, loaded.getLoc(), part.tile, source).getTile());
  for (Operation *op : conversion.operations) {
    OperationState state(op->getLoc(), op->getName());
    for (Value operand : op->getOperands())
      state.operands.push_back(partOfNumbers(operand, part, builder));
    state.addTypes(
        RankedTensorType::get(part.tile.getShape(), getElementTypeOrSelf(op->getResult(0))));
    state.addAttributes(op->getAttrs());
    part.known.map(op->getResult(0), builder.create(state)->getResult(0));
  }
  Operation *last = conversion.operations.back();
  hop::StageOp::create(builder, last->getLoc(), part.known.lookup(last->getResult(0)), target,
                       /*transposed=*/false, isRoundedOperand(last->getResult(0)));
}

/// What `part` has of `value`, or numbers of its shape, made anew.
Value Slicer::partOfNumbers(Value value, const Part &part, OpBuilder &builder) {
  auto all = dyn_cast<RankedTensorType>(value.getType());
  if (all && all.getRank() == 1)
    return whole.lookupOrDefault(value);
  if (part.known.contains(value) || !all)
    return part.known.lookupOrDefault(value);
  auto type = RankedTensorType::get(part.tile.getShape(), all.getElementType());
  Location loc = value.getLoc();
  if (auto iota = value.getDefiningOp<tile::IotaOp>()) {
    int64_t axis = iota.getAxis(),
            before = axis == part.ofColumns ? part.number * type.getDimSize(axis) : 0;
    Value start = arith::AddIOp::create(builder, loc, whole.lookupOrDefault(iota.getStart()),
                                        arith::ConstantIndexOp::create(builder, loc, before));
    return tile::IotaOp::create(builder, loc, type, start, iota.getAxisAttr(), IntegerAttr());
  }
  if (auto splat = value.getDefiningOp<tile::SplatOp>())
    return tile::SplatOp::create(builder, loc, type, whole.lookupOrDefault(splat.getSource()));
  auto dense = cast<DenseElementsAttr>(value.getDefiningOp<arith::ConstantOp>().getValue());
  return arith::ConstantOp::create(builder, loc, dense.resizeSplat(type));
}

/// Takes tiles that other grid points need from their pipes. The warps of the warpgroup meet for
/// each, so that one thread can give the slot back for all.
LogicalResult Slicer::cloneSkip(tile::SkipLoadsOp skip, OpBuilder &builder) {
  Location loc = skip.getLoc();
  auto constant = [&](int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value).getResult();
  };
  OpBuilder inner = builder;
  bool isOnce = getConstantIntValue(skip.getTimes()) == 1;
  if (!isOnce) {
    auto loop = scf::ForOp::create(builder, loc, constant(0),
                                   whole.lookupOrDefault(skip.getTimes()), constant(1));
    inner = OpBuilder::atBlockBegin(loop.getBody());
  }
  for (int64_t number : skip.getPipes()) {
    auto pipe = plan.pipes.find(PipeKey(nullptr, number));
    if (pipe == plan.pipes.end())
      return skip.emitError("skips tiles of loads of pipe ")
             << number << ", of which the kernel has none";
    PipeInfo &info = pipe->second;
    if (plan.fillerOf(info) == role)
      return skip.emitError("skips tiles that a producer loads for other grid points, and "
                            "producer = none has none; use producer = operands");
    if (!assignment.reads(role, pipe->first) ||
        (info.isTransposed && plan.roleOf(RoleTask::Transpose) != role))
      continue;
    Value tile = hop::PipeWaitOp::create(inner, loc, slotType(info.pipe), info.pipe);
    hop::WarpgroupSyncOp::create(inner, loc);
    hop::PipeReleaseOp::create(inner, loc, info.pipe, tile);
  }
  return success();
}

/// Releases each slot after its last reader in the block of its wait.
void Slicer::releaseSlots() {
  for (hop::PipeWaitOp wait : waits) {
    Operation *last = wait;
    auto extend = [&](Value value, auto &self) -> void {
      for (Operation *user : value.getUsers()) {
        Operation *ancestor = wait->getBlock()->findAncestorOpInBlock(*user);
        if (last->isBeforeInBlock(ancestor))
          last = ancestor;
        if (isa<hop::SliceOp>(user))
          self(user->getResult(0), self);
      }
    };
    extend(wait.getTile(), extend);
    // One thread of a converter gives the slot back for all, when they have met.
    if (spec.task == RoleTask::Convert && isa<hop::FetchOp>(last))
      while (!isa<hop::WarpgroupSyncOp>(last))
        last = last->getNextNode();
    OpBuilder builder(last->getBlock(), std::next(last->getIterator()));
    hop::PipeReleaseOp::create(builder, wait.getLoc(), wait.getPipe(), wait.getTile());
  }
}
