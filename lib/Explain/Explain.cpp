//===- Explain.cpp - What the compiler made of a source, and why ----------===//

#include "lib/Explain/Explain.h"
#include "lib/Codegen/Ptxas.h"
#include "lib/Explain/Recorder.h"
#include "lib/Inspect/Sass.h"
#include "lib/Reference/Reference.h"
#include "lib/Support/Json.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace tessera;
using namespace tessera::explain;
using llvm::StringRef;
namespace json = llvm::json;

//===----------------------------------------------------------------------===//
// Sources and diagnostics
//===----------------------------------------------------------------------===//

/// The files of a source, itself as the last; only itself where imports cannot be read.
static std::vector<SourceFile> readFiles(const std::string &source, const std::string &fileName,
                                         const ImportOptions &imports) {
  std::vector<SourceFile> files =
      readImports(source, fileName, imports, /*handler=*/[](const Diagnostic &) {});
  if (files.empty())
    files.push_back({fileName, source});
  return files;
}

static json::Array describeFiles(llvm::ArrayRef<SourceFile> files) {
  json::Array list;
  for (const SourceFile &file : files)
    list.push_back(
        json::Object{{"name", json::fixUTF8(file.name)}, {"text", json::fixUTF8(file.text)}});
  return list;
}

static StringRef getName(Severity severity) {
  switch (severity) {
  case Severity::Error:
    return "error";
  case Severity::Warning:
    return "warning";
  case Severity::Remark:
    return "remark";
  case Severity::Note:
    return "note";
  }
  llvm_unreachable("covered switch");
}

/// A diagnostic, with the number of its file, or the path of one that could not be read with the
/// source.
static json::Object describe(const Diagnostic &diagnostic, llvm::ArrayRef<SourceFile> files) {
  json::Array notes;
  for (const Diagnostic &note : diagnostic.notes)
    notes.push_back(describe(note, files));
  json::Object object{{"severity", getName(diagnostic.severity)},
                      {"line", diagnostic.line},
                      {"column", diagnostic.column},
                      {"message", json::fixUTF8(diagnostic.message)},
                      {"notes", std::move(notes)}};
  auto file = llvm::find_if(files, [&](const SourceFile &f) { return f.name == diagnostic.file; });
  if (file != files.end())
    object["file"] = file - files.begin();
  else
    object["path"] = json::fixUTF8(diagnostic.file);
  return object;
}

//===----------------------------------------------------------------------===//
// Machine code
//===----------------------------------------------------------------------===//

/// The file that a line table names, whose path is that of the compilation; nothing where several
/// may be meant.
static std::optional<size_t> findFile(StringRef path, llvm::ArrayRef<SourceFile> files) {
  std::optional<size_t> found;
  for (auto [i, file] : llvm::enumerate(files)) {
    if (path == file.name)
      return i;
    if (llvm::sys::path::filename(file.name) == llvm::sys::path::filename(path)) {
      if (found)
        return std::nullopt;
      found = i;
    }
  }
  return found;
}

/// `[address, text, groups in flight, file, line]` of each instruction; the last two are absent
/// where they are not known.
static json::Array describeLoop(const sass::Function &function, const sass::Loop &loop,
                                llvm::ArrayRef<SourceFile> files) {
  json::Array list;
  std::vector<unsigned> inFlight = sass::getGroupsInFlight(function, loop);
  for (auto [i, index] : llvm::enumerate(loop.body)) {
    const sass::Instruction &instruction = function.instructions[index];
    std::string text = instruction.guard + (instruction.guard.empty() ? "" : " ") +
                       instruction.opcode + " " + instruction.operands;
    json::Array entry{instruction.address, std::move(text), inFlight[i]};
    std::optional<size_t> file = findFile(instruction.file, files);
    if (file && instruction.line) {
      entry.push_back(*file);
      entry.push_back(instruction.line);
    }
    list.push_back(std::move(entry));
  }
  return list;
}

static json::Object describeCode(StringRef cubin, StringRef nvdisasm,
                                 llvm::ArrayRef<SourceFile> files) {
  llvm::Expected<std::vector<sass::Function>> functions = sass::disassemble(cubin, nvdisasm);
  if (!functions)
    return json::Object{{"problem", toString(functions.takeError())}};
  json::Array list;
  for (const sass::Function &function : *functions) {
    std::string report;
    llvm::raw_string_ostream os(report);
    sass::writeReport(function, /*samples=*/nullptr, /*listing=*/false, os);
    json::Array loops;
    for (const sass::Loop &loop : sass::findMainLoops(function))
      loops.push_back(describeLoop(function, loop, files));
    list.push_back(json::Object{
        {"name", function.name}, {"report", std::move(report)}, {"loops", std::move(loops)}});
  }
  return json::Object{{"functions", std::move(list)}};
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

/// Adds to each kernel its entry of a bundle, and where its fields and parameters come from.
static void addDescriptions(json::Array &kernels, llvm::ArrayRef<KernelReport> reports) {
  for (json::Value &value : kernels)
    for (const KernelReport &report : reports) {
      json::Object &kernel = *value.getAsObject();
      if (kernel.getString("name") != StringRef(report.name))
        continue;
      kernel["description"] = llvm::cantFail(parseJson(report.description));
      json::Value whole = llvm::cantFail(parseJson(report.report));
      if (json::Object *choices = whole.getAsObject()->getObject("choices"))
        kernel["origins"] = std::move(*choices);
    }
}

/// What the fields of a schedule mean.
static json::Object describeFields() {
  json::Object fields;
  for (const FieldText &field : getFieldTexts())
    fields[field.name] = field.meaning;
  return fields;
}

/// How far to compile: without an assembler the page has all but the machine code, and `missing`
/// says why. One that is named has to be there.
static CompileOptions makeCompileOptions(const ExplainOptions &options, std::string &missing) {
  CompileOptions compileOptions = options.compile;
  compileOptions.remarks = true;
  compileOptions.tuning.shape = options.pictures.shape;
  compileOptions.emit = EmitKind::Cubin;
  compileOptions.ptxasArguments.push_back("-lineinfo");
  if (llvm::Expected<Ptxas> ptxas = findPtxas(compileOptions.ptxas); !ptxas) {
    missing = toString(ptxas.takeError());
    if (compileOptions.ptxas.empty())
      compileOptions.emit = EmitKind::PTX;
  }
  return compileOptions;
}

Explanation tessera::explain::explain(const std::string &source, const std::string &fileName,
                                      const ExplainOptions &options,
                                      const DiagnosticHandler &handler) {
  std::vector<SourceFile> files = readFiles(source, fileName, options.compile.imports);
  json::Array diagnostics;
  auto keep = [&](const Diagnostic &diagnostic) {
    diagnostics.push_back(describe(diagnostic, files));
    if (handler && (diagnostic.severity != Severity::Remark || options.compile.remarks))
      handler(diagnostic);
  };
  std::string missing;
  CompileOptions compileOptions = makeCompileOptions(options, missing);
  Recorder recorder(files, options.pictures);
  CompileResult result = compile(source, fileName, compileOptions, keep, recorder);
  Explanation explanation;
  explanation.status = result.status;
  if (result.status != CompileStatus::UsageError && !recorder.getProblem().empty()) {
    Diagnostic diagnostic;
    diagnostic.message = recorder.getProblem().str();
    if (handler)
      handler(diagnostic);
    explanation.status = CompileStatus::UsageError;
  }
  json::Object &data = explanation.data;
  data["format"] = "tessera-explain";
  data["version"] = 2;
  data["status"] = static_cast<int>(result.status);
  data["files"] = describeFiles(files);
  data["fields"] = describeFields();
  data["diagnostics"] = std::move(diagnostics);
  recorder.moveTo(data);
  addDescriptions(*data.getArray("kernels"), result.kernels);
  if (!missing.empty())
    data["code"] = json::Object{{"problem", missing}};
  else if (result.status != CompileStatus::Success)
    data["code"] = json::Object{{"problem", "the compilation ended with an error before there was "
                                            "machine code"}};
  else
    data["code"] = describeCode(result.output, options.nvdisasm, files);
  return explanation;
}
