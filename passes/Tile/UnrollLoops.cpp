//===- UnrollLoops.cpp - Tiles that change registers by turns ------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/Tile/TilePasses.h"

namespace tessera {
#define GEN_PASS_DEF_TILEUNROLLLOOPS
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// True when the tile that takes the place of `argument` in the next iteration lives beside it, and
/// must move to its registers: the body still reads `argument` after it has made that tile, or that
/// tile is what another argument holds.
static bool changesPlaces(scf::ForOp loop, BlockArgument argument) {
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  if (!type || type.getRank() != 2)
    return false;
  Value next = loop.getTiedLoopYieldedValue(argument)->get();
  if (llvm::is_contained(loop.getRegionIterArgs(), next))
    return next != argument;
  Operation *made = next.getDefiningOp();
  if (!made || made->getBlock() != loop.getBody())
    return false;
  return llvm::any_of(argument.getUsers(), [&](Operation *user) {
    Operation *reader = loop.getBody()->findAncestorOpInBlock(*user);
    return made->isBeforeInBlock(reader) && !reader->hasTrait<OpTrait::IsTerminator>();
  });
}

/// Adds the body of `loop` for one iteration; what it yields.
static SmallVector<Value> cloneIteration(scf::ForOp loop, OpBuilder &builder, Value induction,
                                         ValueRange arguments) {
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), induction);
  mapping.map(loop.getRegionIterArgs(), arguments);
  for (Operation &op : loop.getBody()->without_terminator())
    builder.clone(op, mapping);
  return llvm::map_to_vector(loop.getYieldedValues(),
                             [&](Value value) { return mapping.lookupOrDefault(value); });
}

/// Replaces `loop` by one of two iterations a step and what is left over.
static void unrollByTwo(scf::ForOp loop) {
  ImplicitLocOpBuilder builder(loop.getLoc(), loop);
  Type type = loop.getInductionVar().getType();
  auto constant = [&](int64_t value) {
    return arith::ConstantOp::create(builder, builder.getIntegerAttr(type, value)).getResult();
  };
  Value lower = loop.getLowerBound(), upper = loop.getUpperBound(), step = loop.getStep();
  Value distance = arith::SubIOp::create(builder, upper, lower);
  Value some = arith::MaxSIOp::create(builder, distance, constant(0));
  Value pairs =
      arith::DivSIOp::create(builder, arith::CeilDivSIOp::create(builder, some, step), constant(2));
  Value two = arith::MulIOp::create(builder, step, constant(2));
  Value middle = arith::AddIOp::create(builder, lower, arith::MulIOp::create(builder, pairs, two));
  auto unrolled = scf::ForOp::create(
      builder, lower, middle, two, loop.getInitArgs(),
      [&](OpBuilder &inner, Location loc, Value induction, ValueRange arguments) {
        SmallVector<Value> first = cloneIteration(loop, inner, induction, arguments);
        Value next = arith::AddIOp::create(inner, loc, induction, step);
        scf::YieldOp::create(inner, loc, cloneIteration(loop, inner, next, first));
      });
  unrolled->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  Value isOdd = arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, middle, upper);
  auto rest = scf::IfOp::create(
      builder, isOdd,
      [&](OpBuilder &inner, Location loc) {
        scf::YieldOp::create(inner, loc,
                             cloneIteration(loop, inner, middle, unrolled.getResults()));
      },
      [&](OpBuilder &inner, Location loc) {
        scf::YieldOp::create(inner, loc, unrolled.getResults());
      });
  loop.replaceAllUsesWith(rest.getResults());
  loop.erase();
}

namespace {
class TileUnrollLoopsPass : public tessera::impl::TileUnrollLoopsBase<TileUnrollLoopsPass> {
public:
  using Base::Base;

  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) {
      if (llvm::any_of(loop.getRegionIterArgs(),
                       [&](BlockArgument argument) { return changesPlaces(loop, argument); }))
        loops.push_back(loop);
    });
    for (scf::ForOp loop : loops) {
      if (loop.getUnsignedCmp() ||
          TileDialect::BoundaryAttrHelper(&getContext()).isAttrPresent(loop))
        continue;
      loop.emitRemark("loop unrolled: two of its tiles change registers by turns");
      unrollByTwo(loop);
    }
  }
};
} // namespace
