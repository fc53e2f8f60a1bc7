/*===- tessera-c/Program.h - Kernels as their source says them --*- C -*-===*\
|*                                                                          *|
|* A kernel of a source that was read and not compiled: the interpreter     *|
|* runs it on the CPU, which is what the kernel means, and a launch with    *|
|* given extents has a class of shapes (docs/tuning.md).                    *|
|*                                                                          *|
\*===--------------------------------------------------------------------===*/

#ifndef TESSERA_C_PROGRAM_H
#define TESSERA_C_PROGRAM_H

#include "tessera-c/Compiler.h"
#include "tessera-c/Runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A kernel of a source, with the parameters of the source bound. Calls for one program wait for
 * each other. */
typedef struct tessera_program tessera_program;

/** Reads `length` bytes of source text. `kernel` is a name, or null for the only kernel. On success
 *  `*program` is a handle to destroy, otherwise null. */
TESSERA_EXPORT tessera_compile_status tessera_program_read(
    const char *source, size_t length, const char *file_name, const char *kernel,
    const tessera_define *defines, size_t define_count, tessera_diagnostic_handler handler,
    void *user_data, tessera_program **program);

/** Null is allowed. */
TESSERA_EXPORT void tessera_program_destroy(tessera_program *program);

/** How many arguments the kernel takes. */
TESSERA_EXPORT size_t tessera_program_argument_count(const tessera_program *program);

/** The name of an argument, or null where there is none. Lives as long as the program. */
TESSERA_EXPORT const char *tessera_program_argument_name(const tessera_program *program,
                                                         size_t index);

/** The type of an argument as the source has it, "!tile.view<[M, K], bf16>" or "f32", or null where
 *  there is none. Lives as long as the program. */
TESSERA_EXPORT const char *tessera_program_argument_type(const tessera_program *program,
                                                         size_t index);

/** 1 where the kernel writes an argument, a view; 0 for other ones, and where there is none. */
TESSERA_EXPORT int tessera_program_argument_is_written(const tessera_program *program,
                                                       size_t index);

/** Runs all of the grid on the CPU, rounding each value to its type. `arguments` are those of
 *  tessera_kernel_launch, with addresses of this process' memory. A scalar may have any scalar type
 *  that can hold its value, a view of narrower floating-point numbers elements of f32, which are
 *  rounded as they are read. Results are written when the whole grid has run. What tile.print shows
 *  goes to the handler as remarks. Errors: USAGE_ERROR when an argument does not fit, SOURCE_ERROR
 *  when the kernel does what has no meaning or a tile.assert does not hold. */
TESSERA_EXPORT tessera_compile_status tessera_program_run(tessera_program *program,
                                                          const tessera_argument *arguments,
                                                          size_t count,
                                                          tessera_diagnostic_handler handler,
                                                          void *user_data);

/** The class of a launch with these extents, of all named dimensions, on the GPU of the shipped
 *  measurements: a tessera_compile_options::shape_class. Null, and an error to the handler, where
 *  it has none. Lives as long as the program. */
TESSERA_EXPORT const char *tessera_program_shape_class(tessera_program *program,
                                                       const tessera_extent *extents, size_t count,
                                                       tessera_diagnostic_handler handler,
                                                       void *user_data);

/** How the class follows from extents, so that a caller need not ask for each shape: a JSON object
 * of `grid` and `iterations`, as in the model of a bundle's alternative, `multiprocessors`, of
 * which `few` tiles are no more, and `lengths`, the least iterations of the medium and the long
 * class, at whichever end of the grid there are more. "null" where no shape has a class, and ""
 * where each has to be asked for. Lives as long as the program. */
TESSERA_EXPORT const char *tessera_program_shape_rule(tessera_program *program);

/** The values of the source's parameters, with those of its defaults: a JSON object, as
 * `parameters` of a bundle. Lives as long as the program. */
TESSERA_EXPORT const char *tessera_program_parameters(const tessera_program *program);

/** What the compiler finds of the kernel's `tile.visits`, a JSON object. `loose` says why it may
 *  have iterations in which the mask leaves nothing, for a list of blocks would have fewer, and is
 *  empty where it has none such. `end_moves` is whether its end follows the rows of a tile, as
 *  under a diagonal, so that the last iteration is the one to begin with. `work` is how the work of
 *  tiles changes as the first grid index grows: "increasing", "decreasing", or empty where it does
 *  not, or otherwise. Lives as long as the program. */
TESSERA_EXPORT const char *tessera_program_visits(tessera_program *program);

#ifdef __cplusplus
}
#endif

#endif /* TESSERA_C_PROGRAM_H */
