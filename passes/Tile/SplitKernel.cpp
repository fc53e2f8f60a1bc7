//===- SplitKernel.cpp - Kernels that are made of a kernel ----------------===//

#include "passes/Tile/SplitKernel.h"
#include "dialects/Tile/Signature.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/Schedule/CostModel.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

//===----------------------------------------------------------------------===//
// Extents
//===----------------------------------------------------------------------===//

static IntegerAttr toAttr(MLIRContext *context, int64_t value) {
  return IntegerAttr::get(IntegerType::get(context, 64), value);
}

DimPlan::DimPlan(KernelOp kernel) : context(kernel.getContext()) {
  for (StringRef name : kernel.getDimNames())
    names.push_back(name.str());
}

Attribute DimPlan::derive(const ExtentBound &bound, StringRef name) {
  int64_t product = 1;
  SmallVector<Attribute> factors;
  for (Attribute factor : bound.factors) {
    int64_t next;
    if (auto number = dyn_cast<IntegerAttr>(factor);
        number && !llvm::MulOverflow(product, number.getInt(), next))
      product = next;
    else
      factors.push_back(factor);
  }
  if (factors.empty())
    return toAttr(context, llvm::divideCeilSigned(product, bound.divisor));
  if (product != 1)
    factors.push_back(toAttr(context, product));
  if (factors.size() == 1 && bound.divisor == 1)
    return factors.front();
  auto all = ArrayAttr::get(context, factors);
  for (Attribute known : derived)
    if (auto dim = cast<DerivedDimAttr>(known);
        dim.getFactors() == all && dim.getDivisor() == bound.divisor)
      return dim.getName();
  std::string own = name.str();
  for (int i = 1; llvm::is_contained(names, own); ++i)
    own = (name + Twine(i)).str();
  names.push_back(own);
  auto dim = DerivedDimAttr::get(context, StringAttr::get(context, own), all, bound.divisor);
  derived.push_back(dim);
  return dim.getName();
}

/// ceil(ceil(a / b) / d) is ceil(a / (b * d)), and (x + d - 1) / d rounded down is x / d rounded
/// up.
std::optional<ExtentBound> DimPlan::boundQuotient(Value dividend, Value divisor, bool isUp) {
  APInt number, added;
  if (!matchPattern(divisor, m_ConstantInt(&number)) || number.getSExtValue() < 1)
    return std::nullopt;
  if (auto sum = dividend.getDefiningOp<arith::AddIOp>();
      sum && !isUp && matchPattern(sum.getRhs(), m_ConstantInt(&added)) && added == number - 1)
    return boundQuotient(sum.getLhs(), divisor, /*isUp=*/true);
  std::optional<ExtentBound> result = bound(dividend);
  if (!result || llvm::MulOverflow(result->divisor, number.getSExtValue(), result->divisor))
    return std::nullopt;
  result->isExact &= isUp;
  return result;
}

std::optional<ExtentBound> DimPlan::boundProduct(Value left, Value right) {
  std::optional<ExtentBound> a = bound(left), b = bound(right);
  if (!a || !b)
    return std::nullopt;
  return ExtentBound{{derive(*a, "EXTENT"), derive(*b, "EXTENT")}, 1, a->isExact && b->isExact};
}

/// Whether it is a sum or a product of what is none: constants, extents, grid indices, iterations.
static bool isNotNegative(Value value) {
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return number.isNonNegative();
  if (auto argument = dyn_cast<BlockArgument>(value))
    return isa<KernelOp>(argument.getOwner()->getParentOp());
  auto areAll = [](Operation *op) { return llvm::all_of(op->getOperands(), isNotNegative); };
  Operation *op = value.getDefiningOp();
  if (auto visits = dyn_cast<VisitsOp>(op))
    return value == visits.getFirst() && isNotNegative(visits.getLower());
  return isa<DimOp>(op) || (isa<arith::AddIOp, arith::MulIOp, arith::MinSIOp>(op) && areAll(op));
}

std::optional<ExtentBound> DimPlan::bound(Value value) {
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number))) {
    int64_t least = std::max<int64_t>(number.getSExtValue(), 1);
    return ExtentBound{{toAttr(context, least)}, 1, least == number.getSExtValue()};
  }
  auto notLess = [](std::optional<ExtentBound> bound) {
    if (bound)
      bound->isExact = false;
    return bound;
  };
  auto ofEither = [&](Value left, Value right) {
    std::optional<ExtentBound> first = bound(left);
    return notLess(first ? first : bound(right));
  };
  using Result = std::optional<ExtentBound>;
  return llvm::TypeSwitch<Operation *, Result>(value.getDefiningOp())
      .Case([&](DimOp op) { return Result({{op.getDimAttr()}}); })
      .Case<arith::CeilDivSIOp, arith::CeilDivUIOp>(
          [&](auto op) { return boundQuotient(op.getLhs(), op.getRhs(), /*isUp=*/true); })
      .Case<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp>(
          [&](auto op) { return boundQuotient(op.getLhs(), op.getRhs(), /*isUp=*/false); })
      .Case([&](arith::MulIOp op) { return boundProduct(op.getLhs(), op.getRhs()); })
      .Case<arith::MinSIOp, arith::MinUIOp>(
          [&](auto op) { return ofEither(op.getLhs(), op.getRhs()); })
      .Case([&](arith::SubIOp op) {
        return isNotNegative(op.getRhs()) ? notLess(bound(op.getLhs())) : Result();
      })
      .Case([&](arith::MaxSIOp op) {
        APInt least;
        bool isSmall = matchPattern(op.getRhs(), m_ConstantInt(&least)) && least.sle(1);
        return isSmall ? notLess(bound(op.getLhs())) : Result();
      })
      .Case([&](VisitsOp op) {
        return value == op.getPast() ? notLess(bound(op.getUpper())) : Result();
      })
      .Default(Result());
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

BlockArgument tessera::addArgument(KernelOp kernel, Type type, StringRef name, Location loc) {
  MLIRContext *context = kernel.getContext();
  SmallVector<Attribute> types(kernel.getArgumentTypes().getValue());
  SmallVector<Attribute> names(kernel.getArgumentNames().getValue());
  StringAttr own = StringAttr::get(context, name);
  for (int i = 1; llvm::is_contained(names, own); ++i)
    own = StringAttr::get(context, name + "_" + Twine(i));
  BlockArgument argument =
      kernel.getBody().front().insertArgument(kernel.getNumArguments(), type, loc);
  types.push_back(TypeAttr::get(type));
  names.push_back(own);
  kernel.setArgumentTypesAttr(ArrayAttr::get(context, types));
  kernel.setArgumentNamesAttr(ArrayAttr::get(context, names));
  return argument;
}

void tessera::eraseDead(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (isOpTriviallyDead(&op)) {
      op.erase();
      continue;
    }
    for (Region &region : op.getRegions())
      for (Block &nested : region)
        eraseDead(nested);
  }
}

/// What a requirement speaks of: dimensions, or an argument.
static SmallVector<StringRef> namesOf(Attribute requirement) {
  if (auto divides = dyn_cast<DividesAttr>(requirement))
    return {divides.getDivisor().getValue(), divides.getDividend().getValue()};
  if (auto atMost = dyn_cast<AtMostAttr>(requirement))
    return {atMost.getDim().getValue()};
  return {cast<AboveAttr>(requirement).getArgument().getValue()};
}

/// The name of a scalar, or those of the dimensions of a view.
static SmallVector<StringRef> namesOf(KernelOp kernel, unsigned index) {
  Type type = kernel.getArgument(index).getType();
  if (!isa<ViewType>(type))
    return {kernel.getArgumentName(index)};
  return getDimNames(ArrayAttr::get(kernel.getContext(), TypeAttr::get(type)));
}

/// What the program and the grid ask of arguments by name.
static llvm::StringSet<> findNeeded(KernelOp kernel) {
  llvm::StringSet<> needed;
  kernel.walk([&](DimOp op) { needed.insert(op.getDim()); });
  for (unsigned i = 0; i < kernel.getGridRank(); ++i)
    if (auto name = dyn_cast<StringAttr>(kernel.getGridDim(i).getExtent()))
      needed.insert(name.getValue());
  return needed;
}

static void eraseArgument(KernelOp kernel, unsigned index) {
  auto without = [&](ArrayAttr all) {
    SmallVector<Attribute> rest(all.getValue());
    rest.erase(rest.begin() + index);
    return ArrayAttr::get(kernel.getContext(), rest);
  };
  kernel.setArgumentTypesAttr(without(kernel.getArgumentTypes()));
  kernel.setArgumentNamesAttr(without(kernel.getArgumentNames()));
  kernel.getBody().front().eraseArgument(index);
}

void tessera::eraseUnusedArguments(KernelOp kernel, bool keepsRequirements) {
  SmallVector<Attribute> requirements;
  if (std::optional<ArrayAttr> all = kernel.getRequirements())
    llvm::append_range(requirements, *all);
  llvm::StringSet<> needed = findNeeded(kernel), known;
  if (keepsRequirements)
    for (Attribute requirement : requirements)
      for (StringRef name : namesOf(requirement))
        needed.insert(name);
  auto learn = [&](unsigned index) {
    for (StringRef name : namesOf(kernel, index))
      known.insert(name);
  };
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    if (!kernel.getArgument(i).use_empty())
      learn(i);
  for (unsigned i = 0; i < kernel.getNumArguments();) {
    bool isAsked = llvm::any_of(namesOf(kernel, i), [&](StringRef name) {
      return needed.contains(name) && !known.contains(name);
    });
    if (kernel.getArgument(i).use_empty() && !isAsked) {
      eraseArgument(kernel, i);
      continue;
    }
    learn(i++);
  }
  llvm::erase_if(requirements, [&](Attribute requirement) {
    return !llvm::all_of(namesOf(requirement),
                         [&](StringRef name) { return known.contains(name); });
  });
  if (requirements.empty())
    kernel.removeRequirementsAttr();
  else
    kernel.setRequirementsAttr(ArrayAttr::get(kernel.getContext(), requirements));
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

Value IndexMath::constant(int64_t value) const {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

Value IndexMath::dim(Attribute extent) const {
  if (auto name = dyn_cast<StringAttr>(extent))
    return DimOp::create(builder, loc, name);
  return constant(cast<IntegerAttr>(extent).getInt());
}

SmallVector<Value> IndexMath::extents(KernelOp kernel, ArrayRef<unsigned> dims) const {
  return llvm::map_to_vector(dims, [&](unsigned i) -> Value {
    GridDimAttr grid = kernel.getGridDim(i);
    Value extent = dim(grid.getExtent());
    if (grid.getDivisor() == 1)
      return extent;
    return make<arith::CeilDivUIOp>(extent, constant(grid.getDivisor()));
  });
}

Value IndexMath::multiply(ArrayRef<Value> factors) const {
  Value product;
  for (Value factor : factors)
    product = product ? mul(product, factor) : factor;
  return product ? product : constant(1);
}

Value IndexMath::number(ArrayRef<Value> indices, ArrayRef<Value> extents) const {
  Value number;
  for (auto [index, extent] : llvm::reverse(llvm::zip_equal(indices, extents)))
    number = number ? add(mul(number, extent), index) : index;
  return number ? number : constant(0);
}

SmallVector<Value> IndexMath::indices(Value number, ArrayRef<Value> extents) const {
  SmallVector<Value> indices;
  for (Value extent : extents.drop_back(!extents.empty())) {
    indices.push_back(make<arith::RemUIOp>(number, extent));
    number = make<arith::DivUIOp>(number, extent);
  }
  if (!extents.empty())
    indices.push_back(number);
  return indices;
}

Value IndexMath::compare(arith::CmpIPredicate predicate, Value left, Value right) const {
  return arith::CmpIOp::create(builder, loc, predicate, left, right);
}

Value IndexMath::select(Value condition, Value yes, Value no) const {
  return arith::SelectOp::create(builder, loc, condition, yes, no);
}

//===----------------------------------------------------------------------===//
// States and the kernels that make them
//===----------------------------------------------------------------------===//

SplitReduceOp tessera::findReduction(KernelOp kernel) {
  SplitReduceOp found;
  kernel.walk([&](SplitReduceOp op) { found = op; });
  return found;
}

SmallVector<Value> tessera::inlineBody(SplitReduceOp reduction, Value first, Value past) {
  reduction.getFirst().replaceAllUsesWith(first);
  reduction.getPast().replaceAllUsesWith(past);
  YieldOp yield = reduction.getBodyYield();
  SmallVector<Value> state(yield.getValues());
  yield.erase();
  reduction.replaceAllUsesWith(state);
  reduction->getBlock()->getOperations().splice(reduction->getIterator(),
                                                reduction.getBody().front().getOperations());
  reduction.erase();
  return state;
}

SmallVector<Value> tessera::mergeStates(OpBuilder &builder, SplitReduceOp reduction,
                                        ValueRange left, ValueRange right) {
  IRMapping mapping;
  mapping.map(reduction.getLeft(), left);
  mapping.map(reduction.getRight(), right);
  for (Operation &op : reduction.getMerge().front().without_terminator())
    builder.clone(op, mapping);
  return llvm::map_to_vector(reduction.getMergeYield().getValues(),
                             [&](Value value) { return mapping.lookupOrDefault(value); });
}

SmallVector<Value> tessera::mergeSome(const IndexMath &math, SplitReduceOp reduction, LoadPart load,
                                      Value first, int64_t number, SmallVector<Value> state) {
  SmallVector<SmallVector<Value>> loaded;
  for (int64_t i = 0; i < number; ++i)
    loaded.push_back(load(math.add(first, math.constant(i))));
  for (ArrayRef<Value> part : loaded)
    state = mergeStates(math.builder, reduction, state, part);
  return state;
}

SmallVector<Value> tessera::mergeLoop(const IndexMath &math, SplitReduceOp reduction, LoadPart load,
                                      Value first, Value past, int64_t step,
                                      ArrayRef<Value> state) {
  auto loop = scf::ForOp::create(math.builder, math.loc, first, past, math.constant(step), state);
  OpBuilder::InsertionGuard guard(math.builder);
  math.builder.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> merged = mergeSome(math, reduction, load, loop.getInductionVar(), step,
                                        SmallVector<Value>(loop.getRegionIterArgs()));
  scf::YieldOp::create(math.builder, math.loc, merged);
  return SmallVector<Value>(loop.getResults());
}

SmallVector<Value> tessera::mergeParts(const IndexMath &math, SplitReduceOp reduction,
                                       LoadPart load, Value first, Value past, int64_t atOnce,
                                       SmallVector<Value> state) {
  if (atOnce > 1) {
    Value rest = math.sub(past, first);
    Value rounds = math.make<arith::DivUIOp>(rest, math.constant(atOnce));
    Value several = math.mul(rounds, math.constant(atOnce));
    Value next = math.add(several, first);
    state = mergeLoop(math, reduction, load, first, next, atOnce, state);
    first = next;
  }
  return mergeLoop(math, reduction, load, first, past, 1, state);
}

int64_t tessera::countAtOnce(SplitReduceOp reduction, const CostModel &card) {
  int64_t elements = 0;
  for (Type type : reduction.getResultTypes()) {
    auto tile = dyn_cast<RankedTensorType>(type);
    elements += tile ? std::min(tile.getNumElements(), card.mergedElements) : 1;
  }
  return std::clamp<int64_t>(card.loadedElements / elements, 1, 32);
}

ViewType tessera::viewOfState(ArrayRef<Attribute> prefix, Type state) {
  SmallVector<Attribute> dims(prefix);
  if (auto tile = dyn_cast<RankedTensorType>(state))
    for (int64_t extent : tile.getShape())
      dims.push_back(toAttr(state.getContext(), extent));
  return ViewType::get(state.getContext(), dims, getElementTypeOrSelf(state));
}

SmallVector<Value> tessera::placeOfState(const IndexMath &math, ArrayRef<Value> prefix,
                                         Type state) {
  SmallVector<Value> place(prefix);
  auto tile = dyn_cast<RankedTensorType>(state);
  for (int64_t i = 0; tile && i < tile.getRank(); ++i)
    place.push_back(math.constant(0));
  return place;
}

/// `name`, or where it is taken another one that begins so.
static std::string findName(ModuleOp module, const Twine &name) {
  std::string own = name.str();
  for (int i = 1; module.lookupSymbol(own); ++i)
    own = (name + Twine(i)).str();
  return own;
}

void tessera::replaceBySequence(KernelOp kernel, ArrayRef<std::pair<KernelOp, StringRef>> made,
                                const DimPlan &plan, Location loc) {
  auto module = kernel->getParentOfType<ModuleOp>();
  OpBuilder builder(kernel);
  for (auto [own, suffix] : made) {
    own.setSymName(findName(module, kernel.getSymName() + suffix));
    builder.insert(own);
  }
  ArrayAttr derived =
      plan.getDerived().empty() ? ArrayAttr() : builder.getArrayAttr(plan.getDerived());
  auto sequence =
      SequenceOp::create(builder, kernel.getLoc(), kernel.getSymNameAttr(),
                         kernel.getArgumentTypesAttr(), kernel.getArgumentNamesAttr(), derived);
  Block &body = sequence.getBody().emplaceBlock();
  builder.setInsertionPointToEnd(&body);
  llvm::StringMap<Value> values;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    values[kernel.getArgumentName(i)] =
        body.addArgument(kernel.getArgument(i).getType(), kernel.getArgument(i).getLoc());
  for (auto [own, suffix] : made)
    for (unsigned i = 0; i < own.getNumArguments(); ++i)
      if (Value &value = values[own.getArgumentName(i)]; !value)
        value =
            WorkspaceOp::create(builder, loc, own.getArgument(i).getType(), own.getArgumentName(i));
  for (auto [own, suffix] : made) {
    SmallVector<Value> operands;
    for (unsigned i = 0; i < own.getNumArguments(); ++i)
      operands.push_back(values.lookup(own.getArgumentName(i)));
    LaunchOp::create(builder, loc, own.getSymName(), operands);
  }
  kernel.erase();
}
