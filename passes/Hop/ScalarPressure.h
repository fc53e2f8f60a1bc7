//===- ScalarPressure.h - Registers of a thread that copies ------------------===//
//
// A role of one thread has few registers, and none of them holds a tile. Passes that make more of
// the steps of its loop ask first whether there is room.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_HOP_SCALARPRESSURE_H
#define TESSERA_PASSES_HOP_SCALARPRESSURE_H

#include "dialects/Hop/Hop.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tessera {

/// The scalars of a role of one thread that take registers, where most of them live at once in
/// `loop`: those that are computed there, before it and around it.
int64_t scalarPressure(mlir::scf::ForOp loop);

/// Whether the thread of `loop` has registers for what it makes of the number of another step.
bool hasRegistersForStep(mlir::scf::ForOp loop);

} // namespace tessera

#endif // TESSERA_PASSES_HOP_SCALARPRESSURE_H
