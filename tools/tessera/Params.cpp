//===- Params.cpp - tessera params ----------------------------------------===//

#include "dialects/Tile/ScheduleFields.h"
#include "dialects/Tile/Tile.h"
#include "lib/Reference/Reference.h"
#include "lib/Source/Shipped.h"
#include "mlir/IR/MLIRContext.h"
#include "tools/tessera/Commands.h"
#include "tools/tessera/DiagnosticPrinter.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <CLI/CLI.hpp>

using namespace llvm;
using namespace tessera;

namespace {
struct ParamsCommand {
  ImportOptions imports;
  std::string file;
  std::vector<std::pair<std::string, std::string>> defines;
  bool json = false;
  bool scheduleFields = false;
};
} // namespace

/// Prints rows in columns as wide as their longest cell.
static void printTable(const std::vector<std::vector<std::string>> &rows) {
  std::vector<size_t> widths;
  for (const std::vector<std::string> &row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (auto [width, cell] : zip(widths, row))
      width = std::max(width, cell.size());
  }
  for (const std::vector<std::string> &row : rows) {
    std::string line;
    for (auto [width, cell] : zip(widths, row))
      line += "  " + cell + std::string(width - cell.size(), ' ');
    outs() << StringRef(line).rtrim() << "\n";
  }
}

static void printText(const SourceInfo &info) {
  std::vector<std::vector<std::string>> rows = {
      {"parameter", "kind", "value", "from", "allowed", ""}};
  for (const ParameterInfo &parameter : info.parameters) {
    std::string allowed = !parameter.allowed.empty() ? join(parameter.allowed, ", ")
                          : parameter.kind == "bool" ? "true, false"
                                                     : "any";
    if (!parameter.alternatives.empty())
      allowed += "; alternatives " + join(parameter.alternatives, ", ");
    rows.push_back({parameter.name, parameter.kind, parameter.defaultValue, parameter.origin,
                    allowed, parameter.documentation});
  }
  if (info.parameters.empty())
    outs() << "no parameters\n";
  else
    printTable(rows);
  auto print = [&](StringRef kind, const EntryInfo &entry) {
    outs() << "\n" << kind << " " << entry.name << "\n";
    rows.clear();
    for (const auto &[name, type] : entry.arguments)
      rows.push_back({name, type});
    if (entry.launches.empty())
      rows.push_back({"grid", entry.grid});
    else
      rows.push_back({"launches", join(entry.launches, ", ")});
    rows.push_back({"dimensions", join(entry.dims, ", ")});
    printTable(rows);
  };
  for (const EntryInfo &kernel : info.kernels)
    print("kernel", kernel);
  for (const EntryInfo &sequence : info.sequences)
    print("sequence", sequence);
}

/// A value as JSON: a number, true or false, or a string.
static json::Value toJson(const ParameterInfo &parameter) {
  int64_t number;
  if (parameter.kind == "int" && !StringRef(parameter.defaultValue).getAsInteger(10, number))
    return number;
  if (parameter.kind == "bool")
    return parameter.defaultValue == "true";
  return parameter.defaultValue;
}

static void printJson(const SourceInfo &info) {
  json::Array parameters, kernels, sequences;
  for (const ParameterInfo &parameter : info.parameters)
    parameters.push_back(json::Object{{"name", parameter.name},
                                      {"kind", parameter.kind},
                                      {"default", toJson(parameter)},
                                      {"origin", parameter.origin},
                                      {"allowed", json::Array(parameter.allowed)},
                                      {"alternatives", json::Array(parameter.alternatives)},
                                      {"documentation", parameter.documentation}});
  auto describe = [](const EntryInfo &entry) {
    json::Array arguments;
    for (const auto &[name, type] : entry.arguments)
      arguments.push_back(json::Object{{"name", name}, {"type", type}});
    return json::Object{{"name", entry.name},
                        {"arguments", std::move(arguments)},
                        {"dimensions", json::Array(entry.dims)}};
  };
  for (const EntryInfo &kernel : info.kernels) {
    kernels.push_back(describe(kernel));
    (*kernels.back().getAsObject())["grid"] = kernel.grid;
  }
  for (const EntryInfo &sequence : info.sequences) {
    sequences.push_back(describe(sequence));
    (*sequences.back().getAsObject())["launches"] = json::Array(sequence.launches);
  }
  json::Object all{{"parameters", std::move(parameters)},
                   {"kernels", std::move(kernels)},
                   {"sequences", std::move(sequences)}};
  outs() << formatv("{0:2}", json::Value(std::move(all))) << "\n";
}

/// Prints every field of #tile.schedule with the values that it takes, and as text what it means.
static void printScheduleFields(bool asJson) {
  std::vector<std::vector<std::string>> rows = {{"field", "values", "meaning"}};
  json::Object fields;
  for (const tile::ScheduleFieldInfo &field : tile::ScheduleAttr::getFieldInfos()) {
    const FieldText *text = findFieldText(field.name);
    StringRef meaning = text ? text->meaning : "";
    rows.push_back({field.name.str(), join(field.values, ", "), meaning.split(". ").first.str()});
    fields[field.name] = json::Array(field.values);
  }
  if (asJson)
    outs() << formatv("{0:2}", json::Value(std::move(fields))) << "\n";
  else
    printTable(rows);
}

static int runParams(const ParamsCommand &command) {
  if (command.scheduleFields) {
    printScheduleFields(command.json);
    return ExitSuccess;
  }
  if (command.file.empty()) {
    errs() << "tessera: params takes a FILE or --schedule-fields\n";
    return ExitUsage;
  }
  Expected<SourceFile> source = openSource(command.file);
  if (!source)
    return reportFailure(toString(source.takeError()));
  DiagnosticPrinter printer;
  SourceInfo info = inspect(
      source->text, source->name, command.defines, [&](const Diagnostic &d) { printer.print(d); },
      command.imports);
  if (info.status != CompileStatus::Success)
    return static_cast<int>(info.status);
  command.json ? printJson(info) : printText(info);
  return ExitSuccess;
}

void tessera::addParamsCommand(CLI::App &app) {
  CLI::App *sub = app.add_subcommand(
      "params", "Show what a source declares: kernels, parameters, run-time dimensions");
  auto command = std::make_shared<ParamsCommand>();
  addSourceOptions(*sub, command->file, command->defines, command->imports)->required(false);
  sub->add_option("--gpu", command->imports.rules.card,
                  "The GPU whose rules count, as 'NVIDIA H200'");
  sub->add_flag("--schedule-fields", command->scheduleFields,
                "Show the fields of a schedule and the values that each takes, of no source");
  sub->add_flag("--json", command->json, "Print JSON");
  addExamples(*sub, "  tessera params attention_fwd -D D=64\n"
                    "  tessera params --schedule-fields");
  sub->callback([command] { throw CLI::RuntimeError(runParams(*command)); });
}
