//===- ValueNames.cpp - What the source calls a value ---------------------===//

#include "dialects/Tile/ValueNames.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/Operation.h"

using namespace mlir;
using namespace tessera;

void tile::setResultNames(Operation *op, ArrayRef<StringRef> names) {
  MLIRContext *context = op->getContext();
  if (names.size() == 1)
    op->setLoc(NameLoc::get(StringAttr::get(context, names.front()), op->getLoc()));
  else
    op->setLoc(FusedLoc::get({op->getLoc()}, Builder(context).getStrArrayAttr(names), context));
}

void tile::setArgumentName(BlockArgument argument, StringRef name) {
  argument.setLoc(NameLoc::get(StringAttr::get(argument.getContext(), name), argument.getLoc()));
}

StringRef tile::getValueName(Value value) {
  if (auto name = dyn_cast<NameLoc>(value.getLoc()))
    return name.getName();
  auto result = dyn_cast<OpResult>(value);
  auto fused = dyn_cast<FusedLoc>(value.getLoc());
  auto names = fused ? dyn_cast_or_null<ArrayAttr>(fused.getMetadata()) : ArrayAttr();
  if (!result || !names || result.getResultNumber() >= names.size())
    return "";
  auto name = dyn_cast<StringAttr>(names[result.getResultNumber()]);
  return name ? name.getValue() : "";
}

StringRef tile::getValueName(Location loc) {
  StringRef found;
  loc->walk([&](Location part) {
    auto fused = dyn_cast<FusedLoc>(part);
    auto names = fused ? dyn_cast_or_null<ArrayAttr>(fused.getMetadata()) : ArrayAttr();
    if (auto name = dyn_cast<NameLoc>(part))
      found = name.getName();
    else if (names && !names.empty() && isa<StringAttr>(names.getValue().back()))
      found = cast<StringAttr>(names.getValue().back());
    // The first place is the one that counts; what it has no name for has none.
    else if (!isa<FileLineColLoc>(part))
      return WalkResult::advance();
    return WalkResult::interrupt();
  });
  return found;
}
