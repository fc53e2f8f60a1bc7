//===- PtxasLog.h - What ptxas printed ------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_PTXASLOG_H
#define TESSERA_LIB_CODEGEN_PTXASLOG_H

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// What the compiler makes of a message.
enum class PtxasVerdict {
  Info,    ///< of no consequence
  Remark,  ///< ptxas repaired something at no cost (C7517, C7519)
  Warning, ///< worth telling the user
  Slow,  ///< the kernel does not run as its schedule says: wgmma serialised, setmaxnreg ignored, or
         ///< not at all for want of registers
  Error, ///< no code was produced
};

/// One message of ptxas.
struct PtxasMessage {
  PtxasVerdict verdict = PtxasVerdict::Info;
  std::string code;     ///< as "C7513"; empty for a message without one
  std::string function; ///< the function named in the text; may be empty
  unsigned ptxLine = 0; ///< 1-based line of the PTX; 0 when unknown
  std::string text;     ///< without code and severity
};

/// Resources of one function, from `ptxas -v`. Sizes are in bytes per thread.
struct PtxasFunction {
  std::string name;
  bool entry = false;
  unsigned registers = 0; ///< per thread at entry; setmaxnreg changes it later
  unsigned barriers = 0;  ///< named barriers, 0..16
  unsigned stackBytes = 0, spillStoreBytes = 0, spillLoadBytes = 0;
};

struct PtxasLog {
  std::vector<PtxasMessage> messages;
  std::vector<PtxasFunction> functions;

  const PtxasFunction *find(llvm::StringRef name) const;
};

/// Parses the output of `ptxas -v`. Lines of no known form become messages of verdict Warning, so
/// that nothing a newer ptxas says is lost.
PtxasLog parsePtxasLog(llvm::StringRef text);

/// What a code of verdict Slow means and what would help, in plain words.
struct PtxasExplanation {
  llvm::StringRef meaning, help;
};
PtxasExplanation explainPtxasCode(llvm::StringRef code);

} // namespace tessera

#endif // TESSERA_LIB_CODEGEN_PTXASLOG_H
