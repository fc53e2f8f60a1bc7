//===- IndexFacts.cpp - What index arithmetic says of its result ----------===//

#include "passes/LowerToLLVM/IndexFacts.h"
#include "dialects/Hop/Hop.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;

bool tessera::isMultipleOf(Value index, int64_t factor, unsigned depth) {
  if (std::optional<int64_t> constant = getConstantIntValue(index))
    return *constant % factor == 0;
  // Expressions share parts, so that their number of paths has no bound.
  if (depth == 0)
    return false;
  auto holds = [&](Value value) { return isMultipleOf(value, factor, depth - 1); };
  if (scf::ForOp loop = scf::getForInductionVarOwner(index))
    return holds(loop.getLowerBound()) && holds(loop.getStep());
  Operation *op = index.getDefiningOp();
  return op && TypeSwitch<Operation *, bool>(op)
                   .Case([&](arith::MulIOp mul) { return llvm::any_of(mul->getOperands(), holds); })
                   .Case<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MinUIOp,
                         arith::MaxSIOp, arith::MaxUIOp>(
                       [&](Operation *both) { return llvm::all_of(both->getOperands(), holds); })
                   .Case([&](arith::SelectOp select) {
                     return holds(select.getTrueValue()) && holds(select.getFalseValue());
                   })
                   .Default(false);
}

bool tessera::isNonNegative(Value index, unsigned depth) {
  if (std::optional<int64_t> constant = getConstantIntValue(index))
    return *constant >= 0;
  if (depth == 0)
    return false;
  auto holds = [&](Value value) { return isNonNegative(value, depth - 1); };
  if (scf::ForOp loop = scf::getForInductionVarOwner(index))
    return holds(loop.getLowerBound());
  if (auto argument = dyn_cast<BlockArgument>(index)) {
    // Grid indices and the index of a warpgroup; a kernel's own arguments may be anything.
    Operation *owner = argument.getOwner()->getParentOp();
    auto kernel = dyn_cast_or_null<hop::KernelOp>(owner);
    return isa_and_nonnull<hop::RoleOp>(owner) ||
           (kernel && argument.getArgNumber() >= kernel.getNumArguments());
  }
  return TypeSwitch<Operation *, bool>(index.getDefiningOp())
      .Case<tile::DimOp, hop::BlockIndexOp, hop::BlockCountOp, hop::ClusterRankOp>(
          [](Operation *) { return true; })
      .Case<arith::AddIOp, arith::MulIOp, arith::DivUIOp, arith::DivSIOp, arith::CeilDivUIOp,
            arith::CeilDivSIOp, arith::MinSIOp>(
          [&](Operation *op) { return llvm::all_of(op->getOperands(), holds); })
      .Case<arith::MaxSIOp, arith::MinUIOp>(
          [&](Operation *op) { return llvm::any_of(op->getOperands(), holds); })
      .Case([&](arith::RemUIOp rem) { return holds(rem.getRhs()); })
      .Case([&](arith::RemSIOp rem) { return holds(rem.getLhs()); })
      .Case([&](arith::SelectOp select) {
        return holds(select.getTrueValue()) && holds(select.getFalseValue());
      })
      .Default(false);
}
