//===- tessera-sim.cpp - Runs a PTX module on the simulator ---------------===//
#include "LaunchFile.h"
#include "lib/Support/Seeds.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <CLI/CLI.hpp>
#include <thread>

using namespace tessera::sim;

namespace {

struct Arguments {
  std::string ptx, launch;
  uint64_t seed = 0, seeds = 1;
  unsigned threads = 0, maxDiagnostics = 20;
  uint64_t limit = 0;
  bool stats = false, noRaces = false, noRegisters = false, parseOnly = false;
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

int execute(const Arguments &a) {
  auto text = llvm::MemoryBuffer::getFile(a.ptx);
  if (!text)
    return fail(llvm::createStringError(text.getError(), "%s: cannot be read", a.ptx.c_str()));
  auto module = parseModule((*text)->getBuffer(), a.ptx);
  if (!module)
    return fail(module.takeError());
  if (a.parseOnly) {
    for (const KernelInfo &k : module->kernels())
      llvm::outs() << llvm::formatv(
          "{0}: {1} parameters in {2} bytes, {3} bytes of static shared memory\n", k.name,
          k.params.size(), k.paramBytes, k.staticSharedBytes);
    return 0;
  }
  if (llvm::Error error = tessera::checkSeeds("--seeds", a.seeds, "--seed", a.seed))
    return fail(std::move(error));
  for (uint64_t i = 0; i < a.seeds; ++i) {
    uint64_t seed = a.seed + i;
    auto file = loadLaunchFile(*module, a.launch);
    if (!file)
      return fail(file.takeError());
    Options &o = (*file)->options;
    o.seed = seed;
    o.threads = a.threads ? a.threads : std::max(1u, std::thread::hardware_concurrency());
    o.maxDiagnostics = a.maxDiagnostics;
    o.checkRaces = !a.noRaces;
    o.checkRegisters = !a.noRegisters;
    if (a.limit)
      o.maxWarpInstructions = a.limit;
    auto report = run(*module, (*file)->launch, o);
    if (!report)
      return fail(report.takeError());
    if (a.stats)
      printStats(*report);
    bool last = i + 1 == a.seeds;
    auto mismatches = finishLaunchFile(**file, last || !report->ok());
    if (!mismatches)
      return fail(mismatches.takeError());
    if (!report->ok() || !mismatches->empty()) {
      report->print(llvm::errs(), a.ptx);
      for (const std::string &m : *mismatches)
        llvm::errs() << "error: [wrong-result] " << m << '\n';
      llvm::errs() << "found with --seed " << seed << " --threads " << o.threads << '\n';
      return 1;
    }
  }
  llvm::outs() << llvm::formatv("{0} seed{1}: no hazard found\n", a.seeds, a.seeds == 1 ? "" : "s");
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app{
      "Executes a Hopper PTX module on the CPU and reports races, deadlocks and other hazards."};
  Arguments a;
  app.add_option("ptx", a.ptx, "PTX module")->required();
  app.add_option("--launch", a.launch, "launch description (JSON); see docs/simulator.md");
  app.add_option("--seed", a.seed, "first seed")->check(tessera::validateSeed);
  app.add_option("--seeds", a.seeds, "number of seeds to explore")->check(CLI::Range(1, 1 << 30));
  app.add_option("--threads", a.threads, "host threads; 0: all cores");
  app.add_option("--max-diagnostics", a.maxDiagnostics, "distinct diagnostics to print")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--max-instructions", a.limit, "stop after so many warp instructions")
      ->check(CLI::PositiveNumber);
  app.add_flag("--stats", a.stats, "print counts and speed");
  app.add_flag("--no-race-checks", a.noRaces, "do not look for races in shared memory");
  app.add_flag("--no-register-checks", a.noRegisters,
               "do not look for uninitialised and in-flight registers");
  app.add_flag("--parse-only", a.parseOnly, "only parse, and list the kernels");
  CLI11_PARSE(app, argc, argv);
  if (a.launch.empty() && !a.parseOnly) {
    llvm::errs() << "tessera-sim: error: --launch is required\n";
    return 2;
  }
  return execute(a);
}
