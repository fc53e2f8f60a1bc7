//===- Helpers.h - Roles beside the producer and the consumers ------------===//
//
// What a schedule gives to roles of their own: what each does, on how many warps, with which
// registers, and what forbids it. The search and tile-warp-specialize ask the same list.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SCHEDULE_HELPERS_H
#define TESSERA_PASSES_SCHEDULE_HELPERS_H

#include "dialects/Tile/ScheduleFields.h"
#include "passes/Analysis/ReducerSumAnalysis.h"

namespace tessera {

/// What a role does: it loads for the others, or helps, or computes all else.
enum class RoleTask { Load, Store, FindBounds, Sum, Transpose, Convert, Compute };

/// A role that may be beside a producer and consumers.
struct Helper {
  RoleTask task;
  llvm::StringLiteral name;
  bool isApart = false; ///< where the producer has all warps of its warpgroup

  /// Its warps: nothing for one thread, which has no tiles in registers.
  std::optional<int64_t> getWarps(const tile::ScheduleFields &fields) const;
  /// Whether it has a warpgroup of its own; others have warps of the producer's.
  bool hasWarpgroup(const tile::ScheduleFields &fields) const;
};

/// All that there are, in the order of their roles, beside a producer that gathers or not.
llvm::ArrayRef<Helper> getHelpers(bool gathers);

/// What of a kernel helpers can do, and what they cannot be beside.
struct HelperWork {
  explicit HelperWork(tile::KernelOp kernel);

  llvm::SmallVector<ReducerSum> sums;
  bool areSumsBulk = false;   ///< bulk copies can add them all
  bool transposes = false;    ///< dots read loaded tiles of 8 bits along the other dimension
  bool converts = false;      ///< dots read loaded tiles that are converted on their way
  unsigned rowVectors = 0;    ///< the most vectors of rows that such a tile is made with
  bool convertsWords = false; ///< and have elements of 32 bits
  bool computes = false;      ///< or are computed with, not extended alone
  bool gathers = false;       ///< dots read tiles of gathered rows
  unsigned runs = 0;          ///< tiles whose rows come in runs
  bool computesB = false;     ///< consumers compute second operands of dots
  /// What reads a tile as it is loaded that a transposer would hand on; null for nothing.
  mlir::Operation *readsAsLoaded = nullptr;

  /// Whether `fields` give work of the kernel to such a helper.
  bool isGiven(RoleTask task, const tile::ScheduleFields &fields) const;
  /// The helpers with tiles in registers, or a warpgroup, that `fields` give work to.
  llvm::SmallVector<const Helper *> list(const tile::ScheduleFields &fields) const;
  /// What a thread of each of them needs in registers, of which the one that needs the most
  /// decides.
  int64_t registers(const tile::ScheduleFields &fields) const;
  /// How many of them have a warpgroup.
  int64_t countWarpgroups(const tile::ScheduleFields &fields) const;
  /// Why the roles that `fields` ask for cannot run the kernel, which speculates or not, and what
  /// would work.
  std::optional<std::string> whyNot(const tile::ScheduleFields &fields, bool speculates) const;

private:
  std::optional<std::string> whyNotPlaced(const tile::ScheduleFields &fields,
                                          bool speculates) const;
  std::optional<std::string> whyNotTransposed(const tile::ScheduleFields &fields) const;
  std::optional<std::string> whyNotGathered(const tile::ScheduleFields &fields) const;
};

} // namespace tessera

#endif // TESSERA_PASSES_SCHEDULE_HELPERS_H
