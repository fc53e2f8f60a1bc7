//===- Toolkit.cpp - Find and run programs of the CUDA toolkit ------------===//

#include "lib/Codegen/Toolkit.h"
#include "lib/Support/Files.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include <cerrno>
#include <sys/mman.h>
#include <unistd.h>

using namespace llvm;

namespace tessera {

static constexpr unsigned queryTimeoutSeconds = 30;

static Error makeError(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

//===----------------------------------------------------------------------===//
// Files and programs
//===----------------------------------------------------------------------===//

static Error makeSystemError(StringRef what, int number) {
  return makeError(what + ": " + std::error_code(number, std::generic_category()).message());
}

AnonymousFile::AnonymousFile(int descriptor)
    : descriptor(descriptor), path(formatv("/proc/{0}/fd/{1}", getpid(), descriptor).str()) {}

AnonymousFile::~AnonymousFile() {
  if (descriptor >= 0)
    close(descriptor);
}

Expected<AnonymousFile> AnonymousFile::create(StringRef contents) {
  int descriptor = memfd_create("tessera", MFD_CLOEXEC);
  if (descriptor < 0)
    return makeSystemError("cannot create a temporary file", errno);
  AnonymousFile file(descriptor);
  while (!contents.empty()) {
    ssize_t written = write(descriptor, contents.data(), contents.size());
    if (written < 0 && errno != EINTR)
      return makeSystemError("cannot write a temporary file", errno);
    contents = contents.drop_front(std::max<ssize_t>(written, 0));
  }
  return file;
}

Expected<std::string> AnonymousFile::read() const {
  // By its path, so that it is read from its beginning.
  auto buffer = readInput(path);
  if (!buffer)
    return makeError("cannot read a temporary file: " + buffer.getError().message());
  return (*buffer)->getBuffer().str();
}

Expected<ProgramOutput> runProgram(StringRef program, ArrayRef<StringRef> arguments,
                                   unsigned timeoutSeconds) {
  Expected<AnonymousFile> log = AnonymousFile::create();
  if (!log)
    return log.takeError();
  SmallVector<StringRef> command{program};
  command.append(arguments.begin(), arguments.end());
  std::optional<StringRef> redirects[] = {StringRef(""), log->getPath(), log->getPath()};
  std::string message;
  bool failed = false;
  int exitCode = sys::ExecuteAndWait(program, command, std::nullopt, redirects, timeoutSeconds,
                                     /*MemoryLimit=*/0, &message, &failed);
  if (failed)
    return makeError("cannot run '" + program + "': " + message);
  Expected<std::string> text = log->read();
  if (!text)
    return text.takeError();
  return ProgramOutput{exitCode, std::move(*text)};
}

//===----------------------------------------------------------------------===//
// Search
//===----------------------------------------------------------------------===//

VersionTuple parseToolkitVersion(StringRef text) {
  StringRef number =
      text.split("release ").second.take_while([](char c) { return isDigit(c) || c == '.'; });
  VersionTuple version;
  if (number.empty() || version.tryParse(number))
    return VersionTuple();
  return version;
}

static std::string joined(const Twine &directory, const Twine &rest) {
  SmallString<128> path;
  directory.toVector(path);
  sys::path::append(path, rest);
  return std::string(path);
}

static void addWheels(const ToolkitProgram &program, StringRef sitePackages,
                      SmallVectorImpl<std::string> &candidates) {
  for (StringRef wheel : program.wheelPaths)
    candidates.push_back(joined(sitePackages, wheel));
}

static void addVirtualEnvironment(const ToolkitProgram &program,
                                  SmallVectorImpl<std::string> &candidates) {
  std::optional<std::string> root = sys::Process::GetEnv("VIRTUAL_ENV");
  if (!root || root->empty())
    return;
  std::error_code error;
  for (sys::fs::directory_iterator it(joined(*root, "lib"), error), end; it != end && !error;
       it.increment(error))
    if (sys::path::filename(it->path()).starts_with("python"))
      addWheels(program, joined(it->path(), "site-packages"), candidates);
}

/// Asks the python3 on PATH, since its site-packages cannot be told from its path.
static void addPython(const ToolkitProgram &program, SmallVectorImpl<std::string> &candidates) {
  ErrorOr<std::string> python = sys::findProgramByName("python3");
  if (!python)
    return;
  Expected<ProgramOutput> output = runProgram(
      *python,
      {"-c",
       "import site; print('\\n'.join(site.getsitepackages() + [site.getusersitepackages()]))"},
      queryTimeoutSeconds);
  if (!output) {
    consumeError(output.takeError());
    return;
  }
  if (output->exitCode != 0)
    return;
  SmallVector<StringRef> directories;
  StringRef(output->text).split(directories, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef directory : directories)
    addWheels(program, directory.trim(), candidates);
}

namespace {
/// Tries candidates one after the other and remembers what was wrong with each.
class Search {
public:
  explicit Search(const ToolkitProgram &program) : program(program) {}

  /// The candidate as a usable program; nothing if it is not one.
  std::optional<InstalledTool> tryPath(const std::string &path) {
    if (!seen.insert(path).second || !sys::fs::exists(path))
      return std::nullopt;
    if (!sys::fs::can_execute(path)) {
      rejected.push_back(path + " (not an executable file)");
      return std::nullopt;
    }
    Expected<ProgramOutput> output = runProgram(path, {"--version"}, queryTimeoutSeconds);
    if (!output) {
      rejected.push_back(path + " (" + toString(output.takeError()) + ")");
      return std::nullopt;
    }
    VersionTuple version = parseToolkitVersion(output->text);
    if (output->exitCode != 0 || version.empty()) {
      rejected.push_back(path + " (does not say its version when run with --version)");
      return std::nullopt;
    }
    if (version < program.oldest) {
      rejected.push_back(path + " (of CUDA " + version.getAsString() + ")");
      return std::nullopt;
    }
    return InstalledTool{path, version};
  }

  std::optional<InstalledTool> tryAll(ArrayRef<std::string> paths) {
    for (const std::string &path : paths)
      if (std::optional<InstalledTool> found = tryPath(path))
        return found;
    return std::nullopt;
  }

  Error failure(StringRef looked) const {
    std::string message = formatv("no usable {0}: CUDA {1} or newer is needed. ", program.name,
                                  program.oldest.getAsString());
    if (rejected.empty())
      message += "Looked in " + looked.str() + ". ";
    else
      message += "Found only " + llvm::join(rejected, ", ") + ". ";
    message += program.advice;
    return makeError(message);
  }

private:
  const ToolkitProgram &program;
  llvm::StringSet<> seen;
  std::vector<std::string> rejected;
};
} // namespace

Expected<InstalledTool> findToolkitProgram(const ToolkitProgram &program, StringRef requested,
                                           StringRef systemToolkit) {
  Search search(program);
  if (!requested.empty()) {
    if (std::optional<InstalledTool> found = search.tryPath(requested.str()))
      return *found;
    return search.failure(formatv("'{0}', which does not exist", requested).str());
  }
  SmallVector<std::string> candidates;
  // Each directory of PATH, since an old program there must not hide a newer one behind it.
  SmallVector<StringRef> directories;
  std::string path = sys::Process::GetEnv("PATH").value_or("");
  StringRef(path).split(directories, sys::EnvPathSeparator, -1, /*KeepEmpty=*/false);
  for (StringRef directory : directories)
    candidates.push_back(joined(directory, program.name));
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (std::optional<std::string> root = sys::Process::GetEnv(variable))
      if (!root->empty())
        candidates.push_back(joined(*root, "bin/" + program.name));
  candidates.push_back(joined(systemToolkit, "bin/" + program.name));
  addVirtualEnvironment(program, candidates);
  if (std::optional<InstalledTool> found = search.tryAll(candidates))
    return *found;
  // Starting Python costs more than everything before it, so it comes last.
  candidates.clear();
  addPython(program, candidates);
  if (std::optional<InstalledTool> found = search.tryAll(candidates))
    return *found;
  return search.failure(formatv("PATH, CUDA_HOME, CUDA_PATH, {0} and the Python packages {1}",
                                systemToolkit, program.wheels)
                            .str());
}

} // namespace tessera
