/* z = x + y by a kernel that is a C function of this program.
 *
 *   add             on a Hopper GPU, compared with the host's sums
 *   add --launch    only launches, for machines with a stand-in for the driver */

#include "../driver.h"
#include "add.h"

enum { length = 10000 };
static float x[length], y[length], z[length];

int main(int argc, char **argv) {
  Driver driver = openDriver();
  for (int i = 0; i < length; ++i) {
    x[i] = (float)i;
    y[i] = 0.5f * (float)i;
  }

  int64_t shape[] = {length};
  int64_t strides[] = {1};
  tessera_tensor x_view = {put(&driver, x, sizeof x), shape, strides};
  tessera_tensor y_view = {put(&driver, y, sizeof y), shape, strides};
  tessera_tensor z_view = {put(&driver, z, sizeof z), shape, strides};
  /* Device 0, its default stream, and the arguments in the order of the source. */
  char error[256];
  if (add(0, NULL, &x_view, &y_view, &z_view, error, sizeof error)) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  printf("launched\n");
  if (argc > 1 && !strcmp(argv[1], "--launch"))
    return 0;

  check(driver.toHost(z, z_view.data, sizeof z), "cuMemcpyDtoH");
  for (int i = 0; i < length; ++i)
    if (z[i] != x[i] + y[i]) {
      printf("element %d is %g\n", i, z[i]);
      return 1;
    }
  printf("right\n");
  return 0;
}
