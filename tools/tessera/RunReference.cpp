//===- RunReference.cpp - What the outputs of a run should be -------------===//

#include "tools/tessera/RunReference.h"
#include "tools/tessera/DeviceRunner.h"
#include "tools/tessera/RunCheck.h"

using namespace mlir;
using namespace tessera;

FailureOr<RunReference> RunReference::compute(tile::KernelOp kernel,
                                              const RunArguments &arguments) {
  RunReference reference(arguments.cloneForRun(), arguments.cloneForRun());
  if (failed(InterpreterRunner(Precision::Exact).run(kernel, reference.exact.getValues())) ||
      failed(InterpreterRunner(Precision::Kernel).run(kernel, reference.baseline.getValues())))
    return failure();
  return reference;
}

bool RunReference::check(tile::KernelOp kernel, const RunArguments &results,
                         llvm::raw_ostream &os) const {
  bool holds = true;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (isOutput(kernel, i))
      holds &= checkOutput(kernel.getArgumentName(i), results.getTensor(i), baseline.getTensor(i),
                           exact.getTensor(i), os);
  return holds;
}

bool tessera::isOutput(tile::KernelOp kernel, unsigned index) {
  return isa<tile::ViewType>(kernel.getArgument(index).getType()) &&
         getViewUse(kernel, index).stored;
}
