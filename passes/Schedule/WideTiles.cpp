//===- WideTiles.cpp - Loaded tiles in chunks of 128 bytes ----------------===//

#include "passes/Schedule/WideTiles.h"
#include "dialects/Hop/SharedLayout.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "passes/Analysis/Conversions.h"
#include "passes/Analysis/ReducerSumAnalysis.h"
#include "passes/Schedule/ResourceModel.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// Whether a launch of `kernel` refuses more than `bound` as the run-time dimension `dim`.
static bool isAtMost(KernelOp kernel, StringRef dim, int64_t bound) {
  std::optional<ArrayAttr> requirements = kernel.getRequirements();
  return requirements && llvm::any_of(*requirements, [&](Attribute requirement) {
           auto most = dyn_cast<AtMostAttr>(requirement);
           return most && most.getDim() == dim && most.getBound() <= bound;
         });
}

/// Whether the tile has whole rows of its view, of a length that a launch says: they are beside no
/// others, and any multiple of 16 bytes.
static bool hasWholeRows(KernelOp kernel, LoadOpInterface load) {
  auto view = cast<ViewType>(load.getView().getType());
  int64_t inner = view.getRank() - 1;
  return view.getStaticDim(inner) == ShapedType::kDynamic &&
         isConstantIntValue(load.getIndices().back(), 0) &&
         isAtMost(kernel, view.getDimName(inner),
                  cast<RankedTensorType>(load.getType()).getShape().back());
}

/// Whether the tile is of 16 bits, which no role transposes on its way, and has fewer chunks when
/// it is wide.
static bool hasFewerChunks(LoadOpInterface load) {
  auto type = cast<RankedTensorType>(load.getType());
  std::optional<hop::SharedLayout> layout = hop::getSharedLayout(type);
  if (!isa<LoadOp>(load) || !layout || layout->elementBytes != 2)
    return false;
  int64_t chunksIfWide = llvm::divideCeil(2 * layout->columns, hopper::widestSwizzle);
  return chunksIfWide < layout->chunks();
}

/// Whether two slots of what loops load fit, and one of what comes before them: with fewer, loads
/// would not run beside products.
static bool leavesTwoSlots(KernelOp kernel) {
  int64_t bytes = 0;
  for (const PipedTile &tile : pipedTiles(kernel))
    bytes += (tile.inLoop ? 2 : 1) * tile.bytes;
  return bytes <= hopper::sharedMemoryOfBlock;
}

bool tessera::widenTiles(KernelOp kernel) {
  // Other roles take these, by chunks of columns or to compute operands of them.
  llvm::SmallDenseSet<Operation *> taken;
  for (const ReducerSum &sum : findReducerSums(kernel))
    taken.insert(loadedOperand(tile::DotOp(sum.dot).getB()));
  for (const Conversion &conversion : findConversions(kernel))
    taken.insert(conversion.load);
  bool any = false;
  for (const PipedTile &tile : pipedTiles(kernel)) {
    bool isWide = llvm::all_of(tile.loads, [&](LoadOpInterface load) {
      return hasFewerChunks(load) && hasWholeRows(kernel, load) && !taken.contains(load);
    });
    for (LoadOpInterface load : isWide ? ArrayRef(tile.loads) : ArrayRef<LoadOpInterface>())
      cast<LoadOp>(load.getOperation()).setWide(true);
    any |= isWide;
  }
  if (!any || leavesTwoSlots(kernel))
    return any;
  narrowTiles(kernel);
  return false;
}

void tessera::narrowTiles(KernelOp kernel) {
  kernel.walk([](LoadOp load) { load.setWide(false); });
}
