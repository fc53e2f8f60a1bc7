//===- ExecControl.cpp - Branches, divergence, exit (PTX ISA 9.7.12) ------===//
#include "lib/Simulator/Lanes.h"
#include "llvm/Support/FormatVariadic.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;
using llvm::StringRef;

static int32_t newPoint(Warp &w, int32_t pc, uint32_t members) {
  if (!w.freePoints.empty()) {
    int32_t id = w.freePoints.back();
    w.freePoints.pop_back();
    w.points[id] = {pc, members, 0};
    return id;
  }
  w.points.push_back({pc, members, 0});
  return w.points.size() - 1;
}

static std::list<Split>::iterator iteratorOf(Warp &w, Split *s) {
  for (auto it = w.splits.begin(); it != w.splits.end(); ++it)
    if (&*it == s)
      return it;
  return w.splits.end();
}

/// Releases a point all of whose members have arrived.
static void releasePoint(Warp &w, llvm::ArrayRef<int32_t> outer, int32_t id) {
  Split joined;
  joined.pc = w.points[id].pc;
  joined.mask = w.points[id].members;
  joined.stack.assign(outer.begin(), outer.end());
  w.freePoints.push_back(id);
  w.splits.push_back(std::move(joined));
}

bool tessera::sim::detail::arriveReconvergence(Warp &w, std::list<Split>::iterator it) {
  if (it->stack.empty() || w.points[it->stack.back()].pc != it->pc)
    return false;
  int32_t id = it->stack.back();
  llvm::SmallVector<int32_t, 4> outer(it->stack.begin(), it->stack.end() - 1);
  w.points[id].arrived |= it->mask;
  bool complete = w.points[id].arrived == w.points[id].members;
  w.splits.erase(it);
  if (complete)
    releasePoint(w, outer, id);
  return true;
}

void tessera::sim::detail::exitLanes(Exec &exec, uint32_t lanes) {
  Warp &w = *exec.warp;
  auto it = iteratorOf(w, exec.split);
  w.exited |= lanes;
  it->mask &= ~lanes;
  llvm::SmallVector<int32_t, 4> stack = it->stack;
  if (!it->mask)
    w.splits.erase(it);
  for (size_t k = stack.size(); k-- > 0;) {
    Reconverge &point = w.points[stack[k]];
    point.members &= ~lanes;
    if (point.members && point.arrived == point.members)
      releasePoint(w, llvm::ArrayRef<int32_t>(stack).take_front(k), stack[k]);
  }
}

namespace {

/// Sends `taken` lanes to `target`; the others continue at `rest`.
void diverge(Exec &exec, const Inst &inst, uint32_t taken, int32_t target, int32_t rest) {
  Warp &w = *exec.warp;
  Split &s = *exec.split;
  int32_t r = inst.reconverge;
  // A loop that lanes leave one after the other needs its exit point once.
  if (r >= 0 && (s.stack.empty() || w.points[s.stack.back()].pc != r))
    s.stack.push_back(newPoint(w, r, s.mask));
  Split other;
  other.pc = target;
  other.mask = taken;
  other.stack = s.stack;
  s.mask &= ~taken;
  s.pc = rest;
  w.splits.push_back(std::move(other));
}

Step branch(Exec &exec, const Inst &inst) {
  if (exec.active == exec.split->mask) {
    exec.split->pc = inst.target;
    return Step::Jump;
  }
  diverge(exec, inst, exec.active, inst.target, exec.split->pc + 1);
  return Step::Stop;
}

Step branchTable(Exec &exec, const Inst &inst) {
  const std::vector<int32_t> &table = exec.p->branchTables[inst.aux];
  const uint32_t *index = exec.src<uint32_t>(inst, 0);
  unsigned first = llvm::countr_zero(exec.active);
  uint32_t same = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    if (exec.isActive(lane) && index[lane] == index[first])
      same |= 1u << lane;
  if (index[first] >= table.size()) {
    exec.report(DiagKind::InvalidOperation, inst,
                llvm::formatv("branch index {0} is outside of the table", index[first]).str(),
                first);
    exitLanes(exec, same);
    return Step::Stop;
  }
  int32_t target = table[index[first]];
  if (same == exec.split->mask) {
    exec.split->pc = target;
    return Step::Jump;
  }
  // The other active lanes come back to this instruction; a guard that is false falls through, and
  // PTX forbids guards on brx other than for the whole warp.
  diverge(exec, inst, same, target, same == exec.active ? exec.split->pc + 1 : exec.split->pc);
  return Step::Stop;
}

Step leave(Exec &exec, const Inst &) {
  uint32_t lanes = exec.active;
  bool all = lanes == exec.split->mask;
  if (!all)
    ++exec.split->pc;
  exitLanes(exec, lanes);
  return Step::Stop;
}

Step trap(Exec &exec, const Inst &inst) {
  exec.report(DiagKind::InvalidOperation, inst, "trap executed", llvm::countr_zero(exec.active));
  return leave(exec, inst);
}

/// Lets somebody else run.
Step sleep(Exec &exec, const Inst &) {
  ++exec.split->pc;
  return Step::Stop;
}

} // namespace

bool tessera::sim::detail::decodeControl(Decoder &d, StringRef opcode) {
  const auto &o = d.s->operands;
  if (opcode == "bra") {
    d.take("uni");
    d.inst.fn = &branch;
    return d.count(1) && d.labelTarget(o[0]);
  }
  if (opcode == "brx") {
    d.take("uni");
    if (!d.take("idx") || !d.count(2) || !d.src(o[0], Ty::U32))
      return d.refuse("in this form is not modelled");
    for (const auto &[name, labels] : d.p.function->branchTargets) {
      if (name != o[1].name)
        continue;
      d.inst.aux = d.p.branchTables.size();
      d.inst.flags |= FlagTable;
      d.inst.fn = &branchTable;
      d.p.branchTables.emplace_back();
      for (unsigned k = 0; k < labels.size(); ++k)
        d.tableTarget(labels[k], k);
      return true;
    }
    return d.refuse("'" + o[1].name + "' is not a table of branch targets");
  }
  if (opcode == "ret" || opcode == "exit") {
    d.take("uni");
    d.inst.flags |= FlagLeaves;
    d.inst.fn = &leave;
    return d.count(0);
  }
  if (opcode == "trap") {
    d.inst.flags |= FlagLeaves;
    d.inst.fn = &trap;
    return d.count(0);
  }
  if (opcode == "nanosleep") {
    d.inst.fn = &sleep;
    return d.takeType() == Ty::U32 && d.count(1) && d.src(o[0], Ty::U32);
  }
  if (opcode == "brkpt" || opcode == "pmevent") {
    d.mods.clear();
    d.inst.fn = &nothing;
    return true;
  }
  if (opcode == "call")
    return d.refuse("calls are not modelled; compile with everything inlined");
  return false;
}
