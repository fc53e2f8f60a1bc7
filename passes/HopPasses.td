// Passes from the tile dialect to hop, on hop, and from hop to LLVM.

#ifndef TESSERA_PASSES_HOPPASSES_TD
#define TESSERA_PASSES_HOPPASSES_TD

include "mlir/Pass/PassBase.td"

#endif // TESSERA_PASSES_HOPPASSES_TD
