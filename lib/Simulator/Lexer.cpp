//===- Lexer.cpp - PTX tokens (PTX ISA section 4) -------------------------===//
#include "lib/Simulator/Lexer.h"
#include "llvm/ADT/StringExtras.h"
#include <cstdlib>
#include <cstring>

using namespace tessera::sim::detail;
using llvm::StringRef;

static bool isIdentStart(char c) { return llvm::isAlpha(c) || c == '_' || c == '$' || c == '%'; }
static bool isIdentChar(char c) { return llvm::isAlnum(c) || c == '_' || c == '$'; }

void Lexer::skipBlanks() {
  while (cur != end) {
    if (*cur == '\n') {
      ++line;
      ++cur;
    } else if (llvm::isSpace(*cur)) {
      ++cur;
    } else if (*cur == '/' && cur + 1 != end && cur[1] == '/') {
      while (cur != end && *cur != '\n')
        ++cur;
    } else if (*cur == '/' && cur + 1 != end && cur[1] == '*') {
      cur += 2;
      while (cur != end && !(*cur == '*' && cur + 1 != end && cur[1] == '/')) {
        line += *cur == '\n';
        ++cur;
      }
      cur = cur == end ? end : cur + 2;
    } else {
      return;
    }
  }
}

Token Lexer::number() {
  Token t;
  t.line = line;
  const char *start = cur;
  auto finish = [&](Token::Kind kind) {
    t.kind = kind;
    t.text = StringRef(start, cur - start);
    return t;
  };
  if (*cur == '0' && cur + 1 != end && strchr("fFdD", cur[1])) {
    bool isDouble = cur[1] == 'd' || cur[1] == 'D';
    cur += 2;
    const char *digits = cur;
    while (cur != end && llvm::isHexDigit(*cur))
      ++cur;
    StringRef hex(digits, cur - digits);
    if (hex.size() != (isDouble ? 16 : 8) || hex.getAsInteger(16, t.bits))
      return finish(Token::Bad);
    return finish(isDouble ? Token::Float64 : Token::Float32);
  }
  unsigned radix = 10;
  if (*cur == '0' && cur + 1 != end && (cur[1] == 'x' || cur[1] == 'X')) {
    radix = 16;
    cur += 2;
  } else if (*cur == '0' && cur + 1 != end && (cur[1] == 'b' || cur[1] == 'B')) {
    radix = 2;
    cur += 2;
  } else if (*cur == '0' && cur + 1 != end && llvm::isDigit(cur[1])) {
    radix = 8;
  }
  const char *digits = cur;
  while (cur != end && (radix == 16 ? llvm::isHexDigit(*cur) : llvm::isDigit(*cur)))
    ++cur;
  bool exponent = cur != end && (*cur == 'e' || *cur == 'E');
  if (radix <= 10 && cur != end && (*cur == '.' || exponent)) {
    // A decimal floating-point constant is a double (section 4.5.2).
    while (cur != end && (llvm::isDigit(*cur) || *cur == '.' || *cur == 'e' || *cur == 'E' ||
                          ((*cur == '-' || *cur == '+') && (cur[-1] == 'e' || cur[-1] == 'E'))))
      ++cur;
    double value = strtod(std::string(start, cur).c_str(), nullptr);
    memcpy(&t.bits, &value, 8);
    return finish(Token::Float64);
  }
  StringRef body(digits, cur - digits);
  if (body.getAsInteger(radix, t.bits))
    return finish(Token::Bad);
  if (cur != end && *cur == 'U')
    ++cur;
  return finish(Token::Int);
}

Token Lexer::next() {
  skipBlanks();
  Token t;
  t.line = line;
  if (cur == end)
    return t;
  const char *start = cur;
  if (llvm::isDigit(*cur))
    return number();
  // `.name` is a directive or a type; `a.b::c` after a name belongs to it.
  bool directive = *cur == '.' && cur + 1 != end && isIdentChar(cur[1]);
  if (directive || isIdentStart(*cur)) {
    ++cur;
    while (cur != end) {
      if (isIdentChar(*cur)) {
        ++cur;
      } else if (*cur == '.' && !directive && cur + 1 != end && isIdentChar(cur[1])) {
        cur += 2;
      } else if (*cur == ':' && cur + 2 < end && cur[1] == ':' && isIdentChar(cur[2])) {
        cur += 3;
      } else {
        break;
      }
    }
    t.kind = directive ? Token::Directive : Token::Ident;
    t.text = StringRef(start, cur - start);
    return t;
  }
  if (*cur == '"') {
    ++cur;
    const char *body = cur;
    while (cur != end && *cur != '"') {
      line += *cur == '\n';
      ++cur;
    }
    t.kind = Token::String;
    t.text = StringRef(body, cur - body);
    if (cur != end)
      ++cur;
    return t;
  }
  t.kind = Token::Punct;
  t.bits = static_cast<unsigned char>(*cur);
  t.text = StringRef(cur, 1);
  ++cur;
  return t;
}
