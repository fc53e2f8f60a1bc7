//===- Decoder.h - Statement to Inst ----------------------------*- C++ -*-===//
//
// Each family of instructions has a file Exec*.cpp with its handlers and one decode function here.
// A decode function consumes the opcode's modifiers one by one; whatever nobody consumed is
// refused, so that no modifier is ever ignored by accident.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_SIMULATOR_DECODER_H
#define TESSERA_SIMULATOR_DECODER_H

#include "lib/Simulator/Program.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace tessera::sim::detail {

/// Scalar types of instructions.
enum class Ty : uint8_t {
  None,
  Pred,
  B8,
  B16,
  B32,
  B64,
  B128,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  F16x2,
  BF16,
  BF16x2,
  F32,
  F64,
  E4M3x2,
  E5M2x2,
  TF32,
  U16x2,
  S16x2
};
unsigned tyBits(Ty t);
bool tySigned(Ty t);
Ty parseTy(llvm::StringRef s);

class Decoder {
public:
  Decoder(Program &program) : p(program) {}

  llvm::Error decode(const Statement &s);
  /// Labels become instruction indices once every statement has been decoded.
  llvm::Error finish();

  // For the decode functions.
  Program &p;
  const Statement *s = nullptr;
  Inst inst;
  llvm::SmallVector<Op, 8> ops;
  llvm::SmallVector<llvm::StringRef, 12>
      mods; ///< modifiers not yet consumed; mods[0] follows the opcode

  bool has(llvm::StringRef m) const { return llvm::is_contained(mods, m); }
  bool take(llvm::StringRef m); ///< consumes the first such modifier
  Ty takeType();                ///< consumes the first type among the modifiers
  bool takePrefix(llvm::StringRef prefix, llvm::StringRef &whole);
  unsigned takeNumber(llvm::StringRef prefix); ///< .x4 -> 4, 0 when absent

  /// Sets the message of a refusal and returns false.
  bool refuse(const llvm::Twine &why);
  bool count(size_t n); ///< refuses unless there are n operands
  bool count(size_t low, size_t high);

  /// Appends an operand. `ty` gives the meaning of a literal; the register must have the same width
  /// (wider is allowed with `wider`).
  bool dst(const Operand &o, Ty ty, bool wider = false);
  bool src(const Operand &o, Ty ty, bool wider = false);
  bool dstPred(const Operand &o);
  bool srcPred(const Operand &o);
  /// Appends the base register of an address (64 bits wide; 32 for shared unless a 64-bit register
  /// is given) and sets inst.imm to its offset.
  bool address(const Operand &o, Space space, bool setImm = true);
  /// Appends an address as two operands, its base register and its offset: for instructions that
  /// have several.
  bool addressPair(const Operand &o, Space space);
  bool vectorOf(const Operand &o, unsigned n, Ty ty, bool isDst, bool wider = false);
  Op constant(uint64_t bits, RegClass cls);
  Op hidden(SpecialReg r, uint32_t value, RegClass cls);
  int newReg(RegClass cls);
  bool symbolValue(const Operand &o, Op &out, RegClass cls);
  /// An integer literal operand (after constant folding of nothing: PTX requires an immediate
  /// there).
  bool immediate(const Operand &o, int64_t &value);
  bool labelTarget(const Operand &o);
  /// Entry `entry` of the branch table that was added last.
  void tableTarget(llvm::StringRef label, unsigned entry);

  std::string why;

private:
  bool reg(const Operand &o, Ty ty, bool wider, Op &out);
  llvm::DenseMap<uint64_t, uint32_t> pool32, pool64, pool128, poolPred;
  llvm::StringMap<uint16_t> opcodeIds;
  struct Fix {
    unsigned inst;
    llvm::StringRef label;
    unsigned scope, line;
    int table = -1, entry = -1;
  };
  std::vector<Fix> fixes;
};

/// Each returns false with `why` empty when the opcode is not of its family.
using DecodeFn = bool (*)(Decoder &, llvm::StringRef opcode);
bool decodeInteger(Decoder &, llvm::StringRef);
bool decodeBits(Decoder &, llvm::StringRef);
bool decodeFloat(Decoder &, llvm::StringRef);
bool decodeHalf(Decoder &, llvm::StringRef);
bool decodeConvert(Decoder &, llvm::StringRef);
bool decodeSelect(Decoder &, llvm::StringRef);
bool decodeMove(Decoder &, llvm::StringRef);
bool decodeMemory(Decoder &, llvm::StringRef);
bool decodeAtomic(Decoder &, llvm::StringRef);
bool decodeControl(Decoder &, llvm::StringRef);
bool decodeBarrier(Decoder &, llvm::StringRef);
bool decodeWarp(Decoder &, llvm::StringRef);
bool decodeMbarrier(Decoder &, llvm::StringRef);
bool decodeFence(Decoder &, llvm::StringRef);
bool decodeBulk(Decoder &, llvm::StringRef);
bool decodeStoreAsync(Decoder &);
bool decodeCpAsync(Decoder &, llvm::StringRef);
/// The end of a group of copies or the wait for groups; nothing when the instruction is neither.
std::optional<bool> decodeGroup(Decoder &, Handler commit, Handler wait);
bool decodeMatrix(Decoder &, llvm::StringRef);
bool decodeWgmma(Decoder &, llvm::StringRef);

} // namespace tessera::sim::detail

#endif // TESSERA_SIMULATOR_DECODER_H
