//===- PipeRings.h - Buffers and mbarriers of pipes -------------------------===//
//
// What hop-insert-mbarriers makes of each pipe of a kernel, and who arrives at its barriers.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_HOP_BARRIERS_PIPERINGS_H
#define TESSERA_PASSES_HOP_BARRIERS_PIPERINGS_H

#include "dialects/Hop/Hop.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace tessera {

/// What a pipe becomes.
struct Ring {
  mlir::Value buffer, full, empty;
  int64_t slots = 0;
  int64_t bytes = 0;   ///< of a slot, and of those that go with it
  bool isTile = false; ///< otherwise a value
  /// The roles of which every thread releases a slot, not one of each warpgroup.
  llvm::SmallPtrSet<mlir::Operation *, 2> releasedByAll;
  /// The threads that fill a slot arrive one by one, not one of each warpgroup.
  bool committedByAll = false;
  /// They do when the copies have come that fill it.
  bool copied = false;
  /// Where the blocks of a cluster gather rows for each other, those of this block have come.
  mlir::Value gathered;
  /// The blocks of a cluster fill it together: each its part of a tile, the first one a value.
  bool multicast = false;
  /// The blocks of a cluster write it for each other.
  bool exchanged = false;
  /// Readers of all blocks give its slots back.
  bool isShared() const { return multicast || exchanged; }
  /// The pipe whose barriers and places stand for this one's too.
  mlir::Value leader;
};

/// The rings of pipes, in the order of the pipes.
using PipeRings = llvm::MapVector<mlir::Value, Ring>;

/// The pipe that `op`, which fills, reads or gives back a slot of another pipe, goes with; or none.
mlir::Value leaderOf(mlir::Operation *op);

/// Whether the threads of each warpgroup have met since they wrote the slot that `commit` hands on.
bool isJoined(hop::PipeCommitOp commit);

/// Writes buffers and barriers before the pipes of `kernel`, which stay.
PipeRings createRings(hop::KernelOp kernel, llvm::ArrayRef<hop::PipeCreateOp> pipes);

} // namespace tessera

#endif // TESSERA_PASSES_HOP_BARRIERS_PIPERINGS_H
