//===- Database.h - Measured schedules ------------------------------------===//
//
// The database of schedules that were measured to be the fastest (docs/tuning.md), as data: what an
// entry says, its JSON form and how entries are found and replaced. Nothing here knows MLIR;
// whether a schedule can hold is for tile-choose-schedule to say.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_DATABASE_DATABASE_H
#define TESSERA_LIB_DATABASE_DATABASE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <map>
#include <string>
#include <vector>

namespace tessera::tuning {

/// Values by name: of parameters as text ("128", "bf16"), sorted.
using Values = std::map<std::string, std::string>;
/// Extents of a kernel's named dimensions.
using Extents = std::map<std::string, int64_t>;

/// "B = 4, SQ = 1024".
std::string print(const Values &values);
std::string print(const Extents &extents);

/// What was measured for an entry.
struct Measurement {
  std::vector<Extents> shapes;
  /// For each shape the median time of the entry's schedule and of the compiler's own choice, in
  /// milliseconds.
  std::vector<double> ms, modelMs;
  /// The largest spread among the first (Summary::spread).
  double spread = 0;
  /// The schedules that were timed.
  int64_t contestants = 0;
  /// Parameters that had another value when the entry was measured: types of the same width.
  Values measuredWith;
  /// The sequence that was measured as a whole, with this kernel in it; empty for a kernel alone.
  std::string sequence;
  /// Where the numbers come from, each empty or 0 where nobody knows: the commit or version of the
  /// compiler, the version of ptxas, the day (as 2026-11-22), the file of bench/results with all
  /// times, and the SM clock in MHz under load, the
  /// mean of the medians of the shapes.
  std::string compiler, ptxas, date, record;
  int64_t clock = 0;

  /// "compiler 4b8b0ea, ptxas 12.9, 2026-11-22, 1755 MHz": what is known.
  std::string describeOrigin() const;
};

/// The fastest schedule of a program, for a class of shapes and a GPU.
struct Entry {
  /// The fingerprint of the program with the source's own values of what tuning chose: what a
  /// compilation has read when it asks.
  std::string program;
  /// The fingerprint of the program that was measured, with the values that tuning chose; empty
  /// where that is the same.
  std::string tunedProgram;
  /// The kernel's name when it was measured.
  std::string kernel;
  std::string gpu, shapeClass;
  /// Every parameter that the source had, with its value, those that tuning chose included.
  Values parameters;
  /// The names of those that tuning chose.
  std::vector<std::string> tuned;
  /// Those of which the source has alternatives and tuning was told one: the entry is for that
  /// alone.
  std::vector<std::string> given;
  /// Fields that all contestants had in common because tuning was told so, as "speculate = false".
  std::string fixed;
  /// Fields of a schedule, as "consumers = 2, stages = 2".
  std::string schedule;
  Measurement measured;

  bool isTuned(llvm::StringRef parameter) const;
  const std::string &getMeasuredProgram() const {
    return tunedProgram.empty() ? program : tunedProgram;
  }
  /// Whether one of two entries has to leave: both are for one program, or for one name with the
  /// same parameters, of which the older program has been edited since.
  bool hasKeyOf(const Entry &other) const;
  /// "'attention_fwd', many-long, NVIDIA H200, CAUSAL = false, D = 128": the key, for messages.
  std::string describe() const;
};

/// What the tiles of a program take, fitted to a run in which it took turns with the others among
/// which a launch chooses. Entries are measured in runs of their own, whose clocks differ by more
/// than alternatives do.
struct TileTimes {
  /// The fingerprint of the program that was timed.
  std::string program;
  /// Its kernel and parameters, for people and tools.
  std::string kernel;
  Values parameters;
  std::string gpu;
  /// Microseconds of an iteration, and of a tile beside its iterations.
  double iteration = 0, ends = 0;
  /// How many shapes were timed, and the fit that the times are of.
  int64_t shapes = 0;
  std::string fit;
};

/// A GPU whose measurements the database holds.
struct Gpu {
  /// A grid with more tiles than this is of a class "many".
  int64_t multiprocessors = 0;
};

class Database {
public:
  /// The versions of the JSON form. The first knows kernels by their names alone.
  static constexpr int64_t newestVersion = 2, oldestVersion = 1;

  /// Reads the JSON form; the error names the member that is wrong. Schedules are not looked at.
  /// A version before `oldest` is an error that says how to bring it up to date.
  static llvm::Expected<Database> parse(llvm::StringRef text, int64_t oldest = newestVersion);
  /// Reads a file.
  static llvm::Expected<Database> load(llvm::StringRef path, int64_t oldest = newestVersion);
  /// The database that ships with the compiler, which was built into it.
  static const Database &getShipped();
  /// The same GPUs without what was measured, which takes no time to read.
  static const Database &getShippedGpus();

  /// The JSON form, entries in the order of their keys, so that a change of one is a small
  /// difference of the text.
  std::string print() const;

  /// Adds `entry`, measured on `gpu`, in place of that with the same key.
  void insert(Entry entry, Gpu gpu);

  llvm::ArrayRef<Entry> getEntries() const { return entries; }
  llvm::MutableArrayRef<Entry> getMutableEntries() { return entries; }
  llvm::MutableArrayRef<TileTimes> getMutableTimes() { return times; }
  /// The times of the tiles of a program; null where there are none.
  const TileTimes *findTimes(llvm::StringRef program, llvm::StringRef gpu) const;
  const std::map<std::string, Gpu> &getGpus() const { return gpus; }
  /// The GPU that a compilation is for when it names none: that of the first measurement. Empty in
  /// a database without entries.
  const std::string &getDefaultGpu() const { return defaultGpu; }

private:
  friend bool fromJSON(const llvm::json::Value &value, Database &database, llvm::json::Path path);

  std::string defaultGpu;
  std::map<std::string, Gpu> gpus;
  std::vector<Entry> entries;
  std::vector<TileTimes> times;
  /// The files of bench/results that each fit has its times from.
  std::map<std::string, std::vector<std::string>> fits;
};

} // namespace tessera::tuning

#endif // TESSERA_LIB_DATABASE_DATABASE_H
