//===- KernelSource.cpp - The kernel that the options name ----------------===//

#include "tools/tessera/KernelSource.h"
#include "lib/Compiler/Pipeline.h"
#include "lib/Source/Source.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Schedule/ScheduleChoice.h"
#include "tools/tessera/Commands.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace tessera;

int tessera::failUsage(const llvm::Twine &message) {
  llvm::errs() << "tessera: " << message << "\n";
  return ExitUsage;
}

static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registerCompilerDialects(registry);
  return registry;
}

KernelSource::KernelSource()
    : handler([this](const Diagnostic &diagnostic) { printer.print(diagnostic); }),
      context(makeRegistry()), forwarder(context, handler, /*remarks=*/false) {
  context.printOpOnDiagnostic(false);
}

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

int KernelSource::read(const RunOptions &options) {
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> buffer =
      llvm::MemoryBuffer::getFile(options.file);
  if (!buffer)
    return failUsage("cannot read '" + options.file + "': " + buffer.getError().message());
  text = (*buffer)->getBuffer().str();
  ReadResult source = readSource(text, options.file, options.defines, context, options.imports);
  if (source.status != CompileStatus::Success)
    return static_cast<int>(source.status);
  module = std::move(source.module);
  kernel = selectKernel(*module, options.kernel);
  return kernel ? ExitSuccess : ExitUsage;
}

OwningOpRef<ModuleOp> KernelSource::schedule(StringRef overrides) {
  OwningOpRef<ModuleOp> scheduled = module->clone();
  for (auto other : llvm::make_early_inc_range(scheduled->getOps<tile::KernelOp>()))
    if (other.getSymName() != kernel.getSymName())
      other.erase();
  FailureOr<tile::ScheduleAttr> fields = parseSchedule(context, overrides);
  if (failed(fields))
    return {};
  overrideSchedules(*scheduled, *fields);
  PassManager pm(&context);
  buildTilePhase(pm);
  buildSchedulePhase(pm);
  if (failed(pm.run(*scheduled)))
    return {};
  return scheduled;
}
