//===- Padding.h - Elements of tiles that lie outside of a view -----------===//
//
// A load gives 0 where its tile reaches past the end of the view. What is computed of these
// elements is followed along each axis of the tiles of a kernel: which elements there are, whether
// all are one number, and which operation made another one of 0.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_PADDING_H
#define TESSERA_PASSES_ANALYSIS_PADDING_H

#include "dialects/Tile/Tile.h"
#include "llvm/ADT/DenseMap.h"
#include <array>

namespace tessera {

/// The elements of a tile that lie outside of a view along one axis.
struct Padding {
  mlir::Operation *load = nullptr; ///< which they are from; null where there are none
  mlir::Value view;
  mlir::Attribute extent; ///< that the view has there: an integer, or a name
  int64_t tile = 0;       ///< the extent of what is loaded
  /// What all of them are, or would be; null where that is not known.
  mlir::Attribute value;
  /// What made another number of 0; null where none did.
  mlir::Operation *change = nullptr;
  /// There are none, as a load has an element of its view at each place. So a zero that is added
  /// to one of these is no element any more.
  bool isInside = false;

  /// There are elements, and all of them are 0.
  bool isZero() const;
};

/// Where the tiles of a kernel have such elements. Those that a select or a product with a mask by
/// place may hide are no longer among them.
class PaddingAnalysis {
public:
  explicit PaddingAnalysis(tile::KernelOp kernel);

  /// Those of `tile` along `axis`.
  Padding get(mlir::Value tile, int64_t axis) const;

private:
  using Axes = std::array<Padding, 2>;

  Axes visit(mlir::Operation *op, mlir::Value result);
  Axes visitLoad(tile::LoadOp load);
  Axes visitDot(tile::DotOp dot);
  Axes visitReduced(mlir::Value source, int64_t axis, tile::ReduceKind kind);
  Axes visitScan(tile::ScanOp scan);
  Padding visitElementwise(mlir::Operation *op, int64_t axis);
  Padding join(mlir::ValueRange values, int64_t axis) const;
  bool mayReachOutside(mlir::Value start, int64_t tile, mlir::Attribute extent);
  bool add(mlir::Value value, const Axes &axes);

  tile::KernelOp kernel;
  llvm::DenseMap<mlir::Value, Axes> states;
};

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_PADDING_H
