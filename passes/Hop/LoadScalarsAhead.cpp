//===- LoadScalarsAhead.cpp - Scalars of the next iteration ------------------===//
//
// Implements hop-load-scalars-ahead. See AheadPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/LoadedIndex.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Hop/FutureValues.h"
#include "passes/Hop/HopPasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace tessera {
#define GEN_PASS_DEF_LOADSCALARSAHEAD
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

struct LoadScalarsAheadPass : tessera::impl::LoadScalarsAheadBase<LoadScalarsAheadPass> {
  void runOnOperation() override {
    DenseSet<Value> stored;
    getOperation().walk([&](tile::StoreOp store) { stored.insert(store.getView()); });
    getOperation().walk([&](hop::BulkStoreOp store) { stored.insert(store.getView()); });
    // Loads by the block that holds them, where that multiplies.
    llvm::MapVector<Block *, SmallVector<tile::LoadOp>> loads;
    getOperation().walk([&](tile::LoadOp load) {
      if (!isa<RankedTensorType>(load.getType()) && !stored.contains(load.getView()) &&
          !load->getBlock()->getOps<hop::MmaOp>().empty())
        loads[load->getBlock()].push_back(load);
    });
    for (auto &[block, ofBlock] : loads) {
      auto loop = dyn_cast<scf::ForOp>(block->getParentOp());
      for (tile::LoadOp load : ofBlock) {
        if (loop && changes(load, loop))
          loop = loadAhead(load, loop);
        else
          hoist(load);
      }
    }
  }

private:
  using Indices = SmallVector<Value>;

  /// Whether iterations of `loop` load different elements.
  static bool changes(tile::LoadOp load, scf::ForOp loop) {
    return llvm::any_of(load.getIndices(),
                        [&](Value index) { return !loop.isDefinedOutsideOfLoop(index); });
  }

  /// Has `loop` hand the element that `load` gives from one iteration to the next. Returns the loop
  /// that takes its place.
  static scf::ForOp loadAhead(tile::LoadOp load, scf::ForOp loop) {
    IRRewriter rewriter(loop.getContext());
    OpBuilder before(loop), inside = OpBuilder::atBlockBegin(loop.getBody());
    FutureValues first(loop, before, loop.getLowerBound(), loop.getInitArgs());
    FutureValues later(loop, inside, loop.getInductionVar(), loop.getRegionIterArgs());
    Indices begin, now, next;
    for (Value index : load.getIndices()) {
      begin.push_back(first.get(index, 0));
      now.push_back(later.get(index, 0));
      next.push_back(later.get(index, 1));
      if (!begin.back() || !now.back() || !next.back()) {
        load.emitRemark("loads a scalar in the iteration that uses it: its address takes more than "
                        "index arithmetic on the induction variable");
        return loop;
      }
    }
    Value initial = loadFirst(load, loop, first.isRun(0), begin, before);
    hoist(initial.getDefiningOp());
    // The iteration behind the last has no element.
    Value runs = later.isRun(1);
    for (auto [there, here] : llvm::zip_equal(next, now))
      there = arith::SelectOp::create(inside, load.getLoc(), runs, there, here);
    Value ahead = loadAt(load, next, inside);
    rewriter.setInsertionPoint(loop);
    auto handsOn = [&](OpBuilder &, Location, ArrayRef<BlockArgument> own) {
      rewriter.replaceOp(load, own.front());
      return SmallVector<Value>{ahead};
    };
    FailureOr<LoopLikeOpInterface> made = loop.replaceWithAdditionalYields(
        rewriter, initial, /*replaceInitOperandUsesInLoop=*/false, handsOn);
    return cast<scf::ForOp>(made->getOperation());
  }

  /// Moves `op`, with the scalars that it is computed from, up to where its operands are: work that
  /// it stands behind hides the latency of its load. Where they are loaded themselves, a load waits
  /// for them, and all behind it: it goes behind a product, which is on its way then. A branch
  /// would wait for the product.
  static void hoist(Operation *op) {
    Block *block = op->getBlock();
    llvm::SetVector<Operation *> slice;
    slice.insert(op);
    for (size_t i = 0; i < slice.size(); ++i)
      slice[i]->walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          if (Operation *def = operand.getDefiningOp(); def && def->getBlock() == block)
            slice.insert(def);
      });
    Operation *loaded = nullptr;
    for (Operation *def : slice)
      if (def != op && isa<tile::LoadOp>(def) && (!loaded || loaded->isBeforeInBlock(def)))
        loaded = def;
    bool branches = op->getNumRegions() != 0;
    for (Operation *at = loaded; !branches && at && at != op; at = at->getNextNode())
      if (isa<hop::MmaOp>(at))
        return moveBehind(at, op, slice);
    llvm::SmallPtrSet<Operation *, 16> moved;
    hoist(op, moved);
  }

  /// Moves `op` behind `product`, with what it needs of `slice` that stands later.
  static void moveBehind(Operation *product, Operation *op,
                         const llvm::SetVector<Operation *> &slice) {
    SmallVector<Operation *> later = llvm::filter_to_vector(
        slice, [&](Operation *def) { return product->isBeforeInBlock(def); });
    if (!llvm::all_of(later, [&](Operation *def) { return def == op || isMemoryEffectFree(def); }))
      return;
    llvm::sort(later, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    for (Operation *def : llvm::reverse(later))
      def->moveAfter(product);
  }

  static void hoist(Operation *op, llvm::SmallPtrSetImpl<Operation *> &moved) {
    if (!moved.insert(op).second)
      return;
    Block *block = op->getBlock();
    llvm::SetVector<Operation *> needed;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *def = operand.getDefiningOp(); def && def->getBlock() == block)
          needed.insert(def);
    });
    Operation *last = nullptr;
    for (Operation *def : needed) {
      bool isScalar = llvm::none_of(def->getOperandTypes(), llvm::IsaPred<RankedTensorType>);
      if (isPure(def) && isScalar && def->getNumRegions() == 0)
        hoist(def, moved);
    }
    for (Operation *def : needed)
      if (!last || last->isBeforeInBlock(def))
        last = def;
    if (!last)
      op->moveBefore(&block->front());
    else if (last->getNextNode() != op)
      op->moveAfter(last);
  }

  static Value loadAt(tile::LoadOp load, const Indices &indices, OpBuilder &builder) {
    auto copy = cast<tile::LoadOp>(builder.clone(*load));
    copy.getIndicesMutable().assign(indices);
    return copy.getResult();
  }

  /// The element of the first iteration; where there is none any other, or 0. A branch would wait
  /// for a bound that comes from memory, and what stands behind it with it: then the load has an
  /// index that does too, which may be outside.
  static Value loadFirst(tile::LoadOp load, scf::ForOp loop, Value runs, Indices indices,
                         OpBuilder &builder) {
    Location loc = load.getLoc();
    if (tile::comesFromMemory(runs)) {
      Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
      for (auto [index, ofIteration] : llvm::zip_equal(indices, load.getIndices()))
        if (!loop.isDefinedOutsideOfLoop(ofIteration))
          index = arith::SelectOp::create(builder, loc, runs, index, zero);
      return loadAt(load, indices, builder);
    }
    auto conditional = scf::IfOp::create(builder, loc, load.getType(), runs, /*withElse=*/true);
    OpBuilder then = conditional.getThenBodyBuilder(), none = conditional.getElseBodyBuilder();
    scf::YieldOp::create(then, loc, loadAt(load, indices, then));
    Value zero = arith::ConstantOp::create(none, loc, none.getZeroAttr(load.getType()));
    scf::YieldOp::create(none, loc, zero);
    return conditional.getResult(0);
  }
};

} // namespace
