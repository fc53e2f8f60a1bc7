//===- PythonLaunch.cpp - Launching with arguments of Python --------------===//

#include "PythonObjects.h"
#include "tessera-c/Python.h"

#include "lib/Runtime/Launch.h"

using namespace tessera;
using namespace tessera::runtime;

namespace {

/// Reads the arguments of one call. What it returns is valid as long as it lives, whatever becomes
/// of the tensors.
class ArgumentReader {
public:
  ArgumentReader(const Interpreter &python, const tessera_python_framework &framework,
                 const Signature &kernel)
      : python(python), framework(framework), kernel(kernel) {}

  /// False, with no error set, when the call is not to be taken.
  bool read(void *tuple);
  /// The framework's current stream on the device; false, with no error set, when it has none.
  bool readCurrentStream(void *&stream) const;

  llvm::ArrayRef<Argument> getArguments() const { return arguments; }
  int getDevice() const { return device; }

private:
  bool readView(void *object, unsigned rank, Argument &argument);
  void copySizes(const DLTensor &tensor, Argument &argument);
  bool readScalar(void *object, const ElementType &type, Argument &argument) const;
  bool clearError() const {
    python.clearError();
    return false;
  }

  const Interpreter &python;
  const tessera_python_framework &framework;
  const Signature &kernel;
  int device = TESSERA_CURRENT_DEVICE;
  llvm::SmallVector<Argument, 16> arguments;
  /// The shapes and strides of the views. Its room is set aside before the first is read.
  llvm::SmallVector<int64_t, 128> sizes;
};

} // namespace

void ArgumentReader::copySizes(const DLTensor &tensor, Argument &argument) {
  argument.rank = tensor.rank;
  argument.shape = sizes.end();
  sizes.append(tensor.shape, tensor.shape + tensor.rank);
  argument.strides = sizes.end();
  if (tensor.strides) {
    sizes.append(tensor.strides, tensor.strides + tensor.rank);
    return;
  }
  sizes.append(tensor.rank, 1);
  for (int64_t *stride = sizes.end() - 1, dim = tensor.rank - 1; dim > 0; --dim, --stride)
    stride[-1] = stride[0] * tensor.shape[dim];
}

bool ArgumentReader::readView(void *object, unsigned rank, Argument &argument) {
  if (!python.hasType(object, framework.tensor_types))
    return false;
  DLTensor tensor;
  if (framework.read_tensor(object, &tensor))
    return clearError();
  argument.type = tensor.getElementType();
  if (tensor.deviceType != kDeviceTypeCuda || !argument.type ||
      tensor.rank != static_cast<int32_t>(rank))
    return false;
  if (device != TESSERA_CURRENT_DEVICE && device != tensor.device)
    return false;
  device = tensor.device;
  argument.pointer = tensor.getAddress();
  copySizes(tensor, argument);
  return true;
}

/// A number that does not fit in the type is left to Python, which refuses it.
bool ArgumentReader::readScalar(void *object, const ElementType &type, Argument &argument) const {
  bool isInteger = python.hasType(object, python.intType);
  if (!isInteger && !(type.semantics && python.hasType(object, python.floatType)))
    return false;
  double real = type.semantics ? python.floatAsDouble(object) : 0;
  int64_t integer = type.semantics ? 0 : python.intAsLongLong(object);
  if ((real == -1 || integer == -1) && python.errorOccurred())
    return clearError();
  return type.semantics ? setScalar(type, real, argument) : setScalar(type, integer, argument);
}

bool ArgumentReader::read(void *tuple) {
  intptr_t count = python.tupleSize(tuple);
  if (count < 0)
    return clearError();
  if (static_cast<size_t>(count) != kernel.arguments.size())
    return false;
  size_t room = 0;
  for (const ArgumentInfo &info : kernel.arguments)
    room += 2 * info.dims.size();
  sizes.reserve(room);
  arguments.resize(count);
  for (auto [index, info] : llvm::enumerate(kernel.arguments)) {
    void *object = python.tupleItem(tuple, index);
    Argument &argument = arguments[index];
    if (info.isView ? !readView(object, info.dims.size(), argument)
                    : !readScalar(object, *info.type, argument))
      return false;
  }
  return device != TESSERA_CURRENT_DEVICE;
}

bool ArgumentReader::readCurrentStream(void *&stream) const {
  return !framework.current_stream(kDeviceTypeCuda, device, &stream) || clearError();
}

static int launchObjects(const Interpreter &python, const tessera_python_framework &framework,
                         llvm::ArrayRef<void *> arguments) {
  void *kernel, *stream;
  if (!python.readAddress(arguments[0], kernel))
    return TESSERA_PYTHON_NOT_TAKEN;
  ArgumentReader reader(python, framework, static_cast<Kernel *>(kernel)->getSignature());
  if (!reader.read(arguments[1]))
    return TESSERA_PYTHON_NOT_TAKEN;
  bool hasStream = arguments.size() > 2 ? python.readAddress(arguments[2], stream)
                                        : reader.readCurrentStream(stream);
  if (!hasStream)
    return TESSERA_PYTHON_NOT_TAKEN;
  llvm::ArrayRef<Argument> values = reader.getArguments();
  void *thread = python.saveThread();
  int status = tessera_kernel_launch(static_cast<tessera_kernel *>(kernel), reader.getDevice(),
                                     stream, values.data(), values.size());
  python.restoreThread(thread);
  return status;
}

void *tessera_python_launch(void *self, void *const *arguments, intptr_t count) {
  const Interpreter &python = Interpreter::get();
  if (!python.isComplete)
    return nullptr;
  void *framework;
  int status = TESSERA_PYTHON_NOT_TAKEN;
  if ((count == 2 || count == 3) && python.readAddress(self, framework))
    status = launchObjects(python, *static_cast<tessera_python_framework *>(framework),
                           llvm::ArrayRef(arguments, count));
  return python.intFromLong(status);
}
