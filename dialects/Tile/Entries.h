//===- Entries.h - What programs launch, and what they need ---------------===//

#ifndef TESSERA_DIALECTS_TILE_ENTRIES_H
#define TESSERA_DIALECTS_TILE_ENTRIES_H

#include "dialects/Tile/Tile.h"

namespace tessera::tile {

/// Whether a view is loaded or stored. One that is added to is both, and its elements belong to no
/// grid point.
struct ViewUse {
  bool loaded = false, stored = false, added = false;
};

/// Whether a kernel or a sequence loads or stores the view that is its argument `index`. Calls of
/// functions are not looked into: the reader has inlined them.
ViewUse getViewUse(EntryOpInterface entry, unsigned index);

/// The kernels and sequences of a module.
llvm::SmallVector<EntryOpInterface> getEntries(mlir::ModuleOp module);

/// The kernel or sequence of a name. Without a name the only sequence, or where there is none the
/// only kernel. Null where there is none, or several.
EntryOpInterface findEntry(mlir::ModuleOp module, llvm::StringRef name);

/// The kernels of a sequence, each once, in the order of their first launch; or a kernel itself.
llvm::SmallVector<KernelOp> getKernels(EntryOpInterface entry);

/// Erases the kernels and sequences that `entry` does not need.
void keepEntry(EntryOpInterface entry);

void eraseSequences(mlir::ModuleOp module);

} // namespace tessera::tile

#endif // TESSERA_DIALECTS_TILE_ENTRIES_H
