//===- RunCopies.cpp - Copies of the runs in which rows come --------------===//

#include "passes/Hop/Barriers/RunCopies.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tessera;

RunCopies::RunCopies(hop::PipeLoadOp load, int64_t blocks, RewriterBase &rewriter)
    : load(load), blocks(blocks), rewriter(rewriter), loc(load.getLoc()), first(constant(0)),
      rows(*load.getRun()) {
  count = load.getPipe().getType().getTile().getDimSize(0) / rows / blocks;
  if (blocks > 1) {
    Value rank = hop::ClusterRankOp::create(rewriter, loc, rewriter.getIndexType());
    first = arith::MulIOp::create(rewriter, loc, rank, constant(count));
  }
  if (count == 1)
    found = find(first);
  else if (load->getParentOfType<hop::RoleOp>().isElected())
    findInLanes();
}

Value RunCopies::constant(int64_t value) {
  return arith::ConstantIndexOp::create(rewriter, loc, value);
}

/// The places and the rows of run `number`.
SmallVector<Value> RunCopies::find(Value number) {
  IRMapping mapping;
  Block &body = load.getBodyOfRun();
  mapping.map(body.getArgument(0), number);
  mapping.map(body.getArguments().drop_front(), load.getCaptures());
  for (Operation &op : body.without_terminator())
    rewriter.clone(op, mapping);
  return llvm::map_to_vector(load.getYielded(),
                             [&](Value value) { return mapping.lookupOrDefault(value); });
}

/// Finds a run in each lane, and whether any of all ends early: most steps have no such run, so
/// that one branch for all leaves a loop without branches.
void RunCopies::findInLanes() {
  Type index = rewriter.getIndexType(), i32 = rewriter.getI32Type();
  OpBuilder::InsertionGuard restore(rewriter);
  auto ofLane = [&](Region &region) {
    Block *body = rewriter.createBlock(&region, {}, {index}, {loc});
    return find(arith::AddIOp::create(rewriter, loc, first, body->getArgument(0)));
  };
  SmallVector<Type> types(load.getYielded().size(), VectorType::get({count}, index));
  auto lanes = hop::InLanesOp::create(rewriter, loc, types);
  auto range = tile::ReduceRangeOp::create(rewriter, loc, i32, tile::ReduceKind::max, count);
  hop::YieldOp::create(rewriter, loc, ofLane(lanes.getBody()));
  Value there = ofLane(range.getBody()).back();
  auto compare = [&](arith::CmpIPredicate predicate, int64_t bound) -> Value {
    return arith::CmpIOp::create(rewriter, loc, predicate, there, constant(bound));
  };
  Value some = arith::AndIOp::create(rewriter, loc, compare(arith::CmpIPredicate::sgt, 0),
                                     compare(arith::CmpIPredicate::slt, rows));
  tile::YieldOp::create(rewriter, loc, Value(arith::ExtUIOp::create(rewriter, loc, i32, some)));
  llvm::append_range(found, lanes.getResults());
  endsEarly = range.getResult();
}

void RunCopies::start(Value slot, Value full, Value index) {
  Target target = {slot, full, index};
  auto whole = [&](const Run &run) { copyWhole(run, target); };
  auto any = [&](const Run &run) { copyRun(run, target); };
  if (!endsEarly)
    return forEachRun(any);
  Value zero = arith::ConstantIntOp::create(rewriter, loc, 0, 32);
  Value areWhole = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, endsEarly, zero);
  auto branch = scf::IfOp::create(rewriter, loc, areWhole, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard restore(rewriter);
  rewriter.setInsertionPointToStart(branch.thenBlock());
  forEachRun(whole);
  rewriter.setInsertionPointToStart(branch.elseBlock());
  forEachRun(any);
}

/// Writes a loop over the runs.
void RunCopies::forEachRun(function_ref<void(const Run &)> copy) {
  auto loop = scf::ForOp::create(rewriter, loc, constant(0), constant(count), constant(1));
  OpBuilder::InsertionGuard restore(rewriter);
  rewriter.setInsertionPointToStart(loop.getBody());
  Value lane = loop.getInductionVar();
  Value number = arith::AddIOp::create(rewriter, loc, first, lane);
  SmallVector<Value> places = found;
  if (places.empty())
    places = find(number);
  else if (count > 1)
    for (Value &place : places)
      place = hop::OfLaneOp::create(rewriter, loc, lane.getType(), place, lane);
  Run run = {SmallVector<Value>(load.getIndices()), places.pop_back_val(),
             arith::MulIOp::create(rewriter, loc, number, constant(rows))};
  for (auto [i, place] : llvm::enumerate(places)) {
    Value &own = run.place[load.getFirstNumberedDim() + i];
    own = arith::AddIOp::create(rewriter, loc, own, place);
  }
  copy(run);
}

/// Starts the copy of so many rows, those of the run from `from` on. Where they are not there the
/// copy is from before the view, where it finds 0.
void RunCopies::copyRows(const Run &run, int64_t rows, Value isThere, Value from,
                         const Target &target) {
  SmallVector<Value> place(run.place);
  Value &ofView = place[place.size() - 2];
  ofView = rewriter.createOrFold<arith::AddIOp>(loc, ofView, from);
  ofView = arith::SelectOp::create(rewriter, loc, isThere, ofView, constant(-rows));
  hop::BulkLoadOp::create(rewriter, loc, load.getView(), place, /*box=*/nullptr, target.slot,
                          target.full, target.index, blocks > 1 ? rewriter.getUnitAttr() : nullptr,
                          rewriter.createOrFold<arith::AddIOp>(loc, run.row, from),
                          rewriter.getI64IntegerAttr(rows));
}

/// Copies a run of which all rows are there, or none.
void RunCopies::copyWhole(const Run &run, const Target &target) {
  Value isThere =
      arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::sge, run.there, constant(rows));
  copyRows(run, rows, isThere, constant(0), target);
}

/// Copies a run as a whole, or row by row where it ends early.
void RunCopies::copyRun(const Run &run, const Target &target) {
  auto compare = [&](arith::CmpIPredicate predicate, Value a, Value b) -> Value {
    return arith::CmpIOp::create(rewriter, loc, predicate, a, b);
  };
  Value isWhole = compare(arith::CmpIPredicate::sge, run.there, constant(rows)),
        isNone = compare(arith::CmpIPredicate::sle, run.there, constant(0));
  auto branch =
      scf::IfOp::create(rewriter, loc, arith::OrIOp::create(rewriter, loc, isWhole, isNone),
                        /*withElseRegion=*/true);
  OpBuilder::InsertionGuard restore(rewriter);
  rewriter.setInsertionPointToStart(branch.thenBlock());
  copyWhole(run, target);
  rewriter.setInsertionPointToStart(branch.elseBlock());
  auto loop = scf::ForOp::create(rewriter, loc, constant(0), constant(rows), constant(1));
  rewriter.setInsertionPointToStart(loop.getBody());
  Value row = loop.getInductionVar();
  copyRows(run, 1, compare(arith::CmpIPredicate::slt, row, run.there), row, target);
}
