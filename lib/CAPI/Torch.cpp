//===- Torch.cpp - Kernels of ops of PyTorch ------------------------------===//
//
// A boxed kernel takes its arguments from a stack of 64-bit values and leaves its results there
// (torch/csrc/stable/c/shim.h). Tensors, strings and optional values are handles that it owns.
// Errors are exceptions, which this file alone may throw; they leave the library, so that libgcc
// has to be the shared one.
//
//===----------------------------------------------------------------------===//

#include "tessera-c/Torch.h"
#include "PreparedCalls.h"

#include "llvm/ADT/ArrayRef.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>

#include <dlfcn.h>

using namespace tessera;

namespace {

using Value = uint64_t; // StableIValue
using Handle = void *;  // AtenTensorHandle and others
using Status = int32_t; // AOTITorchError; 0 is success
using BoxedKernel = void(Value *stack, uint64_t inputs, uint64_t outputs);

/// The functions of PyTorch that are called.
struct TorchLibrary {
  Status (*getDim)(Handle, int64_t *);
  Status (*getSizes)(Handle, int64_t **);
  Status (*getStrides)(Handle, int64_t **);
  Status (*getData)(Handle, void **);
  Status (*getType)(Handle, int32_t *);
  Status (*getDeviceType)(Handle, int32_t *);
  Status (*getDevice)(Handle, int32_t *);
  Status (*makeEmpty)(int64_t rank, const int64_t *sizes, const int64_t *strides, int32_t type,
                      int32_t deviceType, int32_t device, Handle *tensor);
  Status (*deleteTensor)(Handle);
  Status (*copyHandle)(Handle, Handle *);
  Status (*copy)(Handle to, Handle from, int32_t isAsynchronous);
  Status (*zero)(Handle);
  Status (*callOperator)(const char *name, const char *overload, Value *stack, uint64_t version);
  Status (*getText)(Handle, const char **);
  Status (*deleteText)(Handle);
  Status (*newList)(size_t size, Handle *list);
  Status (*getListSize)(Handle, size_t *);
  Status (*getListItem)(Handle, size_t index, Value *);
  Status (*appendToList)(Handle, Value);
  Status (*deleteList)(Handle);
  Status (*initImplementations)(const char *nameSpace, const char *key, const char *file,
                                uint32_t line, Handle *library);
  Status (*implement)(Handle library, const char *name, BoxedKernel *kernel, uint64_t version);
  /// The text of the last error; null before PyTorch 2.12.
  const char *(*getError)() = nullptr;
  /// Null without CUDA.
  Status (*getStream)(int32_t device, void **stream) = nullptr;
  /// PyTorch's numbers of element types, by tessera_type, and that of bytes.
  int32_t types[TESSERA_TYPE_FIRST_SCALAR] = {};
  int32_t byteType = 0;
  uint64_t version = 0;

  /// False when a function is missing.
  bool load(const char *libtorch, const char *libtorchCuda);
};

/// Of the process, once registered.
struct State {
  TorchLibrary torch;
  PreparedCalls calls;
  tessera_torch_determinism getDeterminism = nullptr;
};

} // namespace

/// Never destroyed, as PyTorch may call to the end.
static State &getState() {
  static State &state = *new State;
  return state;
}

PreparedCalls &tessera::getTorchCalls() { return getState().calls; }

static tessera_runtime_status &getLastStatus() {
  thread_local tessera_runtime_status status = TESSERA_RUNTIME_SUCCESS;
  return status;
}

bool TorchLibrary::load(const char *libtorch, const char *libtorchCuda) {
  void *library = dlopen(libtorch, RTLD_NOLOAD | RTLD_LAZY);
  if (!library)
    return false;
  bool isComplete = true;
  auto find = [&](auto &member, const char *name) {
    member = reinterpret_cast<std::decay_t<decltype(member)>>(dlsym(library, name));
    isComplete &= member != nullptr;
  };
  auto findType = [&](int32_t &type, llvm::StringRef name) {
    int32_t (*get)() = nullptr;
    find(get, ("aoti_torch_dtype_" + name).str().c_str());
    type = get ? get() : 0;
  };
  find(getDim, "aoti_torch_get_dim");
  find(getSizes, "aoti_torch_get_sizes");
  find(getStrides, "aoti_torch_get_strides");
  find(getData, "aoti_torch_get_data_ptr");
  find(getType, "aoti_torch_get_dtype");
  find(getDeviceType, "aoti_torch_get_device_type");
  find(getDevice, "aoti_torch_get_device_index");
  find(makeEmpty, "aoti_torch_empty_strided");
  find(deleteTensor, "aoti_torch_delete_tensor_object");
  find(copyHandle, "aoti_torch_new_tensor_handle");
  find(copy, "aoti_torch_copy_");
  find(zero, "aoti_torch_zero_");
  find(callOperator, "torch_call_dispatcher");
  find(getText, "torch_string_c_str");
  find(deleteText, "torch_delete_string");
  find(newList, "torch_new_list_reserve_size");
  find(getListSize, "torch_list_size");
  find(getListItem, "torch_list_get_item");
  find(appendToList, "torch_list_push_back");
  find(deleteList, "torch_delete_list");
  find(initImplementations, "aoti_torch_library_init_impl");
  find(implement, "torch_library_impl");
  findType(byteType, "uint8");
  for (const ElementType &type : elementTypes)
    if (type.type)
      findType(types[type.type], type.torchName);
  if (void *function = dlsym(library, "torch_exception_get_what_without_backtrace"))
    getError = reinterpret_cast<const char *(*)()>(function);
  if (!isComplete || !libtorchCuda)
    return isComplete;
  library = dlopen(libtorchCuda, RTLD_NOLOAD | RTLD_LAZY);
  if (!library)
    return false;
  find(getStream, "aoti_torch_get_current_cuda_stream");
  return isComplete;
}

//===----------------------------------------------------------------------===//
// Values of PyTorch
//===----------------------------------------------------------------------===//

[[noreturn]] static void fail(tessera_runtime_status status, const std::string &text) {
  getLastStatus() = status;
  throw std::runtime_error(text);
}

/// For functions of PyTorch.
static void check(Status status) {
  if (!status)
    return;
  const TorchLibrary &torch = getState().torch;
  fail(TESSERA_RUNTIME_DRIVER_ERROR,
       torch.getError ? torch.getError() : "a function of PyTorch failed");
}

namespace {

/// A tensor that is owned, or none.
class Tensor {
public:
  explicit Tensor(Handle handle = nullptr) : handle(handle) {}
  Tensor(Tensor &&other) : handle(other.release()) {}
  Tensor &operator=(Tensor other) {
    std::swap(handle, other.handle);
    return *this;
  }
  ~Tensor() {
    if (handle)
      getState().torch.deleteTensor(handle);
  }

  explicit operator bool() const { return handle; }
  Handle get() const { return handle; }
  Handle release() { return std::exchange(handle, nullptr); }
  int32_t getDevice() const;
  uint64_t getAddress() const;
  CallTensor read() const;
  /// New memory on the device of this one.
  Tensor makeEmpty(int32_t rank, const int64_t *extents, const int64_t *strides,
                   int32_t type) const;
  Tensor makeEmpty(const CallLayout &layout) const {
    return makeEmpty(layout.rank, layout.extents, layout.strides,
                     getState().torch.types[layout.type]);
  }

private:
  Handle handle;
};

/// The arguments of a call that begins, which are taken from the stack one after another, in their
/// order.
class Stack {
public:
  explicit Stack(Value *values) : next(values) { getLastStatus() = TESSERA_RUNTIME_SUCCESS; }

  Tensor takeTensor() { return Tensor(reinterpret_cast<Handle>(*next++)); }
  Tensor takeOptionalTensor() {
    return Tensor(reinterpret_cast<Handle>(takeOptional().value_or(0)));
  }
  int64_t takeInteger() { return static_cast<int64_t>(*next++); }
  bool takeFlag() { return *next++ & 0xff; }
  double takeNumber() { return toDouble(*next++); }
  std::optional<double> takeOptionalNumber() {
    std::optional<Value> value = takeOptional();
    return value ? std::optional(toDouble(*value)) : std::nullopt;
  }
  std::string takeText();
  /// Calls `take` with each value of a list.
  template <class Take>
  void takeList(Take take);
  static double toDouble(Value value) {
    double number;
    std::memcpy(&number, &value, sizeof(number));
    return number;
  }

private:
  /// What is in an optional value, which is on the heap of the caller.
  std::optional<Value> takeOptional() {
    std::unique_ptr<Value> place(reinterpret_cast<Value *>(*next++));
    return place ? std::optional(*place) : std::nullopt;
  }

  Value *next;
};

} // namespace

int32_t Tensor::getDevice() const {
  int32_t device = 0;
  check(getState().torch.getDevice(handle, &device));
  return device;
}

uint64_t Tensor::getAddress() const {
  void *data = nullptr;
  check(getState().torch.getData(handle, &data));
  return reinterpret_cast<uint64_t>(data);
}

CallTensor Tensor::read() const {
  const TorchLibrary &torch = getState().torch;
  CallTensor tensor;
  if (!handle)
    return tensor;
  int64_t rank = 0, *sizes = nullptr, *strides = nullptr;
  int32_t type = 0;
  check(torch.getDim(handle, &rank));
  check(torch.getSizes(handle, &sizes));
  check(torch.getStrides(handle, &strides));
  check(torch.getType(handle, &type));
  if (!tensor.setShape(rank, sizes, strides))
    fail(TESSERA_RUNTIME_INVALID_ARGUMENT, "a tensor has " + std::to_string(rank) +
                                               " dimensions; attention takes at most " +
                                               std::to_string(TESSERA_CALL_MOST_DIMS));
  auto found = llvm::find(llvm::ArrayRef(torch.types).drop_front(), type);
  if (found == std::end(torch.types))
    fail(TESSERA_RUNTIME_TYPE_MISMATCH, "a tensor has elements of a type that no kernel takes");
  tensor.layout.type = found - torch.types;
  tensor.address = getAddress();
  tensor.layout.is_aligned = tensor.address % 16 == 0;
  return tensor;
}

Tensor Tensor::makeEmpty(int32_t rank, const int64_t *extents, const int64_t *strides,
                         int32_t type) const {
  const TorchLibrary &torch = getState().torch;
  int32_t deviceType = 0;
  Handle made = nullptr;
  check(torch.getDeviceType(handle, &deviceType));
  check(torch.makeEmpty(rank, extents, strides, type, deviceType, getDevice(), &made));
  return Tensor(made);
}

std::string Stack::takeText() {
  const TorchLibrary &torch = getState().torch;
  auto handle = reinterpret_cast<Handle>(*next++);
  const char *data = nullptr;
  Status status = torch.getText(handle, &data);
  std::string text(data ? data : "");
  check(torch.deleteText(handle));
  check(status);
  return text;
}

template <class Take>
void Stack::takeList(Take take) {
  const TorchLibrary &torch = getState().torch;
  auto list = reinterpret_cast<Handle>(*next++);
  size_t size = 0;
  Status status = torch.getListSize(list, &size);
  for (size_t i = 0; i < size && !status; ++i) {
    Value value = 0;
    status = torch.getListItem(list, i, &value);
    if (!status)
      take(value);
  }
  check(torch.deleteList(list));
  check(status);
}

//===----------------------------------------------------------------------===//
// A call
//===----------------------------------------------------------------------===//

namespace {

/// A call of an op. Everything is taken from the stack before anything is looked at, so that
/// nothing is left there when a call is refused.
struct Call {
  llvm::SmallVector<Tensor, 10> tensors; ///< in the order of kernels
  std::optional<double> scale;
  llvm::SmallVector<double, 4> numbers; ///< after the scale
  llvm::SmallVector<int64_t, 4> integers;

  /// q, k and v.
  void takeThree(Stack &stack) {
    for (int i = 0; i < 3; ++i)
      tensors.push_back(stack.takeTensor());
  }
  /// What the gradients take, in the order of the op.
  void takeOfGradients(Stack &stack);
  /// What named variants take beside tensors and the scale.
  void takeNamed(Stack &stack);
  /// What functions take; returns its names.
  std::string takeGiven(Stack &stack);
  /// Reads all of it. The scale where none is given is 1 / sqrt(head dimension).
  CallArguments read() const;
};

/// Names of what named variants take, as functions name theirs: views, numbers and integers.
constexpr llvm::StringLiteral kNamed = "slopes|cap|left,right";

} // namespace

void Call::takeOfGradients(Stack &stack) {
  Tensor gradient = stack.takeTensor(), ofLse = stack.takeOptionalTensor();
  takeThree(stack);
  Tensor out = stack.takeTensor(), lse = stack.takeTensor();
  tensors.push_back(std::move(out));
  tensors.push_back(std::move(gradient));
  tensors.push_back(std::move(lse));
  tensors.push_back(std::move(ofLse));
}

void Call::takeNamed(Stack &stack) {
  numbers.push_back(stack.takeNumber());
  integers.push_back(stack.takeInteger());
  integers.push_back(stack.takeInteger());
}

std::string Call::takeGiven(Stack &stack) {
  stack.takeList([&](Value value) { tensors.emplace_back(reinterpret_cast<Handle>(value)); });
  stack.takeList([&](Value value) { numbers.push_back(Stack::toDouble(value)); });
  stack.takeList([&](Value value) { integers.push_back(static_cast<int64_t>(value)); });
  return stack.takeText();
}

CallArguments Call::read() const {
  CallArguments arguments;
  for (const Tensor &tensor : tensors)
    arguments.tensors.push_back(tensor.read());
  const CallLayout &ofQ = arguments.tensors.front().layout;
  arguments.numbers.push_back(scale ? *scale
                                    : 1 / std::sqrt(ofQ.rank ? ofQ.extents[ofQ.rank - 1] : 1));
  arguments.numbers.append(numbers);
  arguments.integers.append(integers);
  return arguments;
}

/// Results of which all elements are one number.
static void fill(const Tensor &result, int32_t number) {
  const TorchLibrary &torch = getState().torch;
  if (number == TESSERA_CALL_FILL_NOTHING)
    return;
  check(torch.zero(result.get()));
  if (number == TESSERA_CALL_FILL_ZERO)
    return;
  // The logarithm of 0. The call takes a handle, and gives one back.
  Handle logarithms = nullptr;
  check(torch.copyHandle(result.get(), &logarithms));
  Value stack[] = {reinterpret_cast<Value>(logarithms)};
  check(torch.callOperator("aten::log_", "", stack, torch.version));
  check(torch.deleteTensor(reinterpret_cast<Handle>(stack[0])));
}

static void launchCall(const PreparedCall &prepared, const Call &call,
                       const CallArguments &arguments, llvm::ArrayRef<Tensor> results) {
  const TorchLibrary &torch = getState().torch;
  const Tensor &first = call.tensors.front();
  llvm::SmallVector<Tensor, 2> copies;
  llvm::SmallVector<uint64_t, 8> ofResults, ofCopies;
  for (const Tensor &result : results)
    ofResults.push_back(result.getAddress());
  for (const tessera_call_copy &copy : prepared.getCopies()) {
    copies.push_back(first.makeEmpty(copy.layout));
    check(torch.copy(copies.back().get(), call.tensors[copy.tensor].get(), /*isAsynchronous=*/0));
    ofCopies.push_back(copies.back().getAddress());
  }
  Tensor memory;
  uint64_t workspace = 0;
  if (uint64_t bytes = prepared.getWorkspaceBytes()) {
    int64_t size = bytes + PreparedCall::kAlignment, step = 1;
    memory = first.makeEmpty(1, &size, &step, torch.byteType);
    workspace = llvm::alignTo(memory.getAddress(), PreparedCall::kAlignment);
  }
  int32_t device = first.getDevice();
  void *stream = nullptr;
  if (torch.getStream && device >= 0) // Of a tensor on the CPU it is -1.
    check(torch.getStream(device, &stream));
  if (CallProblem problem =
          prepared.launch(arguments, {ofResults, ofCopies, workspace}, device, stream))
    fail(problem.status, problem.text);
}

/// Computes the results of a call of `what`, with things of these names, of a variant.
static llvm::SmallVector<Tensor, 4> compute(const Call &call, const std::string &what,
                                            llvm::StringRef names, const std::string &variant) {
  std::string text = what + "\n" + names.str() + "\n" + variant;
  CallArguments arguments = call.read();
  CallProblem problem;
  std::shared_ptr<const PreparedCall> prepared = getState().calls.find(text, arguments, problem);
  if (!prepared)
    fail(problem.status, problem.text);
  llvm::SmallVector<Tensor, 4> results;
  for (const CallLayout &layout : prepared->getResults())
    results.push_back(call.tensors.front().makeEmpty(layout));
  if (!prepared->isEmpty())
    launchCall(*prepared, call, arguments, results);
  else
    for (auto [layout, result] : llvm::zip(prepared->getResults(), results))
      fill(result, layout.fill);
  return results;
}

static void give(llvm::MutableArrayRef<Tensor> results, Value *stack) {
  for (Tensor &result : results)
    *stack++ = reinterpret_cast<Value>(result.release());
}

//===----------------------------------------------------------------------===//
// The ops
//===----------------------------------------------------------------------===//

/// attention_forward and attention_inference.
static void runNamed(Value *values, const char *what) {
  Stack stack(values);
  Call call;
  call.takeThree(stack);
  call.tensors.push_back(stack.takeOptionalTensor());
  std::string variant = stack.takeText();
  call.scale = stack.takeOptionalNumber();
  call.takeNamed(stack);
  give(compute(call, what, kNamed, variant), values);
}

static void runForward(Value *stack, uint64_t, uint64_t) { runNamed(stack, "output and LSE"); }
static void runInference(Value *stack, uint64_t, uint64_t) { runNamed(stack, "output"); }

/// What gradients are called, by who asks for sums in one order.
static std::string nameGradients(bool isAsked) {
  tessera_torch_determinism get = getState().getDeterminism;
  if (isAsked)
    return "deterministic gradients";
  switch (get ? get() : TESSERA_TORCH_TAKES_ANY_ORDER) {
  case TESSERA_TORCH_DETERMINISTIC:
    return "gradients of deterministic algorithms";
  case TESSERA_TORCH_WARNS_OF_ANY_ORDER:
    return "gradients of deterministic algorithms or a warning";
  default:
    return "gradients";
  }
}

static void runBackward(Value *values, uint64_t, uint64_t) {
  Stack stack(values);
  Call call;
  call.takeOfGradients(stack);
  call.tensors.push_back(stack.takeOptionalTensor());
  std::string variant = stack.takeText();
  call.scale = stack.takeNumber();
  call.takeNamed(stack);
  give(compute(call, nameGradients(stack.takeFlag()), kNamed, variant), values);
}

static void runVariantForward(Value *values, uint64_t, uint64_t) {
  Stack stack(values);
  Call call;
  call.takeThree(stack);
  std::string names = call.takeGiven(stack), source = stack.takeText();
  call.scale = stack.takeNumber();
  give(compute(call, "output and LSE", names, source), values);
}

static void runVariantBackward(Value *values, uint64_t, uint64_t) {
  const TorchLibrary &torch = getState().torch;
  Stack stack(values);
  Call call;
  call.takeOfGradients(stack);
  std::string names = call.takeGiven(stack), learned = stack.takeText();
  std::string source = stack.takeText();
  call.scale = stack.takeNumber();
  std::string what = nameGradients(stack.takeFlag());
  if (!learned.empty())
    what += " by " + learned;
  llvm::SmallVector<Tensor, 4> results = compute(call, what, names, source);
  Handle sums = nullptr;
  check(torch.newList(results.size() - 3, &sums));
  for (Tensor &sum : llvm::MutableArrayRef(results).drop_front(3))
    check(torch.appendToList(sums, reinterpret_cast<Value>(sum.release())));
  give(llvm::MutableArrayRef(results).take_front(3), values);
  values[3] = reinterpret_cast<Value>(sums);
}

/// attention_fp8_forward.
static void runFp8(Value *values, uint64_t, uint64_t) {
  Stack stack(values);
  Call call;
  call.takeThree(stack);
  call.tensors.push_back(stack.takeOptionalTensor());
  std::string names = call.takeGiven(stack), variant = stack.takeText();
  call.scale = stack.takeNumber();
  give(compute(call, "8 bits", names, variant), values);
}

int tessera_torch_register(const char *name_space, const char *key, const char *libtorch,
                           const char *libtorch_cuda, uint64_t version,
                           tessera_call_resolver resolver, tessera_torch_determinism determinism) {
  State &state = getState();
  if (!state.torch.load(libtorch, libtorch_cuda))
    return 0;
  state.torch.version = version;
  state.calls.setResolver(resolver);
  state.getDeterminism = determinism;
  Handle library = nullptr;
  if (state.torch.initImplementations(name_space, key, __FILE_NAME__, __LINE__, &library))
    return 0;
  std::pair<const char *, BoxedKernel *> kernels[] = {
      {"attention_forward", runForward},        {"attention_inference", runInference},
      {"attention_backward", runBackward},      {"variant_forward", runVariantForward},
      {"variant_backward", runVariantBackward}, {"attention_fp8_forward", runFp8}};
  return llvm::none_of(kernels, [&](auto kernel) {
    return state.torch.implement(library, kernel.first, kernel.second, version);
  });
}

void tessera_torch_reset(void) { getState().calls.clear(); }

tessera_runtime_status tessera_torch_take_status(void) {
  tessera_runtime_status status = getLastStatus();
  getLastStatus() = TESSERA_RUNTIME_SUCCESS;
  return status;
}
