//===- EmitScatter.cpp - Additions of elements to anywhere in memory ------===//

#include "passes/LowerToLLVM/GlobalAccess.h"

using namespace mlir;
using namespace tessera;
using hop::FragmentLayout;

/// Adds a number of f32 to that at `address`, where `inside`, i1.
void Emitter::addToMemory(Value address, Value value, Value inside) {
  assembly("{\n.reg .pred p;\nsetp.ne.b32 p, $2, 0;\n@p " + writeText(/*adds=*/true, 1, 32) +
               " [$0], $1;\n}",
           "l,r,r", {address, toRegister(value, builder.getI32Type()), toI32(inside)}, {});
}

/// The sum of what the lanes of a warp have.
Value Emitter::sumOfWarp(Value value) {
  for (int64_t distance = 1; distance < hopper::warpThreads; distance *= 2)
    value = combine(tile::ReduceKind::sum, value, shuffle("bfly", value, i32(distance)));
  return value;
}

/// i1: this thread is the first of its warp.
Value Emitter::isFirstLane() {
  return LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, thread.lane, i32(0));
}

/// Adds the sum of all elements to one place, once a warp.
void Emitter::addToOnePlace(tile::ScatterAddOp op, const ElementPlaces &places) {
  auto type = cast<RankedTensorType>(op.getValue().getType());
  Value sum;
  for (Value element : elements(op.getValue()))
    sum = sum ? combine(tile::ReduceKind::sum, sum, element) : element;
  if (type.getRank() == 1)
    sum = LLVM::SelectOp::create(builder, loc, isFirstSharer(type), sum, f32(0.0));
  sum = sumOfWarp(sum);
  Value adds = isFirstLane();
  auto [address, inside] = placeOf(places, nullptr);
  addToMemory(address, sum, inside ? Value(LLVM::AndOp::create(builder, loc, adds, inside)) : adds);
}

/// i1: this thread is one of those that have the same elements of a tile of rank 1.
Value Emitter::isFirstSharer(RankedTensorType type) {
  return LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, sharerOf(hop::getLayout(type)),
                              i32(0));
}

/// One addition an element, to wherever its indices say, or one a warp.
void Emitter::emitScatterAdd(tile::ScatterAddOp op) {
  auto type = cast<RankedTensorType>(op.getValue().getType());
  ElementPlaces places = placesOf(op.getView(), op.getIndices());
  if (llvm::all_of(places.ofAll, [](Value index) { return !!index; }))
    return addToOnePlace(op, places);
  if (scatterByWindows(op, places))
    return;
  bool repeats = mayRepeat(op);
  OpenSum open = repeats ? openSum(/*ofWarp=*/false) : OpenSum();
  if (repeats)
    op.emitRemark("sums of a thread go to memory where the place changes");
  // Several threads hold an element of a tile of rank 1: one of them adds it.
  Value isFirst = type.getRank() == 1 ? isFirstSharer(type) : Value();
  const Values values = elements(op.getValue());
  SmallVector<Values> indices = indicesOfElements(op.getIndices());
  for (auto [i, value] : llvm::enumerate(values)) {
    auto [address, inside] = placeOf(places, [&, i = i](size_t dim) { return indices[dim][i]; });
    if (isFirst)
      inside = LLVM::AndOp::create(builder, loc, inside, isFirst);
    if (repeats)
      addToOpen(open, address, value, inside);
    else
      addToMemory(address, value, inside);
  }
}

/// The one index that says where elements of a tile of rank 2 are added; null where there are
/// several.
Value Emitter::findPlace(tile::ScatterAddOp op) {
  auto differs = [](Value index) { return isa<RankedTensorType>(index.getType()); };
  bool isOne = llvm::count_if(op.getIndices(), differs) == 1 &&
               cast<RankedTensorType>(op.getValue().getType()).getRank() == 2;
  return isOne ? *llvm::find_if(op.getIndices(), differs) : Value();
}

/// Whether elements that a thread has one after the other may go to one place: one index says
/// where, and it is more than a sum of those of row and column, as the bucket of a distance.
bool Emitter::mayRepeat(tile::ScatterAddOp op) {
  Value place = findPlace(op);
  return place && !affineTiles.contains(place);
}

/// The sum that a thread has of elements for one place, in registers, or its part of the sum of a
/// warp: it goes to memory when an element for another place comes, and at the end of the role.
Emitter::OpenSum Emitter::openSum(bool ofWarp) {
  // In the entry block, where LLVM makes registers of them.
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&function.getBody().front());
  auto make = [&](Value zero) -> Value {
    auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
    Value slot = LLVM::AllocaOp::create(builder, loc, pointer, zero.getType(), i32(1));
    LLVM::StoreOp::create(builder, loc, zero, slot);
    return slot;
  };
  OpenSum open = {make(i64(0)), make(f32(0.0)), ofWarp};
  openSums.push_back(open);
  return open;
}

/// i1: there is a sum for a place at `address`.
Value Emitter::isOpen(Value address) {
  return LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, address, i64(0));
}

void Emitter::addToOpen(const OpenSum &open, Value address, Value value, Value inside) {
  Type i64Type = builder.getI64Type(), f32Type = builder.getF32Type();
  auto choose = [&](Value condition, Value a, Value b) -> Value {
    return LLVM::SelectOp::create(builder, loc, condition, a, b);
  };
  Value before = LLVM::LoadOp::create(builder, loc, i64Type, open.address),
        sum = LLVM::LoadOp::create(builder, loc, f32Type, open.sum);
  Value own = LLVM::PtrToIntOp::create(builder, loc, i64Type, address);
  // What lies outside of the view adds nothing, wherever that is.
  own = choose(inside, own, before);
  value = choose(inside, value, f32(0.0));
  Value isOther = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, own, before);
  addToMemory(toGlobal(before), sum, LLVM::AndOp::create(builder, loc, isOther, isOpen(before)));
  Value next = choose(isOther, value, combine(tile::ReduceKind::sum, sum, value));
  LLVM::StoreOp::create(builder, loc, own, open.address);
  LLVM::StoreOp::create(builder, loc, next, open.sum);
}

/// The pointer to global memory that an address of 64 bits is.
Value Emitter::toGlobal(Value address) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext(), /*addressSpace=*/1);
  return LLVM::IntToPtrOp::create(builder, loc, pointer, address);
}

/// Adds what is open to memory.
void Emitter::closeSum(const OpenSum &open) {
  Value address = LLVM::LoadOp::create(builder, loc, builder.getI64Type(), open.address);
  Value sum = LLVM::LoadOp::create(builder, loc, builder.getF32Type(), open.sum);
  Value adds = isOpen(address);
  if (open.ofWarp) {
    sum = sumOfWarp(sum);
    adds = LLVM::AndOp::create(builder, loc, adds, isFirstLane());
  }
  addToMemory(toGlobal(address), sum, adds);
}

/// At the end of the role.
void Emitter::closeSums() {
  for (const OpenSum &open : openSums)
    closeSum(open);
  openSums.clear();
}
