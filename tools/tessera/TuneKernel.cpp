//===- TuneKernel.cpp - What `tessera tune` does --------------------------===//

#include "tools/tessera/TuneKernel.h"
#include "lib/Database/Json.h"
#include "lib/Tuning/Measure.h"
#include "lib/Tuning/Merge.h"
#include "lib/Tuning/Programs.h"
#include "lib/Tuning/Report.h"
#include "tools/tessera/Commands.h"
#include "tools/tessera/DiagnosticPrinter.h"
#include "tools/tessera/KernelSource.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <cstdlib>

using namespace tessera;
using namespace tessera::tuning;
namespace cuda = tessera::runtime::cuda;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

static constexpr StringRef kManifest = "manifest.json";

static std::string joinPath(StringRef directory, StringRef name) {
  llvm::SmallString<128> path(directory);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

static int failWith(Error error, int code) {
  llvm::errs() << "tessera: " << toString(std::move(error)) << "\n";
  return code;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Enumerates, compiles into `directory` and writes the manifest there.
static int compileStep(const TuneOptions &options, const std::string &directory, Session &session) {
  std::vector<TargetSpec> specs{options.target};
  if (!options.list.empty()) {
    Expected<std::vector<TargetSpec>> list = readTargetList(options.list);
    if (!list)
      return failWith(list.takeError(), ExitUsage);
    specs = std::move(*list);
  }
  session.compiler = options.compiler.empty() ? TESSERA_VERSION : options.compiler;
  DiagnosticPrinter printer;
  auto handler = [&](const tessera::Diagnostic &diagnostic) { printer.print(diagnostic); };
  std::vector<std::string> sources;
  for (const TargetSpec &spec : specs) {
    CompileStatus status = prepareTargets(spec, handler, session, sources);
    if (status != CompileStatus::Success)
      return static_cast<int>(status);
  }
  BuildOptions build;
  build.directory = directory;
  build.ptxas = options.ptxas;
  build.threads = options.jobs;
  build.progress = [](size_t done, size_t all) {
    if (llvm::errs().is_displayed())
      llvm::errs() << "\rcompiled " << done << " of " << all << (done == all ? "\n" : "");
  };
  if (Error error = buildContestants(session, sources, build))
    return failWith(std::move(error), ExitToolchain);
  printPlan(llvm::outs(), session);
  llvm::outs().flush();
  if (Error error = writeFile(joinPath(directory, kManifest), session.print()))
    return failWith(std::move(error), ExitUsage);
  return ExitSuccess;
}

/// The driver, or an error that says what works without one.
static Expected<const cuda::Driver &> findGpu(int device) {
  Expected<const cuda::Driver &> driver = cuda::getDriver();
  Error error = driver ? Error::success() : driver.takeError();
  if (!error) {
    Expected<Device> found = queryDevice(*driver, device);
    if (found)
      return driver;
    error = found.takeError();
  }
  return llvm::createStringError(
      llvm::inconvertibleErrorCode(),
      "tune measures on a Hopper GPU: " + toString(std::move(error)) +
          "; without one, --compile-only DIR makes what `tessera tune --measure DIR` times on "
          "another machine");
}

/// Times what is in `directory`.
static int measureStep(const TuneOptions &options, const cuda::Driver &driver,
                       const std::string &directory, Session &session) {
  MeasureOptions measure;
  measure.directory = directory;
  measure.device = options.device;
  measure.rounds = options.rounds;
  measure.milliseconds = options.milliseconds;
  measure.limitSeconds = options.limitSeconds;
  measure.progress = [](const std::string &line) { llvm::errs() << line << "\n"; };
  measure.save = [&](const Session &measured) {
    return options.out.empty() ? Error::success() : writeFile(options.out, measured.print());
  };
  if (Error error = measureSession(session, driver, measure))
    return failWith(std::move(error), ExitFailed);
  printResults(llvm::outs(), session);
  return ExitSuccess;
}

/// Puts the winners of `session` into the database.
static int mergeStep(const TuneOptions &options, const std::string &path, const Session &session) {
  Database database;
  if (llvm::sys::fs::exists(path)) {
    Expected<Database> loaded = Database::load(path);
    if (!loaded)
      return failWith(loaded.takeError(), ExitUsage);
    database = std::move(*loaded);
  }
  std::vector<Entry> entries = makeEntries(session);
  if (entries.empty()) {
    llvm::errs() << "tessera: no contestant ran all shapes of a class, so that there is nothing to "
                    "store\n";
    return ExitFailed;
  }
  for (Entry &entry : entries) {
    entry.measured.record = options.record;
    database.insert(std::move(entry), {session.device->multiprocessors});
  }
  if (Error error = writeFile(path, database.print()))
    return failWith(std::move(error), ExitUsage);
  llvm::outs() << llvm::formatv("{0} entries written to {1}; `tessera compile --database {1}` uses "
                                "them\n",
                                entries.size(), path);
  return ExitSuccess;
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

static int measureDirectory(const TuneOptions &options) {
  Expected<Session> session = Session::load(joinPath(options.measure, kManifest));
  if (!session)
    return failWith(session.takeError(), ExitUsage);
  Expected<const cuda::Driver &> driver = findGpu(options.device);
  if (!driver)
    return failWith(driver.takeError(), ExitToolchain);
  // Results of an earlier run are kept, so that it can go on after a contestant spoilt the GPU.
  if (llvm::sys::fs::exists(options.out)) {
    Expected<Session> earlier = Session::load(options.out);
    if (!earlier)
      return failWith(earlier.takeError(), ExitUsage);
    if (!earlier->hasSameContestants(*session))
      return reportFailure("'" + options.out + "' has results of other contestants than '" +
                           options.measure + "'; give another --out");
    session = std::move(earlier);
  }
  return measureStep(options, *driver, options.measure, *session);
}

static int mergeResults(const TuneOptions &options) {
  for (const std::string &path : options.merge) {
    Expected<Session> session = Session::load(path);
    if (!session)
      return failWith(session.takeError(), ExitUsage);
    if (!session->device)
      return reportFailure("'" + path + "' has not been measured; run tessera tune --measure");
    printResults(llvm::outs(), *session);
    if (int code = mergeStep(options, options.database, *session))
      return code;
  }
  return ExitSuccess;
}

/// Gives entries the fingerprints of the programs of sources.
static int adoptSources(const TuneOptions &options) {
  Expected<Database> database = Database::load(options.database, Database::oldestVersion);
  if (!database)
    return failWith(database.takeError(), ExitUsage);
  std::string report;
  llvm::raw_string_ostream os(report);
  for (const std::string &path : options.adopt) {
    Expected<std::string> source = readFile(path);
    if (!source)
      return failWith(source.takeError(), ExitUsage);
    Expected<size_t> count = adoptPrograms(*database, *source, path);
    if (!count)
      return failWith(count.takeError(), ExitFailed);
    os << llvm::formatv("{0} entries of {1} are for the programs of {2}\n", *count,
                        options.database, path);
  }
  for (const Entry &entry : database->getEntries())
    if (entry.program.empty())
      return reportFailure("the entry " + entry.describe() + " is of none of these sources, and '" +
                           options.database +
                           "' stays as it is; give the source of its kernel too");
  if (Error error = writeFile(options.database, database->print()))
    return failWith(std::move(error), ExitUsage);
  llvm::outs() << report;
  return ExitSuccess;
}

static std::string getDatabase(const TuneOptions &options) {
  if (!options.database.empty())
    return options.database;
  StringRef source = options.list.empty() ? options.target.file : options.list;
  return joinPath(llvm::sys::path::parent_path(source), "schedules.json");
}

static int runAll(const TuneOptions &options) {
  Expected<const cuda::Driver &> driver = findGpu(options.device);
  if (!driver)
    return failWith(driver.takeError(), ExitToolchain);
  llvm::SmallString<128> directory;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory("tessera-tune", directory))
    return reportFailure("cannot make a temporary directory: " + error.message());
  Session session;
  int code = compileStep(options, directory.str().str(), session);
  if (!code)
    code = measureStep(options, *driver, directory.str().str(), session);
  if (!code)
    code = mergeStep(options, getDatabase(options), session);
  if (std::error_code error = llvm::sys::fs::remove_directories(directory))
    llvm::errs() << "tessera: cannot remove '" << directory << "': " << error.message() << "\n";
  return code;
}

int tessera::tuneKernel(const TuneOptions &options) {
  bool hasTarget = !options.target.file.empty() || !options.list.empty();
  bool isOther = !options.measure.empty() || !options.merge.empty() || !options.adopt.empty();
  if (hasTarget == isOther)
    return reportFailure(
        "tune takes a source FILE, --list, --measure DIR, --merge RESULTS or --adopt FILE");
  if (!options.target.file.empty() && !options.list.empty())
    return reportFailure("tune takes a source FILE or --list, not both");
  if (!options.measure.empty() && options.out.empty())
    return reportFailure("--measure needs --out RESULTS, a file for what it measures");
  if (!options.merge.empty() && options.database.empty())
    return reportFailure("--merge needs --database FILE, which receives the winners");
  if (!options.adopt.empty() && options.database.empty())
    return reportFailure(
        "--adopt needs --database FILE, whose entries are for the programs of FILE");
  if (!options.adopt.empty())
    return adoptSources(options);
  if (!options.merge.empty())
    return mergeResults(options);
  if (!options.compileOnly.empty()) {
    Session session;
    return compileStep(options, options.compileOnly, session);
  }
  int code = options.measure.empty() ? runAll(options) : measureDirectory(options);
  if (code != ExitFailed)
    return code;
  // The driver's part of an ordinary exit would wait for a kernel that does not end.
  llvm::outs().flush();
  std::_Exit(code);
}
