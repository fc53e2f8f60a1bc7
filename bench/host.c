/* What a launch costs the host through the C interface: bench-host BUNDLE D BATCHES LAUNCHES

   BUNDLE is of attention_fwd.tile with bf16 and DV = D. For each batch prints the microseconds of a
   launch, as the mean of LAUNCHES launches one after another; the device is waited for between
   batches only. One query sees one key, so that the host is what takes time, and LAUNCHES is meant
   to be far less than the launches that a stream can hold. */

#define _POSIX_C_SOURCE 200112L

#include "tessera-c/Runtime.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define WARM_UP 50

/* The few functions of the CUDA driver API, CUDA 12.0, that are needed around launches. */
typedef int (*get_address)(const char *name, void **function, int version, uint64_t flags,
                           int *status);

typedef struct driver {
  int (*init)(unsigned flags);
  int (*device_get)(int *device, int ordinal);
  int (*retain)(void **context, int device);
  int (*push)(void *context);
  int (*synchronize)(void);
  int (*allocate)(uint64_t *pointer, size_t bytes);
  int (*fill)(uint64_t to, unsigned char value, size_t bytes, void *stream);
} driver;

static void fail(const char *what, const char *why) {
  fprintf(stderr, "bench-host: %s: %s\n", what, why);
  exit(1);
}

/* Ends the program unless a call of the driver succeeded. */
static void check(int result, const char *what) {
  char text[32];
  snprintf(text, sizeof text, "error %d", result);
  if (result)
    fail(what, text);
}

/* Ends the program unless a call of the library succeeded. */
static void expect(tessera_runtime_status status, const char *what) {
  if (status != TESSERA_RUNTIME_SUCCESS)
    fail(what, tessera_last_error());
}

static driver open_driver(void) {
  driver cuda;
  int status;
  void *context, *library = dlopen("libcuda.so.1", RTLD_NOW);
  int device;
  if (!library)
    fail("libcuda.so.1", dlerror());
  /* POSIX has object and function pointers alike. */
  get_address find;
  *(void **)&find = dlsym(library, "cuGetProcAddress_v2");
  if (!find)
    fail("libcuda.so.1", "no cuGetProcAddress_v2, of drivers for CUDA 12.0");
  const struct {
    const char *name;
    void **function;
  } wanted[] = {{"cuInit", (void **)&cuda.init},
                {"cuDeviceGet", (void **)&cuda.device_get},
                {"cuDevicePrimaryCtxRetain", (void **)&cuda.retain},
                {"cuCtxPushCurrent", (void **)&cuda.push},
                {"cuCtxSynchronize", (void **)&cuda.synchronize},
                {"cuMemAlloc", (void **)&cuda.allocate},
                {"cuMemsetD8Async", (void **)&cuda.fill}};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; ++i)
    check(find(wanted[i].name, wanted[i].function, 12000, 0, &status), wanted[i].name);
  check(cuda.init(0), "cuInit");
  check(cuda.device_get(&device, 0), "cuDeviceGet");
  check(cuda.retain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuda.push(context), "cuCtxPushCurrent");
  return cuda;
}

static double microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* A number above 0 from the command line. */
static long parse(const char *text, const char *name) {
  char *end;
  long value = strtol(text, &end, 10);
  if (*end || value < 1 || value > 1000000)
    fail(name, "expected a number from 1 to 1000000");
  return value;
}

int main(int argc, char **argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: bench-host BUNDLE D BATCHES LAUNCHES\n");
    return 2;
  }
  const int64_t d = parse(argv[2], "D");
  const long batches = parse(argv[3], "BATCHES"), launches = parse(argv[4], "LAUNCHES");
  tessera_bundle *bundle;
  tessera_kernel *kernel;
  expect(tessera_bundle_load_file(argv[1], &bundle), argv[1]);
  expect(tessera_kernel_get(bundle, "attention_fwd", &kernel), argv[1]);

  /* Q, K, V and O [1, 1, 1, D] in bf16 and LSE [1, 1, 1] in f32. */
  driver cuda = open_driver();
  const int64_t shape[4] = {1, 1, 1, d}, strides[4] = {d, d, d, 1}, ones[3] = {1, 1, 1};
  tessera_argument arguments[6] = {{0}};
  for (int i = 0; i < 5; ++i) {
    const size_t bytes = i < 4 ? (size_t)d * 2 : sizeof(float);
    check(cuda.allocate(&arguments[i].pointer, bytes), "cuMemAlloc");
    check(cuda.fill(arguments[i].pointer, 0, bytes, NULL), "cuMemsetD8Async");
    arguments[i].shape = shape;
    arguments[i].strides = i < 4 ? strides : ones;
    arguments[i].type = i < 4 ? TESSERA_TYPE_BF16 : TESSERA_TYPE_F32;
    arguments[i].rank = i < 4 ? 4 : 3;
  }
  arguments[5].type = TESSERA_TYPE_SCALAR_F32;
  arguments[5].scalar.f32 = 1.0f;

  for (long batch = -1; batch < batches; ++batch) {
    const long count = batch < 0 ? WARM_UP : launches;
    const double start = microseconds();
    for (long i = 0; i < count; ++i)
      expect(tessera_kernel_launch(kernel, TESSERA_CURRENT_DEVICE, NULL, arguments, 6), "launch");
    const double taken = microseconds() - start;
    check(cuda.synchronize(), "cuCtxSynchronize");
    if (batch >= 0)
      printf("%.4f\n", taken / (double)count);
  }
  tessera_bundle_destroy(bundle);
  return 0;
}
