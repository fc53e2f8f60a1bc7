//===- Forms.cpp - How operations are written -----------------------------===//

#include "lib/Source/Forms.h"
#include "lib/Source/Source.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Interfaces/CastInterfaces.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace tessera::source;

/// Those whose form does not follow from how many operands they have.
static const std::pair<StringRef, StringRef> kForms[] = {
    {"arith.cmpf", "%c = arith.cmpf olt, %a, %b : !T"},
    {"arith.cmpi", "%c = arith.cmpi slt, %a, %b : !T"},
    {"arith.constant", "%c = arith.constant 0 : index` or `%t = arith.constant dense<0.0> : !T"},
    {"arith.select", "%c = arith.select %mask, %a, %b : !Mask, !T"},
    {"func.call", "%r = func.call @name(%x, ...) : (!X, ...) -> !R"},
    {"func.func", "func.func @name(%x: !X, ...) -> !R { ... func.return %r : !R }"},
    {"func.return", "func.return %r : !R"},
    {"scf.for", "%r = scf.for %i = %from to %end step %one iter_args(%x = %first) -> (!T) { ... "
                "scf.yield %next : !T }"},
    {"scf.if", "%r = scf.if %c -> (!T) { ... scf.yield %a : !T } else { ... scf.yield %b : !T }"},
    {"scf.yield", "scf.yield %next : !T"},
    {"tile.broadcast", "%t = tile.broadcast %row axis 1 : !Row -> !T"},
    {"tile.dim", "%n = tile.dim \"N\""},
    {"tile.dot", "%c = tile.dot %a, %b, %acc : !A, !B -> !Acc"},
    {"tile.gather", "%t = tile.gather %view[%row, %col] rows %numbers : !View, !Rows -> !T"},
    {"tile.iota", "%t = tile.iota %first axis 1 : !T"},
    {"tile.kernel", "tile.kernel @name(%x: !tile.view<[M, 64], f32>, %a: f32, ...) grid(%m = M "
                    "ceildiv 128, ...) { ... }"},
    {"tile.launch", "tile.launch @kernel(%x, ...) : !X, ..."},
    {"tile.load", "%t = tile.load %view[%row, %col] : !View -> !T"},
    {"tile.reduce", "%r = tile.reduce sum %t axis 1 : !T -> !Row"},
    {"tile.reduce_index",
     "%value, %index = tile.reduce_index max %t axis 1 : !T -> !Row, !Indices"},
    {"tile.scan", "%s = tile.scan sum %t axis 1 exclusive reverse : !T"},
    {"tile.sequence", "tile.sequence @name(%x: !X, ...) dims(PARTS = M ceildiv 16) { ... }"},
    {"tile.splat", "%t = tile.splat %x : f32 -> !T"},
    {"tile.store", "tile.store %t, %view[%row, %col] : !T, !View"},
    {"tile.transpose", "%t = tile.transpose %a : !A -> !T"},
    {"tile.workspace", "%w = tile.workspace : !View"},
};

std::string tessera::source::getForm(StringRef operation, MLIRContext &context) {
  for (auto [name, form] : kForms)
    if (name == operation)
      return form.str();
  std::optional<RegisteredOperationName> info =
      RegisteredOperationName::lookup(operation, &context);
  StringRef dialect = operation.split('.').first;
  if (!info || (dialect != "arith" && dialect != "math"))
    return {};
  std::string prefix = "%c = " + operation.str();
  if (info->hasInterface<CastOpInterface>())
    return prefix + " %a : !From to !To";
  if (info->hasTrait<OpTrait::OneOperand>())
    return prefix + " %a : !T";
  if (info->hasTrait<OpTrait::NOperands<2>::Impl>())
    return prefix + " %a, %b : !T";
  if (info->hasTrait<OpTrait::NOperands<3>::Impl>())
    return prefix + " %a, %b, %c : !T";
  return {};
}

std::vector<StringRef> tessera::source::getSourceOperations(MLIRContext &context) {
  DialectRegistry registry;
  registerSourceDialects(registry);
  std::vector<StringRef> names;
  for (RegisteredOperationName operation : context.getRegisteredOperations())
    if (llvm::is_contained(registry.getDialectNames(), operation.getDialectNamespace()))
      names.push_back(operation.getStringRef());
  return names;
}
