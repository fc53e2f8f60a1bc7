// Index tiles: one number for each thread, and a constant more for each element. Where such a tile
// is compared a thread makes one difference, and compares it with an immediate for each element.

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "passes/Analysis/IntegerRanges.h"
#include "passes/LowerToLLVM/Emitter.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera;

/// Rows with a number each share a difference among so many elements at least.
constexpr size_t kLeastOfRow = 4;

/// An index tile as f32: one conversion for each thread, and an addition for each element, which is
/// exact up to 2^24.
void Emitter::convertAffine(arith::SIToFPOp op) {
  const AffineTile tile = affineTiles.lookup(op.getIn());
  Type f32Type = builder.getF32Type();
  Value base = LLVM::SIToFPOp::create(builder, loc, f32Type, tile.base);
  Values results;
  for (int64_t offset : tile.offsets)
    results.push_back(
        offset == 0 ? base : Value(LLVM::FAddOp::create(builder, loc, f32Type, base, f32(offset))));
  bind(op, std::move(results));
}

namespace {
/// A tile of f32 whose elements are one value and so many times another.
struct AffineFloats {
  Value base, unit;
  ArrayRef<int64_t> offsets;
};

/// Finds what conversions, products with numbers and sums with numbers make of index tiles.
struct AffineFloatFinder {
  OpBuilder &builder;
  Location loc;
  function_ref<const AffineTile *(Value)> findIndices;
  /// The number that all elements of a tile are in a thread; null where they may differ.
  function_ref<Value(Value)> getNumber;

  std::optional<AffineFloats> find(Value tile);
};
} // namespace

std::optional<AffineFloats> AffineFloatFinder::find(Value tile) {
  Operation *op = tile.getDefiningOp();
  Type type = builder.getF32Type();
  auto contract = LLVM::FastmathFlagsAttr::get(builder.getContext(), LLVM::FastmathFlags::contract);
  if (auto conversion = dyn_cast_if_present<arith::SIToFPOp>(op)) {
    const AffineTile *indices = findIndices(conversion.getIn());
    if (!indices)
      return std::nullopt;
    Value one = LLVM::ConstantOp::create(builder, loc, type, builder.getF32FloatAttr(1.0f));
    return AffineFloats{LLVM::SIToFPOp::create(builder, loc, type, indices->base), one,
                        indices->offsets};
  }
  if (!isa_and_present<arith::MulFOp, arith::AddFOp, arith::SubFOp>(op))
    return std::nullopt;
  Value number = getNumber(op->getOperand(1));
  std::optional<AffineFloats> found = number ? find(op->getOperand(0)) : std::nullopt;
  if (!found)
    return std::nullopt;
  if (isa<arith::MulFOp>(op)) {
    found->base = LLVM::FMulOp::create(builder, loc, type, found->base, number, contract);
    found->unit = LLVM::FMulOp::create(builder, loc, type, found->unit, number, contract);
  } else if (isa<arith::AddFOp>(op)) {
    found->base = LLVM::FAddOp::create(builder, loc, type, found->base, number, contract);
  } else {
    found->base = LLVM::FSubOp::create(builder, loc, type, found->base, number, contract);
  }
  return found;
}

/// Whether what `op` makes ends in sums and powers, which take an error of an element that is as
/// large as that of a larger one. A root, a logarithm, a quotient and a comparison do not: they ask
/// whether an element is 0.
static bool takesErrors(Operation *op) {
  return llvm::all_of(op->getUsers(), [](Operation *user) {
    if (isa<arith::AddFOp, arith::SubFOp, math::ExpOp, math::Exp2Op>(user))
      return true;
    return isa<arith::MulFOp, arith::NegFOp, arith::MaximumFOp, arith::MinimumFOp,
               arith::MaxNumFOp, arith::MinNumFOp>(user) &&
           takesErrors(user);
  });
}

/// A product of an index tile as f32 and a number, and sums of that with numbers: a multiply-add
/// for each element, with the number's product with the base, which is rounded as what is as far
/// from 0 as the base. A product that goes into a sum with another tile is a factor of a
/// multiply-add as it is.
bool Emitter::emitAffineFloats(Operation *op) {
  if (!isa<arith::MulFOp, arith::AddFOp, arith::SubFOp>(op) ||
      !getElementTypeOrSelf(op->getResult(0).getType()).isF32() ||
      (isa<arith::MulFOp>(op) &&
       llvm::any_of(op->getUsers(), llvm::IsaPred<arith::AddFOp, arith::SubFOp>)) ||
      !takesErrors(op))
    return false;
  auto findIndices = [&](Value value) {
    auto found = affineTiles.find(value);
    return found == affineTiles.end() ? nullptr : &found->second;
  };
  auto getNumber = [&](Value tile) -> Value {
    DenseFPElementsAttr constant;
    if (matchPattern(tile, m_Constant(&constant)) && constant.isSplat())
      return elements(tile).front();
    if (!isa_and_present<tile::SplatOp, tile::BroadcastOp>(tile.getDefiningOp()))
      return {};
    Values numbers = elements(tile);
    return llvm::all_equal(numbers) ? numbers.front() : Value();
  };
  std::optional<AffineFloats> found =
      AffineFloatFinder{builder, loc, findIndices, getNumber}.find(op->getResult(0));
  if (!found)
    return false;
  auto contract = LLVM::FastmathFlagsAttr::get(op->getContext(), LLVM::FastmathFlags::contract);
  Values results;
  for (int64_t offset : found->offsets)
    results.push_back(
        offset == 0 ? found->base
                    : Value(LLVM::FMAOp::create(builder, loc, builder.getF32Type(), f32(offset),
                                                found->unit, found->base, contract)));
  bind(op->getResult(0), std::move(results));
  return true;
}

/// A product of an index tile and a constant.
bool Emitter::scaleAffine(arith::MulIOp op) {
  DenseIntElementsAttr factors;
  if (!matchPattern(op.getRhs(), m_Constant(&factors)) || !factors.isSplat() ||
      !factors.getSplatValue<APInt>().isSignedIntN(32))
    return false;
  int64_t factor = factors.getSplatValue<APInt>().getSExtValue();
  AffineTile tile = affineTiles.lookup(op.getLhs());
  tile.base = LLVM::MulOp::create(builder, loc, tile.base, affineTiles.lookup(op.getRhs()).base);
  for (int64_t &offset : tile.offsets)
    offset *= factor;
  for (int64_t &lane : tile.lanes)
    lane *= factor;
  affineTiles[op] = std::move(tile);
  return true;
}

/// Sums, differences and extensions of index tiles.
bool Emitter::combineAffine(Operation *op) {
  AffineTile result = affineTiles.lookup(op->getOperand(0));
  if (auto extension = dyn_cast<arith::ExtSIOp>(op)) {
    result.base = LLVM::SExtOp::create(builder, loc, builder.getI64Type(), result.base);
    affineTiles[op->getResult(0)] = std::move(result);
    return true;
  }
  if (auto product = dyn_cast<arith::MulIOp>(op))
    return scaleAffine(product);
  if (!isa<arith::AddIOp, arith::SubIOp>(op))
    return false;
  bool isSub = isa<arith::SubIOp>(op);
  const AffineTile b = affineTiles.lookup(op->getOperand(1));
  result.base = isSub ? Value(LLVM::SubOp::create(builder, loc, result.base, b.base))
                      : add(result.base, b.base);
  result.isFar |= b.isFar;
  for (auto [x, y] : llvm::zip_equal(result.offsets, b.offsets))
    x += isSub ? -y : y;
  if (b.lanes.empty())
    result.lanes.clear();
  for (auto [x, y] : llvm::zip(result.lanes, b.lanes)) // nothing where one is not known
    x += isSub ? -y : y;
  affineTiles[op->getResult(0)] = std::move(result);
  return true;
}

/// How much more the base of `a` is than that of `b`, which `op` compares: of 32 bits, the nearest
/// such number where it is another one, which compares alike with all smaller ones.
Value Emitter::differenceOf(arith::CmpIOp op, const AffineTile &a, const AffineTile &b) {
  Type type = a.base.getType();
  bool isWide = type.isInteger(64), mayWrap = isWide || a.isFar || b.isFar;
  if (mayWrap) {
    IntegerRanges ranges;
    mayWrap =
        !ranges.of(op.getLhs()).lessFits(ranges.of(op.getRhs()), type.getIntOrFloatBitWidth());
  }
  Value difference = mayWrap ? LLVM::SSubSat::create(builder, loc, type, a.base, b.base).getResult()
                             : LLVM::SubOp::create(builder, loc, a.base, b.base).getResult();
  return isWide
             ? LLVM::TruncOp::create(builder, loc, builder.getI32Type(), clampTo32Bits(difference))
                   .getResult()
             : difference;
}

/// A comparison of index tiles: a.base + x < b.base + y as a.base - b.base < y - x.
bool Emitter::compareAffine(arith::CmpIOp op) {
  // Order without sign does not survive the subtraction.
  if (op.getPredicate() > arith::CmpIPredicate::sge)
    return false;
  if (!affineTiles.contains(op.getLhs()) || !affineTiles.contains(op.getRhs()))
    return compareWithRows(op);
  const AffineTile a = affineTiles.lookup(op.getLhs()), b = affineTiles.lookup(op.getRhs());
  auto boundOf = [&](size_t i) { return b.offsets[i] - a.offsets[i]; };
  for (size_t i = 0; i < a.offsets.size(); ++i)
    if (!llvm::isInt<31>(boundOf(i)))
      return false;
  Value difference = differenceOf(op, a, b);
  llvm::SmallDenseMap<int64_t, Value> made;
  Values results;
  for (size_t i = 0; i < a.offsets.size(); ++i) {
    Value &result = made[boundOf(i)];
    if (!result)
      result =
          LLVM::ICmpOp::create(builder, loc, static_cast<LLVM::ICmpPredicate>(op.getPredicate()),
                               difference, i32(boundOf(i)));
    results.push_back(result);
  }
  bind(op, std::move(results));
  return true;
}

/// A comparison in 64 bits of an index tile with one that has the same number in many elements: a
/// difference for each number in place of a comparison in 64 bits for each element.
bool Emitter::compareWithRows(arith::CmpIOp op) {
  bool isLeft = affineTiles.contains(op.getLhs());
  if ((!isLeft && !affineTiles.contains(op.getRhs())) ||
      !getElementTypeOrSelf(op.getLhs()).isInteger(64))
    return false;
  const AffineTile tile = affineTiles.lookup(isLeft ? op.getLhs() : op.getRhs());
  const Values rows = elements(isLeft ? op.getRhs() : op.getLhs());
  llvm::SmallSetVector<Value, 8> numbers(rows.begin(), rows.end());
  if (kLeastOfRow * numbers.size() > rows.size() ||
      !llvm::all_of(tile.offsets, [](int64_t offset) { return llvm::isInt<31>(offset); }))
    return false;
  llvm::SmallDenseMap<Value, Value> differences;
  for (Value number : numbers) {
    AffineTile row = AffineTile::ofAll(number, rows.size());
    differences[number] = isLeft ? differenceOf(op, tile, row) : differenceOf(op, row, tile);
  }
  Values results;
  for (auto [number, offset] : llvm::zip_equal(rows, tile.offsets))
    results.push_back(LLVM::ICmpOp::create(builder, loc,
                                           static_cast<LLVM::ICmpPredicate>(op.getPredicate()),
                                           differences[number], i32(isLeft ? -offset : offset)));
  bind(op, std::move(results));
  return true;
}

/// Conversions, sums, products with constants and signed comparisons of index tiles.
bool Emitter::emitAffine(Operation *op) {
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return compareAffine(compare);
  if (op->getNumOperands() == 0 ||
      !llvm::all_of(op->getOperands(), [&](Value value) { return affineTiles.contains(value); }))
    return false;
  auto toFloat = dyn_cast<arith::SIToFPOp>(op);
  if (!toFloat || !getElementTypeOrSelf(toFloat.getType()).isF32())
    return combineAffine(op);
  convertAffine(toFloat);
  return true;
}
