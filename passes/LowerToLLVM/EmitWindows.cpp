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
  windows.index = index;
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
    Value own = values[llvm::find(windows.starts, start) - windows.starts.begin()];
    Value lane = windows.lanes.lookup(offset - start);
    taken[offset] = convert(shuffle("idx", own, lane ? lane : add(windows.behind, offset - start)));
  }
  return llvm::map_to_vector<0>(windows.tile.offsets,
                                [&](int64_t offset) { return taken[offset]; });
}

/// The index tile of which all of `indices` that differ between elements are functions; null where
/// there is none.
Value Emitter::indexOfPlaces(ValueRange indices) {
  Value found;
  for (Value tile : indices) {
    if (!isa<RankedTensorType>(tile.getType()))
      continue;
    Value index = findIndexOf(tile, /*loads=*/true);
    if (!index && affineTiles.contains(tile))
      index = tile;
    if (!index || (found && index != found))
      return {};
    found = index;
  }
  return found;
}

/// What each lane computes and loads of the windows of `index` to have `result`, in the order of
/// their starts; nothing where an operation has no instructions.
Emitter::Values Emitter::computeByWindows(const Windows &windows, Value result) {
  const Value index = windows.index;
  if (auto known = held.find(result); known != held.end())
    return known->second;
  Value own = add(windows.tile.base, windows.ahead);
  Values computed;
  for (auto [window, start] : llvm::enumerate(windows.starts)) {
    llvm::DenseMap<Value, Value> values;
    values[index] = add(own, start);
    auto valueOf = [&](Value tile) {
      Value known = values.lookup(tile);
      return known ? known : elements(tile).front();
    };
    for (Operation *part : operationsOn(index, result)) {
      auto gather = dyn_cast<tile::GatherElementsOp>(part);
      auto known = held.find(part->getResult(0));
      Value &value = values[part->getResult(0)];
      if (known != held.end())
        value = known->second[window];
      else if (gather)
        value = loadElement(gather, placesOf(gather.getView(), gather.getIndices()),
                            [&](size_t dim) { return valueOf(gather.getIndices()[dim]); });
      else
        value = emitScalar(part, llvm::map_to_vector(part->getOperands(), valueOf));
      if (!value)
        return {};
    }
    computed.push_back(values.lookup(result));
  }
  return computed;
}

/// The windows of the index that says which elements are loaded; none where loading each by itself
/// takes as few instructions.
std::optional<Emitter::Windows> Emitter::findWindowsOfLoad(tile::GatherElementsOp op) {
  std::optional<Windows> windows = findWindows(indexOfPlaces(op.getIndices()));
  // A load takes an address and a test of it beside.
  constexpr size_t instructionsOfLoad = 4;
  if (!windows || windows->of.size() + instructionsOfLoad * windows->starts.size() >=
                      instructionsOfLoad * windows->of.size())
    return std::nullopt;
  return windows;
}

/// Whether all that takes what `op` loads takes it as a place, and has windows too.
bool Emitter::isOnlyPlace(tile::GatherElementsOp op) {
  Value index = indexOfPlaces(op.getIndices());
  return llvm::all_of(op->getUsers(), [&](Operation *user) {
    if (auto sum = dyn_cast<tile::ScatterAddOp>(user))
      return sum.getValue() != op.getResult() && findWindowsOfSum(sum).has_value();
    auto load = dyn_cast<tile::GatherElementsOp>(user);
    return load && indexOfPlaces(load.getIndices()) == index &&
           (cast<tile::ViewType>(load.getView().getType()).getElementBytes() <= 4 ||
            isOnlyPlace(load));
  });
}

/// Loads what a function of an index names by windows of it, and hands on what lanes want of them;
/// false where each element is loaded by itself.
bool Emitter::emitWindows(tile::GatherElementsOp op) {
  Value result = op.getResult();
  std::optional<Windows> windows = findWindowsOfLoad(op);
  if (!windows)
    return false;
  bool isPlace = isOnlyPlace(op);
  // A shuffle moves 32 bits.
  auto view = cast<tile::ViewType>(op.getView().getType());
  if ((!isPlace && view.getElementBytes() > 4) || !placeLanes(*windows))
    return false;
  Values loads = computeByWindows(*windows, result);
  if (loads.empty())
    return false;
  held[result] = loads;
  if (isPlace) {
    op.emitRemark("elements are places of others: a thread loads ")
        << windows->starts.size() << " of " << windows->of.size();
    return true;
  }
  op.emitRemark("elements lie one behind the other: a thread has ")
      << windows->tile.offsets.size() << " of " << windows->of.size() << ", of which it loads "
      << windows->starts.size() << " and gets the others from the lanes of its warp";
  Type i32Type = builder.getI32Type();
  for (Value &load : loads)
    load = toRegister(load, i32Type);
  Values handedOn = handOn(*windows, loads, [&](Value bits) {
    return fromRegister(bits, lowered(view.getElementType()));
  });
  bind(op, hop::isPacked(op.getType()) ? joinWords(handedOn) : handedOn);
  return true;
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
  Values computed = computeByWindows(*windows, result);
  if (computed.empty())
    return false;
  (*special)->emitRemark("depends on an index alone: a thread has ")
      << windows->tile.offsets.size() << " of " << windows->of.size() << ", of which it computes "
      << windows->starts.size() << " and gets the others from the lanes of its warp";
  bind(result, handOn(*windows, computed, [](Value value) { return value; }));
  return true;
}
