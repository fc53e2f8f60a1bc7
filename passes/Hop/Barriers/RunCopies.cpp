//===- RunCopies.cpp - Copies of the runs in which rows come --------------===//

#include "passes/Hop/Barriers/RunCopies.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tessera;
using Predicate = arith::CmpIPredicate;

static int64_t countOf(hop::PipeLoadOp load, int64_t blocks) {
  return load.getPipe().getType().getTile().getDimSize(0) / static_cast<int64_t>(*load.getRun()) /
         blocks;
}

bool RunCopies::areFoundInLanes(hop::PipeLoadOp load, int64_t blocks) {
  return load.getRun() && countOf(load, blocks) > 1 &&
         load->getParentOfType<hop::RoleOp>().isElected();
}

RunCopies::RunCopies(hop::PipeLoadOp load, int64_t blocks, RewriterBase &rewriter)
    : load(load), blocks(blocks), rewriter(rewriter), loc(load.getLoc()), first(constant(0)),
      count(countOf(load, blocks)), rows(*load.getRun()) {
  if (blocks > 1) {
    Value rank = hop::ClusterRankOp::create(rewriter, loc, rewriter.getIndexType());
    first = arith::MulIOp::create(rewriter, loc, rank, constant(count));
  }
  if (count == 1) {
    found.push_back(find(first));
  } else if (areFoundInLanes(load, blocks)) {
    load.emitRemark("finds ") << count << " runs at once, each in a lane of the thread's warp";
    findInLanes();
  } else {
    load.emitRemark("finds ") << count << " runs one after the other: the thread is one of a "
                              << "warpgroup, whose lanes have other work";
  }
}

Value RunCopies::constant(int64_t value) {
  return arith::ConstantIndexOp::create(rewriter, loc, value);
}

Value RunCopies::compare(Predicate predicate, Value a, Value b) {
  return arith::CmpIOp::create(rewriter, loc, predicate, a, b);
}

/// Run `number`.
RunCopies::Run RunCopies::find(Value number) {
  IRMapping mapping;
  Block &body = load.getBodyOfRun();
  mapping.map(body.getArgument(0), number);
  mapping.map(body.getArguments().drop_front(), load.getCaptures());
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

/// Finds a run in each lane, and whether any of all ends early: most steps have no such run, so
/// that one branch for all leaves copies without branches. All lanes get the places of all runs
/// here, as one lane alone starts the copies.
void RunCopies::findInLanes() {
  Type index = rewriter.getIndexType(), i32 = rewriter.getI32Type();
  int64_t dim = load.getFirstNumberedDim(), numbered = load.getYielded().size() - 1;
  hop::InLanesOp lanes;
  tile::ReduceRangeOp range;
  auto inBody = [&](Region &region, function_ref<void(const Run &)> write) {
    OpBuilder::InsertionGuard restore(rewriter);
    Block *body = rewriter.createBlock(&region, {}, {index}, {loc});
    write(find(arith::AddIOp::create(rewriter, loc, first, body->getArgument(0))));
  };
  SmallVector<Type> types(numbered, VectorType::get({count}, index));
  lanes = hop::InLanesOp::create(rewriter, loc, types);
  inBody(lanes.getBody(), [&](Run run) {
    chooseRow(*std::prev(run.place.end(), 2), compare(Predicate::sge, run.there, constant(rows)),
              rows);
    hop::YieldOp::create(rewriter, loc, ArrayRef(run.place).slice(dim, numbered));
  });
  range = tile::ReduceRangeOp::create(rewriter, loc, i32, tile::ReduceKind::max, count);
  inBody(range.getBody(), [&](const Run &run) {
    Value some =
        arith::AndIOp::create(rewriter, loc, compare(Predicate::sgt, run.there, constant(0)),
                              compare(Predicate::slt, run.there, constant(rows)));
    tile::YieldOp::create(rewriter, loc, Value(arith::ExtUIOp::create(rewriter, loc, i32, some)));
  });
  endsEarly = range.getResult();
  for (int64_t lane = 0; lane < count; ++lane) {
    Value number = arith::AddIOp::create(rewriter, loc, first, constant(lane));
    Run run = {SmallVector<Value>(load.getIndices()),
               {},
               arith::MulIOp::create(rewriter, loc, number, constant(rows))};
    for (auto [i, places] : llvm::enumerate(lanes.getResults()))
      run.place[dim + i] = hop::OfLaneOp::create(rewriter, loc, index, places, constant(lane));
    found.push_back(run);
  }
}

void RunCopies::start(Value slot, Value full, Value index) {
  Target target = {slot, full, index};
  auto each = [&] { forEachRun([&](const Run &run) { copyRun(run, target); }); };
  if (!endsEarly)
    return each();
  Value zero = arith::ConstantIntOp::create(rewriter, loc, 0, 32);
  auto branch = scf::IfOp::create(rewriter, loc, compare(Predicate::eq, endsEarly, zero),
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard restore(rewriter);
  rewriter.setInsertionPointToStart(branch.thenBlock());
  for (const Run &run : found)
    copyRows(run, rows, target);
  found.clear();
  rewriter.setInsertionPointToStart(branch.elseBlock());
  each();
}

/// Writes a loop over the runs.
void RunCopies::forEachRun(function_ref<void(const Run &)> copy) {
  auto loop = scf::ForOp::create(rewriter, loc, constant(0), constant(count), constant(1));
  OpBuilder::InsertionGuard restore(rewriter);
  rewriter.setInsertionPointToStart(loop.getBody());
  copy(found.empty() ? find(arith::AddIOp::create(rewriter, loc, first, loop.getInductionVar()))
                     : found.front());
}

/// Where rows are not there, their copy is from before the view, where it finds 0.
void RunCopies::chooseRow(Value &row, Value isThere, int64_t rows) {
  row = arith::SelectOp::create(rewriter, loc, isThere, row, constant(-rows));
}

/// Starts the copy of so many rows.
void RunCopies::copyRows(const Run &run, int64_t rows, const Target &target) {
  hop::BulkLoadOp::create(rewriter, loc, load.getView(), run.place, /*box=*/nullptr, target.slot,
                          target.full, target.index, blocks > 1 ? rewriter.getUnitAttr() : nullptr,
                          run.row, rewriter.getI64IntegerAttr(rows));
}

/// Copies a run as a whole, or row by row where it ends early.
void RunCopies::copyRun(const Run &run, const Target &target) {
  Value isWhole = compare(Predicate::sge, run.there, constant(rows)),
        isNone = compare(Predicate::sle, run.there, constant(0));
  auto branch =
      scf::IfOp::create(rewriter, loc, arith::OrIOp::create(rewriter, loc, isWhole, isNone),
                        /*withElseRegion=*/true);
  auto copyPart = [&](int64_t rows, Value isThere, Value from) {
    Run part = run;
    Value &ofView = *std::prev(part.place.end(), 2);
    if (from) {
      ofView = arith::AddIOp::create(rewriter, loc, ofView, from);
      part.row = arith::AddIOp::create(rewriter, loc, part.row, from);
    }
    chooseRow(ofView, isThere, rows);
    copyRows(part, rows, target);
  };
  OpBuilder::InsertionGuard restore(rewriter);
  rewriter.setInsertionPointToStart(branch.thenBlock());
  copyPart(rows, isWhole, {});
  rewriter.setInsertionPointToStart(branch.elseBlock());
  auto loop = scf::ForOp::create(rewriter, loc, constant(0), constant(rows), constant(1));
  rewriter.setInsertionPointToStart(loop.getBody());
  Value row = loop.getInductionVar();
  copyPart(1, compare(Predicate::slt, row, run.there), row);
}
