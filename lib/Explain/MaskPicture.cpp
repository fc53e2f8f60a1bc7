//===- MaskPicture.cpp - The iterations that masks leave ------------------===//

#include "lib/Explain/MaskPicture.h"
#include "lib/Explain/ValueSlice.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Analysis/MaskAnalysis.h"
#include "passes/Tile/FindVisits.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::explain;
using tile::KernelOp;
using tile::VisitsOp;
namespace json = llvm::json;

namespace {
/// A mask, and the value of it that stands for what is computed.
struct Mask {
  Value condition;
  bool computed;
};

/// A loop, or the region of a tile.visits, whose masks are drawn.
struct MaskedLoop {
  Value index, lower, upper;
  Value step;             ///< null: 1
  VisitInterval interval; ///< null: all iterations
  SmallVector<Mask> masks;
  /// Where an iteration's elements begin along the axis that the loop runs over, and how many there
  /// are; null where that is not known.
  Value position = {};
  int64_t width = 1;
};

/// What a grid point makes of one iteration.
struct Cell {
  int64_t index, position;
  Visit visit;
};

/// The iterations of one grid point, `count` from `lower` on, of which it runs [first, past).
struct Range {
  int64_t lower, count, first, past;
};

/// Draws one loop.
class Painter {
public:
  Painter(interp::Program &program, const MaskedLoop &loop, ValueSlice &slice)
      : program(program), loop(loop), slice(slice) {}

  MaskPicture draw();

private:
  bool addBounds();
  bool addMasks();
  bool findRanges();
  bool visitRow(size_t row);
  bool layOut(int64_t Cell::*place, int64_t unit);
  void setGrid(interp::Frame &frame, size_t row) const;
  Visit look(const interp::Frame &frame) const;
  bool refuse(const Twine &why) {
    picture.problem = why.str();
    return false;
  }
  bool refuse(const interp::Frame &frame) {
    return refuse(frame.failure ? frame.failure->message : "the interpreter stopped");
  }

  interp::Program &program;
  const MaskedLoop &loop;
  ValueSlice &slice;
  MaskPicture picture;
  /// Steps of the slice that do not depend on the iteration.
  size_t numFixed = 0;
  /// Of each row.
  std::vector<Range> ranges;
  std::vector<std::vector<Cell>> cells;
};
} // namespace

//===----------------------------------------------------------------------===//
// Drawing
//===----------------------------------------------------------------------===//

bool Painter::addBounds() {
  for (Value value : {loop.lower, loop.upper, loop.step, loop.interval.first, loop.interval.past})
    if (value && !slice.add(value))
      return refuse(slice.getProblem());
  numFixed = slice.size();
  return true;
}

bool Painter::addMasks() {
  slice.setGiven(loop.index);
  for (const Mask &mask : loop.masks)
    if (!slice.add(mask.condition))
      return refuse(slice.getProblem());
  if (loop.position && !slice.add(loop.position))
    return refuse(slice.getProblem());
  picture.gridDims = llvm::to_vector(slice.getGridDims().getArrayRef());
  llvm::sort(picture.gridDims);
  int64_t numRows = 1;
  for (auto [dim, extent] : llvm::enumerate(program.launch.grid))
    if (!llvm::is_contained(picture.gridDims, dim))
      picture.pointsPerRow = llvm::SaturatingMultiply<uint64_t>(picture.pointsPerRow, extent);
    else if (llvm::MulOverflow(numRows, extent, numRows) || numRows > kMostBlocks)
      return refuse("a picture has at most " + Twine(kMostBlocks) +
                    " iterations, and so many grid points have more; take smaller extents");
    else
      picture.gridExtents.push_back(extent);
  ranges.resize(numRows);
  return true;
}

void Painter::setGrid(interp::Frame &frame, size_t row) const {
  int64_t rest = row;
  for (auto [dim, extent] : llvm::zip_equal(picture.gridDims, picture.gridExtents)) {
    frame.set(program.kernel.getGridIndex(dim), interp::Ints{rest % extent});
    rest /= extent;
  }
}

bool Painter::findRanges() {
  int64_t numCells = 0;
  for (auto [row, range] : llvm::enumerate(ranges)) {
    interp::Frame frame(program, /*point=*/0);
    setGrid(frame, row);
    if (failed(slice.run(frame, 0, numFixed)))
      return refuse(frame);
    range.lower = frame.scalar(loop.lower);
    int64_t upper = frame.scalar(loop.upper);
    range.first = loop.interval.first ? frame.scalar(loop.interval.first) : range.lower;
    range.past = loop.interval.past ? frame.scalar(loop.interval.past) : upper;
    int64_t step = loop.step ? frame.scalar(loop.step) : 1;
    if (step < 1 || (row && step != picture.unit))
      return refuse("the step of the loop is not the same at each grid point");
    picture.unit = step;
    int64_t last = -1;
    bool isHuge = range.lower < upper && llvm::SubOverflow(upper - 1, range.lower, last);
    range.count = last < 0 ? 0 : last / step + 1;
    if (isHuge || llvm::AddOverflow(numCells, range.count, numCells) || numCells > kMostBlocks)
      return refuse("a picture has at most " + Twine(kMostBlocks) +
                    " iterations, and the grid points have more; take smaller extents");
  }
  return numCells > 0 || refuse("no grid point has an iteration");
}

/// What the masks leave of an iteration. Those of one shape are taken together.
Visit Painter::look(const interp::Frame &frame) const {
  llvm::MapVector<Type, interp::Ints> computed;
  for (const Mask &mask : loop.masks) {
    ArrayRef<int64_t> elements = frame.ints(mask.condition);
    interp::Ints &all = computed[mask.condition.getType()];
    all.resize(elements.size(), 1);
    for (auto [element, isComputed] : llvm::zip_equal(elements, all))
      isComputed &= (element != 0) == mask.computed;
  }
  bool isFull = true;
  for (auto &[type, elements] : computed) {
    size_t count = llvm::count(elements, 1);
    if (count == 0)
      return Visit::Masked;
    isFull &= count == elements.size();
  }
  return isFull ? Visit::Full : Visit::Partial;
}

bool Painter::visitRow(size_t row) {
  const Range &range = ranges[row];
  std::vector<Cell> &own = cells.emplace_back();
  interp::Frame frame(program, /*point=*/0);
  setGrid(frame, row);
  if (failed(slice.run(frame, 0, numFixed)))
    return refuse(frame);
  for (int64_t i = 0; i < range.count; ++i) {
    int64_t index = range.lower + i * picture.unit;
    if (index < range.first || index >= range.past) {
      own.push_back({index, index, Visit::Skipped});
      continue;
    }
    frame.set(loop.index, interp::Ints{index});
    if (failed(slice.run(frame, numFixed, slice.size())))
      return refuse(frame);
    int64_t position = loop.position ? frame.scalar(loop.position) : index;
    own.push_back({index, position, look(frame)});
  }
  return true;
}

/// Makes a column of each place, `unit` apart. Columns that a row does not have are skipped. False
/// where places lie between others, or two of a row on each other.
bool Painter::layOut(int64_t Cell::*place, int64_t unit) {
  int64_t first = INT64_MAX, last = INT64_MIN;
  for (const std::vector<Cell> &row : cells)
    for (const Cell &cell : row) {
      first = std::min(first, cell.*place);
      last = std::max(last, cell.*place);
    }
  int64_t span;
  if (llvm::SubOverflow(last, first, span) ||
      span / unit >= kMostBlocks / static_cast<int64_t>(cells.size()))
    return refuse("a picture has at most " + Twine(kMostBlocks) +
                  " iterations, and this one has more; take smaller extents");
  picture.first = first;
  picture.unit = unit;
  picture.rows.assign(cells.size(),
                      std::string(span / unit + 1, static_cast<char>(Visit::Skipped)));
  for (auto [row, visits] : llvm::zip_equal(cells, picture.rows)) {
    llvm::DenseSet<int64_t> taken;
    for (const Cell &cell : row) {
      int64_t distance = cell.*place - first;
      if (distance % unit != 0 || !taken.insert(distance).second)
        return false;
      visits[distance / unit] = static_cast<char>(cell.visit);
    }
  }
  return true;
}

MaskPicture Painter::draw() {
  picture.isVisits = static_cast<bool>(loop.interval.first);
  bool isKnown = addBounds() && addMasks() && findRanges();
  for (size_t row = 0; isKnown && row < ranges.size(); ++row)
    isKnown = visitRow(row);
  if (!isKnown)
    return std::move(picture);
  int64_t step = picture.unit;
  picture.isByPosition = loop.position && layOut(&Cell::position, loop.width);
  if (picture.isByPosition || layOut(&Cell::index, step))
    picture.problem.clear();
  else if (picture.problem.empty())
    refuse("the iterations of one grid point lie between those of another");
  return std::move(picture);
}

//===----------------------------------------------------------------------===//
// What is drawn
//===----------------------------------------------------------------------===//

/// The masks of the selects that are in `loop` and in no loop in it.
static SmallVector<Mask> findMasks(scf::ForOp loop) {
  SmallVector<Mask> masks;
  loop.getBody()->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<LoopLikeOpInterface>(op))
      return WalkResult::skip();
    if (auto select = dyn_cast<arith::SelectOp>(op))
      if (std::optional<bool> arm = getComputedArm(select))
        masks.push_back({select.getCondition(), *arm});
    return WalkResult::advance();
  });
  return masks;
}

/// The regions of a kernel's tile.visits. Each gets the interval that the compiler computes beside
/// it.
static std::vector<MaskedLoop> findVisits(KernelOp kernel) {
  SmallVector<VisitsOp> all;
  kernel.walk([&](VisitsOp visits) { all.push_back(visits); });
  std::vector<MaskedLoop> loops;
  for (VisitsOp visits : all) {
    OpBuilder builder(visits);
    VisitInterval interval = resolveVisits(cast<VisitsOp>(builder.clone(*visits)));
    loops.push_back({visits.getInductionVar(),
                     visits.getLower(),
                     visits.getUpper(),
                     Value(),
                     interval,
                     {{visits.getMask(), true}}});
  }
  return loops;
}

/// Calls `visit` with `value` and what it is computed from.
static void forEachSource(Value value, llvm::DenseSet<Value> &seen,
                          llvm::function_ref<void(Value)> visit) {
  if (!seen.insert(value).second)
    return;
  visit(value);
  if (Operation *op = value.getDefiningOp())
    for (Value operand : op->getOperands())
      forEachSource(operand, seen, visit);
}

/// Finds the one iota of the masks that begins elsewhere in each iteration.
static void findPosition(MaskedLoop &loop) {
  llvm::DenseSet<Value> seen;
  llvm::SetVector<Value> starts;
  auto look = [&](Value value) {
    auto iota = value.getDefiningOp<tile::IotaOp>();
    if (!iota)
      return;
    bool moves = false;
    llvm::DenseSet<Value> sources;
    forEachSource(iota.getStart(), sources, [&](Value source) { moves |= source == loop.index; });
    if (!moves)
      return;
    starts.insert(iota.getStart());
    loop.width = iota.getPeriodOrExtent();
  };
  for (const Mask &mask : loop.masks)
    forEachSource(mask.condition, seen, look);
  if (starts.size() == 1)
    loop.position = starts.front();
}

/// Whether the bounds of a loop come from a tile.visits, which has a picture of its own.
static bool followsVisits(const MaskedLoop &loop, ValueSlice &slice) {
  for (Value bound : {loop.lower, loop.upper})
    slice.add(bound);
  return slice.has<VisitsOp>();
}

/// The loops of a kernel that have masks and do not follow a tile.visits.
static std::vector<MaskedLoop> findLoops(KernelOp kernel) {
  std::vector<MaskedLoop> loops;
  kernel.walk<WalkOrder::PreOrder>([&](scf::ForOp op) {
    MaskedLoop loop{op.getInductionVar(), op.getLowerBound(), op.getUpperBound(),
                    op.getStep(),         VisitInterval(),    findMasks(op)};
    ValueSlice bounds(kernel, [](unsigned) { return true; });
    if (loop.masks.empty() || followsVisits(loop, bounds))
      return;
    findPosition(loop);
    loops.push_back(std::move(loop));
  });
  return loops;
}

/// The arguments of a kernel as the interpreter takes them. Those that are not known have any
/// value: no slice reads them.
static std::vector<KernelArgument> makeArguments(KernelOp kernel, const MaskInputs &inputs,
                                                 std::vector<HostTensor> &tensors) {
  tensors.resize(kernel.getNumArguments());
  std::vector<KernelArgument> arguments;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    Type type = kernel.getArgument(i).getType();
    StringRef name = kernel.getArgumentName(i);
    double scalar = inputs.scalars.lookup(name);
    if (isa<tile::ViewType>(type)) {
      if (auto found = inputs.views.find(name); found != inputs.views.end())
        tensors[i] = found->second;
      arguments.emplace_back(&tensors[i]);
    } else if (isa<FloatType>(type)) {
      arguments.emplace_back(scalar);
    } else {
      arguments.emplace_back(static_cast<int64_t>(scalar));
    }
  }
  return arguments;
}

/// Folds what the parameters decide: they choose among masks.
static LogicalResult fold(KernelOp kernel) {
  PassManager pm(kernel.getContext());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  return pm.run(kernel->getParentOfType<ModuleOp>());
}

/// Draws loops of `kernel` and adds the pictures. False when the interpreter does not know the
/// kernel.
static bool drawLoops(KernelOp kernel, ArrayRef<MaskedLoop> loops, const Launch &launch,
                      const MaskInputs &inputs, std::vector<MaskPicture> &pictures) {
  std::vector<HostTensor> tensors;
  FailureOr<std::unique_ptr<interp::Program>> program =
      interp::prepare(kernel, launch, makeArguments(kernel, inputs, tensors), InterpreterOptions());
  if (failed(program))
    return false;
  auto isKnown = [&](unsigned argument) {
    StringRef name = kernel.getArgumentName(argument);
    return inputs.scalars.contains(name) || inputs.views.contains(name);
  };
  for (const MaskedLoop &loop : loops) {
    ValueSlice slice(kernel, isKnown);
    pictures.push_back(Painter(**program, loop, slice).draw());
  }
  return true;
}

llvm::Expected<std::vector<MaskPicture>>
tessera::explain::drawMasks(KernelOp kernel, const Launch &launch, const MaskInputs &inputs) {
  std::string error;
  ScopedDiagnosticHandler capture(kernel.getContext(), [&](mlir::Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && error.empty())
      error = diagnostic.str();
    return success();
  });
  std::vector<MaskPicture> pictures;
  // A module, for the verifier wants a kernel to be in one.
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  auto copy = cast<KernelOp>(OpBuilder(module->getBodyRegion()).clone(*kernel));
  bool isDrawn =
      succeeded(fold(copy)) && drawLoops(copy, findLoops(copy), launch, inputs, pictures);
  if (isDrawn) {
    // As the compiler does, before anything is folded.
    copy.erase();
    copy = cast<KernelOp>(OpBuilder(module->getBodyRegion()).clone(*kernel));
    isDrawn = drawLoops(copy, findVisits(copy), launch, inputs, pictures);
  }
  if (!isDrawn)
    return llvm::createStringError(error);
  return pictures;
}

json::Value tessera::explain::toJSON(const MaskPicture &picture, KernelOp kernel) {
  json::Object object{{"kind", picture.isVisits ? "visits" : "loop"}};
  if (!picture.problem.empty()) {
    object["problem"] = picture.problem;
    return object;
  }
  json::Array grid;
  std::optional<ArrayAttr> names = kernel.getGridNames();
  for (auto [dim, extent] : llvm::zip_equal(picture.gridDims, picture.gridExtents))
    grid.push_back(json::Object{
        {"name", names ? cast<StringAttr>((*names)[dim]).getValue().str() : std::to_string(dim)},
        {"extent", extent}});
  auto count = [&](Visit visit) {
    int64_t sum = 0;
    for (const std::string &row : picture.rows)
      sum += llvm::count(row, static_cast<char>(visit));
    return sum;
  };
  int64_t skipped = count(Visit::Skipped), masked = count(Visit::Masked),
          partial = count(Visit::Partial), full = count(Visit::Full);
  int64_t visited = masked + partial + full;
  object["grid"] = std::move(grid);
  object["points_per_row"] = picture.pointsPerRow;
  object["columns"] = picture.isByPosition ? "elements" : "iterations";
  object["first"] = picture.first;
  object["unit"] = picture.unit;
  object["rows"] = json::Array(picture.rows);
  object["counts"] =
      json::Object{{"skipped", skipped}, {"masked", masked}, {"partial", partial}, {"full", full}};
  object["visited_percent"] = 100.0 * visited / (visited + skipped);
  return object;
}
