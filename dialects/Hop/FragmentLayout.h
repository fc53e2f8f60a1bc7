//===- FragmentLayout.h - Where a thread's elements lie in a tile ---------===//
//
// The elements that one thread holds of a tile with a #hop.layout, in order, as
// offsets from the thread's first element. See HopTypes.td.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECTS_HOP_FRAGMENTLAYOUT_H
#define TESSERA_DIALECTS_HOP_FRAGMENTLAYOUT_H

#include "dialects/Hop/Hop.h"
#include "dialects/Hop/SharedLayout.h"

namespace tessera::hop {

/// The digits of the registers of one tile: those of its layout, then one for each axis along which
/// the layout repeats, the last axis first.
class FragmentLayout {
public:
  explicit FragmentLayout(mlir::RankedTensorType type)
      : layout(getLayout(type)), digits(layout.getRegisters()) {
    for (int64_t axis = layout.getRank() - 1; axis >= 0; --axis) {
      int64_t span = layout.getExtent(axis);
      LayoutDigit repeat = {type.getDimSize(axis) / span, {0, 0}};
      repeat.steps[axis] = span;
      digits.push_back(repeat);
    }
  }

  LayoutAttr getLayoutAttr() const { return layout; }
  llvm::ArrayRef<LayoutDigit> getDigits() const { return digits; }

  /// Elements of one thread.
  int64_t size() const {
    int64_t size = 1;
    for (const LayoutDigit &digit : digits)
      size *= digit.extent;
    return size;
  }

  /// The place of element `i` along `axis`, less that of the thread's first element.
  int64_t offset(int64_t i, int64_t axis) const {
    int64_t place = 0;
    for (const LayoutDigit &digit : digits) {
      place += i % digit.extent * digit.steps[axis];
      i /= digit.extent;
    }
    return place;
  }

  /// The element of the slice along `axis` that lies where element `i` does.
  int64_t sliceIndex(int64_t i, int64_t axis) const {
    int64_t index = 0, weight = 1;
    for (const LayoutDigit &digit : digits) {
      if (digit.moves(axis)) {
        index += i % digit.extent * weight;
        weight *= digit.extent;
      }
      i /= digit.extent;
    }
    return index;
  }

private:
  LayoutAttr layout;
  llvm::SmallVector<LayoutDigit, 6> digits;
};

/// How many elements one register of a tile holds: rank-2 tiles are kept in pairs of 16-bit
/// elements and in fours of 8-bit floats, the form of wgmma's A operand.
inline int64_t elementsPerRegister(mlir::RankedTensorType type) {
  if (type.getRank() != 2)
    return 1;
  if (tile::isByteFloat(type.getElementType()))
    return 4;
  return type.getElementTypeBitWidth() == 16 ? 2 : 1;
}
/// Words of neighbours, 2 or 4, that a thread moves at once between registers and shared memory: of
/// tiles of rank 2 whose threads have runs of neighbours, those of a warp within a span of the
/// swizzle, in rows that are apart by its repeat. 0 of others.
inline int64_t wordsOfRun(mlir::RankedTensorType type) {
  LayoutAttr layout = getLayout(type);
  std::optional<SharedLayout> shared = getSharedLayout(type);
  if (layout.getRank() != 2 || !shared || layout.getRegisters().size() != 1 ||
      !layout.getWarpgroups().empty() || layout.getExtent(0) % hopper::swizzleRows != 0 ||
      layout.getExtent(1) * shared->elementBytes > shared->swizzle)
    return 0;
  int64_t words = layout.getRun() * shared->elementBytes / hopper::registerBytes;
  return words >= 2 ? std::min(words, hopper::widestAccess / hopper::registerBytes) : 0;
}

inline bool isPacked(mlir::RankedTensorType type) { return elementsPerRegister(type) > 1; }

} // namespace tessera::hop

#endif // TESSERA_DIALECTS_HOP_FRAGMENTLAYOUT_H
