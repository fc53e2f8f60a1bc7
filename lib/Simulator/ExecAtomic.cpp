//===- ExecAtomic.cpp - atom and red (PTX ISA 9.7.13) ---------------------===//
#include "Atomic.h"
#include "Lanes.h"
#include "MemoryOrder.h"
#include "Numeric.h"
#include "llvm/Support/FormatVariadic.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;
using llvm::StringRef;

namespace {

// select: bits 0-7 operation, 8-15 type, 16-19 ordering; aux: space, bit 8 own CTA only, bit 9 red,
// bits 16- elements.

uint64_t applyInt(AtomicOp op, uint64_t old, uint64_t b, uint64_t c, Ty ty) {
  bool isSigned = tySigned(ty);
  unsigned bits = tyBits(ty);
  auto less = [&](uint64_t x, uint64_t y) {
    if (!isSigned)
      return x < y;
    return int64_t(x << (64 - bits)) < int64_t(y << (64 - bits));
  };
  switch (op) {
  case AAdd:
    return old + b;
  case AAnd:
    return old & b;
  case AOr:
    return old | b;
  case AXor:
    return old ^ b;
  case AExch:
    return b;
  case ACas:
    return old == b ? c : old;
  case AInc:
    return old >= b ? 0 : old + 1;
  case ADec:
    return old == 0 || old > b ? b : old - 1;
  case AMin:
    return less(b, old) ? b : old;
  case AMax:
    return less(old, b) ? b : old;
  }
  return old;
}

uint64_t halfAtomic(AtomicOp op, uint32_t old, uint32_t b, bool bf) {
  auto wide = [&](uint32_t h) { return bf ? bf16ToFloat(h) : f16ToFloat(h); };
  float x = wide(old), y = wide(b), r;
  if (op == AAdd)
    r = x + y;
  else if (op == AMin)
    r = x != x ? y : y != y ? x : std::min(x, y);
  else
    r = x != x ? y : y != y ? x : std::max(x, y);
  return bf ? floatToBf16(r) : floatToF16(r);
}

} // namespace

uint64_t tessera::sim::detail::applyAtomic(AtomicOp op, uint64_t old, uint64_t b, uint64_t c,
                                           Ty ty) {
  switch (ty) {
  case Ty::F32:
    if (op == AAdd)
      return bitCast<uint32_t>(
          canonical(bitCast<float>(uint32_t(old)) + bitCast<float>(uint32_t(b))));
    return applyInt(op, old, b, c, Ty::B32);
  case Ty::F64:
    return bitCast<uint64_t>(bitCast<double>(old) + bitCast<double>(b));
  case Ty::F16:
  case Ty::BF16:
    return halfAtomic(op, old & 0xffff, b & 0xffff, ty == Ty::BF16);
  case Ty::F16x2:
  case Ty::BF16x2:
    return halfAtomic(op, old & 0xffff, b & 0xffff, ty == Ty::BF16x2) |
           halfAtomic(op, old >> 16 & 0xffff, b >> 16 & 0xffff, ty == Ty::BF16x2) << 16;
  default:
    return applyInt(op, old, b, c, ty);
  }
}

bool tessera::sim::detail::isAtomicType(Ty ty) {
  unsigned bits = tyBits(ty);
  return bits == 16 || bits == 32 || bits == 64;
}

Ty tessera::sim::detail::reductionType(TensorElement t) {
  switch (t) {
  case TensorElement::U32:
    return Ty::U32;
  case TensorElement::S32:
    return Ty::S32;
  case TensorElement::U64:
    return Ty::U64;
  case TensorElement::S64:
    return Ty::S64;
  case TensorElement::F16:
    return Ty::F16;
  case TensorElement::BF16:
    return Ty::BF16;
  case TensorElement::F64:
    return Ty::F64;
  case TensorElement::U8:
  case TensorElement::U16:
    return Ty::None;
  default:
    return Ty::F32;
  }
}

int tessera::sim::detail::takeAtomicOp(Decoder &d) {
  static const char *names[] = {"add", "and", "or",  "xor", "exch",
                                "cas", "inc", "dec", "min", "max"};
  for (int k = 0; k < 10; ++k)
    if (d.take(names[k]))
      return k;
  return -1;
}

namespace {

uint64_t lane(Exec &e, const Inst &i, unsigned n, unsigned l) {
  return e.op(i, n).cls == RegClass::R64 ? e.src<uint64_t>(i, n)[l] : e.src<uint32_t>(i, n)[l];
}

Step atomic(Exec &e, const Inst &i) {
  AtomicOp op = AtomicOp(i.select & 255);
  Ty ty = Ty(i.select >> 8 & 255);
  unsigned bytes = tyBits(ty) / 8, elements = i.aux >> 16;
  bool isRed = i.aux >> 9 & 1;
  Ordering ordering = Ordering::decode(i.select >> 16);
  unsigned first = isRed ? 0 : elements; // position of the address operand
  for (uint32_t lanes = e.active; lanes; lanes &= lanes - 1) {
    unsigned l = llvm::countr_zero(lanes);
    uint64_t address = addressAt(e, i, first, l);
    if (address % (bytes * elements)) {
      e.report(
          DiagKind::Misaligned, i,
          llvm::formatv("address {0:x} is not a multiple of {1}", address, bytes * elements).str(),
          l);
      continue;
    }
    Place place;
    Space space = Space(i.aux & 255);
    bool found =
        space == Space::Shared
            ? resolveShared(e, i, address, bytes * elements, l, i.aux >> 8 & 1, place)
            : resolve(e, i, space, address, bytes * elements, l, AccessKind::Update, place);
    if (!found)
      continue;
    orderRead(e, place, ordering);
    if (place.cta)
      noteShared(e, i, place, bytes * elements, l, AccessKind::Update, true);
    else if (place.buffer)
      noteGlobal(e, i, place, bytes * elements, l, AccessKind::Update, ordering);
    for (unsigned k = 0; k < elements; ++k) {
      uint64_t b = lane(e, i, first + 1 + k, l);
      uint64_t c = op == ACas ? lane(e, i, first + 2, l) : 0;
      uint64_t old = 0;
      {
        std::unique_lock<std::mutex> lock(e.run->atomicMutex, std::defer_lock);
        if (!place.cta)
          lock.lock();
        memcpy(&old, place.data + k * bytes, bytes);
        uint64_t now = applyAtomic(op, old, b, c, ty);
        memcpy(place.data + k * bytes, &now, bytes);
      }
      if (!isRed && !e.op(i, k).sink) {
        if (e.op(i, k).cls == RegClass::R64)
          e.dst<uint64_t>(i, k)[l] = old;
        else
          e.dst<uint32_t>(i, k)[l] = uint32_t(old);
      }
    }
    orderWrite(e, place, ordering, true);
  }
  e.cluster->event();
  return Step::Next;
}

} // namespace

bool tessera::sim::detail::decodeAtomic(Decoder &d, StringRef opcode) {
  if (opcode != "atom" && opcode != "red")
    return false;
  if (d.has("async"))
    return d.refuse("red.async is not modelled");
  const auto &o = d.s->operands;
  bool isRed = opcode == "red";
  MemoryMods m;
  if (!takeMemoryMods(d, m))
    return false;
  int op = takeAtomicOp(d);
  d.take("noftz");
  StringRef hintName;
  bool hint = d.takePrefix("L2::", hintName);
  unsigned n = d.takeNumber("v");
  n = n ? n : 1;
  Ty ty = d.takeType();
  bool isFloat = ty == Ty::F32 || ty == Ty::F64;
  bool isHalf = ty == Ty::F16 || ty == Ty::F16x2 || ty == Ty::BF16 || ty == Ty::BF16x2;
  if (op < 0 || !isAtomicType(ty) || (isFloat && op != AAdd) ||
      (isHalf && op != AAdd && op != AMin && op != AMax) || n > 8 || (n > 1 && op == ACas))
    return d.refuse("with this operation and type is not modelled");
  m.ordering.relaxed = true; // the default of .sem
  d.inst.select = op | uint32_t(ty) << 8 | m.ordering.encode() << 16;
  d.inst.aux = uint32_t(m.space) | (m.space == Space::Shared && !m.cluster ? 256u : 0u) |
               (isRed ? 512u : 0u) | n << 16;
  d.inst.fn = &atomic;
  d.inst.flags |= FlagCounted;
  unsigned at = 0;
  if (!d.count((isRed ? 2 : 3) + (op == ACas) + hint))
    return false;
  if (!isRed && !d.vectorOf(o[at++], n, ty, true))
    return false;
  if (!d.address(o[at++], m.space) || !d.vectorOf(o[at++], n, ty, false))
    return false;
  return op != ACas || d.src(o[at], ty);
}
