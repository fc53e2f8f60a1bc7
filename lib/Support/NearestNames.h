//===- NearestNames.h - What an unknown name was meant to be --------------===//

#ifndef TESSERA_LIB_SUPPORT_NEARESTNAMES_H
#define TESSERA_LIB_SUPPORT_NEARESTNAMES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace tessera {

/// "; did you mean 'a' or 'b'?" with the known names that are nearest to `name`, at most `most` of
/// them; empty where none is near.
std::string suggestNames(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> known,
                         size_t most = 1);

} // namespace tessera

#endif // TESSERA_LIB_SUPPORT_NEARESTNAMES_H
