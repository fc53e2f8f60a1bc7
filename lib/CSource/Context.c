/* ---- What a context has ---- */

/* Workspaces of streams; of those that each thread has of its own, by thread. */
typedef struct Workspace {
  void *stream;
  const void *thread;
  uint64_t address, bytes;
  struct Workspace *next;
} Workspace;

/* The tensor maps of recent values of an argument, by position. */
enum { SLOTS = 64 };
typedef struct {
  int isUsed;
  uint64_t data;
  int64_t shape[5], strides[5];
  TensorMap maps[MOST_MAPS];
} Slot;

/* A kernel or a sequence in a context. */
typedef struct Place {
  unsigned long long id;
  const KernelInfo *kernel;
  int device;
  void *module, *function;
  unsigned capacity;
  Slot *slots[MOST_ARGUMENTS];
  Workspace *workspaces;
  struct Place *next;
} Place;

/* `lock` guards all but `idle`, the workspaces that ended graphs gave back: the driver gives them
   back while it holds locks of its own, so that nobody may call it with `idleLock`. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, idleLock = PTHREAD_MUTEX_INITIALIZER;
static Place *places;
static int isOpen;

typedef struct Idle {
  unsigned long long id;
  const KernelInfo *kernel;
  uint64_t address, bytes;
  struct Idle *next;
} Idle;
static Idle *idle;

static void fillConfig(const KernelInfo *kernel, LaunchConfig *config, LaunchAttribute *attributes,
                       const unsigned *grid, void *stream) {
  unsigned sizes[3];
  int i;
  memset(config, 0, sizeof(*config));
  memset(attributes, 0, 2 * sizeof(*attributes));
  for (i = 0; i < 3; ++i) {
    config->grid[i] = grid[i];
    config->block[i] = kernel->block[i];
    sizes[i] = kernel->cluster[i];
  }
  config->sharedMemory = kernel->sharedMemory;
  config->stream = stream;
  if (sizes[0] * sizes[1] * sizes[2] != 1) {
    attributes[config->attributeCount].id = 4; /* CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION */
    memcpy(attributes[config->attributeCount++].words, sizes, sizeof(sizes));
  }
  if (kernel->isPdl) {
    int allowed = 1;
    attributes[config->attributeCount].id =
        6; /* CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION */
    memcpy(attributes[config->attributeCount++].words, &allowed, sizeof(allowed));
  }
  config->attributes = config->attributeCount ? attributes : NULL;
}

static int checkDevice(Call call, int device) {
  int major = 0, minor = 0, memory = 0;
  char name[256] = "";
  if (check(call, cuda.cuDeviceGetAttribute(&major, 75, device), "cuDeviceGetAttribute") ||
      check(call, cuda.cuDeviceGetAttribute(&minor, 76, device), "cuDeviceGetAttribute") ||
      check(call, cuda.cuDeviceGetAttribute(&memory, 97, device), "cuDeviceGetAttribute") ||
      check(call, cuda.cuDeviceGetName(name, (int)sizeof(name), device), "cuDeviceGetName"))
    return TESSERA_DRIVER_ERROR;
  if (major != call.kernel->major || minor != call.kernel->minor)
    return fail(call, TESSERA_NO_DEVICE,
                "%s '%s' is compiled for compute capability %d.%d; device %d (%s) has %d.%d",
                call.kernel->kind, call.kernel->name, call.kernel->major, call.kernel->minor,
                device, name, major, minor);
  if (call.kernel->sharedMemory > (unsigned)memory)
    return fail(call, TESSERA_NO_DEVICE,
                "%s '%s' needs %u bytes of shared memory; a block on device %d has %d",
                call.kernel->kind, call.kernel->name, call.kernel->sharedMemory, device, memory);
  return 0;
}

/* The clusters of a persistent kernel that the device runs at a time. */
static int findCapacity(Call call, Place *place) {
  int multiprocessors = 0, clusters = 0;
  unsigned size = call.kernel->cluster[0], grid[3] = {1, 1, 1};
  LaunchConfig config;
  LaunchAttribute attributes[2];
  if (check(call, cuda.cuDeviceGetAttribute(&multiprocessors, 16, place->device),
            "cuDeviceGetAttribute"))
    return TESSERA_DRIVER_ERROR;
  place->capacity = (unsigned)multiprocessors * call.kernel->blocksPerMultiprocessor / size;
  if (size == 1)
    return 0;
  grid[0] = place->capacity * size;
  fillConfig(call.kernel, &config, attributes, grid, NULL);
  if (check(call, cuda.cuOccupancyMaxActiveClusters(&clusters, place->function, &config),
            "cuOccupancyMaxActiveClusters"))
    return TESSERA_DRIVER_ERROR;
  if ((unsigned)clusters < place->capacity)
    place->capacity = (unsigned)clusters;
  if (!place->capacity)
    return fail(call, TESSERA_NO_DEVICE, "%s '%s': no cluster of %u blocks fits on device %d",
                call.kernel->kind, call.kernel->name, size, place->device);
  return 0;
}

/* The module stays loaded to the end of the process: graphs may use it, and the code is part of the
 * program. */
static int loadPlace(Call call, Place *place) {
  const Place *other;
  int status, i;
  if (!call.kernel->symbol) /* A sequence has nothing but workspaces. */
    return 0;
  if ((status = checkDevice(call, place->device)) != 0)
    return status;
  for (other = places; other; other = other->next) /* An image is loaded once. */
    if (other->id == place->id && other->module && other->kernel->image == call.kernel->image)
      place->module = other->module;
  if ((!place->module &&
       check(call, cuda.cuModuleLoadDataEx(&place->module, call.kernel->image, 0, NULL, NULL),
             "cuModuleLoadDataEx")) ||
      check(call, cuda.cuModuleGetFunction(&place->function, place->module, call.kernel->symbol),
            "cuModuleGetFunction"))
    return TESSERA_DRIVER_ERROR;
  if (call.kernel->sharedMemory > 48 * 1024 &&
      check(call, cuda.cuFuncSetAttribute(place->function, 8, (int)call.kernel->sharedMemory),
            "cuFuncSetAttribute"))
    return TESSERA_DRIVER_ERROR;
  if (call.kernel->cluster[0] > 8 && /* CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED */
      check(call, cuda.cuFuncSetAttribute(place->function, 14, 1), "cuFuncSetAttribute"))
    return TESSERA_DRIVER_ERROR;
  for (i = 0; i < call.kernel->argumentCount; ++i)
    if (call.kernel->arguments[i].isView && !(place->slots[i] = calloc(SLOTS, sizeof(Slot))))
      return fail(call, TESSERA_DRIVER_ERROR, "%s '%s': out of memory", call.kernel->kind,
                  call.kernel->name);
  return call.kernel->isPersistent ? findCapacity(call, place) : 0;
}

/* What the current context has of the kernel, loaded where it has nothing yet. */
static int findPlace(Call call, void *context, int device, Place **found) {
  int mode = 2 /* CU_STREAM_CAPTURE_MODE_RELAXED */, status, i;
  unsigned long long id = 0;
  Place *place;
  if (check(call, cuda.cuCtxGetId(context, &id), "cuCtxGetId"))
    return TESSERA_DRIVER_ERROR;
  for (*found = places; *found; *found = (*found)->next)
    if ((*found)->id == id && (*found)->kernel == call.kernel)
      return 0;
  if (!(place = calloc(1, sizeof(Place))))
    return fail(call, TESSERA_DRIVER_ERROR, "%s '%s': out of memory", call.kernel->kind,
                call.kernel->name);
  place->id = id;
  place->kernel = call.kernel;
  place->device = device;
  status = check(call, cuda.cuThreadExchangeStreamCaptureMode(&mode),
                 "cuThreadExchangeStreamCaptureMode");
  if (!status) {
    status = loadPlace(call, place);
    cuda.cuThreadExchangeStreamCaptureMode(&mode);
  }
  if (status) {
    for (i = 0; i < MOST_ARGUMENTS; ++i)
      free(place->slots[i]);
    free(place);
    return status;
  }
  place->next = places;
  places = *found = place;
  return 0;
}

/* ---- Workspaces ---- */

/* What a launch needs: zeros for a kernel, anything for a sequence. */
typedef struct {
  uint64_t bytes;
  int isZeroed;
} Request;

static int zero(Call call, Request request, uint64_t address) {
  void *stream = NULL;
  int status;
  if ((status = check(call, cuda.cuStreamCreate(&stream, 1),
                      "cuStreamCreate to zero the workspace")) != 0)
    return status;
  status = check(call, cuda.cuMemsetD8Async(address, 0, request.bytes, stream), "cuMemsetD8Async");
  if (!status)
    status = check(call, cuda.cuStreamSynchronize(stream),
                   "cuStreamSynchronize after zeroing the workspace");
  cuda.cuStreamDestroy(stream);
  return status;
}

static int allocate(Call call, Request request, uint64_t *address) {
  int mode = 2, status;
  if (check(call, cuda.cuThreadExchangeStreamCaptureMode(&mode),
            "cuThreadExchangeStreamCaptureMode"))
    return TESSERA_DRIVER_ERROR;
  status = check(call, cuda.cuMemAlloc(address, request.bytes), "cuMemAlloc of the workspace");
  if (!status && request.isZeroed && (status = zero(call, request, *address)) != 0)
    cuda.cuMemFree(*address);
  cuda.cuThreadExchangeStreamCaptureMode(&mode);
  return status;
}

/* A byte of each thread, whose address is the thread's own as long as it lives. */
static pthread_key_t threadKey;
static pthread_once_t threadOnce = PTHREAD_ONCE_INIT;
static void createThreadKey(void) { pthread_key_create(&threadKey, NULL); }

/* Never given back, so that no later thread has the same. */
static const void *getThread(void) {
  void *mine;
  pthread_once(&threadOnce, createThreadKey);
  mine = pthread_getspecific(threadKey);
  if (!mine && (mine = malloc(1)) != NULL)
    pthread_setspecific(threadKey, mine);
  return mine;
}

/* Memory that has become too small stays: launches and graphs may still use it. */
static int resolveWorkspace(Call call, Place *place, void *stream, Request request,
                            uint64_t *address) {
  const void *thread = (uintptr_t)stream == 2 /* CU_STREAM_PER_THREAD */ ? getThread() : NULL;
  Workspace *found;
  int status;
  for (found = place->workspaces; found; found = found->next)
    if (found->stream == stream && found->thread == thread)
      break;
  if (found && found->bytes >= request.bytes) {
    *address = found->address;
    return 0;
  }
  if (found && request.bytes < found->bytes + found->bytes / 2)
    request.bytes = found->bytes + found->bytes / 2;
  if ((status = allocate(call, request, address)) != 0)
    return status;
  if (!found) {
    if (!(found = malloc(sizeof(Workspace)))) {
      cuda.cuMemFree(*address);
      return fail(call, TESSERA_DRIVER_ERROR, "%s '%s': out of memory", call.kernel->kind,
                  call.kernel->name);
    }
    found->stream = stream;
    found->thread = thread;
    found->next = place->workspaces;
    place->workspaces = found;
  }
  found->address = *address;
  found->bytes = request.bytes;
  return 0;
}

/* The driver calls this when a graph is gone. */
static void giveBack(void *value) {
  Idle *entry = value;
  pthread_mutex_lock(&idleLock);
  entry->next = idle;
  idle = entry;
  pthread_mutex_unlock(&idleLock);
}

static Idle *takeIdle(const Place *owner, uint64_t bytes) {
  Idle **place, *found;
  pthread_mutex_lock(&idleLock);
  for (place = &idle; *place && ((*place)->id != owner->id || (*place)->kernel != owner->kernel ||
                                 (*place)->bytes < bytes);
       place = &(*place)->next)
    ;
  found = *place;
  if (found)
    *place = found->next;
  pthread_mutex_unlock(&idleLock);
  return found;
}

/* A workspace of its own for a launch that `graph` captures, which gives it back. */
static int retainInGraph(Call call, const Place *place, void *graph, Request request,
                         uint64_t *address) {
  Idle *entry = takeIdle(place, request.bytes);
  void *object = NULL;
  int status;
  if (!entry) {
    if (!(entry = malloc(sizeof(Idle))))
      return fail(call, TESSERA_DRIVER_ERROR, "%s '%s': out of memory", call.kernel->kind,
                  call.kernel->name);
    entry->id = place->id;
    entry->kernel = place->kernel;
    entry->bytes = request.bytes;
    if ((status = allocate(call, request, &entry->address)) != 0) {
      free(entry);
      return status;
    }
  }
  *address = entry->address;
  if (check(call, cuda.cuUserObjectCreate(&object, entry, giveBack, 1, 1), "cuUserObjectCreate")) {
    giveBack(entry);
    return TESSERA_DRIVER_ERROR;
  }
  if (!check(call, cuda.cuGraphRetainUserObject(graph, object, 1, 1), "cuGraphRetainUserObject"))
    return 0;
  cuda.cuUserObjectRelease(object, 1);
  return TESSERA_DRIVER_ERROR;
}

static int findWorkspace(Call call, Place *place, void *stream, Request request,
                         uint64_t *address) {
  int isCapturing = 0;
  void *graph = NULL;
  *address = 0;
  if (!request.bytes)
    return 0;
  if (check(call, cuda.cuStreamGetCaptureInfo(stream, &isCapturing, NULL, &graph, NULL, NULL),
            "cuStreamGetCaptureInfo"))
    return TESSERA_DRIVER_ERROR;
  return isCapturing == 1 ? retainInGraph(call, place, graph, request, address)
                          : resolveWorkspace(call, place, stream, request, address);
}
