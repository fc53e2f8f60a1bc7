//===- LinearForm.cpp - Sums of tiles times scalars -----------------------===//

#include "passes/Tile/LinearForm.h"
#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tessera;

Value tessera::makeUniform(Value scalar, RankedTensorType type, ImplicitLocOpBuilder &builder) {
  Attribute constant;
  if (matchPattern(scalar, m_Constant(&constant)))
    return arith::ConstantOp::create(builder,
                                     DenseElementsAttr::get(type, ArrayRef<Attribute>(constant)));
  return tile::SplatOp::create(builder, type, scalar);
}

LinearForm::LinearForm(Value value) {
  if (isa<ShapedType>(value.getType()))
    terms.push_back({value, {}, false, {}});
  else
    scalar = value;
}

/// Two tiles times scalars are one tile times their product. A sum keeps its scalars to itself and
/// takes those of the tile that it is multiplied with.
LinearForm LinearForm::multiply(const LinearForm &a, const LinearForm &b, RankedTensorType type,
                                ImplicitLocOpBuilder &builder) {
  if (!a.isSingle() && b.isSingle())
    return multiply(b, a, type, builder);
  if (!a.isSingle())
    return LinearForm(
        arith::MulFOp::create(builder, a.materialize(type, builder), b.materialize(type, builder)));
  LinearForm product = a;
  Term &term = product.terms.front();
  if (!b.isSingle()) {
    term.inner = std::make_shared<const LinearForm>(b);
    return product;
  }
  const Term &other = b.terms.front();
  term.tile = arith::MulFOp::create(builder, term.tile, other.tile);
  term.isNegative ^= other.isNegative;
  if (other.factor)
    product.scale(other.factor, builder);
  return product;
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
  if (scalar)
    scalar = arith::MulFOp::create(builder, scalar, factor);
}

void LinearForm::negate(ImplicitLocOpBuilder &builder) {
  for (Term &term : terms)
    term.isNegative = !term.isNegative;
  if (scalar)
    scalar = arith::NegFOp::create(builder, scalar);
}

void LinearForm::add(const LinearForm &other, ImplicitLocOpBuilder &builder) {
  terms.append(other.terms.begin(), other.terms.end());
  if (scalar && other.scalar)
    scalar = arith::AddFOp::create(builder, scalar, other.scalar);
  else if (other.scalar)
    scalar = other.scalar;
}

/// A term without its sign, unless it is a product.
Value LinearForm::materialize(const Term &term, RankedTensorType type,
                              ImplicitLocOpBuilder &builder) const {
  if (!term.isProduct())
    return term.tile;
  Value factor = term.factor;
  if (factor && term.isNegative)
    factor = arith::NegFOp::create(builder, factor);
  if (!term.inner)
    return arith::MulFOp::create(builder, term.tile, makeUniform(factor, type, builder));
  LinearForm sum = *term.inner;
  if (factor)
    sum.scale(factor, builder);
  else if (term.isNegative)
    sum.negate(builder);
  return arith::MulFOp::create(builder, term.tile, sum.materialize(type, builder));
}

/// The first product begins the sum, then come the scalar and the terms without a factor, then
/// other products: each addition but those of two terms without a factor is contracted into a
/// multiply-add.
Value LinearForm::materialize(RankedTensorType type, ImplicitLocOpBuilder &builder) const {
  if (terms.empty())
    return makeUniform(scalar, type, builder);
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
