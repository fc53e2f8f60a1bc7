//===- Program.h - A kernel decoded for execution ---------------*- C++ -*-===//
#ifndef TESSERA_SIMULATOR_PROGRAM_H
#define TESSERA_SIMULATOR_PROGRAM_H

#include "lib/Simulator/Ast.h"

namespace tessera::sim::detail {

struct Exec;
struct Inst;

/// What the executor does after an instruction.
enum class Step : uint8_t {
  Next,  ///< go on with the next instruction
  Jump,  ///< the handler set the program counter
  Block, ///< the split waits; the same instruction is completed when its wait is over
  Stop,  ///< the split was replaced (divergence, exit, reconvergence)
};
using Handler = Step (*)(Exec &, const Inst &);

/// A resolved operand: a place in the warp's register file or in the constant pool.
struct Op {
  static constexpr uint32_t Constant = 1u << 31;
  uint32_t offset = Constant; ///< in 32-bit words
  int32_t reg = -1;           ///< register number, -1 for constants and sinks
  RegClass cls = RegClass::R32;
  bool negated = false; ///< of a predicate
  bool sink = false;
};

enum InstFlags : uint16_t {
  FlagAligned = 1, ///< all threads of the warp must execute it together
  FlagCopies = 2,  ///< moves bits: undefined bits stay undefined and are no error
  FlagRename =
      16, ///< a plain mov: ptxas gives both names one register, also while a wgmma is in flight
  FlagOwnCheck = 4,       ///< the handler checks registers itself
  FlagCounted = 8,        ///< executions are counted per warp, for reports
  FlagPacksHalves = 32,   ///< a mov of two registers of 16 bits into one of 32
  FlagUnpacksHalves = 64, ///< and back
  FlagReadsLow = 128,     ///< the result depends on the low half of its 32-bit operand alone
  FlagReadsHigh = 256,    ///< or on the high half
  FlagArithmetic = 512,   ///< has no effect but its results
  FlagLeaves = 1 << 14,   ///< ret, exit, trap
  FlagTable = 1 << 15,    ///< brx: `aux` is its branch table
};

/// A part of a word that holds several, such as Inst::select: `width` bits from bit `first` on.
template <typename T, unsigned first, unsigned width = 1>
struct BitField {
  static_assert(first + width <= 32, "beyond the word");
  static constexpr T get(uint32_t word) {
    return T(word >> first & (uint32_t(-1) >> (32 - width)));
  }
  static constexpr uint32_t make(T value) { return uint32_t(value) << first; }
};

struct Inst {
  Handler fn = nullptr;
  Op guard; ///< reg < 0: none
  uint32_t opBegin = 0;
  uint16_t opCount = 0;
  uint16_t dstCount = 0; ///< the first operands are destinations
  uint16_t flags = 0;
  uint16_t opcode = 0;     ///< index into Program::opcodeNames
  uint32_t select = 0;     ///< handler's choice
  uint32_t aux = 0;        ///< handler's second choice, or the index of its side table
  int64_t imm = 0;         ///< address offset or immediate
  int32_t target = -1;     ///< branch target
  int32_t reconverge = -1; ///< immediate post-dominator of a branch; -1: the exit
  uint32_t counter = 0;
  unsigned line = 0, loc = 0;
};

/// Side information of a wgmma (see ExecWgmma.cpp).
struct WgmmaInfo {
  uint16_t n = 0, k = 0;
  uint8_t typeA = 0, typeB = 0; ///< WgmmaType
  bool accF16 = false, aInRegs = false, transA = false, transB = false;
  int8_t scaleA = 1, scaleB = 1;
  uint16_t accRegs = 0;
  uint16_t aRegs = 0;
};

enum class SpecialReg : uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  LaneId,
  WarpId,
  NwarpId,
  SmId,
  NsmId,
  GridId,
  LanemaskEq,
  LanemaskLt,
  LanemaskLe,
  LanemaskGt,
  LanemaskGe,
  ClusterCtaidX,
  ClusterCtaidY,
  ClusterCtaidZ,
  ClusterNctaidX,
  ClusterNctaidY,
  ClusterNctaidZ,
  ClusterCtarank,
  ClusterNctarank,
  ClusteridX,
  ClusteridY,
  ClusteridZ,
  NclusteridX,
  NclusteridY,
  NclusteridZ,
  IsExplicitCluster,
  DynamicSmemSize,
  TotalSmemSize,
  AggrSmemSize,
  SharedAddress, ///< of the variable at offset `value`
  Clock,
  Clock64,
  GlobalTimer,
  GlobalTimerLo,
  GlobalTimerHi,
  Count
};

/// A register that the warp fills when it starts.
struct HiddenReg {
  SpecialReg what;
  uint32_t value = 0;
  int reg = -1;
};

struct Program {
  const ParsedModule *module = nullptr;
  const Function *function = nullptr;
  std::vector<Inst> insts;
  std::vector<Op> ops;
  std::vector<WgmmaInfo> wgmmas;
  std::vector<std::vector<int32_t>> branchTables;
  std::vector<std::string> opcodeNames;
  std::vector<uint32_t> constants; ///< each value repeated for 32 lanes
  std::vector<uint32_t> regOffset; ///< in words
  std::vector<RegClass> regClass;
  uint32_t regWords = 0;
  uint32_t counters = 0;
  uint32_t largestIncrease = 0; ///< of all setmaxnreg.inc, in registers per thread
  std::vector<HiddenReg> hidden;
  uint32_t staticShared = 0;  ///< bytes before the dynamic part
  uint32_t dynamicOffset = 0; ///< from the CTA's shared base
  uint32_t localBytes = 0;
  llvm::StringMap<uint32_t> paramOffset, localOffset, sharedOffset;
  llvm::StringMap<uint64_t> globalAddress;

  std::string regName(int reg) const;
  /// Where an instruction is in the source, from .loc; line 0 when unknown.
  SourceLoc sourceOf(const Inst &inst) const;
  /// The same as FILE:LINE:COLUMN; empty when unknown.
  std::string placeOf(const Inst &inst) const;
};

/// Places module variables in `memory` and decodes the kernel.
llvm::Expected<std::unique_ptr<Program>>
buildProgram(const ParsedModule &module, const Function &function, GlobalMemory &memory);

/// Fills Inst::reconverge of every branch.
void computeReconvergence(Program &program);

/// Lays out shared variables; fills offsets when `program` is given.
llvm::Error layoutShared(const ParsedModule &module, const Function &function, PtxKernel &info,
                         Program *program);

/// Where shared memory begins in the CTA's shared window: the first 1 KiB belongs to the system on
/// sm_90.
constexpr uint32_t kSharedBase = 1024;
constexpr uint64_t kSharedWindow = 0x00007d0000000000ull;
constexpr uint64_t kLocalWindow = 0x00007e0000000000ull;
constexpr uint64_t kParamWindow = 0x00007c0000000000ull;
constexpr uint64_t kWindowBytes = 1ull << 32;
constexpr uint32_t kMultiprocessors = 132; ///< of an H100 or H200 SXM
constexpr unsigned kRankShift = 24;        ///< the CTA rank in a shared::cluster address

} // namespace tessera::sim::detail

#endif // TESSERA_SIMULATOR_PROGRAM_H
