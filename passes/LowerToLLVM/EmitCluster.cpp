//===- EmitCluster.cpp - Tiles that go from block to block ----------------===//

#include "dialects/Hop/Machine.h"
#include "passes/LowerToLLVM/Emitter.h"

using namespace mlir;
using namespace tessera;

namespace {
/// Where the registers of a tile lie in the memory of another block.
struct SentPlaces {
  int64_t together;                 ///< registers that lie side by side
  llvm::SmallVector<int64_t> bytes; ///< of each such group, from the thread's first
};
} // namespace

/// Elements of rank 1 lie in their order, those of rank 2 by registers and threads.
static SentPlaces placesOfSent(const hop::FragmentLayout &fragment, int64_t rank, int64_t threads) {
  SentPlaces places;
  int64_t size = fragment.size();
  if (rank == 1) {
    places.together = fragment.getLayoutAttr().getRun() % 2 == 0 && size % 2 == 0 ? 2 : 1;
    for (int64_t i = 0; i < size; i += places.together)
      places.bytes.push_back(hopper::registerBytes * fragment.offset(i, 0));
    return places;
  }
  places.together = size % 4 == 0 ? 4 : size % 2 == 0 ? 2 : 1;
  for (int64_t i = 0; i < size; i += places.together)
    places.bytes.push_back(hopper::registerBytes * threads * i);
  return places;
}

void Emitter::emitFromBlock(hop::FromBlockOp op) {
  auto type = cast<RankedTensorType>(op.getSource().getType());
  hop::FragmentLayout fragment(type);
  hop::LayoutAttr layout = fragment.getLayoutAttr();
  int64_t threads = hopper::warpgroupThreads * role.getNumWarpgroups();
  SentPlaces places = placesOfSent(fragment, type.getRank(), threads);
  Value first, writes;
  if (type.getRank() == 1) {
    first = firstPlace(layout, 0);
    if (layout.getWarpgroups().empty())
      first = add(first, mul(thread.warpgroup, type.getDimSize(0)));
    writes = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, sharerOf(layout), i32(0));
  } else {
    Value number = add(mul(thread.warpgroup, hopper::warpgroupThreads), thread.inGroup);
    first = mul(number, places.together);
  }
  Value place = valueAddress(op.getBuffer(), first);
  auto barriers = op.getBarriers().getDefiningOp<hop::BarriersOp>();
  Value barrier = add(sharedBase, *barriers.getOffset());

  int64_t distance = op.getDistance();
  Value phase = LLVM::AndOp::create(builder, loc, clusterRank(), i32(2 * distance - 1));
  auto isPhase = [&](int64_t number) -> Value {
    return LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, phase, i32(number));
  };
  Value sends = isPhase(distance - 1);
  if (writes)
    sends = LLVM::AndOp::create(builder, loc, sends, writes);
  Values own = elements(op.getSource());
  Block *sent = enterIf(sends);
  sendToBlock(own, places.together, places.bytes, place, barrier, distance);
  LLVM::BrOp::create(builder, loc, sent);
  builder.setInsertionPointToStart(sent);

  Block *after = splitBlock();
  for (Value value : own)
    after->addArgument(value.getType(), loc);
  Block *receives = builder.createBlock(after);
  builder.setInsertionPointToEnd(receives->getPrevNode());
  LLVM::CondBrOp::create(builder, loc, isPhase(2 * distance - 1), receives, ValueRange(), after,
                         own);
  builder.setInsertionPointToEnd(receives);
  int64_t bytes = hopper::registerBytes * hop::FromBlockOp::getSlots(type, role);
  receiveFromBlock(barrier, bytes);
  Values received;
  for (int64_t byte : places.bytes)
    received.append(loadShared(place, byte, places.together));
  LLVM::BrOp::create(builder, loc, received, after);
  builder.setInsertionPointToStart(after);
  bind(op, Values(after->getArguments()));
}

/// Stores registers to the same place in the block `distance` on, whose mbarrier counts them. It
/// lives until it has them, and this block need not.
void Emitter::sendToBlock(ValueRange values, int64_t together, ArrayRef<int64_t> bytes, Value place,
                          Value barrier, int64_t distance) {
  Value target = add(clusterRank(), distance);
  auto remote = [&](Value address) {
    return assembly("mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r", {address, target},
                    TypeRange(builder.getI32Type()))
        .front();
  };
  Value there = remote(place), counter = remote(barrier);
  for (auto [i, byte] : llvm::enumerate(bytes)) {
    Values operands = {there, counter};
    std::string constraints = "r,r", list;
    for (int64_t j = 0; j < together; ++j) {
      operands.push_back(values[i * together + j]);
      constraints += ",f";
      list += (j ? ", $" : "$") + std::to_string(2 + j);
    }
    StringRef vector = together == 4 ? ".v4" : together == 2 ? ".v2" : "";
    assembly("st.async.shared::cluster.mbarrier::complete_tx::bytes" + vector + ".b32 [$0+" +
                 Twine(byte) + "], " + (together == 1 ? list : "{" + list + "}") + ", [$1];",
             constraints, operands, {});
  }
}

/// Waits for `bytes` of another block, of which some may have come before.
void Emitter::receiveFromBlock(Value barrier, int64_t bytes) {
  Value isFirst =
      LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, thread.warpgroup, i32(0));
  Value leads =
      LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, thread.isLeader, i32(0));
  Value expects = toI32(LLVM::AndOp::create(builder, loc, isFirst, leads));
  assembly("{\n.reg .pred p, done;\nsetp.ne.b32 p, $2, 0;\n"
           "@p mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [$0], $1;\n"
           "again:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [$0], 0;\n"
           "@!done bra again;\n}",
           "r,r,r", {barrier, i32(bytes), expects}, {});
}
