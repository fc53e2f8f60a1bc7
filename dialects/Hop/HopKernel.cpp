//===- HopKernel.cpp - Kernels, their roles and who runs what --------------===//

#include "dialects/Hop/Hop.h"
#include "dialects/Hop/Machine.h"
#include "dialects/Hop/RegisterPool.h"
#include "dialects/Tile/ScheduleFields.h"
#include "dialects/Tile/TileBox.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::hop;

//===----------------------------------------------------------------------===//
// Who runs what
//===----------------------------------------------------------------------===//

int64_t RoleOp::getNumWarps() {
  return getWarpgroups() ? hopper::warpgroupWarps : getWarps().value_or(1);
}

int64_t RoleOp::getNumThreads() {
  return isElected() ? 1 : getNumWarpgroups() * getNumWarps() * hopper::warpThreads;
}

SmallVector<RoleTeam> hop::getTeams(KernelOp kernel) {
  SmallVector<RoleTeam> teams;
  for (RoleOp role : kernel.getBody().getOps<RoleOp>()) {
    auto shared = llvm::find_if(teams, [](RoleTeam &team) { return team.isShared(); });
    if (role.sharesWarpgroup() && shared != teams.end()) {
      shared->roles.push_back(role);
      continue;
    }
    int64_t first = teams.empty() ? 0 : teams.back().first + teams.back().warpgroups;
    teams.push_back({first, role.getNumWarpgroups(), {role}});
  }
  return teams;
}

int64_t KernelOp::getNumWarpgroups() {
  SmallVector<RoleTeam> teams = getTeams(*this);
  return teams.empty() ? 0 : teams.back().first + teams.back().warpgroups;
}

int64_t KernelOp::getClusterSize() {
  return tile::countBlocks(getSchedule().getCluster().value_or(tile::ClusterKind::One));
}

int64_t KernelOp::getNumRecords() {
  uint32_t records = 0; // also of roles that have not been verified yet
  for (RoleOp role : getBody().getOps<RoleOp>())
    records = llvm::SaturatingAdd(records, static_cast<uint32_t>(role.getNumWarpgroups()));
  return records;
}

SmallVector<RegisterRequest> hop::getRegisterRequests(KernelOp kernel) {
  return llvm::map_to_vector(getTeams(kernel), [](RoleTeam &team) {
    std::string who = llvm::join(
        llvm::map_range(team.roles, [](RoleOp role) { return ("@" + role.getSymName()).str(); }),
        " and ");
    return RegisterRequest{who, team.warpgroups, team.roles.front().getRegisters()};
  });
}

int64_t hop::residentBlocks(KernelOp kernel) {
  int64_t blocks = residentBlocks(getRegisterRequests(kernel));
  if (std::optional<int64_t> bytes = kernel.getSharedBytes())
    blocks = std::min(blocks, hopper::sharedMemoryOfMultiprocessor /
                                  (*bytes + hopper::sharedMemoryOfSystem));
  return std::max<int64_t>(blocks, 1);
}

TimelineOp KernelOp::getTimeline() {
  auto timelines = getBody().getOps<TimelineOp>();
  return timelines.empty() ? TimelineOp() : *timelines.begin();
}

bool KernelOp::hasProbes() {
  return walk([](ProbesVerdictOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// The roles that hold users of the pipe which `counts` accepts.
static SmallVector<RoleOp> rolesOf(PipeCreateOp pipe, bool (*counts)(Operation *)) {
  SmallVector<RoleOp> roles;
  for (RoleOp role : pipe->getParentOfType<KernelOp>().getBody().getOps<RoleOp>())
    if (llvm::any_of(pipe.getPipe().getUsers(),
                     [&](Operation *user) { return counts(user) && role->isAncestor(user); }))
      roles.push_back(role);
  return roles;
}

SmallVector<RoleOp> hop::getFillers(PipeCreateOp pipe) {
  return rolesOf(pipe, [](Operation *user) { return user->hasTrait<FillsPipe>(); });
}

SmallVector<RoleOp> hop::getReaders(PipeCreateOp pipe) {
  return rolesOf(pipe, [](Operation *user) { return user->hasTrait<ReadsPipe>(); });
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Refuses a pipe, buffer or group of barriers that does not come straight from its declaration:
/// there is no choosing between them, so every use knows which one it is of.
static LogicalResult verifyDeclared(KernelOp kernel) {
  WalkResult walk = kernel.walk([](Operation *op) -> WalkResult {
    for (Value operand : op->getOperands())
      if (isa<PipeType, BufferType, BarriersType>(operand.getType()) &&
          !isa_and_nonnull<PipeCreateOp, BufferOp, BarriersOp>(operand.getDefiningOp()))
        return op->emitError("takes ")
               << operand.getType() << " straight from where the kernel declares it";
    return success();
  });
  return failure(walk.wasInterrupted());
}

LogicalResult KernelOp::verify() {
  if (getBody().getNumArguments() != getNumArguments() + getGrid().size() ||
      getArgumentNames().size() != getNumArguments())
    return emitOpError("body takes the named arguments and one index per grid dimension");
  for (unsigned i = 0; i < getNumArguments(); ++i)
    if (getArgument(i).getType() != cast<TypeAttr>(getArgumentTypes()[i]).getValue())
      return emitOpError("argument ") << i << " is " << getArgumentTypes()[i]
                                      << " but its block argument is " << getArgument(i).getType();
  for (unsigned i = 0; i < getGrid().size(); ++i)
    if (!isa<tile::GridDimAttr>(getGrid()[i]) || !getGridIndex(i).getType().isIndex())
      return emitOpError("grid holds #tile.grid_dim, and its indices are of type index");
  if (std::optional<ArrayAttr> requirements = getRequirements();
      requirements &&
      !llvm::all_of(*requirements,
                    llvm::IsaPred<tile::DividesAttr, tile::AtMostAttr, tile::AboveAttr>))
    return emitOpError("requirements hold #tile.divides, #tile.at_most and #tile.above");
  if (getSpread() && getClusterSize() == 1)
    return emitOpError("has tiles of the blocks of a cluster together, and clusters of one; leave "
                       "spread out, or use cluster = 2, 4, 8 or 16");
  if (getParts() && (getSpread() || getClusterSize() == 1))
    return emitOpError("has parts of a range in the blocks of a cluster, ")
           << (getSpread() ? "and tiles that these have together; leave out spread or parts"
                           : "and clusters of one; leave parts out, or use cluster = 2, 4 or 8");
  if (getGrid().size() > 3)
    return emitOpError("has at most 3 grid dimensions, got ") << getGrid().size();
  return success(succeeded(verifyDeclared(*this)) && succeeded(tile::verifyTileSizes(*this)));
}

/// Refuses roles that do not fit into the one warpgroup that they share.
static LogicalResult verifyShared(MutableArrayRef<RoleOp> roles) {
  constexpr int64_t most = hopper::warpgroupWarps;
  int64_t warps = 0;
  for (RoleOp role : roles) {
    warps += role.getNumWarps();
    if (warps > most)
      return role.emitOpError("needs warp ")
             << warps << " of the warpgroup that elected roles and those of warps share, which has "
             << most << "; use fewer of them, or warpgroups(1)";
    if (role.getRegisters() != roles.front().getRegisters()) {
      InFlightDiagnostic diag = role.emitOpError(
          "asks for other registers than the role whose warpgroup it shares; setmaxnreg is "
          "of a whole warpgroup, so say the same for all of them");
      diag.attachNote(roles.front().getLoc()) << "the other role";
      return diag;
    }
  }
  return success();
}

/// What the roles of a kernel, each of which holds by itself, ask for together.
LogicalResult KernelOp::verifyRegions() {
  constexpr int64_t most = hopper::mostBlockThreads / hopper::warpgroupThreads;
  SmallVector<RoleTeam> teams = getTeams(*this);
  int64_t warpgroups = getNumWarpgroups();
  if (warpgroups > most)
    return emitOpError("has ") << warpgroups << " warpgroups, a thread block has at most " << most;
  for (RoleTeam &team : teams)
    if (team.isShared() && failed(verifyShared(team.roles)))
      return failure();
  SmallVector<RegisterRequest> requests = getRegisterRequests(*this);
  if (!llvm::any_of(requests, [](auto &request) { return request.registers.has_value(); }))
    return success();
  if (std::optional<std::string> reason = whyPoolTooSmall(requests))
    return emitOpError("has roles that cannot have their registers: ") << *reason;
  return success();
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

/// `warpgroups(2)`, `warps(3)` or `elected`, which may be left out.
ParseResult hop::parseRoleThreads(OpAsmParser &parser, IntegerAttr &warpgroups,
                                  IntegerAttr &warps) {
  StringRef keyword;
  if (failed(parser.parseOptionalKeyword(&keyword, {"warpgroups", "warps", "elected"})) ||
      keyword == "elected")
    return success();
  int64_t count;
  if (parser.parseLParen() || parser.parseInteger(count) || parser.parseRParen())
    return failure();
  (keyword == "warps" ? warps : warpgroups) = parser.getBuilder().getI64IntegerAttr(count);
  return success();
}

void hop::printRoleThreads(OpAsmPrinter &printer, Operation *, IntegerAttr warpgroups,
                           IntegerAttr warps) {
  if (warpgroups)
    printer << "warpgroups(" << warpgroups.getInt() << ")";
  else if (warps)
    printer << "warps(" << warps.getInt() << ")";
  else
    printer << "elected";
}

LogicalResult RoleOp::verify() {
  if (getBody().getNumArguments() != 1 || !getBody().getArgument(0).getType().isIndex())
    return emitOpError("body takes the index of the warpgroup within the role");
  constexpr int64_t most = hopper::mostBlockThreads / hopper::warpgroupThreads;
  if (std::optional<int64_t> warpgroups = getWarpgroups();
      warpgroups && (*warpgroups < 1 || *warpgroups > most))
    return emitOpError("has 1 to ") << most << " warpgroups, got " << *warpgroups;
  constexpr int64_t mostWarps = hopper::warpgroupWarps - 1;
  if (std::optional<int64_t> warps = getWarps(); warps && (*warps < 1 || *warps > mostWarps))
    return emitOpError("has 1 to ") << mostWarps << " warps of a warpgroup that roles share, got "
                                    << *warps << "; a whole one is warpgroups(1)";
  if (getWarpgroups() && getWarps())
    return emitOpError("has warpgroups of its own or warps of one that roles share, and not both");
  if (std::optional<int64_t> registers = getRegisters();
      registers &&
      (*registers < hopper::leastRoleRegisters || *registers > hopper::mostRoleRegisters ||
       *registers % hopper::roleRegisterStep != 0))
    return emitOpError("takes registers in multiples of ")
           << hopper::roleRegisterStep << " from " << hopper::leastRoleRegisters << " to "
           << hopper::mostRoleRegisters << ", got " << *registers;
  return success();
}

/// Refuses tiles in registers where one thread runs, or some warps of a warpgroup.
static LogicalResult verifyNoTiles(RoleOp role) {
  WalkResult walk = role.getBody().walk([&](Operation *op) -> WalkResult {
    if (llvm::none_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>))
      return success();
    InFlightDiagnostic diag = op->emitError("has a tile in registers, and @") << role.getSymName();
    if (role.isElected())
      diag << " is one elected thread, which holds none";
    else
      diag << " has " << role.getNumWarps()
           << " of the 4 warps among which the layout of a tile divides it";
    diag << "; compute it in a role with warpgroups";
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

/// Whether the thread that copied waits at `op` until all its copies have read shared memory.
static bool waitsForReads(Operation &op) {
  auto store = dyn_cast<BulkStoreOp>(op);
  return isa<BulkReadWaitOp, BulkStoreWaitOp>(op) || (store && store.getInFlight() == 0);
}

/// Refuses copies that may still read shared memory when the role has ended.
static LogicalResult verifyReadsDone(RoleOp role) {
  WalkResult walk = role.getBody().walk([&](BulkStoreOp store) -> WalkResult {
    if (store.getInFlight() == 0)
      return success();
    for (Operation *op = store; op != role; op = op->getParentOp())
      if (llvm::any_of(llvm::make_range(std::next(op->getIterator()), op->getBlock()->end()),
                       waitsForReads))
        return success();
    return store.emitOpError("may leave copies that read shared memory when @")
           << role.getSymName()
           << " ends; put hop.bulk_read_wait behind it, on every way to the end";
  });
  return failure(walk.wasInterrupted());
}

LogicalResult RoleOp::verifyRegions() {
  if (sharesWarpgroup() && failed(verifyNoTiles(*this)))
    return failure();
  return verifyReadsDone(*this);
}

bool hop::choosesOneThread(Value condition) {
  if (auto both = condition.getDefiningOp<arith::AndIOp>())
    return choosesOneThread(both.getLhs()) || choosesOneThread(both.getRhs());
  return condition.getDefiningOp<ElectedOp>() != nullptr;
}

scf::IfOp hop::findElection(Operation *op) {
  for (Operation *outer = op->getParentOp(); outer && !isa<RoleOp>(outer);
       op = outer, outer = outer->getParentOp())
    if (auto guard = dyn_cast<scf::IfOp>(outer);
        guard && op->getBlock() == guard.thenBlock() && choosesOneThread(guard.getCondition()))
      return guard;
  return {};
}

LogicalResult hop::verifyOnAllThreads(Operation *op) {
  scf::IfOp election = findElection(op);
  if (!election)
    return success();
  InFlightDiagnostic diag =
      op->emitOpError("runs on all threads of its role, and hop.elected chooses one here; move it "
                      "out of the conditional");
  diag.attachNote(election.getLoc()) << "the conditional";
  return diag;
}

LogicalResult hop::verifyOnWarps(Operation *op) {
  auto role = op->getParentOfType<RoleOp>();
  if (role && role.isElected())
    return op->emitOpError("runs on all threads of a warpgroup, and @")
           << role.getSymName() << " is one elected thread; move it to a role with warpgroups";
  return verifyOnAllThreads(op);
}

LogicalResult hop::verifyOnWarpgroups(Operation *op) {
  auto role = op->getParentOfType<RoleOp>();
  if (role && role.getWarps())
    return op->emitOpError("runs on all threads of a warpgroup, and @")
           << role.getSymName() << " has " << *role.getWarps()
           << " warps of one; move it to a role with warpgroups";
  return verifyOnWarps(op);
}

LogicalResult hop::verifyOnOneThread(Operation *op) {
  auto role = op->getParentOfType<RoleOp>();
  if (!role || role.isElected() || findElection(op))
    return success();
  return op->emitOpError("runs on one thread, and all threads of @")
         << role.getSymName()
         << " come here; put it into an scf.if of hop.elected or into an elected role";
}

/// `warpgroup` is what the role around `op` says it is.
static LogicalResult verifyWarpgroup(Operation *op, Value warpgroup) {
  auto role = op->getParentOfType<RoleOp>();
  if (!role || warpgroup != role.getBody().getArgument(0))
    return op->emitOpError("takes the index of the warpgroup, the argument of the role around it");
  return success();
}

LogicalResult ElectedOp::verify() { return verifyWarpgroup(*this, getWarpgroup()); }
LogicalResult TurnStartOp::verify() { return verifyWarpgroup(*this, getWarpgroup()); }
LogicalResult TurnWaitOp::verify() { return verifyWarpgroup(*this, getWarpgroup()); }
LogicalResult TurnPassOp::verify() { return verifyWarpgroup(*this, getWarpgroup()); }
