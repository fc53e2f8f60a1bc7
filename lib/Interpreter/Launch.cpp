//===- Launch.cpp - What concrete arguments fix ---------------------------===//

#include "lib/Interpreter/Interpreter.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using tile::KernelOp;
using tile::ViewType;

/// Records the extent of a named dimension; an error when it has another already.
static LogicalResult bindDim(KernelOp kernel, unsigned argument, int64_t index, int64_t extent,
                             Launch &launch) {
  auto view = cast<ViewType>(kernel.getArgument(argument).getType());
  StringRef name = view.getDimName(index);
  int64_t expected;
  if (name.empty()) {
    expected = view.getStaticDim(index);
  } else {
    auto [it, isNew] = launch.dims.insert({name, extent});
    if (isNew)
      return success();
    expected = it->second;
  }
  if (extent == expected)
    return success();
  return kernel.emitError() << "dimension " << index << " of the tensor for '"
                            << kernel.getArgumentName(argument) << "' is " << extent << "; "
                            << (name.empty() ? "its view" : "an earlier argument") << " has "
                            << (name.empty() ? "" : name) << (name.empty() ? "" : " = ")
                            << expected;
}

static LogicalResult bindView(KernelOp kernel, unsigned argument, const KernelArgument &value,
                              Launch &launch) {
  StringRef name = kernel.getArgumentName(argument);
  auto view = cast<ViewType>(kernel.getArgument(argument).getType());
  if (!std::holds_alternative<HostTensor *>(value))
    return kernel.emitError() << "argument '" << name << "' is a view and takes a tensor";
  const HostTensor &tensor = *std::get<HostTensor *>(value);
  if (static_cast<int64_t>(tensor.shape.size()) != view.getRank())
    return kernel.emitError() << "the tensor for '" << name << "' has rank " << tensor.shape.size()
                              << ", its view " << view << " rank " << view.getRank();
  if (std::string problem = tensor.check(); !problem.empty())
    return kernel.emitError() << "the tensor for '" << name << "' " << problem;
  if (tensor.shape.back() > 1 && tensor.strides.back() != 1)
    return kernel.emitError() << "the tensor for '" << name << "' has the stride "
                              << tensor.strides.back()
                              << " along its innermost dimension, which is contiguous in a view";
  for (int64_t i = 0; i < view.getRank(); ++i)
    if (failed(bindDim(kernel, argument, i, tensor.shape[i], launch)))
      return failure();
  return success();
}

static LogicalResult checkScalar(KernelOp kernel, unsigned argument, const KernelArgument &value) {
  Type type = kernel.getArgument(argument).getType();
  bool isFloat = isa<FloatType>(type);
  if (isFloat ? std::holds_alternative<double>(value) : std::holds_alternative<int64_t>(value))
    return success();
  return kernel.emitError() << "argument '" << kernel.getArgumentName(argument) << "' is " << type
                            << " and takes " << (isFloat ? "a floating-point" : "an integer")
                            << " scalar";
}

static LogicalResult checkDivides(KernelOp kernel, tile::DividesAttr divides,
                                  const Launch &launch) {
  StringRef divisorName = divides.getDivisor().getValue(),
            dividendName = divides.getDividend().getValue();
  int64_t divisor = launch.dims.lookup(divisorName), dividend = launch.dims.lookup(dividendName);
  int64_t product = divides.getFactor() * divisor;
  if (product == 0 ? dividend == 0 : dividend % product == 0)
    return success();
  std::string factor = divides.getFactor() == 1 ? "" : std::to_string(divides.getFactor()) + " * ";
  return kernel.emitError() << "requires that " << factor << divisorName << " divides "
                            << dividendName << ", got " << divisorName << " = " << divisor
                            << " and " << dividendName << " = " << dividend;
}

static LogicalResult checkRequirements(KernelOp kernel, const Launch &launch) {
  std::optional<ArrayAttr> requirements = kernel.getRequirements();
  if (!requirements)
    return success();
  for (Attribute requirement : *requirements) {
    auto atMost = dyn_cast<tile::AtMostAttr>(requirement);
    if (!atMost) {
      if (failed(checkDivides(kernel, cast<tile::DividesAttr>(requirement), launch)))
        return failure();
      continue;
    }
    StringRef name = atMost.getDim().getValue();
    if (launch.dims.lookup(name) > atMost.getBound())
      return kernel.emitError() << "requires that " << name << " is at most " << atMost.getBound()
                                << ", got " << launch.dims.lookup(name);
  }
  return success();
}

/// Passes rely on what tile.dim promises. A launch without grid points runs nothing and may have
/// empty dimensions.
static LogicalResult checkExtents(KernelOp kernel, const Launch &launch) {
  bool isEmpty = llvm::is_contained(launch.grid, 0);
  for (const auto &[name, extent] : launch.dims)
    if (extent > INT32_MAX || (extent < 1 && !isEmpty))
      return kernel.emitError() << "dimension " << name << " is " << extent
                                << "; an extent is at least 1 and below 2^31";
  return success();
}

FailureOr<Launch> tessera::resolveLaunch(KernelOp kernel, ArrayRef<KernelArgument> arguments) {
  if (arguments.size() != kernel.getNumArguments())
    return kernel.emitError() << "takes " << kernel.getNumArguments() << " arguments, got "
                              << arguments.size();
  Launch launch;
  for (auto [i, value] : llvm::enumerate(arguments)) {
    bool isView = isa<ViewType>(kernel.getArgument(i).getType());
    if (failed(isView ? bindView(kernel, i, value, launch) : checkScalar(kernel, i, value)))
      return failure();
  }
  for (unsigned i = 0; i < kernel.getGridRank(); ++i) {
    tile::GridDimAttr dim = kernel.getGridDim(i);
    int64_t extent;
    if (auto name = dyn_cast<StringAttr>(dim.getExtent()))
      extent = launch.dims.lookup(name.getValue());
    else
      extent = cast<IntegerAttr>(dim.getExtent()).getInt();
    if (extent < 0)
      return kernel.emitError() << "grid dimension " << i << " has the negative extent " << extent;
    launch.grid.push_back(llvm::divideCeil(static_cast<uint64_t>(extent), dim.getDivisor()));
  }
  if (failed(checkExtents(kernel, launch)) || failed(checkRequirements(kernel, launch)))
    return failure();
  return launch;
}

ViewUse tessera::getViewUse(KernelOp kernel, unsigned index) {
  ViewUse use;
  for (Operation *user : kernel.getArgument(index).getUsers()) {
    auto store = dyn_cast<tile::StoreOp>(user);
    use.added |= store && store.getAdd();
    use.loaded |= isa<tile::LoadOp, tile::GatherOp>(user) || use.added;
    use.stored |= store != nullptr;
  }
  return use;
}
