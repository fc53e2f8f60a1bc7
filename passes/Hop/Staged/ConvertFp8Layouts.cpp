//===- ConvertFp8Layouts.cpp - Operands of 8-bit products -----------------===//
//
// Implements hop-convert-fp8-layouts. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "passes/Hop/HopPasses.h"
#include "llvm/ADT/MapVector.h"

namespace tessera {
#define GEN_PASS_DEF_CONVERTFP8LAYOUTS
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

/// Rewrites the products of one role.
class OperandConverter {
public:
  explicit OperandConverter(hop::RoleOp role) : role(role) {}

  LogicalResult run() {
    SmallVector<hop::MmaOp> products;
    role.walk([&](hop::MmaOp mma) {
      if (tile::isByteFloat(mma.getWholeB().getElementType()))
        products.push_back(mma);
    });
    for (hop::MmaOp product : products)
      if (failed(convert(product)))
        return failure();
    return success();
  }

private:
  LogicalResult convert(hop::MmaOp mma) {
    // A transposer has made b.
    if (mma.getInAccumulatorOrder())
      return success();
    auto fragment = dyn_cast<RankedTensorType>(mma.getA().getType());
    if (mma.getTransposeA())
      return refuse(mma, "a is stored as KxM and would have to be MxK");
    if (!mma.getTransposeB() && !fragment)
      return refuse(mma, "b is stored as KxN and would have to be NxK");
    OpBuilder builder(mma);
    if (!mma.getTransposeB()) {
      transposeB(mma, builder);
    } else if (fragment) {
      Type type = hop::withLayout(fragment, hop::LayoutAttr::getByteOperand(mma.getContext()));
      Value operand = hop::RearrangeOp::create(builder, mma.getLoc(), type, mma.getA());
      mma.getAMutable().assign(operand);
    }
    return success();
  }

  static LogicalResult refuse(hop::MmaOp mma, StringRef operand) {
    return mma.emitError("multiplies elements of 8 bits, which wgmma reads along the contracted "
                         "dimension alone: operand ")
           << operand;
  }

  /// All threads of the warpgroup have read and written before one of them gives the slot back or
  /// starts the product.
  void transposeB(hop::MmaOp mma, OpBuilder &builder) {
    Value own = getBuffer(mma.getWholeB());
    hop::TransposeOp::create(builder, mma.getLoc(), mma.getB(), own);
    Operation *met = hop::WarpgroupSyncOp::create(builder, mma.getLoc());
    Value slot = mma.getB();
    mma.getBMutable().assign(own);
    if (llvm::all_of(slot.getUsers(), llvm::IsaPred<hop::TransposeOp, hop::PipeReleaseOp>))
      for (Operation *user : llvm::to_vector(slot.getUsers()))
        if (isa<hop::PipeReleaseOp>(user) && user->getBlock() == met->getBlock() &&
            met->isBeforeInBlock(user))
          user->moveAfter(met);
    mma.setTransposeB(true);
    mma.setInAccumulatorOrder(true);
  }

  /// The share of each warpgroup in the memory for transposed tiles of the type of `tile`, one at a
  /// time.
  Value getBuffer(RankedTensorType tile) {
    Value &share = shares[tile];
    if (share)
      return share;
    int64_t rows = tile.getDimSize(1) * role.getNumWarpgroups(), columns = tile.getDimSize(0);
    auto typeOf = [&](int64_t ofRows) {
      auto type = RankedTensorType::get({ofRows, columns}, tile.getElementType());
      return hop::SharedType::get(role.getContext(), type, rows);
    };
    OpBuilder builder(role);
    auto staging = hop::StagingOp::create(builder, role.getLoc(), typeOf(rows), "transposed",
                                          /*offset=*/IntegerAttr());
    builder.setInsertionPointToStart(&role.getBody().front());
    share = hop::SliceOp::create(builder, role.getLoc(), typeOf(tile.getDimSize(1)),
                                 staging.getTile(), role.getBody().getArgument(0));
    return share;
  }

  hop::RoleOp role;
  llvm::MapVector<Type, Value> shares; ///< by the type of the tile that is transposed
};

struct ConvertFp8LayoutsPass : tessera::impl::ConvertFp8LayoutsBase<ConvertFp8LayoutsPass> {
  void runOnOperation() override {
    for (auto role : llvm::make_early_inc_range(getOperation().getBody().getOps<hop::RoleOp>()))
      if (failed(OperandConverter(role).run()))
        return signalPassFailure();
  }
};

} // namespace
