//===- Trials.cpp - Schedules tried until one compiles --------------------===//

#include "lib/Compiler/Trials.h"
#include "dialects/Tile/Entries.h"
#include "dialects/Tile/ScheduleFields.h"
#include "passes/Schedule/ScheduleChoice.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;
using tile::KernelOp;
using tile::ScheduleAttr;

/// The most schedules of a kernel that are tried: a trial may take as long as a compilation.
static constexpr size_t kMostTrials = 10;

const mlir::Diagnostic *Trials::Trial::findError() const {
  auto error = llvm::find_if(diagnostics, [](const mlir::Diagnostic &diagnostic) {
    return diagnostic.getSeverity() == DiagnosticSeverity::Error;
  });
  return error == diagnostics.end() ? nullptr : &*error;
}

Trials::Trial Trials::attempt(OwningOpRef<ModuleOp> module) {
  Trial trial;
  ScopedDiagnosticHandler hold(&context, [&](mlir::Diagnostic &diagnostic) {
    trial.diagnostics.push_back(std::move(diagnostic));
    return success();
  });
  trial.status = compile(std::move(module));
  return trial;
}

/// Reports what the trial held back.
void Trials::replay(Trial &trial) {
  for (mlir::Diagnostic &diagnostic : trial.diagnostics)
    context.getDiagEngine().emit(std::move(diagnostic));
}

static KernelOp findKernel(ModuleOp module, StringRef name) {
  return module.lookupSymbol<KernelOp>(name);
}

/// `source` with one of its kernels, and no sequence.
static OwningOpRef<ModuleOp> isolate(ModuleOp source, StringRef kernel) {
  OwningOpRef<ModuleOp> module = source.clone();
  tile::keepEntry(findKernel(*module, kernel));
  return module;
}

//===----------------------------------------------------------------------===//
// What is reported
//===----------------------------------------------------------------------===//

/// The fields in which the schedules of a list differ.
static std::string describe(ScheduleAttr schedule) {
  const tile::ScheduleFields &all = schedule.getFields();
  tile::ScheduleFields varied;
  varied.warpSpecialize = all.warpSpecialize;
  varied.consumers = all.consumers;
  varied.overlap = all.overlap;
  varied.polynomialExp = all.polynomialExp;
  varied.pingpong = all.pingpong;
  varied.placement = all.placement;
  varied.producerRegisters = all.producerRegisters;
  return tile::printScheduleFields(varied.get(schedule.getContext()));
}

void Trials::reportGivenUp(KernelOp kernel, ScheduleAttr schedule, const Trial &trial) {
  const mlir::Diagnostic *error = trial.findError();
  InFlightDiagnostic remark = kernel.emitRemark("schedule given up: ") << describe(schedule);
  if (error)
    remark.attachNote(error->getLocation()) << error->str();
}

/// What compiles without a producer only is right and may be much slower than it has to be.
void Trials::reportLostProducer(KernelOp kernel, const Trial &preferred) {
  InFlightDiagnostic warning =
      kernel.emitWarning("no schedule with a producer compiles, and without "
                         "one each load waits for its memory");
  if (const mlir::Diagnostic *error = preferred.findError())
    warning.attachNote(error->getLocation()) << "preferred, and refused: " << error->str();
  warning.attachNote() << "smaller tiles may leave more registers; warp_specialize = false in the "
                          "schedule takes this one without a warning";
}

CompileStatus Trials::reportFailure(KernelOp kernel, ArrayRef<ScheduleAttr> schedules,
                                    std::vector<Trial> &trials) {
  auto print = [](const Trial &trial) {
    const mlir::Diagnostic *error = trial.findError();
    return error ? error->str() : std::string();
  };
  // What no schedule changes is not about schedules.
  bool isAlike = llvm::all_of(
      trials, [&](const Trial &trial) { return print(trial) == print(trials.front()); });
  // The preferred schedule is the one that the author would want to have.
  Trial &reported = trials.front();
  bool isAlone = llvm::hasSingleElement(kernel->getParentOfType<ModuleOp>().getOps<KernelOp>());
  for (mlir::Diagnostic &diagnostic : reported.diagnostics) {
    // Alternatives are of one place in the source.
    if (&diagnostic == reported.findError() && !isAlone)
      diagnostic.attachNote() << "of kernel '" << kernel.getSymName() << "'";
    if (&diagnostic != reported.findError() || trials.size() == 1)
      continue;
    if (isAlike) {
      diagnostic.attachNote() << "so it is with each of the " << trials.size()
                              << " schedules that were tried";
      continue;
    }
    for (auto [schedule, trial] : llvm::drop_begin(llvm::zip(schedules, trials)))
      diagnostic.attachNote() << "tried next: " << describe(schedule) << ": " << print(trial);
  }
  replay(reported);
  return reported.status;
}

/// Why there is no schedule.
static std::string explain(const ScheduleChoice &choice) {
  if (choice.rejections.empty())
    return "its fields exclude each other";
  const ScheduleRejection &first = choice.rejections.front();
  return first.candidate + ": " + first.reason;
}

/// Says why `kernel`, with the schedule of an entry of the database, is not what is compiled.
void Trials::leaveOut(KernelOp kernel, TunedKernel &tuned, const Trial &trial) {
  FailureOr<SmallVector<ScheduleChoice>> choices;
  {
    ScopedDiagnosticHandler silence(&context, [](mlir::Diagnostic &) { return success(); });
    choices = chooseSchedules(kernel, {kernel.getScheduleAttr(), tuned.schedule});
  }
  const mlir::Diagnostic *error = trial.findError();
  std::string entry = "the entry " + tuned.entry->describe() + " of the schedule database";
  if (failed(choices) || !(*choices)[1].schedule) {
    tuned.leaveOut(entry + " cannot hold and is left out: " +
                   (failed(choices) && error ? error->str() : explain((*choices)[1])) +
                   "; measure again with tessera tune");
    kernel.emitWarning(tuned.note);
  } else if (!(*choices)[0].schedule) {
    tuned.leaveOut("the fields that are set do not go with " + entry +
                   ", which is left out: " + explain((*choices)[0]));
    kernel.emitRemark(tuned.note);
  } else {
    tuned.leaveOut(entry + " does not compile and is left out; measure again with tessera tune");
    InFlightDiagnostic warning = kernel.emitWarning(tuned.note);
    if (error)
      warning.attachNote(error->getLocation()) << error->str();
  }
}

/// "B = 1, SQ = 16384: 3.21 ms, 3.40 ms with the model's choice; B = 4, ...".
static std::string describe(const tuning::Measurement &measured) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (auto [i, shape] : llvm::enumerate(measured.shapes))
    os << llvm::formatv("{0}{1}: {2:f4} ms, {3:f4} ms with the model's choice", i ? "; " : "",
                        tuning::print(shape), measured.ms[i], measured.modelMs[i]);
  if (!measured.sequence.empty())
    os << "; times of the whole of sequence '" << measured.sequence << "'";
  if (!measured.measuredWith.empty())
    os << "; measured with " << tuning::print(measured.measuredWith);
  if (std::string origin = measured.describeOrigin(); !origin.empty())
    os << "; by " << origin;
  return text;
}

static void reportUse(KernelOp kernel, const tuning::Entry &entry) {
  InFlightDiagnostic remark = kernel.emitRemark("schedule from the database: entry ");
  remark << entry.describe();
  for (const std::string &name : entry.tuned)
    remark << ", with " << name << " = " << entry.parameters.at(name);
  if (entry.kernel != kernel.getSymName())
    remark << ", which is the same program";
  remark << "; " << describe(entry.measured);
}

//===----------------------------------------------------------------------===//
// Trials
//===----------------------------------------------------------------------===//

/// The schedules of a kernel, the one that tile-choose-schedule takes first.
SmallVector<ScheduleAttr> Trials::list(KernelOp kernel) {
  // What stands in the way is known already.
  ScopedDiagnosticHandler silence(&context, [](mlir::Diagnostic &) { return success(); });
  return listSchedules(kernel, getRequestedSchedule(kernel), kMostTrials);
}

/// Tries the schedules of `name`, of which the outcome of the first may be known. `found` is the
/// one that compiles.
CompileStatus Trials::tryAll(ModuleOp source, StringRef name, std::optional<Trial> first,
                             ScheduleAttr &found) {
  SmallVector<ScheduleAttr> schedules = list(findKernel(source, name));
  std::vector<Trial> trials;
  if (first)
    trials.push_back(std::move(*first));
  while (trials.empty() ||
         (trials.back().status == CompileStatus::SourceError && trials.size() < schedules.size())) {
    OwningOpRef<ModuleOp> module = isolate(source, name);
    if (!schedules.empty())
      findKernel(*module, name).setScheduleAttr(schedules[trials.size()]);
    trials.push_back(attempt(std::move(module)));
  }
  if (trials.back().status == CompileStatus::SourceError)
    return reportFailure(findKernel(source, name),
                         ArrayRef(schedules).slice(0, std::min(trials.size(), schedules.size())),
                         trials);
  for (auto [schedule, trial] : llvm::zip(schedules, ArrayRef(trials).drop_back()))
    reportGivenUp(findKernel(source, name), schedule, trial);
  if (!schedules.empty())
    found = schedules[trials.size() - 1];
  if (found && schedules.front().getWarpSpecialize() == true && found.getWarpSpecialize() == false)
    reportLostProducer(findKernel(source, name), trials.front());
  replay(trials.back());
  return trials.back().status;
}

CompileStatus Trials::run(ModuleOp source) {
  Trial whole = attempt(source.clone());
  if (whole.status != CompileStatus::SourceError) {
    replay(whole);
    return whole.status;
  }
  SmallVector<KernelOp> kernels(source.getOps<KernelOp>());
  ScheduleAttr found;
  if (kernels.size() == 1 && source.getOps<tile::SequenceOp>().empty())
    return tryAll(source, kernels.front().getSymName(), std::move(whole), found);
  // Which of them was refused, each shows by itself.
  for (KernelOp kernel : kernels) {
    found = {};
    CompileStatus status = tryAll(source, kernel.getSymName(), std::nullopt, found);
    if (status != CompileStatus::Success)
      return status;
    if (found)
      kernel.setScheduleAttr(found);
  }
  // Remarks and warnings of each have been reported.
  Trial all = attempt(source.clone());
  if (all.status != CompileStatus::Success)
    replay(all);
  return all.status;
}

CompileStatus Trials::run(ModuleOp source, TunedForm &tuned) {
  if (!tuned.module)
    return run(source);
  Trial trial = attempt(tuned.module->clone());
  bool holds = trial.status != CompileStatus::SourceError;
  bool isAlone = llvm::hasSingleElement(source.getOps<tile::EntryOpInterface>());
  for (TunedKernel &kernel : tuned.kernels) {
    if (!kernel.entry)
      continue;
    KernelOp op = findKernel(*tuned.module, kernel.name);
    // Which of several kernels was refused, each shows by itself.
    Trial alone;
    if (!holds && !isAlone)
      alone = attempt(isolate(*tuned.module, kernel.name));
    const Trial &own = isAlone ? trial : alone;
    if (own.status == CompileStatus::SourceError) {
      leaveOut(op, kernel, own);
      continue;
    }
    // Without the other entries the source keeps its own tiles, for which this was not measured.
    if (!holds && kernel.isChanged) {
      kernel.leaveOut("the entry " + kernel.entry->describe() +
                      " of the schedule database goes with another that is left out");
      op.emitRemark(kernel.note);
      continue;
    }
    reportUse(op, *kernel.entry);
    if (!holds)
      findKernel(source, kernel.name).setScheduleAttr(op.getScheduleAttr());
  }
  if (!holds)
    return run(source);
  replay(trial);
  return trial.status;
}
