//===- HopPipes.cpp - Pipes, slots and copies ------------------------------===//
//
// Verifiers of what is in shared memory and what moves tiles into it and out of it.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/Hop.h"
#include "dialects/Hop/Machine.h"
#include "dialects/Hop/SharedLayout.h"
#include "dialects/Tile/TileBox.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::hop;

/// Refuses what blocks of a cluster do together where a cluster has one block.
static LogicalResult verifyInCluster(Operation *op, int64_t blocks) {
  auto kernel = op->getParentOfType<KernelOp>();
  int64_t size = kernel ? kernel.getClusterSize() : 1;
  if (size == 1)
    return op->emitOpError("needs a kernel whose schedule has cluster = 2, 4 or exchange");
  if (blocks < 1 || blocks > size)
    return op->emitOpError("names ") << blocks << " blocks of a cluster of " << size;
  return success();
}

/// The rows in a run of what fills the pipe `op`, if it comes in runs.
static std::optional<uint64_t> runOf(Operation *op) {
  if (auto pipe = dyn_cast<PipeCreateOp>(op))
    for (Operation *user : pipe.getPipe().getUsers())
      if (auto load = dyn_cast<PipeLoadOp>(user); load && load.getRun())
        return load.getRun();
  return std::nullopt;
}

/// A tile that the blocks of a cluster load in parts.
static LogicalResult verifyParts(Operation *op, RankedTensorType tile) {
  if (failed(verifyInCluster(op, 1)))
    return failure();
  int64_t size = op->getParentOfType<KernelOp>().getClusterSize();
  if (std::optional<uint64_t> run = runOf(op)) {
    return tile.getDimSize(0) % (size * static_cast<int64_t>(*run)) == 0
               ? success()
               : op->emitOpError("cannot divide ")
                     << tile << " among " << size << " blocks in whole runs of " << *run << " rows";
  }
  if (!holdsValue(tile) && !splitAmong(*getSharedLayout(tile), size))
    return op->emitOpError("cannot divide ")
           << tile << " among " << size
           << " blocks in whole chunks of columns or in multiples of 8 rows";
  return success();
}

/// Refuses an exchange where blocks of a cluster make none.
static LogicalResult verifyInPair(Operation *op) {
  auto kernel = op->getParentOfType<KernelOp>();
  if (!kernel || kernel.getSchedule().getCluster() != tile::ClusterKind::Exchange)
    return op->emitOpError("needs a kernel whose schedule has cluster = exchange");
  return success();
}

/// Tiles that two blocks write for each other.
static LogicalResult verifyExchanged(PipeCreateOp pipe) {
  if (pipe.getMulticast() || pipe.getLeader())
    return pipe.emitOpError("is written by threads of both blocks, and no load fills it; leave out "
                            "multicast and with");
  RankedTensorType tile = pipe.getPipe().getType().getTile();
  if (holdsValue(tile) || tile.getRank() != 2 || tile.getDimSize(0) % 16 != 0)
    return pipe.emitOpError("has slots of two tiles, one below the other, of a multiple of 8 rows "
                            "each; got ")
           << tile;
  return verifyInPair(pipe);
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
  if (getExchanged())
    return verifyExchanged(*this);
  return getMulticast() ? verifyParts(*this, getPipe().getType().getTile()) : success();
}

LogicalResult ExchangeOp::verify() {
  auto kernel = (*this)->getParentOfType<KernelOp>();
  if (kernel && kernel.getClusterSize() == 2)
    return success();
  return emitOpError("sends a tile to the other block of a cluster of two; use cluster = 2 or "
                     "exchange");
}

LogicalResult BarrierArriveOp::verify() {
  if (getCopies() && (getAll() || getBlocks()))
    return emitOpError(
        "arrives when copies have come, of every thread and at this block's barrier; "
        "leave out all and blocks");
  if (getAfter() && (!getAll() || getBlocks() || !getAfter().getType().getElementType().isF32()))
    return emitOpError("waits for a tile of f32 in every thread, at this block's barrier; use all "
                       "without blocks");
  return getBlocks() ? verifyInCluster(*this, *getBlocks()) : success();
}

/// A copy between shared memory and a view at `indices`.
static LogicalResult verifyCopy(Operation *op, RankedTensorType tile, Value view,
                                OperandRange indices, std::optional<ArrayRef<int64_t>> box) {
  auto type = cast<tile::ViewType>(view.getType());
  auto argument = dyn_cast<BlockArgument>(view);
  if (!argument || !isa_and_nonnull<KernelOp>(argument.getOwner()->getParentOp()))
    return op->emitOpError("takes its view straight from the kernel's arguments");
  if (type.getRank() < tile.getRank() || static_cast<int64_t>(indices.size()) != type.getRank())
    return op->emitOpError("takes a view of rank ")
           << tile.getRank() << " or more and one index per dimension of it; got " << indices.size()
           << " for " << type;
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
  if (!holdsValue(tile))
    return getSharedLayout(tile)->atomBytes();
  // Warps read what they exchange in runs.
  bool isExchange = llvm::any_of(getBuffer().getUsers(),
                                 llvm::IsaPred<CombineOp, CombineAllOp, ScanOp, FromBlockOp>);
  return isExchange && getSharedBytes() >= hopper::widestAccess ? hopper::widestAccess
                                                                : valueAlignment;
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

/// Refuses rows of which a copy moves some where these do not begin where copies can write.
static LogicalResult verifyRows(Operation *op, RankedTensorType tile, int64_t rows) {
  std::optional<SharedLayout> layout = getSharedLayout(tile);
  if (tile.getRank() != 2 || tile.getDimSize(0) % rows != 0 || !layout ||
      layout->swizzle != hopper::widestSwizzle)
    return op->emitOpError("copies ")
           << rows << " rows of " << tile
           << " at a time; copies move equal parts of tiles whose rows have "
           << hopper::widestSwizzle << " bytes or a multiple";
  return success();
}

/// Refuses to round what is not f32.
static LogicalResult verifyRounded(Operation *op, bool isRounded, RankedTensorType tile) {
  if (!isRounded || tile.getElementType().isF32())
    return success();
  return op->emitOpError("rounds f32 to tf32, got ") << tile;
}

LogicalResult PipeLoadOp::verify() {
  RankedTensorType tile = getPipe().getType().getTile();
  if (failed(verifyCopy(*this, tile, getView(), getIndices(), getBox())) ||
      failed(verifyRounded(*this, getTf32(), tile)))
    return failure();
  if (getRun().has_value() == getRuns().empty())
    return emitOpError("has a region where its rows come in runs, and there alone");
  if (!getRun())
    return success();
  if (getBox())
    return emitOpError("has a box and runs; leave one of them out");
  Block &body = getBodyOfRun();
  if (body.getNumArguments() != 1 + getCaptures().size() ||
      !body.getArgument(0).getType().isIndex() ||
      !llvm::equal(llvm::drop_begin(body.getArgumentTypes()), getCaptures().getTypes()) ||
      !isa<YieldOp>(body.back()) || getYielded().size() < 2 || getFirstNumberedDim() < 0)
    return emitOpError("has a region of the number of a run and of what it takes from outside, "
                       "which gives the run's places and how many rows of it there are");
  if (failed(verifyRows(*this, tile, *getRun())))
    return failure();
  int64_t runs = tile.getDimSize(0) / *getRun();
  if (runs > hopper::warpThreads)
    return emitOpError("has ") << runs << " runs, and the lanes of a warp find "
                               << hopper::warpThreads << "; use longer ones";
  return success();
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

RankedTensorType BulkLoadOp::getCopied() {
  RankedTensorType tile = getDestination().getType().getTile();
  std::optional<uint64_t> rows = getRows();
  return rows ? RankedTensorType::get({static_cast<int64_t>(*rows), tile.getDimSize(1)},
                                      tile.getElementType())
              : tile;
}

LogicalResult BulkLoadOp::verify() {
  RankedTensorType tile = getDestination().getType().getTile();
  if (failed(verifyCopy(*this, getCopied(), getView(), getIndices(), getBox())) ||
      failed(verifyRounded(*this, getTf32(), tile)))
    return failure();
  if (getRows().has_value() != static_cast<bool>(getRow()))
    return emitOpError("copies rows from one of the tile on; give both, or none of them");
  if (getRows() && failed(verifyRows(*this, tile, *getRows())))
    return failure();
  if (!getMulticast())
    return success();
  if (getRows())
    return verifyInCluster(*this, 1);
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
  if (getSource().getType().getTile().getEncoding())
    return emitOpError("stores the columns of a tile alone, and chunks of ")
           << getSource().getType().getTile() << " may have others";
  int64_t inFlight = getInFlight();
  if (inFlight < 0 || inFlight > 7)
    return emitOpError("leaves 0 to 7 copies in flight, got ") << inFlight;
  Value source = getSource();
  while (auto slice = source.getDefiningOp<SliceOp>())
    source = slice.getSource();
  auto role = (*this)->getParentOfType<RoleOp>();
  if (inFlight && !source.getDefiningOp<StagingOp>() && role && !role.isElected())
    return emitOpError("leaves copies in flight that read a slot, which another thread than the "
                       "one that copies gives back; copy from hop.staging, or in a role of one "
                       "thread");
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

LogicalResult BulkReadWaitOp::verify() {
  auto role = (*this)->getParentOfType<RoleOp>();
  return role && role.isElected() ? success() : verifyOnAllThreads(*this);
}

LogicalResult TicketWaitOp::verify() { return verifyTicket(*this); }

LogicalResult TicketPassOp::verify() { return verifyTicket(*this); }

LogicalResult TicketPeekOp::verify() {
  auto role = (*this)->getParentOfType<RoleOp>();
  if (role && !role.isElected())
    return emitOpError("tells one thread what a ticket is, and its role has several");
  return verifyTicket(*this);
}

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

/// Whether a wait for reads stands between `store` and `release`, in the block of both, or a later
/// copy that leaves fewer in flight than there are since.
static bool isReadBefore(BulkStoreOp store, Operation *release) {
  uint64_t since = 0;
  for (Operation *op = store->getNextNode(); op && op != release; op = op->getNextNode()) {
    auto later = dyn_cast<BulkStoreOp>(op);
    since += later ? 1 : 0;
    if (isa<BulkReadWaitOp, BulkStoreWaitOp>(op) || (later && later.getInFlight() <= since))
      return true;
  }
  return false;
}

/// Reports a product or a copy that reads `tile` and may still be in flight at `release`, which
/// hands its slot on, and a read or a write of it that comes later.
static LogicalResult verifyUsesDone(Operation *release, Value tile) {
  auto isBefore = [&](Operation *op) {
    Operation *ancestor = release->getBlock()->findAncestorOpInBlock(*op);
    return ancestor && ancestor->isBeforeInBlock(release);
  };
  auto isBehind = [&](Operation *op) {
    Operation *ancestor = release->getBlock()->findAncestorOpInBlock(*op);
    return ancestor && release->isBeforeInBlock(ancestor);
  };
  for (Operation *user : tile.getUsers()) {
    if (isa<SliceOp>(user) && failed(verifyUsesDone(release, user->getResult(0))))
      return failure();
    if (auto store = dyn_cast<BulkStoreOp>(user);
        store && store.getInFlight() > 0 && !isReadBefore(store, release))
      return release->emitOpError("gives a slot away that a copy in flight reads; put "
                                  "hop.bulk_read_wait before it");
    if ((isa<StageOp, GatherOp, BulkStoreOp>(user) && !isBefore(user)) ||
        (isa<FetchOp, TransposeOp>(user) && isBehind(user))) {
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

/// Whether threads write the slot part by part.
static bool isWrittenInParts(PipeAcquireOp acquire) {
  auto users = acquire.getTile().getUsers();
  return llvm::any_of(users, llvm::IsaPred<SliceOp>) &&
         llvm::all_of(users, llvm::IsaPred<SliceOp, PipeCommitOp>);
}

/// Refuses a slot of which each block of a cluster fills a part where these are not halves that two
/// blocks can send each other.
static LogicalResult verifyHalves(PipeAcquireOp acquire) {
  int64_t size = acquire->getParentOfType<KernelOp>().getClusterSize(), rowsOfAtom = 8;
  RankedTensorType tile = acquire.getTile().getType().getTile();
  if (size == 2 && tile.getDimSize(0) % (size * rowsOfAtom) == 0)
    return success();
  return acquire.emitOpError(
             "is of a slot of which each of two blocks fills half, of a multiple of ")
         << rowsOfAtom << " rows; got " << tile << " and a cluster of " << size;
}

LogicalResult PipeAcquireOp::verify() {
  if (failed(verifySlotType(*this, getPipe().getType().getTile(), getTile().getType())))
    return failure();
  if (auto pipe = getPipe().getDefiningOp<PipeCreateOp>(); pipe && pipe.getMulticast()) {
    if (!isFilledByCopies() && !isWrittenInParts(*this))
      return emitOpError("writes a slot of this block alone, and the blocks of a cluster fill the "
                         "multicast pipe together; use another pipe");
    if (failed(verifyHalves(*this)))
      return failure();
  }
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
  Value slot = getDestination();
  if (auto part = slot.getDefiningOp<SliceOp>();
      part && !part.isOfColumns() && part.getSource().getDefiningOp<SlotOp>())
    slot = part.getSource();
  if (!slot.getDefiningOp<PipeAcquireOp>() && !slot.getDefiningOp<SlotOp>())
    return emitOpError("fills a whole slot of a pipe, the result of hop.pipe.acquire");
  int64_t numbered = cast<SharedType>(slot.getType()).getTile().getDimSize(0);
  if (getRows().empty() || getFirstNumberedDim() < 0)
    return emitOpError("has numbers along ")
           << getRows().size() << " dimensions of " << getView().getType();
  for (Value numbers : getRows()) {
    auto rows = cast<RankedTensorType>(numbers.getType());
    if (rows.getRank() != 1 || rows.getDimSize(0) != numbered ||
        !(rows.getElementType().isInteger(32) || rows.getElementType().isInteger(64)))
      return emitOpError("takes the number of each of ")
             << numbered << " rows, i32 or i64, from a tile of rank 1, got " << rows;
    if (getLayout() &&
        (getLayoutAttr().getRank() != 2 || getLayoutAttr().getSlice(0) != hop::getLayout(rows)))
      return emitOpError("copies by another layout than that of the numbers of its rows, ") << rows;
  }
  if (!getLayout())
    return success();
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
  SmallVector<int64_t> shape(source.getShape());
  if (getTransposed())
    std::reverse(shape.begin(), shape.end());
  if (ArrayRef<int64_t>(shape) != tile.getShape() ||
      source.getElementType() != tile.getElementType())
    return emitOpError("reads a tile as it is in shared memory, ") << source << ", got " << tile;
  bool isMatrix = tile.getRank() == 2;
  LayoutAttr layout = getLayout(tile);
  bool takesPairs = isMatrix && tile::isByteFloat(tile.getElementType()) &&
                    tile.getDimSize(1) % hopper::warpThreads == 0 &&
                    (!layout || layout == LayoutAttr::getRowPairs(getContext()));
  if (getTransposed() && !takesPairs)
    return emitOpError("transposes floats of 1 byte, a multiple of 32 rows of them, to the layout "
                       "row_pairs; got ")
           << tile;
  bool hasOwnSize =
      isMatrix ? tile::isByteFloat(tile.getElementType()) : tile.getElementTypeBitWidth() == 64;
  if (unsigned bits = tile.getElementTypeBitWidth(); !hasOwnSize && bits != 16 && bits != 32)
    return emitOpError(
               "reads elements of 2 or 4 bytes, floats of 1 as a tile of rank 2, or numbers "
               "of 8 as one of rank 1, got ")
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
  bool isVector = tile.getRank() == 1;
  if (getTransposed() && isVector)
    return emitOpError("transposes tiles of rank 2, got ") << tile;
  if (isVector && !tile.getElementType().isF32())
    return emitOpError("writes vectors of f32, got ") << tile;
  return verifyRounded(*this, getTf32(), tile);
}

LogicalResult SliceOp::verify() {
  SharedType source = getSource().getType(), result = getResult().getType();
  int64_t rows = result.getTile().getDimSize(0), columns = result.getTile().getDimSize(1);
  if (source.getStoredRows() != result.getStoredRows() ||
      source.getTile().getDimSize(0) % rows != 0 || source.getTile().getDimSize(1) % columns != 0)
    return emitOpError("takes equal parts of its source");
  if (source.getTile().getEncoding() != result.getTile().getEncoding())
    return emitOpError("takes parts in the chunks of ") << source.getTile();
  if (isOfColumns()) {
    if (source.getTile().getDimSize(0) != rows)
      return emitOpError("takes parts of rows or of columns, not of both");
    SharedLayout whole = *getSharedLayout(source.getTile(), source.getStoredRows());
    // What goes to registers may begin amid a chunk.
    bool isFetched =
        columns % hopper::mmaRows == 0 && llvm::all_of((*this)->getUsers(), [](Operation *user) {
          auto fetch = dyn_cast<FetchOp>(user);
          return fetch && fetch.getTransposed();
        });
    if (columns % whole.chunkColumns() != 0 && !isFetched)
      return emitOpError("takes columns in whole chunks of ")
             << whole.chunkColumns() << ", got " << columns;
  }
  // A slice starts at a whole repeat of the swizzle.
  if (rows % 8 != 0)
    return emitOpError("takes rows in multiples of 8, got ") << rows;
  return success();
}
