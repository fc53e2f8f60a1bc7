//===- GlobalAccess.h - Where a thread's elements lie in a view -----------===//
//
// What EmitGlobal.cpp finds out about an access, for EmitUnits.cpp to move several
// neighbours at once, and EmitWindows.cpp what lanes hand on.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWERTOLLVM_GLOBALACCESS_H
#define TESSERA_PASSES_LOWERTOLLVM_GLOBALACCESS_H

#include "dialects/Hop/Machine.h"
#include "passes/LowerToLLVM/Emitter.h"

namespace tessera {

/// A unit of neighbours is two registers or four, where rows start at multiples of it.
constexpr int64_t kLeastUnitBytes = 8;
/// Bytes that the lanes of a row of an accumulator store at once.
constexpr int64_t kQuadBytes = hopper::lanesPerRow * hopper::widestAccess;

/// The instruction that writes `elements` of `bits` bits each, or adds them.
std::string writeText(bool adds, int64_t elements, int64_t bits);

/// How elements of so many bytes are moved one at a time: the type of instructions, and the type,
/// the constraint and the size in bits of their registers.
struct ElementMove {
  ElementMove(mlir::OpBuilder &builder, int64_t bytes)
      : registerBits(std::max<int64_t>(8 * bytes, 16)), type(builder.getIntegerType(registerBits)),
        suffix("b" + std::to_string(8 * bytes)), constraint(bytes <= 2   ? "h"
                                                            : bytes == 4 ? "r"
                                                                         : "l") {}

  int64_t registerBits;
  mlir::Type type;
  std::string suffix;
  llvm::StringRef constraint;
};

/// Where elements lie that indices name one by one.
struct Emitter::ElementPlaces {
  mlir::Value view;
  /// An index that is the same for all elements, for each dimension; null where they differ.
  Values ofAll;
  /// i1: the indices of all elements lie inside the view; null where nothing has to be asked.
  mlir::Value insideOfAll;
};

/// Where numbers have a row (an element, of a rank-1 tile): its number along the dimension of rows,
/// i64, and where numbers are along others too the distance along these, i64, and i1: they lie
/// inside of them.
struct Emitter::NamedRow {
  mlir::Value number, outer, inside;
};

/// Where a tile lies in a view.
struct Emitter::Access {
  mlir::Value pointer;   ///< element 0 of the view's row 0, at the outer indices
  mlir::Value rowStride; ///< in elements, i64; none for rank-1 tiles
  mlir::Value row,
      column; ///< the tile's first row and column, i32; a rank-1 tile has only the latter
  mlir::Value rows, columns; ///< extents, i32
  /// This thread's first row and column within the tile, i32.
  mlir::Value threadRow, threadColumn;
  bool columnsInside = false; ///< all of its columns are known to be in the view
  /// What is known of a tile whose rows are moved in units: no column is before the view's first;
  /// none of its units has the last one in its midst.
  bool columnsStarted = false, unitsWhole = false;
  int64_t elementBytes;
  int64_t unitBytes; ///< the most that a thread moves at once where it has neighbours
  int64_t unit = 1;  ///< elements that it does move
  bool adds = false; ///< to what the view holds
  mlir::Type element;
  /// i1: the outer indices that come from memory lie inside; none where there are no such.
  mlir::Value outerInside;
  /// Rows that numbers name, by their distance from the thread's first.
  llvm::SmallDenseMap<int64_t, NamedRow> named;
  /// Of a box whose rows (elements, of a rank-1 tile) run over several dimensions of the view: the
  /// extents of all but the first of them, and the strides of all but the last, from the inside
  /// out.
  llvm::SmallVector<int64_t> periods;
  Values strides;
};

/// A place in a view: its row and column there, i32 (i64 where numbers name them), of which a
/// rank-1 tile has only one, and the distance from Access::pointer along outer dimensions of a box
/// or of numbers, i64, if it has such. i1: numbers of outer dimensions lie inside, if there are
/// any.
struct Emitter::Place {
  mlir::Value row, column, outer, inside;
};

/// Neighbours in a row that a thread moves at once: Access::unit elements.
struct Emitter::Unit {
  int64_t element;     ///< the first of its elements, of the thread's
  mlir::Value row;     ///< i64: the address of the thread's first element of the row
  int64_t offset;      ///< of the unit from there, in bytes
  mlir::Value whole;   ///< i32: all of it is in the view
  mlir::Value partial; ///< i32: some of it is; none where that cannot be
  mlir::Value left;    ///< i32: how many of its elements and those behind it are
};

} // namespace tessera

#endif // TESSERA_PASSES_LOWERTOLLVM_GLOBALACCESS_H
