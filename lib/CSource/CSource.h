//===- CSource.h - Kernels as C ---------------------------------*- C++ -*-===//
//
// A bundle as a header and a C99 source that hold the machine code, all checks of a launch, tensor
// maps, workspaces and the launch itself. Programs that compile them need the C library and the
// CUDA driver, and nothing of this project.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CSOURCE_CSOURCE_H
#define TESSERA_LIB_CSOURCE_CSOURCE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace tessera {

struct CSource {
  std::string header, source;
};

/// Writes the one kernel or sequence of a bundle as a function `name`, to be kept in files of that
/// name with .h and .c. Fails for a name that no function of C can have here, a bundle of several
/// kernels without a sequence or of several sequences, and kernels that record a timeline.
llvm::Expected<CSource> writeCSource(llvm::StringRef bundle, llvm::StringRef name);

} // namespace tessera

#endif // TESSERA_LIB_CSOURCE_CSOURCE_H
