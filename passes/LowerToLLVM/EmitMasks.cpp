//===- EmitMasks.cpp - Masks of several comparisons as bits ----------------===//
//
// A comparison of indices is an instruction for each element, and each further one of a mask is
// one more. But along a row its outcome changes once: of the elements that a thread has of a row
// those before, or those from one place on, are true. So several comparisons that all end a row, or
// all begin it, are one with the least or the largest bound. Other masks are a few words, whose
// bits ptxas turns into predicates, seven at a time (R2P).
//
//===----------------------------------------------------------------------===//

#include "passes/LowerToLLVM/Emitter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <map>

using namespace mlir;
using namespace tessera;
using hop::FragmentLayout;
using Predicate = arith::CmpIPredicate;

constexpr int64_t kWordBits = 32;
/// Masks that take fewer instructions an element stay as they are.
constexpr unsigned kLeastComparisons = 2;
/// A word costs some twenty instructions, whatever it has.
constexpr size_t kLeastElements = 8;

/// Elements of a row that a thread has, from the first column on: `run` neighbours at each multiple
/// of `stride`. Both are powers of two.
struct tessera::MaskWord {
  SmallVector<unsigned> elements;
  int64_t run = 1, stride = 1;

  int64_t place(size_t i) const {
    return static_cast<int64_t>(i) / run * stride + static_cast<int64_t>(i) % run;
  }
  /// The least place behind the last element at which a run would begin.
  int64_t end() const { return llvm::divideCeil(elements.size(), run) * stride; }
};

/// Which elements of a word are true: those from place `from` on, up to place `to`, where they are
/// not null; and those whose bits are in `bits`, unless it is null. Places are 0 to the word's end.
struct tessera::MaskBits {
  Value from, to, bits;
};

/// The instructions that a mask takes for each element as it stands; none where it is not a
/// combination of comparisons in order of integers of 32 or 64 bits. Indices are compared with
/// immediates (emitAffine), and others computed for each element first.
std::optional<unsigned> Emitter::countComparisons(Value mask) {
  Operation *op = mask.getDefiningOp();
  if (auto compare = dyn_cast_or_null<arith::CmpIOp>(op)) {
    Predicate predicate = compare.getPredicate();
    bool isOrder = predicate == Predicate::slt || predicate == Predicate::sle ||
                   predicate == Predicate::sgt || predicate == Predicate::sge;
    Type type = getElementTypeOrSelf(compare.getLhs());
    if (!isOrder || !(type.isInteger(32) || type.isInteger(64)))
      return std::nullopt;
    return affineTiles.contains(compare.getLhs()) && affineTiles.contains(compare.getRhs()) ? 1 : 2;
  }
  if (!isa_and_nonnull<arith::AndIOp, arith::OrIOp>(op))
    return std::nullopt;
  std::optional<unsigned> a = countComparisons(op->getOperand(0)),
                          b = countComparisons(op->getOperand(1));
  return a && b ? std::optional(*a + *b) : std::nullopt;
}

/// The words of a tile's masks; none where the elements of a row do not lie in equal runs.
static std::optional<SmallVector<MaskWord>> maskWords(RankedTensorType type) {
  FragmentLayout layout(type);
  std::map<int64_t, SmallVector<unsigned>> rows;
  for (int64_t i = 0; i < layout.size(); ++i)
    rows[layout.offset(i, 0)].push_back(i);
  SmallVector<MaskWord> words;
  auto column = [&](unsigned i) { return layout.offset(i, 1); };
  for (auto &[row, elements] : rows) {
    llvm::sort(elements, [&](unsigned a, unsigned b) { return column(a) < column(b); });
    for (size_t first = 0; first < elements.size(); first += kWordBits) {
      MaskWord word;
      llvm::append_range(word.elements,
                         ArrayRef<unsigned>(elements).drop_front(first).take_front(kWordBits));
      auto placeOf = [&](size_t i) { return column(word.elements[i]) - column(word.elements[0]); };
      size_t size = word.elements.size();
      while (static_cast<size_t>(word.run) < size && placeOf(word.run) == word.run)
        ++word.run;
      word.stride = static_cast<size_t>(word.run) < size ? placeOf(word.run) : word.run;
      for (size_t i = 0; i < size; ++i)
        if (placeOf(i) != word.place(i))
          return std::nullopt;
      if (size < kLeastElements || !llvm::isPowerOf2_64(word.run) ||
          !llvm::isPowerOf2_64(word.stride))
        return std::nullopt;
      words.push_back(std::move(word));
    }
  }
  return words;
}

/// The value that the elements of `word` in `tile` have in common, and what each has more.
std::optional<AffineTile> Emitter::indicesOf(Value tile, const MaskWord &word) {
  AffineTile indices;
  if (auto affine = affineTiles.find(tile); affine != affineTiles.end()) {
    indices.base = affine->second.base;
    indices.isFar = affine->second.isFar;
    for (unsigned i : word.elements)
      indices.offsets.push_back(affine->second.offsets[i]);
    return indices;
  }
  const Values values = elements(tile);
  indices.base = values[word.elements.front()];
  indices.isFar = true;
  indices.offsets.assign(word.elements.size(), 0);
  if (llvm::any_of(word.elements, [&](unsigned i) { return values[i] != indices.base; }))
    return std::nullopt;
  return indices;
}

/// `base` + `offset`, or the nearest of the numbers from 0 to `end`.
Value Emitter::clampedSum(Value base, int64_t offset, int64_t end) {
  Value least = LLVM::SMaxOp::create(builder, loc, base, i32(-offset));
  return add(LLVM::SMinOp::create(builder, loc, least, i32(end - offset)), offset);
}

/// A comparison as one for less: a < b + `more`, or its opposite.
static std::pair<bool, int64_t> asLess(arith::CmpIOp compare) {
  Predicate predicate = compare.getPredicate();
  return {predicate == Predicate::sgt || predicate == Predicate::sge,
          predicate == Predicate::sle || predicate == Predicate::sgt};
}

/// From where on, or up to where, the elements of `word` are true; none where all are or none is.
std::optional<MaskBound> Emitter::boundOf(arith::CmpIOp compare, const MaskWord &word) {
  std::optional<AffineTile> a = indicesOf(compare.getLhs(), word),
                            b = indicesOf(compare.getRhs(), word);
  if (!a || !b)
    return std::nullopt;
  auto difference = [&](size_t i) { return a->offsets[i] - b->offsets[i]; };
  int64_t first = difference(0), slope = difference(1) - first;
  for (size_t i = 0; i < word.elements.size(); ++i)
    if (difference(i) != first + slope * word.place(i))
      return std::nullopt;
  if ((slope != -1 && slope != 1) || !llvm::isInt<30>(first))
    return std::nullopt;
  auto [isOpposite, more] = asLess(compare);
  if (slope == 1) // place < b - a + more - first
    return MaskBound{/*isEnd=*/!isOpposite, differenceOf(compare, *b, *a), more - first};
  // place > a - b + first - more
  return MaskBound{/*isEnd=*/isOpposite, differenceOf(compare, *a, *b), first - more + 1};
}

/// The comparisons that `mask` combines, all of which have to hold; none where it is another mask.
static bool collectConjunction(Value mask, SmallVectorImpl<arith::CmpIOp> &comparisons) {
  Operation *op = mask.getDefiningOp();
  if (auto compare = dyn_cast_or_null<arith::CmpIOp>(op)) {
    comparisons.push_back(compare);
    return true;
  }
  return isa_and_nonnull<arith::AndIOp>(op) && collectConjunction(op->getOperand(0), comparisons) &&
         collectConjunction(op->getOperand(1), comparisons);
}

/// The bounds that `comparisons` are together, the end first, each null where there is none; none
/// where one of them is no bound.
std::optional<MaskBounds> Emitter::joinBounds(ArrayRef<arith::CmpIOp> comparisons,
                                              const MaskWord &word) {
  MaskBounds bounds;
  for (arith::CmpIOp compare : comparisons) {
    std::optional<MaskBound> bound = boundOf(compare, word);
    if (!bound)
      return std::nullopt;
    std::optional<MaskBound> &joined = bounds[bound->isEnd ? 0 : 1];
    if (!joined) {
      joined = bound;
      continue;
    }
    Value other = bound->difference;
    if (int64_t more = bound->more - joined->more)
      other = LLVM::SAddSat::create(builder, loc, other.getType(), other, i32(more));
    joined->difference =
        bound->isEnd ? LLVM::SMinOp::create(builder, loc, joined->difference, other).getResult()
                     : LLVM::SMaxOp::create(builder, loc, joined->difference, other).getResult();
  }
  return bounds;
}

/// Where `compare` is true.
std::optional<MaskBits> Emitter::packComparison(arith::CmpIOp compare, const MaskWord &word) {
  int64_t end = word.end();
  MaskBits found;
  if (std::optional<MaskBound> bound = boundOf(compare, word)) {
    (bound->isEnd ? found.to : found.from) = clampedSum(bound->difference, bound->more, end);
    return found;
  }
  std::optional<AffineTile> a = indicesOf(compare.getLhs(), word),
                            b = indicesOf(compare.getRhs(), word);
  if (!a || !b)
    return std::nullopt;
  int64_t first = a->offsets.front() - b->offsets.front();
  for (size_t i = 0; i < word.elements.size(); ++i)
    if (a->offsets[i] - b->offsets[i] != first)
      return std::nullopt;
  auto [isOpposite, more] = asLess(compare);
  Value holds = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::sgt,
                                     differenceOf(compare, *b, *a), i32(first - more));
  Value place = LLVM::SelectOp::create(builder, loc, holds, i32(end), i32(0));
  (isOpposite ? found.from : found.to) = place;
  return found;
}

/// How many elements of a word are before `place`.
Value Emitter::countBefore(Value place, const MaskWord &word) {
  if (word.run == word.stride)
    return place;
  Value runs = place;
  if (word.stride != 1)
    runs = LLVM::LShrOp::create(builder, loc, runs, i32(llvm::Log2_64(word.stride / word.run)));
  Value whole = LLVM::AndOp::create(builder, loc, runs, i32(-word.run));
  Value within = LLVM::AndOp::create(builder, loc, place, i32(word.stride - 1));
  return add(whole, LLVM::SMinOp::create(builder, loc, within, i32(word.run)));
}

/// The bits of a word, the first element in the lowest.
Value Emitter::toBits(const MaskBits &mask, const MaskWord &word) {
  Value bits = mask.bits;
  auto both = [&](Value other) {
    bits = bits ? Value(LLVM::AndOp::create(builder, loc, bits, other)) : other;
  };
  auto bitsFrom = [&](Value place) -> Value {
    // Shifted by 32 nothing is left, in PTX (9.7.8.9, shl), but not in LLVM.
    Type type = builder.getI32Type();
    return LLVM::InlineAsmOp::create(
               builder, loc, type, ValueRange(countBefore(place, word)), "shl.b32 $0, -1, $1;",
               "=r,r", /*has_side_effects=*/false, /*is_align_stack=*/false,
               LLVM::TailCallKind::None,
               LLVM::AsmDialectAttr::get(builder.getContext(), LLVM::AsmDialect::AD_ATT),
               /*operand_attrs=*/ArrayAttr())
        .getResult(0);
  };
  if (mask.from)
    both(bitsFrom(mask.from));
  if (mask.to)
    both(LLVM::XOrOp::create(builder, loc, bitsFrom(mask.to), i32(-1)));
  return bits;
}

/// The part of `mask` that `word` is of, with its spans joined before they become bits.
std::optional<MaskBits> Emitter::packMask(Value mask, const MaskWord &word) {
  Operation *op = mask.getDefiningOp();
  if (SmallVector<arith::CmpIOp> comparisons; collectConjunction(mask, comparisons))
    if (auto bounds = joinBounds(comparisons, word)) {
      auto placeOf = [&](const std::optional<MaskBound> &bound) {
        return bound ? clampedSum(bound->difference, bound->more, word.end()) : Value();
      };
      return MaskBits{placeOf((*bounds)[1]), placeOf((*bounds)[0]), /*bits=*/Value()};
    }
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return packComparison(compare, word);
  std::optional<MaskBits> a = packMask(op->getOperand(0), word),
                          b = a ? packMask(op->getOperand(1), word) : std::nullopt;
  if (!b)
    return std::nullopt;
  if (isa<arith::OrIOp>(op))
    return MaskBits{{}, {}, LLVM::OrOp::create(builder, loc, toBits(*a, word), toBits(*b, word))};
  auto both = [](Value x, Value y, auto combine) { return x && y ? combine(x, y) : x ? x : y; };
  return MaskBits{
      both(a->from, b->from,
           [&](Value x, Value y) -> Value { return LLVM::SMaxOp::create(builder, loc, x, y); }),
      both(a->to, b->to,
           [&](Value x, Value y) -> Value { return LLVM::SMinOp::create(builder, loc, x, y); }),
      both(a->bits, b->bits,
           [&](Value x, Value y) -> Value { return LLVM::AndOp::create(builder, loc, x, y); })};
}

/// A select by a mask of several comparisons that are all ends or all beginnings: one of them
/// counts in each row, so that an element takes one comparison, as it would for one of them. Where
/// a word is long its bits take fewer instructions.
bool Emitter::emitBounded(arith::SelectOp select, ArrayRef<MaskWord> words) {
  SmallVector<arith::CmpIOp> comparisons;
  if (!collectConjunction(select.getCondition(), comparisons))
    return false;
  SmallVector<MaskBound> bounds;
  for (const MaskWord &word : words) {
    auto joined = word.elements.size() < kWordBits ? joinBounds(comparisons, word) : std::nullopt;
    if (!joined || ((*joined)[0] && (*joined)[1]))
      return false;
    bounds.push_back((*joined)[0] ? *(*joined)[0] : *(*joined)[1]);
  }
  const Values whereTrue = elements(select.getTrueValue()),
               whereFalse = elements(select.getFalseValue());
  Values results(whereTrue.size());
  for (auto [word, bound] : llvm::zip_equal(words, bounds))
    for (auto [i, element] : llvm::enumerate(word.elements)) {
      auto predicate = bound.isEnd ? LLVM::ICmpPredicate::sgt : LLVM::ICmpPredicate::sle;
      Value isTrue = LLVM::ICmpOp::create(builder, loc, predicate, bound.difference,
                                          i32(word.place(i) - bound.more));
      results[element] =
          LLVM::SelectOp::create(builder, loc, isTrue, whereTrue[element], whereFalse[element]);
    }
  bind(select, std::move(results));
  return true;
}

/// A select whose condition is a mask of several comparisons. Each bit is tested right before the
/// element that it chooses: of tests that stand together ptxas makes an instruction each.
bool Emitter::emitMasked(arith::SelectOp select) {
  Value mask = select.getCondition();
  auto type = dyn_cast<RankedTensorType>(mask.getType());
  if (!type || type.getRank() != 2 || countComparisons(mask).value_or(0) < kLeastComparisons)
    return false;
  std::optional<SmallVector<MaskWord>> words = maskWords(type);
  if (!words)
    return false;
  if (emitBounded(select, *words))
    return true;
  Values allBits;
  for (const MaskWord &word : *words) {
    std::optional<MaskBits> packed = packMask(mask, word);
    if (!packed)
      return false;
    allBits.push_back(toBits(*packed, word));
  }
  const Values whereTrue = elements(select.getTrueValue()),
               whereFalse = elements(select.getFalseValue());
  Values results(whereTrue.size());
  for (auto [word, bits] : llvm::zip_equal(*words, allBits))
    for (auto [i, element] : llvm::enumerate(word.elements)) {
      Value bit = LLVM::AndOp::create(builder, loc, bits, i32(static_cast<int32_t>(1u << i)));
      Value isTrue = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, bit, i32(0));
      results[element] =
          LLVM::SelectOp::create(builder, loc, isTrue, whereTrue[element], whereFalse[element]);
    }
  bind(select, std::move(results));
  return true;
}
