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
  int64_t section; /* tiles of each place in a section, in an order that is not linear */
  int64_t atATime; /* tiles that the GPU runs at a time */
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

/* Sections at the end of a launch in which each tile has its place. Before them no place waits. */
enum { TIME_SECTIONS = 3 };

/* The tiles of a section of `size` of the other indices that sample number `i` stands for. */
static inline int64_t countSample(const int64_t *grid, int64_t size, int samples, int i) {
  return grid[0] * size * (i + 1) / samples - grid[0] * size * i / samples;
}

/* The time of tiles that differ, sorted by the first index in sections of the others. */
static inline double predictSections(const TimeModel *model, const double *lengths, int samples,
                                     const int64_t *grid) {
  TimeLevel levels[TIME_SECTIONS * TIME_SAMPLES + 2];
  int64_t outer = applyTime(TIME_MUL, grid[1], grid[2]),
          total = applyTime(TIME_MUL, outer, grid[0]);
  int64_t places = total < model->atATime ? total : model->atATime;
  int64_t size = applyTime(TIME_MUL, model->section, places) / grid[0], sections, number;
  double work = 0;
  int i, levelCount = 1;
  size = size < 1 ? 1 : size > outer ? outer : size;
  sections = (outer + size - 1) / size;
  number = sections > TIME_SECTIONS ? sections - TIME_SECTIONS : 0;
  for (i = 0; i < samples; ++i)
    work += lengths[i] * (double)countSample(grid, size, samples, i);
  levels[0].time = (double)number * work / (double)model->atATime;
  levels[0].places = model->atATime;
  for (; number < sections; ++number)
    for (i = 0; i < samples; ++i) {
      int next = model->order == TIME_DESCENDING ? samples - 1 - i : i;
      int64_t left = outer - number * size;
      int64_t count = countSample(grid, left < size ? left : size, samples, next);
      levelCount = placeTiles(levels, levelCount, model->atATime, count, lengths[next]);
    }
  return levels[levelCount - 1].time;
}

/* The microseconds of a launch whose grid has so many tiles in x, y and z. Tiles of different
 * lengths are told apart at TIME_SAMPLES places of the grid. */
static inline double predictTime(const TimeModel *model, const int64_t *dims, const int64_t *grid) {
  double lengths[TIME_SAMPLES], work = 0, longest = 0, atATime = (double)model->atATime;
  int64_t total = 1, most = 1, index[3];
  int i, d, samples, differ = 0;
  for (d = 0; d < 3; ++d)
    total = applyTime(TIME_MUL, total, grid[d]);
  if (total <= 0)
    return 0;
  for (i = 0; i < model->termCount; ++i)
    if (model->terms[i].op == TIME_INDEX && grid[model->terms[i].value] > most)
      most = grid[model->terms[i].value];
  samples = most < TIME_SAMPLES ? (int)most : TIME_SAMPLES;
  for (i = 0; i < samples; ++i) {
    for (d = 0; d < 3; ++d)
      index[d] = grid[d] * (2 * i + 1) / (2 * samples);
    lengths[i] =
        model->endsTime + model->iterationTime * (double)countIterations(model, dims, index);
    work += lengths[i] / samples;
    longest = lengths[i] > longest ? lengths[i] : longest;
    differ |= lengths[i] != lengths[0];
  }
  if (!differ)
    return (double)((total + model->atATime - 1) / model->atATime) * longest;
  if (model->order != TIME_LINEAR)
    return predictSections(model, lengths, samples, grid);
  if (total <= model->atATime)
    return longest;
  /* Long and short ones run in turns: at the end one that is as long as any may be half done. */
  work = work * (double)total / atATime + longest / 2;
  return work < longest ? longest : work;
}

#ifdef __cplusplus
} // namespace tessera::runtime
#endif

#endif
