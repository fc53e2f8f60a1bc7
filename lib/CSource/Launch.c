/* ---- Launches ---- */

/* Refuses host memory and other devices' memory, on which the kernel would fault. */
static int checkAddress(Call call, const ArgumentInfo *info, uint64_t address, int device) {
  unsigned memory = 0;
  int owner = -1;
  if (cuda.cuPointerGetAttribute(&memory, 2, address))
    return fail(call, TESSERA_INVALID_ARGUMENT,
                ARGUMENT "the address is not memory that CUDA knows", call.kernel->kind,
                call.kernel->name, info->name);
  if (memory != 2) /* CU_MEMORYTYPE_DEVICE; others are pinned, which devices reach */
    return 0;
  if (check(call, cuda.cuPointerGetAttribute(&owner, 9, address), "cuPointerGetAttribute"))
    return TESSERA_DRIVER_ERROR;
  if (owner == device)
    return 0;
  return fail(call, TESSERA_INVALID_ARGUMENT,
              "%s '%s': argument '%s' lies on device %d; the launch is on device %d",
              call.kernel->kind, call.kernel->name, info->name, owner, device);
}

/* How much L2 fetches for what is read (CUtensorMapL2promotion): with 256 bytes memory is read
 * slower. */
enum { PROMOTE_128_BYTES = 2 };

static int encodeMap(Call call, const MapInfo *map, int64_t elementBytes,
                     const tessera_tensor *view, const int64_t *dims, TensorMap *encoded) {
  static const uint32_t ones[5] = {1, 1, 1, 1, 1};
  uint64_t extents[5], strides[5];
  void *address;
  uint32_t i;
  uintptr_t number = (uintptr_t)view->data;
  for (i = 0; i < map->rank; ++i) {
    const MapDim *dim = &map->dims[i];
    extents[i] = (uint64_t)evaluate(dim->extent, dims);
    if (i == 0)
      continue;
    if (dim->strideOfDim < 0)
      strides[i - 1] = dim->strideBytes;
    else if (view->shape[dim->strideOfDim] > 1)
      strides[i - 1] = (uint64_t)(view->strides[dim->strideOfDim] * elementBytes);
    else /* never used, but the driver wants a multiple of 16 */
      strides[i - 1] = (extents[0] * (uint64_t)elementBytes + 15) / 16 * 16;
    if (dim->wraps) /* 2^30 of them lead back by as many strides */
      strides[i - 1] = (UINT64_C(1) << 34) - strides[i - 1];
  }
  memcpy(&address, &number, sizeof(address));
  return check(call,
               cuda.cuTensorMapEncodeTiled(encoded, map->type, map->rank, address, extents, strides,
                                           map->box, ones, 0, map->swizzle, PROMOTE_128_BYTES, 0),
               "cuTensorMapEncodeTiled");
}

static uint64_t hash(const ArgumentInfo *info, const tessera_tensor *view) {
  uint64_t value = view->data * UINT64_C(0x9E3779B97F4A7C15);
  int i;
  for (i = 0; i < info->rank; ++i)
    value = (value ^ (uint64_t)view->shape[i] ^ ((uint64_t)view->strides[i] << 20)) *
            UINT64_C(0x9E3779B97F4A7C15);
  return value >> 32;
}

/* The slot of an argument that holds these values, filled where it does not. */
static int resolveArgument(Call call, Place *place, int index, const tessera_tensor *view,
                           const int64_t *dims, Slot **found) {
  const ArgumentInfo *info = &call.kernel->arguments[index];
  size_t bytes = (size_t)info->rank * sizeof(int64_t);
  Slot *slot = &place->slots[index][hash(info, view) % SLOTS];
  union {
    TensorMap map;
    char bytes[sizeof(TensorMap) + 64];
  } storage;
  TensorMap *aligned;
  int status = 0, i;
  *found = slot;
  if (slot->isUsed && slot->data == view->data && !memcmp(slot->shape, view->shape, bytes) &&
      !memcmp(slot->strides, view->strides, bytes))
    return 0;
  if ((status = checkAddress(call, info, view->data, place->device)) != 0)
    return status;
  aligned = (TensorMap *)(void *)(storage.bytes + (64 - (uintptr_t)storage.bytes % 64) % 64);
  slot->isUsed = 0;
  for (i = 0; i < info->mapCount; ++i) {
    if ((status = encodeMap(call, &call.kernel->maps[info->firstMap + i], info->elementBytes, view,
                            dims, aligned)) != 0)
      return status;
    memcpy(&slot->maps[i], aligned, sizeof(TensorMap));
  }
  slot->data = view->data;
  memcpy(slot->shape, view->shape, bytes);
  memcpy(slot->strides, view->strides, bytes);
  slot->isUsed = 1;
  return 0;
}

/* The memory that a stream has for launches of these extents. */
static int countWorkspaceBytes(Call call, const int64_t *dims, uint64_t *bytes) {
  uint64_t tickets = 0, tiles = 0;
  int i;
  for (i = 0; i < call.kernel->ticketDimCount; ++i) {
    const TicketDim *dim = &call.kernel->tickets[i];
    uint64_t along = (uint64_t)((evaluate(dim->extent, dims) + dim->divisor - 1) / dim->divisor);
    if (dim->isFirst) {
      tickets += tiles;
      tiles = 1;
    }
    tiles *= along;
    if (tickets + tiles > INT32_MAX)
      return fail(call, TESSERA_INVALID_ARGUMENT,
                  "kernel '%s': the tiles that it adds to in a fixed order are 2^31 or more: split "
                  "the call",
                  call.kernel->name);
  }
  *bytes = call.kernel->workspaceBytes + 4 * (tickets + tiles);
  return 0;
}

static int fillParameters(Call call, Place *place, void *stream, const Value *values,
                          const int64_t *dims, char *block, void **pointers) {
  Request request;
  Slot *slots[MOST_ARGUMENTS] = {NULL};
  uint64_t workspace = 0;
  int i, status;
  for (i = 0; i < call.kernel->argumentCount; ++i)
    if (call.kernel->arguments[i].isView &&
        (status = resolveArgument(call, place, i, values[i].view, dims, &slots[i])) != 0)
      return status;
  request.isZeroed = 1;
  if ((status = countWorkspaceBytes(call, dims, &request.bytes)) != 0 ||
      (status = findWorkspace(call, place, stream, request, &workspace)) != 0)
    return status;
  for (i = 0; i < call.kernel->parameterCount; ++i) {
    const ParameterInfo *parameter = &call.kernel->parameters[i];
    const tessera_tensor *view = parameter->argument < 0 ? NULL : values[parameter->argument].view;
    int64_t number = 0;
    int32_t narrow;
    const void *from = &number;
    switch (parameter->kind) {
    case TENSOR_MAP:
      from = &slots[parameter->argument]
                  ->maps[parameter->index - call.kernel->arguments[parameter->argument].firstMap];
      break;
    case POINTER:
      from = &view->data;
      break;
    case DIM:
      number = dims[parameter->index];
      break;
    case STRIDE: /* that of a dimension of extent 1 was not checked, and no address depends on it */
      number = view->shape[parameter->index] > 1 ? view->strides[parameter->index] : 0;
      if (parameter->bytes == 4 && number > INT32_MAX)
        return fail(call, TESSERA_INVALID_ARGUMENT,
                    ARGUMENT "dimension %d has stride %" PRId64 "; 32 bits are taken",
                    call.kernel->kind, call.kernel->name,
                    call.kernel->arguments[parameter->argument].name, parameter->index, number);
      break;
    case SCALAR:
      from = values[parameter->argument].scalar;
      break;
    case WORKSPACE:
      number = (int64_t)(workspace + parameter->workspaceOffset);
      break;
    }
    narrow = (int32_t)number;
    if (from == &number && parameter->bytes == 4)
      from = &narrow;
    pointers[i] = block + parameter->offset;
    memcpy(pointers[i], from, parameter->bytes);
  }
  return 0;
}

/* A launch of a kernel: checked, then prepared in a context, then queued. */
typedef struct {
  const KernelInfo *kernel;
  Value values[MOST_ARGUMENTS];
  int64_t dims[MOST_DIMS];
  unsigned grid[3]; /* all 0 where there is nothing to do */
  Place *place;
  void *pointers[PARAMETER_COUNT];
  char storage[PARAMETER_BYTES + 64];
} Launch;

static int checkLaunch(Call call, Launch *launch) {
  int status = checkArguments(call, launch->values, launch->dims);
  return status ? status : computeGrid(call, launch->dims, launch->grid);
}

/* With the lock. */
static int prepareLaunch(Call call, Launch *launch, void *context, int device, void *stream) {
  char *block = launch->storage + (64 - (uintptr_t)launch->storage % 64) % 64;
  int status = findPlace(call, context, device, &launch->place);
  return status ? status
                : fillParameters(call, launch->place, stream, launch->values, launch->dims, block,
                                 launch->pointers);
}

static int queueLaunch(Call call, Launch *launch, void *stream) {
  LaunchConfig config;
  LaunchAttribute attributes[2];
  unsigned *grid = launch->grid;
  if (launch->kernel->isPersistent)
    grid[0] = (grid[0] < launch->place->capacity ? grid[0] : launch->place->capacity) *
              launch->kernel->cluster[0];
  fillConfig(launch->kernel, &config, attributes, grid, stream);
  return check(call,
               cuda.cuLaunchKernelEx(&config, launch->place->function, launch->pointers, NULL),
               "cuLaunchKernelEx");
}

/* What is done in a context that is current. */
typedef int Work(Call call, void *data, void *context, int device, void *stream);

/* The primary context of a device, which belongs to the application as well and is never released.
 * With the lock. */
static int retainContext(Call call, int ordinal, void **context) {
  static void **contexts;
  int count = 0, device = 0;
  if (check(call, cuda.cuDeviceGetCount(&count), "cuDeviceGetCount"))
    return TESSERA_DRIVER_ERROR;
  if (ordinal >= count)
    return fail(call, TESSERA_NO_DEVICE, "there is no CUDA device %d; this machine has %d", ordinal,
                count);
  if (!contexts && !(contexts = calloc((size_t)count, sizeof(void *))))
    return fail(call, TESSERA_DRIVER_ERROR, "%s '%s': out of memory", call.kernel->kind,
                call.kernel->name);
  if (!contexts[ordinal] && (check(call, cuda.cuDeviceGet(&device, ordinal), "cuDeviceGet") ||
                             check(call, cuda.cuDevicePrimaryCtxRetain(&contexts[ordinal], device),
                                   "cuDevicePrimaryCtxRetain")))
    return TESSERA_DRIVER_ERROR;
  *context = contexts[ordinal];
  return 0;
}

static int enter(Call call, int wanted, void *stream, Work *work, void *data) {
  void *context = NULL, *popped = NULL;
  int device = -1, status = 0;
  pthread_mutex_lock(&lock);
  if (!isOpen && !(status = openDriver(call)))
    isOpen = 1;
  pthread_mutex_unlock(&lock);
  if (status)
    return status;
  if (check(call, cuda.cuCtxGetCurrent(&context), "cuCtxGetCurrent") ||
      (context && check(call, cuda.cuCtxGetDevice(&device), "cuCtxGetDevice")))
    return TESSERA_DRIVER_ERROR;
  if (wanted < 0 || device == wanted)
    return context ? work(call, data, context, device, stream)
                   : fail(call, TESSERA_NO_DEVICE,
                          "no CUDA context is current on this thread; name a device instead");
  pthread_mutex_lock(&lock);
  status = retainContext(call, wanted, &context);
  pthread_mutex_unlock(&lock);
  if (status)
    return status;
  if (check(call, cuda.cuCtxPushCurrent(context), "cuCtxPushCurrent"))
    return TESSERA_DRIVER_ERROR;
  status = work(call, data, context, wanted, stream);
  cuda.cuCtxPopCurrent(&popped);
  return status;
}

static Call makeCall(const KernelInfo *kernel, char *text, size_t size) {
  Call call;
  call.kernel = kernel;
  call.text = text;
  call.size = size;
  return call;
}
