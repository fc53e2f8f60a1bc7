//===- Grid.cpp - Runs the clusters of a launch ---------------------------===//
//
// The machine promises no order of blocks: neither which start first nor how fast each runs. Both
// come from the seed. Clusters see each other through global memory only, so one runs until it has
// touched that (Cluster::touchGlobal) before another has its turn. As many as the multiprocessors
// have room for are resident; as long as these can go on, fewer are interleaved, which shows the
// same and takes less memory.
//
//===----------------------------------------------------------------------===//
#include "lib/Simulator/Machine.h"
#include <numeric>
#include <thread>

using namespace tessera::sim;
using namespace tessera::sim::detail;

namespace {

/// Which cluster runs.
enum class BlockPolicy : uint8_t {
  Sequence, ///< one after the other, until it waits for others
  Turns,    ///< any
  Starve,   ///< one of them only when no other can go on
  Priority, ///< that of the highest priority; priorities change now and then
};
constexpr unsigned kBlockPolicies = 4;

/// One cluster that has started and not ended.
struct Resident {
  std::unique_ptr<Cluster> cluster;
  uint64_t priority = 0;
  bool running = false; ///< on some host thread
  /// It only spins and waits for an event of another.
  bool stalled = false;
  uint64_t spun = 0; ///< instructions since the last event of its own
};

class GridRunner {
public:
  GridRunner(Run &run, uint64_t resident);
  void go();

private:
  Resident *take();
  Resident *startOne();
  Resident *choose(llvm::ArrayRef<Resident *> from);
  void put(Resident &r, uint64_t events, uint64_t instructions, bool done);
  void finish(Cluster &c);
  void work();

  Run &run;
  uint64_t total, resident, window;
  BlockPolicy policy;
  uint32_t switchRate = 0;
  Rng rng;
  std::vector<uint64_t> order; ///< in which clusters start
  uint64_t started = 0;
  uint64_t spun = 0; ///< instructions of all since somebody's last event
  std::mutex mutex;
  std::list<Resident> live;
  static constexpr uint64_t kTurn = 20000; ///< instructions, at most
  /// So many without any store, arrival or completion are taken for spinning.
  static constexpr uint64_t kSpin = 4096;
};

} // namespace

/// What an SM of sm_90 has room for (CUDA C++ Programming Guide, compute capabilities): threads,
/// blocks, registers, and shared memory, of which the system takes 1 KiB for each block.
static uint64_t blocksPerMultiprocessor(const Run &run) {
  uint64_t threads = uint64_t(run.warpsPerCta) * kLanes;
  return std::max<uint64_t>(
      1, std::min({kMultiprocessorCtas, kMultiprocessorThreads / threads,
                   kMultiprocessorRegisters / (threads * run.registersPerThread),
                   kMultiprocessorSharedBytes / (run.sharedBytes + kSharedBase)}));
}

uint64_t tessera::sim::detail::residentBlocks(const Run &run) {
  return run.options->residentCtas ? run.options->residentCtas
                                   : kMultiprocessors * blocksPerMultiprocessor(run);
}

GridRunner::GridRunner(Run &run, uint64_t resident)
    : run(run), total(run.grid.count() / run.cluster.count()), resident(resident) {
  uint64_t seed = run.options->seed;
  rng.seed(seed, ~0ull);
  // Another combination with Policy and the rates of completion for each of 24 seeds.
  policy = BlockPolicy((seed + seed / kPolicies) % kBlockPolicies);
  if (policy == BlockPolicy::Sequence) {
    window = 1;
  } else {
    window = 2 + rng.below(3);
    switchRate = total == 1 ? 0 : policy == BlockPolicy::Turns ? 2 : 8;
  }
  window = std::max<uint64_t>(window, run.options->threads);
  order.resize(total);
  std::iota(order.begin(), order.end(), 0);
  for (uint64_t k = total; k > 1; --k)
    std::swap(order[k - 1], order[rng.below(uint32_t(k))]);
}

void GridRunner::go() {
  std::vector<std::thread> threads;
  for (unsigned k = 1; k < run.options->threads; ++k)
    threads.emplace_back([this] { work(); });
  work();
  for (std::thread &t : threads)
    t.join();
}

Resident *GridRunner::startOne() {
  Resident &r = live.emplace_back();
  r.cluster = std::make_unique<Cluster>();
  r.cluster->number = order[started++];
  r.cluster->switchRate = switchRate;
  r.priority = rng.next();
  return &r;
}

Resident *GridRunner::choose(llvm::ArrayRef<Resident *> from) {
  Resident *chosen = from[rng.below(uint32_t(from.size()))];
  if (policy == BlockPolicy::Priority) {
    for (Resident *r : from)
      chosen = r->priority > chosen->priority ? r : chosen;
    if (rng.below(16) == 0)
      chosen->priority = rng.next();
  } else if (policy == BlockPolicy::Starve) {
    // The one that has waited longest goes on waiting.
    Resident *starved = &live.front();
    if (chosen == starved && from.size() > 1)
      chosen = from[0] == starved ? from[1] : from[0];
  }
  return chosen;
}

/// The next cluster to run; null when all are taken.
Resident *GridRunner::take() {
  bool mayStart = started < total && live.size() < resident && !run.abort;
  llvm::SmallVector<Resident *, 16> ready, stalled;
  for (Resident &r : live)
    if (!r.running)
      (r.stalled ? stalled : ready).push_back(&r);
  // Where all that have started wait for others, these may be among those that have not.
  if (mayStart && (live.size() < window || (ready.empty() && stalled.size() == live.size())))
    return startOne();
  if (!ready.empty())
    return choose(ready);
  return stalled.empty() ? nullptr : stalled[rng.below(uint32_t(stalled.size()))];
}

void GridRunner::put(Resident &r, uint64_t events, uint64_t instructions, bool done) {
  r.running = false;
  r.spun = events ? 0 : r.spun + instructions;
  r.stalled = r.spun >= kSpin;
  spun = events ? 0 : spun + instructions;
  if (events || done)
    for (Resident &other : live) {
      other.stalled = false;
      other.spun = 0;
    }
  if (spun > run.options->stallInstructions && !done && !run.abort.exchange(true)) {
    reportBlocked(
        *r.cluster, DiagKind::Livelock,
        "no progress: no store, arrival or completion for many instructions in any block");
    done = true;
    finish(*r.cluster);
  }
  if (done)
    live.remove_if([&](const Resident &other) { return &other == &r; });
}

void GridRunner::finish(Cluster &c) {
  std::lock_guard<std::mutex> lock(run.reportMutex);
  Report &report = run.report;
  report.warpInstructions += c.instructions;
  report.wgmmas += c.wgmmas;
  report.tmaOperations += c.tmaOps;
  report.ctas += c.ctas.size();
  for (size_t k = 0; k < c.opcodeCounts.size(); ++k)
    if (c.opcodeCounts[k])
      report.opcodes[run.program->opcodeNames[k]] += c.opcodeCounts[k];
  if (c.failed || run.abort)
    report.completed = false;
}

void GridRunner::work() {
  std::unique_lock<std::mutex> lock(mutex);
  while (!live.empty() || (started < total && !run.abort)) {
    Resident *r = take();
    if (!r) {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
      continue;
    }
    r->running = true;
    lock.unlock();
    Cluster &c = *r->cluster;
    if (!c.run)
      initCluster(run, c, c.number);
    uint64_t instructions = c.instructions, events = c.events;
    // No turn goes far beyond the limit of the launch.
    uint64_t left = run.options->maxWarpInstructions -
                    std::min<uint64_t>(run.instructions, run.options->maxWarpInstructions);
    bool done = stepCluster(c, std::min(kTurn, left + 1));
    instructions = c.instructions - instructions;
    run.instructions += instructions;
    if (run.instructions > run.options->maxWarpInstructions && !run.abort.exchange(true))
      addDiagnostic(c, DiagKind::Livelock, nullptr, nullptr, -1,
                    "the launch exceeds its limit of warp instructions");
    // Who has failed leaves others waiting for it.
    if (c.failed)
      run.abort = true;
    if (done)
      finish(c);
    lock.lock();
    put(*r, c.events - events, instructions, done);
  }
}

void tessera::sim::detail::runGrid(Run &run, uint64_t resident) { GridRunner(run, resident).go(); }
