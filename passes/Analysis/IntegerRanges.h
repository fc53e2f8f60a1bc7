// Which numbers the integers of a kernel may be.

#ifndef TESSERA_PASSES_ANALYSIS_INTEGERRANGES_H
#define TESSERA_PASSES_ANALYSIS_INTEGERRANGES_H

#include "mlir/IR/Operation.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace tessera {

/// Indices and extents, and places that a kernel computes of them alone, are taken to be no larger
/// than this (docs/language.md), so that sums of four have 32 bits.
constexpr int64_t kFarthestPlace = 500'000'000;

/// The numbers from `least` to `most`.
struct IntegerRange {
  int64_t least, most;
  /// Whether an end follows from numbers that may be any, as arguments and what is loaded, and not
  /// from places: a multiple of it is no place then.
  bool isFarBelow, isFarAbove;

  /// Constants and places.
  IntegerRange(int64_t least, int64_t most)
      : IntegerRange(least, most, least<-kFarthestPlace, most> kFarthestPlace) {}
  IntegerRange(int64_t least, int64_t most, bool isFarBelow, bool isFarAbove)
      : least(least), most(most), isFarBelow(isFarBelow), isFarAbove(isFarAbove) {}
  /// Any numbers of so many bits.
  static IntegerRange ofBits(unsigned bits);

  bool isFar() const { return isFarBelow || isFarAbove; }
  bool fits(unsigned bits) const;
  /// Whether so many bits have what the numbers are less those of `other`, and the opposite.
  bool lessFits(const IntegerRange &other, unsigned bits) const;
};

/// Ranges of scalars and of the elements of tiles, on both dialects. What is not known may be any
/// number of its type. Indices have 32 bits, as on the machine.
class IntegerRanges {
public:
  IntegerRange of(mlir::Value value);

  /// Whether `value` is a sum, a difference, a product or a cast, in whole numbers more than its
  /// type has.
  bool mayWrap(mlir::Value value) { return of(value), wrapping.contains(value); }

private:
  IntegerRange compute(mlir::Value value);
  IntegerRange compute(mlir::Operation *op, mlir::Value result);
  IntegerRange ofArgument(mlir::BlockArgument argument);
  IntegerRange ofIterations(mlir::Value lower, mlir::Value upper, int64_t behind);
  IntegerRange ofArithmetic(mlir::Operation *op);
  IntegerRange kept(mlir::Value value, IntegerRange whole);
  IntegerRange ofUnknown(mlir::Value value);

  llvm::DenseMap<mlir::Value, IntegerRange> ranges;
  llvm::DenseSet<mlir::Value> wrapping;
  unsigned depth = 0;
};

/// The bits of the integers of `type`, a scalar or a tile; those of the machine for indices.
unsigned bitsOfIntegers(mlir::Type type);

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_INTEGERRANGES_H
