//===- Sequence.cpp - What calls of a sequence come to --------------------===//

#include "lib/Runtime/Sequence.h"

#include "lib/Runtime/Error.h"
#include "lib/Runtime/Launch.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace tessera::runtime;

/// Rows start at multiples of it, so that tensor maps and accesses of 16 bytes take them.
static constexpr uint64_t kRowBytes = 16;

llvm::Error tessera::runtime::deriveDims(const SequenceInfo &sequence, DimValues &dims) {
  for (const DerivedDim &dim : sequence.derivedDims) {
    int64_t product = 1;
    bool overflows = false;
    for (Extent factor : dim.factors)
      overflows |= llvm::MulOverflow(product, factor.evaluate(dims), product);
    int64_t extent = overflows ? 0 : llvm::divideCeil(static_cast<uint64_t>(product), dim.divisor);
    if (overflows || extent > std::numeric_limits<int32_t>::max())
      return makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                       "sequence '{0}': the extent '{1}' of its workspaces is 2^31 or more: split "
                       "the call",
                       sequence.name, dim.name);
    dims.push_back(extent);
  }
  return llvm::Error::success();
}

llvm::Error SequencePlan::addPart(const WorkspaceInfo &workspace, llvm::ArrayRef<int64_t> dims) {
  Part part{&workspace, llvm::alignTo(bytes, kAlignment), 0, {}, {}};
  for (Extent extent : workspace.dims)
    part.shape.push_back(extent.evaluate(dims));
  size_t rank = part.shape.size();
  part.strides.assign(rank, 1);
  uint64_t elements = rank > 1
                          ? llvm::alignTo(part.shape[rank - 1], kRowBytes / workspace.type->bytes)
                          : part.shape[0];
  for (size_t i = rank - 1; i-- > 0;) {
    part.strides[i] = static_cast<int64_t>(elements);
    elements = llvm::SaturatingMultiply<uint64_t>(elements, part.shape[i]);
    // Also of what is empty, so that no stride overflows.
    elements = std::min<uint64_t>(elements, kAddressSpace);
  }
  part.bytes = elements * workspace.type->bytes;
  bytes = part.offset + part.bytes;
  if (bytes >= kAddressSpace)
    return makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                     "sequence '{0}': the workspace '{1}' takes more than an address space: split "
                     "the call",
                     sequence.name, workspace.name);
  parts.push_back(std::move(part));
  return llvm::Error::success();
}

llvm::Error SequencePlan::resolve(llvm::ArrayRef<Argument> arguments) {
  DimValues dims;
  if (llvm::Error error = checkArguments(sequence, arguments, dims))
    return error;
  if (llvm::Error error = deriveDims(sequence, dims))
    return error;
  for (const WorkspaceInfo &workspace : sequence.workspaces)
    if (llvm::Error error = addPart(workspace, dims))
      return error;
  setLayout(arguments);
  return llvm::Error::success();
}

llvm::Expected<std::shared_ptr<const SequencePlan>>
SequencePlan::make(const SequenceInfo &sequence, llvm::ArrayRef<Argument> arguments) {
  std::shared_ptr<SequencePlan> plan(new SequencePlan(sequence));
  if (llvm::Error error = plan->resolve(arguments))
    return error;
  return plan;
}

llvm::Expected<std::shared_ptr<const SequencePlan>>
SequencePlan::make(const SequenceInfo &sequence, const BundleInfo &bundle,
                   llvm::ArrayRef<Argument> arguments) {
  std::shared_ptr<SequencePlan> plan(new SequencePlan(sequence));
  if (llvm::Error error = plan->resolve(arguments))
    return error;
  for (const StepInfo &step : sequence.steps) {
    // Where the memory lies does not matter yet.
    llvm::Expected<std::shared_ptr<const LaunchPlan>> launch =
        LaunchPlan::make(bundle.kernels[step.kernel], step.kernel,
                         plan->getArguments(step, arguments, plan->place(kAlignment)));
    if (!launch)
      return launch.takeError();
    plan->launches.push_back(std::move(*launch));
  }
  return plan;
}

llvm::SmallVector<Argument, 16>
SequencePlan::getArguments(const StepInfo &step, llvm::ArrayRef<Argument> arguments,
                           llvm::ArrayRef<uint64_t> addresses) const {
  llvm::SmallVector<Argument, 16> passed;
  for (unsigned operand : step.operands) {
    if (operand < arguments.size()) {
      passed.push_back(arguments[operand]);
      continue;
    }
    const Part &part = parts[operand - arguments.size()];
    Argument &argument = passed.emplace_back(Argument{});
    argument.pointer = addresses[operand - arguments.size()];
    argument.shape = part.shape.data();
    argument.strides = part.strides.data();
    argument.type = part.workspace->type->type;
    argument.rank = static_cast<int32_t>(part.shape.size());
  }
  return passed;
}

llvm::SmallVector<uint64_t, 8> SequencePlan::place(uint64_t memory) const {
  llvm::SmallVector<uint64_t, 8> addresses;
  for (const Part &part : parts)
    addresses.push_back(memory + part.offset);
  return addresses;
}
