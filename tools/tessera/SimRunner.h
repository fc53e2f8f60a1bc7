//===- SimRunner.h - Runs kernels on the simulator ------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_SIMRUNNER_H
#define TESSERA_TOOLS_TESSERA_SIMRUNNER_H

#include "lib/Runtime/Launch.h"
#include "lib/Simulator/Simulator.h"
#include "tessera/Compiler.h"
#include "tools/tessera/DeviceArguments.h"
#include "tools/tessera/DeviceRunner.h"
#include "tools/tessera/RunKernel.h"
#include <deque>
#include <memory>

namespace tessera {

/// Executes the PTX of a compiled kernel in the Hopper simulator (docs/simulator.md). A launch
/// fails when the simulator reports a hazard, which goes to stderr with the seed that shows it
/// again, and when the kernel leaves its workspace other than zero.
class SimRunner : public DeviceRunner {
public:
  /// Compiles the kernel of `source` that `options` name; needs no assembler. Returns null after an
  /// error, with its kind in `status`.
  static std::unique_ptr<SimRunner> create(const std::string &source, const std::string &fileName,
                                           CompileOptions options, const SimOptions &simOptions,
                                           const DiagnosticHandler &handler, CompileStatus &status);

  /// The seeds of events of the next `count` launches, which all have the same arguments: several
  /// of them run at once, each on a host thread of its own.
  void setSeeds(uint64_t first, uint64_t count);

  llvm::LogicalResult run(tile::KernelOp kernel, llvm::ArrayRef<KernelArgument> arguments) override;

  tile::ScheduleAttr getSchedule(mlir::MLIRContext *context) const override {
    return readSchedule(info.description, context);
  }

  llvm::Expected<timeline::Timeline> readTimeline() override {
    return timeline::decode(info.description, recorded, timeline::ClockUnit::Instructions);
  }

  /// What the last launch did. Without diagnostics when it failed for another reason than a hazard.
  const sim::Report &getReport() const { return report; }

private:
  SimRunner(runtime::KernelInfo info, sim::Module module)
      : info(std::move(info)), module(std::move(module)) {}

  /// One launch: what it starts from and, afterwards, what it did.
  struct Trial {
    sim::Options options;
    sim::GlobalMemory memory;
    std::vector<runtime::Argument> arguments;
    sim::Report report;
    /// The memory of the timeline.
    std::vector<char> recorded;
    /// Why it failed; empty when it did not.
    std::string failure;
  };

  void readDescription();
  llvm::Error prepare(tile::KernelOp kernel, llvm::ArrayRef<KernelArgument> arguments,
                      Trial &trial) const;
  llvm::Error simulateAhead(tile::KernelOp kernel, llvm::ArrayRef<KernelArgument> arguments);
  llvm::Error launch(tile::KernelOp kernel, llvm::ArrayRef<KernelArgument> arguments);
  llvm::Error execute(Trial &trial) const;
  llvm::Error checkWorkspace(Trial &trial, uint64_t address) const;
  llvm::Error fillParameters(llvm::ArrayRef<runtime::Argument> arguments,
                             llvm::ArrayRef<int64_t> dims, uint64_t workspace,
                             sim::Launch &launch) const;

  runtime::KernelInfo info;
  sim::Module module;
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
  /// Registers per thread at entry; 0 when no assembler counted them.
  uint32_t registers = 0;
  sim::Report report;
  /// The memory of the timeline after the last launch.
  std::vector<char> recorded;
};

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_SIMRUNNER_H
