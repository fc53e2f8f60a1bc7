//===- RegisterPool.cpp - The registers that a launch gives a block -------===//

#include "dialects/Hop/RegisterPool.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace tessera::hop;
using namespace tessera::hopper;

int64_t tessera::hop::entryRegisters(int64_t warpgroups, int64_t raised) {
  int64_t share = registersOfMultiprocessor / (warpgroups * warpgroupThreads);
  int64_t allowed = llvm::alignDown(std::min(share, mostThreadRegisters), roleRegisterStep);
  return std::min(allowed, raised);
}

/// "use producer_registers = 24 or consumer_registers = 232", whichever are possible.
static std::string suggest(const RoleRegisters &roles) {
  int64_t pool = roles.warpgroups() * entryRegisters(roles.warpgroups());
  int64_t producer = llvm::alignDown(pool - roles.consumers * roles.consumer, roleRegisterStep);
  producer = std::min(producer, entryRegisters(roles.warpgroups(), roles.consumer));
  int64_t consumer = llvm::alignDown((pool - roles.producer) / roles.consumers, roleRegisterStep);
  std::string text;
  if (producer >= leastRoleRegisters)
    text = llvm::formatv("producer_registers = {0}", producer);
  if (consumer >= std::max(roles.producer, leastRoleRegisters))
    text += llvm::formatv("{0}at most {1} per consumer thread", text.empty() ? "" : " or ",
                          std::min(consumer, mostRoleRegisters));
  return text.empty() ? "lower both" : "use " + text;
}

std::optional<std::string> tessera::hop::whyPoolTooSmall(const RoleRegisters &roles) {
  int64_t threads = roles.warpgroups() * warpgroupThreads;
  int64_t entry = entryRegisters(roles.warpgroups(), roles.consumer);
  // setmaxnreg.dec only lowers; ptxas refuses some of the others (C7406).
  if (roles.producer > entry)
    return llvm::formatv("each of the {0} threads starts with {1} registers, of which a producer "
                         "can only give back; producer_registers = {2} is more; {3}",
                         threads, entry, roles.producer, suggest(roles))
        .str();
  int64_t asked = warpgroupThreads * (roles.producer + roles.consumers * roles.consumer);
  if (asked > entry * threads)
    return llvm::formatv("the warpgroups take {0} registers ({1} per producer thread, {2} per "
                         "thread of {3} consumers), and the launch gives the block {4}, {5} for "
                         "each of {6} threads; {7}",
                         asked, roles.producer, roles.consumer, roles.consumers, entry * threads,
                         entry, threads, suggest(roles))
        .str();
  return std::nullopt;
}
