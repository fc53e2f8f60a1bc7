//===- ExplainTimeline.cpp - The timeline of an explanation ---------------===//

#include "tools/tessera/ExplainTimeline.h"
#include "lib/Explain/Pictures.h"
#include "tools/tessera/Commands.h"
#include "tools/tessera/KernelSource.h"
#include "tools/tessera/RunArguments.h"
#include "tools/tessera/SimRunner.h"

using namespace mlir;
using namespace tessera;
namespace json = llvm::json;

/// What the simulator does in a few seconds.
static constexpr uint64_t kMostWarpInstructions = uint64_t(1) << 22;
/// The extent, unless the options have another, of a dimension that is cut into tiles or loops.
static constexpr int64_t kDefaultLength = 512;

static ExplainedTimeline refuse(const llvm::Twine &problem, int code) {
  return {json::Object{{"problem", problem.str()}}, code};
}

/// Says what is wrong with the options.
static ExplainedTimeline refuse(const llvm::Twine &problem) {
  return refuse(problem, reportFailure("--timeline: " + problem));
}

/// The timeline of a launch as people read it. Where there is no main loop to draw, what it did
/// remains.
static json::Object draw(const timeline::Timeline &timeline) {
  std::string svg, summary;
  llvm::raw_string_ostream svgStream(svg), summaryStream(summary);
  timeline::writeSummary(timeline, summaryStream);
  json::Object data{{"kernel", timeline.kernel}, {"summary", std::move(summary)}};
  if (llvm::Error error = timeline::writeSvg(timeline, timeline::SvgOptions(), svgStream))
    data["problem"] = toString(std::move(error));
  else
    data["svg"] = std::move(svg);
  return data;
}

static ExplainedTimeline simulate(SimRunner &runner, tile::EntryOpInterface kernel,
                                  const RunArguments &arguments) {
  runner.setSeeds(/*first=*/0, /*count=*/1);
  runner.setMaxWarpInstructions(kMostWarpInstructions);
  if (runner.run(kernel, arguments.getValues()) != RunOutcome::Ran) {
    if (runner.getReport().warpInstructions <= kMostWarpInstructions)
      return refuse("the kernel failed on the simulator", ExitFailed);
    return refuse("the kernel takes more than " + llvm::Twine(kMostWarpInstructions) +
                  " warp instructions, which the simulator does not run for a page; give smaller "
                  "extents with --shape");
  }
  llvm::Expected<std::vector<timeline::Timeline>> timelines = runner.readTimelines();
  if (!timelines)
    return refuse(toString(timelines.takeError()));
  json::Array launches;
  for (const timeline::Timeline &timeline : *timelines)
    launches.push_back(draw(timeline));
  return {json::Object{{"launches", std::move(launches)}}, ExitSuccess};
}

ExplainedTimeline tessera::explainTimeline(RunOptions run, CompileOptions compile) {
  KernelSource source;
  if (int code = source.read(run))
    return refuse("the kernel is not known", code);
  tile::EntryOpInterface kernel = source.getKernel();
  if (run.shape.empty())
    for (const auto &[name, extent] : explain::getDefaultExtents(kernel, kDefaultLength))
      run.shape.emplace_back(name.str(), std::to_string(extent));
  llvm::Expected<RunArguments> arguments = RunArguments::create(kernel, run);
  if (!arguments)
    return refuse(toString(arguments.takeError()));
  if (failed(resolveLaunch(kernel, arguments->getValues())))
    return refuse("the kernel does not take this shape", ExitUsage);
  compile.kernel = kernel.getSymName().str();
  compile.instrument = "timeline";
  // The page has the warnings already.
  auto report = [&](const tessera::Diagnostic &diagnostic) {
    if (diagnostic.severity == Severity::Error)
      source.getHandler()(diagnostic);
  };
  CompileStatus status;
  std::unique_ptr<SimRunner> runner =
      SimRunner::create(source.getText(), run.file, compile, run.sim, report, status);
  if (!runner)
    return refuse("the kernel does not compile with marks for a timeline",
                  static_cast<int>(status));
  ExplainedTimeline timeline = simulate(*runner, kernel, *arguments);
  timeline.data["shape"] = json::Object();
  for (const auto &[name, extent] : run.shape)
    (*timeline.data.getObject("shape"))[name] = extent;
  return timeline;
}
