//===- Mbarrier.cpp - mbarrier objects (PTX ISA 9.7.13.15) ----------------===//
#include "lib/Simulator/Lanes.h"
#include "lib/Simulator/Memory.h"
#include "lib/Simulator/Sync.h"
#include "llvm/Support/FormatVariadic.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// The object
//===----------------------------------------------------------------------===//

/// A waiter whose phase is over, but who has not looked yet, misses it when the next phase ends
/// too: its parity then reads "not yet" again. Says whether there is one.
static bool checkAliasing(Cluster &cluster, Cta &cta, const Mbarrier &b) {
  bool found = false;
  for (auto &other : cluster.ctas)
    for (auto &w : other->warps)
      for (Split &s : w->splits) {
        if (s.wait.kind != Wait::MbarrierTry || s.wait.mbar.cta != &cta ||
            s.wait.mbar.offset != b.offset || s.wait.mbar.byState || s.wait.aliased)
          continue;
        bool before = ((b.phase - 1) & 1) != s.wait.mbar.state,
             now = (b.phase & 1) != s.wait.mbar.state;
        if (!before || now)
          continue;
        s.wait.aliased = found = true;
        addDiagnostic(
            cluster, DiagKind::ParityAliasing, w.get(), &cluster.run->program->insts[s.pc], -1,
            llvm::formatv(
                "{0} completed phase {1} before the waiter for parity {2} saw phase {3} complete",
                describeShared(*cluster.run, b.offset), b.phase - 1, s.wait.mbar.state, b.phase - 2)
                .str());
      }
  return found;
}

/// Whether the current phase cannot end before this wait was over. Warps that have waited for a
/// wgmma know that all warps of the warpgroup have come to it, whoever of them arrives then.
static bool isBeforeEnd(const PhaseWait &wait, const ClusterView::Epochs &causes) {
  auto at = [&](uint32_t agent) { return agent < causes.size() ? causes[agent] : 0; };
  return at(wait.agent) >= wait.epoch || at(wait.group) >= wait.wgmma;
}

/// Each phase that ends is the next one for those who wait for the phase before: they must have
/// seen that one, in this run and in every other.
static void checkWaits(Cluster &cluster, Cta &cta, const Mbarrier &b, const Inst *inst) {
  const Run &run = *cluster.run;
  bool isMissed = checkAliasing(cluster, cta, b);
  int64_t ended = b.phase - 1;
  for (const PhaseWait &wait : b.waits) {
    if (isBeforeEnd(wait, b.causes))
      continue;
    std::vector<std::string> notes;
    if (inst)
      notes.push_back("it completes at " + describeSite(run, inst - run.program->insts.data()));
    addDiagnostic(cluster, DiagKind::ParityAliasing, cluster.agentWarps[wait.agent],
                  &run.program->insts[wait.site], -1,
                  llvm::formatv("{0} may complete phase {1} before this wait sees phase {2} "
                                "complete: nothing orders the two",
                                describeShared(run, b.offset), ended, ended - 1)
                      .str(),
                  notes);
  }
  if (ended > 0 && b.waits.empty() && !isMissed)
    addDiagnostic(
        cluster, DiagKind::ParityAliasing, nullptr, inst, -1,
        llvm::formatv("{0} completes phase {1} though nobody has waited for phase {2}: an arrival "
                      "too many, or a wait too few",
                      describeShared(run, b.offset), ended, ended - 1)
            .str());
}

static void maybeComplete(Cluster &cluster, Cta &cta, Mbarrier &b, const Warp *warp,
                          const Inst *inst) {
  if (b.pending != 0)
    return;
  if (b.tx < 0) {
    addDiagnostic(cluster, DiagKind::TransactionUnderflow, warp, inst, -1,
                  llvm::formatv("{0}: {1} bytes more than expected arrived in phase {2}",
                                describeShared(*cluster.run, b.offset), -b.tx, b.phase)
                      .str());
    b.tx = 0; // so that the kernel goes on and shows what follows from it
  }
  if (b.tx != 0)
    return;
  ++b.phase;
  b.pending = b.expected;
  b.done.join(b.arriving);
  b.arriving.clear();
  cluster.event();
  checkWaits(cluster, cta, b, inst);
  b.waits.clear();
  b.causes.clear();
}

void tessera::sim::detail::mbarrierArrive(Cluster &cluster, Cta &cta, Mbarrier &b, uint32_t count,
                                          int64_t tx, bool drop, Warp *warp, const Inst *inst,
                                          int lane) {
  b.tx += tx;
  b.countsBytes |= tx != 0;
  if (count > b.pending) {
    addDiagnostic(
        cluster, DiagKind::OverArrival, warp, inst, lane,
        llvm::formatv(
            "{0} arrivals at {1}, whose phase {2} waits for {3} of {4} arrivals and {5} bytes",
            count, describeShared(*cluster.run, b.offset), b.phase, b.pending, b.expected, b.tx)
            .str());
    count = b.pending;
  }
  b.pending -= count;
  b.lastArrival = inst;
  if (drop)
    b.expected -= std::min(b.expected, count);
  if (warp) {
    b.arriving.join(warp->clock);
    warp->release();
  }
  cluster.event();
  maybeComplete(cluster, cta, b, warp, inst);
}

void tessera::sim::detail::mbarrierCompleteTx(Cluster &cluster, Cta &cta, Mbarrier &b,
                                              int64_t bytes, const Warp *warp, const Inst *inst) {
  b.tx -= bytes;
  cluster.event();
  maybeComplete(cluster, cta, b, warp, inst);
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

namespace {

enum MbarOp : uint32_t {
  Init,
  Inval,
  ExpectTx,
  CompleteTx,
  Arrive,
  ArriveExpectTx,
  ArriveDrop,
  ArriveDropExpectTx,
  TestWait,
  TryWait,
  PendingCount
};
// select: operation; aux: flags.
enum : uint32_t { FlParity = 1, FlRelaxed = 2, FlCluster = 4, FlGeneric = 8 };

} // namespace

void tessera::sim::detail::observeMbarrier(const Run &run, Warp &w, Mbarrier &b, const Inst &inst) {
  if (!(inst.aux & FlRelaxed)) {
    w.clock.join(b.done);
    w.clock.see(b.agent, uint32_t(b.phase));
  }
  // An epoch of its own: what the warp has done so far is not after the wait.
  w.release();
  auto known = llvm::find_if(b.waits, [&](const PhaseWait &o) { return o.agent == w.agent; });
  PhaseWait &wait = known == b.waits.end() ? b.waits.emplace_back() : *known;
  wait = {w.agent, w.epoch, uint32_t(&inst - run.program->insts.data()),
          w.cta->groups[w.index / 4].agent, w.wgmmaIssued + 1};
}

namespace {

bool place(Exec &exec, const Inst &inst, unsigned operand, unsigned lane, Place &out) {
  uint64_t address = addressAt(exec, inst, operand, lane);
  if (address % 8) {
    exec.report(DiagKind::Misaligned, inst,
                llvm::formatv("mbarrier address {0:x} is not a multiple of 8", address).str(),
                lane);
    return false;
  }
  if (inst.aux & FlGeneric) {
    if (!resolve(exec, inst, Space::Generic, address, 8, lane, AccessKind::Update, out))
      return false;
    if (!out.cta) {
      exec.report(DiagKind::OutOfBounds, inst,
                  llvm::formatv("mbarrier address {0:x} is not in shared memory", address).str(),
                  lane);
      return false;
    }
    return true;
  }
  return resolveShared(exec, inst, address, 8, lane, !(inst.aux & FlCluster), out);
}

Mbarrier *find(Exec &exec, const Inst &inst, const Place &p, unsigned lane) {
  Mbarrier *b = p.cta->mbarrier(p.offset);
  std::string name = describeShared(*exec.run, p.offset);
  if (!b) {
    exec.report(DiagKind::UninitialisedBarrier, inst, name + " is not an initialised mbarrier",
                lane);
    return nullptr;
  }
  if (exec.warp->clock.seen(b->initAgent) < b->initEpoch)
    exec.report(DiagKind::UninitialisedBarrier, inst,
                name + " is used without synchronisation with its initialisation", lane,
                {"it is initialised at " + describeSite(*exec.run, b->initSite)});
  return b;
}

void initialise(Exec &exec, const Inst &inst, unsigned lane, uint32_t count) {
  Place p;
  if (!place(exec, inst, 0, lane, p))
    return;
  if (count == 0 || count >= 1u << 20) {
    exec.report(DiagKind::BarrierMisuse, inst,
                llvm::formatv("mbarrier count {0} is not in 1..2^20-1", count).str(), lane);
    return;
  }
  Mbarrier &b = p.cta->mbarriers[p.offset];
  if (b.valid)
    exec.report(
        DiagKind::BarrierMisuse, inst,
        describeShared(*exec.run, p.offset) + " is initialised again without mbarrier.inval", lane);
  uint32_t agent = b.agent;
  bool known = b.initEpoch != 0;
  b = Mbarrier();
  b.valid = true;
  b.offset = p.offset;
  b.expected = b.pending = count;
  b.agent = known ? agent
                  : exec.cluster->newAgent("bulk copies of " + describeShared(*exec.run, p.offset));
  b.initAgent = exec.warp->agent;
  b.initEpoch = exec.warp->epoch;
  b.initSite = &inst - exec.p->insts.data();
  p.cta->shadow.markBarrier(p.offset, true);
}

uint64_t stateToken(const Mbarrier &b) { return b.phase << 24 | b.pending; }

Step update(Exec &exec, const Inst &inst) {
  MbarOp op = MbarOp(inst.select);
  bool hasState = inst.dstCount > 0;
  unsigned at = hasState ? 1 : 0; // position of the address
  uint64_t states[kLanes] = {};
  for (uint32_t lanes = exec.active; lanes; lanes &= lanes - 1) {
    unsigned lane = llvm::countr_zero(lanes);
    uint32_t value = inst.opCount > at + 1 ? exec.src<uint32_t>(inst, at + 1)[lane] : 1;
    if (op == Init) {
      initialise(exec, inst, lane, value);
      continue;
    }
    Place p;
    if (!place(exec, inst, at, lane, p))
      continue;
    if (p.cta->exited) {
      exec.report(DiagKind::PeerExited, inst, "mbarrier of a CTA that has exited", lane);
      continue;
    }
    Mbarrier *b = find(exec, inst, p, lane);
    if (!b)
      continue;
    states[lane] = stateToken(*b);
    b->causedBy(exec.warp->clock);
    Warp *releasing = inst.aux & FlRelaxed ? nullptr : exec.warp;
    switch (op) {
    case Inval:
      b->valid = false;
      p.cta->shadow.markBarrier(p.offset, false);
      break;
    case ExpectTx:
      b->tx += value;
      b->countsBytes |= value != 0;
      b->lastArrival = &inst;
      break;
    case CompleteTx:
      mbarrierCompleteTx(*exec.cluster, *p.cta, *b, value, exec.warp, &inst);
      break;
    case Arrive:
    case ArriveDrop:
      mbarrierArrive(*exec.cluster, *p.cta, *b, value, 0, op == ArriveDrop, releasing, &inst, lane);
      break;
    case ArriveExpectTx:
    case ArriveDropExpectTx:
      mbarrierArrive(*exec.cluster, *p.cta, *b, 1, value, op == ArriveDropExpectTx, releasing,
                     &inst, lane);
      break;
    default:
      break;
    }
  }
  if (hasState)
    exec.store(inst, 0, states);
  return Step::Next;
}

Step pendingCount(Exec &exec, const Inst &inst) {
  const uint64_t *state = exec.src<uint64_t>(inst, 1);
  uint32_t r[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    r[lane] = state[lane] & 0xffffff;
  exec.store(inst, 0, r);
  return Step::Next;
}

/// What the lanes of a warp wait for, and which of them need not.
struct WaitingLanes {
  std::array<MbarrierWait, kLanes> waits;
  uint32_t passed = 0;
  bool uniform = true; ///< all wait for the same
};

/// Looks at the barrier that a lane waits for.
void look(Exec &exec, const Inst &inst, unsigned lane, WaitingLanes &found) {
  MbarrierWait &w = found.waits[lane];
  if (!w.byState && w.state > 1)
    exec.report(DiagKind::BarrierMisuse, inst,
                llvm::formatv("phase parity {0} is not 0 or 1", w.state).str(), lane);
  w.state &= w.byState ? ~0ull : 1;
  Place p;
  Mbarrier *b = nullptr;
  if (place(exec, inst, 1, lane, p)) {
    w.cta = p.cta;
    w.offset = p.offset;
    b = find(exec, inst, p, lane);
  }
  // A barrier that does not exist has been reported; waiting for it would only hide what else is
  // wrong.
  bool passes = !b || mbarrierPassed(*b, w.state, w.byState);
  found.passed |= uint32_t(passes) << lane;
  if (b && passes)
    observeMbarrier(*exec.run, *exec.warp, *b, inst);
}

WaitingLanes lookAtAll(Exec &exec, const Inst &inst) {
  WaitingLanes found;
  unsigned first = llvm::countr_zero(exec.active);
  for (uint32_t lanes = exec.active; lanes; lanes &= lanes - 1) {
    unsigned lane = llvm::countr_zero(lanes);
    MbarrierWait &w = found.waits[lane];
    w.byState = !(inst.aux & FlParity);
    w.state =
        w.byState ? exec.src<uint64_t>(inst, 2)[lane] >> 24 : exec.src<uint32_t>(inst, 2)[lane];
    // Lanes nearly always wait together for the same barrier.
    if (lane != first && addressAt(exec, inst, 1, lane) == addressAt(exec, inst, 1, first) &&
        w.state == found.waits[first].state) {
      w = found.waits[first];
      found.passed |= (found.passed >> first & 1) << lane;
      continue;
    }
    found.uniform &= lane == first;
    look(exec, inst, lane, found);
  }
  return found;
}

/// test_wait and try_wait. A failed try_wait suspends the lanes until the phase they wait for is
/// over; now and then, as the ISA allows, it gives up at once.
Step wait(Exec &exec, const Inst &inst) {
  WaitingLanes found = lookAtAll(exec, inst);
  if (found.passed || inst.select == TestWait || exec.cluster->rng.below(16) == 0) {
    exec.storePred(inst, 0, found.passed);
    if (!found.passed) {
      ++exec.cluster->failedPolls;
      ++exec.split->pc;
      exec.split->polling = true;
      return Step::Stop;
    }
    return Step::Next;
  }
  Wait &w = exec.split->wait;
  w.value = exec.active;
  w.aliased = false;
  if (found.uniform) {
    w.kind = Wait::MbarrierTry;
    w.mbar = found.waits[llvm::countr_zero(exec.active)];
  } else {
    w.kind = Wait::Mbarriers;
    w.lanes = std::make_unique<std::array<MbarrierWait, kLanes>>(found.waits);
  }
  return Step::Block;
}

bool takeSpaceAndOrder(Decoder &d, bool isWait) {
  if (d.take("relaxed"))
    d.inst.aux |= FlRelaxed;
  d.take(isWait ? "acquire" : "release");
  d.take("cta");
  d.take("cluster");
  if (d.take("shared::cluster"))
    d.inst.aux |= FlCluster;
  else if (!d.take("shared::cta") && !d.take("shared"))
    d.inst.aux |= FlGeneric;
  return d.take("b64") || d.refuse("needs .b64");
}
Space addressSpace(const Decoder &d) {
  return d.inst.aux & FlGeneric ? Space::Generic : Space::Shared;
}

bool decodeWait(Decoder &d, bool isTry) {
  const auto &o = d.s->operands;
  if (d.take("parity"))
    d.inst.aux |= FlParity;
  d.inst.select = isTry ? TryWait : TestWait;
  if (!takeSpaceAndOrder(d, true) || !d.count(3, isTry ? 4 : 3))
    return false;
  d.inst.fn = &wait;
  // The time limit of try_wait is no promise: it is not modelled, and the operand only has to
  // exist.
  return d.dstPred(o[0]) && d.address(o[1], addressSpace(d)) &&
         d.src(o[2], d.inst.aux & FlParity ? Ty::B32 : Ty::B64) &&
         (o.size() == 3 || d.src(o[3], Ty::U32));
}

} // namespace

bool tessera::sim::detail::decodeMbarrier(Decoder &d, StringRef opcode) {
  if (opcode != "mbarrier")
    return false;
  const auto &o = d.s->operands;
  d.inst.flags |= FlagCounted;
  d.inst.fn = &update;
  if (d.take("test_wait"))
    return decodeWait(d, false);
  if (d.take("try_wait"))
    return decodeWait(d, true);
  if (d.take("pending_count")) {
    d.inst.fn = &pendingCount;
    return d.take("b64") && d.count(2) && d.dst(o[0], Ty::U32) && d.src(o[1], Ty::B64);
  }
  bool arrive = false;
  if (d.take("init"))
    d.inst.select = Init;
  else if (d.take("inval"))
    d.inst.select = Inval;
  else if (d.take("arrive")) {
    arrive = true;
    d.inst.select = d.take("expect_tx") ? ArriveExpectTx : Arrive;
  } else if (d.take("arrive_drop")) {
    arrive = true;
    d.inst.select = d.take("expect_tx") ? ArriveDropExpectTx : ArriveDrop;
  } else if (d.take("expect_tx"))
    d.inst.select = ExpectTx;
  else if (d.take("complete_tx"))
    d.inst.select = CompleteTx;
  else
    return d.refuse("in this form is not modelled");
  if (arrive)
    d.take("noComplete");
  if (!takeSpaceAndOrder(d, false))
    return false;
  if (!arrive) {
    unsigned n = d.inst.select == Inval ? 1 : 2;
    return d.count(n) && d.address(o[0], addressSpace(d)) && (n == 1 || d.src(o[1], Ty::U32));
  }
  // The state is a register, the sink, or absent.
  unsigned at = 0;
  if (!o.empty() && o[0].kind != Operand::Address) {
    at = 1;
    if (o[0].kind != Operand::Sink && !d.dst(o[0], Ty::B64))
      return false;
  }
  if (!d.count(at + 1, at + 2) || !d.address(o[at], addressSpace(d)))
    return false;
  return o.size() == at + 1 || d.src(o[at + 1], Ty::U32);
}
