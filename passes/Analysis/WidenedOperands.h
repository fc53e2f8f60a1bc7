//===- WidenedOperands.h - First operands that are extended from 8 bits ---===//
//
// Those who multiply take a tile of 8 bits from shared memory into registers, and extend it there
// to 16 bits, for dots that read it as their first operand. Columns of it come in pairs.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_WIDENEDOPERANDS_H
#define TESSERA_PASSES_ANALYSIS_WIDENEDOPERANDS_H

#include "dialects/Hop/Hop.h"
#include "dialects/Tile/ScheduleFields.h"
#include "dialects/Tile/Tile.h"
#include "llvm/ADT/SetVector.h"

namespace tessera {

/// The load of elements of 8 bits behind a first operand of dots that is extended in registers,
/// transposed or not; null for others. Nothing else reads the tile.
tile::LoadOpInterface widenedLoad(mlir::Value operand);

/// Whether the tile of `load` is such a one. Where its columns are rows of tiles that have theirs
/// in order it is none: then it goes through shared memory once more, as computed operands do.
bool isWidened(tile::LoadOpInterface load);
/// A load of which that is otherwise with the schedule `fields` than with the kernel's own, as more
/// or fewer warpgroups share its columns; null where none is.
tile::LoadOpInterface findWidenedOtherwise(tile::KernelOp kernel,
                                           const tile::ScheduleFields &fields);

/// What keeps such a tile out of registers, what would let it stay there, and where it is, if there
/// is a place.
struct WideningObstacle {
  llvm::StringRef reason, remedy;
  mlir::Operation *place = nullptr;
};

/// Why the first operand of `dot`, transposed and extended from 8 bits, goes through shared memory;
/// nothing where it does not.
std::optional<WideningObstacle> whyStaged(tile::DotOp dot);

/// The tiles that have the columns of such operands as rows, and the vectors that have a number for
/// each of these. Of a program of either dialect.
class PairedRows {
public:
  /// Those of what `role` reads transposed.
  explicit PairedRows(hop::RoleOp role);
  /// Those of `load`, if its tile were extended in registers, and of what goes with it.
  explicit PairedRows(tile::LoadOpInterface load);

  bool contains(mlir::Value tile) const { return tiles.contains(tile); }

  /// What needs one of the tiles with its rows in order; null where nothing does.
  mlir::Operation *findOrdered() const;

private:
  void close(llvm::function_ref<bool(mlir::Value)> belongs);

  llvm::SetVector<mlir::Value> tiles;
};

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_WIDENEDOPERANDS_H
