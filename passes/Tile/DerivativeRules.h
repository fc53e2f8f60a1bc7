//===- DerivativeRules.h - Derivatives of operations on scalars -----------===//

#ifndef TESSERA_PASSES_TILE_DERIVATIVERULES_H
#define TESSERA_PASSES_TILE_DERIVATIVERULES_H

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace tessera {

/// Takes the share of an operand in the derivative of a loss: what it is multiplied with there.
using AddCotangent = llvm::function_ref<void(unsigned operand, mlir::Value cotangent)>;

/// Gives `add` the cotangent of each operand of `op`, an operation of arith or math with one result
/// whose cotangent is `cotangent`. Where a function has a corner, that of one side: of the first
/// operand for equal operands of a maximum or a minimum, of the right for an absolute value at 0.
/// Fails where there is no rule.
mlir::LogicalResult applyDerivativeRule(mlir::Operation *op, mlir::Value cotangent,
                                        mlir::ImplicitLocOpBuilder &builder, AddCotangent add);

/// The names of the operations that have a rule, for messages.
llvm::StringRef getDifferentiableOperations();

} // namespace tessera

#endif // TESSERA_PASSES_TILE_DERIVATIVERULES_H
