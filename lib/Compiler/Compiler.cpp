//===- Compiler.cpp - From a source to what was asked for -----------------===//

#include "dialects/Hop/Hop.h"
#include "dialects/Tile/Entries.h"
#include "lib/Codegen/EmitPTX.h"
#include "lib/Codegen/Gate.h"
#include "lib/Compiler/Alternatives.h"
#include "lib/Compiler/Bundle.h"
#include "lib/Compiler/Choices.h"
#include "lib/Compiler/Compilation.h"
#include "lib/Compiler/Dump.h"
#include "lib/Compiler/Observer.h"
#include "lib/Compiler/Pipeline.h"
#include "lib/Compiler/Sequences.h"
#include "lib/Compiler/SmallerTiles.h"
#include "lib/Compiler/Trials.h"
#include "lib/Compiler/Tuned.h"
#include "lib/Source/Diagnostics.h"
#include "lib/Source/Source.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Hop/HopPasses.h"
#include "passes/Schedule/ScheduleChoice.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SaveAndRestore.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
namespace json = llvm::json;

namespace tessera {

namespace {
/// One compilation, from the text of a source to the requested form.
class Compilation : private TrialCompiler {
public:
  Compilation(MLIRContext &context, const CompileOptions &options, bool isRead,
              CompilationObserver *observer)
      : context(context), options(options), isRead(isRead), observer(observer),
        dump(options.dumpDir) {
    timingManager.setEnabled(options.timing);
    timing = timingManager.getRootScope();
  }

  CompileStatus run(StringRef text, StringRef fileName);
  CompileStatus runIR(StringRef text, StringRef fileName, EmitKind level);

  CompileResult result;
  /// What parameters take instead where registers or shared memory are short, as rules say.
  Instead instead;

private:
  CompileStatus readOptions();
  CompileStatus read(ArrayRef<source::Define> defines, OwningOpRef<ModuleOp> &form);
  CompileStatus readTuned(const CompileOptions &given, OwningOpRef<ModuleOp> &form,
                          TunedForm &found);
  CompileStatus addAlternatives(OwningOpRef<ModuleOp> &form);
  void findOrigins(ModuleOp source);
  CompileStatus selectKernel(ModuleOp form);
  CompileStatus readParameters();
  CompileStatus compile(OwningOpRef<ModuleOp> form) override;
  ArrayRef<Refusal> getRefusals() const override { return refusals; }
  void forget() override { kept.clear(); }
  bool isKept(StringRef kernel) const override { return kept.count(kernel); }
  bool canJoin(ModuleOp source) const override;
  CompileStatus join(ModuleOp source) override;
  std::string findSmaller(StringRef kernel, Varied varied) override {
    // What nobody reads is not looked for, as in the compilations of the search itself.
    return isRead ? findSmallerTiles(sourceText, fileName, options, kernel, varied, context) : "";
  }
  CompileStatus runPhase(ModuleOp form, StringRef name,
                         llvm::function_ref<void(OpPassManager &)> build);
  CompileStatus lower();
  CompileStatus checkLowered();
  CompileStatus generateCode();
  CompileStatus assemblePTX(StringRef ptx, const PTXText &index);
  CompileStatus keepKernels(const PTXText &index, const PtxasLog *log, std::string image);
  CompileStatus finish(const PTXText &index, const PtxasLog *log, ImageKind kind,
                       std::string image);
  CompileStatus finish(ImageKind kind);
  void begin(ModuleOp form);
  bool isRefused(StringRef kernel) const {
    return llvm::any_of(refusals, [&](const Refusal &refusal) { return refusal.kernel == kernel; });
  }
  void printModule();

  MLIRContext &context;
  const CompileOptions &options;
  const bool isRead;             ///< whether somebody receives the diagnostics
  CompilationObserver *observer; ///< may be null
  DefaultTimingManager timingManager;
  TimingScope timing;
  Dump dump;
  /// What is being compiled.
  OwningOpRef<ModuleOp> module;
  json::Object parameters;
  /// The entries of the bundle, see describeSequence.
  json::Array sequences;
  /// Of the last trial, the kernels that the assembler refused, see checkAssembly.
  std::vector<Refusal> refusals;
  /// The kernels of the result, in order.
  std::vector<std::string> names;
  /// What trials made of the kernels that were not refused, the last of each.
  llvm::StringMap<BundledKernel> kept;
  TunedForm tuned;
  /// Of the source as it was read last, and what they make of each kernel.
  std::vector<Choice> choices;
  llvm::StringMap<json::Object> origins;
  /// The kernels of the choice that is being compiled, if it is one.
  std::optional<Alternatives> alternatives;
  /// The fields that the options set.
  SmallVector<ScheduleOverride> asked;
  std::optional<InstrumentTimelineOptions> timeline;
  StringRef sourceText, fileName;
  std::unique_ptr<source::Files> files; ///< null where IR is compiled
  /// The level of the IR that is compiled.
  std::optional<EmitKind> from;
};
} // namespace

//===----------------------------------------------------------------------===//
// Input
//===----------------------------------------------------------------------===//

/// Reads what the options say in text.
CompileStatus Compilation::readOptions() {
  FailureOr<SmallVector<ScheduleOverride>> schedule = parseSchedules(context, options.schedule);
  if (failed(schedule))
    return CompileStatus::UsageError;
  asked = *schedule;
  llvm::Expected<std::optional<InstrumentTimelineOptions>> parsed =
      parseInstrument(options.instrument);
  if (!parsed) {
    emitError(UnknownLoc::get(&context)) << toString(parsed.takeError());
    return CompileStatus::UsageError;
  }
  timeline = *parsed;
  return CompileStatus::Success;
}

/// Leaves only the kernel or the sequence that the options name, with its kernels.
CompileStatus Compilation::selectKernel(ModuleOp form) {
  SmallVector<tile::EntryOpInterface> entries = tile::getEntries(form);
  if (options.kernel.empty()) {
    if (!entries.empty())
      return CompileStatus::Success;
    emitError(form.getLoc()) << "the source has no kernel; write one with tile.kernel";
    return CompileStatus::SourceError;
  }
  if (tile::EntryOpInterface found = tile::findEntry(form, options.kernel)) {
    tile::keepEntry(found);
    return CompileStatus::Success;
  }
  InFlightDiagnostic error = emitError(form.getLoc());
  error << "the source has no kernel '" << options.kernel << "'";
  if (!entries.empty()) {
    error << "; it has ";
    llvm::interleaveComma(entries, error,
                          [&](tile::EntryOpInterface entry) { error << entry.getSymName(); });
  }
  return CompileStatus::UsageError;
}

/// Refuses constants that no pass lowers, while they have their places: those that folding has
/// moved have none.
static LogicalResult checkConstants(ModuleOp form) {
  WalkResult walk = form.walk([](arith::ConstantOp constant) {
    auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!elements || elements.isSplat())
      return WalkResult::advance();
    constant.emitError("is a constant tile of different elements; build it from tile.iota");
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

/// Reads the source: the kernels that are asked for, with the fields that are asked for, cleaned
/// up.
CompileStatus Compilation::read(ArrayRef<source::Define> defines, OwningOpRef<ModuleOp> &form) {
  TimingScope scope = timing.nest("Reading");
  ReadResult input = readSource(sourceText, fileName, defines, context, options.imports);
  if (input.status != CompileStatus::Success)
    return input.status;
  form = std::move(input.module);
  // What is read later has other definitions.
  if (!files)
    instead = std::move(input.instead);
  files = std::move(input.files);
  choices = std::move(input.choices);
  if (CompileStatus status = selectKernel(*form); status != CompileStatus::Success)
    return status;
  scope.stop();
  if (failed(checkConstants(*form)))
    return CompileStatus::SourceError;
  if (failed(overrideSchedules(*form, asked)))
    return CompileStatus::UsageError;
  if (failed(dump.prepare(*form)))
    return CompileStatus::UsageError;
  dump.writeForm(*form, "source");
  if (observer)
    observer->readSource(*form);
  return runPhase(*form, "Stage tile",
                  [](OpPassManager &pm) { buildStages(pm, EmitKind::Tile, EmitKind::Tile); });
}

/// The values of the module's parameters.
CompileStatus Compilation::readParameters() {
  DictionaryAttr bound =
      tile::TileDialect::ParametersAttrHelper(module->getContext()).getAttr(*module);
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

CompileStatus Compilation::runPhase(ModuleOp form, StringRef name,
                                    llvm::function_ref<void(OpPassManager &)> build) {
  TimingScope scope = timing.nest(name);
  PassManager pm(&context, ModuleOp::getOperationName());
  // Fails where no tool has registered MLIR's options, which is no error.
  (void)applyPassManagerCLOptions(pm);
  pm.enableVerifier(options.verifyEach);
  if (options.timing)
    pm.enableTiming(scope);
  if (dump.isEnabled() || observer)
    pm.addInstrumentation(createFormInstrumentation([this](StringRef pass, Operation *op,
                                                           bool hasFailed) {
      dump.writeForm(op, (pass + (hasFailed ? "-failed" : "")).str());
      if (observer)
        observer->runPass(pass,
                          isa<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>(),
                          hasFailed);
    }));
  build(pm);
  LogicalResult passed =
      options.reproducer.empty() ? pm.run(form) : runReproducibly(pm, form, options.reproducer);
  return failed(passed) ? CompileStatus::SourceError : CompileStatus::Success;
}

CompileStatus Compilation::lower() {
  PipelineOptions pipeline;
  pipeline.timeline = timeline ? &*timeline : nullptr;
  pipeline.split = options.split;
  pipeline.pdl = options.pdl;
  for (const Stage &stage : getStages()) {
    if (stage.level > options.emit)
      break;
    if (stage.level <= from.value_or(EmitKind::Tile))
      continue; // `read` runs the first.
    CompileStatus status = runPhase(*module, ("Stage " + stage.name).str(),
                                    [&](OpPassManager &pm) { stage.build(pm, pipeline); });
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

/// Keeps what was assembled of the kernels that were not refused.
CompileStatus Compilation::keepKernels(const PTXText &index, const PtxasLog *log,
                                       std::string image) {
  FailureOr<json::Array> kernels = describeKernels(*module, index, log);
  if (failed(kernels))
    return CompileStatus::SourceError;
  auto shared = std::make_shared<const std::string>(std::move(image));
  for (json::Value &kernel : *kernels) {
    json::Object &object = *kernel.getAsObject();
    std::string name = object.getString("name").value_or("").str();
    // Of what is lowered already nothing else says the names.
    if (from && *from > EmitKind::Scheduled)
      names.push_back(name);
    if (!isRefused(name))
      kept[name] = {std::move(object), shared};
  }
  return CompileStatus::Success;
}

/// The result of kernels that are kept: of a bundle all, otherwise of their one image.
CompileStatus Compilation::finish(ImageKind kind) {
  SmallVector<BundledKernel> kernels;
  json::Array described;
  for (const std::string &name : names) {
    BundledKernel &kernel = kernels.emplace_back(kept.find(name)->second);
    for (const TunedKernel &known : tuned.kernels)
      if (known.name == name)
        (*kernel.description.getObject("report"))["tuning"] = known.describe();
    KernelReport report;
    report.name = name;
    report.description = llvm::formatv("{0:2}", json::Value(json::Object(kernel.description)));
    json::Object complete = completeReport(kernel.description);
    if (auto known = origins.find(name); known != origins.end())
      complete["choices"] = json::Object(known->second);
    report.report = llvm::formatv("{0:2}", json::Value(std::move(complete)));
    result.kernels.push_back(std::move(report));
    described.push_back(json::Object(kernel.description));
  }
  if (options.emit != EmitKind::Bundle) {
    result.output = *kernels.front().image;
    return CompileStatus::Success;
  }
  for (json::Value &sequence : sequences)
    addDemands(*sequence.getAsObject(), described);
  // A trial of one of them by itself makes no choice.
  json::Array choices;
  if (alternatives && alternatives->size() > 1 && kernels.size() == alternatives->countKernels()) {
    FailureOr<json::Object> choice = alternatives->describe(described, sequences, tuned);
    if (failed(choice))
      return CompileStatus::SourceError;
    choices.push_back(std::move(*choice));
  }
  result.output = writeBundle(json::Object(parameters), kind, kernels, std::move(sequences),
                              std::move(choices));
  return CompileStatus::Success;
}

CompileStatus Compilation::finish(const PTXText &index, const PtxasLog *log, ImageKind kind,
                                  std::string image) {
  CompileStatus status = keepKernels(index, log, std::move(image));
  return status == CompileStatus::Success ? finish(kind) : status;
}

bool Compilation::canJoin(ModuleOp source) const {
  // Files of steps, and a page, show what was compiled last.
  if (dump.isEnabled() || observer || options.emit < EmitKind::Cubin || options.bundlePtx)
    return false;
  return options.emit == EmitKind::Bundle ||
         llvm::hasSingleElement(source.getOps<tile::KernelOp>());
}

CompileStatus Compilation::join(ModuleOp source) {
  begin(source);
  return finish(ImageKind::Cubin);
}

CompileStatus Compilation::assemblePTX(StringRef ptx, const PTXText &index) {
  TimingScope scope = timing.nest("ptxas");
  Assembly assembly = assemble(*module, ptx, index, options.ptxas, options.ptxasArguments);
  scope.stop();
  dump.write("ptxas.log", assembly.logText, module->getLoc());
  dump.write("kernel.cubin", assembly.cubin, module->getLoc());
  switch (assembly.outcome) {
  case GateOutcome::Pass:
    return finish(index, &assembly.log, ImageKind::Cubin, std::move(assembly.cubin));
  case GateOutcome::Refused:
    refusals = std::move(assembly.refusals);
    // Without code, or where ptxas did not say of which it speaks, nothing is known of the others.
    if (assembly.cubin.empty() || isRefused(""))
      return CompileStatus::SourceError;
    (void)keepKernels(index, &assembly.log, std::move(assembly.cubin));
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
  CompileStatus status = runPhase(*module, "Preparing the translation", [&](OpPassManager &pm) {
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
  return ships ? finish(index, nullptr, ImageKind::PTX, std::move(*ptx)) : assemblePTX(*ptx, index);
}

/// Begins a result of the kernels and sequences of `form`.
void Compilation::begin(ModuleOp form) {
  result = CompileResult();
  names.clear();
  for (auto kernel : form.getOps<tile::KernelOp>())
    names.push_back(kernel.getSymName().str());
  sequences.clear();
  for (auto sequence : form.getOps<tile::SequenceOp>())
    sequences.push_back(describeSequence(sequence));
}

/// One trial: from a form of the source that is cleaned up to what was asked for.
CompileStatus Compilation::compile(OwningOpRef<ModuleOp> form) {
  module = std::move(form);
  refusals.clear();
  if (observer)
    observer->beginTrial(*module);
  begin(*module);
  if (CompileStatus status = readParameters(); status != CompileStatus::Success)
    return status;
  // Passes lower kernels; of a sequence nothing changes.
  if (options.emit > EmitKind::Scheduled)
    tile::eraseSequences(*module);
  CompileStatus status = lower();
  if (status == CompileStatus::Success && options.emit <= EmitKind::LLVM)
    printModule();
  else if (status == CompileStatus::Success)
    status = generateCode();
  if (status == CompileStatus::Success && dump.hasFailed())
    return CompileStatus::UsageError;
  return status;
}

/// Reads the source with the definitions of `given`, and looks its kernels up in the database.
CompileStatus Compilation::readTuned(const CompileOptions &given, OwningOpRef<ModuleOp> &form,
                                     TunedForm &found) {
  CompileStatus status = read(given.defines, form);
  if (status != CompileStatus::Success || !options.tuning.useDatabase)
    return status;
  auto readForm = [&](ArrayRef<source::Define> defines, OwningOpRef<ModuleOp> &other) {
    // Choices stay those of `form`: of what an entry changes reports say so.
    llvm::SaveAndRestore<std::vector<Choice>> kept(choices);
    return read(defines, other);
  };
  return findTuned(sourceText, fileName, *form, given, readForm, found);
}

/// Puts the alternatives that the source declares beside `form`, where it declares some.
CompileStatus Compilation::addAlternatives(OwningOpRef<ModuleOp> &form) {
  auto read = [&](ArrayRef<source::Define> defines) {
    std::vector<source::Define> all = options.defines;
    llvm::append_range(all, defines);
    return tessera::readParameters(sourceText, fileName, all, context, options.imports);
  };
  FailureOr<std::vector<std::vector<source::Define>>> further =
      listAlternatives(options.defines, read, context);
  if (failed(further))
    return CompileStatus::SourceError;
  if (further->empty())
    return CompileStatus::Success;
  std::vector<std::string> varied;
  for (const std::vector<source::Define> &defines : *further)
    for (const source::Define &define : defines)
      if (!llvm::is_contained(varied, define.first))
        varied.push_back(define.first);
  alternatives.emplace(varied);
  if (failed(alternatives->add(form->clone(), std::move(tuned))))
    return CompileStatus::SourceError;
  for (const std::vector<source::Define> &defines : *further) {
    CompileOptions given = options;
    llvm::append_range(given.defines, defines);
    OwningOpRef<ModuleOp> other;
    TunedForm found;
    CompileStatus status = readTuned(given, other, found);
    if (status != CompileStatus::Success)
      return status;
    if (failed(alternatives->add(std::move(other), std::move(found))))
      return CompileStatus::SourceError;
  }
  tuned = TunedForm();
  alternatives->merge(form, tuned);
  return CompileStatus::Success;
}

/// Keeps where what `source` and the database say of its kernels comes from, for reports.
void Compilation::findOrigins(ModuleOp source) {
  ModuleOp form = tuned.module ? *tuned.module : source;
  for (auto kernel : form.getOps<tile::KernelOp>()) {
    StringRef name = kernel.getSymName();
    auto isOfKernel = [&](const TunedKernel &known) { return known.name == name; };
    auto known = llvm::find_if(tuned.kernels, isOfKernel);
    origins[name] =
        describeOrigins(kernel, choices, asked, known == tuned.kernels.end() ? nullptr : &*known);
  }
}

CompileStatus Compilation::run(StringRef text, StringRef fileName) {
  sourceText = text;
  this->fileName = fileName;
  CompileStatus status = readOptions();
  if (status != CompileStatus::Success)
    return status;
  OwningOpRef<ModuleOp> source;
  status = readTuned(options, source, tuned);
  if (status == CompileStatus::Success && options.alternatives)
    status = addAlternatives(source);
  if (status != CompileStatus::Success)
    return status;
  findOrigins(*source);
  Trials trials(context, *this);
  status = trials.run(*source, tuned);
  if (status == CompileStatus::SourceError && options.schedule.empty())
    reportRules(*source, choices, options);
  for (const source::RulesFile &file : files->getRules())
    result.files.push_back(file.name);
  for (const source::File &file : files->getFiles())
    if (!llvm::is_contained(result.files, file.name))
      result.files.push_back(file.name);
  return status;
}

CompileStatus Compilation::runIR(StringRef text, StringRef fileName, EmitKind level) {
  this->fileName = fileName;
  from = level;
  if (CompileStatus status = readOptions(); status != CompileStatus::Success)
    return status;
  if (!options.defines.empty() || !options.kernel.empty() || options.alternatives) {
    emitError(FileLineColLoc::get(&context, fileName, 0, 0))
        << "parameters, a kernel and alternatives are chosen of sources; this is IR, in which they "
           "are fixed";
    return CompileStatus::UsageError;
  }
  OwningOpRef<ModuleOp> form = parseSourceString<ModuleOp>(text, ParserConfig(&context), fileName);
  if (!form)
    return CompileStatus::SourceError;
  if (!options.tuning.gpu.empty())
    (*form)->setAttr(kCardAttr, StringAttr::get(&context, options.tuning.gpu));
  if (!hasKernel(*form, level)) {
    emitError(form->getLoc())
        << "has no kernel of the stage that is given; it is the one with which "
           "--emit wrote the module";
    return CompileStatus::UsageError;
  }
  if (!options.schedule.empty() && level != EmitKind::Tile) {
    emitError(form->getLoc())
        << "has a schedule already; fields are set in sources and behind the stage 'tile'";
    return CompileStatus::UsageError;
  }
  if (failed(overrideSchedules(*form, asked)) || failed(dump.prepare(*form)))
    return CompileStatus::UsageError;
  if (level != EmitKind::Tile)
    return compile(std::move(form));
  return Trials(context, *this).run(*form);
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

CompileResult compileOnce(const std::string &source, const std::string &fileName,
                          const CompileOptions &options, const DiagnosticHandler &handler,
                          bool isRead, CompilationObserver *observer, std::optional<EmitKind> from,
                          Instead &instead) {
  // A module holds a few kernels and most passes work on the whole of it.
  MLIRContext context(makeCompilerRegistry(), MLIRContext::Threading::DISABLED);
  // A diagnostic points into the source; the whole operation behind it would bury the message.
  context.printOpOnDiagnostic(false);
  DiagnosticForwarder forwarder(context, handler, options.remarks);
  Compilation compilation(context, options, isRead, observer);
  compilation.result.status =
      from ? compilation.runIR(source, fileName, *from) : compilation.run(source, fileName);
  if (compilation.result.status != CompileStatus::Success) {
    compilation.result.output.clear();
    compilation.result.kernels.clear();
  }
  if (observer)
    observer->endCompilation();
  instead = std::move(compilation.instead);
  return std::move(compilation.result);
}

} // namespace tessera
