//===- ExecConvert.cpp - cvt (PTX ISA 9.7.9.21) ---------------------------===//
//
// Compiled with -frounding-math, like ExecFloat.cpp.
//
//===----------------------------------------------------------------------===//
#include "lib/Simulator/Lanes.h"
#include "lib/Simulator/Numeric.h"
#include <cfenv>
#include <limits>

using namespace tessera::sim::detail;
using llvm::StringRef;

namespace {

// Parts of select: types, rounding, and flags.
using To = BitField<Ty, 0, 8>;
using From = BitField<Ty, 8, 8>;
using Mode = BitField<Rounding, 16, 4>;
using Flags = BitField<uint32_t, 20, 12>;
constexpr uint32_t CFtz = Flags::make(1), CSat = Flags::make(2), CSatFinite = Flags::make(4),
                   CRelu = Flags::make(8), CInteger = Flags::make(16);
Ty dstTy(uint32_t s) { return To::get(s); }
Ty srcTy(uint32_t s) { return From::get(s); }
Rounding rounding(uint32_t s) { return Mode::get(s); }

void storeBits(Exec &exec, const Inst &inst, const uint64_t *r) {
  if (exec.op(inst, 0).cls == RegClass::R64) {
    exec.store(inst, 0, r);
    return;
  }
  uint32_t narrow[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    narrow[lane] = uint32_t(r[lane]);
  exec.store(inst, 0, narrow);
}

int64_t signExtend(uint64_t v, unsigned bits) { return int64_t(v << (64 - bits)) >> (64 - bits); }
uint64_t zeroExtend(uint64_t v, unsigned bits) { return bits == 64 ? v : v & ((1ull << bits) - 1); }

/// A destination register wider than the type is filled by sign or zero extension
/// (section 9.7.9.21, table 29).
uint64_t extendTo(uint64_t v, Ty ty, RegClass cls) {
  unsigned bits = tyBits(ty);
  unsigned have = cls == RegClass::R64   ? 64
                  : cls == RegClass::R32 ? 32
                  : cls == RegClass::R16 ? 16
                                         : 8;
  uint64_t r = tySigned(ty) ? uint64_t(signExtend(v, bits)) : zeroExtend(v, bits);
  return zeroExtend(r, have);
}

Step intToInt(Exec &exec, const Inst &inst) {
  Ty to = dstTy(inst.select), from = srcTy(inst.select);
  unsigned toBits = tyBits(to), fromBits = tyBits(from);
  uint64_t r[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    uint64_t v = exec.word(inst, 1, lane);
    bool fromSigned = tySigned(from);
    v = fromSigned ? uint64_t(signExtend(v, fromBits)) : zeroExtend(v, fromBits);
    if (inst.select & CSat) {
      __int128 x = fromSigned ? __int128(int64_t(v)) : __int128(v);
      __int128 lo = tySigned(to) ? -(__int128(1) << (toBits - 1)) : 0;
      __int128 hi = (__int128(1) << (tySigned(to) ? toBits - 1 : toBits)) - 1;
      v = uint64_t(x < lo ? lo : x > hi ? hi : x);
    }
    r[lane] = extendTo(v, to, exec.op(inst, 0).cls);
  }
  storeBits(exec, inst, r);
  return Step::Next;
}

double toDouble(uint64_t bits, Ty ty, bool ftz) {
  switch (ty) {
  case Ty::F16:
    return f16ToFloat(bits & 0xffff);
  case Ty::BF16:
    return bf16ToFloat(bits & 0xffff);
  case Ty::F32: {
    float f = bitCast<float>(uint32_t(bits));
    return ftz ? flush(f) : f;
  }
  default:
    return bitCast<double>(bits);
  }
}

double roundIntegral(double v, Rounding mode) {
  switch (mode) {
  case Rounding::Zero:
    return std::trunc(v);
  case Rounding::Down:
    return std::floor(v);
  case Rounding::Up:
    return std::ceil(v);
  default:
    return std::nearbyint(v);
  }
}

Step floatToInt(Exec &exec, const Inst &inst) {
  Ty to = dstTy(inst.select), from = srcTy(inst.select);
  unsigned bits = tyBits(to);
  bool isSigned = tySigned(to);
  uint64_t r[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    double v = toDouble(exec.word(inst, 1, lane), from, inst.select & CFtz);
    uint64_t out;
    if (v != v) {
      // NaN gives 0, except for 64-bit results of f32 and f64, which are 2^63.
      out = bits == 64 ? 1ull << 63 : 0;
    } else {
      v = roundIntegral(v, rounding(inst.select));
      double lo = isSigned ? -std::ldexp(1.0, bits - 1) : 0;
      double hi = std::ldexp(1.0, isSigned ? bits - 1 : bits); // exclusive
      if (v < lo)
        v = lo;
      if (v >= hi)
        out = isSigned ? (1ull << (bits - 1)) - 1 : zeroExtend(~0ull, bits);
      else
        out = isSigned ? uint64_t(int64_t(v)) : uint64_t(v);
    }
    r[lane] = extendTo(out, to, exec.op(inst, 0).cls);
  }
  storeBits(exec, inst, r);
  return Step::Next;
}

int hostMode(Rounding mode) {
  return mode == Rounding::Zero   ? FE_TOWARDZERO
         : mode == Rounding::Down ? FE_DOWNWARD
         : mode == Rounding::Up   ? FE_UPWARD
                                  : FE_TONEAREST;
}

/// Saturation to [0, 1]: NaN becomes zero.
double saturate(double v) { return v > 0 ? std::min(v, 1.0) : 0.0; }

uint64_t fromDouble(double v, Ty to, uint32_t select) {
  if (select & CSat)
    v = saturate(v);
  if ((select & CRelu) && v <= 0)
    v = 0; // -0 too
  bool finite = select & CSatFinite;
  switch (to) {
  case Ty::F16:
    return encodeFloat(v, kF16, rounding(select), finite);
  case Ty::BF16:
    return encodeFloat(v, kBF16, rounding(select), finite);
  case Ty::TF32:
    return uint64_t(encodeFloat(v, kTF32, rounding(select), finite)) << 13;
  case Ty::F32: {
    float f =
        srcTy(select) == Ty::F64 ? float(v) : canonical(float(v)); // a double NaN keeps its payload
    return bitCast<uint32_t>(select & CFtz ? flush(f) : f);
  }
  default:
    return bitCast<uint64_t>(v);
  }
}

Step intToFloat(Exec &exec, const Inst &inst) {
  Ty to = dstTy(inst.select), from = srcTy(inst.select);
  unsigned bits = tyBits(from);
  uint64_t r[kLanes];
  Rounding mode = rounding(inst.select);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    uint64_t v = exec.word(inst, 1, lane);
    bool isSigned = tySigned(from);
    v = isSigned ? uint64_t(signExtend(v, bits)) : zeroExtend(v, bits);
    if (to == Ty::F32 || to == Ty::F64) {
      fesetround(hostMode(mode));
      if (to == Ty::F32) {
        volatile float f = isSigned ? float(int64_t(v)) : float(v);
        r[lane] = fromDouble(f, Ty::F32, inst.select);
      } else {
        volatile double f = isSigned ? double(int64_t(v)) : double(v);
        r[lane] = bitCast<uint64_t>(double(f));
      }
      fesetround(FE_TONEAREST);
    } else {
      // Every 16-bit format rounds integers beyond 2^53 the same way after a sticky bit replaces
      // the low ones.
      bool negative = isSigned && int64_t(v) < 0;
      uint64_t m = negative ? 0 - v : v;
      if (m >> 53)
        m = (m & ~0x7ffull) | ((m & 0x7ff) ? 0x400 : 0);
      r[lane] = fromDouble(negative ? -double(m) : double(m), to, inst.select);
    }
  }
  storeBits(exec, inst, r);
  return Step::Next;
}

Step floatToFloat(Exec &exec, const Inst &inst) {
  Ty to = dstTy(inst.select), from = srcTy(inst.select);
  uint64_t r[kLanes];
  fesetround(to == Ty::F32 && from == Ty::F64 ? hostMode(rounding(inst.select)) : FE_TONEAREST);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    double v = toDouble(exec.word(inst, 1, lane), from, inst.select & CFtz);
    if (inst.select & CInteger)
      v = roundIntegral(v, rounding(inst.select));
    r[lane] = fromDouble(v, to, inst.select);
    // Widening bf16 and rounding to tf32 move bits, NaNs included.
    if (v != v && from == Ty::BF16 && to == Ty::F32 && !Flags::get(inst.select))
      r[lane] = (exec.word(inst, 1, lane) & 0xffff) << 16;
    if (v != v && to == Ty::TF32)
      r[lane] = exec.word(inst, 1, lane) & 0xffffe000;
  }
  fesetround(FE_TONEAREST);
  storeBits(exec, inst, r);
  return Step::Next;
}

/// cvt.rn.{f16x2,bf16x2}.f32 d, hi, lo.
Step packFloats(Exec &exec, const Inst &inst) {
  const float *hi = exec.src<float>(inst, 1), *lo = exec.src<float>(inst, 2);
  uint32_t r[kLanes];
  bool bf = dstTy(inst.select) == Ty::BF16x2;
  if (rounding(inst.select) == Rounding::Nearest && !(inst.select & (CRelu | CSatFinite))) {
    if (bf)
      for (unsigned lane = 0; lane < kLanes; ++lane)
        r[lane] = floatToBf16(hi[lane]) << 16 | floatToBf16(lo[lane]);
    else
      for (unsigned lane = 0; lane < kLanes; ++lane)
        r[lane] = floatToF16(hi[lane]) << 16 | floatToF16(lo[lane]);
  } else {
    Ty part = bf ? Ty::BF16 : Ty::F16;
    for (unsigned lane = 0; lane < kLanes; ++lane)
      r[lane] = uint32_t(fromDouble(hi[lane], part, inst.select) << 16 |
                         fromDouble(lo[lane], part, inst.select));
  }
  exec.store(inst, 0, r);
  return Step::Next;
}

uint32_t fp8(double v, uint32_t select) {
  if ((select & CRelu) && v <= 0)
    v = 0; // -0 too
  return encodeFloat(v, dstTy(select) == Ty::E4M3x2 ? kE4M3 : kE5M2, Rounding::Nearest, true);
}
Step packFp8(Exec &exec, const Inst &inst) {
  uint32_t r[kLanes];
  const uint32_t *a = exec.src<uint32_t>(inst, 1);
  const uint32_t *b = inst.opCount > 2 ? exec.src<uint32_t>(inst, 2) : a;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    float hi, lo;
    if (srcTy(inst.select) == Ty::F16x2) {
      hi = f16ToFloat(a[lane] >> 16);
      lo = f16ToFloat(a[lane] & 0xffff);
    } else {
      hi = bitCast<float>(a[lane]);
      lo = bitCast<float>(b[lane]);
    }
    r[lane] = fp8(hi, inst.select) << 8 | fp8(lo, inst.select);
  }
  exec.store(inst, 0, r);
  return Step::Next;
}
Step unpackFp8(Exec &exec, const Inst &inst) {
  const FloatFormat &format = srcTy(inst.select) == Ty::E4M3x2 ? kE4M3 : kE5M2;
  const uint32_t *a = exec.src<uint32_t>(inst, 1);
  uint32_t r[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    uint32_t v = 0;
    for (unsigned k = 0; k < 2; ++k) {
      float f = tessera::sim::detail::decodeFloat(a[lane] >> (8 * k) & 255, format);
      if ((inst.select & CRelu) && f < 0)
        f = 0;
      v |= floatToF16(f) << (16 * k);
    }
    r[lane] = v;
  }
  exec.store(inst, 0, r);
  return Step::Next;
}

bool isFloat(Ty t) { return t == Ty::F16 || t == Ty::BF16 || t == Ty::F32 || t == Ty::F64; }
bool isInt(Ty t) { return (t >= Ty::U8 && t <= Ty::S64); }
bool isFp8(Ty t) { return t == Ty::E4M3x2 || t == Ty::E5M2x2; }

} // namespace

bool tessera::sim::detail::decodeConvert(Decoder &d, StringRef opcode) {
  if (opcode != "cvt")
    return false;
  if (d.has("pack"))
    return d.refuse("modifier .pack is not modelled");
  static const std::pair<const char *, Rounding> modes[] = {{"rn", Rounding::Nearest},
                                                            {"rz", Rounding::Zero},
                                                            {"rm", Rounding::Down},
                                                            {"rp", Rounding::Up},
                                                            {"rna", Rounding::NearestAway}};
  static const std::pair<const char *, Rounding> integral[] = {{"rni", Rounding::Nearest},
                                                               {"rzi", Rounding::Zero},
                                                               {"rmi", Rounding::Down},
                                                               {"rpi", Rounding::Up}};
  Rounding mode = Rounding::Nearest;
  bool rounded = false, toInteger = false;
  for (auto [name, m] : modes)
    if (d.take(name)) {
      mode = m;
      rounded = true;
    }
  for (auto [name, m] : integral)
    if (d.take(name)) {
      mode = m;
      toInteger = true;
    }
  uint32_t flags = (d.take("ftz") ? CFtz : 0) | (d.take("satfinite") ? CSatFinite : 0) |
                   (d.take("sat") ? CSat : 0) | (d.take("relu") ? CRelu : 0) |
                   (toInteger ? CInteger : 0);
  Ty to = d.takeType(), from = d.takeType();
  const auto &o = d.s->operands;
  d.inst.select = To::make(to) | From::make(from) | Mode::make(mode) | flags;
  if ((to == Ty::F16x2 || to == Ty::BF16x2) && from == Ty::F32) {
    d.inst.fn = &packFloats;
    return rounded && d.count(3) && d.dst(o[0], to) && d.src(o[1], from) && d.src(o[2], from);
  }
  if (isFp8(to) && (from == Ty::F32 || from == Ty::F16x2)) {
    d.inst.fn = &packFp8;
    if (!(flags & CSatFinite))
      return d.refuse("needs .satfinite");
    unsigned n = from == Ty::F32 ? 2 : 1;
    return d.count(n + 1) && d.dst(o[0], to) && d.src(o[1], from) && (n == 1 || d.src(o[2], from));
  }
  if (to == Ty::F16x2 && isFp8(from)) {
    d.inst.fn = &unpackFp8;
    return d.count(2) && d.dst(o[0], to) && d.src(o[1], from);
  }
  if (to == Ty::TF32 && from == Ty::F32) {
    d.inst.fn = &floatToFloat;
    return d.count(2) && d.dst(o[0], Ty::B32) && d.src(o[1], from);
  }
  bool toF = isFloat(to), fromF = isFloat(from);
  if (!(toF || isInt(to)) || !(fromF || isInt(from)) || (flags & (toF ? 0u : uint32_t(CRelu))))
    return d.refuse("with these types is not modelled");
  if (fromF && !toF && !toInteger)
    return d.refuse("needs a rounding to an integer");
  d.inst.fn = toF ? (fromF ? &floatToFloat : &intToFloat) : (fromF ? &floatToInt : &intToInt);
  return d.count(2) && d.dst(o[0], to, true) && d.src(o[1], from, true);
}
