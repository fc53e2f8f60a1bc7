//===- EmitTile.cpp - Reductions, broadcasts and index tiles --------------===//

#include "dialects/Tile/LoadedIndex.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "passes/LowerToLLVM/Emitter.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;
using hop::FragmentLayout;
using hop::LayoutAttr;
using hop::LayoutDigit;

//===----------------------------------------------------------------------===//
// Where a thread's elements are
//===----------------------------------------------------------------------===//

/// The sum of the digits of `number` times their steps along `axis`.
Value Emitter::sumDigits(Value number, ArrayRef<LayoutDigit> digits, int64_t axis) {
  Value sum;
  int64_t weight = 1;
  for (const LayoutDigit &digit : digits) {
    if (digit.moves(axis)) {
      Value value = number;
      if (weight > 1)
        value = LLVM::UDivOp::create(builder, loc, value, i32(weight));
      if (&digit != &digits.back())
        value = LLVM::URemOp::create(builder, loc, value, i32(digit.extent));
      value = mul(value, digit.steps[axis]);
      sum = sum ? add(sum, value) : value;
    }
    weight *= digit.extent;
  }
  return sum ? sum : i32(0);
}

Value Emitter::sumDigits(const ThreadDigits &digits, int64_t axis) {
  Value warp = LLVM::LShrOp::create(builder, loc, thread.inGroup, i32(5));
  Value inGroup =
      add(sumDigits(warp, digits.warps, axis), sumDigits(thread.lane, digits.lanes, axis));
  return digits.warpgroups.empty()
             ? inGroup
             : add(sumDigits(thread.amongTiles, digits.warpgroups, axis), inGroup);
}

Value Emitter::firstPlace(LayoutAttr layout, int64_t axis) {
  LayoutAttr accumulator = LayoutAttr::getAccumulator(builder.getContext());
  LayoutAttr whole = layout.withPartial(false);
  if (whole == accumulator || whole.isByteAccumulator())
    return axis == 0 ? thread.firstRow : thread.firstColumn;
  if (whole == accumulator.getSlice(0))
    return thread.firstRow;
  if (whole == accumulator.getSlice(1))
    return thread.firstColumn;
  return sumDigits({layout.getLanes(), layout.getWarps(), layout.getWarpgroups()}, axis);
}

/// The part of each lane in it.
SmallVector<int64_t> Emitter::placesOfLanes(LayoutAttr layout, int64_t axis) {
  SmallVector<int64_t> places;
  for (int64_t lane = 0; lane < hopper::warpThreads; ++lane) {
    int64_t rest = lane;
    int64_t &place = places.emplace_back(0);
    for (const LayoutDigit &digit : layout.getLanes()) {
      place += rest % digit.extent * digit.steps[axis];
      rest /= digit.extent;
    }
  }
  return places;
}

/// The digits that move nothing, each with the step that numbers the threads of an element.
static SmallVector<LayoutDigit> numberSharers(ArrayRef<LayoutDigit> digits, int64_t &count) {
  SmallVector<LayoutDigit> numbering;
  for (const LayoutDigit &digit : digits) {
    numbering.push_back({digit.extent, {digit.moves(0) ? 0 : count, 0}});
    count *= digit.moves(0) ? 1 : digit.extent;
  }
  return numbering;
}

Value Emitter::sharerOf(LayoutAttr layout) {
  LayoutAttr accumulator = LayoutAttr::getAccumulator(builder.getContext());
  if (layout.withPartial(false) == accumulator.getSlice(0))
    return thread.firstColumn;
  if (layout == accumulator.getSlice(1))
    return thread.firstRow;
  int64_t count = 1;
  SmallVector<LayoutDigit> lanes = numberSharers(layout.getLanes(), count),
                           warps = numberSharers(layout.getWarps(), count),
                           warpgroups = numberSharers(layout.getWarpgroups(), count);
  return sumDigits({lanes, warps, warpgroups}, 0);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

Value Emitter::combine(tile::ReduceKind kind, Value a, Value b) {
  switch (kind) {
  case tile::ReduceKind::sum:
    return LLVM::FAddOp::create(builder, loc, a, b);
  case tile::ReduceKind::max:
    return LLVM::MaxNumOp::create(builder, loc, a, b);
  case tile::ReduceKind::min:
    return LLVM::MinNumOp::create(builder, loc, a, b);
  case tile::ReduceKind::maximum:
    return LLVM::MaximumOp::create(builder, loc, a, b);
  case tile::ReduceKind::minimum:
    return LLVM::MinimumOp::create(builder, loc, a, b);
  case tile::ReduceKind::product:
    return LLVM::FMulOp::create(builder, loc, a, b);
  }
  return {};
}

/// Combines the lanes that hold parts of an element of a tile in `layout`.
Value Emitter::combineLanes(Value value, tile::ReduceKind kind, LayoutAttr layout) {
  int64_t weight = 1;
  for (const LayoutDigit &digit : layout.getLanes()) {
    int64_t end = weight * digit.extent;
    if (!digit.moves(0))
      for (int64_t distance = weight; distance < end; distance *= 2)
        value = combine(kind, value, shuffle("bfly", value, i32(distance)));
    weight = end;
  }
  return value;
}

/// True when the sign cannot be set. The NaN of a product has none (PTX ISA, floating-point
/// instructions), which is not said of an absolute value; that is a modifier of FMNMX anyway.
static bool hasNoSign(Value value) {
  if (auto product = value.getDefiningOp<LLVM::FMulOp>())
    return product.getLhs() == product.getRhs();
  if (auto choice = value.getDefiningOp<LLVM::SelectOp>())
    return hasNoSign(choice.getTrueValue()) && hasNoSign(choice.getFalseValue());
  FloatAttr constant;
  return matchPattern(value, m_Constant(&constant)) && !constant.getValue().isNegative();
}

/// The bits of `elements`, those of `tile`, when their order as integers is that of a maximum that
/// NaN wins: then one instruction (VIMNMX3) combines three.
static std::optional<SmallVector<Value>> orderedBits(OpBuilder &builder, Location loc,
                                                     tile::ReduceKind kind, Value tile,
                                                     ArrayRef<Value> elements) {
  bool isPower = isa_and_nonnull<math::ExpOp, math::Exp2Op>(tile.getDefiningOp());
  if (kind != tile::ReduceKind::maximum || !(isPower || llvm::all_of(elements, hasNoSign)))
    return std::nullopt;
  return llvm::map_to_vector(elements, [&](Value element) -> Value {
    return LLVM::BitcastOp::create(builder, loc, builder.getI32Type(), element);
  });
}

/// The addition that takes the sums that `op` makes, and nothing else does, to others that are
/// there before: a thread adds its elements to those, element by element. None where lanes have to
/// be combined first.
arith::AddFOp Emitter::additionOf(tile::ReduceOp op) {
  if (kernel.getSchedule().getWork() != tile::WorkKind::elements)
    return {};
  auto addition = op->hasOneUse() ? dyn_cast<arith::AddFOp>(*op->user_begin()) : arith::AddFOp();
  if (!addition || op.getKind() != tile::ReduceKind::sum || op.getLimit() ||
      !hop::getLayout(op.getType()).getPartial() || addition->getBlock() != op->getBlock())
    return {};
  Value other = addition.getLhs() == op ? addition.getRhs() : addition.getLhs();
  Operation *maker = other.getDefiningOp();
  bool isThere = !maker || maker->getBlock() != op->getBlock() || maker->isBeforeInBlock(op);
  return isThere ? addition : arith::AddFOp();
}

LogicalResult Emitter::emitReduce(tile::ReduceOp op) {
  auto sourceType = cast<RankedTensorType>(op.getSource().getType());
  if (!sourceType.getElementType().isF32())
    return op.emitError("reduces ") << sourceType.getElementType() << "; extend it to f32 first";
  FragmentLayout layout(sourceType), resultLayout(cast<RankedTensorType>(op.getType()));
  int64_t kept = 1 - op.getAxis();
  // Two chains for each element: the latency of one addition is hidden behind the other. Between
  // the additions of work by elements there is other work, and fewer registers.
  const int64_t chains = kernel.getSchedule().getWork() == tile::WorkKind::elements ? 1 : 2;
  SmallVector<Value> partial(resultLayout.size() * chains);
  SmallVector<int64_t> counts(resultLayout.size());
  arith::AddFOp addition = additionOf(op);
  if (addition)
    partial = elements(addition.getLhs() == op ? addition.getRhs() : addition.getLhs());
  Values source = elements(op.getSource());
  auto bits = orderedBits(builder, loc, op.getKind(), op.getSource(), source);
  for (auto [i, element] : llvm::enumerate(bits ? *bits : source)) {
    int64_t index = layout.sliceIndex(i, kept);
    Value &part = partial[index * chains + counts[index]++ % chains];
    if (!part)
      part = element;
    else if (bits)
      part = LLVM::SMaxOp::create(builder, loc, part, element);
    else
      part = combine(op.getKind(), part, element);
  }
  if (bits)
    for (Value &part : partial)
      if (part)
        part = LLVM::BitcastOp::create(builder, loc, builder.getF32Type(), part);
  Values results;
  for (int64_t i = 0; i < resultLayout.size(); ++i) {
    Value result = partial[i * chains];
    if (Value other = chains > 1 ? partial[i * chains + 1] : Value())
      result = combine(op.getKind(), result, other);
    if (std::optional<llvm::APFloat> limit = op.getLimit()) {
      Value isBeyond = LLVM::FCmpOp::create(builder, loc, LLVM::FCmpPredicate::ogt, result,
                                            f32(limit->convertToFloat()));
      Value infinity = f32(std::numeric_limits<float>::infinity());
      result = LLVM::SelectOp::create(builder, loc, isBeyond, infinity, result);
    }
    if (LayoutAttr whole = resultLayout.getLayoutAttr(); !whole.getPartial())
      result = combineLanes(result, op.getKind(), whole);
    results.push_back(result);
  }
  if (addition)
    bind(addition, results);
  bind(op, std::move(results));
  return success();
}

/// The rows that a thread has of its warp's have one number: what is computed of that and of
/// columns alone is the same for them, and LLVM computes it once.
void Emitter::emitReference(tile::ReferenceOp op) {
  constexpr int64_t warpRows = hopper::mmaRows / hopper::warpgroupWarps;
  FragmentLayout layout(cast<RankedTensorType>(op.getType()));
  Values results = elements(op.getSource());
  llvm::SmallDenseMap<int64_t, Value> largest;
  for (auto [i, own] : llvm::enumerate(results)) {
    Value &shared = largest[layout.offset(i, 0) / warpRows];
    shared = shared ? combine(tile::ReduceKind::max, shared, own) : own;
  }
  for (auto [i, own] : llvm::enumerate(results))
    own = largest[layout.offset(i, 0) / warpRows];
  bind(op, std::move(results));
}

/// All elements of `tile` combined, in two chains.
Value Emitter::combineElements(tile::ReduceKind kind, Value tile) {
  Values own = elements(tile);
  auto bits = orderedBits(builder, loc, kind, tile, own);
  Value parts[2];
  for (auto [i, element] : llvm::enumerate(bits ? *bits : own)) {
    Value &part = parts[i % 2];
    part = !part  ? element
           : bits ? LLVM::SMaxOp::create(builder, loc, part, element).getResult()
                  : combine(kind, part, element);
  }
  if (bits)
    for (Value &part : parts)
      if (part)
        part = LLVM::BitcastOp::create(builder, loc, builder.getF32Type(), part);
  return parts[1] ? combine(kind, parts[0], parts[1]) : parts[0];
}

/// The warps of a role of `warpgroups` that hold each element once: of those that have the same,
/// the one whose digits that move nothing are 0.
static SmallVector<int64_t> warpsOfParts(LayoutAttr layout, int64_t warpgroups) {
  auto isFirst = [](int64_t number, ArrayRef<LayoutDigit> digits) {
    for (const LayoutDigit &digit : digits) {
      if (!digit.moves(0) && !digit.moves(1) && number % digit.extent != 0)
        return false;
      number /= digit.extent;
    }
    return true;
  };
  SmallVector<int64_t> warps;
  for (int64_t i = 0; i < warpgroups * hopper::warpgroupWarps; ++i)
    if (isFirst(i % hopper::warpgroupWarps, layout.getWarps()) &&
        isFirst(i / hopper::warpgroupWarps, layout.getWarpgroups()))
      warps.push_back(i);
  return warps;
}

void Emitter::emitCombineAll(hop::CombineAllOp op) {
  tile::ReduceKind kind = op.getKind();
  LayoutAttr layout = hop::getLayout(op.getSource().getType());
  Value part = combineElements(kind, op.getSource());
  int64_t weight = 1;
  for (const LayoutDigit &digit : layout.getLanes()) {
    int64_t end = weight * digit.extent;
    if (digit.moves(0) || digit.moves(1))
      for (int64_t distance = weight; distance < end; distance *= 2)
        part = combine(kind, part, shuffle("bfly", part, i32(distance)));
    weight = end;
  }
  if (op->getParentOfType<LoopLikeOpInterface>()) // the parts before have been read
    emitRoleSync();
  Value warp = add(mul(thread.warpgroup, hopper::warpgroupWarps),
                   LLVM::LShrOp::create(builder, loc, thread.inGroup, i32(5)));
  Value writes =
      toI32(LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, thread.lane, i32(0)));
  storeShared(valueAddress(op.getExchange(), warp), 0, part, writes);
  emitRoleSync();
  Value slots = valueAddress(op.getExchange(), i32(0)), whole;
  SmallVector<int64_t> warps = warpsOfParts(layout, role.getNumWarpgroups());
  // The warps of a warpgroup are read together where all have parts.
  int64_t together = warps.size() % hopper::warpgroupWarps == 0 ? hopper::warpgroupWarps : 1;
  for (size_t i = 0; i < warps.size(); i += together)
    for (Value read : loadShared(slots, 4 * warps[i], together))
      whole = whole ? combine(kind, whole, read) : read;
  bind(op, {whole});
}

LogicalResult Emitter::emitConvertLayout(hop::ConvertLayoutOp op) {
  LayoutAttr layout = hop::getLayout(op.getSource().getType());
  Values results;
  const Values source = elements(op.getSource());
  for (Value element : source) {
    if (layout.getPartial()) {
      results.push_back(combineLanes(element, op.getKind(), layout));
      continue;
    }
    if (op.getKind() != tile::ReduceKind::sum) {
      results.push_back(element);
      continue;
    }
    Value isFirst =
        LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, sharerOf(layout), i32(0));
    results.push_back(LLVM::SelectOp::create(builder, loc, isFirst, element, f32(0.0)));
  }
  bind(op, std::move(results));
  return success();
}

/// Elements of a thread that one access to shared memory moves: neighbours that begin at a multiple
/// of their number in each warp's part.
static int64_t exchangedTogether(LayoutAttr layout, int64_t elements) {
  for (int64_t together : {4, 2})
    if (layout.getRun() % together == 0 && elements % together == 0)
      return together;
  return 1;
}

/// "$2" or "{$2, $3}": `count` operands of an access, from number `first` on.
static std::string vectorOperand(int64_t first, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i)
    text += llvm::formatv("{0}${1}", i ? ", " : "", first + i).str();
  return count == 1 ? text : "{" + text + "}";
}

static std::string vectorWidth(int64_t count) {
  return count == 1 ? "" : llvm::formatv(".v{0}", count).str();
}

/// Writes `values` side by side where `writes` is true, in `space`.
void Emitter::storeShared(Value address, int64_t byte, ValueRange values, Value writes,
                          StringRef space) {
  std::string constraints = "r,r";
  for (size_t i = 0; i < values.size(); ++i)
    constraints += ",f";
  Values operands = {address, writes};
  operands.append(values.begin(), values.end());
  assembly("{\n.reg .pred p;\nsetp.ne.b32 p, $1, 0;\n@p st." + space + vectorWidth(values.size()) +
               ".b32 [$0+" + Twine(byte) + "], " + vectorOperand(2, values.size()) + ";\n}",
           constraints, operands, {});
}

/// `count` values that lie side by side.
Emitter::Values Emitter::loadShared(Value address, int64_t byte, int64_t count) {
  std::string constraints;
  for (int64_t i = 0; i < count; ++i)
    constraints += "=f,";
  SmallVector<Type> types(count, builder.getF32Type());
  return assembly("ld.shared" + vectorWidth(count) + ".b32 " + vectorOperand(0, count) + ", [$" +
                      Twine(count) + "+" + Twine(byte) + "];",
                  constraints + "r", {address}, types);
}

/// Reads `parts` parts of the elements of `fragment`, `size` slots apart from `slots` on, and
/// combines them in their order.
Emitter::Values Emitter::combineSlots(tile::ReduceKind kind, const FragmentLayout &fragment,
                                      Value slots, int64_t parts, int64_t size) {
  int64_t together = exchangedTogether(fragment.getLayoutAttr(), size);
  Values results;
  for (int64_t i = 0; i < fragment.size(); i += together) {
    Values sums = loadShared(slots, 4 * fragment.offset(i, 0), together);
    for (int64_t j = 1; j < parts; ++j) {
      Values read = loadShared(slots, 4 * (j * size + fragment.offset(i, 0)), together);
      for (auto [sum, other] : llvm::zip_equal(sums, read))
        sum = combine(kind, sum, other);
    }
    results.append(sums);
  }
  return results;
}

/// The parts of all elements that a warp has lie side by side, in the order of the elements, so
/// that lanes with neighbouring elements meet different banks.
LogicalResult Emitter::emitCombine(hop::CombineOp op) {
  auto type = cast<RankedTensorType>(op.getSource().getType());
  FragmentLayout fragment(type);
  LayoutAttr layout = fragment.getLayoutAttr();
  int64_t parts = hop::CombineOp::getWarpParts(type, role), size = type.getDimSize(0), count = 1,
          lanes = 1;
  bool amongBlocks = hop::CombineOp::getBlockParts(type, role) > 1;
  SmallVector<LayoutDigit> warps = numberSharers(layout.getWarps(), count),
                           warpgroups =
                               numberSharers(layout.getWarpgroups().drop_back(amongBlocks), count),
                           sharers = numberSharers(layout.getLanes(), lanes);
  Value part = numberOf(warps, warpgroups);
  Value writes = toI32(LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq,
                                            sumDigits(thread.lane, sharers, 0), i32(0)));
  // Without digits of warpgroups each of them has slots and a barrier of its own.
  bool isAlone = op.isWithinWarpgroups();
  Value first = firstPlace(layout, 0);
  if (isAlone)
    first = add(first, mul(thread.warpgroup, parts * size));
  auto meet = [&] { isAlone ? emitWarpgroupSync() : emitRoleSync(); };

  int64_t together = exchangedTogether(layout, size);
  if (op->getParentOfType<LoopLikeOpInterface>()) { // the parts before have been read
    if (amongBlocks)
      emitClusterSync();
    else
      meet();
  }
  Value own = valueAddress(op.getExchange(), add(first, mul(part, size)));
  Values results = llvm::map_to_vector(elements(op.getSource()), [&](Value element) {
    return combineLanes(element, op.getKind(), layout);
  });
  if (parts > 1) {
    for (size_t i = 0; i < results.size(); i += together)
      storeShared(own, 4 * fragment.offset(i, 0), ArrayRef(results).slice(i, together), writes);
    meet();
    Value slots = valueAddress(op.getExchange(), first);
    results = combineSlots(op.getKind(), fragment, slots, parts, size);
  }
  if (amongBlocks)
    results = combineBlocks(op, results);
  bind(op, std::move(results));
  return success();
}

/// The sum of the digits of the thread's warp in its warpgroup and of this in the role.
Value Emitter::numberOf(ArrayRef<LayoutDigit> warps, ArrayRef<LayoutDigit> warpgroups) {
  Value warp = LLVM::LShrOp::create(builder, loc, thread.inGroup, i32(5));
  Value inGroup = sumDigits(warp, warps, 0);
  return warpgroups.empty() ? inGroup : add(sumDigits(thread.warpgroup, warpgroups, 0), inGroup);
}

/// Combines `own`, what the warps of a block did, with those of the other blocks. The threads that
/// have the same elements write them to a block each.
Emitter::Values Emitter::combineBlocks(hop::CombineOp op, ArrayRef<Value> own) {
  auto type = cast<RankedTensorType>(op.getSource().getType());
  FragmentLayout fragment(type);
  LayoutAttr layout = fragment.getLayoutAttr();
  int64_t blocks = hop::CombineOp::getBlockParts(type, role), size = type.getDimSize(0),
          slots = hop::CombineOp::getSlots(type, role) - blocks * size, count = 1;
  SmallVector<LayoutDigit> lanes = numberSharers(layout.getLanes(), count),
                           warps = numberSharers(layout.getWarps(), count),
                           warpgroups = numberSharers(layout.getWarpgroups().drop_back(), count);
  Value sharer = add(numberOf(warps, warpgroups), sumDigits(thread.lane, lanes, 0));
  Value first = add(firstPlace(layout, 0), i32(slots));
  Value place = valueAddress(op.getExchange(), add(first, mul(clusterRank(), size)));
  int64_t together = exchangedTogether(layout, size);
  for (int64_t block = 0; block < blocks; block += count) {
    Value target = add(sharer, block);
    Value writes =
        toI32(LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ult, target, i32(blocks)));
    Value existing = LLVM::AndOp::create(builder, loc, target, i32(blocks - 1));
    Value remote = assembly("mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r", {place, existing},
                            TypeRange(builder.getI32Type()))
                       .front();
    for (size_t i = 0; i < own.size(); i += together)
      storeShared(remote, 4 * fragment.offset(i, 0), own.slice(i, together), writes,
                  "shared::cluster");
  }
  emitClusterSync();
  return combineSlots(op.getKind(), fragment, valueAddress(op.getExchange(), first), blocks, size);
}

//===----------------------------------------------------------------------===//
// Broadcasts and index tiles
//===----------------------------------------------------------------------===//

LogicalResult Emitter::emitBroadcast(tile::BroadcastOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  if (hop::isPacked(type))
    return op.emitError("repeats elements of 16 or 8 bits; extend them with arith.extf first");
  FragmentLayout layout(type);
  auto indexOf = [&](int64_t i) { return layout.sliceIndex(i, 1 - op.getAxis()); };
  if (auto affine = affineTiles.find(op.getSource()); affine != affineTiles.end()) {
    AffineTile result{affine->second.base, {}, affine->second.lanes, affine->second.isFar};
    for (int64_t i = 0; i < layout.size(); ++i)
      result.offsets.push_back(affine->second.offsets[indexOf(i)]);
    affineTiles[op] = std::move(result);
    return success();
  }
  const Values source = elements(op.getSource());
  Values results;
  for (int64_t i = 0; i < layout.size(); ++i)
    results.push_back(source[indexOf(i)]);
  bind(op, std::move(results));
  return success();
}

LogicalResult Emitter::emitSplat(tile::SplatOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  int64_t size = FragmentLayout(type).size();
  Value source = scalar(op.getSource());
  // A loaded number of 32 bits is compared with each element by itself.
  Type element = type.getElementType();
  if (element.isInteger(64) || (element.isInteger(32) && !tile::comesFromMemory(op.getSource()))) {
    affineTiles[op] = AffineTile::ofAll(source, size, tile::comesFromOutside(op.getSource()));
    return success();
  }
  if (hop::isPacked(type))
    return op.emitError(
        "makes a tile of 16- or 8-bit elements; make it of f32 and round with arith.truncf");
  bind(op, Values(size, source));
  return success();
}

LogicalResult Emitter::emitIota(tile::IotaOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  FragmentLayout layout(type);
  int64_t axis = op.getAxis();
  Value start = scalar(op.getStart()), first = firstPlace(layout.getLayoutAttr(), axis);
  auto offset = [&](int64_t i) { return layout.offset(i, axis); };
  int64_t period = op.getPeriodOrExtent();
  bool repeats = period < type.getDimSize(axis);
  // Where digits are powers of two, a thread's first place and the offsets of its elements have no
  // bit in common.
  auto isBits = [](const LayoutDigit &digit) { return llvm::isPowerOf2_64(digit.extent); };
  bool areBits = llvm::all_of(layout.getLayoutAttr().getRegisters(), isBits) &&
                 llvm::all_of(layout.getLayoutAttr().getWarpgroups(), isBits);
  if (repeats && !(areBits && llvm::isPowerOf2_64(period))) {
    Values values;
    for (int64_t i = 0; i < layout.size(); ++i) {
      Value index = add(first, offset(i));
      values.push_back(
          add(start, LLVM::URemOp::create(builder, loc, index, i32(period)).getResult()));
    }
    bind(op, std::move(values));
    return success();
  }
  int64_t mask = repeats ? period - 1 : -1;
  AffineTile tile;
  tile.isFar = tile::comesFromOutside(op.getStart());
  tile.base = add(start, repeats ? LLVM::AndOp::create(builder, loc, first, i32(mask)) : first);
  for (int64_t i = 0; i < layout.size(); ++i)
    tile.offsets.push_back(offset(i) & mask);
  if (!repeats)
    tile.lanes = placesOfLanes(layout.getLayoutAttr(), axis);
  affineTiles[op] = std::move(tile);
  return success();
}
