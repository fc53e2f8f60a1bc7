//===- Report.cpp - What tessera inspect prints ---------------------------===//

#include "lib/Inspect/Sass.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace tessera::sass;

/// In the order in which counts are printed; others follow, the most frequent first.
static constexpr StringLiteral knownNames[] = {"HGMMA", "MUFU", "FMNMX", "FFMA",      "FMUL",
                                               "FADD",  "F2FP", "SHFL",  "WARPGROUP", "BAR",
                                               "SYNCS", "LDL",  "STL"};
static constexpr size_t mostOthers = 8;

namespace {
/// The report on one loop.
class LoopReport {
public:
  LoopReport(const Function &function, const Loop &loop, const Samples *samples, raw_ostream &os)
      : function(function), loop(loop), samples(samples), os(os), runs(getRuns(function, loop)),
        inFlight(getGroupsInFlight(function, loop)) {
    for (size_t index : loop.body) {
      ++counts[at(index).getMnemonic().str()];
      placeWidth = std::max(placeWidth, at(index).getPlace().size());
    }
  }

  void write(bool listing);

private:
  const Instruction &at(size_t index) const { return function.instructions[index]; }
  unsigned count(StringRef name) const {
    auto found = counts.find(name.str());
    return found == counts.end() ? 0 : found->second;
  }
  double getShare(ArrayRef<size_t> instructions) const;
  std::string describeStalls(ArrayRef<size_t> instructions) const;
  void writeHead();
  void writePlaces();
  void writeCounts();
  void writeRuns();
  void writeTimeline();
  void writeLines();
  void writeListing();
  void noteIdleSpecials();
  void noteSpills();
  void noteUniform();
  void noteSerialised();

  const Function &function;
  const Loop &loop;
  const Samples *samples;
  raw_ostream &os;
  std::vector<Run> runs;
  std::vector<unsigned> inFlight;
  std::map<std::string, unsigned> counts;
  size_t placeWidth = 0; ///< of the longest place
};
} // namespace

//===----------------------------------------------------------------------===//
// Text of a run
//===----------------------------------------------------------------------===//

/// "MUFU x52 FFMA x128": what `wanted` holds of, the most frequent first.
template <typename Predicate>
static std::string formatCounts(const std::map<std::string, unsigned> &counts, Predicate wanted) {
  std::vector<std::pair<std::string, unsigned>> sorted;
  for (auto &entry : counts)
    if (wanted(StringRef(entry.first)))
      sorted.push_back(entry);
  llvm::sort(sorted, [](auto &a, auto &b) {
    return std::pair(b.second, StringRef(a.first)) < std::pair(a.second, StringRef(b.first));
  });
  std::string text;
  for (auto &[name, number] : sorted)
    text += (text.empty() ? "" : " ") + name + " x" + std::to_string(number);
  return text;
}

static unsigned countOthers(const Run &run) {
  unsigned others = 0;
  for (auto &[name, number] : run.counts)
    others += isArithmetic(name) || StringRef(name).ends_with("GMMA") ? 0 : number;
  return others;
}

static std::string describeSync(const Instruction &instruction) {
  StringRef opcode = instruction.opcode;
  if (opcode.starts_with("BAR.SYNC"))
    return "wait for a named barrier";
  if (opcode.starts_with("BAR.ARV"))
    return "arrive at a named barrier";
  if (opcode.starts_with("SYNCS.PHASECHK"))
    return "wait for an mbarrier";
  if (opcode.starts_with("SYNCS.ARRIVE"))
    return "arrive at an mbarrier";
  return opcode.str();
}

/// The first instruction of a run that gives it its kind.
static const Instruction &getLead(const Function &function, const Run &run) {
  for (size_t index : run.instructions) {
    const Instruction &instruction = function.instructions[index];
    if (run.kind != RunKind::Products || instruction.getMnemonic().ends_with("GMMA"))
      return instruction;
  }
  return function.instructions[run.instructions.front()];
}

static std::string describeRun(const Function &function, const Run &run) {
  const Instruction &lead = getLead(function, run);
  std::string text;
  switch (run.kind) {
  case RunKind::Products: {
    text = formatCounts(run.counts, [](StringRef name) { return name.ends_with("GMMA"); });
    SmallVector<StringRef> operands;
    StringRef(lead.operands).split(operands, ',');
    if (operands.size() > 1)
      text += (" " + StringRef(lead.opcode).split('.').second.split('.').first + " into " +
               operands[0].trim() + ", A in " +
               (operands[1].trim().starts_with("gdesc") ? "shared memory" : "registers"))
                  .str();
    break;
  }
  case RunKind::Wait:
    text = "wait until at most " + StringRef(lead.operands).rsplit(',').second.trim().str() +
           " groups are in flight";
    break;
  case RunKind::Sync:
    text = describeSync(lead);
    break;
  case RunKind::Arithmetic:
    text = formatCounts(run.counts, isArithmetic);
    break;
  }
  if (unsigned others = countOthers(run);
      others && (run.kind == RunKind::Products || run.kind == RunKind::Arithmetic))
    text += (text.empty() ? "" : " ") + ("other x" + std::to_string(others));
  return text;
}

/// As short as a timeline in one line wants it.
static std::string abbreviateRun(const Function &function, const Run &run) {
  const Instruction &lead = getLead(function, run);
  if (run.kind == RunKind::Products)
    return formatCounts(run.counts, [](StringRef name) { return name.ends_with("GMMA"); });
  if (run.kind == RunKind::Wait)
    return "wait " + StringRef(lead.operands).rsplit(',').second.trim().str();
  if (run.kind == RunKind::Sync)
    return StringRef(lead.opcode).take_front(StringRef(lead.opcode).find('.', 6)).str();
  auto specials = run.counts.find("MUFU");
  unsigned total = 0;
  for (auto &[name, number] : run.counts)
    total += isArithmetic(name) ? number : 0;
  std::string text;
  if (specials != run.counts.end()) {
    text = "MUFU x" + std::to_string(specials->second);
    total -= specials->second;
  }
  if (total)
    text += (text.empty() ? "" : " + ") + std::to_string(total) + " arithmetic";
  return text;
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

double LoopReport::getShare(ArrayRef<size_t> instructions) const {
  uint64_t sum = 0;
  for (size_t index : instructions)
    sum += samples->places[index].total;
  return samples->total ? 100.0 * static_cast<double>(sum) / static_cast<double>(samples->total)
                        : 0;
}

/// "wait 3.1 %, math 1.2 %": the reasons that matter most.
std::string LoopReport::describeStalls(ArrayRef<size_t> instructions) const {
  constexpr size_t mostReasons = 3;
  std::map<std::string, uint64_t> sums;
  for (size_t index : instructions)
    for (auto &[reason, number] : samples->places[index].stalls)
      sums[reason] += number;
  std::vector<std::pair<std::string, uint64_t>> sorted(sums.begin(), sums.end());
  llvm::sort(sorted, [](auto &a, auto &b) {
    return std::pair(b.second, StringRef(a.first)) < std::pair(a.second, StringRef(b.first));
  });
  std::string text;
  for (auto &[reason, number] : ArrayRef(sorted).take_front(mostReasons))
    text += (text.empty() ? "" : ", ") +
            formatv("{0} {1:f1} %", reason,
                    100.0 * static_cast<double>(number) / static_cast<double>(samples->total))
                .str();
  return text;
}

void LoopReport::writeHead() {
  os << formatv("\nloop at {0:x} to {1:x}: {2} instructions", at(loop.body.front()).address,
                at(loop.body.back()).address, loop.body.size());
  if (!loop.outOfLine.empty())
    os << ", " << loop.outOfLine.size() << " more out of line";
  if (samples)
    os << formatv(", {0:f1} % of the samples", getShare(loop.body));
  os << "\n";
}

/// Of each file the first and the last line that the loop has of it.
void LoopReport::writePlaces() {
  MapVector<StringRef, std::pair<unsigned, unsigned>> lines;
  for (size_t index : loop.body)
    if (unsigned line = at(index).line) {
      auto &range =
          lines.try_emplace(sys::path::filename(at(index).file), line, line).first->second;
      range = {std::min(range.first, line), std::max(range.second, line)};
    }
  if (lines.empty())
    return;
  os << "  lines ";
  interleaveComma(lines, os, [&](auto &entry) {
    auto [first, last] = entry.second;
    os << first << (first < last ? " to " + std::to_string(last) : "") << " of " << entry.first;
  });
  os << "\n";
}

void LoopReport::writeCounts() {
  os << "  ";
  for (StringRef name : knownNames)
    if (unsigned number = count(name))
      os << name << " " << number << "  ";
  std::vector<std::pair<std::string, unsigned>> others;
  for (auto &entry : counts)
    if (!llvm::is_contained(knownNames, entry.first))
      others.push_back(entry);
  llvm::sort(others, [](auto &a, auto &b) {
    return std::pair(b.second, StringRef(a.first)) < std::pair(a.second, StringRef(b.first));
  });
  for (auto &[name, number] : ArrayRef(others).take_front(mostOthers))
    os << name << " " << number << "  ";
  unsigned rest = 0;
  for (auto &[name, number] : ArrayRef(others).drop_front(std::min(mostOthers, others.size())))
    rest += number;
  if (rest)
    os << "other " << rest;
  os << "\n";
}

void LoopReport::writeRuns() {
  for (const Run &run : runs) {
    os << formatv("  {0:x-6}", at(run.instructions.front()).address);
    if (samples)
      os << formatv("{0,6:f1} %", getShare(run.instructions));
    os << "  " << describeRun(function, run);
    if (samples)
      if (std::string stalls = describeStalls(run.instructions); !stalls.empty())
        os << "  [" << stalls << "]";
    os << "\n";
  }
}

void LoopReport::writeTimeline() {
  os << "  ";
  bool isFirst = true;
  for (const Run &run : runs) {
    std::string text = abbreviateRun(function, run);
    if (text.empty())
      continue;
    os << (isFirst ? "" : " | ") << text;
    isFirst = false;
  }
  os << "\n";
}

/// Samples by line of the source, the most first.
void LoopReport::writeLines() {
  constexpr size_t mostLines = 12;
  std::map<std::string, std::vector<size_t>> lines;
  for (size_t index : loop.body)
    if (at(index).line)
      lines[at(index).getPlace()].push_back(index);
  if (lines.empty()) {
    os << "  no lines: compile with --Xptxas -lineinfo to see samples by line\n";
    return;
  }
  std::vector<std::pair<double, StringRef>> shares;
  for (auto &[place, instructions] : lines)
    shares.emplace_back(getShare(instructions), place);
  llvm::stable_sort(shares, [](auto &a, auto &b) { return a.first > b.first; });
  for (auto &[share, place] : ArrayRef(shares).take_front(mostLines))
    os << formatv("  {0} {1,6:f1} %  [{2}]\n", left_justify(place, placeWidth), share,
                  describeStalls(lines[place.str()]));
}

void LoopReport::writeListing() {
  for (auto [i, index] : enumerate(loop.body)) {
    const Instruction &instruction = at(index);
    os << formatv("  {0:x-6}  {1} in flight {2}  ", instruction.address,
                  left_justify(instruction.getPlace(), placeWidth), inFlight[i]);
    if (samples)
      os << formatv("{0,6}  ", samples->places[index].total);
    os << instruction.guard << (instruction.guard.empty() ? "" : " ") << instruction.opcode << " "
       << instruction.operands << "\n";
  }
}

//===----------------------------------------------------------------------===//
// Notes
//===----------------------------------------------------------------------===//

/// Special functions that run while no product of the warpgroup does: the wait before them could
/// come later, if what they read does not depend on the product.
void LoopReport::noteIdleSpecials() {
  unsigned total = count("MUFU"), idle = 0;
  std::optional<uint64_t> wait, blamed;
  for (auto [i, index] : enumerate(loop.body)) {
    const Instruction &instruction = at(index);
    if (StringRef(instruction.opcode).starts_with("WARPGROUP.DEPBAR"))
      wait = instruction.address;
    if (instruction.getMnemonic() != "MUFU" || inFlight[i])
      continue;
    ++idle;
    if (!blamed)
      blamed = wait;
  }
  if (!total || !count("HGMMA"))
    return;
  os << formatv("  note: {0} of {1} MUFU run while a product of this warpgroup is in flight",
                total - idle, total);
  if (blamed && idle)
    os << formatv("; {0} come after the wait at {1:x}, which leaves none", idle, *blamed);
  os << "\n";
}

void LoopReport::noteSpills() {
  if (count("LDL") + count("STL"))
    os << formatv("  note: registers are spilled in the loop: {0} loads and {1} stores of local "
                  "memory\n",
                  count("LDL"), count("STL"));
}

void LoopReport::noteUniform() {
  unsigned products = count("HGMMA"), uniform = 0;
  for (const Run &run : runs)
    if (run.kind == RunKind::Products)
      uniform += countOthers(run);
  if (products && uniform > products)
    os << formatv("  note: {0} instructions stand among {1} HGMMA, {2:f1} for each: descriptors "
                  "and what they are made of\n",
                  uniform, products, static_cast<double>(uniform) / products);
}

/// ptxas waits after each product when it cannot prove that their registers are left alone.
void LoopReport::noteSerialised() {
  unsigned waits = 0;
  for (size_t index : loop.body)
    waits += StringRef(at(index).opcode).starts_with("WARPGROUP.DEPBAR");
  if (count("HGMMA") > 1 && waits >= count("HGMMA"))
    os << formatv("  note: {0} waits for {1} HGMMA: the products are serialised\n", waits,
                  count("HGMMA"));
}

void LoopReport::write(bool listing) {
  writeHead();
  writePlaces();
  writeCounts();
  writeTimeline();
  writeRuns();
  if (samples)
    writeLines();
  noteIdleSpecials();
  noteSerialised();
  noteSpills();
  noteUniform();
  if (listing)
    writeListing();
}

void tessera::sass::writeReport(const Function &function, const Samples *samples, bool listing,
                                raw_ostream &os) {
  auto products = llvm::count_if(function.instructions, [](const Instruction &instruction) {
    return instruction.getMnemonic().ends_with("GMMA");
  });
  os << function.name << ": " << function.instructions.size() << " instructions, " << products
     << " of them products\n";
  std::vector<Loop> loops = findMainLoops(function);
  if (loops.empty())
    os << "  no loops\n";
  for (const Loop &loop : loops)
    LoopReport(function, loop, samples, os).write(listing);
}
