//===- Torch.cpp - Kernels of ops of PyTorch ------------------------------===//
//
// A boxed kernel takes its arguments from a stack of 64-bit values and leaves its results there
// (torch/csrc/stable/c/shim.h). Tensors, strings and optional values are handles that it owns.
// Errors are exceptions, which this file alone may throw; they leave the library, so that libgcc
// has to be the shared one.
//
//===----------------------------------------------------------------------===//

#include "tessera-c/Torch.h"
#include "AttentionChoices.h"

#include "llvm/ADT/ArrayRef.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>

#include <dlfcn.h>

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
  Status (*zero)(Handle);
  Status (*callOperator)(const char *name, const char *overload, Value *stack, uint64_t version);
  Status (*getText)(Handle, const char **);
  Status (*deleteText)(Handle);
  Status (*initImplementations)(const char *nameSpace, const char *key, const char *file,
                                uint32_t line, Handle *library);
  Status (*implement)(Handle library, const char *name, BoxedKernel *kernel, uint64_t version);
  int32_t (*typeFloat16)();
  int32_t (*typeBFloat16)();
  int32_t (*typeFloat32)();
  /// The text of the last error; null before PyTorch 2.12.
  const char *(*getError)() = nullptr;
  /// Null without CUDA.
  Status (*getStream)(int32_t device, void **stream) = nullptr;
  uint64_t version = 0;

  /// False when a function is missing.
  bool load(const char *libtorch, const char *libtorchCuda);
};

/// Of the process, once registered.
struct State {
  TorchLibrary torch;
  tessera::AttentionChoices choices;
};

} // namespace

/// Never destroyed, as PyTorch may call to the end.
static State &getState() {
  static State &state = *new State;
  return state;
}

tessera::AttentionChoices &tessera::getTorchChoices() { return getState().choices; }

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
  find(zero, "aoti_torch_zero_");
  find(callOperator, "torch_call_dispatcher");
  find(getText, "torch_string_c_str");
  find(deleteText, "torch_delete_string");
  find(initImplementations, "aoti_torch_library_init_impl");
  find(implement, "torch_library_impl");
  find(typeFloat16, "aoti_torch_dtype_float16");
  find(typeBFloat16, "aoti_torch_dtype_bfloat16");
  find(typeFloat32, "aoti_torch_dtype_float32");
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
// A call
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

/// A tensor of a call, owned or not there.
class Tensor {
public:
  explicit Tensor(Handle handle) : handle(handle) {}
  Tensor(const Tensor &) = delete;
  ~Tensor() {
    if (handle)
      getState().torch.deleteTensor(handle);
  }
  /// A new one on the device of another.
  Tensor(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides, int32_t type,
         const Tensor &like);

  Handle get() const { return handle; }
  Value release() {
    Handle released = handle;
    handle = nullptr;
    return reinterpret_cast<Value>(released);
  }
  int32_t getType() const;
  int32_t getDevice() const;
  int64_t getSize(unsigned dim) const { return sizes[dim]; }
  int64_t getStride(unsigned dim) const { return strides[dim]; }
  /// Reads sizes and strides; refuses another rank.
  void readShape(const char *name, int64_t expectedRank);
  tessera_argument describe() const;

private:
  Handle handle;
  int64_t rank = 0, *sizes = nullptr, *strides = nullptr;
};

/// The arguments of a call, taken from the stack.
struct Call {
  explicit Call(Value *stack);
  ~Call() { getState().torch.deleteText(variantText); }

  Tensor q, k, v, alibi;
  Handle variantText;
  std::optional<Value> scale; ///< of a double; otherwise 1 / sqrt(head dimension)
  double softcap;
  int64_t left, right;
};

} // namespace

Tensor::Tensor(llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides, int32_t type,
               const Tensor &like)
    : handle(nullptr) {
  const TorchLibrary &torch = getState().torch;
  int32_t deviceType = 0;
  check(torch.getDeviceType(like.handle, &deviceType));
  check(torch.makeEmpty(sizes.size(), sizes.data(), strides.data(), type, deviceType,
                        like.getDevice(), &handle));
  readShape("o", sizes.size());
}

int32_t Tensor::getType() const {
  int32_t type = 0;
  check(getState().torch.getType(handle, &type));
  return type;
}

int32_t Tensor::getDevice() const {
  int32_t device = 0;
  check(getState().torch.getDevice(handle, &device));
  return device;
}

void Tensor::readShape(const char *name, int64_t expectedRank) {
  const TorchLibrary &torch = getState().torch;
  check(torch.getDim(handle, &rank));
  if (rank != expectedRank)
    fail(TESSERA_RUNTIME_INVALID_ARGUMENT,
         std::string("argument '") + name + "' has " + std::to_string(rank) +
             " dimensions; attention takes " + std::to_string(expectedRank));
  check(torch.getSizes(handle, &sizes));
  check(torch.getStrides(handle, &strides));
}

/// The tessera_type of an element type of PyTorch, 0 when there is none.
static int32_t convertType(int32_t type) {
  const TorchLibrary &torch = getState().torch;
  return type == torch.typeFloat16()    ? TESSERA_TYPE_F16
         : type == torch.typeBFloat16() ? TESSERA_TYPE_BF16
         : type == torch.typeFloat32()  ? TESSERA_TYPE_F32
                                        : 0;
}

tessera_argument Tensor::describe() const {
  void *data = nullptr;
  check(getState().torch.getData(handle, &data));
  tessera_argument argument = {};
  argument.pointer = reinterpret_cast<uint64_t>(data);
  argument.shape = sizes;
  argument.strides = strides;
  argument.type = convertType(getType());
  argument.rank = static_cast<int32_t>(rank);
  return argument;
}

static double toDouble(Value value) {
  double number;
  std::memcpy(&number, &value, sizeof(number));
  return number;
}

/// What is in an optional value, which is on the heap of the caller.
static std::optional<Value> takeOptional(Value value) {
  std::unique_ptr<Value> place(reinterpret_cast<Value *>(value));
  return place ? std::optional(*place) : std::nullopt;
}

Call::Call(Value *stack)
    : q(reinterpret_cast<Handle>(stack[0])), k(reinterpret_cast<Handle>(stack[1])),
      v(reinterpret_cast<Handle>(stack[2])),
      alibi(reinterpret_cast<Handle>(takeOptional(stack[3]).value_or(0))),
      variantText(reinterpret_cast<Handle>(stack[4])), scale(takeOptional(stack[5])),
      softcap(toDouble(stack[6])), left(static_cast<int64_t>(stack[7])),
      right(static_cast<int64_t>(stack[8])) {}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

static tessera_attention_choice findKernel(const Call &call, bool storesLse) {
  State &state = getState();
  const char *variant = nullptr;
  check(state.torch.getText(call.variantText, &variant));
  std::string error;
  std::optional<tessera_attention_choice> choice = state.choices.find(
      variant, convertType(call.q.getType()),
      {call.q.getSize(0), call.q.getSize(1), call.q.getSize(2), call.q.getSize(3),
       call.k.getSize(1), call.k.getSize(2), call.v.getSize(3)},
      storesLse, error);
  if (!choice)
    fail(TESSERA_RUNTIME_SUCCESS, error);
  return *choice;
}

/// `lse` is null where none is stored.
static void launch(Call &call, const Tensor &out, const Tensor *lse) {
  const TorchLibrary &torch = getState().torch;
  tessera_attention_choice choice = findKernel(call, lse);
  llvm::SmallVector<tessera_argument, 10> arguments = {call.q.describe(), call.k.describe(),
                                                       call.v.describe(), out.describe()};
  if (lse)
    arguments.push_back(lse->describe());
  arguments.push_back(
      tessera::makeFloat(call.scale ? toDouble(*call.scale) : 1 / std::sqrt(call.q.getSize(3))));
  tessera_argument slopes = {};
  if (call.alibi.get()) {
    call.alibi.readShape("alibi", 1);
    slopes = call.alibi.describe();
  }
  if (!tessera::appendExtras(
          choice.extras,
          {call.softcap, call.alibi.get() ? &slopes : nullptr, call.left, call.right}, arguments))
    fail(TESSERA_RUNTIME_INVALID_ARGUMENT, "argument 'alibi' is None; this variant needs slopes");
  int32_t device = call.q.getDevice();
  void *stream = nullptr;
  if (torch.getStream && device >= 0) // Of a tensor on the CPU it is -1.
    check(torch.getStream(device, &stream));
  if (tessera_runtime_status status =
          tessera_kernel_launch(choice.kernel, device, stream, arguments.data(), arguments.size()))
    fail(status, tessera_last_error());
}

/// The results without keys.
static void fillEmpty(const Tensor &out, const Tensor *lse) {
  const TorchLibrary &torch = getState().torch;
  check(torch.zero(out.get()));
  if (!lse)
    return;
  check(torch.zero(lse->get()));
  // The logarithm of 0 is the LSE of no scores. The call takes a handle, and gives one back.
  Handle logarithms = nullptr;
  check(torch.copyHandle(lse->get(), &logarithms));
  Value stack[] = {reinterpret_cast<Value>(logarithms)};
  check(torch.callOperator("aten::log_", "", stack, torch.version));
  check(torch.deleteTensor(reinterpret_cast<Handle>(stack[0])));
}

static void run(Value *stack, bool wantsLse) {
  getLastStatus() = TESSERA_RUNTIME_SUCCESS;
  Call call(stack);
  call.q.readShape("q", 4);
  call.k.readShape("k", 4);
  call.v.readShape("v", 4);
  int64_t batch = call.q.getSize(0), heads = call.q.getSize(1), rows = call.q.getSize(2);
  int64_t width = call.v.getSize(3);
  // Dense, in the order of q's storage, as the fake kernel in Python says.
  bool isRowMajor = call.q.getStride(1) < call.q.getStride(2);
  int64_t ofHead = isRowMajor ? width : rows * width, ofRow = isRowMajor ? heads * width : width;
  Tensor out({batch, heads, rows, width}, {heads * rows * width, ofHead, ofRow, 1},
             call.q.getType(), call.q);
  std::optional<Tensor> lse;
  if (wantsLse)
    lse.emplace(llvm::ArrayRef<int64_t>{batch, heads, rows},
                llvm::ArrayRef<int64_t>{heads * rows, rows, 1}, getState().torch.typeFloat32(),
                call.q);
  if (call.k.getSize(2) == 0)
    fillEmpty(out, lse ? &*lse : nullptr);
  else if (batch * heads * rows * width != 0)
    launch(call, out, lse ? &*lse : nullptr);
  stack[0] = out.release();
  if (lse)
    stack[1] = lse->release();
}

static void runForward(Value *stack, uint64_t, uint64_t) { run(stack, /*wantsLse=*/true); }
static void runInference(Value *stack, uint64_t, uint64_t) { run(stack, /*wantsLse=*/false); }

int tessera_torch_register(const char *name_space, const char *key, const char *libtorch,
                           const char *libtorch_cuda, uint64_t version,
                           tessera_attention_resolver resolver) {
  State &state = getState();
  if (!state.torch.load(libtorch, libtorch_cuda))
    return 0;
  state.torch.version = version;
  state.choices.setResolver(resolver);
  Handle library = nullptr;
  return !state.torch.initImplementations(name_space, key, __FILE_NAME__, __LINE__, &library) &&
         !state.torch.implement(library, "attention_forward", runForward, version) &&
         !state.torch.implement(library, "attention_inference", runInference, version);
}

void tessera_torch_reset(void) { getState().choices.clear(); }

tessera_runtime_status tessera_torch_take_status(void) {
  tessera_runtime_status status = getLastStatus();
  getLastStatus() = TESSERA_RUNTIME_SUCCESS;
  return status;
}
