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
#include "tessera-c/Python.h"

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

/** What calls of a variant past PyTorch's dispatcher need. Objects of Python are addresses here,
 * and live as long as the process. */
typedef struct tessera_torch_direct_options {
  tessera_python_framework framework;
  /** make_empty(sizes, strides, element type): a tensor on the current device. */
  void *make_empty;
  /** torch.float16, torch.bfloat16 and torch.float32. */
  void *element_types[3];
  /** Gives the current device; returns 0. Null where there is one device. */
  int32_t (*get_current_device)(int32_t *device);
  /** DLDeviceType of the tensors. */
  int32_t device_type;
  /** The text of the variant. */
  const char *variant;
} tessera_torch_direct_options;

typedef struct tessera_torch_direct tessera_torch_direct;

/** Makes what `tessera_torch_attention` computes a variant with. It is never destroyed. Returns
 * null when the process has no functions of Python. */
TESSERA_EXPORT tessera_torch_direct *
tessera_torch_direct_create(const tessera_torch_direct_options *options);

/** Attention past PyTorch's dispatcher. This is a function for a PyMethodDef with METH_FASTCALL;
 * `self` is an int, the address of a tessera_torch_direct. Its `count` arguments are six: q, k, v,
 * slopes or None, whether the LSE is a result, and a tuple of what the op takes from its variant
 * on, as far as it is given: the variant, which is that of `self`, scale or None, softcap, left and
 * right. The caller holds the GIL, which is released for the time of the launch itself.
 *
 * Returns what the op returns: the output, or a tuple of output and LSE. Returns None, with nothing
 * launched and no error set, for whatever the op is to be called for:
 *  - tensors of other types than those of the framework, of another kind of device or another
 *    device than the current one, and sizes without elements;
 *  - a call whose kernel is not known yet: calls of the op make it known;
 *  - whatever fails: the op says why. */
TESSERA_EXPORT void *tessera_torch_attention(void *self, void *const *arguments, intptr_t count);

/** What the forward of a function of autograd around such calls needs. Objects of Python are
 * addresses here, and live as long as the process. */
typedef struct tessera_torch_forward_options {
  tessera_torch_direct *direct;
  /** A tuple of what the op takes from its variant on, as far as it is given. */
  void *given;
  /** Whether the LSE is a result. */
  int32_t returns_lse;
  /** The names of the context's attributes "to_save" and "materialize_grads". */
  void *to_save, *materialize_grads;
  /** False. */
  void *never;
  /** A forward that is called for whatever this one is not for. */
  void *other;
} tessera_torch_forward_options;

typedef struct tessera_torch_forward tessera_torch_forward;

/** Makes what `tessera_torch_apply_forward` computes with. It is never destroyed. Returns null
 * where `given` is nothing that the op takes. The caller holds the GIL. */
TESSERA_EXPORT tessera_torch_forward *
tessera_torch_forward_create(const tessera_torch_forward_options *options);

/** The forward of a torch.autograd.Function, which returns the output or a tuple of output and LSE.
 * This is a function for a PyMethodDef with METH_FASTCALL; `self` is an int, the address of a
 * tessera_torch_forward. Its `count` arguments are the context, q, k, v and, where there are some,
 * slopes. For the backward pass the context keeps q, k, v, output, LSE and the slopes that are
 * given; where the LSE is a result, gradients that are missing stay None.
 *
 * What `tessera_torch_attention` returns None for is done by the other forward, with the same
 * arguments. Returns null with an error of Python, such as the other one raises. */
TESSERA_EXPORT void *tessera_torch_apply_forward(void *self, void *const *arguments,
                                                 intptr_t count);

/** Forgets final choices. */
TESSERA_EXPORT void tessera_torch_reset(void);

/** The tessera_runtime_status of the last call of an op that failed on this thread; then SUCCESS.
 */
TESSERA_EXPORT tessera_runtime_status tessera_torch_take_status(void);

#ifdef __cplusplus
}
#endif

#endif /* TESSERA_C_TORCH_H */
