//===- ColumnParts.cpp - Dots with accumulators in parts -------------------===//
//
// See ColumnParts.h.
//
//===----------------------------------------------------------------------===//

#include "passes/Schedule/ColumnParts.h"
#include "dialects/Hop/Machine.h"
#include "dialects/Tile/Reductions.h"
#include "dialects/Tile/RewriteNotes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "passes/Analysis/DotDivision.h"
#include "passes/Analysis/TileFlow.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

namespace {

RankedTensorType tileOf(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

/// Whether parts of `value` are made where they are needed, whatever is cut beside it.
bool isMadeAnew(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto constant = dyn_cast_or_null<arith::ConstantOp>(op))
    return isa<SplatElementsAttr>(constant.getValue());
  auto iota = dyn_cast_or_null<IotaOp>(op);
  return isa_and_nonnull<SplatOp>(op) || (iota && !iota.getPeriod());
}

/// Arithmetic on tiles of one shape, element by element.
bool isElementwise(Operation *op) {
  return op->getNumResults() == 1 && op->getNumRegions() == 0 &&
         op->hasTrait<OpTrait::Elementwise>();
}

/// Cuts the accumulators of dots, with all on their way, into parts along their columns.
class Cut {
public:
  Cut(KernelOp kernel, const ColumnCut &plan, CutRefusal &refusal)
      : kernel(kernel), plan(plan), parts(plan.parts), refusal(refusal) {}

  /// Finds what is cut.
  LogicalResult find();
  void rewrite();

private:
  LogicalResult mark(Value value, int64_t axis, Operation *by);
  LogicalResult follow(Operation *op);
  LogicalResult followDot(DotOp dot);
  LogicalResult followVector(Operation *op, Value tile, Value vector, int64_t axis);
  LogicalResult followHandovers(Value value, int64_t axis);
  LogicalResult check(Operation *op) const;
  LogicalResult refuse(Operation *op, const Twine &reason) const;

  bool isCut(Value value) const { return axes.contains(value); }
  std::optional<int64_t> axisOf(Value value) const {
    auto found = axes.find(value);
    return found == axes.end() ? std::nullopt : std::optional(found->second);
  }
  /// Whether `dot` sums over what is cut. One of its operands may be made anew.
  bool isSum(DotOp dot) const { return axisOf(dot.getA()) == 1 || axisOf(dot.getB()) == 0; }
  Type partOf(Type type, int64_t axis) const;
  Value partOf(Value value, int64_t axis, int64_t part);
  Value shift(Value index, int64_t elements, OpBuilder &builder, Location loc) const;

  void rewrite(Block *block);
  void rewrite(Operation *op);
  void rewrite(scf::ForOp loop);
  void rewrite(scf::IfOp branch);
  void rewrite(SpeculateOp speculation);
  void rewriteContraction(DotOp dot);
  void rewriteReduction(ReduceOp reduce);
  SmallVector<Type> typesOfParts(ValueRange results) const;
  SmallVector<Value> partsOf(ValueRange values, ValueRange results);
  void replaceByParts(ValueRange values, ValueRange own);
  Operation *cloneFor(Operation *op, int64_t part);
  void notePart(Operation *own, Value tile, int64_t axis) const;

  KernelOp kernel;
  const ColumnCut &plan;
  int64_t parts;
  CutRefusal &refusal;
  llvm::MapVector<Value, int64_t> axes; ///< along which each value is cut
  llvm::SetVector<Operation *> open;
  DenseMap<Value, SmallVector<Value>> made; ///< the parts of each value
  SmallVector<Operation *> replaced;
};

//===----------------------------------------------------------------------===//
// What is cut
//===----------------------------------------------------------------------===//

/// Keeps why `op` cannot be cut: "..., as dots have accumulators of more than 256 columns; ...".
LogicalResult Cut::refuse(Operation *op, const Twine &reason) const {
  refusal = {op, (reason + " " + plan.instead).str()};
  return failure();
}

LogicalResult Cut::mark(Value value, int64_t axis, Operation *by) {
  if (isMadeAnew(value))
    return success();
  auto [entry, isNew] = axes.try_emplace(value, axis);
  if (!isNew && entry->second != axis)
    return refuse(by, llvm::formatv("reads a tile along its {0} that other dots need in {1} parts "
                                    "along its {2}, as {3}; load it a second time, or",
                                    axis ? "columns" : "rows", parts, axis ? "rows" : "columns",
                                    plan.reason));
  if (!isNew)
    return success();
  if (tileOf(value).getDimSize(axis) % (parts * hopper::mmaColumns))
    return refuse(by, llvm::formatv("is cut into {0} parts of a multiple of {1} along its {2}, and "
                                    "has {3} of them, as {4};",
                                    parts, hopper::mmaColumns, axis ? "columns" : "rows",
                                    tileOf(value).getDimSize(axis), plan.reason));
  if (Operation *def = value.getDefiningOp())
    open.insert(def);
  for (Operation *user : value.getUsers())
    open.insert(user);
  return followHandovers(value, axis);
}

/// What loops, conditionals and speculations hand on is cut alike.
LogicalResult Cut::followHandovers(Value value, int64_t axis) {
  for (const Handover &handover : findTileHandovers(value))
    for (Value other : handover.values())
      if (failed(mark(other, axis, handover.op)))
        return failure();
  return success();
}

LogicalResult Cut::find() {
  for (DotOp dot : plan.dots)
    if (failed(mark(dot.getResult(), 1, dot)))
      return failure();
  while (!open.empty())
    if (failed(follow(open.pop_back_val())))
      return failure();
  return success();
}

/// Cuts what `op` has beside values that are cut.
LogicalResult Cut::follow(Operation *op) {
  if (auto dot = dyn_cast<DotOp>(op))
    return followDot(dot);
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    Value from = transpose.getSource(), to = transpose.getResult();
    if (isCut(from))
      return mark(to, 1 - *axisOf(from), op);
    return mark(from, 1 - *axisOf(to), op);
  }
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    return followVector(op, broadcast.getResult(), broadcast.getSource(), broadcast.getAxis());
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return followVector(op, reduce.getSource(), reduce.getResult(), reduce.getAxis());
  if (!isElementwise(op))
    return check(op);
  SmallVector<Value> values(op->getOperands());
  llvm::append_range(values, op->getResults());
  auto *known = llvm::find_if(values, [&](Value value) { return isCut(value); });
  for (Value value : values)
    if (known != values.end() && tileOf(value) && failed(mark(value, *axisOf(*known), op)))
      return failure();
  return success();
}

/// Columns of the result are those of the second operand and of the accumulator, rows those of the
/// first one; the columns of the first operand are the rows of the second one.
LogicalResult Cut::followDot(DotOp dot) {
  Value a = dot.getA(), b = dot.getB(), acc = dot.getAcc(), result = dot.getResult();
  if (isSum(dot) && (failed(mark(a, 1, dot)) || failed(mark(b, 0, dot))))
    return failure();
  bool isWide = axisOf(b) == 1 || axisOf(result) == 1 || (acc && axisOf(acc) == 1);
  if (isWide && (failed(mark(b, 1, dot)) || failed(mark(result, 1, dot)) ||
                 (acc && failed(mark(acc, 1, dot)))))
    return failure();
  bool isTall = axisOf(a) == 0 || axisOf(result) == 0 || (acc && axisOf(acc) == 0);
  if (isTall && (failed(mark(a, 0, dot)) || failed(mark(result, 0, dot)) ||
                 (acc && failed(mark(acc, 0, dot)))))
    return failure();
  return success();
}

/// `axis` is what `tile` has and `vector` lacks.
LogicalResult Cut::followVector(Operation *op, Value tile, Value vector, int64_t axis) {
  if (isCut(vector))
    return mark(tile, 1 - axis, op);
  return axisOf(tile) == axis ? success() : mark(vector, 0, op);
}

/// Whether parts of what `op` loads, stores or hands on can be made.
LogicalResult Cut::check(Operation *op) const {
  if (isa<scf::ForOp, scf::IfOp, scf::YieldOp, SpeculateOp, YieldIfOp, YieldOp>(op))
    return success();
  if (auto load = dyn_cast<LoadOp>(op); load && (!load.getBox() || axisOf(load.getResult()) == 1))
    return success();
  if (isa<GatherOp, GatherRunsOp>(op) && axisOf(op->getResult(0)) == 1)
    return success();
  if (auto store = dyn_cast<StoreOp>(op);
      store && !store.getTicket() && (!store.getBox() || axisOf(store.getValue()) == 1))
    return success();
  return refuse(op, llvm::formatv("has a tile that is needed in {0} parts, as {1}, and makes no "
                                  "parts of it;",
                                  parts, plan.reason));
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

Type Cut::partOf(Type type, int64_t axis) const {
  auto tile = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tile.getShape());
  shape[axis] /= parts;
  return RankedTensorType::get(shape, tile.getElementType());
}

Value Cut::shift(Value index, int64_t elements, OpBuilder &builder, Location loc) const {
  if (!elements)
    return index;
  auto row = index.getDefiningOp<RowOp>();
  Value moved = arith::AddIOp::create(builder, loc, row ? row.getRow() : index,
                                      arith::ConstantIndexOp::create(builder, loc, elements));
  return row ? RowOp::create(builder, loc, moved, row.getEnd()).getResult() : moved;
}

/// Part number `part` of `value`, which is cut along `axis` where it is used.
Value Cut::partOf(Value value, int64_t axis, int64_t part) {
  if (!tileOf(value) || !isMadeAnew(value))
    return isCut(value) ? made.find(value)->second[part] : value;
  OpBuilder builder(value.getDefiningOp());
  Location loc = value.getLoc();
  Type type = partOf(value.getType(), axis);
  if (auto constant = value.getDefiningOp<arith::ConstantOp>())
    return arith::ConstantOp::create(
        builder, loc,
        cast<SplatElementsAttr>(constant.getValue()).resizeSplat(cast<ShapedType>(type)));
  if (auto splat = value.getDefiningOp<SplatOp>())
    return SplatOp::create(builder, loc, type, splat.getSource());
  auto iota = value.getDefiningOp<IotaOp>();
  bool isAlong = static_cast<int64_t>(iota.getAxis()) == axis;
  int64_t first = isAlong ? part * (tileOf(value).getDimSize(axis) / parts) : 0;
  return IotaOp::create(builder, loc, type, shift(iota.getStart(), first, builder, loc),
                        iota.getAxisAttr(), /*period=*/IntegerAttr());
}

//===----------------------------------------------------------------------===//
// The program in parts
//===----------------------------------------------------------------------===//

void Cut::rewrite() {
  rewrite(&kernel.getBody().front());
  for (Operation *op : replaced)
    op->dropAllReferences();
  for (Operation *op : replaced) {
    op->dropAllUses();
    op->erase();
  }
}

void Cut::rewrite(Block *block) {
  for (Operation &op : llvm::make_early_inc_range(*block))
    rewrite(&op);
}

void Cut::rewrite(Operation *op) {
  auto cuts = [&](Value value) { return isCut(value); };
  if (auto loop = dyn_cast<scf::ForOp>(op); loop && llvm::any_of(loop.getResults(), cuts))
    return rewrite(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op); branch && llvm::any_of(branch.getResults(), cuts))
    return rewrite(branch);
  if (auto speculation = dyn_cast<SpeculateOp>(op);
      speculation && llvm::any_of(speculation.getResults(), cuts))
    return rewrite(speculation);
  for (Region &region : op->getRegions())
    for (Block &block : region)
      rewrite(&block);
  if (isa<scf::YieldOp, YieldIfOp, YieldOp>(op) ||
      !(llvm::any_of(op->getOperands(), cuts) || llvm::any_of(op->getResults(), cuts)))
    return;
  if (auto dot = dyn_cast<DotOp>(op); dot && isSum(dot))
    return rewriteContraction(dot);
  if (auto reduce = dyn_cast<ReduceOp>(op); reduce && !isCut(reduce.getResult()))
    return rewriteReduction(reduce);
  SmallVector<Value> results;
  for (int64_t part = 0; part < parts; ++part)
    llvm::append_range(results, cloneFor(op, part)->getResults());
  if (op->getNumResults())
    made[op->getResult(0)] = results;
  replaced.push_back(op);
}

/// Says of `own`, which has a part of it, which tile was written.
void Cut::notePart(Operation *own, Value tile, int64_t axis) const {
  SmallVector<std::string> extents;
  for (int64_t extent : tileOf(tile).getShape())
    extents.push_back(std::to_string(extent));
  addRewriteNote(own,
                 llvm::formatv("has one of {0} parts of the {1} of the tile of {2}, as {3}", parts,
                               axis ? "columns" : "rows", llvm::join(extents, "x"), plan.reason));
}

/// A copy of `op` for one of the parts.
Operation *Cut::cloneFor(Operation *op, int64_t part) {
  OpBuilder builder(op);
  Value tile = op->getNumResults() ? op->getResult(0) : op->getOperand(0);
  int64_t axis = isCut(tile) ? *axisOf(tile) : 1;
  // Each operand has its own axis where it is cut; what is made anew has that of the result.
  IRMapping map;
  for (Value operand : op->getOperands())
    if (RankedTensorType type = tileOf(operand); type && axis < type.getRank())
      map.map(operand, partOf(operand, axis, part));
  if (auto dot = dyn_cast<DotOp>(op)) {
    map.map(dot.getA(), axis == 0 ? partOf(dot.getA(), 0, part) : dot.getA());
    map.map(dot.getB(), axis == 1 ? partOf(dot.getB(), 1, part) : dot.getB());
  }
  if (auto broadcast = dyn_cast<BroadcastOp>(op))
    map.map(broadcast.getSource(), static_cast<int64_t>(broadcast.getAxis()) == axis
                                       ? broadcast.getSource()
                                       : partOf(broadcast.getSource(), 0, part));
  if (auto transpose = dyn_cast<TransposeOp>(op))
    map.map(transpose.getSource(), partOf(transpose.getSource(), 1 - axis, part));
  if (auto reduce = dyn_cast<ReduceOp>(op))
    map.map(reduce.getSource(), partOf(reduce.getSource(), 1 - reduce.getAxis(), part));
  Operation *own = builder.clone(*op, map);
  notePart(own, tile, axis);
  for (OpResult result : own->getResults())
    result.setType(cast<RankedTensorType>(partOf(result.getType(), axis)));
  if (!isa<LoadOp, GatherOp, GatherRunsOp, StoreOp>(own))
    return own;
  int64_t size = tileOf(tile).getDimSize(axis) / parts;
  auto load = dyn_cast<LoadOpInterface>(own);
  OperandRange places = load ? load.getIndices() : cast<StoreOp>(own).getIndices();
  int64_t dim = places.size() - tileOf(tile).getRank() + axis;
  unsigned number = places.getBeginOperandIndex() + dim;
  builder.setInsertionPoint(own);
  own->setOperand(number, shift(own->getOperand(number), part * size, builder, own->getLoc()));
  if (auto box = own->getAttrOfType<DenseI64ArrayAttr>("box")) {
    SmallVector<int64_t> extents(box.asArrayRef());
    extents[dim] = size;
    own->setAttr("box", builder.getDenseI64ArrayAttr(extents));
  }
  return own;
}

/// A sum over what is cut: each part adds to that of the part before.
void Cut::rewriteContraction(DotOp dot) {
  OpBuilder builder(dot);
  Value sum = dot.getAcc();
  for (int64_t part = 0; part < parts; ++part) {
    auto own = DotOp::create(builder, dot.getLoc(), dot.getType(), partOf(dot.getA(), 1, part),
                             partOf(dot.getB(), 0, part), sum, dot.getPrecisionAttr());
    notePart(own, dot.getA(), 1);
    sum = own.getResult();
  }
  dot.getResult().replaceAllUsesWith(sum);
  replaced.push_back(dot);
}

/// A reduction of what is cut: those of the parts, combined.
void Cut::rewriteReduction(ReduceOp reduce) {
  OpBuilder builder(reduce);
  Value all;
  for (int64_t part = 0; part < parts; ++part) {
    auto own = cast<ReduceOp>(builder.clone(*reduce));
    own.getSourceMutable().assign(
        partOf(reduce.getSource(), static_cast<int64_t>(reduce.getAxis()), part));
    notePart(own, reduce.getSource(), static_cast<int64_t>(reduce.getAxis()));
    Value value = own.getResult();
    all = all ? combine(builder, reduce.getLoc(), reduce.getKind(), all, value) : value;
  }
  reduce.getResult().replaceAllUsesWith(all);
  replaced.push_back(reduce);
}

void Cut::rewrite(scf::ForOp loop) {
  OpBuilder builder(loop);
  auto own = scf::ForOp::create(builder, loop.getLoc(), loop.getLowerBound(), loop.getUpperBound(),
                                loop.getStep(), partsOf(loop.getInitArgs(), loop.getResults()));
  own->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  Block *body = own.getBody();
  if (!body->empty())
    body->getTerminator()->erase();
  loop.getInductionVar().replaceAllUsesWith(own.getInductionVar());
  replaceByParts(loop.getRegionIterArgs(), own.getRegionIterArgs());
  replaceByParts(loop.getResults(), own.getResults());
  body->getOperations().splice(body->end(), loop.getBody()->getOperations());
  rewrite(body);
  Operation *end = body->getTerminator();
  end->setOperands(partsOf(end->getOperands(), loop.getResults()));
  replaced.push_back(loop);
}

void Cut::rewrite(scf::IfOp branch) {
  OpBuilder builder(branch);
  auto own =
      scf::IfOp::create(builder, branch.getLoc(), typesOfParts(branch.getResults()),
                        branch.getCondition(), /*addThenBlock=*/false, /*addElseBlock=*/false);
  own.getThenRegion().takeBody(branch.getThenRegion());
  own.getElseRegion().takeBody(branch.getElseRegion());
  for (Block *block : {own.thenBlock(), own.elseBlock()}) {
    rewrite(block);
    Operation *end = block->getTerminator();
    end->setOperands(partsOf(end->getOperands(), branch.getResults()));
  }
  replaceByParts(branch.getResults(), own.getResults());
  replaced.push_back(branch);
}

void Cut::rewrite(SpeculateOp speculation) {
  OpBuilder builder(speculation);
  auto own =
      SpeculateOp::create(builder, speculation.getLoc(), typesOfParts(speculation.getResults()));
  own.getFast().takeBody(speculation.getFast());
  own.getExact().takeBody(speculation.getExact());
  rewrite(&own.getFast().front());
  rewrite(&own.getExact().front());
  YieldIfOp fast = own.getFastYield();
  fast.getValuesMutable().assign(partsOf(fast.getValues(), speculation.getResults()));
  YieldOp exact = own.getExactYield();
  exact.getValuesMutable().assign(partsOf(exact.getValues(), speculation.getResults()));
  replaceByParts(speculation.getResults(), own.getResults());
  replaced.push_back(speculation);
}

SmallVector<Type> Cut::typesOfParts(ValueRange results) const {
  SmallVector<Type> types;
  for (Value result : results)
    types.append(isCut(result) ? parts : 1,
                 isCut(result) ? partOf(result.getType(), *axisOf(result)) : result.getType());
  return types;
}

/// `values`, which become `results`, in parts where these are cut.
SmallVector<Value> Cut::partsOf(ValueRange values, ValueRange results) {
  SmallVector<Value> handed;
  for (auto [value, result] : llvm::zip_equal(values, results)) {
    if (!isCut(result)) {
      handed.push_back(value);
      continue;
    }
    for (int64_t part = 0; part < parts; ++part)
      handed.push_back(partOf(value, *axisOf(result), part));
  }
  return handed;
}

/// Puts `own`, which are parts where `values` are cut, in the place of these.
void Cut::replaceByParts(ValueRange values, ValueRange own) {
  for (Value value : values) {
    if (isCut(value))
      made[value] = llvm::to_vector(own.take_front(parts));
    else
      value.replaceAllUsesWith(own.front());
    own = own.drop_front(isCut(value) ? parts : 1);
  }
}

} // namespace

LogicalResult tessera::cutColumns(KernelOp kernel, const ColumnCut &plan, CutRefusal &refusal) {
  Cut cut(kernel, plan, refusal);
  if (failed(cut.find()))
    return failure();
  cut.rewrite();
  return success();
}

/// Of the accumulators that loops carry those that are different results: both regions of a
/// speculation make the same ones.
static unsigned countAccumulators(KernelOp kernel) {
  unsigned count = DotDivision::countAccumulators(kernel);
  auto isOfLoop = [](Value value) {
    RankedTensorType tile = tileOf(value);
    return tile && tile.getRank() == 2 && value.getDefiningOp<scf::ForOp>();
  };
  kernel.walk([&](SpeculateOp speculation) {
    for (Value result : speculation.getResults())
      count -= llvm::all_of(findTileHandoverTo(result)->from, isOfLoop);
  });
  return count;
}

ColumnCut tessera::planForConsumers(KernelOp kernel, int64_t consumers) {
  if (countAccumulators(kernel) != 1)
    return {};
  ColumnCut plan = {
      {}, consumers, "each consumer has some of the columns of a sum", "use placement = rows"};
  auto isHandedOn = [](OpOperand &use) { return findHandoverOf(use).has_value(); };
  kernel.walk([&](DotOp dot) {
    if (llvm::any_of(dot->getUses(), isHandedOn))
      plan.dots.push_back(dot);
  });
  return plan;
}
