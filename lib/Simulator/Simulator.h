//===- Simulator.h - Executes Hopper PTX on the CPU -------------*- C++ -*-===//
//
// The public interface of the simulator: parse PTX text, describe a launch, run it, read a report.
// It depends on LLVM Support only, so that the compiler, the stand-alone tool and tests can all
// embed it. docs/simulator.md says what is modelled and how each hazard is found.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_SIMULATOR_SIMULATOR_H
#define TESSERA_SIMULATOR_SIMULATOR_H

#include "lib/Simulator/Limits.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace llvm {
class raw_ostream;
}

namespace tessera::sim {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t(x) * y * z; }
};

//===----------------------------------------------------------------------===//
// Module
//===----------------------------------------------------------------------===//

/// One parameter of a kernel as the PTX declares it; `offset` is its place in Launch::params.
struct ParamInfo {
  std::string name;
  std::string type; ///< the PTX element type: "u64", "f32", "b8", ...
  uint32_t offset = 0;
  uint32_t size = 0;
  uint32_t align = 1;
};

/// What an entry function declares.
struct PtxKernel {
  std::string name;
  std::vector<ParamInfo> params;
  uint32_t paramBytes = 0;
  uint32_t staticSharedBytes = 0;
  bool usesDynamicShared = false;
  Dim3 reqntid{0, 0, 0};    ///< zero when the directive is absent
  Dim3 reqCluster{0, 0, 0}; ///< zero when the directive is absent
  uint32_t maxnreg = 0;
  uint32_t minBlocks = 1; ///< .minnctapersm: blocks that a multiprocessor holds at least
};

namespace detail {
struct ParsedModule;
}

/// A parsed PTX module. Instructions are decoded when a kernel is launched; an instruction that is
/// not modelled is an error of run(), with its opcode and line.
class Module {
public:
  explicit Module(std::unique_ptr<detail::ParsedModule> parsed);
  ~Module();
  Module(Module &&);
  llvm::ArrayRef<PtxKernel> kernels() const;
  const PtxKernel *kernel(llvm::StringRef name) const;
  const detail::ParsedModule &parsed() const { return *impl; }

private:
  std::unique_ptr<detail::ParsedModule> impl;
};

/// `fileName` is used in messages only.
llvm::Expected<Module> parseModule(llvm::StringRef text, llvm::StringRef fileName = "<ptx>");

//===----------------------------------------------------------------------===//
// Memory, tensor maps and launches
//===----------------------------------------------------------------------===//

/// The device's global memory: a set of buffers with guard space between them, so that an access
/// outside of every buffer is found. Addresses do not change while buffers are added.
class GlobalMemory {
public:
  struct Free {
    void operator()(uint8_t *storage) const;
  };
  struct Buffer {
    std::string name;
    uint64_t base = 0;
    uint64_t size = 0;
    bool readOnly = false;
    std::unique_ptr<uint8_t[], Free> storage; ///< 256-byte aligned at `data`
    uint8_t *data = nullptr;
    bool contains(uint64_t address, uint64_t bytes) const {
      return address >= base && isInside(address - base, bytes, size);
    }
  };

  GlobalMemory();
  ~GlobalMemory();
  GlobalMemory(GlobalMemory &&);

  /// Returns the device address of a new zero-filled buffer, a multiple of 256, or an error when
  /// all buffers together would have more than kMaxMemoryBytes.
  llvm::Expected<uint64_t> allocate(uint64_t bytes, llvm::StringRef name, bool readOnly = false);
  llvm::Error write(uint64_t address, llvm::ArrayRef<uint8_t> bytes);
  llvm::Error read(uint64_t address, llvm::MutableArrayRef<uint8_t> bytes) const;
  /// The buffer that holds [address, address + bytes), or null.
  Buffer *find(uint64_t address, uint64_t bytes);
  const Buffer *find(uint64_t address, uint64_t bytes) const;
  /// The buffer that starts at or below `address`, for messages.
  const Buffer *nearest(uint64_t address) const;
  const std::vector<std::unique_ptr<Buffer>> &buffers() const { return list; }
  uint64_t totalBytes() const { return total; }

private:
  std::vector<std::unique_ptr<Buffer>> list; ///< ascending by base
  uint64_t next, total = 0;
};

enum class TensorElement : uint8_t {
  U8,
  U16,
  U32,
  S32,
  U64,
  S64,
  F16,
  F32,
  F64,
  BF16,
  F32Ftz,
  TF32,
  TF32Ftz
};
unsigned elementBytes(TensorElement type);

/// The fields of cuTensorMapEncodeTiled, with its numbering for the enumerations.
struct TensorMapDesc {
  TensorElement type = TensorElement::F16;
  uint64_t globalAddress = 0;
  std::vector<uint64_t> dims;           ///< innermost first, 1 to 5 of them
  std::vector<uint64_t> strides;        ///< bytes, of dimensions 1..rank-1
  std::vector<uint32_t> box;            ///< elements
  std::vector<uint32_t> elementStrides; ///< empty: all one
  unsigned interleave = 0;              ///< 0 none (16- and 32-byte interleave are refused)
  unsigned swizzle = 0;                 ///< 0 none, 1 32 B, 2 64 B, 3 128 B
  bool oobNan = false;                  ///< fill out-of-bounds elements with NaN instead of zero
};

/// Checks the driver's rules and makes the simulator's own 128-byte record, to be placed where the
/// kernel expects a CUtensorMap. (It is not the driver's encoding, which is undocumented.)
llvm::Expected<std::array<uint8_t, 128>> encodeTensorMap(const TensorMapDesc &desc);

struct Launch {
  std::string kernel;
  Dim3 grid, block;
  Dim3 cluster; ///< ignored when the kernel says .reqnctapercluster
  uint32_t dynamicSharedBytes = 0;
  std::vector<uint8_t> params; ///< PtxKernel::paramBytes bytes, at ParamInfo::offset
  GlobalMemory *memory = nullptr;
  /// Registers per thread at entry, as ptxas reports them. 0: the most that the block size and the
  /// number of blocks of a multiprocessor allow, rounded down to a multiple of 8, and no more than
  /// the largest setmaxnreg.inc asks for, which is what ptxas chooses for a kernel that uses
  /// setmaxnreg.
  uint32_t registersPerThread = 0;
};

//===----------------------------------------------------------------------===//
// Options and report
//===----------------------------------------------------------------------===//

/// Names an array of `count` objects of `stride` bytes from `offset` in the CTA's dynamic shared
/// memory (or in the static part with `isStatic`), so that reports say K.full[1], and an access
/// past its end is found.
struct SharedName {
  uint32_t offset = 0;
  uint32_t stride = 8;
  uint32_t count = 1;
  std::string name;
  bool isStatic = false;
  /// FILE:LINE:COLUMN of the source, from .loc: instructions of a place that some arrays have
  /// access no others.
  std::vector<std::string> places;
};

/// Names the warps [firstWarp, firstWarp + warps) of every CTA.
struct RoleName {
  uint32_t firstWarp = 0;
  uint32_t warps = 4;
  std::string name;
};

/// Names a hardware barrier (bar.sync id).
struct BarrierName {
  uint32_t id = 0;
  std::string name;
};

struct Options {
  uint64_t seed = 0;
  unsigned threads = 1;                      ///< clusters run in parallel on this many host threads
  unsigned maxDiagnostics = 20;              ///< distinct diagnostics kept; more are counted
  uint64_t maxWarpInstructions = 1ull << 36; ///< of the whole launch; beyond: a Livelock diagnostic
  uint64_t stallInstructions =
      1ull << 24; ///< of one cluster without any store, arrival or async completion
  /// CTAs resident at once: later ones start when earlier ones end. 0: what the resources of 132
  /// multiprocessors allow.
  unsigned residentCtas = 0;
  bool checkRaces = true;
  bool checkRegisters = true; ///< uninitialised and in-flight registers
  /// The seed, unless it is 0, moves each approximation within the error that the ISA documents.
  bool moveApproximations = false;
  /// Bulk reductions of one element are to have the same order in each run: those that nothing
  /// orders are races, and the proxy fence between blocks is asked for.
  bool orderedSums = false;
  std::vector<SharedName> sharedNames;
  std::vector<RoleName> roleNames;
  std::vector<BarrierName> barrierNames;
};

enum class DiagKind : uint8_t {
  Deadlock,          ///< nothing can run and no asynchronous operation is under way
  Livelock,          ///< instruction limit reached without progress
  Race,              ///< conflicting accesses that nothing orders
  MissingProxyFence, ///< ordered, but without fence.proxy.async between the generic and the async
                     ///< proxy
  OvertakenRead,     ///< a bulk copy comes before a read that is under way still
  SlotOverwritten,  ///< shared memory written while an async operation (wgmma, bulk copy) may still
                    ///< read it
  StaleData,        ///< shared memory read that an async copy in flight writes
  RegisterInFlight, ///< accumulator or A register of a wgmma that has not been waited for
  MissingWgmmaFence,     ///< register changed and used by wgmma without wgmma.fence
  ParityAliasing,        ///< a phase completed again before a waiter could see it
  OverArrival,           ///< more arrivals than the mbarrier's phase has
  TransactionUnderflow,  ///< more bytes arrive than were expected, or in another phase
  UninitialisedBarrier,  ///< mbarrier used before (or unordered with) its init
  BarrierMisuse,         ///< mbarrier re-initialised or overwritten in use, bad count, bad state
  NamedBarrierCount,     ///< one barrier id used with different counts or by too many threads
  NamedBarrierShared,    ///< one barrier id used by two groups of warps that nothing orders
  OutOfBounds,           ///< address outside of every buffer, the CTA's shared memory, ...
  Misaligned,            ///< address not a multiple of what the instruction needs
  UninitialisedShared,   ///< shared memory read before it was written
  UninitialisedRegister, ///< register used before it was written
  RegisterPool,          ///< setmaxnreg cannot be satisfied
  DivergentAligned,      ///< .aligned instruction without all threads of the warp (or warpgroup)
  WarpgroupMismatch,     ///< warps of a warpgroup execute different wgmma instructions
  BadDescriptor,         ///< wgmma descriptor or tensor map that the instruction cannot use
  PendingAtExit,         ///< a CTA exits with operations under way or a phase begun
  PeerExited,            ///< access to the shared memory of a CTA that has exited
  InvalidOperation,      ///< anything else the PTX ISA forbids (trap, bad operand value, ...)
};
llvm::StringRef diagKindName(DiagKind kind); ///< "deadlock", "race", ... as printed

struct SourceLoc {
  std::string file;
  unsigned line = 0, column = 0;
  explicit operator bool() const { return line != 0; }
};

struct Diagnostic {
  DiagKind kind = DiagKind::InvalidOperation;
  std::string message;
  unsigned ptxLine = 0;
  SourceLoc source;       ///< from .loc; line 0 when unknown
  Dim3 cta{0, 0, 0};      ///< %ctaid
  int warp = -1;          ///< in the CTA; -1 when no warp is concerned
  int lane = -1;          ///< -1: the whole warp
  std::string role;       ///< empty when unnamed
  int64_t iteration = -1; ///< how often the warp had executed this instruction before; -1 unknown
  std::vector<std::string> notes;
  uint64_t repeats = 0; ///< further occurrences of the same kind at the same instruction
};

struct Report {
  std::vector<Diagnostic> diagnostics;
  uint64_t suppressed = 0; ///< diagnostics beyond Options::maxDiagnostics
  bool completed = false;  ///< every CTA ran to its end
  uint64_t seed = 0;
  uint64_t warpInstructions = 0;
  uint64_t wgmmas = 0; ///< warpgroup-wide operations
  uint64_t tmaOperations = 0;
  uint64_t ctas = 0;
  double seconds = 0;
  std::map<std::string, uint64_t>
      opcodes; ///< warp instructions per opcode (first name and, for some, the second)
  bool ok() const { return completed && diagnostics.empty() && suppressed == 0; }
  /// Prints every diagnostic, the way compilers do: LOCATION: error: [kind] message, then notes.
  void print(llvm::raw_ostream &os, llvm::StringRef ptxFile = "") const;
};

/// Runs one launch. An Error means that the launch cannot be simulated (unknown kernel, unmodelled
/// instruction, wrong parameter size); what the program does wrong is in the report.
llvm::Expected<Report> run(const Module &module, const Launch &launch, const Options &options);

} // namespace tessera::sim

#endif // TESSERA_SIMULATOR_SIMULATOR_H
