/* ---- How many iterations the tiles of a launch have ----
 *
 * C99 that is C++ too, as lib/Runtime/LaunchTime.h. */

#ifndef TESSERA_TIME_TERMS_H
#define TESSERA_TIME_TERMS_H

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
static inline void countIterations(const TimeTerm *terms, int count, const double *dims,
                                   double (*index)[TIME_LANES], double *iterations) {
  TimeNumber stack[TIME_DEPTH];
  int i, t, top = 0;
  for (t = 0; t < count; ++t) {
    const TimeTerm *term = &terms[t];
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
    common = limitTime(term->op == TIME_DIM ? dims[term->value] : (double)term->value);
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

#ifdef __cplusplus
} // namespace tessera::runtime
#endif

#endif
