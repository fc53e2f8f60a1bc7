//===- Summary.cpp - Timelines as a table ---------------------------------===//

#include "lib/Timeline/Timeline.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <map>

using namespace llvm;
using namespace tessera::timeline;

namespace {
/// Times without overlap, ascending.
using Times = std::vector<std::pair<uint64_t, uint64_t>>;

struct StageTotal {
  uint64_t count = 0, clocks = 0;
};

/// All records of one role.
struct RoleTotal {
  uint64_t records = 0, clocks = 0, lost = 0;
  /// Arithmetic, and how much of it ran under products.
  uint64_t compute = 0, underOwn = 0, underOthers = 0;
  std::map<unsigned, StageTotal> stages;
};
} // namespace

/// When at least one of the spans is there.
static Times join(std::vector<Span> spans) {
  llvm::sort(spans, [](const Span &a, const Span &b) { return a.begin < b.begin; });
  Times times;
  for (const Span &span : spans) {
    if (!times.empty() && span.begin <= times.back().second)
      times.back().second = std::max(times.back().second, span.end);
    else
      times.emplace_back(span.begin, span.end);
  }
  return times;
}

/// How much of [begin, end) `times` covers.
static uint64_t getCovered(const Times &times, uint64_t begin, uint64_t end) {
  uint64_t covered = 0;
  auto first = llvm::partition_point(times, [&](auto &time) { return time.second <= begin; });
  for (; first != times.end() && first->first < end; ++first)
    covered += std::min(end, first->second) - std::max(begin, first->first);
  return covered;
}

static void addRecord(const Timeline &timeline, const Record &record, RoleTotal &total) {
  std::vector<Span> others;
  for (const Record &other : timeline.records)
    if (other.block == record.block && &other != &record)
      append_range(others, getProducts(timeline, other));
  Times ownTimes = join(getProducts(timeline, record)), otherTimes = join(std::move(others));
  ++total.records;
  total.clocks += record.endClock - record.startClock;
  total.lost += record.lost;
  for (const Span &span : getStages(record)) {
    StageTotal &stage = total.stages[span.stage];
    ++stage.count;
    stage.clocks += span.end - span.begin;
    if (timeline.stages[span.stage].kind != StageKind::Compute)
      continue;
    total.compute += span.end - span.begin;
    total.underOwn += getCovered(ownTimes, span.begin, span.end);
    total.underOthers += getCovered(otherTimes, span.begin, span.end);
  }
}

static double percent(uint64_t part, uint64_t whole) {
  return whole ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

void tessera::timeline::writeSummary(const Timeline &timeline, raw_ostream &os) {
  MapVector<StringRef, RoleTotal> roles;
  for (const Record &record : timeline.records)
    addRecord(timeline, record, roles[record.role]);
  StringRef unit = timeline.unit == ClockUnit::Cycles ? "cycles" : "instructions";
  os << timeline.kernel << ", " << timeline.schedule << "\n";
  if (timeline.unit == ClockUnit::Instructions)
    os << "clocks are warp instructions of the simulator, which knows no time\n";
  for (auto &[role, total] : roles) {
    os << formatv("\n{0}: {1} recorded, {2} {3} on average", role, total.records,
                  total.clocks / total.records, unit);
    if (total.lost)
      os << ", " << total.lost << " earlier events lost";
    os << "\n";
    for (auto &[number, stage] : total.stages)
      os << formatv("{0,6:f1} % {1,7} x {2,8} {3}\n", percent(stage.clocks, total.clocks),
                    stage.count, stage.clocks / stage.count, timeline.stages[number].getTitle());
    if (total.compute)
      os << formatv("arithmetic under products: {0:f1} % its own, {1:f1} % of other warpgroups\n",
                    percent(total.underOwn, total.compute),
                    percent(total.underOthers, total.compute));
  }
}
