//===- SessionJson.cpp - Sessions and lists of targets as JSON ------------===//

#include "lib/Database/Json.h"
#include "lib/Tuning/Session.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace tessera::tuning;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
namespace json = llvm::json;

static constexpr llvm::StringLiteral kSessionFormat = "tessera-tuning";
static constexpr Versions kSessionVersions = {
    2, 2,
    "it does not say which programs were measured; compile and measure again (tessera tune "
    "--compile-only, --measure)"};
static constexpr llvm::StringLiteral kListFormat = "tessera-tuning-list";

namespace tessera::tuning {

//===----------------------------------------------------------------------===//
// Timings
//===----------------------------------------------------------------------===//

static json::Value toJSON(const Timing &timing) {
  if (!timing.failure.empty())
    return json::Object{{"failure", timing.failure}};
  return json::Object{
      {"ms", timing.ms.median},     {"min_ms", timing.ms.min},
      {"spread", timing.ms.spread}, {"samples", static_cast<int64_t>(timing.ms.count)},
      {"mhz", timing.mhz},          {"watts", timing.watts},
      {"waves", timing.waves},      {"difference", timing.difference}};
}

static bool fromJSON(const json::Value &value, Timing &timing, json::Path path) {
  json::ObjectMapper map(value, path);
  if (!map || !map.mapOptional("failure", timing.failure))
    return false;
  int64_t count = 0;
  if (!timing.failure.empty())
    return true;
  bool isRead = map.map("ms", timing.ms.median) && map.map("min_ms", timing.ms.min) &&
                map.map("spread", timing.ms.spread) && map.map("samples", count) &&
                map.map("mhz", timing.mhz) && map.map("watts", timing.watts) &&
                map.map("waves", timing.waves) && map.map("difference", timing.difference);
  timing.ms.count = count;
  return isRead;
}

//===----------------------------------------------------------------------===//
// Contestants
//===----------------------------------------------------------------------===//

static json::Value toJSON(const Resources &resources) {
  return json::Object{{"registers", resources.registers},
                      {"spill_bytes", resources.spillBytes},
                      {"shared_memory", resources.sharedMemory},
                      {"threads", resources.threads}};
}

static bool fromJSON(const json::Value &value, Resources &resources, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("registers", resources.registers) &&
         map.map("spill_bytes", resources.spillBytes) &&
         map.map("shared_memory", resources.sharedMemory) && map.map("threads", resources.threads);
}

static json::Value toJSON(const Contestant &contestant) {
  const Candidate &candidate = contestant.candidate;
  json::Array timings;
  for (const std::optional<Timing> &timing : contestant.timings)
    timings.push_back(timing ? toJSON(*timing) : json::Value(nullptr));
  return json::Object{{"tuned", toValue(candidate.tuned)},
                      {"parameters", toValue(candidate.parameters)},
                      {"schedule", candidate.schedule},
                      {"use", candidate.use},
                      {"program", candidate.program},
                      {"also_parameters", toValue(contestant.alsoParameters)},
                      {"also_programs", toValue(contestant.alsoPrograms)},
                      {"bundle", contestant.bundle},
                      {"error", contestant.error},
                      {"resources", toJSON(contestant.resources)},
                      {"timings", std::move(timings)}};
}

static bool fromJSON(const json::Value &value, Contestant &contestant, json::Path path) {
  json::ObjectMapper map(value, path);
  Candidate &candidate = contestant.candidate;
  return map && map.map("tuned", candidate.tuned) && map.map("parameters", candidate.parameters) &&
         map.map("schedule", candidate.schedule) && map.map("use", candidate.use) &&
         map.map("program", candidate.program) &&
         map.map("also_parameters", contestant.alsoParameters) &&
         map.map("also_programs", contestant.alsoPrograms) &&
         map.map("bundle", contestant.bundle) && map.map("error", contestant.error) &&
         map.map("resources", contestant.resources) && map.map("timings", contestant.timings);
}

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

static json::Value toJSON(const TargetShape &shape) {
  return json::Object{{"extents", toValue(shape.extents)},
                      {"tiles", static_cast<int64_t>(shape.measure.tiles)},
                      {"iterations", shape.measure.iterations}};
}

static bool fromJSON(const json::Value &value, TargetShape &shape, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("extents", shape.extents) && map.map("tiles", shape.measure.tiles) &&
         map.map("iterations", shape.measure.iterations);
}

static json::Value toJSON(const Rejection &rejection) {
  return json::Object{{"candidate", rejection.candidate}, {"reason", rejection.reason}};
}

static bool fromJSON(const json::Value &value, Rejection &rejection, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("candidate", rejection.candidate) && map.map("reason", rejection.reason);
}

static json::Value toJSON(const Target &target) {
  json::Object object{{"file", target.file},
                      {"kernel", target.kernel},
                      {"program", target.program},
                      {"also_programs", toValue(target.alsoPrograms)},
                      {"scalars", toValue(target.scalars)},
                      {"orders", toValue(target.orders)},
                      {"fixed", target.fixed},
                      {"given", toValue(target.given)},
                      {"also", toValue(target.also)},
                      {"shapes", toValue(target.shapes)},
                      {"contestants", toValue(target.contestants)},
                      {"rejections", toValue(target.rejections)},
                      {"is_cut", target.isCut}};
  if (!target.sequence)
    return object;
  object["sequence"] = static_cast<int64_t>(*target.sequence);
  object["alone_ms"] = toValue(target.aloneMs);
  return object;
}

static bool fromJSON(const json::Value &value, Target &target, json::Path path) {
  json::ObjectMapper map(value, path);
  if (!map || !map.map("file", target.file) || !map.map("kernel", target.kernel) ||
      !map.map("program", target.program) || !map.map("also_programs", target.alsoPrograms) ||
      !map.map("scalars", target.scalars) || !map.map("orders", target.orders) ||
      !map.map("fixed", target.fixed) || !map.mapOptional("given", target.given) ||
      !map.map("also", target.also) || !map.map("shapes", target.shapes) ||
      !map.map("contestants", target.contestants) || !map.map("rejections", target.rejections) ||
      !map.map("is_cut", target.isCut) || !map.mapOptional("sequence", target.sequence) ||
      !map.mapOptional("alone_ms", target.aloneMs))
    return false;
  if (target.aloneMs.size() > target.shapes.size()) {
    path.field("alone_ms").report("has an element for each of \"shapes\" at most");
    return false;
  }
  if (target.alsoPrograms.size() != target.also.size()) {
    path.field("also_programs").report("needs an element for each of \"also\"");
    return false;
  }
  for (auto [i, contestant] : llvm::enumerate(target.contestants)) {
    json::Path place = path.field("contestants").index(i);
    if (contestant.timings.size() != target.shapes.size())
      place.field("timings").report("needs an element for each of \"shapes\"");
    else if (contestant.alsoParameters.size() != target.also.size())
      place.field("also_parameters").report("needs an element for each of \"also\"");
    else if (contestant.alsoPrograms.size() != target.also.size())
      place.field("also_programs").report("needs an element for each of \"also\"");
    else
      continue;
    return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

static json::Value toJSON(const SequenceForm &form) {
  return json::Object{{"tuned", toValue(form.tuned)},
                      {"parameters", toValue(form.parameters)},
                      {"programs", toValue(form.programs)},
                      {"bundle", form.bundle},
                      {"error", form.error}};
}

static bool fromJSON(const json::Value &value, SequenceForm &form, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("tuned", form.tuned) && map.map("parameters", form.parameters) &&
         map.map("programs", form.programs) && map.map("bundle", form.bundle) &&
         map.map("error", form.error);
}

static json::Value toJSON(const TargetSequence &sequence) {
  return json::Object{{"name", sequence.name}, {"forms", toValue(sequence.forms)}};
}

static bool fromJSON(const json::Value &value, TargetSequence &sequence, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("name", sequence.name) && map.map("forms", sequence.forms);
}

//===----------------------------------------------------------------------===//
// Sessions
//===----------------------------------------------------------------------===//

static json::Value toJSON(const Device &device) {
  return json::Object{{"name", device.name}, {"multiprocessors", device.multiprocessors}};
}

static bool fromJSON(const json::Value &value, Device &device, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("name", device.name) && map.map("multiprocessors", device.multiprocessors);
}

static bool fromJSON(const json::Value &value, Session &session, json::Path path) {
  json::ObjectMapper map(value, path);
  if (!map || !map.map("compiler", session.compiler) || !map.map("ptxas", session.ptxas) ||
      !map.map("device", session.device) || !map.map("date", session.date) ||
      !map.map("targets", session.targets) || !map.mapOptional("sequences", session.sequences))
    return false;
  for (auto [i, target] : llvm::enumerate(session.targets))
    if (target.sequence && *target.sequence >= session.sequences.size()) {
      path.field("targets").index(i).field("sequence").report("is not among \"sequences\"");
      return false;
    }
  return true;
}

} // namespace tessera::tuning

std::string Session::print() const {
  json::Object document{{"format", kSessionFormat},
                        {"version", kSessionVersions.newest},
                        {"compiler", compiler},
                        {"ptxas", ptxas},
                        {"date", date},
                        {"device", device ? toJSON(*device) : json::Value(nullptr)},
                        {"targets", toValue(targets)},
                        {"sequences", toValue(sequences)}};
  return llvm::formatv("{0:1}\n", json::Value(std::move(document))).str();
}

Expected<Session> Session::load(StringRef path) {
  Expected<std::string> text = readFile(path);
  if (!text)
    return text.takeError();
  Session session;
  if (Error error = parseDocument(*text, path, kSessionFormat, session, kSessionVersions))
    return std::move(error);
  return session;
}

bool Session::hasSameContestants(const Session &other) const {
  auto stripped = [](Session session) {
    session.device.reset();
    session.date.clear();
    for (Target &target : session.targets) {
      target.aloneMs.clear();
      for (Contestant &contestant : target.contestants)
        contestant.timings.assign(target.shapes.size(), std::nullopt);
    }
    return session.print();
  };
  return stripped(*this) == stripped(other);
}

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

namespace tessera::tuning {
static bool fromJSON(const json::Value &value, TargetSpec &spec, json::Path path) {
  json::ObjectMapper map(value, path);
  Values define;
  std::map<std::string, std::vector<std::string>> vary;
  SearchSpace &space = spec.space;
  if (!map || !map.map("file", spec.file) || !map.mapOptional("kernel", space.kernel) ||
      !map.mapOptional("define", define) || !map.mapOptional("vary", vary) ||
      !map.mapOptional("schedule", space.schedule) || !map.map("fields", space.fields) ||
      !map.mapOptional("budget", space.budget) || !map.map("shapes", spec.shapes) ||
      !map.mapOptional("set", spec.scalars) || !map.mapOptional("order", spec.orders) ||
      !map.mapOptional("also", spec.also))
    return false;
  space.defines.assign(define.begin(), define.end());
  for (auto &[name, values] : vary)
    space.varied.push_back({name, values});
  return true;
}

namespace detail {
struct TargetList {
  std::vector<TargetSpec> targets;
};

static bool fromJSON(const json::Value &value, TargetList &list, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("targets", list.targets);
}
} // namespace detail
} // namespace tessera::tuning

Expected<std::vector<TargetSpec>> tessera::tuning::readTargetList(StringRef path) {
  Expected<std::string> text = readFile(path);
  if (!text)
    return text.takeError();
  detail::TargetList list;
  if (Error error = parseDocument(*text, path, kListFormat, list))
    return std::move(error);
  for (TargetSpec &spec : list.targets) {
    llvm::SmallString<128> file = llvm::sys::path::parent_path(path);
    llvm::sys::path::append(file, spec.file);
    spec.file = file.str().str();
  }
  return std::move(list.targets);
}
