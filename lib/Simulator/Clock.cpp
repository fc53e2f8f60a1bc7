//===- Clock.cpp - Vector clocks ------------------------------------------===//
#include "lib/Simulator/Clock.h"
#include "llvm/ADT/STLExtras.h"

using namespace tessera::sim::detail;

using Epochs = ClusterView::Epochs;

void tessera::sim::detail::joinEpochs(Epochs &a, const Epochs &b) {
  if (a.size() < b.size())
    a.resize(b.size());
  for (size_t i = 0; i < b.size(); ++i)
    a[i] = std::max(a[i], b[i]);
}

static void meetInto(Epochs &a, const Epochs &b) {
  if (a.size() > b.size())
    a.resize(b.size());
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = std::min(a[i], b[i]);
}

static bool coversAll(const Epochs &a, const Epochs &b) {
  for (size_t i = 0; i < b.size(); ++i)
    if (b[i] && (i >= a.size() || a[i] < b[i]))
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

void ClusterView::join(const ClusterView &o) {
  joinEpochs(seen, o.seen);
  for (unsigned k = 0; k < 2; ++k)
    joinEpochs(fenced[k], o.fenced[k]);
  for (unsigned k = 0; k < kScopes; ++k)
    joinEpochs(released[k], o.released[k]);
}

bool ClusterView::covers(const ClusterView &o) const {
  bool all = coversAll(seen, o.seen);
  for (unsigned k = 0; k < 2; ++k)
    all = all && coversAll(fenced[k], o.fenced[k]);
  for (unsigned k = 0; k < kScopes; ++k)
    all = all && coversAll(released[k], o.released[k]);
  return all;
}

static bool covers(const Views &a, const Views &b) {
  return llvm::all_of(b, [&](const auto &entry) {
    auto it = a.find(entry.first);
    return it != a.end() && it->second.covers(entry.second);
  });
}

SharedViews tessera::sim::detail::joinViews(const SharedViews &a, const SharedViews &b) {
  if (!b || a == b)
    return a;
  if (!a || covers(*b, *a))
    return b;
  if (covers(*a, *b))
    return a;
  auto joined = std::make_shared<Views>(*a);
  for (const auto &[cluster, view] : *b)
    (*joined)[cluster].join(view);
  return joined;
}

//===----------------------------------------------------------------------===//
// Clocks
//===----------------------------------------------------------------------===//

const ClusterView *Clock::remote(uint32_t cluster) const {
  if (!others)
    return nullptr;
  auto it = others->find(cluster);
  return it == others->end() ? nullptr : &it->second;
}

bool Clock::hasFound(uint32_t cluster, uint32_t agent, uint32_t epoch) const {
  return llvm::any_of(found, [&](const SharedViews &views) {
    if (!views)
      return false;
    auto it = views->find(cluster);
    return it != views->end() && at(it->second.seen, agent) >= epoch;
  });
}

void Clock::join(const Clock &o) {
  own.join(o.own);
  others = joinViews(others, o.others);
  for (unsigned k = 0; k < kScopes; ++k)
    found[k] = joinViews(found[k], o.found[k]);
}

/// Calls fn for the view of each cluster that the clock knows of.
template <class Fn>
static void changeViews(ClusterView &own, SharedViews &others, Fn fn) {
  fn(own);
  if (!others)
    return;
  auto changed = std::make_shared<Views>(*others);
  for (auto &[cluster, view] : *changed)
    fn(view);
  others = std::move(changed);
}

void Clock::fence(FenceSpace space) {
  changeViews(own, others,
              [&](ClusterView &view) { joinEpochs(view.fenced[unsigned(space)], view.seen); });
}

void Clock::fenceMemory(uint32_t cluster, MemScope scope) {
  // A narrow fence acquires, of what comes from far, its own cluster's part only.
  for (unsigned k = 0; k < kScopes; ++k) {
    if (!found[k])
      continue;
    if (k <= unsigned(scope)) {
      learn(cluster, found[k]);
      found[k] = nullptr;
    } else {
      learnOwn(cluster, found[k]);
    }
  }
  changeViews(own, others, [&](ClusterView &view) {
    for (unsigned k = 0; k <= unsigned(scope); ++k)
      joinEpochs(view.released[k], view.seen);
  });
}

void Clock::meet(const Clock &o) {
  meetInto(own.seen, o.own.seen);
  for (unsigned k = 0; k < 2; ++k)
    meetInto(own.fenced[k], o.own.fenced[k]);
}

void Clock::clear() { *this = Clock(); }

SharedViews Clock::publishAll(uint32_t cluster) const {
  auto views = others ? std::make_shared<Views>(*others) : std::make_shared<Views>();
  (*views)[cluster].join(own);
  return views;
}

SharedViews Clock::publishReleased(uint32_t cluster, MemScope scope) const {
  std::shared_ptr<Views> views;
  auto add = [&](uint32_t number, const ClusterView &view) {
    const Epochs &released = view.released[unsigned(scope)];
    if (released.empty())
      return;
    if (!views)
      views = std::make_shared<Views>();
    ClusterView passed = view;
    passed.seen = released;
    // Of this cluster the others may know something that has come back.
    (*views)[number].join(passed);
  };
  add(cluster, own);
  if (others)
    for (const auto &[number, view] : *others)
      add(number, view);
  return views;
}

void Clock::learnOwn(uint32_t cluster, const SharedViews &views) {
  if (auto it = views->find(cluster); it != views->end())
    own.join(it->second);
}

void Clock::learn(uint32_t cluster, const SharedViews &views) {
  learnOwn(cluster, views);
  if (views->size() == views->count(cluster))
    return;
  // What comes back of this cluster stays among the others, where nobody looks for it.
  others = joinViews(others, views);
}
