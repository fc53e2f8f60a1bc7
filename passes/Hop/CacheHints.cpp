//===- CacheHints.cpp - What the L2 cache should keep ---------------------===//
//
// Implements hop-cache-hints. See HopPasses.td.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/ScheduleFields.h"
#include "dialects/Tile/TileBox.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/Analysis/IndexDependence.h"
#include "passes/Hop/HopPasses.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

namespace tessera {
#define GEN_PASS_DEF_CACHEHINTS
#include "passes/Hop/HopPasses.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using hop::CachePolicy;

namespace {

/// A tile of a view at indices, and how many elements it covers along each of them.
struct Access {
  template <typename AccessOp>
  Access(AccessOp op, RankedTensorType tile)
      : op(op), indices(op.getIndices()), box(op.getView().getType(), tile, op.getBox()) {}

  Operation *op;
  ValueRange indices;
  tile::TileBox box;
};

/// A policy, or none, and the reason.
struct Choice {
  std::optional<CachePolicy> policy;
  std::string reason;
};

/// Answers for one kernel where its accesses lie for different points of the grid.
class Reuse {
public:
  explicit Reuse(hop::KernelOp kernel) : kernel(kernel) {}

  Choice chooseForLoads(ArrayRef<Access> loads);
  Choice chooseForStore(const Access &store);

private:
  const IndexDependence &dependenceOn(Value index) {
    return dependences.try_emplace(index.getAsOpaquePointer(), index).first->second;
  }
  bool dependsOn(ValueRange values, Value index) {
    return llvm::any_of(values, [&](Value v) { return dependenceOn(index).contains(v); });
  }
  std::optional<int64_t> coefficientOf(Value value, Value index);
  bool isSeparate(const Access &access, unsigned gridDim);
  std::optional<unsigned> findShared(const Access &access);
  bool isRepeated(const Access &access);

  hop::KernelOp kernel;
  std::map<void *, IndexDependence> dependences;
};

/// c where `value` is c * `index` plus what does not depend on it.
std::optional<int64_t> Reuse::coefficientOf(Value value, Value index) {
  if (value == index)
    return 1;
  if (!dependenceOn(index).contains(value))
    return 0;
  Operation *op = value.getDefiningOp();
  if (auto cast = dyn_cast_or_null<arith::IndexCastOp>(op))
    return coefficientOf(cast.getIn(), index);
  if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return std::nullopt;
  std::optional<int64_t> left = coefficientOf(op->getOperand(0), index),
                         right = coefficientOf(op->getOperand(1), index);
  if (!left || !right)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return *left + *right;
  if (isa<arith::SubIOp>(op))
    return *left - *right;
  for (auto [factor, other] : {std::pair(op->getOperand(0), *right), {op->getOperand(1), *left}})
    if (std::optional<int64_t> constant = getConstantIntValue(factor))
      return *constant * other;
  return std::nullopt;
}

/// Whether the tiles of two points that differ in a grid index never meet: along some dimension of
/// the view they are as far apart as all warpgroups' shares of the tile are wide, and nothing else
/// moves them there.
bool Reuse::isSeparate(const Access &access, unsigned gridDim) {
  Value index = kernel.getGridIndex(gridDim);
  auto role = access.op->getParentOfType<hop::RoleOp>();
  Value warpgroup = role.getBody().getArgument(0);
  for (auto [dim, place] : llvm::enumerate(access.indices)) {
    std::optional<int64_t> apart = coefficientOf(place, index),
                           share = coefficientOf(place, warpgroup);
    if (!apart || *apart == 0 || !share)
      continue;
    int64_t width = access.box.getExtent(dim) + std::abs(*share) * (role.getWarpgroups() - 1);
    bool moves = false;
    for (unsigned other = 0; other < kernel.getGrid().size(); ++other)
      moves |= other != gridDim && dependenceOn(kernel.getGridIndex(other)).contains(place);
    for (auto loop = access.op->getParentOfType<scf::ForOp>(); loop;
         loop = loop->getParentOfType<scf::ForOp>()) {
      moves |= dependenceOn(loop.getInductionVar()).contains(place);
      for (Value carried : loop.getRegionIterArgs())
        moves |= dependenceOn(carried).contains(place);
    }
    if (std::abs(*apart) >= width && !moves)
      return true;
  }
  return false;
}

/// A grid dimension along which tiles may meet.
std::optional<unsigned> Reuse::findShared(const Access &access) {
  for (unsigned dim = 0; dim < kernel.getGrid().size(); ++dim)
    if (!isSeparate(access, dim))
      return dim;
  return std::nullopt;
}

/// Whether a loop comes to the same place again.
bool Reuse::isRepeated(const Access &access) {
  for (auto loop = access.op->getParentOfType<scf::ForOp>(); loop;
       loop = loop->getParentOfType<scf::ForOp>())
    if (!dependsOn(access.indices, loop.getInductionVar()))
      return true;
  return false;
}

/// Of the loads into the slots of one pipe, copies of one load.
Choice Reuse::chooseForLoads(ArrayRef<Access> loads) {
  Value first = kernel.getGridIndex(0);
  if (llvm::any_of(loads, [&](const Access &load) { return !dependsOn(load.indices, first); }))
    return {CachePolicy::EvictLast, "its place does not depend on the first grid index, so that "
                                    "neighbours load it too"};
  for (const Access &load : loads) {
    if (isRepeated(load))
      return {std::nullopt, "a loop loads it again from the same place"};
    if (std::optional<unsigned> dim = findShared(load))
      return {std::nullopt,
              llvm::formatv("its place depends on the first grid index, but tiles that differ in "
                            "grid index {0} may overlap",
                            *dim)
                  .str()};
  }
  return {CachePolicy::EvictFirst, "no other tile of the grid loads it"};
}

Choice Reuse::chooseForStore(const Access &store) {
  if (isRepeated(store))
    return {std::nullopt, "a loop stores to the same place again"};
  if (std::optional<unsigned> dim = findShared(store))
    return {std::nullopt,
            llvm::formatv("tiles that differ in grid index {0} may store to the same place", *dim)
                .str()};
  return {CachePolicy::EvictFirst, "no other tile of the grid stores there"};
}

struct CacheHintsPass : tessera::impl::CacheHintsBase<CacheHintsPass> {
  void runOnOperation() override {
    hop::KernelOp kernel = getOperation();
    reported.clear();
    const tile::ScheduleFields &schedule = kernel.getSchedule().getFields();
    if (failed(schedule.require(kernel, &tile::ScheduleFields::l2Hints)))
      return signalPassFailure();
    if (!*schedule.l2Hints || kernel.getGrid().empty())
      return;
    Reuse reuse(kernel);
    for (auto pipe : kernel.getBody().getOps<hop::PipeCreateOp>())
      markLoads(pipe, reuse);
    kernel.walk([&](Operation *op) {
      if (auto store = dyn_cast<tile::StoreOp>(op))
        markStore(store, cast<RankedTensorType>(store.getValue().getType()), reuse);
      else if (auto store = dyn_cast<hop::BulkStoreOp>(op))
        markStore(store, store.getSource().getType().getTile(), reuse);
    });
  }

  void markLoads(hop::PipeCreateOp pipe, Reuse &reuse) {
    SmallVector<Access> loads;
    for (Operation *user : pipe.getPipe().getUsers())
      if (auto load = dyn_cast<hop::PipeLoadOp>(user))
        loads.emplace_back(load, pipe.getPipe().getType().getTile());
    if (loads.empty())
      return;
    Choice choice = reuse.chooseForLoads(loads);
    for (const Access &load : loads)
      apply(choice, load.op, pipe, pipe.getLabel(), "load of");
  }

  template <typename StoreOp>
  void markStore(StoreOp store, RankedTensorType tile, Reuse &reuse) {
    auto kernel = store->template getParentOfType<hop::KernelOp>();
    StringRef label = kernel.getArgumentName(cast<BlockArgument>(store.getView()).getArgNumber());
    apply(reuse.chooseForStore(Access(store, tile)), store, store, label, "store to");
  }

  /// Sets the policy; says so once for the copies of one access.
  void apply(const Choice &choice, Operation *op, Operation *place, StringRef label,
             StringRef what) {
    if (choice.policy)
      hop::HopDialect::CacheAttrHelper(&getContext())
          .setAttr(op, hop::CachePolicyAttr::get(&getContext(), *choice.policy));
    std::string text = llvm::formatv("{0} '{1}' is {2}: {3}", what, label,
                                     choice.policy ? stringifyEnum(*choice.policy)
                                                   : StringRef("left to the cache"),
                                     choice.reason)
                           .str();
    if (reported.insert(text).second)
      place->emitRemark(text);
  }

  llvm::StringSet<> reported;
};

} // namespace
