//===- Source.cpp - Fuzz target: reading a .tile source -------------------===//

#include "tessera/Compiler.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string source(reinterpret_cast<const char *>(data), size);
  unsigned errors = 0;
  tessera::SourceInfo info =
      tessera::inspect(source, "fuzz.tile", {}, [&](const tessera::Diagnostic &diagnostic) {
        errors += diagnostic.severity == tessera::Severity::Error;
      });
  // What is refused says why, and what is read has no errors.
  if ((info.status == tessera::CompileStatus::Success) != (errors == 0))
    __builtin_trap();
  return 0;
}
