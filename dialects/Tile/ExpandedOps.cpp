//===- ExpandedOps.cpp - What tile-expand-ops writes out ------------------===//

#include "dialects/Tile/ExpandedOps.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tessera::tile;

#define GET_OP_CLASSES
#include "dialects/Tile/TileExpandedOps.cpp.inc"

FloatType DotPrecision::getTermType(MLIRContext *context) const {
  return ofHalves ? FloatType(Float16Type::get(context)) : BFloat16Type::get(context);
}

ArrayRef<DotPrecision> tessera::tile::getDotPrecisions() {
  static constexpr DotPrecision precisions[] = {{"bf16", false, 1},
                                                {"f16", true, 1},
                                                {"bf16x3", false, 2},
                                                {"f16x3", true, 2},
                                                {"bf16x6", false, 3}};
  return precisions;
}

std::optional<DotPrecision> tessera::tile::getPrecision(DotOp dot) {
  auto word = dot->getAttrOfType<StringAttr>(kPrecisionName);
  for (const DotPrecision &precision : getDotPrecisions())
    if (word && word.getValue() == precision.word)
      return precision;
  return std::nullopt;
}
