//===- Ast.h - PTX as parsed ------------------------------------*- C++ -*-===//
//
// What the parser makes of PTX text: functions with register tables, variables and statements.
// Names of registers are resolved here (blocks nest, inline assembly declares its own); opcodes are
// not looked at.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_SIMULATOR_AST_H
#define TESSERA_SIMULATOR_AST_H

#include "lib/Simulator/Simulator.h"
#include "llvm/ADT/StringMap.h"
#include <deque>

namespace tessera::sim::detail {

/// Storage class of a register: a predicate, or the number of bits.
enum class RegClass : uint8_t { Pred, R8, R16, R32, R64, R128 };

struct Operand {
  enum Kind : uint8_t {
    Reg,     ///< `reg`
    Special, ///< `name`: a special register such as %tid.x
    Int,     ///< `bits`
    Float32, ///< `bits`: an IEEE single
    Float64, ///< `bits`: an IEEE double
    Symbol,  ///< `name` + `offset`: a variable, label or function
    Address, ///< [elems[0] + offset, elems[1], ...]
    Vector,  ///< {elems...}
    Paren,   ///< (elems...): arguments of call
    Sink,    ///< _
  };
  Kind kind = Int;
  bool negated = false; ///< !p
  int reg = -1;
  llvm::StringRef name;
  uint64_t bits = 0;
  int64_t offset = 0;
  std::vector<Operand> elems;
};

struct Statement {
  llvm::StringRef opcode;
  int guard = -1; ///< register
  bool guardNegated = false;
  unsigned line = 0;
  unsigned loc = 0;   ///< index into ParsedModule::locs; 0: none
  unsigned scope = 0; ///< for labels
  /// Destination and sources in order; a `d|p` pair is two consecutive operands with pairedFirst
  /// set.
  std::vector<Operand> operands;
  bool pairedFirst = false;
};

struct Scope {
  int parent = -1;
  llvm::StringMap<unsigned> labels; ///< statement index
};

enum class Space : uint8_t { None, Generic, Global, Shared, Local, Const, Param };

struct Variable {
  llvm::StringRef name;
  Space space = Space::None;
  uint32_t align = 1;
  uint64_t size = 0; ///< 0: of unknown size (extern .shared)
  bool isExtern = false;
  std::vector<uint8_t> init;
  struct Fixup {
    uint64_t offset;
    llvm::StringRef symbol;
    int64_t addend;
    bool generic;
  };
  std::vector<Fixup> fixups; ///< addresses in the initialiser
};

struct Function {
  llvm::StringRef name;
  bool isEntry = false;
  unsigned line = 0;
  PtxKernel info;
  std::vector<RegClass> regs;
  std::vector<llvm::StringRef> regNames; ///< prefix or name, for messages
  std::vector<unsigned> regNumbers;      ///< number in a range, or ~0u
  std::vector<Scope> scopes;
  std::vector<Statement> body;
  std::vector<Variable> variables; ///< declared in the body, and the parameters (Space::Param)
  std::vector<std::pair<llvm::StringRef, std::vector<llvm::StringRef>>> branchTargets;
};

struct LocEntry {
  unsigned file = 0, line = 0, column = 0;
};

struct ParsedModule {
  std::string fileName;
  std::string text;
  std::string target;
  std::vector<Variable> variables;
  std::deque<Function> functions;
  std::vector<PtxKernel> kernelInfos;
  std::vector<LocEntry> locs{LocEntry()};
  std::map<unsigned, std::string> files;

  const Function *entry(llvm::StringRef name) const {
    for (const Function &f : functions)
      if (f.isEntry && f.name == name)
        return &f;
    return nullptr;
  }
};

llvm::Error parse(ParsedModule &module);

} // namespace tessera::sim::detail

#endif // TESSERA_SIMULATOR_AST_H
