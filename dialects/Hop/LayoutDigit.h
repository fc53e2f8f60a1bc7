//===- LayoutDigit.h - A digit of a layout -----------------------*- C++ -*-===//
//
// The parameters of #hop.layout. See HopTypes.td.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECTS_HOP_LAYOUTDIGIT_H
#define TESSERA_DIALECTS_HOP_LAYOUTDIGIT_H

#include "llvm/ADT/Hashing.h"
#include <array>
#include <cstdint>

namespace tessera::hop {

/// A digit of the number of a register, lane, warp or warpgroup: of `extent` values, each of which
/// moves the element by `steps` along the axes of the tile. A tile of rank 1 has the first axis.
struct LayoutDigit {
  int64_t extent;
  std::array<int64_t, 2> steps;

  bool moves(int64_t axis) const { return steps[axis] != 0; }
  bool operator==(const LayoutDigit &other) const {
    return extent == other.extent && steps == other.steps;
  }
};

inline llvm::hash_code hash_value(const LayoutDigit &digit) {
  return llvm::hash_combine(digit.extent, digit.steps[0], digit.steps[1]);
}

} // namespace tessera::hop

#endif // TESSERA_DIALECTS_HOP_LAYOUTDIGIT_H
