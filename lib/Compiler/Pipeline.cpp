//===- Pipeline.cpp - The passes of each phase ----------------------------===//

#include "lib/Compiler/Pipeline.h"
#include "dialects/Hop/Hop.h"
#include "lib/Codegen/EmitPTX.h"
#include "lib/Source/Source.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "passes/HopPasses.h"
#include "passes/TilePasses.h"

using namespace mlir;

namespace tessera {

static void addCleanup(OpPassManager &pm) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

void buildTilePhase(OpPassManager &pm) { addCleanup(pm); }

void buildSchedulePhase(OpPassManager &pm, StringRef schedule) {
  TileChooseScheduleOptions options;
  options.schedule = schedule.str();
  pm.addPass(createTileChooseSchedule(options));
  pm.addPass(createTileOverlap());
  addCleanup(pm);
  pm.addPass(createTileSplitLoops());
  addCleanup(pm);
}

void buildHopPhase(OpPassManager &pm) {
  pm.addPass(createWarpSpecialize());
  addCleanup(pm);
  pm.addNestedPass<hop::KernelOp>(createAssignLayouts());
  addCleanup(pm);
  OpPassManager &kernels = pm.nest<hop::KernelOp>();
  kernels.addPass(createStageStores());
  kernels.addPass(createCluster());
  kernels.addPass(createPersistent());
  kernels.addPass(createAsyncMma());
  kernels.addPass(createPingpong());
}

void buildBarriersPhase(OpPassManager &pm) {
  OpPassManager &kernels = pm.nest<hop::KernelOp>();
  kernels.addPass(createInsertMbarriers());
  kernels.addPass(createInsertProxyFences());
  kernels.addPass(createAllocateSharedMemory());
  addCleanup(pm);
}

void buildLLVMPhase(OpPassManager &pm) { pm.addPass(createLowerToLLVM()); }

void registerCompilerDialects(DialectRegistry &registry) {
  registerSourceDialects(registry);
  registerCodegenDialects(registry);
  registry.insert<hop::HopDialect>();
}

namespace {
struct ScheduleOptions : PassPipelineOptions<ScheduleOptions> {
  Option<std::string> schedule{
      *this, "schedule",
      llvm::cl::desc("Fields that override the kernel's, as \"consumers=2,overlap=1\"")};
};
} // namespace

void registerPhasePipelines() {
  static PassPipelineRegistration<> tile("tessera-tile", "Clean up a source", buildTilePhase);
  static PassPipelineRegistration<ScheduleOptions> schedule(
      "tessera-schedule", "Choose schedules, overlap and split loops",
      [](OpPassManager &pm, const ScheduleOptions &options) {
        buildSchedulePhase(pm, options.schedule);
      });
  static PassPipelineRegistration<> hop("tessera-hop", "From tile to roles, pipes and flights",
                                        buildHopPhase);
  static PassPipelineRegistration<> barriers(
      "tessera-barriers", "From pipes to mbarriers, fences and offsets", buildBarriersPhase);
  static PassPipelineRegistration<> llvm("tessera-llvm", "From hop to the LLVM dialect",
                                         buildLLVMPhase);
  static PassPipelineRegistration<> emission(
      "tessera-emission", "Prepare the LLVM dialect for translation",
      [](OpPassManager &pm) { buildEmissionPipeline(pm, /*lineInfo=*/true); });
}

} // namespace tessera
