//===- ReadsInFlight.cpp - Reads whose values nobody has taken ------------===//
#include "lib/Simulator/ReadsInFlight.h"
#include "lib/Simulator/Machine.h"
#include "llvm/ADT/bit.h"

using namespace tessera::sim::detail;

ReadsInFlight::Set ReadsInFlight::begin(uint32_t epoch, uint32_t lanes, size_t registers) {
  byRegister.resize(registers);
  constexpr unsigned kHalf = kReads / 2;
  if (next % kHalf == 0)
    forget(((Set(1) << kHalf) - 1) << next, epoch);
  Set read = Set(1) << next;
  reads[next] = {epoch, lanes};
  next = (next + 1) % kReads;
  inFlight |= read;
  setEnd({epoch, kNever, 0});
  return read;
}

/// Makes room: no register names these places any more.
void ReadsInFlight::forget(Set old, uint32_t epoch) {
  take(old, kAllLanes, epoch);
  for (Set &set : byRegister)
    set &= ~old;
}

void ReadsInFlight::take(Set taken, uint32_t lanes, uint32_t epoch) {
  for (taken &= inFlight; taken; taken &= taken - 1) {
    Read &read = reads[llvm::countr_zero(taken)];
    read.lanes &= ~lanes;
    if (read.lanes)
      continue;
    inFlight &= ~(taken & -taken);
    if (End &end = ends[read.epoch % kEpochs]; end.epoch == read.epoch)
      end.over = epoch;
  }
}

const ReadsInFlight::End *ReadsInFlight::find(uint32_t epoch) const {
  size_t place = epoch % kEpochs;
  return place < ends.size() && ends[place].epoch == epoch ? &ends[place] : nullptr;
}

bool ReadsInFlight::isOver(uint32_t read, uint32_t epoch) const {
  const End *end = find(read);
  return !end || end->over <= epoch;
}

std::optional<uint32_t> ReadsInFlight::releaseIn(uint32_t epoch) const {
  const End *end = find(epoch);
  return end ? std::optional(end->site) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

void tessera::sim::detail::beginRead(Exec &exec, const Inst &inst, uint32_t lanes) {
  Warp &w = *exec.warp;
  ReadsInFlight::Set read = 0;
  for (unsigned n = 0; n < inst.dstCount && exec.cta->shadow.checking; ++n) {
    int reg = exec.op(inst, n).reg;
    if (reg < 0)
      continue;
    if (!read)
      read = w.reads.begin(w.epoch, lanes, w.meta.size());
    w.reads.sets()[reg] |= read;
  }
  if (read)
    w.clock.see(w.agent, ++w.epoch);
}

void tessera::sim::detail::followReads(Exec &exec, const Inst &inst) {
  ReadsInFlight &reads = exec.warp->reads;
  uint32_t epoch = exec.warp->epoch;
  bool waits = !(inst.flags & FlagArithmetic);
  ReadsInFlight::Set *sets = reads.sets();
  ReadsInFlight::Set sources = inst.guard.reg < 0 ? 0 : sets[inst.guard.reg];
  if (waits)
    reads.take(sources, exec.split->mask, epoch);
  if (!exec.active)
    return;
  const Op *ops = exec.p->ops.data() + inst.opBegin;
  // Products also read what they add to.
  for (unsigned n = inst.flags & FlagOwnCheck ? 0 : inst.dstCount; n < inst.opCount; ++n)
    if (ops[n].reg >= 0)
      sources |= sets[ops[n].reg];
  if (waits) {
    reads.take(sources, exec.active, epoch);
    sources = 0;
  }
  // Other lanes of a result have what they had.
  ReadsInFlight::Set kept = exec.active == kAllLanes ? 0 : ~ReadsInFlight::Set(0);
  for (unsigned n = 0; n < inst.dstCount; ++n)
    if (ops[n].reg >= 0)
      sets[ops[n].reg] = sources | (kept & sets[ops[n].reg]);
}
