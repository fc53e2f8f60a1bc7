//===- NearestNames.cpp - What an unknown name was meant to be ------------===//

#include "lib/Support/NearestNames.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>

using namespace llvm;

/// Letters that change places are one slip.
static size_t countSlips(StringRef name, StringRef meant) {
  std::string letters = name.lower(), others = meant.lower();
  llvm::sort(letters);
  llvm::sort(others);
  return std::min<size_t>(name.edit_distance_insensitive(meant),
                          letters == others && name != meant ? 1 : name.size() + meant.size());
}

std::string tessera::suggestNames(StringRef name, ArrayRef<StringRef> known, size_t most) {
  size_t least = std::max<size_t>(1, name.size() / 3) + 1;
  SmallVector<StringRef> nearest;
  for (StringRef candidate : known) {
    size_t distance = countSlips(name, candidate);
    if (distance < least) {
      nearest.clear();
      least = distance;
    }
    if (distance == least && distance <= std::max<size_t>(1, candidate.size() / 3) &&
        nearest.size() < most && !is_contained(nearest, candidate))
      nearest.push_back(candidate);
  }
  if (nearest.empty())
    return {};
  return "; did you mean '" + join(nearest, "' or '") + "'?";
}
