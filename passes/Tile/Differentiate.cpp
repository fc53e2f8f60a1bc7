//===- Differentiate.cpp - Gradients of functions of scalars --------------===//
//
// Implements tile-differentiate. See FunctionPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Tile/DerivativeRules.h"
#include "passes/Tile/TilePasses.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tessera {
#define GEN_PASS_DEF_TILEDIFFERENTIATE
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// Sums in memory are of f32.
constexpr unsigned sumBits = 32;

/// The floating-point types among `types`.
static SmallVector<Type> getFloats(TypeRange types) {
  return llvm::filter_to_vector(types, llvm::IsaPred<FloatType>);
}

/// The type of the gradient of `function`: its arguments, then the cotangents of its floating-point
/// results, to the cotangents of its floating-point arguments; or to nothing, with respect to
/// `names`.
static FunctionType getGradientType(func::FuncOp function, ArrayAttr names) {
  FunctionType type = function.getFunctionType();
  SmallVector<Type> inputs(type.getInputs());
  llvm::append_range(inputs, getFloats(type.getResults()));
  return FunctionType::get(function.getContext(), inputs,
                           names ? SmallVector<Type>() : getFloats(type.getInputs()));
}

/// The name of the argument that a gradient is added to.
static std::string nameGradient(StringRef argument) { return ("d" + argument).str(); }

/// What a value of a function comes from: the request for an argument of the kernel whose element,
/// or which itself, it is; null for other values.
static ArgumentOp findRequest(Operation *op) {
  auto load = dyn_cast<LoadOp>(op);
  return load ? load.getView().getDefiningOp<ArgumentOp>() : dyn_cast<ArgumentOp>(op);
}

namespace {
/// Writes the gradients of the functions of a module, each once.
class Differentiator {
public:
  explicit Differentiator(ModuleOp module)
      : module(module), symbols(module), gradientOf(module.getContext()),
        withRespectTo(module.getContext()), zeroSumOver(module.getContext()) {}

  LogicalResult run();
  /// The gradient of `function` with respect to `names`, or to its arguments where this is null. It
  /// is written if nobody has asked for it before; null after an error. `user` names the function.
  func::FuncOp getGradient(func::FuncOp function, ArrayAttr names, Operation *user);
  /// The function of the module that `call` calls; null after an error.
  func::FuncOp findCallee(func::CallOp call);
  /// The number of the argument over whose values the cotangents of `gradient` sum to 0, if any.
  std::optional<unsigned> findZeroSum(func::FuncOp gradient);
  /// The requests of `function`, and of those that it calls, for arguments of these names.
  SmallVector<ArgumentOp> findRequests(func::FuncOp function, ArrayAttr names);

private:
  LogicalResult addDeclared(func::FuncOp gradient);
  LogicalResult checkRequests(func::FuncOp gradient, func::FuncOp function, ArrayAttr names);
  LogicalResult write(func::FuncOp gradient, func::FuncOp function, ArrayAttr names);

  ModuleOp module;
  SymbolTable symbols;
  TileDialect::GradientOfAttrHelper gradientOf;
  TileDialect::WithRespectToAttrHelper withRespectTo;
  TileDialect::ZeroSumOverAttrHelper zeroSumOver;
  /// The gradients of functions, by what they are with respect to.
  DenseMap<std::pair<Operation *, Attribute>, func::FuncOp> gradients;
  /// The functions whose gradients are being written, each called by the one before.
  llvm::SmallSetVector<Operation *, 4> path;
};

/// Writes the body of one gradient: the operations of the function, then their adjoints in the
/// opposite order.
class GradientWriter {
public:
  GradientWriter(Differentiator &all, func::FuncOp function, func::FuncOp gradient, ArrayAttr names)
      : all(all), function(function), gradient(gradient), names(names),
        builder(gradient.getLoc(), gradient.getContext()) {}

  LogicalResult run();

private:
  LogicalResult findActive();
  LogicalResult refuse(Operation *op);
  bool isSource(Operation *op);
  LogicalResult writeAdjoint(Operation *op);
  LogicalResult writeAdjointOfCall(func::CallOp call);
  LogicalResult writeCall(func::CallOp call, func::FuncOp callee, ArrayAttr names);
  void addToMemory(Operation *source);
  bool hasPoles();
  void eraseZeroSums(unsigned over);
  void addToZeros(Value cotangent);
  Value guard(Value cotangent);
  void add(Value original, Value cotangent);
  Value takeCotangent(Value original);
  void eraseUnused();

  Differentiator &all;
  func::FuncOp function, gradient;
  /// What the gradient is with respect to; null for the function's arguments.
  ArrayAttr names;
  ImplicitLocOpBuilder builder;
  /// From values of the function to those of the gradient.
  IRMapping mapping;
  /// Floating-point values, and tiles of them, that depend on what the gradient is with respect to.
  DenseSet<Value> active;
  /// Of values of the function, as far as they are summed.
  DenseMap<Value, Value> cotangents;
  /// i1: the cotangents of all results are 0; null where no derivative is infinite.
  Value isZero;
};
} // namespace

//===----------------------------------------------------------------------===//
// One gradient
//===----------------------------------------------------------------------===//

/// Whether the gradient is with respect to what `op` gives, or what a function that it calls loads.
bool GradientWriter::isSource(Operation *op) {
  if (!names)
    return false;
  if (auto call = dyn_cast<func::CallOp>(op)) {
    func::FuncOp callee = all.findCallee(call);
    return callee && !all.findRequests(callee, names).empty();
  }
  ArgumentOp request = findRequest(op);
  return request && llvm::is_contained(names, request.getNameAttr());
}

/// Refuses an operation without a rule.
LogicalResult GradientWriter::refuse(Operation *op) {
  InFlightDiagnostic error = op->emitOpError("has no rule for its derivative; there are rules for ")
                             << getDifferentiableOperations();
  error.attachNote(gradient.getLoc())
      << "'" << gradient.getSymName() << "' is to be the gradient of '" << function.getSymName()
      << "'; define it as " << getGradientType(function, names) << " to say what it is";
  return error;
}

/// Fails where the bits of an active number become an integer, which would pass for a constant.
LogicalResult GradientWriter::findActive() {
  Block &body = function.getBody().front();
  for (Value argument : body.getArguments())
    if (!names && isa<FloatType>(argument.getType()))
      active.insert(argument);
  // What a region uses goes into its operation too.
  auto usesActive = [&](Operation *op) {
    auto isActive = [&](Value operand) { return active.contains(operand); };
    return op
        ->walk([&](Operation *inner) {
          return llvm::any_of(inner->getOperands(), isActive) ? WalkResult::interrupt()
                                                              : WalkResult::advance();
        })
        .wasInterrupted();
  };
  // A function may make a number of a tile that a scalar went into; it is refused.
  for (Operation &op : body.without_terminator()) {
    if (!isSource(&op) && !usesActive(&op))
      continue;
    if (isa<arith::BitcastOp>(op))
      return refuse(&op);
    for (Value result : op.getResults())
      if (isa<FloatType>(getElementTypeOrSelf(result)))
        active.insert(result);
  }
  return success();
}

void GradientWriter::add(Value original, Value cotangent) {
  if (!active.contains(original))
    return;
  auto [entry, isFirst] = cotangents.try_emplace(original, cotangent);
  if (!isFirst)
    entry->second = arith::AddFOp::create(builder, entry->second, cotangent);
}

/// Whether a derivative may be infinite: by a quotient, a logarithm or a root of what is no
/// constant for all elements. Elements that are loaded from outside of a view are 0.
bool GradientWriter::hasPoles() {
  DenseSet<Value> varying;
  for (Value argument : function.getBody().getArguments())
    if (isa<FloatType>(argument.getType()))
      varying.insert(argument);
  auto varies = [&](Value value) { return varying.contains(value); };
  for (Operation &op : function.getBody().front()) {
    if (isa<math::LogOp, math::Log2Op, math::Log1pOp, math::SqrtOp, math::RsqrtOp>(op) &&
        varies(op.getOperand(0)))
      return true;
    if (isa<arith::DivFOp>(op) && varies(op.getOperand(1)))
      return true;
    if (isa<LoadOp, func::CallOp>(op) || llvm::any_of(op.getOperands(), varies))
      varying.insert(op.result_begin(), op.result_end());
  }
  return false;
}

/// Takes a result's cotangent among those that may be 0.
void GradientWriter::addToZeros(Value cotangent) {
  Value zero = arith::ConstantOp::create(builder, builder.getFloatAttr(cotangent.getType(), 0.0));
  Value own = arith::CmpFOp::create(builder, arith::CmpFPredicate::OEQ, cotangent, zero);
  isZero = isZero ? Value(arith::AndIOp::create(builder, isZero, own)) : own;
}

/// `cotangent`, or 0 where those of all results are: the product of 0 and infinity is NaN, and a
/// score that nobody sees would spoil the sums.
Value GradientWriter::guard(Value cotangent) {
  if (!isZero)
    return cotangent;
  Value zero = arith::ConstantOp::create(builder, builder.getFloatAttr(cotangent.getType(), 0.0));
  return arith::SelectOp::create(builder, isZero, zero, cotangent);
}

/// The cotangent of a value, none of whose users is left; 0 where it has none.
Value GradientWriter::takeCotangent(Value original) {
  if (Value cotangent = cotangents.lookup(original))
    return guard(cotangent);
  return arith::ConstantOp::create(builder, builder.getFloatAttr(original.getType(), 0.0));
}

LogicalResult GradientWriter::writeAdjointOfCall(func::CallOp call) {
  func::FuncOp callee = all.findCallee(call);
  if (!callee || (isSource(call) && failed(writeCall(call, callee, names))))
    return failure();
  bool takesActive =
      llvm::any_of(call.getOperands(), [&](Value operand) { return active.contains(operand); });
  return takesActive ? writeCall(call, callee, /*names=*/nullptr) : success();
}

/// Calls the gradient of what `call` calls.
LogicalResult GradientWriter::writeCall(func::CallOp call, func::FuncOp callee, ArrayAttr of) {
  func::FuncOp derived = all.getGradient(callee, of, call);
  if (!derived)
    return failure();
  SmallVector<Value> operands;
  for (Value operand : call.getOperands())
    operands.push_back(mapping.lookup(operand));
  for (Value result : call.getResults())
    if (isa<FloatType>(result.getType()))
      operands.push_back(takeCotangent(result));
  auto adjoint = func::CallOp::create(builder, derived, operands);
  unsigned next = 0;
  for (Value operand : call.getOperands())
    if (!of && isa<FloatType>(operand.getType()))
      add(operand, adjoint.getResult(next++));
  return success();
}

/// Adds the cotangent of an element that `source` loads, or of the number that it asks for, to the
/// same element of the gradient.
void GradientWriter::addToMemory(Operation *source) {
  Value cotangent = cotangents.lookup(source->getResult(0));
  // Sums are of f32: what the rule of arith.extf rounds to the type of an element is taken whole.
  if (auto rounded = cotangent.getDefiningOp<arith::TruncFOp>())
    cotangent = rounded.getIn();
  Type sumType = builder.getF32Type();
  if (cotangent.getType() != sumType)
    cotangent = arith::ExtFOp::create(builder, sumType, cotangent);
  cotangent = guard(cotangent);
  ArgumentOp request = findRequest(source);
  SmallVector<Value> indices;
  Attribute one = builder.getI64IntegerAttr(1);
  ArrayRef<Attribute> dims = one;
  if (auto load = dyn_cast<LoadOp>(source)) {
    dims = load.getView().getType().getDims();
    for (Value index : load.getIndices())
      indices.push_back(mapping.lookup(index));
  } else {
    indices.push_back(arith::ConstantIndexOp::create(builder, 0));
  }
  auto type = ViewType::get(builder.getContext(), dims, sumType);
  Value sums = ArgumentOp::create(builder, type, nameGradient(request.getName()));
  StoreOp::create(builder, cotangent, sums, indices, /*box=*/DenseI64ArrayAttr(), /*add=*/true);
}

LogicalResult GradientWriter::writeAdjoint(Operation *op) {
  auto isUsed = [&](Value result) { return cotangents.contains(result); };
  if (llvm::none_of(op->getResults(), isUsed))
    return success();
  builder.setLoc(op->getLoc());
  if (auto call = dyn_cast<func::CallOp>(op))
    return writeAdjointOfCall(call);
  if (isSource(op))
    return addToMemory(op), success();
  // The rules read the operands of the copy, and say which operand they add to.
  Operation *copy = mapping.lookup(op->getResult(0)).getDefiningOp();
  auto addTo = [&](unsigned operand, Value cotangent) { add(op->getOperand(operand), cotangent); };
  if (op->getNumRegions() == 0 && op->getNumResults() == 1 &&
      succeeded(applyDerivativeRule(copy, cotangents.lookup(op->getResult(0)), builder, addTo)))
    return success();
  return refuse(op);
}

/// Erases additions to one element that sum to 0 over the values of argument `over`, as the
/// cotangents of the results do: of these, each times what is the same for all values. So are those
/// for a number that is added to all scores of a query, which a softmax does not see.
void GradientWriter::eraseZeroSums(unsigned over) {
  Block &body = gradient.getBody().front();
  DenseSet<Value> fixed, zeroSums;
  for (BlockArgument argument : body.getArguments())
    if (argument.getArgNumber() >= function.getNumArguments())
      zeroSums.insert(argument);
    else if (argument.getArgNumber() != over && !isa<FloatType>(argument.getType()))
      fixed.insert(argument);
  auto isFixed = [&](Value value) { return fixed.contains(value); };
  auto isZeroSum = [&](Operation &op) {
    auto sums = [&](unsigned operand) {
      return zeroSums.contains(op.getOperand(operand)) ||
             matchPattern(op.getOperand(operand), m_AnyZeroFloat());
    };
    return TypeSwitch<Operation *, bool>(&op)
        .Case<arith::NegFOp, arith::ExtFOp, arith::TruncFOp>([&](auto) { return sums(0); })
        .Case<arith::AddFOp, arith::SubFOp>([&](auto) { return sums(0) && sums(1); })
        .Case([&](arith::MulFOp product) {
          return (sums(0) && isFixed(product.getRhs())) || (isFixed(product.getLhs()) && sums(1));
        })
        .Case([&](arith::DivFOp quotient) { return sums(0) && isFixed(quotient.getRhs()); })
        .Case([&](arith::SelectOp select) {
          Value condition = select.getCondition();
          return (condition == isZero || isFixed(condition)) && sums(1) && sums(2);
        })
        .Default([](Operation *) { return false; });
  };
  for (Operation &op : llvm::make_early_inc_range(body)) {
    if (auto store = dyn_cast<StoreOp>(op);
        store && zeroSums.contains(store.getValue()) && llvm::all_of(store.getIndices(), isFixed))
      store.erase();
    else if (op.getNumResults() == 1 && op.getNumRegions() == 0) {
      if (llvm::all_of(op.getOperands(), isFixed))
        fixed.insert(op.getResult(0));
      if (isZeroSum(op))
        zeroSums.insert(op.getResult(0));
    }
  }
}

/// Erases what only the function's own results needed, and cotangents that nothing takes.
void GradientWriter::eraseUnused() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(gradient.getBody().front())))
    if (isOpTriviallyDead(&op) ||
        (isa<func::CallOp>(op) && op.getNumResults() != 0 && op.use_empty()))
      op.erase();
}

LogicalResult GradientWriter::run() {
  Block *block = gradient.addEntryBlock();
  builder.setInsertionPointToStart(block);
  Block &body = function.getBody().front();
  for (auto [from, to] : llvm::zip(body.getArguments(), block->getArguments()))
    mapping.map(from, to);
  for (Operation &op : body.without_terminator())
    if (!isa<PrintOp, AssertOp>(op)) // The function itself has them.
      builder.clone(op, mapping);
  if (failed(findActive()))
    return failure();
  Operation *terminator = body.getTerminator();
  bool mayBeInfinite = hasPoles();
  unsigned next = body.getNumArguments();
  for (Value result : terminator->getOperands()) {
    if (!isa<FloatType>(result.getType()))
      continue;
    Value cotangent = block->getArgument(next++);
    add(result, cotangent);
    if (mayBeInfinite)
      addToZeros(cotangent);
  }
  for (Operation &op : llvm::drop_begin(llvm::reverse(body)))
    if (failed(writeAdjoint(&op)))
      return failure();
  builder.setLoc(terminator->getLoc());
  SmallVector<Value> results;
  for (Value argument : body.getArguments())
    if (!names && isa<FloatType>(argument.getType()))
      results.push_back(takeCotangent(argument));
  func::ReturnOp::create(builder, results);
  if (std::optional<unsigned> over = all.findZeroSum(gradient))
    eraseZeroSums(*over);
  eraseUnused();
  return success();
}

//===----------------------------------------------------------------------===//
// The gradients of a module
//===----------------------------------------------------------------------===//

/// What keeps a function from being differentiated by operations, with respect to its arguments or
/// to `names`; nothing if it may be.
static std::optional<std::string> whyNot(func::FuncOp function, ArrayAttr names) {
  if (function.isDeclaration())
    return "has no body";
  if (!function.getBody().hasOneBlock())
    return "has several blocks";
  FunctionType type = function.getFunctionType();
  if (llvm::any_of(type.getInputs(), llvm::IsaPred<ShapedType>) ||
      llvm::any_of(type.getResults(), llvm::IsaPred<ShapedType>))
    return "takes or returns tiles; functions of scalars have gradients";
  if ((!names && getFloats(type.getInputs()).empty()) || getFloats(type.getResults()).empty())
    return "takes or returns no floating-point number";
  return std::nullopt;
}

func::FuncOp Differentiator::findCallee(func::CallOp call) {
  auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
  if (!callee)
    call.emitOpError("calls '") << call.getCallee() << "', which is no function of the source";
  return callee;
}

std::optional<unsigned> Differentiator::findZeroSum(func::FuncOp gradient) {
  IntegerAttr number = zeroSumOver.getAttr(gradient);
  return number ? std::optional<unsigned>(number.getInt()) : std::nullopt;
}

/// Calls within a function that calls itself are followed once: what differentiates it refuses it.
SmallVector<ArgumentOp> Differentiator::findRequests(func::FuncOp function, ArrayAttr names) {
  SmallVector<ArgumentOp> requests;
  llvm::SmallSetVector<Operation *, 4> functions;
  functions.insert(function);
  for (size_t i = 0; i < functions.size(); ++i)
    functions[i]->walk([&](Operation *op) {
      if (auto call = dyn_cast<func::CallOp>(op)) {
        if (auto callee = symbols.lookup<func::FuncOp>(call.getCallee()))
          functions.insert(callee);
      } else if (auto request = dyn_cast<ArgumentOp>(op);
                 request && llvm::is_contained(names, request.getNameAttr())) {
        requests.push_back(request);
      }
    });
  return requests;
}

func::FuncOp Differentiator::getGradient(func::FuncOp function, ArrayAttr names, Operation *user) {
  if (func::FuncOp known = gradients.lookup({function, names}))
    return known;
  if (std::optional<std::string> reason = whyNot(function, names)) {
    user->emitOpError("asks for the gradient of '")
        << function.getSymName() << "', which " << *reason;
    return {};
  }
  OpBuilder builder(function);
  auto gradient =
      func::FuncOp::create(builder, function.getLoc(), (function.getSymName() + ".gradient").str(),
                           getGradientType(function, names));
  gradient.setPrivate();
  symbols.insert(gradient);
  return succeeded(write(gradient, function, names)) ? gradient : func::FuncOp();
}

/// Writes the body of `gradient`.
LogicalResult Differentiator::write(func::FuncOp gradient, func::FuncOp function, ArrayAttr names) {
  if (!path.insert(function))
    return emitError(function.getLoc())
           << "the function '" << function.getSymName()
           << "' calls itself; functions are inlined and cannot recurse, a loop is an scf.for";
  LogicalResult result = GradientWriter(*this, function, gradient, names).run();
  path.remove(function);
  gradients[{function, names}] = gradient;
  return result;
}

/// Takes `gradient` as the gradient of the function that it names.
LogicalResult Differentiator::addDeclared(func::FuncOp gradient) {
  StringRef name = gradientOf.getAttr(gradient).getValue();
  auto function = symbols.lookup<func::FuncOp>(name);
  if (!function)
    return gradient.emitOpError("is to be the gradient of '")
           << name << "', which is no function of the source";
  ArrayAttr names = withRespectTo.getAttr(gradient);
  FunctionType type = getGradientType(function, names);
  if (gradient.getFunctionType() != type) {
    InFlightDiagnostic error = gradient.emitOpError("is to be the gradient of '")
                               << name << "' and is a function " << gradient.getFunctionType()
                               << "; the gradient is " << type;
    error.attachNote(function.getLoc())
        << "it takes the arguments and the cotangents of the results of '" << name
        << "', and returns "
        << (names ? "nothing, as it adds to memory"
                  : "those of its arguments, each for floating-point types only");
    return error;
  }
  std::pair<Operation *, Attribute> key(function, names);
  IntegerAttr over = zeroSumOver.getAttr(gradient);
  if (over && over.getInt() >= function.getNumArguments())
    return gradient.emitOpError("has cotangents that sum to 0 over argument ")
           << over.getInt() << " of '" << name << "', which has " << function.getNumArguments();
  if (!gradients.try_emplace(key, gradient).second)
    return gradient.emitOpError("is to be the gradient of '")
           << name << "', which has '" << gradients.lookup(key).getSymName() << "'";
  return success();
}

/// Refuses names of no argument, or of one that has no gradient.
LogicalResult Differentiator::checkRequests(func::FuncOp gradient, func::FuncOp function,
                                            ArrayAttr names) {
  for (auto name : names.getAsRange<StringAttr>()) {
    ArrayAttr alone = ArrayAttr::get(name.getContext(), name),
              ofGradient = ArrayAttr::get(name.getContext(),
                                          StringAttr::get(name.getContext(), nameGradient(name)));
    SmallVector<ArgumentOp> requests = findRequests(function, alone),
                            others = findRequests(function, ofGradient);
    if (requests.empty())
      return gradient.emitOpError("is with respect to ")
             << name << ", which '" << function.getSymName() << "' does not ask for";
    Type type = requests.front().getType();
    auto view = dyn_cast<ViewType>(type);
    auto element = dyn_cast<FloatType>(view ? view.getElementType() : type);
    if (!element || element.getWidth() > sumBits)
      return requests.front().emitOpError("asks for ")
             << name << " of " << type
             << ", which has no gradient; numbers of floating point of up to " << sumBits
             << " bits and views of them have";
    for (ArgumentOp request : requests)
      for (Operation *user : request->getUsers())
        if (view && !isa<LoadOp>(user))
          return user->emitOpError("takes the view ")
                 << name << " as a whole, and its gradient is that of elements which are loaded "
                 << "where it is asked for; ask for it by tile.argument there";
    if (!others.empty())
      return others.front().emitOpError("asks for ")
             << others.front().getNameAttr() << ", which is the name of the gradient of " << name
             << "; choose another one";
  }
  return success();
}

LogicalResult Differentiator::run() {
  SmallVector<func::FuncOp> declared;
  for (auto function : module.getOps<func::FuncOp>())
    if (gradientOf.isAttrPresent(function))
      declared.push_back(function);
  for (func::FuncOp gradient : declared)
    if (failed(addDeclared(gradient)))
      return failure();
  for (func::FuncOp gradient : declared) {
    if (!gradient.isDeclaration())
      continue;
    // A function that nobody differentiates may hold anything.
    auto function = symbols.lookup<func::FuncOp>(gradientOf.getAttr(gradient).getValue());
    ArrayAttr names = withRespectTo.getAttr(gradient);
    if (SymbolTable::symbolKnownUseEmpty(gradient, module)) {
      gradients.erase({function, names});
      symbols.erase(gradient);
      continue;
    }
    if (std::optional<std::string> reason = whyNot(function, names))
      return gradient.emitOpError("is to be the gradient of '")
             << function.getSymName() << "', which " << *reason;
    if ((names && failed(checkRequests(gradient, function, names))) ||
        failed(write(gradient, function, names)))
      return failure();
  }
  return success();
}

namespace {
struct TileDifferentiatePass : tessera::impl::TileDifferentiateBase<TileDifferentiatePass> {
  void runOnOperation() override {
    if (failed(Differentiator(getOperation()).run()))
      signalPassFailure();
  }
};
} // namespace
