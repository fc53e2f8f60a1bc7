//===- HopOps.cpp - Operations of the hop dialect -------------------------===//

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
// Shared memory
//===----------------------------------------------------------------------===//

/// Refuses what blocks of a cluster do together where a cluster has one block.
static LogicalResult verifyInCluster(Operation *op, int64_t blocks) {
  auto kernel = op->getParentOfType<KernelOp>();
  int64_t size = kernel ? kernel.getClusterSize() : 1;
  if (size == 1)
    return op->emitOpError("needs a kernel whose schedule has cluster = 2 or 4");
  if (blocks < 1 || blocks > size)
    return op->emitOpError("names ") << blocks << " blocks of a cluster of " << size;
  return success();
}

/// A tile that the blocks of a cluster load in parts.
static LogicalResult verifyParts(Operation *op, RankedTensorType tile) {
  if (failed(verifyInCluster(op, 1)))
    return failure();
  int64_t size = op->getParentOfType<KernelOp>().getClusterSize();
  if (!holdsValue(tile) && !splitAmong(*getSharedLayout(tile), size))
    return op->emitOpError("cannot divide ")
           << tile << " among " << size
           << " blocks in whole chunks of columns or in multiples of 8 rows";
  return success();
}

LogicalResult PipeCreateOp::verify() {
  if (auto leader = getLeader() ? getLeader().getDefiningOp<PipeCreateOp>() : PipeCreateOp()) {
    if (leader.getLeader())
      return emitOpError("goes with a pipe that goes with another one; name that one");
    if (leader.getMulticast() || getMulticast())
      return emitOpError("goes with another pipe, and blocks of a cluster fill one of the two "
                         "together; leave out with");
    if (leader.getPipe().getType().getSlots() != getPipe().getType().getSlots())
      return emitOpError("has ") << getPipe().getType().getSlots()
                                 << " slots and goes with a pipe of "
                                 << leader.getPipe().getType().getSlots() << "; give both as many";
  }
  return getMulticast() ? verifyParts(*this, getPipe().getType().getTile()) : success();
}

LogicalResult BarrierArriveOp::verify() {
  if (getCopies() && (getAll() || getBlocks()))
    return emitOpError(
        "arrives when copies have come, of every thread and at this block's barrier; "
        "leave out all and blocks");
  return getBlocks() ? verifyInCluster(*this, *getBlocks()) : success();
}

/// A copy between shared memory and a view at `indices`.
static LogicalResult verifyCopy(Operation *op, RankedTensorType tile, Value view,
                                OperandRange indices, std::optional<ArrayRef<int64_t>> box) {
  auto type = cast<tile::ViewType>(view.getType());
  auto argument = dyn_cast<BlockArgument>(view);
  if (!argument || !isa_and_nonnull<KernelOp>(argument.getOwner()->getParentOp()))
    return op->emitOpError("takes its view straight from the kernel's arguments");
  if (type.getRank() < 2 || static_cast<int64_t>(indices.size()) != type.getRank())
    return op->emitOpError("takes a view of rank 2 or more and one index per dimension of it; got ")
           << indices.size() << " for " << type;
  if (type.getElementType() != tile.getElementType())
    return op->emitOpError("copies ") << tile << " from or to a view of " << type.getElementType();
  return tile::verifyBox(op, type, tile, box);
}

/// Slots of one value, which lie at a multiple of 8 bytes as mbarriers do.
constexpr int64_t valueBytes = 4, valueAlignment = 8;

int64_t BufferOp::getSharedBytes() {
  BufferType type = getBuffer().getType();
  return type.getSlots() *
         (holdsValue(type.getTile()) ? valueBytes : getSharedLayout(type.getTile())->bytes());
}

int64_t BufferOp::getSharedAlignment() {
  RankedTensorType tile = getBuffer().getType().getTile();
  return holdsValue(tile) ? valueAlignment : getSharedLayout(tile)->atomBytes();
}

int64_t StagingOp::getSharedBytes() {
  SharedType type = getTile().getType();
  return getSharedLayout(type.getTile(), type.getStoredRows())->bytes();
}

int64_t StagingOp::getSharedAlignment() {
  SharedType type = getTile().getType();
  return getSharedLayout(type.getTile(), type.getStoredRows())->atomBytes();
}

int64_t BarriersOp::getSharedBytes() {
  return hopper::mbarrierBytes * getBarriers().getType().getSlots();
}

int64_t BarriersOp::getSharedAlignment() { return hopper::mbarrierBytes; }

LogicalResult hop::verifyPlace(Operation *op) {
  auto memory = cast<SharedMemoryOpInterface>(op);
  std::optional<uint64_t> offset = memory.getOffset();
  if (!offset)
    return success();
  int64_t alignment = memory.getSharedAlignment();
  if (*offset % alignment != 0 || *offset > INT32_MAX)
    return op->emitOpError("starts at a multiple of ")
           << alignment << " bytes below 2^31, got " << static_cast<int64_t>(*offset);
  std::optional<uint64_t> all = op->getParentOfType<KernelOp>().getSharedBytes();
  int64_t end = static_cast<int64_t>(*offset) + memory.getSharedBytes();
  if (all && end > static_cast<int64_t>(*all))
    return op->emitOpError("ends at byte ") << end << " of the kernel's " << *all;
  return success();
}

LogicalResult BufferOp::verify() {
  if (getZeroed() && getBuffer().getType().getTile().getNumElements() != 1)
    return emitOpError("is zeroed, which only slots of one value can be; got ")
           << getBuffer().getType();
  return success();
}

LogicalResult PipeLoadOp::verify() {
  return verifyCopy(*this, getPipe().getType().getTile(), getView(), getIndices(), getBox());
}

LogicalResult L2PrefetchOp::verify() {
  auto argument = dyn_cast<BlockArgument>(getView());
  if (!argument || !isa_and_nonnull<KernelOp>(argument.getOwner()->getParentOp()))
    return emitOpError("takes its view straight from the kernel's arguments");
  auto view = cast<tile::ViewType>(getView().getType());
  if (static_cast<int64_t>(getIndices().size()) != view.getRank())
    return emitOpError("takes one index per dimension of the view; got ")
           << getIndices().size() << " for " << view;
  return success();
}

LogicalResult BulkLoadOp::verify() {
  RankedTensorType tile = getDestination().getType().getTile();
  if (failed(verifyCopy(*this, tile, getView(), getIndices(), getBox())))
    return failure();
  if (!getMulticast())
    return success();
  if (failed(verifyParts(*this, tile)))
    return failure();
  int64_t blocks = (*this)->getParentOfType<KernelOp>().getClusterSize();
  tile::TileBox box(cast<tile::ViewType>(getView().getType()), tile, getBox());
  if (!box.slice(splitAmong(*getSharedLayout(tile), blocks)->ofRows))
    return emitOpError("cannot divide the rows of the box [")
           << *getBox() << "] among " << blocks << " blocks in parts that are boxes";
  return success();
}

LogicalResult BulkStoreOp::verify() {
  Type element = getSource().getType().getTile().getElementType();
  if (getAdd() && !element.isF32())
    return emitOpError("adds elements of f32, got ") << element;
  int64_t inFlight = getInFlight();
  if (inFlight < 0 || inFlight > 7)
    return emitOpError("leaves 0 to 7 copies in flight, got ") << inFlight;
  Value source = getSource();
  while (auto slice = source.getDefiningOp<SliceOp>())
    source = slice.getSource();
  if (inFlight && !source.getDefiningOp<StagingOp>())
    return emitOpError(
        "leaves copies in flight that read a slot, which is given back when they are "
        "done; copy from hop.staging");
  return verifyCopy(*this, getSource().getType().getTile(), getView(), getIndices(), getBox());
}

template <typename Op>
static LogicalResult verifyTicket(Op op) {
  auto view = cast<tile::ViewType>(op.getView().getType());
  ArrayRef<int64_t> tile = op.getTile();
  if (tile.empty() || static_cast<int64_t>(tile.size()) > view.getRank() ||
      llvm::any_of(tile, [](int64_t extent) { return extent < 1; }))
    return op.emitOpError("has tiles of 1 to ")
           << view.getRank() << " positive extents, the last ones of the view, got [" << tile
           << "]";
  return success();
}

LogicalResult TicketWaitOp::verify() { return verifyTicket(*this); }
LogicalResult TicketPassOp::verify() { return verifyTicket(*this); }

/// The tile in one slot of a pipe or buffer of `tile`.
static LogicalResult verifySlotType(Operation *op, RankedTensorType tile, SharedType type) {
  if (holdsValue(tile))
    return op->emitOpError("gives the tile of a slot, and one of ") << tile << " holds a value";
  SharedType expected = SharedType::get(op->getContext(), tile, tile.getDimSize(0));
  if (type != expected)
    return op->emitOpError("gives the tile of a slot, ") << expected << ", got " << type;
  return success();
}

LogicalResult PipeWaitOp::verify() {
  return verifySlotType(*this, getPipe().getType().getTile(), getTile().getType());
}

LogicalResult SlotOp::verify() {
  return verifySlotType(*this, getBuffer().getType().getTile(), getTile().getType());
}

/// The wait that ends the flight of `issue`; null when a loop carries it.
static MmaWaitOp waitOf(MmaIssueOp issue) {
  while (issue && issue.getFlight().hasOneUse()) {
    Operation *user = *issue.getFlight().user_begin();
    if (auto wait = dyn_cast<MmaWaitOp>(user))
      return wait;
    issue = dyn_cast<MmaIssueOp>(user);
  }
  return {};
}

/// Reports a product that reads `tile` and may still be in flight at `release`, which hands its
/// slot on, and a write or a store of it that comes later.
static LogicalResult verifyUsesDone(Operation *release, Value tile) {
  auto isBefore = [&](Operation *op) {
    Operation *ancestor = release->getBlock()->findAncestorOpInBlock(*op);
    return ancestor && ancestor->isBeforeInBlock(release);
  };
  for (Operation *user : tile.getUsers()) {
    if (isa<SliceOp, OverlayOp>(user) && failed(verifyUsesDone(release, user->getResult(0))))
      return failure();
    if (isa<StageOp, GatherOp, BulkStoreOp>(user) && !isBefore(user)) {
      InFlightDiagnostic diag = release->emitOpError("gives a slot away that is used later");
      diag.attachNote(user->getLoc()) << "the use";
      return diag;
    }
    auto issue = dyn_cast<MmaIssueOp>(user);
    if (!issue || !issue.getFlight().hasOneUse())
      continue;
    MmaWaitOp wait = waitOf(issue);
    if (wait && isBefore(wait))
      continue;
    InFlightDiagnostic diag =
        release->emitOpError("gives a slot away that a product in flight reads; wait for it first");
    diag.attachNote(issue.getLoc()) << "the product";
    return diag;
  }
  return success();
}

LogicalResult PipePeekOp::verify() {
  if (failed(verifySlotType(*this, getPipe().getType().getTile(), getTile().getType())))
    return failure();
  // It may be given back as soon as another block runs.
  for (Operation *user : getTile().getUsers()) {
    auto issue = dyn_cast<MmaIssueOp>(user);
    MmaWaitOp wait = issue && issue.getFlight().hasOneUse() ? waitOf(issue) : MmaWaitOp();
    if (user->getBlock() == (*this)->getBlock() && (!issue || wait))
      continue;
    InFlightDiagnostic diag =
        emitOpError("is of a slot that a later wait gives back, and is read beyond its block");
    diag.attachNote(user->getLoc()) << "the use";
    return diag;
  }
  return success();
}

LogicalResult PipeReleaseOp::verify() {
  auto wait = getTile().getDefiningOp<PipeWaitOp>();
  if (!wait || wait.getPipe() != getPipe())
    return emitOpError("takes the result of a hop.pipe.wait on the same pipe");
  return verifyUsesDone(*this, getTile());
}

LogicalResult PipeAcquireOp::verify() {
  if (failed(verifySlotType(*this, getPipe().getType().getTile(), getTile().getType())))
    return failure();
  if (auto pipe = getPipe().getDefiningOp<PipeCreateOp>(); pipe && pipe.getMulticast())
    return emitOpError("writes a slot of this block alone, and the blocks of a cluster fill the "
                       "multicast pipe together; use another pipe");
  SmallVector<Operation *> commits =
      llvm::filter_to_vector(getTile().getUsers(), llvm::IsaPred<PipeCommitOp>);
  if (commits.size() != 1 || commits.front()->getBlock() != (*this)->getBlock())
    return emitOpError("is of a slot that one hop.pipe.commit in the same block hands on; it has ")
           << commits.size() << (commits.size() == 1 ? ", in another block" : "");
  if (isFilledByCopies() &&
      !llvm::all_of(getTile().getUsers(), llvm::IsaPred<GatherOp, PipeCommitOp>))
    return emitOpError("is of a slot that hop.gather fills, whose threads hand it on before the "
                       "copies have come; nothing else can use it");
  return success();
}

bool PipeAcquireOp::isFilledByCopies() {
  return llvm::any_of(getTile().getUsers(), llvm::IsaPred<GatherOp>);
}

RankedTensorType GatherOp::getCopiedType() {
  return withLayout(getDestination().getType().getTile(), getLayoutAttr());
}

LogicalResult GatherOp::verify() {
  RankedTensorType tile = getDestination().getType().getTile();
  if (failed(verifyCopy(*this, tile, getView(), getIndices(), /*box=*/std::nullopt)))
    return failure();
  if (!getDestination().getDefiningOp<PipeAcquireOp>() && !getDestination().getDefiningOp<SlotOp>())
    return emitOpError("fills a whole slot of a pipe, the result of hop.pipe.acquire");
  auto rows = cast<RankedTensorType>(getRows().getType());
  if (rows.getRank() != 1 || rows.getDimSize(0) != tile.getDimSize(0) ||
      !(rows.getElementType().isInteger(32) || rows.getElementType().isInteger(64)))
    return emitOpError("takes the number of each of ")
           << tile.getDimSize(0) << " rows, i32 or i64, from a tile of rank 1, got " << rows;
  if (!getLayout())
    return success();
  if (getLayoutAttr().getRank() != 2 || getLayoutAttr().getSlice(0) != hop::getLayout(rows))
    return emitOpError("copies by another layout than that of the numbers of its rows, ") << rows;
  if (int64_t bytes = getLayoutAttr().getRun() * tile.getElementTypeBitWidth() / 8;
      bytes % hopper::widestAccess != 0)
    return emitOpError("copies ") << hopper::widestAccess << " bytes at a time, and its layout has "
                                  << bytes << " in a thread";
  return success();
}

LogicalResult PipeCommitOp::verify() {
  auto acquire = getTile().getDefiningOp<PipeAcquireOp>();
  if (!acquire || acquire.getPipe() != getPipe())
    return emitOpError("takes the result of a hop.pipe.acquire on the same pipe");
  return verifyUsesDone(*this, getTile());
}

LogicalResult FetchOp::verify() {
  RankedTensorType source = getSource().getType().getTile(), tile = getTile().getType();
  if (source.getShape() != tile.getShape() || source.getElementType() != tile.getElementType())
    return emitOpError("reads a tile as it is in shared memory, ") << source << ", got " << tile;
  bool isBytes = tile.getRank() == 2 && tile::isByteFloat(tile.getElementType());
  if (unsigned bits = tile.getElementTypeBitWidth(); !isBytes && bits != 16 && bits != 32)
    return emitOpError("reads elements of 2 or 4 bytes, or floats of 1 as a tile of rank 2, got ")
           << tile;
  return success();
}

LogicalResult StageOp::verify() {
  auto tile = cast<RankedTensorType>(getTile().getType());
  RankedTensorType destination = getDestination().getType().getTile();
  unsigned bits = tile.getElementTypeBitWidth();
  SmallVector<int64_t> shape(tile.getShape());
  if (getTransposed())
    std::reverse(shape.begin(), shape.end());
  if (ArrayRef<int64_t>(shape) != destination.getShape() ||
      tile.getElementType() != destination.getElementType() || (bits != 16 && bits != 32))
    return emitOpError("writes a tile of 16 or 32 bits to one of its ")
           << (getTransposed() ? "type and transposed shape" : "shape and type") << ", got " << tile
           << " to " << destination;
  if (getTransposed() && bits != 16)
    return emitOpError("transposes tiles of 16 bits (stmatrix.trans), got ") << tile;
  return success();
}

LogicalResult SliceOp::verify() {
  SharedType source = getSource().getType(), result = getResult().getType();
  int64_t rows = result.getTile().getDimSize(0), columns = result.getTile().getDimSize(1);
  if (source.getStoredRows() != result.getStoredRows() ||
      source.getTile().getDimSize(0) % rows != 0 || source.getTile().getDimSize(1) % columns != 0)
    return emitOpError("takes equal parts of its source");
  if (isOfColumns()) {
    if (source.getTile().getDimSize(0) != rows)
      return emitOpError("takes parts of rows or of columns, not of both");
    SharedLayout whole = *getSharedLayout(source.getTile(), source.getStoredRows());
    if (columns % whole.chunkColumns() != 0)
      return emitOpError("takes columns in whole chunks of ")
             << whole.chunkColumns() << ", got " << columns;
  }
  // A slice starts at a whole repeat of the swizzle.
  if (rows % 8 != 0)
    return emitOpError("takes rows in multiples of 8, got ") << rows;
  return success();
}

LogicalResult OverlayOp::verify() {
  if (getSlots().empty() || !llvm::all_equal(getSlots().getTypes()))
    return emitOpError("lies over slots of one type");
  auto slot = cast<SharedType>(getSlots().front().getType());
  SharedType result = getResult().getType();
  // The types' verifiers have checked that there are layouts.
  if (tilesInSlot(*getSharedLayout(slot.getTile(), slot.getStoredRows()),
                  *getSharedLayout(result.getTile(), result.getStoredRows())) == 0)
    return emitOpError("finds no room for ") << result << " in a slot of " << slot;
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
  if (a.getRank() != 2 || acc.getRank() != 2)
    return op->emitOpError("multiplies tiles of rank 2, got ") << a << " into " << acc;
  int64_t m = a.getDimSize(transposeA ? 1 : 0), k = a.getDimSize(transposeA ? 0 : 1),
          kOfB = b.getTile().getDimSize(transposeB ? 1 : 0),
          n = b.getTile().getDimSize(transposeB ? 0 : 1);
  if (k != kOfB || acc.getDimSize(0) != m || acc.getDimSize(1) != n)
    return op->emitOpError("multiplies ") << m << "x" << k << " by " << kOfB << "x" << n << " into "
                                          << acc.getDimSize(0) << "x" << acc.getDimSize(1);
  bool isByte = tile::isByteFloat(a.getElementType());
  if (a.getElementType() != b.getTile().getElementType() ||
      (a.getElementTypeBitWidth() != 16 && !isByte) || !acc.getElementType().isF32())
    return op->emitOpError("multiplies f16, bf16, f8E4M3FN or f8E5M2 tiles of one type into f32");
  if (m % hopper::mmaRows != 0)
    return op->emitOpError("of a warpgroup has M in multiples of 64, got ")
           << m << "; change the rows of the tile or the number of consumers";
  if (int64_t depth = hopper::mmaDepth(a.getElementTypeBitWidth()); k % depth != 0)
    return op->emitOpError("has K in multiples of ") << depth << ", got " << k;
  // N is a multiple of 8 by the type of b.
  return success();
}

/// What wgmma asks of 8-bit operands: elements along K in shared memory (PTX ISA 9.7.15.3, the
/// transposition flags are of 16-bit types), and of a fragment a layout that goes with b.
static LogicalResult verifyByteOperands(MmaIssueOp op) {
  if (!tile::isByteFloat(op.getB().getType().getTile().getElementType()))
    return success();
  auto fragment = dyn_cast<RankedTensorType>(op.getA().getType());
  if (op.getTransposeA() || !op.getTransposeB())
    return op.emitOpError("reads 8-bit elements along K, got operand ")
           << (op.getTransposeA() ? "a with M" : "b with N") << " innermost";
  LayoutAttr layout = op.getInAccumulatorOrder() ? LayoutAttr::getByteAccumulator(op.getContext())
                                                 : LayoutAttr::getByteOperand(op.getContext());
  if (fragment ? getLayout(fragment) != layout : op.getInAccumulatorOrder())
    return op.emitOpError("takes an 8-bit fragment a in the layout ")
           << layout << ", got " << op.getA().getType();
  return success();
}

LogicalResult MmaOp::verify() {
  auto acc = cast<RankedTensorType>(getType());
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
  if (getTransposeA() && !isa<SharedType>(getA().getType()))
    return emitOpError("cannot transpose an operand in registers; run hop-stage-operands");
  if (getCopiesA() && isa<SharedType>(getA().getType()))
    return emitOpError("copies registers, and its operand a is in shared memory");
  if (failed(verifyProduct(*this, getA().getType(), getB().getType(), tile, getTransposeA(),
                           getTransposeB())))
    return failure();
  return verifyByteOperands(*this);
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

int64_t CombineOp::getSlots(RankedTensorType source, int64_t warpgroups) {
  LayoutAttr layout = getLayout(source);
  int64_t copies = layout.getWarpgroups().empty() ? warpgroups : 1;
  return source.getDimSize(0) * layout.getWarpParts() * copies;
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
  int64_t slots = getSlots(source, role.getNumWarpgroups());
  if (exchange.getTile().getRank() != 1 || exchange.getSlots() < slots)
    return emitOpError("exchanges ") << slots << " values, got " << exchange;
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
