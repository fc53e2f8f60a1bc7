//===- EmitSync.cpp - Barriers, bulk copies and turns ---------------------===//

#include "dialects/Hop/Machine.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "passes/LowerToLLVM/Emitter.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;

LogicalResult Emitter::emitSync(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](hop::SlotOp slot) { return emitSlot(slot), success(); })
      .Case([&](hop::SliceOp slice) { return emitSlice(slice), success(); })
      .Case([&](hop::BarrierWaitOp wait) {
        StringRef scope = wait.getCluster() ? ".acquire.cluster" : "";
        assembly("{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity" + scope +
                     ".shared::cta.b64 done, [$0], $1;\n@!done bra again;\n}",
                 "r,r",
                 {barrierAddress(wait.getBarriers(), wait.getIndex()), scalar(wait.getParity())},
                 {});
        return success();
      })
      .Case([&](hop::BarrierExpectOp expect) {
        assembly("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [$0], $1;", "r,r",
                 {barrierAddress(expect.getBarriers(), expect.getIndex()), i32(expect.getBytes())},
                 {});
        return success();
      })
      .Case([&](hop::BarrierArriveOp arrive) { return emitArrive(arrive), success(); })
      .Case([&](hop::ExchangeOp exchange) { return emitExchange(exchange), success(); })
      .Case([&](hop::BulkLoadOp load) { return emitBulkLoad(load), success(); })
      .Case([&](hop::L2PrefetchOp prefetch) { return emitL2Prefetch(prefetch), success(); })
      .Case([&](hop::BulkStoreOp store) { return emitBulkStore(store), success(); })
      .Case([&](hop::GatherOp gather) { return emitCopies(gather); })
      .Case([&](hop::StageOp stage) { return emitStage(stage), success(); })
      .Case([&](hop::TransposeOp transpose) { return emitTranspose(transpose), success(); })
      .Case([&](hop::ProxyFenceOp) {
        assembly("fence.proxy.async.shared::cta;", "", {}, {});
        return success();
      })
      .Case([&](hop::WarpgroupSyncOp) { return emitWarpgroupSync(), success(); })
      .Case([&](hop::RoleSyncOp) { return emitRoleSync(), success(); })
      .Case([&](hop::ElectedOp elected) {
        Value first =
            LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, thread.warpgroup, i32(0));
        Value leads =
            LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, thread.isLeader, i32(0));
        bind(elected, {LLVM::AndOp::create(builder, loc, first, leads)});
        return success();
      })
      .Case([&](hop::ClusterFenceOp) {
        assembly("fence.acq_rel.cluster;", "", {}, {});
        return success();
      })
      .Case([&](hop::BulkReadWaitOp) {
        assembly("cp.async.bulk.wait_group.read 0;", "", {}, {});
        return success();
      })
      .Case([&](hop::BulkStoreWaitOp) {
        assembly("cp.async.bulk.wait_group 0;", "", {}, {});
        return success();
      })
      .Case([&](hop::FlagOp flag) { return emitFlag(flag), success(); })
      .Case([&](hop::MarkOp mark) { return emitMark(mark), success(); })
      .Case<hop::SlotStoreOp, hop::SlotLoadOp>([&](auto) { return emitSlotAccess(op), success(); })
      .Case([&](hop::SlotMulticastOp store) { return emitSlotMulticast(store), success(); })
      .Case([&](hop::ClusterRankOp rank) { return bind(rank, {clusterRank()}), success(); })
      .Case<hop::BlockIndexOp, hop::BlockCountOp, hop::NextTileOp, hop::ResetTilesOp>(
          [&](auto) { return emitTileCounter(op), success(); })
      .Case([&](hop::ProbesVerdictOp verdict) { return emitVerdict(verdict), success(); })
      .Case<hop::TicketWaitOp, hop::TicketPassOp, hop::TicketPeekOp>(
          [&](auto ticket) { return emitTicket(ticket), success(); })
      .Case<hop::TurnStartOp, hop::TurnWaitOp, hop::TurnPassOp>(
          [&](auto) { return emitTurn(op), success(); })
      .Default([](Operation *other) -> LogicalResult {
        return other->emitError(
            "cannot be lowered to machine code; run the passes before this one");
      });
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

void Emitter::emitSlot(hop::SlotOp op) {
  auto buffer = op.getBuffer().getDefiningOp<hop::BufferOp>();
  hop::SharedLayout layout = *hop::getSharedLayout(op.getBuffer().getType().getTile());
  Value offset = mul(scalar(op.getIndex()), layout.bytes());
  sharedTiles[op] = {add(add(sharedBase, *buffer.getOffset()), offset), layout};
}

void Emitter::emitSlice(hop::SliceOp op) {
  SharedPlace source = sharedTiles.find(op.getSource())->second;
  RankedTensorType part = op.getResult().getType().getTile();
  if (op.isOfColumns() && part.getDimSize(1) % source.layout.chunkColumns() != 0) {
    Value column = mul(scalar(op.getIndex()), part.getDimSize(1));
    sharedTiles[op] = {source.address, source.layout, column};
    return;
  }
  int64_t bytes = op.isOfColumns() ? part.getDimSize(1) / source.layout.chunkColumns() *
                                         source.layout.chunkBytes()
                                   : part.getDimSize(0) * source.layout.swizzle;
  sharedTiles[op] = {add(source.address, mul(scalar(op.getIndex()), bytes)), source.layout};
}

void Emitter::emitStaging(hop::StagingOp op) {
  hop::SharedType type = op.getTile().getType();
  sharedTiles[op] = {add(sharedBase, *op.getOffset()),
                     *hop::getSharedLayout(type.getTile(), type.getStoredRows())};
}

//===----------------------------------------------------------------------===//
// Bulk copies
//===----------------------------------------------------------------------===//

Value Emitter::barrierAddress(Value barriers, Value index) {
  auto group = barriers.getDefiningOp<hop::BarriersOp>();
  return add(add(sharedBase, *group.getOffset()), mul(scalar(index), 8));
}

/// One thread or every one arrives, at this block's barrier or at those of the cluster. Remote
/// arrivals have no qualifiers: `.release.cluster` would put a fence before each of them, for what
/// a product has read needs none.
void Emitter::emitArrive(hop::BarrierArriveOp op) {
  Value address = barrierAddress(op.getBarriers(), op.getIndex());
  if (op.getCopies()) {
    assembly("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$0];", "r", {address}, {});
    return;
  }
  if (!op.getBlocks()) {
    if (op.getAfter()) {
      // A NaN that no arithmetic makes. So all arrive, and none before it has the number.
      assembly("{\n.reg .pred there;\nsetp.ne.b32 there, $1, 0x7F80DEAD;\n"
               "@there mbarrier.arrive.release.cta.shared::cta.b64 _, [$0];\n}",
               "r,f", {address, elements(op.getAfter()).front()}, {});
      return;
    }
    if (op.getAll()) {
      assembly("mbarrier.arrive.release.cta.shared::cta.b64 _, [$0];", "r", {address}, {});
      return;
    }
    assembly("{\n.reg .pred leads;\nsetp.ne.b32 leads, $1, 0;\n"
             "@leads mbarrier.arrive.release.cta.shared::cta.b64 _, [$0];\n}",
             "r,r", {address, thread.isLeader}, {});
    return;
  }
  if (op.getAll()) {
    for (uint64_t block = 0; block < *op.getBlocks(); ++block)
      assembly("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, $0, " + Twine(block) +
                   ";\nmbarrier.arrive.shared::cluster.b64 _, [remote];\n}",
               "r", {address}, {});
    return;
  }
  // The first threads of the warpgroup, each at another block.
  Value remote = add(thread.clusterBase, LLVM::SubOp::create(builder, loc, address, sharedBase));
  assembly("{\n.reg .pred signals;\nsetp.lt.u32 signals, $1, " + Twine(*op.getBlocks()) +
               ";\n@signals mbarrier.arrive.shared::cluster.b64 _, [$0];\n}",
           "r,r", {remote, thread.inGroup}, {});
}

/// Copies between the blocks are of the async proxy, as the products are that read them, and who
/// waits for their bytes sees them. Those that come before this block arrives are counted too.
void Emitter::emitExchange(hop::ExchangeOp op) {
  SharedPlace own = sharedTiles.find(op.getOwn())->second;
  SharedPlace theirs = sharedTiles.find(op.getTheirs())->second;
  RankedTensorType tile = op.getOwn().getType().getTile();
  int64_t chunkColumns = own.layout.chunkColumns();
  int64_t chunks = llvm::divideCeil(tile.getDimSize(1), chunkColumns);
  int64_t bytes = tile.getDimSize(0) * own.layout.swizzle;
  Value barrier = barrierAddress(op.getBarriers(), op.getIndex());
  onCopyingThread(/*condition=*/Value(), [&] {
    Value other = LLVM::XOrOp::create(builder, loc, clusterRank(), i32(1));
    auto atOther = [&](Value address) {
      return assembly("mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r", {address, other},
                      TypeRange(builder.getI32Type()))
          .front();
    };
    Value target = atOther(theirs.address), remote = atOther(barrier);
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      int64_t offset = chunk * own.layout.chunkBytes();
      assembly("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [$0], [$1], "
               "$2, [$3];",
               "r,r,r,r", {add(target, offset), add(own.address, offset), i32(bytes), remote}, {});
    }
    assembly("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [$0], $1;", "r,r",
             {barrier, i32(chunks * bytes)}, {});
  });
}

/// Coordinates of a copy, innermost first. `chunk` counts chunks from the tile's first column.
Emitter::Values Emitter::copyCoordinates(const TensorMap &map, ValueRange indices, int64_t chunk) {
  int64_t chunkColumns = map.layout.chunkColumns();
  return llvm::map_to_vector(map.dims(), [&](MapDim dim) -> Value {
    switch (dim.kind) {
    case MapDim::Columns:
      return map.chunked ? i32(0) : add(scalar(indices.back()), chunk * chunkColumns);
    case MapDim::Chunks:
      return i32(*getConstantIntValue(indices.back()) / chunkColumns + chunk);
    case MapDim::Outer: {
      Value place = scalar(indices[dim.ofView]);
      auto row = indices[dim.ofView].getDefiningOp<tile::RowOp>();
      if (!row)
        return place;
      // A row far behind the end would have a place beyond 2^31; a store starts at none below 0.
      Value end = scalar(row.getEnd()), inside = LLVM::SMinOp::create(builder, loc, place, end);
      return add(LLVM::SubOp::create(builder, loc, inside, end), LaunchParameters::wrappedRows);
    }
    case MapDim::Ends:
      return scalar(indices[dim.ofView].getDefiningOp<tile::RowOp>().getEnd());
    case MapDim::Wraps:
      return i32(LaunchParameters::wrappedRows);
    }
    llvm_unreachable("a kind of dimension");
  });
}

/// "{$first, ...}" for `count` operands.
static std::string operandList(size_t first, size_t count) {
  std::string text = "{";
  for (size_t i = 0; i < count; ++i)
    text += (i ? ", $" : "$") + std::to_string(first + i);
  return text + "}";
}

/// Moves a copy to this block's part of the tile, in the view and in shared memory.
void Emitter::moveToPart(const TensorMap &map, Values &coordinates, Value &address) {
  const hop::TileParts &parts = map.parts;
  Value chunkPart = LLVM::AndOp::create(builder, loc, clusterRank(), i32(parts.ofChunks - 1));
  Value rowPart =
      LLVM::LShrOp::create(builder, loc, clusterRank(), i32(llvm::Log2_64(parts.ofChunks)));
  Value chunk = mul(chunkPart, map.layout.chunks() / parts.ofChunks);
  Value row = mul(rowPart, map.boxRows());
  Value &chunkCoordinate = coordinates[map.chunkPosition()];
  chunkCoordinate =
      add(chunkCoordinate, map.chunked ? chunk : mul(chunk, map.layout.chunkColumns()));
  tile::BoxSlice slice = map.rows();
  auto place = [&](size_t i, Value digit) {
    Value &coordinate = coordinates[map.rowPosition(slice.dim - i)];
    coordinate = add(coordinate, digit);
  };
  tile::splitRow<Value>(
      mul(rowPart, slice.step), map.box.getCarries(slice.dim),
      [&](Value number, int64_t extent) { return divideBy(number, extent); }, place);
  address = add(add(address, mul(chunk, map.layout.chunkBytes())), mul(row, map.layout.swizzle));
}

/// One instruction for each sector that holds elements inside of the view.
void Emitter::emitL2Prefetch(hop::L2PrefetchOp op) {
  auto view = cast<tile::ViewType>(op.getView().getType());
  int64_t step = hopper::sectorBytes / view.getElementBytes();
  Values place = llvm::map_to_vector(op.getIndices(), [&](Value index) { return scalar(index); });
  int64_t count = op.getCount();
  // Whoever loads a scalar has said that it is there.
  if (count == 1)
    return assembly("prefetch.global.L2 [$0];", "l", {placeAddress(op.getView(), place)}, {}),
           void();
  Value first = place.back(), extent = extentOf(view, view.getRank() - 1);
  for (int64_t i = 0; i < count; i += step) {
    place.back() = add(first, i);
    assembly("{\n.reg .pred p;\nsetp.ne.b32 p, $1, 0;\n@p prefetch.global.L2 [$0];\n}", "l,r",
             {placeAddress(op.getView(), place), toI32(isBelow(place.back(), extent))}, {});
  }
}

void Emitter::emitBulkLoad(hop::BulkLoadOp op) {
  int64_t blocks = op.getMulticast() ? kernel.getClusterSize() : 1;
  const TensorMap &map = parameters.getMap(op);
  SharedPlace target = sharedTiles.find(op.getDestination())->second;
  Value descriptor = function.getArgument(parameters.mapPosition(op));
  Value barrier = barrierAddress(op.getBarriers(), op.getBarrier());
  if (op.getRow())
    target.address = add(target.address, mul(scalar(op.getRow()), map.layout.swizzle));
  for (int64_t copy = 0; copy < map.copies(); ++copy) {
    int64_t chunk = copy * map.boxChunks();
    Values coordinates = copyCoordinates(map, op.getIndices(), chunk);
    Value address = add(target.address, chunk * map.layout.chunkBytes());
    if (blocks > 1 && !op.getRows())
      moveToPart(map, coordinates, address);
    size_t rank = coordinates.size();
    Values operands = {address, descriptor};
    llvm::append_range(operands, coordinates);
    operands.push_back(barrier);
    std::string constraints = "r,l", multicast, mask;
    for (size_t i = 0; i <= rank; ++i)
      constraints += ",r";
    if (blocks > 1) {
      multicast = ".multicast::cluster";
      mask = ", $" + std::to_string(rank + 3);
      constraints += ",h";
      operands.push_back(LLVM::ConstantOp::create(builder, loc, builder.getI16Type(),
                                                  builder.getI16IntegerAttr((1 << blocks) - 1)));
    }
    assembly("cp.async.bulk.tensor." + Twine(rank) +
                 "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes" + multicast +
                 " [$0], [$1, " + operandList(2, rank) + "], [$" + Twine(rank + 2) + "]" + mask +
                 ";",
             constraints, operands, {});
  }
}

/// Emits on the thread that starts the role's bulk stores, where the condition holds if there is
/// one: the only thread of an elected role, or one of the warpgroup.
void Emitter::onCopyingThread(Value condition, llvm::function_ref<void()> emit) {
  Value runs = condition ? scalar(condition) : Value();
  if (!role.isElected()) {
    Value leads =
        LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, thread.isLeader, i32(0));
    runs = runs ? LLVM::AndOp::create(builder, loc, runs, leads).getResult() : leads;
  }
  Block *after = runs ? enterIf(runs) : nullptr;
  emit();
  if (!after)
    return;
  LLVM::BrOp::create(builder, loc, after);
  builder.setInsertionPointToStart(after);
}

void Emitter::emitBulkStore(hop::BulkStoreOp op) {
  const TensorMap &map = parameters.getMap(op);
  SharedPlace source = sharedTiles.find(op.getSource())->second;
  onCopyingThread(/*condition=*/Value(), [&] { emitCopies(op, map, source); });
}

void Emitter::emitCopies(hop::BulkStoreOp op, const TensorMap &map, const SharedPlace &source) {
  for (int64_t copy = 0; copy < map.copies(); ++copy) {
    int64_t chunk = copy * map.boxChunks();
    Values coordinates = copyCoordinates(map, op.getIndices(), chunk);
    size_t rank = coordinates.size();
    Values operands = {function.getArgument(parameters.mapPosition(op)),
                       add(source.address, chunk * map.layout.chunkBytes())};
    llvm::append_range(operands, coordinates);
    std::string constraints = "l,r";
    for (size_t i = 0; i < rank; ++i)
      constraints += ",r";
    assembly(Twine(op.getAdd() ? "cp.reduce" : "cp") + ".async.bulk.tensor." + Twine(rank) +
                 "d.global.shared::cta" + (op.getAdd() ? ".add" : "") + ".tile.bulk_group [$0, " +
                 operandList(2, rank) + "], [$1];",
             constraints, operands, {});
  }
  // The kernel may not end, nor its shared memory be written again, before the copy has read it.
  assembly("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read " + Twine(op.getInFlight()) +
               ";",
           "", {}, {});
}

//===----------------------------------------------------------------------===//
// Tiles of the grid
//===----------------------------------------------------------------------===//

void Emitter::emitSlotAccess(Operation *op) {
  auto store = dyn_cast<hop::SlotStoreOp>(op);
  auto load = dyn_cast<hop::SlotLoadOp>(op);
  Value address = store ? valueAddress(store.getBuffer(), scalar(store.getIndex()))
                        : valueAddress(load.getBuffer(), scalar(load.getIndex()));
  if (store) {
    assembly("st.shared.b32 [$0], $1;", "r,r", {address, scalar(store.getValue())}, {});
    return;
  }
  Value value =
      assembly("ld.shared.b32 $0, [$1];", "=r,r", {address}, TypeRange(builder.getI32Type()))
          .front();
  if (role.isElected())
    return bind(load, {value});
  // From lane 0, so that ptxas knows it to be the same in a whole warp.
  bind(load, {shuffle("idx", value, i32(0))});
}

Value Emitter::valueAddress(Value buffer, Value index) {
  auto op = buffer.getDefiningOp<hop::BufferOp>();
  return add(add(sharedBase, *op.getOffset()), mul(index, 4));
}

void Emitter::emitFlag(hop::FlagOp op) {
  Values valid = elements(op.getValid());
  Value all = valid.front();
  for (Value element : llvm::drop_begin(valid))
    all = LLVM::AndOp::create(builder, loc, all, element);
  Block *after = splitBlock();
  Block *flag = builder.createBlock(after);
  builder.setInsertionPointToEnd(flag->getPrevNode());
  LLVM::CondBrOp::create(builder, loc, all, after, flag);
  builder.setInsertionPointToEnd(flag);
  Values operands = {valueAddress(op.getBuffer(), scalar(op.getIndex())), scalar(op.getValue())};
  if (kernel.getClusterSize() == 1)
    assembly("red.relaxed.cta.shared::cta.or.b32 [$0], $1;", "r,r", operands, {});
  else
    for (int64_t block = 0; block < kernel.getClusterSize(); ++block)
      assembly("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, $0, " + Twine(block) +
                   ";\nred.relaxed.cluster.shared::cluster.or.b32 [remote], $1;\n}",
               "r,r", operands, {});
  LLVM::BrOp::create(builder, loc, after);
  builder.setInsertionPointToStart(after);
}

void Emitter::emitSlotMulticast(hop::SlotMulticastOp op) {
  auto buffer = op.getBuffer().getDefiningOp<hop::BufferOp>();
  Value slot = add(add(sharedBase, *buffer.getOffset()), mul(scalar(op.getIndex()), 4));
  Value barrier = barrierAddress(op.getBarriers(), op.getIndex());
  for (int64_t block = 0; block < kernel.getClusterSize(); ++block)
    assembly("{\n.reg .b32 slot, barrier;\nmapa.shared::cluster.u32 slot, $0, " + Twine(block) +
                 ";\nmapa.shared::cluster.u32 barrier, $1, " + Twine(block) +
                 ";\nst.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [slot], $2, "
                 "[barrier];\n}",
             "r,r,r", {slot, barrier, scalar(op.getValue())}, {});
}

/// The counter is two words: the numbers given out beyond one for each thread block (or cluster),
/// and the thread blocks that are done. The last of these sets both back, and the word of probes.
void Emitter::emitTileCounter(Operation *op) {
  auto special = [&](StringRef name) {
    return intrinsic(("llvm.nvvm.read.ptx.sreg." + name).str(), builder.getI32Type(), {});
  };
  if (isa<hop::BlockIndexOp>(op))
    return bind(op->getResult(0), {special("ctaid.x")});
  Value blocks = special("nctaid.x");
  if (isa<hop::BlockCountOp>(op))
    return bind(op->getResult(0), {blocks});
  Value counter = function.getArgument(parameters.workspacePosition());
  if (isa<hop::NextTileOp>(op) && kernel.getClusterSize() > 1) {
    Value taken = assembly("{\n.reg .pred first;\nsetp.eq.u32 first, $2, 0;\nmov.b32 $0, 0;\n"
                           "@first atom.global.add.u32 $0, [$1], 1;\n}",
                           "=&r,l,r", {counter, clusterRank()}, TypeRange(builder.getI32Type()))
                      .front();
    if (cast<hop::NextTileOp>(op).getAll())
      return bind(op->getResult(0), {taken});
    Value clusters = LLVM::UDivOp::create(builder, loc, blocks, i32(kernel.getClusterSize()));
    return bind(op->getResult(0), {add(taken, clusters)});
  }
  if (isa<hop::NextTileOp>(op)) {
    Value taken = assembly("atom.global.add.u32 $0, [$1], 1;", "=r,l", {counter},
                           TypeRange(builder.getI32Type()))
                      .front();
    bool all = cast<hop::NextTileOp>(op).getAll();
    return bind(op->getResult(0), {all ? taken : add(taken, blocks)});
  }
  StringRef ofProbes = kernel.hasProbes() ? "\n@last st.global.u32 [$0+8], zero;" : "";
  assembly(
      "{\n.reg .pred last;\n.reg .b32 done, limit, zero;\nsub.u32 limit, $1, 1;\nmov.b32 zero, 0;\n"
      "fence.acq_rel.gpu;\natom.global.inc.u32 done, [$0+4], limit;\n"
      "setp.eq.u32 last, done, limit;\n@last st.global.u32 [$0], zero;" +
          ofProbes + "\n}",
      "l,r", {counter, blocks}, {});
}

/// The word behind those of the counter: probes that held, and in its upper half those that failed.
void Emitter::emitVerdict(hop::ProbesVerdictOp op) {
  int64_t share = op.getShare(), cluster = kernel.getClusterSize();
  Value blocks = intrinsic("llvm.nvvm.read.ptx.sreg.nctaid.x", builder.getI32Type(), {});
  Value reports = LLVM::UMinOp::create(builder, loc, blocks, i32(op.getCount() * cluster));
  // So many that fail speak against the program; when so many hold, these cannot be reached.
  Value failing = LLVM::UDivOp::create(builder, loc, add(reports, i32(share - 1)), i32(share));
  Value holding = LLVM::SubOp::create(builder, loc, add(reports, i32(1)), failing);
  Value counter = function.getArgument(parameters.workspacePosition());
  // Bit 15: a block gave up, so that the program holds for all. It is set where too few had failed.
  bind(op,
       {assembly(
            "{\n.reg .pred is_probe, failed, fails, waits, settled;\n.reg .b32 word, more, polls;\n"
            "setp.ne.b32 is_probe, $3, 0;\nsetp.ne.b32 failed, $2, 0;\n"
            "selp.b32 word, 65536, 1, failed;\nmov.b32 polls, 0;\n"
            "@is_probe red.relaxed.gpu.global.add.u32 [$1+8], word;\n"
            "again:\nld.relaxed.gpu.global.b32 word, [$1+8];\nmov.b32 $0, 0;\n"
            "and.b32 more, word, 32768;\nsetp.ne.b32 settled, more, 0;\n@settled bra done;\n"
            "shr.u32 more, word, 16;\nsetp.ge.u32 fails, more, $4;\nselp.b32 $0, 1, 0, fails;\n"
            "@fails bra done;\n"
            "and.b32 more, word, 32767;\nsetp.lt.u32 waits, more, $5;\n@!waits bra done;\n"
            "add.u32 polls, polls, 1;\nsetp.lt.u32 waits, polls, " +
                Twine(op.getLooks()) +
                ";\n@waits bra again;\n"
                "or.b32 more, word, 32768;\n"
                "atom.relaxed.gpu.global.cas.b32 more, [$1+8], word, more;\nbra again;\n"
                "done:\n}",
            "=&r,l,r,r,r,r",
            {counter, scalar(op.getFailed()), toI32(scalar(op.getIsProbe())), failing, holding},
            TypeRange(builder.getI32Type()))
            .front()});
}

//===----------------------------------------------------------------------===//
// Tickets
//===----------------------------------------------------------------------===//

/// Copies of this thread that come later are made by the async proxy, which the proxy fence orders
/// behind what has been acquired.
void Emitter::emitTicket(hop::TicketWaitOp op) {
  onCopyingThread(/*condition=*/Value(), [&] {
    Values operands = {ticketAddress(op.getNumber()), scalar(op.getValue())};
    std::string wait = "again:\nld.acquire.gpu.global.b32 ticket, [$0];\n"
                       "setp.eq.u32 mine, ticket, $1;\n@!mine bra again;\n";
    if (op.getPeeked()) {
      operands.push_back(scalar(op.getPeeked()));
      wait = "setp.eq.u32 mine, $2, $1;\n@mine bra have;\n" + wait + "have:\n";
    }
    assembly("{\n.reg .pred mine;\n.reg .b32 ticket;\n" + wait + "fence.proxy.async.global;\n}",
             op.getPeeked() ? "l,r,r" : "l,r", operands, {});
  });
}

void Emitter::emitTicket(hop::TicketPeekOp op) {
  bind(op, assembly("ld.acquire.gpu.global.b32 $0, [$1];", "=r,l", {ticketAddress(op.getNumber())},
                    TypeRange(builder.getI32Type())));
}

/// A copy has been written when its group is complete, not when it has read shared memory.
void Emitter::emitTicket(hop::TicketPassOp op) {
  onCopyingThread(op.getCondition(), [&] {
    assembly("cp.async.bulk.wait_group 0;\nst.release.gpu.global.b32 [$0], $1;", "l,r",
             {ticketAddress(op.getNumber()), scalar(op.getValue())}, {});
  });
}

Value Emitter::ticketAddress(Value number) {
  Value tickets = function.getArgument(parameters.ticketsPosition());
  return LLVM::GEPOp::create(builder, loc, tickets.getType(), builder.getI32Type(), tickets,
                             ValueRange{scalar(number)});
}

//===----------------------------------------------------------------------===//
// Turns
//===----------------------------------------------------------------------===//

void Emitter::emitWarpgroupSync() {
  assembly("bar.sync $0, " + Twine(role.getNumWarps() * hopper::warpThreads) + ";", "r",
           {add(thread.warpgroup, barriers.of(role, NamedBarriers::Warpgroups))}, {});
}

void Emitter::emitRoleSync() {
  assembly("bar.sync $0, " + Twine(role.getNumThreads()) + ";", "r",
           {i32(barriers.of(role, NamedBarriers::Role))}, {});
}

/// All threads of the cluster meet; what they wrote to each other's shared memory is there.
void Emitter::emitClusterSync() {
  assembly("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;", "", {},
           {});
}

/// The threads of the role combine what each has of the mask, and all get the result.
void Emitter::emitAny(tile::AnyOp op) {
  Value own;
  for (Value element : elements(op.getSource()))
    own = own ? LLVM::OrOp::create(builder, loc, own, element).getResult() : element;
  Value some = assembly("{\n.reg .pred p, q;\nsetp.ne.b32 p, $1, 0;\nbarrier.cta.red.aligned.or."
                        "pred q, $2, " +
                            Twine(role.getNumThreads()) + ", p;\nselp.b32 $0, 1, 0, q;\n}",
                        "=r,r,r", {toI32(own), i32(barriers.of(role, NamedBarriers::Role))},
                        builder.getI32Type())
                   .front();
  bind(op, {LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, some, i32(0))});
}

void Emitter::emitTurn(Operation *op) {
  // A turn is passed by one warpgroup and taken by another.
  std::string threads = std::to_string(2 * hopper::warpgroupThreads);
  int64_t first = barriers.of(role, NamedBarriers::Turns);
  auto arriveAt = [&](Value warpgroup) {
    assembly("bar.arrive $0, " + threads + ";", "r", {add(warpgroup, first)}, {});
  };
  if (isa<hop::TurnWaitOp>(op)) {
    assembly("bar.sync $0, " + threads + ";", "r", {add(thread.warpgroup, first)}, {});
    return;
  }
  Value next = add(thread.warpgroup, 1);
  Value isLast = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, next,
                                      i32(role.getNumWarpgroups()));
  if (isa<hop::TurnPassOp>(op)) {
    arriveAt(LLVM::SelectOp::create(builder, loc, isLast, i32(0), next));
    return;
  }
  Block *after = enterIf(isLast);
  arriveAt(i32(0));
  LLVM::BrOp::create(builder, loc, after);
  builder.setInsertionPointToStart(after);
}
