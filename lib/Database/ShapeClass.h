//===- ShapeClass.h - Classes of shapes that share a schedule -------------===//
//
// A compilation does not know the extents that a kernel will be launched with, and a schedule is
// not best for one shape only. Two properties of a launch decide most of what tuning can change:
// whether its tiles fill the multiprocessors, and how long the main loop of a tile is.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_DATABASE_SHAPECLASS_H
#define TESSERA_LIB_DATABASE_SHAPECLASS_H

#include "dialects/Tile/Tile.h"
#include "llvm/ADT/StringMap.h"
#include <string>

namespace tessera::tuning {

/// What a class is made of. Both are counted with the tile sizes that the source has by default,
/// so that the class of a shape does not depend on what tuning chooses.
struct ShapeMeasure {
  uint64_t tiles = 0;     ///< points of the grid
  int64_t iterations = 0; ///< of the longest loop with a dot, in the tile where it is longest
};

/// The class of a shape: "few" (not more tiles than `multiprocessors`) or "many", and "short"
/// (below 24 iterations), "medium" (below 96) or "long", as "many-long".
std::string getShapeClass(const ShapeMeasure &measure, unsigned multiprocessors);

/// The iterations from which on loops are of a longer class, each.
llvm::SmallVector<int64_t> getLengths();

/// Whether a class is of grids with no more tiles than multiprocessors.
bool hasFewTiles(llvm::StringRef shapeClass);

/// The class that a compilation without a shape is for: the one in which most time is spent.
inline constexpr llvm::StringLiteral defaultShapeClass = "many-long";

/// Every class, in the order few, many; short, medium, long.
llvm::SmallVector<std::string> getShapeClasses();

/// Success when `dims` has the extents of the named dimensions of `entry` and no others.
llvm::Error checkShape(tile::EntryOpInterface entry, const llvm::StringMap<int64_t> &dims);

/// Measures a launch of a kernel or a sequence with extents that `checkShape` accepts. The measure
/// of a sequence is that of the launch with the most iterations in all tiles, so that its kernels,
/// which share tile sizes, have one class. The error says what decides the length of a loop besides
/// extents.
llvm::Expected<ShapeMeasure> measureShape(tile::EntryOpInterface entry,
                                          const llvm::StringMap<int64_t> &dims);

} // namespace tessera::tuning

#endif // TESSERA_LIB_DATABASE_SHAPECLASS_H
