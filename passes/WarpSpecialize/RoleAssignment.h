//===- RoleAssignment.h - Which operation belongs to which role --------------===//
//
// Each operation of a tile program, and each value that a loop or conditional hands on,
// gets the set of roles that run it. The sets follow from dependences:
//
//   * a role that fills a pipe runs what the addresses of its loads are computed from, and one
//     that stores what comes through a pipe those of its stores;
//   * a role that makes sums apart runs their dots and stores, and what they need. There what makes
//     the computed operand is a wait;
//   * a role that finds bounds runs what these are computed from. In all others they come through a
//     pipe;
//   * a role that transposes tiles takes part in their loads alone;
//   * a role that converts operands runs what makes them of a loaded tile, for which it waits;
//   * consumers of different programs run what the division of the dots gives each. There what
//     another one makes is a wait;
//   * every other operation is of the computing role, with what it needs in turn. There a
//     load through a pipe is a wait, and a store through one a fill: neither needs an address;
//   * a loop or conditional is of each role that runs something in it. A role that fills or
//     reads a pipe takes part in each of its loads, so that the n-th fill meets the n-th
//     read.
//
// Index arithmetic that two roles need is in both: it is cheaper than communication.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_WARPSPECIALIZE_ROLEASSIGNMENT_H
#define TESSERA_PASSES_WARPSPECIALIZE_ROLEASSIGNMENT_H

#include "passes/Analysis/ScfFlow.h"
#include "passes/WarpSpecialize/PipePlan.h"
#include "llvm/ADT/SmallBitVector.h"

namespace tessera {

/// What the pass decides about a role before it has a program.
struct RoleSpec {
  std::string name;
  RoleTask task = RoleTask::Compute;
  /// Those that run it; nothing for one thread, which has no tiles in registers, and for warps.
  std::optional<int64_t> warpgroups;
  std::optional<int64_t> registers;
  /// Whole warps of the warpgroup that it shares with those of one thread.
  std::optional<int64_t> warps = std::nullopt;
  /// Which part of the plan's division it runs.
  std::optional<unsigned> part = std::nullopt;

  bool isElected() const { return !warpgroups && !warps; }
};

/// The bound of a loop that `role` runs: the longest of the cluster where it loads for all blocks.
inline mlir::Value boundOf(tile::CommonBoundOp bound, const RoleSpec &role) {
  return role.task == RoleTask::Load ? bound.getLoads() : bound.getOwn();
}

class RoleAssignment {
public:
  /// Divides `kernel` among `roles`: the plan says which role fills which pipe, and `rest` is the
  /// role of all else. Reports what a role cannot run.
  static mlir::FailureOr<RoleAssignment> get(tile::KernelOp kernel, PipePlan &plan,
                                             llvm::ArrayRef<RoleSpec> roles, unsigned rest);

  bool isLoader(unsigned role) const { return roles[role].task == RoleTask::Load; }
  bool runs(unsigned role, mlir::Operation *op) const { return contains(operations, op, role); }
  /// Whether the role has the value. For what a loop carries, ask about the loop's block argument.
  bool has(unsigned role, mlir::Value value) const { return contains(values, value, role); }
  bool fills(unsigned role, mlir::Operation *access) const {
    return plan->fillerOf(plan->pipeOf(access)) == role;
  }
  bool reads(unsigned role, PipeKey pipe) const { return contains(readers, pipe, role); }
  /// Whether the role only brings into the cache what other roles load: it has no use for it.
  bool prefetches(unsigned role, tile::LoadOp load) const {
    return contains(prefetched, load.getOperation(), role) && !has(role, load.getResult());
  }

private:
  using RoleSet = llvm::SmallBitVector;

  RoleAssignment(tile::KernelOp kernel, PipePlan &plan, llvm::ArrayRef<RoleSpec> roles)
      : kernel(kernel), plan(&plan), roles(roles) {}

  template <typename Key>
  static bool contains(const llvm::DenseMap<Key, RoleSet> &sets, Key key, unsigned role) {
    auto found = sets.find(key);
    return found != sets.end() && found->second.test(role);
  }
  template <typename Key>
  bool insert(llvm::DenseMap<Key, RoleSet> &sets, Key key, unsigned role);

  mlir::LogicalResult assign(mlir::Operation *op, unsigned role);
  mlir::LogicalResult assignCopy(mlir::Operation *access, mlir::ValueRange indices, unsigned role);
  mlir::LogicalResult assignPrefetches(unsigned role);
  bool knowsPlace(tile::LoadOp load, unsigned role) const;
  mlir::LogicalResult assignResult(tile::StoreOp store, unsigned role);
  mlir::LogicalResult assignReads(mlir::Operation *access, unsigned role);
  mlir::LogicalResult assignSums(unsigned role);
  mlir::LogicalResult assignTransposes(unsigned role);
  mlir::LogicalResult assignMade(unsigned role);
  mlir::LogicalResult assignPart(unsigned role);
  mlir::LogicalResult assignHelp(unsigned role);
  mlir::LogicalResult assignRest(unsigned role);
  mlir::LogicalResult assignControl(mlir::Operation *op, unsigned role);
  mlir::LogicalResult need(mlir::Value value, unsigned role);
  mlir::LogicalResult needHandover(const Handover &handover, unsigned role);
  mlir::LogicalResult needAll(mlir::ValueRange values, unsigned role);

  tile::KernelOp kernel;
  PipePlan *plan;
  llvm::ArrayRef<RoleSpec> roles;
  llvm::DenseMap<mlir::Operation *, RoleSet> operations, prefetched;
  llvm::DenseMap<mlir::Value, RoleSet> values;
  llvm::DenseMap<PipeKey, RoleSet> readers;
};

} // namespace tessera

#endif // TESSERA_PASSES_WARPSPECIALIZE_ROLEASSIGNMENT_H
