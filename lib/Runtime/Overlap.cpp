//===- Overlap.cpp - Arguments that share memory --------------------------===//
//
// The threads of a kernel store in no order that a caller could know, so that what is stored shares
// no element with what else is stored or loaded. Views whose bytes lie apart, as nearly all do,
// take one comparison, which each launch does (LaunchPlan); only those that interleave are looked
// at more closely.
//
//===----------------------------------------------------------------------===//

#include "lib/Runtime/Error.h"
#include "lib/Runtime/Launch.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace tessera::runtime;

namespace {

/// A product `step` * x, in bytes, with an integer x from `low` to `high`.
struct Term {
  int64_t step, low, high;
};
using Terms = llvm::SmallVector<Term, 10>;

/// Says whether a sum of terms can lie in an interval. The steps of views are nested, so that few
/// values of each x come into question; where they are not, the search ends unfinished.
class SumSearch {
public:
  explicit SumSearch(Terms unsorted) : terms(std::move(unsorted)) {
    llvm::sort(terms, [](const Term &a, const Term &b) { return a.step > b.step; });
    rest.assign(terms.size() + 1, {0, 0});
    for (size_t i = terms.size(); i-- > 0;)
      rest[i] = {rest[i + 1].first + terms[i].step * terms[i].low,
                 rest[i + 1].second + terms[i].step * terms[i].high};
  }

  bool reaches(int64_t low, int64_t high, size_t from = 0) {
    if (from == terms.size())
      return low <= 0 && 0 <= high;
    const Term &term = terms[from];
    int64_t first = llvm::divideCeilSigned(low - rest[from + 1].second, term.step);
    int64_t last = llvm::divideFloorSigned(high - rest[from + 1].first, term.step);
    last = std::min(last, term.high);
    for (int64_t x = std::max(first, term.low); x <= last && steps < kMostSteps; ++x) {
      ++steps;
      if (reaches(low - term.step * x, high - term.step * x, from + 1))
        return true;
    }
    return false;
  }

private:
  static constexpr unsigned kMostSteps = 1000;

  Terms terms;
  /// The least and the greatest sum of the terms from an index on.
  llvm::SmallVector<std::pair<int64_t, int64_t>, 11> rest;
  unsigned steps = 0;
};

/// The place of an argument in memory. Its layout has been checked, and it has elements.
struct Place {
  const ArgumentInfo *info;
  const Argument *argument;
  int64_t bytes; ///< from the first to the last

  /// Calls `visit` with extent and stride in bytes of the dimensions that have more than one place.
  template <typename Visitor>
  static void forEachDim(const ArgumentInfo &info, const Argument &argument, Visitor &&visit) {
    for (size_t i = 0; i < info.dims.size(); ++i)
      if (argument.shape[i] > 1)
        visit(argument.shape[i], argument.strides[i] * info.type->bytes);
  }
};

} // namespace

int64_t tessera::runtime::countSpan(const ArgumentInfo &info, const Argument &argument) {
  int64_t bytes = info.type->bytes;
  Place::forEachDim(info, argument,
                    [&](int64_t extent, int64_t stride) { bytes += (extent - 1) * stride; });
  return bytes;
}

/// Adds the terms of a view, with a sign of 1 or -1, to those of the same step.
static void addTerms(const Place &place, int sign, Terms &terms) {
  Place::forEachDim(*place.info, *place.argument, [&](int64_t extent, int64_t stride) {
    if (stride == 0)
      return;
    auto same = llvm::find_if(terms, [&](const Term &term) { return term.step == stride; });
    Term &term = same != terms.end() ? *same : terms.emplace_back(Term{stride, 0, 0});
    (sign > 0 ? term.high : term.low) += sign * (extent - 1);
  });
}

static bool shareElements(const Place &a, const Place &b) {
  // Addresses of one device are less than 2^63 apart.
  auto distance = static_cast<int64_t>(b.argument->pointer - a.argument->pointer);
  if (distance >= a.bytes || distance <= -b.bytes)
    return false;
  Terms terms;
  addTerms(a, 1, terms);
  addTerms(b, -1, terms);
  return SumSearch(std::move(terms))
      .reaches(distance - a.info->type->bytes + 1, distance + b.info->type->bytes - 1);
}

bool tessera::runtime::sharesWithItself(const ArgumentInfo &info, const Argument &argument) {
  llvm::SmallVector<std::pair<int64_t, int64_t>, 5> dims;
  Place::forEachDim(info, argument,
                    [&](int64_t extent, int64_t stride) { dims.emplace_back(stride, extent); });
  llvm::sort(dims);
  int64_t bytes = info.type->bytes;
  for (auto [stride, extent] : dims) {
    if (stride < bytes)
      return true;
    bytes += (extent - 1) * stride;
  }
  return false;
}

llvm::Error tessera::runtime::checkOverlap(const Signature &callee,
                                           llvm::ArrayRef<Argument> arguments) {
  llvm::SmallVector<Place, 16> places;
  for (auto [info, argument] : llvm::zip_equal(callee.arguments, arguments))
    if (info.isView && !llvm::is_contained(llvm::ArrayRef(argument.shape, info.dims.size()), 0))
      places.push_back({&info, &argument, countSpan(info, argument)});
  for (const Place &written : places) {
    if (written.info->access == Access::Read)
      continue;
    if (sharesWithItself(*written.info, *written.argument))
      return makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                       "{0} '{1}': argument '{2}': elements at different indices share memory, "
                       "so that results would overwrite each other; pass a tensor whose strides "
                       "keep them apart",
                       callee.kind, callee.name, written.info->name);
    for (const Place &other : places) {
      // Two that are both written are compared once.
      bool isSecond = other.info->access != Access::Read && other.info >= written.info;
      if (isSecond || !shareElements(written, other))
        continue;
      return makeError(TESSERA_RUNTIME_INVALID_ARGUMENT,
                       "{0} '{1}': arguments '{2}' and '{3}' share memory, and the {0} writes "
                       "'{4}'; pass a tensor of its own",
                       callee.kind, callee.name, std::min(other.info, written.info)->name,
                       std::max(other.info, written.info)->name, written.info->name);
    }
  }
  return llvm::Error::success();
}
