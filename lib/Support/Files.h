//===- Files.h - Reading and writing files ----------------------*- C++ -*-===//
//
// What a user names need be no regular file: a pipe, a device without an end, or a full one. None
// of them ends the process.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SUPPORT_FILES_H
#define TESSERA_LIB_SUPPORT_FILES_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/ErrorOr.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>

namespace tessera {

/// Bytes that are read of what is no regular file, at most.
constexpr size_t mostStreamBytes = size_t(256) << 20;

/// The contents of a file, or of a pipe or device up to its end: `std::errc::file_too_large` where
/// that does not come.
llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> readInput(llvm::StringRef path);
/// The same; "-" is standard input.
llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> readInputOrStdin(llvm::StringRef path);

/// Writes a file; "-" is standard output. Where that fails no part of a regular file stays. The
/// error begins with "cannot write" and the path.
llvm::Error writeOutput(llvm::StringRef path, llvm::function_ref<void(llvm::raw_ostream &)> write);
llvm::Error writeOutput(llvm::StringRef path, llvm::StringRef text);
/// Puts a file in place of another at once: readers see the one or the other.
llvm::Error replaceOutput(llvm::StringRef path, llvm::StringRef text);

/// Writes what standard output and standard error hold back. Whether that failed; the streams may
/// be destroyed then.
bool flushStandardStreams();

} // namespace tessera

#endif // TESSERA_LIB_SUPPORT_FILES_H
