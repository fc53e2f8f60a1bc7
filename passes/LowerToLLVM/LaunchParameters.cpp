//===- LaunchParameters.cpp - What a kernel is launched with --------------===//

#include "passes/LowerToLLVM/LaunchParameters.h"
#include "dialects/Hop/Machine.h"
#include "dialects/Tile/LoadedIndex.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "passes/Analysis/TileLayout.h"

using namespace mlir;
using namespace tessera;

static unsigned argumentOf(Value view) { return cast<BlockArgument>(view).getArgNumber(); }

SmallVector<MapDim> TensorMap::dims() const {
  int64_t columns = static_cast<int64_t>(box.getExtents().size()) - 1;
  SmallVector<MapDim> dims = {{MapDim::Columns, columns}};
  for (int64_t dim = columns - 1; dim >= box.getFirstRowDim(); --dim)
    dims.push_back({MapDim::Outer, dim});
  if (chunked)
    dims.push_back({MapDim::Chunks, columns});
  for (int64_t dim = box.getFirstRowDim() - 1; dim >= (ended && columns == 3 ? 1 : 0); --dim)
    dims.push_back({MapDim::Outer, dim});
  if (ended)
    dims.append({{MapDim::Ends, columns - 1}, {MapDim::Wraps, columns - 1}});
  return dims;
}

int64_t TensorMap::rowPosition(int64_t dim) const {
  SmallVector<MapDim> all = dims();
  return llvm::find_if(all, [&](MapDim own) { return own.ofView == dim; }) - all.begin();
}

int64_t TensorMap::chunkPosition() const {
  SmallVector<MapDim> all = dims();
  MapDim::Kind kind = chunked ? MapDim::Chunks : MapDim::Columns;
  return llvm::find_if(all, [&](MapDim own) { return own.kind == kind; }) - all.begin();
}

/// The bytes of a parameter, to a multiple of which it is aligned.
static int64_t bytesOfParameter(hop::KernelOp kernel, const LaunchParameter &parameter) {
  switch (parameter.kind) {
  case LaunchParameter::Map:
    return hopper::tensorMapBytes;
  case LaunchParameter::Dim:
    return 4;
  case LaunchParameter::Scalar: {
    Type type = kernel.getArgument(parameter.argument).getType();
    return type.isIndex() ? 8 : type.getIntOrFloatBitWidth() / 8;
  }
  default:
    return 8;
  }
}

/// Refuses a kernel that a launch has no room for.
static LogicalResult checkBytes(hop::KernelOp kernel, ArrayRef<LaunchParameter> parameters) {
  int64_t total = 0, maps = 0, scalars = 0;
  for (const LaunchParameter &parameter : parameters) {
    int64_t bytes = bytesOfParameter(kernel, parameter);
    total = llvm::alignTo(total, bytes) + bytes;
    maps += parameter.kind == LaunchParameter::Map ? bytes : 0;
    scalars += parameter.kind == LaunchParameter::Scalar ? bytes : 0;
  }
  if (total <= hopper::mostParameterBytes)
    return success();
  return kernel.emitError("takes ")
         << total << " bytes of launch parameters, and a launch has " << hopper::mostParameterBytes
         << ": " << maps << " of tensor maps, " << scalars << " of scalars and "
         << total - maps - scalars
         << " of addresses, extents and strides; take several numbers as one view";
}

FailureOr<LaunchParameters> LaunchParameters::get(hop::KernelOp kernel) {
  LaunchParameters result;
  WalkResult walk = kernel.walk([&](Operation *op) { return WalkResult(result.addUses(op)); });
  if (walk.wasInterrupted())
    return failure();
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (!isa<tile::ViewType>(kernel.getArgument(i).getType()))
      result.addUnique({LaunchParameter::Scalar, i});
  // Tensor maps first: their 64-byte alignment then costs no padding.
  llvm::sort(result.parameters, [](const LaunchParameter &a, const LaunchParameter &b) {
    return std::tie(a.kind, a.argument, a.index, a.name) <
           std::tie(b.kind, b.argument, b.index, b.name);
  });
  if (failed(checkBytes(kernel, result.parameters)))
    return failure();
  return result;
}

LogicalResult LaunchParameters::addUses(Operation *op) {
  if (auto load = dyn_cast<hop::BulkLoadOp>(op)) {
    auto kernel = op->getParentOfType<hop::KernelOp>();
    access[argumentOf(load.getView())] |= kReads;
    return addCopy(op, load.getView(), load.getIndices(), load.getCopied(),
                   load.getDestination().getType().getStoredRows(), load.getBox(),
                   load.getMulticast() && !load.getRows() ? kernel.getClusterSize() : 1,
                   load.getTf32());
  }
  if (auto store = dyn_cast<hop::BulkStoreOp>(op)) {
    access[argumentOf(store.getView())] |= store.getAdd() ? kReadsAndWrites : kWrites;
    if (failed(addStoredRows(store)))
      return failure();
    hop::SharedType source = store.getSource().getType();
    return addCopy(op, store.getView(), store.getIndices(), source.getTile(),
                   source.getStoredRows(), store.getBox(), /*blocks=*/1, /*isRounded=*/false);
  }
  if (auto load = dyn_cast<tile::LoadOp>(op)) {
    addAccess(load.getView(), load.getIndices(), load.getType(), kReads);
  } else if (auto gather = dyn_cast<tile::GatherOp>(op)) {
    addAccess(gather.getView(), gather.getIndices(), gather.getType(), kReads,
              gather.getFirstNumberedDim());
  } else if (auto gather = dyn_cast<hop::GatherOp>(op)) {
    addAccess(gather.getView(), gather.getIndices(), gather.getDestination().getType().getTile(),
              kReads, gather.getFirstNumberedDim());
  } else if (auto gather = dyn_cast<tile::GatherElementsOp>(op)) {
    addAccess(gather.getView(), gather.getIndices(), gather.getType().getElementType(), kReads);
  } else if (auto scatter = dyn_cast<tile::ScatterOp>(op)) {
    addAccess(scatter.getView(), scatter.getIndices(), scatter.getValue().getType(), kWrites,
              scatter.getFirstNumberedDim());
  } else if (auto scatter = dyn_cast<tile::ScatterAddOp>(op)) {
    addAccess(scatter.getView(), scatter.getIndices(),
              scatter.getValue().getType().getElementType(), kReadsAndWrites);
  } else if (auto store = dyn_cast<tile::StoreOp>(op)) {
    addAccess(store.getView(), store.getIndices(), store.getValue().getType(),
              store.getAdd() ? kReadsAndWrites : kWrites);
  } else if (auto prefetch = dyn_cast<hop::L2PrefetchOp>(op)) {
    auto view = cast<tile::ViewType>(prefetch.getView().getType());
    addAccess(prefetch.getView(), prefetch.getIndices(), view.getElementType(), 0);
    int64_t last = view.getRank() - 1;
    if (prefetch.getCount() > 1 && view.getStaticDim(last) == ShapedType::kDynamic)
      addUnique({LaunchParameter::Dim, 0, 0, view.getDimName(last)});
  } else if (isa<hop::NextTileOp>(op)) {
    addUnique({LaunchParameter::Workspace});
  } else if (auto ticket = dyn_cast<hop::TicketWaitOp>(op)) {
    addTickets(ticket.getView(), ticket.getTileAttr());
  } else if (auto ticket = dyn_cast<hop::TicketPassOp>(op)) {
    addTickets(ticket.getView(), ticket.getTileAttr());
  } else if (auto ticket = dyn_cast<hop::TicketPeekOp>(op)) {
    addTickets(ticket.getView(), ticket.getTileAttr());
  } else if (isa<hop::TimelineOp>(op)) {
    addUnique({LaunchParameter::Timeline});
  } else if (auto dim = dyn_cast<tile::DimOp>(op)) {
    addUnique({LaunchParameter::Dim, 0, 0, dim.getDim()});
  }
  return success();
}

void LaunchParameters::addTickets(Value view, Attribute tile) {
  addUnique({LaunchParameter::Tickets});
  ticketed.insert({argumentOf(view), tile});
}

/// A bulk store writes 16 bytes at a time, also where the rows of the view end.
LogicalResult LaunchParameters::addStoredRows(hop::BulkStoreOp store) {
  auto view = cast<tile::ViewType>(store.getView().getType());
  int64_t dim = view.getRank() - 1, columns = view.getStaticDim(dim);
  int64_t unit = hopper::bulkUnit * 8 / view.getElementType().getIntOrFloatBitWidth();
  if (columns == ShapedType::kDynamic)
    storedRows.insert({view.getDimName(dim), unit});
  else if (columns % unit != 0)
    return store.emitError("writes rows of ") << columns << " elements, and bulk stores write "
                                              << unit << " at a time; use store = direct";
  return success();
}

/// With an end beyond `wrappedRows` the first rows have places below 0, and so lie outside of the
/// map.
LogicalResult LaunchParameters::addEndedRows(Operation *copy, tile::ViewType view) {
  int64_t dim = view.getRank() - 2, rows = view.getStaticDim(dim);
  if (rows == ShapedType::kDynamic)
    endedRows.insert(view.getDimName(dim));
  else if (rows > wrappedRows)
    return copy->emitError("copies rows that end before the view does, of a view of ")
           << rows << " rows; up to " << wrappedRows << " would work";
  return success();
}

void LaunchParameters::addUnique(LaunchParameter parameter) {
  for (const LaunchParameter &other : parameters)
    if (other.kind == parameter.kind && other.argument == parameter.argument &&
        other.index == parameter.index && other.name == parameter.name)
      return;
  parameters.push_back(parameter);
}

LogicalResult LaunchParameters::addCopy(Operation *copy, Value view, ValueRange indices,
                                        RankedTensorType tile, int64_t storedRows,
                                        std::optional<ArrayRef<int64_t>> box, int64_t blocks,
                                        bool isRounded) {
  auto type = cast<tile::ViewType>(view.getType());
  hop::SharedLayout layout = *hop::getSharedLayout(tile, storedRows);
  unsigned argument = argumentOf(view);
  int64_t inner = type.getStaticDim(type.getRank() - 1);
  std::optional<int64_t> column = getConstantIntValue(indices.back());
  if (column && *column * layout.elementBytes % hop::bulkStartBytes != 0)
    return copy->emitError("copies from column ")
           << *column << " on, and a bulk copy starts at a multiple of " << hop::bulkStartBytes
           << " bytes";
  bool ended = tile.getRank() == 2 && indices.drop_back().back().getDefiningOp<tile::RowOp>();
  if (ended && type.getRank() == 4 && getConstantIntValue(indices.front()) != 0)
    return copy->emitError(
        "copies rows that end before the view does, for which a tensor map has "
        "two of its five dimensions; the outermost index has to be the constant 0");
  if (ended && failed(addEndedRows(copy, type)))
    return failure();
  // They leave no room for that of chunks.
  bool chunked = !ended && layout.rows == tile.getDimSize(0) && inner != ShapedType::kDynamic &&
                 inner % layout.chunkColumns() == 0 && column &&
                 *column % layout.chunkColumns() == 0;
  TensorMap map = {argument, tile,  tile::TileBox(type, tile, box),   layout,
                   chunked,  ended, *hop::splitAmong(layout, blocks), isRounded};
  assert(map.dims().size() <= hopper::mostMapDims && "a view has four dimensions at most");
  auto known = llvm::find(maps, map);
  mapOfCopy[copy] = known - maps.begin();
  if (known != maps.end())
    return success();
  tile::BoxSlice rows = map.rows();
  int64_t most = 0;
  for (int64_t extent : rows.part.getExtents().drop_back())
    most = std::max(most, extent);
  if (most > hopper::mostBoxExtent)
    return copy->emitError("copies ") << most << " rows at once, a bulk tensor copy moves "
                                      << hopper::mostBoxExtent << "; use smaller tiles";
  alignment[argument] = hopper::tensorAlignment;
  parameters.push_back({LaunchParameter::Map, argument, static_cast<unsigned>(maps.size())});
  maps.push_back(map);
  return success();
}

void LaunchParameters::addAccess(Value view, ValueRange indices, Type moved, unsigned ways,
                                 std::optional<int64_t> firstNumbered) {
  unsigned argument = argumentOf(view);
  access[argument] |= ways;
  auto type = cast<tile::ViewType>(view.getType());
  auto tile = dyn_cast<RankedTensorType>(moved);
  int64_t rank = tile ? tile.getRank() : 0;
  // Rank-2 tiles, and others of which a thread has neighbours, are moved in units of up to that
  // many bytes.
  int64_t unit = directBytes(type, rank);
  bool hasUnits =
      rank == 2 || (rank == 1 && hop::getLayout(tile).getRun() * type.getElementBytes() >= unit);
  unsigned bytes = hasUnits ? unit : type.getElementBytes();
  alignment[argument] = std::max(alignment.lookup(argument), bytes);
  addUnique({LaunchParameter::Pointer, argument});
  for (int64_t i = 0; i + 1 < type.getRank(); ++i)
    addUnique({LaunchParameter::Stride, argument, static_cast<unsigned>(i)});
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (type.getStaticDim(i) == ShapedType::kDynamic &&
        (i >= firstNumbered.value_or(type.getRank() - rank) ||
         isa<RankedTensorType>(indices[i].getType()) || tile::comesFromMemory(indices[i])))
      addUnique({LaunchParameter::Dim, 0, 0, type.getDimName(i)});
}

unsigned LaunchParameters::position(LaunchParameter::Kind kind, unsigned argument,
                                    unsigned index) const {
  for (auto [i, parameter] : llvm::enumerate(parameters))
    if (parameter.kind == kind && parameter.argument == argument && parameter.index == index)
      return i;
  llvm_unreachable("every access has its parameters");
}

unsigned LaunchParameters::dimPosition(StringRef name) const {
  for (auto [i, parameter] : llvm::enumerate(parameters))
    if (parameter.kind == LaunchParameter::Dim && parameter.name == name)
      return i;
  llvm_unreachable("every extent in use is a parameter");
}
