//===- Session.h - Kernels to tune, compiled and measured -----------------===//
//
// What `tessera tune` works on, step by step: targets are enumerated, their contestants compiled
// into bundles, then timed, on this machine or on another one. The JSON form of a session is what
// travels between the two: without timings it is the manifest beside the bundles, with them the
// results, which can be merged into a database without the bundles.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TUNING_SESSION_H
#define TESSERA_LIB_TUNING_SESSION_H

#include "lib/Database/ShapeClass.h"
#include "lib/Tuning/Candidates.h"
#include "lib/Tuning/Statistics.h"
#include <optional>

namespace tessera::tuning {

/// A kernel to tune, as the command line or a list (docs/tuning.md) names it.
struct TargetSpec {
  std::string file;
  SearchSpace space;
  std::vector<Extents> shapes;
  /// Scalar arguments and storage orders of views, as `tessera run` takes them.
  Values scalars, orders;
  /// Other values of parameters for which the measurements count too: types of the same width.
  std::vector<Values> also;
};

/// Reads a list of targets. Files are relative to the directory of the list.
llvm::Expected<std::vector<TargetSpec>> readTargetList(llvm::StringRef path);

/// What ptxas made of a kernel.
struct Resources {
  int64_t registers = 0, spillBytes = 0, sharedMemory = 0, threads = 0;
};

/// How one contestant ran one shape.
struct Timing {
  Summary ms;
  /// Medians while it ran: the SM clock in MHz, the power in W; 0 when NVML is not there.
  double mhz = 0, watts = 0;
  /// Tiles for each block that the GPU runs at a time.
  double waves = 0;
  /// Of the results against those of the model's choice, in the Frobenius norm.
  double difference = 0;
  /// Why there is no time.
  std::string failure;
};

/// Kernels that are launched in order as one call, and measured so.
struct TargetSequence {
  std::string name;
  std::vector<SequenceForm> forms;

  /// The first form, of those that compile, in which each of these kernels is this program; null
  /// where there is none.
  const SequenceForm *findForm(const Values &programs) const;
};

/// A candidate with what was made of it.
struct Contestant {
  Candidate candidate;
  /// All parameters with each of TargetSpec::also, and the fingerprints of the programs.
  std::vector<Values> alsoParameters;
  std::vector<std::string> alsoPrograms;
  /// File of the bundle, in the directory of the manifest; empty when it does not compile.
  std::string bundle;
  /// Why it does not.
  std::string error;
  Resources resources;
  /// One for each shape, once it was measured.
  std::vector<std::optional<Timing>> timings;
};

/// A shape to measure.
struct TargetShape {
  Extents extents;
  ShapeMeasure measure;
};

/// A kernel that is tuned, by itself or as a part of a sequence.
struct Target {
  std::string file, kernel;
  /// The sequence whose time counts: its number in Session::sequences. Extents, scalars and orders
  /// are of its arguments.
  std::optional<size_t> sequence;
  /// For each shape that was measured how long the model's choice of the kernel takes by itself, in
  /// milliseconds. Of kernels of a sequence only.
  std::vector<double> aloneMs;
  /// The fingerprint of the program with the source's defaults, and with each of `also`.
  std::string program;
  std::vector<std::string> alsoPrograms;
  Values scalars, orders;
  /// Fields of the schedule that all contestants have in common, as Entry::fixed.
  std::string fixed;
  /// The parameters of which the source has alternatives and the target names one, as Entry::given.
  std::vector<std::string> given;
  /// Values of TargetSpec::also, in the order of Contestant::alsoParameters.
  std::vector<Values> also;
  std::vector<TargetShape> shapes;
  std::vector<Contestant> contestants;
  std::vector<Rejection> rejections;
  /// Whether the budget ended the search.
  bool isCut = false;
};

/// The GPU that was measured.
struct Device {
  std::string name;
  int64_t multiprocessors = 0;
};

struct Session {
  /// What compiled the contestants: a commit or version, and the version of ptxas.
  std::string compiler, ptxas;
  /// Set by measuring: the GPU, and the day on which it ended, as 2026-11-22.
  std::optional<Device> device;
  std::string date;
  std::vector<Target> targets;
  std::vector<TargetSequence> sequences;

  std::string print() const;
  static llvm::Expected<Session> load(llvm::StringRef path);
  /// Whether `other` has the same contestants and shapes, measured or not.
  bool hasSameContestants(const Session &other) const;
};

/// How contestants are compiled.
struct BuildOptions {
  std::string directory;
  std::string ptxas;
  unsigned threads = 0; ///< 0: one for each core
  /// Called after each compilation with how many are done and how many there are.
  std::function<void(size_t done, size_t all)> progress;
};

/// Enumerates the candidates of `spec` and the classes of its shapes, without compiling, and adds
/// its target to `session`, or one for each kernel of its sequence, and to `sources` the text of
/// each. Errors go to `handler`.
CompileStatus prepareTargets(TargetSpec spec, const DiagnosticHandler &handler, Session &session,
                             std::vector<std::string> &sources);

/// Compiles the contestants of `session`, whose targets' texts are `sources`, into bundles of
/// `options.directory`, side by side. What does not compile is noted and is no error; files that
/// cannot be written are.
llvm::Error buildContestants(Session &session, llvm::ArrayRef<std::string> sources,
                             const BuildOptions &options);

} // namespace tessera::tuning

#endif // TESSERA_LIB_TUNING_SESSION_H
