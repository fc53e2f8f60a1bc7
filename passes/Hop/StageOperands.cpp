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
    bool takesAll = schedule.operands == tile::OperandKind::shared;
    for (auto role : getOperation().getBody().getOps<hop::RoleOp>())
      if (failed(stage(role, /*transposed=*/true)) ||
          (takesAll && failed(stage(role, /*transposed=*/false))))
        return signalPassFailure();
  }

  /// The products that read an operand in registers, as it is or transposed.
  static SmallVector<OpOperand *> readsOf(hop::RoleOp role, bool transposed) {
    SmallVector<OpOperand *> reads;
    role.walk([&](hop::MmaOp mma) {
      if (isa<RankedTensorType>(mma.getA().getType()) && mma.getTransposeA() == transposed)
        reads.push_back(&mma.getAMutable());
    });
    return reads;
  }

  /// A constant stands outside of the role. Each program of the role that multiplies it makes it
  /// anew: what the fast program of an attempt writes to the same memory comes before the exact
  /// one.
  static void takeConstants(hop::RoleOp role, bool transposed) {
    SmallVector<Value> constants;
    SmallVector<OpOperand *> reads = readsOf(role, transposed);
    OperandBuffers buffers(reads);
    for (const OperandBuffers::Tile &tile : buffers.getTiles())
      for (Value made : tile.made)
        if (!role->isAncestor(made.getParentBlock()->getParentOp()))
          constants.push_back(made);
    for (Value constant : constants) {
      llvm::SmallDenseMap<Block *, Value> ofProgram;
      for (OpOperand &use : llvm::make_early_inc_range(constant.getUses())) {
        if (!role->isAncestor(use.getOwner()))
          continue;
        auto attempt = use.getOwner()->getParentOfType<hop::AttemptOp>();
        Region *program = attempt ? use.getOwner()->getParentRegion() : &role.getBody();
        while (attempt && program->getParentOp() != attempt)
          program = program->getParentOp()->getParentRegion();
        Value &own = ofProgram[&program->front()];
        if (!own)
          own = OpBuilder::atBlockBegin(&program->front())
                    .clone(*constant.getDefiningOp())
                    ->getResult(0);
        use.set(own);
      }
    }
  }

  LogicalResult stage(hop::RoleOp role, bool transposed) {
    takeConstants(role, transposed);
    SmallVector<OpOperand *> reads = readsOf(role, transposed);
    OperandBuffers buffers(reads);
    if (const auto &conflict = buffers.getConflict()) {
      InFlightDiagnostic diag =
          emitError(conflict->made.getLoc())
          << "makes the operand of a product while the one before it, in the same shared memory, "
             "is still to be read; use "
          << (transposed ? "overlap = 1" : "operands = registers");
      diag.attachNote(conflict->needed.getLoc()) << "the one before it";
      return diag;
    }
    SmallVector<Value> shares;
    for (RankedTensorType type : buffers.getTypes())
      shares.push_back(createBuffer(role, type, transposed));
    for (const OperandBuffers::Tile &tile : buffers.getTiles()) {
      for (Value made : tile.made)
        write(made, shares[tile.buffer], transposed);
      for (OpOperand *read : tile.reads) {
        read->set(shares[tile.buffer]);
        cast<hop::MmaOp>(read->getOwner()).setTransposeA(false);
      }
    }
    return success();
  }

  /// Shared memory for the tiles of all warpgroups of the role; the share of each. A warpgroup has
  /// rows of it, or, where tiles are written transposed, columns.
  Value createBuffer(hop::RoleOp role, RankedTensorType type, bool transposed) {
    OpBuilder builder(role);
    SmallVector<int64_t> shape(type.getShape());
    if (transposed)
      std::reverse(shape.begin(), shape.end());
    auto share = RankedTensorType::get(shape, type.getElementType());
    shape[transposed] *= role.getNumWarpgroups();
    auto whole = RankedTensorType::get(shape, type.getElementType());
    auto staging = hop::StagingOp::create(builder, role.getLoc(),
                                          hop::SharedType::get(&getContext(), whole, shape[0]),
                                          "operand", /*offset=*/IntegerAttr());
    builder.setInsertionPointToStart(&role.getBody().front());
    return hop::SliceOp::create(builder, role.getLoc(),
                                hop::SharedType::get(&getContext(), share, shape[0]),
                                staging.getTile(), role.getBody().getArgument(0));
  }

  /// All threads of the warpgroup have written before one of them starts a product.
  void write(Value made, Value share, bool transposed) {
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfterValue(made);
    hop::StageOp::create(builder, made.getLoc(), made, share, transposed);
    hop::WarpgroupSyncOp::create(builder, made.getLoc());
  }
};

} // namespace
