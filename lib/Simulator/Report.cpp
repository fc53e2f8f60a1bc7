//===- Report.cpp - Diagnostics in the source's words ---------------------===//
#include "lib/Simulator/Machine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;
using llvm::StringRef;

StringRef tessera::sim::diagKindName(DiagKind kind) {
  switch (kind) {
  case DiagKind::Deadlock:
    return "deadlock";
  case DiagKind::Livelock:
    return "livelock";
  case DiagKind::Race:
    return "race";
  case DiagKind::MissingProxyFence:
    return "missing-proxy-fence";
  case DiagKind::OvertakenRead:
    return "overtaken-read";
  case DiagKind::SlotOverwritten:
    return "slot-overwritten";
  case DiagKind::StaleData:
    return "stale-data";
  case DiagKind::RegisterInFlight:
    return "register-in-flight";
  case DiagKind::MissingWgmmaFence:
    return "missing-wgmma-fence";
  case DiagKind::ParityAliasing:
    return "parity-aliasing";
  case DiagKind::OverArrival:
    return "over-arrival";
  case DiagKind::TransactionUnderflow:
    return "transaction-underflow";
  case DiagKind::UninitialisedBarrier:
    return "uninitialised-barrier";
  case DiagKind::BarrierMisuse:
    return "barrier-misuse";
  case DiagKind::NamedBarrierCount:
    return "named-barrier-count";
  case DiagKind::NamedBarrierShared:
    return "named-barrier-shared";
  case DiagKind::OutOfBounds:
    return "out-of-bounds";
  case DiagKind::Misaligned:
    return "misaligned";
  case DiagKind::UninitialisedShared:
    return "uninitialised-shared";
  case DiagKind::UninitialisedRegister:
    return "uninitialised-register";
  case DiagKind::RegisterPool:
    return "register-pool";
  case DiagKind::DivergentAligned:
    return "divergent-aligned";
  case DiagKind::WarpgroupMismatch:
    return "warpgroup-mismatch";
  case DiagKind::BadDescriptor:
    return "bad-descriptor";
  case DiagKind::PendingAtExit:
    return "pending-at-exit";
  case DiagKind::PeerExited:
    return "peer-exited";
  case DiagKind::InvalidOperation:
    return "invalid-operation";
  }
  return "unknown";
}

std::string tessera::sim::detail::roleOfWarp(const Run &run, uint32_t warp) {
  for (const RoleName &r : run.options->roleNames)
    if (warp >= r.firstWarp && warp - r.firstWarp < r.warps)
      return r.name;
  return "";
}

std::string tessera::sim::detail::describeWarp(const Warp &w, uint32_t last) {
  const Run &run = *w.cta->cluster->run;
  std::string text = last <= w.index
                         ? "warp " + std::to_string(w.index)
                         : llvm::formatv("each of warps {0} to {1}", w.index, last).str();
  if (std::string role = roleOfWarp(run, w.index); !role.empty())
    text += " (" + role + ")";
  if (run.grid.count() > 1)
    text += llvm::formatv(" of CTA ({0},{1},{2})", w.cta->id.x, w.cta->id.y, w.cta->id.z).str();
  return text;
}

std::string tessera::sim::detail::describeAgent(const Cluster &c, uint32_t agent) {
  if (agent < c.agentWarps.size() && c.agentWarps[agent])
    return describeWarp(*c.agentWarps[agent]);
  return agent < c.agentNames.size() ? c.agentNames[agent] : "nobody";
}

std::string tessera::sim::detail::describeSite(const Run &run, uint32_t site) {
  const Inst &i = run.program->insts[site];
  std::string text = "PTX line " + std::to_string(i.line);
  if (std::string place = run.program->placeOf(i); !place.empty())
    text += " (" + place + ")";
  return text;
}

std::string tessera::sim::detail::describeShared(const Run &run, uint32_t offset) {
  for (const SharedName &n : run.options->sharedNames) {
    uint32_t base = n.isStatic ? 0 : run.program->dynamicOffset;
    uint64_t first = uint64_t(base) + n.offset;
    if (offset < first || offset - first >= uint64_t(n.stride) * n.count)
      continue;
    uint64_t at = offset - first;
    std::string text = n.name;
    if (n.count > 1)
      text += llvm::formatv("[{0}]", at / n.stride).str();
    if (at % n.stride)
      text += llvm::formatv("+{0}", at % n.stride).str();
    return text;
  }
  return llvm::formatv("shared memory offset {0}", offset).str();
}

std::string tessera::sim::detail::describeBarrier(const Run &run, uint32_t id) {
  for (const BarrierName &n : run.options->barrierNames)
    if (n.id == id)
      return llvm::formatv("barrier {0} ({1})", id, n.name).str();
  return "barrier " + std::to_string(id);
}

void tessera::sim::detail::addDiagnostic(Cluster &c, DiagKind kind, const Warp *warp,
                                         const Inst *inst, int lane, const llvm::Twine &message,
                                         std::vector<std::string> notes) {
  Run &run = *c.run;
  std::lock_guard<std::mutex> lock(run.reportMutex);
  uint64_t site = inst ? inst - run.program->insts.data() : 0xffffffff;
  uint64_t key = uint64_t(kind) << 32 | site;
  auto it = run.seen.find(key);
  if (it != run.seen.end()) {
    if (it->second < run.report.diagnostics.size())
      ++run.report.diagnostics[it->second].repeats;
    return;
  }
  if (run.report.diagnostics.size() >= run.options->maxDiagnostics) {
    run.seen[key] = ~size_t(0);
    ++run.report.suppressed;
    return;
  }
  run.seen[key] = run.report.diagnostics.size();
  Diagnostic d;
  d.kind = kind;
  d.message = message.str();
  d.lane = lane;
  d.notes = std::move(notes);
  if (inst) {
    d.ptxLine = inst->line;
    d.source = run.program->sourceOf(*inst);
  }
  if (warp) {
    d.warp = int(warp->index);
    d.cta = warp->cta->id;
    d.role = roleOfWarp(run, warp->index);
    if (inst && (inst->flags & FlagCounted))
      d.iteration = warp->counts[inst->counter];
  }
  run.report.diagnostics.push_back(std::move(d));
}

void Exec::report(DiagKind kind, const Inst &i, const llvm::Twine &message, int lane,
                  std::vector<std::string> notes) {
  addDiagnostic(*cluster, kind, warp, &i, lane, message, std::move(notes));
}

void Report::print(llvm::raw_ostream &os, StringRef ptxFile) const {
  for (const Diagnostic &d : diagnostics) {
    if (d.source)
      os << d.source.file << ':' << d.source.line << ':' << d.source.column << ": ";
    else if (d.ptxLine)
      os << (ptxFile.empty() ? StringRef("<ptx>") : ptxFile) << ':' << d.ptxLine << ": ";
    os << "error: [" << diagKindName(d.kind) << "] " << d.message << '\n';
    if (d.warp >= 0) {
      os << "  in warp " << d.warp;
      if (!d.role.empty())
        os << " (" << d.role << ")";
      os << " of CTA (" << d.cta.x << ',' << d.cta.y << ',' << d.cta.z << ')';
      if (d.lane >= 0)
        os << ", lane " << d.lane;
      if (d.ptxLine)
        os << ", PTX line " << d.ptxLine;
      if (d.iteration >= 0)
        os << ", execution " << d.iteration + 1;
      os << '\n';
    } else if (d.source && d.ptxLine) {
      os << "  at PTX line " << d.ptxLine << '\n';
    }
    for (const std::string &note : d.notes)
      os << "  note: " << note << '\n';
    if (d.repeats)
      os << "  (" << d.repeats << " more of these)\n";
  }
  if (suppressed)
    os << suppressed << " further diagnostics are not shown\n";
}
