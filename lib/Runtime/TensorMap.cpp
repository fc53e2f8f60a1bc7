//===- TensorMap.cpp - Tensor maps and their cache ------------------------===//

#include "lib/Runtime/TensorMap.h"

#include "lib/Runtime/Error.h"
#include "lib/Runtime/LaunchPlan.h"
#include "tessera/BundleKeys.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace tessera::runtime;

/// Slots of a cache. An application has few tensors in turn for one argument; more only cost
/// encoding.
static constexpr unsigned kSlots = 64;

/// 2^30 of them are 0 modulo 2^64, as addresses are.
static constexpr uint64_t kWrappingStride = 1ull << 34;

int TensorMapRecipe::dataType() const {
  constexpr int kTFloat32 = 11; // CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
  return roundsToTF32 ? kTFloat32 : element->tensorMapType;
}

llvm::StringRef TensorMapRecipe::elementName() const {
  if (roundsToTF32)
    return tessera::elements::tf32;
  return element->name;
}

TensorMapExtents tessera::runtime::evaluateTensorMap(const TensorMapRecipe &recipe,
                                                     const Argument &argument,
                                                     llvm::ArrayRef<int64_t> dims) {
  TensorMapExtents encoded = {};
  encoded.address = argument.pointer;
  unsigned bytes = recipe.element->bytes;
  for (size_t i = 0; i < recipe.dims.size(); ++i) {
    const TensorMapDim &dim = recipe.dims[i];
    encoded.dims[i] = dim.extent.evaluate(dims);
    if (i == 0)
      continue;
    if (dim.strideOfDim < 0)
      encoded.strides[i - 1] = dim.strideBytes;
    else if (argument.shape[dim.strideOfDim] > 1)
      encoded.strides[i - 1] = argument.strides[dim.strideOfDim] * bytes;
    else // Never used, and frameworks put anything there; the driver wants a multiple of 16.
      encoded.strides[i - 1] = llvm::alignTo(encoded.dims[0] * bytes, 16);
    if (dim.wraps)
      encoded.strides[i - 1] = kWrappingStride - encoded.strides[i - 1];
  }
  return encoded;
}

static std::string describeRecipe(const TensorMapRecipe &recipe, const TensorMapExtents &encoded) {
  std::string text;
  llvm::raw_string_ostream os(text);
  size_t rank = recipe.dims.size();
  os << llvm::formatv("address {0:x}, element {1}, dims [{2:$[, ]}], byte strides [{3:$[, ]}], box "
                      "[{4:$[, ]}], swizzle mode {5}",
                      encoded.address, recipe.elementName(),
                      llvm::make_range(encoded.dims, encoded.dims + rank),
                      llvm::make_range(encoded.strides, encoded.strides + rank - 1),
                      llvm::make_range(recipe.box.begin(), recipe.box.end()), recipe.swizzle);
  return text;
}

llvm::Error tessera::runtime::encodeTensorMap(const cuda::Driver &driver, const KernelInfo &kernel,
                                              const TensorMapRecipe &recipe,
                                              const Argument &argument,
                                              llvm::ArrayRef<int64_t> dims, cuda::TensorMap &map) {
  static constexpr uint32_t kElementStrides[kMaxTensorMapRank] = {1, 1, 1, 1, 1};
  TensorMapExtents encoded = evaluateTensorMap(recipe, argument, dims);
  cuda::Result result = driver.tensorMapEncodeTiled(
      &map, recipe.dataType(), recipe.dims.size(), reinterpret_cast<void *>(encoded.address),
      encoded.dims, encoded.strides, recipe.box.data(), kElementStrides,
      cuda::kTensorMapInterleaveNone, recipe.swizzle, cuda::kTensorMapL2Promotion128B,
      cuda::kTensorMapOobFillZero);
  if (result == 0)
    return llvm::Error::success();
  return driver.check(
      result, "kernel '" + kernel.name + "': argument '" + kernel.arguments[recipe.argument].name +
                  "': cuTensorMapEncodeTiled with " + describeRecipe(recipe, encoded));
}

ArgumentCache::ArgumentCache(unsigned rank, unsigned mapCount)
    : rank(rank), mapCount(mapCount), used(kSlots), keys(kSlots * (1 + 2 * rank)),
      maps(kSlots * mapCount) {}

unsigned ArgumentCache::getSlot(const Argument &argument) const {
  return hashLayout(argument, argument.pointer) % kSlots;
}

bool ArgumentCache::holds(unsigned slot, const Argument &argument) const {
  const int64_t *key = keys.data() + slot * (1 + 2 * rank);
  return used[slot] && key[0] == static_cast<int64_t>(argument.pointer) &&
         std::equal(argument.shape, argument.shape + rank, key + 1) &&
         std::equal(argument.strides, argument.strides + rank, key + 1 + rank);
}

void ArgumentCache::fill(unsigned slot, const Argument &argument,
                         llvm::ArrayRef<cuda::TensorMap> newMaps) {
  int64_t *key = keys.data() + slot * (1 + 2 * rank);
  key[0] = argument.pointer;
  std::copy_n(argument.shape, rank, key + 1);
  std::copy_n(argument.strides, rank, key + 1 + rank);
  llvm::copy(newMaps, maps.begin() + slot * mapCount);
  used[slot] = true;
}
