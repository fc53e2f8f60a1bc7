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

void LinearForm::scale(Value factor, ImplicitLocOpBuilder &builder) {
  for (Term &term : terms)
    term.factor = term.factor ? arith::MulFOp::create(builder, term.factor, factor) : factor;
}

void LinearForm::negate() {
  for (Term &term : terms)
    term.isNegative = !term.isNegative;
}

/// The first product begins the sum, then come the terms without a factor, then other products:
/// each addition but those of two terms without a factor is contracted into a multiply-add.
Value LinearForm::materialize(RankedTensorType type, ImplicitLocOpBuilder &builder) const {
  auto multiply = [&](const Term &term) -> Value {
    Value factor = term.factor;
    if (term.isNegative)
      factor = arith::NegFOp::create(builder, factor);
    return arith::MulFOp::create(builder, term.tile, makeUniform(factor, type, builder));
  };
  auto hasFactor = [](const Term &term) { return bool(term.factor); };
  auto isPositive = [](const Term &term) { return !term.factor && !term.isNegative; };
  const Term *first = llvm::find_if(terms, hasFactor);
  if (first == terms.end())
    first = llvm::find_if(terms, isPositive);
  if (first == terms.end())
    first = terms.begin();
  Value sum = first->factor       ? multiply(*first)
              : first->isNegative ? Value(arith::NegFOp::create(builder, first->tile))
                                  : first->tile;
  for (const Term &term : terms)
    if (&term != first && !term.factor)
      sum = term.isNegative ? Value(arith::SubFOp::create(builder, sum, term.tile))
                            : Value(arith::AddFOp::create(builder, sum, term.tile));
  for (const Term &term : terms)
    if (&term != first && term.factor)
      sum = arith::AddFOp::create(builder, multiply(term), sum);
  return sum;
}
