//===- ScheduleSearch.h - Which schedules of a kernel fit the machine -----===//

#ifndef TESSERA_PASSES_SCHEDULE_SCHEDULESEARCH_H
#define TESSERA_PASSES_SCHEDULE_SCHEDULESEARCH_H

#include "dialects/Tile/ScheduleFields.h"
#include "passes/Analysis/DotDivision.h"
#include "passes/Analysis/OrderedSums.h"
#include "passes/Schedule/Exponentials.h"
#include "passes/Schedule/Helpers.h"
#include "passes/Schedule/LoopOverlap.h"
#include "passes/Schedule/RegisterModel.h"
#include "passes/Schedule/ResourceModel.h"
#include "passes/Schedule/ScheduleChoice.h"
#include <map>
#include <vector>

namespace tessera {

/// Whether `kernel` multiplies tiles. Orders of work differ between products alone.
bool hasDots(tile::KernelOp kernel);

/// A kernel with copies that have been overlapped, to measure them all.
class ScheduleSearch {
public:
  ScheduleSearch(tile::KernelOp kernel, const CostModel &model);
  ~ScheduleSearch() {
    for (auto &[shape, copy] : copies)
      if (copy.kernel)
        copy.kernel->erase();
  }

  /// The most preferred schedule that keeps the fields of `requested`.
  std::optional<tile::ScheduleAttr> run(tile::ScheduleAttr requested);

  /// At most `most` schedules that keep the fields of `requested`, of which the first is what `run`
  /// finds: for a kernel that a later pass or the assembler refuses. First come those that differ
  /// in turns and polynomials only, which take registers and have conditions that no model of
  /// tiles knows.
  llvm::SmallVector<tile::ScheduleAttr> list(tile::ScheduleAttr requested, size_t most);

  /// What the last run rejected, and what the schedule it found takes.
  llvm::SmallVector<ScheduleRejection> rejections;
  std::string use;

  /// What `share` sixteenths of polynomials do where the special functions are the scarcest;
  /// nothing where they are not.
  std::optional<std::string> explainExponentials(int64_t share) const;
  /// Why the first dot of a step runs ahead or not in `schedule`; nothing where that is no choice.
  std::optional<std::string> explainLead(tile::ScheduleAttr schedule) const;

  /// What the blocks of a cluster share.
  struct ClusterSharing {
    /// Why no tile is the same for them.
    std::optional<std::string> refusal;
    /// What they share takes a producer.
    bool takesProducer = false;
    /// Which of the tiles that are loaded in loops are loaded for other blocks too.
    llvm::SmallVector<size_t> evened;

    /// Whether the producer can go on while a block that has left its loop still waits for tiles of
    /// up to `overlap` iterations before.
    bool runsAhead(const tile::NumberList &stages, int64_t overlap) const;
  };

  /// What is decided before shared memory is looked at.
  struct Candidate {
    /// What is requested, and all fields but those of the grid and the slots of pipes.
    tile::ScheduleFields fields;
    OverlapShape shape;
    /// How tiles are loaded for arithmetic is a choice, and what registers consumers have.
    bool choosesLoads = false, choosesRegisters = false;
    /// Those with tiles in registers.
    llvm::SmallVector<const Helper *> helpers;
    ClusterSharing sharing;
    /// Of a thread that computes, or of one of each consumer.
    tile::NumberList registersNeeded = tile::NumberList(0);
    /// Shared memory of tiles that the kernel computes, transposes or converts for its dots.
    int64_t operandBytes = 0;
    int64_t exchangeBytes = 0; ///< shared memory through which warps reduce and scan

    bool isSpecialized() const { return *fields.warpSpecialize; }
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

private:
  template <typename T>
  static llvm::SmallVector<T> choices(std::optional<T> requested, llvm::ArrayRef<T> preferred) {
    return requested ? llvm::SmallVector<T>{*requested} : llvm::SmallVector<T>(preferred);
  }
  /// The kernel with its loops rotated, or none and the reason.
  struct Copy {
    tile::KernelOp kernel;
    std::string refusal;
  };
  const Copy &overlapped(const OverlapShape &shape);
  std::optional<std::string> rejectShape(const OverlapShape &shape);
  tile::KernelOp rotated(const Candidate &candidate);
  SharedMemoryUse sharedUse(const Candidate &candidate, const tile::NumberList &stages,
                            const tile::NumberList &outerStages) const;
  SharedMemoryUse sharedUse(const Candidate &candidate) const {
    return sharedUse(candidate, *candidate.fields.stages, *candidate.fields.outerStages);
  }
  int64_t operandBytes(const Candidate &candidate);
  llvm::SmallVector<tile::PlacementKind> placements(const tile::ScheduleFields &requested,
                                                    bool warpSpecialize) const;
  bool isDividedLast(const tile::ScheduleFields &requested, std::optional<bool> specialized) const;
  llvm::SmallVector<int64_t> transposers(const tile::ScheduleFields &requested,
                                         bool warpSpecialize) const;
  llvm::SmallVector<tile::OverlapKind> overlaps(const tile::ScheduleFields &requested) const;
  int64_t registersOfHelpers(const tile::ScheduleFields &fields) const;
  void leaveForHelpers(RegisterSplit &split, tile::ScheduleFields &fields) const;
  tile::StoreKind chooseStoreOfSums(const tile::ScheduleFields &fields) const;
  /// Whether grid points add to one tile, in an order that is asked for.
  bool ordersSums(const tile::ScheduleFields &fields) const {
    return fields.sums == tile::SumsKind::fixed && !ordered.sums.empty();
  }
  std::optional<std::string> rejectSums(const Candidate &candidate) const;
  void chooseOrderOfSums(tile::ScheduleFields &fields) const;
  std::optional<std::string> rejectLoads(const Candidate &candidate) const;
  std::optional<std::string> rejectLead(const Candidate &candidate) const;
  bool writerPays(const tile::ScheduleFields &fields) const;
  const std::optional<DotDivision> &divide(int64_t consumers);
  tile::NumberList neededRegisters(const Candidate &candidate);
  bool fixFields(tile::ScheduleFields &requested);
  std::vector<Candidate> directCandidates(const tile::ScheduleFields &requested);
  Candidate makeCandidate(const tile::ScheduleFields &requested, bool warpSpecialize,
                          const OverlapShape &shape, int64_t consumers);
  std::vector<Candidate> withMoreForProducer(const Candidate &candidate,
                                             const tile::ScheduleFields &requested);
  std::vector<Candidate> withUnevenConsumers(const Candidate &candidate,
                                             const tile::ScheduleFields &requested);
  int64_t indivisibleRows(int64_t consumers, tile::PlacementKind placement) const;
  bool cutsBox(int64_t consumers, tile::PlacementKind placement) const;
  const std::optional<std::string> &rejectDivision(int64_t consumers,
                                                   tile::PlacementKind placement);
  /// Why a schedule cannot hold.
  struct Reason {
    std::string text;
    RefusalKind kind = RefusalKind::Unsupported;
  };
  std::optional<Reason> rejectConsumers(const Candidate &candidate);
  std::optional<std::string> rejectRules(const Candidate &candidate);
  std::optional<std::string> rejectBudget(const Candidate &candidate) const;
  std::optional<std::string> rejectTurns(const Candidate &candidate) const;
  std::optional<std::string> rejectNeeds(const Candidate &candidate) const;
  std::optional<std::string> rejectStaging(const Candidate &candidate) const;
  std::optional<std::string> rejectExchange(const tile::ScheduleFields &requested) const;
  bool exchangePays(const tile::ScheduleFields &exchanging);
  bool admits(const tile::ScheduleFields &requested);
  bool admitsOuterStages(const tile::ScheduleFields &requested);
  void forEachCandidate(tile::ScheduleFields requested,
                        llvm::function_ref<bool(const Candidate &)> take);
  bool forEachPlaced(tile::ScheduleFields requested, tile::PlacementKind placement,
                     bool warpSpecialize, llvm::function_ref<bool(const Candidate &)> take);
  bool forEachCount(const tile::ScheduleFields &requested, bool warpSpecialize,
                    const OverlapShape &shape, llvm::function_ref<bool(const Candidate &)> take);
  llvm::SmallVector<tile::NumberList> stageChoices(const tile::ScheduleFields &requested) const;
  std::optional<tile::NumberList> findStages(const Candidate &candidate);
  tile::NumberList usableBy(const Candidate &candidate) const;
  std::string describeUse(const Candidate &candidate) const;
  void chooseWalk(tile::ScheduleFields &fields) const;
  void chooseOuterStages(Candidate &candidate) const;
  int64_t makeRoomForOthers(Candidate &candidate) const;
  std::optional<tile::ScheduleAttr> complete(Candidate candidate);
  static int64_t blocksOf(const tile::ScheduleFields &fields) {
    return tile::countBlocks(fields.cluster.value_or(tile::ClusterKind::One));
  }
  const ClusterSharing &shareInCluster(int64_t cluster);

  tile::KernelOp kernel;
  const CostModel &model;
  std::map<tile::OverlapKind, Copy> copies;
  bool multiplies = false, multipliesInLoops = false, worksBetweenDots = false,
       canTakeTurns = false, turnsPay = false, leadPays = false, severalDots = false,
       countsFromMemory = false, findsBounds = false;
  bool scalesWideTiles = false;
  /// Registers that a thread of the producer needs at least.
  int64_t leastOfProducer = hopper::leastRoleRegisters;
  /// What tile-warp-specialize would say of each number of consumers.
  std::map<std::pair<int64_t, tile::PlacementKind>, std::optional<std::string>> divisions;
  /// The dots of consumers with different programs, by their number, or why they have none.
  std::map<int64_t, std::pair<std::optional<DotDivision>, std::string>> dotDivisions;
  /// Accumulators that could each be of another consumer.
  unsigned accumulators = 0;
  /// What roles of their own can do.
  HelperWork work;
  /// What can have a fixed order (sums = fixed).
  OrderedSums ordered;
  /// Of the loops that run first.
  CycleBudget budget;
  /// Cycles of the first dot of an iteration.
  double firstDot = 0;
  size_t tilesInLoops = 0;
  /// The tiles that may have slots for each stage, those of the innermost loops first.
  llvm::SmallVector<size_t> deepestFirst;
  /// Tiles that are loaded once for each tile of the grid, and whether any is outside of loops.
  size_t outerTiles = 0;
  bool loadsOutside = false;
  /// Pipes of tiles of rank 2 that arithmetic reads (loads = pipe).
  size_t fetchedMatrices = 0;
  /// By the blocks of a cluster.
  std::map<int64_t, ClusterSharing> sharings;
};

} // namespace tessera

#endif // TESSERA_PASSES_SCHEDULE_SCHEDULESEARCH_H
