//===- FlattenLoops.cpp - One loop in place of a loop over others ---------===//
//
// A step of hop-schedule-tickets.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Hop/Ordered/Tickets/Tickets.h"

using namespace mlir;
using namespace tessera;

namespace {

/// A loop, and the only one in it.
struct Nest {
  scf::ForOp outer, inner;
};

/// Counts both indices of a nest in one loop.
class Flattener {
public:
  explicit Flattener(Nest nest)
      : outer(nest.outer), inner(nest.inner), builder(outer.getLoc(), outer) {}

  void flatten();

private:
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder, value); }
  template <typename Op>
  Value make(Value a, Value b) {
    return Op::create(builder, a, b);
  }
  Value countSteps(scf::ForOp loop);
  void moveBodies(scf::ForOp loop);
  SmallVector<Value> nextIndices(Value i, Value g);

  scf::ForOp outer, inner;
  ImplicitLocOpBuilder builder;
};

} // namespace

Value Flattener::countSteps(scf::ForOp loop) {
  Value steps = make<arith::SubIOp>(loop.getUpperBound(), loop.getLowerBound());
  return make<arith::MaxSIOp>(steps, constant(0));
}

/// Behind the last inner iteration comes the first one of the next outer iteration.
SmallVector<Value> Flattener::nextIndices(Value i, Value g) {
  Value next = make<arith::AddIOp>(g, inner.getStep());
  Value ends =
      arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, next, inner.getUpperBound());
  Value later = make<arith::AddIOp>(i, outer.getStep());
  return {arith::SelectOp::create(builder, ends, later, i),
          arith::SelectOp::create(builder, ends, inner.getLowerBound(), next)};
}

/// The body of the outer loop, and in the place of the inner one its body.
void Flattener::moveBodies(scf::ForOp loop) {
  Block &body = *loop.getBody();
  ValueRange arguments = loop.getRegionIterArgs();
  Value i = arguments[0], g = arguments[1];
  ValueRange carried = arguments.drop_front(2);
  auto replace = [](ValueRange values, ValueRange others) {
    for (auto [value, other] : llvm::zip_equal(values, others))
      value.replaceAllUsesWith(other);
  };
  replace(outer.getRegionIterArgs(), carried);
  replace(inner.getRegionIterArgs(), carried);
  outer.getInductionVar().replaceAllUsesWith(i);
  inner.getInductionVar().replaceAllUsesWith(g);
  SmallVector<Value> yielded(inner.getYieldedValues());
  inner.getBody()->getTerminator()->erase();
  body.getOperations().splice(body.end(), outer.getBody()->getOperations(),
                              outer.getBody()->begin(), inner->getIterator());
  body.getOperations().splice(body.end(), inner.getBody()->getOperations());
  builder.setInsertionPointToEnd(&body);
  SmallVector<Value> results = nextIndices(i, g);
  results.append(yielded);
  scf::YieldOp::create(builder, results);
}

void Flattener::flatten() {
  Value count = make<arith::MulIOp>(countSteps(outer), countSteps(inner));
  SmallVector<Value> inits = {outer.getLowerBound(), inner.getLowerBound()};
  llvm::append_range(inits, outer.getInitArgs());
  auto loop = scf::ForOp::create(builder, constant(0), count, constant(1), inits);
  if (!loop.getBody()->empty())
    loop.getBody()->getTerminator()->erase();
  moveBodies(loop);
  outer.replaceAllUsesWith(loop.getResults().drop_front(2));
  outer.erase();
}

static bool hasUnitStep(scf::ForOp loop) {
  return matchPattern(loop.getStep(), m_One()) && !loop.getUnsignedCmp();
}

/// The nest of `outer`, if it consists of a loop over the same iterations in each of its own, which
/// hands on what `outer` does, and of arithmetic before it.
static std::optional<Nest> findNest(scf::ForOp outer) {
  auto loops = outer.getBody()->getOps<scf::ForOp>();
  if (!llvm::hasSingleElement(loops))
    return std::nullopt;
  scf::ForOp inner = *loops.begin();
  if (!inner.getBody()->getOps<scf::ForOp>().empty())
    return std::nullopt;
  bool isAlone = inner->getNextNode() == outer.getBody()->getTerminator() &&
                 llvm::all_of(*outer.getBody(), [&](Operation &op) {
                   return &op == inner || op.hasTrait<OpTrait::IsTerminator>() ||
                          (isPure(&op) && op.getNumRegions() == 0);
                 });
  bool isSame =
      llvm::all_of(ValueRange{inner.getLowerBound(), inner.getUpperBound(), inner.getStep()},
                   [&](Value bound) { return outer.isDefinedOutsideOfLoop(bound); });
  bool handsOn = llvm::equal(inner.getInitArgs(), outer.getRegionIterArgs()) &&
                 llvm::equal(outer.getYieldedValues(), inner.getResults());
  bool isIndex =
      outer.getInductionVar().getType().isIndex() && inner.getInductionVar().getType().isIndex();
  if (!isAlone || !isSame || !handsOn || !isIndex || !hasUnitStep(outer) || !hasUnitStep(inner))
    return std::nullopt;
  return Nest{outer, inner};
}

void tessera::flattenLoops(hop::KernelOp kernel) {
  SmallVector<Nest> nests;
  // All roles go through the same steps, and none is to begin and end more often than others.
  WalkResult walk = kernel.walk([&](scf::ForOp outer) -> WalkResult {
    if (outer.getBody()->getOps<scf::ForOp>().empty())
      return WalkResult::advance();
    std::optional<Nest> nest = findNest(outer);
    if (nest)
      nests.push_back(*nest);
    return nest ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (walk.wasInterrupted())
    return;
  for (Nest nest : nests)
    Flattener(nest).flatten();
}
