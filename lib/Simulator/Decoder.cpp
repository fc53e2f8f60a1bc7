//===- Decoder.cpp - Operands, modifiers and labels -----------------------===//
#include "lib/Simulator/Decoder.h"
#include "llvm/ADT/StringSwitch.h"
#include <cstring>

using namespace tessera::sim::detail;
using llvm::Error;
using llvm::StringRef;

unsigned tessera::sim::detail::tyBits(Ty t) {
  switch (t) {
  case Ty::Pred:
    return 1;
  case Ty::B8:
  case Ty::U8:
  case Ty::S8:
    return 8;
  case Ty::B16:
  case Ty::U16:
  case Ty::S16:
  case Ty::F16:
  case Ty::BF16:
  case Ty::E4M3x2:
  case Ty::E5M2x2:
    return 16;
  case Ty::B32:
  case Ty::U32:
  case Ty::S32:
  case Ty::F32:
  case Ty::F16x2:
  case Ty::BF16x2:
  case Ty::TF32:
  case Ty::U16x2:
  case Ty::S16x2:
    return 32;
  case Ty::B64:
  case Ty::U64:
  case Ty::S64:
  case Ty::F64:
    return 64;
  case Ty::B128:
    return 128;
  case Ty::None:
    return 0;
  }
  return 0;
}

bool tessera::sim::detail::tySigned(Ty t) {
  return t == Ty::S8 || t == Ty::S16 || t == Ty::S32 || t == Ty::S64 || t == Ty::S16x2;
}

Ty tessera::sim::detail::parseTy(StringRef s) {
  return llvm::StringSwitch<Ty>(s)
      .Case("pred", Ty::Pred)
      .Case("b8", Ty::B8)
      .Case("b16", Ty::B16)
      .Case("b32", Ty::B32)
      .Case("b64", Ty::B64)
      .Case("b128", Ty::B128)
      .Case("u8", Ty::U8)
      .Case("u16", Ty::U16)
      .Case("u32", Ty::U32)
      .Case("u64", Ty::U64)
      .Case("s8", Ty::S8)
      .Case("s16", Ty::S16)
      .Case("s32", Ty::S32)
      .Case("s64", Ty::S64)
      .Case("f16", Ty::F16)
      .Case("f16x2", Ty::F16x2)
      .Case("bf16", Ty::BF16)
      .Case("bf16x2", Ty::BF16x2)
      .Case("f32", Ty::F32)
      .Case("f64", Ty::F64)
      .Case("e4m3x2", Ty::E4M3x2)
      .Case("e5m2x2", Ty::E5M2x2)
      .Case("tf32", Ty::TF32)
      .Case("u16x2", Ty::U16x2)
      .Case("s16x2", Ty::S16x2)
      .Default(Ty::None);
}

static RegClass classOf(Ty t) {
  switch (tyBits(t)) {
  case 1:
    return RegClass::Pred;
  case 8:
    return RegClass::R8;
  case 16:
    return RegClass::R16;
  case 64:
    return RegClass::R64;
  case 128:
    return RegClass::R128;
  default:
    return RegClass::R32;
  }
}

bool Decoder::take(StringRef m) {
  auto it = llvm::find(mods, m);
  if (it == mods.end())
    return false;
  mods.erase(it);
  return true;
}

Ty Decoder::takeType() {
  for (auto it = mods.begin(); it != mods.end(); ++it)
    if (Ty t = parseTy(*it); t != Ty::None) {
      mods.erase(it);
      return t;
    }
  return Ty::None;
}

bool Decoder::takePrefix(StringRef prefix, StringRef &whole) {
  for (auto it = mods.begin(); it != mods.end(); ++it)
    if (it->starts_with(prefix)) {
      whole = *it;
      mods.erase(it);
      return true;
    }
  return false;
}

unsigned Decoder::takeNumber(StringRef prefix) {
  for (auto it = mods.begin(); it != mods.end(); ++it) {
    unsigned n;
    if (it->starts_with(prefix) && !it->drop_front(prefix.size()).getAsInteger(10, n)) {
      mods.erase(it);
      return n;
    }
  }
  return 0;
}

bool Decoder::refuse(const llvm::Twine &reason) {
  if (why.empty())
    why = reason.str();
  return false;
}

bool Decoder::count(size_t n) { return count(n, n); }
bool Decoder::count(size_t low, size_t high) {
  size_t n = s->operands.size();
  if (n >= low && n <= high)
    return true;
  return refuse("expects " + llvm::Twine(low) + " operands, has " + llvm::Twine(n));
}

int Decoder::newReg(RegClass cls) {
  unsigned words = cls == RegClass::Pred   ? 1
                   : cls == RegClass::R64  ? 64
                   : cls == RegClass::R128 ? 128
                                           : 32;
  if (cls != RegClass::Pred)
    p.regWords = (p.regWords + 15) & ~15u;
  p.regOffset.push_back(p.regWords);
  p.regClass.push_back(cls);
  p.regWords += words;
  return p.regOffset.size() - 1;
}

static Op opOf(const Program &p, int reg) {
  Op o;
  o.reg = reg;
  o.offset = p.regOffset[reg];
  o.cls = p.regClass[reg];
  return o;
}

Op Decoder::constant(uint64_t bits, RegClass cls) {
  Op o;
  o.cls = cls;
  auto &pool = cls == RegClass::Pred   ? poolPred
               : cls == RegClass::R64  ? pool64
               : cls == RegClass::R128 ? pool128
                                       : pool32;
  if (cls == RegClass::R16)
    bits &= 0xffff;
  else if (cls == RegClass::R8)
    bits &= 0xff;
  else if (cls != RegClass::R64 && cls != RegClass::R128)
    bits &= 0xffffffff;
  // DenseMap keeps two keys for itself; those constants are simply not shared.
  bool shareable = bits < ~1ull;
  if (shareable) {
    auto it = pool.find(bits);
    if (it != pool.end()) {
      o.offset |= it->second;
      return o;
    }
  }
  uint32_t at = p.constants.size();
  unsigned words = cls == RegClass::R128 ? 128 : cls == RegClass::R64 ? 64 : 32;
  p.constants.resize(at + words);
  for (unsigned l = 0; l < 32; ++l)
    if (words > 32)
      memcpy(&p.constants[at + words / 32 * l], &bits, 8);
    else
      p.constants[at + l] = cls == RegClass::Pred ? (bits ? ~0u : 0u) : uint32_t(bits);
  if (shareable)
    pool[bits] = at;
  o.offset |= at;
  return o;
}

Op Decoder::hidden(SpecialReg r, uint32_t value, RegClass cls) {
  for (const HiddenReg &h : p.hidden)
    if (h.what == r && h.value == value && p.regClass[h.reg] == cls)
      return opOf(p, h.reg);
  int reg = newReg(cls);
  p.hidden.push_back({r, value, reg});
  return opOf(p, reg);
}

bool Decoder::reg(const Operand &o, Ty ty, bool wider, Op &out) {
  out = opOf(p, o.reg);
  RegClass want = classOf(ty);
  if (out.cls == want || (wider && out.cls > want && out.cls != RegClass::Pred))
    return true;
  // Registers of 8 and 16 bits live in 32-bit words: .u8 data in a 16-bit register and the like.
  if (want == RegClass::R8 && out.cls == RegClass::R16)
    return true;
  return refuse("register " + p.regName(o.reg) + " has the wrong size");
}

bool Decoder::dst(const Operand &o, Ty ty, bool wider) {
  Op out;
  if (o.kind == Operand::Sink) {
    out = opOf(p, newReg(classOf(ty)));
    out.sink = true;
  } else if (o.kind != Operand::Reg) {
    return refuse("the destination is not a register");
  } else if (!reg(o, ty, wider, out)) {
    return false;
  }
  ops.push_back(out);
  inst.dstCount = ops.size();
  return true;
}

bool Decoder::dstPred(const Operand &o) { return dst(o, Ty::Pred); }

bool Decoder::symbolValue(const Operand &o, Op &out, RegClass cls) {
  if (auto it = p.sharedOffset.find(o.name); it != p.sharedOffset.end()) {
    out = hidden(SpecialReg::SharedAddress, it->second + o.offset, cls);
    return true;
  }
  uint64_t value;
  if (auto it = p.paramOffset.find(o.name); it != p.paramOffset.end())
    value = it->second;
  else if (auto it = p.localOffset.find(o.name); it != p.localOffset.end())
    value = it->second;
  else if (auto it = p.globalAddress.find(o.name); it != p.globalAddress.end())
    value = it->second;
  else
    return refuse("'" + o.name + "' is not known");
  out = constant(value + o.offset, cls);
  return true;
}

static const struct {
  const char *name;
  SpecialReg reg;
} kSpecial[] = {
    {"%tid.x", SpecialReg::TidX},
    {"%tid.y", SpecialReg::TidY},
    {"%tid.z", SpecialReg::TidZ},
    {"%ntid.x", SpecialReg::NtidX},
    {"%ntid.y", SpecialReg::NtidY},
    {"%ntid.z", SpecialReg::NtidZ},
    {"%ctaid.x", SpecialReg::CtaidX},
    {"%ctaid.y", SpecialReg::CtaidY},
    {"%ctaid.z", SpecialReg::CtaidZ},
    {"%nctaid.x", SpecialReg::NctaidX},
    {"%nctaid.y", SpecialReg::NctaidY},
    {"%nctaid.z", SpecialReg::NctaidZ},
    {"%laneid", SpecialReg::LaneId},
    {"%warpid", SpecialReg::WarpId},
    {"%nwarpid", SpecialReg::NwarpId},
    {"%smid", SpecialReg::SmId},
    {"%nsmid", SpecialReg::NsmId},
    {"%gridid", SpecialReg::GridId},
    {"%lanemask_eq", SpecialReg::LanemaskEq},
    {"%lanemask_lt", SpecialReg::LanemaskLt},
    {"%lanemask_le", SpecialReg::LanemaskLe},
    {"%lanemask_gt", SpecialReg::LanemaskGt},
    {"%lanemask_ge", SpecialReg::LanemaskGe},
    {"%cluster_ctaid.x", SpecialReg::ClusterCtaidX},
    {"%cluster_ctaid.y", SpecialReg::ClusterCtaidY},
    {"%cluster_ctaid.z", SpecialReg::ClusterCtaidZ},
    {"%cluster_nctaid.x", SpecialReg::ClusterNctaidX},
    {"%cluster_nctaid.y", SpecialReg::ClusterNctaidY},
    {"%cluster_nctaid.z", SpecialReg::ClusterNctaidZ},
    {"%cluster_ctarank", SpecialReg::ClusterCtarank},
    {"%cluster_nctarank", SpecialReg::ClusterNctarank},
    {"%clusterid.x", SpecialReg::ClusteridX},
    {"%clusterid.y", SpecialReg::ClusteridY},
    {"%clusterid.z", SpecialReg::ClusteridZ},
    {"%nclusterid.x", SpecialReg::NclusteridX},
    {"%nclusterid.y", SpecialReg::NclusteridY},
    {"%nclusterid.z", SpecialReg::NclusteridZ},
    {"%is_explicit_cluster", SpecialReg::IsExplicitCluster},
    {"%dynamic_smem_size", SpecialReg::DynamicSmemSize},
    {"%total_smem_size", SpecialReg::TotalSmemSize},
    {"%aggr_smem_size", SpecialReg::AggrSmemSize},
    {"%clock", SpecialReg::Clock},
    {"%clock64", SpecialReg::Clock64},
    {"%globaltimer", SpecialReg::GlobalTimer},
    {"%globaltimer_lo", SpecialReg::GlobalTimerLo},
    {"%globaltimer_hi", SpecialReg::GlobalTimerHi},
};

bool Decoder::src(const Operand &o, Ty ty, bool wider) {
  RegClass cls = classOf(ty);
  switch (o.kind) {
  case Operand::Reg: {
    Op out;
    if (!reg(o, ty, wider, out))
      return false;
    ops.push_back(out);
    return true;
  }
  case Operand::Int:
    if (ty == Ty::F32 || ty == Ty::F64)
      return refuse("an integer literal where a floating-point value is needed");
    ops.push_back(constant(o.bits, cls));
    return true;
  case Operand::Float32:
    if (tyBits(ty) != 32)
      return refuse("a single-precision literal of the wrong size");
    ops.push_back(constant(o.bits, cls));
    return true;
  case Operand::Float64: {
    uint64_t bits = o.bits;
    if (tyBits(ty) == 32) {
      double d;
      memcpy(&d, &bits, 8);
      float f = d;
      bits = 0;
      memcpy(&bits, &f, 4);
    } else if (tyBits(ty) != 64) {
      return refuse("a double-precision literal of the wrong size");
    }
    ops.push_back(constant(bits, cls));
    return true;
  }
  case Operand::Symbol: {
    Op out;
    if (cls != RegClass::R32 && cls != RegClass::R64)
      return refuse("an address of the wrong size");
    if (!symbolValue(o, out, cls))
      return false;
    ops.push_back(out);
    return true;
  }
  case Operand::Special:
    if (cls == RegClass::Pred || cls == RegClass::R128)
      return refuse("a special register of the wrong size");
    for (const auto &special : kSpecial)
      if (o.name == special.name) {
        // Special registers are 32 bits wide but may be read into wider registers; %tid in 16-bit
        // ones too.
        ops.push_back(hidden(special.reg, 0, cls));
        return true;
      }
    return refuse("special register '" + o.name + "' is not modelled");
  default:
    return refuse("an operand of the wrong kind");
  }
}

bool Decoder::srcPred(const Operand &o) {
  if (o.kind == Operand::Int) {
    ops.push_back(constant(o.bits != 0, RegClass::Pred));
    return true;
  }
  Op out;
  if (o.kind != Operand::Reg)
    return refuse("a predicate is needed");
  if (!reg(o, Ty::Pred, false, out))
    return false;
  out.negated = o.negated;
  ops.push_back(out);
  return true;
}

bool Decoder::address(const Operand &o, Space space, bool setImm) {
  if (o.kind != Operand::Address)
    return refuse("an address in brackets is needed");
  const Operand &base = o.elems[0];
  if (setImm)
    inst.imm = o.offset;
  Op out;
  switch (base.kind) {
  case Operand::Reg:
    out = opOf(p, base.reg);
    if (out.cls != RegClass::R32 && out.cls != RegClass::R64)
      return refuse("an address register of the wrong size");
    break;
  case Operand::Symbol:
    if (!symbolValue(base, out, space == Space::Shared ? RegClass::R32 : RegClass::R64))
      return false;
    if (space == Space::Generic && p.sharedOffset.count(base.name))
      return refuse("a shared variable in a generic address");
    break;
  case Operand::Int:
    out = constant(base.bits, RegClass::R64);
    break;
  default:
    return refuse("this form of address is not modelled");
  }
  ops.push_back(out);
  return true;
}

bool Decoder::addressPair(const Operand &o, Space space) {
  if (!address(o, space, /*setImm=*/false))
    return false;
  ops.push_back(constant(uint64_t(o.offset), RegClass::R64));
  return true;
}

bool Decoder::vectorOf(const Operand &o, unsigned n, Ty ty, bool isDst, bool wider) {
  if (n == 1 && o.kind != Operand::Vector)
    return isDst ? dst(o, ty, wider) : src(o, ty, wider);
  if (o.kind != Operand::Vector || o.elems.size() != n)
    return refuse("a vector of " + llvm::Twine(n) + " elements is needed");
  for (const Operand &e : o.elems)
    if (!(isDst ? dst(e, ty, wider) : src(e, ty, wider)))
      return false;
  return true;
}

bool Decoder::immediate(const Operand &o, int64_t &value) {
  if (o.kind != Operand::Int)
    return refuse("an immediate operand is needed");
  value = int64_t(o.bits);
  return true;
}

bool Decoder::labelTarget(const Operand &o) {
  if (o.kind != Operand::Symbol)
    return refuse("a label is needed");
  fixes.push_back({unsigned(p.insts.size()), o.name, s->scope, s->line});
  return true;
}

void Decoder::tableTarget(StringRef label, unsigned entry) {
  p.branchTables.back().push_back(-1);
  fixes.push_back({unsigned(p.insts.size()), label, s->scope, s->line,
                   int(p.branchTables.size()) - 1, int(entry)});
}

Error Decoder::decode(const Statement &statement) {
  static const DecodeFn families[] = {
      decodeMove,  decodeInteger, decodeFloat,   decodeSelect, decodeBits,    decodeConvert,
      decodeHalf,  decodeMemory,  decodeControl, decodeWarp,   decodeBarrier, decodeMbarrier,
      decodeFence, decodeBulk,    decodeCpAsync, decodeWgmma,  decodeMatrix,  decodeAtomic,
  };
  constexpr unsigned kArithmetic = 7; // families from the first one on
  s = &statement;
  why.clear();
  llvm::SmallVector<StringRef, 12> parts;
  s->opcode.split(parts, '.');
  StringRef opcode = parts[0];
  bool done = false;
  for (auto [number, family] : llvm::enumerate(families)) {
    inst = Inst();
    ops.clear();
    mods.assign(parts.begin() + 1, parts.end());
    if (family(*this, opcode)) {
      inst.flags |= number < kArithmetic ? FlagArithmetic : 0;
      done = true;
      break;
    }
    if (!why.empty())
      break;
  }
  if (done && !mods.empty()) {
    done = false;
    why = ("modifier ." + mods.front() + " is not modelled here").str();
  }
  auto fail = [&](const std::string &what) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "%s:%u: instruction '%s' %s",
                                   p.module->fileName.c_str(), s->line, s->opcode.str().c_str(),
                                   what.c_str());
  };
  if (!done)
    return fail(why.empty() ? "is not modelled" : "refused: " + why);
  if (s->guard >= 0) {
    inst.guard = opOf(p, s->guard);
    inst.guard.negated = s->guardNegated;
  }
  if (ops.size() > 1024)
    return fail("has too many operands");
  inst.opBegin = p.ops.size();
  inst.opCount = ops.size();
  p.ops.insert(p.ops.end(), ops.begin(), ops.end());
  inst.line = s->line;
  inst.loc = s->loc;
  if (inst.flags & FlagCounted)
    inst.counter = p.counters++;
  std::string name = opcode.str();
  if (parts.size() > 1 && (opcode == "wgmma" || opcode == "mbarrier" || opcode == "fence" ||
                           opcode == "cp" || opcode == "bar" || opcode == "barrier"))
    name += ("." + parts[1]).str();
  auto id = opcodeIds.try_emplace(name, p.opcodeNames.size());
  if (id.second)
    p.opcodeNames.push_back(name);
  inst.opcode = id.first->second;
  p.insts.push_back(inst);
  return Error::success();
}

Error Decoder::finish() {
  for (const Fix &fix : fixes) {
    int32_t target = -1;
    for (int scope = fix.scope; scope >= 0 && target < 0;
         scope = p.function->scopes[scope].parent) {
      auto it = p.function->scopes[scope].labels.find(fix.label);
      if (it != p.function->scopes[scope].labels.end())
        target = it->second;
    }
    if (target < 0)
      return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                     "%s:%u: label '%s' is not defined", p.module->fileName.c_str(),
                                     fix.line, fix.label.str().c_str());
    if (fix.table >= 0)
      p.branchTables[fix.table][fix.entry] = target;
    else
      p.insts[fix.inst].target = target;
  }
  return Error::success();
}
