/* The gated delta rule from C, with the state before the first token and behind the last: one call
 * of a sequence that the build compiled into this program (CMakeLists.txt). What its kernels keep
 * between them the call takes itself.
 *
 *   recurrence             on a Hopper GPU, compared with the recurrence in double
 *   recurrence --launch    only launches, for machines with a stand-in for the driver
 */
#include "../driver.h"
#include "delta_rule.h"

#include <math.h>

/* Heads, of values, which share those of keys; tokens, and elements of a row. */
enum { HEADS = 4, KEY_HEADS = 2, TOKENS = 200, WIDTH = 64 };
static const float scale = 0.125f;

static uint16_t q[TOKENS][KEY_HEADS][WIDTH], k[TOKENS][KEY_HEADS][WIDTH], v[TOKENS][HEADS][WIDTH];
static uint16_t o[TOKENS][HEADS][WIDTH];
static float g[HEADS][TOKENS], beta[HEADS][TOKENS];
static float before[HEADS][WIDTH][WIDTH], behind[HEADS][WIDTH][WIDTH];

static float draw(void) { return (float)rand() / (float)RAND_MAX * 2 - 1; }

static void draw_inputs(void) {
  for (int t = 0; t < TOKENS; ++t) {
    for (int h = 0; h < HEADS; ++h)
      for (int i = 0; i < WIDTH; ++i)
        v[t][h][i] = toBFloat16(draw());
    for (int h = 0; h < KEY_HEADS; ++h) {
      float key[WIDTH], length = 0;
      for (int i = 0; i < WIDTH; ++i) {
        q[t][h][i] = toBFloat16(draw());
        key[i] = draw();
        length += key[i] * key[i];
      }
      for (int i = 0; i < WIDTH; ++i)
        k[t][h][i] = toBFloat16(key[i] / sqrtf(length));
    }
    for (int h = 0; h < HEADS; ++h) {
      g[h][t] = -fabsf(draw());
      beta[h][t] = fabsf(draw());
    }
  }
  float *numbers = &before[0][0][0];
  for (size_t i = 0; i < sizeof before / sizeof *numbers; ++i)
    numbers[i] = draw();
}

/* The largest difference of outputs and states from the recurrence, token by token. */
static double find_error(void) {
  static double state[WIDTH][WIDTH];
  double worst = 0;
  for (int h = 0; h < HEADS; ++h) {
    int own = h / (HEADS / KEY_HEADS);
    for (int i = 0; i < WIDTH; ++i)
      for (int j = 0; j < WIDTH; ++j)
        state[i][j] = before[h][i][j];
    for (int t = 0; t < TOKENS; ++t) {
      for (int j = 0; j < WIDTH; ++j) {
        double held = 0, read = 0;
        for (int i = 0; i < WIDTH; ++i) {
          state[i][j] *= exp(g[h][t]);
          held += fromBFloat16(k[t][own][i]) * state[i][j];
        }
        double news = beta[h][t] * (fromBFloat16(v[t][h][j]) - held);
        for (int i = 0; i < WIDTH; ++i) {
          state[i][j] += fromBFloat16(k[t][own][i]) * news;
          read += fromBFloat16(q[t][own][i]) * state[i][j];
        }
        worst = fmax(worst, fabs(scale * read - fromBFloat16(o[t][h][j])));
      }
    }
    for (int i = 0; i < WIDTH; ++i)
      for (int j = 0; j < WIDTH; ++j)
        worst = fmax(worst, fabs(state[i][j] - behind[h][i][j]));
  }
  return worst;
}

/* Launches on the default stream of device 0, with outputs and the state behind on the device. */
static int walk(const Driver *driver, uint64_t o_data, uint64_t behind_data) {
  char error[256] = "";
  /* [B, heads, L, 64] of memory in which the heads of a token lie beside each other. */
  int64_t of_keys[] = {1, KEY_HEADS, TOKENS, WIDTH}, of_values[] = {1, HEADS, TOKENS, WIDTH};
  int64_t key_strides[] = {TOKENS * KEY_HEADS * WIDTH, WIDTH, KEY_HEADS * WIDTH, 1};
  int64_t value_strides[] = {TOKENS * HEADS * WIDTH, WIDTH, HEADS * WIDTH, 1};
  int64_t of_states[] = {1, HEADS, WIDTH, WIDTH};
  int64_t state_strides[] = {HEADS * WIDTH * WIDTH, WIDTH * WIDTH, WIDTH, 1};
  int64_t gate_strides[] = {HEADS * TOKENS, TOKENS, 1};
  tessera_tensor q_view = {put(driver, q, sizeof q), of_keys, key_strides};
  tessera_tensor k_view = {put(driver, k, sizeof k), of_keys, key_strides};
  tessera_tensor v_view = {put(driver, v, sizeof v), of_values, value_strides};
  tessera_tensor o_view = {o_data, of_values, value_strides};
  tessera_tensor g_view = {put(driver, g, sizeof g), of_values, gate_strides};
  tessera_tensor beta_view = {put(driver, beta, sizeof beta), of_values, gate_strides};
  tessera_tensor before_view = {put(driver, before, sizeof before), of_states, state_strides};
  tessera_tensor behind_view = {behind_data, of_states, state_strides};
  if (delta_rule(0, NULL, &q_view, &k_view, &v_view, &g_view, &beta_view, scale, &before_view,
                 &behind_view, &o_view, error, sizeof error)) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  return 0;
}

int main(int argc, char **argv) {
  Driver driver = openDriver();
  draw_inputs();
  uint64_t o_data = put(&driver, NULL, sizeof o), behind_data = put(&driver, NULL, sizeof behind);
  if (walk(&driver, o_data, behind_data))
    return 1;
  finishLaunches(&driver, argc, argv);

  check(driver.toHost(o, o_data, sizeof o), "cuMemcpyDtoH");
  check(driver.toHost(behind, behind_data, sizeof behind), "cuMemcpyDtoH");
  return report(find_error(), 0.05);
}
