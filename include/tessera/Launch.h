//===- tessera/Launch.h - Kernels as objects of C++ -----------------------===//
//
// The handles of tessera-c/Program.h and tessera-c/Runtime.h as objects, which
// destroy them: a Program runs on the CPU, a Bundle holds machine code, and its
// Kernels are launched on a GPU. Nothing throws. Programs take the library
// Tessera::tessera, bundles and kernels Tessera::tessera_runtime as well.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LAUNCH_H
#define TESSERA_LAUNCH_H

#include "tessera-c/Program.h"
#include "tessera-c/Runtime.h"
#include <cassert>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

/// Whether a call went well, and what went wrong where it did not.
struct Outcome {
  /// 0, or a tessera_runtime_status, or of a Program a tessera_compile_status.
  int status = 0;
  std::string message;

  explicit operator bool() const { return status == 0; }
};

/// A value, or what went wrong: ask before it is taken.
template <typename T>
struct Expected : Outcome {
  std::optional<T> value;

  Expected(T value) : value(std::move(value)) {}
  Expected(Outcome error) : Outcome(std::move(error)) {}

  T &operator*() {
    assert(value && "there is no value");
    return *value;
  }
  T *operator->() { return &**this; }
};

/// An argument of a kernel: a number, or a view of memory.
class Argument {
public:
  Argument(int32_t number) : type(TESSERA_TYPE_SCALAR_I32) { scalar.i32 = number; }
  Argument(int64_t number) : type(TESSERA_TYPE_SCALAR_I64) { scalar.i64 = number; }
  Argument(float number) : type(TESSERA_TYPE_SCALAR_F32) { scalar.f32 = number; }

  /// A view of elements of a type, the outermost dimension first. Strides count elements; without
  /// them the view is dense. The address is one of the device, or of a Program one of the host.
  Argument(uint64_t address, tessera_type type, std::vector<int64_t> shape,
           std::vector<int64_t> strides = {})
      : type(type), address(address), shape(std::move(shape)), strides(std::move(strides)) {
    scalar.i64 = 0;
    if (this->strides.empty() && !this->shape.empty())
      makeDense();
  }
  Argument(const void *address, tessera_type type, std::vector<int64_t> shape,
           std::vector<int64_t> strides = {})
      : Argument(reinterpret_cast<uint64_t>(address), type, std::move(shape), std::move(strides)) {}

  /// The same for the C interface, which points into this object.
  tessera_argument get() const {
    // Of two counts that differ the one that no kernel takes.
    size_t rank = shape.size() == strides.size() ? shape.size() : ~size_t(0);
    tessera_argument argument = {address, shape.data(), strides.data(), type, int32_t(rank), {0}};
    argument.scalar = scalar;
    return argument;
  }

private:
  void makeDense() {
    strides.assign(shape.size(), 1);
    for (size_t i = shape.size() - 1; i > 0; --i)
      strides[i - 1] = strides[i] * (shape[i] > 1 ? shape[i] : 1);
  }

  tessera_type type;
  uint64_t address = 0;
  std::vector<int64_t> shape, strides;
  decltype(tessera_argument::scalar) scalar;
};

using Arguments = std::vector<Argument>;

namespace detail {

inline std::vector<tessera_argument> convert(const Arguments &arguments) {
  std::vector<tessera_argument> converted;
  for (const Argument &argument : arguments)
    converted.push_back(argument.get());
  return converted;
}

inline Outcome convert(tessera_runtime_status status) {
  return status ? Outcome{int(status), tessera_last_error()} : Outcome();
}

/// Adds an error, "file:line:column: message", and its notes to the text at `text`.
inline void collect(const tessera_diagnostic *diagnostic, void *text) {
  auto &message = *static_cast<std::string *>(text);
  if (diagnostic->severity != TESSERA_SEVERITY_ERROR &&
      diagnostic->severity != TESSERA_SEVERITY_NOTE)
    return;
  message += message.empty() ? "" : "\n";
  if (*diagnostic->file)
    message += diagnostic->file + (":" + std::to_string(diagnostic->line)) + ":" +
               std::to_string(diagnostic->column) + ": ";
  message += diagnostic->message;
  for (size_t i = 0; i < diagnostic->note_count; ++i)
    collect(diagnostic->notes + i, text);
}

} // namespace detail

/// A kernel of a bundle, or a sequence or a choice of them. It holds the bundle.
class Kernel {
public:
  std::string getName() const { return tessera_kernel_name(handle); }

  /// Loads the machine code ahead of the first launch.
  Outcome prepare(int device = TESSERA_CURRENT_DEVICE) const {
    return detail::convert(tessera_kernel_prepare(handle, device));
  }

  /// Launches on a CUstream or cudaStream_t, by default the default stream, and does not wait.
  Outcome launch(const Arguments &arguments, void *stream = nullptr,
                 int device = TESSERA_CURRENT_DEVICE) const {
    std::vector<tessera_argument> converted = detail::convert(arguments);
    return detail::convert(
        tessera_kernel_launch(handle, device, stream, converted.data(), converted.size()));
  }

  /// For what else tessera-c/Runtime.h has.
  tessera_kernel *get() const { return handle; }

private:
  friend class Bundle;
  Kernel(std::shared_ptr<tessera_bundle> bundle, tessera_kernel *handle)
      : bundle(std::move(bundle)), handle(handle) {}

  std::shared_ptr<tessera_bundle> bundle;
  tessera_kernel *handle;
};

/// Machine code with the description that a launch needs (docs/bundle.md).
class Bundle {
public:
  /// The bundle that a compilation gives, or a file holds.
  static Expected<Bundle> load(const std::string &text) {
    return wrap([&](tessera_bundle **handle) {
      return tessera_bundle_load(text.data(), text.size(), handle);
    });
  }
  static Expected<Bundle> loadFile(const std::string &path) {
    return wrap(
        [&](tessera_bundle **handle) { return tessera_bundle_load_file(path.c_str(), handle); });
  }

  /// The kernel, sequence or choice of a name; without one the only one.
  Expected<Kernel> getKernel(const char *name = nullptr) const {
    tessera_kernel *kernel = nullptr;
    Outcome outcome = detail::convert(tessera_kernel_get(handle.get(), name, &kernel));
    if (!outcome)
      return outcome;
    return Kernel(handle, kernel);
  }

private:
  template <typename Load>
  static Expected<Bundle> wrap(Load load) {
    tessera_bundle *handle = nullptr;
    Outcome outcome = detail::convert(load(&handle));
    if (!outcome)
      return outcome;
    Bundle bundle;
    bundle.handle.reset(handle, tessera_bundle_destroy);
    return bundle;
  }

  std::shared_ptr<tessera_bundle> handle;
};

/// A kernel as its source says it, which the interpreter runs on the CPU.
class Program {
public:
  using Defines = std::vector<std::pair<std::string, std::string>>;

  /// Reads a source, which errors call `fileName`. Without a name it has one kernel.
  static Expected<Program> read(const std::string &source, const std::string &fileName,
                                const Defines &defines = {}, const char *kernel = nullptr) {
    std::vector<tessera_define> converted;
    for (const auto &[name, value] : defines)
      converted.push_back({name.c_str(), value.c_str()});
    std::string message;
    tessera_program *handle = nullptr;
    int status = tessera_program_read(source.data(), source.size(), fileName.c_str(), kernel,
                                      converted.data(), converted.size(), detail::collect, &message,
                                      &handle);
    if (status)
      return Outcome{status, message};
    return Program(handle);
  }
  static Expected<Program> readFile(const std::string &path, const Defines &defines = {},
                                    const char *kernel = nullptr) {
    std::ifstream file(path, std::ios::binary);
    std::string source{std::istreambuf_iterator<char>(file), {}};
    if (!file)
      return Outcome{TESSERA_COMPILE_USAGE_ERROR, path + ": the file cannot be read"};
    return read(source, path, defines, kernel);
  }

  /// Runs all of the grid. Views are of this process' memory; those of f16 and bf16 may be of f32.
  Outcome run(const Arguments &arguments) const {
    std::vector<tessera_argument> converted = detail::convert(arguments);
    std::string message;
    int status = tessera_program_run(handle.get(), converted.data(), converted.size(),
                                     detail::collect, &message);
    return {status, message};
  }

  /// For what else tessera-c/Program.h has.
  tessera_program *get() const { return handle.get(); }

private:
  struct Destroy {
    void operator()(tessera_program *program) const { tessera_program_destroy(program); }
  };
  explicit Program(tessera_program *handle) : handle(handle) {}

  std::unique_ptr<tessera_program, Destroy> handle;
};

} // namespace tessera

#endif // TESSERA_LAUNCH_H
