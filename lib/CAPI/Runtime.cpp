//===- Runtime.cpp - The launch half of the C interface -------------------===//

#include "tessera-c/Runtime.h"

#include "lib/Runtime/Error.h"
#include "lib/Runtime/Launch.h"
#include "lib/Support/Files.h"

#include <limits>
#include <string>

#include <cstring>

using namespace tessera::runtime;

/// What a tessera_bundle is: the handle is a pointer to this, a tessera_kernel a pointer to a
/// Kernel.
static Bundle *unwrap(tessera_bundle *bundle) { return reinterpret_cast<Bundle *>(bundle); }
static const Bundle *unwrap(const tessera_bundle *bundle) {
  return reinterpret_cast<const Bundle *>(bundle);
}
static Kernel *unwrap(tessera_kernel *kernel) { return reinterpret_cast<Kernel *>(kernel); }
static const Kernel *unwrap(const tessera_kernel *kernel) {
  return reinterpret_cast<const Kernel *>(kernel);
}
static tessera_kernel *wrap(Kernel *kernel) { return reinterpret_cast<tessera_kernel *>(kernel); }

static std::string &getLastError() {
  thread_local std::string text;
  return text;
}

/// Keeps the error's text for tessera_last_error.
static tessera_runtime_status report(llvm::Error error) {
  tessera_runtime_status status = TESSERA_RUNTIME_SUCCESS;
  llvm::handleAllErrors(std::move(error), [&](const RuntimeError &failure) {
    status = failure.getStatus();
    getLastError() = failure.getText();
  });
  return status;
}

const char *tessera_last_error(void) { return getLastError().c_str(); }

static tessera_runtime_status loadBundle(llvm::StringRef text, tessera_bundle **result) {
  llvm::Expected<std::unique_ptr<Bundle>> bundle = Bundle::create(text);
  if (!bundle)
    return report(bundle.takeError());
  *result = reinterpret_cast<tessera_bundle *>(bundle->release());
  return TESSERA_RUNTIME_SUCCESS;
}

tessera_runtime_status tessera_bundle_load(const void *data, size_t size, tessera_bundle **bundle) {
  if (!data)
    size = 0;
  return loadBundle(llvm::StringRef(static_cast<const char *>(data), size), bundle);
}

tessera_runtime_status tessera_bundle_load_file(const char *path, tessera_bundle **bundle) {
  if (!path)
    return report(makeError(TESSERA_RUNTIME_INVALID_BUNDLE, "the path of the bundle is null"));
  auto buffer = tessera::readInput(path);
  if (!buffer)
    return report(makeError(TESSERA_RUNTIME_INVALID_BUNDLE, "cannot read the bundle '{0}': {1}",
                            path, buffer.getError().message()));
  tessera_runtime_status status = loadBundle((*buffer)->getBuffer(), bundle);
  if (status != TESSERA_RUNTIME_SUCCESS)
    getLastError().insert(0, std::string(path) + ": ");
  return status;
}

void tessera_bundle_destroy(tessera_bundle *bundle) { delete unwrap(bundle); }

size_t tessera_bundle_kernel_count(const tessera_bundle *bundle) {
  return unwrap(bundle)->getKernels().size();
}

tessera_runtime_status tessera_bundle_kernel_at(tessera_bundle *bundle, size_t index,
                                                tessera_kernel **kernel) {
  llvm::MutableArrayRef<Kernel> kernels = unwrap(bundle)->getKernels();
  if (index >= kernels.size())
    return report(makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                            "the bundle has {0} kernels; there is none at position {1}",
                            kernels.size(), index));
  *kernel = wrap(&kernels[index]);
  return TESSERA_RUNTIME_SUCCESS;
}

tessera_runtime_status tessera_kernel_get(tessera_bundle *bundle, const char *name,
                                          tessera_kernel **kernel) {
  llvm::MutableArrayRef<Kernel> kernels = unwrap(bundle)->getKernels();
  const BundleInfo &info = unwrap(bundle)->getInfo();
  // Sequences stand behind the kernels that they launch, and choices behind all that they choose.
  size_t count = !info.choices.empty()     ? info.choices.size()
                 : !info.sequences.empty() ? info.sequences.size()
                                           : kernels.size();
  if (!name && count == 1) {
    *kernel = wrap(&kernels.back());
    return TESSERA_RUNTIME_SUCCESS;
  }
  std::string names;
  for (Kernel &candidate : kernels) {
    const std::string &candidateName = candidate.getSignature().name;
    if (name && candidateName == name) {
      *kernel = wrap(&candidate);
      return TESSERA_RUNTIME_SUCCESS;
    }
    names += (names.empty() ? "'" : ", '") + candidateName + "'";
  }
  if (!name)
    return report(makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                            "the bundle has several kernels; name one of {0}", names));
  return report(makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                          "the bundle has no kernel '{0}'; it has {1}", name, names));
}

const char *tessera_kernel_name(const tessera_kernel *kernel) {
  return unwrap(kernel)->getSignature().name.c_str();
}

const char *tessera_kernel_description(const tessera_kernel *kernel) {
  return unwrap(kernel)->getSignature().description.c_str();
}

size_t tessera_kernel_alternative_count(const tessera_kernel *kernel) {
  const Chooser *chooser = unwrap(kernel)->getChooser();
  return chooser ? chooser->getInfo().alternatives.size() : 0;
}

tessera_runtime_status tessera_kernel_alternative(tessera_kernel *kernel, size_t position,
                                                  tessera_kernel **alternative) {
  size_t count = tessera_kernel_alternative_count(kernel);
  if (position >= count)
    return report(makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                            "'{0}' has {1} alternatives; there is none at position {2}",
                            tessera_kernel_name(kernel), count, position));
  *alternative = wrap(&unwrap(kernel)->getAlternative(position));
  return TESSERA_RUNTIME_SUCCESS;
}

tessera_runtime_status tessera_kernel_choice(tessera_kernel *kernel, const int64_t *extents,
                                             size_t count, size_t *position, double *microseconds) {
  Chooser *chooser = unwrap(kernel)->getChooser();
  const Signature &signature = unwrap(kernel)->getSignature();
  if (!chooser)
    return report(makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                            "'{0}' is no choice among kernels; compile with alternatives",
                            signature.name));
  if (count != signature.dims.size())
    return report(makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                            "choice '{0}' has {1} extents; {2} were given", signature.name,
                            signature.dims.size(), count));
  for (size_t i = 0; i < count; ++i)
    if (extents[i] < 0 || extents[i] > std::numeric_limits<int32_t>::max())
      return report(makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                              "choice '{0}': the extent '{1}' is {2}; an extent is at least 1 and "
                              "below 2^31",
                              signature.name, signature.dims[i], extents[i]));
  llvm::ArrayRef<int64_t> dims(extents, count);
  *position = chooser->choose(dims);
  for (size_t i = 0; microseconds && i < chooser->getInfo().alternatives.size(); ++i)
    microseconds[i] = chooser->predict(i, dims);
  return TESSERA_RUNTIME_SUCCESS;
}

tessera_runtime_status tessera_kernel_prepare(tessera_kernel *kernel, int device) {
  return report(unwrap(kernel)->prepare(device));
}

tessera_runtime_status tessera_kernel_capacity(tessera_kernel *kernel, int device,
                                               uint32_t *blocks) {
  return report(unwrap(kernel)->getCapacity(device).moveInto(*blocks));
}

static tessera_runtime_status refuseNullArguments(size_t count) {
  return report(makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                          "the launch has {0} arguments, and null for their address", count));
}

tessera_runtime_status tessera_kernel_launch(tessera_kernel *kernel, int device, void *stream,
                                             const tessera_argument *arguments, size_t count) {
  if (!arguments && count)
    return refuseNullArguments(count);
  return report(unwrap(kernel)->launch(device, stream, llvm::ArrayRef(arguments, count)));
}

tessera_runtime_status tessera_kernel_workspace_bytes(const tessera_kernel *kernel,
                                                      const tessera_argument *arguments,
                                                      size_t count, size_t *bytes) {
  if (!arguments && count)
    return refuseNullArguments(count);
  return report(
      unwrap(kernel)->getWorkspaceBytes(llvm::ArrayRef(arguments, count)).moveInto(*bytes));
}

tessera_runtime_status tessera_kernel_launch_with_workspace(tessera_kernel *kernel, int device,
                                                            void *stream,
                                                            const tessera_argument *arguments,
                                                            size_t count, uint64_t workspace,
                                                            size_t bytes) {
  if (!arguments && count)
    return refuseNullArguments(count);
  return report(unwrap(kernel)->launch(device, stream, llvm::ArrayRef(arguments, count),
                                       LentMemory{workspace, bytes}));
}

tessera_runtime_status tessera_kernel_read_timeline(tessera_kernel *kernel, int device,
                                                    void *stream, void *memory, size_t *size) {
  const KernelInfo *info = unwrap(kernel)->getKernelInfo();
  size_t bytes = info ? info->timelineBytes : 0;
  if (!memory && bytes) {
    *size = bytes;
    return TESSERA_RUNTIME_SUCCESS;
  }
  if (bytes && *size < bytes)
    return report(makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                            "the timeline has {0} bytes; there is room for {1}", bytes, *size));
  llvm::Expected<std::vector<char>> contents = unwrap(kernel)->readTimeline(device, stream);
  if (!contents)
    return report(contents.takeError());
  std::memcpy(memory, contents->data(), contents->size());
  *size = contents->size();
  return TESSERA_RUNTIME_SUCCESS;
}
