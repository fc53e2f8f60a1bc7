//===- ExecWarp.cpp - shfl, vote, match, elect, redux (PTX ISA 9.7.9.6, 9.7.13) ===//
#include "lib/Simulator/Lanes.h"
#include "llvm/Support/FormatVariadic.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;
using llvm::StringRef;

namespace {

/// Every thread that the member mask names must execute the instruction with the others.
void checkMembers(Exec &exec, const Inst &inst, unsigned maskOperand) {
  const uint32_t *mask = exec.src<uint32_t>(inst, maskOperand);
  unsigned lane = llvm::countr_zero(exec.active);
  uint32_t missing = mask[lane] & exec.warp->alive() & ~exec.active;
  if (missing)
    exec.report(
        DiagKind::DivergentAligned, inst,
        llvm::formatv("the member mask {0:x} names lanes that do not execute this instruction "
                      "with the others: {1:x}",
                      mask[lane], missing)
            .str(),
        llvm::countr_zero(missing));
  if (!(mask[lane] >> lane & 1))
    exec.report(DiagKind::InvalidOperation, inst,
                llvm::formatv("lane {0} is not in its member mask {1:x}", lane, mask[lane]).str(),
                lane);
}

enum Shuffle : uint32_t { Up, Down, Bfly, Idx };
Step shfl(Exec &exec, const Inst &inst) {
  unsigned dsts = inst.dstCount;
  const uint32_t *a = exec.src<uint32_t>(inst, dsts), *b = exec.src<uint32_t>(inst, dsts + 1),
                 *c = exec.src<uint32_t>(inst, dsts + 2);
  checkMembers(exec, inst, dsts + 3);
  uint32_t r[kLanes], in = 0;
  for (int lane = 0; lane < int(kLanes); ++lane) {
    int bval = b[lane] & 31, cval = c[lane] & 31, segment = c[lane] >> 8 & 31;
    int maxLane = (lane & segment) | (cval & ~segment), minLane = lane & segment;
    int j = lane;
    bool p = false;
    switch (inst.select) {
    case Up:
      j = lane - bval;
      p = j >= maxLane;
      break;
    case Down:
      j = lane + bval;
      p = j <= maxLane;
      break;
    case Bfly:
      j = lane ^ bval;
      p = j <= maxLane;
      break;
    case Idx:
      j = minLane | (bval & ~segment);
      p = j <= maxLane;
      break;
    }
    if (!p)
      j = lane;
    j &= 31;
    if (exec.isActive(lane) && !exec.isActive(j))
      exec.report(DiagKind::InvalidOperation, inst,
                  llvm::formatv("lane {0} reads lane {1}, which is not active", lane, j).str(),
                  lane);
    r[lane] = a[j];
    in |= uint32_t(p) << lane;
  }
  exec.store(inst, 0, r);
  if (dsts > 1)
    exec.storePred(inst, 1, in);
  return Step::Next;
}

enum Vote : uint32_t { All, Any, Uni, Ballot };
Step vote(Exec &exec, const Inst &inst) {
  uint32_t p = exec.pred(inst, 1) & exec.active;
  checkMembers(exec, inst, 2);
  if (inst.select == Ballot) {
    uint32_t r[kLanes];
    std::fill(r, r + kLanes, p);
    exec.store(inst, 0, r);
    return Step::Next;
  }
  bool v = inst.select == All   ? p == exec.active
           : inst.select == Any ? p != 0
                                : p == 0 || p == exec.active;
  exec.storePred(inst, 0, v ? ~0u : 0);
  return Step::Next;
}

template <class S>
Step match(Exec &exec, const Inst &inst) {
  unsigned dsts = inst.dstCount;
  const S *a = exec.src<S>(inst, dsts);
  checkMembers(exec, inst, dsts + 1);
  uint32_t r[kLanes] = {}, same = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    for (unsigned k = 0; k < kLanes; ++k)
      if (exec.isActive(k) && a[k] == a[lane])
        r[lane] |= 1u << k;
  if (inst.select == All) {
    unsigned first = llvm::countr_zero(exec.active) & 31;
    bool all = r[first] == exec.active;
    same = all ? ~0u : 0;
    std::fill(r, r + kLanes, all ? exec.active : 0);
  }
  exec.store(inst, 0, r);
  if (dsts > 1)
    exec.storePred(inst, 1, same);
  return Step::Next;
}

/// The ISA leaves the choice of the leader open; it must be the same for the same mask. The machine
/// takes the lowest.
Step elect(Exec &exec, const Inst &inst) {
  checkMembers(exec, inst, 2);
  unsigned leader = llvm::countr_zero(exec.active);
  uint32_t r[kLanes];
  std::fill(r, r + kLanes, leader);
  exec.store(inst, 0, r);
  exec.storePred(inst, 1, 1u << leader);
  return Step::Next;
}

Step activemask(Exec &exec, const Inst &inst) {
  uint32_t r[kLanes];
  std::fill(r, r + kLanes, exec.active);
  exec.store(inst, 0, r);
  return Step::Next;
}

enum Redux : uint32_t { RAdd, RMin, RMax, RAnd, ROr, RXor };
template <class C>
Step redux(Exec &exec, const Inst &inst) {
  const uint32_t *a = exec.src<uint32_t>(inst, 1);
  checkMembers(exec, inst, 2);
  C v = 0;
  bool first = true;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (!exec.isActive(lane))
      continue;
    C x = C(a[lane]);
    if (first)
      v = x;
    else if (inst.select == RAdd)
      v = C(uint32_t(v) + uint32_t(x));
    else if (inst.select == RMin)
      v = std::min(v, x);
    else if (inst.select == RMax)
      v = std::max(v, x);
    else if (inst.select == RAnd)
      v &= x;
    else if (inst.select == ROr)
      v |= x;
    else
      v ^= x;
    first = false;
  }
  uint32_t r[kLanes];
  std::fill(r, r + kLanes, uint32_t(v));
  exec.store(inst, 0, r);
  return Step::Next;
}

Step warpSync(Exec &exec, const Inst &inst) {
  checkMembers(exec, inst, 0);
  return Step::Next;
}

} // namespace

/// Takes the modifier of `names` that the instruction has, as what its handler selects by.
static void takeOneOf(Decoder &d, llvm::ArrayRef<const char *> names) {
  for (auto [k, name] : llvm::enumerate(names))
    if (d.take(name))
      d.inst.select = k;
}

static bool decodeShuffle(Decoder &d, unsigned dsts) {
  const auto &o = d.s->operands;
  takeOneOf(d, {"up", "down", "bfly", "idx"});
  if (d.takeType() != Ty::B32 || !d.count(dsts + 4))
    return d.refuse("in this form is not modelled");
  d.inst.fn = &shfl;
  if (!d.dst(o[0], Ty::B32) || (dsts == 2 && !d.dstPred(o[1])))
    return false;
  for (unsigned k = 0; k < 4; ++k)
    if (!d.src(o[dsts + k], Ty::B32))
      return false;
  return true;
}

static bool decodeVote(Decoder &d) {
  const auto &o = d.s->operands;
  takeOneOf(d, {"all", "any", "uni", "ballot"});
  Ty ty = d.takeType();
  d.inst.fn = &vote;
  return d.count(3) && (ty == Ty::Pred ? d.dstPred(o[0]) : d.dst(o[0], Ty::B32)) &&
         d.srcPred(o[1]) && d.src(o[2], Ty::B32);
}

static bool decodeMatch(Decoder &d, unsigned dsts) {
  const auto &o = d.s->operands;
  d.inst.select = d.take("all") ? All : Any;
  d.take("any");
  Ty ty = d.takeType();
  d.inst.fn = tyBits(ty) == 64 ? &match<uint64_t> : &match<uint32_t>;
  return d.count(dsts + 2) && d.dst(o[0], Ty::B32) && (dsts == 1 || d.dstPred(o[1])) &&
         d.src(o[dsts], ty) && d.src(o[dsts + 1], Ty::B32);
}

static bool decodeReduction(Decoder &d) {
  const auto &o = d.s->operands;
  takeOneOf(d, {"add", "min", "max", "and", "or", "xor"});
  Ty ty = d.takeType();
  if (tyBits(ty) != 32 || ty == Ty::F32)
    return d.refuse("with this type is not modelled");
  d.inst.fn = ty == Ty::S32 ? &redux<int32_t> : &redux<uint32_t>;
  return d.count(3) && d.dst(o[0], ty) && d.src(o[1], ty) && d.src(o[2], Ty::B32);
}

bool tessera::sim::detail::decodeWarp(Decoder &d, StringRef opcode) {
  const auto &o = d.s->operands;
  if (opcode == "bar" && d.has("warp")) {
    d.take("warp");
    d.take("sync");
    d.inst.fn = &warpSync;
    return d.count(1) && d.src(o[0], Ty::B32);
  }
  if (opcode == "activemask") {
    d.inst.fn = &activemask;
    return d.takeType() == Ty::B32 && d.count(1) && d.dst(o[0], Ty::B32);
  }
  if (opcode != "shfl" && opcode != "vote" && opcode != "match" && opcode != "elect" &&
      opcode != "redux")
    return false;
  if (!d.take("sync"))
    return d.refuse("only the .sync form is modelled");
  unsigned dsts = d.s->pairedFirst ? 2 : 1;
  if (opcode == "shfl")
    return decodeShuffle(d, dsts);
  if (opcode == "vote")
    return decodeVote(d);
  if (opcode == "match")
    return decodeMatch(d, dsts);
  if (opcode == "elect") {
    d.inst.fn = &elect;
    return d.count(3) && d.dst(o[0], Ty::B32) && d.dstPred(o[1]) && d.src(o[2], Ty::B32);
  }
  return decodeReduction(d);
}
