//===- ExecHalf.cpp - f16 and bf16 arithmetic (PTX ISA 9.7.4) -------------===//
//
// A sum or product of two such numbers rounded to f32 and then to 16 bits is rounded correctly (24
// >= 2p + 2 bits); fma goes through a double rounded to odd.
//
//===----------------------------------------------------------------------===//
#include "lib/Simulator/Lanes.h"
#include "lib/Simulator/Numeric.h"

using namespace tessera::sim::detail;
using llvm::StringRef;

namespace {

enum HalfOp : uint32_t { HAdd, HSub, HMul, HFma, HMin, HMax, HNeg, HAbs, HEx2, HTanh };
constexpr uint32_t HBf16 = 16, HPacked = 32, HFtz = 64, HSat = 128, HRelu = 256, HNan = 512;

float widen(uint32_t h, uint32_t sel) {
  h &= 0xffff;
  if (sel & HBf16)
    return bf16ToFloat(h);
  if ((sel & HFtz) && (h & 0x7c00) == 0)
    h &= 0x8000;
  return f16ToFloat(h);
}
uint32_t narrow(double v, uint32_t sel) {
  if ((sel & HSat) && !(v > 0))
    v = 0;
  if ((sel & HSat) && v > 1)
    v = 1;
  if ((sel & HRelu) && v < 0)
    v = 0;
  uint32_t h = encodeFloat(v, sel & HBf16 ? kBF16 : kF16, Rounding::Nearest, false);
  if ((sel & HFtz) && !(sel & HBf16) && (h & 0x7c00) == 0)
    h &= 0x8000;
  return h;
}
uint32_t minMax(uint32_t x, uint32_t y, uint32_t sel, bool isMax) {
  float a = widen(x, sel), b = widen(y, sel);
  if (a != a || b != b) {
    if ((sel & HNan) || (a != a && b != b))
      return 0x7fff;
    return a != a ? y : x;
  }
  if (a == b)
    return ((x & 0x8000) != 0) == isMax ? y : x;
  return (a > b) == isMax ? x : y;
}
uint32_t scalar(uint32_t x, uint32_t y, uint32_t z, uint32_t sel) {
  x &= 0xffff;
  y &= 0xffff;
  switch (HalfOp(sel & 15)) {
  case HAdd:
    return narrow(widen(x, sel) + widen(y, sel), sel);
  case HSub:
    return narrow(widen(x, sel) - widen(y, sel), sel);
  case HMul:
    return narrow(widen(x, sel) * widen(y, sel), sel);
  case HFma:
    return narrow(fmaToOdd(widen(x, sel), widen(y, sel), widen(z, sel)), sel);
  case HMin:
    return minMax(x, y, sel, false);
  case HMax: {
    return minMax(x, y, sel, true);
  }
  case HNeg:
    return x ^ 0x8000;
  case HAbs:
    return x & 0x7fff;
  case HEx2:
    return narrow(std::exp2(double(widen(x, sel))), sel);
  case HTanh:
    return narrow(std::tanh(double(widen(x, sel))), sel);
  }
  return 0;
}

Step half(Exec &exec, const Inst &inst) {
  const uint32_t *a = exec.src<uint32_t>(inst, 1);
  const uint32_t *b = inst.opCount > 2 ? exec.src<uint32_t>(inst, 2) : a;
  const uint32_t *c = inst.opCount > 3 ? exec.src<uint32_t>(inst, 3) : a;
  uint32_t r[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    r[lane] = scalar(a[lane], b[lane], c[lane], inst.select);
    if (inst.select & HPacked)
      r[lane] |= scalar(a[lane] >> 16, b[lane] >> 16, c[lane] >> 16, inst.select) << 16;
  }
  exec.store(inst, 0, r);
  return Step::Next;
}

} // namespace

bool tessera::sim::detail::decodeHalf(Decoder &d, StringRef opcode) {
  static const std::pair<const char *, HalfOp> table[] = {
      {"add", HAdd}, {"sub", HSub}, {"mul", HMul}, {"fma", HFma}, {"min", HMin},
      {"max", HMax}, {"neg", HNeg}, {"abs", HAbs}, {"ex2", HEx2}, {"tanh", HTanh}};
  for (auto [name, op] : table) {
    if (opcode != name)
      continue;
    bool approx = d.take("approx");
    d.take("rn");
    uint32_t sel = op;
    sel |= (d.take("ftz") ? HFtz : 0) | (d.take("sat") ? HSat : 0) | (d.take("relu") ? HRelu : 0) |
           (d.take("NaN") ? HNan : 0);
    Ty ty = d.takeType();
    if (ty != Ty::F16 && ty != Ty::BF16 && ty != Ty::F16x2 && ty != Ty::BF16x2)
      return d.refuse("with this type is not modelled");
    if (approx != (op == HEx2 || op == HTanh))
      return d.refuse("in this form is not modelled");
    if ((sel & HRelu) && op != HFma)
      return d.refuse("modifier .relu is not modelled here");
    if (ty == Ty::BF16 || ty == Ty::BF16x2)
      sel |= HBf16;
    if (ty == Ty::F16x2 || ty == Ty::BF16x2)
      sel |= HPacked;
    unsigned n = op == HFma ? 3 : op <= HMax ? 2 : 1;
    const auto &o = d.s->operands;
    if (!d.count(n + 1) || !d.dst(o[0], ty))
      return false;
    for (unsigned k = 1; k <= n; ++k)
      if (!d.src(o[k], ty))
        return false;
    d.inst.select = sel;
    d.inst.fn = &half;
    return true;
  }
  return false;
}
