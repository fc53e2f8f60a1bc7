//===- ExecBarrier.cpp - bar, barrier, setmaxnreg, griddepcontrol ---------===//
//
// PTX ISA 9.7.13.1 to 9.7.13.3 (barrier), 9.7.13.4 (barrier.cluster), 9.7.19.5 (setmaxnreg).
//
//===----------------------------------------------------------------------===//
#include "lib/Simulator/Lanes.h"
#include "lib/Simulator/Sync.h"
#include "llvm/Support/FormatVariadic.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;
using llvm::StringRef;

namespace {

uint32_t threadsOfLiveWarps(const Cta &cta) { return cta.liveWarps * kLanes; }

void completeBarrier(Cluster &cluster, NamedBarrier &b) {
  ++b.generation;
  b.done.join(b.arriving);
  b.arriving.clear();
  b.arrived = 0;
  b.expected = 0;
  b.members.clear();
  b.previous = std::move(b.arrivals);
  b.arrivals.clear();
  cluster.event();
}

/// Who comes to a barrier must be ordered after all who came the time before: otherwise it could
/// have come among them and been counted in the place of one.
void checkSharing(Exec &exec, const Inst &inst, const NamedBarrier &b, uint32_t id) {
  for (const Arrival &other : b.previous) {
    if (exec.warp->clock.seen(other.agent) >= other.epoch)
      continue;
    exec.report(
        DiagKind::NamedBarrierShared, inst,
        describeWarp(*exec.warp) + " arrives at " + describeBarrier(*exec.run, id) + ", which " +
            describeAgent(*exec.cluster, other.agent) +
            " used the time before; nothing orders the two, so that each may be counted for "
            "the other's group",
        -1, {"the other arrival is at " + describeSite(*exec.run, other.site)});
    return;
  }
}

enum BarKind : uint32_t { BarSync, BarArrive, BarRedPopc, BarRedAnd, BarRedOr };
// select: kind; aux: bit 0 a count is given.

/// What the operands of an instruction name.
struct BarOperands {
  uint32_t id, count; ///< ~0: all threads
};

/// Nothing after a report that there is no such barrier.
std::optional<BarOperands> readBar(Exec &exec, const Inst &inst) {
  unsigned first = inst.select >= BarRedPopc ? 1 : 0; // position of the barrier id
  unsigned firstLane = llvm::countr_zero(exec.active);
  const uint32_t *idLanes = exec.src<uint32_t>(inst, first);
  bool hasCount = inst.aux & 1;
  BarOperands named = {idLanes[firstLane],
                       hasCount ? exec.src<uint32_t>(inst, first + 1)[firstLane] : ~0u};
  for (unsigned lane = 0; lane < kLanes; ++lane)
    if (exec.isActive(lane) && idLanes[lane] != named.id) {
      exec.report(DiagKind::InvalidOperation, inst, "the lanes of the warp name different barriers",
                  lane);
      break;
    }
  if (named.id > 15) {
    exec.report(DiagKind::InvalidOperation, inst,
                llvm::formatv("there is no barrier {0}", named.id).str());
    return std::nullopt;
  }
  if (hasCount && (named.count == 0 || named.count % kLanes != 0)) {
    exec.report(DiagKind::NamedBarrierCount, inst,
                llvm::formatv("the count of {0} is {1}, not a multiple of 32",
                              describeBarrier(*exec.run, named.id), named.count)
                    .str());
    return std::nullopt;
  }
  return named;
}

/// Holds an arrival at a barrier at which others have arrived against theirs.
void checkArrival(Exec &exec, const Inst &inst, const NamedBarrier &b, const BarOperands &named) {
  if (b.expected != named.count) {
    auto text = [&](uint32_t n) {
      return n == ~0u ? std::string("all threads") : std::to_string(n);
    };
    exec.report(DiagKind::NamedBarrierCount, inst,
                describeBarrier(*exec.run, named.id) + " is used with count " + text(named.count) +
                    " while others wait for " + text(b.expected),
                -1, {"the first arrival is at " + describeSite(*exec.run, b.firstSite)});
  }
  if (llvm::is_contained(b.members, exec.warp->index) && (inst.flags & FlagAligned))
    exec.report(
        DiagKind::NamedBarrierCount, inst,
        describeWarp(*exec.warp) + " arrives twice at " + describeBarrier(*exec.run, named.id) +
            " before it completes",
        -1,
        {llvm::formatv("{0} of {1} threads have arrived; the first arrival is at {2}", b.arrived,
                       b.expected == ~0u ? threadsOfLiveWarps(*exec.cta) : b.expected,
                       describeSite(*exec.run, b.firstSite))
             .str()});
}

/// Adds the predicates of the warp to the barrier's result.
void reduce(Exec &exec, const Inst &inst, NamedBarrier &b) {
  uint32_t p = exec.pred(inst, inst.opCount - 1) & exec.active;
  if (inst.select == BarRedPopc)
    b.reduction += llvm::popcount(p);
  else if (inst.select == BarRedAnd)
    b.reduction &= p == exec.active;
  else
    b.reduction |= p != 0;
}

Step bar(Exec &exec, const Inst &inst) {
  std::optional<BarOperands> named = readBar(exec, inst);
  if (!named)
    return Step::Next;
  NamedBarrier &b = exec.cta->barriers[named->id];
  uint32_t site = &inst - exec.p->insts.data();
  if (b.arrived == 0) {
    b.expected = named->count;
    b.firstSite = site;
    b.reduction = inst.select == BarRedAnd ? 1 : 0;
  }
  checkArrival(exec, inst, b, *named);
  checkSharing(exec, inst, b, named->id);
  b.arrivals.push_back({exec.warp->agent, exec.warp->epoch, site});
  b.members.push_back(exec.warp->index);
  b.arrived += inst.flags & FlagAligned ? kLanes : llvm::popcount(exec.active);
  b.arriving.join(exec.warp->clock);
  exec.warp->release();
  if (inst.select >= BarRedPopc)
    reduce(exec, inst, b);
  uint64_t generation = b.generation;
  checkNamedBarriers(*exec.cta);
  if (b.expected != ~0u && b.arrived > b.expected)
    exec.report(DiagKind::NamedBarrierCount, inst,
                llvm::formatv("{0} threads arrive at {1}, which expects {2}", b.arrived,
                              describeBarrier(*exec.run, named->id), b.expected)
                    .str());
  exec.cluster->event();
  if (inst.select == BarArrive)
    return Step::Next;
  exec.split->wait.kind = Wait::NamedBarrier;
  exec.split->wait.id = named->id;
  exec.split->wait.value = generation;
  return Step::Block;
}

Step clusterArrive(Exec &exec, const Inst &inst) {
  Warp &w = *exec.warp;
  Cluster &c = *exec.cluster;
  if (w.clusterArrived)
    exec.report(DiagKind::InvalidOperation, inst,
                "barrier.cluster.arrive twice without barrier.cluster.wait in between");
  w.clusterArrived = true;
  w.clusterGeneration = c.clusterGeneration;
  if (inst.select) { // release
    c.clusterArriving.join(w.clock);
    w.release();
  }
  ++c.clusterArrivals;
  c.event();
  checkClusterBarrier(c);
  return Step::Next;
}

Step clusterWait(Exec &exec, const Inst &inst) {
  if (!exec.warp->clusterArrived)
    exec.report(DiagKind::InvalidOperation, inst,
                "barrier.cluster.wait without barrier.cluster.arrive before it");
  exec.split->wait.kind = Wait::ClusterBarrier;
  exec.split->wait.value = inst.select;
  return Step::Block;
}

/// setmaxnreg: registers move between the warps and the CTA's pool.
Step setMaxNReg(Exec &exec, const Inst &inst) {
  Warp &w = *exec.warp;
  uint32_t want = uint32_t(inst.imm);
  bool increase = inst.select;
  if (increase ? want < w.registers : want > w.registers) {
    exec.report(DiagKind::RegisterPool, inst,
                llvm::formatv("setmaxnreg.{0} to {1} registers per thread by a warp that has {2}",
                              increase ? "inc" : "dec", want, w.registers)
                    .str());
    return Step::Next;
  }
  if (!increase) {
    exec.cta->registerPool += int64_t(w.registers - want) * kLanes;
    w.registers = want;
    exec.cluster->event();
    return Step::Next;
  }
  exec.split->wait.kind = Wait::Registers;
  exec.split->wait.value = want;
  return Step::Block;
}

bool decodeBar(Decoder &d, StringRef opcode) {
  const auto &o = d.s->operands;
  d.take("cta");
  bool aligned = d.take("aligned") || opcode == "bar";
  if (aligned)
    d.inst.flags |= FlagAligned;
  d.inst.flags |= FlagCounted;
  d.inst.fn = &bar;
  if (d.take("red")) {
    bool popc = d.take("popc"), all = d.take("and"), any = d.take("or");
    d.takeType();
    d.inst.select = popc ? BarRedPopc : all ? BarRedAnd : BarRedOr;
    if (popc + all + any != 1 || !d.count(3, 4))
      return d.refuse("in this form is not modelled");
    d.inst.aux = o.size() == 4;
    if (!(popc ? d.dst(o[0], Ty::U32) : d.dstPred(o[0])) || !d.src(o[1], Ty::U32))
      return false;
    if (o.size() == 4 && !d.src(o[2], Ty::U32))
      return false;
    return d.srcPred(o.back());
  }
  bool sync = d.take("sync"), arrive = d.take("arrive");
  if (sync == arrive || !d.count(arrive ? 2 : 1, 2))
    return d.refuse("in this form is not modelled");
  d.inst.select = sync ? BarSync : BarArrive;
  d.inst.aux = o.size() == 2;
  return d.src(o[0], Ty::U32) && (o.size() == 1 || d.src(o[1], Ty::U32));
}

} // namespace

void tessera::sim::detail::checkNamedBarriers(Cta &cta) {
  for (NamedBarrier &b : cta.barriers) {
    if (b.arrived == 0)
      continue;
    uint32_t expected = b.expected == ~0u ? threadsOfLiveWarps(cta) : b.expected;
    if (b.expected == ~0u ? b.arrived >= expected : b.arrived == expected)
      completeBarrier(*cta.cluster, b);
  }
}

void tessera::sim::detail::checkClusterBarrier(Cluster &c) {
  if (c.clusterArrivals == 0)
    return;
  for (const auto &cta : c.ctas)
    for (const auto &w : cta->warps)
      if (!w->done() && !(w->clusterArrived && w->clusterGeneration == c.clusterGeneration))
        return;
  ++c.clusterGeneration;
  c.clusterArrivals = 0;
  c.clusterDone.join(c.clusterArriving);
  c.clusterArriving.clear();
  c.event();
}

bool tessera::sim::detail::decodeBarrier(Decoder &d, StringRef opcode) {
  const auto &o = d.s->operands;
  if (opcode == "barrier" && d.take("cluster")) {
    bool arrive = d.take("arrive"), wait = d.take("wait");
    bool relaxed = d.take("relaxed");
    d.take("release");
    d.take("acquire");
    // Without .aligned the lanes of a warp may come one by one; here they come together.
    d.take("aligned");
    d.inst.flags |= FlagAligned | FlagCounted;
    d.inst.select = !relaxed;
    d.inst.fn = arrive ? &clusterArrive : &clusterWait;
    return (arrive != wait || d.refuse("in this form is not modelled")) && d.count(0);
  }
  if (opcode == "barrier" || (opcode == "bar" && !d.has("warp")))
    return decodeBar(d, opcode);
  if (opcode == "setmaxnreg") {
    bool inc = d.take("inc"), dec = d.take("dec");
    d.take("sync");
    d.take("aligned");
    d.inst.flags |= FlagAligned | FlagCounted;
    d.inst.select = inc;
    d.inst.fn = &setMaxNReg;
    int64_t n;
    if (inc == dec || d.takeType() != Ty::U32 || !d.count(1) || !d.immediate(o[0], n))
      return d.refuse("in this form is not modelled");
    if (n < 24 || n > 256 || n % 8)
      return d.refuse("the register count must be a multiple of 8 from 24 to 256");
    d.inst.imm = n;
    if (inc)
      d.p.largestIncrease = std::max(d.p.largestIncrease, uint32_t(n));
    return true;
  }
  if (opcode == "griddepcontrol") {
    // The grids that this one depends on have finished: the simulator runs one launch.
    bool known = d.take("wait") || d.take("launch_dependents");
    d.inst.fn = &nothing;
    return (known || d.refuse("in this form is not modelled")) && d.count(0);
  }
  return false;
}
