//===- Slicer.h - The program of a role --------------------------------------===//
//
// Writes the slice of a tile program that a role runs: the operations that RoleAssignment
// gives it, in their order, on the rows of the role's warpgroup. What differs between roles
// is how an operation is written, by the table in Slicer::clone:
//
//   | operation             | a role that fills the pipe | a role that reads it           |
//   |-----------------------|----------------------------|--------------------------------|
//   | load through a pipe   | hop.pipe.load              | hop.pipe.wait, hop.pipe.release |
//   | gather to a pipe      | hop.gather into a slot     | hop.pipe.wait, hop.pipe.release |
//   | load, transposed      | hop.pipe.load              | hop.transpose to another pipe   |
//   | store through a pipe  | hop.stage into a slot      | hop.bulk_store from the slot    |
//   | operand of a sum      | the same, where it is made | an operand of hop.mma           |
//   | tile of another       | the same, where it is made | hop.fetch before its first use, |
//   | consumer              |                            | or an operand of hop.mma        |
//   | operand of a sum that | the same, for both blocks  | the second operand of another  |
//   | blocks exchange       |                            | hop.mma                        |
//   | operand, converted    | hop.fetch, what computes   | an operand of hop.mma           |
//   |                       | it, hop.stage, in parts    |                                 |
//   | operand, extended by  | hop.pipe.load              | hop.fetch, arith.extf           |
//   | those who multiply it |                            |                                 |
//   | bound by what rows    | tile.reduce_range,         | hop.pipe.get                    |
//   | load                  | hop.pipe.put               |                                 |
//   | skip of loads         | nothing                    | a wait and a release for each  |
//   | common bound          | the longest of the cluster | the block's own                |
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_WARPSPECIALIZE_SLICER_H
#define TESSERA_PASSES_WARPSPECIALIZE_SLICER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Analysis/RowPartition.h"
#include "passes/WarpSpecialize/RoleAssignment.h"

namespace tessera {

/// A slot of `pipe`, as a role sees it.
inline hop::SharedType slotType(mlir::Value pipe) {
  mlir::RankedTensorType tile = mlir::cast<hop::PipeType>(pipe.getType()).getTile();
  return hop::SharedType::get(pipe.getContext(), tile, tile.getDimSize(0));
}

class Slicer {
public:
  /// Of the role number `role`, whose warpgroups divide rows as `rows` says; `warpgroup` is its
  /// index within the role, and `arguments` maps the kernel's block arguments.
  Slicer(PipePlan &plan, const RoleAssignment &assignment, llvm::ArrayRef<RoleSpec> roles,
         unsigned role, const RowPartition &rows, mlir::Value warpgroup,
         const mlir::IRMapping &arguments)
      : plan(plan), assignment(assignment), role(role), spec(roles[role]), rows(rows),
        warpgroup(warpgroup), whole(arguments) {
    for (auto &[last, conversion] : plan.conversions)
      if (spec.task == RoleTask::Convert)
        steps.insert_range(conversion.operations);
  }

  mlir::LogicalResult slice(mlir::Block &program, mlir::OpBuilder &builder);

private:
  using OpBuilder = mlir::OpBuilder;
  using Location = mlir::Location;
  using LogicalResult = mlir::LogicalResult;
  using Value = mlir::Value;

  /// A piped tile, or a computed one that is transposed, and whether a transpose stands between it
  /// and its use.
  struct Operand {
    Value tile;
    bool transposed = false;
    /// A transposer has put its rows into the order of an accumulator's columns.
    bool inAccumulatorOrder = false;
  };

  Value lookup(mlir::OpOperand &operand);
  mlir::Type typeOf(Value value);

  // Structure.
  LogicalResult cloneBlock(mlir::Block &block, OpBuilder &builder);
  LogicalResult clone(mlir::Operation *op, OpBuilder &builder);
  LogicalResult cloneOwn(mlir::Operation *op, OpBuilder &builder);
  LogicalResult cloneLoop(mlir::scf::ForOp loop, OpBuilder &builder);
  LogicalResult cloneConditional(mlir::scf::IfOp conditional, OpBuilder &builder);
  LogicalResult cloneSpeculation(tile::SpeculateOp speculation, OpBuilder &builder);
  LogicalResult fillBlock(mlir::Block &source, mlir::Block &target, llvm::ArrayRef<unsigned> kept);
  void cloneGeneric(mlir::Operation *op, OpBuilder &builder);

  // What crosses the boundary of a role.
  LogicalResult cloneLoad(tile::LoadOp load, OpBuilder &builder);
  void writePrefetch(tile::LoadOp load, OpBuilder &builder);
  void cloneGather(tile::GatherOp gather, OpBuilder &builder);
  void cloneRuns(tile::GatherRunsOp gather, OpBuilder &builder);
  void writeFill(tile::LoadOp load, PipeInfo &info, OpBuilder &builder);
  llvm::SmallVector<Value> wholeOf(mlir::ValueRange values) const {
    return llvm::map_to_vector(values, [&](Value value) { return whole.lookupOrDefault(value); });
  }
  void writeWait(Value tile, PipeInfo &info, OpBuilder &builder);
  void writeHalfWaits(tile::LoadOp load, PipeInfo &info, OpBuilder &builder);
  void writeTheirFill(tile::LoadOp load, PipeInfo &info, OpBuilder &builder);
  void writeHalfFill(tile::LoadOp load, Value pipe, llvm::SmallVector<Value> place,
                     OpBuilder &builder);
  Value theirsOf(Value value, mlir::IRMapping &known, OpBuilder &builder);
  void writePeek(tile::LoadOp load, PipeInfo &info, OpBuilder &builder);
  void writeLate(mlir::Operation *op, OpBuilder &builder);
  void writeFetch(tile::LoadOp load, PipeInfo &info, OpBuilder &builder);
  void writeTransposed(tile::LoadOp load, PipeInfo &info, OpBuilder &builder);
  void writeGather(tile::GatherOp gather, PipeInfo &info, OpBuilder &builder);
  mlir::OpBuilder onOneThread(mlir::Location loc, OpBuilder &builder);
  void writeRuns(tile::GatherRunsOp gather, PipeInfo &info, OpBuilder &builder);
  LogicalResult writeOperand(mlir::Operation *op, PipeInfo &info, OpBuilder &builder);
  void writeTile(Location loc, Value value, PipeInfo &info, OpBuilder &builder, bool tf32 = false);
  void writeOperandTile(mlir::Operation *op, PipeInfo &info, OpBuilder &builder);
  void writeConversion(const Conversion &conversion, PipeInfo &info, OpBuilder &builder);
  /// A part of the rows or of the columns of what is converted.
  struct Part {
    int64_t number;
    bool ofColumns;
    mlir::RankedTensorType tile;
    mlir::IRMapping known;
  };
  Value partOfNumbers(Value value, const Part &part, OpBuilder &builder);
  void writePart(const Conversion &conversion, Part part, Value source, Value target,
                 OpBuilder &builder);
  /// What goes before and behind the copies of a sum that has a ticket.
  void writeTicketWait(tile::StoreOp store, mlir::OpBuilder &builder);
  void writeTicketPass(tile::StoreOp store, mlir::OpBuilder &builder);
  std::pair<Value, llvm::SmallVector<int64_t>> ticketOf(tile::StoreOp store,
                                                        mlir::OpBuilder &builder);
  void writeBulkStore(tile::StoreOp store, OpBuilder &builder);
  /// The indices from which a result is stored, or `number`, one of the parts of a sum.
  llvm::SmallVector<Value> placeOf(tile::StoreOp store, const ReducerSum *sum, int64_t number,
                                   OpBuilder &builder);
  void writeSum(const ReducerSum &sum, OpBuilder &builder);
  void writePieces(const ReducerSum &sum, int64_t number, Value part, OpBuilder &builder);
  Value writeProduct(const ReducerSum &sum, int64_t number, OpBuilder &builder);
  LogicalResult cloneSkip(tile::SkipLoadsOp skip, OpBuilder &builder);
  void writeCrossing(mlir::Operation *op, PipeInfo &info, OpBuilder &builder);
  void writeBound(tile::ReduceRangeOp bound, PipeInfo &info, OpBuilder &builder);
  void sinkCrossings();
  void releaseSlots();

  // The warpgroup's share of the rows.
  Value shareOffset(OpBuilder &builder, Location loc, int64_t shareRows);
  template <typename AccessOp>
  std::pair<llvm::SmallVector<Value>, mlir::DenseI64ArrayAttr>
  shareOf(OpBuilder &builder, AccessOp op, mlir::Type type);
  void cloneDirectLoad(tile::LoadOp load, OpBuilder &builder);
  void cloneStore(tile::StoreOp store, OpBuilder &builder);
  LogicalResult cloneTranspose(tile::TransposeOp transpose, OpBuilder &builder);
  bool isMoved(tile::TransposeOp transpose) const;
  void cloneExtension(mlir::arith::ExtFOp extension, OpBuilder &builder);
  void writeWidened(Value tile, Operand loaded, OpBuilder &builder);
  LogicalResult cloneDot(tile::DotOp dot, OpBuilder &builder);
  Value sliceOf(Value shared, bool ofColumns, Location loc, OpBuilder &builder) {
    return partOf(shared, ofColumns, rows.getParts(), warpgroup, loc, builder);
  }
  static Value partOf(Value shared, bool ofColumns, int64_t parts, Value number, Location loc,
                      OpBuilder &builder);
  LogicalResult cloneRematerializable(mlir::Operation *op, OpBuilder &builder);
  Value makeShare(tile::IotaOp iota, mlir::RankedTensorType shareType, OpBuilder &builder);

  PipePlan &plan;
  const RoleAssignment &assignment;
  unsigned role;
  const RoleSpec &spec;
  const RowPartition &rows;
  Value warpgroup;
  mlir::IRMapping whole; ///< every value; in a warpgroup's share where it is partitioned
  mlir::IRMapping share; ///< the share of tiles that are made anew for each use
  llvm::DenseMap<Value, Operand> operands;
  llvm::DenseMap<Value, Value> theirs; ///< what the other block of a cluster has of an operand
  llvm::SmallVector<hop::PipeWaitOp> waits;
  llvm::SmallVector<hop::PipeWaitOp> crossings; ///< those for tiles of other consumers
  llvm::DenseSet<mlir::Operation *> handedOver; ///< operands of sums, behind the dots of this role
  llvm::DenseSet<mlir::Operation *> steps;      ///< of the conversions that this role makes
};

} // namespace tessera

#endif // TESSERA_PASSES_WARPSPECIALIZE_SLICER_H
