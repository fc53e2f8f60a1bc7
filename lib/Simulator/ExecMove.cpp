//===- ExecMove.cpp - mov, cvta, isspacep, mapa, getctarank (PTX ISA 9.7.9) ===//
#include "lib/Simulator/Lanes.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;
using llvm::StringRef;

namespace {

template <class S>
Step move(Exec &exec, const Inst &inst) {
  exec.store(inst, 0, exec.src<S>(inst, 1));
  return Step::Next;
}
Step movePred(Exec &exec, const Inst &inst) {
  exec.storePred(inst, 0, exec.pred(inst, 1));
  return Step::Next;
}
struct U128 {
  uint64_t lo, hi;
};

/// Concatenates opCount - 1 parts into a destination of `select` bits.
Step pack(Exec &exec, const Inst &inst) {
  unsigned parts = inst.opCount - 1, bits = inst.select / parts;
  uint64_t r[kLanes] = {};
  for (unsigned k = 0; k < parts; ++k) {
    if (bits == 32) {
      const uint32_t *a = exec.src<uint32_t>(inst, k + 1);
      for (unsigned lane = 0; lane < kLanes; ++lane)
        r[lane] |= uint64_t(a[lane]) << (32 * k);
    } else {
      const uint32_t *a = exec.src<uint32_t>(inst, k + 1);
      uint32_t mask = (1u << bits) - 1;
      for (unsigned lane = 0; lane < kLanes; ++lane)
        r[lane] |= uint64_t(a[lane] & mask) << (bits * k);
    }
  }
  if (inst.select == 64) {
    exec.store(inst, 0, r);
    return Step::Next;
  }
  uint32_t small[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    small[lane] = uint32_t(r[lane]);
  exec.store(inst, 0, small);
  return Step::Next;
}

Step unpack(Exec &exec, const Inst &inst) {
  unsigned parts = inst.opCount - 1, bits = inst.select / parts;
  uint64_t v[kLanes];
  if (inst.select == 64) {
    const uint64_t *a = exec.src<uint64_t>(inst, parts);
    std::copy(a, a + kLanes, v);
  } else {
    const uint32_t *a = exec.src<uint32_t>(inst, parts);
    std::copy(a, a + kLanes, v);
  }
  for (unsigned k = 0; k < parts; ++k) {
    uint32_t r[kLanes];
    uint64_t mask = (1ull << bits) - 1;
    for (unsigned lane = 0; lane < kLanes; ++lane)
      r[lane] = uint32_t(v[lane] >> (bits * k) & mask);
    exec.store(inst, k, r);
  }
  return Step::Next;
}
Step pack128(Exec &exec, const Inst &inst) {
  const uint64_t *a = exec.src<uint64_t>(inst, 1), *b = exec.src<uint64_t>(inst, 2);
  U128 r[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    r[lane] = {a[lane], b[lane]};
  exec.store(inst, 0, r);
  return Step::Next;
}
Step unpack128(Exec &exec, const Inst &inst) {
  const U128 *a = exec.src<U128>(inst, 2);
  uint64_t lo[kLanes], hi[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    lo[lane] = a[lane].lo;
    hi[lane] = a[lane].hi;
  }
  exec.store(inst, 0, lo);
  exec.store(inst, 1, hi);
  return Step::Next;
}

/// The clocks count warp instructions of the cluster: they only ever grow, which is all a program
/// may rely on.
Step readClock(Exec &exec, const Inst &inst) {
  uint64_t now = exec.cluster->instructions + 1;
  if (SpecialReg(inst.select) == SpecialReg::GlobalTimerHi)
    now >>= 32;
  uint64_t wide[kLanes];
  uint32_t narrow[kLanes];
  std::fill(wide, wide + kLanes, now);
  std::fill(narrow, narrow + kLanes, uint32_t(now));
  if (exec.op(inst, 0).cls == RegClass::R64)
    exec.store(inst, 0, wide);
  else
    exec.store(inst, 0, narrow);
  return Step::Next;
}

/// Adds `imm` to an address: cvta in either direction.
Step addWindow(Exec &exec, const Inst &inst) {
  const uint64_t *a = exec.src<uint64_t>(inst, 1);
  uint64_t r[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    r[lane] = a[lane] + uint64_t(inst.imm);
  exec.store(inst, 0, r);
  return Step::Next;
}

Step isspacep(Exec &exec, const Inst &inst) {
  const uint64_t *a = exec.src<uint64_t>(inst, 1);
  uint32_t r = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    uint64_t window = a[lane] - a[lane] % kWindowBytes;
    bool v = false;
    switch (Space(inst.select)) {
    case Space::Shared:
      v = window == kSharedWindow;
      if (v && inst.aux) // shared::cta: only this CTA's part of the window
        v = (a[lane] >> kRankShift & 255) == exec.cta->rank;
      break;
    case Space::Local:
      v = window == kLocalWindow;
      break;
    case Space::Param:
      v = window == kParamWindow;
      break;
    default:
      v = window != kSharedWindow && window != kLocalWindow && window != kParamWindow;
    }
    r |= uint32_t(v) << lane;
  }
  exec.storePred(inst, 0, r);
  return Step::Next;
}

/// mapa: the same place in the shared memory of CTA `b` of the cluster (PTX ISA 9.7.9.23).
template <class S>
Step mapa(Exec &exec, const Inst &inst) {
  const S *a = exec.src<S>(inst, 1);
  const uint32_t *b = exec.src<uint32_t>(inst, 2);
  S r[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (exec.isActive(lane) && b[lane] >= exec.cluster->ctas.size())
      exec.report(DiagKind::InvalidOperation, inst,
                  "mapa to CTA " + llvm::Twine(b[lane]) + " of a cluster of " +
                      llvm::Twine(exec.cluster->ctas.size()),
                  lane);
    r[lane] = (a[lane] & ~(S(255) << kRankShift)) | S(b[lane] & 255) << kRankShift;
  }
  exec.store(inst, 0, r);
  return Step::Next;
}
template <class S>
Step getctarank(Exec &exec, const Inst &inst) {
  const S *a = exec.src<S>(inst, 1);
  uint32_t r[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    r[lane] = a[lane] >> kRankShift & 255;
  exec.store(inst, 0, r);
  return Step::Next;
}

Space takeSpace(Decoder &d, bool &ctaOnly) {
  ctaOnly = false;
  if (d.take("shared::cta")) {
    ctaOnly = true;
    return Space::Shared;
  }
  if (d.take("shared") || d.take("shared::cluster"))
    return Space::Shared;
  if (d.take("global"))
    return Space::Global;
  if (d.take("local"))
    return Space::Local;
  if (d.take("const"))
    return Space::Const;
  if (d.take("param") || d.take("param::entry"))
    return Space::Param;
  return Space::Generic;
}

} // namespace

static bool decodeMov(Decoder &d) {
  Ty ty = d.takeType();
  const auto &o = d.s->operands;
  d.inst.flags |= FlagCopies;
  if (!d.count(2))
    return false;
  auto finish = [&](Handler h) {
    d.inst.fn = h;
    return true;
  };
  if (ty == Ty::Pred)
    return d.dstPred(o[0]) && d.srcPred(o[1]) && finish(&movePred);
  unsigned bits = tyBits(ty);
  if (bits < 8)
    return d.refuse("with this type is not modelled");
  if (o[0].kind == Operand::Vector || o[1].kind == Operand::Vector) {
    bool packing = o[1].kind == Operand::Vector;
    unsigned n = (packing ? o[1] : o[0]).elems.size();
    unsigned part = n ? bits / n : 0;
    Ty partTy = part == 8    ? Ty::B8
                : part == 16 ? Ty::B16
                : part == 32 ? Ty::B32
                : part == 64 ? Ty::B64
                             : Ty::None;
    if (partTy == Ty::None || part * n != bits)
      return d.refuse("a vector of the wrong size");
    d.inst.select = bits;
    if (bits == 32 && part == 16)
      d.inst.flags |= packing ? FlagPacksHalves : FlagUnpacksHalves;
    if (packing)
      return d.dst(o[0], ty) && d.vectorOf(o[1], n, partTy, false) &&
             finish(bits == 128 ? &pack128 : &pack);
    return d.vectorOf(o[0], n, partTy, true) && d.src(o[1], ty) &&
           finish(bits == 128 ? &unpack128 : &unpack);
  }
  if (o[1].kind == Operand::Special &&
      (o[1].name.starts_with("%clock") || o[1].name.starts_with("%globaltimer"))) {
    if (!d.dst(o[0], ty) || !d.src(o[1], ty))
      return false;
    for (const HiddenReg &h : d.p.hidden)
      if (h.reg == d.ops.back().reg)
        d.inst.select = uint32_t(h.what);
    return finish(&readClock);
  }
  if (!d.dst(o[0], ty) || !d.src(o[1], ty))
    return false;
  d.inst.flags |= FlagRename;
  return finish(bits == 64 ? &move<uint64_t> : bits == 128 ? &move<U128> : &move<uint32_t>);
}

bool tessera::sim::detail::decodeMove(Decoder &d, StringRef opcode) {
  const auto &o = d.s->operands;
  if (opcode == "mov")
    return decodeMov(d);
  bool ctaOnly;
  if (opcode == "cvta") {
    bool to = d.take("to");
    Space space = takeSpace(d, ctaOnly);
    Ty ty = d.takeType();
    if (ty != Ty::U64 || space == Space::Generic || !d.count(2))
      return d.refuse("only 64-bit addresses are modelled");
    if (!d.dst(o[0], ty) || !d.src(o[1], ty))
      return false;
    uint64_t window = space == Space::Shared  ? kSharedWindow
                      : space == Space::Local ? kLocalWindow
                      : space == Space::Param ? kParamWindow
                                              : 0;
    d.inst.imm = to ? -int64_t(window) : int64_t(window);
    d.inst.fn = &addWindow;
    return true;
  }
  if (opcode == "isspacep") {
    Space space = takeSpace(d, ctaOnly);
    d.inst.select = uint32_t(space);
    d.inst.aux = ctaOnly;
    d.inst.fn = &isspacep;
    if (space == Space::Const)
      return d.refuse("modifier .const is not modelled here");
    return d.count(2) && d.dstPred(o[0]) && d.src(o[1], Ty::U64);
  }
  if (opcode == "mapa" || opcode == "getctarank") {
    d.take("shared::cluster");
    Ty ty = d.takeType();
    if (ty != Ty::U32 && ty != Ty::U64)
      return d.refuse("with this type is not modelled");
    bool rank = opcode == "getctarank";
    if (!d.count(rank ? 2 : 3) || !d.dst(o[0], rank ? Ty::U32 : ty) || !d.src(o[1], ty))
      return false;
    if (!rank && !d.src(o[2], Ty::U32))
      return false;
    if (rank)
      d.inst.fn = ty == Ty::U64 ? &getctarank<uint64_t> : &getctarank<uint32_t>;
    else
      d.inst.fn = ty == Ty::U64 ? &mapa<uint64_t> : &mapa<uint32_t>;
    return true;
  }
  return false;
}
