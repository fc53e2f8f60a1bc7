//===- Engine.cpp - Execution of one grid point ---------------------------===//

#include "lib/Interpreter/Engine.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

/// Larger tiles are refused: a program that means them would not fit any machine's registers, and
/// the interpreter keeps every live tile.
static constexpr int64_t maxTileElements = int64_t(1) << 24;

const HandlerTable &HandlerTable::get() {
  static const HandlerTable table = [] {
    HandlerTable result;
    addArithHandlers(result);
    addMathHandlers(result);
    addTileHandlers(result);
    addReduceHandlers(result);
    addControlHandlers(result);
    addDebugHandlers(result);
    return result;
  }();
  return table;
}

void Frame::set(Value value, Ints elements) {
  unsigned width = intWidth(getElementTypeOrSelf(value.getType()));
  if (width != 64)
    for (int64_t &element : elements)
      element = signExtend(element, width);
  set(value, Datum::of(std::move(elements)));
}

LogicalResult Frame::runBlock(Block &block) {
  for (Operation &op : block.without_terminator()) {
    if (isa<arith::ConstantOp>(op) || (!isLastBlock() && tile::storesToView(&op)))
      continue;
    // checkKernel has seen a handler for every operation.
    if (mlir::failed((*program.handlers.lookup(&op))(*this, &op)))
      return llvm::failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Checks before anything runs
//===----------------------------------------------------------------------===//

/// Says why values of `type` cannot be interpreted, or returns an empty string.
static std::string explainType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  std::string text;
  llvm::raw_string_ostream os(text);
  if (tensor && (!tensor.hasStaticShape() || tensor.getNumElements() > maxTileElements))
    os << "has a value of type '" << type
       << "'; the interpreter takes tiles of static shape with at most " << maxTileElements
       << " elements";
  else if (Type element = tensor ? tensor.getElementType() : type;
           !isSupportedFloat(element) && !isSupportedInt(element))
    os << "has a value of type '" << type
       << "'; the interpreter takes index, integers of at most 64 bits, floating-point types of at "
          "most 64 bits, and tiles of these";
  return text;
}

static LogicalResult checkOperation(Operation *op, const HandlerTable &handlers) {
  bool isStructure = isa<tile::KernelOp, tile::ReturnOp, tile::YieldIfOp, tile::YieldOp,
                         tile::MaskOp, scf::YieldOp, scf::ConditionOp, arith::ConstantOp>(op);
  if (!isStructure && !handlers.lookup(op))
    return op->emitError()
           << "the interpreter does not know '" << op->getName()
           << "'; it runs the tile, arith and math dialects and scf.for, scf.if and "
              "scf.while";
  for (Type type : op->getResultTypes())
    if (std::string problem = explainType(type); !problem.empty())
      return op->emitError() << problem;
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (BlockArgument argument : block.getArguments()) {
        bool isKernelView = isa<tile::KernelOp>(op) && isa<tile::ViewType>(argument.getType());
        if (std::string problem = explainType(argument.getType());
            !problem.empty() && !isKernelView)
          return op->emitError() << problem;
      }
  return success();
}

LogicalResult interp::checkKernel(tile::KernelOp kernel, const HandlerTable &handlers) {
  WalkResult result = kernel->walk<WalkOrder::PreOrder>([&](Operation *op) {
    return failed(checkOperation(op, handlers)) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// Preparation
//===----------------------------------------------------------------------===//

/// The elements of a constant, or nothing when its form is not known.
static std::optional<Datum> readConstant(Attribute attr, Type type) {
  Type element = getElementTypeOrSelf(type);
  if (auto value = dyn_cast<FloatAttr>(attr))
    return Datum::of(Floats{toDouble(value.getValue())});
  if (auto value = dyn_cast<IntegerAttr>(attr))
    return Datum::of(Ints{signExtend(value.getValue().getSExtValue(), intWidth(element))});
  auto dense = dyn_cast<DenseElementsAttr>(attr);
  if (!dense)
    return std::nullopt;
  if (isa<FloatType>(element)) {
    Floats values;
    values.reserve(dense.getNumElements());
    for (const APFloat &value : dense.getValues<APFloat>())
      values.push_back(toDouble(value));
    return Datum::of(std::move(values));
  }
  Ints values;
  values.reserve(dense.getNumElements());
  for (const APInt &value : dense.getValues<APInt>())
    values.push_back(value.getSExtValue());
  return Datum::of(std::move(values));
}

static LogicalResult readConstants(Program &program) {
  WalkResult result = program.kernel.walk([&](arith::ConstantOp op) {
    std::optional<Datum> datum = readConstant(op.getValue(), op.getType());
    if (!datum) {
      op.emitError() << "the interpreter reads numbers and dense<...> constants, not "
                     << op.getValue();
      return WalkResult::interrupt();
    }
    program.constants[op.getResult()] = *datum;
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

FailureOr<std::unique_ptr<Program>> interp::prepare(tile::KernelOp kernel, Launch launch,
                                                    ArrayRef<KernelArgument> arguments,
                                                    const InterpreterOptions &options) {
  if (failed(checkKernel(kernel, HandlerTable::get())))
    return failure();
  auto program = std::make_unique<Program>(kernel, std::move(launch), options);
  program->blocks = tile::countPointBlocks(kernel);
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    BlockArgument value = kernel.getArgument(i);
    program->views.emplace_back();
    if (auto *tensor = std::get_if<HostTensor *>(&argument))
      program->views.back() = std::make_unique<ViewMemory>(**tensor, getViewUse(kernel, i));
    else if (auto *number = std::get_if<double>(&argument))
      program->constants[value] = Datum::of(Floats{program->precision == Precision::Kernel
                                                       ? roundToType(value.getType(), *number)
                                                       : *number});
    else
      program->constants[value] =
          Datum::of(Ints{signExtend(std::get<int64_t>(argument), intWidth(value.getType()))});
  }
  if (failed(readConstants(*program)))
    return failure();
  if (options.shown.show)
    findWatched(*program);
  return program;
}
