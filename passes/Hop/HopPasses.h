//===- HopPasses.h - Passes that make and transform hop -------------------===//

#ifndef TESSERA_PASSES_HOP_HOPPASSES_H
#define TESSERA_PASSES_HOP_HOPPASSES_H

#include "dialects/Hop/Hop.h"
#include "mlir/Pass/Pass.h"

namespace mlir {
namespace arith {
class ArithDialect;
} // namespace arith
namespace LLVM {
class LLVMDialect;
} // namespace LLVM
namespace NVVM {
class NVVMDialect;
} // namespace NVVM
} // namespace mlir

namespace tessera {
#define GEN_PASS_DECL
#include "passes/Hop/HopPasses.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

#endif // TESSERA_PASSES_HOP_HOPPASSES_H
