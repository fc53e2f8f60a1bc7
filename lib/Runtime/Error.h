//===- Error.h - Errors of the run-time library -----------------*- C++ -*-===//
//
// An llvm::Error that carries the status of the C interface beside the text.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_ERROR_H
#define TESSERA_LIB_RUNTIME_ERROR_H

#include "tessera-c/Runtime.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"

#include <string>
#include <utility>

namespace tessera::runtime {

class RuntimeError : public llvm::ErrorInfo<RuntimeError> {
public:
  static char ID;

  RuntimeError(tessera_runtime_status status, std::string message)
      : status(status), text(std::move(message)) {}

  tessera_runtime_status getStatus() const { return status; }
  const std::string &getText() const { return text; }
  void log(llvm::raw_ostream &os) const override { os << text; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

private:
  tessera_runtime_status status;
  std::string text;
};

/// An error of status `status` with a text made by llvm::formatv.
template <typename... Args>
llvm::Error makeError(tessera_runtime_status status, const char *format, Args &&...args) {
  return llvm::make_error<RuntimeError>(status,
                                        llvm::formatv(format, std::forward<Args>(args)...).str());
}

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_ERROR_H
