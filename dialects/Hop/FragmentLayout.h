//===- FragmentLayout.h - Where a thread's elements lie in a tile ---------===//
//
// The elements that one thread holds of a tile with a #hop.layout, in order, as
// offsets from the thread's first element. See HopTypes.td.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECTS_HOP_FRAGMENTLAYOUT_H
#define TESSERA_DIALECTS_HOP_FRAGMENTLAYOUT_H

#include "dialects/Hop/Hop.h"
#include "dialects/Hop/Machine.h"

namespace tessera::hop {

/// Of a row tile a thread holds two elements of each 64 rows, of an accumulator every fourth pair
/// of columns of those two rows, which are eight apart (PTX ISA 9.7.15.5.1).
struct FragmentLayout {
  static constexpr int64_t mmaRows = hopper::mmaRows, lanesPerRow = hopper::lanesPerRow;

  LayoutKind kind;
  int64_t rows = 1, columns = 1;

  explicit FragmentLayout(mlir::RankedTensorType type) : kind(*getLayout(type)) {
    if (kind == LayoutKind::Accumulator) {
      rows = type.getDimSize(0);
      columns = type.getDimSize(1);
    } else {
      (kind == LayoutKind::Column ? columns : rows) = type.getDimSize(0);
    }
  }

  /// Elements of one thread.
  int64_t size() const {
    switch (kind) {
    case LayoutKind::Accumulator:
      return rows / mmaRows * (columns / 2);
    case LayoutKind::Column:
      return columns / lanesPerRow;
    case LayoutKind::Row:
    case LayoutKind::RowPartial:
      return 2 * rows / mmaRows;
    }
    return 0;
  }

  /// Row of element `i` less the thread's first row, 16 * warp + lane / 4.
  int64_t rowOffset(int64_t i) const {
    if (kind == LayoutKind::Column)
      return 0;
    if (kind != LayoutKind::Accumulator)
      return mmaRows * (i / 2) + 8 * (i % 2);
    int64_t perBlock = columns / 2;
    return mmaRows * (i / perBlock) + 8 * ((i % perBlock) / 2 % 2);
  }

  /// Column of element `i` less the thread's first column, 2 * (lane % 4).
  int64_t columnOffset(int64_t i) const {
    if (kind == LayoutKind::Column)
      return 8 * (i / 2) + i % 2;
    if (kind != LayoutKind::Accumulator)
      return 0;
    int64_t inBlock = i % (columns / 2);
    return 8 * (inBlock / 4) + inBlock % 2;
  }

  /// The element of a row tile that lies in the row of element `i`.
  int64_t rowIndex(int64_t i) const {
    int64_t row = rowOffset(i);
    return 2 * (row / mmaRows) + (row % mmaRows) / 8;
  }
  /// The element of a column tile that lies in the column of element `i`.
  int64_t columnIndex(int64_t i) const {
    int64_t column = columnOffset(i);
    return 2 * (column / 8) + column % 8;
  }
};

/// Rank-2 tiles of 16-bit elements are kept in pairs of neighbouring columns, one 32-bit
/// register each: the form of wgmma's A operand.
inline bool isPacked(mlir::RankedTensorType type) {
  return type.getRank() == 2 && type.getElementTypeBitWidth() == 16;
}

} // namespace tessera::hop

#endif // TESSERA_DIALECTS_HOP_FRAGMENTLAYOUT_H
