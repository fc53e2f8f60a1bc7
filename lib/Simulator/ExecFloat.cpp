//===- ExecFloat.cpp - f32 and f64 arithmetic (PTX ISA 9.7.3) -------------===//
//
// Compiled with -frounding-math: directed rounding switches the host's mode around a warp
// instruction. The approximations are computed in double precision and rounded, with the ranges of
// the ISA in which they give something else; on request, the seed moves them within the error that
// it documents.
//
//===----------------------------------------------------------------------===//
#include "lib/Simulator/Lanes.h"
#include "lib/Simulator/Numeric.h"
#include "llvm/ADT/StringSwitch.h"
#include <cfenv>
#include <limits>

using namespace tessera::sim::detail;
using llvm::StringRef;

namespace {

struct AddF {
  template <class T>
  static T f(T a, T b, T) {
    return a + b;
  }
};
struct SubF {
  template <class T>
  static T f(T a, T b, T) {
    return a - b;
  }
};
struct MulF {
  template <class T>
  static T f(T a, T b, T) {
    return a * b;
  }
};
struct DivF {
  template <class T>
  static T f(T a, T b, T) {
    return a / b;
  }
};
struct FmaF {
  static float f(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static double f(double a, double b, double c) { return __builtin_fma(a, b, c); }
};
template <bool PropagateNaN, bool IsMax>
struct MinMaxF {
  template <class T>
  static T f(T a, T b, T) {
    if (a != a || b != b)
      return PropagateNaN ? (a != a ? a : b) : (a != a ? b : a);
    if (a == b) // +0 > -0
      return (std::signbit(a) != 0) == IsMax ? b : a;
    return (a > b) == IsMax ? a : b;
  }
};
struct RcpF {
  template <class T>
  static T f(T a, T, T) {
    return T(1) / a;
  }
};
struct SqrtF {
  template <class T>
  static T f(T a, T, T) {
    return std::sqrt(a);
  }
};
struct RsqrtF {
  template <class T>
  static T f(T a, T, T) {
    return T(1.0 / std::sqrt(double(a)));
  }
};

/// The approximations of f32, in double precision, and how far the seed may move a result: by that
/// part of it, or if it says so by that much. With the rounding to f32 it stays inside of the error
/// that the ISA documents (PTX ISA 9.7.3).
struct Approximation {
  static constexpr bool isAbsolute(float) { return false; }
};
/// 2 ulps. A divisor above 2^126 gives 0, or NaN for an infinite dividend.
struct DivApprox : Approximation {
  static double f(double a, double b) {
    if (std::fabs(b) > 0x1p126 && std::fabs(b) < 0x1p128)
      return std::isinf(a) ? std::numeric_limits<double>::quiet_NaN() : std::copysign(0, a / b);
    return a / b;
  }
  static constexpr double bound(float) { return 0x1p-24; }
};
/// 2 ulps for all operands.
struct DivFull : Approximation {
  static double f(double a, double b) { return a / b; }
  static constexpr double bound(float) { return 0x1p-24; }
};
/// 1 ulp.
struct RcpApprox : Approximation {
  static double f(double a, double) { return 1 / a; }
  static constexpr double bound(float) { return 0x1p-25; }
};
/// 2^-23.
struct SqrtApprox : Approximation {
  static double f(double a, double) { return std::sqrt(a); }
  static constexpr double bound(float) { return 0x1p-24; }
};
/// 2^-22.9.
struct RsqrtApprox : Approximation {
  static double f(double a, double) { return 1 / std::sqrt(a); }
  static constexpr double bound(float) { return 0x1p-24; }
};
/// 2^-22.5.
struct Ex2Approx : Approximation {
  static double f(double a, double) { return std::exp2(a); }
  static constexpr double bound(float) { return 0x1p-24; }
};
/// 2^-22, from 1/2 to 2 of 1.
struct Lg2Approx : Approximation {
  static double f(double a, double) { return std::log2(a); }
  static constexpr double bound(float) { return 0x1p-23; }
  static constexpr bool isAbsolute(float a) { return a > 0.5f && a < 2.0f; }
};
/// 2^-20.5 of 1 for angles up to 2 pi, and 2^-14.7 up to 100 pi. The machine multiplies an angle by
/// 1 / 2 pi in f32, and has lost all of it when it is large.
struct SinCosApprox : Approximation {
  static double turns(double a) { return 6.283185307179586 * float(a * double(0x1.45f306p-3f)); }
  static constexpr double bound(float) { return 0x1p-23; }
  static constexpr bool isAbsolute(float) { return true; }
};
struct SinApprox : SinCosApprox {
  static double f(double a, double) { return std::sin(turns(a)); }
};
struct CosApprox : SinCosApprox {
  static double f(double a, double) { return std::cos(turns(a)); }
};
/// 2^-11, which the seed leaves alone: it would be the whole error of results, of which those of
/// f32 are compared one by one.
struct TanhApprox : Approximation {
  static double f(double a, double) { return std::tanh(a); }
  static constexpr double bound(float) { return 0; }
};
struct AbsF {
  template <class T>
  static T f(T a, T, T) {
    return std::fabs(a);
  }
};
struct NegF {
  template <class T>
  static T f(T a, T, T) {
    return -a;
  }
};

constexpr uint32_t SelFtz = 1, SelSat = 2;
using SelRounding = BitField<Rounding, 2, 8>;

/// f64 arithmetic keeps a NaN operand's payload, the second operand's first, and quiets it.
double resultNaN(double r, double a, double b) {
  if (r == r || (a == a && b == b))
    return r;
  return bitCast<double>(bitCast<uint64_t>(b != b ? b : a) | 1ull << 51);
}

/// Inputs flushed, the operation, result flushed, saturated, NaNs made canonical.
template <class F, unsigned N>
inline __attribute__((always_inline)) void lanes32(Exec &exec, const Inst &inst, float *r) {
  const float *a = exec.src<float>(inst, 1);
  const float *b = N > 1 ? exec.src<float>(inst, 2) : a;
  const float *c = N > 2 ? exec.src<float>(inst, 3) : a;
  if (inst.select & SelFtz) {
    for (unsigned lane = 0; lane < kLanes; ++lane)
      r[lane] = flush(canonical(F::f(flush(a[lane]), flush(b[lane]), flush(c[lane]))));
  } else {
    for (unsigned lane = 0; lane < kLanes; ++lane)
      r[lane] = canonical(F::f(a[lane], b[lane], c[lane]));
  }
  if (inst.select & SelSat)
    for (unsigned lane = 0; lane < kLanes; ++lane)
      r[lane] = r[lane] > 0 ? std::min(r[lane], 1.0f) : 0.0f; // NaN gives zero
}

int hostRounding(uint32_t select) {
  switch (SelRounding::get(select)) {
  case Rounding::Zero:
    return FE_TOWARDZERO;
  case Rounding::Down:
    return FE_DOWNWARD;
  case Rounding::Up:
    return FE_UPWARD;
  default:
    return FE_TONEAREST;
  }
}

template <class F, unsigned N>
Step op32(Exec &exec, const Inst &inst) {
  float r[kLanes];
  if (int mode = hostRounding(inst.select); mode != FE_TONEAREST) {
    fesetround(mode);
    lanes32<F, N>(exec, inst, r);
    fesetround(FE_TONEAREST);
  } else {
    lanes32<F, N>(exec, inst, r);
  }
  exec.store(inst, 0, r);
  return Step::Next;
}

/// From -1 to 1, the same for the same seed and operands.
double noise(uint64_t seed, float a, float b) {
  uint64_t x =
      seed * 0x9e3779b97f4a7c15ull ^ bitCast<uint32_t>(a) ^ uint64_t(bitCast<uint32_t>(b)) << 32;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull; // the finaliser of splitmix64
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return double(int64_t(x ^ x >> 31)) * 0x1p-63;
}

template <class F>
float approximate(uint64_t seed, float a, float b) {
  double exact = F::f(a, b);
  // Powers of two are results of operands for which the machine has no error.
  int exponent;
  if (seed != 0 && std::isfinite(exact) && std::fabs(std::frexp(exact, &exponent)) != 0.5)
    exact += noise(seed, a, b) * F::bound(a) * (F::isAbsolute(a) ? 1 : exact);
  return float(exact);
}

template <class F, unsigned N>
Step approx32(Exec &exec, const Inst &inst) {
  const float *a = exec.src<float>(inst, 1);
  const float *b = N > 1 ? exec.src<float>(inst, 2) : a;
  const tessera::sim::Options &options = *exec.run->options;
  uint64_t seed = options.moveApproximations ? options.seed : 0;
  float r[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    r[lane] = inst.select & SelFtz ? flush(approximate<F>(seed, flush(a[lane]), flush(b[lane])))
                                   : approximate<F>(seed, a[lane], b[lane]);
  for (unsigned lane = 0; lane < kLanes; ++lane)
    r[lane] =
        inst.select & SelSat ? (r[lane] > 0 ? std::min(r[lane], 1.0f) : 0.0f) : canonical(r[lane]);
  exec.store(inst, 0, r);
  return Step::Next;
}

#if defined(__x86_64__)
/// The same with the host's fused multiply-add, for fma.rn.
__attribute__((target("avx2,fma"))) Step fma32Fast(Exec &exec, const Inst &inst) {
  float r[kLanes];
  lanes32<FmaF, 3>(exec, inst, r);
  exec.store(inst, 0, r);
  return Step::Next;
}
#endif

template <class F, unsigned N>
Step op64(Exec &exec, const Inst &inst) {
  const double *a = exec.src<double>(inst, 1);
  const double *b = N > 1 ? exec.src<double>(inst, 2) : a;
  const double *c = N > 2 ? exec.src<double>(inst, 3) : a;
  double r[kLanes];
  fesetround(hostRounding(inst.select));
  for (unsigned lane = 0; lane < kLanes; ++lane)
    r[lane] = resultNaN(F::f(a[lane], b[lane], c[lane]), a[lane], b[lane]);
  fesetround(FE_TONEAREST);
  exec.store(inst, 0, r);
  return Step::Next;
}

/// neg and abs only change the sign bit: NaNs keep their payload.
template <class S, bool Abs>
Step signOp(Exec &exec, const Inst &inst) {
  const S *a = exec.src<S>(inst, 1);
  constexpr S sign = S(1) << (8 * sizeof(S) - 1);
  S r[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    S v = a[lane];
    if (sizeof(S) == 4 && (inst.select & SelFtz))
      v = S(bitCast<uint32_t>(flush(bitCast<float>(uint32_t(v)))));
    r[lane] = Abs ? v & ~sign : v ^ sign;
  }
  exec.store(inst, 0, r);
  return Step::Next;
}

template <class S>
Step copysign(Exec &exec, const Inst &inst) {
  const S *a = exec.src<S>(inst, 1), *b = exec.src<S>(inst, 2);
  constexpr S sign = S(1) << (8 * sizeof(S) - 1);
  S r[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    r[lane] = (a[lane] & sign) | (b[lane] & ~sign);
  exec.store(inst, 0, r);
  return Step::Next;
}

/// Gross approximation of a double reciprocal: the low word of the result is zero (PTX ISA
/// rcp.approx.ftz.f64).
struct RcpApprox64 {
  static double f(double a, double, double) {
    return bitCast<double>(bitCast<uint64_t>(1.0 / a) & 0xffffffff00000000ull);
  }
};

enum TestKind : uint32_t { Finite, Infinite, Number, NotANumber, Normal, Subnormal };
template <class T>
Step testp(Exec &exec, const Inst &inst) {
  const T *a = exec.src<T>(inst, 1);
  uint32_t r = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    int c = std::fpclassify(a[lane]);
    bool v = false;
    switch (inst.select) {
    case Finite:
      v = c != FP_NAN && c != FP_INFINITE;
      break;
    case Infinite:
      v = c == FP_INFINITE;
      break;
    case Number:
      v = c != FP_NAN;
      break;
    case NotANumber:
      v = c == FP_NAN;
      break;
    case Normal:
      v = c == FP_NORMAL;
      break;
    case Subnormal:
      v = c == FP_SUBNORMAL;
      break;
    }
    r |= uint32_t(v) << lane;
  }
  exec.storePred(inst, 0, r);
  return Step::Next;
}

template <class F, unsigned N>
Handler pick(Ty ty) {
  if (ty == Ty::F32)
    return &op32<F, N>;
  return &op64<F, N>;
}

/// Modifiers that decide which function it is.
struct FloatForm {
  Ty ty;
  Rounding round = Rounding::Nearest;
  bool rounded = true, approx = false, full = false, nan = false;

  bool isSingle() const { return ty == Ty::F32; }
};

Handler pickFma(const FloatForm &form) {
#if defined(__x86_64__)
  if (form.isSingle() && form.round == Rounding::Nearest && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("avx2"))
    return &fma32Fast;
#endif
  return pick<FmaF, 3>(form.ty);
}

/// The functions that have one form.
Handler pickExact(StringRef opcode, const FloatForm &form) {
  Ty ty = form.ty;
  bool single = form.isSingle();
  return llvm::StringSwitch<Handler>(opcode)
      .Case("add", pick<AddF, 2>(ty))
      .Case("sub", pick<SubF, 2>(ty))
      .Case("mul", pick<MulF, 2>(ty))
      .Case("min",
            form.nan ? pick<MinMaxF<true, false>, 2>(ty) : pick<MinMaxF<false, false>, 2>(ty))
      .Case("max", form.nan ? pick<MinMaxF<true, true>, 2>(ty) : pick<MinMaxF<false, true>, 2>(ty))
      .Case("abs", single ? &signOp<uint32_t, true> : &signOp<uint64_t, true>)
      .Case("neg", single ? &signOp<uint32_t, false> : &signOp<uint64_t, false>)
      .Case("copysign", single ? &copysign<uint32_t> : &copysign<uint64_t>)
      .Default(nullptr);
}

/// Those that are rounded as IEEE 754 has it.
Handler pickRounded(StringRef opcode, const FloatForm &form) {
  return llvm::StringSwitch<Handler>(opcode)
      .Case("div", pick<DivF, 2>(form.ty))
      .Cases({"fma", "mad"}, pickFma(form))
      .Case("rcp", pick<RcpF, 1>(form.ty))
      .Case("sqrt", pick<SqrtF, 1>(form.ty))
      .Default(nullptr);
}

Handler pickApproximation(StringRef opcode, const FloatForm &form) {
  if (!form.isSingle())
    return llvm::StringSwitch<Handler>(opcode)
        .Case("rcp", &op64<RcpApprox64, 1>)
        .Case("rsqrt", &op64<RsqrtF, 1>)
        .Default(nullptr);
  return llvm::StringSwitch<Handler>(opcode)
      .Case("div", &approx32<DivApprox, 2>)
      .Case("rcp", &approx32<RcpApprox, 1>)
      .Case("sqrt", &approx32<SqrtApprox, 1>)
      .Case("rsqrt", &approx32<RsqrtApprox, 1>)
      .Case("ex2", &approx32<Ex2Approx, 1>)
      .Case("lg2", &approx32<Lg2Approx, 1>)
      .Case("sin", &approx32<SinApprox, 1>)
      .Case("cos", &approx32<CosApprox, 1>)
      .Case("tanh", &approx32<TanhApprox, 1>)
      .Default(nullptr);
}

Handler pickFloat(StringRef opcode, const FloatForm &form) {
  if (Handler exact = pickExact(opcode, form))
    return exact;
  if (form.rounded)
    return pickRounded(opcode, form);
  if (form.approx)
    return pickApproximation(opcode, form);
  if (opcode == "div" && form.isSingle() && form.full)
    return &approx32<DivFull, 2>;
  return nullptr;
}

bool decodeTestp(Decoder &d) {
  const auto &o = d.s->operands;
  static const char *kinds[] = {"finite",     "infinite", "number",
                                "notanumber", "normal",   "subnormal"};
  for (unsigned k = 0; k < 6; ++k)
    if (d.take(kinds[k]))
      d.inst.select = k;
  Ty ty = d.takeType();
  d.inst.fn = ty == Ty::F32 ? &testp<float> : &testp<double>;
  return d.count(2) && d.dstPred(o[0]) && d.src(o[1], ty);
}

} // namespace

bool tessera::sim::detail::decodeFloat(Decoder &d, StringRef opcode) {
  if (d.has("f32") == d.has("f64"))
    return false;
  static const char *names[] = {"add", "sub",  "mul",  "div",   "fma",      "mad",  "min",
                                "max", "rcp",  "sqrt", "rsqrt", "ex2",      "lg2",  "sin",
                                "cos", "tanh", "abs",  "neg",   "copysign", "testp"};
  if (!llvm::is_contained(names, opcode))
    return false;
  if (opcode == "testp")
    return decodeTestp(d);
  const auto &o = d.s->operands;
  FloatForm form;
  if (d.take("rz"))
    form.round = Rounding::Zero;
  else if (d.take("rm"))
    form.round = Rounding::Down;
  else if (d.take("rp"))
    form.round = Rounding::Up;
  else
    form.rounded = d.take("rn");
  form.approx = d.take("approx");
  form.full = d.take("full");
  form.nan = d.take("NaN");
  bool ftz = d.take("ftz"), sat = d.take("sat");
  form.ty = d.takeType();
  d.inst.select = (ftz ? SelFtz : 0) | (sat ? SelSat : 0) | SelRounding::make(form.round);
  unsigned n = opcode == "fma" || opcode == "mad" ? 3
               : llvm::is_contained({"add", "sub", "mul", "div", "min", "max", "copysign"}, opcode)
                   ? 2
                   : 1;
  if (!d.count(n + 1) || !d.dst(o[0], form.ty))
    return false;
  for (unsigned k = 1; k <= n; ++k)
    if (!d.src(o[k], form.ty))
      return false;
  if (form.nan && opcode != "min" && opcode != "max")
    return d.refuse("modifier .NaN is not modelled here");
  d.inst.fn = pickFloat(opcode, form);
  return d.inst.fn || d.refuse("in this form is not modelled");
}
