//===- Memory.h - Addresses to host memory ----------------------*- C++ -*-===//
#ifndef TESSERA_SIMULATOR_MEMORY_H
#define TESSERA_SIMULATOR_MEMORY_H

#include "lib/Simulator/Machine.h"

namespace tessera::sim::detail {

class Decoder;

struct Place {
  uint8_t *data = nullptr;
  Cta *cta = nullptr;                     ///< of shared memory, else null
  uint32_t offset = 0;                    ///< in it
  GlobalMemory::Buffer *buffer = nullptr; ///< of global memory, else null
  uint64_t bufferOffset() const { return data - buffer->data; }
};

enum class AccessKind : uint8_t { Read, Write, Update };

/// Finds [address, address + bytes). Reports and returns false when it is out of bounds.
bool resolve(Exec &exec, const Inst &inst, Space space, uint64_t address, uint32_t bytes,
             unsigned lane, AccessKind kind, Place &out);
/// A shared::cluster address; `ownOnly`: shared::cta.
bool resolveShared(Exec &exec, const Inst &inst, uint64_t address, uint32_t bytes, unsigned lane,
                   bool ownOnly, Place &out);
/// Checks and remembers a generic-proxy access of the executing warp to shared memory.
void noteShared(Exec &exec, const Inst &inst, const Place &place, uint32_t bytes, unsigned lane,
                AccessKind kind, bool strong);
/// Reports an access of an instruction's operand that is not in the operand's array.
void checkArray(Cluster &cluster, const Inst &inst, unsigned operand, uint32_t offset,
                uint32_t bytes, const Warp *warp, int lane);
/// Reports what the shadow found.
void reportConflict(Cluster &cluster, const Conflict &conflict, const Access &access, bool isWrite,
                    const Warp *warp, const Inst *inst, int lane);
inline uint64_t addressAt(const Exec &exec, const Inst &inst, unsigned n, unsigned lane) {
  return exec.word(inst, n, lane) + uint64_t(inst.imm);
}
/// Of Decoder::addressPair: operands `n` and `n + 1`.
inline uint64_t addressOfPair(const Exec &exec, const Inst &inst, unsigned n, unsigned lane) {
  uint64_t address = exec.word(inst, n, lane) + exec.src<uint64_t>(inst, n + 1)[lane];
  return exec.op(inst, n).cls == RegClass::R64 ? address : uint32_t(address);
}
/// The .sem and .scope of ld, st, atom and red (PTX ISA 8.3 and 8.5).
struct Ordering {
  bool relaxed = false; ///< or more than that
  bool acquire = false, release = false;
  MemScope scope = MemScope::Device;

  bool strong() const { return relaxed || acquire || release; }
  Strength strength() const {
    if (!strong())
      return Strength::Weak;
    return scope == MemScope::Device ? Strength::Device : Strength::Cluster;
  }
  /// Four bits for an instruction's flags.
  uint32_t encode() const {
    return Relaxed::make(relaxed) | Acquire::make(acquire) | Release::make(release) |
           Scope::make(scope);
  }
  static Ordering decode(uint32_t bits) {
    return {Relaxed::get(bits), Acquire::get(bits), Release::get(bits), Scope::get(bits)};
  }

private:
  using Relaxed = BitField<bool, 0>;
  using Acquire = BitField<bool, 1>;
  using Release = BitField<bool, 2>;
  using Scope = BitField<MemScope, 3>;
};

/// Modifiers shared by ld, st, atom and red.
struct MemoryMods {
  Space space = Space::Generic;
  bool cluster = false; ///< shared::cluster
  Ordering ordering;
};
bool takeMemoryMods(Decoder &d, MemoryMods &m);
/// Consumes .cta, .cluster, .gpu or .sys; without one it is .gpu.
MemScope takeScope(Decoder &d);

} // namespace tessera::sim::detail

#endif // TESSERA_SIMULATOR_MEMORY_H
