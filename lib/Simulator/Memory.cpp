//===- Memory.cpp - Global memory, state spaces, access checks ------------===//
#include "lib/Simulator/Memory.h"
#include "lib/Simulator/Decoder.h"
#include "lib/Simulator/Limits.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstdlib>

using namespace tessera::sim;
using namespace tessera::sim::detail;
using llvm::Error;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// GlobalMemory
//===----------------------------------------------------------------------===//

GlobalMemory::GlobalMemory() : next(0x0000000200000000ull) {}
GlobalMemory::~GlobalMemory() = default;
GlobalMemory::GlobalMemory(GlobalMemory &&) = default;

void GlobalMemory::Free::operator()(uint8_t *storage) const { std::free(storage); }

llvm::Expected<uint64_t> GlobalMemory::allocate(uint64_t bytes, StringRef name, bool readOnly) {
  auto b = std::make_unique<Buffer>();
  // calloc's zeros take no memory until they are touched.
  if (isInside(total, bytes, kMaxMemoryBytes))
    b->storage.reset(static_cast<uint8_t *>(std::calloc(bytes + 256, 1)));
  if (!b->storage)
    return llvm::createStringError(
        llvm::inconvertibleErrorCode(),
        "'%s' has %llu bytes; with the %llu of other buffers that is more than the %llu that the "
        "simulator gives a launch",
        name.str().c_str(), static_cast<unsigned long long>(bytes),
        static_cast<unsigned long long>(total), static_cast<unsigned long long>(kMaxMemoryBytes));
  total += bytes;
  b->name = name.str();
  b->base = next;
  b->size = bytes;
  b->readOnly = readOnly;
  b->data = b->storage.get() + (256 - reinterpret_cast<uintptr_t>(b->storage.get()) % 256) % 256;
  // At least 64 KiB of nothing between buffers.
  next += (bytes + 0x1ffff) & ~0xffffull;
  list.push_back(std::move(b));
  return list.back()->base;
}

const GlobalMemory::Buffer *GlobalMemory::nearest(uint64_t address) const {
  auto it =
      std::upper_bound(list.begin(), list.end(), address,
                       [](uint64_t a, const std::unique_ptr<Buffer> &b) { return a < b->base; });
  return it == list.begin() ? nullptr : std::prev(it)->get();
}

const GlobalMemory::Buffer *GlobalMemory::find(uint64_t address, uint64_t bytes) const {
  const Buffer *b = nearest(address);
  return b && b->contains(address, bytes) ? b : nullptr;
}
GlobalMemory::Buffer *GlobalMemory::find(uint64_t address, uint64_t bytes) {
  return const_cast<Buffer *>(static_cast<const GlobalMemory *>(this)->find(address, bytes));
}

static Error outside(uint64_t address, uint64_t bytes) {
  return llvm::createStringError(
      llvm::inconvertibleErrorCode(), "%llu bytes at 0x%llx are in no buffer",
      static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(address));
}
Error GlobalMemory::write(uint64_t address, llvm::ArrayRef<uint8_t> bytes) {
  Buffer *b = find(address, bytes.size());
  if (!b)
    return outside(address, bytes.size());
  std::copy(bytes.begin(), bytes.end(), b->data + (address - b->base));
  return Error::success();
}
Error GlobalMemory::read(uint64_t address, llvm::MutableArrayRef<uint8_t> bytes) const {
  const Buffer *b = find(address, bytes.size());
  if (!b)
    return outside(address, bytes.size());
  std::copy_n(b->data + (address - b->base), bytes.size(), bytes.begin());
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

bool tessera::sim::detail::resolveShared(Exec &exec, const Inst &inst, uint64_t address,
                                         uint32_t bytes, unsigned lane, bool ownOnly, Place &out) {
  uint64_t rank = address >> kRankShift;
  uint64_t offset = address & ((1u << kRankShift) - 1);
  if (rank >= exec.cluster->ctas.size()) {
    exec.report(DiagKind::OutOfBounds, inst,
                llvm::formatv("shared memory address {0:x} names CTA {1} of a cluster of {2}",
                              address, rank, exec.cluster->ctas.size())
                    .str(),
                lane);
    return false;
  }
  Cta *cta = exec.cluster->ctas[rank].get();
  if (ownOnly && cta != exec.cta) {
    exec.report(DiagKind::OutOfBounds, inst,
                llvm::formatv(
                    "shared::cta address {0:x} belongs to CTA {1} of the cluster, not to this one",
                    address, rank)
                    .str(),
                lane);
    return false;
  }
  if (offset < kSharedBase || !isInside(offset - kSharedBase, bytes, cta->shared.size())) {
    exec.report(
        DiagKind::OutOfBounds, inst,
        llvm::formatv("{0} bytes at shared memory address {1:x} (offset {2}) are outside of "
                      "the CTA's {3} bytes",
                      bytes, address, int64_t(offset) - kSharedBase, cta->shared.size())
            .str(),
        lane);
    return false;
  }
  if (cta != exec.cta && cta->exited) {
    exec.report(
        DiagKind::PeerExited, inst,
        llvm::formatv("access to shared memory of CTA {0} of the cluster, which has exited", rank)
            .str(),
        lane);
    return false;
  }
  out.cta = cta;
  out.offset = offset - kSharedBase;
  out.data = cta->shared.data() + out.offset;
  return true;
}

static bool resolveGlobal(Exec &exec, const Inst &inst, uint64_t address, uint32_t bytes,
                          unsigned lane, AccessKind kind, Place &out) {
  GlobalMemory &memory = *exec.run->launch->memory;
  GlobalMemory::Buffer *b = exec.cluster->lastBuffer;
  if (!b || !b->contains(address, bytes))
    b = memory.find(address, bytes);
  if (!b) {
    std::string where;
    if (const GlobalMemory::Buffer *n = memory.nearest(address))
      where = llvm::formatv("; '{0}' ends {1} bytes before the end of this access", n->name,
                            address + bytes - (n->base + n->size))
                  .str();
    exec.report(DiagKind::OutOfBounds, inst,
                llvm::formatv("{0} bytes at global address {1:x} are in no buffer{2}", bytes,
                              address, where)
                    .str(),
                lane);
    return false;
  }
  exec.cluster->lastBuffer = b;
  if (b->readOnly && kind != AccessKind::Read) {
    exec.report(DiagKind::OutOfBounds, inst, "write to read-only buffer '" + b->name + "'", lane);
    return false;
  }
  out.cta = nullptr;
  out.buffer = b;
  out.data = b->data + (address - b->base);
  return true;
}

static bool resolveParam(Exec &exec, const Inst &inst, uint64_t offset, uint32_t bytes,
                         unsigned lane, AccessKind kind, Place &out) {
  if (!isInside(offset, bytes, exec.run->params.size()) || kind != AccessKind::Read) {
    exec.report(DiagKind::OutOfBounds, inst,
                llvm::formatv(
                    "{0} bytes at parameter offset {1} are outside of the {2} bytes of parameters",
                    bytes, int64_t(offset), exec.run->params.size())
                    .str(),
                lane);
    return false;
  }
  out.cta = nullptr;
  out.data = exec.run->params.data() + offset;
  return true;
}

static bool resolveLocal(Exec &exec, const Inst &inst, uint64_t offset, uint32_t bytes,
                         unsigned lane, Place &out) {
  if (!isInside(offset, bytes, exec.p->localBytes)) {
    exec.report(DiagKind::OutOfBounds, inst,
                llvm::formatv("{0} bytes at local offset {1} are outside of the thread's {2} bytes",
                              bytes, int64_t(offset), exec.p->localBytes)
                    .str(),
                lane);
    return false;
  }
  out.cta = nullptr;
  out.data = exec.warp->local.data() + size_t(lane) * exec.p->localBytes + offset;
  return true;
}

bool tessera::sim::detail::resolve(Exec &exec, const Inst &inst, Space space, uint64_t address,
                                   uint32_t bytes, unsigned lane, AccessKind kind, Place &out) {
  if (space == Space::Generic) {
    uint64_t window = address - address % kWindowBytes;
    space = window == kSharedWindow  ? Space::Shared
            : window == kLocalWindow ? Space::Local
            : window == kParamWindow ? Space::Param
                                     : Space::Global;
    if (space != Space::Global)
      address -= window;
  }
  switch (space) {
  case Space::Shared:
    return resolveShared(exec, inst, address, bytes, lane, false, out);
  case Space::Local:
    return resolveLocal(exec, inst, address, bytes, lane, out);
  case Space::Param:
    return resolveParam(exec, inst, address, bytes, lane, kind, out);
  default:
    return resolveGlobal(exec, inst, address, bytes, lane, kind, out);
  }
}

//===----------------------------------------------------------------------===//
// Shared memory checks
//===----------------------------------------------------------------------===//

/// A read that is ordered before a copy for the generic proxy, but may come after it.
static void reportOvertaken(Cluster &cluster, const Conflict &c, const std::string &write,
                            const Warp *warp, const Inst *inst, int lane) {
  const Run &run = *cluster.run;
  std::vector<std::string> notes = {"the read is at " + describeSite(run, c.other.site)};
  if (c.release && *c.release != uint32_t(inst - run.program->insts.data()))
    notes.push_back("what does not wait for it is at " + describeSite(run, *c.release));
  notes.push_back("fence.proxy.async between the two, or before both a store, a product or a "
                  "shuffle that takes the value, would order them");
  addDiagnostic(cluster, DiagKind::OvertakenRead, warp, inst, lane,
                write + " while a read by " + describeAgent(cluster, c.other.agent) +
                    " may be under way: nothing has taken its value, and an arrival does not wait "
                    "for it",
                std::move(notes));
}

void tessera::sim::detail::reportConflict(Cluster &cluster, const Conflict &c, const Access &a,
                                          bool isWrite, const Warp *warp, const Inst *inst,
                                          int lane) {
  const Run &run = *cluster.run;
  std::string where = describeShared(run, c.offset);
  const char *verb = isWrite ? "write" : "read";
  std::string actor = a.async ? "asynchronous " : "";
  switch (c.hazard) {
  case Hazard::None:
    return;
  case Hazard::Barrier:
    addDiagnostic(cluster, DiagKind::BarrierMisuse, warp, inst, lane,
                  llvm::Twine(actor) + verb + " of " + where + ", which holds an mbarrier");
    return;
  case Hazard::Uninitialised:
    addDiagnostic(cluster, DiagKind::UninitialisedShared, warp, inst, lane,
                  llvm::Twine(actor) + "read of " + where + ", which nobody has written");
    return;
  case Hazard::Unfenced:
    addDiagnostic(cluster, DiagKind::MissingProxyFence, warp, inst, lane,
                  llvm::Twine(actor) + verb + " of " + where + " after a generic write by " +
                      describeAgent(cluster, c.other.agent) +
                      " without fence.proxy.async in between",
                  {"the write is at " + describeSite(run, c.other.site)});
    return;
  case Hazard::Overtaken:
    reportOvertaken(cluster, c, actor + verb + " of " + where, warp, inst, lane);
    return;
  case Hazard::Unordered:
    break;
  }
  DiagKind kind = DiagKind::Race;
  std::string what;
  if (isWrite && !c.otherWrote && (c.other.async || a.async)) {
    kind = DiagKind::SlotOverwritten;
    what =
        actor + "write of " + where + " while " + describeAgent(cluster, c.other.agent) +
        (c.other.async ? " may still read it" : " read it, which nothing orders before the write");
  } else if (!isWrite && c.other.async) {
    kind = DiagKind::StaleData;
    what = actor + "read of " + where + ", which an asynchronous write (" +
           describeAgent(cluster, c.other.agent) + ") changes; nothing orders the two";
  } else {
    if (a.async && !isWrite)
      kind = DiagKind::Race;
    what = actor + verb + " of " + where + " and " + (c.other.async ? "asynchronous " : "") +
           (c.otherWrote ? "write" : "read") + " by " + describeAgent(cluster, c.other.agent) +
           " are not ordered";
  }
  addDiagnostic(cluster, kind, warp, inst, lane, what,
                {std::string("the other ") + (c.otherWrote ? "write" : "read") + " is at " +
                 describeSite(run, c.other.site)});
}

void tessera::sim::detail::checkArray(Cluster &cluster, const Inst &inst, unsigned operand,
                                      uint32_t offset, uint32_t bytes, const Warp *warp, int lane) {
  Run &run = *cluster.run;
  uint32_t site = &inst - run.program->insts.data();
  if (!run.sharedArrays.note(site, operand, offset, bytes))
    addDiagnostic(cluster, DiagKind::OutOfBounds, warp, &inst, lane,
                  llvm::formatv("{0} bytes at {1} are outside of {2}, which this instruction "
                                "accesses",
                                bytes, describeShared(run, offset),
                                run.sharedArrays.describe(site, operand))
                      .str());
}

void tessera::sim::detail::noteShared(Exec &exec, const Inst &inst, const Place &place,
                                      uint32_t bytes, unsigned lane, AccessKind kind, bool strong) {
  Access a;
  a.epoch = exec.warp->epoch;
  a.agent = exec.warp->agent;
  a.site = &inst - exec.p->insts.data();
  a.strong = strong;
  checkArray(*exec.cluster, inst, 0, place.offset, bytes, exec.warp, lane);
  if (kind != AccessKind::Write) {
    Conflict c = place.cta->shadow.read(place.offset, bytes, a, exec.warp->clock);
    if (c.hazard != Hazard::None)
      reportConflict(*exec.cluster, c, a, false, exec.warp, &inst, lane);
  }
  if (kind != AccessKind::Read) {
    Conflict c = place.cta->shadow.write(place.offset, bytes, a, exec.warp->clock);
    if (c.hazard != Hazard::None)
      reportConflict(*exec.cluster, c, a, true, exec.warp, &inst, lane);
  }
}

MemScope tessera::sim::detail::takeScope(Decoder &d) {
  bool narrow = d.take("cta");
  narrow |= d.take("cluster");
  d.take("gpu");
  d.take("sys");
  return narrow ? MemScope::Cluster : MemScope::Device;
}

bool tessera::sim::detail::takeMemoryMods(Decoder &d, MemoryMods &m) {
  // A volatile access is a relaxed one of system scope (PTX ISA 9.7.9.8).
  m.ordering.relaxed = d.take("volatile") || d.take("relaxed");
  m.ordering.acquire = d.take("acquire");
  m.ordering.release = d.take("release");
  if (d.take("acq_rel"))
    m.ordering.acquire = m.ordering.release = true;
  d.take("weak");
  if (d.has("mmio"))
    return d.refuse("modifier .mmio is not modelled");
  m.ordering.scope = takeScope(d);
  if (d.take("global"))
    m.space = Space::Global;
  else if (d.take("shared") || d.take("shared::cta"))
    m.space = Space::Shared;
  else if (d.take("shared::cluster")) {
    m.space = Space::Shared;
    m.cluster = true;
  } else if (d.take("local"))
    m.space = Space::Local;
  else if (d.take("const"))
    m.space = Space::Const;
  else if (d.take("param") || d.take("param::entry"))
    m.space = Space::Param;
  return true;
}
