//===- Diagnostics.cpp - From MLIR's diagnostics to the interface's -------===//

#include "lib/Source/Diagnostics.h"
#include "dialects/Tile/Refusal.h"
#include "dialects/Tile/RewriteNotes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/MLIRContext.h"

using namespace mlir;

static tessera::Severity convertSeverity(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Error:
    return tessera::Severity::Error;
  case DiagnosticSeverity::Warning:
    return tessera::Severity::Warning;
  case DiagnosticSeverity::Remark:
    return tessera::Severity::Remark;
  case DiagnosticSeverity::Note:
    return tessera::Severity::Note;
  }
  return tessera::Severity::Error;
}

Location tessera::getLocInCopy(Location place, Location import, StringRef name) {
  auto metadata = StringAttr::get(place.getContext(), name);
  return CallSiteLoc::get(place, FusedLoc::get(place.getContext(), import, metadata));
}

FusedLoc tessera::findImport(Location loc) {
  FusedLoc import;
  loc->walk([&](Location part) {
    auto call = dyn_cast<CallSiteLoc>(part);
    auto caller = call ? dyn_cast<FusedLoc>(call.getCaller()) : FusedLoc();
    if (caller && isa<FileLineColRange>(call.getCallee()) &&
        isa_and_nonnull<StringAttr>(caller.getMetadata()))
      import = caller;
    return import || isa<FileLineColRange>(part) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return import;
}

static void setPosition(tessera::Diagnostic &diagnostic, Location loc) {
  if (auto position = loc->findInstanceOf<FileLineColRange>()) {
    diagnostic.file = position.getFilename().str();
    diagnostic.line = position.getStartLine();
    diagnostic.column = position.getStartColumn();
  }
}

static void addNote(std::vector<tessera::Diagnostic> &notes, Location loc, std::string message) {
  tessera::Diagnostic &note = notes.emplace_back();
  note.severity = tessera::Severity::Note;
  note.message = std::move(message);
  setPosition(note, loc);
}

/// Adds a note for the import of the copy that a place is in, and for those around it.
static void noteImports(Location loc, std::vector<tessera::Diagnostic> &notes) {
  while (FusedLoc import = tessera::findImport(loc)) {
    loc = import.getLocations().front();
    StringRef copy = cast<StringAttr>(import.getMetadata()).getValue();
    addNote(notes, loc, ("in the copy '" + copy + "' of this import").str());
  }
}

tessera::Diagnostic tessera::convertDiagnostic(mlir::Diagnostic &diagnostic) {
  Diagnostic converted;
  converted.severity = convertSeverity(diagnostic.getSeverity());
  converted.kind = getRefusalKind(diagnostic);
  converted.message = diagnostic.str();
  setPosition(converted, diagnostic.getLocation());
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    converted.notes.push_back(convertDiagnostic(note));
  if (diagnostic.getSeverity() == DiagnosticSeverity::Error ||
      diagnostic.getSeverity() == DiagnosticSeverity::Warning) {
    for (StringRef note : tessera::tile::getRewriteNotes(diagnostic.getLocation()))
      addNote(converted.notes, diagnostic.getLocation(), note.str());
    noteImports(diagnostic.getLocation(), converted.notes);
  }
  return converted;
}

/// Leaves out notes beyond the first few, which say the most.
static void shorten(tessera::Diagnostic &diagnostic) {
  constexpr size_t most = 4;
  size_t count = diagnostic.notes.size();
  if (count <= most)
    return;
  tessera::Diagnostic rest = diagnostic;
  rest.severity = tessera::Severity::Note;
  rest.notes.clear();
  rest.message = std::to_string(count - most + 1) + " more notes with remarks (--remarks)";
  diagnostic.notes.resize(most - 1);
  diagnostic.notes.push_back(std::move(rest));
}

tessera::DiagnosticForwarder::DiagnosticForwarder(MLIRContext &context,
                                                  const DiagnosticHandler &handler, bool remarks)
    : ScopedDiagnosticHandler(&context) {
  context.printOpOnDiagnostic(false);
  setHandler([&handler, remarks](mlir::Diagnostic &diagnostic) {
    if (!handler || (!remarks && diagnostic.getSeverity() == DiagnosticSeverity::Remark))
      return;
    Diagnostic converted = convertDiagnostic(diagnostic);
    if (!remarks)
      shorten(converted);
    handler(converted);
  });
}

tessera::ErrorCapture::ErrorCapture(MLIRContext *context) : ScopedDiagnosticHandler(context) {
  setHandler([this](mlir::Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return failure();
    if (first.empty())
      first = diagnostic.str();
    return success();
  });
}
