//===- EmitPTX.cpp - LLVM dialect to PTX ----------------------------------===//

#include "lib/Codegen/EmitPTX.h"
#include "lib/Codegen/AssemblyText.h"
#include "lib/Codegen/OperandsInFlight.h"
#include "lib/Codegen/WorkOrder.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/DCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/Local.h"
#include <mutex>

using namespace mlir;

namespace tessera {

// PTX ISA 8.3 is what the oldest supported toolkit, CUDA 12.3, assembles.
static constexpr const char *targetFeatures = "+ptx83";

namespace {
/// Turns LLVM's diagnostics into MLIR's; without it LLVM exits the process on an error.
class DiagnosticBridge : public llvm::DiagnosticHandler {
public:
  DiagnosticBridge(Location fallback, bool &failed) : fallback(fallback), failed(failed) {}

  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    // Remarks and notes of LLVM's own passes speak of its IR, which the user never sees.
    if (info.getSeverity() != llvm::DS_Error && info.getSeverity() != llvm::DS_Warning)
      return true;
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    if (info.getSeverity() == llvm::DS_Warning) {
      mlir::emitWarning(locate(info)) << "LLVM: " << text;
      return true;
    }
    failed = true;
    mlir::emitError(locate(info)) << "LLVM cannot generate code: " << text;
    return true;
  }

private:
  Location locate(const llvm::DiagnosticInfo &info) const {
    // Only this kind arises in code generation with a location; its base class has no classof.
    const auto *located = llvm::dyn_cast<llvm::DiagnosticInfoUnsupported>(&info);
    if (!located || !located->isLocationAvailable())
      return fallback;
    llvm::StringRef file;
    unsigned line = 0, column = 0;
    located->getLocation(file, line, column);
    return FileLineColLoc::get(fallback.getContext(), file, line, column);
  }

  Location fallback;
  bool &failed;
};
} // namespace

static const llvm::Target *getTarget(const llvm::Triple &triple, std::string &error) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  return llvm::TargetRegistry::lookupTarget(triple, error);
}

static std::unique_ptr<llvm::TargetMachine> createTargetMachine(Location loc) {
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *target = getTarget(triple, error);
  if (!target) {
    emitError(loc) << "this LLVM has no NVPTX backend: " << error;
    return nullptr;
  }
  llvm::TargetOptions options;
  // A kernel's accuracy is stated against f32 accumulation, where fused products only help.
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(triple, targetName, targetFeatures, options, llvm::Reloc::PIC_,
                                  std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

/// Marks what the lowering has written as assembly as convergent: it is for all threads of a warp
/// (`.aligned`, PTX ISA 9.7.13.1 and 9.7.15), and a copy of it on each side of a branch is not.
static void keepTogether(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *call = llvm::dyn_cast<llvm::CallBase>(&instruction); call && call->isInlineAsm())
        call->setConvergent();
}

/// Compares in f32 what LLVM has narrowed to bf16: its comparisons have no `.ftz` in PTX (PTX ISA
/// 9.7.3.23, setp for half types 9.7.4), and the code generator writes one.
static void widenComparisons(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function)) {
      auto *compare = llvm::dyn_cast<llvm::FCmpInst>(&instruction);
      if (!compare || !compare->getOperand(0)->getType()->isBFloatTy())
        continue;
      llvm::IRBuilder<> builder(compare);
      for (llvm::Use &operand : compare->operands())
        operand.set(builder.CreateFPExt(operand.get(), builder.getFloatTy()));
    }
}

/// Drops reads of tiles in shared memory that LLVM has folded all uses of, which it keeps as they
/// are assembly (EmitStage.cpp, with the address in `from`). hop-insert-proxy-fences counts on the
/// uses: the arrival that gives the slot back waits for no value that nothing takes.
static void dropDeadReads(llvm::Module &module) {
  llvm::SmallVector<llvm::Instruction *> reads;
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (assemblyOf(instruction).contains("xor.b32 from,"))
        reads.push_back(&instruction);
  // The last one first: it may be all that takes what another one gives.
  for (llvm::Instruction *read : llvm::reverse(reads)) {
    if (!read->use_empty())
      continue;
    llvm::SmallVector<llvm::WeakTrackingVH> operands(read->operand_values());
    read->eraseFromParent();
    llvm::RecursivelyDeleteTriviallyDeadInstructionsPermissive(operands);
  }
}

/// Cleans up the IR and no more: the lowering has placed loads, waits and arithmetic on purpose,
/// so nothing that moves code between blocks or changes loops runs here.
static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);

  llvm::FunctionPassManager cleanup;
  cleanup.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
  cleanup.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  cleanup.addPass(llvm::InstCombinePass());
  cleanup.addPass(llvm::SimplifyCFGPass());
  cleanup.addPass(llvm::DCEPass());

  llvm::ModulePassManager pipeline;
  pipeline.addPass(llvm::AlwaysInlinerPass());
  pipeline.addPass(llvm::GlobalDCEPass());
  pipeline.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(cleanup)));
  pipeline.run(module, modules);
}

void registerCodegenDialects(DialectRegistry &registry) {
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
}

void buildEmissionPipeline(OpPassManager &pm, bool lineInfo) {
  pm.addPass(createConvertNVVMToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  if (!lineInfo)
    return;
  // Any other kind makes the backend write `.target debug`, under which ptxas does not optimise.
  LLVM::DIScopeForLLVMFuncOpPassOptions scope;
  scope.emissionKind = LLVM::DIEmissionKind::DebugDirectivesOnly;
  pm.addPass(LLVM::createDIScopeForLLVMFuncOpPass(scope));
}

/// Runs the backend. What it cannot select ends the process, unless the program has enabled
/// llvm::CrashRecoveryContext as the tools do; then it is an error at `loc`.
static FailureOr<std::string> generate(llvm::TargetMachine &machine, llvm::Module &module,
                                       Location loc) {
  // On the heap, because they must not be destroyed after a crash.
  auto ptx = std::make_unique<llvm::SmallString<0>>();
  auto stream = std::make_unique<llvm::raw_svector_ostream>(*ptx);
  auto passes = std::make_unique<llvm::legacy::PassManager>();
  if (machine.addPassesToEmitFile(*passes, *stream, nullptr, llvm::CodeGenFileType::AssemblyFile)) {
    emitError(loc) << "this LLVM's NVPTX backend cannot write assembly";
    return failure();
  }
  llvm::CrashRecoveryContext recovery;
  if (recovery.RunSafely([&] { passes->run(module); }))
    return std::string(*ptx);
  emitError(loc) << "LLVM's NVPTX backend cannot generate code for this module; its own message "
                    "went to stderr";
  (void)passes.release();
  (void)stream.release();
  (void)ptx.release();
  return failure();
}

FailureOr<std::string> emitPTX(ModuleOp module, const EmitPTXOptions &options,
                               TimingScope &timing) {
  Location loc = module.getLoc();
  std::unique_ptr<llvm::TargetMachine> machine = createTargetMachine(loc);
  if (!machine)
    return failure();

  auto context = std::make_unique<llvm::LLVMContext>();
  bool refused = false;
  context->setDiagnosticHandler(std::make_unique<DiagnosticBridge>(loc, refused));

  TimingScope translation = timing.nest("Translation to LLVM IR");
  std::unique_ptr<llvm::Module> ir = translateModuleToLLVMIR(module, *context, "tessera");
  if (!ir)
    return failure();
  ir->setTargetTriple(machine->getTargetTriple());
  ir->setDataLayout(machine->createDataLayout());
  translation.stop();

  TimingScope optimization = timing.nest("LLVM optimization");
  keepTogether(*ir);
  optimize(*ir, *machine);
  dropDeadReads(*ir);
  widenComparisons(*ir);
  keepOperandsApart(*ir);
  orderWorkByElements(*ir);
  optimization.stop();
  if (options.llvmIR) {
    llvm::raw_string_ostream stream(*options.llvmIR);
    ir->print(stream, nullptr);
  }

  TimingScope codegen = timing.nest("LLVM code generation");
  FailureOr<std::string> ptx = generate(*machine, *ir, loc);
  if (failed(ptx)) {
    // A code generator that was cut short leaves its module in no state to be destroyed.
    (void)ir.release();
    (void)context.release();
    return failure();
  }
  return refused ? FailureOr<std::string>(failure()) : ptx;
}

} // namespace tessera
