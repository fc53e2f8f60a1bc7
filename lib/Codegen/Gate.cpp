//===- Gate.cpp - Accept or refuse what ptxas made of a kernel ------------===//

#include "lib/Codegen/Gate.h"
#include "dialects/Tile/Refusal.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/SymbolTable.h"
#include "passes/LowerToLLVM/KernelAttributes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/BinaryFormat/Magic.h"

using namespace mlir;

namespace tessera {

namespace {
class Gate {
public:
  Gate(const PTXText &ptx, ModuleOp module, std::vector<Refusal> &refusals)
      : ptx(ptx), module(module), refusals(refusals) {}

  void check(const PtxasMessage &message);
  void checkSpills(const PtxasFunction &function);
  void reportDeath(const PtxasRun &run);
  void checkImage(const PtxasRun &run, ArrayRef<std::string> arguments);

  GateOutcome outcome = GateOutcome::Pass;

private:
  Operation *kernel(StringRef name) {
    return name.empty() ? nullptr : SymbolTable::lookupSymbolIn(module, name);
  }

  Location locate(const PtxasMessage &message) {
    if (std::optional<SourcePosition> position = ptx.position(message.ptxLine))
      return FileLineColLoc::get(module.getContext(), position->file, position->line,
                                 position->column);
    if (Operation *op = kernel(getKernelName(message)))
      return op->getLoc();
    // A message that names no function can only be about the one that there is.
    auto functions = llvm::make_filter_range(
        module.getOps(), [](Operation &op) { return op.hasAttr("nvvm.kernel"); });
    return llvm::hasSingleElement(functions) ? (*functions.begin()).getLoc() : module.getLoc();
  }

  bool promisesFit(Operation *op) {
    return module->hasAttr(noSpillsAttrName) || (op && op->hasAttr(noSpillsAttrName));
  }

  /// Of which kernel a message is; empty where it cannot be told.
  StringRef getKernelName(const PtxasMessage &message) const {
    return message.function.empty() ? ptx.kernelAt(message.ptxLine) : message.function;
  }
  void refuse(StringRef name, unsigned spilledBytes = 0) {
    outcome = std::max(outcome, GateOutcome::Refused);
    refusals.push_back({name.str(), spilledBytes});
  }
  void reportSlow(const PtxasMessage &message);

  const PTXText &ptx;
  ModuleOp module;
  std::vector<Refusal> &refusals;
};
} // namespace

void Gate::reportSlow(const PtxasMessage &message) {
  refuse(getKernelName(message));
  PtxasExplanation explanation = explainPtxasCode(message.code);
  Location loc = locate(message);
  InFlightDiagnostic error = emitError(loc);
  if (!message.function.empty())
    error << "kernel '" << message.function << "': ";
  error << explanation.meaning;
  error.attachNote(loc) << explanation.help;
  error.attachNote(loc) << "ptxas says: " << (message.code.empty() ? "" : "(" + message.code + ") ")
                        << message.text;
}

void Gate::check(const PtxasMessage &message) {
  std::string code = message.code.empty() ? "" : " (" + message.code + ")";
  switch (message.verdict) {
  case PtxasVerdict::Info:
    return;
  case PtxasVerdict::Remark:
    emitRemark(locate(message)) << "ptxas" << code << ": " << message.text;
    return;
  case PtxasVerdict::Warning:
    emitWarning(locate(message)) << "ptxas" << code << ": " << message.text;
    return;
  case PtxasVerdict::Slow:
    return reportSlow(message);
  case PtxasVerdict::Error: {
    // The last words of ptxas after what has been reported.
    if (outcome == GateOutcome::Refused && message.text == "Ptx assembly aborted due to errors")
      return;
    outcome = GateOutcome::NotAssembled;
    InFlightDiagnostic error = emitError(locate(message));
    error << "ptxas" << code << ": " << message.text;
    if (message.ptxLine)
      error << " (line " << message.ptxLine << " of the PTX)";
    return;
  }
  }
}

void Gate::checkSpills(const PtxasFunction &function) {
  if (function.spillStoreBytes == 0 && function.spillLoadBytes == 0)
    return;
  Operation *op = kernel(function.name);
  auto tolerated = op ? op->getAttrOfType<IntegerAttr>(toleratedSpillsAttrName) : IntegerAttr();
  if (tolerated && function.spillStoreBytes + function.spillLoadBytes <= tolerated.getInt()) {
    emitRemark(op->getLoc()) << "ptxas spills " << function.spillStoreBytes
                             << " bytes of stores and " << function.spillLoadBytes
                             << " bytes of loads per thread; up to " << tolerated.getInt()
                             << " bytes cost less than a schedule or a form that needs none";
    return;
  }
  bool promised = promisesFit(op);
  if (promised)
    refuse(function.name, function.spillStoreBytes);
  Location loc = op ? op->getLoc() : module.getLoc();
  InFlightDiagnostic report = promised ? emitError(loc) : emitWarning(loc);
  report << "kernel '" << function.name << "' does not fit in its registers: ptxas spills "
         << function.spillStoreBytes << " bytes of stores and " << function.spillLoadBytes
         << " bytes of loads per thread to local memory";
  setRefusalKind(report, RefusalKind::Registers);
  report.attachNote(loc) << "use a smaller tile, fewer consumers with more registers each, or "
                            "overlap = 1";
}

void Gate::reportDeath(const PtxasRun &run) {
  bool isExplained =
      outcome == GateOutcome::NotAssembled || (outcome == GateOutcome::Refused && run.exitCode > 0);
  if (run.exitCode == 0 || isExplained)
    return;
  outcome = GateOutcome::NotAssembled;
  InFlightDiagnostic error = emitError(module.getLoc());
  if (run.exitCode < 0)
    error << "ptxas was killed or crashed";
  else
    error << "ptxas failed with exit code " << run.exitCode << " and no message of its own";
  if (!run.log.empty())
    error.attachNote(module.getLoc()) << "it printed: " << StringRef(run.log).trim();
}

/// Some arguments make ptxas do something else than assemble, and succeed: --version, --help,
/// --compile-only.
void Gate::checkImage(const PtxasRun &run, ArrayRef<std::string> arguments) {
  if (run.exitCode != 0 || outcome == GateOutcome::NotAssembled ||
      llvm::identify_magic(run.cubin) == llvm::file_magic::elf_executable)
    return;
  // No other schedule helps against arguments.
  bool isExplained = outcome == GateOutcome::Refused;
  outcome = GateOutcome::NotAssembled;
  if (isExplained)
    return;
  InFlightDiagnostic error = emitError(UnknownLoc::get(module.getContext()));
  error << "ptxas succeeded but wrote "
        << (run.cubin.empty() ? "no code" : "something else than code that can be launched");
  if (!arguments.empty())
    error << "; leave out what makes it do so of the arguments that are passed on to it ("
          << llvm::join(arguments, " ") << ")";
  if (StringRef text = StringRef(run.log).trim(); !text.empty())
    error.attachNote(UnknownLoc::get(module.getContext()))
        << "it printed: " << text.take_front(1000);
}

GateOutcome checkAssembly(const PtxasRun &run, const PtxasLog &log, const PTXText &ptx,
                          ArrayRef<std::string> arguments, ModuleOp module,
                          std::vector<Refusal> &refusals) {
  Gate gate(ptx, module, refusals);
  for (const PtxasMessage &message : log.messages)
    gate.check(message);
  for (const PtxasFunction &function : log.functions)
    gate.checkSpills(function);
  gate.reportDeath(run);
  gate.checkImage(run, arguments);
  return gate.outcome;
}

Assembly assemble(ModuleOp module, StringRef ptx, const PTXText &index, StringRef requestedPtxas,
                  ArrayRef<std::string> arguments) {
  Assembly assembly;
  llvm::Expected<Ptxas> ptxas = findPtxas(requestedPtxas);
  if (!ptxas) {
    // It is not about any line of the source.
    emitError(UnknownLoc::get(module.getContext())) << llvm::toString(ptxas.takeError());
    return assembly;
  }
  llvm::Expected<PtxasRun> run = runPtxas(*ptxas, ptx, arguments);
  if (!run) {
    emitError(UnknownLoc::get(module.getContext())) << llvm::toString(run.takeError());
    return assembly;
  }
  assembly.log = parsePtxasLog(run->log);
  assembly.outcome = checkAssembly(*run, assembly.log, index, arguments, module, assembly.refusals);
  assembly.cubin = std::move(run->cubin);
  assembly.logText = std::move(run->log);
  return assembly;
}

} // namespace tessera
