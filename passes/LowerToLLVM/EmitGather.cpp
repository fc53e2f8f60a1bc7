//===- EmitGather.cpp - Gathered rows on their way to shared memory -------===//
//
// The threads of a warpgroup copy rows that numbers name into a slot, 16 bytes at a time
// (cp.async), each to where the swizzle of shared memory has it. No register holds what is
// copied, and no thread waits for it.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/FragmentLayout.h"
#include "passes/LowerToLLVM/GlobalAccess.h"

using namespace mlir;
using namespace tessera;

/// i32: how many bytes of a unit are in the view. The rest of it becomes 0.
Value Emitter::bytesInside(const Access &access, const Unit &unit) {
  auto select = [&](Value flag, Value chosen, Value other) -> Value {
    Value isSet = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, flag, i32(0));
    return LLVM::SelectOp::create(builder, loc, isSet, chosen, other);
  };
  Value bytes = select(unit.whole, i32(hopper::widestAccess), i32(0));
  if (!unit.partial)
    return bytes;
  // Units behind the last column have nothing left.
  Value some = LLVM::SMaxOp::create(builder, loc, unit.left, i32(0));
  return select(unit.partial, mul(some, access.elementBytes), bytes);
}

/// The rows of part `number` of a tile in place of those of all of it, which has so many parts of
/// `rows` rows.
void Emitter::takeRows(Access &access, Value number, int64_t rows, int64_t parts) {
  llvm::SmallDenseMap<int64_t, NamedRow> all = std::move(access.named);
  access.named.clear();
  for (auto &[offset, row] : all)
    if (offset < rows)
      access.named[offset] = row;
  for (int64_t part = 1; part < parts; ++part) {
    Value isPart = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, number, i32(part));
    for (auto &[offset, row] : access.named) {
      const NamedRow other = all.lookup(offset + part * rows);
      for (auto [own, chosen] : {std::pair(&row.number, other.number),
                                 {&row.outer, other.outer},
                                 {&row.inside, other.inside}})
        if (*own)
          *own = LLVM::SelectOp::create(builder, loc, isPart, chosen, *own);
    }
  }
}

LogicalResult Emitter::emitCopies(hop::GatherOp op) {
  RankedTensorType type = op.getCopiedType();
  if (hop::wordsOfRun(type) * hopper::registerBytes != hopper::widestAccess)
    return op.emitError("copies ") << hopper::widestAccess << " bytes at a time, and the layout "
                                   << "gives no thread such runs within the swizzle";
  auto slice = op.getDestination().getDefiningOp<hop::SliceOp>();
  RankedTensorType all =
      slice ? hop::withLayout(slice.getSource().getType().getTile(), op.getLayoutAttr()) : type;
  Access access = makeAccess(op, all);
  // Copies of fewer columns, of which other tiles have no more, are of more rows at a time.
  int64_t atOnce = all.getDimSize(0) / static_cast<int64_t>(access.named.size());
  if (slice && type.getDimSize(0) % atOnce != 0)
    return op.emitError("copies ") << atOnce << " rows at a time, and a block of a cluster has "
                                   << type.getDimSize(0) << "; use cluster = 1";
  if (slice)
    takeRows(access, scalar(slice.getIndex()), type.getDimSize(0),
             all.getDimSize(0) / type.getDimSize(0));
  access.unit = hopper::widestAccess / access.elementBytes;
  setColumns(access, op.getView(), op.getIndices().back());
  SmallVector<Unit> units;
  forEachUnit(access, type, [&](const Unit &unit) { units.push_back(unit); });
  const Unit *unit = units.begin();
  const SharedPlace target = sharedTiles.find(op.getDestination())->second;
  forEachRun(type, target, [&](Value address, int64_t flips, int64_t offset, int64_t) {
    assembly("{\n.reg .b32 to;\nxor.b32 to, $0, " + Twine(flips) +
                 ";\ncp.async.cg.shared::cta.global [to+" + Twine(offset) + "], [$1+" +
                 Twine(unit->offset) + "], " + Twine(hopper::widestAccess) + ", $2;\n}",
             "r,l,r", {address, unit->row, bytesInside(access, *unit)}, {});
    ++unit;
  });
  return success();
}
