//===- TimelineLayout.h - The memory in which a kernel records ------------===//
//
// Shared by the code generator, which writes it, and lib/Timeline, which reads it. All numbers are
// little-endian. For each recorded thread block, in order, and each of its warpgroups there is a
// record: a header and a ring of events.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECTS_HOP_TIMELINELAYOUT_H
#define TESSERA_DIALECTS_HOP_TIMELINELAYOUT_H

#include <cstdint>

namespace tessera::timeline {

/// Byte offsets in the header of a record.
constexpr int64_t countOffset = 0;       ///< u32: events, with those that the ring has lost
constexpr int64_t smOffset = 4;          ///< u32: %smid
constexpr int64_t startTimeOffset = 8;   ///< u64: %globaltimer in ns when the role starts
constexpr int64_t startClockOffset = 16; ///< u64: %clock64 then; 0 in a record that was not written
constexpr int64_t endTimeOffset = 24;    ///< u64: as startTimeOffset, when it ends
constexpr int64_t endClockOffset = 32;
constexpr int64_t headerBytes = 64;

/// An event: u32 %clock, then u32 stage | iteration << stageBits.
constexpr int64_t eventBytes = 8;
constexpr int64_t stageBits = 12;
constexpr int64_t maxStages = int64_t(1) << stageBits;

/// Bytes of a record with a ring of `events`.
constexpr int64_t recordBytes(int64_t events) { return headerBytes + eventBytes * events; }

} // namespace tessera::timeline

#endif // TESSERA_DIALECTS_HOP_TIMELINELAYOUT_H
