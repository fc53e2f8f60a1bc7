//===- RoleProgram.h - Roles as steps that pipes hold up -------------------===//
//
// What is left of a role when only pipes, meetings and the decisions around them count: a graph of
// steps. Roles that a pipe joins are slices of one program and decide alike, so that their loops
// and conditionals around its fills and reads go in pairs, which have one number.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_ANALYSIS_ROLEPROGRAM_H
#define TESSERA_PASSES_ANALYSIS_ROLEPROGRAM_H

#include "dialects/Hop/Hop.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SetVector.h"

namespace tessera {

/// What joins roles: a pipe, or barriers at which they meet (hop-retry).
struct Channel {
  mlir::Value value;
  /// By number. Those that meet are readers.
  llvm::SmallVector<unsigned> fillers, readers;

  llvm::StringRef getLabel() const;
};

/// The roles of a kernel and their channels, which steps name by number.
struct RoleGraph {
  explicit RoleGraph(hop::KernelOp kernel);

  hop::RoleOp getRole(unsigned role) const { return roles[role]; }
  std::string nameOf(unsigned role) const { return ("@" + getRole(role).getSymName()).str(); }

  /// Without those that hold nobody up: they get values from a pipe of their own until one says
  /// that it was the last.
  llvm::SmallVector<hop::RoleOp> roles;
  llvm::SmallVector<Channel> channels;
  llvm::DenseMap<mlir::Value, unsigned> numbers; ///< of channels

private:
  void addEvents(unsigned role);
};

/// The loops and conditionals of the roles around fills, reads and meetings. Those that belong
/// together have the same number.
class Decisions {
public:
  /// Pairs those of the roles that a channel joins; reports one that has no partner.
  mlir::LogicalResult run(const RoleGraph &graph);

  unsigned of(mlir::Operation *op) const { return numbers.lookup(op); }
  /// Whether `op` is a further piece of a loop that another role has whole.
  bool isFurtherPiece(mlir::Operation *op) const { return further.contains(op); }
  unsigned size() const { return count; }

private:
  using Controls = llvm::SmallVector<mlir::Operation *>;

  mlir::LogicalResult pair(const RoleGraph &graph, const Channel &channel, unsigned first,
                           unsigned second);
  mlir::Operation *pair(mlir::Region &first, mlir::Region &second, mlir::Value channel);
  mlir::Operation *pairOne(mlir::Operation *first, mlir::Operation *second, mlir::Value channel);
  mlir::LogicalResult number(const RoleGraph &graph);

  llvm::EquivalenceClasses<mlir::Operation *> alike;
  llvm::DenseMap<mlir::Operation *, unsigned> numbers;
  llvm::DenseSet<mlir::Operation *> further;
  unsigned count = 0;
};

/// A step of a role that others may hold up, or that decides which step comes next.
struct Step {
  enum class Kind {
    End,
    Fill,    ///< takes the next slot of the pipe `channel` and fills it
    Acquire, ///< takes the next slot
    Commit,  ///< has filled the first slot that the role has taken
    Wait,    ///< waits for the next filled slot
    Peek,    ///< waits for the next filled slot and leaves it
    Release, ///< gives the slot of the wait `wait` back
    Forget,  ///< loads that were started ahead in a loop end with it
    Meet,    ///< waits until the other roles are at theirs
    Branch,  ///< goes to the first or the second of `next`
  };
  Kind kind;
  mlir::Operation *op = nullptr;
  unsigned channel = 0;
  unsigned wait = 0;
  unsigned decision = 0;
  std::array<unsigned, 2> next = {0, 0};
};

/// The steps of a role.
class RoleProgram {
public:
  RoleProgram(const RoleGraph &graph, unsigned role, const Decisions &decisions);

  const Step &operator[](unsigned i) const { return steps[i]; }
  unsigned getEntry() const { return entry; }
  mlir::Operation *getWait(unsigned number) const { return waits[number]; }
  bool takes(unsigned decision) const { return decides.contains(decision); }

private:
  /// These build backwards: what they return goes on with `follow`.
  unsigned build(mlir::Region &region, unsigned follow);
  unsigned build(mlir::Operation *op, unsigned follow);
  unsigned buildControl(mlir::Operation *op, unsigned follow);
  unsigned buildLoop(mlir::Operation *op, mlir::Region &body, unsigned follow);

  unsigned add(Step step);
  unsigned addStep(Step::Kind kind, mlir::Operation *op, mlir::Operation *wait, unsigned follow);
  unsigned addBranch(mlir::Operation *op);
  bool fillsItself(unsigned channel) const;

  const RoleGraph &graph;
  const Decisions &decisions;
  unsigned role;
  llvm::SmallVector<Step> steps;
  llvm::SetVector<mlir::Operation *> waits;
  llvm::DenseSet<unsigned> decides;
  unsigned entry = 0;
};

} // namespace tessera

#endif // TESSERA_PASSES_ANALYSIS_ROLEPROGRAM_H
