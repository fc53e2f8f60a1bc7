//===- Arithmetic.cpp - Operations that the machine has no code for -------===//

#include "passes/Schedule/Arithmetic.h"
#include "dialects/Tile/Refusal.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/CastInterfaces.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace tessera;

/// What docs/kernels.md lists.
static const std::pair<StringRef, StringRef> kMissing[] = {
    {"arith.remf", "x - y * math.floor(x / y)"},
    {"math.atan", "a polynomial"},
    {"math.atan2", "a polynomial"},
    {"math.copysign", "arith.select on arith.cmpf"},
    {"math.erf", "the approximation with math.tanh, as in kernels/gemm.tile"},
    {"math.expm1", "math.exp, and near 0 a polynomial"},
    {"math.powf", "math.exp2 of y times math.log2 of x"},
    {"math.round", "math.floor of x + 0.5"},
    {"math.roundeven", "math.floor of x + 0.5"},
    {"math.tan", "math.sin over math.cos"},
    {"math.trunc", "math.floor and math.ceil by sign"},
};

/// A tile of elements that are stored, converted and multiplied by dots, and not computed with.
static bool isNarrow(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile && tile.getRank() == 2 && isa<FloatType>(tile.getElementType()) &&
         tile.getElementTypeBitWidth() <= 16;
}

StringRef tessera::findReplacement(StringRef name) {
  for (auto [missing, instead] : kMissing)
    if (name == missing)
      return instead;
  return "";
}

LogicalResult tessera::checkArithmetic(Operation *op) {
  auto refuse = [](InFlightDiagnostic diagnostic) -> LogicalResult {
    setRefusalKind(diagnostic, RefusalKind::Unsupported);
    return diagnostic;
  };
  StringRef dialect = op->getName().getDialectNamespace();
  if (dialect != "arith" && dialect != "math")
    return success();
  if (StringRef instead = findReplacement(op->getName().getStringRef()); !instead.empty())
    return refuse(
        op->emitOpError("has no instructions on the machine, whatever the schedule; instead: ")
        << instead);
  bool isNarrowed =
      llvm::any_of(op->getOperandTypes(), isNarrow) || llvm::any_of(op->getResultTypes(), isNarrow);
  if (isNarrowed && !isa<arith::ConstantOp>(op) && !isa<CastOpInterface>(op))
    return refuse(op->emitOpError("computes on tiles of 16 or 8 bits; extend them with arith.extf, "
                                  "compute in f32 and round with arith.truncf"));
  return success();
}
