//===- Exponentials.cpp - Exponentials that may be polynomials ------------===//

#include "passes/Schedule/Exponentials.h"
#include "dialects/Hop/Machine.h"
#include "dialects/Tile/Entries.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/Analysis/IndexFunctions.h"
#include "passes/Analysis/ScfFlow.h"
#include "passes/Analysis/Speculation.h"
#include "passes/Schedule/LoopOverlap.h"
#include "passes/Schedule/ResourceModel.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

double CycleBudget::functionsWith(int64_t share) const {
  return functions - exponentials * share / kExponentialShares;
}

double CycleBudget::instructionsWith(int64_t share) const {
  return instructions + polynomials * share / kExponentialShares;
}

/// True when `op` becomes part of a fused multiply-add.
static bool isFused(arith::MulFOp op) {
  return op->hasOneUse() && isa<arith::AddFOp, arith::SubFOp>(*op->user_begin());
}

static ElementCost costOf(Operation *op, const CostModel &model) {
  return TypeSwitch<Operation *, ElementCost>(op)
      .Case([&](arith::DivFOp div) -> ElementCost {
        return matchPattern(div.getLhs(), m_OneFloat()) ? model.reciprocal : model.division;
      })
      .Case([](arith::MulFOp mul) -> ElementCost { return {0, isFused(mul) ? 0.0 : 1.0}; })
      .Case([&](math::TanhOp tanh) -> ElementCost {
        return mayBeApproximate(tanh) ? model.approximateTanh : model.exactTanh;
      })
      .Case<math::ExpOp, math::LogOp>([&](auto) -> ElementCost { return model.exponential; })
      .Case([&](math::Log1pOp) -> ElementCost { return model.logarithmOfSum; })
      .Case([&](SigmoidOp) -> ElementCost { return model.sigmoid; })
      .Case<arith::TruncFOp>([&](auto) -> ElementCost { return model.rounding; })
      // Modifiers of operands.
      .Case<arith::NegFOp, math::AbsFOp>([](auto) -> ElementCost { return {}; })
      .Case<math::FmaOp, math::FloorOp, math::CeilOp>([](auto) -> ElementCost { return {0, 1}; })
      .Default([&](Operation *op) -> ElementCost {
        bool isFloat = getElementTypeOrSelf(op->getResult(0).getType()).isF32();
        // Of integers, as absi, there are none.
        if (isFloat && isa<math::MathDialect>(op->getDialect()))
          return model.singleFunction;
        bool isWork =
            op->hasTrait<OpTrait::Elementwise>() && !isa<arith::SelectOp, arith::ConstantOp>(op);
        return {0, isFloat && isWork ? 1.0 : 0.0};
      });
}

static int64_t elementsOfTile(Value value) {
  auto tile = dyn_cast<RankedTensorType>(value.getType());
  return tile && tile.getRank() == 2 ? tile.getNumElements() : 0;
}

double tessera::dotCycles(DotOp dot) {
  auto a = cast<RankedTensorType>(dot.getA().getType());
  return elementsOfTile(dot.getResult()) * a.getDimSize(1) /
         hopper::dotStepsPerCycle(a.getElementTypeBitWidth());
}

/// The instructions beside the work on tiles, of the warpgroups that share the rows of the dots.
static double loopInstructions(scf::ForOp loop, const CostModel &model) {
  int64_t rows = 0;
  for (DotOp dot : loop.getBody()->getOps<DotOp>())
    rows = std::max(rows, cast<RankedTensorType>(dot.getType()).getDimSize(0));
  return model.loopInstructions * rows / hopper::mmaRows * hopper::warpgroupThreads /
         hopper::instructionsPerCycle;
}

CycleBudget tessera::cycleBudget(ArrayRef<scf::ForOp> loops, const CostModel &model) {
  CycleBudget budget;
  for (scf::ForOp loop : loops) {
    budget.instructions += loopInstructions(loop, model);
    loop.walk([&](Operation *op) {
      if (auto dot = dyn_cast<DotOp>(op)) {
        budget.dots += dotCycles(dot);
        return;
      }
      if (auto reduce = dyn_cast<ReduceOp>(op)) {
        budget.instructions += elementsOfTile(reduce.getSource()) / hopper::instructionsPerCycle;
        return;
      }
      if (op->getNumResults() != 1 || !OpTrait::hasElementwiseMappableTraits(op))
        return;
      double elements = elementsOfTile(op->getResult(0));
      ElementCost cost = costOf(op, model);
      budget.functions += cost.functions * elements / hopper::functionsPerCycle;
      budget.instructions += cost.instructions * elements / hopper::instructionsPerCycle;
      if (!isExponential(op) || findExactUse(op))
        return;
      budget.exponentials += elements / hopper::functionsPerCycle;
      budget.polynomials +=
          elements / hopper::instructionsPerCycle *
          (staysPrecise(op) ? model.precisePolynomialInstructions : model.polynomialInstructions);
    });
  }
  return budget;
}

/// Where the special functions do not limit it the card's power does, to which an instruction on
/// the FMA pipes adds more than its part of a special function.
double tessera::expectedCycles(const CycleBudget &budget, int64_t share, const CostModel &model) {
  double functions = budget.functionsWith(share), instructions = budget.instructionsWith(share);
  return std::max(functions / model.functionUse, model.dotWeight * budget.dots +
                                                     model.functionWeight * functions +
                                                     model.instructionWeight * instructions);
}

int64_t tessera::fastestShare(const CycleBudget &budget, const CostModel &model) {
  if (!budget.exponentials)
    return 0;
  int64_t best = 0;
  double least = expectedCycles(budget, 0, model) * (1 - model.leastGainOfPolynomials);
  for (int64_t share : model.polynomialShares)
    if (double cycles = expectedCycles(budget, share, model); cycles < least) {
      least = cycles;
      best = share;
    }
  return best;
}

bool tessera::isExponential(Operation *op) {
  return isa<math::Exp2Op, math::ExpOp>(op) && elementsOfTile(op->getResult(0)) > 0 &&
         getElementTypeOrSelf(op->getResult(0).getType()).isF32();
}

/// Rounding to 16 bits.
static bool isRounding(Operation *op) {
  auto rounding = dyn_cast<arith::TruncFOp>(op);
  return rounding && getElementTypeOrSelf(rounding.getType()).getIntOrFloatBitWidth() <= 16;
}

Operation *tessera::findExactUse(Operation *op) {
  for (Operation *user : op->getUsers()) {
    if (isRounding(user))
      continue;
    auto reduce = dyn_cast<ReduceOp>(user);
    if (isa<MaskedMaxOp>(user) || (reduce && reduce.getKind() == ReduceKind::sum))
      continue;
    return user;
  }
  return nullptr;
}

/// Adds what `use` makes of its value, or hands it on as, to `values`.
static void followUse(OpOperand &use, SmallVectorImpl<Value> &values) {
  Operation *op = use.getOwner(), *parent = op->getParentOp();
  unsigned operand = use.getOperandNumber();
  if (std::optional<Handover> handover = findHandoverOf(use))
    return values.append(handover->to);
  if (isa<YieldIfOp>(op)) // its first operand is the predicate
    return values.push_back(parent->getResult(operand - 1));
  if (op->hasTrait<OpTrait::IsTerminator>())
    return values.push_back(parent->getResult(operand));
  // A comparison decides between results, of which each is followed from where it is made.
  if (!isRounding(op) && !isa<arith::CmpFOp>(op))
    llvm::append_range(values, op->getResults());
}

/// True when tile `value` is computed, element by element, from a product of 8-bit elements.
static bool isOfByteProduct(Value value) {
  SmallVector<Value> pending = {value};
  llvm::DenseSet<Value> seen;
  while (!pending.empty()) {
    Value tile = pending.pop_back_val();
    Operation *op = tile.getDefiningOp();
    if (!op || !elementsOfTile(tile) || !seen.insert(tile).second)
      continue;
    if (auto dot = dyn_cast<DotOp>(op))
      if (isByteFloat(dot.getB().getType().getElementType()))
        return true;
    if (OpTrait::hasElementwiseMappableTraits(op))
      llvm::append_range(pending, op->getOperands());
  }
  return false;
}

bool tessera::staysPrecise(Operation *op) {
  // Tensor cores keep about 14 bits of sums of 8-bit products: exponents are off by as much as the
  // cheaper polynomial is.
  if (isOfByteProduct(op->getOperand(0)))
    return false;
  SmallVector<Value> pending;
  for (Operation *user : op->getUsers())
    if (isa<ReduceOp>(user))
      pending.push_back(user->getResult(0));
  llvm::DenseSet<Value> seen;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    for (OpOperand &use : value.getUses()) {
      if (storesToView(use.getOwner()))
        return true;
      followUse(use, pending);
    }
  }
  return false;
}

SmallVector<scf::ForOp> tessera::firstLoopsWithDots(KernelOp kernel) {
  SmallVector<scf::ForOp> loops = loopsWithDots(kernel);
  if (SpeculateOp speculation = findSpeculation(kernel))
    llvm::erase_if(loops, [&](scf::ForOp loop) {
      return speculation.getExact().isAncestor(loop->getParentRegion());
    });
  return loops;
}

SmallVector<Operation *> tessera::exponentialsInLoops(KernelOp kernel) {
  SmallVector<Operation *> exponentials;
  for (scf::ForOp loop : loopsWithDots(kernel))
    loop.walk([&](Operation *op) {
      if (isExponential(op) && !llvm::is_contained(exponentials, op))
        exponentials.push_back(op);
    });
  return exponentials;
}

void tessera::markPolynomial(Operation *op, int64_t share) {
  Builder builder(op->getContext());
  TileDialect::PolynomialAttrHelper(builder.getContext())
      .setAttr(op, builder.getI64IntegerAttr(share));
  if (staysPrecise(op))
    TileDialect::PolynomialPreciseAttrHelper(builder.getContext())
        .setAttr(op, builder.getUnitAttr());
}
