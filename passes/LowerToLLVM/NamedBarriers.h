//===- NamedBarriers.h - Who has which named barrier ----------------------===//
//
// A thread block has 16 named barriers (PTX ISA 9.7.13.1). Here they are dealt out to all that
// meets at one: the thread block at its start, the turns of warpgroups, the threads of a warpgroup
// and those of a role.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWERTOLLVM_NAMEDBARRIERS_H
#define TESSERA_PASSES_LOWERTOLLVM_NAMEDBARRIERS_H

#include "dialects/Hop/Hop.h"
#include <array>

namespace tessera {

class NamedBarriers {
public:
  /// What meets at the barriers of a role: two of its warpgroups, to pass a turn, or the threads of
  /// one, with a barrier for each warpgroup, or all of its threads at one.
  enum Kind { Turns, Warpgroups, Role };

  /// Deals out the barriers that `kernel` uses; refuses one that uses more than there are.
  static mlir::FailureOr<NamedBarriers> get(hop::KernelOp kernel);

  /// The barrier of the first warpgroup of `role`, or of the role; those of the others follow.
  int64_t of(hop::RoleOp role, Kind kind) const { return first.lookup(role)[kind]; }

  /// The barriers that are used, by number, and what each is for.
  llvm::ArrayRef<std::pair<int64_t, std::string>> getNames() const { return names; }

private:
  bool deal(hop::KernelOp kernel, bool leavesGaps);

  llvm::DenseMap<mlir::Operation *, std::array<int64_t, 3>> first;
  llvm::SmallVector<std::pair<int64_t, std::string>> names;
};

} // namespace tessera

#endif // TESSERA_PASSES_LOWERTOLLVM_NAMEDBARRIERS_H
