//===- Memory.h - Addresses to host memory ----------------------*- C++ -*-===//
#ifndef TESSERA_SIMULATOR_MEMORY_H
#define TESSERA_SIMULATOR_MEMORY_H

#include "Machine.h"

namespace tessera::sim::detail {

class Decoder;

struct Place {
  uint8_t *data = nullptr;
  Cta *cta = nullptr;  ///< of shared memory, else null
  uint32_t offset = 0; ///< in it
};

enum class AccessKind : uint8_t { Read, Write, Update };

/// Finds [address, address + bytes). Reports and returns false when it is out of bounds.
bool resolve(Exec &e, const Inst &i, Space space, uint64_t address, uint32_t bytes, unsigned lane,
             AccessKind kind, Place &out);
/// A shared::cluster address; `ownOnly`: shared::cta.
bool resolveShared(Exec &e, const Inst &i, uint64_t address, uint32_t bytes, unsigned lane,
                   bool ownOnly, Place &out);
/// Checks and remembers a generic-proxy access of the executing warp to shared memory.
void noteShared(Exec &e, const Inst &i, const Place &place, uint32_t bytes, unsigned lane,
                AccessKind kind, bool strong);
/// Reports what the shadow found.
void reportConflict(Cluster &cluster, const Conflict &conflict, const Access &access, bool isWrite,
                    const Warp *warp, const Inst *inst, int lane);
/// Synchronisation through strong accesses: what a release at an address publishes, an acquire
/// there sees.
void strongAcquire(Exec &e, uint64_t key);
void strongRelease(Exec &e, uint64_t key);

inline uint64_t addressAt(const Exec &e, const Inst &i, unsigned n, unsigned lane) {
  uint64_t base =
      e.op(i, n).cls == RegClass::R64 ? e.src<uint64_t>(i, n)[lane] : e.src<uint32_t>(i, n)[lane];
  return base + uint64_t(i.imm);
}
/// Modifiers shared by ld, st, atom and red.
struct MemoryMods {
  Space space = Space::Generic;
  bool cluster = false; ///< shared::cluster
  bool strong = false, acquire = false, release = false;
};
bool takeMemoryMods(Decoder &d, MemoryMods &m);

} // namespace tessera::sim::detail

#endif // TESSERA_SIMULATOR_MEMORY_H
