//===- PowerMeter.h - Clock and power of a GPU ------------------*- C++ -*-===//

#ifndef TESSERA_LIB_RUNTIME_POWERMETER_H
#define TESSERA_LIB_RUNTIME_POWERMETER_H

#include "lib/Runtime/Driver.h"

#include <optional>

namespace tessera::runtime {

/// Reads the SM clock and the power of a device through NVML (NVML API Reference Guide,
/// nvmlDeviceGetClockInfo and nvmlDeviceGetPowerUsage). Where the library or the device is not
/// there, every reading is absent.
class PowerMeter {
public:
  struct Reading {
    double mhz, watts;
  };

  /// Opens libnvidia-ml.so.1 and finds the device by its place on the bus.
  PowerMeter(const cuda::Driver &driver, int device);
  PowerMeter(const PowerMeter &) = delete;
  PowerMeter &operator=(const PowerMeter &) = delete;
  ~PowerMeter();

  std::optional<Reading> read() const;

private:
  using Result = int; // nvmlReturn_t; 0 is NVML_SUCCESS
  using Handle = struct OpaqueNvmlDevice *;

  void *library = nullptr;
  Handle handle = nullptr;
  Result (*shutdown)() = nullptr;
  Result (*getClockInfo)(Handle, int, unsigned *) = nullptr;
  Result (*getPowerUsage)(Handle, unsigned *) = nullptr;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_POWERMETER_H
