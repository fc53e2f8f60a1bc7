//===- Launch.cpp - What concrete arguments fix ---------------------------===//

#include "lib/Interpreter/Interpreter.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
using tile::EntryOpInterface;
using tile::KernelOp;
using tile::ViewType;

/// Records the extent of a named dimension; an error when it has another already.
static LogicalResult bindDim(EntryOpInterface entry, unsigned argument, int64_t index,
                             int64_t extent, Launch &launch) {
  auto view = cast<ViewType>(entry.getArgument(argument).getType());
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
  return entry.emitError() << "dimension " << index << " of the tensor for '"
                           << entry.getArgumentName(argument) << "' is " << extent << "; "
                           << (name.empty() ? "its view" : "an earlier argument") << " has "
                           << (name.empty() ? "" : name) << (name.empty() ? "" : " = ") << expected;
}

static LogicalResult bindView(EntryOpInterface entry, unsigned argument,
                              const KernelArgument &value, Launch &launch) {
  StringRef name = entry.getArgumentName(argument);
  auto view = cast<ViewType>(entry.getArgument(argument).getType());
  if (!std::holds_alternative<HostTensor *>(value))
    return entry.emitError() << "argument '" << name << "' is a view and takes a tensor";
  const HostTensor &tensor = *std::get<HostTensor *>(value);
  if (static_cast<int64_t>(tensor.shape.size()) != view.getRank())
    return entry.emitError() << "the tensor for '" << name << "' has rank " << tensor.shape.size()
                             << ", its view " << view << " rank " << view.getRank();
  if (std::string problem = tensor.check(); !problem.empty())
    return entry.emitError() << "the tensor for '" << name << "' " << problem;
  if (tensor.shape.back() > 1 && tensor.strides.back() != 1)
    return entry.emitError() << "the tensor for '" << name << "' has the stride "
                             << tensor.strides.back()
                             << " along its innermost dimension, which is contiguous in a view";
  for (int64_t i = 0; i < view.getRank(); ++i)
    if (failed(bindDim(entry, argument, i, tensor.shape[i], launch)))
      return failure();
  return success();
}

static LogicalResult checkScalar(EntryOpInterface entry, unsigned argument,
                                 const KernelArgument &value) {
  Type type = entry.getArgument(argument).getType();
  bool isFloat = isa<FloatType>(type);
  if (isFloat ? std::holds_alternative<double>(value) : std::holds_alternative<int64_t>(value))
    return success();
  return entry.emitError() << "argument '" << entry.getArgumentName(argument) << "' is " << type
                           << " and takes " << (isFloat ? "a floating-point" : "an integer")
                           << " scalar";
}

static LogicalResult checkDivides(KernelOp kernel, tile::DividesAttr divides,
                                  const Launch &launch) {
  StringRef divisorName = divides.getDivisor().getValue(),
            dividendName = divides.getDividend().getValue();
  bool isNumber = divisorName.empty();
  int64_t divisor = isNumber ? 1 : launch.dims.lookup(divisorName),
          dividend = launch.dims.lookup(dividendName);
  int64_t product = divides.getFactor() * divisor;
  if (product == 0 ? dividend == 0 : dividend % product == 0)
    return success();
  if (isNumber)
    return kernel.emitError() << "requires that " << product << " divides " << dividendName
                              << ", got " << dividendName << " = " << dividend;
  std::string factor = divides.getFactor() == 1 ? "" : std::to_string(divides.getFactor()) + " * ";
  return kernel.emitError() << "requires that " << factor << divisorName << " divides "
                            << dividendName << ", got " << divisorName << " = " << divisor
                            << " and " << dividendName << " = " << dividend;
}

/// With as many digits as tell small numbers from 0.
static std::string describe(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", value);
  return text;
}

/// What is asked of scalars, in the precision in which a launch passes them.
static LogicalResult checkScalars(KernelOp kernel, ArrayRef<KernelArgument> arguments) {
  std::optional<ArrayAttr> requirements = kernel.getRequirements();
  if (!requirements)
    return success();
  for (Attribute requirement : *requirements) {
    auto above = dyn_cast<tile::AboveAttr>(requirement);
    if (!above)
      continue;
    auto found = llvm::find(kernel.getArgumentNames(), above.getArgument());
    unsigned index = found - kernel.getArgumentNames().begin();
    double value =
        roundToType(kernel.getArgument(index).getType(), std::get<double>(arguments[index]));
    if (!(value > above.getBound().getValueAsDouble()) || !std::isfinite(value))
      return kernel.emitError() << "argument '" << above.getArgument().getValue() << "' is "
                                << describe(value) << "; the kernel takes finite numbers above "
                                << describe(above.getBound().getValueAsDouble());
  }
  return success();
}

static LogicalResult checkRequirements(KernelOp kernel, const Launch &launch) {
  std::optional<ArrayAttr> requirements = kernel.getRequirements();
  if (!requirements)
    return success();
  for (Attribute requirement : *requirements) {
    if (auto divides = dyn_cast<tile::DividesAttr>(requirement))
      if (failed(checkDivides(kernel, divides, launch)))
        return failure();
    auto atMost = dyn_cast<tile::AtMostAttr>(requirement);
    if (!atMost)
      continue;
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
  for (const auto &[name, extent] : launch.dims)
    if (extent > INT32_MAX || (extent < 1 && !launch.isEmpty))
      return kernel.emitError() << "dimension " << name << " is " << extent
                                << "; an extent is at least 1 and below 2^31";
  return success();
}

/// The extents of the arguments and what else does not depend on a grid.
static FailureOr<Launch> bindArguments(EntryOpInterface entry, ArrayRef<KernelArgument> arguments) {
  if (arguments.size() != entry.getNumArguments())
    return entry.emitError() << "takes " << entry.getNumArguments() << " arguments, got "
                             << arguments.size();
  Launch launch;
  for (auto [i, value] : llvm::enumerate(arguments)) {
    bool isView = isa<ViewType>(entry.getArgument(i).getType());
    if (failed(isView ? bindView(entry, i, value, launch) : checkScalar(entry, i, value)))
      return failure();
  }
  return launch;
}

/// Completes the launch of a kernel whose dimensions are known.
static LogicalResult completeLaunch(KernelOp kernel, Launch &launch) {
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
  launch.isEmpty = llvm::is_contained(launch.grid, 0);
  return failure(failed(checkExtents(kernel, launch)) || failed(checkRequirements(kernel, launch)));
}

/// What the kernel of a launch makes of the extents of its sequence.
static Launch bindOperands(tile::LaunchOp op, const Launch &sequence) {
  Launch launch;
  for (auto [operand, argument] :
       llvm::zip(op.getOperands(), op.getKernelOp().getBody().getArguments())) {
    auto view = dyn_cast<ViewType>(argument.getType());
    for (int64_t i = 0; view && i < view.getRank(); ++i) {
      StringRef name = view.getDimName(i);
      if (!name.empty())
        launch.dims.insert({name, getExtent(cast<ViewType>(operand.getType()), i, sequence)});
    }
  }
  return launch;
}

FailureOr<Launch> tessera::resolveLaunch(tile::LaunchOp op, const Launch &sequence) {
  Launch launch = bindOperands(op, sequence);
  if (failed(completeLaunch(op.getKernelOp(), launch)))
    return failure();
  return launch;
}

/// Derives extents, and holds every kernel against those that it gets.
static LogicalResult completeLaunch(tile::SequenceOp sequence, Launch &launch) {
  for (tile::DerivedDimAttr dim : sequence.getDerivedDimAttrs()) {
    std::optional<int64_t> extent =
        dim.evaluate([&](StringRef name) { return launch.dims.lookup(name); });
    if (!extent)
      return sequence.emitError() << "the extent '" << dim.getName().getValue()
                                  << "' of its workspaces is 2^31 or more";
    launch.dims.insert({dim.getName().getValue(), *extent});
  }
  launch.isEmpty = true;
  for (auto op : sequence.getOps<tile::LaunchOp>()) {
    FailureOr<Launch> own = resolveLaunch(op, launch);
    if (failed(own))
      return failure();
    launch.isEmpty &= own->isEmpty;
  }
  return success();
}

static FailureOr<Launch> completeLaunch(EntryOpInterface entry, Launch launch) {
  auto sequence = dyn_cast<tile::SequenceOp>(*entry);
  if (failed(sequence ? completeLaunch(sequence, launch)
                      : completeLaunch(cast<KernelOp>(*entry), launch)))
    return failure();
  return launch;
}

FailureOr<Launch> tessera::resolveLaunch(EntryOpInterface entry,
                                         ArrayRef<KernelArgument> arguments) {
  FailureOr<Launch> launch = bindArguments(entry, arguments);
  if (failed(launch))
    return failure();
  if (auto kernel = dyn_cast<KernelOp>(*entry); kernel && failed(checkScalars(kernel, arguments)))
    return failure();
  return completeLaunch(entry, std::move(*launch));
}

FailureOr<Launch> tessera::resolveLaunch(EntryOpInterface entry,
                                         const llvm::StringMap<int64_t> &extents) {
  Launch launch;
  for (StringRef name : entry.getDimNames())
    launch.dims.insert({name, extents.lookup(name)});
  return completeLaunch(entry, std::move(launch));
}

int64_t tessera::getExtent(ViewType view, int64_t dim, const Launch &launch) {
  StringRef name = view.getDimName(dim);
  return name.empty() ? view.getStaticDim(dim) : launch.dims.lookup(name);
}
