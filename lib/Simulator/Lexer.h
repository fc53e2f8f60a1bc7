//===- Lexer.h - PTX tokens -------------------------------------*- C++ -*-===//
#ifndef TESSERA_SIMULATOR_LEXER_H
#define TESSERA_SIMULATOR_LEXER_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace tessera::sim::detail {

struct Token {
  enum Kind : uint8_t {
    End,
    Ident,     ///< name, register or opcode with its modifiers: mbarrier.init.shared::cta.b64
    Directive, ///< .name
    Int,
    Float32,
    Float64,
    String,
    Punct,
    Bad
  };
  Kind kind = End;
  llvm::StringRef text;
  uint64_t bits = 0; ///< value of a literal; the character of a Punct
  unsigned line = 0;

  bool is(char c) const { return kind == Punct && bits == uint64_t(c); }
  bool isDirective(llvm::StringRef s) const { return kind == Directive && text == s; }
};

class Lexer {
public:
  explicit Lexer(llvm::StringRef text) : cur(text.begin()), end(text.end()) {}
  Token next();

private:
  Token number();
  void skipBlanks();
  const char *cur, *end;
  unsigned line = 1;
};

} // namespace tessera::sim::detail

#endif // TESSERA_SIMULATOR_LEXER_H
