//===- Perfetto.cpp - Timelines as trace events ---------------------------===//
//
// The "Trace Event Format" of Chrome, as JSON: complete events ("X") on threads of
// processes, with times in microseconds.
//
//===----------------------------------------------------------------------===//

#include "lib/Timeline/Timeline.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <limits>

using namespace llvm;
using namespace tessera::timeline;

namespace {
/// Microseconds since the first record's start. A record is timed at its start and its end, and the
/// clock runs evenly between them; on the simulator an instruction takes the place of a
/// microsecond.
class TimeScale {
public:
  TimeScale(const Timeline &timeline, const Record &record, uint64_t origin)
      : startClock(record.startClock) {
    if (timeline.unit == ClockUnit::Instructions) {
      start = static_cast<double>(record.startClock - origin);
      return;
    }
    start = static_cast<double>(record.startTime - origin) / 1000;
    uint64_t cycles = record.endClock - record.startClock;
    if (cycles)
      rate = static_cast<double>(record.endTime - record.startTime) / 1000 / cycles;
  }

  double operator()(uint64_t clock) const {
    return start + static_cast<double>(clock - startClock) * rate;
  }

private:
  uint64_t startClock;
  double start, rate = 1;
};

class Writer {
public:
  Writer(const Timeline &timeline, raw_ostream &os) : timeline(timeline), json(os) {}
  void write();

private:
  void name(StringRef what, int64_t process, int64_t thread, const Twine &text);
  void writeSpans(ArrayRef<Span> spans, const TimeScale &scale, int64_t process, int64_t thread,
                  bool areProducts);
  int64_t writeRecord(const Record &record, int64_t thread);

  const Timeline &timeline;
  json::OStream json;
  uint64_t origin = std::numeric_limits<uint64_t>::max();
};
} // namespace

void Writer::name(StringRef what, int64_t process, int64_t thread, const Twine &text) {
  json.object([&] {
    json.attribute("ph", "M");
    json.attribute("name", what);
    json.attribute("pid", process);
    json.attribute("tid", thread);
    json.attributeObject("args", [&] { json.attribute("name", text.str()); });
  });
}

void Writer::writeSpans(ArrayRef<Span> spans, const TimeScale &scale, int64_t process,
                        int64_t thread, bool areProducts) {
  for (const Span &span : spans) {
    const Stage &stage = timeline.stages[span.stage];
    json.object([&] {
      json.attribute("ph", "X");
      json.attribute("name", areProducts ? stage.getProductName() : stage.getName());
      json.attribute("cat", areProducts ? "product" : "stage");
      json.attribute("pid", process);
      json.attribute("tid", thread);
      json.attribute("ts", scale(span.begin));
      json.attribute("dur", scale(span.end) - scale(span.begin));
      json.attributeObject("args", [&] {
        json.attribute("iteration", span.iteration);
        if (!stage.file.empty())
          json.attribute("file", stage.file);
        json.attribute("line", stage.line);
        json.attribute("clock", span.begin);
        json.attribute("length", span.end - span.begin);
      });
    });
  }
}

/// Writes the stages and the products of a warpgroup on threads from `thread` on; returns the next.
int64_t Writer::writeRecord(const Record &record, int64_t thread) {
  TimeScale scale(timeline, record, origin);
  name("thread_name", record.block, thread, record.role);
  writeSpans(getStages(record), scale, record.block, thread++, /*areProducts=*/false);
  for (const std::vector<Span> &lane : getProductLanes(timeline, record)) {
    name("thread_name", record.block, thread,
         record.role + ": " + timeline.stages[lane.front().stage].getProductName());
    writeSpans(lane, scale, record.block, thread++, /*areProducts=*/true);
  }
  return thread;
}

void Writer::write() {
  bool isTimed = timeline.unit == ClockUnit::Cycles;
  for (const Record &record : timeline.records)
    origin = std::min(origin, isTimed ? record.startTime : record.startClock);
  json.object([&] {
    json.attribute("displayTimeUnit", "ns");
    json.attributeObject("otherData", [&] {
      json.attribute("kernel", timeline.kernel);
      json.attribute("schedule", timeline.schedule);
      json.attribute("clock", isTimed ? "cycles of the multiprocessor, placed by %globaltimer at "
                                        "the start and the end of each role"
                                      : "warp instructions on the simulator, which knows no time; "
                                        "one is shown as a microsecond");
    });
    json.attributeArray("traceEvents", [&] {
      int64_t thread = 0;
      for (const Record &record : timeline.records) {
        if (thread == 0 || record.block != (&record - 1)->block) {
          thread = 1;
          name("process_name", record.block, 0,
               "block " + Twine(record.block) + " on multiprocessor " +
                   Twine(record.multiprocessor));
        }
        thread = writeRecord(record, thread);
      }
    });
  });
}

void tessera::timeline::writePerfetto(const Timeline &timeline, raw_ostream &os) {
  Writer(timeline, os).write();
  os << "\n";
}
