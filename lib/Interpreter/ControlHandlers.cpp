//===- ControlHandlers.cpp - Loops, conditionals and speculation ----------===//

#include "lib/Interpreter/Engine.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"
#include <random>

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

/// Copies values to others at once: a target may be a source too.
static void assign(Frame &frame, ValueRange targets, ValueRange sources) {
  SmallVector<Datum> data =
      llvm::map_to_vector(sources, [&](Value value) { return frame.get(value); });
  for (auto [target, datum] : llvm::zip_equal(targets, data))
    frame.set(target, std::move(datum));
}

namespace {
/// A loop that runs, while it lives.
class LoopScope {
public:
  LoopScope(Frame &frame, Operation *loop) : frame(frame) { frame.loops.push_back({loop}); }
  ~LoopScope() { frame.loops.pop_back(); }
  void step() { ++frame.loops.back().number; }

private:
  Frame &frame;
};
} // namespace

static LogicalResult runFor(Frame &frame, Operation *op) {
  auto loop = cast<scf::ForOp>(op);
  int64_t position = frame.scalar(loop.getLowerBound()), end = frame.scalar(loop.getUpperBound()),
          step = frame.scalar(loop.getStep());
  bool isUnsigned = loop.getUnsignedCmp();
  unsigned width = intWidth(loop.getInductionVar().getType());
  if (isUnsigned ? step == 0 : step <= 0)
    return frame.fail(op, "the step of a loop is at least 1, got " + Twine(step));
  assign(frame, loop.getRegionIterArgs(), loop.getInitArgs());
  std::optional<LoopScope> scope(std::in_place, frame, op);
  Block &body = *loop.getBody();
  auto isBefore = [&] {
    return isUnsigned ? static_cast<uint64_t>(position) < static_cast<uint64_t>(end)
                      : position < end;
  };
  while (isBefore()) {
    frame.set(loop.getInductionVar(), Ints{position});
    if (failed(frame.runBlock(body)))
      return failure();
    assign(frame, loop.getRegionIterArgs(), body.getTerminator()->getOperands());
    // A step past the last index that the type holds ends the loop.
    int64_t last = position;
    position = signExtend(
        static_cast<int64_t>(static_cast<uint64_t>(position) + static_cast<uint64_t>(step)), width);
    if (isUnsigned ? static_cast<uint64_t>(position) < static_cast<uint64_t>(last)
                   : position < last)
      break;
    scope->step();
  }
  scope.reset();
  assign(frame, loop.getResults(), loop.getRegionIterArgs());
  return success();
}

static LogicalResult runIf(Frame &frame, Operation *op) {
  auto branch = cast<scf::IfOp>(op);
  Region &region =
      frame.scalar(branch.getCondition()) ? branch.getThenRegion() : branch.getElseRegion();
  if (region.empty())
    return success();
  if (failed(frame.runBlock(region.front())))
    return failure();
  assign(frame, branch.getResults(), region.front().getTerminator()->getOperands());
  return success();
}

static LogicalResult runWhile(Frame &frame, Operation *op) {
  auto loop = cast<scf::WhileOp>(op);
  assign(frame, loop.getBeforeArguments(), loop.getInits());
  std::optional<LoopScope> scope(std::in_place, frame, op);
  while (true) {
    if (failed(frame.runBlock(*loop.getBeforeBody())))
      return failure();
    scf::ConditionOp condition = loop.getConditionOp();
    if (!frame.scalar(condition.getCondition())) {
      scope.reset();
      assign(frame, loop.getResults(), condition.getArgs());
      return success();
    }
    assign(frame, loop.getAfterArguments(), condition.getArgs());
    if (failed(frame.runBlock(*loop.getAfterBody())))
      return failure();
    assign(frame, loop.getBeforeArguments(), loop.getYieldOp().getOperands());
    scope->step();
  }
}

/// The fast region, then the exact one too where a predicate fails: as the machine, with its stores
/// made twice. The exact one alone where the schedule says so.
static LogicalResult runSpeculate(Frame &frame, Operation *op) {
  auto speculation = cast<tile::SpeculateOp>(op);
  tile::ScheduleAttr schedule = op->getParentOfType<tile::KernelOp>().getScheduleAttr();
  if (!schedule || schedule.getSpeculate() != false) {
    if (failed(frame.runBlock(speculation.getFast().front())))
      return failure();
    tile::YieldIfOp fast = speculation.getFastYield();
    if (llvm::all_of(frame.ints(fast.getCondition()), [](int64_t valid) { return valid != 0; })) {
      assign(frame, speculation.getResults(), fast.getValues());
      return success();
    }
  }
  if (failed(frame.runBlock(speculation.getExact().front())))
    return failure();
  assign(frame, speculation.getResults(), speculation.getExactYield().getValues());
  return success();
}

/// Ends of the parts of `lower` to `upper`: one without a seed, or up to five that `random` draws.
static SmallVector<int64_t> drawPartition(int64_t lower, int64_t upper, bool isWhole,
                                          std::mt19937_64 &random) {
  SmallVector<int64_t> ends;
  for (int i = 0; i < 4 && !isWhole && upper - lower > 1; ++i)
    ends.push_back(lower + 1 + static_cast<int64_t>(random() % (upper - lower - 1)));
  ends.push_back(upper);
  llvm::sort(ends);
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

/// The parts of a random partition, whose states are merged in a random order of neighbours.
static LogicalResult runSplitReduce(Frame &frame, Operation *op) {
  auto reduction = cast<tile::SplitReduceOp>(op);
  uint64_t seed = frame.program.partition;
  std::mt19937_64 random(seed ^ (static_cast<uint64_t>(frame.point) << 32));
  int64_t first = frame.scalar(reduction.getLower());
  int64_t upper = frame.scalar(reduction.getUpper());
  auto getAll = [&](ValueRange values) {
    return llvm::map_to_vector(values, [&](Value value) { return frame.get(value); });
  };
  SmallVector<SmallVector<Datum>> states;
  for (int64_t past : drawPartition(first, upper, seed == 0, random)) {
    frame.set(reduction.getFirst(), Ints{first});
    frame.set(reduction.getPast(), Ints{past});
    if (failed(frame.runBlock(reduction.getBody().front())))
      return failure();
    states.push_back(getAll(reduction.getBodyYield().getValues()));
    first = past;
  }
  while (states.size() > 1) {
    size_t left = random() % (states.size() - 1);
    SmallVector<Datum> both = states[left];
    llvm::append_range(both, states[left + 1]);
    for (auto [argument, datum] : llvm::zip_equal(reduction.getMerge().getArguments(), both))
      frame.set(argument, std::move(datum));
    if (failed(frame.runBlock(reduction.getMerge().front())))
      return failure();
    states[left] = getAll(reduction.getMergeYield().getValues());
    states.erase(states.begin() + left + 1);
  }
  for (auto [result, datum] : llvm::zip_equal(reduction.getResults(), states.front()))
    frame.set(result, std::move(datum));
  return success();
}

static LogicalResult runClusterRank(Frame &frame, Operation *op) {
  frame.set(op->getResult(0), Ints{frame.block});
  return success();
}

static LogicalResult runFromBlock(Frame &frame, Operation *op) {
  auto from = cast<tile::FromBlockOp>(op);
  int64_t distance = from.getDistance();
  Datum own = frame.get(from.getSource());
  (*frame.sent)[frame.block][op] = own;
  bool receives = (frame.block + 1) % (2 * distance) == 0;
  frame.set(from.getResult(), receives ? (*frame.sent)[frame.block - distance].lookup(op) : own);
  return success();
}

/// The mask of each iteration, and the first and the last that has a true element.
static LogicalResult runVisits(Frame &frame, Operation *op) {
  auto visits = cast<tile::VisitsOp>(op);
  int64_t lower = frame.scalar(visits.getLower()), upper = frame.scalar(visits.getUpper());
  int64_t first = lower, past = lower;
  LoopScope scope(frame, op);
  for (int64_t j = lower; j < upper; ++j) {
    frame.set(visits.getInductionVar(), Ints{j});
    if (failed(frame.runBlock(visits.getBody().front())))
      return failure();
    if (llvm::none_of(frame.ints(visits.getMask()), [](int64_t seen) { return seen != 0; }))
      continue;
    if (past == lower)
      first = j;
    past = j + 1;
  }
  frame.set(visits.getFirst(), Ints{first});
  frame.set(visits.getPast(), Ints{past});
  return success();
}

static LogicalResult runReduceRange(Frame &frame, Operation *op) {
  auto reduce = cast<tile::ReduceRangeOp>(op);
  bool isLeast = reduce.getKind() == tile::ReduceKind::min;
  int64_t count = reduce.getCount(), bound = 0;
  for (int64_t i = 0; i < count; ++i) {
    frame.set(reduce.getNumber(), Ints{i});
    if (failed(frame.runBlock(reduce.getBody().front())))
      return failure();
    int64_t value = frame.scalar(reduce.getYielded());
    bound = i == 0 ? value : isLeast ? std::min(bound, value) : std::max(bound, value);
  }
  frame.set(reduce.getResult(), Ints{bound});
  return success();
}

void interp::addControlHandlers(HandlerTable &table) {
  table.add<scf::ForOp>(runFor);
  table.add<scf::IfOp>(runIf);
  table.add<scf::WhileOp>(runWhile);
  table.add<tile::SpeculateOp>(runSpeculate);
  table.add<tile::SplitReduceOp>(runSplitReduce);
  table.add<tile::ClusterRankOp>(runClusterRank);
  table.add<tile::FromBlockOp>(runFromBlock);
  table.add<tile::VisitsOp>(runVisits);
  table.add<tile::ReduceRangeOp>(runReduceRange);
}
