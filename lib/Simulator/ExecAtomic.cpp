//===- ExecAtomic.cpp - atom and red (PTX ISA 9.7.13) ---------------------===//
#include "lib/Simulator/Atomic.h"
#include "lib/Simulator/Lanes.h"
#include "lib/Simulator/Numeric.h"
#include "lib/Simulator/ReleaseAcquire.h"
#include "llvm/Support/FormatVariadic.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;
using llvm::StringRef;

namespace {

// Parts of select.
using Operation = BitField<AtomicOp, 0, 8>;
using ElementType = BitField<Ty, 8, 8>;
using OrderingBits = BitField<uint32_t, 16, 4>;
// Parts of aux.
using StateSpace = BitField<Space, 0, 8>;
using IsOwn = BitField<bool, 8>; ///< the CTA's own shared memory
using IsRed = BitField<bool, 9>;
using Elements = BitField<unsigned, 16, 16>;

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

Step atomic(Exec &exec, const Inst &inst) {
  AtomicOp op = Operation::get(inst.select);
  Ty ty = ElementType::get(inst.select);
  unsigned bytes = tyBits(ty) / 8, elements = Elements::get(inst.aux);
  bool isRed = IsRed::get(inst.aux);
  Ordering ordering = Ordering::decode(OrderingBits::get(inst.select));
  unsigned first = isRed ? 0 : elements; // position of the address operand
  for (uint32_t lanes = exec.active; lanes; lanes &= lanes - 1) {
    unsigned lane = llvm::countr_zero(lanes);
    uint64_t address = addressAt(exec, inst, first, lane);
    if (address % (bytes * elements)) {
      exec.report(
          DiagKind::Misaligned, inst,
          llvm::formatv("address {0:x} is not a multiple of {1}", address, bytes * elements).str(),
          lane);
      continue;
    }
    Place place;
    Space space = Space(inst.aux & 255);
    bool found = space == Space::Shared ? resolveShared(exec, inst, address, bytes * elements, lane,
                                                        inst.aux >> 8 & 1, place)
                                        : resolve(exec, inst, space, address, bytes * elements,
                                                  lane, AccessKind::Update, place);
    if (!found)
      continue;
    orderRead(exec, place, ordering);
    if (place.cta)
      noteShared(exec, inst, place, bytes * elements, lane, AccessKind::Update, true);
    else if (place.buffer)
      noteGlobal(exec, inst, place, bytes * elements, lane, AccessKind::Update, ordering);
    for (unsigned k = 0; k < elements; ++k) {
      uint64_t b = exec.word(inst, first + 1 + k, lane);
      uint64_t c = op == ACas ? exec.word(inst, first + 2, lane) : 0;
      uint64_t old = 0;
      {
        std::unique_lock<std::mutex> lock(exec.run->atomicMutex, std::defer_lock);
        if (!place.cta)
          lock.lock();
        memcpy(&old, place.data + k * bytes, bytes);
        uint64_t now = applyAtomic(op, old, b, c, ty);
        memcpy(place.data + k * bytes, &now, bytes);
      }
      if (!isRed && !exec.op(inst, k).sink) {
        if (exec.op(inst, k).cls == RegClass::R64)
          exec.dst<uint64_t>(inst, k)[lane] = old;
        else
          exec.dst<uint32_t>(inst, k)[lane] = uint32_t(old);
      }
    }
    orderWrite(exec, place, ordering, true);
  }
  exec.cluster->event();
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
  d.inst.select = Operation::make(AtomicOp(op)) | ElementType::make(ty) |
                  OrderingBits::make(m.ordering.encode());
  d.inst.aux = StateSpace::make(m.space) | IsOwn::make(m.space == Space::Shared && !m.cluster) |
               IsRed::make(isRed) | Elements::make(n);
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
