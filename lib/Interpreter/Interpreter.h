//===- Interpreter.h - Runs tile kernels on the CPU -----------------------===//
//
// The meaning of a kernel: executes a tile.kernel at any tile level (bound,
// scheduled, split, overlapped) for concrete tensors; and of a sequence, the
// kernels in their order.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_INTERPRETER_INTERPRETER_H
#define TESSERA_LIB_INTERPRETER_INTERPRETER_H

#include "dialects/Tile/Entries.h"
#include "dialects/Tile/Signature.h"
#include "lib/Support/ElementTypes.h"
#include "lib/Support/HostTensor.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <variant>

namespace tessera {

enum class Precision {
  /// Every floating-point value is a double, whatever its type; conversions between floating-point
  /// types do nothing and dots accumulate in double.
  Exact,
  /// Every value is rounded to its own type, to nearest even, after each operation. A dot
  /// multiplies exactly and adds each product to the f32 accumulator in turn, k = 0, 1, 2, ...;
  /// a reduction adds in ascending order. A math function is computed in double and rounded
  /// once, `math.tanh` with `fastmath<afn>` to 11 bits.
  Kernel,
};

using tile::ViewUse;

/// The value of one argument: the tensor of a view (read and written in place, never null),
/// a floating-point scalar, or an integer one.
using KernelArgument = std::variant<HostTensor *, double, int64_t>;

/// What a run shows of the values of a kernel: those of tile.print, and those that are named.
struct ShowOptions {
  /// Receives each text with its place in the source, in the order of grid points. Null: nothing is
  /// shown.
  std::function<void(mlir::Location, llvm::StringRef)> show;
  /// What the source calls values, without `%`.
  std::vector<std::string> names;
  /// Whether named values are shown each time that they are computed, those that a loop carries
  /// before its first step and after each; otherwise as the grid point leaves them.
  bool steps = false;
  /// Only grid points with these indices are shown.
  std::vector<std::pair<std::string, int64_t>> at;
  /// At most so many elements along each axis.
  int64_t elements = 6;
};

/// Says which name of a value or of a grid index no kernel of `entry` has.
llvm::Error checkShown(tile::EntryOpInterface entry, const ShowOptions &options);

struct InterpreterOptions {
  Precision precision = Precision::Kernel;
  /// In Kernel precision, whether a sum takes a product or a logarithm as it is before it is
  /// rounded: the machine may make one instruction of a product and a sum, and its logarithm is a
  /// product.
  bool fused = false;
  /// Where a tile.split_reduce is cut: a seed of random partitions, or 0 to keep ranges whole.
  uint64_t partition = 0;
  /// Threads that run grid points; 0: one per core.
  unsigned threads = 0;
  ShowOptions shown;
};

/// What the launch of a kernel or a sequence with concrete arguments fixes.
struct Launch {
  /// Extents of the named run-time dimensions, in order of first appearance; of a sequence those
  /// that it derives follow.
  llvm::MapVector<llvm::StringRef, int64_t> dims;
  /// Grid points along each grid dimension of a kernel, 1 to 3 of them.
  llvm::SmallVector<int64_t, 3> grid;
  /// Whether a kernel has no grid points, or none of a sequence has any.
  bool isEmpty = false;
};

/// Derives a launch from arguments, one per argument of a kernel or a sequence. An error at its
/// location when an argument is of the wrong kind, a tensor does not fit its view, a named
/// dimension has two extents or none that is allowed, or a requirement does not hold, of the
/// kernels of a sequence too.
llvm::FailureOr<Launch> resolveLaunch(tile::EntryOpInterface entry,
                                      llvm::ArrayRef<KernelArgument> arguments);

/// The launch of a kernel or a sequence whose dimensions have these extents; errors as above, but
/// for those of arguments. A dimension that is missing has the extent 0.
llvm::FailureOr<Launch> resolveLaunch(tile::EntryOpInterface entry,
                                      const llvm::StringMap<int64_t> &extents);

/// What a sequence with this launch launches.
llvm::FailureOr<Launch> resolveLaunch(tile::LaunchOp op, const Launch &sequence);

/// The extent of a view's dimension.
int64_t getExtent(tile::ViewType view, int64_t dim, const Launch &launch);

/// Runs every grid point of a kernel, in no particular order, or the kernels of a sequence one
/// after the other, in workspaces that are NaN or zeroed. Arguments as for `resolveLaunch`.
///
/// Elements of f16, bf16 and f32 views are rounded as they are loaded in Kernel precision and used
/// as they are in Exact. An operation that is not known, a type without a meaning here, an outer
/// index outside its view, an integer division by zero or that overflows, two grid points that
/// touch one element, one of them storing, and a tile.assert that does not hold are errors at the
/// operation's location; the error of the first such grid point is reported, whatever the number of
/// threads. Where arith leaves a value undefined (poison), the result is: 0, or the sign, for
/// shifts by the width or more; the nearest integer in range, 0 for NaN, for conversions to
/// integers; the wrapped result for `nsw`/`nuw` overflow.
llvm::LogicalResult interpret(tile::EntryOpInterface entry,
                              llvm::ArrayRef<KernelArgument> arguments,
                              const InterpreterOptions &options = {});

/// The nearest value of a type that views or scalars have: of floats to nearest even.
double roundToType(mlir::Type type, double value);

} // namespace tessera

#endif // TESSERA_LIB_INTERPRETER_INTERPRETER_H
