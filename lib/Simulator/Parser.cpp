//===- Parser.cpp - Modules and functions (PTX ISA sections 4, 11) --------===//
#include "lib/Simulator/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;
using llvm::Error;
using llvm::StringRef;

std::optional<TypeInfo> tessera::sim::detail::typeInfo(StringRef t) {
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

Error Parser::file() { // .file index "name"[, timestamp, size]
  advance();
  unsigned index;
  if (Error e = integerIn(index, 0, UINT32_MAX, "the file's number"))
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
  unsigned v[3];
  for (unsigned &x : v)
    if (Error e = integerIn(x, 0, UINT32_MAX, "the location"))
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
  m.locs.push_back({v[0], v[1], v[2]});
  currentLoc = v[1] ? m.locs.size() - 1 : 0;
  return Error::success();
}

Space tessera::sim::detail::spaceOf(StringRef d) {
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
        if (Error e = alignment(v.align))
          return e;
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
    if (tok.kind != Token::Ident)
      return expected("a parameter's name");
    if (!bytes)
      return fail("parameter '" + v.name + "' has no type");
    advance();
    v.size = bytes;
    bool unsized = false;
    if (Error e = extents(v.size, unsized, v.name))
      return e;
    v.align = std::max(v.align, bytes);
    PtxKernel &k = f->info;
    uint64_t end = k.paramBytes;
    if (Error e = checkSize(v, end))
      return e;
    if (isEntry) {
      uint32_t offset = uint32_t(end - v.size);
      k.params.push_back({v.name.str(), type.str(), offset, uint32_t(v.size), v.align});
      k.paramBytes = uint32_t(end);
    }
    f->variables.push_back(v);
  } while (accept(','));
  return expect(')');
}

Error Parser::dimensions(Dim3 &d) {
  d = Dim3();
  for (uint32_t *extent : {&d.x, &d.y, &d.z}) {
    if (Error e = integerIn(*extent, 1, kMaxThreads, "the extent"))
      return e;
    if (!accept(','))
      break;
  }
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
      uint32_t v = 0;
      if (Error e = integerIn(v, 1, UINT32_MAX, d))
        return e;
      if (d == ".maxnreg")
        f->info.maxnreg = v;
      if (d == ".minnctapersm")
        f->info.minBlocks = v;
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
      if (scopes.size() > kMaxDepth)
        return fail("blocks are nested too deeply");
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

Error tessera::sim::detail::parse(ParsedModule &module) {
  if (Error e = Parser(module).module())
    return e;
  for (const Function &f : module.functions)
    if (f.isEntry)
      module.kernelInfos.push_back(f.info);
  return Error::success();
}
