/*===- tessera-c/Calls.h - What a call of a framework launches --*- C -*-===*\
|*                                                                          *|
|* A call of a framework is a text, tensors and numbers. What it launches   *|
|* follows from the text and from the types, shapes and strides of the      *|
|* tensors: a resolver says it once, in a recipe, and it is kept. The text  *|
|* names everything else, so that graphs mean the same in another process.  *|
|*                                                                          *|
\*===--------------------------------------------------------------------===*/

#ifndef TESSERA_C_CALLS_H
#define TESSERA_C_CALLS_H

#include "tessera-c/Program.h"
#include "tessera-c/Runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The most dimensions of a tensor of a call. */
#define TESSERA_CALL_MOST_DIMS 5

/** What is known of a tensor of a call, and of memory that a call makes. One that is left out has
 * type 0. */
typedef struct tessera_call_layout {
  /** A tessera_type. */
  int32_t type;
  int32_t rank;
  int64_t extents[TESSERA_CALL_MOST_DIMS];
  /** In elements. */
  int64_t strides[TESSERA_CALL_MOST_DIMS];
  /** Of a tensor: other than 0 where its address is a multiple of 16. */
  int32_t is_aligned;
  /** Of memory: a tessera_call_fill. */
  int32_t fill;
} tessera_call_layout;

/** What memory holds before the first launch. */
typedef enum tessera_call_fill {
  TESSERA_CALL_FILL_NOTHING = 0,
  TESSERA_CALL_FILL_ZERO = 1,
  /** Of f32, where nothing is launched. */
  TESSERA_CALL_FILL_MINUS_INFINITY = 2
} tessera_call_fill;

/** Where an argument of a kernel comes from. */
typedef enum tessera_call_source {
  TESSERA_CALL_TENSOR = 0,
  TESSERA_CALL_RESULT = 1,
  /** Memory for the time of the call. */
  TESSERA_CALL_TEMPORARY = 2,
  /** A tensor in another layout. */
  TESSERA_CALL_COPY = 3,
  TESSERA_CALL_NUMBER = 4,
  TESSERA_CALL_INTEGER = 5,
  /** The integer `index` itself. */
  TESSERA_CALL_CONSTANT = 6,
  /** Memory of one of the first four in a layout of its own. */
  TESSERA_CALL_VIEW = 7
} tessera_call_source;

typedef struct tessera_call_operand {
  /** A tessera_call_source. */
  int32_t source;
  /** Which one of them. */
  int32_t index;
} tessera_call_operand;

/** A launch of a kernel, a sequence or a choice. */
typedef struct tessera_call_step {
  /** It is never destroyed. */
  tessera_kernel *kernel;
  /** The interpreter's form, where `kernel` is null. It is never destroyed. */
  tessera_program *program;
  /** One for each argument of the source, in its order. */
  const tessera_call_operand *operands;
  size_t operand_count;
  /** Other than 0: it may run beside the steps behind it, up to the first of them that takes what it
   * stores or stores what it takes. */
  int32_t is_beside;
} tessera_call_step;

typedef struct tessera_call_copy {
  /** Which of the tensors. */
  int32_t tensor;
  tessera_call_layout layout;
} tessera_call_copy;

/** The memory of a tensor, result, temporary or copy in another layout. */
typedef struct tessera_call_view {
  tessera_call_operand memory;
  tessera_call_layout layout;
  /** Bytes before its first element. */
  int64_t offset;
} tessera_call_view;

/** Which number of a layout: an extent, or a stride. */
typedef struct tessera_call_number {
  /** A tessera_call_source: TENSOR, or for those of the recipe RESULT, TEMPORARY or VIEW. */
  int32_t source;
  int32_t index;
  int32_t dim;
  int32_t is_stride;
} tessera_call_number;

/** A number of a tensor that may be another one: any multiple of `multiple` from `least` to `most`,
 * the same as of the free number `same` where that is not -1. What is launched stays the same, and
 * numbers of the recipe follow. */
typedef struct tessera_call_free {
  tessera_call_number number;
  int64_t least, most, multiple;
  int32_t same;
} tessera_call_free;

/** A number of the recipe that is `factor` times the free number `free`, and `summand` more. */
typedef struct tessera_call_following {
  tessera_call_number number;
  int32_t free;
  int64_t factor, summand;
} tessera_call_following;

/** What calls of a text with tensors of these layouts launch, one step after another. Arrays live
 * until the resolver is called again on the thread. */
typedef struct tessera_call_recipe {
  const tessera_call_step *steps;
  size_t step_count;
  const tessera_call_layout *results;
  size_t result_count;
  const tessera_call_layout *temporaries;
  size_t temporary_count;
  const tessera_call_copy *copies;
  size_t copy_count;
  const tessera_call_view *views;
  size_t view_count;
  const tessera_call_free *free;
  size_t free_count;
  const tessera_call_following *followings;
  size_t following_count;
  /** Other than 0: calls like this one need not ask again. */
  int32_t is_final;
  /** Why there is none, or null. */
  const char *error;
} tessera_call_recipe;

/** Says what calls launch. Returns 0, or another number where there is nothing to launch. It may
 * compile. */
typedef int (*tessera_call_resolver)(const char *text, const tessera_call_layout *tensors,
                                     size_t count, tessera_call_recipe *recipe);

/** tessera_program_run of libtessera, which has the interpreter. */
typedef tessera_compile_status (*tessera_call_interpreter)(tessera_program *program,
                                                           const tessera_argument *arguments,
                                                           size_t count,
                                                           tessera_diagnostic_handler handler,
                                                           void *user_data);

#ifdef __cplusplus
}
#endif

#endif /* TESSERA_C_CALLS_H */
