//===- Alternatives.h - Kernels among which a launch chooses --------------===//

#ifndef TESSERA_LIB_COMPILER_ALTERNATIVES_H
#define TESSERA_LIB_COMPILER_ALTERNATIVES_H

#include "lib/Compiler/LaunchTimes.h"
#include "lib/Compiler/Tuned.h"

namespace tessera {

/// Gives the parameters of a source their values with definitions, or fails with a diagnostic.
using ReadParameters = llvm::function_ref<ParameterResult(llvm::ArrayRef<source::Define>)>;

/// Most combinations of alternatives that a source may have.
constexpr size_t maxAlternatives = 64;

/// What makes each further alternative of a source: values of the parameters that have alternatives
/// and are not among `given`, in every combination. Those of a parameter are read with the values
/// that the alternative has for the parameters before it. A parameter whose only one is its default
/// is as one without. Fails with a diagnostic where there are too many.
mlir::FailureOr<std::vector<std::vector<source::Define>>>
listAlternatives(llvm::ArrayRef<source::Define> given, ReadParameters read,
                 mlir::MLIRContext &context);

/// The forms of one kernel or sequence as one source of several, and the choice among them.
class Alternatives {
public:
  /// `varied` are the parameters in whose values alternatives differ.
  explicit Alternatives(llvm::ArrayRef<std::string> varied) : varied(varied) {}

  /// Adds a form of the kernel, which was read with values of its own, and what the database has
  /// for it; nothing where an earlier one has the same values. Fails with a diagnostic where it is
  /// no single kernel or sequence, or one that a launch cannot choose, as it takes other arguments.
  mlir::LogicalResult add(mlir::OwningOpRef<mlir::ModuleOp> form, TunedForm tuned);

  size_t size() const { return alternatives.size(); }
  /// Puts them all into one module, kernels with names of their own, in place of what `form` and
  /// `tuned` are. A single one keeps its name, and is nothing to choose among.
  void merge(mlir::OwningOpRef<mlir::ModuleOp> &form, TunedForm &tuned);

  /// How many kernels all of them have.
  size_t countKernels() const;

  /// The entry of a bundle's "choices". `kernels` and `sequences` are its kernels and sequences; of
  /// `tuned`, those that have an entry still were compiled as they were measured.
  mlir::FailureOr<llvm::json::Object> describe(const llvm::json::Array &kernels,
                                               const llvm::json::Array &sequences,
                                               const TunedForm &tuned) const;

private:
  struct Alternative {
    mlir::OwningOpRef<mlir::ModuleOp> form;
    TunedForm tuned;
    mlir::DictionaryAttr parameters;
    /// Of each launch its kernel, and of a kernel itself.
    llvm::SmallVector<std::pair<std::string, LaunchTimes>, 2> launches;
    bool isSequence;
    std::string entry; ///< its name in the source
    std::string name;  ///< in the bundle

    tile::EntryOpInterface getEntry() const;
  };

  std::string printValues(const Alternative &alternative) const;
  mlir::LogicalResult checkArguments(const Alternative &added) const;
  std::string rename(const Alternative &alternative, llvm::StringRef kernel) const;
  void putInto(mlir::ModuleOp to, const Alternative &alternative, mlir::ModuleOp from,
               bool asRequested) const;
  std::vector<LaunchTimes> findTimes(const llvm::json::Array &kernels,
                                     const TunedForm &tuned) const;
  bool differs(const Alternative &a, const Alternative &b, llvm::StringRef parameter) const;
  void nameAll();

  std::vector<std::string> varied;
  std::string entry; ///< the name of the first one in the source
  std::vector<Alternative> alternatives;
};

} // namespace tessera

#endif // TESSERA_LIB_COMPILER_ALTERNATIVES_H
