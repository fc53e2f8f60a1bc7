//===- LaunchParameters.h - What a kernel is launched with ----------------===//
//
// The parameters of the machine kernel, derived from what its roles access: tensor
// maps for bulk copies, pointers and strides for accesses from registers, extents and
// scalars. Also their description for the bundle (docs/bundle.md).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWERTOLLVM_LAUNCHPARAMETERS_H
#define TESSERA_PASSES_LOWERTOLLVM_LAUNCHPARAMETERS_H

#include "dialects/Hop/Hop.h"
#include "dialects/Hop/SharedLayout.h"
#include "dialects/Tile/TileBox.h"
#include "passes/LowerToLLVM/NamedBarriers.h"
#include "llvm/ADT/SetVector.h"

namespace tessera {

/// A dimension of a tensor map.
struct MapDim {
  enum Kind {
    Columns, ///< of the view, or of one chunk of them
    Chunks,  ///< of columns
    Outer,   ///< any other dimension of the view
    Ends,    ///< how far before their end rows are counted from
    Wraps,   ///< strides that lead back by as many rows
  } kind;
  int64_t ofView; ///< the dimension of the view
};

/// The tensor map through which bulk copies go; copies that need equal ones share one.
struct TensorMap {
  unsigned argument; ///< the view
  mlir::RankedTensorType tile;
  tile::TileBox box;
  hop::SharedLayout layout;
  /// One instruction copies all chunks: the view's rows are cut into chunks by a dimension of the
  /// map, which needs a static inner extent and a tile that starts where a chunk does. Otherwise
  /// one instruction a chunk, from any column on.
  bool chunked;
  /// The rows end where a coordinate says (tile.row). Of the dimension of rows, of 2^30, row r has
  /// the place 2^30 - end + r, so that rows from the end on lie outside. `end` strides of a second
  /// dimension lead on to row 2^30 + r, and 2^30 strides of 2^34 less a row of a third one back to
  /// row r, as addresses wrap modulo 2^64. The outermost of four dimensions has no place in the
  /// map, and an index of 0.
  bool ended;
  /// The parts in which the blocks of a cluster copy the tile; one of each kind for a block alone.
  hop::TileParts parts;
  /// Copies round f32 to tf32.
  bool isRounded;

  bool operator==(const TensorMap &other) const {
    auto identity = [](const TensorMap &map) { // the rest of the layout follows from the tile
      return std::tie(map.argument, map.tile, map.box, map.layout.rows, map.chunked, map.ended,
                      map.parts.ofRows, map.parts.ofChunks, map.isRounded);
    };
    return identity(*this) == identity(other);
  }

  /// Rows and chunks that one instruction copies, and the instructions for a part.
  int64_t boxRows() const { return tile.getDimSize(0) / parts.ofRows; }
  int64_t boxChunks() const {
    return chunked && parts.ofRows == 1 ? layout.chunks() / parts.ofChunks : 1;
  }
  int64_t copies() const { return layout.chunks() / parts.ofChunks / boxChunks(); }
  /// The rows that one instruction copies.
  tile::BoxSlice rows() const { return *box.slice(parts.ofRows); }

  /// The dimensions, innermost first: the columns, the dimensions of the tile's rows, the chunks
  /// where there are any, the others.
  llvm::SmallVector<MapDim> dims() const;
  /// The position of the view's dimension `dim`, one of the tile's rows.
  int64_t rowPosition(int64_t dim) const;
  /// The view's dimension of rows.
  int64_t rowDim() const { return static_cast<int64_t>(box.getExtents().size()) - 2; }
  /// The position by which a chunk of columns is chosen.
  int64_t chunkPosition() const;
};

/// One parameter of the machine kernel.
struct LaunchParameter {
  enum Kind { Map, Workspace, Tickets, Timeline, Pointer, Dim, Stride, Scalar } kind;
  unsigned argument = 0;     ///< of the source kernel (Map, Pointer, Stride, Scalar)
  unsigned index = 0;        ///< Map: into maps; Stride: dimension of the view
  mlir::StringRef name = {}; ///< Dim
};

class LaunchParameters {
public:
  /// The extent of a dimension of rows that end before the view does: so many strides of 2^34 wrap.
  static constexpr int64_t wrappedRows = 1 << 30;

  static mlir::FailureOr<LaunchParameters> get(hop::KernelOp kernel);

  mlir::ArrayRef<LaunchParameter> getParameters() const { return parameters; }

  /// The tensor map of a bulk copy.
  const TensorMap &getMap(mlir::Operation *copy) const { return maps[mapOfCopy.at(copy)]; }

  /// The position of a parameter; it exists when the kernel makes use of it.
  unsigned mapPosition(mlir::Operation *copy) const {
    return position(LaunchParameter::Map, getMap(copy).argument, mapOfCopy.at(copy));
  }
  unsigned position(LaunchParameter::Kind kind, unsigned argument, unsigned index = 0) const;
  unsigned dimPosition(mlir::StringRef name) const;
  /// The counter of tiles, two 32-bit words, and one of probes: zero between launches.
  unsigned workspacePosition() const { return position(LaunchParameter::Workspace, 0); }
  /// The tickets of tiles that are added to: 32-bit words, zero between launches.
  unsigned ticketsPosition() const { return position(LaunchParameter::Tickets, 0); }
  /// The memory of hop.timeline.
  unsigned timelinePosition() const { return position(LaunchParameter::Timeline, 0); }

  /// The kernel's entry in a bundle. With `pdl` it waits for the launch before it by itself.
  mlir::DictionaryAttr describe(hop::KernelOp kernel, const NamedBarriers &barriers,
                                mlir::StringRef symbol, bool pdl) const;

private:
  /// What a kernel does with the elements of a view.
  enum Ways : unsigned { kReads = 1, kWrites = 2, kReadsAndWrites = kReads | kWrites };

  mlir::LogicalResult addCopy(mlir::Operation *copy, mlir::Value view, mlir::ValueRange indices,
                              mlir::RankedTensorType tile, int64_t storedRows,
                              std::optional<mlir::ArrayRef<int64_t>> box, int64_t blocks,
                              bool isRounded);
  mlir::LogicalResult addStoredRows(hop::BulkStoreOp store);
  mlir::LogicalResult addEndedRows(mlir::Operation *copy, tile::ViewType view);
  /// What `op` asks of a launch.
  mlir::LogicalResult addUses(mlir::Operation *op);
  void addTickets(mlir::Value view, mlir::Attribute tile);
  /// Of rows that numbers name, `firstNumbered` is the first dimension along which they do.
  void addAccess(mlir::Value view, mlir::ValueRange indices, mlir::Type moved, unsigned ways,
                 std::optional<int64_t> firstNumbered = std::nullopt);
  void addUnique(LaunchParameter parameter);
  mlir::DictionaryAttr describeArgument(hop::KernelOp kernel, unsigned argument) const;
  mlir::DictionaryAttr describeParameter(hop::KernelOp kernel,
                                         const LaunchParameter &parameter) const;
  mlir::ArrayAttr describeRequirements(hop::KernelOp kernel) const;
  mlir::ArrayAttr describeTickets(hop::KernelOp kernel) const;

  mlir::SmallVector<LaunchParameter> parameters;
  mlir::SmallVector<TensorMap> maps;
  llvm::SmallDenseMap<mlir::Operation *, unsigned> mapOfCopy; ///< into maps
  llvm::SmallDenseMap<unsigned, unsigned> access;             ///< per view: its ways
  llvm::SmallDenseMap<unsigned, unsigned> alignment;
  /// Views whose tiles have tickets, and the extents of these tiles.
  llvm::SmallSetVector<std::pair<unsigned, mlir::Attribute>, 2> ticketed;
  /// Extents along which bulk stores write, and the elements that they write at a time.
  llvm::SmallSetVector<std::pair<mlir::StringRef, int64_t>, 2> storedRows;
  /// Extents of rows that end before the view does, wrappedRows at most.
  llvm::SmallSetVector<mlir::StringRef, 2> endedRows;
};

} // namespace tessera

#endif // TESSERA_PASSES_LOWERTOLLVM_LAUNCHPARAMETERS_H
