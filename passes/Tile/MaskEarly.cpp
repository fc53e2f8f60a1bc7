//===- MaskEarly.cpp - Masks and maxima before what keeps the order -------===//
//
// Implements tile-mask-early. See TilePasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Requirements.h"
#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/Tile/LinearForm.h"
#include "passes/Tile/TilePasses.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace tessera {
#define GEN_PASS_DEF_TILEMASKEARLY
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

//===----------------------------------------------------------------------===//
// What is known of numbers
//===----------------------------------------------------------------------===//

/// The number that `value` is, or that all of its elements are.
static std::optional<APFloat> getUniformConstant(Value value) {
  if (auto broadcast = value.getDefiningOp<BroadcastOp>())
    return getUniformConstant(broadcast.getSource());
  FloatAttr number;
  if (matchPattern(value, m_Constant(&number)))
    return number.getValue();
  DenseFPElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)) && elements.isSplat())
    return elements.getSplatValue<APFloat>();
  return std::nullopt;
}

/// What `requires` says that an argument of the kernel is above.
static std::optional<double> getRequiredBound(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto kernel = argument ? dyn_cast<KernelOp>(argument.getOwner()->getParentOp()) : KernelOp();
  if (!kernel || argument.getArgNumber() >= kernel.getNumArguments())
    return std::nullopt;
  FloatAttr bound =
      findBound(kernel.getRequirements(), kernel.getArgumentName(argument.getArgNumber()));
  return bound ? std::optional(bound.getValueAsDouble()) : std::nullopt;
}

/// A number below which `value`, an f32 or a tile of such, is not, and that is no subnormal; none
/// where there is no positive one. So what it multiplies keeps its order, and an infinity stays,
/// unless it is NaN.
static std::optional<double> getPositiveBound(Value value) {
  std::optional<double> bound;
  Operation *made = value.getDefiningOp();
  if (std::optional<APFloat> number = getUniformConstant(value)) {
    if (!number->isNaN())
      bound = number->convertToDouble();
  } else if (isa_and_nonnull<SplatOp, BroadcastOp>(made)) {
    bound = getPositiveBound(made->getOperand(0));
  } else if (isa_and_nonnull<arith::MulFOp>(made)) {
    std::optional<double> lhs = getPositiveBound(made->getOperand(0));
    std::optional<double> rhs = getPositiveBound(made->getOperand(1));
    if (lhs && rhs)
      bound = *lhs * *rhs;
  } else if (isa_and_nonnull<arith::MaximumFOp, arith::MaxNumFOp>(made)) {
    // One that is not known may be anything.
    bound = std::max(getPositiveBound(made->getOperand(0)), getPositiveBound(made->getOperand(1)));
  } else {
    bound = getRequiredBound(value);
  }
  double smallest = APFloat::getSmallestNormalized(APFloat::IEEEsingle()).convertToDouble();
  return bound && *bound >= smallest ? bound : std::nullopt;
}

/// Whether no element of `value` is -inf or NaN. What a loop carries is not where neither its start
/// nor what an iteration makes of such a number is: `assumed` holds what `value` is asked for.
static bool isAboveMinusInfinity(Value value, SmallPtrSet<Value, 4> assumed = {}) {
  if (std::optional<APFloat> number = getUniformConstant(value))
    return !number->isNaN() && !(number->isInfinity() && number->isNegative());
  if (auto broadcast = value.getDefiningOp<BroadcastOp>())
    return isAboveMinusInfinity(broadcast.getSource(), assumed);
  // The larger one, whatever the other one is: of a number and NaN it is the number.
  if (auto larger = value.getDefiningOp<arith::MaxNumFOp>())
    return isAboveMinusInfinity(larger.getLhs(), assumed) ||
           isAboveMinusInfinity(larger.getRhs(), assumed);
  if (auto choice = value.getDefiningOp<arith::SelectOp>()) {
    auto compare = choice.getCondition().getDefiningOp<arith::CmpFOp>();
    bool isLarger = compare && compare.getPredicate() == arith::CmpFPredicate::OGT &&
                    compare.getLhs() == choice.getTrueValue();
    return (isLarger || isAboveMinusInfinity(choice.getTrueValue(), assumed)) &&
           isAboveMinusInfinity(choice.getFalseValue(), assumed);
  }
  auto argument = dyn_cast<BlockArgument>(value);
  auto loop = argument ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()) : nullptr;
  if (!loop || argument == loop.getInductionVar())
    return false;
  if (!assumed.insert(value).second)
    return true;
  return isAboveMinusInfinity(loop.getTiedLoopInit(argument)->get(), assumed) &&
         isAboveMinusInfinity(loop.getTiedLoopYieldedValue(argument)->get(), assumed);
}

/// The operand of a product that the other one, a positive number, multiplies; null of others.
static OpOperand *getScaled(arith::MulFOp product) {
  if (getPositiveBound(product.getRhs()))
    return &product.getLhsMutable();
  return getPositiveBound(product.getLhs()) ? &product.getRhsMutable() : nullptr;
}

static bool isMinusInfinity(Value value) {
  std::optional<APFloat> number = getUniformConstant(value);
  return number && number->isInfinity() && number->isNegative();
}

/// The scalar that all elements of `tile` are; null where they are not known to be one.
static Value getScalar(Value tile, ImplicitLocOpBuilder &builder) {
  if (auto splat = tile.getDefiningOp<SplatOp>())
    return splat.getSource();
  std::optional<APFloat> number = getUniformConstant(tile);
  return number ? arith::ConstantOp::create(
                      builder, builder.getFloatAttr(getElementTypeOrSelf(tile), *number))
                      .getResult()
                : Value();
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

namespace {
/// x - 0 is x.
struct DropZero : OpRewritePattern<arith::SubFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::SubFOp op, PatternRewriter &rewriter) const override {
    std::optional<APFloat> number = getUniformConstant(op.getRhs());
    if (!number || !number->isPosZero())
      return failure();
    rewriter.replaceOp(op, op.getLhs());
    return success();
  }
};

/// The mask of what is computed of a tile, by an operation that keeps -inf, becomes a mask of it.
struct MaskOperand : OpRewritePattern<arith::SelectOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::SelectOp op, PatternRewriter &rewriter) const override {
    Operation *made = op.getTrueValue().getDefiningOp();
    if (!made || !made->hasOneUse() || made->getBlock() != op->getBlock() ||
        !isMinusInfinity(op.getFalseValue()) || !isa<RankedTensorType>(op.getType()))
      return failure();
    OpOperand *masked = nullptr;
    if (auto product = dyn_cast<arith::MulFOp>(made))
      masked = getScaled(product);
    else if (auto less = dyn_cast<arith::SubFOp>(made); less && isAboveMinusInfinity(less.getRhs()))
      masked = &less.getLhsMutable();
    if (!masked)
      return failure();
    auto select = arith::SelectOp::create(rewriter, op.getLoc(), op.getCondition(), masked->get(),
                                          op.getFalseValue());
    Operation *again = rewriter.clone(*made);
    rewriter.modifyOpInPlace(
        again, [&] { again->setOperand(masked->getOperandNumber(), select.getResult()); });
    rewriter.replaceOp(op, again->getResult(0));
    return success();
  }
};

/// The largest or smallest of products with one positive number, of all or of each row, is a
/// product with it.
struct ScaleReduced : OpRewritePattern<ReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReduceOp op, PatternRewriter &rewriter) const override {
    auto product = op.getSource().getDefiningOp<arith::MulFOp>();
    OpOperand *scaled = op.getKind() != ReduceKind::sum && product ? getScaled(product) : nullptr;
    if (!scaled)
      return failure();
    Value factor = product->getOperand(1 - scaled->getOperandNumber());
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    Value scalar = getScalar(factor, builder);
    auto ofRows = factor.getDefiningOp<BroadcastOp>();
    if (!scalar && !(ofRows && ofRows.getAxis() == op.getAxis()))
      return failure();
    auto type = cast<RankedTensorType>(op.getType());
    Value reduced = ReduceOp::create(builder, type, op.getKind(), scaled->get(), op.getAxis(),
                                     /*limit=*/FloatAttr());
    rewriter.replaceOpWithNewOp<arith::MulFOp>(
        op, reduced, scalar ? makeUniform(scalar, type, builder) : ofRows.getSource());
    return success();
  }
};

/// A sum of a product with a positive number and of another product, of which a mask or a maximum
/// is taken, is that number times a sum: the mask and the maximum go before it. As many operations
/// as before, but for a division of scalars.
struct ScaleSum : OpRewritePattern<arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::AddFOp op, PatternRewriter &rewriter) const override {
    if (!llvm::any_of(op->getUsers(), [](Operation *user) {
          auto reduce = dyn_cast<ReduceOp>(user);
          auto select = dyn_cast<arith::SelectOp>(user);
          return (reduce && reduce.getKind() != ReduceKind::sum) ||
                 (select && isMinusInfinity(select.getFalseValue()));
        }))
      return failure();
    for (unsigned i : {0, 1})
      if (succeeded(scale(op, op->getOperand(i), op->getOperand(1 - i), rewriter)))
        return success();
    return failure();
  }

private:
  /// `sum` is `scaled`, a product or one less a number, plus `other`, another product.
  static LogicalResult scale(arith::AddFOp sum, Value scaled, Value other,
                             PatternRewriter &rewriter) {
    auto less = scaled.getDefiningOp<arith::SubFOp>();
    auto product = (less ? less.getLhs() : scaled).getDefiningOp<arith::MulFOp>();
    auto bias = other.getDefiningOp<arith::MulFOp>();
    OpOperand *x = product && product.getType() == sum.getType() ? getScaled(product) : nullptr;
    if (!x || !bias || (less && !less->hasOneUse()))
      return failure();
    Value unit = product->getOperand(1 - x->getOperandNumber());
    ImplicitLocOpBuilder builder(sum.getLoc(), rewriter);
    // Numbers of the program: what is a constant folds elsewhere.
    auto scalar = unit.getDefiningOp<SplatOp>(), factor = bias.getRhs().getDefiningOp<SplatOp>();
    if (!scalar || !factor)
      return failure();
    Value relative = arith::DivFOp::create(builder, factor.getSource(), scalar.getSource());
    auto type = cast<RankedTensorType>(bias.getType());
    Value part =
        arith::MulFOp::create(builder, bias.getLhs(), makeUniform(relative, type, builder));
    Value inner = arith::AddFOp::create(builder, part, x->get());
    Value result = arith::MulFOp::create(builder, inner, unit);
    if (less)
      result = arith::SubFOp::create(builder, result, less.getRhs());
    rewriter.replaceOp(sum, result);
    return success();
  }
};

struct TileMaskEarlyPass : tessera::impl::TileMaskEarlyBase<TileMaskEarlyPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<DropZero, MaskOperand, ScaleReduced, ScaleSum>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns)))) {
      getOperation().emitError("masks of this kernel do not settle: please report it");
      signalPassFailure();
    }
  }
};
} // namespace
