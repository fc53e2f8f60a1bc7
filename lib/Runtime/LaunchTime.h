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

/* A number, and extents that count as often as their factors say. */
typedef struct {
  double number, factors[2];
  int dims[2];
} TimeSum;

/* The same as terms, in the form that most kernels have:
 *
 *   ceil(min(max(factor * index + offset, least), most) / divisor)
 *
 * where the index is the first one of the tile. The divisor is 0 where terms have another form. If
 * the factor is a multiple of the divisor, it and the lower bound are divided already. */
typedef struct {
  double factor, divisor, least;
  double inverseFactor, inverse; /* of the factor's magnitude, and of the divisor */
  TimeSum offset, most;
  int isWhole; /* The factor is a multiple of the divisor. */
} TimeLine;

typedef struct {
  const TimeTerm *terms; /* the iterations of a tile */
  int termCount;
  int order;
  int64_t section; /* tiles of each place in a section, in an order that is not linear */
  int64_t atATime; /* tiles that the GPU runs at a time */
  double iterationTime, endsTime; /* in microseconds: an iteration, and a tile beside these */
  TimeLine line;
} TimeModel;

/* So many tiles are looked at together: a compiler makes vectors of them. */
enum { TIME_LANES = 8 };
/* Far beyond what any grid or loop has, and numbers up to it are exact as doubles. */
#define TIME_LIMIT (INT64_C(1) << 40)

static inline double limitTime(double value) {
  const double limit = (double)TIME_LIMIT;
  value = value < limit ? value : limit;
  return value > -limit ? value : -limit;
}

/* An integer next to the value, without the mathematical library, which programs would have to
 * link, and by vectors: a sum with this has no bits left behind the point. */
static inline double roundTime(double value) {
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) /* The sum may be left out then. */
  return (double)(int64_t)(value < 0 ? value - 0.5 : value + 0.5);
#else
  const double shift = 6755399441055744.0; /* 1.5 * 2^52 */
  return (value + shift) - shift;
#endif
}

/* Quotients of numbers up to TIME_LIMIT, integers and halves, by integers whose inverses may be
 * rounded: a quarter more or less keeps them further from an integer than that counts. */
static inline double floorTime(double value, double inverse) {
  return roundTime(value * inverse + (0.25 * inverse - 0.5));
}
static inline double ceilTime(double value, double inverse) {
  return roundTime(value * inverse - (0.25 * inverse - 0.5));
}

static inline double applyTime(int op, double left, double right) {
  double divisor = right != 0 ? right : 1, magnitude = divisor < 0 ? -divisor : divisor;
  double value = divisor < 0 ? -left : left;
  switch (op) {
  case TIME_ADD:
    return limitTime(left + right);
  case TIME_SUB:
    return limitTime(left - right);
  case TIME_MUL:
    return limitTime(left * right);
  case TIME_FLOOR_DIV:
    return right != 0 ? floorTime(value, 1 / magnitude) : 0;
  case TIME_CEIL_DIV:
    return right != 0 ? ceilTime(value, 1 / magnitude) : 0;
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
    for (i = 0; i < TIME_LANES; ++i)                                                               \
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

/* A number of each of the tiles, or one that all of them have. */
typedef struct {
  double lanes[TIME_LANES], common;
  int isCommon;
} TimeNumber;

static inline void spreadTime(TimeNumber *number) {
  double common = number->common;
  int i;
  if (number->isCommon)
    for (i = 0; i < TIME_LANES; ++i)
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

/* The iterations of TIME_LANES tiles, the indices of tile i at index[0][i] to index[2][i]. */
static inline void countIterations(const TimeModel *model, const int64_t *dims,
                                   double (*index)[TIME_LANES], double *iterations) {
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
      for (i = 0; i < TIME_LANES; ++i)
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
  for (i = 0; i < TIME_LANES; ++i)
    iterations[i] = stack[0].lanes[i] > 0 ? stack[0].lanes[i] : 0;
}

/* A number of each of several tiles. */
typedef struct {
  double of[TIME_LANES];
} TimeLanes;

/* A launch, and what is known of its tiles. */
typedef struct {
  const TimeModel *model;
  const int64_t *dims;
  double grid[3], tiles; /* along each dimension, and all */
  double steps;          /* along the longest of those that lengths depend on, at least 1 */
  double offset, most;   /* of the line */
  double ends[2];        /* the lengths at the first step and at the last one */
  double lower;          /* No time is below it, and where it is certain it is the time. */
  int isCertain;
} TimeExpected;

/* Later than any tile ends. */
#define TIME_NEVER 1e300

static inline double latestTime(double a, double b) { return a > b ? a : b; }
static inline double earliestTime(double a, double b) { return a < b ? a : b; }

/* A sum of a line, rounded where it is counted in iterations. */
static inline double sumExtents(const TimeLine *line, const TimeSum *sum, const int64_t *dims) {
  double value = sum->number + sum->factors[0] * (double)dims[sum->dims[0]] +
                 sum->factors[1] * (double)dims[sum->dims[1]];
  return line->isWhole ? ceilTime(value, line->inverse) : value;
}

/* How long a tile takes by the line. */
static inline double measureStep(const TimeExpected *launch, double step) {
  const TimeLine *line = &launch->model->line;
  double count = latestTime(line->factor * step + launch->offset, line->least);
  count = earliestTime(count, launch->most);
  if (!line->isWhole)
    count = ceilTime(count, line->inverse);
  return launch->model->endsTime + launch->model->iterationTime * count;
}

/* How long tiles at these steps take by terms. All indices are equally far along their dimensions.
 * Steps come and lengths go as copies, so that those of a line need no memory. */
static inline TimeLanes measureTerms(const TimeExpected *launch, TimeLanes steps) {
  double index[3][TIME_LANES], inverse = 0.5 / launch->steps;
  TimeLanes lengths;
  int d, i;
  for (d = 0; d < 3; ++d)
    for (i = 0; i < TIME_LANES; ++i)
      index[d][i] = floorTime((2 * steps.of[i] + 1) * launch->grid[d], inverse);
  countIterations(launch->model, launch->dims, index, lengths.of);
  for (i = 0; i < TIME_LANES; ++i)
    lengths.of[i] = launch->model->endsTime + launch->model->iterationTime * lengths.of[i];
  return lengths;
}

/* The tiles along a dimension of the grid. */
static inline double countTiles(int64_t extent, int64_t divisor) {
  return divisor == 1 ? (double)extent : ceilTime((double)extent, 1.0 / (double)divisor);
}

static inline void expectExactly(TimeExpected *expected, double time) {
  expected->lower = time;
  expected->isCertain = 1;
}

/* What is known of tiles by their terms before their lengths are looked at. */
static inline void expectTerms(TimeExpected *launch) {
  const TimeModel *model = launch->model;
  TimeLanes steps = {{0}}, lengths;
  int i;
  for (i = 0; i < model->termCount; ++i)
    if (model->terms[i].op == TIME_INDEX)
      launch->steps = latestTime(launch->steps, launch->grid[model->terms[i].value]);
  steps.of[1] = launch->steps - 1;
  lengths = measureTerms(launch, steps);
  launch->ends[0] = lengths.of[0];
  launch->ends[1] = lengths.of[1];
  launch->lower = latestTime(lengths.of[0], lengths.of[1]);
}

/* The mean length of tiles by a line that is counted in iterations: those of the steps up to where
 * it is above its lower bound, of those from where it is at its upper one, and between them of the
 * line. One that falls is looked at from its other end. */
static inline double averageLine(const TimeExpected *launch) {
  const TimeModel *model = launch->model;
  double steps = launch->steps, most = launch->most;
  double least = earliestTime(model->line.least, most);
  double slope = model->line.factor, offset = launch->offset, before, until, sum;
  if (slope < 0) {
    offset += slope * (steps - 1);
    slope = -slope;
  }
  before = ceilTime(least - offset, model->line.inverseFactor);
  before = earliestTime(latestTime(before, 0), steps);
  until = ceilTime(most - offset, model->line.inverseFactor);
  until = earliestTime(latestTime(until, before), steps);
  sum = before * least + (steps - until) * most +
        (until - before) * (offset + slope * (before + until - 1) / 2);
  return model->endsTime + model->iterationTime * (sum / steps);
}

/* What is known by the line. As it has an upper bound, and is raised by a lower one only, a tile
 * takes no less in the mean than those at both ends of the line. */
static inline void expectLine(TimeExpected *launch) {
  const TimeModel *model = launch->model;
  const TimeLine *line = &model->line;
  double places = (double)model->atATime, sum = 0, longest;
  int i;
  launch->steps = latestTime(launch->grid[0], 1);
  launch->offset = sumExtents(line, &line->offset, launch->dims);
  launch->most = latestTime(sumExtents(line, &line->most, launch->dims), 0);
  for (i = 0; i < 2; ++i) {
    double step = i * (launch->steps - 1);
    launch->ends[i] = measureStep(launch, step);
    sum += earliestTime(line->factor * step + launch->offset, launch->most);
  }
  sum *= line->isWhole ? 1 : line->inverse;
  longest = latestTime(launch->ends[0], launch->ends[1]);
  if (launch->ends[0] == launch->ends[1])
    expectExactly(launch, ceilTime(launch->tiles, 1 / places) * longest);
  else if (launch->tiles <= places)
    expectExactly(launch, longest);
  else
    launch->lower = latestTime(longest, (1 - 1e-9) * (launch->tiles / places) *
                                            (model->endsTime + model->iterationTime * sum / 2));
}

/* What a launch should take whose grid has so many tiles in x, y and z. The extents are used again
 * when its time is found. */
static inline void expectTime(const TimeModel *model, const int64_t *dims, const double *grid,
                              TimeExpected *expected) {
  int d;
  expected->model = model;
  expected->dims = dims;
  expected->steps = 1;
  expected->isCertain = 0;
  for (d = 0; d < 3; ++d)
    expected->grid[d] = grid[d];
  expected->tiles = limitTime(grid[0] * grid[1] * grid[2]);
  if (expected->tiles <= 0)
    expectExactly(expected, 0);
  else if (model->line.divisor != 0)
    expectLine(expected);
  else
    expectTerms(expected);
}

/* The lengths of tiles. */
typedef struct {
  double mean, longest;
  int differ;
} TimeTiles;

/* Looks at tiles in the middle of equal parts or, where steps are few, at each. */
static inline TimeTiles sampleTiles(const TimeExpected *launch) {
  double count = launch->steps;
  TimeLanes steps, lengths;
  TimeTiles tiles;
  int i, half;
  for (i = 0; i < TIME_LANES / 2; ++i) { /* As far from the one end as others from the other. */
    double step = ceilTime(count * (2 * i + 1), 0.5 / TIME_LANES) - 1;
    steps.of[i] = step;
    steps.of[TIME_LANES - 1 - i] = count - 1 - step;
  }
  for (i = 0; i < TIME_LANES; ++i)
    steps.of[i] = count < TIME_LANES ? earliestTime(i, count - 1) : steps.of[i];
  tiles.longest = latestTime(launch->ends[0], launch->ends[1]);
  tiles.differ = launch->ends[0] != launch->ends[1];
  if (launch->model->line.divisor == 0) {
    lengths = measureTerms(launch, steps);
    for (i = 0; i < TIME_LANES; ++i) {
      tiles.longest = latestTime(tiles.longest, lengths.of[i]);
      tiles.differ |= lengths.of[i] != launch->ends[0];
    }
  } else
    for (i = 0; i < TIME_LANES; ++i)
      lengths.of[i] = measureStep(launch, steps.of[i]);
  for (i = 0; i < TIME_LANES; ++i)
    lengths.of[i] = i < count ? lengths.of[i] : 0;
  for (half = TIME_LANES / 2; half; half /= 2)
    for (i = 0; i < half; ++i)
      lengths.of[i] += lengths.of[i + half];
  tiles.mean = lengths.of[0] / earliestTime(count, TIME_LANES);
  return tiles;
}

/* A section: tiles that are sorted, the longest first. Each place gets two of them in turn, a
 * longer and a shorter one, so that all places are free at about the same time again. Of the rest
 * either some places get one, or all get one and some a second one: the shorter the first one is,
 * the longer is the second one, so that these pairs end together. */
typedef struct {
  double begin, copies, tiles; /* when places are free; tiles of each length, and all */
  double start, last, others;  /* of the rest: its first tile; how many places get its last ones,
                                * and how many do not */
  int isLevel, hasPairs;       /* All places are free when it begins. The last ones make pairs. */
  double next;                 /* copies in the section behind it, 0 where that is not looked at */
} TimeSection;

/* Tiles whose lengths say when places are free. */
enum {
  TIME_SECOND, /* the first one that is the second one of a pair */
  TIME_SINGLE, /* the first one that gets a second one: those before it are longer */
  TIME_SOON,   /* the one behind which the last copy of the next section's first tile begins */
  TIME_BEHIND, /* of the next section, the first tile that begins behind a last one of this one;
                * where there is none, the first one of a pair with a copy of TIME_SECOND */
  TIME_REST,   /* the first one of the rest */
  TIME_MIDDLE, /* the one in the middle of the rest */
  TIME_TILES
};

/* Their lengths; those of the rest only if it is not all of the section. */
static inline TimeLanes measureSection(const TimeExpected *launch, const TimeSection *section) {
  double end = launch->steps - 1, copies = section->copies, inverse = 1 / copies;
  double next = section->next, soon = earliestTime(next, section->others);
  double base = launch->model->order == TIME_DESCENDING ? end : 0, sign = base > 0 ? -1 : 1;
  double second = section->start + (double)launch->model->atATime;
  double single = section->start + section->others;
  TimeLanes at = {{0}}, lengths = {{0}};
  int i;
  at.of[TIME_SECOND] = second;
  at.of[TIME_SINGLE] = single;
  at.of[TIME_SOON] = section->hasPairs ? single - soon : section->tiles - (next - soon);
  at.of[TIME_BEHIND] =
      next > 0 ? section->others : 2 * second - copies - copies * floorTime(second, inverse);
  for (i = 0; i < TIME_BEHIND; ++i)
    at.of[i] = floorTime(at.of[i], inverse);
  at.of[TIME_BEHIND] =
      next > 0 ? floorTime(at.of[TIME_BEHIND], 1 / next) : floorTime(at.of[TIME_BEHIND], inverse);
  if (section->start > 0) {
    at.of[TIME_REST] = floorTime(section->start, inverse);
    at.of[TIME_MIDDLE] = floorTime((section->start + section->tiles) / 2, inverse);
  }
  for (i = 0; i < TIME_TILES; ++i)
    at.of[i] = base + sign * earliestTime(at.of[i], end);
  if (launch->model->line.divisor == 0)
    return measureTerms(launch, at);
  for (i = 0; i < TIME_REST; ++i)
    lengths.of[i] = measureStep(launch, at.of[i]);
  for (i = TIME_REST; section->start > 0 && i < TIME_TILES; ++i)
    lengths.of[i] = measureStep(launch, at.of[i]);
  return lengths;
}

/* When a launch ends as far as a section says, and no less than `end`. */
static inline double endSection(const TimeExpected *launch, double mean, TimeSection *section,
                                double end) {
  TimeLanes lengths = {{0}};
  double places = (double)launch->model->atATime, rest, early, late;
  double level = section->begin, first = latestTime(launch->ends[0], launch->ends[1]);
  double last = earliestTime(launch->ends[0], launch->ends[1]);
  section->tiles = section->copies * launch->steps;
  section->start = 2 * places * floorTime(section->tiles, 0.5 / places);
  rest = section->tiles - section->start;
  section->hasPairs = rest > places;
  section->last = section->hasPairs ? rest - places : rest;
  section->others = places - section->last;
  if (section->last > 0 || section->next > section->others)
    lengths = measureSection(launch, section);
  if (section->start > 0)
    level += (section->tiles * mean - rest * lengths.of[TIME_MIDDLE]) / places;
  if (section->isLevel && rest > 0)
    end = latestTime(end, level + (section->start > 0 ? lengths.of[TIME_REST] : first));
  /* `early` is when places are free for the longest tiles of the next section, `late` when those of
   * the last tiles are. */
  if (section->hasPairs) {
    double pair = level + 2 * lengths.of[TIME_SECOND], single = level + lengths.of[TIME_SINGLE];
    early =
        section->next > section->others ? pair : earliestTime(pair, level + lengths.of[TIME_SOON]);
    late = earliestTime(pair, single + last);
    end = latestTime(end, latestTime(pair, earliestTime(pair, single) + last));
    if (section->next <= 0)
      end = latestTime(end, level + lengths.of[TIME_SECOND] + lengths.of[TIME_BEHIND]);
  } else {
    early = section->next > section->others ? level + lengths.of[TIME_SOON] : level;
    late = level + last;
  }
  if (section->next > 0)
    end = latestTime(end, early + first);
  if (section->last > 0 && section->next * launch->steps > section->others)
    end = latestTime(end, late + lengths.of[TIME_BEHIND]);
  return end;
}

/* Whether all places are free at about the same time behind so many sections of so many tiles. With
 * little more than an odd number of tiles for each place, two sections in turn see to it: the
 * longest tiles of one go where the other one ended soonest. */
static inline int areLevel(double sections, double tiles, double places) {
  double rest = tiles - 2 * places * floorTime(tiles, 0.5 / places);
  return rest >= places && rest < 1.25 * places && floorTime(sections, 0.5) * 2 == sections;
}

/* When a launch of sorted tiles ends, and no less than `end`; where that is more than `most`,
 * perhaps not all of it. Before the last two sections no place waits. */
static inline double endSections(const TimeExpected *launch, double mean, double end, double most) {
  double places = (double)launch->model->atATime, steps = launch->steps;
  double inverse = 1 / steps, copies = floorTime(launch->tiles, inverse);
  double size = (double)launch->model->section * earliestTime(launch->tiles, places);
  double sections, whole;
  TimeSection section;
  size = floorTime(size, inverse);
  size = size < 1 ? 1 : earliestTime(size, copies);
  sections = ceilTime(copies, 1 / size);
  whole = size * steps * mean / places;
  section.copies = copies - (sections - 1) * size;
  if (2 * section.copies < size) { /* It belongs to the section before. */
    sections -= 1;
    section.copies += size;
  }
  section.isLevel = sections <= 1 || areLevel(sections - 1, size * steps, places);
  if (!section.isLevel) {
    TimeSection before;
    before.begin = (sections - 2) * whole;
    before.copies = size;
    before.isLevel = 1;
    before.next = section.copies;
    end = endSection(launch, mean, &before, end);
  }
  if (end <= most && (section.isLevel || section.copies * steps > places)) {
    section.begin = (sections - 1) * whole;
    section.next = 0;
    end = endSection(launch, mean, &section, end);
  }
  return end;
}

/* The microseconds of a launch, or more than `most` where they are. */
static inline double findTime(const TimeExpected *launch, double most) {
  const TimeModel *model = launch->model;
  double places, work, rounds;
  TimeTiles tiles;
  if (launch->isCertain)
    return launch->lower;
  if (model->line.isWhole) {
    tiles.mean = averageLine(launch);
    tiles.longest = latestTime(launch->ends[0], launch->ends[1]);
    tiles.differ = 1;
  } else
    tiles = sampleTiles(launch);
  places = (double)model->atATime;
  rounds = launch->tiles / places;
  work = tiles.mean * rounds;
  if (!tiles.differ)
    return ceilTime(launch->tiles, 1 / places) * tiles.longest;
  if (rounds <= 1)
    return tiles.longest;
  /* At the end one that is as long as any may be half done. */
  if (model->order != (launch->ends[1] > launch->ends[0] ? TIME_DESCENDING : TIME_ASCENDING))
    return latestTime(work + tiles.longest / 2, tiles.longest);
  if (work > most)
    return work;
  return endSections(launch, tiles.mean, latestTime(work, tiles.longest), most);
}

/* The first of the launches that take the least time. Times are found first where they may be the
 * least, which leaves most others out. */
static inline int findFastestLaunch(const TimeExpected *launches, int count) {
  double least;
  int i, first = 0, fastest;
  for (i = 1; i < count; ++i)
    if (launches[i].lower < launches[first].lower)
      first = i;
  fastest = first;
  least = findTime(&launches[first], TIME_NEVER);
  for (i = 0; i < count; ++i) {
    double time;
    if (i == first || launches[i].lower > least)
      continue;
    time = findTime(&launches[i], least);
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
