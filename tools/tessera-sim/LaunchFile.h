//===- LaunchFile.h - The JSON description of a launch ----------*- C++ -*-===//
#ifndef TESSERA_TOOLS_SIM_LAUNCHFILE_H
#define TESSERA_TOOLS_SIM_LAUNCHFILE_H

#include "lib/Simulator/Simulator.h"

namespace tessera::sim {

/// A buffer that the launch file names.
struct FileBuffer {
  std::string name;
  uint64_t address = 0, bytes = 0;
  std::string type; ///< element type: "f32", "bf16", ...
  std::vector<uint64_t> shape;
  std::string output;  ///< file to write after the run; empty: none
  std::string expect;  ///< file to compare with; empty: none
  bool resets = false; ///< the launch leaves it 0, as it found it, for the next one
  double tolerance =
      0; ///< of the comparison: absolute, and relative to the largest expected magnitude
};

/// Everything that a launch file says. Global memory is filled anew by each load, so that every
/// seed starts alike.
struct LaunchFile {
  GlobalMemory memory;
  Launch launch;
  Options options;
  std::vector<FileBuffer> buffers;
};

/// Paths in the file are relative to its directory.
llvm::Expected<std::unique_ptr<LaunchFile>> loadLaunchFile(const Module &module,
                                                           llvm::StringRef path);
/// As loadLaunchFile, from the text of a file in `directory`.
llvm::Expected<std::unique_ptr<LaunchFile>>
parseLaunchFile(const Module &module, llvm::StringRef text, llvm::StringRef directory);
/// What is wrong with the contents of a buffer behind a launch.
struct Mismatch {
  llvm::StringRef kind; ///< "wrong-result" or "not-reset"
  std::string text;
};

/// Writes the outputs and compares with expected files and with 0; returns each mismatch.
llvm::Expected<std::vector<Mismatch>> finishLaunchFile(const LaunchFile &file, bool write);

} // namespace tessera::sim

#endif // TESSERA_TOOLS_SIM_LAUNCHFILE_H
