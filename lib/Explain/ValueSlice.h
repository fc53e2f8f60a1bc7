//===- ValueSlice.h - What some values of a kernel are computed from ------===//

#ifndef TESSERA_LIB_EXPLAIN_VALUESLICE_H
#define TESSERA_LIB_EXPLAIN_VALUESLICE_H

#include "lib/Interpreter/Engine.h"
#include "llvm/ADT/SetVector.h"

namespace tessera::explain {

/// The operations that values of a kernel are computed from, which the interpreter can run by
/// themselves. A loop around them is in its first iteration.
class ValueSlice {
public:
  /// `isKnown` says whether an argument of the kernel has a value.
  ValueSlice(tile::KernelOp kernel, llvm::function_ref<bool(unsigned argument)> isKnown)
      : kernel(kernel), isKnown(isKnown) {}

  /// Takes a value as given: who runs the slice sets it.
  void setGiven(mlir::Value value) { seen.insert(value); }
  /// Adds what a value is computed from; false when some of it is not known.
  bool add(mlir::Value value);
  /// What is not known, as "it reads the elements of 'x' ...".
  const std::string &getProblem() const { return problem; }

  /// Whether an operation of this kind runs.
  template <typename OpT>
  bool has() const {
    return llvm::any_of(operations, [](mlir::Operation *op) { return llvm::isa<OpT>(op); });
  }
  /// The grid dimensions that the values depend on.
  const llvm::SetVector<unsigned> &getGridDims() const { return gridDims; }
  /// How many steps there are: those that are added later can run by themselves.
  size_t size() const { return steps.size(); }
  /// Runs the steps from number `first` on, up to `past`.
  llvm::LogicalResult run(interp::Frame &frame, size_t first, size_t past) const;

private:
  /// An operation that runs, or a loop that begins: its index gets the lower bound.
  struct Step {
    mlir::Operation *op;
    bool begins;
  };
  bool addArgument(mlir::BlockArgument argument);
  bool addOperation(mlir::Operation *op);
  bool refuse(const llvm::Twine &why) {
    problem = why.str();
    return false;
  }

  tile::KernelOp kernel;
  llvm::function_ref<bool(unsigned)> isKnown;
  llvm::DenseSet<mlir::Value> seen;
  llvm::DenseSet<mlir::Operation *> operations;
  std::vector<Step> steps;
  llvm::SetVector<unsigned> gridDims;
  std::string problem;
};

} // namespace tessera::explain

#endif // TESSERA_LIB_EXPLAIN_VALUESLICE_H
