//===- LaunchTimes.h - What launches of a kernel should take --------------===//
//
// The numbers by which a launch chooses among kernels (docs/bundle.md, "A choice"): how many
// iterations a tile takes is read from the kernel, what an iteration takes from measurements where
// the database has them, and otherwise from the model of the machine.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_COMPILER_LAUNCHTIMES_H
#define TESSERA_LIB_COMPILER_LAUNCHTIMES_H

#include "dialects/Tile/Tile.h"
#include "lib/Database/Database.h"
#include "lib/Runtime/LaunchTime.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <vector>

namespace tessera {

struct CostModel;

/// Blocks that a multiprocessor holds at a time; `registers` of a thread are 0 where nobody knows.
int64_t countBlocksPerMultiprocessor(int64_t threads, int64_t sharedMemory, int64_t registers);

/// A kernel's tiles as its source has them, and what it took where it was measured.
class LaunchTimes {
public:
  /// Fails with a diagnostic at a loop whose length depends on more than extents and the place of
  /// the tile.
  static mlir::FailureOr<LaunchTimes> of(tile::KernelOp kernel);

  /// Counts what tiles of the kernel load and store where that is their time: without dots, and at
  /// the ends of one of several launches, which leave states of parts. Fails as `of` does.
  mlir::LogicalResult countBytes(tile::KernelOp kernel, bool isOfSequence);

  /// Takes what is known of the kernel as it was compiled: its entry of the bundle. The card has so
  /// many multiprocessors, or with 0 as many as the model says.
  void setCompiled(const llvm::json::Object &kernel, int64_t multiprocessors,
                   mlir::MLIRContext *context);
  /// Takes the times that were fitted to all alternatives together.
  void take(const tuning::TileTimes &times);
  /// Fits the time of an iteration and of the ends to measurements: false, and nothing changed,
  /// where these are of less than two shapes that differ.
  bool fit(llvm::ArrayRef<const tuning::Entry *> entries);
  /// Takes the times of the model of the machine; `like` is a kernel that was measured, of which
  /// the model's errors are taken over, or null. What the source does not prefer counts as slower.
  void estimate(const LaunchTimes *like, bool isPreferred);
  /// Whether iterations are of tiles as large as those of another alternative. The grid of one of
  /// several launches has the parts of a tile beside them.
  bool hasTileOf(const LaunchTimes &other) const {
    return estimated == other.estimated &&
           (isOfSequence || other.isOfSequence || llvm::equal(grid, other.grid));
  }

  /// What a launch with these extents should take, in microseconds.
  double predict(const tuning::Extents &extents) const;
  /// The microseconds of a launch behind another one, beside its tiles.
  double findLaunchTime() const;
  /// The "model" of an alternative.
  llvm::json::Object describe() const;
  /// Its "grid" and "iterations".
  llvm::json::Object describeTiles() const;

private:
  std::vector<runtime::TimeTerm> terms;
  std::vector<std::string> dims;
  llvm::SmallVector<tile::GridDimAttr, 3> grid;

  void readRows(tile::KernelOp kernel);
  double findTimeOfBytes(int64_t bytes) const;

  /// The model of the machine.
  const CostModel *card = nullptr;
  runtime::TimeModel model = {};
  bool isMeasured = false;
  /// An iteration by the model of the machine, in microseconds; 0 for a kernel without dots, of
  /// which iterations are bytes.
  double estimated = 0;
  bool isOfSequence = false;
  /// What a tile loads and stores beside its iterations, where that counts.
  int64_t bytesOfEnds = 0;
  /// Rows of at most 128 bytes that an iteration loads of views whose rows have an extent.
  int64_t loadedRows = 0;
};

} // namespace tessera

#endif // TESSERA_LIB_COMPILER_LAUNCHTIMES_H
