//===- Functions.cpp - What functions of a source compute with -----------===//

#include "lib/Source/Functions.h"
#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;
using namespace tessera;
namespace json = llvm::json;

namespace {
/// What is known of the values of one function, whose operations come one after the other.
class FunctionFacts {
public:
  explicit FunctionFacts(func::FuncOp function);

  json::Object describe();

private:
  /// The arguments on which a value depends, those by which it is scaled, and whether it depends on
  /// an argument of the kernel.
  struct Facts {
    llvm::BitVector on, scaledBy;
    bool isGiven = false;
  };

  Facts join(Operation *op);
  llvm::BitVector findScales(Operation *op);
  llvm::BitVector intersect(ValueRange values);
  void visit(Operation *op);
  void addLoad(tile::LoadOp load);
  static json::Array list(const llvm::BitVector &arguments);

  func::FuncOp function;
  llvm::DenseMap<mlir::Value, Facts> facts;
  bool divides = false;
  json::Array loads, compares;
};
} // namespace

FunctionFacts::FunctionFacts(func::FuncOp function) : function(function) {
  unsigned count = function.getNumArguments();
  for (BlockArgument argument : function.getArguments()) {
    Facts &own = facts[argument];
    own.on.resize(count);
    own.on.set(argument.getArgNumber());
    own.scaledBy = own.on;
  }
  function.getBody().front().walk([&](Operation *op) { visit(op); });
}

json::Array FunctionFacts::list(const llvm::BitVector &arguments) {
  json::Array numbers;
  for (unsigned number : arguments.set_bits())
    numbers.push_back(number);
  return numbers;
}

FunctionFacts::Facts FunctionFacts::join(Operation *op) {
  Facts all;
  all.on.resize(function.getNumArguments());
  all.isGiven = isa<tile::ArgumentOp>(op);
  for (mlir::Value operand : op->getOperands()) {
    auto known = facts.find(operand);
    if (known == facts.end())
      continue;
    all.on |= known->second.on;
    all.isGiven |= known->second.isGiven;
  }
  return all;
}

llvm::BitVector FunctionFacts::intersect(ValueRange values) {
  llvm::BitVector all(function.getNumArguments(), true);
  for (mlir::Value value : values) {
    auto known = facts.find(value);
    if (known == facts.end())
      return llvm::BitVector(function.getNumArguments());
    all &= known->second.scaledBy;
  }
  return all;
}

/// The arguments that make the result 0 where they are 0.
llvm::BitVector FunctionFacts::findScales(Operation *op) {
  llvm::BitVector none(function.getNumArguments());
  if (isa<arith::MulFOp>(op)) {
    for (mlir::Value operand : op->getOperands())
      none |= intersect(operand);
    return none;
  }
  if (isa<arith::DivFOp, math::TanhOp, math::AbsFOp>(op))
    return intersect(op->getOperand(0));
  if (isa<arith::AddFOp, arith::SubFOp, arith::NegFOp, arith::MaximumFOp, arith::MinimumFOp>(op))
    return intersect(op->getOperands());
  if (isa<arith::SelectOp>(op))
    return intersect(op->getOperands().drop_front());
  return none;
}

void FunctionFacts::addLoad(tile::LoadOp load) {
  json::Array places;
  for (mlir::Value index : load.getIndices()) {
    mlir::Value of = index;
    if (auto cast = of.getDefiningOp<arith::IndexCastOp>())
      of = cast.getIn();
    auto argument = dyn_cast<BlockArgument>(of);
    auto known = facts.find(index);
    places.push_back(
        json::Object{{"on", known == facts.end() ? json::Array() : list(known->second.on)},
                     {"is", argument ? int64_t(argument.getArgNumber()) : -1}});
  }
  std::string type;
  llvm::raw_string_ostream(type) << getElementTypeOrSelf(load.getResult().getType());
  loads.push_back(json::Object{{"type", type}, {"places", std::move(places)}});
}

void FunctionFacts::visit(Operation *op) {
  Facts all = join(op);
  divides |= isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
                 arith::FloorDivSIOp, arith::CeilDivSIOp, arith::CeilDivUIOp>(op);
  if (isa<arith::CmpIOp>(op))
    compares.push_back(json::Object{{"on", list(all.on)}, {"given", all.isGiven}});
  if (auto load = dyn_cast<tile::LoadOp>(op))
    addLoad(load);
  all.scaledBy = findScales(op);
  for (mlir::Value result : op->getResults())
    facts[result] = all;
}

json::Object FunctionFacts::describe() {
  json::Array uses, on, scaledBy;
  for (BlockArgument argument : function.getArguments())
    if (!argument.use_empty())
      uses.push_back(argument.getArgNumber());
  Operation *end = function.getBody().front().getTerminator();
  if (end->getNumOperands() == 1)
    if (auto known = facts.find(end->getOperand(0)); known != facts.end()) {
      on = list(known->second.on);
      scaledBy = list(known->second.scaledBy);
    }
  return json::Object{
      {"uses", std::move(uses)},
      {"divides", divides},
      {"loads", std::move(loads)},
      {"compares", std::move(compares)},
      {"result", json::Object{{"on", std::move(on)}, {"scaled_by", std::move(scaledBy)}}}};
}

json::Object tessera::describeFunctions(const ReadResult &read) {
  json::Object described;
  for (func::FuncOp function : read.module.get().getOps<func::FuncOp>()) {
    LocationAttr location = function->getLoc();
    auto place = location.findInstanceOf<FileLineColRange>();
    if (!function.isDeclaration() && place && place.getFilename() == read.files->getMain().name)
      described[function.getSymName()] = FunctionFacts(function).describe();
  }
  return described;
}
