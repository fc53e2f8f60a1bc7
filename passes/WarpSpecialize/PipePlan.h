//===- PipePlan.h - Which loads share which pipe ----------------------------===//
//
// The pipes that join the roles of a kernel, and the loads that fill them.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_WARPSPECIALIZE_PIPEPLAN_H
#define TESSERA_PASSES_WARPSPECIALIZE_PIPEPLAN_H

#include "dialects/Hop/Hop.h"
#include "dialects/Tile/Tile.h"
#include "llvm/ADT/MapVector.h"

namespace tessera {

/// The pipe that a load and the copies that earlier passes made of it share.
struct PipeInfo {
  std::string label;
  mlir::RankedTensorType tile;
  bool inLoop = false;
  /// Which of the tiles that are loaded in loops it is, by number.
  size_t loopIndex = 0;
  /// The role that fills it, by number.
  unsigned filler = 0;
  mlir::Value pipe;
};
/// The number that tile-choose-schedule gave the load, or the load itself.
using PipeKey = std::pair<mlir::Operation *, int64_t>;

/// Which loads of a kernel go through which pipe.
struct PipePlan {
  llvm::MapVector<PipeKey, PipeInfo> pipes;
  llvm::DenseMap<mlir::Operation *, PipeKey> loads;

  PipeInfo &pipeOf(tile::LoadOp load) { return pipes.find(loads.lookup(load))->second; }
  bool isPiped(mlir::Operation *op) const { return loads.contains(op); }
};

/// The pipes of a kernel's loads that feed dots; reports uses that shared memory cannot serve.
mlir::FailureOr<PipePlan> planPipes(tile::KernelOp kernel);

/// Loads tiles again that are used behind a loop which goes round their pipe, or in it: equal loads
/// became one after the pipes were numbered.
void reloadTiles(tile::KernelOp kernel, PipePlan &plan);

} // namespace tessera

#endif // TESSERA_PASSES_WARPSPECIALIZE_PIPEPLAN_H
