//===- Recorder.cpp - What a compilation went through ---------------------===//

#include "lib/Explain/Recorder.h"
#include "dialects/Tile/ScheduleFields.h"
#include "lib/Compiler/Bundle.h"
#include "mlir/IR/AsmState.h"
#include "passes/Schedule/ScheduleChoice.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::explain;
using tile::KernelOp;
using tile::ScheduleAttr;
namespace json = llvm::json;

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

PlaceTable::PlaceTable(ArrayRef<SourceFile> sources) : places(1) {
  for (auto [i, file] : llvm::enumerate(sources))
    files[file.name] = i;
}

unsigned PlaceTable::add(Location loc) {
  Lines lines;
  loc->walk([&](Location part) {
    auto position = dyn_cast<FileLineColRange>(part);
    auto file = position ? files.find(position.getFilename().getValue()) : files.end();
    if (file != files.end() && position.getStartLine() > 0) {
      std::pair<unsigned, unsigned> line(file->second, position.getStartLine());
      if (!llvm::is_contained(lines, line))
        lines.push_back(line);
    }
    return WalkResult::advance();
  });
  if (lines.empty())
    return 0;
  auto [entry, isNew] = numbers.try_emplace(std::move(lines), places.size());
  if (isNew)
    places.push_back(entry->first);
  return entry->second;
}

json::Array PlaceTable::toJSON() const {
  json::Array all;
  for (const Lines &lines : places) {
    json::Array list;
    for (auto [file, line] : lines)
      list.push_back(json::Array{file, line});
    all.push_back(std::move(list));
  }
  return all;
}

//===----------------------------------------------------------------------===//
// Forms
//===----------------------------------------------------------------------===//

/// The numbers of the places of the operations that begin in the lines of a text, 0 for other
/// lines.
static json::Array placeLines(ModuleOp module, const AsmState::LocationMap &printed,
                              size_t numLines, PlaceTable &places) {
  std::vector<unsigned> numbers(numLines, 0);
  module->walk([&](Operation *op) {
    auto found = printed.find(op);
    // Counted from 1. The module's own place is that of the whole source.
    if (op != module && found != printed.end() && found->second.first <= numLines)
      numbers[found->second.first - 1] = places.add(op->getLoc());
  });
  return json::Array(numbers);
}

void Recorder::record(StringRef pass, ModuleOp module, bool hasFailed) {
  Forms &forms = inTrial ? trial : readings.back().forms;
  AsmState::LocationMap printed;
  // Values are called as in the source, as far as they come from there.
  AsmState state(module, OpPrintingFlags().assumeVerified().printNameLocAsPrefix(), &printed);
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os, state);
  json::Object form{{"pass", pass}};
  if (hasFailed)
    form["failed"] = true;
  if (text != forms.text) {
    form["at"] = placeLines(module, printed, llvm::count(text, '\n') + 1, places);
    form["text"] = json::fixUTF8(text);
    forms.text = std::move(text);
  }
  forms.list.push_back(std::move(form));
}

void Recorder::readSource(ModuleOp module) {
  inTrial = false;
  readings.push_back({tile::TileDialect::ParametersAttrHelper(module.getContext()).getAttr(module),
                      module.clone(),
                      {}});
  record("source", module, /*hasFailed=*/false);
}

void Recorder::runPass(StringRef pass, ModuleOp module, bool hasFailed) {
  record(pass, module, hasFailed);
}

/// The source that a form comes from: the one with its parameters.
Recorder::Reading &Recorder::findReading(ModuleOp module) {
  auto own = tile::TileDialect::ParametersAttrHelper(module.getContext()).getAttr(module);
  auto found =
      llvm::find_if(readings, [&](const Reading &reading) { return reading.parameters == own; });
  return found == readings.end() ? readings.front() : *found;
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

/// What the search makes of some fields.
json::Object Recorder::describeChoice(KernelOp kernel, ScheduleAttr asked) const {
  // Passes report what is wrong.
  ScopedDiagnosticHandler silence(kernel.getContext(),
                                  [](mlir::Diagnostic &) { return success(); });
  json::Object object{{"asked", tile::printScheduleFields(asked)}};
  FailureOr<SmallVector<ScheduleChoice>> choices = chooseSchedules(kernel, asked);
  if (failed(choices))
    return object;
  const ScheduleChoice &choice = choices->front();
  if (choice.schedule) {
    object["schedule"] = tile::printScheduleFields(choice.schedule);
    object["use"] = choice.use;
  }
  json::Array rejections;
  for (const ScheduleRejection &rejection : choice.rejections)
    rejections.push_back(
        json::Object{{"candidate", rejection.candidate}, {"reason", rejection.reason}});
  object["rejections"] = std::move(rejections);
  return object;
}

void Recorder::beginTrial(ModuleOp form) {
  ++numTrials;
  inTrial = true;
  tried = &findReading(form);
  trial = tried->forms;
  for (KernelOp kernel : form.getOps<KernelOp>()) {
    ScheduleAttr asked = getRequestedSchedule(kernel);
    json::Object choice = describeChoice(kernel, asked);
    choice["trial"] = numTrials;
    // Where a schedule was measured, or an earlier one did not hold, what the model had preferred.
    auto written = tried->source->lookupSymbol<KernelOp>(kernel.getSymName());
    if (ScheduleAttr own = getRequestedSchedule(written); own != asked)
      choice["model"] = describeChoice(kernel, own);
    choices[kernel.getSymName().str()].push_back(std::move(choice));
  }
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

void Recorder::endCompilation() {
  if (readings.empty())
    return;
  Reading &last = tried ? *tried : readings.back();
  if (!inTrial)
    trial = std::move(last.forms);
  if (last.parameters)
    if (FailureOr<json::Value> values = tessera::toJSON(last.parameters, last.source->getLoc());
        succeeded(values))
      parameters = std::move(*values);
  if (auto drawn = drawPictures(*last.source, request))
    pictures = std::move(*drawn);
  else
    problem = toString(drawn.takeError());
  readings.clear();
}

void Recorder::moveTo(json::Object &data) {
  data["parameters"] = std::move(parameters);
  data["places"] = places.toJSON();
  data["forms"] = std::move(trial.list);
  data["trials"] = numTrials;
  json::Array kernels;
  for (auto &[name, picture] : pictures) {
    json::Object kernel{{"name", name}, {"picture", std::move(picture)}};
    if (auto found = choices.find(name); found != choices.end())
      kernel["schedules"] = std::move(found->second);
    kernels.push_back(std::move(kernel));
  }
  data["kernels"] = std::move(kernels);
}
