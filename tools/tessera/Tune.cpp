//===- Tune.cpp - tessera tune --------------------------------------------===//

#include "tools/tessera/Commands.h"
#include "tools/tessera/TuneKernel.h"
#include "llvm/ADT/STLExtras.h"
#include <CLI/CLI.hpp>

using namespace tessera;

namespace {
struct TuneCommand {
  TuneOptions options;
  std::vector<std::string> vary, fields;
  std::vector<Assignments> shapes, also;
  Assignments scalars, orders;
};
} // namespace

/// Reads "BM,BN" or "BM=64:128".
static void readVaried(const std::vector<std::string> &items,
                       std::vector<tuning::VariedParameter> &varied) {
  for (const std::string &item : items)
    for (const std::string &part : CLI::detail::split(item, ',')) {
      size_t equal = part.find('=');
      if (part.empty() || equal == 0)
        throw CLI::ValidationError("--vary", "expected NAME or NAME=A:B:..., got '" + part + "'");
      tuning::VariedParameter &parameter = varied.emplace_back();
      parameter.name = part.substr(0, equal);
      if (equal != std::string::npos)
        parameter.values = CLI::detail::split(part.substr(equal + 1), ':');
    }
}

static int runTune(TuneCommand &command) {
  tuning::TargetSpec &target = command.options.target;
  readVaried(command.vary, target.space.varied);
  for (const std::string &item : command.fields) {
    if (!target.space.fields)
      target.space.fields.emplace();
    for (const std::string &name : CLI::detail::split(item, ','))
      if (!name.empty())
        target.space.fields->push_back(name);
  }
  for (const Assignments &shape : command.shapes) {
    tuning::Extents &extents = target.shapes.emplace_back();
    for (const auto &[name, extent] : readExtents(shape))
      extents[name] = extent;
  }
  target.scalars.insert(command.scalars.begin(), command.scalars.end());
  target.orders.insert(command.orders.begin(), command.orders.end());
  for (const Assignments &values : command.also)
    target.also.emplace_back(values.begin(), values.end());
  return tuneKernel(command.options);
}

/// What to tune.
static void addTargetOptions(CLI::App &sub, TuneCommand &command) {
  tuning::TargetSpec &target = command.options.target;
  sub.add_option("FILE", target.file, "The source, or the name of a kernel that ships");
  sub.add_option("--list", command.options.list, "A list of sources, parameters and shapes instead")
      ->check(CLI::ExistingFile);
  addDefineOption(sub, target.space.defines);
  sub.add_option("--kernel", target.space.kernel,
                 "The kernel or sequence, when the source has several");
  addShapes(sub, command.shapes, "Extents of the run-time dimensions; repeated, one shape each");
  addAssignments(sub, "--set", command.scalars, "NAME=VALUE",
                 "Value of a scalar argument, or of all elements of a view");
  addAssignments(sub, "--order", command.orders, "NAME=0,2,1,3",
                 "Storage order of a view's dimensions, slowest first (default: C order)");
  sub.add_option(
         "--vary", command.vary,
         "Parameters whose values are tried too: all that the source allows, or those named")
      ->type_name("NAME[=A:B:...],...")
      ->allow_extra_args(false);
  sub.add_option("--schedule", target.space.schedule,
                 "Schedule fields that are fixed, as consumers=2,overlap=1");
  sub.add_option("--fields", command.fields,
                 "Schedule fields that are varied, '' for none (default: all that are not fixed)")
      ->type_name("NAME,...")
      ->allow_extra_args(false);
  sub.add_option("--budget", target.space.budget, "The most candidates to compile and measure")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  auto appendAlso = [&command](const std::vector<std::string> &items) {
    for (const std::string &item : items) {
      size_t equal = item.find('=');
      if (equal == 0 || equal == std::string::npos)
        throw CLI::ValidationError("--also", "expected NAME=VALUE, got '" + item + "'");
      command.also.push_back({{item.substr(0, equal), item.substr(equal + 1)}});
    }
  };
  sub.add_option_function<std::vector<std::string>>(
         "--also", appendAlso,
         "Store the winners for this value of a parameter too, as T=f16: a type of the same width")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

/// Which steps, and how.
static void addStepOptions(CLI::App &sub, TuneOptions &options) {
  CLI::Option *compileOnly =
      sub.add_option("--compile-only", options.compileOnly,
                     "Only compile, into DIR, for --measure on a machine with a GPU")
          ->type_name("DIR");
  CLI::Option *measure =
      sub.add_option("--measure", options.measure, "Only time what --compile-only made")
          ->type_name("DIR")
          ->excludes(compileOnly);
  sub.add_option("--merge", options.merge, "Only put the winners of RESULTS into --database")
      ->type_name("RESULTS")
      ->excludes(compileOnly)
      ->excludes(measure);
  sub.add_option("--adopt", options.adopt,
                 "Only say that the entries of --database for the kernels of FILE were measured "
                 "with the programs that FILE has now")
      ->type_name("FILE")
      ->check(CLI::ExistingFile)
      ->excludes(compileOnly)
      ->excludes(measure)
      ->excludes("--merge");
  sub.add_option("--out", options.out,
                 "File for all measurements; --measure goes on where the file ends")
      ->type_name("RESULTS");
  sub.add_option("--database", options.database,
                 "The database to change (default: schedules.json beside FILE or LIST)")
      ->type_name("FILE");
  sub.add_option("--compiler", options.compiler,
                 "What entries say of the compiler, as its commit (default: its version)");
  sub.add_option("--record", options.record,
                 "File with all measurements that entries cite, as one of bench/results");
  sub.add_option("--ptxas", options.ptxas, "Path of ptxas");
  sub.add_option("--jobs", options.jobs, "Compilations at a time (default: one for each core)");
  sub.add_option("--device", options.device, "Number of the GPU")
      ->check(CLI::Range(0, 1 << 10))
      ->capture_default_str();
  sub.add_option("--rounds", options.rounds, "Turns of each contestant")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  sub.add_option("--milliseconds", options.milliseconds, "Timed work of a turn")
      ->check(CLI::Range(0.1, 1e5))
      ->capture_default_str();
  sub.add_option("--limit", options.limitSeconds,
                 "Seconds after which a turn counts as a kernel that does not end")
      ->check(CLI::Range(0.01, 1e5))
      ->capture_default_str();
}

void tessera::addTuneCommand(CLI::App &app) {
  CLI::App *sub = app.add_subcommand(
      "tune", "Measure the schedules of a kernel and remember the fastest (docs/tuning.md)");
  auto command = std::make_shared<TuneCommand>();
  addTargetOptions(*sub, *command);
  addStepOptions(*sub, command->options);
  groupOptions(*sub, "Source", {"-D", "--kernel", "--list"});
  groupOptions(*sub, "Arguments", {"--shape", "--set", "--order"});
  groupOptions(*sub, "Candidates", {"--vary", "--schedule", "--fields", "--budget", "--also"});
  groupOptions(*sub, "Steps", {"--compile-only", "--measure", "--merge", "--adopt", "--out"});
  groupOptions(*sub, "Measuring", {"--device", "--rounds", "--milliseconds", "--limit"});
  groupOptions(*sub, "Entries", {"--database", "--compiler", "--record"});
  groupOptions(*sub, "Tools", {"--ptxas", "--jobs"});
  addExamples(*sub, "  tessera tune gemm --shape M=8192,N=8192,K=8192 --vary BM,BN=128:192:256 "
                    "--database mine.json\n"
                    "  tessera tune gemm --shape M=8192,N=8192,K=8192 --compile-only tuned\n"
                    "  tessera tune --measure tuned --out results.json\n"
                    "  tessera tune --merge results.json --database mine.json");
  sub->callback([command] { throw CLI::RuntimeError(runTune(*command)); });
}
