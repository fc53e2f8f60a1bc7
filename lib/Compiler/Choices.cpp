//===- Choices.cpp - Where parameters and schedules come from -------------===//

#include "lib/Compiler/Choices.h"
#include "dialects/Tile/ScheduleFields.h"
#include "lib/Source/Diagnostics.h"
#include "passes/Schedule/ScheduleChoice.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tessera;
namespace json = llvm::json;
using llvm::StringMap;
using tile::ScheduleFieldInfo;

/// Says `origin` of the fields of `schedule` that are what is `requested`, where no other is known.
static void addOrigins(tile::ScheduleAttr schedule, tile::ScheduleAttr requested, StringRef origin,
                       StringMap<std::string> &origins) {
  if (!schedule)
    return;
  tile::ScheduleFields mine = schedule.getFields(), theirs = requested.getFields();
  mine.visitWith(theirs, [&](const ScheduleFieldInfo &info, const auto &value, const auto &other) {
    if (value && value == other)
      origins.try_emplace(info.name, origin);
  });
}

/// The fields of a schedule that a rule chose, which was read before.
static tile::ScheduleAttr parseChosen(MLIRContext *context, StringRef text) {
  ErrorCapture errors(context);
  FailureOr<tile::ScheduleAttr> fields = tile::ScheduleAttr::parseText(
      context, text, [&] { return emitError(UnknownLoc::get(context)); });
  return failed(fields) ? tile::ScheduleAttr() : *fields;
}

static json::Object describeSchedule(tile::KernelOp kernel, ArrayRef<Choice> choices,
                                     ArrayRef<ScheduleOverride> asked, const TunedKernel *tuned) {
  StringMap<std::string> origins;
  tile::ScheduleAttr requested = getRequestedSchedule(kernel);
  for (const ScheduleOverride &item : asked)
    if (item.kernel.empty() || item.kernel == kernel.getSymName())
      addOrigins(item.fields, requested, "given", origins);
  for (const Choice &choice : choices)
    if (choice.kernel == kernel.getSymName())
      addOrigins(parseChosen(kernel.getContext(), choice.value), requested, choice.origin, origins);
  if (tuned && tuned->entry)
    addOrigins(tuned->schedule, requested, "database", origins);
  addOrigins(requested, requested, "source", origins);
  json::Object described;
  for (const ScheduleFieldInfo &info : tile::ScheduleAttr::getFieldInfos()) {
    auto known = origins.find(info.name);
    described[info.name] = known == origins.end() ? "model" : known->second;
  }
  return described;
}

json::Object tessera::describeOrigins(tile::KernelOp kernel, ArrayRef<Choice> choices,
                                      ArrayRef<ScheduleOverride> asked, const TunedKernel *tuned) {
  json::Object parameters;
  for (const Choice &choice : choices)
    if (choice.kernel.empty()) {
      bool isMeasured =
          tuned && tuned->entry && tuned->isChanged && tuned->entry->isTuned(choice.name);
      parameters[choice.name] = isMeasured ? "database" : choice.origin;
    }
  return json::Object{{"parameters", std::move(parameters)},
                      {"schedule", describeSchedule(kernel, choices, asked, tuned)}};
}

Resolution tessera::resolve(StringRef source, StringRef fileName, const CompileOptions &options,
                            const DiagnosticHandler &handler) {
  DialectRegistry registry;
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  DiagnosticForwarder forwarder(context, handler, /*remarks=*/false);
  ParameterResult read =
      readParameters(source, fileName, options.defines, context, options.getImports());
  Resolution result;
  result.status = read.status;
  if (read.status != CompileStatus::Success)
    return result;
  auto describe = [](std::string value, std::string origin) {
    return json::Object{{"value", std::move(value)}, {"origin", std::move(origin)}};
  };
  json::Object parameters, schedules;
  for (const source::Parameter &parameter : read.table.getParameters()) {
    json::Object described = describe(parameter.value.str(), parameter.describeOrigin());
    json::Array allowed;
    for (const std::string &text : parameter.allowed)
      for (std::string &value : source::expandAllowed(text))
        allowed.push_back(std::move(value));
    if (!allowed.empty())
      described["allowed"] = std::move(allowed);
    parameters[parameter.name] = std::move(described);
  }
  for (const source::ChosenSchedule &chosen : read.table.getSchedules())
    schedules[chosen.kernel] = describe(chosen.rule->schedule, chosen.rule->describePlace());
  json::Array extents;
  for (const auto &[term, holds] : read.table.getComparisons())
    extents.push_back(json::Array{llvm::cantFail(json::parse(term)), holds});
  result.choices["extents"] = std::move(extents);
  result.choices["parameters"] = std::move(parameters);
  result.choices["schedules"] = std::move(schedules);
  json::Array instead;
  for (const std::vector<source::Define> &values : read.table.getInstead()) {
    json::Object taken;
    for (const auto &[name, value] : values)
      taken[name] = value;
    instead.push_back(std::move(taken));
  }
  if (!instead.empty())
    result.choices["instead"] = std::move(instead);
  if (const source::Rule *rule = read.table.getForm())
    result.choices["form"] = describe(rule->form, rule->describePlace());
  return result;
}

/// "D = 64, SK = 512": what the options say of the program and its extents.
static std::string describeCase(const CompileOptions &options) {
  std::vector<std::string> texts;
  for (const auto &[name, value] : options.defines)
    texts.push_back(name + " = " + value);
  for (const auto &[name, extent] : options.tuning.shape)
    texts.push_back(name + " = " + std::to_string(extent));
  return texts.empty() ? "the defaults of the source" : llvm::join(texts, ", ");
}

/// Those of rules, first what is the likeliest to be at fault: what a user's rule chooses, then a
/// schedule, then what a rule for few cases chooses.
static SmallVector<const Choice *> listChoicesOfRules(ArrayRef<Choice> choices) {
  SmallVector<const Choice *> ofRules;
  for (const Choice &choice : choices)
    if (choice.line)
      ofRules.push_back(&choice);
  llvm::stable_sort(ofRules, [](const Choice *a, const Choice *b) {
    auto rank = [](const Choice &choice) {
      return std::tuple(choice.isUsers, !choice.kernel.empty(), choice.conditions);
    };
    return rank(*a) > rank(*b);
  });
  return ofRules;
}

void tessera::reportRules(ModuleOp source, ArrayRef<Choice> choices,
                          const CompileOptions &options) {
  // Beside what the caller chooses a rule may be right.
  if (llvm::any_of(choices, [](const Choice &choice) { return choice.isFree && !choice.line; }))
    return;
  MLIRContext *context = source.getContext();
  SmallVector<const Choice *> ofRules = listChoicesOfRules(choices);
  if (ofRules.empty())
    return;
  SmallVector<StringRef> kernels;
  for (auto kernel : source.getOps<tile::KernelOp>())
    kernels.push_back(kernel.getSymName());
  auto locate = [&](const Choice &choice) {
    return FileLineColLoc::get(context, choice.file, choice.line, 1);
  };
  auto describe = [](const Choice &choice) {
    return (choice.kernel.empty() ? "" : "for '" + choice.kernel + "' ") + choice.name + " = " +
           choice.value;
  };
  InFlightDiagnostic error = emitError(locate(*ofRules.front()));
  error << "what this rule chooses, " << describe(*ofRules.front()) << ", is part of "
        << llvm::join(kernels, ", ") << " with " << describeCase(options)
        << ", which does not compile";
  for (const Choice *choice : ArrayRef(ofRules).drop_front())
    error.attachNote(locate(*choice)) << "so is " << describe(*choice);
}
