//===- Spans.cpp - Stages and products with their ends --------------------===//

#include "lib/Timeline/Timeline.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <deque>
#include <map>
#include <tuple>

using namespace llvm;
using namespace tessera::timeline;

std::vector<Span> tessera::timeline::getStages(const Record &record) {
  std::vector<Span> spans;
  for (auto [i, event] : enumerate(record.events)) {
    uint64_t end = i + 1 < record.events.size() ? record.events[i + 1].clock : record.endClock;
    spans.push_back({event.stage, event.iteration, event.clock, end});
  }
  return spans;
}

std::vector<Span> tessera::timeline::getProducts(const Timeline &timeline, const Record &record) {
  std::vector<Span> products;
  DenseMap<unsigned, std::deque<Span>> inFlight;
  for (const Span &span : getStages(record)) {
    const Stage &stage = timeline.stages[span.stage];
    if (stage.kind == StageKind::Issue)
      inFlight[span.stage].push_back(span);
    // Products complete in the order of their issue.
    for (int64_t product : stage.products) {
      std::deque<Span> &waiting = inFlight[product];
      if (waiting.empty())
        continue;
      products.push_back(waiting.front());
      products.back().end = span.end;
      waiting.pop_front();
    }
  }
  llvm::sort(products, [](const Span &a, const Span &b) {
    return std::tie(a.begin, a.stage) < std::tie(b.begin, b.stage);
  });
  return products;
}

std::vector<std::vector<Span>> tessera::timeline::getProductLanes(const Timeline &timeline,
                                                                  const Record &record) {
  std::map<unsigned, std::vector<std::vector<Span>>> lanesOfStage;
  for (const Span &span : getProducts(timeline, record)) {
    std::vector<std::vector<Span>> &lanes = lanesOfStage[span.stage];
    auto free = llvm::find_if(lanes, [&](auto &lane) { return lane.back().end <= span.begin; });
    if (free == lanes.end())
      free = lanes.emplace(lanes.end());
    free->push_back(span);
  }
  std::vector<std::vector<Span>> all;
  for (auto &[stage, lanes] : lanesOfStage)
    append_range(all, lanes);
  return all;
}
