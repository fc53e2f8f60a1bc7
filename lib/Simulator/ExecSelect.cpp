//===- ExecSelect.cpp - setp, set, selp, slct (PTX ISA 9.7.6) -------------===//
#include "lib/Simulator/Lanes.h"
#include "lib/Simulator/Numeric.h"

using namespace tessera::sim::detail;
using llvm::StringRef;

namespace {

enum Compare : uint32_t { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan };
enum Combine : uint32_t { CombineNone, CombineAnd, CombineOr, CombineXor };

template <class C>
bool compare(C a, C b, uint32_t op) {
  bool unordered = a != a || b != b;
  switch (op) {
  case Eq:
    return a == b;
  case Ne:
    return !unordered && a != b;
  case Lt:
    return a < b;
  case Le:
    return a <= b;
  case Gt:
    return a > b;
  case Ge:
    return a >= b;
  case Equ:
    return unordered || a == b;
  case Neu:
    return a != b || unordered;
  case Ltu:
    return unordered || a < b;
  case Leu:
    return unordered || a <= b;
  case Gtu:
    return unordered || a > b;
  case Geu:
    return unordered || a >= b;
  case Num:
    return !unordered;
  case Nan:
    return unordered;
  }
  return false;
}

/// A packed type is compared half by half.
enum class Kind : uint8_t { Plain, F16, BF16, F32Ftz };

template <class C, Kind K>
uint32_t compareLanes(Exec &exec, const Inst &inst, unsigned first, uint32_t op, unsigned shift) {
  using S = typename Lane<C>::Storage;
  const S *a = exec.src<S>(inst, first), *b = exec.src<S>(inst, first + 1);
  uint32_t r = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    bool v;
    if constexpr (K == Kind::F16)
      v = compare(f16ToFloat(uint32_t(a[lane]) >> shift & 0xffff),
                  f16ToFloat(uint32_t(b[lane]) >> shift & 0xffff), op);
    else if constexpr (K == Kind::BF16)
      v = compare(bf16ToFloat(uint32_t(a[lane]) >> shift & 0xffff),
                  bf16ToFloat(uint32_t(b[lane]) >> shift & 0xffff), op);
    else if constexpr (K == Kind::F32Ftz)
      v = compare(flush(float(a[lane])), flush(float(b[lane])), op);
    else
      v = compare(Lane<C>::get(a[lane]), Lane<C>::get(b[lane]), op);
    r |= uint32_t(v) << lane;
  }
  return r;
}

uint32_t combinePredicates(uint32_t v, uint32_t c, uint32_t how) {
  switch (how) {
  case CombineAnd:
    return v & c;
  case CombineOr:
    return v | c;
  case CombineXor:
    return v ^ c;
  default:
    return v;
  }
}

/// aux: combination; bit 4: the second destination is the other half of a packed comparison.
template <class C, Kind K>
Step setp(Exec &exec, const Inst &inst) {
  unsigned dsts = inst.dstCount;
  uint32_t v = compareLanes<C, K>(exec, inst, dsts, inst.select, 0);
  uint32_t how = inst.aux & 3;
  uint32_t c = how ? exec.pred(inst, dsts + 2) : 0;
  uint32_t other =
      dsts > 1 ? (inst.aux & 16 ? compareLanes<C, K>(exec, inst, dsts, inst.select, 16) : ~v) : 0;
  exec.storePred(inst, 0, combinePredicates(v, c, how));
  if (dsts > 1)
    exec.storePred(inst, 1, combinePredicates(other, c, how));
  return Step::Next;
}

/// set: aux bits 8.. give the result for true: all ones or 1.0.
template <class C, Kind K>
Step set(Exec &exec, const Inst &inst) {
  uint32_t v = compareLanes<C, K>(exec, inst, 1, inst.select, 0);
  uint32_t how = inst.aux & 3;
  if (how)
    v = combinePredicates(v, exec.pred(inst, 3), how);
  uint32_t r[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    r[lane] = v >> lane & 1 ? uint32_t(inst.imm) : 0;
  exec.store(inst, 0, r);
  return Step::Next;
}

template <class S>
Step selp(Exec &exec, const Inst &inst) {
  const S *a = exec.src<S>(inst, 1), *b = exec.src<S>(inst, 2);
  uint32_t p = exec.pred(inst, 3);
  S r[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    r[lane] = p >> lane & 1 ? a[lane] : b[lane];
  exec.store(inst, 0, r);
  return Step::Next;
}
template <class S, class C>
Step slct(Exec &exec, const Inst &inst) {
  const S *a = exec.src<S>(inst, 1), *b = exec.src<S>(inst, 2);
  const auto *c = exec.src<typename Lane<C>::Storage>(inst, 3);
  S r[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    r[lane] = Lane<C>::get(c[lane]) >= C(0) ? a[lane] : b[lane];
  exec.store(inst, 0, r);
  return Step::Next;
}

#define PICK(FN)                                                                                   \
  static Handler pick_##FN(Ty ty, bool ftz) {                                                      \
    if (ty == Ty::F16 || ty == Ty::F16x2)                                                          \
      return &FN<uint32_t, Kind::F16>;                                                             \
    if (ty == Ty::BF16 || ty == Ty::BF16x2)                                                        \
      return &FN<uint32_t, Kind::BF16>;                                                            \
    if (ty == Ty::F32)                                                                             \
      return ftz ? &FN<float, Kind::F32Ftz> : &FN<float, Kind::Plain>;                             \
    if (ty == Ty::F64)                                                                             \
      return &FN<double, Kind::Plain>;                                                             \
    return forInteger(ty, [](auto v) -> Handler { return &FN<decltype(v), Kind::Plain>; });        \
  }
PICK(setp)
PICK(set)
#undef PICK

bool takeCompare(Decoder &d, uint32_t &op) {
  static const char *names[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
  for (uint32_t k = 0; k < 14; ++k)
    if (d.take(names[k])) {
      op = k;
      return true;
    }
  // lo, ls, hi, hs are the unsigned comparisons of bit types too.
  static const std::pair<const char *, Compare> bits[] = {
      {"lo", Lt}, {"ls", Le}, {"hi", Gt}, {"hs", Ge}};
  for (auto [name, compare] : bits)
    if (d.take(name)) {
      op = compare;
      return true;
    }
  return d.refuse("needs a comparison");
}

uint32_t takeCombine(Decoder &d) {
  return d.take("and")   ? CombineAnd
         : d.take("or")  ? CombineOr
         : d.take("xor") ? CombineXor
                         : CombineNone;
}

} // namespace

bool tessera::sim::detail::decodeSelect(Decoder &d, StringRef opcode) {
  const auto &o = d.s->operands;
  if (opcode == "selp") {
    Ty ty = d.takeType();
    d.inst.flags |= FlagCopies;
    if (!d.count(4) || tyBits(ty) < 16 || !d.dst(o[0], ty) || !d.src(o[1], ty) ||
        !d.src(o[2], ty) || !d.srcPred(o[3]))
      return false;
    d.inst.fn = tyBits(ty) == 64 ? &selp<uint64_t> : &selp<uint32_t>;
    return true;
  }
  if (opcode == "slct") {
    bool ftz = d.take("ftz");
    Ty ty = d.takeType(), cond = d.takeType();
    // below
    if (!d.count(4) || !d.dst(o[0], ty) || !d.src(o[1], ty) || !d.src(o[2], ty) ||
        !d.src(o[3], cond))
      return false;
    if (ftz || (cond != Ty::S32 && cond != Ty::F32))
      return d.refuse("in this form is not modelled");
    bool wide = tyBits(ty) == 64;
    if (cond == Ty::S32)
      d.inst.fn = wide ? &slct<uint64_t, int32_t> : &slct<uint32_t, int32_t>;
    else
      d.inst.fn = wide ? &slct<uint64_t, float> : &slct<uint32_t, float>;
    return true;
  }
  if (opcode != "setp" && opcode != "set")
    return false;
  uint32_t op = Eq;
  if (!takeCompare(d, op))
    return false;
  uint32_t how = takeCombine(d);
  bool ftz = d.take("ftz");
  d.inst.select = op;
  d.inst.aux = how;
  if (opcode == "setp") {
    Ty ty = d.takeType();
    bool packed = ty == Ty::F16x2 || ty == Ty::BF16x2;
    unsigned dsts = d.s->pairedFirst ? 2 : 1;
    if (packed)
      d.inst.aux |= 16;
    if (packed && dsts != 2)
      return d.refuse("needs two destinations");
    if (!d.count(dsts + 2 + (how ? 1 : 0)))
      return false;
    for (unsigned k = 0; k < dsts; ++k)
      if (!d.dstPred(o[k]))
        return false;
    if (!d.src(o[dsts], ty) || !d.src(o[dsts + 1], ty) || (how && !d.srcPred(o[dsts + 2])))
      return false;
    d.inst.fn = pick_setp(ty, ftz);
  } else {
    Ty to = d.takeType(), ty = d.takeType();
    if (tyBits(to) != 32 || to == Ty::F16x2 || ty == Ty::F16x2 || ty == Ty::BF16x2)
      return d.refuse("with this type is not modelled");
    d.inst.imm = to == Ty::F32 ? 0x3f800000 : 0xffffffff;
    if (!d.count(how ? 4 : 3) || !d.dst(o[0], to) || !d.src(o[1], ty) || !d.src(o[2], ty) ||
        (how && !d.srcPred(o[3])))
      return false;
    d.inst.fn = pick_set(ty, ftz);
  }
  return d.inst.fn || d.refuse("with this type is not modelled");
}
