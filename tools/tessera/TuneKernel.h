//===- TuneKernel.h - What `tessera tune` does ----------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_TUNEKERNEL_H
#define TESSERA_TOOLS_TESSERA_TUNEKERNEL_H

#include "lib/Tuning/Session.h"

namespace tessera {

struct TuneOptions {
  /// What to tune: a file with what belongs to it, or a list of such; both empty with `measure` and
  /// `merge`.
  tuning::TargetSpec target;
  std::string list;
  /// The steps that are asked for; none: all, one after the other.
  std::string compileOnly;        ///< directory that receives the bundles and the manifest
  std::string measure;            ///< such a directory
  std::vector<std::string> merge; ///< results
  std::vector<std::string>
      adopt; ///< sources whose programs the database's entries were measured with
  /// Where measurements go; empty for nowhere but the table.
  std::string out;
  /// The database that receives the winners; empty: schedules.json beside the source or the list.
  std::string database;
  /// What entries say of where they come from: the compiler's commit (empty: its version), and the
  /// file of bench/results with all times.
  std::string compiler, record;
  std::string ptxas;
  unsigned jobs = 0; ///< compilations at a time; 0: one for each core
  int device = 0;
  unsigned rounds = 6;
  double milliseconds = 25;
  double limitSeconds = 20;
};

/// Tunes as the options say. Writes tables to stdout and errors to stderr; returns the exit code:
/// ExitToolchain without a GPU or an assembler. When a contestant spoilt the GPU, the process ends
/// at once with ExitFailed.
int tuneKernel(const TuneOptions &options);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_TUNEKERNEL_H
