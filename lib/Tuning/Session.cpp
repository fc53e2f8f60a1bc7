//===- Session.cpp - Preparing and compiling what is to be measured -------===//

#include "lib/Tuning/Session.h"
#include "lib/Codegen/Ptxas.h"
#include "lib/Compiler/Pipeline.h"
#include "lib/Database/Json.h"
#include "lib/Source/Diagnostics.h"
#include "lib/Source/Shipped.h"
#include "lib/Source/Source.h"
#include "lib/Support/Json.h"
#include "lib/Tuning/Programs.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <atomic>
#include <mutex>
#include <thread>

using namespace tessera;
using namespace tessera::tuning;
using llvm::ArrayRef;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;
namespace json = llvm::json;

//===----------------------------------------------------------------------===//
// Preparing
//===----------------------------------------------------------------------===//

namespace {
/// Reports errors of the preparation as a compilation does.
class Reporter {
public:
  explicit Reporter(const DiagnosticHandler &handler) : handler(handler) {}

  CompileStatus fail(const Twine &message) const {
    Diagnostic diagnostic;
    diagnostic.message = message.str();
    handler(diagnostic);
    return CompileStatus::UsageError;
  }

private:
  const DiagnosticHandler &handler;
};
} // namespace

/// Measures the shapes of `spec` on the kernel or the sequence `name`, as the source's defaults
/// make it.
static CompileStatus measureShapes(const TargetSpec &spec, const std::string &source,
                                   const std::string &name, const DiagnosticHandler &handler,
                                   std::vector<TargetShape> &shapes) {
  mlir::MLIRContext context(makeCompilerRegistry(), mlir::MLIRContext::Threading::DISABLED);
  DiagnosticForwarder forwarder(context, handler, /*remarks=*/false);
  ReadResult read = readSource(source, spec.file, spec.space.defines, context);
  if (read.status != CompileStatus::Success)
    return read.status;
  // What a mask leaves of loops is found behind the reader.
  mlir::PassManager cleanup(&context, mlir::ModuleOp::getOperationName());
  buildStages(cleanup, EmitKind::Tile, EmitKind::Tile);
  if (failed(cleanup.run(*read.module)))
    return CompileStatus::SourceError;
  auto entry = read.module->lookupSymbol<tile::EntryOpInterface>(name);
  for (const Extents &extents : spec.shapes) {
    llvm::StringMap<int64_t> dims;
    for (const auto &[dim, extent] : extents)
      dims[dim] = extent;
    if (Error error = checkShape(entry, dims))
      return Reporter(handler).fail("--shape: " + toString(std::move(error)));
    llvm::Expected<ShapeMeasure> measure = measureShape(entry, dims);
    if (!measure)
      return Reporter(handler).fail("--shape: " + toString(measure.takeError()));
    shapes.push_back({extents, *measure});
  }
  return CompileStatus::Success;
}

/// The parameters of a candidate with the values of `also` in place of those of the target.
static CompileStatus bindAlso(const TargetSpec &spec, const std::string &source, const Values &also,
                              const DiagnosticHandler &handler, Contestant &contestant) {
  Defines defines(contestant.candidate.tuned.begin(), contestant.candidate.tuned.end());
  defines.insert(defines.end(), spec.space.defines.begin(), spec.space.defines.end());
  defines.insert(defines.end(), also.begin(), also.end());
  SourceInfo info = inspect(source, spec.file, defines, handler);
  if (info.status != CompileStatus::Success)
    return info.status;
  Values &values = contestant.alsoParameters.emplace_back();
  for (const ParameterInfo &parameter : info.parameters)
    values[parameter.name] = parameter.defaultValue;
  return CompileStatus::Success;
}

/// The parameters of which the source has alternatives and the target names one.
static std::vector<std::string> findGiven(const TargetSpec &spec, const SourceInfo &info) {
  std::vector<std::string> given;
  for (const ParameterInfo &parameter : info.parameters)
    if (!parameter.alternatives.empty() &&
        llvm::any_of(spec.space.defines,
                     [&](const auto &define) { return define.first == parameter.name; }))
      given.push_back(parameter.name);
  return given;
}

namespace {
/// Identifies the programs of a target with the values of `also`. Contestants differ in their
/// schedules more often than in their programs, and reading a source takes a while.
class AlsoPrograms {
public:
  AlsoPrograms(const TargetSpec &spec, const std::string &source, const std::string &kernel)
      : spec(spec), source(source), kernel(kernel) {}

  /// Adds to `programs` that with each of `also` where tuning chose `tuned`.
  CompileStatus add(const Values &tuned, const DiagnosticHandler &handler,
                    std::vector<std::string> &programs) {
    for (const Values &also : spec.also) {
      Defines defines(tuned.begin(), tuned.end());
      defines.insert(defines.end(), spec.space.defines.begin(), spec.space.defines.end());
      defines.insert(defines.end(), also.begin(), also.end());
      std::string &program = known[defines];
      if (program.empty()) {
        llvm::Expected<std::string> found = identifyProgram(source, spec.file, kernel, defines);
        if (!found)
          return Reporter(handler).fail("--also: " + toString(found.takeError()));
        program = std::move(*found);
      }
      programs.push_back(program);
    }
    return CompileStatus::Success;
  }

private:
  const TargetSpec &spec;
  const std::string &source, &kernel;
  std::map<Defines, std::string> known;
};
} // namespace

/// Enumerates the candidates of the kernel that `spec` names, whose forms in a sequence go to
/// `forms`.
static CompileStatus prepareKernel(const TargetSpec &spec, const std::string &source,
                                   const SourceInfo &info, const DiagnosticHandler &handler,
                                   Target &target, std::vector<SequenceForm> &forms) {
  Enumeration found;
  CompileStatus status = enumerateCandidates(source, spec.file, spec.space, handler, found);
  if (status != CompileStatus::Success)
    return status;
  target.file = llvm::sys::path::filename(spec.file).str();
  target.kernel = found.kernel;
  target.program = found.program;
  target.scalars = spec.scalars;
  target.orders = spec.orders;
  target.fixed = std::move(found.fixed);
  target.given = findGiven(spec, info);
  target.also = spec.also;
  target.rejections = std::move(found.rejections);
  target.isCut = found.isCut;
  forms = std::move(found.forms);
  AlsoPrograms programs(spec, source, target.kernel);
  status = programs.add({}, handler, target.alsoPrograms);
  for (Candidate &candidate : found.candidates) {
    Contestant &contestant = target.contestants.emplace_back();
    contestant.candidate = std::move(candidate);
    contestant.timings.resize(spec.shapes.size());
    for (const Values &also : spec.also)
      if (status == CompileStatus::Success)
        status = bindAlso(spec, source, also, handler, contestant);
    if (status == CompileStatus::Success)
      status = programs.add(contestant.candidate.tuned, handler, contestant.alsoPrograms);
  }
  return status;
}

/// The sequence that `name` means: where it is empty, the only one of the source.
static const EntryInfo *findSequence(const SourceInfo &info, StringRef name) {
  if (name.empty())
    return info.sequences.size() == 1 ? &info.sequences.front() : nullptr;
  auto found =
      llvm::find_if(info.sequences, [&](const EntryInfo &other) { return other.name == name; });
  return found == info.sequences.end() ? nullptr : &*found;
}

/// Adds a target for each kernel of a sequence.
static CompileStatus prepareSequence(const TargetSpec &spec, const std::string &source,
                                     const SourceInfo &info, const EntryInfo &sequence,
                                     const DiagnosticHandler &handler, Session &session) {
  std::vector<TargetShape> shapes;
  CompileStatus status = measureShapes(spec, source, sequence.name, handler, shapes);
  TargetSequence whole;
  whole.name = sequence.name;
  for (const std::string &kernel : sequence.launches) {
    if (status != CompileStatus::Success)
      return status;
    TargetSpec part = spec;
    part.space.kernel = kernel;
    part.space.sequence = sequence.name;
    Target &target = session.targets.emplace_back();
    target.sequence = session.sequences.size();
    target.shapes = shapes;
    std::vector<SequenceForm> forms;
    status = prepareKernel(part, source, info, handler, target, forms);
    for (SequenceForm &form : forms)
      if (llvm::none_of(whole.forms, [&](const auto &known) { return known.tuned == form.tuned; }))
        whole.forms.push_back(std::move(form));
  }
  session.sequences.push_back(std::move(whole));
  return status;
}

CompileStatus tessera::tuning::prepareTargets(TargetSpec spec, const DiagnosticHandler &handler,
                                              Session &session, std::vector<std::string> &sources) {
  llvm::Expected<SourceFile> file = openSource(spec.file);
  if (!file)
    return Reporter(handler).fail(toString(file.takeError()));
  spec.file = file->name;
  const std::string &source = file->text;
  if (spec.shapes.empty())
    return Reporter(handler).fail("there is no shape to measure; give --shape NAME=N,...");
  SourceInfo info = inspect(source, spec.file, spec.space.defines, handler);
  CompileStatus status = info.status;
  if (status != CompileStatus::Success)
    return status;
  if (const EntryInfo *sequence = findSequence(info, spec.space.kernel)) {
    status = prepareSequence(spec, source, info, *sequence, handler, session);
  } else {
    Target &target = session.targets.emplace_back();
    std::vector<SequenceForm> none;
    status = prepareKernel(spec, source, info, handler, target, none);
    if (status == CompileStatus::Success)
      status = measureShapes(spec, source, target.kernel, handler, target.shapes);
  }
  sources.resize(session.targets.size(), source);
  return status;
}

const SequenceForm *TargetSequence::findForm(const Values &programs) const {
  auto found = llvm::find_if(forms, [&](const SequenceForm &form) {
    return form.error.empty() && llvm::all_of(programs, [&](const auto &item) {
             auto own = form.programs.find(item.first);
             return own != form.programs.end() && own->second == item.second;
           });
  });
  return found == forms.end() ? nullptr : &*found;
}

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

/// What ptxas counted, from a kernel's entry of the bundle.
static Resources readResources(const KernelReport &kernel) {
  Resources resources;
  llvm::Expected<json::Value> description = parseJson(kernel.description);
  if (!description) {
    consumeError(description.takeError());
    return resources;
  }
  const json::Object &object = *description->getAsObject();
  resources.sharedMemory = object.getInteger("shared_memory").value_or(0);
  if (const json::Array *block = object.getArray("block"))
    resources.threads = block->front().getAsInteger().value_or(0);
  const json::Object *report = object.getObject("report");
  const json::Object *counted = report ? report->getObject("resources") : nullptr;
  if (!counted)
    return resources;
  resources.registers = counted->getInteger("registers").value_or(0);
  resources.spillBytes = counted->getInteger("spill_store_bytes").value_or(0) +
                         counted->getInteger("spill_load_bytes").value_or(0);
  return resources;
}

namespace {
/// Compiles contestants, and the forms of sequences, on several threads.
class Builder {
public:
  Builder(Session &session, ArrayRef<std::string> sources, const BuildOptions &options)
      : session(session), sources(sources), options(options) {
    for (size_t t = 0; t < session.targets.size(); ++t)
      for (size_t c = 0; c < session.targets[t].contestants.size(); ++c)
        work.push_back([this, t, c] { compileContestant(t, c); });
    for (size_t s = 0; s < session.sequences.size(); ++s)
      for (size_t f = 0; f < session.sequences[s].forms.size(); ++f)
        work.push_back([this, s, f] { compileForm(s, f); });
  }

  Error run();

private:
  void runThread();
  void compileContestant(size_t number, size_t index);
  void compileForm(size_t number, size_t index);
  CompileResult compileOne(size_t target, CompileOptions compilation, const std::string &name,
                           std::string &bundle, std::string &error);
  void noteFailure(const Twine &message);

  Session &session;
  ArrayRef<std::string> sources;
  const BuildOptions &options;
  std::vector<std::function<void()>> work;
  std::atomic<size_t> next{0};
  std::mutex mutex; ///< guards what follows
  size_t done = 0;
  std::string failure;
};
} // namespace

void Builder::noteFailure(const Twine &message) {
  std::lock_guard<std::mutex> lock(mutex);
  failure = message.str();
}

/// Compiles the source of a target into a bundle; `error` says why it does not compile.
CompileResult Builder::compileOne(size_t target, CompileOptions compilation,
                                  const std::string &name, std::string &bundle,
                                  std::string &error) {
  compilation.ptxas = options.ptxas;
  compilation.tuning.useDatabase = false;
  CompileResult result = compile(sources[target], session.targets[target].file, compilation,
                                 [&](const Diagnostic &diagnostic) {
                                   if (diagnostic.severity == Severity::Error && error.empty())
                                     error = diagnostic.message;
                                 });
  // Without an assembler nothing compiles, and it is no fault of the candidate.
  if (result.status == CompileStatus::ToolchainError)
    noteFailure(error);
  if (result.status != CompileStatus::Success) {
    if (error.empty())
      error = "the compiler gave no reason";
    return result;
  }
  error.clear();
  bundle = name;
  llvm::SmallString<128> path(options.directory);
  llvm::sys::path::append(path, bundle);
  if (Error failed = tuning::writeFile(path, result.output))
    noteFailure(toString(std::move(failed)));
  return result;
}

void Builder::compileContestant(size_t number, size_t index) {
  const Target &target = session.targets[number];
  Contestant &contestant = session.targets[number].contestants[index];
  CompileOptions compilation;
  compilation.defines.assign(contestant.candidate.parameters.begin(),
                             contestant.candidate.parameters.end());
  compilation.schedule = contestant.candidate.schedule;
  compilation.kernel = target.kernel;
  std::string name = llvm::formatv("{0}-{1}-{2}.bundle", target.kernel, number, index).str();
  CompileResult result = compileOne(number, compilation, name, contestant.bundle, contestant.error);
  if (result.status == CompileStatus::Success)
    contestant.resources = readResources(result.kernels.front());
}

/// All kernels of a sequence, as the model chooses them beside the fields that are fixed.
void Builder::compileForm(size_t number, size_t index) {
  TargetSequence &sequence = session.sequences[number];
  SequenceForm &form = sequence.forms[index];
  CompileOptions compilation;
  compilation.defines.assign(form.parameters.begin(), form.parameters.end());
  compilation.kernel = sequence.name;
  size_t part = 0; // Of which all have one source.
  for (size_t t = 0; t < session.targets.size(); ++t) {
    const Target &target = session.targets[t];
    if (target.sequence != number)
      continue;
    part = t;
    if (!target.fixed.empty())
      compilation.schedule +=
          (compilation.schedule.empty() ? "" : ";") + target.kernel + ":" + target.fixed;
  }
  std::string name = llvm::formatv("{0}-{1}-form-{2}.bundle", sequence.name, number, index).str();
  compileOne(part, compilation, name, form.bundle, form.error);
}

void Builder::runThread() {
  for (size_t i = next++; i < work.size(); i = next++) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (!failure.empty())
        return;
    }
    work[i]();
    std::lock_guard<std::mutex> lock(mutex);
    if (options.progress)
      options.progress(++done, work.size());
  }
}

Error Builder::run() {
  if (std::error_code error = llvm::sys::fs::create_directories(options.directory))
    return llvm::createStringError(error, "cannot make the directory '" + options.directory +
                                              "': " + error.message());
  unsigned count = options.threads ? options.threads : std::thread::hardware_concurrency();
  count = std::clamp<size_t>(work.size(), 1, std::max(1u, count));
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < count; ++i)
    threads.emplace_back([this] { runThread(); });
  for (std::thread &thread : threads)
    thread.join();
  if (failure.empty())
    return Error::success();
  return llvm::createStringError(llvm::inconvertibleErrorCode(), failure);
}

Error tessera::tuning::buildContestants(Session &session, ArrayRef<std::string> sources,
                                        const BuildOptions &options) {
  // Where there is none, the first compilation says so.
  llvm::Expected<Ptxas> ptxas = findPtxas(options.ptxas);
  if (ptxas)
    session.ptxas = ptxas->version.getAsString();
  else
    llvm::consumeError(ptxas.takeError());
  return Builder(session, sources, options).run();
}
