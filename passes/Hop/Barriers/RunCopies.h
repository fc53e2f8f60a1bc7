//===- RunCopies.h - Copies of the runs in which rows come ------*- C++ -*-===//
//
// The part of hop-insert-mbarriers that writes a load of runs: a bulk copy for each.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_HOP_BARRIERS_RUNCOPIES_H
#define TESSERA_PASSES_HOP_BARRIERS_RUNCOPIES_H

#include "passes/Hop/Barriers/RunSearch.h"

namespace tessera {

/// The copies of a load of runs.
class RunCopies {
public:
  /// Finds where the runs lie: all, or the part of one of several blocks that copy a part each to
  /// all of them. Several are found by the lanes of an elected thread, one each, if they have not
  /// been `ahead`.
  RunCopies(hop::PipeLoadOp load, int64_t blocks, const RunsInLanes *ahead,
            mlir::RewriterBase &rewriter);

  /// Starts a copy of each run to its rows of `slot`, of which the mbarrier `index` of `full` is
  /// told.
  void start(mlir::Value slot, mlir::Value full, mlir::Value index);

private:
  /// Where copies go, and who is told.
  struct Target {
    mlir::Value slot, full, index;
  };
  void takeFromLanes(const RunsInLanes &lanes);
  void forEachRun(llvm::function_ref<void(const Run &)> copy);
  void copyRows(const Run &run, int64_t rows, const Target &target);
  void copyRun(const Run &run, const Target &target);

  hop::PipeLoadOp load;
  int64_t blocks;
  RunSearch search;
  mlir::RewriterBase &rewriter;
  mlir::Location loc;
  /// How many runs the block copies, and the rows of each.
  int64_t count, rows;
  /// The only run, or those that lanes have found: each as a whole, or from before the view. None
  /// where the thread is one of several that are needed elsewhere, so that it finds a run before it
  /// copies it.
  llvm::SmallVector<Run> found;
  /// i1: whether no run that lanes have found ends early, so that a part of its rows is there.
  mlir::Value noneEarly;
};

} // namespace tessera

#endif // TESSERA_PASSES_HOP_BARRIERS_RUNCOPIES_H
