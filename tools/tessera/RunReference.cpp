//===- RunReference.cpp - What the outputs of a run should be -------------===//

#include "tools/tessera/RunReference.h"
#include "dialects/Tile/Entries.h"
#include "passes/Analysis/Speculation.h"
#include "passes/Schedule/Exponentials.h"
#include "tools/tessera/RunCheck.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tessera;

/// Makes of a kernel what a schedule runs, before other passes: the exact region alone where it
/// does not speculate, and with its polynomials.
static void applyForm(tile::KernelOp kernel, bool speculates, int64_t share) {
  if (!speculates)
    takeExactRegion(kernel);
  if (share != 0)
    for (Operation *op : exponentialsInLoops(kernel))
      if (!findExactUse(op))
        markPolynomial(op, share);
}

/// Random partitions of ranges that are tried.
static constexpr uint64_t numPartitions = 3;

bool RunReference::checkPartitions(tile::EntryOpInterface form, const Expected &expected) {
  bool isSplit = false;
  for (tile::KernelOp op : tile::getKernels(form))
    isSplit |= !op.getBody().getOps<tile::SplitReduceOp>().empty();
  for (uint64_t seed = 1; isSplit && seed <= numPartitions; ++seed) {
    RunArguments results = arguments.cloneForRun();
    if (InterpreterRunner(Precision::Exact, {}, seed).run(form, results.getValues()) !=
        RunOutcome::Ran)
      return false;
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
      if (!isOutput(kernel, i))
        continue;
      std::string text;
      llvm::raw_string_ostream os(text);
      Computed computed{expected.exact.getTensor(i), expected.rounded.getTensor(i)};
      if (checkRounding(kernel.getArgumentName(i), results.getTensor(i), computed, os))
        continue;
      emitError(form.getLoc()) << "parts of the range of its tile.split_reduce merge to another "
                                  "result than the whole range gives:\n"
                               << StringRef(text).rtrim();
      return false;
    }
  }
  return true;
}

RunReference::Expected *RunReference::find(const Schedules &schedules) {
  OwningOpRef<ModuleOp> module = kernel->getParentOfType<ModuleOp>().clone();
  tile::EntryOpInterface form = tile::findEntry(*module, kernel.getSymName());
  std::vector<std::pair<bool, int64_t>> key;
  for (tile::KernelOp op : tile::getKernels(form)) {
    tile::ScheduleAttr schedule = schedules.find(op.getSymName().str());
    key.emplace_back(!schedule || schedule.getSpeculate().value_or(true),
                     schedule ? schedule.getPolynomialExp().value_or(0) : 0);
    applyForm(op, key.back().first, key.back().second);
  }
  if (auto found = forms.find(key); found != forms.end())
    return &found->second;
  Expected expected{arguments.cloneForRun(), arguments.cloneForRun(), std::move(module)};
  auto run = [&](Precision precision, RunArguments &arguments) {
    return InterpreterRunner(precision).run(form, arguments.getValues()) == RunOutcome::Ran;
  };
  if (!run(Precision::Exact, expected.exact) || !run(Precision::Kernel, expected.rounded) ||
      !checkPartitions(form, expected))
    return nullptr;
  return &forms.emplace(std::move(key), std::move(expected)).first->second;
}

bool RunReference::runFused(Expected &expected) {
  InterpreterOptions options;
  options.fused = true;
  expected.fused = arguments.cloneForRun();
  auto form = tile::findEntry(*expected.module, kernel.getSymName());
  return InterpreterRunner(options).run(form, expected.fused->getValues()) == RunOutcome::Ran;
}

bool RunReference::compare(const Expected &expected, const RunArguments &results,
                           llvm::raw_ostream &os) {
  bool holds = true;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    if (!isOutput(kernel, i))
      continue;
    StringRef name = kernel.getArgumentName(i);
    const HostTensor &result = results.getTensor(i);
    Computed computed{expected.exact.getTensor(i), expected.rounded.getTensor(i),
                      expected.fused ? &expected.fused->getTensor(i) : nullptr};
    holds &= checkRounding(name, result, computed, os);
    if (const ExpectedOutput *output = arguments.findExpected(i))
      holds &= checkExpected(name, result, computed, output->tensor, output->path, os);
  }
  return holds;
}

bool RunReference::check(const Schedules &schedules, const RunArguments &results,
                         llvm::raw_ostream &os) {
  Expected *expected = find(schedules);
  if (!expected)
    return false;
  std::string text;
  llvm::raw_string_ostream compared(text);
  bool holds = compare(*expected, results, compared);
  // Where large terms cancel, one of them that is not rounded may be all that the error is made of.
  if (!holds && !expected->fused && runFused(*expected)) {
    text.clear();
    holds = compare(*expected, results, compared);
  }
  os << text;
  return holds;
}

void RunReference::printUnchecked(llvm::raw_ostream &os) {
  SmallVector<StringRef> names;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (isOutput(kernel, i) && !arguments.findExpected(i))
      names.push_back(kernel.getArgumentName(i));
  if (!names.empty())
    os << "the formula was not checked: --expect " << names.front() << "=FILE.npy compares "
       << llvm::join(names, ", ") << " with a result of your own\n";
}

llvm::Error tessera::checkIsPossible(tile::EntryOpInterface kernel, const Launch &launch) {
  auto fail = [&](const Twine &reason) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   (isa<tile::KernelOp>(*kernel) ? "kernel '" : "sequence '") +
                                       kernel.getSymName() + "': " + reason);
  };
  if (llvm::none_of(llvm::seq(kernel.getNumArguments()),
                    [&](unsigned i) { return isOutput(kernel, i); }))
    return fail("it stores nothing, so that there is nothing to check");
  if (launch.isEmpty)
    return fail("the grid of this shape is empty, so that there is nothing to check; give extents "
                "of at least 1");
  return llvm::Error::success();
}

bool tessera::isOutput(tile::EntryOpInterface kernel, unsigned index) {
  return isa<tile::ViewType>(kernel.getArgument(index).getType()) &&
         getViewUse(kernel, index).stored;
}
