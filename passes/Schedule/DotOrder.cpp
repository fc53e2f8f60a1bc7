//===- DotOrder.cpp - Dots before others that they do not wait for ---------===//

#include "passes/Schedule/DotOrder.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Schedule/ResourceModel.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// Whether `dot` multiplies a computed tile and adds it to what a loop carries.
static bool addsComputed(DotOp dot) {
  auto acc = dyn_cast_or_null<BlockArgument>(dot.getAcc());
  return acc && acc.getOwner() == dot->getBlock() && isa<scf::ForOp>(dot->getParentOp()) &&
         !loadedOperand(dot.getA()) && !isStagedA(dot);
}

/// What `op` is computed from in its block, with itself.
static llvm::SetVector<Operation *> sliceInBlock(Operation *op) {
  llvm::SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.filter = [&](Operation *other) { return other->getBlock() == op->getBlock(); };
  (void)getBackwardSlice(op, &slice, options);
  return slice;
}

/// The first operation before `dot`, behind all that it needs, from which on others make results of
/// dots that it does not need; `dot` where there is none.
static Operation *findEarlierPlace(DotOp dot) {
  llvm::SetVector<Operation *> own = sliceInBlock(dot);
  Operation *place = dot;
  llvm::SetVector<Operation *> others;
  for (Operation *op = dot->getPrevNode(); op && !own.contains(op); op = op->getPrevNode()) {
    if (isa<DotOp>(op))
      others.insert_range(sliceInBlock(op));
    else if (!others.contains(op))
      break;
    place = op;
  }
  return others.empty() ? dot : place;
}

SmallVector<DotOp> tessera::issueSumsEarly(KernelOp kernel) {
  SmallVector<DotOp> moved;
  kernel.walk([&](DotOp dot) {
    Operation *place = addsComputed(dot) ? findEarlierPlace(dot) : dot;
    if (place == dot)
      return;
    moved.push_back(dot);
    dot->moveBefore(place);
  });
  return moved;
}
