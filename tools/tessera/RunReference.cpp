//===- RunReference.cpp - What the outputs of a run should be -------------===//

#include "tools/tessera/RunReference.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/Exponentials.h"
#include "tools/tessera/DeviceRunner.h"
#include "tools/tessera/RunCheck.h"

using namespace mlir;
using namespace tessera;

FailureOr<RunReference> RunReference::compute(tile::KernelOp kernel,
                                              const RunArguments &arguments) {
  RunReference reference(arguments);
  if (failed(InterpreterRunner(Precision::Exact).run(kernel, reference.exact.getValues())) ||
      failed(InterpreterRunner(Precision::Kernel).run(kernel, reference.baseline.getValues())))
    return failure();
  return reference;
}

/// The results in the precision of the kernel with that schedule; null after a diagnostic.
const RunArguments *RunReference::findBaseline(tile::KernelOp kernel, tile::ScheduleAttr schedule) {
  int64_t share = schedule ? schedule.getPolynomialExp().value_or(0) : 0;
  if (share == 0)
    return &baseline;
  if (polynomial)
    return &*polynomial;
  OwningOpRef<tile::KernelOp> marked = kernel.clone();
  for (Operation *op : exponentialsInLoops(*marked))
    if (!findExactUse(op))
      markPolynomial(op, share);
  polynomial.emplace(arguments.cloneForRun());
  if (failed(InterpreterRunner(Precision::Kernel).run(*marked, polynomial->getValues())))
    return nullptr;
  return &*polynomial;
}

bool RunReference::check(tile::KernelOp kernel, tile::ScheduleAttr schedule,
                         const RunArguments &results, llvm::raw_ostream &os) {
  const RunArguments *expected = findBaseline(kernel, schedule);
  bool holds = expected != nullptr;
  for (unsigned i = 0; expected && i < kernel.getNumArguments(); ++i)
    if (isOutput(kernel, i))
      holds &= checkOutput(kernel.getArgumentName(i), results.getTensor(i), expected->getTensor(i),
                           exact.getTensor(i), os);
  return holds;
}

bool tessera::isOutput(tile::KernelOp kernel, unsigned index) {
  return isa<tile::ViewType>(kernel.getArgument(index).getType()) &&
         getViewUse(kernel, index).stored;
}
