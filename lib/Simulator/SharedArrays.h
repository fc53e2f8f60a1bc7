//===- SharedArrays.h - Who accesses which array ----------------*- C++ -*-===//
//
// Dynamic shared memory is one variable in PTX; what lies in it says the launch (SharedName). An
// operand of an instruction is of one array: of those that the launch gives to its place in the
// source, where it does, and of the one that it accesses first. What it accesses in another one is
// past the end of its own.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_SIMULATOR_SHAREDARRAYS_H
#define TESSERA_SIMULATOR_SHAREDARRAYS_H

#include "lib/Simulator/Program.h"
#include "lib/Simulator/Simulator.h"
#include <atomic>
#include <memory>

namespace tessera::sim::detail {

class SharedArrays {
public:
  void reset(const Program &program, llvm::ArrayRef<SharedName> names, uint32_t sharedBytes);

  /// Whether an operand of instruction number `site` may access these bytes, which it does now.
  bool note(uint32_t site, unsigned operand, uint32_t offset, uint32_t bytes);
  /// The names of the arrays that it may access, for messages.
  std::string describe(uint32_t site, unsigned operand) const;

private:
  /// Sets of arrays. What is in none of them is in a last one, which has no name.
  using Set = uint64_t;
  static constexpr unsigned kMostArrays = 63, kOperands = 2;

  llvm::ArrayRef<SharedName> names;
  std::vector<Set> ofWords; ///< empty where the launch names nothing
  std::unique_ptr<std::atomic<Set>[]> ofOperands;
};

} // namespace tessera::sim::detail

#endif // TESSERA_SIMULATOR_SHAREDARRAYS_H
