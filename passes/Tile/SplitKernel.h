//===- SplitKernel.h - Kernels that are made of a kernel ------------------===//
//
// Arguments and extents of the kernels that tile-split-reductions makes of one.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_TILE_SPLITKERNEL_H
#define TESSERA_PASSES_TILE_SPLITKERNEL_H

#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <string>

namespace tessera {
struct CostModel;

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

/// Arithmetic on indices, where `builder` stands.
struct IndexMath {
  mlir::OpBuilder &builder;
  mlir::Location loc;

  mlir::Value constant(int64_t value) const;
  /// A number or a dimension.
  mlir::Value dim(mlir::Attribute extent) const;
  /// How many grid points there are along the dimensions `dims` of the grid of `kernel`.
  llvm::SmallVector<mlir::Value> extents(tile::KernelOp kernel,
                                         llvm::ArrayRef<unsigned> dims) const;
  mlir::Value multiply(llvm::ArrayRef<mlir::Value> factors) const;
  /// The number of a grid point, the first index fastest. The last extent is not needed.
  mlir::Value number(llvm::ArrayRef<mlir::Value> indices,
                     llvm::ArrayRef<mlir::Value> extents) const;
  /// The indices that `number` numbers.
  llvm::SmallVector<mlir::Value> indices(mlir::Value number,
                                         llvm::ArrayRef<mlir::Value> extents) const;
  template <typename OpTy>
  mlir::Value make(mlir::Value left, mlir::Value right) const {
    return OpTy::create(builder, loc, left, right);
  }
  mlir::Value add(mlir::Value left, mlir::Value right) const {
    return make<mlir::arith::AddIOp>(left, right);
  }
  mlir::Value sub(mlir::Value left, mlir::Value right) const {
    return make<mlir::arith::SubIOp>(left, right);
  }
  mlir::Value mul(mlir::Value left, mlir::Value right) const {
    return make<mlir::arith::MulIOp>(left, right);
  }
  mlir::Value least(mlir::Value left, mlir::Value right) const {
    return make<mlir::arith::MinSIOp>(left, right);
  }
  mlir::Value most(mlir::Value left, mlir::Value right) const {
    return make<mlir::arith::MaxSIOp>(left, right);
  }
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value left,
                      mlir::Value right) const;
  mlir::Value select(mlir::Value condition, mlir::Value yes, mlir::Value no) const;
};

/// The split reduction of `kernel`, or null.
tile::SplitReduceOp findReduction(tile::KernelOp kernel);

/// Puts the first region in place of `reduction`, for the part from `first` to `past`, and gives
/// the state.
llvm::SmallVector<mlir::Value> inlineBody(tile::SplitReduceOp reduction, mlir::Value first,
                                          mlir::Value past);

/// Writes what merges the states of two neighbouring parts; gives that of both.
llvm::SmallVector<mlir::Value> mergeStates(mlir::OpBuilder &builder, tile::SplitReduceOp reduction,
                                           mlir::ValueRange left, mlir::ValueRange right);

/// Loads the state of a part.
using LoadPart = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value part)>;

/// Writes what merges the parts from `first` on, `number` of them, into `state`: all are loaded,
/// then merged in their order. Gives the state of all.
llvm::SmallVector<mlir::Value> mergeSome(const IndexMath &math, tile::SplitReduceOp reduction,
                                         LoadPart load, mlir::Value first, int64_t number,
                                         llvm::SmallVector<mlir::Value> state);

/// The same up to `past`, in a loop of `step` parts each.
llvm::SmallVector<mlir::Value> mergeLoop(const IndexMath &math, tile::SplitReduceOp reduction,
                                         LoadPart load, mlir::Value first, mlir::Value past,
                                         int64_t step, llvm::ArrayRef<mlir::Value> state);

/// The same, `atOnce` parts at a time and then one by one.
llvm::SmallVector<mlir::Value> mergeParts(const IndexMath &math, tile::SplitReduceOp reduction,
                                          LoadPart load, mlir::Value first, mlir::Value past,
                                          int64_t atOnce, llvm::SmallVector<mlir::Value> state);

/// How many states a grid point loads at once, of those that it has room for.
int64_t countAtOnce(tile::SplitReduceOp reduction, const CostModel &card);

/// Where the tile of a state lies: a view of dimensions `prefix` and those of the state.
tile::ViewType viewOfState(llvm::ArrayRef<mlir::Attribute> prefix, mlir::Type state);
/// Its place in that view, of indices `prefix`.
llvm::SmallVector<mlir::Value> placeOfState(const IndexMath &math,
                                            llvm::ArrayRef<mlir::Value> prefix, mlir::Type state);

/// Replaces `kernel` by `made`, whose names end with the suffixes, and a sequence that launches
/// these in their order. Arguments that `kernel` does not have are workspaces.
void replaceBySequence(tile::KernelOp kernel,
                       llvm::ArrayRef<std::pair<tile::KernelOp, llvm::StringRef>> made,
                       const DimPlan &plan, mlir::Location loc);

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
