/* A step of decoding from C: one query of each sequence over a cache in pages, with keys divided
 * into parts. The kernels are functions that the build compiled into this program (CMakeLists.txt).
 * Lengths and the table of pages lie on the device: nothing here reads them, so launches that a
 * graph captured serve any lengths that the table has room for.
 *
 *   decode             on a Hopper GPU, compared with the same in double
 *   decode --launch    only launches, for machines with a stand-in for the driver
 */
#include "../driver.h"
#include "decode_join.h"
#include "decode_parts.h"

#include <math.h>

/* Sequences, pages of the cache and of a sequence at most, rows of a page, heads of keys, query
 * heads of each, elements of a row. */
enum { SEQUENCES = 3, PAGES = 16, LENGTH = 4, ROWS = 128, HEADS = 2, GROUP = 4, WIDTH = 64 };
/* Keys of a part, a multiple of 128, and parts of the longest sequence. */
enum { SHARE = 256, PARTS = LENGTH * ROWS / SHARE };
static const float scale = 0.125f;

static const int32_t lengths[SEQUENCES] = {437, 1, 256};
/* Which pages a sequence has. What stands behind its last one is never read. */
static const int32_t pages[SEQUENCES][LENGTH] = {{5, 2, 11, 7}, {3, -1, -1, -1}, {0, 9, -1, -1}};
static uint16_t q[SEQUENCES][HEADS * GROUP][WIDTH], o[SEQUENCES][HEADS * GROUP][WIDTH];
/* A row has keys, and values beside them. */
static uint16_t cache[PAGES][ROWS][HEADS][2][WIDTH];

static float draw(void) { return (float)rand() / (float)RAND_MAX * 4 - 2; }

static void draw_inputs(void) {
  uint16_t *numbers = &q[0][0][0], *rows = &cache[0][0][0][0][0];
  for (size_t i = 0; i < sizeof q / sizeof *numbers; ++i)
    numbers[i] = toBFloat16(draw());
  for (size_t i = 0; i < sizeof cache / sizeof *rows; ++i)
    rows[i] = toBFloat16(draw());
}

/* The largest difference from attention in double. */
static double find_error(void) {
  double worst = 0;
  for (int s = 0; s < SEQUENCES; ++s)
    for (int h = 0; h < HEADS * GROUP; ++h) {
      double sum = 0, expected[WIDTH] = {0};
      for (int key = 0; key < lengths[s]; ++key) {
        uint16_t (*row)[WIDTH] = cache[pages[s][key / ROWS]][key % ROWS][h / GROUP];
        double score = 0;
        for (int i = 0; i < WIDTH; ++i)
          score += (double)fromBFloat16(q[s][h][i]) * fromBFloat16(row[0][i]);
        double weight = exp(score * scale);
        sum += weight;
        for (int i = 0; i < WIDTH; ++i)
          expected[i] += weight * fromBFloat16(row[1][i]);
      }
      for (int i = 0; i < WIDTH; ++i)
        worst = fmax(worst, fabs(expected[i] / sum - fromBFloat16(o[s][h][i])));
    }
  return worst;
}

/* Launches both kernels on the default stream of device 0, for queries, a cache and results on the
 * device. */
static int decode(const Driver *driver, uint64_t q_data, uint64_t cache_data, uint64_t o_data) {
  char error[256] = "";
  /* Query heads of one head of keys are the rows of a tile: q is [SEQUENCES, H, SQ, 64], with SQ =
   * GROUP rows for each. */
  int64_t q_shape[] = {SEQUENCES, HEADS, GROUP, WIDTH};
  int64_t q_strides[] = {HEADS * GROUP * WIDTH, GROUP * WIDTH, WIDTH, 1};
  tessera_tensor q_view = {q_data, q_shape, q_strides};
  /* k and v [HK, PAGES, ROWS, 64] lie in one cache. */
  int64_t shape[] = {HEADS, PAGES, ROWS, WIDTH};
  int64_t strides[] = {2 * WIDTH, ROWS * HEADS * 2 * WIDTH, HEADS * 2 * WIDTH, 1};
  tessera_tensor k_view = {cache_data, shape, strides},
                 v_view = {cache_data + 2 * WIDTH, shape, strides};
  int64_t one[] = {LENGTH, 1}, lengths_shape[] = {SEQUENCES}, pages_shape[] = {SEQUENCES, LENGTH};
  tessera_tensor lengths_view = {put(driver, lengths, sizeof lengths), lengths_shape, one + 1};
  tessera_tensor pages_view = {put(driver, pages, sizeof pages), pages_shape, one};

  /* Batch p * SEQUENCES + s of the first results is part p of sequence s. */
  int64_t part_shape[] = {PARTS * SEQUENCES, HEADS, GROUP, WIDTH};
  size_t sums = (size_t)PARTS * SEQUENCES * HEADS * GROUP;
  tessera_tensor part_view = {put(driver, NULL, sums * WIDTH * 4), part_shape, q_strides};
  int64_t sum_strides[] = {HEADS * GROUP, GROUP, 1};
  tessera_tensor sum_view = {put(driver, NULL, sums * 4), part_shape, sum_strides};
  if (decode_parts(0, NULL, &q_view, &k_view, &v_view, &part_view, &sum_view, scale, &lengths_view,
                   SHARE, &pages_view, error, sizeof error)) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }

  /* The same memory as [SEQUENCES, heads, PARTS, 64] and [PARTS, SEQUENCES, heads, 1], and results
   * [SEQUENCES, 1, heads, 64]. */
  int64_t parts_shape[] = {SEQUENCES, HEADS * GROUP, PARTS, WIDTH};
  int64_t parts_strides[] = {HEADS * GROUP * WIDTH, WIDTH, SEQUENCES * HEADS * GROUP * WIDTH, 1};
  tessera_tensor parts_view = {part_view.data, parts_shape, parts_strides};
  int64_t lses_shape[] = {PARTS, SEQUENCES, HEADS * GROUP, 1},
          lses_strides[] = {SEQUENCES * HEADS * GROUP, HEADS * GROUP, 1, 1};
  tessera_tensor lses_view = {sum_view.data, lses_shape, lses_strides};
  int64_t o_shape[] = {SEQUENCES, 1, HEADS * GROUP, WIDTH};
  int64_t o_strides[] = {HEADS * GROUP * WIDTH, HEADS * GROUP * WIDTH, WIDTH, 1};
  tessera_tensor o_view = {o_data, o_shape, o_strides};
  tessera_tensor lse_view = {put(driver, NULL, SEQUENCES * HEADS * GROUP * 4), lses_shape + 1,
                             lses_strides + 1};
  if (decode_join(0, NULL, &parts_view, &lses_view, &o_view, &lse_view, error, sizeof error)) {
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
