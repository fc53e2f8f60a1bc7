//===- Conversions.h - Operands that are converted on their way ------------===//
//
// A dot reads its second operand from shared memory. Where that is computed element by
// element from a loaded tile and numbers, and so waits for no product, a role of its own
// can make it between the role that loads and those that multiply: a converter. Tiles of 8 bits
// may be computed with iotas too, and with numbers of rows, which the converter loads itself.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_CONVERSIONS_H
#define TESSERA_PASSES_ANALYSIS_CONVERSIONS_H

#include "dialects/Tile/Tile.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/DenseSet.h"

namespace tessera {

struct Conversion {
  tile::LoadOpInterface load;
  /// What makes the tile of the loaded one, in the order of the program.
  llvm::SmallVector<mlir::Operation *> operations;
  /// How many vectors of numbers of rows are among what it is made of.
  unsigned rowVectors = 0;

  /// The tile that dots read, transposed or not.
  mlir::Value getTile() const { return operations.back()->getResult(0); }
};

/// Why an operand is not made by a conversion.
struct ConversionRefusal {
  mlir::Operation *op = nullptr;
  std::string reason;
};

/// The conversion that makes the computed operand of a dot; nothing where none does, for the reason
/// in `refusal`.
std::optional<Conversion> findConversion(mlir::Value operand, ConversionRefusal &refusal);

/// Into how many parts of its rows, or of its columns, a conversion is cut: as many as leave a
/// thread of the converter with few elements. Columns in whole chunks of bytes.
int64_t countConvertedParts(mlir::RankedTensorType tile, bool ofColumns);

/// Whether dots read the tile of `load` from shared memory, or what a converter makes of it.
bool isLoadedForDots(tile::LoadOpInterface load);

/// The gathers of `kernel` whose tiles go through pipes, as dots or converters read them.
llvm::SmallVector<tile::GatherOp> pipedGathers(tile::KernelOp kernel);

/// The load behind the second operand of `dot`, converted on its way or not; null for others.
tile::LoadOpInterface loadOfB(tile::DotOp dot);

/// The second operand of `dot` where those who multiply it compute it, as it goes through shared
/// memory: behind what transposes it there. Null for what is loaded, converted on its way or not.
mlir::OpOperand *computedB(tile::DotOp dot);

/// Those of the dots in `program`.
llvm::SmallVector<mlir::OpOperand *> computedBs(mlir::Operation *program);

/// How an operand of a dot comes to it: as it was loaded, from a converter, or from those who
/// multiply it.
enum class OperandWay { Loaded, Converted, Computed };

/// That of the first or the second operand of a dot.
OperandWay wayOf(mlir::OpOperand &operand);

/// The conversions of the second operands of the dots in `program`, in program order.
llvm::SmallVector<Conversion> findConversions(mlir::Operation *program);

/// The operations of all of them, with the splats and vectors that only they read.
llvm::DenseSet<mlir::Operation *> conversionOperations(mlir::Operation *program);

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_CONVERSIONS_H
