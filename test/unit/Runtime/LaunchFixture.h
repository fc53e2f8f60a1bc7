//===- LaunchFixture.h - Launches over the fake driver ----------*- C++ -*-===//

#ifndef TESSERA_TEST_UNIT_RUNTIME_LAUNCHFIXTURE_H
#define TESSERA_TEST_UNIT_RUNTIME_LAUNCHFIXTURE_H

#include "FakeDriver.h"
#include "TestBundle.h"

#include "lib/Runtime/Error.h"
#include "lib/Runtime/Launch.h"

#include "gtest/gtest.h"

#include <memory>
#include <string>

namespace tessera::runtime::test {

/// The test kernel, launched with arguments that a test changes.
class LaunchFixture : public testing::Test {
protected:
  void SetUp() override {
    fake::reset();
    fake::setCurrentDevice(0);
    fake::getState().parameterSizes = kParameterSizes;
  }

  /// A bundle over the fake driver.
  std::unique_ptr<Bundle> load(const llvm::json::Value &description) {
    return llvm::cantFail(Bundle::create(toText(description), &fake::getTable()));
  }

  /// The error of launching `arguments`: "" for none, otherwise its text; its status in `status`.
  std::string launch(Bundle &bundle, const TestArguments &arguments, int device = -1) {
    status = TESSERA_RUNTIME_SUCCESS;
    std::string text;
    llvm::handleAllErrors(bundle.getKernels()[0].launch(device, nullptr, arguments.arguments),
                          [&](const RuntimeError &error) {
                            status = error.getStatus();
                            text = error.getText();
                          });
    return text;
  }

  std::string launchChecked(const TestArguments &arguments) {
    std::string text = launch(*load(makeBundle()), arguments);
    EXPECT_EQ(text.empty(), fake::getState().launches.size() == 1u);
    return text;
  }

  tessera_runtime_status status = TESSERA_RUNTIME_SUCCESS;
  TestArguments arguments;
};

} // namespace tessera::runtime::test

#endif // TESSERA_TEST_UNIT_RUNTIME_LAUNCHFIXTURE_H
