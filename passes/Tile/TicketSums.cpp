//===- TicketSums.cpp - Tickets of tiles that grid points add to ----------===//
//
// Implements tile-ticket-sums. See SumPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/ScheduleFields.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "passes/Analysis/GridOrder.h"
#include "passes/Analysis/IndexDependence.h"
#include "passes/Analysis/IndexFacts.h"
#include "passes/Analysis/ReducerSumAnalysis.h"
#include "passes/Analysis/SumExchangeAnalysis.h"
#include "passes/Analysis/SumOrderAnalysis.h"
#include "passes/Tile/TilePasses.h"
#include "llvm/ADT/SetVector.h"

namespace tessera {
#define GEN_PASS_DEF_TILETICKETSUMS
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {

/// Writes the tickets of one kernel.
class TicketWriter {
public:
  TicketWriter(KernelOp kernel, OrderKind order)
      : kernel(kernel), order(order), apart(findReducerSums(kernel)),
        together(exchangesSums(kernel.getScheduleFields()) ? exchangingBlocks : 1),
        start(OpBuilder::atBlockBegin(&kernel.getBody().front())) {
    if (turnsSections(order))
      walksDown = WalksDownOp::create(start, kernel.getLoc(), start.getI1Type());
  }

  void write(const OrderedSum &sum);
  /// Behind all sums: of tiles that may lie outside of their view.
  void guardOutside();
  void turnLoops(ArrayRef<OrderedSum> sums);

private:
  /// Grid index `dim`, divided by those that make a sum at once.
  Value placeOf(unsigned dim, ImplicitLocOpBuilder &builder) {
    Value index = kernel.getGridIndex(dim);
    return together == 1 ? index
                         : make<arith::DivUIOp>(index, constant(together, builder), builder);
  }
  /// The grid point beside this one, and in which loops it comes to their iteration; the first of
  /// those that make a sum at once.
  struct Neighbour {
    Value exists; ///< in the grid
    SmallVector<std::pair<Value, Value>> bounds;
  };
  Neighbour neighbour(const OrderedSum &sum, bool above);
  Value comesTo(const Neighbour &neighbour, const OrderedSum &sum, ImplicitLocOpBuilder &builder);
  struct Ticket {
    Value number;
    Value isTile; ///< whether the view has the tile; null where it is known to
  };
  Ticket ticketOf(StoreOp store, ImplicitLocOpBuilder &builder);
  int64_t ticketsOf(StoreOp store);

  Value constant(int64_t value, ImplicitLocOpBuilder &builder) {
    return arith::ConstantIndexOp::create(builder, value);
  }
  template <typename Op>
  Value make(Value a, Value b, ImplicitLocOpBuilder &builder) {
    return Op::create(builder, a, b);
  }
  Value compare(arith::CmpIPredicate predicate, Value a, Value b, ImplicitLocOpBuilder &builder) {
    return arith::CmpIOp::create(builder, predicate, a, b);
  }

  KernelOp kernel;
  OrderKind order;
  SmallVector<ReducerSum> apart;
  int64_t together; ///< grid points that make a sum at once
  OpBuilder start;
  Value walksDown; ///< where sections turn
  Value before;    ///< the tickets of the views before; null where there are none
  SmallVector<std::pair<StoreOp, Value>> guarded; ///< and whether the view has the tile
};

/// Computed before the outermost of the loops, where all that their bounds are made of is known.
TicketWriter::Neighbour TicketWriter::neighbour(const OrderedSum &sum, bool above) {
  Value index = kernel.getGridIndex(sum.dim);
  IndexDependence dependence(index);
  ImplicitLocOpBuilder builder(StoreOp(sum.store).getLoc(), start);
  Value own = placeOf(sum.dim, builder), step = constant(together, builder);
  if (together > 1)
    own = make<arith::MulIOp>(own, step, builder);
  Value other =
      above ? make<arith::AddIOp>(own, step, builder) : make<arith::SubIOp>(own, step, builder);
  Value count = countTiles(kernel.getGridDim(sum.dim), builder, builder.getLoc());
  Neighbour result{above ? compare(arith::CmpIPredicate::slt, other, count, builder)
                         : compare(arith::CmpIPredicate::sgt, own, constant(0, builder), builder),
                   {}};
  for (auto [i, op] : llvm::enumerate(sum.loops)) {
    scf::ForOp loop = op;
    builder.setInsertionPoint(loop);
    IRMapping mapping;
    mapping.map(index, other);
    // A bound that this grid point has passed the neighbour has too, if it is no further there.
    auto boundOf = [&](Value bound, Trend passed) {
      return trendOf(bound, index) == passed || !dependence.contains(bound)
                 ? Value()
                 : dependence.recompute(bound, mapping, builder);
    };
    Value lower = varyingBegin(loop, dependence), upper = varyingEnd(loop, dependence);
    bool follows = followsFromWithin(loop, ArrayRef(sum.loops).take_front(i));
    result.bounds.push_back(
        {boundOf(lower, above ? Trend::Decreasing : Trend::Increasing),
         follows ? Value() : boundOf(upper, above ? Trend::Increasing : Trend::Decreasing)});
  }
  return result;
}

Value TicketWriter::comesTo(const Neighbour &neighbour, const OrderedSum &sum,
                            ImplicitLocOpBuilder &builder) {
  Value comes = neighbour.exists;
  for (auto [loop, bounds] : llvm::zip_equal(sum.loops, neighbour.bounds)) {
    Value iteration = scf::ForOp(loop).getInductionVar();
    auto [lower, upper] = bounds;
    if (lower)
      comes = make<arith::AndIOp>(
          comes, compare(arith::CmpIPredicate::sle, lower, iteration, builder), builder);
    if (upper)
      comes = make<arith::AndIOp>(
          comes, compare(arith::CmpIPredicate::slt, iteration, upper, builder), builder);
  }
  return comes;
}

/// Of a tile: one for each block that adds a part of it.
int64_t TicketWriter::ticketsOf(StoreOp store) {
  bool isApart = llvm::any_of(apart, [&](const ReducerSum &sum) { return sum.store == store; });
  return isApart ? tessera::ticketsOf(kernel.getScheduleFields()) : 1;
}

/// The number of the tile's first ticket among those of the view, behind those of the views before.
TicketWriter::Ticket TicketWriter::ticketOf(StoreOp store, ImplicitLocOpBuilder &builder) {
  auto view = cast<ViewType>(store.getView().getType());
  auto tile = cast<RankedTensorType>(store.getValue().getType());
  Value number, count, isTile;
  ImplicitLocOpBuilder outside(store.getLoc(), start);
  for (int64_t dim = 0; dim < view.getRank(); ++dim) {
    int64_t ofTile = dim - (view.getRank() - tile.getRank());
    Value extent = constant(ofTile < 0 ? 1 : tile.getDimSize(ofTile), outside);
    Value ofView = view.getStaticDim(dim) == ShapedType::kDynamic
                       ? Value(DimOp::create(outside, outside.getIndexType(),
                                             outside.getStringAttr(view.getDimName(dim))))
                       : constant(view.getStaticDim(dim), outside);
    Value tiles = make<arith::CeilDivUIOp>(ofView, extent, outside),
          index = store.getIndices()[dim];
    Value place = make<arith::DivUIOp>(index, extent, builder);
    // An extent is at least 1. A tile before the start has a large number without a sign.
    if (!matchPattern(index, m_Zero()) && !liesInside(store, view, dim, index, /*count=*/1)) {
      Value isWithin = compare(arith::CmpIPredicate::ult, index, ofView, builder);
      isTile = isTile ? make<arith::AndIOp>(isTile, isWithin, builder) : isWithin;
    }
    number = number
                 ? make<arith::AddIOp>(make<arith::MulIOp>(number, tiles, builder), place, builder)
                 : place;
    count = count ? make<arith::MulIOp>(count, tiles, outside) : tiles;
  }
  if (int64_t tickets = ticketsOf(store); tickets > 1) {
    number = make<arith::MulIOp>(number, constant(tickets, builder), builder);
    count = make<arith::MulIOp>(count, constant(tickets, outside), outside);
  }
  if (before)
    number = make<arith::AddIOp>(number, before, builder);
  before = before ? make<arith::AddIOp>(before, count, outside) : count;
  return {number, isTile};
}

/// A tile outside of its view has no sum that another grid point adds to, and nobody waits: the
/// tickets behind those of all views stay 0.
void TicketWriter::guardOutside() {
  for (auto [store, isTile] : guarded) {
    ImplicitLocOpBuilder builder(store.getLoc(), store);
    auto guard = [&](Value value, Value outside) {
      return arith::SelectOp::create(builder, isTile, value, outside);
    };
    Value none = constant(0, builder);
    Value number = guard(store.getTicket(), before), from = guard(store.getFrom(), none);
    Value to = guard(store.getTo(), none);
    store.getPlacesMutable().slice(store.getIndices().size(), 3).assign({number, from, to});
  }
}

void TicketWriter::write(const OrderedSum &sum) {
  StoreOp store = sum.store;
  ImplicitLocOpBuilder builder(store.getLoc(), store);
  Value index = placeOf(sum.dim, builder);
  // A ticket says between which two grid points it is, by the higher index, and 0 at the ends.
  Value none = constant(0, builder),
        next = make<arith::AddIOp>(index, constant(1, builder), builder);
  auto whereComes = [&](bool above, Value label) -> Value {
    Neighbour other = neighbour(sum, above);
    // Where the one below comes to all that this one comes to, `index` is 0 where there is none.
    if (!above &&
        llvm::all_of(other.bounds, [](auto bounds) { return !bounds.first && !bounds.second; }))
      return label;
    return arith::SelectOp::create(builder, comesTo(other, sum, builder), label, none);
  };
  Value from = whereComes(/*above=*/false, index), to = whereComes(/*above=*/true, next);
  bool isDescending = order == OrderKind::Descending && sum.dim == 0;
  if (isDescending)
    std::swap(from, to);
  if (walksDown) {
    Value below = from;
    from = arith::SelectOp::create(builder, walksDown, below, to);
    to = arith::SelectOp::create(builder, walksDown, to, below);
  }
  Ticket ticket = ticketOf(store, builder);
  store.setTicket(ticket.number, from, to);
  if (ticket.isTile)
    guarded.push_back({store, ticket.isTile});
  auto tile = cast<RankedTensorType>(store.getValue().getType());
  int64_t tickets = ticketsOf(store);
  store.emitRemark("sums follow grid index ")
      << sum.dim << (together > 1 ? ", two at a time" : "")
      << (order == OrderKind::Turns ? ", the highest first and the lowest first in turn"
          : order == OrderKind::LastTurns
              ? ", the lowest first in the last section, else the highest"
          : isDescending ? ", the highest first"
                         : ", the lowest first")
      << "; each tile of " << tile.getDimSize(0) << "x" << tile.getDimSize(1) << " has "
      << (together > 1 ? std::to_string(tickets) + " tickets" : "a ticket");
}

/// Lets the loops of `sums` go from either end.
void TicketWriter::turnLoops(ArrayRef<OrderedSum> sums) {
  llvm::SetVector<Operation *> loops;
  for (const OrderedSum &sum : sums)
    loops.insert_range(sum.loops);
  for (Operation *op : loops) {
    auto loop = cast<scf::ForOp>(op);
    auto builder = ImplicitLocOpBuilder::atBlockBegin(loop.getLoc(), loop.getBody());
    Value step = loop.getInductionVar();
    auto walk = WalkOp::create(builder, step.getType(), step, loop.getLowerBound(),
                               loop.getUpperBound(), walksDown);
    step.replaceAllUsesExcept(walk, walk);
    loop.emitRemark(order == OrderKind::LastTurns ? "in the last section"
                                                  : "in every second section")
        << " the loop goes from its end to its beginning";
  }
}

struct TileTicketSumsPass : tessera::impl::TileTicketSumsBase<TileTicketSumsPass> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    ScheduleFields schedule = kernel.getScheduleFields();
    if (!kernel.getFixedSums() && schedule.order && turnsSections(*schedule.order)) {
      kernel.emitError("has sums in any order, and order = ")
          << stringifyOrderKind(*schedule.order)
          << " is for sums in a fixed one; write fixed_sums in its head, or use order = ascending";
      return signalPassFailure();
    }
    if (!kernel.getFixedSums())
      return;
    if (failed(schedule.require(kernel, &ScheduleFields::order, &ScheduleFields::persistent)) ||
        failed(order(kernel, schedule)))
      signalPassFailure();
  }

  LogicalResult order(KernelOp kernel, const ScheduleFields &schedule) {
    OrderedSums found = findOrderedSums(kernel);
    if (found.refused)
      return found.refused->emitError(found.refusal) << "; leave fixed_sums out";
    if (!found.sums.empty() && schedule.persistent != PersistentKind::Dynamic)
      return kernel.emitError("has sums in a fixed order, in which a thread block could wait for "
                              "one that has not started; use persistent = dynamic, with which a "
                              "block draws its number when it starts, or leave fixed_sums out");
    bool turns = turnsSections(*schedule.order);
    if (std::optional<TurnRefusal> refusal = turns ? whyNoTurns(kernel, found.sums) : std::nullopt)
      return refusal->op->emitError(refusal->reason)
             << ", and with order = " << stringifyOrderKind(*schedule.order)
             << " a loop may begin at its end; use order = descending or ascending";
    TicketWriter writer(kernel, *schedule.order);
    for (const OrderedSum &sum : found.sums)
      writer.write(sum);
    writer.guardOutside();
    if (turns)
      writer.turnLoops(found.sums);
    return success();
  }
};

} // namespace
