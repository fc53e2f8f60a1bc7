//===- EmitControl.cpp - Loops and conditionals as blocks -----------------===//

#include "dialects/Hop/Machine.h"
#include "passes/LowerToLLVM/Emitter.h"

using namespace mlir;
using namespace tessera;

/// The element type of a thread's registers for a tile, or the scalar's own.
static Type elementType(Type type, OpBuilder &builder) {
  auto tile = dyn_cast<RankedTensorType>(type);
  if (!tile)
    return type.isIndex() ? builder.getI32Type() : type;
  return hop::isPacked(tile) ? builder.getI32Type() : tile.getElementType();
}

static int64_t elementCount(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  if (!tile)
    return 1;
  return hop::FragmentLayout(tile).size() / hop::elementsPerRegister(tile);
}

SmallVector<Type> Emitter::flatten(TypeRange types) {
  SmallVector<Type> flat;
  for (Type type : types)
    flat.append(elementCount(type), elementType(type, builder));
  return flat;
}

Emitter::Values Emitter::flatValues(ValueRange values) {
  Values flat;
  for (Value value : values)
    llvm::append_range(flat, elements(value));
  return flat;
}

void Emitter::setFlatValues(ValueRange values, ValueRange flat) {
  for (Value value : values) {
    int64_t count = elementCount(value.getType());
    bind(value, Values(flat.take_front(count)));
    flat = flat.drop_front(count);
  }
}

Block *Emitter::splitBlock() {
  Block *current = builder.getInsertionBlock();
  return current->splitBlock(builder.getInsertionPoint());
}

/// Goes on with what only the threads do for which `condition` holds; returns where all go on.
Block *Emitter::enterIf(Value condition) {
  Block *after = splitBlock();
  Block *inner = builder.createBlock(after);
  builder.setInsertionPointToEnd(inner->getPrevNode());
  LLVM::CondBrOp::create(builder, loc, condition, inner, after);
  builder.setInsertionPointToEnd(inner);
  return after;
}

/// Of a loop that copies row by row, as few runs need it: neither LLVM nor ptxas unrolls it, so
/// that the code of all other copies stays together.
static LLVM::LoopAnnotationAttr annotationOf(scf::ForOp loop) {
  auto copiesRow = [](hop::BulkLoadOp copy) {
    return copy.getRows() == 1 ? WalkResult::interrupt() : WalkResult::advance();
  };
  if (!loop.walk(copiesRow).wasInterrupted())
    return {};
  auto isSet = BoolAttr::get(loop.getContext(), true);
  auto unroll =
      LLVM::LoopUnrollAttr::get(loop.getContext(), /*disable=*/isSet, {}, {}, {}, {}, {}, {});
  return LLVM::LoopAnnotationAttr::get(loop.getContext(), {}, {}, {}, unroll, {}, {}, {}, {}, {},
                                       {}, {}, {}, {}, {}, {});
}

/// The loop tests at its end, so that its body is one block with one back edge.
LogicalResult Emitter::emitFor(scf::ForOp loop) {
  Value lower = scalar(loop.getLowerBound()), upper = scalar(loop.getUpperBound()),
        step = scalar(loop.getStep());
  Values inits = flatValues(loop.getInitArgs());
  SmallVector<Type> types = flatten(loop.getResultTypes());
  SmallVector<Location> locations(types.size(), loc);

  Block *after = splitBlock();
  after->addArguments(types, locations);
  Block *body = builder.createBlock(after);
  body->addArgument(lower.getType(), loc);
  body->addArguments(types, locations);

  builder.setInsertionPointToEnd(body->getPrevNode());
  auto predicate = loop.getUnsignedCmp() ? LLVM::ICmpPredicate::ult : LLVM::ICmpPredicate::slt;
  auto less = [&](Value a, Value b) { return LLVM::ICmpOp::create(builder, loc, predicate, a, b); };
  Values entry = {lower};
  llvm::append_range(entry, inits);
  LLVM::CondBrOp::create(builder, loc, less(lower, upper), body, entry, after, inits);

  builder.setInsertionPointToEnd(body);
  bind(loop.getInductionVar(), {body->getArgument(0)});
  setFlatValues(loop.getRegionIterArgs(), body->getArguments().drop_front());
  if (failed(emitBlock(*loop.getBody())))
    return failure();
  loc = loop.getLoc();
  Values yielded = flatValues(loop.getYieldedValues());
  Value next = add(body->getArgument(0), step);
  Values again = {next};
  llvm::append_range(again, yielded);
  auto edge = LLVM::CondBrOp::create(builder, loc, less(next, upper), body, again, after, yielded);
  if (thread.elected)
    edge.setLoopAnnotationAttr(annotationOf(loop));

  builder.setInsertionPointToStart(after);
  setFlatValues(loop.getResults(), after->getArguments());
  return success();
}

LogicalResult Emitter::emitIf(scf::IfOp conditional) {
  Value condition = scalar(conditional.getCondition());
  SmallVector<Type> types = flatten(conditional.getResultTypes());
  SmallVector<Location> locations(types.size(), loc);
  Block *after = splitBlock();
  after->addArguments(types, locations);
  Block *thenBlock = builder.createBlock(after);
  Block *elseBlock = conditional.elseBlock() ? builder.createBlock(after) : nullptr;
  builder.setInsertionPointToEnd(thenBlock->getPrevNode());
  LLVM::CondBrOp::create(builder, loc, condition, thenBlock, elseBlock ? elseBlock : after);

  auto fill = [&](Block *target, Block &source) -> LogicalResult {
    builder.setInsertionPointToEnd(target);
    if (failed(emitBlock(source)))
      return failure();
    loc = conditional.getLoc();
    LLVM::BrOp::create(builder, loc, flatValues(source.getTerminator()->getOperands()), after);
    return success();
  };
  if (failed(fill(thenBlock, *conditional.thenBlock())) ||
      (elseBlock && failed(fill(elseBlock, *conditional.elseBlock()))))
    return failure();
  builder.setInsertionPointToStart(after);
  setFlatValues(conditional.getResults(), after->getArguments());
  return success();
}

LogicalResult Emitter::emitWhile(scf::WhileOp loop) {
  SmallVector<Type> types = flatten(loop.getInits().getTypes()),
                    results = flatten(loop.getResultTypes());
  Block *after = splitBlock();
  after->addArguments(results, SmallVector<Location>(results.size(), loc));
  Block *test = builder.createBlock(after);
  test->addArguments(types, SmallVector<Location>(types.size(), loc));
  Block *body = builder.createBlock(after);
  body->addArguments(results, SmallVector<Location>(results.size(), loc));
  builder.setInsertionPointToEnd(test->getPrevNode());
  LLVM::BrOp::create(builder, loc, flatValues(loop.getInits()), test);

  builder.setInsertionPointToEnd(test);
  setFlatValues(loop.getBeforeArguments(), test->getArguments());
  if (failed(emitBlock(*loop.getBeforeBody())))
    return failure();
  auto condition = cast<scf::ConditionOp>(loop.getBeforeBody()->getTerminator());
  Values passed = flatValues(condition.getArgs());
  LLVM::CondBrOp::create(builder, loc, scalar(condition.getCondition()), body, passed, after,
                         passed);

  builder.setInsertionPointToEnd(body);
  setFlatValues(loop.getAfterArguments(), body->getArguments());
  if (failed(emitBlock(*loop.getAfterBody())))
    return failure();
  LLVM::BrOp::create(builder, loc, flatValues(loop.getAfterBody()->getTerminator()->getOperands()),
                     test);
  builder.setInsertionPointToStart(after);
  setFlatValues(loop.getResults(), after->getArguments());
  return success();
}

/// An earlier operation over the same numbers, behind which nothing may have written.
static tile::ReduceRangeOp findSameRange(tile::ReduceRangeOp op) {
  for (Operation *before = op->getPrevNode(); before; before = before->getPrevNode()) {
    auto other = dyn_cast<tile::ReduceRangeOp>(before);
    if (!other && !isMemoryEffectFree(before))
      return {};
    if (other && other.getCount() == op.getCount() &&
        OperationEquivalence::isRegionEquivalentTo(&other.getBody(), &op.getBody(),
                                                   OperationEquivalence::IgnoreLocations))
      return other;
  }
  return {};
}

/// The integers of every 32nd number, one for each lane to begin with; what lanes have beyond the
/// last one is the last one's. For the least and the largest they are computed once.
FailureOr<Emitter::Values> Emitter::emitRange(tile::ReduceRangeOp op) {
  if (tile::ReduceRangeOp same = findSameRange(op))
    return ranges[op] = ranges.lookup(same);
  int64_t count = op.getCount();
  Values values;
  for (int64_t first = 0; first < count; first += hopper::warpThreads) {
    Value number = add(thread.lane, first);
    if (first + hopper::warpThreads > count)
      number = LLVM::SMinOp::create(builder, loc, number, i32(count - 1));
    bind(op.getNumber(), {number});
    if (failed(emitBlock(op.getBody().front())))
      return failure();
    loc = op.getLoc();
    values.push_back(scalar(op.getYielded()));
  }
  return ranges[op] = std::move(values);
}

LogicalResult Emitter::emitReduceRange(tile::ReduceRangeOp op) {
  bool isLeast = op.getKind() == tile::ReduceKind::min;
  auto choose = [&](Value a, Value b) -> Value {
    if (isLeast)
      return LLVM::SMinOp::create(builder, loc, a, b);
    return LLVM::SMaxOp::create(builder, loc, a, b);
  };
  FailureOr<Values> values = emitRange(op);
  if (failed(values))
    return failure();
  Value bound = values->front();
  for (Value value : ArrayRef<Value>(*values).drop_front())
    bound = choose(bound, value);
  if (bound.getType().isInteger(32)) {
    // In one instruction, whose result ptxas knows to be the same in all lanes: what follows from
    // it, as counters and addresses of slots, stays in uniform registers.
    bind(op, {intrinsic(isLeast ? "llvm.nvvm.redux.sync.min" : "llvm.nvvm.redux.sync.max",
                        bound.getType(), {bound, i32(-1)})});
    return success();
  }
  for (int64_t distance = 1; distance < hopper::warpThreads; distance *= 2)
    bound = choose(bound, ofLane("bfly", bound, distance));
  // Each lane has it; ptxas knows that they have the same of a shuffle from one lane alone.
  bind(op, {ofLane("idx", bound, 0)});
  return success();
}

/// The integer of 64 bits that another lane has, by a `mode` of shuffles.
Value Emitter::ofLane(StringRef mode, Value value, int64_t lane) {
  Value low = LLVM::TruncOp::create(builder, loc, builder.getI32Type(), value);
  Value high = LLVM::TruncOp::create(builder, loc, builder.getI32Type(),
                                     LLVM::LShrOp::create(builder, loc, value, i64(32)));
  auto other = [&](Value half) -> Value {
    return LLVM::ZExtOp::create(builder, loc, builder.getI64Type(), shuffle(mode, half, i32(lane)));
  };
  Value there = LLVM::ShlOp::create(builder, loc, other(high), i64(32));
  return LLVM::OrOp::create(builder, loc, there, other(low));
}

/// Each lane has what is computed for its number; those beyond the last number have the last one's.
LogicalResult Emitter::emitInLanes(hop::InLanesOp op) {
  Block &body = op.getBody().front();
  bind(body.getArgument(0),
       {LLVM::UMinOp::create(builder, loc, thread.lane, i32(op.getCount() - 1))});
  if (failed(emitBlock(body)))
    return failure();
  for (auto [result, place] : llvm::zip_equal(op.getResults(), op.getYielded()))
    bind(result, {scalar(place)});
  return success();
}

/// The lane goes its own way: nothing in there is for one of several.
LogicalResult Emitter::emitOneLane(hop::OneLaneOp op) {
  Block *after = enterIf(thread.elected);
  Value chosen = std::exchange(thread.chosen, {});
  if (failed(emitBlock(op.getBody().front())))
    return failure();
  thread.chosen = chosen;
  LLVM::BrOp::create(builder, loc, after);
  builder.setInsertionPointToStart(after);
  return success();
}
