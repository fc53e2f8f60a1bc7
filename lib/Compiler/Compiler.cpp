//===- Compiler.cpp - From a source to what was asked for -----------------===//

#include "dialects/Tile/Tile.h"
#include "lib/Codegen/EmitPTX.h"
#include "lib/Codegen/Gate.h"
#include "lib/Compiler/Bundle.h"
#include "lib/Compiler/Dump.h"
#include "lib/Compiler/Pipeline.h"
#include "lib/Compiler/Trials.h"
#include "lib/Compiler/Tuned.h"
#include "lib/Source/Diagnostics.h"
#include "lib/Source/Source.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Hop/HopPasses.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
namespace json = llvm::json;

namespace tessera {

namespace {
/// One compilation, from the text of a source to the requested form.
class Compilation {
public:
  Compilation(MLIRContext &context, const CompileOptions &options)
      : context(context), options(options), dump(options.dumpDir) {
    timingManager.setEnabled(options.timing);
    timing = timingManager.getRootScope();
  }

  CompileStatus run(StringRef text, StringRef fileName);

  CompileResult result;

private:
  CompileStatus read(StringRef text, StringRef fileName);
  CompileStatus checkSchedule();
  CompileStatus checkInstrument();
  CompileStatus selectKernel();
  CompileStatus applyDatabase(StringRef text, StringRef fileName);
  CompileStatus readParameters();
  CompileStatus compileModule(OwningOpRef<ModuleOp> form);
  CompileStatus runPhase(StringRef name, llvm::function_ref<void(OpPassManager &)> build);
  CompileStatus lower();
  CompileStatus checkLowered();
  CompileStatus generateCode();
  CompileStatus assemblePTX(StringRef ptx, const PTXText &index);
  CompileStatus finish(const PTXText &index, const PtxasLog *log, ImageKind kind, StringRef image);
  void printModule();

  MLIRContext &context;
  const CompileOptions &options;
  DefaultTimingManager timingManager;
  TimingScope timing;
  Dump dump;
  /// The source as it was read; with what the database has for it; and what is being compiled.
  OwningOpRef<ModuleOp> source;
  TunedResult tuned;
  OwningOpRef<ModuleOp> module;
  json::Object parameters;
  std::optional<InstrumentTimelineOptions> timeline;
  StringRef sourceText;
};
} // namespace

//===----------------------------------------------------------------------===//
// Input
//===----------------------------------------------------------------------===//

/// Parses the schedule of the options before any pass runs, so that a misspelt field is an error of
/// usage and not of the source.
CompileStatus Compilation::checkSchedule() {
  if (options.schedule.empty())
    return CompileStatus::Success;
  // No source has been read yet that would have loaded it.
  context.getOrLoadDialect<tile::TileDialect>();
  FailureOr<tile::ScheduleAttr> schedule =
      tile::ScheduleAttr::parseText(&context, options.schedule, [&] {
        return emitError(UnknownLoc::get(&context))
               << "in the schedule '" << options.schedule << "': ";
      });
  return failed(schedule) ? CompileStatus::UsageError : CompileStatus::Success;
}

CompileStatus Compilation::checkInstrument() {
  llvm::Expected<std::optional<InstrumentTimelineOptions>> parsed =
      parseInstrument(options.instrument);
  if (!parsed) {
    emitError(UnknownLoc::get(&context)) << toString(parsed.takeError());
    return CompileStatus::UsageError;
  }
  timeline = *parsed;
  return CompileStatus::Success;
}

/// Leaves only the kernel that the options name.
CompileStatus Compilation::selectKernel() {
  SmallVector<tile::KernelOp> kernels(source->getOps<tile::KernelOp>());
  if (options.kernel.empty()) {
    if (!kernels.empty())
      return CompileStatus::Success;
    emitError(source->getLoc()) << "the source has no kernel; write one with tile.kernel";
    return CompileStatus::SourceError;
  }
  bool found = llvm::any_of(
      kernels, [&](tile::KernelOp kernel) { return kernel.getSymName() == options.kernel; });
  if (!found) {
    InFlightDiagnostic error = emitError(source->getLoc());
    error << "the source has no kernel '" << options.kernel << "'";
    if (!kernels.empty()) {
      error << "; it has ";
      llvm::interleaveComma(kernels, error,
                            [&](tile::KernelOp kernel) { error << kernel.getSymName(); });
    }
    return CompileStatus::UsageError;
  }
  for (tile::KernelOp kernel : kernels)
    if (kernel.getSymName() != options.kernel)
      kernel.erase();
  return CompileStatus::Success;
}

CompileStatus Compilation::read(StringRef text, StringRef fileName) {
  TimingScope scope = timing.nest("Reading");
  ReadResult input = readSource(text, fileName, options.defines, context);
  if (input.status != CompileStatus::Success)
    return input.status;
  source = std::move(input.module);
  CompileStatus status = selectKernel();
  if (status == CompileStatus::Success && options.tuning.useDatabase)
    status = applyDatabase(text, fileName);
  return status;
}

/// Finds measured tile sizes and a measured schedule, where the database has them.
CompileStatus Compilation::applyDatabase(StringRef text, StringRef fileName) {
  SmallVector<tile::KernelOp> kernels(source->getOps<tile::KernelOp>());
  // The kernels of a source share its parameters, and an entry is for one of them.
  if (kernels.size() != 1)
    return CompileStatus::Success;
  tuned = findTuned(text, fileName, kernels.front(), options);
  return tuned.status;
}

/// The values of the module's parameters.
CompileStatus Compilation::readParameters() {
  auto bound = (*module)->getAttrOfType<DictionaryAttr>(parametersAttrName);
  if (!bound)
    return CompileStatus::Success;
  FailureOr<json::Value> value = toJSON(bound, module->getLoc());
  if (failed(value))
    return CompileStatus::SourceError;
  parameters = std::move(*value->getAsObject());
  return CompileStatus::Success;
}

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

CompileStatus Compilation::runPhase(StringRef name,
                                    llvm::function_ref<void(OpPassManager &)> build) {
  TimingScope scope = timing.nest(name);
  PassManager pm(&context, ModuleOp::getOperationName());
  // Fails where no tool has registered MLIR's options, which is no error.
  (void)applyPassManagerCLOptions(pm);
  pm.enableVerifier(options.verifyEach);
  if (options.timing)
    pm.enableTiming(scope);
  if (dump.isEnabled())
    pm.addInstrumentation(dump.createInstrumentation());
  if (!options.reproducer.empty())
    pm.enableCrashReproducerGeneration(options.reproducer);
  build(pm);
  return failed(pm.run(*module)) ? CompileStatus::SourceError : CompileStatus::Success;
}

CompileStatus Compilation::lower() {
  struct Phase {
    StringRef name;
    EmitKind level;
    llvm::function_ref<void(OpPassManager &)> build;
  };
  auto buildSchedule = [&](OpPassManager &pm) { buildSchedulePhase(pm, options.schedule); };
  auto buildBarriers = [&](OpPassManager &pm) {
    buildBarriersPhase(pm, timeline ? &*timeline : nullptr);
  };
  const Phase phases[] = {{"Tile passes", EmitKind::Tile, buildTilePhase},
                          {"Schedule passes", EmitKind::Scheduled, buildSchedule},
                          {"Hop passes", EmitKind::Hop, buildHopPhase},
                          {"Barrier passes", EmitKind::Barriers, buildBarriers},
                          {"Lowering to LLVM", EmitKind::LLVM, buildLLVMPhase}};
  for (const Phase &phase : phases) {
    if (phase.level > options.emit)
      break;
    CompileStatus status = runPhase(phase.name, phase.build);
    if (status != CompileStatus::Success)
      return status;
  }
  return options.emit >= EmitKind::LLVM ? checkLowered() : CompileStatus::Success;
}

/// Translation needs every operation to be of a dialect that has one; the first that is not tells
/// which pass left it.
CompileStatus Compilation::checkLowered() {
  WalkResult walk = module->walk([&](Operation *op) {
    StringRef dialect = op->getName().getDialectNamespace();
    if (isa<ModuleOp>(op) || dialect == "llvm" || dialect == "nvvm")
      return WalkResult::advance();
    op->emitError() << "'" << op->getName() << "' is not lowered to the LLVM dialect";
    return WalkResult::interrupt();
  });
  return walk.wasInterrupted() ? CompileStatus::SourceError : CompileStatus::Success;
}

void Compilation::printModule() {
  llvm::raw_string_ostream stream(result.output);
  module->print(stream);
  stream << '\n';
}

//===----------------------------------------------------------------------===//
// Machine code
//===----------------------------------------------------------------------===//

CompileStatus Compilation::finish(const PTXText &index, const PtxasLog *log, ImageKind kind,
                                  StringRef image) {
  FailureOr<json::Array> kernels = describeKernels(*module, index, log);
  if (failed(kernels))
    return CompileStatus::SourceError;
  for (json::Value &kernel : *kernels) {
    json::Object &object = *kernel.getAsObject();
    nameTimelineStages(object, sourceText);
    KernelReport report;
    report.name = object.getString("name").value_or("").str();
    report.description = llvm::formatv("{0:2}", kernel);
    report.report = llvm::formatv("{0:2}", *object.get("report"));
    result.kernels.push_back(std::move(report));
  }
  if (options.emit == EmitKind::Bundle)
    result.output = writeBundle(std::move(parameters), kind, image, std::move(*kernels));
  else
    result.output = image.str();
  return CompileStatus::Success;
}

CompileStatus Compilation::assemblePTX(StringRef ptx, const PTXText &index) {
  TimingScope scope = timing.nest("ptxas");
  Assembly assembly = assemble(*module, ptx, index, options.ptxas, options.ptxasArguments);
  scope.stop();
  dump.write("ptxas.log", assembly.logText, module->getLoc());
  dump.write("kernel.cubin", assembly.cubin, module->getLoc());
  switch (assembly.outcome) {
  case GateOutcome::Pass:
    return finish(index, &assembly.log, ImageKind::Cubin, assembly.cubin);
  case GateOutcome::Refused:
    return CompileStatus::SourceError;
  case GateOutcome::NotAssembled:
    return CompileStatus::ToolchainError;
  }
  llvm_unreachable("covered switch");
}

CompileStatus Compilation::generateCode() {
  EmitPTXOptions emission;
  std::string llvmIR;
  if (dump.isEnabled())
    emission.llvmIR = &llvmIR;
  CompileStatus status = runPhase("Preparing the translation", [&](OpPassManager &pm) {
    buildEmissionPipeline(pm, emission.lineInfo);
  });
  if (status != CompileStatus::Success)
    return status;
  FailureOr<std::string> ptx = emitPTX(*module, emission, timing);
  dump.write("kernel.ll", llvmIR, module->getLoc());
  if (failed(ptx))
    return CompileStatus::SourceError;
  dump.write("kernel.ptx", *ptx, module->getLoc());
  PTXText index(*ptx);
  bool ships =
      options.emit == EmitKind::PTX || (options.emit == EmitKind::Bundle && options.bundlePtx);
  return ships ? finish(index, nullptr, ImageKind::PTX, *ptx) : assemblePTX(*ptx, index);
}

/// One trial: from a form of the source to what was asked for.
CompileStatus Compilation::compileModule(OwningOpRef<ModuleOp> form) {
  module = std::move(form);
  result = CompileResult();
  if (CompileStatus status = readParameters(); status != CompileStatus::Success)
    return status;
  dump.writeModule(*module, "source");
  CompileStatus status = lower();
  if (status == CompileStatus::Success && options.emit <= EmitKind::LLVM)
    printModule();
  else if (status == CompileStatus::Success)
    status = generateCode();
  if (status == CompileStatus::Success && dump.hasFailed())
    return CompileStatus::UsageError;
  return status;
}

CompileStatus Compilation::run(StringRef text, StringRef fileName) {
  sourceText = text;
  CompileStatus status = checkSchedule();
  if (status == CompileStatus::Success)
    status = checkInstrument();
  if (status == CompileStatus::Success)
    status = read(text, fileName);
  if (status != CompileStatus::Success)
    return status;
  if (failed(dump.prepare(*source)))
    return CompileStatus::UsageError;
  auto compile = [&](OwningOpRef<ModuleOp> form) { return compileModule(std::move(form)); };
  Trials trials(context, options.schedule, compile);
  if (tuned.module && trials.useTuned(std::move(tuned.module), tuned.entry, status))
    return status;
  return trials.run(*source);
}

//===----------------------------------------------------------------------===//
// Interface
//===----------------------------------------------------------------------===//

CompileResult compile(const std::string &source, const std::string &fileName,
                      const CompileOptions &options, const DiagnosticHandler &handler) {
  DialectRegistry registry;
  registerCompilerDialects(registry);
  // A module holds a few kernels and most passes work on the whole of it.
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  // A diagnostic points into the source; the whole operation behind it would bury the message.
  context.printOpOnDiagnostic(false);
  DiagnosticForwarder forwarder(context, handler, options.remarks);
  Compilation compilation(context, options);
  compilation.result.status = compilation.run(source, fileName);
  if (compilation.result.status != CompileStatus::Success) {
    compilation.result.output.clear();
    compilation.result.kernels.clear();
  }
  return std::move(compilation.result);
}

CompileResult compileFile(const std::string &path, const CompileOptions &options,
                          const DiagnosticHandler &handler) {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(path, /*IsText=*/true);
  if (buffer)
    return compile((*buffer)->getBuffer().str(), path == "-" ? "<stdin>" : path, options, handler);
  if (handler) {
    Diagnostic diagnostic;
    diagnostic.file = path;
    diagnostic.message = "cannot read the file: " + buffer.getError().message();
    handler(diagnostic);
  }
  CompileResult result;
  result.status = CompileStatus::UsageError;
  return result;
}

} // namespace tessera
