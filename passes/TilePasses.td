// Passes from the tile dialect to itself.

#ifndef TESSERA_PASSES_TILEPASSES_TD
#define TESSERA_PASSES_TILEPASSES_TD

include "mlir/Pass/PassBase.td"

#endif // TESSERA_PASSES_TILEPASSES_TD
