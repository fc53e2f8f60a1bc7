//===- Pipeline.cpp - The passes of each stage ----------------------------===//

#include "lib/Compiler/Pipeline.h"
#include "dialects/Hop/Hop.h"
#include "dialects/Tile/Tile.h"
#include "lib/Codegen/EmitPTX.h"
#include "lib/Source/Source.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Hop/HopPasses.h"
#include "passes/Schedule/ScheduleChoice.h"
#include "passes/Schedule/SchedulePasses.h"
#include "passes/Tile/TilePasses.h"
#include "passes/WarpSpecialize/WarpSpecializePasses.h"

using namespace mlir;

namespace tessera {

static void addCleanup(OpPassManager &pm) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

static void buildTile(OpPassManager &pm, const PipelineOptions &) {
  pm.addPass(createTileDropDebug());
  pm.addNestedPass<tile::KernelOp>(createTileExpandOps());
  pm.addNestedPass<tile::KernelOp>(createTileShareReferences());
  pm.addNestedPass<tile::KernelOp>(createTileFindVisits());
  addCleanup(pm);
  pm.addNestedPass<tile::KernelOp>(createTileCheckDivisors());
  pm.addNestedPass<tile::KernelOp>(createTileCarrySums());
  pm.addNestedPass<tile::KernelOp>(createTileExchangeAxes());
  pm.addNestedPass<tile::KernelOp>(createTileCutDots());
  pm.addNestedPass<tile::KernelOp>(createTileMaskEarly());
  pm.addNestedPass<tile::KernelOp>(createTileMultiplyEarly());
  pm.addNestedPass<tile::KernelOp>(createTileFindRuns());
}

static void buildChosen(OpPassManager &pm, const PipelineOptions &) {
  OpPassManager &kernels = pm.nest<tile::KernelOp>();
  kernels.addPass(createTileCheckMemory());
  kernels.addPass(createTileChooseSchedule());
}

static void buildScheduled(OpPassManager &pm, const PipelineOptions &options) {
  OpPassManager &kernels = pm.nest<tile::KernelOp>();
  kernels.addPass(createTilePolynomialExp());
  kernels.addPass(createTileCompleteSpeculation());
  kernels.addPass(createTileTicketSums());
  addCleanup(kernels);
  kernels.addPass(createTileEvenLoops());
  kernels.addPass(createTileExchangeSums());
  kernels.addPass(createTileOverlap());
  addCleanup(kernels);
  TileSplitLoopsOptions loops;
  loops.split = options.split;
  kernels.addPass(createTileSplitLoops(loops));
  kernels.addPass(createTileUnrollLoops());
  addCleanup(kernels);
}

static void buildRoles(OpPassManager &pm, const PipelineOptions &options) {
  WarpSpecializeOptions roles;
  roles.producers = options.producers;
  pm.addPass(createWarpSpecialize(roles));
  addCleanup(pm);
}

static void buildStaged(OpPassManager &pm, const PipelineOptions &options) {
  pm.addNestedPass<hop::KernelOp>(createPrefetch());
  pm.addNestedPass<hop::KernelOp>(createLoadScalarsAhead());
  pm.addNestedPass<hop::KernelOp>(createAssignLayouts());
  addCleanup(pm);
  pm.addNestedPass<hop::KernelOp>(createConvertFp8Layouts());
  if (options.split)
    pm.addNestedPass<hop::KernelOp>(createGuardMasks());
  pm.addNestedPass<hop::KernelOp>(createStageOperands());
  addCleanup(pm);
  OpPassManager &kernels = pm.nest<hop::KernelOp>();
  kernels.addPass(createStageStores());
  kernels.addPass(createInsertMemoryBarriers());
  kernels.addPass(createCluster());
  kernels.addPass(createGuardGridEnd());
  kernels.addPass(createPersistent());
  kernels.addPass(createRetry());
  kernels.addPass(createLoadOnce());
}

static void buildOrdered(OpPassManager &pm, const PipelineOptions &) {
  OpPassManager &kernels = pm.nest<hop::KernelOp>();
  kernels.addPass(createOrderSlots());
  kernels.addPass(createAsyncMma());
  kernels.addPass(createFillProducts());
  kernels.addPass(createPingpong());
  kernels.addPass(createPinWork());
  kernels.addPass(createScheduleTickets());
}

static void buildHop(OpPassManager &pm, const PipelineOptions &) {
  pm.addNestedPass<hop::KernelOp>(createCheckPipes());
}

static void buildBarriers(OpPassManager &pm, const PipelineOptions &options) {
  OpPassManager &kernels = pm.nest<hop::KernelOp>();
  kernels.addPass(createJoinPipes());
  kernels.addPass(createInsertMbarriers());
  kernels.addPass(createInsertProxyFences());
  kernels.addPass(createAllocateSharedMemory());
  kernels.addPass(createFlattenGrid());
  addCleanup(pm);
  if (options.timeline)
    pm.addNestedPass<hop::KernelOp>(createInstrumentTimeline(*options.timeline));
}

static void buildLLVM(OpPassManager &pm, const PipelineOptions &options) {
  LowerToLLVMOptions lowering;
  lowering.pdl = options.pdl;
  pm.addPass(createLowerToLLVM(lowering));
}

ArrayRef<Stage> getStages() {
  static constexpr Stage stages[] = {{"tile", EmitKind::Tile, buildTile},
                                     {"chosen", EmitKind::Chosen, buildChosen},
                                     {"scheduled", EmitKind::Scheduled, buildScheduled},
                                     {"roles", EmitKind::Roles, buildRoles},
                                     {"staged", EmitKind::Staged, buildStaged},
                                     {"ordered", EmitKind::Ordered, buildOrdered},
                                     {"hop", EmitKind::Hop, buildHop},
                                     {"barriers", EmitKind::Barriers, buildBarriers},
                                     {"llvm", EmitKind::LLVM, buildLLVM}};
  return stages;
}

void buildStages(OpPassManager &pm, EmitKind first, EmitKind last, const PipelineOptions &options) {
  for (const Stage &stage : getStages())
    if (stage.level >= first && stage.level <= last)
      stage.build(pm, options);
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

FailureOr<tile::ScheduleAttr> parseSchedule(MLIRContext &context, StringRef text) {
  // No source has been read yet that would have loaded it.
  context.getOrLoadDialect<tile::TileDialect>();
  return tile::ScheduleAttr::parseText(&context, text, [&] {
    return emitError(UnknownLoc::get(&context)) << "in the schedule '" << text << "': ";
  });
}

FailureOr<SmallVector<ScheduleOverride>> parseSchedules(MLIRContext &context, StringRef text) {
  SmallVector<StringRef> parts;
  text.split(parts, ';');
  SmallVector<ScheduleOverride> overrides;
  for (StringRef part : parts) {
    auto [kernel, fields] = part.contains(':') ? part.split(':') : std::pair(StringRef(), part);
    FailureOr<tile::ScheduleAttr> parsed = parseSchedule(context, fields.trim());
    if (failed(parsed))
      return failure();
    overrides.push_back({kernel.trim().str(), *parsed});
  }
  return overrides;
}

LogicalResult overrideSchedules(ModuleOp module, ArrayRef<ScheduleOverride> overrides) {
  for (const ScheduleOverride &item : overrides) {
    if (item.kernel.empty()) {
      overrideSchedules(module, item.fields);
      continue;
    }
    if (auto kernel = module.lookupSymbol<tile::KernelOp>(item.kernel)) {
      overrideSchedule(kernel, item.fields);
      continue;
    }
    InFlightDiagnostic error = emitError(UnknownLoc::get(module.getContext()));
    error << "the schedule is for a kernel '" << item.kernel << "'; there are ";
    llvm::interleaveComma(module.getOps<tile::KernelOp>(), error,
                          [&](tile::KernelOp kernel) { error << kernel.getSymName(); });
    return error;
  }
  return success();
}

llvm::Expected<std::optional<InstrumentTimelineOptions>> parseInstrument(StringRef text) {
  auto fail = [&](const Twine &message) {
    return llvm::createStringError("in the instrumentation '" + text + "': " + message);
  };
  if (text.empty())
    return std::nullopt;
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  if (parts.front() != "timeline")
    return fail("the first word is what is recorded: timeline");
  InstrumentTimelineOptions options;
  for (StringRef part : ArrayRef(parts).drop_front()) {
    auto [name, value] = part.split('=');
    int64_t *field = name == "blocks"   ? &options.blocks
                     : name == "first"  ? &options.first
                     : name == "events" ? &options.events
                                        : nullptr;
    if (!field)
      return fail("'" + part + "' is none of blocks=N, first=N and events=N");
    int64_t least = name == "first" ? 0 : name == "blocks" ? 1 : 2;
    // 2^20 events are 8 MB for each warpgroup; numbers of blocks are below 2^31.
    constexpr int64_t most = 1 << 20;
    if (value.getAsInteger(10, *field) || *field < least || *field > most)
      return fail(name + " is a number from " + Twine(least) + " to " + Twine(most));
    if (name == "events" && !llvm::isPowerOf2_64(options.events))
      return fail("events is a power of two");
  }
  return options;
}

bool hasKernel(ModuleOp module, EmitKind level) {
  return llvm::any_of(module.getOps(), [&](Operation &op) {
    if (level <= EmitKind::Scheduled)
      return isa<tile::KernelOp>(op);
    return level == EmitKind::LLVM ? isa<LLVM::LLVMFuncOp>(op) : isa<hop::KernelOp>(op);
  });
}

DialectRegistry makeCompilerRegistry() {
  DialectRegistry registry;
  registerSourceDialects(registry);
  registerCodegenDialects(registry);
  registry.insert<hop::HopDialect>();
  return registry;
}

namespace {
struct ScheduleOptions : PassPipelineOptions<ScheduleOptions> {
  Option<std::string> schedule{
      *this, "schedule",
      llvm::cl::desc("Fields that override the kernel's, as \"consumers=2,overlap=1\"")};
};

struct HopOptions : PassPipelineOptions<HopOptions> {
  Option<int64_t> producers{*this, "producers", llvm::cl::init(1),
                            llvm::cl::desc("Roles that load, as of tile-warp-specialize")};
};
} // namespace

void registerCompilerPasses() {
  registerTilePasses();
  registerTesseraSchedulePasses();
  registerTesseraWarpSpecializePasses();
  registerTesseraHopPasses();
}

void registerStagePipelines() {
  for (const Stage &stage : getStages())
    if (stage.level != EmitKind::Hop)
      PassPipelineRegistration<>("tessera-" + stage.name.str(),
                                 "Stage " + stage.name.str() + " of tessera compile",
                                 [&stage](OpPassManager &pm) { stage.build(pm, {}); });
  static PassPipelineRegistration<ScheduleOptions> schedule(
      "tessera-schedule", "Choose schedules, overlap and split loops",
      [](OpPassManager &pm, const ScheduleOptions &options) {
        TileOverrideScheduleOptions fields;
        fields.schedule = options.schedule;
        pm.addPass(createTileOverrideSchedule(fields));
        buildStages(pm, EmitKind::Chosen, EmitKind::Scheduled);
      });
  static PassPipelineRegistration<HopOptions> hop(
      "tessera-hop", "From tile to roles, pipes and flights",
      [](OpPassManager &pm, const HopOptions &options) {
        buildStages(pm, EmitKind::Roles, EmitKind::Hop, {options.producers});
      });
  static PassPipelineRegistration<> emission(
      "tessera-emission", "Prepare the LLVM dialect for translation",
      [](OpPassManager &pm) { buildEmissionPipeline(pm, /*lineInfo=*/true); });
}

} // namespace tessera
