//===- LowerToLLVM.cpp - hop to the LLVM and NVVM dialects ----------------===//
//
// Implements hop-lower-to-llvm. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/FragmentLayout.h"
#include "dialects/Hop/Machine.h"
#include "dialects/Tile/ScheduleFields.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Matchers.h"
#include "passes/Analysis/IndexFacts.h"
#include "passes/Hop/HopPasses.h"
#include "passes/LowerToLLVM/Emitter.h"
#include "passes/LowerToLLVM/KernelAttributes.h"

namespace tessera {
#define GEN_PASS_DEF_LOWERTOLLVM
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

constexpr StringRef sharedName = "tessera_shared";

struct LowerToLLVMPass : tessera::impl::LowerToLLVMBase<LowerToLLVMPass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<hop::KernelOp> kernels(getOperation().getOps<hop::KernelOp>());
    if (!kernels.empty())
      declareSharedMemory();
    for (hop::KernelOp kernel : kernels)
      if (failed(lower(kernel)))
        return signalPassFailure();
  }

  /// Dynamic shared memory: its size is the launch's.
  void declareSharedMemory() {
    OpBuilder builder = OpBuilder::atBlockBegin(getOperation().getBody());
    auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), 0);
    LLVM::GlobalOp::create(builder, getOperation().getLoc(), type, /*isConstant=*/false,
                           LLVM::Linkage::External, sharedName, Attribute(),
                           /*alignment=*/hopper::tileAlignment,
                           /*addrSpace=*/3);
  }

  Type parameterType(hop::KernelOp kernel, const LaunchParameter &parameter) {
    Builder b(&getContext());
    switch (parameter.kind) {
    case LaunchParameter::Map:
      return LLVM::LLVMPointerType::get(&getContext());
    case LaunchParameter::Workspace:
    case LaunchParameter::Tickets:
    case LaunchParameter::Timeline:
    case LaunchParameter::Pointer:
      return LLVM::LLVMPointerType::get(&getContext(), /*addressSpace=*/1);
    case LaunchParameter::Dim:
      return b.getI32Type();
    case LaunchParameter::Stride:
      return b.getI64Type();
    case LaunchParameter::Scalar:
      break;
    }
    Type type = kernel.getArgument(parameter.argument).getType();
    return type.isIndex() ? b.getI64Type() : type;
  }

  /// Whether the layouts of the tiles of `op` fit what it does with them.
  static bool layoutsAgree(Operation *op) {
    auto layoutOf = [](Value value) { return hop::getLayout(value.getType()); };
    const auto accumulator = hop::LayoutAttr::getAccumulator(op->getContext()),
               pairs = hop::LayoutAttr::getRowPairs(op->getContext());
    // Products keep the order of rows that their first operand has, which is verified.
    auto isFragment = [&](Value value) {
      return !isa<RankedTensorType>(value.getType()) || layoutOf(value) == accumulator ||
             layoutOf(value) == pairs;
    };
    if (auto broadcast = dyn_cast<tile::BroadcastOp>(op))
      return layoutOf(broadcast.getSource()) ==
             layoutOf(broadcast).getSlice(1 - broadcast.getAxis());
    if (auto reduce = dyn_cast<tile::ReduceOp>(op)) {
      hop::LayoutAttr slice = layoutOf(reduce.getSource()).getSlice(1 - reduce.getAxis()),
                      layout = layoutOf(reduce);
      return layout.withPartial(false) == slice &&
             (layout.getPartial() || slice.getWarpParts() == 1);
    }
    if (auto scan = dyn_cast<tile::ScanOp>(op)) {
      auto source = cast<RankedTensorType>(scan.getSource().getType());
      return !layoutOf(scan).getPartial() && hop::ScanOp::getWarpSpan(source, scan.getAxis()) == 0;
    }
    if (auto store = dyn_cast<tile::StoreOp>(op)) {
      hop::LayoutAttr layout = layoutOf(store.getValue());
      return !layout || !layout.getPartial();
    }
    if (auto scatter = dyn_cast<tile::ScatterOp>(op)) {
      hop::LayoutAttr layout = layoutOf(scatter.getValue());
      return !layout || (!layout.getPartial() && llvm::all_of(scatter.getRows(), [&](Value rows) {
        return layoutOf(rows) == (layout.getRank() == 2 ? layout.getSlice(0) : layout);
      }));
    }
    if (auto scatter = dyn_cast<tile::ScatterAddOp>(op)) {
      hop::LayoutAttr layout = layoutOf(scatter.getValue());
      return (!layout || !layout.getPartial()) &&
             llvm::all_of(scatter.getIndices(), [&](Value index) {
               return !isa<RankedTensorType>(index.getType()) || layoutOf(index) == layout;
             });
    }
    // The layout of a fragment of 8 bits is verified.
    if (auto issue = dyn_cast<hop::MmaIssueOp>(op);
        issue && tile::isByteFloat(issue.getB().getType().getTile().getElementType()))
      return !issue.getAcc() || isa<hop::FlightType>(issue.getAcc().getType()) ||
             layoutOf(issue.getAcc()) == accumulator;
    if (auto stage = dyn_cast<hop::StageOp>(op)) {
      auto tile = cast<RankedTensorType>(stage.getTile().getType());
      hop::LayoutAttr layout = hop::getLayout(tile);
      if (tile.getRank() == 1)
        return layout == accumulator.getSlice(0) || layout == pairs.getSlice(0);
      return layout == accumulator ||
             (!stage.getTransposed() && (layout == pairs || hop::wordsOfRun(tile)));
    }
    if (isa<hop::MmaIssueOp>(op))
      return llvm::all_of(op->getOperands(), isFragment);
    if (auto gather = dyn_cast<hop::GatherOp>(op))
      return gather.getLayout().has_value();
    // Elementwise operations verify that theirs are the same.
    return true;
  }

  /// Whether the tiles of `op` are divided among as many warpgroups as its role has.
  static bool fitsRole(Operation *op) {
    auto role = op->getParentOfType<hop::RoleOp>();
    return llvm::all_of(op->getResultTypes(), [&](Type type) {
      hop::LayoutAttr layout = hop::getLayout(type);
      int64_t warpgroups = 1;
      if (layout)
        for (const hop::LayoutDigit &digit : layout.getWarpgroups())
          warpgroups *= digit.extent;
      return !role || warpgroups == 1 ||
             warpgroups ==
                 role.getNumWarpgroups() * role->getParentOfType<hop::KernelOp>().getTileBlocks();
    });
  }

  /// Refuses a kernel that the passes before this one have not seen.
  static LogicalResult checkReady(hop::KernelOp kernel) {
    if (!kernel.getSharedBytes())
      return kernel.emitError("has no shared-memory offsets; run hop-allocate-shared-memory first");
    const tile::ScheduleFields &schedule = kernel.getSchedule().getFields();
    if (failed(schedule.require(kernel, &tile::ScheduleFields::persistent)))
      return failure();
    auto lacksLayout = [](Type type) {
      return isa<RankedTensorType>(type) && !hop::getLayout(type);
    };
    WalkResult walk = kernel.walk([&](Operation *op) -> WalkResult {
      if (auto memory = dyn_cast<hop::SharedMemoryOpInterface>(op); memory && !memory.getOffset())
        return op->emitError(
            "has no offset in shared memory; run hop-allocate-shared-memory first");
      if (llvm::any_of(op->getOperandTypes(), lacksLayout) ||
          llvm::any_of(op->getResultTypes(), lacksLayout))
        return op->emitError("uses a tile without a layout; run hop-assign-layouts first");
      if (isa<scf::SCFDialect>(op->getDialect()) &&
          llvm::any_of(op->getOperandTypes(), llvm::IsaPred<hop::FlightType>))
        return op->emitError("carries a flight; wait for products before a branch (ptxas C7514)");
      if (!layoutsAgree(op))
        return op->emitError("mixes layouts");
      if (!fitsRole(op))
        return op->emitError("has a layout for another number of warpgroups than its role has");
      if (failed(checkDivisor(op)))
        return failure();
      // Said of the use, for canonicalization leaves constants without a location.
      for (Value operand : op->getOperands())
        if (APInt value; operand.getType().isIndex() &&
                         matchPattern(operand, m_ConstantInt(&value)) && !value.isSignedIntN(32))
          return op->emitError("uses the index ")
                 << value.getSExtValue() << "; indices have 32 bits on the machine";
      return success();
    });
    return failure(walk.wasInterrupted());
  }

  LogicalResult lower(hop::KernelOp kernel) {
    if (failed(checkReady(kernel)))
      return failure();
    FailureOr<LaunchParameters> parameters = LaunchParameters::get(kernel);
    FailureOr<NamedBarriers> barriers = NamedBarriers::get(kernel);
    if (failed(parameters) || failed(barriers))
      return failure();
    OpBuilder builder(kernel);
    SmallVector<Type> types;
    for (const LaunchParameter &parameter : parameters->getParameters())
      types.push_back(parameterType(kernel, parameter));
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(&getContext()), types);
    std::string symbol = kernel.getSymName().str();
    DictionaryAttr description = parameters->describe(kernel, *barriers, symbol, pdl);
    kernel.setSymName(symbol + ".hop");
    auto function = LLVM::LLVMFuncOp::create(builder, kernel.getLoc(), symbol, type);
    setAttributes(function, kernel, *parameters, description);

    Block *entry = function.addEntryBlock(builder);
    builder.setInsertionPointToEnd(entry);
    Location loc = kernel.getLoc();
    auto sharedType = LLVM::LLVMPointerType::get(&getContext(), /*addressSpace=*/3);
    Value shared = LLVM::AddressOfOp::create(builder, loc, sharedType, sharedName);
    Value base = LLVM::PtrToIntOp::create(builder, loc, builder.getI32Type(), shared);
    if (failed(Emitter(kernel, *parameters, *barriers, function, base).emitKernel(pdl)))
      return failure();
    kernel.erase();
    return success();
  }

  /// Bytes of spills of a thread that cost less than a block that would not fit beside the others:
  /// kernels/layer_norm.tile with rows of 16384 (docs/lab/rows.md).
  static constexpr int64_t toleratedSpills = 96;
  /// The same of work by elements beside a role that makes sums, which is what nothing fits
  /// without. A word that is spilled takes two instructions of a step, and without the role there
  /// are eight products in place of five, some 1500 cycles more of a step at 128 columns: gradients
  /// of two decays and of QK-norm (bench/results/2026-11-28-nvidia-h200-3aa44312-calls-device.md).
  static constexpr int64_t toleratedByElements = 1024;

  /// How many bytes a thread may spill where that costs less than any other way; 0 for none.
  static int64_t countToleratedSpills(hop::KernelOp kernel, int64_t blocks, bool isOneRole) {
    tile::ScheduleAttr schedule = kernel.getSchedule();
    if (schedule.getWork() == tile::WorkKind::elements &&
        schedule.getPlacement() == tile::PlacementKind::apart)
      return toleratedByElements;
    return blocks > 1 && isOneRole ? toleratedSpills : 0;
  }

  void setAttributes(LLVM::LLVMFuncOp function, hop::KernelOp kernel,
                     const LaunchParameters &parameters, DictionaryAttr description) {
    Builder b(&getContext());
    function->setAttr("nvvm.kernel", b.getUnitAttr());
    function->setAttr("nvvm.reqntid", b.getDenseI32ArrayAttr({static_cast<int32_t>(
                                          hopper::warpgroupThreads * kernel.getNumWarpgroups())}));
    // setmaxnreg needs the register count at entry, which this fixes (ptxas C7508 otherwise).
    SmallVector<hop::RegisterRequest> requests = hop::getRegisterRequests(kernel);
    auto blocks = static_cast<int32_t>(hop::residentBlocks(requests));
    function->setAttr("nvvm.minctasm", b.getI32IntegerAttr(blocks));
    if (int64_t size = kernel.getClusterSize(); size > 1)
      function->setAttr("nvvm.cluster_dim",
                        b.getDenseI32ArrayAttr({static_cast<int32_t>(size), 1, 1}));
    function->setAttr(kernelAttrName, description);
    // Every schedule has been checked against the register model, so a spill is an error (Gate.h).
    // The model does not know what a timeline takes.
    if (!kernel.getTimeline())
      function->setAttr(noSpillsAttrName, b.getUnitAttr());
    if (int64_t bytes = countToleratedSpills(kernel, blocks, requests.size() == 1))
      function->setAttr(toleratedSpillsAttrName, b.getI64IntegerAttr(bytes));
    // f32 results below the smallest normal number are flushed, as the tile dialect allows.
    SmallVector<Attribute> passed = {
        b.getStrArrayAttr({"denormal-fp-math-f32", "preserve-sign,preserve-sign"})};
    if (kernel.getSchedule().getWork() == tile::WorkKind::elements)
      passed.push_back(b.getStringAttr(elementOrderAttrName));
    function.setPassthroughAttr(b.getArrayAttr(passed));
    auto mapBytes = LLVM::LLVMArrayType::get(b.getI8Type(), hopper::tensorMapBytes);
    for (auto [i, parameter] : llvm::enumerate(parameters.getParameters())) {
      if (parameter.kind != LaunchParameter::Map)
        continue;
      function.setArgAttr(i, "llvm.byval", TypeAttr::get(mapBytes));
      function.setArgAttr(i, "llvm.align", b.getI64IntegerAttr(hopper::tensorMapAlignment));
      function.setArgAttr(i, "nvvm.grid_constant", b.getUnitAttr());
    }
  }
};

} // namespace
