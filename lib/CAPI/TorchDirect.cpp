//===- TorchDirect.cpp - Attention past PyTorch's dispatcher --------------===//
//
// What an op of PyTorch costs beside its kernel is saved where nobody sees ops: tensors are read
// through DLPack's exchange API, and results are made by the function that compiled graphs make
// theirs with. Whatever is not plain is left to the op.
//
//===----------------------------------------------------------------------===//

#include "AttentionChoices.h"
#include "PythonObjects.h"
#include "tessera-c/Torch.h"

#include <cmath>
#include <mutex>
#include <optional>
#include <string>

using namespace tessera;

namespace {

/// A reference to an object of Python, or to none.
class Object {
public:
  Object() = default;
  /// Takes a new reference over.
  explicit Object(void *object) : object(object) {}
  Object(const Object &other) : object(other.object) {
    if (object)
      Interpreter::get().incrementReferences(object);
  }
  Object(Object &&other) : object(other.release()) {}
  Object &operator=(Object other) {
    std::swap(object, other.object);
    return *this;
  }
  ~Object() {
    if (object)
      Interpreter::get().decrementReferences(object);
  }

  explicit operator bool() const { return object; }
  void *get() const { return object; }
  void *release() { return std::exchange(object, nullptr); }

private:
  void *object = nullptr;
};

/// The memory of a tensor. Extents and strides stay as they were read, whatever becomes of it.
struct View {
  static constexpr int32_t kMostDims = 4;

  int64_t extents[kMostDims], strides[kMostDims];
  uint64_t address;
  int32_t type, device, rank;

  tessera_argument describe() const {
    tessera_argument argument = {};
    argument.pointer = address;
    argument.shape = extents;
    argument.strides = strides;
    argument.type = type;
    argument.rank = rank;
    return argument;
  }
};

/// What calls that are alike have in common.
struct CallKey {
  AttentionSizes sizes;
  int32_t type;
  bool isRowMajor; ///< a row of q is further from the next one than a head
  bool storesLse;

  bool operator==(const CallKey &other) const {
    return sizes == other.sizes && type == other.type && isRowMajor == other.isRowMajor &&
           storesLse == other.storesLse;
  }
  size_t hash() const {
    uint64_t mixed = type * 4 + isRowMajor * 2 + storesLse;
    for (int64_t size : sizes)
      mixed = (mixed ^ static_cast<uint64_t>(size)) * 0x9E3779B97F4A7C15;
    return mixed >> 32;
  }
};

/// How they are computed.
struct CallPlan {
  tessera_attention_choice choice = {};
  /// The arguments that make an empty output and an empty LSE.
  Object outArguments, lseArguments;
};

/// What is given beside tensors.
struct Given {
  bool storesLse = false;
  std::optional<double> scale;
  double softcap = 0;
  int64_t left = -1, right = -1;
};

/// A call, as far as it has been read.
struct Call : Given {
  explicit Call(const Given &given) : Given(given) {}

  View q, k, v, out, lse, slopes;
  bool hasSlopes = false;

  CallKey getKey() const {
    return {{q.extents[0], q.extents[1], q.extents[2], q.extents[3], k.extents[1], k.extents[2],
             v.extents[3]},
            q.type,
            q.strides[1] < q.strides[2],
            storesLse};
  }
};

} // namespace

struct tessera_torch_direct {
  explicit tessera_torch_direct(const tessera_torch_direct_options &given)
      : options(given), variant(given.variant) {}

  /// From a tuple of what the op takes from its variant on, as far as it is given; false where it
  /// is nothing that the op takes.
  static bool read(void *tuple, Given &given);
  /// The output, and the LSE where it is stored, of q, k, v and slopes or None; none when the op is
  /// to be called.
  bool run(llvm::ArrayRef<void *> tensors, const Given &given, Object &out, Object &lse);

private:
  struct Slot {
    CallKey key = {};
    unsigned generation = 0;
    std::optional<CallPlan> plan;
  };

  bool readView(void *object, int32_t rank, View &view) const;
  bool readTensors(llvm::ArrayRef<void *> tensors, Call &call) const;
  std::optional<CallPlan> find(const CallKey &key);
  std::optional<CallPlan> makePlan(const CallKey &key) const;
  Object makeTuple(llvm::ArrayRef<int64_t> numbers) const;
  Object describeEmpty(llvm::ArrayRef<int64_t> extents, llvm::ArrayRef<int64_t> strides,
                       int32_t type) const;
  Object makeEmpty(const Object &arguments, int32_t rank, View &view) const;
  bool launch(const Call &call, const tessera_attention_choice &choice) const;
  /// For what failed in Python.
  bool clearError() const {
    python.clearError();
    return false;
  }

  const Interpreter &python = Interpreter::get();
  const tessera_torch_direct_options options;
  const std::string variant;
  std::mutex mutex; ///< guards `slots`
  std::array<Slot, 64> slots;
};

//===----------------------------------------------------------------------===//
// Reading a call
//===----------------------------------------------------------------------===//

bool tessera_torch_direct::readView(void *object, int32_t rank, View &view) const {
  const tessera_python_framework &framework = options.framework;
  if (!python.hasType(object, framework.tensor_types))
    return false;
  DLTensor tensor;
  if (framework.read_tensor(object, &tensor))
    return clearError();
  if (tensor.deviceType != options.device_type || tensor.rank != rank || !tensor.strides)
    return false;
  view.address = tensor.getAddress();
  view.type = tensor.getElementType();
  view.device = tensor.device;
  view.rank = rank;
  std::copy_n(tensor.shape, rank, view.extents);
  std::copy_n(tensor.strides, rank, view.strides);
  return true;
}

bool tessera_torch_direct::readTensors(llvm::ArrayRef<void *> tensors, Call &call) const {
  if (!readView(tensors[0], 4, call.q) || !readView(tensors[1], 4, call.k) ||
      !readView(tensors[2], 4, call.v))
    return false;
  call.hasSlopes = tensors[3] != python.none;
  if (call.hasSlopes &&
      (!readView(tensors[3], 1, call.slopes) || call.slopes.extents[0] != call.q.extents[1] ||
       call.slopes.device != call.q.device))
    return false;
  int32_t device = call.q.device, current = device;
  if (call.k.device != device || call.v.device != device)
    return false;
  // Results are made on the current device.
  return !options.get_current_device ||
         (!options.get_current_device(&current) && current == device);
}

bool tessera_torch_direct::read(void *tuple, Given &given) {
  const Interpreter &python = Interpreter::get();
  intptr_t size = python.tupleSize(tuple);
  auto get = [&](intptr_t index) { return python.tupleItem(tuple, index); };
  if (size > 1 && get(1) != python.none)
    given.scale = python.floatAsDouble(get(1));
  if (size > 2)
    given.softcap = python.floatAsDouble(get(2));
  if (size > 4) {
    given.left = python.intAsLongLong(get(3));
    given.right = python.intAsLongLong(get(4));
  }
  if (!python.errorOccurred())
    return size != 4;
  python.clearError();
  return false;
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

Object tessera_torch_direct::makeTuple(llvm::ArrayRef<int64_t> numbers) const {
  Object tuple(python.newTuple(numbers.size()));
  for (size_t i = 0; tuple && i < numbers.size(); ++i) {
    void *number = python.intFromLongLong(numbers[i]);
    if (!number)
      return Object();
    python.setTupleItem(tuple.get(), i, number);
  }
  return tuple;
}

Object tessera_torch_direct::describeEmpty(llvm::ArrayRef<int64_t> extents,
                                           llvm::ArrayRef<int64_t> strides, int32_t type) const {
  Object sizes = makeTuple(extents), steps = makeTuple(strides), all(python.newTuple(3));
  if (!sizes || !steps || !all)
    return Object();
  void *elementType = options.element_types[type - TESSERA_TYPE_F16];
  python.incrementReferences(elementType);
  python.setTupleItem(all.get(), 0, sizes.release());
  python.setTupleItem(all.get(), 1, steps.release());
  python.setTupleItem(all.get(), 2, elementType);
  return all;
}

/// Strides of the results are those of the op.
std::optional<CallPlan> tessera_torch_direct::makePlan(const CallKey &key) const {
  if (key.type != TESSERA_TYPE_F16 && key.type != TESSERA_TYPE_BF16)
    return std::nullopt;
  CallPlan plan;
  std::optional<tessera_attention_choice> known =
      getTorchChoices().findKnown(variant.c_str(), key.type, key.sizes, key.storesLse);
  if (!known || !known->kernel)
    return std::nullopt;
  plan.choice = *known;
  int64_t batch = key.sizes[0], heads = key.sizes[1], rows = key.sizes[2], width = key.sizes[6];
  int64_t ofHead = key.isRowMajor ? width : rows * width;
  int64_t ofRow = key.isRowMajor ? heads * width : width;
  plan.outArguments = describeEmpty({batch, heads, rows, width},
                                    {heads * rows * width, ofHead, ofRow, 1}, key.type);
  if (key.storesLse)
    plan.lseArguments =
        describeEmpty({batch, heads, rows}, {heads * rows, rows, 1}, TESSERA_TYPE_F32);
  if (plan.outArguments && bool(plan.lseArguments) == key.storesLse)
    return plan;
  clearError();
  return std::nullopt;
}

std::optional<CallPlan> tessera_torch_direct::find(const CallKey &key) {
  Slot &slot = slots[key.hash() % slots.size()];
  unsigned generation = getTorchChoices().getGeneration();
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (slot.plan && slot.generation == generation && slot.key == key)
      return slot.plan;
  }
  // Objects are made and destroyed outside of the lock: either may run code of Python.
  std::optional<CallPlan> plan = makePlan(key), replaced = plan;
  if (plan) {
    std::lock_guard<std::mutex> lock(mutex);
    std::swap(slot.plan, replaced);
    slot.key = key;
    slot.generation = generation;
  }
  return plan;
}

//===----------------------------------------------------------------------===//
// The call
//===----------------------------------------------------------------------===//

Object tessera_torch_direct::makeEmpty(const Object &arguments, int32_t rank, View &view) const {
  Object made(python.call(options.make_empty, arguments.get(), nullptr));
  if (!made)
    clearError();
  return made && readView(made.get(), rank, view) ? std::move(made) : Object();
}

bool tessera_torch_direct::launch(const Call &call, const tessera_attention_choice &choice) const {
  llvm::SmallVector<tessera_argument, 10> arguments = {call.q.describe(), call.k.describe(),
                                                       call.v.describe(), call.out.describe()};
  if (call.storesLse)
    arguments.push_back(call.lse.describe());
  arguments.push_back(makeFloat(call.scale.value_or(1 / std::sqrt(call.q.extents[3]))));
  tessera_argument slopes = {};
  if (call.hasSlopes)
    slopes = call.slopes.describe();
  if (!appendExtras(choice.extras,
                    {call.softcap, call.hasSlopes ? &slopes : nullptr, call.left, call.right},
                    arguments))
    return false;
  int32_t device = TESSERA_CURRENT_DEVICE;
  void *stream = nullptr;
  if (options.device_type == kDeviceTypeCuda) {
    device = call.q.device;
    if (options.framework.current_stream(kDeviceTypeCuda, device, &stream))
      return clearError();
  }
  void *thread = python.saveThread();
  tessera_runtime_status status =
      tessera_kernel_launch(choice.kernel, device, stream, arguments.data(), arguments.size());
  python.restoreThread(thread);
  return status == TESSERA_RUNTIME_SUCCESS;
}

bool tessera_torch_direct::run(llvm::ArrayRef<void *> tensors, const Given &given, Object &out,
                               Object &lse) {
  Call call(given);
  if (!readTensors(tensors, call))
    return false;
  CallKey key = call.getKey();
  if (llvm::is_contained(key.sizes, 0))
    return false;
  std::optional<CallPlan> plan = find(key);
  if (!plan)
    return false;
  out = makeEmpty(plan->outArguments, 4, call.out);
  if (out && call.storesLse)
    lse = makeEmpty(plan->lseArguments, 3, call.lse);
  return out && bool(lse) == call.storesLse && launch(call, plan->choice);
}

/// A tuple of these objects; none, with an error of Python, where there is no memory for it.
static Object makeTuple(llvm::ArrayRef<void *> items) {
  const Interpreter &python = Interpreter::get();
  Object tuple(python.newTuple(items.size()));
  for (size_t i = 0; tuple && i < items.size(); ++i) {
    python.incrementReferences(items[i]);
    python.setTupleItem(tuple.get(), i, items[i]);
  }
  return tuple;
}

/// The output, or a tuple of it and an LSE.
static Object joinResults(Object out, const Object &lse) {
  return lse ? makeTuple({out.get(), lse.get()}) : out;
}

tessera_torch_direct *tessera_torch_direct_create(const tessera_torch_direct_options *options) {
  return Interpreter::get().isComplete ? new tessera_torch_direct(*options) : nullptr;
}

void *tessera_torch_attention(void *self, void *const *arguments, intptr_t count) {
  const Interpreter &python = Interpreter::get();
  void *direct;
  Object out, lse;
  Given given;
  if (count == 6 && python.readAddress(self, direct) && direct &&
      tessera_torch_direct::read(arguments[5], given)) {
    int storesLse = python.isTrue(arguments[4]);
    given.storesLse = storesLse > 0;
    if (storesLse >= 0 && static_cast<tessera_torch_direct *>(direct)->run(
                              llvm::ArrayRef(arguments, 4), given, out, lse))
      if (Object results = joinResults(out, lse))
        return results.release();
    python.clearError();
  }
  python.incrementReferences(python.none);
  return python.none;
}

//===----------------------------------------------------------------------===//
// The forward of a function of autograd
//===----------------------------------------------------------------------===//

struct tessera_torch_forward {
  tessera_torch_forward_options options;
  Given given;

  void *run(llvm::ArrayRef<void *> arguments) const;
  void *runOther(llvm::ArrayRef<void *> arguments) const;
};

tessera_torch_forward *tessera_torch_forward_create(const tessera_torch_forward_options *options) {
  Given given;
  given.storesLse = true;
  if (!tessera_torch_direct::read(options->given, given))
    return nullptr;
  return new tessera_torch_forward{*options, given};
}

void *tessera_torch_forward::runOther(llvm::ArrayRef<void *> arguments) const {
  Object all = makeTuple(arguments);
  return all ? Interpreter::get().call(options.other, all.get(), nullptr) : nullptr;
}

void *tessera_torch_forward::run(llvm::ArrayRef<void *> arguments) const {
  if (arguments.size() != 4 && arguments.size() != 5)
    return runOther(arguments); // which says what is missing
  const Interpreter &python = Interpreter::get();
  void *context = arguments[0], *q = arguments[1], *k = arguments[2], *v = arguments[3];
  bool hasSlopes = arguments.size() > 4 && arguments[4] != python.none;
  Object out, lse;
  if (!options.direct->run({q, k, v, hasSlopes ? arguments[4] : python.none}, given, out, lse))
    return runOther(arguments);
  void *kept[] = {q, k, v, out.get(), lse.get(), hasSlopes ? arguments[4] : nullptr};
  Object saved = makeTuple(llvm::ArrayRef(kept).drop_back(!hasSlopes));
  if (!saved || python.setAttribute(context, options.to_save, saved.get()) ||
      (options.returns_lse &&
       python.setAttribute(context, options.materialize_grads, options.never)))
    return nullptr;
  return joinResults(std::move(out), options.returns_lse ? lse : Object()).release();
}

void *tessera_torch_apply_forward(void *self, void *const *arguments, intptr_t count) {
  void *forward = Interpreter::get().intAsPointer(self);
  return forward ? static_cast<tessera_torch_forward *>(forward)->run({arguments, size_t(count)})
                 : nullptr;
}
