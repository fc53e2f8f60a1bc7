//===- ClusterStart.cpp - A cluster before its first instruction ----------===//

#include "lib/Simulator/Async.h"
#include "llvm/Support/FormatVariadic.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;

static uint64_t specialValue(const Run &run, const Cluster &cluster, const Cta &cta, const Warp &w,
                             SpecialReg what, uint32_t value, unsigned lane) {
  uint32_t tid = w.index * kLanes + lane;
  const Dim3 &b = run.block, &g = run.grid, &c = run.cluster;
  Dim3 inCluster{cta.rank % c.x, cta.rank / c.x % c.y, cta.rank / (c.x * c.y)};
  switch (what) {
  case SpecialReg::TidX:
    return tid % b.x;
  case SpecialReg::TidY:
    return tid / b.x % b.y;
  case SpecialReg::TidZ:
    return tid / (b.x * b.y);
  case SpecialReg::NtidX:
    return b.x;
  case SpecialReg::NtidY:
    return b.y;
  case SpecialReg::NtidZ:
    return b.z;
  case SpecialReg::CtaidX:
    return cta.id.x;
  case SpecialReg::CtaidY:
    return cta.id.y;
  case SpecialReg::CtaidZ:
    return cta.id.z;
  case SpecialReg::NctaidX:
    return g.x;
  case SpecialReg::NctaidY:
    return g.y;
  case SpecialReg::NctaidZ:
    return g.z;
  case SpecialReg::LaneId:
    return lane;
  case SpecialReg::WarpId:
    return w.index;
  case SpecialReg::NwarpId:
    return run.warpsPerCta;
  case SpecialReg::SmId:
    return (cluster.number * cluster.ctas.size() + cta.rank) % kMultiprocessors;
  case SpecialReg::NsmId:
    return kMultiprocessors;
  case SpecialReg::GridId:
    return 1;
  case SpecialReg::LanemaskEq:
    return 1u << lane;
  case SpecialReg::LanemaskLt:
    return (1u << lane) - 1;
  case SpecialReg::LanemaskLe:
    return (2u << lane) - 1;
  case SpecialReg::LanemaskGt:
    return ~((2u << lane) - 1);
  case SpecialReg::LanemaskGe:
    return ~((1u << lane) - 1);
  case SpecialReg::ClusterCtaidX:
    return inCluster.x;
  case SpecialReg::ClusterCtaidY:
    return inCluster.y;
  case SpecialReg::ClusterCtaidZ:
    return inCluster.z;
  case SpecialReg::ClusterNctaidX:
    return c.x;
  case SpecialReg::ClusterNctaidY:
    return c.y;
  case SpecialReg::ClusterNctaidZ:
    return c.z;
  case SpecialReg::ClusterCtarank:
    return cta.rank;
  case SpecialReg::ClusterNctarank:
    return c.count();
  case SpecialReg::ClusteridX:
    return cta.id.x / c.x;
  case SpecialReg::ClusteridY:
    return cta.id.y / c.y;
  case SpecialReg::ClusteridZ:
    return cta.id.z / c.z;
  case SpecialReg::NclusteridX:
    return g.x / c.x;
  case SpecialReg::NclusteridY:
    return g.y / c.y;
  case SpecialReg::NclusteridZ:
    return g.z / c.z;
  case SpecialReg::IsExplicitCluster:
    return c.count() > 1;
  case SpecialReg::DynamicSmemSize:
    return run.launch->dynamicSharedBytes;
  case SpecialReg::TotalSmemSize:
    return run.sharedBytes;
  case SpecialReg::AggrSmemSize:
    return run.sharedBytes;
  case SpecialReg::SharedAddress:
    return (cta.rank << kRankShift) + kSharedBase + value;
  default:
    return 0;
  }
}

static void initWarp(Run &run, Cluster &cluster, Cta &cta, Warp &w) {
  const Program &p = *run.program;
  w.regs.assign(p.regWords, 0);
  w.meta.assign(p.regOffset.size(), RegMeta());
  w.counts.assign(p.counters, 0);
  w.local.assign(size_t(p.localBytes) * kLanes, 0xcd);
  for (const HiddenReg &h : p.hidden) {
    w.meta[h.reg].init = kAllLanes;
    for (unsigned l = 0; l < kLanes; ++l) {
      uint64_t v = specialValue(run, cluster, cta, w, h.what, h.value, l);
      if (p.regClass[h.reg] == RegClass::R64)
        memcpy(&w.regs[p.regOffset[h.reg] + 2 * l], &v, 8);
      else
        w.regs[p.regOffset[h.reg] + l] = uint32_t(v);
    }
  }
  uint32_t threads = run.block.count(), first = w.index * kLanes;
  w.launched = threads - first >= kLanes ? kAllLanes : (1u << (threads - first)) - 1;
  w.registers = run.registersPerThread;
  w.priority = cluster.rng.below(1u << 30);
  w.clock.see(w.agent, w.epoch);
  Split s;
  s.mask = w.launched;
  w.splits.push_back(std::move(s));
}

Dim3 tessera::sim::detail::ctaOf(const Run &run, uint64_t cluster, uint32_t rank) {
  const Dim3 &d = run.cluster;
  Dim3 clusters{run.grid.x / d.x, run.grid.y / d.y, run.grid.z / d.z};
  Dim3 at{uint32_t(cluster % clusters.x), uint32_t(cluster / clusters.x % clusters.y),
          uint32_t(cluster / clusters.x / clusters.y)};
  return {at.x * d.x + rank % d.x, at.y * d.y + rank / d.x % d.y, at.z * d.z + rank / (d.x * d.y)};
}

void tessera::sim::detail::initCluster(Run &run, Cluster &c, uint64_t number) {
  c.run = &run;
  c.number = number;
  c.rng.seed(run.options->seed, number);
  c.policy = Policy(run.options->seed % kPolicies);
  static constexpr uint64_t rates[] = {0, 16, 2};
  c.completionRate = rates[run.options->seed / kPolicies % 3];
  c.opcodeCounts.assign(run.program->opcodeNames.size(), 0);
  Dim3 d = run.cluster;
  c.newAgent("nobody"); // agent 0 means "none" in AsyncGroups
  for (uint32_t rank = 0; rank < d.count(); ++rank) {
    c.ctas.push_back(std::make_unique<Cta>());
    Cta &cta = *c.ctas.back();
    cta.cluster = &c;
    cta.rank = rank;
    cta.id = ctaOf(run, number, rank);
    cta.shared.assign(run.sharedBytes, 0xcd);
    cta.shadow.checking = run.options->checkRaces;
    cta.shadow.agentReads = &c.agentReads;
    cta.shadow.reset(run.sharedBytes);
    cta.liveWarps = run.warpsPerCta;
    cta.groups.resize((run.warpsPerCta + 3) / 4);
    for (uint32_t k = 0; k < run.warpsPerCta; ++k) {
      cta.warps.push_back(std::make_unique<Warp>());
      Warp &w = *cta.warps.back();
      w.cta = &cta;
      w.index = k;
      w.agent = c.newAgent("", &w);
      initWarp(run, c, cta, w);
    }
    for (unsigned g = 0; g < cta.groups.size(); ++g)
      cta.groups[g].agent = c.newAgent(
          llvm::formatv("wgmma of warps {0} to {1}{2}", 4 * g, 4 * g + 3,
                        d.count() > 1 ? llvm::formatv(" of CTA {0} of the cluster", rank).str()
                                      : "")
              .str());
    // The CTA's pool is what the launch gave it: the registers at entry of all its threads, less
    // what they hold.
    cta.registerPool = 0;
  }
  c.liveWarps = run.warpsPerCta * d.count();
}
