/* ---- What a context has ---- */

/* Workspaces of streams; of those that each thread has of its own, by thread. */
typedef struct Workspace {
  void *stream;
  const void *thread;
  uint64_t address;
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

typedef struct Place {
  unsigned long long id;
  int device;
  void *function;
  unsigned capacity;
  Slot *slots[ARGUMENT_COUNT];
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
  uint64_t address;
  struct Idle *next;
} Idle;
static Idle *idle;

static void fillConfig(LaunchConfig *config, LaunchAttribute *attributes, const unsigned *grid,
                       void *stream) {
  unsigned sizes[3];
  int i;
  memset(config, 0, sizeof(*config));
  memset(attributes, 0, 2 * sizeof(*attributes));
  for (i = 0; i < 3; ++i) {
    config->grid[i] = grid[i];
    config->block[i] = kernel.block[i];
    sizes[i] = kernel.cluster[i];
  }
  config->sharedMemory = kernel.sharedMemory;
  config->stream = stream;
  if (sizes[0] * sizes[1] * sizes[2] != 1) {
    attributes[config->attributeCount].id = 4; /* CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION */
    memcpy(attributes[config->attributeCount++].words, sizes, sizeof(sizes));
  }
  if (kernel.isPdl) {
    int allowed = 1;
    attributes[config->attributeCount].id =
        6; /* CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION */
    memcpy(attributes[config->attributeCount++].words, &allowed, sizeof(allowed));
  }
  config->attributes = config->attributeCount ? attributes : NULL;
}

static int checkDevice(ErrorText error, int device) {
  int major = 0, minor = 0, memory = 0;
  char name[256] = "";
  if (check(error, cuda.cuDeviceGetAttribute(&major, 75, device), "cuDeviceGetAttribute") ||
      check(error, cuda.cuDeviceGetAttribute(&minor, 76, device), "cuDeviceGetAttribute") ||
      check(error, cuda.cuDeviceGetAttribute(&memory, 97, device), "cuDeviceGetAttribute") ||
      check(error, cuda.cuDeviceGetName(name, (int)sizeof(name), device), "cuDeviceGetName"))
    return TESSERA_DRIVER_ERROR;
  if (major != kernel.major || minor != kernel.minor)
    return fail(error, TESSERA_NO_DEVICE,
                "kernel '%s' is compiled for compute capability %d.%d; device %d (%s) has %d.%d",
                kernel.name, kernel.major, kernel.minor, device, name, major, minor);
  if (kernel.sharedMemory > (unsigned)memory)
    return fail(error, TESSERA_NO_DEVICE,
                "kernel '%s' needs %u bytes of shared memory; a block on device %d has %d",
                kernel.name, kernel.sharedMemory, device, memory);
  return 0;
}

/* The clusters of a persistent kernel that the device runs at a time. */
static int findCapacity(ErrorText error, Place *place) {
  int multiprocessors = 0, clusters = 0;
  unsigned size = kernel.cluster[0], grid[3] = {1, 1, 1};
  LaunchConfig config;
  LaunchAttribute attributes[2];
  if (check(error, cuda.cuDeviceGetAttribute(&multiprocessors, 16, place->device),
            "cuDeviceGetAttribute"))
    return TESSERA_DRIVER_ERROR;
  place->capacity = (unsigned)multiprocessors / size;
  if (size == 1)
    return 0;
  grid[0] = place->capacity * size;
  fillConfig(&config, attributes, grid, NULL);
  if (check(error, cuda.cuOccupancyMaxActiveClusters(&clusters, place->function, &config),
            "cuOccupancyMaxActiveClusters"))
    return TESSERA_DRIVER_ERROR;
  if ((unsigned)clusters < place->capacity)
    place->capacity = (unsigned)clusters;
  if (!place->capacity)
    return fail(error, TESSERA_NO_DEVICE, "kernel '%s': no cluster of %u blocks fits on device %d",
                kernel.name, size, place->device);
  return 0;
}

/* The module stays loaded to the end of the process: graphs may use it, and the code is part of the
 * program. */
static int loadPlace(ErrorText error, Place *place) {
  void *module = NULL;
  int status = checkDevice(error, place->device), i;
  if (status)
    return status;
  if (check(error, cuda.cuModuleLoadDataEx(&module, kernel.image, 0, NULL, NULL),
            "cuModuleLoadDataEx") ||
      check(error, cuda.cuModuleGetFunction(&place->function, module, kernel.symbol),
            "cuModuleGetFunction"))
    return TESSERA_DRIVER_ERROR;
  if (kernel.sharedMemory > 48 * 1024 &&
      check(error, cuda.cuFuncSetAttribute(place->function, 8, (int)kernel.sharedMemory),
            "cuFuncSetAttribute"))
    return TESSERA_DRIVER_ERROR;
  for (i = 0; i < ARGUMENT_COUNT; ++i)
    if (kernel.arguments[i].isView && !(place->slots[i] = calloc(SLOTS, sizeof(Slot))))
      return fail(error, TESSERA_DRIVER_ERROR, "kernel '%s': out of memory", kernel.name);
  return kernel.isPersistent ? findCapacity(error, place) : 0;
}

/* What the current context has, loaded where it has nothing yet. */
static int findPlace(ErrorText error, void *context, int device, Place **found) {
  int mode = 2 /* CU_STREAM_CAPTURE_MODE_RELAXED */, status, i;
  unsigned long long id = 0;
  Place *place;
  if (check(error, cuda.cuCtxGetId(context, &id), "cuCtxGetId"))
    return TESSERA_DRIVER_ERROR;
  for (*found = places; *found; *found = (*found)->next)
    if ((*found)->id == id)
      return 0;
  if (!(place = calloc(1, sizeof(Place))))
    return fail(error, TESSERA_DRIVER_ERROR, "kernel '%s': out of memory", kernel.name);
  place->id = id;
  place->device = device;
  status = check(error, cuda.cuThreadExchangeStreamCaptureMode(&mode),
                 "cuThreadExchangeStreamCaptureMode");
  if (!status) {
    status = loadPlace(error, place);
    cuda.cuThreadExchangeStreamCaptureMode(&mode);
  }
  if (status) {
    for (i = 0; i < ARGUMENT_COUNT; ++i)
      free(place->slots[i]);
    free(place);
    return status;
  }
  place->next = places;
  places = *found = place;
  return 0;
}

/* ---- Workspaces ---- */

static int allocateZeros(ErrorText error, uint64_t *address) {
  void *stream = NULL;
  int mode = 2, status;
  if (check(error, cuda.cuThreadExchangeStreamCaptureMode(&mode),
            "cuThreadExchangeStreamCaptureMode"))
    return TESSERA_DRIVER_ERROR;
  status =
      check(error, cuda.cuMemAlloc(address, kernel.workspaceBytes), "cuMemAlloc of the workspace");
  if (!status) {
    status = check(error, cuda.cuStreamCreate(&stream, 1), "cuStreamCreate to zero the workspace");
    if (!status) {
      status = check(error, cuda.cuMemsetD8Async(*address, 0, kernel.workspaceBytes, stream),
                     "cuMemsetD8Async");
      if (!status)
        status = check(error, cuda.cuStreamSynchronize(stream),
                       "cuStreamSynchronize after zeroing the workspace");
      cuda.cuStreamDestroy(stream);
    }
    if (status)
      cuda.cuMemFree(*address);
  }
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

static int resolveWorkspace(ErrorText error, Place *place, void *stream, uint64_t *address) {
  const void *thread = (uintptr_t)stream == 2 /* CU_STREAM_PER_THREAD */ ? getThread() : NULL;
  Workspace *found;
  int status;
  for (found = place->workspaces; found; found = found->next)
    if (found->stream == stream && found->thread == thread) {
      *address = found->address;
      return 0;
    }
  if ((status = allocateZeros(error, address)) != 0)
    return status;
  if (!(found = malloc(sizeof(Workspace)))) {
    cuda.cuMemFree(*address);
    return fail(error, TESSERA_DRIVER_ERROR, "kernel '%s': out of memory", kernel.name);
  }
  found->stream = stream;
  found->thread = thread;
  found->address = *address;
  found->next = place->workspaces;
  place->workspaces = found;
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

static Idle *takeIdle(unsigned long long id) {
  Idle **place, *found;
  pthread_mutex_lock(&idleLock);
  for (place = &idle; *place && (*place)->id != id; place = &(*place)->next)
    ;
  found = *place;
  if (found)
    *place = found->next;
  pthread_mutex_unlock(&idleLock);
  return found;
}

/* A workspace of its own for a launch that `graph` captures, which gives it back. */
static int retainInGraph(ErrorText error, const Place *place, void *graph, uint64_t *address) {
  Idle *entry = takeIdle(place->id);
  void *object = NULL;
  int status;
  if (!entry) {
    if (!(entry = malloc(sizeof(Idle))))
      return fail(error, TESSERA_DRIVER_ERROR, "kernel '%s': out of memory", kernel.name);
    entry->id = place->id;
    if ((status = allocateZeros(error, &entry->address)) != 0) {
      free(entry);
      return status;
    }
  }
  *address = entry->address;
  if (check(error, cuda.cuUserObjectCreate(&object, entry, giveBack, 1, 1), "cuUserObjectCreate")) {
    giveBack(entry);
    return TESSERA_DRIVER_ERROR;
  }
  if (!check(error, cuda.cuGraphRetainUserObject(graph, object, 1, 1), "cuGraphRetainUserObject"))
    return 0;
  cuda.cuUserObjectRelease(object, 1);
  return TESSERA_DRIVER_ERROR;
}

static int findWorkspace(ErrorText error, Place *place, void *stream, uint64_t *address) {
  int isCapturing = 0;
  void *graph = NULL;
  *address = 0;
  if (!kernel.workspaceBytes)
    return 0;
  if (check(error, cuda.cuStreamGetCaptureInfo(stream, &isCapturing, NULL, &graph, NULL, NULL),
            "cuStreamGetCaptureInfo"))
    return TESSERA_DRIVER_ERROR;
  return isCapturing == 1 ? retainInGraph(error, place, graph, address)
                          : resolveWorkspace(error, place, stream, address);
}
