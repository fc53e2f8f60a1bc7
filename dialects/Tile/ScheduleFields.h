//===- ScheduleFields.h - The fields of a schedule as a struct ------------===//
//
// #tile.schedule with fields that can be set one at a time, and the one place that
// knows their names.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DIALECTS_TILE_SCHEDULEFIELDS_H
#define TESSERA_DIALECTS_TILE_SCHEDULEFIELDS_H

#include "dialects/Tile/Tile.h"

namespace tessera::tile {

/// The usual value of `section` (docs/performance.md).
constexpr int64_t usualSection = 2;

struct ScheduleFields {
  std::optional<bool> warpSpecialize;
  std::optional<int64_t> consumers;
  std::optional<StageCounts> stages;
  std::optional<int64_t> outerStages, overlap, lead;
  std::optional<JoinKind> rescale, pack;
  std::optional<OperandKind> operands;
  std::optional<int64_t> polynomialExp;
  std::optional<bool> pinWaits, pingpong, split, speculate;
  std::optional<StoreKind> store;
  std::optional<StagingKind> staging;
  std::optional<PersistentKind> persistent;
  std::optional<OrderKind> order;
  std::optional<int64_t> section, cluster;
  std::optional<bool> l2Hints, pdl;
  std::optional<int64_t> producerRegisters, consumerRegisters;

  ScheduleFields() = default;
  explicit ScheduleFields(ScheduleAttr attr);

  /// Calls `visit(name, field, field of other)` for every field, in the order in which they print.
  template <typename Visitor>
  void visitWith(ScheduleFields &other, Visitor &&visit) {
    visit("warp_specialize", warpSpecialize, other.warpSpecialize);
    visit("consumers", consumers, other.consumers);
    visit("stages", stages, other.stages);
    visit("outer_stages", outerStages, other.outerStages);
    visit("overlap", overlap, other.overlap);
    visit("lead", lead, other.lead);
    visit("rescale", rescale, other.rescale);
    visit("pack", pack, other.pack);
    visit("operands", operands, other.operands);
    visit("polynomial_exp", polynomialExp, other.polynomialExp);
    visit("pin_waits", pinWaits, other.pinWaits);
    visit("pingpong", pingpong, other.pingpong);
    visit("split", split, other.split);
    visit("speculate", speculate, other.speculate);
    visit("store", store, other.store);
    visit("staging", staging, other.staging);
    visit("persistent", persistent, other.persistent);
    visit("order", order, other.order);
    visit("section", section, other.section);
    visit("cluster", cluster, other.cluster);
    visit("l2_hints", l2Hints, other.l2Hints);
    visit("pdl", pdl, other.pdl);
    visit("producer_registers", producerRegisters, other.producerRegisters);
    visit("consumer_registers", consumerRegisters, other.consumerRegisters);
  }
  /// Calls `visit(name, field)` for every field.
  template <typename Visitor>
  void visit(Visitor &&visit) {
    visitWith(*this, [&](llvm::StringRef name, auto &field, auto &) { visit(name, field); });
  }

  /// The attribute; the fields must be in their ranges.
  ScheduleAttr get(mlir::MLIRContext *context) const;
  /// The attribute, or null with an error when a field is outside its range.
  ScheduleAttr getChecked(mlir::MLIRContext *context,
                          llvm::function_ref<mlir::InFlightDiagnostic()> emitError) const;
};

/// A field of a schedule and the values that it takes, as text, in their natural order.
struct ScheduleFieldDomain {
  std::string name;
  llvm::SmallVector<std::string> values;
};

/// The domain of every field, in the order in which they print: what the field's type and the
/// verifier of the attribute accept.
llvm::SmallVector<ScheduleFieldDomain> getScheduleFieldDomains(mlir::MLIRContext *context);

/// The fields that are set, as "consumers = 2, stages = 2": what ScheduleAttr::parseText reads.
std::string printScheduleFields(ScheduleAttr schedule);

} // namespace tessera::tile

#endif // TESSERA_DIALECTS_TILE_SCHEDULEFIELDS_H
