//===- RunKernel.h - What `tessera run` does ------------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_RUNKERNEL_H
#define TESSERA_TOOLS_TESSERA_RUNKERNEL_H

#include "tessera/Compiler.h"
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace tessera {

/// NAME=VALUE, as the command line gives them.
using Assignments = std::vector<std::pair<std::string, std::string>>;

/// How the simulator runs a kernel.
struct SimOptions {
  uint64_t seed = 0;    ///< the first seed of events
  uint64_t seeds = 3;   ///< how many to explore
  unsigned threads = 0; ///< of the host; 0: all cores, or one when a seed would not fix the run
  unsigned blocks = 4;  ///< of a persistent launch, at most
  bool moveApproximations = false; ///< within their documented error, as the seed says
  std::string ptx; ///< file whose PTX runs in place of what is compiled, by its launch

  bool operator!=(const SimOptions &other) const {
    return std::tie(seed, seeds, threads, blocks, moveApproximations, ptx) !=
           std::tie(other.seed, other.seeds, other.threads, other.blocks, other.moveApproximations,
                    other.ptx);
  }
};

struct RunOptions {
  std::string file;
  Assignments defines;
  ImportOptions imports;
  /// The kernel to run; empty when the source has one.
  std::string kernel;
  Assignments shape;                ///< named dimension = extent
  Assignments scalars;              ///< scalar argument = number
  Assignments inputs;               ///< view argument = .npy file
  Assignments outputs;              ///< view argument = .npy file
  Assignments expects;              ///< view argument = .npy file that its result is compared with
  std::string saveInputs;           ///< directory that receives the views that the kernel loads
  Assignments orders;               ///< view argument = storage order of its dimensions, "0,2,1,3"
  int64_t padRows = 1;              ///< rows of views start at multiples of so many elements
  std::string device = "interp";    ///< interp, sim or cuda
  std::string precision = "kernel"; ///< of interp: kernel or exact
  std::string level = "bound";      ///< of interp: bound or scheduled
  /// Overrides of schedule fields, "consumers=2,overlap=1".
  std::string schedule;
  bool pdl = false, split = true; ///< as in CompileOptions
  /// Path of ptxas for cuda; empty to search as `tessera compile` does.
  std::string ptxas;
  /// Which measured schedules sim and cuda may use; the shape is that of the run.
  CompileOptions::Tuning tuning;
  uint64_t seed = 0;
  /// Whether the inputs that are drawn are rounded to integers.
  bool integers = false;
  bool check = false;
  bool time = false;               ///< of cuda only
  std::vector<std::string> prints; ///< names of values that the interpreter shows
  Assignments at;                  ///< grid index = number: what is shown
  bool steps = false;              ///< whether values are shown each time that they are computed
  int64_t elements = 6;            ///< of each axis, at most, where a value is shown
  /// File that receives the timeline of the last launch of sim or cuda.
  std::string trace;
  /// What is recorded for it, see CompileOptions::instrument; empty for the defaults.
  std::string instrument;
  SimOptions sim;
  std::string writeLaunch; ///< file that receives the launch as tessera-sim reads it
};

/// Runs a kernel as the options say: reads the source, makes the tensors, runs, saves, checks.
/// Writes results to stdout and errors to stderr; returns the exit code: ExitFailed when the kernel
/// failed or a check did not hold.
int runKernel(const RunOptions &options);

/// What `tessera check` compares: `base` over all combinations of the rest.
struct CheckOptions {
  RunOptions base;
  std::vector<Assignments> shapes;    ///< none: the inputs fix all extents
  std::vector<std::string> schedules; ///< none: the compiler's choice
  uint64_t dataSeeds = 1;             ///< from base.seed
  bool scheduled = false;             ///< whether to interpret the scheduled form too
};

/// Simulates a kernel and compares it with the interpreter, for every combination of shape,
/// schedule and seed; a line for each on stdout, what is wrong on stderr. Returns the exit code:
/// ExitFailed when a combination failed, otherwise that of a schedule which does not compile.
int checkKernel(const CheckOptions &options);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_RUNKERNEL_H
