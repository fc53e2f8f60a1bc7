//===- IndexFunctions.h - What is computed of an index alone --------------===//
//
// Index tiles have one number that changes by a constant from each row and from each column to the
// next, as the distance of query and key. What is computed of such a number alone has few different
// values in a tile.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_INDEXFUNCTIONS_H
#define TESSERA_PASSES_ANALYSIS_INDEXFUNCTIONS_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace tessera {

/// The tiles of which `op` makes each element of its result by those in the same place, or loads
/// it from where they say; nothing for other operations, and for loads unless `loads`.
std::optional<llvm::SmallVector<mlir::Value>> findElementOperands(mlir::Operation *op, bool loads);

/// The index tile, of both rows and columns, of which each element of `tile` is a function by
/// elementwise operations, with `loads` by loads too. Their other operands are uniform. Null where
/// there is none.
mlir::Value findIndexOf(mlir::Value tile, bool loads = false);

/// The operations that make `tile` of its index, each behind those that it needs, loads among them.
llvm::SmallVector<mlir::Operation *> operationsOn(mlir::Value index, mlir::Value tile);

/// Whether `op` takes the unit of special functions for each element.
bool isSpecialFunction(mlir::Operation *op);

/// Whether the author says that the machine's approximation of `op` will do, by `afn`.
bool mayBeApproximate(mlir::Operation *op);

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_INDEXFUNCTIONS_H
