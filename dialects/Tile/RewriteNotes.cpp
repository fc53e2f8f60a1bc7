//===- RewriteNotes.cpp - What passes made of operations of the source ----===//

#include "dialects/Tile/RewriteNotes.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

using namespace mlir;
using namespace tessera;

static constexpr StringLiteral noteKey = "rewritten";

void tile::addRewriteNote(Operation *op, const Twine &note) {
  Builder builder(op->getContext());
  Attribute metadata =
      builder.getDictionaryAttr(builder.getNamedAttr(noteKey, builder.getStringAttr(note)));
  auto annotate = [&](Location loc) -> Location {
    return FusedLoc::get({loc}, metadata, op->getContext());
  };
  // The name of a value is outermost.
  if (auto name = dyn_cast<NameLoc>(op->getLoc()))
    op->setLoc(NameLoc::get(name.getName(), annotate(name.getChildLoc())));
  else
    op->setLoc(annotate(op->getLoc()));
}

SmallVector<StringRef> tile::getRewriteNotes(Location loc) {
  SmallVector<StringRef> notes;
  loc->walk([&](Location part) {
    auto fused = dyn_cast<FusedLoc>(part);
    auto metadata =
        fused ? dyn_cast_or_null<DictionaryAttr>(fused.getMetadata()) : DictionaryAttr();
    if (auto note = metadata ? metadata.getAs<StringAttr>(noteKey) : StringAttr())
      notes.push_back(note.getValue());
    // The first place is the one that counts.
    return isa<FileLineColRange>(part) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return notes;
}
