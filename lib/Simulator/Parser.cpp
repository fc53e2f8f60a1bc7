//===- Parser.cpp - PTX text to Ast.h (PTX ISA sections 4, 5, 11) ---------===//
#include "Ast.h"
#include "Lexer.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstring>

using namespace tessera::sim;
using namespace tessera::sim::detail;
using llvm::Error;
using llvm::StringRef;

namespace {

struct TypeInfo {
  uint32_t bytes;
  RegClass cls;
};

std::optional<TypeInfo> typeInfo(StringRef t) {
  TypeInfo i = llvm::StringSwitch<TypeInfo>(t)
                   .Case("pred", {1, RegClass::Pred})
                   .Cases({"b8", "u8", "s8"}, {1, RegClass::R8})
                   .Cases({"b16", "u16", "s16", "f16", "bf16"}, {2, RegClass::R16})
                   .Cases({"b32", "u32", "s32", "f32", "f16x2", "bf16x2"}, {4, RegClass::R32})
                   .Cases({"b64", "u64", "s64", "f64"}, {8, RegClass::R64})
                   .Case("b128", {16, RegClass::R128})
                   .Default({0, RegClass::R32});
  if (!i.bytes)
    return std::nullopt;
  return i;
}

class Parser {
public:
  explicit Parser(ParsedModule &module) : m(module), lexer(module.text) { advance(); }

  Error module() {
    while (tok.kind != Token::End)
      if (Error e = topLevel())
        return e;
    return Error::success();
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
  Error fail(const llvm::Twine &message) { return failAt(tok.line, message); }
  Error failAt(unsigned line, const llvm::Twine &message) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "%s:%u: %s", m.fileName.c_str(),
                                   line, message.str().c_str());
  }
  Error expected(StringRef what) {
    return fail("expected " + what + ", found '" +
                (tok.kind == Token::End ? StringRef("end of file") : tok.text) + "'");
  }
  bool accept(char c) {
    if (!tok.is(c))
      return false;
    advance();
    return true;
  }
  Error expect(char c) {
    if (accept(c))
      return Error::success();
    return expected(llvm::formatv("'{0}'", c).str());
  }
  bool acceptDirective(StringRef d) {
    if (!tok.isDirective(d))
      return false;
    advance();
    return true;
  }
  Error integer(uint64_t &value) {
    bool minus = accept('-');
    if (tok.kind != Token::Int)
      return expected("an integer");
    value = minus ? -tok.bits : tok.bits;
    advance();
    return Error::success();
  }

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

  Error topLevel();
  Error file();
  Error loc();
  Error function(bool isEntry);
  Error parameters(bool isEntry);
  Error directives(bool &isPrototype);
  Error dimensions(Dim3 &d);
  Error body();
  Error statement();
  Error registers();
  Error variable(Space space, bool isExtern, std::vector<Variable> &list);
  Error initialiser(Variable &v, uint32_t elementSize, bool isFloat);
  Error operand(Operand &o);
  Error address(Operand &o);
  Error operandList(Statement &s);
  int lookup(StringRef name) const;
  int addRegister(RegClass cls, StringRef name, unsigned number) {
    f->regs.push_back(cls);
    f->regNames.push_back(name);
    f->regNumbers.push_back(number);
    return f->regs.size() - 1;
  }
};

Error Parser::file() { // .file index "name"[, timestamp, size]
  advance();
  uint64_t index;
  if (Error e = integer(index))
    return e;
  if (tok.kind != Token::String)
    return expected("a file name");
  m.files[index] = tok.text.str();
  advance();
  while (accept(','))
    advance();
  return Error::success();
}

Error Parser::loc() { // .loc file line column[, function_name label[+imm], inlined_at file line
                      // column]
  advance();
  uint64_t v[3];
  for (uint64_t &x : v)
    if (Error e = integer(x))
      return e;
  while (accept(',')) {
    if (tok.text == "function_name") {
      advance();
      advance();
      if (accept('+'))
        advance();
    } else if (tok.text == "inlined_at") {
      advance();
      for (int i = 0; i < 3; ++i) {
        uint64_t ignored;
        if (Error e = integer(ignored))
          return e;
      }
    } else {
      return expected("function_name or inlined_at");
    }
  }
  m.locs.push_back({unsigned(v[0]), unsigned(v[1]), unsigned(v[2])});
  currentLoc = v[1] ? m.locs.size() - 1 : 0;
  return Error::success();
}

static Space spaceOf(StringRef d) {
  return llvm::StringSwitch<Space>(d)
      .Case(".global", Space::Global)
      .Cases({".shared", ".shared::cta"}, Space::Shared)
      .Case(".local", Space::Local)
      .Case(".const", Space::Const)
      .Case(".param", Space::Param)
      .Default(Space::None);
}

Error Parser::topLevel() {
  if (tok.kind != Token::Directive)
    return expected("a directive");
  StringRef d = tok.text;
  if (d == ".version" || d == ".address_size") {
    advance();
    advance();
    return Error::success();
  }
  if (d == ".target") {
    advance();
    m.target = tok.text.str();
    advance();
    while (accept(','))
      advance();
    return Error::success();
  }
  if (d == ".file")
    return file();
  if (d == ".section") {
    advance();
    advance();
    if (tok.is('{'))
      skipBraces();
    return Error::success();
  }
  if (d == ".pragma" || d == ".alias") {
    skipStatement();
    return Error::success();
  }
  bool isExtern = false;
  while (tok.isDirective(".extern") || tok.isDirective(".visible") || tok.isDirective(".weak") ||
         tok.isDirective(".common")) {
    isExtern |= tok.text == ".extern";
    advance();
  }
  if (acceptDirective(".entry"))
    return function(true);
  if (acceptDirective(".func"))
    return function(false);
  if (Space space = spaceOf(tok.text); tok.kind == Token::Directive && space != Space::None) {
    advance();
    return variable(space, isExtern, m.variables);
  }
  return fail("directive '" + tok.text + "' is not modelled");
}

Error Parser::parameters(bool isEntry) { // after '('
  if (accept(')'))
    return Error::success();
  do {
    if (acceptDirective(".reg")) { // parameters of device functions
      while (tok.kind == Token::Directive)
        advance();
      advance();
      continue;
    }
    if (!acceptDirective(".param"))
      return expected(".param");
    Variable v;
    v.space = Space::Param;
    uint32_t bytes = 0;
    StringRef type;
    while (tok.kind == Token::Directive) {
      if (acceptDirective(".align") || tok.isDirective(".ptr")) {
        // `.ptr .global .align 16` describes what a pointer points to.
        if (acceptDirective(".ptr")) {
          if (spaceOf(tok.text) != Space::None)
            advance();
          if (acceptDirective(".align"))
            advance();
          continue;
        }
        v.align = tok.bits;
        advance();
        continue;
      }
      std::optional<TypeInfo> t = typeInfo(tok.text.drop_front());
      if (!t)
        return fail("parameter type '" + tok.text + "' is not modelled");
      type = tok.text.drop_front();
      bytes = t->bytes;
      advance();
    }
    v.name = tok.text;
    advance();
    uint64_t count = 1;
    if (accept('[')) {
      if (Error e = integer(count))
        return e;
      if (Error e = expect(']'))
        return e;
    }
    v.size = bytes * count;
    v.align = std::max(v.align, bytes);
    if (isEntry) {
      KernelInfo &k = f->info;
      uint32_t offset = (k.paramBytes + v.align - 1) / v.align * v.align;
      k.params.push_back({v.name.str(), type.str(), offset, uint32_t(v.size), v.align});
      k.paramBytes = offset + v.size;
    }
    f->variables.push_back(v);
  } while (accept(','));
  return expect(')');
}

Error Parser::dimensions(Dim3 &d) {
  uint64_t v[3] = {1, 1, 1};
  for (int i = 0; i < 3; ++i) {
    if (Error e = integer(v[i]))
      return e;
    if (!accept(','))
      break;
  }
  d = Dim3{uint32_t(v[0]), uint32_t(v[1]), uint32_t(v[2])};
  return Error::success();
}

Error Parser::directives(bool &isPrototype) {
  while (!tok.is('{')) {
    if (accept(';')) {
      isPrototype = true;
      return Error::success();
    }
    StringRef d = tok.text;
    if (tok.kind != Token::Directive)
      return expected("a performance directive or '{'");
    advance();
    Dim3 ignored;
    if (d == ".reqntid") {
      if (Error e = dimensions(f->info.reqntid))
        return e;
    } else if (d == ".reqnctapercluster") {
      if (Error e = dimensions(f->info.reqCluster))
        return e;
    } else if (d == ".maxntid") {
      if (Error e = dimensions(ignored))
        return e;
    } else if (d == ".maxnreg" || d == ".minnctapersm" || d == ".maxclusterrank" ||
               d == ".maxnctapersm") {
      uint64_t v;
      if (Error e = integer(v))
        return e;
      if (d == ".maxnreg")
        f->info.maxnreg = v;
    } else if (d == ".pragma") {
      skipStatement();
    } else if (d != ".explicitcluster" && d != ".noreturn" && d != ".blocksareclusters") {
      return fail("directive '" + d + "' is not modelled");
    }
  }
  return Error::success();
}

Error Parser::function(bool isEntry) {
  m.functions.emplace_back();
  f = &m.functions.back();
  f->isEntry = isEntry;
  f->line = tok.line;
  if (!isEntry && accept('(')) // the return value
    if (Error e = parameters(false))
      return e;
  f->name = tok.text;
  f->info.name = tok.text.str();
  advance();
  if (accept('('))
    if (Error e = parameters(isEntry))
      return e;
  bool isPrototype = false;
  if (Error e = directives(isPrototype))
    return e;
  if (isPrototype) {
    m.functions.pop_back();
    return Error::success();
  }
  currentLoc = 0;
  if (!isEntry) { // only kernels run; a call of a device function is refused where it is decoded
    skipBraces();
    return Error::success();
  }
  return body();
}

Error Parser::body() { // at '{'
  f->scopes.emplace_back();
  names.assign(1, Names());
  scopes.assign(1, 0);
  advance();
  while (!scopes.empty()) {
    if (tok.kind == Token::End)
      return expected("'}'");
    if (accept('{')) {
      f->scopes.emplace_back();
      f->scopes.back().parent = scopes.back();
      scopes.push_back(f->scopes.size() - 1);
      names.emplace_back();
    } else if (accept('}')) {
      scopes.pop_back();
      names.pop_back();
    } else if (!accept(';')) {
      if (Error e = statement())
        return e;
    }
  }
  return Error::success();
}

Error Parser::registers() { // after .reg
  unsigned vector = 1;
  if (tok.isDirective(".v2") || tok.isDirective(".v4"))
    return fail("vector registers are not modelled");
  std::optional<TypeInfo> t =
      tok.kind == Token::Directive ? typeInfo(tok.text.drop_front()) : std::nullopt;
  if (!t)
    return fail("register type '" + tok.text + "' is not modelled");
  (void)vector;
  advance();
  do {
    StringRef name = tok.text;
    if (tok.kind != Token::Ident)
      return expected("a register name");
    advance();
    if (accept('<')) {
      uint64_t count;
      if (Error e = integer(count))
        return e;
      if (Error e = expect('>'))
        return e;
      if (count > (1u << 20))
        return fail("more registers than the simulator holds");
      int first = f->regs.size();
      for (unsigned i = 0; i < count; ++i)
        addRegister(t->cls, name, i);
      names.back().ranges[name] = {first, unsigned(count)};
    } else {
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
      v.init.push_back(bits >> (8 * i));
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
        uint64_t addend;
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

Error Parser::variable(Space space, bool isExtern, std::vector<Variable> &list) { // after the space
  uint32_t bytes = 0, vector = 1, align = 0;
  bool isFloat = false;
  while (tok.kind == Token::Directive) {
    if (acceptDirective(".align")) {
      uint64_t a;
      if (Error e = integer(a))
        return e;
      align = a;
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
  do {
    Variable v;
    v.space = space;
    v.isExtern = isExtern;
    v.align = align ? align : bytes * vector;
    v.name = tok.text;
    if (tok.kind != Token::Ident)
      return expected("a variable name");
    advance();
    uint64_t count = 1;
    bool unsized = false;
    while (accept('[')) {
      uint64_t n = 0;
      if (!tok.is(']')) {
        if (Error e = integer(n))
          return e;
      } else {
        unsized = true;
      }
      count *= n;
      if (Error e = expect(']'))
        return e;
    }
    v.size = count * bytes * vector;
    if (accept('=')) {
      if (Error e = initialiser(v, bytes, isFloat))
        return e;
      if (unsized)
        v.size = v.init.size();
      if (v.init.size() > v.size)
        return fail("initialiser is larger than '" + v.name + "'");
    }
    list.push_back(std::move(v));
  } while (accept(','));
  return expect(';');
}

Error Parser::address(Operand &o) { // after '['
  o.kind = Operand::Address;
  Operand base;
  if (Error e = operand(base))
    return e;
  if (base.kind == Operand::Symbol)
    std::swap(o.offset, base.offset);
  o.elems.push_back(base);
  for (;;) {
    if (accept('+')) {
      uint64_t v;
      if (Error e = integer(v))
        return e;
      o.offset += int64_t(v);
    } else if (tok.is('-')) {
      uint64_t v;
      if (Error e = integer(v))
        return e;
      o.offset += int64_t(v);
    } else {
      break;
    }
  }
  while (accept(',')) {
    Operand extra;
    if (Error e = operand(extra))
      return e;
    o.elems.push_back(extra);
  }
  return expect(']');
}

Error Parser::operand(Operand &o) {
  if (accept('[')) {
    if (Error e = address(o))
      return e;
    return Error::success();
  }
  if (tok.is('{') || tok.is('(')) {
    char close = tok.is('{') ? '}' : ')';
    o.kind = tok.is('{') ? Operand::Vector : Operand::Paren;
    advance();
    while (!accept(close)) {
      Operand element;
      if (Error e = operand(element))
        return e;
      o.elems.push_back(std::move(element));
      if (!tok.is(close) && !tok.is(','))
        return expected("',' in a list");
      accept(',');
    }
    return Error::success();
  }
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
    if (minus)
      return expected("a literal after '-'");
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
      if (accept('+') || tok.is('-')) {
        uint64_t v;
        if (Error e = integer(v))
          return e;
        o.offset = int64_t(v);
      }
      return Error::success();
    }
    break;
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

} // namespace

Error tessera::sim::detail::parse(ParsedModule &module) {
  if (Error e = Parser(module).module())
    return e;
  for (const Function &f : module.functions)
    if (f.isEntry)
      module.kernelInfos.push_back(f.info);
  return Error::success();
}
