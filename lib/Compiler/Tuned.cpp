//===- Tuned.cpp - Measured schedules in a compilation --------------------===//

#include "lib/Compiler/Tuned.h"
#include "dialects/Tile/ScheduleFields.h"
#include "lib/Source/Diagnostics.h"
#include "lib/Source/Source.h"
#include "lib/Tuning/Database.h"
#include "lib/Tuning/ShapeClass.h"
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
  Lookup(StringRef source, StringRef fileName, ModuleOp form, const CompileOptions &options,
         ReadForm readForm)
      : source(source), fileName(fileName), form(form), kernel(*form.getOps<KernelOp>().begin()),
        options(options), readForm(readForm), context(kernel.getContext()) {}

  CompileStatus run(TunedForm &tuned);

private:
  const Database *openDatabase();
  std::optional<std::string> findGpu(const Database &database);
  std::optional<std::string> classifyShape(const Database &database, StringRef gpu);
  std::optional<std::string> findClass(const Database &database, StringRef gpu);
  bool isForKernel(const Entry &entry, const tuning::Values &bound);
  std::optional<tuning::Values> bind(ArrayRef<source::Define> defines);
  std::vector<source::Define> definesWith(const Entry &entry);
  bool matches(const Entry &entry, const tuning::Values &bound);
  std::optional<ScheduleAttr> getFixed(const Entry &entry);
  bool isSameProgram(const Entry &entry);
  int64_t rank(const Entry &entry);
  void use(const Entry &entry, const tuning::Values &bound, TunedForm &tuned);
  OwningOpRef<ModuleOp> read(const Entry &entry);
  void warn(const Entry &entry, const Twine &reason);

  StringRef source, fileName;
  ModuleOp form;
  KernelOp kernel;
  const CompileOptions &options;
  ReadForm readForm;
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
         !getRequestedSchedule(kernel).getSpeculate().value_or(true);
}

/// How well the fields that the entry's contestants had in common go with those that are asked for:
/// the more of them are, the better, and an entry without any is better than one with others.
int64_t Lookup::rank(const Entry &entry) {
  std::optional<ScheduleAttr> fixed = getFixed(entry);
  if (!fixed)
    return 0;
  int64_t rank = 0;
  tile::ScheduleFields want(getRequestedSchedule(kernel)), have(*fixed);
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

/// The source with the entry's parameters; null after a warning.
OwningOpRef<ModuleOp> Lookup::read(const Entry &entry) {
  ErrorCapture errors(context);
  OwningOpRef<ModuleOp> read;
  if (readForm(definesWith(entry), read) != CompileStatus::Success) {
    warn(entry, errors.getFirst());
    return {};
  }
  if ((*read->getOps<KernelOp>().begin()).getArgumentTypes() == kernel.getArgumentTypes())
    return read;
  warn(entry, "its tile sizes change the kernel's arguments");
  return {};
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

void Lookup::use(const Entry &entry, const tuning::Values &bound, TunedForm &tuned) {
  ErrorCapture errors(context);
  FailureOr<ScheduleAttr> stored = ScheduleAttr::parseText(
      context, entry.schedule, [&] { return emitError(UnknownLoc::get(context)); });
  if (failed(stored))
    return warn(entry, errors.getFirst());
  tuned.module = entry.parameters == bound ? OwningOpRef(form.clone()) : read(entry);
  if (!tuned.module)
    return;
  KernelOp tunedKernel = *tuned.module->getOps<KernelOp>().begin();
  tunedKernel.setScheduleAttr(stored->overriddenBy(getRequestedSchedule(tunedKernel)));
  tuned.schedule = *stored;
  tuned.entry = entry.describe();
  llvm::raw_string_ostream description(tuned.description);
  description << "schedule from the database: entry " << tuned.entry;
  for (const std::string &name : entry.tuned)
    description << ", with " << name << " = " << entry.parameters.at(name);
  description << "; " << printMeasurement(entry.measured);
}

CompileStatus Lookup::run(TunedForm &tuned) {
  const Database *database = openDatabase();
  if (!database)
    return CompileStatus::UsageError;
  std::optional<std::string> gpu = findGpu(*database);
  if (!gpu)
    return CompileStatus::UsageError;
  std::optional<std::string> shapeClass = findClass(*database, *gpu);
  if (!shapeClass)
    return CompileStatus::UsageError;
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
  if (best)
    use(*best, *bound, tuned);
  else if (isKnown)
    kernel.emitRemark("the schedule database has no entry for these parameters, class '")
        << *shapeClass << "'; the model chooses";
  return CompileStatus::Success;
}

CompileStatus tessera::findTuned(StringRef source, StringRef fileName, ModuleOp form,
                                 const CompileOptions &options, ReadForm read, TunedForm &tuned) {
  return Lookup(source, fileName, form, options, read).run(tuned);
}
