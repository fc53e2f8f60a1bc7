//===- FindRuns.cpp - Rows that numbers name, in runs ---------------------===//
//
// Implements tile-find-runs. See TilePasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/Machine.h"
#include "dialects/Hop/SharedLayout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Analysis/Conversions.h"
#include "passes/Analysis/IndexFacts.h"
#include "passes/Analysis/RowRuns.h"
#include "passes/Schedule/CostModel.h"
#include "passes/Tile/TilePasses.h"

namespace tessera {
#define GEN_PASS_DEF_TILEFINDRUNS
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;
using RunKind = RowRuns::Kind;
using Predicate = arith::CmpIPredicate;

namespace {

/// Writes where a run lies, of which the numbers of rows are known, before an operation.
class RunWriter {
public:
  RunWriter(Operation *op, RowRuns &runs, int64_t run)
      : runs(runs), run(run), builder(op->getLoc(), op) {}

  GatherRunsOp write(GatherOp gather, ArrayRef<RowRuns::Numbers> numbers);
  /// The one run of all rows, from a row on that is 0 or more, of a view of so many rows.
  RowOp writeRow(const RowRuns::Numbers &numbers, IotaOp all, Value extent);

private:
  Value constant(Type type, int64_t value) {
    return arith::ConstantOp::create(builder, builder.getIntegerAttr(type, value));
  }
  Value index(int64_t value) { return constant(builder.getIndexType(), value); }
  Value take(Value scalar);
  Value first(Value tile);
  Value load(GatherOp gather, Type type);
  bool isOfRun(Value tile) const;
  Value count(Value condition);
  Value countAll(ArrayRef<Value> conditions);
  Value difference(Value condition);

  RowRuns &runs;
  int64_t run;
  ImplicitLocOpBuilder builder;
  Block *body = nullptr; ///< of the region; null where the run is one of all rows
  SmallVector<Value> captures;
  llvm::DenseMap<Value, Value> known;
};
} // namespace

static Value extentOf(Value view, int64_t dim, OpBuilder &builder, Location loc) {
  auto type = cast<ViewType>(view.getType());
  int64_t extent = type.getStaticDim(dim);
  if (!ShapedType::isDynamic(extent))
    return arith::ConstantIndexOp::create(builder, loc, extent);
  return DimOp::create(builder, loc, builder.getIndexType(),
                       builder.getStringAttr(type.getDimName(dim)));
}

/// An earlier load of the same element, if there is one that comes before `scalar` in any case, and
/// nothing stores to the view: what stands before a loop is known in all its iterations.
static Value findLoaded(Value scalar) {
  auto load = scalar.getDefiningOp<LoadOp>();
  if (!load || llvm::any_of(load.getView().getUsers(), storesToView))
    return scalar;
  DominanceInfo dominance(load->getParentOfType<KernelOp>());
  for (Operation *user : load.getView().getUsers())
    if (dominance.properlyDominates(user, load) &&
        OperationEquivalence::isEquivalentTo(user, load, OperationEquivalence::IgnoreLocations))
      load = cast<LoadOp>(user);
  return load.getResult();
}

/// A scalar from outside as the region has it.
Value RunWriter::take(Value scalar) {
  if (!body)
    return scalar;
  Value &own = known[scalar];
  if (own)
    return own;
  Operation *op = scalar.getDefiningOp();
  if (op && (op->hasTrait<OpTrait::ConstantLike>() || isa<DimOp>(op)))
    return own = builder.clone(*op)->getResult(0);
  captures.push_back(findLoaded(scalar));
  return own = body->addArgument(scalar.getType(), scalar.getLoc());
}

/// Whether all elements of `tile` are the number of rows in a run.
bool RunWriter::isOfRun(Value tile) const {
  DenseIntElementsAttr elements;
  return matchPattern(tile, m_Constant(&elements)) && elements.isSplat() &&
         elements.getSplatValue<APInt>() == run;
}

/// The element of `tile` in the first row of the run.
Value RunWriter::first(Value tile) {
  if (Value found = known.lookup(tile))
    return found;
  Operation *op = tile.getDefiningOp();
  Type type = getElementTypeOrSelf(tile);
  Value result;
  if (DenseElementsAttr elements; matchPattern(tile, m_Constant(&elements))) {
    result =
        arith::ConstantOp::create(builder, cast<TypedAttr>(elements.getSplatValue<Attribute>()));
  } else if (auto splat = dyn_cast<SplatOp>(op)) {
    result = take(splat.getSource());
  } else if (auto iota = dyn_cast<IotaOp>(op)) {
    Value place = take(iota.getStart());
    if (body) {
      Value row = arith::MulIOp::create(builder, body->getArgument(0), index(run));
      if (iota.getPeriod())
        row = arith::RemUIOp::create(builder, row, index(*iota.getPeriod()));
      place = arith::AddIOp::create(builder, place, row);
    }
    result = arith::IndexCastOp::create(builder, type, place);
  } else if (auto table = dyn_cast<GatherOp>(op)) {
    result = load(table, type);
  } else if (isa<arith::RemUIOp>(op) && isOfRun(op->getOperand(1)) &&
             runs.kindOf(op->getOperand(0)) == RunKind::Following) {
    // A run begins at a multiple of its rows.
    result = constant(type, 0);
  } else {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(isa<RankedTensorType>(operand.getType()) ? first(operand) : take(operand));
    OperationState state(op->getLoc(), op->getName(), operands, type, op->getAttrs());
    result = builder.create(state)->getResult(0);
  }
  return known[tile] = result;
}

/// The element that the first row of the run loads: 0 outside of the view.
Value RunWriter::load(GatherOp table, Type type) {
  SmallVector<Value> operands = {table.getView()};
  for (Value place : table.getIndices())
    operands.push_back(take(place));
  Value zero = index(0), one = index(1), isInside;
  for (auto [i, rows] : llvm::enumerate(table.getRows())) {
    int64_t dim = table.getFirstNumberedDim() + i;
    Value place = arith::IndexCastOp::create(builder, builder.getIndexType(), first(rows));
    Value size = extentOf(table.getView(), dim, builder, builder.getLoc());
    Value last = arith::SubIOp::create(builder, size, one);
    Value nearest =
        arith::MaxSIOp::create(builder, arith::MinSIOp::create(builder, place, last), zero);
    Value holds = arith::CmpIOp::create(builder, Predicate::eq, place, nearest);
    isInside = isInside ? Value(arith::AndIOp::create(builder, isInside, holds)) : holds;
    operands[1 + dim] = nearest;
  }
  Value loaded = LoadOp::create(builder, TypeRange{type}, operands);
  return arith::SelectOp::create(builder, isInside, loaded, constant(type, 0));
}

/// i64: in how many rows a comparison holds of as many as there may be, if it does in some.
Value RunWriter::difference(Value condition) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  auto wide = [&](Value tile) -> Value {
    Value number = first(tile);
    if (number.getType().isInteger(64))
      return number;
    return arith::ExtSIOp::create(builder, builder.getI64Type(), number);
  };
  Value a = wide(compare.getLhs()), b = wide(compare.getRhs());
  Predicate predicate = compare.getPredicate();
  bool isBelow = predicate == Predicate::slt || predicate == Predicate::sle;
  Value rows =
      isBelow ? arith::SubIOp::create(builder, b, a) : arith::SubIOp::create(builder, a, b);
  bool withEqual = predicate == Predicate::sle || predicate == Predicate::sge;
  return arith::AddIOp::create(builder, rows, constant(builder.getI64Type(), withEqual));
}

/// i64: in how many of the first rows of the run `condition` holds, and in none if not above 0.
Value RunWriter::count(Value condition) {
  Type type = builder.getI64Type();
  if (runs.kindOf(condition) == RunKind::Same)
    return arith::SelectOp::create(builder, first(condition), constant(type, run),
                                   constant(type, 0));
  if (auto both = condition.getDefiningOp<arith::AndIOp>())
    return arith::MinSIOp::create(builder, count(both.getLhs()), count(both.getRhs()));
  return difference(condition);
}

/// index: in how many of the first rows of the run all `conditions` hold.
Value RunWriter::countAll(ArrayRef<Value> conditions) {
  Value rows = constant(builder.getI64Type(), run);
  for (Value condition : conditions)
    rows = arith::MinSIOp::create(builder, rows, count(condition));
  rows = arith::MaxSIOp::create(builder, rows, constant(builder.getI64Type(), 0));
  return arith::IndexCastOp::create(builder, builder.getIndexType(), rows);
}

/// No more rows are there than the view has.
RowOp RunWriter::writeRow(const RowRuns::Numbers &numbers, IotaOp all, Value extent) {
  Value end = arith::AddIOp::create(builder, all.getStart(), countAll(numbers.conditions));
  return RowOp::create(builder, all.getStart(), arith::MinSIOp::create(builder, end, extent));
}

GatherRunsOp RunWriter::write(GatherOp gather, ArrayRef<RowRuns::Numbers> numbers) {
  Region region;
  body = &region.emplaceBlock();
  body->addArgument(builder.getIndexType(), gather.getLoc());
  builder.setInsertionPointToStart(body);
  SmallVector<Value> places, conditions;
  for (const RowRuns::Numbers &ofDim : numbers) {
    places.push_back(
        arith::IndexCastOp::create(builder, builder.getIndexType(), first(ofDim.tile)));
    llvm::append_range(conditions, ofDim.conditions);
  }
  places.push_back(countAll(conditions));
  YieldOp::create(builder, places);
  builder.setInsertionPoint(gather);
  auto found = GatherRunsOp::create(builder, gather.getType(), gather.getView(),
                                    gather.getIndices(), captures, run, gather.getPipeAttr());
  found.getBody().takeBody(region);
  return found;
}

/// Why no bulk copies bring the rows of `gather`, in whatever runs they come.
static std::optional<StringRef> whyNoBulkCopies(GatherOp gather) {
  auto tile = cast<RankedTensorType>(gather.getType());
  std::optional<hop::SharedLayout> layout = hop::getSharedLayout(tile);
  if (!layout || layout->swizzle != hopper::widestSwizzle)
    return "copies of runs move rows of 128 bytes or a multiple";
  return std::nullopt;
}

namespace {
struct TileFindRunsPass : tessera::impl::TileFindRunsBase<TileFindRunsPass> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      if (auto gather = dyn_cast<GatherOp>(op))
        replaceByBox(gather, gather.getType());
      else if (auto scatter = dyn_cast<ScatterOp>(op))
        replaceByBox(scatter, scatter.getValue().getType());
    });
    for (GatherOp gather : pipedGathers(getOperation()))
      if (std::optional<StringRef> reason = whyNoBulkCopies(gather))
        gather.emitRemark("copies rows 16 bytes at a time: ") << *reason;
      else
        replace(gather);
  }

  /// Whether a tensor map has dimensions left for rows that end: the outermost of four has none
  /// where its index is 0.
  template <typename AccessOp>
  static bool leavesRoom(AccessOp access) {
    return access.getIndices().size() < hopper::mostMapDims - 1 ||
           getConstantIntValue(access.getIndices().front()) == 0;
  }

  /// The loads of such tiles from the view: one more is of a site of its own, as each gather is.
  static uint64_t countLoads(GatherOp gather) {
    return llvm::count_if(gather.getView().getUsers(), [&](Operation *user) {
      return isa<LoadOp>(user) && user->getResultTypes() == gather->getResultTypes();
    });
  }

  /// By a load or a store of one box, where the rows of a tile of rank 2 are one run, which ends
  /// early or does not.
  template <typename AccessOp>
  static void replaceByBox(AccessOp access, Type type) {
    auto tile = cast<RankedTensorType>(type);
    if (tile.getRank() != 2 || access.getRows().size() != 1)
      return;
    RowRuns runs(tile.getDimSize(0));
    std::optional<SmallVector<RowRuns::Numbers>> numbers = runs.find(access);
    auto all = numbers ? numbers->front().tile.template getDefiningOp<IotaOp>() : IotaOp();
    bool ends = numbers && !numbers->front().conditions.empty();
    if (!all || (ends && !(isNonNegative(all.getStart()) && leavesRoom(access))))
      return;
    OpBuilder builder(access);
    Location loc = access.getLoc();
    int64_t dim = access.getRowDim();
    SmallVector<Value> places(access.getIndices());
    places[dim] = all.getStart();
    if (ends)
      places[dim] =
          RunWriter(access, runs, tile.getDimSize(0))
              .writeRow(numbers->front(), all, extentOf(access.getView(), dim, builder, loc));
    access.emitRemark("moves all rows at once, as they follow each other")
        << (ends ? " up to their end" : "");
    SmallVector<Operation *> unused = {access.getRows().front().getDefiningOp()};
    if constexpr (std::is_same_v<AccessOp, GatherOp>) {
      uint64_t site = countLoads(access);
      places.insert(places.begin(), access.getView());
      auto load = LoadOp::create(builder, loc, TypeRange{type}, places);
      if (site)
        load.setSite(site);
      access.replaceAllUsesWith(load.getResult());
    } else {
      StoreOp::create(builder, loc, access.getValue(), access.getView(), places,
                      /*box=*/DenseI64ArrayAttr(), /*add=*/false);
    }
    access.erase();
    eraseUnused(std::move(unused));
  }

  /// By the longest runs in which the rows come, of which a warp finds as many as it has lanes.
  static void replace(GatherOp gather) {
    int64_t rows = cast<RankedTensorType>(gather.getType()).getDimSize(0);
    int64_t least = std::max(getCostModel(gather).leastRun, rows / hopper::warpThreads);
    RunRefusal refusal{gather, "has few rows"};
    for (int64_t run = std::min(rows & -rows, hopper::mostBoxExtent); run >= least; run /= 2) {
      RowRuns runs(run);
      if (std::optional<SmallVector<RowRuns::Numbers>> numbers = runs.find(gather)) {
        gather.emitRemark("comes in runs of ") << run << " rows, each by bulk copies";
        GatherRunsOp found = RunWriter(gather, runs, run).write(gather, *numbers);
        SmallVector<Operation *> unused =
            llvm::map_to_vector(gather.getRows(), [](Value tile) { return tile.getDefiningOp(); });
        gather.replaceAllUsesWith(found.getResult());
        gather.erase();
        return eraseUnused(std::move(unused));
      }
      refusal = runs.getRefusal();
    }
    InFlightDiagnostic remark =
        gather.emitRemark("copies rows 16 bytes at a time: they come in no runs of ")
        << least << " or more that follow from the program";
    remark.attachNote(refusal.op->getLoc()) << refusal.reason;
  }

  static void eraseUnused(SmallVector<Operation *> work) {
    while (!work.empty()) {
      Operation *op = work.pop_back_val();
      if (!op || !isOpTriviallyDead(op))
        continue;
      llvm::erase(work, op);
      for (Value operand : op->getOperands())
        work.push_back(operand.getDefiningOp());
      op->erase();
    }
  }
};
} // namespace
