// Compiles the file that the command line names, from C++.
#include <iostream>
#include <tessera/Compiler.h>

int main(int argc, char **argv) {
  tessera::CompileOptions options;
  options.bundlePtx = true;
  options.defines = {{"N", argv[2]}};
  tessera::CompileResult result =
      tessera::compileFile(argv[1], options, [](const tessera::Diagnostic &diagnostic) {
        std::cerr << diagnostic.file << ":" << diagnostic.line << ":" << diagnostic.column << ": "
                  << diagnostic.message << "\n";
      });
  std::cout << result.output;
  return static_cast<int>(result.status);
}
