//===- TileLayout.cpp - The layout of tiles that no product has -----------===//

#include "passes/Analysis/TileLayout.h"
#include "dialects/Hop/Machine.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include <numeric>

using namespace mlir;
using namespace tessera;
using hop::LayoutDigit;

int64_t tessera::directBytes(tile::ViewType view, int64_t rank) {
  int64_t columns = view.getStaticDim(view.getRank() - 1);
  if (view.getRank() == 1)
    return hopper::widestAccess;
  // A launch checks the strides of tensors that tiles of rank 2 are moved from, as these are large.
  // The rows of what vectors are loaded from may have any length.
  if (columns == ShapedType::kDynamic)
    return rank == 1 ? view.getElementBytes() : hopper::widestAccess;
  return std::gcd(columns * view.getElementBytes(), hopper::widestAccess);
}

TileExtents tessera::commonExtents(Operation *program, const VectorAxes &axes) {
  TileExtents extents;
  int64_t rows = 0;
  auto add = [&](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || type.getRank() < 1 || (type.getRank() == 1 && isMadeForEachUse(value)))
      return;
    bool isRow = type.getRank() == 1 && axes.lookup(value) == 0;
    if (!isRow)
      extents.columns = std::gcd(extents.columns, type.getShape().back());
    if (isRow || type.getRank() == 2)
      rows = std::gcd(rows, type.getDimSize(0));
  };
  auto addAccess = [&](Value tile, Value view) {
    auto type = dyn_cast<RankedTensorType>(tile.getType());
    if (!type || !(type.getRank() == 2 || (type.getRank() == 1 && axes.lookup(tile) == 1)))
      return;
    // At least a register: 16-bit elements are kept in pairs.
    int64_t bytes = std::max(directBytes(cast<tile::ViewType>(view.getType()), type.getRank()),
                             hopper::registerBytes);
    extents.unit = std::max<int64_t>(extents.unit, 8 * bytes / type.getElementTypeBitWidth());
  };
  program->walk([&](Operation *op) {
    llvm::for_each(op->getResults(), add);
    for (Value tile : isa<hop::StageOp>(op)   ? op->getOperands().take_front()
                      : isa<hop::FetchOp>(op) ? ValueRange(op->getResults())
                                              : ValueRange())
      extents.sharedBytes = std::max<int64_t>(
          extents.sharedBytes, getElementTypeOrSelf(tile).getIntOrFloatBitWidth() / 8);
    if (auto gather = dyn_cast<hop::GatherOp>(op)) {
      RankedTensorType tile = gather.getDestination().getType().getTile();
      extents.columns = std::gcd(extents.columns, tile.getDimSize(1));
      rows = std::gcd(rows, tile.getDimSize(0));
      extents.unit =
          std::max<int64_t>(extents.unit, 8 * hopper::widestAccess / tile.getElementTypeBitWidth());
      extents.gathers = true;
      extents.sharedBytes =
          std::max<int64_t>(extents.sharedBytes, tile.getElementTypeBitWidth() / 8);
    }
    if (isa<tile::LoadOp, tile::GatherOp>(op))
      addAccess(op->getResult(0), op->getOperand(0));
    if (isa<tile::StoreOp, tile::ScatterOp>(op)) {
      addAccess(op->getOperand(0), op->getOperand(1));
      add(op->getOperand(0));
    }
  });
  extents.rows = std::max<int64_t>(rows, 1);
  return extents;
}

/// The largest power of two up to `most` that divides `count`.
static int64_t powerOf2In(int64_t count, int64_t most) { return std::gcd(count, most); }

namespace {
/// Hands out the units of a tile to more and more threads.
class Divider {
public:
  Divider(const TileExtents &extents)
      : rows(extents.rows), units(extents.columns / extents.unit), rowStep(1),
        columnStep(extents.unit) {}

  /// The digits of `count` lanes, warps or warpgroups, of which `alongRows` take rows; nothing when
  /// rows or units do not divide so.
  std::optional<SmallVector<LayoutDigit>> divide(int64_t count, int64_t alongRows,
                                                 bool columnsFirst) {
    int64_t alongColumns = count / alongRows;
    if (rows % alongRows != 0 || units % alongColumns != 0)
      return std::nullopt;
    LayoutDigit row{alongRows, {rowStep, 0}}, column{alongColumns, {0, columnStep}};
    rows /= alongRows;
    units /= alongColumns;
    rowStep *= alongRows;
    columnStep *= alongColumns;
    SmallVector<LayoutDigit> digits;
    for (const LayoutDigit &digit : {columnsFirst ? column : row, columnsFirst ? row : column})
      if (digit.extent > 1)
        digits.push_back(digit);
    return digits;
  }

  int64_t rows, units;

private:
  int64_t rowStep, columnStep;
};
} // namespace

namespace {
/// How a warpgroup divides tiles that come from shared memory and go there: `lanes` beside each
/// other take `unit` neighbours each of `rows` rows.
struct SharedDivision {
  int64_t unit, lanes, rows;
};
} // namespace

/// Eight lanes are rows of one repeat of the swizzle, which puts their neighbours into different
/// banks; those beside each other stay within its span.
static std::optional<SharedDivision> divideShared(const TileExtents &extents,
                                                  std::string &refusal) {
  constexpr int64_t warps = hopper::warpgroupThreads / hopper::warpThreads;
  for (int64_t unit : {hopper::widestAccess, hopper::widestAccess / 2}) {
    int64_t inSpan = std::max<int64_t>(hopper::widestSwizzle / (unit * extents.sharedBytes), 1),
            most = std::min(inSpan, hopper::warpThreads / hopper::swizzleRows),
            lanes = powerOf2In(extents.columns / unit, most), rows = hopper::warpThreads / lanes;
    if (extents.columns % unit == 0 && extents.rows % (rows * warps) == 0)
      return SharedDivision{unit, lanes, rows};
  }
  refusal = llvm::formatv("128 threads that take tiles from shared memory cannot share {0}x{1} "
                          "ones; multiples of 32 rows and 32 columns would work",
                          extents.rows, extents.columns)
                .str();
  return std::nullopt;
}

bool tessera::isDividedFromShared(const TileExtents &extents, std::string &refusal) {
  return divideShared(extents, refusal).has_value();
}

static hop::LayoutAttr chooseSharedLayout(MLIRContext *context, const TileExtents &extents,
                                          std::string &refusal) {
  std::optional<SharedDivision> division = divideShared(extents, refusal);
  if (!division)
    return {};
  auto [unit, lanes, rows] = *division;
  SmallVector<LayoutDigit> ofLanes = {{rows, {1, 0}}};
  if (lanes > 1)
    ofLanes.push_back({lanes, {0, unit}});
  return hop::LayoutAttr::get(context, 2, {{unit, {0, 1}}}, ofLanes,
                              {{hopper::warpgroupWarps, {rows, 0}}}, {}, /*partial=*/false);
}

/// The layout of a warpgroup's tiles that copies of its threads bring to shared memory: as many
/// lanes beside each other as span a repeat of the swizzle, which are whole lines of memory.
static hop::LayoutAttr chooseGatheredLayout(MLIRContext *context, const TileExtents &extents,
                                            std::string &refusal) {
  int64_t inSpan =
      std::max<int64_t>(hopper::widestSwizzle / (extents.unit * extents.sharedBytes), 1);
  int64_t lanes = powerOf2In(extents.columns / extents.unit, inSpan),
          rows = hopper::warpThreads / lanes, step = rows * hopper::warpgroupWarps;
  if (extents.columns % extents.unit == 0 && extents.rows % step == 0) {
    SmallVector<LayoutDigit> ofLanes = {{lanes, {0, extents.unit}}, {rows, {1, 0}}};
    if (lanes == 1)
      ofLanes.erase(ofLanes.begin());
    return hop::LayoutAttr::get(context, 2, {{extents.unit, {0, 1}}}, ofLanes,
                                {{hopper::warpgroupWarps, {rows, 0}}}, {}, /*partial=*/false);
  }
  refusal = llvm::formatv("128 threads that gather {0} bytes each cannot share {1}x{2} tiles; a "
                          "multiple of {3} rows would work",
                          hopper::widestAccess, extents.rows, extents.columns, step)
                .str();
  return {};
}

hop::LayoutAttr tessera::chooseTileLayout(MLIRContext *context, const TileExtents &extents,
                                          int64_t warpgroups, int64_t blocks,
                                          std::string &refusal) {
  if (extents.gathers)
    return chooseGatheredLayout(context, extents, refusal);
  if (extents.sharedBytes)
    return chooseSharedLayout(context, extents, refusal);
  constexpr int64_t warps = hopper::warpgroupThreads / hopper::warpThreads;
  Divider divider(extents);
  std::optional<SmallVector<LayoutDigit>> ofLanes, ofWarps, ofGroups, ofBlocks;
  // A program of numbers alone has no columns, and any layout would do.
  if (extents.columns % extents.unit == 0) {
    // Lanes that lie side by side make whole lines of memory; warps with rows of their own need not
    // meet to reduce them.
    ofLanes = divider.divide(hopper::warpThreads,
                             hopper::warpThreads / powerOf2In(divider.units, hopper::warpThreads),
                             /*columnsFirst=*/true);
    if (ofLanes)
      ofWarps = divider.divide(warps, powerOf2In(divider.rows, warps), /*columnsFirst=*/false);
    if (ofWarps)
      ofGroups = divider.divide(warpgroups, std::gcd(divider.rows, warpgroups), false);
    if (ofGroups)
      ofBlocks = divider.divide(blocks, /*alongRows=*/1, /*columnsFirst=*/true);
  }
  if (!ofBlocks) {
    int64_t threads = blocks * warpgroups * hopper::warpgroupThreads,
            shared = powerOf2In(extents.rows, hopper::warpgroupThreads),
            step = extents.unit * llvm::divideCeil(threads, shared);
    refusal = llvm::formatv(
                  "{0} threads that move {1} neighbours each cannot share {2}x{3} tiles; {2}x{4} "
                  "would work: what is outside of a view loads as 0 and is not stored",
                  threads, extents.unit, extents.rows, extents.columns,
                  llvm::alignTo(extents.columns, step))
                  .str();
    return {};
  }
  llvm::append_range(*ofGroups, *ofBlocks);
  SmallVector<LayoutDigit> registers;
  if (extents.unit > 1)
    registers.push_back({extents.unit, {0, 1}});
  return hop::LayoutAttr::get(context, 2, registers, *ofLanes, *ofWarps, *ofGroups,
                              /*partial=*/false);
}
