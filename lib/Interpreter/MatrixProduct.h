//===- MatrixProduct.h - Small dense products -----------------------------===//

#ifndef TESSERA_LIB_INTERPRETER_MATRIXPRODUCT_H
#define TESSERA_LIB_INTERPRETER_MATRIXPRODUCT_H

#include <cstdint>

namespace tessera::interp {

/// c += a * b for C-ordered a (m x k), b (k x n) and c (m x n): each element of c receives its
/// products one after the other, k ascending, rounded to double after each.
void multiplyInDouble(const double *a, const double *b, double *c, int64_t m, int64_t n, int64_t k);

/// The same with f32 rounding. Elements are values of f32, those of a and b of a 16-bit format:
/// their products are exact in f32.
void multiplyInFloat(const double *a, const double *b, double *c, int64_t m, int64_t n, int64_t k);

} // namespace tessera::interp

#endif // TESSERA_LIB_INTERPRETER_MATRIXPRODUCT_H
