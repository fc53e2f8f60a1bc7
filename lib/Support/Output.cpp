//===- Output.cpp - Writing files -----------------------------------------===//

#include "lib/Support/Files.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Signals.h"

using namespace llvm;
using namespace tessera;

static Error refuse(StringRef path, std::error_code code) {
  return createStringError(code, "cannot write '" + path + "': " + code.message());
}

/// Writes what a stream holds back; its error, which it forgets.
static std::error_code finish(raw_fd_ostream &os) {
  os.flush();
  std::error_code code = os.error();
  os.clear_error();
  return code;
}

Error tessera::writeOutput(StringRef path, function_ref<void(raw_ostream &)> write) {
  if (path == "-") {
    write(outs());
    std::error_code code = finish(outs());
    return code ? refuse("<stdout>", code) : Error::success();
  }
  std::error_code code;
  raw_fd_ostream os(path, code);
  if (code)
    return refuse(path, code);
  bool isRegular = os.isRegularFile();
  if (isRegular)
    sys::RemoveFileOnSignal(path);
  write(os);
  os.close();
  code = finish(os);
  if (isRegular)
    sys::DontRemoveFileOnSignal(path);
  if (!code)
    return Error::success();
  if (isRegular)
    (void)sys::fs::remove(path);
  return refuse(path, code);
}

Error tessera::writeOutput(StringRef path, StringRef text) {
  return writeOutput(path, [&](raw_ostream &os) { os << text; });
}

Error tessera::replaceOutput(StringRef path, StringRef text) {
  auto fail = [&](Error error) { return refuse(path, errorToErrorCode(std::move(error))); };
  Expected<sys::fs::TempFile> file =
      sys::fs::TempFile::create(path + ".temp-%%%%%%", sys::fs::all_read | sys::fs::all_write);
  if (!file)
    return fail(file.takeError());
  raw_fd_ostream os(file->FD, /*shouldClose=*/false);
  os << text;
  if (std::error_code code = finish(os)) {
    consumeError(file->discard());
    return refuse(path, code);
  }
  if (Error error = file->keep(path))
    return fail(std::move(error));
  return Error::success();
}

bool tessera::flushStandardStreams() {
  std::error_code code = finish(outs());
  if (code)
    errs() << "tessera: cannot write '<stdout>': " << code.message() << "\n";
  return finish(errs()) || code;
}
