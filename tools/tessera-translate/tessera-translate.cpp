//===- tessera-translate.cpp - LLVM dialect to PTX and cubins -------------===//
//
// The back end by itself: `tessera-translate --mlir-to-ptx` and
// `--mlir-to-cubin` take a module of the LLVM and NVVM dialects.
//
//===----------------------------------------------------------------------===//

#include "lib/Codegen/EmitPTX.h"
#include "lib/Codegen/Gate.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/CrashRecoveryContext.h"

using namespace mlir;
namespace cl = llvm::cl;

static cl::opt<std::string> ptxasPath("ptxas", cl::desc("The ptxas to run"));
static cl::list<std::string> ptxasArguments("Xptxas", cl::desc("An argument of ptxas"));
static cl::opt<bool> lineInfo("line-info", cl::init(true), cl::desc("Print .loc directives"));
static cl::opt<bool> printLog("ptxas-log", cl::desc("Print what ptxas said instead of the cubin"));

static FailureOr<std::string> toPTX(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module) {
    op->emitError("expected a module");
    return failure();
  }
  PassManager pm(op->getContext());
  tessera::buildEmissionPipeline(pm, lineInfo);
  if (failed(pm.run(module)))
    return failure();
  TimingScope timing;
  tessera::EmitPTXOptions options;
  options.lineInfo = lineInfo;
  return tessera::emitPTX(module, options, timing);
}

static LogicalResult writePTX(Operation *op, raw_ostream &os) {
  FailureOr<std::string> ptx = toPTX(op);
  if (failed(ptx))
    return failure();
  os << *ptx;
  return success();
}

static LogicalResult writeCubin(Operation *op, raw_ostream &os) {
  FailureOr<std::string> ptx = toPTX(op);
  if (failed(ptx))
    return failure();
  tessera::PTXText index(*ptx);
  std::vector<std::string> arguments(ptxasArguments.begin(), ptxasArguments.end());
  tessera::Assembly assembly =
      tessera::assemble(cast<ModuleOp>(op), *ptx, index, ptxasPath, arguments);
  if (assembly.outcome != tessera::GateOutcome::Pass)
    return failure();
  os << (printLog ? assembly.logText : assembly.cubin);
  return success();
}

int main(int argc, char **argv) {
  // An error that LLVM deems fatal then becomes one with a source location.
  llvm::CrashRecoveryContext::Enable();
  TranslateFromMLIRRegistration ptx("mlir-to-ptx", "LLVM and NVVM dialects to PTX", writePTX,
                                    tessera::registerCodegenDialects);
  TranslateFromMLIRRegistration cubin("mlir-to-cubin",
                                      "LLVM and NVVM dialects to a cubin, through the gate",
                                      writeCubin, tessera::registerCodegenDialects);
  return failed(mlirTranslateMain(argc, argv, "Tessera's back end\n"));
}
