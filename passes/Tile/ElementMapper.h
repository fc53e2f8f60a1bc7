//===- ElementMapper.h - From a function of scalars to tiles --------------===//

#ifndef TESSERA_PASSES_TILE_ELEMENTMAPPER_H
#define TESSERA_PASSES_TILE_ELEMENTMAPPER_H

#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/Tile/LinearForm.h"

namespace tessera {

/// The index of an element along an axis, from `start` on.
struct AxisIndex {
  int64_t axis;
  mlir::Value start;
};

/// Where the elements of an access lie.
struct ElementPlace {
  enum class Kind {
    Scalar, ///< at one place
    Vector, ///< side by side along `axis`
    Tile,   ///< side by side along both axes
    Rows,   ///< anywhere, the same along the other axis than `axis`
    Anywhere
  };
  Kind kind;
  int64_t axis = 0;
  /// Of the first element; of Rows and Anywhere tiles of them too.
  llvm::SmallVector<mlir::Value> indices;
};

/// What a function adds to memory: elements, before those that go to one place are summed, and a
/// scalar with which sums are multiplied, null for 1.
struct Addition {
  tile::StoreOp store;
  ElementPlace place;
  mlir::Value value, factor;
};

/// Writes a function of scalars on tiles, in the place of a tile.map.
class ElementMapper {
public:
  ElementMapper(tile::MapOp map, mlir::func::FuncOp callee)
      : map(map), callee(callee), builder(map.getLoc(), map) {}

  mlir::LogicalResult run();

private:
  mlir::LogicalResult checkTypes();
  mlir::LogicalResult mapOperation(mlir::Operation &op);
  mlir::LogicalResult mapElementwise(mlir::Operation &op);
  bool mapLinear(mlir::Operation &op);
  bool mapVectors(mlir::Operation &op);
  std::optional<LinearForm> combine(mlir::Operation &op);
  LinearForm multiply(mlir::Value a, mlir::Value b);
  LinearForm getForm(mlir::Value original);
  mlir::Value get(mlir::Value original);
  mlir::Value getShown(mlir::Value original);
  void mapDebug(mlir::Operation &op);
  void hoist(mlir::Operation *before);
  mlir::LogicalResult mapLoad(tile::LoadOp load);
  mlir::LogicalResult mapAddition(tile::StoreOp store);
  void emitAddition(const Addition &addition, mlir::Value sum);
  void emitAdditions();
  std::optional<ElementPlace> findNeighbours(mlir::OperandRange indices, tile::ViewType view);
  ElementPlace findSingle(mlir::OperandRange indices);
  mlir::Value sumAlong(mlir::Value tile, int64_t axis);
  bool isAlong(mlir::Value tile, int64_t axis, unsigned depth = 0);
  mlir::Value toVectorAlong(mlir::Value tile, int64_t axis);
  template <typename AccessOp>
  mlir::LogicalResult checkInside(AccessOp access);
  std::optional<AxisIndex> findAxisIndex(mlir::Value tile);
  std::optional<AxisIndex> findMovedIndex(mlir::Value tile, mlir::Value amount, bool forwards);
  mlir::Value getScalar(mlir::Value tile);
  mlir::Value toTile(mlir::Value value);
  mlir::Value toVector(mlir::Value vector, int64_t axis);

  bool isTile(mlir::Value original) {
    return indices.contains(original) || forms.contains(original) ||
           llvm::isa<mlir::ShapedType>(mapping.lookup(original).getType());
  }
  mlir::RankedTensorType getTileType(mlir::Type element) {
    return mlir::RankedTensorType::get(map.getShape(), element);
  }

  tile::MapOp map;
  mlir::func::FuncOp callee;
  mlir::ImplicitLocOpBuilder builder;
  /// From values of the function to scalars or tiles.
  mlir::IRMapping mapping;
  /// The tiles of i32 that were cast to indices: of the elements, hence of no use but to a load.
  llvm::DenseMap<mlir::Value, mlir::Value> indices;
  /// In the order of the function.
  llvm::SmallVector<Addition> additions;
  /// Sums of products with scalars, which are not computed before they are needed.
  llvm::DenseMap<mlir::Value, std::pair<mlir::Location, LinearForm>> forms;
};

} // namespace tessera

#endif // TESSERA_PASSES_TILE_ELEMENTMAPPER_H
