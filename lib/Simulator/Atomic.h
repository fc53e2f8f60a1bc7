//===- Atomic.h - The arithmetic of atom, red and bulk reductions ---------===//
#ifndef TESSERA_SIMULATOR_ATOMIC_H
#define TESSERA_SIMULATOR_ATOMIC_H

#include "lib/Simulator/Decoder.h"

namespace tessera::sim::detail {

enum AtomicOp : uint32_t { AAdd, AAnd, AOr, AXor, AExch, ACas, AInc, ADec, AMin, AMax };
uint64_t applyAtomic(AtomicOp op, uint64_t old, uint64_t b, uint64_t c, Ty ty);
/// Whether `applyAtomic` computes in this type: 16, 32 or 64 bits.
bool isAtomicType(Ty ty);
/// The type in which a bulk reduction combines a tensor's elements; None when there is none.
Ty reductionType(TensorElement element);
/// Consumes .add, .and, ...; -1 when there is none.
int takeAtomicOp(Decoder &d);

} // namespace tessera::sim::detail

#endif // TESSERA_SIMULATOR_ATOMIC_H
