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
// Of a st.async:
using ElementBytes = BitField<unsigned, 0, 8>;
using Elements = BitField<unsigned, 8, 8>;

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
  joinGroups(g, op);
}

/// Reads the operands of a copy one after the other.
class OperandReader {
public:
  OperandReader(Exec &exec, const Inst &inst, unsigned lane) : exec(exec), inst(inst), lane(lane) {}

  uint64_t address() {
    at += 2;
    return addressOfPair(exec, inst, at - 2, lane);
  }
  uint32_t number() { return exec.src<uint32_t>(inst, at++)[lane]; }
  /// Those of a copy of a tensor, and what its map says.
  bool tensor(uint64_t map, AsyncOp &op) {
    for (unsigned k = 0; k < Rank::get(inst.select); ++k)
      op.coords[k] = int32_t(number());
    return fetchTensorMap(exec, inst, map, lane, op);
  }
  /// The bytes of a copy of a range, which in global memory begins at `address`.
  bool range(uint64_t address, const char *what, AsyncOp &op) {
    op.bytes = number();
    return !misaligned(exec, inst, "size", op.bytes, 16, lane) &&
           !misaligned(exec, inst, what, address, 16, lane);
  }

private:
  Exec &exec;
  const Inst &inst;
  unsigned lane, at = 0;
};

bool isTensor(const AsyncOp &op) {
  return op.kind == AsyncOp::TensorLoad || op.kind == AsyncOp::TensorStore;
}

/// The shared memory at `address` that a copy reads, of the CTA itself, or writes. A copy within
/// shared memory has two of them.
bool findShared(Exec &exec, const Inst &inst, uint64_t address, unsigned lane, bool ownOnly,
                const AsyncOp &op, Place &place, unsigned number = 0) {
  uint32_t bytes = isTensor(op) ? op.footprint : op.bytes;
  if (misaligned(exec, inst, "shared memory address", address, isTensor(op) ? 128 : 16, lane) ||
      !resolveShared(exec, inst, address, bytes, lane, ownOnly, place))
    return false;
  checkArray(*exec.cluster, inst, number, place.offset, bytes, exec.warp, lane);
  return true;
}

/// [destination] [source] and the coordinates or the size, [mbarrier], the multicast mask.
bool issueLoad(Exec &exec, const Inst &inst, unsigned lane, AsyncOp &op) {
  OperandReader operands(exec, inst, lane);
  uint64_t dst = operands.address(), src = operands.address();
  if (!(isTensor(op) ? operands.tensor(src, op) : operands.range(src, "source address", op)))
    return false;
  uint64_t mbar = operands.address();
  if (IsMulticast::get(inst.select)) {
    op.multicast = operands.number() & 0xffff;
    if (op.multicast == 0 || op.multicast >> exec.cluster->ctas.size()) {
      exec.report(DiagKind::InvalidOperation, inst,
                  llvm::formatv("multicast mask {0:x} in a cluster of {1}", op.multicast,
                                exec.cluster->ctas.size())
                      .str(),
                  lane);
      return false;
    }
  }
  Place to, from;
  if (!findShared(exec, inst, dst, lane, /*ownOnly=*/false, op, to))
    return false;
  op.remote = to.cta;
  op.remoteOffset = to.offset;
  if (op.kind == AsyncOp::SharedCopy) {
    if (!findShared(exec, inst, src, lane, /*ownOnly=*/true, op, from, /*number=*/1))
      return false;
    op.shared = from.cta;
    op.sharedOffset = from.offset;
  }
  op.global = src;
  return attachBarrier(exec, inst, mbar, lane, op);
}

/// [destination] and the coordinates, [source], the size.
bool issueStore(Exec &exec, const Inst &inst, unsigned lane, AsyncOp &op) {
  OperandReader operands(exec, inst, lane);
  op.global = operands.address();
  if (isTensor(op) && !operands.tensor(op.global, op))
    return false;
  uint64_t src = operands.address();
  Place from;
  if ((!isTensor(op) && !operands.range(op.global, "destination address", op)) ||
      !findShared(exec, inst, src, lane, /*ownOnly=*/true, op, from))
    return false;
  op.shared = from.cta;
  op.sharedOffset = from.offset;
  attachGroup(exec, lane, op);
  return true;
}

Step issueBulk(Exec &exec, const Inst &inst) {
  for (uint32_t lanes = exec.active; lanes; lanes &= lanes - 1) {
    unsigned lane = llvm::countr_zero(lanes);
    auto op = makeAsync(exec, inst, CopyKind::get(inst.select), lane);
    op->reduceOp = int(Reduction::get(inst.select)) - 1;
    op->reduceType = uint32_t(ReducedType::get(inst.select));
    bool stores = op->kind == AsyncOp::TensorStore || op->kind == AsyncOp::BulkStore;
    if (!(stores ? issueStore : issueLoad)(exec, inst, lane, *op))
      continue;
    ++exec.cluster->tmaOps;
    addPending(exec, std::move(op));
  }
  // What the warp does from now on is not ordered before the copy.
  exec.warp->release();
  if (exec.cluster->policy == Policy::Eager)
    exec.cluster->interrupt = exec.warp->held = true;
  return Step::Next;
}

/// st.async: the operands are address, values, address, each address two of them.
Step storeAsync(Exec &exec, const Inst &inst) {
  unsigned bytes = ElementBytes::get(inst.select), count = Elements::get(inst.select);
  for (uint32_t lanes = exec.active; lanes; lanes &= lanes - 1) {
    unsigned lane = llvm::countr_zero(lanes);
    auto op = makeAsync(exec, inst, AsyncOp::SharedStore, lane);
    op->bytes = bytes * count;
    op->held.resize(op->bytes);
    for (unsigned k = 0; k < count; ++k) {
      uint64_t value = exec.word(inst, 2 + k, lane);
      memcpy(op->held.data() + k * bytes, &value, bytes);
    }
    uint64_t address = addressOfPair(exec, inst, 0, lane);
    Place p;
    if (misaligned(exec, inst, "shared memory address", address, op->bytes, lane) ||
        !resolveShared(exec, inst, address, op->bytes, lane, false, p))
      continue;
    checkArray(*exec.cluster, inst, 0, p.offset, op->bytes, exec.warp, lane);
    op->remote = p.cta;
    op->remoteOffset = p.offset;
    if (!attachBarrier(exec, inst, addressOfPair(exec, inst, 2 + count, lane), lane, *op))
      continue;
    if (op->mbarCta != op->remote) {
      exec.report(DiagKind::InvalidOperation, inst,
                  "st.async and its mbarrier are in different CTAs of the cluster", lane);
      continue;
    }
    addPending(exec, std::move(op));
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
      fetchTensorMap(exec, inst, addressOfPair(exec, inst, 0, lane), lane, op);
    else
      resolve(exec, inst, Space::Global, addressOfPair(exec, inst, 0, lane),
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

Step waitBulkGroup(Exec &exec, const Inst &inst) {
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

/// [tensorMap, {c0, ...}]
bool tensorOperand(Decoder &d, const Operand &o, unsigned rank) {
  if (!d.addressPair(o, Space::Generic))
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

/// What the modifiers of a copy have said so far.
struct CopyForm {
  bool reduce, tensor, hint;
  unsigned rank;
};

bool decodePrefetch(Decoder &d, const CopyForm &form) {
  const auto &o = d.s->operands;
  d.take("L2");
  if (!d.take("global"))
    return d.refuse("in this form is not modelled");
  d.inst.fn = &prefetch;
  d.inst.select |= CopyKind::make(form.tensor ? AsyncOp::TensorLoad : AsyncOp::BulkLoad);
  if (!d.count((form.tensor ? 1 : 2) + form.hint))
    return false;
  return form.tensor ? tensorOperand(d, o[0], form.rank)
                     : d.addressPair(o[0], Space::Global) && d.src(o[1], Ty::U32);
}

/// The operands of a copy into shared memory.
bool decodeLoad(Decoder &d, const CopyForm &form, bool fromShared, bool multicast) {
  const auto &o = d.s->operands;
  d.inst.select |= CopyKind::make(form.tensor  ? AsyncOp::TensorLoad
                                  : fromShared ? AsyncOp::SharedCopy
                                               : AsyncOp::BulkLoad);
  if ((form.tensor && (fromShared || form.reduce)) ||
      !d.count((form.tensor ? 3 : 4) + multicast + form.hint))
    return d.refuse("in this form is not modelled");
  if (!d.addressPair(o[0], Space::Shared))
    return false;
  unsigned at = 2;
  if (form.tensor) {
    if (!tensorOperand(d, o[1], form.rank))
      return false;
  } else if (!d.addressPair(o[1], fromShared ? Space::Shared : Space::Global) ||
             !d.src(o[at++], Ty::U32)) {
    return false;
  }
  return d.addressPair(o[at], Space::Shared) && (!multicast || d.src(o[at + 1], Ty::B16));
}

/// The operands of a copy out of it.
bool decodeStore(Decoder &d, const CopyForm &form) {
  const auto &o = d.s->operands;
  d.inst.select |= CopyKind::make(form.tensor ? AsyncOp::TensorStore : AsyncOp::BulkStore);
  if (!d.count((form.tensor ? 2 : 3) + form.hint))
    return false;
  if (!(form.tensor ? tensorOperand(d, o[0], form.rank) : d.addressPair(o[0], Space::Global)))
    return false;
  return d.addressPair(o[1], Space::Shared) && (form.tensor || d.src(o[2], Ty::U32));
}

bool decodeCopy(Decoder &d, const CopyForm &form) {
  d.inst.fn = &issueBulk;
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
  if (form.reduce && !decodeReduce(d, form.tensor))
    return false;
  return toShared ? decodeLoad(d, form, fromShared, multicast) : decodeStore(d, form);
}

} // namespace

bool tessera::sim::detail::decodeBulk(Decoder &d, StringRef opcode) {
  if (opcode != "cp" || !d.has("bulk"))
    return false;
  CopyForm form = {};
  form.reduce = d.take("reduce");
  d.take("async");
  d.take("bulk");
  d.inst.flags |= FlagCounted;
  if (d.has("wait_group"))
    d.inst.select = d.take("read");
  if (std::optional<bool> decoded = decodeGroup(d, &commitGroup, &waitBulkGroup))
    return *decoded;
  bool isPrefetch = d.take("prefetch");
  form.tensor = d.take("tensor");
  if (form.tensor) {
    for (unsigned r = 1; r <= 5; ++r)
      if (d.take((llvm::Twine(r) + "d").str()))
        form.rank = r;
    d.take("tile");
    if (!form.rank)
      return d.refuse("needs a number of dimensions");
  }
  d.inst.select = Rank::make(form.rank);
  form.hint = d.take("L2::cache_hint");
  return isPrefetch ? decodePrefetch(d, form) : decodeCopy(d, form);
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
  unsigned count = d.takeNumber("v");
  count = count ? count : 1;
  Ty ty = d.takeType();
  unsigned bytes = tyBits(ty) / 8;
  bool isModelled = (bytes == 4 || bytes == 8) && bytes * count <= 32 && llvm::isPowerOf2_32(count);
  if (!isModelled || !d.count(3))
    return d.refuse("with these operands is not modelled");
  d.inst.select = ElementBytes::make(bytes) | Elements::make(count);
  return d.addressPair(o[0], Space::Shared) && d.vectorOf(o[1], count, ty, false, true) &&
         d.addressPair(o[2], Space::Shared);
}
