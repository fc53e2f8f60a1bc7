//===- Seeds.h - Ranges of seeds that options ask for -----------*- C++ -*-===//

#ifndef TESSERA_LIB_SUPPORT_SEEDS_H
#define TESSERA_LIB_SUPPORT_SEEDS_H

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstdint>
#include <limits>
#include <string>

namespace tessera {

/// Host threads that a run may be given: beyond any machine, and below what a user may start.
constexpr unsigned mostHostThreads = 1024;

/// What is wrong with the text of a seed, for option parsers that would take a number with a sign
/// modulo 2^64; empty when nothing is.
inline std::string validateSeed(const std::string &text) {
  bool isNumber = !text.empty() && llvm::all_of(text, llvm::isDigit);
  return isNumber ? "" : "a seed consists of digits, got '" + text + "'";
}

/// Refuses `count` seeds from `first` on, which the named options ask for, when there are none or
/// they go past the last: a run over them would succeed without having run what was asked for.
inline llvm::Error checkSeeds(llvm::StringRef countOption, uint64_t count,
                              llvm::StringRef firstOption, uint64_t first) {
  constexpr uint64_t last = std::numeric_limits<uint64_t>::max();
  if (count >= 1 && count - 1 <= last - first)
    return llvm::Error::success();
  return llvm::createStringError(
      llvm::inconvertibleErrorCode(),
      llvm::formatv("{0} {1} from {2} {3} on: there is at least one seed, and the last is {4}",
                    countOption, count, firstOption, first, last)
          .str());
}

} // namespace tessera

#endif // TESSERA_LIB_SUPPORT_SEEDS_H
