//===- Interface.cpp - What is compiled for whoever asks ------------------===//

#include "lib/Compiler/Compilation.h"
#include "lib/Compiler/FromIR.h"
#include "lib/Compiler/Observer.h"
#include "lib/Source/Shipped.h"

namespace tessera {

static CompileResult compile(const std::string &source, const std::string &fileName,
                             const CompileOptions &options, const DiagnosticHandler &handler,
                             CompilationObserver *observer,
                             std::optional<EmitKind> from = std::nullopt) {
  CompileOptions complete = options;
  complete.imports = options.getImports();
  auto run = [&](const CompileOptions &given, const DiagnosticHandler &handle, Instead &instead) {
    return compileOnce(source, fileName, given, handle, /*isRead=*/handler != nullptr, observer,
                       from, instead);
  };
  // Who observes a compilation says what it compiles, and who asks for a schedule asks for it with
  // the usual values.
  if (!observer && !from && options.schedule.empty())
    return compileOrInstead(complete, handler, run);
  Instead unused;
  return run(complete, handler, unused);
}

CompileResult compile(const std::string &source, const std::string &fileName,
                      const CompileOptions &options, const DiagnosticHandler &handler) {
  return compile(source, fileName, options, handler, /*observer=*/nullptr);
}

CompileResult compile(const std::string &source, const std::string &fileName,
                      const CompileOptions &options, const DiagnosticHandler &handler,
                      CompilationObserver &observer) {
  return compile(source, fileName, options, handler, &observer);
}

CompileResult compileIR(const std::string &text, const std::string &fileName, EmitKind from,
                        const CompileOptions &options, const DiagnosticHandler &handler) {
  return compile(text, fileName, options, handler, /*observer=*/nullptr, from);
}

CompileResult compileFile(const std::string &path, const CompileOptions &options,
                          const DiagnosticHandler &handler) {
  llvm::Expected<SourceFile> source = openSource(path);
  if (source)
    return compile(source->text, source->name, options, handler);
  std::string message = toString(source.takeError());
  if (handler) {
    Diagnostic diagnostic;
    diagnostic.file = path;
    diagnostic.message = std::move(message);
    handler(diagnostic);
  }
  CompileResult result;
  result.status = CompileStatus::UsageError;
  return result;
}

} // namespace tessera
