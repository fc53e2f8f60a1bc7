//===- Candidates.h - The schedules worth measuring -----------------------===//

#ifndef TESSERA_LIB_TUNING_CANDIDATES_H
#define TESSERA_LIB_TUNING_CANDIDATES_H

#include "lib/Database/Database.h"
#include "tessera/Compiler.h"

namespace tessera::tuning {

using Defines = std::vector<std::pair<std::string, std::string>>;

/// A parameter of the source whose values are tried.
struct VariedParameter {
  std::string name;
  /// None: every value that the source allows.
  std::vector<std::string> values;
};

/// Where to search for the best schedule of a kernel.
struct SearchSpace {
  /// Empty for the only kernel of the source.
  std::string kernel;
  /// The sequence that the kernel is a part of; empty for a kernel by itself.
  std::string sequence;
  Defines defines;
  std::vector<VariedParameter> varied;
  /// Schedule fields that are fixed, as CompileOptions::schedule.
  std::string schedule;
  /// The fields that are varied; nothing: all that are not fixed.
  std::optional<std::vector<std::string>> fields;
  /// The most candidates.
  unsigned budget = 40;
};

/// Parameters and a schedule that fit the machine.
struct Candidate {
  /// The varied parameters.
  Values tuned;
  /// Every parameter.
  Values parameters;
  /// All fields, as "consumers = 2, stages = 2".
  std::string schedule;
  /// Registers and shared memory by the model of tile-choose-schedule.
  std::string use;
  /// The fingerprint of the program.
  std::string program;
};

/// What was not a candidate, and why, in numbers.
struct Rejection {
  std::string candidate, reason;
};

/// A sequence with one choice of the varied parameters.
struct SequenceForm {
  /// The varied parameters, and every one.
  Values tuned, parameters;
  /// The fingerprints of its kernels, by their names.
  Values programs;
  /// File of the bundle with the model's choice for each kernel, in the directory of the manifest;
  /// empty when it does not compile, and why.
  std::string bundle, error;
};

struct Enumeration {
  std::string kernel;
  /// The fingerprint of the program with the source's defaults.
  std::string program;
  /// The fields that are fixed, as ScheduleAttr prints them.
  std::string fixed;
  /// The first is the model's choice with the source's defaults.
  std::vector<Candidate> candidates;
  /// Tiles that nothing fits, and single fields that cannot change.
  std::vector<Rejection> rejections;
  /// Of a kernel of a sequence, the forms that its candidates may be run in.
  std::vector<SequenceForm> forms;
  /// Whether the budget ended the search.
  bool isCut = false;
};

/// Enumerates the candidates of a source, those that make the fewest changes to the model's choice
/// first: other tiles, which are one change whatever parameters they take; one field; one field of
/// other tiles; two fields. Of pairs with a change that does not fit by itself no more are tried
/// than the budget has room for. A field that has many values, such as the registers
/// of a role, changes to its neighbours only. Each candidate went through the search of
/// tile-choose-schedule, which fills in the fields that follow from the changed ones; candidates
/// that come to the same are one. A kernel of a sequence has one candidate for its program and a
/// schedule, whatever parameters of the other kernels. Errors go to `handler`.
CompileStatus enumerateCandidates(const std::string &source, const std::string &fileName,
                                  const SearchSpace &space, const DiagnosticHandler &handler,
                                  Enumeration &result);

} // namespace tessera::tuning

#endif // TESSERA_LIB_TUNING_CANDIDATES_H
