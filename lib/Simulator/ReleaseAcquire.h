//===- ReleaseAcquire.h - Release and acquire through memory --------------===//
//
// PTX ISA 8: a release pattern on a location (a release operation, or a fence and then a strong
// write) synchronises with an acquire pattern (an acquire operation, or a strong read and then a
// fence) that reads its value or one that read-modify-writes made of it. In shared memory the
// simulator takes every strong access for both.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_SIMULATOR_RELEASEACQUIRE_H
#define TESSERA_SIMULATOR_RELEASEACQUIRE_H

#include "lib/Simulator/Memory.h"

namespace tessera::sim::detail {

/// Before the access of a lane reads, and after it has written.
void orderRead(Exec &exec, const Place &place, const Ordering &ordering);
/// `readsToo`: a read-modify-write, which does not end what others have released.
void orderWrite(Exec &exec, const Place &place, const Ordering &ordering, bool readsToo);

/// Checks and remembers an access of the executing warp to global memory.
void noteGlobal(Exec &exec, const Inst &inst, const Place &place, uint32_t bytes, unsigned lane,
                AccessKind kind, const Ordering &ordering, bool unchanged = false);
/// The same of an asynchronous operation, seen by others as `agent` at `epoch`; false when it
/// reported a hazard.
bool noteGlobal(Cluster &cluster, const AsyncOp &op, const GlobalMemory::Buffer &buffer,
                uint64_t offset, uint32_t bytes, AccessKind kind, uint32_t agent, uint32_t epoch);

} // namespace tessera::sim::detail

#endif // TESSERA_SIMULATOR_RELEASEACQUIRE_H
