//===- Sequences.h - Sequences with what a call needs ---------------------===//

#ifndef TESSERA_LIB_COMPILER_SEQUENCES_H
#define TESSERA_LIB_COMPILER_SEQUENCES_H

#include "dialects/Tile/Tile.h"
#include "llvm/Support/JSON.h"

namespace tessera {

/// The entry of a bundle's "sequences", before it is known what its kernels ask of their arguments.
llvm::json::Object describeSequence(tile::SequenceOp sequence);

/// Adds what `kernels`, the entries of a bundle, ask of the arguments that `sequence` passes on.
void addDemands(llvm::json::Object &sequence, llvm::json::Array &kernels);

} // namespace tessera

#endif // TESSERA_LIB_COMPILER_SEQUENCES_H
