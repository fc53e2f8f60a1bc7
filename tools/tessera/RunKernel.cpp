//===- RunKernel.cpp - What `tessera run` does ----------------------------===//

#include "tools/tessera/RunKernel.h"
#include "dialects/Tile/Entries.h"
#include "lib/Support/Files.h"
#include "lib/Support/Npy.h"
#include "lib/Support/Seeds.h"
#include "tools/tessera/Commands.h"
#include "tools/tessera/CudaRunner.h"
#include "tools/tessera/DeviceRunner.h"
#include "tools/tessera/KernelSource.h"
#include "tools/tessera/Progress.h"
#include "tools/tessera/RunArguments.h"
#include "tools/tessera/RunReference.h"
#include "tools/tessera/SimRunner.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include <cmath>

using namespace mlir;
using namespace tessera;

namespace {
/// One `tessera run` after its source is read.
class KernelRun {
public:
  KernelRun(const RunOptions &options, tile::EntryOpInterface kernel, RunArguments arguments)
      : options(options), kernel(kernel), arguments(std::move(arguments)),
        reference(kernel, this->arguments) {}

  /// Runs `executed`, a later form of the kernel or the kernel itself, on `runner`; reports, saves
  /// and checks.
  int run(DeviceRunner &runner, tile::EntryOpInterface executed);
  ArrayRef<KernelArgument> getArguments() const { return arguments.getValues(); }
  int showBefore(ShowOptions shown);
  void printUnchecked() { reference.printUnchecked(llvm::outs()); }

private:
  void describe(unsigned index, const HostTensor &tensor);
  int save(const RunArguments &results);
  int saveTrace(DeviceRunner &runner);
  void printTiming(const tuning::Timing &timing);

  const RunOptions &options;
  tile::ViewType getView(unsigned index) {
    return cast<tile::ViewType>(kernel.getArgument(index).getType());
  }

  tile::EntryOpInterface kernel;
  RunArguments arguments;
  RunReference reference;
};
} // namespace

/// Prints one line about an output: "o: bf16 [1, 2, 256, 128], largest magnitude 2.31, 0 NaN".
void KernelRun::describe(unsigned index, const HostTensor &tensor) {
  double largest = 0;
  int64_t numNaN = 0, numInfinite = 0;
  tensor.forEach([&](int64_t, int64_t offset) {
    double value = tensor.getNumber(offset);
    numNaN += std::isnan(value);
    numInfinite += std::isinf(value);
    if (std::isfinite(value))
      largest = std::max(largest, std::fabs(value));
  });
  llvm::outs() << kernel.getArgumentName(index) << ": " << getView(index).getElementType() << " [";
  llvm::interleaveComma(tensor.shape, llvm::outs());
  llvm::outs() << llvm::format("], largest magnitude %.6g, %lld NaN, %lld infinite\n", largest,
                               static_cast<long long>(numNaN), static_cast<long long>(numInfinite));
}

int KernelRun::save(const RunArguments &results) {
  for (const auto &[name, path] : options.outputs)
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
      if (kernel.getArgumentName(i) != name)
        continue;
      if (llvm::Error error = writeNpy(path, results.getTensor(i), getElementType(getView(i))))
        return reportFailure("--output: " + toString(std::move(error)));
    }
  return ExitSuccess;
}

int KernelRun::saveTrace(DeviceRunner &runner) {
  if (options.trace.empty())
    return ExitSuccess;
  llvm::Expected<timeline::Timeline> timeline = runner.readTimeline();
  if (!timeline)
    return reportFailure("--trace: " + toString(timeline.takeError()));
  llvm::Error error = writeOutput(
      options.trace, [&](llvm::raw_ostream &os) { os << timeline::toJSON(*timeline) << "\n"; });
  return error ? reportFailure("--trace: " + toString(std::move(error))) : ExitSuccess;
}

/// Prints "time: median 0.1234 ms of 204 runs, least 0.1210 ms, middle half within 0.8 %" and the
/// rate at which views are read and written, each of them once.
void KernelRun::printTiming(const tuning::Timing &timing) {
  double bytes = 0;
  for (auto [i, value] : llvm::enumerate(arguments.getValues())) {
    auto view = dyn_cast<tile::ViewType>(kernel.getArgument(i).getType());
    if (!view)
      continue;
    ViewUse use = getViewUse(kernel, i);
    bytes += (use.loaded + use.stored) * view.getElementType().getIntOrFloatBitWidth() / 8.0 *
             std::get<HostTensor *>(value)->numElements();
  }
  const tuning::Summary &ms = timing.ms;
  llvm::outs() << llvm::formatv("time: median {0:f4} ms of {1} runs, least {2:f4} ms, middle half "
                                "within {3:f1} %\n",
                                ms.median, ms.count, ms.min, 100 * ms.spread);
  if (ms.median > 0)
    llvm::outs() << llvm::formatv("views: {0:f1} MB, {1:f1} GB/s\n", bytes / 1e6,
                                  bytes / ms.median / 1e6);
  if (timing.mhz > 0)
    llvm::outs() << llvm::formatv("meanwhile: {0:f0} MHz, {1:f0} W\n", timing.mhz, timing.watts);
}

int KernelRun::run(DeviceRunner &runner, tile::EntryOpInterface executed) {
  RunArguments results = arguments.cloneForRun();
  RunOutcome outcome = runner.run(executed, results.getValues());
  if (outcome != RunOutcome::Ran)
    return outcome == RunOutcome::Refused ? ExitUsage : ExitFailed;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (isOutput(kernel, i))
      describe(i, results.getTensor(i));
  if (int code = save(results))
    return code;
  if (int code = saveTrace(runner))
    return code;
  if (options.time)
    printTiming(runner.getTiming());
  if (!options.check)
    return ExitSuccess;
  // The interpreter runs a schedule only where it was given a later form of the kernel.
  Schedules schedules = runner.getSchedules(kernel.getContext());
  if (executed != kernel)
    for (tile::KernelOp op : tile::getKernels(executed)) {
      schedules.ofKernels.try_emplace(op.getSymName().str(), op.getScheduleAttr());
      if (isa<tile::SequenceOp>(*executed))
        schedules.firstKernels.try_emplace(executed.getSymName().str(), op.getSymName().str());
    }
  return reference.check(schedules, results, llvm::outs()) ? ExitSuccess : ExitFailed;
}

/// Has the interpreter show and check what machine code leaves out.
int KernelRun::showBefore(ShowOptions shown) {
  RunArguments results = arguments.cloneForRun();
  InterpreterRunner runner(Precision::Kernel, std::move(shown));
  return runner.run(kernel, results.getValues()) == RunOutcome::Ran ? ExitSuccess : ExitFailed;
}

//===----------------------------------------------------------------------===//
// From options to a run
//===----------------------------------------------------------------------===//

/// Prints what is shown of a value: "softmax.tile:12:3: %sum at m = 0: ...".
static void printShown(Location loc, StringRef text) {
  if (auto place = loc->findInstanceOf<FileLineColRange>())
    llvm::outs() << place.getFilename().getValue() << ":" << place.getStartLine() << ":"
                 << place.getStartColumn() << ": ";
  llvm::outs() << text << "\n";
}

/// What the options and the source say of values that are shown.
static llvm::Expected<ShowOptions> getShown(const RunOptions &options,
                                            tile::EntryOpInterface kernel) {
  ShowOptions shown;
  shown.show = printShown;
  for (StringRef name : options.prints)
    shown.names.push_back(name.ltrim('%').str());
  shown.steps = options.steps;
  shown.elements = options.elements;
  for (const auto &[name, text] : options.at) {
    int64_t number;
    if (StringRef(text).getAsInteger(10, number) || number < 0)
      return llvm::createStringError("--at: " + name + " is an integer of at least 0, got '" +
                                     text + "'");
    shown.at.emplace_back(name, number);
  }
  if (llvm::Error error = checkShown(kernel, shown))
    return llvm::createStringError("--print, --at: " + toString(std::move(error)));
  return shown;
}

/// Whether the machine code of `kernel` leaves out what shows or checks values.
static bool hasDebugOps(tile::EntryOpInterface kernel) {
  return llvm::any_of(tile::getKernels(kernel), [](tile::KernelOp op) {
    return op
        ->walk([](Operation *inner) {
          return isa<tile::PrintOp, tile::AssertOp>(inner) ? WalkResult::interrupt()
                                                           : WalkResult::advance();
        })
        .wasInterrupted();
  });
}

/// How `kernel` is compiled for a run.
static CompileOptions getCompileOptions(const RunOptions &options, tile::EntryOpInterface kernel) {
  CompileOptions compileOptions;
  compileOptions.defines = options.defines;
  compileOptions.imports = options.imports;
  compileOptions.schedule = options.schedule;
  compileOptions.pdl = options.pdl;
  compileOptions.split = options.split;
  compileOptions.kernel = kernel.getSymName().str();
  return compileOptions;
}

/// What keeps the machine from this run, as a note: the interpreter runs kernels that do not
/// compile, and tensors that a launch refuses.
static void noteRefusal(const RunOptions &options, KernelSource &source,
                        ArrayRef<KernelArgument> arguments) {
  CompileOptions compileOptions = getCompileOptions(options, source.getKernel());
  compileOptions.tuning.useDatabase = false;
  std::optional<tessera::Diagnostic> first;
  CompileStatus status;
  std::unique_ptr<SimRunner> runner = SimRunner::create(
      source.getText(), source.getName(), compileOptions, options.sim,
      [&](const tessera::Diagnostic &diagnostic) {
        if (diagnostic.severity == Severity::Error && !first)
          first = diagnostic;
      },
      status);
  if (first) {
    first->message = "tessera compile refuses this kernel: " + first->message;
    first->notes.clear();
  } else if (runner) {
    llvm::Error error = runner->checkLaunch(source.getKernel(), arguments);
    if (!error)
      return;
    first.emplace().message = "a launch refuses these tensors: " + toString(std::move(error));
  } else {
    return;
  }
  first->severity = Severity::Note;
  source.getHandler()(*first);
}

static int runOnInterpreter(const RunOptions &options, KernelSource &source, ShowOptions shown,
                            KernelRun &run) {
  InterpreterRunner runner(options.precision == "exact" ? Precision::Exact : Precision::Kernel,
                           std::move(shown));
  if (options.level == "bound") {
    int code = run.run(runner, source.getKernel());
    if (code == ExitSuccess)
      noteRefusal(options, source, run.getArguments());
    return code;
  }
  OwningOpRef<ModuleOp> scheduled = source.schedule(options.schedule);
  if (!scheduled)
    return ExitSource;
  return run.run(runner,
                 scheduled->lookupSymbol<tile::EntryOpInterface>(source.getKernel().getSymName()));
}

static CompileOptions getCompileOptions(const RunOptions &options, tile::EntryOpInterface kernel,
                                        const Launch &launch) {
  CompileOptions compileOptions = getCompileOptions(options, kernel);
  compileOptions.ptxas = options.ptxas;
  if (!options.trace.empty())
    compileOptions.instrument = options.instrument.empty() ? "timeline" : options.instrument;
  compileOptions.tuning = options.tuning;
  for (StringRef dim : kernel.getDimNames())
    compileOptions.tuning.shape.emplace_back(dim.str(), launch.dims.lookup(dim));
  return compileOptions;
}

static int runOnCuda(const RunOptions &options, KernelSource &source, const Launch &launch,
                     KernelRun &run) {
  CompileStatus status;
  std::unique_ptr<DeviceRunner> runner = createCudaRunner(
      source.getText(), source.getName(), getCompileOptions(options, source.getKernel(), launch),
      source.getHandler(), status);
  if (!runner)
    return static_cast<int>(status);
  if (options.time)
    if (llvm::Error error = runner->enableTiming()) {
      llvm::errs() << "tessera: --time: " << toString(std::move(error)) << "\n";
      return ExitToolchain;
    }
  return run.run(*runner, source.getKernel());
}

static int runOnSimulator(const RunOptions &options, KernelSource &source, const Launch &launch,
                          ShowOptions shown, KernelRun &run) {
  if (!shown.names.empty() || hasDebugOps(source.getKernel()))
    if (int code = run.showBefore(std::move(shown)))
      return code;
  CompileStatus status;
  std::unique_ptr<SimRunner> runner = SimRunner::create(
      source.getText(), source.getName(), getCompileOptions(options, source.getKernel(), launch),
      options.sim, source.getHandler(), status);
  if (!runner)
    return static_cast<int>(status);
  if (!options.writeLaunch.empty()) {
    llvm::Error error =
        runner->writeLaunch(source.getKernel(), run.getArguments(), options.writeLaunch);
    if (error)
      return reportFailure("--write-launch: " + toString(std::move(error)));
  }
  runner->setSeeds(options.sim.seed, options.sim.seeds);
  Progress progress("simulating");
  for (uint64_t i = 0; i < options.sim.seeds; ++i) {
    progress.set(("simulating seed " + Twine(i + 1) + " of " + Twine(options.sim.seeds)).str());
    int code = run.run(*runner, source.getKernel());
    const sim::Report &report = runner->getReport();
    llvm::outs() << llvm::formatv("event seed {0}: {1} blocks, {2} warp instructions in {3:f3} s\n",
                                  report.seed, report.ctas, report.warpInstructions,
                                  report.seconds);
    if (code)
      return code;
  }
  return ExitSuccess;
}

/// Options that only another one gives a meaning.
static int checkOptions(const RunOptions &options) {
  bool isInterpreter = options.device == "interp";
  if (!isInterpreter && (options.level != "bound" || options.precision != "kernel"))
    return reportFailure("--level and --precision are options of --device interp");
  if (isInterpreter && options.level == "bound" && !options.schedule.empty())
    return reportFailure("--schedule changes nothing at --level bound; give --level scheduled");
  bool showsSome = !options.prints.empty() || !options.at.empty() || options.steps;
  if (showsSome && (options.device == "cuda" || options.level != "bound"))
    return reportFailure("--print, --at and --steps are options of --device interp and sim, and of "
                         "--level bound, whose values are those of the source");
  if (options.steps && options.prints.empty())
    return reportFailure("--steps says how often --print shows a value; give --print %NAME");
  if (options.device != "cuda" && !options.ptxas.empty())
    return reportFailure("--ptxas is an option of --device cuda");
  if (options.device != "cuda" && options.time)
    return reportFailure(
        "--time is an option of --device cuda: only a GPU has times. Without one, "
        "--device sim counts instructions, and tessera tune --compile-only DIR makes "
        "what another machine times");
  if (options.time && !options.trace.empty())
    return reportFailure("--time and --trace exclude each other: recording takes time");
  if (isInterpreter && !options.trace.empty())
    return reportFailure("--trace is an option of --device sim and cuda");
  if (options.trace.empty() && !options.instrument.empty())
    return reportFailure("--instrument says what --trace records; give --trace FILE");
  bool isForSim = options.sim != SimOptions() || !options.writeLaunch.empty();
  if (options.device != "sim" && isForSim)
    return reportFailure(
        "--seeds, --sim-seed, --sim-blocks, --move-approximations, --threads, --ptx and "
        "--write-launch are options of --device sim");
  if (llvm::Error error = checkSeeds("--seeds", options.sim.seeds, "--sim-seed", options.sim.seed))
    return reportFailure(toString(std::move(error)));
  return ExitSuccess;
}

static int runOnDevice(const RunOptions &options, KernelSource &source, const Launch &launch,
                       KernelRun &run) {
  llvm::Expected<ShowOptions> shown = getShown(options, source.getKernel());
  if (!shown)
    return reportFailure(toString(shown.takeError()));
  if (options.device == "interp")
    return runOnInterpreter(options, source, std::move(*shown), run);
  return options.device == "sim" ? runOnSimulator(options, source, launch, std::move(*shown), run)
                                 : runOnCuda(options, source, launch, run);
}

int tessera::runKernel(const RunOptions &options) {
  if (int code = checkOptions(options))
    return code;
  KernelSource source;
  if (int code = source.read(options))
    return code;
  tile::EntryOpInterface kernel = source.getKernel();
  llvm::Expected<RunArguments> arguments = RunArguments::create(kernel, options);
  if (!arguments)
    return reportFailure(toString(arguments.takeError()));
  // What the launch itself refuses is a matter of the options, not of the kernel.
  FailureOr<Launch> launch = resolveLaunch(kernel, arguments->getValues());
  if (failed(launch))
    return ExitUsage;
  if (options.check)
    if (llvm::Error error = checkIsPossible(kernel, *launch))
      return reportFailure(toString(std::move(error)));
  if (!options.saveInputs.empty())
    if (llvm::Error error = arguments->saveInputs(kernel, options.saveInputs))
      return reportFailure("--save-inputs: " + toString(std::move(error)));
  KernelRun run(options, kernel, std::move(*arguments));
  int code = runOnDevice(options, source, *launch, run);
  if (options.check && code == ExitSuccess)
    run.printUnchecked();
  return code;
}
