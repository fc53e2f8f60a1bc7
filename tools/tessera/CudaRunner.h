//===- CudaRunner.h - Runs kernels on a GPU -------------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_CUDARUNNER_H
#define TESSERA_TOOLS_TESSERA_CUDARUNNER_H

#include "tessera/Compiler.h"
#include "tools/tessera/DeviceRunner.h"
#include <memory>

namespace tessera {

/// Compiles the kernel of `source` that `options` name and makes a runner for it on the first CUDA
/// device. Returns null after an error, with its kind in `status`; a machine without a usable
/// driver or device counts as ToolchainError and is found before anything is compiled.
std::unique_ptr<DeviceRunner> createCudaRunner(const std::string &source,
                                               const std::string &fileName, CompileOptions options,
                                               const DiagnosticHandler &handler,
                                               CompileStatus &status);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_CUDARUNNER_H
