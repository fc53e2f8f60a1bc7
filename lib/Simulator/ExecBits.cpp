//===- ExecBits.cpp - Logic, shifts and bit fields (PTX ISA 9.7.1, 9.7.8) -===//
#include "lib/Simulator/Lanes.h"
#include "llvm/ADT/bit.h"

using namespace tessera::sim::detail;
using llvm::StringRef;

namespace {

template <class C>
struct And {
  static C f(C a, C b) { return a & b; }
};
template <class C>
struct Or {
  static C f(C a, C b) { return a | b; }
};
template <class C>
struct Xor {
  static C f(C a, C b) { return a ^ b; }
};
template <class C>
struct Not {
  static C f(C a) { return ~a; }
};
template <class C>
struct Cnot {
  static C f(C a) { return a == 0; }
};
/// Shift amounts are 32-bit and clamp to the width.
template <class C>
struct Shl {
  static C f(C a, uint32_t b) {
    return b >= 8 * sizeof(C) ? 0 : C(std::make_unsigned_t<C>(a) << b);
  }
};
template <class C>
struct Shr {
  static C f(C a, uint32_t b) {
    uint32_t width = 8 * sizeof(C);
    if (b >= width)
      return std::is_signed_v<C> && a < 0 ? C(-1) : C(0);
    return a >> b;
  }
};
template <class C>
struct Popc {
  static uint32_t f(C a) { return llvm::popcount(std::make_unsigned_t<C>(a)); }
};
template <class C>
struct Clz {
  static uint32_t f(C a) { return llvm::countl_zero(std::make_unsigned_t<C>(a)); }
};
template <class C>
struct Brev {
  static C f(C a) {
    C r = 0;
    for (unsigned i = 0; i < 8 * sizeof(C); ++i)
      r |= C(a >> i & 1) << (8 * sizeof(C) - 1 - i);
    return r;
  }
};
/// Position of the most significant bit that differs from the sign; all ones when there is none.
template <class C, bool Shift>
struct Bfind {
  static uint32_t f(C a) {
    using V = std::make_unsigned_t<C>;
    V v = std::is_signed_v<C> && a < 0 ? ~V(a) : V(a);
    if (!v)
      return ~0u;
    uint32_t z = llvm::countl_zero(v);
    return Shift ? z : 8 * sizeof(C) - 1 - z;
  }
};
template <class C>
struct Bfe {
  static C f(C a, uint32_t b, uint32_t c) {
    using V = std::make_unsigned_t<C>;
    uint32_t width = 8 * sizeof(C), pos = b & 255, len = c & 255;
    if (len == 0)
      return 0;
    bool isSigned = std::is_signed_v<C>;
    uint32_t top = std::min(pos + len - 1, width - 1);
    bool sign = isSigned && (V(a) >> top & 1);
    V r = pos >= width ? 0 : V(a) >> pos;
    // Bits of the field that exist; the rest is the sign.
    uint32_t have = pos >= width ? 0 : std::min(len, width - pos);
    V mask = have >= width ? ~V(0) : (V(1) << have) - 1;
    r &= mask;
    return sign ? C(r | ~mask) : C(r);
  }
};
template <class C>
Step bfi(Exec &exec, const Inst &inst) {
  using S = typename Lane<C>::Storage;
  const S *a = exec.src<S>(inst, 1), *b = exec.src<S>(inst, 2);
  const uint32_t *c = exec.src<uint32_t>(inst, 3), *len = exec.src<uint32_t>(inst, 4);
  S r[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    uint32_t pos = c[lane] & 255, n = len[lane] & 255, width = 8 * sizeof(C);
    if (pos >= width || n == 0) {
      r[lane] = b[lane];
      continue;
    }
    C ones = n >= width ? ~C(0) : (C(1) << n) - 1;
    C mask = ones << pos;
    r[lane] = (b[lane] & ~mask) | ((a[lane] << pos) & mask);
  }
  exec.store(inst, 0, r);
  return Step::Next;
}
Step lop3(Exec &exec, const Inst &inst) {
  const uint32_t *a = exec.src<uint32_t>(inst, 1), *b = exec.src<uint32_t>(inst, 2),
                 *c = exec.src<uint32_t>(inst, 3);
  uint32_t r[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    uint32_t v = 0;
    for (unsigned k = 0; k < 8; ++k)
      if (inst.imm >> k & 1)
        v |= (k & 4 ? a[lane] : ~a[lane]) & (k & 2 ? b[lane] : ~b[lane]) &
             (k & 1 ? c[lane] : ~c[lane]);
    r[lane] = v;
  }
  exec.store(inst, 0, r);
  return Step::Next;
}
template <bool Left, bool Clamp>
struct Shf {
  static uint32_t f(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t n = Clamp ? std::min(c, 32u) : c & 31;
    uint64_t v = uint64_t(b) << 32 | a;
    return Left ? uint32_t((v << n) >> 32) : uint32_t(v >> n);
  }
};
/// prmt: select 0 is the default mode, 1.. f4e b4e rc8 ecl ecr rc16.
uint32_t permute(uint32_t a, uint32_t b, uint32_t c, unsigned mode) {
  uint64_t bytes = uint64_t(b) << 32 | a;
  auto at = [&](unsigned k) { return uint32_t(bytes >> (8 * (k & 7)) & 255); };
  uint32_t r = 0;
  for (unsigned k = 0; k < 4; ++k) {
    uint32_t v = 0, n = c & 3;
    switch (mode) {
    case 0: {
      uint32_t sel = c >> (4 * k) & 15;
      v = at(sel & 7);
      if (sel & 8)
        v = v & 128 ? 255 : 0;
      break;
    }
    case 1:
      v = at(n + k);
      break;
    case 2:
      v = at(n + 8 - k);
      break;
    case 3:
      v = at(n);
      break;
    case 4:
      v = at(std::max(k, n));
      break;
    case 5:
      v = at(std::min(k, n));
      break;
    case 6:
      v = at((c & 1) * 2 + (k & 1));
      break;
    }
    r |= v << (8 * k);
  }
  return r;
}
Step prmt(Exec &exec, const Inst &inst) {
  const uint32_t *a = exec.src<uint32_t>(inst, 1), *b = exec.src<uint32_t>(inst, 2),
                 *c = exec.src<uint32_t>(inst, 3);
  uint32_t r[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    r[lane] = permute(a[lane], b[lane], c[lane], inst.select);
  exec.store(inst, 0, r);
  return Step::Next;
}

enum PredOp : uint32_t { PredAnd, PredOr, PredXor, PredNot };
Step predLogic(Exec &exec, const Inst &inst) {
  uint32_t a = exec.pred(inst, 1), b = inst.opCount > 2 ? exec.pred(inst, 2) : 0, r = 0;
  switch (inst.select) {
  case PredAnd:
    r = a & b;
    break;
  case PredOr:
    r = a | b;
    break;
  case PredXor:
    r = a ^ b;
    break;
  case PredNot:
    r = ~a;
    break;
  }
  exec.storePred(inst, 0, r);
  return Step::Next;
}

template <template <class> class O>
Handler pickBinary(Ty ty) {
  return forInteger(ty, [](auto v) -> Handler {
    using C = decltype(v);
    return &binary<C, C, C, O<C>>;
  });
}
template <template <class> class O>
Handler pickShift(Ty ty) {
  return forInteger(ty, [](auto v) -> Handler {
    using C = decltype(v);
    return &binary<C, C, uint32_t, O<C>>;
  });
}
template <template <class> class O>
Handler pickCount(Ty ty) {
  switch (tyBits(ty)) {
  case 32:
    return &unary<uint32_t, uint32_t, O<uint32_t>>;
  case 64:
    return &unary<uint32_t, uint64_t, O<uint64_t>>;
  default:
    return nullptr;
  }
}

} // namespace

static bool done(Decoder &d, Handler h) {
  if (!h)
    return d.refuse("with this type is not modelled");
  d.inst.fn = h;
  return true;
}

/// Marks an operation on 32 bits that a literal makes one on half of them: a mask, or a shift.
static void markHalf(Decoder &d, Ty ty, bool isLow, bool isHigh) {
  if (tyBits(ty) == 32)
    d.inst.flags |= (isLow ? FlagReadsLow : 0) | (isHigh ? FlagReadsHigh : 0);
}

/// Marks the choice of bytes whose literal selector takes those of registers from one half alone.
static void markPicked(Decoder &d, Ty ty, llvm::ArrayRef<Operand> o) {
  if (o[3].kind != Operand::Int)
    return;
  bool isLow = true, isHigh = true;
  for (unsigned k = 0; k < 4; ++k) {
    unsigned byte = o[3].bits >> (4 * k) & 7;
    if (o[byte < 4 ? 1 : 2].kind != Operand::Reg)
      continue;
    isLow &= byte % 4 < 2;
    isHigh &= byte % 4 >= 2;
  }
  if (isLow != isHigh)
    markHalf(d, ty, isLow, isHigh);
}

static bool decodeLogic(Decoder &d, StringRef opcode) {
  Ty ty = d.takeType();
  const auto &o = d.s->operands;
  unsigned n = opcode == "not" || opcode == "cnot" ? 1 : 2;
  if (!d.count(n + 1))
    return false;
  if (ty == Ty::Pred) {
    if (opcode == "cnot")
      return d.refuse("with this type is not modelled");
    d.inst.select = opcode == "and"   ? PredAnd
                    : opcode == "or"  ? PredOr
                    : opcode == "xor" ? PredXor
                                      : PredNot;
    return d.dstPred(o[0]) && d.srcPred(o[1]) && (n == 1 || d.srcPred(o[2])) && done(d, &predLogic);
  }
  if (!d.dst(o[0], ty) || !d.src(o[1], ty) || (n == 2 && !d.src(o[2], ty)))
    return false;
  if (opcode == "and") {
    const Operand &mask = o[2];
    if (mask.kind == Operand::Int && uint32_t(mask.bits))
      markHalf(d, ty, !(uint32_t(mask.bits) >> 16), !uint16_t(mask.bits));
    return done(d, pickBinary<And>(ty));
  }
  if (opcode == "or")
    return done(d, pickBinary<Or>(ty));
  if (opcode == "xor")
    return done(d, pickBinary<Xor>(ty));
  return done(d, forInteger(ty, [&](auto v) -> Handler {
                using C = decltype(v);
                return opcode == "not" ? Handler(&unary<C, C, Not<C>>)
                                       : Handler(&unary<C, C, Cnot<C>>);
              }));
}

static bool decodeFields(Decoder &d, StringRef opcode) {
  const auto &o = d.s->operands;
  if (opcode == "bfind") {
    bool shift = d.take("shiftamt");
    Ty ty = d.takeType();
    if (tyBits(ty) < 32 || !d.count(2) || !d.dst(o[0], Ty::U32) || !d.src(o[1], ty))
      return d.refuse("with this type is not modelled");
    return done(d, forInteger(ty, [&](auto v) -> Handler {
                  using C = decltype(v);
                  return shift ? Handler(&unary<uint32_t, C, Bfind<C, true>>)
                               : Handler(&unary<uint32_t, C, Bfind<C, false>>);
                }));
  }
  Ty ty = d.takeType();
  if (tyBits(ty) != 32 && tyBits(ty) != 64)
    return d.refuse("with this type is not modelled");
  if (opcode == "bfe") {
    if (!d.count(4) || !d.dst(o[0], ty) || !d.src(o[1], ty) || !d.src(o[2], Ty::U32) ||
        !d.src(o[3], Ty::U32))
      return false;
    return done(d, forInteger(ty, [](auto v) -> Handler {
                  using C = decltype(v);
                  return &ternary<C, C, uint32_t, uint32_t, Bfe<C>>;
                }));
  }
  if (!d.count(5) || !d.dst(o[0], ty) || !d.src(o[1], ty) || !d.src(o[2], ty) ||
      !d.src(o[3], Ty::U32) || !d.src(o[4], Ty::U32))
    return false;
  return done(d, tyBits(ty) == 32 ? &bfi<uint32_t> : &bfi<uint64_t>);
}

bool tessera::sim::detail::decodeBits(Decoder &d, StringRef opcode) {
  const auto &o = d.s->operands;
  if (opcode == "and" || opcode == "or" || opcode == "xor" || opcode == "not" || opcode == "cnot")
    return decodeLogic(d, opcode);
  if (opcode == "bfe" || opcode == "bfi" || opcode == "bfind")
    return decodeFields(d, opcode);
  if (opcode == "shl" || opcode == "shr") {
    Ty ty = d.takeType();
    if (!d.count(3) || !d.dst(o[0], ty) || !d.src(o[1], ty) || !d.src(o[2], Ty::U32))
      return false;
    bool isLeft = opcode == "shl";
    if (o[2].kind == Operand::Int && o[2].bits >= 16)
      markHalf(d, ty, isLeft, !isLeft);
    return done(d, isLeft ? pickShift<Shl>(ty) : pickShift<Shr>(ty));
  }
  if (opcode == "popc" || opcode == "clz" || opcode == "brev") {
    Ty ty = d.takeType();
    if (!d.count(2) || !d.dst(o[0], opcode == "brev" ? ty : Ty::U32) || !d.src(o[1], ty))
      return false;
    if (opcode == "brev")
      return done(d, tyBits(ty) == 32   ? &unary<uint32_t, uint32_t, Brev<uint32_t>>
                     : tyBits(ty) == 64 ? &unary<uint64_t, uint64_t, Brev<uint64_t>>
                                        : nullptr);
    return done(d, opcode == "popc" ? pickCount<Popc>(ty) : pickCount<Clz>(ty));
  }
  if (opcode == "lop3") {
    if (d.has("or") || d.has("and"))
      return d.refuse("the form with a predicate is not modelled");
    Ty ty = d.takeType();
    int64_t lut;
    if (ty != Ty::B32 || !d.count(5) || !d.immediate(o[4], lut))
      return d.refuse("with this type is not modelled");
    d.inst.imm = lut;
    return d.dst(o[0], ty) && d.src(o[1], ty) && d.src(o[2], ty) && d.src(o[3], ty) &&
           done(d, &lop3);
  }
  if (opcode == "shf") {
    bool left = d.take("l"), right = d.take("r"), clamp = d.take("clamp"), wrap = d.take("wrap");
    Ty ty = d.takeType();
    if (left == right || clamp == wrap || ty != Ty::B32)
      return d.refuse("needs .l or .r and .clamp or .wrap");
    if (!d.count(4) || !d.dst(o[0], ty) || !d.src(o[1], ty) || !d.src(o[2], ty) || !d.src(o[3], ty))
      return false;
    using T = uint32_t;
    return done(d, left ? (clamp ? &ternary<T, T, T, T, Shf<true, true>>
                                 : &ternary<T, T, T, T, Shf<true, false>>)
                        : (clamp ? &ternary<T, T, T, T, Shf<false, true>>
                                 : &ternary<T, T, T, T, Shf<false, false>>));
  }
  if (opcode == "prmt") {
    Ty ty = d.takeType();
    static const char *modes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
    for (unsigned m = 0; m < 6; ++m)
      if (d.take(modes[m]))
        d.inst.select = m + 1;
    if (ty != Ty::B32 || !d.count(4))
      return d.refuse("with this type is not modelled");
    if (!d.inst.select)
      markPicked(d, ty, o);
    return d.dst(o[0], ty) && d.src(o[1], ty) && d.src(o[2], ty) && d.src(o[3], ty) &&
           done(d, &prmt);
  }
  return false;
}
