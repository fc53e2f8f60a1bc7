//===- Report.cpp - Who won, and why the others lost ----------------------===//

#include "lib/Tuning/Report.h"
#include "lib/Tuning/Merge.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace tessera::tuning;
using llvm::formatv;
using llvm::raw_ostream;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// The fields of `schedule` that differ from those of `model`.
static std::string describeChanges(StringRef schedule, StringRef model) {
  llvm::SmallVector<StringRef> fields, standard;
  schedule.split(fields, ", ", -1, /*KeepEmpty=*/false);
  model.split(standard, ", ", -1, /*KeepEmpty=*/false);
  llvm::erase_if(fields, [&](StringRef field) { return llvm::is_contained(standard, field); });
  return llvm::join(fields, ", ");
}

/// "BM = 256; stages = 3": what a contestant changes of the first one.
static std::string describe(const Contestant &contestant, const Contestant &first) {
  if (&contestant == &first)
    return "the model's choice";
  Values tuned;
  for (const auto &[name, value] : contestant.candidate.tuned)
    if (first.candidate.tuned.at(name) != value)
      tuned[name] = value;
  std::string text = print(tuned);
  std::string changes = describeChanges(contestant.candidate.schedule, first.candidate.schedule);
  return text + (text.empty() || changes.empty() ? "" : "; ") + changes;
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

namespace {
/// Rows of cells, printed with aligned columns; the last is free text.
class Table {
public:
  void add(std::vector<std::string> cells) { rows.push_back(std::move(cells)); }
  void print(raw_ostream &os) const;

private:
  std::vector<std::vector<std::string>> rows;
};
} // namespace

void Table::print(raw_ostream &os) const {
  std::vector<size_t> widths;
  for (const std::vector<std::string> &row : rows)
    for (auto [i, cell] : llvm::enumerate(row)) {
      widths.resize(std::max(widths.size(), i + 1));
      widths[i] = std::max(widths[i], cell.size());
    }
  for (const std::vector<std::string> &row : rows) {
    for (auto [i, cell] : llvm::enumerate(llvm::ArrayRef(row).drop_back()))
      os << llvm::right_justify(cell, widths[i] + 2);
    os << "  " << row.back() << "\n";
  }
}

/// A reading, or nothing where there is none.
static std::string printReading(double value) {
  return value > 0 ? formatv("{0:f0}", value).str() : "-";
}

static void addRow(Table &table, const Contestant &contestant, const Contestant &first,
                   const Timing &timing, double best) {
  const Resources &resources = contestant.resources;
  table.add({formatv("{0:f4}", timing.ms.median).str(),
             formatv("{0:f1}%", (timing.ms.median / best - 1) * 100).str(),
             formatv("{0:f1}%", timing.ms.spread * 100).str(), std::to_string(timing.ms.count),
             printReading(timing.mhz), printReading(timing.watts),
             formatv("{0:f2}", timing.waves).str(), std::to_string(resources.registers),
             std::to_string(resources.spillBytes), std::to_string(resources.sharedMemory),
             describe(contestant, first)});
}

/// ", 91% of sequence 'attention_bwd'" where the kernel is a part of one.
static std::string describeSequence(const Session &session, const Target &target, size_t shape) {
  if (!target.sequence)
    return "";
  double all = 0;
  for (const Target &other : session.targets)
    if (other.sequence == target.sequence && shape < other.aloneMs.size())
      all += other.aloneMs[shape];
  std::string share = "in";
  if (all > 0 && shape < target.aloneMs.size())
    share = formatv("{0:f0}% of", target.aloneMs[shape] / all * 100).str();
  return ", " + share + " sequence '" + session.sequences[*target.sequence].name + "'";
}

static void printShape(raw_ostream &os, const Session &session, const Target &target,
                       size_t shape) {
  std::vector<std::pair<double, const Contestant *>> timed;
  for (const Contestant &contestant : target.contestants)
    if (const auto &timing = contestant.timings[shape]; timing && timing->failure.empty())
      timed.emplace_back(timing->ms.median, &contestant);
  // Contestants lie one behind the other, so that their addresses break ties.
  llvm::sort(timed);
  Table table;
  table.add({"ms", "behind", "spread", "runs", "MHz", "W", "waves", "registers", "spilt", "shared",
             "schedule"});
  const Contestant &first = getModelChoice(target, shape);
  for (const auto &[ms, contestant] : timed)
    addRow(table, *contestant, first, *contestant->timings[shape], timed.front().first);
  os << "\n"
     << target.kernel << describeSequence(session, target, shape) << ", "
     << print(target.shapes[shape].extents) << " ("
     << formatv("{0} tiles, {1} iterations", target.shapes[shape].measure.tiles,
                target.shapes[shape].measure.iterations)
     << ")\n";
  table.print(os);
  for (const Contestant &contestant : target.contestants)
    if (const auto &timing = contestant.timings[shape]; timing && !timing->failure.empty())
      os << "  failed: " << describe(contestant, first) << ": " << timing->failure << "\n";
  size_t others = llvm::count_if(target.contestants, [&](const Contestant &contestant) {
    return contestant.error.empty() && !contestant.timings[shape];
  });
  if (target.sequence && others)
    os << "  not measured: " << others << " that do not go with the tiles of kernels before\n";
}

static void printWinner(raw_ostream &os, const Target &target, const ClassShapes &group) {
  size_t winner = findWinner(target, group.shapes);
  os << "  class " << group.name << ": ";
  if (winner == target.contestants.size()) {
    os << "no contestant ran every shape\n";
    return;
  }
  const Contestant &contestant = target.contestants[winner],
                   &first = getModelChoice(target, group.shapes);
  os << describe(contestant, first);
  for (size_t shape : group.shapes)
    if (const auto &model = first.timings[shape];
        &contestant != &first && model && model->failure.empty())
      os << formatv(", {0:f1}% faster than the model's choice",
                    (model->ms.median / contestant.timings[shape]->ms.median - 1) * 100);
  os << "\n";
}

static void printTarget(raw_ostream &os, const Session &session, const Target &target) {
  const Contestant &first = target.contestants.front();
  std::string place = target.file;
  if (target.sequence)
    place += ", in sequence '" + session.sequences[*target.sequence].name + "'";
  os << formatv("{0} ({1}), {2}: {3} contestants{4}\n", target.kernel, place,
                print(first.candidate.parameters), target.contestants.size(),
                target.isCut ? ", where the budget ends the search" : "");
  os << "  the model's choice: " << first.candidate.schedule << "; " << first.candidate.use << "\n";
  for (const Contestant &contestant : target.contestants)
    if (!contestant.error.empty())
      os << "  does not compile: " << describe(contestant, first) << ": " << contestant.error
         << "\n";
  for (const Rejection &rejection : target.rejections)
    os << "  rejected: " << rejection.candidate << ": " << rejection.reason << "\n";
}

void tessera::tuning::printPlan(raw_ostream &os, const Session &session) {
  for (const Target &target : session.targets)
    printTarget(os, session, target);
  for (const TargetSequence &sequence : session.sequences)
    for (const SequenceForm &form : sequence.forms)
      if (!form.error.empty())
        os << formatv("sequence '{0}', {1}: does not compile: {2}\n", sequence.name,
                      print(form.tuned), form.error);
}

void tessera::tuning::printResults(raw_ostream &os, const Session &session) {
  os << formatv("{0}, {1} multiprocessors\n", session.device->name,
                session.device->multiprocessors);
  for (const Target &target : session.targets) {
    for (size_t shape = 0; shape < target.shapes.size(); ++shape)
      printShape(os, session, target, shape);
    for (const ClassShapes &group : groupShapes(target, *session.device))
      printWinner(os, target, group);
  }
}
