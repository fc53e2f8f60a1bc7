//===- CheckKernel.cpp - What `tessera check` does ------------------------===//

#include "lib/Support/Fail.h"
#include "lib/Support/Seeds.h"
#include "tools/tessera/Commands.h"
#include "tools/tessera/KernelSource.h"
#include "tools/tessera/Progress.h"
#include "tools/tessera/RunReference.h"
#include "tools/tessera/SimRunner.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;

static std::string describeShape(const Assignments &shape) {
  std::string text;
  for (const auto &[name, extent] : shape)
    text += (text.empty() ? "" : ",") + name + "=" + extent;
  return text;
}

namespace {
/// Arguments of one shape and data seed, with what they should give.
struct DataCase {
  std::string name;
  /// Apart, as the reference points into them.
  std::unique_ptr<RunArguments> arguments;
  std::optional<RunReference> reference;
};

/// One `tessera check` after its source is read.
class KernelCheck {
public:
  KernelCheck(const CheckOptions &options, KernelSource &source)
      : options(options), source(source) {}

  /// Makes the arguments of every shape and data seed; the exit code.
  int prepare();
  /// Checks one schedule on all of them; the exit code.
  int checkSchedule(const std::string &schedule);
  void summarize();

private:
  int addCase(const Assignments &shape, uint64_t seed);
  RunOutcome checkCase(SimRunner &runner, DataCase &data, StringRef schedule);
  bool checkScheduled(const Schedules &chosen, StringRef schedule);

  const CheckOptions &options;
  KernelSource &source;
  std::vector<DataCase> cases;
  unsigned numCombinations = 0, numFailed = 0;
  uint64_t numInstructions = 0;
};
} // namespace

int KernelCheck::addCase(const Assignments &shape, uint64_t seed) {
  RunOptions run = options.base;
  run.shape = shape;
  run.seed = seed;
  run.check = true;
  llvm::Expected<RunArguments> arguments = RunArguments::create(source.getKernel(), run);
  if (!arguments)
    return reportFailure(toString(arguments.takeError()));
  FailureOr<Launch> launch = resolveLaunch(source.getKernel(), arguments->getValues());
  if (failed(launch))
    return ExitUsage;
  if (llvm::Error error = checkIsPossible(source.getKernel(), *launch))
    return reportFailure(toString(std::move(error)));
  if (!run.saveInputs.empty())
    if (llvm::Error error = arguments->saveInputs(source.getKernel(), run.saveInputs))
      return reportFailure("--save-inputs: " + toString(std::move(error)));
  DataCase data;
  data.name = describeShape(shape) + (shape.empty() ? "" : " ") + "seed " + std::to_string(seed);
  data.arguments = std::make_unique<RunArguments>(std::move(*arguments));
  data.reference.emplace(source.getKernel(), *data.arguments);
  cases.push_back(std::move(data));
  return ExitSuccess;
}

int KernelCheck::prepare() {
  std::vector<Assignments> shapes = options.shapes;
  if (shapes.empty())
    shapes.emplace_back();
  for (const Assignments &shape : shapes)
    for (uint64_t i = 0; i < options.dataSeeds; ++i)
      if (int code = addCase(shape, options.base.seed + i))
        return code;
  return ExitSuccess;
}

/// Stops at the first seed of events that does not run, or gives something else.
RunOutcome KernelCheck::checkCase(SimRunner &runner, DataCase &data, StringRef schedule) {
  const SimOptions &sim = options.base.sim;
  ++numCombinations;
  uint64_t instructions = 0;
  std::string failure;
  RunOutcome outcome = RunOutcome::Ran;
  runner.setSeeds(sim.seed, sim.seeds);
  Progress progress("simulating " + data.name);
  for (uint64_t i = 0; i < sim.seeds && failure.empty(); ++i) {
    progress.set(
        ("simulating " + data.name + ": seed of events " + Twine(i + 1) + " of " + Twine(sim.seeds))
            .str());
    RunArguments results = data.arguments->cloneForRun();
    std::string comparison;
    llvm::raw_string_ostream os(comparison);
    outcome = runner.run(source.getKernel(), results.getValues());
    if (outcome == RunOutcome::Refused) {
      failure = "REFUSED, it was not launched";
    } else if (outcome == RunOutcome::Failed) {
      failure = "FAILED, a hazard";
    } else if (!data.reference->check(runner.getSchedules(source.getKernel().getContext()), results,
                                      os)) {
      llvm::errs() << comparison;
      failure = "FAILED, wrong results";
      outcome = RunOutcome::Failed;
    }
    instructions += runner.getReport().warpInstructions;
    if (outcome == RunOutcome::Failed)
      failure += " with --sim-seed " + std::to_string(sim.seed + i);
  }
  numInstructions += instructions;
  numFailed += !failure.empty();
  llvm::outs() << data.name << " schedule " << (schedule.empty() ? "chosen" : schedule) << ": ";
  if (failure.empty())
    llvm::outs() << "ok, " << sim.seeds << " seeds of events, " << instructions
                 << " warp instructions\n";
  else
    llvm::outs() << failure << "\n";
  return outcome;
}

/// Interprets the form of the kernel that the simulated one was made of.
bool KernelCheck::checkScheduled(const Schedules &chosen, StringRef schedule) {
  SmallVector<ScheduleOverride> overrides;
  for (const auto &[kernel, fields] : chosen.ofKernels)
    overrides.push_back({kernel, fields});
  OwningOpRef<ModuleOp> module = source.schedule(overrides);
  if (!module)
    return false;
  auto kernel = module->lookupSymbol<tile::EntryOpInterface>(source.getKernel().getSymName());
  bool holds = true;
  for (DataCase &data : cases) {
    RunArguments results = data.arguments->cloneForRun();
    std::string comparison;
    llvm::raw_string_ostream os(comparison);
    if (InterpreterRunner(Precision::Kernel).run(kernel, results.getValues()) == RunOutcome::Ran &&
        data.reference->check(chosen, results, os))
      continue;
    llvm::errs() << comparison;
    llvm::outs() << data.name << " schedule " << (schedule.empty() ? "chosen" : schedule)
                 << ": FAILED, wrong results of the interpreter on the scheduled form\n";
    holds = false;
  }
  numCombinations += cases.size();
  numFailed += !holds;
  return holds;
}

int KernelCheck::checkSchedule(const std::string &schedule) {
  CompileOptions compileOptions;
  compileOptions.defines = options.base.defines;
  compileOptions.imports = options.base.imports;
  compileOptions.schedule = schedule;
  compileOptions.pdl = options.base.pdl;
  compileOptions.split = options.base.split;
  compileOptions.kernel = source.getKernel().getSymName().str();
  CompileStatus status;
  std::unique_ptr<SimRunner> runner =
      SimRunner::create(source.getText(), source.getName(), compileOptions, options.base.sim,
                        source.getHandler(), status);
  if (!runner)
    return static_cast<int>(status);
  bool holds = true, isRefused = false;
  if (options.scheduled)
    holds = checkScheduled(runner->getSchedules(source.getKernel().getContext()), schedule);
  for (DataCase &data : cases) {
    RunOutcome outcome = checkCase(*runner, data, schedule);
    holds &= outcome != RunOutcome::Failed;
    isRefused |= outcome == RunOutcome::Refused;
  }
  if (!holds)
    return ExitFailed;
  return isRefused ? ExitUsage : ExitSuccess;
}

void KernelCheck::summarize() {
  if (numFailed == 0 && numCombinations != 0)
    cases.front().reference->printUnchecked(llvm::outs());
  llvm::outs() << llvm::formatv("{0} combinations, {1} failed, {2} warp instructions\n",
                                numCombinations, numFailed, numInstructions);
}

static llvm::Error checkRequest(const CheckOptions &options) {
  const SimOptions &sim = options.base.sim;
  if (llvm::Error error = checkSeeds("--seeds", sim.seeds, "--sim-seed", sim.seed))
    return error;
  if (options.shapes.size() > 1 || options.dataSeeds > 1) {
    const char *of = options.shapes.size() > 1 ? "one --shape" : "one seed of inputs";
    if (!options.base.expects.empty())
      return fail(llvm::Twine("--expect is the result of ") + of + "; give one at a time");
    if (!options.base.saveInputs.empty())
      return fail(llvm::Twine("--save-inputs saves the inputs of ") + of + "; give one at a time");
  }
  return checkSeeds("--data-seeds", options.dataSeeds, "--seed", options.base.seed);
}

int tessera::checkKernel(const CheckOptions &options) {
  if (llvm::Error error = checkRequest(options))
    return reportFailure(toString(std::move(error)));
  KernelSource source;
  if (int code = source.read(options.base))
    return code;
  KernelCheck check(options, source);
  if (int code = check.prepare())
    return code;
  std::vector<std::string> schedules = options.schedules;
  if (schedules.empty())
    schedules.emplace_back();
  int result = ExitSuccess;
  for (const std::string &schedule : schedules) {
    int code = check.checkSchedule(schedule);
    // A hazard matters more than a schedule that is refused.
    if (code == ExitFailed || result == ExitSuccess)
      result = code == ExitSuccess ? result : code;
  }
  check.summarize();
  return result;
}
