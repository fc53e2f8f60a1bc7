//===- Database.h - Measured schedules ------------------------------------===//
//
// The database of schedules that were measured to be the fastest (docs/tuning.md), as data: what an
// entry says, its JSON form and how entries are found and replaced. Nothing here knows MLIR;
// whether a schedule can hold is for tile-choose-schedule to say.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_TUNING_DATABASE_H
#define TESSERA_LIB_TUNING_DATABASE_H

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
};

/// The fastest schedule of a kernel, for some values of its parameters, a class of shapes and a
/// GPU.
struct Entry {
  std::string kernel, gpu, shapeClass;
  /// Every parameter of the source with its value, those that tuning chose included.
  Values parameters;
  /// The names of those that tuning chose.
  std::vector<std::string> tuned;
  /// Fields that all contestants had in common because tuning was told so, as "speculate = false".
  std::string fixed;
  /// Fields of a schedule, as "consumers = 2, stages = 2".
  std::string schedule;
  Measurement measured;

  bool isTuned(llvm::StringRef parameter) const;
  /// Everything but the tuned parameters, which two entries must not have in common.
  bool hasKeyOf(const Entry &other) const;
  /// "'attention_fwd', many-long, NVIDIA H200, CAUSAL = false, D = 128": the key, for messages.
  std::string describe() const;
};

/// A GPU whose measurements the database holds.
struct Gpu {
  /// A grid with more tiles than this is of a class "many".
  int64_t multiprocessors = 0;
};

class Database {
public:
  /// Reads the JSON form; the error names the member that is wrong. Schedules are not looked at.
  static llvm::Expected<Database> parse(llvm::StringRef text);
  /// Reads a file.
  static llvm::Expected<Database> load(llvm::StringRef path);
  /// The database that ships with the compiler, which was built into it.
  static const Database &getShipped();

  /// The JSON form, entries in the order of their keys, so that a change of one is a small
  /// difference of the text.
  std::string print() const;

  /// Adds `entry`, measured on `gpu`, in place of that with the same key.
  void insert(Entry entry, Gpu gpu);

  llvm::ArrayRef<Entry> getEntries() const { return entries; }
  const std::map<std::string, Gpu> &getGpus() const { return gpus; }
  /// The GPU that a compilation is for when it names none: that of the first measurement. Empty in
  /// a database without entries.
  const std::string &getDefaultGpu() const { return defaultGpu; }

private:
  friend bool fromJSON(const llvm::json::Value &value, Database &database, llvm::json::Path path);

  std::string defaultGpu;
  std::map<std::string, Gpu> gpus;
  std::vector<Entry> entries;
};

} // namespace tessera::tuning

#endif // TESSERA_LIB_TUNING_DATABASE_H
