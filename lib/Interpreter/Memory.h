//===- Memory.h - The tensor behind a view, and who touched it ------------===//

#ifndef TESSERA_LIB_INTERPRETER_MEMORY_H
#define TESSERA_LIB_INTERPRETER_MEMORY_H

#include "lib/Interpreter/Interpreter.h"
#include <atomic>
#include <memory>

namespace tessera::interp {

/// The part of a tile's extent that lies inside a view: positions first..last-1 of the tile.
struct Clip {
  int64_t first, last;
};
/// `start` is any index; the tile has `size` >= 0 elements, the view `extent` >= 0.
Clip clip(int64_t start, int64_t size, int64_t extent);

/// Two grid points met at one element.
struct Conflict {
  int64_t linear; ///< index of the element in C order
  int64_t otherPoint;
  bool otherStored;
};

/// One view during a run. Storing is safe from several threads; a view that is loaded and stored
/// may only be used from one (`needsOneThread`).
class ViewMemory {
public:
  ViewMemory(HostTensor &tensor, ViewUse use);

  const HostTensor &getTensor() const { return tensor; }
  bool needsOneThread() const { return use.loaded && use.stored; }

  /// Copies the rows x columns tile at `indices` (one per dimension; the tile covers the innermost
  /// one or two) to `out`, which holds 0; elements outside the view stay as they are. The outer
  /// indices lie inside.
  std::optional<Conflict> load(int64_t point, llvm::ArrayRef<int64_t> indices, bool hasRows,
                               int64_t rows, int64_t columns, double *out);
  /// Copies a tile to the view; elements outside are dropped.
  std::optional<Conflict> store(int64_t point, llvm::ArrayRef<int64_t> indices, bool hasRows,
                                int64_t rows, int64_t columns, const double *in);
  /// Adds a tile to the view, each sum rounded to f32 if `rounds`; elements outside are dropped.
  void add(llvm::ArrayRef<int64_t> indices, bool hasRows, int64_t rows, int64_t columns,
           const double *in, bool rounds);

private:
  /// Calls `visit(offset, linear, tileIndex, count)` for each run of elements inside the view until
  /// it returns a conflict.
  template <typename Visitor>
  std::optional<Conflict> forEachRow(llvm::ArrayRef<int64_t> indices, bool hasRows, int64_t rows,
                                     int64_t columns, Visitor visit);

  HostTensor &tensor;
  ViewUse use;
  /// By place in the storage: the grid point that stored it or none; only for stored views.
  std::unique_ptr<std::atomic<int32_t>[]> writers;
  /// By place in the storage: the grid point that loaded it, none or several; only for views that
  /// are loaded and stored.
  std::vector<int32_t> readers;
};

} // namespace tessera::interp

#endif // TESSERA_LIB_INTERPRETER_MEMORY_H
