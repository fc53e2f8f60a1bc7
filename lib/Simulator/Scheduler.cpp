//===- Scheduler.cpp - Runs the warps of a cluster ------------------------===//
//
// Which warp runs, for how long, and when an asynchronous operation lands comes from the seed.
// Operations land as late as the protocol allows, that is when no warp can go on without them; in
// other seeds also now and then before, or at once.
//
//===----------------------------------------------------------------------===//
#include "lib/Simulator/Async.h"
#include "lib/Simulator/Sync.h"
#include "llvm/Support/FormatVariadic.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;

void Rng::seed(uint64_t a, uint64_t b) {
  // splitmix64 of both words
  uint64_t z = a * 0x9e3779b97f4a7c15ull + b + 0x632be59bd9b4e019ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  state = (z ^ (z >> 31)) | 1;
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

/// Lanes in which all that `inst` uses of a source was written.
static uint32_t writtenOf(const Inst &inst, const RegMeta &source) {
  return source.init | (inst.flags & FlagReadsLow ? source.halves[0] : 0) |
         (inst.flags & FlagReadsHigh ? source.halves[1] : 0);
}

namespace {
/// What an instruction that only copies hands on of all its sources.
struct Copied {
  bool isOfRegisters = false; ///< some source is a register
  uint32_t init = kAllLanes, fence = 0, flight = 0;
  std::array<uint32_t, 2> halves = {kAllLanes, kAllLanes};
};
} // namespace

/// Reports uninitialised and in-flight sources.
static Copied checkSources(Exec &exec, const Inst &inst) {
  Copied copied;
  for (unsigned n = inst.dstCount; n < inst.opCount; ++n) {
    int reg = exec.p->ops[inst.opBegin + n].reg;
    if (reg < 0)
      continue;
    copied.isOfRegisters = true;
    RegMeta &m = exec.warp->meta[reg];
    if (uint32_t written = writtenOf(inst, m); (written & exec.active) != exec.active) {
      if (!(inst.flags & FlagCopies))
        exec.report(DiagKind::UninitialisedRegister, inst,
                    exec.p->regName(reg) + " is used but has not been written",
                    llvm::countr_zero(exec.active & ~written));
      m.init |= inst.flags & FlagCopies ? 0 : exec.active; // once is enough
    }
    copied.init &= m.init;
    if (inst.flags & FlagPacksHalves)
      copied.halves[n - inst.dstCount] = m.init;
    else
      for (unsigned half : {0, 1})
        copied.halves[half] &= m.init | m.halves[half];
    copied.fence = std::max(copied.fence, m.fence);
    copied.flight = std::max(copied.flight, m.flightAcc);
    if (m.flightAcc && !(inst.flags & FlagRename))
      exec.report(DiagKind::RegisterInFlight, inst,
                  exec.p->regName(reg) +
                      " is read while a wgmma that accumulates into it has not been waited for");
    else if (m.flightA && !(inst.flags & FlagRename))
      exec.report(DiagKind::RegisterInFlight, inst,
                  exec.p->regName(reg) +
                      " is read while it is the A operand of a wgmma that has not been waited for");
  }
  return copied;
}

/// Reports results that are in flight, and keeps what is known of each.
static void checkResults(Exec &exec, const Inst &inst, const Copied &copied) {
  Warp &w = *exec.warp;
  for (unsigned n = 0; n < inst.dstCount; ++n) {
    int reg = exec.p->ops[inst.opBegin + n].reg;
    if (reg < 0)
      continue;
    RegMeta &m = w.meta[reg];
    if (m.flightAcc || m.flightA)
      exec.report(DiagKind::RegisterInFlight, inst,
                  exec.p->regName(reg) + " is written while it is " +
                      (m.flightAcc ? "an accumulator" : "the A operand") +
                      " of a wgmma that has not been waited for");
    if (inst.flags & FlagCopies) {
      // What is unpacked has 16 bits, and no halves that anything asks for.
      bool unpacks = inst.flags & FlagUnpacksHalves;
      uint32_t written = unpacks ? copied.halves[n] : copied.init;
      m.init = (m.init & ~exec.active) | (written & exec.active);
      for (unsigned half : {0, 1})
        m.halves[half] =
            (m.halves[half] & ~exec.active) | (unpacks ? 0 : copied.halves[half] & exec.active);
    } else {
      m.init |= exec.active;
    }
    if ((inst.flags & FlagRename) && copied.isOfRegisters) {
      m.fence = copied.fence;
      if (copied.flight) {
        if (!m.flightAcc && !m.flightA)
          w.flightRegs.push_back(reg);
        m.flightAcc = copied.flight;
      }
    } else {
      m.fence = w.wgmmaFences;
    }
  }
}

/// Uninitialised and in-flight registers. Returns false when the split must wait for a value.
static bool checkRegisters(Exec &exec, const Inst &inst) {
  Copied copied = checkSources(exec, inst);
  const Warp &w = *exec.warp;
  if (copied.flight && (inst.flags & FlagRename) &&
      w.cta->groups[w.index / 4].completed < copied.flight) {
    exec.split->wait.kind = Wait::WgmmaValue;
    exec.split->wait.value = copied.flight;
    return false;
  }
  checkResults(exec, inst, copied);
  return true;
}

/// The lanes of a split that execute `inst`: those for which its guard holds.
static uint32_t guardedLanes(Exec &exec, const Inst &inst, bool checks) {
  uint32_t lanes = exec.split->mask;
  if (inst.guard.reg < 0)
    return lanes;
  uint32_t &written = exec.warp->meta[inst.guard.reg].init;
  if (checks && (written & lanes) != lanes) {
    exec.active = lanes;
    exec.report(DiagKind::UninitialisedRegister, inst,
                "the guard " + exec.p->regName(inst.guard.reg) + " has not been written");
    written |= lanes;
  }
  uint32_t g = exec.regs[inst.guard.offset];
  return lanes & (inst.guard.negated ? ~g : g);
}

static Exec makeExec(Cluster &c, Warp &w, Split &s) {
  Exec exec;
  exec.run = c.run;
  exec.cluster = &c;
  exec.cta = w.cta;
  exec.warp = &w;
  exec.split = &s;
  exec.p = c.run->program;
  exec.regs = w.regs.data();
  exec.consts = exec.p->constants.data();
  return exec;
}

/// Runs a split for at most `quantum` instructions; returns how many it executed.
static uint64_t runSplit(Cluster &c, Warp &w, std::list<Split>::iterator it, uint64_t quantum) {
  Split &s = *it;
  Exec exec = makeExec(c, w, s);
  s.polling = false;
  const Inst *insts = exec.p->insts.data();
  bool checks = c.run->options->checkRegisters;
  int32_t join = s.stack.empty() ? -1 : w.points[s.stack.back()].pc;
  for (uint64_t n = 0; n < quantum; ++n) {
    if (s.pc == join) {
      arriveReconvergence(w, it);
      return n;
    }
    const Inst &inst = insts[s.pc];
    exec.active = guardedLanes(exec, inst, checks);
    ++c.instructions;
    ++c.opcodeCounts[inst.opcode];
    w.site = uint32_t(s.pc);
    if (w.reads.any())
      followReads(exec, inst);
    if (!exec.active) {
      ++s.pc;
      continue;
    }
    if ((inst.flags & FlagAligned) && exec.active != w.alive())
      exec.report(DiagKind::DivergentAligned, inst,
                  llvm::formatv("executed by lanes {0:x} of the warp, while {1:x} are alive",
                                exec.active, w.alive())
                      .str());
    if (checks && !(inst.flags & FlagOwnCheck) && !checkRegisters(exec, inst))
      return n + 1;
    Step step = inst.fn(exec, inst);
    // A handler that ends the split must not be followed by an access to it.
    if (inst.flags & FlagCounted)
      ++w.counts[inst.counter];
    switch (step) {
    case Step::Next:
      ++s.pc;
      break;
    case Step::Jump:
      break;
    case Step::Block:
    case Step::Stop:
      return n + 1;
    }
    if (c.interrupt)
      return n + 1;
  }
  return quantum;
}

//===----------------------------------------------------------------------===//
// Scheduling
//===----------------------------------------------------------------------===//

/// A phase that has begun and cannot end any more: an arrival too many or too few. And one that
/// nobody has waited for, of a barrier that counts bytes: what arrived there, nobody can read.
static void reportPhases(Cluster &c, const Cta &cta) {
  for (const auto &[offset, b] : cta.mbarriers) {
    bool isOpen = b.pending != b.expected || b.tx != 0,
         isIgnored = b.countsBytes && b.phase > 0 && b.waits.empty();
    if (!b.valid || (!isOpen && !isIgnored))
      continue;
    std::string exit =
                    llvm::formatv("CTA ({0},{1},{2}) exits while ", cta.id.x, cta.id.y, cta.id.z),
                name = describeShared(*c.run, offset);
    if (isOpen)
      addDiagnostic(c, DiagKind::PendingAtExit, nullptr, b.lastArrival, -1,
                    exit + llvm::formatv("phase {0} of {1} lacks {2} of {3} arrivals and {4} bytes",
                                         b.phase, name, b.pending, b.expected, b.tx)
                               .str());
    if (isIgnored)
      addDiagnostic(
          c, DiagKind::PendingAtExit, nullptr, b.lastArrival, -1,
          exit + llvm::formatv("nobody has waited for phase {0} of {1}", b.phase - 1, name).str());
  }
}

static void reportPending(Cluster &c, Cta &cta) {
  reportPhases(c, cta);
  for (auto &w : cta.warps)
    for (auto &[lane, g] : w->bulk)
      if (g.waitedRead < g.issued)
        addDiagnostic(
            c, DiagKind::PendingAtExit, w.get(), nullptr, lane,
            llvm::formatv(
                "the CTA exits while the thread has not waited for {0} of its {1} bulk copies",
                g.issued - g.waitedRead, g.issued)
                .str());
  for (auto &op : c.pending) {
    bool load = op->kind == AsyncOp::TensorLoad || op->kind == AsyncOp::BulkLoad ||
                op->kind == AsyncOp::SharedCopy;
    if (load && (op->remote == &cta || (op->multicast >> cta.rank & 1)))
      addDiagnostic(c, DiagKind::PendingAtExit, op->warp, op->inst, op->lane,
                    "the CTA exits while this bulk copy into its shared memory is in flight");
    if (op->kind == AsyncOp::CpAsync && op->shared == &cta)
      addDiagnostic(c, DiagKind::PendingAtExit, op->warp, op->inst, -1,
                    "the CTA exits while this cp.async is in flight");
  }
  for (Warpgroup &g : cta.groups)
    if (!g.ops.empty())
      addDiagnostic(c, DiagKind::PendingAtExit, nullptr, g.ops.front().inst, -1,
                    "the CTA exits while this wgmma has not been waited for");
}

static void warpDone(Cluster &c, Warp &w) {
  Cta &cta = *w.cta;
  --cta.liveWarps;
  --c.liveWarps;
  c.event();
  checkNamedBarriers(cta);
  checkClusterBarrier(c);
  if (cta.liveWarps == 0) {
    reportPending(c, cta);
    for (Warpgroup &g : cta.groups)
      g.ops.clear();
    cta.exited = true;
  }
}

/// Lets one asynchronous operation land, chosen by the seed. False when there is none.
static bool completeOne(Cluster &c) {
  llvm::SmallVector<std::pair<Cta *, unsigned>, 8> groups;
  for (auto &cta : c.ctas)
    for (unsigned g = 0; g < cta->groups.size(); ++g)
      if (wgmmaReady(cta->groups[g]))
        groups.push_back({cta.get(), g});
  uint32_t n = c.pending.size() + groups.size();
  if (n == 0)
    return false;
  c.sinceCompletion = 0;
  uint32_t k = c.rng.below(n);
  if (k >= c.pending.size()) {
    auto [cta, g] = groups[k - c.pending.size()];
    completeWgmma(c, *cta, g);
    return true;
  }
  if (completeAsync(c, *c.pending[k])) {
    std::swap(c.pending[k], c.pending.back());
    c.pending.pop_back();
  }
  return true;
}

void tessera::sim::detail::reportBlocked(Cluster &c, DiagKind kind, const char *what) {
  // Warps of a role that follow each other and wait alike are one note.
  struct Alike {
    const Warp *first;
    uint32_t last;
    std::string what;
  };
  std::vector<Alike> groups;
  const Warp *first = nullptr;
  const Inst *firstInst = nullptr;
  DiagKind found = kind;
  for (auto &cta : c.ctas)
    for (auto &w : cta->warps)
      for (Split &s : w->splits) {
        const Inst &i = c.run->program->insts[s.pc];
        DiagKind own = kind;
        std::vector<std::string> unused;
        std::string what =
            (s.mask == w->alive() ? "" : llvm::formatv(", lanes {0:x},", s.mask).str()) + " " +
            describeWait(c, *w, s, own, unused) + "; at " +
            describeSite(*c.run, &i - c.run->program->insts.data());
        if (Alike *last = groups.empty() ? nullptr : &groups.back();
            last && last->first->cta == w->cta && last->last + 1 == w->index &&
            last->what == what && roleOfWarp(*c.run, last->last) == roleOfWarp(*c.run, w->index))
          last->last = w->index;
        else
          groups.push_back({w.get(), w->index, std::move(what)});
        if (own != kind)
          found = own;
        bool reconverging = !s.stack.empty() && s.wait.kind == Wait::None;
        if (!first && !reconverging) {
          first = w.get();
          firstInst = &i;
        }
      }
  std::vector<std::string> notes;
  for (const Alike &group : groups)
    notes.push_back(describeWarp(*group.first, group.last) + group.what);
  addDiagnostic(c, found, first, firstInst, -1, what, std::move(notes));
  c.failed = true;
}

namespace {
struct Candidate {
  Warp *warp;
  std::list<Split>::iterator split;
};
using Candidates = llvm::SmallVector<Candidate, 64>;
} // namespace

/// Splits that can execute; `polling` has those that last failed a test.
static void findRunnable(Cluster &c, Candidates &ready, Candidates &polling) {
  ready.clear();
  polling.clear();
  for (auto &cta : c.ctas)
    for (auto &w : cta->warps)
      for (auto it = w->splits.begin(); it != w->splits.end(); ++it)
        if (it->wait.kind == Wait::None || tryWake(c, *w, *it))
          (it->polling ? polling : ready).push_back({w.get(), it});
}

/// Policy::Eager: lets everything land, and keeps back those who issued it while others can run.
static void landAll(Cluster &c, Candidates &ready) {
  // A store takes two steps; an arrival of cp.async may have to wait for its copies.
  for (size_t n = 2 * c.pending.size(); n-- > 0 && !c.pending.empty();)
    completeOne(c);
  constexpr uint64_t kPatience = 4096; // instructions without an event: the others only spin
  bool othersRun = c.instructions - c.lastEventAt < kPatience &&
                   llvm::any_of(ready, [](const Candidate &k) { return !k.warp->held; });
  if (othersRun)
    llvm::erase_if(ready, [](const Candidate &k) { return k.warp->held; });
  else
    for (Candidate &k : ready)
      k.warp->held = false;
}

/// The candidate that runs next, and for how many instructions.
static std::pair<size_t, uint64_t> choose(Cluster &c, Candidates &ready) {
  size_t k = c.rng.below(ready.size());
  uint64_t quantum = 1 + c.rng.below(256);
  if (c.policy == Policy::Priority) {
    for (size_t j = 0; j < ready.size(); ++j)
      if (ready[j].warp->priority > ready[k].warp->priority)
        k = j;
    if (c.rng.below(64) == 0)
      ready[k].warp->priority = c.rng.below(1u << 30);
    quantum = 512;
  } else if (c.policy == Policy::Short) {
    quantum = 1 + c.rng.below(24);
  }
  return {k, quantum};
}

/// Nothing but spinning for very long, in this cluster and in all others.
static void checkProgress(Cluster &c) {
  if (c.instructions - c.lastEventAt <= c.run->options->stallInstructions || completeOne(c))
    return;
  if (c.run->events != c.runEvents) {
    c.runEvents = c.run->events;
    c.lastEventAt = c.instructions;
    return;
  }
  reportBlocked(c, DiagKind::Livelock,
                "no progress: no store, arrival or completion for many instructions");
}

bool tessera::sim::detail::stepCluster(Cluster &c, uint64_t budget) {
  Candidates ready, polling;
  uint64_t eventsBefore = c.events, start = c.instructions;
  // What others did meanwhile may be what this cluster has waited for.
  if (uint64_t events = c.run->events; events != c.runEvents) {
    c.runEvents = events;
    c.lastEventAt = c.instructions;
  }
  c.yield = false;
  while (c.instructions - start < budget && !c.yield && !c.failed && !c.run->abort) {
    c.interrupt = false;
    if (c.liveWarps == 0) {
      while (completeOne(c))
        ;
      c.run->events += c.events - eventsBefore;
      return true;
    }
    // Copies that nobody waits for must not take the host's memory; some that are not ready stay.
    for (size_t k = 0; k < kMaxPending && c.pending.size() > kMaxPending; ++k)
      completeOne(c);
    findRunnable(c, ready, polling);
    c.sinceCompletion += 1;
    if (ready.empty() && polling.empty()) {
      if (!completeOne(c))
        reportBlocked(c, DiagKind::Deadlock,
                      "no warp can go on and no asynchronous operation is under way");
      continue;
    }
    if (ready.empty()) {
      // Only pollers are left: something must land, or they poll for ever.
      if (!completeOne(c) && c.failedPolls > 20000 && c.run->events == c.runEvents) {
        reportBlocked(c, DiagKind::Deadlock, "every warp that is not blocked polls in vain");
        continue;
      }
      std::swap(ready, polling);
    } else {
      // Who spins without a test must not keep those away that he waits for.
      if (!polling.empty() && c.rng.below(64) == 0)
        ready.append(polling);
      if (c.policy == Policy::Eager)
        landAll(c, ready);
      if ((c.completionRate && c.rng.below(c.completionRate) == 0) || c.sinceCompletion > 20000)
        completeOne(c);
    }
    auto [k, quantum] = choose(c, ready);
    Warp &w = *ready[k].warp;
    runSplit(c, w, ready[k].split, quantum);
    if (w.done())
      warpDone(c, w);
    checkProgress(c);
  }
  c.run->events += c.events - eventsBefore;
  return c.failed || c.run->abort;
}
