//===- Signature.cpp - The arguments of kernels and sequences -------------===//

#include "dialects/Tile/Signature.h"
#include "lib/Support/ElementTypes.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera::tile;

ParseResult tessera::tile::parseSignature(OpAsmParser &parser,
                                          SmallVectorImpl<OpAsmParser::Argument> &arguments,
                                          SmallVectorImpl<Attribute> &types,
                                          SmallVectorImpl<Attribute> &names) {
  if (parser.parseArgumentList(arguments, AsmParser::Delimiter::Paren, /*allowType=*/true))
    return failure();
  for (const OpAsmParser::Argument &argument : arguments) {
    types.push_back(TypeAttr::get(argument.type));
    names.push_back(parser.getBuilder().getStringAttr(argument.ssaName.name.drop_front()));
  }
  return success();
}

/// The entry of a builtin type for which `member` says that there is such an argument.
static const tessera::ElementType *findArgumentType(Type type,
                                                    int32_t tessera::ElementType::*member) {
  auto real = dyn_cast<FloatType>(type);
  return tessera::findType([&](const tessera::ElementType &entry) {
    return entry.*member &&
           (entry.semantics ? real && &real.getFloatSemantics() == &entry.semantics()
                            : type.isSignlessInteger(8 * entry.bytes));
  });
}

const tessera::ElementType *tessera::tile::findElementType(Type type) {
  return findArgumentType(type, &ElementType::type);
}

const tessera::ElementType *tessera::tile::findScalarType(Type type) {
  if (type.isIndex())
    return getScalarType("i64");
  return findArgumentType(type, &ElementType::scalar);
}

bool tessera::tile::isArgumentType(Type type) {
  return isa<ViewType>(type) || findScalarType(type);
}

std::string tessera::tile::listArgumentTypes() {
  return "views, " + listTypes(&ElementType::scalar, ", ") + " and index";
}

SmallVector<StringRef> tessera::tile::getDimNames(ArrayAttr types) {
  llvm::SetVector<StringRef, SmallVector<StringRef>> names;
  for (Type type : types.getAsValueRange<TypeAttr>())
    if (auto view = dyn_cast<ViewType>(type))
      for (int64_t i = 0; i < view.getRank(); ++i)
        if (!view.getDimName(i).empty())
          names.insert(view.getDimName(i));
  return names.takeVector();
}
