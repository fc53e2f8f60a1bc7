//===- Source.cpp - Reading .tile sources ---------------------------------===//

#include "lib/Source/Source.h"
#include "dialects/Tile/Tile.h"
#include "dialects/Tile/ValueNames.h"
#include "lib/Source/Diagnostics.h"
#include "lib/Source/Guard.h"
#include "lib/Source/Overrides.h"
#include "lib/Source/Slips.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
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
#include "passes/Schedule/CostModel.h"
#include "passes/Tile/TilePasses.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::source;

void tessera::registerSourceDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, func::FuncDialect, math::MathDialect, scf::SCFDialect,
                  tile::TileDialect>();
}

Location tessera::toLocation(const Place &place, MLIRContext &context) {
  return FileLineColLoc::get(&context, place.file, place.line, place.column);
}

/// A place in a file, of a copy with its import.
static Location toLocationIn(const File &file, Location place, const Files &files,
                             MLIRContext &context) {
  if (!file.isCopy())
    return place;
  return getLocInCopy(place, locate(files, file.importOffset, context),
                      StringRef(file.prefix).drop_back());
}

Location tessera::locate(const Files &files, size_t offset, MLIRContext &context) {
  return toLocationIn(files.findByOffset(offset), toLocation(files.locate(offset), context), files,
                      context);
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

ParameterResult tessera::readParameters(StringRef text, StringRef fileName,
                                        ArrayRef<Define> defines, MLIRContext &context,
                                        const ImportOptions &imports) {
  ParameterResult result;
  auto placeError = [&](const Place &place, const Twine &message) {
    result.status = CompileStatus::SourceError;
    emitError(toLocation(place, context)) << message;
  };
  auto sourceError = [&](size_t offset, const Twine &message) {
    result.status = CompileStatus::SourceError;
    emitError(locate(*result.files, offset, context)) << message;
  };
  auto defineError = [&](const Define &define, const Twine &message,
                         std::optional<size_t> declaration) {
    result.status = CompileStatus::UsageError;
    std::string origin = "-D " + define.first + "=" + define.second;
    InFlightDiagnostic diag = emitError(FileLineColLoc::get(&context, origin, 0, 0)) << message;
    if (declaration)
      diag.attachNote(locate(*result.files, *declaration, context))
          << "'" << define.first << "' is declared here";
  };
  // Each step reports through the sinks, which set the status.
  if (result.files->read(text, fileName, imports, placeError) &&
      result.rules->read(*result.files, imports.rules, placeError) &&
      result.table.parse(*result.files, sourceError) && result.table.define(defines, defineError))
    result.table.bind(*result.rules, sourceError, defineError, placeError);
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
/// Maps positions of the expansion back to the files of the source.
class LocationMapper {
public:
  LocationMapper(const Files &files, const ColumnMap &columns, MLIRContext &context)
      : context(context), files(files), columns(columns),
        whole(StringAttr::get(&context, files.getMain().name)) {
    // What is mapped is in a file of the source, and not mapped again.
    replacer.addReplacement([this](FileLineColRange range) -> std::pair<Attribute, WalkResult> {
      if (range.getFilename() != whole)
        return {range, WalkResult::advance()};
      Place start = locate(range.getStartLine(), range.getStartColumn()),
            end = locate(range.getEndLine(), range.getEndColumn());
      Location place = FileLineColRange::get(StringAttr::get(&this->context, start.file),
                                             start.line, start.column, end.line, end.column);
      return {toLocationIn(this->files.findByLine(range.getStartLine()), place, this->files,
                           this->context),
              WalkResult::skip()};
    });
  }

  Location map(Location location) {
    return cast<LocationAttr>(replacer.replace(LocationAttr(location)));
  }
  /// The place of a line and a column of the expansion.
  Location mapPosition(unsigned line, unsigned column) const {
    return toLocationIn(files.findByLine(line), toLocation(locate(line, column), context), files,
                        context);
  }
  void mapAll(Operation *root) {
    replacer.recursivelyReplaceElementsIn(root, /*replaceAttrs=*/false, /*replaceLocs=*/true);
  }

private:
  /// The place in a file of a line and a column of the expansion.
  Place locate(unsigned line, unsigned column) const {
    const File &file = files.findByLine(line);
    return {file.name, line - file.firstLine + 1, columns.toOriginal(line, column)};
  }

  MLIRContext &context;
  const Files &files;
  const ColumnMap &columns;
  /// What the parser calls the expansion.
  StringAttr whole;
  AttrTypeReplacer replacer;
};
} // namespace

/// Line and column, from 1, of an offset.
static std::pair<unsigned, unsigned> findPosition(StringRef text, size_t offset) {
  StringRef before = text.take_front(offset);
  return {before.count('\n') + 1, offset - (before.rfind('\n') + 1) + 1};
}

static size_t findOffset(StringRef text, unsigned line, unsigned column) {
  size_t begin = 0;
  for (unsigned i = 1; i < line && begin < text.size(); ++i)
    begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
  return std::min<size_t>(begin + column - 1, text.size());
}

/// Emits `diagnostic` of the parser again with its positions mapped, an error in the words of the
/// language.
static void emitMapped(mlir::Diagnostic &diagnostic, StringRef text, LocationMapper &mapper,
                       MLIRContext &context) {
  auto position = diagnostic.getLocation()->findInstanceOf<FileLineColRange>();
  std::optional<Slip> slip;
  if (position && diagnostic.getSeverity() == DiagnosticSeverity::Error)
    slip = explainSlip(text, findOffset(text, position.getStartLine(), position.getStartColumn()),
                       diagnostic.str(), context);
  auto emit = [&](Location location, const std::string &message) {
    InFlightDiagnostic mapped = context.getDiagEngine().emit(location, diagnostic.getSeverity());
    mapped << message;
    return mapped;
  };
  if (!slip) {
    InFlightDiagnostic mapped = emit(mapper.map(diagnostic.getLocation()), diagnostic.str());
    for (mlir::Diagnostic &note : diagnostic.getNotes())
      mapped.attachNote(mapper.map(note.getLocation())) << note.str();
    return;
  }
  auto locate = [&](size_t offset) {
    auto [line, column] = findPosition(text, offset);
    return mapper.mapPosition(line, column);
  };
  InFlightDiagnostic mapped = emit(locate(slip->offset), slip->message);
  if (slip->noteOffset)
    mapped.attachNote(locate(*slip->noteOffset)) << slip->note;
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    if (!StringRef(note.str()).starts_with("Available dialects"))
      mapped.attachNote(mapper.map(note.getLocation())) << note.str();
}

/// Refuses indices of what is no integer, as the verifier does not say what would work. The module
/// has not been verified.
static LogicalResult checkIndices(ModuleOp module) {
  WalkResult walk = module.walk([](Operation *op) {
    if (!isa<arith::IndexCastOp, arith::IndexCastUIOp>(op) || op->getNumOperands() != 1 ||
        !isa<FloatType>(op->getOperand(0).getType()))
      return WalkResult::advance();
    op->emitError("makes an index of ")
        << op->getOperand(0).getType()
        << "; load numbers of rows from a view of i32 or i64, or round to one with arith.fptosi";
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

/// Refuses loops that are given on other values than they carry, as the verifier speaks of control
/// flow edges. The module has not been verified.
static LogicalResult checkYields(ModuleOp module) {
  WalkResult walk = module.walk([](scf::ForOp loop) {
    Block &body = loop.getRegion().front();
    if (body.empty() || !isa<scf::YieldOp>(body.back()) ||
        llvm::equal(body.back().getOperandTypes(), loop.getInitArgs().getTypes()))
      return WalkResult::advance();
    InFlightDiagnostic error = body.back().emitError("gives on ");
    error << body.back().getNumOperands() << " values (" << body.back().getOperandTypes()
          << ") to a loop that carries " << loop.getInitArgs().size() << " ("
          << loop.getInitArgs().getTypes()
          << "); yield what each of iter_args is in the next iteration";
    error.attachNote(loop.getLoc()) << "the loop begins here";
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

/// Verifies `module` again: what a function asks of a kernel can only be seen in one.
static LogicalResult resolveFunctions(ModuleOp module, DebugOps debugOps) {
  PassManager pm(module.getContext(), ModuleOp::getOperationName());
  if (debugOps == DebugOps::Drop)
    pm.addPass(createTileDropDebug());
  pm.addPass(createTileDifferentiate());
  pm.addPass(createTileInlineFunctions());
  if (debugOps == DebugOps::Drop)
    pm.addPass(createTileSplitReductions());
  pm.addNestedPass<tile::KernelOp>(createTileCheckPadding());
  pm.addNestedPass<tile::KernelOp>(createTileWidenComparisons());
  return pm.run(module);
}

/// Keeps what the text of the parser calls values.
static void keepNames(const AsmParserState &parsed) {
  auto getName = [](const AsmParserState::SMDefinition &definition) {
    StringRef text(definition.loc.Start.getPointer(),
                   definition.loc.End.getPointer() - definition.loc.Start.getPointer());
    return text.ltrim('%');
  };
  for (const AsmParserState::OperationDefinition &definition : parsed.getOpDefs()) {
    SmallVector<StringRef> names;
    for (const auto &group : definition.resultGroups) {
      // Results of one name are numbered, as %sums#1.
      names.resize(group.startIndex, names.empty() ? StringRef() : names.back());
      names.push_back(getName(group.definition));
    }
    if (names.empty())
      continue;
    names.resize(definition.op->getNumResults(), names.back());
    tile::setResultNames(definition.op, names);
  }
  for (const AsmParserState::BlockDefinition &definition : parsed.getBlockDefs())
    for (auto [argument, name] : llvm::zip(definition.block->getArguments(), definition.arguments))
      if (name.loc.isValid())
        tile::setArgumentName(argument, getName(name));
}

/// Drops conversions of numbers to the type that they have, which a source of several types has.
static void dropEqualConversions(ModuleOp module) {
  module->walk([](Operation *op) {
    if (!isa<arith::ExtFOp, arith::TruncFOp>(op) ||
        op->getOperand(0).getType() != op->getResult(0).getType())
      return;
    op->getResult(0).replaceAllUsesWith(op->getOperand(0));
    op->erase();
  });
}

/// Parses `text`, which the diagnostics call `name`. What was parsed is not verified.
static OwningOpRef<ModuleOp> parseNamed(StringRef text, StringRef name, AsmParserState &parsed,
                                        MLIRContext &context) {
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBuffer(text, name, /*RequiresNullTerminator=*/false), SMLoc());
  // Verified later, once the operations have their positions in the source.
  ParserConfig config(&context, /*verifyAfterParse=*/false);
  Block block;
  if (failed(parseAsmSourceFile(sources, &block, config, &parsed)))
    return nullptr;
  return mlir::detail::constructContainerOpForParserIfNecessary<ModuleOp>(
      &block, &context, FileLineColLoc::get(&context, name, 0, 0));
}

/// The module of `text`, with its diagnostics and its operations at their places in the source.
static OwningOpRef<ModuleOp> parseText(StringRef text, const Files &files, LocationMapper &mapper,
                                       MLIRContext &context) {
  std::vector<mlir::Diagnostic> diagnostics;
  OwningOpRef<ModuleOp> module;
  AsmParserState parsed;
  {
    ScopedDiagnosticHandler collector(&context, [&](mlir::Diagnostic &diagnostic) {
      diagnostics.push_back(std::move(diagnostic));
    });
    module = parseNamed(text, files.getMain().name, parsed, context);
  }
  for (mlir::Diagnostic &diagnostic : diagnostics) {
    // MLIR's lexer goes on behind an open string that follows the type of a dialect: at the end of
    // the text.
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      module = nullptr;
    emitMapped(diagnostic, text, mapper, context);
  }
  if (module) {
    mapper.mapAll(*module);
    keepNames(parsed);
    dropEqualConversions(*module);
  }
  return module;
}

/// Sets the fields that rules choose: those of a user's rules before what the kernel writes, those
/// of the source's rules behind it.
static LogicalResult applySchedules(ModuleOp module, ArrayRef<ChosenSchedule> schedules) {
  MLIRContext &context = *module.getContext();
  for (const ChosenSchedule &chosen : schedules) {
    auto kernel = module.lookupSymbol<tile::KernelOp>(chosen.kernel);
    Location place = toLocation(chosen.rule->getPlace(), context);
    if (!kernel)
      return emitError(place) << "the source '" << chosen.rule->source << "' has no kernel '"
                              << chosen.kernel << "' with these parameters; name another, or add "
                              << "the condition under which it has";
    FailureOr<tile::ScheduleAttr> fields = tile::ScheduleAttr::parseText(
        &context, chosen.rule->schedule, [&] { return emitError(place); });
    if (failed(fields))
      return failure();
    tile::ScheduleAttr own = kernel.getScheduleAttr();
    tile::ScheduleAttr whole = *fields;
    if (own)
      whole = chosen.rule->isUsers ? own.overriddenBy(*fields) : fields->overriddenBy(own);
    kernel.setScheduleAttr(whole);
  }
  return success();
}

static std::vector<Choice> listChoices(const ParameterTable &table) {
  std::vector<Choice> choices;
  auto add = [&](StringRef kernel, StringRef name, std::string value, std::string origin,
                 const Rule *rule, bool isFree) {
    Choice &choice = choices.emplace_back();
    choice.kernel = kernel.str();
    choice.name = name.str();
    choice.value = std::move(value);
    choice.origin = std::move(origin);
    choice.isFree = isFree;
    if (!rule)
      return;
    choice.file = rule->file;
    choice.line = rule->line;
    choice.isUsers = rule->isUsers;
    choice.conditions = rule->countConditions();
  };
  for (const Parameter &parameter : table.getParameters())
    add("", parameter.name, parameter.value.str(), parameter.describeOrigin(), parameter.rule,
        parameter.isFree);
  for (const ChosenSchedule &chosen : table.getSchedules())
    add(chosen.kernel, "schedule", chosen.rule->schedule, chosen.rule->describePlace(), chosen.rule,
        /*isFree=*/false);
  return choices;
}

ReadResult tessera::readFunctions(StringRef text, StringRef fileName, ArrayRef<Define> defines,
                                  MLIRContext &context, const ImportOptions &imports) {
  ParameterResult parameters = readParameters(text, fileName, defines, context, imports);
  if (parameters.status != CompileStatus::Success)
    return {parameters.status, nullptr, nullptr, {}, {}};
  const Files &files = *parameters.files;
  ReadResult failed{CompileStatus::SourceError, nullptr, nullptr, {}, {}};
  auto sourceError = [&](size_t offset, const Twine &message) {
    emitError(locate(files, offset, context)) << message;
  };
  std::optional<Expansion> expansion = expand(files, parameters.table, sourceError);
  if (!expansion)
    return failed;
  LocationMapper mapper(files, expansion->columns, context);
  auto expandedError = [&](size_t offset, const Twine &message) {
    auto [line, column] = findPosition(expansion->text, offset);
    emitError(mapper.mapPosition(line, column)) << message;
  };
  if (!checkParsable(expansion->text, expandedError))
    return failed;
  OwningOpRef<ModuleOp> module = parseText(expansion->text, files, mapper, context);
  if (!module || mlir::failed(resolveOverrides(*module, files)) ||
      mlir::failed(checkIndices(*module)) || mlir::failed(checkYields(*module)) ||
      mlir::failed(verify(*module)) ||
      mlir::failed(applySchedules(*module, parameters.table.getSchedules())))
    return failed;
  tile::TileDialect::ParametersAttrHelper(&context).setAttr(
      *module, getParametersAttr(parameters.table.getParameters(), context));
  if (const std::string &card = imports.rules.card; !card.empty())
    (*module)->setAttr(kCardAttr, StringAttr::get(&context, card));
  return {CompileStatus::Success, std::move(module), std::move(parameters.files),
          listChoices(parameters.table), parameters.table.getInstead().vec()};
}

ReadResult tessera::readSource(StringRef text, StringRef fileName, ArrayRef<Define> defines,
                               MLIRContext &context, const ImportOptions &imports,
                               DebugOps debugOps) {
  ReadResult result = readFunctions(text, fileName, defines, context, imports);
  if (result.status == CompileStatus::Success && failed(resolveFunctions(*result.module, debugOps)))
    return {CompileStatus::SourceError, nullptr, nullptr, {}, {}};
  return result;
}
