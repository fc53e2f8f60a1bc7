/* As much of the CUDA driver as memory takes, for the examples. Programs that link libcuda or the
 * run-time library call these by name. */
#ifndef TESSERA_EXAMPLES_DRIVER_H
#define TESSERA_EXAMPLES_DRIVER_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Driver {
  int (*init)(unsigned);
  int (*getDevice)(int *, int);
  int (*retain)(void **, int);
  int (*push)(void *);
  int (*synchronize)(void);
  int (*allocate)(uint64_t *, size_t);
  int (*toDevice)(uint64_t, const void *, size_t);
  int (*toHost)(void *, uint64_t, size_t);
} Driver;

/* Ends the program where `status` is not 0. */
static inline void check(int status, const char *what) {
  if (!status)
    return;
  fprintf(stderr, "%s: error %d\n", what, status);
  exit(1);
}

/* Finds the functions, and makes the first device's context the current one. */
static inline Driver openDriver(void) {
  static const char *const names[] = {
      "cuInit",           "cuDeviceGet",      "cuDevicePrimaryCtxRetain",
      "cuCtxPushCurrent", "cuCtxSynchronize", "cuMemAlloc",
      "cuMemcpyHtoD",     "cuMemcpyDtoH"};
  int (*find)(const char *, void **, int, uint64_t, int *), device, status;
  void *functions[sizeof names / sizeof *names], *context;
  Driver driver;
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    fprintf(stderr, "there is no CUDA driver: libcuda.so.1 cannot be opened\n");
    exit(1);
  }
  void *address = dlsym(library, "cuGetProcAddress_v2");
  check(!address, "cuGetProcAddress_v2");
  memcpy(&find, &address, sizeof find);
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) /* functions as of CUDA 12.0 */
    check(find(names[i], &functions[i], 12000, 0, &status), names[i]);
  memcpy(&driver, functions, sizeof driver);
  check(driver.init(0), "cuInit");
  check(driver.getDevice(&device, 0), "cuDeviceGet");
  check(driver.retain(&context, device), "cuDevicePrimaryCtxRetain");
  check(driver.push(context), "cuCtxPushCurrent");
  return driver;
}

/* Memory of the device with a copy of `host`, or with anything where that is null. */
static inline uint64_t put(const Driver *driver, const void *host, size_t size) {
  uint64_t data;
  check(driver->allocate(&data, size), "cuMemAlloc");
  if (host)
    check(driver->toDevice(data, host, size), "cuMemcpyHtoD");
  return data;
}

/* Waits for what is launched. With --launch the program ends there. */
static inline void finishLaunches(const Driver *driver, int argc, char **argv) {
  check(driver->synchronize(), "cuCtxSynchronize");
  printf("launched\n");
  if (argc > 1 && !strcmp(argv[1], "--launch"))
    exit(0);
}

/* The exit status of a program whose results differ by `worst` from what they should be. */
static inline int report(double worst, double most) {
  printf("differs by at most %.4f\n", worst);
  return worst < most ? 0 : 1;
}

static inline float fromBFloat16(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

/* Cut off, and not rounded. */
static inline uint16_t toBFloat16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)(bits >> 16);
}

#endif
