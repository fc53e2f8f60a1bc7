/* ---- What a launch is expected to take ----
 *
 * C99 that is C++ too: the launcher library compiles it, and the C that the compiler writes holds
 * it as it stands, so that both choose alike (docs/bundle.md, "A choice"). */

#ifndef TESSERA_LAUNCH_TIME_H
#define TESSERA_LAUNCH_TIME_H

#ifndef TESSERA_TIME_TERMS_H /* C that the compiler writes has it in front of this. */
#include "lib/Runtime/TimeTerms.h"
#endif

#if defined(__GNUC__)
#define TIME_INLINE static inline __attribute__((always_inline))
#else
#define TIME_INLINE static inline
#endif

#ifdef __cplusplus
namespace tessera::runtime {
#endif

/* In which order tiles run that differ in length. */
enum { TIME_LINEAR, TIME_ASCENDING, TIME_DESCENDING };

/* A number, and extents that count as often as their factors say. */
typedef struct {
  double number, factors[2];
  int64_t dims[2];
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
} LinearIterations;

/* The tiles along a dimension of the grid: an extent, or the number where `dim` is below 0, which
 * may be divided, rounded up. */
typedef struct {
  int64_t dim;
  int isDivided;
  double number, inverse; /* and of what it is divided by the inverse */
} TimeGrid;

/* An iteration takes `time` at least where an extent of `dims` is no whole number of sectors: rows
 * that begin and end amid sectors of memory take longer to come. */
typedef struct {
  int64_t dims[2];
  double perSector; /* the inverse of a sector's elements, 0 where rows are always whole */
  double time;
} TimeRows;

typedef struct {
  const TimeTerm *terms; /* the iterations of a tile */
  int termCount;
  int order;
  int64_t section; /* tiles of each place in a section, in an order that is not linear */
  int64_t atATime; /* tiles that the GPU runs at a time */
  double iterationTime, endsTime; /* in microseconds: an iteration, and a tile beside these */
  TimeGrid grid[3];
  LinearIterations line;
  TimeRows rows;
  double cluster, perCluster; /* tiles along the first dimension that run together, the inverse */
} TimeModel;

/* A number of each of several tiles. */
typedef struct {
  double of[TIME_LANES];
} TimeLanes;

/* A launch, and what is known of its tiles. */
typedef struct {
  const TimeModel *model;
  const double *dims;
  double grid[3], tiles; /* along each dimension, and all */
  double rounds;         /* tiles of each place */
  double steps;          /* along the longest of those that lengths depend on, at least 1 */
  double offset, most;   /* of the line */
  double iterationTime;  /* with these rows */
  double lower;          /* No time is below it, and where it is certain it is the time. */
  int isCertain;
} TimeExpected;

/* Later than any tile ends. */
#define TIME_NEVER 1e300

static inline double latestTime(double a, double b) { return a > b ? a : b; }
static inline double earliestTime(double a, double b) { return a < b ? a : b; }

/* A sum of a line, rounded where it is counted in iterations. */
static inline double sumExtents(const LinearIterations *line, const TimeSum *sum,
                                const double *dims) {
  double value =
      sum->number + sum->factors[0] * dims[sum->dims[0]] + sum->factors[1] * dims[sum->dims[1]];
  return line->isWhole ? ceilTime(value, line->inverse) : value;
}

/* How long a tile takes by the line. */
static inline double measureStep(const TimeExpected *launch, double step, int isWhole) {
  const LinearIterations *line = &launch->model->line;
  double count = latestTime(line->factor * step + launch->offset, line->least);
  count = earliestTime(count, launch->most);
  if (!isWhole)
    count = ceilTime(count, line->inverse);
  return launch->model->endsTime + launch->iterationTime * count;
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
  countIterations(launch->model->terms, launch->model->termCount, launch->dims, index, lengths.of);
  for (i = 0; i < TIME_LANES; ++i)
    lengths.of[i] = launch->model->endsTime + launch->iterationTime * lengths.of[i];
  return lengths;
}

static inline double findIterationTime(const TimeModel *model, const double *dims) {
  const TimeRows *rows = &model->rows;
  double time = model->iterationTime;
  int i;
  if (rows->perSector == 0)
    return time;
  for (i = 0; i < 2; ++i) {
    double sectors = dims[rows->dims[i]] * rows->perSector;
    if (roundTime(sectors) != sectors)
      time = latestTime(time, rows->time);
  }
  return time;
}

static inline double countTiles(const TimeGrid *grid, const double *dims) {
  double extent = grid->dim < 0 ? grid->number : dims[grid->dim];
  return grid->isDivided ? ceilTime(extent, grid->inverse) : extent;
}

static inline void expectExactly(TimeExpected *expected, double time) {
  expected->lower = time;
  expected->isCertain = 1;
}

/* Of tiles by their terms: how many steps differ. */
static inline void expectTerms(TimeExpected *launch) {
  const TimeModel *model = launch->model;
  int i;
  launch->steps = 1;
  launch->lower = 0;
  for (i = 0; i < model->termCount; ++i)
    if (model->terms[i].op == TIME_INDEX)
      launch->steps = latestTime(launch->steps, launch->grid[model->terms[i].value]);
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
  return model->endsTime + launch->iterationTime * (sum * (1 / steps));
}

/* What is known by the line. As it has an upper bound, and is raised by a lower one only, a tile
 * takes no less in the mean than those at both ends of the line, and one as long as the longer one.
 */
TIME_INLINE void expectLine(TimeExpected *launch) {
  const TimeModel *model = launch->model;
  const LinearIterations *line = &model->line;
  double offset = sumExtents(line, &line->offset, launch->dims), scale;
  double most = latestTime(sumExtents(line, &line->most, launch->dims), 0), first, last;
  launch->steps = launch->grid[0];
  launch->offset = offset;
  launch->most = most;
  first = earliestTime(offset, most);
  last = earliestTime(line->factor * (launch->steps - 1) + offset, most);
  scale = launch->iterationTime * (line->isWhole ? 1 : line->inverse);
  launch->lower =
      (1 - 1e-9) * latestTime(launch->rounds * (model->endsTime + 0.5 * scale * (first + last)),
                              model->endsTime + scale * latestTime(first, last));
}

/* What a launch should take. The extents are used again when its time is found. */
TIME_INLINE void expectTime(const TimeModel *model, const double *dims, TimeExpected *expected) {
  int d;
  expected->model = model;
  expected->dims = dims;
  expected->isCertain = 0;
  for (d = 0; d < 3; ++d)
    expected->grid[d] = countTiles(&model->grid[d], dims);
  if (model->cluster > 1)
    expected->grid[0] = ceilTime(expected->grid[0], model->perCluster) * model->cluster;
  expected->iterationTime = findIterationTime(model, dims);
  expected->tiles = limitTime(expected->grid[0] * expected->grid[1] * expected->grid[2]);
  expected->rounds = expected->tiles / (double)model->atATime;
  if (expected->tiles <= 0)
    expectExactly(expected, 0);
  else if (model->line.divisor != 0)
    expectLine(expected);
  else
    expectTerms(expected);
}

/* The lengths of tiles, and how many places they have. */
typedef struct {
  double ends[2]; /* at the first step and at the last one */
  double mean, longest;
  int differ;
  double places, perPlace; /* and its inverse */
  double begin, direction; /* the step that comes first in the order, and 1 or -1 */
} TimeTiles;

/* In which form the iterations of a tile are computed. Where the form is known, compilers leave out
 * what belongs to others. */
typedef enum { TIME_TERMS, TIME_LINE, TIME_WHOLE } TimeForm;

static inline TimeForm findForm(const TimeExpected *launch) {
  const LinearIterations *line = &launch->model->line;
  return line->isWhole ? TIME_WHOLE : line->divisor != 0 ? TIME_LINE : TIME_TERMS;
}

TIME_INLINE TimeTiles measureEnds(const TimeExpected *launch, TimeForm form) {
  TimeTiles tiles;
  if (form == TIME_TERMS) {
    TimeLanes steps = {{0}}, lengths;
    steps.of[1] = launch->steps - 1;
    lengths = measureTerms(launch, steps);
    tiles.ends[0] = lengths.of[0];
    tiles.ends[1] = lengths.of[1];
  } else {
    tiles.ends[0] = measureStep(launch, 0, form == TIME_WHOLE);
    tiles.ends[1] = measureStep(launch, launch->steps - 1, form == TIME_WHOLE);
  }
  tiles.mean = 0;
  tiles.longest = latestTime(tiles.ends[0], tiles.ends[1]);
  tiles.differ = tiles.ends[0] != tiles.ends[1];
  tiles.places = (double)launch->model->atATime;
  tiles.perPlace = 1 / tiles.places;
  tiles.begin = launch->model->order == TIME_DESCENDING ? launch->steps - 1 : 0;
  tiles.direction = launch->model->order == TIME_DESCENDING ? -1 : 1;
  return tiles;
}

/* Looks at tiles in the middle of equal parts or, where steps are few, at each. */
static inline void sampleTiles(const TimeExpected *launch, TimeTiles *tiles, TimeForm form) {
  double count = launch->steps;
  TimeLanes steps, lengths;
  int i, half;
  for (i = 0; i < TIME_LANES / 2; ++i) { /* As far from the one end as others from the other. */
    double step = ceilTime(count * (2 * i + 1), 0.5 / TIME_LANES) - 1;
    steps.of[i] = step;
    steps.of[TIME_LANES - 1 - i] = count - 1 - step;
  }
  for (i = 0; i < TIME_LANES; ++i)
    steps.of[i] = count < TIME_LANES ? earliestTime(i, count - 1) : steps.of[i];
  if (form == TIME_TERMS) {
    lengths = measureTerms(launch, steps);
    for (i = 0; i < TIME_LANES; ++i) {
      tiles->longest = latestTime(tiles->longest, lengths.of[i]);
      tiles->differ |= lengths.of[i] != tiles->ends[0];
    }
  } else
    for (i = 0; i < TIME_LANES; ++i)
      lengths.of[i] = measureStep(launch, steps.of[i], form == TIME_WHOLE);
  for (i = 0; i < TIME_LANES; ++i)
    lengths.of[i] = i < count ? lengths.of[i] : 0;
  for (half = TIME_LANES / 2; half; half /= 2)
    for (i = 0; i < half; ++i)
      lengths.of[i] += lengths.of[i + half];
  tiles->mean = lengths.of[0] / earliestTime(count, TIME_LANES);
}

/* A section: tiles that are sorted, the longest first. Each place gets two of them in turn, a
 * longer and a shorter one, so that all places are free at about the same time again. Of the rest
 * either some places get one, or all get one and some a second one: the shorter the first one is,
 * the longer is the second one, so that these pairs end together. */
typedef struct {
  double begin, tiles;        /* when places are free; all tiles */
  double copies, inverse;     /* tiles of each length, and the inverse of it */
  double start, last, others; /* of the rest: its first tile; how many places get its last ones,
                               * and how many do not */
  double next;                /* copies in the section behind it, 0 where that is not looked at */
  int isLevel, hasPairs;      /* All places are free when it begins. The last ones make pairs. */
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

/* How many lengths are longer than that of one of these. */
static inline double countLonger(const TimeSection *section, int which) {
  double copies = section->copies, second = section->start + section->last + section->others;
  switch (which) {
  case TIME_SECOND:
    return floorTime(second, section->inverse);
  case TIME_SINGLE:
    return floorTime(section->start + section->others, section->inverse);
  case TIME_SOON:
    return floorTime(section->hasPairs ? section->start + section->others - section->next
                                       : section->tiles - (section->next - section->others),
                     section->inverse);
  case TIME_BEHIND:
    if (section->next > 0)
      return floorTime(section->others, 1 / section->next);
    return floorTime(2 * second - copies - copies * floorTime(second, section->inverse),
                     section->inverse);
  case TIME_REST:
    return floorTime(section->start, section->inverse);
  default:
    return floorTime((section->start + section->tiles) / 2, section->inverse);
  }
}

/* At which step one of these tiles is. */
static inline double findStep(const TimeExpected *launch, const TimeTiles *tiles,
                              const TimeSection *section, int which) {
  double longer = earliestTime(countLonger(section, which), launch->steps - 1);
  return tiles->begin + tiles->direction * longer;
}

/* The lengths of all of them by terms, which are looked at together. */
static inline TimeLanes measureSection(const TimeExpected *launch, const TimeTiles *tiles,
                                       const TimeSection *section) {
  TimeLanes steps = {{0}};
  int i;
  for (i = 0; i < TIME_TILES; ++i)
    steps.of[i] = findStep(launch, tiles, section, i);
  return measureTerms(launch, steps);
}

/* The length of one of them: of those by terms, or by a line, which looks at it alone. */
TIME_INLINE double measureTile(const TimeExpected *launch, const TimeTiles *tiles,
                               const TimeSection *section, const TimeLanes *byTerms, int which,
                               TimeForm form) {
  return form == TIME_TERMS
             ? byTerms->of[which]
             : measureStep(launch, findStep(launch, tiles, section, which), form == TIME_WHOLE);
}

/* When a launch ends as far as a section says, and no less than `end`. */
TIME_INLINE double endSection(const TimeExpected *launch, const TimeTiles *tiles,
                              TimeSection *section, double end, TimeForm form) {
  TimeLanes lengths;
  double places = tiles->places, next = section->next, rest, early, late;
  double level = section->begin, first = latestTime(tiles->ends[0], tiles->ends[1]);
  double last = earliestTime(tiles->ends[0], tiles->ends[1]);
  section->tiles = section->copies * launch->steps;
  section->inverse = 1 / section->copies;
  section->start = 2 * places * floorTime(section->tiles, 0.5 * tiles->perPlace);
  rest = section->tiles - section->start;
  section->hasPairs = rest > places;
  section->last = section->hasPairs ? rest - places : rest;
  section->others = places - section->last;
  if (form == TIME_TERMS)
    lengths = measureSection(launch, tiles, section);
  if (section->start > 0) {
    double middle = measureTile(launch, tiles, section, &lengths, TIME_MIDDLE, form);
    level += (section->tiles * tiles->mean - rest * middle) * tiles->perPlace;
  }
  if (section->isLevel && rest > 0) {
    double longest =
        section->start > 0 ? measureTile(launch, tiles, section, &lengths, TIME_REST, form) : first;
    end = latestTime(end, level + longest);
  }
  /* `early` is when places are free for the longest tiles of the next section, `late` when those of
   * the last tiles are. */
  early = level;
  late = level + last;
  if (section->hasPairs) {
    double second = measureTile(launch, tiles, section, &lengths, TIME_SECOND, form);
    double pair = level + 2 * second;
    double single = level + measureTile(launch, tiles, section, &lengths, TIME_SINGLE, form);
    late = earliestTime(pair, single + last);
    end = latestTime(end, latestTime(pair, earliestTime(pair, single) + last));
    if (next <= 0) {
      double both = second + measureTile(launch, tiles, section, &lengths, TIME_BEHIND, form);
      end = latestTime(end, level + both);
    } else if (next <= section->others) {
      double soon = level + measureTile(launch, tiles, section, &lengths, TIME_SOON, form);
      early = earliestTime(pair, soon);
    } else
      early = pair;
  } else if (next > section->others)
    early = level + measureTile(launch, tiles, section, &lengths, TIME_SOON, form);
  if (next > 0)
    end = latestTime(end, early + first);
  if (section->last > 0 && next * launch->steps > section->others)
    end = latestTime(end, late + measureTile(launch, tiles, section, &lengths, TIME_BEHIND, form));
  return end;
}

/* Whether all places are free at about the same time behind so many sections of so many tiles. With
 * little more than an odd number of tiles for each place, two sections in turn see to it: the
 * longest tiles of one go where the other one ended soonest. */
static inline int areLevel(double sections, double size, const TimeTiles *tiles) {
  double places = tiles->places;
  double rest = size - 2 * places * floorTime(size, 0.5 * tiles->perPlace);
  return rest >= places && rest < 1.25 * places && floorTime(sections, 0.5) * 2 == sections;
}

/* When a launch of sorted tiles ends, and no less than `end`; where that is more than `most`,
 * perhaps not all of it. Before the last two sections no place waits. */
TIME_INLINE double endSections(const TimeExpected *launch, const TimeTiles *tiles, double end,
                               double most, TimeForm form) {
  double places = tiles->places, steps = launch->steps;
  double inverse = 1 / steps, copies = floorTime(launch->tiles, inverse);
  double size = floorTime((double)launch->model->section * places, inverse);
  double sections, whole, rest;
  int isLevel, left;
  size = size < 1 ? 1 : earliestTime(size, copies);
  sections = ceilTime(copies, 1 / size);
  whole = size * steps * tiles->mean * tiles->perPlace;
  rest = copies - (sections - 1) * size;
  if (2 * rest < size) { /* It belongs to the section before. */
    sections -= 1;
    rest += size;
  }
  isLevel = sections <= 1 || areLevel(sections - 1, size * steps, tiles);
  for (left = isLevel ? 1 : 2; left; --left) {
    TimeSection section;
    section.begin = (sections - left) * whole;
    section.copies = left > 1 ? size : rest;
    section.next = left > 1 ? rest : 0;
    section.isLevel = left > 1 || isLevel;
    end = endSection(launch, tiles, &section, end, form);
    if (end > most || rest * steps <= places)
      break;
  }
  return end;
}

/* The microseconds of a launch, or more than `most` where they are. */
TIME_INLINE double findTimeBy(const TimeExpected *launch, double most, TimeForm form) {
  const TimeModel *model = launch->model;
  TimeTiles tiles = measureEnds(launch, form);
  double work;
  if (form != TIME_WHOLE)
    sampleTiles(launch, &tiles, form);
  if (!tiles.differ)
    return ceilTime(launch->tiles, tiles.perPlace) * tiles.longest;
  if (launch->rounds <= 1)
    return tiles.longest;
  if (form == TIME_WHOLE)
    tiles.mean = averageLine(launch);
  work = tiles.mean * launch->rounds;
  /* At the end one that is as long as any may be half done. */
  if (model->order != (tiles.ends[1] > tiles.ends[0] ? TIME_DESCENDING : TIME_ASCENDING))
    return latestTime(work + tiles.longest / 2, tiles.longest);
  if (work > most)
    return work;
  return endSections(launch, &tiles, latestTime(work, tiles.longest), most, form);
}

static inline double findTime(const TimeExpected *launch, double most) {
  if (launch->isCertain)
    return launch->lower;
  switch (findForm(launch)) {
  case TIME_WHOLE:
    return findTimeBy(launch, most, TIME_WHOLE);
  case TIME_LINE:
    return findTimeBy(launch, most, TIME_LINE);
  default:
    return findTimeBy(launch, most, TIME_TERMS);
  }
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
