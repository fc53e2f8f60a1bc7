//===- GlobalShadow.cpp - Who touched which word of global memory ---------===//
#include "lib/Simulator/GlobalShadow.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;

void GlobalShadow::reset(const GlobalMemory &memory, bool shared) {
  locking = shared;
  numPages = 0;
  pages.clear();
  for (const auto &buffer : memory.buffers()) {
    if (buffer->readOnly)
      continue;
    auto made = std::make_unique<Pages>();
    made->list.resize((buffer->size + 4 * kPageWords - 1) / (4 * kPageWords));
    pages[buffer.get()] = std::move(made);
  }
}

static uint32_t epochOf(const ClusterView::Epochs &epochs, uint32_t agent) {
  return agent < epochs.size() ? epochs[agent] : 0;
}

/// The view that an access in `cluster` with this clock has of another access's cluster.
static const ClusterView *viewOf(const GlobalAccess &earlier, uint32_t cluster,
                                 const Clock &order) {
  return earlier.cluster == cluster ? &order.local() : order.remote(earlier.cluster);
}

static bool isOrdered(const GlobalAccess &earlier, const GlobalAccess &a, const Clock &order) {
  const ClusterView *view = viewOf(earlier, a.cluster, order);
  return view && epochOf(view->seen, earlier.agent) >= earlier.epoch;
}

static bool fenced(const GlobalAccess &earlier, const GlobalAccess &a, const Clock &order) {
  const ClusterView *view = viewOf(earlier, a.cluster, order);
  return view &&
         epochOf(view->fenced[unsigned(FenceSpace::Global)], earlier.agent) >= earlier.epoch;
}

/// Neither is weak, and the scope of each includes the other (PTX ISA 8.6).
static bool morallyStrong(const GlobalAccess &a, const GlobalAccess &b) {
  auto weakest = Strength(std::min<uint8_t>(a.strength, b.strength));
  return weakest == Strength::Device || (weakest == Strength::Cluster && a.cluster == b.cluster);
}

/// A store does not run ahead of the branch that an atomic operation decided: the last block may
/// set a counter back that the others, as its relaxed operation found, have left. The memory model
/// orders that by a fence only; no machine needs one.
static bool leftAlone(const GlobalAccess &earlier, const Clock &order) {
  return Strength(earlier.strength) != Strength::Weak &&
         order.hasFound(earlier.cluster, earlier.agent, earlier.epoch);
}

template <class Fn>
void GlobalShadow::forWords(const GlobalMemory::Buffer &buffer, uint64_t offset, uint32_t bytes,
                            Fn fn) {
  auto found = pages.find(&buffer);
  if (found == pages.end())
    return;
  Pages &of = *found->second;
  for (uint64_t end = offset + bytes; offset < end;) {
    uint64_t page = offset / (4 * kPageWords);
    std::unique_lock<std::mutex> lock(of.locks[page % kStripes], std::defer_lock);
    if (locking)
      lock.lock();
    uint64_t stop = std::min(end, (page + 1) * 4 * kPageWords);
    if (!of.list[page] && numPages++ < kMaxPages)
      of.list[page] = std::make_unique<Page>();
    if (!of.list[page])
      offset = stop;
    while (offset < stop) {
      uint64_t word = offset / 4, first = offset % 4;
      uint64_t last = std::min<uint64_t>(stop - word * 4, 4);
      uint8_t mask = uint8_t(((1u << last) - 1) & ~((1u << first) - 1));
      fn((*of.list[page])[word % kPageWords], mask, word * 4);
      offset = word * 4 + last;
    }
  }
}

void GlobalShadow::addRead(Cell &cell, const GlobalAccess &a, const Clock &order) {
  for (unsigned k = 0; k < cell.readers; ++k) {
    GlobalAccess &r = cell.reads[k];
    // A weak read and a strong one that has found a write each say something of their own.
    if ((r.bytes & ~a.bytes) || r.strength != a.strength)
      continue;
    bool same = r.cluster == a.cluster && r.agent == a.agent;
    // Who is ordered after this read is then ordered after that one.
    if (same || isOrdered(r, a, order)) {
      r = a;
      return;
    }
  }
  if (cell.readers < kReaders) {
    cell.reads[cell.readers++] = a;
    return;
  }
  // Of many readers that nothing orders some are forgotten: a race may be missed, none invented.
  cell.reads[cell.victim] = a;
  cell.victim = (cell.victim + 1) % kReaders;
  cell.forgot = 1;
}

/// Whether the last write comes before an access since a strong read before that has found it
/// (PTX ISA 8.9.6, causality order: observation, and then base causality order). What its thread
/// did before the write does not: that takes a release and an acquire.
bool GlobalShadow::isObserved(const Cell &cell, const GlobalAccess &a, const Clock &order) {
  if (Strength(cell.write.strength) == Strength::Weak)
    return false;
  return cell.forgot || std::any_of(cell.reads, cell.reads + cell.readers, [&](const auto &r) {
           return morallyStrong(cell.write, r) && isOrdered(r, a, order);
         });
}

/// Whether the async proxy may not see a write that comes before. What one block hands on to
/// another goes through the generic proxy, also where both copy (PTX ISA 8.2.2).
static bool lacksFence(const GlobalAccess &earlier, const GlobalAccess &a, const Clock &order) {
  bool isHandedOn = !earlier.async || earlier.cluster != a.cluster;
  return a.async && isHandedOn && !fenced(earlier, a, order);
}

GlobalConflict GlobalShadow::read(const GlobalMemory::Buffer &buffer, uint64_t offset,
                                  uint32_t bytes, const GlobalAccess &access, const Clock &order) {
  GlobalConflict out;
  GlobalAccess a = access;
  forWords(buffer, offset, bytes, [&](Cell &cell, uint8_t mask, uint64_t at) {
    a.bytes = mask;
    if ((cell.written & mask) && out.kind == GlobalConflict::None &&
        !morallyStrong(cell.write, a)) {
      if (!isOrdered(cell.write, a, order) && !isObserved(cell, a, order))
        out = {GlobalConflict::Unordered, true, cell.write, at};
      else if (a.async && !cell.write.async && !fenced(cell.write, a, order))
        out = {GlobalConflict::Unfenced, true, cell.write, at};
    }
    addRead(cell, a, order);
  });
  return out;
}

GlobalConflict GlobalShadow::write(const GlobalMemory::Buffer &buffer, uint64_t offset,
                                   uint32_t bytes, const GlobalAccess &access, const Clock &order,
                                   bool unchanged) {
  GlobalConflict out;
  GlobalAccess a = access;
  forWords(buffer, offset, bytes, [&](Cell &cell, uint8_t mask, uint64_t at) {
    a.bytes = mask;
    bool none = out.kind == GlobalConflict::None;
    if ((cell.written & mask) && none && !morallyStrong(cell.write, a)) {
      if (!isOrdered(cell.write, a, order) && !isObserved(cell, a, order)) {
        if (!unchanged && !leftAlone(cell.write, order))
          out = {GlobalConflict::Unordered, true, cell.write, at};
      } else if (lacksFence(cell.write, a, order)) {
        out = {GlobalConflict::Unfenced, true, cell.write, at};
      }
    }
    for (unsigned k = 0; k < cell.readers && out.kind == GlobalConflict::None; ++k) {
      const GlobalAccess &r = cell.reads[k];
      if ((r.bytes & mask) && !morallyStrong(r, a) && !isOrdered(r, a, order) &&
          !leftAlone(r, order))
        out = {GlobalConflict::Unordered, false, r, at};
    }
    cell.readers = 0;
    cell.forgot = 0;
    bool samePiece = cell.written && cell.write.cluster == a.cluster &&
                     cell.write.agent == a.agent && cell.write.epoch == a.epoch;
    cell.written = samePiece ? cell.written | mask : mask;
    cell.write = a;
  });
  return out;
}
