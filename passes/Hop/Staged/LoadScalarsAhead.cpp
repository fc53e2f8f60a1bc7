//===- LoadScalarsAhead.cpp - Scalars of the next iteration ------------------===//
//
// Implements hop-load-scalars-ahead. See StagingPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/LoadedIndex.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Hop/FutureValues.h"
#include "passes/Hop/HopPasses.h"
#include "passes/Hop/TileRegisters.h"
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

/// A load of the loop that goes on where another one ends, of the elements that follow.
struct Continuation {
  scf::ForOp loop;
  tile::LoadOp load;
};

struct LoadScalarsAheadPass : tessera::impl::LoadScalarsAheadBase<LoadScalarsAheadPass> {
  void runOnOperation() override {
    DenseSet<Value> stored;
    getOperation().walk([&](Operation *op) {
      if (tile::storesToView(op))
        stored.insert(op->getOperand(1));
    });
    getOperation().walk([&](hop::BulkStoreOp store) { stored.insert(store.getView()); });
    getOperation().walk([&](tile::LoadOp load) {
      if (!isa<RankedTensorType>(load.getType()) && !stored.contains(load.getView()) &&
          !load->getBlock()->getOps<hop::MmaOp>().empty())
        loads[load->getBlock()].push_back(load);
    });
    getOperation().walk([&](hop::RoleOp role) {
      if (isTight(role))
        tight.insert(role);
    });
    for (auto &[block, ofBlock] : loads)
      loadAhead(ofBlock, dyn_cast<scf::ForOp>(block->getParentOp()));
    loads.clear(), beginnings.clear(), tight.clear();
  }

private:
  using Indices = SmallVector<Value>;

  /// By the block that holds them, where that multiplies.
  llvm::MapVector<Block *, SmallVector<tile::LoadOp>> loads;
  /// Roles with few registers to spare.
  DenseSet<Operation *> tight;
  /// What loads of a loop begin with that goes on where another ends.
  llvm::DenseMap<tile::LoadOp, Value> beginnings;

  /// Whether what a loop of `role` carries and its widest product leave less than a fifth of a
  /// thread's registers. Elsewhere later loads and handing on cost up to a fifth of the rate
  /// (docs/lab/fp8.md): ptxas has registers for early ones.
  static bool isTight(hop::RoleOp role) {
    std::optional<int64_t> given = role.getRegisters();
    int64_t most = 0;
    role.walk([&](scf::ForOp loop) {
      int64_t product = 0, carried = 0;
      for (hop::MmaOp mma : loop.getBody()->getOps<hop::MmaOp>())
        if (!mma.getAcc())
          product = std::max(product, hop::registersOf(mma.getType()));
      for (Type type : loop.getResultTypes())
        carried += hop::registersOf(type);
      if (product)
        most = std::max(most, carried + product);
    });
    return given && 5 * most > 4 * *given;
  }

  bool isTight(Operation *op) const { return tight.contains(op->getParentOfType<hop::RoleOp>()); }

  /// Has `loop`, if there is one around them, load ahead those of `ofBlock` that change in it.
  void loadAhead(ArrayRef<tile::LoadOp> ofBlock, scf::ForOp loop) {
    SmallVector<std::pair<tile::LoadOp, unsigned>> continued; // and which result it begins with
    for (tile::LoadOp load : ofBlock) {
      if (!loop || !changes(load, loop)) {
        place(load);
        continue;
      }
      std::optional<Continuation> next = findContinuation(load, loop);
      scf::ForOp made = loadAhead(load, loop, next);
      if (next && made != loop)
        continued.emplace_back(next->load, made.getNumResults() - 1);
      loop = made;
    }
    for (auto [load, result] : continued)
      beginnings[load] = loop.getResult(result);
  }

  /// Whether iterations of `loop` load different elements.
  static bool changes(tile::LoadOp load, scf::ForOp loop) {
    return llvm::any_of(load.getIndices(),
                        [&](Value index) { return !loop.isDefinedOutsideOfLoop(index); });
  }

  /// Whether `a` in `one` is to its induction variable what `b` is to that of `other`.
  static bool isAlike(Value a, scf::ForOp one, Value b, scf::ForOp other) {
    if (a == b || a == one.getInductionVar())
      return a == b || b == other.getInductionVar();
    auto x = dyn_cast<OpResult>(a), y = dyn_cast<OpResult>(b);
    return x && y && x.getResultNumber() == y.getResultNumber() && isPure(x.getOwner()) &&
           x.getOwner()->getNumRegions() == 0 &&
           OperationEquivalence::isEquivalentTo(
               x.getOwner(), y.getOwner(),
               [&](Value p, Value q) { return success(isAlike(p, one, q, other)); }, nullptr,
               OperationEquivalence::IgnoreLocations);
  }

  /// The load behind `loop` that loads on where `load` ends, as where `tile-split-loops` cut a
  /// loop.
  std::optional<Continuation> findContinuation(tile::LoadOp load, scf::ForOp loop) {
    // One that goes on itself ends where it began if it does not run.
    if (!isTight(load) || beginnings.contains(load) || !isConstantIntValue(loop.getStep(), 1))
      return std::nullopt;
    for (Operation *op = loop->getNextNode(); op; op = op->getNextNode()) {
      auto next = dyn_cast<scf::ForOp>(op);
      if (!next || next.getLowerBound() != loop.getUpperBound())
        continue;
      if (!isConstantIntValue(next.getStep(), 1) || next.getUnsignedCmp() ||
          loop.getUnsignedCmp() || !DominanceInfo().properlyDominates(next.getUpperBound(), loop))
        return std::nullopt;
      for (tile::LoadOp other : loads.lookup(next.getBody()))
        if (other.getView() == load.getView() &&
            llvm::all_of(llvm::zip_equal(load.getIndices(), other.getIndices()), [&](auto pair) {
              return isAlike(std::get<0>(pair), loop, std::get<1>(pair), next);
            }))
          return Continuation{next, other};
      return std::nullopt;
    }
    return std::nullopt;
  }

  /// Has `loop` hand the element that `load` gives from one iteration to the next, and to `next`.
  /// Returns the loop that takes its place.
  scf::ForOp loadAhead(tile::LoadOp load, scf::ForOp loop, std::optional<Continuation> next) {
    IRRewriter rewriter(loop.getContext());
    OpBuilder before(loop), inside = OpBuilder::atBlockBegin(loop.getBody());
    if (isTight(load))
      inside = underProducts(loop);
    FutureValues first(loop, before, loop.getLowerBound(), loop.getInitArgs());
    FutureValues later(loop, inside, loop.getInductionVar(), loop.getRegionIterArgs());
    Indices begin, now, then;
    for (Value index : load.getIndices()) {
      begin.push_back(first.get(index, 0));
      now.push_back(later.get(index, 0));
      then.push_back(later.get(index, 1));
      if (!begin.back() || !now.back() || !then.back()) {
        load.emitRemark("loads a scalar in the iteration that uses it: its address takes more than "
                        "index arithmetic on the induction variable");
        return loop;
      }
    }
    Value initial = beginnings.lookup(load), end = loop.getUpperBound();
    if (!initial) {
      Value runs = first.isRun(0);
      if (next) {
        end = arith::MaxSIOp::create(before, loop.getLoc(), end, next->loop.getUpperBound());
        runs = beginWithEither(load, *next, runs, begin, before);
      }
      initial = place(loadFirst(load, loop, runs, begin, before).getDefiningOp());
    }
    // The iteration behind the last has no element.
    Value runs = later.isRun(1, end);
    for (auto [there, here] : llvm::zip_equal(then, now))
      there = arith::SelectOp::create(inside, load.getLoc(), runs, there, here);
    Value ahead = loadAt(load, then, inside);
    rewriter.setInsertionPoint(loop);
    auto handsOn = [&](OpBuilder &, Location, ArrayRef<BlockArgument> own) {
      rewriter.replaceOp(load, own.front());
      return SmallVector<Value>{ahead};
    };
    FailureOr<LoopLikeOpInterface> made = loop.replaceWithAdditionalYields(
        rewriter, initial, /*replaceInitOperandUsesInLoop=*/false, handsOn);
    return cast<scf::ForOp>(made->getOperation());
  }

  /// Makes `begin` the indices of the first element of two loops, where the first may not run.
  /// Returns whether one of them does.
  static Value beginWithEither(tile::LoadOp load, Continuation next, Value runs, Indices &begin,
                               OpBuilder &builder) {
    scf::ForOp loop = next.loop;
    FutureValues values(loop, builder, loop.getLowerBound(), loop.getInitArgs());
    for (auto [index, later] : llvm::zip_equal(begin, next.load.getIndices()))
      if (Value other = values.get(later, 0); other != index)
        index = arith::SelectOp::create(builder, load.getLoc(), runs, index, other);
    return arith::OrIOp::create(builder, load.getLoc(), runs, values.isRun(0));
  }

  /// Where the first products of an iteration are on their way, and nothing has waited for them.
  static OpBuilder underProducts(scf::ForOp loop) {
    Block *body = loop.getBody();
    Operation *first = body->getTerminator();
    for (hop::MmaOp product : body->getOps<hop::MmaOp>())
      for (Operation *user : product->getUsers())
        if (Operation *op = body->findAncestorOpInBlock(*user);
            !isa<hop::MmaOp>(op) && op->isBeforeInBlock(first))
          first = op;
    return OpBuilder(first);
  }

  /// Moves `op`, a load or a conditional one, up to where its latency is hidden. Returns its
  /// result.
  Value place(Operation *op) const {
    Block *block = op->getBlock();
    if (isTight(op))
      op = lift(op);
    auto products = op->getBlock()->getOps<hop::MmaOp>();
    // What is needed behind a branch has time to come under the first product before it.
    if (op->getBlock() != block && !products.empty() && (*products.begin())->isBeforeInBlock(op))
      moveBehind(*products.begin(), op, findSlice(op));
    else
      hoist(op);
    return op->getResult(0);
  }

  /// Moves `op`, a load or a conditional one, out of the branches around it: nothing waits for
  /// memory behind a branch then. Not where a branch waits for memory itself, or an index does.
  /// Returns the operation that takes its place.
  static Operation *lift(Operation *op) {
    while (auto around = dyn_cast<scf::IfOp>(op->getParentOp())) {
      if (op->getBlock() != around.thenBlock() || tile::comesFromMemory(around.getCondition()))
        break;
      std::optional<SmallVector<Operation *>> needed = findArithmetic(op);
      if (!needed)
        break;
      for (Operation *def : *needed)
        def->moveBefore(around);
      op = guard(op, around);
    }
    return op;
  }

  /// What `op` needs of its block, in order, if that is arithmetic.
  static std::optional<SmallVector<Operation *>> findArithmetic(Operation *op) {
    llvm::SetVector<Operation *> slice = findSlice(op);
    SmallVector<Operation *> needed(llvm::drop_begin(slice));
    llvm::sort(needed, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    if (!llvm::all_of(needed, [](Operation *def) { return isPure(def) && !def->getNumRegions(); }))
      return std::nullopt;
    return needed;
  }

  /// Puts `op` before `around`, where it runs if it did before.
  static Operation *guard(Operation *op, scf::IfOp around) {
    OpBuilder builder(around);
    Location loc = op->getLoc();
    Value runs = around.getCondition();
    Operation *load = op;
    if (auto own = dyn_cast<scf::IfOp>(op)) {
      runs = arith::AndIOp::create(builder, loc, runs, own.getCondition());
      load = own.thenYield().getOperand(0).getDefiningOp();
    }
    auto guarded = loadIf(runs, cast<tile::LoadOp>(load), builder);
    op->replaceAllUsesWith(guarded);
    op->erase();
    return guarded;
  }

  /// What `load` gives where `runs`, else 0.
  static scf::IfOp loadIf(Value runs, tile::LoadOp load, OpBuilder &builder) {
    Location loc = load.getLoc();
    auto conditional = scf::IfOp::create(builder, loc, load.getType(), runs, /*withElse=*/true);
    OpBuilder then = conditional.getThenBodyBuilder(), none = conditional.getElseBodyBuilder();
    scf::YieldOp::create(then, loc, then.clone(*load)->getResults());
    Value zero = arith::ConstantOp::create(none, loc, none.getZeroAttr(load.getType()));
    scf::YieldOp::create(none, loc, zero);
    return conditional;
  }

  /// Moves `op`, with the scalars that it is computed from, up to where its operands are: work that
  /// it stands behind hides the latency of its load. Where they are loaded themselves, a load waits
  /// for them, and all behind it: it goes behind a product, which is on its way then. A branch
  /// would wait for the product.
  static void hoist(Operation *op) {
    llvm::SetVector<Operation *> slice = findSlice(op);
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
    addOperands(op, block, needed);
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

  /// `op` and all of its block that leads there.
  static llvm::SetVector<Operation *> findSlice(Operation *op) {
    llvm::SetVector<Operation *> slice;
    slice.insert(op);
    for (size_t i = 0; i < slice.size(); ++i)
      addOperands(slice[i], op->getBlock(), slice);
    return slice;
  }

  /// Adds what `op` needs of `block`.
  static void addOperands(Operation *op, Block *block, llvm::SetVector<Operation *> &needed) {
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *def = operand.getDefiningOp(); def && def->getBlock() == block)
          needed.insert(def);
    });
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
    scf::IfOp conditional = loadIf(runs, load, builder);
    tile::LoadOp first = *conditional.thenBlock()->getOps<tile::LoadOp>().begin();
    first.getIndicesMutable().assign(indices);
    return conditional.getResult(0);
  }
};

} // namespace
