/*===- tessera-c/Compiler.h - Compile .tile sources -------------*- C -*-===*\
|*                                                                          *|
|* The compiling half of the C interface. It stays compatible: functions    *|
|* and enumerators are only added; structs that begin with their size grow  *|
|* at the end, others do not change.                                        *|
|*                                                                          *|
|* Every function may be called from any thread; a handle must not be used  *|
|* from two threads while one of them destroys it. Strings are UTF-8 and    *|
|* end with a null byte; those returned belong to their handle. Pointers    *|
|* are not null unless it says so; an array of no elements may be.          *|
|*                                                                          *|
\*===--------------------------------------------------------------------===*/

#ifndef TESSERA_C_COMPILER_H
#define TESSERA_C_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#ifndef TESSERA_EXPORT
#define TESSERA_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the library, as "0.1.0". */
TESSERA_EXPORT const char *tessera_version(void);

/** What went wrong, so that a caller can tell a bad source from a missing tool. */
typedef enum tessera_compile_status {
  TESSERA_COMPILE_SUCCESS = 0,
  /** An unknown parameter, schedule field, kernel or option. */
  TESSERA_COMPILE_USAGE_ERROR = 2,
  /** The source does not parse, verify or fit the machine. */
  TESSERA_COMPILE_SOURCE_ERROR = 3,
  /** ptxas is missing or too old, or refused its input. */
  TESSERA_COMPILE_TOOLCHAIN_ERROR = 4
} tessera_compile_status;

/** How far a compilation goes. */
typedef enum tessera_emit {
  /** Cubin (or PTX) with its JSON description, see docs/bundle.md. */
  TESSERA_EMIT_BUNDLE = 0,
  TESSERA_EMIT_CUBIN = 1,
  TESSERA_EMIT_PTX = 2,
  /** LLVM dialect. */
  TESSERA_EMIT_LLVM = 3,
  /** hop dialect: mbarriers, fences and shared-memory offsets. */
  TESSERA_EMIT_BARRIERS = 4,
  /** hop dialect: roles, pipes and flights, proved to end. */
  TESSERA_EMIT_HOP = 5,
  /** tile dialect, loops overlapped and split as the schedule says. */
  TESSERA_EMIT_SCHEDULED = 6,
  /** The source with its parameters bound. */
  TESSERA_EMIT_TILE = 7,
  /** tile dialect, schedule chosen. */
  TESSERA_EMIT_CHOSEN = 8,
  /** hop dialect: roles and pipes. */
  TESSERA_EMIT_ROLES = 9,
  /** hop dialect: layouts, shared memory, clusters, tiles that thread blocks walk over. */
  TESSERA_EMIT_STAGED = 10,
  /** hop dialect: flights, and when roles wait, load, release and take turns. */
  TESSERA_EMIT_ORDERED = 11
} tessera_emit;

/** The value of a parameter of the source. */
typedef struct tessera_define {
  const char *name;
  const char *value; /**< as text: "128", "true", "bf16" */
} tessera_define;

/** The extent of a named dimension of a kernel. */
typedef struct tessera_extent {
  const char *name;
  int64_t value;
} tessera_extent;

/** The text of a file that a source imports. */
typedef struct tessera_import {
  const char *name;
  const char *text; /**< `length` bytes */
  size_t length;
} tessera_import;

/** Options. All zero but `size` is what most callers want; a null string is an absent one. */
typedef struct tessera_compile_options {
  /** sizeof(tessera_compile_options) of the caller; members beyond it count as zero. */
  size_t size;
  const tessera_define *defines;
  size_t define_count;
  /** Overrides of schedule fields, as "consumers=2,overlap=1". */
  const char *schedule;
  /** The kernel to compile; null for all kernels of the source. */
  const char *kernel;
  /** A tessera_emit. */
  int32_t emit;
  /** With TESSERA_EMIT_BUNDLE: ship PTX, which the driver assembles, and do not run ptxas. */
  int32_t bundle_ptx;
  /** Path of ptxas; null to search PATH, CUDA_HOME and Python's wheels. */
  const char *ptxas;
  const char *const *ptxas_arguments;
  size_t ptxas_argument_count;
  /** Report remarks to the diagnostic handler. */
  int32_t remarks;
  /** Do not verify the IR after every pass. */
  int32_t skip_verify;
  /** Print the time of each pass and tool to stderr. */
  int32_t timing;
  /** Use no measured schedules (docs/tuning.md): the compiler's model chooses. */
  int32_t skip_database;
  /** Directory that receives the IR after each pass, the PTX and the ptxas log. */
  const char *dump_dir;
  /** File that receives a reproducer when a pass fails. */
  const char *reproducer;
  /** File of a database of measured schedules; null for the one that ships with the compiler. */
  const char *database;
  /** The GPU whose measurements count, as "NVIDIA H200"; null for the database's default. */
  const char *gpu;
  /** The class of shapes to compile for, as "many-short"; null for that of `extents`, or the
   *  default class. */
  const char *shape_class;
  /** Extents of the kernel's named dimensions, all of them or none; they decide the class and
   *  which rules hold. */
  const tessera_extent *extents;
  size_t extent_count;
  /** Directories where `$import "name"` looks, behind that of the source. */
  const char *const *import_paths;
  size_t import_path_count;
  /** Files that need not be on disk; an import takes them before others of the name. */
  const tessera_import *imports;
  size_t import_count;
  /** What the kernels record, as "timeline,blocks=8" (docs/seeing.md); null for nothing. */
  const char *instrument;
  /** With TESSERA_EMIT_BUNDLE: the kernel with each of the alternatives that the source declares,
   * of which a launch takes the fastest for its extents. */
  int32_t alternatives;
  /** Files of rules that choose free parameters and schedules before those of the source, with
   * the separator of PATH between them; null for none. */
  const char *rules;
} tessera_compile_options;

typedef enum tessera_severity {
  TESSERA_SEVERITY_ERROR = 0,
  TESSERA_SEVERITY_WARNING = 1,
  TESSERA_SEVERITY_REMARK = 2,
  TESSERA_SEVERITY_NOTE = 3
} tessera_severity;

/** What an error says that a program which is right does not fit. */
typedef enum tessera_refusal_kind {
  /** The program is wrong, or a tool is missing. */
  TESSERA_REFUSAL_NONE = 0,
  /** The registers of a thread; smaller tiles may fit. */
  TESSERA_REFUSAL_REGISTERS = 1,
  /** The shared memory of a thread block; smaller tiles may fit. */
  TESSERA_REFUSAL_SHARED_MEMORY = 2,
  /** No schedule can hold, whatever the registers and the shared memory. */
  TESSERA_REFUSAL_UNSUPPORTED = 3
} tessera_refusal_kind;

/** A message about the source. Valid only during the call of the handler. */
typedef struct tessera_diagnostic {
  /** A tessera_severity. */
  int32_t severity;
  /** 1-based; 0 when unknown. */
  uint32_t line, column;
  /** A tessera_refusal_kind. */
  uint32_t kind;
  /** Empty when unknown. */
  const char *file;
  const char *message;
  const struct tessera_diagnostic *notes;
  size_t note_count;
} tessera_diagnostic;

/** Receives diagnostics on the thread that compiles, before the call returns. */
typedef void (*tessera_diagnostic_handler)(const tessera_diagnostic *diagnostic, void *user_data);

/*===- Compiling ----------------------------------------------------------===*/

/** The outcome of a compilation. */
typedef struct tessera_compilation tessera_compilation;

/** Compiles `length` bytes of source text, which diagnostics call `file_name`. `options` and
 *  `handler` may be null. On success `*compilation` is a handle to destroy, otherwise null. */
TESSERA_EXPORT tessera_compile_status tessera_compile(const char *source, size_t length,
                                                      const char *file_name,
                                                      const tessera_compile_options *options,
                                                      tessera_diagnostic_handler handler,
                                                      void *user_data,
                                                      tessera_compilation **compilation);

/** Compiles a file. A file that cannot be read is a usage error. */
TESSERA_EXPORT tessera_compile_status tessera_compile_file(const char *path,
                                                           const tessera_compile_options *options,
                                                           tessera_diagnostic_handler handler,
                                                           void *user_data,
                                                           tessera_compilation **compilation);

/** Null is allowed. */
TESSERA_EXPORT void tessera_compilation_destroy(tessera_compilation *compilation);

/** The requested form: IR or PTX text, a cubin image, or a bundle, of `*size` bytes; a null byte
 *  follows it. `size` may be null. */
TESSERA_EXPORT const void *tessera_compilation_output(const tessera_compilation *compilation,
                                                      size_t *size);

/** The number of kernels that were compiled to PTX or further; 0 for other forms. */
TESSERA_EXPORT size_t tessera_compilation_kernel_count(const tessera_compilation *compilation);

/** The name of a kernel; null for an index out of range. */
TESSERA_EXPORT const char *tessera_compilation_kernel_name(const tessera_compilation *compilation,
                                                           size_t index);

/** A kernel's entry of the bundle's "kernels" array, as JSON; null for an index out of range. */
TESSERA_EXPORT const char *
tessera_compilation_kernel_description(const tessera_compilation *compilation, size_t index);

/** A kernel's report, as JSON: registers, shared-memory map, spills, instruction counts; null for
 *  an index out of range. */
TESSERA_EXPORT const char *tessera_compilation_kernel_report(const tessera_compilation *compilation,
                                                             size_t index);

/*===- Pages about sources ------------------------------------------------===*/

/** A page that shows what the compiler made of a source, and why: docs/seeing.md. */
typedef struct tessera_page tessera_page;

/** Compiles and explains `length` bytes of source text. Of `options`, which may be null, the form
 *  does not count, and the extents are those of the pictures too. `scalars` are values of scalar
 *  arguments that masks depend on. A source that does not compile has a page too: `*page` is a
 *  handle to destroy, and null only after a usage error. `handler` may be null. */
TESSERA_EXPORT tessera_compile_status tessera_explain(
    const char *source, size_t length, const char *file_name,
    const tessera_compile_options *options, const tessera_define *scalars, size_t scalar_count,
    tessera_diagnostic_handler handler, void *user_data, tessera_page **page);

/** Null is allowed. */
TESSERA_EXPORT void tessera_page_destroy(tessera_page *page);

/** HTML of `*size` bytes; a null byte follows it. `size` may be null. */
TESSERA_EXPORT const char *tessera_page_text(const tessera_page *page, size_t *size);

/** What the page shows, as JSON of `*size` bytes. `size` may be null. */
TESSERA_EXPORT const char *tessera_page_data(const tessera_page *page, size_t *size);

/*===- The files of a source ----------------------------------------------===*/

/** What is chosen for a source before it is compiled. */
typedef struct tessera_resolution tessera_resolution;

/** Binds the parameters of `length` bytes of source text by the definitions, extents, GPU and rules
 *  of `options`, which may be null. On success `*resolution` is a handle to destroy, otherwise
 *  null. */
TESSERA_EXPORT tessera_compile_status tessera_source_resolve(const char *source, size_t length,
                                                             const char *file_name,
                                                             const tessera_compile_options *options,
                                                             tessera_diagnostic_handler handler,
                                                             void *user_data,
                                                             tessera_resolution **resolution);

/** Null is allowed. */
TESSERA_EXPORT void tessera_resolution_destroy(tessera_resolution *resolution);

/** What the functions of `length` bytes of source text compute with, those of the files that it
 *  imports left out. Parameters are bound as by tessera_source_resolve. */
TESSERA_EXPORT tessera_compile_status tessera_source_describe_functions(
    const char *source, size_t length, const char *file_name,
    const tessera_compile_options *options, tessera_diagnostic_handler handler, void *user_data,
    tessera_resolution **resolution);

/** JSON. Of tessera_source_resolve: {"parameters": {"BN": {"value": "128", "origin":
 *  "rules.json:12", "allowed": ["64", "128"]}}, "schedules": {"kernel": {"value": "stages = 2",
 *  "origin": ...}}, "form":
 *  {"value": "other.tile", ...}, "instead": [{"BN": "64"}], "extents": [[["ge", "SQ", 512],
 *  true]]}. `origin` is "given", "default" or the place of a rule; "form" is there where a rule
 *  chooses another source, and "instead" where rules say what parameters take where registers or
 *  shared memory are short. "extents" has the comparisons of extents that decided: with others
 *  that compare so the answer is the same.
 *
 *  Of tessera_source_describe_functions an object for each function: the arguments that it "uses",
 *  those that it "computes" with, beside indices of loads, the "extents" that it takes, whether it
 *  "divides" integers, what it "loads" (of a "view" of "dims" a "type", and of each of "places" the
 *  arguments "on" which it depends, the one that it "is", or -1, and whether it is "fixed"), what
 *  it "compares" ("on", and "given"
 *  with an argument of the kernel), and the "result": the arguments "on" which it depends, those
 *  by which it is "scaled_by", and the "factor" of its only argument of f32, of which it is an
 *  affine function, else null: "on" what it depends, and what it "alone" asks for. */
TESSERA_EXPORT const char *tessera_resolution_text(const tessera_resolution *resolution);

/** The files that a source consists of. */
typedef struct tessera_source_files tessera_source_files;

/** Reads `length` bytes of source text and what it imports, with the import options of `options`,
 *  which may be null: what a cache of compilations depends on. On success `*files` is a handle to
 *  destroy, otherwise null. */
TESSERA_EXPORT tessera_compile_status tessera_source_read_imports(
    const char *source, size_t length, const char *file_name,
    const tessera_compile_options *options, tessera_diagnostic_handler handler, void *user_data,
    tessera_source_files **files);

/** Null is allowed. */
TESSERA_EXPORT void tessera_source_files_destroy(tessera_source_files *files);

/** The files that are imported, each after those that it imports, and the source as the last. */
TESSERA_EXPORT size_t tessera_source_files_count(const tessera_source_files *files);

/** The name of a file; null for an index out of range. */
TESSERA_EXPORT const char *tessera_source_files_name(const tessera_source_files *files,
                                                     size_t index);

/** The text of a file, of `*size` bytes; null for an index out of range. `size` may be null. */
TESSERA_EXPORT const char *tessera_source_files_text(const tessera_source_files *files,
                                                     size_t index, size_t *size);

/*===- The assembler ------------------------------------------------------===*/

/** An installed ptxas that is new enough. */
typedef struct tessera_ptxas tessera_ptxas;

/** Finds the ptxas that a compilation whose options name `requested` runs; null searches as there.
 *  What it makes of the same PTX depends on its version, so that a cache of cubins is to ask for
 *  it. On success `*ptxas` is a handle to destroy, otherwise null. `handler` may be null. */
TESSERA_EXPORT tessera_compile_status tessera_find_ptxas(const char *requested,
                                                         tessera_diagnostic_handler handler,
                                                         void *user_data, tessera_ptxas **ptxas);

/** Null is allowed. */
TESSERA_EXPORT void tessera_ptxas_destroy(tessera_ptxas *ptxas);

/** Where it is; relative when the search path is. */
TESSERA_EXPORT const char *tessera_ptxas_path(const tessera_ptxas *ptxas);

/** The CUDA release it belongs to, as "12.9". */
TESSERA_EXPORT const char *tessera_ptxas_version(const tessera_ptxas *ptxas);

/*===- What a source declares ---------------------------------------------===*/

/** Parameters and kernels of a source. */
typedef struct tessera_source tessera_source;

/** Reads the declarations of `length` bytes of source text with some parameters set. On success
 *  `*info` is a handle to destroy, otherwise null. */
TESSERA_EXPORT tessera_compile_status
tessera_source_inspect(const char *source, size_t length, const char *file_name,
                       const tessera_define *defines, size_t define_count,
                       tessera_diagnostic_handler handler, void *user_data, tessera_source **info);

/** Null is allowed. */
TESSERA_EXPORT void tessera_source_destroy(tessera_source *info);

TESSERA_EXPORT size_t tessera_source_parameter_count(const tessera_source *info);

/** A parameter of a source. */
typedef struct tessera_parameter {
  /** sizeof(tessera_parameter) of the caller, who sets it; members beyond it are not written. */
  size_t size;
  const char *name;
  /** "int", "bool" or "type". */
  const char *kind;
  const char *default_value;
  const char *documentation;
  /** Values or ranges, as "128" and "16..256 step 16"; none when any value of the kind will do. */
  const char *const *allowed;
  size_t allowed_count;
} tessera_parameter;

/** Fills `*parameter` with strings that live as long as `info`; returns 0 for an index out of
 *  range, else 1. */
TESSERA_EXPORT int tessera_source_parameter(const tessera_source *info, size_t index,
                                            tessera_parameter *parameter);

TESSERA_EXPORT size_t tessera_source_kernel_count(const tessera_source *info);

/** A kernel of a source with its parameters bound. */
typedef struct tessera_kernel_info {
  /** sizeof(tessera_kernel_info) of the caller, who sets it; members beyond it are not written. */
  size_t size;
  const char *name;
  /** As "SQ ceildiv 128, H, B". */
  const char *grid;
  const char *const *argument_names;
  const char *const *argument_types;
  size_t argument_count;
  /** Named run-time dimensions, in order of first appearance. */
  const char *const *dims;
  size_t dim_count;
} tessera_kernel_info;

/** Fills `*kernel` with strings that live as long as `info`; returns 0 for an index out of range,
 *  else 1. */
TESSERA_EXPORT int tessera_source_kernel(const tessera_source *info, size_t index,
                                         tessera_kernel_info *kernel);

#ifdef __cplusplus
}
#endif

#endif /* TESSERA_C_COMPILER_H */
