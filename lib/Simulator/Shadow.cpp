//===- Shadow.cpp - Who touched which shared memory word ------------------===//
#include "lib/Simulator/Shadow.h"

using namespace tessera::sim::detail;

void Shadow::reset(uint32_t bytes) {
  cells.assign((bytes + 3) / 4, Cell());
  more.clear();
}

void Shadow::markBarrier(uint32_t offset, bool on) {
  for (uint32_t w = offset / 4; w < offset / 4 + 2 && w < cells.size(); ++w) {
    cells[w] = Cell();
    cells[w].barrier = on;
  }
}

static bool ordered(const Access &earlier, const Clock &order) {
  return order.seen(earlier.agent) >= earlier.epoch;
}

/// The bytes of word `w` that [offset, offset + bytes) covers.
static uint8_t coverage(uint32_t w, uint32_t offset, uint32_t bytes) {
  if (w * 4 >= offset && w * 4 + 4 <= offset + bytes)
    return 15;
  uint32_t first = std::max(offset, w * 4) - w * 4;
  uint32_t last = std::min(offset + bytes, w * 4 + 4) - w * 4;
  return uint8_t(((1u << last) - 1) & ~((1u << first) - 1));
}

void Shadow::checkReads(Cell &c, uint32_t word, const Access &a, const Clock &order,
                        Conflict &out) {
  auto check = [&](const Access &r) {
    if (ordered(r, order) || !(r.bytes & a.bytes) || (r.strong && a.strong) ||
        out.hazard != Hazard::None)
      return;
    out = {Hazard::Unordered, r, false, word * 4};
  };
  for (unsigned i = 0; i < c.readers; ++i)
    check(c.reads[i]);
  if (c.overflow) {
    for (const Access &r : more[word])
      check(r);
    more.erase(word);
    c.overflow = false;
  }
  c.readers = 0;
}

void Shadow::addRead(Cell &c, uint32_t word, const Access &a, const Clock &order) {
  for (unsigned i = 0; i < c.readers; ++i)
    if (c.reads[i].agent == a.agent) {
      uint8_t bytes = c.reads[i].bytes | a.bytes;
      c.reads[i] = a;
      c.reads[i].bytes = bytes;
      return;
    }
  if (c.readers < kReaders) {
    c.reads[c.readers++] = a;
    return;
  }
  // A read that this one is ordered after need not be kept: who is ordered after this one is
  // ordered after it.
  for (Access &r : c.reads)
    if (ordered(r, order)) {
      r = a;
      return;
    }
  c.overflow = true;
  std::vector<Access> &list = more[word];
  for (Access &r : list)
    if (r.agent == a.agent) {
      r = a;
      return;
    }
  list.push_back(a);
}

/// Holds access `a` against the last write of the bytes.
void Shadow::checkWrite(const Cell &c, uint32_t word, const Access &a, const Clock &order,
                        Conflict &out) {
  if (!(c.written & a.bytes) || out.hazard != Hazard::None || (c.write.strong && a.strong))
    return;
  if (!ordered(c.write, order))
    out = {Hazard::Unordered, c.write, true, word * 4};
  else if (a.async && !c.write.async && order.fenced(c.write.agent) < c.write.epoch)
    out = {Hazard::Unfenced, c.write, true, word * 4};
}

template <typename Visit>
void Shadow::forEachWord(uint32_t offset, uint32_t bytes, Access access, Visit visit) {
  for (uint32_t w = offset / 4, e = (offset + bytes + 3) / 4; w < e; ++w) {
    access.bytes = coverage(w, offset, bytes);
    visit(cells[w], w, access);
  }
}

Conflict Shadow::write(uint32_t offset, uint32_t bytes, const Access &access, const Clock &order) {
  Conflict out;
  forEachWord(offset, bytes, access, [&](Cell &c, uint32_t w, const Access &a) {
    if (c.barrier && out.hazard == Hazard::None)
      out = {Hazard::Barrier, a, false, w * 4};
    c.init |= a.bytes;
    if (!checking)
      return;
    checkWrite(c, w, a, order, out);
    if (c.readers)
      checkReads(c, w, a, order, out);
    // A copy may write a word in two pieces, where its box leaves the tensor.
    bool samePiece = c.written && c.write.agent == a.agent && c.write.epoch == a.epoch;
    c.written = samePiece ? c.written | a.bytes : a.bytes;
    c.write = a;
  });
  return out;
}

Conflict Shadow::read(uint32_t offset, uint32_t bytes, const Access &access, const Clock &order) {
  Conflict out;
  forEachWord(offset, bytes, access, [&](Cell &c, uint32_t w, const Access &a) {
    if (out.hazard == Hazard::None) {
      if (c.barrier)
        out = {Hazard::Barrier, a, false, w * 4};
      else if ((c.init & a.bytes) != a.bytes)
        out = {Hazard::Uninitialised, a, false, w * 4};
    }
    if (!checking)
      return;
    checkWrite(c, w, a, order, out);
    addRead(c, w, a, order);
  });
  return out;
}
