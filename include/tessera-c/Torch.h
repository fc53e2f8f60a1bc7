/*===- tessera-c/Torch.h - Kernels of ops of PyTorch ------------*- C -*-===*\
|*                                                                          *|
|* The CUDA kernels of the ops that the Python package defines, registered  *|
|* with PyTorch's dispatcher through its C interface for separately built   *|
|* extensions. Nothing of PyTorch is needed to build this: the functions    *|
|* are looked up in the process.                                            *|
|*                                                                          *|
\*===--------------------------------------------------------------------===*/

#ifndef TESSERA_C_TORCH_H
#define TESSERA_C_TORCH_H

#include "tessera-c/Attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Registers the kernels of `name_space::attention_forward` and `name_space::attention_inference`,
 * which are defined, for a dispatch key ("CUDA"). `libtorch` and `libtorch_cuda` are paths of
 * libraries that are loaded; without the second, launches go to the default stream. `version` is
 * PyTorch's, major << 56 | minor << 48. `resolver` lives as long as the process; where it finds
 * nothing, the caller of the op gets a RuntimeError that says so. Returns 1, or 0 where PyTorch has
 * not all functions (before 2.10), with nothing registered. */
TESSERA_EXPORT int tessera_torch_register(const char *name_space, const char *key,
                                          const char *libtorch, const char *libtorch_cuda,
                                          uint64_t version, tessera_attention_resolver resolver);

/** Forgets final choices. */
TESSERA_EXPORT void tessera_torch_reset(void);

/** The tessera_runtime_status of the last call of an op that failed on this thread; then SUCCESS.
 */
TESSERA_EXPORT tessera_runtime_status tessera_torch_take_status(void);

#ifdef __cplusplus
}
#endif

#endif /* TESSERA_C_TORCH_H */
