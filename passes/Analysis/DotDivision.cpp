//===- DotDivision.cpp - Dots in consumer roles of different programs -----===//

#include "passes/Analysis/DotDivision.h"
#include "dialects/Hop/SharedLayout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Analysis/Conversions.h"
#include "passes/Analysis/MemoryDependenceAnalysis.h"
#include "passes/Analysis/ReducerSumAnalysis.h"
#include "passes/Analysis/ScfFlow.h"
#include "passes/Analysis/VectorAxes.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;

//===----------------------------------------------------------------------===//
// Accumulators
//===----------------------------------------------------------------------===//

namespace {
/// A place that dots accumulate into, with what loops and conditionals hand it on to.
struct Accumulator {
  llvm::SetVector<Value> values;
  SmallVector<tile::DotOp> dots;

  bool isCarried() const {
    return llvm::any_of(values, [](Value value) {
      auto argument = dyn_cast<BlockArgument>(value);
      return argument && isa<scf::ForOp>(argument.getOwner()->getParentOp());
    });
  }
  int64_t getElements() const {
    return cast<RankedTensorType>(values.front().getType()).getNumElements();
  }
};
} // namespace

/// Adds to `values`, which begin with the result of a dot, all that is in the same place. What is
/// computed otherwise only starts there, as it may in several places.
static void collectPlace(llvm::SetVector<Value> &values) {
  auto add = [&](Value value) {
    if (value.getDefiningOp<tile::DotOp>() || findHandoverTo(value))
      values.insert(value);
  };
  for (size_t i = 0; i < values.size(); ++i) {
    Value value = values[i];
    if (std::optional<Handover> handover = findHandoverTo(value))
      llvm::for_each(handover->values(), add);
    else if (auto dot = value.getDefiningOp<tile::DotOp>())
      if (Value acc = dot.getAcc())
        add(acc);
    for (OpOperand &use : value.getUses()) {
      if (std::optional<Handover> handover = findHandoverOf(use))
        llvm::for_each(handover->values(), add);
      else if (auto dot = dyn_cast<tile::DotOp>(use.getOwner()); dot && use.getOperandNumber() == 2)
        add(dot.getResult());
    }
  }
}

/// The accumulators of `dots`, in their order.
static SmallVector<Accumulator> findAccumulators(ArrayRef<tile::DotOp> dots) {
  SmallVector<Accumulator> accumulators;
  for (tile::DotOp dot : dots) {
    auto *known = llvm::find_if(accumulators, [&](const Accumulator &accumulator) {
      return accumulator.values.contains(dot.getResult());
    });
    if (known == accumulators.end()) {
      known = &accumulators.emplace_back();
      known->values.insert(dot.getResult());
      collectPlace(known->values);
    }
    known->dots.push_back(dot);
  }
  return accumulators;
}

/// The dots of `kernel` without those of sums that a role of their own makes.
static SmallVector<tile::DotOp> dotsOfConsumers(tile::KernelOp kernel) {
  DenseSet<Operation *> apart = reducerOperations(kernel, tile::PlacementKind::divided);
  SmallVector<tile::DotOp> dots;
  kernel.walk([&](tile::DotOp dot) {
    if (!apart.contains(dot))
      dots.push_back(dot);
  });
  return dots;
}

unsigned DotDivision::countAccumulators(tile::KernelOp kernel) {
  return llvm::count_if(findAccumulators(dotsOfConsumers(kernel)),
                        [](const Accumulator &accumulator) { return accumulator.isCarried(); });
}

/// Cuts `sizes` into `count` runs so that the largest sum is as small as possible: the run of each.
static SmallVector<unsigned> cutIntoRuns(ArrayRef<int64_t> sizes, unsigned count) {
  // The most in a run: the least number with which filling one run after the other needs no more.
  auto fill = [&](int64_t most) {
    SmallVector<unsigned> runs;
    int64_t sum = 0;
    for (auto [i, size] : llvm::enumerate(sizes)) {
      unsigned last = runs.empty() ? 0 : runs.back();
      // Each run has one at least.
      bool mustCut = sizes.size() - i == count - 1 - last;
      bool cuts = i > 0 && last + 1 < count && (sum + size > most || mustCut);
      runs.push_back(last + cuts);
      sum = cuts ? size : sum + size;
      if (sum > most)
        return SmallVector<unsigned>();
    }
    return runs;
  };
  auto range = llvm::seq_inclusive<int64_t>(*llvm::max_element(sizes), llvm::sum_of(sizes));
  return fill(*llvm::partition_point(range, [&](int64_t most) { return fill(most).empty(); }));
}

//===----------------------------------------------------------------------===//
// What belongs to which consumer
//===----------------------------------------------------------------------===//

/// All that `root` is computed from, with itself; not beyond dots that another consumer has.
DenseSet<Operation *> DotDivision::reach(Operation *root, bool stopsAtOthers) const {
  DenseSet<Operation *> found = {root};
  SmallVector<Value> open(root->getOperands());
  DenseSet<Value> seen;
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (std::optional<Handover> handover = findHandoverTo(value)) {
      llvm::append_range(open, handover->from);
      continue;
    }
    Operation *op = value.getDefiningOp();
    if (!op || !found.insert(op).second)
      continue;
    bool isOther = stopsAtOthers && dots.contains(op) && dots.lookup(op) != ownerOf(root);
    if (!isOther)
      llvm::append_range(open, op->getOperands());
  }
  return found;
}

/// Gives each dot to a consumer.
bool DotDivision::assignDots(unsigned consumers, DivisionRefusal &refusal) {
  SmallVector<tile::DotOp> all = dotsOfConsumers(kernel);
  SmallVector<Accumulator> accumulators = findAccumulators(all);
  llvm::erase_if(accumulators, [](const Accumulator &a) { return !a.isCarried(); });
  // The first consumer has no accumulator where there is one consumer more.
  bool isFirstFree = accumulators.size() > 1 && consumers == accumulators.size() + 1;
  if (consumers < 2 || (accumulators.size() < consumers && !isFirstFree)) {
    refusal = {kernel, llvm::formatv("its loops carry {0} accumulators of dots, of which each of 2 "
                                     "consumers or more wants one; use placement = rows",
                                     accumulators.size())};
    return false;
  }
  SmallVector<int64_t> sizes;
  for (const Accumulator &accumulator : accumulators)
    sizes.push_back(accumulator.getElements());
  SmallVector<unsigned> runs = cutIntoRuns(sizes, consumers - isFirstFree);
  for (unsigned &run : runs)
    run += isFirstFree;
  DenseMap<Operation *, unsigned> owner;
  for (auto [accumulator, consumer] : llvm::zip_equal(accumulators, runs))
    for (tile::DotOp dot : accumulator.dots)
      owner[dot] = consumer;
  DenseSet<Operation *> leading, shared;
  for (auto [accumulator, consumer] : llvm::zip_equal(accumulators, runs))
    for (tile::DotOp dot : accumulator.dots)
      for (Operation *op : reach(dot, /*stopsAtOthers=*/false)) {
        if (!isa<tile::DotOp>(op))
          continue;
        if (owner.try_emplace(op, consumer).second)
          leading.insert(op);
        else if (leading.contains(op) && owner.lookup(op) != consumer)
          shared.insert(op);
      }
  if (isFirstFree && shared.empty()) {
    refusal = {kernel, llvm::formatv("its loops carry {0} accumulators of dots, and no dot that a "
                                     "consumer beside theirs could have leads to several of them; "
                                     "use {0} consumers or fewer",
                                     accumulators.size())};
    return false;
  }
  if (isFirstFree)
    for (Operation *op : shared)
      owner[op] = 0;
  // A dot that no accumulator needs runs where the one before it does.
  unsigned before = 0;
  for (tile::DotOp dot : all)
    before = dots[dot] = owner.contains(dot) ? owner.lookup(dot) : before;
  return true;
}

unsigned DotDivision::ownerOf(Operation *op) const {
  auto dot = dots.find(op);
  if (dot != dots.end())
    return dot->second;
  auto known = owners.find(op);
  return known == owners.end() ? programs.size() - 1 : known->second;
}

/// Whether `op` is a dot of another consumer, or computed of such dots alone.
bool DotDivision::isOfOther(Operation *op, unsigned consumer) const {
  return (dots.contains(op) || owners.contains(op)) && ownerOf(op) != consumer;
}

/// More than tiles have.
static constexpr int64_t never = int64_t(1) << 40;

/// The bytes that go through a pipe where the result of `op` does.
static int64_t bytesOfResult(Operation *op) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  return type && type.getElementType().isFloat()
             ? type.getNumElements() * type.getElementTypeBitWidth() / 8
             : never;
}

/// The bytes that `consumer` gets from others to have what `op` makes.
int64_t DotDivision::bytesFor(Operation *op, unsigned consumer) {
  return isOfOther(op, consumer) ? std::min(bytesOfResult(op), bytesToCompute(op, consumer)) : 0;
}

/// Whether a loop carries `value`, which then crosses in each of its iterations.
static bool isLoopResult(Value value) { return isa_and_present<scf::ForOp>(value.getDefiningOp()); }

/// The same to compute it, of operands that count by themselves. What loops hand on to their bodies
/// is not counted: it crosses where the other consumer has it anyway.
int64_t DotDivision::bytesToCompute(Operation *op, unsigned consumer) {
  if (dots.contains(op))
    return never;
  auto [known, isNew] = costs.try_emplace({op, consumer}, 0);
  if (!isNew)
    return known->second;
  int64_t bytes = 0;
  for (Value operand : llvm::SmallSetVector<Value, 4>(op->operand_begin(), op->operand_end())) {
    Operation *maker = operand.getDefiningOp();
    if (findHandoverTo(operand))
      bytes += isLoopResult(operand) || ownSlices[ownerOf(op)].contains(op) ? never : 0;
    else if (maker)
      bytes += bytesFor(maker, consumer);
    bytes = std::min(bytes, never);
  }
  costs[{op, consumer}] = bytes;
  return bytes;
}

/// Whether `consumer` gets what `op` makes from another one. Of ways that take as many bytes it
/// takes what the other one has anyway.
bool DotDivision::crosses(Operation *op, unsigned consumer) {
  if (!isOfOther(op, consumer))
    return false;
  int64_t crossing = bytesOfResult(op), computing = bytesToCompute(op, consumer);
  return crossing < computing || (crossing == computing && ownSlices[ownerOf(op)].contains(op));
}

void DotDivision::run(Operation *op, unsigned consumer) {
  if (!programs[consumer].operations.insert(op) || converted.contains(op))
    return;
  for (Value operand : op->getOperands())
    need(operand, consumer);
}

void DotDivision::need(Operation *op, unsigned consumer) {
  if (!crosses(op, consumer))
    return run(op, consumer);
  crossed.insert(op);
  run(op, ownerOf(op));
}

void DotDivision::need(Value value, unsigned consumer) {
  if (!programs[consumer].values.insert(value).second)
    return;
  if (std::optional<Handover> handover = findHandoverTo(value)) {
    for (Value other : handover->values())
      need(other, consumer);
    return;
  }
  if (Operation *op = value.getDefiningOp())
    need(op, consumer);
}

bool DotDivision::takesIntoRegisters(unsigned consumer, Operation *op) const {
  return llvm::any_of(op->getResult(0).getUses(), [&](OpOperand &use) {
    if (std::optional<Handover> handover = findHandoverOf(use))
      return has(consumer, handover->to.front());
    bool isOperand = (isa<tile::DotOp>(use.getOwner()) && use.getOperandNumber() == 0) ||
                     isa<tile::TransposeOp>(use.getOwner());
    return runs(consumer, use.getOwner()) && !isOperand;
  });
}

//===----------------------------------------------------------------------===//
// What cannot be divided
//===----------------------------------------------------------------------===//

/// Refuses what no pipe of tiles takes.
bool DotDivision::checkCrossing(const Crossing &crossing, DivisionRefusal &refusal) const {
  auto type = dyn_cast<RankedTensorType>(crossing.op->getResult(0).getType());
  auto refuse = [&](std::string reason) {
    refusal = {crossing.op, "is made by one consumer and needed by another one (placement = "
                            "divided), and " +
                                reason + "; use placement = rows"};
    return false;
  };
  if (!type)
    return refuse("only tiles and vectors go from one to the other");
  if (type.getRank() == 1) {
    VectorAxes axes(/*usual=*/0);
    tile::KernelOp program = kernel;
    bool isOfRows = succeeded(axes.run(program)) && axes.lookup(crossing.op->getResult(0)) == 0;
    if (isOfRows && type.getElementType().isF32() && type.getDimSize(0) % hopper::mmaRows == 0)
      return true;
    return refuse(
        "a vector goes from one to the other as f32, one for each row, a multiple of 64 of "
        "them");
  }
  unsigned bits = type.getElementTypeBitWidth();
  if (!isa<FloatType>(type.getElementType()) || (bits != 16 && bits != 32))
    return refuse("only floats of 16 or 32 bits go from one to the other");
  if (type.getDimSize(0) % hopper::mmaRows != 0 || !hop::getSharedLayout(type))
    return refuse("a tile goes from one to the other in rows that are multiples of 32 bytes, a "
                  "multiple of 64 of them");
  for (unsigned consumer = 0; consumer < getConsumers(); ++consumer)
    for (Operation *user : crossing.op->getResult(0).getUsers())
      if (consumer != crossing.from && runs(consumer, user) && isa<tile::TransposeOp>(user) &&
          bits != 16)
        return refuse("a dot reads tiles of 16 bits transposed");
  return true;
}

/// Refuses stores to what another role touches: only within a role is there an order.
bool DotDivision::checkViews(DivisionRefusal &refusal) const {
  DenseSet<Operation *> apart = reducerOperations(kernel, tile::PlacementKind::divided);
  auto isOnlyIn = [&](Operation *op, unsigned consumer) {
    for (unsigned other = 0; other < getConsumers(); ++other)
      if (runs(other, op) != (other == consumer))
        return false;
    return !apart.contains(op);
  };
  tile::KernelOp program = kernel;
  MemoryDependenceAnalysis order(
      program.getBody(), program.getBody().getArguments().drop_front(program.getNumArguments()),
      program.getGrid());
  DenseSet<std::pair<Operation *, Operation *>> meet;
  order.forEachPair([&](const AccessPair &pair) {
    if (order.mayMeet(pair)) {
      meet.insert({pair.earlier.op, pair.later.op});
      meet.insert({pair.later.op, pair.earlier.op});
    }
  });
  for (unsigned consumer = 0; consumer < getConsumers(); ++consumer)
    for (Operation *op : programs[consumer].operations) {
      auto store = dyn_cast<tile::StoreOp>(op);
      if (!store || apart.contains(op))
        continue;
      for (Operation *user : store.getView().getUsers())
        if (!isOnlyIn(user, consumer) &&
            (user == op || apart.contains(user) || meet.contains({op, user}))) {
          refusal = {op, "stores to what another role touches, and roles have no order in memory "
                         "(placement = divided); use placement = rows"};
          return false;
        }
    }
  return true;
}

bool DotDivision::check(DivisionRefusal &refusal) const {
  for (const Crossing &crossing : crossings)
    if (!checkCrossing(crossing, refusal))
      return false;
  DenseMap<Value, unsigned> makers;
  for (const ReducerSum &sum : findReducerSums(kernel)) {
    unsigned maker = ownerOf(sum.operand);
    if (makers.try_emplace(tile::StoreOp(sum.store).getView(), maker).first->second == maker)
      continue;
    refusal = {sum.operand, "is made by another consumer than what is added to the same view "
                            "elsewhere (placement = divided); use placement = rows or apart"};
    return false;
  }
  return checkViews(refusal);
}

void DotDivision::numberCrossings() {
  llvm::DenseMap<std::tuple<Block *, Type, unsigned>, unsigned> counts;
  kernel.walk([&](Operation *op) {
    if (!crossed.contains(op))
      return;
    unsigned owner = ownerOf(op),
             &count = counts[{op->getBlock(), op->getResult(0).getType(), owner}];
    crossings.push_back({op, owner, count++});
  });
}

std::optional<DotDivision> DotDivision::get(tile::KernelOp kernel, unsigned consumers,
                                            DivisionRefusal &refusal) {
  DotDivision division(kernel);
  for (const Conversion &conversion : findConversions(kernel))
    division.converted.insert(conversion.operations.back());
  if (!division.assignDots(consumers, refusal))
    return std::nullopt;
  DenseSet<Operation *> apart = reducerOperations(kernel, tile::PlacementKind::divided);
  SmallVector<Operation *> roots;
  division.programs.resize(consumers);
  division.ownSlices.resize(consumers);
  kernel.walk([&](Operation *op) {
    if (apart.contains(op) || op == kernel || op->getNumRegions() != 0)
      return;
    // The last of the dots that it is computed from.
    DenseSet<Operation *> reached = division.reach(op, /*stopsAtOthers=*/false);
    for (auto [dot, consumer] : division.dots)
      if (reached.contains(dot))
        division.owners[op] = consumer;
    if (isa<tile::DotOp>(op) || tile::storesToView(op))
      roots.push_back(op);
  });
  for (const ReducerSum &sum : findReducerSums(kernel))
    roots.push_back(sum.operand);
  for (Operation *root : roots)
    for (Operation *op : division.reach(root, /*stopsAtOthers=*/true))
      division.ownSlices[division.ownerOf(root)].insert(op);
  for (Operation *root : roots)
    division.run(root, division.ownerOf(root));
  division.numberCrossings();
  if (!division.check(refusal))
    return std::nullopt;
  return division;
}
