//===- ExecMemory.cpp - ld, st, prefetch (PTX ISA 9.7.9) ------------------===//
#include "Lanes.h"
#include "MemoryOrder.h"
#include "llvm/Support/FormatVariadic.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;
using llvm::StringRef;

namespace {

// select: bits 0-7 bytes of an element, 8-15 elements, then flags.
enum : uint32_t { MSigned = 1u << 16, MOwn = 1u << 17 };
constexpr unsigned kOrderingShift = 20;

bool aligned(Exec &e, const Inst &i, uint64_t address, uint32_t bytes, unsigned lane) {
  if (address % bytes == 0)
    return true;
  e.report(DiagKind::Misaligned, i,
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

void setLane(Exec &e, const Inst &i, unsigned n, unsigned lane, uint64_t v) {
  const Op &o = e.op(i, n);
  if (o.sink)
    return;
  switch (o.cls) {
  case RegClass::R64:
    e.dst<uint64_t>(i, n)[lane] = v;
    break;
  case RegClass::R32:
    e.dst<uint32_t>(i, n)[lane] = uint32_t(v);
    break;
  default:
    e.dst<uint32_t>(i, n)[lane] = uint32_t(v) & (o.cls == RegClass::R8 ? 0xff : 0xffff);
  }
}

Step load(Exec &e, const Inst &i) {
  unsigned bytes = i.select & 255, count = i.select >> 8 & 255;
  Ordering ordering = Ordering::decode(i.select >> kOrderingShift);
  Space space = Space(i.aux);
  for (uint32_t lanes = e.active; lanes; lanes &= lanes - 1) {
    unsigned l = llvm::countr_zero(lanes);
    uint64_t address = addressAt(e, i, count, l);
    Place place;
    if (!aligned(e, i, address, bytes * count, l))
      continue;
    bool found = space == Space::Shared
                     ? resolveShared(e, i, address, bytes * count, l, i.select & MOwn, place)
                     : resolve(e, i, space, address, bytes * count, l, AccessKind::Read, place);
    if (!found)
      continue;
    // First acquired, then read: the order of the checks too.
    orderRead(e, place, ordering);
    if (place.cta)
      noteShared(e, i, place, bytes * count, l, AccessKind::Read, ordering.strong());
    else if (place.buffer && !place.buffer->readOnly)
      noteGlobal(e, i, place, bytes * count, l, AccessKind::Read, ordering);
    for (unsigned k = 0; k < count; ++k)
      setLane(e, i, k, l, extend(place.data + k * bytes, bytes, i.select & MSigned));
  }
  return Step::Next;
}

Step store(Exec &e, const Inst &i) {
  unsigned bytes = i.select & 255, count = i.select >> 8 & 255;
  Ordering ordering = Ordering::decode(i.select >> kOrderingShift);
  Space space = Space(i.aux);
  for (uint32_t lanes = e.active; lanes; lanes &= lanes - 1) {
    unsigned l = llvm::countr_zero(lanes);
    uint64_t address = addressAt(e, i, 0, l);
    Place place;
    if (!aligned(e, i, address, bytes * count, l))
      continue;
    bool found = space == Space::Shared
                     ? resolveShared(e, i, address, bytes * count, l, i.select & MOwn, place)
                     : resolve(e, i, space, address, bytes * count, l, AccessKind::Write, place);
    if (!found)
      continue;
    if (place.cta)
      noteShared(e, i, place, bytes * count, l, AccessKind::Write, ordering.strong());
    bool changes = false;
    for (unsigned k = 0; k < count; ++k) {
      const Op &o = e.op(i, k + 1);
      uint64_t v =
          o.cls == RegClass::R64 ? e.src<uint64_t>(i, k + 1)[l] : e.src<uint32_t>(i, k + 1)[l];
      changes |= memcmp(place.data + k * bytes, &v, bytes) != 0;
      memcpy(place.data + k * bytes, &v, bytes);
    }
    if (place.buffer)
      noteGlobal(e, i, place, bytes * count, l, AccessKind::Write, ordering, !changes);
    orderWrite(e, place, ordering, false);
  }
  e.cluster->event();
  return Step::Next;
}

/// Prefetches change nothing; the address is checked so that a wild one is found.
Step prefetchTensor(Exec &e, const Inst &i) {
  for (unsigned l = 0; l < kLanes; ++l)
    if (e.active >> l & 1) {
      Place place;
      resolve(e, i, Space(i.aux), addressAt(e, i, 0, l), 128, l, AccessKind::Read, place);
    }
  return Step::Next;
}
Step nothing(Exec &, const Inst &) { return Step::Next; }

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
    d.inst.fn = [](Exec &e, const Inst &i) {
      uint64_t zero[kLanes] = {};
      e.store(i, 0, zero);
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
  d.inst.select = bytes | n << 8 | (tySigned(ty) ? MSigned : 0u) |
                  m.ordering.encode() << kOrderingShift |
                  (m.space == Space::Shared && !m.cluster ? MOwn : 0u);
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
