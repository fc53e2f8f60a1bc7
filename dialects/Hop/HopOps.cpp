//===- HopOps.cpp - Operations of the hop dialect -------------------------===//

#include "dialects/Hop/FragmentLayout.h"
#include "dialects/Hop/Hop.h"
#include "dialects/Hop/Machine.h"
#include "dialects/Hop/SharedLayout.h"
#include "dialects/Hop/TimelineLayout.h"
#include "dialects/Tile/TileBox.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::hop;

#include "dialects/Hop/HopInterfaces.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Hop/HopOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

/// What wgmma asks of its operands (PTX ISA 9.7.15.2, "Matrix shape").
static LogicalResult verifyProduct(Operation *op, Type aType, RankedTensorType b,
                                   RankedTensorType acc, bool transposeA, bool transposeB,
                                   int64_t shares = 1) {
  auto shared = dyn_cast<SharedType>(aType);
  RankedTensorType a = shared ? shared.getTile() : cast<RankedTensorType>(aType);
  if (a.getRank() != 2 || acc.getRank() != 2)
    return op->emitOpError("multiplies tiles of rank 2, got ") << a << " into " << acc;
  int64_t m = a.getDimSize(transposeA ? 1 : 0), k = a.getDimSize(transposeA ? 0 : 1),
          kOfB = b.getDimSize(transposeB ? 1 : 0) / shares, n = b.getDimSize(transposeB ? 0 : 1);
  if (k != kOfB || acc.getDimSize(0) != m || acc.getDimSize(1) != n)
    return op->emitOpError("multiplies ") << m << "x" << k << " by " << kOfB << "x" << n << " into "
                                          << acc.getDimSize(0) << "x" << acc.getDimSize(1);
  bool isByte = tile::isByteFloat(a.getElementType());
  bool isMultiplied = isByte || a.getElementType().isF16() || a.getElementType().isBF16() ||
                      a.getElementType().isF32();
  if (a.getElementType() != b.getElementType() || !isMultiplied || !acc.getElementType().isF32())
    return op->emitOpError(
        "multiplies f16, bf16, f8E4M3FN, f8E5M2 or f32 tiles of one type into f32");
  if (m % hopper::mmaRows != 0)
    return op->emitOpError("of a warpgroup has M in multiples of 64, got ")
           << m << "; change the rows of the tile or the number of consumers";
  if (int64_t depth = hopper::mmaDepth(a.getElementTypeBitWidth()); k % depth != 0)
    return op->emitOpError("has K in multiples of ") << depth << ", got " << k;
  LayoutAttr rows = getLayout(acc), ofA = getLayout(a);
  if (!isByte && rows && ofA && rows != ofA)
    return op->emitOpError("has the rows of a fragment a in the result, got ")
           << ofA << " and " << rows;
  // N is a multiple of 8 by the type of b.
  return success();
}

/// What wgmma asks of operands of other than 16 bits: elements along K in shared memory, and of an
/// 8-bit fragment a layout that goes with b.
static LogicalResult verifyOperandsAlongK(MmaIssueOp op) {
  Type element = op.getB().getType().getTile().getElementType();
  if (hopper::mmaTransposes(element.getIntOrFloatBitWidth()))
    return success();
  auto fragment = dyn_cast<RankedTensorType>(op.getA().getType());
  if (op.getTransposeA() || !op.getTransposeB())
    return op.emitOpError("reads ")
           << element.getIntOrFloatBitWidth() << "-bit elements along K, got operand "
           << (op.getTransposeA() ? "a with M" : "b with N") << " innermost";
  if (element.isF32())
    return fragment ? op.emitOpError("reads f32 operands from shared memory, got ") << fragment
                    : success();
  LayoutAttr layout = op.getInAccumulatorOrder() ? LayoutAttr::getByteAccumulator(op.getContext())
                                                 : LayoutAttr::getByteOperand(op.getContext());
  if (fragment ? getLayout(fragment) != layout : op.getInAccumulatorOrder())
    return op.emitOpError("takes an 8-bit fragment a in the layout ")
           << layout << ", got " << op.getA().getType();
  return success();
}

static int64_t warpgroupsOf(Operation *op) {
  auto role = op->getParentOfType<RoleOp>();
  return role ? role.getNumWarpgroups() : 1;
}

RankedTensorType MmaOp::getWholeB() {
  if (auto shared = dyn_cast<SharedType>(getB().getType()))
    return shared.getTile();
  auto share = cast<RankedTensorType>(getB().getType());
  SmallVector<int64_t> shape(share.getShape());
  if (!shape.empty())
    shape.front() *= warpgroupsOf(*this);
  return RankedTensorType::get(shape, share.getElementType());
}

int64_t MmaOp::getContractedShares() {
  bool areBothInRegisters =
      isa<RankedTensorType>(getA().getType()) && isa<RankedTensorType>(getB().getType());
  return areBothInRegisters && getTransposeA() ? warpgroupsOf(*this) : 1;
}

LogicalResult MmaOp::verify() {
  auto acc = cast<RankedTensorType>(getType());
  if (getAcc() && getAcc().getType() != acc)
    return emitOpError("accumulator is ") << getAcc().getType() << ", the result " << acc;
  if (getWholeB().getRank() != 2 || !getSharedLayout(getWholeB()))
    return emitOpError("reads b from shared memory, where its rows are a multiple of 32 bytes and "
                       "their number one of 8; got ")
           << getWholeB();
  return verifyProduct(*this, getA().getType(), getWholeB(), acc, getTransposeA(), getTransposeB(),
                       getContractedShares());
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
  if (getTransposeA() && !isa<SharedType>(getA().getType()))
    return emitOpError("cannot transpose an operand in registers; run hop-stage-operands");
  if (getCopiesA() && isa<SharedType>(getA().getType()))
    return emitOpError("copies registers, and its operand a is in shared memory");
  if (failed(verifyProduct(*this, getA().getType(), getB().getType().getTile(), tile,
                           getTransposeA(), getTransposeB())))
    return failure();
  return verifyOperandsAlongK(*this);
}

LogicalResult MmaWaitOp::verify() {
  if (getFlights().size() != getTiles().size())
    return emitOpError("turns each flight into one tile");
  for (auto [flight, tile] : llvm::zip(getFlights(), getTiles()))
    if (cast<FlightType>(flight.getType()).getTile() != tile.getType())
      return emitOpError("turns ") << flight.getType() << " into " << tile.getType();
  return success();
}

/// Whether `source` and `result` differ in that one of them holds parts of what the other holds.
static bool isPartOf(Type source, Type result) {
  LayoutAttr from = getLayout(source), to = getLayout(result);
  return from && to && from.getPartial() != to.getPartial() && wholeOf(source) == wholeOf(result);
}

LogicalResult RowFactorOp::verify() {
  if (!isPartOf(getSource().getType(), getType()) || !getLayout(getType()).getPartial())
    return emitOpError("takes a whole tile of rank 1 as a partial one, got ")
           << getSource().getType() << " to " << getType();
  return success();
}

LogicalResult ConvertLayoutOp::verify() {
  if (!isPartOf(getSource().getType(), getType()))
    return emitOpError("makes whole elements of parts or parts of whole elements, got ")
           << getSource().getType() << " to " << getType();
  LayoutAttr from = getLayout(getSource().getType());
  if (from.getPartial() && from.getWarpParts() > 1)
    return emitOpError("combines parts of one warp; hop.combine does that of ")
           << from.getWarpParts();
  return success();
}

LogicalResult ColumnsOp::verify() {
  auto tile = cast<RankedTensorType>(getTile().getType()),
       part = cast<RankedTensorType>(getPart().getType());
  bool isPart = tile.getRank() == 2 && part.getRank() == 2 && tile.getElementType().isF32() &&
                part.getElementType().isF32() && tile.getDimSize(0) == part.getDimSize(0) &&
                tile.getDimSize(1) % part.getDimSize(1) == 0 && part.getDimSize(1) % 8 == 0 &&
                tile.getEncoding() == part.getEncoding();
  if (!isPart || !(!tile.getEncoding() || getLayout(tile).isAccumulator()))
    return emitOpError("takes columns of an accumulator, a multiple of 8 that divides their "
                       "number; got ")
           << part << " of " << tile;
  if (int64_t parts = tile.getDimSize(1) / part.getDimSize(1);
      static_cast<int64_t>(getIndex()) >= parts)
    return emitOpError("names part ") << getIndex() << " of " << parts;
  return success();
}

LogicalResult RearrangeOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType()),
       result = cast<RankedTensorType>(getType());
  LayoutAttr from = getLayout(source), to = getLayout(result),
             accumulator = LayoutAttr::getAccumulator(getContext()),
             ofBytes = LayoutAttr::getByteAccumulator(getContext());
  bool isByte = tile::isByteFloat(source.getElementType());
  bool keeps = (from == accumulator && to == ofBytes) || (from == ofBytes && to == accumulator);
  bool exchanges = from == ofBytes && to == LayoutAttr::getByteOperand(getContext());
  if (source.getShape() != result.getShape() ||
      source.getElementType() != result.getElementType() || !(isByte ? exchanges : keeps))
    return emitOpError("takes 8-bit tiles from accumulator8 to operand8, and others from "
                       "accumulator to accumulator8 or back, got ")
           << source << " to " << result;
  return success();
}

LogicalResult TransposeOp::verify() {
  RankedTensorType source = getSource().getType().getTile(),
                   destination = getDestination().getType().getTile();
  if (!tile::isByteFloat(source.getElementType()) ||
      source.getElementType() != destination.getElementType() ||
      source.getDimSize(0) != destination.getDimSize(1) ||
      source.getDimSize(1) != destination.getDimSize(0))
    return emitOpError("writes 8-bit KxN elements as NxK, got ") << source << " to " << destination;
  if (source.getDimSize(0) % 16 != 0 || source.getDimSize(1) % 32 != 0)
    return emitOpError("moves 16x32 elements at a time, got ") << source;
  return success();
}

int64_t CombineOp::getBlockParts(RankedTensorType source, RoleOp role) {
  int64_t blocks = role->getParentOfType<KernelOp>().getTileBlocks();
  return blocks == 1 ? 1 : getLayout(source).getBlockParts(role.getNumWarpgroups());
}

int64_t CombineOp::getWarpParts(RankedTensorType source, RoleOp role) {
  return getLayout(source).getWarpParts() / getBlockParts(source, role);
}

int64_t CombineOp::getSlots(RankedTensorType source, RoleOp role) {
  int64_t copies = getLayout(source).getWarpgroups().empty() ? role.getNumWarpgroups() : 1,
          blocks = getBlockParts(source, role);
  return source.getDimSize(0) * (getWarpParts(source, role) * copies + (blocks == 1 ? 0 : blocks));
}

bool CombineOp::isWithinWarpgroups() {
  return getLayout(getSource().getType()).getWarpgroups().empty() &&
         (*this)->getParentOfType<RoleOp>().getNumWarpgroups() > 1;
}

LogicalResult CombineOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  LayoutAttr layout = getLayout(source);
  auto role = (*this)->getParentOfType<RoleOp>();
  if (!layout || !layout.getPartial() || layout.getWarpParts() == 1 ||
      !source.getElementType().isF32() || !role)
    return emitOpError("combines parts of f32 that several warps of a role hold, got ") << source;
  BufferType exchange = getExchange().getType();
  int64_t slots = getSlots(source, role);
  if (exchange.getTile().getRank() != 1 || exchange.getSlots() < slots)
    return emitOpError("exchanges ") << slots << " values, got " << exchange;
  return success();
}

int64_t FromBlockOp::getSlots(RankedTensorType source, RoleOp role) {
  // Elements of rank 1 that several threads have lie there once.
  if (source.getRank() == 1)
    return source.getDimSize(0) *
           (getLayout(source).getWarpgroups().empty() ? role.getNumWarpgroups() : 1);
  return FragmentLayout(source).size() * hopper::warpgroupThreads * role.getNumWarpgroups();
}

LogicalResult FromBlockOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  auto role = (*this)->getParentOfType<RoleOp>();
  if (!source.getElementType().isF32() || !getLayout(source) || getLayout(source).getPartial() ||
      !role)
    return emitOpError("sends whole elements of f32 that a role holds, got ") << source;
  KernelOp kernel = role->getParentOfType<KernelOp>();
  int64_t blocks = kernel.getClusterSize(), distance = getDistance();
  if ((*this)->getParentOp() != role)
    return emitOpError("stands in a loop or a conditional, and its buffer is written once; put it "
                       "outside of them");
  if (!kernel.getParts() || !llvm::isPowerOf2_64(distance) || distance >= blocks)
    return emitOpError("takes a tile of the block ")
           << distance
           << " before, and the kernel has no parts in clusters of more than a power "
              "of 2 of blocks";
  BufferType buffer = getBuffer().getType();
  if (buffer.getTile().getRank() != 1 || buffer.getSlots() < getSlots(source, role))
    return emitOpError("writes ") << getSlots(source, role) << " values, got " << buffer;
  return success();
}

LogicalResult CombineAllOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  auto role = (*this)->getParentOfType<RoleOp>();
  if (!source.getElementType().isF32() || getLayout(source).getPartial() || !role)
    return emitOpError("combines whole elements of f32 that a role holds, got ") << source;
  BufferType exchange = getExchange().getType();
  int64_t warps = role.getNumWarpgroups() * hopper::warpgroupWarps;
  if (exchange.getTile().getRank() != 1 || exchange.getSlots() < warps)
    return emitOpError("exchanges a value of each of ") << warps << " warps, got " << exchange;
  return success();
}

int64_t ScanOp::getWarpSpan(RankedTensorType source, int64_t axis) {
  LayoutAttr layout = getLayout(source);
  int64_t span = 0;
  for (ArrayRef<LayoutDigit> digits : {layout.getWarps(), layout.getWarpgroups()})
    for (const LayoutDigit &digit : digits)
      if (digit.moves(axis))
        span = span ? std::min(span, digit.steps[axis]) : digit.steps[axis];
  return span;
}

int64_t ScanOp::getSlots(RankedTensorType source, int64_t axis, int64_t warpgroups) {
  int64_t span = getWarpSpan(source, axis);
  if (!span)
    return 0;
  int64_t copies = getLayout(source).getWarpgroups().empty() ? warpgroups : 1,
          words = llvm::divideCeil(source.getElementTypeBitWidth(), 8 * hopper::registerBytes);
  return source.getNumElements() / span * words * copies;
}

bool ScanOp::isWithinWarpgroups() {
  return getLayout(getSource().getType()).getWarpgroups().empty() &&
         (*this)->getParentOfType<RoleOp>().getNumWarpgroups() > 1;
}

LogicalResult ScanOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  LayoutAttr layout = getLayout(source);
  auto role = (*this)->getParentOfType<RoleOp>();
  if (!layout || layout.getPartial() || getAxis() >= static_cast<uint64_t>(source.getRank()) ||
      !role || !getWarpSpan(source, getAxis()))
    return emitOpError(
               "scans whole elements along an axis that several warps of a role share, got ")
           << source;
  BufferType exchange = getExchange().getType();
  int64_t slots = getSlots(source, getAxis(), role.getNumWarpgroups());
  if (exchange.getTile().getRank() != 1 || exchange.getSlots() < slots)
    return emitOpError("exchanges ") << slots << " values, got " << exchange;
  return success();
}

//===----------------------------------------------------------------------===//
// Timelines
//===----------------------------------------------------------------------===//

LogicalResult TimelineOp::verify() {
  if ((*this)->getParentOfType<KernelOp>().getTimeline() != *this)
    return emitOpError("is the second of its kernel; a kernel records one timeline");
  if (getBlocks() < 1 || getBlocks() > INT32_MAX || getFirst() > INT32_MAX - getBlocks())
    return emitOpError("records one or more thread blocks with numbers below 2^31");
  if (getEvents() < 2 || !llvm::isPowerOf2_64(getEvents()))
    return emitOpError("keeps a power of two of events, got ") << getEvents();
  // Offsets have 32 bits, as they live in registers.
  constexpr uint64_t mostBytes = uint64_t(1) << 31;
  uint64_t records = std::max<int64_t>((*this)->getParentOfType<KernelOp>().getNumRecords(), 1);
  if (getEvents() > mostBytes ||
      getBlocks() > mostBytes / timeline::recordBytes(getEvents()) / records)
    return emitOpError("takes more than 2^31 bytes for ")
           << getBlocks() << " thread blocks of " << records << " warpgroups with " << getEvents()
           << " events each; record fewer";
  if (static_cast<int64_t>(getStages().size()) > timeline::maxStages)
    return emitOpError("has ") << getStages().size()
                               << " stages, an event holds the number of one of "
                               << timeline::maxStages;
  return success();
}

LogicalResult MarkOp::verify() {
  auto kernel = (*this)->getParentOfType<KernelOp>();
  TimelineOp timeline = kernel ? kernel.getTimeline() : TimelineOp();
  if (!timeline)
    return emitOpError("is in a kernel without hop.timeline");
  if (getStage() >= timeline.getStages().size())
    return emitOpError("enters stage ") << getStage() << " of " << timeline.getStages().size();
  return success();
}
