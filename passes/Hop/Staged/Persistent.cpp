//===- Persistent.cpp - Thread blocks that walk over tiles ----------------===//
//
// Implements hop-persistent. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/ScheduleFields.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Analysis/GridOrder.h"
#include "passes/Analysis/PipeSlots.h"
#include "passes/Hop/HopPasses.h"
#include "passes/Hop/PerCluster.h"

namespace tessera {
#define GEN_PASS_DEF_PERSISTENT
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using tile::OrderKind;
using tile::PersistentKind;

namespace {

/// Index arithmetic at one place.
class IndexBuilder {
public:
  IndexBuilder(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  template <typename Op>
  Value make(Value a, Value b) {
    return Op::create(builder, loc, a, b);
  }
  Value mul(Value a, Value b) { return make<arith::MulIOp>(a, b); }
  Value add(Value a, Value b) { return make<arith::AddIOp>(a, b); }
  Value sub(Value a, Value b) { return make<arith::SubIOp>(a, b); }
  Value div(Value a, Value b) { return make<arith::DivUIOp>(a, b); }
  Value rem(Value a, Value b) { return make<arith::RemUIOp>(a, b); }
  Value min(Value a, Value b) { return make<arith::MinUIOp>(a, b); }
  Value isMore(Value a, Value b) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ugt, a, b);
  }
  Value select(Value condition, Value a, Value b) {
    return arith::SelectOp::create(builder, loc, condition, a, b);
  }
  Value max(Value a, Value b) { return make<arith::MaxUIOp>(a, b); }
  Value extent(Attribute extent) {
    if (auto name = dyn_cast<StringAttr>(extent))
      return tile::DimOp::create(builder, loc, builder.getIndexType(), name);
    return constant(cast<IntegerAttr>(extent).getInt());
  }

private:
  OpBuilder &builder;
  Location loc;
};

/// The grid of a kernel, and the tile that a number means. Everything is computed from extents
/// where it is needed: registers that live through a tile are dearer than a few divisions.
class TileOrder {
public:
  /// With tickets blocks wait for those of neighbouring first indices.
  TileOrder(hop::KernelOp kernel, OpBuilder &builder, bool hasTickets)
      : kernel(kernel), order(*kernel.getSchedule().getOrder()),
        rounds(*kernel.getSchedule().getSection()),
        least(hasTickets && order != OrderKind::Turns ? 2 : 1), cluster(kernel.getClusterSize()) {
    IndexBuilder b(builder, kernel.getLoc());
    for (auto dim : kernel.getGrid().getAsRange<tile::GridDimAttr>())
      counts.push_back(countTiles(dim, builder, kernel.getLoc()));
    // A number stands for the tiles of a cluster: neighbours along the first dimension.
    if (cluster > 1)
      counts.front() = b.make<arith::CeilDivUIOp>(counts.front(), b.constant(cluster));
    outer = b.constant(1);
    for (Value count : llvm::drop_begin(counts))
      outer = b.mul(outer, count);
  }

  /// Numbers of the whole grid.
  Value getTotal(OpBuilder &builder, Location loc) const {
    return IndexBuilder(builder, loc).mul(counts.front(), outer);
  }

  SmallVector<Value> indicesOf(Value number, OpBuilder &builder, Location loc) const {
    IndexBuilder b(builder, loc);
    Value first, rest;
    if (order == OrderKind::Narrow) {
      Value isTall = b.isMore(b.extent(extentOf(kernel, 0)), b.extent(extentOf(kernel, 1)));
      Value inner = b.select(isTall, counts[1], counts[0]);
      Value fast = b.rem(number, inner), slow = b.div(number, inner);
      first = b.select(isTall, slow, fast);
      rest = b.select(isTall, fast, slow);
    } else if (order == OrderKind::Linear) {
      first = b.rem(number, counts.front());
      rest = b.div(number, counts.front());
    } else {
      Section section = findSection(number, builder, loc);
      Value inSection = b.sub(number, b.mul(section.start, counts.front()));
      first = b.div(inSection, section.size);
      rest = b.add(section.start, b.rem(inSection, section.size));
      if (order != OrderKind::Ascending) {
        Value fromLast = b.sub(b.sub(counts.front(), b.constant(1)), first);
        first = order == OrderKind::Descending
                    ? fromLast
                    : b.select(walksDown(section, builder, loc), first, fromLast);
      }
    }
    if (cluster > 1) {
      Value rank = hop::ClusterRankOp::create(builder, loc, builder.getIndexType());
      first = b.add(b.mul(first, b.constant(cluster)), rank);
    }
    SmallVector<Value> indices = {first};
    if (order == OrderKind::Narrow)
      return {first, rest};
    for (Value count : llvm::drop_begin(counts)) {
      indices.push_back(b.rem(rest, count));
      rest = b.div(rest, count);
    }
    return indices;
  }

  /// Whether the tile is of a section that goes the other way: of `order = turns` every second one,
  /// of `last_turns` the last one behind others.
  Value walksDown(Value number, OpBuilder &builder, Location loc) const {
    return walksDown(findSection(number, builder, loc), builder, loc);
  }

private:
  /// Indices of the other dimensions that run together.
  struct Section {
    Value number, start, size, isLast;
  };

  Value walksDown(const Section &section, OpBuilder &builder, Location loc) const {
    IndexBuilder b(builder, loc);
    if (order == OrderKind::LastTurns)
      return b.make<arith::AndIOp>(section.isLast, b.isMore(section.number, b.constant(0)));
    return b.isMore(b.rem(section.number, b.constant(2)), b.constant(0));
  }

  /// That of a tile. What is less than half a section at the end belongs to the one before: by
  /// itself it would begin with its longest tiles when most blocks have nothing left to do.
  Section findSection(Value number, OpBuilder &builder, Location loc) const {
    IndexBuilder b(builder, loc);
    Value full = sectionSize(builder, loc), zero = b.constant(0);
    Value index = b.div(number, b.mul(counts.front(), full));
    Value start = b.mul(index, full), left = b.sub(outer, start);
    Value joins = b.isMore(full, b.add(left, left));
    index = b.sub(index, b.select(joins, b.constant(1), zero));
    start = b.sub(start, b.select(joins, full, zero));
    left = b.sub(outer, start);
    Value isLast = b.isMore(b.mul(full, b.constant(3)), b.add(left, left));
    return {index, start, b.select(isLast, left, full), isLast};
  }

  /// How many indices of the other dimensions a section has, but for the last one.
  Value sectionSize(OpBuilder &builder, Location loc) const {
    IndexBuilder b(builder, loc);
    Value one = b.constant(1);
    Value tilesOfRounds =
        b.mul(b.constant(rounds), perCluster<hop::BlockCountOp>(kernel, builder, loc));
    Value fitting = b.div(tilesOfRounds, b.max(one, counts.front()));
    return b.min(outer, b.max(b.constant(least), fitting));
  }

  static Attribute extentOf(hop::KernelOp kernel, unsigned dim) {
    return cast<tile::GridDimAttr>(kernel.getGrid()[dim]).getExtent();
  }

  hop::KernelOp kernel;
  OrderKind order;
  int64_t rounds;            ///< of the thread blocks, that a section takes
  int64_t least;             ///< other indices in a section: of two, blocks that wait for each
                             ///< other do not start together
  int64_t cluster;           ///< blocks
  SmallVector<Value> counts; ///< tiles along each grid dimension, clusters' along the first
  Value outer;               ///< tiles of one index of the first dimension
};

struct PersistentPass : tessera::impl::PersistentBase<PersistentPass> {
  void runOnOperation() override {
    hop::KernelOp kernel = getOperation();
    const tile::ScheduleFields &schedule = kernel.getSchedule().getFields();
    if (failed(schedule.require(kernel, &tile::ScheduleFields::persistent)))
      return signalPassFailure();
    if (schedule.persistent == PersistentKind::None)
      return;
    if (failed(
            schedule.require(kernel, &tile::ScheduleFields::order, &tile::ScheduleFields::section)))
      return signalPassFailure();
    if (kernel.getGrid().empty()) {
      kernel.emitError("has no grid over whose tiles a thread block could walk");
      return signalPassFailure();
    }
    if (schedule.order == OrderKind::Narrow && kernel.getGrid().size() != 2) {
      kernel.emitError("has a grid of ")
          << kernel.getGrid().size() << " dimensions, and order = narrow is for one of two";
      return signalPassFailure();
    }
    drawsFirst =
        kernel.walk([](hop::TicketWaitOp) { return WalkResult::interrupt(); }).wasInterrupted();
    Value numbers;
    if (schedule.persistent == PersistentKind::Dynamic) {
      if (failed(findFetcher(kernel)))
        return signalPassFailure();
      OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
      auto type = hop::PipeType::get(
          &getContext(), RankedTensorType::get({1}, builder.getI32Type()), slotsOfNumbers);
      numbers = hop::PipeCreateOp::create(builder, kernel.getLoc(), type, "tiles",
                                          /*multicast=*/kernel.getClusterSize() > 1);
    }
    for (auto role : kernel.getBody().getOps<hop::RoleOp>())
      makeLoop(kernel, role, numbers);
  }

  /// The role that fetches numbers: the first one, which loads for the others.
  LogicalResult findFetcher(hop::KernelOp kernel) {
    auto roles = llvm::to_vector(kernel.getBody().getOps<hop::RoleOp>());
    fetcher = roles.front();
    if (roles.size() > 1)
      return success();
    return kernel.emitError(
        "persistent = dynamic needs a producer, which fetches the next tile; use "
        "static with producer = none");
  }

  /// Moves the role's program into a loop over tiles.
  void makeLoop(hop::KernelOp kernel, hop::RoleOp role, Value numbers) {
    Block &body = role.getBody().front();
    SmallVector<Operation *> program;
    for (Operation &op : body)
      program.push_back(&op);
    OpBuilder builder = OpBuilder::atBlockEnd(&body);
    Location loc = role.getLoc();
    Value first = numbers && drawsFirst ? exchangeNumber(builder, role, numbers)
                                        : perCluster<hop::BlockIndexOp>(kernel, builder, loc);
    scf::WhileOp loop = createWhile(kernel, first, builder, loc);
    if (numbers && role == fetcher)
      onOneThread(builder, role, [&](OpBuilder &one) { hop::ResetTilesOp::create(one, loc); });

    Block *loopBody = loop.getAfterBody();
    Value number = loopBody->getArgument(0);
    builder.setInsertionPointToEnd(loopBody);
    TileOrder order(kernel, builder, drawsFirst);
    SmallVector<Value> indices = order.indicesOf(number, builder, loc);
    for (Operation *op : program)
      op->moveBefore(loopBody, loopBody->end());
    role.walk([&](tile::WalksDownOp op) {
      OpBuilder here(op);
      op.replaceAllUsesWith(order.walksDown(number, here, loc));
      op.erase();
    });
    for (auto [i, index] : llvm::enumerate(indices))
      kernel.getGridIndex(i).replaceUsesWithIf(
          index, [&](OpOperand &use) { return role->isAncestor(use.getOwner()); });
    Value next = numbers
                     ? exchangeNumber(builder, role, numbers)
                     : arith::AddIOp::create(builder, loc, number,
                                             perCluster<hop::BlockCountOp>(kernel, builder, loc))
                           .getResult();
    builder.setInsertionPointToEnd(loopBody);
    scf::YieldOp::create(builder, loc, next);
  }

  /// while (number < tiles), from `first` on; the body is still empty.
  scf::WhileOp createWhile(hop::KernelOp kernel, Value first, OpBuilder &builder, Location loc) {
    return scf::WhileOp::create(
        builder, loc, TypeRange(builder.getIndexType()), ValueRange(first),
        [&](OpBuilder &b, Location l, ValueRange arguments) {
          Value total = TileOrder(kernel, b, drawsFirst).getTotal(b, l);
          Value more = arith::CmpIOp::create(b, l, arith::CmpIPredicate::slt, arguments[0], total);
          scf::ConditionOp::create(b, l, more, arguments);
        },
        [](OpBuilder &, Location, ValueRange) {});
  }

  /// Writes what one thread of the role does.
  static void onOneThread(OpBuilder &builder, hop::RoleOp role,
                          function_ref<void(OpBuilder &)> write) {
    if (role.isElected())
      return write(builder);
    Value elected = hop::ElectedOp::create(builder, role.getLoc(), builder.getI1Type(),
                                           role.getBody().getArgument(0));
    auto guard = scf::IfOp::create(builder, role.getLoc(), elected, /*withElseRegion=*/false);
    OpBuilder inner = guard.getThenBodyBuilder();
    write(inner);
  }

  /// One role fetches the next number and hands it on; the others take it, and so does that role
  /// where it has more threads, or in a cluster, where the number of one block counts. It is
  /// fetched after the tile's last load, which is as late as the tiles in the pipes hide the
  /// counter's latency: a block that took its next tile when this one began would keep a long one
  /// waiting while others find none.
  Value exchangeNumber(OpBuilder &builder, hop::RoleOp role, Value numbers) {
    Location loc = role.getLoc();
    Type i32 = builder.getI32Type();
    if (role == fetcher) {
      Value fetched;
      onOneThread(builder, role, [&](OpBuilder &one) {
        fetched = hop::NextTileOp::create(one, loc, one.getIndexType(), drawsFirst);
        hop::PipePutOp::create(one, loc, numbers,
                               arith::IndexCastOp::create(one, loc, i32, fetched));
      });
      if (role.isElected() && !numbers.getDefiningOp<hop::PipeCreateOp>().getMulticast())
        return fetched;
    }
    Value got = hop::PipeGetOp::create(builder, loc, i32, numbers);
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), got);
  }

  hop::RoleOp fetcher;
  /// A block draws its first number too: where it waits for smaller ones, these have started.
  bool drawsFirst = false;
};

} // namespace
