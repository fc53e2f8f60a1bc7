//===- PersistentFixture.h - A persistent kernel to test with ---*- C++ -*-===//

#ifndef TESSERA_TEST_UNIT_RUNTIME_PERSISTENTFIXTURE_H
#define TESSERA_TEST_UNIT_RUNTIME_PERSISTENTFIXTURE_H

#include "FakeDriver.h"
#include "TestBundle.h"

#include "lib/Runtime/Error.h"
#include "lib/Runtime/Launch.h"

#include "gtest/gtest.h"

#include <memory>
#include <string>

namespace tessera::runtime::test {

/// The test kernel, persistent, with a workspace as its last parameter. Its tiles are 3 x 4 x 2.
class PersistentFixture : public testing::Test {
protected:
  static constexpr unsigned kWorkspace = 8; ///< the number of the parameter
  static constexpr uint64_t kBytes = 12;

  void SetUp() override {
    fake::reset();
    fake::setCurrentDevice(0);
    fake::getState().parameterSizes = kParameterSizes;
    fake::getState().parameterSizes.push_back(8);
    kernel()["persistent"] = true;
    kernel()
        .getArray("launch_parameters")
        ->push_back(llvm::json::Object{{"kind", "workspace"}, {"bytes", int64_t(kBytes)}});
  }

  llvm::json::Object &kernel() { return getKernel(description); }

  std::unique_ptr<Bundle> load() {
    return llvm::cantFail(Bundle::create(toText(description), &fake::getTable()));
  }

  /// The text of the error of a launch, "" for none.
  std::string launch(Bundle &bundle, uintptr_t stream = 0, int device = -1) {
    return takeText(bundle.getKernels()[0].launch(device, reinterpret_cast<void *>(stream),
                                                  arguments.arguments));
  }

  /// The text of an error, "" for none; its status in `status`.
  std::string takeText(llvm::Error error) {
    status = TESSERA_RUNTIME_SUCCESS;
    std::string text;
    llvm::handleAllErrors(std::move(error), [&](const RuntimeError &failure) {
      status = failure.getStatus();
      text = failure.getText();
    });
    return text;
  }

  /// The grid of a launch of the kernel, as it is described now.
  std::array<unsigned, 3> gridOfLaunch() {
    EXPECT_EQ(launch(*load()), "");
    return fake::getState().launches.back().grid;
  }

  static uint64_t workspaceOf(const fake::LaunchRecord &record) {
    return record.get<uint64_t>(kWorkspace);
  }
  static uint64_t lastWorkspace() { return workspaceOf(fake::getState().launches.back()); }

  llvm::json::Value description = makeBundle();
  TestArguments arguments;
  tessera_runtime_status status = TESSERA_RUNTIME_SUCCESS;
};

} // namespace tessera::runtime::test

#endif // TESSERA_TEST_UNIT_RUNTIME_PERSISTENTFIXTURE_H
