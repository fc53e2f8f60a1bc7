//===- Clock.h - Vector clocks ----------------------------------*- C++ -*-===//
//
// An agent is a warp, the wgmma engine of a warpgroup, an mbarrier (for the bulk copies that
// complete on it), or the bulk or cp.async groups of a thread. A clock says, for every agent, up to
// which of its epochs everything happened before. `fenced` is the same for what a proxy fence made
// visible to the async proxy (PTX ISA, memory consistency model: proxy-preserved base causality
// order).
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_SIMULATOR_CLOCK_H
#define TESSERA_SIMULATOR_CLOCK_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tessera::sim::detail {

class Clock {
public:
  uint32_t seen(uint32_t agent) const { return agent < seenBy.size() ? seenBy[agent] : 0; }
  uint32_t fenced(uint32_t agent) const { return agent < fencedBy.size() ? fencedBy[agent] : 0; }
  void see(uint32_t agent, uint32_t epoch) {
    if (agent >= seenBy.size())
      seenBy.resize(agent + 1);
    seenBy[agent] = std::max(seenBy[agent], epoch);
  }
  void join(const Clock &o) {
    joinInto(seenBy, o.seenBy);
    joinInto(fencedBy, o.fencedBy);
  }
  /// A proxy fence: what happened before is now visible to the async proxy too.
  void fence() { joinInto(fencedBy, seenBy); }
  /// Keeps what both know.
  void meet(const Clock &o) {
    meetInto(seenBy, o.seenBy);
    meetInto(fencedBy, o.fencedBy);
  }
  void clear() {
    seenBy.clear();
    fencedBy.clear();
  }

private:
  static void joinInto(std::vector<uint32_t> &a, const std::vector<uint32_t> &b) {
    if (a.size() < b.size())
      a.resize(b.size());
    for (size_t i = 0; i < b.size(); ++i)
      a[i] = std::max(a[i], b[i]);
  }
  static void meetInto(std::vector<uint32_t> &a, const std::vector<uint32_t> &b) {
    if (a.size() > b.size())
      a.resize(b.size());
    for (size_t i = 0; i < a.size(); ++i)
      a[i] = std::min(a[i], b[i]);
  }
  std::vector<uint32_t> seenBy, fencedBy;
};

} // namespace tessera::sim::detail

#endif // TESSERA_SIMULATOR_CLOCK_H
