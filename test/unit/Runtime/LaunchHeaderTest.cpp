//===- LaunchHeaderTest.cpp - tessera/Launch.h ----------------------------===//

#include "TestBundle.h"
#include "tessera/Launch.h"

#include "gtest/gtest.h"

using namespace tessera::runtime::test;
using tessera::Argument, tessera::Bundle, tessera::Kernel;

static Argument view(std::vector<int64_t> shape, tessera_type type = TESSERA_TYPE_BF16) {
  return Argument(uint64_t(1) << 40, type, std::move(shape));
}

TEST(LaunchHeaderTest, KernelsHoldTheirBundle) {
  tessera::Expected<Kernel> kernel(tessera::Outcome{1, "none"});
  {
    tessera::Expected<Bundle> bundle = Bundle::load(toText(makeBundle()));
    ASSERT_TRUE(bundle) << bundle.message;
    kernel = bundle->getKernel();
  }
  ASSERT_TRUE(kernel) << kernel.message;
  EXPECT_EQ(kernel->getName(), "attend");
}

TEST(LaunchHeaderTest, SaysWhatIsWrong) {
  EXPECT_EQ(Bundle::load("[]").status, TESSERA_RUNTIME_INVALID_BUNDLE);
  EXPECT_NE(Bundle::loadFile("/nonexistent/x.bundle").message.find("/nonexistent/x.bundle"),
            std::string::npos);
  tessera::Expected<Bundle> bundle = Bundle::load(toText(makeBundle()));
  ASSERT_TRUE(bundle);
  EXPECT_EQ(bundle->getKernel("gemm").message, "the bundle has no kernel 'gemm'; it has 'attend'");

  tessera::Expected<Kernel> kernel = bundle->getKernel("attend");
  ASSERT_TRUE(kernel);
  EXPECT_EQ(kernel->launch({}).message, "kernel 'attend' takes 5 arguments; 0 were given");
  Argument q = view({2, 4, 300, 128}), k = view({2, 2, 300, 128}), o = view({2, 4, 300, 128});
  Argument lse = view({2, 4, 300}, TESSERA_TYPE_F32);
  EXPECT_EQ(kernel->launch({view({2, 4, 300, 128}, TESSERA_TYPE_F16), k, o, lse, 1.0f}).status,
            TESSERA_RUNTIME_TYPE_MISMATCH);
  EXPECT_EQ(kernel->launch({q, k, o, lse, int32_t(1)}).status, TESSERA_RUNTIME_TYPE_MISMATCH);
  // As many strides as another rank has.
  Argument odd(uint64_t(1) << 40, TESSERA_TYPE_BF16, {2, 4, 300, 128}, {1});
  tessera::Outcome outcome = kernel->launch({odd, k, o, lse, 1.0f});
  EXPECT_EQ(outcome.status, TESSERA_RUNTIME_INVALID_ARGUMENT);
  EXPECT_NE(outcome.message.find("'q'"), std::string::npos) << outcome.message;
}

TEST(LaunchHeaderTest, ViewsWithoutStridesAreDense) {
  Argument argument = view({2, 3, 5});
  tessera_argument c = argument.get();
  EXPECT_EQ(std::vector<int64_t>(c.strides, c.strides + c.rank), (std::vector<int64_t>{15, 5, 1}));
  // An extent of 0 leaves the strides of the others apart.
  Argument none = view({2, 0, 5});
  c = none.get();
  EXPECT_EQ(std::vector<int64_t>(c.strides, c.strides + c.rank), (std::vector<int64_t>{5, 5, 1}));
}
