//===- RunPtx.h - Small programs for tests ----------------------*- C++ -*-===//
#ifndef TESSERA_TEST_UNIT_SIMULATOR_RUNPTX_H
#define TESSERA_TEST_UNIT_SIMULATOR_RUNPTX_H

#include "lib/Simulator/Simulator.h"

namespace tessera::sim::test {

struct Result {
  std::string error; ///< of parsing or launching
  Report report;
  std::vector<uint32_t> out; ///< the output buffer
  bool has(DiagKind kind) const;
  std::string text() const; ///< the printed report
};

struct LaunchSetup {
  unsigned threads = 32, outWords = 64, sharedBytes = 1024;
  uint64_t seed = 0;
  bool moveApproximations = false;
  Dim3 grid{1, 1, 1}, cluster{1, 1, 1};
  std::vector<uint32_t> in; ///< initial contents of the output buffer
  /// A tensor map over the output buffer, the kernel's parameter `map`.
  std::optional<TensorMapDesc> map;
};

/// Runs `body` as a kernel with registers %r<64>, %d<32>, %f<32>, %g<16> (f64), %h<32> (b16),
/// %p<16>, dynamic shared memory smem, %d0 = address of the output buffer, %r0 = %tid.x.
Result runPtx(llvm::StringRef body, const LaunchSetup &setup = {});

/// Runs an instruction on lane-dependent inputs: `code` computes %r3 from %r1 and %r2, loaded from
/// pairs.
std::vector<uint32_t> evaluate(llvm::StringRef code,
                               const std::vector<std::pair<uint32_t, uint32_t>> &inputs);
uint32_t evaluate1(llvm::StringRef code, uint32_t a, uint32_t b = 0);

} // namespace tessera::sim::test

#endif // TESSERA_TEST_UNIT_SIMULATOR_RUNPTX_H
