//===- RunReference.cpp - What the outputs of a run should be -------------===//

#include "tools/tessera/RunReference.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/Analysis/Speculation.h"
#include "passes/Schedule/Exponentials.h"
#include "tools/tessera/DeviceRunner.h"
#include "tools/tessera/RunCheck.h"

using namespace mlir;
using namespace tessera;

/// The program that a schedule runs, before other passes: the exact region alone where it does not
/// speculate, and with its polynomials.
static OwningOpRef<tile::KernelOp> makeForm(tile::KernelOp kernel, bool speculates, int64_t share) {
  OwningOpRef<tile::KernelOp> form = kernel.clone();
  if (!speculates)
    takeExactRegion(*form);
  if (share != 0)
    for (Operation *op : exponentialsInLoops(*form))
      if (!findExactUse(op))
        markPolynomial(op, share);
  return form;
}

const RunReference::Expected *RunReference::find(tile::ScheduleAttr schedule) {
  bool speculates = !schedule || schedule.getSpeculate().value_or(true);
  int64_t share = schedule ? schedule.getPolynomialExp().value_or(0) : 0;
  if (auto found = forms.find({speculates, share}); found != forms.end())
    return &found->second;
  OwningOpRef<tile::KernelOp> form = makeForm(kernel, speculates, share);
  Expected expected{arguments.cloneForRun(), arguments.cloneForRun()};
  if (failed(InterpreterRunner(Precision::Exact).run(*form, expected.exact.getValues())) ||
      failed(InterpreterRunner(Precision::Kernel).run(*form, expected.rounded.getValues())))
    return nullptr;
  return &forms.emplace(std::pair(speculates, share), std::move(expected)).first->second;
}

bool RunReference::check(tile::ScheduleAttr schedule, const RunArguments &results,
                         llvm::raw_ostream &os) {
  const Expected *expected = find(schedule);
  bool holds = expected != nullptr;
  for (unsigned i = 0; expected && i < kernel.getNumArguments(); ++i)
    if (isOutput(kernel, i))
      holds &= checkOutput(kernel.getArgumentName(i), results.getTensor(i),
                           expected->rounded.getTensor(i), expected->exact.getTensor(i), os);
  return holds;
}

llvm::Error tessera::checkIsPossible(tile::KernelOp kernel, const Launch &launch) {
  auto fail = [&](const Twine &reason) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   "kernel '" + kernel.getSymName() + "': " + reason);
  };
  if (llvm::none_of(llvm::seq(kernel.getNumArguments()),
                    [&](unsigned i) { return isOutput(kernel, i); }))
    return fail("it stores nothing, so that there is nothing to check");
  if (llvm::is_contained(launch.grid, 0))
    return fail("the grid of this shape is empty, so that there is nothing to check; give extents "
                "of at least 1");
  return llvm::Error::success();
}

bool tessera::isOutput(tile::KernelOp kernel, unsigned index) {
  return isa<tile::ViewType>(kernel.getArgument(index).getType()) &&
         getViewUse(kernel, index).stored;
}
