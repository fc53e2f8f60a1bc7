//===- ReadsInFlight.h - Reads whose values nobody has taken ----*- C++ -*-===//
//
// A load from shared memory is issued by one instruction, and has read when its value is in the
// register. The warp goes on in between: the load waits in the load-store unit, and an arrival at
// an mbarrier may overtake it. So a read is in flight until the warp executes an instruction that
// waits for the value, or for what arithmetic has made of it: arithmetic itself may be moved behind
// the arrival. Accesses of the generic proxy the arrival orders all the same (PTX ISA 8.8); a bulk
// copy is of another proxy (8.9.5), and may write what has not been read.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_SIMULATOR_READSINFLIGHT_H
#define TESSERA_SIMULATOR_READSINFLIGHT_H

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace tessera::sim::detail {

/// The reads of a warp that are in flight, and what ended each of its last epochs: a read or a
/// release. At least the last 32 reads are known; those before are over, as the load-store unit
/// keeps their order.
class ReadsInFlight {
public:
  /// Reads by their place among the last ones.
  using Set = uint64_t;

  bool any() const { return inFlight != 0; }
  /// By register: the reads that its value comes from. Null before the first read.
  Set *sets() { return byRegister.data(); }
  /// A read by these lanes of a warp with so many registers. It ends the epoch.
  Set begin(uint32_t epoch, uint32_t lanes, size_t registers);
  /// The lanes have the values of these reads.
  void take(Set reads, uint32_t lanes, uint32_t epoch);
  /// Instruction `site` releases what is before it, which ends the epoch.
  void release(uint32_t epoch, uint32_t site) {
    if (!byRegister.empty())
      setEnd({epoch, 0, site});
  }

  /// Whether the read that ended an epoch was over in a later one.
  bool isOver(uint32_t read, uint32_t epoch) const;
  /// The instruction that released in this epoch, when it is known still.
  std::optional<uint32_t> releaseIn(uint32_t epoch) const;

private:
  static constexpr unsigned kReads = 64, kEpochs = 512;
  static constexpr uint32_t kNever = ~0u;
  /// How an epoch ended.
  struct End {
    uint32_t epoch = 0; ///< another one, when this has been forgotten
    uint32_t over = 0;  ///< of a read: the epoch in which it was over
    uint32_t site = 0;  ///< of a release
  };
  struct Read {
    uint32_t epoch = 0;
    uint32_t lanes = 0; ///< that do not have their values yet
  };
  void setEnd(const End &end) {
    size_t place = end.epoch % kEpochs;
    if (place >= ends.size())
      ends.resize(place + 1);
    ends[place] = end;
  }
  void forget(Set old, uint32_t epoch);
  const End *find(uint32_t epoch) const;

  Set inFlight = 0;
  unsigned next = 0; ///< place of the next read
  std::array<Read, kReads> reads;
  std::vector<Set> byRegister; ///< empty before the first read
  std::vector<End> ends;       ///< by epoch modulo kEpochs
};

} // namespace tessera::sim::detail

#endif // TESSERA_SIMULATOR_READSINFLIGHT_H
