//===- KernelAttributes.h - Attributes of a lowered kernel ----------------===//
//
// What hop-lower-to-llvm leaves on the function of a kernel, for the bundle and for the gate on
// ptxas.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWERTOLLVM_KERNELATTRIBUTES_H
#define TESSERA_PASSES_LOWERTOLLVM_KERNELATTRIBUTES_H

namespace tessera {

/// Dictionary: the kernel's entry of the bundle, in attributes.
inline constexpr const char *kernelAttrName = "tessera.kernel";

/// Unit, of a function or of the module for all of its kernels: the schedule was chosen so that the
/// registers suffice, so a spill is an error and not a warning.
inline constexpr const char *noSpillsAttrName = "tessera.no_spills";

/// Integer, of a function: so many bytes of spills of a thread are no error.
inline constexpr const char *toleratedSpillsAttrName = "tessera.tolerated_spills";

/// String, of a function of LLVM: the schedule has `work = elements`.
inline constexpr const char *elementOrderAttrName = "tessera-work-elements";

} // namespace tessera

#endif // TESSERA_PASSES_LOWERTOLLVM_KERNELATTRIBUTES_H
