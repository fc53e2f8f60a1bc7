//===- Npy.h - NumPy's array files ------------------------------*- C++ -*-===//
#ifndef TESSERA_TOOLS_SIM_NPY_H
#define TESSERA_TOOLS_SIM_NPY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <vector>

namespace tessera::sim {

struct NpyArray {
  std::string descr; ///< NumPy's type string without the byte order: "f4", "u2", ...
  std::vector<uint64_t> shape;
  std::vector<uint8_t> data;
};

llvm::Expected<NpyArray> readNpy(llvm::StringRef path);
/// As readNpy, from the bytes of the file.
llvm::Expected<NpyArray> parseNpy(llvm::StringRef bytes, llvm::StringRef path);
llvm::Error writeNpy(llvm::StringRef path, llvm::StringRef descr, llvm::ArrayRef<uint64_t> shape,
                     llvm::ArrayRef<uint8_t> data);

} // namespace tessera::sim

#endif // TESSERA_TOOLS_SIM_NPY_H
