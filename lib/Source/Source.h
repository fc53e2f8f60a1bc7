//===- Source.h - Reading .tile sources -----------------------------------===//
//
// A `.tile` source is the text of MLIR with the tile dialect. `$import "file"` stands at its top,
// and behind it `param` declarations; `$NAME` and `$(expression)` may stand anywhere, and lines may
// be under `$if expression`, `$elif expression`, `$else` and `$end`, or begin with
// `$if expression:` and `$else:`. Reading binds the parameters and gives a plain MLIR module whose
// operations and diagnostics carry the positions of the source as it was written.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOURCE_SOURCE_H
#define TESSERA_LIB_SOURCE_SOURCE_H

#include "lib/Source/Expansion.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "tessera/Compiler.h"

namespace tessera {

/// Registers the dialects that a source may use.
void registerSourceDialects(mlir::DialectRegistry &registry);

mlir::Location toLocation(const source::Place &place, mlir::MLIRContext &context);

/// The place of an offset of the whole; of one in a copy with the import of this.
mlir::Location locate(const source::Files &files, size_t offset, mlir::MLIRContext &context);

/// What reading the declarations of a source gave.
struct ParameterResult {
  /// Success, UsageError (a definition is wrong) or SourceError (the source is).
  CompileStatus status = CompileStatus::Success;
  /// The source with what it imports, and its rules; the table refers to them.
  std::unique_ptr<source::Files> files = std::make_unique<source::Files>();
  std::unique_ptr<source::RuleBook> rules = std::make_unique<source::RuleBook>();
  /// The source's declarations with their values.
  source::ParameterTable table;
};

/// Reads the declarations of `text` and of what it imports and binds them, with the values of
/// `defines` in place of defaults. Errors go to the diagnostics of `context`, at positions in
/// `fileName` or, for a given value, at "-D NAME=VALUE" with line 0.
ParameterResult readParameters(llvm::StringRef text, llvm::StringRef fileName,
                               llvm::ArrayRef<source::Define> defines, mlir::MLIRContext &context,
                               const ImportOptions &imports = {});

/// Where the value of a parameter, or fields of the schedule of a kernel, come from.
struct Choice {
  std::string kernel; ///< empty for a parameter
  std::string name, value;
  std::string origin; ///< "given", "default" or the place of a rule
  /// The place of the rule, if one chose.
  std::string file;
  unsigned line = 0;
  /// Of a rule, whether a user named its file, and how many conditions it has.
  bool isUsers = false;
  size_t conditions = 0;
  /// Of a parameter, whether rules choose it where it is not given.
  bool isFree = false;
};

/// What reading a source gave.
struct ReadResult {
  CompileStatus status = CompileStatus::Success;
  /// The verified module; null unless `status` is Success.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// The files of the source, itself as the last.
  std::unique_ptr<source::Files> files;
  /// Of all parameters, and of the schedules that rules choose.
  std::vector<Choice> choices;
  /// What parameters take instead, in this order, where a kernel lacks registers or shared memory.
  std::vector<std::vector<source::Define>> instead;
};

/// What becomes of tile.print and tile.assert: the interpreter keeps them, the machine has none.
enum class DebugOps { Drop, Keep };

/// Reads `text` as readParameters does, replaces substitutions, parses and verifies the module,
/// inlines its functions, gives kernels the schedules that rules choose and records the parameters
/// in its attribute "tile.parameters", as i64, bool, type and string attributes. Values keep their
/// names, see dialects/Tile/ValueNames.h. `context` must know the dialects of
/// registerSourceDialects.
ReadResult readSource(llvm::StringRef text, llvm::StringRef fileName,
                      llvm::ArrayRef<source::Define> defines, mlir::MLIRContext &context,
                      const ImportOptions &imports = {}, DebugOps debugOps = DebugOps::Drop);

/// The same before functions are inlined, and without what kernels get by it.
ReadResult readFunctions(llvm::StringRef text, llvm::StringRef fileName,
                         llvm::ArrayRef<source::Define> defines, mlir::MLIRContext &context,
                         const ImportOptions &imports = {});

} // namespace tessera

#endif // TESSERA_LIB_SOURCE_SOURCE_H
