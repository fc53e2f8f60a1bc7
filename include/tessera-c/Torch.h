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

#include "tessera-c/Runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a kernel takes after q, k, v, o, lse and scale, in this order. */
typedef enum tessera_torch_extras {
  TESSERA_TORCH_SOFTCAP = 1,
  TESSERA_TORCH_ALIBI = 2,
  /** Two, left and right. */
  TESSERA_TORCH_WINDOW = 4
} tessera_torch_extras;

/** The kernel for a call. */
typedef struct tessera_torch_choice {
  /** It is never destroyed. */
  tessera_kernel *kernel;
  /** Of tessera_torch_extras. */
  int32_t extras;
  /** Other than 0: calls like this one need not ask again. */
  int32_t is_final;
} tessera_torch_choice;

/** Finds the kernel of a variant for an element type and the sizes B, H, SQ, D, HK, SK, DV, which
 * stores the LSE where `stores_lse` is not 0. Returns 0, or another number when there is none,
 * which the caller of the op gets as a RuntimeError that says so. */
typedef int (*tessera_torch_resolver)(const char *variant, int32_t type, const int64_t *sizes,
                                      int32_t stores_lse, tessera_torch_choice *choice);

/** Registers the kernels of `name_space::attention_forward` and `name_space::attention_inference`,
 * which are defined, for a dispatch key ("CUDA"). `libtorch` and `libtorch_cuda` are paths of
 * libraries that are loaded; without the second, launches go to the default stream. `version` is
 * PyTorch's, major << 56 | minor << 48. `resolver` lives as long as the process. Returns 1, or 0
 * where PyTorch has not all functions (before 2.10), with nothing registered. */
TESSERA_EXPORT int tessera_torch_register(const char *name_space, const char *key,
                                          const char *libtorch, const char *libtorch_cuda,
                                          uint64_t version, tessera_torch_resolver resolver);

/** Forgets final choices. */
TESSERA_EXPORT void tessera_torch_reset(void);

/** The tessera_runtime_status of the last call of an op that failed on this thread; then SUCCESS.
 */
TESSERA_EXPORT tessera_runtime_status tessera_torch_take_status(void);

#ifdef __cplusplus
}
#endif

#endif /* TESSERA_C_TORCH_H */
