//===- ExecCpAsync.cpp - cp.async (PTX ISA 9.7.9.25.3) --------------------===//
//
// Groups are kept per warp: the lanes of a warp commit and wait together in practice.
//
//===----------------------------------------------------------------------===//
#include "lib/Simulator/Async.h"
#include "lib/Simulator/Lanes.h"
#include "lib/Simulator/Memory.h"
#include "lib/Simulator/Sync.h"
#include "llvm/Support/FormatVariadic.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;
using llvm::StringRef;

namespace {

AsyncGroups &groupsOf(Exec &exec) {
  if (!exec.warp->cpAsyncUsed) {
    exec.warp->cpAsyncUsed = true;
    exec.warp->cpAsync.agent = exec.cluster->newAgent("cp.async of " + describeWarp(*exec.warp));
  }
  return exec.warp->cpAsync;
}

Step copy(Exec &exec, const Inst &inst) {
  auto op = makeAsync(exec, inst, AsyncOp::CpAsync);
  op->shared = exec.cta;
  uint32_t bytes = uint32_t(inst.imm);
  for (uint32_t lanes = exec.active; lanes; lanes &= lanes - 1) {
    unsigned lane = llvm::countr_zero(lanes);
    uint64_t dst = uint32_t(addressOfPair(exec, inst, 0, lane)),
             src = addressOfPair(exec, inst, 2, lane);
    uint32_t sourceBytes = inst.select == 1 ? exec.src<uint32_t>(inst, 4)[lane] : bytes;
    if (inst.select == 2 && (exec.pred(inst, 4) >> lane & 1))
      sourceBytes = 0;
    if (dst % bytes || src % bytes) {
      exec.report(DiagKind::Misaligned, inst,
                  llvm::formatv("cp.async of {0} bytes from {1:x} to {2:x}", bytes, src, dst).str(),
                  lane);
      continue;
    }
    if (sourceBytes > bytes) {
      exec.report(DiagKind::InvalidOperation, inst,
                  llvm::formatv("source size {0} is more than {1}", sourceBytes, bytes).str(),
                  lane);
      continue;
    }
    Place to, from;
    if (!resolveShared(exec, inst, dst, bytes, lane, true, to) ||
        (sourceBytes &&
         !resolve(exec, inst, Space::Global, src, sourceBytes, lane, AccessKind::Read, from)))
      continue;
    checkArray(*exec.cluster, inst, 0, to.offset, bytes, exec.warp, lane);
    op->pieces.push_back({to.offset, bytes, sourceBytes, lane});
    op->sources.push_back(src);
  }
  joinGroups(groupsOf(exec), *op);
  addPending(exec, std::move(op));
  exec.warp->release();
  return Step::Next;
}

Step commitCpAsync(Exec &exec, const Inst &) {
  AsyncGroups &g = groupsOf(exec);
  g.groupEnds.push_back(g.issued);
  return Step::Next;
}

Step waitCpAsyncGroup(Exec &exec, const Inst &inst) {
  AsyncGroups &g = groupsOf(exec);
  size_t n = g.groupEnds.size();
  uint32_t need = inst.select ? g.issued : n > size_t(inst.imm) ? g.groupEnds[n - 1 - inst.imm] : 0;
  exec.split->wait.kind = Wait::CpAsync;
  exec.split->wait.value = need;
  return Step::Block;
}

/// Arrives on an mbarrier when the thread's earlier cp.async are complete. Without .noinc the
/// pending count grows by one first, so that the arrival has no net effect on it.
Step arrive(Exec &exec, const Inst &inst) {
  auto op = makeAsync(exec, inst, AsyncOp::CpAsyncArrive);
  op->shared = exec.cta;
  AsyncGroups &g = groupsOf(exec);
  op->groups = &g;
  op->groupIndex = g.issued; // operations before this one
  for (uint32_t lanes = exec.active; lanes; lanes &= lanes - 1) {
    unsigned lane = llvm::countr_zero(lanes);
    Place p;
    if (!resolveShared(exec, inst, addressOfPair(exec, inst, 0, lane), 8, lane, true, p))
      continue;
    Mbarrier *b = exec.cta->mbarrier(p.offset);
    if (!b) {
      exec.report(DiagKind::UninitialisedBarrier, inst,
                  describeShared(*exec.run, p.offset) + " is not an initialised mbarrier", lane);
      continue;
    }
    if (!inst.select)
      ++b->pending;
    op->pieces.push_back({p.offset, 0, 0, lane});
  }
  addPending(exec, std::move(op));
  exec.warp->release();
  return Step::Next;
}

} // namespace

std::optional<bool> tessera::sim::detail::decodeGroup(Decoder &d, Handler commit, Handler wait) {
  if (d.take("commit_group")) {
    d.inst.fn = commit;
    return d.count(0);
  }
  if (!d.take("wait_group"))
    return std::nullopt;
  d.inst.fn = wait;
  return d.count(1) && d.immediate(d.s->operands[0], d.inst.imm);
}

bool tessera::sim::detail::decodeCpAsync(Decoder &d, StringRef opcode) {
  if (opcode != "cp" || !d.take("async"))
    return false;
  const auto &o = d.s->operands;
  d.inst.flags |= FlagCounted;
  if (std::optional<bool> decoded = decodeGroup(d, &commitCpAsync, &waitCpAsyncGroup))
    return *decoded;
  if (d.take("wait_all")) {
    d.inst.select = 1;
    d.inst.fn = &waitCpAsyncGroup;
    return d.count(0);
  }
  if (d.take("mbarrier")) {
    d.inst.select = d.take("arrive") ? d.take("noinc") : 0;
    d.inst.fn = &arrive;
    if (!d.take("shared") && !d.take("shared::cta"))
      return d.refuse("needs a shared memory address");
    return d.take("b64") && d.count(1) && d.addressPair(o[0], Space::Shared);
  }
  bool ca = d.take("ca"), cg = d.take("cg");
  bool shared = d.take("shared") || d.take("shared::cta"), global = d.take("global");
  StringRef level;
  bool hint = false;
  while (d.takePrefix("L2::", level))
    hint |= level == "L2::cache_hint";
  int64_t bytes;
  if (ca == cg || !shared || !global || !d.count(3, 5) || !d.immediate(o[2], bytes))
    return d.refuse("in this form is not modelled");
  if (bytes != 16 && (cg || (bytes != 4 && bytes != 8)))
    return d.refuse("the size must be 4, 8 or 16");
  d.inst.imm = bytes;
  d.inst.fn = &copy;
  if (!d.addressPair(o[0], Space::Shared) || !d.addressPair(o[1], Space::Global))
    return false;
  if (o.size() - hint == 4) {
    bool isPred = o[3].kind == Operand::Reg && d.p.regClass[o[3].reg] == RegClass::Pred;
    d.inst.select = isPred ? 2 : 1;
    return isPred ? d.srcPred(o[3]) : d.src(o[3], Ty::U32);
  }
  return true;
}
