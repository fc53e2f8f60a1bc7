//===- PreparedCalls.cpp - What calls of frameworks launch ----------------===//

#include "PreparedCalls.h"

#include "lib/Runtime/Error.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <limits>
#include <mutex>

#include <pthread.h>

using namespace tessera;
using runtime::ArgumentInfo;

/// Calls that are kept before keeping starts afresh, and families of a text.
static constexpr unsigned kMostCalls = 4096, kMostFamilies = 512;

static CallProblem toProblem(llvm::Error error) {
  CallProblem problem;
  llvm::handleAllErrors(std::move(error), [&](const runtime::RuntimeError &failure) {
    problem = {failure.getStatus(), failure.getText()};
  });
  return problem;
}

bool CallTensor::setShape(int32_t rank, const int64_t *extents, const int64_t *strides) {
  if (rank < 0 || rank > TESSERA_CALL_MOST_DIMS)
    return false;
  layout.rank = rank;
  std::copy_n(extents, rank, layout.extents);
  std::copy_n(strides, rank, layout.strides);
  return true;
}

uint64_t tessera::countBytes(const CallLayout &layout) {
  uint64_t last = 0;
  for (int32_t i = 0; i < layout.rank; ++i) {
    if (layout.extents[i] == 0)
      return 0;
    last += (layout.extents[i] - 1) * layout.strides[i];
  }
  return (last + 1) * getElementType(layout.type)->bytes;
}

//===----------------------------------------------------------------------===//
// Arguments of a step
//===----------------------------------------------------------------------===//

static runtime::Argument describe(const CallLayout &layout, uint64_t address) {
  runtime::Argument argument = {};
  argument.pointer = address;
  argument.shape = layout.extents;
  argument.strides = layout.strides;
  argument.type = layout.type;
  argument.rank = layout.rank;
  return argument;
}

static std::string describe(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", number);
  return text;
}

CallProblem PreparedCall::bindScalar(const Step &step, unsigned position,
                                     const CallArguments &arguments,
                                     runtime::Argument &argument) const {
  auto [source, index] = step.operands[position];
  bool isReal = source == TESSERA_CALL_NUMBER;
  int64_t number = source == TESSERA_CALL_INTEGER ? arguments.integers[index] : index;
  auto set = [&](const ElementType &type) {
    return isReal ? setScalar(type, arguments.numbers[index], argument)
                  : setScalar(type, number, argument);
  };
  if (!step.kernel) { // The interpreter takes any type that holds the value.
    set(*getScalarType(isReal ? "f32" : "i64"));
    return {};
  }
  const ArgumentInfo &info = step.kernel->getSignature().arguments[position];
  if (set(*info.type))
    return {};
  return {TESSERA_RUNTIME_INVALID_ARGUMENT,
          llvm::formatv("argument '{0}' is {1}, which does not fit in {2}", info.name,
                        isReal ? describe(arguments.numbers[index]) : std::to_string(number),
                        info.type->name)};
}

uint64_t PreparedCall::findAddress(const tessera_call_operand &operand,
                                   const CallArguments &arguments, const CallMemory &memory) const {
  auto [source, index] = operand;
  switch (source) {
  case TESSERA_CALL_TENSOR:
    return arguments.tensors[index].address;
  case TESSERA_CALL_RESULT:
    return memory.results[index];
  case TESSERA_CALL_TEMPORARY:
    return memory.workspace + temporaryOffsets[index];
  case TESSERA_CALL_COPY:
    return memory.copies[index];
  default:
    return findAddress(views[index].memory, arguments, memory) + views[index].offset;
  }
}

CallProblem PreparedCall::bind(const Step &step, const CallArguments &arguments,
                               const CallMemory &memory, Arguments &bound) const {
  for (auto [position, operand] : llvm::enumerate(step.operands)) {
    int32_t index = operand.index;
    auto add = [&](const CallLayout &layout) {
      bound.push_back(describe(layout, findAddress(operand, arguments, memory)));
    };
    switch (operand.source) {
    case TESSERA_CALL_TENSOR:
      add(arguments.tensors[index].layout);
      break;
    case TESSERA_CALL_RESULT:
      add(results[index]);
      break;
    case TESSERA_CALL_TEMPORARY:
      add(temporaries[index]);
      break;
    case TESSERA_CALL_COPY:
      add(copies[index].layout);
      break;
    case TESSERA_CALL_VIEW:
      add(views[index].layout);
      break;
    default:
      if (CallProblem problem =
              bindScalar(step, position, arguments, bound.emplace_back(runtime::Argument{})))
        return problem;
    }
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Preparing
//===----------------------------------------------------------------------===//

CallProblem PreparedCall::plan(Step &step, const CallArguments &arguments) {
  if (!step.kernel)
    return {};
  // Where memory lies does not matter yet.
  llvm::SmallVector<uint64_t, 8> anywhere(std::max(results.size(), copies.size()), kAlignment);
  Arguments bound;
  if (CallProblem problem = bind(step, arguments, {anywhere, anywhere, kAlignment}, bound))
    return problem;
  llvm::Expected<std::shared_ptr<const runtime::CallPlan>> found = step.kernel->plan(bound);
  if (!found)
    return toProblem(found.takeError());
  step.plan = std::move(*found);
  if (uint64_t bytes = step.plan->getLentBytes()) {
    step.offset = llvm::alignTo(temporaryBytes, kAlignment);
    workspaceBytes = std::max(workspaceBytes, step.offset + bytes);
    if (step.isBeside) // Those of the steps behind it lie elsewhere.
      temporaryBytes = step.offset + bytes;
  }
  return {};
}

/// Whether an operand is a tensor of some kind, and no scalar.
static bool isMemory(const tessera_call_operand &operand) {
  return operand.source <= TESSERA_CALL_COPY || operand.source == TESSERA_CALL_VIEW;
}

bool PreparedCall::meet(const Step &one, const Step &other) const {
  auto findRoot = [&](tessera_call_operand operand) {
    while (operand.source == TESSERA_CALL_VIEW)
      operand = views[operand.index].memory;
    return std::pair(operand.source, operand.index);
  };
  auto stores = [](const Step &step, size_t position) {
    return step.kernel->getSignature().arguments[position].access != runtime::Access::Read;
  };
  for (auto [i, operand] : llvm::enumerate(one.operands))
    for (auto [j, others] : llvm::enumerate(other.operands))
      if (isMemory(operand) && findRoot(operand) == findRoot(others) &&
          (stores(one, i) || stores(other, j)))
        return true;
  return false;
}

std::shared_ptr<const PreparedCall> PreparedCall::make(const tessera_call_recipe &recipe,
                                                       const CallArguments &arguments,
                                                       CallProblem &problem) {
  auto call = std::make_shared<PreparedCall>();
  call->results.append(recipe.results, recipe.results + recipe.result_count);
  call->copies.append(recipe.copies, recipe.copies + recipe.copy_count);
  call->views.append(recipe.views, recipe.views + recipe.view_count);
  for (const CallLayout &layout : llvm::ArrayRef(recipe.temporaries, recipe.temporary_count)) {
    call->temporaries.push_back(layout);
    call->temporaryOffsets.push_back(llvm::alignTo(call->workspaceBytes, kAlignment));
    call->workspaceBytes = call->temporaryOffsets.back() + countBytes(layout);
  }
  call->temporaryBytes = call->workspaceBytes;
  for (const tessera_call_step &given : llvm::ArrayRef(recipe.steps, recipe.step_count)) {
    Step &step = call->steps.emplace_back();
    // A tessera_kernel is a pointer to a Kernel.
    step.kernel = reinterpret_cast<runtime::Kernel *>(given.kernel);
    step.program = given.program;
    step.isBeside = given.is_beside;
    step.operands.append(given.operands, given.operands + given.operand_count);
    problem = call->plan(step, arguments);
    if (problem)
      return nullptr;
  }
  llvm::SmallVector<const Step *, 2> beside;
  for (Step &step : call->steps) {
    step.waits = llvm::any_of(beside, [&](const Step *other) { return call->meet(*other, step); });
    if (step.waits)
      beside.clear();
    if (step.isBeside && step.kernel)
      beside.push_back(&step);
  }
  return call;
}

//===----------------------------------------------------------------------===//
// Launching
//===----------------------------------------------------------------------===//

llvm::Error PreparedCall::fill(const CallMemory &memory, int device, void *stream) const {
  auto fillOne = [&](const CallLayout &layout, uint64_t address) -> llvm::Error {
    if (layout.fill != TESSERA_CALL_FILL_ZERO)
      return llvm::Error::success();
    return steps.front().kernel->zero(device, stream, address, countBytes(layout));
  };
  for (auto [layout, address] : llvm::zip(results, memory.results))
    if (llvm::Error error = fillOne(layout, address))
      return error;
  for (auto [layout, offset] : llvm::zip(temporaries, temporaryOffsets))
    if (llvm::Error error = fillOne(layout, memory.workspace + offset))
      return error;
  return llvm::Error::success();
}

CallProblem PreparedCall::launch(const Step &step, const CallArguments &arguments,
                                 const CallMemory &memory, int device, void *stream) const {
  Arguments bound;
  if (CallProblem problem = bind(step, arguments, memory, bound))
    return problem;
  std::optional<runtime::LentMemory> lent;
  if (uint64_t bytes = step.plan->getLentBytes(); bytes && memory.workspace)
    lent = {memory.workspace + step.offset, bytes};
  return toProblem(step.kernel->launch(step.plan, device, stream, bound, lent));
}

CallProblem PreparedCall::launch(const CallArguments &arguments, const CallMemory &memory,
                                 int device, void *stream) const {
  if (llvm::Error error = fill(memory, device, stream))
    return toProblem(std::move(error));
  const runtime::SideStream *side = nullptr;
  CallProblem problem;
  for (const Step &step : steps) {
    if (step.waits && side) {
      problem = toProblem(side->join());
      side = nullptr;
    }
    if (step.isBeside && !problem) {
      llvm::Expected<const runtime::SideStream *> found =
          step.kernel->findSideStream(device, stream);
      if (!found)
        problem = toProblem(found.takeError());
      else if ((side = *found))
        problem = toProblem(side->fork());
    }
    if (!problem)
      problem =
          launch(step, arguments, memory, device, step.isBeside && side ? side->get() : stream);
    if (problem)
      break;
  }
  // Memory of the call may be that of another one from then on, also of one that failed.
  if (side)
    if (CallProblem ofJoin = toProblem(side->join()); ofJoin && !problem)
      return ofJoin;
  return problem;
}

CallProblem PreparedCall::interpret(const CallArguments &arguments, const CallMemory &memory,
                                    tessera_call_interpreter interpreter) const {
  if (!interpreter)
    return {TESSERA_RUNTIME_INVALID_ARGUMENT, "there is no interpreter for tensors of the CPU"};
  auto note = [](const tessera_diagnostic *diagnostic, void *text) {
    if (diagnostic->severity == TESSERA_SEVERITY_ERROR)
      *static_cast<std::string *>(text) = diagnostic->message;
  };
  for (const Step &step : steps) {
    Arguments bound;
    if (CallProblem problem = bind(step, arguments, memory, bound))
      return problem;
    CallProblem problem{TESSERA_RUNTIME_INVALID_ARGUMENT, ""};
    if (interpreter(step.program, bound.data(), bound.size(), note, &problem.text))
      return problem;
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Families
//===----------------------------------------------------------------------===//

static int64_t getNumber(const CallLayout &layout, const tessera_call_number &number) {
  return (number.is_stride ? layout.strides : layout.extents)[number.dim];
}

CallFamily::CallFamily(const tessera_call_recipe &given, llvm::ArrayRef<CallTensor> tensors)
    : recipe(given), tensors(tensors), steps(given.steps, given.steps + given.step_count),
      results(given.results, given.results + given.result_count),
      temporaries(given.temporaries, given.temporaries + given.temporary_count),
      copies(given.copies, given.copies + given.copy_count),
      views(given.views, given.views + given.view_count),
      free(given.free, given.free + given.free_count),
      followings(given.followings, given.followings + given.following_count) {
  for (tessera_call_step &step : steps) {
    operands.emplace_back(step.operands, step.operands + step.operand_count);
    step.operands = operands.back().data(); // which moves with its vector
  }
  recipe.steps = steps.data();
  recipe.copies = copies.data();
  recipe.error = nullptr;
  isFree.resize(tensors.size());
  for (const tessera_call_free &each : free) {
    FreeNumbers &own = isFree[each.number.index];
    (each.number.is_stride ? own.strides : own.extents)[each.number.dim] = true;
  }
}

bool CallFamily::isAlike(size_t index, const CallLayout &other) const {
  const CallLayout &own = tensors[index].layout;
  if (own.type != other.type)
    return false;
  if (!own.type)
    return true;
  if (own.rank != other.rank || (own.is_aligned != 0) != (other.is_aligned != 0))
    return false;
  for (int32_t dim = 0; dim < own.rank; ++dim)
    if ((own.extents[dim] != other.extents[dim] && !isFree[index].extents[dim]) ||
        (own.strides[dim] != other.strides[dim] && !isFree[index].strides[dim]))
      return false;
  return true;
}

bool CallFamily::takes(llvm::ArrayRef<CallTensor> others) const {
  if (others.size() != tensors.size())
    return false;
  // Most families of a text differ in the first numbers already.
  for (auto [index, other] : llvm::enumerate(others))
    if (!isAlike(index, other.layout))
      return false;
  llvm::SmallVector<int64_t, 8> values;
  for (const tessera_call_free &each : free) {
    int64_t value = getNumber(others[each.number.index].layout, each.number);
    if (value < each.least || value > each.most || value % each.multiple ||
        (each.same >= 0 && values[each.same] != value))
      return false;
    values.push_back(value);
  }
  return true;
}

std::shared_ptr<const PreparedCall> CallFamily::prepare(const CallArguments &arguments) const {
  if (!takes(arguments.tensors))
    return nullptr;
  std::vector<CallLayout> ownResults = results, ownTemporaries = temporaries;
  std::vector<tessera_call_view> ownViews = views;
  for (const tessera_call_following &each : followings) {
    const CallLayout &source = arguments.tensors[free[each.free].number.index].layout;
    auto [kind, index, dim, isStride] = each.number;
    CallLayout &layout = kind == TESSERA_CALL_RESULT      ? ownResults[index]
                         : kind == TESSERA_CALL_TEMPORARY ? ownTemporaries[index]
                                                          : ownViews[index].layout;
    (isStride ? layout.strides : layout.extents)[dim] =
        each.factor * getNumber(source, free[each.free].number) + each.summand;
  }
  tessera_call_recipe own = recipe;
  own.results = ownResults.data();
  own.temporaries = ownTemporaries.data();
  own.views = ownViews.data();
  CallProblem problem; // Who asks the resolver gets it again.
  return PreparedCall::make(own, arguments, problem);
}

//===----------------------------------------------------------------------===//
// Finding
//===----------------------------------------------------------------------===//

CallKey tessera::makeCallKey(llvm::StringRef text, llvm::ArrayRef<CallTensor> tensors) {
  CallKey key(text);
  key.push_back('\0');
  auto append = [&](const int64_t *numbers, int32_t count) {
    key.append(llvm::StringRef(reinterpret_cast<const char *>(numbers), count * sizeof(int64_t)));
  };
  for (const CallTensor &tensor : tensors) {
    const CallLayout &layout = tensor.layout;
    key.push_back(static_cast<char>(layout.type));
    if (!tensor.isGiven())
      continue;
    key.push_back(static_cast<char>(layout.rank * 2 + (layout.is_aligned != 0)));
    append(layout.extents, layout.rank);
    append(layout.strides, layout.rank);
  }
  return key;
}

/// Guards what all PreparedCalls keep, also while the process forks: the child has no other thread
/// that would unlock it.
static std::mutex &getMutex() {
  static std::mutex &mutex = []() -> std::mutex & {
    auto *made = new std::mutex;
    pthread_atfork([] { getMutex().lock(); }, [] { getMutex().unlock(); },
                   [] { getMutex().unlock(); });
    return *made;
  }();
  return mutex;
}

std::shared_ptr<const PreparedCall> PreparedCalls::findKnown(const CallKey &key) const {
  std::lock_guard<std::mutex> lock(getMutex());
  return calls.lookup(key);
}

std::shared_ptr<const PreparedCall>
PreparedCalls::find(llvm::StringRef text, const CallArguments &arguments, CallProblem &problem) {
  if (auto alike = findAlike(text, arguments))
    return alike;
  unsigned before = generation;
  llvm::SmallVector<CallLayout, 8> layouts;
  for (const CallTensor &tensor : arguments.tensors)
    layouts.push_back(tensor.layout);
  // The resolver may wait for the compiler, and for Python's lock.
  tessera_call_recipe recipe = {};
  if (!resolver || resolver(text.str().c_str(), layouts.data(), layouts.size(), &recipe)) {
    problem.text = recipe.error ? recipe.error : "there is nothing that computes the call";
    return nullptr;
  }
  std::shared_ptr<const PreparedCall> call = PreparedCall::make(recipe, arguments, problem);
  if (!call || !recipe.is_final)
    return call;
  keep(makeCallKey(text, arguments.tensors), call, before);
  if (recipe.free_count)
    keep(text, std::make_shared<CallFamily>(recipe, arguments.tensors), before);
  return call;
}

std::shared_ptr<const PreparedCall> PreparedCalls::findAlike(llvm::StringRef text,
                                                             const CallArguments &arguments) {
  CallKey key = makeCallKey(text, arguments.tensors);
  if (auto known = findKnown(key))
    return known;
  unsigned before = generation;
  std::shared_ptr<const Families> candidates;
  {
    std::lock_guard<std::mutex> lock(getMutex());
    candidates = families.lookup(text);
  }
  if (!candidates)
    return nullptr;
  for (const auto &family : llvm::reverse(*candidates))
    if (auto call = family->prepare(arguments)) {
      keep(key, call, before);
      return call;
    }
  return nullptr;
}

void PreparedCalls::keep(const CallKey &key, std::shared_ptr<const PreparedCall> call,
                         unsigned since) {
  std::lock_guard<std::mutex> lock(getMutex());
  if (generation != since)
    return;
  if (calls.size() >= kMostCalls)
    calls.clear();
  calls[key] = std::move(call);
}

void PreparedCalls::keep(llvm::StringRef text, std::shared_ptr<const CallFamily> family,
                         unsigned since) {
  std::lock_guard<std::mutex> lock(getMutex());
  if (generation != since)
    return;
  if (families.size() >= kMostCalls)
    families.clear();
  std::shared_ptr<const Families> &known = families[text];
  auto own = known ? std::make_shared<Families>(*known) : std::make_shared<Families>();
  if (own->size() >= kMostFamilies)
    own->erase(own->begin());
  own->push_back(std::move(family));
  known = std::move(own);
}

void PreparedCalls::clear() {
  std::lock_guard<std::mutex> lock(getMutex());
  calls.clear();
  families.clear();
  ++generation;
}
