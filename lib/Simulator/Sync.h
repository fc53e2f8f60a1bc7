//===- Sync.h - mbarriers and waiting ---------------------------*- C++ -*-===//
#ifndef TESSERA_SIMULATOR_SYNC_H
#define TESSERA_SIMULATOR_SYNC_H

#include "lib/Simulator/Machine.h"

namespace tessera::sim::detail {

/// Counts `count` arrivals after adding `tx` expected bytes. `warp`, which releases what it has
/// done, may be null. Who calls this and the next one has told the barrier what causes it.
void mbarrierArrive(Cluster &cluster, Cta &cta, Mbarrier &b, uint32_t count, int64_t tx, bool drop,
                    Warp *warp, const Inst *inst, int lane);
/// `bytes` have arrived by an asynchronous operation.
void mbarrierCompleteTx(Cluster &cluster, Cta &cta, Mbarrier &b, int64_t bytes, const Warp *warp,
                        const Inst *inst);
/// Whether a wait with this parity or state is over.
inline bool mbarrierPassed(const Mbarrier &b, uint64_t state, bool byState) {
  return byState ? b.phase > state : (b.phase & 1) != (state & 1);
}
/// `warp` finds in a wait, `inst`, that a phase is complete.
void observeMbarrier(const Run &run, Warp &warp, Mbarrier &b, const Inst &inst);

/// If the split's wait is over, completes the instruction it waits in and returns true.
bool tryWake(Cluster &cluster, Warp &warp, Split &split);
/// One line that says what a blocked split waits for.
std::string describeWait(Cluster &cluster, const Warp &warp, const Split &split, DiagKind &kind,
                         std::vector<std::string> &notes);

/// Named barriers complete when the last warp arrives, or when one that was still expected exits.
void checkNamedBarriers(Cta &cta);
void checkClusterBarrier(Cluster &cluster);

} // namespace tessera::sim::detail

#endif // TESSERA_SIMULATOR_SYNC_H
