//===- Trace.cpp - tessera trace ------------------------------------------===//

#include "lib/Timeline/Timeline.h"
#include "tools/tessera/Commands.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <CLI/CLI.hpp>

using namespace tessera;

namespace {
struct TraceCommand {
  std::string file, perfetto, svg;
  int64_t block = -1;
  timeline::SvgOptions options;
};
} // namespace

static int fail(const std::string &message) {
  llvm::errs() << "tessera: " << message << "\n";
  return ExitUsage;
}

static int runTrace(TraceCommand &command) {
  if (command.block >= 0)
    command.options.block = command.block;
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(command.file, /*IsText=*/true);
  if (!buffer)
    return fail("cannot read '" + command.file + "': " + buffer.getError().message());
  llvm::Expected<timeline::Timeline> timeline = timeline::fromJSON((*buffer)->getBuffer());
  if (!timeline)
    return fail(command.file + ": " + toString(timeline.takeError()));
  auto writePerfetto = [&](llvm::raw_ostream &os) {
    timeline::writePerfetto(*timeline, os);
    return llvm::Error::success();
  };
  if (!command.perfetto.empty())
    if (llvm::Error error = llvm::writeToOutput(command.perfetto, writePerfetto))
      return fail("--perfetto: " + toString(std::move(error)));
  auto writeSvg = [&](llvm::raw_ostream &os) {
    return timeline::writeSvg(*timeline, command.options, os);
  };
  if (!command.svg.empty())
    if (llvm::Error error = llvm::writeToOutput(command.svg, writeSvg))
      return fail("--svg: " + toString(std::move(error)));
  if (command.perfetto != "-" && command.svg != "-")
    timeline::writeSummary(*timeline, llvm::outs());
  return ExitSuccess;
}

void tessera::addTraceCommand(CLI::App &app) {
  CLI::App *sub = app.add_subcommand(
      "trace", "Summarize a timeline that tessera run --trace recorded, and draw it");
  auto command = std::make_shared<TraceCommand>();
  sub->add_option("FILE", command->file, "The timeline")->required()->check(CLI::ExistingFile);
  sub->add_option("--perfetto", command->perfetto,
                  "Write a trace for ui.perfetto.dev or chrome://tracing here");
  sub->add_option("--svg", command->svg, "Draw one thread block in its main loop here");
  sub->add_option("--block", command->block, "The thread block of --svg (default: the first)")
      ->check(CLI::Range(0, 1 << 30));
  sub->add_option("--iterations", command->options.iterations, "Iterations that --svg shows")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  sub->callback([command] { throw CLI::RuntimeError(runTrace(*command)); });
}
