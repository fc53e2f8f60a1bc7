//===- EmitWindows.cpp - Elements that the lanes of a warp hand on --------===//
//
// Elements whose index is a number plus or less those of their row and column, as biases by the
// distance of query and key: the lanes of a warp want few, which lie one behind the other. Each
// lane loads one of 32 neighbours, a window, and shuffles hand them to the lanes that want them.
//
//===----------------------------------------------------------------------===//

#include "passes/LowerToLLVM/GlobalAccess.h"
#include <map>

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

/// The elements of a thread, or nothing where loading each by itself takes as few instructions.
std::optional<Emitter::Values> Emitter::emitWindows(tile::GatherElementsOp op,
                                                    const ElementPlaces &places) {
  auto view = cast<tile::ViewType>(op.getView().getType());
  auto found = affineTiles.find(findIndex(op));
  // A shuffle moves 32 bits.
  if (view.getElementBytes() > 4 || found == affineTiles.end() || found->second.lanes.empty())
    return std::nullopt;
  const AffineTile affine = found->second;
  auto [least, most] = std::minmax_element(affine.lanes.begin(), affine.lanes.end());
  int64_t width = hopper::warpThreads - (*most - *least);
  if (width < 1)
    return std::nullopt;
  std::map<int64_t, int64_t> windowOf = divide(affine.offsets, width);
  std::map<int64_t, Value> windows;
  for (auto [offset, window] : windowOf)
    windows[window];
  // A load takes an address and a test of it beside.
  constexpr size_t instructionsOfLoad = 4;
  if (windowOf.size() + instructionsOfLoad * windows.size() >= instructionsOfLoad * windowOf.size())
    return std::nullopt;
  // How far behind the first of a window the lane's own element is that has the same offset.
  Value behind = laneSum(llvm::map_to_vector(
      affine.lanes, [&, first = *least](int64_t place) { return place - first; }));
  if (!behind)
    return std::nullopt;

  ElementMove move(builder, view.getElementBytes());
  Type i32Type = builder.getI32Type(), element = lowered(view.getElementType());
  Value place = add(affine.base, LLVM::SubOp::create(builder, loc, thread.lane, behind));
  for (auto &[start, loaded] : windows) {
    auto [address, inside] =
        placeOf(places, [&, first = start](size_t) { return add(place, first); });
    loaded = loadGuarded(move.suffix, move.constraint, move.type, address, toI32(inside));
    if (move.registerBits < 32)
      loaded = LLVM::ZExtOp::create(builder, loc, i32Type, loaded);
  }
  std::map<int64_t, Value> taken;
  for (auto [offset, window] : windowOf) {
    Value bits = shuffle("idx", windows[window], add(behind, offset - window));
    taken[offset] = fromRegister(bits, element);
  }
  op.emitRemark("elements lie one behind the other: a thread has ")
      << affine.offsets.size() << " of " << windowOf.size() << ", of which it loads "
      << windows.size() << " and gets the others from the lanes of its warp";
  return llvm::map_to_vector<0>(affine.offsets, [&](int64_t offset) { return taken[offset]; });
}
