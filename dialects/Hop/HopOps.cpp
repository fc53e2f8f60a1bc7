//===- HopOps.cpp - Operations of the hop dialect -------------------------===//

#include "dialects/Hop/Hop.h"
#include "dialects/Hop/SharedLayout.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::hop;

#define GET_OP_CLASSES
#include "dialects/Hop/HopOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

int64_t KernelOp::getNumWarpgroups() {
  int64_t warpgroups = 0;
  for (RoleOp role : getBody().getOps<RoleOp>())
    warpgroups += role.getWarpgroups();
  return warpgroups;
}

LogicalResult KernelOp::verify() {
  if (getBody().getNumArguments() != getNumArguments() + getGrid().size())
    return emitOpError("body takes the arguments and one index per grid dimension");
  int64_t registers = 0, warpgroups = getNumWarpgroups();
  for (RoleOp role : getBody().getOps<RoleOp>())
    registers += role.getWarpgroups() * 128 * static_cast<int64_t>(role.getRegisters().value_or(0));
  // PTX ISA 9.7.20.5: setmaxnreg moves registers within the 65536 of the thread block.
  if (registers > 65536)
    return emitOpError("roles ask for ")
           << registers << " registers, a multiprocessor has 65536; lower the registers of a role";
  if (warpgroups > 8)
    return emitOpError("has ") << warpgroups << " warpgroups, a thread block has at most 8";
  return success();
}

LogicalResult RoleOp::verify() {
  if (getBody().getNumArguments() != 1 || !getBody().getArgument(0).getType().isIndex())
    return emitOpError("body takes the index of the warpgroup within the role");
  if (getWarpgroups() < 1)
    return emitOpError("has at least one warpgroup");
  if (getKind() == RoleKind::Producer && getWarpgroups() != 1)
    return emitOpError("of a producer has one warpgroup, got ") << getWarpgroups();
  return success();
}

LogicalResult SliceOp::verify() {
  SharedType source = getSource().getType(), result = getResult().getType();
  int64_t rows = result.getTile().getDimSize(0);
  if (source.getStoredRows() != result.getStoredRows() ||
      source.getTile().getDimSize(1) != result.getTile().getDimSize(1) ||
      source.getTile().getDimSize(0) % rows != 0)
    return emitOpError("takes equal parts of the rows of its source");
  // A slice starts at a whole repeat of the swizzle.
  if (rows % 8 != 0)
    return emitOpError("takes rows in multiples of 8, got ") << rows;
  return success();
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

/// What wgmma asks of its operands (PTX ISA 9.7.15.2, "Matrix shape").
static LogicalResult verifyProduct(Operation *op, Type aType, SharedType b, RankedTensorType acc,
                                   bool transposeA, bool transposeB) {
  auto shared = dyn_cast<SharedType>(aType);
  RankedTensorType a = shared ? shared.getTile() : cast<RankedTensorType>(aType);
  int64_t m = a.getDimSize(transposeA ? 1 : 0), k = a.getDimSize(transposeA ? 0 : 1),
          kOfB = b.getTile().getDimSize(transposeB ? 1 : 0),
          n = b.getTile().getDimSize(transposeB ? 0 : 1);
  if (k != kOfB || acc.getDimSize(0) != m || acc.getDimSize(1) != n)
    return op->emitOpError("multiplies ") << m << "x" << k << " by " << kOfB << "x" << n << " into "
                                          << acc.getDimSize(0) << "x" << acc.getDimSize(1);
  if (a.getElementType() != b.getTile().getElementType() || a.getElementTypeBitWidth() != 16 ||
      !acc.getElementType().isF32())
    return op->emitOpError("multiplies f16 or bf16 tiles of one type into f32");
  if (m % 64 != 0)
    return op->emitOpError("of a warpgroup has M in multiples of 64, got ")
           << m << "; change the rows of the tile or the number of consumers";
  if (k % 16 != 0)
    return op->emitOpError("has K in multiples of 16, got ") << k;
  if (n % 8 != 0)
    return op->emitOpError("has N in multiples of 8, got ") << n;
  if (!shared && transposeA)
    return op->emitOpError("cannot transpose an operand in registers");
  if (!shared && getLayout(a) != LayoutKind::Accumulator)
    return op->emitOpError("takes a in registers in the accumulator layout, got ") << a;
  for (SharedType type : {shared, b})
    if (type && !getSharedLayout(type.getTile(), type.getStoredRows()))
      return op->emitOpError("reads a tile whose rows are no multiple of 32 bytes or whose row "
                             "count is none of 8: ")
             << type;
  return success();
}

LogicalResult MmaOp::verify() {
  auto acc = cast<RankedTensorType>(getType());
  if (getLayout(acc) != LayoutKind::Accumulator)
    return emitOpError("result is in the accumulator layout, got ") << acc;
  if (getAcc() && getAcc().getType() != acc)
    return emitOpError("accumulator is ") << getAcc().getType() << ", the result " << acc;
  return verifyProduct(*this, getA().getType(), getB().getType(), acc, getTransposeA(),
                       getTransposeB());
}

LogicalResult MmaIssueOp::verify() {
  RankedTensorType tile = getFlight().getType().getTile();
  if (getAcc()) {
    auto flight = dyn_cast<FlightType>(getAcc().getType());
    if ((flight ? Type(flight.getTile()) : getAcc().getType()) != tile)
      return emitOpError("accumulator is ") << getAcc().getType() << ", the flight " << tile;
  }
  if (!getFlight().hasOneUse())
    return emitOpError("flight is used once, by the next product, a wait or a loop; it has ")
           << std::distance(getFlight().use_begin(), getFlight().use_end()) << " uses";
  return verifyProduct(*this, getA().getType(), getB().getType(), tile, getTransposeA(),
                       getTransposeB());
}

LogicalResult MmaWaitOp::verify() {
  if (getFlights().size() != getTiles().size())
    return emitOpError("turns each flight into one tile");
  for (auto [flight, tile] : llvm::zip(getFlights(), getTiles()))
    if (cast<FlightType>(flight.getType()).getTile() != tile.getType())
      return emitOpError("turns ") << flight.getType() << " into " << tile.getType();
  return success();
}

LogicalResult ConvertLayoutOp::verify() {
  auto from = getLayout(getSource().getType()), to = getLayout(getType());
  bool known = (from == LayoutKind::RowPartial && to == LayoutKind::Row) ||
               (from == LayoutKind::Row && to == LayoutKind::RowPartial);
  auto source = cast<RankedTensorType>(getSource().getType());
  auto result = cast<RankedTensorType>(getType());
  if (!known || source.getShape() != result.getShape() ||
      source.getElementType() != result.getElementType())
    return emitOpError("converts a row tile to row_partial or back, got ")
           << getSource().getType() << " to " << getType();
  return success();
}
