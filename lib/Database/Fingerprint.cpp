//===- Fingerprint.cpp - Which program a kernel is ------------------------===//

#include "lib/Database/Fingerprint.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace tessera;

/// Nothing that runs depends on what a launch asks of scalars.
static void removeScalarRequirements(tile::KernelOp kernel) {
  std::optional<ArrayAttr> requirements = kernel.getRequirements();
  if (!requirements)
    return;
  auto kept = llvm::to_vector(llvm::make_filter_range(
      *requirements, [](Attribute attr) { return !isa<tile::AboveAttr>(attr); }));
  if (kept.empty())
    kernel.removeRequirementsAttr();
  else
    kernel.setRequirementsAttr(ArrayAttr::get(kernel.getContext(), kept));
}

std::string tessera::tuning::getFingerprint(tile::KernelOp kernel) {
  OwningOpRef<tile::KernelOp> copy = kernel.clone();
  Builder builder(kernel.getContext());
  // Names are what a launch says, and nothing that runs depends on them.
  SmallVector<std::string> numbers;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    numbers.push_back(std::to_string(i));
  SmallVector<StringRef> names(numbers.begin(), numbers.end());
  copy->setSymName("kernel");
  copy->setArgumentNamesAttr(builder.getStrArrayAttr(names));
  copy->removeGridNamesAttr();
  copy->removeScheduleAttr();
  removeScalarRequirements(*copy);
  std::string text;
  llvm::raw_string_ostream os(text);
  // The generic form numbers the values, and has no position and no alias.
  copy->getOperation()->print(
      os, OpPrintingFlags().printGenericOpForm().useLocalScope().assumeVerified());
  return llvm::utohexstr(llvm::xxh3_64bits(text), /*LowerCase=*/true, /*Width=*/16);
}
