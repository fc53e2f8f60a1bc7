//===- ExecInteger.cpp - Integer arithmetic (PTX ISA 9.7.1, 9.7.2) --------===//
#include "lib/Simulator/Lanes.h"

using namespace tessera::sim::detail;
using llvm::StringRef;

namespace {

template <class C>
using U = std::make_unsigned_t<C>;

template <class C>
struct Add {
  static C f(C a, C b) { return U<C>(a) + U<C>(b); }
};
template <class C>
struct Sub {
  static C f(C a, C b) { return U<C>(a) - U<C>(b); }
};
template <class C>
struct Min {
  static C f(C a, C b) { return a < b ? a : b; }
};
template <class C>
struct Max {
  static C f(C a, C b) { return a > b ? a : b; }
};
template <class C>
struct Neg {
  static C f(C a) { return U<C>(0) - U<C>(a); }
};
template <class C>
struct Abs {
  static C f(C a) { return a < 0 ? C(U<C>(0) - U<C>(a)) : a; }
};

template <class C>
C mulLo(C a, C b) {
  return C(uint64_t(a) * uint64_t(b));
}
template <class C>
C mulHi(C a, C b) {
  if constexpr (sizeof(C) == 8) {
    if constexpr (std::is_signed_v<C>)
      return C(__int128(a) * b >> 64);
    else
      return C(static_cast<unsigned __int128>(a) * b >> 64);
  } else if constexpr (std::is_signed_v<C>) {
    return C(int64_t(a) * int64_t(b) >> (8 * sizeof(C)));
  } else {
    return C(uint64_t(a) * uint64_t(b) >> (8 * sizeof(C)));
  }
}
template <class C>
struct MulLo {
  static C f(C a, C b) { return mulLo(a, b); }
};
template <class C>
struct MulHi {
  static C f(C a, C b) { return mulHi(a, b); }
};
template <class C>
struct MadLo {
  static C f(C a, C b, C c) { return U<C>(mulLo(a, b)) + U<C>(c); }
};
template <class C>
struct MadHi {
  static C f(C a, C b, C c) { return U<C>(mulHi(a, b)) + U<C>(c); }
};
template <class C>
struct Sad {
  static C f(C a, C b, C c) { return U<C>(c) + (a < b ? U<C>(b) - U<C>(a) : U<C>(a) - U<C>(b)); }
};
/// The machine's result of a division by zero, and its remainder, are all ones (unspecified by the
/// ISA).
template <class C>
struct Div {
  static C f(C a, C b) {
    if (b == 0)
      return C(-1);
    if (std::is_signed_v<C> && b == C(-1))
      return U<C>(0) - U<C>(a);
    return a / b;
  }
};
template <class C>
struct Rem {
  static C f(C a, C b) {
    if (b == 0)
      return C(-1);
    if (std::is_signed_v<C> && b == C(-1))
      return 0;
    return a % b;
  }
};
template <class C, class W>
struct MulWide {
  static W f(C a, C b) { return W(a) * W(b); }
};
template <class C, class W>
struct MadWide {
  static W f(C a, C b, W c) { return U<W>(W(a) * W(b)) + U<W>(c); }
};
struct AddSat {
  static int32_t f(int32_t a, int32_t b) {
    int64_t r = int64_t(a) + b;
    return r > INT32_MAX ? INT32_MAX : r < INT32_MIN ? INT32_MIN : r;
  }
};
struct SubSat {
  static int32_t f(int32_t a, int32_t b) {
    int64_t r = int64_t(a) - b;
    return r > INT32_MAX ? INT32_MAX : r < INT32_MIN ? INT32_MIN : r;
  }
};
/// mul24 and mad24 (.lo): 24-bit operands, 32-bit result.
template <class C>
C low24(C v) {
  if constexpr (std::is_signed_v<C>)
    return C(U<C>(v) << 8) >> 8;
  else
    return v & 0xffffff;
}
template <class C>
struct Mul24 {
  static C f(C a, C b) { return mulLo(low24(a), low24(b)); }
};
template <class C>
struct Mad24 {
  static C f(C a, C b, C c) { return U<C>(mulLo(low24(a), low24(b))) + U<C>(c); }
};

template <template <class> class O>
Handler binaryOf(Ty ty) {
  return forInteger(ty, [](auto v) -> Handler {
    using C = decltype(v);
    return &binary<C, C, C, O<C>>;
  });
}
template <template <class> class O>
Handler ternaryOf(Ty ty) {
  return forInteger(ty, [](auto v) -> Handler {
    using C = decltype(v);
    return &ternary<C, C, C, C, O<C>>;
  });
}
template <template <class> class O>
Handler unaryOf(Ty ty) {
  return forInteger(ty, [](auto v) -> Handler {
    using C = decltype(v);
    return &unary<C, C, O<C>>;
  });
}

/// Extended precision: select bit 0 reads the carry, bit 1 writes it; the operation is a template
/// argument.
enum Extended { ExtAdd, ExtSub, ExtMadLo, ExtMadHi };
template <class C, Extended Kind>
Step extended(Exec &exec, const Inst &inst) {
  using S = typename Lane<C>::Storage;
  const S *a = exec.src<S>(inst, 1), *b = exec.src<S>(inst, 2);
  const S *c = Kind >= ExtMadLo ? exec.src<S>(inst, 3) : nullptr;
  S r[kLanes];
  uint32_t carryOut = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    uint64_t in = inst.select & 1 ? exec.warp->carry >> lane & 1 : 0;
    unsigned __int128 x = a[lane], y = b[lane], sum;
    if constexpr (Kind == ExtSub) {
      sum = x - y - in;
    } else if constexpr (Kind == ExtAdd) {
      sum = x + y + in;
    } else {
      C product = Kind == ExtMadLo ? mulLo(C(a[lane]), C(b[lane])) : mulHi(C(a[lane]), C(b[lane]));
      sum = static_cast<unsigned __int128>(U<C>(product)) + U<C>(c[lane]) + in;
    }
    r[lane] = S(sum);
    carryOut |= uint32_t(sum >> (8 * sizeof(C)) & 1) << lane;
  }
  if (inst.select & 2)
    exec.warp->carry = (exec.warp->carry & ~exec.active) | (carryOut & exec.active);
  exec.store(inst, 0, r);
  return Step::Next;
}
template <Extended Kind>
Handler extendedOf(Ty ty) {
  switch (ty) {
  case Ty::U32:
  case Ty::B32:
    return &extended<uint32_t, Kind>;
  case Ty::S32:
    return &extended<int32_t, Kind>;
  case Ty::U64:
  case Ty::B64:
    return &extended<uint64_t, Kind>;
  case Ty::S64:
    return &extended<int64_t, Kind>;
  default:
    return nullptr;
  }
}

/// dp4a / dp2a: the types of a and b are template arguments (PTX ISA 9.7.1).
template <class A, class B>
struct Dp4a {
  static uint32_t f(uint32_t a, uint32_t b, uint32_t c) {
    for (unsigned i = 0; i < 4; ++i)
      c += uint32_t(int32_t(A(a >> (8 * i))) * int32_t(B(b >> (8 * i))));
    return c;
  }
};
template <class A, class B, bool High>
struct Dp2a {
  static uint32_t f(uint32_t a, uint32_t b, uint32_t c) {
    using A16 = std::conditional_t<std::is_signed_v<A>, int16_t, uint16_t>;
    for (unsigned i = 0; i < 2; ++i)
      c += uint32_t(int32_t(A16(a >> (16 * i))) * int32_t(B(b >> (8 * i + (High ? 16 : 0)))));
    return c;
  }
};

/// min.relu and max.relu: a negative result becomes zero.
template <bool IsMax>
struct MinMaxRelu {
  static int32_t f(int32_t a, int32_t b) {
    return std::max(0, IsMax ? std::max(a, b) : std::min(a, b));
  }
};
/// Two 16-bit halves.
enum HalvesOp { HalvesAdd, HalvesMin, HalvesMax };
template <class C, HalvesOp Kind, bool Relu>
struct Halves {
  static C half(C a, C b) {
    C r = Kind == HalvesAdd ? C(a + b) : Kind == HalvesMin ? std::min(a, b) : std::max(a, b);
    return Relu && r < 0 ? C(0) : r;
  }
  static uint32_t f(uint32_t a, uint32_t b) {
    return uint32_t(uint16_t(half(C(a), C(b)))) | uint32_t(uint16_t(half(C(a >> 16), C(b >> 16))))
                                                      << 16;
  }
};
template <class C, HalvesOp Kind>
Handler halvesOf(bool relu) {
  using T = uint32_t;
  if constexpr (std::is_signed_v<C>)
    if (relu)
      return &binary<T, T, T, Halves<C, Kind, true>>;
  return &binary<T, T, T, Halves<C, Kind, false>>;
}

bool isFloatType(const Decoder &d) {
  return d.has("f32") || d.has("f64") || d.has("f16") || d.has("f16x2") || d.has("bf16") ||
         d.has("bf16x2");
}

} // namespace

static bool sources(Decoder &d, Ty ty, unsigned n) {
  if (!d.count(n + 1) || !d.dst(d.s->operands[0], ty))
    return false;
  for (unsigned i = 1; i <= n; ++i)
    if (!d.src(d.s->operands[i], ty))
      return false;
  return true;
}

static bool finish(Decoder &d, Handler h) {
  if (!h)
    return d.refuse("with this type is not modelled");
  d.inst.fn = h;
  return true;
}

static bool decodeMul(Decoder &d, StringRef opcode) {
  bool mad = opcode == "mad";
  bool wide = d.take("wide"), lo = d.take("lo"), hi = d.take("hi"), cc = d.take("cc");
  Ty ty = d.takeType();
  const auto &o = d.s->operands;
  if (wide) {
    Ty out = ty == Ty::U16   ? Ty::U32
             : ty == Ty::S16 ? Ty::S32
             : ty == Ty::U32 ? Ty::U64
             : ty == Ty::S32 ? Ty::S64
                             : Ty::None;
    if (out == Ty::None || cc)
      return d.refuse("with this type is not modelled");
    if (!d.count(mad ? 4 : 3) || !d.dst(o[0], out) || !d.src(o[1], ty) || !d.src(o[2], ty))
      return false;
    if (mad && !d.src(o[3], out))
      return false;
    auto pick = [&](auto c, auto w) -> Handler {
      using C = decltype(c);
      using W = decltype(w);
      return mad ? Handler(&ternary<W, C, C, W, MadWide<C, W>>)
                 : Handler(&binary<W, C, C, MulWide<C, W>>);
    };
    return finish(d, ty == Ty::U16   ? pick(uint16_t(), uint32_t())
                     : ty == Ty::S16 ? pick(int16_t(), int32_t())
                     : ty == Ty::U32 ? pick(uint32_t(), uint64_t())
                                     : pick(int32_t(), int64_t()));
  }
  if (lo == hi)
    return d.refuse("needs .lo, .hi or .wide");
  if (!sources(d, ty, mad ? 3 : 2))
    return false;
  if (mad && cc) {
    d.inst.select = 2;
    return finish(d, lo ? extendedOf<ExtMadLo>(ty) : extendedOf<ExtMadHi>(ty));
  }
  if (cc)
    return d.refuse("modifier .cc is not modelled here");
  if (mad)
    return finish(d, lo ? ternaryOf<MadLo>(ty) : ternaryOf<MadHi>(ty));
  return finish(d, lo ? binaryOf<MulLo>(ty) : binaryOf<MulHi>(ty));
}

static bool decodeDot(Decoder &d, StringRef opcode) {
  bool lo = d.take("lo"), hi = d.take("hi");
  Ty a = d.takeType(), b = d.takeType();
  if (!sources(d, Ty::B32, 3))
    return false;
  auto pick = [&](auto x, auto y) -> Handler {
    using A = decltype(x);
    using B = decltype(y);
    if (opcode == "dp4a")
      return &ternary<uint32_t, uint32_t, uint32_t, uint32_t, Dp4a<A, B>>;
    if (hi)
      return &ternary<uint32_t, uint32_t, uint32_t, uint32_t, Dp2a<A, B, true>>;
    return &ternary<uint32_t, uint32_t, uint32_t, uint32_t, Dp2a<A, B, false>>;
  };
  if (opcode == "dp2a" && lo == hi)
    return d.refuse("needs .lo or .hi");
  bool sa = a == Ty::S32, sb = b == Ty::S32;
  return finish(d, sa ? (sb ? pick(int8_t(), int8_t()) : pick(int8_t(), uint8_t()))
                      : (sb ? pick(uint8_t(), int8_t()) : pick(uint8_t(), uint8_t())));
}

static bool decodeHalves(Decoder &d, StringRef opcode) {
  bool relu = d.take("relu");
  Ty ty = d.takeType();
  if ((relu && (ty != Ty::S16x2 || opcode == "add")) || !sources(d, ty, 2))
    return d.refuse("with this type is not modelled");
  auto pick = [&](auto v) {
    using C = decltype(v);
    return opcode == "add"   ? halvesOf<C, HalvesAdd>(false)
           : opcode == "min" ? halvesOf<C, HalvesMin>(relu)
                             : halvesOf<C, HalvesMax>(relu);
  };
  return finish(d, ty == Ty::S16x2 ? pick(int16_t()) : pick(uint16_t()));
}

/// mul24 and mad24 (PTX ISA 9.7.1).
static bool decodeMul24(Decoder &d, bool mad) {
  if (!d.take("lo"))
    return d.refuse("only .lo is modelled");
  Ty ty = d.takeType();
  if (tyBits(ty) != 32 || !sources(d, ty, mad ? 3 : 2))
    return d.refuse("with this type is not modelled");
  return finish(d, mad ? ternaryOf<Mad24>(ty) : binaryOf<Mul24>(ty));
}

/// add and sub, which may saturate or write the carry.
static bool decodeSum(Decoder &d, bool add) {
  bool cc = d.take("cc"), sat = d.take("sat");
  Ty ty = d.takeType();
  if (!sources(d, ty, 2))
    return false;
  if (sat) {
    if (ty != Ty::S32)
      return d.refuse(".sat needs .s32");
    return finish(d, add ? Handler(&binary<int32_t, int32_t, int32_t, AddSat>)
                         : Handler(&binary<int32_t, int32_t, int32_t, SubSat>));
  }
  if (cc) {
    d.inst.select = 2;
    return finish(d, add ? extendedOf<ExtAdd>(ty) : extendedOf<ExtSub>(ty));
  }
  return finish(d, add ? binaryOf<Add>(ty) : binaryOf<Sub>(ty));
}

/// addc, subc and madc, which read the carry (PTX ISA 9.7.2).
static bool decodeWithCarry(Decoder &d, StringRef opcode) {
  bool cc = d.take("cc"), lo = d.take("lo");
  d.take("hi");
  Ty ty = d.takeType();
  if (!sources(d, ty, opcode == "madc" ? 3 : 2))
    return false;
  d.inst.select = 1 | (cc ? 2 : 0);
  if (opcode == "madc")
    return finish(d, lo ? extendedOf<ExtMadLo>(ty) : extendedOf<ExtMadHi>(ty));
  return finish(d, opcode == "addc" ? extendedOf<ExtAdd>(ty) : extendedOf<ExtSub>(ty));
}

/// min and max that clamp at zero.
static bool decodeClamped(Decoder &d, StringRef opcode) {
  if ((opcode != "min" && opcode != "max") || d.takeType() != Ty::S32)
    return d.refuse("modifier .relu is not modelled here");
  return sources(d, Ty::S32, 2) &&
         finish(d, opcode == "min" ? &binary<int32_t, int32_t, int32_t, MinMaxRelu<false>>
                                   : &binary<int32_t, int32_t, int32_t, MinMaxRelu<true>>);
}

bool tessera::sim::detail::decodeInteger(Decoder &d, StringRef opcode) {
  if (isFloatType(d))
    return false;
  if ((d.has("u16x2") || d.has("s16x2")) && (opcode == "add" || opcode == "min" || opcode == "max"))
    return decodeHalves(d, opcode);
  if (opcode == "mul" || opcode == "mad")
    return decodeMul(d, opcode);
  if (opcode == "dp4a" || opcode == "dp2a")
    return decodeDot(d, opcode);
  if (opcode == "mul24" || opcode == "mad24")
    return decodeMul24(d, opcode == "mad24");
  if (opcode == "add" || opcode == "sub")
    return decodeSum(d, opcode == "add");
  if (opcode == "addc" || opcode == "subc" || opcode == "madc")
    return decodeWithCarry(d, opcode);
  struct Entry {
    const char *name;
    unsigned sources;
    Handler (*pick)(Ty);
  };
  static const Entry table[] = {
      {"div", 2, &binaryOf<Div>},  {"rem", 2, &binaryOf<Rem>}, {"min", 2, &binaryOf<Min>},
      {"max", 2, &binaryOf<Max>},  {"neg", 1, &unaryOf<Neg>},  {"abs", 1, &unaryOf<Abs>},
      {"sad", 3, &ternaryOf<Sad>},
  };
  for (const Entry &entry : table)
    if (opcode == entry.name) {
      if (d.take("relu"))
        return decodeClamped(d, opcode);
      Ty ty = d.takeType();
      return sources(d, ty, entry.sources) && finish(d, entry.pick(ty));
    }
  return false;
}
