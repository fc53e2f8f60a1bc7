//===- TorchDirect.cpp - Calls past PyTorch's dispatcher ------------------===//
//
// What an op of PyTorch costs beside its kernels is saved where nobody sees ops: tensors are read
// through DLPack's exchange API, and results are made by the function that compiled graphs make
// theirs with. Whatever is not plain is left to the op.
//
//===----------------------------------------------------------------------===//

#include "TorchDirect.h"

#include "llvm/Support/MathExtras.h"
#include "llvm/Support/xxhash.h"

#include <cmath>

using namespace tessera;

//===----------------------------------------------------------------------===//
// Reading a call
//===----------------------------------------------------------------------===//

bool tessera_torch_direct::readTensor(void *object, CallTensor &tensor, int32_t &device) const {
  const tessera_python_framework &framework = options.framework;
  if (!python.hasType(object, framework.tensor_types))
    return false;
  DLTensor read;
  if (framework.read_tensor(object, &read))
    return clearError();
  tensor.layout.type = read.getElementType();
  if (read.deviceType != options.device_type || !read.strides || !tensor.layout.type ||
      !tensor.setShape(read.rank, read.shape, read.strides))
    return false;
  tensor.address = read.getAddress();
  tensor.layout.is_aligned = tensor.address % 16 == 0;
  device = read.device;
  return true;
}

bool tessera_torch_direct::readTensors(llvm::ArrayRef<void *> tensors, CallArguments &arguments,
                                       int32_t &device) const {
  arguments.tensors.resize(options.tensor_count);
  for (auto [i, object] : llvm::enumerate(tensors)) {
    int32_t own = device;
    if (object != python.none && !readTensor(object, arguments.tensors[i], own))
      return false;
    if (i == 0)
      device = own;
    if (own != device)
      return false;
  }
  // Results are made on the current device.
  int32_t current = device;
  return arguments.tensors.front().isGiven() &&
         (!options.get_current_device ||
          (!options.get_current_device(&current) && current == device));
}

bool tessera_torch_direct::readNumbers(void *tuple, CallNumbers &read) const {
  intptr_t size = python.tupleSize(tuple);
  if (size < 0)
    return clearError();
  if (size > static_cast<intptr_t>(numbers.size()))
    return false;
  for (auto [i, kind] : llvm::enumerate(numbers)) {
    void *object = static_cast<intptr_t>(i) < size ? python.tupleItem(tuple, i) : nullptr;
    if (kind == 'i')
      read.integers.push_back(object ? python.intAsLongLong(object) : -1);
    else if (kind == 'f')
      read.others.push_back(object ? python.floatAsDouble(object) : 0);
    else if (kind == 's' && object && object != python.none)
      read.scale = python.floatAsDouble(object);
  }
  return !python.errorOccurred() || clearError();
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

Object tessera_torch_direct::describeEmpty(llvm::ArrayRef<int64_t> extents,
                                           llvm::ArrayRef<int64_t> strides,
                                           void *elementType) const {
  Object sizes = makeTuple(extents), steps = makeTuple(strides);
  return sizes && steps && elementType ? makeTuple({sizes.get(), steps.get(), elementType})
                                       : Object();
}

Object tessera_torch_direct::describeEmpty(const CallLayout &layout) const {
  return describeEmpty(llvm::ArrayRef(layout.extents, layout.rank),
                       llvm::ArrayRef(layout.strides, layout.rank),
                       options.element_types[layout.type]);
}

std::optional<tessera_torch_direct::Plan> tessera_torch_direct::makePlan(const CallKey &key) const {
  Plan plan;
  plan.call = getTorchCalls().findKnown(key);
  if (!plan.call || plan.call->isEmpty())
    return std::nullopt;
  bool isComplete = true;
  for (const CallLayout &layout : plan.call->getResults()) {
    plan.results.push_back(describeEmpty(layout));
    isComplete &= bool(plan.results.back());
  }
  for (const tessera_call_copy &copy : plan.call->getCopies()) {
    plan.copies.push_back(describeEmpty(copy.layout));
    isComplete &= bool(plan.copies.back());
  }
  if (int64_t bytes = plan.call->getWorkspaceBytes()) {
    plan.workspace = describeEmpty({bytes + static_cast<int64_t>(PreparedCall::kAlignment)}, {1},
                                   options.byte_type);
    isComplete &= bool(plan.workspace);
  }
  if (isComplete)
    return plan;
  clearError();
  return std::nullopt;
}

std::optional<tessera_torch_direct::Plan>
tessera_torch_direct::find(const CallKey &key, const CallArguments &arguments) {
  Slot &slot = slots[llvm::xxh3_64bits(key) % slots.size()];
  unsigned generation = getTorchCalls().getGeneration();
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (slot.plan && slot.generation == generation && slot.key == key)
      return slot.plan;
  }
  // Objects are made and destroyed outside of the lock: either may run code of Python.
  CallProblem problem; // Who calls says it.
  if (options.prepares)
    getTorchCalls().find(text, arguments, problem);
  else
    getTorchCalls().findAlike(text, arguments);
  std::optional<Plan> plan = makePlan(key), replaced = plan;
  if (plan) {
    std::lock_guard<std::mutex> lock(mutex);
    std::swap(slot.plan, replaced);
    slot.key = key.str();
    slot.generation = generation;
  }
  return plan;
}

//===----------------------------------------------------------------------===//
// The call
//===----------------------------------------------------------------------===//

Object tessera_torch_direct::makeEmpty(const Object &arguments, uint64_t &address) const {
  Object made(python.call(options.make_empty, arguments.get(), nullptr));
  DLTensor read;
  if (made && !options.framework.read_tensor(made.get(), &read)) {
    address = read.getAddress();
    return made;
  }
  clearError();
  return Object();
}

bool tessera_torch_direct::makeAll(llvm::ArrayRef<Object> descriptions, Results &made,
                                   llvm::SmallVectorImpl<uint64_t> &addresses) const {
  for (const Object &description : descriptions) {
    made.push_back(makeEmpty(description, addresses.emplace_back()));
    if (!made.back())
      return false;
  }
  return true;
}

bool tessera_torch_direct::copy(const Plan &plan, llvm::ArrayRef<void *> tensors, Results &made,
                                llvm::SmallVectorImpl<uint64_t> &addresses) const {
  if (!makeAll(plan.copies, made, addresses))
    return false;
  for (auto [copy, to] : llvm::zip(plan.call->getCopies(), made)) {
    Object arguments = makeTuple({to.get(), tensors[copy.tensor]});
    if (!arguments || !Object(python.call(options.copy, arguments.get(), nullptr)))
      return clearError();
  }
  return true;
}

bool tessera_torch_direct::launch(const Plan &plan, const CallArguments &arguments, int32_t device,
                                  llvm::ArrayRef<uint64_t> results,
                                  llvm::ArrayRef<uint64_t> copies) const {
  uint64_t workspace = 0;
  Object memory;
  if (plan.workspace) {
    memory = makeEmpty(plan.workspace, workspace);
    if (!memory)
      return false;
    workspace = llvm::alignTo(workspace, PreparedCall::kAlignment);
  }
  void *stream = nullptr;
  if (options.device_type != kDeviceTypeCuda)
    device = TESSERA_CURRENT_DEVICE;
  else if (options.framework.current_stream(kDeviceTypeCuda, device, &stream))
    return clearError();
  void *thread = python.saveThread();
  CallProblem problem = plan.call->launch(arguments, {results, copies, workspace}, device, stream);
  python.restoreThread(thread);
  return !problem;
}

std::optional<tessera_torch_direct::Results>
tessera_torch_direct::run(llvm::ArrayRef<void *> tensors, const CallNumbers &given) {
  CallArguments arguments;
  int32_t device = 0;
  if (tensors.size() > static_cast<size_t>(options.tensor_count) ||
      !readTensors(tensors, arguments, device))
    return std::nullopt;
  const CallLayout &ofQ = arguments.tensors.front().layout;
  if (!ofQ.rank)
    return std::nullopt;
  arguments.numbers = {given.scale.value_or(1 / std::sqrt(ofQ.extents[ofQ.rank - 1]))};
  arguments.numbers.append(given.others);
  arguments.integers = given.integers;
  std::optional<Plan> plan = find(makeCallKey(text, arguments.tensors), arguments);
  if (!plan)
    return std::nullopt;
  Results results, copies;
  llvm::SmallVector<uint64_t, 4> ofResults, ofCopies;
  if (!makeAll(plan->results, results, ofResults) || !copy(*plan, tensors, copies, ofCopies) ||
      !launch(*plan, arguments, device, ofResults, ofCopies))
    return std::nullopt;
  return results;
}

tessera_torch_direct *tessera_torch_direct_create(const tessera_torch_direct_options *options) {
  return Interpreter::get().isComplete ? new tessera_torch_direct(*options) : nullptr;
}

void *tessera_torch_call(void *self, void *const *arguments, intptr_t count) {
  const Interpreter &python = Interpreter::get();
  void *address;
  CallNumbers numbers;
  if (count > 0 && python.readAddress(self, address) && address) {
    auto *direct = static_cast<tessera_torch_direct *>(address);
    if (direct->readNumbers(arguments[count - 1], numbers)) {
      auto results = direct->run(llvm::ArrayRef(arguments, count - 1), numbers);
      if (results && results->size() == 1)
        return results->front().release();
      if (results) {
        llvm::SmallVector<void *, 4> objects;
        for (const Object &result : *results)
          objects.push_back(result.get());
        if (Object tuple = makeTuple(objects))
          return tuple.release();
      }
    }
    python.clearError();
  }
  python.incrementReferences(python.none);
  return python.none;
}
