//===- AssemblyText.h - What inline assembly says ---------------------------===//

#ifndef TESSERA_LIB_CODEGEN_ASSEMBLYTEXT_H
#define TESSERA_LIB_CODEGEN_ASSEMBLYTEXT_H

#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstrTypes.h"

namespace tessera {

/// The text of an instruction that is assembly; nothing of another.
inline llvm::StringRef assemblyOf(const llvm::Instruction &instruction) {
  auto *call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  auto *assembly = call ? llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand()) : nullptr;
  return assembly ? assembly->getAsmString() : llvm::StringRef();
}

} // namespace tessera

#endif // TESSERA_LIB_CODEGEN_ASSEMBLYTEXT_H
