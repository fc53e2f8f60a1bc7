//===- PowerMeter.cpp - Clock and power of a GPU --------------------------===//

#include "lib/Runtime/PowerMeter.h"

#include <dlfcn.h>

using namespace tessera::runtime;

/// NVML_CLOCK_SM.
static constexpr int kClockSm = 1;

template <typename Function>
static bool findFunction(void *library, const char *name, Function *&function) {
  function = reinterpret_cast<Function *>(dlsym(library, name));
  return function != nullptr;
}

PowerMeter::PowerMeter(const cuda::Driver &driver, int device) {
  char bus[32];
  if (driver.deviceGetPCIBusId(bus, sizeof(bus), device) != 0)
    return;
  library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return;
  Result (*init)() = nullptr;
  Result (*getHandle)(const char *, Handle *) = nullptr;
  bool isComplete = findFunction(library, "nvmlInit_v2", init) &&
                    findFunction(library, "nvmlDeviceGetHandleByPciBusId_v2", getHandle) &&
                    findFunction(library, "nvmlDeviceGetClockInfo", getClockInfo) &&
                    findFunction(library, "nvmlDeviceGetPowerUsage", getPowerUsage) &&
                    findFunction(library, "nvmlShutdown", shutdown);
  if (!isComplete || init() != 0) {
    shutdown = nullptr;
    return;
  }
  if (getHandle(bus, &handle) != 0)
    handle = nullptr;
}

PowerMeter::~PowerMeter() {
  if (shutdown)
    shutdown();
  if (library)
    dlclose(library);
}

std::optional<PowerMeter::Reading> PowerMeter::read() const {
  unsigned mhz = 0, milliwatts = 0;
  if (!handle || getClockInfo(handle, kClockSm, &mhz) != 0 ||
      getPowerUsage(handle, &milliwatts) != 0)
    return std::nullopt;
  return Reading{static_cast<double>(mhz), milliwatts / 1000.0};
}
