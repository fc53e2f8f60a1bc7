//===- Reductions.cpp - What parts of reductions come to ------------------===//

#include "dialects/Tile/Reductions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera::tile;

Value tessera::tile::combine(OpBuilder &builder, Location loc, ReduceKind kind, Value left,
                             Value right) {
  switch (kind) {
  case ReduceKind::sum:
    return arith::AddFOp::create(builder, loc, left, right);
  case ReduceKind::max:
    return arith::MaxNumFOp::create(builder, loc, left, right);
  case ReduceKind::min:
    return arith::MinNumFOp::create(builder, loc, left, right);
  case ReduceKind::maximum:
    return arith::MaximumFOp::create(builder, loc, left, right);
  case ReduceKind::minimum:
    return arith::MinimumFOp::create(builder, loc, left, right);
  case ReduceKind::product:
    return arith::MulFOp::create(builder, loc, left, right);
  }
  return {};
}

std::optional<ReduceKind> tessera::tile::findCombined(Operation *op) {
  return TypeSwitch<Operation *, std::optional<ReduceKind>>(op)
      .Case([](arith::AddFOp) { return ReduceKind::sum; })
      .Case([](arith::MaxNumFOp) { return ReduceKind::max; })
      .Case([](arith::MinNumFOp) { return ReduceKind::min; })
      .Case([](arith::MaximumFOp) { return ReduceKind::maximum; })
      .Case([](arith::MinimumFOp) { return ReduceKind::minimum; })
      .Default([](Operation *) { return std::nullopt; });
}
