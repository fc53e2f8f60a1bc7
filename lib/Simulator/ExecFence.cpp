//===- ExecFence.cpp - fence, membar (PTX ISA 9.7.13.4) -------------------===//
//
// The simulator executes a warp's accesses in order, so that fences change clocks only: a memory
// fence makes the relaxed accesses around it release and acquire, a proxy fence makes what happened
// before visible to the async proxy.
//
//===----------------------------------------------------------------------===//
#include "lib/Simulator/Lanes.h"
#include "lib/Simulator/Memory.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;
using llvm::StringRef;

namespace {
enum : uint32_t { FenceShared = 1, FenceGlobal = 2 };
/// select: the state spaces.
Step proxyFence(Exec &exec, const Inst &inst) {
  if (inst.select & FenceShared)
    exec.warp->clock.fence(FenceSpace::Shared);
  if (inst.select & FenceGlobal)
    exec.warp->clock.fence(FenceSpace::Global);
  return Step::Next;
}
/// select: the scope.
Step memoryFence(Exec &exec, const Inst &inst) {
  exec.warp->clock.fenceMemory(uint32_t(exec.cluster->number), MemScope(inst.select));
  exec.warp->release();
  return Step::Next;
}
} // namespace

bool tessera::sim::detail::decodeFence(Decoder &d, StringRef opcode) {
  if (opcode == "membar") {
    if (d.take("proxy")) {
      d.inst.fn = d.has("async") ? &proxyFence : &nothing;
      d.inst.select = FenceShared | FenceGlobal;
      d.mods.clear();
      return d.count(0);
    }
    d.inst.fn = &memoryFence;
    bool narrow = d.take("cta"), level = narrow || d.take("gl") || d.take("sys");
    d.inst.select = uint32_t(narrow ? MemScope::Cluster : MemScope::Device);
    return (level || d.refuse("in this form is not modelled")) && d.count(0);
  }
  if (opcode != "fence")
    return false;
  d.inst.fn = &nothing;
  if (d.take("proxy")) {
    if (d.take("async") || d.take("async::generic")) {
      // Between the generic and the async proxy, for all or for some state spaces.
      if (d.take("global"))
        d.inst.select |= FenceGlobal;
      for (const char *space : {"shared::cta", "shared::cluster", "shared",
                                "sync_restrict::shared::cta", "sync_restrict::shared::cluster"})
        if (d.take(space))
          d.inst.select |= FenceShared;
      if (!d.inst.select)
        d.inst.select = FenceShared | FenceGlobal;
      d.inst.fn = &proxyFence;
      for (const char *order : {"acquire", "release", "cluster", "cta"})
        d.take(order);
      return d.count(0);
    }
    if (d.take("alias"))
      return d.count(0);
    if (d.take("tensormap::generic")) {
      for (const char *m : {"acquire", "release", "cta", "cluster", "gpu", "sys"})
        d.take(m);
      if (d.s->operands.size() == 2)
        return d.address(d.s->operands[0], Space::Generic);
      return d.count(0);
    }
    return d.refuse("in this form is not modelled");
  }
  if (d.take("mbarrier_init")) {
    d.take("release");
    d.take("cluster");
    // Makes an initialised mbarrier known to the cluster and to bulk copies; both work in the async
    // proxy.
    d.inst.fn = &proxyFence;
    d.inst.select = FenceShared;
    return d.count(0);
  }
  for (const char *m : {"sc", "acq_rel", "acquire", "release"})
    d.take(m);
  // What is restricted to shared memory orders nothing there that strong accesses would not.
  bool restricted = d.take("sync_restrict::shared::cta");
  restricted |= d.take("sync_restrict::shared::cluster");
  d.inst.select = uint32_t(takeScope(d));
  if (!restricted)
    d.inst.fn = &memoryFence;
  return d.count(0);
}
