//===- GlobalShadow.h - Who touched which word of global memory -*- C++ -*-===//
//
// For each 4-byte word of a buffer that the kernel may write: the last write and some reads since,
// in the manner of FastTrack (Flanagan and Freund, PLDI 2009). Pages of cells are made when they
// are first touched. Clusters that run on several host threads share it, under striped locks.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_SIMULATOR_GLOBALSHADOW_H
#define TESSERA_SIMULATOR_GLOBALSHADOW_H

#include "lib/Simulator/Clock.h"
#include "lib/Simulator/Simulator.h"
#include <array>
#include <atomic>
#include <mutex>
#include <unordered_map>

namespace tessera::sim::detail {

/// What orders an access with its like (PTX ISA 8.3, strong operations; 8.6, morally strong).
enum class Strength : uint8_t { Weak, Cluster, Device };

struct GlobalAccess {
  uint32_t cluster = 0;
  uint32_t epoch = 0;
  uint32_t site = 0;  ///< instruction index
  uint16_t agent = 0; ///< that is seen when the access is over
  uint16_t warp = 0;  ///< that issued it, counted through the cluster
  uint8_t lane = 0;
  uint8_t bytes : 4; ///< of the word
  uint8_t async : 1; ///< by the async proxy
  uint8_t strength : 2;
  GlobalAccess() : bytes(15), async(0), strength(0) {}
};

struct GlobalConflict {
  enum Kind : uint8_t { None, Unordered, Unfenced };
  Kind kind = None;
  bool otherWrote = false;
  GlobalAccess other;
  uint64_t offset = 0; ///< of the word in its buffer
};

class GlobalShadow {
public:
  /// `shared`: several host threads use it.
  void reset(const GlobalMemory &memory, bool shared);

  /// `order` is what the access is ordered after, a clock of its cluster.
  GlobalConflict read(const GlobalMemory::Buffer &buffer, uint64_t offset, uint32_t bytes,
                      const GlobalAccess &access, const Clock &order);
  /// `unchanged`: it writes what is there already, which is no conflict with the one who wrote it.
  GlobalConflict write(const GlobalMemory::Buffer &buffer, uint64_t offset, uint32_t bytes,
                       const GlobalAccess &access, const Clock &order, bool unchanged);

private:
  static constexpr unsigned kReaders = 2, kPageWords = 1024, kStripes = 64;
  /// Of 64 KiB each; what lies beyond is not checked.
  static constexpr unsigned kMaxPages = 1 << 14;
  struct Cell {
    GlobalAccess write;
    GlobalAccess reads[kReaders];
    uint8_t written = 0; ///< bytes of the last write; 0: none
    uint8_t readers = 0;
    uint8_t victim : 7; ///< the next reader to be forgotten
    uint8_t forgot : 1; ///< some are
    Cell() : victim(0), forgot(0) {}
  };
  using Page = std::array<Cell, kPageWords>;
  struct Pages {
    std::vector<std::unique_ptr<Page>> list;
    std::array<std::mutex, kStripes> locks; ///< of page n: lock n modulo kStripes
  };
  template <class Fn>
  void forWords(const GlobalMemory::Buffer &buffer, uint64_t offset, uint32_t bytes, Fn fn);
  static void addRead(Cell &cell, const GlobalAccess &a, const Clock &order);
  static bool isObserved(const Cell &cell, const GlobalAccess &a, const Clock &order);

  std::unordered_map<const GlobalMemory::Buffer *, std::unique_ptr<Pages>> pages;
  std::atomic<unsigned> numPages{0};
  bool locking = false;
};

} // namespace tessera::sim::detail

#endif // TESSERA_SIMULATOR_GLOBALSHADOW_H
