//===- FindRuns.cpp - Rows that numbers name, in runs ---------------------===//
//
// Implements tile-find-runs. See TilePasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/Machine.h"
#include "dialects/Hop/SharedLayout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Analysis/Conversions.h"
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

/// Writes where a run lies, of which the numbers of rows are known.
class RunWriter {
public:
  RunWriter(GatherOp gather, RowRuns &runs, int64_t run)
      : gather(gather), runs(runs), run(run), builder(gather.getLoc(), gather.getContext()) {}

  GatherRunsOp write(ArrayRef<RowRuns::Numbers> numbers);

private:
  Value constant(Type type, int64_t value) {
    return arith::ConstantOp::create(builder, builder.getIntegerAttr(type, value));
  }
  Value index(int64_t value) { return constant(builder.getIndexType(), value); }
  Value take(Value scalar);
  Value first(Value tile);
  Value load(GatherOp gather, Type type);
  Value count(Value condition);
  Value difference(Value condition);

  GatherOp gather;
  RowRuns &runs;
  int64_t run;
  ImplicitLocOpBuilder builder;
  Block *body = nullptr;
  SmallVector<Value> captures;
  llvm::DenseMap<Value, Value> known;
};
} // namespace

/// A scalar from outside as the region has it.
Value RunWriter::take(Value scalar) {
  Value &own = known[scalar];
  if (own)
    return own;
  Operation *op = scalar.getDefiningOp();
  if (op && (op->hasTrait<OpTrait::ConstantLike>() || isa<DimOp>(op)))
    return own = builder.clone(*op)->getResult(0);
  captures.push_back(scalar);
  return own = body->addArgument(scalar.getType(), scalar.getLoc());
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
    Value row = arith::MulIOp::create(builder, body->getArgument(0), index(run));
    if (iota.getPeriod())
      row = arith::RemUIOp::create(builder, row, index(*iota.getPeriod()));
    result = arith::IndexCastOp::create(builder, type,
                                        arith::AddIOp::create(builder, take(iota.getStart()), row));
  } else if (auto table = dyn_cast<GatherOp>(op)) {
    result = load(table, type);
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
  auto view = cast<ViewType>(table.getView().getType());
  SmallVector<Value> operands = {table.getView()};
  for (Value place : table.getIndices())
    operands.push_back(take(place));
  Value zero = index(0), one = index(1), isInside;
  for (auto [i, rows] : llvm::enumerate(table.getRows())) {
    int64_t dim = table.getFirstNumberedDim() + i, extent = view.getStaticDim(dim);
    Value place = arith::IndexCastOp::create(builder, builder.getIndexType(), first(rows));
    Value size = ShapedType::isDynamic(extent)
                     ? Value(DimOp::create(builder, builder.getIndexType(),
                                           builder.getStringAttr(view.getDimName(dim))))
                     : index(extent);
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

GatherRunsOp RunWriter::write(ArrayRef<RowRuns::Numbers> numbers) {
  Region region;
  body = &region.emplaceBlock();
  body->addArgument(builder.getIndexType(), gather.getLoc());
  builder.setInsertionPointToStart(body);
  SmallVector<Value> places;
  Value rows = constant(builder.getI64Type(), run);
  for (const RowRuns::Numbers &ofDim : numbers) {
    places.push_back(
        arith::IndexCastOp::create(builder, builder.getIndexType(), first(ofDim.tile)));
    for (Value condition : ofDim.conditions)
      rows = arith::MinSIOp::create(builder, rows, count(condition));
  }
  rows = arith::MaxSIOp::create(builder, rows, constant(builder.getI64Type(), 0));
  places.push_back(arith::IndexCastOp::create(builder, builder.getIndexType(), rows));
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
    for (GatherOp gather : pipedGathers(getOperation()))
      if (std::optional<StringRef> reason = whyNoBulkCopies(gather))
        gather.emitRemark("copies rows 16 bytes at a time: ") << *reason;
      else
        replace(gather);
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
        GatherRunsOp found = RunWriter(gather, runs, run).write(*numbers);
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
