//===- OperandsInFlight.h - Registers that products in flight read --------===//

#ifndef TESSERA_LIB_CODEGEN_OPERANDSINFLIGHT_H
#define TESSERA_LIB_CODEGEN_OPERANDSINFLIGHT_H

namespace llvm {
class Module;
} // namespace llvm

namespace tessera {

/// Has products multiply copies of the registers that other instructions of `module` read while a
/// wgmma may still read them: before its wait nothing else touches them (PTX ISA 9.7.15.7.3).
/// hop-async-mma places waits by values of the source, and LLVM makes one register of two values
/// that are equal.
void keepOperandsApart(llvm::Module &module);

} // namespace tessera

#endif // TESSERA_LIB_CODEGEN_OPERANDSINFLIGHT_H
