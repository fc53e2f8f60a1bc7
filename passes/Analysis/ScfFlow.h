//===- ScfFlow.h - Values that loops and conditionals hand on -------------===//
//
// Which values an scf.for, scf.if or scf.while makes from others without computing.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_SCFFLOW_H
#define TESSERA_PASSES_ANALYSIS_SCFFLOW_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace tessera {

/// One place at which an operation hands a value on: each of `to` is one of `from`.
struct Handover {
  mlir::Operation *op;                    ///< the loop or conditional
  llvm::SmallVector<mlir::Value, 2> from; ///< start and yielded value, or those of the branches
  llvm::SmallVector<mlir::Value, 2> to;   ///< the argument of a loop's body, then the result

  /// All of them: values that have one type and one place.
  llvm::SmallVector<mlir::Value, 4> values() const;
};

/// All that `op` hands on; nothing for other operations.
llvm::SmallVector<Handover> getHandovers(mlir::Operation *op);

/// What `value` is handed on from; nothing when it is computed, or an argument of something else.
std::optional<Handover> findHandoverTo(mlir::Value value);

/// What `use` hands its value on to; nothing when it computes with it or decides by it.
std::optional<Handover> findHandoverOf(mlir::OpOperand &use);

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_SCFFLOW_H
