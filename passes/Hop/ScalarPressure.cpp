//===- ScalarPressure.cpp - Registers of a thread that copies --------------===//

#include "passes/Hop/ScalarPressure.h"
#include "mlir/Analysis/Liveness.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;

/// What ptxas takes beside the values of the program: addresses of barriers, what a copy is made
/// of, and the other step. With 32 registers a loop of 23 values fits, and one of 24 spills.
static constexpr int64_t besideScalars = 9;

/// Whether `value` has a register: conditions have predicates, and constants and extents come with
/// the instructions that read them.
static bool hasRegister(Value value, hop::RoleOp role) {
  Operation *op = value.getDefiningOp();
  return value.getType().isIntOrIndex() && !value.getType().isInteger(1) &&
         role.getBody().isAncestor(value.getParentRegion()) &&
         !(op && (op->hasTrait<OpTrait::ConstantLike>() || isa<tile::DimOp>(op)));
}

int64_t tessera::scalarPressure(scf::ForOp loop) {
  auto role = loop->getParentOfType<hop::RoleOp>();
  Liveness liveness(role);
  auto liveAt = [&](Operation *op) {
    return liveness.getLiveness(op->getBlock())->currentlyLiveValues(op);
  };
  llvm::SmallSetVector<Value, 32> around;
  for (Operation *op = loop; op != role; op = op->getParentOp())
    for (Value value : liveAt(op))
      around.insert(value);
  int64_t most = 0;
  for (Operation &op : *loop.getBody()) {
    llvm::SmallSetVector<Value, 32> live = around;
    for (Value value : liveAt(&op))
      live.insert(value);
    int64_t count = llvm::count_if(live, [&](Value value) { return hasRegister(value, role); });
    most = std::max(most, count);
  }
  return most;
}

bool tessera::hasRegistersForStep(scf::ForOp loop) {
  std::optional<int64_t> registers = loop->getParentOfType<hop::RoleOp>().getRegisters();
  return !registers || scalarPressure(loop) + besideScalars <= *registers;
}
