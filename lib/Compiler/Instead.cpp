//===- Instead.cpp - What is taken where registers or memory are short ----===//

#include "lib/Compiler/Instead.h"
#include "lib/Compiler/SmallerTiles.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace tessera;

namespace {
/// Keeps errors, or all that is reported, until it is known whether they count; gives on the rest.
class HeldDiagnostics {
public:
  HeldDiagnostics(const DiagnosticHandler &handler, bool holdsAll)
      : next(handler), handler([this, holdsAll](const tessera::Diagnostic &diagnostic) {
          if (holdsAll || diagnostic.severity == Severity::Error)
            held.push_back(diagnostic);
          else
            give(diagnostic);
        }) {}

  const DiagnosticHandler &getHandler() const { return handler; }
  /// What is held, where its first says that smaller tiles may fit; empty otherwise.
  llvm::ArrayRef<tessera::Diagnostic> getLackOfRoom() const {
    if (held.empty() || !lacksRoom(held.front().kind))
      return {};
    return held;
  }
  void report() const {
    for (const tessera::Diagnostic &diagnostic : held)
      give(diagnostic);
  }
  void give(const tessera::Diagnostic &diagnostic) const {
    if (next)
      next(diagnostic);
  }

private:
  const DiagnosticHandler &next;
  DiagnosticHandler handler;
  std::vector<tessera::Diagnostic> held;
};
} // namespace

/// The errors of a refusal as one warning that says what is taken.
static tessera::Diagnostic explainInstead(llvm::ArrayRef<tessera::Diagnostic> errors,
                                          llvm::ArrayRef<source::Define> values) {
  tessera::Diagnostic refusal = errors.front();
  std::vector<std::string> texts;
  for (const auto &[name, value] : values)
    texts.push_back(name + " = " + value);
  refusal.severity = Severity::Warning;
  refusal.message = "other values of parameters are taken, " + llvm::join(texts, ", ") +
                    ", as rules say: " + refusal.message;
  // The rules whose choice does not compile, at their lines.
  for (const tessera::Diagnostic &error : errors.drop_front()) {
    refusal.notes.push_back(error);
    refusal.notes.back().notes.clear();
    refusal.notes.back().severity = Severity::Note;
    llvm::append_range(refusal.notes, error.notes);
  }
  return refusal;
}

CompileResult tessera::compileOrInstead(const CompileOptions &options,
                                        const DiagnosticHandler &handler, CompileFunction run) {
  HeldDiagnostics errors(handler, /*holdsAll=*/false);
  Instead instead, unused;
  CompileResult result = run(options, errors.getHandler(), instead);
  llvm::ArrayRef<tessera::Diagnostic> refused = errors.getLackOfRoom();
  if (!refused.empty())
    for (const std::vector<source::Define> &values : instead) {
      CompileOptions others = options;
      llvm::append_range(others.defines, values);
      HeldDiagnostics ofOthers(handler, /*holdsAll=*/true);
      CompileResult tried = run(others, ofOthers.getHandler(), unused);
      if (tried.status != CompileStatus::Success)
        continue;
      errors.give(explainInstead(refused, values));
      ofOthers.report();
      return tried;
    }
  errors.report();
  return result;
}
