//===- BalanceReduction.cpp - Ranges of grid points in equal shares -------===//
//
// The `balanced` form of tile-split-reductions. See FunctionPasses.td.
//
// The ranges of all grid points, one behind the other, are cut into shares of as many iterations.
// A range has one iteration at least, so that each grid point is in a share.
//
//===----------------------------------------------------------------------===//

#include "passes/Tile/BalanceReduction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Analysis/Speculation.h"
#include "passes/Schedule/CostModel.h"
#include "passes/Tile/CutRows.h"
#include "passes/Tile/SplitKernel.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;
using arith::CmpIPredicate;

/// Grid points that the list takes at a time: for each thread those of a load.
static constexpr int64_t pointsAtOnce = 512;

/// Iterations of all grid points that the list counts.
static constexpr int64_t mostCounted = 1 << 30;

namespace {
/// What is listed of a share.
enum class Entry : int64_t {
  First,   ///< its first grid point,
  Skipped, ///< of which so many iterations are in shares before
  Past,    ///< behind its last grid point,
  Reach,   ///< of which it has the iterations up to this one; 0 where it has the last
  Until,   ///< behind the last share that has iterations of that grid point
  Count
};

/// What the kernels know of the shares, as arguments of one of them.
struct List {
  Value counts; ///< [POINTS], the iterations of each grid point
  Value shares; ///< [Entry::Count, SLOTS]
  Value used;   ///< [1], how many shares there are
};

/// The share of a thread block, and its place among those of all grid points.
struct BlockShare {
  List list;
  SmallVector<Value> views; ///< of states
  Value slot, number;
  Value isUsed; ///< whether it has iterations; nothing is known of it where not
  Value first, skipped, past, reach;
  SmallVector<Value> others; ///< the grid indices on which no range depends
};

/// A kernel whose ranges are cut into shares, and what becomes of it.
class Balance {
public:
  explicit Balance(SplitReduceOp reduction)
      : reduction(reduction), kernel(cast<KernelOp>(reduction->getParentOp())),
        builder(kernel.getContext()), math{builder, reduction.getLoc()}, plan(kernel) {}
  void run();

private:
  KernelOp makeCounts();
  KernelOp makeList();
  KernelOp makeShares();
  KernelOp makeMerge(int64_t atOnce);
  KernelOp makeCutMerge();
  void planShares();

  void setGrid(KernelOp made, ArrayRef<unsigned> kept);
  Value setSlots(KernelOp made);
  List addList(KernelOp to);
  SmallVector<Value> addStates(KernelOp to);
  Value countOthers();
  Value countShares();

  Value toNumber(Value index);
  Value number(int32_t value);
  Value splat(Value number);
  Value combine(ReduceKind kind, Value tile);
  Value sumOf(Value counts);
  Value cutSize(Value total, Value longest);
  std::pair<Value, Value> findTotals(const List &list);
  void writeShares(const List &list, Value size, Value used);
  void scatter(const List &list, Entry entry, Value value, Value place, Value past);

  Value loadEntry(const List &list, Entry entry, Value number);
  BlockShare findShare(KernelOp made);
  void setIndices(KernelOp made, const BlockShare &share, Value number);

  SplitReduceOp reduction;
  KernelOp kernel;
  OpBuilder builder;
  IndexMath math;
  DimPlan plan;
  /// The grid dimensions on whose indices ranges depend, and the others.
  SmallVector<unsigned> points, others;
  /// How many grid points there are along `points`; shares along all `others`.
  Attribute count, slots;
  int64_t blocks = 0;
  /// The rows of a tile that is merged; 0 where states have no tiles.
  int64_t mergedRows = 0;
};
} // namespace

//===----------------------------------------------------------------------===//
// Grids and arguments
//===----------------------------------------------------------------------===//

/// Leaves the dimensions `kept` of the grid; one point where there are none.
void Balance::setGrid(KernelOp made, ArrayRef<unsigned> kept) {
  Block &body = made.getBody().front();
  SmallVector<Attribute> grid, names;
  for (unsigned i : kept) {
    grid.push_back(kernel.getGrid()[i]);
    names.push_back(kernel.getGridNames() ? (*kernel.getGridNames())[i]
                                          : builder.getStringAttr("i"));
  }
  unsigned arguments = made.getNumArguments();
  for (unsigned i = kernel.getGridRank(); i-- > 0;)
    if (!llvm::is_contained(kept, i))
      body.eraseArgument(arguments + i);
  if (kept.empty()) {
    body.addArgument(builder.getIndexType(), math.loc);
    grid.push_back(GridDimAttr::get(builder.getContext(), builder.getI64IntegerAttr(1), 1));
    names.push_back(builder.getStringAttr("one"));
  }
  made.setGridAttr(builder.getArrayAttr(grid));
  made.setGridNamesAttr(builder.getArrayAttr(names));
}

/// Puts a grid of a slot for each share behind the grid indices that there are; gives its index.
Value Balance::setSlots(KernelOp made) {
  made.setGridAttr(builder.getArrayAttr(GridDimAttr::get(builder.getContext(), slots, 1)));
  made.setGridNamesAttr(builder.getStrArrayAttr({"slot"}));
  return made.getBody().front().addArgument(builder.getIndexType(), math.loc);
}

List Balance::addList(KernelOp to) {
  auto add = [&](StringRef name, ArrayRef<Attribute> dims) -> Value {
    return addArgument(to, ViewType::get(builder.getContext(), dims, builder.getI32Type()), name,
                       math.loc);
  };
  return {add("counts", count),
          add("shares", {builder.getI64IntegerAttr(static_cast<int64_t>(Entry::Count)), slots}),
          add("used", builder.getI64IntegerAttr(1))};
}

/// Two states for each share: of a grid point that begins before it, and of one that goes on
/// behind.
SmallVector<Value> Balance::addStates(KernelOp to) {
  SmallVector<Value> views;
  for (auto [i, type] : llvm::enumerate(reduction.getResultTypes()))
    views.push_back(addArgument(to, viewOfState({slots, builder.getI64IntegerAttr(2)}, type),
                                "state" + std::to_string(i), math.loc));
  return views;
}

Value Balance::countOthers() { return math.multiply(math.extents(kernel, others)); }

/// How many shares there are at most.
Value Balance::countShares() {
  if (others.empty())
    return math.constant(blocks);
  Value all = math.dim(slots);
  return math.make<arith::DivUIOp>(all, countOthers());
}

void Balance::planShares() {
  auto product = [&](ArrayRef<unsigned> dims, StringRef name) {
    SmallVector<Attribute> tiles;
    for (unsigned i : dims) {
      GridDimAttr grid = kernel.getGridDim(i);
      tiles.push_back(plan.derive({{grid.getExtent()}, grid.getDivisor()}, "TILES"));
    }
    return plan.derive({tiles}, name);
  };
  blocks = getCostModel(kernel).multiprocessors * *reduction.getBalanced();
  count = product(points, "POINTS");
  Attribute rounds = plan.derive({{product(others, "OTHERS")}, blocks}, "ROUNDS");
  slots = plan.derive({{rounds, builder.getI64IntegerAttr(blocks)}}, "SLOTS");
}

//===----------------------------------------------------------------------===//
// How many iterations grid points have
//===----------------------------------------------------------------------===//

/// A kernel that counts the iterations of each grid point. Finds on which grid indices they depend.
KernelOp Balance::makeCounts() {
  KernelOp counts = kernel.clone();
  counts.removeScheduleAttr();
  SplitReduceOp own = findReduction(counts);
  Block &body = counts.getBody().front();
  while (body.getTerminator()->getPrevNode() != own)
    body.getTerminator()->getPrevNode()->erase();
  builder.setInsertionPoint(own);
  Value length = math.sub(own.getUpper(), own.getLower());
  Value some = math.most(length, math.constant(1));
  own.erase();
  Operation *last = some.getDefiningOp();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body))) {
    if (&op != last && isOpTriviallyDead(&op))
      op.erase();
    else
      for (Region &region : op.getRegions())
        for (Block &nested : region)
          eraseDead(nested);
  }
  for (unsigned i = 0; i < kernel.getGridRank(); ++i)
    (counts.getGridIndex(i).use_empty() ? others : points).push_back(i);
  planShares();

  setGrid(counts, points);
  SmallVector<Value> indices;
  for (unsigned i = 0; i < points.size(); ++i)
    indices.push_back(counts.getGridIndex(i));
  Value view = addList(counts).counts;
  builder.setInsertionPoint(body.getTerminator());
  Value place = math.number(indices, math.extents(kernel, points));
  // Any list is right, so that of ranges beyond what 32 bits count together some may be said to be
  // shorter.
  Value share = math.make<arith::DivUIOp>(math.constant(mostCounted), math.dim(count));
  Value known = toNumber(math.least(some, math.most(share, math.constant(1))));
  StoreOp::create(builder, math.loc, known, view, place, DenseI64ArrayAttr(), /*add=*/false);
  eraseUnusedArguments(counts, /*keepsRequirements=*/false);
  return counts;
}

//===----------------------------------------------------------------------===//
// The list of shares
//
// Its numbers are below 2^31, which operations without sign are not asked about: those with sign
// would be computed in 64 bits.
//===----------------------------------------------------------------------===//

Value Balance::toNumber(Value index) {
  return arith::IndexCastOp::create(builder, math.loc, builder.getI32Type(), index);
}

Value Balance::number(int32_t value) {
  return arith::ConstantIntOp::create(builder, math.loc, value, 32);
}

static RankedTensorType typeOfNumbers(Builder &builder) {
  return RankedTensorType::get({pointsAtOnce}, builder.getI32Type());
}

Value Balance::splat(Value number) {
  return SplatOp::create(builder, math.loc, typeOfNumbers(builder), number);
}

/// All numbers of a tile as one, which f32 has exactly up to 2^24. A larger maximum is rounded, as
/// that of a range may be: it only says where ranges are cut.
Value Balance::combine(ReduceKind kind, Value tile) {
  Type element = builder.getF32Type();
  Value numbers =
      arith::SIToFPOp::create(builder, math.loc, typeOfNumbers(builder).clone(element), tile);
  Value all = ReduceAllOp::create(builder, math.loc, element, kind, numbers);
  return arith::FPToSIOp::create(builder, math.loc, builder.getI32Type(), all);
}

/// The sum of counts: of their last 12 bits, and of all others, which f32 has exactly.
Value Balance::sumOf(Value counts) {
  Value low = combine(ReduceKind::sum, math.make<arith::AndIOp>(counts, splat(number(4095))));
  Value high = combine(ReduceKind::sum, math.make<arith::ShRUIOp>(counts, splat(number(12))));
  return math.add(low, math.mul(high, number(4096)));
}

static Value loadCounts(OpBuilder &builder, Location loc, const List &list, Value index) {
  return LoadOp::create(builder, loc, TypeRange{typeOfNumbers(builder)},
                        ValueRange{list.counts, index});
}

/// How many iterations there are, and the most of any grid point.
std::pair<Value, Value> Balance::findTotals(const List &list) {
  auto loop = scf::ForOp::create(builder, math.loc, math.constant(0), math.dim(count),
                                 math.constant(pointsAtOnce), ValueRange{number(0), number(1)});
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value counts = loadCounts(builder, math.loc, list, loop.getInductionVar());
  Value longest =
      math.make<arith::MaxUIOp>(loop.getRegionIterArg(1), combine(ReduceKind::max, counts));
  Value total = math.add(loop.getRegionIterArg(0), sumOf(counts));
  scf::YieldOp::create(builder, math.loc, ValueRange{total, longest});
  return {loop.getResult(0), loop.getResult(1)};
}

/// The iterations of a share. Where little more, as cards say, makes it a multiple of the longest
/// range, or one of equal parts of it, it is that: ranges of one length are cut least.
Value Balance::cutSize(Value total, Value longest) {
  Value one = number(1);
  Value even = math.make<arith::CeilDivUIOp>(total, toNumber(countShares()));
  Value times = math.make<arith::CeilDivUIOp>(even, longest);
  Value several = math.mul(longest, times);
  Value parts = math.make<arith::MaxUIOp>(math.make<arith::DivUIOp>(longest, even), one);
  Value part = math.make<arith::CeilDivUIOp>(longest, parts);
  Value isLong = math.compare(CmpIPredicate::ugt, longest, even);
  Value round = math.select(isLong, part, several);
  Value spare = math.make<arith::DivUIOp>(even, number(getCostModel(kernel).sparesOfShare));
  Value isNear = math.compare(CmpIPredicate::ule, round, math.add(even, spare));
  Value own = math.select(isNear, round, even);
  return math.make<arith::MaxUIOp>(own,
                                   number(std::max<int64_t>(reduction.getPart().value_or(1), 1)));
}

/// Stores an entry of shares `place`, where these are before `past`.
void Balance::scatter(const List &list, Entry entry, Value value, Value place, Value past) {
  Value isThere = math.compare(CmpIPredicate::ult, place, past);
  Value row = math.select(isThere, place, splat(number(-1)));
  Value from = math.constant(static_cast<int64_t>(entry)), first = math.constant(0);
  ScatterOp::create(builder, math.loc, value, list.shares, ValueRange{from, first}, row);
}

/// Stores the entries of shares: those that begin in the iterations of a grid point have it as
/// their first one, and those that end there as their last one.
void Balance::writeShares(const List &list, Value size, Value used) {
  Value points = math.dim(count), one = number(1);
  auto loop = scf::ForOp::create(builder, math.loc, math.constant(0), points,
                                 math.constant(pointsAtOnce), ValueRange{number(0)});
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value index = loop.getInductionVar();
  Value counts = loadCounts(builder, math.loc, list, index);
  Value numbers =
      IotaOp::create(builder, math.loc, counts.getType(), index, /*axis=*/0, IntegerAttr());
  Value upTo = ScanOp::create(builder, math.loc, counts.getType(), ReduceKind::sum, counts,
                              /*axis=*/0, /*exclusive=*/false, /*reverse=*/false);
  Value ends = math.add(upTo, splat(loop.getRegionIterArg(0)));
  Value starts = math.sub(ends, counts), none = splat(number(0));
  Value sizes = splat(size);
  Value beginFrom = math.make<arith::CeilDivUIOp>(starts, sizes);
  Value beginPast = math.make<arith::CeilDivUIOp>(ends, sizes);
  Value endFrom = math.make<arith::DivUIOp>(starts, sizes);
  Value endBefore = math.make<arith::DivUIOp>(ends, sizes);
  Value next = math.add(numbers, splat(one));
  // The last share ends with the last grid point.
  Value isLast = math.compare(CmpIPredicate::eq, next, splat(toNumber(points)));
  Value endPast = math.select(isLast, splat(used), endBefore);
  Value begun = math.sub(beginPast, beginFrom), ended = math.sub(endPast, endFrom);
  Value most = math.make<arith::MaxUIOp>(begun, ended);
  Value rounds = arith::IndexCastOp::create(builder, math.loc, builder.getIndexType(),
                                            combine(ReduceKind::max, most));
  auto inner = scf::ForOp::create(builder, math.loc, math.constant(0), rounds, math.constant(1));
  Value total = math.add(loop.getRegionIterArg(0), sumOf(counts));
  scf::YieldOp::create(builder, math.loc, total);

  builder.setInsertionPointToStart(inner.getBody());
  Value offset = splat(toNumber(inner.getInductionVar()));
  Value begin = math.add(beginFrom, offset);
  Value skipped = math.sub(math.mul(begin, sizes), starts);
  scatter(list, Entry::First, numbers, begin, beginPast);
  scatter(list, Entry::Skipped, skipped, begin, beginPast);
  Value end = math.add(endFrom, offset);
  Value place = math.add(math.mul(end, sizes), sizes);
  Value goesOn = math.compare(CmpIPredicate::ult, place, ends);
  Value reach = math.select(goesOn, math.sub(place, starts), none);
  scatter(list, Entry::Past, next, end, endPast);
  scatter(list, Entry::Reach, reach, end, endPast);
  scatter(list, Entry::Until, beginPast, end, endPast);
}

KernelOp Balance::makeList() {
  KernelOp made = kernel.clone();
  made.removeScheduleAttr();
  Block &body = made.getBody().front();
  while (&body.front() != body.getTerminator())
    body.getTerminator()->getPrevNode()->erase();
  setGrid(made, {});
  List list = addList(made);
  builder.setInsertionPoint(body.getTerminator());
  auto [total, longest] = findTotals(list);
  Value size = cutSize(total, longest);
  Value used = math.make<arith::CeilDivUIOp>(total, size);
  Value place = math.constant(0);
  StoreOp::create(builder, math.loc, used, list.used, place, DenseI64ArrayAttr(), /*add=*/false);
  writeShares(list, size, used);
  eraseUnusedArguments(made, /*keepsRequirements=*/false);
  return made;
}

//===----------------------------------------------------------------------===//
// Shares, and the states of grid points that were cut
//===----------------------------------------------------------------------===//

Value Balance::loadEntry(const List &list, Entry entry, Value number) {
  Value row = math.constant(static_cast<int64_t>(entry));
  Value loaded = LoadOp::create(builder, math.loc, TypeRange{builder.getI32Type()},
                                ValueRange{list.shares, row, number});
  return arith::IndexCastOp::create(builder, math.loc, builder.getIndexType(), loaded);
}

/// Has `made` begin with its share, and the builder stand behind that.
BlockShare Balance::findShare(KernelOp made) {
  builder.setInsertionPointToStart(&made.getBody().front());
  BlockShare share;
  share.list = addList(made);
  share.views = addStates(made);
  const List &list = share.list;
  share.slot = setSlots(made);
  share.number = share.slot;
  if (!others.empty()) {
    Value all = countOthers();
    Value other = math.make<arith::RemUIOp>(share.slot, all);
    share.number = math.make<arith::DivUIOp>(share.slot, all);
    share.others = math.indices(other, math.extents(kernel, others));
  }
  Value used = LoadOp::create(builder, math.loc, TypeRange{builder.getI32Type()},
                              ValueRange{list.used, math.constant(0)});
  share.isUsed = math.compare(CmpIPredicate::slt, toNumber(share.number), used);
  share.first = loadEntry(list, Entry::First, share.number);
  share.skipped = loadEntry(list, Entry::Skipped, share.number);
  share.past = loadEntry(list, Entry::Past, share.number);
  share.reach = loadEntry(list, Entry::Reach, share.number);
  return share;
}

/// Moves the operations from `front` on to the beginning of `block`.
static void moveFrom(Operation *front, Block *block) {
  Block *body = front->getBlock();
  block->getOperations().splice(block->begin(), body->getOperations(), Block::iterator(front),
                                Block::iterator(body->getTerminator()));
}

/// Puts those of grid point `number` in place of the indices of the grid.
void Balance::setIndices(KernelOp made, const BlockShare &share, Value number) {
  Block &body = made.getBody().front();
  unsigned first = made.getNumArguments();
  SmallVector<Value> own = math.indices(number, math.extents(kernel, points));
  for (auto [i, index] : llvm::zip_equal(points, own))
    body.getArgument(first + i).replaceAllUsesWith(index);
  for (auto [i, index] : llvm::zip_equal(others, share.others))
    body.getArgument(first + i).replaceAllUsesWith(index);
  body.eraseArguments(first, kernel.getGridRank());
}

/// A thread block has one share and takes no other behind it, in no order of grid points. The
/// second region of a speculation alone can stand in a loop.
static void adaptToLoop(KernelOp kernel) {
  ScheduleAttr::Fields fields = kernel.getScheduleFields();
  if (SpeculateOp speculation = findSpeculation(kernel)) {
    speculation.emitRemark("exact region alone: a share goes from grid point to grid point");
    takeExactRegion(kernel);
    fields.speculate.reset();
  }
  if (!fields.persistent)
    fields.persistent = PersistentKind::None;
  fields.order.reset();
  kernel.setScheduleAttr(fields.get(kernel.getContext()));
}

/// Computes shares: a loop over the grid points that have iterations in it.
KernelOp Balance::makeShares() {
  KernelOp made = kernel.clone();
  adaptToLoop(made);
  SplitReduceOp own = findReduction(made);
  BlockShare share = findShare(made);
  Operation *front = &*builder.getInsertionPoint();
  Value zero = math.constant(0);
  Value one = math.constant(1);
  Value from = math.select(share.isUsed, share.first, zero);
  Value to = math.select(share.isUsed, share.past, zero);
  auto loop = scf::ForOp::create(builder, math.loc, from, to, one);
  moveFrom(front, loop.getBody());
  builder.setInsertionPointToStart(loop.getBody());
  setIndices(made, share, loop.getInductionVar());
  Value index = loop.getInductionVar();
  Value isFirst = math.compare(CmpIPredicate::eq, index, from);
  Value isLast = math.compare(CmpIPredicate::eq, math.add(index, one), to);
  Value skipped = math.select(isFirst, share.skipped, zero);
  Value reach = math.select(isLast, share.reach, zero);
  Value begins = math.compare(CmpIPredicate::eq, skipped, zero);
  Value ends = math.compare(CmpIPredicate::eq, reach, zero);
  Value isWhole = math.make<arith::AndIOp>(begins, ends);

  // What follows is for states of whole ranges.
  builder.setInsertionPointAfter(own);
  auto cond = scf::IfOp::create(builder, math.loc, isWhole, /*withElseRegion=*/true);
  cond.thenBlock()->getOperations().splice(
      cond.thenBlock()->begin(), loop.getBody()->getOperations(), std::next(cond->getIterator()),
      Block::iterator(loop.getBody()->getTerminator()));
  builder.setInsertionPoint(own);
  // The last part ends with the range, whatever the list says: one that was made for other ranges
  // has each iteration once all the same.
  Value length = math.most(math.sub(own.getUpper(), own.getLower()), zero);
  Value first = math.add(own.getLower(), math.least(skipped, length));
  Value reached = math.add(own.getLower(), math.least(reach, length));
  Value past = math.select(ends, own.getUpper(), reached);
  SmallVector<Value> state = inlineBody(own, first, past);
  builder.setInsertionPointToStart(cond.elseBlock());
  Value which = math.select(begins, one, zero);
  for (auto [value, view] : llvm::zip_equal(state, share.views))
    StoreOp::create(builder, math.loc, value, view,
                    placeOfState(math, {share.slot, which}, value.getType()), DenseI64ArrayAttr(),
                    /*add=*/false);
  eraseDead(made.getBody().front());
  eraseUnusedArguments(made, /*keepsRequirements=*/true);
  return made;
}

/// Merges the states of the grid point that begins in a share and goes on behind it.
KernelOp Balance::makeMerge(int64_t atOnce) {
  KernelOp made = kernel.clone();
  made.removeScheduleAttr();
  SplitReduceOp own = findReduction(made);
  BlockShare share = findShare(made);
  Operation *front = &*builder.getInsertionPoint();
  Value one = math.constant(1), zero = math.constant(0);
  Value index = math.sub(share.past, one);
  Value isOther = math.compare(CmpIPredicate::slt, share.first, index);
  Value isWholeFirst = math.compare(CmpIPredicate::eq, share.skipped, zero);
  Value begins = math.make<arith::OrIOp>(isOther, isWholeFirst);
  Value goesOn = math.compare(CmpIPredicate::sgt, share.reach, zero);
  Value isUsed = math.make<arith::AndIOp>(share.isUsed, begins);
  Value isCut = math.make<arith::AndIOp>(isUsed, goesOn);
  auto cond = scf::IfOp::create(builder, math.loc, isCut, /*withElseRegion=*/false);
  moveFrom(front, cond.thenBlock());
  builder.setInsertionPointToStart(cond.thenBlock());
  setIndices(made, share, index);

  builder.setInsertionPoint(own);
  auto load = [&](Value slot, Value which) {
    SmallVector<Value> state;
    for (auto [type, view] : llvm::zip_equal(reduction.getResultTypes(), share.views)) {
      SmallVector<Value> operands{view};
      llvm::append_range(operands, placeOfState(math, {slot, which}, type));
      state.push_back(LoadOp::create(builder, math.loc, TypeRange{type}, operands));
    }
    return state;
  };
  Value behind = loadEntry(share.list, Entry::Until, share.number);
  Value next = math.add(share.number, one);
  SmallVector<Value> state = load(share.slot, one);
  auto loadPart = [&](Value part) {
    // Shares of the same other indices are as many slots away as there are of these.
    Value ahead = math.sub(part, share.number);
    Value away = others.empty() ? ahead : math.mul(ahead, countOthers());
    return load(math.add(share.slot, away), zero);
  };
  own.replaceAllUsesWith(mergeParts(math, own, loadPart, next, behind, atOnce, state));
  own.erase();
  eraseDead(made.getBody().front());
  eraseUnusedArguments(made, /*keepsRequirements=*/false);
  return made;
}

/// The same, with few rows of tiles in a grid point where these do not depend on each other. Only
/// these load several states at once.
KernelOp Balance::makeCutMerge() {
  const CostModel &card = getCostModel(kernel);
  for (Type type : reduction.getResultTypes())
    if (auto tile = dyn_cast<RankedTensorType>(type); tile && tile.getRank() == 2) {
      OwningOpRef<KernelOp> cut = makeMerge(std::min<int64_t>(countAtOnce(reduction, card), 8));
      mergedRows = cutRows(*cut, tile.getDimSize(0), card.mergedElements, /*addsIndex=*/true);
      if (mergedRows < tile.getDimSize(0))
        return cut.release();
      break;
    }
  return makeMerge(/*atOnce=*/1);
}

void Balance::run() {
  KernelOp counts = makeCounts(), list = makeList(), shares = makeShares(), merge = makeCutMerge();
  Location loc = math.loc;
  replaceBySequence(kernel,
                    {{counts, "_counts"}, {list, "_list"}, {shares, "_shares"}, {merge, "_merge"}},
                    plan, loc);
  InFlightDiagnostic remark = emitRemark(loc);
  remark << "is cut into equal shares, which '" << list.getSymName() << "' lists: '"
         << shares.getSymName() << "' computes " << blocks << " of them at once, and '"
         << merge.getSymName() << "' merges the states of grid points that were cut";
  if (mergedRows != 0)
    remark << ", " << mergedRows << " rows in each grid point";
}

void tessera::balanceReduction(SplitReduceOp reduction) { Balance(reduction).run(); }
