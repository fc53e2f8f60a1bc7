//===- Database.cpp - Measured schedules ----------------------------------===//

#include "lib/Database/Database.h"
#include "lib/Database/Json.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <tuple>

using namespace tessera::tuning;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
namespace json = llvm::json;

static constexpr llvm::StringLiteral kFormat = "tessera-schedules";

template <typename Map>
static std::string printMap(const Map &map) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(map, os,
                        [&](const auto &item) { os << item.first << " = " << item.second; });
  return text;
}

std::string tessera::tuning::print(const Values &values) { return printMap(values); }
std::string tessera::tuning::print(const Extents &extents) { return printMap(extents); }

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

bool Entry::isTuned(StringRef parameter) const { return llvm::is_contained(tuned, parameter); }

/// What an entry is found by, without the parameters that tuning chose in either.
static Values getFixedParameters(const Entry &entry, const Entry &other) {
  Values fixed;
  for (const auto &[name, value] : entry.parameters)
    if (!entry.isTuned(name) && !other.isTuned(name))
      fixed[name] = value;
  return fixed;
}

static Values getGiven(const Entry &entry) {
  Values values;
  for (const std::string &name : entry.given)
    values[name] = entry.parameters.at(name);
  return values;
}

bool Entry::hasKeyOf(const Entry &other) const {
  if (gpu != other.gpu || shapeClass != other.shapeClass || fixed != other.fixed ||
      getGiven(*this) != getGiven(other))
    return false;
  return program == other.program ||
         (kernel == other.kernel &&
          getFixedParameters(*this, other) == getFixedParameters(other, *this));
}

std::string Entry::describe() const {
  std::string text = llvm::formatv("'{0}', {1}, {2}", kernel, shapeClass, gpu).str();
  for (const std::string &part : {tessera::tuning::print(getFixedParameters(*this, *this)), fixed})
    if (!part.empty())
      text += ", " + part;
  return text;
}

std::string Measurement::describeOrigin() const {
  std::vector<std::string> parts;
  if (!compiler.empty())
    parts.push_back("compiler " + compiler);
  if (!ptxas.empty())
    parts.push_back("ptxas " + ptxas);
  if (!date.empty())
    parts.push_back(date);
  if (clock)
    parts.push_back(std::to_string(clock) + " MHz");
  return llvm::join(parts, ", ");
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

namespace tessera::tuning {
static json::Value toJSON(const Measurement &measured) {
  json::Object object{{"shapes", toValue(measured.shapes)},
                      {"ms", toValue(measured.ms)},
                      {"model_ms", toValue(measured.modelMs)},
                      {"spread", measured.spread},
                      {"contestants", measured.contestants}};
  if (!measured.measuredWith.empty())
    object["measured_with"] = toValue(measured.measuredWith);
  auto addKnown = [&](StringRef name, const std::string &value) {
    if (!value.empty())
      object[name] = value;
  };
  addKnown("sequence", measured.sequence);
  addKnown("compiler", measured.compiler);
  addKnown("ptxas", measured.ptxas);
  addKnown("date", measured.date);
  addKnown("record", measured.record);
  if (measured.clock)
    object["clock_mhz"] = measured.clock;
  return object;
}

static bool fromJSON(const json::Value &value, Measurement &measured, json::Path path) {
  json::ObjectMapper map(value, path);
  if (!map || !map.map("shapes", measured.shapes) || !map.map("ms", measured.ms) ||
      !map.map("model_ms", measured.modelMs) || !map.map("spread", measured.spread) ||
      !map.map("contestants", measured.contestants) ||
      !map.mapOptional("measured_with", measured.measuredWith) ||
      !map.mapOptional("sequence", measured.sequence) ||
      !map.mapOptional("compiler", measured.compiler) ||
      !map.mapOptional("ptxas", measured.ptxas) || !map.mapOptional("date", measured.date) ||
      !map.mapOptional("record", measured.record) || !map.mapOptional("clock_mhz", measured.clock))
    return false;
  if (measured.ms.size() == measured.shapes.size() && measured.modelMs.size() == measured.ms.size())
    return true;
  path.report("needs a number in \"ms\" and \"model_ms\" for each of \"shapes\"");
  return false;
}

static json::Value toJSON(const Entry &entry) {
  json::Object object{{"program", entry.program},
                      {"kernel", entry.kernel},
                      {"gpu", entry.gpu},
                      {"class", entry.shapeClass},
                      {"parameters", toValue(entry.parameters)},
                      {"tuned", toValue(entry.tuned)},
                      {"schedule", entry.schedule},
                      {"measured", toJSON(entry.measured)}};
  if (!entry.tunedProgram.empty())
    object["tuned_program"] = entry.tunedProgram;
  if (!entry.fixed.empty())
    object["fixed"] = entry.fixed;
  if (!entry.given.empty())
    object["given"] = toValue(entry.given);
  return object;
}

static bool fromJSON(const json::Value &value, Entry &entry, json::Path path) {
  json::ObjectMapper map(value, path);
  // The first version has no program.
  if (!map || !map.mapOptional("program", entry.program) ||
      !map.mapOptional("tuned_program", entry.tunedProgram) || !map.map("kernel", entry.kernel) ||
      !map.map("gpu", entry.gpu) || !map.map("class", entry.shapeClass) ||
      !map.map("parameters", entry.parameters) || !map.map("tuned", entry.tuned) ||
      !map.mapOptional("fixed", entry.fixed) || !map.mapOptional("given", entry.given) ||
      !map.map("schedule", entry.schedule) || !map.map("measured", entry.measured))
    return false;
  auto areParameters = [&](const std::vector<std::string> &names, StringRef member) {
    for (const std::string &name : names)
      if (!entry.parameters.count(name)) {
        path.field(member).report("names something that is not among the parameters");
        return false;
      }
    return true;
  };
  return areParameters(entry.tuned, "tuned") && areParameters(entry.given, "given");
}

static json::Value toJSON(const TileTimes &times) {
  return json::Object{{"program", times.program},
                      {"kernel", times.kernel},
                      {"parameters", toValue(times.parameters)},
                      {"gpu", times.gpu},
                      {"iteration_us", times.iteration},
                      {"ends_us", times.ends},
                      {"shapes", times.shapes},
                      {"fit", times.fit}};
}

static bool fromJSON(const json::Value &value, TileTimes &times, json::Path path) {
  json::ObjectMapper map(value, path);
  if (!map || !map.map("program", times.program) || !map.map("kernel", times.kernel) ||
      !map.map("parameters", times.parameters) || !map.map("gpu", times.gpu) ||
      !map.map("iteration_us", times.iteration) || !map.map("ends_us", times.ends) ||
      !map.map("shapes", times.shapes) || !map.map("fit", times.fit))
    return false;
  if (times.iteration > 0 && times.ends >= 0)
    return true;
  path.report("needs an \"iteration_us\" above 0 and an \"ends_us\" that is not below");
  return false;
}

static json::Value toJSON(const Gpu &gpu) {
  return json::Object{{"multiprocessors", gpu.multiprocessors}};
}

static bool fromJSON(const json::Value &value, Gpu &gpu, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("multiprocessors", gpu.multiprocessors);
}

bool fromJSON(const json::Value &value, Database &database, json::Path path) {
  json::ObjectMapper map(value, path);
  if (!map || !map.map("default_gpu", database.defaultGpu) || !map.map("gpus", database.gpus) ||
      !map.map("entries", database.entries) || !map.mapOptional("times", database.times) ||
      !map.mapOptional("fits", database.fits))
    return false;
  for (auto [i, times] : llvm::enumerate(database.times))
    if (!database.fits.count(times.fit)) {
      path.field("times").index(i).field("fit").report("is not among \"fits\"");
      return false;
    }
  for (auto [i, entry] : llvm::enumerate(database.entries))
    if (!database.gpus.count(entry.gpu)) {
      path.field("entries").index(i).field("gpu").report("is not among \"gpus\"");
      return false;
    }
  return true;
}
} // namespace tessera::tuning

Expected<Database> Database::parse(StringRef text, int64_t oldest) {
  Database database;
  Versions versions{oldest, newestVersion,
                    "its entries do not say which programs were measured; where the sources are as "
                    "they were then, tessera tune --adopt FILE.tile --database DATABASE adds that, "
                    "else measure again with tessera tune"};
  if (Error error = parseDocument(text, "the schedule database", kFormat, database, versions))
    return std::move(error);
  for (auto [i, entry] : llvm::enumerate(database.entries))
    if (entry.program.empty() && oldest == newestVersion)
      return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                     "the schedule database: entries[" + llvm::Twine(i) +
                                         "].program is missing");
  return database;
}

Expected<Database> Database::load(StringRef path, int64_t oldest) {
  Expected<std::string> text = readFile(path);
  if (!text)
    return text.takeError();
  Expected<Database> database = parse(*text, oldest);
  if (database)
    return database;
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 "'" + path + "': " + toString(database.takeError()));
}

const TileTimes *Database::findTimes(StringRef program, StringRef gpu) const {
  auto found = llvm::find_if(times, [&](const TileTimes &candidate) {
    return candidate.program == program && candidate.gpu == gpu;
  });
  return found == times.end() ? nullptr : &*found;
}

std::string Database::print() const {
  json::Object document{{"format", kFormat},
                        {"version", newestVersion},
                        {"default_gpu", defaultGpu},
                        {"gpus", toValue(gpus)},
                        {"entries", toValue(entries)}};
  if (!times.empty()) {
    document["times"] = toValue(times);
    document["fits"] = toValue(fits);
  }
  return llvm::formatv("{0:1}\n", json::Value(std::move(document))).str();
}

void Database::insert(Entry entry, Gpu gpu) {
  if (defaultGpu.empty())
    defaultGpu = entry.gpu;
  gpus[entry.gpu] = gpu;
  llvm::erase_if(entries, [&](const Entry &old) { return old.hasKeyOf(entry); });
  entries.push_back(std::move(entry));
  llvm::sort(entries, [](const Entry &a, const Entry &b) {
    auto key = [](const Entry &e) {
      return std::tie(e.kernel, e.gpu, e.parameters, e.shapeClass, e.fixed);
    };
    return key(a) < key(b);
  });
}
