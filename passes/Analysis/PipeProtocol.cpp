//===- PipeProtocol.cpp - Whether roles can wait for each other for ever --===//
//
// Roles that are joined by rings of slots are processes of one program each, and no process ever
// asks whether something is there: it waits. So in which order they run does not matter, and it
// suffices to look at one order for each outcome of the loops and conditionals of the program.
//
// Roles that a pipe joins are slices of one program and decide alike. Decisions are not looked
// into: each one is free where it is made first and is followed where it is made again. All roles
// run for as long as they need no new decision. When nobody can go on, the role that is least ahead
// of the others decides, both ways. When nobody is left to decide and not all have ended, nobody
// will ever go on. When all have ended, no slot may still be kept.
//
// A state is what the roles have still to do, the slots in use and the decisions that some role
// still has to follow. There are few of them, as after an iteration or two a loop comes back to a
// state that was there before; all are looked at. The warpgroups of a role run the same program, so
// that they are one here: the tile that the last of them waits for is the first one in the order of
// the loads, and the others are beyond it.
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/PipeProtocol.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Analysis/RoleProgram.h"
#include <deque>
#include <set>

using namespace mlir;
using namespace tessera;

namespace {
using Kind = Step::Kind;

/// What a reader has of a slot: kFilled, kReleased, kTaken by the role that is still to fill it, or
/// the number of the wait that holds it.
constexpr int kFilled = -1, kReleased = -2, kTaken = -3;
/// More states are no proof that one could wait for.
constexpr size_t kMostStates = 1 << 16;

/// Outcomes of a decision that some role still has to follow, the oldest first.
struct Choices {
  std::deque<bool> ahead;
  SmallVector<unsigned> followed; ///< by role, those that it has followed
};

struct State {
  SmallVector<unsigned> at;                        ///< by role, its step
  SmallVector<std::deque<SmallVector<int>>> rings; ///< the slots in use, by reader of the pipe
  SmallVector<Choices> choices;

  std::vector<int> getKey() const;
};

std::vector<int> State::getKey() const {
  std::vector<int> key(at.begin(), at.end());
  for (const auto &ring : rings) {
    key.push_back(ring.size());
    for (const SmallVector<int> &slot : ring)
      llvm::append_range(key, slot);
  }
  for (const Choices &choices : this->choices) {
    key.push_back(choices.ahead.size());
    llvm::append_range(key, choices.ahead);
    llvm::append_range(key, choices.followed);
  }
  return key;
}

bool isFill(const Step &step) { return step.kind == Kind::Fill || step.kind == Kind::Acquire; }

/// The roles of a kernel and what joins them.
class Protocol {
public:
  explicit Protocol(hop::KernelOp kernel) : kernel(kernel), graph(kernel) {
    for (const Channel &channel : graph.channels) {
      auto pipe = dyn_cast<hop::PipeType>(channel.value.getType());
      slots.push_back(pipe ? pipe.getSlots() : 0);
    }
  }

  LogicalResult check();

private:
  friend class Exploration;

  std::optional<int64_t> findSlots(unsigned pipe, unsigned role);
  Operation *findHolder(const State &state) const;
  LogicalResult refuse(const State &state);
  LogicalResult refuseFill(const State &state, unsigned role);
  LogicalResult refuseWait(const State &state, unsigned role);
  LogicalResult refuseCycle(const State &state, ArrayRef<unsigned> cycle);
  std::optional<unsigned> waitsFor(const State &state, unsigned role) const;
  const Step &stepOf(const State &state, unsigned role) const {
    return programs[role][state.at[role]];
  }

  hop::KernelOp kernel;
  RoleGraph graph;
  Decisions decisions;
  SmallVector<int64_t> slots; ///< by channel
  SmallVector<RoleProgram> programs;
};

/// Looks at all that the roles can come to.
class Exploration {
public:
  explicit Exploration(const Protocol &protocol)
      : protocol(protocol), channels(protocol.graph.channels) {
    State first;
    for (const RoleProgram &program : protocol.programs)
      first.at.push_back(program.getEntry());
    first.rings.resize(channels.size());
    first.choices.resize(protocol.decisions.size());
    for (Choices &choices : first.choices)
      choices.followed.resize(first.at.size());
    stack.push_back(std::move(first));
  }

  /// The state that was found first in which nobody goes on, or all have ended and a slot is kept,
  /// if there is one.
  std::optional<State> run();
  /// Whether all states were looked at, or one was found.
  bool isComplete() const { return visited.size() < kMostStates; }

private:
  bool step(State &state, unsigned role) const;
  bool take(State &state, unsigned role, const Step &step) const;
  void commit(State &state, const Step &step) const;
  bool wait(State &state, unsigned role, const Step &step) const;
  void release(State &state, unsigned role, const Step &step) const;
  bool meet(State &state, const Step &step) const;
  bool follow(State &state, unsigned role, const Step &step) const;
  int64_t getLead(const State &state, unsigned role) const;
  std::optional<unsigned> findDecider(const State &state) const;
  bool haveEnded(const State &state) const;
  unsigned readerOf(const Step &step, unsigned role) const {
    ArrayRef<unsigned> readers = channels[step.channel].readers;
    return llvm::find(readers, role) - readers.begin();
  }

  const Protocol &protocol;
  ArrayRef<Channel> channels;
  std::vector<State> stack;
  std::set<std::vector<int>> visited;
};
} // namespace

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Takes the next slot of a ring, and fills it where nothing else does.
bool Exploration::take(State &state, unsigned role, const Step &step) const {
  auto &ring = state.rings[step.channel];
  if (static_cast<int64_t>(ring.size()) == protocol.slots[step.channel])
    return false;
  ring.emplace_back(channels[step.channel].readers.size(),
                    step.kind == Kind::Acquire ? kTaken : kFilled);
  state.at[role] = step.next[0];
  return true;
}

void Exploration::commit(State &state, const Step &step) const {
  auto &ring = state.rings[step.channel];
  auto taken = llvm::find_if(ring, [](auto &slot) { return llvm::is_contained(slot, kTaken); });
  if (taken != ring.end())
    llvm::fill(*taken, kFilled);
}

bool Exploration::wait(State &state, unsigned role, const Step &step) const {
  unsigned reader = readerOf(step, role);
  for (SmallVector<int> &slot : state.rings[step.channel])
    if (slot[reader] == kTaken) {
      return false;
    } else if (slot[reader] == kFilled) {
      if (step.kind == Kind::Wait)
        slot[reader] = step.wait;
      state.at[role] = step.next[0];
      return true;
    }
  return false;
}

void Exploration::release(State &state, unsigned role, const Step &step) const {
  auto &ring = state.rings[step.channel];
  unsigned reader = readerOf(step, role);
  for (SmallVector<int> &slot : llvm::reverse(ring))
    if (slot[reader] == static_cast<int>(step.wait)) {
      slot[reader] = kReleased;
      break;
    }
  while (!ring.empty() && llvm::all_of(ring.front(), [](int of) { return of == kReleased; }))
    ring.pop_front();
}

/// Lets all go on that meet there, when they have come.
bool Exploration::meet(State &state, const Step &step) const {
  ArrayRef<unsigned> roles = channels[step.channel].readers;
  auto next = [&](unsigned role) -> const Step & { return protocol.stepOf(state, role); };
  for (unsigned role : roles)
    if (next(role).kind != Kind::Meet || next(role).channel != step.channel)
      return false;
  for (unsigned role : roles)
    state.at[role] = next(role).next[0];
  return true;
}

/// Takes the way that another role has taken.
bool Exploration::follow(State &state, unsigned role, const Step &step) const {
  Choices &choices = state.choices[step.decision];
  if (choices.followed[role] == choices.ahead.size())
    return false;
  state.at[role] = step.next[choices.ahead[choices.followed[role]++] ? 0 : 1];
  auto hasFollowed = [&](unsigned other) {
    return choices.followed[other] > 0 || !protocol.programs[other].takes(step.decision);
  };
  auto roles = llvm::seq<unsigned>(0, state.at.size());
  if (llvm::all_of(roles, hasFollowed)) {
    choices.ahead.pop_front();
    for (unsigned &followed : choices.followed)
      followed -= followed > 0;
  }
  return true;
}

/// Runs a step of a role; nothing when the role is held up, has ended or has to decide.
bool Exploration::step(State &state, unsigned role) const {
  const Step &step = protocol.stepOf(state, role);
  switch (step.kind) {
  case Kind::End:
    return false;
  case Kind::Fill:
  case Kind::Acquire:
    return take(state, role, step);
  case Kind::Wait:
  case Kind::Peek:
    return wait(state, role, step);
  case Kind::Meet:
    return meet(state, step);
  case Kind::Branch:
    return follow(state, role, step);
  case Kind::Release:
    release(state, role, step);
    break;
  case Kind::Commit:
    commit(state, step);
    break;
  case Kind::Forget:
    llvm::erase_if(state.rings[step.channel], [&](const SmallVector<int> &slot) {
      return slot[readerOf(step, role)] == kFilled;
    });
    break;
  }
  state.at[role] = step.next[0];
  return true;
}

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

/// How many decisions the role has taken that others have still to follow.
int64_t Exploration::getLead(const State &state, unsigned role) const {
  int64_t lead = 0;
  for (auto [number, choices] : llvm::enumerate(state.choices))
    if (protocol.programs[role].takes(number))
      lead += choices.followed[role];
  return lead;
}

/// The role that decides next: the one that is least ahead of the others.
std::optional<unsigned> Exploration::findDecider(const State &state) const {
  std::optional<unsigned> decider;
  for (unsigned role = 0; role < state.at.size(); ++role)
    if (protocol.stepOf(state, role).kind == Kind::Branch &&
        (!decider || getLead(state, role) < getLead(state, *decider)))
      decider = role;
  return decider;
}

bool Exploration::haveEnded(const State &state) const {
  return llvm::all_of(llvm::seq<unsigned>(0, state.at.size()), [&](unsigned role) {
    return protocol.stepOf(state, role).kind == Kind::End;
  });
}

std::optional<State> Exploration::run() {
  while (!stack.empty() && isComplete()) {
    State state = std::move(stack.back());
    stack.pop_back();
    bool moves = true;
    while (std::exchange(moves, false))
      for (unsigned role = 0; role < state.at.size(); ++role)
        while (step(state, role))
          moves = true;
    std::optional<unsigned> decider = findDecider(state);
    if (!decider) {
      if (haveEnded(state) && !protocol.findHolder(state))
        continue;
      return state;
    }
    if (!visited.insert(state.getKey()).second)
      continue;
    // The shortest way first: what loops leave behind is found before all that they may do.
    unsigned decision = protocol.stepOf(state, *decider).decision;
    for (bool outcome : {true, false}) {
      stack.push_back(state);
      stack.back().choices[decision].ahead.push_back(outcome);
    }
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Refusals
//===----------------------------------------------------------------------===//

/// The role whose step would let `role` go on: it fills the pipe, holds a slot or has not come to
/// where the roles meet.
std::optional<unsigned> Protocol::waitsFor(const State &state, unsigned role) const {
  const Step &step = stepOf(state, role);
  if (step.kind == Kind::End || step.kind == Kind::Branch)
    return std::nullopt;
  const Channel &channel = graph.channels[step.channel];
  if (step.kind == Kind::Wait || step.kind == Kind::Peek)
    return channel.fillers.front();
  for (auto [i, reader] : llvm::enumerate(channel.readers)) {
    const Step &other = stepOf(state, reader);
    bool isMissing = step.kind == Kind::Meet
                         ? other.kind != Kind::Meet || other.channel != step.channel
                         : state.rings[step.channel].front()[i] != kReleased;
    if (isMissing)
      return reader;
  }
  return std::nullopt;
}

/// The fewest slots of the pipe with which `role` goes on, if any do.
std::optional<int64_t> Protocol::findSlots(unsigned pipe, unsigned role) {
  // More of them are no tiles of attention, and no shared memory holds them.
  constexpr int64_t most = 16;
  int64_t own = slots[pipe];
  std::optional<int64_t> enough;
  while (!enough && ++slots[pipe] <= most) {
    std::optional<State> next = Exploration(*this).run();
    if (!next || !isFill(stepOf(*next, role)) || stepOf(*next, role).channel != pipe)
      enough = slots[pipe];
  }
  slots[pipe] = own;
  return enough;
}

/// `role` stands before a ring without a free slot.
LogicalResult Protocol::refuseFill(const State &state, unsigned role) {
  const Step &fill = stepOf(state, role);
  const Channel &channel = graph.channels[fill.channel];
  bool isInLoop = llvm::any_of(channel.value.getUsers(), [](Operation *user) {
    return isa<hop::PipeLoadOp>(user) && user->getParentOfType<scf::ForOp>();
  });
  std::optional<int64_t> enough = findSlots(fill.channel, role);
  StringRef field = isInLoop ? "stages" : "outer_stages", label = channel.getLabel();
  int64_t most = isInLoop ? 8 : 2; // as #tile.schedule takes
  InFlightDiagnostic diag = fill.op->emitError();
  if (!enough)
    diag << "goes round the " << slots[fill.channel] << " slots of '" << label
         << "' while a tile keeps one of them, and no number of slots is enough; load that tile "
            "again where it is used after the loop";
  else if (*enough <= most)
    diag << "needs " << *enough << " slots of '" << label << "' at once, and it has "
         << slots[fill.channel] << "; use " << field << " = " << *enough;
  else
    diag << "needs " << *enough << " slots of '" << label << "' at once, and it has "
         << slots[fill.channel] << " (" << field << " is at most " << most
         << "); use a smaller overlap, or tiles of it one after the other";
  llvm::SetVector<Operation *> holders, waiting;
  for (auto [i, reader] : llvm::enumerate(channel.readers)) {
    for (const SmallVector<int> &slot : state.rings[fill.channel])
      if (slot[i] >= 0)
        holders.insert(programs[reader].getWait(slot[i]));
    waiting.insert(stepOf(state, reader).op);
  }
  for (Operation *holder : holders)
    if (holder->getLoc() != fill.op->getLoc())
      diag.attachNote(holder->getLoc()) << "this tile keeps its slot";
  for (Operation *op : waiting)
    if (op != fill.op && op->getLoc() != fill.op->getLoc() && !isa<hop::RoleOp>(op))
      diag.attachNote(op->getLoc()) << "and @" << op->getParentOfType<hop::RoleOp>().getSymName()
                                    << " waits here for what comes after it";
  return diag;
}

/// Each role of `cycle` waits for the next one, and the last for the first.
LogicalResult Protocol::refuseCycle(const State &state, ArrayRef<unsigned> cycle) {
  auto describe = [&](unsigned role) {
    const Step &step = stepOf(state, role);
    bool waits = step.kind == Kind::Wait || step.kind == Kind::Peek;
    StringRef what = waits ? "a tile of '" : isFill(step) ? "a slot of '" : "the others at '";
    return (what + graph.channels[step.channel].getLabel() + "'").str();
  };
  InFlightDiagnostic diag = stepOf(state, cycle.front()).op->emitError("waits for ")
                            << describe(cycle.front()) << ", for which "
                            << graph.nameOf(cycle[1 % cycle.size()])
                            << " needs something of this role first: they wait for each other for "
                               "ever; let one of them give before it waits";
  for (unsigned role : cycle.drop_front())
    diag.attachNote(stepOf(state, role).op->getLoc())
        << graph.nameOf(role) << " waits here for " << describe(role);
  return diag;
}

/// `role` waits for what no role gives any more.
LogicalResult Protocol::refuseWait(const State &state, unsigned role) {
  const Step &step = stepOf(state, role);
  const Channel &channel = graph.channels[step.channel];
  if (step.kind == Kind::Meet)
    return step.op->emitError("comes to where the roles meet another time than ")
           << graph.nameOf(*waitsFor(state, role)) << " does";
  return step.op->emitError("waits for a tile that ")
         << graph.nameOf(channel.fillers.front()) << " does not load";
}

/// A wait whose slot has not been given back; null when there is none.
Operation *Protocol::findHolder(const State &state) const {
  for (auto [channel, ring] : llvm::zip_equal(graph.channels, state.rings))
    for (const SmallVector<int> &slot : ring)
      for (auto [reader, wait] : llvm::zip_equal(channel.readers, slot))
        if (wait >= 0)
          return programs[reader].getWait(wait);
  return nullptr;
}

/// Says who waits for whom in a state in which nobody goes on, or what is kept in the end.
LogicalResult Protocol::refuse(const State &state) {
  auto roles = llvm::seq<unsigned>(0, state.at.size());
  auto waits = [&](unsigned role) { return stepOf(state, role).kind != Kind::End; };
  if (llvm::none_of(roles, waits)) {
    Operation *wait = findHolder(state);
    return wait->emitError("keeps its slot to the end of @")
           << wait->getParentOfType<hop::RoleOp>().getSymName()
           << "; release it on every way from here";
  }
  // More slots may help a role that stands before a full ring, so that it is named first.
  for (unsigned role : roles)
    if (isFill(stepOf(state, role)))
      return refuseFill(state, role);
  // From any role that has not ended one comes round, or to one that has.
  llvm::SetVector<unsigned> way;
  unsigned role = *llvm::find_if(roles, waits);
  while (way.insert(role)) {
    std::optional<unsigned> next = waitsFor(state, role);
    if (!next || !waits(*next) || stepOf(state, role).kind == Kind::Meet)
      return refuseWait(state, role);
    role = *next;
  }
  auto isFirst = [&](unsigned other) { return other == role; };
  return refuseCycle(state, way.getArrayRef().drop_until(isFirst));
}

LogicalResult Protocol::check() {
  for (auto pipe : kernel.getBody().getOps<hop::PipeCreateOp>())
    if (failed(checkUse(pipe)))
      return failure();
  if (failed(decisions.run(graph)))
    return failure();
  for (unsigned role = 0; role < graph.roles.size(); ++role)
    programs.emplace_back(graph, role, decisions);
  Exploration exploration(*this);
  if (std::optional<State> deadlock = exploration.run())
    return refuse(*deadlock);
  if (!exploration.isComplete())
    return kernel.emitError("has roles that decide too often without a tile of each other for a "
                            "proof that they go on; load and read within fewer conditionals");
  return success();
}

/// Copies and threads do not arrive equally often when they have filled a slot.
static LogicalResult checkFills(hop::PipeCreateOp pipe) {
  Operation *byThreads = nullptr, *byCopies = nullptr, *other = nullptr;
  for (Operation *user : pipe.getPipe().getUsers()) {
    auto acquire = dyn_cast<hop::PipeAcquireOp>(user);
    if (acquire)
      (acquire.isFilledByCopies() ? byCopies : byThreads) = user;
    else if (user->hasTrait<hop::FillsPipe>())
      other = user;
  }
  if (!byThreads && !byCopies)
    return success();
  Operation *first = byThreads ? byThreads : byCopies;
  Operation *second = other ? other : byThreads ? byCopies : nullptr;
  if (!second)
    return success();
  InFlightDiagnostic diag = second->emitError("fills a pipe whose other slots ")
                            << (byThreads ? "threads fill" : "are gathered")
                            << "; use a pipe for each";
  diag.attachNote(first->getLoc()) << "here";
  return diag;
}

LogicalResult tessera::checkUse(hop::PipeCreateOp pipe) {
  SmallVector<hop::RoleOp> fillers = hop::getFillers(pipe), readers = hop::getReaders(pipe);
  if (fillers.empty())
    return pipe.emitError("is filled by no role; load or put what its readers wait for, or "
                          "remove it");
  if (readers.empty())
    return pipe.emitError("is read by no role, so that nobody gives its slots back; wait for its "
                          "tiles and release them, or remove it");
  if (fillers.size() == 1)
    return checkFills(pipe);
  InFlightDiagnostic diag = pipe.emitError("is filled by @")
                            << fillers[0].getSymName() << " and @" << fillers[1].getSymName()
                            << ", whose fills have no order; use a pipe for each";
  diag.attachNote(fillers[1].getLoc()) << "the second role";
  return diag;
}

LogicalResult tessera::checkPipes(hop::KernelOp kernel) { return Protocol(kernel).check(); }
