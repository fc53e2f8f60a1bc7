//===- Hop.h - The hop dialect --------------------------------------------===//
//
// Roles, pipes, flights and layouts: what a Hopper multiprocessor does. See
// HopDialect.td for what it means.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECTS_HOP_HOP_H
#define TESSERA_DIALECTS_HOP_HOP_H

#include "dialects/Hop/LayoutDigit.h"
#include "dialects/Hop/RegisterPool.h"
#include "dialects/Tile/Tile.h"
#include "mlir/IR/TensorEncoding.h"

#include "dialects/Hop/HopEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Hop/HopTypes.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Hop/HopAttrs.h.inc"
// After the attributes, of which the dialect has a discardable one.
#include "dialects/Hop/HopDialect.h.inc"
namespace mlir::scf {
class IfOp;
}

namespace tessera::hop {
class TimelineOp;
/// Refuses `op` where hop.elected chooses one thread of its role.
mlir::LogicalResult verifyOnAllThreads(mlir::Operation *op);

/// Refuses `op` in a role of one thread, or where hop.elected chooses one.
mlir::LogicalResult verifyOnWarps(mlir::Operation *op);

/// Refuses `op` there, and in a role that has some warps of a warpgroup.
mlir::LogicalResult verifyOnWarpgroups(mlir::Operation *op);

/// Refuses `op` where all threads of a role with warpgroups run it.
mlir::LogicalResult verifyOnOneThread(mlir::Operation *op);

/// The threads of a role: `warpgroups(2)`, `warps(3)` or `elected`.
mlir::ParseResult parseRoleThreads(mlir::OpAsmParser &parser, mlir::IntegerAttr &warpgroups,
                                   mlir::IntegerAttr &warps);
void printRoleThreads(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                      mlir::IntegerAttr warpgroups, mlir::IntegerAttr warps);

/// Whether `condition` holds in at most one thread of its role, that of hop.elected.
bool choosesOneThread(mlir::Value condition);

/// The conditional around `op` that one thread of the role enters; null where all threads come.
mlir::scf::IfOp findElection(mlir::Operation *op);

/// See HopOpBase.td.
template <typename Op>
class OnWarpgroups : public mlir::OpTrait::TraitBase<Op, OnWarpgroups> {
public:
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) { return verifyOnWarpgroups(op); }
};
template <typename Op>
class OnWarps : public mlir::OpTrait::TraitBase<Op, OnWarps> {
public:
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) { return verifyOnWarps(op); }
};
template <typename Op>
class OnAllThreads : public mlir::OpTrait::TraitBase<Op, OnAllThreads> {
public:
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) { return verifyOnAllThreads(op); }
};
template <typename Op>
class OnOneThread : public mlir::OpTrait::TraitBase<Op, OnOneThread> {
public:
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) { return verifyOnOneThread(op); }
};
template <typename Op>
class FillsPipe : public mlir::OpTrait::TraitBase<Op, FillsPipe> {};
template <typename Op>
class ReadsPipe : public mlir::OpTrait::TraitBase<Op, ReadsPipe> {};

/// Refuses a place that the bytes of `op`, a SharedMemoryOpInterface, cannot have.
mlir::LogicalResult verifyPlace(mlir::Operation *op);
} // namespace tessera::hop

#include "dialects/Hop/HopInterfaces.h.inc"

namespace tessera::hop {

/// Whether a slot of `tile` is for one number, of a pipe whose fills are hop.pipe.put.
bool holdsValue(mlir::RankedTensorType tile);

/// The layout of a tile in registers; null for a tensor without one.
LayoutAttr getLayout(mlir::Type type);

/// `type` with the given layout.
mlir::RankedTensorType withLayout(mlir::RankedTensorType type, LayoutAttr layout);

/// `type`, a tile of rank 1, with its layout in which threads hold whole elements.
mlir::Type wholeOf(mlir::Type type);

} // namespace tessera::hop

#define GET_OP_CLASSES
#include "dialects/Hop/HopOps.h.inc"

namespace tessera::hop {

/// Warpgroups of a thread block that run one role, or the one whose warps several roles share.
struct RoleTeam {
  int64_t first, warpgroups;
  llvm::SmallVector<RoleOp, 1> roles;

  bool isShared() const { return RoleOp(roles.front()).sharesWarpgroup(); }
};

/// The warpgroups of a kernel in their order. The one that roles share is where the first of them
/// stands.
llvm::SmallVector<RoleTeam> getTeams(KernelOp kernel);

/// The roles that fill the slots of a pipe, and those that wait for them, in their order.
llvm::SmallVector<RoleOp> getFillers(PipeCreateOp pipe);
llvm::SmallVector<RoleOp> getReaders(PipeCreateOp pipe);

/// What the warpgroups of a kernel ask for.
llvm::SmallVector<RegisterRequest> getRegisterRequests(KernelOp kernel);

/// Thread blocks that a multiprocessor holds at a time, as far as registers and, where it is known,
/// shared memory decide.
int64_t residentBlocks(KernelOp kernel);

} // namespace tessera::hop

#endif // TESSERA_DIALECTS_HOP_HOP_H
