//===- LinearIterations.cpp - Iterations as a line of the tile's index -----===//

#include "lib/Runtime/LinearIterations.h"

#include "llvm/ADT/SmallVector.h"

#include <cmath>
#include <optional>

using namespace tessera::runtime;

namespace {

/// A number on the stack of terms, as far as it has the form of a line.
struct Partial {
  double factor = 0; ///< of the index
  TimeSum sum = {};  ///< what is added to it
  /// Bounds; such as no number reaches where there are none. The lower one is a number.
  TimeSum least = {-kBeyond, {}, {}}, most = {kBeyond, {}, {}};
  bool isBounded = false;
  double divisor = 0; ///< 0 where it is not divided
  /// No number is further from 0, those that it was computed from included.
  double reach = 0;

  static constexpr double kBeyond = 16.0 * TIME_LIMIT;

  bool isSum() const { return !isBounded && divisor == 0; }
  /// The same for all tiles.
  bool isCommon() const { return isSum() && factor == 0; }
  bool isNumber() const { return isCommon() && sum.factors[0] == 0 && sum.factors[1] == 0; }
};

/// Indices and extents are below it.
constexpr double kMostExtent = 2147483648.0;

} // namespace

/// `sum` plus `scale` times `other`; false where it is of too many extents.
static bool add(TimeSum &sum, const TimeSum &other, double scale) {
  sum.number += scale * other.number;
  for (int i = 0; i < 2; ++i) {
    if (other.factors[i] == 0)
      continue;
    int j = 0;
    while (j < 2 && sum.factors[j] != 0 && sum.dims[j] != other.dims[i])
      ++j;
    if (j == 2)
      return false;
    sum.dims[j] = other.dims[i];
    sum.factors[j] += scale * other.factors[i];
  }
  return true;
}

static std::optional<Partial> addPartials(const Partial &left, const Partial &right, double scale) {
  Partial result = left;
  if (!left.isSum() || !right.isSum() || !add(result.sum, right.sum, scale))
    return std::nullopt;
  result.factor += scale * right.factor;
  result.reach += right.reach;
  return result;
}

static std::optional<Partial> multiply(const Partial &left, const Partial &right) {
  const Partial &number = right.isNumber() ? right : left, &other = right.isNumber() ? left : right;
  Partial result;
  if (!number.isNumber() || !other.isSum())
    return std::nullopt;
  add(result.sum, other.sum, number.sum.number);
  result.factor = other.factor * number.sum.number;
  result.reach = other.reach * number.reach;
  return result;
}

/// Of a bound that all tiles share. The lower one comes first, as a line has them.
static std::optional<Partial> bound(const Partial &left, const Partial &right, bool isLeast) {
  const Partial &limit = right.isCommon() ? right : left;
  Partial result = right.isCommon() ? left : right;
  TimeSum &taken = isLeast ? result.least : result.most;
  if (!(isLeast ? limit.isNumber() : limit.isCommon()) || result.divisor != 0 ||
      std::fabs(taken.number) != Partial::kBeyond ||
      (isLeast && result.most.number != Partial::kBeyond))
    return std::nullopt;
  taken = limit.sum;
  result.isBounded = true;
  result.reach = std::fmax(result.reach, limit.reach);
  return result;
}

/// By a positive number. What is rounded down is as much less as makes it the same rounded up.
static std::optional<Partial> divide(Partial left, const Partial &right, bool roundsUp) {
  double divisor = right.sum.number;
  if (!right.isNumber() || divisor < 1 || left.divisor != 0)
    return std::nullopt;
  for (TimeSum *sum : {&left.sum, &left.least, &left.most})
    sum->number -= roundsUp ? 0 : divisor - 1;
  left.divisor = divisor;
  left.reach = std::fmax(left.reach, divisor);
  return left;
}

static std::optional<Partial> operate(int op, const Partial &left, const Partial &right) {
  switch (op) {
  case TIME_ADD:
    return addPartials(left, right, 1);
  case TIME_SUB:
    return addPartials(left, right, -1);
  case TIME_MUL:
    return multiply(left, right);
  case TIME_FLOOR_DIV:
    return divide(left, right, /*roundsUp=*/false);
  case TIME_CEIL_DIV:
    return divide(left, right, /*roundsUp=*/true);
  case TIME_MIN:
    return bound(left, right, /*isLeast=*/false);
  default:
    return bound(left, right, /*isLeast=*/true);
  }
}

void tessera::runtime::setTimeCluster(TimeModel &model, int64_t tiles) {
  model.cluster = tiles;
  model.perCluster = 1.0 / tiles;
}

TimeGrid tessera::runtime::makeTimeGrid(int dim, int64_t number, int64_t divisor) {
  return {dim, divisor != 1, double(number), 1.0 / divisor};
}

LinearIterations tessera::runtime::findLinearIterations(llvm::ArrayRef<TimeTerm> terms) {
  llvm::SmallVector<Partial, TIME_DEPTH> stack;
  bool hasExtents = false; // Without any there may be none to read, as sums do.
  for (const TimeTerm &term : terms) {
    if (term.op > TIME_INDEX) {
      Partial right = stack.pop_back_val();
      std::optional<Partial> result = operate(term.op, stack.back(), right);
      if (!result || result->reach > TIME_LIMIT)
        return {};
      stack.back() = *result;
      continue;
    }
    Partial &pushed = stack.emplace_back();
    pushed.reach = kMostExtent;
    if (term.op == TIME_NUMBER) {
      pushed.sum.number = term.value;
      pushed.reach = std::fabs(pushed.sum.number);
    } else if (term.op == TIME_DIM) {
      pushed.sum.factors[0] = 1;
      pushed.sum.dims[0] = term.value;
      hasExtents = true;
    } else if (term.value == 0) {
      pushed.factor = 1;
    } else {
      return {};
    }
  }
  const Partial &all = stack.front();
  if (!hasExtents)
    return {};
  double divisor = all.divisor == 0 ? 1 : all.divisor, quotient = all.factor / divisor;
  bool isWhole = quotient == std::floor(quotient);
  double factor = isWhole ? quotient : all.factor;
  // No tile has less than no iterations.
  double least = std::fmax(isWhole ? std::ceil(all.least.number / divisor) : all.least.number, 0);
  return {factor,      divisor, least,    factor == 0 ? 0 : 1 / std::fabs(factor),
          1 / divisor, all.sum, all.most, isWhole};
}
