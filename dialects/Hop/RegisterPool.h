//===- RegisterPool.h - The registers that a launch gives a block ---------===//
//
// setmaxnreg moves registers between the warps of a thread block. It makes none:
// what a launch gives the block is all that its roles can have (PTX ISA
// 9.7.20.5).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECTS_HOP_REGISTERPOOL_H
#define TESSERA_DIALECTS_HOP_REGISTERPOOL_H

#include "dialects/Hop/Machine.h"
#include <optional>
#include <string>

namespace tessera::hop {

/// What the roles of a thread block ask for, in registers per thread.
struct RoleRegisters {
  int64_t producer, consumer, consumers;
  int64_t warpgroups() const { return consumers + 1; }
};

/// Registers of a thread when a kernel of `warpgroups` warpgroups starts, of which some raise
/// theirs to `raised`: ptxas gives what the size of the block allows in multiples of 8, but no more
/// than the kernel asks for later.
int64_t entryRegisters(int64_t warpgroups, int64_t raised = hopper::mostThreadRegisters);

/// Why the roles cannot have what they ask for, and what would work; nothing when they can. A
/// request beyond the pool of the block would wait for ever.
std::optional<std::string> whyPoolTooSmall(const RoleRegisters &roles);

} // namespace tessera::hop

#endif // TESSERA_DIALECTS_HOP_REGISTERPOOL_H
