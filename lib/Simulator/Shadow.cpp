//===- Shadow.cpp - Who touched which shared memory word ------------------===//
#include "lib/Simulator/Shadow.h"

using namespace tessera::sim::detail;

void Shadow::reset(uint32_t bytes) {
  units.assign((bytes + kUnitBytes - 1) / kUnitBytes, Unit());
  others.clear();
  freeOthers.clear();
  more.clear();
}

void Shadow::split(uint32_t number) {
  Unit &unit = units[number];
  if (freeOthers.empty()) {
    others.emplace_back();
    unit.others = others.size();
  } else {
    unit.others = freeOthers.back();
    freeOthers.pop_back();
  }
  others[unit.others - 1].fill(unit.first);
  if (!unit.first.overflow)
    return;
  const std::vector<Access> readers = more[number * kUnitWords];
  for (unsigned k = 1; k < kUnitWords; ++k)
    more[number * kUnitWords + k] = readers;
}

void Shadow::join(uint32_t number) {
  Unit &unit = units[number];
  bool hasBarrier = unit.first.barrier;
  for (const Cell &cell : others[unit.others - 1])
    hasBarrier |= cell.barrier;
  if (hasBarrier)
    return;
  freeOthers.push_back(unit.others);
  unit.others = 0;
}

void Shadow::markBarrier(uint32_t offset, bool on) {
  for (uint32_t w = offset / 4; w < offset / 4 + 2 && w / kUnitWords < units.size(); ++w) {
    if (!units[w / kUnitWords].others)
      split(w / kUnitWords);
    cellOf(w) = Cell();
    cellOf(w).barrier = on;
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

/// Whether a read was over when who has this clock last heard of its warp.
bool Shadow::isOver(const Access &r, const Clock &order) const {
  const ReadsInFlight *reads = r.async ? nullptr : (*agentReads)[r.agent];
  return !reads || reads->isOver(r.epoch, order.seen(r.agent));
}

/// Holds write `a` against a read before it.
void Shadow::checkRead(const Access &r, uint32_t word, const Access &a, const Clock &order,
                       Conflict &out) const {
  if (!(r.bytes & a.bytes) || (r.strong && a.strong) || out.hazard != Hazard::None)
    return;
  uint32_t seen = order.seen(r.agent);
  if (seen < r.epoch) {
    out = {Hazard::Unordered, r, false, word * 4, {}};
    return;
  }
  // Generic writes wait for reads that a release comes behind, copies for those that are over or
  // that a proxy fence has ordered.
  if (a.async && !isOver(r, order) && order.fenced(r.agent) < r.epoch)
    out = {Hazard::Overtaken, r, false, word * 4, (*agentReads)[r.agent]->releaseIn(seen)};
}

void Shadow::checkReads(Cell &c, uint32_t word, const Access &a, const Clock &order,
                        Conflict &out) {
  auto check = [&](const Access &r) { checkRead(r, word, a, order, out); };
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
  // A read that this one is ordered after need not be kept once it is over: who is ordered after
  // this one is ordered after it.
  for (Access &r : c.reads)
    if (ordered(r, order) && isOver(r, order)) {
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
    out = {Hazard::Unordered, c.write, true, word * 4, {}};
  else if (a.async && !c.write.async && order.fenced(c.write.agent) < c.write.epoch)
    out = {Hazard::Unfenced, c.write, true, word * 4, {}};
}

template <typename Visit>
void Shadow::forEachCell(uint32_t offset, uint32_t bytes, Access access, Visit visit) {
  for (uint32_t w = offset / 4, e = (offset + bytes + 3) / 4; w < e;) {
    uint32_t number = w / kUnitWords;
    bool isWhole = w * 4 >= offset && w % kUnitWords == 0 && (w + kUnitWords) * 4 <= offset + bytes;
    if (isWhole && !units[number].others) {
      access.bytes = 15;
      visit(units[number].first, w, access);
      w += kUnitWords;
      continue;
    }
    if (!units[number].others)
      split(number);
    access.bytes = coverage(w, offset, bytes);
    visit(cellOf(w), w, access);
    ++w;
  }
}

Conflict Shadow::write(uint32_t offset, uint32_t bytes, const Access &access, const Clock &order) {
  Conflict out;
  forEachCell(offset, bytes, access, [&](Cell &c, uint32_t w, const Access &a) {
    if (c.barrier && out.hazard == Hazard::None)
      out = {Hazard::Barrier, a, false, w * 4, {}};
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
  // The words of a unit have the same state behind a write of all of them.
  uint32_t end = (offset + bytes) / kUnitBytes;
  for (uint32_t u = (offset + kUnitBytes - 1) / kUnitBytes; checking && u < end; ++u)
    if (units[u].others)
      join(u);
  return out;
}

Conflict Shadow::read(uint32_t offset, uint32_t bytes, const Access &access, const Clock &order) {
  Conflict out;
  forEachCell(offset, bytes, access, [&](Cell &c, uint32_t w, const Access &a) {
    if (out.hazard == Hazard::None) {
      if (c.barrier)
        out = {Hazard::Barrier, a, false, w * 4, {}};
      else if ((c.init & a.bytes) != a.bytes)
        out = {Hazard::Uninitialised, a, false, w * 4, {}};
    }
    if (!checking)
      return;
    checkWrite(c, w, a, order, out);
    addRead(c, w, a, order);
  });
  return out;
}
