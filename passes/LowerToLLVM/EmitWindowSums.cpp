//===- EmitWindowSums.cpp - Additions by what a warp has for one place ----===//
//
// What elements of a tile add to places that are functions of the distance of query and key, as
// learned buckets of distances: the lanes of a warp have many elements for few places. They add up
// by windows of the index (EmitWindows.cpp), and neighbours with one place before memory does.
//
//===----------------------------------------------------------------------===//

#include "passes/LowerToLLVM/GlobalAccess.h"

using namespace mlir;
using namespace tessera;

namespace {
/// Lanes whose places are one apart, by bits of their numbers.
struct UnitSteps {
  int64_t first = 1, count = 1; ///< the lane one step from lane 0, and how many there are
  int64_t sign = 1;
  SmallVector<int64_t> others; ///< the lanes in which these bits are 0
};
} // namespace

/// None where no lane is one step from the first.
static std::optional<UnitSteps> findUnitSteps(ArrayRef<int64_t> lanes) {
  UnitSteps steps;
  int64_t size = lanes.size();
  auto stepOf = [&](int64_t lane) { return lanes[lane] - lanes.front(); };
  while (steps.first < size && std::abs(stepOf(steps.first)) != 1)
    steps.first *= 2;
  if (steps.first == size)
    return std::nullopt;
  steps.sign = stepOf(steps.first);
  auto getNext = [&] { return steps.first * steps.count; };
  while (getNext() < size && stepOf(getNext()) == steps.sign * steps.count)
    steps.count *= 2;
  for (int64_t lane = 0; lane < size; ++lane)
    if (lane / steps.first % steps.count == 0)
      steps.others.push_back(lane);
  return steps;
}

/// The windows of the index that says where elements are added; none where they are added one by
/// one.
std::optional<Emitter::Windows> Emitter::findWindowsOfSum(tile::ScatterAddOp op) {
  Value place = findPlace(op);
  std::optional<Windows> windows = place ? findWindows(indexOfPlaces(place)) : std::nullopt;
  return windows && findUnitSteps(windows->tile.lanes) ? windows : std::nullopt;
}

/// The sums of what the lanes of a warp have of each element of the windows, each in the lane whose
/// own element that is.
Emitter::Values Emitter::sumByWindows(const Windows &windows, ArrayRef<Value> values) {
  std::map<int64_t, Value> ofOffsets, sums;
  auto addTo = [&](Value &sum, Value value) {
    sum = sum ? combine(tile::ReduceKind::sum, sum, value) : value;
  };
  for (auto [offset, value] : llvm::zip_equal(windows.tile.offsets, values))
    addTo(ofOffsets[offset], value);
  ArrayRef<int64_t> lanes = windows.tile.lanes;
  const UnitSteps steps = *findUnitSteps(lanes);
  int64_t least = *llvm::min_element(lanes);
  for (auto [offset, value] : ofOffsets)
    for (int64_t other : steps.others) {
      // Of the lanes that are whole steps from `other` the one whose element is this lane's own.
      int64_t start = windows.of.at(offset);
      Value place = i32(lanes[other] - least + offset - start), lane = thread.lane;
      if (steps.sign < 0)
        std::swap(place, lane);
      Value step = LLVM::SubOp::create(builder, loc, lane, place);
      Value has =
          LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ult, step, i32(steps.count));
      Value part = shuffle("idx", value, add(mul(step, steps.first), other));
      addTo(sums[start], LLVM::SelectOp::create(builder, loc, has, part, f32(0.0)));
    }
  return llvm::map_to_vector<0>(windows.starts, [&](int64_t start) { return sums[start]; });
}

/// Adds the sum of each lane to memory. Neighbours that have one place add up first.
void Emitter::addByLanes(Value address, Value sum, Value inside) {
  auto compare = [&](LLVM::ICmpPredicate predicate, Value a, Value b) -> Value {
    return LLVM::ICmpOp::create(builder, loc, predicate, a, b);
  };
  Type i32Type = builder.getI32Type(), i64Type = builder.getI64Type();
  Value own = LLVM::PtrToIntOp::create(builder, loc, i64Type, address);
  Value high = LLVM::LShrOp::create(builder, loc, own, i64(32));
  // A run begins where the lane before has another place.
  Value begins = isFirstLane();
  for (Value half : {own, high}) {
    half = LLVM::TruncOp::create(builder, loc, i32Type, half);
    Value before = shuffle("idx", half, add(thread.lane, -1));
    begins =
        LLVM::OrOp::create(builder, loc, begins, compare(LLVM::ICmpPredicate::ne, half, before));
  }
  Value heads = intrinsic("llvm.nvvm.vote.ballot.sync", i32Type, {i32(-1), begins});
  Value behind = LLVM::AndOp::create(builder, loc, heads,
                                     LLVM::ShlOp::create(builder, loc, i32(-2), thread.lane));
  Value end =
      LLVM::CountTrailingZerosOp::create(builder, loc, i32Type, behind, /*isZeroPoison=*/false);
  Value left = LLVM::SubOp::create(builder, loc, end, thread.lane);
  for (int64_t distance = 1; distance < hopper::warpThreads; distance *= 2) {
    Value next = shuffle("idx", sum, add(thread.lane, distance));
    Value has = compare(LLVM::ICmpPredicate::ugt, left, i32(distance));
    sum = combine(tile::ReduceKind::sum, sum,
                  LLVM::SelectOp::create(builder, loc, has, next, f32(0.0)));
  }
  addToMemory(address, sum, LLVM::AndOp::create(builder, loc, begins, inside));
}

/// Adds elements to what a warp has open where they all have one place, and else by `addWindows`.
/// `numbers` say where, by windows.
void Emitter::addToOpenOfWarp(const ElementPlaces &places, ArrayRef<Value> numbers,
                              ArrayRef<Value> values, llvm::function_ref<void()> addWindows) {
  OpenSum open = openSum(/*ofWarp=*/true);
  Type i1Type = builder.getI1Type(), i64Type = builder.getI64Type();
  auto isEqual = [&](Value a, Value b) -> Value {
    return LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, a, b);
  };
  Value number = shuffle("idx", numbers.front(), i32(0));
  auto [address, inside] = placeOf(places, [&, number = number](size_t) { return number; });
  Value isOne = inside;
  for (Value other : numbers)
    isOne = LLVM::AndOp::create(builder, loc, isOne, isEqual(other, number));
  isOne = intrinsic("llvm.nvvm.vote.all.sync", i1Type, {i32(-1), isOne});
  Value own = LLVM::PtrToIntOp::create(builder, loc, i64Type, address);
  Value before = LLVM::LoadOp::create(builder, loc, i64Type, open.address);
  auto invert = [&](Value flag) -> Value {
    Value yes = LLVM::ConstantOp::create(builder, loc, i1Type, builder.getBoolAttr(true));
    return LLVM::XOrOp::create(builder, loc, flag, yes);
  };
  Value changes = invert(LLVM::AndOp::create(builder, loc, isOne, isEqual(own, before)));
  Block *opened = enterIf(changes);
  closeSum(open);
  LLVM::StoreOp::create(builder, loc, LLVM::SelectOp::create(builder, loc, isOne, own, i64(0)),
                        open.address);
  LLVM::StoreOp::create(builder, loc, f32(0.0), open.sum);
  Block *added = enterIf(invert(isOne));
  addWindows();
  for (Block *next : {added, opened}) {
    LLVM::BrOp::create(builder, loc, next);
    builder.setInsertionPointToStart(next);
  }
  Value sum = LLVM::LoadOp::create(builder, loc, builder.getF32Type(), open.sum);
  Value total = values.front();
  for (Value value : values.drop_front())
    total = combine(tile::ReduceKind::sum, total, value);
  total = LLVM::SelectOp::create(builder, loc, isOne, total, f32(0.0));
  LLVM::StoreOp::create(builder, loc, combine(tile::ReduceKind::sum, sum, total), open.sum);
}

/// Adds elements whose places are functions of an index by windows of it, so that a warp adds what
/// it has for one place at once. False where there are no windows.
bool Emitter::scatterByWindows(tile::ScatterAddOp op, const ElementPlaces &places) {
  std::optional<Windows> windows = findWindowsOfSum(op);
  if (!windows || !placeLanes(*windows))
    return false;
  Values numbers = computeByWindows(*windows, findPlace(op));
  if (numbers.empty())
    return false;
  for (Value &number : numbers)
    if (number.getType().isInteger(64))
      number = LLVM::TruncOp::create(builder, loc, builder.getI32Type(), clampTo32Bits(number));
  const Values values = elements(op.getValue());
  auto addWindows = [&] {
    for (auto [number, sum] : llvm::zip_equal(numbers, sumByWindows(*windows, values))) {
      auto [address, inside] = placeOf(places, [&, number = number](size_t) { return number; });
      addByLanes(address, sum, inside);
    }
  };
  InFlightDiagnostic remark = op.emitRemark("places are functions of an index: of ");
  remark << values.size() << " elements that a thread has a lane adds " << numbers.size()
         << " sums";
  if (!mayRepeat(op))
    return addWindows(), true;
  remark << ", and one place that a whole warp has gets its sum where the place changes";
  addToOpenOfWarp(places, numbers, values, addWindows);
  return true;
}
