//===- Toolkit.h - Find and run programs of the CUDA toolkit --------------===//

#ifndef TESSERA_LIB_CODEGEN_TOOLKIT_H
#define TESSERA_LIB_CODEGEN_TOOLKIT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/VersionTuple.h"
#include <string>
#include <utility>

namespace tessera {

/// A program that is new enough.
struct InstalledTool {
  std::string path;
  llvm::VersionTuple version; ///< of the CUDA toolkit, as 12.3
};

/// What to look for.
struct ToolkitProgram {
  llvm::StringRef name;
  llvm::VersionTuple oldest;
  /// Where Python's wheels put it, below a site-packages directory.
  llvm::ArrayRef<llvm::StringRef> wheelPaths;
  /// Names of these wheels, and how to get one, for the error.
  llvm::StringRef wheels, advice;
};

/// Parses what a program of the toolkit prints with --version; an empty version when the text names
/// none.
llvm::VersionTuple parseToolkitVersion(llvm::StringRef text);

/// Finds a program. A non-empty `requested` path is the only candidate; otherwise the first that is
/// new enough of: PATH, $CUDA_HOME/bin, $CUDA_PATH/bin, bin of `systemToolkit`, and wheels in the
/// site-packages of $VIRTUAL_ENV and of the python3 on PATH. The error lists what was found and how
/// to get one.
llvm::Expected<InstalledTool> findToolkitProgram(const ToolkitProgram &program,
                                                 llvm::StringRef requested,
                                                 llvm::StringRef systemToolkit = "/usr/local/cuda");

struct ProgramOutput {
  int exitCode = 0; ///< negative when the program was killed by a signal
  std::string text; ///< its stdout and stderr
};

/// Runs a program and captures stdout and stderr together. An error means that it did not run.
llvm::Expected<ProgramOutput> runProgram(llvm::StringRef program,
                                         llvm::ArrayRef<llvm::StringRef> arguments,
                                         unsigned timeoutSeconds = 0);

/// A file in memory that is in no directory: programs that this process starts open it by its path,
/// other users cannot, and it ends with the process, however that ends.
class AnonymousFile {
public:
  static llvm::Expected<AnonymousFile> create(llvm::StringRef contents = "");
  AnonymousFile(AnonymousFile &&other)
      : descriptor(std::exchange(other.descriptor, -1)), path(std::move(other.path)) {}
  AnonymousFile &operator=(AnonymousFile &&) = delete;
  ~AnonymousFile();

  llvm::StringRef getPath() const { return path; }
  /// The contents, whoever wrote them.
  llvm::Expected<std::string> read() const;

private:
  explicit AnonymousFile(int descriptor);

  int descriptor;
  std::string path;
};

} // namespace tessera

#endif // TESSERA_LIB_CODEGEN_TOOLKIT_H
