//===- Functions.cpp - What functions of a source compute with -----------===//

#include "lib/Source/Functions.h"
#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"

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
  using Names = llvm::SmallSetVector<StringRef, 4>;

  /// A value that is the product times a factor, plus others: on what arguments the factor depends,
  /// and what of the kernel's the factor and the others ask for.
  struct Line {
    llvm::BitVector on;
    Names ofFactor, ofOthers;
    bool hasOthers = false;
  };

  /// The arguments on which a value depends, those by which it is scaled, what of the kernel's it
  /// asks for, and the line that it is in the product.
  struct Facts {
    llvm::BitVector on, scaledBy;
    Names asks;
    std::optional<Line> line;
  };

  Facts join(Operation *op);
  bool dependsOnProduct(mlir::Value value);
  std::optional<Line> findLine(Operation *op);
  std::optional<Line> scale(mlir::Value line, mlir::Value by);
  std::optional<Line> add(ValueRange values);
  json::Value describeFactor(const std::optional<Line> &line);
  llvm::BitVector findScales(Operation *op);
  llvm::BitVector intersect(ValueRange values);
  void visit(Operation *op);
  void addLoad(tile::LoadOp load);
  static json::Array list(const llvm::BitVector &arguments);

  func::FuncOp function;
  /// The only argument of f32; null where there is none or another one.
  mlir::Value product;
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
  auto isFloat = [](mlir::Value value) { return value.getType().isF32(); };
  // What a function that is called asks for is not known here.
  bool calls = function.walk([](func::CallOp) { return WalkResult::interrupt(); }).wasInterrupted();
  if (!calls && llvm::count_if(function.getArguments(), isFloat) == 1) {
    product = *llvm::find_if(function.getArguments(), isFloat);
    facts[product].line = Line{llvm::BitVector(count), {}, {}};
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
  if (auto argument = dyn_cast<tile::ArgumentOp>(op))
    all.asks.insert(argument.getName());
  for (mlir::Value operand : op->getOperands()) {
    auto known = facts.find(operand);
    if (known == facts.end())
      continue;
    all.on |= known->second.on;
    all.asks.insert_range(known->second.asks);
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

bool FunctionFacts::dependsOnProduct(mlir::Value value) {
  auto known = facts.find(value);
  return product && known != facts.end() &&
         known->second.on.test(cast<BlockArgument>(product).getArgNumber());
}

/// A line times, or divided by, what does not depend on the product.
std::optional<FunctionFacts::Line> FunctionFacts::scale(mlir::Value line, mlir::Value by) {
  if (dependsOnProduct(by) || !facts[line].line)
    return std::nullopt;
  Line scaled = *facts[line].line;
  scaled.on |= facts[by].on;
  scaled.ofFactor.insert_range(facts[by].asks);
  if (scaled.hasOthers)
    scaled.ofOthers.insert_range(facts[by].asks);
  return scaled;
}

/// The sum of values of which one or more depend on the product.
std::optional<FunctionFacts::Line> FunctionFacts::add(ValueRange values) {
  Line sum{llvm::BitVector(function.getNumArguments()), {}, {}};
  for (mlir::Value value : values) {
    const Facts &known = facts[value];
    if (!dependsOnProduct(value)) {
      sum.hasOthers = true;
      sum.ofOthers.insert_range(known.asks);
      continue;
    }
    if (!known.line)
      return std::nullopt;
    sum.on |= known.line->on;
    sum.hasOthers |= known.line->hasOthers;
    sum.ofFactor.insert_range(known.line->ofFactor);
    sum.ofOthers.insert_range(known.line->ofOthers);
  }
  return sum;
}

std::optional<FunctionFacts::Line> FunctionFacts::findLine(Operation *op) {
  if (op->getNumResults() != 1 || !llvm::any_of(op->getOperands(), [&](mlir::Value operand) {
        return dependsOnProduct(operand);
      }))
    return std::nullopt;
  if (isa<arith::NegFOp, arith::AddFOp, arith::SubFOp>(op))
    return add(op->getOperands());
  if (isa<arith::MulFOp>(op) && dependsOnProduct(op->getOperand(1)))
    return scale(op->getOperand(1), op->getOperand(0));
  if (isa<arith::MulFOp, arith::DivFOp>(op))
    return scale(op->getOperand(0), op->getOperand(1));
  auto select = dyn_cast<arith::SelectOp>(op);
  if (!select || dependsOnProduct(select.getCondition()))
    return std::nullopt;
  std::optional<Line> chosen = add({select.getTrueValue(), select.getFalseValue()});
  if (chosen)
    chosen->on |= facts[select.getCondition()].on;
  return chosen;
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
                     {"is", argument ? int64_t(argument.getArgNumber()) : -1},
                     {"fixed", matchPattern(of, m_Constant())}});
  }
  std::string type;
  llvm::raw_string_ostream(type) << getElementTypeOrSelf(load.getResult().getType());
  auto view = load.getView().getDefiningOp<tile::ArgumentOp>();
  json::Array dims;
  for (Attribute dim : cast<tile::ViewType>(load.getView().getType()).getDims()) {
    auto name = dyn_cast<StringAttr>(dim);
    dims.push_back(name ? name.str() : "");
  }
  loads.push_back(json::Object{{"view", view ? view.getName().str() : ""},
                               {"dims", std::move(dims)},
                               {"type", type},
                               {"places", std::move(places)}});
}

void FunctionFacts::visit(Operation *op) {
  Facts all = join(op);
  divides |= isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
                 arith::FloorDivSIOp, arith::CeilDivSIOp, arith::CeilDivUIOp>(op);
  if (isa<arith::CmpIOp>(op))
    compares.push_back(json::Object{{"on", list(all.on)}, {"given", !all.asks.empty()}});
  if (auto load = dyn_cast<tile::LoadOp>(op))
    addLoad(load);
  all.scaledBy = findScales(op);
  all.line = findLine(op);
  for (mlir::Value result : op->getResults())
    facts[result] = all;
}

/// The factor of a line; what others ask for too has a gradient that is not the factor's alone.
json::Value FunctionFacts::describeFactor(const std::optional<Line> &line) {
  if (!line)
    return nullptr;
  json::Array alone;
  for (StringRef name : line->ofFactor)
    if (!line->ofOthers.contains(name))
      alone.push_back(name.str());
  return json::Object{{"on", list(line->on)}, {"alone", std::move(alone)}};
}

/// Whether an argument is an index of loads and nothing else.
static bool onlyIndexes(mlir::Value argument) {
  return llvm::all_of(argument.getUsers(), [&](Operation *user) {
    return isa<tile::LoadOp>(user) ||
           (isa<arith::IndexCastOp>(user) && onlyIndexes(user->getResult(0)));
  });
}

json::Object FunctionFacts::describe() {
  json::Array uses, computes, extents, on, scaledBy;
  json::Value factor = nullptr;
  for (BlockArgument argument : function.getArguments())
    if (!argument.use_empty())
      uses.push_back(argument.getArgNumber());
  for (BlockArgument argument : function.getArguments())
    if (!onlyIndexes(argument))
      computes.push_back(argument.getArgNumber());
  function.walk([&](tile::DimOp dim) { extents.push_back(dim.getDim().str()); });
  Operation *end = function.getBody().front().getTerminator();
  if (end->getNumOperands() == 1)
    if (auto known = facts.find(end->getOperand(0)); known != facts.end()) {
      on = list(known->second.on);
      scaledBy = list(known->second.scaledBy);
      factor = describeFactor(known->second.line);
    }
  return json::Object{{"uses", std::move(uses)},
                      {"computes", std::move(computes)},
                      {"extents", std::move(extents)},
                      {"divides", divides},
                      {"loads", std::move(loads)},
                      {"compares", std::move(compares)},
                      {"result", json::Object{{"on", std::move(on)},
                                              {"scaled_by", std::move(scaledBy)},
                                              {"factor", std::move(factor)}}}};
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
