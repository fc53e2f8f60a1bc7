//===- Ptxas.h - Find and run NVIDIA's assembler --------------------------===//

#ifndef TESSERA_LIB_CODEGEN_PTXAS_H
#define TESSERA_LIB_CODEGEN_PTXAS_H

#include "lib/Codegen/Toolkit.h"

namespace tessera {

/// An installed ptxas that is new enough.
using Ptxas = InstalledTool;

/// Finds a ptxas of CUDA 12.3 or newer, as findToolkitProgram does; of wheels it looks into
/// nvidia-cuda-nvcc (CUDA 13) and nvidia-cuda-nvcc-cu12.
llvm::Expected<Ptxas> findPtxas(llvm::StringRef requested,
                                llvm::StringRef systemToolkit = "/usr/local/cuda");

/// The outcome of one run.
struct PtxasRun {
  int exitCode = 0;  ///< negative when ptxas was killed by a signal
  std::string log;   ///< its stdout and stderr
  std::string cubin; ///< the image; empty unless the exit code is 0
};

/// Assembles `ptx` with `-arch=sm_90a -v` and `arguments` through temporary files. Line tables go
/// into the cubin only if the arguments ask for them. An error means that ptxas did not run at all.
llvm::Expected<PtxasRun> runPtxas(const Ptxas &ptxas, llvm::StringRef ptx,
                                  llvm::ArrayRef<std::string> arguments);

} // namespace tessera

#endif // TESSERA_LIB_CODEGEN_PTXAS_H
