//===- XlaFfi.h - XLA's foreign function interface --------------*- C++ -*-===//
//
// The part of XLA's C interface for custom calls (xla/ffi/api/c_api.h, versions 0.1 to 0.4) that a
// handler meets. Each struct that XLA fills begins with its size, so that a later version may
// append to it; of the table of functions only the beginning is declared.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_CAPI_XLAFFI_H
#define TESSERA_CAPI_XLAFFI_H

#include <cstddef>
#include <cstdint>

namespace tessera::xla {

struct Error;
struct Context;

struct Extension {
  size_t structSize;
  int32_t type;
  Extension *next;
};
constexpr int32_t kMetadataExtension = 1;

struct Version {
  size_t structSize;
  Extension *extensions;
  int32_t majorVersion, minorVersion;
};

struct Metadata {
  size_t structSize;
  Version version;
  uint32_t traits;
};
constexpr uint32_t kCommandBufferCompatible = 1;

struct MetadataExtension {
  Extension base;
  Metadata *metadata;
};

/// Of PrimitiveType, which lib/Support/ElementTypes.h has of arguments.
enum class ElementType : int32_t { Pred = 1, S8 = 2, S32 = 4, U8 = 6, F32 = 11 };

struct Buffer {
  size_t structSize;
  Extension *extensions;
  ElementType type;
  void *data;
  int64_t rank;
  int64_t *dims; ///< the tensor is dense, the last dimension innermost
};

struct Text {
  const char *data;
  size_t size;
};

struct Scalar {
  ElementType type;
  void *value;
};

struct Array {
  ElementType type;
  size_t size;
  void *data;
};

/// Arguments and results.
struct Buffers {
  size_t structSize;
  Extension *extensions;
  int64_t size;
  int32_t *kinds; ///< all of kBufferKind
  void **values;
};
constexpr int32_t kBufferKind = 1;

struct Attributes {
  size_t structSize;
  Extension *extensions;
  int64_t size;
  int32_t *kinds;
  Text **names;
  void **values;
};
constexpr int32_t kArrayKind = 1, kScalarKind = 3, kTextKind = 4;

enum class ErrorCode : int32_t { InvalidArgument = 3, NotFound = 5, Internal = 13 };

struct MakeError {
  size_t structSize;
  Extension *extensions;
  const char *message;
  ErrorCode code;
};

struct DestroyError {
  size_t structSize;
  Extension *extensions;
  Error *error;
};

struct GetStream {
  size_t structSize;
  Extension *extensions;
  Context *context;
  void *stream; ///< a CUstream
};

/// Of device memory, in the order of the call's stream.
struct Allocate {
  size_t structSize;
  Extension *extensions;
  Context *context;
  size_t size, alignment;
  void *data;
};

struct Release {
  size_t structSize;
  Extension *extensions;
  Context *context;
  size_t size;
  void *data;
};

struct Api {
  size_t structSize;
  Extension *extensions;
  Version version;
  const void *internal;
  Error *(*makeError)(MakeError *);
  void (*getMessage)(void *);
  void (*destroyError)(DestroyError *);
  Error *(*registerHandler)(void *);
  Error *(*getStream)(GetStream *);
  Error *(*registerType)(void *);
  Error *(*getExecutionContext)(void *);
  Error *(*setState)(void *);
  Error *(*getState)(void *);
  Error *(*allocate)(Allocate *);
  Error *(*release)(Release *);
};

enum class Stage : int32_t { Instantiate, Prepare, Initialize, Execute };

struct CallFrame {
  size_t structSize;
  Extension *extensions;
  const Api *api;
  Context *context;
  Stage stage;
  Buffers arguments;
  Buffers results;
  Attributes attributes;
};

} // namespace tessera::xla

#endif // TESSERA_CAPI_XLAFFI_H
