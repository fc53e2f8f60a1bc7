//===- HiddenElements.h - Scores that a mask may hide ---------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_HIDDENELEMENTS_H
#define TESSERA_PASSES_ANALYSIS_HIDDENELEMENTS_H

#include "mlir/IR/Value.h"

namespace tessera {

/// What makes elements 0.
enum class Hiding {
  None,
  Loads, ///< what is loaded for columns goes into scores
  Mask   ///< a select chooses a score below all others
};

/// What may make elements of `tile`, exponentials of scores, 0 in some columns of a row and not in
/// others; a mask if both may. What all columns have alike does not count.
Hiding findHiding(mlir::Value tile);

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_HIDDENELEMENTS_H
