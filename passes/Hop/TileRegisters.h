//===- TileRegisters.h - What tiles take of a thread's registers -----------===//

#ifndef TESSERA_PASSES_HOP_TILEREGISTERS_H
#define TESSERA_PASSES_HOP_TILEREGISTERS_H

#include "dialects/Hop/Hop.h"
#include "dialects/Hop/Machine.h"
#include "dialects/Tile/Tile.h"
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

/// Whether something at `op` or behind it in its block reads `value`.
inline bool isUsedFrom(mlir::Value value, mlir::Operation *op) {
  return llvm::any_of(value.getUsers(), [&](mlir::Operation *user) {
    mlir::Operation *ancestor = op->getBlock()->findAncestorOpInBlock(*user);
    return ancestor && !ancestor->isBeforeInBlock(op);
  });
}

/// What is computed without being a tile of its own: masks, and what scalars are spread to.
inline bool isFree(mlir::Operation *op) {
  return mlir::isa<tile::SplatOp, tile::IotaOp, tile::BroadcastOp>(op) ||
         op->hasTrait<mlir::OpTrait::ConstantLike>() ||
         llvm::all_of(op->getResultTypes(), [](mlir::Type type) {
           auto tile = mlir::dyn_cast<mlir::RankedTensorType>(type);
           return tile && tile.getElementType().isInteger();
         });
}

} // namespace tessera::hop

#endif // TESSERA_PASSES_HOP_TILEREGISTERS_H
