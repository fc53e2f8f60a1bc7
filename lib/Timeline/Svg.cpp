//===- Svg.cpp - A picture of one thread block ----------------------------===//

#include "lib/Timeline/Timeline.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <map>

using namespace llvm;
using namespace tessera::timeline;

// Sizes in pixels.
static constexpr double plotWidth = 1200, labelWidth = 150, laneHeight = 24, productHeight = 16,
                        laneGap = 2, groupGap = 14, scheduleHeight = 12, axisHeight = 26,
                        legendHeight = 20, letterWidth = 6.2, smallestText = 16;

/// Waits are pale, work has a colour; products have colours of their own, by their order.
static StringRef getColour(const Stage &stage) {
  switch (stage.kind) {
  case StageKind::Wait:
    return "#e5e5e5";
  case StageKind::Turn:
    return "#f4d9d9";
  case StageKind::Sync:
    return "#efefef";
  case StageKind::Load:
    return "#b7d7a8";
  case StageKind::Issue:
    return "#9fc5e8";
  case StageKind::Finish:
    return "#d9d2e9";
  case StageKind::Compute:
    return "#f6b26b";
  case StageKind::Store:
    return "#93c47d";
  }
  llvm_unreachable("covered switch");
}
static constexpr StringLiteral productColours[] = {"#3d85c6", "#674ea7", "#45818e", "#a64d79"};

static std::string escape(StringRef text) {
  std::string escaped;
  raw_string_ostream os(escaped);
  for (char c : text) {
    if (c == '&')
      os << "&amp;";
    else if (c == '<')
      os << "&lt;";
    else
      os << c;
  }
  return escaped;
}

/// The fields of a schedule in lines that are as wide as the picture.
static std::vector<std::string> wrapSchedule(StringRef schedule) {
  constexpr size_t mostLetters = 240;
  std::vector<std::string> lines(1);
  while (!schedule.empty()) {
    auto [field, rest] = schedule.split(", ");
    if (!lines.back().empty() && lines.back().size() + field.size() > mostLetters)
      lines.emplace_back();
    lines.back() += (field + (rest.empty() ? "" : ", ")).str();
    schedule = rest;
  }
  return lines;
}

namespace {
class Drawing {
public:
  Drawing(const Timeline &timeline, std::vector<const Record *> records, raw_ostream &os)
      : timeline(timeline), records(std::move(records)), os(os) {}

  /// Finds the part to show; false when the records have none.
  bool chooseWindow(unsigned iterations);
  void draw();

private:
  void findProductColours();
  double x(uint64_t clock) const {
    return labelWidth + plotWidth * static_cast<double>(clock - begin) / (end - begin);
  }
  void findLegend();
  double getHeight() const;
  void drawText(double left, double top, StringRef text, StringRef extra = "");
  void drawLane(double top, double height, StringRef label, ArrayRef<Span> spans, bool areProducts);
  double drawProducts(double top, const Record &record);
  void drawAxis(double top);
  void drawLegend(double top);

  const Timeline &timeline;
  std::vector<const Record *> records;
  raw_ostream &os;
  std::vector<std::string> schedule = wrapSchedule(timeline.schedule);
  const double headHeight = 52 + scheduleHeight * schedule.size();
  uint64_t begin = 0, end = 0;
  DenseMap<unsigned, StringRef> productColour; ///< by the Issue stage
  SetVector<unsigned> legend;                  ///< stages that are shown
};
} // namespace

/// The middle of the longest run of issues of one product, by the first role that has any; else all
/// that was recorded.
bool Drawing::chooseWindow(unsigned iterations) {
  for (const Record *record : records) {
    std::map<unsigned, std::vector<uint64_t>> issues;
    for (const Event &event : record->events)
      if (timeline.stages[event.stage].kind == StageKind::Issue)
        issues[event.stage].push_back(event.clock);
    const std::vector<uint64_t> *most = nullptr;
    for (auto &[stage, clocks] : issues)
      if (!most || clocks.size() > most->size())
        most = &clocks;
    if (!most)
      continue;
    size_t count = std::min<size_t>(iterations, most->size());
    size_t first = (most->size() - count) / 2;
    begin = (*most)[first];
    end = first + count < most->size() ? (*most)[first + count] : record->endClock;
    return begin < end;
  }
  return false;
}

void Drawing::findProductColours() {
  for (auto [i, stage] : enumerate(timeline.stages))
    if (stage.kind == StageKind::Issue)
      productColour[i] = productColours[productColour.size() % std::size(productColours)];
}

void Drawing::drawText(double left, double top, StringRef text, StringRef extra) {
  os << formatv("<text x=\"{0:f1}\" y=\"{1:f1}\"{2}>{3}</text>\n", left, top, extra, escape(text));
}

void Drawing::drawLane(double top, double height, StringRef label, ArrayRef<Span> spans,
                       bool areProducts) {
  double baseline = top + height / 2 + 4;
  drawText(4, baseline, label);
  for (const Span &span : spans) {
    if (span.end <= begin || span.begin >= end)
      continue;
    const Stage &stage = timeline.stages[span.stage];
    double left = x(std::max(span.begin, begin)), right = x(std::min(span.end, end));
    std::string name = areProducts ? stage.getProductName() : stage.getName();
    os << formatv("<g><title>{0}, iteration {1}, {2} from {3}{4}</title>", escape(name),
                  span.iteration, span.end - span.begin, span.begin,
                  stage.line ? ", " + escape(stage.getPlace()) : "");
    os << formatv("<rect x=\"{0:f1}\" y=\"{1:f1}\" width=\"{2:f1}\" height=\"{3:f1}\" "
                  "fill=\"{4}\" stroke=\"#ffffff\" stroke-width=\"0.5\"/>",
                  left, top, right - left, height,
                  areProducts ? productColour.lookup(span.stage) : getColour(stage));
    size_t letters = static_cast<size_t>((right - left - 4) / letterWidth);
    if (right - left >= smallestText && letters > 1)
      drawText(left + 2, baseline, StringRef(name).take_front(letters),
               areProducts ? " fill=\"#ffffff\"" : "");
    os << "</g>\n";
  }
}

/// Returns the height of the lanes.
double Drawing::drawProducts(double top, const Record &record) {
  double height = 0;
  auto lanes = getProductLanes(timeline, record);
  for (auto [i, lane] : enumerate(lanes)) {
    std::string label = lanes.size() == 1 ? "in flight" : "in flight, " + std::to_string(i + 1);
    drawLane(top + height, productHeight, label, lane, /*areProducts=*/true);
    height += productHeight + laneGap;
  }
  return height;
}

/// Ticks at a round distance, counted from the left edge.
void Drawing::drawAxis(double top) {
  uint64_t step = 1;
  constexpr uint64_t mostTicks = 12;
  for (unsigned i = 0; (end - begin) / step > mostTicks; ++i)
    step = i % 3 == 1 ? step / 2 * 5 : step * 2;
  for (uint64_t tick = 0; tick <= end - begin; tick += step) {
    double left = x(begin + tick);
    os << formatv("<line x1=\"{0:f1}\" y1=\"{1:f1}\" x2=\"{0:f1}\" y2=\"{2:f1}\" "
                  "stroke=\"#888888\" stroke-width=\"0.5\"/>\n",
                  left, headHeight - 4, top);
    drawText(left, top + 14, std::to_string(tick), " text-anchor=\"middle\" fill=\"#555555\"");
  }
}

void Drawing::drawLegend(double top) {
  for (unsigned number : legend) {
    const Stage &stage = timeline.stages[number];
    os << formatv("<rect x=\"{0:f1}\" y=\"{1:f1}\" width=\"14\" height=\"12\" fill=\"{2}\"/>\n",
                  labelWidth, top, getColour(stage));
    drawText(labelWidth + 20, top + 10, stage.getTitle());
    top += legendHeight;
  }
}

void Drawing::findLegend() {
  for (const Record *record : records)
    for (const Span &span : getStages(*record))
      if (span.end > begin && span.begin < end)
        legend.insert(span.stage);
}

double Drawing::getHeight() const {
  double height = headHeight + axisHeight + legend.size() * legendHeight + 10;
  for (const Record *record : records)
    height += laneHeight + laneGap + groupGap +
              getProductLanes(timeline, *record).size() * (productHeight + laneGap);
  return height;
}

void Drawing::draw() {
  findProductColours();
  findLegend();
  os << formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:f0}\" height=\"{1:f0}\" "
                "font-family=\"sans-serif\" font-size=\"11\">\n",
                labelWidth + plotWidth + 20, getHeight());
  os << "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  bool isTimed = timeline.unit == ClockUnit::Cycles;
  drawText(4, 16, timeline.kernel, " font-weight=\"bold\"");
  for (auto [i, line] : enumerate(schedule))
    drawText(4, 32 + scheduleHeight * i, line, " font-size=\"9\" fill=\"#555555\"");
  std::string place = "block " + std::to_string(records.front()->block);
  if (isTimed)
    place += " on multiprocessor " + std::to_string(records.front()->multiprocessor) + ", cycles";
  else
    place += " on the simulator, which knows no time: the axis counts warp instructions";
  drawText(4, headHeight - 16, place);
  double top = headHeight;
  for (const Record *record : records) {
    drawLane(top, laneHeight, record->role, getStages(*record), /*areProducts=*/false);
    top += laneHeight + laneGap;
    top += drawProducts(top, *record) + groupGap;
  }
  drawAxis(top);
  drawLegend(top + axisHeight);
  os << "</svg>\n";
}

Error tessera::timeline::writeSvg(const Timeline &timeline, const SvgOptions &options,
                                  raw_ostream &os) {
  if (timeline.records.empty())
    return createStringError("no thread block was recorded");
  int64_t block = options.block.value_or(timeline.records.front().block);
  std::vector<const Record *> records;
  for (const Record &record : timeline.records)
    if (record.block == block)
      records.push_back(&record);
  if (records.empty()) {
    SetVector<int64_t> recorded;
    for (const Record &record : timeline.records)
      recorded.insert(record.block);
    std::string list;
    interleave(recorded, [&](int64_t b) { list += std::to_string(b); }, [&] { list += ", "; });
    return createStringError("block " + Twine(block) + " is not recorded; these are: " + list);
  }
  Drawing drawing(timeline, std::move(records), os);
  if (!drawing.chooseWindow(options.iterations))
    return createStringError("block " + Twine(block) +
                             " has issued no products, so there is no "
                             "main loop to show");
  drawing.draw();
  return Error::success();
}
