//===- RegisterPool.h - The registers that a launch gives a block ---------===//
//
// setmaxnreg moves registers between the warpgroups of a thread block. It makes none:
// what a launch gives the block is all that its roles can have (PTX ISA
// 9.7.20.5).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECTS_HOP_REGISTERPOOL_H
#define TESSERA_DIALECTS_HOP_REGISTERPOOL_H

#include "dialects/Hop/Machine.h"
#include "llvm/ADT/ArrayRef.h"
#include <optional>
#include <string>

namespace tessera::hop {

/// What some warpgroups of a thread block ask for.
struct RegisterRequest {
  std::string who;                  ///< as a message names them
  int64_t warpgroups;               ///< 1 or more
  std::optional<int64_t> registers; ///< of a thread; nothing keeps what the launch gives
};

/// Registers of a thread when a kernel of `warpgroups` warpgroups starts, of which some raise
/// theirs to `raised`: ptxas gives what the size of the block allows in multiples of 8, but no more
/// than the kernel asks for later.
int64_t entryRegisters(int64_t warpgroups, int64_t raised = hopper::mostThreadRegisters);

/// The same for all warpgroups of a block, which ask as `requests` say, beside the other blocks for
/// which that leaves room.
int64_t entryRegisters(llvm::ArrayRef<RegisterRequest> requests);

/// Thread blocks that a multiprocessor holds at a time, as far as threads decide: `threads` of a
/// block with so many registers each. At least 1.
int64_t residentBlocks(int64_t threads, int64_t registers);

/// The same of a block whose warpgroups ask as `requests` say: as many as find what they ask for. 1
/// where some keep what a launch gives.
int64_t residentBlocks(llvm::ArrayRef<RegisterRequest> requests);

/// The most registers of a thread with which a multiprocessor holds `blocks` of so many threads.
int64_t registersOfResident(int64_t threads, int64_t blocks);

/// Why the warpgroups cannot have what they ask for, and what would work; nothing when they can. A
/// request beyond the pool of the block would wait for ever.
std::optional<std::string> whyPoolTooSmall(llvm::ArrayRef<RegisterRequest> requests);

} // namespace tessera::hop

#endif // TESSERA_DIALECTS_HOP_REGISTERPOOL_H
