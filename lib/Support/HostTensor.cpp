//===- HostTensor.cpp - A strided tensor of doubles in host memory --------===//

#include "lib/Support/HostTensor.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <numeric>

namespace tessera {

int64_t countElements(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t extent : shape) {
    if (extent < 0)
      return -1;
    empty |= extent == 0;
  }
  if (empty)
    return 0;
  for (int64_t extent : shape)
    if (llvm::MulOverflow(count, extent, count))
      return -1;
  return count;
}

static int64_t integerOf(double element) { return llvm::bit_cast<int64_t>(element); }

double HostTensor::getNumber(int64_t offset) const {
  return holdsIntegers ? static_cast<double>(integerOf(data[offset])) : data[offset];
}

double HostTensor::getDistance(int64_t offset, const HostTensor &other, int64_t otherOffset) const {
  if (!holdsIntegers)
    return std::fabs(data[offset] - other.data[otherOffset]);
  return static_cast<double>(
      llvm::AbsoluteDifference(integerOf(data[offset]), integerOf(other.data[otherOffset])));
}

void HostTensor::decode(int64_t offset, const ElementType &type, const char *at) {
  data[offset] =
      holdsIntegers ? llvm::bit_cast<double>(readBits(at, type.bytes)) : decodeElement(type, at);
}

void HostTensor::encode(int64_t offset, const ElementType &type, char *at) const {
  if (holdsIntegers)
    writeBits(at, type.bytes, llvm::bit_cast<uint64_t>(data[offset]));
  else
    encodeElement(type, data[offset], at);
}

void HostTensor::convertToIntegers() {
  char bits[sizeof(int64_t)];
  for (double &element : data) {
    encodeElement(*getElementType("i64"), element, bits);
    element = llvm::bit_cast<double>(readBits(bits, sizeof(bits)));
  }
  holdsIntegers = true;
}

std::optional<int64_t> HostTensor::convertToDoubles() {
  std::optional<int64_t> lost;
  for (double &element : data) {
    int64_t integer = integerOf(element);
    element = static_cast<double>(integer);
    if (element >= 0x1p63 || static_cast<int64_t>(element) != integer)
      lost = integer;
  }
  holdsIntegers = false;
  return lost;
}

HostTensor HostTensor::contiguous(std::vector<int64_t> shape, double fill) {
  std::vector<int64_t> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  return ordered(std::move(shape), order, fill);
}

HostTensor HostTensor::ordered(std::vector<int64_t> shape, const std::vector<int64_t> &order,
                               double fill, int64_t rowUnit) {
  HostTensor tensor;
  tensor.shape = std::move(shape);
  tensor.strides.resize(tensor.shape.size());
  std::vector<int64_t> stored = tensor.shape;
  if (!order.empty())
    stored[order.back()] = llvm::alignTo(stored[order.back()], rowUnit);
  tensor.data.assign(countElements(stored), fill);
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    tensor.strides[order[i]] = stride;
    // A tensor without elements has no distances; 0 extents must not zero the strides.
    stride = llvm::SaturatingMultiply<uint64_t>(stride, std::max<int64_t>(stored[order[i]], 1));
  }
  return tensor;
}

int64_t HostTensor::numElements() const { return countElements(shape); }

std::string HostTensor::check() const {
  if (shape.size() != strides.size())
    return llvm::formatv("has {0} extents and {1} strides", shape.size(), strides.size());
  int64_t count = countElements(shape);
  if (count < 0)
    return "has a negative extent or more elements than 63 bits can count";
  if (count == 0)
    return {};
  int64_t last = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t reach;
    if (strides[i] < 0)
      return llvm::formatv("has the negative stride {0} along dimension {1}", strides[i], i);
    if (llvm::MulOverflow(shape[i] - 1, strides[i], reach) || llvm::AddOverflow(last, reach, last))
      return llvm::formatv("has the stride {0} along dimension {1}, which is too large", strides[i],
                           i);
  }
  if (last >= static_cast<int64_t>(data.size()))
    return llvm::formatv("reaches element {0} of a buffer of {1}", last, data.size());
  return {};
}

} // namespace tessera
