//===- Alternatives.cpp - Kernels among which a launch chooses ------------===//

#include "lib/Compiler/Alternatives.h"
#include "dialects/Tile/Entries.h"
#include "lib/Compiler/Bundle.h"
#include "tessera/BundleKeys.h"

using namespace mlir;
using namespace tessera;
using tile::KernelOp;
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

/// The only kernel of a form.
static KernelOp getKernel(ModuleOp form) { return *form.getOps<KernelOp>().begin(); }

/// What is compiled first: that of the database, where it has one.
static ModuleOp getPreferred(OwningOpRef<ModuleOp> &form, TunedForm &tuned) {
  return tuned.module ? *tuned.module : *form;
}

LogicalResult Alternatives::add(OwningOpRef<ModuleOp> form, TunedForm tuned) {
  if (!llvm::hasSingleElement(tile::getEntries(*form)))
    return emitError(form->getLoc(),
                     "alternatives are those of one kernel, and the source has several; name one "
                     "with --kernel");
  ModuleOp preferred = getPreferred(form, tuned);
  FailureOr<LaunchTimes> times = LaunchTimes::of(getKernel(preferred));
  if (failed(times))
    return failure();
  DictionaryAttr parameters =
      tile::TileDialect::ParametersAttrHelper(preferred.getContext()).getAttr(preferred);
  Alternative added{std::move(form), std::move(tuned), parameters, std::move(*times), ""};
  kernel = getKernel(*added.form).getSymName().str();
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

/// "attention_fwd_BM192": the name of the kernel with the parameters in which alternatives differ.
void Alternatives::nameAll() {
  for (Alternative &alternative : alternatives) {
    alternative.name = kernel;
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
  auto putInto = [](ModuleOp to, KernelOp kernel, StringRef name) {
    KernelOp copy = kernel.clone();
    copy.setSymName(name);
    to.push_back(copy);
    return copy;
  };
  for (auto [i, alternative] : llvm::enumerate(alternatives)) {
    KernelOp preferred = getKernel(getPreferred(alternative.form, alternative.tuned));
    tile::ScheduleAttr requested = getKernel(*alternative.form).getScheduleAttr();
    if (i == 0) {
      form = preferred->getParentOfType<ModuleOp>().clone();
      getKernel(*form).erase();
      tuned.module = hasEntry ? form->clone() : OwningOpRef<ModuleOp>();
    }
    // Where an entry turns out not to hold, its tiles are kept and the schedule is chosen.
    putInto(*form, preferred, alternative.name).setScheduleAttr(requested);
    if (hasEntry)
      putInto(*tuned.module, preferred, alternative.name);
    for (TunedKernel known : alternative.tuned.kernels) {
      known.name = alternative.name;
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

FailureOr<json::Object> Alternatives::describe(const json::Array &kernels,
                                               const TunedForm &tuned) const {
  std::vector<LaunchTimes> times;
  const LaunchTimes *measured = nullptr;
  times.reserve(alternatives.size());
  SmallVector<bool> isMeasured;
  // Times of runs of their own, at other clocks, do not go with those of one run.
  bool areTogether = llvm::any_of(alternatives, [&](const Alternative &alternative) {
    const TunedKernel *known = findByName(tuned, alternative.name);
    return known && known->times;
  });
  for (const Alternative &alternative : alternatives) {
    MLIRContext *context = alternative.parameters.getContext();
    LaunchTimes &own = times.emplace_back(alternative.times);
    own.setCompiled(*findByName(kernels, alternative.name), alternative.tuned.multiprocessors,
                    context);
    const TunedKernel *known = findByName(tuned, alternative.name);
    bool hasTimes = known && known->times;
    if (hasTimes)
      own.take(*known->times);
    isMeasured.push_back(hasTimes || (known && !areTogether && own.fit(known->measured)));
    if (isMeasured.back() && !measured)
      measured = &own;
  }
  json::Array described;
  for (auto [alternative, own, fitted] : llvm::zip(alternatives, times, isMeasured)) {
    if (!fitted)
      own.estimate(measured, own.hasTileOf(times.front()));
    FailureOr<json::Value> parameters =
        toJSON(alternative.parameters, UnknownLoc::get(alternative.parameters.getContext()));
    if (failed(parameters))
      return failure();
    described.push_back(json::Object{{key::kernel, alternative.name},
                                     {key::parameters, std::move(*parameters)},
                                     {key::model, own.describe()}});
  }
  const json::Object &first = *findByName(kernels, alternatives.front().name);
  return json::Object{{key::name, kernel},
                      {key::arguments, json::Array(*first.getArray(key::arguments))},
                      {key::dims, json::Array(*first.getArray(key::dims))},
                      {key::alternatives, std::move(described)}};
}
