//===- Async.h - Operations that complete later -----------------*- C++ -*-===//
#ifndef TESSERA_SIMULATOR_ASYNC_H
#define TESSERA_SIMULATOR_ASYNC_H

#include "lib/Simulator/Machine.h"

namespace tessera::sim::detail {

/// An operation that `inst` of the executing warp issues, of all active lanes or of `lane`.
std::unique_ptr<AsyncOp> makeAsync(const Exec &exec, const Inst &inst, AsyncOp::Kind kind,
                                   unsigned lane = 0);
/// `op` is the next operation of `groups`.
void joinGroups(AsyncGroups &groups, AsyncOp &op);
/// `op` is pending from now on, after all that the warp has done. What the warp does next is not
/// ordered before it once the warp has released (Warp::release).
void addPending(Exec &exec, std::unique_ptr<AsyncOp> op);

/// Performs (or performs the next half of) a pending operation; true when it is finished and must
/// be removed.
bool completeAsync(Cluster &cluster, AsyncOp &op);
/// A group's operation has read its sources, or has finished.
void advanceGroups(AsyncGroups &groups, uint32_t index, uint8_t state);

/// The warpgroup's oldest wgmma can run: all four warps have issued it.
bool wgmmaReady(const Warpgroup &group);
void completeWgmma(Cluster &cluster, Cta &cta, unsigned group);
/// The warp knows that its wgmmas up to `count` are complete.
void finishWgmmaWait(Cluster &cluster, Warp &warp, uint64_t count);
/// Marks registers in flight; see RegMeta.
void clearFlight(Warp &warp, uint64_t completed);

} // namespace tessera::sim::detail

#endif // TESSERA_SIMULATOR_ASYNC_H
