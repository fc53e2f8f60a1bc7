//===- LaunchPlan.cpp - What calls of one layout share --------------------===//

#include "lib/Runtime/LaunchPlan.h"

#include "lib/Runtime/Launch.h"

using namespace tessera::runtime;

/// An odd number without a pattern (2^64 over the golden ratio).
static constexpr uint64_t kFactor = 0x9E3779B97F4A7C15;

static uint64_t mix(uint64_t mixed, uint64_t word) {
  mixed = (mixed ^ word) * kFactor;
  return mixed ^ mixed >> 32;
}

uint64_t tessera::runtime::hashLayout(const Argument &argument, uint64_t other) {
  uint64_t mixed = mix(0, other);
  for (int32_t i = 0; i < argument.rank; ++i)
    mixed = mix(mixed, argument.shape[i] ^ static_cast<uint64_t>(argument.strides[i]) << 32);
  return mixed;
}

std::optional<uint64_t> tessera::runtime::hashLayouts(const Signature &callee,
                                                      llvm::ArrayRef<Argument> arguments) {
  if (arguments.size() != callee.arguments.size())
    return std::nullopt;
  uint64_t mixed = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ArgumentInfo &info = callee.arguments[i];
    const Argument &argument = arguments[i];
    if (argument.type != info.type->type)
      return std::nullopt;
    if (!info.isView)
      continue;
    if (argument.rank != static_cast<int64_t>(info.dims.size()) || !argument.shape ||
        !argument.strides)
      return std::nullopt;
    // Views are mixed by themselves, which a processor does for several of them at once.
    mixed = mix(mixed, hashLayout(argument));
  }
  return mixed;
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

static bool isOfLaunch(const LaunchParameter &parameter) {
  return parameter.kind != ParameterKind::Dim && parameter.kind != ParameterKind::Stride;
}

llvm::Expected<std::shared_ptr<const LaunchPlan>>
LaunchPlan::make(const KernelInfo &kernel, unsigned index, llvm::ArrayRef<Argument> arguments) {
  std::shared_ptr<LaunchPlan> plan(new LaunchPlan(kernel, index));
  if (llvm::Error error = checkArguments(kernel, arguments, plan->dims))
    return error;
  if (llvm::Error error = computeGrid(kernel, plan->dims).moveInto(plan->grid))
    return error;
  if (llvm::Error error = countWorkspaceBytes(kernel, plan->dims).moveInto(plan->workspaceBytes))
    return error;
  if (plan->isEmpty())
    return plan;
  ParameterBlock block(kernel);
  if (llvm::Error error = block.fillLayout(arguments, plan->dims))
    return error;
  llvm::ArrayRef<char> bytes = block.getBytes();
  plan->parameters.assign(bytes.begin(), bytes.end());
  for (const LaunchParameter &parameter : kernel.parameters)
    if (isOfLaunch(parameter))
      plan->ofLaunch.push_back(&parameter);
  plan->setLayout(arguments);
  return plan;
}

void CallPlan::setLayout(llvm::ArrayRef<Argument> arguments) {
  for (unsigned i = 0; i < arguments.size(); ++i) {
    const ArgumentInfo &info = callee.arguments[i];
    if (info.above)
      bounded.push_back(i);
    if (!info.isView)
      continue;
    bool isWritten = info.access != Access::Read;
    views.push_back({i, info.alignment - 1, countSpan(info, arguments[i]), isWritten});
    isFolded |= isWritten && sharesWithItself(info, arguments[i]);
    for (const int64_t *numbers : {arguments[i].shape, arguments[i].strides})
      layout.append(numbers, numbers + info.dims.size());
  }
}

bool CallPlan::hasLayout(llvm::ArrayRef<Argument> arguments) const {
  const int64_t *expected = layout.data();
  for (const View &view : views) {
    const Argument &argument = arguments[view.argument];
    for (const int64_t *numbers : {argument.shape, argument.strides})
      for (int32_t i = 0; i < argument.rank; ++i)
        if (numbers[i] != *expected++)
          return false;
  }
  return true;
}

bool CallPlan::areAligned(llvm::ArrayRef<Argument> arguments) const {
  for (const View &view : views)
    if (uint64_t address = arguments[view.argument].pointer; !address || address & view.lowBits)
      return false;
  return true;
}

bool CallPlan::takesScalars(llvm::ArrayRef<Argument> arguments) const {
  return llvm::all_of(bounded,
                      [&](unsigned i) { return takesScalar(callee.arguments[i], arguments[i]); });
}

bool CallPlan::areApart(llvm::ArrayRef<Argument> arguments) const {
  if (isFolded)
    return false;
  for (const View &written : views) {
    if (!written.isWritten)
      continue;
    for (const View &other : views) {
      auto distance = static_cast<int64_t>(arguments[other.argument].pointer -
                                           arguments[written.argument].pointer);
      if (&other != &written && distance < written.bytes && distance > -other.bytes)
        return false;
    }
  }
  return true;
}

std::shared_ptr<const CallPlan> CallPlans::find(uint64_t hash, llvm::ArrayRef<Argument> arguments) {
  std::lock_guard<std::mutex> lock(mutex);
  const std::shared_ptr<const CallPlan> &plan = slots[hash % slots.size()];
  return plan && plan->hasLayout(arguments) ? plan : nullptr;
}

void CallPlans::insert(uint64_t hash, std::shared_ptr<const CallPlan> plan) {
  std::lock_guard<std::mutex> lock(mutex);
  std::swap(slots[hash % slots.size()], plan);
}
