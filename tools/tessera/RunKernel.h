//===- RunKernel.h - What `tessera run` does ------------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_RUNKERNEL_H
#define TESSERA_TOOLS_TESSERA_RUNKERNEL_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

/// NAME=VALUE, as the command line gives them.
using Assignments = std::vector<std::pair<std::string, std::string>>;

struct RunOptions {
  std::string file;
  Assignments defines;
  /// The kernel to run; empty when the source has one.
  std::string kernel;
  Assignments shape;                ///< named dimension = extent
  Assignments scalars;              ///< scalar argument = number
  Assignments inputs;               ///< view argument = .npy file
  Assignments outputs;              ///< view argument = .npy file
  Assignments orders;               ///< view argument = storage order of its dimensions, "0,2,1,3"
  std::string device = "interp";    ///< interp or cuda
  std::string precision = "kernel"; ///< of interp: kernel or exact
  std::string level = "bound";      ///< of interp: bound or scheduled
  /// Overrides of schedule fields, "consumers=2,overlap=1".
  std::string schedule;
  /// Path of ptxas for cuda; empty to search as `tessera compile` does.
  std::string ptxas;
  uint64_t seed = 0;
  bool check = false;
};

/// Runs a kernel as the options say: reads the source, makes the tensors, runs, saves, checks.
/// Writes results to stdout and errors to stderr; returns the exit code: ExitFailed when the kernel
/// failed or a check did not hold.
int runKernel(const RunOptions &options);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_RUNKERNEL_H
