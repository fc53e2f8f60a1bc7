//===- Npy.cpp - Fuzz target: .npy files, as both tools read them ---------===//

#include "lib/Support/Npy.h"
#include "tools/tessera-sim/Npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef bytes(reinterpret_cast<const char *>(data), size);
  llvm::consumeError(tessera::parseNpy(bytes, "fuzz.npy").takeError());
  llvm::consumeError(tessera::sim::parseNpy(bytes, "fuzz.npy").takeError());
  return 0;
}
