/*===- tessera-c/Runtime.h - Launch compiled kernels ------------*- C -*-===*\
|*                                                                            *|
|* The launch half of the C interface: reads a bundle (docs/bundle.md), loads *|
|* it through the CUDA driver and launches its kernels. Needs libcuda.so.1 at *|
|* run time, from a driver for CUDA 12.0 or newer, and nothing of CUDA at     *|
|* build time. Exported by libtessera and by the small libtessera_runtime,    *|
|* which has no compiler in it.                                               *|
|*                                                                            *|
|* Every function may be called from any thread. A function that returns a    *|
|* status other than TESSERA_RUNTIME_SUCCESS leaves a message for the calling *|
|* thread, see tessera_last_error. Pointers are not null unless it says so.   *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef TESSERA_C_RUNTIME_H
#define TESSERA_C_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifndef TESSERA_EXPORT
#define TESSERA_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** What kind of thing went wrong. */
typedef enum tessera_runtime_status {
  TESSERA_RUNTIME_SUCCESS = 0,
  /** The bundle is not one, is damaged, or is of a version this library does not read. */
  TESSERA_RUNTIME_INVALID_BUNDLE = 1,
  /** A shape, stride, address, name or number does not fit the kernel. */
  TESSERA_RUNTIME_INVALID_ARGUMENT = 2,
  /** An argument is of another kind or element type than the kernel's. */
  TESSERA_RUNTIME_TYPE_MISMATCH = 3,
  /** No usable CUDA driver, no such device, or a device the kernel was not compiled for. */
  TESSERA_RUNTIME_NO_DEVICE = 4,
  /** A call of the CUDA driver failed; the message names it and its error. */
  TESSERA_RUNTIME_DRIVER_ERROR = 5
} tessera_runtime_status;

/** What an argument is: a scalar, or a view with elements of this type. */
typedef enum tessera_type {
  TESSERA_TYPE_F16 = 1,
  TESSERA_TYPE_BF16 = 2,
  TESSERA_TYPE_F32 = 3,
  TESSERA_TYPE_I8 = 4,
  TESSERA_TYPE_I32 = 5,
  TESSERA_TYPE_I64 = 6,
  TESSERA_TYPE_F8E4M3FN = 7,
  TESSERA_TYPE_F8E5M2 = 8,
  /** Below are elements, from here on scalars. */
  TESSERA_TYPE_FIRST_SCALAR = 16,
  TESSERA_TYPE_SCALAR_I32 = 16,
  TESSERA_TYPE_SCALAR_I64 = 17,
  TESSERA_TYPE_SCALAR_F32 = 18
} tessera_type;

/** One kernel argument. For a view, `pointer`, `shape`, `strides` and `rank` count, for a scalar
 * the member of `scalar` that `type` names. The library keeps no pointer into it after a call. */
typedef struct tessera_argument {
  /** Device address of the element at index 0 of every dimension. */
  uint64_t pointer;
  /** `rank` extents, outermost first, in the order of the view's dimensions in the source. */
  const int64_t *shape;
  /** `rank` strides in elements, in the same order. */
  const int64_t *strides;
  /** A tessera_type. */
  int32_t type;
  int32_t rank;
  union {
    int32_t i32;
    int64_t i64;
    float f32;
  } scalar;
} tessera_argument;

/** A loaded bundle. Owns its kernels and, for each context it ran in, a CUDA module. */
typedef struct tessera_bundle tessera_bundle;
/** A kernel of a bundle, or a sequence of its kernels, which one call launches in order, or a
 * choice among them, of which a call launches the one that should be the fastest; valid until the
 * bundle is destroyed. */
typedef struct tessera_kernel tessera_kernel;

/** As a device number: the device of the context that is current on the calling thread. */
#define TESSERA_CURRENT_DEVICE (-1)

/** The message of the last call that failed on this thread; an empty string when none did. Valid
 * until the next failing call on this thread. */
TESSERA_EXPORT const char *tessera_last_error(void);

/** Reads a bundle of `size` bytes of JSON text. Does not touch the driver.
 *  Errors: INVALID_BUNDLE. */
TESSERA_EXPORT tessera_runtime_status tessera_bundle_load(const void *data, size_t size,
                                                          tessera_bundle **bundle);

/** Reads a bundle from a file. Errors: INVALID_BUNDLE (also when the file cannot be read). */
TESSERA_EXPORT tessera_runtime_status tessera_bundle_load_file(const char *path,
                                                               tessera_bundle **bundle);

/** Waits for the devices where its kernels ran, which no stream may be capturing then, and frees
 * the bundle. A module that CUDA graphs hold stays loaded as long as they do. Null is allowed. */
TESSERA_EXPORT void tessera_bundle_destroy(tessera_bundle *bundle);

/** The number of kernels, sequences and choices of a bundle. */
TESSERA_EXPORT size_t tessera_bundle_kernel_count(const tessera_bundle *bundle);

/** The kernel, or behind all kernels the sequence, or behind these the choice, at a position below
 * tessera_bundle_kernel_count. Errors: INVALID_ARGUMENT. */
TESSERA_EXPORT tessera_runtime_status tessera_bundle_kernel_at(tessera_bundle *bundle, size_t index,
                                                               tessera_kernel **kernel);

/** The kernel, sequence or choice of a name; a null name means the only choice, where there is
 * none the only sequence, and where there is none of these the only kernel. Errors:
 * INVALID_ARGUMENT. */
TESSERA_EXPORT tessera_runtime_status tessera_kernel_get(tessera_bundle *bundle, const char *name,
                                                         tessera_kernel **kernel);

/** The kernel's name in the source; valid as long as the kernel. */
TESSERA_EXPORT const char *tessera_kernel_name(const tessera_kernel *kernel);

/** The entry of the bundle's "kernels", "sequences" or "choices" array, as JSON text; valid as long
 * as the kernel. */
TESSERA_EXPORT const char *tessera_kernel_description(const tessera_kernel *kernel);

/** The number of kernels and sequences among which a choice chooses; 0 for a kernel or a sequence.
 */
TESSERA_EXPORT size_t tessera_kernel_alternative_count(const tessera_kernel *kernel);

/** The kernel or sequence of a choice at a position below tessera_kernel_alternative_count.
 * Launching it launches this one, whatever the choice would be. Errors: INVALID_ARGUMENT. */
TESSERA_EXPORT tessera_runtime_status tessera_kernel_alternative(tessera_kernel *kernel,
                                                                 size_t position,
                                                                 tessera_kernel **alternative);

/** Says which of its alternatives a choice launches with `count` extents, in the order of "dims" in
 * its description: `*position` is that of it. `microseconds` is null or has room for a number of
 * each: what it is expected to take on the GPU for which the bundle was compiled,
 * infinity where it does not take these extents. Errors: INVALID_ARGUMENT. */
TESSERA_EXPORT tessera_runtime_status tessera_kernel_choice(tessera_kernel *kernel,
                                                            const int64_t *extents, size_t count,
                                                            size_t *position, double *microseconds);

/** Loads the kernel's module on a device ahead of the first launch, which then takes no longer than
 * others. Errors: NO_DEVICE, DRIVER_ERROR. */
TESSERA_EXPORT tessera_runtime_status tessera_kernel_prepare(tessera_kernel *kernel, int device);

/** The most blocks that a launch of a persistent kernel has on a device; a launch with less work
 * has fewer. Loads the kernel's module. Errors: INVALID_ARGUMENT when the kernel is not persistent,
 * NO_DEVICE, DRIVER_ERROR. */
TESSERA_EXPORT tessera_runtime_status tessera_kernel_capacity(tessera_kernel *kernel, int device,
                                                              uint32_t *blocks);

/** Launches a kernel.
 *
 *  `device` is a CUDA device number or TESSERA_CURRENT_DEVICE. When the current context of the
 * thread belongs to that device it is used, otherwise the device's primary context (the one of
 * PyTorch and the CUDA runtime) for the time of the call. `stream` is a CUstream or cudaStream_t;
 * null is the legacy default stream. `arguments` has one entry per argument of the source, in its
 * order.
 *
 *  Checked before anything is launched: types; rank; equal extents where the source has one name;
 *  static extents; required divisibilities; extents below 2^31; the innermost stride 1; other
 * strides not negative, and they and the address multiples of the kernel's alignment (strides of
 * dimensions of extent 1 are ignored); that a view which the kernel writes shares no element with
 * another argument, nor has one at two indices; addresses the device can reach, the first time each
 * is seen.
 * A grid of size 0 launches nothing and is a success.
 *
 *  A kernel with a workspace allocates it at the first launch on each stream and keeps it, for
 * streams of the same handle, until the bundle is destroyed. So does a sequence, which allocates
 * again when a call needs more.
 *
 *  The kernels of a sequence are launched after all of them have been checked, each of which sees
 * what those before it have stored.
 *
 *  Any launch, the first included, may be one that a CUDA graph captures. It has a workspace of its
 * own, and the graph holds that and the kernel's module: such graphs may run beside each other and
 * beside launches, and may outlive the bundle. Executable graphs that are instantiated from one
 * graph must not run beside each other.
 *
 *  Errors: INVALID_ARGUMENT, TYPE_MISMATCH, NO_DEVICE, DRIVER_ERROR. Faults inside the kernel come
 *  later, from whoever synchronizes. */
TESSERA_EXPORT tessera_runtime_status tessera_kernel_launch(tessera_kernel *kernel, int device,
                                                            void *stream,
                                                            const tessera_argument *arguments,
                                                            size_t count);

/** The bytes of device memory that a call with these arguments, whose addresses may be any that are
 * aligned, needs for the workspaces of a sequence; 0 for a kernel. Errors: INVALID_ARGUMENT,
 * TYPE_MISMATCH. */
TESSERA_EXPORT tessera_runtime_status tessera_kernel_workspace_bytes(
    const tessera_kernel *kernel, const tessera_argument *arguments, size_t count, size_t *bytes);

/** tessera_kernel_launch with the workspaces of a sequence in `bytes` of device memory at
 * `workspace`, a multiple of 256, as tessera_kernel_workspace_bytes asks. What it holds does not
 * matter. It belongs to the launch until that has run; of a captured launch, as long as the graph.
 * Errors: also INVALID_ARGUMENT when there is too little. */
TESSERA_EXPORT tessera_runtime_status tessera_kernel_launch_with_workspace(
    tessera_kernel *kernel, int device, void *stream, const tessera_argument *arguments,
    size_t count, uint64_t workspace, size_t bytes);

/** Waits for the device and copies what launches on `stream` have recorded since the last call: the
 *  memory that docs/bundle.md calls a timeline, of a kernel compiled with --instrument=timeline,
 * all zero when nothing was launched there. `*size` is the room in `memory` and becomes the size of
 * the timeline; with a null `memory` nothing is copied. Errors: INVALID_ARGUMENT when the kernel
 * records no timeline or there is too little room, NO_DEVICE, DRIVER_ERROR. */
TESSERA_EXPORT tessera_runtime_status tessera_kernel_read_timeline(tessera_kernel *kernel,
                                                                   int device, void *stream,
                                                                   void *memory, size_t *size);

#ifdef __cplusplus
}
#endif

#endif /* TESSERA_C_RUNTIME_H */
