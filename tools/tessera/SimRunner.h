//===- SimRunner.h - Runs kernels on the simulator ------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_SIMRUNNER_H
#define TESSERA_TOOLS_TESSERA_SIMRUNNER_H

#include "lib/Runtime/Launch.h"
#include "lib/Simulator/Simulator.h"
#include "tessera/Compiler.h"
#include "tools/tessera/DeviceArguments.h"
#include "tools/tessera/DeviceRunner.h"
#include "tools/tessera/RunKernel.h"
#include "llvm/Support/JSON.h"
#include <deque>
#include <memory>

namespace tessera {

/// Executes the PTX of a compiled kernel, or of a sequence of them, in the Hopper simulator
/// (docs/simulator.md). A launch fails when the simulator reports a hazard, which goes to stderr
/// with the seed that shows it again, and when a kernel leaves its workspace other than zero. One
/// that the simulator does not begin is refused.
class SimRunner : public DeviceRunner {
public:
  /// Compiles the kernel or sequence of `source` that `options` name; needs no assembler. Returns
  /// null after an error, with its kind in `status`.
  static std::unique_ptr<SimRunner> create(const std::string &source, const std::string &fileName,
                                           CompileOptions options, const SimOptions &simOptions,
                                           const DiagnosticHandler &handler, CompileStatus &status);

  /// The seeds of events of the next `count` launches, which all have the same arguments: several
  /// of them run at once, each on a host thread of its own.
  void setSeeds(uint64_t first, uint64_t count);

  /// Writes the launch of a kernel to `path`, as tessera-sim reads it, and beside it the elements
  /// of views.
  llvm::Error writeLaunch(tile::EntryOpInterface kernel, llvm::ArrayRef<KernelArgument> values,
                          llvm::StringRef path);

  /// A launch that takes more fails, and so do those of a sequence that take more together.
  void setMaxWarpInstructions(uint64_t most) { simulation.maxWarpInstructions = most; }

  /// Why a launch would refuse these arguments, as of memory that begins at multiples of 256 bytes.
  llvm::Error checkLaunch(tile::EntryOpInterface kernel,
                          llvm::ArrayRef<KernelArgument> values) const;

  RunOutcome run(tile::EntryOpInterface kernel, llvm::ArrayRef<KernelArgument> arguments) override;

  Schedules getSchedules(mlir::MLIRContext *context) const override {
    return readSchedules(bundle, context);
  }

  llvm::Expected<timeline::Timeline> readTimeline() override;

  /// What each launch of the last run recorded, of a sequence several.
  llvm::Expected<std::vector<timeline::Timeline>> readTimelines() const;

  /// What the last launch did. Without diagnostics when it failed for another reason than a hazard.
  const sim::Report &getReport() const { return report; }

private:
  SimRunner(runtime::BundleInfo bundle, sim::Module module)
      : bundle(std::move(bundle)), module(std::move(module)) {}

  /// What a bundle has of a kernel for people and tools.
  struct KernelNames {
    decltype(sim::Options::sharedNames) shared;
    decltype(sim::Options::roleNames) roles;
    decltype(sim::Options::barrierNames) barriers;
    /// Registers per thread at entry; 0 when no assembler counted them.
    uint32_t registers = 0;
  };

  /// The memory of a kernel's timeline after a launch.
  struct Recording {
    unsigned kernel;
    std::vector<char> memory;
  };

  /// One launch: what it starts from and, afterwards, what it did.
  struct Trial {
    sim::Options options;
    sim::GlobalMemory memory;
    std::vector<runtime::Argument> arguments;
    sim::Report report;
    std::vector<Recording> recordings;
    /// Why it failed or was refused; empty when it was not.
    std::string failure;
    RunOutcome outcome = RunOutcome::Refused;
  };

  /// A launch, and what it is made of. One without blocks is empty.
  struct PreparedLaunch {
    sim::Launch launch;
    runtime::DimValues dims;
    uint64_t workspace = 0, workspaceBytes = 0;
    bool isEmpty = false;
  };

  void readDescriptions();
  static void describeNames(const KernelNames &own, llvm::json::Object &file);
  void encode(tile::EntryOpInterface kernel, llvm::ArrayRef<KernelArgument> values);
  const runtime::Signature &getSignature() const;
  llvm::Error prepare(tile::EntryOpInterface kernel, llvm::ArrayRef<KernelArgument> arguments,
                      Trial &trial) const;
  llvm::Error simulateAhead(tile::EntryOpInterface kernel,
                            llvm::ArrayRef<KernelArgument> arguments);
  llvm::Error launch(tile::EntryOpInterface kernel, llvm::ArrayRef<KernelArgument> arguments,
                     RunOutcome &outcome);
  llvm::Error execute(Trial &trial) const;
  llvm::Error executeSequence(const runtime::SequenceInfo &sequence, Trial &trial) const;
  llvm::Error makeLaunch(unsigned index, llvm::ArrayRef<runtime::Argument> arguments,
                         sim::GlobalMemory &memory, PreparedLaunch &prepared) const;
  llvm::Error executeKernel(unsigned index, llvm::ArrayRef<runtime::Argument> arguments,
                            Trial &trial) const;
  llvm::Error checkWorkspace(unsigned index, Trial &trial, uint64_t address, uint64_t bytes) const;
  llvm::Error fillParameters(const runtime::KernelInfo &info,
                             llvm::ArrayRef<runtime::Argument> arguments,
                             llvm::ArrayRef<int64_t> dims, uint64_t workspace,
                             sim::Launch &launch) const;

  /// One kernel, or the kernels of one sequence.
  runtime::BundleInfo bundle;
  /// Of each kernel.
  std::vector<KernelNames> names;
  sim::Module module;
  /// What reports call the PTX, and where its lines come from.
  std::string ptxName = "<ptx>", ptxOrigin = "--emit ptx";
  sim::Options simulation;
  uint64_t seedsLeft = 1;
  /// Of the host, for all that runs at once; 0: all cores.
  unsigned hostThreads = 0;
  /// The elements of each view, as every launch starts from them.
  std::vector<std::vector<char>> encoded;
  /// The next launches, which ran already.
  std::deque<Trial> ahead;
  /// Blocks of a persistent launch, at most.
  unsigned maxBlocks = 1;
  sim::Report report;
  std::vector<Recording> recordings;
};

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_SIMRUNNER_H
