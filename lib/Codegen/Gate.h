//===- Gate.h - Accept or refuse what ptxas made of a kernel --------------===//

#ifndef TESSERA_LIB_CODEGEN_GATE_H
#define TESSERA_LIB_CODEGEN_GATE_H

#include "lib/Codegen/PTXText.h"
#include "lib/Codegen/Ptxas.h"
#include "lib/Codegen/PtxasLog.h"
#include "mlir/IR/BuiltinOps.h"

namespace tessera {

enum class GateOutcome {
  Pass,
  Refused,      ///< a kernel would run slower than its schedule says
  NotAssembled, ///< there is no usable ptxas, or it rejected the PTX, or died
};

/// Judges the outcome of a ptxas run on the PTX of `module` with `arguments` beside its own.
/// Reports errors, warnings and remarks at the source line that ptxas' message leads to through
/// `ptx`, else at the kernel.
GateOutcome checkAssembly(const PtxasRun &run, const PtxasLog &log, const PTXText &ptx,
                          llvm::ArrayRef<std::string> arguments, mlir::ModuleOp module);

/// A module's machine code, judged.
struct Assembly {
  GateOutcome outcome = GateOutcome::NotAssembled;
  std::string cubin;   ///< empty unless ptxas succeeded
  std::string logText; ///< what ptxas printed
  PtxasLog log;
};

/// Finds ptxas (at `requestedPtxas` when that is not empty), runs it on `ptx`, the PTX of `module`,
/// and judges the outcome. Everything that goes wrong is reported as an error.
Assembly assemble(mlir::ModuleOp module, llvm::StringRef ptx, const PTXText &index,
                  llvm::StringRef requestedPtxas, llvm::ArrayRef<std::string> arguments);

} // namespace tessera

#endif // TESSERA_LIB_CODEGEN_GATE_H
