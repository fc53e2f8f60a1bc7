//===- tessera-opt.cpp - Runs passes on Tessera's IR ----------------------===//

#include "lib/Compiler/Pipeline.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry = tessera::makeCompilerRegistry();
  mlir::registerTransformsPasses();
  tessera::registerCompilerPasses();
  tessera::registerStagePipelines();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Tessera's optimizer driver\n", registry));
}
