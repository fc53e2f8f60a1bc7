//===- Timeline.cpp - The text form of a timeline -------------------------===//

#include "lib/Timeline/Timeline.h"
#include "lib/Support/Json.h"
#include "lib/Timeline/Json.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;
using namespace tessera::timeline;

static constexpr StringLiteral formatName = "tessera-timeline";
static constexpr int64_t formatVersion = 1;

/// In the order of StageKind.
static constexpr StringLiteral kindNames[] = {"wait",  "turn",   "sync",    "load",
                                              "issue", "finish", "compute", "store"};

std::string Stage::getProductName() const { return value.empty() ? label : value + " = " + label; }

std::string Stage::getPlace() const {
  if (!line)
    return "";
  return (file.empty() ? "line " : file + ":") + std::to_string(line);
}

std::string Stage::getTitle() const {
  return line ? getName() + " (" + getPlace() + ")" : getName();
}

std::string Stage::getName() const {
  switch (kind) {
  case StageKind::Turn:
    return "wait for the turn";
  case StageKind::Sync:
    return "wait for the warpgroup";
  case StageKind::Finish:
    return "wait for " + (value.empty() ? label : value);
  case StageKind::Issue:
    return "issue " + getProductName();
  case StageKind::Compute:
    return value.empty() ? label : value + ": " + label;
  case StageKind::Wait:
  case StageKind::Load:
  case StageKind::Store:
    return (kindNames[static_cast<int>(kind)] + " " + label).str();
  }
  llvm_unreachable("covered switch");
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static json::Value toJSON(const Stage &stage) {
  json::Object object{{"kind", kindNames[static_cast<int>(stage.kind)]},
                      {"label", stage.label},
                      {"line", stage.line},
                      {"column", stage.column}};
  if (!stage.value.empty())
    object["value"] = stage.value;
  if (!stage.file.empty())
    object["file"] = stage.file;
  if (!stage.products.empty())
    object["products"] = stage.products;
  return object;
}

static json::Value toJSON(const Record &record) {
  json::Array events;
  for (const Event &event : record.events)
    events.push_back(json::Array{event.clock, event.stage, event.iteration});
  return json::Object{{"block", record.block},
                      {"multiprocessor", record.multiprocessor},
                      {"role", record.role},
                      {"start", json::Array{record.startClock, record.startTime}},
                      {"end", json::Array{record.endClock, record.endTime}},
                      {"lost", record.lost},
                      {"events", std::move(events)}};
}

json::Value tessera::timeline::toJSON(const Timeline &timeline) {
  json::Array stages, records;
  for (const Stage &stage : timeline.stages)
    stages.push_back(::toJSON(stage));
  for (const Record &record : timeline.records)
    records.push_back(::toJSON(record));
  return json::Object{{"format", formatName},
                      {"version", formatVersion},
                      {"kernel", timeline.kernel},
                      {"schedule", timeline.schedule},
                      {"clock", timeline.unit == ClockUnit::Cycles ? "cycles" : "instructions"},
                      {"stages", std::move(stages)},
                      {"records", std::move(records)}};
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace tessera::timeline {

bool fromJSON(const json::Value &value, Stage &stage, json::Path path) {
  json::ObjectMapper map(value, path);
  std::string kind;
  if (!map || !map.map("kind", kind) || !map.map("label", stage.label) ||
      !map.map("line", stage.line) || !map.map("column", stage.column) ||
      !map.mapOptional("value", stage.value) || !map.mapOptional("file", stage.file) ||
      !map.mapOptional("products", stage.products))
    return false;
  const auto *name = llvm::find(kindNames, kind);
  if (name == std::end(kindNames)) {
    path.field("kind").report("is no kind of stage");
    return false;
  }
  stage.kind = static_cast<StageKind>(name - std::begin(kindNames));
  return true;
}

static bool fromJSON(const json::Value &value, Event &event, json::Path path) {
  std::vector<uint64_t> fields;
  if (!json::fromJSON(value, fields, path))
    return false;
  if (fields.size() != 3) {
    path.report("expected a clock, a stage and an iteration");
    return false;
  }
  event = {fields[0], static_cast<unsigned>(fields[1]), static_cast<int64_t>(fields[2])};
  return true;
}

static bool fromJSON(const json::Value &value, Record &record, json::Path path) {
  json::ObjectMapper map(value, path);
  std::vector<uint64_t> start, end;
  int64_t multiprocessor = 0;
  if (!map || !map.map("block", record.block) || !map.map("multiprocessor", multiprocessor) ||
      !map.map("role", record.role) || !map.map("start", start) || !map.map("end", end) ||
      !map.map("lost", record.lost) || !map.map("events", record.events))
    return false;
  if (start.size() != 2 || end.size() != 2) {
    path.report("\"start\" and \"end\" are a clock and a time in ns");
    return false;
  }
  record.multiprocessor = multiprocessor;
  std::tie(record.startClock, record.startTime) = std::pair(start[0], start[1]);
  std::tie(record.endClock, record.endTime) = std::pair(end[0], end[1]);
  return true;
}

static bool fromJSON(const json::Value &value, Timeline &timeline, json::Path path) {
  json::ObjectMapper map(value, path);
  std::string format, clock;
  int64_t version = 0;
  if (!map || !map.map("format", format) || !map.map("version", version))
    return false;
  if (format != formatName || version != formatVersion) {
    path.report("is not a timeline of version 1, as tessera run --trace writes them");
    return false;
  }
  if (!map.map("kernel", timeline.kernel) || !map.map("schedule", timeline.schedule) ||
      !map.map("clock", clock) || !map.map("stages", timeline.stages) ||
      !map.map("records", timeline.records))
    return false;
  if (clock != "cycles" && clock != "instructions") {
    path.field("clock").report("expected cycles or instructions");
    return false;
  }
  timeline.unit = clock == "cycles" ? ClockUnit::Cycles : ClockUnit::Instructions;
  return true;
}

/// Whether the parts of a timeline fit each other, so that no reader of one need look.
static Error checkConsistent(const Timeline &timeline) {
  size_t numStages = timeline.stages.size();
  for (const Stage &stage : timeline.stages)
    for (int64_t product : stage.products)
      if (product < 0 || static_cast<size_t>(product) >= numStages ||
          timeline.stages[product].kind != StageKind::Issue)
        return createStringError("a stage finishes the product " + Twine(product) +
                                 ", which no stage issues");
  for (const Record &record : timeline.records) {
    uint64_t clock = record.startClock;
    for (const Event &event : record.events) {
      if (event.stage >= numStages)
        return createStringError("an event has stage " + Twine(event.stage) + " of " +
                                 Twine(numStages));
      if (event.clock < clock)
        return createStringError("the events of " + record.role + " in block " +
                                 Twine(record.block) + " are not in order");
      clock = event.clock;
    }
    if (record.endClock < clock)
      return createStringError(record.role + " in block " + Twine(record.block) +
                               " ends before its last event");
  }
  return Error::success();
}

Expected<Timeline> fromJSON(StringRef text) {
  Expected<json::Value> parsed = parseJson(text);
  if (!parsed)
    return parsed.takeError();
  Timeline timeline;
  json::Path::Root root("timeline");
  if (!fromJSON(*parsed, timeline, root))
    return root.getError();
  if (Error error = checkConsistent(timeline))
    return std::move(error);
  return timeline;
}

} // namespace tessera::timeline
