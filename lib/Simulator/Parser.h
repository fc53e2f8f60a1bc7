//===- Parser.h - PTX text to Ast.h -----------------------------*- C++ -*-===//
#ifndef TESSERA_SIMULATOR_PARSER_H
#define TESSERA_SIMULATOR_PARSER_H

#include "lib/Simulator/Ast.h"
#include "lib/Simulator/Lexer.h"
#include <optional>

namespace tessera::sim::detail {

/// Of blocks and of operands in each other.
constexpr unsigned kMaxDepth = 64;

struct TypeInfo {
  uint32_t bytes;
  RegClass cls;
};

/// The size and register class of a type without its dot.
std::optional<TypeInfo> typeInfo(llvm::StringRef type);
/// The state space that a directive names.
Space spaceOf(llvm::StringRef directive);

class Parser {
public:
  explicit Parser(ParsedModule &module) : m(module), lexer(module.text) { advance(); }

  llvm::Error module() {
    while (tok.kind != Token::End)
      if (llvm::Error e = topLevel())
        return e;
    return llvm::Error::success();
  }

private:
  struct RegRange {
    int first;
    unsigned count;
  };
  struct Names {
    llvm::StringMap<int> regs;
    llvm::StringMap<RegRange> ranges;
  };

  ParsedModule &m;
  Lexer lexer;
  Token tok;
  unsigned currentLoc = 0;
  Function *f = nullptr;
  std::vector<Names> names;     ///< innermost last
  std::vector<unsigned> scopes; ///< indices into f->scopes

  void advance() { tok = lexer.next(); }
  llvm::Error fail(const llvm::Twine &message) { return failAt(tok.line, message); }
  llvm::Error failAt(unsigned line, const llvm::Twine &message) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "%s:%u: %s", m.fileName.c_str(),
                                   line, message.str().c_str());
  }
  llvm::Error expected(llvm::StringRef what) {
    return fail("expected " + what + ", found '" +
                (tok.kind == Token::End ? llvm::StringRef("end of file") : tok.text) + "'");
  }
  bool accept(char c) {
    if (!tok.is(c))
      return false;
    advance();
    return true;
  }
  llvm::Error expect(char c) {
    if (accept(c))
      return llvm::Error::success();
    return expected(std::string("'") + c + "'");
  }
  bool acceptDirective(llvm::StringRef d) {
    if (!tok.isDirective(d))
      return false;
    advance();
    return true;
  }
  llvm::Error integer(uint64_t &value) {
    bool minus = accept('-');
    if (tok.kind != Token::Int)
      return expected("an integer");
    value = minus ? -tok.bits : tok.bits;
    advance();
    return llvm::Error::success();
  }
  /// An integer from `least` to `most`; `what` names it.
  template <class T>
  llvm::Error integerIn(T &value, uint64_t least, uint64_t most, llvm::StringRef what) {
    llvm::StringRef text = tok.text;
    bool minus = tok.is('-');
    uint64_t v;
    if (llvm::Error e = integer(v))
      return e;
    if (minus || v < least || v > most)
      return fail(what + " is " + (minus ? "negative" : text) + ", not from " + llvm::Twine(least) +
                  " to " + llvm::Twine(most));
    value = T(v);
    return llvm::Error::success();
  }
  llvm::Error alignment(uint32_t &align);
  /// Multiplies `size` by the extents in brackets that follow a name; `unsized` when one is empty.
  llvm::Error extents(uint64_t &size, bool &unsized, llvm::StringRef name);
  /// Holds a variable's size against its space, which is in use up to `end`; moves `end` behind it.
  llvm::Error checkSize(const Variable &v, uint64_t &end);

  void skipBraces() { // at '{'
    int depth = 0;
    do {
      depth += tok.is('{');
      depth -= tok.is('}');
      advance();
    } while (depth && tok.kind != Token::End);
  }
  void skipStatement() {
    while (tok.kind != Token::End && !tok.is(';'))
      advance();
    accept(';');
  }

  llvm::Error topLevel();
  llvm::Error file();
  llvm::Error loc();
  llvm::Error function(bool isEntry);
  llvm::Error parameters(bool isEntry);
  llvm::Error directives(bool &isPrototype);
  llvm::Error dimensions(Dim3 &d);
  llvm::Error body();
  llvm::Error statement();
  llvm::Error registers();
  llvm::Error variable(Space space, bool isExtern, std::vector<Variable> &list);
  llvm::Error initialiser(Variable &v, uint32_t elementSize, bool isFloat);
  llvm::Error elements(Operand &o, unsigned depth);
  llvm::Error name(Operand &o);
  llvm::Error operand(Operand &o, unsigned depth = 0);
  llvm::Error address(Operand &o, unsigned depth);
  llvm::Error operandList(Statement &s);
  int lookup(llvm::StringRef name) const;
  int addRegister(RegClass cls, llvm::StringRef name, unsigned number) {
    f->regs.push_back(cls);
    f->regNames.push_back(name);
    f->regNumbers.push_back(number);
    return f->regs.size() - 1;
  }
};

} // namespace tessera::sim::detail

#endif // TESSERA_SIMULATOR_PARSER_H
