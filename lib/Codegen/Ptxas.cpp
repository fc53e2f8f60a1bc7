//===- Ptxas.cpp - Find and run NVIDIA's assembler ------------------------===//

#include "lib/Codegen/Ptxas.h"
#include "lib/Codegen/EmitPTX.h"
#include "lib/Codegen/PTXText.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace tessera {

// The first release that assembles the PTX ISA which the code generator writes.
static const VersionTuple oldestVersion(12, 3);
static constexpr unsigned queryTimeoutSeconds = 30;

static Error makeError(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

/// A file that vanishes with the object.
static Expected<FileRemover> createTemporary(StringRef suffix, SmallVectorImpl<char> &path) {
  if (std::error_code error = sys::fs::createTemporaryFile("tessera", suffix, path))
    return makeError("cannot create a temporary file: " + error.message());
  return FileRemover(path);
}

static std::string readFile(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer =
      MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

namespace {
struct ProgramOutput {
  int exitCode;
  std::string text;
};
} // namespace

/// Runs a program and captures stdout and stderr together.
static Expected<ProgramOutput> execute(StringRef program, ArrayRef<StringRef> arguments,
                                       unsigned timeoutSeconds = 0) {
  SmallString<128> log;
  Expected<FileRemover> remover = createTemporary("log", log);
  if (!remover)
    return remover.takeError();
  SmallVector<StringRef> command{program};
  command.append(arguments.begin(), arguments.end());
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log), StringRef(log)};
  std::string message;
  bool failed = false;
  int exitCode = sys::ExecuteAndWait(program, command, std::nullopt, redirects, timeoutSeconds,
                                     /*MemoryLimit=*/0, &message, &failed);
  if (failed)
    return makeError("cannot run '" + program + "': " + message);
  return ProgramOutput{exitCode, readFile(log)};
}

//===----------------------------------------------------------------------===//
// Search
//===----------------------------------------------------------------------===//

VersionTuple parsePtxasVersion(StringRef text) {
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

/// Where NVIDIA's wheels put ptxas below a site-packages directory.
static void addWheels(StringRef sitePackages, SmallVectorImpl<std::string> &candidates) {
  for (const char *wheel : {"nvidia/cu13/bin/ptxas", "nvidia/cuda_nvcc/bin/ptxas"})
    candidates.push_back(joined(sitePackages, wheel));
}

static void addVirtualEnvironment(SmallVectorImpl<std::string> &candidates) {
  std::optional<std::string> root = sys::Process::GetEnv("VIRTUAL_ENV");
  if (!root || root->empty())
    return;
  std::error_code error;
  for (sys::fs::directory_iterator it(joined(*root, "lib"), error), end; it != end && !error;
       it.increment(error))
    if (sys::path::filename(it->path()).starts_with("python"))
      addWheels(joined(it->path(), "site-packages"), candidates);
}

/// Asks the python3 on PATH, since its site-packages cannot be told from its path.
static void addPython(SmallVectorImpl<std::string> &candidates) {
  ErrorOr<std::string> python = sys::findProgramByName("python3");
  if (!python)
    return;
  Expected<ProgramOutput> output = execute(
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
    addWheels(directory.trim(), candidates);
}

namespace {
/// Tries candidates one after the other and remembers what was wrong with each.
class Search {
public:
  /// The candidate as a usable ptxas; nothing if it is not one.
  std::optional<Ptxas> tryPath(const std::string &path) {
    if (!seen.insert(path).second || !sys::fs::exists(path))
      return std::nullopt;
    if (!sys::fs::can_execute(path)) {
      rejected.push_back(path + " (not an executable file)");
      return std::nullopt;
    }
    Expected<ProgramOutput> output = execute(path, {"--version"}, queryTimeoutSeconds);
    if (!output) {
      rejected.push_back(path + " (" + toString(output.takeError()) + ")");
      return std::nullopt;
    }
    VersionTuple version = parsePtxasVersion(output->text);
    if (output->exitCode != 0 || version.empty()) {
      rejected.push_back(path + " (does not say its version when run with --version)");
      return std::nullopt;
    }
    if (version < oldestVersion) {
      rejected.push_back(path + " (of CUDA " + version.getAsString() + ")");
      return std::nullopt;
    }
    return Ptxas{path, version};
  }

  std::optional<Ptxas> tryAll(ArrayRef<std::string> paths) {
    for (const std::string &path : paths)
      if (std::optional<Ptxas> found = tryPath(path))
        return found;
    return std::nullopt;
  }

  Error failure(StringRef looked) const {
    std::string message =
        formatv("no usable ptxas: CUDA {0} or newer is needed. ", oldestVersion.getAsString());
    if (rejected.empty())
      message += "Looked in " + looked.str() + ". ";
    else
      message += "Found only " + llvm::join(rejected, ", ") + ". ";
    message +=
        "Install a CUDA toolkit or, with pip, one of the packages nvidia-cuda-nvcc (CUDA 13) and "
        "nvidia-cuda-nvcc-cu12, or name the program with --ptxas";
    return makeError(message);
  }

private:
  StringSet<> seen;
  std::vector<std::string> rejected;
};
} // namespace

Expected<Ptxas> findPtxas(StringRef requested, StringRef systemToolkit) {
  Search search;
  if (!requested.empty()) {
    if (std::optional<Ptxas> found = search.tryPath(requested.str()))
      return *found;
    return search.failure(formatv("'{0}', which does not exist", requested).str());
  }
  SmallVector<std::string> candidates;
  // Each directory of PATH, since an old ptxas there must not hide a newer one behind it.
  SmallVector<StringRef> directories;
  std::string path = sys::Process::GetEnv("PATH").value_or("");
  StringRef(path).split(directories, sys::EnvPathSeparator, -1, /*KeepEmpty=*/false);
  for (StringRef directory : directories)
    candidates.push_back(joined(directory, "ptxas"));
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (std::optional<std::string> root = sys::Process::GetEnv(variable))
      if (!root->empty())
        candidates.push_back(joined(*root, "bin/ptxas"));
  candidates.push_back(joined(systemToolkit, "bin/ptxas"));
  addVirtualEnvironment(candidates);
  if (std::optional<Ptxas> found = search.tryAll(candidates))
    return *found;
  // Starting Python costs more than everything before it, so it comes last.
  candidates.clear();
  addPython(candidates);
  if (std::optional<Ptxas> found = search.tryAll(candidates))
    return *found;
  return search.failure(formatv("PATH, CUDA_HOME, CUDA_PATH, {0} and the Python packages "
                                "nvidia-cuda-nvcc and nvidia-cuda-nvcc-cu12",
                                systemToolkit)
                            .str());
}

//===----------------------------------------------------------------------===//
// Run
//===----------------------------------------------------------------------===//

static bool wantsLineInfo(ArrayRef<std::string> arguments) {
  return llvm::any_of(arguments, [](StringRef argument) {
    return llvm::is_contained({"-lineinfo", "--generate-line-info", "-g", "--device-debug"},
                              argument);
  });
}

Expected<PtxasRun> runPtxas(const Ptxas &ptxas, StringRef ptx, ArrayRef<std::string> arguments) {
  SmallString<128> input, output;
  Expected<FileRemover> inputRemover = createTemporary("ptx", input);
  if (!inputRemover)
    return inputRemover.takeError();
  Expected<FileRemover> outputRemover = createTemporary("cubin", output);
  if (!outputRemover)
    return outputRemover.takeError();
  {
    std::error_code error;
    raw_fd_ostream stream(input, error);
    if (!error) {
      stream << (wantsLineInfo(arguments) ? ptx.str() : withoutLineInfo(ptx));
      stream.close();
      error = stream.error();
      stream.clear_error();
    }
    if (error)
      return makeError("cannot write '" + input + "': " + error.message());
  }
  std::string arch = std::string("-arch=") + targetName;
  SmallVector<StringRef> command{arch, "-v"};
  command.append(arguments.begin(), arguments.end());
  command.append({input, "-o", output});
  Expected<ProgramOutput> result = execute(ptxas.path, command);
  if (!result)
    return result.takeError();
  PtxasRun run;
  run.exitCode = result->exitCode;
  run.log = std::move(result->text);
  if (run.exitCode == 0)
    run.cubin = readFile(output);
  return run;
}

} // namespace tessera
