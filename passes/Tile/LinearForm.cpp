//===- LinearForm.cpp - Sums of tiles times scalars -----------------------===//

#include "passes/Tile/LinearForm.h"
#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tessera;
using tile::BroadcastOp;

Value tessera::makeUniform(Value scalar, RankedTensorType type, ImplicitLocOpBuilder &builder) {
  Attribute constant;
  if (matchPattern(scalar, m_Constant(&constant)))
    return arith::ConstantOp::create(builder,
                                     DenseElementsAttr::get(type, ArrayRef<Attribute>(constant)));
  return tile::SplatOp::create(builder, type, scalar);
}

LinearForm::LinearForm(Value value) {
  if (value && isa<ShapedType>(value.getType()))
    terms.push_back({value, {}, false, {}, {}});
  else
    scalar = value;
}

static BroadcastOp getBroadcast(Value tile) {
  return tile ? tile.getDefiningOp<BroadcastOp>() : BroadcastOp();
}

/// What rows or columns have a number of stays apart, so that a scalar can meet it before it meets
/// the tile.
void LinearForm::Term::multiply(Value other, ImplicitLocOpBuilder &builder) {
  BroadcastOp repeated = getBroadcast(other);
  for (Value *own : {&tile, &vector})
    if (BroadcastOp first = getBroadcast(*own);
        first && repeated && first.getAxis() == repeated.getAxis()) {
      Value product = arith::MulFOp::create(builder, first.getSource(), repeated.getSource());
      *own = BroadcastOp::create(builder, first.getType(), product, first.getAxis());
      return;
    }
  if (repeated && !vector)
    vector = other;
  else
    tile = arith::MulFOp::create(builder, tile, other);
}

/// Two tiles times scalars are one tile times their product. A sum keeps its scalars to itself and
/// takes those of the tile that it is multiplied with.
LinearForm LinearForm::multiply(const LinearForm &a, const LinearForm &b, RankedTensorType type,
                                ImplicitLocOpBuilder &builder) {
  if (!a.isProduct() && b.isProduct())
    return multiply(b, a, type, builder);
  if (!a.isProduct())
    return LinearForm(
        arith::MulFOp::create(builder, a.materialize(type, builder), b.materialize(type, builder)));
  LinearForm product = a;
  Term &term = product.terms.front();
  if (!b.isProduct()) {
    term.inner = std::make_shared<const LinearForm>(b);
    return product;
  }
  const Term &other = b.terms.front();
  if (getBroadcast(term.tile) && !getBroadcast(other.tile))
    return multiply(b, a, type, builder);
  for (Value factor : {other.tile, other.vector})
    if (factor)
      term.multiply(factor, builder);
  term.isNegative ^= other.isNegative;
  if (other.factor)
    product.scale(other.factor, builder);
  return product;
}

/// Takes out of both lists what they have in common.
template <typename T>
static SmallVector<T> takeCommon(SmallVectorImpl<T> &a, SmallVectorImpl<T> &b) {
  SmallVector<T> common;
  for (auto *it = a.begin(); it != a.end();) {
    auto *other = llvm::find(b, *it);
    if (other == b.end()) {
      ++it;
      continue;
    }
    common.push_back(*it);
    b.erase(other);
    it = a.erase(it);
  }
  return common;
}

/// Whether a condition is a comparison of floating-point numbers, or made of one.
static bool comparesFloats(Value condition) {
  Operation *op = condition.getDefiningOp();
  if (!op || !getElementTypeOrSelf(condition).isInteger(1))
    return false;
  return isa<arith::CmpFOp>(op) || llvm::any_of(op->getOperands(), comparesFloats);
}

std::optional<LinearForm> LinearForm::choose(Value condition, const LinearForm &a,
                                             const LinearForm &b, RankedTensorType type,
                                             ImplicitLocOpBuilder &builder) {
  LinearForm onTrue = a, onFalse = b, form(Value{});
  form.terms.append(takeCommon(onTrue.terms, onFalse.terms));
  form.choices.append(takeCommon(onTrue.choices, onFalse.choices));
  if (onTrue.isScalar() && onFalse.isScalar()) {
    if (isa<ShapedType>(condition.getType()))
      form.choices.push_back({condition, onTrue.scalar, onFalse.scalar});
    else
      form.scalar = arith::SelectOp::create(builder, condition, onTrue.getScalar(builder),
                                            onFalse.getScalar(builder));
    return form;
  }
  if (!form.isScalar()) {
    Value rest = arith::SelectOp::create(builder, condition, onTrue.materialize(type, builder),
                                         onFalse.materialize(type, builder));
    form.terms.push_back({rest, {}, false, {}, {}});
    return form;
  }
  // The same tile times one of two scalars. By a comparison of scores it is known no earlier than
  // they are, and the factors would take as many registers.
  if (comparesFloats(condition) || !a.isProduct() || !b.isProduct() ||
      a.terms.front().tile != b.terms.front().tile ||
      a.terms.front().vector != b.terms.front().vector)
    return std::nullopt;
  auto getFactor = [&](const Term &term) {
    LinearForm factor(term.factor);
    if (!term.factor)
      factor.scalar = arith::ConstantOp::create(builder, builder.getF32FloatAttr(1.0f));
    if (term.isNegative)
      factor.negate(builder);
    return factor;
  };
  std::optional<LinearForm> factor =
      choose(condition, getFactor(a.terms.front()), getFactor(b.terms.front()), type, builder);
  form.terms.push_back({a.terms.front().tile, {}, false, {}, a.terms.front().vector});
  if (factor->choices.empty())
    form.scale(factor->scalar, builder);
  else
    form.terms.front().inner = std::make_shared<const LinearForm>(*factor);
  return form;
}

/// Whether `inverse` is 1 / `value`.
static bool isInverse(Value inverse, Value value) {
  auto quotient = inverse.getDefiningOp<arith::DivFOp>();
  return quotient && matchPattern(quotient.getLhs(), m_OneFloat()) && quotient.getRhs() == value;
}

/// A factor and its inverse are none: a derivative is multiplied with what its function divided by.
void LinearForm::scale(Value factor, ImplicitLocOpBuilder &builder) {
  for (Term &term : terms)
    if (!term.factor)
      term.factor = factor;
    else if (isInverse(factor, term.factor) || isInverse(term.factor, factor))
      term.factor = Value();
    else
      term.factor = arith::MulFOp::create(builder, term.factor, factor);
  for (Choice &choice : choices)
    for (Value *value : {&choice.first, &choice.second})
      *value = *value ? Value(arith::MulFOp::create(builder, *value, factor)) : Value();
  if (scalar)
    scalar = arith::MulFOp::create(builder, scalar, factor);
}

void LinearForm::negate(ImplicitLocOpBuilder &builder) {
  for (Term &term : terms)
    term.isNegative = !term.isNegative;
  for (Choice &choice : choices)
    for (Value *value : {&choice.first, &choice.second})
      *value = *value ? Value(arith::NegFOp::create(builder, *value)) : Value();
  if (scalar)
    scalar = arith::NegFOp::create(builder, scalar);
}

void LinearForm::add(const LinearForm &other, ImplicitLocOpBuilder &builder) {
  terms.append(other.terms.begin(), other.terms.end());
  choices.append(other.choices.begin(), other.choices.end());
  addScalar(other.scalar, builder);
}

void LinearForm::addScalar(Value value, ImplicitLocOpBuilder &builder) {
  if (scalar && value)
    scalar = arith::AddFOp::create(builder, scalar, value);
  else if (value)
    scalar = value;
}

Value LinearForm::getScalar(ImplicitLocOpBuilder &builder) const {
  return scalar ? scalar : Value(arith::ConstantOp::create(builder, builder.getF32FloatAttr(0.0f)));
}

bool LinearForm::Term::isOf(int64_t axis) const {
  BroadcastOp repeated = getBroadcast(tile);
  return repeated && static_cast<int64_t>(repeated.getAxis()) == axis && !inner && !vector;
}

/// The first choice is between sums with the scalar and what rows have a number of: where its
/// condition does not change in a loop, neither does the sum, and else nothing is added to the
/// choice.
Value LinearForm::materializeChoices(RankedTensorType type, ImplicitLocOpBuilder &builder) const {
  LinearForm early(scalar), rest(Value{});
  for (const Term &term : terms)
    (term.isOf(/*axis=*/1) ? early : rest).terms.push_back(term);
  for (const Choice &choice : choices) {
    auto add = [&](Value value) {
      LinearForm sum = early;
      sum.addScalar(value, builder);
      return sum.materialize(type, builder);
    };
    Value chosen =
        arith::SelectOp::create(builder, choice.condition, add(choice.first), add(choice.second));
    rest.terms.push_back({chosen, {}, false, {}, {}});
    early = LinearForm(Value{});
  }
  return rest.materialize(type, builder);
}

Value LinearForm::takeFactor(ImplicitLocOpBuilder &builder) {
  if (!isProduct())
    return {};
  Term &term = terms.front();
  Value factor = std::exchange(term.factor, Value());
  if (!std::exchange(term.isNegative, false))
    return factor;
  return factor ? Value(arith::NegFOp::create(builder, factor))
                : Value(arith::ConstantOp::create(builder, builder.getF32FloatAttr(-1.0f)));
}

/// A term without its sign, unless it is a product.
Value LinearForm::materialize(const Term &term, RankedTensorType type,
                              ImplicitLocOpBuilder &builder) const {
  if (!term.isProduct())
    return term.tile;
  Value factor = term.factor, product = term.tile;
  bool isNegative = term.isNegative;
  if (BroadcastOp repeated = getBroadcast(term.vector)) {
    Value vector = repeated.getSource();
    auto ofVector = cast<RankedTensorType>(vector.getType());
    if (factor)
      vector = arith::MulFOp::create(builder, vector, makeUniform(factor, ofVector, builder));
    if (std::exchange(isNegative, false))
      vector = arith::NegFOp::create(builder, vector);
    if (vector != repeated.getSource())
      repeated = BroadcastOp::create(builder, type, vector, repeated.getAxis());
    product = arith::MulFOp::create(builder, product, repeated);
    factor = Value();
  }
  if (factor && isNegative)
    factor = arith::NegFOp::create(builder, factor);
  if (!term.inner)
    return factor
               ? Value(arith::MulFOp::create(builder, product, makeUniform(factor, type, builder)))
               : product;
  LinearForm sum = *term.inner;
  if (factor)
    sum.scale(factor, builder);
  else if (isNegative)
    sum.negate(builder);
  return arith::MulFOp::create(builder, product, sum.materialize(type, builder));
}

/// What rows have a number of is multiplied and summed for each row and not for each element.
LinearForm LinearForm::withRowsJoined(RankedTensorType type, ImplicitLocOpBuilder &builder) const {
  LinearForm ofRows(scalar), rest(Value{});
  for (const Term &term : terms)
    (term.isOf(/*axis=*/1) ? ofRows : rest).terms.push_back(term);
  if (ofRows.terms.empty())
    return *this;
  // One to add or to subtract costs as much as a sum of them.
  const Term &only = ofRows.terms.front();
  if (!scalar && ofRows.terms.size() == 1 && !only.factor &&
      !(only.isNegative && rest.terms.empty()))
    return *this;
  rest.terms.push_back(ofRows.joinVectors(type, /*axis=*/1, builder));
  return rest;
}

/// Several numbers of columns are summed for each column. One costs as much with each element, and
/// a loop that goes over columns makes it again.
LinearForm LinearForm::withColumnsJoined(RankedTensorType type,
                                         ImplicitLocOpBuilder &builder) const {
  LinearForm ofColumns(Value{}), rest(scalar);
  for (const Term &term : terms)
    (term.isOf(/*axis=*/0) ? ofColumns : rest).terms.push_back(term);
  if (ofColumns.terms.size() < 2)
    return *this;
  rest.terms.push_back(ofColumns.joinVectors(type, /*axis=*/0, builder));
  return rest;
}

/// The term that is the sum of a form of vectors, which are repeated along `axis`.
LinearForm::Term LinearForm::joinVectors(RankedTensorType type, int64_t axis,
                                         ImplicitLocOpBuilder &builder) const {
  LinearForm vectors = *this;
  RankedTensorType ofVector;
  for (Term &term : vectors.terms) {
    term.tile = term.tile.getDefiningOp<BroadcastOp>().getSource();
    ofVector = cast<RankedTensorType>(term.tile.getType());
  }
  Value sum = vectors.materializeTerms(ofVector, builder);
  return {BroadcastOp::create(builder, type, sum, axis), {}, false, {}, {}};
}

/// The first product begins the sum, then come the scalar and the terms without a factor, then
/// other products: each addition but those of two terms without a factor is contracted into a
/// multiply-add.
Value LinearForm::materializeTerms(RankedTensorType type, ImplicitLocOpBuilder &builder) const {
  if (terms.empty())
    return makeUniform(getScalar(builder), type, builder);
  auto isPositive = [](const Term &term) { return !term.isProduct() && !term.isNegative; };
  const Term *first = llvm::find_if(terms, [](const Term &term) { return term.isProduct(); });
  if (first == terms.end())
    first = llvm::find_if(terms, isPositive);
  if (first == terms.end())
    first = terms.begin();
  Value sum = materialize(*first, type, builder);
  if (!first->isProduct() && first->isNegative)
    sum = arith::NegFOp::create(builder, sum);
  if (scalar)
    sum = arith::AddFOp::create(builder, sum, makeUniform(scalar, type, builder));
  for (const Term &term : terms)
    if (&term != first && !term.isProduct())
      sum = term.isNegative ? Value(arith::SubFOp::create(builder, sum, term.tile))
                            : Value(arith::AddFOp::create(builder, sum, term.tile));
  for (const Term &term : terms)
    if (&term != first && term.isProduct())
      sum = arith::AddFOp::create(builder, materialize(term, type, builder), sum);
  return sum;
}

Value LinearForm::materialize(RankedTensorType type, ImplicitLocOpBuilder &builder) const {
  if (!choices.empty())
    return materializeChoices(type, builder);
  return withRowsJoined(type, builder)
      .withColumnsJoined(type, builder)
      .materializeTerms(type, builder);
}
