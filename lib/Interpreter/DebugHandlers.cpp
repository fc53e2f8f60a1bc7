//===- DebugHandlers.cpp - What a run shows, and what it asserts ----------===//

#include "dialects/Tile/ValueNames.h"
#include "lib/Interpreter/Engine.h"
#include "lib/Support/NearestNames.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

namespace {
/// The elements of a value as text, with those in the middle of an axis left out where there are
/// many.
class ElementPrinter {
public:
  ElementPrinter(const Datum &datum, Type type, int64_t most, llvm::raw_ostream &os)
      : datum(datum), isCondition(getElementTypeOrSelf(type).isInteger(1)), most(most), os(os) {
    if (auto tile = dyn_cast<RankedTensorType>(type))
      shape.assign(tile.getShape().begin(), tile.getShape().end());
  }

  void print();

private:
  void printElement(size_t linear);
  void printRow(int64_t first, int64_t count);
  void printRange();
  template <typename Print>
  void printAxis(int64_t count, StringRef gap, Print print);

  const Datum &datum;
  bool isCondition;
  int64_t most;
  llvm::raw_ostream &os;
  SmallVector<int64_t> shape;
};
} // namespace

void ElementPrinter::printElement(size_t linear) {
  if (datum.floats)
    os << llvm::format("%.6g", (*datum.floats)[linear]);
  else if (isCondition)
    os << ((*datum.ints)[linear] ? "true" : "false");
  else
    os << (*datum.ints)[linear];
}

/// Calls `print` for each index of an axis, or for the first and the last, with `gap` between all.
template <typename Print>
void ElementPrinter::printAxis(int64_t count, StringRef gap, Print print) {
  int64_t head = count <= most ? count : most - most / 2, tail = count <= most ? 0 : most / 2;
  for (int64_t i = 0; i < head; ++i) {
    os << (i ? gap : "");
    print(i);
  }
  if (head < count && tail + head < count)
    os << gap << "...";
  for (int64_t i = count - tail; i < count; ++i) {
    os << gap;
    print(i);
  }
}

void ElementPrinter::printRow(int64_t first, int64_t count) {
  os << "  [";
  printAxis(count, ", ", [&](int64_t i) { printElement(first + i); });
  os << "]";
}

/// Of elements that are not all shown, the least and the largest, and how many are NaN.
void ElementPrinter::printRange() {
  if (isCondition) {
    os << ", " << llvm::count(*datum.ints, 0) << " of " << datum.ints->size() << " false";
    return;
  }
  double least = INFINITY, largest = -INFINITY;
  size_t numNaN = 0, count = datum.floats ? datum.floats->size() : datum.ints->size();
  for (size_t i = 0; i < count; ++i) {
    double element = datum.floats ? (*datum.floats)[i] : static_cast<double>((*datum.ints)[i]);
    numNaN += std::isnan(element);
    least = std::fmin(least, element);
    largest = std::fmax(largest, element);
  }
  if (numNaN < count)
    os << llvm::format(", from %.6g to %.6g", least, largest);
  if (numNaN)
    os << ", " << numNaN << " NaN";
}

void ElementPrinter::print() {
  if (shape.empty()) {
    os << " = ";
    printElement(0);
    return;
  }
  if (llvm::any_of(shape, [&](int64_t extent) { return extent > most; }))
    printRange();
  os << "\n";
  if (shape.size() == 1)
    return printRow(0, shape[0]);
  int64_t columns = shape.back(), rows = shape[0];
  printAxis(rows, "\n", [&](int64_t row) { printRow(row * columns, columns); });
}

//===----------------------------------------------------------------------===//
// What is shown
//===----------------------------------------------------------------------===//

static StringRef getGridName(tile::KernelOp kernel, unsigned dim) {
  return tile::getValueName(kernel.getGridIndex(dim));
}

/// Calls `visit` with each value of `kernel` that has a name.
static void forEachNamed(tile::KernelOp kernel, llvm::function_ref<void(Value, StringRef)> visit) {
  auto offer = [&](Value value) {
    if (StringRef name = tile::getValueName(value); !name.empty())
      visit(value, name);
  };
  kernel->walk<WalkOrder::PreOrder>([&](Operation *op) {
    llvm::for_each(op->getResults(), offer);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), offer);
  });
}

llvm::Error tessera::checkShown(tile::EntryOpInterface entry, const ShowOptions &options) {
  llvm::SetVector<StringRef> values, indices;
  for (tile::KernelOp kernel : tile::getKernels(entry)) {
    forEachNamed(kernel, [&](Value value, StringRef name) {
      if (!isa<tile::ViewType>(value.getType()))
        values.insert(name);
    });
    for (unsigned i = 0; i < kernel.getGridRank(); ++i)
      indices.insert(getGridName(kernel, i));
  }
  for (const std::string &name : options.names)
    if (!values.contains(name))
      return llvm::createStringError("no value is called '%" + name + "'" +
                                     suggestNames(name, values.getArrayRef()) +
                                     "; views are saved by --output, and what functions of "
                                     "elements compute may have been joined with what follows");
  for (const auto &[name, number] : options.at)
    if (!indices.contains(name))
      return llvm::createStringError("no grid index is called '" + name + "'; there are " +
                                     llvm::join(indices, ", "));
  return llvm::Error::success();
}

void interp::findWatched(Program &program) {
  forEachNamed(program.kernel, [&](Value value, StringRef name) {
    if (llvm::is_contained(program.shown.names, name) && !isa<tile::ViewType>(value.getType()))
      program.watched.insert(value);
  });
}

bool Frame::selects(const Program &program, int64_t point) {
  if (!program.shown.show)
    return false;
  tile::KernelOp kernel = program.kernel;
  for (auto [i, extent] : llvm::enumerate(program.launch.grid)) {
    for (const auto &[name, number] : program.shown.at)
      if (name == getGridName(kernel, i) && number != point % extent)
        return false;
    point /= extent;
  }
  return true;
}

std::string Frame::describePlace() const {
  std::string text;
  auto add = [&](StringRef name, int64_t number) {
    text += ((text.empty() ? "" : ", ") + name + " = " + Twine(number)).str();
  };
  tile::KernelOp kernel = program.kernel;
  int64_t rest = point;
  for (auto [i, extent] : llvm::enumerate(program.launch.grid)) {
    StringRef name = getGridName(kernel, i);
    add(name.empty() ? "grid index " + std::to_string(i) : name.str(), rest % extent);
    rest /= extent;
  }
  for (const LoopStep &step : loops) {
    auto loop = dyn_cast<scf::ForOp>(step.loop);
    StringRef name = loop ? tile::getValueName(loop.getInductionVar()) : StringRef();
    add(name.empty() ? "step" : name, name.empty() ? step.number : scalar(loop.getInductionVar()));
  }
  return text;
}

void Frame::show(Location loc, StringRef label, StringRef place, Value value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << label << " at " << place << ": " << value.getType();
  ElementPrinter(get(value), value.getType(), program.shown.elements, os).print();
  texts.emplace_back(loc, std::move(text));
}

void Frame::show(Location loc, StringRef label, Value value) {
  // What decides which iterations run is no iteration.
  if (isShown && llvm::none_of(loops, [](LoopStep step) { return isa<tile::VisitsOp>(step.loop); }))
    show(loc, label, describePlace(), value);
}

/// What a loop carries has a value before its first step and after each.
void Frame::watch(Value value) {
  std::string place = describePlace();
  auto argument = dyn_cast<BlockArgument>(value);
  Operation *loop = argument ? argument.getOwner()->getParentOp() : nullptr;
  auto carrier = dyn_cast_or_null<scf::ForOp>(loop);
  if (carrier && value != carrier.getInductionVar())
    place += !loops.empty() && loops.back().loop == loop ? ", after this step"
                                                         : ", before the first step";
  if (program.shown.steps)
    show(value.getLoc(), ("%" + tile::getValueName(value)).str(), place, value);
  else
    places[value] = std::move(place);
}

void Frame::showWatched() {
  if (!isShown)
    return;
  loops.clear();
  for (Value value : program.watched) {
    // Arguments and constants are the same everywhere.
    auto place = places.find(value);
    bool isConstant = program.constants.contains(value);
    if (isConstant || place != places.end())
      show(value.getLoc(), ("%" + tile::getValueName(value)).str(),
           isConstant ? describePlace() : place->second, value);
  }
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

static LogicalResult runPrint(Frame &frame, Operation *op) {
  auto print = cast<tile::PrintOp>(op);
  if (print.getCondition() && !frame.scalar(print.getCondition()))
    return success();
  std::string label = print.getLabel().str();
  if (StringRef name = tile::getValueName(print.getValue()); !name.empty())
    label += (" (%" + name + ")").str();
  frame.show(op->getLoc(), label, print.getValue());
  return success();
}

static LogicalResult runAssert(Frame &frame, Operation *op) {
  auto assertion = cast<tile::AssertOp>(op);
  ArrayRef<int64_t> holds = frame.ints(assertion.getCondition());
  auto found = llvm::find(holds, 0);
  if (found == holds.end())
    return success();
  std::string message = ("assertion failed: " + assertion.getMessage()).str();
  StringRef name = tile::getValueName(assertion.getCondition());
  std::string condition = name.empty() ? "the condition" : ("%" + name).str();
  if (auto tile = dyn_cast<RankedTensorType>(assertion.getCondition().getType()))
    condition += formatElement(tile.getShape(), found - holds.begin());
  return frame.fail(op, message + "; " + condition + " is false at " + frame.describePlace());
}

void interp::addDebugHandlers(HandlerTable &table) {
  table.add<tile::PrintOp>(runPrint);
  table.add<tile::AssertOp>(runAssert);
}
