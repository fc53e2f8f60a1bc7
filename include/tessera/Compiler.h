//===- tessera/Compiler.h - Compile .tile sources -------------------------===//
//
// The C++ interface of the compiler. It needs no MLIR header.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_H
#define TESSERA_COMPILER_H

#include "tessera/RefusalKind.h"
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

/// How far a compilation goes. Each level is text except Cubin.
enum class EmitKind {
  Tile,      ///< the source with its parameters bound
  Chosen,    ///< tile dialect, schedule chosen
  Scheduled, ///< and loops overlapped and split as it says
  Roles,     ///< hop dialect: roles and pipes
  Staged,    ///< and layouts, shared memory, clusters, tiles that blocks walk over
  Ordered,   ///< and flights: when roles wait, load, release and take turns
  Hop,       ///< and proved to end
  Barriers,  ///< hop dialect: mbarriers, fences and shared-memory offsets
  LLVM,      ///< LLVM dialect
  PTX,
  Cubin,
  Bundle, ///< cubin (or PTX) with its JSON description, see docs/bundle.md
};

enum class Severity { Error, Warning, Remark, Note };

struct Diagnostic {
  Severity severity = Severity::Error;
  std::string file;
  unsigned line = 0, column = 0; ///< 1-based; 0 when unknown
  std::string message;
  std::vector<Diagnostic> notes;
  RefusalKind kind = RefusalKind::None;
};

using DiagnosticHandler = std::function<void(const Diagnostic &)>;

/// What went wrong, so that a caller can tell a bad source from a missing tool.
enum class CompileStatus {
  Success = 0,
  UsageError = 2,     ///< unknown parameter, schedule field or option
  SourceError = 3,    ///< the source does not parse, verify or fit the machine
  ToolchainError = 4, ///< ptxas is missing or too old, or refused its input
};

/// Which rules choose the values of free parameters, beside those that the source names.
struct RuleOptions {
  /// Files of a user, as --rules FILE. They count before those of the source, and those that the
  /// environment variable TESSERA_RULES lists count too.
  std::vector<std::string> files;
  /// The GPU that rules of one card are for; empty for the default card of each file. Set by
  /// `CompileOptions::Tuning::gpu`.
  std::string card;
  /// Extents that rules may ask for. Set by `CompileOptions::Tuning::shape`.
  std::vector<std::pair<std::string, int64_t>> extents;
};

/// Where `$import "name"` finds its file: among `texts`, beside the file that imports it, in
/// `paths`, and among the kernels that ship with the compiler.
struct ImportOptions {
  /// Directories, as -I DIR.
  std::vector<std::string> paths;
  /// Names and texts of files that need not be on disk.
  std::vector<std::pair<std::string, std::string>> texts;
  RuleOptions rules;
};

struct CompileOptions {
  ImportOptions imports;
  /// Values of `param` declarations, as -D NAME=VALUE.
  std::vector<std::pair<std::string, std::string>> defines;
  /// Overrides of schedule fields, as "consumers=2,overlap=1". Those of one kernel have its name
  /// before them, and a semicolon stands between several: "stages=2;gradients:consumers=2".
  std::string schedule;
  /// The kernel or sequence to compile; empty for all of the source.
  std::string kernel;
  /// What the kernels record: empty for nothing, or "timeline", with options of
  /// hop-instrument-timeline as "timeline,blocks=8,first=132,events=4096".
  std::string instrument;
  /// Programmatic dependent launch: a launch may begin while the one before it in the stream ends,
  /// and waits for its results where it first needs memory.
  bool pdl = false;
  /// False leaves loops whole and masks in all iterations, for tests of masks.
  bool split = true;
  /// Which measured schedules (docs/tuning.md) serve where neither the source nor `defines` and
  /// `schedule` say otherwise.
  struct Tuning {
    /// False leaves every choice to the model of tile-choose-schedule.
    bool useDatabase = true;
    /// File of a database; empty for the one that ships with the compiler.
    std::string database;
    /// The GPU whose measurements count, as "NVIDIA H200"; empty for the database's default.
    std::string gpu;
    /// The class of shapes that the kernel is compiled for, as "many-short"; empty for that of
    /// `shape`, or the default class.
    std::string shapeClass;
    /// Extents of the kernel's named dimensions, which decide the class and which rules hold; none
    /// or all of them.
    std::vector<std::pair<std::string, int64_t>> shape;
  };
  Tuning tuning;
  /// With Bundle: the kernel with each value of the parameters that the source declares
  /// alternatives of and `defines` do not set, of which a launch takes the fastest for its extents.
  bool alternatives = false;
  EmitKind emit = EmitKind::Bundle;
  /// With Bundle: ship PTX, which the driver assembles, and do not run ptxas.
  bool bundlePtx = false;
  /// Path of ptxas; empty to search PATH, CUDA_HOME and Python's wheels.
  std::string ptxas;
  std::vector<std::string> ptxasArguments;
  /// Report remarks (why a schedule was chosen, what a pass refused).
  bool remarks = false;
  bool verifyEach = true;
  /// Print the time of each pass and tool to stderr.
  bool timing = false;
  /// Directory that receives the IR after each pass, the PTX and the ptxas log.
  std::string dumpDir;
  /// File that receives a reproducer when a pass fails.
  std::string reproducer;

  /// `imports`, with the card and the extents that rules may ask for.
  ImportOptions getImports() const {
    ImportOptions complete = imports;
    complete.rules.card = tuning.gpu;
    complete.rules.extents = tuning.shape;
    return complete;
  }
};

/// What the compiler knows about one compiled kernel.
struct KernelReport {
  std::string name;
  /// The kernel's entry of the bundle's "kernels" array, as JSON text.
  std::string description;
  /// Registers per role, shared-memory map, stages, spills, instruction counts; JSON text.
  std::string report;
};

/// The outcome of a compilation.
struct CompileResult {
  CompileStatus status = CompileStatus::Success;
  /// The requested form: IR or PTX text, a cubin image, or a bundle.
  std::string output;
  std::vector<KernelReport> kernels;
  /// The files that the source consists of: those that it imports, and itself as the last.
  std::vector<std::string> files;
};

/// Compiles source text. `fileName` is what diagnostics call it.
CompileResult compile(const std::string &source, const std::string &fileName,
                      const CompileOptions &options, const DiagnosticHandler &handler);

/// Compiles a file, or where there is none the kernel that ships of this name, as "attention_fwd".
CompileResult compileFile(const std::string &path, const CompileOptions &options,
                          const DiagnosticHandler &handler);

/// A parameter of a source.
struct ParameterInfo {
  std::string name, kind; ///< kind: "int", "bool", "type" or "name"
  /// The value that is bound: the default, or what the definitions set.
  std::string defaultValue;
  /// Values such as "128" and ranges such as "16..256 step 16"; empty: any value of the kind.
  std::vector<std::string> allowed;
  std::string documentation;
  /// Values that a kernel with alternatives has, each in a kernel of its own.
  std::vector<std::string> alternatives;
  /// Where the value comes from: "given", "default", or the place of a rule as "file.json:12".
  std::string origin;
};

/// A kernel or a sequence of a source, with defaults bound.
struct EntryInfo {
  std::string name;
  std::vector<std::pair<std::string, std::string>> arguments; ///< name, type
  std::vector<std::string> dims;                              ///< named run-time dimensions
  std::string grid;                                           ///< empty for a sequence
  std::vector<std::string> launches; ///< the kernels that a sequence launches, each once
};

struct SourceInfo {
  CompileStatus status = CompileStatus::Success;
  std::vector<ParameterInfo> parameters;
  std::vector<EntryInfo> kernels;
  std::vector<EntryInfo> sequences;
};

/// Reads what a source declares, with the parameters that `defines` sets.
SourceInfo inspect(const std::string &source, const std::string &fileName,
                   const std::vector<std::pair<std::string, std::string>> &defines,
                   const DiagnosticHandler &handler, const ImportOptions &imports = {});

/// A file of a source.
struct SourceFile {
  std::string name, text;
};

/// The files that a source consists of: those that it imports, and itself as the last; none after
/// an error. What a cache of compilations is to ask for.
std::vector<SourceFile> readImports(const std::string &source, const std::string &fileName,
                                    const ImportOptions &imports, const DiagnosticHandler &handler);

} // namespace tessera

#endif // TESSERA_COMPILER_H
