//===- MachineCheck.cpp - What the machine does not take of a text --------===//

#include "tools/tessera-lsp-server/MachineCheck.h"
#include "tessera/Compiler.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace tessera;

/// The first notes say what would work.
static std::string describe(const Diagnostic &diagnostic) {
  std::string text = diagnostic.message;
  for (const Diagnostic &note : diagnostic.notes)
    text += "\n" + note.message;
  return text;
}

/// `diagnostic` as one of LSP; what is about an imported file stands where the document begins.
static json::Object convert(const Diagnostic &diagnostic, StringRef path) {
  bool isHere = diagnostic.file == path && diagnostic.line > 0;
  int64_t line = isHere ? int64_t(diagnostic.line) - 1 : 0,
          column = isHere && diagnostic.column > 0 ? int64_t(diagnostic.column) - 1 : 0;
  std::string message = describe(diagnostic);
  if (!isHere && diagnostic.line)
    message = diagnostic.file + ":" + std::to_string(diagnostic.line) + ": " + message;
  auto position = [&](int64_t character) {
    return json::Object{{"line", line}, {"character", character}};
  };
  return json::Object{
      {"range", json::Object{{"start", position(column)}, {"end", position(column + 1)}}},
      {"severity", diagnostic.severity == Severity::Error ? 1 : 2},
      {"source", "tessera"},
      {"message", std::move(message)}};
}

static json::Array compileAndCollect(const CheckedText &text) {
  json::Array found;
  CompileOptions options;
  options.emit = EmitKind::Hop;
  options.tuning.useDatabase = false;
  compile(text.text, text.path, options, [&](const Diagnostic &diagnostic) {
    bool isWarning = diagnostic.severity == Severity::Warning;
    if (isWarning || diagnostic.severity == Severity::Error)
      found.push_back(convert(diagnostic, text.path));
  });
  return found;
}

void MachineCheck::start(CheckedText text) {
  std::lock_guard<std::mutex> lock(mutex);
  erase_if(waiting, [&](const CheckedText &other) { return other.uri == text.uri; });
  if (!ends)
    waiting.push_back(std::move(text));
  changed.notify_all();
}

void MachineCheck::finish() {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return waiting.empty() && !isBusy; });
  ends = true;
  changed.notify_all();
}

void MachineCheck::work() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return ends || !waiting.empty(); });
    if (ends)
      return;
    CheckedText text = std::move(waiting.front());
    waiting.pop_front();
    isBusy = true;
    lock.unlock();
    report(text, compileAndCollect(text));
    lock.lock();
    isBusy = false;
    changed.notify_all();
  }
}
