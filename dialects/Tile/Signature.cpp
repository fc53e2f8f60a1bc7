//===- Signature.cpp - The arguments of kernels and sequences -------------===//

#include "dialects/Tile/Signature.h"
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

bool tessera::tile::isArgumentType(Type type) {
  return isa<ViewType>(type) || type.isF32() || type.isIndex() || type.isSignlessInteger(32) ||
         type.isSignlessInteger(64);
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
