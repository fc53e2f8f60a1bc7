//===- Simulator.cpp - Modules and launches -------------------------------===//
#include "Simulator.h"
#include "Ast.h"
#include "Machine.h"
#include <chrono>
#include <thread>

using namespace tessera::sim;
using namespace tessera::sim::detail;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

Module::Module(std::unique_ptr<ParsedModule> parsed) : impl(std::move(parsed)) {}
Module::~Module() = default;
Module::Module(Module &&) = default;
llvm::ArrayRef<KernelInfo> Module::kernels() const { return impl->kernelInfos; }
const KernelInfo *Module::kernel(StringRef name) const {
  for (const KernelInfo &k : impl->kernelInfos)
    if (k.name == name)
      return &k;
  return nullptr;
}

Expected<Module> tessera::sim::parseModule(StringRef text, StringRef fileName) {
  auto m = std::make_unique<ParsedModule>();
  m->fileName = fileName.str();
  m->text = text.str();
  if (Error e = parse(*m))
    return e;
  for (Function &f : m->functions)
    layoutShared(*m, f, f.info, nullptr);
  m->kernelInfos.clear();
  for (const Function &f : m->functions)
    if (f.isEntry)
      m->kernelInfos.push_back(f.info);
  return Module(std::move(m));
}

template <class... Args>
static Error launchError(const char *format, Args... args) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), format, args...);
}

/// What ptxas (13.0) gives each thread at entry of a kernel that uses setmaxnreg: what the block
/// size allows, but no more than the kernel asks for later.
static uint32_t defaultRegisters(const KernelInfo &k, const Program &program, uint32_t threads) {
  if (k.maxnreg)
    return k.maxnreg;
  uint32_t allowed = std::min(255u, 65536 / threads) / 8 * 8;
  return program.largestIncrease ? std::min(allowed, program.largestIncrease) : allowed;
}

static Error checkLaunch(Run &run, const Function &f, const Launch &launch) {
  const KernelInfo &k = f.info;
  run.grid = launch.grid;
  run.block = launch.block;
  run.cluster = k.reqCluster.x ? k.reqCluster : launch.cluster;
  if (!launch.grid.count() || !launch.block.count() || launch.block.count() > 1024)
    return launchError("the grid or the block is empty, or the block has more than 1024 threads");
  if (k.reqntid.x && (k.reqntid.x != launch.block.x || k.reqntid.y != launch.block.y ||
                      k.reqntid.z != launch.block.z))
    return launchError("kernel '%s' requires blocks of %ux%ux%u threads", k.name.c_str(),
                       k.reqntid.x, k.reqntid.y, k.reqntid.z);
  Dim3 c = run.cluster;
  if (c.count() == 0 || c.count() > 16 || run.grid.x % c.x || run.grid.y % c.y || run.grid.z % c.z)
    return launchError(
        "the grid is not a multiple of the cluster, or the cluster has more than 16 CTAs");
  if (launch.params.size() != k.paramBytes)
    return launchError("kernel '%s' has %u bytes of parameters, the launch gives %zu",
                       k.name.c_str(), k.paramBytes, launch.params.size());
  if (run.sharedBytes > 232448)
    return launchError("%u bytes of shared memory are more than the 232448 of sm_90",
                       run.sharedBytes);
  uint32_t threads = (launch.block.count() + 31) / 32 * 32;
  run.registersPerThread = launch.registersPerThread;
  if (!run.registersPerThread)
    run.registersPerThread = defaultRegisters(k, *run.program, threads);
  if (uint64_t(run.registersPerThread) * threads > 65536)
    return launchError("%u registers for each of %u threads are more than an SM has",
                       run.registersPerThread, threads);
  return Error::success();
}

namespace {

/// Runs the clusters of a launch: as many at a time as the device would hold, each in slices, on
/// several host threads.
class GridRunner {
public:
  GridRunner(Run &run) : run(run), total(run.grid.count() / run.cluster.count()) {
    resident = std::max<uint64_t>(1, run.options->residentCtas / run.cluster.count());
  }
  void go() {
    unsigned n = std::max(1u, run.options->threads);
    std::vector<std::thread> threads;
    for (unsigned k = 1; k < n; ++k)
      threads.emplace_back([this] { work(); });
    work();
    for (std::thread &t : threads)
      t.join();
  }

private:
  Run &run;
  uint64_t total, resident, started = 0, inFlight = 0;
  std::mutex mutex;
  std::deque<std::unique_ptr<Cluster>> queue;
  static constexpr uint64_t kSlice = 200000;

  std::unique_ptr<Cluster> take() {
    std::lock_guard<std::mutex> lock(mutex);
    // New clusters first, so that everything resident makes progress.
    if (started < total && inFlight < resident && !run.abort) {
      auto c = std::make_unique<Cluster>();
      c->number = started++;
      ++inFlight;
      return c;
    }
    if (queue.empty())
      return nullptr;
    auto c = std::move(queue.front());
    queue.pop_front();
    return c;
  }
  void finish(Cluster &c) {
    std::lock_guard<std::mutex> lock(run.reportMutex);
    Report &r = run.report;
    r.warpInstructions += c.instructions;
    r.wgmmas += c.wgmmas;
    r.tmaOperations += c.tmaOps;
    r.ctas += c.ctas.size();
    for (size_t k = 0; k < c.opcodeCounts.size(); ++k)
      if (c.opcodeCounts[k])
        r.opcodes[run.program->opcodeNames[k]] += c.opcodeCounts[k];
    if (c.failed || run.abort)
      r.completed = false;
  }
  void work() {
    for (;;) {
      std::unique_ptr<Cluster> c = take();
      if (!c) {
        {
          std::lock_guard<std::mutex> lock(mutex);
          if (inFlight == 0 && (started >= total || run.abort))
            return;
        }
        std::this_thread::yield();
        continue;
      }
      if (!c->run)
        initCluster(run, *c, c->number);
      uint64_t before = c->instructions;
      bool done = stepCluster(*c, kSlice);
      run.instructions += c->instructions - before;
      if (run.instructions > run.options->maxWarpInstructions && !run.abort.exchange(true))
        addDiagnostic(*c, DiagKind::Livelock, nullptr, nullptr, -1,
                      "the launch exceeds its limit of warp instructions");
      if (done)
        finish(*c);
      std::lock_guard<std::mutex> lock(mutex);
      if (done)
        --inFlight;
      else
        queue.push_back(std::move(c));
    }
  }
};

} // namespace

Expected<Report> tessera::sim::run(const Module &module, const Launch &launch,
                                   const Options &options) {
  const Function *f = module.parsed().entry(launch.kernel);
  if (!f)
    return launchError("kernel '%s' is not in the module", launch.kernel.c_str());
  GlobalMemory empty;
  Launch l = launch;
  if (!l.memory)
    l.memory = &empty;
  auto program = buildProgram(module.parsed(), *f, *l.memory);
  if (!program)
    return program.takeError();
  Run run;
  run.program = program->get();
  run.launch = &l;
  run.options = &options;
  run.params = launch.params;
  run.sharedBytes = run.program->dynamicOffset + launch.dynamicSharedBytes;
  if (Error e = checkLaunch(run, *f, launch))
    return e;
  run.warpsPerCta = (launch.block.count() + 31) / 32;
  run.report.seed = options.seed;
  run.report.completed = true;
  auto start = std::chrono::steady_clock::now();
  GridRunner(run).go();
  run.report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return std::move(run.report);
}
