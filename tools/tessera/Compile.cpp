//===- Compile.cpp - tessera compile --------------------------------------===//

#include "lib/CSource/CSource.h"
#include "lib/Compiler/FromIR.h"
#include "lib/Compiler/Pipeline.h"
#include "lib/Support/Files.h"
#include "lib/Support/Json.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "tools/tessera/Commands.h"
#include "tools/tessera/DiagnosticPrinter.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <CLI/CLI.hpp>

using namespace llvm;
using namespace tessera;

namespace {
struct CompileCommand {
  std::string file, from, emit = "bundle", output, report, deps;
  std::vector<std::string> llvmArguments;
  std::vector<Assignments> shapes;
  CompileOptions options;
};
} // namespace

static EmitKind parseEmitKind(StringRef text) {
  for (const Stage &stage : getStages())
    if (text == stage.name)
      return stage.level;
  return StringSwitch<EmitKind>(text)
      .Case("ptx", EmitKind::PTX)
      .Case("cubin", EmitKind::Cubin)
      .Default(EmitKind::Bundle);
}

static bool write(StringRef path, StringRef text) {
  Error error = writeOutput(path, text);
  return !error || !reportFailure(toString(std::move(error)));
}

/// Writes the bundle that was compiled as C: `output`, which ends in .c, and the header beside it.
static int writeC(StringRef output, StringRef bundle) {
  SmallString<128> header(output);
  sys::path::replace_extension(header, ".h");
  Expected<CSource> written =
      sys::path::extension(output) == ".c"
          ? writeCSource(bundle, sys::path::stem(output))
          : createStringError(inconvertibleErrorCode(),
                              "-o names a file that ends in .c, got '" + output + "'");
  if (!written) {
    errs() << "tessera: --emit c: " << toString(written.takeError()) << "\n";
    return ExitUsage;
  }
  bool isWritten = write(output, written->source) && write(header, written->header);
  return isWritten ? ExitSuccess : ExitUsage;
}

/// Where the output goes when -o does not say: text to stdout, the rest to a file beside none.
static std::string getDefaultOutput(StringRef file, StringRef emitText, EmitKind emit) {
  if (emitText == "c")
    return (sys::path::stem(file) + ".c").str();
  if (emit != EmitKind::Cubin && emit != EmitKind::Bundle)
    return "-";
  return (sys::path::stem(file) + (emit == EmitKind::Cubin ? ".cubin" : ".bundle")).str();
}

static bool parseLLVMOptions(const std::vector<std::string> &arguments) {
  if (arguments.empty())
    return true;
  mlir::registerAsmPrinterCLOptions();
  mlir::registerMLIRContextCLOptions();
  // So that --mlir-print-ir-after and the like know them by name.
  registerCompilerPasses();
  mlir::registerTransformsPasses();
  mlir::registerPassManagerCLOptions();
  std::vector<const char *> argv = {"tessera compile (--mllvm)"};
  for (const std::string &argument : arguments)
    argv.push_back(argument.c_str());
  return cl::ParseCommandLineOptions(argv.size(), argv.data(), "", &errs());
}

static bool isNested(const json::Value &value) {
  return value.kind() == json::Value::Object || value.kind() == json::Value::Array;
}

static void printScalar(raw_ostream &os, const json::Value &value) {
  if (std::optional<StringRef> text = value.getAsString())
    os << *text;
  else
    os << value;
}

/// Of an element whose name ends in its number within a buffer, as k[1], the buffer; else empty.
static StringRef getBuffer(const json::Value &element) {
  const json::Object *object = element.getAsObject();
  StringRef name = object ? object->getString("name").value_or("") : "";
  return name.ends_with("]") ? name.take_front(name.rfind('[')) : "";
}

/// `name, name value, ...` of an object's fields, its own name first. The first of `count` elements
/// of a buffer stands for all.
static void printElement(raw_ostream &os, const json::Value &element, size_t count,
                         unsigned indent) {
  os.indent(indent);
  const json::Object *object = element.getAsObject();
  if (!object) {
    printScalar(os, element);
  } else {
    std::optional<StringRef> name = object->getString("name");
    if (count > 1)
      os << getBuffer(element) << "[0.." << count - 1 << "]";
    else
      os << name.value_or("");
    bool first = !name;
    for (const auto &field : *object) {
      if (name && StringRef(field.first) == "name")
        continue;
      os << (first ? "" : ", ") << StringRef(field.first) << " ";
      printScalar(os, field.second);
      if (count > 1 && StringRef(field.first) == "bytes")
        os << " each";
      first = false;
    }
  }
  os << "\n";
}

/// Prints the elements of a list on a line each, those of one buffer on one.
static void printList(raw_ostream &os, const json::Array &list, unsigned indent) {
  for (size_t first = 0, end; first < list.size(); first = end) {
    StringRef buffer = getBuffer(list[first]);
    for (end = first + 1; end < list.size() && !buffer.empty(); ++end)
      if (getBuffer(list[end]) != buffer)
        break;
    printElement(os, list[first], end - first, indent);
  }
}

/// Prints a report as indented `name: value` lines.
static void printReport(raw_ostream &os, const json::Object &object, unsigned indent) {
  std::vector<const json::Object::value_type *> fields;
  for (const auto &field : object)
    fields.push_back(&field);
  llvm::sort(fields, [](auto *a, auto *b) { return a->first < b->first; });
  for (const auto *field : fields) {
    os.indent(indent) << StringRef(field->first) << ":";
    if (!isNested(field->second)) {
      os << " ";
      printScalar(os, field->second);
    }
    os << "\n";
    if (const json::Object *inner = field->second.getAsObject())
      printReport(os, *inner, indent + 2);
    if (const json::Array *list = field->second.getAsArray())
      printList(os, *list, indent + 2);
  }
}

static void printReports(const CompileResult &result, bool asJson) {
  json::Object all;
  for (const KernelReport &kernel : result.kernels) {
    Expected<json::Value> report = parseJson(kernel.report);
    if (!report) {
      errs() << "tessera: the report of kernel '" << kernel.name
             << "' is not JSON: " << toString(report.takeError()) << "\n";
      continue;
    }
    if (!asJson) {
      outs() << kernel.name << ":\n";
      printReport(outs(), *report->getAsObject(), /*indent=*/2);
    } else {
      all[kernel.name] = std::move(*report);
    }
  }
  if (asJson)
    outs() << formatv("{0:2}", json::Value(std::move(all))) << "\n";
}

/// A rule for make: the output depends on the files of the source that are on disk.
static std::string describeDependencies(StringRef output, const CompileResult &result) {
  auto escape = [](StringRef name) {
    std::string text;
    for (char c : name)
      text += c == ' ' || c == '#' ? std::string("\\") + c : c == '$' ? "$$" : std::string(1, c);
    return text;
  };
  std::string rule = escape(output) + ":";
  for (const std::string &file : result.files)
    if (sys::fs::exists(file))
      rule += " \\\n  " + escape(file);
  return rule + "\n";
}

/// Compiles a source, or IR where the command says of which level.
static CompileResult compileInput(const CompileCommand &command, const DiagnosticHandler &handler) {
  if (command.from.empty())
    return compileFile(command.file, command.options, handler);
  ErrorOr<std::unique_ptr<MemoryBuffer>> text = readInput(command.file);
  if (text)
    return compileIR((*text)->getBuffer().str(), command.file, parseEmitKind(command.from),
                     command.options, handler);
  reportFailure("cannot read '" + command.file + "': " + text.getError().message());
  CompileResult result;
  result.status = CompileStatus::UsageError;
  return result;
}

static int runCompile(CompileCommand &command) {
  CompileOptions &options = command.options;
  options.emit = parseEmitKind(command.emit);
  std::string output = command.output.empty()
                           ? getDefaultOutput(command.file, command.emit, options.emit)
                           : command.output;
  if (!command.report.empty() && output == "-") {
    errs() << "tessera: --report and the output would both go to stdout; give -o OUT\n";
    return ExitUsage;
  }
  if (!parseLLVMOptions(command.llvmArguments))
    return ExitUsage;
  if (command.shapes.size() > 1) {
    errs() << "tessera: a compilation is for one --shape; tune takes several\n";
    return ExitUsage;
  }
  for (const Assignments &shape : command.shapes)
    options.tuning.shape = readExtents(shape);
  if (!command.from.empty() && parseEmitKind(command.from) > options.emit)
    return reportFailure("--emit " + command.emit + " comes before --from " + command.from);
  DiagnosticPrinter printer;
  CompileResult result =
      compileInput(command, [&](const Diagnostic &diagnostic) { printer.print(diagnostic); });
  if (result.status != CompileStatus::Success)
    return static_cast<int>(result.status);
  if (command.emit == "c") {
    if (int status = writeC(output, result.output))
      return status;
  } else if (!write(output, result.output)) {
    return ExitUsage;
  }
  if (!command.deps.empty() && !write(command.deps, describeDependencies(output, result)))
    return ExitUsage;
  if (!command.report.empty())
    printReports(result, command.report == "json");
  return ExitSuccess;
}

void tessera::addTuningOptions(CLI::App &command, CompileOptions::Tuning &tuning) {
  CLI::Option *database =
      command
          .add_option("--database", tuning.database,
                      "Measured schedules to use (default: those that ship with tessera)")
          ->type_name("FILE");
  command
      .add_flag("--no-database{false}", tuning.useDatabase,
                "Let the model of the machine choose, whatever was measured")
      ->excludes(database);
  command.add_option("--gpu", tuning.gpu, "The GPU whose measurements count, as 'NVIDIA H200'")
      ->type_name("NAME");
  command.add_option("--shape-class", tuning.shapeClass,
                     "The class of shapes to compile for, as many-short (default: that of --shape, "
                     "or many-long)");
}

/// What help shows: options by what they are about, and examples.
static void groupCompileOptions(CLI::App &command) {
  groupOptions(command, "Source", {"-D", "-I", "--kernel"});
  groupOptions(command, "Schedule",
               {"--schedule", "--database", "--no-database", "--shape-class", "--gpu", "--shape"});
  groupOptions(
      command, "Output",
      {"--emit", "--from", "-o", "--deps", "--alternatives", "--ptx", "--instrument", "--pdl"});
  groupOptions(command, "What is said",
               {"--remarks", "--report", "--timing", "--dump-dir", "--reproducer"});
  groupOptions(command, "Tools", {"--ptxas", "--Xptxas", "--verify-each", "--mllvm", "--split"});
  addExamples(
      command,
      "  tessera compile attention_fwd -D D=128 -D CAUSAL=true --report -o attention.bundle\n"
      "  tessera compile gemm --emit ptx -o gemm.ptx\n"
      "  tessera compile gemm --emit hop -o gemm.mlir; tessera compile gemm.mlir --from hop\n"
      "  tessera compile gemm --schedule consumers=1,stages=3 --emit hop --remarks");
}

void tessera::addCompileCommand(CLI::App &app) {
  CLI::App *sub = app.add_subcommand("compile", "Compile a .tile source");
  auto command = std::make_shared<CompileCommand>();
  CompileOptions &options = command->options;
  addSourceOptions(*sub, command->file, options.defines, options.imports);
  sub->add_option("--schedule", options.schedule,
                  "Schedule fields in place of those chosen, as consumers=2,overlap=1");
  sub->add_option("--kernel", options.kernel, "Compile this kernel only");
  sub->add_option("--instrument", options.instrument,
                  "What the kernels record: timeline, with blocks=N, first=N and events=N after "
                  "commas, as timeline,blocks=8");
  addPassOptions(*sub, options.pdl, options.split);
  addTuningOptions(*sub, options.tuning);
  addShapes(*sub, command->shapes,
            "Extents of the run-time dimensions; they decide which measured schedule is used and "
            "which rules hold");
  std::vector<std::string> stages;
  for (const Stage &stage : getStages())
    stages.push_back(stage.name.str());
  std::vector<std::string> kinds = stages;
  kinds.insert(kinds.end(), {"ptx", "cubin", "bundle", "c"});
  sub->add_option("--emit", command->emit, "What to produce: what a stage leaves, or code")
      ->check(CLI::IsMember(kinds))
      ->capture_default_str();
  sub->add_option("--from", command->from,
                  "FILE is what this stage left, as --emit has written it: compile on from there")
      ->check(CLI::IsMember(stages));
  sub->add_option("-o,--output", command->output,
                  "Output file; - is stdout (default: stdout for text, FILE's name with .cubin, "
                  ".bundle or .c otherwise; beside .c goes a header)");
  sub->add_option("--deps", command->deps,
                  "Write the files that the source consists of to this file, as a rule of make")
      ->type_name("FILE");
  sub->add_flag("--alternatives", options.alternatives,
                "Put the kernel into the bundle with each of the alternatives that the source "
                "declares; a launch takes the fastest for its extents");
  sub->add_flag("--ptx", options.bundlePtx,
                "Put PTX, which the driver assembles, into the bundle instead of a cubin");
  sub->add_option("--dump-dir", options.dumpDir,
                  "Write the IR after each pass, the PTX and the log of ptxas to this directory");
  sub->add_flag("--remarks", options.remarks, "Say why each choice was made");
  sub->add_flag("--report{text}", command->report,
                "Report registers, shared memory and instruction counts (--report=json for JSON)")
      ->check(CLI::IsMember({"text", "json"}));
  sub->add_flag("--timing", options.timing, "Print the time of each pass and tool");
  sub->add_option("--reproducer", options.reproducer, "Write a reproducer here when a pass fails");
  sub->add_option("--ptxas", options.ptxas, "Path of ptxas");
  sub->add_option("--Xptxas", options.ptxasArguments, "Pass an argument on to ptxas")
      ->allow_extra_args(false);
  sub->add_flag("--verify-each,!--no-verify-each", options.verifyEach,
                "Verify the IR after each pass (default)");
  sub->add_option("--mllvm", command->llvmArguments, "An option of LLVM or MLIR")
      ->allow_extra_args(false);
  groupCompileOptions(*sub);
  sub->callback([command] { throw CLI::RuntimeError(runCompile(*command)); });
}
