//===- AllocateSharedMemory.cpp - Offsets of buffers and mbarriers --------===//
//
// Implements hop-allocate-shared-memory. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/Machine.h"
#include "dialects/Hop/SharedLayout.h"
#include "dialects/Tile/Refusal.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "passes/Hop/HopPasses.h"
#include "llvm/Support/MathExtras.h"

namespace tessera {
#define GEN_PASS_DEF_ALLOCATESHAREDMEMORY
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

/// Products that read `shared`, through slots and slices, and whether they read rows of it alone.
void collectReaders(Value shared, bool sliced,
                    SmallVectorImpl<std::pair<Operation *, bool>> &readers) {
  for (Operation *user : shared.getUsers()) {
    if (isa<hop::SlotOp>(user))
      collectReaders(user->getResult(0), sliced, readers);
    else if (auto slice = dyn_cast<hop::SliceOp>(user))
      collectReaders(slice, sliced || !slice.isOfColumns(), readers);
    else if (isa<hop::MmaIssueOp>(user))
      readers.emplace_back(user, sliced);
  }
}

struct AllocateSharedMemoryPass
    : tessera::impl::AllocateSharedMemoryBase<AllocateSharedMemoryPass> {
  void runOnOperation() override {
    hop::KernelOp kernel = getOperation();
    int64_t end = 0;
    auto place = [&](hop::SharedMemoryOpInterface op) {
      int64_t offset = llvm::alignTo(end, op.getSharedAlignment());
      op.setOffset(offset);
      end = offset + op.getSharedBytes();
    };
    auto holdsTiles = [](hop::BufferOp buffer) {
      return buffer.getBuffer().getType().getTile().getRank() == 2;
    };
    auto buffers = kernel.getBody().getOps<hop::BufferOp>();
    for (hop::BufferOp buffer : llvm::make_filter_range(buffers, holdsTiles))
      place(buffer);
    for (auto staging : kernel.getBody().getOps<hop::StagingOp>()) {
      if (std::optional<int64_t> offset = findReusable(kernel, staging))
        staging.setOffset(*offset);
      else
        place(staging);
    }
    for (hop::BufferOp buffer : llvm::make_filter_range(buffers, std::not_fn(holdsTiles)))
      place(buffer);
    for (auto barriers : kernel.getBody().getOps<hop::BarriersOp>())
      place(barriers);
    kernel.setSharedBytes(end);
    if (end > hopper::sharedMemoryOfBlock)
      reportTooMuch(kernel, end);
  }

  /// The offset of a buffer whose one slot only this warpgroup's earlier products read, in the
  /// layout of `staging`.
  std::optional<int64_t> findReusable(hop::KernelOp kernel, hop::StagingOp staging) {
    // What products read is written while they still need other buffers.
    SmallVector<std::pair<Operation *, bool>> readers;
    collectReaders(staging.getTile(), false, readers);
    if (!readers.empty())
      return std::nullopt;
    for (auto buffer : kernel.getBody().getOps<hop::BufferOp>()) {
      hop::BufferType type = buffer.getBuffer().getType();
      if (type.getTile().getRank() != 2 || isRefilled(buffer.getBuffer()))
        continue;
      hop::SharedLayout have = *hop::getSharedLayout(type.getTile());
      hop::SharedLayout want = *hop::getSharedLayout(staging.getTile().getType().getTile());
      if (type.getSlots() != 1 || have.rows != want.rows || have.swizzle != want.swizzle ||
          have.chunks() < want.chunks() || isTaken(kernel, *buffer.getOffset()) ||
          !readersAreDone(buffer, staging))
        continue;
      return *buffer.getOffset();
    }
    return std::nullopt;
  }

  /// Whether a loop loads the buffer, or a role writes it for another one that stores it: the next
  /// tile may come before the staging has been stored.
  static bool isRefilled(Value memory) {
    return llvm::any_of(memory.getUsers(), [](Operation *user) {
      if (isa<hop::SlotOp, hop::SliceOp>(user))
        return isRefilled(user->getResult(0));
      return isa<hop::StageOp, hop::BulkStoreOp>(user) ||
             (isa<hop::BulkLoadOp, hop::GatherOp>(user) &&
              user->getParentOfType<LoopLikeOpInterface>());
    });
  }

  bool isTaken(hop::KernelOp kernel, int64_t offset) {
    return llvm::any_of(kernel.getBody().getOps<hop::StagingOp>(),
                        [&](hop::StagingOp other) { return other.getOffset() == offset; });
  }

  /// Whether every product that reads `buffer` reads its warpgroup's rows only and has been waited
  /// for when `staging` is written.
  bool readersAreDone(hop::BufferOp buffer, hop::StagingOp staging) {
    SmallVector<std::pair<Operation *, bool>> readers;
    collectReaders(buffer.getBuffer(), false, readers);
    // A copy into a buffer that nothing reads may land at any time.
    if (readers.empty())
      return false;
    SmallVector<Operation *> writes;
    for (Operation *slice : staging.getTile().getUsers())
      llvm::append_range(writes, llvm::make_filter_range(slice->getUsers(), [](Operation *user) {
                           return isa<hop::StageOp>(user);
                         }));
    auto singleWarpgroup = [](Operation *op) {
      return op->getParentOfType<hop::RoleOp>().getNumWarpgroups() == 1;
    };
    // In a loop the next iteration's products read the buffer again.
    if (llvm::any_of(writes, [](Operation *write) {
          return write->getParentOfType<LoopLikeOpInterface>() != nullptr;
        }))
      return false;
    for (auto [reader, sliced] : readers) {
      if (!sliced && !singleWarpgroup(reader))
        return false;
      auto issue = cast<hop::MmaIssueOp>(reader);
      Operation *wait = *issue.getFlight().getUsers().begin();
      for (Operation *write : writes) {
        Operation *ancestor = write->getBlock()->findAncestorOpInBlock(*wait);
        if (!ancestor || !ancestor->isBeforeInBlock(write))
          return false;
      }
    }
    return true;
  }

  void reportTooMuch(hop::KernelOp kernel, int64_t bytes) {
    bool mayHaveFewerSlots =
        llvm::any_of(kernel.getBody().getOps<hop::BufferOp>(), [](hop::BufferOp buffer) {
          hop::BufferType type = buffer.getBuffer().getType();
          return type.getTile().getRank() > 1 && type.getSlots() > 1;
        });
    InFlightDiagnostic diag =
        kernel.emitError("needs ")
        << bytes << " bytes of shared memory, a thread block has " << hopper::sharedMemoryOfBlock
        << "; "
        << (mayHaveFewerSlots ? "lower stages or the tile sizes" : "smaller tiles are needed");
    setRefusalKind(diag, RefusalKind::SharedMemory);
    for (auto buffer : kernel.getBody().getOps<hop::BufferOp>()) {
      hop::BufferType type = buffer.getBuffer().getType();
      diag.attachNote(buffer.getLoc())
          << buffer.getLabel() << ": " << type.getSlots() << " slots of " << type.getTile();
    }
    for (auto staging : kernel.getBody().getOps<hop::StagingOp>())
      diag.attachNote(staging.getLoc())
          << staging.getLabel() << ": " << staging.getTile().getType().getTile()
          << ", which the consumers write";
    diag.report();
    signalPassFailure();
  }
};

} // namespace
