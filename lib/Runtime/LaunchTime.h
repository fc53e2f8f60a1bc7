/* ---- What a launch is expected to take ----
 *
 * C99 that is C++ too: the launcher library compiles it, and the C that the compiler writes holds
 * it as it stands, so that both choose alike (docs/bundle.md, "A choice"). */

#ifndef TESSERA_LAUNCH_TIME_H
#define TESSERA_LAUNCH_TIME_H

#include <stdint.h>

#ifdef __cplusplus
namespace tessera::runtime {
#endif

/* Iterations of a tile are computed on a stack: numbers are pushed, an operation takes two. */
enum {
  TIME_NUMBER,
  TIME_DIM,
  TIME_INDEX,
  TIME_ADD,
  TIME_SUB,
  TIME_MUL,
  TIME_FLOOR_DIV,
  TIME_CEIL_DIV,
  TIME_MIN,
  TIME_MAX
};
enum { TIME_MOST_TERMS = 256, TIME_DEPTH = 16 };
typedef struct {
  int op;
  int64_t value; /* the number, or which dimension, or which index of the tile in its grid */
} TimeTerm;

/* In which order tiles run that differ in length. */
enum { TIME_LINEAR, TIME_ASCENDING, TIME_DESCENDING };

typedef struct {
  const TimeTerm *terms; /* the iterations of a tile */
  int termCount;
  int order;
  int64_t atATime;                /* tiles that the GPU runs at a time */
  double iterationTime, endsTime; /* in microseconds: an iteration, and a tile beside these */
} TimeModel;

enum { TIME_SAMPLES = 16 };
/* Far beyond what any grid or loop has, and far from what 64 bits hold. */
#define TIME_LIMIT (INT64_C(1) << 40)

static inline int64_t limitTime(double exact, int64_t value) {
  return exact > (double)TIME_LIMIT    ? TIME_LIMIT
         : exact < -(double)TIME_LIMIT ? -TIME_LIMIT
                                       : value;
}

static inline int64_t floorTime(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static inline int64_t applyTime(int op, int64_t a, int64_t b) {
  switch (op) {
  case TIME_ADD:
    return limitTime((double)a + (double)b, a + b);
  case TIME_SUB:
    return limitTime((double)a - (double)b, a - b);
  case TIME_MUL: {
    double exact = (double)a * (double)b;
    int fits = exact < 4e18 && exact > -4e18;
    return limitTime(exact, fits ? a * b : 0);
  }
  case TIME_FLOOR_DIV:
    return b ? floorTime(a, b) : 0;
  case TIME_CEIL_DIV:
    return b ? -floorTime(-a, b) : 0;
  case TIME_MIN:
    return a < b ? a : b;
  default:
    return a > b ? a : b;
  }
}

/* The iterations of the tile at `index`. */
static inline int64_t countIterations(const TimeModel *model, const int64_t *dims,
                                      const int64_t *index) {
  int64_t stack[TIME_DEPTH] = {0};
  int i, top = 0;
  for (i = 0; i < model->termCount; ++i) {
    const TimeTerm *term = &model->terms[i];
    if (term->op == TIME_NUMBER)
      stack[top++] = term->value;
    else if (term->op == TIME_DIM)
      stack[top++] = dims[term->value];
    else if (term->op == TIME_INDEX)
      stack[top++] = index[term->value];
    else {
      --top;
      stack[top - 1] = applyTime(term->op, stack[top - 1], stack[top]);
    }
  }
  return stack[0] < 0 ? 0 : stack[0];
}

/* So many of the places that run tiles are free from `time` on. */
typedef struct {
  double time;
  int64_t places;
} TimeLevel;

/* Gives `count` tiles of one length to whichever place is free first. Returns how many levels there
 * are then; a call adds one at most. */
static inline int placeTiles(TimeLevel *levels, int levelCount, int64_t atATime, int64_t count,
                             double length) {
  int64_t rounds = count / atATime - 1;
  int i;
  if (rounds > 0) { /* In these each place has one. */
    for (i = 0; i < levelCount; ++i)
      levels[i].time += (double)rounds * length;
    count -= rounds * atATime;
  }
  while (count > 0) {
    int64_t taken = count < levels[0].places ? count : levels[0].places;
    double time = levels[0].time + length;
    count -= taken;
    levels[0].places -= taken;
    if (!levels[0].places) {
      --levelCount;
      for (i = 0; i < levelCount; ++i)
        levels[i] = levels[i + 1];
    }
    for (i = levelCount; i > 0 && levels[i - 1].time > time; --i)
      levels[i] = levels[i - 1];
    levels[i].time = time;
    levels[i].places = taken;
    ++levelCount;
  }
  return levelCount;
}

/* The microseconds of a launch whose grid has so many tiles in x, y and z. Tiles of different
 * lengths are told apart at TIME_SAMPLES places of the grid. */
static inline double predictTime(const TimeModel *model, const int64_t *dims, const int64_t *grid) {
  TimeLevel levels[TIME_SAMPLES + 2];
  double lengths[TIME_SAMPLES], work = 0, longest = 0;
  int64_t total = 1, samples = 1, counts[TIME_SAMPLES], index[3];
  int i, d, levelCount = 1, differ = 0;
  for (d = 0; d < 3; ++d)
    total = applyTime(TIME_MUL, total, grid[d]);
  if (total <= 0)
    return 0;
  for (i = 0; i < model->termCount; ++i)
    if (model->terms[i].op == TIME_INDEX && grid[model->terms[i].value] > samples)
      samples = grid[model->terms[i].value];
  if (samples > TIME_SAMPLES)
    samples = TIME_SAMPLES;
  for (i = 0; i < samples; ++i) {
    for (d = 0; d < 3; ++d)
      index[d] = grid[d] * (2 * i + 1) / (2 * samples);
    lengths[i] =
        model->endsTime + model->iterationTime * (double)countIterations(model, dims, index);
    counts[i] = total * (i + 1) / samples - total * i / samples;
    work += lengths[i] * (double)counts[i];
    longest = lengths[i] > longest ? lengths[i] : longest;
    differ |= lengths[i] != lengths[0];
  }
  if (differ && model->order == TIME_LINEAR) {
    /* Long and short ones run in turns: at the end one that is as long as any may be half done. */
    double mean = work / (double)model->atATime + longest / 2;
    return total <= model->atATime || mean < longest ? longest : mean;
  }
  levels[0].time = 0;
  levels[0].places = model->atATime;
  for (i = 0; i < samples; ++i) {
    int next = model->order == TIME_DESCENDING ? (int)samples - 1 - i : i;
    levelCount = placeTiles(levels, levelCount, model->atATime, counts[next], lengths[next]);
  }
  return levels[levelCount - 1].time;
}

#ifdef __cplusplus
} // namespace tessera::runtime
#endif

#endif
