//===- Observer.cpp - Who looks on at a compilation -----------------------===//

#include "lib/Compiler/Observer.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace tessera;

namespace {
class FormInstrumentation : public PassInstrumentation {
public:
  explicit FormInstrumentation(FormHandler handler) : handler(std::move(handler)) {}

  void runAfterPass(Pass *pass, Operation *op) override { report(pass, op, /*hasFailed=*/false); }
  void runAfterPassFailed(Pass *pass, Operation *op) override {
    report(pass, op, /*hasFailed=*/true);
  }

private:
  void report(Pass *pass, Operation *op, bool hasFailed) {
    // Adaptors, which run passes on nested operations, have no argument of their own.
    if (pass->getArgument().empty())
      return;
    handler(pass->getArgument(), op, hasFailed);
  }

  FormHandler handler;
};
} // namespace

std::unique_ptr<PassInstrumentation> tessera::createFormInstrumentation(FormHandler handler) {
  return std::make_unique<FormInstrumentation>(std::move(handler));
}
