//===- CostModel.h - What was measured of the machine ---------------------===//
//
// The numbers by which tile-choose-schedule prefers and rejects schedules that no
// manual gives: fits and thresholds of a card, which are data (kernels/cards.json),
// and counts in machine code of one ptxas. docs/tuning.md says how each is measured
// again, and bench/fit_cost_model.py fits those that are fits. What a manual gives
// is in dialects/Hop/Machine.h.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SCHEDULE_COSTMODEL_H
#define TESSERA_PASSES_SCHEDULE_COSTMODEL_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <array>
#include <cstdint>
#include <string>

namespace mlir {
class Operation;
} // namespace mlir

namespace tessera {

/// Registers per thread of each role.
struct RegisterSplit {
  /// 0 when there is no producer.
  int64_t producer, consumer;
};

/// What an operation takes for each element: results of special functions, and instructions of a
/// thread.
struct ElementCost {
  double functions = 0, instructions = 0;
};

/// What was measured of a card. The values are in kernels/cards.json, with their records.
struct CardNumbers {
  /// The part of their rate that special functions reach, and cycles of an iteration for each cycle
  /// that its dots, special functions and instructions would take by themselves, below that: the
  /// power that the card may draw divides among them.
  double functionUse, dotWeight, functionWeight, instructionWeight;
  /// Polynomials are taken where they are said to gain so much of an iteration.
  double leastGainOfPolynomials;
  /// Cycles that a multiprocessor waits for a row of at most 128 bytes that begins or ends amid a
  /// sector of memory, where all of them load such rows.
  double unalignedRowCycles;
  /// Multiprocessors, and their clock under load.
  int64_t multiprocessors;
  double clockGHz;
  /// A tile takes as long as so many iterations beside them: the first loads, the last products and
  /// the output.
  double iterationsOfEnds;
  /// How much longer than the model says iterations of other tiles take than those that the source
  /// prefers.
  double otherTiles;
  /// Cycles that a wait for a tile that is there and the release of its slot take of a step, and
  /// bytes that memory gives in a second.
  double waitCycles, memoryBytesPerSecond;
  /// Warpgroups take turns where the dots take less than so many times the cycles of the special
  /// functions, and these less than so many times those of the dots.
  double mostDotsForTurns, mostFunctionsForTurns;
  /// The first dot of an iteration runs ahead by itself where special functions and instructions
  /// take so many times the cycles of the dots, and it so many cycles itself.
  double leastWorkForLead, leastDotAhead;
  /// Bytes of sums that a multiprocessor adds to memory in a cycle. Two blocks exchange operands of
  /// sums where these take longer than the dots.
  double bytesOfSums;
  /// Bytes on their way to a multiprocessor that keep memory busy while other blocks compute.
  int64_t bytesInFlight;
  /// The most slots of a pipe where every loop has a single dot, where the work between dots hides
  /// the latency of loads too, where a list in memory says how many iterations a loop has, and
  /// where the producer finds the bounds of loops from values of rows.
  int64_t mostStages, mostStagesBetweenDots, mostStagesOfLists, mostStagesOfBounds;
  /// Tiles of a section where blocks of the same first index load the same tiles in their loops.
  int64_t sectionOfShared;
  /// Elements of a tile that a grid point merges of the parts of a range, and of states that it
  /// loads before it merges them: it waits for memory in each part.
  int64_t mergedElements, loadedElements;
  /// An equal share may be longer by one iteration in so many, where ranges are cut less then.
  int64_t sparesOfShare;
  /// The fewest rows that follow each other which a bulk copy brings, in place of copies of 16
  /// bytes.
  int64_t leastRun;

  /// The bytes of a tile that come to a multiprocessor while a warp waits for a barrier, when all
  /// multiprocessors load: a tile has come as late by so many more.
  double bytesOfWait() const {
    return waitCycles * memoryBytesPerSecond / (multiprocessors * clockGHz * 1e9);
  }
};

/// The numbers of a card, and what is counted in the code of ptxas 13.0 for any of them.
struct CostModel : CardNumbers {
  //===--------------------------------------------------------------------===//
  // Time of an iteration
  //===--------------------------------------------------------------------===//

  /// Instructions of a thread that an exponential by a polynomial takes more than by a special
  /// function; and one whose results stay f32, of fifth degree.
  /// Counted in SASS of kernels/attention_variants.tile (docs/lab/exponentials.md).
  double polynomialInstructions = 6, precisePolynomialInstructions = 9;
  /// Instructions of a thread that a warpgroup issues in an iteration beside the work on tiles:
  /// descriptors, products, waits and counters.
  /// Counted in SASS of kernels/attention_fwd.tile by `tessera inspect`.
  double loopInstructions = 90;
  /// Divisions of 1 and of other numbers, functions that are several instructions, and those that
  /// are one, such as exp2. Counted in SASS by `tessera inspect`.
  ElementCost reciprocal = {1, 1}, division = {1, 2}, exactTanh = {2, 11}, approximateTanh = {1, 1},
              sigmoid = {2, 4}, exponential = {1, 2}, logarithmOfSum = {1, 12},
              singleFunction = {1, 1};
  /// Two elements are rounded to 16 bits at once (PTX ISA 9.7.9.21, cvt.bf16x2).
  ElementCost rounding = {0, 0.5};
  /// Sixteenths of the exponentials that are tried as polynomials. With 10 to 12 ptxas wants more
  /// registers, and spills where the model has given out all (docs/lab/exponentials.md). The tuner
  /// tries their neighbours too: 9 is ahead of 8 by 9% for an exact soft cap at d = 64.
  std::array<int64_t, 3> polynomialShares = {4, 8, 16};

  //===--------------------------------------------------------------------===//
  // Preferences
  //===--------------------------------------------------------------------===//

  /// Columns of an accumulator beyond which it is scaled before the next dot: more than a thread
  /// holds in 64 registers. Record 2026-11-21-nvidia-h200-d54605e-tuning, and FlashAttention-3
  /// draws the line at the same head dimension.
  int64_t wideColumns = 128;
  /// Consumers, the preferred first: the same record.
  std::array<int64_t, 4> consumers = {4, 3, 2, 1};
  /// Warps of a transposer, the preferred first: a warpgroup, or warps of the producer's.
  std::array<int64_t, 4> transposerWarps = {4, 3, 2, 1};
  /// Warpgroups of a kernel without dots, the preferred first: bench/rows.py --schedules, record
  /// 2026-11-22-nvidia-h200-b69a46b-rows (docs/lab/rows.md).
  std::array<int64_t, 4> directConsumers = {1, 2, 3, 4};

  //===--------------------------------------------------------------------===//
  // Registers of ptxas
  //===--------------------------------------------------------------------===//

  /// Registers of each role with 1 to 4 consumers (setmaxnreg). Within the pool of the block
  /// (hop::whyPoolTooSmall) the producer has the fewest that its program takes without spills.
  std::array<RegisterSplit, 4> registers = {{{24, 240}, {24, 240}, {32, 160}, {24, 112}}};
  /// Registers of a consumer thread beside tiles: addresses, loop and phase counters, descriptors
  /// and the temporaries of elementwise code. ptxas -v of whole warp-specialized attention kernels,
  /// 22 to 23 for D = 64, 128 and 256 with key blocks of 80 to 192.
  int64_t fixedRegisters = 22;
  /// What a consumer that starts its loads itself holds beside: coordinates and the place of the
  /// fills. Likewise with 3 consumers: 158 by the rest of the model spill within 168, 150 do not.
  int64_t loadingRegisters = 8;
  /// ptxas needs 1 of so many registers to move values about: 128x192 tiles at D = 128 (234 by this
  /// model) spill within 240, while 154 of 160 (192x128, D = 64) and 106 of 112 (256x64, D = 64)
  /// do not.
  int64_t registersPerSpare = 32;
  /// Registers of the warpgroup that a transposer shares with the producer, where the consumers
  /// need what they can get: ptxas -v of kernels/attention_fp8.tile.
  int64_t sharedTransposerRegisters = 40;
  /// Likewise of a producer beside a converter that copies three tiles in runs and more: of
  /// kernels/mla_decode.tile over rows of bytes 128 spill within 24, 12 within 32, none within 40.
  int64_t registersOfRuns = 40;
  /// Likewise of a producer that gathers, and for each 16 rows of the largest tile what a thread
  /// keeps of one: addresses and numbers in two tiles. kernels/attention_paged.tile spills with 56
  /// for 128 rows, and not with 80; for 64 rows not with 56.
  int64_t gatheringRegisters = 32, gatheringRegistersOf16Rows = 6;
  /// Likewise of the warpgroup in which the producer and a role run that finds bounds by values of
  /// rows: kernels/variants/packed.tile spills within 24.
  int64_t boundingRegisters = 32;
  /// Likewise of a producer whose lanes find runs, and for each run of a tile, whose place stays in
  /// registers while the slot is waited for. kernels/attention_cache.tile spills with 48 for 2, 4
  /// and 8 runs, and with 64 for 16.
  int64_t lanesRegisters = 48, lanesRegistersOfRun = 2;
  /// What a producer is given more, one after the other, where the schedule that is preferred does
  /// not compile: ptxas does not say whose registers spill, and without a producer loads wait. The
  /// model had been wrong by 8 to 32 (docs/lab/variants.md).
  std::array<int64_t, 2> moreForProducer = {16, 32};

  /// The same for one of the consumers that have different dots, from the others. Gradients of soft
  /// caps with slopes and 128 columns spill 20 bytes without, and nothing with them: 16 are enough
  /// for ptxas 13, 24 for 12.9. With 256 columns they spill 4 bytes, and the other consumer can
  /// spare 8 (docs/lab/backward.md).
  std::array<int64_t, 3> moreForConsumer = {8, 16, 24};
};

/// The model of a card, as GPUs call themselves: that of the default card for one that nobody
/// knows, or without a name.
const CostModel &getCostModel(llvm::StringRef card = "");

/// That of the card for which the module of `op` is compiled, as `tessera.card` says.
const CostModel &getCostModel(mlir::Operation *op);

/// The attribute of a module that names the card.
inline constexpr llvm::StringLiteral kCardAttr = "tessera.card";

/// The cards of which some number is known, the default one first.
llvm::ArrayRef<std::string> getCards();

/// The model of `card` by a text as kernels/cards.json has it; an error names the row that is
/// wrong.
llvm::Expected<CostModel> parseCards(llvm::StringRef text, llvm::StringRef card);

} // namespace tessera

#endif // TESSERA_PASSES_SCHEDULE_COSTMODEL_H
