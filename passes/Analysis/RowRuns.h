//===- RowRuns.h - In what runs the numbers of rows follow each other -----===//
//
// Numbers that name rows are computed of the rows' own numbers, by arithmetic and tables. So it
// follows from the program alone that, for example, the rows of a page lie one behind the other.
// "No" is always a possible answer.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_ROWRUNS_H
#define TESSERA_PASSES_ANALYSIS_ROWRUNS_H

#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Analysis/IntegerRanges.h"

namespace tessera {

/// Why rows come in no runs, and the operation that is the cause.
struct RunRefusal {
  mlir::Operation *op;
  mlir::StringRef reason;
};

/// The runs of so many rows of a tile that a gather loads.
class RowRuns {
public:
  /// What the elements of a tile of rank 1 are in each run.
  enum class Kind {
    Same,      ///< one number, or one truth
    Following, ///< each is one more than the one before
    Leading,   ///< true in the first rows, as many as there may be, and false in the others
  };

  /// Numbers along a dimension: those of `tile` where `conditions` hold, which are Same or Leading,
  /// and elsewhere one that no row has.
  struct Numbers {
    mlir::Value tile;
    llvm::SmallVector<mlir::Value> conditions;
  };

  explicit RowRuns(int64_t run) : run(run) {}

  /// The numbers of a gather or a scatter, where its rows come in such runs.
  template <typename AccessOp>
  std::optional<llvm::SmallVector<Numbers>> find(AccessOp access);
  /// What kept the last one from it.
  RunRefusal getRefusal() const { return refusal; }

  std::optional<Kind> kindOf(mlir::Value tile);

private:
  std::optional<Kind> compute(mlir::Operation *op);
  std::optional<Kind> ofArithmetic(mlir::Operation *op);
  std::optional<Kind> ofComparison(mlir::arith::CmpIOp op);
  std::optional<Kind> ofWidened(mlir::arith::ExtSIOp op);
  bool isNarrow(mlir::Value tile);
  bool areSame(mlir::ValueRange tiles);
  bool startsAtMultiple(mlir::Value tile);
  bool isMultiple(mlir::Value tile);
  std::optional<Kind> refuse(mlir::Operation *op, mlir::StringRef reason);

  int64_t run;
  IntegerRanges ranges;
  RunRefusal refusal = {nullptr, ""};
  llvm::DenseMap<mlir::Value, std::optional<Kind>> kinds;
};

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_ROWRUNS_H
