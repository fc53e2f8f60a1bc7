//===- Ptx.cpp - Fuzz target: the simulator on PTX text -------------------===//

#include "lib/Simulator/Simulator.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>

using namespace tessera::sim;

/// Memory and tensor maps for whatever parameters a kernel declares.
static std::vector<uint8_t> makeParameters(const PtxKernel &kernel, GlobalMemory &memory) {
  std::vector<uint8_t> params(kernel.paramBytes);
  uint64_t buffer = llvm::cantFail(memory.allocate(1 << 16, "buffer"));
  TensorMapDesc desc;
  desc.globalAddress = buffer;
  desc.dims = {64, 128};
  desc.strides = {128};
  desc.box = {64, 64};
  desc.swizzle = 3;
  std::array<uint8_t, 128> map = llvm::cantFail(encodeTensorMap(desc));
  for (const ParamInfo &param : kernel.params) {
    uint64_t value = param.size == 8 ? buffer : 100;
    if (param.size == map.size())
      std::memcpy(&params[param.offset], map.data(), map.size());
    else
      std::memcpy(&params[param.offset], &value, std::min<uint64_t>(param.size, sizeof(value)));
  }
  return params;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  llvm::Expected<Module> module = parseModule(text);
  if (!module) {
    llvm::consumeError(module.takeError());
    return 0;
  }
  for (const PtxKernel &kernel : module->kernels()) {
    GlobalMemory memory;
    Launch launch;
    launch.kernel = kernel.name;
    launch.memory = &memory;
    launch.block = kernel.reqntid.x ? kernel.reqntid : Dim3{128, 1, 1};
    launch.grid = kernel.reqCluster.x ? kernel.reqCluster : Dim3{2, 1, 1};
    launch.dynamicSharedBytes = 1 << 16;
    launch.params = makeParameters(kernel, memory);
    Options options;
    options.seed = size; // of events
    options.maxDiagnostics = 5;
    options.maxWarpInstructions = 1500;
    llvm::Expected<Report> report = run(*module, launch, options);
    if (report)
      report->print(llvm::nulls());
    else
      llvm::consumeError(report.takeError());
  }
  return 0;
}
