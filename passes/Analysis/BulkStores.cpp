//===- BulkStores.cpp - Which stores bulk copies can make ------------------===//

#include "passes/Analysis/BulkStores.h"
#include "dialects/Hop/Machine.h"
#include "dialects/Hop/SharedLayout.h"
#include "passes/Analysis/IndexFacts.h"

using namespace mlir;
using namespace tessera;

bool tessera::leavesInBulk(Type stored) {
  auto tile = dyn_cast<RankedTensorType>(stored);
  Type element = getElementTypeOrSelf(stored);
  return tile && tile.getRank() == 2 && (element.isF16() || element.isBF16() || element.isF32());
}

std::optional<std::string> tessera::whyNoBulkStore(tile::StoreOp store, RankedTensorType whole) {
  std::string text;
  llvm::raw_string_ostream reason(text);
  int64_t unit = 8 * hop::bulkStartBytes / whole.getElementTypeBitWidth();
  if (store.getValue().getDefiningOp<tile::TransposeOp>()) {
    reason << "stores a tile that is transposed on its way from registers; use store = direct";
  } else if (!hop::getSharedLayout(whole)) {
    reason << "stores '" << whole
           << "', whose rows are no multiple of 32 bytes; use store = direct";
  } else if (!isMultipleOf(store.getIndices().back(), unit)) {
    reason << "stores from a column on that is not known to be a multiple of " << unit
           << ", where no bulk store can start; use store = direct";
  } else if (!llvm::all_of(store.getIndices(), [](Value index) { return isNonNegative(index); })) {
    reason << "stores at indices that are not known to be 0 or more, where no bulk store can "
              "start; use store = direct";
  } else {
    return std::nullopt;
  }
  return text;
}

bool tessera::writesWholeUnits(tile::StoreOp store) {
  auto view = cast<tile::ViewType>(store.getView().getType());
  int64_t last = view.getRank() - 1, columns = view.getStaticDim(last),
          unit = hopper::bulkUnit / view.getElementBytes();
  if (columns != ShapedType::kDynamic)
    return columns % unit == 0;
  std::optional<ArrayAttr> requirements =
      store->getParentOfType<tile::KernelOp>().getRequirements();
  return requirements && llvm::any_of(*requirements, [&](Attribute requirement) {
           auto divides = dyn_cast<tile::DividesAttr>(requirement);
           return divides && divides.getDividend().getValue() == view.getDimName(last) &&
                  divides.getFactor() % unit == 0;
         });
}
