//===- Entries.cpp - What programs launch, and what they need -------------===//

#include "dialects/Tile/Entries.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera::tile;

SmallVector<EntryOpInterface> tessera::tile::getEntries(ModuleOp module) {
  return llvm::to_vector(module.getOps<EntryOpInterface>());
}

EntryOpInterface tessera::tile::findEntry(ModuleOp module, StringRef name) {
  if (!name.empty())
    return module.lookupSymbol<EntryOpInterface>(name);
  auto sequences = module.getOps<SequenceOp>();
  if (!sequences.empty())
    return llvm::hasSingleElement(sequences) ? EntryOpInterface(*sequences.begin()) : nullptr;
  auto kernels = module.getOps<KernelOp>();
  return llvm::hasSingleElement(kernels) ? EntryOpInterface(*kernels.begin()) : nullptr;
}

SmallVector<KernelOp> tessera::tile::getKernels(EntryOpInterface entry) {
  if (auto kernel = dyn_cast<KernelOp>(*entry))
    return {kernel};
  llvm::SetVector<KernelOp, SmallVector<KernelOp>> kernels;
  for (auto launch : cast<SequenceOp>(*entry).getOps<LaunchOp>())
    kernels.insert(launch.getKernelOp());
  return kernels.takeVector();
}

void tessera::tile::keepEntry(EntryOpInterface entry) {
  SmallVector<KernelOp> kernels = getKernels(entry);
  for (EntryOpInterface other : getEntries(entry->getParentOfType<ModuleOp>())) {
    auto kernel = dyn_cast<KernelOp>(*other);
    if (kernel ? !llvm::is_contained(kernels, kernel) : other != entry)
      other->erase();
  }
}

void tessera::tile::eraseSequences(ModuleOp module) {
  for (SequenceOp sequence : llvm::make_early_inc_range(module.getOps<SequenceOp>()))
    sequence.erase();
}
