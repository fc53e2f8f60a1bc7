//===- Fail.h - Errors that are a message ---------------------------------===//

#ifndef TESSERA_LIB_SUPPORT_FAIL_H
#define TESSERA_LIB_SUPPORT_FAIL_H

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

namespace tessera {

/// An error of no kind of its own.
inline llvm::Error fail(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

} // namespace tessera

#endif // TESSERA_LIB_SUPPORT_FAIL_H
