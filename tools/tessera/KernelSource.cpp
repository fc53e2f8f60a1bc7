//===- KernelSource.cpp - The kernel that the options name ----------------===//

#include "tools/tessera/KernelSource.h"
#include "dialects/Tile/Entries.h"
#include "lib/Source/Shipped.h"
#include "lib/Source/Source.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Tile/TilePasses.h"
#include "tools/tessera/Commands.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tessera;

KernelSource::KernelSource()
    : handler([this](const Diagnostic &diagnostic) { printer.print(diagnostic); }),
      context(makeCompilerRegistry()), forwarder(context, handler, /*remarks=*/false) {
  context.printOpOnDiagnostic(false);
}

/// The kernel or the sequence that the options name, or the only one; null after an error.
static tile::EntryOpInterface selectKernel(ModuleOp module, StringRef name) {
  if (tile::EntryOpInterface found = tile::findEntry(module, name))
    return found;
  SmallVector<StringRef> names;
  for (tile::EntryOpInterface entry : tile::getEntries(module))
    names.push_back(entry.getSymName());
  if (names.empty())
    reportFailure("the source has no kernel");
  else if (name.empty())
    reportFailure("the source has several kernels; give --kernel " + llvm::join(names, " or "));
  else
    reportFailure("--kernel: the source has no kernel '" + name + "'; it has " +
                  llvm::join(names, ", "));
  return {};
}

int KernelSource::read(const RunOptions &options) {
  llvm::Expected<SourceFile> file = openSource(options.file);
  if (!file)
    return reportFailure(toString(file.takeError()));
  name = std::move(file->name);
  text = std::move(file->text);
  split = options.split;
  ReadResult source =
      readSource(text, name, options.defines, context, options.imports, DebugOps::Keep);
  if (source.status != CompileStatus::Success)
    return static_cast<int>(source.status);
  module = std::move(source.module);
  kernel = selectKernel(*module, options.kernel);
  return kernel ? ExitSuccess : ExitUsage;
}

OwningOpRef<ModuleOp> KernelSource::schedule(ArrayRef<ScheduleOverride> overrides) {
  OwningOpRef<ModuleOp> scheduled = module->clone();
  tile::keepEntry(tile::findEntry(*scheduled, kernel.getSymName()));
  // The kernels that fields are for, as a compilation reads them.
  PassManager splitting(&context), pm(&context);
  splitting.addPass(createTileSplitReductions());
  PipelineOptions pipeline;
  pipeline.split = split;
  buildStages(pm, EmitKind::Tile, EmitKind::Scheduled, pipeline);
  if (failed(splitting.run(*scheduled)) || failed(overrideSchedules(*scheduled, overrides)) ||
      failed(pm.run(*scheduled)))
    return {};
  return scheduled;
}

OwningOpRef<ModuleOp> KernelSource::schedule(StringRef overrides) {
  FailureOr<SmallVector<ScheduleOverride>> parsed = parseSchedules(context, overrides);
  if (failed(parsed))
    return {};
  return schedule(*parsed);
}
