//===- Parameters.h - `param` declarations of a .tile source --------------===//
//
// Declarations stand at the top of a source:
//
//   param D  : int  = 128 in [64, 96, 128, 192, 256]   "head dimension"
//   param BN : int  = $(D <= 64 ? 128 : 176) in 16..256 step 16
//   param T  : type = bf16 in [f16, bf16]
//   param CAUSAL : bool = false
//   param BM : int = 128 in 64..256 step 64 alternatives [128, 192]
//   param LSE : bool = true alike
//   param ACTIVATION : name = "none" in ["none", "relu"]
//   param CHUNK : int in 0..32
//
// A parameter without a default is free: rules choose its value, see Rules.h.
// A source declares a parameter of a file that it imports again to give it another default, and to
// allow other values. Names are upper-case letters, digits and underscores, so that
// `tensor<$BMx$Dx$T>` reads as it should. A default, an allowed value and a bound is a literal,
// `$NAME` or `$(expression)`; it may use any parameter of the source, whatever the order. Pure
// text: no MLIR here.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOURCE_PARAMETERS_H
#define TESSERA_LIB_SOURCE_PARAMETERS_H

#include "lib/Source/Imports.h"
#include "lib/Source/Rules.h"
#include "llvm/ADT/ArrayRef.h"
#include <utility>
#include <vector>

namespace tessera::source {

/// A value given for a parameter: -D first=second.
using Define = std::pair<std::string, std::string>;

/// Most parameters that a source may declare.
constexpr size_t maxParameters = 256;

/// A declaration as it stands in the text; values are kept as offsets and evaluated on demand.
struct Declaration {
  /// One value, or the values from `low` to `high` at `step` (1 when absent).
  struct Allowed {
    size_t low = 0;
    std::optional<size_t> high, step;
  };

  llvm::StringRef name;
  ValueKind kind = ValueKind::Integer;
  size_t nameOffset = 0;
  std::optional<size_t> defaultOffset; ///< none of a free parameter
  /// The copy of a file whose parameter it is, and no other's; and the value that the import gives.
  const File *copy = nullptr;
  std::optional<size_t> givenOffset;
  std::vector<Allowed> allowed;
  /// Values of which a kernel with alternatives has each.
  std::vector<size_t> alternatives;
  /// A schedule that was measured with the default serves the other values.
  bool alike = false;
  llvm::StringRef documentation;
};

/// A parameter with its value.
struct Parameter {
  std::string name;
  size_t offset = 0; ///< where it is declared
  Value value = Value::integer(0);
  /// Texts such as "128" and "16..256 step 16"; empty when any value of the kind will do.
  std::vector<std::string> allowed;
  std::string documentation;
  bool alike = false;
  /// Values such as "128"; none where kernels have no alternatives by this parameter.
  std::vector<std::string> alternatives;
  /// The rule that chose the value; null where it is given or a default.
  const Rule *rule = nullptr;
  bool isGiven = false;
  /// Whether rules choose its value where it is not given.
  bool isFree = false;

  /// "given", "default" or the place of the rule.
  std::string describeOrigin() const;
};

/// Fields that a rule chose for the schedule of a kernel.
struct ChosenSchedule {
  std::string kernel;
  const Rule *rule = nullptr;
};

/// The values that "128", "16..256" or "16..256 step 16" of Parameter::allowed stands for, of
/// integers at most `most`.
std::vector<std::string> expandAllowed(llvm::StringRef allowed, size_t most = 256);

/// True for upper-case letters, digits and underscores, not starting with a digit.
bool isParameterName(llvm::StringRef text);

/// Receives an error of a given value; `declaration` is the offset of the parameter's name, or
/// absent when there is no such parameter.
using DefineErrorSink = llvm::function_ref<void(const Define &define, const llvm::Twine &message,
                                                std::optional<size_t> declaration)>;

/// The declarations of a source and the values bound to them.
class ParameterTable {
public:
  /// Reads the declarations at the top of each of `files`, which must outlive the table. Returns
  /// false after an error.
  bool parse(const Files &files, ErrorSink error);

  /// Gives the parameters that `defines` names their values; of several for one name the last
  /// counts. Returns false after an error.
  bool define(llvm::ArrayRef<Define> defines, DefineErrorSink error);

  /// Evaluates every default that no definition replaced, lets `rules` choose the values of free
  /// parameters and the schedules of kernels, and checks every value against what is allowed.
  /// Returns false after an error. The rules must outlive the table.
  bool bind(const RuleBook &rules, ErrorSink error, DefineErrorSink defineError,
            PlaceErrorSink ruleError);

  /// Where declarations stand in the text, [first, second), in their order there.
  llvm::ArrayRef<std::pair<size_t, size_t>> getPlaces() const { return places; }
  /// The parameters with their values, in the order of declaration; valid after `bind`.
  llvm::ArrayRef<Parameter> getParameters() const { return parameters; }
  llvm::ArrayRef<ChosenSchedule> getSchedules() const { return schedules; }
  /// What parameters take instead, in this order, where a kernel lacks registers or shared memory.
  llvm::ArrayRef<std::vector<Define>> getInstead() const { return instead; }
  /// The comparisons of extents that have decided what rules choose, as JSON, and whether they
  /// hold. With others that compare so the choices are the same.
  llvm::ArrayRef<std::pair<std::string, bool>> getComparisons() const { return comparisons; }
  /// The rule that chooses another source in place of this one, null where none does.
  const Rule *getForm() const { return form; }

  /// The value of a bound parameter, or an error with the nearest name.
  std::optional<Value> lookup(llvm::StringRef name, size_t offset, ErrorSink error) const;

private:
  enum class State { Unbound, Evaluating, Bound, Failed };
  struct Entry {
    State state = State::Unbound;
    std::optional<Value> value;
    /// The definition that gave the value, or the rule that chose it; null for a default.
    const Define *define = nullptr;
    const Rule *rule = nullptr;
  };
  /// What `bind` is called with.
  struct Binding {
    const RuleBook &rules;
    ErrorSink error;
    DefineErrorSink defineError;
    PlaceErrorSink ruleError;
  };

  bool parseDeclaration(Lexer &lexer, ErrorSink error);
  bool declare(Declaration declaration, ErrorSink error);
  bool declareOwn(Declaration declaration, ErrorSink error);
  bool checkGiven(const File &copy, ErrorSink error) const;
  bool parseAllowed(Lexer &lexer, Declaration &declaration, ErrorSink error);
  bool parseAlternatives(Lexer &lexer, Declaration &declaration, ErrorSink error);
  bool parseAllowedItem(Lexer &lexer, Declaration &declaration, bool rangeOnly, ErrorSink error);
  bool skipValue(Lexer &lexer, size_t &offset, ErrorSink error);
  const File *findCopy(size_t offset) const;
  std::optional<size_t> find(llvm::StringRef name, const File *copy = nullptr) const;
  std::string explainUnknown(llvm::StringRef name, const File *copy = nullptr) const;

  std::optional<Value> resolve(llvm::StringRef name, const File *copy, size_t offset, bool needed,
                               ErrorSink error);
  std::optional<Value> evaluateAt(size_t offset);
  std::optional<Value> evaluateParameter(size_t index);
  std::optional<Value> evaluateDefault(const Declaration &declaration);
  std::optional<Value> evaluateTaken(const Declaration &declaration, const Rule &rule,
                                     llvm::StringRef taken);
  std::optional<Value> chooseValue(size_t index);
  std::optional<Value> evaluateIn(const Rule &rule, llvm::StringRef expression);
  std::optional<bool> isTrue(const Rule &rule, llvm::StringRef expression);
  void addComparison(llvm::StringRef term, bool holds);
  bool asksForUnknownExtent(const Rule &rule, llvm::StringRef expression) const;
  bool checkRules();
  bool checkTaken(const Rule &rule, llvm::ArrayRef<std::pair<std::string, std::string>> values);
  bool addInstead(const Rule &rule);
  bool chooseInstead();
  std::optional<const Rule *> chooseRule(llvm::function_ref<bool(const Rule &)> isMeant,
                                         const llvm::Twine &what);
  bool chooseForm();
  bool chooseSchedules();
  std::string describeGiven() const;
  bool bindAlternatives(size_t index);
  std::optional<Value> evaluateAlternative(const Declaration &declaration, size_t offset);
  std::optional<Value> evaluateAlternative(const Declaration &declaration, const Rule &rule,
                                           llvm::StringRef text);
  std::optional<bool> isAllowed(const Declaration &declaration, const Value &value,
                                std::vector<std::string> &texts);
  bool checkAllowed(size_t index);
  void refuseValue(size_t index, const llvm::Twine &rule);
  /// Whether `value` is one of `allowed`, whose text is appended to `texts`.
  std::optional<bool> matches(const Value &value, const Declaration::Allowed &allowed,
                              std::vector<std::string> &texts);

  const Files *files = nullptr;
  llvm::StringRef text;
  std::vector<Declaration> declarations;
  std::vector<std::pair<size_t, size_t>> places;
  std::vector<Entry> entries;
  std::vector<Parameter> parameters;
  std::vector<ChosenSchedule> schedules;
  std::vector<std::vector<Define>> instead;
  std::vector<std::pair<std::string, bool>> comparisons;
  const Rule *form = nullptr;
  const Binding *binding = nullptr; ///< while `bind` runs
  unsigned depth = 0;
};

} // namespace tessera::source

#endif // TESSERA_LIB_SOURCE_PARAMETERS_H
