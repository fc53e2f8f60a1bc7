//===- ExpandOps.cpp - Operations made of those that the machine has ------===//
//
// Implements tile-expand-ops. See TilePasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/Tile/TilePasses.h"
#include "llvm/ADT/bit.h"
#include <limits>

namespace tessera {
#define GEN_PASS_DEF_TILEEXPANDOPS
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

//===----------------------------------------------------------------------===//
// Products of terms
//===----------------------------------------------------------------------===//

static RankedTensorType withElements(Value tile, Type element) {
  return RankedTensorType::get(cast<RankedTensorType>(tile.getType()).getShape(), element);
}

/// The next term of `rest`, of which it takes what the term leaves; null where nothing is left. Of
/// a transposed tile the term is transposed, as f32 is not.
static Value cutTerm(OpBuilder &builder, Location loc, Value &rest, FloatType element) {
  if (!rest)
    return {};
  if (auto transposed = rest.getDefiningOp<TransposeOp>()) {
    Type type = rest.getType(), ofTerm = withElements(rest, element);
    Value source = transposed.getSource(), term = cutTerm(builder, loc, source, element);
    rest = source ? TransposeOp::create(builder, loc, type, source).getResult() : Value();
    return TransposeOp::create(builder, loc, ofTerm, term);
  }
  if (auto extended = rest.getDefiningOp<arith::ExtFOp>())
    if (getElementTypeOrSelf(extended.getIn().getType()) == element) {
      rest = {};
      return extended.getIn();
    }
  Value term = arith::TruncFOp::create(builder, loc, withElements(rest, element), rest);
  Value wide = arith::ExtFOp::create(builder, loc, rest.getType(), term);
  rest = arith::SubFOp::create(builder, loc, rest, wide);
  return term;
}

/// `dot`, or the outermost loop around it that does not change `operand`.
static Operation *findFirstUse(DotOp dot, Value operand) {
  Operation *first = dot;
  while (auto loop = first->getParentOfType<scf::ForOp>()) {
    if (loop->isAncestor(operand.getParentBlock()->getParentOp()))
      break;
    first = loop;
  }
  return first;
}

/// Writes `dot` as the products of terms that leave as many bits as the terms have together. Those
/// of a second operand are written to shared memory where they are made: once for all steps of a
/// loop that does not change it.
static void expandDot(DotOp dot, DotTerms terms, RewriterBase &rewriter) {
  SmallVector<Value> a, b;
  Value restOfA = dot.getA(), restOfB = dot.getB();
  OpBuilder before(findFirstUse(dot, restOfB));
  for (int64_t i = 0; i < terms.count; ++i) {
    a.push_back(cutTerm(rewriter, dot.getLoc(), restOfA, terms.type));
    b.push_back(cutTerm(before, dot.getLoc(), restOfB, terms.type));
  }
  Value sum = dot.getAcc();
  for (size_t last = terms.count; last-- > 0;)
    for (size_t i = last + 1; i-- > 0;)
      if (a[i] && b[last - i])
        sum = DotOp::create(rewriter, dot.getLoc(), dot.getType(), a[i], b[last - i], sum);
  rewriter.replaceOp(dot, sum);
}

//===----------------------------------------------------------------------===//
// Places of the largest and the smallest
//===----------------------------------------------------------------------===//

/// A mask of the elements that are what `reduction` finds, of which `value` is.
static Value maskFound(ReduceIndexOp reduction, Value value, OpBuilder &builder) {
  Location loc = reduction.getLoc();
  Value source = reduction.getSource();
  Value found = BroadcastOp::create(builder, loc, source.getType(), value, reduction.getAxisAttr());
  Value isFound =
      arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, source, found).getResult();
  if (reduction.getKind() == ReduceKind::max || reduction.getKind() == ReduceKind::min)
    return isFound;
  // Where one is NaN, the result is.
  Value isNaN = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO, source, source);
  return arith::OrIOp::create(builder, loc, isFound, isNaN);
}

static void expandReduceIndex(ReduceIndexOp reduction, RewriterBase &rewriter) {
  Location loc = reduction.getLoc();
  Value source = reduction.getSource();
  IntegerAttr axis = reduction.getAxisAttr();
  Type f32 = rewriter.getF32Type(), i32 = rewriter.getI32Type();
  Value value = ReduceOp::create(rewriter, loc, reduction.getValue().getType(), reduction.getKind(),
                                 source, axis.getInt(), /*limit=*/FloatAttr());
  Value isFound = maskFound(reduction, value, rewriter);

  // The bits of 2^23 + n are those of 2^23, and n.
  const int32_t zeroth = llvm::bit_cast<int32_t>(float(1 << 23));
  auto constant = [&](RankedTensorType type, Attribute number) -> Value {
    return arith::ConstantOp::create(rewriter, loc, DenseElementsAttr::get(type, number));
  };
  auto integer = [&](int32_t number) {
    return constant(cast<RankedTensorType>(reduction.getIndex().getType()),
                    rewriter.getI32IntegerAttr(number));
  };
  Value first = arith::ConstantIndexOp::create(rewriter, loc, zeroth);
  Value places = IotaOp::create(rewriter, loc, withElements(source, i32), first, axis,
                                /*period=*/IntegerAttr());
  Value floats = arith::BitcastOp::create(rewriter, loc, withElements(source, f32), places);
  constexpr float nowhere = std::numeric_limits<float>::infinity();
  Value other = constant(withElements(source, f32), rewriter.getF32FloatAttr(nowhere));
  Value candidates = arith::SelectOp::create(rewriter, loc, isFound, floats, other);
  Value least = ReduceOp::create(rewriter, loc, value.getType(), ReduceKind::min, candidates,
                                 axis.getInt(), /*limit=*/FloatAttr());
  Value bits = arith::BitcastOp::create(rewriter, loc, reduction.getIndex().getType(), least);
  Value place = arith::SubIOp::create(rewriter, loc, bits, integer(zeroth));
  Value isNowhere = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, bits,
                                          integer(llvm::bit_cast<int32_t>(nowhere)));
  Value index = arith::SelectOp::create(rewriter, loc, isNowhere, integer(0), place);
  rewriter.replaceOp(reduction, {value, index});
}

namespace {
struct TileExpandOpsPass : tessera::impl::TileExpandOpsBase<TileExpandOpsPass> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      IRRewriter rewriter(op);
      if (auto dot = dyn_cast<DotOp>(op)) {
        if (std::optional<DotTerms> terms = dot.getTerms())
          expandDot(dot, *terms, rewriter);
      } else if (auto reduction = dyn_cast<ReduceIndexOp>(op)) {
        expandReduceIndex(reduction, rewriter);
      }
    });
  }
};
} // namespace
