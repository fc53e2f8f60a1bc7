//===- SplitKernel.h - Kernels that are made of a kernel ------------------===//
//
// Arguments and extents of the kernels that tile-split-reductions makes of one.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_TILE_SPLITKERNEL_H
#define TESSERA_PASSES_TILE_SPLITKERNEL_H

#include "dialects/Tile/Tile.h"
#include <string>

namespace tessera {

/// ceil(product of `factors` / `divisor`): names of dimensions and integers.
struct ExtentBound {
  llvm::SmallVector<mlir::Attribute> factors;
  int64_t divisor = 1;
  bool isExact = true; ///< whether it is the value, and not only no less
};

/// Extents that a sequence derives from those of a kernel.
class DimPlan {
public:
  explicit DimPlan(tile::KernelOp kernel);

  /// The extent `bound`: a number, a dimension that there is, or a new one whose name begins with
  /// `name`.
  mlir::Attribute derive(const ExtentBound &bound, llvm::StringRef name);
  /// What `value` is at most, and 1 where it may be less; nothing where no extent says so.
  std::optional<ExtentBound> bound(mlir::Value value);
  /// The dimensions that `derive` has made, as #tile.derived_dim, in their order.
  llvm::ArrayRef<mlir::Attribute> getDerived() const { return derived; }

private:
  std::optional<ExtentBound> boundQuotient(mlir::Value dividend, mlir::Value divisor, bool isUp);
  std::optional<ExtentBound> boundProduct(mlir::Value left, mlir::Value right);

  mlir::MLIRContext *context;
  llvm::SmallVector<std::string> names;
  llvm::SmallVector<mlir::Attribute> derived;
};

/// Adds an argument behind the others, under a name that none of them has.
mlir::BlockArgument addArgument(tile::KernelOp kernel, mlir::Type type, llvm::StringRef name,
                                mlir::Location loc);

/// Erases what nothing needs of a block: operations without effects on memory.
void eraseDead(mlir::Block &block);

/// Erases arguments that nothing uses and whose dimensions others have. Requirements on what is
/// gone then go too, or with `keepsRequirements` keep it.
void eraseUnusedArguments(tile::KernelOp kernel, bool keepsRequirements);

} // namespace tessera

#endif // TESSERA_PASSES_TILE_SPLITKERNEL_H
