//===- RegisterModel.h - What a kernel needs of the registers -------------===//
//
// Half of the feasibility model behind tile-choose-schedule: the registers that
// the threads of a kernel need, derived from its IR, and what they may have.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SCHEDULE_REGISTERMODEL_H
#define TESSERA_PASSES_SCHEDULE_REGISTERMODEL_H

#include "dialects/Hop/Hop.h"
#include "dialects/Hop/RegisterPool.h"
#include "dialects/Tile/ScheduleFields.h"
#include "dialects/Tile/Tile.h"
#include "passes/Analysis/DotDivision.h"
#include "passes/Analysis/ReducerSumAnalysis.h"
#include "passes/Analysis/VectorAxes.h"
#include "passes/Schedule/CostModel.h"

namespace tessera {

/// Registers that ptxas wants at entry for the widest instruction of the dots of `kernel`: it
/// assembles none that does not fit, whatever its role has later (C7602).
int64_t widestDotRegisters(tile::KernelOp kernel);

/// The split known to work on the hardware for `consumers` warpgroups, which
/// divides the registers of an SM among all threads of one CTA.
RegisterSplit registerSplit(int64_t consumers, bool warpSpecialize, const CostModel &model);

/// What the model lets a thread with `budget` registers use: some are spared for ptxas, and no
/// thread addresses more than hopper::mostThreadRegisters.
int64_t usableRegisters(int64_t budget, const CostModel &model);

/// Registers that a consumer thread needs when the rows of every dot are
/// divided among `consumers` warpgroups: the largest sum of tiles live at once
/// in `kernel` as it stands, plus a constant for addresses, counters and
/// descriptors. Tiles in shared memory and those that follow from scalars
/// (constants, splats, iotas, masks of them) are free; a row statistic takes 2
/// registers for 64 rows.
/// Without warp specialization the consumers also start the loads. Operands in shared memory take
/// no registers, and neither does what `placement` puts elsewhere. With `work = elements` loads,
/// reductions and additions to memory are part of the work on elements.
int64_t consumerRegisters(tile::KernelOp kernel, int64_t consumers, bool warpSpecialize,
                          tile::PlacementKind placement, tile::WorkKind work,
                          const CostModel &model);

/// The same for each of the consumers, which have different dots.
tile::NumberList dividedRegisters(tile::KernelOp kernel, const DotDivision &division,
                                  tile::WorkKind work, const CostModel &model);

/// Registers of a thread of the role that makes `sums` (placement = apart), as setmaxnreg takes
/// them.
int64_t reducerRegisters(llvm::ArrayRef<ReducerSum> sums, const tile::ScheduleFields &fields);

/// Registers of a thread of a producer that gathers what dots of `kernel` read, as setmaxnreg takes
/// them.
int64_t gatheringRegisters(tile::KernelOp kernel, const CostModel &model);

/// The same for a thread of a kernel without dots, whose tiles have `layout` and whose tiles of
/// rank 1 lie along `axes`.
int64_t directRegisters(tile::KernelOp kernel, hop::LayoutAttr layout, const VectorAxes &axes,
                        const CostModel &model);

} // namespace tessera

#endif // TESSERA_PASSES_SCHEDULE_REGISTERMODEL_H
