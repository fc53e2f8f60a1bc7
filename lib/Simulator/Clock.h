//===- Clock.h - Vector clocks ----------------------------------*- C++ -*-===//
//
// An agent is a warp, the wgmma engine of a warpgroup, an mbarrier (for the bulk copies that
// complete on it), or the bulk or cp.async groups of a thread. A clock says, for every agent, up to
// which of its epochs everything happened before (causality order of PTX ISA 8.9). Besides what it
// has seen it keeps, of that, what a proxy fence has made visible to the async proxy in shared and
// in global memory (proxy-preserved base causality order, PTX ISA 8.9.5), and what a memory fence
// has released, so that a relaxed write after it passes it on (release pattern, PTX ISA 8.8).
//
// Agents are numbered in their cluster. Most clocks know of one cluster only; what they have
// learned of others through global memory they share.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_SIMULATOR_CLOCK_H
#define TESSERA_SIMULATOR_CLOCK_H

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace tessera::sim::detail {

/// How far an operation or a fence reaches: the threads of a cluster, or all (.gpu, .sys).
enum class MemScope : uint8_t { Cluster, Device };
constexpr unsigned kScopes = 2;
enum class FenceSpace : uint8_t { Shared, Global };

/// What is known of the agents of one cluster.
struct ClusterView {
  using Epochs = std::vector<uint32_t>; ///< by agent
  Epochs seen;
  Epochs fenced[2];         ///< by FenceSpace
  Epochs released[kScopes]; ///< by MemScope

  void join(const ClusterView &other);
  bool covers(const ClusterView &other) const;
};

/// Gives each agent of `b` its epoch there in `a` too, unless that has a later one.
void joinEpochs(ClusterView::Epochs &a, const ClusterView::Epochs &b);

/// What is known of several clusters, by their number. Shared, and so never changed.
using Views = std::map<uint32_t, ClusterView>;
using SharedViews = std::shared_ptr<const Views>;
/// What either knows; one of the two when it knows all of the other.
SharedViews joinViews(const SharedViews &a, const SharedViews &b);

class Clock {
public:
  uint32_t seen(uint32_t agent) const { return at(own.seen, agent); }
  uint32_t fenced(uint32_t agent) const {
    return at(own.fenced[unsigned(FenceSpace::Shared)], agent);
  }
  /// Of another cluster than the clock's.
  const ClusterView *remote(uint32_t cluster) const;
  const ClusterView &local() const { return own; }
  /// Relaxed reads have found that this happened, though nothing has acquired it.
  bool hasFound(uint32_t cluster, uint32_t agent, uint32_t epoch) const;

  void see(uint32_t agent, uint32_t epoch) {
    if (agent >= own.seen.size())
      own.seen.resize(agent + 1);
    own.seen[agent] = std::max(own.seen[agent], epoch);
  }
  void join(const Clock &o);
  /// A proxy fence: what happened before is now visible to the async proxy too.
  void fence(FenceSpace space);
  /// A memory fence: relaxed writes from here on release what happened before, and what relaxed
  /// reads have found is acquired.
  void fenceMemory(uint32_t cluster, MemScope scope);
  /// Keeps what both know of their cluster.
  void meet(const Clock &o);
  void clear();

  /// What a release of this scope publishes; null when there is nothing.
  SharedViews publishAll(uint32_t cluster) const;
  /// What a relaxed write of this scope publishes: what fences released before it.
  SharedViews publishReleased(uint32_t cluster, MemScope scope) const;
  void learn(uint32_t cluster, const SharedViews &views);
  /// Of the clock's own cluster only.
  void learnOwn(uint32_t cluster, const SharedViews &views);
  /// A relaxed read has found this; a fence acquires it.
  void find(MemScope scope, const SharedViews &views) {
    found[unsigned(scope)] = joinViews(found[unsigned(scope)], views);
  }

private:
  static uint32_t at(const ClusterView::Epochs &epochs, uint32_t agent) {
    return agent < epochs.size() ? epochs[agent] : 0;
  }
  ClusterView own;
  SharedViews others;         ///< of other clusters; null: nothing
  SharedViews found[kScopes]; ///< by relaxed reads, to be acquired
};

} // namespace tessera::sim::detail

#endif // TESSERA_SIMULATOR_CLOCK_H
