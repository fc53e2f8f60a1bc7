/*===- tessera-c/Attention.h - Kernels of ops of frameworks -----*- C -*-===*\
|*                                                                          *|
|* How an op of a framework finds the kernel of a call: by the text of a    *|
|* variant, so that graphs mean the same in another process, the element    *|
|* type and the sizes. A resolver answers, which may compile.               *|
|*                                                                          *|
\*===--------------------------------------------------------------------===*/

#ifndef TESSERA_C_ATTENTION_H
#define TESSERA_C_ATTENTION_H

#include "tessera-c/Program.h"
#include "tessera-c/Runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a kernel takes after q, k, v, o, lse (if it is stored) and scale, in this order. */
typedef enum tessera_attention_extras {
  TESSERA_ATTENTION_SOFTCAP = 1,
  TESSERA_ATTENTION_ALIBI = 2,
  /** Two, left and right. */
  TESSERA_ATTENTION_WINDOW = 4
} tessera_attention_extras;

/** What computes a call. */
typedef struct tessera_attention_choice {
  /** It is never destroyed. */
  tessera_kernel *kernel;
  /** The interpreter's form, where `kernel` is null. It is never destroyed. */
  tessera_program *program;
  /** Of tessera_attention_extras. */
  int32_t extras;
  /** Other than 0: calls like this one need not ask again. */
  int32_t is_final;
  /** Why there is none, or null; it lives until the next call of the thread. */
  const char *error;
} tessera_attention_choice;

/** Chooses for a variant, an element type (tessera_type) and the sizes B, H, SQ, D, HK, SK, DV;
 * with the LSE as a result where `stores_lse` is not 0. Returns 0, or another number when there is
 * nothing to choose. */
typedef int (*tessera_attention_resolver)(const char *variant, int32_t type, const int64_t *sizes,
                                          int32_t stores_lse, tessera_attention_choice *choice);

#ifdef __cplusplus
}
#endif

#endif /* TESSERA_C_ATTENTION_H */
