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
         ArrayRef<source::Parameter> parameters, ReadForm readForm, TunedForm &result)
      : kernel(kernel), wanted(wanted), options(options), parameters(parameters),
        readForm(readForm), result(result), tuned(result.kernels.emplace_back()),
        context(kernel.getContext()) {
    tuned.name = kernel.getSymName().str();
    tuned.program = tuning::getFingerprint(kernel);
    program = tuned.program;
    serving = options.defines;
  }

  CompileStatus run();

private:
  llvm::StringMap<int64_t> getShape();
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
  void use(const Entry &entry);
  void listMeasured(StringRef measured);
  OwningOpRef<ModuleOp> takeForm(const Entry &entry);
  void noteEdited(const Entry &entry, StringRef program);
  void warn(const Entry &entry, const Twine &reason);

  KernelOp kernel;
  const Wanted &wanted;
  const CompileOptions &options;
  ArrayRef<source::Parameter> parameters;
  ReadForm readForm;
  TunedForm &result;
  TunedKernel &tuned;
  MLIRContext *context;
  std::string shapeClass;
  /// The program whose entries serve, and the definitions that make it: the kernel's own, or those
  /// without the parameters of which the source says that their values are alike.
  std::string program;
  std::vector<source::Define> serving;
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
  if (name.empty() || database.getGpus().count(name))
    return name.empty() ? database.getDefaultGpu() : name;
  InFlightDiagnostic error = emitError(UnknownLoc::get(context));
  error << "the schedule database has no measurements on '" << name << "'";
  if (!database.getGpus().empty()) {
    error << "; it has those on ";
    llvm::interleaveComma(database.getGpus(), error,
                          [&](const auto &gpu) { error << "'" << gpu.first << "'"; });
  }
  return std::nullopt;
}

/// The extents that the kernel has in the first launch of it, with those that the options give the
/// dimensions of the sequence; unknown ones are left out.
static llvm::StringMap<int64_t> getExtents(tile::LaunchOp launch, llvm::StringMap<int64_t> given) {
  auto sequence = cast<tile::SequenceOp>(launch->getParentOp());
  for (tile::DerivedDimAttr dim : sequence.getDerivedDimAttrs())
    if (std::optional<int64_t> extent =
            dim.evaluate([&](StringRef name) { return given.lookup(name); }))
      given[dim.getName().getValue()] = *extent;
  llvm::StringMap<int64_t> extents;
  for (auto [operand, argument] :
       llvm::zip(launch.getOperands(), launch.getKernelOp().getBody().getArguments())) {
    auto takes = dyn_cast<tile::ViewType>(argument.getType());
    for (int64_t i = 0; takes && i < takes.getRank(); ++i) {
      auto gets = cast<tile::ViewType>(operand.getType());
      StringRef name = gets.getDimName(i);
      if (!takes.getDimName(i).empty() && (name.empty() || given.count(name)))
        extents[takes.getDimName(i)] = name.empty() ? gets.getStaticDim(i) : given[name];
    }
  }
  return extents;
}

/// The extents of the kernel's dimensions, of those that the options give.
llvm::StringMap<int64_t> Lookup::getShape() {
  auto module = kernel->getParentOfType<ModuleOp>();
  llvm::StringMap<int64_t> given;
  for (const auto &[dim, extent] : options.tuning.shape)
    given[dim] = extent;
  for (auto sequence : module.getOps<tile::SequenceOp>())
    for (auto launch : sequence.getOps<tile::LaunchOp>())
      if (launch.getKernelOp() == kernel)
        return getExtents(launch, given);
  for (tile::EntryOpInterface other : tile::getEntries(module))
    for (StringRef dim : other.getDimNames())
      if (!llvm::is_contained(kernel.getDimNames(), dim))
        given.erase(dim);
  return given;
}

/// The class of the shape that the options give: empty where it has none, nothing after an error.
std::optional<std::string> Lookup::classifyShape() {
  llvm::StringMap<int64_t> dims = getShape();
  if (llvm::Error error = tuning::checkShape(kernel, dims)) {
    emitError(UnknownLoc::get(context)) << toString(std::move(error));
    return std::nullopt;
  }
  auto found = wanted.database->getGpus().find(wanted.gpu);
  if (found == wanted.database->getGpus().end())
    return std::string();
  llvm::Expected<tuning::ShapeMeasure> measure = tuning::measureShape(kernel, dims);
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

bool Lookup::isDefined(StringRef parameter) const {
  return llvm::any_of(options.defines,
                      [&](const source::Define &define) { return define.first == parameter; });
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

void Lookup::warn(const Entry &entry, const Twine &reason) {
  tuned.leaveOut("the entry " + entry.describe() +
                 " of the schedule database cannot hold and is left out: " + reason +
                 "; measure again with tessera tune");
  kernel.emitWarning(tuned.note);
}

/// The kernel has the name of the entry and is not what was measured.
void Lookup::noteEdited(const Entry &entry, StringRef program) {
  tuned.leaveOut("the program of '" + tuned.name +
                 "' was edited since it was measured, so that the entry " + entry.describe() +
                 " of the schedule database no longer applies (program " + program + ", measured " +
                 entry.getMeasuredProgram() +
                 "); measure again with tessera tune; the model "
                 "chooses");
  kernel.emitRemark(tuned.note);
}

/// The source with what the entry tuned; null after saying why it is not what was measured.
OwningOpRef<ModuleOp> Lookup::takeForm(const Entry &entry) {
  auto module = kernel->getParentOfType<ModuleOp>();
  if (entry.getMeasuredProgram() == program)
    return module.clone();
  if (!llvm::hasSingleElement(module.getOps<KernelOp>())) {
    tuned.leaveOut("the entry " + entry.describe() +
                   " of the schedule database sets parameters that all kernels of the source "
                   "share, and is left out; compile this one alone to use it (--kernel)");
    kernel.emitRemark(tuned.note);
    return {};
  }
  // Where the last of a name counts.
  std::vector<source::Define> measured;
  for (const std::string &name : entry.tuned)
    measured.emplace_back(name, entry.parameters.at(name));
  std::vector<source::Define> mine = measured;
  llvm::append_range(measured, serving);
  llvm::append_range(mine, options.defines);
  ErrorCapture errors(context);
  OwningOpRef<ModuleOp> form;
  std::string read = readProgram(measured, form);
  if (!read.empty() && read != entry.getMeasuredProgram()) {
    noteEdited(entry, read);
    return {};
  }
  if (!read.empty() && program != tuned.program)
    read = readProgram(mine, form);
  if (!read.empty())
    return form;
  warn(entry, errors.getFirst());
  return {};
}

/// Lists the entries of a program.
void Lookup::listMeasured(StringRef measured) {
  for (const Entry &entry : wanted.database->getEntries())
    if (entry.getMeasuredProgram() == measured && entry.gpu == wanted.gpu && entry.fixed.empty())
      tuned.measured.push_back(&entry);
}

void Lookup::use(const Entry &entry) {
  FailureOr<ScheduleAttr> stored;
  {
    ErrorCapture errors(context);
    stored = ScheduleAttr::parseText(context, entry.schedule,
                                     [&] { return emitError(UnknownLoc::get(context)); });
    if (failed(stored))
      return warn(entry, errors.getFirst());
  }
  OwningOpRef<ModuleOp> form = takeForm(entry);
  if (!form)
    return;
  // Of several kernels, one after the other gets its schedule.
  if (!result.module)
    result.module = std::move(form);
  auto tunedKernel = result.module->lookupSymbol<KernelOp>(tuned.name);
  tunedKernel.setScheduleAttr(stored->overriddenBy(getRequestedSchedule(tunedKernel)));
  tuned.schedule = *stored;
  tuned.entry = &entry;
  listMeasured(entry.getMeasuredProgram());
}

CompileStatus Lookup::run() {
  std::optional<std::string> found = findClass();
  if (!found)
    return CompileStatus::UsageError;
  shapeClass = *found;
  auto isOfThisProgram = [&](const Entry &entry) { return isOfProgram(entry); };
  const Entry *best = findBest(isOfThisProgram);
  if (!best && askForAlike())
    best = findBest(isOfThisProgram);
  if (!best)
    best = findBest([&](const Entry &entry) { return isOfName(entry); });
  if (best) {
    use(*best);
    return CompileStatus::Success;
  }
  listMeasured(program);
  tuned.leaveOut("the schedule database has no entry for these parameters, class '" + shapeClass +
                 "'; the model chooses");
  if (llvm::any_of(wanted.database->getEntries(), [&](const Entry &entry) {
        return entry.kernel == tuned.name || isOfProgram(entry);
      }))
    kernel.emitRemark(tuned.note);
  return CompileStatus::Success;
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
  for (KernelOp kernel : form.getOps<KernelOp>()) {
    Lookup lookup(kernel, wanted, options, parameters.table.getParameters(), read, tuned);
    if (CompileStatus status = lookup.run(); status != CompileStatus::Success)
      return status;
  }
  return CompileStatus::Success;
}
