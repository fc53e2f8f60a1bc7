//===- RunKernelText.cpp - Interpret a kernel given as text ---------------===//

#include "RunKernelText.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>

using namespace mlir;

std::string tessera::test::runText(StringRef text, ArrayRef<KernelArgument> arguments,
                                   const InterpreterOptions &options) {
  DialectRegistry registry;
  registry.insert<arith::ArithDialect, math::MathDialect, scf::SCFDialect, tile::TileDialect>();
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  std::string messages;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (auto loc = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>())
      messages += llvm::formatv("{0}:{1}: ", loc.getLine(), loc.getColumn());
    messages += diagnostic.str() + "\n";
    return success();
  });
  auto module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return "does not parse: " + messages;
  tile::KernelOp kernel = *module->getOps<tile::KernelOp>().begin();
  if (failed(interpret(kernel, arguments, options)) && messages.empty())
    return "failed without a message";
  return messages;
}

std::vector<double> tessera::test::apply(StringRef body, std::vector<double> x,
                                         std::vector<double> y, Precision precision) {
  HostTensor inX = HostTensor::contiguous({static_cast<int64_t>(x.size())}), inY = inX, out = inX;
  inX.data = std::move(x);
  inY.data = std::move(y);
  std::string text = llvm::formatv(R"(
    !V = !tile.view<[N], f32>
    tile.kernel @k(%vx: !V, %vy: !V, %vr: !V) grid(%g = 1) {{
      %c0 = arith.constant 0 : index
      %x = tile.load %vx[%c0] : !V -> tensor<{0}xf32>
      %y = tile.load %vy[%c0] : !V -> tensor<{0}xf32>
      {1}
      tile.store %r, %vr[%c0] : tensor<{0}xf32>, !V
    })",
                                   inX.data.size(), body);
  InterpreterOptions options;
  options.precision = precision;
  EXPECT_EQ(runText(text, {&inX, &inY, &out}, options), "") << text;
  return out.data;
}
