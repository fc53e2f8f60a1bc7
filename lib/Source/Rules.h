//===- Rules.h - Which values free parameters take ------------------------===//
//
// `$rules "name.json"` at the top of a source names a file of rules. A row says for a source, by
// conditions on its parameters, on extents and on the card, what parameters without a default take,
// which fields the schedule of a kernel takes, and which source computes the same in another form:
//
//   {"source": "attention_bwd.tile", "when": ["CAUSAL", "D <= 128"], "take": {"BN": 128}}
//
// Of the rules that hold those of a file count before those of what it imports, and of these that
// with the most conditions. Those of files that a user names count before all others. Pure text: no
// MLIR here.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOURCE_RULES_H
#define TESSERA_LIB_SOURCE_RULES_H

#include "lib/Source/Imports.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/JSON.h"
#include <vector>

namespace tessera::source {

/// A row of a file of rules.
struct Rule {
  std::string file;
  unsigned line = 0;
  /// Whether a user named the file.
  bool isUsers = false;
  std::string source, kernel, card;
  /// The file that `source` names.
  const File *of = nullptr;
  /// Expressions of parameters, and of parameters and extents.
  std::vector<std::string> when, extents;
  /// Names of parameters and what they take, as text.
  std::vector<std::pair<std::string, std::string>> takes;
  /// Values such as those of parameters that it takes, of which a kernel with alternatives has
  /// each.
  std::vector<std::pair<std::string, std::vector<std::string>>> alternatives;
  /// What parameters take instead, in this order, where a kernel lacks registers or shared memory.
  std::vector<std::vector<std::pair<std::string, std::string>>> instead;
  /// Fields that the schedule of `kernel` takes.
  std::string schedule;
  /// The source that computes the same and is to be taken instead.
  std::string form;

  bool isFor(const File &file) const;
  Place getPlace() const { return {file, line, 1}; }
  /// "file.json:12"
  std::string describePlace() const { return file + ":" + std::to_string(line); }
  size_t countConditions() const { return when.size() + extents.size() + !card.empty(); }
  /// What parameter `name` takes; null where the rule is of others.
  const std::string *find(llvm::StringRef name) const;
};

/// Whether an expression of a rule is true; nothing after an error.
using HoldsFunction =
    llvm::function_ref<std::optional<bool>(const Rule &rule, llvm::StringRef expression)>;

/// The rules for the files of a source.
class RuleBook {
public:
  /// Reads the files of rules that the source and `options` name. Returns false after an error.
  bool read(const Files &files, const RuleOptions &options, PlaceErrorSink error);

  llvm::ArrayRef<Rule> getRules() const { return rules; }
  llvm::ArrayRef<std::pair<std::string, int64_t>> getExtents() const { return extents; }

  /// Of the rules that `isMeant` takes the one that counts, null where none holds. Two of which
  /// neither counts before the other are an error about `what`. Nothing after an error.
  std::optional<const Rule *> choose(llvm::function_ref<bool(const Rule &)> isMeant,
                                     const llvm::Twine &what, HoldsFunction holds,
                                     PlaceErrorSink error) const;

private:
  bool readFile(const RulesFile &file, PlaceErrorSink error);
  bool readRow(const llvm::json::Value &row, Rule rule, llvm::StringRef defaultCard,
               PlaceErrorSink error);
  std::optional<bool> doesHold(const Rule &rule, HoldsFunction holds) const;
  bool precedes(const Rule &rule, const Rule &other) const;

  const Files *files = nullptr;
  std::string card;
  std::vector<std::pair<std::string, int64_t>> extents;
  std::vector<Rule> rules;
};

} // namespace tessera::source

#endif // TESSERA_LIB_SOURCE_RULES_H
