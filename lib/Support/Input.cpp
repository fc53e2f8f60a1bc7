//===- Input.cpp - Reading files ------------------------------------------===//

#include "lib/Support/Files.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"

using namespace llvm;
using namespace tessera;

static ErrorOr<std::unique_ptr<MemoryBuffer>> readStream(sys::fs::file_t file, StringRef name) {
  constexpr size_t chunk = size_t(1) << 16;
  SmallString<0> text;
  for (;;) {
    size_t size = text.size();
    if (size > mostStreamBytes)
      return std::make_error_code(std::errc::file_too_large);
    text.resize_for_overwrite(size + chunk);
    Expected<size_t> count =
        sys::fs::readNativeFile(file, MutableArrayRef<char>(text.data() + size, chunk));
    if (!count)
      return errorToErrorCode(count.takeError());
    text.truncate(size + *count);
    if (*count == 0)
      return std::make_unique<SmallVectorMemoryBuffer>(std::move(text), name);
  }
}

ErrorOr<std::unique_ptr<MemoryBuffer>> tessera::readInput(StringRef path) {
  Expected<sys::fs::file_t> file = sys::fs::openNativeFileForRead(path);
  if (!file)
    return errorToErrorCode(file.takeError());
  auto close = scope_exit([&] { (void)sys::fs::closeFile(*file); });
  sys::fs::file_status status;
  if (std::error_code error = sys::fs::status(*file, status))
    return error;
  if (status.type() == sys::fs::file_type::regular_file)
    return MemoryBuffer::getOpenFile(*file, path, status.getSize());
  return readStream(*file, path);
}

ErrorOr<std::unique_ptr<MemoryBuffer>> tessera::readInputOrStdin(StringRef path) {
  return path == "-" ? readStream(sys::fs::getStdinHandle(), "<stdin>") : readInput(path);
}
