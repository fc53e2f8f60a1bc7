//===- MaskPicture.h - The iterations that masks leave --------------------===//
//
// Evaluates the masks of a kernel's loops with the interpreter, for every grid
// point of a launch, without running what the masks do not depend on.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_EXPLAIN_MASKPICTURE_H
#define TESSERA_LIB_EXPLAIN_MASKPICTURE_H

#include "lib/Interpreter/Interpreter.h"
#include "llvm/Support/JSON.h"

namespace tessera::explain {

/// Most iterations that a picture has, over all grid points.
constexpr int64_t kMostBlocks = 1 << 16;

/// What a grid point makes of an iteration.
enum class Visit : char {
  Skipped = 's', ///< the loop leaves it out
  Masked = 'm',  ///< runs, and the mask leaves nothing of it
  Partial = 'p',
  Full = 'f',
};

/// The iterations of a loop with a mask.
struct MaskPicture {
  /// Whether the mask is that of a tile.visits, and the interval the one that the compiler finds.
  /// Otherwise it is what the selects in a loop depend on, and the interval that of its bounds.
  bool isVisits = false;
  /// The grid dimensions that the picture depends on, by index, and how many points have a row.
  llvm::SmallVector<unsigned> gridDims;
  llvm::SmallVector<int64_t> gridExtents;
  /// Each row stands for so many grid points.
  int64_t pointsPerRow = 1;
  /// Whether columns are placed by the elements that the masks are about, and not by the index of
  /// the loop: rows of a loop that runs backward, or from elsewhere in each row, then lie as the
  /// elements do.
  bool isByPosition = false;
  /// The place of the first column, and the distance between two.
  int64_t first = 0, unit = 1;
  /// Of each point, the first of `gridDims` fastest, a Visit for each column.
  std::vector<std::string> rows;
  /// Why there is no picture; empty where there is one.
  std::string problem;
};

/// What masks may depend on besides the launch.
struct MaskInputs {
  /// By the name of the argument. What is missing is not known.
  llvm::StringMap<double> scalars;
  llvm::StringMap<HostTensor> views;
};

/// The pictures of the masked loops of a kernel as it is read. Where a
/// loop is in others, of their first iteration. An error says why the kernel has none at all.
llvm::Expected<std::vector<MaskPicture>> drawMasks(tile::KernelOp kernel, const Launch &launch,
                                                   const MaskInputs &inputs);

/// With the numbers of iterations of each kind, and how many in a hundred are visited.
llvm::json::Value toJSON(const MaskPicture &picture, tile::KernelOp kernel);

} // namespace tessera::explain

#endif // TESSERA_LIB_EXPLAIN_MASKPICTURE_H
