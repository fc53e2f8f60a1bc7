//===- Alternatives.cpp - Kernels among which a launch chooses ------------===//

#include "lib/Compiler/Alternatives.h"
#include "dialects/Tile/Entries.h"
#include "lib/Compiler/Bundle.h"
#include "tessera/BundleKeys.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tessera;
using tile::KernelOp;
using tile::SequenceOp;
namespace json = llvm::json;

/// Adds `defines` to `all`, once for each alternative of a parameter, which is read with them.
static void addValues(const source::Parameter &parameter, ArrayRef<source::Define> given,
                      ArrayRef<source::Define> defines,
                      std::vector<std::vector<source::Define>> &all) {
  bool isGiven = llvm::any_of(
      given, [&](const source::Define &define) { return define.first == parameter.name; });
  // Where the default is all there is, the database may have another value.
  bool isDefault =
      parameter.alternatives.size() == 1 && parameter.alternatives.front() == parameter.value.str();
  if (isGiven || isDefault || parameter.alternatives.empty()) {
    all.push_back(defines.vec());
    return;
  }
  for (const std::string &value : parameter.alternatives) {
    all.push_back(defines.vec());
    all.back().emplace_back(parameter.name, value);
  }
}

FailureOr<std::vector<std::vector<source::Define>>>
tessera::listAlternatives(ArrayRef<source::Define> given, ReadParameters read,
                          MLIRContext &context) {
  ParameterResult source = read({});
  if (source.status != CompileStatus::Success)
    return failure();
  std::vector<std::vector<source::Define>> all(1);
  for (auto [i, parameter] : llvm::enumerate(source.table.getParameters())) {
    if (parameter.alternatives.empty())
      continue;
    std::vector<std::vector<source::Define>> next;
    for (const std::vector<source::Define> &defines : all) {
      ParameterResult own = read(defines);
      if (own.status != CompileStatus::Success)
        return failure();
      addValues(own.table.getParameters()[i], given, defines, next);
      if (next.size() > maxAlternatives) {
        emitError(toLocation(source.files->locate(parameter.offset), context))
            << "with the alternatives of '" << parameter.name << "' there are more than "
            << maxAlternatives
            << " combinations of values, each a kernel; name fewer, or give some parameters a "
               "value with -D";
        return failure();
      }
    }
    all = std::move(next);
  }
  if (all.size() == 1 && all.front().empty())
    all.clear();
  return all;
}

/// What is compiled first: that of the database, where it has one.
static ModuleOp getPreferred(const OwningOpRef<ModuleOp> &form, const TunedForm &tuned) {
  return tuned.module ? *tuned.module : *form;
}

tile::EntryOpInterface Alternatives::Alternative::getEntry() const {
  return tile::findEntry(getPreferred(form, tuned), "");
}

/// What each launch of a kernel or a sequence should take, by its kernel.
static LogicalResult addLaunches(tile::EntryOpInterface entry,
                                 SmallVectorImpl<std::pair<std::string, LaunchTimes>> &launches) {
  auto add = [&](KernelOp kernel, bool isOfSequence) -> LogicalResult {
    FailureOr<LaunchTimes> times = LaunchTimes::of(kernel);
    if (failed(times) || failed(times->countBytes(kernel, isOfSequence)))
      return failure();
    launches.emplace_back(kernel.getSymName().str(), std::move(*times));
    return success();
  };
  if (auto kernel = dyn_cast<KernelOp>(entry.getOperation()))
    return add(kernel, /*isOfSequence=*/false);
  auto module = entry->getParentOfType<ModuleOp>();
  for (auto launch : cast<SequenceOp>(entry.getOperation()).getOps<tile::LaunchOp>())
    if (failed(add(module.lookupSymbol<KernelOp>(launch.getKernel()), /*isOfSequence=*/true)))
      return failure();
  return success();
}

/// "BM = 192, BN = 96": the parameters in which alternatives may differ.
std::string Alternatives::printValues(const Alternative &alternative) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(varied, os, [&](StringRef name) {
    os << name << " = ";
    alternative.parameters.get(name).print(os, /*elideType=*/true);
  });
  return text;
}

/// Refuses arguments other than those of the first alternative: a launch gives each the same.
LogicalResult Alternatives::checkArguments(const Alternative &added) const {
  tile::EntryOpInterface own = added.getEntry(), first = alternatives.front().getEntry();
  unsigned numOwn = own.getNumArguments(), numFirst = first.getNumArguments(), i = 0;
  auto isAlike = [&](unsigned i) {
    return own.getArgumentName(i) == first.getArgumentName(i) &&
           own.getArgument(i).getType() == first.getArgument(i).getType();
  };
  while (i < std::min(numOwn, numFirst) && isAlike(i))
    ++i;
  if (i == numOwn && i == numFirst)
    return success();
  InFlightDiagnostic error = own->emitError("the alternative with ");
  auto print = [&](tile::EntryOpInterface entry, unsigned count) {
    if (i == count)
      error << "no argument " << i + 1;
    else
      error << "%" << entry.getArgumentName(i) << ": " << entry.getArgument(i).getType();
  };
  error << printValues(added) << " takes ";
  print(own, numOwn);
  error << ", and that with " << printValues(alternatives.front()) << " ";
  print(first, numFirst);
  return error << "; a launch chooses among kernels of the same arguments: use no parameter that "
                  "has alternatives in them, or give it a value with -D";
}

LogicalResult Alternatives::add(OwningOpRef<ModuleOp> form, TunedForm tuned) {
  ModuleOp preferred = getPreferred(form, tuned);
  tile::EntryOpInterface found = tile::findEntry(preferred, "");
  if (!found || tile::getKernels(found).size() != llvm::range_size(preferred.getOps<KernelOp>()))
    return emitError(form->getLoc(),
                     "alternatives are those of one kernel or sequence, and the source has "
                     "several; name one with --kernel");
  Alternative added;
  if (failed(addLaunches(found, added.launches)))
    return failure();
  added.parameters =
      tile::TileDialect::ParametersAttrHelper(preferred.getContext()).getAttr(preferred);
  added.isSequence = isa<SequenceOp>(found.getOperation());
  added.entry = found.getSymName().str();
  added.form = std::move(form);
  added.tuned = std::move(tuned);
  if (alternatives.empty())
    entry = added.entry;
  else if (failed(checkArguments(added)))
    return failure();
  bool isNew = llvm::all_of(alternatives, [&](const Alternative &other) {
    return llvm::any_of(varied, [&](StringRef name) { return differs(added, other, name); });
  });
  if (isNew)
    alternatives.push_back(std::move(added));
  return success();
}

bool Alternatives::differs(const Alternative &a, const Alternative &b, StringRef parameter) const {
  return a.parameters.get(parameter) != b.parameters.get(parameter);
}

/// "attention_fwd_BM192": the name in the source with the parameters in which alternatives differ.
void Alternatives::nameAll() {
  for (Alternative &alternative : alternatives) {
    alternative.name = entry;
    for (StringRef parameter : varied) {
      if (llvm::none_of(alternatives, [&](const Alternative &other) {
            return differs(other, alternatives.front(), parameter);
          }))
        continue;
      std::string value;
      llvm::raw_string_ostream os(value);
      Attribute attribute = alternative.parameters.get(parameter);
      if (auto text = dyn_cast<StringAttr>(attribute))
        os << text.getValue();
      else
        attribute.print(os, /*elideType=*/true);
      alternative.name += ("_" + parameter + value).str();
    }
  }
}

/// The name in the bundle of a kernel: "gemm_PART32_parts" of the "gemm_parts" of a sequence.
std::string Alternatives::rename(const Alternative &alternative, StringRef kernel) const {
  StringRef rest = kernel;
  if (rest.consume_front(alternative.entry) && (rest.empty() || rest.starts_with("_")))
    return (alternative.name + rest).str();
  return (alternative.name + "_" + kernel).str();
}

size_t Alternatives::countKernels() const {
  size_t count = 0;
  for (const Alternative &alternative : alternatives) {
    llvm::StringSet<> kernels;
    for (const auto &launch : alternative.launches)
      kernels.insert(launch.first);
    count += kernels.size();
  }
  return count;
}

/// Copies what `from` has of an alternative into `to`, with its names in the bundle; kernels with
/// the schedules that the source itself requests, where these are asked for.
void Alternatives::putInto(ModuleOp to, const Alternative &alternative, ModuleOp from,
                           bool asRequested) const {
  for (auto kernel : from.getOps<KernelOp>()) {
    KernelOp copy = kernel.clone();
    if (asRequested) {
      auto requested = alternative.form.get().lookupSymbol<KernelOp>(kernel.getSymName());
      copy.setScheduleAttr(requested ? requested.getScheduleAttr() : tile::ScheduleAttr());
    }
    copy.setSymName(rename(alternative, kernel.getSymName()));
    to.push_back(copy);
  }
  for (auto sequence : from.getOps<SequenceOp>()) {
    SequenceOp copy = sequence.clone();
    copy.setSymName(alternative.name);
    for (auto launch : copy.getOps<tile::LaunchOp>())
      launch.setKernel(rename(alternative, launch.getKernel()));
    to.push_back(copy);
  }
}

void Alternatives::merge(OwningOpRef<ModuleOp> &form, TunedForm &tuned) {
  if (alternatives.size() == 1) {
    form = std::move(alternatives.front().form);
    tuned = std::move(alternatives.front().tuned);
    return;
  }
  nameAll();
  bool hasEntry = llvm::any_of(alternatives, [](const Alternative &alternative) {
    return static_cast<bool>(alternative.tuned.module);
  });
  for (auto [i, alternative] : llvm::enumerate(alternatives)) {
    ModuleOp preferred = getPreferred(alternative.form, alternative.tuned);
    if (i == 0) {
      form = preferred.clone();
      for (tile::EntryOpInterface copied : tile::getEntries(*form))
        copied->erase();
      tuned.module = hasEntry ? form->clone() : OwningOpRef<ModuleOp>();
    }
    // Where an entry turns out not to hold, its tiles are kept and the schedule is chosen.
    putInto(*form, alternative, preferred, /*asRequested=*/true);
    if (hasEntry)
      putInto(*tuned.module, alternative, preferred, /*asRequested=*/false);
    for (TunedKernel known : alternative.tuned.kernels) {
      known.name = rename(alternative, known.name);
      tuned.kernels.push_back(std::move(known));
    }
  }
}

/// The entry of a name.
static const json::Object *findByName(const json::Array &entries, StringRef name) {
  for (const json::Value &entry : entries)
    if (entry.getAsObject()->getString(key::name) == name)
      return entry.getAsObject();
  return nullptr;
}

static const TunedKernel *findByName(const TunedForm &tuned, StringRef name) {
  auto found =
      llvm::find_if(tuned.kernels, [&](const TunedKernel &kernel) { return kernel.name == name; });
  return found == tuned.kernels.end() ? nullptr : &*found;
}

/// What all launches should take, those of each alternative behind those of the ones before.
std::vector<LaunchTimes> Alternatives::findTimes(const json::Array &kernels,
                                                 const TunedForm &tuned) const {
  std::vector<LaunchTimes> times;
  SmallVector<bool> isMeasured;
  std::optional<size_t> measured;
  // What was measured is measured of a kernel by itself. Times of runs of their own, at other
  // clocks, do not go with those of one run.
  auto findKnown = [&](const Alternative &alternative) {
    return alternative.isSequence ? nullptr : findByName(tuned, alternative.name);
  };
  bool areTogether = llvm::any_of(alternatives, [&](const Alternative &alternative) {
    const TunedKernel *known = findKnown(alternative);
    return known && known->times;
  });
  for (const Alternative &alternative : alternatives) {
    const TunedKernel *known = findKnown(alternative);
    for (const auto &[kernel, found] : alternative.launches) {
      LaunchTimes &own = times.emplace_back(found);
      own.setCompiled(*findByName(kernels, rename(alternative, kernel)),
                      alternative.tuned.multiprocessors, alternative.parameters.getContext());
      bool hasTimes = known && known->times;
      if (hasTimes)
        own.take(*known->times);
      isMeasured.push_back(hasTimes || (known && !areTogether && own.fit(known->measured)));
      if (isMeasured.back() && !measured)
        measured = times.size() - 1;
    }
  }
  auto preferred = ArrayRef(times).take_front(alternatives.front().launches.size());
  for (auto [own, fitted] : llvm::zip_equal(times, isMeasured))
    if (!fitted)
      own.estimate(measured ? &times[*measured] : nullptr,
                   llvm::any_of(preferred, [&, &own = own](const LaunchTimes &other) {
                     return own.hasTileOf(other);
                   }));
  return times;
}

FailureOr<json::Object> Alternatives::describe(const json::Array &kernels,
                                               const json::Array &sequences,
                                               const TunedForm &tuned) const {
  std::vector<LaunchTimes> times = findTimes(kernels, tuned);
  auto next = times.begin();
  json::Array described;
  for (const Alternative &alternative : alternatives) {
    FailureOr<json::Value> parameters =
        toJSON(alternative.parameters, UnknownLoc::get(alternative.parameters.getContext()));
    if (failed(parameters))
      return failure();
    json::Array models;
    for (size_t i = 0; i < alternative.launches.size(); ++i)
      models.push_back((next++)->describe());
    json::Object object{{key::parameters, std::move(*parameters)}};
    object[alternative.isSequence ? key::sequence : key::kernel] = alternative.name;
    if (alternative.isSequence) {
      object[key::launchUs] = times.front().findLaunchTime();
      object[key::models] = std::move(models);
    } else {
      object[key::model] = std::move(models.front());
    }
    described.push_back(std::move(object));
  }
  const Alternative &front = alternatives.front();
  const json::Object &first = *findByName(front.isSequence ? sequences : kernels, front.name);
  return json::Object{{key::name, entry},
                      {key::arguments, json::Array(*first.getArray(key::arguments))},
                      {key::dims, json::Array(*first.getArray(key::dims))},
                      {key::alternatives, std::move(described)}};
}
