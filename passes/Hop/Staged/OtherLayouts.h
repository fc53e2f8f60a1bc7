//===- OtherLayouts.h - Tiles that are no accumulators of a role ----------===//
//
// Which tiles of rank 2 of a role with products have the axes of the others exchanged. For
// hop-assign-layouts.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_HOP_STAGED_OTHERLAYOUTS_H
#define TESSERA_PASSES_HOP_STAGED_OTHERLAYOUTS_H

#include "dialects/Hop/Hop.h"

namespace tessera {

/// Whether `tile` has the axes of the other tiles exchanged: it is loaded to be transposed, or
/// transposed to be stored.
bool isExchanged(mlir::Value tile);

/// `layout` with its axes exchanged.
hop::LayoutAttr exchangeAxes(hop::LayoutAttr layout);

} // namespace tessera

#endif // TESSERA_PASSES_HOP_STAGED_OTHERLAYOUTS_H
