//===- RunCopies.cpp - Copies of the runs in which rows come --------------===//

#include "passes/Hop/Barriers/RunCopies.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tessera;
using Predicate = arith::CmpIPredicate;

RunCopies::RunCopies(hop::PipeLoadOp load, int64_t blocks, const RunsInLanes *ahead,
                     RewriterBase &rewriter)
    : load(load), blocks(blocks), search(load, blocks, rewriter), rewriter(rewriter),
      loc(load.getLoc()), count(RunSearch::countRuns(load, blocks)), rows(*load.getRun()) {
  if (count == 1) {
    found.push_back(search.find(search.constant(0)));
  } else if (RunSearch::areFoundInLanes(load, blocks)) {
    load.emitRemark("finds ") << count << " runs at once, each in a lane of the thread's warp";
    takeFromLanes(ahead ? *ahead : search.findInLanes());
  } else {
    load.emitRemark("finds ") << count << " runs one after the other: the thread is one of a "
                              << "warpgroup, whose lanes have other work";
  }
}

/// Has all lanes get the places of all runs, as one lane alone starts the copies. Most tiles have
/// no run that ends early, so that one branch for all leaves copies without branches.
void RunCopies::takeFromLanes(const RunsInLanes &lanes) {
  noneEarly = lanes.noneEarly;
  for (int64_t number = 0; number < count; ++number)
    found.push_back(search.take(lanes, number));
}

void RunCopies::start(Value slot, Value full, Value index) {
  Target target = {slot, full, index};
  auto each = [&] { forEachRun([&](const Run &run) { copyRun(run, target); }); };
  if (!noneEarly)
    return each();
  auto branch = scf::IfOp::create(rewriter, loc, noneEarly, /*withElseRegion=*/true);
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
  auto loop = scf::ForOp::create(rewriter, loc, search.constant(0), search.constant(count),
                                 search.constant(1));
  OpBuilder::InsertionGuard restore(rewriter);
  rewriter.setInsertionPointToStart(loop.getBody());
  copy(found.empty() ? search.find(loop.getInductionVar()) : found.front());
}

/// Starts the copy of so many rows.
void RunCopies::copyRows(const Run &run, int64_t rows, const Target &target) {
  hop::BulkLoadOp::create(rewriter, loc, load.getView(), run.place, /*box=*/nullptr, target.slot,
                          target.full, target.index, blocks > 1 ? rewriter.getUnitAttr() : nullptr,
                          load.getTf32Attr(), run.row, rewriter.getI64IntegerAttr(rows));
}

/// Copies a run as a whole, or row by row where it ends early.
void RunCopies::copyRun(const Run &run, const Target &target) {
  Value isWhole = search.compare(Predicate::sge, run.there, search.constant(rows)),
        isNone = search.compare(Predicate::sle, run.there, search.constant(0));
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
    search.chooseRow(ofView, isThere, rows);
    copyRows(part, rows, target);
  };
  OpBuilder::InsertionGuard restore(rewriter);
  rewriter.setInsertionPointToStart(branch.thenBlock());
  copyPart(rows, isWhole, {});
  rewriter.setInsertionPointToStart(branch.elseBlock());
  auto loop = scf::ForOp::create(rewriter, loc, search.constant(0), search.constant(rows),
                                 search.constant(1));
  rewriter.setInsertionPointToStart(loop.getBody());
  Value row = loop.getInductionVar();
  copyPart(1, search.compare(Predicate::slt, row, run.there), row);
}
