//===- CudaRunner.cpp - Runs kernels on a GPU -----------------------------===//

#include "tools/tessera/CudaRunner.h"
#include "lib/Runtime/DeviceBuffer.h"
#include "lib/Runtime/Error.h"
#include "lib/Runtime/Launch.h"
#include "lib/Tuning/Measure.h"
#include "tools/tessera/DeviceArguments.h"

using namespace mlir;
using namespace tessera;
namespace cuda = tessera::runtime::cuda;
using llvm::Error;
using llvm::Expected;

static constexpr int firstDevice = 0;

/// Whether a launch was refused for what it was given.
static bool isOfArguments(const llvm::ErrorInfoBase &error) {
  if (!error.isA<runtime::RuntimeError>())
    return false;
  tessera_runtime_status status = static_cast<const runtime::RuntimeError &>(error).getStatus();
  return status == TESSERA_RUNTIME_INVALID_ARGUMENT || status == TESSERA_RUNTIME_TYPE_MISMATCH;
}

namespace {
class CudaRunner : public DeviceRunner {
public:
  CudaRunner(const cuda::Driver &driver, std::unique_ptr<runtime::Bundle> bundle)
      : driver(driver), bundle(std::move(bundle)) {}

  RunOutcome run(tile::EntryOpInterface kernel, ArrayRef<KernelArgument> arguments) override {
    RunOutcome outcome = RunOutcome::Ran;
    llvm::handleAllErrors(launch(kernel, arguments), [&](const llvm::ErrorInfoBase &error) {
      outcome = isOfArguments(error) ? RunOutcome::Refused : RunOutcome::Failed;
      kernel.emitError() << "on the GPU: " << error.message();
    });
    return outcome;
  }

  Schedules getSchedules(MLIRContext *context) const override {
    return readSchedules(bundle->getInfo(), context);
  }

  Error enableTiming() override {
    times = true;
    return tuning::queryDevice(driver, firstDevice).takeError();
  }

  tuning::Timing getTiming() const override { return timing; }

  Expected<timeline::Timeline> readTimeline() override {
    Expected<std::vector<char>> memory = launched->readTimeline(firstDevice, /*stream=*/nullptr);
    if (!memory)
      return memory.takeError();
    return timeline::decode(launched->getSignature().description, *memory,
                            timeline::ClockUnit::Cycles);
  }

private:
  Error launch(tile::EntryOpInterface kernel, ArrayRef<KernelArgument> arguments);
  Error time(ArrayRef<runtime::Argument> arguments);

  const cuda::Driver &driver;
  std::unique_ptr<runtime::Bundle> bundle;
  runtime::Kernel *launched = nullptr;
  bool times = false;
  tuning::Timing timing;
};
} // namespace

Error CudaRunner::launch(tile::EntryOpInterface kernel, ArrayRef<KernelArgument> values) {
  auto found = llvm::find_if(bundle->getKernels(), [&](const runtime::Kernel &candidate) {
    return candidate.getSignature().name == kernel.getSymName();
  });
  if (found == bundle->getKernels().end())
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   "the bundle has no kernel '" + kernel.getSymName() + "'");
  launched = &*found;
  std::vector<runtime::Argument> arguments;
  std::vector<std::optional<runtime::DeviceBuffer>> buffers(values.size());
  for (auto [i, value] : llvm::enumerate(values)) {
    arguments.push_back(describeArgument(kernel.getArgument(i).getType(), value));
    if (!std::holds_alternative<HostTensor *>(value))
      continue;
    std::vector<char> storage = encodeTensor(*std::get<HostTensor *>(value), kernel, i);
    // There is no buffer of 0 bytes.
    if (storage.empty())
      storage.resize(1);
    Expected<runtime::DeviceBuffer> buffer =
        runtime::DeviceBuffer::allocate(driver, firstDevice, storage.size());
    if (!buffer)
      return buffer.takeError();
    if (Error error = buffer->upload(storage))
      return error;
    arguments.back().pointer = buffer->getAddress();
    buffers[i].emplace(std::move(*buffer));
  }
  if (Error error = found->launch(firstDevice, /*stream=*/nullptr, arguments))
    return error;
  for (auto [i, value] : llvm::enumerate(values)) {
    if (!buffers[i] || !getViewUse(kernel, i).stored)
      continue;
    std::vector<char> storage(buffers[i]->getSize());
    if (Error error = buffers[i]->download(storage))
      return error;
    decodeTensor(storage, kernel, i, *std::get<HostTensor *>(value));
  }
  // Last, as a kernel that loads what it stores goes on from its own results.
  return times ? time(arguments) : Error::success();
}

Error CudaRunner::time(ArrayRef<runtime::Argument> arguments) {
  tuning::MeasureOptions options;
  options.device = firstDevice;
  auto launch = [&] { return launched->launch(firstDevice, /*stream=*/nullptr, arguments); };
  return tuning::timeAlone(launch, driver, options).moveInto(timing);
}

std::unique_ptr<DeviceRunner> tessera::createCudaRunner(const std::string &source,
                                                        const std::string &fileName,
                                                        CompileOptions options,
                                                        const DiagnosticHandler &handler,
                                                        CompileStatus &status) {
  auto fail = [&](Error error) {
    Diagnostic diagnostic;
    diagnostic.message = "--device cuda: " + toString(std::move(error));
    handler(diagnostic);
    status = CompileStatus::ToolchainError;
    return nullptr;
  };
  Expected<const cuda::Driver &> driver = cuda::getDriver();
  if (!driver)
    return fail(driver.takeError());
  options.emit = EmitKind::Bundle;
  CompileResult compiled = compile(source, fileName, options, handler);
  status = compiled.status;
  if (status != CompileStatus::Success)
    return nullptr;
  Expected<std::unique_ptr<runtime::Bundle>> bundle =
      runtime::Bundle::create(compiled.output, &*driver);
  if (!bundle)
    return fail(bundle.takeError());
  return std::make_unique<CudaRunner>(*driver, std::move(*bundle));
}
