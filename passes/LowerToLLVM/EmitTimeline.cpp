//===- EmitTimeline.cpp - Records of the stages of a role -----------------===//
//
// One thread of each warpgroup writes to the memory that TimelineLayout.h
// describes. Its instructions are predicated: a branch between a product and its
// wait would make ptxas serialise the products.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/TimelineLayout.h"
#include "passes/LowerToLLVM/Emitter.h"

using namespace mlir;
using namespace tessera;

/// Finds the block's records, which are those of the first block when it is not recorded.
void Emitter::emitTimelineStart() {
  hop::TimelineOp op = kernel.getTimeline();
  auto special = [&](StringRef name) {
    return intrinsic(("llvm.nvvm.read.ptx.sreg." + name).str(), builder.getI32Type(), {});
  };
  auto multiply = [&](Value a, Value b) -> Value {
    return LLVM::MulOp::create(builder, loc, a, b);
  };
  Value number = add(multiply(special("ctaid.z"), special("nctaid.y")), special("ctaid.y"));
  number = add(multiply(number, special("nctaid.x")), special("ctaid.x"));
  Value slot = add(number, -static_cast<int64_t>(op.getFirst()));
  timeline.isRecorded =
      LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ult, slot, i32(op.getBlocks()));
  slot = LLVM::SelectOp::create(builder, loc, timeline.isRecorded, slot, i32(0));
  timeline.block = mul(slot, kernel.getNumRecords() * timeline::recordBytes(op.getEvents()));
  timeline.memory = LLVM::PtrToIntOp::create(builder, loc, builder.getI64Type(),
                                             function.getArgument(parameters.timelinePosition()));
  // In the entry block, where LLVM makes a register of it.
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&function.getBody().front());
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  timeline.count =
      LLVM::AllocaOp::create(builder, loc, pointer, builder.getI32Type(), i32(1), /*alignment=*/4);
}

void Emitter::emitTimelineRoleStart() {
  int64_t bytes = timeline::recordBytes(kernel.getTimeline().getEvents());
  Value offset = add(timeline.block, mul(add(thread.warpgroup, firstRecord), bytes));
  timeline.record =
      add(timeline.memory, LLVM::ZExtOp::create(builder, loc, builder.getI64Type(), offset));
  timeline.writes = timeline.isRecorded;
  if (thread.chosen) {
    timeline.writes = LLVM::AndOp::create(builder, loc, timeline.isRecorded, thread.chosen);
  } else if (!role.isElected()) {
    Value leads =
        LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, thread.isLeader, i32(0));
    timeline.writes = LLVM::AndOp::create(builder, loc, timeline.isRecorded, leads);
  }
  LLVM::StoreOp::create(builder, loc, i32(0), timeline.count);
  assembly("{\n.reg .b64 time;\n.reg .b32 sm;\n"
           "@$1 mov.u64 time, %globaltimer;\n@$1 st.global.b64 [$0+" +
               Twine(timeline::startTimeOffset) +
               "], time;\n@$1 mov.u64 time, %clock64;\n@$1 st.global.b64 [$0+" +
               Twine(timeline::startClockOffset) +
               "], time;\n@$1 mov.u32 sm, %smid;\n@$1 st.global.b32 [$0+" +
               Twine(timeline::smOffset) + "], sm;\n}",
           "l,b", {timeline.record, timeline.writes}, {});
}

void Emitter::emitTimelineRoleEnd() {
  Value count = LLVM::LoadOp::create(builder, loc, builder.getI32Type(), timeline.count);
  assembly("{\n.reg .b64 time;\n@$1 mov.u64 time, %clock64;\n@$1 st.global.b64 [$0+" +
               Twine(timeline::endClockOffset) +
               "], time;\n@$1 mov.u64 time, %globaltimer;\n@$1 st.global.b64 [$0+" +
               Twine(timeline::endTimeOffset) + "], time;\n@$1 st.global.b32 [$0+" +
               Twine(timeline::countOffset) + "], $2;\n}",
           "l,b,r", {timeline.record, timeline.writes, count}, {});
}

void Emitter::emitMark(hop::MarkOp op) {
  Value count = LLVM::LoadOp::create(builder, loc, builder.getI32Type(), timeline.count);
  LLVM::StoreOp::create(builder, loc, add(count, 1), timeline.count);
  Value place = LLVM::AndOp::create(builder, loc, count, i32(kernel.getTimeline().getEvents() - 1));
  Value offset =
      LLVM::ZExtOp::create(builder, loc, builder.getI64Type(), mul(place, timeline::eventBytes));
  Value event = i32(op.getStage());
  if (op.getAt())
    event = add(LLVM::ShlOp::create(builder, loc, scalar(op.getAt()), i32(timeline::stageBits)),
                op.getStage());
  assembly("{\n.reg .b32 time;\n@$2 mov.u32 time, %clock;\n@$2 st.global.v2.b32 [$0+" +
               Twine(timeline::headerBytes) + "], {time, $1};\n}",
           "l,r,b", {add(timeline.record, offset), event, timeline.writes}, {});
}
