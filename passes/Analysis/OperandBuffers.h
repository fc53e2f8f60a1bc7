//===- OperandBuffers.h - Computed operands in shared memory --------------===//
//
// Which values of a program are one tile in memory when the operands of products live in
// shared memory, and which tiles can share a buffer. For programs of either dialect.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_OPERANDBUFFERS_H
#define TESSERA_PASSES_ANALYSIS_OPERANDBUFFERS_H

#include "dialects/Tile/Tile.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SetVector.h"

namespace tessera {

/// The load behind an operand of a dot, transposed or not, or null when the operand is computed. A
/// loaded operand lives in shared memory.
tile::LoadOpInterface loadedOperand(mlir::Value operand);

/// The type with which a pipe has the tile of `load`: with its chunks, where the load says so.
mlir::RankedTensorType pipedType(tile::LoadOpInterface load);

/// Whether a loaded tile is an operand of a dot, directly or transposed.
bool feedsDot(mlir::Value tile);

/// What transposes `operand` of a dot if that is computed: it becomes rows where it is written to
/// shared memory. Null for other operands.
tile::TransposeOp computedTranspose(mlir::Value operand);

/// Whether a dot multiplies the elements of `tile` as words (tf32). It reads them along K alone,
/// and a fragment of them is no accumulator: a thread has columns 4 apart, not neighbours (PTX ISA
/// 9.7.15.5.1, ".tf32"). So each computed one goes through shared memory.
bool isWordOperand(mlir::RankedTensorType tile);

/// Whether `tile`, an operand of dots alone, is rounded where it goes to shared memory: its
/// elements are words. Those that were extended from 16 bits or less are tf32 as they are.
bool isRoundedOperand(mlir::Value tile);

/// Whether those who multiply the first operand of `dot` write it to shared memory.
bool isStagedA(tile::DotOp dot);

class OperandBuffers {
public:
  /// `reads` are the operands of products, ranked tensors that operations compute.
  explicit OperandBuffers(llvm::ArrayRef<mlir::OpOperand *> reads);

  /// A tile: the values that scf.for and scf.if hand on to each other as one.
  struct Tile {
    llvm::SetVector<mlir::Value> values;
    /// Those of `values` that an operation makes. Each is written to the buffer where it is made.
    llvm::SmallVector<mlir::Value> made;
    llvm::SmallVector<mlir::OpOperand *> reads;
    /// Something but products reads it too.
    bool isReadElsewhere = false;
    /// The number of its buffer.
    size_t buffer = 0;
  };
  llvm::ArrayRef<Tile> getTiles() const { return tiles; }

  /// The types of the tiles in the buffers.
  llvm::ArrayRef<mlir::RankedTensorType> getTypes() const { return types; }

  /// A value that is made while another one of its tile is still to be read.
  struct Conflict {
    mlir::Value made, needed;
  };
  const std::optional<Conflict> &getConflict() const { return conflict; }

private:
  void collect(Tile &tile, mlir::Value value);
  static std::optional<Conflict> findConflict(const Tile &written, const Tile &kept);
  void assignBuffers();

  llvm::SmallVector<Tile> tiles;
  llvm::SmallVector<mlir::RankedTensorType> types;
  std::optional<Conflict> conflict;
};

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_OPERANDBUFFERS_H
