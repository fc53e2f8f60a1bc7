//===- FillProducts.cpp - What products do not need, under them -----------===//
//
// Implements hop-fill-products. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/ScheduleFields.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Analysis/RoleProgram.h"
#include "passes/Analysis/RowBounds.h"
#include "passes/Hop/HopPasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace tessera {
#define GEN_PASS_DEF_FILLPRODUCTS
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;

/// Whether an operation only computes scalars. A bound of rows loads what nothing stores.
static bool isScalar(Operation *op) {
  if (auto range = dyn_cast<tile::ReduceRangeOp>(op))
    return llvm::all_of(range.getOps<tile::LoadOp>(),
                        [](tile::LoadOp load) { return isNeverStored(load.getView()); });
  return op->getNumRegions() == 0 && !op->hasTrait<OpTrait::ConstantLike>() &&
         isMemoryEffectFree(op) &&
         llvm::all_of(op->getResultTypes(), [](Type t) { return t.isIntOrIndexOrFloat(); });
}

/// Whether it is a load of one element that nothing stores.
static bool loadsElement(Operation *op) {
  auto load = dyn_cast<tile::LoadOp>(op);
  return load && load.getType().isIntOrIndexOrFloat() && isNeverStored(load.getView());
}

/// Whether it takes long: a division, or a load.
static bool isDearScalar(Operation *op) {
  return isa<arith::DivUIOp, arith::RemUIOp, tile::LoadOp>(op);
}

/// Whether the role multiplies in `op`.
static bool multiplies(Operation *op) {
  return op->walk([](hop::MmaIssueOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// Whether the role waits in `op` for what others fill.
static bool waits(Operation *op) {
  auto find = [](Operation *inner) {
    bool isWait = inner->hasTrait<hop::ReadsPipe>();
    return isWait ? WalkResult::interrupt() : WalkResult::advance();
  };
  return op->walk(find).wasInterrupted();
}

namespace {

/// What roles need of each other to go on.
class Needs {
public:
  explicit Needs(hop::KernelOp kernel) : graph(kernel) {}

  /// Whether a role commits in `op` what others need before the value of `get` can be sent: the
  /// value must not be waited for first.
  bool holdsUpSender(Operation *op, hop::PipeGetOp get) const;

private:
  unsigned numberOf(Value pipe) const { return graph.numbers.lookup(pipe); }
  bool needsOther(unsigned role, unsigned sent) const;

  RoleGraph graph;
};

/// How a role hands a tile on: it takes a slot, writes it, and its threads meet before it is full.
struct Handover {
  hop::PipeAcquireOp acquire;
  hop::StageOp stage;
  hop::WarpgroupSyncOp sync;
  hop::PipeCommitOp commit;

  static std::optional<Handover> get(hop::PipeCommitOp commit) {
    auto sync = dyn_cast_or_null<hop::WarpgroupSyncOp>(commit->getPrevNode());
    auto stage = sync ? dyn_cast_or_null<hop::StageOp>(sync->getPrevNode()) : hop::StageOp();
    auto acquire = commit.getTile().getDefiningOp<hop::PipeAcquireOp>();
    if (!stage || !acquire || stage.getDestination() != acquire.getTile() ||
        acquire->getBlock() != commit->getBlock() || !acquire->isBeforeInBlock(stage))
      return std::nullopt;
    return Handover{acquire, stage, sync, commit};
  }

  /// The last of the products that the role issues next, with little to do before them. None that
  /// reads the slot.
  hop::MmaIssueOp findProduct() {
    hop::MmaIssueOp last;
    for (Operation *op = commit->getNextNode(); op; op = op->getNextNode()) {
      if (llvm::is_contained(op->getOperands(), acquire.getTile()))
        break;
      if (auto issue = dyn_cast<hop::MmaIssueOp>(op))
        last = issue;
      else if (!isLittle(op))
        break;
    }
    return last;
  }

private:
  /// Whether `op` belongs to another handover, or computes no tile but operands of products: what
  /// is rounded for one, or scaled to be added to.
  static bool isLittle(Operation *op) {
    if (isa<hop::PipeAcquireOp, hop::StageOp, hop::WarpgroupSyncOp, hop::PipeCommitOp>(op))
      return true;
    auto isTile = [](Type type) {
      auto tile = dyn_cast<RankedTensorType>(type);
      return tile && tile.getRank() > 1;
    };
    if (!isPure(op) || op->getNumRegions() != 0)
      return false;
    return llvm::none_of(op->getOperandTypes(), isTile) ||
           llvm::all_of(op->getUsers(),
                        llvm::IsaPred<hop::MmaIssueOp, hop::MmaWaitOp, hop::StageOp>);
  }
};

/// What a role asks of the next tile before its products, where these stand behind a condition that
/// takes divisions or comes from memory: computed while the last product of this tile runs, and
/// handed on by the loop over tiles.
class NextTile {
public:
  /// Of a loop over tiles, if it has such a condition.
  static std::optional<NextTile> find(scf::WhileOp loop, const Needs &needs);
  void prepare();

private:
  NextTile(scf::WhileOp loop, const Needs &needs) : loop(loop), needs(needs) {}
  bool findTaking();
  bool findAsked();
  Value isTile(Value number, OpBuilder &builder);
  void cloneAsked(Value number, OpBuilder &builder, SmallVector<Value> &results);
  SmallVector<Value> writeFirst(OpBuilder &builder);
  SmallVector<Value> writeNext(OpBuilder &builder);
  SmallVector<Value> writeBehindProduct();
  void handOn(ValueRange first, ValueRange next);

  Block *getBody() { return loop.getAfterBody(); }
  Value getNumber() { return getBody()->getArgument(0); }
  /// Whether the number may be taken before `op`, behind which the role takes it.
  bool mayTakeBefore(Operation *op);

  scf::WhileOp loop;
  const Needs &needs;
  /// How the role gets the number of the next tile, from pipe.get on.
  SmallVector<Operation *> taking;
  /// What is computed of the number of a tile, and what of it other operations use, but for what is
  /// computed again.
  llvm::SetVector<Operation *> asked;
  llvm::SmallPtrSet<Operation *, 16> again;
  SmallVector<Value> used;
  /// Where the products of a tile are, and the last one of them.
  scf::IfOp products;
  hop::MmaIssueOp last;
};

struct FillProductsPass : tessera::impl::FillProductsBase<FillProductsPass> {
  void runOnOperation() override {
    getOperation().walk([](Block *block) {
      hop::MmaIssueOp last;
      for (Operation &op : llvm::make_early_inc_range(*block)) {
        if (auto issue = dyn_cast<hop::MmaIssueOp>(op))
          last = issue;
        if (isa<hop::MmaWaitOp>(op) && last)
          sinkBehind(std::exchange(last, nullptr));
      }
    });
    Needs needs(getOperation());
    getOperation().walk([&](hop::PipeGetOp get) { takeEarly(get, needs); });
    if (getOperation().getSchedule().getPlacement() == tile::PlacementKind::divided) {
      SmallVector<hop::PipeCommitOp> commits;
      getOperation().walk([&](hop::PipeCommitOp commit) { commits.push_back(commit); });
      handOnBehind(commits);
    }
    SmallVector<scf::WhileOp> loops;
    getOperation().walk([&](scf::WhileOp loop) { loops.push_back(loop); });
    for (scf::WhileOp loop : loops)
      if (std::optional<NextTile> next = NextTile::find(loop, needs))
        next->prepare();
  }

private:
  /// Moves the scalars before `issue` that nothing up to it needs behind it.
  static void sinkBehind(hop::MmaIssueOp issue) {
    llvm::SmallPtrSet<Operation *, 16> needed = {issue};
    SmallVector<Operation *> others; // the last one first
    for (Operation *op = issue->getPrevNode(); op; op = op->getPrevNode()) {
      bool isUsed = llvm::any_of(op->getUsers(), [&](Operation *user) {
        return needed.contains(issue->getBlock()->findAncestorOpInBlock(*user));
      });
      if (isScalar(op) && !isUsed)
        others.push_back(op);
      else
        needed.insert(op);
    }
    for (Operation *op : others)
      op->moveAfter(issue);
  }

  /// Takes a slot behind the products for which the role next waits, as it is free long before; not
  /// ahead of what the role hands on before it.
  static void takeUnderProducts(hop::PipeAcquireOp acquire) {
    bool isBehindWait = false;
    for (Operation *op = acquire->getPrevNode(); op; op = op->getPrevNode()) {
      if (isBehindWait && isa<hop::MmaIssueOp>(op)) {
        while (isa<hop::PipeAcquireOp>(op->getNextNode()))
          op = op->getNextNode();
        return acquire->moveAfter(op);
      }
      isBehindWait |= isa<hop::MmaWaitOp>(op);
      if (isa<hop::PipeCommitOp>(op) || op->getNumRegions() != 0)
        return;
    }
  }

  /// Hands tiles on behind the products that the role issues next: another one waits for them a
  /// little longer, and this one's run meanwhile. Threads meet once for all of them.
  static void handOnBehind(ArrayRef<hop::PipeCommitOp> commits) {
    llvm::MapVector<Operation *, SmallVector<Handover>> behind;
    for (hop::PipeCommitOp commit : commits)
      if (std::optional<Handover> handover = Handover::get(commit))
        if (hop::MmaIssueOp product = handover->findProduct())
          behind[product].push_back(*handover);
    for (auto &[product, handovers] : behind) {
      if (handovers.size() < 2)
        continue;
      Operation *end = product;
      auto move = [&](Operation *op) {
        op->moveAfter(end);
        end = op;
      };
      for (Handover &handover : handovers) {
        for (Operation *op = handover.commit; op != product->getNextNode(); op = op->getNextNode())
          if (auto issue = dyn_cast<hop::MmaIssueOp>(op);
              issue && issue.getA() == handover.stage.getTile())
            issue.setCopiesA(true);
        move(handover.acquire);
      }
      for (Handover &handover : handovers)
        move(handover.stage);
      move(handovers.front().sync);
      for (Handover &handover : handovers) {
        move(handover.commit);
        if (handover.sync != handovers.front().sync)
          handover.sync->erase();
      }
      for (Handover &handover : handovers)
        takeUnderProducts(handover.acquire);
    }
  }

  /// Takes the number of the next tile behind the product that is issued last, once all tiles of
  /// this one have been waited for.
  static void takeEarly(hop::PipeGetOp get, const Needs &needs) {
    Operation *op = get->getPrevNode();
    while (op && op->getNumRegions() == 0 &&
           !isa<hop::PipeWaitOp, hop::PipePeekOp, hop::MmaIssueOp>(op) &&
           !needs.holdsUpSender(op, get))
      op = op->getPrevNode();
    if (isa_and_nonnull<hop::MmaIssueOp>(op))
      get->moveAfter(op);
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// What is needed before a value is sent
//===----------------------------------------------------------------------===//

/// Whether `role` reads another pipe of the roles that fill the pipe `sent`.
bool Needs::needsOther(unsigned role, unsigned sent) const {
  for (auto [number, channel] : llvm::enumerate(graph.channels))
    if (number != sent && llvm::is_contained(channel.readers, role) &&
        llvm::any_of(channel.fillers, [&](unsigned filler) {
          return llvm::is_contained(graph.channels[sent].fillers, filler);
        }))
      return true;
  return false;
}

bool Needs::holdsUpSender(Operation *op, hop::PipeGetOp get) const {
  llvm::SetVector<unsigned> roles; // that need what is committed, or what these give in turn
  op->walk([&](hop::PipeCommitOp commit) {
    roles.insert_range(graph.channels[numberOf(commit.getPipe())].readers);
  });
  for (size_t i = 0; i < roles.size(); ++i) {
    if (needsOther(roles[i], numberOf(get.getPipe())))
      return true;
    for (const Channel &channel : graph.channels)
      if (llvm::is_contained(channel.fillers, roles[i]))
        roles.insert_range(channel.readers);
  }
  return false;
}

//===----------------------------------------------------------------------===//
// The next tile
//===----------------------------------------------------------------------===//

std::optional<NextTile> NextTile::find(scf::WhileOp loop, const Needs &needs) {
  // The number of the tile comes first, and the condition hands on what the loop carries.
  auto hasNumber = [&] {
    return loop->getNumResults() > 0 && loop.getResult(0).getType().isIndex() &&
           llvm::equal(loop.getConditionOp().getArgs(), loop.getBeforeArguments());
  };
  NextTile next(loop, needs);
  if (!hasNumber() || !next.findTaking() || !next.findAsked())
    return std::nullopt;
  return next;
}

bool NextTile::mayTakeBefore(Operation *op) {
  return !waits(op) && !needs.holdsUpSender(op, cast<hop::PipeGetOp>(taking.front()));
}

/// The number is cast from what pipe.get gives behind all products.
bool NextTile::findTaking() {
  auto cast = getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::IndexCastOp>();
  auto get = cast ? cast.getIn().getDefiningOp<hop::PipeGetOp>() : hop::PipeGetOp();
  if (!get || get->getBlock() != getBody() || cast->getBlock() != getBody())
    return false;
  // A number is taken once: what else reads it would have it taken again.
  if (!get->hasOneUse() || !cast->hasOneUse())
    return false;
  taking = {get, cast};
  // Until then the role waits for nothing else that the one which gives out numbers may still load.
  for (Operation *op = get->getPrevNode(); op; op = op->getPrevNode()) {
    if (multiplies(op)) {
      products = dyn_cast<scf::IfOp>(op);
      break;
    }
    if (!mayTakeBefore(op))
      return false;
  }
  if (!products || products.getElseRegion().empty() ||
      llvm::any_of(*products.elseBlock(), [&](Operation &op) { return !mayTakeBefore(&op); }))
    return false;
  for (Operation &op : llvm::reverse(products.thenBlock()->without_terminator())) {
    if (last = dyn_cast<hop::MmaIssueOp>(op); last)
      return true;
    if (op.getNumRegions() || !mayTakeBefore(&op))
      return false;
  }
  return false;
}

/// All scalars before the products that follow from the number of the tile, if their condition
/// takes one that is dear.
bool NextTile::findAsked() {
  llvm::SmallPtrSet<Operation *, 16> needed;
  SmallVector<Value> work = {products.getCondition()};
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (op && op->getBlock() == getBody() && needed.insert(op).second)
      llvm::append_range(work, op->getOperands());
  }
  bool isDear = false;
  llvm::SmallPtrSet<Operation *, 16> ofNumber;
  for (Operation &op : llvm::make_range(getBody()->begin(), products->getIterator())) {
    bool follows = llvm::all_of(op.getOperands(), [&](Value operand) {
      return operand == getNumber() || asked.contains(operand.getDefiningOp()) ||
             loop.isDefinedOutsideOfLoop(operand);
    });
    bool isKnown = op.hasTrait<OpTrait::ConstantLike>() || isScalar(&op) || loadsElement(&op);
    if (!follows || !isKnown || op.getNumRegions())
      continue;
    asked.insert(&op);
    if (!llvm::any_of(op.getOperands(), [&](Value operand) {
          return operand == getNumber() || ofNumber.contains(operand.getDefiningOp());
        }))
      continue;
    ofNumber.insert(&op);
    isDear |= needed.contains(&op) && isDearScalar(&op);
  }
  for (Operation *op : asked) {
    if (!ofNumber.contains(op))
      continue;
    auto isHandedOn = [&](Value operand) {
      return operand != getNumber() &&
             (!ofNumber.contains(operand.getDefiningOp()) || llvm::is_contained(used, operand));
    };
    bool isUsed =
        llvm::any_of(op->getUsers(), [&](Operation *user) { return !asked.contains(user); });
    // What is cheap is computed again of what is handed on: of 32 bits, not of 64.
    if (isUsed && isa<arith::ExtSIOp, arith::IndexCastOp>(op) && !isHandedOn(op->getOperand(0)))
      used.push_back(op->getOperand(0));
    bool isCheap = !isDearScalar(op) && op != products.getCondition().getDefiningOp();
    if (isCheap && llvm::all_of(op->getOperands(), isHandedOn))
      again.insert(op);
    else if (isUsed)
      llvm::append_range(used, op->getResults());
  }
  return isDear;
}

/// Whether there is a tile of that number.
Value NextTile::isTile(Value number, OpBuilder &builder) {
  IRMapping mapping;
  for (auto [before, after] : llvm::zip(loop.getBeforeArguments(), getBody()->getArguments()))
    mapping.map(before, after);
  mapping.map(loop.getBeforeArguments().front(), number);
  for (Operation &op : loop.getBeforeBody()->without_terminator())
    builder.clone(op, mapping);
  return mapping.lookupOrDefault(loop.getConditionOp().getCondition());
}

void NextTile::cloneAsked(Value number, OpBuilder &builder, SmallVector<Value> &results) {
  IRMapping mapping;
  mapping.map(getNumber(), number);
  for (Operation *op : asked)
    builder.clone(*op, mapping);
  for (Value value : used)
    results.push_back(mapping.lookup(value));
}

/// For the first tile that the loop comes to, if there is one: before the loop.
SmallVector<Value> NextTile::writeFirst(OpBuilder &builder) {
  Location loc = loop.getLoc();
  IRMapping mapping;
  mapping.map(loop.getBeforeArguments(), loop.getInits());
  for (Operation &op : loop.getBeforeBody()->without_terminator())
    builder.clone(op, mapping);
  Value isThere = mapping.lookupOrDefault(loop.getConditionOp().getCondition());
  auto branch = scf::IfOp::create(builder, loc, ValueRange(used).getTypes(), isThere,
                                  /*withElseRegion=*/true);
  SmallVector<Value> found, none;
  OpBuilder inner = branch.getThenBodyBuilder();
  cloneAsked(loop.getInits().front(), inner, found);
  scf::YieldOp::create(inner, loc, found);
  inner = branch.getElseBodyBuilder();
  for (Value value : used)
    none.push_back(arith::ConstantOp::create(inner, loc, inner.getZeroAttr(value.getType())));
  scf::YieldOp::create(inner, loc, none);
  return branch.getResults();
}

/// The number of the next tile and what is asked of it. Behind the last one it is asked of this one
/// again: a load has to lie inside the view.
SmallVector<Value> NextTile::writeNext(OpBuilder &builder) {
  IRMapping mapping;
  for (Operation *op : taking)
    builder.clone(*op, mapping);
  SmallVector<Value> results = {mapping.lookup(taking.back()->getResult(0))};
  Value number = arith::SelectOp::create(builder, loop.getLoc(), isTile(results[0], builder),
                                         results[0], getNumber());
  cloneAsked(number, builder, results);
  return results;
}

/// Has both branches of the conditional give what the next tile is asked.
SmallVector<Value> NextTile::writeBehindProduct() {
  OpBuilder builder(products);
  OpBuilder behind(last->getContext());
  behind.setInsertionPointAfter(last);
  SmallVector<Value> next = writeNext(behind);
  behind.setInsertionPointToStart(products.elseBlock());
  SmallVector<Value> nextElse = writeNext(behind);
  products.thenYield()->insertOperands(products.getNumResults(), next);
  products.elseYield()->insertOperands(products.getNumResults(), nextElse);
  SmallVector<Type> types(products.getResultTypes());
  llvm::append_range(types, ValueRange(next).getTypes());
  auto branch = scf::IfOp::create(builder, products.getLoc(), types, products.getCondition());
  branch.getThenRegion().takeBody(products.getThenRegion());
  branch.getElseRegion().takeBody(products.getElseRegion());
  unsigned own = products.getNumResults();
  products->replaceAllUsesWith(branch.getResults().take_front(own));
  products.erase();
  return branch.getResults().drop_front(own);
}

/// Has the loop carry what is asked, of which it has what belongs to its first tile.
void NextTile::handOn(ValueRange first, ValueRange next) {
  OpBuilder builder(loop);
  SmallVector<Value> inits(loop.getInits());
  llvm::append_range(inits, first);
  unsigned own = loop.getNumResults();
  auto carrying = scf::WhileOp::create(builder, loop.getLoc(), ValueRange(inits).getTypes(), inits);
  carrying.getBefore().takeBody(loop.getBefore());
  carrying.getAfter().takeBody(loop.getAfter());
  Operation *yield = carrying.getAfterBody()->getTerminator();
  yield->setOperand(0, next.front());
  yield->insertOperands(own, next.drop_front());
  for (Value value : used) {
    Value before = carrying.getBeforeBody()->addArgument(value.getType(), value.getLoc());
    carrying.getConditionOp().getArgsMutable().append(before);
    Value after = carrying.getAfterBody()->addArgument(value.getType(), value.getLoc());
    value.replaceUsesWithIf(after, [&](OpOperand &use) {
      return !asked.contains(use.getOwner()) || again.contains(use.getOwner());
    });
  }
  loop->replaceAllUsesWith(carrying.getResults().take_front(own));
  loop.erase();
}

void NextTile::prepare() {
  products->emitRemark("asks what the next tile is while the last product of this one runs");
  OpBuilder before(loop);
  SmallVector<Value> first = writeFirst(before), next = writeBehindProduct();
  handOn(first, next);
  for (Operation *op : llvm::reverse(taking))
    op->erase();
  for (Operation *op : llvm::reverse(asked))
    if (op->use_empty())
      op->erase();
}
