//===- Ptxas.cpp - Find and run NVIDIA's assembler ------------------------===//

#include "lib/Codegen/Ptxas.h"
#include "lib/Codegen/EmitPTX.h"
#include "lib/Codegen/PTXText.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace tessera {

Expected<Ptxas> findPtxas(StringRef requested, StringRef systemToolkit) {
  static constexpr StringRef wheelPaths[] = {"nvidia/cu13/bin/ptxas", "nvidia/cuda_nvcc/bin/ptxas"};
  // CUDA 12.3 is the first release that assembles the PTX ISA which the code generator writes.
  ToolkitProgram program{
      "ptxas", VersionTuple(12, 3), wheelPaths, "nvidia-cuda-nvcc and nvidia-cuda-nvcc-cu12",
      "Install a CUDA toolkit or, with pip, one of the packages nvidia-cuda-nvcc (CUDA 13) and "
      "nvidia-cuda-nvcc-cu12, or name the program with --ptxas"};
  return findToolkitProgram(program, requested, systemToolkit);
}

static bool wantsLineInfo(ArrayRef<std::string> arguments) {
  return llvm::any_of(arguments, [](StringRef argument) {
    return llvm::is_contained({"-lineinfo", "--generate-line-info", "-g", "--device-debug"},
                              argument);
  });
}

Expected<PtxasRun> runPtxas(const Ptxas &ptxas, StringRef ptx, ArrayRef<std::string> arguments) {
  Expected<AnonymousFile> input =
      AnonymousFile::create(wantsLineInfo(arguments) ? ptx.str() : withoutLineInfo(ptx));
  if (!input)
    return input.takeError();
  Expected<AnonymousFile> output = AnonymousFile::create();
  if (!output)
    return output.takeError();
  std::string arch = std::string("-arch=") + targetName;
  SmallVector<StringRef> command{arch, "-v"};
  command.append(arguments.begin(), arguments.end());
  command.append({input->getPath(), "-o", output->getPath()});
  Expected<ProgramOutput> result = runProgram(ptxas.path, command);
  if (!result)
    return result.takeError();
  PtxasRun run;
  run.exitCode = result->exitCode;
  run.log = std::move(result->text);
  if (run.exitCode == 0)
    if (Error error = output->read().moveInto(run.cubin))
      return std::move(error);
  return run;
}

} // namespace tessera
