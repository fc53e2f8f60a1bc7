//===- Source.cpp - Reading .tile sources ---------------------------------===//

#include "lib/Source/Source.h"
#include "dialects/Tile/Tile.h"
#include "lib/Source/Guard.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Tile/TilePasses.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::source;

void tessera::registerSourceDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, func::FuncDialect, math::MathDialect, scf::SCFDialect,
                  tile::TileDialect>();
}

/// The position of a byte of `text`.
static Location locate(StringRef text, StringRef fileName, size_t offset, MLIRContext &context) {
  StringRef before = text.take_front(offset);
  size_t lineBegin = before.rfind('\n') + 1;
  return FileLineColLoc::get(&context, fileName, before.count('\n') + 1, offset - lineBegin + 1);
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

ParameterResult tessera::readParameters(StringRef text, StringRef fileName,
                                        ArrayRef<Define> defines, MLIRContext &context) {
  ParameterResult result;
  auto sourceError = [&](size_t offset, const Twine &message) {
    result.status = CompileStatus::SourceError;
    emitError(locate(text, fileName, offset, context)) << message;
  };
  auto defineError = [&](const Define &define, const Twine &message,
                         std::optional<size_t> declaration) {
    result.status = CompileStatus::UsageError;
    std::string origin = "-D " + define.first + "=" + define.second;
    InFlightDiagnostic diag = emitError(FileLineColLoc::get(&context, origin, 0, 0)) << message;
    if (declaration)
      diag.attachNote(locate(text, fileName, *declaration, context))
          << "'" << define.first << "' is declared here";
  };
  // Each step reports through the sinks, which set the status.
  if (result.table.parse(text, sourceError) && result.table.define(defines, defineError))
    result.table.bind(sourceError, defineError);
  return result;
}

static DictionaryAttr getParametersAttr(ArrayRef<Parameter> parameters, MLIRContext &context) {
  Builder builder(&context);
  SmallVector<NamedAttribute> attributes;
  for (const Parameter &parameter : parameters) {
    const source::Value &value = parameter.value;
    Attribute attribute;
    switch (value.getKind()) {
    case ValueKind::Integer:
      attribute = builder.getI64IntegerAttr(value.getInteger());
      break;
    case ValueKind::Boolean:
      attribute = builder.getBoolAttr(value.getBoolean());
      break;
    case ValueKind::Type:
      attribute = TypeAttr::get(parseType(value.getText(), &context));
      break;
    case ValueKind::Name:
      attribute = builder.getStringAttr(value.getText());
      break;
    }
    attributes.push_back(builder.getNamedAttr(parameter.name, attribute));
  }
  return builder.getDictionaryAttr(attributes);
}

//===----------------------------------------------------------------------===//
// The body
//===----------------------------------------------------------------------===//

namespace {
/// Maps positions of the expansion back to the source.
class LocationMapper {
public:
  LocationMapper(StringRef fileName, const ColumnMap &columns, MLIRContext &context)
      : fileName(StringAttr::get(&context, fileName)) {
    replacer.addReplacement([this, &columns](FileLineColRange range) -> LocationAttr {
      if (range.getFilename() != this->fileName)
        return range;
      return FileLineColRange::get(range.getFilename(), range.getStartLine(),
                                   columns.toOriginal(range.getStartLine(), range.getStartColumn()),
                                   range.getEndLine(),
                                   columns.toOriginal(range.getEndLine(), range.getEndColumn()));
    });
  }

  Location map(Location location) {
    return cast<LocationAttr>(replacer.replace(LocationAttr(location)));
  }
  void mapAll(Operation *root) {
    replacer.recursivelyReplaceElementsIn(root, /*replaceAttrs=*/false, /*replaceLocs=*/true);
  }

private:
  StringAttr fileName;
  AttrTypeReplacer replacer;
};
} // namespace

/// Emits `diagnostic` again with its positions mapped.
static void emitMapped(mlir::Diagnostic &diagnostic, LocationMapper &mapper, MLIRContext &context) {
  InFlightDiagnostic mapped =
      context.getDiagEngine().emit(mapper.map(diagnostic.getLocation()), diagnostic.getSeverity());
  mapped << diagnostic.str();
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    mapped.attachNote(mapper.map(note.getLocation())) << note.str();
}

/// Verifies `module` again: what a function asks of a kernel can only be seen in one.
static LogicalResult inlineFunctions(ModuleOp module) {
  PassManager pm(module.getContext(), ModuleOp::getOperationName());
  pm.addPass(createTileInlineFunctions());
  return pm.run(module);
}

ReadResult tessera::readSource(StringRef text, StringRef fileName, ArrayRef<Define> defines,
                               MLIRContext &context) {
  ParameterResult parameters = readParameters(text, fileName, defines, context);
  if (parameters.status != CompileStatus::Success)
    return {parameters.status, nullptr};
  auto sourceError = [&](size_t offset, const Twine &message) {
    emitError(locate(text, fileName, offset, context)) << message;
  };
  std::optional<Expansion> expansion = expand(text, parameters.table, sourceError);
  if (!expansion)
    return {CompileStatus::SourceError, nullptr};
  LocationMapper mapper(fileName, expansion->columns, context);
  auto expandedError = [&](size_t offset, const Twine &message) {
    emitError(mapper.map(locate(expansion->text, fileName, offset, context))) << message;
  };
  if (!checkParsable(expansion->text, expandedError))
    return {CompileStatus::SourceError, nullptr};

  std::vector<mlir::Diagnostic> diagnostics;
  OwningOpRef<ModuleOp> module;
  {
    ScopedDiagnosticHandler collector(&context, [&](mlir::Diagnostic &diagnostic) {
      diagnostics.push_back(std::move(diagnostic));
    });
    // Verified below, once the operations have their positions in the source.
    ParserConfig config(&context, /*verifyAfterParse=*/false);
    module = parseSourceString<ModuleOp>(expansion->text, config, fileName);
  }
  for (mlir::Diagnostic &diagnostic : diagnostics)
    emitMapped(diagnostic, mapper, context);
  if (!module)
    return {CompileStatus::SourceError, nullptr};
  mapper.mapAll(*module);
  if (failed(verify(*module)) || failed(inlineFunctions(*module)))
    return {CompileStatus::SourceError, nullptr};
  tile::TileDialect::ParametersAttrHelper(&context).setAttr(
      *module, getParametersAttr(parameters.table.getParameters(), context));
  return {CompileStatus::Success, std::move(module)};
}
