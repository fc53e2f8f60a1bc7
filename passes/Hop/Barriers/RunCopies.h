//===- RunCopies.h - Copies of the runs in which rows come ------*- C++ -*-===//
//
// The part of hop-insert-mbarriers that writes a load of runs: where they lie, and a bulk copy for
// each.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_HOP_BARRIERS_RUNCOPIES_H
#define TESSERA_PASSES_HOP_BARRIERS_RUNCOPIES_H

#include "dialects/Hop/Hop.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"

namespace tessera {

/// The copies of a load of runs.
class RunCopies {
public:
  /// Finds where the runs lie: all, or the part of one of several blocks that copy a part each to
  /// all of them. Several are found by the lanes of an elected thread, one each.
  RunCopies(hop::PipeLoadOp load, int64_t blocks, mlir::RewriterBase &rewriter);

  /// Whether lanes find the runs of `load`, of which each of so many blocks copies a part.
  static bool areFoundInLanes(hop::PipeLoadOp load, int64_t blocks);

  /// Starts a copy of each run to its rows of `slot`, of which the mbarrier `index` of `full` is
  /// told.
  void start(mlir::Value slot, mlir::Value full, mlir::Value index);

private:
  /// Where copies go, and who is told.
  struct Target {
    mlir::Value slot, full, index;
  };
  /// Where a run lies in the view, how many rows of it are there, and its first row in the tile.
  struct Run {
    mlir::SmallVector<mlir::Value> place;
    mlir::Value there, row;
  };

  mlir::Value constant(int64_t value);
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value a, mlir::Value b);
  Run find(mlir::Value number);
  void findInLanes();
  void forEachRun(llvm::function_ref<void(const Run &)> copy);
  void chooseRow(mlir::Value &row, mlir::Value isThere, int64_t rows);
  void copyRows(const Run &run, int64_t rows, const Target &target);
  void copyRun(const Run &run, const Target &target);

  hop::PipeLoadOp load;
  int64_t blocks;
  mlir::RewriterBase &rewriter;
  mlir::Location loc;
  /// Number of the first run that this block copies, and how many it copies.
  mlir::Value first;
  int64_t count, rows;
  /// The only run, or those that lanes have found: each as a whole, or from before the view. None
  /// where the thread is one of several that are needed elsewhere, so that it finds a run before it
  /// copies it.
  mlir::SmallVector<Run> found;
  /// i32: 1 if any of the runs that lanes find ends early, so that some of its rows are there.
  mlir::Value endsEarly;
};

} // namespace tessera

#endif // TESSERA_PASSES_HOP_BARRIERS_RUNCOPIES_H
