//===- FutureValues.h - Values of later iterations ---------------------------===//
//
// What index arithmetic in a loop gives some iterations on, for loads that are started ahead.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_HOP_FUTUREVALUES_H
#define TESSERA_PASSES_HOP_FUTUREVALUES_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

namespace tessera {

/// Writes values of a loop body as they will be some iterations on.
class FutureValues {
public:
  /// Iteration 0 is that of `induction`, in which the loop's arguments have the values `arguments`.
  FutureValues(mlir::scf::ForOp loop, mlir::OpBuilder &builder, mlir::Value induction,
               mlir::ValueRange arguments)
      : loop(loop), builder(builder), induction(induction), arguments(arguments) {}

  /// `value` in iteration `ahead`; null when it takes more than index arithmetic.
  mlir::Value get(mlir::Value value, int64_t ahead);
  mlir::Value inductionAt(int64_t ahead);
  /// Whether the loop runs iteration `ahead`, or one that ends at `end`.
  mlir::Value isRun(int64_t ahead, mlir::Value end = {});

private:
  mlir::Value make(mlir::Value value, int64_t ahead);

  mlir::scf::ForOp loop;
  mlir::OpBuilder &builder;
  mlir::Value induction;
  llvm::SmallVector<mlir::Value> arguments;
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, mlir::Value> made;
};

} // namespace tessera

#endif // TESSERA_PASSES_HOP_FUTUREVALUES_H
