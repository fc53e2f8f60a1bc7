//===- ParserStatements.cpp - Instructions and operands (PTX ISA section 6) ===//
#include "lib/Simulator/Parser.h"
#include "llvm/ADT/StringExtras.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;
using llvm::Error;
using llvm::StringRef;

Error Parser::address(Operand &o, unsigned depth) { // after '['
  o.kind = Operand::Address;
  Operand base;
  if (Error e = operand(base, depth))
    return e;
  if (base.kind == Operand::Symbol)
    std::swap(o.offset, base.offset);
  o.elems.push_back(base);
  while (accept('+') || tok.is('-')) {
    uint64_t v = 0;
    if (Error e = integer(v))
      return e;
    o.offset = int64_t(uint64_t(o.offset) + v);
  }
  while (accept(',')) {
    Operand extra;
    if (Error e = operand(extra, depth))
      return e;
    o.elems.push_back(extra);
  }
  return expect(']');
}

/// The elements of "{a, b}" or "(a, b)".
Error Parser::elements(Operand &o, unsigned depth) {
  char close = tok.is('{') ? '}' : ')';
  o.kind = tok.is('{') ? Operand::Vector : Operand::Paren;
  advance();
  while (!accept(close)) {
    Operand element;
    if (Error e = operand(element, depth + 1))
      return e;
    o.elems.push_back(std::move(element));
    if (!tok.is(close) && !tok.is(','))
      return expected("',' in a list");
    accept(',');
  }
  return Error::success();
}

/// A register, a special register, or a symbol with an offset.
Error Parser::name(Operand &o) {
  if (tok.text == "_") {
    o.kind = Operand::Sink;
  } else if (tok.text == "WARP_SZ") {
    o.kind = Operand::Int;
    o.bits = 32;
  } else if (int r = lookup(tok.text); r >= 0) {
    o.kind = Operand::Reg;
    o.reg = r;
  } else if (tok.text.starts_with("%")) {
    o.kind = Operand::Special;
    o.name = tok.text;
  } else {
    o.kind = Operand::Symbol;
    o.name = tok.text;
    advance();
    uint64_t offset = 0;
    if (accept('+') || tok.is('-'))
      if (Error e = integer(offset))
        return e;
    o.offset = int64_t(offset);
    return Error::success();
  }
  advance();
  return Error::success();
}

Error Parser::operand(Operand &o, unsigned depth) {
  if (depth > kMaxDepth)
    return fail("operands are nested too deeply");
  if (accept('['))
    return address(o, depth + 1);
  if (tok.is('{') || tok.is('('))
    return elements(o, depth);
  if (accept('!'))
    o.negated = true;
  bool minus = accept('-');
  switch (tok.kind) {
  case Token::Int:
    o.kind = Operand::Int;
    o.bits = minus ? -tok.bits : tok.bits;
    break;
  case Token::Float32:
    o.kind = Operand::Float32;
    o.bits = minus ? tok.bits ^ (1ull << 31) : tok.bits;
    break;
  case Token::Float64:
    o.kind = Operand::Float64;
    o.bits = minus ? tok.bits ^ (1ull << 63) : tok.bits;
    break;
  case Token::Ident:
    return minus ? expected("a literal after '-'") : name(o);
  default:
    return expected("an operand");
  }
  advance();
  return Error::success();
}

Error Parser::operandList(Statement &s) {
  if (accept(';'))
    return Error::success();
  for (;;) {
    Operand o;
    if (Error e = operand(o))
      return e;
    s.operands.push_back(std::move(o));
    if (accept('|')) {
      if (s.operands.size() != 1)
        return fail("'|' after the first operand only");
      s.pairedFirst = true;
      continue;
    }
    if (accept(','))
      continue;
    return expect(';');
  }
}

Error Parser::statement() {
  if (tok.kind == Token::Directive) {
    StringRef d = tok.text;
    if (d == ".loc")
      return loc();
    if (d == ".file")
      return file();
    if (d == ".pragma") {
      skipStatement();
      return Error::success();
    }
    if (acceptDirective(".reg"))
      return registers();
    if (Space space = spaceOf(d); space != Space::None) {
      advance();
      return variable(space, false, f->variables);
    }
    return fail("directive '" + d + "' is not modelled");
  }
  Statement s;
  s.line = tok.line;
  s.loc = currentLoc;
  s.scope = scopes.back();
  if (accept('@')) {
    s.guardNegated = accept('!');
    s.guard = lookup(tok.text);
    if (s.guard < 0 || f->regs[s.guard] != RegClass::Pred)
      return fail("'" + tok.text + "' is not a predicate register");
    advance();
    s.line = tok.line;
  }
  if (tok.kind != Token::Ident)
    return expected("an instruction");
  StringRef name = tok.text;
  advance();
  if (s.guard < 0 && accept(':')) {
    if (acceptDirective(".branchtargets")) {
      std::vector<StringRef> targets;
      do {
        targets.push_back(tok.text);
        advance();
      } while (accept(','));
      f->branchTargets.push_back({name, targets});
      return expect(';');
    }
    if (tok.kind == Token::Directive && tok.text.starts_with(".call"))
      return fail("directive '" + tok.text + "' is not modelled");
    if (!f->scopes[s.scope].labels.insert({name, unsigned(f->body.size())}).second)
      return fail("label '" + name + "' is defined twice");
    return Error::success();
  }
  s.opcode = name;
  if (Error e = operandList(s))
    return e;
  f->body.push_back(std::move(s));
  return Error::success();
}
