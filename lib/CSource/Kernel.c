/* ---- A launch of one kernel ---- */

static int launchIn(Call call, void *data, void *context, int device, void *stream) {
  Launch *launch = data;
  int status;
  pthread_mutex_lock(&lock);
  status = prepareLaunch(call, launch, context, device, stream);
  pthread_mutex_unlock(&lock);
  return status ? status : queueLaunch(call, launch, stream);
}

static int launch(const KernelInfo *kernel, int device, void *stream, const Value *values,
                  char *text, size_t size) {
  Call call = makeCall(kernel, text, size);
  Launch single;
  int status;
  single.kernel = kernel;
  memcpy(single.values, values, (size_t)kernel->argumentCount * sizeof(*values));
  if ((status = checkLaunch(call, &single)) != 0 || !single.grid[0])
    return status;
  if ((status = checkOverlap(call, values)) != 0)
    return status;
  return enter(call, device, stream, launchIn, &single);
}
