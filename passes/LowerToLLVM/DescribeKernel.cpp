//===- DescribeKernel.cpp - A kernel's entry in a bundle ------------------===//
//
// What the launcher, the tools and people are told of a kernel (docs/bundle.md).
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/Machine.h"
#include "dialects/Hop/TimelineLayout.h"
#include "dialects/Tile/Requirements.h"
#include "dialects/Tile/Signature.h"
#include "lib/Support/ElementTypes.h"
#include "mlir/IR/Builders.h"
#include "passes/Analysis/GridOrder.h"
#include "passes/Analysis/ReducerSumAnalysis.h"
#include "passes/LowerToLLVM/LaunchParameters.h"
#include "tessera/BundleKeys.h"

using namespace mlir;
using namespace tessera;

static Attribute describeExtent(Builder &b, tile::ViewType view, int64_t dim) {
  if (view.getStaticDim(dim) != ShapedType::kDynamic)
    return b.getI64IntegerAttr(view.getStaticDim(dim));
  return b.getStringAttr(view.getDimName(dim));
}

static StringAttr describeScalar(hop::KernelOp kernel, unsigned argument) {
  Type type = kernel.getArgument(argument).getType();
  return StringAttr::get(kernel.getContext(), tile::findScalarType(type)->name);
}

DictionaryAttr LaunchParameters::describeArgument(hop::KernelOp kernel, unsigned argument) const {
  Builder b(kernel.getContext());
  NamedAttrList entry;
  entry.set(key::name, b.getStringAttr(kernel.getArgumentName(argument)));
  auto view = dyn_cast<tile::ViewType>(kernel.getArgument(argument).getType());
  if (!view) {
    entry.set(key::kind, b.getStringAttr(kinds::scalar));
    entry.set(key::type, describeScalar(kernel, argument));
    if (FloatAttr bound =
            tile::findBound(kernel.getRequirements(), kernel.getArgumentName(argument)))
      entry.set(key::above, bound);
    return entry.getDictionary(kernel.getContext());
  }
  SmallVector<Attribute> dims;
  for (int64_t i = 0; i < view.getRank(); ++i)
    dims.push_back(describeExtent(b, view, i));
  unsigned use = access.lookup(argument);
  entry.set(key::kind, b.getStringAttr(kinds::view));
  entry.set(key::element, b.getStringAttr(getElementType(view).name));
  entry.set(key::dims, b.getArrayAttr(dims));
  entry.set(key::access, b.getStringAttr(use == kReadsAndWrites ? accesses::readWrite
                                         : use == kWrites       ? accesses::write
                                                                : accesses::read));
  entry.set(key::alignment,
            b.getI64IntegerAttr(std::max(alignment.lookup(argument), view.getElementBytes())));
  return entry.getDictionary(kernel.getContext());
}

static ArrayAttr describeMapDims(MLIRContext *context, const TensorMap &map, tile::ViewType view) {
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
      entry.set(key::extent, map.ended && dim.ofView == map.rowDim()
                                 ? b.getI64IntegerAttr(LaunchParameters::wrappedRows)
                                 : describeExtent(b, view, dim.ofView));
      entry.set(key::strideOfDim, b.getI64IntegerAttr(dim.ofView));
      break;
    case MapDim::Ends:
    case MapDim::Wraps:
      entry.set(key::extent, b.getI64IntegerAttr(2 * LaunchParameters::wrappedRows - 1));
      entry.set(key::strideOfDim, b.getI64IntegerAttr(dim.ofView));
      if (dim.kind == MapDim::Wraps)
        entry.set(key::wraps, b.getBoolAttr(true));
      break;
    }
    return entry.getDictionary(context);
  };
  return b.getArrayAttr(llvm::map_to_vector(map.dims(), describe));
}

/// Of each view the tiles along its dimensions, as those of a grid, and then those that tiles
/// outside of their views have (`tile-ticket-sums`).
ArrayAttr LaunchParameters::describeTickets(hop::KernelOp kernel) const {
  Builder b(kernel.getContext());
  SmallVector<Attribute> views;
  auto describe = [&](Attribute extent, int64_t divisor) -> Attribute {
    return b.getDictionaryAttr({b.getNamedAttr(key::extent, extent),
                                b.getNamedAttr(key::divisor, b.getI64IntegerAttr(divisor))});
  };
  for (auto [argument, attribute] : ticketed) {
    auto view = cast<tile::ViewType>(kernel.getArgument(argument).getType());
    ArrayRef<int64_t> tile = cast<DenseI64ArrayAttr>(attribute);
    int64_t first = view.getRank() - tile.size();
    SmallVector<Attribute> dims;
    for (int64_t dim = 0; dim < view.getRank(); ++dim)
      dims.push_back(describe(describeExtent(b, view, dim), dim < first ? 1 : tile[dim - first]));
    views.push_back(b.getArrayAttr(dims));
  }
  int64_t outside = tessera::ticketsOf(kernel.getSchedule().getFields());
  views.push_back(b.getArrayAttr(describe(b.getI64IntegerAttr(outside), 1)));
  return b.getArrayAttr(views);
}

/// Sets what a launch encodes the tensor map `map` of `view` from.
static void describeMap(const TensorMap &map, tile::ViewType view, NamedAttrList &entry) {
  Builder b(view.getContext());
  ArrayAttr dims = describeMapDims(view.getContext(), map, view);
  SmallVector<int64_t> box(dims.size(), 1);
  box[0] = map.layout.chunkColumns();
  // The elements of a tile of rank 1 are a row.
  for (int64_t dim = map.box.getFirstRowDim();
       map.tile.getRank() == 2 && dim <= map.box.getLastRowDim(); ++dim)
    box[map.rowPosition(dim)] = map.rows().part.getExtent(dim);
  if (map.chunked)
    box[map.chunkPosition()] = map.boxChunks();
  entry.set(key::kind, b.getStringAttr(kinds::tensorMap));
  entry.set(key::element,
            b.getStringAttr(map.isRounded ? elements::tf32 : getElementType(view).name));
  entry.set(key::dims, dims);
  entry.set(key::box, b.getI64ArrayAttr(box));
  entry.set(key::swizzle,
            b.getStringAttr(map.layout.swizzle ? Twine(map.layout.swizzle) + "B" : Twine("none")));
}

DictionaryAttr LaunchParameters::describeParameter(hop::KernelOp kernel,
                                                   const LaunchParameter &parameter) const {
  Builder b(kernel.getContext());
  NamedAttrList entry;
  auto name = [&] { return b.getStringAttr(kernel.getArgumentName(parameter.argument)); };
  switch (parameter.kind) {
  case LaunchParameter::Map:
    describeMap(maps[parameter.index],
                cast<tile::ViewType>(kernel.getArgument(parameter.argument).getType()), entry);
    entry.set(key::argument, name());
    break;
  case LaunchParameter::Workspace:
    entry.set(key::kind, b.getStringAttr(kinds::workspace));
    entry.set(key::bytes, b.getI64IntegerAttr(kernel.hasProbes() ? 12 : 8));
    break;
  case LaunchParameter::Tickets:
    entry.set(key::kind, b.getStringAttr(kinds::tickets));
    entry.set(key::views, describeTickets(kernel));
    break;
  case LaunchParameter::Timeline: {
    hop::TimelineOp timeline = kernel.getTimeline();
    entry.set(key::kind, b.getStringAttr(kinds::timeline));
    entry.set(key::bytes, b.getI64IntegerAttr(timeline.getBlocks() * kernel.getNumRecords() *
                                              timeline::recordBytes(timeline.getEvents())));
    break;
  }
  case LaunchParameter::Pointer:
    entry.set(key::kind, b.getStringAttr(kinds::pointer));
    entry.set(key::argument, name());
    break;
  case LaunchParameter::Dim:
    entry.set(key::kind, b.getStringAttr(kinds::dim));
    entry.set(key::dim, b.getStringAttr(parameter.name));
    entry.set(key::type, b.getStringAttr("i32"));
    break;
  case LaunchParameter::Stride:
    entry.set(key::kind, b.getStringAttr(kinds::stride));
    entry.set(key::argument, name());
    entry.set(key::dim, b.getI64IntegerAttr(parameter.index));
    entry.set(key::type, b.getStringAttr("i64"));
    break;
  case LaunchParameter::Scalar:
    entry.set(key::kind, b.getStringAttr(kinds::scalar));
    entry.set(key::argument, name());
    entry.set(key::type, describeScalar(kernel, parameter.argument));
    break;
  }
  return entry.getDictionary(kernel.getContext());
}

/// What people ask of a compiled kernel beside what a launch needs: who has which registers, and
/// how many slots pipes have.
static DictionaryAttr describeReport(hop::KernelOp kernel) {
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
  NamedAttrList report;
  report.set(key::roles, b.getArrayAttr(roles));
  report.set(key::stages, b.getDictionaryAttr(stages));
  return report.getDictionary(b.getContext());
}

/// Adds what the warps and the named barriers are called: "roles" and "named_barriers".
static void describeRoles(hop::KernelOp kernel, const NamedBarriers &barriers,
                          NamedAttrList &entry) {
  Builder b(kernel.getContext());
  SmallVector<Attribute> roles, named;
  auto addRole = [&](const Twine &name, int64_t first, int64_t warps) {
    roles.push_back(b.getDictionaryAttr({b.getNamedAttr(key::name, b.getStringAttr(name)),
                                         b.getNamedAttr(key::firstWarp, b.getI64IntegerAttr(first)),
                                         b.getNamedAttr(key::warps, b.getI64IntegerAttr(warps))}));
  };
  SmallVector<hop::RoleTeam> teams = hop::getTeams(kernel);
  for (hop::RoleTeam &team : teams) {
    int64_t warp = hopper::warpgroupWarps * team.first;
    if (!team.isShared())
      for (int64_t i = 0; i < team.warpgroups; ++i)
        addRole(team.roles.front().getSymName() + " " + Twine(i), warp + hopper::warpgroupWarps * i,
                hopper::warpgroupWarps);
    else if (team.roles.size() == 1) // the warps beside it have no role
      addRole(team.roles.front().getSymName(), warp, hopper::warpgroupWarps);
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
    if (!stage.getValue().empty())
      entry.set(key::value, b.getStringAttr(stage.getValue()));
    if (!stage.getFile().empty())
      entry.set(key::file, b.getStringAttr(stage.getFile()));
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
  if (divides.getDivisor().empty())
    return b.getI64IntegerAttr(divides.getFactor());
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

/// The dimensions that views name, each once.
static SmallVector<StringRef> dimsOf(hop::KernelOp kernel) {
  SmallVector<StringRef> dims;
  for (Type type : kernel.getArgumentTypes().getAsValueRange<TypeAttr>())
    if (auto view = dyn_cast<tile::ViewType>(type))
      for (int64_t dim = 0; dim < view.getRank(); ++dim)
        if (!view.getDimName(dim).empty() && !llvm::is_contained(dims, view.getDimName(dim)))
          dims.push_back(view.getDimName(dim));
  return dims;
}

/// The blocks of a cluster take neighbours along the first dimension, or one grid point together.
static ArrayAttr describeGrid(hop::KernelOp kernel) {
  Builder b(kernel.getContext());
  SmallVector<Attribute> grid;
  for (auto dim : kernel.getGrid().getAsRange<tile::GridDimAttr>()) {
    int64_t taken = kernel.sharesPoint() ? 1 : kernel.getClusterSize(),
            divisor = dim.getDivisor() * (grid.empty() ? taken : 1);
    grid.push_back(
        b.getDictionaryAttr({b.getNamedAttr(key::extent, dim.getExtent()),
                             b.getNamedAttr(key::divisor, b.getI64IntegerAttr(divisor))}));
  }
  return b.getArrayAttr(grid);
}

/// An array of slots in shared memory.
static NamedAttrList describeArray(hop::SharedMemoryOpInterface array, StringRef name,
                                   int64_t slots) {
  Builder b(array.getContext());
  NamedAttrList entry;
  entry.set(key::name, b.getStringAttr(name));
  entry.set(key::offset, b.getI64IntegerAttr(*array.getOffset()));
  entry.set(key::bytes, b.getI64IntegerAttr(array.getSharedBytes()));
  if (slots > 1)
    entry.set(key::slots, b.getI64IntegerAttr(slots));
  return entry;
}

/// The declaration of the shared memory in which a value lies; null where several may be it.
static Operation *findArray(Value value) {
  Operation *op = value.getDefiningOp();
  while (isa_and_nonnull<hop::SlotOp, hop::SliceOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return isa_and_nonnull<hop::SharedMemoryOpInterface>(op) ? op : nullptr;
}

/// FILE:LINE:COLUMN of the source.
using Places = llvm::SetVector<Attribute>;

static void addPlaces(Operation *op, Places &places) {
  op->getLoc()->walk([&](Location loc) {
    if (auto place = dyn_cast<FileLineColLoc>(loc))
      places.insert(StringAttr::get(op->getContext(), place.getFilename().getValue() + ":" +
                                                          Twine(place.getLine()) + ":" +
                                                          Twine(place.getColumn())));
    return WalkResult::advance();
  });
}

/// Where the source accesses each array, if it accesses nothing else there that is not known.
static llvm::MapVector<Operation *, Places> findAccesses(hop::KernelOp kernel) {
  llvm::MapVector<Operation *, Places> accesses;
  Places unknown;
  kernel.walk([&](Operation *op) {
    // What it declares may be set to zero there.
    if (isa<hop::SharedMemoryOpInterface>(op))
      addPlaces(op, accesses[op]);
    for (Value operand : op->getOperands())
      if (isa<hop::BufferType, hop::SharedType>(operand.getType())) {
        Operation *array = findArray(operand);
        addPlaces(op, array ? accesses[array] : unknown);
      }
  });
  for (auto &[array, places] : accesses)
    places.remove_if([&](Attribute place) { return unknown.contains(place); });
  return accesses;
}

static ArrayAttr describeBuffers(hop::KernelOp kernel) {
  Builder b(kernel.getContext());
  llvm::MapVector<Operation *, Places> accesses = findAccesses(kernel);
  SmallVector<Attribute> buffers;
  for (auto array : kernel.getBody().getOps<hop::SharedMemoryOpInterface>()) {
    if (isa<hop::BarriersOp>(array))
      continue;
    auto buffer = dyn_cast<hop::BufferOp>(*array);
    NamedAttrList entry =
        buffer ? describeArray(array, buffer.getLabel(), buffer.getBuffer().getType().getSlots())
               : describeArray(array, cast<hop::StagingOp>(*array).getLabel(), 1);
    entry.set(key::places, b.getArrayAttr(accesses[array].getArrayRef()));
    buffers.push_back(entry.getDictionary(b.getContext()));
  }
  return b.getArrayAttr(buffers);
}

static ArrayAttr describeMbarriers(hop::KernelOp kernel) {
  Builder b(kernel.getContext());
  SmallVector<Attribute> mbarriers;
  for (auto group : kernel.getBody().getOps<hop::BarriersOp>())
    mbarriers.push_back(
        describeArray(group, group.getLabel(), group.getBarriers().getType().getSlots())
            .getDictionary(b.getContext()));
  return b.getArrayAttr(mbarriers);
}

ArrayAttr LaunchParameters::describeRequirements(hop::KernelOp kernel) const {
  Builder b(kernel.getContext());
  SmallVector<Attribute> requirements;
  if (auto list = kernel.getRequirements())
    for (Attribute requirement : *list)
      if (!isa<tile::AboveAttr>(requirement)) // Its argument says it.
        requirements.push_back(describeRequirement(requirement));
  for (auto [dim, unit] : storedRows)
    requirements.push_back(
        b.getDictionaryAttr({b.getNamedAttr(key::divisor, b.getI64IntegerAttr(unit)),
                             b.getNamedAttr(key::dividend, b.getStringAttr(dim))}));
  for (StringRef dim : endedRows)
    requirements.push_back(describeRequirement(
        tile::AtMostAttr::get(b.getContext(), b.getStringAttr(dim), wrappedRows)));
  return b.getArrayAttr(requirements);
}

DictionaryAttr LaunchParameters::describe(hop::KernelOp kernel, const NamedBarriers &barriers,
                                          StringRef symbol, bool pdl) const {
  Builder b(kernel.getContext());
  SmallVector<Attribute> arguments, launch;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    arguments.push_back(describeArgument(kernel, i));
  for (const LaunchParameter &parameter : parameters)
    launch.push_back(describeParameter(kernel, parameter));

  NamedAttrList entry;
  entry.set(key::name, kernel.getSymNameAttr());
  entry.set(key::symbol, b.getStringAttr(symbol));
  entry.set(key::arguments, b.getArrayAttr(arguments));
  entry.set(key::dims, b.getStrArrayAttr(dimsOf(kernel)));
  entry.set(key::requirements, describeRequirements(kernel));
  entry.set(key::launchParameters, b.getArrayAttr(launch));
  entry.set(key::grid, describeGrid(kernel));
  entry.set(key::persistent,
            b.getBoolAttr(kernel.getSchedule().getPersistent() != tile::PersistentKind::None));
  if (mayLaunchFlat(kernel))
    entry.set(key::flat, b.getBoolAttr(true));
  if (int64_t resident = hop::residentBlocks(kernel); resident > 1)
    entry.set(key::blocksPerMultiprocessor, b.getI64IntegerAttr(resident));
  entry.set(key::pdl, b.getBoolAttr(pdl));
  entry.set(key::block,
            b.getI64ArrayAttr({hopper::warpgroupThreads * kernel.getNumWarpgroups(), 1, 1}));
  entry.set(key::cluster, b.getI64ArrayAttr({kernel.getClusterSize(), 1, 1}));
  entry.set(key::sharedMemory, b.getI64IntegerAttr(*kernel.getSharedBytes()));
  entry.set(key::sharedMap, describeBuffers(kernel));
  entry.set(key::barriers, describeMbarriers(kernel));
  describeRoles(kernel, barriers, entry);
  if (hop::TimelineOp timeline = kernel.getTimeline())
    entry.set(key::timeline, describeTimeline(timeline));
  std::string schedule;
  llvm::raw_string_ostream(schedule) << kernel.getSchedule();
  entry.set(key::schedule, b.getStringAttr(schedule));
  entry.set(key::report, describeReport(kernel));
  return entry.getDictionary(b.getContext());
}
