//===- NamedBarriers.cpp - Who has which named barrier --------------------===//

#include "passes/LowerToLLVM/NamedBarriers.h"
#include "dialects/Hop/Machine.h"

using namespace mlir;
using namespace tessera;

/// Whether a role meets at barriers of `kind`.
static bool uses(hop::RoleOp role, NamedBarriers::Kind kind) {
  return role
      .walk([&](Operation *op) {
        auto combine = dyn_cast<hop::CombineOp>(op);
        auto scan = dyn_cast<hop::ScanOp>(op);
        if (combine || scan) {
          bool isAlone = combine ? combine.isWithinWarpgroups() : scan.isWithinWarpgroups();
          return kind == (isAlone ? NamedBarriers::Warpgroups : NamedBarriers::Role)
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        }
        bool isUse = kind == NamedBarriers::Turns
                         ? isa<hop::TurnStartOp, hop::TurnWaitOp, hop::TurnPassOp>(op)
                     : kind == NamedBarriers::Warpgroups
                         ? isa<hop::WarpgroupSyncOp>(op)
                         : isa<hop::RoleSyncOp, hop::CombineAllOp, tile::AnyOp>(op);
        return isUse ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// "consumer 1" for a warpgroup of a role.
static std::string nameOf(hop::RoleOp role, int64_t warpgroup) {
  return (role.getSymName() + " " + Twine(warpgroup)).str();
}

/// Numbers the barriers role by role. With `leavesGaps` the numbers of a role do not depend on
/// which of its barriers are used, so that a schedule with turns and one without agree in those of
/// all else. Returns whether there are enough.
bool NamedBarriers::deal(hop::KernelOp kernel, bool leavesGaps) {
  first.clear();
  names = {{0, "start"}};
  int64_t next = 1;
  for (auto role : kernel.getBody().getOps<hop::RoleOp>()) {
    if (role.isElected())
      continue;
    for (Kind kind : {Turns, Warpgroups, Role}) {
      int64_t count = kind == Role ? 1 : role.getNumWarpgroups();
      bool isUsed = uses(role, kind);
      first[role][kind] = next;
      for (int64_t i = 0; isUsed && i < count; ++i)
        names.emplace_back(next + i, kind == Role    ? "all of " + role.getSymName().str()
                                     : kind == Turns ? "turn of " + nameOf(role, i)
                                                     : "warpgroup of " + nameOf(role, i));
      if (isUsed || leavesGaps)
        next += count;
    }
  }
  return names.back().first < hopper::namedBarriers;
}

FailureOr<NamedBarriers> NamedBarriers::get(hop::KernelOp kernel) {
  NamedBarriers barriers;
  if (barriers.deal(kernel, /*leavesGaps=*/true) || barriers.deal(kernel, /*leavesGaps=*/false))
    return barriers;
  InFlightDiagnostic diag = kernel.emitError("uses ")
                            << barriers.names.size() << " named barriers, and a thread block has "
                            << hopper::namedBarriers
                            << "; use fewer warpgroups, or pingpong = false, which takes no turns";
  for (auto &[number, name] : ArrayRef(barriers.names).take_front(hopper::namedBarriers))
    diag.attachNote() << "barrier " << number << ": " << name;
  return diag;
}
