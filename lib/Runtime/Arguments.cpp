//===- Arguments.cpp - Checking arguments against a description -----------===//
//
// Runs on each launch of a layout that is new, so the way of valid arguments neither allocates nor
// formats.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Error.h"
#include "lib/Runtime/Launch.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <limits>

using namespace tessera::runtime;

/// Extents, coordinates and grids are 32-bit numbers with a sign.
static constexpr int64_t kMaxExtent = std::numeric_limits<int32_t>::max();

namespace {

/// Checks one argument. The messages begin with the names of what is launched and of the argument.
class ArgumentChecker {
public:
  ArgumentChecker(const Signature &callee, unsigned index, const Argument &argument)
      : callee(callee), info(callee.arguments[index]), argument(argument) {}

  llvm::Error checkType() const;
  llvm::Error checkScalar() const;
  llvm::Error bindDims(DimValues &dims) const;
  llvm::Error checkLayout() const;

private:
  template <typename... Args>
  llvm::Error fail(tessera_runtime_status status, const char *format, Args &&...args) const {
    return makeError(status, "{0} '{1}': argument '{2}': {3}", callee.kind, callee.name, info.name,
                     llvm::formatv(format, std::forward<Args>(args)...).str());
  }
  llvm::Error checkStride(size_t dim) const;
  bool isEmpty() const {
    return llvm::is_contained(llvm::ArrayRef(argument.shape, info.dims.size()), 0);
  }

  const Signature &callee;
  const ArgumentInfo &info;
  const Argument &argument;
};

} // namespace

llvm::Error ArgumentChecker::checkType() const {
  if (argument.type == info.getCode())
    return llvm::Error::success();
  const tessera::ElementType *scalar = tessera::getScalarType(argument.type);
  const tessera::ElementType *given = scalar ? scalar : tessera::getElementType(argument.type);
  return fail(TESSERA_RUNTIME_TYPE_MISMATCH, "is {0} of {1}; the {2} takes {3} of {4}",
              scalar ? "a scalar" : "a tensor", given ? given->name : "unknown type", callee.kind,
              info.isView ? "a tensor" : "a scalar", info.type->name);
}

bool tessera::runtime::takesScalar(const ArgumentInfo &info, const Argument &argument) {
  return !info.above || (argument.scalar.f32 > *info.above && std::isfinite(argument.scalar.f32));
}

/// With digits that tell small numbers from 0.
static std::string describe(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", value);
  return text;
}

llvm::Error ArgumentChecker::checkScalar() const {
  if (takesScalar(info, argument))
    return llvm::Error::success();
  return fail(TESSERA_RUNTIME_INVALID_ARGUMENT, "is {0}; the {1} takes finite numbers above {2}",
              describe(argument.scalar.f32), callee.kind, describe(*info.above));
}

/// The dimensions of a view: as numbers where `dims` has them, else by name.
static std::string describeDims(const Signature &callee, const ArgumentInfo &info,
                                const DimValues *dims = nullptr) {
  std::string text = "[";
  llvm::interleave(
      info.dims,
      [&](Extent extent) {
        bool isNamed = extent.dim >= 0 && (!dims || (*dims)[extent.dim] < 0);
        text += isNamed ? callee.dims[extent.dim]
                        : std::to_string(extent.dim < 0 ? extent.constant : (*dims)[extent.dim]);
      },
      [&] { text += ", "; });
  return text + "]";
}

/// Compares extents with constants and with what earlier arguments gave for the same name.
llvm::Error ArgumentChecker::bindDims(DimValues &dims) const {
  size_t rank = info.dims.size();
  if (argument.rank != static_cast<int64_t>(rank) || !argument.shape || !argument.strides)
    return fail(TESSERA_RUNTIME_INVALID_ARGUMENT, "has rank {0}; the {1} takes rank {2}, {3}",
                argument.rank, callee.kind, rank, describeDims(callee, info));
  for (size_t i = 0; i < rank; ++i) {
    int64_t extent = argument.shape[i];
    if (extent < 0 || extent > kMaxExtent)
      return fail(TESSERA_RUNTIME_INVALID_ARGUMENT,
                  "dimension {0} has extent {1}; an extent is at least 1 and below 2^31", i,
                  extent);
    Extent expected = info.dims[i];
    if (expected.dim < 0) {
      if (extent != expected.constant)
        return fail(TESSERA_RUNTIME_INVALID_ARGUMENT,
                    "dimension {0} has extent {1}; this {2} is compiled for {3} there, {4}", i,
                    extent, callee.kind, expected.constant, describeDims(callee, info));
      continue;
    }
    int64_t &bound = dims[expected.dim];
    if (bound >= 0 && bound != extent)
      return fail(TESSERA_RUNTIME_INVALID_ARGUMENT,
                  "dimension {0}, '{1}', has extent {2}, but '{1}' is {3} in an earlier argument; "
                  "the {4} takes {5}, which is {6} here",
                  i, callee.dims[expected.dim], extent, bound, callee.kind,
                  describeDims(callee, info), describeDims(callee, info, &dims));
    bound = extent;
  }
  return llvm::Error::success();
}

llvm::Error ArgumentChecker::checkStride(size_t dim) const {
  int64_t stride = argument.strides[dim];
  bool innermost = dim + 1 == info.dims.size();
  if (innermost && stride != 1)
    return fail(
        TESSERA_RUNTIME_INVALID_ARGUMENT,
        "the innermost dimension has stride {0}; its elements must be contiguous (stride 1): "
        "pass a copy with that layout",
        stride);
  if (stride < 0)
    return fail(TESSERA_RUNTIME_INVALID_ARGUMENT,
                "dimension {0} has stride {1}; strides are not negative", dim, stride);
  if (stride == 0 && info.access != Access::Read)
    return fail(TESSERA_RUNTIME_INVALID_ARGUMENT,
                "dimension {0} has stride 0, so that results would overwrite each other; pass a "
                "tensor that is not expanded",
                dim);
  int64_t bytes = 0, span = 0;
  if (llvm::MulOverflow<int64_t>(stride, info.type->bytes, bytes) ||
      llvm::MulOverflow<int64_t>(bytes, argument.shape[dim], span) || span > kAddressSpace)
    return fail(TESSERA_RUNTIME_INVALID_ARGUMENT,
                "dimension {0} has extent {1} and stride {2}, more than an address space", dim,
                argument.shape[dim], stride);
  if (!innermost && bytes % info.alignment)
    return fail(
        TESSERA_RUNTIME_INVALID_ARGUMENT,
        "dimension {0} has stride {1} ({2} bytes); strides must be multiples of {3} elements "
        "({4} bytes): pad the dimension inside it",
        dim, stride, bytes, info.alignment / info.type->bytes, info.alignment);
  return llvm::Error::success();
}

llvm::Error ArgumentChecker::checkLayout() const {
  if (isEmpty())
    return llvm::Error::success();
  if (!argument.pointer)
    return fail(TESSERA_RUNTIME_INVALID_ARGUMENT, "the address is null; pass a device address");
  if (argument.pointer % info.alignment)
    return fail(TESSERA_RUNTIME_INVALID_ARGUMENT,
                "the address {0:x} is no multiple of {1} bytes; pass a tensor that begins at one",
                argument.pointer, info.alignment);
  for (size_t i = 0; i < info.dims.size(); ++i)
    if (argument.shape[i] > 1)
      if (llvm::Error error = checkStride(i))
        return error;
  return llvm::Error::success();
}

/// The first argument with an extent of dimension `dim`, which some argument has.
static const ArgumentInfo &findArgument(const Signature &callee, unsigned dim) {
  return *llvm::find_if(callee.arguments, [&](const ArgumentInfo &info) {
    return llvm::any_of(info.dims, [&](const auto &own) { return own.dim == int(dim); });
  });
}

static llvm::Error checkRequirements(const Signature &callee, llvm::ArrayRef<int64_t> dims) {
  for (Bound bound : callee.bounds)
    if (dims[bound.dim] > bound.most)
      return makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                       "{0} '{1}': '{2}' of argument '{3}' is {4} and must be at most {5}, as its "
                       "tiles or tensor maps reach no further",
                       callee.kind, callee.name, callee.dims[bound.dim],
                       findArgument(callee, bound.dim).name, dims[bound.dim], bound.most);
  for (Requirement requirement : callee.requirements) {
    int64_t dividend = dims[requirement.dividend];
    if (!requirement.divisor && dividend % requirement.factor != 0)
      return makeError(
          TESSERA_RUNTIME_INVALID_ARGUMENT,
          "{0} '{1}': '{2}' is {3} and must be a multiple of {4}: its source requires it, "
          "or bulk stores do, which write 16 bytes at a time; for these use store = direct",
          callee.kind, callee.name, callee.dims[requirement.dividend], dividend,
          requirement.factor);
    if (!requirement.divisor)
      continue;
    int64_t divisor = dims[*requirement.divisor];
    int64_t product = requirement.factor * divisor;
    std::string factor =
        requirement.factor == 1 ? "" : std::to_string(requirement.factor) + " times ";
    if (dividend != 0 && (product == 0 || dividend % product != 0))
      return makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                       "{0} '{1}': '{2}' is {3} and '{4}' is {5}; {6}'{2}' must divide '{4}'",
                       callee.kind, callee.name, callee.dims[*requirement.divisor], divisor,
                       callee.dims[requirement.dividend], dividend, factor);
  }
  return llvm::Error::success();
}

llvm::Error tessera::runtime::checkArguments(const Signature &callee,
                                             llvm::ArrayRef<Argument> arguments, DimValues &dims) {
  if (arguments.size() != callee.arguments.size())
    return makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                     "{0} '{1}' takes {2} arguments; {3} were given", callee.kind, callee.name,
                     callee.arguments.size(), arguments.size());
  dims.assign(callee.dims.size(), -1);
  for (unsigned i = 0; i < arguments.size(); ++i) {
    ArgumentChecker checker(callee, i, arguments[i]);
    if (llvm::Error error = checker.checkType())
      return error;
    if (!callee.arguments[i].isView) {
      if (llvm::Error error = checker.checkScalar())
        return error;
      continue;
    }
    if (llvm::Error error = checker.bindDims(dims))
      return error;
    if (llvm::Error error = checker.checkLayout())
      return error;
  }
  return checkRequirements(callee, dims);
}

/// Blocks of a launch in each dimension (CUDA C++ Programming Guide, "Technical Specifications per
/// Compute Capability").
static constexpr int64_t kMaxBlocks[] = {std::numeric_limits<int32_t>::max(), 65535, 65535};

/// Checks the blocks of a kernel of which each has its place in the grid.
static llvm::Error checkGrid(const KernelInfo &kernel, const std::array<int64_t, 3> &grid) {
  for (unsigned i = 0; i < 3; ++i) {
    if (grid[i] > kMaxBlocks[i])
      return makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                       "kernel '{0}': the grid has {1} blocks in dimension {2}; the hardware takes "
                       "at most {3}: split the call",
                       kernel.name, grid[i], "xyz"[i], kMaxBlocks[i]);
  }
  return llvm::Error::success();
}

/// Makes one number of the grid that a persistent kernel walks over, or that a launch has in x.
static llvm::Error flattenGrid(const KernelInfo &kernel, std::array<int64_t, 3> &grid) {
  uint64_t total = 1;
  for (int64_t tiles : grid)
    total = llvm::SaturatingMultiply<uint64_t>(total, tiles);
  if (total > kMaxExtent)
    return makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                     "kernel '{0}': the grid has {1} x {2} x {3} tiles; a launch counts at most "
                     "{4} in all: split the call",
                     kernel.name, grid[0], grid[1], grid[2], kMaxExtent);
  grid = {static_cast<int64_t>(total), 1, 1};
  return llvm::Error::success();
}

llvm::Expected<std::array<unsigned, 3>>
tessera::runtime::computeGrid(const KernelInfo &kernel, llvm::ArrayRef<int64_t> dims) {
  std::array<int64_t, 3> grid;
  for (auto [blocks, dim] : llvm::zip_equal(grid, kernel.grid))
    blocks = llvm::divideCeil(dim.extent.evaluate(dims), dim.divisor);
  if (!kernel.persistent)
    for (auto [blocks, cluster] : llvm::zip_equal(grid, kernel.cluster))
      blocks *= cluster;
  bool isFlat = kernel.flat && (grid[1] > kMaxBlocks[1] || grid[2] > kMaxBlocks[2]);
  if (llvm::Error error =
          kernel.persistent || isFlat ? flattenGrid(kernel, grid) : checkGrid(kernel, grid))
    return error;
  if (llvm::is_contained(grid, 0))
    return std::array<unsigned, 3>{0, 0, 0};
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] == 0)
      return makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                       "kernel '{0}': the extent '{1}' is 0; an extent is at least 1", kernel.name,
                       kernel.dims[i]);
  return std::array<unsigned, 3>{static_cast<unsigned>(grid[0]), static_cast<unsigned>(grid[1]),
                                 static_cast<unsigned>(grid[2])};
}

llvm::Expected<uint64_t> tessera::runtime::countWorkspaceBytes(const KernelInfo &kernel,
                                                               llvm::ArrayRef<int64_t> dims) {
  constexpr uint64_t most = std::numeric_limits<int32_t>::max();
  uint64_t tickets = 0;
  for (const TicketedView &view : kernel.ticketed) {
    uint64_t tiles = 1;
    for (const GridDim &dim : view) {
      tiles *= llvm::divideCeil(dim.extent.evaluate(dims), dim.divisor);
      if (tiles > most)
        break;
    }
    tickets += tiles;
    if (tickets > most)
      return makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                       "kernel '{0}': the tiles that it adds to in a fixed order are 2^31 or more: "
                       "split the call",
                       kernel.name);
  }
  return kernel.workspaceBytes + 4 * tickets;
}
