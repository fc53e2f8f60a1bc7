//===- ShareReferences.cpp - One number for the rows of a thread ----------===//
//
// Implements tile-share-references. See SumPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Analysis/IndexFunctions.h"
#include "passes/Tile/TilePasses.h"
#include "llvm/ADT/SetVector.h"

namespace tessera {
#define GEN_PASS_DEF_TILESHAREREFERENCES
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {
/// What a sum adds, or takes away.
struct Addend {
  Value value;
  bool isNegative;
};
} // namespace

/// The last of the sums of tiles that `value` goes into, each by its only use.
static Value findSumOf(Value value) {
  while (value.hasOneUse() && isa<arith::AddFOp, arith::SubFOp>(*value.user_begin()))
    value = value.user_begin()->getResult(0);
  return value;
}

/// The addends of `sum`, whose own sums have no other use.
static void findAddends(Value sum, bool isNegative, SmallVectorImpl<Addend> &addends) {
  Operation *op = sum.getDefiningOp();
  if (!isa_and_present<arith::AddFOp, arith::SubFOp>(op)) {
    addends.push_back({sum, isNegative});
    return;
  }
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    bool isTakenAway = isNegative != (isa<arith::SubFOp>(op) && i == 1);
    if (operand.hasOneUse())
      findAddends(operand, isTakenAway, addends);
    else
      addends.push_back({operand, isTakenAway});
  }
}

/// The sum of addends: a product first, other products last, as each addition is contracted with
/// one.
static Value addAll(ArrayRef<Addend> addends, ImplicitLocOpBuilder &builder) {
  auto isProduct = [](const Addend &addend) {
    return addend.value.getDefiningOp<arith::MulFOp>() != nullptr;
  };
  auto isPositive = [](const Addend &addend) { return !addend.isNegative; };
  const auto *first = llvm::find_if(
      addends, [&](const Addend &addend) { return isProduct(addend) && isPositive(addend); });
  if (first == addends.end())
    first = llvm::find_if(addends, isPositive);
  if (first == addends.end())
    first = addends.begin();
  Value sum = first->value;
  if (first->isNegative)
    sum = arith::NegFOp::create(builder, sum);
  for (bool products : {false, true})
    for (const Addend &addend : addends)
      if (&addend != first && isProduct(addend) == products)
        sum = addend.isNegative ? arith::SubFOp::create(builder, sum, addend.value).getResult()
                                : arith::AddFOp::create(builder, sum, addend.value).getResult();
  return sum;
}

/// Whether all elements of `tile` are one number.
static bool isUniform(Value tile) {
  DenseElementsAttr constant;
  return tile.getDefiningOp<SplatOp>() ||
         (matchPattern(tile, m_Constant(&constant)) && constant.isSplat());
}

/// Whether rows of a thread have numbers of `tile` in common: it differs by columns alone, or is a
/// function of one index, as a distance.
static bool isSharedByRows(Value tile) {
  llvm::SetVector<Value> values;
  values.insert(tile);
  for (size_t i = 0; i < values.size(); ++i) {
    Value value = values[i];
    auto broadcast = value.getDefiningOp<BroadcastOp>();
    auto iota = value.getDefiningOp<IotaOp>();
    if (isUniform(value) || (broadcast && broadcast.getAxis() == 0) ||
        (iota && iota.getAxis() == 1) || findIndexOf(value, /*loads=*/true))
      continue;
    std::optional<SmallVector<Value>> operands =
        findElementOperands(value.getDefiningOp(), /*loads=*/false);
    if (!operands || operands->empty())
      return false;
    values.insert(operands->begin(), operands->end());
  }
  return true;
}

namespace {
/// A reference, and the sum over tiles that it is taken away from.
class SharedReference {
public:
  explicit SharedReference(ReferenceOp reference) : reference(reference) {}

  /// Why rows gain nothing by one number; nothing where they do.
  std::optional<StringRef> whyNot();
  void share();

private:
  std::optional<StringRef> findVector(OpOperand &use);
  std::optional<StringRef> findTile();

  ReferenceOp reference;
  /// What rows have one number of, less the reference, and the sum over tiles of which this is one.
  Value vector, sum;
  /// Without the reference, and without the repeated vector.
  SmallVector<Addend> ofRows, addends;
};
} // namespace

/// Removes the addend `value` from `addends`. Whether it is there, once, and taken away or not.
static bool take(Value value, bool isNegative, SmallVectorImpl<Addend> &addends) {
  auto *found = llvm::find_if(addends, [&](const Addend &addend) { return addend.value == value; });
  if (found == addends.end() || found->isNegative != isNegative)
    return false;
  addends.erase(found);
  return llvm::none_of(addends, [&](const Addend &addend) { return addend.value == value; });
}

/// Finds what rows have one number of in the sum that `use` is in, which is repeated.
std::optional<StringRef> SharedReference::findVector(OpOperand &use) {
  vector = isa<BroadcastOp>(use.getOwner()) ? reference.getResult()
                                            : findSumOf(use.getOwner()->getResult(0));
  if (vector != reference.getResult()) {
    if (!vector.hasOneUse() || vector.getParentBlock() != reference->getBlock())
      return "the sum of rows that it is in is used twice, or in another block";
    findAddends(vector, /*isNegative=*/false, ofRows);
    if (!take(reference, /*isNegative=*/true, ofRows))
      return "it is not what a sum takes away, once";
  }
  return std::nullopt;
}

/// Finds the sum of tiles, of which some have numbers in common for rows and others do not.
std::optional<StringRef> SharedReference::findTile() {
  constexpr StringRef isUnclear = "it is taken away from no sum of tiles, or from several";
  BroadcastOp repeated;
  for (Operation *user : vector.getUsers())
    if (auto broadcast = dyn_cast<BroadcastOp>(user)) {
      if (repeated || broadcast.getAxis() != 1 || !broadcast->hasOneUse())
        return isUnclear;
      repeated = broadcast;
    }
  sum = repeated ? findSumOf(repeated) : Value();
  if (!repeated || sum == repeated)
    return isUnclear;
  findAddends(sum, /*isNegative=*/false, addends);
  if (!take(repeated, /*isNegative=*/vector == reference.getResult(), addends))
    return isUnclear;
  auto gains = [](const Addend &addend) {
    return isSharedByRows(addend.value) && !isUniform(addend.value);
  };
  if (llvm::none_of(addends, gains))
    return "no addend has numbers that rows have in common";
  if (llvm::all_of(addends, [](const Addend &addend) { return isSharedByRows(addend.value); }))
    return "rows have all addends in common, and no element is left to add to";
  return std::nullopt;
}

std::optional<StringRef> SharedReference::whyNot() {
  OpOperand *use = nullptr;
  for (OpOperand &each : reference->getUses())
    if (isa<arith::AddFOp, arith::SubFOp, BroadcastOp>(each.getOwner())) {
      if (use)
        return "it is in several sums";
      use = &each;
    }
  if (!use)
    return "it is in no sum";
  if (std::optional<StringRef> reason = findVector(*use))
    return reason;
  if (std::optional<StringRef> reason = findTile())
    return reason;
  // Others get the number that stands behind what rows have one of.
  bool isLast =
      vector == reference.getResult() || llvm::all_of(reference->getUses(), [&](OpOperand &other) {
        Operation *user = reference->getBlock()->findAncestorOpInBlock(*other.getOwner());
        return &other == use || vector.getDefiningOp()->isBeforeInBlock(user);
      });
  return isLast ? std::nullopt
                : std::optional<StringRef>("it is used before the sum of rows that it is in");
}

/// Removes what nothing uses any more, from `value` on.
static void eraseUnused(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !isOpTriviallyDead(op))
    return;
  SmallVector<Value> operands(op->getOperands());
  op->erase();
  llvm::for_each(operands, eraseUnused);
}

void SharedReference::share() {
  reference.emitRemark("rows of a thread share a reference: what they have in common is added once "
                       "for all");
  Operation *last = vector.getDefiningOp();
  ImplicitLocOpBuilder builder(reference.getLoc(), last->getContext());
  builder.setInsertionPointAfter(last);
  // The reference less what rows have one number of is shared, and the reference follows from it.
  SmallVector<Addend> less = {{reference.getSource(), false}};
  for (const Addend &addend : ofRows)
    less.push_back({addend.value, !addend.isNegative});
  Value shared = ReferenceOp::create(builder, addAll(less, builder));
  SmallVector<Addend> all = {{shared, false}};
  all.append(ofRows);
  Value whole = addAll(all, builder);

  builder.setInsertionPointAfterValue(sum);
  SmallVector<Addend> ofAllRows, rest;
  for (const Addend &addend : addends)
    (isSharedByRows(addend.value) ? ofAllRows : rest).push_back(addend);
  auto type = cast<RankedTensorType>(sum.getType());
  ofAllRows.push_back({BroadcastOp::create(builder, type, shared, /*axis=*/1), true});
  rest.push_back({addAll(ofAllRows, builder), false});
  Value replaced = sum;
  replaced.replaceAllUsesWith(addAll(rest, builder));
  reference.replaceAllUsesWith(whole); // First: it goes with its last use.
  eraseUnused(replaced);
  eraseUnused(reference);
}

namespace {
struct TileShareReferencesPass : tessera::impl::TileShareReferencesBase<TileShareReferencesPass> {
  void runOnOperation() override {
    SmallVector<ReferenceOp> references;
    getOperation().walk([&](ReferenceOp reference) { references.push_back(reference); });
    for (ReferenceOp reference : references) {
      // What tile.map repeated before it summed what rows have one of.
      for (Operation *user : llvm::make_early_inc_range(reference->getUsers()))
        if (isOpTriviallyDead(user))
          user->erase();
      SharedReference shared(reference);
      std::optional<StringRef> reason = shared.whyNot();
      if (!reason) {
        shared.share();
        continue;
      }
      reference.emitRemark("each row has a reference of its own: ") << *reason;
      reference.replaceAllUsesWith(reference.getSource());
      reference.erase();
    }
  }
};
} // namespace
