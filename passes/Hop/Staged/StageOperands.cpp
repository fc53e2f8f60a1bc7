//===- StageOperands.cpp - Operands of products in shared memory ----------===//
//
// Implements hop-stage-operands. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "mlir/Interfaces/LoopLikeInterface.h"
#include "passes/Analysis/OperandBuffers.h"
#include "passes/Hop/HopPasses.h"

namespace tessera {
#define GEN_PASS_DEF_STAGEOPERANDS
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

/// Operands that go to shared memory: first or second ones, as they are or with columns as rows.
struct Staged {
  bool isB, transposed;
  bool operator==(const Staged &other) const {
    return isB == other.isB && transposed == other.transposed;
  }
};

/// How an operand in registers goes to shared memory; nothing where wgmma takes it from there.
std::optional<Staged> howStaged(OpOperand &read) {
  auto mma = cast<hop::MmaOp>(read.getOwner());
  auto tile = dyn_cast<RankedTensorType>(read.get().getType());
  if (!tile)
    return std::nullopt;
  bool isB = &read == &mma.getBMutable(), isWord = isWordOperand(tile);
  if (isB)
    return Staged{true, isWord && !mma.getTransposeB()};
  return isWord || mma.getTransposeA() ? std::optional(Staged{false, mma.getTransposeA()})
                                       : std::nullopt;
}

/// Shared memory for a tile: all of it, and the part that a warpgroup writes.
struct Buffer {
  Value whole, share;
};

struct StageOperandsPass : tessera::impl::StageOperandsBase<StageOperandsPass> {
  void runOnOperation() override {
    // Which part of a second operand goes with a first one is known while that is in registers.
    for (auto role : getOperation().getBody().getOps<hop::RoleOp>())
      for (Staged which : {Staged{true, false}, {true, true}, {false, false}, {false, true}})
        if (failed(stage(role, which)))
          return signalPassFailure();
  }

  /// The products that read such an operand in registers.
  static SmallVector<OpOperand *> readsOf(hop::RoleOp role, Staged which) {
    SmallVector<OpOperand *> reads;
    role.walk([&](hop::MmaOp mma) {
      OpOperand &read = which.isB ? mma.getBMutable() : mma.getAMutable();
      if (howStaged(read) == which)
        reads.push_back(&read);
    });
    return reads;
  }

  /// A constant stands outside of the role. It is made anew before each loop that multiplies it:
  /// right behind the product before that, whose memory it may then share, or where the program
  /// begins. Each program of an attempt has its own.
  static void takeConstants(hop::RoleOp role, Staged which) {
    SmallVector<Value> constants;
    SmallVector<OpOperand *> reads = readsOf(role, which);
    OperandBuffers buffers(reads);
    for (const OperandBuffers::Tile &tile : buffers.getTiles())
      for (Value made : tile.made)
        if (!role->isAncestor(made.getParentBlock()->getParentOp()))
          constants.push_back(made);
    auto multiplies = [&](Operation *op) {
      return llvm::any_of(reads, [&](OpOperand *read) { return op->isAncestor(read->getOwner()); });
    };
    for (Value constant : constants) {
      llvm::SmallDenseMap<std::pair<Block *, Operation *>, Value> made;
      for (OpOperand &use : llvm::make_early_inc_range(constant.getUses())) {
        if (!role->isAncestor(use.getOwner()))
          continue;
        Operation *reader = use.getOwner();
        while (!isa<LoopLikeOpInterface>(reader) &&
               !isa<hop::AttemptOp, hop::RoleOp>(reader->getParentOp()))
          reader = reader->getParentOp();
        Operation *before = reader->getPrevNode();
        while (before && !multiplies(before))
          before = before->getPrevNode();
        Value &own = made[{reader->getBlock(), before}];
        if (!own) {
          OpBuilder builder(reader);
          if (before)
            builder.setInsertionPointAfter(before);
          else
            builder.setInsertionPointToStart(reader->getBlock());
          own = builder.clone(*constant.getDefiningOp())->getResult(0);
          // What folding has made has no place, which the simulator looks for.
          if (isa<UnknownLoc>(own.getLoc()))
            own.setLoc(use.getOwner()->getLoc());
        }
        use.set(own);
      }
    }
  }

  LogicalResult stage(hop::RoleOp role, Staged which) {
    takeConstants(role, which);
    SmallVector<OpOperand *> reads = readsOf(role, which);
    OperandBuffers buffers(reads);
    if (const auto &conflict = buffers.getConflict()) {
      InFlightDiagnostic diag =
          emitError(conflict->made.getLoc())
          << "makes the operand of a product while the one before it, in the same shared memory, "
             "is still to be read; use overlap = 1";
      diag.attachNote(conflict->needed.getLoc()) << "the one before it";
      return diag;
    }
    SmallVector<Buffer> memory;
    for (RankedTensorType type : buffers.getTypes())
      memory.push_back(createBuffer(role, type, which));
    for (const OperandBuffers::Tile &tile : buffers.getTiles()) {
      for (Value made : tile.made)
        write(role, made, memory[tile.buffer].share, which);
      for (OpOperand *read : tile.reads)
        setShared(role, *read, memory[tile.buffer], which);
    }
    return success();
  }

  /// Shared memory for the tiles of all warpgroups of the role; the share of each. A warpgroup has
  /// rows of it, or, where tiles are written transposed, columns.
  Buffer createBuffer(hop::RoleOp role, RankedTensorType type, Staged which) {
    OpBuilder builder(role);
    SmallVector<int64_t> shape(type.getShape());
    if (which.transposed)
      std::reverse(shape.begin(), shape.end());
    auto share = RankedTensorType::get(shape, type.getElementType());
    shape[which.transposed] *= role.getNumWarpgroups();
    auto whole = RankedTensorType::get(shape, type.getElementType());
    auto staging = hop::StagingOp::create(builder, role.getLoc(),
                                          hop::SharedType::get(&getContext(), whole, shape[0]),
                                          "operand", /*offset=*/IntegerAttr());
    return {staging.getTile(), slice(role, staging.getTile(), share)};
  }

  /// The warpgroup's part of `whole`, of the type `share`.
  Value slice(hop::RoleOp role, Value whole, RankedTensorType share) {
    int64_t rows = cast<hop::SharedType>(whole.getType()).getStoredRows();
    auto builder = OpBuilder::atBlockBegin(&role.getBody().front());
    return hop::SliceOp::create(builder, role.getLoc(),
                                hop::SharedType::get(&getContext(), share, rows), whole,
                                role.getBody().getArgument(0));
  }

  /// Has a product read the tile in `memory`: the warpgroup's own part, or as a second operand all
  /// of it, or what goes with the part of the contraction that the warpgroup has.
  void setShared(hop::RoleOp role, OpOperand &read, const Buffer &memory, Staged which) {
    auto mma = cast<hop::MmaOp>(read.getOwner());
    if (!which.isB) {
      read.set(memory.share);
      mma.setTransposeA(false);
      return;
    }
    Value whole = memory.whole;
    int64_t shares = mma.getContractedShares();
    mma.setTransposeB(mma.getTransposeB() || which.transposed);
    if (shares > 1) {
      RankedTensorType tile = cast<hop::SharedType>(whole.getType()).getTile();
      SmallVector<int64_t> shape(tile.getShape());
      shape[mma.getTransposeB()] /= shares;
      whole = slice(role, whole, RankedTensorType::get(shape, tile.getElementType()));
    }
    read.set(whole);
  }

  /// All threads that write the tile have written before one of them starts a product: those of the
  /// warpgroup, or of all whose rows a second operand consists of. These also meet before, when
  /// their products have read the tile that was there.
  void write(hop::RoleOp role, Value made, Value share, Staged which) {
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfterValue(made);
    bool areMany = which.isB && role.getNumWarpgroups() > 1;
    if (areMany)
      hop::RoleSyncOp::create(builder, made.getLoc());
    hop::StageOp::create(builder, made.getLoc(), made, share, which.transposed,
                         isRoundedOperand(made));
    if (areMany)
      hop::RoleSyncOp::create(builder, made.getLoc());
    else
      hop::WarpgroupSyncOp::create(builder, made.getLoc());
  }
};

} // namespace
