//===- RunSearch.cpp - Where the runs lie in which rows come --------------===//

#include "passes/Hop/Barriers/RunSearch.h"
#include "dialects/Hop/Machine.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Iterators.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Hop/FutureValues.h"

using namespace mlir;
using namespace tessera;
using Predicate = arith::CmpIPredicate;

int64_t RunSearch::countRuns(hop::PipeLoadOp load, int64_t blocks) {
  return load.getPipe().getType().getTile().getDimSize(0) / static_cast<int64_t>(*load.getRun()) /
         blocks;
}

bool RunSearch::areFoundInLanes(hop::PipeLoadOp load, int64_t blocks) {
  return load.getRun() && countRuns(load, blocks) > 1 &&
         load->getParentOfType<hop::RoleOp>().isElected();
}

RunSearch::RunSearch(hop::PipeLoadOp load, int64_t blocks, RewriterBase &rewriter)
    : load(load), rewriter(rewriter), loc(load.getLoc()), first(constant(0)),
      count(countRuns(load, blocks)), rows(*load.getRun()) {
  if (blocks > 1) {
    Value rank = hop::ClusterRankOp::create(rewriter, loc, rewriter.getIndexType());
    first = arith::MulIOp::create(rewriter, loc, rank, constant(count));
  }
}

Value RunSearch::constant(int64_t value) {
  return arith::ConstantIndexOp::create(rewriter, loc, value);
}

Value RunSearch::compare(Predicate predicate, Value a, Value b) {
  return arith::CmpIOp::create(rewriter, loc, predicate, a, b);
}

void RunSearch::chooseRow(Value &row, Value isThere, int64_t rows) {
  row = arith::SelectOp::create(rewriter, loc, isThere, row, constant(-rows));
}

Run RunSearch::find(Value number, ValueRange captures) {
  number = rewriter.createOrFold<arith::AddIOp>(loc, number, first);
  IRMapping mapping;
  Block &body = load.getBodyOfRun();
  mapping.map(body.getArgument(0), number);
  mapping.map(body.getArguments().drop_front(), captures);
  for (Operation &op : body.without_terminator())
    rewriter.clone(op, mapping);
  SmallVector<Value> given = llvm::map_to_vector(
      load.getYielded(), [&](Value value) { return mapping.lookupOrDefault(value); });
  Run run = {SmallVector<Value>(load.getIndices()), given.pop_back_val(),
             arith::MulIOp::create(rewriter, loc, number, constant(rows))};
  for (auto [i, place] : llvm::enumerate(given)) {
    Value &own = run.place[load.getFirstNumberedDim() + i];
    own = arith::AddIOp::create(rewriter, loc, own, place);
  }
  return run;
}

Run RunSearch::take(const RunsInLanes &lanes, int64_t number) {
  Value own = rewriter.createOrFold<arith::AddIOp>(loc, constant(number), first);
  Value lane = rewriter.createOrFold<arith::AddIOp>(loc, constant(number), lanes.first);
  Run run = {SmallVector<Value>(load.getIndices()),
             {},
             arith::MulIOp::create(rewriter, loc, own, constant(rows))};
  SmallVector<int64_t> varying = findVarying();
  for (auto [i, place] : llvm::enumerate(load.getYielded().drop_back())) {
    Value &at = run.place[load.getFirstNumberedDim() + i];
    APInt fixed;
    if (auto found = llvm::find(varying, static_cast<int64_t>(i)); found != varying.end())
      at = hop::OfLaneOp::create(rewriter, loc, rewriter.getIndexType(),
                                 lanes.places[found - varying.begin()], lane);
    else if (matchPattern(place, m_ConstantInt(&fixed)))
      at = rewriter.createOrFold<arith::AddIOp>(loc, at, constant(fixed.getSExtValue()));
  }
  return run;
}

/// The dimensions that have numbers, counted from the first of these, but those in which all runs
/// have one place. At least one is left.
SmallVector<int64_t> RunSearch::findVarying() {
  SmallVector<int64_t> varying;
  ValueRange places = load.getYielded().drop_back();
  for (auto [i, place] : llvm::enumerate(places))
    if (!matchPattern(place, m_Constant()))
      varying.push_back(i);
  if (varying.empty())
    varying.push_back(places.size() - 1);
  return varying;
}

/// The places of the run that `find` gives in each lane: as a whole, or before the view.
SmallVector<Value> RunSearch::findPlaces(int64_t lanes, Finder find) {
  SmallVector<int64_t> varying = findVarying();
  int64_t dim = load.getFirstNumberedDim(), ofRows = load.getIndices().size() - 2;
  SmallVector<Type> types(varying.size(), VectorType::get({lanes}, rewriter.getIndexType()));
  auto found = hop::InLanesOp::create(rewriter, loc, types);
  OpBuilder::InsertionGuard restore(rewriter);
  Block *body = rewriter.createBlock(&found.getBody(), {}, {rewriter.getIndexType()}, {loc});
  Run run = find(body->getArgument(0));
  SmallVector<Value> places =
      llvm::map_to_vector(varying, [&](int64_t i) { return run.place[dim + i]; });
  chooseRow(places.back(), compare(Predicate::sge, run.there, constant(rows)),
            dim + varying.back() == ofRows ? rows : 1);
  hop::YieldOp::create(rewriter, loc, places);
  return found.getResults();
}

/// The least or largest of the numbers of 32 bits that lanes have.
Value RunSearch::reduce(tile::ReduceKind kind, int64_t lanes, function_ref<Value(Value)> ofLane) {
  auto range = tile::ReduceRangeOp::create(rewriter, loc, rewriter.getI32Type(), kind, lanes);
  OpBuilder::InsertionGuard restore(rewriter);
  Block *body = rewriter.createBlock(&range.getBody(), {}, {rewriter.getIndexType()}, {loc});
  tile::YieldOp::create(rewriter, loc, ofLane(body->getArgument(0)));
  return range.getResult();
}

Value RunSearch::endsEarly(const Run &run) {
  return arith::AndIOp::create(rewriter, loc, compare(Predicate::sgt, run.there, constant(0)),
                               compare(Predicate::slt, run.there, constant(rows)));
}

RunsInLanes RunSearch::findInLanes() {
  RunsInLanes lanes;
  lanes.places = findPlaces(count, [&](Value number) { return find(number); });
  Value early = reduce(tile::ReduceKind::max, count, [&](Value number) -> Value {
    return arith::ExtUIOp::create(rewriter, loc, rewriter.getI32Type(), endsEarly(find(number)));
  });
  lanes.first = constant(0);
  lanes.noneEarly =
      compare(Predicate::eq, early, arith::ConstantIntOp::create(rewriter, loc, 0, 32));
  return lanes;
}

SmallVector<Value> RunSearch::findAhead(scf::ForOp loop, Value begin, int64_t iterations,
                                        std::pair<Value, Value> &early) {
  int64_t lanes = iterations * count;
  auto iterationOf = [&](Value lane) -> Value {
    return arith::DivUIOp::create(rewriter, loc, lane, constant(count));
  };
  auto findFor = [&](Value lane) {
    Value ahead = arith::MulIOp::create(rewriter, loc, iterationOf(lane), loop.getStep());
    Value induction = arith::AddIOp::create(rewriter, loc, begin, ahead);
    FutureValues values(loop, rewriter, induction, {});
    SmallVector<Value> captures = llvm::map_to_vector(
        load.getCaptures(), [&](Value capture) { return values.get(capture, 0); });
    return find(arith::RemUIOp::create(rewriter, loc, lane, constant(count)), captures);
  };
  auto findEarly = [&](tile::ReduceKind kind, int64_t none) {
    return reduce(kind, lanes, [&](Value lane) -> Value {
      Value number =
          arith::IndexCastOp::create(rewriter, loc, rewriter.getI32Type(), iterationOf(lane));
      return arith::SelectOp::create(rewriter, loc, endsEarly(findFor(lane)), number,
                                     arith::ConstantIntOp::create(rewriter, loc, none, 32));
    });
  };
  SmallVector<Value> places = findPlaces(lanes, findFor);
  early = {findEarly(tile::ReduceKind::min, iterations), findEarly(tile::ReduceKind::max, -1)};
  return places;
}

/// Whether `value` of an iteration of `loop` follows from its number alone, by arithmetic.
static bool followsFromNumber(Value value, scf::ForOp loop) {
  if (value == loop.getInductionVar() || loop.isDefinedOutsideOfLoop(value))
    return true;
  Operation *op = value.getDefiningOp();
  return op && op->getBlock() == loop.getBody() && isPure(op) && op->getNumRegions() == 0 &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return followsFromNumber(operand, loop); });
}

/// Whether the runs of `load`, which lanes find, can be found before an iteration of `loop` begins.
static bool isFoundAhead(hop::PipeLoadOp load, scf::ForOp loop) {
  ValueRange numbered = load.getIndices().drop_front(load.getFirstNumberedDim()).drop_back();
  return llvm::all_of(load.getCaptures(),
                      [&](Value capture) { return followsFromNumber(capture, loop); }) &&
         llvm::all_of(numbered, [&](Value index) { return loop.isDefinedOutsideOfLoop(index); });
}

/// Whether lanes find runs of loads of `loop` ahead.
static bool findsAhead(scf::ForOp loop, BlocksOfLoad blocksOf) {
  return llvm::any_of(loop.getBody()->getOps<hop::PipeLoadOp>(), [&](hop::PipeLoadOp load) {
    return RunSearch::areFoundInLanes(load, blocksOf(load)) && isFoundAhead(load, loop);
  });
}

/// The loop before `loop` that does the same up to where this one begins, as where tile-split-loops
/// has cut one for consumers.
static scf::ForOp findBeginning(scf::ForOp loop) {
  Operation *before = loop->getPrevNode();
  while (before && isPure(before) && before->getNumRegions() == 0)
    before = before->getPrevNode();
  auto first = dyn_cast_or_null<scf::ForOp>(before);
  bool goesOn = first && first.getUpperBound() == loop.getLowerBound() &&
                first.getNumResults() == 0 && loop.getNumResults() == 0 &&
                isConstantIntValue(first.getStep(), 1) && isConstantIntValue(loop.getStep(), 1) &&
                !first.getUnsignedCmp() && !loop.getUnsignedCmp() &&
                OperationEquivalence::isRegionEquivalentTo(&first.getRegion(), &loop.getRegion(),
                                                           OperationEquivalence::IgnoreLocations);
  return goesOn ? first : nullptr;
}

/// Whether `loop` does not end before it begins.
static bool endsBehindBegin(scf::ForOp loop) {
  auto end = loop.getUpperBound().getDefiningOp<arith::MaxSIOp>();
  return end && llvm::is_contained(end->getOperands(), loop.getLowerBound());
}

/// Has `loop` do what the loops before it do, and returns these and those in them, which are gone.
static SmallVector<Operation *> join(scf::ForOp loop, RewriterBase &rewriter) {
  SmallVector<scf::ForOp> before;
  for (scf::ForOp next = loop; scf::ForOp first = findBeginning(next); next = first) {
    if (next != loop && !endsBehindBegin(next))
      break;
    before.push_back(first);
  }
  if (before.empty())
    return {};
  rewriter.setInsertionPoint(loop);
  Location loc = loop.getLoc();
  // The first one may end before it begins, and the last one too.
  scf::ForOp first = before.back();
  Value begin =
      rewriter.createOrFold<arith::MinSIOp>(loc, first.getUpperBound(), first.getLowerBound());
  Value end =
      rewriter.createOrFold<arith::MaxSIOp>(loc, loop.getUpperBound(), loop.getLowerBound());
  loop.setLowerBound(begin);
  loop.setUpperBound(end);
  SmallVector<Operation *> gone;
  for (scf::ForOp op : before) {
    op->walk([&](scf::ForOp inner) { gone.push_back(inner); });
    rewriter.eraseOp(op);
  }
  return gone;
}

/// Puts `loop` into one of groups of `iterations` iterations, and returns that.
static scf::ForOp cut(scf::ForOp loop, int64_t iterations, RewriterBase &rewriter) {
  Location loc = loop.getLoc();
  rewriter.setInsertionPoint(loop);
  Value size = arith::MulIOp::create(rewriter, loc, loop.getStep(),
                                     arith::ConstantIndexOp::create(rewriter, loc, iterations));
  auto groups = scf::ForOp::create(
      rewriter, loc, loop.getLowerBound(), loop.getUpperBound(), size, loop.getInits(),
      [](OpBuilder &, Location, Value, ValueRange) {}, loop.getUnsignedCmp());
  rewriter.replaceAllUsesWith(loop.getResults(), groups.getResults());
  loop->moveBefore(groups.getBody(), groups.getBody()->end());
  rewriter.setInsertionPoint(loop);
  Value begin = groups.getInductionVar();
  Value behind = arith::AddIOp::create(rewriter, loc, begin, size), end = loop.getUpperBound();
  end = loop.getUnsignedCmp() ? arith::MinUIOp::create(rewriter, loc, behind, end).getResult()
                              : arith::MinSIOp::create(rewriter, loc, behind, end).getResult();
  loop.setLowerBound(begin);
  loop.setUpperBound(end);
  loop.getInitArgsMutable().assign(groups.getRegionIterArgs());
  rewriter.setInsertionPointAfter(loop);
  scf::YieldOp::create(rewriter, loc, loop.getResults());
  return groups;
}

DenseMap<Operation *, RunsInLanes> tessera::groupIterations(hop::RoleOp role, BlocksOfLoad blocksOf,
                                                            RewriterBase &rewriter) {
  DenseMap<Operation *, RunsInLanes> found;
  SmallVector<scf::ForOp> loops;
  // The last one first: it takes those before it.
  role.walk<WalkOrder::PostOrder, ReverseIterator>([&](scf::ForOp loop) { loops.push_back(loop); });
  OpBuilder::InsertionGuard restore(rewriter);
  DenseSet<Operation *> joined;
  for (scf::ForOp loop : loops)
    if (!joined.contains(loop) && findsAhead(loop, blocksOf))
      joined.insert_range(join(loop, rewriter));
  loops.clear();
  role.walk([&](scf::ForOp loop) { loops.push_back(loop); });
  for (scf::ForOp loop : loops) {
    int64_t most = 0;
    SmallVector<hop::PipeLoadOp> loads;
    for (auto load : loop.getBody()->getOps<hop::PipeLoadOp>())
      if (int64_t blocks = blocksOf(load);
          RunSearch::areFoundInLanes(load, blocks) && isFoundAhead(load, loop)) {
        loads.push_back(load);
        most = std::max(most, RunSearch::countRuns(load, blocks));
      }
    int64_t iterations = most ? hopper::warpThreads / most : 0;
    if (iterations < 2)
      continue;
    scf::ForOp groups = cut(loop, iterations, rewriter);
    for (hop::PipeLoadOp load : loads) {
      load.emitRemark("finds the runs of ") << iterations << " iterations at once";
      rewriter.setInsertionPoint(loop);
      RunSearch search(load, blocksOf(load), rewriter);
      std::pair<Value, Value> early;
      RunsInLanes lanes;
      lanes.places = search.findAhead(loop, groups.getInductionVar(), iterations, early);
      rewriter.setInsertionPointToStart(loop.getBody());
      Location loc = load.getLoc();
      Value number =
          arith::SubIOp::create(rewriter, loc, loop.getInductionVar(), groups.getInductionVar());
      number = arith::DivUIOp::create(rewriter, loc, number, loop.getStep());
      int64_t count = RunSearch::countRuns(load, blocksOf(load));
      lanes.first = arith::MulIOp::create(rewriter, loc, number, search.constant(count));
      number = arith::IndexCastOp::create(rewriter, loc, rewriter.getI32Type(), number);
      lanes.noneEarly =
          arith::OrIOp::create(rewriter, loc, search.compare(Predicate::slt, number, early.first),
                               search.compare(Predicate::sgt, number, early.second));
      found[load] = lanes;
    }
  }
  return found;
}
