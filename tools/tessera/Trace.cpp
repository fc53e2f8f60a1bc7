//===- Trace.cpp - tessera trace ------------------------------------------===//

#include "lib/Runtime/Bundle.h"
#include "lib/Support/Files.h"
#include "lib/Timeline/Timeline.h"
#include "tools/tessera/Commands.h"
#include "llvm/Support/JSON.h"
#include <CLI/CLI.hpp>

using namespace tessera;

namespace {
struct TraceCommand {
  std::string file, bundle, perfetto, svg, json;
  int64_t block = -1;
  timeline::SvgOptions options;
};
} // namespace

/// Decodes memory by the description of a bundle's only kernel with a timeline.
static llvm::Expected<timeline::Timeline> decode(llvm::StringRef memory,
                                                 const std::string &bundlePath) {
  auto buffer = readInput(bundlePath);
  if (!buffer)
    return llvm::createStringError("cannot read '" + bundlePath +
                                   "': " + buffer.getError().message());
  llvm::Expected<runtime::BundleInfo> bundle = runtime::readBundle((*buffer)->getBuffer());
  if (!bundle)
    return bundle.takeError();
  if (bundle->kernels.size() != 1)
    return llvm::createStringError("'" + bundlePath +
                                   "' has several kernels; compile one with "
                                   "--kernel");
  return timeline::decode(bundle->kernels.front().description,
                          llvm::ArrayRef(memory.data(), memory.size()),
                          timeline::ClockUnit::Cycles);
}

static int runTrace(TraceCommand &command) {
  if (command.block >= 0)
    command.options.block = command.block;
  auto buffer = readInputOrStdin(command.file);
  if (!buffer)
    return reportFailure("cannot read '" + command.file + "': " + buffer.getError().message());
  llvm::StringRef contents = (*buffer)->getBuffer();
  llvm::Expected<timeline::Timeline> timeline =
      command.bundle.empty() ? timeline::fromJSON(contents) : decode(contents, command.bundle);
  if (!timeline)
    return reportFailure(command.file + ": " + toString(timeline.takeError()));
  std::string picture;
  llvm::raw_string_ostream os(picture);
  if (!command.svg.empty())
    if (llvm::Error error = timeline::writeSvg(*timeline, command.options, os))
      return reportFailure("--svg: " + toString(std::move(error)));
  auto write = [](llvm::StringRef option, llvm::StringRef path,
                  llvm::function_ref<void(llvm::raw_ostream &)> contents) {
    llvm::Error error = path.empty() ? llvm::Error::success() : writeOutput(path, contents);
    return error ? reportFailure(option + ": " + toString(std::move(error))) : ExitSuccess;
  };
  auto writeJson = [&](llvm::raw_ostream &to) { to << timeline::toJSON(*timeline) << "\n"; };
  auto writePerfetto = [&](llvm::raw_ostream &to) { timeline::writePerfetto(*timeline, to); };
  for (int code : {write("--json", command.json, writeJson),
                   write("--perfetto", command.perfetto, writePerfetto),
                   write("--svg", command.svg, [&](llvm::raw_ostream &to) { to << picture; })})
    if (code)
      return code;
  if (command.perfetto != "-" && command.svg != "-" && command.json != "-")
    timeline::writeSummary(*timeline, llvm::outs());
  return ExitSuccess;
}

void tessera::addTraceCommand(CLI::App &app) {
  CLI::App *sub = app.add_subcommand(
      "trace", "Summarize a timeline that tessera run --trace recorded, and draw it");
  auto command = std::make_shared<TraceCommand>();
  sub->add_option("FILE", command->file, "The timeline")->required()->check(CLI::ExistingFile);
  sub->add_option("--bundle", command->bundle,
                  "FILE is the memory that the kernel of this bundle recorded in on a GPU, as "
                  "tessera_kernel_read_timeline returns it")
      ->check(CLI::ExistingFile);
  sub->add_option("--json", command->json, "Write the timeline as tessera run --trace does here");
  sub->add_option("--perfetto", command->perfetto,
                  "Write a trace for ui.perfetto.dev or chrome://tracing here");
  sub->add_option("--svg", command->svg, "Draw one thread block in its main loop here");
  sub->add_option("--block", command->block, "The thread block of --svg (default: the first)")
      ->check(CLI::Range(0, 1 << 30));
  sub->add_option("--iterations", command->options.iterations, "Iterations that --svg shows")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  addExamples(*sub, "  tessera trace gemm.json --svg gemm.svg --perfetto gemm.perfetto.json\n"
                    "  tessera trace memory.bin --bundle gemm.bundle --json gemm.json");
  sub->callback([command] { throw CLI::RuntimeError(runTrace(*command)); });
}
