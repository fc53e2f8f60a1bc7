//===- Names.h - Names of functions that generated C defines ----*- C++ -*-===//

#ifndef TESSERA_LIB_CSOURCE_NAMES_H
#define TESSERA_LIB_CSOURCE_NAMES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace tessera {

/// Whether a name is a word of C11 or of C++20.
bool isReservedWord(llvm::StringRef name);

/// Refuses what cannot name a function in C, nor in C++, which includes the header.
llvm::Error checkFunctionName(llvm::StringRef name);

/// Refuses the name of the function of `source` where the text has something else of that name at
/// file scope.
llvm::Error checkFunctionName(llvm::StringRef name, llvm::StringRef source);

} // namespace tessera

#endif // TESSERA_LIB_CSOURCE_NAMES_H
