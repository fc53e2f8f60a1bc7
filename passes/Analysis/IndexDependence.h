//===- IndexDependence.h - What changes from tile to tile -----------------===//
//
// Which values and which control flow of a program may differ between two tiles of the
// grid that differ in one index.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_INDEXDEPENDENCE_H
#define TESSERA_PASSES_ANALYSIS_INDEXDEPENDENCE_H

#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseSet.h"

namespace tessera {

/// Forward data flow from a grid index, through scf.for and scf.if. What has no path from the
/// index is the same for all values of it. With `neighbours` only the values from a multiple of
/// that number to the next are told apart, as in a cluster, whose blocks have one quotient of the
/// index by a multiple of their number.
class IndexDependence {
public:
  explicit IndexDependence(mlir::Value index, std::optional<int64_t> neighbours = std::nullopt);

  bool contains(mlir::Value value) const { return dependent.contains(value); }

  /// Whether `value` follows from the index by arithmetic alone, which can be done for another one.
  bool isArithmetic(mlir::Value value) const;

  /// `value` for the index that `mapping` has in place of this one. It is arithmetic.
  mlir::Value recompute(mlir::Value value, mlir::IRMapping &mapping,
                        mlir::OpBuilder &builder) const;

  /// The loop or conditional around `op` that may run otherwise (another number of times, or not
  /// at all) for another value of the index; the outermost of several, null when there is none.
  mlir::Operation *getVaryingControl(mlir::Operation *op) const;

private:
  bool varies(mlir::Operation *control) const;
  bool isSameForNeighbours(mlir::OpOperand &use) const;
  void mark(mlir::Value value);
  void markAll(mlir::ValueRange values);
  void follow(mlir::OpOperand &use);

  mlir::Value index;
  std::optional<int64_t> neighbours;
  llvm::DenseSet<mlir::Value> dependent;
  llvm::SmallVector<mlir::Value> pending;
};

/// Why `load`, of either dialect, does not load the same tile for all values of the index; nothing
/// when it does. The control flow around it is another matter.
std::optional<std::string> whyPlaceVaries(const IndexDependence &dependence, mlir::Operation *load);

/// Whether `load` loads the same tile at all points of the grid of `kernel`. The control flow
/// around it is another matter.
bool isSameForAll(tile::KernelOp kernel, mlir::Operation *load);

/// Why loads in `control`, which depends on the index, do not run alike.
std::string explainControl(mlir::Operation *control);

/// Why `blocks` thread blocks cannot load the tile of `loads` in equal parts; nothing when they
/// can. `loads` are the loads that share the slots of one pipe, of either dialect.
std::optional<std::string> whyIndivisible(llvm::ArrayRef<mlir::Operation *> loads,
                                          mlir::RankedTensorType tile, int64_t blocks);

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_INDEXDEPENDENCE_H
