/* Latent attention from C: one query of each sequence over rows that all heads share, in pages. The
 * kernel is a function that the build compiled into this program (CMakeLists.txt). Lengths and the
 * table of pages lie on the device, and nothing here reads them.
 *
 *   latent             on a Hopper GPU, compared with the same in double
 *   latent --launch    only launches, for machines with a stand-in for the driver
 */
#include "../driver.h"
#include "latent_decode.h"

#include <math.h>

/* Sequences, query heads, pages of the cache and of a sequence at most, rows of a page, numbers of
 * a row, and those of them that are value too. */
enum { SEQUENCES = 2, HEADS = 16, PAGES = 8, LENGTH = 4, ROWS = 64, WIDTH = 576, VALUES = 512 };
static const float scale = 0.0417f;

static const int32_t lengths[SEQUENCES] = {200, 1};
/* Which pages a sequence has. What stands behind its last one is never read. */
static const int32_t pages[SEQUENCES][LENGTH] = {{5, 2, 1, 7}, {3, -1, -1, -1}};
static uint16_t q[SEQUENCES][HEADS][WIDTH], o[SEQUENCES][HEADS][VALUES], cache[PAGES][ROWS][WIDTH];

static float draw(void) { return (float)rand() / (float)RAND_MAX * 4 - 2; }

static void draw_inputs(void) {
  uint16_t *numbers = &q[0][0][0], *rows = &cache[0][0][0];
  for (size_t i = 0; i < sizeof q / sizeof *numbers; ++i)
    numbers[i] = toBFloat16(draw());
  for (size_t i = 0; i < sizeof cache / sizeof *rows; ++i)
    rows[i] = toBFloat16(draw());
}

/* The largest difference from attention in double. */
static double find_error(void) {
  double worst = 0;
  for (int s = 0; s < SEQUENCES; ++s)
    for (int h = 0; h < HEADS; ++h) {
      double sum = 0, expected[VALUES] = {0};
      for (int key = 0; key < lengths[s]; ++key) {
        const uint16_t *row = cache[pages[s][key / ROWS]][key % ROWS];
        double score = 0;
        for (int i = 0; i < WIDTH; ++i)
          score += (double)fromBFloat16(q[s][h][i]) * fromBFloat16(row[i]);
        double weight = exp(score * scale);
        sum += weight;
        for (int i = 0; i < VALUES; ++i)
          expected[i] += weight * fromBFloat16(row[i]);
      }
      for (int i = 0; i < VALUES; ++i)
        worst = fmax(worst, fabs(expected[i] / sum - fromBFloat16(o[s][h][i])));
    }
  return worst;
}

/* Launches the kernel on the default stream of device 0, for queries, a cache and results on the
 * device. */
static int decode(const Driver *driver, uint64_t q_data, uint64_t cache_data, uint64_t o_data) {
  char error[256] = "";
  int64_t q_shape[] = {SEQUENCES, HEADS, 1, WIDTH}, o_shape[] = {SEQUENCES, HEADS, 1, VALUES};
  int64_t q_strides[] = {HEADS * WIDTH, WIDTH, WIDTH, 1};
  int64_t o_strides[] = {HEADS * VALUES, VALUES, VALUES, 1};
  tessera_tensor q_view = {q_data, q_shape, q_strides}, o_view = {o_data, o_shape, o_strides};
  int64_t shape[] = {PAGES, 1, ROWS, WIDTH}, strides[] = {ROWS * WIDTH, WIDTH, WIDTH, 1};
  tessera_tensor cache_view = {cache_data, shape, strides};
  int64_t one[] = {LENGTH, 1}, pages_shape[] = {SEQUENCES, LENGTH};
  tessera_tensor pages_view = {put(driver, pages, sizeof pages), pages_shape, one};
  tessera_tensor lengths_view = {put(driver, lengths, sizeof lengths), pages_shape, one + 1};
  int64_t lse_strides[] = {HEADS, 1, 1};
  tessera_tensor lse_view = {put(driver, NULL, SEQUENCES * HEADS * 4), o_shape, lse_strides};
  /* All keys of a sequence are one part. */
  if (latent_decode(0, NULL, &q_view, &cache_view, &pages_view, &lengths_view, &o_view, &lse_view,
                    scale, LENGTH * ROWS, error, sizeof error)) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  return 0;
}

int main(int argc, char **argv) {
  Driver driver = openDriver();
  draw_inputs();
  uint64_t o_data = put(&driver, NULL, sizeof o);
  if (decode(&driver, put(&driver, q, sizeof q), put(&driver, cache, sizeof cache), o_data))
    return 1;
  finishLaunches(&driver, argc, argv);

  check(driver.toHost(o, o_data, sizeof o), "cuMemcpyDtoH");
  return report(find_error(), 0.03);
}
