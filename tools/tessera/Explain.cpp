//===- Explain.cpp - tessera explain --------------------------------------===//

#include "lib/Explain/Explain.h"
#include "lib/Source/Shipped.h"
#include "lib/Support/Files.h"
#include "tools/tessera/Commands.h"
#include "tools/tessera/DiagnosticPrinter.h"
#include "tools/tessera/ExplainTimeline.h"
#include "tools/tessera/Progress.h"
#include <CLI/CLI.hpp>

using namespace tessera;

namespace {
struct ExplainCommand {
  std::string file, output;
  bool timeline = false;
  Assignments shape;
  explain::ExplainOptions options;
};
} // namespace

static ExplainedTimeline drawTimeline(const ExplainCommand &command) {
  CompileOptions compile = command.options.compile;
  compile.tuning.shape = command.options.pictures.shape;
  RunOptions run;
  run.file = command.file;
  run.defines = compile.defines;
  run.imports = compile.imports;
  run.kernel = compile.kernel;
  run.shape = command.shape;
  run.scalars = command.options.pictures.scalars;
  run.inputs = command.options.pictures.inputs;
  return explainTimeline(run, compile);
}

static int runExplain(ExplainCommand &command) {
  command.options.pictures.shape = readExtents(command.shape);
  llvm::Expected<SourceFile> source = openSource(command.file);
  if (!source)
    return reportFailure(toString(source.takeError()));
  DiagnosticPrinter printer;
  Progress progress("compiling, and drawing masks");
  explain::Explanation explanation = explain::explain(
      source->text, source->name, command.options, [&](const Diagnostic &d) { printer.print(d); });
  int code = static_cast<int>(explanation.status);
  if (explanation.status == CompileStatus::UsageError)
    return code;
  if (command.timeline && code == ExitSuccess) {
    progress.set("simulating the timeline; a smaller --shape takes less");
    ExplainedTimeline timeline = drawTimeline(command);
    if (timeline.code == ExitUsage)
      return timeline.code;
    code = timeline.code;
    explanation.data["timeline"] = std::move(timeline.data);
  }
  std::string page = explain::writePage(std::move(explanation.data));
  if (llvm::Error error = writeOutput(command.output, page))
    return reportFailure(toString(std::move(error)));
  return code;
}

void tessera::addExplainCommand(CLI::App &app) {
  CLI::App *sub = app.add_subcommand(
      "explain", "Write a page that shows what the compiler made of a source, and why");
  auto command = std::make_shared<ExplainCommand>();
  CompileOptions &options = command->options.compile;
  explain::PictureRequest &pictures = command->options.pictures;
  addSourceOptions(*sub, command->file, options.defines, options.imports);
  sub->add_option("--schedule", options.schedule,
                  "Schedule fields in place of those chosen, as consumers=2,overlap=1");
  sub->add_option("--kernel", options.kernel, "Explain this kernel only");
  addTuningOptions(*sub, options.tuning);
  addShape(*sub, command->shape,
           "Extents of the run-time dimensions, for the pictures of masks, the measured schedule "
           "and the timeline (default: some that suit the kernel)");
  addAssignments(*sub, "--set", pictures.scalars, "NAME=VALUE",
                 "Value of a scalar argument, for the pictures and the timeline");
  addAssignments(*sub, "--input", pictures.inputs, "NAME=X.npy",
                 "Elements of a view, for the pictures and the timeline");
  sub->add_flag("--timeline", command->timeline,
                "Run the kernel on the simulator and draw when each warpgroup did what");
  sub->add_option("-o,--output", command->output, "The page; - is stdout")->required();
  sub->add_flag("--remarks", options.remarks, "Print remarks too; the page has them in any case");
  sub->add_option("--ptxas", options.ptxas, "Path of ptxas");
  sub->add_option("--Xptxas", options.ptxasArguments, "Pass an argument on to ptxas")
      ->allow_extra_args(false);
  sub->add_option("--nvdisasm", command->options.nvdisasm, "Path of nvdisasm");
  groupOptions(*sub, "Source", {"-D", "-I", "--kernel"});
  groupOptions(*sub, "Schedule",
               {"--schedule", "--database", "--no-database", "--gpu", "--shape-class", "--shape"});
  groupOptions(*sub, "Pictures", {"--set", "--input", "--timeline"});
  groupOptions(*sub, "Tools", {"--ptxas", "--Xptxas", "--nvdisasm"});
  addExamples(*sub, "  tessera explain gemm -o gemm.html\n"
                    "  tessera explain attention_fwd -D D=64 -D CAUSAL=true --set scale=0.125 "
                    "--timeline -o attention.html");
  sub->callback([command] { throw CLI::RuntimeError(runExplain(*command)); });
}
