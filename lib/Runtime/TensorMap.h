//===- TensorMap.h - Tensor maps and their cache ----------------*- C++ -*-===//

#ifndef TESSERA_LIB_RUNTIME_TENSORMAP_H
#define TESSERA_LIB_RUNTIME_TENSORMAP_H

#include "lib/Runtime/Bundle.h"
#include "lib/Runtime/Driver.h"

#include "llvm/ADT/ArrayRef.h"

#include <vector>

namespace tessera::runtime {

/// The parameters of a tensor map that depend on the launch.
struct TensorMapExtents {
  uint64_t dims[kMaxTensorMapRank];
  uint64_t strides[kMaxTensorMapRank]; ///< bytes, of dimensions 1 and up
  uint64_t address;
};
TensorMapExtents evaluateTensorMap(const TensorMapRecipe &recipe, const Argument &argument,
                                   llvm::ArrayRef<int64_t> dims);

/// Encodes a tensor map over checked arguments of which no extent is 0. Errors: DRIVER_ERROR, with
/// the whole recipe in the text.
llvm::Error encodeTensorMap(const cuda::Driver &driver, const KernelInfo &kernel,
                            const TensorMapRecipe &recipe, const Argument &argument,
                            llvm::ArrayRef<int64_t> dims, cuda::TensorMap &map);

/// The tensor maps of recent values of one argument, and the knowledge that the device reaches
/// them. Replaces by position (hash modulo size), so that a look-up neither searches nor allocates.
class ArgumentCache {
public:
  ArgumentCache(unsigned rank, unsigned mapCount);

  /// The slot that holds, or is to hold, what belongs to these values of the argument.
  unsigned getSlot(const Argument &argument) const;
  bool holds(unsigned slot, const Argument &argument) const;
  /// Marks the slot as holding these values, whose maps are `maps`.
  void fill(unsigned slot, const Argument &argument, llvm::ArrayRef<cuda::TensorMap> maps);
  const cuda::TensorMap &getMap(unsigned slot, unsigned index) const {
    return maps[slot * mapCount + index];
  }

private:
  unsigned rank, mapCount;
  std::vector<bool> used;
  /// For each slot the address, the extents and the strides.
  std::vector<int64_t> keys;
  std::vector<cuda::TensorMap> maps;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_TENSORMAP_H
