//===- Shadow.h - Who touched which shared memory word ----------*- C++ -*-===//
#ifndef TESSERA_SIMULATOR_SHADOW_H
#define TESSERA_SIMULATOR_SHADOW_H

#include "lib/Simulator/Clock.h"
#include "lib/Simulator/ReadsInFlight.h"
#include <array>
#include <unordered_map>

namespace tessera::sim::detail {

/// One access, as the shadow remembers it.
struct Access {
  uint32_t epoch = 0;
  uint32_t site = 0; ///< instruction index
  uint16_t agent = 0;
  bool async = false; ///< by the async proxy
  uint8_t strong : 1; ///< atomic, volatile or with memory order: does not race with its like
  uint8_t bytes : 4;  ///< of the word
  Access() : strong(0), bytes(15) {}
};

enum class Hazard : uint8_t { None, Unordered, Unfenced, Overtaken, Uninitialised, Barrier };

struct Conflict {
  Hazard hazard = Hazard::None;
  Access other;
  bool otherWrote = false;
  uint32_t offset = 0;
  std::optional<uint32_t> release; ///< the instruction that has overtaken the other access
};

/// State of a CTA's shared memory, per 4-byte word: initialised bytes, the last write, and the
/// reads since. Copies and products access 16 bytes at a time, so that words in units of four are
/// mostly alike and then have one state.
class Shadow {
public:
  void reset(uint32_t bytes);
  /// What the state of so much shared memory takes at most.
  static uint64_t bytesFor(uint64_t bytes) {
    return (bytes + kUnitBytes - 1) / kUnitBytes * (sizeof(Unit) + sizeof(OtherWords));
  }
  /// `order` is what the access is ordered after: the warp's clock, or its clock when it issued an
  /// async operation.
  Conflict write(uint32_t offset, uint32_t bytes, const Access &a, const Clock &order);
  Conflict read(uint32_t offset, uint32_t bytes, const Access &a, const Clock &order);
  void markBarrier(uint32_t offset, bool on);
  bool checking = true;
  /// By agent; null for those that are no warps.
  const std::vector<const ReadsInFlight *> *agentReads = nullptr;

private:
  static constexpr unsigned kReaders = 4, kUnitWords = 4, kUnitBytes = 4 * kUnitWords;
  struct Cell {
    uint8_t init = 0;    ///< bits 0-3: initialised bytes
    uint8_t written = 0; ///< bytes of the last write; 0: none
    uint8_t readers = 0;
    bool barrier = false;
    bool overflow = false;
    Access write;
    Access reads[kReaders];
  };
  struct Unit {
    Cell first;          ///< of its first word, or of all
    uint32_t others = 0; ///< 1 + index of the cells of its other words; 0: all are like the first
  };
  using OtherWords = std::array<Cell, kUnitWords - 1>;

  Cell &cellOf(uint32_t word) {
    Unit &unit = units[word / kUnitWords];
    return word % kUnitWords ? others[unit.others - 1][word % kUnitWords - 1] : unit.first;
  }
  /// Gives each word of a unit a cell of its own.
  void split(uint32_t unit);
  /// Makes one state of a unit that has been written as a whole.
  void join(uint32_t unit);
  /// Calls `visit(cell, word, access)` with each cell of a range, its first word, and the access to
  /// the bytes that are of both.
  template <typename Visit>
  void forEachCell(uint32_t offset, uint32_t bytes, Access access, Visit visit);
  static void checkWrite(const Cell &c, uint32_t word, const Access &a, const Clock &order,
                         Conflict &out);
  bool isOver(const Access &read, const Clock &order) const;
  void checkRead(const Access &read, uint32_t word, const Access &a, const Clock &order,
                 Conflict &out) const;
  void checkReads(Cell &c, uint32_t word, const Access &a, const Clock &order, Conflict &out);
  void addRead(Cell &c, uint32_t word, const Access &a, const Clock &order);
  std::vector<Unit> units;
  std::vector<OtherWords> others;
  std::vector<uint32_t> freeOthers;                       ///< of joined units
  std::unordered_map<uint32_t, std::vector<Access>> more; ///< readers beyond kReaders
};

} // namespace tessera::sim::detail

#endif // TESSERA_SIMULATOR_SHADOW_H
