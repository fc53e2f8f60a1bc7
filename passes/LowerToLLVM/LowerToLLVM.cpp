//===- LowerToLLVM.cpp - hop to the LLVM and NVVM dialects ----------------===//
//
// Implements hop-lower-to-llvm. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "passes/HopPasses.h"
#include "passes/LowerToLLVM/Emitter.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace tessera {
#define GEN_PASS_DEF_LOWERTOLLVM
#include "passes/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

namespace {

constexpr StringRef sharedName = "tessera_shared";

struct LowerToLLVMPass : tessera::impl::LowerToLLVMBase<LowerToLLVMPass> {
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
                           LLVM::Linkage::External, sharedName, Attribute(), /*alignment=*/1024,
                           /*addrSpace=*/3);
  }

  Type parameterType(hop::KernelOp kernel, const LaunchParameter &parameter) {
    Builder b(&getContext());
    switch (parameter.kind) {
    case LaunchParameter::Map:
      return LLVM::LLVMPointerType::get(&getContext());
      case LaunchParameter::Workspace:
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

  LogicalResult lower(hop::KernelOp kernel) {
    if (!kernel.getSharedBytes())
      return kernel.emitError("has no shared-memory offsets; run hop-allocate-shared-memory first");
    FailureOr<LaunchParameters> parameters = LaunchParameters::get(kernel);
    if (failed(parameters))
      return failure();
    OpBuilder builder(kernel);
    SmallVector<Type> types;
    for (const LaunchParameter &parameter : parameters->getParameters())
      types.push_back(parameterType(kernel, parameter));
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(&getContext()), types);
    std::string symbol = kernel.getSymName().str();
    DictionaryAttr description = parameters->describe(kernel, symbol);
    kernel.setSymName(symbol + ".hop");
    auto function = LLVM::LLVMFuncOp::create(builder, kernel.getLoc(), symbol, type);
    setAttributes(function, kernel, *parameters, description);

    Block *entry = function.addEntryBlock(builder);
    builder.setInsertionPointToEnd(entry);
    Location loc = kernel.getLoc();
    auto sharedType = LLVM::LLVMPointerType::get(&getContext(), /*addressSpace=*/3);
    Value shared = LLVM::AddressOfOp::create(builder, loc, sharedType, sharedName);
    Value base = LLVM::PtrToIntOp::create(builder, loc, builder.getI32Type(), shared);
    if (failed(Emitter(kernel, *parameters, function, base).emitKernel()))
      return failure();
    kernel.erase();
    return success();
  }

  void setAttributes(LLVM::LLVMFuncOp function, hop::KernelOp kernel, const LaunchParameters &parameters,
                     DictionaryAttr description) {
    Builder b(&getContext());
    function->setAttr("nvvm.kernel", b.getUnitAttr());
    function->setAttr("nvvm.reqntid",
                      b.getDenseI32ArrayAttr({static_cast<int32_t>(128 * kernel.getNumWarpgroups())}));
    // setmaxnreg needs the register count at entry, which this fixes (ptxas C7508 otherwise).
    function->setAttr("nvvm.minctasm", b.getI32IntegerAttr(1));
    function->setAttr("tessera.kernel", description);
    // No schedule gets here for which the resource model of tile-choose-schedule found the registers short.
    function->setAttr("tessera.no_spills", b.getUnitAttr());
    // f32 results below the smallest normal number are flushed, as the tile dialect allows.
    function.setPassthroughAttr(b.getArrayAttr(b.getStrArrayAttr(
        {"denormal-fp-math-f32", "preserve-sign,preserve-sign"})));
    auto mapBytes = LLVM::LLVMArrayType::get(b.getI8Type(), 128);
    for (auto [i, parameter] : llvm::enumerate(parameters.getParameters())) {
      if (parameter.kind != LaunchParameter::Map)
        continue;
      function.setArgAttr(i, "llvm.byval", TypeAttr::get(mapBytes));
      function.setArgAttr(i, "llvm.align", b.getI64IntegerAttr(64));
      function.setArgAttr(i, "nvvm.grid_constant", b.getUnitAttr());
    }
  }
};

} // namespace
