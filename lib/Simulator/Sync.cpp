//===- Sync.cpp - Ends of waits, and what a blocked warp waits for --------===//
#include "lib/Simulator/Sync.h"
#include "lib/Simulator/Async.h"
#include "llvm/Support/FormatVariadic.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;

static void writePredicate(Cluster &cluster, Warp &w, const Inst &i, uint32_t active,
                           uint32_t value) {
  const Op &o = cluster.run->program->ops[i.opBegin];
  if (o.sink)
    return;
  uint32_t &p = w.regs[o.offset];
  p = (p & ~active) | (value & active);
  if (o.reg >= 0)
    w.meta[o.reg].init |= active;
}

static bool wakeMbarrier(Cluster &cluster, Warp &w, Split &s, const Inst &i) {
  uint32_t active = uint32_t(s.wait.value);
  if (s.wait.kind == Wait::MbarrierTry) {
    Mbarrier *b = s.wait.mbar.cta->mbarrier(s.wait.mbar.offset);
    if (b && !mbarrierPassed(*b, s.wait.mbar.state, s.wait.mbar.byState))
      return false;
    if (b)
      observeMbarrier(*cluster.run, w, *b, i);
    writePredicate(cluster, w, i, active, active);
    return true;
  }
  uint32_t passed = 0;
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!(active >> l & 1) || !(*s.wait.lanes)[l].cta)
      continue;
    const MbarrierWait &m = (*s.wait.lanes)[l];
    Mbarrier *b = m.cta->mbarrier(m.offset);
    if (b && !mbarrierPassed(*b, m.state, m.byState))
      continue;
    passed |= 1u << l;
    if (b)
      observeMbarrier(*cluster.run, w, *b, i);
  }
  if (!passed)
    return false;
  writePredicate(cluster, w, i, active, passed);
  s.wait.lanes.reset();
  return true;
}

/// Lets a split go on whose named barrier is complete: with what the warps before it did, and with
/// the result of a barrier.red.
static bool wakeNamedBarrier(Cluster &cluster, Warp &w, Split &s, const Inst &i) {
  NamedBarrier &b = w.cta->barriers[s.wait.id];
  if (b.generation == s.wait.value)
    return false;
  w.clock.join(b.done);
  if (!i.dstCount)
    return true;
  const Op &o = cluster.run->program->ops[i.opBegin];
  if (o.cls == RegClass::Pred)
    w.regs[o.offset] = b.reduction ? ~0u : 0;
  else
    std::fill_n(&w.regs[o.offset], kLanes, b.reduction);
  if (o.reg >= 0)
    w.meta[o.reg].init = kAllLanes;
  return true;
}

/// Takes the registers that a setmaxnreg.inc waits for, once the pool of the CTA has them.
static bool wakeRegisters(Warp &w, uint64_t wanted) {
  int64_t need = int64_t(wanted - w.registers) * kLanes;
  if (w.cta->registerPool < need)
    return false;
  w.cta->registerPool -= need;
  w.registers = uint32_t(wanted);
  return true;
}

bool tessera::sim::detail::tryWake(Cluster &cluster, Warp &w, Split &s) {
  const Inst &i = cluster.run->program->insts[s.pc];
  switch (s.wait.kind) {
  case Wait::None:
    return true;
  case Wait::MbarrierTry:
  case Wait::Mbarriers:
    if (!wakeMbarrier(cluster, w, s, i))
      return false;
    break;
  case Wait::NamedBarrier:
    if (!wakeNamedBarrier(cluster, w, s, i))
      return false;
    break;
  case Wait::ClusterBarrier:
    if (w.clusterArrived && w.clusterGeneration == cluster.clusterGeneration)
      return false;
    w.clusterArrived = false;
    if (s.wait.value)
      w.clock.join(cluster.clusterDone);
    break;
  case Wait::Wgmma:
    if (w.cta->groups[w.index / 4].completed < s.wait.value)
      return false;
    finishWgmmaWait(cluster, w, s.wait.value);
    break;
  case Wait::WgmmaValue:
    if (w.cta->groups[w.index / 4].completed < s.wait.value)
      return false;
    s.wait.kind = Wait::None; // the instruction is executed now
    return true;
  case Wait::Bulk: {
    AsyncGroups &g = w.bulk[s.wait.id >> 1];
    bool read = s.wait.id & 1;
    if ((read ? g.readDone : g.writeDone) < s.wait.value)
      return false;
    s.wait.kind = Wait::None; // executed again: other lanes may have groups of their own
    return true;
  }
  case Wait::CpAsync:
    if (w.cpAsync.writeDone < s.wait.value)
      return false;
    w.clock.see(w.cpAsync.agent, uint32_t(s.wait.value));
    break;
  case Wait::Registers:
    if (!wakeRegisters(w, s.wait.value))
      return false;
    break;
  }
  s.wait.kind = Wait::None;
  ++s.pc;
  return true;
}

static std::string describeMbarrier(Cluster &cluster, const MbarrierWait &m, const Cta &from) {
  std::string name = describeShared(*cluster.run, m.offset);
  if (m.cta != &from)
    name += llvm::formatv(" of CTA {0} of the cluster", m.cta->rank).str();
  const Mbarrier *b = m.cta->mbarrier(m.offset);
  if (!b)
    return "mbarrier " + name + ", which is no longer valid";
  std::string wanted = m.byState ? llvm::formatv("phase {0}", m.state).str()
                                 : llvm::formatv("the phase with parity {0}", m.state).str();
  return llvm::formatv("mbarrier {0}: wants {1} to complete, the barrier is in phase {2} (parity "
                       "{3}); {4} of {5} "
                       "arrivals and {6} bytes are missing",
                       name, wanted, b->phase, b->phase & 1, b->pending, b->expected, b->tx)
      .str();
}

std::string tessera::sim::detail::describeWait(Cluster &cluster, const Warp &w, const Split &s,
                                               DiagKind &kind, std::vector<std::string> &notes) {
  switch (s.wait.kind) {
  case Wait::None:
    return "is polling";
  case Wait::MbarrierTry:
    return "waits for " + describeMbarrier(cluster, s.wait.mbar, *w.cta);
  case Wait::Mbarriers: {
    std::string text = "waits for";
    for (unsigned l = 0; l < kLanes; ++l)
      if ((s.wait.value >> l & 1) && (*s.wait.lanes)[l].cta)
        text += llvm::formatv(" (lane {0}) {1}", l,
                              describeMbarrier(cluster, (*s.wait.lanes)[l], *w.cta))
                    .str();
    return text;
  }
  case Wait::NamedBarrier: {
    const NamedBarrier &b = w.cta->barriers[s.wait.id];
    std::string members;
    for (uint32_t m : b.members)
      members += (members.empty() ? "" : ", ") + std::to_string(m);
    return llvm::formatv("waits at {0}: {1} of {2} threads have arrived (warps {3})",
                         describeBarrier(*cluster.run, s.wait.id), b.arrived,
                         b.expected == ~0u ? w.cta->liveWarps * kLanes : b.expected, members)
        .str();
  }
  case Wait::ClusterBarrier: {
    std::string missing;
    for (auto &cta : cluster.ctas)
      for (auto &o : cta->warps)
        if (!o->done() && !o->clusterArrived)
          missing +=
              llvm::formatv("{0}CTA {1} warp {2}", missing.empty() ? "" : ", ", cta->rank, o->index)
                  .str();
    return "waits at the cluster barrier, where these have not arrived: " + missing;
  }
  case Wait::Wgmma:
  case Wait::WgmmaValue: {
    const Warpgroup &g = w.cta->groups[w.index / 4];
    std::string missing;
    if (!g.ops.empty())
      for (unsigned k = 0; k < 4; ++k)
        if (!(g.ops.front().issued >> k & 1))
          missing +=
              llvm::formatv("{0}{1}", missing.empty() ? "" : ", ", w.index / 4 * 4 + k).str();
    return "waits for a wgmma that these warps of the warpgroup have not executed: " + missing;
  }
  case Wait::Bulk:
    return "waits for its bulk copies";
  case Wait::CpAsync:
    return "waits for its cp.async copies";
  case Wait::Registers:
    kind = DiagKind::RegisterPool;
    return llvm::formatv("waits for registers: setmaxnreg.inc from {0} to {1} per thread needs "
                         "{2}, the CTA's pool has {3}",
                         w.registers, s.wait.value, int64_t(s.wait.value - w.registers) * kLanes,
                         w.cta->registerPool)
        .str();
  }
  return "";
}
