//===- RegisterPool.cpp - The registers that a launch gives a block -------===//

#include "dialects/Hop/RegisterPool.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace tessera::hop;
using namespace tessera::hopper;

static int64_t countWarpgroups(llvm::ArrayRef<RegisterRequest> requests) {
  int64_t warpgroups = 0;
  for (const RegisterRequest &request : requests)
    warpgroups += request.warpgroups;
  return warpgroups;
}

int64_t tessera::hop::entryRegisters(int64_t warpgroups, int64_t raised) {
  int64_t share = registersOfMultiprocessor / (warpgroups * warpgroupThreads);
  int64_t allowed = llvm::alignDown(std::min(share, mostThreadRegisters), roleRegisterStep);
  return std::min(allowed, raised);
}

int64_t tessera::hop::entryRegisters(llvm::ArrayRef<RegisterRequest> requests) {
  int64_t raised = 0;
  for (const RegisterRequest &request : requests)
    raised = std::max(raised, request.registers.value_or(0));
  int64_t threads = countWarpgroups(requests) * warpgroupThreads;
  int64_t given = registersOfResident(threads, residentBlocks(requests));
  return std::min(given, raised ? raised : mostThreadRegisters);
}

int64_t tessera::hop::residentBlocks(int64_t threads, int64_t registers) {
  int64_t given = llvm::alignTo(registers, roleRegisterStep);
  int64_t blocks = std::min({registersOfMultiprocessor / (threads * given),
                             threadsOfMultiprocessor / threads, blocksOfMultiprocessor});
  return std::max<int64_t>(blocks, 1);
}

int64_t tessera::hop::residentBlocks(llvm::ArrayRef<RegisterRequest> requests) {
  int64_t warpgroups = countWarpgroups(requests), threads = warpgroups * warpgroupThreads;
  int64_t asked = 0;
  for (const RegisterRequest &request : requests) {
    if (!request.registers)
      return 1;
    asked += *request.registers * request.warpgroups;
  }
  int64_t blocks = residentBlocks(threads, llvm::divideCeil(asked, warpgroups));
  while (blocks > 1 && warpgroups * registersOfResident(threads, blocks) < asked)
    --blocks;
  return blocks;
}

int64_t tessera::hop::registersOfResident(int64_t threads, int64_t blocks) {
  int64_t share = registersOfMultiprocessor / (threads * blocks);
  return llvm::alignDown(std::min(share, mostThreadRegisters), roleRegisterStep);
}

/// "at most 24 for the producer or at most 232 for the consumers", whichever are possible while the
/// others keep what they ask for.
static std::string suggest(llvm::ArrayRef<RegisterRequest> requests, int64_t asked, int64_t pool,
                           int64_t entry) {
  std::string text;
  for (const RegisterRequest &request : requests) {
    int64_t own = request.registers.value_or(entry) * request.warpgroups;
    int64_t most = llvm::alignDown((pool - (asked - own)) / request.warpgroups, roleRegisterStep);
    if (!request.registers || most < leastRoleRegisters)
      continue;
    text += llvm::formatv("{0}at most {1} for {2}", text.empty() ? "use " : " or ",
                          std::min(most, mostRoleRegisters), request.who);
  }
  return text.empty() ? "lower all" : text;
}

std::optional<std::string> tessera::hop::whyPoolTooSmall(llvm::ArrayRef<RegisterRequest> requests) {
  int64_t warpgroups = countWarpgroups(requests), entry = entryRegisters(requests);
  int64_t asked = 0, pool = entryRegisters(warpgroups) * warpgroups;
  std::string parts;
  for (const RegisterRequest &request : requests) {
    int64_t registers = request.registers.value_or(entry);
    asked += registers * request.warpgroups;
    parts += llvm::formatv("{0}{1} for each thread of {2}", parts.empty() ? "" : ", ", registers,
                           request.who);
    if (request.warpgroups > 1)
      parts += llvm::formatv(" in {0} warpgroups", request.warpgroups);
  }
  if (asked <= entry * warpgroups)
    return std::nullopt;
  return llvm::formatv("the warpgroups take {0} registers ({1}), and the launch gives the block "
                       "{2}, {3} for each of {4} threads; {5}",
                       asked * warpgroupThreads, parts, entry * warpgroups * warpgroupThreads,
                       entry, warpgroups * warpgroupThreads, suggest(requests, asked, pool, entry))
      .str();
}
