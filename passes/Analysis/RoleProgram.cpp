//===- RoleProgram.cpp - Roles as steps that pipes hold up -----------------===//
//
// See RoleProgram.h.
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/RoleProgram.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tessera;

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

/// Takes or gives a slot, or meets; the channel is its first operand.
static bool isEvent(Operation *op) {
  return op->hasTrait<hop::FillsPipe>() || op->hasTrait<hop::ReadsPipe>() ||
         isa<hop::PipeReleaseOp, hop::PipeCommitOp, hop::BarrierWaitOp>(op);
}

/// Whether a role that joins in `channel` takes part in it in `op`. A release is no part: the other
/// roles see it as a slot that comes free.
static bool holds(Operation *op, Value channel) {
  auto find = [&](Operation *inner) {
    bool takesPart =
        isEvent(inner) && !isa<hop::PipeReleaseOp>(inner) && inner->getOperand(0) == channel;
    return takesPart ? WalkResult::interrupt() : WalkResult::advance();
  };
  return op->walk(find).wasInterrupted();
}

static bool holdsEvents(Operation *op) {
  auto find = [](Operation *inner) {
    return isEvent(inner) ? WalkResult::interrupt() : WalkResult::advance();
  };
  return op->walk(find).wasInterrupted();
}

/// Whether one thread of a role with warpgroups does `op`, for all of them.
static bool isOfOneThread(Operation *op) {
  auto conditional = dyn_cast<scf::IfOp>(op);
  return conditional && !conditional.elseBlock() &&
         hop::choosesOneThread(conditional.getCondition());
}

/// Whether a role only lets tiles pass in `op`, as tile-warp-specialize makes of tile.skip_loads.
/// The proof is of the block of a cluster whose loops are the longest, which has none to pass; what
/// is loaded beyond the loops of another block is the business of tile-even-loops.
static bool skipsTiles(Operation *op) {
  auto loop = dyn_cast<scf::ForOp>(op);
  return loop && !loop.getBody()->getOps<hop::WarpgroupSyncOp>().empty() &&
         llvm::all_of(loop.getBody()->without_terminator(), [](Operation &inner) {
           return isa<hop::PipeReleaseOp, hop::WarpgroupSyncOp>(inner) ||
                  (isa<hop::PipeWaitOp>(inner) && inner.hasOneUse());
         });
}

static bool isControl(Operation *op) {
  return op->getNumRegions() != 0 && !isOfOneThread(op) && !skipsTiles(op);
}

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

StringRef Channel::getLabel() const {
  if (auto pipe = value.getDefiningOp<hop::PipeCreateOp>())
    return pipe.getLabel();
  return value.getDefiningOp<hop::BarriersOp>().getLabel();
}

RoleGraph::RoleGraph(hop::KernelOp kernel) : roles(kernel.getBody().getOps<hop::RoleOp>()) {
  for (auto pipe : kernel.getBody().getOps<hop::PipeCreateOp>()) {
    numbers[pipe.getPipe()] = channels.size();
    channels.push_back({pipe.getPipe(), {}, {}});
  }
  for (unsigned i = 0; i < roles.size(); ++i)
    addEvents(i);
}

void RoleGraph::addEvents(unsigned role) {
  auto addOnce = [&](SmallVector<unsigned> &list) {
    if (!llvm::is_contained(list, role))
      list.push_back(role);
  };
  auto reads = [&](Operation *op) { return op->hasTrait<hop::ReadsPipe>(); };
  roles[role].walk([&](Operation *op) {
    if (isa<hop::BarrierWaitOp>(op) &&
        numbers.try_emplace(op->getOperand(0), channels.size()).second)
      channels.push_back({op->getOperand(0), {}, {}});
    if (op->hasTrait<hop::FillsPipe>())
      addOnce(channels[numbers.lookup(op->getOperand(0))].fillers);
    else if (reads(op) || isa<hop::BarrierWaitOp>(op))
      addOnce(channels[numbers.lookup(op->getOperand(0))].readers);
  });
  // In a cluster the role that puts a number reads its own, or its neighbour's, just after: it
  // waits for nobody.
  if (roles[role].isElected())
    for (Channel &channel : channels)
      if (llvm::is_contained(channel.fillers, role))
        llvm::erase(channel.readers, role);
}

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

LogicalResult Decisions::run(const RoleGraph &graph) {
  for (const Channel &channel : graph.channels) {
    SmallVector<unsigned> joined = channel.fillers;
    llvm::append_range(joined, channel.readers);
    for (unsigned role : joined)
      if (role != joined.front() && failed(pair(graph, channel, joined.front(), role)))
        return failure();
  }
  return number(graph);
}

LogicalResult Decisions::pair(const RoleGraph &graph, const Channel &channel, unsigned first,
                              unsigned second) {
  auto refuse = [&](Operation *op) {
    bool isOfFirst = graph.getRole(first)->isAncestor(op);
    return op->emitError("stands around uses of '")
           << channel.getLabel() << "', and " << graph.nameOf(isOfFirst ? second : first)
           << " has no such operation around its own; roles that are joined run the same loops and "
              "conditionals";
  };
  Operation *alone =
      pair(graph.getRole(first).getBody(), graph.getRole(second).getBody(), channel.value);
  return alone ? LogicalResult(refuse(alone)) : success();
}

/// Pairs the controls around the channel of two regions; returns one that has no partner.
Operation *Decisions::pair(Region &first, Region &second, Value channel) {
  auto controlsOf = [&](Region &region) {
    Controls controls;
    for (Operation &op : region.getOps())
      if (isControl(&op) && holds(&op, channel))
        controls.push_back(&op);
    return controls;
  };
  Controls ofFills = controlsOf(first), ofReads = controlsOf(second);
  for (auto [fill, read] : llvm::zip(ofFills, ofReads)) {
    if (fill->getName() != read->getName())
      return read;
    alike.unionSets(fill, read);
    for (auto [inFill, inRead] : llvm::zip_equal(fill->getRegions(), read->getRegions()))
      if (Operation *alone = pair(inFill, inRead, channel))
        return alone;
  }
  if (ofReads.size() > ofFills.size())
    return ofReads[ofFills.size()];
  return ofFills.size() > ofReads.size() ? ofFills[ofReads.size()] : nullptr;
}

/// Numbers the controls of all roles; refuses one of a kind that is not known, and two of one role
/// that go with one of another.
LogicalResult Decisions::number(const RoleGraph &graph) {
  DenseMap<Operation *, unsigned> ofClasses;
  for (hop::RoleOp role : graph.roles) {
    DenseMap<unsigned, Operation *> ofRole;
    WalkResult walk = role.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
      if (!isControl(op) || !holdsEvents(op))
        return success();
      if (!isa<scf::ForOp, scf::IfOp, scf::WhileOp, hop::AttemptOp>(op))
        return op->emitError("stands around uses of pipes, and is no loop or conditional that a "
                             "role can have there; use scf.for, scf.if or scf.while");
      auto leader = alike.findLeader(op);
      Operation *representative = leader == alike.member_end() ? op : *leader;
      auto [entry, isNew] = ofClasses.try_emplace(representative, count);
      count += isNew;
      numbers[op] = entry->second;
      auto [before, isFirst] = ofRole.try_emplace(entry->second, op);
      if (isFirst)
        return success();
      InFlightDiagnostic diag =
          op->emitError("goes with the same operation of another role as one before it does, so "
                        "that the roles cannot decide alike; put what both hold into one");
      diag.attachNote(before->second->getLoc()) << "the one before";
      return diag;
    });
    if (walk.wasInterrupted())
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

RoleProgram::RoleProgram(const RoleGraph &graph, unsigned role, const Decisions &decisions)
    : graph(graph), decisions(decisions), role(role) {
  hop::RoleOp op = graph.getRole(role);
  steps.push_back({Step::Kind::End, op});
  entry = build(op.getBody(), /*follow=*/0);
}

unsigned RoleProgram::add(Step step) {
  steps.push_back(step);
  return steps.size() - 1;
}

unsigned RoleProgram::addStep(Step::Kind kind, Operation *op, Operation *wait, unsigned follow) {
  Step step{kind, op};
  step.channel = graph.numbers.lookup(op->getOperand(0));
  step.next = {follow, follow};
  if (wait) {
    waits.insert(wait);
    step.wait = llvm::find(waits, wait) - waits.begin();
  }
  return add(step);
}

unsigned RoleProgram::addBranch(Operation *op) {
  Step step{Step::Kind::Branch, op};
  step.decision = decisions.of(op);
  decides.insert(step.decision);
  return add(step);
}

/// Whether the role reads what it fills.
bool RoleProgram::fillsItself(unsigned channel) const {
  return llvm::is_contained(graph.channels[channel].fillers, role) &&
         llvm::is_contained(graph.channels[channel].readers, role);
}

unsigned RoleProgram::build(Region &region, unsigned follow) {
  if (!region.empty())
    for (Operation &op : llvm::reverse(region.front()))
      follow = build(&op, follow);
  return follow;
}

unsigned RoleProgram::buildLoop(Operation *op, Region &body, unsigned follow) {
  // A role that loads for itself runs ahead within a loop, for iterations that there are.
  op->walk([&](hop::PipeLoadOp load) {
    if (fillsItself(graph.numbers.lookup(load.getPipe())))
      follow = addStep(Step::Kind::Forget, load, nullptr, follow);
  });
  unsigned branch = addBranch(op);
  unsigned first = build(body, branch);
  steps[branch].next = {first, follow};
  return branch;
}

unsigned RoleProgram::build(Operation *op, unsigned follow) {
  using Kind = Step::Kind;
  if (op->hasTrait<hop::FillsPipe>())
    return addStep(isa<hop::PipeAcquireOp>(op) ? Kind::Acquire : Kind::Fill, op, nullptr, follow);
  if (isa<hop::PipeCommitOp>(op))
    return addStep(Kind::Commit, op, nullptr, follow);
  if (auto release = dyn_cast<hop::PipeReleaseOp>(op))
    return addStep(Kind::Release, op, release.getTile().getDefiningOp(), follow);
  if (isa<hop::BarrierWaitOp>(op))
    return addStep(Kind::Meet, op, nullptr, follow);
  if (op->hasTrait<hop::ReadsPipe>()) {
    const Channel &pipe = graph.channels[graph.numbers.lookup(op->getOperand(0))];
    if (!llvm::is_contained(pipe.readers, role))
      return follow;
    if (isa<hop::PipePeekOp>(op))
      return addStep(Kind::Peek, op, nullptr, follow);
    if (isa<hop::PipeGetOp>(op))
      follow = addStep(Kind::Release, op, op, follow);
    return addStep(Kind::Wait, op, op, follow);
  }
  if (op->getNumRegions() == 0 || !holdsEvents(op) || skipsTiles(op))
    return follow;
  return buildControl(op, follow);
}

unsigned RoleProgram::buildControl(Operation *op, unsigned follow) {
  if (isOfOneThread(op))
    return build(op->getRegion(0), follow);
  if (isa<scf::ForOp>(op))
    return buildLoop(op, op->getRegion(0), follow);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return buildLoop(op, loop.getAfter(), follow);
  // The branches of a conditional; of an attempt the second region may follow the first.
  unsigned second = build(op->getRegion(1), follow);
  unsigned branch = addBranch(op);
  if (isa<hop::AttemptOp>(op)) {
    steps[branch].next = {second, follow};
    return build(op->getRegion(0), branch);
  }
  unsigned first = build(op->getRegion(0), follow);
  steps[branch].next = {first, second};
  return branch;
}
