//===- Decode.cpp - From a kernel's memory to a timeline ------------------===//

#include "dialects/Hop/TimelineLayout.h"
#include "lib/Support/Json.h"
#include "lib/Timeline/Json.h"
#include "tessera/BundleKeys.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace llvm::support::endian;
using namespace tessera::timeline;
namespace key = tessera::key;

namespace {
/// What a bundle says of a kernel's timeline.
struct Layout {
  int64_t blocks = 0, first = 0, events = 0;
  std::vector<Stage> stages;
  std::vector<std::string> roles; ///< of the warpgroups
};

struct RoleEntry {
  std::string name;
  int64_t firstWarp = 0, warps = 0;
};

bool fromJSON(const json::Value &value, RoleEntry &role, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map(key::name, role.name) && map.map(key::firstWarp, role.firstWarp) &&
         map.map(key::warps, role.warps);
}

bool fromJSON(const json::Value &value, Layout &layout, json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map(key::blocks, layout.blocks) && map.map(key::first, layout.first) &&
         map.map(key::events, layout.events) && map.map(key::stages, layout.stages);
}
} // namespace

static Expected<Layout> readLayout(const json::Object &kernel) {
  Layout layout;
  std::vector<RoleEntry> roles;
  json::Path::Root root("kernel");
  const json::Value *timeline = kernel.get(key::timeline), *entries = kernel.get(key::roles);
  if (!timeline || !entries)
    return createStringError("the kernel's description has no timeline; compile it with "
                             "--instrument=timeline");
  if (!fromJSON(*timeline, layout, json::Path(root).field(key::timeline)) ||
      !json::fromJSON(*entries, roles, json::Path(root).field(key::roles)))
    return root.getError();
  for (const RoleEntry &role : roles)
    for (int64_t warp = 0; warp < role.warps; warp += 4)
      layout.roles.push_back(role.name);
  if (layout.blocks < 1 || layout.events < 2 || !isPowerOf2_64(layout.events))
    return createStringError("the kernel's timeline has no blocks, or events that are not a power "
                             "of two");
  return layout;
}

/// The events of a ring, the oldest first. Clocks of 32 bits are counted back from the end of the
/// role, so the events that are kept may span 2^32 of its unit and no more.
static Expected<std::vector<Event>> readEvents(const char *ring, const Layout &layout,
                                               uint32_t count, uint64_t endClock) {
  std::vector<Event> events;
  uint32_t kept = std::min<uint64_t>(count, layout.events);
  for (uint32_t i = count - kept; i != count; ++i) {
    const char *event = ring + (i & (layout.events - 1)) * eventBytes;
    uint32_t clock = read32le(event), word = read32le(event + 4);
    uint32_t stage = word & (maxStages - 1);
    if (stage >= layout.stages.size())
      return createStringError("an event has stage " + Twine(stage) + " of " +
                               Twine(layout.stages.size()) + "; the memory is not of this kernel");
    uint32_t before = static_cast<uint32_t>(endClock) - clock;
    events.push_back({endClock - before, stage, static_cast<int64_t>(word >> stageBits)});
  }
  return events;
}

Expected<Timeline> tessera::timeline::decode(StringRef description, ArrayRef<char> memory,
                                             ClockUnit unit) {
  Expected<json::Value> parsed = tessera::parseJson(description);
  if (!parsed)
    return parsed.takeError();
  const json::Object *kernel = parsed->getAsObject();
  if (!kernel)
    return createStringError("the kernel's description is no JSON object");
  Expected<Layout> layout = readLayout(*kernel);
  if (!layout)
    return layout.takeError();
  size_t bytes = recordBytes(layout->events);
  if (memory.size() != bytes * layout->blocks * layout->roles.size())
    return createStringError("the timeline has " + Twine(memory.size()) +
                             " bytes, which is not what its description says");
  Timeline timeline;
  timeline.kernel = kernel->getString(key::name).value_or("").str();
  timeline.schedule = kernel->getString(key::schedule).value_or("").str();
  timeline.unit = unit;
  const char *at = memory.data();
  for (int64_t block = 0; block < layout->blocks; ++block)
    for (const std::string &role : layout->roles) {
      Record record;
      record.block = layout->first + block;
      record.role = role;
      uint32_t count = read32le(at + countOffset);
      record.multiprocessor = read32le(at + smOffset);
      record.startClock = read64le(at + startClockOffset);
      record.endClock = read64le(at + endClockOffset);
      record.startTime = read64le(at + startTimeOffset);
      record.endTime = read64le(at + endTimeOffset);
      record.lost = count > layout->events ? count - layout->events : 0;
      Expected<std::vector<Event>> events =
          readEvents(at + headerBytes, *layout, count, record.endClock);
      if (!events)
        return events.takeError();
      record.events = std::move(*events);
      // A block that the launch did not have left its records as they were.
      if (record.startClock)
        timeline.records.push_back(std::move(record));
      at += bytes;
    }
  timeline.stages = std::move(layout->stages);
  return timeline;
}
