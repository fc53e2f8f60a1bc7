//===- Disassemble.cpp - Find and run nvdisasm ----------------------------===//

#include "lib/Codegen/Toolkit.h"
#include "lib/Inspect/Sass.h"

using namespace llvm;
using namespace tessera;
using namespace tessera::sass;

static Expected<InstalledTool> findDisassembler(StringRef requested) {
  static constexpr StringRef wheelPaths[] = {"nvidia/cu13/bin/nvdisasm",
                                             "triton/backends/nvidia/bin/nvdisasm"};
  // CUDA 12.0 is the first release that knows sm_90a.
  ToolkitProgram program{
      "nvdisasm", VersionTuple(12, 0), wheelPaths, "nvidia-cuda-nvdisasm and triton",
      "Install a CUDA toolkit or, with pip, the package nvidia-cuda-nvdisasm, or name the program "
      "with --nvdisasm"};
  return findToolkitProgram(program, requested);
}

Expected<std::vector<Function>> tessera::sass::disassemble(StringRef cubin, StringRef requested) {
  Expected<InstalledTool> tool = findDisassembler(requested);
  if (!tool)
    return tool.takeError();
  Expected<AnonymousFile> file = AnonymousFile::create(cubin);
  if (!file)
    return file.takeError();
  Expected<ProgramOutput> output = runProgram(tool->path, {"-c", "-g", file->getPath()});
  if (!output)
    return output.takeError();
  if (output->exitCode != 0)
    return createStringError("nvdisasm cannot read the cubin: " + StringRef(output->text).trim());
  return parseDisassembly(output->text);
}
