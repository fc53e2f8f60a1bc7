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

#include "tessera-c/Calls.h"
#include "tessera-c/Python.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What PyTorch asks of sums whose order differs from run to run. */
typedef enum tessera_torch_determinism_mode {
  TESSERA_TORCH_TAKES_ANY_ORDER = 0,
  TESSERA_TORCH_WARNS_OF_ANY_ORDER = 1,
  TESSERA_TORCH_DETERMINISTIC = 2
} tessera_torch_determinism_mode;

/** Says which tessera_torch_determinism_mode there is. */
typedef int (*tessera_torch_determinism)(void);

/** Registers the kernels of the ops of `name_space`, which are defined, for a dispatch key
 * ("CUDA"): attention_forward, attention_inference, attention_backward, variant_forward,
 * variant_backward and attention_fp8_forward. `libtorch` and `libtorch_cuda` are paths of libraries
 * that are loaded; without the second, launches go to the default stream. `version` is PyTorch's,
 * major << 56 | minor << 48. `resolver` and `determinism` live as long as the process.
 *
 * A text for the resolver has three lines: what is computed; the names of views, numbers and
 * integers, separated by commas and the three by bars; and the variant of the op. Computed are
 * "output", "output and LSE", "8 bits" (the same by numbers of 8 bits) and, by who asks for sums in
 * one order, "gradients", "deterministic gradients", "gradients of deterministic algorithms" and
 * "gradients of deterministic algorithms or a warning", followed by " by " and the names of what is
 * learned. Tensors are q, k, v, of gradients also the output, its gradient, the LSE and its
 * gradient or none, of 8 bits also a rotation or none, then the views. The first number is the
 * scale. Where nothing is found, the caller of the op gets a RuntimeError that says so.
 *
 * Returns 1, or 0 where PyTorch has not all functions (before 2.10), with nothing registered. */
TESSERA_EXPORT int tessera_torch_register(const char *name_space, const char *key,
                                          const char *libtorch, const char *libtorch_cuda,
                                          uint64_t version, tessera_call_resolver resolver,
                                          tessera_torch_determinism determinism);

/** What calls of one text past PyTorch's dispatcher need. Objects of Python are addresses here, and
 * live as long as the process. */
typedef struct tessera_torch_direct_options {
  tessera_python_framework framework;
  /** make_empty(sizes, strides, element type): a tensor on the current device. */
  void *make_empty;
  /** copy(to, from): takes the elements of another tensor, as its own type. */
  void *copy;
  /** PyTorch's element types by tessera_type, null where there is none. */
  void *element_types[TESSERA_TYPE_FIRST_SCALAR];
  /** torch.uint8. */
  void *byte_type;
  /** Gives the current device; returns 0. Null where there is one device. */
  int32_t (*get_current_device)(int32_t *device);
  /** DLDeviceType of the tensors. */
  int32_t device_type;
  /** As a resolver gets it. */
  const char *text;
  /** How many tensors there are, with those that are left out. */
  int32_t tensor_count;
  /** What the tuple of a call's numbers has, in its order: 's' for the scale, or None for 1 /
   * sqrt(head dimension), 'f' for other numbers, 'i' for integers and '-' for what is not looked
   * at. What a shorter tuple has not is None, 0 and -1. */
  const char *numbers;
  /** Other than 0: calls that were not prepared yet are, by the resolver of
   * `tessera_torch_register`. */
  int32_t prepares;
} tessera_torch_direct_options;

typedef struct tessera_torch_direct tessera_torch_direct;

/** Makes what `tessera_torch_call` computes calls of a text with. It is never destroyed. Returns
 * null when the process has no functions of Python. */
TESSERA_EXPORT tessera_torch_direct *
tessera_torch_direct_create(const tessera_torch_direct_options *options);

/** A call past PyTorch's dispatcher. This is a function for a PyMethodDef with METH_FASTCALL;
 * `self` is an int, the address of a tessera_torch_direct. Its `count` arguments are the tensors,
 * None for those that are left out, and a tuple of numbers. The caller holds the GIL, which is
 * released for the time of the launch itself.
 *
 * Returns the result, or a tuple of several or of none. Returns None, with nothing launched and no
 * error set, for whatever the op is to be called for:
 *  - tensors of other types than those of the framework, of another kind of device or another
 *    device than the current one, and calls that launch nothing or take a copy of a tensor;
 *  - a call that was not prepared yet, without `prepares`: calls of the op prepare it;
 *  - whatever fails: the op says why. */
TESSERA_EXPORT void *tessera_torch_call(void *self, void *const *arguments, intptr_t count);

/** One of several calls that follow each other. Tensors have places: those that the calls are
 * given, then the results of each call. */
typedef struct tessera_torch_stage {
  tessera_torch_direct *direct;
  /** The places of its tensors, -1 for one that is left out. */
  const int32_t *tensors;
  size_t count;
} tessera_torch_stage;

/** What the forward of a function of autograd around such calls needs. Objects of Python are
 * addresses here, and live as long as the process. */
typedef struct tessera_torch_forward_options {
  /** The calls, whose places begin with the inputs of the function. */
  const tessera_torch_stage *stages;
  size_t stage_count;
  /** How many inputs are tensors. */
  int32_t input_count;
  /** A tuple of numbers; null where the first input is one. */
  void *numbers;
  /** The places of what is kept for the backward pass, and of the results. */
  const int32_t *kept, *results;
  size_t kept_count, result_count;
  /** The names of the context's attributes "to_save", "materialize_grads" and "numbers". */
  void *to_save, *materialize_grads, *kept_numbers;
  /** False. */
  void *never;
  /** A forward that is called for whatever this one is not for. */
  void *other;
} tessera_torch_forward_options;

typedef struct tessera_torch_forward tessera_torch_forward;

/** Makes what `tessera_torch_apply_forward` computes with. It is never destroyed. Returns null
 * where `numbers` are none that the calls take. The caller holds the GIL. */
TESSERA_EXPORT tessera_torch_forward *
tessera_torch_forward_create(const tessera_torch_forward_options *options);

/** The forward of a torch.autograd.Function, which returns the result or a tuple of several. This
 * is a function for a PyMethodDef with METH_FASTCALL; `self` is an int, the address of a
 * tessera_torch_forward. Its `count` arguments are the context, the numbers where they are an
 * input, and the tensors or None, of which the last ones may be missing. The context gets what is
 * kept for the backward pass, None for tensors that are left out but the last ones, and has the
 * numbers that are an input as its attribute "numbers"; of several results gradients that are
 * missing stay None.
 *
 * What `tessera_torch_call` returns None for is done by the other forward, with the same arguments.
 * Returns null with an error of Python, such as the other one raises. */
TESSERA_EXPORT void *tessera_torch_apply_forward(void *self, void *const *arguments,
                                                 intptr_t count);

/** What the backward of such a function needs. */
typedef struct tessera_torch_backward_options {
  /** The calls, whose places begin with what the forward has kept and the gradients of its
   * results. */
  const tessera_torch_stage *stages;
  size_t stage_count;
  /** How many tensors the forward has kept, and how many results it has. */
  int32_t kept_count, result_count;
  /** The place of the gradient of each input, -1 for one that has none. */
  const int32_t *gradients;
  size_t input_count;
} tessera_torch_backward_options;

typedef struct tessera_torch_backward tessera_torch_backward;

/** Makes what `tessera_torch_apply_backward` computes with. It is never destroyed. */
TESSERA_EXPORT tessera_torch_backward *
tessera_torch_backward_create(const tessera_torch_backward_options *options);

/** The gradients of the inputs of a torch.autograd.Function whose forward is
 * `tessera_torch_apply_forward`: a tuple with None for inputs that have none or were not given.
 * This is a function for a PyMethodDef with METH_FASTCALL; `self` is an int, the address of a
 * tessera_torch_backward. Its three arguments are tuples of what the forward has kept, of the
 * gradients of its results, of both of which the last ones may be missing, and of numbers.
 *
 * Returns None, with nothing launched and no error set, for what `tessera_torch_call` returns None
 * for, and without a gradient of the first result. */
TESSERA_EXPORT void *tessera_torch_apply_backward(void *self, void *const *arguments,
                                                  intptr_t count);

/** Forgets what was prepared. */
TESSERA_EXPORT void tessera_torch_reset(void);

/** The tessera_runtime_status of the last call of an op that failed on this thread; then SUCCESS.
 */
TESSERA_EXPORT tessera_runtime_status tessera_torch_take_status(void);

#ifdef __cplusplus
}
#endif

#endif /* TESSERA_C_TORCH_H */
