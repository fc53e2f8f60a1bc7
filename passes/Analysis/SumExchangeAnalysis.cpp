//===- SumExchangeAnalysis.cpp - Sums that the blocks of a cluster add up -===//

#include "passes/Analysis/SumExchangeAnalysis.h"
#include "dialects/Hop/SharedLayout.h"
#include "passes/Analysis/IndexDependence.h"
#include "passes/Analysis/OperandBuffers.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;

RankedTensorType tessera::theirHalf(const ReducerSum &sum) {
  auto whole = cast<RankedTensorType>(loadedOperand(tile::DotOp(sum.dot).getB()).getType());
  return RankedTensorType::get({whole.getDimSize(0), whole.getDimSize(1) / exchangingBlocks},
                               whole.getElementType());
}

/// The parts of the columns that a block makes of `sum` for both.
static int64_t columnParts(const ReducerSum &sum) {
  tile::ScheduleFields fields;
  fields.cluster = tile::ClusterKind::Exchange;
  return partsOf(sum, fields).ofColumns();
}

/// Whether a slot that holds half of the columns of the loaded operand has those of each part in
/// whole chunks.
static bool hasHalves(const ReducerSum &sum) {
  auto whole = cast<RankedTensorType>(loadedOperand(tile::DotOp(sum.dot).getB()).getType());
  if (whole.getDimSize(1) % exchangingBlocks != 0)
    return false;
  std::optional<hop::SharedLayout> half = hop::getSharedLayout(theirHalf(sum));
  return half && half->chunks() % columnParts(sum) == 0;
}

bool tessera::loadsOwnHalf(const ReducerSum &sum) {
  auto whole = cast<RankedTensorType>(loadedOperand(tile::DotOp(sum.dot).getB()).getType());
  std::optional<hop::SharedLayout> layout = hop::getSharedLayout(whole);
  int64_t parts = exchangingBlocks * columnParts(sum);
  return !layout || layout->chunks() % parts != 0;
}

/// Why the place of a tile of the loaded operand is not one that a block can compute for the other.
static std::optional<std::string> whyNotTheirs(const IndexDependence &dependence,
                                               tile::LoadOpInterface load) {
  auto plain = dyn_cast<tile::LoadOp>(load.getOperation());
  if (!plain || plain.getBox())
    return "is no tile of rows and columns of its view";
  if (llvm::any_of(plain.getIndices(), [](Value i) { return !!i.getDefiningOp<tile::RowOp>(); }))
    return "has rows that end before its view does";
  if (dependence.getVaryingControl(load))
    return "is not loaded as often by both";
  if (!llvm::all_of(load.getIndices(), [&](Value index) { return dependence.isArithmetic(index); }))
    return "has a place that takes more than arithmetic on the first grid index";
  return std::nullopt;
}

/// Why the two blocks of a cluster cannot make `sum` together.
static std::optional<std::string> whyNotExchanged(const IndexDependence &dependence,
                                                  const ReducerSum &sum) {
  tile::StoreOp store = sum.store;
  tile::DotOp dot = sum.dot;
  if (Operation *control = dependence.getVaryingControl(store))
    return llvm::formatv("does not add as often in both blocks of a cluster: the {0} around it "
                         "depends on the first grid index",
                         isa<scf::IfOp>(control) ? "condition" : "number of iterations of the loop")
        .str();
  if (llvm::any_of(store.getIndices(), [&](Value index) { return dependence.contains(index); }))
    return "adds at a place that depends on the first grid index, so that the blocks of a cluster "
           "have no sum in common";
  if (store.getBox() || !sum.isDotStored())
    return "adds more than the result of a dot as it is, and the blocks of a cluster make half of "
           "its columns each";
  tile::LoadOpInterface load = loadedOperand(dot.getB());
  if (dot.getB() != load.getResult() || !hasHalves(sum))
    return llvm::formatv("adds a dot whose second operand, of {0}, cannot be halved in whole "
                         "chunks of columns as it lies in shared memory",
                         load.getType())
        .str();
  if (std::optional<std::string> reason = whyNotTheirs(dependence, load))
    return "adds a dot whose second operand the blocks of a cluster need of each other, and it " +
           *reason;
  return std::nullopt;
}

ExchangedSums tessera::findExchangedSums(tile::KernelOp kernel) {
  ExchangedSums found{findReducerSums(kernel), nullptr, ""};
  if (found.sums.empty()) {
    found.refused = kernel;
    found.refusal = "has no dot of a computed tile, beside other dots of a loop, whose result only "
                    "leaves by a store that adds it";
  }
  IndexDependence dependence(kernel.getGridIndex(0), exchangingBlocks);
  for (const ReducerSum &sum : found.sums)
    if (std::optional<std::string> reason = whyNotExchanged(dependence, sum)) {
      found.refused = sum.store;
      found.refusal = *reason;
      break;
    }
  return found;
}
