//===- ExecWgmma.cpp - Issue of wgmma (PTX ISA 9.7.15) --------------------===//
//
// A wgmma is an operation of a warpgroup: it starts when its four warps have executed it, reads its
// operands when it runs, and is known to be complete after wgmma.wait_group. Here are decoding and
// issue, with the register checks; WgmmaEngine.cpp computes.
//
//===----------------------------------------------------------------------===//
#include "lib/Simulator/Async.h"
#include "lib/Simulator/Lanes.h"
#include "lib/Simulator/Wgmma.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;
using llvm::StringRef;

namespace {

// Operands: accumulators (destinations), A (registers or descriptor), B descriptor, scale-d
// predicate.

/// Registers that other instructions changed must pass a wgmma.fence before wgmma reads them.
void checkOperands(Exec &exec, const Inst &inst, const WgmmaInfo &info, bool accumulate) {
  Warp &w = *exec.warp;
  auto inFlight = [&](int reg, const char *what) {
    exec.report(DiagKind::RegisterInFlight, inst,
                llvm::formatv("{0} is {1} of a wgmma that has not been waited for",
                              exec.p->regName(reg), what)
                    .str());
  };
  bool fenceReported = w.wgmmaFences > 1 ? false : true;
  if (w.wgmmaFences <= 1)
    exec.report(DiagKind::MissingWgmmaFence, inst,
                "the first wgmma of the warp has no wgmma.fence before it");
  auto check = [&](int reg, bool isAcc) {
    if (reg < 0)
      return;
    RegMeta &m = w.meta[reg];
    bool needed = !isAcc || accumulate;
    if (needed && m.init != kAllLanes)
      exec.report(DiagKind::UninitialisedRegister, inst,
                  llvm::formatv("{0} {1} has not been written",
                                isAcc ? "accumulator" : "A register", exec.p->regName(reg))
                      .str(),
                  llvm::countr_zero(~m.init));
    if (m.fence == w.wgmmaFences && !fenceReported) {
      fenceReported = true;
      exec.report(
          DiagKind::MissingWgmmaFence, inst,
          llvm::formatv("{0} was changed after the last wgmma.fence", exec.p->regName(reg)).str());
    }
    if (isAcc && m.flightA)
      inFlight(reg, "an A operand");
    if (!isAcc && m.flightAcc)
      inFlight(reg, "an accumulator");
  };
  for (unsigned k = 0; k < info.accRegs; ++k)
    check(exec.op(inst, k).reg, true);
  for (unsigned k = 0; k < info.aRegs; ++k)
    check(exec.op(inst, info.accRegs + k).reg, false);
}

void mark(Exec &exec, const Inst &inst, const WgmmaInfo &info, uint32_t sequence) {
  Warp &w = *exec.warp;
  auto mark = [&](int reg, bool isAcc) {
    if (reg < 0)
      return;
    RegMeta &m = w.meta[reg];
    if (!m.flightAcc && !m.flightA)
      w.flightRegs.push_back(reg);
    (isAcc ? m.flightAcc : m.flightA) = sequence;
    if (isAcc)
      m.init = kAllLanes;
  };
  for (unsigned k = 0; k < info.accRegs; ++k)
    mark(exec.op(inst, k).reg, true);
  for (unsigned k = 0; k < info.aRegs; ++k)
    mark(exec.op(inst, info.accRegs + k).reg, false);
}

bool uniform(Exec &exec, const Inst &inst, const uint64_t *v, const char *what) {
  for (unsigned lane = 1; lane < kLanes; ++lane)
    if (v[lane] != v[0]) {
      exec.report(DiagKind::BadDescriptor, inst,
                  llvm::formatv("the descriptor of {0} differs between lanes", what).str(), lane);
      return false;
    }
  return true;
}

Step issueWgmma(Exec &exec, const Inst &inst) {
  const WgmmaInfo &info = exec.p->wgmmas[inst.aux];
  Warp &w = *exec.warp;
  Warpgroup &g = exec.cta->groups[w.index / 4];
  uint32_t scale = exec.pred(inst, inst.opCount - 1);
  if (scale != 0 && scale != kAllLanes)
    exec.report(DiagKind::InvalidOperation, inst, "scale-d differs between lanes");
  if (exec.run->options->checkRegisters)
    checkOperands(exec, inst, info, scale != 0);
  uint64_t index = w.wgmmaIssued++ - g.firstSeq;
  if (index == g.ops.size()) {
    g.ops.emplace_back();
    g.ops.back().inst = &inst;
  }
  WgmmaOp &op = g.ops[index];
  if (op.inst != &inst)
    exec.report(DiagKind::WarpgroupMismatch, inst,
                "another warp of the warpgroup executes the wgmma at " +
                    describeSite(*exec.run, op.inst - exec.p->insts.data()) +
                    " in the same place of the sequence");
  unsigned k = w.index % 4;
  if (info.aRegs == 0) {
    const uint64_t *a = exec.src<uint64_t>(inst, info.accRegs);
    uniform(exec, inst, a, "A");
    op.descA[k] = a[0];
  }
  const uint64_t *b = exec.src<uint64_t>(inst, inst.opCount - 2);
  uniform(exec, inst, b, "B");
  op.descB[k] = b[0];
  op.scaleD[k] = scale & 1;
  if (!op.hasClock)
    op.order = w.clock;
  else
    op.order.meet(w.clock);
  op.hasClock = true;
  op.issued |= 1u << k;
  mark(exec, inst, info, uint32_t(w.wgmmaIssued));
  w.release();
  return Step::Next;
}

Step fence(Exec &exec, const Inst &) {
  ++exec.warp->wgmmaFences;
  return Step::Next;
}

Step commitWgmma(Exec &exec, const Inst &) {
  exec.warp->wgmmaGroups.push_back(exec.warp->wgmmaIssued);
  return Step::Next;
}

Step waitWgmmaGroup(Exec &exec, const Inst &inst) {
  Warp &w = *exec.warp;
  size_t n = w.wgmmaGroups.size();
  uint64_t need = n > size_t(inst.imm) ? w.wgmmaGroups[n - 1 - inst.imm] : 0;
  if (need <= w.wgmmaWaited)
    return Step::Next;
  exec.split->wait.kind = Wait::Wgmma;
  exec.split->wait.value = need;
  return Step::Block;
}

bool parseShape(StringRef s, WgmmaInfo &info) { // m64nNkK
  unsigned n, k;
  auto parts = s.split('k');
  if (!s.starts_with("m64n") || parts.first.drop_front(4).getAsInteger(10, n) ||
      parts.second.getAsInteger(10, k))
    return false;
  info.n = n;
  info.k = k;
  return n >= 8 && n <= 256 && n % 8 == 0;
}

bool takeOperandType(Decoder &d, uint8_t &out) {
  if (d.mods.empty())
    return false;
  int t = llvm::StringSwitch<int>(d.mods.front())
              .Case("f16", int(WgmmaType::F16))
              .Case("bf16", int(WgmmaType::BF16))
              .Case("tf32", int(WgmmaType::TF32))
              .Case("e4m3", int(WgmmaType::E4M3))
              .Case("e5m2", int(WgmmaType::E5M2))
              .Default(-1);
  if (t < 0)
    return d.refuse("with operands of type ." + d.mods.front() + " is not modelled");
  out = uint8_t(t);
  d.mods.erase(d.mods.begin());
  return true;
}

bool decodeMma(Decoder &d) {
  WgmmaInfo info;
  StringRef shape;
  if (!d.takePrefix("m64n", shape) || !parseShape(shape, info))
    return d.refuse("with this shape is not modelled");
  if (d.take("sp"))
    return d.refuse("sparse operands are not modelled");
  Ty acc = d.takeType();
  if (acc == Ty::F16)
    info.accF16 = true;
  else if (acc != Ty::F32)
    return d.refuse("with this accumulator type is not modelled");
  if (!takeOperandType(d, info.typeA) || !takeOperandType(d, info.typeB))
    return d.refuse("needs two operand types");
  unsigned bytes = wgmmaTypeBytes(WgmmaType(info.typeA));
  bool halves = bytes == 2;
  if (wgmmaTypeBytes(WgmmaType(info.typeB)) != bytes || info.k * bytes != 32 ||
      (bytes != 1 && info.typeA != info.typeB) || (info.accF16 && bytes == 4) ||
      (info.accF16 && WgmmaType(info.typeA) == WgmmaType::BF16))
    return d.refuse("with this combination of types and shape does not exist");
  const auto &o = d.s->operands;
  info.accRegs = info.accF16 ? info.n / 4 : info.n / 2;
  if (o.size() < 6)
    return d.refuse("has too few operands");
  info.aInRegs = o[1].kind == Operand::Vector;
  info.aRegs = info.aInRegs ? 4 : 0;
  if (!d.count(halves ? (info.aInRegs ? 7 : 8) : 6))
    return false;
  if (!d.vectorOf(o[0], info.accRegs, info.accF16 ? Ty::B32 : Ty::F32, true))
    return false;
  if (!(info.aInRegs ? d.vectorOf(o[1], 4, Ty::B32, false) : d.src(o[1], Ty::B64)))
    return false;
  if (!d.src(o[2], Ty::B64) || !d.srcPred(o[3]))
    return false;
  int64_t imm[4] = {1, 1, 0, 0};
  for (unsigned k = 4; k < o.size(); ++k)
    if (!d.immediate(o[k], imm[k - 4]))
      return false;
  if ((imm[0] != 1 && imm[0] != -1) || (imm[1] != 1 && imm[1] != -1))
    return d.refuse("scale-a and scale-b must be 1 or -1");
  info.scaleA = imm[0];
  info.scaleB = imm[1];
  if (halves && info.aInRegs) {
    info.transB = imm[2];
  } else if (halves) {
    info.transA = imm[2];
    info.transB = imm[3];
  }
  d.inst.aux = d.p.wgmmas.size();
  d.p.wgmmas.push_back(info);
  d.inst.fn = &issueWgmma;
  d.inst.flags |= FlagAligned | FlagOwnCheck | FlagCounted;
  return true;
}

} // namespace

void tessera::sim::detail::clearFlight(Warp &w, uint64_t completed) {
  size_t kept = 0;
  for (uint32_t reg : w.flightRegs) {
    RegMeta &m = w.meta[reg];
    if (m.flightAcc && m.flightAcc <= completed)
      m.flightAcc = 0;
    if (m.flightA && m.flightA <= completed)
      m.flightA = 0;
    if (m.flightAcc || m.flightA)
      w.flightRegs[kept++] = reg;
  }
  w.flightRegs.resize(kept);
}

void tessera::sim::detail::finishWgmmaWait(Cluster &, Warp &w, uint64_t count) {
  w.wgmmaWaited = std::max(w.wgmmaWaited, count);
  w.clock.see(w.cta->groups[w.index / 4].agent, uint32_t(count));
  clearFlight(w, count);
}

bool tessera::sim::detail::decodeWgmma(Decoder &d, StringRef opcode) {
  if (opcode != "wgmma")
    return false;
  if (!d.take("sync") || !d.take("aligned"))
    return d.refuse("needs .sync.aligned");
  d.inst.flags |= FlagAligned | FlagCounted;
  if (d.take("mma_async"))
    return decodeMma(d);
  if (d.take("fence")) {
    d.inst.fn = &fence;
    return d.count(0);
  }
  if (d.take("commit_group")) {
    d.inst.fn = &commitWgmma;
    return d.count(0);
  }
  if (d.take("wait_group")) {
    d.inst.fn = &waitWgmmaGroup;
    return d.count(1) && d.immediate(d.s->operands[0], d.inst.imm);
  }
  return d.refuse("in this form is not modelled");
}
