// Interfaces of the hop dialect.

#ifndef TESSERA_DIALECTS_HOP_HOPINTERFACES_TD
#define TESSERA_DIALECTS_HOP_HOPINTERFACES_TD

include "mlir/IR/OpBase.td"

def Hop_SharedMemoryOpInterface : OpInterface<"SharedMemoryOpInterface"> {
  let cppNamespace = "::tessera::hop";
  let description = [{
    A declaration of shared memory of the thread block. `hop-allocate-shared-memory` gives it a place: `offset` bytes
    from the first byte that the kernel has.
  }];
  let methods = [
    InterfaceMethod<"The first byte, where it has been placed.", "::std::optional<uint64_t>", "getOffset">,
    InterfaceMethod<"Places it.", "void", "setOffset", (ins "::std::optional<uint64_t>":$offset)>,
    InterfaceMethod<"How many bytes it takes.", "int64_t", "getSharedBytes">,
    InterfaceMethod<"What its first byte is a multiple of.", "int64_t", "getSharedAlignment">];
  let verify = "return ::tessera::hop::verifyPlace($_op);";
}

#endif // TESSERA_DIALECTS_HOP_HOPINTERFACES_TD
