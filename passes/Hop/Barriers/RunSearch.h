//===- RunSearch.h - Where the runs lie in which rows come ------*- C++ -*-===//
//
// The part of hop-insert-mbarriers that writes where the runs of a load lie: for one thread, for
// the lanes of a warp, and for several iterations of a loop at once.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_HOP_BARRIERS_RUNSEARCH_H
#define TESSERA_PASSES_HOP_BARRIERS_RUNSEARCH_H

#include "dialects/Hop/Hop.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

namespace tessera {

/// Where a run lies in the view, how many rows of it are there, and its first row in the tile.
struct Run {
  llvm::SmallVector<mlir::Value> place;
  mlir::Value there, row;
};

/// The runs of a tile that lanes have found.
struct RunsInLanes {
  /// Along each dimension in which runs have other places: those of all lanes.
  llvm::SmallVector<mlir::Value> places;
  /// index: which lane has the first run of the tile.
  mlir::Value first;
  /// i1: whether no run of the tile ends early, so that a part of its rows is there.
  mlir::Value noneEarly;
};

/// Among how many blocks of a cluster the runs of a load are divided.
using BlocksOfLoad = llvm::function_ref<int64_t(hop::PipeLoadOp)>;

/// Writes where the runs of a load lie: all, or the part of one of several blocks that copy a part
/// each to all of them.
class RunSearch {
public:
  RunSearch(hop::PipeLoadOp load, int64_t blocks, mlir::RewriterBase &rewriter);

  /// Whether lanes find the runs of `load`, of which each of so many blocks copies a part.
  static bool areFoundInLanes(hop::PipeLoadOp load, int64_t blocks);
  static int64_t countRuns(hop::PipeLoadOp load, int64_t blocks);

  /// Run `number` of those of the block, by the captures of the load or by others.
  Run find(mlir::Value number) { return find(number, load.getCaptures()); }
  Run find(mlir::Value number, mlir::ValueRange captures);
  /// Run `number` with the places that lanes have found.
  Run take(const RunsInLanes &lanes, int64_t number);
  /// Finds a run in each lane.
  RunsInLanes findInLanes();
  /// Finds those of `iterations` iterations of `loop` from `begin` on, the runs of one behind those
  /// of the other. Also in which iterations runs end early: from `early.first` to `early.second`.
  llvm::SmallVector<mlir::Value> findAhead(mlir::scf::ForOp loop, mlir::Value begin,
                                           int64_t iterations,
                                           std::pair<mlir::Value, mlir::Value> &early);

  /// Where rows are not there, their copy is from before the view, where it finds 0.
  void chooseRow(mlir::Value &row, mlir::Value isThere, int64_t rows);
  mlir::Value constant(int64_t value);
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value a, mlir::Value b);

private:
  using Finder = llvm::function_ref<Run(mlir::Value)>;
  llvm::SmallVector<int64_t> findVarying();
  llvm::SmallVector<mlir::Value> findPlaces(int64_t lanes, Finder find);
  mlir::Value reduce(tile::ReduceKind kind, int64_t lanes,
                     llvm::function_ref<mlir::Value(mlir::Value)> ofLane);
  mlir::Value endsEarly(const Run &run);

  hop::PipeLoadOp load;
  mlir::RewriterBase &rewriter;
  mlir::Location loc;
  /// Number of the first run that the block copies, how many it copies, and the rows of each.
  mlir::Value first;
  int64_t count, rows;
};

/// Cuts loops of `role` whose loads lanes find into groups of as many iterations as a warp has
/// lanes for, and has a group's runs found before its first iteration. Returns those of each such
/// load.
llvm::DenseMap<mlir::Operation *, RunsInLanes>
groupIterations(hop::RoleOp role, BlocksOfLoad blocksOf, mlir::RewriterBase &rewriter);

} // namespace tessera

#endif // TESSERA_PASSES_HOP_BARRIERS_RUNSEARCH_H
