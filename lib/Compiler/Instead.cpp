//===- Instead.cpp - What is taken where registers or memory are short ----===//

#include "lib/Compiler/Instead.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace tessera;

namespace {
/// Gives on what is reported, and keeps errors until it is known whether they count.
class HeldErrors {
public:
  explicit HeldErrors(const DiagnosticHandler &handler)
      : next(handler),
        handler([this](const tessera::Diagnostic &diagnostic) { receive(diagnostic); }) {}

  const DiagnosticHandler &getHandler() const { return handler; }
  /// The first error, where it says that smaller tiles may fit; null otherwise.
  const tessera::Diagnostic *getLackOfRoom() const {
    bool isShort = !errors.empty() && (errors.front().kind == RefusalKind::Registers ||
                                       errors.front().kind == RefusalKind::SharedMemory);
    return isShort ? &errors.front() : nullptr;
  }
  void report() const {
    for (const tessera::Diagnostic &error : errors)
      give(error);
  }
  void give(const tessera::Diagnostic &diagnostic) const {
    if (next)
      next(diagnostic);
  }

private:
  void receive(const tessera::Diagnostic &diagnostic) {
    if (diagnostic.severity == Severity::Error)
      errors.push_back(diagnostic);
    else
      give(diagnostic);
  }

  const DiagnosticHandler &next;
  DiagnosticHandler handler;
  std::vector<tessera::Diagnostic> errors;
};
} // namespace

/// The refusal as a warning that says what is taken.
static tessera::Diagnostic explainInstead(tessera::Diagnostic refusal,
                                          llvm::ArrayRef<source::Define> values) {
  std::vector<std::string> texts;
  for (const auto &[name, value] : values)
    texts.push_back(name + " = " + value);
  refusal.severity = Severity::Warning;
  refusal.message = "other values of parameters are taken, " + llvm::join(texts, ", ") +
                    ", as rules say: " + refusal.message;
  return refusal;
}

CompileResult tessera::compileOrInstead(const CompileOptions &options,
                                        const DiagnosticHandler &handler, CompileFunction run) {
  HeldErrors errors(handler);
  Instead instead, unused;
  CompileResult result = run(options, errors.getHandler(), instead);
  if (const tessera::Diagnostic *refusal = errors.getLackOfRoom())
    for (const std::vector<source::Define> &values : instead) {
      CompileOptions others = options;
      llvm::append_range(others.defines, values);
      HeldErrors otherErrors(handler);
      CompileResult tried = run(others, otherErrors.getHandler(), unused);
      if (tried.status != CompileStatus::Success)
        continue;
      errors.give(explainInstead(*refusal, values));
      return tried;
    }
  errors.report();
  return result;
}
