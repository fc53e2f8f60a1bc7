//===- Forms.h - How operations are written -------------------------------===//

#ifndef TESSERA_LIB_SOURCE_FORMS_H
#define TESSERA_LIB_SOURCE_FORMS_H

#include "mlir/IR/MLIRContext.h"
#include <string>

namespace tessera::source {

/// An example of an operation of a source, as "%c = arith.mulf %a, %b : !T"; empty for one that is
/// not known or has no usual form.
std::string getForm(llvm::StringRef operation, mlir::MLIRContext &context);

/// The names of all operations that a source may have.
std::vector<llvm::StringRef> getSourceOperations(mlir::MLIRContext &context);

} // namespace tessera::source

#endif // TESSERA_LIB_SOURCE_FORMS_H
