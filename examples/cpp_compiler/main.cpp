// Reads a source with a kernel of x, y and z, runs it on the CPU, and compiles it to a bundle.
//
//   compile_add add.tile add.bundle

#include "tessera/Compiler.h"
#include "tessera/Launch.h"
#include <fstream>
#include <iostream>

int main(int argc, char **argv) {
  if (argc != 3) {
    std::cerr << "usage: compile_add SOURCE BUNDLE\n";
    return 2;
  }

  // The interpreter runs the kernel, with memory of this process: no GPU is needed.
  tessera::Expected<tessera::Program> program = tessera::Program::readFile(argv[1]);
  if (!program) {
    std::cerr << program.message << "\n";
    return program.status;
  }
  std::vector<float> x(10000, 1), y(x.size(), 2), z(x.size());
  auto view = [](const std::vector<float> &values) {
    return tessera::Argument(values.data(), TESSERA_TYPE_F32, {int64_t(values.size())});
  };
  if (tessera::Outcome run = program->run({view(x), view(y), view(z)}); !run) {
    std::cerr << run.message << "\n";
    return run.status;
  }
  if (z != std::vector<float>(x.size(), 3)) {
    std::cerr << "the kernel does not add\n";
    return 1;
  }
  std::cout << "right on the CPU\n";

  // PTX, which the driver assembles; without it ptxas is looked for.
  tessera::CompileOptions options;
  options.bundlePtx = true;
  tessera::CompileResult result =
      tessera::compileFile(argv[1], options, [](const tessera::Diagnostic &diagnostic) {
        std::cerr << diagnostic.file << ":" << diagnostic.line << ": " << diagnostic.message
                  << "\n";
      });
  std::ofstream(argv[2]) << result.output;
  for (const tessera::KernelReport &kernel : result.kernels)
    std::cout << "compiled " << kernel.name << "\n";
  return int(result.status);
}
