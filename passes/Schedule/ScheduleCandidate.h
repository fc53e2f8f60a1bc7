//===- ScheduleCandidate.h - A schedule on its way ------------------------===//

#ifndef TESSERA_PASSES_SCHEDULE_SCHEDULECANDIDATE_H
#define TESSERA_PASSES_SCHEDULE_SCHEDULECANDIDATE_H

#include "passes/Schedule/ResourceModel.h"
#include "passes/Schedule/ScheduleFacts.h"

namespace tessera {

/// What is decided before shared memory is looked at.
struct Candidate {
  /// What is requested, and all fields but those of the grid and the slots of pipes.
  tile::ScheduleFields fields;
  OverlapShape shape;
  /// How tiles are loaded for arithmetic is a choice, and what registers consumers have.
  bool choosesLoads = false, choosesRegisters = false;
  /// Those with tiles in registers.
  llvm::SmallVector<const Helper *> helpers;
  int64_t registersOfHelpers = 0; ///< of a thread of each that has a warpgroup
  ClusterSharing sharing;
  /// Of a thread that computes, or of one of each consumer.
  tile::NumberList registersNeeded = tile::NumberList(0);
  /// Shared memory of tiles that the kernel computes, transposes or converts for its dots.
  int64_t operandBytes = 0;
  int64_t exchangeBytes = 0; ///< shared memory through which warps reduce and scan

  bool isSpecialized() const { return fields.hasProducer(); }
  bool isDivided() const { return fields.placement == tile::PlacementKind::divided; }
  bool hasHelper(RoleTask task) const {
    return llvm::any_of(helpers, [=](const Helper *helper) { return helper->task == task; });
  }
  bool hasReducer() const { return hasHelper(RoleTask::Sum); }
  /// Those that compute, load and help.
  int64_t warpgroups() const {
    return consumers() + isSpecialized() + llvm::count_if(helpers, [&](const Helper *helper) {
             return helper->hasWarpgroup(fields);
           });
  }
  int64_t consumers() const { return *fields.consumers; }
  /// What each role asks for, where the roles are warpgroups of their own.
  llvm::SmallVector<hop::RegisterRequest> registerRequests() const;
  /// What a thread has when the kernel starts.
  int64_t entryRegisters() const;
};

} // namespace tessera

#endif // TESSERA_PASSES_SCHEDULE_SCHEDULECANDIDATE_H
