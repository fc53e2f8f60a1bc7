//===- Programs.cpp - Which programs a source makes -----------------------===//

#include "lib/Tuning/Programs.h"
#include "lib/Compiler/Pipeline.h"
#include "lib/Database/Fingerprint.h"
#include "lib/Source/Diagnostics.h"
#include "lib/Source/Source.h"
#include "lib/Support/Fail.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tuning;
using llvm::Expected;
using tile::KernelOp;

Expected<std::string> tessera::tuning::identifyProgram(const std::string &source,
                                                       const std::string &fileName,
                                                       const std::string &kernel,
                                                       const Defines &defines) {
  MLIRContext context(makeCompilerRegistry(), MLIRContext::Threading::DISABLED);
  ErrorCapture errors(&context);
  ReadResult read = readSource(source, fileName, defines, context);
  if (read.status != CompileStatus::Success)
    return fail(errors.getFirst());
  PassManager cleanup(&context, ModuleOp::getOperationName());
  buildStages(cleanup, EmitKind::Tile, EmitKind::Tile);
  if (failed(cleanup.run(*read.module)))
    return fail(errors.getFirst());
  if (auto found = read.module->lookupSymbol<KernelOp>(kernel))
    return getFingerprint(found);
  return fail("the source has no kernel '" + kernel + "'");
}

/// Sets the fingerprint of `times`.
static llvm::Error adopt(TileTimes &times, const std::string &source, const std::string &fileName) {
  Defines all(times.parameters.begin(), times.parameters.end());
  Expected<std::string> program = identifyProgram(source, fileName, times.kernel, all);
  if (!program)
    return program.takeError();
  times.program = std::move(*program);
  return llvm::Error::success();
}

/// Sets the fingerprints of `entry`.
static llvm::Error adopt(Entry &entry, const std::string &source, const std::string &fileName) {
  Defines given, all(entry.parameters.begin(), entry.parameters.end());
  for (const auto &[name, value] : entry.parameters)
    if (!entry.isTuned(name))
      given.emplace_back(name, value);
  Expected<std::string> program = identifyProgram(source, fileName, entry.kernel, given);
  if (!program)
    return program.takeError();
  Expected<std::string> measured = identifyProgram(source, fileName, entry.kernel, all);
  if (!measured)
    return measured.takeError();
  entry.tunedProgram = *measured == *program ? "" : *measured;
  entry.program = std::move(*program);
  return llvm::Error::success();
}

Expected<size_t> tessera::tuning::adoptPrograms(Database &database, const std::string &source,
                                                const std::string &fileName) {
  std::string message;
  SourceInfo info = inspect(source, fileName, {}, [&](const Diagnostic &diagnostic) {
    message += (message.empty() ? "" : "; ") + diagnostic.message;
  });
  if (info.status != CompileStatus::Success)
    return fail("'" + fileName + "': " + message);
  auto hasKernel = [&](const std::string &name) {
    return llvm::any_of(info.kernels, [&](const EntryInfo &kernel) { return kernel.name == name; });
  };
  for (TileTimes &times : database.getMutableTimes())
    if (hasKernel(times.kernel))
      if (llvm::Error error = adopt(times, source, fileName))
        return fail("times of '" + times.kernel + "' are not of '" + fileName +
                    "': " + toString(std::move(error)));
  size_t count = 0;
  for (Entry &entry : database.getMutableEntries()) {
    if (!hasKernel(entry.kernel))
      continue;
    if (llvm::Error error = adopt(entry, source, fileName))
      return fail("the entry " + entry.describe() + " is not of '" + fileName +
                  "': " + toString(std::move(error)));
    ++count;
  }
  return count;
}
