//===- Tuned.cpp - Measured schedules in a compilation --------------------===//

#include "lib/Compiler/Tuned.h"
#include "dialects/Tile/ScheduleFields.h"
#include "lib/Compiler/Pipeline.h"
#include "lib/Source/Diagnostics.h"
#include "lib/Source/Source.h"
#include "lib/Tuning/Database.h"
#include "lib/Tuning/ShapeClass.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Analysis/Speculation.h"
#include "passes/Schedule/ScheduleChoice.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;
using tile::KernelOp;
using tile::ScheduleAttr;
using tuning::Database;
using tuning::Entry;

namespace {
/// The search for an entry, and the attempt to use it.
class Lookup {
public:
  Lookup(StringRef source, StringRef fileName, KernelOp kernel, const CompileOptions &options)
      : source(source), fileName(fileName), kernel(kernel), options(options),
        context(kernel.getContext()) {}

  TunedResult run();

private:
  const Database *openDatabase();
  std::optional<std::string> findGpu(const Database &database);
  std::optional<std::string> classifyShape(const Database &database, StringRef gpu);
  std::optional<std::string> findClass(const Database &database, StringRef gpu);
  bool isForKernel(const Entry &entry, const tuning::Values &bound);
  std::optional<tuning::Values> bind(ArrayRef<source::Define> defines);
  std::vector<source::Define> definesWith(const Entry &entry);
  bool matches(const Entry &entry, const tuning::Values &bound);
  ScheduleAttr getAsked(KernelOp form);
  std::optional<ScheduleAttr> getFixed(const Entry &entry);
  bool isSameProgram(const Entry &entry);
  int64_t rank(const Entry &entry);
  OwningOpRef<ModuleOp> use(const Entry &entry);
  OwningOpRef<ModuleOp> read(const Entry &entry);
  bool chooseSchedule(const Entry &entry, KernelOp tuned);
  void warn(const Entry &entry, const Twine &reason);

  StringRef source, fileName;
  KernelOp kernel;
  const CompileOptions &options;
  MLIRContext *context;
  std::optional<Database> opened;
};
} // namespace

//===----------------------------------------------------------------------===//
// What the options name
//===----------------------------------------------------------------------===//

const Database *Lookup::openDatabase() {
  if (options.tuning.database.empty())
    return &Database::getShipped();
  llvm::Expected<Database> loaded = Database::load(options.tuning.database);
  if (loaded)
    return &opened.emplace(std::move(*loaded));
  emitError(UnknownLoc::get(context)) << "schedule database: " << toString(loaded.takeError());
  return nullptr;
}

std::optional<std::string> Lookup::findGpu(const Database &database) {
  const std::string &wanted = options.tuning.gpu;
  if (wanted.empty() || database.getGpus().count(wanted))
    return wanted.empty() ? database.getDefaultGpu() : wanted;
  InFlightDiagnostic error = emitError(UnknownLoc::get(context));
  error << "the schedule database has no measurements on '" << wanted << "'";
  if (!database.getGpus().empty()) {
    error << "; it has those on ";
    llvm::interleaveComma(database.getGpus(), error,
                          [&](const auto &gpu) { error << "'" << gpu.first << "'"; });
  }
  return std::nullopt;
}

/// The class of the shape that the options give: empty where it has none, nothing after an error.
std::optional<std::string> Lookup::classifyShape(const Database &database, StringRef gpu) {
  llvm::StringMap<int64_t> dims;
  for (const auto &[dim, extent] : options.tuning.shape)
    dims[dim] = extent;
  if (llvm::Error error = tuning::checkShape(kernel, dims)) {
    emitError(UnknownLoc::get(context)) << toString(std::move(error));
    return std::nullopt;
  }
  auto found = database.getGpus().find(gpu.str());
  if (found == database.getGpus().end())
    return std::string();
  llvm::Expected<tuning::ShapeMeasure> measure = tuning::measureShape(kernel, dims);
  if (measure)
    return tuning::getShapeClass(*measure, found->second.multiprocessors);
  kernel.emitRemark(toString(measure.takeError()));
  return std::string();
}

std::optional<std::string> Lookup::findClass(const Database &database, StringRef gpu) {
  std::string name = options.tuning.shapeClass;
  if (name.empty() && !options.tuning.shape.empty())
    return classifyShape(database, gpu);
  if (name.empty())
    return tuning::defaultShapeClass.str();
  SmallVector<std::string> classes = tuning::getShapeClasses();
  if (llvm::is_contained(classes, name))
    return name;
  emitError(UnknownLoc::get(context))
      << "there is no class '" << name << "' of shapes; there are " << llvm::join(classes, ", ");
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Finding an entry
//===----------------------------------------------------------------------===//

/// The values of all parameters, with a definition in place of each default that it names.
std::optional<tuning::Values> Lookup::bind(ArrayRef<source::Define> defines) {
  ParameterResult result = readParameters(source, fileName, defines, *context);
  if (result.status != CompileStatus::Success)
    return std::nullopt;
  tuning::Values values;
  for (const source::Parameter &parameter : result.table.getParameters())
    values[parameter.name] = parameter.value.str();
  return values;
}

/// Whether the entry was made for a kernel with these parameters and dimensions; another one may
/// have the same name.
bool Lookup::isForKernel(const Entry &entry, const tuning::Values &bound) {
  auto sameName = [](const auto &a, const auto &b) { return a.first == b.first; };
  if (entry.kernel != kernel.getSymName() || entry.parameters.size() != bound.size() ||
      !std::equal(bound.begin(), bound.end(), entry.parameters.begin(), sameName))
    return false;
  SmallVector<StringRef> dims = kernel.getDimNames();
  return llvm::all_of(entry.measured.shapes, [&](const tuning::Extents &shape) {
    return shape.size() == dims.size() &&
           llvm::all_of(dims, [&](StringRef dim) { return shape.count(dim.str()) != 0; });
  });
}

/// The definitions of the options, and before them, where the last of a name counts, what the entry
/// tuned.
std::vector<source::Define> Lookup::definesWith(const Entry &entry) {
  std::vector<source::Define> defines;
  for (const std::string &name : entry.tuned)
    defines.emplace_back(name, entry.parameters.at(name));
  llvm::append_range(defines, options.defines);
  return defines;
}

/// Whether the parameters of this compilation are those of the entry. An entry whose own values the
/// source does not take any more is a warning.
bool Lookup::matches(const Entry &entry, const tuning::Values &bound) {
  ErrorCapture errors(context);
  std::optional<tuning::Values> tuned = bind(definesWith(entry));
  if (tuned)
    return *tuned == entry.parameters;
  bool isMeant = llvm::all_of(bound, [&](const auto &value) {
    return entry.isTuned(value.first) || entry.parameters.at(value.first) == value.second;
  });
  if (isMeant)
    warn(entry, errors.getFirst());
  return false;
}

/// What the source, read as `form`, and the options set.
ScheduleAttr Lookup::getAsked(KernelOp form) {
  // Checked before anything is read.
  ScheduleAttr asked = *ScheduleAttr::parseText(
      context, options.schedule, [&] { return emitError(UnknownLoc::get(context)); });
  ScheduleAttr written = form.getScheduleAttr();
  return written ? written.overriddenBy(asked) : asked;
}

/// The fields that the entry's contestants had in common; nothing where they cannot be read.
std::optional<ScheduleAttr> Lookup::getFixed(const Entry &entry) {
  ErrorCapture errors(context);
  FailureOr<ScheduleAttr> fixed = ScheduleAttr::parseText(
      context, entry.fixed, [&] { return emitError(UnknownLoc::get(context)); });
  return failed(fixed) ? std::nullopt : std::optional(*fixed);
}

/// Whether the entry's contestants ran what this compilation compiles: those that were told not to
/// speculate ran the exact region alone, which says nothing of a kernel that may speculate.
bool Lookup::isSameProgram(const Entry &entry) {
  std::optional<ScheduleAttr> fixed = getFixed(entry);
  return !fixed || fixed->getSpeculate().value_or(true) || !findSpeculation(kernel) ||
         !getAsked(kernel).getSpeculate().value_or(true);
}

/// How well the fields that the entry's contestants had in common go with those that are asked for:
/// the more of them are, the better, and an entry without any is better than one with others.
int64_t Lookup::rank(const Entry &entry) {
  std::optional<ScheduleAttr> fixed = getFixed(entry);
  if (!fixed)
    return 0;
  int64_t rank = 0;
  tile::ScheduleFields want(getAsked(kernel)), have(*fixed);
  want.visitWith(have, [&](StringRef, const auto &mine, const auto &theirs) {
    if (theirs)
      rank += mine == theirs ? 1 : -1;
  });
  return rank;
}

void Lookup::warn(const Entry &entry, const Twine &reason) {
  kernel.emitWarning("the entry ")
      << entry.describe() << " of the schedule database cannot hold and is left out: " << reason
      << "; measure again with tessera tune";
}

//===----------------------------------------------------------------------===//
// Using an entry
//===----------------------------------------------------------------------===//

/// The source with the entry's parameters and the kernel alone, cleaned up; null after a warning.
OwningOpRef<ModuleOp> Lookup::read(const Entry &entry) {
  ErrorCapture errors(context);
  ReadResult result = readSource(source, fileName, definesWith(entry), *context);
  if (result.status != CompileStatus::Success) {
    warn(entry, errors.getFirst());
    return {};
  }
  KernelOp tuned;
  for (KernelOp other : llvm::make_early_inc_range(result.module->getOps<KernelOp>())) {
    if (other.getSymName() == kernel.getSymName())
      tuned = other;
    else
      other.erase();
  }
  if (!tuned || tuned.getArgumentTypes() != kernel.getArgumentTypes()) {
    warn(entry, "its tile sizes change the kernel's arguments");
    return {};
  }
  PassManager cleanup(context, ModuleOp::getOperationName());
  buildTilePhase(cleanup);
  if (succeeded(cleanup.run(*result.module)))
    return std::move(result.module);
  warn(entry, errors.getFirst());
  return {};
}

/// Why there is no schedule.
static std::string explain(const ScheduleChoice &choice) {
  if (choice.rejections.empty())
    return "its fields exclude each other";
  const ScheduleRejection &first = choice.rejections.front();
  return first.candidate + ": " + first.reason;
}

/// Gives `tuned` the entry's schedule, under what is written and what the options set.
bool Lookup::chooseSchedule(const Entry &entry, KernelOp tuned) {
  ErrorCapture errors(context);
  auto emit = [&] { return emitError(UnknownLoc::get(context)); };
  FailureOr<ScheduleAttr> stored = ScheduleAttr::parseText(context, entry.schedule, emit);
  if (failed(stored)) {
    warn(entry, errors.getFirst());
    return false;
  }
  ScheduleAttr asked = getAsked(tuned);
  auto choices = chooseSchedules(tuned, {stored->overriddenBy(asked), *stored});
  if (failed(choices) || !(*choices)[1].schedule) {
    warn(entry, failed(choices) ? errors.getFirst() : explain((*choices)[1]));
    return false;
  }
  if (!(*choices)[0].schedule) {
    kernel.emitRemark("the fields that are set do not go with the entry ")
        << entry.describe()
        << " of the schedule database, which is left out: " << explain((*choices)[0]);
    return false;
  }
  tuned.setScheduleAttr((*choices)[0].schedule);
  return true;
}

/// "B = 1, SQ = 16384: 3.21 ms, 3.40 ms with the model's choice; B = 4, ...".
static std::string printMeasurement(const tuning::Measurement &measured) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (auto [i, shape] : llvm::enumerate(measured.shapes))
    os << llvm::formatv("{0}{1}: {2:f4} ms, {3:f4} ms with the model's choice", i ? "; " : "",
                        tuning::print(shape), measured.ms[i], measured.modelMs[i]);
  if (!measured.measuredWith.empty())
    os << "; measured with " << tuning::print(measured.measuredWith);
  return text;
}

OwningOpRef<ModuleOp> Lookup::use(const Entry &entry) {
  OwningOpRef<ModuleOp> module = read(entry);
  if (!module)
    return {};
  KernelOp tuned = *module->getOps<KernelOp>().begin();
  if (!chooseSchedule(entry, tuned))
    return {};
  InFlightDiagnostic remark = tuned.emitRemark("schedule from the database: entry ");
  remark << entry.describe();
  for (const std::string &name : entry.tuned)
    remark << ", with " << name << " = " << entry.parameters.at(name);
  remark << "; " << printMeasurement(entry.measured);
  return module;
}

TunedResult Lookup::run() {
  TunedResult result;
  result.status = CompileStatus::UsageError;
  const Database *database = openDatabase();
  if (!database)
    return result;
  std::optional<std::string> gpu = findGpu(*database);
  if (!gpu)
    return result;
  std::optional<std::string> shapeClass = findClass(*database, *gpu);
  if (!shapeClass)
    return result;
  result.status = CompileStatus::Success;
  std::optional<tuning::Values> bound = bind(options.defines);
  bool isKnown = false;
  const Entry *best = nullptr;
  for (const Entry &entry : database->getEntries()) {
    if (!isForKernel(entry, *bound))
      continue;
    isKnown = true;
    if (entry.gpu == *gpu && entry.shapeClass == *shapeClass && matches(entry, *bound) &&
        isSameProgram(entry) && (!best || rank(entry) > rank(*best)))
      best = &entry;
  }
  if (best) {
    result.module = use(*best);
    result.entry = best->describe();
  } else if (isKnown) {
    kernel.emitRemark("the schedule database has no entry for these parameters, class '")
        << *shapeClass << "'; the model chooses";
  }
  return result;
}

TunedResult tessera::findTuned(StringRef source, StringRef fileName, KernelOp kernel,
                               const CompileOptions &options) {
  return Lookup(source, fileName, kernel, options).run();
}
