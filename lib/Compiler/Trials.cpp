//===- Trials.cpp - Schedules tried until one compiles --------------------===//

#include "lib/Compiler/Trials.h"
#include "dialects/Tile/Entries.h"
#include "dialects/Tile/Refusal.h"
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
  trial.status = compiler.compile(std::move(module));
  trial.refusals = compiler.getRefusals().vec();
  return trial;
}

unsigned Trials::Trial::spilledBytes() const {
  unsigned most = 0;
  for (const Refusal &refusal : refusals) {
    if (!refusal.spilledBytes)
      return 0;
    most = std::max(most, refusal.spilledBytes);
  }
  return most;
}

/// Reports what the trial held back.
void Trials::replay(Trial &trial) {
  for (mlir::Diagnostic &diagnostic : trial.diagnostics) {
    reported[diagnostic.getLocation()].insert(diagnostic.str());
    context.getDiagEngine().emit(std::move(diagnostic));
  }
}

/// The trial of one kernel of a module that the assembler refused: what `whole` holds back about it
/// alone. Nothing where that is not known.
std::optional<Trials::Trial> Trials::takeRefusal(Trial &whole, KernelOp kernel) {
  auto isError = [](const mlir::Diagnostic &diagnostic) {
    return diagnostic.getSeverity() == DiagnosticSeverity::Error;
  };
  size_t count = llvm::count_if(whole.diagnostics, isError);
  auto isOwnRefusal = [&](const Refusal &refusal) { return refusal.kernel == kernel.getSymName(); };
  if (llvm::none_of(whole.refusals, isOwnRefusal) || count != whole.refusals.size())
    return std::nullopt;
  Trial own;
  own.status = whole.status;
  Trial others;
  auto refusal = whole.refusals.begin();
  for (mlir::Diagnostic &diagnostic : whole.diagnostics) {
    bool isOwn =
        isError(diagnostic) ? isOwnRefusal(*refusal) : diagnostic.getLocation() == kernel.getLoc();
    Trial &of = isOwn ? own : others;
    if (isError(diagnostic))
      of.refusals.push_back(std::move(*refusal++));
    of.diagnostics.push_back(std::move(diagnostic));
  }
  whole.diagnostics = std::move(others.diagnostics);
  whole.refusals = std::move(others.refusals);
  return own;
}

/// Reports what `whole` holds back of the kernels that are kept from it. What has the same words at
/// the same place as what is reported of another kernel is of a function of both.
void Trials::replayRest(Trial &whole) {
  llvm::erase_if(whole.diagnostics, [&](const mlir::Diagnostic &diagnostic) {
    auto known = reported.find(diagnostic.getLocation());
    return known != reported.end() && known->second.contains(diagnostic.str());
  });
  replay(whole);
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
  varied.producer = all.producer;
  varied.consumers = all.consumers;
  varied.stages = all.stages;
  varied.outerStages = all.outerStages;
  varied.overlap = all.overlap;
  varied.polynomialExp = all.polynomialExp;
  varied.pingpong = all.pingpong;
  varied.cluster = all.cluster;
  varied.placement = all.placement;
  varied.producerRegisters = all.producerRegisters;
  varied.consumerRegisters = all.consumerRegisters;
  varied.work = all.work;
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
  std::string smaller = compiler.findSmaller(kernel.getSymName(), Varied::Defaults);
  warning.attachNote() << (smaller.empty() ? "smaller tiles may leave more registers"
                                           : "with " + smaller + " one compiles")
                       << "; producer = none in the schedule takes this one without a "
                          "warning";
}

/// `diagnostic` with a note before its others, of which a reader may be shown the first few.
static mlir::Diagnostic withFirstNote(mlir::Diagnostic &diagnostic, const Twine &text) {
  mlir::Diagnostic noted(diagnostic.getLocation(), diagnostic.getSeverity());
  noted << diagnostic.str();
  llvm::append_range(noted.getMetadata(), diagnostic.getMetadata());
  noted.attachNote() << text;
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    noted.attachNote(note.getLocation()) << note.str();
  return noted;
}

bool Trials::Trial::lacksRoom() {
  for (mlir::Diagnostic &diagnostic : diagnostics)
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      return tessera::lacksRoom(getRefusalKind(diagnostic));
  return false;
}

CompileStatus Trials::reportFailure(KernelOp kernel, std::vector<Attempt> &attempts) {
  auto print = [](const Attempt &attempt) {
    const mlir::Diagnostic *error = attempt.trial.findError();
    return error ? error->str() : std::string();
  };
  // What no schedule changes is not about schedules.
  bool isAlike = llvm::all_of(
      attempts, [&](const Attempt &attempt) { return print(attempt) == print(attempts.front()); });
  // The preferred schedule is the one that the author would want to have.
  Trial &reported = attempts.front().trial;
  bool isAlone = llvm::hasSingleElement(kernel->getParentOfType<ModuleOp>().getOps<KernelOp>());
  // No schedule was there to try.
  std::string nearest;
  if (attempts.size() == 1 && !attempts.front().schedule && reported.lacksRoom())
    nearest = compiler.findSmaller(kernel.getSymName(), Varied::All);
  for (mlir::Diagnostic &diagnostic : reported.diagnostics) {
    if (&diagnostic == reported.findError() && !nearest.empty())
      diagnostic = withFirstNote(diagnostic, "with " + nearest + " one fits");
    // Alternatives are of one place in the source.
    if (&diagnostic == reported.findError() && !isAlone)
      diagnostic = withFirstNote(diagnostic, "of kernel '" + kernel.getSymName() + "'");
    if (&diagnostic != reported.findError() || attempts.size() == 1)
      continue;
    if (isAlike) {
      diagnostic.attachNote() << "so it is with each of the " << attempts.size()
                              << " schedules that were tried";
      continue;
    }
    for (const Attempt &attempt : llvm::drop_begin(attempts))
      diagnostic.attachNote() << "tried next: " << describe(attempt.schedule) << ": "
                              << print(attempt);
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

/// Whether two schedules make one program, which differs in the registers that its threads may
/// have.
static bool differInRegisters(ScheduleAttr a, ScheduleAttr b) {
  tile::ScheduleFields fields = a.getFields();
  fields.consumerRegisters = b.getConsumerRegisters();
  return fields.get(a.getContext()) == b;
}

/// Whether no consumer of `other` has more registers than that of `spilled`, which has as many
/// consumers.
static bool hasNoMoreRegisters(ScheduleAttr other, ScheduleAttr spilled) {
  return llvm::all_of(llvm::seq<int64_t>(0, *spilled.getConsumers()), [&](int64_t consumer) {
    return other.getConsumerRegisters()->of(consumer) <=
           spilled.getConsumerRegisters()->of(consumer);
  });
}

/// Whether `other` is what spilled with more registers for its producers, and none more for its
/// consumers.
static bool givesProducersMore(ScheduleAttr other, ScheduleAttr spilled) {
  tile::ScheduleFields fields = spilled.getFields();
  fields.producerRegisters = other.getProducerRegisters();
  fields.consumerRegisters = other.getConsumerRegisters();
  return fields.get(spilled.getContext()) == other &&
         *other.getProducerRegisters() > *spilled.getProducerRegisters() &&
         hasNoMoreRegisters(other, spilled);
}

/// Whether threads of `other` hold all that consumers of `spilled` do, and the sums that a role of
/// its own makes there, in no more registers.
static bool holdsMore(ScheduleAttr other, ScheduleAttr spilled) {
  return spilled.getPlacement() == tile::PlacementKind::apart &&
         other.getPlacement() == tile::PlacementKind::rows &&
         other.getConsumers() == spilled.getConsumers() && hasNoMoreRegisters(other, spilled);
}

namespace {
/// The schedules that are left to try, the most preferred first. A program that spills does so with
/// fewer registers too; how much it spills says where to look. One with a producer goes before all
/// without, in which each load waits for its memory.
class Remaining {
public:
  explicit Remaining(SmallVector<ScheduleAttr> all) : schedules(std::move(all)) {
    if (!schedules.empty() && schedules.front() && schedules.front().getFields().hasProducer())
      llvm::stable_sort(schedules, [](ScheduleAttr a, ScheduleAttr b) {
        return a.getFields().hasProducer() && !b.getFields().hasProducer();
      });
  }

  bool isEmpty() const { return schedules.empty(); }
  ScheduleAttr take();
  void refuse(ScheduleAttr tried, unsigned spilledBytes);

  /// Leaves what is preferred to the one that was taken last, which compiles.
  void accept() { schedules.truncate(taken); }

private:
  SmallVector<ScheduleAttr> schedules;
  size_t taken = 0; ///< where the last one stood
  /// What spilled last.
  ScheduleAttr spilled;
  unsigned bytes = 0;
};
} // namespace

/// The first, or of a program that spilled the one that may suffice: a register more keeps about
/// two spilled words, since values that are not needed at a time share it. Only the next ones are
/// left out by that, and tried if it compiles.
ScheduleAttr Remaining::take() {
  taken = 0;
  if (spilled && differInRegisters(spilled, schedules.front())) {
    int64_t enough = spilled.getConsumerRegisters()->most() + bytes / 8;
    for (auto [i, schedule] : llvm::enumerate(schedules)) {
      if (!differInRegisters(spilled, schedule))
        continue;
      taken = i;
      if (schedule.getConsumerRegisters()->most() >= enough)
        break;
    }
  }
  ScheduleAttr next = schedules[taken];
  schedules.erase(schedules.begin() + taken);
  return next;
}

void Remaining::refuse(ScheduleAttr tried, unsigned spilledBytes) {
  if (!spilledBytes || !tried)
    return;
  // What is no less with more registers for producers is not theirs.
  bool isOfConsumers = spilled && spilledBytes >= bytes && givesProducersMore(tried, spilled);
  llvm::erase_if(schedules, [&](ScheduleAttr other) {
    return (differInRegisters(tried, other) && hasNoMoreRegisters(other, tried)) ||
           (isOfConsumers && (givesProducersMore(other, tried) || holdsMore(other, tried)));
  });
  spilled = tried;
  bytes = spilledBytes;
}

/// Tries the schedules of `name`, of which the outcome of the first may be known. `found` is the
/// most preferred one that compiles, whose code is kept.
CompileStatus Trials::tryAll(ModuleOp source, StringRef name, std::optional<Trial> first,
                             ScheduleAttr &found) {
  SmallVector<ScheduleAttr> schedules = list(findKernel(source, name));
  if (schedules.empty())
    schedules.push_back(ScheduleAttr());
  Remaining remaining(std::move(schedules));
  std::vector<Attempt> refused;
  std::optional<Attempt> accepted;
  while (!remaining.isEmpty()) {
    ScheduleAttr schedule = remaining.take();
    OwningOpRef<ModuleOp> module = isolate(source, name);
    if (schedule)
      findKernel(*module, name).setScheduleAttr(schedule);
    Trial trial = first ? std::move(*first) : attempt(std::move(module));
    first.reset();
    if (trial.status == CompileStatus::SourceError) {
      remaining.refuse(schedule, trial.spilledBytes());
      refused.push_back({schedule, std::move(trial)});
      continue;
    }
    accepted = {schedule, std::move(trial)};
    if (accepted->trial.status != CompileStatus::Success)
      break;
    remaining.accept();
  }
  if (!accepted)
    return reportFailure(findKernel(source, name), refused);
  found = accepted->schedule;
  return accept(findKernel(source, name), refused, *accepted);
}

/// Reports which schedule a kernel has, and what was given up for it.
CompileStatus Trials::accept(KernelOp kernel, std::vector<Attempt> &refused, Attempt &accepted) {
  for (const Attempt &attempt : refused)
    reportGivenUp(kernel, attempt.schedule, attempt.trial);
  if (!refused.empty() && refused.front().schedule.getFields().hasProducer() &&
      !accepted.schedule.getFields().hasProducer())
    reportLostProducer(kernel, refused.front().trial);
  replay(accepted.trial);
  return accepted.trial.status;
}

/// The result of `source`, whose kernels have schedules with which they compile, and were reported.
CompileStatus Trials::finish(ModuleOp source) {
  if (compiler.canJoin(source))
    return compiler.join(source);
  Trial all = attempt(source.clone());
  if (all.status != CompileStatus::Success)
    replay(all);
  return all.status;
}

CompileStatus Trials::run(ModuleOp source) {
  compiler.forget();
  Trial whole = attempt(source.clone());
  if (whole.status != CompileStatus::SourceError) {
    replay(whole);
    return whole.status;
  }
  bool isAlone = llvm::hasSingleElement(source.getOps<KernelOp>()), isKept = false;
  SmallVector<KernelOp> refused, hopeful;
  for (KernelOp kernel : source.getOps<KernelOp>()) {
    if (compiler.isKept(kernel.getSymName()))
      isKept = true;
    else
      (!isAlone && list(kernel).empty() ? refused : hopeful).push_back(kernel);
  }
  // Beside one that has no schedule the others need not be assembled.
  llvm::append_range(refused, hopeful);
  // Which of several was refused, the assembler says, or each shows by itself.
  for (KernelOp kernel : refused) {
    ScheduleAttr found;
    std::optional<Trial> first = isAlone ? std::move(whole) : takeRefusal(whole, kernel);
    CompileStatus status = tryAll(source, kernel.getSymName(), std::move(first), found);
    if (status != CompileStatus::Success)
      return status;
    if (found)
      kernel.setScheduleAttr(found);
  }
  if (isKept)
    replayRest(whole);
  return finish(source);
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
    // Which of several kernels was refused, the assembler says, or each shows by itself.
    Trial alone;
    if (!holds && !isAlone && !compiler.isKept(kernel.name))
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
