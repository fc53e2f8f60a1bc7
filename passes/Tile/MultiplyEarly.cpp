//===- MultiplyEarly.cpp - Products of what no step changes before loops --===//
//
// Implements tile-multiply-early. See TilePasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Tile/TilePasses.h"

namespace tessera {
#define GEN_PASS_DEF_TILEMULTIPLYEARLY
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {
/// A product in the body of a loop, by its factors.
class Product {
public:
  Product(arith::MulFOp root, scf::ForOp loop) : root(root), loop(loop) { add(root); }

  /// Whether a step has fewer multiplications when what no step changes is multiplied before.
  bool isLonger() const { return early.size() > 1 && !late.empty() && inStep > late.size(); }

  /// Whether their type holds the product of the constants that no step changes.
  bool isHeld() const {
    std::optional<APFloat> product;
    for (Value factor : early)
      if (APFloat value(0.0); matchPattern(factor, m_ConstantFloat(&value)))
        product = product ? *product * value : value;
    return !product || product->isNormal();
  }

  /// Multiplies each kind of factors in the order of the program.
  void rewrite() {
    root.emitRemark("multiplied before the loop: ")
        << early.size() << " factors that no step changes; a step multiplies " << late.size()
        << (late.size() == 1 ? " time" : " times") << " in place of " << inStep;
    ImplicitLocOpBuilder before(root.getLoc(), loop), there(root.getLoc(), root);
    Value product = early.front();
    for (Value factor : llvm::drop_begin(early))
      product = arith::MulFOp::create(before, product, factor);
    for (Value factor : late)
      product = arith::MulFOp::create(there, product, factor);
    root.getResult().replaceAllUsesWith(product);
    for (arith::MulFOp part : parts) // From the last one on.
      part.erase();
  }

  void explainRange() {
    root.emitRemark("not multiplied before the loop: the constants that no step changes have a "
                    "product that ")
        << getElementTypeOrSelf(root.getType()) << " does not hold";
  }

private:
  /// Whether `value` is a part of this product alone.
  bool isPart(Value value) const {
    auto part = value.getDefiningOp<arith::MulFOp>();
    return part && part->hasOneUse() && part->getBlock() == root->getBlock();
  }

  /// Adds the factors of a part. Says whether a step changes one of them.
  bool add(arith::MulFOp part) {
    parts.push_back(part);
    bool changes = false;
    for (Value operand : part->getOperands()) {
      if (isPart(operand)) {
        changes |= add(operand.getDefiningOp<arith::MulFOp>());
        continue;
      }
      bool isEarly = loop.isDefinedOutsideOfLoop(operand);
      (isEarly ? early : late).push_back(operand);
      changes |= !isEarly;
    }
    inStep += changes;
    return changes;
  }

  arith::MulFOp root;
  scf::ForOp loop;
  SmallVector<arith::MulFOp> parts;
  SmallVector<Value> early, late;
  /// The multiplications that a step changes.
  size_t inStep = 0;
};

struct TileMultiplyEarlyPass : tessera::impl::TileMultiplyEarlyBase<TileMultiplyEarlyPass> {
  void runOnOperation() override {
    // Inner loops first, so that what leaves one may leave the next.
    getOperation().walk([](scf::ForOp loop) {
      SmallVector<arith::MulFOp> roots;
      for (auto product : loop.getBody()->getOps<arith::MulFOp>())
        if (isRoot(product))
          roots.push_back(product);
      for (arith::MulFOp root : roots)
        if (Product product(root, loop); product.isLonger())
          product.isHeld() ? product.rewrite() : product.explainRange();
    });
  }

private:
  /// A product of few numbers in a thread, that is no factor of another one alone.
  static bool isRoot(arith::MulFOp product) {
    auto tile = dyn_cast<RankedTensorType>(product.getType());
    if (tile && tile.getRank() > 1)
      return false;
    Operation *user = product->hasOneUse() ? *product->user_begin() : nullptr;
    return !isa_and_nonnull<arith::MulFOp>(user) || user->getBlock() != product->getBlock();
  }
};
} // namespace
