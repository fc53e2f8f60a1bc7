//===- EmitScan.cpp - What elements of an axis make up to each of them ----===//
//
// A scan goes through the digits of a layout along its axis, the smallest steps first.
// With each digit neighbourhoods join to larger ones: each element gets what the
// neighbourhoods before its own make, and each neighbourhood has one total. Digits of
// registers join within a thread, those of lanes by shuffles, those of warps through
// shared memory.
//
//===----------------------------------------------------------------------===//

#include "mlir/Interfaces/LoopLikeInterface.h"
#include "passes/LowerToLLVM/Emitter.h"

using namespace mlir;
using namespace tessera;
using hop::FragmentLayout;
using hop::LayoutAttr;
using hop::LayoutDigit;
using tile::ReduceKind;

namespace tessera {
/// A digit of the place along the axis: of registers, of lanes, or of warps and warpgroups.
struct ScanDigit {
  enum class Of { Registers, Lanes, Warps, Warpgroups } of;
  int64_t extent, step;
  int64_t weight; ///< of the digit in the number of the register, lane, warp or warpgroup
};
} // namespace tessera

/// What is scanned, and how far.
struct Emitter::Scan {
  ReduceKind kind;
  Type element;
  int64_t axis;
  bool reverse;
  Value exchange; ///< null where no warps share the axis
  FragmentLayout fragment;
  bool isAlone;                             ///< each warpgroup meets by itself
  bool meetsBefore;                         ///< the exchange may have been read before
  int64_t others = 1, slotsOfWarpgroup = 0; ///< places along the other axis; slots of one copy
  Values results = {};                      ///< up to each element, of its neighbourhood
  Values totals = {};                       ///< of each neighbourhood, at its first register
  SmallVector<int64_t> registers = {};      ///< those with a total
  SmallVector<int64_t> members = {0};       ///< registers of a neighbourhood, from its first on
};

/// The digits of `fragment` that move along `axis`, the smallest steps first.
static SmallVector<ScanDigit> digitsAlong(const FragmentLayout &fragment, int64_t axis) {
  SmallVector<ScanDigit> along;
  LayoutAttr layout = fragment.getLayoutAttr();
  auto add = [&](ScanDigit::Of of, ArrayRef<LayoutDigit> digits) {
    int64_t weight = 1;
    for (const LayoutDigit &digit : digits) {
      if (digit.moves(axis) && digit.extent > 1)
        along.push_back({of, digit.extent, digit.steps[axis], weight});
      weight *= digit.extent;
    }
  };
  add(ScanDigit::Of::Registers, fragment.getDigits());
  add(ScanDigit::Of::Lanes, layout.getLanes());
  add(ScanDigit::Of::Warps, layout.getWarps());
  add(ScanDigit::Of::Warpgroups, layout.getWarpgroups());
  llvm::sort(along, [](const ScanDigit &a, const ScanDigit &b) { return a.step < b.step; });
  return along;
}

/// What an exclusive scan gives where it has no element.
Value Emitter::startOf(ReduceKind kind, Type type) {
  bool isLargest = kind == ReduceKind::min || kind == ReduceKind::minimum,
       isCount = kind == ReduceKind::sum || kind == ReduceKind::product;
  int64_t count = kind == ReduceKind::product;
  double infinity = std::numeric_limits<double>::infinity();
  if (type.isF32())
    return f32(isCount ? count : isLargest ? infinity : -infinity);
  unsigned bits = type.getIntOrFloatBitWidth();
  APInt number = isCount     ? APInt(bits, count)
                 : isLargest ? APInt::getSignedMaxValue(bits)
                             : APInt::getSignedMinValue(bits);
  return LLVM::ConstantOp::create(builder, loc, type, builder.getIntegerAttr(type, number));
}

/// Whether NaN changes nothing that it is combined with, as infinity changes NaN.
static bool passesOverNaN(ReduceKind kind, Type type) {
  return type.isF32() && (kind == ReduceKind::max || kind == ReduceKind::min);
}

/// The number that changes none that it is combined with.
Value Emitter::neutral(ReduceKind kind, Type type) {
  return passesOverNaN(kind, type) ? f32(std::numeric_limits<double>::quiet_NaN())
                                   : startOf(kind, type);
}

Value Emitter::combineScanned(ReduceKind kind, Value a, Value b) {
  if (!a || !b)
    return a ? a : b;
  if (a.getType().isF32())
    return combine(kind, a, b);
  if (kind == ReduceKind::sum)
    return add(a, b);
  if (kind == ReduceKind::product)
    return LLVM::MulOp::create(builder, loc, a, b);
  return kind == ReduceKind::max ? LLVM::SMaxOp::create(builder, loc, a, b).getResult()
                                 : LLVM::SMinOp::create(builder, loc, a, b).getResult();
}

/// Puts `before` before all elements of the neighbourhood at register `first`.
void Emitter::putBefore(Scan &scan, int64_t first, Value before) {
  for (int64_t member : scan.members)
    scan.results[first + member] = combineScanned(scan.kind, before, scan.results[first + member]);
}

/// Joins neighbourhoods that lie in registers of one thread.
void Emitter::scanRegisters(Scan &scan, int64_t extent, int64_t weight) {
  llvm::erase_if(scan.registers, [&](int64_t i) { return i / weight % extent != 0; });
  for (int64_t first : scan.registers) {
    Value total;
    for (int64_t n = 0; n < extent; ++n) {
      int64_t own = first + (scan.reverse ? extent - 1 - n : n) * weight;
      if (total)
        putBefore(scan, own, total);
      total = combineScanned(scan.kind, total, scan.totals[own]);
    }
    scan.totals[first] = total;
  }
  SmallVector<int64_t> members;
  for (int64_t n = 0; n < extent; ++n)
    for (int64_t member : scan.members)
      members.push_back(member + n * weight);
  scan.members = std::move(members);
}

/// Joins those of lanes, bit by bit of their digit: a lane whose bit is set lies behind the other.
void Emitter::scanLanes(Scan &scan, int64_t extent, int64_t weight) {
  auto fromLane = [&](Value value, int64_t distance) {
    return value.getType().isInteger(64) ? ofLane("bfly", value, distance)
                                         : shuffle("bfly", value, i32(distance));
  };
  Value nothing = neutral(scan.kind, scan.element);
  SmallVector<Value> isBehind;
  for (int64_t distance = weight; distance < weight * extent; distance *= 2) {
    Value bit = LLVM::AndOp::create(builder, loc, thread.lane, i32(distance));
    isBehind.push_back(LLVM::ICmpOp::create(
        builder, loc, scan.reverse ? LLVM::ICmpPredicate::eq : LLVM::ICmpPredicate::ne, bit,
        i32(0)));
  }
  for (int64_t first : scan.registers) {
    Value before, &total = scan.totals[first];
    for (auto [bit, behind] : llvm::enumerate(isBehind)) {
      Value other = fromLane(total, weight << bit);
      Value part = LLVM::SelectOp::create(builder, loc, behind, other, nothing);
      before = combineScanned(scan.kind, part, before);
      total = combineScanned(scan.kind, total, other);
    }
    putBefore(scan, first, before);
  }
}

/// Where warps that share the axis have their totals in shared memory. A slot has the total of a
/// neighbourhood: in the order of these along the axis, and for each of them in that of the other
/// axis.
struct Emitter::TotalSlots {
  int64_t span, extent; ///< of a neighbourhood, and how many of them warps have
  int64_t words;        ///< of a total
  int64_t together;     ///< totals that lie side by side
  Value own, first;     ///< which one the warp has, and the slot of the first of them
  Value writes;         ///< whether the thread writes: one of those with equal totals

  /// Where the total at a register lies, from that of the first one on.
  int64_t byteOf(const Scan &scan, int64_t i) const {
    const FragmentLayout &fragment = scan.fragment;
    int64_t slot = fragment.offset(i, scan.axis) / span * scan.others +
                   (scan.others > 1 ? fragment.offset(i, 1 - scan.axis) : 0);
    return slot * words * hopper::registerBytes;
  }
};

/// The slots of the warps whose `digits` lie side by side.
Emitter::TotalSlots Emitter::findSlots(const Scan &scan, ArrayRef<ScanDigit> digits) {
  LayoutAttr layout = scan.fragment.getLayoutAttr();
  int64_t axis = scan.axis, span = digits.front().step, extent = 1,
          words = scan.element.getIntOrFloatBitWidth() / (8 * hopper::registerBytes);
  for (const ScanDigit &digit : digits)
    extent *= digit.extent;
  // What a step of a digit adds to the number of the warp among these, to that of the slot of the
  // first one, and to the number of the thread among those that have the same total.
  auto stepsOf = [&](auto of) {
    auto map = [&](ArrayRef<LayoutDigit> from) {
      return llvm::map_to_vector(from, [&](const LayoutDigit &digit) -> LayoutDigit {
        int64_t step = digit.steps[axis];
        bool isShared = step >= span && step < span * extent;
        int64_t apart = (step >= span * extent ? step / span * scan.others : 0) +
                        (scan.others > 1 ? digit.steps[1 - axis] : 0);
        return {digit.extent, {of(isShared ? step / span : 0, apart), 0}};
      });
    };
    auto lanes = map(layout.getLanes()), warps = map(layout.getWarps()),
         warpgroups = map(layout.getWarpgroups());
    return sumDigits({lanes, warps, warpgroups}, 0);
  };
  Value own = stepsOf([](int64_t shared, int64_t) { return shared; });
  Value first = stepsOf([](int64_t, int64_t apart) { return apart; });
  Value sharer = stepsOf([](int64_t shared, int64_t apart) { return shared || apart ? 0 : 1; });
  if (scan.isAlone)
    first = add(first, mul(thread.warpgroup, scan.slotsOfWarpgroup / words));
  Value writes = toI32(LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, sharer, i32(0)));
  int64_t together = scan.others > 1 && axis == 0 && words == 1 ? std::gcd(layout.getRun(), 4) : 1;
  return {span, extent, words, together, own, first, writes};
}

void Emitter::writeTotals(const Scan &scan, const TotalSlots &slots) {
  Value place =
      valueAddress(scan.exchange, mul(add(slots.first, mul(slots.own, scan.others)), slots.words));
  for (size_t i = 0; i < scan.registers.size(); i += slots.together) {
    Values parts;
    for (int64_t j = 0; j < slots.together; ++j)
      llvm::append_range(parts, bitcastElements(scan.totals[scan.registers[i + j]],
                                                builder.getF32Type(), slots.words));
    storeShared(place, slots.byteOf(scan, scan.registers[i]), parts, slots.writes);
  }
}

/// Reads the totals of all warps, and puts those before the own one before its elements.
void Emitter::joinTotals(Scan &scan, const TotalSlots &slots) {
  Value nothing = neutral(scan.kind, scan.element);
  SmallVector<Value> isBehind;
  for (int64_t n = 0; n < slots.extent; ++n)
    isBehind.push_back(LLVM::ICmpOp::create(
        builder, loc, scan.reverse ? LLVM::ICmpPredicate::ult : LLVM::ICmpPredicate::ugt, slots.own,
        i32(n)));
  Value place = valueAddress(scan.exchange, mul(slots.first, slots.words));
  for (size_t i = 0; i < scan.registers.size(); i += slots.together) {
    Values before(slots.together), total(slots.together);
    for (int64_t n = 0; n < slots.extent; ++n) {
      int64_t warp = scan.reverse ? slots.extent - 1 - n : n,
              byte = slots.byteOf(scan, scan.registers[i]) +
                     warp * scan.others * slots.words * hopper::registerBytes;
      Values read = splitWords(loadShared(place, byte, slots.together * slots.words), scan.element);
      for (int64_t j = 0; j < slots.together; ++j) {
        total[j] = combineScanned(scan.kind, total[j], read[j]);
        if (n + 1 == slots.extent) // none is behind the last one
          continue;
        Value part = LLVM::SelectOp::create(builder, loc, isBehind[warp], read[j], nothing);
        before[j] = combineScanned(scan.kind, before[j], part);
      }
    }
    for (int64_t j = 0; j < slots.together; ++j) {
      putBefore(scan, scan.registers[i + j], before[j]);
      scan.totals[scan.registers[i + j]] = total[j];
    }
  }
}

/// Joins those of the warps whose `digits` lie side by side.
void Emitter::scanWarps(Scan &scan, ArrayRef<ScanDigit> digits) {
  auto meet = [&] { scan.isAlone ? emitWarpgroupSync() : emitRoleSync(); };
  TotalSlots slots = findSlots(scan, digits);
  if (scan.meetsBefore) // the totals before have been read
    meet();
  scan.meetsBefore = true;
  writeTotals(scan, slots);
  meet();
  joinTotals(scan, slots);
}

template <typename ScanOp>
void Emitter::emitScan(ScanOp op, Value exchange, bool isAlone) {
  auto type = cast<RankedTensorType>(op.getSource().getType());
  int64_t axis = op.getAxis();
  Scan scan{op.getKind(), type.getElementType(),
            axis,         op.getReverse(),
            exchange,     FragmentLayout(type),
            isAlone,      bool(op->template getParentOfType<LoopLikeOpInterface>())};
  scan.others = type.getRank() == 2 ? type.getDimSize(1 - axis) : 1;
  scan.slotsOfWarpgroup = hop::ScanOp::getSlots(type, axis, /*warpgroups=*/1);
  scan.totals = elements(op.getSource());
  // What stands before the first element counts only where it is not what every other one is
  // combined to.
  Value start = startOf(op.getKind(), type.getElementType());
  if (op.getExclusive())
    scan.results.assign(scan.totals.size(),
                        passesOverNaN(op.getKind(), type.getElementType()) ? start : Value());
  else
    scan.results = scan.totals;
  scan.registers = llvm::to_vector(llvm::seq<int64_t>(0, scan.totals.size()));
  SmallVector<ScanDigit> digits = digitsAlong(scan.fragment, axis);
  auto isOfWarps = [](const ScanDigit &digit) { return digit.of >= ScanDigit::Of::Warps; };
  for (ArrayRef<ScanDigit> rest = digits; !rest.empty();) {
    size_t count = std::max<size_t>(rest.take_while(isOfWarps).size(), 1);
    const ScanDigit &digit = rest.front();
    if (isOfWarps(digit))
      scanWarps(scan, rest.take_front(count));
    else if (digit.of == ScanDigit::Of::Lanes)
      scanLanes(scan, digit.extent, digit.weight);
    else
      scanRegisters(scan, digit.extent, digit.weight);
    rest = rest.drop_front(count);
  }
  for (Value &result : scan.results)
    result = result ? result : start;
  bind(op.getResult(), std::move(scan.results));
}

void Emitter::emitScan(tile::ScanOp op) { emitScan(op, Value(), /*isAlone=*/false); }
void Emitter::emitScan(hop::ScanOp op) { emitScan(op, op.getExchange(), op.isWithinWarpgroups()); }
