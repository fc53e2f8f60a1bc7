//===- TimelineTest.cpp - Decoding and drawing timelines ------------------===//

#include "lib/Timeline/Timeline.h"
#include "dialects/Hop/TimelineLayout.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

using namespace tessera::timeline;
using llvm::support::endian::write32le;
using llvm::support::endian::write64le;

namespace {

constexpr int64_t kEvents = 8;

constexpr llvm::StringLiteral kDescription = R"({
  "name": "attend", "schedule": "pingpong = true",
  "roles": [{"name": "producer", "first_warp": 0, "warps": 4},
            {"name": "consumer 0", "first_warp": 4, "warps": 4}],
  "timeline": {"blocks": 2, "first": 5, "events": 8, "stages": [
    {"kind": "wait", "label": "k.full", "line": 3, "column": 5},
    {"kind": "issue", "label": "q x k", "line": 4, "column": 5, "value": "s"},
    {"kind": "compute", "label": "exp2", "line": 6, "column": 5, "value": "p"},
    {"kind": "finish", "label": "q x k", "line": 4, "column": 5, "value": "s", "products": [1]}]}
})";

/// The memory of the kernel above, zeroed, with a way to fill in its records.
class Memory {
public:
  std::vector<char> bytes = std::vector<char>(4 * recordBytes(kEvents));

  char *getRecord(unsigned index) { return bytes.data() + index * recordBytes(kEvents); }

  void setHeader(unsigned index, uint32_t count, uint64_t start, uint64_t end) {
    char *record = getRecord(index);
    write32le(record + countOffset, count);
    write32le(record + smOffset, 17);
    write64le(record + startClockOffset, start);
    write64le(record + endClockOffset, end);
    write64le(record + startTimeOffset, 1000);
    write64le(record + endTimeOffset, 2000);
  }

  void setEvent(unsigned index, unsigned place, uint64_t clock, unsigned stage,
                unsigned iteration) {
    char *event = getRecord(index) + headerBytes + place * eventBytes;
    write32le(event, static_cast<uint32_t>(clock));
    write32le(event + 4, stage | iteration << stageBits);
  }
};

Timeline decodeAll(const Memory &memory) {
  return llvm::cantFail(decode(kDescription, memory.bytes, ClockUnit::Cycles));
}

/// One consumer with two products in flight at a time.
Timeline makeTimeline() {
  Memory memory;
  memory.setHeader(0, 1, 100, 600);
  memory.setEvent(0, 0, 100, 0, 0);
  memory.setHeader(1, 7, 100, 600);
  unsigned stages[] = {0, 1, 1, 3, 2, 3, 2};
  for (unsigned i = 0; i < 7; ++i)
    memory.setEvent(1, i, 110 + 50 * i, stages[i], i / 2);
  return decodeAll(memory);
}

std::string errorOf(llvm::StringRef text) { return toString(fromJSON(text).takeError()); }

} // namespace

TEST(TimelineTest, DecodesRecords) {
  Timeline timeline = makeTimeline();
  EXPECT_EQ(timeline.kernel, "attend");
  EXPECT_EQ(timeline.schedule, "pingpong = true");
  // The second block did not run.
  ASSERT_EQ(timeline.records.size(), 2u);
  const Record &record = timeline.records[1];
  EXPECT_EQ(record.block, 5);
  EXPECT_EQ(record.multiprocessor, 17u);
  EXPECT_EQ(record.role, "consumer 0");
  EXPECT_EQ(record.lost, 0u);
  ASSERT_EQ(record.events.size(), 7u);
  EXPECT_EQ(record.events[3].clock, 260u);
  EXPECT_EQ(record.events[3].stage, 3u);
  EXPECT_EQ(record.events[3].iteration, 1);
}

TEST(TimelineTest, KeepsTheLastEventsOfARing) {
  Memory memory;
  memory.setHeader(1, 11, 1, 1000);
  for (unsigned i = 0; i < 11; ++i)
    memory.setEvent(1, i % kEvents, 10 * i + 5, 0, i);
  Timeline timeline = decodeAll(memory);
  ASSERT_EQ(timeline.records.size(), 1u);
  EXPECT_EQ(timeline.records[0].lost, 3u);
  ASSERT_EQ(timeline.records[0].events.size(), 8u);
  EXPECT_EQ(timeline.records[0].events.front().clock, 35u);
  EXPECT_EQ(timeline.records[0].events.back().clock, 105u);
}

TEST(TimelineTest, CountsClocksOf32BitsFromTheEnd) {
  Memory memory;
  memory.setHeader(1, 2, 0x2fffffff0, 0x300000010);
  memory.setEvent(1, 0, 0x2fffffff5, 0, 0);
  memory.setEvent(1, 1, 0x300000004, 0, 0);
  Timeline timeline = decodeAll(memory);
  EXPECT_EQ(timeline.records[0].events[0].clock, 0x2fffffff5u);
  EXPECT_EQ(timeline.records[0].events[1].clock, 0x300000004u);
}

TEST(TimelineTest, RefusesMemoryThatDoesNotFit) {
  Memory memory;
  memory.bytes.pop_back();
  EXPECT_EQ(toString(decode(kDescription, memory.bytes, ClockUnit::Cycles).takeError()),
            "the timeline has 511 bytes, which is not what its description says");
  Memory other;
  other.setHeader(0, 1, 1, 2);
  other.setEvent(0, 0, 1, 4, 0);
  EXPECT_EQ(toString(decode(kDescription, other.bytes, ClockUnit::Cycles).takeError()),
            "an event has stage 4 of 4; the memory is not of this kernel");
  EXPECT_EQ(toString(decode(R"({"name": "attend"})", {}, ClockUnit::Cycles).takeError()),
            "the kernel's description has no timeline; compile it with --instrument=timeline");
}

TEST(TimelineTest, PairsProductsInOrder) {
  Timeline timeline = makeTimeline();
  std::vector<Span> products = getProducts(timeline, timeline.records[1]);
  ASSERT_EQ(products.size(), 2u);
  // Issued at 160 and 210, complete at the ends of the waits at 260 and 360.
  EXPECT_EQ(products[0].begin, 160u);
  EXPECT_EQ(products[0].end, 310u);
  EXPECT_EQ(products[1].begin, 210u);
  EXPECT_EQ(products[1].end, 410u);
  EXPECT_EQ(getProductLanes(timeline, timeline.records[1]).size(), 2u);
  std::vector<Span> stages = getStages(timeline.records[1]);
  EXPECT_EQ(stages.back().end, 600u);
}

TEST(TimelineTest, SurvivesItsTextForm) {
  Timeline timeline = makeTimeline();
  std::string text = llvm::formatv("{0}", toJSON(timeline)).str();
  Timeline again = llvm::cantFail(fromJSON(text));
  EXPECT_EQ(llvm::formatv("{0}", toJSON(again)).str(), text);
  EXPECT_EQ(again.records[1].endTime, 2000u);
}

TEST(TimelineTest, NamesTheFilesOfStages) {
  // Both forms of a stage: the one before had no file.
  constexpr llvm::StringLiteral text = R"({"format": "tessera-timeline", "version": 1,
    "kernel": "k", "schedule": "", "clock": "cycles", "stages": [
    {"kind": "issue", "label": "q x k", "file": "a.tile", "line": 4, "column": 5, "value": "s"},
    {"kind": "store", "label": "o", "line": 7, "column": 5},
    {"kind": "turn", "label": "turn", "line": 0, "column": 0}],
    "records": [{"block": 0, "multiprocessor": 0, "role": "r", "start": [1, 1], "end": [9, 9],
    "lost": 0, "events": [[1, 0, 0], [3, 1, 0], [5, 2, 0]]}]})";
  Timeline timeline = llvm::cantFail(fromJSON(text));
  EXPECT_EQ(timeline.stages[0].getTitle(), "issue s = q x k (a.tile:4)");
  EXPECT_EQ(timeline.stages[1].getTitle(), "store o (line 7)");
  EXPECT_EQ(timeline.stages[2].getTitle(), "wait for the turn");
  Timeline again = llvm::cantFail(fromJSON(llvm::formatv("{0}", toJSON(timeline)).str()));
  EXPECT_EQ(again.stages[0].file, "a.tile");
  EXPECT_EQ(again.stages[1].file, "");
  std::string summary, svg, trace;
  llvm::raw_string_ostream summaryStream(summary), svgStream(svg), traceStream(trace);
  writeSummary(timeline, summaryStream);
  EXPECT_NE(summary.find("issue s = q x k (a.tile:4)\n"), std::string::npos) << summary;
  EXPECT_NE(summary.find("wait for the turn\n"), std::string::npos) << summary;
  llvm::cantFail(writeSvg(timeline, SvgOptions(), svgStream));
  EXPECT_NE(svg.find("2 from 1, a.tile:4</title>"), std::string::npos) << svg;
  writePerfetto(timeline, traceStream);
  EXPECT_NE(trace.find(R"("file":"a.tile","line":4)"), std::string::npos) << trace;
}

TEST(TimelineTest, RefusesTextThatIsNotConsistent) {
  auto make = [](llvm::StringRef stages, llvm::StringRef records) {
    return llvm::formatv(
               R"({"format": "tessera-timeline", "version": 1, "kernel": "", "schedule": "",
        "clock": "cycles", "stages": [{0}], "records": [{1}]})",
               stages, records)
        .str();
  };
  llvm::StringRef wait = R"({"kind": "wait", "label": "k", "line": 1, "column": 1})";
  auto record = [](llvm::StringRef events) {
    return llvm::formatv(R"({"block": 0, "multiprocessor": 0, "role": "r", "start": [1, 1],
        "end": [9, 9], "lost": 0, "events": [{0}]})",
                         events)
        .str();
  };
  EXPECT_EQ(errorOf(make(wait, record("[1, 0, 0], [2, 0, 0]"))), "");
  EXPECT_EQ(errorOf(make(wait, record("[1, 1, 0]"))), "an event has stage 1 of 1");
  EXPECT_EQ(errorOf(make(wait, record("[3, 0, 0], [2, 0, 0]"))),
            "the events of r in block 0 are not in order");
  EXPECT_EQ(errorOf(make(wait, record("[10, 0, 0]"))), "r in block 0 ends before its last event");
  EXPECT_EQ(errorOf(make(
                R"({"kind": "finish", "label": "", "line": 1, "column": 1, "products": [0]})", "")),
            "a stage finishes the product 0, which no stage issues");
  EXPECT_NE(errorOf(make(R"({"kind": "rest", "label": "", "line": 1, "column": 1})", ""))
                .find("is no kind of stage"),
            std::string::npos);
  EXPECT_NE(errorOf(R"({"format": "other", "version": 1})").find("is not a timeline of version 1"),
            std::string::npos);
}

TEST(TimelineTest, PlacesEventsByTheGlobalTimer) {
  // 500 cycles took 1000 ns.
  std::string text;
  llvm::raw_string_ostream os(text);
  writePerfetto(makeTimeline(), os);
  llvm::json::Value trace = llvm::cantFail(llvm::json::parse(text));
  bool found = false;
  for (const llvm::json::Value &value : *trace.getAsObject()->getArray("traceEvents")) {
    const llvm::json::Object &event = *value.getAsObject();
    if (event.getString("name") != "s = q x k" || found)
      continue;
    found = true;
    EXPECT_EQ(event.getString("cat"), "product");
    EXPECT_DOUBLE_EQ(*event.getNumber("ts"), 0.12);
    EXPECT_DOUBLE_EQ(*event.getNumber("dur"), 0.3);
    EXPECT_EQ(event.getInteger("pid"), 5);
  }
  EXPECT_TRUE(found);
}

TEST(TimelineTest, SummarizesRoles) {
  std::string text;
  llvm::raw_string_ostream os(text);
  writeSummary(makeTimeline(), os);
  // Arithmetic from 310 to 360, under the second product, and from 410 to 600, under none.
  EXPECT_NE(text.find("arithmetic under products: 20.8 % its own, 0.0 % of other warpgroups"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("consumer 0: 1 recorded, 500 cycles on average"), std::string::npos) << text;
}

TEST(TimelineTest, DrawsABlock) {
  std::string text;
  llvm::raw_string_ostream os(text);
  SvgOptions options;
  options.iterations = 1;
  ASSERT_EQ(toString(writeSvg(makeTimeline(), options, os)), "");
  // One iteration: from the first issue to the second.
  EXPECT_NE(text.find("<title>s = q x k, iteration 0, 150 from 160, line 4</title>"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("from 360"), std::string::npos);
  options.block = 6;
  EXPECT_EQ(toString(writeSvg(makeTimeline(), options, os)),
            "block 6 is not recorded; these are: 5");
  EXPECT_EQ(toString(writeSvg(Timeline(), SvgOptions(), os)), "no thread block was recorded");
}
