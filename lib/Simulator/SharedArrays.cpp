//===- SharedArrays.cpp - Who accesses which array ------------------------===//
#include "lib/Simulator/SharedArrays.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;

void SharedArrays::reset(const Program &program, llvm::ArrayRef<SharedName> all,
                         uint32_t sharedBytes) {
  names = all;
  ofWords.clear();
  if (names.empty() || names.size() > kMostArrays)
    return;
  ofWords.assign((sharedBytes + 3) / 4, 0);
  llvm::StringMap<Set> ofPlaces;
  for (size_t k = 0; k < names.size(); ++k) {
    const SharedName &name = names[k];
    uint64_t first = uint64_t(name.isStatic ? 0 : program.dynamicOffset) + name.offset,
             end = std::min<uint64_t>(first + uint64_t(name.stride) * name.count, sharedBytes);
    for (uint64_t word = first / 4; word * 4 < end; ++word)
      ofWords[word] |= Set(1) << k;
    for (const std::string &place : name.places)
      ofPlaces[place] |= Set(1) << k;
  }
  for (Set &word : ofWords)
    if (!word)
      word = Set(1) << names.size();
  ofOperands = std::make_unique<std::atomic<Set>[]>(program.insts.size() * kOperands);
  for (size_t site = 0; site < program.insts.size(); ++site) {
    auto found = ofPlaces.find(program.placeOf(program.insts[site]));
    for (unsigned operand = 0; operand < kOperands; ++operand)
      ofOperands[site * kOperands + operand] = found == ofPlaces.end() ? ~Set(0) : found->second;
  }
}

bool SharedArrays::note(uint32_t site, unsigned operand, uint32_t offset, uint32_t bytes) {
  if (ofWords.empty() || bytes == 0)
    return true;
  Set accessed = ofWords[offset / 4] & ofWords[(offset + bytes - 1) / 4];
  std::atomic<Set> &own = ofOperands[site * kOperands + operand];
  Set before = own.load(std::memory_order_relaxed);
  if (!(before & accessed))
    return false;
  // Most accesses change nothing.
  if (before & ~accessed)
    own.fetch_and(accessed, std::memory_order_relaxed);
  return true;
}

std::string SharedArrays::describe(uint32_t site, unsigned operand) const {
  Set own = ofOperands[site * kOperands + operand];
  std::string text;
  for (size_t k = 0; k < names.size(); ++k)
    if (own >> k & 1)
      text += (text.empty() ? "" : ", ") + names[k].name;
  return text.empty() ? "what has no name" : text;
}
