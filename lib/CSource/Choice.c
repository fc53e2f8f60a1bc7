/* ---- Which kernel a launch takes ---- */

static const TimeModel alternatives[KERNEL_COUNT];

/* Whether extents are within what a kernel asks of them. */
static int takes(const KernelInfo *kernel, const int64_t *dims) {
  int i;
  for (i = 0; i < kernel->boundCount; ++i)
    if (dims[kernel->bounds[i].dim] > kernel->bounds[i].most)
      return 0;
  for (i = 0; i < kernel->requirementCount; ++i) {
    const Requirement *needed = &kernel->requirements[i];
    int64_t divisor = needed->factor * (needed->divisor < 0 ? 1 : dims[needed->divisor]);
    if (dims[needed->dividend] && (!divisor || dims[needed->dividend] % divisor))
      return 0;
  }
  return 1;
}

/* What a launch of a kernel should take. `extents` are `dims`. */
static void expectLaunch(int index, const int64_t *dims, const double *extents,
                         TimeExpected *expected) {
  if (takes(&kernels[index], dims))
    expectTime(&alternatives[index], extents, expected);
  else
    expectExactly(expected, INFINITY);
}

static void readExtents(const int64_t *dims, double *extents) {
  int i;
  for (i = 0; i < MOST_DIMS; ++i)
    extents[i] = (double)dims[i];
}

/* The microseconds that a kernel should take. */
static double predict(int index, const int64_t *dims) {
  double extents[MOST_DIMS];
  TimeExpected expected;
  readExtents(dims, extents);
  expectLaunch(index, dims, extents, &expected);
  return findTime(&expected, TIME_NEVER);
}

/* What was chosen for recent extents; `lock` guards it. */
enum { CHOICES = 256 };
static struct {
  int isUsed, index;
  int64_t dims[MOST_DIMS];
} choices[CHOICES];

static int choose(const int64_t *dims) {
  uint64_t key = 0;
  int i, slot, index;
  for (i = 0; i < MOST_DIMS; ++i)
    key = (key ^ (uint64_t)dims[i]) * UINT64_C(0x9E3779B97F4A7C15);
  slot = (int)((key >> 32) % CHOICES);
  pthread_mutex_lock(&lock);
  if (!choices[slot].isUsed || memcmp(choices[slot].dims, dims, MOST_DIMS * sizeof(*dims)) != 0) {
    double extents[MOST_DIMS];
    TimeExpected launches[KERNEL_COUNT];
    readExtents(dims, extents);
    for (i = 0; i < KERNEL_COUNT; ++i)
      expectLaunch(i, dims, extents, &launches[i]);
    choices[slot].index = findFastestLaunch(launches, KERNEL_COUNT);
    memcpy(choices[slot].dims, dims, MOST_DIMS * sizeof(*dims));
    choices[slot].isUsed = 1;
  }
  index = choices[slot].index;
  pthread_mutex_unlock(&lock);
  return index;
}

/* The kernel for a launch whose arguments are not checked yet: the first where they are wrong,
 * which says so. */
static int chooseByValues(const Value *values) {
  int64_t dims[MOST_DIMS];
  int i, j;
  for (i = 0; i < MOST_DIMS; ++i)
    dims[i] = -1;
  for (i = 0; i < kernels[0].argumentCount; ++i) {
    const ArgumentInfo *info = &kernels[0].arguments[i];
    const tessera_tensor *view = values[i].view;
    if (!info->isView)
      continue;
    if (!view || !view->shape)
      return 0;
    for (j = 0; j < info->rank; ++j) {
      if (view->shape[j] < 0 || view->shape[j] > INT32_MAX)
        return 0;
      if (info->dims[j].dim >= 0 && dims[info->dims[j].dim] < 0)
        dims[info->dims[j].dim] = view->shape[j];
    }
  }
  return choose(dims);
}
