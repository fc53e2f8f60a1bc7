//===- Merge.cpp - From measurements to the database ----------------------===//

#include "lib/Tuning/Merge.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace tessera::tuning;
using llvm::ArrayRef;
using llvm::StringRef;

std::vector<ClassShapes> tessera::tuning::groupShapes(const Target &target, const Device &device) {
  std::vector<ClassShapes> groups;
  for (auto [i, shape] : llvm::enumerate(target.shapes)) {
    std::string name = getShapeClass(shape.measure, device.multiprocessors);
    auto group = llvm::find_if(groups, [&](const ClassShapes &g) { return g.name == name; });
    if (group == groups.end())
      group = groups.insert(groups.end(), {name, {}});
    group->shapes.push_back(i);
  }
  return groups;
}

/// The median of a contestant on a shape, 0 without one.
static double getMs(const Contestant &contestant, size_t shape) {
  const std::optional<Timing> &timing = contestant.timings[shape];
  return timing && timing->failure.empty() ? timing->ms.median : 0;
}

static std::vector<double> getTimes(const Contestant &contestant, ArrayRef<size_t> shapes) {
  std::vector<double> times;
  for (size_t shape : shapes)
    times.push_back(getMs(contestant, shape));
  return times;
}

size_t tessera::tuning::findWinner(const Target &target, ArrayRef<size_t> shapes) {
  std::vector<std::vector<double>> times;
  for (const Contestant &contestant : target.contestants)
    times.push_back(getTimes(contestant, shapes));
  return chooseWinner(times, kTie);
}

const Contestant &tessera::tuning::getModelChoice(const Target &target, ArrayRef<size_t> shapes) {
  if (target.sequence)
    for (const Contestant &contestant : target.contestants)
      if (llvm::all_of(shapes, [&](size_t shape) { return getMs(contestant, shape) > 0; }))
        return contestant;
  return target.contestants.front();
}

static Measurement describeMeasurement(const Target &target, const Contestant &winner,
                                       ArrayRef<size_t> shapes) {
  Measurement measured;
  for (size_t shape : shapes) {
    measured.shapes.push_back(target.shapes[shape].extents);
    measured.spread = std::max(measured.spread, winner.timings[shape]->ms.spread);
  }
  measured.ms = getTimes(winner, shapes);
  measured.modelMs = getTimes(getModelChoice(target, shapes), shapes);
  measured.contestants = llvm::count_if(target.contestants, [&](const Contestant &contestant) {
    return llvm::all_of(shapes, [&](size_t shape) { return getMs(contestant, shape) > 0; });
  });
  double clocks = 0;
  for (size_t shape : shapes)
    clocks += winner.timings[shape]->mhz;
  measured.clock = std::llround(clocks / shapes.size());
  return measured;
}

/// Says which program the entry is for and which was measured.
static void setPrograms(Entry &entry, StringRef program, StringRef measured) {
  entry.program = program;
  entry.tunedProgram = measured == program ? "" : measured.str();
}

/// The form of the sequence of `target` that has what won of all its kernels in a class; null where
/// there is none, or no sequence.
static const SequenceForm *findForm(const Session &session, const Target &target,
                                    ArrayRef<size_t> shapes) {
  if (!target.sequence)
    return nullptr;
  Values programs;
  for (const Target &other : session.targets)
    if (other.sequence == target.sequence)
      if (size_t winner = findWinner(other, shapes); winner < other.contestants.size())
        programs[other.kernel] = other.contestants[winner].candidate.program;
  return session.sequences[*target.sequence].findForm(programs);
}

/// Sets the tile sizes of the sequence in place of those of a kernel, which may leave open what
/// changes other kernels alone.
static void takeForm(Entry &entry, const SequenceForm &form) {
  for (const auto &[name, value] : form.tuned)
    entry.parameters[name] = value;
}

std::vector<Entry> tessera::tuning::makeEntries(const Session &session) {
  std::vector<Entry> entries;
  for (const Target &target : session.targets)
    for (const ClassShapes &group : groupShapes(target, *session.device)) {
      size_t number = findWinner(target, group.shapes);
      if (number == target.contestants.size())
        continue;
      const Contestant &winner = target.contestants[number];
      Entry entry;
      entry.kernel = target.kernel;
      setPrograms(entry, target.program, winner.candidate.program);
      entry.gpu = session.device->name;
      entry.shapeClass = group.name;
      entry.parameters = winner.candidate.parameters;
      for (const auto &[name, value] : winner.candidate.tuned)
        entry.tuned.push_back(name);
      entry.fixed = target.fixed;
      entry.given = target.given;
      entry.schedule = winner.candidate.schedule;
      entry.measured = describeMeasurement(target, winner, group.shapes);
      const SequenceForm *form = findForm(session, target, group.shapes);
      if (target.sequence)
        entry.measured.sequence = session.sequences[*target.sequence].name;
      entry.measured.compiler = session.compiler;
      entry.measured.ptxas = session.ptxas;
      entry.measured.date = session.date;
      if (form)
        takeForm(entry, *form);
      entries.push_back(entry);
      for (auto [also, parameters, program, measured] : llvm::zip_equal(
               target.also, winner.alsoParameters, target.alsoPrograms, winner.alsoPrograms)) {
        entry.parameters = parameters;
        if (form)
          takeForm(entry, *form);
        setPrograms(entry, program, measured);
        entry.measured.measuredWith.clear();
        for (const auto &[name, value] : also)
          entry.measured.measuredWith[name] = winner.candidate.parameters.at(name);
        entries.push_back(entry);
      }
    }
  return entries;
}
