//===- InstrumentTimeline.cpp - Records of the stages of a role -----------===//
//
// Implements hop-instrument-timeline. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/TimelineLayout.h"
#include "dialects/Tile/ValueNames.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Analysis/IndexFunctions.h"
#include "passes/Hop/HopPasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Path.h"

namespace tessera {
#define GEN_PASS_DEF_INSTRUMENTTIMELINE
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

/// The label of the buffer in which a tile of shared memory lies; that of a tile in registers is
/// what it is.
StringRef operandLabel(Value operand) {
  while (auto slice = operand.getDefiningOp<hop::SliceOp>())
    operand = slice.getSource();
  if (auto slot = operand.getDefiningOp<hop::SlotOp>())
    return slot.getBuffer().getDefiningOp<hop::BufferOp>().getLabel();
  if (auto staging = operand.getDefiningOp<hop::StagingOp>())
    return staging.getLabel();
  return "registers";
}

StringRef viewLabel(hop::KernelOp kernel, Value view) {
  return kernel.getArgumentName(cast<BlockArgument>(view).getArgNumber());
}

std::string productLabel(hop::MmaIssueOp issue) {
  return (operandLabel(issue.getA()) + " x " + operandLabel(issue.getB())).str();
}

/// What an operation on tiles costs, in elements that one instruction computes. Special functions
/// have an eighth of the rate of others (CUDA C++ Programming Guide, "Arithmetic Instructions").
int64_t costOf(Operation *op) {
  // Index tiles and copies of a value are immediates and registers.
  if (isa<tile::IotaOp, tile::SplatOp, tile::BroadcastOp, hop::RowFactorOp>(op))
    return 0;
  int64_t elements = 0;
  for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
    if (auto tile = dyn_cast<RankedTensorType>(type))
      elements = std::max(elements, tile.getNumElements());
  bool isSpecial = op->getNumResults() == 1 && isSpecialFunction(op);
  return elements * (isSpecial ? 8 : 1);
}

/// Whether an operation is a stage of its own, with what is in it. Others are parts of a stretch,
/// or of the stage before them.
bool isStage(Operation *op) {
  return isa<hop::BarrierWaitOp, hop::TurnWaitOp, hop::WarpgroupSyncOp, hop::RoleSyncOp,
             hop::BulkLoadOp, tile::LoadOp, tile::GatherOp, tile::GatherElementsOp, hop::GatherOp,
             hop::MmaIssueOp, hop::MmaWaitOp, hop::StageOp, hop::BulkStoreOp, tile::StoreOp,
             tile::ScatterOp, tile::ScatterAddOp, tile::ReduceRangeOp, hop::InLanesOp>(op);
}

/// Marks the stages of the roles of one kernel.
class StageMarker {
public:
  explicit StageMarker(hop::KernelOp kernel) : kernel(kernel), builder(kernel.getContext()) {}

  void markBlock(Block &block, Value at);
  ArrayAttr getStages() { return builder.getArrayAttr(stages.getArrayRef()); }

private:
  int64_t number(hop::StageKind kind, const Twine &label, Location loc,
                 ArrayRef<int64_t> products = {});
  int64_t classify(Operation *op);
  int64_t classifyFinish(hop::MmaWaitOp wait);
  int64_t classifyCompute(ArrayRef<Operation *> stretch);
  void enter(int64_t stage, Operation *before, Value at);
  void markStretch(SmallVectorImpl<Operation *> &stretch, Value at);

  hop::KernelOp kernel;
  OpBuilder builder;
  llvm::SetVector<Attribute> stages;
  DenseMap<Operation *, int64_t> issueStages;
  /// The stage entered last in the block at hand.
  std::optional<int64_t> current;
};

/// The number of a stage, which is that of an equal one.
int64_t StageMarker::number(hop::StageKind kind, const Twine &label, Location loc,
                            ArrayRef<int64_t> products) {
  auto place = loc->findInstanceOf<FileLineColLoc>();
  auto stage =
      hop::StageAttr::get(kernel.getContext(), kind, label.str(), tile::getValueName(loc),
                          place ? llvm::sys::path::filename(place.getFilename()) : "",
                          place ? place.getLine() : 0, place ? place.getColumn() : 0, products);
  stages.insert(stage);
  return llvm::find(stages, stage) - stages.begin();
}

/// A wait has the place of the first product that it waits for.
int64_t StageMarker::classifyFinish(hop::MmaWaitOp wait) {
  SmallVector<int64_t> products;
  llvm::SetVector<StringRef> labels;
  Location loc = wait.getLoc();
  for (Value flight : wait.getFlights()) {
    // A product that accumulates into a flight is complete after that one.
    while (auto issue = flight ? flight.getDefiningOp<hop::MmaIssueOp>() : hop::MmaIssueOp()) {
      flight = issue.getAcc();
      auto found = issueStages.find(issue);
      if (found == issueStages.end())
        continue;
      if (products.empty())
        loc = issue.getLoc();
      products.push_back(found->second);
      labels.insert(cast<hop::StageAttr>(stages[found->second]).getLabel());
    }
  }
  return number(hop::StageKind::Finish, llvm::join(labels, ", "), loc, products);
}

/// The stage that an operation is, see isStage.
int64_t StageMarker::classify(Operation *op) {
  using Kind = hop::StageKind;
  Location loc = op->getLoc();
  return TypeSwitch<Operation *, int64_t>(op)
      .Case([&](hop::BarrierWaitOp wait) {
        auto barriers = wait.getBarriers().getDefiningOp<hop::BarriersOp>();
        return number(Kind::Wait, barriers.getLabel(), loc);
      })
      .Case([&](hop::TurnWaitOp) { return number(Kind::Turn, "turn", loc); })
      .Case([&](hop::WarpgroupSyncOp) { return number(Kind::Sync, "warpgroup", loc); })
      .Case([&](hop::RoleSyncOp) { return number(Kind::Sync, "consumers", loc); })
      .Case([&](hop::BulkLoadOp load) {
        return number(Kind::Load, operandLabel(load.getDestination()), loc);
      })
      .Case([&](tile::LoadOp load) {
        return number(Kind::Load, viewLabel(kernel, load.getView()), loc);
      })
      .Case<tile::GatherOp, tile::GatherElementsOp, hop::GatherOp>(
          [&](auto gather) { return number(Kind::Load, viewLabel(kernel, gather.getView()), loc); })
      .Case<tile::ReduceRangeOp, hop::InLanesOp>([&](auto range) {
        llvm::SetVector<StringRef> views;
        range.walk([&](tile::LoadOp load) { views.insert(viewLabel(kernel, load.getView())); });
        return number(Kind::Load, llvm::join(views, ", "), loc);
      })
      .Case([&](hop::MmaIssueOp issue) {
        return issueStages[op] = number(Kind::Issue, productLabel(issue), loc);
      })
      .Case([&](hop::MmaWaitOp wait) { return classifyFinish(wait); })
      .Case([&](hop::StageOp stage) {
        return number(Kind::Store, operandLabel(stage.getDestination()), loc);
      })
      .Case([&](hop::BulkStoreOp store) {
        return number(Kind::Store, viewLabel(kernel, store.getView()), loc);
      })
      .Case<tile::StoreOp, tile::ScatterOp, tile::ScatterAddOp>(
          [&](auto store) { return number(Kind::Store, viewLabel(kernel, store.getView()), loc); });
}

/// Names a stretch after the operations that cost most, the dearest first, whose place it has.
int64_t StageMarker::classifyCompute(ArrayRef<Operation *> stretch) {
  constexpr size_t numNames = 3;
  llvm::MapVector<StringRef, int64_t> costs;
  Operation *dearest = stretch.front();
  for (Operation *op : stretch) {
    costs[op->getName().stripDialect()] += costOf(op);
    if (costOf(op) > costOf(dearest))
      dearest = op;
  }
  SmallVector<std::pair<StringRef, int64_t>> sorted = costs.takeVector();
  llvm::sort(sorted, [](auto &a, auto &b) {
    return std::pair(-a.second, a.first) < std::pair(-b.second, b.first);
  });
  SmallVector<StringRef> names;
  for (auto &[name, cost] : ArrayRef(sorted).take_front(numNames))
    if (cost)
      names.push_back(name);
  return number(hop::StageKind::Compute, llvm::join(names, ", "), dearest->getLoc());
}

void StageMarker::enter(int64_t stage, Operation *before, Value at) {
  if (current == stage)
    return;
  current = stage;
  builder.setInsertionPoint(before);
  hop::MarkOp::create(builder, before->getLoc(), stage, at);
}

/// Ends a stretch of arithmetic.
void StageMarker::markStretch(SmallVectorImpl<Operation *> &stretch, Value at) {
  llvm::erase_if(stretch, [](Operation *op) { return costOf(op) == 0; });
  if (!stretch.empty())
    enter(classifyCompute(stretch), stretch.front(), at);
  stretch.clear();
}

/// Marks the stages of a block whose innermost loop has the index `at`, which may be null.
void StageMarker::markBlock(Block &block, Value at) {
  current.reset();
  SmallVector<Operation *> stretch;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (op.getNumRegions() != 0 && !isStage(&op)) {
      markStretch(stretch, at);
      auto loop = dyn_cast<scf::ForOp>(op);
      for (Region &region : op.getRegions()) {
        if (region.empty())
          continue;
        Block &inner = region.front();
        // A loop of the first form counts by its index, of the second by the first value carried.
        bool isLoop = loop || isa<scf::WhileOp>(op);
        Value index = isLoop && inner.getNumArguments() ? inner.getArgument(0) : Value();
        bool counts = index && (index.getType().isIndex() || index.getType().isInteger(32));
        markBlock(inner, counts ? index : at);
      }
      current.reset();
      continue;
    }
    if (op.hasTrait<OpTrait::IsTerminator>())
      continue;
    if (!isStage(&op)) {
      stretch.push_back(&op);
      continue;
    }
    markStretch(stretch, at);
    enter(classify(&op), &op, at);
  }
  markStretch(stretch, at);
}

struct InstrumentTimelinePass : tessera::impl::InstrumentTimelineBase<InstrumentTimelinePass> {
  using InstrumentTimelineBase::InstrumentTimelineBase;

  void runOnOperation() override {
    hop::KernelOp kernel = getOperation();
    StageMarker marker(kernel);
    SmallVector<hop::RoleOp> roles(kernel.getBody().getOps<hop::RoleOp>());
    for (hop::RoleOp role : roles)
      marker.markBlock(role.getBody().front(), Value());
    if (roles.empty())
      return;
    // Marks name stages of it, so it must be there when they are verified; its own verifier refuses
    // options that do not hold.
    OpBuilder builder(roles.front());
    hop::TimelineOp::create(builder, kernel.getLoc(), blocks, first, events, marker.getStages());
  }
};

} // namespace
