//===- Compile.cpp - Fuzz target: from a source to PTX --------------------===//

#include "tessera/Compiler.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string source(reinterpret_cast<const char *>(data), size);
  tessera::CompileOptions options;
  options.emit = tessera::EmitKind::PTX;
  unsigned errors = 0;
  tessera::CompileResult result =
      tessera::compile(source, "fuzz.tile", options, [&](const tessera::Diagnostic &diagnostic) {
        errors += diagnostic.severity == tessera::Severity::Error;
      });
  // What is refused says why, and what compiles gives code.
  bool success = result.status == tessera::CompileStatus::Success;
  if (success ? result.output.empty() : errors == 0)
    __builtin_trap();
  return 0;
}
