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

/* So many tiles of different lengths are looked at, together: a compiler makes vectors of them. */
enum { TIME_SAMPLES = 8 };
/* Far beyond what any grid or loop has, and numbers up to it are exact as doubles. */
#define TIME_LIMIT (INT64_C(1) << 40)

static inline double limitTime(double value) {
  const double limit = (double)TIME_LIMIT;
  value = value < limit ? value : limit;
  return value > -limit ? value : -limit;
}

/* Without the mathematical library, which programs would have to link. */
static inline double floorTime(double value) {
  double whole = (double)(int64_t)value;
  return whole > value ? whole - 1 : whole;
}

/* left[i] becomes its result with right[i]. A quotient of numbers up to TIME_LIMIT is never rounded
 * up to the next integer. */
static inline void applyTime(int op, double *left, const double *right, int lanes) {
  int i;
  switch (op) {
  case TIME_ADD:
    for (i = 0; i < lanes; ++i)
      left[i] = limitTime(left[i] + right[i]);
    break;
  case TIME_SUB:
    for (i = 0; i < lanes; ++i)
      left[i] = limitTime(left[i] - right[i]);
    break;
  case TIME_MUL:
    for (i = 0; i < lanes; ++i)
      left[i] = limitTime(left[i] * right[i]);
    break;
  case TIME_FLOOR_DIV:
    for (i = 0; i < lanes; ++i)
      left[i] = right[i] != 0 ? floorTime(left[i] / right[i]) : 0;
    break;
  case TIME_CEIL_DIV:
    for (i = 0; i < lanes; ++i)
      left[i] = right[i] != 0 ? -floorTime(-left[i] / right[i]) : 0;
    break;
  case TIME_MIN:
    for (i = 0; i < lanes; ++i)
      left[i] = left[i] < right[i] ? left[i] : right[i];
    break;
  default:
    for (i = 0; i < lanes; ++i)
      left[i] = left[i] > right[i] ? left[i] : right[i];
  }
}

/* The iterations of `lanes` tiles, the indices of tile i at index[0][i] to index[2][i]. */
static inline void countIterations(const TimeModel *model, const int64_t *dims,
                                   double (*index)[TIME_SAMPLES], double *iterations, int lanes) {
  double stack[TIME_DEPTH][TIME_SAMPLES];
  int i, t, top = 0;
  for (t = 0; t < model->termCount; ++t) {
    const TimeTerm *term = &model->terms[t];
    if (term->op == TIME_INDEX) {
      for (i = 0; i < lanes; ++i)
        stack[top][i] = index[term->value][i];
      ++top;
    } else if (term->op <= TIME_DIM) {
      double number = limitTime((double)(term->op == TIME_DIM ? dims[term->value] : term->value));
      for (i = 0; i < lanes; ++i)
        stack[top][i] = number;
      ++top;
    } else {
      --top;
      applyTime(term->op, stack[top - 1], stack[top], lanes);
    }
  }
  for (i = 0; i < lanes; ++i)
    iterations[i] = stack[0][i] > 0 ? stack[0][i] : 0;
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
enum { TIME_SECTIONS = 2 };

/* Of `tiles`, those that sample `i` of `samples` stands for. */
static inline int64_t countSample(double tiles, int samples, int i) {
  return (int64_t)floorTime(tiles * (i + 1) / samples) - (int64_t)floorTime(tiles * i / samples);
}

/* The time of tiles that differ, sorted by the first index in sections of the others. */
static inline double predictSections(const TimeModel *model, const double *lengths, int samples,
                                     double mean, const double *grid) {
  TimeLevel levels[TIME_SECTIONS * TIME_SAMPLES + 2];
  double outer = grid[1] * grid[2], places = (double)model->atATime, number, left;
  double running = outer * grid[0] < places ? outer * grid[0] : places;
  double size = floorTime((double)model->section * running / grid[0]);
  int i, levelCount = 1;
  size = size < 1 ? 1 : size > outer ? outer : size;
  number = -floorTime(-outer / size) - TIME_SECTIONS;
  number = number > 0 ? number : 0;
  levels[0].time = number * size * grid[0] * mean / places;
  levels[0].places = model->atATime;
  for (left = outer - number * size; left > 0; left -= size)
    for (i = 0; i < samples; ++i) {
      int next = model->order == TIME_DESCENDING ? samples - 1 - i : i;
      double tiles = grid[0] * (left < size ? left : size);
      levelCount = placeTiles(levels, levelCount, model->atATime, countSample(tiles, samples, next),
                              lengths[next]);
    }
  return levels[levelCount - 1].time;
}

/* Which of `extent` places sample `i` is at: the middle of its part or, between two of them, that
 * which is nearer to the end, so that samples are in the middle as a whole. */
static inline double sampleTime(double extent, int samples, int i) {
  double middle = extent * (2 * i + 1) / (2 * samples);
  return 2 * i < samples ? -floorTime(-middle) - 1 : floorTime(middle);
}

/* The microseconds of a launch whose grid has so many tiles in x, y and z. Tiles of different
 * lengths are told apart at TIME_SAMPLES places of the grid. */
static inline double predictTime(const TimeModel *model, const int64_t *dims, const int64_t *grid) {
  double index[3][TIME_SAMPLES], lengths[TIME_SAMPLES], extents[3], total = 1, most = 1, mean = 0;
  double longest = 0, places = (double)model->atATime, work;
  int i, d, samples, used[3] = {0, 0, 0}, differ = 0;
  for (d = 0; d < 3; ++d) {
    extents[d] = limitTime((double)grid[d]);
    total = limitTime(total * extents[d]);
  }
  if (total <= 0)
    return 0;
  for (i = 0; i < model->termCount; ++i)
    if (model->terms[i].op == TIME_INDEX) {
      used[model->terms[i].value] = 1;
      if (extents[model->terms[i].value] > most)
        most = extents[model->terms[i].value];
    }
  samples = most < TIME_SAMPLES ? (int)most : TIME_SAMPLES;
  for (d = 0; d < 3; ++d)
    for (i = 0; used[d] && i < TIME_SAMPLES; ++i)
      index[d][i] = i < samples ? sampleTime(extents[d], samples, i) : 0;
  if (samples == 1)
    countIterations(model, dims, index, lengths, 1);
  else
    countIterations(model, dims, index, lengths, TIME_SAMPLES);
  for (i = 0; i < samples; ++i) {
    lengths[i] = model->endsTime + model->iterationTime * lengths[i];
    mean += lengths[i] / samples;
    longest = lengths[i] > longest ? lengths[i] : longest;
    differ |= lengths[i] != lengths[0];
  }
  if (!differ)
    return -floorTime(-total / places) * longest;
  if (total <= places)
    return longest;
  if (model->order != TIME_LINEAR)
    return predictSections(model, lengths, samples, mean, extents);
  /* Long and short ones run in turns: at the end one that is as long as any may be half done. */
  work = mean * total / places + longest / 2;
  return work < longest ? longest : work;
}

#ifdef __cplusplus
} // namespace tessera::runtime
#endif

#endif
