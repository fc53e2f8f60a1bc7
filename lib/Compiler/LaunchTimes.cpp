//===- LaunchTimes.cpp - What launches of a kernel should take ------------===//

#include "lib/Compiler/LaunchTimes.h"
#include "dialects/Hop/Machine.h"
#include "lib/Runtime/LinearIterations.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "passes/Schedule/Exponentials.h"
#include "passes/Schedule/LoopOverlap.h"
#include "tessera/BundleKeys.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using runtime::TimeTerm;
namespace json = llvm::json;
using Terms = std::vector<TimeTerm>;

int64_t tessera::countBlocksPerMultiprocessor(int64_t threads, int64_t sharedMemory,
                                              int64_t registers) {
  threads = std::max<int64_t>(threads, 1);
  int64_t blocks = std::min(hopper::threadsOfMultiprocessor / threads,
                            hopper::sharedMemoryOfMultiprocessor /
                                (sharedMemory + hopper::sharedMemoryOfSystem));
  if (registers > 0)
    blocks = std::min(blocks, hopper::registersOfMultiprocessor / (threads * registers));
  return std::max<int64_t>(blocks, 1);
}

//===----------------------------------------------------------------------===//
// Iterations of a tile
//===----------------------------------------------------------------------===//

namespace {
/// Writes scalars of a kernel as terms over its extents and the place of the tile.
class TermWriter {
public:
  explicit TermWriter(tile::KernelOp kernel) : kernel(kernel), dims(kernel.getDimNames()) {}

  /// How often the body of `loop` runs, on top of what is written.
  LogicalResult writeIterations(scf::ForOp loop, Terms &terms);

private:
  LogicalResult write(Value value, Terms &terms);
  LogicalResult writeOperation(Operation *op, Terms &terms);

  tile::KernelOp kernel;
  SmallVector<StringRef> dims;
};
} // namespace

/// The operation on numbers that an operation of arith is, -1 for others.
static int findTimeOp(Operation *op) {
  return llvm::TypeSwitch<Operation *, int>(op)
      .Case([](arith::AddIOp) { return runtime::TIME_ADD; })
      .Case([](arith::SubIOp) { return runtime::TIME_SUB; })
      .Case([](arith::MulIOp) { return runtime::TIME_MUL; })
      // Extents are not negative, and what is divided of them is not either.
      .Case<arith::FloorDivSIOp, arith::DivUIOp, arith::DivSIOp>(
          [](auto) { return runtime::TIME_FLOOR_DIV; })
      .Case<arith::CeilDivSIOp, arith::CeilDivUIOp>([](auto) { return runtime::TIME_CEIL_DIV; })
      .Case<arith::MinSIOp, arith::MinUIOp>([](auto) { return runtime::TIME_MIN; })
      .Case<arith::MaxSIOp, arith::MaxUIOp>([](auto) { return runtime::TIME_MAX; })
      .Default([](Operation *) { return -1; });
}

LogicalResult TermWriter::writeOperation(Operation *op, Terms &terms) {
  if (auto dim = dyn_cast<tile::DimOp>(op)) {
    terms.push_back({runtime::TIME_DIM, llvm::find(dims, dim.getDim()) - dims.begin()});
    return success();
  }
  if (isa<arith::IndexCastOp>(op))
    return write(op->getOperand(0), terms);
  int kind = findTimeOp(op);
  if (kind < 0 || failed(write(op->getOperand(0), terms)) ||
      failed(write(op->getOperand(1), terms)))
    return failure();
  terms.push_back({kind, 0});
  return success();
}

LogicalResult TermWriter::write(Value value, Terms &terms) {
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number))) {
    terms.push_back({runtime::TIME_NUMBER, number.getSExtValue()});
    return success();
  }
  if (Operation *op = value.getDefiningOp())
    return terms.size() < runtime::TIME_MOST_TERMS ? writeOperation(op, terms) : failure();
  for (unsigned i = 0; i < kernel.getGridRank(); ++i)
    if (value == kernel.getGridIndex(i)) {
      terms.push_back({runtime::TIME_INDEX, i});
      return success();
    }
  return failure();
}

LogicalResult TermWriter::writeIterations(scf::ForOp loop, Terms &terms) {
  auto isConstant = [](Value value, int64_t number) {
    APInt constant;
    return matchPattern(value, m_ConstantInt(&constant)) && constant.getSExtValue() == number;
  };
  for (bool isInner = true; loop; loop = loop->getParentOfType<scf::ForOp>()) {
    if (failed(write(loop.getUpperBound(), terms)))
      return failure();
    if (!isConstant(loop.getLowerBound(), 0)) {
      if (failed(write(loop.getLowerBound(), terms)))
        return failure();
      terms.push_back({runtime::TIME_SUB, 0});
    }
    if (!isConstant(loop.getStep(), 1)) {
      if (failed(write(loop.getStep(), terms)))
        return failure();
      terms.push_back({runtime::TIME_CEIL_DIV, 0});
    }
    if (!isInner)
      terms.push_back({runtime::TIME_MUL, 0});
    isInner = false;
  }
  return success();
}

/// The most numbers on the stack of `terms`.
static int64_t findDepth(ArrayRef<TimeTerm> terms) {
  int64_t depth = 0, most = 0;
  for (const TimeTerm &term : terms) {
    depth += term.op <= runtime::TIME_INDEX ? 1 : -1;
    most = std::max(most, depth);
  }
  return most;
}

static bool areEqual(ArrayRef<TimeTerm> a, ArrayRef<TimeTerm> b) {
  return llvm::equal(a, b, [](const TimeTerm &x, const TimeTerm &y) {
    return x.op == y.op && x.value == y.value;
  });
}

/// Fails where a launch could not compute with these terms.
static LogicalResult checkTerms(tile::KernelOp kernel, const Terms &terms) {
  if (terms.size() <= runtime::TIME_MOST_TERMS && findDepth(terms) <= runtime::TIME_DEPTH)
    return success();
  return kernel.emitError("its loops have lengths that are too complicated for a launch to choose "
                          "among alternatives; compile without them");
}

/// How often the body of `loop` runs.
static FailureOr<Terms> writeLoop(tile::KernelOp kernel, scf::ForOp loop) {
  Terms terms;
  if (succeeded(TermWriter(kernel).writeIterations(loop, terms)))
    return terms;
  return loop.emitError("the length of this loop depends on more than extents and the place of the "
                        "tile, so that a launch cannot choose among alternatives; compile without "
                        "them");
}

/// The bytes that an operation loads or stores, 0 of others.
static int64_t countBytes(Operation *op) {
  Type moved;
  if (isa<tile::LoadOp, tile::GatherOp>(op))
    moved = op->getResult(0).getType();
  else if (isa<tile::StoreOp, tile::ScatterOp>(op))
    moved = op->getOperand(0).getType();
  auto tile = dyn_cast_if_present<RankedTensorType>(moved);
  return tile ? tile.getNumElements() * llvm::divideCeil(tile.getElementTypeBitWidth(), 8) : 0;
}

/// What is an iteration of a kernel without dots: so many bytes that its loops load or store.
static constexpr int64_t bytesOfIteration = 1024;

/// The terms of several loops as one, by an operation; 0 where there are none.
static FailureOr<Terms> joinTerms(tile::KernelOp kernel, ArrayRef<Terms> each,
                                  const TimeTerm &operation) {
  Terms all;
  for (const Terms &terms : each) {
    bool isFirst = all.empty();
    llvm::append_range(all, terms);
    if (!isFirst)
      all.push_back(operation);
  }
  if (all.empty())
    all.push_back({runtime::TIME_NUMBER, 0});
  if (failed(checkTerms(kernel, all)))
    return failure();
  return all;
}

/// The iterations of a kernel without dots, and the bytes that it moves outside of loops.
static FailureOr<Terms> findTraffic(tile::KernelOp kernel, int64_t &bytesOfEnds) {
  llvm::MapVector<Operation *, int64_t> bytes;
  kernel.walk([&](Operation *op) {
    if (int64_t moved = countBytes(op))
      bytes[op->getParentOfType<scf::ForOp>()] += moved;
  });
  SmallVector<Terms> each;
  for (auto [loop, moved] : bytes) {
    if (!loop) {
      bytesOfEnds = moved;
      continue;
    }
    FailureOr<Terms> terms = writeLoop(kernel, cast<scf::ForOp>(loop));
    if (failed(terms))
      return failure();
    int64_t pieces = llvm::divideCeil(moved, bytesOfIteration);
    terms->push_back({runtime::TIME_NUMBER, pieces});
    terms->push_back({runtime::TIME_MUL, 0});
    each.push_back(std::move(*terms));
  }
  return joinTerms(kernel, each, {runtime::TIME_ADD, 0});
}

/// The iterations of the longest loop with a dot.
static FailureOr<Terms> findIterations(tile::KernelOp kernel) {
  SmallVector<Terms> each;
  for (scf::ForOp loop : loopsWithDots(kernel)) {
    FailureOr<Terms> terms = writeLoop(kernel, loop);
    if (failed(terms))
      return failure();
    if (llvm::none_of(each, [&](const Terms &other) { return areEqual(other, *terms); }))
      each.push_back(std::move(*terms));
  }
  return joinTerms(kernel, each, {runtime::TIME_MAX, 0});
}

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

static runtime::TimeGrid readGrid(tile::GridDimAttr dim, ArrayRef<std::string> dims) {
  if (auto name = dyn_cast<StringAttr>(dim.getExtent()))
    return runtime::makeTimeGrid(llvm::find(dims, name.getValue()) - dims.begin(), 0,
                                 dim.getDivisor());
  return runtime::makeTimeGrid(-1, cast<IntegerAttr>(dim.getExtent()).getValue().getSExtValue(),
                               dim.getDivisor());
}

/// Of what the loops with dots load of views whose innermost extent a launch knows. Copies are rows
/// of boxes, which are 128 bytes wide at most.
void LaunchTimes::readRows(tile::KernelOp kernel) {
  SmallVector<int64_t> found;
  int64_t bytes = 0;
  for (scf::ForOp loop : firstLoopsWithDots(kernel))
    for (auto load : loop.getOps<tile::LoadOp>()) {
      auto view = cast<tile::ViewType>(load.getView().getType());
      auto tile = dyn_cast<RankedTensorType>(load.getType());
      StringRef name = view.getDimName(view.getRank() - 1);
      if (!tile || tile.getRank() != 2 || name.empty())
        continue;
      if (bytes && bytes != view.getElementBytes())
        return; // The extents would have to be multiples of different numbers.
      bytes = view.getElementBytes();
      loadedRows += tile.getDimSize(0) * llvm::divideCeil(tile.getDimSize(1) * bytes, 128);
      int64_t dim = llvm::find(dims, name) - dims.begin();
      if (!llvm::is_contained(found, dim))
        found.push_back(dim);
    }
  if (found.empty() || found.size() > std::size(model.rows.dims))
    return;
  found.resize(std::size(model.rows.dims), found.front());
  llvm::copy(found, model.rows.dims);
  model.rows.perSector = static_cast<double>(bytes) / hopper::sectorBytes; // a power of two
}

FailureOr<LaunchTimes> LaunchTimes::of(tile::KernelOp kernel) {
  FailureOr<Terms> terms = findIterations(kernel);
  if (failed(terms))
    return failure();
  LaunchTimes times;
  times.card = &getCostModel(kernel);
  times.terms = std::move(*terms);
  for (StringRef name : kernel.getDimNames())
    times.dims.push_back(name.str());
  for (unsigned i = 0; i < kernel.getGridRank(); ++i)
    times.grid.push_back(kernel.getGridDim(i));
  llvm::fill(times.model.grid, runtime::makeTimeGrid(-1, 1, 1));
  for (auto [dim, tiles] : llvm::zip(times.grid, times.model.grid))
    tiles = readGrid(dim, times.dims);
  times.readRows(kernel);
  const CostModel &card = *times.card;
  CycleBudget budget = cycleBudget(firstLoopsWithDots(kernel), card);
  times.estimated =
      expectedCycles(budget, fastestShare(budget, card), card) / (card.clockGHz * 1000);
  return times;
}

LogicalResult LaunchTimes::countBytes(tile::KernelOp kernel, bool isOfSequence) {
  this->isOfSequence = isOfSequence;
  if (estimated == 0) {
    FailureOr<Terms> traffic = findTraffic(kernel, bytesOfEnds);
    if (failed(traffic))
      return failure();
    terms = std::move(*traffic);
  } else if (isOfSequence) {
    for (auto store : kernel.getBody().getOps<tile::StoreOp>())
      bytesOfEnds += ::countBytes(store);
  }
  return success();
}

void LaunchTimes::setCompiled(const json::Object &kernel, int64_t multiprocessors,
                              MLIRContext *context) {
  model.atATime = multiprocessors ? multiprocessors : card->multiprocessors;
  if (!kernel.getBoolean(key::persistent).value_or(false)) {
    const json::Object *report = kernel.getObject(key::report);
    const json::Object *resources = report ? report->getObject(key::resources) : nullptr;
    model.atATime *= countBlocksPerMultiprocessor(
        (*kernel.getArray(key::block))[0].getAsInteger().value_or(0),
        kernel.getInteger(key::sharedMemory).value_or(0),
        resources ? resources->getInteger(key::registers).value_or(0) : 0);
  }
  // That of a compiled kernel, which sets every field.
  auto schedule =
      cast<tile::ScheduleAttr>(parseAttribute(*kernel.getString(key::schedule), context));
  model.section = *schedule.getSection();
  runtime::setTimeCluster(model, tile::countBlocks(*schedule.getCluster()));
  // Blocks of a cluster share what they load in these loops, where they load alike.
  model.rows.time = card->unalignedRowCycles * loadedRows / model.cluster / (card->clockGHz * 1000);
  switch (*schedule.getOrder()) {
  case tile::OrderKind::Linear:
  case tile::OrderKind::Narrow: // of tiles that take equally long
  case tile::OrderKind::Turns:  // of sections that go both ways
    model.order = runtime::TIME_LINEAR;
    break;
  case tile::OrderKind::Ascending:
  case tile::OrderKind::LastTurns: // whose end is such a section
    model.order = runtime::TIME_ASCENDING;
    break;
  case tile::OrderKind::Descending:
    model.order = runtime::TIME_DESCENDING;
    break;
  }
}

double LaunchTimes::predict(const tuning::Extents &extents) const {
  SmallVector<double> values;
  for (const std::string &name : dims) {
    auto found = extents.find(name);
    values.push_back(found == extents.end() ? 0 : found->second);
  }
  runtime::TimeModel complete = model;
  complete.terms = terms.data();
  complete.termCount = terms.size();
  complete.line = runtime::findLinearIterations(terms);
  runtime::TimeExpected expected;
  runtime::expectTime(&complete, values.data(), &expected);
  return runtime::findTime(&expected, TIME_NEVER);
}

void LaunchTimes::take(const tuning::TileTimes &times) {
  model.iterationTime = times.iteration;
  model.endsTime = times.ends;
  isMeasured = true;
}

bool LaunchTimes::fit(ArrayRef<const tuning::Entry *> entries) {
  std::vector<std::pair<const tuning::Extents *, double>> measured;
  for (const tuning::Entry *entry : entries)
    for (auto [shape, ms] : llvm::zip(entry->measured.shapes, entry->measured.ms))
      if (ms > 0)
        measured.emplace_back(&shape, ms * 1000);
  LaunchTimes trial = *this, best = *this;
  double leastError = std::numeric_limits<double>::infinity();
  bool differs = false;
  if (measured.size() < 2)
    return false;
  // Times grow in proportion to both numbers, so that only their ratio has to be searched.
  for (double ratio = 0; ratio <= 16; ratio += 0.125) {
    trial.model.iterationTime = 1;
    trial.model.endsTime = ratio;
    double sum = 0, squares = 0;
    SmallVector<double> parts;
    for (auto [shape, microseconds] : measured) {
      parts.push_back(trial.predict(*shape) / microseconds);
      sum += parts.back();
      squares += parts.back() * parts.back();
    }
    if (!(squares > 0))
      return false;
    double scale = sum / squares, error = 0;
    for (double part : parts) {
      error += (scale * part - 1) * (scale * part - 1);
      // Shapes with tiles of one length say nothing of the ends.
      differs |= ratio > 0 && std::fabs(part / parts.front() - 1) > 1e-9;
    }
    if (error >= leastError)
      continue;
    leastError = error;
    best.model.iterationTime = scale;
    best.model.endsTime = scale * ratio;
  }
  if (!differs)
    return false;
  *this = best;
  isMeasured = true;
  return true;
}

/// What so many bytes take a multiprocessor, where all of them load or store.
double LaunchTimes::findTimeOfBytes(int64_t bytes) const {
  return bytes * card->multiprocessors / card->memoryBytesPerSecond * 1e6;
}

/// Memory answers as late as what keeps it busy takes to come.
double LaunchTimes::findLaunchTime() const { return findTimeOfBytes(card->bytesInFlight); }

void LaunchTimes::estimate(const LaunchTimes *like, bool isPreferred) {
  if (estimated == 0) {
    // The blocks of a multiprocessor share what it moves, however many there are.
    model.atATime = card->multiprocessors;
    model.iterationTime = findTimeOfBytes(bytesOfIteration);
    model.endsTime = findTimeOfBytes(bytesOfEnds);
    return;
  }
  bool scales = like && like->estimated > 0;
  double scale = scales ? like->model.iterationTime / like->estimated : 1;
  double ends = scales && like->model.iterationTime > 0
                    ? like->model.endsTime / like->model.iterationTime
                    : card->iterationsOfEnds;
  model.iterationTime = scale * estimated * (isPreferred ? 1 : card->otherTiles);
  model.endsTime = ends * model.iterationTime + findTimeOfBytes(bytesOfEnds);
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

/// The form of the bundle: operations with their operands behind them.
static json::Value describeTerms(ArrayRef<TimeTerm> terms, ArrayRef<std::string> dims) {
  static constexpr StringRef kNames[] = {"add", "sub", "mul", "floordiv", "ceildiv", "min", "max"};
  std::vector<json::Value> stack;
  for (const TimeTerm &term : terms) {
    if (term.op == runtime::TIME_NUMBER)
      stack.push_back(term.value);
    else if (term.op == runtime::TIME_DIM)
      stack.push_back(dims[term.value]);
    else if (term.op == runtime::TIME_INDEX)
      stack.push_back(json::Object{{key::grid, term.value}});
    else {
      json::Value right = std::move(stack.back());
      stack.pop_back();
      stack.back() = json::Array{kNames[term.op - runtime::TIME_ADD], std::move(stack.back()),
                                 std::move(right)};
    }
  }
  return std::move(stack.front());
}

json::Object LaunchTimes::describeTiles() const {
  json::Array tiles;
  for (tile::GridDimAttr dim : grid) {
    auto name = dyn_cast<StringAttr>(dim.getExtent());
    json::Value extent = name ? json::Value(name.getValue())
                              : json::Value(cast<IntegerAttr>(dim.getExtent()).getInt());
    tiles.push_back(
        json::Object{{key::extent, std::move(extent)}, {key::divisor, dim.getDivisor()}});
  }
  return json::Object{{key::iterations, describeTerms(terms, dims)}, {key::grid, std::move(tiles)}};
}

json::Object LaunchTimes::describe() const {
  static constexpr StringRef kOrders[] = {"linear", "ascending", "descending"};
  json::Object described = describeTiles();
  described[key::from] = isMeasured ? "measured" : "estimated";
  described[key::iterationUs] = model.iterationTime;
  described[key::endsUs] = model.endsTime;
  described[key::tilesAtATime] = model.atATime;
  described[key::order] = kOrders[model.order];
  described[key::section] = model.section;
  if (model.rows.perSector != 0) {
    json::Array names;
    for (int64_t dim : model.rows.dims)
      if (!llvm::is_contained(names, json::Value(dims[dim])))
        names.push_back(dims[dim]);
    described[key::unaligned] =
        json::Object{{key::dims, std::move(names)},
                     {key::multiple, static_cast<int64_t>(1 / model.rows.perSector)},
                     {key::iterationUs, model.rows.time}};
  }
  return described;
}
