//===- CAPITest.cpp - The launch half of the C interface ------------------===//
//
// Launching through it is tested with the fake libcuda.so.1 in test/Python.
//
//===----------------------------------------------------------------------===//

#include "TestBundle.h"

#include "gtest/gtest.h"

using namespace tessera::runtime::test;

namespace {

class CAPITest : public testing::Test {
protected:
  void SetUp() override {
    std::string text = toText(makeBundle());
    ASSERT_EQ(tessera_bundle_load(text.data(), text.size(), &bundle), TESSERA_RUNTIME_SUCCESS);
  }
  void TearDown() override { tessera_bundle_destroy(bundle); }

  tessera_bundle *bundle = nullptr;
  tessera_kernel *kernel = nullptr;
};

} // namespace

TEST_F(CAPITest, FindsKernels) {
  EXPECT_EQ(tessera_bundle_kernel_count(bundle), 1u);
  ASSERT_EQ(tessera_kernel_get(bundle, nullptr, &kernel), TESSERA_RUNTIME_SUCCESS);
  EXPECT_STREQ(tessera_kernel_name(kernel), "attend");
  EXPECT_EQ(tessera_kernel_description(kernel)[0], '{');
  tessera_kernel *same = nullptr;
  ASSERT_EQ(tessera_bundle_kernel_at(bundle, 0, &same), TESSERA_RUNTIME_SUCCESS);
  EXPECT_EQ(same, kernel);
}

TEST_F(CAPITest, ReportsUnknownKernels) {
  EXPECT_EQ(tessera_kernel_get(bundle, "gemm", &kernel), TESSERA_RUNTIME_INVALID_ARGUMENT);
  EXPECT_STREQ(tessera_last_error(), "the bundle has no kernel 'gemm'; it has 'attend'");
  EXPECT_EQ(tessera_bundle_kernel_at(bundle, 1, &kernel), TESSERA_RUNTIME_INVALID_ARGUMENT);
  EXPECT_STREQ(tessera_last_error(), "the bundle has 1 kernels; there is none at position 1");
}

TEST_F(CAPITest, ReportsBadBundles) {
  tessera_bundle *none = nullptr;
  EXPECT_EQ(tessera_bundle_load("[]", 2, &none), TESSERA_RUNTIME_INVALID_BUNDLE);
  EXPECT_EQ(tessera_bundle_load(nullptr, 8, &none), TESSERA_RUNTIME_INVALID_BUNDLE);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(tessera_bundle_load_file("/nonexistent/x.bundle", &none),
            TESSERA_RUNTIME_INVALID_BUNDLE);
  EXPECT_EQ(std::string(tessera_last_error()).substr(0, 45),
            "cannot read the bundle '/nonexistent/x.bundle");
  EXPECT_EQ(tessera_bundle_load_file("/dev/null", &none), TESSERA_RUNTIME_INVALID_BUNDLE);
  EXPECT_EQ(std::string(tessera_last_error()).substr(0, 25), "/dev/null: not a bundle: ");
}

TEST_F(CAPITest, ChecksArgumentsBeforeLookingForADriver) {
  ASSERT_EQ(tessera_kernel_get(bundle, "attend", &kernel), TESSERA_RUNTIME_SUCCESS);
  EXPECT_EQ(tessera_kernel_launch(kernel, 0, nullptr, nullptr, 0),
            TESSERA_RUNTIME_INVALID_ARGUMENT);
  EXPECT_STREQ(tessera_last_error(), "kernel 'attend' takes 5 arguments; 0 were given");
  EXPECT_EQ(tessera_kernel_launch(kernel, 0, nullptr, nullptr, 5),
            TESSERA_RUNTIME_INVALID_ARGUMENT);
  EXPECT_STREQ(tessera_last_error(), "the launch has 5 arguments, and null for their address");
}

TEST_F(CAPITest, TellsTheSizeOfATimeline) {
  size_t size = 8;
  ASSERT_EQ(tessera_kernel_get(bundle, "attend", &kernel), TESSERA_RUNTIME_SUCCESS);
  EXPECT_EQ(tessera_kernel_read_timeline(kernel, 0, nullptr, nullptr, &size),
            TESSERA_RUNTIME_INVALID_ARGUMENT);
  EXPECT_STREQ(tessera_last_error(),
               "kernel 'attend' records no timeline; compile it with --instrument=timeline");

  llvm::json::Value description = makeBundle();
  getKernel(description)
      .getArray("launch_parameters")
      ->push_back(llvm::json::Object{{"kind", "timeline"}, {"bytes", 100}});
  std::string text = toText(description);
  tessera_bundle_destroy(bundle);
  ASSERT_EQ(tessera_bundle_load(text.data(), text.size(), &bundle), TESSERA_RUNTIME_SUCCESS);
  ASSERT_EQ(tessera_kernel_get(bundle, "attend", &kernel), TESSERA_RUNTIME_SUCCESS);
  EXPECT_EQ(tessera_kernel_read_timeline(kernel, 0, nullptr, nullptr, &size),
            TESSERA_RUNTIME_SUCCESS);
  EXPECT_EQ(size, 100u);
  char memory[8];
  size = sizeof(memory);
  EXPECT_EQ(tessera_kernel_read_timeline(kernel, 0, nullptr, memory, &size),
            TESSERA_RUNTIME_INVALID_ARGUMENT);
  EXPECT_STREQ(tessera_last_error(), "the timeline has 100 bytes; there is room for 8");
}
