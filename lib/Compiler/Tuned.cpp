//===- Tuned.cpp - Measured schedules in a compilation --------------------===//

#include "lib/Compiler/Tuned.h"
#include "dialects/Tile/Entries.h"
#include "dialects/Tile/ScheduleFields.h"
#include "lib/Database/Fingerprint.h"
#include "lib/Database/ShapeClass.h"
#include "lib/Source/Diagnostics.h"
#include "lib/Source/Source.h"
#include "passes/Analysis/Speculation.h"
#include "passes/Schedule/ScheduleChoice.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tessera;
using tile::KernelOp;
using tile::ScheduleAttr;
using tuning::Database;
using tuning::Entry;

namespace {
/// What the options name.
struct Wanted {
  const Database *database = nullptr;
  std::string gpu;
};

/// The search for an entry for one kernel, and the attempt to use it.
class Lookup {
public:
  Lookup(KernelOp kernel, const Wanted &wanted, const CompileOptions &options,
         ArrayRef<source::Parameter> parameters, ReadForm readForm, TunedKernel &tuned)
      : kernel(kernel), wanted(wanted), options(options), parameters(parameters),
        readForm(readForm), tuned(tuned), context(kernel.getContext()) {
    tuned.name = kernel.getSymName().str();
    tuned.program = tuning::getFingerprint(kernel);
    program = tuned.program;
    serving = options.defines;
  }

  /// Finds the entry that serves best, if there is one. What stands in the way of others is
  /// reported. UsageError as of `findTuned`.
  CompileStatus find();
  /// The entry that `find` found; null where there is none, or it was left out since.
  const Entry *getEntryFound() const { return best; }
  KernelOp getKernel() const { return kernel; }
  /// Whether the entry is for tiles that the kernel does not have yet.
  bool changesProgram() const { return best && best->getMeasuredProgram() != program; }
  /// The parameters of which the entry has values.
  std::vector<source::Define> getValues() const;
  /// The source with `values` of parameters; null, and the entry left out with a message, where the
  /// kernel is not what was measured then.
  OwningOpRef<ModuleOp> takeForm(ArrayRef<source::Define> values);
  /// Whether `form` has the kernel as it was read.
  bool hasSameProgram(ModuleOp form) const;
  /// Gives the kernel of `form` the schedule of the entry.
  void apply(ModuleOp form);
  /// Tells the model what the class says of the grid, for a kernel of `form` without an entry.
  void markClass(ModuleOp form) const;
  /// Leaves the entry out, with a remark.
  void leaveOut(const Twine &reason);

private:
  tile::EntryOpInterface getEntry();
  llvm::StringMap<int64_t> getShape(tile::EntryOpInterface entry);
  std::optional<std::string> classifyShape();
  std::optional<std::string> findClass();
  bool isDefined(StringRef parameter) const;
  bool isOfProgram(const Entry &entry) const;
  bool isOfName(const Entry &entry) const;
  std::optional<ScheduleAttr> getFixed(const Entry &entry);
  bool mayServe(const Entry &entry);
  int64_t rank(const Entry &entry);
  const Entry *findBest(llvm::function_ref<bool(const Entry &)> isMeant);
  bool askForAlike();
  std::string readProgram(const std::vector<source::Define> &defines, OwningOpRef<ModuleOp> &form);
  void listMeasured(StringRef measured);
  void noteEdited(StringRef program);
  void warn(const Twine &reason);

  KernelOp kernel;
  const Wanted &wanted;
  const CompileOptions &options;
  ArrayRef<source::Parameter> parameters;
  ReadForm readForm;
  TunedKernel &tuned;
  MLIRContext *context;
  std::string shapeClass;
  /// The program whose entries serve, and the definitions that make it: the kernel's own, or those
  /// without the parameters of which the source says that their values are alike.
  std::string program;
  std::vector<source::Define> serving;
  const Entry *best = nullptr;
  ScheduleAttr stored; ///< the schedule of `best`
};
} // namespace

void TunedKernel::leaveOut(const Twine &reason) {
  entry = nullptr;
  note = reason.str();
}

llvm::json::Value TunedKernel::describe() const {
  llvm::json::Object object{{"program", program}};
  if (!entry) {
    object["note"] = note;
    return object;
  }
  object["entry"] = entry->describe();
  if (std::string origin = entry->measured.describeOrigin(); !origin.empty())
    object["measured"] = origin;
  if (!entry->measured.record.empty())
    object["record"] = entry->measured.record;
  return object;
}

//===----------------------------------------------------------------------===//
// What the options name
//===----------------------------------------------------------------------===//

static const Database *openDatabase(const CompileOptions::Tuning &tuning, MLIRContext *context,
                                    TunedForm &result) {
  if (tuning.database.empty())
    return &Database::getShipped();
  llvm::Expected<Database> loaded = Database::load(tuning.database);
  if (loaded) {
    result.database = std::make_unique<Database>(std::move(*loaded));
    return result.database.get();
  }
  emitError(UnknownLoc::get(context)) << "schedule database: " << toString(loaded.takeError());
  return nullptr;
}

static std::optional<std::string> findGpu(const std::string &name, const Database &database,
                                          MLIRContext *context) {
  if (name.empty() || database.getGpus().count(name) || llvm::is_contained(getCards(), name))
    return name.empty() ? database.getDefaultGpu() : name;
  InFlightDiagnostic error = emitError(UnknownLoc::get(context));
  error << "the schedule database has no measurements on '" << name
        << "', and the model no numbers of it";
  if (!database.getGpus().empty()) {
    error << "; it has those on ";
    llvm::interleaveComma(database.getGpus(), error,
                          [&](const auto &gpu) { error << "'" << gpu.first << "'"; });
  }
  return std::nullopt;
}

/// What decides the class of the kernel's shape: the sequence that launches it, whose kernels have
/// one class, or itself.
tile::EntryOpInterface Lookup::getEntry() {
  for (auto sequence : kernel->getParentOfType<ModuleOp>().getOps<tile::SequenceOp>())
    for (auto launch : sequence.getOps<tile::LaunchOp>())
      if (launch.getKernelOp() == kernel)
        return sequence;
  return kernel;
}

/// The extents of the dimensions of `entry`, of those that the options give.
llvm::StringMap<int64_t> Lookup::getShape(tile::EntryOpInterface entry) {
  llvm::StringMap<int64_t> given;
  for (const auto &[dim, extent] : options.tuning.shape)
    given[dim] = extent;
  for (tile::EntryOpInterface other : tile::getEntries(kernel->getParentOfType<ModuleOp>()))
    for (StringRef dim : other.getDimNames())
      if (!llvm::is_contained(entry.getDimNames(), dim))
        given.erase(dim);
  return given;
}

/// The class of the shape that the options give: empty where it has none, nothing after an error.
std::optional<std::string> Lookup::classifyShape() {
  tile::EntryOpInterface entry = getEntry();
  llvm::StringMap<int64_t> dims = getShape(entry);
  if (llvm::Error error = tuning::checkShape(entry, dims)) {
    emitError(UnknownLoc::get(context)) << toString(std::move(error));
    return std::nullopt;
  }
  auto found = wanted.database->getGpus().find(wanted.gpu);
  if (found == wanted.database->getGpus().end())
    return std::string();
  llvm::Expected<tuning::ShapeMeasure> measure = tuning::measureShape(entry, dims);
  if (measure)
    return tuning::getShapeClass(*measure, found->second.multiprocessors);
  kernel.emitRemark(toString(measure.takeError()));
  return std::string();
}

std::optional<std::string> Lookup::findClass() {
  std::string name = options.tuning.shapeClass;
  if (name.empty() && !options.tuning.shape.empty())
    return classifyShape();
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

/// Whether a user says what a parameter is: by the options, or by rules of his own.
bool Lookup::isDefined(StringRef parameter) const {
  return llvm::any_of(parameters, [&](const source::Parameter &known) {
    return known.name == parameter && (known.isGiven || (known.rule && known.rule->isUsers));
  });
}

/// Whether the entry is for this program, whatever its name: as the source has it, or with what
/// tuning chose already. What the options define is not changed.
bool Lookup::isOfProgram(const Entry &entry) const {
  return entry.getMeasuredProgram() == program ||
         (entry.program == program &&
          llvm::none_of(entry.tuned, [&](const std::string &name) { return isDefined(name); }));
}

/// Whether the entry is for a kernel of this name, with parameters that have the same values as far
/// as both know them. What tuning chose may have been defined to be that.
bool Lookup::isOfName(const Entry &entry) const {
  return entry.kernel == tuned.name && llvm::all_of(parameters, [&](const source::Parameter &mine) {
           auto found = entry.parameters.find(mine.name);
           bool isFree = entry.isTuned(mine.name) && !isDefined(mine.name);
           return isFree || found == entry.parameters.end() || found->second == mine.value.str();
         });
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
bool Lookup::mayServe(const Entry &entry) {
  if (entry.gpu != wanted.gpu || entry.shapeClass != shapeClass)
    return false;
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
  tile::ScheduleFields want = getRequestedSchedule(kernel).getFields(), have = fixed->getFields();
  want.visitWith(have, [&](const auto &, const auto &mine, const auto &theirs) {
    if (theirs)
      rank += mine == theirs ? 1 : -1;
  });
  return rank;
}

/// Reads the source with other definitions; an empty program after an error.
std::string Lookup::readProgram(const std::vector<source::Define> &defines,
                                OwningOpRef<ModuleOp> &form) {
  if (readForm(defines, form) != CompileStatus::Success)
    return "";
  return tuning::getFingerprint(form->lookupSymbol<KernelOp>(tuned.name));
}

/// Goes on with the program that has the defaults of those parameters whose values the source says
/// to be alike; false where the kernel is that already, or that cannot be read.
bool Lookup::askForAlike() {
  std::vector<source::Define> without;
  for (const source::Define &define : options.defines)
    if (llvm::none_of(parameters, [&](const source::Parameter &parameter) {
          return parameter.alike && parameter.name == define.first;
        }))
      without.push_back(define);
  if (without.size() == options.defines.size())
    return false;
  ErrorCapture errors(context);
  OwningOpRef<ModuleOp> form;
  std::string alike = readProgram(without, form);
  if (alike.empty())
    return false;
  program = std::move(alike);
  serving = std::move(without);
  return true;
}

const Entry *Lookup::findBest(llvm::function_ref<bool(const Entry &)> isMeant) {
  const Entry *best = nullptr;
  for (const Entry &entry : wanted.database->getEntries())
    if (isMeant(entry) && mayServe(entry) && (!best || rank(entry) > rank(*best)))
      best = &entry;
  return best;
}

//===----------------------------------------------------------------------===//
// Using an entry
//===----------------------------------------------------------------------===//

void Lookup::leaveOut(const Twine &reason) {
  tuned.leaveOut(reason);
  best = nullptr;
  kernel.emitRemark(tuned.note);
}

void Lookup::warn(const Twine &reason) {
  tuned.leaveOut("the entry " + best->describe() +
                 " of the schedule database cannot hold and is left out: " + reason +
                 "; measure again with tessera tune");
  best = nullptr;
  kernel.emitWarning(tuned.note);
}

/// The kernel has the name of the entry and is not what was measured.
void Lookup::noteEdited(StringRef program) {
  leaveOut("the program of '" + tuned.name +
           "' was edited since it was measured, so that the entry " + best->describe() +
           " of the schedule database no longer applies (program " + program + ", measured " +
           best->getMeasuredProgram() +
           "); measure again with tessera tune; the model "
           "chooses");
}

std::vector<source::Define> Lookup::getValues() const {
  std::vector<source::Define> values;
  for (const std::string &name : best->tuned)
    values.emplace_back(name, best->parameters.at(name));
  return values;
}

OwningOpRef<ModuleOp> Lookup::takeForm(ArrayRef<source::Define> values) {
  // Where the last of a name counts.
  std::vector<source::Define> measured(values), mine(values);
  llvm::append_range(measured, serving);
  llvm::append_range(mine, options.defines);
  ErrorCapture errors(context);
  OwningOpRef<ModuleOp> form;
  std::string read = readProgram(measured, form);
  if (!read.empty() && read != best->getMeasuredProgram()) {
    noteEdited(read);
    return {};
  }
  if (!read.empty() && program != tuned.program)
    read = readProgram(mine, form);
  if (!read.empty())
    return form;
  warn(errors.getFirst());
  return {};
}

bool Lookup::hasSameProgram(ModuleOp form) const {
  return tuning::getFingerprint(form.lookupSymbol<KernelOp>(tuned.name)) == tuned.program;
}

/// Lists what was measured of a program. Times of a whole sequence say nothing of a launch of the
/// kernel.
void Lookup::listMeasured(StringRef measured) {
  tuned.times = wanted.database->findTimes(measured, wanted.gpu);
  for (const Entry &entry : wanted.database->getEntries())
    if (entry.getMeasuredProgram() == measured && entry.gpu == wanted.gpu && entry.fixed.empty() &&
        entry.measured.sequence.empty())
      tuned.measured.push_back(&entry);
}

void Lookup::apply(ModuleOp form) {
  auto tunedKernel = form.lookupSymbol<KernelOp>(tuned.name);
  tunedKernel.setScheduleAttr(stored.overriddenBy(getRequestedSchedule(tunedKernel)));
  tuned.schedule = stored;
  tuned.entry = best;
  tuned.isChanged = changesProgram();
  listMeasured(best->getMeasuredProgram());
}

void Lookup::markClass(ModuleOp form) const {
  if (tuning::hasFewTiles(shapeClass))
    tile::TileDialect::FewTilesAttrHelper(context).setAttr(form.lookupSymbol<KernelOp>(tuned.name),
                                                           UnitAttr::get(context));
}

CompileStatus Lookup::find() {
  std::optional<std::string> found = findClass();
  if (!found)
    return CompileStatus::UsageError;
  shapeClass = *found;
  auto isOfThisProgram = [&](const Entry &entry) { return isOfProgram(entry); };
  best = findBest(isOfThisProgram);
  if (!best && askForAlike())
    best = findBest(isOfThisProgram);
  if (!best)
    best = findBest([&](const Entry &entry) { return isOfName(entry); });
  if (!best) {
    listMeasured(program);
    tuned.leaveOut("the schedule database has no entry for these parameters, class '" + shapeClass +
                   "'; the model chooses");
    if (llvm::any_of(wanted.database->getEntries(), [&](const Entry &entry) {
          return entry.kernel == tuned.name || isOfProgram(entry);
        }))
      kernel.emitRemark(tuned.note);
    return CompileStatus::Success;
  }
  ErrorCapture errors(context);
  FailureOr<ScheduleAttr> parsed = ScheduleAttr::parseText(
      context, best->schedule, [&] { return emitError(UnknownLoc::get(context)); });
  if (succeeded(parsed))
    stored = *parsed;
  else
    warn(errors.getFirst());
  return CompileStatus::Success;
}

//===----------------------------------------------------------------------===//
// The kernels of a source, which share its parameters
//===----------------------------------------------------------------------===//

/// Adds the values of an entry to those of others; false where one differs.
static bool takeValues(const Lookup &lookup, std::vector<source::Define> &values) {
  for (const source::Define &value : lookup.getValues()) {
    auto known = llvm::find_if(
        values, [&](const source::Define &other) { return other.first == value.first; });
    if (known == values.end())
      values.push_back(value);
    else if (known->second != value.second)
      return false;
  }
  return true;
}

/// Leaves out the entries of those kernels that would change the source's parameters.
static void leaveOutChanges(ArrayRef<Lookup *> changing, const Twine &reason) {
  for (Lookup *lookup : changing)
    lookup->leaveOut("the entry " + lookup->getEntryFound()->describe() +
                     " of the schedule database " + reason +
                     ", and is left out; compile this one alone to use it (--kernel)");
}

/// The source with the parameters of the entries that were found: one of them may change another
/// kernel only where that has an entry with the same values. Entries that do not go together are
/// left out.
static OwningOpRef<ModuleOp> readTogether(ModuleOp module,
                                          ArrayRef<std::unique_ptr<Lookup>> lookups) {
  for (;;) {
    SmallVector<Lookup *> changing;
    std::vector<source::Define> values;
    bool agree = true;
    for (const std::unique_ptr<Lookup> &lookup : lookups)
      if (lookup->changesProgram()) {
        changing.push_back(lookup.get());
        agree &= takeValues(*lookup, values);
      }
    if (changing.empty())
      return module.clone();
    if (!agree) {
      leaveOutChanges(changing, "sets parameters of the source that the entry of another of its "
                                "kernels sets to other values");
      continue;
    }
    OwningOpRef<ModuleOp> form;
    if (!llvm::all_of(changing, [&](Lookup *lookup) {
          form = lookup->takeForm(values);
          return static_cast<bool>(form);
        }))
      continue;
    auto differs = llvm::find_if(lookups, [&](const std::unique_ptr<Lookup> &lookup) {
      return !lookup->changesProgram() && !lookup->hasSameProgram(*form);
    });
    if (differs == lookups.end())
      return form;
    leaveOutChanges(changing, "sets parameters that change kernel '" +
                                  (*differs)->getKernel().getSymName() +
                                  "' too, which has no entry with them");
  }
}

CompileStatus tessera::findTuned(StringRef source, StringRef fileName, ModuleOp form,
                                 const CompileOptions &options, ReadForm read, TunedForm &tuned) {
  MLIRContext *context = form.getContext();
  Wanted wanted;
  wanted.database = openDatabase(options.tuning, context, tuned);
  if (!wanted.database)
    return CompileStatus::UsageError;
  std::optional<std::string> gpu = findGpu(options.tuning.gpu, *wanted.database, context);
  if (!gpu)
    return CompileStatus::UsageError;
  wanted.gpu = *gpu;
  if (auto known = wanted.database->getGpus().find(*gpu); known != wanted.database->getGpus().end())
    tuned.multiprocessors = known->second.multiprocessors;
  ParameterResult parameters =
      readParameters(source, fileName, options.defines, *context, options.imports);
  SmallVector<KernelOp> kernels(form.getOps<KernelOp>());
  tuned.kernels.resize(kernels.size());
  std::vector<std::unique_ptr<Lookup>> lookups;
  for (auto [kernel, found] : llvm::zip_equal(kernels, tuned.kernels)) {
    lookups.push_back(std::make_unique<Lookup>(kernel, wanted, options,
                                               parameters.table.getParameters(), read, found));
    if (CompileStatus status = lookups.back()->find(); status != CompileStatus::Success)
      return status;
  }
  OwningOpRef<ModuleOp> together = readTogether(form, lookups);
  for (const std::unique_ptr<Lookup> &lookup : lookups)
    if (lookup->getEntryFound()) {
      if (!tuned.module)
        tuned.module = std::move(together);
      lookup->apply(*tuned.module);
    }
  for (const std::unique_ptr<Lookup> &lookup : lookups)
    if (!lookup->getEntryFound())
      lookup->markClass(tuned.module ? *tuned.module : form);
  return CompileStatus::Success;
}
