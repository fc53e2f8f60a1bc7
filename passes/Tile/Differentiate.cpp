//===- Differentiate.cpp - Gradients of functions of scalars --------------===//
//
// Implements tile-differentiate. See FunctionPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Tile/DerivativeRules.h"
#include "passes/Tile/TilePasses.h"
#include "llvm/ADT/SetVector.h"

namespace tessera {
#define GEN_PASS_DEF_TILEDIFFERENTIATE
#include "passes/Tile/TilePasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::tile;

/// The floating-point types among `types`.
static SmallVector<Type> getFloats(TypeRange types) {
  return llvm::filter_to_vector(types, llvm::IsaPred<FloatType>);
}

/// The type of the gradient of `function`: its arguments, then the cotangents of its floating-point
/// results, to the cotangents of its floating-point arguments.
static FunctionType getGradientType(func::FuncOp function) {
  FunctionType type = function.getFunctionType();
  SmallVector<Type> inputs(type.getInputs());
  llvm::append_range(inputs, getFloats(type.getResults()));
  return FunctionType::get(function.getContext(), inputs, getFloats(type.getInputs()));
}

namespace {
/// Writes the gradients of the functions of a module, each once.
class Differentiator {
public:
  explicit Differentiator(ModuleOp module)
      : module(module), symbols(module), gradientOf(module.getContext()) {}

  LogicalResult run();
  /// The gradient of `function`, which is written if nobody has asked for it before; null after an
  /// error. `user` names the function.
  func::FuncOp getGradient(func::FuncOp function, Operation *user);
  /// The function of the module that `call` calls; null after an error.
  func::FuncOp findCallee(func::CallOp call);

private:
  LogicalResult addDeclared(func::FuncOp gradient);
  LogicalResult write(func::FuncOp gradient, func::FuncOp function);

  ModuleOp module;
  SymbolTable symbols;
  TileDialect::GradientOfAttrHelper gradientOf;
  /// The gradients of functions.
  DenseMap<Operation *, func::FuncOp> gradients;
  /// The functions whose gradients are being written, each called by the one before.
  llvm::SmallSetVector<Operation *, 4> path;
};

/// Writes the body of one gradient: the operations of the function, then their adjoints in the
/// opposite order.
class GradientWriter {
public:
  GradientWriter(Differentiator &all, func::FuncOp function, func::FuncOp gradient)
      : all(all), function(function), gradient(gradient),
        builder(gradient.getLoc(), gradient.getContext()) {}

  LogicalResult run();

private:
  void findActive();
  LogicalResult writeAdjoint(Operation *op);
  LogicalResult writeAdjointOfCall(func::CallOp call);
  void add(Value original, Value cotangent);
  Value takeCotangent(Value original);
  void eraseUnused();

  Differentiator &all;
  func::FuncOp function, gradient;
  ImplicitLocOpBuilder builder;
  /// From values of the function to those of the gradient.
  IRMapping mapping;
  /// Floating-point values, and tiles of them, that depend on a floating-point argument.
  DenseSet<Value> active;
  /// Of values of the function, as far as they are summed.
  DenseMap<Value, Value> cotangents;
};
} // namespace

//===----------------------------------------------------------------------===//
// One gradient
//===----------------------------------------------------------------------===//

void GradientWriter::findActive() {
  Block &body = function.getBody().front();
  for (Value argument : body.getArguments())
    if (isa<FloatType>(argument.getType()))
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
  for (Operation &op : body.without_terminator())
    if (usesActive(&op))
      for (Value result : op.getResults())
        if (isa<FloatType>(getElementTypeOrSelf(result)))
          active.insert(result);
}

void GradientWriter::add(Value original, Value cotangent) {
  if (!active.contains(original))
    return;
  auto [entry, isFirst] = cotangents.try_emplace(original, cotangent);
  if (!isFirst)
    entry->second = arith::AddFOp::create(builder, entry->second, cotangent);
}

/// The cotangent of a value, none of whose users is left; 0 where it has none.
Value GradientWriter::takeCotangent(Value original) {
  if (Value cotangent = cotangents.lookup(original))
    return cotangent;
  return arith::ConstantOp::create(builder, builder.getFloatAttr(original.getType(), 0.0));
}

LogicalResult GradientWriter::writeAdjointOfCall(func::CallOp call) {
  func::FuncOp callee = all.findCallee(call),
               derived = callee ? all.getGradient(callee, call) : func::FuncOp();
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
    if (isa<FloatType>(operand.getType()))
      add(operand, adjoint.getResult(next++));
  return success();
}

LogicalResult GradientWriter::writeAdjoint(Operation *op) {
  auto isUsed = [&](Value result) { return cotangents.contains(result); };
  if (llvm::none_of(op->getResults(), isUsed))
    return success();
  builder.setLoc(op->getLoc());
  if (auto call = dyn_cast<func::CallOp>(op))
    return writeAdjointOfCall(call);
  // The rules read the operands of the copy, and say which operand they add to.
  Operation *copy = mapping.lookup(op->getResult(0)).getDefiningOp();
  auto addTo = [&](unsigned operand, Value cotangent) { add(op->getOperand(operand), cotangent); };
  if (op->getNumRegions() == 0 && op->getNumResults() == 1 &&
      succeeded(applyDerivativeRule(copy, cotangents.lookup(op->getResult(0)), builder, addTo)))
    return success();
  InFlightDiagnostic error = op->emitOpError("has no rule for its derivative; there are rules for ")
                             << getDifferentiableOperations();
  error.attachNote(gradient.getLoc())
      << "'" << gradient.getSymName() << "' is to be the gradient of '" << function.getSymName()
      << "'; define it as " << getGradientType(function) << " to say what it is";
  return error;
}

/// Erases what only the function's own results needed, and cotangents that nothing takes.
void GradientWriter::eraseUnused() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(gradient.getBody().front())))
    if (isOpTriviallyDead(&op) || (isa<func::CallOp>(op) && op.use_empty()))
      op.erase();
}

LogicalResult GradientWriter::run() {
  Block *block = gradient.addEntryBlock();
  builder.setInsertionPointToStart(block);
  Block &body = function.getBody().front();
  for (auto [from, to] : llvm::zip(body.getArguments(), block->getArguments()))
    mapping.map(from, to);
  for (Operation &op : body.without_terminator())
    builder.clone(op, mapping);
  findActive();
  Operation *terminator = body.getTerminator();
  unsigned next = body.getNumArguments();
  for (Value result : terminator->getOperands())
    if (isa<FloatType>(result.getType()))
      add(result, block->getArgument(next++));
  for (Operation &op : llvm::drop_begin(llvm::reverse(body)))
    if (failed(writeAdjoint(&op)))
      return failure();
  builder.setLoc(terminator->getLoc());
  SmallVector<Value> results;
  for (Value argument : body.getArguments())
    if (isa<FloatType>(argument.getType()))
      results.push_back(takeCotangent(argument));
  func::ReturnOp::create(builder, results);
  eraseUnused();
  return success();
}

//===----------------------------------------------------------------------===//
// The gradients of a module
//===----------------------------------------------------------------------===//

/// What keeps a function from being differentiated by operations; nothing if it may be.
static std::optional<std::string> whyNot(func::FuncOp function) {
  if (function.isDeclaration())
    return "has no body";
  if (!function.getBody().hasOneBlock())
    return "has several blocks";
  FunctionType type = function.getFunctionType();
  if (llvm::any_of(type.getInputs(), llvm::IsaPred<ShapedType>) ||
      llvm::any_of(type.getResults(), llvm::IsaPred<ShapedType>))
    return "takes or returns tiles; functions of scalars have gradients";
  if (getFloats(type.getInputs()).empty() || getFloats(type.getResults()).empty())
    return "takes or returns no floating-point number";
  return std::nullopt;
}

func::FuncOp Differentiator::findCallee(func::CallOp call) {
  auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
  if (!callee)
    call.emitOpError("calls '") << call.getCallee() << "', which is no function of the source";
  return callee;
}

func::FuncOp Differentiator::getGradient(func::FuncOp function, Operation *user) {
  if (func::FuncOp known = gradients.lookup(function))
    return known;
  if (std::optional<std::string> reason = whyNot(function)) {
    user->emitOpError("asks for the gradient of '")
        << function.getSymName() << "', which " << *reason;
    return {};
  }
  OpBuilder builder(function);
  auto gradient =
      func::FuncOp::create(builder, function.getLoc(), (function.getSymName() + ".gradient").str(),
                           getGradientType(function));
  gradient.setPrivate();
  symbols.insert(gradient);
  return succeeded(write(gradient, function)) ? gradient : func::FuncOp();
}

/// Writes the body of `gradient`.
LogicalResult Differentiator::write(func::FuncOp gradient, func::FuncOp function) {
  if (!path.insert(function))
    return emitError(function.getLoc())
           << "the function '" << function.getSymName()
           << "' calls itself; functions are inlined and cannot recurse, a loop is an scf.for";
  LogicalResult result = GradientWriter(*this, function, gradient).run();
  path.remove(function);
  gradients[function] = gradient;
  return result;
}

/// Takes `gradient` as the gradient of the function that it names.
LogicalResult Differentiator::addDeclared(func::FuncOp gradient) {
  StringRef name = gradientOf.getAttr(gradient).getValue();
  auto function = symbols.lookup<func::FuncOp>(name);
  if (!function)
    return gradient.emitOpError("is to be the gradient of '")
           << name << "', which is no function of the source";
  FunctionType type = getGradientType(function);
  if (gradient.getFunctionType() != type) {
    InFlightDiagnostic error = gradient.emitOpError("is to be the gradient of '")
                               << name << "' and is a function " << gradient.getFunctionType()
                               << "; the gradient is " << type;
    error.attachNote(function.getLoc())
        << "it takes the arguments and the cotangents of the results of '" << name
        << "', and returns those of its arguments, each for floating-point types only";
    return error;
  }
  if (!gradients.try_emplace(function, gradient).second)
    return gradient.emitOpError("is to be the gradient of '")
           << name << "', which has '" << gradients.lookup(function).getSymName() << "'";
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
    if (SymbolTable::symbolKnownUseEmpty(gradient, module)) {
      gradients.erase(symbols.lookup(gradientOf.getAttr(gradient).getValue()));
      symbols.erase(gradient);
      continue;
    }
    auto function = symbols.lookup<func::FuncOp>(gradientOf.getAttr(gradient).getValue());
    if (std::optional<std::string> reason = whyNot(function))
      return gradient.emitOpError("is to be the gradient of '")
             << function.getSymName() << "', which " << *reason;
    if (failed(write(gradient, function)))
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
