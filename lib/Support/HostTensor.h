//===- HostTensor.h - A strided tensor of doubles in host memory ----------===//
//
// What the interpreter reads and writes and what `.npy` files become: every
// element is a double whatever the element type of the view it stands for,
// but for integers of 64 bits where all of their bits count.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SUPPORT_HOSTTENSOR_H
#define TESSERA_LIB_SUPPORT_HOSTTENSOR_H

#include "lib/Support/ElementTypes.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

struct HostTensor {
  /// Extent of each dimension, each at least 0.
  std::vector<int64_t> shape;
  /// Distance in elements between neighbours along each dimension, each at least 0.
  std::vector<int64_t> strides;
  /// Storage: element (i0, i1, ...) is at sum(i * stride).
  std::vector<double> data;
  /// Elements are 64-bit integers, which are in `data` by their bits.
  bool holdsIntegers = false;

  /// The element at a place of `data`; the nearest double of an integer.
  double getNumber(int64_t offset) const;
  /// How far apart two elements are, of tensors that both hold integers or both do not.
  double getDistance(int64_t offset, const HostTensor &other, int64_t otherOffset) const;
  /// The element at a place of `data` from memory, and to it.
  void decode(int64_t offset, const ElementType &type, const char *at);
  void encode(int64_t offset, const ElementType &type, char *at) const;
  /// Holds integers from here on: those that are nearest to its elements.
  void convertToIntegers();
  /// Holds doubles from here on; gives an integer that is none, if there is one.
  std::optional<int64_t> convertToDoubles();

  /// A tensor in C order, every element `fill`.
  static HostTensor contiguous(std::vector<int64_t> shape, double fill = 0);

  /// A tensor stored with `order[0]` as the slowest dimension and `order.back()` as the fastest;
  /// `order` is a permutation of the dimensions. BSHD storage of a [B, H, S, D] view is {0, 2, 1,
  /// 3}.
  /// Rows along the fastest dimension start at multiples of `rowUnit` elements, with `fill`
  /// between.
  static HostTensor ordered(std::vector<int64_t> shape, const std::vector<int64_t> &order,
                            double fill = 0, int64_t rowUnit = 1);

  /// The number of elements; the product of extents must fit 63 bits (see `countElements`).
  int64_t numElements() const;

  /// Says what is wrong with shape, strides and storage, or returns an empty string: equal ranks,
  /// nothing negative, every element inside `data`.
  std::string check() const;

  /// Calls `visit(linear, offset)` for each element in C order: its index in a C-ordered copy and
  /// its place in `data`.
  template <typename Visitor>
  void forEach(Visitor &&visit) const {
    std::vector<int64_t> index(shape.size(), 0);
    int64_t offset = 0;
    for (int64_t linear = 0, count = numElements(); linear != count; ++linear) {
      visit(linear, offset);
      for (size_t i = shape.size(); i-- > 0;) {
        offset += strides[i];
        if (++index[i] < shape[i])
          break;
        offset -= strides[i] * shape[i];
        index[i] = 0;
      }
    }
  }
};

/// The product of `shape`, or -1 when an extent is negative or the product exceeds 63 bits.
int64_t countElements(const std::vector<int64_t> &shape);

} // namespace tessera

#endif // TESSERA_LIB_SUPPORT_HOSTTENSOR_H
