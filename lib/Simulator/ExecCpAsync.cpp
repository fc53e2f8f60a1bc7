//===- ExecCpAsync.cpp - cp.async (PTX ISA 9.7.9.25.3) --------------------===//
//
// Groups are kept per warp: the lanes of a warp commit and wait together in practice.
//
//===----------------------------------------------------------------------===//
#include "Async.h"
#include "Lanes.h"
#include "Memory.h"
#include "Sync.h"
#include "llvm/Support/FormatVariadic.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;
using llvm::StringRef;

namespace {

AsyncGroups &groupsOf(Exec &e) {
  if (!e.warp->cpAsyncUsed) {
    e.warp->cpAsyncUsed = true;
    e.warp->cpAsync.agent = e.cluster->newAgent("cp.async of " + describeWarp(*e.warp));
  }
  return e.warp->cpAsync;
}

uint64_t baseOf(Exec &e, const Inst &i, unsigned n, unsigned l) {
  uint64_t base =
      e.op(i, n).cls == RegClass::R64 ? e.src<uint64_t>(i, n)[l] : e.src<uint32_t>(i, n)[l];
  return base + e.src<uint64_t>(i, n + 1)[l];
}

Step copy(Exec &e, const Inst &i) {
  auto op = std::make_unique<AsyncOp>();
  op->kind = AsyncOp::CpAsync;
  op->inst = &i;
  op->warp = e.warp;
  op->shared = e.cta;
  uint32_t bytes = uint32_t(i.imm);
  for (uint32_t lanes = e.active; lanes; lanes &= lanes - 1) {
    unsigned l = llvm::countr_zero(lanes);
    uint64_t dst = uint32_t(baseOf(e, i, 0, l)), src = baseOf(e, i, 2, l);
    uint32_t sourceBytes = i.select == 1 ? e.src<uint32_t>(i, 4)[l] : bytes;
    if (i.select == 2 && (e.pred(i, 4) >> l & 1))
      sourceBytes = 0;
    if (dst % bytes || src % bytes) {
      e.report(DiagKind::Misaligned, i,
               llvm::formatv("cp.async of {0} bytes from {1:x} to {2:x}", bytes, src, dst).str(),
               l);
      continue;
    }
    if (sourceBytes > bytes) {
      e.report(DiagKind::InvalidOperation, i,
               llvm::formatv("source size {0} is more than {1}", sourceBytes, bytes).str(), l);
      continue;
    }
    Place to, from;
    if (!resolveShared(e, i, dst, bytes, l, true, to) ||
        (sourceBytes && !resolve(e, i, Space::Global, src, sourceBytes, l, AccessKind::Read, from)))
      continue;
    op->pieces.push_back({to.offset, bytes, sourceBytes, l});
    op->sources.push_back(src);
  }
  AsyncGroups &g = groupsOf(e);
  op->groups = &g;
  op->groupIndex = g.issued++;
  g.state.push_back(0);
  op->order = e.warp->clock;
  e.warp->release();
  e.cluster->pending.push_back(std::move(op));
  return Step::Next;
}

Step commit(Exec &e, const Inst &) {
  AsyncGroups &g = groupsOf(e);
  g.groupEnds.push_back(g.issued);
  return Step::Next;
}

Step waitGroup(Exec &e, const Inst &i) {
  AsyncGroups &g = groupsOf(e);
  size_t n = g.groupEnds.size();
  uint32_t need = i.select ? g.issued : n > size_t(i.imm) ? g.groupEnds[n - 1 - i.imm] : 0;
  e.split->wait.kind = Wait::CpAsync;
  e.split->wait.value = need;
  return Step::Block;
}

/// Arrives on an mbarrier when the thread's earlier cp.async are complete. Without .noinc the
/// pending count grows by one first, so that the arrival has no net effect on it.
Step arrive(Exec &e, const Inst &i) {
  auto op = std::make_unique<AsyncOp>();
  op->kind = AsyncOp::CpAsyncArrive;
  op->inst = &i;
  op->warp = e.warp;
  op->shared = e.cta;
  AsyncGroups &g = groupsOf(e);
  op->groups = &g;
  op->groupIndex = g.issued; // operations before this one
  for (uint32_t lanes = e.active; lanes; lanes &= lanes - 1) {
    unsigned l = llvm::countr_zero(lanes);
    Place p;
    if (!resolveShared(e, i, baseOf(e, i, 0, l), 8, l, true, p))
      continue;
    Mbarrier *b = e.cta->mbarrier(p.offset);
    if (!b) {
      e.report(DiagKind::UninitialisedBarrier, i,
               describeShared(*e.run, p.offset) + " is not an initialised mbarrier", l);
      continue;
    }
    if (!i.select)
      ++b->pending;
    op->pieces.push_back({p.offset, 0, 0, l});
  }
  op->order = e.warp->clock;
  e.warp->release();
  e.cluster->pending.push_back(std::move(op));
  return Step::Next;
}

bool addressPair(Decoder &d, const Operand &o, Space space) {
  if (!d.address(o, space, false))
    return false;
  d.ops.push_back(d.constant(uint64_t(o.offset), RegClass::R64));
  return true;
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
  if (std::optional<bool> decoded = decodeGroup(d, &commit, &waitGroup))
    return *decoded;
  if (d.take("wait_all")) {
    d.inst.select = 1;
    d.inst.fn = &waitGroup;
    return d.count(0);
  }
  if (d.take("mbarrier")) {
    d.inst.select = d.take("arrive") ? d.take("noinc") : 0;
    d.inst.fn = &arrive;
    if (!d.take("shared") && !d.take("shared::cta"))
      return d.refuse("needs a shared memory address");
    return d.take("b64") && d.count(1) && addressPair(d, o[0], Space::Shared);
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
  if (!addressPair(d, o[0], Space::Shared) || !addressPair(d, o[1], Space::Global))
    return false;
  if (o.size() - hint == 4) {
    bool isPred = o[3].kind == Operand::Reg && d.p.regClass[o[3].reg] == RegClass::Pred;
    d.inst.select = isPred ? 2 : 1;
    return isPred ? d.srcPred(o[3]) : d.src(o[3], Ty::U32);
  }
  return true;
}
