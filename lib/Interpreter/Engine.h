//===- Engine.h - Execution of one grid point -----------------------------===//
//
// Program: a kernel checked and prepared for execution, shared by all threads.
// Frame: the values of one grid point. Handlers: what each operation does.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_INTERPRETER_ENGINE_H
#define TESSERA_LIB_INTERPRETER_ENGINE_H

#include "dialects/Tile/Tile.h"
#include "lib/Interpreter/Interpreter.h"
#include "lib/Interpreter/Memory.h"
#include "lib/Interpreter/Numerics.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include <functional>
#include <memory>

namespace tessera::interp {

class Frame;

using Handler = std::function<llvm::LogicalResult(Frame &, mlir::Operation *)>;

/// What to do for each operation the interpreter knows, by operation name.
class HandlerTable {
public:
  /// The table of every known operation.
  static const HandlerTable &get();

  template <typename OpT>
  void add(Handler handler) {
    handlers[mlir::TypeID::get<OpT>()] = std::move(handler);
  }
  /// Null for an operation that is not known.
  const Handler *lookup(mlir::Operation *op) const {
    auto it = handlers.find(op->getName().getTypeID());
    return it == handlers.end() ? nullptr : &it->second;
  }

private:
  llvm::DenseMap<mlir::TypeID, Handler> handlers;
};

void addArithHandlers(HandlerTable &table);
void addMathHandlers(HandlerTable &table);
void addTileHandlers(HandlerTable &table);
void addReduceHandlers(HandlerTable &table);
void addControlHandlers(HandlerTable &table);
void addDebugHandlers(HandlerTable &table);

/// The elements of one SSA value in C order; one element for a scalar. Immutable, so that copies
/// share it.
struct Datum {
  std::shared_ptr<const Floats> floats;
  std::shared_ptr<const Ints> ints;

  static Datum of(Floats values) { return {std::make_shared<const Floats>(std::move(values)), {}}; }
  static Datum of(Ints values) { return {{}, std::make_shared<const Ints>(std::move(values))}; }
};

inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value tile) {
  return llvm::cast<mlir::RankedTensorType>(tile.getType()).getShape();
}

/// Why a grid point stopped. `order` decides which of several failures is reported: the smallest.
struct Failure {
  int64_t order = 0;
  mlir::Location loc;
  std::string message;
};

/// A kernel with its arguments, prepared for any number of threads.
struct Program {
  Program(tile::KernelOp kernel, Launch launch, const InterpreterOptions &options)
      : kernel(kernel), launch(std::move(launch)), precision(options.precision),
        fused(options.fused), partition(options.partition), shown(options.shown) {}

  tile::KernelOp kernel;
  Launch launch;
  Precision precision;
  bool fused;         ///< see InterpreterOptions
  uint64_t partition; ///< see InterpreterOptions
  ShowOptions shown;
  int64_t blocks = 1; ///< of the cluster that runs a grid point
  /// The named values that are shown, in the order of the program.
  llvm::SetVector<mlir::Value> watched;
  const HandlerTable &handlers = HandlerTable::get();
  /// Views and scalar arguments, and constants, which have one value for all grid points.
  std::vector<std::unique_ptr<ViewMemory>> views; ///< by argument; null for scalars
  llvm::DenseMap<mlir::Value, Datum> constants;
};

/// The number of elements of a tile; 1 for a scalar type.
inline size_t elementCount(mlir::Type type) {
  auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
  return tensor ? tensor.getNumElements() : 1;
}

/// A loop that runs, and how many steps were made before this one.
struct LoopStep {
  mlir::Operation *loop;
  int64_t number = 0;
};

/// What each block of a cluster has sent, by tile.from_block.
using SentTiles = std::vector<llvm::DenseMap<mlir::Operation *, Datum>>;

/// The state of one grid point, or of a block of the cluster that runs it.
class Frame {
public:
  Frame(const Program &program, int64_t point, int64_t block = 0, SentTiles *sent = nullptr)
      : program(program), point(point), block(block), sent(sent),
        isShown(isLastBlock() && selects(program, point)) {}

  /// Whether it stores: the last block of a cluster does.
  bool isLastBlock() const { return block == program.blocks - 1; }

  /// Runs the operations of `block` in order, its terminator excepted.
  llvm::LogicalResult runBlock(mlir::Block &block);

  /// The value that `value` has now.
  const Datum &get(mlir::Value value) const {
    auto it = values.find(value);
    return it != values.end() ? it->second : program.constants.find(value)->second;
  }
  llvm::ArrayRef<double> floats(mlir::Value value) const { return *get(value).floats; }
  llvm::ArrayRef<int64_t> ints(mlir::Value value) const { return *get(value).ints; }
  /// The value of an integer scalar.
  int64_t scalar(mlir::Value value) const { return ints(value).front(); }

  /// Whether values are rounded to their types.
  bool isRounded() const { return program.precision == Precision::Kernel; }

  /// Gives `value` new elements; in Kernel precision rounds them to its element type.
  void set(mlir::Value value, Floats elements) {
    if (isRounded())
      roundAll(mlir::getElementTypeOrSelf(value.getType()), elements);
    set(value, Datum::of(std::move(elements)));
  }
  /// The same of a product, which a sum may take before it is rounded.
  void setProduct(mlir::Value value, Floats elements) {
    if (program.fused && isRounded())
      products[value] = elements;
    set(value, std::move(elements));
  }
  /// The elements of `value` as they are before they are rounded, where a sum takes these; else
  /// null.
  const Floats *getProduct(mlir::Value value) const {
    auto it = products.find(value);
    return it == products.end() ? nullptr : &it->second;
  }
  /// Gives `value` new elements, wrapped to the width of its element type.
  void set(mlir::Value value, Ints elements);
  void set(mlir::Value value, Datum datum) {
    values[value] = std::move(datum);
    if (isShown && program.watched.contains(value))
      watch(value);
  }

  /// The memory behind a kernel argument.
  ViewMemory &view(mlir::Value value) const {
    return *program.views[llvm::cast<mlir::BlockArgument>(value).getArgNumber()];
  }

  /// Records why this grid point stops.
  llvm::LogicalResult fail(mlir::Operation *op, const llvm::Twine &message) {
    return fail(op, message, point);
  }
  llvm::LogicalResult fail(mlir::Operation *op, const llvm::Twine &message, int64_t order) {
    failure = Failure{order, op->getLoc(), message.str()};
    return llvm::failure();
  }

  /// Shows `value` under `label`, if this grid point is shown.
  void show(mlir::Location loc, llvm::StringRef label, mlir::Value value);
  /// Shows the named values that are shown as this grid point leaves them.
  void showWatched();
  /// "m = 0, j = 3": the grid point and the steps of the loops around.
  std::string describePlace() const;

  const Program &program;
  const int64_t point; ///< linear index of the grid point
  const int64_t block; ///< number in the cluster
  SentTiles *sent;     ///< by the blocks before too; null of a single one
  std::optional<Failure> failure;
  llvm::SmallVector<LoopStep> loops;                         ///< those that run, from outside
  std::vector<std::pair<mlir::Location, std::string>> texts; ///< what is shown

private:
  static bool selects(const Program &program, int64_t point);
  void watch(mlir::Value value);
  void show(mlir::Location loc, llvm::StringRef label, llvm::StringRef place, mlir::Value value);

  const bool isShown;
  /// Where named values were computed last.
  llvm::DenseMap<mlir::Value, std::string> places;
  llvm::DenseMap<mlir::Value, Datum> values;
  llvm::DenseMap<mlir::Value, Floats> products; ///< before they are rounded
};

/// Checks that the interpreter knows each operation and type of the kernel.
llvm::LogicalResult checkKernel(tile::KernelOp kernel, const HandlerTable &handlers);

/// Checks and prepares a kernel for arguments that `resolveLaunch` accepted.
llvm::FailureOr<std::unique_ptr<Program>> prepare(tile::KernelOp kernel, Launch launch,
                                                  llvm::ArrayRef<KernelArgument> arguments,
                                                  const InterpreterOptions &options);

/// "[1, 0, 17]": the indices of an element.
std::string formatElement(llvm::ArrayRef<int64_t> shape, int64_t linear);

/// Finds what is shown of the kernel of `program`.
void findWatched(Program &program);

} // namespace tessera::interp

#endif // TESSERA_LIB_INTERPRETER_ENGINE_H
