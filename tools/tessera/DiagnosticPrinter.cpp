//===- DiagnosticPrinter.cpp - Diagnostics with the line they are about ---===//

#include "tools/tessera/DiagnosticPrinter.h"
#include "lib/Source/Shipped.h"
#include "tools/tessera/Commands.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace tessera;

int tessera::reportFailure(const Twine &message, ExitCode code) {
  errs() << "tessera: " << message << "\n";
  return code;
}

static SourceMgr::DiagKind getKind(Severity severity) {
  switch (severity) {
  case Severity::Error:
    return SourceMgr::DK_Error;
  case Severity::Warning:
    return SourceMgr::DK_Warning;
  case Severity::Remark:
    return SourceMgr::DK_Remark;
  case Severity::Note:
    return SourceMgr::DK_Note;
  }
  return SourceMgr::DK_Error;
}

SMLoc DiagnosticPrinter::locate(const Diagnostic &diagnostic) {
  if (diagnostic.line == 0)
    return {};
  auto [entry, isNew] = buffers.try_emplace(diagnostic.file, 0);
  if (isNew)
    if (Expected<SourceFile> file = openSource(diagnostic.file))
      entry->second = sources.AddNewSourceBuffer(
          MemoryBuffer::getMemBufferCopy(file->text, diagnostic.file), SMLoc());
    else
      consumeError(file.takeError());
  if (entry->second == 0)
    return {};
  return sources.FindLocForLineAndColumn(entry->second, diagnostic.line, diagnostic.column);
}

void DiagnosticPrinter::print(const Diagnostic &diagnostic) {
  if (diagnostic.severity == Severity::Warning &&
      !warned.emplace(diagnostic.file, diagnostic.line, diagnostic.column, diagnostic.message)
           .second)
    return;
  SourceMgr::DiagKind kind = getKind(diagnostic.severity);
  SMDiagnostic message;
  if (SMLoc location = locate(diagnostic); location.isValid()) {
    message = sources.GetMessage(location, kind, diagnostic.message);
  } else {
    // SMDiagnostic leaves a line of -1 out, and counts columns from 0.
    int line = diagnostic.line ? static_cast<int>(diagnostic.line) : -1;
    int column = static_cast<int>(diagnostic.column) - 1;
    message = SMDiagnostic(sources, SMLoc(), diagnostic.file, line, column, kind,
                           diagnostic.message, "", {});
  }
  // https://no-color.org
  const char *noColor = std::getenv("NO_COLOR");
  message.print(/*ProgName=*/nullptr, errs(), /*ShowColors=*/!noColor || !*noColor);
  for (Diagnostic note : diagnostic.notes) {
    // The line has just been shown.
    if (note.file == diagnostic.file && note.line == diagnostic.line &&
        note.column == diagnostic.column)
      note.file.clear(), note.line = note.column = 0;
    print(note);
  }
}
