//===- ExecMemory.cpp - ld, st, prefetch (PTX ISA 9.7.9) ------------------===//
#include "lib/Simulator/Lanes.h"
#include "lib/Simulator/ReleaseAcquire.h"
#include "llvm/Support/FormatVariadic.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;
using llvm::StringRef;

namespace {

// Parts of select.
using ElementBytes = BitField<unsigned, 0, 8>;
using Elements = BitField<unsigned, 8, 8>;
using IsSigned = BitField<bool, 16>;
using IsOwn = BitField<bool, 17>; ///< the CTA's own shared memory
using OrderingBits = BitField<uint32_t, 20, 4>;

bool aligned(Exec &exec, const Inst &inst, uint64_t address, uint32_t bytes, unsigned lane) {
  if (address % bytes == 0)
    return true;
  exec.report(DiagKind::Misaligned, inst,
              llvm::formatv("address {0:x} is not a multiple of {1}", address, bytes).str(), lane);
  return false;
}

uint64_t extend(const uint8_t *p, unsigned bytes, bool isSigned) {
  uint64_t v = 0;
  memcpy(&v, p, bytes);
  if (isSigned)
    v = uint64_t(int64_t(v << (64 - 8 * bytes)) >> (64 - 8 * bytes));
  return v;
}

void setLane(Exec &exec, const Inst &inst, unsigned n, unsigned lane, uint64_t v) {
  const Op &o = exec.op(inst, n);
  if (o.sink)
    return;
  switch (o.cls) {
  case RegClass::R64:
    exec.dst<uint64_t>(inst, n)[lane] = v;
    break;
  case RegClass::R32:
    exec.dst<uint32_t>(inst, n)[lane] = uint32_t(v);
    break;
  default:
    exec.dst<uint32_t>(inst, n)[lane] = uint32_t(v) & (o.cls == RegClass::R8 ? 0xff : 0xffff);
  }
}

/// What a load or a store accesses.
struct Access {
  unsigned bytes, count;
  Ordering ordering;
  Space space;
  bool isOwn;

  explicit Access(const Inst &inst)
      : bytes(ElementBytes::get(inst.select)), count(Elements::get(inst.select)),
        ordering(Ordering::decode(OrderingBits::get(inst.select))), space(Space(inst.aux)),
        isOwn(IsOwn::get(inst.select)) {}

  /// The elements of a lane, whose address is operand `n`; false after a report.
  bool find(Exec &exec, const Inst &inst, unsigned n, unsigned lane, AccessKind kind,
            Place &place) const {
    uint64_t address = addressAt(exec, inst, n, lane);
    if (!aligned(exec, inst, address, bytes * count, lane))
      return false;
    return space == Space::Shared
               ? resolveShared(exec, inst, address, bytes * count, lane, isOwn, place)
               : resolve(exec, inst, space, address, bytes * count, lane, kind, place);
  }
};

Step load(Exec &exec, const Inst &inst) {
  Access access(inst);
  unsigned bytes = access.bytes, count = access.count;
  uint32_t ofShared = 0;
  for (uint32_t lanes = exec.active; lanes; lanes &= lanes - 1) {
    unsigned lane = llvm::countr_zero(lanes);
    Place place;
    if (!access.find(exec, inst, count, lane, AccessKind::Read, place))
      continue;
    ofShared |= uint32_t(place.cta != nullptr) << lane;
    // First acquired, then read: the order of the checks too.
    orderRead(exec, place, access.ordering);
    if (place.cta)
      noteShared(exec, inst, place, bytes * count, lane, AccessKind::Read,
                 access.ordering.strong());
    else if (place.buffer && !place.buffer->readOnly)
      noteGlobal(exec, inst, place, bytes * count, lane, AccessKind::Read, access.ordering);
    for (unsigned k = 0; k < count; ++k)
      setLane(exec, inst, k, lane,
              extend(place.data + k * bytes, bytes, IsSigned::get(inst.select)));
  }
  if (ofShared)
    beginRead(exec, inst, ofShared);
  return Step::Next;
}

Step store(Exec &exec, const Inst &inst) {
  Access access(inst);
  unsigned bytes = access.bytes, count = access.count;
  for (uint32_t lanes = exec.active; lanes; lanes &= lanes - 1) {
    unsigned lane = llvm::countr_zero(lanes);
    Place place;
    if (!access.find(exec, inst, 0, lane, AccessKind::Write, place))
      continue;
    if (place.cta)
      noteShared(exec, inst, place, bytes * count, lane, AccessKind::Write,
                 access.ordering.strong());
    bool changes = false;
    for (unsigned k = 0; k < count; ++k) {
      uint64_t v = exec.word(inst, k + 1, lane);
      changes |= memcmp(place.data + k * bytes, &v, bytes) != 0;
      memcpy(place.data + k * bytes, &v, bytes);
    }
    if (place.buffer)
      noteGlobal(exec, inst, place, bytes * count, lane, AccessKind::Write, access.ordering,
                 !changes);
    orderWrite(exec, place, access.ordering, false);
  }
  exec.cluster->event();
  return Step::Next;
}

/// Prefetches change nothing; the address is checked so that a wild one is found.
Step prefetchTensor(Exec &exec, const Inst &inst) {
  for (unsigned lane = 0; lane < kLanes; ++lane)
    if (exec.isActive(lane)) {
      Place place;
      resolve(exec, inst, Space(inst.aux), addressAt(exec, inst, 0, lane), 128, lane,
              AccessKind::Read, place);
    }
  return Step::Next;
}

} // namespace

bool tessera::sim::detail::decodeMemory(Decoder &d, StringRef opcode) {
  const auto &o = d.s->operands;
  StringRef ignored;
  if (opcode == "prefetch" || opcode == "prefetchu") {
    MemoryMods m;
    if (!takeMemoryMods(d, m) || !d.count(1))
      return false;
    bool tensor = d.take("tensormap");
    d.takePrefix("L", ignored);
    d.inst.aux = uint32_t(m.space);
    d.inst.fn = tensor ? &prefetchTensor : &nothing;
    return d.address(o[0], m.space);
  }
  if (opcode == "applypriority" || opcode == "discard") {
    return d.refuse("is not modelled");
  }
  if (opcode == "createpolicy") {
    // Cache policies are opaque and have no effect on results.
    d.mods.clear();
    d.inst.fn = [](Exec &exec, const Inst &inst) {
      uint64_t zero[kLanes] = {};
      exec.store(inst, 0, zero);
      return Step::Next;
    };
    return d.count(1, 4) && d.dst(o[0], Ty::B64);
  }
  bool isLoad = opcode == "ld" || opcode == "ldu";
  if (!isLoad && opcode != "st")
    return false;
  if (d.has("async"))
    return decodeStoreAsync(d);
  MemoryMods m;
  if (!takeMemoryMods(d, m))
    return false;
  for (const char *cop : {"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc"})
    d.take(cop);
  bool hint = false;
  while (d.takePrefix("L1::", ignored) || d.takePrefix("L2::", ignored))
    hint |= ignored.contains("cache_hint");
  unsigned n = d.takeNumber("v");
  n = n ? n : 1;
  if (n > 8)
    return d.refuse("with a vector of " + llvm::Twine(n) + " elements does not exist");
  Ty ty = d.takeType();
  unsigned bytes = tyBits(ty) / 8;
  if (bytes == 0 || bytes > 8)
    return d.refuse("with this type is not modelled");
  if (!d.count(hint ? 3 : 2))
    return false;
  d.inst.select = ElementBytes::make(bytes) | Elements::make(n) | IsSigned::make(tySigned(ty)) |
                  OrderingBits::make(m.ordering.encode()) |
                  IsOwn::make(m.space == Space::Shared && !m.cluster);
  d.inst.aux = uint32_t(m.space);
  if (m.space != Space::Param)
    d.inst.flags |= FlagCounted;
  if (isLoad) {
    d.inst.fn = &load;
    return d.vectorOf(o[0], n, ty, true, true) && d.address(o[1], m.space);
  }
  d.inst.fn = &store;
  return d.address(o[0], m.space) && d.vectorOf(o[1], n, ty, false, true);
}
