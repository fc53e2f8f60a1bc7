//===- RunKernelText.h - Interpret a kernel given as text -----------------===//

#ifndef TESSERA_TEST_UNIT_INTERPRETER_RUNKERNELTEXT_H
#define TESSERA_TEST_UNIT_INTERPRETER_RUNKERNELTEXT_H

#include "lib/Interpreter/Interpreter.h"

namespace tessera::test {

/// Parses `text`, whose one kernel takes `arguments`, and runs it. Returns the diagnostics as
/// "line:column: message", one a line; empty when all went well.
std::string runText(llvm::StringRef text, llvm::ArrayRef<KernelArgument> arguments,
                    const InterpreterOptions &options = {});

/// Applies the operations of `body`, which turn %x and %y (tensor<Nxf32>, N elements as in `x`)
/// into %r (tensor<Nxf32>), and returns r.
std::vector<double> apply(llvm::StringRef body, std::vector<double> x, std::vector<double> y,
                          Precision precision);

} // namespace tessera::test

#endif // TESSERA_TEST_UNIT_INTERPRETER_RUNKERNELTEXT_H
