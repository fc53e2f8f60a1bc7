//===- ReleaseAcquire.cpp - Release and acquire through memory ------------===//
#include "lib/Simulator/ReleaseAcquire.h"
#include "llvm/Support/FormatVariadic.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;

//===----------------------------------------------------------------------===//
// Synchronisation
//===----------------------------------------------------------------------===//

static uint64_t sharedKey(const Place &place) {
  return uint64_t(place.cta->rank) << 32 | place.offset;
}
static uint64_t globalKey(const Place &place) { return place.buffer->base + place.bufferOffset(); }

void tessera::sim::detail::orderRead(Exec &exec, const Place &place, const Ordering &ordering) {
  if (!ordering.strong())
    return;
  Cluster &cluster = *exec.cluster;
  Clock &clock = exec.warp->clock;
  if (place.cta) {
    auto it = cluster.strongClocks.find(sharedKey(place));
    if (it != cluster.strongClocks.end())
      clock.join(it->second);
    return;
  }
  if (!place.buffer)
    return;
  std::lock_guard<std::mutex> lock(exec.run->syncMutex);
  auto it = exec.run->syncWords.find(globalKey(place));
  if (it == exec.run->syncWords.end())
    return;
  const SyncWord &word = it->second;
  for (MemScope scope : {MemScope::Cluster, MemScope::Device}) {
    const SharedViews &views = word.published[unsigned(scope)];
    // What was released to another cluster only is nothing to this one.
    if (!views || (scope == MemScope::Cluster && !views->count(uint32_t(cluster.number))))
      continue;
    if (!ordering.acquire)
      clock.find(scope, views);
    else if (ordering.scope >= scope)
      clock.learn(cluster.number, views);
    else
      clock.learnOwn(cluster.number, views);
  }
}

void tessera::sim::detail::orderWrite(Exec &exec, const Place &place, const Ordering &ordering,
                                      bool readsToo) {
  if (!ordering.strong())
    return;
  Cluster &cluster = *exec.cluster;
  Warp &w = *exec.warp;
  if (place.cta) {
    cluster.strongClocks[sharedKey(place)].join(w.clock);
    w.release();
    return;
  }
  if (!place.buffer)
    return;
  {
    std::lock_guard<std::mutex> lock(exec.run->syncMutex);
    SyncWord &word = exec.run->syncWords[globalKey(place)];
    // A plain write ends the release sequences of others (PTX ISA 8.8: observation order goes
    // through read-modify-writes).
    bool mine = word.cluster == cluster.number && word.agent == w.agent;
    if (!readsToo && !mine)
      word = SyncWord();
    word.cluster = cluster.number;
    word.agent = w.agent;
    for (unsigned k = 0; k <= unsigned(ordering.scope); ++k)
      word.published[k] =
          joinViews(word.published[k], ordering.release
                                           ? w.clock.publishAll(cluster.number)
                                           : w.clock.publishReleased(cluster.number, MemScope(k)));
  }
  if (ordering.release)
    w.release();
}

//===----------------------------------------------------------------------===//
// Accesses to global memory
//===----------------------------------------------------------------------===//

static std::string describeActor(const Cluster &cluster, const GlobalAccess &a) {
  const Run &run = *cluster.run;
  Dim3 cta = ctaOf(run, a.cluster, a.warp / run.warpsPerCta);
  std::string role = roleOfWarp(run, a.warp % run.warpsPerCta);
  return llvm::formatv("lane {0} of warp {1}{2} of CTA ({3},{4},{5})", a.lane,
                       a.warp % run.warpsPerCta, role.empty() ? "" : " (" + role + ")", cta.x,
                       cta.y, cta.z)
      .str();
}

static std::string describeAccess(const GlobalAccess &a, bool wrote) {
  std::string text = a.async ? "asynchronous " : a.strength ? "atomic or relaxed " : "";
  return text + (wrote ? "write" : "read");
}

/// Which half of the synchronisation is missing, as far as can be told.
static std::string describeGap(const Cluster &cluster, const GlobalAccess &earlier) {
  if (earlier.async)
    return "bulk copies are complete for a thread that has waited for them: wait_group (without "
           ".read) or the mbarrier";
  if (earlier.cluster == cluster.number) {
    const Warp *w = cluster.agentWarps[earlier.agent];
    if (w && w->epoch == earlier.epoch)
      return "the warp of the other has passed no barrier, fence or release since";
  }
  return "a release after the other (st.release, or fence.acq_rel and then a relaxed write) and an "
         "acquire of it before this one (ld.acquire, or a relaxed read and then fence.acq_rel) "
         "would order them, with a scope that includes both";
}

static void reportGlobal(Cluster &cluster, const GlobalMemory::Buffer &buffer,
                         const GlobalConflict &c, const GlobalAccess &a, bool isWrite,
                         const Warp *warp, const Inst *inst) {
  std::string where = llvm::formatv("'{0}'+{1}", buffer.name, c.offset).str();
  std::string other =
                  describeAccess(c.other, c.otherWrote) + " by " + describeActor(cluster, c.other),
              place = "the other " + std::string(c.otherWrote ? "write" : "read") + " is at " +
                      describeSite(*cluster.run, c.other.site);
  if (c.kind == GlobalConflict::Unfenced) {
    addDiagnostic(cluster, DiagKind::MissingProxyFence, warp, inst, a.lane,
                  describeAccess(a, isWrite) + " of " + where + " in global memory after " +
                      (c.other.async ? "an " : "a generic ") + other +
                      " without fence.proxy.async in between",
                  {place});
    return;
  }
  DiagKind kind = !isWrite && c.other.async ? DiagKind::StaleData : DiagKind::Race;
  addDiagnostic(cluster, kind, warp, inst, a.lane,
                describeAccess(a, isWrite) + " of " + where + " in global memory and " + other +
                    " are not ordered",
                {place, describeGap(cluster, c.other)});
}

static uint32_t warpOfCluster(const Run &run, const Warp &w) {
  return w.cta->rank * run.warpsPerCta + w.index;
}

/// Reports what is wrong with an access; false when something is.
static bool check(Cluster &cluster, const GlobalMemory::Buffer &buffer, uint64_t offset,
                  uint32_t bytes, AccessKind kind, const GlobalAccess &a, const Clock &order,
                  bool unchanged, const Warp *warp, const Inst *inst) {
  GlobalShadow &shadow = cluster.run->globalShadow;
  GlobalConflict c;
  // An update is one access: what does not race with its write does not race with its read.
  if (kind == AccessKind::Read)
    c = shadow.read(buffer, offset, bytes, a, order);
  else
    c = shadow.write(buffer, offset, bytes, a, order, unchanged);
  if (c.kind == GlobalConflict::None)
    return true;
  reportGlobal(cluster, buffer, c, a, kind != AccessKind::Read, warp, inst);
  return false;
}

void tessera::sim::detail::noteGlobal(Exec &exec, const Inst &inst, const Place &place,
                                      uint32_t bytes, unsigned lane, AccessKind kind,
                                      const Ordering &ordering, bool unchanged) {
  const Warp &w = *exec.warp;
  exec.cluster->touchGlobal();
  if (!exec.run->options->checkRaces)
    return;
  GlobalAccess a;
  a.cluster = uint32_t(exec.cluster->number);
  a.epoch = w.epoch;
  a.site = &inst - exec.p->insts.data();
  a.agent = w.agent;
  a.warp = warpOfCluster(*exec.run, w);
  a.lane = lane;
  a.strength = uint8_t(ordering.strength());
  check(*exec.cluster, *place.buffer, place.bufferOffset(), bytes, kind, a, w.clock, unchanged, &w,
        &inst);
}

bool tessera::sim::detail::noteGlobal(Cluster &cluster, const AsyncOp &op,
                                      const GlobalMemory::Buffer &buffer, uint64_t offset,
                                      uint32_t bytes, AccessKind kind, uint32_t agent,
                                      uint32_t epoch) {
  if (buffer.readOnly)
    return true;
  const Run &run = *cluster.run;
  cluster.touchGlobal();
  if (!run.options->checkRaces)
    return true;
  GlobalAccess a;
  a.cluster = uint32_t(cluster.number);
  a.epoch = epoch;
  a.site = op.inst - run.program->insts.data();
  a.agent = agent;
  a.warp = warpOfCluster(run, *op.warp);
  a.lane = op.lane;
  a.async = op.kind != AsyncOp::CpAsync;
  // Each reduction of a bulk copy is a relaxed operation of .gpu scope (PTX ISA 9.7.9.25.4).
  bool isAnyOrder = op.reduceOp >= 0 && !run.options->orderedSums;
  a.strength = uint8_t(isAnyOrder ? Strength::Device : Strength::Weak);
  return check(cluster, buffer, offset, bytes, kind, a, op.order, false, op.warp, op.inst);
}
