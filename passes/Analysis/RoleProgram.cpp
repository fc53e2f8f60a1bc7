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

/// A load of runs has a region, which says where they lie.
static bool isControl(Operation *op) {
  return op->getNumRegions() != 0 && !isa<hop::PipeLoadOp>(op) && !isOfOneThread(op) &&
         !skipsTiles(op);
}

/// The events of `op` and the controls around them, in their order.
static SmallVector<std::pair<StringRef, Value>> listEvents(Operation *op) {
  SmallVector<std::pair<StringRef, Value>> events;
  op->walk<WalkOrder::PreOrder>([&](Operation *inner) {
    if (isEvent(inner))
      events.emplace_back(inner->getName().getStringRef(), inner->getOperand(0));
    else if (isControl(inner) && holdsEvents(inner))
      events.emplace_back(inner->getName().getStringRef(), Value());
  });
  return events;
}

/// Whether `next` is a loop that follows the loop `op`, with the same events and none in between.
static bool isNextPiece(Operation *op, Operation *next) {
  if (!isa<scf::ForOp>(op) || !isa<scf::ForOp>(next) || op->getBlock() != next->getBlock())
    return false;
  for (Operation *between = op->getNextNode(); between != next; between = between->getNextNode())
    if (!between || isEvent(between) || holdsEvents(between))
      return false;
  return listEvents(op) == listEvents(next);
}

/// Appends what a role does with `channel` in `block`: its events, and nothing for a control.
static void listOwn(Block &block, Value channel, SmallVector<std::optional<StringRef>> &own) {
  for (Operation &op : block)
    if (isEvent(&op) && op.getOperand(0) == channel)
      own.push_back(op.getName().getStringRef());
    else if (isOfOneThread(&op))
      listOwn(*cast<scf::IfOp>(op).thenBlock(), channel, own);
    else if (isControl(&op) && holds(&op, channel))
      own.push_back(std::nullopt);
}

/// Whether `op` is a conditional that does the same with `channel` on either way: others need not
/// know which one the role takes.
static bool isAlikeEitherWay(Operation *op, Value channel) {
  auto branch = dyn_cast<scf::IfOp>(op);
  if (!branch || branch.getElseRegion().empty())
    return false;
  SmallVector<std::optional<StringRef>> ofThen, ofElse;
  listOwn(*branch.thenBlock(), channel, ofThen);
  listOwn(*branch.elseBlock(), channel, ofElse);
  return ofThen == ofElse && !llvm::is_contained(ofThen, std::nullopt);
}

/// Whether a role gets `value` from a pipe.
static bool isGot(Value value) { return value.getDefiningOp<hop::PipeGetOp>() != nullptr; }

/// The pipe from which `role` alone gets values, if it waits for nothing else and one loop that
/// goes on as long as these say so is all that it runs: it holds nobody up.
static Value endsByValue(hop::RoleOp role) {
  auto loops = role.getBody().getOps<scf::WhileOp>();
  if (!llvm::hasSingleElement(loops))
    return {};
  scf::WhileOp loop = *loops.begin();
  if (loop.getInits().empty() || !llvm::all_of(loop.getInits(), isGot) ||
      !llvm::all_of(loop.getYieldOp().getResults(), isGot))
    return {};
  Value pipe;
  WalkResult walk = role.walk([&](Operation *op) {
    if (!isEvent(op))
      return WalkResult::advance();
    bool isSame = isa<hop::PipeGetOp>(op) && (!pipe || pipe == op->getOperand(0));
    pipe = op->getOperand(0);
    return isSame ? WalkResult::advance() : WalkResult::interrupt();
  });
  bool isOnlyReader = llvm::all_of(pipe.getUsers(), [&](Operation *user) {
    return !user->hasTrait<hop::ReadsPipe>() || role->isAncestor(user);
  });
  return !walk.wasInterrupted() && isOnlyReader ? pipe : Value();
}

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

StringRef Channel::getLabel() const {
  if (auto pipe = value.getDefiningOp<hop::PipeCreateOp>())
    return pipe.getLabel();
  return value.getDefiningOp<hop::BarriersOp>().getLabel();
}

RoleGraph::RoleGraph(hop::KernelOp kernel) {
  DenseSet<Value> taken;
  for (hop::RoleOp role : kernel.getBody().getOps<hop::RoleOp>())
    if (Value pipe = endsByValue(role))
      taken.insert(pipe);
    else
      roles.push_back(role);
  for (auto pipe : kernel.getBody().getOps<hop::PipeCreateOp>()) {
    if (taken.contains(pipe.getPipe()))
      continue;
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
    if (isEvent(op) && !isa<hop::BarrierWaitOp>(op) && !numbers.contains(op->getOperand(0)))
      return;
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

/// Pairs two controls and those in them; returns one that has no partner.
Operation *Decisions::pairOne(Operation *first, Operation *second, Value channel) {
  if (first->getName() != second->getName())
    return second;
  alike.unionSets(first, second);
  for (auto [inFirst, inSecond] : llvm::zip_equal(first->getRegions(), second->getRegions()))
    if (Operation *alone = pair(inFirst, inSecond, channel))
      return alone;
  return nullptr;
}

/// Pairs the controls around the channel of two regions; returns one that has no partner. Where one
/// of them has more, pieces of a loop are one.
Operation *Decisions::pair(Region &first, Region &second, Value channel) {
  auto controlsOf = [&](Region &region) {
    Controls controls;
    for (Operation &op : region.getOps())
      if (isControl(&op) && holds(&op, channel) && !isAlikeEitherWay(&op, channel))
        controls.push_back(&op);
    return controls;
  };
  auto joinPieces = [&](Controls &controls) {
    Controls whole;
    for (auto [i, op] : llvm::enumerate(controls))
      if (i == 0 || !isNextPiece(controls[i - 1], op) || pairOne(whole.back(), op, channel))
        whole.push_back(op);
    controls = whole;
  };
  Controls ofFills = controlsOf(first), ofReads = controlsOf(second);
  if (ofFills.size() != ofReads.size()) {
    joinPieces(ofFills);
    joinPieces(ofReads);
  }
  for (auto [fill, read] : llvm::zip(ofFills, ofReads))
    if (Operation *alone = pairOne(fill, read, channel))
      return alone;
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
      if (isNextPiece(before->second, op)) {
        before->second = op;
        further.insert(op);
        return WalkResult::skip();
      }
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
  if (isEvent(op) && !graph.numbers.contains(op->getOperand(0)))
    return follow;
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
  if (op->getNumRegions() == 0 || !holdsEvents(op) || skipsTiles(op) ||
      decisions.isFurtherPiece(op))
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
