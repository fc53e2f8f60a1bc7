//===- Candidates.cpp - The schedules worth measuring ---------------------===//

#include "lib/Tuning/Candidates.h"
#include "dialects/Tile/Entries.h"
#include "dialects/Tile/ScheduleFields.h"
#include "lib/Compiler/Pipeline.h"
#include "lib/Database/Fingerprint.h"
#include "lib/Source/Diagnostics.h"
#include "lib/Source/Source.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Schedule/ScheduleChoice.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <set>
#include <tuple>

using namespace mlir;
using namespace tessera;
using namespace tessera::tuning;
using tile::KernelOp;
using tile::ScheduleAttr;
using tile::ScheduleFieldInfo;

/// A field with more values than this changes to the nearest on either side only.
static constexpr size_t kManyValues = 8;
/// The most combinations of varied parameters.
static constexpr size_t kMostTiles = 4096;
/// The most fields that change at a time.
static constexpr unsigned kMostFieldChanges = 2;

namespace {
/// One choice of the varied parameters, and what is known of its schedules.
struct Tiles {
  Values tuned;
  /// By how many places in the lists of values the parameters differ from their defaults.
  unsigned steps = 0;
  bool isDefault = true;
  OwningOpRef<ModuleOp> module;
  KernelOp kernel;
  Values parameters;
  /// Changes of a single field that fit, and those that do not: "stages = 3".
  std::vector<std::pair<unsigned, std::string>> singles, misfits;
  std::string program;
  bool isRead = false;
  /// Of a kernel of a sequence: earlier tiles make the same program of it.
  bool isRepeated = false;
};

class Enumerator {
public:
  Enumerator(const std::string &source, const std::string &fileName, const SearchSpace &space,
             const DiagnosticHandler &handler, Enumeration &result)
      : source(source), fileName(fileName), space(space), handler(handler), result(result),
        context(makeCompilerRegistry()), forwarder(context, handler, /*remarks=*/false) {
    context.printOpOnDiagnostic(false);
  }

  CompileStatus run();

private:
  CompileStatus fail(const Twine &message);
  CompileStatus readFields(const SourceInfo &info);
  CompileStatus readParameters(const SourceInfo &info);
  void combineParameters();
  bool readTiles(Tiles &tiles);
  bool readModule(Tiles &tiles);
  void addForm(const Tiles &tiles);
  std::vector<std::string> listChanges(Tiles &tiles, std::vector<unsigned> &changed);
  void addLevel(unsigned level);
  void addFieldChanges(Tiles &tiles, unsigned count);
  void tryRequests(Tiles &tiles, ArrayRef<std::string> requests, SmallVectorImpl<bool> &fits);
  void addCandidate(const Tiles &tiles, const ScheduleChoice &choice);
  void reject(const Tiles &tiles, StringRef request, StringRef reason);
  size_t countRoom() const { return space.budget - result.candidates.size(); }
  bool isFull() const { return countRoom() == 0; }

  const std::string &source, &fileName;
  const SearchSpace &space;
  const DiagnosticHandler &handler;
  Enumeration &result;
  MLIRContext context;
  DiagnosticForwarder forwarder;
  ScheduleAttr fixed;
  SmallVector<ScheduleFieldInfo> fields;
  std::vector<VariedParameter> varied;
  Values defaults;
  ArrayAttr argumentTypes;
  std::vector<Tiles> allTiles;
  std::set<std::string> seen, programs;
};
} // namespace

CompileStatus Enumerator::fail(const Twine &message) {
  emitError(UnknownLoc::get(&context)) << message;
  return CompileStatus::UsageError;
}

//===----------------------------------------------------------------------===//
// What varies
//===----------------------------------------------------------------------===//

/// The values of the fields that are set in `schedule`, by name.
static Values getFieldValues(ScheduleAttr schedule) {
  Values values;
  schedule.getFields().forEachSet(
      [&](StringRef name, const std::string &value) { values[name.str()] = value; });
  return values;
}

/// The fields that vary, with their values.
CompileStatus Enumerator::readFields(const SourceInfo &info) {
  FailureOr<SmallVector<ScheduleOverride>> parsed = parseSchedules(context, space.schedule);
  if (failed(parsed))
    return CompileStatus::UsageError;
  fixed = tile::ScheduleFields().get(&context);
  for (const ScheduleOverride &item : *parsed) {
    if (item.kernel.empty() || item.kernel == result.kernel)
      fixed = fixed.overriddenBy(item.fields);
    else if (llvm::none_of(info.kernels, [&](const auto &k) { return k.name == item.kernel; }))
      return fail("--schedule: the source has no kernel '" + item.kernel + "'");
  }
  result.fixed = tile::printScheduleFields(fixed);
  Values kept = getFieldValues(fixed);
  fields = SmallVector<ScheduleFieldInfo>(ScheduleAttr::getFieldInfos());
  for (const std::string &name : space.fields.value_or(std::vector<std::string>())) {
    if (kept.count(name))
      return fail("the schedule field '" + name + "' is both fixed and varied");
    if (llvm::none_of(fields, [&](const auto &field) { return field.name == name; })) {
      std::string known;
      for (const ScheduleFieldInfo &field : fields)
        known += (known.empty() ? "" : ", ") + field.name.str();
      return fail("unknown schedule field '" + name + "'; known are " + known);
    }
  }
  llvm::erase_if(fields, [&](const ScheduleFieldInfo &field) {
    return kept.count(field.name.str()) ||
           (space.fields && !llvm::is_contained(*space.fields, field.name));
  });
  return CompileStatus::Success;
}

/// The varied parameters, with all their values.
CompileStatus Enumerator::readParameters(const SourceInfo &info) {
  for (const ParameterInfo &parameter : info.parameters)
    defaults[parameter.name] = parameter.defaultValue;
  size_t combinations = 1;
  for (VariedParameter parameter : space.varied) {
    auto found = llvm::find_if(info.parameters,
                               [&](const ParameterInfo &p) { return p.name == parameter.name; });
    if (found == info.parameters.end())
      return fail("--vary: the source has no parameter '" + parameter.name + "'");
    auto isSame = [&](const auto &other) { return other.first == parameter.name; };
    if (llvm::any_of(space.defines, isSame))
      return fail("--vary: parameter '" + parameter.name + "' has a value already, by -D");
    if (parameter.values.empty())
      for (const std::string &allowed : found->allowed)
        llvm::append_range(parameter.values, source::expandAllowed(allowed, kMostTiles + 1));
    if (parameter.values.empty())
      return fail("--vary: the source allows '" + parameter.name +
                  "' any value; name those to try, as --vary " + parameter.name + "=64:128");
    combinations = llvm::SaturatingMultiply(combinations, parameter.values.size());
    varied.push_back(std::move(parameter));
  }
  if (combinations > kMostTiles)
    return fail("--vary: there are " + Twine(combinations) + " combinations of values, and " +
                Twine(kMostTiles) + " at most; name fewer values");
  return CompileStatus::Success;
}

/// Every choice of the varied parameters, those nearest to the defaults first.
void Enumerator::combineParameters() {
  allTiles.emplace_back();
  for (const VariedParameter &parameter : varied) {
    const std::string &standard = defaults.at(parameter.name);
    auto home = llvm::find(parameter.values, standard) - parameter.values.begin();
    std::vector<Tiles> extended;
    for (const Tiles &tiles : allTiles)
      for (auto [place, value] : llvm::enumerate(parameter.values)) {
        Tiles &next = extended.emplace_back();
        next.tuned = tiles.tuned;
        next.tuned[parameter.name] = value;
        next.isDefault = tiles.isDefault && value == standard;
        next.steps = tiles.steps + std::abs(static_cast<int64_t>(place) - home);
      }
    allTiles = std::move(extended);
  }
  if (llvm::none_of(allTiles, [](const Tiles &tiles) { return tiles.isDefault; })) {
    Tiles &standard = allTiles.emplace_back();
    for (const VariedParameter &parameter : varied)
      standard.tuned[parameter.name] = defaults.at(parameter.name);
  }
  llvm::sort(allTiles, [](const Tiles &a, const Tiles &b) {
    if (a.isDefault != b.isDefault)
      return a.isDefault;
    return std::tie(a.steps, a.tuned) < std::tie(b.steps, b.tuned);
  });
}

//===----------------------------------------------------------------------===//
// Reading and testing
//===----------------------------------------------------------------------===//

void Enumerator::reject(const Tiles &tiles, StringRef request, StringRef reason) {
  std::string name = print(tiles.tuned);
  if (!request.empty())
    name += (name.empty() ? "" : ": ") + request.str();
  result.rejections.push_back({name, reason.str()});
}

/// Reads the source with the parameters of `tiles`; false after noting why that does not work.
bool Enumerator::readTiles(Tiles &tiles) {
  if (tiles.isRead)
    return tiles.kernel != nullptr;
  tiles.isRead = true;
  // With the defaults everything but the search has been tried, and its errors are for the user.
  ErrorCapture errors(&context);
  if (readModule(tiles))
    return true;
  reject(tiles, "", errors.getFirst());
  tiles.kernel = nullptr;
  return false;
}

bool Enumerator::readModule(Tiles &tiles) {
  Defines defines(tiles.tuned.begin(), tiles.tuned.end());
  llvm::append_range(defines, space.defines);
  ParameterResult bound = tessera::readParameters(source, fileName, defines, context);
  if (bound.status != CompileStatus::Success)
    return false;
  for (const source::Parameter &parameter : bound.table.getParameters())
    tiles.parameters[parameter.name] = parameter.value.str();
  ReadResult read = readSource(source, fileName, defines, context);
  if (read.status != CompileStatus::Success)
    return false;
  tiles.module = std::move(read.module);
  for (KernelOp kernel : tiles.module->getOps<KernelOp>())
    if (kernel.getSymName() == result.kernel)
      tiles.kernel = kernel;
  // The defaults are read first. The kernels of a sequence may get other workspaces.
  auto sequence = tiles.module->lookupSymbol<tile::SequenceOp>(space.sequence);
  ArrayAttr types;
  if (tiles.kernel)
    types = sequence ? sequence.getArgumentTypes() : tiles.kernel.getArgumentTypes();
  if (!argumentTypes)
    argumentTypes = types;
  if (!tiles.kernel || types != argumentTypes) {
    emitError(UnknownLoc::get(&context))
        << "this changes the arguments of the " << (sequence ? "sequence" : "kernel");
    return false;
  }
  overrideSchedules(*tiles.module, fixed);
  PassManager cleanup(&context, ModuleOp::getOperationName());
  buildStages(cleanup, EmitKind::Tile, EmitKind::Tile);
  if (failed(cleanup.run(*tiles.module)))
    return false;
  tiles.program = getFingerprint(tiles.kernel);
  if (tiles.isDefault)
    result.program = tiles.program;
  if (sequence) {
    addForm(tiles);
    tiles.isRepeated = !programs.insert(tiles.program).second;
  }
  return true;
}

void Enumerator::addForm(const Tiles &tiles) {
  SequenceForm form;
  form.tuned = tiles.tuned;
  form.parameters = tiles.parameters;
  auto sequence = tiles.module.get().lookupSymbol<tile::SequenceOp>(space.sequence);
  for (KernelOp kernel : tile::getKernels(sequence))
    form.programs[kernel.getSymName().str()] = getFingerprint(kernel);
  result.forms.push_back(std::move(form));
}

static std::string joinReasons(const ScheduleChoice &choice) {
  std::string text;
  for (const ScheduleRejection &rejection : choice.rejections)
    text += (text.empty() ? "" : "; ") + rejection.candidate + ": " + rejection.reason;
  return text.empty() ? "its fields exclude each other" : text;
}

void Enumerator::addCandidate(const Tiles &tiles, const ScheduleChoice &choice) {
  std::string schedule = tile::printScheduleFields(choice.schedule);
  if (isFull()) {
    result.isCut = true;
    return;
  }
  if (seen.insert(print(tiles.tuned) + "|" + schedule).second)
    result.candidates.push_back(
        {tiles.tuned, tiles.parameters, std::move(schedule), choice.use, tiles.program});
}

/// Tries schedules that set `requests` ("stages = 3, overlap = 1") beside what is fixed.
void Enumerator::tryRequests(Tiles &tiles, ArrayRef<std::string> requests,
                             SmallVectorImpl<bool> &fits) {
  ErrorCapture errors(&context);
  ScheduleAttr kept = getRequestedSchedule(tiles.kernel);
  auto emit = [&] { return emitError(UnknownLoc::get(&context)); };
  SmallVector<ScheduleAttr> wanted;
  for (const std::string &request : requests)
    wanted.push_back(kept.overriddenBy(*ScheduleAttr::parseText(&context, request, emit)));
  FailureOr<SmallVector<ScheduleChoice>> choices = chooseSchedules(tiles.kernel, wanted);
  for (auto [i, request] : llvm::enumerate(requests)) {
    bool fit = succeeded(choices) && (*choices)[i].schedule;
    fits.push_back(fit);
    if (fit)
      addCandidate(tiles, (*choices)[i]);
    else if (!StringRef(request).contains(','))
      reject(tiles, request, failed(choices) ? errors.getFirst() : joinReasons((*choices)[i]));
  }
}

//===----------------------------------------------------------------------===//
// The order of the search
//===----------------------------------------------------------------------===//

/// What a field can change to from its value `current`.
static std::vector<std::string> changesOf(const ScheduleFieldInfo &domain, StringRef current) {
  std::vector<std::string> values(domain.values.begin(), domain.values.end());
  auto home = llvm::find(values, current);
  if (values.size() <= kManyValues || home == values.end()) {
    llvm::erase(values, current);
    return values;
  }
  std::vector<std::string> neighbours;
  if (home != values.begin())
    neighbours.push_back(*std::prev(home));
  if (std::next(home) != values.end())
    neighbours.push_back(*std::next(home));
  return neighbours;
}

/// The changes of one field of the model's choice, and for each the number of its field.
std::vector<std::string> Enumerator::listChanges(Tiles &tiles, std::vector<unsigned> &changed) {
  ErrorCapture errors(&context);
  ScheduleAttr set = getRequestedSchedule(tiles.kernel);
  auto model = chooseSchedules(tiles.kernel, {set});
  if (failed(model) || !(*model)[0].schedule)
    return {};
  Values current = getFieldValues((*model)[0].schedule), kept = getFieldValues(set);
  std::vector<std::string> requests;
  for (auto [i, field] : llvm::enumerate(fields))
    if (!kept.count(field.name.str()))
      for (const std::string &value : changesOf(field, current[field.name.str()])) {
        requests.push_back(field.name.str() + " = " + value);
        changed.push_back(i);
      }
  return requests;
}

/// Adds the candidates of `tiles` with `count` fields changed.
void Enumerator::addFieldChanges(Tiles &tiles, unsigned count) {
  SmallVector<bool> fits;
  std::vector<std::string> requests;
  std::vector<unsigned> changed;
  if (count == 0) {
    tryRequests(tiles, {std::string()}, fits);
  } else if (count == 1) {
    requests = listChanges(tiles, changed);
    tryRequests(tiles, requests, fits);
    for (auto [i, fit] : llvm::enumerate(fits))
      (fit ? tiles.singles : tiles.misfits).emplace_back(changed[i], requests[i]);
  } else {
    for (size_t i = 0; i < tiles.singles.size(); ++i)
      for (size_t j = i + 1; j < tiles.singles.size(); ++j)
        if (tiles.singles[i].first != tiles.singles[j].first)
          requests.push_back(tiles.singles[i].second + ", " + tiles.singles[j].second);
    for (ArrayRef<std::string> left = requests; !left.empty() && !isFull();) {
      size_t count = std::min(left.size(), countRoom());
      tryRequests(tiles, left.take_front(count), fits);
      left = left.drop_front(count);
    }
    // Some changes fit beside another one alone, as more consumers with another placement. Hardly
    // any do: no more are tried than there is room for.
    requests.clear();
    for (const auto &[field, change] : tiles.singles)
      for (const auto &[other, misfit] : tiles.misfits)
        if (field != other)
          requests.push_back(change + ", " + misfit);
    result.isCut |= requests.size() > countRoom();
    requests.resize(std::min(requests.size(), countRoom()));
    tryRequests(tiles, requests, fits);
  }
}

/// Adds what makes `level` changes to the model's choice with the defaults. Other tiles, however
/// many parameters they take, are one change, and come before fields: they change more.
void Enumerator::addLevel(unsigned level) {
  for (unsigned count = level > 0 ? level - 1 : 0; count <= std::min(level, kMostFieldChanges);
       ++count)
    for (Tiles &tiles : allTiles)
      if (tiles.isDefault == (level == count) && !isFull() && readTiles(tiles) && !tiles.isRepeated)
        addFieldChanges(tiles, count);
}

CompileStatus Enumerator::run() {
  SourceInfo info = inspect(source, fileName, space.defines, handler);
  if (info.status != CompileStatus::Success)
    return info.status;
  for (const EntryInfo &kernel : info.kernels)
    if (kernel.name == space.kernel || (space.kernel.empty() && info.kernels.size() == 1))
      result.kernel = kernel.name;
  if (result.kernel.empty())
    return fail(space.kernel.empty() ? "the source has " + Twine(info.kernels.size()) +
                                           " kernels; name the one to tune with --kernel"
                                     : "the source has no kernel '" + space.kernel + "'");
  if (CompileStatus status = readFields(info); status != CompileStatus::Success)
    return status;
  if (CompileStatus status = readParameters(info); status != CompileStatus::Success)
    return status;
  combineParameters();
  for (unsigned level = 0; level <= 1 + kMostFieldChanges && !isFull(); ++level)
    addLevel(level);
  result.isCut |= isFull();
  if (!result.candidates.empty())
    return CompileStatus::Success;
  const Rejection &first = result.rejections.front();
  fail("no schedule of kernel '" + result.kernel + "' fits the machine: " + first.candidate +
       (first.candidate.empty() ? "" : ": ") + first.reason);
  return CompileStatus::SourceError;
}

CompileStatus tessera::tuning::enumerateCandidates(const std::string &source,
                                                   const std::string &fileName,
                                                   const SearchSpace &space,
                                                   const DiagnosticHandler &handler,
                                                   Enumeration &result) {
  return Enumerator(source, fileName, space, handler, result).run();
}
