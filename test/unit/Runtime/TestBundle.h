//===- TestBundle.h - A bundle to test with ---------------------*- C++ -*-===//

#ifndef TESSERA_TEST_UNIT_RUNTIME_TESTBUNDLE_H
#define TESSERA_TEST_UNIT_RUNTIME_TESTBUNDLE_H

#include "tessera-c/Runtime.h"

#include "llvm/Support/JSON.h"

#include <string>
#include <vector>

namespace tessera::runtime::test {

/// A bundle with one kernel that takes q [B, H, SQ, 128] and k [B, HK, SQ, 128] in bf16 through
/// tensor maps, writes o [B, H, SQ, 128] in bf16 and lse [B, H, SQ] in f32 directly, and a scale.
/// HK divides H.
llvm::json::Value makeBundle();

/// The entry of "kernels".
llvm::json::Object &getKernel(llvm::json::Value &bundle);

std::string toText(const llvm::json::Value &bundle);

/// The sizes of the kernel's parameters.
inline const std::vector<unsigned> kParameterSizes = {128, 128, 8, 8, 4, 8, 8, 4};

/// Arguments for the kernel: B = 2, H = 4, HK = 2, SQ = 300, in BSHD storage on device 0.
class TestArguments {
public:
  enum Index { Q, K, O, LSE, Scale, Count };

  TestArguments();
  TestArguments(const TestArguments &) = delete;
  TestArguments &operator=(const TestArguments &) = delete;

  std::vector<int64_t> shapes[Count], strides[Count];
  /// Points into the vectors above; `update` after they change in size.
  std::vector<tessera_argument> arguments;
  void update();
};

} // namespace tessera::runtime::test

#endif // TESSERA_TEST_UNIT_RUNTIME_TESTBUNDLE_H
