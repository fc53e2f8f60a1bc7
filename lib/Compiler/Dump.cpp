//===- Dump.cpp - Files of what each stage made ---------------------------===//

#include "lib/Compiler/Dump.h"
#include "dialects/Tile/Entries.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tessera {

LogicalResult Dump::prepare(ModuleOp module) {
  if (!isEnabled())
    return success();
  if (std::error_code error = llvm::sys::fs::create_directories(directory)) {
    emitError(UnknownLoc::get(module.getContext()))
        << "cannot create the directory '" << directory << "': " << error.message();
    return failure();
  }
  kernels.clear();
  for (tile::KernelOp kernel : module.getOps<tile::KernelOp>())
    kernels.push_back(kernel.getSymName().str());
  return success();
}

void Dump::write(StringRef fileName, StringRef contents, Location loc) {
  if (!isEnabled())
    return;
  SmallString<128> path(directory);
  llvm::sys::path::append(path, fileName);
  std::error_code error;
  llvm::raw_fd_ostream stream(path, error);
  if (!error) {
    stream << contents;
    stream.close();
    error = stream.error();
    stream.clear_error();
  }
  if (!error || reportedFailure)
    return;
  reportedFailure = true;
  emitError(UnknownLoc::get(loc.getContext()))
      << "cannot write '" << path << "': " << error.message();
}

/// The text of the module of a kernel without the others: it parses by itself.
static std::string printAlone(Operation *module, StringRef name, ArrayRef<std::string> kernels) {
  OwningOpRef<Operation *> copy(module->clone());
  tile::eraseSequences(cast<ModuleOp>(*copy));
  for (Operation &op : llvm::make_early_inc_range((*copy)->getRegion(0).getOps())) {
    auto symbol = op.getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName());
    if (symbol && symbol.getValue() != name && llvm::is_contained(kernels, symbol.getValue()))
      op.erase();
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  (*copy)->print(stream, OpPrintingFlags().assumeVerified());
  stream << '\n';
  return text;
}

void Dump::writeForm(Operation *op, StringRef stage) {
  if (!isEnabled())
    return;
  std::string prefix = llvm::formatv("{0,0+2}-{1}.", nextNumber++, stage);
  Operation *module = isa<ModuleOp>(op) ? op : op->getParentOfType<ModuleOp>().getOperation();
  for (const std::string &name : kernels) {
    Operation *kernel = SymbolTable::lookupSymbolIn(module, name);
    if (!kernel || (op != module && op != kernel))
      continue;
    std::string text = printAlone(module, name, kernels);
    std::string &last = written[name];
    if (text != last || stage.ends_with("-failed"))
      write(prefix + name + ".mlir", text, module->getLoc());
    last = std::move(text);
  }
}

// MLIR's own reproducers come with an error more, at the source.
LogicalResult runReproducibly(PassManager &passes, ModuleOp module, StringRef file) {
  OwningOpRef<ModuleOp> given = module.clone();
  LogicalResult result = failure();
  llvm::CrashRecoveryContext::Enable();
  bool hasEnded = llvm::CrashRecoveryContext().RunSafely([&] { result = passes.run(module); });
  llvm::CrashRecoveryContext::Disable();
  if (succeeded(result))
    return success();
  if (!hasEnded)
    emitError(given->getLoc()) << "a pass crashed";
  std::string written = makeReproducer(passes.getOpAnchorName(), passes.getPasses(), *given, file,
                                       /*disableThreads=*/true, /*verifyPasses=*/true);
  if (llvm::sys::fs::access(file, llvm::sys::fs::AccessMode::Write))
    emitError(UnknownLoc::get(given->getContext())) << written;
  return failure();
}

} // namespace tessera
