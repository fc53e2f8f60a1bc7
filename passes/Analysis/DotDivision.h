//===- DotDivision.h - Dots in consumer roles of different programs -------===//
//
// Where no warpgroup has the registers for all accumulators of a kernel, its dots can be divided
// among consumers with different programs (placement = divided). Each has all rows of some of the
// accumulators that loops carry, and the dots that lead to them:
//
//   * the accumulators, in the order of the program, are cut into as many runs as there are
//     consumers, so that the largest is as small as possible;
//   * a dot that leads to accumulators of several consumers runs in the first of them; with one
//     consumer more than there are accumulators such dots have the first consumer to themselves;
//   * what is computed of dots belongs to the consumer of the last of these. Another one that
//     needs it gets it from there, or computes it of what it gets: whichever takes fewer bytes;
//   * all else, which follows from loads and scalars, each makes for itself.
//
// A tile that crosses goes through a pipe: to the same lanes of the other warpgroup, or to dots
// that read it from shared memory. So does a vector of f32 that each row has one of.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_DOTDIVISION_H
#define TESSERA_PASSES_ANALYSIS_DOTDIVISION_H

#include "dialects/Tile/Tile.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallBitVector.h"
#include <string>

namespace tessera {

/// Why dots cannot be divided, and where.
struct DivisionRefusal {
  mlir::Operation *op = nullptr;
  std::string reason;
};

/// A tile that one consumer makes and others need.
struct Crossing {
  mlir::Operation *op;
  unsigned from;
  /// Which of the tiles of its type that this consumer hands on in its block it is. Those of one
  /// number share a pipe.
  unsigned number = 0;

  mlir::RankedTensorType getTile() const {
    return mlir::cast<mlir::RankedTensorType>(op->getResult(0).getType());
  }
};

class DotDivision {
public:
  /// Divides the dots of `kernel`, without those that can be sums apart, among `consumers`; nothing
  /// and a reason when they cannot be divided.
  static std::optional<DotDivision> get(tile::KernelOp kernel, unsigned consumers,
                                        DivisionRefusal &refusal);

  /// The accumulators of dots that the loops of `kernel` carry: the most consumers, but for one.
  static unsigned countAccumulators(tile::KernelOp kernel);

  unsigned getConsumers() const { return programs.size(); }
  const llvm::SetVector<mlir::Operation *> &operationsOf(unsigned consumer) const {
    return programs[consumer].operations;
  }
  bool runs(unsigned consumer, mlir::Operation *op) const {
    return programs[consumer].operations.contains(op);
  }
  /// Whether the consumer makes or gets the value.
  bool has(unsigned consumer, mlir::Value value) const {
    return programs[consumer].values.contains(value);
  }
  /// Whether the consumer computes with the tile that `op` makes, and not only multiplies it from
  /// shared memory.
  bool takesIntoRegisters(unsigned consumer, mlir::Operation *op) const;
  /// The consumer that makes what dots lead to; the last one for all else.
  unsigned ownerOf(mlir::Operation *op) const;

  /// What crosses, in the order of the program.
  llvm::ArrayRef<Crossing> getCrossings() const { return crossings; }

private:
  struct Program {
    llvm::SetVector<mlir::Operation *> operations;
    llvm::DenseSet<mlir::Value> values;
  };

  explicit DotDivision(tile::KernelOp kernel) : kernel(kernel) {}
  bool assignDots(unsigned consumers, DivisionRefusal &refusal);
  llvm::DenseSet<mlir::Operation *> reach(mlir::Operation *root, bool stopsAtOthers) const;
  bool isOfOther(mlir::Operation *op, unsigned consumer) const;
  int64_t bytesFor(mlir::Operation *op, unsigned consumer);
  int64_t bytesToCompute(mlir::Operation *op, unsigned consumer);
  bool crosses(mlir::Operation *op, unsigned consumer);
  void need(mlir::Operation *op, unsigned consumer);
  void need(mlir::Value value, unsigned consumer);
  void run(mlir::Operation *op, unsigned consumer);
  bool check(DivisionRefusal &refusal) const;
  bool checkCrossing(const Crossing &crossing, DivisionRefusal &refusal) const;
  bool checkViews(DivisionRefusal &refusal) const;
  void numberCrossings();

  tile::KernelOp kernel;
  llvm::MapVector<mlir::Operation *, unsigned> dots; ///< the consumer of each, in their order
  llvm::DenseMap<mlir::Operation *, unsigned> owners;
  llvm::SmallVector<llvm::DenseSet<mlir::Operation *>> ownSlices; ///< what each needs anyway
  llvm::SmallVector<Program> programs;
  llvm::DenseMap<std::pair<mlir::Operation *, unsigned>, int64_t> costs; ///< of computing, in bytes
  llvm::SetVector<mlir::Operation *> crossed;
  llvm::DenseSet<mlir::Operation *> converted; ///< what a converter makes for all
  llvm::SmallVector<Crossing> crossings;
};

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_DOTDIVISION_H
