//===- NcuTable.cpp - Samples of a profiler -------------------------------===//

#include "lib/Inspect/Sass.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;
using namespace tessera::sass;

using Row = std::vector<std::string>;

/// The fields of a line of CSV (RFC 4180, without line breaks in fields).
static Row splitFields(StringRef line) {
  Row fields;
  std::string field;
  bool isQuoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    char c = line[i];
    if (c == '"' && isQuoted && i + 1 < line.size() && line[i + 1] == '"')
      field += line[++i];
    else if (c == '"')
      isQuoted = !isQuoted;
    else if (c == ',' && !isQuoted)
      fields.push_back(std::move(field)), field.clear();
    else
      field += c;
  }
  fields.push_back(std::move(field));
  return fields;
}

static std::optional<size_t> findColumn(const Row &header, StringRef name) {
  auto found = llvm::find(header, name);
  return found == header.end() ? std::nullopt : std::optional<size_t>(found - header.begin());
}

static uint64_t toNumber(StringRef field) {
  uint64_t number = 0;
  return field.trim().getAsInteger(10, number) ? 0 : number;
}

/// The opcode of an instruction as ncu prints it.
static StringRef getOpcode(StringRef source) {
  source = source.trim();
  if (source.starts_with("@"))
    source = source.split(' ').second.ltrim();
  return source.take_until([](char c) { return c == ' ' || c == ';'; });
}

namespace {
/// Where the columns are.
struct Columns {
  size_t source = 0, samples = 0, width = 0;
  std::vector<std::pair<std::string, size_t>> stalls;
};
} // namespace

static std::optional<Columns> readHeader(const Row &row) {
  std::optional<size_t> source = findColumn(row, "Source"), samples = findColumn(row, "# Samples");
  if (!samples)
    samples = findColumn(row, "Samples");
  if (!source || !samples)
    return std::nullopt;
  Columns columns{*source, *samples, row.size(), {}};
  for (auto [i, name] : enumerate(row)) {
    StringRef reason = name;
    // Those "(Not Issued)" are counted among the others.
    if (reason.consume_front("stall_") && !reason.contains("Not"))
      columns.stalls.emplace_back(reason.str(), i);
  }
  return columns;
}

Expected<Samples> tessera::sass::readNcuTable(StringRef csv, const Function &function) {
  std::optional<Columns> columns;
  Samples samples;
  while (!csv.empty()) {
    auto [line, rest] = csv.split('\n');
    csv = rest;
    Row row = splitFields(line.rtrim('\r'));
    if (!columns) {
      columns = readHeader(row);
      continue;
    }
    if (row.size() != columns->width)
      continue;
    size_t index = samples.places.size();
    StringRef opcode = getOpcode(row[columns->source]);
    if (index >= function.instructions.size() || opcode != function.instructions[index].opcode)
      return createStringError(
          "row " + Twine(index + 1) + " has " + opcode + " where '" + function.name + "' has " +
          (index < function.instructions.size() ? function.instructions[index].opcode : "its end") +
          "; the profile is of other machine code");
    Samples::Place &place = samples.places.emplace_back();
    place.total = toNumber(row[columns->samples]);
    samples.total += place.total;
    for (auto &[reason, column] : columns->stalls)
      if (uint64_t count = toNumber(row[column]))
        place.stalls[reason] = count;
  }
  if (!columns)
    return createStringError("has no columns \"Source\" and \"# Samples\"; it is what ncu --import "
                             "REPORT --page source --csv prints");
  samples.places.resize(function.instructions.size());
  return samples;
}
