//===- TileRegisters.h - What tiles take of a thread's registers -----------===//

#ifndef TESSERA_PASSES_HOP_TILEREGISTERS_H
#define TESSERA_PASSES_HOP_TILEREGISTERS_H

#include "dialects/Hop/Hop.h"
#include "dialects/Hop/Machine.h"
#include "llvm/Support/MathExtras.h"

namespace tessera::hop {

/// Registers of a thread that `type` takes; 0 for what is no tile in registers.
inline int64_t registersOf(mlir::Type type) {
  if (auto flight = mlir::dyn_cast<FlightType>(type))
    type = flight.getTile();
  auto tile = mlir::dyn_cast<mlir::RankedTensorType>(type);
  if (!tile || tile.getRank() != 2)
    return 0;
  int64_t bits = tile.getNumElements() * tile.getElementTypeBitWidth();
  return llvm::divideCeil(bits, 8 * hopper::registerBytes * hopper::warpgroupThreads);
}

} // namespace tessera::hop

#endif // TESSERA_PASSES_HOP_TILEREGISTERS_H
