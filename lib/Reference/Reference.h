//===- Reference.h - The dialect in the words of its .td files ------------===//

#ifndef TESSERA_LIB_REFERENCE_REFERENCE_H
#define TESSERA_LIB_REFERENCE_REFERENCE_H

#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace tessera {

/// The documentation of an operation, as "tile.dot", as Markdown; empty for another name.
std::string describeOperation(llvm::StringRef name);

/// Whether the documentation says that passes alone write an operation.
bool isOfPasses(llvm::StringRef name);

/// A field of #tile.schedule: a row of the table in its documentation.
struct FieldText {
  llvm::StringRef name, values, whenAbsent, meaning;
};
const std::vector<FieldText> &getFieldTexts();
/// That of a name; null for another one.
const FieldText *findFieldText(llvm::StringRef name);

} // namespace tessera

#endif // TESSERA_LIB_REFERENCE_REFERENCE_H
