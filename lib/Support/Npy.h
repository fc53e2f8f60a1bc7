//===- Npy.h - NumPy's .npy files -----------------------------------------===//
//
// Format: numpy.lib.format, versions 1.0 to 3.0
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SUPPORT_NPY_H
#define TESSERA_LIB_SUPPORT_NPY_H

#include "lib/Support/ElementTypes.h"
#include "lib/Support/HostTensor.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace tessera {

/// Reads what NumPy has of the element types of views, and float64, little-endian in C order, into
/// a C-ordered tensor, which holds integers where the file has them of 64 bits. The error names the
/// file, the byte where reading stopped, what was found and what is accepted.
llvm::Expected<HostTensor> readNpy(llvm::StringRef path);

/// As `readNpy`, from the bytes of a file; `name` is what errors call it.
llvm::Expected<HostTensor> parseNpy(llvm::StringRef bytes, llvm::StringRef name);

/// Writes the elements in C order (format version 1.0), little-endian: floats as float32, integers
/// as `type`.
llvm::Error writeNpy(llvm::StringRef path, const HostTensor &tensor, const ElementType &type);

} // namespace tessera

#endif // TESSERA_LIB_SUPPORT_NPY_H
