//===- TileTypes.cpp - Types of the tile dialect --------------------------===//

#include "dialects/Tile/Signature.h"
#include "lib/Support/ElementTypes.h"

using namespace mlir;
using namespace tessera::tile;

int64_t ViewType::getStaticDim(int64_t i) const {
  if (auto extent = dyn_cast<IntegerAttr>(getDims()[i]))
    return extent.getInt();
  return ShapedType::kDynamic;
}

StringRef ViewType::getDimName(int64_t i) const {
  if (auto name = dyn_cast<StringAttr>(getDims()[i]))
    return name.getValue();
  return {};
}

bool ViewType::isElementType(Type type) { return findElementType(type); }

LogicalResult ViewType::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<Attribute> dims, Type elementType) {
  if (dims.empty() || dims.size() > 4)
    return emitError() << "a view has 1 to 4 dimensions, got " << dims.size();
  for (Attribute dim : dims) {
    if (auto extent = dyn_cast<IntegerAttr>(dim)) {
      if (extent.getInt() < 1)
        return emitError() << "a static extent of a view is at least 1, got " << extent.getInt();
    } else if (!isa<StringAttr>(dim)) {
      return emitError() << "a dimension of a view is a name or an integer, got " << dim;
    }
  }
  if (!isElementType(elementType))
    return emitError() << "the element type of a view is "
                       << listTypes(&tessera::ElementType::type, " or ") << ", got " << elementType;
  return success();
}

Type ViewType::parse(AsmParser &parser) {
  SmallVector<Attribute> dims;
  Builder &builder = parser.getBuilder();
  SMLoc loc = parser.getCurrentLocation();
  auto parseDim = [&]() -> ParseResult {
    int64_t extent;
    OptionalParseResult integer = parser.parseOptionalInteger(extent);
    if (integer.has_value()) {
      dims.push_back(builder.getI64IntegerAttr(extent));
      return *integer;
    }
    std::string name;
    if (failed(parser.parseKeywordOrString(&name)))
      return failure();
    dims.push_back(builder.getStringAttr(name));
    return success();
  };
  Type elementType;
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseDim) ||
      parser.parseComma() || parser.parseType(elementType) || parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    ArrayRef<Attribute>(dims), elementType);
}

void ViewType::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getDims(), printer, [&](Attribute dim) {
    if (auto name = dyn_cast<StringAttr>(dim))
      printer.printKeywordOrString(name.getValue());
    else
      printer << cast<IntegerAttr>(dim).getInt();
  });
  printer << "], " << getElementType() << ">";
}
