//===- Names.h - Names in generated C ---------------------------*- C++ -*-===//

#ifndef TESSERA_LIB_CSOURCE_NAMES_H
#define TESSERA_LIB_CSOURCE_NAMES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace tessera {

/// What the functions that launch call their parameters, which a source calls `names`: different
/// names that C takes, C++ too, and that nothing has which these functions need.
std::vector<std::string> nameParameters(llvm::ArrayRef<llvm::StringRef> names);

/// Refuses what cannot name a function in C, nor in C++, which includes the header.
llvm::Error checkFunctionName(llvm::StringRef name);

/// Refuses the name of the function of `source` where the text has something else of that name at
/// file scope.
llvm::Error checkFunctionName(llvm::StringRef name, llvm::StringRef source);

} // namespace tessera

#endif // TESSERA_LIB_CSOURCE_NAMES_H
