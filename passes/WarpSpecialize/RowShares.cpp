//===- RowShares.cpp - Operations on a warpgroup's share of the rows ---------===//
//
// How a role writes accesses, products and tiles that are made anew. See Slicer.h.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileBox.h"
#include "passes/Analysis/WidenedOperands.h"
#include "passes/Schedule/ResourceModel.h"
#include "passes/WarpSpecialize/Slicer.h"

using namespace mlir;
using namespace tessera;

/// Row `warpgroup * rows` of a tile that is divided into shares of `rows`.
Value Slicer::shareOffset(OpBuilder &builder, Location loc, int64_t shareRows) {
  Value extent = arith::ConstantIndexOp::create(builder, loc, shareRows);
  return arith::MulIOp::create(builder, loc, warpgroup, extent);
}

static Value remainder(OpBuilder &builder, Location loc, Value value, int64_t divisor) {
  return arith::RemUIOp::create(builder, loc, value,
                                arith::ConstantIndexOp::create(builder, loc, divisor));
}

/// Moves an access to the warpgroup's share of the rows. The indices, and the box if it has one.
template <typename AccessOp>
std::pair<SmallVector<Value>, DenseI64ArrayAttr> Slicer::shareOf(OpBuilder &builder, AccessOp op,
                                                                 Type type) {
  SmallVector<Value> indices;
  for (Value index : op.getIndices())
    indices.push_back(whole.lookupOrDefault(index));
  Location loc = op.getLoc();
  tile::TileBox box(op.getView().getType(), cast<RankedTensorType>(type), op.getBox());
  // RowPartition has checked that there are such boxes.
  tile::BoxSlice slice = *box.slice(rows.getParts());
  auto divide = [&](Value number, int64_t extent) -> std::pair<Value, Value> {
    Value digit = remainder(builder, loc, number, extent);
    Value divisor = arith::ConstantIndexOp::create(builder, loc, extent);
    return {digit, arith::DivUIOp::create(builder, loc, number, divisor)};
  };
  auto place = [&](size_t i, Value digit) {
    Value &index = indices[slice.dim - i];
    auto row = index.getDefiningOp<tile::RowOp>();
    index = arith::AddIOp::create(builder, loc, row ? row.getRow() : index, digit);
    if (row)
      index = tile::RowOp::create(builder, loc, index, row.getEnd());
  };
  tile::splitRow<Value>(shareOffset(builder, loc, slice.step), box.getCarries(slice.dim), divide,
                        place);
  return {indices, op.getBox() ? builder.getDenseI64ArrayAttr(slice.part.getExtents())
                               : DenseI64ArrayAttr()};
}

void Slicer::cloneDirectLoad(tile::LoadOp load, OpBuilder &builder) {
  if (!rows.isPartitioned(load.getResult())) {
    cloneGeneric(load, builder);
    return;
  }
  auto [indices, box] = shareOf(builder, load, load.getType());
  auto clone = tile::LoadOp::create(builder, load.getLoc(), rows.shareOf(load.getType()),
                                    whole.lookup(load.getView()), indices, box, load.getSiteAttr(),
                                    load.getPipeAttr(), load.getAlikeAttr(), load.getAheadAttr(),
                                    load.getWideAttr());
  clone->setDiscardableAttrs(load->getDiscardableAttrDictionary());
  whole.map(load.getResult(), clone.getResult());
}

void Slicer::cloneStore(tile::StoreOp store, OpBuilder &builder) {
  PipeInfo *info = plan.isPiped(store) ? &plan.pipeOf(store) : nullptr;
  if (info && !assignment.fills(role, store))
    return writeBulkStore(store, builder);
  if (const ReducerSum *sum = plan.sumOf(store); sum && sum->isDotStored())
    return writeSum(*sum, builder);
  if (info)
    return writeTile(store.getLoc(), lookup(store.getValueMutable()), *info, builder);
  // Each warpgroup adds its part of a partial sum. One thread of all stores a scalar.
  if (!isa<RankedTensorType>(store.getValue().getType()) || rows.isByLayout() ||
      rows.isPartialSum(store.getValue())) {
    cloneGeneric(store, builder);
    return;
  }
  Value value = lookup(store.getValueMutable());
  auto [indices, box] = shareOf(builder, store, store.getValue().getType());
  writeTicketWait(store, builder);
  tile::StoreOp::create(builder, store.getLoc(), value, whole.lookup(store.getView()), indices, box,
                        store.getAdd());
  writeTicketPass(store, builder);
}

/// Loaded tiles are transposed by the dot that reads them.
static LogicalResult refuseTranspose(tile::TransposeOp transpose) {
  InFlightDiagnostic error =
      transpose.emitError("transposes a tile that no dot reads as it is: for arithmetic it is in "
                          "registers, where one warpgroup transposes what it loads for arithmetic "
                          "alone or stores, and others the operands of dots");
  if (transpose->use_empty())
    return error;
  error.attachNote((*transpose->user_begin())->getLoc())
      << "read here; compute with the tile as it is and make the transposed product, "
         "B^T A^T for A B, or let the view have the other order of dimensions";
  return error;
}

/// Takes a tile of 8 bits from its slot, and extends it for products.
void Slicer::cloneExtension(arith::ExtFOp extension, OpBuilder &builder) {
  tile::LoadOpInterface load = loadedOperand(extension.getIn());
  if (load && isWidened(load))
    writeWidened(extension.getResult(), operands.find(extension.getIn())->second, builder);
  else
    cloneGeneric(extension, builder);
}

/// What dots read of `tile`, which `loaded` is extended to, as it is or transposed.
void Slicer::writeWidened(Value tile, Operand loaded, OpBuilder &builder) {
  bool isMultiplied = false;
  for (Operation *user : tile.getUsers())
    if (auto transpose = dyn_cast<tile::TransposeOp>(user))
      writeWidened(transpose.getResult(), {loaded.tile, !loaded.transposed}, builder);
    else
      isMultiplied = true;
  if (!isMultiplied)
    return;
  Location loc = tile.getLoc();
  auto type = cast<RankedTensorType>(typeOf(tile));
  Value source = loaded.tile;
  if (rows.isPartitioned(tile))
    source = sliceOf(source, /*ofColumns=*/loaded.transposed, loc, builder);
  Type bytes = type.clone(cast<hop::SharedType>(source.getType()).getTile().getElementType());
  auto fetch = hop::FetchOp::create(builder, loc, bytes, source, loaded.transposed);
  whole.map(tile, arith::ExtFOp::create(builder, loc, type, fetch.getTile()).getResult());
}

/// Whether one warpgroup moves the tile between global memory and the registers of accumulators,
/// which have its rows as columns.
bool Slicer::isMoved(tile::TransposeOp transpose) const {
  if (rows.getParts() > 1 || rows.isByLayout() || transpose->use_empty())
    return false;
  auto load = transpose.getSource().getDefiningOp<tile::LoadOp>();
  return load ? !plan.isPiped(load) &&
                    llvm::all_of(load->getUsers(), llvm::IsaPred<tile::TransposeOp>)
              : llvm::all_of(transpose->getUsers(), llvm::IsaPred<tile::StoreOp>);
}

/// A computed tile is transposed where it is written to shared memory for the first operand of a
/// dot, and where a dot reads it there as the second (hop-stage-operands). Between registers and
/// global memory it is a matter of which thread has which elements.
LogicalResult Slicer::cloneTranspose(tile::TransposeOp transpose, OpBuilder &builder) {
  if (auto found = operands.find(transpose.getSource()); found != operands.end()) {
    operands[transpose.getResult()] = {found->second.tile, !found->second.transposed};
    return success();
  }
  // Where it was extended.
  if (widenedLoad(transpose.getResult()))
    return success();
  bool isOperand = llvm::all_of(transpose->getUses(), [](OpOperand &use) {
    return isa<tile::DotOp>(use.getOwner()) && use.getOperandNumber() < 2;
  });
  if (isMoved(transpose))
    return cloneGeneric(transpose, builder), success();
  if (!isOperand || !computedTranspose(transpose.getResult()))
    return refuseTranspose(transpose);
  operands[transpose.getResult()] = {lookup(transpose.getSourceMutable()), true};
  return success();
}

LogicalResult Slicer::cloneDot(tile::DotOp dot, OpBuilder &builder) {
  // The store makes it, part by part.
  if (const ReducerSum *sum = plan.sumOf(dot); sum && sum->isDotStored())
    return success();
  auto known = operands.find(dot.getB());
  Operand b = known == operands.end() ? Operand{lookup(dot.getBMutable())} : known->second;
  Value left, right = b.tile;
  bool transposeA = false;
  if (auto a = operands.find(dot.getA()); a != operands.end()) {
    transposeA = a->second.transposed;
    left = a->second.tile;
    if (isa<hop::SharedType>(left.getType()))
      left = sliceOf(left, /*ofColumns=*/transposeA, dot.getLoc(), builder);
    else if (isa<hop::SharedType>(right.getType())) // contracts the rows that the warpgroup has
      right = sliceOf(right, /*ofColumns=*/b.transposed, dot.getLoc(), builder);
  } else {
    left = lookup(dot.getAMutable());
  }
  Value acc = dot.getAcc() ? lookup(dot.getAccMutable()[0]) : Value();
  auto mma = hop::MmaOp::create(builder, dot.getLoc(), typeOf(dot.getResult()), left, right, acc,
                                transposeA, b.transposed);
  mma.setInAccumulatorOrder(b.inAccumulatorOrder);
  whole.map(dot.getResult(), mma.getResult());
  return success();
}

/// A part of the rows of a tile in shared memory, or of its columns.
Value Slicer::partOf(Value shared, bool ofColumns, int64_t parts, Value number, Location loc,
                     OpBuilder &builder) {
  if (parts == 1)
    return shared;
  auto type = cast<hop::SharedType>(shared.getType());
  SmallVector<int64_t> shape(type.getTile().getShape());
  shape[ofColumns] /= parts;
  auto part = hop::SharedType::get(
      type.getContext(), cast<RankedTensorType>(type.getTile().clone(shape)), type.getStoredRows());
  return hop::SliceOp::create(builder, loc, part, shared, number);
}

/// Makes a constant, splat or iota in both forms; what is unused goes away later.
LogicalResult Slicer::cloneRematerializable(Operation *op, OpBuilder &builder) {
  builder.clone(*op, whole);
  Value result = op->getResult(0);
  auto type = cast<RankedTensorType>(result.getType());
  if (rows.getParts() == 1 || type.getRank() == 0 || type.getDimSize(0) % rows.getParts() != 0)
    return success();
  Type shareType = rows.shareOf(type);
  Value made;
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!dense || !dense.isSplat())
      return op->emitError("is a constant tile of different elements; build it from tile.iota");
    made = arith::ConstantOp::create(builder, op->getLoc(),
                                     dense.resizeSplat(cast<ShapedType>(shareType)));
  } else if (auto splat = dyn_cast<tile::SplatOp>(op)) {
    made = tile::SplatOp::create(builder, op->getLoc(), shareType,
                                 whole.lookupOrDefault(splat.getSource()));
  } else {
    made = makeShare(cast<tile::IotaOp>(op), cast<RankedTensorType>(shareType), builder);
  }
  share.map(result, made);
  return success();
}

Value Slicer::makeShare(tile::IotaOp iota, RankedTensorType shareType, OpBuilder &builder) {
  Location loc = iota.getLoc();
  Value start = whole.lookupOrDefault(iota.getStart());
  IntegerAttr period = iota.getPeriodAttr();
  int64_t shareRows = shareType.getDimSize(0), extent = iota.getPeriodOrExtent();
  if (iota.getAxis() == 0 && shareRows % extent != 0) {
    // The share is part of a period; RowPartition has checked that periods hold whole shares.
    Value offset = shareOffset(builder, loc, shareRows);
    if (extent < shareRows * rows.getParts())
      offset = remainder(builder, loc, offset, extent);
    start = arith::AddIOp::create(builder, loc, start, offset);
    period = {};
  }
  return tile::IotaOp::create(builder, loc, shareType, start, iota.getAxis(), period);
}
