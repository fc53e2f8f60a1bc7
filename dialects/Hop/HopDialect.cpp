//===- HopDialect.cpp - Registration of the hop dialect -------------------===//

#include "dialects/Hop/Hop.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace tessera::hop;

#include "dialects/Hop/HopDialect.cpp.inc"
#include "dialects/Hop/HopEnums.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Hop/HopTypes.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Hop/HopAttrs.cpp.inc"

mlir::LogicalResult HopDialect::verifyOperationAttribute(mlir::Operation *op,
                                                         mlir::NamedAttribute attribute) {
  return op->emitOpError("has the attribute ") << attribute.getName() << ", which is none of hop";
}

void HopDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Hop/HopTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Hop/HopAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Hop/HopOps.cpp.inc"
      >();
}
