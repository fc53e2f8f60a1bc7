//===- tessera-sim.cpp - Runs a PTX module on the simulator ---------------===//
#include "LaunchFile.h"
#include "lib/Support/Files.h"
#include "lib/Support/Seeds.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <CLI/CLI.hpp>
#include <optional>
#include <thread>

using namespace tessera::sim;

namespace {

struct Arguments {
  std::string ptx, launch;
  uint64_t seed = 0, seeds = 1;
  unsigned threads = 0, maxDiagnostics = 20;
  uint64_t limit = 0;
  bool stats = false, noRaces = false, noRegisters = false, moveApproximations = false,
       orderedSums = false, parseOnly = false;
};

int fail(llvm::Error e) {
  llvm::logAllUnhandledErrors(std::move(e), llvm::errs(), "tessera-sim: error: ");
  return 2;
}

void printStats(const Report &r) {
  llvm::outs() << llvm::formatv("seed {0}: {1} CTAs, {2} warp instructions, {3} wgmma, {4} bulk "
                                "copies, {5:f3} s, {6:f2} M warp "
                                "instructions/s\n",
                                r.seed, r.ctas, r.warpInstructions, r.wgmmas, r.tmaOperations,
                                r.seconds, r.warpInstructions / std::max(r.seconds, 1e-9) / 1e6);
  for (const auto &[name, n] : r.opcodes)
    llvm::outs() << llvm::formatv("  {0,-24} {1}\n", name, n);
}

/// One seed: what it starts from, and what came of it.
struct Trial {
  std::unique_ptr<LaunchFile> file;
  std::optional<llvm::Expected<Report>> report;
};

llvm::Error prepare(const Arguments &a, const Module &module, uint64_t seed, unsigned threads,
                    Trial &trial) {
  auto file = loadLaunchFile(module, a.launch);
  if (!file)
    return file.takeError();
  trial.file = std::move(*file);
  Options &o = trial.file->options;
  o.seed = seed;
  o.threads = threads;
  o.maxDiagnostics = a.maxDiagnostics;
  o.checkRaces = !a.noRaces;
  o.checkRegisters = !a.noRegisters;
  o.moveApproximations = a.moveApproximations;
  o.orderedSums = a.orderedSums;
  if (a.limit)
    o.maxWarpInstructions = a.limit;
  return llvm::Error::success();
}

/// Prints what a seed has found and writes the outputs; the exit code.
int finish(const Arguments &a, Trial &trial, bool last) {
  if (!*trial.report)
    return fail(trial.report->takeError());
  const Report &report = **trial.report;
  if (a.stats)
    printStats(report);
  auto mismatches = finishLaunchFile(*trial.file, last || !report.ok());
  if (!mismatches)
    return fail(mismatches.takeError());
  if (report.ok() && mismatches->empty())
    return 0;
  report.print(llvm::errs(), a.ptx);
  for (const Mismatch &m : *mismatches)
    llvm::errs() << "error: [" << m.kind << "] " << m.text << '\n';
  llvm::errs() << "found with --seed " << report.seed << " --threads "
               << trial.file->options.threads << '\n';
  return 1;
}

/// Runs several seeds at once. A seed has one host thread, so that it is the same run each time; a
/// single seed has several when that is asked for.
int explore(const Arguments &a, const Module &module) {
  unsigned cores = a.threads ? a.threads : std::max(1u, std::thread::hardware_concurrency());
  unsigned threadsOfSeed = a.seeds == 1 && a.threads ? a.threads : 1;
  for (uint64_t done = 0; done < a.seeds;) {
    std::vector<Trial> trials(std::min<uint64_t>(cores, a.seeds - done));
    for (auto [k, trial] : llvm::enumerate(trials))
      if (llvm::Error error = prepare(a, module, a.seed + done + k, threadsOfSeed, trial))
        return fail(std::move(error));
    std::vector<std::thread> threads;
    for (Trial &trial : trials)
      threads.emplace_back([&trial, &module] {
        trial.report.emplace(run(module, trial.file->launch, trial.file->options));
      });
    for (std::thread &thread : threads)
      thread.join();
    int code = 0;
    for (Trial &trial : trials) {
      // After a failure the others still have to be looked at, as an Expected demands.
      if (!code)
        code = finish(a, trial, ++done == a.seeds);
      else if (!*trial.report)
        llvm::consumeError(trial.report->takeError());
    }
    if (code)
      return code;
  }
  llvm::outs() << llvm::formatv("{0} seed{1}: no hazard found\n", a.seeds, a.seeds == 1 ? "" : "s");
  return 0;
}

int execute(const Arguments &a) {
  auto text = tessera::readInput(a.ptx);
  if (!text)
    return fail(llvm::createStringError(text.getError(), "%s: cannot be read: %s", a.ptx.c_str(),
                                        text.getError().message().c_str()));
  auto module = parseModule((*text)->getBuffer(), a.ptx);
  if (!module)
    return fail(module.takeError());
  if (!a.parseOnly) {
    if (llvm::Error error = tessera::checkSeeds("--seeds", a.seeds, "--seed", a.seed))
      return fail(std::move(error));
    return explore(a, *module);
  }
  for (const PtxKernel &k : module->kernels())
    llvm::outs() << llvm::formatv(
        "{0}: {1} parameters in {2} bytes, {3} bytes of static shared memory\n", k.name,
        k.params.size(), k.paramBytes, k.staticSharedBytes);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app{
      "Executes a Hopper PTX module on the CPU and reports races, deadlocks and other hazards."};
  Arguments a;
  app.set_version_flag("-v,--version", "tessera-sim " TESSERA_VERSION);
  app.add_option("ptx", a.ptx, "PTX module")->required();
  app.add_option("--launch", a.launch, "launch description (JSON); see docs/simulator.md");
  app.add_option("--seed", a.seed, "first seed")->check(tessera::validateSeed);
  app.add_option("--seeds", a.seeds, "number of seeds to explore")->check(CLI::Range(1, 1 << 30));
  app.add_option("--threads", a.threads,
                 "host threads; 0: all cores. One a seed; a single seed has as many as are given")
      ->check(CLI::Range(0u, tessera::mostHostThreads));
  app.add_option("--max-diagnostics", a.maxDiagnostics, "distinct diagnostics to print")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--max-instructions", a.limit, "stop after so many warp instructions")
      ->check(CLI::PositiveNumber);
  app.add_flag("--stats", a.stats, "print counts and speed");
  app.add_flag("--no-race-checks", a.noRaces, "do not look for races");
  app.add_flag("--no-register-checks", a.noRegisters,
               "do not look for uninitialised and in-flight registers");
  app.add_flag("--move-approximations", a.moveApproximations,
               "let each seed but 0 move approximations within their documented error");
  app.add_flag("--ordered-sums", a.orderedSums,
               "report bulk reductions of one element that nothing orders");
  app.add_flag("--parse-only", a.parseOnly, "only parse, and list the kernels");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  int code = 2;
  if (a.launch.empty() && !a.parseOnly)
    llvm::errs() << "tessera-sim: error: --launch is required\n";
  else
    code = execute(a);
  return tessera::flushStandardStreams() && code == 0 ? 2 : code;
}
