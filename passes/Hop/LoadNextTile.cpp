//===- LoadNextTile.cpp - Scalars of the next tile, under this one's end --===//
//
// Implements hop-load-next-tile. See AheadPasses.td.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Hop/HopPasses.h"
#include "llvm/ADT/SetVector.h"

namespace tessera {
#define GEN_PASS_DEF_LOADNEXTTILE
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

/// What operations of one block compute from values before it.
class Slice {
public:
  /// The operations of `block` that `values` are computed by, in order; nothing where one of them is
  /// more than arithmetic on scalars.
  static std::optional<Slice> get(Block *block, ValueRange values) {
    Slice slice;
    SmallVector<Value> work(values.begin(), values.end());
    while (!work.empty()) {
      Value value = work.pop_back_val();
      Operation *op = value.getDefiningOp();
      if (!op) {
        if (auto argument = cast<BlockArgument>(value); argument.getOwner() == block)
          slice.arguments.insert(argument);
        continue;
      }
      if (op->getBlock() != block || slice.ops.contains(op))
        continue;
      bool isScalar = llvm::none_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>);
      if (!isMemoryEffectFree(op) || !isScalar || op->getNumRegions() != 0)
        return std::nullopt;
      slice.ops.insert(op);
      llvm::append_range(work, op->getOperands());
    }
    slice.order = slice.ops.takeVector();
    llvm::sort(slice.order, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    return slice;
  }

  /// Writes it again, with the block's arguments as `mapping` says.
  void clone(OpBuilder &builder, IRMapping &mapping) const {
    for (Operation *op : order)
      builder.clone(*op, mapping);
  }

  llvm::SetVector<BlockArgument> arguments;

private:
  llvm::SetVector<Operation *> ops;
  SmallVector<Operation *> order;
};

/// A loop over tiles, whose scalars are loaded one tile ahead.
class TileLoop {
public:
  explicit TileLoop(scf::WhileOp loop) : loop(loop), body(loop.getAfterBody()) {}

  void loadAhead(ArrayRef<tile::LoadOp> candidates) {
    SmallVector<std::pair<tile::LoadOp, Slice>> loads;
    for (tile::LoadOp load : candidates)
      if (std::optional<Slice> slice = Slice::get(body, load.getIndices());
          slice && dependsOnTile(*slice))
        loads.emplace_back(load, std::move(*slice));
    if (loads.empty() || !findEnd())
      return;
    llvm::erase_if(loads, [&](auto &pair) { return !isKnownAtEnd(pair.second.arguments); });
    if (loads.empty() || !isKnownAtEnd(condition->arguments))
      return;
    SmallVector<Value> first, next;
    for (auto &[load, slice] : loads) {
      first.push_back(loadFirst(load, slice));
      next.push_back(loadNext(load, slice));
    }
    rebuild(loads, first, next);
  }

private:
  /// Whether the numbers that `slice` takes of the tile are the loop's own, as the next ones have to
  /// be known.
  bool dependsOnTile(const Slice &slice) {
    return !slice.arguments.empty() && llvm::all_of(slice.arguments, [&](BlockArgument argument) {
      return sourceOf(argument).has_value();
    });
  }

  /// The number of the loop's value that `argument` of the body hands on unchanged.
  std::optional<unsigned> sourceOf(BlockArgument argument) {
    auto before = dyn_cast<BlockArgument>(loop.getConditionOp().getArgs()[argument.getArgNumber()]);
    if (!before || before.getOwner() != loop.getBeforeBody())
      return std::nullopt;
    return before.getArgNumber();
  }

  /// Where the next tile is known and the last product of this one is on its way.
  bool findEnd() {
    condition = Slice::get(loop.getBeforeBody(), loop.getConditionOp().getCondition());
    if (!condition)
      return false;
    for (Operation &op : *body)
      if (isa<hop::MmaIssueOp, hop::NextTileOp, hop::PipeGetOp>(op))
        end = &op;
    if (!end)
      end = body->getTerminator()->getPrevNode();
    return end != nullptr;
  }

  /// Whether the next values of `arguments` follow from what is there at the end by arithmetic.
  template <typename Arguments>
  bool isKnownAtEnd(const Arguments &arguments) {
    SmallVector<Value> work;
    for (BlockArgument argument : arguments) {
      bool isOfBody = argument.getOwner() == body;
      work.push_back(loop.getYieldedValues()[isOfBody ? *sourceOf(argument)
                                                      : argument.getArgNumber()]);
    }
    while (!work.empty()) {
      Operation *op = work.pop_back_val().getDefiningOp();
      if (!op || op->getBlock() != body || op == end || op->isBeforeInBlock(end))
        continue;
      if (!isMemoryEffectFree(op) || op->getNumRegions() != 0)
        return false;
      llvm::append_range(work, op->getOperands());
    }
    return true;
  }

  /// Whether there is a tile when the loop's values are those that `valueOf` gives.
  Value isThere(OpBuilder &builder, function_ref<Value(unsigned)> valueOf) {
    IRMapping mapping;
    for (BlockArgument argument : condition->arguments)
      mapping.map(argument, valueOf(argument.getArgNumber()));
    condition->clone(builder, mapping);
    return mapping.lookupOrDefault(loop.getConditionOp().getCondition());
  }

  static Value clone(tile::LoadOp load, const Slice &slice, IRMapping &mapping,
                     OpBuilder &builder) {
    slice.clone(builder, mapping);
    return cast<tile::LoadOp>(builder.clone(*load, mapping)).getResult();
  }

  /// The scalar of the first tile, or 0 where there is none.
  Value loadFirst(tile::LoadOp load, const Slice &slice) {
    OpBuilder builder(loop);
    Location loc = load.getLoc();
    auto valueOf = [&](unsigned i) { return loop.getInits()[i]; };
    auto conditional = scf::IfOp::create(builder, loc, load.getType(), isThere(builder, valueOf),
                                         /*withElse=*/true);
    OpBuilder then = conditional.getThenBodyBuilder(), none = conditional.getElseBodyBuilder();
    IRMapping mapping;
    for (BlockArgument argument : slice.arguments)
      mapping.map(argument, valueOf(*sourceOf(argument)));
    scf::YieldOp::create(then, loc, clone(load, slice, mapping, then));
    Value zero = arith::ConstantOp::create(none, loc, none.getZeroAttr(load.getType()));
    scf::YieldOp::create(none, loc, zero);
    return conditional.getResult(0);
  }

  /// The scalar of the next tile; where there is none, again that of this one: a product would not
  /// stay in flight over a branch.
  Value loadNext(tile::LoadOp load, const Slice &slice) {
    OpBuilder builder = OpBuilder::atBlockBegin(body);
    builder.setInsertionPointAfter(end);
    // What the loop hands on may be computed later.
    SmallVector<Value> handedOn(loop.getYieldedValues());
    auto valueOf = [&](unsigned i) { return earlier(handedOn[i], builder); };
    Value more = isThere(builder, valueOf);
    IRMapping mapping;
    for (BlockArgument argument : slice.arguments)
      mapping.map(argument, arith::SelectOp::create(builder, load.getLoc(), more,
                                                    valueOf(*sourceOf(argument)), argument));
    Value loaded = clone(load, slice, mapping, builder);
    end = loaded.getDefiningOp();
    return loaded;
  }

  /// `value` of the body, computed again where it is computed behind the builder's place.
  Value earlier(Value value, OpBuilder &builder) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != body || op->isBeforeInBlock(&*builder.getInsertionPoint()))
      return value;
    IRMapping mapping;
    for (Value operand : op->getOperands())
      mapping.map(operand, earlier(operand, builder));
    return builder.clone(*op, mapping)->getResult(cast<OpResult>(value).getResultNumber());
  }

  /// Makes a loop that hands on what was loaded too.
  void rebuild(ArrayRef<std::pair<tile::LoadOp, Slice>> loads, ValueRange first, ValueRange next) {
    OpBuilder builder(loop);
    SmallVector<Value> inits(loop.getInits());
    llvm::append_range(inits, first);
    SmallVector<Type> types(loop.getResultTypes());
    llvm::append_range(types, first.getTypes());
    auto made = scf::WhileOp::create(builder, loop.getLoc(), types, inits);
    made.getBefore().takeBody(loop.getBefore());
    made.getAfter().takeBody(loop.getAfter());
    SmallVector<Value> condition(made.getConditionOp().getArgs());
    for (auto [pair, value] : llvm::zip_equal(loads, next)) {
      tile::LoadOp load = pair.first;
      condition.push_back(made.getBeforeBody()->addArgument(load.getType(), load.getLoc()));
      Value own = made.getAfterBody()->addArgument(load.getType(), load.getLoc());
      load.getResult().replaceAllUsesWith(own);
    }
    made.getConditionOp().getArgsMutable().assign(condition);
    Operation *yield = made.getAfterBody()->getTerminator();
    yield->insertOperands(yield->getNumOperands(), next);
    for (auto &[load, slice] : loads)
      load->erase();
    loop.replaceAllUsesWith(made.getResults().take_front(loop.getNumResults()));
    loop.erase();
  }

  scf::WhileOp loop;
  Block *body;
  std::optional<Slice> condition;
  Operation *end = nullptr;
};

struct LoadNextTilePass : tessera::impl::LoadNextTileBase<LoadNextTilePass> {
  void runOnOperation() override {
    DenseSet<Value> stored;
    getOperation().walk([&](tile::StoreOp store) { stored.insert(store.getView()); });
    getOperation().walk([&](hop::BulkStoreOp store) { stored.insert(store.getView()); });
    SmallVector<scf::WhileOp> loops;
    getOperation().walk([&](scf::WhileOp loop) { loops.push_back(loop); });
    for (scf::WhileOp loop : loops) {
      SmallVector<tile::LoadOp> loads;
      for (tile::LoadOp load : loop.getAfterBody()->getOps<tile::LoadOp>())
        if (!isa<RankedTensorType>(load.getType()) && !stored.contains(load.getView()))
          loads.push_back(load);
      TileLoop(loop).loadAhead(loads);
    }
  }
};

} // namespace
