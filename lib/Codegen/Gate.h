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

/// An error that refuses a kernel.
struct Refusal {
  std::string kernel;        ///< empty where ptxas did not say of which it speaks
  unsigned spilledBytes = 0; ///< that a thread stores, where that is the reason
};

/// Judges the outcome of a ptxas run on the PTX of `module` with `arguments` beside its own.
/// Reports errors, warnings and remarks at the source line that ptxas' message leads to through
/// `ptx`, else at the kernel. `refusals` gets one for each error that refuses a kernel, in order.
GateOutcome checkAssembly(const PtxasRun &run, const PtxasLog &log, const PTXText &ptx,
                          llvm::ArrayRef<std::string> arguments, mlir::ModuleOp module,
                          std::vector<Refusal> &refusals);

/// A module's machine code, judged.
struct Assembly {
  GateOutcome outcome = GateOutcome::NotAssembled;
  std::vector<Refusal> refusals; ///< as of checkAssembly
  std::string cubin;             ///< empty unless ptxas succeeded
  std::string logText;           ///< what ptxas printed
  PtxasLog log;
};

/// Finds ptxas (at `requestedPtxas` when that is not empty), runs it on `ptx`, the PTX of `module`,
/// and judges the outcome. Everything that goes wrong is reported as an error.
Assembly assemble(mlir::ModuleOp module, llvm::StringRef ptx, const PTXText &index,
                  llvm::StringRef requestedPtxas, llvm::ArrayRef<std::string> arguments);

} // namespace tessera

#endif // TESSERA_LIB_CODEGEN_GATE_H
