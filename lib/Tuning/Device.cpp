//===- Device.cpp - Tensors and timing on a GPU ---------------------------===//

#include "lib/Tuning/Device.h"
#include "lib/Support/Fail.h"
#include "lib/Support/Gaussian.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Parallel.h"
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

using namespace tessera;
using namespace tessera::tuning;
namespace cuda = tessera::runtime::cuda;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// Elements of the numbers that are repeated over a tensor: odd, so that rows differ.
static constexpr size_t kPoolElements = (1 << 20) + 7;

/// What normal numbers are multiplied by to become integers.
static constexpr double kIntegerScale = 32;

/// Normal numbers in the form of `type`, or one number again and again.
static std::vector<char> makePool(const ElementType &type, StringRef name,
                                  std::optional<double> number) {
  std::vector<char> pool(kPoolElements * type.bytes);
  Gaussian gaussian(0, name);
  for (size_t i = 0; i < kPoolElements; ++i)
    encodeElement(type, number ? *number : gaussian.next() * (type.semantics ? 1 : kIntegerScale),
                  &pool[i * type.bytes]);
  return pool;
}

/// The value of every pattern of a type with one or two bytes.
static std::vector<float> makeTable(const ElementType &type) {
  std::vector<float> table(size_t(1) << 8 * type.bytes);
  for (unsigned bits = 0; bits < table.size(); ++bits) {
    char element[2];
    writeBits(element, type.bytes, bits);
    table[bits] = static_cast<float>(decodeElement(type, element));
  }
  return table;
}

namespace {
/// How far elements are from those of a reference.
struct Distance {
  double difference = 0, norm = 0; ///< squares
  bool isMismatch = false;         ///< of numbers that are not finite

  void add(double a, double b) {
    if (!std::isfinite(a) || !std::isfinite(b)) {
      isMismatch |= std::isnan(a) ? !std::isnan(b) : a != b;
      return;
    }
    difference += (a - b) * (a - b);
    norm += b * b;
  }
  Distance operator+(const Distance &other) const {
    return {difference + other.difference, norm + other.norm, isMismatch || other.isMismatch};
  }
};
} // namespace

/// Of elements whose values are in `table`, or of wider ones without one.
static Distance measureDistance(const ElementType &type, ArrayRef<float> table, ArrayRef<char> a,
                                ArrayRef<char> b) {
  auto valueOf = [&](const char *at) {
    return table.empty() ? decodeElement(type, at) : table[readBits(at, type.bytes)];
  };
  Distance distance;
  for (size_t i = 0; i + type.bytes <= a.size(); i += type.bytes)
    distance.add(valueOf(&a[i]), valueOf(&b[i]));
  return distance;
}

/// The same on all cores: results of 64 MiB take longer to compare than to compute.
static Distance measureDistance(const ElementType &type, ArrayRef<char> a, ArrayRef<char> b) {
  constexpr size_t kSlice = size_t(1) << 20;
  std::vector<float> table;
  if (type.bytes <= 2)
    table = makeTable(type);
  return llvm::parallelTransformReduce(
      llvm::seq<size_t>(llvm::divideCeil(a.size(), kSlice)), Distance(), std::plus<Distance>(),
      [&](size_t slice) {
        size_t begin = slice * kSlice, size = std::min(kSlice, a.size() - begin);
        return measureDistance(type, table, a.slice(begin, size), b.slice(begin, size));
      });
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// Strides of a tensor whose dimensions are stored in `order`, slowest first.
static Expected<std::vector<int64_t>> makeStrides(ArrayRef<int64_t> shape, StringRef name,
                                                  const Values &orders) {
  std::vector<size_t> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<size_t> natural = order;
  if (auto given = orders.find(name.str()); given != orders.end()) {
    llvm::SmallVector<StringRef> items;
    StringRef(given->second).split(items, ',');
    order.clear();
    for (StringRef item : items)
      if (size_t dim; !item.trim().getAsInteger(10, dim))
        order.push_back(dim);
    if (!std::is_permutation(order.begin(), order.end(), natural.begin(), natural.end()) ||
        order.back() != natural.back())
      return fail(llvm::formatv("--order: '{0}' takes a permutation of 0 to {1} that ends with "
                                "{1}, slowest dimension first; got '{2}'",
                                name, natural.back(), given->second));
  }
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t dim : llvm::reverse(order)) {
    strides[dim] = stride;
    stride *= shape[dim];
  }
  return strides;
}

Error DeviceTensors::addView(int device, const runtime::ArgumentInfo &info, unsigned number,
                             const runtime::Signature &callee, const Target &target,
                             const Extents &extents) {
  View view{number, info.type, info.access, {}, {}, std::nullopt, std::nullopt};
  if (auto given = target.scalars.find(info.name); given != target.scalars.end()) {
    view.number.emplace();
    if (StringRef(given->second).getAsDouble(*view.number))
      return fail("--set: '" + info.name + "' is a number, got '" + given->second + "'");
  }
  int64_t elements = 1;
  for (const runtime::Extent &extent : info.dims) {
    int64_t value = extent.dim < 0 ? extent.constant : extents.at(callee.dims[extent.dim]);
    view.shape.push_back(value);
    elements *= value;
  }
  Expected<std::vector<int64_t>> strides = makeStrides(view.shape, info.name, target.orders);
  if (!strides)
    return strides.takeError();
  view.strides = std::move(*strides);
  Expected<runtime::DeviceBuffer> buffer = runtime::DeviceBuffer::allocate(
      *driver, device, std::max<int64_t>(elements, 1) * info.type->bytes);
  if (!buffer)
    return buffer.takeError();
  view.buffer.emplace(std::move(*buffer));
  if (view.access != runtime::Access::Write)
    if (Error error = fill(view))
      return error;
  runtime::Argument &argument = arguments.emplace_back();
  argument = {};
  argument.type = info.type->type;
  argument.rank = static_cast<int32_t>(view.shape.size());
  argument.pointer = view.buffer->getAddress();
  views.push_back(std::move(view));
  return Error::success();
}

Error DeviceTensors::addScalar(const runtime::ArgumentInfo &info, const runtime::Signature &callee,
                               const Target &target) {
  auto given = target.scalars.find(info.name);
  if (given == target.scalars.end())
    return fail(callee.kind + " '" + callee.name + "' needs its scalar '" + info.name +
                "'; give --set " + info.name + "=VALUE");
  runtime::Argument &argument = arguments.emplace_back(runtime::Argument{});
  StringRef text = given->second;
  double number;
  int64_t integer;
  bool fits = info.type->semantics
                  ? !text.getAsDouble(number) && setScalar(*info.type, number, argument)
                  : !text.getAsInteger(10, integer) && setScalar(*info.type, integer, argument);
  if (!fits)
    return fail("--set: '" + info.name + "' is a number of type " + info.type->name + ", got '" +
                text + "'");
  return Error::success();
}

Expected<DeviceTensors> DeviceTensors::create(const cuda::Driver &driver, int device,
                                              const runtime::Signature &callee,
                                              const Target &target, const Extents &extents) {
  for (const std::string &dim : callee.dims)
    if (!extents.count(dim))
      return fail("the shape lacks the extent of " + dim);
  auto isArgument = [&](const std::string &name, bool isView) {
    return llvm::any_of(callee.arguments, [&](const runtime::ArgumentInfo &info) {
      return info.name == name && info.isView == isView;
    });
  };
  for (const auto &[name, value] : target.scalars)
    if (!isArgument(name, false) && !isArgument(name, true))
      return fail("--set: " + callee.kind + " '" + callee.name + "' has no argument '" + name +
                  "'");
  for (const auto &[name, value] : target.orders)
    if (!isArgument(name, true))
      return fail("--order: " + callee.kind + " '" + callee.name + "' has no view '" + name + "'");
  DeviceTensors tensors(driver);
  // Arguments point into them.
  tensors.views.reserve(callee.arguments.size());
  for (auto [number, info] : llvm::enumerate(callee.arguments)) {
    Error error = info.isView ? tensors.addView(device, info, number, callee, target, extents)
                              : tensors.addScalar(info, callee, target);
    if (error)
      return std::move(error);
  }
  for (View &view : tensors.views) {
    tensors.arguments[view.argument].shape = view.shape.data();
    tensors.arguments[view.argument].strides = view.strides.data();
  }
  return tensors;
}

Error DeviceTensors::fill(const View &view) const {
  std::vector<char> pool = makePool(*view.type, llvm::Twine(view.argument).str(), view.number);
  size_t size = view.buffer->getSize();
  for (size_t offset = 0; offset < size; offset += pool.size())
    if (Error error =
            driver->check(driver->memcpyHtoD(view.buffer->getAddress() + offset, pool.data(),
                                             std::min(pool.size(), size - offset)),
                          "cuMemcpyHtoD"))
      return error;
  return Error::success();
}

Error DeviceTensors::resetResults() {
  for (const View &view : views) {
    if (view.access == runtime::Access::Read)
      continue;
    // All bits set are a NaN in every floating-point type.
    Error error = view.access == runtime::Access::ReadWrite
                      ? fill(view)
                      : driver->check(driver->memsetD8Async(view.buffer->getAddress(), 0xFF,
                                                            view.buffer->getSize(), nullptr),
                                      "cuMemsetD8Async");
    if (error)
      return error;
  }
  return Error::success();
}

Expected<std::vector<std::vector<char>>> DeviceTensors::downloadResults() const {
  std::vector<std::vector<char>> results;
  for (const View &view : views) {
    if (view.access == runtime::Access::Read)
      continue;
    std::vector<char> &bytes = results.emplace_back(view.buffer->getSize());
    if (Error error = view.buffer->download(bytes))
      return std::move(error);
  }
  return results;
}

double DeviceTensors::compareResults(ArrayRef<std::vector<char>> results,
                                     ArrayRef<std::vector<char>> reference) const {
  double worst = 0;
  size_t next = 0;
  for (const View &view : views) {
    if (view.access == runtime::Access::Read)
      continue;
    Distance distance = measureDistance(*view.type, results[next], reference[next]);
    ++next;
    if (distance.isMismatch || (distance.norm == 0 && distance.difference > 0))
      return std::numeric_limits<double>::infinity();
    if (distance.norm > 0)
      worst = std::max(worst, std::sqrt(distance.difference / distance.norm));
  }
  return worst;
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

/// Several times the L2 cache of any GPU of today.
static constexpr size_t kFlushBytes = size_t(256) << 20;
/// How often a wait looks at the device and the power meter.
static constexpr std::chrono::microseconds kPollInterval(200);
static constexpr unsigned kPollsPerReading = 25;

Expected<Stopwatch> Stopwatch::create(const cuda::Driver &driver, int device, double limitSeconds) {
  Expected<runtime::DeviceBuffer> flushed =
      runtime::DeviceBuffer::allocate(driver, device, kFlushBytes);
  if (!flushed)
    return flushed.takeError();
  return Stopwatch(driver, limitSeconds, std::move(*flushed),
                   std::make_unique<runtime::PowerMeter>(driver, device));
}

Stopwatch::~Stopwatch() {
  for (cuda::Event event : events)
    driver->eventDestroy(event);
}

Error Stopwatch::addEvents(size_t count) {
  while (events.size() < count) {
    cuda::Event event = nullptr;
    if (Error error = driver->check(driver->eventCreate(&event, 0), "cuEventCreate"))
      return error;
    events.push_back(event);
  }
  return Error::success();
}

Error Stopwatch::wait(std::vector<runtime::PowerMeter::Reading> &readings) {
  if (Error error = addEvents(1))
    return error;
  if (Error error = driver->check(driver->eventRecord(events.back(), nullptr), "cuEventRecord"))
    return error;
  auto start = std::chrono::steady_clock::now();
  for (unsigned polls = 1;; ++polls) {
    cuda::Result result = driver->eventQuery(events.back());
    if (result != cuda::kNotReady)
      return driver->check(result, "the work on the device");
    std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (elapsed.count() > limitSeconds)
      return fail(llvm::formatv("the work on the device has not ended after {0} s", limitSeconds));
    if (polls % kPollsPerReading == 0)
      if (std::optional<runtime::PowerMeter::Reading> reading = meter->read())
        readings.push_back(*reading);
    std::this_thread::sleep_for(kPollInterval);
  }
}

Error Stopwatch::time(llvm::function_ref<Error()> launch, unsigned count,
                      std::vector<double> &samples,
                      std::vector<runtime::PowerMeter::Reading> &readings) {
  // Two for each run and one for the wait.
  if (Error error = addEvents(2 * count + 1))
    return error;
  for (unsigned i = 0; i < count; ++i) {
    if (Error error = driver->check(
            driver->memsetD8Async(flushed.getAddress(), 0, flushed.getSize(), nullptr),
            "cuMemsetD8Async"))
      return error;
    if (Error error = driver->check(driver->eventRecord(events[2 * i], nullptr), "cuEventRecord"))
      return error;
    if (Error error = launch())
      return error;
    if (Error error =
            driver->check(driver->eventRecord(events[2 * i + 1], nullptr), "cuEventRecord"))
      return error;
  }
  if (Error error = wait(readings))
    return error;
  for (unsigned i = 0; i < count; ++i) {
    float ms = 0;
    if (Error error = driver->check(driver->eventElapsedTime(&ms, events[2 * i], events[2 * i + 1]),
                                    "cuEventElapsedTime"))
      return error;
    samples.push_back(ms);
  }
  return Error::success();
}
