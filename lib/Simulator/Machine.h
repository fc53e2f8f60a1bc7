//===- Machine.h - State of the simulated machine ---------------*- C++ -*-===//
//
// Run (the launch) > Cluster > Cta > Warp > Split. A split is a set of the warp's lanes at one
// program counter; a divergent branch makes two, which join again at the branch's immediate
// post-dominator. Splits are scheduled independently, as on Volta and later. One host thread at a
// time runs a cluster, so only the global memory and the report are shared between threads.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_SIMULATOR_MACHINE_H
#define TESSERA_SIMULATOR_MACHINE_H

#include "lib/Simulator/GlobalShadow.h"
#include "lib/Simulator/Limits.h"
#include "lib/Simulator/Program.h"
#include "lib/Simulator/ReadsInFlight.h"
#include "lib/Simulator/Shadow.h"
#include "lib/Simulator/SharedArrays.h"
#include "llvm/ADT/SmallVector.h"
#include <array>
#include <atomic>
#include <deque>
#include <list>
#include <mutex>
#include <unordered_map>

namespace tessera::sim::detail {

struct Cta;
struct Cluster;
struct Warp;
struct Run;

constexpr unsigned kLanes = 32;
constexpr uint32_t kAllLanes = ~0u;

/// xorshift64*: small, fast, the same everywhere.
struct Rng {
  uint64_t state = 1;
  void seed(uint64_t a, uint64_t b);
  uint64_t next() {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1dull;
  }
  uint32_t below(uint32_t n) { return uint32_t((next() >> 32) * n >> 32); }
};

//===----------------------------------------------------------------------===//
// Synchronisation objects
//===----------------------------------------------------------------------===//

/// The last time that a warp found a phase of an mbarrier complete.
struct PhaseWait {
  uint32_t agent = 0, epoch = 0, site = 0;
  /// The first wgmma of its warpgroup that the warp issues after it, and the agent of that engine.
  uint32_t group = 0;
  uint64_t wgmma = 0;
};

/// PTX ISA "mbarrier object": phase, pending arrivals, expected arrivals, tx-count.
struct Mbarrier {
  bool valid = false;
  bool countsBytes = false;
  uint32_t offset = 0; ///< in the CTA's shared memory
  uint32_t expected = 0, pending = 0;
  int64_t tx = 0;
  uint64_t phase = 0; ///< completed phases; the current one has this number
  uint32_t agent = 0;
  uint32_t initAgent = 0, initEpoch = 0, initSite = 0;
  const Inst *lastArrival = nullptr;
  Clock arriving; ///< of the arrivals of the current phase
  Clock done;     ///< of the arrivals of the completed phases
  /// What cannot come after the end of the current phase: it is before an arrival or a copy of it.
  ClusterView::Epochs causes;
  llvm::SmallVector<PhaseWait, 8> waits; ///< for the phase before the current one

  void causedBy(const Clock &order) { joinEpochs(causes, order.local().seen); }
};

/// A warp at a barrier.
struct Arrival {
  uint32_t agent = 0, epoch = 0, site = 0;
};

struct NamedBarrier {
  uint32_t expected = 0; ///< threads; 0: not in use
  uint32_t arrived = 0;
  uint32_t firstSite = 0;
  uint64_t generation = 0;
  uint32_t reduction = 0; ///< for barrier.red
  Clock arriving, done;
  llvm::SmallVector<uint32_t, 8> members;           ///< warps that arrived in this generation
  llvm::SmallVector<Arrival, 8> arrivals, previous; ///< of this generation, of the one before
};

struct WgmmaOp {
  const Inst *inst = nullptr;
  uint8_t issued = 0; ///< warps of the warpgroup
  uint64_t descA[4] = {}, descB[4] = {};
  bool scaleD[4] = {};
  bool hasClock = false;
  Clock order; ///< what all issuing warps are ordered after
};

/// The wgmma engine of a warpgroup: operations complete in order.
struct Warpgroup {
  uint32_t agent = 0;
  std::deque<WgmmaOp> ops;
  uint64_t firstSeq = 0;  ///< of ops.front()
  uint64_t completed = 0; ///< operations completed
};

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

struct RegMeta {
  uint32_t init = 0; ///< lanes in which it was written
  /// Lanes in which the low and the high half were, of 32 bits that are not written as a whole:
  /// LLVM packs pairs of which it uses one.
  std::array<uint32_t, 2> halves = {};
  uint32_t fence = 0;     ///< value of Warp::wgmmaFences when last written
  uint32_t flightAcc = 0; ///< 1 + sequence number of the last wgmma that accumulates into it
  uint32_t flightA = 0;   ///< 1 + sequence number of the last wgmma that reads it as A
};

struct MbarrierWait {
  Cta *cta = nullptr;
  uint32_t offset = 0;
  uint64_t state = 0; ///< parity, or the phase number of a state operand
  bool byState = false;
};

struct Wait {
  enum Kind : uint8_t {
    None,
    MbarrierTry,
    NamedBarrier,
    ClusterBarrier,
    Wgmma,
    Bulk,
    CpAsync,
    Registers,
    Mbarriers,
    WgmmaValue
  };
  Kind kind = None;
  uint32_t id = 0;
  uint64_t value = 0;
  MbarrierWait mbar;
  bool aliased = false;
  std::unique_ptr<std::array<MbarrierWait, kLanes>>
      lanes; ///< when the lanes wait for different barriers
};

struct Split {
  int32_t pc = 0;
  uint32_t mask = 0;
  llvm::SmallVector<int32_t, 4> stack; ///< reconvergence points, innermost last
  Wait wait;
  bool polling = false; ///< the last thing it did was a failed test
};

struct Reconverge {
  int32_t pc = 0;
  uint32_t members = 0, arrived = 0;
};

/// The bulk (or cp.async) groups of a thread.
struct AsyncGroups {
  uint32_t agent = 0;              ///< whose epochs are operations that have read their sources
  uint32_t writeAgent = 0;         ///< ... that have written global memory
  uint32_t issued = 0;             ///< operations
  std::vector<uint32_t> groupEnds; ///< operations issued when each group was committed
  uint32_t readDone = 0,
           writeDone = 0;     ///< operations in a row from the first that have read / finished
  std::vector<uint8_t> state; ///< per operation: 1 sources read, 2 finished
  uint32_t waitedRead = 0;    ///< operations that the thread has waited for
};

struct Warp {
  Cta *cta = nullptr;
  uint32_t index = 0; ///< in the CTA
  uint32_t agent = 0;
  uint32_t launched = 0, exited = 0; ///< lanes
  std::vector<uint32_t> regs;
  std::vector<RegMeta> meta;
  ReadsInFlight reads;
  std::vector<uint32_t> counts; ///< executions of counted instructions
  std::vector<uint8_t> local;   ///< 32 times Program::localBytes
  std::list<Split> splits;
  std::vector<Reconverge> points;
  std::vector<int32_t> freePoints;
  Clock clock;
  uint32_t epoch = 1;
  uint32_t site = 0;  ///< of the instruction that it executes
  uint32_t carry = 0; ///< condition code of add.cc
  uint32_t priority = 0;
  bool held = false;      ///< Policy::Eager: has issued copies, others go first
  uint32_t registers = 0; ///< per thread
  // wgmma
  uint32_t wgmmaFences = 1;
  uint64_t wgmmaIssued = 0;
  std::vector<uint64_t> wgmmaGroups; ///< operations issued at each commit
  uint64_t wgmmaWaited = 0;
  std::vector<uint32_t> flightRegs; ///< registers with flight marks
  // cluster barrier
  bool clusterArrived = false;
  uint64_t clusterGeneration = 0;
  std::unordered_map<uint32_t, AsyncGroups> bulk; ///< per lane
  AsyncGroups cpAsync;
  bool cpAsyncUsed = false;

  uint32_t alive() const { return launched & ~exited; }
  bool done() const { return splits.empty(); }
  void release() {
    reads.release(epoch, site);
    clock.see(agent, ++epoch);
  }
};

//===----------------------------------------------------------------------===//
// CTAs, clusters, the launch
//===----------------------------------------------------------------------===//

struct Cta {
  Cluster *cluster = nullptr;
  uint32_t rank = 0; ///< in the cluster
  Dim3 id{0, 0, 0};
  std::vector<uint8_t> shared;
  Shadow shadow;
  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<Warpgroup> groups;
  std::unordered_map<uint32_t, Mbarrier> mbarriers; ///< by offset
  NamedBarrier barriers[16];
  int64_t registerPool = 0; ///< free registers
  uint32_t liveWarps = 0;
  bool exited = false;

  Mbarrier *mbarrier(uint32_t offset) {
    auto it = mbarriers.find(offset);
    return it == mbarriers.end() || !it->second.valid ? nullptr : &it->second;
  }
};

/// An asynchronous operation under way (bulk copies; cp.async).
struct AsyncOp {
  enum Kind : uint8_t {
    TensorLoad,
    TensorStore,
    BulkLoad,
    BulkStore,
    SharedCopy,
    SharedStore,
    CpAsync,
    CpAsyncArrive
  };
  Kind kind = TensorLoad;
  int reduceOp = -1;      ///< AtomicOp of a reduction
  uint8_t reduceType = 0; ///< Ty
  const Inst *inst = nullptr;
  Warp *warp = nullptr;
  uint32_t lane = 0;
  Clock order; ///< of the issuing warp, at issue
  AsyncGroups *groups = nullptr;
  uint32_t groupIndex = 0;
  bool readPhaseDone = false; ///< a store whose sources have been read
  // Operands.
  std::array<uint8_t, 128> tensorMap;
  int32_t coords[5] = {};
  uint64_t global = 0;
  Cta *shared = nullptr; ///< source of a store, issuing CTA of a load
  uint32_t sharedOffset = 0;
  uint32_t bytes = 0;
  uint32_t footprint = 0; ///< of a tensor's box in shared memory
  uint32_t mbarOffset = 0;
  Cta *mbarCta = nullptr;
  uint32_t multicast = 0; ///< ranks; 0: only `shared`
  uint64_t phaseAtIssue[16] = {};
  Cta *remote = nullptr; ///< destination of a copy or store to another CTA's shared memory
  uint32_t remoteOffset = 0;
  std::vector<uint8_t> held; ///< data between the two halves of a store, or of st.async
  std::vector<std::array<uint32_t, 4>> pieces; ///< cp.async: destination, bytes, source bytes, lane
  std::vector<uint64_t> sources;               ///< cp.async: global address of each piece
};

/// Which warp of a cluster runs, and for how long.
enum class Policy : uint8_t {
  Random,   ///< any, for random times
  Eager,    ///< copies land at once, and who issued them waits until the others can do no more
  Priority, ///< that of the highest priority; priorities change now and then
  Short,    ///< any, for short times
};
constexpr unsigned kPolicies = 4;

struct Cluster {
  Run *run = nullptr;
  uint64_t number = 0;
  std::vector<std::unique_ptr<Cta>> ctas;
  std::vector<std::unique_ptr<AsyncOp>> pending;
  Rng rng;
  uint32_t agents = 0;
  std::vector<std::string> agentNames;
  std::vector<Warp *> agentWarps;                ///< by agent; null for engines
  std::vector<const ReadsInFlight *> agentReads; ///< of these warps
  uint64_t events = 0; ///< stores, arrivals, completions: whatever may let somebody go on
  uint64_t instructions = 0, lastEventAt = 0;
  uint64_t completionRate =
      0; ///< an operation lands by itself about once in so many steps; 0: never
  uint64_t sinceCompletion = 0;
  uint32_t failedPolls = 0;
  // barrier.cluster
  uint32_t clusterArrivals = 0;
  uint64_t clusterGeneration = 0;
  Clock clusterArriving, clusterDone;
  uint32_t liveWarps = 0;
  Policy policy = Policy::Random;
  bool interrupt = false; ///< the running split stops after its instruction
  bool yield = false;     ///< another cluster shall have its turn
  /// A turn of another cluster comes after about one in so many accesses to global memory; 0: never
  uint32_t switchRate = 0;
  uint64_t runEvents = 0; ///< of the whole launch, when it was last looked at
  /// Release and acquire through words of shared memory, by CTA rank and offset.
  std::unordered_map<uint64_t, Clock> strongClocks;
  std::vector<uint64_t> opcodeCounts;
  uint64_t wgmmas = 0, tmaOps = 0;
  bool failed = false;                        ///< deadlocked or aborted
  GlobalMemory::Buffer *lastBuffer = nullptr; ///< found by the last global access

  uint32_t newAgent(std::string name, Warp *warp = nullptr) {
    agentNames.push_back(std::move(name));
    agentWarps.push_back(warp);
    agentReads.push_back(warp ? &warp->reads : nullptr);
    return agents++;
  }
  /// An access to memory that other clusters may write: only there can their order matter.
  void touchGlobal() {
    if (switchRate && rng.below(switchRate) == 0)
      interrupt = yield = true;
  }
  void event() {
    ++events;
    lastEventAt = instructions;
    failedPolls = 0;
  }
};

/// What strong writes to a word of global memory have published for those who read it.
struct SyncWord {
  uint64_t cluster = ~0ull; ///< of the last writer
  uint32_t agent = 0;
  SharedViews published[kScopes];
};

struct Run {
  const Program *program = nullptr;
  const Launch *launch = nullptr;
  const Options *options = nullptr;
  Dim3 grid, block, cluster;
  uint32_t warpsPerCta = 0;
  uint32_t sharedBytes = 0; ///< static and dynamic
  uint32_t registersPerThread = 0;
  std::vector<uint8_t> params;
  std::mutex reportMutex;
  Report report;
  std::unordered_map<uint64_t, size_t> seen; ///< kind and site of a diagnostic to its index
  std::mutex atomicMutex;
  GlobalShadow globalShadow;
  SharedArrays sharedArrays;
  std::mutex syncMutex;
  std::unordered_map<uint64_t, SyncWord> syncWords; ///< by global address
  std::atomic<uint64_t> instructions{0};
  std::atomic<uint64_t> events{0};
  std::atomic<bool> abort{false};
};

//===----------------------------------------------------------------------===//
// What handlers see
//===----------------------------------------------------------------------===//

struct Exec {
  Run *run = nullptr;
  Cluster *cluster = nullptr;
  Cta *cta = nullptr;
  Warp *warp = nullptr;
  Split *split = nullptr;
  const Program *p = nullptr;
  uint32_t *regs = nullptr;
  const uint32_t *consts = nullptr;
  uint32_t active = 0; ///< lanes that execute

  bool isActive(unsigned lane) const { return active >> lane & 1; }
  const Op &op(const Inst &i, unsigned n) const { return p->ops[i.opBegin + n]; }
  template <class T>
  const T *src(const Inst &i, unsigned n) const {
    const Op &o = op(i, n);
    const uint32_t *base =
        o.offset & Op::Constant ? consts + (o.offset & ~Op::Constant) : regs + o.offset;
    return reinterpret_cast<const T *>(base);
  }
  template <class T>
  T *dst(const Inst &i, unsigned n) const {
    return reinterpret_cast<T *>(regs + op(i, n).offset);
  }
  /// Writes the active lanes of a destination.
  template <class T>
  void store(const Inst &i, unsigned n, const T *value) const {
    if (op(i, n).sink)
      return;
    T *d = dst<T>(i, n);
    if (active == kAllLanes) {
      for (unsigned l = 0; l < kLanes; ++l)
        d[l] = value[l];
      return;
    }
    for (unsigned l = 0; l < kLanes; ++l)
      if (active >> l & 1)
        d[l] = value[l];
  }
  /// What a lane has in operand `n`, of 64 bits or of 32 at most.
  uint64_t word(const Inst &i, unsigned n, unsigned lane) const {
    return op(i, n).cls == RegClass::R64 ? src<uint64_t>(i, n)[lane] : src<uint32_t>(i, n)[lane];
  }
  uint32_t pred(const Inst &i, unsigned n) const {
    const Op &o = op(i, n);
    uint32_t v = *src<uint32_t>(i, n);
    return o.negated ? ~v : v;
  }
  void storePred(const Inst &i, unsigned n, uint32_t value) const {
    if (op(i, n).sink)
      return;
    uint32_t *d = dst<uint32_t>(i, n);
    *d = (*d & ~active) | (value & active);
  }

  void report(DiagKind kind, const Inst &i, const llvm::Twine &message, int lane = -1,
              std::vector<std::string> notes = {});
};

/// Adds a diagnostic; `warp` and `inst` may be null.
void addDiagnostic(Cluster &cluster, DiagKind kind, const Warp *warp, const Inst *inst, int lane,
                   const llvm::Twine &message, std::vector<std::string> notes = {});
/// "warp 5 (consumer 1)", with the CTA when the launch has several.
/// The warp, or each of those from it to `last`.
std::string describeWarp(const Warp &warp, uint32_t last = 0);
std::string describeAgent(const Cluster &cluster, uint32_t agent);
/// The role of a warp of each CTA; empty when it has no name.
std::string roleOfWarp(const Run &run, uint32_t warp);
/// %ctaid of the CTA with this rank in its cluster.
Dim3 ctaOf(const Run &run, uint64_t cluster, uint32_t rank);
/// "PTX line 12 (file.tile:3:4)".
std::string describeSite(const Run &run, uint32_t site);
/// "K.full[1]" or "shared+0x480".
std::string describeShared(const Run &run, uint32_t offset);
std::string describeBarrier(const Run &run, uint32_t id);

// Memory.h: addresses; Async.h: asynchronous operations; Scheduler.cpp: running.
/// Runs the cluster for so many instructions, or until another one shall have its turn; true when
/// it has finished.
bool stepCluster(Cluster &cluster, uint64_t budget);
void initCluster(Run &run, Cluster &cluster, uint64_t number);
/// Nothing in the launch goes on: says what the cluster's warps wait for, and ends it.
void reportBlocked(Cluster &cluster, DiagKind kind, const char *what);
/// CTAs that the multiprocessors have room for at a time.
uint64_t residentBlocks(const Run &run);
/// Grid.cpp: runs all clusters of the launch, so many at a time.
void runGrid(Run &run, uint64_t resident);

/// ReadsInFlight.cpp: `inst`, a load, reads shared memory in these lanes.
void beginRead(Exec &exec, const Inst &inst, uint32_t lanes);
/// What `inst` means for reads in flight: arithmetic hands them on to its results, all else waits
/// for its sources.
void followReads(Exec &exec, const Inst &inst);

/// Lane exit and reconvergence (Control.cpp).
void exitLanes(Exec &exec, uint32_t lanes);
bool arriveReconvergence(Warp &warp, std::list<Split>::iterator split);

} // namespace tessera::sim::detail

#endif // TESSERA_SIMULATOR_MACHINE_H
