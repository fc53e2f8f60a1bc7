//===- Conversions.h - Between the C and the C++ interface ------*- C++ -*-===//

#ifndef TESSERA_LIB_CAPI_CONVERSIONS_H
#define TESSERA_LIB_CAPI_CONVERSIONS_H

#include "tessera-c/Compiler.h"
#include "tessera/Compiler.h"

namespace tessera::capi {

tessera_compile_status convert(CompileStatus status);

/// A handler that calls one of C, or none.
DiagnosticHandler convert(tessera_diagnostic_handler handler, void *userData);

std::vector<std::pair<std::string, std::string>> convert(const tessera_define *defines,
                                                         size_t count);

/// Reads the members that the caller's version of the struct has. Nothing after reporting what is
/// wrong with them.
std::optional<CompileOptions> convert(const tessera_compile_options *options,
                                      const DiagnosticHandler &handler);

/// Reports an error that is not about the source.
void reportError(const DiagnosticHandler &handler, std::string message);

/// An absent string is empty.
std::string text(const char *string);

/// The text of a source, or nothing after reporting that there is no such text.
std::optional<std::string> convert(const char *source, size_t length,
                                   const DiagnosticHandler &handler);

/// Whether an array has its elements; reports it where it has not.
bool checkArray(const void *array, size_t count, const DiagnosticHandler &handler);

} // namespace tessera::capi

#endif // TESSERA_LIB_CAPI_CONVERSIONS_H
