/* ---- Checks ---- */

static int64_t evaluate(Extent extent, const int64_t *dims) {
  return extent.dim < 0 ? extent.constant : dims[extent.dim];
}

#define ARGUMENT "%s '%s': argument '%s': "

static int bindDims(Call call, const ArgumentInfo *info, const tessera_tensor *view,
                    int64_t *dims) {
  int i;
  if (!view || !view->shape || !view->strides)
    return fail(call, TESSERA_INVALID_ARGUMENT, ARGUMENT "is null, or has no shape or strides",
                call.kernel->kind, call.kernel->name, info->name);
  for (i = 0; i < info->rank; ++i) {
    int64_t extent = view->shape[i], *bound;
    if (extent < 0 || extent > INT32_MAX)
      return fail(call, TESSERA_INVALID_ARGUMENT,
                  ARGUMENT "dimension %d has extent %" PRId64
                           "; an extent is at least 1 and below 2^31",
                  call.kernel->kind, call.kernel->name, info->name, i, extent);
    if (info->dims[i].dim < 0) {
      if (extent != info->dims[i].constant)
        return fail(call, TESSERA_INVALID_ARGUMENT,
                    ARGUMENT "dimension %d has extent %" PRId64 "; this %s is compiled for %" PRId64
                             " there",
                    call.kernel->kind, call.kernel->name, info->name, i, extent, call.kernel->kind,
                    info->dims[i].constant);
      continue;
    }
    bound = &dims[info->dims[i].dim];
    if (*bound >= 0 && *bound != extent)
      return fail(call, TESSERA_INVALID_ARGUMENT,
                  ARGUMENT "dimension %d, '%s', has extent %" PRId64 ", but is %" PRId64
                           " in an earlier argument",
                  call.kernel->kind, call.kernel->name, info->name, i,
                  call.kernel->dims[info->dims[i].dim], extent, *bound);
    *bound = extent;
  }
  return 0;
}

static int checkLayout(Call call, const ArgumentInfo *info, const tessera_tensor *view) {
  int i;
  for (i = 0; i < info->rank; ++i)
    if (view->shape[i] == 0)
      return 0;
  if (!view->data || view->data % (uint64_t)info->alignment)
    return fail(call, TESSERA_INVALID_ARGUMENT,
                ARGUMENT "the address is null or no multiple of %" PRId64 " bytes",
                call.kernel->kind, call.kernel->name, info->name, info->alignment);
  for (i = 0; i < info->rank; ++i) {
    int64_t stride = view->strides[i];
    if (view->shape[i] == 1)
      continue;
    if (i + 1 == info->rank && stride != 1)
      return fail(call, TESSERA_INVALID_ARGUMENT,
                  ARGUMENT "the innermost dimension has stride %" PRId64 "; it must be 1",
                  call.kernel->kind, call.kernel->name, info->name, stride);
    if (stride < 0 || (stride == 0 && info->isWritten) ||
        stride > (INT64_C(1) << 47) / info->elementBytes / view->shape[i])
      return fail(call, TESSERA_INVALID_ARGUMENT,
                  ARGUMENT "dimension %d has stride %" PRId64
                           "; strides are not negative, not 0 where a kernel writes, "
                           "and within the address space",
                  call.kernel->kind, call.kernel->name, info->name, i, stride);
    if (i + 1 < info->rank && stride * info->elementBytes % info->alignment)
      return fail(call, TESSERA_INVALID_ARGUMENT,
                  ARGUMENT "dimension %d has stride %" PRId64
                           "; strides must be multiples of %" PRId64 " elements",
                  call.kernel->kind, call.kernel->name, info->name, i, stride,
                  info->alignment / info->elementBytes);
  }
  return 0;
}

static int checkScalar(Call call, const ArgumentInfo *info, const void *scalar) {
  float value;
  if (!info->isBounded)
    return 0;
  memcpy(&value, scalar, sizeof(value));
  if (value > info->above && value <= FLT_MAX)
    return 0;
  return fail(call, TESSERA_INVALID_ARGUMENT,
              ARGUMENT "is %g; the %s takes finite numbers above %g", call.kernel->kind,
              call.kernel->name, info->name, (double)value, call.kernel->kind, info->above);
}

static int checkRequirements(Call call, const int64_t *dims) {
  int i;
  for (i = 0; i < call.kernel->boundCount; ++i)
    if (dims[call.kernel->bounds[i].dim] > call.kernel->bounds[i].most)
      return fail(call, TESSERA_INVALID_ARGUMENT,
                  "%s '%s': '%s' is %" PRId64 " and must be at most %" PRId64, call.kernel->kind,
                  call.kernel->name, call.kernel->dims[call.kernel->bounds[i].dim],
                  dims[call.kernel->bounds[i].dim], call.kernel->bounds[i].most);
  for (i = 0; i < call.kernel->requirementCount; ++i) {
    const Requirement *needed = &call.kernel->requirements[i];
    int64_t dividend = dims[needed->dividend];
    int64_t divisor = needed->factor * (needed->divisor < 0 ? 1 : dims[needed->divisor]);
    if (dividend && (!divisor || dividend % divisor))
      return fail(call, TESSERA_INVALID_ARGUMENT,
                  "%s '%s': '%s' is %" PRId64 " and must be a multiple of %" PRId64 "%s%s",
                  call.kernel->kind, call.kernel->name, call.kernel->dims[needed->dividend],
                  dividend, needed->factor, needed->divisor < 0 ? "" : " times ",
                  needed->divisor < 0 ? "" : call.kernel->dims[needed->divisor]);
  }
  return 0;
}

/* A product `step` * x, in bytes, with an integer x from `low` to `high`. */
typedef struct {
  int64_t step, low, high;
} Term;

static int compareTerms(const void *a, const void *b) {
  int64_t first = ((const Term *)a)->step, second = ((const Term *)b)->step;
  return (first < second) - (first > second);
}

static int64_t divideDown(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/* Says whether a sum of terms can lie in an interval. Where the steps do not nest, the search ends
 * unfinished. */
static int reaches(const Term *terms, int count, int64_t low, int64_t high, unsigned *steps) {
  int64_t least = 0, most = 0, first, last, x;
  int i;
  if (!count)
    return low <= 0 && 0 <= high;
  for (i = 1; i < count; ++i) {
    least += terms[i].step * terms[i].low;
    most += terms[i].step * terms[i].high;
  }
  first = -divideDown(most - low, terms->step);
  last = divideDown(high - least, terms->step);
  for (x = first > terms->low ? first : terms->low; x <= last && x <= terms->high && *steps < 1000;
       ++x) {
    ++*steps;
    if (reaches(terms + 1, count - 1, low - terms->step * x, high - terms->step * x, steps))
      return 1;
  }
  return 0;
}

static int64_t measure(const ArgumentInfo *info, const tessera_tensor *view) {
  int64_t bytes = info->elementBytes;
  int i;
  for (i = 0; i < info->rank; ++i) {
    if (view->shape[i] == 0)
      return 0;
    if (view->shape[i] > 1)
      bytes += (view->shape[i] - 1) * view->strides[i] * info->elementBytes;
  }
  return bytes;
}

static int addTerms(const ArgumentInfo *info, const tessera_tensor *view, int sign, Term *terms,
                    int count) {
  int i, j;
  for (i = 0; i < info->rank; ++i) {
    int64_t step = view->strides[i] * info->elementBytes;
    if (view->shape[i] <= 1 || step == 0)
      continue;
    for (j = 0; j < count && terms[j].step != step; ++j)
      ;
    if (j == count) {
      terms[count].step = step;
      terms[count].low = terms[count].high = 0;
      ++count;
    }
    *(sign > 0 ? &terms[j].high : &terms[j].low) += sign * (view->shape[i] - 1);
  }
  return count;
}

static int shareElements(const ArgumentInfo *a, const tessera_tensor *x, const ArgumentInfo *b,
                         const tessera_tensor *y) {
  int64_t distance = (int64_t)(y->data - x->data), bytes = measure(a, x), others = measure(b, y);
  Term terms[10];
  unsigned steps = 0;
  int count;
  if (!bytes || !others || distance >= bytes || distance <= -others)
    return 0;
  count = addTerms(b, y, -1, terms, addTerms(a, x, 1, terms, 0));
  qsort(terms, (size_t)count, sizeof(Term), compareTerms);
  return reaches(terms, count, distance - a->elementBytes + 1, distance + b->elementBytes - 1,
                 &steps);
}

/* Whether two indices of a view may be one element. Exact for dimensions that nest in some order.
 */
static int sharesWithItself(const ArgumentInfo *info, const tessera_tensor *view) {
  Term dims[5];
  int64_t bytes = info->elementBytes;
  int i, count = 0;
  for (i = 0; i < info->rank; ++i)
    if (view->shape[i] > 1) {
      dims[count].step = view->strides[i] * info->elementBytes;
      dims[count++].high = view->shape[i];
    }
  qsort(dims, (size_t)count, sizeof(Term), compareTerms);
  for (i = count - 1; i >= 0; --i) {
    if (dims[i].step < bytes)
      return 1;
    bytes += (dims[i].high - 1) * dims[i].step;
  }
  return 0;
}

static int checkOverlap(Call call, const Value *values) {
  const ArgumentInfo *infos = call.kernel->arguments;
  int i, j;
  for (i = 0; i < call.kernel->argumentCount; ++i) {
    if (!infos[i].isView || !infos[i].isWritten || !measure(&infos[i], values[i].view))
      continue;
    if (sharesWithItself(&infos[i], values[i].view))
      return fail(call, TESSERA_INVALID_ARGUMENT,
                  ARGUMENT "elements at different indices share memory", call.kernel->kind,
                  call.kernel->name, infos[i].name);
    for (j = 0; j < call.kernel->argumentCount; ++j)
      if (j != i && infos[j].isView &&
          shareElements(&infos[i], values[i].view, &infos[j], values[j].view))
        return fail(call, TESSERA_INVALID_ARGUMENT,
                    "%s '%s': arguments '%s' and '%s' share memory, and the %s writes '%s'",
                    call.kernel->kind, call.kernel->name, infos[i < j ? i : j].name,
                    infos[i < j ? j : i].name, call.kernel->kind, infos[i].name);
  }
  return 0;
}

static int checkArguments(Call call, const Value *values, int64_t *dims) {
  int i, status;
  for (i = 0; i < call.kernel->dimCount; ++i)
    dims[i] = -1;
  for (i = 0; i < call.kernel->argumentCount; ++i) {
    const ArgumentInfo *info = &call.kernel->arguments[i];
    if (!info->isView) {
      if ((status = checkScalar(call, info, values[i].scalar)) != 0)
        return status;
      continue;
    }
    if ((status = bindDims(call, info, values[i].view, dims)) != 0 ||
        (status = checkLayout(call, info, values[i].view)) != 0)
      return status;
  }
  return checkRequirements(call, dims);
}

/* The blocks of a launch, all 0 when there is nothing to do; of a persistent kernel, of all that
 * its clusters walk over. Of a flat one that has too many in y or z, all are in x. */
static int computeGrid(Call call, const int64_t *dims, unsigned *grid) {
  static const int64_t most[3] = {INT32_MAX, 65535, 65535};
  int64_t sizes[3], total = 1;
  int i, inX = call.kernel->isPersistent;
  for (i = 0; i < 3; ++i) {
    int64_t extent = evaluate(call.kernel->gridExtents[i], dims);
    sizes[i] = (extent + call.kernel->gridDivisors[i] - 1) / call.kernel->gridDivisors[i];
    if (!call.kernel->isPersistent)
      sizes[i] *= call.kernel->cluster[i];
    total = sizes[i] && total > INT32_MAX / sizes[i] ? INT64_C(1) << 32 : total * sizes[i];
    if (call.kernel->isFlat && i && sizes[i] > most[i])
      inX = 1;
  }
  for (i = 0; !inX && i < 3; ++i)
    if (sizes[i] > most[i])
      return fail(call, TESSERA_INVALID_ARGUMENT,
                  "%s '%s': the grid has %" PRId64
                  " blocks in dimension %c; the hardware takes at most %" PRId64 ": split the call",
                  call.kernel->kind, call.kernel->name, sizes[i], "xyz"[i], most[i]);
  if (inX && total > INT32_MAX)
    return fail(call, TESSERA_INVALID_ARGUMENT,
                "%s '%s': the grid has more than 2^31 - 1 tiles: split the call", call.kernel->kind,
                call.kernel->name);
  for (i = 0; i < 3; ++i)
    grid[i] = (unsigned)(!total ? 0 : !inX ? sizes[i] : i ? 1 : total);
  for (i = 0; total && i < call.kernel->dimCount; ++i)
    if (dims[i] == 0)
      return fail(call, TESSERA_INVALID_ARGUMENT,
                  "%s '%s': the extent '%s' is 0; an extent is at least 1", call.kernel->kind,
                  call.kernel->name, call.kernel->dims[i]);
  return 0;
}
