//===- CudaRunner.cpp - Runs kernels on a GPU -----------------------------===//

#include "tools/tessera/CudaRunner.h"
#include "lib/Interpreter/Numerics.h"
#include "lib/Runtime/DeviceBuffer.h"
#include "lib/Runtime/Launch.h"
#include "llvm/Support/Endian.h"

using namespace mlir;
using namespace tessera;
namespace cuda = tessera::runtime::cuda;
using llvm::Error;
using llvm::Expected;

static constexpr int firstDevice = 0;

namespace {
class CudaRunner : public DeviceRunner {
public:
  CudaRunner(const cuda::Driver &driver, std::unique_ptr<runtime::Bundle> bundle)
      : driver(driver), bundle(std::move(bundle)) {}

  LogicalResult run(tile::KernelOp kernel, ArrayRef<KernelArgument> arguments) override {
    if (Error error = launch(kernel, arguments))
      return kernel.emitError() << "on the GPU: " << toString(std::move(error));
    return success();
  }

private:
  Error launch(tile::KernelOp kernel, ArrayRef<KernelArgument> arguments);

  const cuda::Driver &driver;
  std::unique_ptr<runtime::Bundle> bundle;
};
} // namespace

/// The storage of a tensor as the device holds it: `type` elements at the same places.
static std::vector<char> encode(const HostTensor &tensor, FloatType type) {
  unsigned bytes = type.getWidth() / 8;
  std::vector<char> storage(tensor.data.size() * bytes);
  for (size_t i = 0; i < tensor.data.size(); ++i) {
    uint64_t bits = interp::encodeFloat(type, tensor.data[i]);
    if (bytes == 2)
      llvm::support::endian::write16le(&storage[i * 2], bits);
    else
      llvm::support::endian::write32le(&storage[i * 4], bits);
  }
  return storage;
}

static void decode(const std::vector<char> &storage, FloatType type, HostTensor &tensor) {
  for (size_t i = 0; i < tensor.data.size(); ++i)
    tensor.data[i] = interp::decodeFloat(
        type, type.getWidth() == 16 ? llvm::support::endian::read16le(&storage[i * 2])
                                    : llvm::support::endian::read32le(&storage[i * 4]));
}

/// Describes a scalar, or all of a view but its address.
static runtime::Argument describeArgument(Type type, const KernelArgument &value) {
  runtime::Argument argument = {};
  if (auto view = dyn_cast<tile::ViewType>(type)) {
    const HostTensor &tensor = *std::get<HostTensor *>(value);
    Type element = view.getElementType();
    argument.type = element.isF16()    ? TESSERA_TYPE_F16
                    : element.isBF16() ? TESSERA_TYPE_BF16
                                       : TESSERA_TYPE_F32;
    argument.shape = tensor.shape.data();
    argument.strides = tensor.strides.data();
    argument.rank = static_cast<int32_t>(tensor.shape.size());
  } else if (type.isF32()) {
    argument.type = TESSERA_TYPE_SCALAR_F32;
    argument.scalar.f32 = static_cast<float>(std::get<double>(value));
  } else if (type.isInteger(32)) {
    argument.type = TESSERA_TYPE_SCALAR_I32;
    argument.scalar.i32 = static_cast<int32_t>(std::get<int64_t>(value));
  } else {
    argument.type = TESSERA_TYPE_SCALAR_I64;
    argument.scalar.i64 = std::get<int64_t>(value);
  }
  return argument;
}

Error CudaRunner::launch(tile::KernelOp kernel, ArrayRef<KernelArgument> values) {
  auto found = llvm::find_if(bundle->getKernels(), [&](const runtime::Kernel &candidate) {
    return candidate.getInfo().name == kernel.getSymName();
  });
  if (found == bundle->getKernels().end())
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   "the bundle has no kernel '" + kernel.getSymName() + "'");
  auto elementType = [&](unsigned i) {
    return cast<FloatType>(cast<tile::ViewType>(kernel.getArgument(i).getType()).getElementType());
  };
  std::vector<runtime::Argument> arguments;
  std::vector<std::optional<runtime::DeviceBuffer>> buffers(values.size());
  for (auto [i, value] : llvm::enumerate(values)) {
    arguments.push_back(describeArgument(kernel.getArgument(i).getType(), value));
    if (!std::holds_alternative<HostTensor *>(value))
      continue;
    std::vector<char> storage = encode(*std::get<HostTensor *>(value), elementType(i));
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
    decode(storage, elementType(i), *std::get<HostTensor *>(value));
  }
  return Error::success();
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
