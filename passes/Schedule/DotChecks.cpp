//===- DotChecks.cpp - Which dots a wgmma can be asked for -----------------===//
//
// See DotChecks.h.
//
//===----------------------------------------------------------------------===//

#include "passes/Schedule/DotChecks.h"
#include "dialects/Hop/SharedLayout.h"
#include "dialects/Tile/Entries.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "passes/Analysis/Conversions.h"
#include "passes/Analysis/IndexFacts.h"
#include "passes/Analysis/OperandBuffers.h"
#include "passes/Analysis/Speculation.h"
#include "passes/Analysis/VectorAxes.h"
#include "passes/Schedule/Arithmetic.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// Refuses rows that are no whole blocks of a wgmma, and are not its columns either.
static LogicalResult refuseRows(DotOp dot, int64_t rows, int64_t columns) {
  InFlightDiagnostic error =
      dot.emitError("a dot has a multiple of 64 rows, for wgmma is m64 and each warpgroup computes "
                    "whole ones, or a multiple of 8 beside a multiple of 64 columns, for its "
                    "transpose then has them as columns; got ");
  error << rows << "x" << columns;
  int64_t few = roundUp(rows, hopper::mmaColumns), many = roundUp(columns, hopper::mmaRows);
  if (few == rows && many == columns)
    error << ", and something that goes with it has no such form (--remarks says what)";
  error << "; " << roundUp(rows, hopper::mmaRows) << "x"
        << roundUp(std::max<int64_t>(columns, 1), hopper::mmaColumns);
  if ((few != rows || many != columns) && few % hopper::mmaRows != 0)
    error << " or " << few << "x" << many;
  return error << " would work";
}

static LogicalResult checkShape(DotOp dot) {
  auto a = cast<RankedTensorType>(dot.getA().getType());
  auto result = cast<RankedTensorType>(dot.getType());
  int64_t rows = result.getDimSize(0), columns = result.getDimSize(1), depth = a.getDimSize(1);
  if (rows == 0 || rows % hopper::mmaRows != 0)
    return refuseRows(dot, rows, columns);
  if (columns == 0 || columns % hopper::mmaColumns != 0)
    return dot.emitError("a dot has a multiple of 8 columns (wgmma n8 to n256); got ")
           << columns << "; " << roundUp(columns, hopper::mmaColumns) << " would work";
  int64_t unit = hopper::mmaDepth(a.getElementTypeBitWidth());
  if (depth == 0 || depth % unit != 0)
    return dot.emitError("a dot of ")
           << a.getElementTypeBitWidth() << "-bit elements contracts a multiple of " << unit
           << " (wgmma k" << unit << "); got " << depth << "; " << roundUp(depth, unit)
           << " would work";
  return success();
}

/// Whether the tile that a dot reads from shared memory is stored transposed.
static bool isTransposed(Value operand) {
  bool transposed = false;
  while (auto transpose = operand.getDefiningOp<TransposeOp>()) {
    transposed = !transposed;
    operand = transpose.getSource();
  }
  return transposed;
}

/// What uses a loaded tile, transposed or not, that is no product of it.
static Operation *findOtherUse(Value tile) {
  for (OpOperand &use : tile.getUses()) {
    Operation *user = use.getOwner(), *other = user;
    if (isa<TransposeOp>(user))
      other = findOtherUse(user->getResult(0));
    else if (isa<DotOp>(user) && use.getOperandNumber() < 2)
      other = nullptr;
    if (other)
      return other;
  }
  return nullptr;
}

/// Tensor maps round f32 on its way to shared memory: bulk copies alone, and for all that read it.
static LogicalResult checkRounded(LoadOpInterface load) {
  if (isa<GatherOp>(load))
    return load.emitError("gathers an operand of a dot with precision tf32 by copies of 16 bytes, "
                          "and bulk copies alone round on their way; use precision f16x3 or "
                          "bf16x3, or rows in runs of 8 or more");
  Operation *other = findOtherUse(load.getResult());
  if (!other)
    return success();
  InFlightDiagnostic error = load.emitError(
      "loads an operand of a dot with precision tf32, which is rounded on its way to shared "
      "memory; load it a second time for other uses");
  error.attachNote(other->getLoc()) << "is another use";
  return error;
}

/// wgmma reads f32 along the contracted dimension alone, and nothing transposes a loaded tile of it
/// on its way.
static LogicalResult checkWordOperands(DotOp dot) {
  if (!isWordOperand(cast<RankedTensorType>(dot.getA().getType())))
    return success();
  for (Value operand : {dot.getA(), dot.getB()})
    if (LoadOpInterface load = loadedOperand(operand); load && failed(checkRounded(load)))
      return failure();
  bool isA = loadedOperand(dot.getA()) && isTransposed(dot.getA());
  if (!isA && (!loadOfB(dot) || isTransposed(dot.getB())))
    return success();
  return dot.emitError("a dot with precision tf32 reads loaded tiles along the contracted "
                       "dimension, for wgmma transposes 16-bit elements alone; operand ")
         << (isA ? "a is loaded with its rows" : "b is loaded with its columns")
         << " innermost; store it the other way round and load it as "
         << (isA ? "it is" : "the transpose of a tile that has its rows innermost")
         << ", or use precision f16x3 or bf16x3";
}

/// wgmma reads elements of 8 bits along the contracted dimension alone. What is transposed for that
/// in the kernel has them in the order of the fragments that it is multiplied with.
static LogicalResult checkByteOperands(DotOp dot) {
  auto a = cast<RankedTensorType>(dot.getA().getType());
  if (!isByteFloat(a.getElementType()))
    return success();
  if (computedTranspose(dot.getA()))
    return dot.emitError("transposes a computed tile of 8-bit elements, and computed operands go "
                         "through shared memory with 16-bit ones alone; round to 16 bits, or "
                         "compute the transposed tile");
  bool isLoaded = static_cast<bool>(loadedOperand(dot.getA())),
       isA = isLoaded && isTransposed(dot.getA());
  if (!isA && (!isLoaded || isTransposed(dot.getB()))) {
    int64_t columns = cast<RankedTensorType>(dot.getType()).getDimSize(1);
    if (isTransposed(dot.getB()) || columns % 32 == 0)
      return success();
    return dot.emitError("transposes operand b of 8-bit elements 32 columns at a time; got ")
           << columns << "; " << roundUp(columns, 32) << " would work";
  }
  return dot.emitError(
             "a dot of two loaded tiles of 8-bit elements reads both along the contracted "
             "dimension, for wgmma transposes 16-bit ones alone; operand ")
         << (isA ? "a is loaded with its rows" : "b is loaded with its columns")
         << " innermost; store it the other way round and load it as "
         << (isA ? "it is" : "the transpose of a tile that has its rows innermost");
}

/// Refuses an operand b that its consumers compute and cannot write to shared memory, where wgmma
/// reads it.
static LogicalResult checkComputedB(DotOp dot, RankedTensorType tile) {
  Type element = tile.getElementType();
  int64_t rows = tile.getDimSize(0), columns = tile.getDimSize(1),
          unit = 8 * hopper::narrowestSwizzle / tile.getElementTypeBitWidth();
  if (isByteFloat(element))
    return dot.emitError("computes operand b of ")
           << element << ", and computed operands go through shared memory with 16-bit elements "
           << "alone; round to 16 bits";
  if (rows % hopper::mmaRows != 0)
    return dot.emitError("computes operand b in registers, which hold multiples of 64 rows of a "
                         "tile; got ")
           << rows << "x" << columns << "; " << roundUp(rows, hopper::mmaRows) << "x" << columns
           << " would work";
  if (!hop::getSharedLayout(tile))
    return dot.emitError("computes operand b, which goes through shared memory in rows of a "
                         "multiple of 32 bytes; got ")
           << columns << " elements of " << element << "; " << roundUp(columns, unit)
           << " would work";
  return success();
}

/// Says of an operand b that its consumers compute why no role converts it on its way.
static void remarkComputedB(DotOp dot) {
  ConversionRefusal refusal;
  if (findConversion(dot.getB(), refusal))
    return;
  InFlightDiagnostic remark =
      dot.emitRemark("operand b is computed by those who multiply it, and goes through shared "
                     "memory");
  remark.attachNote(refusal.op->getLoc()) << refusal.reason;
}

/// Computed operands are transposed once.
static LogicalResult checkTransposes(Value operand) {
  TransposeOp transpose = computedTranspose(operand);
  if (!transpose || !transpose.getSource().getDefiningOp<TransposeOp>())
    return success();
  return transpose.emitError("transposes what is transposed; use the tile as it is computed");
}

static LogicalResult checkOperands(DotOp dot) {
  if (failed(checkTransposes(dot.getA())))
    return failure();
  OpOperand *b = computedB(dot);
  if (!b)
    return success();
  remarkComputedB(dot);
  return success(succeeded(checkTransposes(dot.getB())) &&
                 succeeded(checkComputedB(dot, cast<RankedTensorType>(b->get().getType()))));
}

/// Refuses gathered rows that do not start where copies can.
static LogicalResult checkRowLength(LoadOpInterface load, int64_t unit) {
  auto view = cast<ViewType>(load.getView().getType());
  int64_t columns = view.getStaticDim(view.getRank() - 1);
  if (!isa<GatherOp>(load) || columns == ShapedType::kDynamic || columns % unit == 0)
    return success();
  return load.emitError("gathers an operand of a dot from rows of ")
         << columns << " elements of " << view.getElementType() << ", and copies take "
         << hop::bulkStartBytes << " bytes at a time; rows padded to " << roundUp(columns, unit)
         << " elements would work, or their length as a dimension of the launch";
}

/// Refuses a loaded operand at a column where no copy can start.
static LogicalResult checkColumns(LoadOpInterface load) {
  auto type = cast<RankedTensorType>(load.getType());
  int64_t unit = 8 * hop::bulkStartBytes / type.getElementTypeBitWidth();
  if (failed(checkRowLength(load, unit)))
    return failure();
  Value column = load.getIndices().back();
  if (isMultipleOf(column, unit))
    return success();
  InFlightDiagnostic error = load.emitError("loads an operand of a dot from column ");
  if (std::optional<int64_t> constant = getConstantIntValue(column))
    error << *constant;
  else
    error << "that is not known to be a multiple of " << unit;
  return error << "; a bulk copy starts at a multiple of " << unit << " elements of "
               << type.getElementType() << " (" << hop::bulkStartBytes
               << " bytes): take the column before it that is one, or multiply the index by "
               << unit << " in the kernel";
}

/// Refuses what later passes make for the schedule that they are given, and runs that no thread
/// copies to shared memory.
static LogicalResult checkUnscheduled(Operation *op) {
  if (auto gather = dyn_cast<GatherRunsOp>(op); gather && !isLoadedForDots(gather))
    return gather.emitError("comes by bulk copies to shared memory, where dots read it, and feeds "
                            "none; tile.gather loads rows into registers");
  if (!isa<CommonBoundOp, SkipLoadsOp>(op))
    return success();
  return op->emitError("is made by tile-overlap or tile-even-loops for the schedule of its kernel, "
                       "which cannot be chosen again; start from the program before that pass");
}

LogicalResult tessera::checkDots(KernelOp kernel) {
  bool any = false;
  WalkResult result = kernel.walk([&](Operation *op) -> WalkResult {
    if (failed(checkUnscheduled(op)))
      return failure();
    auto dot = dyn_cast<DotOp>(op);
    if (!dot)
      return success();
    any = true;
    if (failed(checkShape(dot)) || failed(checkOperands(dot)) || failed(checkByteOperands(dot)) ||
        failed(checkWordOperands(dot)))
      return failure();
    for (LoadOpInterface load : {loadedOperand(dot.getA()), loadOfB(dot)})
      if (load && failed(checkColumns(load)))
        return failure();
    return success();
  });
  if (!result.wasInterrupted())
    result = kernel.walk([](Operation *op) -> WalkResult { return checkArithmetic(op); });
  if (result.wasInterrupted())
    return failure();
  if (any)
    return success();
  if (SpeculateOp speculation = findSpeculation(kernel))
    return speculation.emitOpError(
        "runs grid points again that a producer loads again, and a kernel "
        "without a tile.dot has none; write the exact region alone");
  // What is computed and not stored has been removed before this pass.
  auto stores = [](Operation *op) {
    return storesToView(op) ? WalkResult::interrupt() : WalkResult::advance();
  };
  if (!kernel.walk(stores).wasInterrupted())
    return kernel.emitError("stores nothing, so that nothing of it has to be computed; store a "
                            "result with tile.store");
  return VectorAxes(/*usual=*/1).run(kernel);
}
