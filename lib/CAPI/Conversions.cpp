//===- Conversions.cpp - Between the C and the C++ interface --------------===//

#include "lib/CAPI/Conversions.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/ErrorHandling.h"

using namespace tessera;

tessera_compile_status capi::convert(CompileStatus status) {
  switch (status) {
  case CompileStatus::Success:
    return TESSERA_COMPILE_SUCCESS;
  case CompileStatus::UsageError:
    return TESSERA_COMPILE_USAGE_ERROR;
  case CompileStatus::SourceError:
    return TESSERA_COMPILE_SOURCE_ERROR;
  case CompileStatus::ToolchainError:
    return TESSERA_COMPILE_TOOLCHAIN_ERROR;
  }
  llvm_unreachable("covered switch");
}

static int32_t convert(Severity severity) {
  switch (severity) {
  case Severity::Error:
    return TESSERA_SEVERITY_ERROR;
  case Severity::Warning:
    return TESSERA_SEVERITY_WARNING;
  case Severity::Remark:
    return TESSERA_SEVERITY_REMARK;
  case Severity::Note:
    return TESSERA_SEVERITY_NOTE;
  }
  llvm_unreachable("covered switch");
}

static uint32_t convert(RefusalKind kind) {
  switch (kind) {
  case RefusalKind::None:
    return TESSERA_REFUSAL_NONE;
  case RefusalKind::Registers:
    return TESSERA_REFUSAL_REGISTERS;
  case RefusalKind::SharedMemory:
    return TESSERA_REFUSAL_SHARED_MEMORY;
  case RefusalKind::Unsupported:
    return TESSERA_REFUSAL_UNSUPPORTED;
  }
  llvm_unreachable("covered switch");
}

/// A diagnostic in C. `storage` receives the arrays of notes that it points to.
static tessera_diagnostic convert(const Diagnostic &from,
                                  std::vector<std::vector<tessera_diagnostic>> &storage) {
  std::vector<tessera_diagnostic> notes;
  for (const Diagnostic &note : from.notes)
    notes.push_back(convert(note, storage));
  tessera_diagnostic to = {};
  to.severity = convert(from.severity);
  to.kind = convert(from.kind);
  to.line = from.line;
  to.column = from.column;
  to.file = from.file.c_str();
  to.message = from.message.c_str();
  to.notes = notes.data();
  to.note_count = notes.size();
  // Moving a vector does not move its elements.
  storage.push_back(std::move(notes));
  return to;
}

DiagnosticHandler capi::convert(tessera_diagnostic_handler handler, void *userData) {
  if (!handler)
    return {};
  return [=](const Diagnostic &diagnostic) {
    std::vector<std::vector<tessera_diagnostic>> storage;
    tessera_diagnostic converted = convert(diagnostic, storage);
    handler(&converted, userData);
  };
}

void capi::reportError(const DiagnosticHandler &handler, std::string message) {
  if (!handler)
    return;
  Diagnostic diagnostic;
  diagnostic.message = std::move(message);
  handler(diagnostic);
}

std::optional<std::string> capi::convert(const char *source, size_t length,
                                         const DiagnosticHandler &handler) {
  if (length == 0)
    return "";
  if (source && length <= std::string().max_size())
    return std::string(source, length);
  reportError(handler, "the source has a length of " + std::to_string(length) +
                           (source ? "" : " and null for its address"));
  return std::nullopt;
}

bool capi::checkArray(const void *array, size_t count, const DiagnosticHandler &handler) {
  if (!array && count)
    reportError(handler, "an array of the options has elements, and null for its address");
  return array || !count;
}

std::string capi::text(const char *string) { return string ? string : ""; }

std::vector<std::pair<std::string, std::string>> capi::convert(const tessera_define *defines,
                                                               size_t count) {
  std::vector<std::pair<std::string, std::string>> result;
  for (const tessera_define &define : llvm::ArrayRef(defines, count))
    result.emplace_back(text(define.name), text(define.value));
  return result;
}
