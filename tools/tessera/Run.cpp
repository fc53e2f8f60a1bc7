//===- Run.cpp - tessera run ----------------------------------------------===//

#include "lib/Support/Seeds.h"
#include "tools/tessera/Commands.h"
#include "tools/tessera/RunKernel.h"
#include <CLI/CLI.hpp>

using namespace tessera;

/// Splits "NAME=VALUE"; the error names the option.
static std::pair<std::string, std::string> splitAssignment(const std::string &option,
                                                           const std::string &item) {
  size_t equal = item.find('=');
  if (equal == 0 || equal == std::string::npos)
    throw CLI::ValidationError(option, "expected NAME=VALUE, got '" + item + "'");
  return {item.substr(0, equal), item.substr(equal + 1)};
}

void tessera::addAssignments(CLI::App &command, const std::string &option, Assignments &assignments,
                             const std::string &form, const std::string &help) {
  auto append = [&assignments, option](const std::vector<std::string> &items) {
    for (const std::string &item : items)
      assignments.push_back(splitAssignment(option, item));
  };
  command.add_option_function<std::vector<std::string>>(option, append, help)
      ->type_name(form)
      ->allow_extra_args(false);
}

/// Adds --shape, of which each item goes to the shape that `next` gives.
static void addShapeOption(CLI::App &command, const std::function<Assignments &()> &next,
                           const std::string &help) {
  auto append = [next](const std::vector<std::string> &items) {
    for (const std::string &item : items) {
      Assignments &shape = next();
      for (const std::string &part : CLI::detail::split(item, ','))
        shape.push_back(splitAssignment("--shape", part));
    }
  };
  command.add_option_function<std::vector<std::string>>("--shape", append, help)
      ->type_name("NAME=N,...")
      ->allow_extra_args(false);
}

void tessera::addShape(CLI::App &command, Assignments &shape, const std::string &help) {
  addShapeOption(command, [&shape]() -> Assignments & { return shape; }, help);
}

void tessera::addShapes(CLI::App &command, std::vector<Assignments> &shapes,
                        const std::string &help) {
  addShapeOption(command, [&shapes]() -> Assignments & { return shapes.emplace_back(); }, help);
}

/// The options of run and check alike.
static void addKernelOptions(CLI::App &command, RunOptions &options) {
  addSourceOptions(command, options.file, options.defines, options.imports);
  command.add_option("--kernel", options.kernel, "The kernel, when the source has several");
  addPassOptions(command, options.pdl, options.split);
  addAssignments(command, "--set", options.scalars, "NAME=VALUE", "Value of a scalar argument");
  addAssignments(command, "--input", options.inputs, "NAME=X.npy",
                 "Elements of a view (float32; float16, float64 and int32 are read too); views "
                 "without a file are drawn from a normal distribution");
  addAssignments(command, "--expect", options.expects, "NAME=X.npy",
                 "What the kernel should store into a view, as computed by you: the result is "
                 "compared with it, within twice the rounding of the kernel's precision");
  command
      .add_option("--save-inputs", options.saveInputs,
                  "Save each view that the kernel loads as NAME.npy in this directory")
      ->type_name("DIR");
  addAssignments(command, "--order", options.orders, "NAME=0,2,1,3",
                 "Storage order of a view's dimensions, slowest first (default: C order)");
  command
      .add_option("--pad-rows", options.padRows,
                  "Store rows of views at multiples of so many elements, with NaN between them")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command.add_option("--seed", options.seed, "Seed of the inputs that are drawn")
      ->check(validateSeed)
      ->capture_default_str();
  command.add_flag(
      "--integers", options.integers,
      "Round the inputs that are drawn to integers, so that sums of products are exact "
      "in any order");
}

static void addSimOptions(CLI::App &command, SimOptions &options) {
  command.add_option("--seeds", options.seeds, "Seeds of events that the simulator explores")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  command.add_option("--sim-seed", options.seed, "The first of them")
      ->check(validateSeed)
      ->capture_default_str();
  command
      .add_option("--sim-blocks", options.blocks,
                  "Thread blocks of a persistent kernel, at most: fewer take more tiles each")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  command.add_flag("--move-approximations", options.moveApproximations,
                   "Move the results of approximations (division, exponentials, ...) within the "
                   "error that the PTX ISA documents, for each seed but 0 otherwise");
  command
      .add_option("--threads", options.threads,
                  "Host threads of the simulator (default: all cores, or 1 for kernels whose "
                  "blocks communicate)")
      ->check(CLI::Range(0u, mostHostThreads));
}

/// What is shown of values, beside what tile.print shows.
static void addShowOptions(CLI::App &command, RunOptions &options) {
  command
      .add_option("--print", options.prints,
                  "Show a value by its name in the source, as each grid point leaves it (the "
                  "interpreter shows it, for --device sim before the simulator runs)")
      ->type_name("%NAME")
      ->allow_extra_args(false);
  auto append = [&options](const std::vector<std::string> &items) {
    for (const std::string &item : items)
      for (const std::string &part : CLI::detail::split(item, ','))
        options.at.push_back(splitAssignment("--at", part));
  };
  command
      .add_option_function<std::vector<std::string>>(
          "--at", append, "Show values of the grid points with these indices only, as m=0,h=1")
      ->type_name("NAME=N,...")
      ->allow_extra_args(false);
  command.add_flag("--steps", options.steps,
                   "Show values of --print each time that they are computed, those that a loop "
                   "carries before its first step and after each");
  command
      .add_option("--elements", options.elements,
                  "Elements that are shown along each axis, at most")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
}

static void addRunOptions(CLI::App &command, RunOptions &options) {
  addKernelOptions(command, options);
  addShape(command, options.shape, "Extents of the run-time dimensions that no input fixes");
  addAssignments(command, "--output", options.outputs, "NAME=Y.npy",
                 "Where to save a view that the kernel stores, as float32");
  command.add_option("--device", options.device, "What runs the kernel")
      ->check(CLI::IsMember({"interp", "sim", "cuda"}))
      ->capture_default_str();
  addSimOptions(command, options.sim);
  command
      .add_option("--ptx", options.sim.ptx,
                  "PTX that the simulator runs in place of what is compiled, as of an edited "
                  "--emit ptx")
      ->type_name("FILE");
  command
      .add_option("--write-launch", options.writeLaunch,
                  "Write the launch here as tessera-sim reads it, and beside it the elements of "
                  "each view")
      ->type_name("FILE.json");
  command
      .add_option("--precision", options.precision,
                  "Rounding of the interpreter: each value to its type, or none (double)")
      ->check(CLI::IsMember({"kernel", "exact"}))
      ->capture_default_str();
  command
      .add_option("--level", options.level,
                  "Form of the kernel that the interpreter runs: as it is read, or with its "
                  "schedule chosen and its loops overlapped and split")
      ->check(CLI::IsMember({"bound", "scheduled"}))
      ->capture_default_str();
  command.add_option("--schedule", options.schedule,
                     "Schedule fields in place of those chosen, as consumers=2,overlap=1");
  command.add_option("--ptxas", options.ptxas, "Path of ptxas");
  command.add_option("--trace", options.trace,
                     "Record when each warpgroup enters each stage and write it here, for tessera "
                     "trace (--device sim or cuda)");
  command.add_option("--instrument", options.instrument,
                     "What is recorded for --trace: timeline, with blocks=N, first=N and events=N "
                     "after commas (default: timeline)");
  addShowOptions(command, options);
  addTuningOptions(command, options.tuning);
  command.add_flag("--time", options.time,
                   "Time the kernel, with the L2 cache flushed before each run (--device cuda)");
  command.add_flag("--check", options.check,
                   "Check the rounding: compare with the same kernel on the interpreter in double, "
                   "and with the error of that in the kernel's precision (--expect implies it)");
}

void tessera::addRunCommand(CLI::App &app) {
  CLI::App *sub = app.add_subcommand("run", "Run a kernel on given or random tensors");
  auto options = std::make_shared<RunOptions>();
  addRunOptions(*sub, *options);
  groupOptions(*sub, "Source", {"-D", "-I", "--kernel"});
  groupOptions(*sub, "Arguments",
               {"--shape", "--set", "--input", "--order", "--pad-rows", "--seed", "--integers"});
  groupOptions(*sub, "Results", {"--output", "--expect", "--save-inputs", "--check", "--time"});
  groupOptions(*sub, "Interpreter",
               {"--precision", "--level", "--print", "--at", "--steps", "--elements"});
  groupOptions(*sub, "Simulator",
               {"--seeds", "--sim-seed", "--sim-blocks", "--move-approximations", "--threads",
                "--ptx", "--write-launch"});
  groupOptions(*sub, "Schedule",
               {"--schedule", "--database", "--no-database", "--shape-class", "--gpu", "--ptxas"});
  addExamples(*sub, "  tessera run gemm --shape M=100,N=96,K=136 --check\n"
                    "  tessera run gemm --input a=a.npy --input b=b.npy --expect c=c.npy\n"
                    "  tessera run gemm --shape M=128,N=128,K=64 --print %sum --at m=0,n=0\n"
                    "  tessera run attention_fwd -D D=64 --shape B=1,H=2,HK=1,SQ=100,SK=200 --set "
                    "scale=0.125 --device sim --check");
  sub->callback([options] {
    options->check |= !options->expects.empty();
    throw CLI::RuntimeError(runKernel(*options));
  });
}

std::vector<std::pair<std::string, int64_t>> tessera::readExtents(const Assignments &shape) {
  std::vector<std::pair<std::string, int64_t>> extents;
  for (const auto &[name, text] : shape) {
    int64_t extent = 0;
    if (!CLI::detail::lexical_cast(text, extent) || extent < 1)
      throw CLI::ValidationError("--shape",
                                 name + " is an integer of at least 1, got '" + text + "'");
    extents.emplace_back(name, extent);
  }
  return extents;
}

void tessera::addCheckCommand(CLI::App &app) {
  CLI::App *sub = app.add_subcommand(
      "check", "Simulate a kernel over seeds and schedules and compare with the interpreter");
  auto options = std::make_shared<CheckOptions>();
  // As many as go through every combination of policies once.
  options->base.sim.seeds = 24;
  addKernelOptions(*sub, options->base);
  addShapes(*sub, options->shapes,
            "Extents of the run-time dimensions that no input fixes; repeated, one shape each");
  sub->add_option("--schedule", options->schedules,
                  "Schedule fields in place of those chosen, as consumers=2,overlap=1; repeated, "
                  "one schedule each, of which '' is the compiler's choice")
      ->allow_extra_args(false);
  sub->add_option("--data-seeds", options->dataSeeds, "Seeds of the inputs, from --seed on")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  sub->add_flag("--scheduled", options->scheduled,
                "Also check the interpreter on the kernel with its schedule chosen and its loops "
                "overlapped and split");
  addSimOptions(*sub, options->base.sim);
  groupOptions(*sub, "Source", {"-D", "-I", "--kernel"});
  groupOptions(*sub, "Arguments",
               {"--shape", "--set", "--input", "--order", "--pad-rows", "--seed", "--data-seeds",
                "--integers", "--expect", "--save-inputs"});
  groupOptions(*sub, "Simulator",
               {"--seeds", "--sim-seed", "--sim-blocks", "--move-approximations", "--threads"});
  addExamples(*sub,
              "  tessera check gemm --shape M=100,N=96,K=136 --schedule '' --schedule consumers=1");
  sub->callback([options] { throw CLI::RuntimeError(checkKernel(*options)); });
}
