//===- CostModel.h - What was measured of the machine ---------------------===//
//
// The numbers by which tile-choose-schedule prefers and rejects schedules that no
// manual gives: fits and thresholds of a card, and counts in machine code of one
// ptxas. All are data (kernels/cards.json), and CardNumbers.def says what they are.
// bench/fit_cost_model.py fits those that are fits. What a manual gives is in
// dialects/Hop/Machine.h.
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
#include <vector>

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

/// Integers that are tried one after the other, and one for each number of consumers.
using NumbersInOrder = std::vector<int64_t>;
using NumbersByConsumers = std::array<int64_t, 4>;

/// The numbers of a card.
struct CostModel {
#define CARD_NUMBER(type, name, most) type name = {};
#include "passes/Schedule/CardNumbers.def"

  /// The bytes of a tile that come to a multiprocessor while a warp waits for a barrier, when all
  /// multiprocessors load: a tile has come as late by so many more.
  double bytesOfWait() const {
    return waitCycles * memoryBytesPerSecond / (multiprocessors * clockGHz * 1e9);
  }
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
