//===- GridOrder.h - How the work of a tile depends on its place ----------===//
//
// Whether a value grows with an index of the grid: tiles whose loops run longer should
// start first.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_GRIDORDER_H
#define TESSERA_PASSES_ANALYSIS_GRIDORDER_H

#include "dialects/Hop/Hop.h"
#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

namespace tessera {

class IndexDependence;

/// Sliding: the difference of two that grow, as the length of a window, which is the same
/// everywhere but where an end cuts it off.
enum class Trend { Constant, Increasing, Decreasing, Sliding, Unknown };

/// The number of tiles along one dimension of a grid.
mlir::Value countTiles(tile::GridDimAttr dim, mlir::OpBuilder &builder, mlir::Location loc);

/// Whether a kernel of which each thread block has its place in the grid may have more of them in y
/// or z than launches take, so that it also runs where a launch has all of them in x.
bool mayLaunchFlat(hop::KernelOp kernel);

/// How `value` changes as `index` grows and all else stays.
Trend trendOf(mlir::Value value, mlir::Value index);

/// Of what the begin of `loop` is the greatest of, or its end the least of, what varies with an
/// index. Where a mask may leave nothing, an end is the greater one of the begin and a number,
/// which makes the loop what it is with the number alone.
mlir::Value varyingBegin(mlir::scf::ForOp loop, const IndexDependence &dependence);
mlir::Value varyingEnd(mlir::scf::ForOp loop, const IndexDependence &dependence);

/// How the trip counts of the kernel's loops change as grid index `dim` grows.
Trend workTrend(tile::KernelOp kernel, unsigned dim);

/// Whether a window that slides with grid index `dim` reaches further past a tile than before it,
/// as far as constants say: then the last tiles' loops are cut off, and else the first ones'.
bool endsAreCutOff(tile::KernelOp kernel, unsigned dim);

/// Whether some tiles of loops are loaded by the first index of the grid alone, others by the other
/// indices alone, as those of a matrix product, or biases of attention that all heads have: the
/// shape of what runs together decides how much of them is the same.
bool sharesAlongBoth(tile::KernelOp kernel);

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_GRIDORDER_H
