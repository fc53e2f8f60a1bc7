//===- IndexDependence.cpp - What changes from tile to tile ---------------===//

#include "passes/Analysis/IndexDependence.h"
#include "dialects/Hop/Hop.h"
#include "dialects/Hop/SharedLayout.h"
#include "dialects/Tile/TileBox.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Analysis/ScfFlow.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;

/// The operands of scf.for: lower bound, upper bound, step, initial values.
constexpr unsigned upperBound = 1;

IndexDependence::IndexDependence(Value index, std::optional<int64_t> neighbours)
    : index(index), neighbours(neighbours) {
  mark(index);
  // Which block of its cluster a block is follows from the index.
  index.getParentRegion()->walk([&](hop::ClusterRankOp rank) { mark(rank); });
  while (!pending.empty())
    for (OpOperand &use : pending.pop_back_val().getUses())
      follow(use);
}

void IndexDependence::mark(Value value) {
  if (dependent.insert(value).second)
    pending.push_back(value);
}

void IndexDependence::markAll(ValueRange values) {
  for (Value value : values)
    mark(value);
}

/// Whether `use` divides the index itself, which is at least 0, so that all divisions round alike.
bool IndexDependence::isSameForNeighbours(OpOperand &use) const {
  if (!neighbours || use.get() != index || use.getOperandNumber() != 0 ||
      !isa<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp>(use.getOwner()))
    return false;
  APInt divisor;
  return matchPattern(use.getOwner()->getOperand(1), m_ConstantInt(&divisor)) &&
         divisor.isStrictlyPositive() && divisor.getSExtValue() % *neighbours == 0;
}

void IndexDependence::follow(OpOperand &use) {
  if (isSameForNeighbours(use))
    return;
  if (std::optional<Handover> handover = findHandoverOf(use))
    return markAll(handover->to);
  Operation *op = use.getOwner();
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    // Another upper bound changes how often the body runs, but not what one iteration sees.
    if (use.getOperandNumber() != upperBound)
      mark(loop.getInductionVar());
    return markAll(loop.getResults());
  }
  // Another role gets the number that one puts into a pipe.
  if (auto put = dyn_cast<hop::PipePutOp>(op)) {
    for (Operation *user : put.getPipe().getUsers())
      if (isa<hop::PipeGetOp>(user))
        markAll(user->getResults());
    return;
  }
  if (op->hasTrait<OpTrait::IsTerminator>())
    op = op->getParentOp();
  markAll(op->getResults());
  // The results of a conditional come from regions that are entered or not; what other operations
  // pass to their regions is not known.
  if (isa<scf::IfOp>(op))
    return;
  for (Region &region : op->getRegions())
    for (Block &block : region)
      markAll(block.getArguments());
}

bool IndexDependence::isArithmetic(Value value) const {
  if (value == index || !contains(value))
    return true;
  Operation *op = value.getDefiningOp();
  return op && op->getNumRegions() == 0 && isPure(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isArithmetic(operand); });
}

Value IndexDependence::recompute(Value value, IRMapping &mapping, OpBuilder &builder) const {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  if (!contains(value))
    return value;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    mapping.map(operand, recompute(operand, mapping, builder));
  return builder.clone(*op, mapping)->getResult(cast<OpResult>(value).getResultNumber());
}

/// Whether an operand that decides what `control` does depends on the index.
bool IndexDependence::varies(Operation *control) const {
  if (!isa<scf::ForOp, scf::IfOp>(control))
    return true;
  OperandRange operands = control->getOperands();
  if (auto loop = dyn_cast<scf::ForOp>(control))
    operands = operands.take_front(loop.getNumControlOperands());
  return llvm::any_of(operands, [&](Value value) { return contains(value); });
}

Operation *IndexDependence::getVaryingControl(Operation *op) const {
  Operation *varying = nullptr;
  for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp())
    if (isa<scf::SCFDialect>(parent->getDialect()) && varies(parent))
      varying = parent;
  return varying;
}

/// What `load`, of either dialect, covers of its view.
static tile::TileBox boxOf(Operation *load, RankedTensorType tile) {
  auto box = [&](auto op) {
    return tile::TileBox(cast<tile::ViewType>(op.getView().getType()), tile, op.getBox());
  };
  if (auto pipeLoad = dyn_cast<hop::PipeLoadOp>(load))
    return box(pipeLoad);
  return box(cast<tile::LoadOp>(load));
}

std::optional<std::string> tessera::whyPlaceVaries(const IndexDependence &dependence,
                                                   Operation *load) {
  // Where a run of rows lies is computed in the region of its load.
  WalkResult walk = load->walk([&](Operation *op) {
    bool varies = llvm::any_of(op->getOperands(), [&](Value v) { return dependence.contains(v); });
    return varies ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return "its place depends on the first grid index";
  return std::nullopt;
}

bool tessera::isSameForAll(tile::KernelOp kernel, Operation *load) {
  for (unsigned i = 0; i < kernel.getGridRank(); ++i)
    if (whyPlaceVaries(IndexDependence(kernel.getGridIndex(i)), load))
      return false;
  return true;
}

std::string tessera::explainControl(Operation *control) {
  return isa<scf::IfOp>(control)
             ? "the condition around its load depends on the first grid index"
             : "the number of iterations of the loop around its load depends on the first grid "
               "index";
}

/// The rows in a run of what `load`, of either dialect, loads; none where they lie in a box.
static std::optional<uint64_t> runOf(Operation *load) {
  if (auto pipeLoad = dyn_cast<hop::PipeLoadOp>(load))
    return pipeLoad.getRun();
  auto gather = dyn_cast<tile::GatherRunsOp>(load);
  return gather ? std::optional(gather.getRun()) : std::nullopt;
}

/// Why two blocks cannot gather half of the rows of `tile` each and send them to each other.
static std::optional<std::string> whyNotHalved(RankedTensorType tile,
                                               const hop::SharedLayout &layout, int64_t blocks) {
  if (blocks != 2)
    return "its rows are gathered, in halves that two blocks send each other; use cluster = 2";
  // Those that the threads of a warpgroup copy at a time.
  int64_t atOnce = hopper::warpgroupThreads * hopper::widestAccess / layout.swizzle;
  if (tile.getDimSize(0) % (blocks * atOnce) == 0)
    return std::nullopt;
  return llvm::formatv("its {0} rows are gathered {1} at a time, and are not divisible into halves "
                       "of these; multiples of {2} rows would be",
                       tile.getDimSize(0), atOnce, blocks * atOnce)
      .str();
}

std::optional<std::string> tessera::whyIndivisible(ArrayRef<Operation *> loads,
                                                   RankedTensorType tile, int64_t blocks) {
  // Each block copies whole runs.
  if (std::optional<uint64_t> run = runOf(loads.front())) {
    int64_t rows = tile.getDimSize(0), part = blocks * static_cast<int64_t>(*run);
    if (rows % part == 0)
      return std::nullopt;
    return llvm::formatv("its {0} rows in runs of {1} are not divisible into {2} parts of whole "
                         "runs; multiples of {3} rows would be",
                         rows, *run, blocks, part)
        .str();
  }
  std::optional<hop::SharedLayout> layout = hop::getSharedLayout(tile);
  if (layout && isa<tile::GatherOp, hop::GatherOp>(loads.front()))
    return whyNotHalved(tile, *layout, blocks);
  if (layout && !hop::splitAmong(*layout, blocks))
    return llvm::formatv("{0} rows in {1} chunks of columns are not divisible into {2} parts of "
                         "whole chunks or multiples of 8 rows",
                         layout->rows, layout->chunks(), blocks)
        .str();
  if (layout && llvm::any_of(loads, [&](Operation *load) {
        return !boxOf(load, tile).slice(hop::splitAmong(*layout, blocks)->ofRows);
      }))
    return llvm::formatv("its rows are not divisible into {0} parts that are boxes of the view",
                         blocks)
        .str();
  return std::nullopt;
}
