/* ---- The launcher, the same for every kernel. The tables of this one are at the end. ---- */

typedef struct {
  int dim; /* of the dimensions of a kernel or a sequence; -1 for a constant */
  int64_t constant;
} Extent;

typedef struct {
  const char *name;
  int isView, isWritten;
  int64_t elementBytes, alignment;
  int rank;
  Extent dims[5];
  int firstMap, mapCount;
  int isBounded; /* a float that is finite and above this: */
  double above;
} ArgumentInfo;

typedef struct {
  Extent extent;
  int strideOfDim; /* of the argument; -1 for strideBytes */
  uint64_t strideBytes;
  int wraps; /* its stride is 2^34 less that */
} MapDim;

typedef struct {
  int type, swizzle;
  uint32_t rank;
  MapDim dims[5]; /* innermost first */
  uint32_t box[5];
} MapInfo;

typedef enum { TENSOR_MAP, POINTER, DIM, STRIDE, SCALAR, WORKSPACE } ParameterKind;

typedef struct {
  ParameterKind kind;
  int argument, index; /* the index of a map or a dimension */
  uint64_t workspaceOffset;
  unsigned bytes, offset;
} ParameterInfo;

/* The tiles along a dimension of a view whose tiles have tickets, of 4 bytes each. */
typedef struct {
  Extent extent;
  int64_t divisor;
  int isFirst; /* of the view */
} TicketDim;

/* `factor` times the extent of `divisor` divides that of `dividend`; without one (-1) `factor`
 * does. */
typedef struct {
  int divisor, dividend;
  int64_t factor;
} Requirement;

typedef struct {
  int dim;
  int64_t most;
} Bound;

/* A kernel; or a sequence of some, of which all behind the bounds is 0. */
typedef struct {
  const char *kind, *name, *symbol;
  const ArgumentInfo *arguments;
  int argumentCount;
  const char *const *dims;
  int dimCount;
  const Requirement *requirements;
  int requirementCount;
  const Bound *bounds;
  int boundCount;
  const MapInfo *maps;
  const ParameterInfo *parameters;
  int parameterCount;
  uint64_t workspaceBytes; /* without the tickets, which lie behind the rest */
  const TicketDim *tickets;
  int ticketDimCount;
  Extent gridExtents[3];
  int64_t gridDivisors[3];
  int isPersistent, isFlat, isPdl;
  unsigned blocksPerMultiprocessor, block[3], cluster[3], sharedMemory;
  int major, minor; /* the compute capability */
  const unsigned char *image;
} KernelInfo;

static const KernelInfo kernels[KERNEL_COUNT];

/* A value of an argument: a view or the bytes of a scalar. */
typedef struct {
  const tessera_tensor *view;
  const void *scalar;
} Value;

/* A launch: of which kernel, and where the reason goes why it fails. */
typedef struct {
  const KernelInfo *kernel;
  char *text;
  size_t size;
} Call;

static int fail(Call call, int status, const char *format, ...) {
  va_list arguments;
  if (!call.text || !call.size)
    return status;
  va_start(arguments, format);
  vsnprintf(call.text, call.size, format, arguments);
  va_end(arguments);
  return status;
}

/* ---- The driver ---- */

typedef struct {
  uint64_t words[16];
} TensorMap; /* CUtensorMap, which the driver wants on a 64-byte boundary */

typedef struct {
  int id;
  char padding[4];
  uint64_t words[8];
} LaunchAttribute; /* CUlaunchAttribute */

typedef struct {
  unsigned grid[3], block[3], sharedMemory;
  void *stream;
  LaunchAttribute *attributes;
  unsigned attributeCount;
} LaunchConfig; /* CUlaunchConfig */

#define DRIVER_FUNCTIONS(X)                                                                        \
  X(cuInit, (unsigned flags))                                                                      \
  X(cuGetErrorName, (int error, const char **name))                                                \
  X(cuGetErrorString, (int error, const char **text))                                              \
  X(cuDeviceGetCount, (int *count))                                                                \
  X(cuDeviceGet, (int *device, int ordinal))                                                       \
  X(cuDeviceGetName, (char *name, int size, int device))                                           \
  X(cuDeviceGetAttribute, (int *value, int attribute, int device))                                 \
  X(cuDevicePrimaryCtxRetain, (void **context, int device))                                        \
  X(cuCtxGetCurrent, (void **context))                                                             \
  X(cuCtxGetDevice, (int *device))                                                                 \
  X(cuCtxGetId, (void *context, unsigned long long *id))                                           \
  X(cuCtxPushCurrent, (void *context))                                                             \
  X(cuCtxPopCurrent, (void **context))                                                             \
  X(cuModuleLoadDataEx,                                                                            \
    (void **module, const void *image, unsigned count, int *options, void **values))               \
  X(cuModuleGetFunction, (void **function, void *module, const char *name))                        \
  X(cuFuncSetAttribute, (void *function, int attribute, int value))                                \
  X(cuOccupancyMaxActiveClusters, (int *clusters, void *function, const LaunchConfig *config))     \
  X(cuStreamCreate, (void **stream, unsigned flags))                                               \
  X(cuStreamDestroy, (void *stream))                                                               \
  X(cuStreamSynchronize, (void *stream))                                                           \
  X(cuStreamGetCaptureInfo, (void *stream, int *status, uint64_t *id, void **graph,                \
                             const void **dependencies, size_t *count))                            \
  X(cuThreadExchangeStreamCaptureMode, (int *mode))                                                \
  X(cuUserObjectCreate,                                                                            \
    (void **object, void *value, void (*destroy)(void *), unsigned references, unsigned flags))    \
  X(cuUserObjectRelease, (void *object, unsigned references))                                      \
  X(cuGraphRetainUserObject, (void *graph, void *object, unsigned references, unsigned flags))     \
  X(cuPointerGetAttribute, (void *data, int attribute, uint64_t pointer))                          \
  X(cuTensorMapEncodeTiled,                                                                        \
    (TensorMap * map, int type, uint32_t rank, void *address, const uint64_t *dims,                \
     const uint64_t *strides, const uint32_t *box, const uint32_t *elementStrides, int interleave, \
     int swizzle, int promotion, int fill))                                                        \
  X(cuLaunchKernelEx,                                                                              \
    (const LaunchConfig *config, void *function, void **parameters, void **extra))                 \
  X(cuMemAlloc, (uint64_t *pointer, size_t bytes))                                                 \
  X(cuMemFree, (uint64_t pointer))                                                                 \
  X(cuMemsetD8Async, (uint64_t to, unsigned char value, size_t bytes, void *stream))

#define DECLARE_MEMBER(NAME, PARAMETERS) int(*NAME) PARAMETERS;
static struct {
  DRIVER_FUNCTIONS(DECLARE_MEMBER)
} cuda;

static int check(Call call, int result, const char *what) {
  const char *name = NULL, *text = NULL;
  if (!result)
    return 0;
  if (cuda.cuGetErrorName(result, &name) || !name)
    name = "error";
  if (cuda.cuGetErrorString(result, &text) || !text)
    text = "unknown";
  return fail(call, TESSERA_DRIVER_ERROR, "%s '%s': %s: %s (%s)", call.kernel->kind,
              call.kernel->name, what, name, text);
}

typedef int GetProcAddress(const char *name, void **function, int version, uint64_t flags,
                           int *status);

/* ISO C converts no pointer to an object to one to a function; POSIX gives both one form. */
static int lookUp(Call call, GetProcAddress *get, const char *name, void *place) {
  void *function = NULL;
  int status = 0;
  if (get(name, &function, 12000, 0, &status) || !function)
    return fail(call, TESSERA_NO_DEVICE,
                "the CUDA driver has no %s of CUDA 12.0; one of release 525 or newer does", name);
  memcpy(place, &function, sizeof(function));
  return 0;
}

static int openDriver(Call call) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *found;
  GetProcAddress *get;
  int status;
  if (!library)
    return fail(call, TESSERA_NO_DEVICE, "cannot open the CUDA driver: %s", dlerror());
  found = dlsym(library, "cuGetProcAddress_v2");
  if (!found)
    return fail(call, TESSERA_NO_DEVICE,
                "the CUDA driver is older than CUDA 12.0; one of release 525 or newer works");
  memcpy(&get, &found, sizeof(get));
#define LOOK_UP(NAME, PARAMETERS)                                                                  \
  if ((status = lookUp(call, get, #NAME, &cuda.NAME)) != 0)                                        \
    return status;
  DRIVER_FUNCTIONS(LOOK_UP)
  return check(call, cuda.cuInit(0), "cuInit") ? TESSERA_NO_DEVICE : 0;
}
