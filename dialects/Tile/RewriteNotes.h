//===- RewriteNotes.h - What passes made of operations of the source ------===//
//
// A pass that computes tiles of other shapes than the source has says so in the locations of their
// operations, so that whatever is refused of them names the tiles that were written.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECTS_TILE_REWRITENOTES_H
#define TESSERA_DIALECTS_TILE_REWRITENOTES_H

#include "mlir/IR/Operation.h"

namespace tessera::tile {

/// Adds `note` to the location of `op`: what it is of what the source has there.
void addRewriteNote(mlir::Operation *op, const llvm::Twine &note);

/// The notes of a location, the last one first.
llvm::SmallVector<llvm::StringRef> getRewriteNotes(mlir::Location loc);

} // namespace tessera::tile

#endif // TESSERA_DIALECTS_TILE_REWRITENOTES_H
