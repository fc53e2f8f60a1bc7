//===- StageCounts.h - Slots of the pipes of a schedule -------------------===//
//
// The value of the schedule fields `stages` and `outer_stages`: one number for all
// tiles that are loaded in loops, or outside of these, or one for each.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECTS_TILE_STAGECOUNTS_H
#define TESSERA_DIALECTS_TILE_STAGECOUNTS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/Support/raw_ostream.h"
#include <array>
#include <optional>

namespace tessera::tile {

class StageCounts {
public:
  /// The most numbers of a list.
  static constexpr size_t kMost = 8;

  /// `count` slots for every tile.
  explicit StageCounts(int64_t count) : size(1) { counts[0] = count; }

  /// As many slots for the n-th tile, in the order of the program, as the n-th of 1 to kMost
  /// numbers says. Equal numbers are one number.
  static std::optional<StageCounts> get(llvm::ArrayRef<int64_t> counts);

  /// Reads "2" or "[2, 3]".
  static std::optional<StageCounts> parse(llvm::StringRef text);

  /// The numbers; a single one holds for all tiles.
  llvm::ArrayRef<int64_t> getCounts() const { return llvm::ArrayRef(counts).take_front(size); }

  /// The slots of the `tile`-th tile.
  int64_t of(size_t tile) const { return size == 1 ? counts[0] : counts[tile]; }

  /// The slots of the last one.
  int64_t last() const { return counts[size - 1]; }

  /// Whether a kernel with `tiles` of them can have these slots.
  bool fits(size_t tiles) const { return size == 1 || size == tiles; }

  bool operator==(const StageCounts &other) const {
    return size == other.size && counts == other.counts;
  }
  friend llvm::hash_code hash_value(const StageCounts &stages) {
    return llvm::hash_combine_range(stages.counts.begin(), stages.counts.end());
  }
  friend llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const StageCounts &stages);

private:
  StageCounts() = default;
  std::array<int64_t, kMost> counts = {};
  size_t size = 0;
};

} // namespace tessera::tile

#endif // TESSERA_DIALECTS_TILE_STAGECOUNTS_H
