//===- ShapeClass.cpp - Classes of shapes that share a schedule -----------===//

#include "lib/Database/ShapeClass.h"
#include "lib/Support/Fail.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/Schedule/LoopOverlap.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tuning;
using llvm::Error;
using llvm::Expected;
using llvm::Twine;

static constexpr StringRef kOccupancies[] = {"few", "many"};
static constexpr StringRef kLengths[] = {"short", "medium", "long"};

/// Iterations from which a shape is of class medium and of class long: about 2k and 8k keys with 64
/// to 128 a step. A convention (docs/tuning.md), not measured.
static constexpr int64_t kMediumIterations = 24, kLongIterations = 96;

SmallVector<int64_t> tessera::tuning::getLengths() { return {kMediumIterations, kLongIterations}; }

std::string tessera::tuning::getShapeClass(const ShapeMeasure &measure, unsigned multiprocessors) {
  unsigned length =
      llvm::count_if(getLengths(), [&](int64_t least) { return measure.iterations >= least; });
  return (kOccupancies[measure.tiles > multiprocessors] + "-" + kLengths[length]).str();
}

bool tessera::tuning::hasFewTiles(StringRef shapeClass) {
  return shapeClass.starts_with(kOccupancies[0]);
}

SmallVector<std::string> tessera::tuning::getShapeClasses() {
  SmallVector<std::string> classes;
  for (StringRef occupancy : kOccupancies)
    for (StringRef length : kLengths)
      classes.push_back((occupancy + "-" + length).str());
  return classes;
}

namespace {
/// Computes scalars of a kernel in one tile, by folding the operations behind them.
class ScalarEvaluator {
public:
  ScalarEvaluator(const llvm::StringMap<int64_t> &dims) : dims(dims) {}

  void set(Value value, int64_t number) {
    known[value] = Builder(value.getContext()).getIndexAttr(number);
  }
  /// The integer, or nothing when it depends on more than extents and the tile.
  std::optional<int64_t> evaluate(Value value) {
    auto integer = dyn_cast_or_null<IntegerAttr>(fold(value));
    return integer ? std::optional(integer.getValue().getSExtValue()) : std::nullopt;
  }

private:
  Attribute fold(Value value) {
    if (auto found = known.find(value); found != known.end())
      return found->second;
    Attribute result = foldResult(value);
    known[value] = result;
    return result;
  }
  Attribute foldResult(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getNumRegions() != 0)
      return {};
    if (auto dim = dyn_cast<tile::DimOp>(op))
      return Builder(op->getContext()).getIndexAttr(dims.lookup(dim.getDim()));
    SmallVector<Attribute> operands;
    for (Value operand : op->getOperands())
      operands.push_back(fold(operand));
    SmallVector<OpFoldResult> results;
    if (failed(op->fold(operands, results)) || results.empty())
      return {};
    OpFoldResult result = results[cast<OpResult>(value).getResultNumber()];
    return isa<Attribute>(result) ? cast<Attribute>(result) : fold(cast<Value>(result));
  }

  const llvm::StringMap<int64_t> &dims;
  llvm::DenseMap<Value, Attribute> known;
};
} // namespace

/// The times that the body of `loop` runs in one tile.
static std::optional<int64_t> countIterations(scf::ForOp loop, ScalarEvaluator &scalars) {
  int64_t iterations = 1;
  for (; loop; loop = loop->getParentOfType<scf::ForOp>()) {
    std::optional<int64_t> low = scalars.evaluate(loop.getLowerBound()),
                           high = scalars.evaluate(loop.getUpperBound()),
                           step = scalars.evaluate(loop.getStep());
    if (!low || !high || !step || *step < 1)
      return std::nullopt;
    iterations *= *high > *low ? llvm::divideCeil(static_cast<uint64_t>(*high - *low), *step) : 0;
  }
  return iterations;
}

/// The longest loop in the tile at one end of the grid.
static Expected<int64_t> countIterations(tile::KernelOp kernel, ArrayRef<int64_t> indices,
                                         const llvm::StringMap<int64_t> &dims) {
  ScalarEvaluator scalars(dims);
  for (auto [i, index] : llvm::enumerate(indices))
    scalars.set(kernel.getGridIndex(i), index);
  int64_t longest = 0;
  for (scf::ForOp loop : loopsWithDots(kernel)) {
    std::optional<int64_t> iterations = countIterations(loop, scalars);
    if (!iterations)
      return fail("the shape of a launch has no class, for the length of a loop of kernel '" +
                  kernel.getSymName() +
                  "' depends on more than extents and the place of the tile; name a class instead");
    longest = std::max(longest, *iterations);
  }
  return longest;
}

Error tessera::tuning::checkShape(tile::EntryOpInterface entry,
                                  const llvm::StringMap<int64_t> &dims) {
  for (StringRef name : entry.getDimNames())
    if (!dims.count(name))
      return fail("the shape lacks the extent of " + name);
  for (const auto &dim : dims)
    if (!llvm::is_contained(entry.getDimNames(), dim.first()))
      return fail((isa<tile::SequenceOp>(*entry) ? "sequence '" : "kernel '") + entry.getSymName() +
                  "' has no dimension '" + dim.first() + "'; it has " +
                  llvm::join(entry.getDimNames(), ", "));
  return Error::success();
}

/// The extents that a kernel has in a launch of a sequence with the extents `given`.
static llvm::StringMap<int64_t> getExtents(tile::LaunchOp launch,
                                           const llvm::StringMap<int64_t> &given) {
  llvm::StringMap<int64_t> extents;
  for (auto [operand, argument] :
       llvm::zip(launch.getOperands(), launch.getKernelOp().getBody().getArguments())) {
    auto takes = dyn_cast<tile::ViewType>(argument.getType());
    for (int64_t i = 0; takes && i < takes.getRank(); ++i) {
      auto gets = cast<tile::ViewType>(operand.getType());
      StringRef name = gets.getDimName(i);
      if (!takes.getDimName(i).empty())
        extents[takes.getDimName(i)] = name.empty() ? gets.getStaticDim(i) : given.lookup(name);
    }
  }
  return extents;
}

static Expected<ShapeMeasure> measureKernel(tile::KernelOp kernel,
                                            const llvm::StringMap<int64_t> &dims) {
  ShapeMeasure measure;
  measure.tiles = 1;
  SmallVector<int64_t> first, last;
  for (unsigned i = 0; i < kernel.getGridRank(); ++i) {
    tile::GridDimAttr dim = kernel.getGridDim(i);
    auto name = dyn_cast<StringAttr>(dim.getExtent());
    int64_t extent = name ? dims.lookup(name.getValue())
                          : cast<IntegerAttr>(dim.getExtent()).getValue().getSExtValue();
    uint64_t tiles = llvm::divideCeil(static_cast<uint64_t>(extent), dim.getDivisor());
    measure.tiles = llvm::SaturatingMultiply(measure.tiles, tiles);
    first.push_back(0);
    last.push_back(std::max<int64_t>(tiles, 1) - 1);
  }
  // Folding may exchange operands in place, which is nobody else's business.
  OwningOpRef<tile::KernelOp> copy = kernel.clone();
  // Work that depends on the place of a tile is longest at one of the ends.
  for (ArrayRef<int64_t> indices : {ArrayRef<int64_t>(first), ArrayRef<int64_t>(last)}) {
    Expected<int64_t> iterations = countIterations(*copy, indices, dims);
    if (!iterations)
      return iterations.takeError();
    measure.iterations = std::max(measure.iterations, *iterations);
  }
  return measure;
}

Expected<ShapeMeasure> tessera::tuning::measureShape(tile::EntryOpInterface entry,
                                                     const llvm::StringMap<int64_t> &dims) {
  if (auto kernel = dyn_cast<tile::KernelOp>(*entry))
    return measureKernel(kernel, dims);
  auto sequence = cast<tile::SequenceOp>(*entry);
  llvm::StringMap<int64_t> known = dims;
  for (tile::DerivedDimAttr dim : sequence.getDerivedDimAttrs())
    if (std::optional<int64_t> extent =
            dim.evaluate([&](StringRef name) { return known.lookup(name); }))
      known[dim.getName().getValue()] = *extent;
  ShapeMeasure longest;
  auto countAll = [](const ShapeMeasure &measure) {
    return llvm::SaturatingMultiply(measure.tiles, static_cast<uint64_t>(measure.iterations));
  };
  for (auto launch : sequence.getOps<tile::LaunchOp>()) {
    Expected<ShapeMeasure> measure = measureKernel(launch.getKernelOp(), getExtents(launch, known));
    if (!measure)
      return measure.takeError();
    if (!longest.tiles || countAll(*measure) > countAll(longest))
      longest = *measure;
  }
  return longest;
}
