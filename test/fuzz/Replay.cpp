//===- Replay.cpp - Runs a fuzz target on files without libFuzzer ---------===//

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    auto file = llvm::MemoryBuffer::getFile(argv[i], /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
    if (!file) {
      llvm::errs() << argv[i] << ": " << file.getError().message() << "\n";
      return 1;
    }
    // What the target crashes on is the last name.
    llvm::outs() << argv[i] << "\n";
    llvm::outs().flush();
    LLVMFuzzerTestOneInput((*file)->getBuffer().bytes_begin(), (*file)->getBufferSize());
  }
  return 0;
}
