//===- Ptxas.h - Find and run NVIDIA's assembler --------------------------===//

#ifndef TESSERA_LIB_CODEGEN_PTXAS_H
#define TESSERA_LIB_CODEGEN_PTXAS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/VersionTuple.h"
#include <string>

namespace tessera {

/// An installed ptxas that is new enough.
struct Ptxas {
  std::string path;
  llvm::VersionTuple version; ///< of the CUDA toolkit, as 12.3
};

/// Parses what `ptxas --version` prints; an empty version when the text names none.
llvm::VersionTuple parsePtxasVersion(llvm::StringRef text);

/// Finds a ptxas of CUDA 12.3 or newer. A non-empty `requested` path is the only candidate;
/// otherwise the first that is new enough of: PATH, $CUDA_HOME/bin, $CUDA_PATH/bin,
/// bin of `systemToolkit`, and the wheels nvidia-cuda-nvcc (CUDA 13) and nvidia-cuda-nvcc-cu12 in
/// the site-packages of $VIRTUAL_ENV and of the python3 on PATH. The error lists what was found and
/// how to get one.
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
