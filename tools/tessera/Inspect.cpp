//===- Inspect.cpp - tessera inspect --------------------------------------===//

#include "lib/Inspect/Sass.h"
#include "lib/Runtime/Bundle.h"
#include "lib/Source/Shipped.h"
#include "lib/Support/Files.h"
#include "lib/Support/Json.h"
#include "tools/tessera/Commands.h"
#include "tools/tessera/DiagnosticPrinter.h"
#include "llvm/Support/raw_ostream.h"
#include <CLI/CLI.hpp>
#include <set>

using namespace tessera;

namespace {
struct InspectCommand {
  std::string file, ncu, nvdisasm, function;
  bool listing = false;
  CompileOptions options;
};

/// Machine code, with what ptxas counted of each kernel where that is known.
struct Code {
  std::vector<std::string> cubins;
  /// By their image, the functions that count; all where none is named.
  std::set<std::pair<size_t, std::string>> named;
  std::vector<std::pair<std::string, std::string>> reports; ///< symbol, JSON
};
} // namespace

/// Compiles a source, with line tables.
static int compileSource(InspectCommand &command, const SourceFile &source, Code &code) {
  command.options.ptxasArguments.push_back("-lineinfo");
  command.options.emit = EmitKind::Cubin;
  DiagnosticPrinter printer;
  CompileResult result = compile(source.text, source.name, command.options,
                                 [&](const Diagnostic &d) { printer.print(d); });
  code.cubins.push_back(std::move(result.output));
  for (const KernelReport &kernel : result.kernels)
    code.reports.emplace_back(kernel.name, kernel.description);
  return static_cast<int>(result.status);
}

static int loadBundle(const InspectCommand &command, llvm::StringRef text, Code &code) {
  llvm::Expected<runtime::BundleInfo> bundle = runtime::readBundle(text);
  if (!bundle)
    return reportFailure(command.file + ": " + toString(bundle.takeError()));
  if (bundle->isPtx)
    return reportFailure(command.file +
                         ": holds PTX and no machine code; compile it without --ptx");
  for (const std::vector<char> &image : bundle->images)
    code.cubins.emplace_back(image.begin(), image.end());
  for (const runtime::KernelInfo &kernel : bundle->kernels) {
    code.named.emplace(kernel.image, kernel.symbol);
    code.reports.emplace_back(kernel.symbol, kernel.description);
  }
  return ExitSuccess;
}

static int load(InspectCommand &command, Code &code) {
  llvm::Expected<SourceFile> file = openSource(command.file);
  if (!file)
    return reportFailure(toString(file.takeError()));
  llvm::StringRef text = file->text;
  bool isCubin = text.starts_with("\x7f"
                                  "ELF");
  bool isBundle = text.ltrim().starts_with("{");
  const CompileOptions &options = command.options;
  bool hasOptions = !options.defines.empty() || !options.schedule.empty() ||
                    !options.ptxas.empty() || !options.ptxasArguments.empty();
  if ((isCubin || isBundle) && hasOptions)
    return reportFailure("-D, --schedule, --ptxas and --Xptxas are for sources; '" + command.file +
                         "' is compiled already");
  if (isCubin) {
    code.cubins.push_back(text.str());
    return ExitSuccess;
  }
  return isBundle ? loadBundle(command, text, code) : compileSource(command, *file, code);
}

/// Registers and spills, as ptxas counted them.
static void printResources(const Code &code, llvm::StringRef symbol) {
  for (auto &[name, description] : code.reports) {
    if (name != symbol)
      continue;
    llvm::json::Value kernel = llvm::cantFail(parseJson(description));
    const llvm::json::Object *report = kernel.getAsObject()->getObject("report");
    const llvm::json::Object *resources = report ? report->getObject("resources") : nullptr;
    if (!resources)
      continue;
    auto get = [&](llvm::StringRef field) { return resources->getInteger(field).value_or(0); };
    llvm::outs() << symbol << ": " << get("registers") << " registers at entry, spills "
                 << get("spill_store_bytes") << " bytes of stores and " << get("spill_load_bytes")
                 << " of loads per thread\n";
  }
}

/// The functions of all images. One that was assembled with a schedule that does not count is in an
/// image and is no kernel's.
static llvm::Expected<std::vector<sass::Function>> disassemble(const Code &code,
                                                               const std::string &nvdisasm) {
  std::vector<sass::Function> all;
  for (auto [i, cubin] : llvm::enumerate(code.cubins)) {
    auto functions = sass::disassemble(cubin, nvdisasm);
    if (!functions)
      return functions.takeError();
    for (sass::Function &function : *functions)
      if (code.named.empty() || code.named.count({i, function.name}))
        all.push_back(std::move(function));
  }
  return all;
}

static int runInspect(InspectCommand &command) {
  Code code;
  if (int status = load(command, code))
    return status;
  auto functions = disassemble(code, command.nvdisasm);
  if (!functions)
    return reportFailure(toString(functions.takeError()), ExitToolchain);
  if (!command.function.empty())
    llvm::erase_if(*functions, [&](auto &f) { return f.name != command.function; });
  if (functions->empty())
    return reportFailure("no function " + (command.function.empty()
                                               ? std::string("is there")
                                               : "'" + command.function + "'"));
  std::optional<sass::Samples> samples;
  if (!command.ncu.empty()) {
    if (functions->size() != 1)
      return reportFailure("--ncu is of one function; give --function NAME");
    auto buffer = readInput(command.ncu);
    if (!buffer)
      return reportFailure("cannot read '" + command.ncu + "': " + buffer.getError().message());
    auto read = sass::readNcuTable((*buffer)->getBuffer(), functions->front());
    if (!read)
      return reportFailure(command.ncu + ": " + toString(read.takeError()));
    samples = std::move(*read);
  }
  for (const sass::Function &function : *functions) {
    printResources(code, function.name);
    sass::writeReport(function, samples ? &*samples : nullptr, command.listing, llvm::outs());
  }
  return ExitSuccess;
}

void tessera::addInspectCommand(CLI::App &app) {
  CLI::App *sub =
      app.add_subcommand("inspect", "Show how the machine code of the main loops alternates "
                                    "between products, waits and arithmetic");
  auto command = std::make_shared<InspectCommand>();
  sub->add_option("FILE", command->file,
                  "A bundle, a cubin, or a source, which is compiled, or the name of a kernel that "
                  "ships")
      ->required();
  addDefineOption(*sub, command->options.defines);
  addImportOption(*sub, command->options.imports);
  sub->add_option("--schedule", command->options.schedule,
                  "Schedule fields in place of those chosen, as consumers=2,overlap=1");
  sub->add_option("--function", command->function, "Show this kernel only");
  sub->add_option(
      "--ncu", command->ncu,
      "Samples of a profile of the kernel: what ncu --import REPORT --page source --csv "
      "prints");
  sub->add_flag("--listing", command->listing, "Print each instruction of the loops");
  sub->add_option("--nvdisasm", command->nvdisasm, "Path of nvdisasm");
  sub->add_option("--ptxas", command->options.ptxas, "Path of ptxas");
  sub->add_option("--Xptxas", command->options.ptxasArguments, "Pass an argument on to ptxas")
      ->allow_extra_args(false);
  groupOptions(*sub, "Source", {"-D", "-I", "--schedule"});
  groupOptions(*sub, "Tools", {"--nvdisasm", "--ptxas", "--Xptxas"});
  addExamples(*sub, "  tessera inspect attention_fwd -D D=64 --listing\n"
                    "  tessera inspect gemm.bundle --ncu gemm.csv");
  sub->callback([command] { throw CLI::RuntimeError(runInspect(*command)); });
}
