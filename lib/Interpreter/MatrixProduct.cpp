//===- MatrixProduct.cpp - Small dense products ---------------------------===//

#include "lib/Interpreter/MatrixProduct.h"
#include <algorithm>
#include <vector>

namespace tessera::interp {

/// Rows x columns of the result that stay in registers while k runs.
static constexpr int64_t blockRows = 4, blockColumns = 8;

/// Adds to a block of c in registers: each element sums its products in the order of k, whatever
/// the blocking.
template <typename T>
static void multiplyBlock(const T *a, const T *b, T *c, int64_t n, int64_t k) {
  T sums[blockRows][blockColumns];
  for (int64_t i = 0; i < blockRows; ++i)
    for (int64_t j = 0; j < blockColumns; ++j)
      sums[i][j] = c[i * n + j];
  for (int64_t l = 0; l < k; ++l)
    for (int64_t i = 0; i < blockRows; ++i)
      for (int64_t j = 0; j < blockColumns; ++j)
        sums[i][j] += a[i * k + l] * b[l * n + j];
  for (int64_t i = 0; i < blockRows; ++i)
    for (int64_t j = 0; j < blockColumns; ++j)
      c[i * n + j] = sums[i][j];
}

/// The same sums for `rows` x `columns` elements that do not fill a block.
template <typename T>
static void multiplyEdge(const T *a, const T *b, T *c, int64_t rows, int64_t columns, int64_t n,
                         int64_t k) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t l = 0; l < k; ++l)
      for (int64_t j = 0; j < columns; ++j)
        c[i * n + j] += a[i * k + l] * b[l * n + j];
}

template <typename T>
static void multiply(const T *a, const T *b, T *c, int64_t m, int64_t n, int64_t k) {
  int64_t wholeColumns = n - n % blockColumns, wholeRows = m - m % blockRows;
  for (int64_t j = 0; j < wholeColumns; j += blockColumns)
    for (int64_t i = 0; i < wholeRows; i += blockRows)
      multiplyBlock(a + i * k, b + j, c + i * n + j, n, k);
  multiplyEdge(a, b + wholeColumns, c + wholeColumns, wholeRows, n - wholeColumns, n, k);
  multiplyEdge(a + wholeRows * k, b, c + wholeRows * n, m - wholeRows, n, n, k);
}

void multiplyInDouble(const double *a, const double *b, double *c, int64_t m, int64_t n,
                      int64_t k) {
  multiply(a, b, c, m, n, k);
}

void multiplyInFloat(const double *a, const double *b, double *c, int64_t m, int64_t n, int64_t k) {
  std::vector<float> narrowA(a, a + m * k), narrowB(b, b + k * n), narrowC(c, c + m * n);
  multiply(narrowA.data(), narrowB.data(), narrowC.data(), m, n, k);
  std::copy(narrowC.begin(), narrowC.end(), c);
}

} // namespace tessera::interp
