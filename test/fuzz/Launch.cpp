//===- Launch.cpp - Fuzz target: the simulator's launch file --------------===//

#include "tools/tessera-sim/LaunchFile.h"

using namespace tessera::sim;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Module module =
      llvm::cantFail(parseModule(".version 8.3\n.target sm_90a\n.address_size 64\n"
                                 ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 x, "
                                 ".param .f32 scale, .param .u32 n) {\n"
                                 ".reg .b64 %d<2>; ld.param.u64 %d1, [x]; ret;\n}\n"));
  // No file has a relative name.
  auto file = parseLaunchFile(module, {reinterpret_cast<const char *>(data), size}, "/nowhere");
  if (!file) {
    llvm::consumeError(file.takeError());
    return 0;
  }
  Options options = (*file)->options;
  options.maxWarpInstructions = 10000;
  llvm::consumeError(run(module, (*file)->launch, options).takeError());
  llvm::consumeError(finishLaunchFile(**file, /*write=*/false).takeError());
  return 0;
}
