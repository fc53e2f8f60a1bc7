//===- Interpreter.cpp - Grid points in a thread pool ---------------------===//

#include "lib/Interpreter/Interpreter.h"
#include "lib/Interpreter/Engine.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/ThreadPool.h"
#include <limits>
#include <list>
#include <map>
#include <mutex>

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

/// What a host has memory for.
static constexpr int64_t maxWorkspaceElements = int64_t(1) << 32;

namespace {
using Texts = std::vector<std::pair<Location, std::string>>;

/// Runs the grid points of one program and keeps the failure of smallest order.
class GridRun {
public:
  GridRun(const Program &program, int64_t numPoints) : program(program), numPoints(numPoints) {}

  LogicalResult run(unsigned numThreads);

private:
  void work();
  std::optional<Failure> runPoint(int64_t point, Texts &texts);
  std::optional<Failure> runBlock(Frame &frame, Texts &texts);
  void show(int64_t point, Texts texts);

  const Program &program;
  const int64_t numPoints;
  std::atomic<int64_t> next{0};
  /// Points from here on need not run: an earlier one failed.
  std::atomic<int64_t> end{INT64_MAX};
  std::mutex mutex;
  std::optional<Failure> first;
  /// What grid points show that ended before an earlier one did, and the first that has not.
  std::map<int64_t, Texts> waiting;
  int64_t nextShown = 0;
};
} // namespace

/// The blocks of a cluster in their order, of which none waits for those behind it.
std::optional<Failure> GridRun::runPoint(int64_t point, Texts &texts) {
  SentTiles sent(program.blocks);
  for (int64_t block = 0; block < program.blocks; ++block) {
    Frame frame(program, point, block, &sent);
    if (std::optional<Failure> failure = runBlock(frame, texts))
      return failure;
  }
  return std::nullopt;
}

std::optional<Failure> GridRun::runBlock(Frame &frame, Texts &texts) {
  tile::KernelOp kernel = program.kernel;
  int64_t rest = frame.point;
  for (unsigned i = 0; i < program.launch.grid.size(); ++i) {
    frame.set(kernel.getGridIndex(i), Ints{rest % program.launch.grid[i]});
    rest /= program.launch.grid[i];
  }
  LogicalResult result = frame.runBlock(kernel.getBody().front());
  frame.showWatched();
  texts = std::move(frame.texts);
  if (succeeded(result))
    return std::nullopt;
  return frame.failure;
}

/// Shows what `point` does when all before it have been shown.
void GridRun::show(int64_t point, Texts texts) {
  std::lock_guard<std::mutex> lock(mutex);
  waiting.emplace(point, std::move(texts));
  for (auto it = waiting.begin(); it != waiting.end() && it->first == nextShown; ++nextShown) {
    for (auto &[loc, text] : it->second)
      program.shown.show(loc, text);
    it = waiting.erase(it);
  }
}

void GridRun::work() {
  for (int64_t point = next++; point < numPoints && point <= end; point = next++) {
    Texts texts;
    std::optional<Failure> failure = runPoint(point, texts);
    if (program.shown.show)
      show(point, std::move(texts));
    if (!failure)
      continue;
    std::lock_guard<std::mutex> lock(mutex);
    if (first && first->order <= failure->order)
      continue;
    end = failure->order;
    first = std::move(failure);
  }
}

LogicalResult GridRun::run(unsigned numThreads) {
  if (numThreads <= 1) {
    work();
  } else {
    llvm::DefaultThreadPool pool(llvm::hardware_concurrency(numThreads));
    for (unsigned i = 0; i < numThreads; ++i)
      pool.async([this] { work(); });
    pool.wait();
  }
  if (!first)
    return success();
  return emitError(first->loc) << first->message;
}

static LogicalResult interpretKernel(tile::KernelOp kernel, ArrayRef<KernelArgument> arguments,
                                     const InterpreterOptions &options) {
  FailureOr<Launch> launch = resolveLaunch(kernel, arguments);
  if (failed(launch))
    return failure();
  int64_t numPoints = 1;
  for (int64_t extent : launch->grid)
    if (llvm::MulOverflow(numPoints, extent, numPoints) || numPoints > INT32_MAX)
      return kernel.emitError() << "the interpreter runs grids of at most " << INT32_MAX
                                << " points; this one has more";
  FailureOr<std::unique_ptr<Program>> program =
      prepare(kernel, std::move(*launch), arguments, options);
  if (failed(program))
    return failure();
  unsigned numThreads =
      options.threads ? options.threads : llvm::hardware_concurrency().compute_thread_count();
  for (const std::unique_ptr<ViewMemory> &view : (*program)->views)
    if (view && view->needsOneThread())
      numThreads = 1;
  numThreads = std::min<int64_t>(numThreads, numPoints);
  return GridRun(**program, numPoints).run(numThreads);
}

/// A workspace as a call of its sequence finds it.
static FailureOr<HostTensor> makeWorkspace(tile::WorkspaceOp op, const Launch &launch) {
  tile::ViewType view = op.getView().getType();
  std::vector<int64_t> shape;
  for (int64_t i = 0; i < view.getRank(); ++i)
    shape.push_back(getExtent(view, i, launch));
  int64_t count = countElements(shape);
  if (count < 0 || count > maxWorkspaceElements)
    return op.emitError() << "the interpreter keeps workspaces of at most " << maxWorkspaceElements
                          << " elements";
  HostTensor tensor =
      HostTensor::contiguous(shape, op.getZeroed() ? 0 : std::numeric_limits<double>::quiet_NaN());
  if (view.getElementType().isInteger(64))
    tensor.convertToIntegers();
  return tensor;
}

static LogicalResult interpretSequence(tile::SequenceOp sequence,
                                       ArrayRef<KernelArgument> arguments,
                                       const InterpreterOptions &options) {
  FailureOr<Launch> launch = resolveLaunch(sequence, arguments);
  if (failed(launch))
    return failure();
  llvm::DenseMap<Value, KernelArgument> values;
  for (auto [argument, value] : llvm::zip_equal(sequence.getBody().getArguments(), arguments))
    values[argument] = value;
  std::list<HostTensor> workspaces;
  for (Operation &op : sequence.getBody().front()) {
    if (auto workspace = dyn_cast<tile::WorkspaceOp>(op)) {
      FailureOr<HostTensor> tensor = makeWorkspace(workspace, *launch);
      if (failed(tensor))
        return failure();
      values[workspace.getView()] = &workspaces.emplace_back(std::move(*tensor));
      continue;
    }
    auto step = cast<tile::LaunchOp>(op);
    SmallVector<KernelArgument> passed;
    for (Value operand : step.getOperands())
      passed.push_back(values.lookup(operand));
    if (failed(interpretKernel(step.getKernelOp(), passed, options)))
      return failure();
  }
  return success();
}

LogicalResult tessera::interpret(tile::EntryOpInterface entry, ArrayRef<KernelArgument> arguments,
                                 const InterpreterOptions &options) {
  if (auto sequence = dyn_cast<tile::SequenceOp>(*entry))
    return interpretSequence(sequence, arguments, options);
  return interpretKernel(cast<tile::KernelOp>(*entry), arguments, options);
}
