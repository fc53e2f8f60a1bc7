//===- Runs.cpp - How products, waits and arithmetic alternate ------------===//

#include "lib/Inspect/Sass.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace tessera::sass;

static bool isProduct(const Instruction &instruction) {
  return instruction.getMnemonic().ends_with("GMMA");
}

/// The last product of a group names the scoreboard of groups.
static bool closesGroup(const Instruction &instruction) {
  return isProduct(instruction) && StringRef(instruction.operands).contains("gsb0");
}

static bool isGroupWait(const Instruction &instruction) {
  return StringRef(instruction.opcode).starts_with("WARPGROUP.DEPBAR");
}

bool tessera::sass::isArithmetic(StringRef mnemonic) {
  return StringSwitch<bool>(mnemonic)
      .Cases({"MUFU", "FMNMX", "FMNMX3", "FFMA", "FFMA2", "FMUL", "FMUL2", "FADD", "FADD2"}, true)
      .Cases({"FSEL", "FSETP", "FSET", "FCHK", "F2FP", "F2F", "F2I", "I2F", "I2FP", "FRND"}, true)
      .Cases({"HADD2", "HFMA2", "HMUL2", "HMNMX2", "SHFL", "LDL", "STL", "LDS", "STS"}, true)
      .Cases({"LDSM", "STSM", "LDG", "STG", "LD", "ST", "ATOM", "ATOMG", "ATOMS", "RED"}, true)
      .Case("HMMA", true)
      .Default(false);
}

/// The kind of run that an instruction begins; nothing for one that goes with its neighbours.
static std::optional<RunKind> getKind(const Instruction &instruction) {
  StringRef opcode = instruction.opcode, name = instruction.getMnemonic();
  if (isProduct(instruction) || opcode.starts_with("WARPGROUP.ARRIVE"))
    return RunKind::Products;
  if (isGroupWait(instruction))
    return RunKind::Wait;
  bool isSync = StringSwitch<bool>(name)
                    .Cases({"BAR", "SYNCS", "MEMBAR", "FENCE", "ERRBAR", "UCGABAR_ARV"}, true)
                    .Cases({"UCGABAR_WAIT", "UTMALDG", "UTMASTG", "UTMACMDFLUSH", "UBLKCP"}, true)
                    .Default(false);
  if (isSync)
    return RunKind::Sync;
  return isArithmetic(name) ? std::optional(RunKind::Arithmetic) : std::nullopt;
}

std::vector<Run> tessera::sass::getRuns(const Function &function, const Loop &loop) {
  std::vector<Run> runs;
  bool isClosed = true; // The next instruction of any kind begins a run.
  for (size_t index : loop.body) {
    const Instruction &instruction = function.instructions[index];
    std::optional<RunKind> kind = getKind(instruction);
    bool continues =
        !isClosed &&
        (!kind || (kind == runs.back().kind && kind != RunKind::Wait && kind != RunKind::Sync));
    // Addresses for what comes next are a run only where none is open.
    if (!continues && (kind || runs.empty()))
      runs.push_back({kind.value_or(RunKind::Arithmetic), {}, {}});
    runs.back().instructions.push_back(index);
    ++runs.back().counts[instruction.getMnemonic().str()];
    if (kind || runs.size() == 1)
      isClosed = closesGroup(instruction);
  }
  return runs;
}

std::vector<unsigned> tessera::sass::getGroupsInFlight(const Function &function, const Loop &loop) {
  std::vector<unsigned> before(loop.body.size());
  unsigned groups = 0;
  bool isOpen = false;
  // What the first iteration leaves in flight is there when the second begins.
  for (int iteration = 0; iteration < 2; ++iteration)
    for (auto [i, index] : enumerate(loop.body)) {
      const Instruction &instruction = function.instructions[index];
      before[i] = groups + isOpen;
      isOpen |= isProduct(instruction);
      if (closesGroup(instruction)) {
        ++groups;
        isOpen = false;
      }
      unsigned left = 0;
      if (isGroupWait(instruction) &&
          !StringRef(instruction.operands).rsplit(',').second.trim().getAsInteger(0, left))
        groups = std::min(groups, left);
    }
  return before;
}
