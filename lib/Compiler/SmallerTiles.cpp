//===- SmallerTiles.cpp - Values of parameters that need fewer registers --===//

#include "lib/Compiler/SmallerTiles.h"
#include "dialects/Tile/Tile.h"
#include "lib/Source/Source.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tessera;
using tile::KernelOp;

/// The most values that are compiled, each of which may take as long as the compilation that asks,
/// and the most of a parameter that are read.
static constexpr unsigned kMostSmallerTiles = 3, kMostRead = 8;

namespace {
/// What tells a kernel from others of its source that compute the same.
struct Shape {
  ArrayAttr arguments;  ///< types
  int64_t elements = 0; ///< of all tiles
};
} // namespace

static std::optional<Shape> readShape(StringRef text, StringRef fileName,
                                      const CompileOptions &options, StringRef kernel,
                                      MLIRContext &context) {
  ReadResult input = readSource(text, fileName, options.defines, context, options.imports);
  if (input.status != CompileStatus::Success)
    return std::nullopt;
  auto op = input.module->lookupSymbol<KernelOp>(kernel);
  if (!op)
    return std::nullopt;
  Shape shape;
  shape.arguments = op.getArgumentTypes();
  op->walk([&](Operation *inner) {
    for (Type type : inner->getResultTypes())
      if (auto tile = dyn_cast<RankedTensorType>(type))
        shape.elements += tile.getNumElements();
  });
  return shape;
}

/// Integers that a parameter may have in place of its value, the greatest first.
static SmallVector<int64_t> listSmaller(const source::Parameter &parameter) {
  int64_t own;
  SmallVector<int64_t> values;
  if (StringRef(parameter.value.str()).getAsInteger(10, own))
    return values;
  for (const std::string &allowed : parameter.allowed)
    for (const std::string &text : source::expandAllowed(allowed))
      if (int64_t value; !StringRef(text).getAsInteger(10, value) && value < own)
        values.push_back(value);
  llvm::sort(values, std::greater<>());
  values.truncate(std::min<size_t>(values.size(), kMostRead));
  return values;
}

std::string tessera::findSmallerTiles(StringRef text, StringRef fileName,
                                      const CompileOptions &options, StringRef kernel,
                                      Varied varied, MLIRContext &context) {
  ScopedDiagnosticHandler silence(&context, [](mlir::Diagnostic &) { return success(); });
  std::optional<Shape> own = readShape(text, fileName, options, kernel, context);
  ParameterResult bound = readParameters(text, fileName, options.defines, context, options.imports);
  if (!own || bound.status != CompileStatus::Success)
    return "";
  CompileOptions given = options;
  given.kernel = kernel.str();
  // The last value of a field counts, which is the caller's where there is one.
  given.schedule = "producer=operands" + (given.schedule.empty() ? "" : "," + given.schedule);
  given.alternatives = given.timing = false;
  if (varied == Varied::All)
    given.emit = EmitKind::Hop;
  given.dumpDir.clear();
  given.reproducer.clear();
  unsigned trials = 0;
  for (const source::Parameter &parameter : bound.table.getParameters()) {
    bool isGiven = llvm::is_contained(llvm::make_first_range(options.defines), parameter.name);
    if (isGiven && varied == Varied::Defaults)
      continue;
    for (int64_t value : listSmaller(parameter)) {
      given.defines = options.defines;
      given.defines.emplace_back(parameter.name, std::to_string(value));
      std::optional<Shape> smaller = readShape(text, fileName, given, kernel, context);
      if (!smaller)
        continue;
      // This one says what the kernel computes.
      if (smaller->arguments != own->arguments || smaller->elements >= own->elements)
        break;
      CompileResult result = compile(text.str(), fileName.str(), given, /*handler=*/nullptr);
      if (result.status == CompileStatus::Success)
        return parameter.name + " = " + std::to_string(value) + " in place of " +
               parameter.value.str();
      if (++trials == kMostSmallerTiles)
        return "";
    }
  }
  return "";
}
