//===- Arithmetic.h - Operations that the machine has no code for ---------===//

#ifndef TESSERA_PASSES_SCHEDULE_ARITHMETIC_H
#define TESSERA_PASSES_SCHEDULE_ARITHMETIC_H

#include "mlir/IR/Operation.h"

namespace tessera {

/// Refuses an operation of arith or math that no schedule makes machine code of, and says what to
/// write instead: one that is missing, or one on a tile of numbers that are converted only.
llvm::LogicalResult checkArithmetic(mlir::Operation *op);

/// What to write in place of an operation that is missing, by its name; empty for other names.
llvm::StringRef findReplacement(llvm::StringRef name);

} // namespace tessera

#endif // TESSERA_PASSES_SCHEDULE_ARITHMETIC_H
