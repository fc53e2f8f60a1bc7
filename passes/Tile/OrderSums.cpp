//===- OrderSums.cpp - Tickets of tiles that grid points add to -----------===//
//
// Implements tile-order-sums. See TilePasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/ScheduleFields.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/Analysis/GridOrder.h"
#include "passes/Analysis/IndexDependence.h"
#include "passes/Analysis/OrderedSums.h"
#include "passes/Tile/TilePasses.h"

namespace tessera {
#define GEN_PASS_DEF_TILEORDERSUMS
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
      : kernel(kernel), order(order), start(OpBuilder::atBlockBegin(&kernel.getBody().front())) {}

  void write(const OrderedSum &sum);

private:
  /// The grid point beside this one, and in which loops it comes to their iteration.
  struct Neighbour {
    Value exists; ///< in the grid
    SmallVector<std::pair<Value, Value>> bounds;
  };
  Neighbour neighbour(const OrderedSum &sum, bool above);
  Value comesTo(const Neighbour &neighbour, const OrderedSum &sum, ImplicitLocOpBuilder &builder);
  Value numberOf(StoreOp store, ImplicitLocOpBuilder &builder);

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
  OpBuilder start;
  Value before; ///< the tickets of the views before; null where there are none
};

/// Computed before the outermost of the loops, where all that their bounds are made of is known.
TicketWriter::Neighbour TicketWriter::neighbour(const OrderedSum &sum, bool above) {
  Value index = kernel.getGridIndex(sum.dim);
  IndexDependence dependence(index);
  ImplicitLocOpBuilder builder(StoreOp(sum.store).getLoc(), start);
  Value one = constant(1, builder);
  Value other =
      above ? make<arith::AddIOp>(index, one, builder) : make<arith::SubIOp>(index, one, builder);
  Value count = countTiles(kernel.getGridDim(sum.dim), builder, builder.getLoc());
  Neighbour result{above ? compare(arith::CmpIPredicate::slt, other, count, builder)
                         : compare(arith::CmpIPredicate::sgt, index, constant(0, builder), builder),
                   {}};
  for (scf::ForOp loop : sum.loops) {
    builder.setInsertionPoint(loop);
    IRMapping mapping;
    mapping.map(index, other);
    // A bound that this grid point has passed the neighbour has too, if it is no further there.
    auto boundOf = [&](Value bound, Trend passed) {
      return trendOf(bound, index) == passed || !dependence.contains(bound)
                 ? Value()
                 : dependence.recompute(bound, mapping, builder);
    };
    result.bounds.push_back(
        {boundOf(loop.getLowerBound(), above ? Trend::Decreasing : Trend::Increasing),
         boundOf(loop.getUpperBound(), above ? Trend::Increasing : Trend::Decreasing)});
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

/// The number of the tile among those of the view, behind those of the views before.
Value TicketWriter::numberOf(StoreOp store, ImplicitLocOpBuilder &builder) {
  auto view = cast<ViewType>(store.getView().getType());
  auto tile = cast<RankedTensorType>(store.getValue().getType());
  Value number, count;
  ImplicitLocOpBuilder outside(store.getLoc(), start);
  for (int64_t dim = 0; dim < view.getRank(); ++dim) {
    int64_t ofTile = dim - (view.getRank() - tile.getRank());
    Value extent = constant(ofTile < 0 ? 1 : tile.getDimSize(ofTile), outside);
    Value tiles = view.getStaticDim(dim) == ShapedType::kDynamic
                      ? Value(DimOp::create(outside, outside.getIndexType(),
                                            outside.getStringAttr(view.getDimName(dim))))
                      : constant(view.getStaticDim(dim), outside);
    tiles = make<arith::CeilDivUIOp>(tiles, extent, outside);
    Value place = make<arith::DivUIOp>(store.getIndices()[dim], extent, builder);
    number = number
                 ? make<arith::AddIOp>(make<arith::MulIOp>(number, tiles, builder), place, builder)
                 : place;
    count = count ? make<arith::MulIOp>(count, tiles, outside) : tiles;
  }
  if (before)
    number = make<arith::AddIOp>(number, before, builder);
  before = before ? make<arith::AddIOp>(before, count, outside) : count;
  return number;
}

void TicketWriter::write(const OrderedSum &sum) {
  StoreOp store = sum.store;
  Value index = kernel.getGridIndex(sum.dim);
  bool isDescending = order == OrderKind::Descending && sum.dim == 0;
  Neighbour earlier = neighbour(sum, isDescending), later = neighbour(sum, !isDescending);
  ImplicitLocOpBuilder builder(store.getLoc(), store);
  Value none = constant(0, builder);
  Value own = make<arith::AddIOp>(index, constant(1, builder), builder);
  Value ofEarlier =
      isDescending ? make<arith::AddIOp>(index, constant(2, builder), builder) : index;
  Value from = arith::SelectOp::create(builder, comesTo(earlier, sum, builder), ofEarlier, none);
  Value to = arith::SelectOp::create(builder, comesTo(later, sum, builder), own, none);
  Value number = numberOf(store, builder);
  store.setTicket(number, from, to);
  auto tile = cast<RankedTensorType>(store.getValue().getType());
  store.emitRemark("sums follow grid index ")
      << sum.dim << (isDescending ? ", the highest first" : ", the lowest first")
      << "; each tile of " << tile.getDimSize(0) << "x" << tile.getDimSize(1) << " has a ticket";
}

struct TileOrderSumsPass : tessera::impl::TileOrderSumsBase<TileOrderSumsPass> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    ScheduleFields schedule = kernel.getScheduleFields();
    if (failed(schedule.require(kernel, &ScheduleFields::sums)))
      return signalPassFailure();
    if (schedule.sums == SumsKind::any)
      return;
    if (failed(schedule.require(kernel, &ScheduleFields::order, &ScheduleFields::persistent)) ||
        failed(order(kernel, schedule)))
      signalPassFailure();
  }

  LogicalResult order(KernelOp kernel, const ScheduleFields &schedule) {
    OrderedSums found = findOrderedSums(kernel);
    if (found.refused)
      return found.refused->emitError(found.refusal) << "; use sums = any";
    if (!found.sums.empty() && schedule.persistent != PersistentKind::Dynamic)
      return kernel.emitError("has sums in a fixed order, in which a thread block could wait for "
                              "one that has not started; use persistent = dynamic, with which a "
                              "block draws its number when it starts, or sums = any");
    TicketWriter writer(kernel, *schedule.order);
    for (const OrderedSum &sum : found.sums)
      writer.write(sum);
    return success();
  }
};

} // namespace
