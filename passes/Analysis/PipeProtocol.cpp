//===- PipeProtocol.cpp - Whether roles can wait for each other for ever --===//
//
// A producer and consumers that are joined by rings of slots are processes of one program each,
// and no process ever asks whether something is there: it waits. So in which order they run does
// not matter, and it suffices to look at one order for each outcome of the loops and conditionals
// of the program: the consumers run, and the producer runs only where they wait for a tile, until
// that tile is loaded. When it stands before a ring without a free slot meanwhile, nobody will ever
// go on.
//
// Both roles are slices of one program and decide alike. Decisions are not looked into: each one is
// free where it is made first and is followed where it is made second. A state is what both have
// still to do, the slots in use and the decisions that one of them still has to follow. There are
// few of them, as after an iteration or two a loop comes back to a state that was there before; all
// are looked at. All consumers run the same program, so that they are one here: the tile that the
// last of them waits for is the first one in the order of the loads, and the others are beyond it.
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/PipeProtocol.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include <deque>
#include <set>

using namespace mlir;
using namespace tessera;

namespace {
/// A step of a role that pipes or other roles may hold up, or that decides which step comes next.
struct Node {
  enum class Kind {
    End,
    Fill,    ///< takes the next slot of `pipe` and fills it
    Wait,    ///< waits for the next filled slot
    Release, ///< gives the slot of the wait `wait` back
    Forget,  ///< loads that were started ahead in a loop end with it
    Meet,    ///< waits until the other role is at its own
    Branch,  ///< goes to the first or the second of `next`
  };
  Kind kind;
  Operation *op = nullptr;
  unsigned pipe = 0;
  unsigned wait = 0;
  unsigned decision = 0;
  std::array<unsigned, 2> next = {0, 0};
};

bool isEvent(Operation *op) {
  return isa<hop::PipeLoadOp, hop::PipeLendOp, hop::PipePutOp, hop::PipeWaitOp, hop::PipeReleaseOp,
             hop::PipeGetOp, hop::BarrierWaitOp>(op);
}

bool holdsEvents(Operation *op) {
  auto find = [](Operation *inner) {
    return isEvent(inner) ? WalkResult::interrupt() : WalkResult::advance();
  };
  return op->walk(find).wasInterrupted();
}

/// Whether one thread of a consumer starts loads there.
bool startsLoads(Operation *op) {
  auto conditional = dyn_cast<scf::IfOp>(op);
  return conditional && op->getParentOfType<hop::RoleOp>().getKind() == hop::RoleKind::Consumer &&
         !conditional.thenBlock()->getOps<hop::PipeLoadOp>().empty();
}

/// Whether consumers only let tiles pass in `op`, as tile-warp-specialize makes of tile.skip_loads.
/// The proof is of the block of a cluster whose loops are the longest, which has none to pass; what
/// a producer loads beyond the loops of another block is the business of tile-even-loops.
bool skipsTiles(Operation *op) {
  auto loop = dyn_cast<scf::ForOp>(op);
  return loop && !loop.getBody()->getOps<hop::WarpgroupSyncOp>().empty() &&
         llvm::all_of(loop.getBody()->without_terminator(), [](Operation &inner) {
           return isa<hop::PipeReleaseOp, hop::WarpgroupSyncOp>(inner) ||
                  (isa<hop::PipeWaitOp>(inner) && inner.hasOneUse());
         });
}

/// The loops and conditionals of a kernel around steps, with the numbers of their decisions: those
/// of the producer and of the consumers that stem from one of the program have the same.
class Decisions {
public:
  LogicalResult pair(Region &producer, Region &consumer);
  void number(Region &region);

  unsigned of(Operation *op) const { return numbers.lookup(op); }
  unsigned size() const { return count; }

private:
  static SmallVector<Operation *> controlsOf(Region &region);

  DenseMap<Operation *, unsigned> numbers;
  unsigned count = 0;
};

SmallVector<Operation *> Decisions::controlsOf(Region &region) {
  SmallVector<Operation *> controls;
  for (Operation &op : region.getOps())
    if (op.getNumRegions() != 0 && holdsEvents(&op) && !startsLoads(&op) && !skipsTiles(&op))
      controls.push_back(&op);
  return controls;
}

void Decisions::number(Region &region) {
  for (Operation *op : controlsOf(region)) {
    numbers[op] = count++;
    for (Region &inner : op->getRegions())
      number(inner);
  }
}

LogicalResult Decisions::pair(Region &producer, Region &consumer) {
  SmallVector<Operation *> fills = controlsOf(producer), reads = controlsOf(consumer);
  auto fill = fills.begin();
  for (Operation *read : reads) {
    if (fill == fills.end() || (*fill)->getName() != read->getName())
      return read->emitError("reads tiles, and the producer has no such operation to load them");
    numbers[read] = numbers[*fill] = count++;
    for (auto [ofFill, ofRead] : llvm::zip_equal((*fill)->getRegions(), read->getRegions()))
      if (failed(pair(ofFill, ofRead)))
        return failure();
    ++fill;
  }
  if (fill != fills.end())
    return (*fill)->emitError("loads tiles, and the consumers have no such operation to read them");
  return success();
}

/// The steps of a role.
class Program {
public:
  /// `pipes` numbers the pipes of the kernel,
  /// and `role` is null for one that the kernel does not have.
  Program(hop::RoleOp role, const DenseMap<Value, unsigned> &pipes, const Decisions &decisions)
      : pipes(pipes), decisions(decisions),
        isProducer(!role || role.getKind() == hop::RoleKind::Producer) {
    Node end{Node::Kind::End, role};
    nodes.push_back(end);
    if (role)
      entry = build(role.getBody(), /*follow=*/0);
  }

  const Node &operator[](unsigned i) const { return nodes[i]; }
  /// Whether the kernel has this role.
  bool exists() const { return nodes.front().op != nullptr; }
  unsigned getEntry() const { return entry; }
  Operation *getWait(unsigned number) const { return waits[number]; }

private:
  /// These build backwards: what they return goes on with `follow`.
  unsigned build(Region &region, unsigned follow);
  unsigned build(Operation *op, unsigned follow);
  unsigned buildLoop(Operation *op, Region &body, unsigned follow);

  unsigned add(Node node) {
    nodes.push_back(node);
    return nodes.size() - 1;
  }
  unsigned addStep(Node::Kind kind, Operation *op, Value pipe, Operation *wait, unsigned follow) {
    Node node{kind, op};
    node.pipe = pipe ? pipes.lookup(pipe) : 0;
    node.wait = wait ? numberOf(wait) : 0;
    node.next = {follow, follow};
    return add(node);
  }
  unsigned addBranch(Operation *op) {
    Node node{Node::Kind::Branch, op};
    node.decision = decisions.of(op);
    return add(node);
  }
  unsigned numberOf(Operation *wait) {
    waits.insert(wait);
    return llvm::find(waits, wait) - waits.begin();
  }

  const DenseMap<Value, unsigned> &pipes;
  const Decisions &decisions;
  bool isProducer;
  SmallVector<Node> nodes;
  llvm::SetVector<Operation *> waits;
  unsigned entry = 0;
};

unsigned Program::build(Region &region, unsigned follow) {
  if (!region.empty())
    for (Operation &op : llvm::reverse(region.front()))
      follow = build(&op, follow);
  return follow;
}

unsigned Program::buildLoop(Operation *op, Region &body, unsigned follow) {
  // A consumer that loads for itself runs ahead within a loop, for iterations that there are.
  if (!isProducer)
    op->walk([&](hop::PipeLoadOp load) {
      follow = addStep(Node::Kind::Forget, op, load.getPipe(), nullptr, follow);
    });
  unsigned branch = addBranch(op);
  unsigned first = build(body, branch);
  nodes[branch].next = {first, follow};
  return branch;
}

unsigned Program::build(Operation *op, unsigned follow) {
  using Kind = Node::Kind;
  if (auto load = dyn_cast<hop::PipeLoadOp>(op))
    return addStep(Kind::Fill, op, load.getPipe(), nullptr, follow);
  if (auto lend = dyn_cast<hop::PipeLendOp>(op))
    return addStep(Kind::Fill, op, lend.getPipe(), nullptr, follow);
  if (auto put = dyn_cast<hop::PipePutOp>(op))
    return addStep(Kind::Fill, op, put.getPipe(), nullptr, follow);
  if (auto wait = dyn_cast<hop::PipeWaitOp>(op))
    return addStep(Kind::Wait, op, wait.getPipe(), op, follow);
  if (auto release = dyn_cast<hop::PipeReleaseOp>(op))
    return addStep(Kind::Release, op, release.getPipe(), release.getTile().getDefiningOp(), follow);
  if (auto get = dyn_cast<hop::PipeGetOp>(op)) {
    // In a cluster a producer reads the number that it has put, or its neighbour, just before.
    if (isProducer)
      return follow;
    follow = addStep(Kind::Release, op, get.getPipe(), op, follow);
    return addStep(Kind::Wait, op, get.getPipe(), op, follow);
  }
  if (isa<hop::BarrierWaitOp>(op))
    return addStep(Kind::Meet, op, Value(), nullptr, follow);
  if (op->getNumRegions() == 0 || !holdsEvents(op) || skipsTiles(op))
    return follow;
  if (startsLoads(op))
    return build(op->getRegion(0), follow);
  if (isa<scf::ForOp>(op))
    return buildLoop(op, op->getRegion(0), follow);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return buildLoop(op, loop.getAfter(), follow);
  // The branches of a conditional; of an attempt the second region may follow the first.
  unsigned second = build(op->getRegion(1), follow);
  unsigned branch = addBranch(op);
  if (isa<hop::AttemptOp>(op)) {
    nodes[branch].next = {second, follow};
    return build(op->getRegion(0), branch);
  }
  unsigned first = build(op->getRegion(0), follow);
  nodes[branch].next = {first, second};
  return branch;
}

/// Decisions that one role has made and the other still has to follow, in order.
struct Choices {
  bool ofProducer = false;
  std::deque<bool> ahead;
};

/// The slot of a ring after it was filled: kFilled, kReleased behind one that is in use, or the
/// number of the wait that holds it.
constexpr int kFilled = -1, kReleased = -2;

struct State {
  unsigned consumer, producer;
  SmallVector<std::deque<int>> rings; ///< the slots in use, the oldest first
  SmallVector<Choices> choices;

  std::vector<int> getKey() const;
};

std::vector<int> State::getKey() const {
  std::vector<int> key = {static_cast<int>(consumer), static_cast<int>(producer)};
  for (const std::deque<int> &ring : rings) {
    key.push_back(ring.size());
    key.insert(key.end(), ring.begin(), ring.end());
  }
  for (const Choices &choices : this->choices) {
    key.push_back(2 * choices.ahead.size() + choices.ofProducer);
    key.insert(key.end(), choices.ahead.begin(), choices.ahead.end());
  }
  return key;
}

/// Where nobody goes on.
struct Deadlock {
  const Node *consumer;
  /// The fill without a slot, or what else the loads have come to.
  const Node *load;
  llvm::SetVector<Operation *> holders; ///< of the slots of the ring of the fill
};

/// Looks at all that two roles can come to.
class Exploration {
public:
  Exploration(const Program &producer, const Program &consumer, ArrayRef<int64_t> slots,
              unsigned numDecisions)
      : producer(producer), consumer(consumer), slots(slots),
        isAlone(producer[producer.getEntry()].kind == Node::Kind::End) {
    State first{consumer.getEntry(), producer.getEntry(), {}, {}};
    first.rings.resize(slots.size());
    first.choices.resize(numDecisions);
    stack.push_back(std::move(first));
  }

  /// The deadlock that was found first, if there is one.
  std::optional<Deadlock> run();

private:
  enum class Progress { Ended, Moved, Stuck };
  Progress step(State &state);
  Progress stepProducer(State &state);
  Progress fill(State &state, unsigned &place, const Node &node) const;
  Progress wait(State &state, const Node &node);
  Progress decide(State &state, const Node &node);
  void decide(State &state, const Node &node, bool first) const;
  Deadlock explain(const State &state) const;

  const Program &producer, &consumer;
  ArrayRef<int64_t> slots;
  bool isAlone; ///< The consumers load for themselves.
  std::vector<State> stack;
  std::set<std::vector<int>> visited;
};
} // namespace

Exploration::Progress Exploration::fill(State &state, unsigned &place, const Node &node) const {
  std::deque<int> &ring = state.rings[node.pipe];
  if (static_cast<int64_t>(ring.size()) == slots[node.pipe])
    return Progress::Stuck;
  ring.push_back(kFilled);
  place = node.next[0];
  return Progress::Moved;
}

Exploration::Progress Exploration::wait(State &state, const Node &node) {
  auto &ring = state.rings[node.pipe];
  auto filled = llvm::find(ring, kFilled);
  if (filled == ring.end())
    return stepProducer(state);
  *filled = node.wait;
  state.consumer = node.next[0];
  return Progress::Moved;
}

/// The consumers decide on `first` or otherwise.
void Exploration::decide(State &state, const Node &node, bool first) const {
  Choices &choices = state.choices[node.decision];
  state.consumer = node.next[first ? 0 : 1];
  if (isAlone)
    return;
  if (choices.ofProducer && !choices.ahead.empty()) {
    choices.ahead.pop_front();
  } else {
    choices.ofProducer = false;
    choices.ahead.push_back(first);
  }
}

Exploration::Progress Exploration::decide(State &state, const Node &node) {
  const Choices &choices = state.choices[node.decision];
  bool follows = choices.ofProducer && !choices.ahead.empty();
  // The loads before its last decision have been read; the producer has nothing to wait for there.
  if (!follows && !choices.ahead.empty())
    return stepProducer(state);
  if (!visited.insert(state.getKey()).second)
    return Progress::Ended;
  if (!follows) {
    stack.push_back(state);
    decide(stack.back(), node, /*first=*/false);
  }
  decide(state, node, !follows || choices.ahead.front());
  return Progress::Moved;
}

/// Runs a step of the producer, for which the consumers wait.
Exploration::Progress Exploration::stepProducer(State &state) {
  const Node &node = producer[state.producer];
  if (node.kind == Node::Kind::Fill)
    return fill(state, state.producer, node);
  if (node.kind != Node::Kind::Branch)
    return Progress::Stuck;
  Choices &choices = state.choices[node.decision];
  if (!choices.ofProducer && !choices.ahead.empty()) {
    state.producer = node.next[choices.ahead.front() ? 0 : 1];
    choices.ahead.pop_front();
    return Progress::Moved;
  }
  choices.ofProducer = true;
  stack.push_back(state);
  for (auto [of, first] : {std::pair(&stack.back(), false), std::pair(&state, true)}) {
    of->choices[node.decision].ahead.push_back(first);
    of->producer = node.next[first ? 0 : 1];
  }
  return Progress::Moved;
}

Exploration::Progress Exploration::step(State &state) {
  const Node &node = consumer[state.consumer];
  switch (node.kind) {
  case Node::Kind::Wait:
    return wait(state, node);
  case Node::Kind::Fill:
    return fill(state, state.consumer, node);
  case Node::Kind::Branch:
    return decide(state, node);
  case Node::Kind::Release: {
    auto &ring = state.rings[node.pipe];
    auto held = llvm::find(llvm::reverse(ring), static_cast<int>(node.wait));
    if (held != ring.rend())
      *held = kReleased;
    while (!ring.empty() && ring.front() == kReleased)
      ring.pop_front();
    break;
  }
  case Node::Kind::Forget:
    llvm::erase(state.rings[node.pipe], kFilled);
    break;
  case Node::Kind::Meet:
  case Node::Kind::End:
    // Without a producer the consumers meet each other.
    if (node.kind == Node::Kind::Meet && !producer.exists())
      break;
    if (producer[state.producer].kind != node.kind)
      return stepProducer(state);
    if (node.kind == Node::Kind::End)
      return Progress::Ended;
    state.producer = producer[state.producer].next[0];
    break;
  }
  state.consumer = node.next[0];
  return Progress::Moved;
}

Deadlock Exploration::explain(const State &state) const {
  const Node &node = consumer[state.consumer];
  Deadlock deadlock{&node, node.kind == Node::Kind::Fill ? &node : &producer[state.producer], {}};
  if (deadlock.load->kind == Node::Kind::Fill)
    for (int slot : state.rings[deadlock.load->pipe])
      if (slot >= 0)
        deadlock.holders.insert(consumer.getWait(slot));
  return deadlock;
}

std::optional<Deadlock> Exploration::run() {
  while (!stack.empty()) {
    State state = std::move(stack.back());
    stack.pop_back();
    Progress progress = Progress::Moved;
    while (progress == Progress::Moved)
      progress = step(state);
    if (progress == Progress::Stuck)
      return explain(state);
  }
  return std::nullopt;
}

namespace {
/// The roles of a kernel and what joins them.
class Protocol {
public:
  explicit Protocol(hop::KernelOp kernel);

  LogicalResult check();

private:
  std::optional<Deadlock> explore(ArrayRef<int64_t> ofPipes) const {
    return Exploration(*producer, *consumer, ofPipes, decisions.size()).run();
  }
  std::optional<int64_t> findSlots(unsigned pipe) const;
  LogicalResult refuse(const Deadlock &deadlock);
  LogicalResult refuseOrder(const Deadlock &deadlock) const;

  hop::RoleOp producerRole, consumerRole;
  SmallVector<hop::PipeCreateOp> created;
  DenseMap<Value, unsigned> pipes;
  SmallVector<int64_t> slots;
  Decisions decisions;
  std::optional<Program> producer, consumer;
};
} // namespace

Protocol::Protocol(hop::KernelOp kernel) {
  for (auto pipe : kernel.getBody().getOps<hop::PipeCreateOp>()) {
    pipes[pipe.getPipe()] = created.size();
    created.push_back(pipe);
    slots.push_back(pipe.getPipe().getType().getSlots());
  }
  for (auto role : kernel.getBody().getOps<hop::RoleOp>())
    (role.getKind() == hop::RoleKind::Producer ? producerRole : consumerRole) = role;
}

/// The fewest slots of the pipe with which it goes on, if any do.
std::optional<int64_t> Protocol::findSlots(unsigned pipe) const {
  // More of them are no tiles of attention, and no shared memory holds them.
  constexpr int64_t most = 16;
  SmallVector<int64_t> more = slots;
  while (++more[pipe] <= most) {
    std::optional<Deadlock> next = explore(more);
    if (!next || next->load->kind != Node::Kind::Fill || next->load->pipe != pipe)
      return more[pipe];
  }
  return std::nullopt;
}

/// The producer has come to its end or to where the roles meet, and the consumers have not.
LogicalResult Protocol::refuseOrder(const Deadlock &deadlock) const {
  Operation *waiting = deadlock.consumer->op;
  if (deadlock.consumer->kind == Node::Kind::Wait)
    return waiting->emitError("waits for a tile that the producer does not load");
  return waiting->emitError("comes to where the roles meet another time than the producer does");
}

LogicalResult Protocol::refuse(const Deadlock &deadlock) {
  if (deadlock.load->kind != Node::Kind::Fill)
    return refuseOrder(deadlock);
  unsigned pipe = deadlock.load->pipe;
  bool isInLoop = llvm::any_of(created[pipe].getPipe().getUsers(), [](Operation *user) {
    return isa<hop::PipeLoadOp>(user) && user->getParentOfType<scf::ForOp>();
  });
  std::optional<int64_t> enough = findSlots(pipe);
  StringRef field = isInLoop ? "stages" : "outer_stages", label = created[pipe].getLabel();
  int64_t most = isInLoop ? 8 : 2; // as #tile.schedule takes
  InFlightDiagnostic diag = deadlock.load->op->emitError();
  if (!enough)
    diag << "goes round the " << slots[pipe] << " slots of '" << label
         << "' while a tile keeps one of them, and no number of slots is enough; load that tile "
            "again where it is used after the loop";
  else if (*enough <= most)
    diag << "needs " << *enough << " slots of '" << label << "' at once, and it has " << slots[pipe]
         << "; use " << field << " = " << *enough;
  else
    diag << "needs " << *enough << " slots of '" << label << "' at once, and it has " << slots[pipe]
         << " (" << field << " is at most " << most
         << "); use a smaller overlap, or tiles of it one after the other";
  for (Operation *holder : deadlock.holders)
    if (holder->getLoc() != deadlock.load->op->getLoc())
      diag.attachNote(holder->getLoc()) << "this tile keeps its slot";
  Operation *waiting = deadlock.consumer->op;
  if (waiting != deadlock.load->op && waiting->getLoc() != deadlock.load->op->getLoc())
    diag.attachNote(waiting->getLoc()) << "and the consumers wait here for what comes after it";
  return diag;
}

LogicalResult Protocol::check() {
  if (!consumerRole)
    return success();
  if (producerRole && failed(decisions.pair(producerRole.getBody(), consumerRole.getBody())))
    return failure();
  if (!producerRole)
    decisions.number(consumerRole.getBody());
  producer.emplace(producerRole, pipes, decisions);
  consumer.emplace(consumerRole, pipes, decisions);
  std::optional<Deadlock> deadlock = explore(slots);
  return deadlock ? refuse(*deadlock) : success();
}

LogicalResult tessera::checkPipes(hop::KernelOp kernel) { return Protocol(kernel).check(); }
