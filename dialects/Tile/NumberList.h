//===- NumberList.h - One number for all of a kind, or one for each -------===//
//
// The value of schedule fields that say something of several things: of `stages` and
// `outer_stages` for the tiles that are loaded in loops, or outside of these, and of
// `consumer_registers` for the consumers.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECTS_TILE_NUMBERLIST_H
#define TESSERA_DIALECTS_TILE_NUMBERLIST_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <array>
#include <optional>

namespace tessera::tile {

class NumberList {
public:
  /// The most numbers of a list.
  static constexpr size_t kMost = 8;

  /// `number` for all.
  explicit NumberList(int64_t number) : size(1) { numbers[0] = number; }

  /// One for each, in the order of the program, of 1 to kMost; nothing for more or none. Equal
  /// numbers are one number.
  static std::optional<NumberList> get(llvm::ArrayRef<int64_t> numbers);

  /// Reads "2" or "[2, 3]".
  static std::optional<NumberList> parse(llvm::StringRef text);

  /// The numbers; a single one holds for all.
  llvm::ArrayRef<int64_t> getNumbers() const { return llvm::ArrayRef(numbers).take_front(size); }

  /// The number of the `index`-th.
  int64_t of(size_t index) const { return size == 1 ? numbers[0] : numbers[index]; }

  /// The number of the last one.
  int64_t last() const { return numbers[size - 1]; }

  /// The largest number.
  int64_t most() const { return *llvm::max_element(getNumbers()); }

  /// Whether one number holds for all.
  bool isUniform() const { return size == 1; }

  /// Whether it says something of each of `count`, and of no more.
  bool fits(size_t count) const { return isUniform() || size == count; }

  bool operator==(const NumberList &other) const {
    return size == other.size && numbers == other.numbers;
  }
  friend llvm::hash_code hash_value(const NumberList &list) {
    return llvm::hash_combine_range(list.numbers.begin(), list.numbers.end());
  }
  friend llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const NumberList &list);

private:
  NumberList() = default;
  std::array<int64_t, kMost> numbers = {};
  size_t size = 0;
};

} // namespace tessera::tile

#endif // TESSERA_DIALECTS_TILE_NUMBERLIST_H
