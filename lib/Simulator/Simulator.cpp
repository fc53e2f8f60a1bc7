//===- Simulator.cpp - Modules and launches -------------------------------===//
#include "lib/Simulator/Simulator.h"
#include "lib/Simulator/Ast.h"
#include "lib/Simulator/Machine.h"
#include <chrono>

using namespace tessera::sim;
using namespace tessera::sim::detail;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

Module::Module(std::unique_ptr<ParsedModule> parsed) : impl(std::move(parsed)) {}
Module::~Module() = default;
Module::Module(Module &&) = default;
llvm::ArrayRef<PtxKernel> Module::kernels() const { return impl->kernelInfos; }
const PtxKernel *Module::kernel(StringRef name) const {
  for (const PtxKernel &k : impl->kernelInfos)
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
    if (Error e = layoutShared(*m, f, f.info, nullptr))
      return e;
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

/// What ptxas (13.0) gives each thread at entry of a kernel that uses setmaxnreg: what the blocks
/// of a multiprocessor allow, but no more than the kernel asks for later.
static uint32_t defaultRegisters(const PtxKernel &k, const Program &program, uint32_t threads) {
  if (k.maxnreg)
    return k.maxnreg;
  uint64_t share = kMultiprocessorRegisters / (uint64_t(threads) * k.minBlocks);
  uint32_t allowed =
      llvm::alignDown(std::min<uint64_t>(kMaxAssignedRegisters, share), kRegisterStep);
  allowed = std::max(allowed, kRegisterStep);
  return program.largestIncrease ? std::min(allowed, program.largestIncrease) : allowed;
}

/// Each extent by itself before their product, which cannot wrap then.
static Error checkExtents(const char *what, Dim3 d, Dim3 most, uint64_t mostInAll) {
  if (d.x && d.y && d.z && d.x <= most.x && d.y <= most.y && d.z <= most.z &&
      d.count() <= mostInAll)
    return Error::success();
  return launchError("the %s of %ux%ux%u is empty, or more than %ux%ux%u or %llu in all", what, d.x,
                     d.y, d.z, most.x, most.y, most.z, static_cast<unsigned long long>(mostInAll));
}

static Error checkLaunch(Run &run, const Function &f, const Launch &launch) {
  const PtxKernel &k = f.info;
  run.grid = launch.grid;
  run.block = launch.block;
  run.cluster = k.reqCluster.x ? k.reqCluster : launch.cluster;
  if (Error e = checkExtents("grid", launch.grid, {kMaxGridX, kMaxGridYZ, kMaxGridYZ}, INT64_MAX))
    return e;
  if (Error e = checkExtents("block", launch.block, {kMaxThreads, kMaxThreads, 64}, kMaxThreads))
    return e;
  uint32_t ctas = kMaxClusterCtas;
  if (Error e = checkExtents("cluster", run.cluster, {ctas, ctas, ctas}, ctas))
    return e;
  if (k.reqntid.x && (k.reqntid.x != launch.block.x || k.reqntid.y != launch.block.y ||
                      k.reqntid.z != launch.block.z))
    return launchError("kernel '%s' requires blocks of %ux%ux%u threads", k.name.c_str(),
                       k.reqntid.x, k.reqntid.y, k.reqntid.z);
  Dim3 c = run.cluster;
  if (run.grid.x % c.x || run.grid.y % c.y || run.grid.z % c.z)
    return launchError("the grid of %ux%ux%u is not a multiple of the cluster of %ux%ux%u",
                       run.grid.x, run.grid.y, run.grid.z, c.x, c.y, c.z);
  if (launch.params.size() != k.paramBytes)
    return launchError("kernel '%s' has %u bytes of parameters, the launch gives %zu",
                       k.name.c_str(), k.paramBytes, launch.params.size());
  uint64_t shared = uint64_t(run.program->dynamicOffset) + launch.dynamicSharedBytes;
  if (shared > kMaxSharedBytes)
    return launchError("%llu bytes of shared memory are more than the %llu of sm_90",
                       static_cast<unsigned long long>(shared),
                       static_cast<unsigned long long>(kMaxSharedBytes));
  run.sharedBytes = uint32_t(shared);
  uint32_t threads = llvm::alignTo(launch.block.count(), kLanes);
  run.registersPerThread = launch.registersPerThread;
  if (!run.registersPerThread)
    run.registersPerThread = defaultRegisters(k, *run.program, threads);
  if (uint64_t(run.registersPerThread) * threads > kMultiprocessorRegisters)
    return launchError("%u registers for each of %u threads are more than an SM has",
                       run.registersPerThread, threads);
  return Error::success();
}

/// What the state of a cluster takes.
static uint64_t clusterBytes(const Run &run) {
  const Program &p = *run.program;
  uint64_t warp = 4ull * p.regWords + sizeof(RegMeta) * p.regOffset.size() + 4ull * p.counters +
                  uint64_t(kLanes) * p.localBytes + sizeof(Warp);
  uint64_t cta = run.warpsPerCta * warp + run.sharedBytes + Shadow::bytesFor(run.sharedBytes);
  return run.cluster.count() * cta;
}

/// Clusters that run at a time: as many as the device would hold, but no more than fit the memory
/// that `buffers` leave.
static uint64_t residentClusters(const Run &run, uint64_t buffers) {
  uint64_t ctas = run.cluster.count();
  return std::min({run.grid.count() / ctas, std::max<uint64_t>(1, residentBlocks(run) / ctas),
                   (kMaxMemoryBytes - buffers) / clusterBytes(run)});
}

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
  if (Error e = checkLaunch(run, *f, launch))
    return e;
  run.warpsPerCta = llvm::divideCeil(launch.block.count(), kLanes);
  uint64_t buffers = l.memory->totalBytes(), resident = residentClusters(run, buffers);
  if (!resident)
    return launchError("a cluster of %llu CTAs with %llu bytes of registers, local and shared "
                       "memory, and %llu bytes of buffers are more than the %llu bytes that the "
                       "simulator gives a launch",
                       static_cast<unsigned long long>(run.cluster.count()),
                       static_cast<unsigned long long>(clusterBytes(run)),
                       static_cast<unsigned long long>(buffers),
                       static_cast<unsigned long long>(kMaxMemoryBytes));
  run.report.seed = options.seed;
  run.report.completed = true;
  run.globalShadow.reset(*l.memory, options.threads > 1);
  run.sharedArrays.reset(*run.program, options.sharedNames, run.sharedBytes);
  auto start = std::chrono::steady_clock::now();
  runGrid(run, resident);
  run.report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return std::move(run.report);
}
