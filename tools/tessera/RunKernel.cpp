//===- RunKernel.cpp - What `tessera run` does ----------------------------===//

#include "tools/tessera/RunKernel.h"
#include "lib/Compiler/Pipeline.h"
#include "lib/Source/Diagnostics.h"
#include "lib/Source/Source.h"
#include "lib/Support/Npy.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "tools/tessera/Commands.h"
#include "tools/tessera/CudaRunner.h"
#include "tools/tessera/DeviceRunner.h"
#include "tools/tessera/DiagnosticPrinter.h"
#include "tools/tessera/RunArguments.h"
#include "tools/tessera/RunCheck.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>

using namespace mlir;
using namespace tessera;

static int failUsage(const llvm::Twine &message) {
  llvm::errs() << "tessera: " << message << "\n";
  return ExitUsage;
}

namespace {
/// One `tessera run` after its source is read.
class KernelRun {
public:
  KernelRun(const RunOptions &options, tile::KernelOp kernel, RunArguments arguments)
      : options(options), kernel(kernel), arguments(std::move(arguments)) {}

  /// Runs `executed`, a later form of the kernel or the kernel itself, on `runner`; reports, saves
  /// and checks.
  int run(DeviceRunner &runner, tile::KernelOp executed);

private:
  bool isStored(unsigned index) {
    return isa<tile::ViewType>(kernel.getArgument(index).getType()) &&
           getViewUse(kernel, index).stored;
  }
  void describe(unsigned index, const HostTensor &tensor);
  int save(const RunArguments &results);
  int check(const RunArguments &results);

  const RunOptions &options;
  tile::KernelOp kernel;
  RunArguments arguments;
};
} // namespace

/// Prints one line about an output: "o: bf16 [1, 2, 256, 128], largest magnitude 2.31, 0 NaN".
void KernelRun::describe(unsigned index, const HostTensor &tensor) {
  double largest = 0;
  int64_t numNaN = 0, numInfinite = 0;
  tensor.forEach([&](int64_t, int64_t offset) {
    double value = tensor.data[offset];
    numNaN += std::isnan(value);
    numInfinite += std::isinf(value);
    if (std::isfinite(value))
      largest = std::max(largest, std::fabs(value));
  });
  llvm::outs() << kernel.getArgumentName(index) << ": "
               << cast<tile::ViewType>(kernel.getArgument(index).getType()).getElementType()
               << " [";
  llvm::interleaveComma(tensor.shape, llvm::outs());
  llvm::outs() << llvm::format("], largest magnitude %.6g, %lld NaN, %lld infinite\n", largest,
                               static_cast<long long>(numNaN), static_cast<long long>(numInfinite));
}

int KernelRun::save(const RunArguments &results) {
  for (const auto &[name, path] : options.outputs)
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
      if (kernel.getArgumentName(i) != name)
        continue;
      if (llvm::Error error = writeNpy(path, results.getTensor(i)))
        return failUsage("--output: " + toString(std::move(error)));
    }
  return ExitSuccess;
}

int KernelRun::check(const RunArguments &results) {
  RunArguments exact = arguments.cloneForRun(), baseline = arguments.cloneForRun();
  if (failed(InterpreterRunner(Precision::Exact).run(kernel, exact.getValues())) ||
      failed(InterpreterRunner(Precision::Kernel).run(kernel, baseline.getValues())))
    return ExitFailed;
  bool holds = true;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (isStored(i))
      holds &= checkOutput(kernel.getArgumentName(i), results.getTensor(i), baseline.getTensor(i),
                           exact.getTensor(i), llvm::outs());
  return holds ? ExitSuccess : ExitFailed;
}

int KernelRun::run(DeviceRunner &runner, tile::KernelOp executed) {
  RunArguments results = arguments.cloneForRun();
  if (failed(runner.run(executed, results.getValues())))
    return ExitFailed;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (isStored(i))
      describe(i, results.getTensor(i));
  if (int code = save(results))
    return code;
  return options.check ? check(results) : ExitSuccess;
}

//===----------------------------------------------------------------------===//
// From options to a run
//===----------------------------------------------------------------------===//

/// The kernel that the options name or the only one; null after an error.
static tile::KernelOp selectKernel(ModuleOp module, StringRef name) {
  SmallVector<tile::KernelOp> kernels(module.getOps<tile::KernelOp>());
  SmallVector<StringRef> names;
  for (tile::KernelOp kernel : kernels) {
    if (kernel.getSymName() == name || (name.empty() && kernels.size() == 1))
      return kernel;
    names.push_back(kernel.getSymName());
  }
  if (names.empty())
    failUsage("the source has no kernel");
  else if (name.empty())
    failUsage("the source has several kernels; give --kernel " + llvm::join(names, " or "));
  else
    failUsage("--kernel: the source has no kernel '" + name + "'; it has " +
              llvm::join(names, ", "));
  return {};
}

/// The module with its schedule chosen and its loops overlapped and split; null after an error.
static OwningOpRef<ModuleOp> schedule(ModuleOp module, StringRef overrides) {
  OwningOpRef<ModuleOp> scheduled = module.clone();
  PassManager pm(module.getContext());
  buildTilePhase(pm);
  buildSchedulePhase(pm, overrides);
  if (failed(pm.run(*scheduled)))
    return {};
  return scheduled;
}

static int runOnInterpreter(const RunOptions &options, ModuleOp module, tile::KernelOp kernel,
                            KernelRun &run) {
  InterpreterRunner runner(options.precision == "exact" ? Precision::Exact : Precision::Kernel);
  if (options.level == "bound")
    return run.run(runner, kernel);
  OwningOpRef<ModuleOp> scheduled = schedule(module, options.schedule);
  if (!scheduled)
    return ExitSource;
  return run.run(runner, scheduled->lookupSymbol<tile::KernelOp>(kernel.getSymName()));
}

static int runOnCuda(const RunOptions &options, const std::string &source, tile::KernelOp kernel,
                     const DiagnosticHandler &handler, KernelRun &run) {
  CompileOptions compileOptions;
  compileOptions.defines = options.defines;
  compileOptions.schedule = options.schedule;
  compileOptions.kernel = kernel.getSymName().str();
  compileOptions.ptxas = options.ptxas;
  CompileStatus status;
  std::unique_ptr<DeviceRunner> runner =
      createCudaRunner(source, options.file, compileOptions, handler, status);
  return runner ? run.run(*runner, kernel) : static_cast<int>(status);
}

/// Options that only another one gives a meaning.
static int checkOptions(const RunOptions &options) {
  bool isInterpreter = options.device == "interp";
  if (!isInterpreter && (options.level != "bound" || options.precision != "kernel"))
    return failUsage("--level and --precision are options of --device interp");
  if (isInterpreter && options.level == "bound" && !options.schedule.empty())
    return failUsage("--schedule changes nothing at --level bound; give --level scheduled");
  if (isInterpreter && !options.ptxas.empty())
    return failUsage("--ptxas is an option of --device cuda");
  return ExitSuccess;
}

int tessera::runKernel(const RunOptions &options) {
  if (int code = checkOptions(options))
    return code;
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> buffer =
      llvm::MemoryBuffer::getFile(options.file);
  if (!buffer)
    return failUsage("cannot read '" + options.file + "': " + buffer.getError().message());
  DialectRegistry registry;
  registerCompilerDialects(registry);
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  DiagnosticPrinter printer;
  DiagnosticHandler handler = [&](const Diagnostic &diagnostic) { printer.print(diagnostic); };
  DiagnosticForwarder forwarder(context, handler, /*remarks=*/false);

  ReadResult source = readSource((*buffer)->getBuffer(), options.file, options.defines, context);
  if (source.status != CompileStatus::Success)
    return static_cast<int>(source.status);
  tile::KernelOp kernel = selectKernel(*source.module, options.kernel);
  if (!kernel)
    return ExitUsage;
  llvm::Expected<RunArguments> arguments = RunArguments::create(kernel, options);
  if (!arguments)
    return failUsage(toString(arguments.takeError()));
  // What the launch itself refuses is a matter of the options, not of the kernel.
  if (failed(resolveLaunch(kernel, arguments->getValues())))
    return ExitUsage;
  KernelRun run(options, kernel, std::move(*arguments));
  if (options.device == "interp")
    return runOnInterpreter(options, *source.module, kernel, run);
  return runOnCuda(options, (*buffer)->getBuffer().str(), kernel, handler, run);
}
