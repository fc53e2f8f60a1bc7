//===- AsyncEngine.cpp - Completion of bulk copies ------------------------===//
//
// A load writes shared memory and completes bytes on its mbarrier in one step; a store reads its
// sources in one step and writes global memory in another, since wait_group.read and wait_group
// tell the two apart.
//
//===----------------------------------------------------------------------===//
#include "lib/Simulator/Async.h"
#include "lib/Simulator/Atomic.h"
#include "lib/Simulator/Numeric.h"
#include "lib/Simulator/ReleaseAcquire.h"
#include "lib/Simulator/Sync.h"
#include "lib/Simulator/TensorMap.h"
#include "llvm/Support/FormatVariadic.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;

std::unique_ptr<AsyncOp> tessera::sim::detail::makeAsync(const Exec &exec, const Inst &inst,
                                                         AsyncOp::Kind kind, unsigned lane) {
  auto op = std::make_unique<AsyncOp>();
  op->kind = kind;
  op->inst = &inst;
  op->warp = exec.warp;
  op->lane = lane;
  return op;
}

void tessera::sim::detail::joinGroups(AsyncGroups &groups, AsyncOp &op) {
  op.groups = &groups;
  op.groupIndex = groups.issued++;
  groups.state.push_back(0);
}

void tessera::sim::detail::addPending(Exec &exec, std::unique_ptr<AsyncOp> op) {
  op->order = exec.warp->clock;
  exec.cluster->pending.push_back(std::move(op));
}

void tessera::sim::detail::advanceGroups(AsyncGroups &g, uint32_t index, uint8_t state) {
  g.state[index] = std::max(g.state[index], state);
  while (g.readDone < g.issued && g.state[g.readDone] >= 1)
    ++g.readDone;
  while (g.writeDone < g.issued && g.state[g.writeDone] >= 2)
    ++g.writeDone;
}

namespace {

Access accessOf(const Cluster &cluster, const AsyncOp &op, uint32_t agent, uint32_t epoch) {
  Access a;
  a.agent = agent;
  a.epoch = epoch;
  a.site = op.inst - cluster.run->program->insts.data();
  a.async = true;
  return a;
}

/// Reports the first conflict of an operation only: one mistake makes thousands.
struct ConflictOnce {
  Cluster &cluster;
  const AsyncOp &op;
  bool reported = false;
  void operator()(const Conflict &c, const Access &a, bool isWrite) {
    if (c.hazard == Hazard::None || reported)
      return;
    reported = true;
    reportConflict(cluster, c, a, isWrite, op.warp, op.inst, op.lane);
  }
};

/// An operation's accesses to global memory: checked until one is wrong.
struct GlobalNotes {
  Cluster &cluster;
  const AsyncOp &op;
  AccessKind kind;
  uint32_t agent, epoch;
  bool clean = true;
  void operator()(const GlobalMemory::Buffer &buffer, uint64_t offset, uint32_t bytes) {
    clean = clean && noteGlobal(cluster, op, buffer, offset, bytes, kind, agent, epoch);
  }
};

/// What a copy does with its box. Units are of 16 bytes, or less at the end of a row of the box.
struct BoxVisitor {
  /// Comes before the parts of the unit.
  void unit(uint32_t, uint32_t) {}
  /// `count` elements from element `first` of `global` lie in the tensor.
  void inside(uint32_t, uint8_t *, uint32_t, uint32_t) {}
  void outside(uint32_t, uint32_t) {}
  /// These bytes of global memory are accessed.
  void touched(const GlobalMemory::Buffer &, uint64_t, uint32_t) {}
};

/// Visits a box; the first parameter of a visitor's functions on shared memory is the offset.
template <class Visitor>
void walkBox(Cluster &cluster, const AsyncOp &op, const TensorMapRecord &m, uint32_t base,
             Visitor visitor) {
  uint32_t es = m.elementSize(), inner = m.extent(0), rows = 1;
  for (unsigned d = 1; d < m.rank; ++d)
    rows *= m.extent(d);
  bool missing = false;
  for (uint32_t row = 0; row < rows; ++row) {
    uint32_t rest = row;
    uint64_t offset = 0; // as addresses, which wrap
    bool inside = true;
    for (unsigned d = 1; d < m.rank; ++d) {
      int64_t c = int64_t(op.coords[d]) + int64_t(rest % m.extent(d)) * m.elementStrides[d];
      rest /= m.extent(d);
      inside &= c >= 0 && c < int64_t(m.dims[d]);
      if (inside)
        offset += uint64_t(c) * m.strides[d - 1];
    }
    auto element = [&](uint32_t x) {
      return int64_t(op.coords[0]) + int64_t(x) * m.elementStrides[0];
    };
    uint64_t first = m.address + offset;
    // Where the row lies in the tensor, as a range of box elements.
    uint32_t lo = 0, hi = inside ? inner : 0;
    while (lo < hi && element(lo) < 0)
      ++lo;
    while (hi > lo && element(hi - 1) >= int64_t(m.dims[0]))
      --hi;
    uint8_t *global = nullptr;
    if (lo < hi) {
      uint64_t start = first + uint64_t(element(lo) * int64_t(es));
      uint64_t bytes = uint64_t(element(hi - 1) - element(lo) + 1) * es;
      GlobalMemory::Buffer *b = cluster.run->launch->memory->find(start, bytes);
      if (b) {
        global = b->data + (start - b->base);
        uint32_t step = m.elementStrides[0] * es;
        for (uint64_t at = 0; at < bytes; at += step == es ? bytes : step)
          visitor.touched(*b, start - b->base + at, step == es ? uint32_t(bytes) : es);
      } else {
        if (!missing)
          addDiagnostic(cluster, DiagKind::OutOfBounds, op.warp, op.inst, op.lane,
                        llvm::formatv("the tensor map reaches {0} bytes at global address {1:x}, "
                                      "which are in no buffer",
                                      bytes, start)
                            .str());
        missing = true;
        hi = lo;
      }
    }
    uint32_t perUnit = std::max(1u, 16 / es);
    for (uint32_t x = 0, unitEnd = 0; x < inner;) {
      uint32_t at = base + (row * inner + x) * es;
      uint32_t where = swizzleAddress(at, m.swizzle);
      if (x == unitEnd) {
        unitEnd += std::min(inner - x, perUnit - at % 16 / es);
        visitor.unit(where, (unitEnd - x) * es);
      }
      uint32_t n = unitEnd - x;
      // Cut where the row enters or leaves the tensor.
      bool isIn = x >= lo && x < hi;
      if (x < lo)
        n = std::min(n, lo - x);
      else if (x < hi)
        n = std::min(n, hi - x);
      if (isIn)
        visitor.inside(where, global, uint32_t(element(x) - element(lo)), n);
      else
        visitor.outside(where, n * es);
      x += n;
    }
  }
}

void fillOutside(uint8_t *p, uint32_t bytes, const TensorMapRecord &m) {
  if (!m.oobNan) {
    memset(p, 0, bytes);
    return;
  }
  // The machine repeats 0x7ff7, whatever the type.
  for (uint32_t k = 0; k < bytes; ++k)
    p[k] = k % 2 ? 0x7f : 0xf7;
}

/// Tells the destination's mbarrier; reports when it is not in the phase that the copy was issued
/// for.
void completeOnBarrier(Cluster &cluster, const AsyncOp &op, Cta &cta) {
  Mbarrier *b = cta.mbarrier(op.mbarOffset);
  if (!b)
    return;
  b->causedBy(op.order);
  mbarrierCompleteTx(cluster, cta, *b, op.bytes, op.warp, op.inst);
}

bool destinationUsable(Cluster &cluster, const AsyncOp &op, Cta &cta, Mbarrier *&b) {
  b = cta.mbarrier(op.mbarOffset);
  if (cta.exited && cluster.liveWarps == 0)
    return false; // reported when the CTA exited
  if (cta.exited) {
    addDiagnostic(
        cluster, DiagKind::PeerExited, op.warp, op.inst, op.lane,
        llvm::formatv("bulk copy lands in CTA {0} of the cluster, which has exited", cta.rank)
            .str());
    return false;
  }
  if (!b) {
    addDiagnostic(cluster, DiagKind::UninitialisedBarrier, op.warp, op.inst, op.lane,
                  describeShared(*cluster.run, op.mbarOffset) +
                      " was invalidated while a bulk copy was to complete on it");
    return false;
  }
  if (b->phase != op.phaseAtIssue[cta.rank])
    addDiagnostic(
        cluster, DiagKind::TransactionUnderflow, op.warp, op.inst, op.lane,
        llvm::formatv(
            "bulk copy of {0} bytes issued in phase {1} of {2} lands in phase {3}: the barrier "
            "completed without waiting for it",
            op.bytes, op.phaseAtIssue[cta.rank], describeShared(*cluster.run, op.mbarOffset),
            b->phase)
            .str());
  return true;
}

/// As the machine does it, to nearest even; NaN loses its sign and its payload.
void roundToTF32(uint8_t *p, uint32_t count) {
  for (uint32_t k = 0; k < count; ++k, p += sizeof(float)) {
    float number;
    memcpy(&number, p, sizeof(number));
    uint32_t rounded = encodeFloat(number, kTF32, Rounding::Nearest, /*satfinite=*/false) << 13;
    memcpy(p, &rounded, sizeof(rounded));
  }
}

template <class Wrote>
struct LoadVisitor : BoxVisitor {
  const TensorMapRecord &map;
  uint8_t *shared;
  Wrote &wrote;
  GlobalNotes &read;

  // The unit as a whole: its parts may share a word.
  void unit(uint32_t where, uint32_t bytes) { wrote(where, bytes); }
  void inside(uint32_t where, const uint8_t *global, uint32_t first, uint32_t count) {
    uint32_t es = map.elementSize(), stride = map.elementStrides[0];
    if (stride == 1)
      memcpy(shared + where, global + size_t(first) * es, count * es);
    else
      for (uint32_t k = 0; k < count; ++k)
        memcpy(shared + where + k * es, global + size_t(first + k * stride) * es, es);
    if (map.type == uint8_t(TensorElement::TF32))
      roundToTF32(shared + where, count);
  }
  void outside(uint32_t where, uint32_t bytes) { fillOutside(shared + where, bytes, map); }
  void touched(const GlobalMemory::Buffer &buffer, uint64_t offset, uint32_t bytes) {
    read(buffer, offset, bytes);
  }
};

void loadInto(Cluster &cluster, AsyncOp &op, Cta &cta) {
  Mbarrier *b;
  if (!destinationUsable(cluster, op, cta, b))
    return;
  Access a = accessOf(cluster, op, b->agent, uint32_t(b->phase) + 1);
  ConflictOnce report{cluster, op};
  auto wrote = [&](uint32_t offset, uint32_t bytes) {
    report(cta.shadow.write(offset, bytes, a, op.order), a, true);
  };
  uint8_t *shared = cta.shared.data();
  GlobalNotes read{cluster, op, AccessKind::Read, a.agent, a.epoch};
  if (op.kind == AsyncOp::BulkLoad) {
    GlobalMemory::Buffer *g = cluster.run->launch->memory->find(op.global, op.bytes);
    if (!g) {
      addDiagnostic(
          cluster, DiagKind::OutOfBounds, op.warp, op.inst, op.lane,
          llvm::formatv("{0} bytes at global address {1:x} are in no buffer", op.bytes, op.global)
              .str());
    } else {
      read(*g, op.global - g->base, op.bytes);
      memcpy(shared + op.remoteOffset, g->data + (op.global - g->base), op.bytes);
    }
    wrote(op.remoteOffset, op.bytes);
  } else {
    TensorMapRecord m;
    memcpy(&m, op.tensorMap.data(), 128);
    walkBox(cluster, op, m, op.remoteOffset,
            LoadVisitor<decltype(wrote)>{{}, m, shared, wrote, read});
  }
  completeOnBarrier(cluster, op, cta);
}

uint64_t reduceUnit(uint64_t old, uint64_t value, AtomicOp op, Ty ty) {
  return applyAtomic(op, old, value, 0, ty);
}

/// Copies or combines `bytes` of data.
void combine(Cluster &cluster, uint8_t *to, const uint8_t *from, uint32_t bytes, const AsyncOp &op,
             Ty ty) {
  if (op.reduceOp < 0) {
    memcpy(to, from, bytes);
    return;
  }
  uint32_t size = tyBits(ty) / 8;
  std::lock_guard<std::mutex> lock(cluster.run->atomicMutex);
  for (uint32_t k = 0; k + size <= bytes; k += size) {
    uint64_t old = 0, value = 0;
    memcpy(&old, to + k, size);
    memcpy(&value, from + k, size);
    old = reduceUnit(old, value, AtomicOp(op.reduceOp), ty);
    memcpy(to + k, &old, size);
  }
}

template <class Reads>
struct SourceVisitor : BoxVisitor {
  uint32_t elementSize;
  Reads &reads;

  void inside(uint32_t where, uint8_t *, uint32_t, uint32_t count) {
    reads(where, count * elementSize);
  }
};

/// First half of a store: sources are read, in the state they have now.
void readSources(Cluster &cluster, AsyncOp &op) {
  Access a = accessOf(cluster, op, op.groups->agent, op.groupIndex + 1);
  ConflictOnce report{cluster, op};
  Cta &cta = *op.shared;
  op.held.assign(cta.shared.begin() + op.sharedOffset,
                 cta.shared.begin() + op.sharedOffset +
                     (op.kind == AsyncOp::TensorStore ? op.footprint : op.bytes));
  auto reads = [&](uint32_t offset, uint32_t bytes) {
    report(cta.shadow.read(offset, bytes, a, op.order), a, false);
  };
  if (op.kind == AsyncOp::BulkStore) {
    reads(op.sharedOffset, op.bytes);
    return;
  }
  TensorMapRecord m;
  memcpy(&m, op.tensorMap.data(), 128);
  walkBox(cluster, op, m, op.sharedOffset,
          SourceVisitor<decltype(reads)>{{}, m.elementSize(), reads});
}

struct StoreVisitor : BoxVisitor {
  Cluster &cluster;
  AsyncOp &op;
  const TensorMapRecord &map;
  GlobalNotes &wrote;

  void inside(uint32_t where, uint8_t *global, uint32_t first, uint32_t count) {
    Ty ty = reductionType(TensorElement(map.type));
    uint32_t es = map.elementSize(), stride = map.elementStrides[0];
    for (uint32_t k = 0; k < count; k += stride == 1 ? count : 1)
      combine(cluster, global + size_t(first + k * stride) * es,
              op.held.data() + (where - op.sharedOffset) + k * es, stride == 1 ? count * es : es,
              op, ty);
  }
  void touched(const GlobalMemory::Buffer &buffer, uint64_t offset, uint32_t bytes) {
    wrote(buffer, offset, bytes);
  }
};

void writeGlobal(Cluster &cluster, AsyncOp &op) {
  GlobalNotes wrote{cluster, op, AccessKind::Write, op.groups->writeAgent, op.groupIndex + 1};
  if (op.kind == AsyncOp::BulkStore) {
    GlobalMemory::Buffer *g = cluster.run->launch->memory->find(op.global, op.bytes);
    if (!g || g->readOnly) {
      addDiagnostic(cluster, DiagKind::OutOfBounds, op.warp, op.inst, op.lane,
                    llvm::formatv("{0} bytes at global address {1:x} are in no writable buffer",
                                  op.bytes, op.global)
                        .str());
      return;
    }
    wrote(*g, op.global - g->base, op.bytes);
    combine(cluster, g->data + (op.global - g->base), op.held.data(), op.bytes, op,
            Ty(op.reduceType));
    return;
  }
  TensorMapRecord m;
  memcpy(&m, op.tensorMap.data(), 128);
  walkBox(cluster, op, m, op.sharedOffset, StoreVisitor{{}, cluster, op, m, wrote});
}

void sharedCopy(Cluster &cluster, AsyncOp &op) {
  Mbarrier *b;
  if (!destinationUsable(cluster, op, *op.mbarCta, b))
    return;
  Access a = accessOf(cluster, op, b->agent, uint32_t(b->phase) + 1);
  ConflictOnce report{cluster, op};
  report(op.shared->shadow.read(op.sharedOffset, op.bytes, a, op.order), a, false);
  if (op.reduceOp >= 0)
    report(op.remote->shadow.read(op.remoteOffset, op.bytes, a, op.order), a, false);
  report(op.remote->shadow.write(op.remoteOffset, op.bytes, a, op.order), a, true);
  std::vector<uint8_t> data(op.shared->shared.begin() + op.sharedOffset,
                            op.shared->shared.begin() + op.sharedOffset + op.bytes);
  combine(cluster, op.remote->shared.data() + op.remoteOffset, data.data(), op.bytes, op,
          Ty(op.reduceType));
  completeOnBarrier(cluster, op, *op.mbarCta);
}

/// st.async writes through the generic proxy, at a time of its own.
void sharedStore(Cluster &cluster, AsyncOp &op) {
  Mbarrier *b;
  if (!destinationUsable(cluster, op, *op.mbarCta, b))
    return;
  Access a = accessOf(cluster, op, b->agent, uint32_t(b->phase) + 1);
  a.async = false;
  ConflictOnce report{cluster, op};
  report(op.remote->shadow.write(op.remoteOffset, op.bytes, a, op.order), a, true);
  llvm::copy(op.held, op.remote->shared.begin() + op.remoteOffset);
  completeOnBarrier(cluster, op, *op.mbarCta);
}

void cpAsync(Cluster &cluster, AsyncOp &op) {
  // cp.async writes through the generic proxy, at a time of its own.
  Access a = accessOf(cluster, op, op.groups->agent, op.groupIndex + 1);
  a.async = false;
  ConflictOnce report{cluster, op};
  GlobalNotes read{cluster, op, AccessKind::Read, a.agent, a.epoch};
  for (size_t k = 0; k < op.pieces.size(); ++k) {
    auto [offset, bytes, sourceBytes, lane] = op.pieces[k];
    uint8_t *to = op.shared->shared.data() + offset;
    memset(to, 0, bytes);
    if (sourceBytes)
      if (GlobalMemory::Buffer *g = cluster.run->launch->memory->find(op.sources[k], sourceBytes)) {
        read(*g, op.sources[k] - g->base, sourceBytes);
        memcpy(to, g->data + (op.sources[k] - g->base), sourceBytes);
      }
    report(op.shared->shadow.write(offset, bytes, a, op.order), a, true);
  }
  advanceGroups(*op.groups, op.groupIndex, 2);
  cluster.event();
}

bool cpAsyncArrive(Cluster &cluster, AsyncOp &op) {
  if (op.groups->writeDone < op.groupIndex)
    return false;
  for (size_t k = 0; k < op.pieces.size(); ++k) {
    Cta &cta = *op.shared;
    Mbarrier *b = cta.mbarrier(op.pieces[k][0]);
    if (!b)
      continue;
    b->causedBy(op.order);
    b->arriving.join(op.order);
    b->arriving.see(op.groups->agent, op.groupIndex);
    mbarrierArrive(cluster, cta, *b, 1, 0, false, nullptr, op.inst, op.pieces[k][3]);
  }
  return true;
}

} // namespace

bool tessera::sim::detail::completeAsync(Cluster &cluster, AsyncOp &op) {
  switch (op.kind) {
  case AsyncOp::TensorLoad:
  case AsyncOp::BulkLoad:
    // The same offset in every destination CTA of a multicast.
    if (!op.multicast) {
      // The barrier and the data may be in different CTAs only for shared-to-shared copies.
      loadInto(cluster, op, *op.remote);
      return true;
    }
    for (auto &cta : cluster.ctas)
      if (op.multicast >> cta->rank & 1)
        loadInto(cluster, op, *cta);
    return true;
  case AsyncOp::SharedCopy:
    sharedCopy(cluster, op);
    return true;
  case AsyncOp::SharedStore:
    sharedStore(cluster, op);
    return true;
  case AsyncOp::TensorStore:
  case AsyncOp::BulkStore:
    cluster.event();
    if (!op.readPhaseDone) {
      op.readPhaseDone = true;
      readSources(cluster, op);
      advanceGroups(*op.groups, op.groupIndex, 1);
      return false;
    }
    writeGlobal(cluster, op);
    advanceGroups(*op.groups, op.groupIndex, 2);
    return true;
  case AsyncOp::CpAsync:
    cpAsync(cluster, op);
    return true;
  case AsyncOp::CpAsyncArrive:
    return cpAsyncArrive(cluster, op);
  }
  return true;
}
