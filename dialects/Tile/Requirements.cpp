//===- Requirements.cpp - What kernels ask of their arguments -------------===//

#include "dialects/Tile/Requirements.h"
#include "dialects/Tile/Tile.h"

using namespace mlir;
using namespace tessera;

FloatAttr tile::findBound(std::optional<ArrayAttr> requirements, StringRef argument) {
  if (requirements)
    for (Attribute requirement : *requirements)
      if (auto above = dyn_cast<AboveAttr>(requirement); above && above.getArgument() == argument)
        return above.getBound();
  return {};
}
