//===- Timeline.h - What a kernel did when --------------------------------===//
//
// The record that a kernel compiled with --instrument=timeline leaves of its
// stages, its text form and the pictures made of it. See docs/seeing.md.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TIMELINE_TIMELINE_H
#define TESSERA_LIB_TIMELINE_TIMELINE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace tessera::timeline {

/// What a warpgroup does in a stage; `#hop.stage` of docs/generated/hop.md says what each means.
enum class StageKind { Wait, Turn, Sync, Load, Issue, Finish, Compute, Store };

struct Stage {
  StageKind kind = StageKind::Compute;
  std::string label;
  /// The value of the source that the stage computes or loads, without "%"; may be empty.
  std::string value;
  std::string file;             ///< of the source, without its directory; may be empty
  int64_t line = 0, column = 0; ///< 1-based, there; 0 when unknown
  /// Finish: numbers of the Issue stages whose oldest product in flight is complete afterwards.
  std::vector<int64_t> products;

  /// As people call it: "wait k.full", "p: exp2, reduce", "issue s = q x k".
  std::string getName() const;
  /// Issue: the product itself, "s = q x k".
  std::string getProductName() const;
  /// "attention.tile:61", "line 61" where no file is known, or empty.
  std::string getPlace() const;
  /// The name with the place: "wait k.full (attention.tile:61)".
  std::string getTitle() const;
};

/// A warpgroup enters a stage, and leaves the one before.
struct Event {
  uint64_t clock = 0; ///< in the unit of the timeline
  unsigned stage = 0;
  int64_t iteration = 0; ///< index of the innermost loop, modulo 2^20; 0 outside of loops
};

/// The program of one warpgroup of one thread block.
struct Record {
  int64_t block = 0; ///< number of the thread block, x varies fastest
  unsigned multiprocessor = 0;
  std::string role;                      ///< "producer", "consumer 0"
  uint64_t startClock = 0, endClock = 0; ///< of the role
  uint64_t startTime = 0, endTime = 0;   ///< ns since an epoch of the device; not of the simulator
  uint64_t lost = 0;                     ///< earlier events for which there was no room
  std::vector<Event> events;             ///< ascending
};

/// What the clocks count.
enum class ClockUnit {
  Cycles,       ///< of the multiprocessor
  Instructions, ///< warp instructions of the thread block, on the simulator
};

struct Timeline {
  std::string kernel, schedule;
  ClockUnit unit = ClockUnit::Cycles;
  std::vector<Stage> stages;
  std::vector<Record> records; ///< by block, then by warpgroup
};

//===----------------------------------------------------------------------===//
// Reading and writing
//===----------------------------------------------------------------------===//

/// Decodes the memory that a kernel recorded in. `description` is the kernel's entry of a bundle;
/// the layout is that of dialects/Hop/TimelineLayout.h. Thread blocks that did not run have no
/// records. An error names what does not fit.
llvm::Expected<Timeline> decode(llvm::StringRef description, llvm::ArrayRef<char> memory,
                                ClockUnit unit);

/// The text form of docs/seeing.md.
llvm::json::Value toJSON(const Timeline &timeline);
llvm::Expected<Timeline> fromJSON(llvm::StringRef text);

//===----------------------------------------------------------------------===//
// Pictures
//===----------------------------------------------------------------------===//

/// A stage, or a product in flight, from its begin to its end.
struct Span {
  unsigned stage = 0; ///< of a product the Issue stage
  int64_t iteration = 0;
  uint64_t begin = 0, end = 0;
};

/// The stages of a record, each until the next one.
std::vector<Span> getStages(const Record &record);

/// The products of a record: from the begin of an issue to the end of the wait that completes it,
/// ascending by their begin. A product whose begin or end is not recorded is left out.
std::vector<Span> getProducts(const Timeline &timeline, const Record &record);

/// The products of a record in lanes in which none overlaps another, those of one stage together.
std::vector<std::vector<Span>> getProductLanes(const Timeline &timeline, const Record &record);

/// Writes the trace event format that Perfetto and chrome://tracing read: a process for each thread
/// block, a thread for each warpgroup and for each of its lanes of products.
void writePerfetto(const Timeline &timeline, llvm::raw_ostream &os);

struct SvgOptions {
  /// The thread block; the first that is recorded if empty.
  std::optional<int64_t> block;
  /// Iterations of the main loop that are shown, from its middle.
  unsigned iterations = 4;
};

/// Draws one thread block in its main loop: for each warpgroup its stages and its products. The
/// main loop is around the product that is issued most often. Fails when the block is not recorded
/// or has nothing to show.
llvm::Error writeSvg(const Timeline &timeline, const SvgOptions &options, llvm::raw_ostream &os);

/// Prints for each role how often each stage was entered and how long it took, and how much of its
/// arithmetic ran under products of its own and of other warpgroups of the thread block.
void writeSummary(const Timeline &timeline, llvm::raw_ostream &os);

} // namespace tessera::timeline

#endif // TESSERA_LIB_TIMELINE_TIMELINE_H
