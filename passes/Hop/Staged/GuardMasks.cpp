//===- GuardMasks.cpp - Masks only where an element needs them ------------===//
//
// Implements hop-guard-masks. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/ScheduleFields.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Analysis/MaskAnalysis.h"
#include "passes/Hop/HopPasses.h"

namespace tessera {
#define GEN_PASS_DEF_GUARDMASKS
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

/// A condition of a mask, and what holds where it leaves every element as it is.
struct Guarded {
  Value condition;
  SmallVector<InductionBound> bounds;
};

/// Whether all that is computed from `value` is computed for `end`.
static bool isOnlyFor(Value value, Value end) {
  return value == end || (!value.use_empty() && llvm::all_of(value.getUsers(), [&](Operation *op) {
           return op->getNumResults() == 1 && op->getNumRegions() == 0 &&
                  isOnlyFor(op->getResult(0), end);
         }));
}

/// Two masks of which a scalar says which one holds.
struct Alternatives {
  Value condition, holding, otherwise;
};

/// What is left of a term of `andi` without the operand that is a splat, and the splat's scalar.
static std::pair<Value, Value> splitByScalar(Value term) {
  auto both = term.getDefiningOp<arith::AndIOp>();
  for (unsigned i : {0, 1})
    if (auto splat = both ? both->getOperand(i).getDefiningOp<tile::SplatOp>() : tile::SplatOp())
      return {splat.getSource(), both->getOperand(1 - i)};
  return {};
}

/// (c and a) or (not c and b), of a comparison c of scalars.
static std::optional<Alternatives> findAlternatives(Value condition) {
  SmallVector<Value> terms = getMaskTerms(condition, /*byAnd=*/false);
  if (terms.size() != 2)
    return std::nullopt;
  auto [first, holding] = splitByScalar(terms[0]);
  auto [second, otherwise] = splitByScalar(terms[1]);
  auto a = first ? first.getDefiningOp<arith::CmpIOp>() : arith::CmpIOp(),
       b = second ? second.getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
  bool areOpposite = a && b && a.getLhs() == b.getLhs() && a.getRhs() == b.getRhs() &&
                     arith::invertPredicate(a.getPredicate()) == b.getPredicate();
  if (!areOpposite)
    return std::nullopt;
  return Alternatives{first, holding, otherwise};
}

/// Rewrites one mask.
class MaskGuard {
public:
  MaskGuard(arith::SelectOp select, bool arm)
      : select(select), arm(arm), builder(select.getLoc(), select) {}

  void run() {
    std::string reason;
    for (Value term : getMaskTerms(select.getCondition(), arm))
      if (!guardByScalar(term) && !guard(term, term, reason))
        kept.push_back(term);
    if (!kept.empty())
      select.emitRemark("mask applied to every tile: ") << reason;
    if (guarded.empty())
      return;
    Value value = arm ? select.getTrueValue() : select.getFalseValue();
    if (!kept.empty())
      value = masked(combineMaskTerms(kept, arm, builder), value);
    for (const Guarded &term : guarded)
      value = applyWhereNeeded(term, value);
    select.replaceAllUsesWith(value);
    select.erase();
  }

private:
  /// Notes that `term` is needed only where `decides`, which is a part of it, does not say that it
  /// leaves every element.
  bool guard(Value term, Value decides, std::string &reason) {
    std::optional<MaskRanges> ranges = analyzeMask(decides, /*loop=*/nullptr, reason);
    std::optional<SmallVector<InductionBound>> bounds;
    if (ranges)
      bounds = arm ? ranges->allTrue : ranges->allFalse;
    if (bounds)
      guarded.push_back({term, std::move(*bounds)});
    return bounds.has_value();
  }

  /// The same of a term that is another one unless a scalar says that it leaves every element:
  /// behind the branch that is known.
  bool guardByScalar(Value term) {
    Operation *op = term.getDefiningOp();
    if (!op || !(arm ? isa<arith::OrIOp>(op) : isa<arith::AndIOp>(op)))
      return false;
    std::string reason;
    for (unsigned i : {0, 1})
      if (op->getOperand(i).getDefiningOp<tile::SplatOp>())
        return guard(op->getOperand(1 - i), op->getOperand(i), reason);
    return false;
  }

  Value masked(Value condition, Value value) {
    return arm ? arith::SelectOp::create(builder, condition, value, select.getFalseValue())
               : arith::SelectOp::create(builder, condition, select.getTrueValue(), value);
  }

  Value applyWhereNeeded(const Guarded &term, Value value) {
    SmallVector<Value> holds;
    for (const InductionBound &bound : term.bounds)
      holds.push_back(writeComparison(bound, arith::CmpIPredicate::sle, 0, builder));
    Value leavesAll = combineMaskTerms(holds, /*byAnd=*/true, builder);
    auto conditional = scf::IfOp::create(builder, value.getType(), leavesAll, /*withElse=*/true);
    OpBuilder::InsertionGuard insertion(builder);
    builder.setInsertionPointToStart(conditional.thenBlock());
    scf::YieldOp::create(builder, value);
    builder.setInsertionPointToStart(conditional.elseBlock());
    own = term.condition;
    scf::YieldOp::create(builder, applyAlternatives(term.condition, value));
    return conditional.getResult(0);
  }

  /// Applies a mask. Of two between which a scalar decides each has a branch.
  Value applyAlternatives(Value condition, Value value) {
    std::optional<Alternatives> either = findAlternatives(condition);
    if (!either) {
      IRMapping copies;
      return masked(copyTiles(condition, copies), value);
    }
    auto conditional =
        scf::IfOp::create(builder, value.getType(), either->condition, /*withElse=*/true);
    OpBuilder::InsertionGuard insertion(builder);
    for (auto [block, mask] : {std::pair(conditional.thenBlock(), either->holding),
                               std::pair(conditional.elseBlock(), either->otherwise)}) {
      builder.setInsertionPointToStart(block);
      scf::YieldOp::create(builder, applyAlternatives(mask, value));
    }
    return conditional.getResult(0);
  }

  /// Whether a load is for one part of a mask of several alone. Parts are apart where one seldom
  /// hides anything, and registers that wait for elements could not be used for anything else.
  bool loadsForPart(Operation *op) {
    return guarded.size() > 1 && isa<tile::LoadOp>(op) && isOnlyFor(op->getResult(0), own);
  }

  /// A copy of the operations on index tiles and masks that `value` is computed by. Numbers that it
  /// compares are not computed twice, nor is what a loop or a product gives; and loads begin before
  /// it is known whether they are needed, but for those of a part.
  Value copyTiles(Value value, IRMapping &copies) {
    Operation *op = value.getDefiningOp();
    auto tile = dyn_cast<RankedTensorType>(value.getType());
    if (!op || !tile || isa<FloatType>(tile.getElementType()) || op->getNumRegions() != 0 ||
        op->getNumResults() != 1 || (!isMemoryEffectFree(op) && !loadsForPart(op)))
      return value;
    if (Value copy = copies.lookupOrNull(value))
      return copy;
    for (Value operand : op->getOperands())
      copies.map(operand, copyTiles(operand, copies));
    return builder.clone(*op, copies)->getResult(0);
  }

  arith::SelectOp select;
  bool arm;  ///< the one that is computed
  Value own; ///< the condition whose branch is written
  ImplicitLocOpBuilder builder;
  SmallVector<Guarded> guarded;
  SmallVector<Value> kept;
};

struct GuardMasksPass : tessera::impl::GuardMasksBase<GuardMasksPass> {
  void runOnOperation() override {
    SmallVector<std::pair<arith::SelectOp, bool>> masks;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<LoopLikeOpInterface>(op))
        return WalkResult::skip();
      if (auto select = dyn_cast<arith::SelectOp>(op))
        if (std::optional<bool> arm = getComputedArm(select))
          masks.emplace_back(select, *arm);
      return WalkResult::advance();
    });
    for (auto [select, arm] : masks)
      MaskGuard(select, arm).run();
  }
};

} // namespace
