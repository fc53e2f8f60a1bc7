//===- EmitPTX.h - LLVM dialect to PTX ------------------------------------===//
//
// Translates a module of the LLVM and NVVM dialects to PTX for sm_90a, in
// process through LLVM's NVPTX backend.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_EMITPTX_H
#define TESSERA_LIB_CODEGEN_EMITPTX_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"
#include "mlir/Support/Timing.h"
#include <string>

namespace mlir {
class DialectRegistry;
class OpPassManager;
} // namespace mlir

namespace tessera {

/// The machine every stage aims at, as PTX and ptxas spell it.
inline constexpr const char *targetName = "sm_90a";

struct EmitPTXOptions {
  /// Print `.loc` directives, which tie PTX lines to source lines. The machine code does not
  /// change.
  bool lineInfo = true;
  /// Receives the LLVM IR as optimised, when not null.
  std::string *llvmIR = nullptr;
};

/// Registers the LLVM and NVVM dialects with what their translation to LLVM IR needs.
void registerCodegenDialects(mlir::DialectRegistry &registry);

/// Adds the passes that bring LLVM and NVVM dialect code into the form that `emitPTX` translates.
void buildEmissionPipeline(mlir::OpPassManager &pm, bool lineInfo);

/// Translates `module` to PTX text. Everything in it must be of the LLVM and NVVM dialects, and
/// `buildEmissionPipeline` must have run. Reports what LLVM refuses as errors at the module's
/// location or, where LLVM names one, at the line of the source.
mlir::FailureOr<std::string> emitPTX(mlir::ModuleOp module, const EmitPTXOptions &options,
                                     mlir::TimingScope &timing);

} // namespace tessera

#endif // TESSERA_LIB_CODEGEN_EMITPTX_H
