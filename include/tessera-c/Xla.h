/*===- tessera-c/Xla.h - Handlers of custom calls of XLA --------*- C -*-===*\
|*                                                                          *|
|* Handlers for XLA's foreign function interface, which JAX registers by    *|
|* their addresses. Nothing of XLA is needed to build this.                 *|
|*                                                                          *|
\*===--------------------------------------------------------------------===*/

#ifndef TESSERA_C_XLA_H
#define TESSERA_C_XLA_H

#include "tessera-c/Attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/** XLA_FFI_CallFrame. */
typedef struct tessera_xla_call tessera_xla_call;
/** XLA_FFI_Error. */
typedef struct tessera_xla_error tessera_xla_error;

/** tessera_program_run of libtessera, which has the interpreter. */
typedef tessera_compile_status (*tessera_xla_interpreter)(tessera_program *program,
                                                          const tessera_argument *arguments,
                                                          size_t count,
                                                          tessera_diagnostic_handler handler,
                                                          void *user_data);

/** Sets who chooses for tensors of CUDA devices and of the CPU, and who runs programs (null:
 * nobody). All live as long as the process. */
TESSERA_EXPORT void tessera_xla_register(tessera_attention_resolver resolver,
                                         tessera_attention_resolver resolver_cpu,
                                         tessera_xla_interpreter interpreter);

/** Forgets final choices. */
TESSERA_EXPORT void tessera_xla_reset(void);

/** Attention on the call's CUDA stream.
 *
 *  Arguments: q [B, H, SQ, D], k [B, HK, SK, D], v [B, HK, SK, DV] in f16 or bf16, or with the
 *  heads behind the rows, and then the views that the kernel takes after its scale, such as slopes.
 *  Results: o like q with DV columns, and, if a second result is asked for, lse [B, H, SQ] in f32.
 *
 *  Attributes: `variant`, the text that the resolver gets; `layout`, "BHSD" or "BSHD"; `scale`
 *  (f32); `extras`, what the kernel takes after its scale, a letter for each: v for the next view,
 * f for the next of the array `numbers` (f32), i for the next of the array `integers` (i32). Arrays
 *  of nothing are left out. With the letter s the scale stands in its place among these.
 *
 *  The handler may be recorded in command buffers. Errors: INVALID_ARGUMENT for what does not fit,
 *  NOT_FOUND where there is no kernel, INTERNAL for those of the driver. */
TESSERA_EXPORT tessera_xla_error *tessera_xla_attention(tessera_xla_call *call);

/** The same for tensors of the CPU: runs the program that was chosen. A kernel, if one was chosen,
 *  is launched on the default stream. */
TESSERA_EXPORT tessera_xla_error *tessera_xla_attention_cpu(tessera_xla_call *call);

/** Gradients of attention.
 *
 *  Arguments: q, k, v, o, do like o, lse, where the LSE has a gradient dlse like lse, and then
 * views. Results: dq, dk, dv like q, k, v, and then the gradients of views, of f32: the letter d in
 * `extras` is the next of these. To each of them belongs an operand behind the views, of zeros,
 * with which it shares its memory. The other attributes are those of tessera_xla_attention; the
 * resolver is asked with `stores_lse` for a kernel that takes dlse. Memory for what a sequence
 * keeps between its kernels comes from XLA for the time of the call, so that command buffers do not
 * record it. */
TESSERA_EXPORT tessera_xla_error *tessera_xla_attention_backward(tessera_xla_call *call);

/** The same for tensors of the CPU. */
TESSERA_EXPORT tessera_xla_error *tessera_xla_attention_backward_cpu(tessera_xla_call *call);

/** The lists of the blocks that a mask leaves something of (kernels/attention_lists.tile), for as
 *  many calls of attention as have the same mask and extents.
 *
 *  Arguments: anchor [1, 1, 1, 64] in bf16, which stands for Q and K, and then views. Results:
 *  visit_lists and visit_counts, of i32. Attributes: `variant`, `extras`, `numbers`, `integers` and
 *  `layout` as those of tessera_xla_attention, and `sizes` (i32), the extents of B, H, SQ and SK.
 */
TESSERA_EXPORT tessera_xla_error *tessera_xla_lists(tessera_xla_call *call);

/** The same for tensors of the CPU. */
TESSERA_EXPORT tessera_xla_error *tessera_xla_lists_cpu(tessera_xla_call *call);

#ifdef __cplusplus
}
#endif

#endif /* TESSERA_C_XLA_H */
