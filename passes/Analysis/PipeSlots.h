//===- PipeSlots.h - Slots of pipes that passes make ----------------------===//
//
// Pipes that no load of the source fills, and lists in shared memory: the passes that make them and
// the model that counts their bytes agree here.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_PIPESLOTS_H
#define TESSERA_PASSES_ANALYSIS_PIPESLOTS_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace tessera {

/// Grid points that a thread block runs before it comes back to those whose speculation failed: the
/// length of the list that it keeps of them in shared memory.
constexpr int64_t kRetryTiles = 512;

/// Slots of the pipe by which the roles of a persistent kernel get the numbers of tiles that the
/// launch's counter gives out: one that is read, one that is filled.
constexpr int64_t slotsOfNumbers = 2;

/// Slots of the pipes of a role that makes sums (placement = apart): one that is read, one that is
/// filled.
constexpr int64_t slotsOfSums = 2;
/// Where two blocks exchange these operands: another slot takes one of what is loaded, and gains
/// nothing (docs/lab/backward.md).
constexpr int64_t slotsOfExchanged = 1;

/// Slots of the pipe in which a role that makes sums hands parts of them to a writer: it fills one
/// while a copy reads the other.
constexpr int64_t slotsOfSumParts = 2;
/// Slots of the pipe in which a writer hands tickets to the thread that passes them on: number and
/// value of one, and of the next.
constexpr int64_t slotsOfPasses = 4;
/// And of those between consumers of different programs (placement = divided).
constexpr int64_t slotsOfCrossings = 2;
/// Slots of the pipes of a role that transposes (transpose), likewise.
constexpr int64_t slotsOfTransposed = 2;
/// And of those of a role that converts operands.
constexpr int64_t mostSlotsOfConverted = 2;

/// Slots, for each 32 bits of the bounds of a grid point, of the pipe in which the role that finds
/// them hands them to the others: those of one grid point are read, those of the next filled in.
constexpr int64_t slotsOfBounds = 2;

/// The attribute of a kernel that says up to how many bytes a tile goes with a larger one that is
/// loaded beside it: what tile-choose-schedule decides, and hop-join-pipes does.
constexpr llvm::StringLiteral kSmallTileAttr = "tessera.small_tile";

/// The attribute of a kernel that speculates which says how it asks probes, as tile-choose-schedule
/// knows it of the card and hop-retry needs it: the numbers of Probes in their order.
constexpr llvm::StringLiteral kProbesAttr = "tessera.probes";

/// The probes of a launch.
struct Probes {
  int64_t count;      ///< of thread blocks or clusters
  int64_t forFailure; ///< of which one in so many that fails has the fast program given up
  int64_t leastTiles; ///< a launch has them if it has so many tiles for each thread block,
  int64_t leastSteps; ///< and so many steps of loops
  int64_t looks;      ///< so often a block asks for the verdict
};

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_PIPESLOTS_H
