//===- SequenceRun.cpp - A sequence with kernels of several bundles -------===//

#include "lib/Tuning/SequenceRun.h"
#include "lib/Support/Fail.h"

using namespace tessera;
using namespace tessera::tuning;
namespace cuda = tessera::runtime::cuda;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

Expected<std::unique_ptr<SequenceRun>>
SequenceRun::create(runtime::Bundle &form, StringRef name,
                    const std::map<std::string, runtime::Kernel *> &replaced,
                    llvm::ArrayRef<runtime::Argument> arguments) {
  auto sequence = llvm::find_if(form.getInfo().sequences,
                                [&](const auto &other) { return other.name == name; });
  if (sequence == form.getInfo().sequences.end())
    return fail("the bundle has no sequence '" + name + "'");
  std::unique_ptr<SequenceRun> run(new SequenceRun(*sequence, arguments));
  for (const runtime::StepInfo &step : sequence->steps) {
    runtime::Kernel *own = &form.getKernels()[step.kernel];
    auto other = replaced.find(own->getSignature().name);
    run->kernels.push_back(other == replaced.end() ? own : other->second);
  }
  if (Error error = runtime::SequencePlan::make(*sequence, arguments).moveInto(run->plan))
    return std::move(error);
  if (Error error = runtime::checkOverlap(*sequence, arguments))
    return std::move(error);
  return run;
}

runtime::Kernel *SequenceRun::getKernel(StringRef kernel) const {
  for (size_t step = 0; step < kernels.size(); ++step)
    if (getName(step) == kernel)
      return kernels[step];
  return nullptr;
}

llvm::SmallVector<runtime::Argument, 16> SequenceRun::getArguments(StringRef kernel,
                                                                   uint64_t memory) const {
  for (auto [number, step] : llvm::enumerate(info.steps))
    if (getName(number) == kernel)
      return plan->getArguments(step, arguments, plan->place(memory));
  return {};
}

Error SequenceRun::launch(const cuda::Driver &driver, int device, uint64_t memory,
                          StringRef kernel) const {
  for (const runtime::SequencePlan::Part &part : plan->getParts())
    if (kernel.empty() && part.workspace->zeroed && part.bytes)
      if (Error error =
              driver.check(driver.memsetD8Async(memory + part.offset, 0, part.bytes, nullptr),
                           "cuMemsetD8Async of the workspace '" + part.workspace->name + "'"))
        return error;
  for (auto [number, step] : llvm::enumerate(info.steps))
    if (kernel.empty() || getName(number) == kernel)
      if (Error error = kernels[number]->launch(
              device, /*stream=*/nullptr, plan->getArguments(step, arguments, plan->place(memory))))
        return error;
  return Error::success();
}
