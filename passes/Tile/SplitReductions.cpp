//===- SplitReductions.cpp - Parts of a range as grid points --------------===//
//
// Implements tile-split-reductions. See FunctionPasses.td.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/Schedule/CostModel.h"
#include "passes/Tile/CutRows.h"
#include "passes/Tile/SplitKernel.h"
#include "passes/Tile/TilePasses.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

namespace tessera {
#define GEN_PASS_DEF_TILESPLITREDUCTIONS
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// Puts the first region in place of `reduction`, for the part from `first` to `past`, and gives
/// the state.
static SmallVector<Value> inlineBody(SplitReduceOp reduction, Value first, Value past) {
  reduction.getFirst().replaceAllUsesWith(first);
  reduction.getPast().replaceAllUsesWith(past);
  YieldOp yield = reduction.getBodyYield();
  SmallVector<Value> state(yield.getValues());
  yield.erase();
  reduction.replaceAllUsesWith(state);
  reduction->getBlock()->getOperations().splice(reduction->getIterator(),
                                                reduction.getBody().front().getOperations());
  reduction.erase();
  return state;
}

static SplitReduceOp findReduction(KernelOp kernel) {
  auto all = kernel.getBody().getOps<SplitReduceOp>();
  return all.empty() ? SplitReduceOp() : *all.begin();
}

namespace {
/// A kernel whose range is split, and what becomes of it.
class Split {
public:
  explicit Split(SplitReduceOp reduction)
      : reduction(reduction), kernel(cast<KernelOp>(reduction->getParentOp())), builder(kernel),
        loc(reduction.getLoc()), plan(kernel), card(getCostModel(kernel)) {}

  /// Replaces the kernel by a sequence of two; fails with a diagnostic.
  LogicalResult run();

private:
  /// Loads the state of a part.
  using LoadPart = function_ref<SmallVector<Value>(Value part)>;

  LogicalResult checkLaunches();
  KernelOp cutParts();
  LogicalResult planParts();
  void completeParts(KernelOp parts);
  SmallVector<Value> mergeSome(SplitReduceOp own, LoadPart load, Value first, int64_t number,
                               SmallVector<Value> state);
  SmallVector<Value> mergeLoop(SplitReduceOp own, LoadPart load, Value first, Value past,
                               int64_t step, ArrayRef<Value> state);
  int64_t countAtOnce();
  SmallVector<Value> mergeAll(SplitReduceOp own, LoadPart load, Value count);
  KernelOp makeMerge();
  void makeSequence(KernelOp parts, KernelOp merge);

  bool isFlat() { return reduction.getFill() || points.size() == 3; }
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value dim(Attribute extent);
  SmallVector<Value> extentsOfPoints();
  Value multiply(ArrayRef<Value> extents);
  Value numberPoint(ArrayRef<Value> indices, ArrayRef<Value> extents);
  SmallVector<Value> findPoint(Value number, ArrayRef<Value> extents);
  std::pair<Value, Value> countParts(ValueRange range, ArrayRef<Value> extents);
  std::pair<Value, Value> findPart(ValueRange range, Value part, ArrayRef<Value> extents);
  std::pair<Value, Value> setGrid(KernelOp parts, ArrayRef<Value> extents);
  ViewType viewOf(Type state);
  SmallVector<Value> addWorkspaces(KernelOp to);
  SmallVector<Value> placeOf(Type state, Value part, Value point, ArrayRef<Value> extents);

  SplitReduceOp reduction;
  KernelOp kernel;
  OpBuilder builder;
  Location loc;
  DimPlan plan;
  const CardNumbers &card;
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

/// Workspaces are those of one sequence.
LogicalResult Split::checkLaunches() {
  for (auto sequence : kernel->getParentOfType<ModuleOp>().getOps<SequenceOp>())
    for (auto launch : sequence.getOps<LaunchOp>()) {
      if (launch.getKernel() != kernel.getSymName())
        continue;
      InFlightDiagnostic error = reduction.emitError("splits a range of kernel '");
      error << kernel.getSymName()
            << "', which a sequence launches; launch it by itself, or leave the range whole with "
               "'part 0'";
      error.attachNote(launch.getLoc()) << "the launch";
      return error;
    }
  return success();
}

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

Value Split::dim(Attribute extent) {
  if (auto name = dyn_cast<StringAttr>(extent))
    return DimOp::create(builder, loc, name);
  return constant(cast<IntegerAttr>(extent).getInt());
}

/// How many grid points there are along each dimension of `points`.
SmallVector<Value> Split::extentsOfPoints() {
  return llvm::map_to_vector(points, [&](unsigned i) -> Value {
    GridDimAttr grid = kernel.getGridDim(i);
    Value extent = dim(grid.getExtent());
    if (grid.getDivisor() == 1)
      return extent;
    return arith::CeilDivUIOp::create(builder, loc, extent, constant(grid.getDivisor()));
  });
}

Value Split::multiply(ArrayRef<Value> extents) {
  Value product;
  for (Value extent : extents)
    product = product ? arith::MulIOp::create(builder, loc, product, extent).getResult() : extent;
  return product ? product : constant(1);
}

/// The number of a grid point, the first index fastest.
Value Split::numberPoint(ArrayRef<Value> indices, ArrayRef<Value> extents) {
  Value number;
  for (auto [index, extent] : llvm::reverse(llvm::zip_equal(indices, extents))) {
    Value before =
        number ? arith::MulIOp::create(builder, loc, number, extent).getResult() : Value();
    number = before ? arith::AddIOp::create(builder, loc, before, index).getResult() : index;
  }
  return number ? number : constant(0);
}

/// The indices that `numberPoint` numbers.
SmallVector<Value> Split::findPoint(Value number, ArrayRef<Value> extents) {
  SmallVector<Value> indices;
  for (Value extent : extents.drop_back(!extents.empty())) {
    indices.push_back(arith::RemUIOp::create(builder, loc, number, extent));
    number = arith::DivUIOp::create(builder, loc, number, extent);
  }
  if (!extents.empty())
    indices.push_back(number);
  return indices;
}

/// How many parts the range of a grid point has, and the iterations of each but the last.
std::pair<Value, Value> Split::countParts(ValueRange range, ArrayRef<Value> extents) {
  if (isEven)
    return {dim(prefix.front()), constant(*reduction.getPart())};
  Value one = constant(1);
  Value length = arith::SubIOp::create(builder, loc, range[1], range[0]);
  Value some = arith::MaxSIOp::create(builder, loc, length, one);
  Value most, size;
  if (reduction.getFill()) {
    // As many as there are blocks for each grid point.
    Value blocks = constant(card.multiprocessors);
    Value share = arith::DivUIOp::create(builder, loc, blocks, multiply(extents));
    most = arith::MaxSIOp::create(builder, loc, share, one);
    size = arith::CeilDivUIOp::create(builder, loc, some, most);
  } else {
    most = dim(prefix.front());
    size = constant(*reduction.getPart());
  }
  Value parts = arith::CeilDivUIOp::create(builder, loc, some, size);
  return {arith::MinSIOp::create(builder, loc, parts, most), size};
}

/// The bounds of a part. Where grid points may have fewer parts than there are, the last one takes
/// what is left, and those behind it are empty.
std::pair<Value, Value> Split::findPart(ValueRange range, Value part, ArrayRef<Value> extents) {
  auto [count, size] = countParts(range, extents);
  Value offset = arith::MulIOp::create(builder, loc, part, size);
  if (isEven) {
    Value end = arith::AddIOp::create(builder, loc, offset, size);
    return {offset, arith::MinSIOp::create(builder, loc, end, range[1])};
  }
  Value begin = arith::AddIOp::create(builder, loc, range[0], offset);
  Value first = arith::MinSIOp::create(builder, loc, begin, range[1]);
  Value end = arith::AddIOp::create(builder, loc, begin, size);
  Value own = arith::MinSIOp::create(builder, loc, end, range[1]);
  Value last = arith::SubIOp::create(builder, loc, count, constant(1));
  Value isLast = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, part, last);
  return {first, arith::SelectOp::create(builder, loc, isLast, range[1], own)};
}

//===----------------------------------------------------------------------===//
// Workspaces
//===----------------------------------------------------------------------===//

ViewType Split::viewOf(Type state) {
  SmallVector<Attribute> dims = prefix;
  if (auto tile = dyn_cast<RankedTensorType>(state))
    for (int64_t extent : tile.getShape())
      dims.push_back(builder.getI64IntegerAttr(extent));
  return ViewType::get(builder.getContext(), dims, getElementTypeOrSelf(state));
}

SmallVector<Value> Split::addWorkspaces(KernelOp to) {
  SmallVector<Value> views;
  for (auto [i, type] : llvm::enumerate(reduction.getResultTypes()))
    views.push_back(addArgument(to, viewOf(type), "state" + std::to_string(i), loc));
  return views;
}

/// Where the state of a part of a grid point is.
SmallVector<Value> Split::placeOf(Type state, Value part, Value point, ArrayRef<Value> extents) {
  SmallVector<Value> place;
  if (reduction.getFill())
    place.push_back(numberPoint({point, part}, {multiply(extents), Value()}));
  else
    place = {part, point};
  auto tile = dyn_cast<RankedTensorType>(state);
  for (int64_t i = 0; tile && i < tile.getRank(); ++i)
    place.push_back(constant(0));
  return place;
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
    return body.addArgument(builder.getIndexType(), loc);
  };
  Value part, point;
  if (reduction.getFill()) {
    Value slot = addDim(prefix.front(), "slot");
    Value all = multiply(extents);
    point = arith::RemUIOp::create(builder, loc, slot, all);
    part = arith::DivUIOp::create(builder, loc, slot, all);
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
    point = numberPoint(indices, extents);
  }
  if (isFlat())
    indices = findPoint(point, extents);
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
  SmallVector<Value> extents = extentsOfPoints();
  auto [part, point] = setGrid(parts, extents);
  builder.setInsertionPoint(own);
  auto [begin, end] = findPart(own.getOperands(), part, extents);
  SmallVector<Value> state = inlineBody(own, begin, end);
  builder.setInsertionPoint(parts.getBody().front().getTerminator());
  for (auto [value, view] : llvm::zip_equal(state, views))
    StoreOp::create(builder, loc, value, view, placeOf(value.getType(), part, point, extents),
                    DenseI64ArrayAttr(), /*add=*/false);
  eraseDead(parts.getBody().front());
  eraseUnusedArguments(parts, /*keepsRequirements=*/false);
}

/// The state of the parts from `first` on, `number` of them, merged into `state`: all are loaded,
/// then merged in their order.
SmallVector<Value> Split::mergeSome(SplitReduceOp own, LoadPart load, Value first, int64_t number,
                                    SmallVector<Value> state) {
  SmallVector<SmallVector<Value>> loaded;
  for (int64_t i = 0; i < number; ++i)
    loaded.push_back(load(arith::AddIOp::create(builder, loc, first, constant(i))));
  for (ArrayRef<Value> part : loaded) {
    IRMapping mapping;
    mapping.map(own.getLeft(), state);
    mapping.map(own.getRight(), part);
    for (Operation &op : own.getMerge().front().without_terminator())
      builder.clone(op, mapping);
    state = llvm::map_to_vector(own.getMergeYield().getValues(),
                                [&](Value value) { return mapping.lookupOrDefault(value); });
  }
  return state;
}

/// The same up to `past`, in a loop of `step` parts each.
SmallVector<Value> Split::mergeLoop(SplitReduceOp own, LoadPart load, Value first, Value past,
                                    int64_t step, ArrayRef<Value> state) {
  auto loop = scf::ForOp::create(builder, loc, first, past, constant(step), state);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> merged = mergeSome(own, load, loop.getInductionVar(), step,
                                        SmallVector<Value>(loop.getRegionIterArgs()));
  scf::YieldOp::create(builder, loc, merged);
  return SmallVector<Value>(loop.getResults());
}

/// How many states a grid point loads at once, of those that it has room for.
int64_t Split::countAtOnce() {
  int64_t elements = 0;
  for (Type type : reduction.getResultTypes()) {
    auto tile = dyn_cast<RankedTensorType>(type);
    elements += tile ? std::min(tile.getNumElements(), card.mergedElements) : 1;
  }
  return std::clamp<int64_t>(card.loadedElements / elements, 1, 32);
}

SmallVector<Value> Split::mergeAll(SplitReduceOp own, LoadPart load, Value count) {
  SmallVector<Value> state = load(constant(0));
  Value one = constant(1);
  int64_t atOnce = countAtOnce();
  if (auto number = dyn_cast<IntegerAttr>(prefix.front()); number && isEven) {
    int64_t rest = number.getInt() - 1;
    atOnce = std::min(atOnce, rest);
    int64_t past = 1 + rest / atOnce * atOnce;
    state = mergeLoop(own, load, one, constant(past), atOnce, state);
    return mergeSome(own, load, constant(past), rest % atOnce, state);
  }
  atOnce = std::min<int64_t>(atOnce, 8);
  Value rest = arith::SubIOp::create(builder, loc, count, one);
  Value rounds = arith::DivUIOp::create(builder, loc, rest, constant(atOnce));
  Value several = arith::MulIOp::create(builder, loc, rounds, constant(atOnce));
  Value past = arith::AddIOp::create(builder, loc, several, one);
  if (atOnce > 1)
    state = mergeLoop(own, load, one, past, atOnce, state);
  return mergeLoop(own, load, atOnce > 1 ? past : one, count, 1, state);
}

/// Merges the states of a grid point, and goes on with what follows.
KernelOp Split::makeMerge() {
  KernelOp merge = kernel.clone();
  merge.removeScheduleAttr();
  SplitReduceOp own = findReduction(merge);
  SmallVector<Value> views = addWorkspaces(merge);
  builder.setInsertionPoint(own);
  SmallVector<Value> extents = extentsOfPoints();
  SmallVector<Value> indices =
      llvm::map_to_vector(points, [&](unsigned i) -> Value { return merge.getGridIndex(i); });
  Value point = numberPoint(indices, extents);
  auto load = [&](Value part) {
    SmallVector<Value> state;
    for (auto [type, view] : llvm::zip_equal(reduction.getResultTypes(), views)) {
      SmallVector<Value> operands{view};
      llvm::append_range(operands, placeOf(type, part, point, extents));
      state.push_back(LoadOp::create(builder, loc, TypeRange{type}, operands));
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

/// `name`, or where it is taken another one that begins so.
static std::string findName(ModuleOp module, const Twine &name) {
  std::string own = name.str();
  for (int i = 1; module.lookupSymbol(own); ++i)
    own = (name + Twine(i)).str();
  return own;
}

/// Puts both kernels, and a sequence that launches them, in place of the kernel.
void Split::makeSequence(KernelOp parts, KernelOp merge) {
  auto module = kernel->getParentOfType<ModuleOp>();
  builder.setInsertionPoint(kernel);
  for (auto [made, suffix] : {std::pair(parts, "_parts"), std::pair(merge, "_merge")}) {
    made.setSymName(findName(module, kernel.getSymName() + suffix));
    builder.insert(made);
  }
  ArrayAttr derived =
      plan.getDerived().empty() ? ArrayAttr() : builder.getArrayAttr(plan.getDerived());
  auto sequence =
      SequenceOp::create(builder, kernel.getLoc(), kernel.getSymNameAttr(),
                         kernel.getArgumentTypesAttr(), kernel.getArgumentNamesAttr(), derived);
  Block &body = sequence.getBody().emplaceBlock();
  builder.setInsertionPointToEnd(&body);
  llvm::StringMap<Value> values;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    values[kernel.getArgumentName(i)] =
        body.addArgument(kernel.getArgument(i).getType(), kernel.getArgument(i).getLoc());
  for (unsigned i = parts.getNumArguments() - reduction.getNumResults();
       i < parts.getNumArguments(); ++i)
    values[parts.getArgumentName(i)] =
        WorkspaceOp::create(builder, loc, parts.getArgument(i).getType(), parts.getArgumentName(i));
  for (KernelOp made : {parts, merge}) {
    SmallVector<Value> operands;
    for (unsigned i = 0; i < made.getNumArguments(); ++i)
      operands.push_back(values.lookup(made.getArgumentName(i)));
    LaunchOp::create(builder, loc, made.getSymName(), operands);
  }
  kernel.erase();
}

LogicalResult Split::run() {
  if (failed(checkLaunches()))
    return failure();
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
  makeSequence(made, merge);
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
      if (!reduction.getFill() && reduction.getPart().value_or(0) == 0)
        inlineBody(reduction, reduction.getLower(), reduction.getUpper());
      else if (failed(Split(reduction).run()))
        return signalPassFailure();
    }
  }
};
} // namespace
