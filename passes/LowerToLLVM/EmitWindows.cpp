//===- EmitWindows.cpp - Elements that the lanes of a warp hand on --------===//
//
// What depends on a number plus or less those of row and column, as biases and functions of the
// distance of query and key: the lanes of a warp want few different ones, which lie one behind the
// other. Each lane loads or computes that of one of 32 neighbours, a window, and shuffles hand them
// to the lanes that want them.
//
//===----------------------------------------------------------------------===//

#include "mlir/Interfaces/LoopLikeInterface.h"
#include "passes/Analysis/IndexFunctions.h"
#include "passes/LowerToLLVM/GlobalAccess.h"

using namespace mlir;
using namespace tessera;

/// The one index that differs between elements; null where there are several.
static Value findIndex(tile::GatherElementsOp op) {
  Value found;
  for (Value index : op.getIndices())
    if (isa<RankedTensorType>(index.getType())) {
      if (found)
        return {};
      found = index;
    }
  return found;
}

/// `lanes`, the number of each lane, as a sum of the bits of the lane times a constant each; null
/// where it is none.
Value Emitter::laneSum(ArrayRef<int64_t> lanes) {
  int64_t bits = llvm::Log2_64(lanes.size());
  auto stepOf = [&](int64_t bit) { return lanes[size_t(1) << bit] - lanes.front(); };
  for (auto [lane, number] : llvm::enumerate(lanes)) {
    int64_t sum = lanes.front();
    for (int64_t bit = 0; bit < bits; ++bit)
      sum += (lane >> bit & 1) * stepOf(bit);
    if (sum != number)
      return {};
  }
  Value sum = i32(lanes.front());
  for (int64_t first = 0, past; first < bits; first = past) {
    // Bits of which each counts twice the one before are one number.
    for (past = first + 1; past < bits && stepOf(past) == 2 * stepOf(past - 1);)
      ++past;
    Value digit = LLVM::LShrOp::create(builder, loc, thread.lane, i32(first));
    digit = LLVM::AndOp::create(builder, loc, digit, i32((1 << (past - first)) - 1));
    sum = add(sum, mul(digit, stepOf(first)));
  }
  return sum;
}

/// The first offsets of windows that hold all of `offsets`, by offset: those of a window are less
/// than `width` apart.
static std::map<int64_t, int64_t> divide(ArrayRef<int64_t> offsets, int64_t width) {
  std::map<int64_t, int64_t> windows;
  for (int64_t offset : offsets)
    windows[offset] = 0;
  std::optional<int64_t> start;
  for (auto &[offset, window] : windows) {
    if (!start || offset - *start >= width)
      start = offset;
    window = *start;
  }
  return windows;
}

/// The windows that hold what the threads of a warp want of an index tile; none where its lanes are
/// too far apart, or not known.
std::optional<Emitter::Windows> Emitter::findWindows(Value index) {
  auto found = affineTiles.find(index);
  if (found == affineTiles.end() || found->second.lanes.empty() ||
      !found->second.base.getType().isInteger(32))
    return std::nullopt;
  Windows windows;
  windows.tile = found->second;
  auto [least, most] = std::minmax_element(windows.tile.lanes.begin(), windows.tile.lanes.end());
  int64_t width = hopper::warpThreads - (*most - *least);
  if (width < 1)
    return std::nullopt;
  windows.of = divide(windows.tile.offsets, width);
  for (auto [offset, start] : windows.of)
    if (!llvm::is_contained(windows.starts, start))
      windows.starts.push_back(start);
  return windows;
}

/// Sets which lanes hand on what; false where a lane's place is no sum of the bits of its number.
bool Emitter::placeLanes(Windows &windows) {
  ArrayRef<int64_t> lanes = windows.tile.lanes;
  int64_t least = *llvm::min_element(lanes);
  windows.behind =
      laneSum(llvm::map_to_vector(lanes, [&](int64_t place) { return place - least; }));
  if (!windows.behind)
    return false;
  windows.ahead = LLVM::SubOp::create(builder, loc, thread.lane, windows.behind);
  return true;
}

/// The elements of a thread, of what each lane has of the windows, in the order of their starts.
Emitter::Values Emitter::handOn(const Windows &windows, ArrayRef<Value> values,
                                llvm::function_ref<Value(Value)> convert) {
  std::map<int64_t, Value> taken;
  for (auto [offset, start] : windows.of) {
    Value held = values[llvm::find(windows.starts, start) - windows.starts.begin()];
    Value lane = windows.lanes.lookup(offset - start);
    taken[offset] =
        convert(shuffle("idx", held, lane ? lane : add(windows.behind, offset - start)));
  }
  return llvm::map_to_vector<0>(windows.tile.offsets,
                                [&](int64_t offset) { return taken[offset]; });
}

/// The elements of a thread, or nothing where loading each by itself takes as few instructions.
std::optional<Emitter::Values> Emitter::emitWindows(tile::GatherElementsOp op,
                                                    const ElementPlaces &places) {
  auto view = cast<tile::ViewType>(op.getView().getType());
  // A shuffle moves 32 bits.
  if (view.getElementBytes() > 4)
    return std::nullopt;
  std::optional<Windows> windows = findWindows(findIndex(op));
  // A load takes an address and a test of it beside.
  constexpr size_t instructionsOfLoad = 4;
  if (!windows || windows->of.size() + instructionsOfLoad * windows->starts.size() >=
                      instructionsOfLoad * windows->of.size())
    return std::nullopt;
  if (!placeLanes(*windows))
    return std::nullopt;

  ElementMove move(builder, view.getElementBytes());
  Type i32Type = builder.getI32Type(), element = lowered(view.getElementType());
  Value place = add(windows->tile.base, windows->ahead);
  Values loads;
  for (int64_t start : windows->starts) {
    auto [address, inside] = placeOf(places, [&](size_t) { return add(place, start); });
    Value loaded = loadGuarded(move.suffix, move.constraint, move.type, address, toI32(inside));
    if (move.registerBits < 32)
      loaded = LLVM::ZExtOp::create(builder, loc, i32Type, loaded);
    loads.push_back(loaded);
  }
  op.emitRemark("elements lie one behind the other: a thread has ")
      << windows->tile.offsets.size() << " of " << windows->of.size() << ", of which it loads "
      << windows->starts.size() << " and gets the others from the lanes of its warp";
  return handOn(*windows, loads, [&](Value bits) { return fromRegister(bits, element); });
}

/// Whether one operation takes the result of `op`, which is no further function of `index`. What is
/// taken twice lanes would have to hold; what they compute for themselves can be computed again.
static bool isTakenOnce(Operation *op, Value index) {
  if (!op->hasOneUse())
    return false;
  Operation *user = *op->user_begin();
  return user->getNumResults() != 1 || findIndexOf(user->getResult(0)) != index;
}

/// The loop around `op` if no other one is in it. Elsewhere `op` runs once for a tile, and what
/// lanes know of each other would take registers through the loop.
static scf::ForOp getInnermostLoop(Operation *op) {
  auto around = op->getParentOfType<LoopLikeOpInterface>();
  auto loop = around ? dyn_cast<scf::ForOp>(around.getOperation()) : scf::ForOp();
  bool hasOther = loop && loop.getBody()
                              ->walk([](LoopLikeOpInterface) { return WalkResult::interrupt(); })
                              .wasInterrupted();
  return hasOther ? scf::ForOp() : loop;
}

/// Sets the lanes of the windows before `loop`, in which they do not change.
bool Emitter::placeLanesBefore(scf::ForOp loop, Windows &windows) {
  OpBuilder::InsertionGuard guard(builder);
  Block *body = scalar(loop.getInductionVar()).getParentBlock();
  builder.setInsertionPoint(body->getPrevNode()->getTerminator());
  if (!placeLanes(windows))
    return false;
  for (auto [offset, start] : windows.of)
    windows.lanes.try_emplace(offset - start, add(windows.behind, offset - start));
  return true;
}

/// Whether shared memory is busy in `loop`, which shuffles pass through too: tiles are staged
/// there, as in gradients.
static bool stagesTiles(scf::ForOp loop) {
  return loop.walk([](hop::StageOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// A function of an index alone, of which a lane computes one element of each window where it is
/// made by special functions. False where it is none, or where that would save little.
bool Emitter::emitOfIndex(Operation *op) {
  Value result = op->getResult(0), index = findIndexOf(result);
  scf::ForOp loop = getInnermostLoop(op);
  if (!index || !loop || !getElementTypeOrSelf(result.getType()).isF32() ||
      !isTakenOnce(op, index) || stagesTiles(loop))
    return false;
  SmallVector<Operation *> operations = operationsOn(index, result);
  std::optional<Windows> windows = findWindows(index);
  // A shuffle takes half as long as a special function.
  constexpr size_t leastShared = 3;
  auto *special = llvm::find_if(operations, isSpecialFunction);
  if (!windows || special == operations.end() ||
      windows->of.size() < leastShared * windows->starts.size())
    return false;
  if (!placeLanesBefore(loop, *windows))
    return false;
  Values computed;
  for (int64_t start : windows->starts) {
    llvm::DenseMap<Value, Value> values;
    values[index] = add(add(windows->tile.base, windows->ahead), start);
    for (Operation *part : operations) {
      Values operands;
      for (Value operand : part->getOperands()) {
        Value known = values.lookup(operand);
        operands.push_back(known ? known : elements(operand).front());
      }
      Value value = emitScalar(part, operands);
      if (!value)
        return false;
      values[part->getResult(0)] = value;
    }
    computed.push_back(values.lookup(result));
  }
  (*special)->emitRemark("depends on an index alone: a thread has ")
      << windows->tile.offsets.size() << " of " << windows->of.size() << ", of which it computes "
      << windows->starts.size() << " and gets the others from the lanes of its warp";
  bind(result, handOn(*windows, computed, [](Value value) { return value; }));
  return true;
}
