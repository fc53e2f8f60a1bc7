//===- ParserVariables.cpp - Registers and variables (PTX ISA section 5) --===//
#include "lib/Simulator/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

using namespace tessera::sim;
using namespace tessera::sim::detail;
using llvm::Error;
using llvm::StringRef;

Error Parser::registers() { // after .reg
  if (tok.isDirective(".v2") || tok.isDirective(".v4"))
    return fail("vector registers are not modelled");
  std::optional<TypeInfo> t =
      tok.kind == Token::Directive ? typeInfo(tok.text.drop_front()) : std::nullopt;
  if (!t)
    return fail("register type '" + tok.text + "' is not modelled");
  advance();
  do {
    StringRef name = tok.text;
    if (tok.kind != Token::Ident)
      return expected("a register name");
    advance();
    if (accept('<')) {
      unsigned count;
      if (Error e = integerIn(count, 0, kMaxRegisters - f->regs.size(), "the number of registers"))
        return e;
      if (Error e = expect('>'))
        return e;
      int first = f->regs.size();
      for (unsigned i = 0; i < count; ++i)
        addRegister(t->cls, name, i);
      names.back().ranges[name] = {first, count};
    } else {
      if (f->regs.size() >= kMaxRegisters)
        return fail("a kernel has at most " + llvm::Twine(kMaxRegisters) + " registers");
      names.back().regs[name] = addRegister(t->cls, name, ~0u);
    }
  } while (accept(','));
  return expect(';');
}

int Parser::lookup(StringRef name) const {
  size_t digits = name.size();
  while (digits && llvm::isDigit(name[digits - 1]))
    --digits;
  StringRef prefix = name.take_front(digits), number = name.drop_front(digits);
  unsigned index = 0;
  // `%r01` is not a member of `%r<10>`.
  bool indexed = !number.empty() && (number.size() == 1 || number[0] != '0') &&
                 !number.getAsInteger(10, index);
  for (auto it = names.rbegin(); it != names.rend(); ++it) {
    auto r = it->regs.find(name);
    if (r != it->regs.end())
      return r->second;
    if (indexed) {
      auto g = it->ranges.find(prefix);
      if (g != it->ranges.end() && index < g->second.count)
        return g->second.first + index;
    }
  }
  return -1;
}

Error Parser::initialiser(Variable &v, uint32_t elementSize, bool isFloat) {
  int depth = 0;
  auto append = [&](uint64_t bits) {
    for (uint32_t i = 0; i < elementSize; ++i)
      v.init.push_back(i < 8 ? bits >> (8 * i) : 0);
  };
  do {
    if (accept('{')) {
      ++depth;
      continue;
    }
    if (accept('}')) {
      --depth;
      continue;
    }
    if (accept(','))
      continue;
    bool minus = accept('-');
    bool generic = false;
    if (tok.kind == Token::Ident && tok.text == "generic") {
      generic = true;
      advance();
      if (Error e = expect('('))
        return e;
    }
    if (tok.kind == Token::Ident) {
      Variable::Fixup fix{v.init.size(), tok.text, 0, generic};
      advance();
      if (accept('+')) {
        uint64_t addend = 0;
        if (Error e = integer(addend))
          return e;
        fix.addend = addend;
      }
      v.fixups.push_back(fix);
      append(0);
      if (generic)
        if (Error e = expect(')'))
          return e;
    } else if (tok.kind == Token::Int || tok.kind == Token::Float32 || tok.kind == Token::Float64) {
      uint64_t bits = tok.bits;
      if (minus && tok.kind == Token::Int)
        bits = -bits;
      else if (minus)
        bits ^= tok.kind == Token::Float32 ? 1ull << 31 : 1ull << 63;
      if (isFloat && elementSize == 4 && tok.kind == Token::Float64) {
        double d;
        memcpy(&d, &bits, 8);
        float s = d;
        bits = 0;
        memcpy(&bits, &s, 4);
      }
      append(bits);
      advance();
    } else {
      return expected("an initialiser");
    }
  } while (depth > 0 && tok.kind != Token::End);
  return Error::success();
}

Error Parser::alignment(uint32_t &align) {
  if (Error e = integerIn(align, 1, kMaxAlign, "the alignment"))
    return e;
  if (!llvm::isPowerOf2_32(align))
    return fail("the alignment is not a power of two");
  return Error::success();
}

Error Parser::extents(uint64_t &size, bool &unsized, StringRef name) {
  while (accept('[')) {
    uint64_t n = 0;
    if (tok.is(']'))
      unsized = true;
    else if (Error e = integerIn(n, 0, INT64_MAX, "the extent"))
      return e;
    bool overflow;
    size = llvm::SaturatingMultiply(size, n, &overflow);
    if (overflow)
      return fail("'" + name + "' has more bytes than 64 bits can say");
    if (Error e = expect(']'))
      return e;
  }
  return Error::success();
}

Error Parser::checkSize(const Variable &v, uint64_t &end) {
  uint64_t most = v.space == Space::Param    ? kMaxParamBytes
                  : v.space == Space::Shared ? kMaxSharedBytes
                  : v.space == Space::Local  ? kMaxLocalBytes
                  : v.space == Space::Const  ? kMaxConstBytes
                                             : kMaxMemoryBytes;
  end = llvm::alignTo(end, v.align);
  if (!isInside(end, v.size, most))
    return fail("'" + v.name + "' has " + llvm::Twine(v.size) + " bytes from offset " +
                llvm::Twine(end) + " on; the space has " + llvm::Twine(most));
  end += v.size;
  return Error::success();
}

Error Parser::variable(Space space, bool isExtern, std::vector<Variable> &list) { // after the space
  uint32_t bytes = 0, vector = 1, align = 0;
  bool isFloat = false;
  while (tok.kind == Token::Directive) {
    if (acceptDirective(".align")) {
      if (Error e = alignment(align))
        return e;
      continue;
    }
    if (acceptDirective(".attribute")) {
      while (tok.kind != Token::End && !accept(')'))
        advance();
      continue;
    }
    StringRef t = tok.text.drop_front();
    if (t == "v2" || t == "v4") {
      vector = t == "v2" ? 2 : 4;
    } else if (std::optional<TypeInfo> i = typeInfo(t)) {
      bytes = i->bytes;
      isFloat = t.starts_with("f");
    } else {
      return fail("type '" + tok.text + "' is not modelled");
    }
    advance();
  }
  if (!bytes)
    return expected("a type");
  do {
    Variable v;
    v.space = space;
    v.isExtern = isExtern;
    v.align = align ? align : bytes * vector;
    v.name = tok.text;
    if (tok.kind != Token::Ident)
      return expected("a variable name");
    advance();
    bool unsized = false;
    v.size = bytes * vector;
    if (Error e = extents(v.size, unsized, v.name))
      return e;
    if (accept('=')) {
      if (Error e = initialiser(v, bytes, isFloat))
        return e;
      if (unsized)
        v.size = v.init.size();
      if (v.init.size() > v.size)
        return fail("initialiser is larger than '" + v.name + "'");
    }
    uint64_t end = 0;
    if (Error e = checkSize(v, end))
      return e;
    list.push_back(std::move(v));
  } while (accept(','));
  return expect(';');
}
