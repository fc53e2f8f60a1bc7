/* Latent attention from C over rows that lists name, 656 bytes each: 512 numbers of e4m3, what each
 * 128 of them are multiplied by, and 64 numbers of bfloat16 that are key alone. A kernel takes
 * these three as views of one memory.
 *
 *   latent_lists             on a Hopper GPU, compared with the same in double
 *   latent_lists --launch    only launches, for machines with a stand-in for the driver
 */
#include "../driver.h"
#include "latent_attend.h"

#include <math.h>

enum { QUERIES = 2, HEADS = 16, ROWS = 100, ENTRIES = 8, VALUES = 512, GROUPS = 4, ROTARY = 64 };
enum { WIDTH = VALUES + ROTARY };
static const float scale = 0.0417f;

typedef struct Row {
  uint8_t numbers[VALUES];
  float units[GROUPS];
  uint16_t rotary[ROTARY];
} Row;

/* Each row as often as it counts. Of what is no row, as -1, nothing is read. */
static const int32_t lists[QUERIES][ENTRIES] = {{5, 99, -1, 5, 0, 17, 63, 64},
                                                {3, -1, -1, -1, -1, 100, -7, -1}};
static uint16_t q[QUERIES][HEADS][WIDTH], o[QUERIES][HEADS][VALUES];
static Row cache[ROWS];

static float draw(void) { return (float)rand() / (float)RAND_MAX * 4 - 2; }

static void draw_inputs(void) {
  uint16_t *numbers = &q[0][0][0];
  for (size_t i = 0; i < sizeof q / sizeof *numbers; ++i)
    numbers[i] = toBFloat16(draw());
  for (int row = 0; row < ROWS; ++row) {
    for (int i = 0; i < VALUES; ++i)
      cache[row].numbers[i] = (uint8_t)(rand() & 0xbf); /* less than 2 */
    for (int i = 0; i < GROUPS; ++i)
      cache[row].units[i] = 1 + draw() / 4;
    for (int i = 0; i < ROTARY; ++i)
      cache[row].rotary[i] = toBFloat16(draw());
  }
}

static double fromE4M3(uint8_t bits) {
  int exponent = bits >> 3 & 15;
  double value = ldexp((exponent ? 8 : 0) + (bits & 7), (exponent ? exponent : 1) - 10);
  return bits >> 7 ? -value : value;
}

/* What number `i` of a row stands for. */
static double read_number(const Row *row, int i) {
  if (i >= VALUES)
    return fromBFloat16(row->rotary[i - VALUES]);
  return fromE4M3(row->numbers[i]) * row->units[i / (VALUES / GROUPS)];
}

/* The largest difference from attention in double. */
static double find_error(void) {
  double worst = 0;
  for (int n = 0; n < QUERIES; ++n)
    for (int h = 0; h < HEADS; ++h) {
      double sum = 0, expected[VALUES] = {0};
      for (int entry = 0; entry < ENTRIES; ++entry) {
        int32_t number = lists[n][entry];
        if (number < 0 || number >= ROWS)
          continue;
        double score = 0;
        for (int i = 0; i < WIDTH; ++i)
          score += fromBFloat16(q[n][h][i]) * read_number(&cache[number], i);
        double weight = exp(score * scale);
        sum += weight;
        for (int i = 0; i < VALUES; ++i)
          expected[i] += weight * read_number(&cache[number], i);
      }
      for (int i = 0; i < VALUES; ++i)
        worst = fmax(worst, fabs(expected[i] / sum - fromBFloat16(o[n][h][i])));
    }
  return worst;
}

/* Launches the kernel on the default stream of device 0, for queries, a cache and results on the
 * device. */
static int attend(const Driver *driver, uint64_t q_data, uint64_t cache_data, uint64_t o_data) {
  char error[256] = "";
  int64_t q_shape[] = {QUERIES, HEADS, 1, WIDTH}, q_strides[] = {HEADS * WIDTH, WIDTH, WIDTH, 1};
  int64_t o_shape[] = {QUERIES, HEADS, 1, VALUES},
          o_strides[] = {HEADS * VALUES, VALUES, VALUES, 1};
  tessera_tensor q_view = {q_data, q_shape, q_strides}, o_view = {o_data, o_shape, o_strides};
  /* Each part of the rows, with strides in elements of its own. */
  const int64_t bytes = sizeof(Row), floats = bytes / 4, shorts = bytes / 2;
  int64_t shape[] = {ROWS, 1, 1, VALUES}, strides[] = {bytes, bytes, bytes, 1};
  int64_t units_shape[] = {ROWS, 1, 1, GROUPS}, units_strides[] = {floats, floats, floats, 1};
  int64_t rotary_shape[] = {ROWS, 1, 1, ROTARY}, rotary_strides[] = {shorts, shorts, shorts, 1};
  tessera_tensor cache_view = {cache_data, shape, strides};
  tessera_tensor units_view = {cache_data + offsetof(Row, units), units_shape, units_strides};
  tessera_tensor rotary_view = {cache_data + offsetof(Row, rotary), rotary_shape, rotary_strides};
  int64_t lists_shape[] = {QUERIES, ENTRIES}, lists_strides[] = {ENTRIES, 1};
  tessera_tensor lists_view = {put(driver, lists, sizeof lists), lists_shape, lists_strides};
  int64_t lse_strides[] = {HEADS, 1, 1};
  tessera_tensor lse_view = {put(driver, NULL, QUERIES * HEADS * 4), o_shape, lse_strides};
  /* All entries of a list are one part, of which a kernel takes a multiple of 64. */
  if (latent_attend(0, NULL, &q_view, &cache_view, &units_view, &rotary_view, &lists_view, &o_view,
                    &lse_view, scale, 64, error, sizeof error)) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  return 0;
}

int main(int argc, char **argv) {
  Driver driver = openDriver();
  draw_inputs();
  uint64_t o_data = put(&driver, NULL, sizeof o);
  if (attend(&driver, put(&driver, q, sizeof q), put(&driver, cache, sizeof cache), o_data))
    return 1;
  finishLaunches(&driver, argc, argv);

  check(driver.toHost(o, o_data, sizeof o), "cuMemcpyDtoH");
  return report(find_error(), 0.03);
}
