//===- LaunchParameters.cpp - What a kernel is launched with --------------===//

#include "passes/LowerToLLVM/LaunchParameters.h"
#include "dialects/Hop/Machine.h"
#include "dialects/Hop/TimelineLayout.h"
#include "dialects/Tile/LoadedIndex.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"
#include "passes/Analysis/TileLayout.h"
#include "tessera/BundleKeys.h"

using namespace mlir;
using namespace tessera;

static unsigned argumentOf(Value view) { return cast<BlockArgument>(view).getArgNumber(); }

static tile::ViewType viewOf(hop::KernelOp kernel, unsigned argument) {
  return cast<tile::ViewType>(kernel.getArgument(argument).getType());
}

FailureOr<LaunchParameters> LaunchParameters::get(hop::KernelOp kernel) {
  LaunchParameters result;
  WalkResult walk = kernel.walk([&](Operation *op) -> WalkResult {
    if (auto load = dyn_cast<hop::BulkLoadOp>(op)) {
      result.access[argumentOf(load.getView())] |= 1;
      return result.addCopy(op, load.getView(), load.getIndices(), load.getDestination().getType(),
                            load.getBox(), load.getMulticast() ? kernel.getClusterSize() : 1);
    }
    if (auto store = dyn_cast<hop::BulkStoreOp>(op)) {
      result.access[argumentOf(store.getView())] |= store.getAdd() ? 3 : 2;
      if (failed(result.addStoredRows(store)))
        return failure();
      return result.addCopy(op, store.getView(), store.getIndices(), store.getSource().getType(),
                            store.getBox(), /*blocks=*/1);
    }
    if (auto load = dyn_cast<tile::LoadOp>(op)) {
      result.access[argumentOf(load.getView())] |= 1;
      result.addAccess(load.getView(), load.getIndices(), load.getType());
    } else if (auto gather = dyn_cast<tile::GatherOp>(op)) {
      result.access[argumentOf(gather.getView())] |= 1;
      result.addAccess(gather.getView(), gather.getIndices(), gather.getType());
    } else if (auto gather = dyn_cast<hop::GatherOp>(op)) {
      result.access[argumentOf(gather.getView())] |= 1;
      result.addAccess(gather.getView(), gather.getIndices(),
                       gather.getDestination().getType().getTile());
    } else if (auto gather = dyn_cast<tile::GatherElementsOp>(op)) {
      result.access[argumentOf(gather.getView())] |= 1;
      result.addAccess(gather.getView(), gather.getIndices(), gather.getType().getElementType());
    } else if (auto scatter = dyn_cast<tile::ScatterAddOp>(op)) {
      result.access[argumentOf(scatter.getView())] |= 3;
      result.addAccess(scatter.getView(), scatter.getIndices(),
                       scatter.getValue().getType().getElementType());
    } else if (auto store = dyn_cast<tile::StoreOp>(op)) {
      result.access[argumentOf(store.getView())] |= store.getAdd() ? 3 : 2;
      result.addAccess(store.getView(), store.getIndices(), store.getValue().getType());
    } else if (isa<hop::NextTileOp>(op)) {
      result.addUnique({LaunchParameter::Workspace});
    } else if (isa<hop::TimelineOp>(op)) {
      result.addUnique({LaunchParameter::Timeline});
    } else if (auto dim = dyn_cast<tile::DimOp>(op)) {
      result.addUnique({LaunchParameter::Dim, 0, 0, dim.getDim()});
    }
    return success();
  });
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
  return result;
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

void LaunchParameters::addUnique(LaunchParameter parameter) {
  for (const LaunchParameter &other : parameters)
    if (other.kind == parameter.kind && other.argument == parameter.argument &&
        other.index == parameter.index && other.name == parameter.name)
      return;
  parameters.push_back(parameter);
}

LogicalResult LaunchParameters::addCopy(Operation *copy, Value view, ValueRange indices,
                                        hop::SharedType shared,
                                        std::optional<ArrayRef<int64_t>> box, int64_t blocks) {
  RankedTensorType tile = shared.getTile();
  auto type = cast<tile::ViewType>(view.getType());
  hop::SharedLayout layout = *hop::getSharedLayout(tile, shared.getStoredRows());
  unsigned argument = argumentOf(view);
  int64_t inner = type.getStaticDim(type.getRank() - 1);
  std::optional<int64_t> column = getConstantIntValue(indices.back());
  if (column && *column * layout.elementBytes % hop::bulkStartBytes != 0)
    return copy->emitError("copies from column ")
           << *column << " on, and a bulk copy starts at a multiple of " << hop::bulkStartBytes
           << " bytes";
  bool chunked = layout.rows == tile.getDimSize(0) && inner != ShapedType::kDynamic &&
                 inner % layout.chunkColumns() == 0 && column &&
                 *column % layout.chunkColumns() == 0;
  TensorMap map = {argument, tile,    tile::TileBox(type, tile, box),
                   layout,   chunked, *hop::splitAmong(layout, blocks)};
  auto known = llvm::find(maps, map);
  mapOfCopy[copy] = known - maps.begin();
  if (known != maps.end())
    return success();
  tile::BoxSlice rows = map.rows();
  if (int64_t most = *llvm::max_element(rows.part.getExtents().drop_back());
      most > hopper::mostBoxExtent)
    return copy->emitError("copies ") << most
                                      << " rows at once, a bulk tensor copy moves "
                                         "256; use smaller tiles";
  alignment[argument] = hopper::tensorAlignment;
  parameters.push_back({LaunchParameter::Map, argument, static_cast<unsigned>(maps.size())});
  maps.push_back(map);
  return success();
}

void LaunchParameters::addAccess(Value view, ValueRange indices, Type moved) {
  unsigned argument = argumentOf(view);
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
        (i >= type.getRank() - rank || isa<RankedTensorType>(indices[i].getType()) ||
         tile::comesFromMemory(indices[i])))
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

//===----------------------------------------------------------------------===//
// Description
//===----------------------------------------------------------------------===//

static std::string spell(Type type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << type;
  return text;
}

static Attribute describeExtent(Builder &b, tile::ViewType view, int64_t dim) {
  if (view.getStaticDim(dim) != ShapedType::kDynamic)
    return b.getI64IntegerAttr(view.getStaticDim(dim));
  return b.getStringAttr(view.getDimName(dim));
}

DictionaryAttr LaunchParameters::describeArgument(hop::KernelOp kernel, unsigned argument) const {
  Builder b(kernel.getContext());
  NamedAttrList entry;
  entry.set(key::name, b.getStringAttr(kernel.getArgumentName(argument)));
  auto view = dyn_cast<tile::ViewType>(kernel.getArgument(argument).getType());
  if (!view) {
    Type type = kernel.getArgument(argument).getType();
    entry.set(key::kind, b.getStringAttr("scalar"));
    entry.set(key::type, b.getStringAttr(type.isIndex() ? "i64" : spell(type)));
    return entry.getDictionary(kernel.getContext());
  }
  SmallVector<Attribute> dims;
  for (int64_t i = 0; i < view.getRank(); ++i)
    dims.push_back(describeExtent(b, view, i));
  unsigned use = access.lookup(argument);
  entry.set(key::kind, b.getStringAttr("view"));
  entry.set(key::element, b.getStringAttr(spell(view.getElementType())));
  entry.set(key::dims, b.getArrayAttr(dims));
  entry.set(key::access, b.getStringAttr(use == 3 ? "readwrite" : use == 2 ? "write" : "read"));
  entry.set(key::alignment,
            b.getI64IntegerAttr(std::max(alignment.lookup(argument), view.getElementBytes())));
  return entry.getDictionary(kernel.getContext());
}

SmallVector<MapDim> TensorMap::dims() const {
  int64_t columns = static_cast<int64_t>(box.getExtents().size()) - 1;
  SmallVector<MapDim> dims = {{MapDim::Columns, columns}};
  for (int64_t dim = columns - 1; dim >= box.getFirstRowDim(); --dim)
    dims.push_back({MapDim::Outer, dim});
  if (chunked)
    dims.push_back({MapDim::Chunks, columns});
  for (int64_t dim = box.getFirstRowDim() - 1; dim >= 0; --dim)
    dims.push_back({MapDim::Outer, dim});
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

ArrayAttr LaunchParameters::describeMapDims(MLIRContext *context, const TensorMap &map,
                                            tile::ViewType view) const {
  Builder b(context);
  int64_t chunk = map.layout.chunkColumns();
  auto describe = [&](MapDim dim) -> Attribute {
    NamedAttrList entry;
    switch (dim.kind) {
    case MapDim::Columns:
      entry.set(key::extent,
                map.chunked ? b.getI64IntegerAttr(chunk) : describeExtent(b, view, dim.ofView));
      break;
    case MapDim::Chunks:
      entry.set(key::extent, b.getI64IntegerAttr(view.getStaticDim(dim.ofView) / chunk));
      entry.set(key::strideBytes, b.getI64IntegerAttr(map.layout.swizzle));
      break;
    case MapDim::Outer:
      entry.set(key::extent, describeExtent(b, view, dim.ofView));
      entry.set(key::strideOfDim, b.getI64IntegerAttr(dim.ofView));
      break;
    }
    return entry.getDictionary(context);
  };
  return b.getArrayAttr(llvm::map_to_vector(map.dims(), describe));
}

DictionaryAttr LaunchParameters::describeParameter(hop::KernelOp kernel,
                                                   const LaunchParameter &parameter) const {
  Builder b(kernel.getContext());
  NamedAttrList entry;
  auto name = [&] { return b.getStringAttr(kernel.getArgumentName(parameter.argument)); };
  switch (parameter.kind) {
  case LaunchParameter::Map: {
    const TensorMap &map = maps[parameter.index];
    tile::ViewType view = viewOf(kernel, parameter.argument);
    ArrayAttr dims = describeMapDims(kernel.getContext(), map, view);
    SmallVector<int64_t> box(dims.size(), 1);
    box[0] = map.layout.chunkColumns();
    // The elements of a tile of rank 1 are a row.
    for (int64_t dim = map.box.getFirstRowDim();
         map.tile.getRank() == 2 && dim <= map.box.getLastRowDim(); ++dim)
      box[map.rowPosition(dim)] = map.rows().part.getExtent(dim);
    if (map.chunked)
      box[map.chunkPosition()] = map.boxChunks();
    entry.set(key::kind, b.getStringAttr("tensor_map"));
    entry.set(key::argument, name());
    entry.set(key::element, b.getStringAttr(spell(view.getElementType())));
    entry.set(key::dims, dims);
    entry.set(key::box, b.getI64ArrayAttr(box));
    entry.set(key::swizzle, b.getStringAttr(map.layout.swizzle ? Twine(map.layout.swizzle) + "B"
                                                               : Twine("none")));
    break;
  }
  case LaunchParameter::Workspace:
    entry.set(key::kind, b.getStringAttr("workspace"));
    entry.set(key::bytes, b.getI64IntegerAttr(8));
    break;
  case LaunchParameter::Timeline: {
    hop::TimelineOp timeline = kernel.getTimeline();
    entry.set(key::kind, b.getStringAttr("timeline"));
    entry.set(key::bytes, b.getI64IntegerAttr(timeline.getBlocks() * kernel.getNumRecords() *
                                              timeline::recordBytes(timeline.getEvents())));
    break;
  }
  case LaunchParameter::Pointer:
    entry.set(key::kind, b.getStringAttr("pointer"));
    entry.set(key::argument, name());
    break;
  case LaunchParameter::Dim:
    entry.set(key::kind, b.getStringAttr("dim"));
    entry.set(key::dim, b.getStringAttr(parameter.name));
    entry.set(key::type, b.getStringAttr("i32"));
    break;
  case LaunchParameter::Stride:
    entry.set(key::kind, b.getStringAttr("stride"));
    entry.set(key::argument, name());
    entry.set(key::dim, b.getI64IntegerAttr(parameter.index));
    entry.set(key::type, b.getStringAttr("i64"));
    break;
  case LaunchParameter::Scalar: {
    Type type = kernel.getArgument(parameter.argument).getType();
    entry.set(key::kind, b.getStringAttr("scalar"));
    entry.set(key::argument, name());
    entry.set(key::type, b.getStringAttr(type.isIndex() ? "i64" : spell(type)));
    break;
  }
  }
  return entry.getDictionary(kernel.getContext());
}

/// What people ask of a compiled kernel: who has which registers, and what lies where in shared
/// memory.
static DictionaryAttr describeReport(hop::KernelOp kernel, StringRef schedule, ArrayAttr sharedMap,
                                     ArrayAttr barriers) {
  Builder b(kernel.getContext());
  SmallVector<Attribute> roles;
  SmallVector<NamedAttribute> stages;
  for (auto role : kernel.getBody().getOps<hop::RoleOp>()) {
    NamedAttrList entry;
    entry.set(key::role, role.getSymNameAttr());
    entry.set(key::warpgroups, b.getI64IntegerAttr(role.getNumWarpgroups()));
    if (role.getWarps())
      entry.set(key::warps, b.getI64IntegerAttr(*role.getWarps()));
    if (std::optional<int64_t> registers = role.getRegisters())
      entry.set(key::registersPerThread, b.getI64IntegerAttr(*registers));
    roles.push_back(entry.getDictionary(b.getContext()));
  }
  for (auto buffer : kernel.getBody().getOps<hop::BufferOp>())
    stages.push_back(b.getNamedAttr(buffer.getLabel(),
                                    b.getI64IntegerAttr(buffer.getBuffer().getType().getSlots())));
  NamedAttrList shared;
  shared.set(key::bytes, b.getI64IntegerAttr(*kernel.getSharedBytes()));
  shared.set(key::map, sharedMap);
  shared.set(key::barriers, barriers);
  NamedAttrList report;
  report.set(key::schedule, b.getStringAttr(schedule));
  report.set(key::roles, b.getArrayAttr(roles));
  report.set(key::stages, b.getDictionaryAttr(stages));
  report.set(key::sharedMemory, shared.getDictionary(b.getContext()));
  return report.getDictionary(b.getContext());
}

/// Adds what the warps and the named barriers are called: "roles" and "named_barriers".
static void describeRoles(hop::KernelOp kernel, const NamedBarriers &barriers,
                          NamedAttrList &entry) {
  Builder b(kernel.getContext());
  constexpr int64_t warpsOfGroup = hopper::warpgroupThreads / hopper::warpThreads;
  SmallVector<Attribute> roles, named;
  auto addRole = [&](const Twine &name, int64_t first, int64_t warps) {
    roles.push_back(b.getDictionaryAttr({b.getNamedAttr(key::name, b.getStringAttr(name)),
                                         b.getNamedAttr(key::firstWarp, b.getI64IntegerAttr(first)),
                                         b.getNamedAttr(key::warps, b.getI64IntegerAttr(warps))}));
  };
  SmallVector<hop::RoleTeam> teams = hop::getTeams(kernel);
  for (hop::RoleTeam &team : teams) {
    int64_t warp = warpsOfGroup * team.first;
    if (!team.isShared())
      for (int64_t i = 0; i < team.warpgroups; ++i)
        addRole(team.roles.front().getSymName() + " " + Twine(i), warp + warpsOfGroup * i,
                warpsOfGroup);
    else if (team.roles.size() == 1) // the warps beside it have no role
      addRole(team.roles.front().getSymName(), warp, warpsOfGroup);
    else
      for (hop::RoleOp role : team.roles) {
        addRole(role.getSymName(), warp, role.getNumWarps());
        warp += role.getNumWarps();
      }
  }
  for (auto &[number, name] : barriers.getNames())
    named.push_back(b.getDictionaryAttr({b.getNamedAttr(key::id, b.getI64IntegerAttr(number)),
                                         b.getNamedAttr(key::name, b.getStringAttr(name))}));
  entry.set(key::roles, b.getArrayAttr(roles));
  entry.set(key::namedBarriers, b.getArrayAttr(named));
}

/// What a reader of the kernel's timeline needs: how much is recorded, and the stages by number.
static DictionaryAttr describeTimeline(hop::TimelineOp timeline) {
  Builder b(timeline.getContext());
  SmallVector<Attribute> stages;
  for (auto stage : timeline.getStages().getAsRange<hop::StageAttr>()) {
    NamedAttrList entry;
    entry.set(key::kind, b.getStringAttr(stringifyEnum(stage.getKind())));
    entry.set(key::label, b.getStringAttr(stage.getLabel()));
    entry.set(key::line, b.getI64IntegerAttr(stage.getLine()));
    entry.set(key::column, b.getI64IntegerAttr(stage.getColumn()));
    if (!stage.getProducts().empty())
      entry.set(key::products, b.getI64ArrayAttr(stage.getProducts()));
    stages.push_back(entry.getDictionary(b.getContext()));
  }
  NamedAttrList entry;
  entry.set(key::blocks, timeline.getBlocksAttr());
  entry.set(key::first, timeline.getFirstAttr());
  entry.set(key::events, timeline.getEventsAttr());
  entry.set(key::stages, b.getArrayAttr(stages));
  return entry.getDictionary(b.getContext());
}

/// The name of the divisor, or the name and what it is multiplied with.
static Attribute describeDivisor(tile::DividesAttr divides) {
  Builder b(divides.getContext());
  if (divides.getFactor() == 1)
    return divides.getDivisor();
  return b.getDictionaryAttr(
      {b.getNamedAttr(key::dim, divides.getDivisor()),
       b.getNamedAttr(key::factor, b.getI64IntegerAttr(divides.getFactor()))});
}

static DictionaryAttr describeRequirement(Attribute requirement) {
  Builder b(requirement.getContext());
  if (auto atMost = dyn_cast<tile::AtMostAttr>(requirement))
    return b.getDictionaryAttr(
        {b.getNamedAttr(key::dim, atMost.getDim()),
         b.getNamedAttr(key::atMost, b.getI64IntegerAttr(atMost.getBound()))});
  auto divides = cast<tile::DividesAttr>(requirement);
  return b.getDictionaryAttr({b.getNamedAttr(key::divisor, describeDivisor(divides)),
                              b.getNamedAttr(key::dividend, divides.getDividend())});
}

DictionaryAttr LaunchParameters::describe(hop::KernelOp kernel, const NamedBarriers &barriers,
                                          StringRef symbol) const {
  MLIRContext *context = kernel.getContext();
  Builder b(context);
  SmallVector<Attribute> arguments, launch, grid, requirements, sharedMap, mbarriers;
  llvm::SmallVector<StringRef> dims;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    arguments.push_back(describeArgument(kernel, i));
    if (auto view = dyn_cast<tile::ViewType>(kernel.getArgument(i).getType()))
      for (int64_t dim = 0; dim < view.getRank(); ++dim)
        if (!view.getDimName(dim).empty() && !llvm::is_contained(dims, view.getDimName(dim)))
          dims.push_back(view.getDimName(dim));
  }
  for (const LaunchParameter &parameter : parameters)
    launch.push_back(describeParameter(kernel, parameter));
  // The blocks of a cluster take neighbours along the first dimension.
  int64_t blocks = kernel.getClusterSize();
  for (auto dim : kernel.getGrid().getAsRange<tile::GridDimAttr>()) {
    int64_t divisor = dim.getDivisor() * (grid.empty() ? blocks : 1);
    grid.push_back(
        b.getDictionaryAttr({b.getNamedAttr(key::extent, dim.getExtent()),
                             b.getNamedAttr(key::divisor, b.getI64IntegerAttr(divisor))}));
  }
  if (auto list = kernel.getRequirements())
    for (Attribute requirement : *list)
      requirements.push_back(describeRequirement(requirement));
  for (auto [dim, unit] : storedRows)
    requirements.push_back(
        b.getDictionaryAttr({b.getNamedAttr(key::divisor, b.getI64IntegerAttr(unit)),
                             b.getNamedAttr(key::dividend, b.getStringAttr(dim))}));
  auto addRange = [&](SmallVector<Attribute> &list, const Twine &name, int64_t offset,
                      int64_t bytes) {
    list.push_back(b.getDictionaryAttr({b.getNamedAttr(key::name, b.getStringAttr(name)),
                                        b.getNamedAttr(key::offset, b.getI64IntegerAttr(offset)),
                                        b.getNamedAttr(key::bytes, b.getI64IntegerAttr(bytes))}));
  };
  for (auto buffer : kernel.getBody().getOps<hop::BufferOp>()) {
    RankedTensorType tile = buffer.getBuffer().getType().getTile();
    int64_t bytes = hop::holdsValue(tile) ? 4 : hop::getSharedLayout(tile)->bytes();
    for (int64_t i = 0; i < buffer.getBuffer().getType().getSlots(); ++i)
      addRange(sharedMap, buffer.getLabel() + "[" + Twine(i) + "]", *buffer.getOffset() + i * bytes,
               bytes);
  }
  for (auto group : kernel.getBody().getOps<hop::BarriersOp>())
    for (int64_t i = 0; i < group.getBarriers().getType().getSlots(); ++i)
      addRange(mbarriers, group.getLabel() + "[" + Twine(i) + "]",
               *group.getOffset() + hopper::mbarrierBytes * i, hopper::mbarrierBytes);

  NamedAttrList entry;
  entry.set(key::name, kernel.getSymNameAttr());
  entry.set(key::symbol, b.getStringAttr(symbol));
  entry.set(key::arguments, b.getArrayAttr(arguments));
  entry.set(key::dims, b.getStrArrayAttr(dims));
  entry.set(key::requirements, b.getArrayAttr(requirements));
  entry.set(key::launchParameters, b.getArrayAttr(launch));
  entry.set(key::grid, b.getArrayAttr(grid));
  entry.set(key::persistent,
            b.getBoolAttr(kernel.getSchedule().getPersistent() != tile::PersistentKind::None));
  if (int64_t resident = hop::residentBlocks(kernel); resident > 1)
    entry.set(key::blocksPerMultiprocessor, b.getI64IntegerAttr(resident));
  entry.set(key::pdl, b.getBoolAttr(*kernel.getSchedule().getPdl()));
  entry.set(key::block,
            b.getI64ArrayAttr({hopper::warpgroupThreads * kernel.getNumWarpgroups(), 1, 1}));
  entry.set(key::cluster, b.getI64ArrayAttr({blocks, 1, 1}));
  entry.set(key::sharedMemory, b.getI64IntegerAttr(*kernel.getSharedBytes()));
  entry.set(key::sharedMap, b.getArrayAttr(sharedMap));
  entry.set(key::barriers, b.getArrayAttr(mbarriers));
  describeRoles(kernel, barriers, entry);
  if (hop::TimelineOp timeline = kernel.getTimeline())
    entry.set(key::timeline, describeTimeline(timeline));
  std::string schedule;
  llvm::raw_string_ostream(schedule) << kernel.getSchedule();
  entry.set(key::schedule, b.getStringAttr(schedule));
  entry.set(key::report,
            describeReport(kernel, schedule, b.getArrayAttr(sharedMap), b.getArrayAttr(mbarriers)));
  return entry.getDictionary(context);
}
