//===- Interpreter.cpp - Grid points in a thread pool ---------------------===//

#include "lib/Interpreter/Interpreter.h"
#include "lib/Interpreter/Engine.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/ThreadPool.h"
#include <mutex>

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

namespace {
/// Runs the grid points of one program and keeps the failure of smallest order.
class GridRun {
public:
  GridRun(const Program &program, int64_t numPoints) : program(program), numPoints(numPoints) {}

  LogicalResult run(unsigned numThreads);

private:
  void work();
  std::optional<Failure> runPoint(int64_t point);

  const Program &program;
  const int64_t numPoints;
  std::atomic<int64_t> next{0};
  /// Points from here on need not run: an earlier one failed.
  std::atomic<int64_t> end{INT64_MAX};
  std::mutex mutex;
  std::optional<Failure> first;
};
} // namespace

std::optional<Failure> GridRun::runPoint(int64_t point) {
  Frame frame(program, point);
  tile::KernelOp kernel = program.kernel;
  int64_t rest = point;
  for (unsigned i = 0; i < program.launch.grid.size(); ++i) {
    frame.set(kernel.getGridIndex(i), Ints{rest % program.launch.grid[i]});
    rest /= program.launch.grid[i];
  }
  if (succeeded(frame.runBlock(kernel.getBody().front())))
    return std::nullopt;
  return frame.failure;
}

void GridRun::work() {
  for (int64_t point = next++; point < numPoints && point <= end; point = next++) {
    std::optional<Failure> failure = runPoint(point);
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

LogicalResult tessera::interpret(tile::KernelOp kernel, ArrayRef<KernelArgument> arguments,
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
      prepare(kernel, std::move(*launch), arguments, options.precision);
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
