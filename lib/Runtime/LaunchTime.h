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

/* Without the mathematical library, which programs would have to link, and by vectors: a sum with
 * this has no bits left behind the point. */
static inline double floorTime(double value) {
  const double shift = 6755399441055744.0; /* 1.5 * 2^52 */
  double nearest = (value + shift) - shift;
  return nearest - (nearest > value ? 1.0 : 0.0);
}

/* A quotient of numbers up to TIME_LIMIT is never rounded up to the next integer. */
static inline double applyTime(int op, double left, double right) {
  double divisor = right != 0 ? right : 1;
  switch (op) {
  case TIME_ADD:
    return limitTime(left + right);
  case TIME_SUB:
    return limitTime(left - right);
  case TIME_MUL:
    return limitTime(left * right);
  case TIME_FLOOR_DIV:
    return right != 0 ? floorTime(left / divisor) : 0;
  case TIME_CEIL_DIV:
    return right != 0 ? -floorTime(-left / divisor) : 0;
  case TIME_MIN:
    return left < right ? left : right;
  default:
    return left > right ? left : right;
  }
}

/* left[i] becomes its result with right[i]: a loop for each operation, as compilers make vectors
 * of. */
#define TIME_APPLY(OPERATION, RIGHT)                                                               \
  case OPERATION:                                                                                  \
    for (i = 0; i < TIME_SAMPLES; ++i)                                                             \
      left[i] = applyTime(OPERATION, left[i], RIGHT);                                              \
    break;
#define TIME_APPLY_EACH(RIGHT)                                                                     \
  switch (op) {                                                                                    \
    TIME_APPLY(TIME_ADD, RIGHT)                                                                    \
    TIME_APPLY(TIME_SUB, RIGHT)                                                                    \
    TIME_APPLY(TIME_MUL, RIGHT)                                                                    \
    TIME_APPLY(TIME_FLOOR_DIV, RIGHT)                                                              \
    TIME_APPLY(TIME_CEIL_DIV, RIGHT)                                                               \
    TIME_APPLY(TIME_MIN, RIGHT)                                                                    \
    TIME_APPLY(TIME_MAX, RIGHT)                                                                    \
  }
static inline void applyTimes(int op, double *left, const double *right) {
  int i;
  TIME_APPLY_EACH(right[i])
}
static inline void applyCommonTime(int op, double *left, double right) {
  int i;
  TIME_APPLY_EACH(right)
}
#undef TIME_APPLY_EACH
#undef TIME_APPLY

/* A number of each of the samples, or one that all of them have. */
typedef struct {
  double lanes[TIME_SAMPLES], common;
  int isCommon;
} TimeNumber;

static inline void spreadTime(TimeNumber *number) {
  double common = number->common;
  int i;
  if (number->isCommon)
    for (i = 0; i < TIME_SAMPLES; ++i)
      number->lanes[i] = common;
  number->isCommon = 0;
}

static inline void operateCommonTime(int op, TimeNumber *left, double right) {
  if (left->isCommon)
    left->common = applyTime(op, left->common, right);
  else
    applyCommonTime(op, left->lanes, right);
}

static inline void operateTime(int op, TimeNumber *left, TimeNumber *right) {
  if (right->isCommon) {
    operateCommonTime(op, left, right->common);
    return;
  }
  spreadTime(left);
  applyTimes(op, left->lanes, right->lanes);
}

/* The iterations of TIME_SAMPLES tiles, the indices of tile i at index[0][i] to index[2][i]. */
static inline void countIterations(const TimeModel *model, const int64_t *dims,
                                   double (*index)[TIME_SAMPLES], double *iterations) {
  TimeNumber stack[TIME_DEPTH];
  int i, t, top = 0, count = model->termCount;
  for (t = 0; t < count; ++t) {
    const TimeTerm *term = &model->terms[t];
    double common;
    if (term->op > TIME_INDEX) {
      --top;
      operateTime(term->op, &stack[top - 1], &stack[top]);
      continue;
    }
    if (term->op == TIME_INDEX) {
      for (i = 0; i < TIME_SAMPLES; ++i)
        stack[top].lanes[i] = index[term->value][i];
      stack[top++].isCommon = 0;
      continue;
    }
    common = limitTime((double)(term->op == TIME_DIM ? dims[term->value] : term->value));
    if (top && t + 1 < count && term[1].op > TIME_INDEX) { /* It is taken at once. */
      operateCommonTime(term[1].op, &stack[top - 1], common);
      ++t;
    } else {
      stack[top].common = common;
      stack[top++].isCommon = 1;
    }
  }
  spreadTime(&stack[0]);
  for (i = 0; i < TIME_SAMPLES; ++i)
    iterations[i] = stack[0].lanes[i] > 0 ? stack[0].lanes[i] : 0;
}

/* Sections at the end of a launch in which each tile has its place. Before them no place waits. */
enum { TIME_SECTIONS = 2 };
/* Each sample of a section makes one level more at most. */
enum { TIME_LEVELS = TIME_SECTIONS * TIME_SAMPLES + 1 };

/* When places are free, the first of them first: from times[i] on, places[i] of them, for `first`
 * and all behind it. The last one is no level: no place is free then. */
typedef struct {
  double times[TIME_LEVELS + 1];
  int64_t places[TIME_LEVELS + 1];
  int first;
} TimeLevels;

/* Later than any tile ends. */
#define TIME_NEVER 1e300

/* Gives `count` tiles of one length to whichever place is free first. There is one level more then
 * at most. */
static inline void placeTiles(TimeLevels *levels, int64_t atATime, int64_t count, double length) {
  double *times = levels->times;
  int64_t *places = levels->places;
  int i;
  if (count >= 2 * atATime) {
    int64_t rounds = count / atATime - 1; /* In these each place has one. */
    for (i = levels->first; i < TIME_LEVELS; ++i)
      times[i] += (double)rounds * length;
    count -= rounds * atATime;
  }
  while (count > 0) {
    int first = levels->first;
    double time = times[first] + length;
    int64_t taken = places[first];
    if (taken > count) { /* The rest of the level stays, and the added one has a slot of its own. */
      taken = count;
      places[first--] -= count;
      levels->first = first;
    }
    count -= taken;
    for (i = first; times[i + 1] < time; ++i) {
      times[i] = times[i + 1];
      places[i] = places[i + 1];
    }
    times[i] = time;
    places[i] = taken;
  }
}

/* The lengths of a launch's tiles. */
typedef struct {
  double extents[3], total; /* of the grid */
  double lengths[TIME_SAMPLES], mean, longest;
  int samples, differ;
} TimeTiles;

/* Of `tiles`, those that each of `samples` stands for. */
static inline void countSamples(double tiles, int samples, int64_t *counts) {
  int64_t before = 0;
  int i;
  for (i = 0; i < samples; ++i) {
    int64_t until = (int64_t)(tiles * (i + 1) / samples);
    counts[i] = until - before;
    before = until;
  }
}

/* The time of tiles that differ, sorted by the first index in sections of the others. Where it is
 * not below `least`, at least that. */
static inline double simulateSections(const TimeModel *model, const TimeTiles *tiles,
                                      double least) {
  const double *grid = tiles->extents, *lengths = tiles->lengths;
  TimeLevels levels;
  int64_t counts[TIME_SAMPLES];
  double outer = grid[1] * grid[2], places = (double)model->atATime, number, left;
  double running = outer * grid[0] < places ? outer * grid[0] : places;
  double size = floorTime((double)model->section * running / grid[0]);
  int i, section, samples = tiles->samples;
  size = size < 1 ? 1 : size > outer ? outer : size;
  number = -floorTime(-outer / size) - TIME_SECTIONS;
  number = number > 0 ? number : 0;
  levels.first = TIME_LEVELS - 1;
  levels.times[levels.first] = number * size * grid[0] * tiles->mean / places;
  levels.places[levels.first] = model->atATime;
  levels.times[TIME_LEVELS] = TIME_NEVER;
  left = outer - number * size;
  /* Numbers beyond those that doubles hold exactly may leave more. */
  for (section = 0; section < TIME_SECTIONS && left > 0; ++section, left -= size) {
    double count = grid[0] * (left < size ? left : size);
    if (samples == TIME_SAMPLES) /* The usual number, by which compilers divide fast. */
      countSamples(count, TIME_SAMPLES, counts);
    else
      countSamples(count, samples, counts);
    for (i = 0; i < samples; ++i) {
      int next = model->order == TIME_DESCENDING ? samples - 1 - i : i;
      placeTiles(&levels, model->atATime, counts[next], lengths[next]);
      if (levels.times[TIME_LEVELS - 1] >= least)
        return levels.times[TIME_LEVELS - 1];
    }
  }
  return levels.times[TIME_LEVELS - 1];
}

/* Which of `extent` places sample `i` is at: the middle of its part or, between two of them, that
 * which is nearer to the end, so that samples are in the middle as a whole. */
static inline double sampleTime(double extent, int samples, int i) {
  double middle = extent * (2 * i + 1) / (2 * samples);
  return 2 * i < samples ? -floorTime(-middle) - 1 : floorTime(middle);
}

/* What follows from the iterations of the samples, which `lengths` are at first. */
static inline void measureTiles(const TimeModel *model, TimeTiles *tiles, int samples) {
  int i;
  for (i = 0; i < samples; ++i) {
    double length = model->endsTime + model->iterationTime * tiles->lengths[i];
    tiles->lengths[i] = length;
    tiles->mean += length / samples;
    tiles->longest = length > tiles->longest ? length : tiles->longest;
    tiles->differ |= length != tiles->lengths[0];
  }
}

/* Where the samples are in the dimensions of the grid that are used. */
static inline void placeSamples(const int *used, const double *extents, int samples,
                                double (*index)[TIME_SAMPLES]) {
  int i, d;
  for (d = 0; d < 3; ++d)
    for (i = 0; used[d] && i < TIME_SAMPLES; ++i)
      index[d][i] = i < samples ? sampleTime(extents[d], samples, i) : 0;
}

/* Tiles of different lengths are told apart at TIME_SAMPLES places of the grid, which has so many
 * tiles in x, y and z. */
static inline void findTiles(const TimeModel *model, const int64_t *dims, const int64_t *grid,
                             TimeTiles *tiles) {
  double index[3][TIME_SAMPLES], most = 1;
  int i, d, used[3] = {0, 0, 0};
  tiles->total = 1;
  tiles->mean = tiles->longest = 0;
  tiles->differ = 0;
  for (d = 0; d < 3; ++d) {
    tiles->extents[d] = limitTime((double)grid[d]);
    tiles->total = limitTime(tiles->total * tiles->extents[d]);
  }
  for (i = 0; i < model->termCount; ++i)
    if (model->terms[i].op == TIME_INDEX) {
      used[model->terms[i].value] = 1;
      if (tiles->extents[model->terms[i].value] > most)
        most = tiles->extents[model->terms[i].value];
    }
  if (most >= TIME_SAMPLES) { /* As below; compilers make other code of a number that they know. */
    tiles->samples = TIME_SAMPLES;
    placeSamples(used, tiles->extents, TIME_SAMPLES, index);
    countIterations(model, dims, index, tiles->lengths);
    measureTiles(model, tiles, TIME_SAMPLES);
    return;
  }
  tiles->samples = (int)most;
  placeSamples(used, tiles->extents, tiles->samples, index);
  countIterations(model, dims, index, tiles->lengths);
  measureTiles(model, tiles, tiles->samples);
}

/* What a launch should take. */
typedef struct {
  const TimeModel *model;
  TimeTiles tiles;
  double lower, upper; /* bounds of the time; the same where it is known */
} TimeExpected;

static inline void expectExactly(TimeExpected *expected, double time) {
  expected->lower = expected->upper = time;
}

/* What follows from the tiles. */
static inline void boundTime(TimeExpected *expected) {
  const TimeModel *model = expected->model;
  const TimeTiles *tiles = &expected->tiles;
  double total = tiles->total, longest = tiles->longest, places = (double)model->atATime, work;
  double slack = longest * (TIME_SECTIONS * TIME_SAMPLES) / places;
  work = tiles->mean * total / places;
  if (total <= 0)
    expectExactly(expected, 0);
  else if (!tiles->differ)
    expectExactly(expected, -floorTime(-total / places) * longest);
  else if (total <= places)
    expectExactly(expected, longest);
  else if (model->order == TIME_LINEAR) {
    /* Long and short ones run in turns: at the end one that is as long as any may be half done. */
    work += longest / 2;
    expectExactly(expected, work < longest ? longest : work);
  } else {
    /* No place is done before the mean of all, and no tile begins after it. In each section a
     * sample stands for a tile more or less than its part. */
    expected->lower = work - slack;
    expected->upper = work + slack + longest;
    /* placeTiles does not look for the first place where a sample stands for two tiles of each. */
    if ((double)model->section >= TIME_SAMPLES || tiles->extents[0] >= TIME_SAMPLES * places)
      expected->upper = TIME_NEVER;
  }
}

/* What a launch should take whose grid has so many tiles in x, y and z. */
static inline void expectTime(const TimeModel *model, const int64_t *dims, const int64_t *grid,
                              TimeExpected *expected) {
  expected->model = model;
  findTiles(model, dims, grid, &expected->tiles);
  boundTime(expected);
}

/* The microseconds of a launch. Where they are surely not below `least`, at least that, which takes
 * less time to say. */
static inline double findTime(const TimeExpected *expected, double least) {
  if (expected->lower == expected->upper || expected->lower >= least)
    return expected->lower;
  return simulateSections(expected->model, &expected->tiles, least);
}

/* The first of the launches that take the least time. What bounds tell apart is not simulated, and
 * of the others first that whose bounds are the least, which leaves most others out soonest. */
static inline int findFastestLaunch(const TimeExpected *launches, int count) {
  double least;
  int i, fastest = 0, isCertain = 1;
  for (i = 1; i < count; ++i)
    if (launches[i].lower + launches[i].upper < launches[fastest].lower + launches[fastest].upper)
      fastest = i;
  for (i = 0; i < count; ++i)
    isCertain &= i == fastest || launches[i].lower > launches[fastest].upper;
  if (isCertain)
    return fastest;
  least = findTime(&launches[fastest], TIME_NEVER);
  for (i = 0; i < count; ++i) {
    /* Of equal times that of an earlier one counts, so that it has to be found. */
    double limit = least * (1 + 1e-9) + 1e-300, time;
    if (i == fastest || launches[i].lower > limit)
      continue;
    time = findTime(&launches[i], limit);
    if (time < least || (time == least && i < fastest)) {
      least = time;
      fastest = i;
    }
  }
  return fastest;
}

#ifdef __cplusplus
} // namespace tessera::runtime
#endif

#endif
