//===- Overrides.cpp - Functions that an importing source replaces --------===//

#include "lib/Source/Overrides.h"
#include "dialects/Tile/Tile.h"
#include "lib/Source/Diagnostics.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::source;

namespace {
class OverrideResolver {
public:
  OverrideResolver(ModuleOp module, const Files &files)
      : module(module), files(files), overridable(module.getContext()),
        gradientOf(module.getContext()), withRespectTo(module.getContext()) {}

  LogicalResult run();

private:
  const File &fileOf(Operation *op) const;
  bool isOverridable(Operation *op) { return overridable.isAttrPresent(op); }
  LogicalResult replace(Operation *replaced, Operation *by);
  LogicalResult checkUsed();

  ModuleOp module;
  const Files &files;
  tile::TileDialect::OverridableAttrHelper overridable;
  tile::TileDialect::GradientOfAttrHelper gradientOf;
  tile::TileDialect::WithRespectToAttrHelper withRespectTo;
  /// Names of functions that a source may replace.
  llvm::SmallSetVector<StringAttr, 4> names;
  llvm::DenseSet<Operation *> replacing;
};
} // namespace

/// The file that defines `op`; the one that is read when its location says nothing.
const File &OverrideResolver::fileOf(Operation *op) const {
  std::string prefix;
  if (FusedLoc import = findImport(op->getLoc()))
    prefix = (cast<StringAttr>(import.getMetadata()).getValue() + "_").str();
  if (auto place = op->getLoc()->findInstanceOf<FileLineColRange>())
    for (const File &file : files.getFiles())
      if (place.getFilename() == file.name && file.prefix == prefix)
        return file;
  return files.getMain();
}

LogicalResult OverrideResolver::replace(Operation *replaced, Operation *by) {
  StringAttr name = SymbolTable::getSymbolName(by);
  auto refuse = [&](const Twine &why) {
    InFlightDiagnostic error = emitError(by->getLoc()) << "'" << name.getValue() << "' " << why;
    error.attachNote(replaced->getLoc()) << "the other definition is here";
    return error;
  };
  const File &importer = fileOf(by), &imported = fileOf(replaced);
  if (!files.doesImport(importer, imported))
    return refuse("is defined in two files, neither of which imports the other; define it in the "
                  "file that imports both, or leave one out");
  auto function = dyn_cast<func::FuncOp>(by), other = dyn_cast<func::FuncOp>(replaced);
  if (!function || !other)
    return refuse("is no function in both files; a source replaces functions that are marked "
                  "tile.overridable, and other names are defined once");
  if (!isOverridable(other))
    return refuse("is defined in an imported file, as a function that is not marked "
                  "tile.overridable; choose another name");
  if (function.getFunctionType() != other.getFunctionType()) {
    InFlightDiagnostic error =
        emitError(function.getLoc())
        << "'" << name.getValue()
        << "' replaces a function of another type: " << function.getFunctionType() << " instead of "
        << other.getFunctionType();
    error.attachNote(other.getLoc()) << "the other definition is here";
    return error;
  }
  // What is a gradient stays one, and with respect to the same where the importer does not say.
  if (FlatSymbolRefAttr of = gradientOf.getAttr(other))
    gradientOf.setAttr(function, of);
  if (ArrayAttr names = withRespectTo.getAttr(other);
      names && !withRespectTo.isAttrPresent(function))
    withRespectTo.setAttr(function, names);
  replacing.insert(by);
  replaced->erase();
  return success();
}

/// A function that was meant to replace another and has not its name would change nothing.
LogicalResult OverrideResolver::checkUsed() {
  if (files.getFiles().size() == 1)
    return success();
  for (auto function : module.getOps<func::FuncOp>()) {
    if (&fileOf(function) != &files.getMain() || isOverridable(function) ||
        replacing.contains(function) || !SymbolTable::symbolKnownUseEmpty(function, module))
      continue;
    InFlightDiagnostic error = emitError(function.getLoc())
                               << "'" << function.getSymName()
                               << "' replaces no function of an imported file and nothing uses it";
    if (names.empty())
      return error << "; no imported function is marked tile.overridable";
    error << "; those that may be replaced are ";
    llvm::interleaveComma(names, error, [&](StringAttr name) { error << name.getValue(); });
    return error;
  }
  return success();
}

LogicalResult OverrideResolver::run() {
  llvm::MapVector<StringAttr, SmallVector<Operation *>> definitions;
  for (Operation &op : module.getOps()) {
    if (isa<func::FuncOp>(op) && isOverridable(&op))
      names.insert(SymbolTable::getSymbolName(&op));
    if (StringAttr name = isa<SymbolOpInterface>(op) ? SymbolTable::getSymbolName(&op) : nullptr)
      definitions[name].push_back(&op);
  }
  for (auto &[name, all] : definitions)
    for (Operation *other : ArrayRef(all).drop_back())
      // Two definitions in one file are refused as any module's.
      if (&fileOf(other) != &fileOf(all.back()) && failed(replace(other, all.back())))
        return failure();
  return checkUsed();
}

LogicalResult tessera::resolveOverrides(ModuleOp module, const Files &files) {
  return OverrideResolver(module, files).run();
}
