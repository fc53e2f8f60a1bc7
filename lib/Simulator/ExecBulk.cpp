//===- ExecBulk.cpp - Issue of bulk copies (PTX ISA 9.7.9.25) -------------===//
#include "lib/Simulator/Async.h"
#include "lib/Simulator/Atomic.h"
#include "lib/Simulator/Lanes.h"
#include "lib/Simulator/Memory.h"
#include "lib/Simulator/TensorMap.h"
#include "llvm/Support/FormatVariadic.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;
using llvm::StringRef;

namespace {

// Parts of select.
using CopyKind = BitField<AsyncOp::Kind, 0, 8>;
using Rank = BitField<unsigned, 8, 8>;
using IsMulticast = BitField<bool, 16>;
using Reduction = BitField<unsigned, 18, 6>; ///< 1 + the AtomicOp; 0 for none
using ReducedType = BitField<Ty, 24, 8>;

// Every address is two operands: base and constant offset.
uint64_t addressOp(Exec &exec, const Inst &inst, unsigned n, unsigned lane) {
  uint64_t base = exec.op(inst, n).cls == RegClass::R64 ? exec.src<uint64_t>(inst, n)[lane]
                                                        : exec.src<uint32_t>(inst, n)[lane];
  uint64_t address = base + exec.src<uint64_t>(inst, n + 1)[lane];
  return exec.op(inst, n).cls == RegClass::R64 ? address : uint32_t(address);
}

bool misaligned(Exec &exec, const Inst &inst, const char *what, uint64_t value, uint32_t align,
                unsigned lane) {
  if (value % align == 0)
    return false;
  exec.report(DiagKind::Misaligned, inst,
              llvm::formatv("{0} {1:x} is not a multiple of {2}", what, value, align).str(), lane);
  return true;
}

bool badMap(Exec &exec, const Inst &inst, const llvm::Twine &message, unsigned lane) {
  exec.report(DiagKind::BadDescriptor, inst, message, lane);
  return false;
}

/// A copy starts at a multiple of 16 bytes of a row, and a store at no negative coordinate:
/// elsewhere the machine reports an illegal instruction, of which the PTX ISA says nothing
/// (measured: bench/probes/bulk_columns.cu).
bool startsRight(Exec &exec, const Inst &inst, const TensorMapRecord &map, unsigned lane,
                 const AsyncOp &op) {
  int64_t start = int64_t(op.coords[0]) * map.elementSize();
  if (start % 16 != 0) {
    exec.report(DiagKind::Misaligned, inst,
                llvm::formatv("the first coordinate, {0}, is byte {1} of a row; a copy starts at a "
                              "multiple of 16",
                              op.coords[0], start)
                    .str(),
                lane);
    return false;
  }
  for (unsigned dim = 0; dim < map.rank && op.kind == AsyncOp::TensorStore; ++dim)
    if (op.coords[dim] < 0) {
      exec.report(DiagKind::Misaligned, inst,
                  llvm::formatv("coordinate {0} of a store is {1}; a store starts at none below 0",
                                dim, op.coords[dim])
                      .str(),
                  lane);
      return false;
    }
  return true;
}

bool fetchTensorMap(Exec &exec, const Inst &inst, uint64_t address, unsigned lane, AsyncOp &op) {
  Place p;
  if (misaligned(exec, inst, "tensor map address", address, 64, lane) ||
      !resolve(exec, inst, Space::Generic, address, 128, lane, AccessKind::Read, p))
    return false;
  memcpy(op.tensorMap.data(), p.data, 128);
  TensorMapRecord r;
  memcpy(&r, p.data, 128);
  unsigned rank = Rank::get(inst.select);
  if (r.magic != TensorMapRecord::kMagic)
    return badMap(exec, inst, llvm::formatv("there is no tensor map at {0:x}", address).str(),
                  lane);
  if (r.rank != rank)
    return badMap(exec, inst,
                  llvm::formatv("the tensor map at {0:x} has rank {1}, the instruction {2}",
                                address, r.rank, rank)
                      .str(),
                  lane);
  if (llvm::Error error = r.check())
    return badMap(exec, inst, llvm::toString(std::move(error)), lane);
  if (op.reduceOp >= 0 && reductionType(TensorElement(r.type)) == Ty::None)
    return badMap(exec, inst, "there are no reductions of elements of 8 or 16 unsigned bits", lane);
  op.bytes = r.boxBytes();
  op.footprint = r.boxFootprint();
  return startsRight(exec, inst, r, lane, op);
}

/// The mbarrier of a load; records the phase that each destination's barrier is in.
bool attachBarrier(Exec &exec, const Inst &inst, uint64_t address, unsigned lane, AsyncOp &op) {
  Place p;
  if (misaligned(exec, inst, "mbarrier address", address, 8, lane) ||
      !resolveShared(exec, inst, address, 8, lane, false, p))
    return false;
  op.mbarCta = p.cta;
  op.mbarOffset = p.offset;
  for (auto &cta : exec.cluster->ctas) {
    if (op.multicast ? !(op.multicast >> cta->rank & 1) : cta.get() != p.cta)
      continue;
    Mbarrier *b = cta->mbarrier(p.offset);
    if (!b) {
      exec.report(DiagKind::UninitialisedBarrier, inst,
                  describeShared(*exec.run, p.offset) + " is not an initialised mbarrier" +
                      (cta.get() == exec.cta
                           ? ""
                           : llvm::formatv(" in CTA {0} of the cluster", cta->rank).str()),
                  lane);
      return false;
    }
    if (exec.warp->clock.seen(b->initAgent) < b->initEpoch)
      exec.report(DiagKind::UninitialisedBarrier, inst,
                  describeShared(*exec.run, p.offset) +
                      " is used without synchronisation with its initialisation",
                  lane, {"it is initialised at " + describeSite(*exec.run, b->initSite)});
    else if (exec.warp->clock.fenced(b->initAgent) < b->initEpoch)
      exec.report(DiagKind::MissingProxyFence, inst,
                  "bulk copy completes on " + describeShared(*exec.run, p.offset) +
                      ", whose initialisation no fence.mbarrier_init or fence.proxy.async made "
                      "visible to it",
                  lane, {"it is initialised at " + describeSite(*exec.run, b->initSite)});
    if (cta->exited) {
      exec.report(
          DiagKind::PeerExited, inst,
          llvm::formatv("bulk copy into CTA {0} of the cluster, which has exited", cta->rank).str(),
          lane);
      return false;
    }
    op.phaseAtIssue[cta->rank] = b->phase;
  }
  return true;
}

void attachGroup(Exec &exec, unsigned lane, AsyncOp &op) {
  AsyncGroups &g = exec.warp->bulk[lane];
  if (g.agent == 0)
    g.agent = exec.cluster->newAgent("bulk copies of " + describeWarp(*exec.warp));
  if (g.writeAgent == 0)
    g.writeAgent = exec.cluster->newAgent("bulk copies of " + describeWarp(*exec.warp));
  op.groups = &g;
  op.groupIndex = g.issued++;
  g.state.push_back(0);
}

bool issueOne(Exec &exec, const Inst &inst, unsigned lane, AsyncOp &op) {
  unsigned at = 0;
  auto next = [&] {
    uint64_t a = addressOp(exec, inst, at, lane);
    at += 2;
    return a;
  };
  unsigned rank = Rank::get(inst.select);
  auto coordinates = [&] {
    for (unsigned k = 0; k < rank; ++k)
      op.coords[k] = int32_t(exec.src<uint32_t>(inst, at++)[lane]);
  };
  Place p;
  bool isTensor = op.kind == AsyncOp::TensorLoad || op.kind == AsyncOp::TensorStore;
  uint32_t align = isTensor ? 128 : 16;
  // Operand order: loads [dst] [source] [mbar], stores [destination] [src].
  if (op.kind == AsyncOp::TensorLoad || op.kind == AsyncOp::BulkLoad ||
      op.kind == AsyncOp::SharedCopy) {
    uint64_t dst = next(), src = next();
    if (isTensor) {
      coordinates();
      if (!fetchTensorMap(exec, inst, src, lane, op))
        return false;
    } else {
      op.bytes = exec.src<uint32_t>(inst, at++)[lane];
      if (misaligned(exec, inst, "size", op.bytes, 16, lane) ||
          misaligned(exec, inst, "source address", src, 16, lane))
        return false;
    }
    uint64_t mbar = next();
    if (IsMulticast::get(inst.select)) {
      op.multicast = exec.src<uint32_t>(inst, at++)[lane] & 0xffff;
      if (op.multicast == 0 || op.multicast >> exec.cluster->ctas.size()) {
        exec.report(DiagKind::InvalidOperation, inst,
                    llvm::formatv("multicast mask {0:x} in a cluster of {1}", op.multicast,
                                  exec.cluster->ctas.size())
                        .str(),
                    lane);
        return false;
      }
    }
    if (misaligned(exec, inst, "shared memory address", dst, align, lane) ||
        !resolveShared(exec, inst, dst, isTensor ? op.footprint : op.bytes, lane, false, p))
      return false;
    op.remote = p.cta;
    op.remoteOffset = p.offset;
    if (op.kind == AsyncOp::SharedCopy) {
      Place s;
      if (!resolveShared(exec, inst, src, op.bytes, lane, true, s))
        return false;
      op.shared = s.cta;
      op.sharedOffset = s.offset;
    }
    op.global = src;
    return attachBarrier(exec, inst, mbar, lane, op);
  }
  uint64_t dst = next();
  if (isTensor) {
    coordinates();
    if (!fetchTensorMap(exec, inst, dst, lane, op))
      return false;
  }
  uint64_t src = next();
  if (!isTensor) {
    op.bytes = exec.src<uint32_t>(inst, at++)[lane];
    if (misaligned(exec, inst, "size", op.bytes, 16, lane) ||
        misaligned(exec, inst, "destination address", dst, 16, lane))
      return false;
  }
  op.global = dst;
  if (misaligned(exec, inst, "shared memory address", src, align, lane) ||
      !resolveShared(exec, inst, src, isTensor ? op.footprint : op.bytes, lane, true, p))
    return false;
  op.shared = p.cta;
  op.sharedOffset = p.offset;
  attachGroup(exec, lane, op);
  return true;
}

Step issue(Exec &exec, const Inst &inst) {
  for (uint32_t lanes = exec.active; lanes; lanes &= lanes - 1) {
    unsigned lane = llvm::countr_zero(lanes);
    auto op = std::make_unique<AsyncOp>();
    op->kind = CopyKind::get(inst.select);
    op->inst = &inst;
    op->warp = exec.warp;
    op->lane = lane;
    op->reduceOp = int(Reduction::get(inst.select)) - 1;
    op->reduceType = uint32_t(ReducedType::get(inst.select));
    if (!issueOne(exec, inst, lane, *op))
      continue;
    op->order = exec.warp->clock;
    ++exec.cluster->tmaOps;
    exec.cluster->pending.push_back(std::move(op));
  }
  // What the warp does from now on is not ordered before the copy.
  exec.warp->release();
  if (exec.cluster->policy == Policy::Eager)
    exec.cluster->interrupt = exec.warp->held = true;
  return Step::Next;
}

/// st.async: select holds the number of bytes; the operands are address, value, address, each
/// address two of them.
Step storeAsync(Exec &exec, const Inst &inst) {
  for (uint32_t lanes = exec.active; lanes; lanes &= lanes - 1) {
    unsigned lane = llvm::countr_zero(lanes);
    auto op = std::make_unique<AsyncOp>();
    op->kind = AsyncOp::SharedStore;
    op->inst = &inst;
    op->warp = exec.warp;
    op->lane = lane;
    op->bytes = inst.select;
    uint64_t value =
        op->bytes == 8 ? exec.src<uint64_t>(inst, 2)[lane] : exec.src<uint32_t>(inst, 2)[lane];
    op->held.resize(op->bytes);
    memcpy(op->held.data(), &value, op->bytes);
    uint64_t address = addressOp(exec, inst, 0, lane);
    Place p;
    if (misaligned(exec, inst, "shared memory address", address, op->bytes, lane) ||
        !resolveShared(exec, inst, address, op->bytes, lane, false, p))
      continue;
    op->remote = p.cta;
    op->remoteOffset = p.offset;
    if (!attachBarrier(exec, inst, addressOp(exec, inst, 3, lane), lane, *op))
      continue;
    if (op->mbarCta != op->remote) {
      exec.report(DiagKind::InvalidOperation, inst,
                  "st.async and its mbarrier are in different CTAs of the cluster", lane);
      continue;
    }
    op->order = exec.warp->clock;
    exec.cluster->pending.push_back(std::move(op));
  }
  exec.warp->release();
  return Step::Next;
}

Step prefetch(Exec &exec, const Inst &inst) {
  for (uint32_t lanes = exec.active; lanes; lanes &= lanes - 1) {
    unsigned lane = llvm::countr_zero(lanes);
    AsyncOp op;
    Place p;
    if (CopyKind::get(inst.select) == AsyncOp::TensorLoad)
      fetchTensorMap(exec, inst, addressOp(exec, inst, 0, lane), lane, op);
    else
      resolve(exec, inst, Space::Global, addressOp(exec, inst, 0, lane),
              exec.src<uint32_t>(inst, 2)[lane], lane, AccessKind::Read, p);
  }
  return Step::Next;
}

Step commitGroup(Exec &exec, const Inst &) {
  for (uint32_t lanes = exec.active; lanes; lanes &= lanes - 1) {
    auto it = exec.warp->bulk.find(llvm::countr_zero(lanes));
    if (it != exec.warp->bulk.end())
      it->second.groupEnds.push_back(it->second.issued);
  }
  return Step::Next;
}

Step waitGroup(Exec &exec, const Inst &inst) {
  bool read = inst.select;
  for (uint32_t lanes = exec.active; lanes; lanes &= lanes - 1) {
    unsigned lane = llvm::countr_zero(lanes);
    auto it = exec.warp->bulk.find(lane);
    if (it == exec.warp->bulk.end())
      continue;
    AsyncGroups &g = it->second;
    size_t n = g.groupEnds.size();
    uint32_t need = n > size_t(inst.imm) ? g.groupEnds[n - 1 - inst.imm] : 0;
    if ((read ? g.readDone : g.writeDone) < need) {
      exec.split->wait.kind = Wait::Bulk;
      exec.split->wait.id = lane << 1 | read;
      exec.split->wait.value = need;
      return Step::Block;
    }
    g.waitedRead = std::max(g.waitedRead, need);
    exec.warp->clock.see(g.agent, need);
    // Only without .read the results have been written (PTX ISA 9.7.9.25.5.3).
    if (!read && g.writeAgent)
      exec.warp->clock.see(g.writeAgent, need);
  }
  return Step::Next;
}

bool addressPair(Decoder &d, const Operand &o, Space space) {
  if (!d.address(o, space, false))
    return false;
  d.ops.push_back(d.constant(uint64_t(o.offset), RegClass::R64));
  return true;
}

/// [tensorMap, {c0, ...}]
bool tensorOperand(Decoder &d, const Operand &o, unsigned rank) {
  if (!addressPair(d, o, Space::Generic))
    return false;
  if (o.elems.size() != 2)
    return d.refuse("a tensor map with coordinates is needed");
  return d.vectorOf(o.elems[1], rank, Ty::B32, false);
}

bool decodeReduce(Decoder &d, bool tensor) {
  int op = takeAtomicOp(d);
  if (op < 0 || op == AExch || op == ACas)
    return d.refuse("needs a reduction");
  d.take("noftz");
  Ty ty = tensor ? Ty::None : d.takeType();
  if (!tensor && !isAtomicType(ty))
    return d.refuse("needs a type of 16, 32 or 64 bits");
  d.inst.select |= Reduction::make(op + 1) | ReducedType::make(ty);
  return true;
}

} // namespace

bool tessera::sim::detail::decodeBulk(Decoder &d, StringRef opcode) {
  if (opcode != "cp" || !d.has("bulk"))
    return false;
  const auto &o = d.s->operands;
  bool reduce = d.take("reduce");
  d.take("async");
  d.take("bulk");
  d.inst.flags |= FlagCounted;
  if (d.has("wait_group"))
    d.inst.select = d.take("read");
  if (std::optional<bool> decoded = decodeGroup(d, &commitGroup, &waitGroup))
    return *decoded;
  bool isPrefetch = d.take("prefetch"), tensor = d.take("tensor");
  unsigned rank = 0;
  if (tensor) {
    for (unsigned r = 1; r <= 5; ++r)
      if (d.take((llvm::Twine(r) + "d").str()))
        rank = r;
    d.take("tile");
    if (!rank)
      return d.refuse("needs a number of dimensions");
  }
  d.inst.select = Rank::make(rank);
  bool hint = d.take("L2::cache_hint");
  if (isPrefetch) {
    d.take("L2");
    if (!d.take("global"))
      return d.refuse("in this form is not modelled");
    d.inst.fn = &prefetch;
    d.inst.select |= CopyKind::make(tensor ? AsyncOp::TensorLoad : AsyncOp::BulkLoad);
    if (!d.count((tensor ? 1 : 2) + hint))
      return false;
    return tensor ? tensorOperand(d, o[0], rank)
                  : addressPair(d, o[0], Space::Global) && d.src(o[1], Ty::U32);
  }
  d.inst.fn = &issue;
  // The first state space is the destination.
  llvm::SmallVector<StringRef, 2> spaces;
  for (StringRef m : d.mods)
    if (m == "global" || m == "shared::cta" || m == "shared::cluster")
      spaces.push_back(m);
  if (spaces.size() != 2)
    return d.refuse("in this form is not modelled");
  d.take(spaces[0]);
  d.take(spaces[1]);
  bool toShared = spaces[0] != "global", fromShared = spaces[1] != "global";
  bool multicast = d.take("multicast::cluster");
  bool mbar = d.take("mbarrier::complete_tx::bytes"), group = d.take("bulk_group");
  if (mbar != toShared || group == toShared || (!toShared && !fromShared) ||
      (multicast && fromShared))
    return d.refuse("in this form is not modelled");
  if (multicast)
    d.inst.select |= IsMulticast::make(true);
  if (reduce && !decodeReduce(d, tensor))
    return false;
  if (toShared) {
    d.inst.select |= CopyKind::make(tensor       ? AsyncOp::TensorLoad
                                    : fromShared ? AsyncOp::SharedCopy
                                                 : AsyncOp::BulkLoad);
    if ((tensor && (fromShared || reduce)) || !d.count((tensor ? 3 : 4) + multicast + hint))
      return d.refuse("in this form is not modelled");
    if (!addressPair(d, o[0], Space::Shared))
      return false;
    unsigned at = 2;
    if (tensor) {
      if (!tensorOperand(d, o[1], rank))
        return false;
    } else if (!addressPair(d, o[1], fromShared ? Space::Shared : Space::Global) ||
               !d.src(o[at++], Ty::U32)) {
      return false;
    }
    return addressPair(d, o[at], Space::Shared) && (!multicast || d.src(o[at + 1], Ty::B16));
  }
  d.inst.select |= CopyKind::make(tensor ? AsyncOp::TensorStore : AsyncOp::BulkStore);
  if (!d.count((tensor ? 2 : 3) + hint))
    return false;
  if (!(tensor ? tensorOperand(d, o[0], rank) : addressPair(d, o[0], Space::Global)))
    return false;
  return addressPair(d, o[1], Space::Shared) && (tensor || d.src(o[2], Ty::U32));
}

/// `st.async`, whose opcode has been read.
bool tessera::sim::detail::decodeStoreAsync(Decoder &d) {
  const auto &o = d.s->operands;
  d.take("async");
  d.take("weak");
  d.inst.flags |= FlagCounted;
  d.inst.fn = &storeAsync;
  if (!d.take("shared::cluster") || !d.take("mbarrier::complete_tx::bytes"))
    return d.refuse("in this form is not modelled");
  Ty ty = d.takeType();
  d.inst.select = tyBits(ty) / 8;
  if ((d.inst.select != 4 && d.inst.select != 8) || !d.count(3))
    return d.refuse("with these operands is not modelled");
  return addressPair(d, o[0], Space::Shared) && d.src(o[1], ty) &&
         addressPair(d, o[2], Space::Shared);
}
