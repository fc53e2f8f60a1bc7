//===- Slices.h - The slices of a kernel that become roles -----------------===//
//
// What tile-warp-specialize is made of: the plan of the pipes, and the slices of the
// program that the producer and the consumers run.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_WARPSPECIALIZE_SLICES_H
#define TESSERA_PASSES_WARPSPECIALIZE_SLICES_H

#include "dialects/Hop/Hop.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Analysis/RowPartition.h"
#include "llvm/ADT/MapVector.h"

namespace tessera {

/// The pipe that a load and the copies that earlier passes made of it share.
struct PipeInfo {
  std::string label;
  mlir::RankedTensorType tile;
  bool inLoop = false;
  /// Which of the tiles that are loaded in loops it is, by number.
  size_t loopIndex = 0;
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

/// Writes the producer's program: the piped loads, their addresses and the control flow around
/// them. `arguments` maps the kernel's block arguments.
mlir::LogicalResult cloneProducer(tile::KernelOp kernel, PipePlan &plan, mlir::OpBuilder &builder,
                                  const mlir::IRMapping &arguments);

/// Writes the consumers' program: everything but the piped loads, on the share of the rows of
/// `warpgroup`. With `loadsItself` one of its threads starts the loads too.
mlir::LogicalResult cloneConsumer(tile::KernelOp kernel, PipePlan &plan, const RowPartition &rows,
                                  mlir::Value warpgroup, bool loadsItself, mlir::OpBuilder &builder,
                                  const mlir::IRMapping &arguments);

} // namespace tessera

#endif // TESSERA_PASSES_WARPSPECIALIZE_SLICES_H
