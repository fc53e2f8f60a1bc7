//===- Numerics.h - Elements of tiles as doubles and 64-bit integers ------===//

#ifndef TESSERA_LIB_INTERPRETER_NUMERICS_H
#define TESSERA_LIB_INTERPRETER_NUMERICS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"
#include <vector>

namespace tessera::interp {

using Floats = std::vector<double>;
using Ints = std::vector<int64_t>;

/// True when every value of the type is a double.
bool isSupportedFloat(mlir::Type type);
/// True for index and integers of at most 64 bits.
bool isSupportedInt(mlir::Type type);
/// The width in bits of an integer type; 64 for index.
unsigned intWidth(mlir::Type type);

/// Rounds each element to the floating-point type `type`, to nearest even.
void roundAll(mlir::Type type, llvm::MutableArrayRef<double> values);

/// Integers are kept sign-extended from their width, i1 included (true is -1).
inline int64_t signExtend(int64_t value, unsigned width) {
  return static_cast<int64_t>(static_cast<uint64_t>(value) << (64 - width)) >> (64 - width);
}
inline uint64_t zeroExtend(int64_t value, unsigned width) {
  return static_cast<uint64_t>(value) << (64 - width) >> (64 - width);
}

/// The bits of `value` rounded to `type`, and the value of such bits.
uint64_t encodeFloat(mlir::FloatType type, double value);
double decodeFloat(mlir::FloatType type, uint64_t bits);
/// The double that equals an APFloat of a supported type.
double toDouble(const llvm::APFloat &value);

/// IEEE 754-2019 minimum and maximum: -0 < +0, NaN wins.
double maximum(double a, double b);
double minimum(double a, double b);
/// IEEE 754-2019 maximumNumber and minimumNumber: -0 < +0, a number wins over NaN.
double maximumNumber(double a, double b);
double minimumNumber(double a, double b);

} // namespace tessera::interp

#endif // TESSERA_LIB_INTERPRETER_NUMERICS_H
