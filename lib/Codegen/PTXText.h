//===- PTXText.h - What the text of a PTX module says ---------------------===//
//
// Source lines, kernels and instruction counts of PTX text, for reports and to
// translate the positions that ptxas prints.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_PTXTEXT_H
#define TESSERA_LIB_CODEGEN_PTXTEXT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// A position in a `.tile` source, 1-based.
struct SourcePosition {
  std::string file;
  unsigned line = 0, column = 0;
};

/// Numbers of PTX instructions in one kernel, by class.
struct InstructionCounts {
  unsigned wgmma = 0;         ///< wgmma.mma_async
  unsigned tmaLoads = 0;      ///< cp.async.bulk to shared memory
  unsigned tmaStores = 0;     ///< cp.async.bulk to global memory
  unsigned tmaReductions = 0; ///< cp.reduce.async.bulk
  unsigned exponentials = 0;  ///< ex2
  unsigned shuffles = 0;      ///< shfl
  unsigned barriers = 0;      ///< bar and barrier: of the CTA, named or not
  unsigned mbarrierWaits = 0; ///< mbarrier.try_wait and test_wait
  unsigned mbarrierArrives = 0;

  /// As an object with keys wgmma, tma_loads, tma_stores, tma_reductions, ex2, shfl, barriers,
  /// mbarrier_waits and mbarrier_arrives.
  llvm::json::Object toJSON() const;
};

/// An index over PTX text as LLVM prints it.
class PTXText {
public:
  explicit PTXText(llvm::StringRef ptx);

  /// The source position that the last `.loc` at or above the 1-based PTX line names, when it lies
  /// in the same kernel.
  std::optional<SourcePosition> position(unsigned ptxLine) const;

  /// The kernel that holds a 1-based PTX line; empty outside of kernels.
  llvm::StringRef kernelAt(unsigned ptxLine) const;

  /// Counts of a kernel; all zero for an unknown name.
  InstructionCounts counts(llvm::StringRef kernel) const { return kernels.lookup(kernel); }

private:
  struct Line {
    unsigned file = 0, line = 0, column = 0; ///< the `.loc` in force; line 0 for none
    int kernel = -1;                         ///< index into kernelNames
  };
  void parseFile(llvm::StringRef directive);
  void parseLoc(llvm::StringRef directive);

  std::vector<Line> lines;
  std::vector<std::string> kernelNames;
  llvm::StringMap<InstructionCounts> kernels;
  llvm::DenseMap<unsigned, std::string> files;
  Line current;
};

/// `ptx` with its `.loc`, `.file` and debug sections turned into comments, line for line: with them
/// ptxas writes line tables that triple a cubin, with the same machine code.
std::string withoutLineInfo(llvm::StringRef ptx);

} // namespace tessera

#endif // TESSERA_LIB_CODEGEN_PTXTEXT_H
