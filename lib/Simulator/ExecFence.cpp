//===- ExecFence.cpp - fence, membar (PTX ISA 9.7.13.4) -------------------===//
//
// Memory fences order a warp's own accesses, which the simulator executes in order anyway; what
// matters to the checks is the proxy fence: it makes what happened before visible to the async
// proxy.
//
//===----------------------------------------------------------------------===//
#include "Lanes.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;
using llvm::StringRef;

namespace {
Step nothing(Exec &, const Inst &) { return Step::Next; }
Step proxyFence(Exec &e, const Inst &) {
  e.warp->clock.fence();
  return Step::Next;
}
} // namespace

bool tessera::sim::detail::decodeFence(Decoder &d, StringRef opcode) {
  if (opcode == "membar") {
    if (d.take("proxy")) {
      d.inst.fn = d.has("async") ? &proxyFence : &nothing;
      d.mods.clear();
      return d.count(0);
    }
    d.inst.fn = &nothing;
    bool level = d.take("cta") || d.take("gl") || d.take("sys");
    return (level || d.refuse("in this form is not modelled")) && d.count(0);
  }
  if (opcode != "fence")
    return false;
  d.inst.fn = &nothing;
  if (d.take("proxy")) {
    if (d.take("async") || d.take("async::generic")) {
      // Between the generic and the async proxy, for all or for some state spaces. Only shared
      // memory is tracked.
      bool globalOnly = d.take("global");
      for (const char *space : {"shared::cta", "shared::cluster", "shared"})
        d.take(space);
      d.inst.fn = globalOnly ? &nothing : &proxyFence;
      for (const char *order : {"acquire", "release", "sync_restrict::shared::cta",
                                "sync_restrict::shared::cluster", "cluster", "cta"})
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
    return d.count(0);
  }
  for (const char *m : {"sc", "acq_rel", "acquire", "release", "sync_restrict::shared::cta",
                        "sync_restrict::shared::cluster", "cta", "cluster", "gpu", "sys"})
    d.take(m);
  return d.count(0);
}
