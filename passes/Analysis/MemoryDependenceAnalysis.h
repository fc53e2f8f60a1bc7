//===- MemoryDependenceAnalysis.h - Which accesses of a grid point meet ---===//
//
// A dependence analysis of global memory: whether two accesses of one grid point may touch
// the same element, the second after the first. Views of different arguments are different
// memory, and no grid point touches what another one stores.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_MEMORYDEPENDENCEANALYSIS_H
#define TESSERA_PASSES_ANALYSIS_MEMORYDEPENDENCEANALYSIS_H

#include "dialects/Tile/Tile.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace tessera {

/// A load or a store of a box of a view, in either dialect.
struct MemoryAccess {
  /// That of `op`; nothing when it is no access.
  static std::optional<MemoryAccess> get(mlir::Operation *op);

  mlir::Operation *op;
  mlir::Value view;
  mlir::ValueRange indices;
  /// Elements along each dimension of the view, from the indices on.
  llvm::SmallVector<int64_t, 4> extents;
  /// What it loads or stores; null for a scalar.
  mlir::RankedTensorType tile;
  bool stores;
  /// Adds what it stores, in an order that is not specified.
  bool adds;
  /// The first dimension along which it may be anywhere, up to that of the rows of `tile`.
  std::optional<int64_t> gathered = std::nullopt;
};

/// An access and a later one of the same grid point, of which at least one stores.
struct AccessPair {
  const MemoryAccess &earlier, &later;
  /// The loop of which `later` is in a later iteration than `earlier`; null when they are in the
  /// same iteration of every loop around both.
  mlir::Operation *loop;
};

/// The accesses of the program of one grid point that touch views which it stores.
class MemoryDependenceAnalysis {
public:
  /// At most so many accesses of a view that is stored are looked at.
  static constexpr size_t kMostAccesses = 128;

  /// Of `program`, the body of a kernel with the grid indices and dimensions `grid`, or of a role
  /// of it that runs on `warpgroups` warpgroups, of which `warpgroup` is the index.
  MemoryDependenceAnalysis(mlir::Region &program, mlir::ValueRange gridIndices,
                           mlir::ArrayAttr grid, mlir::Value warpgroup = {},
                           int64_t warpgroups = 1);

  /// Refuses a program with more accesses of one view than are looked at.
  mlir::LogicalResult verify() const;

  /// Calls `visit` for each pair of accesses of one view, one a store, that run in this order, as
  /// often as the iterations of loops can be related in different ways. Additions need no order.
  void forEachPair(llvm::function_ref<void(const AccessPair &)> visit) const;

  /// Whether the pair may touch the same element, as far as index arithmetic tells: of one
  /// warpgroup, or `across` two different ones.
  bool mayMeet(const AccessPair &pair, bool across = false) const;

  /// Whether both cover the same box whenever the program comes to them.
  bool haveSamePlace(const AccessPair &pair) const;

private:
  void relate(const MemoryAccess &a, const MemoryAccess &b,
              llvm::function_ref<void(const AccessPair &)> visit) const;

  mlir::ValueRange gridIndices;
  mlir::ArrayAttr grid;
  mlir::Value warpgroup;
  int64_t warpgroups;
  llvm::SmallVector<MemoryAccess> accesses;
};

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_MEMORYDEPENDENCEANALYSIS_H
