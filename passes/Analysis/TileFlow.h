//===- TileFlow.h - Tiles that have one form ------------------------------===//
//
// Which tiles of a program, of either dialect, are laid out or cut alike: those that loops,
// conditionals and speculations hand on, and those that operations make of each other.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_TILEFLOW_H
#define TESSERA_PASSES_ANALYSIS_TILEFLOW_H

#include "mlir/IR/Value.h"
#include "passes/Analysis/ScfFlow.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"

namespace tessera {

/// What `value` is handed on from, as findHandoverTo has it, by a speculation too.
std::optional<Handover> findTileHandoverTo(mlir::Value value);

/// What `use` hands its value on to, as findHandoverOf has it, by a speculation too.
std::optional<Handover> findTileHandoverOf(mlir::OpOperand &use);

/// All that hand `value` on, or make it so.
llvm::SmallVector<Handover> findTileHandovers(mlir::Value value);

/// Whether the tiles of `op` have one form: it computes element by element, or scans.
bool keepsForm(mlir::Operation *op);

/// Adds to `tiles` what is handed on from and to them, and what `alikeIn` names of an operation
/// that makes or takes one of them; of both, what `belongs`.
void closeOverAlike(
    llvm::SetVector<mlir::Value> &tiles,
    llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Operation *op, mlir::Value tile)>
        alikeIn,
    llvm::function_ref<bool(mlir::Value)> belongs);

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_TILEFLOW_H
