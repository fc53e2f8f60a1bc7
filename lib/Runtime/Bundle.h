//===- Bundle.h - The description of compiled kernels -----------*- C++ -*-===//
//
// The contents of a bundle (docs/bundle.md) as data, and the reader that checks it. What the reader
// accepts can be launched without further checks of the description.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_BUNDLE_H
#define TESSERA_LIB_RUNTIME_BUNDLE_H

#include "lib/Runtime/LaunchTime.h"
#include "lib/Support/ElementTypes.h"
#include "tessera-c/Runtime.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera::runtime {

/// The C interface's structure is used as it is: a launch copies nothing.
using Argument = tessera_argument;

/// The most bytes of parameters a kernel takes (CUDA C++ Programming Guide, "Function Parameters",
/// before CUDA 12.1).
constexpr unsigned kMaxParameterBytes = 4096;
/// The most dimensions of a tensor map (CUDA Driver API, cuTensorMapEncodeTiled).
constexpr unsigned kMaxTensorMapRank = 5;

/// A constant, or a named run-time dimension of the kernel or sequence.
struct Extent {
  int64_t constant = 0;
  int dim = -1; ///< index into Signature::dims; -1 for a constant

  int64_t evaluate(llvm::ArrayRef<int64_t> dims) const { return dim < 0 ? constant : dims[dim]; }
};

enum class Access { Read, Write, ReadWrite };

struct ArgumentInfo {
  std::string name;
  bool isView = false;
  const ElementType *type = nullptr;
  llvm::SmallVector<Extent, 5> dims;
  Access access = Access::Read;
  /// An f32 scalar with such a number is finite and above it.
  std::optional<double> above;
  /// In bytes: of the address and of every stride except the innermost.
  unsigned alignment = 1;
  /// Positions in KernelInfo::tensorMaps of the maps over this argument.
  llvm::SmallVector<unsigned, 2> tensorMaps;

  /// The tessera_type of arguments that are taken.
  int32_t getCode() const { return isView ? type->type : type->scalar; }
};

/// `factor` times `divisor`, or without one `factor`, divides `dividend`; both are indices into
/// Signature::dims.
struct Requirement {
  std::optional<unsigned> divisor;
  unsigned dividend;
  int64_t factor = 1;
};

/// The dimension of this index has at most this extent.
struct Bound {
  unsigned dim;
  int64_t most;
};

/// A dimension of a tensor map. The first has no stride: its elements are contiguous.
struct TensorMapDim {
  Extent extent;
  int strideOfDim = -1;    ///< the argument's dimension whose stride it has; -1 for strideBytes
  int64_t strideBytes = 0; ///< a constant stride
  /// Its stride is 2^34 less that: 2^30 of them lead back by as many strides of the argument's, as
  /// addresses wrap modulo 2^64.
  bool wraps = false;
};

struct TensorMapRecipe {
  unsigned argument = 0;
  const ElementType *element = nullptr;
  /// Copies round f32 to nearest even to the 10 bits of tf32's mantissa.
  bool roundsToTF32 = false;
  llvm::SmallVector<TensorMapDim, kMaxTensorMapRank> dims; ///< innermost first
  llvm::SmallVector<uint32_t, kMaxTensorMapRank> box;
  int swizzle = 0; ///< CUtensorMapSwizzle

  int dataType() const; ///< CUtensorMapDataType
  llvm::StringRef elementName() const;
};

enum class ParameterKind { TensorMap, Pointer, Dim, Stride, Scalar, Workspace, Tickets, Timeline };

/// A parameter of the kernel's entry function.
struct LaunchParameter {
  ParameterKind kind;
  unsigned argument = 0; ///< of TensorMap, Pointer, Stride and Scalar
  unsigned dim = 0;      ///< Dim: index into Signature::dims; Stride: dimension of the argument
  unsigned mapOfArgument = 0; ///< TensorMap: position in ArgumentInfo::tensorMaps
  uint64_t workspaceOffset =
      0;               ///< Workspace, Tickets, Timeline: where it begins in a stream's memory
  unsigned bytes = 0;  ///< size of the value: 128, 8 or 4
  unsigned offset = 0; ///< where the value lies in the block that a launch fills
};

/// ceil(extent / divisor) clusters, or of a persistent kernel what a cluster does at a time.
struct GridDim {
  Extent extent;
  int64_t divisor = 1;
};

/// What a caller passes to a kernel or to a sequence.
struct Signature {
  explicit Signature(llvm::StringLiteral kind) : kind(kind) {}

  llvm::StringLiteral kind; ///< "kernel", "sequence" or "choice"
  std::string name;
  std::vector<ArgumentInfo> arguments;
  std::vector<std::string> dims;
  std::vector<Requirement> requirements;
  std::vector<Bound> bounds;
  /// The entry of "kernels", "sequences" or "choices", as JSON text.
  std::string description;
};

/// A view whose tiles have tickets of 4 bytes each: the tiles along each of its dimensions.
using TicketedView = std::vector<GridDim>;

struct KernelInfo : Signature {
  KernelInfo() : Signature("kernel") {}

  std::string symbol;
  unsigned image = 0; ///< index into BundleInfo::images
  std::vector<TensorMapRecipe> tensorMaps;
  std::vector<LaunchParameter> parameters;
  unsigned parameterBytes = 0;
  /// Device memory that a stream has for the kernel's workspaces and its timeline. Tickets lie
  /// behind it, as many as a launch takes.
  uint64_t workspaceBytes = 0;
  std::vector<TicketedView> ticketed;
  /// Where in it the kernel records its timeline; 0 bytes when it records none.
  uint64_t timelineOffset = 0, timelineBytes = 0;
  std::array<GridDim, 3> grid;
  /// The blocks walk over the grid by themselves; its clusters extend in x only.
  bool persistent = false;
  /// Where a launch would have more blocks in y or z than there can be, it has all of them in x;
  /// the clusters extend in x only.
  bool flat = false;
  /// Of a persistent kernel: blocks that a multiprocessor runs at a time.
  unsigned blocksPerMultiprocessor = 1;
  /// The kernel waits for the launch before it by itself, and may begin while that one ends.
  bool pdl = false;
  std::array<unsigned, 3> block, cluster;
  unsigned sharedMemory = 0;
};

/// ceil(product / divisor).
struct DerivedDim {
  std::string name;
  llvm::SmallVector<Extent, 4> factors;
  int64_t divisor = 1;
};

/// Memory that one call of a sequence has for itself.
struct WorkspaceInfo {
  std::string name;
  const ElementType *type = nullptr;
  llvm::SmallVector<Extent, 5> dims; ///< of the arguments, then of SequenceInfo::derivedDims
  bool zeroed = false;
};

/// A launch of a kernel by a sequence.
struct StepInfo {
  unsigned kernel = 0; ///< index into BundleInfo::kernels
  /// Of each argument of the kernel: a number of SequenceInfo::arguments, or beyond these one of
  /// SequenceInfo::workspaces.
  llvm::SmallVector<unsigned, 16> operands;
};

struct SequenceInfo : Signature {
  SequenceInfo() : Signature("sequence") {}

  /// Extents that follow from earlier ones, of which `dims` are the first.
  std::vector<DerivedDim> derivedDims;
  std::vector<WorkspaceInfo> workspaces;
  std::vector<StepInfo> steps;
};

/// A launch of a kernel by an alternative, and what it is expected to take.
struct TimedLaunch {
  unsigned kernel = 0; ///< index into BundleInfo::kernels
  /// Of the kernel's dimensions: those of the choice, and behind them those that a sequence
  /// derives.
  llvm::SmallVector<Extent, 8> dims;
  std::vector<TimeTerm> iterations;
  /// All but the terms, which are `iterations`.
  TimeModel time = {};
};

/// A kernel or a sequence of a choice.
struct AlternativeInfo {
  unsigned entry = 0; ///< index into BundleInfo::kernels, or behind these BundleInfo::sequences
  std::vector<TimedLaunch> launches; ///< of a kernel one
  double launchTime = 0; ///< microseconds of each launch behind the first, beside its tiles
};

/// Kernels and sequences that compute the same, of which a launch takes the one that should be the
/// fastest.
struct ChoiceInfo : Signature {
  ChoiceInfo() : Signature("choice") {}

  std::vector<AlternativeInfo> alternatives;
};

struct BundleInfo {
  int64_t version = 1;
  std::string target; ///< "sm_90a"
  /// Cubins, or PTX texts that end with a zero byte; each kernel is in one of them.
  std::vector<std::vector<char>> images;
  bool isPtx = false;
  std::vector<KernelInfo> kernels;
  std::vector<SequenceInfo> sequences;
  std::vector<ChoiceInfo> choices;
};

/// Reads and checks a bundle. Errors have status INVALID_BUNDLE and name the offending member.
llvm::Expected<BundleInfo> readBundle(llvm::StringRef text);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_BUNDLE_H
