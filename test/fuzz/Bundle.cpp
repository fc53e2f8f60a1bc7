//===- Bundle.cpp - Fuzz target: reading a bundle -------------------------===//

#include "lib/Runtime/Bundle.h"
#include "lib/Runtime/Launch.h"

using namespace tessera::runtime;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::Expected<BundleInfo> bundle = readBundle({reinterpret_cast<const char *>(data), size});
  if (!bundle) {
    llvm::consumeError(bundle.takeError());
    return 0;
  }
  // What is accepted can be launched without further checks of the description.
  for (const KernelInfo &kernel : bundle->kernels) {
    llvm::SmallVector<int64_t> dims(kernel.dims.size(), 100);
    llvm::consumeError(computeGrid(kernel, dims).takeError());
    ParameterBlock block(kernel);
  }
  return 0;
}
