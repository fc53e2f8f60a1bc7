/* ---- A call of a sequence ---- */

/* ceil(product / divisor) */
typedef struct {
  const char *name;
  int factorCount;
  Extent factors[MOST_FACTORS];
  int64_t divisor;
} DerivedDim;

typedef struct {
  const char *name;
  int64_t elementBytes;
  int rank;
  Extent dims[5]; /* of the sequence, then of the derived ones */
  int isZeroed;
} WorkspaceInfo;

/* A launch of a kernel, whose arguments are those of the sequence, and behind them workspaces. */
typedef struct {
  int kernel;
  int operands[MOST_ARGUMENTS];
} Step;

static const KernelInfo sequence;
static const DerivedDim derived[DERIVED_COUNT + 1];
static const WorkspaceInfo workspaces[WORKSPACE_COUNT + 1];
static const Step steps[STEP_COUNT];

/* A part of the memory of a call. */
typedef struct {
  uint64_t offset, bytes;
  int64_t shape[5], strides[5];
  tessera_tensor view;
} Part;

typedef struct {
  Launch launches[STEP_COUNT];
  Part parts[WORKSPACE_COUNT + 1];
  uint64_t bytes;
} SequenceCall;

/* What workspaces are aligned to, their rows, and the bytes of an address space. */
enum { WORKSPACE_ALIGNMENT = 256, ROW_BYTES = 16 };
#define ADDRESS_SPACE (UINT64_C(1) << 47)

static uint64_t alignTo(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

static int deriveDims(Call call, int64_t *dims) {
  int i, j;
  for (i = 0; i < DERIVED_COUNT; ++i) {
    double exact = 1;
    int64_t product = 1, extent;
    for (j = 0; j < derived[i].factorCount; ++j) {
      int64_t factor = evaluate(derived[i].factors[j], dims);
      exact *= (double)factor;
      product = exact < 9e18 ? product * factor : 0;
    }
    extent = product / derived[i].divisor + (product % derived[i].divisor != 0);
    if (exact >= 9e18 || extent > INT32_MAX)
      return fail(
          call, TESSERA_INVALID_ARGUMENT,
          "sequence '%s': the extent '%s' of its workspaces is 2^31 or more: split the call",
          sequence.name, derived[i].name);
    dims[sequence.dimCount + i] = extent;
  }
  return 0;
}

/* The next workspace, behind the others. */
static int addPart(Call call, const WorkspaceInfo *workspace, const int64_t *dims,
                   SequenceCall *work, Part *part) {
  uint64_t elements = 1;
  int i;
  part->offset = alignTo(work->bytes, WORKSPACE_ALIGNMENT);
  for (i = 0; i < workspace->rank; ++i) {
    part->shape[i] = evaluate(workspace->dims[i], dims);
    part->strides[i] = 1;
  }
  for (i = workspace->rank - 1; i >= 0; --i) {
    uint64_t extent = (uint64_t)part->shape[i];
    if (i < workspace->rank - 1)
      part->strides[i] = (int64_t)elements;
    if (i && i == workspace->rank - 1)
      extent = alignTo(extent, (uint64_t)(ROW_BYTES / workspace->elementBytes));
    if (extent && elements > ADDRESS_SPACE / extent)
      elements = ADDRESS_SPACE;
    else
      elements *= extent;
  }
  part->bytes = elements * (uint64_t)workspace->elementBytes;
  work->bytes = part->offset + part->bytes;
  part->view.shape = part->shape;
  part->view.strides = part->strides;
  if (work->bytes < ADDRESS_SPACE)
    return 0;
  return fail(call, TESSERA_INVALID_ARGUMENT,
              "sequence '%s': the workspace '%s' takes more than an address space: split the call",
              sequence.name, workspace->name);
}

static void placeParts(SequenceCall *work, uint64_t memory) {
  int i;
  for (i = 0; i < WORKSPACE_COUNT; ++i)
    work->parts[i].view.data = memory + work->parts[i].offset;
}

static Call ofKernel(Call call, const Launch *launch) {
  call.kernel = launch->kernel;
  return call;
}

/* Each launch is checked before the first is queued, so that all run or none. */
static int checkSequence(Call call, SequenceCall *work, const Value *values) {
  int64_t dims[MOST_DIMS + DERIVED_COUNT];
  int status, i, j;
  if ((status = checkArguments(call, values, dims)) != 0 ||
      (status = checkOverlap(call, values)) != 0 || (status = deriveDims(call, dims)) != 0)
    return status;
  work->bytes = 0;
  for (i = 0; i < WORKSPACE_COUNT; ++i)
    if ((status = addPart(call, &workspaces[i], dims, work, &work->parts[i])) != 0)
      return status;
  placeParts(work, WORKSPACE_ALIGNMENT); /* Where they lie does not matter yet. */
  for (i = 0; i < STEP_COUNT; ++i) {
    Launch *launch = &work->launches[i];
    launch->kernel = &kernels[steps[i].kernel];
    for (j = 0; j < launch->kernel->argumentCount; ++j) {
      int operand = steps[i].operands[j] - sequence.argumentCount;
      launch->values[j].scalar = NULL;
      launch->values[j].view = &work->parts[operand < 0 ? 0 : operand].view;
      if (operand < 0)
        launch->values[j] = values[steps[i].operands[j]];
    }
    if ((status = checkLaunch(ofKernel(call, launch), launch)) != 0)
      return status;
  }
  return 0;
}

/* With the lock. */
static int prepareSequence(Call call, SequenceCall *work, void *context, int device, void *stream) {
  Request request;
  Place *place = NULL;
  uint64_t memory = 0;
  int status, i;
  request.bytes = work->bytes;
  request.isZeroed = 0;
  if ((status = findPlace(call, context, device, &place)) != 0 ||
      (status = findWorkspace(call, place, stream, request, &memory)) != 0)
    return status;
  placeParts(work, memory);
  for (i = 0; i < STEP_COUNT; ++i) {
    Launch *launch = &work->launches[i];
    if (launch->grid[0] &&
        (status = prepareLaunch(ofKernel(call, launch), launch, context, device, stream)) != 0)
      return status;
  }
  return 0;
}

static int launchSequenceIn(Call call, void *data, void *context, int device, void *stream) {
  SequenceCall *work = data;
  int status, i;
  pthread_mutex_lock(&lock);
  status = prepareSequence(call, work, context, device, stream);
  pthread_mutex_unlock(&lock);
  for (i = 0; !status && i < WORKSPACE_COUNT; ++i)
    if (workspaces[i].isZeroed && work->parts[i].bytes)
      status = check(
          call, cuda.cuMemsetD8Async(work->parts[i].view.data, 0, work->parts[i].bytes, stream),
          "cuMemsetD8Async of a workspace");
  for (i = 0; !status && i < STEP_COUNT; ++i)
    if (work->launches[i].grid[0])
      status = queueLaunch(ofKernel(call, &work->launches[i]), &work->launches[i], stream);
  return status;
}

static int launchSequence(int device, void *stream, const Value *values, char *text, size_t size) {
  Call call = makeCall(&sequence, text, size);
  SequenceCall work;
  int status = checkSequence(call, &work, values);
  return status ? status : enter(call, device, stream, launchSequenceIn, &work);
}
