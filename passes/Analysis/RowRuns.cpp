//===- RowRuns.cpp - In what runs the numbers of rows follow each other ---===//

#include "passes/Analysis/RowRuns.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Analysis/IndexFacts.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;
using RunKind = RowRuns::Kind;
using Predicate = arith::CmpIPredicate;

static std::optional<APInt> findConstant(Value tile) {
  DenseIntElementsAttr elements;
  if (matchPattern(tile, m_Constant(&elements)) && elements.isSplat())
    return elements.getSplatValue<APInt>();
  return std::nullopt;
}

std::optional<RunKind> RowRuns::refuse(Operation *op, StringRef reason) {
  if (!refusal.op)
    refusal = {op, reason};
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Multiples of the run
//===----------------------------------------------------------------------===//

/// Whether the number of `tile`, which is Same, is a multiple of the run.
bool RowRuns::isMultiple(Value tile) {
  if (std::optional<APInt> constant = findConstant(tile))
    return constant->urem(run) == 0;
  Operation *op = tile.getDefiningOp();
  if (auto splat = dyn_cast_or_null<SplatOp>(op)) {
    Value source = splat.getSource();
    auto index = source.getDefiningOp<arith::IndexCastOp>();
    return isMultipleOf(index ? index.getIn() : source, run);
  }
  if (isa_and_nonnull<arith::MulIOp>(op))
    return isMultiple(op->getOperand(0)) || isMultiple(op->getOperand(1));
  return isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op) && isMultiple(op->getOperand(0)) &&
         isMultiple(op->getOperand(1));
}

/// Whether the first number of each run of `tile`, which is Following, is a multiple of it.
bool RowRuns::startsAtMultiple(Value tile) {
  Operation *op = tile.getDefiningOp();
  if (auto iota = dyn_cast<IotaOp>(op))
    return isMultipleOf(iota.getStart(), run);
  if (isa<arith::RemUIOp>(op))
    return true;
  auto isStart = [&](Value part) {
    return kindOf(part) == RunKind::Following ? startsAtMultiple(part) : isMultiple(part);
  };
  return isa<arith::AddIOp, arith::SubIOp>(op) && isStart(op->getOperand(0)) &&
         isStart(op->getOperand(1));
}

//===----------------------------------------------------------------------===//
// Kinds
//===----------------------------------------------------------------------===//

bool RowRuns::areSame(ValueRange tiles) {
  return llvm::all_of(tiles, [&](Value tile) {
    return !isa<RankedTensorType>(tile.getType()) || kindOf(tile) == RunKind::Same;
  });
}

std::optional<RunKind> RowRuns::ofComparison(arith::CmpIOp op) {
  std::optional<RunKind> a = kindOf(op.getLhs()), b = kindOf(op.getRhs());
  if (!a || !b)
    return std::nullopt;
  Predicate predicate = op.getPredicate();
  if (a == RunKind::Same && b == RunKind::Same)
    return RunKind::Same;
  bool isBelow = predicate == Predicate::slt || predicate == Predicate::sle,
       isAbove = predicate == Predicate::sgt || predicate == Predicate::sge;
  bool leads = (a == RunKind::Following && b == RunKind::Same && isBelow) ||
               (a == RunKind::Same && b == RunKind::Following && isAbove);
  // How many rows it holds for is a difference of 64 bits, and one more where they may be equal.
  if (leads && !ranges.of(op.getLhs()).lessFits(ranges.of(op.getRhs()), 63))
    return refuse(op, "compares numbers of more than 32 bits");
  if (leads)
    return RunKind::Leading;
  return refuse(op, "does not hold for the first rows of a run alone");
}

/// Numbers of which one that ends a narrow type is not followed by the one that begins it.
std::optional<RunKind> RowRuns::ofWidened(arith::ExtSIOp op) {
  std::optional<RunKind> kind = kindOf(op.getIn());
  IntegerRange narrow = ranges.of(op.getIn()),
               all = IntegerRange::ofBits(bitsOfIntegers(op.getIn().getType()));
  bool goesRound = narrow.least == all.least && narrow.most == all.most;
  if (kind == RunKind::Leading || (kind == RunKind::Following && goesRound))
    return refuse(op, "widens numbers that may go from the largest one to the least");
  return kind;
}

std::optional<RunKind> RowRuns::ofArithmetic(Operation *op) {
  std::optional<RunKind> a = kindOf(op->getOperand(0)), b = kindOf(op->getOperand(1));
  if (!a || !b)
    return std::nullopt;
  bool follows = a == RunKind::Following && b == RunKind::Same;
  if (a == RunKind::Same && b == RunKind::Same)
    return RunKind::Same;
  if (isa<arith::AddIOp>(op) && (follows || (a == RunKind::Same && b == RunKind::Following)))
    return RunKind::Following;
  if (isa<arith::SubIOp>(op) && a == RunKind::Following && b != RunKind::Leading)
    return follows ? RunKind::Following : RunKind::Same;
  if (isa<arith::AndIOp>(op) && a != RunKind::Following && b != RunKind::Following)
    return RunKind::Leading;
  if (!isa<arith::DivUIOp, arith::RemUIOp>(op) || !follows)
    return refuse(op, "changes otherwise than by one from row to row of a run");
  if (!isMultiple(op->getOperand(1)))
    return refuse(op, "divides by what is not known to be a multiple of a run's rows");
  if (!startsAtMultiple(op->getOperand(0)))
    return refuse(op, "divides what is not known to start at a multiple of a run's rows");
  return isa<arith::DivUIOp>(op) ? RunKind::Same : RunKind::Following;
}

std::optional<RunKind> RowRuns::compute(Operation *op) {
  return TypeSwitch<Operation *, std::optional<RunKind>>(op)
      .Case<SplatOp>([](auto) { return RunKind::Same; })
      .Case([&](IotaOp iota) -> std::optional<RunKind> {
        if (iota.getPeriod().value_or(run) % run != 0)
          return refuse(op, "begins anew amid a run");
        return RunKind::Following;
      })
      .Case([&](GatherOp gather) -> std::optional<RunKind> {
        auto isZero = [](Value index) { return getConstantIntValue(index) == 0; };
        ValueRange numbered = gather.getIndices().drop_front(gather.getFirstNumberedDim());
        if (!llvm::all_of(numbered, isZero) || !areSame(gather.getRows()) ||
            llvm::any_of(gather.getRows(), [&](Value rows) { return !isNarrow(rows); }) ||
            llvm::any_of(gather.getView().getUsers(), storesToView))
          return refuse(op, "may load another number for each row of a run");
        return RunKind::Same;
      })
      .Case<arith::CmpIOp>([&](auto compare) { return ofComparison(compare); })
      .Case<arith::ExtSIOp>([&](auto widened) { return ofWidened(widened); })
      .Case<arith::AddIOp, arith::SubIOp, arith::DivUIOp, arith::RemUIOp, arith::AndIOp>(
          [&](Operation *sum) { return ofArithmetic(sum); })
      .Default([&](Operation *) -> std::optional<RunKind> {
        if (OpTrait::hasElementwiseMappableTraits(op) && isMemoryEffectFree(op) &&
            op->getNumResults() == 1 && areSame(op->getOperands()))
          return RunKind::Same;
        return refuse(op, "gives numbers of which nothing is known");
      });
}

/// Whether `tile` has numbers that places of rows are made of.
bool RowRuns::isNarrow(Value tile) {
  if (!getElementTypeOrSelf(tile).isInteger(64))
    return true;
  Operation *op = tile.getDefiningOp();
  refuse(op ? op : tile.getParentBlock()->getParentOp(), "is no number of 32 bits for each row");
  return false;
}

std::optional<RunKind> RowRuns::kindOf(Value tile) {
  if (auto found = kinds.find(tile); found != kinds.end())
    return found->second;
  auto type = cast<RankedTensorType>(tile.getType());
  Operation *op = tile.getDefiningOp();
  std::optional<RunKind> kind;
  if (findConstant(tile))
    kind = RunKind::Same;
  else if (op && type.getRank() == 1)
    kind = compute(op);
  else if (op)
    refuse(op, "is no number for each row");
  else
    refuse(tile.getParentBlock()->getParentOp(), "hands on numbers of which nothing is known");
  return kinds[tile] = kind;
}

template <typename AccessOp>
std::optional<SmallVector<RowRuns::Numbers>> RowRuns::find(AccessOp access) {
  SmallVector<Numbers> all;
  for (auto [i, tile] : llvm::enumerate(access.getRows())) {
    if (getConstantIntValue(access.getIndices()[access.getFirstNumberedDim() + i]) != 0)
      return refuse(access, "counts rows from an index that is not the constant 0"), std::nullopt;
    Numbers numbers{tile, {}};
    while (auto select = numbers.tile.getDefiningOp<arith::SelectOp>()) {
      std::optional<APInt> none = findConstant(select.getFalseValue());
      if (!none || !none->isNegative() || !isa<RankedTensorType>(select.getCondition().getType()))
        break;
      numbers.conditions.push_back(select.getCondition());
      numbers.tile = select.getTrueValue();
    }
    bool ofRows = i + 1 == access.getRows().size();
    std::optional<RunKind> kind = isNarrow(numbers.tile) ? kindOf(numbers.tile) : std::nullopt;
    if (kind && *kind != (ofRows ? RunKind::Following : RunKind::Same))
      refuse(numbers.tile.getDefiningOp(), ofRows ? "is one number in all rows of a run"
                                                  : "is another number in each row of a run");
    bool isKnown = llvm::all_of(numbers.conditions, [&](Value condition) {
      return kindOf(condition).value_or(RunKind::Following) != RunKind::Following;
    });
    if (refusal.op || !isKnown)
      return std::nullopt;
    all.push_back(std::move(numbers));
  }
  return all;
}

template std::optional<SmallVector<RowRuns::Numbers>> RowRuns::find(GatherOp);
template std::optional<SmallVector<RowRuns::Numbers>> RowRuns::find(ScatterOp);
