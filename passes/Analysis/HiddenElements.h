//===- HiddenElements.h - Scores that a mask may hide ---------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_HIDDENELEMENTS_H
#define TESSERA_PASSES_ANALYSIS_HIDDENELEMENTS_H

#include "mlir/IR/Value.h"

namespace tessera {

/// Whether elements of `tile`, exponentials of scores, may be 0 in some columns of a row and not in
/// others, because a select chooses a score below all others, or because what is loaded for columns
/// goes into scores. What all columns have alike does not count.
bool mayHideElements(mlir::Value tile);

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_HIDDENELEMENTS_H
