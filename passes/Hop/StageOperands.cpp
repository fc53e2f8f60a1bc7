//===- StageOperands.cpp - Operands of products in shared memory ----------===//
//
// Implements hop-stage-operands. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/ScheduleFields.h"
#include "passes/Analysis/OperandBuffers.h"
#include "passes/Hop/HopPasses.h"

namespace tessera {
#define GEN_PASS_DEF_STAGEOPERANDS
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

struct StageOperandsPass : tessera::impl::StageOperandsBase<StageOperandsPass> {
  void runOnOperation() override {
    const tile::ScheduleFields &schedule = getOperation().getSchedule().getFields();
    if (failed(schedule.require(getOperation(), &tile::ScheduleFields::operands)))
      return signalPassFailure();
    if (schedule.operands != tile::OperandKind::shared)
      return;
    for (auto role : getOperation().getBody().getOps<hop::RoleOp>())
      if (failed(stage(role)))
        return signalPassFailure();
  }

  LogicalResult stage(hop::RoleOp role) {
    SmallVector<OpOperand *> reads;
    role.walk([&](hop::MmaOp mma) {
      if (isa<RankedTensorType>(mma.getA().getType()))
        reads.push_back(&mma.getAMutable());
    });
    OperandBuffers buffers(reads);
    if (const auto &conflict = buffers.getConflict()) {
      InFlightDiagnostic diag =
          emitError(conflict->made.getLoc())
          << "makes the operand of a product while the one before it, in the same shared memory, "
             "is still to be read; use operands = registers";
      diag.attachNote(conflict->needed.getLoc()) << "the one before it";
      return diag;
    }
    SmallVector<Value> shares;
    for (RankedTensorType type : buffers.getTypes())
      shares.push_back(createBuffer(role, type));
    for (const OperandBuffers::Tile &tile : buffers.getTiles()) {
      for (Value made : tile.made)
        write(role, made, shares[tile.buffer]);
      for (OpOperand *read : tile.reads)
        read->set(shares[tile.buffer]);
    }
    return success();
  }

  /// Shared memory for the tiles of all warpgroups of the role; the share of each.
  Value createBuffer(hop::RoleOp role, RankedTensorType type) {
    OpBuilder builder(role);
    int64_t rows = type.getDimSize(0) * role.getNumWarpgroups();
    auto whole = RankedTensorType::get({rows, type.getDimSize(1)}, type.getElementType());
    auto share = RankedTensorType::get(type.getShape(), type.getElementType());
    auto staging = hop::StagingOp::create(builder, role.getLoc(),
                                          hop::SharedType::get(&getContext(), whole, rows),
                                          "operand", /*offset=*/IntegerAttr());
    builder.setInsertionPointToStart(&role.getBody().front());
    return hop::SliceOp::create(builder, role.getLoc(),
                                hop::SharedType::get(&getContext(), share, rows), staging.getTile(),
                                role.getBody().getArgument(0));
  }

  /// All threads of the warpgroup have written before one of them starts a product. A constant
  /// stands outside of the role and is written where the role begins.
  void write(hop::RoleOp role, Value made, Value share) {
    OpBuilder builder(&getContext());
    bool isInside = role->isAncestor(made.getParentBlock()->getParentOp());
    builder.setInsertionPointAfterValue(isInside ? made : share);
    hop::StageOp::create(builder, made.getLoc(), made, share);
    hop::WarpgroupSyncOp::create(builder, made.getLoc());
  }
};

} // namespace
