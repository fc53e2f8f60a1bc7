//===- TileDialect.cpp - Registration of the tile dialect -----------------===//

#include "dialects/Tile/PolynomialExp.h"
#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace tessera::tile;

#include "dialects/Tile/TileDialect.cpp.inc"
#include "dialects/Tile/TileEnums.cpp.inc"
#include "dialects/Tile/TileInterfaces.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Tile/TileTypes.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Tile/TileAttrs.cpp.inc"

/// What `attribute`, one of the dialect's on operations of others, asks for; nothing where it
/// holds.
static std::optional<llvm::StringRef> whatIsMissing(mlir::Operation *op,
                                                    mlir::NamedAttribute attribute) {
  llvm::StringRef name = attribute.getName();
  mlir::Attribute value = attribute.getValue();
  if (name == TileDialect::ParametersAttrHelper::getNameStr() &&
      !(llvm::isa<mlir::ModuleOp>(op) && llvm::isa<mlir::DictionaryAttr>(value)))
    return "a dictionary of a module";
  // The dialect does not depend on func, whose functions end in the reader.
  if (name == TileDialect::OverridableAttrHelper::getNameStr() &&
      !(op->getName().getStringRef() == "func.func" && llvm::isa<mlir::UnitAttr>(value)))
    return "a unit of a func.func";
  if (name == TileDialect::GradientOfAttrHelper::getNameStr() &&
      !(op->getName().getStringRef() == "func.func" && llvm::isa<mlir::FlatSymbolRefAttr>(value)))
    return "the name of a function, of a func.func";
  if (name == TileDialect::WithRespectToAttrHelper::getNameStr()) {
    auto names = llvm::dyn_cast<mlir::ArrayAttr>(value);
    if (!names || !llvm::all_of(names, llvm::IsaPred<mlir::StringAttr>) ||
        !op->hasAttr(TileDialect::GradientOfAttrHelper::getNameStr()))
      return "an array of names beside tile.gradient_of";
  }
  if (name == TileDialect::ZeroSumOverAttrHelper::getNameStr()) {
    auto number = llvm::dyn_cast<mlir::IntegerAttr>(value);
    if (!number || !number.getType().isSignlessInteger(64) || number.getInt() < 0 ||
        !op->hasAttr(TileDialect::WithRespectToAttrHelper::getNameStr()))
      return "an i64 from 0 on beside tile.with_respect_to";
  }
  if (name == TileDialect::BoundaryAttrHelper::getNameStr() &&
      !(llvm::isa<mlir::scf::ForOp>(op) && llvm::isa<mlir::UnitAttr>(value)))
    return "a unit of an scf.for";
  if (name == TileDialect::PolynomialAttrHelper::getNameStr()) {
    auto share = llvm::dyn_cast<mlir::IntegerAttr>(value);
    bool isShare = share && share.getType().isSignlessInteger(64) && share.getInt() >= 1 &&
                   share.getInt() <= kExponentialShares;
    if (!isShare || !llvm::isa<mlir::math::Exp2Op, mlir::math::ExpOp>(op) ||
        !mlir::getElementTypeOrSelf(op->getResult(0)).isF32())
      return "an i64 from 1 to 16 of a math.exp2 or math.exp of f32";
  }
  if (name == TileDialect::PolynomialPreciseAttrHelper::getNameStr() &&
      !(llvm::isa<mlir::UnitAttr>(value) &&
        op->hasAttr(TileDialect::PolynomialAttrHelper::getNameStr())))
    return "a unit beside tile.polynomial";
  if (name == TileDialect::FewTilesAttrHelper::getNameStr() &&
      !(llvm::isa<KernelOp>(op) && llvm::isa<mlir::UnitAttr>(value)))
    return "a unit of a tile.kernel";
  return std::nullopt;
}

mlir::LogicalResult TileDialect::verifyOperationAttribute(mlir::Operation *op,
                                                          mlir::NamedAttribute attribute) {
  constexpr llvm::StringLiteral known[] = {
      OverridableAttrHelper::getNameStr(),   GradientOfAttrHelper::getNameStr(),
      WithRespectToAttrHelper::getNameStr(), ZeroSumOverAttrHelper::getNameStr(),
      ParametersAttrHelper::getNameStr(),    BoundaryAttrHelper::getNameStr(),
      PolynomialAttrHelper::getNameStr(),    PolynomialPreciseAttrHelper::getNameStr(),
      FewTilesAttrHelper::getNameStr()};
  if (!llvm::is_contained(known, attribute.getName()))
    return op->emitOpError("has the attribute ")
           << attribute.getName() << ", which is none of tile; known are "
           << llvm::join(llvm::ArrayRef(known), ", ");
  if (std::optional<llvm::StringRef> missing = whatIsMissing(op, attribute))
    return op->emitOpError("has ")
           << attribute.getName() << " = " << attribute.getValue() << "; it is " << *missing;
  return mlir::success();
}

void TileDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Tile/TileTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Tile/TileAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Tile/TileOps.cpp.inc"
      >();
}
