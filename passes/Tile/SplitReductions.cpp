//===- SplitReductions.cpp - Parts of a range as grid points --------------===//
//
// Implements tile-split-reductions. See FunctionPasses.td.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "passes/Schedule/CostModel.h"
#include "passes/Tile/BalanceReduction.h"
#include "passes/Tile/BlockReduction.h"
#include "passes/Tile/CutRows.h"
#include "passes/Tile/SplitKernel.h"
#include "passes/Tile/TilePasses.h"
#include "llvm/Support/MathExtras.h"

namespace tessera {
#define GEN_PASS_DEF_TILESPLITREDUCTIONS
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// Workspaces are those of one sequence.
static LogicalResult checkLaunches(SplitReduceOp reduction) {
  auto kernel = cast<KernelOp>(reduction->getParentOp());
  for (auto sequence : kernel->getParentOfType<ModuleOp>().getOps<SequenceOp>())
    for (auto launch : sequence.getOps<LaunchOp>()) {
      if (launch.getKernel() != kernel.getSymName())
        continue;
      InFlightDiagnostic error = reduction.emitError("splits a range of kernel '");
      error << kernel.getSymName()
            << "', which a sequence launches; launch it by itself, or leave the range whole with '"
            << (reduction.getBalanced() ? "balanced" : "part") << " 0'";
      error.attachNote(launch.getLoc()) << "the launch";
      return error;
    }
  return success();
}

namespace {
/// A kernel whose range is split, and what becomes of it.
class Split {
public:
  explicit Split(SplitReduceOp reduction)
      : reduction(reduction), kernel(cast<KernelOp>(reduction->getParentOp())), builder(kernel),
        math{builder, reduction.getLoc()}, plan(kernel), card(getCostModel(kernel)) {}

  /// Replaces the kernel by a sequence of two; fails with a diagnostic.
  LogicalResult run();

private:
  KernelOp cutParts();
  LogicalResult planParts();
  void completeParts(KernelOp parts);
  SmallVector<Value> mergeAll(SplitReduceOp own, LoadPart load, Value count);
  KernelOp makeMerge();

  bool isFlat() { return reduction.getFill() || points.size() == 3; }
  std::pair<Value, Value> countParts(ValueRange range, ArrayRef<Value> extents);
  std::pair<Value, Value> findPart(ValueRange range, Value part, ArrayRef<Value> extents);
  std::pair<Value, Value> setGrid(KernelOp parts, ArrayRef<Value> extents);
  SmallVector<Value> addWorkspaces(KernelOp to);
  SmallVector<Value> placeOf(Type state, Value part, Value point, ArrayRef<Value> extents);

  SplitReduceOp reduction;
  KernelOp kernel;
  OpBuilder builder;
  IndexMath math;
  DimPlan plan;
  const CostModel &card;
  /// The grid dimensions on whose indices states depend.
  SmallVector<unsigned> points;
  /// Extents of the workspaces in front of those of a state: parts and grid points, or with `fill`
  /// both together.
  SmallVector<Attribute> prefix;
  /// Whether each grid point has as many parts as `prefix` says.
  bool isEven = false;
  /// The rows of a tile that is merged; 0 where states have no tiles.
  int64_t mergedRows = 0;
};
} // namespace

//===----------------------------------------------------------------------===//
// Which parts there are
//===----------------------------------------------------------------------===//

/// A copy of the kernel that ends with the states; finds on which grid indices they depend.
KernelOp Split::cutParts() {
  KernelOp parts = kernel.clone();
  SplitReduceOp own = findReduction(parts);
  Block &body = parts.getBody().front();
  while (body.getTerminator()->getPrevNode() != own)
    body.getTerminator()->getPrevNode()->erase();
  own.getMerge().front().clear();
  // What only the merge needs.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (&op != own && isOpTriviallyDead(&op))
      op.erase();
  eraseDead(own.getBody().front());
  for (unsigned i = 0; i < parts.getGridRank(); ++i)
    if (!parts.getGridIndex(i).use_empty())
      points.push_back(i);
  return parts;
}

/// Finds how many parts there may be.
LogicalResult Split::planParts() {
  SmallVector<Attribute> tiles;
  for (unsigned i : points) {
    GridDimAttr grid = kernel.getGridDim(i);
    tiles.push_back(plan.derive({{grid.getExtent()}, grid.getDivisor()}, "TILES"));
  }
  Attribute count = plan.derive({tiles}, "POINTS");
  if (reduction.getFill()) {
    IntegerAttr blocks = builder.getI64IntegerAttr(card.multiprocessors);
    Attribute rounds = plan.derive({{count}, blocks.getInt()}, "ROUNDS");
    prefix = {plan.derive({{rounds, blocks}}, "SLOTS")};
    return success();
  }
  std::optional<ExtentBound> bound = plan.bound(reduction.getUpper());
  if (!bound)
    return reduction.emitError(
        "ends its range with a value that no extent bounds, so that a launch cannot know how many "
        "parts there are; take the arith.minsi of it and of what a tile.dim gives, or write 'fill' "
        "in place of 'part'");
  isEven = bound->isExact && matchPattern(reduction.getLower(), m_Zero());
  if (llvm::MulOverflow(bound->divisor, static_cast<int64_t>(*reduction.getPart()), bound->divisor))
    return reduction.emitError("has parts of more iterations than 64 bits count");
  prefix = {plan.derive(*bound, "PARTS"), count};
  return success();
}

/// How many parts the range of a grid point has, and the iterations of each but the last.
std::pair<Value, Value> Split::countParts(ValueRange range, ArrayRef<Value> extents) {
  if (isEven)
    return {math.dim(prefix.front()), math.constant(*reduction.getPart())};
  Value one = math.constant(1);
  Value length = math.sub(range[1], range[0]);
  Value some = math.most(length, one);
  Value most, size;
  if (reduction.getFill()) {
    // As many as there are blocks for each grid point.
    Value blocks = math.constant(card.multiprocessors);
    Value share = math.make<arith::DivUIOp>(blocks, math.multiply(extents));
    most = math.most(share, one);
    size = math.make<arith::CeilDivUIOp>(some, most);
  } else {
    most = math.dim(prefix.front());
    size = math.constant(*reduction.getPart());
  }
  Value parts = math.make<arith::CeilDivUIOp>(some, size);
  return {math.least(parts, most), size};
}

/// The bounds of a part. Where grid points may have fewer parts than there are, the last one takes
/// what is left, and those behind it are empty.
std::pair<Value, Value> Split::findPart(ValueRange range, Value part, ArrayRef<Value> extents) {
  auto [count, size] = countParts(range, extents);
  Value offset = math.mul(part, size);
  if (isEven) {
    Value end = math.add(offset, size);
    return {offset, math.least(end, range[1])};
  }
  Value begin = math.add(range[0], offset);
  Value first = math.least(begin, range[1]);
  Value end = math.add(begin, size);
  Value own = math.least(end, range[1]);
  Value last = math.sub(count, math.constant(1));
  Value isLast = math.compare(arith::CmpIPredicate::eq, part, last);
  return {first, math.select(isLast, range[1], own)};
}

//===----------------------------------------------------------------------===//
// Workspaces
//===----------------------------------------------------------------------===//

SmallVector<Value> Split::addWorkspaces(KernelOp to) {
  SmallVector<Value> views;
  for (auto [i, type] : llvm::enumerate(reduction.getResultTypes()))
    views.push_back(
        addArgument(to, viewOfState(prefix, type), "state" + std::to_string(i), math.loc));
  return views;
}

/// Where the state of a part of a grid point is.
SmallVector<Value> Split::placeOf(Type state, Value part, Value point, ArrayRef<Value> extents) {
  if (reduction.getFill())
    return placeOfState(math, math.number({point, part}, {math.multiply(extents), Value()}), state);
  return placeOfState(math, {part, point}, state);
}

//===----------------------------------------------------------------------===//
// The two kernels and their sequence
//===----------------------------------------------------------------------===//

/// Gives the kernel of parts its grid; the numbers of a part and of its point.
std::pair<Value, Value> Split::setGrid(KernelOp parts, ArrayRef<Value> extents) {
  Block &body = parts.getBody().front();
  unsigned first = parts.getNumArguments(), rank = parts.getGridRank();
  SmallVector<Attribute> grid, names;
  SmallVector<Value> indices;
  auto addDim = [&](Attribute extent, StringRef name) -> Value {
    grid.push_back(GridDimAttr::get(builder.getContext(), extent, 1));
    names.push_back(builder.getStringAttr(name));
    return body.addArgument(builder.getIndexType(), math.loc);
  };
  Value part, point;
  if (reduction.getFill()) {
    Value slot = addDim(prefix.front(), "slot");
    Value all = math.multiply(extents);
    point = math.make<arith::RemUIOp>(slot, all);
    part = math.make<arith::DivUIOp>(slot, all);
  } else if (isFlat()) {
    point = addDim(prefix.back(), "point");
    part = addDim(prefix.front(), "part");
  } else {
    for (unsigned i : points) {
      indices.push_back(
          body.addArgument(builder.getIndexType(), body.getArgument(first + i).getLoc()));
      grid.push_back(kernel.getGrid()[i]);
      names.push_back(kernel.getGridNames() ? (*kernel.getGridNames())[i]
                                            : builder.getStringAttr("i"));
    }
    part = addDim(prefix.front(), "part");
    point = math.number(indices, extents);
  }
  if (isFlat())
    indices = math.indices(point, extents);
  for (auto [i, index] : llvm::zip_equal(points, indices))
    body.getArgument(first + i).replaceAllUsesWith(index);
  body.eraseArguments(first, rank);
  parts.setGridAttr(builder.getArrayAttr(grid));
  parts.setGridNamesAttr(builder.getArrayAttr(names));
  return {part, point};
}

/// Stores the states of parts.
void Split::completeParts(KernelOp parts) {
  SplitReduceOp own = findReduction(parts);
  SmallVector<Value> views = addWorkspaces(parts);
  builder.setInsertionPointToStart(&parts.getBody().front());
  SmallVector<Value> extents = math.extents(kernel, points);
  auto [part, point] = setGrid(parts, extents);
  builder.setInsertionPoint(own);
  auto [begin, end] = findPart(own.getOperands(), part, extents);
  SmallVector<Value> state = inlineBody(own, begin, end);
  builder.setInsertionPoint(parts.getBody().front().getTerminator());
  for (auto [value, view] : llvm::zip_equal(state, views))
    StoreOp::create(builder, math.loc, value, view, placeOf(value.getType(), part, point, extents),
                    DenseI64ArrayAttr(), /*add=*/false);
  eraseDead(parts.getBody().front());
  eraseUnusedArguments(parts, /*keepsRequirements=*/false);
}

SmallVector<Value> Split::mergeAll(SplitReduceOp own, LoadPart load, Value count) {
  SmallVector<Value> state = load(math.constant(0));
  Value one = math.constant(1);
  int64_t atOnce = countAtOnce(reduction, card);
  if (auto number = dyn_cast<IntegerAttr>(prefix.front()); number && isEven) {
    int64_t rest = number.getInt() - 1;
    atOnce = std::min(atOnce, rest);
    int64_t past = 1 + rest / atOnce * atOnce;
    state = mergeLoop(math, own, load, one, math.constant(past), atOnce, state);
    return mergeSome(math, own, load, math.constant(past), rest % atOnce, state);
  }
  return mergeParts(math, own, load, one, count, std::min<int64_t>(atOnce, 8), state);
}

/// Merges the states of a grid point, and goes on with what follows.
KernelOp Split::makeMerge() {
  KernelOp merge = kernel.clone();
  merge.removeScheduleAttr();
  SplitReduceOp own = findReduction(merge);
  SmallVector<Value> views = addWorkspaces(merge);
  builder.setInsertionPoint(own);
  SmallVector<Value> extents = math.extents(kernel, points);
  SmallVector<Value> indices =
      llvm::map_to_vector(points, [&](unsigned i) -> Value { return merge.getGridIndex(i); });
  Value point = math.number(indices, extents);
  auto load = [&](Value part) {
    SmallVector<Value> state;
    for (auto [type, view] : llvm::zip_equal(reduction.getResultTypes(), views)) {
      SmallVector<Value> operands{view};
      llvm::append_range(operands, placeOf(type, part, point, extents));
      state.push_back(LoadOp::create(builder, math.loc, TypeRange{type}, operands));
    }
    return state;
  };
  Value count = countParts(own.getOperands(), extents).first;
  own.replaceAllUsesWith(mergeAll(own, load, count));
  own.erase();
  eraseDead(merge.getBody().front());
  eraseUnusedArguments(merge, /*keepsRequirements=*/true);
  for (Type type : reduction.getResultTypes())
    if (auto tile = dyn_cast<RankedTensorType>(type); tile && tile.getRank() == 2) {
      mergedRows = cutRows(merge, tile.getDimSize(0), card.mergedElements);
      break;
    }
  return merge;
}

LogicalResult Split::run() {
  OwningOpRef<KernelOp> parts = cutParts();
  if (failed(planParts()))
    return failure();
  if (prefix.front() == builder.getI64IntegerAttr(1)) {
    reduction.emitRemark("has one part, so that the range stays whole");
    inlineBody(reduction, reduction.getLower(), reduction.getUpper());
    return success();
  }
  completeParts(*parts);
  KernelOp merge = makeMerge();
  KernelOp made = parts.release();
  Location loc = math.loc;
  replaceBySequence(kernel, {{made, "_parts"}, {merge, "_merge"}}, plan, loc);
  InFlightDiagnostic remark = emitRemark(loc);
  remark << "is split: '" << made.getSymName() << "' computes the states of parts, which '"
         << merge.getSymName() << "' merges";
  if (mergedRows != 0)
    remark << ", " << mergedRows << " rows in each grid point";
  return success();
}

namespace {
struct TileSplitReductionsPass : tessera::impl::TileSplitReductionsBase<TileSplitReductionsPass> {
  void runOnOperation() override {
    for (KernelOp kernel : llvm::to_vector(getOperation().getOps<KernelOp>())) {
      SplitReduceOp reduction = findReduction(kernel);
      if (!reduction)
        continue;
      if (reduction.isWhole()) {
        inlineBody(reduction, reduction.getLower(), reduction.getUpper());
        continue;
      }
      if (reduction.getCluster().value_or(0) != 0) {
        if (failed(splitAmongBlocks(reduction)))
          return signalPassFailure();
        continue;
      }
      if (failed(checkLaunches(reduction)))
        return signalPassFailure();
      if (reduction.getBalanced().value_or(0) != 0)
        balanceReduction(reduction);
      else if (failed(Split(reduction).run()))
        return signalPassFailure();
    }
  }
};
} // namespace
