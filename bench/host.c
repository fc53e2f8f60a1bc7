/* What a launch costs the host through the C interface: bench-host BUNDLE D BATCHES LAUNCHES
   What the driver takes of it: bench-host --driver BATCHES LAUNCHES
   And what the choice among alternatives takes of it: bench-host --choice BUNDLE LENGTHS|drawn
   BATCHES LAUNCHES

   BUNDLE is of attention_fwd.tile with bf16 and DV = D. For each batch prints the microseconds of a
   launch, as the mean of LAUNCHES launches one after another, and those of a loop of arithmetic
   beside the batch, the slower one of before and behind it: what shares the core, or slows it down,
   shows there. The device is waited for between batches only. One query sees one key, so that the
   host is what takes time, and LAUNCHES is meant to be far less than the launches that a stream can
   hold. With --driver a kernel that does nothing is launched by cuLaunchKernelEx alone, with as
   many bytes of parameters. With --choice the kernel is chosen and nothing launched, for LENGTHS
   different lengths of sequences one after another: a single one is remembered, of many each is
   computed anew. Or for shapes that are drawn as those of bench/choice.py. It needs no driver. */

#define _POSIX_C_SOURCE 200112L

#include "tessera-c/Runtime.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WARM_UP 50
/* About what the tensor maps, pointers, extents and strides of attention_fwd.tile take. */
#define PARAMETER_BYTES "576"

static const char empty_kernel[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry empty(.param .align 64 .b8 block[" PARAMETER_BYTES "]) { ret; }\n";

/* The few functions of the CUDA driver API, CUDA 12.0, that are needed around launches. */
typedef int (*get_address)(const char *name, void **function, int version, uint64_t flags,
                           int *status);

typedef struct launch_config {
  unsigned grid[3], block[3], shared_bytes;
  void *stream, *attributes;
  unsigned attribute_count;
} launch_config;

typedef struct driver {
  int (*init)(unsigned flags);
  int (*device_get)(int *device, int ordinal);
  int (*retain)(void **context, int device);
  int (*push)(void *context);
  int (*synchronize)(void);
  int (*allocate)(uint64_t *pointer, size_t bytes);
  int (*fill)(uint64_t to, unsigned char value, size_t bytes, void *stream);
  int (*load)(void **module, const void *image, unsigned count, int *options, void **values);
  int (*find)(void **function, void *module, const char *name);
  int (*launch)(const launch_config *config, void *function, void **parameters, void **extra);
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
                {"cuMemsetD8Async", (void **)&cuda.fill},
                {"cuModuleLoadDataEx", (void **)&cuda.load},
                {"cuModuleGetFunction", (void **)&cuda.find},
                {"cuLaunchKernelEx", (void **)&cuda.launch}};
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

/* The microseconds of a loop that is the same each time. Its streams do not wait for each other and
   keep all units of a core busy, so that another thread on the core shows. */
static double time_loop(void) {
  static volatile uint64_t result;
  uint64_t streams[8] = {1, 2, 3, 4, 5, 6, 7, 8}, sum = 0;
  const double start = microseconds();
  for (uint64_t i = 0; i < 10000; ++i)
    for (int j = 0; j < 8; ++j)
      streams[j] = (streams[j] << 7 | streams[j] >> 57) + (i ^ streams[j]);
  for (int j = 0; j < 8; ++j)
    sum ^= streams[j];
  result = sum;
  (void)result;
  return microseconds() - start;
}

/* Prints a batch; `loop` is the time of the loop before it, and afterwards of that behind it. */
static void print_batch(double taken, double *loop) {
  const double before = *loop;
  *loop = time_loop();
  printf("%.4f %.4f\n", taken, before > *loop ? before : *loop);
}

/* A number above 0 from the command line. */
static long parse(const char *text, const char *name) {
  char *end;
  long value = strtol(text, &end, 10);
  if (*end || value < 1 || value > 1000000)
    fail(name, "expected a number from 1 to 1000000");
  return value;
}

/* What is launched: a kernel of a bundle through Tessera, or a function by the driver alone. */
typedef struct work {
  tessera_kernel *kernel;
  tessera_argument arguments[6];
  void *function, *parameters[1];
  launch_config config;
} work;

static void launch(const driver *cuda, work *work) {
  if (work->kernel)
    expect(tessera_kernel_launch(work->kernel, TESSERA_CURRENT_DEVICE, NULL, work->arguments, 6),
           "launch");
  else
    check(cuda->launch(&work->config, work->function, work->parameters, NULL), "cuLaunchKernelEx");
}

static void measure(const driver *cuda, work *work, long batches, long launches) {
  double loop = time_loop();
  for (long batch = -1; batch < batches; ++batch) {
    const long count = batch < 0 ? WARM_UP : launches;
    const double start = microseconds();
    for (long i = 0; i < count; ++i)
      launch(cuda, work);
    const double taken = microseconds() - start;
    check(cuda->synchronize(), "cuCtxSynchronize");
    if (batch >= 0)
      print_batch(taken / (double)count, &loop);
  }
}

static void measure_driver(long batches, long launches) {
  static char block[1024];
  work work = {.parameters = {block}, .config = {.grid = {1, 1, 1}, .block = {128, 1, 1}}};
  void *module;
  const driver cuda = open_driver();
  check(cuda.load(&module, empty_kernel, 0, NULL, NULL), "cuModuleLoadDataEx");
  check(cuda.find(&work.function, module, "empty"), "cuModuleGetFunction");
  measure(&cuda, &work, batches, launches);
}

static void measure_bundle(const char *path, int64_t d, long batches, long launches) {
  tessera_bundle *bundle;
  work work = {0};
  expect(tessera_bundle_load_file(path, &bundle), path);
  expect(tessera_kernel_get(bundle, "attention_fwd", &work.kernel), path);

  /* Q, K, V and O [1, 1, 1, D] in bf16 and LSE [1, 1, 1] in f32. */
  const driver cuda = open_driver();
  const int64_t shape[4] = {1, 1, 1, d}, strides[4] = {d, d, d, 1}, ones[3] = {1, 1, 1};
  for (int i = 0; i < 5; ++i) {
    const size_t bytes = i < 4 ? (size_t)d * 2 : sizeof(float);
    tessera_argument *argument = &work.arguments[i];
    check(cuda.allocate(&argument->pointer, bytes), "cuMemAlloc");
    check(cuda.fill(argument->pointer, 0, bytes, NULL), "cuMemsetD8Async");
    argument->shape = shape;
    argument->strides = i < 4 ? strides : ones;
    argument->type = i < 4 ? TESSERA_TYPE_BF16 : TESSERA_TYPE_F32;
    argument->rank = i < 4 ? 4 : 3;
  }
  work.arguments[5].type = TESSERA_TYPE_SCALAR_F32;
  work.arguments[5].scalar.f32 = 1.0f;
  measure(&cuda, &work, batches, launches);
  tessera_bundle_destroy(bundle);
}

/* A number from 0 on, below 1: of every program the same ones. */
static double draw(void) {
  static uint64_t state = UINT64_C(88172645463325252);
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (double)(state >> 11) / 9007199254740992.0;
}

/* A whole number whose logarithm is as likely anywhere. */
static double draw_between(double low, double high) {
  return floor(low * pow(high / low, draw()) + 0.5);
}

#define SHAPES 4096
typedef int64_t extents[5]; /* B, H, SQ, HK, SK */

/* Shapes that are no more than 4 GB and 10 TFLOP at d = 128. */
static void draw_shapes(extents *shapes) {
  for (long i = 0; i < SHAPES;) {
    const int64_t group = INT64_C(1) << (int)(draw() * 5), least = (4 + group - 1) / group;
    const int64_t heads = least + (int64_t)(draw() * (double)(64 / group - least + 1));
    const double batch = draw_between(1, 64), length = draw_between(64, 32768);
    const double tiles = batch * (double)(heads * group);
    const extents shape = {(int64_t)batch, heads * group, (int64_t)length, heads, (int64_t)length};
    if (4 * 128 * length * (tiles + batch * (double)heads) <= 4e9 &&
        2 * 128 * length * length * tiles <= 10e12)
      memcpy(shapes[i++], shape, sizeof shape);
  }
}

static void measure_choice(const char *path, const char *lengths, long batches, long launches) {
  static extents shapes[SHAPES];
  tessera_bundle *bundle;
  tessera_kernel *kernel;
  expect(tessera_bundle_load_file(path, &bundle), path);
  expect(tessera_kernel_get(bundle, "attention_fwd", &kernel), path);
  if (!strcmp(lengths, "drawn"))
    draw_shapes(shapes);
  else
    for (long i = 0, count = parse(lengths, "LENGTHS"); i < SHAPES; ++i) {
      const int64_t length = 6144 + i % count;
      const extents shape = {1, 14, length, 2, length};
      memcpy(shapes[i], shape, sizeof shape);
    }
  double loop = time_loop();
  for (long batch = -1, next = 0; batch < batches; ++batch) {
    const long count = batch < 0 ? WARM_UP : launches;
    const double start = microseconds();
    for (long i = 0; i < count; ++i, next = (next + 1) % SHAPES) {
      size_t position;
      expect(tessera_kernel_choice(kernel, shapes[next], 5, &position, NULL), "choice");
    }
    const double taken = microseconds() - start;
    if (batch >= 0)
      print_batch(taken / (double)count, &loop);
  }
  tessera_bundle_destroy(bundle);
}

int main(int argc, char **argv) {
  const int alone = argc > 1 && !strcmp(argv[1], "--driver"),
            choice = argc > 1 && !strcmp(argv[1], "--choice");
  if (argc != (alone ? 4 : choice ? 6 : 5)) {
    fprintf(stderr, "usage: bench-host BUNDLE D BATCHES LAUNCHES\n"
                    "       bench-host --driver BATCHES LAUNCHES\n"
                    "       bench-host --choice BUNDLE LENGTHS|drawn BATCHES LAUNCHES\n");
    return 2;
  }
  const long batches = parse(argv[argc - 2], "BATCHES"),
             launches = parse(argv[argc - 1], "LAUNCHES");
  if (alone)
    measure_driver(batches, launches);
  else if (choice)
    measure_choice(argv[2], argv[3], batches, launches);
  else
    measure_bundle(argv[1], parse(argv[2], "D"), batches, launches);
  return 0;
}
