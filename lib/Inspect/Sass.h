//===- Sass.h - What the machine code of a kernel does --------------------===//
//
// Reads the text that nvdisasm prints, finds the loops and says how products,
// waits and arithmetic alternate in them.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_INSPECT_SASS_H
#define TESSERA_LIB_INSPECT_SASS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace tessera::sass {

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

struct Instruction {
  uint64_t address = 0; ///< within the function
  std::string guard;    ///< "@!P0"; empty when it always executes
  std::string opcode;   ///< "HGMMA.64x128x16.F32.BF16"
  std::string operands;
  std::optional<size_t> target; ///< of a branch, an index
  unsigned line = 0;            ///< of the source; 0 when unknown
  std::string file;             ///< that the line is of

  /// "HGMMA"
  llvm::StringRef getMnemonic() const { return llvm::StringRef(opcode).split('.').first; }
  /// "attention.tile:86"; empty when unknown.
  std::string getPlace() const;
};

struct Function {
  std::string name;
  std::vector<Instruction> instructions; ///< ascending
};

/// The functions in what `nvdisasm -c` prints, with lines when it was run with -g too.
std::vector<Function> parseDisassembly(llvm::StringRef text);

/// Disassembles a cubin. nvdisasm is the program `requested` or looked for as ptxas is. Errors:
/// none is found, with how to get one; it refuses the cubin.
llvm::Expected<std::vector<Function>> disassemble(llvm::StringRef cubin, llvm::StringRef requested);

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// A natural loop; indices are of instructions, ascending.
struct Loop {
  std::vector<size_t> body; ///< from its first instruction to the back edge
  /// What belongs to it and stands elsewhere, such as the repetition of a wait that did not succeed
  /// at once.
  std::vector<size_t> outOfLine;
};

/// The loops where a kernel spends its time: those with products in which no other such loop is; of
/// a function without products, the innermost loops that do more than wait.
std::vector<Loop> findMainLoops(const Function &function);

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

enum class RunKind {
  Products,   ///< HGMMA, up to the one that closes a group
  Wait,       ///< for groups of products
  Sync,       ///< barriers, mbarriers, bulk copies, fences
  Arithmetic, ///< anything else
};

/// Instructions of a loop that follow each other and do one kind of thing.
struct Run {
  RunKind kind = RunKind::Arithmetic;
  std::vector<size_t> instructions;
  std::map<std::string, unsigned> counts; ///< by mnemonic
};
std::vector<Run> getRuns(const Function &function, const Loop &loop);

/// Whether something else than a product, a wait or a barrier is worth a run of its own: floating
/// point, conversions, shuffles, memory. The rest is addresses, counters and moves.
bool isArithmetic(llvm::StringRef mnemonic);

/// For each instruction of the loop's body, in its order: the number of groups of products of the
/// warpgroup that are in flight before it in the second iteration.
std::vector<unsigned> getGroupsInFlight(const Function &function, const Loop &loop);

//===----------------------------------------------------------------------===//
// Samples
//===----------------------------------------------------------------------===//

/// Where the warps were when a profiler looked.
struct Samples {
  struct Place {
    uint64_t total = 0;
    std::map<std::string, uint64_t> stalls; ///< by reason, "long_sb"
  };
  std::vector<Place> places; ///< of each instruction of the function
  uint64_t total = 0;
};

/// Reads what `ncu --page source --csv` prints. Its rows are the instructions of the function, in
/// their order; an error when they are not, since the profile is then of other code.
llvm::Expected<Samples> readNcuTable(llvm::StringRef csv, const Function &function);

//===----------------------------------------------------------------------===//
// Report
//===----------------------------------------------------------------------===//

/// Prints, for each main loop, the counts of its instructions, its runs, and what strikes.
/// `samples` may be null; with `listing` every instruction is printed.
void writeReport(const Function &function, const Samples *samples, bool listing,
                 llvm::raw_ostream &os);

} // namespace tessera::sass

#endif // TESSERA_LIB_INSPECT_SASS_H
