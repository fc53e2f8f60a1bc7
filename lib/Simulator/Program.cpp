//===- Program.cpp - Layout of variables and decoding of a kernel ---------===//
#include "lib/Simulator/Program.h"
#include "lib/Simulator/Decoder.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;
using llvm::Error;
using llvm::StringRef;

SourceLoc Program::sourceOf(const Inst &inst) const {
  SourceLoc loc;
  if (!inst.loc)
    return loc;
  const LocEntry &entry = module->locs[inst.loc];
  auto it = module->files.find(entry.file);
  loc.file = it == module->files.end() ? "<unknown>" : it->second;
  loc.line = entry.line;
  loc.column = entry.column;
  return loc;
}

std::string Program::placeOf(const Inst &inst) const {
  SourceLoc loc = sourceOf(inst);
  if (!loc)
    return "";
  return loc.file + ":" + std::to_string(loc.line) + ":" + std::to_string(loc.column);
}

std::string Program::regName(int reg) const {
  if (reg < 0 || size_t(reg) >= function->regNames.size())
    return "a special register";
  std::string name = function->regNames[reg].str();
  if (function->regNumbers[reg] != ~0u)
    name += std::to_string(function->regNumbers[reg]);
  return name;
}

static void collectSymbols(const Operand &o, llvm::StringSet<> &used) {
  if (o.kind == Operand::Symbol)
    used.insert(o.name);
  for (const Operand &e : o.elems)
    collectSymbols(e, used);
}

static Error tooLarge(const ParsedModule &module, const Function &function, const char *space,
                      uint64_t bytes, uint64_t most) {
  return llvm::createStringError(
      llvm::inconvertibleErrorCode(),
      "%s:%u: kernel '%s' has %llu bytes of %s variables, more than %llu", module.fileName.c_str(),
      function.line, function.name.str().c_str(), static_cast<unsigned long long>(bytes), space,
      static_cast<unsigned long long>(most));
}

Error tessera::sim::detail::layoutShared(const ParsedModule &module, const Function &function,
                                         PtxKernel &info, Program *program) {
  llvm::StringSet<> used;
  for (const Statement &s : function.body)
    for (const Operand &o : s.operands)
      collectSymbols(o, used);
  uint64_t at = 0, dynamicAlign = 16;
  std::vector<StringRef> dynamic;
  auto place = [&](const Variable &v) {
    if (v.space != Space::Shared || !used.contains(v.name))
      return;
    if (v.isExtern) {
      dynamic.push_back(v.name);
      dynamicAlign = std::max<uint64_t>(dynamicAlign, v.align);
      return;
    }
    // Alignment is of the address, and the base itself is only 1024-aligned: larger requests count
    // from there.
    at = llvm::alignTo(at + kSharedBase, std::max(1u, v.align)) - kSharedBase;
    if (program)
      program->sharedOffset[v.name] = at;
    at += v.size;
  };
  for (const Variable &v : module.variables)
    place(v);
  for (const Variable &v : function.variables)
    place(v);
  if (at > kMaxSharedBytes)
    return tooLarge(module, function, "static shared", at, kMaxSharedBytes);
  info.staticSharedBytes = at;
  info.usesDynamicShared = !dynamic.empty();
  uint32_t dynamicOffset = llvm::alignTo(at + kSharedBase, dynamicAlign) - kSharedBase;
  if (program) {
    program->staticShared = at;
    program->dynamicOffset = dynamicOffset;
    for (StringRef name : dynamic)
      program->sharedOffset[name] = dynamicOffset;
  }
  return Error::success();
}

static Error placeGlobals(const ParsedModule &module, Program &p, GlobalMemory &memory) {
  for (const Variable &v : module.variables)
    if (v.space == Space::Global || v.space == Space::Const) {
      llvm::Expected<uint64_t> address =
          memory.allocate(std::max<uint64_t>(v.size, 1), v.name, v.space == Space::Const);
      if (!address)
        return address.takeError();
      p.globalAddress[v.name] = *address;
    }
  for (const Variable &v : module.variables) {
    if (!p.globalAddress.count(v.name) || v.init.empty())
      continue;
    std::vector<uint8_t> bytes = v.init;
    for (const Variable::Fixup &fix : v.fixups) {
      auto it = p.globalAddress.find(fix.symbol);
      if (it == p.globalAddress.end())
        return llvm::createStringError(
            llvm::inconvertibleErrorCode(),
            "initialiser of '%s' names '%s', which is not a global variable", v.name.str().c_str(),
            fix.symbol.str().c_str());
      uint64_t address = it->second + uint64_t(fix.addend);
      for (unsigned i = 0; i < 8 && fix.offset + i < bytes.size(); ++i)
        bytes[fix.offset + i] = address >> (8 * i);
    }
    if (Error e = memory.write(p.globalAddress[v.name], bytes))
      return e;
  }
  return Error::success();
}

llvm::Expected<std::unique_ptr<Program>>
tessera::sim::detail::buildProgram(const ParsedModule &module, const Function &function,
                                   GlobalMemory &memory) {
  auto p = std::make_unique<Program>();
  p->module = &module;
  p->function = &function;
  PtxKernel info = function.info;
  if (Error e = layoutShared(module, function, info, p.get()))
    return std::move(e);
  for (const ParamInfo &param : function.info.params)
    p->paramOffset[param.name] = param.offset;
  uint64_t localBytes = 0;
  for (const Variable &v : function.variables)
    if (v.space == Space::Local) {
      localBytes = llvm::alignTo(localBytes, std::max(16u, v.align));
      p->localOffset[v.name] = localBytes;
      localBytes += v.size;
    } else if (v.space != Space::Shared && v.space != Space::Param) {
      return llvm::createStringError(
          llvm::inconvertibleErrorCode(),
          "variable '%s' in this state space inside a function is not modelled",
          v.name.str().c_str());
    }
  if (localBytes > kMaxLocalBytes)
    return tooLarge(module, function, "local", localBytes, kMaxLocalBytes);
  p->localBytes = llvm::alignTo(localBytes, 16);
  if (Error e = placeGlobals(module, *p, memory))
    return e;

  Decoder decoder(*p);
  for (RegClass cls : function.regs)
    decoder.newReg(cls);
  p->insts.reserve(function.body.size() + 1);
  for (const Statement &s : function.body)
    if (Error e = decoder.decode(s))
      return e;
  // A label may stand after the last instruction; running off the end is an exit.
  Statement end;
  end.opcode = "ret";
  end.line = function.body.empty() ? function.line : function.body.back().line;
  if (Error e = decoder.decode(end))
    return e;
  if (Error e = decoder.finish())
    return e;
  computeReconvergence(*p);
  return p;
}
