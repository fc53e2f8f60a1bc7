/*===- tessera-c/Xla.h - Handlers of custom calls of XLA --------*- C -*-===*\
|*                                                                          *|
|* Handlers for XLA's foreign function interface, which JAX registers by    *|
|* their addresses. Nothing of XLA is needed to build this.                 *|
|*                                                                          *|
\*===--------------------------------------------------------------------===*/

#ifndef TESSERA_C_XLA_H
#define TESSERA_C_XLA_H

#include "tessera-c/Calls.h"

#ifdef __cplusplus
extern "C" {
#endif

/** XLA_FFI_CallFrame. */
typedef struct tessera_xla_call tessera_xla_call;
/** XLA_FFI_Error. */
typedef struct tessera_xla_error tessera_xla_error;

/** Sets who says what calls launch with tensors of CUDA devices and of the CPU, and who runs
 * programs (null: nobody). All live as long as the process.
 *
 * A text for the resolver is the attribute `extras`, a line break and the attribute `variant`. Its
 * tensors are operands and results, in the order of the kernel's arguments. The first number is the
 * scale, which stands before the extras where these have no letter s. */
TESSERA_EXPORT void tessera_xla_register(tessera_call_resolver resolver,
                                         tessera_call_resolver resolver_cpu,
                                         tessera_call_interpreter interpreter);

/** Forgets what was prepared. */
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
 * with which it shares its memory. The other attributes are those of tessera_xla_attention.
 * Memory for what a sequence keeps between its kernels comes from XLA for the time of the call, so
 * that command buffers do not record it. */
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

/** A kernel or a sequence. Attributes: `variant`, the text that the resolver gets; `layout`,
 * "BHSD"; `numbers` (f32); `integers` (i32); `extras`, a letter for each argument of the kernel: v
 * for the next operand, t for the next operand of four dimensions, of which the second and the
 * third change places, r for the next result, o for one whose dimensions do, a and d for such
 * results that share their memory with the next operand, f for the next number, i for the next
 * integer. One operand may be several arguments, if the text says so. Memory of a sequence is that
 * of tessera_xla_attention_backward.
 */
TESSERA_EXPORT tessera_xla_error *tessera_xla_kernel(tessera_xla_call *call);

/** The same for tensors of the CPU. */
TESSERA_EXPORT tessera_xla_error *tessera_xla_kernel_cpu(tessera_xla_call *call);

#ifdef __cplusplus
}
#endif

#endif /* TESSERA_C_XLA_H */
