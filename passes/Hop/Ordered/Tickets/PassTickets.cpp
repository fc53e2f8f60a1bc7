//===- PassTickets.cpp - Tickets passed on by a thread of its own ---------===//
//
// A step of hop-schedule-tickets.
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/Machine.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Analysis/PipeSlots.h"
#include "passes/Hop/Ordered/Tickets/Tickets.h"

using namespace mlir;
using namespace tessera;

namespace {

/// The role of one thread that adds in loops and passes all tickets of a kernel on.
struct Writer {
  hop::RoleOp role;
  SmallVector<hop::TicketPassOp> passes;
};

/// The writer of `kernel`, if another warp is free beside it and a number says which ticket it is.
std::optional<Writer> findWriter(hop::KernelOp kernel) {
  Writer writer;
  int64_t warps = 0;
  for (hop::RoleOp role : kernel.getBody().getOps<hop::RoleOp>()) {
    SmallVector<hop::TicketPassOp> passes;
    role.walk([&](hop::TicketPassOp pass) { passes.push_back(pass); });
    warps += role.sharesWarpgroup() ? role.getNumWarps() : 0;
    if (passes.empty())
      continue;
    if (writer.role || !role.isElected())
      return std::nullopt;
    writer = {role, passes};
  }
  if (!writer.role || warps >= hopper::warpgroupWarps)
    return std::nullopt;
  hop::TicketPassOp first = writer.passes.front();
  bool isStep = llvm::all_of(writer.passes, [&](hop::TicketPassOp pass) {
    return pass->getParentOfType<scf::ForOp>() && !pass.getCondition() &&
           pass.getView() == first.getView() && pass.getTileAttr() == first.getTileAttr();
  });
  return isStep ? std::optional(writer) : std::nullopt;
}

/// Writes the role that passes on what it gets from a pipe, and what the writer puts there.
class Passer {
public:
  Passer(hop::KernelOp kernel, Writer writer)
      : kernel(kernel), writer(writer), builder(kernel.getContext()), loc(writer.role.getLoc()) {}

  void write();

private:
  void createPipe();
  void putTickets();
  void createRole();
  Value get() { return hop::PipeGetOp::create(builder, loc, builder.getI32Type(), pipe); }
  void put(Value value) { hop::PipePutOp::create(builder, loc, pipe, value); }
  Value constant(int64_t value) {
    return arith::ConstantIntOp::create(builder, loc, builder.getI32Type(), value);
  }
  Value cast(Value value, Type type) {
    return arith::IndexCastOp::create(builder, loc, type, value);
  }

  hop::KernelOp kernel;
  Writer writer;
  OpBuilder builder;
  Location loc;
  Value pipe;
};

void Passer::createPipe() {
  auto roles = kernel.getBody().getOps<hop::RoleOp>();
  builder.setInsertionPoint(*roles.begin());
  auto value = RankedTensorType::get({1}, builder.getI32Type());
  auto type = hop::PipeType::get(kernel.getContext(), value, slotsOfPasses);
  pipe = hop::PipeCreateOp::create(builder, loc, type, "passes", /*multicast=*/false);
}

/// The number and the value of each ticket whose copies have been written; behind the last one a
/// number that no ticket has.
void Passer::putTickets() {
  for (hop::TicketPassOp pass : writer.passes) {
    builder.setInsertionPoint(pass);
    hop::BulkStoreWaitOp::create(builder, loc);
    put(cast(pass.getNumber(), builder.getI32Type()));
    put(cast(pass.getValue(), builder.getI32Type()));
  }
  builder.setInsertionPointToEnd(&writer.role.getBody().front());
  put(constant(-1));
}

void Passer::createRole() {
  hop::TicketPassOp like = writer.passes.front();
  builder.setInsertionPointAfter(writer.role);
  auto role = ::cast<hop::RoleOp>(builder.cloneWithoutRegions(*writer.role.getOperation()));
  role.setSymName("passer");
  Type i32 = builder.getI32Type(), index = builder.getIndexType();
  Block *body = builder.createBlock(&role.getBody(), {}, {index}, {loc});
  builder.setInsertionPointToEnd(body);
  auto loop = scf::WhileOp::create(builder, loc, TypeRange{i32}, ValueRange{get()});
  Block *before = builder.createBlock(&loop.getBefore(), {}, {i32}, {loc});
  Value isTicket = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge,
                                         before->getArgument(0), constant(0));
  scf::ConditionOp::create(builder, loc, isTicket, before->getArguments());
  Block *after = builder.createBlock(&loop.getAfter(), {}, {i32}, {loc});
  Value value = cast(get(), index), number = cast(after->getArgument(0), index);
  hop::TicketPassOp::create(builder, loc, like.getView(), number, like.getTile(), value,
                            /*condition=*/Value());
  scf::YieldOp::create(builder, loc, get());
}

void Passer::write() {
  createPipe();
  putTickets();
  createRole();
  for (hop::TicketPassOp pass : writer.passes)
    pass.erase();
  writer.role.emitRemark("another thread passes its tickets on");
}

} // namespace

void tessera::passTickets(hop::KernelOp kernel) {
  if (std::optional<Writer> writer = findWriter(kernel))
    Passer(kernel, *writer).write();
}
