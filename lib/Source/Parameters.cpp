//===- Parameters.cpp - `param` declarations of a .tile source ------------===//

#include "lib/Source/Parameters.h"
#include "lib/Support/NearestNames.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace llvm;
using namespace tessera::source;

std::vector<std::string> tessera::source::expandAllowed(StringRef allowed, size_t most) {
  auto [low, rest] = allowed.split("..");
  if (rest.empty())
    return {allowed.str()};
  auto [high, step] = rest.split(" step ");
  int64_t first = 0, last = -1, stride = 1;
  if (low.getAsInteger(10, first) || high.getAsInteger(10, last) ||
      (!step.empty() && step.getAsInteger(10, stride)))
    return {};
  std::vector<std::string> values;
  for (int64_t value = first; value <= last && values.size() < most; value += stride)
    values.push_back(std::to_string(value));
  return values;
}

bool tessera::source::isParameterName(StringRef text) {
  return !text.empty() && !isDigit(text.front()) &&
         all_of(text, [](char c) { return (c >= 'A' && c <= 'Z') || isDigit(c) || c == '_'; });
}

//===----------------------------------------------------------------------===//
// Reading declarations
//===----------------------------------------------------------------------===//

bool ParameterTable::parse(const Files &source, ErrorSink error) {
  files = &source;
  text = source.getText();
  for (const File &file : source.getFiles()) {
    Lexer lexer(text, file.body, file.end);
    while (lexer.peek().is("param")) {
      if (declarations.size() == maxParameters) {
        error(lexer.offset(), "a source declares at most " + Twine(maxParameters) + " parameters");
        return false;
      }
      if (!parseDeclaration(lexer, error))
        return false;
    }
    if (!checkGiven(file, error))
      return false;
    if (lexer.peek().text == "/" || text.substr(lexer.offset()).starts_with("# ")) {
      error(lexer.offset(), "a comment begins with //");
      return false;
    }
  }
  entries.resize(declarations.size());
  return true;
}

/// Takes the next token, which must be spelled so.
static bool expect(Lexer &lexer, StringRef spelling, const Twine &where, ErrorSink error) {
  if (lexer.takeIf(spelling))
    return true;
  error(lexer.offset(),
        "expected '" + spelling + "' " + where +
            "; a declaration is `param NAME : int|bool|type|name = value [in [values] | "
            "in low..high [step n]] [alternatives [values]] [alike] [\"text\"]`");
  return false;
}

bool ParameterTable::parseDeclaration(Lexer &lexer, ErrorSink error) {
  Declaration declaration;
  size_t begin = lexer.offset();
  lexer.take();
  Token name = lexer.take();
  declaration.name = name.text;
  declaration.nameOffset = lexer.offsetOf(name);
  if (name.kind != Token::Identifier || !isParameterName(name.text)) {
    error(declaration.nameOffset, "the name of a parameter consists of upper-case letters, digits "
                                  "and underscores, got '" +
                                      name.text + "'");
    return false;
  }
  if (!expect(lexer, ":", "after the name of a parameter", error))
    return false;
  Token kind = lexer.take();
  std::optional<ValueKind> valueKind = symbolizeValueKind(kind.text);
  if (!valueKind) {
    error(lexer.offsetOf(kind),
          "a parameter is of kind int, bool, type or name, got '" + kind.text +
              "'; other numbers are scalar arguments of a kernel (%eps: f32) or constants");
    return false;
  }
  declaration.kind = *valueKind;
  bool isFree = lexer.peek().is("in");
  if (!isFree && (!expect(lexer, "=", "and a default after the kind of a parameter", error) ||
                  !skipValue(lexer, declaration.defaultOffset.emplace(), error)))
    return false;
  if (lexer.takeIf("in") && !parseAllowed(lexer, declaration, error))
    return false;
  if (lexer.takeIf("alternatives") && !parseAlternatives(lexer, declaration, error))
    return false;
  declaration.alike = lexer.takeIf("alike");
  if (lexer.peek().kind == Token::String)
    declaration.documentation = lexer.take().text.drop_front().drop_back();
  places.emplace_back(begin, lexer.end());
  bool isSameLine = !text.slice(lexer.end(), lexer.offset()).contains('\n');
  if (isSameLine && lexer.peek().kind == Token::Identifier && !lexer.peek().is("param")) {
    error(lexer.offset(), "expected the end of the declaration, got '" + lexer.peek().text +
                              "'; its description stands in quotes");
    return false;
  }
  return declare(std::move(declaration), error);
}

/// Adds a declaration, or puts what it says in place of what an imported file says.
bool ParameterTable::declare(Declaration declaration, ErrorSink error) {
  declaration.copy = findCopy(declaration.nameOffset);
  if (declaration.copy)
    return declareOwn(std::move(declaration), error);
  std::optional<size_t> index = find(declaration.name);
  if (!index) {
    declarations.push_back(std::move(declaration));
    return true;
  }
  Declaration &imported = declarations[*index];
  const File &file = files->findByOffset(declaration.nameOffset),
             &other = files->findByOffset(imported.nameOffset);
  std::string what = ("parameter '" + declaration.name + "' is ").str();
  if (&file == &other) {
    error(declaration.nameOffset, what + "declared twice");
    return false;
  }
  if (!files->doesImport(file, other)) {
    error(declaration.nameOffset, what + "declared in '" + other.name +
                                      "' too, and neither file imports the other; declare it in a "
                                      "file that both import");
    return false;
  }
  if (declaration.kind != imported.kind) {
    error(declaration.nameOffset, what + "of kind " + stringifyValueKind(imported.kind) + " in '" +
                                      other.name +
                                      "', which is imported; only its default and its "
                                      "allowed values may be declared again");
    return false;
  }
  if (declaration.allowed.empty())
    declaration.allowed = std::move(imported.allowed);
  if (declaration.alternatives.empty())
    declaration.alternatives = std::move(imported.alternatives);
  declaration.alike |= imported.alike;
  if (declaration.documentation.empty())
    declaration.documentation = imported.documentation;
  imported = std::move(declaration);
  return true;
}

/// "'NAME' of 'file.tile:3'", where it is declared.
static std::string describePlace(const Files &files, StringRef name, size_t offset) {
  Place place = files.locate(offset);
  return ("'" + name + "' of '" + place.file + ":" + Twine(place.line) + "'").str();
}

/// Adds a declaration of a copy of a file, with what the import gives.
bool ParameterTable::declareOwn(Declaration declaration, ErrorSink error) {
  const File &copy = *declaration.copy;
  if (std::optional<size_t> other = find(declaration.name, &copy)) {
    const File &file = files->findByOffset(declarations[*other].nameOffset);
    if (&file == &copy || files->doesImport(copy, file)) {
      error(declaration.nameOffset,
            "parameter '" + declaration.name + "' is declared " +
                (&file == &copy
                     ? "twice"
                     : "in '" + file.name +
                           "' too, which this copy imports; parameters of a copy are its "
                           "own, and that one is shared: call this one otherwise"));
      return false;
    }
  }
  for (const GivenValue &value : copy.given)
    if (value.name == declaration.name)
      declaration.givenOffset = value.valueOffset;
  bool hasDefault = declaration.defaultOffset.has_value();
  if (!declaration.givenOffset && (!hasDefault || !declaration.alternatives.empty())) {
    error(copy.importOffset, "parameter " +
                                 describePlace(*files, declaration.name, declaration.nameOffset) +
                                 (hasDefault ? " has alternatives, and a copy has one value"
                                             : " has no default, and rules choose none of a copy") +
                                 "; give it: `with (" + declaration.name + " = value)`");
    return false;
  }
  declarations.push_back(std::move(declaration));
  return true;
}

/// Refuses what the import of a copy gives and the file does not declare, or gives twice.
bool ParameterTable::checkGiven(const File &copy, ErrorSink error) const {
  SmallVector<StringRef> own, seen;
  for (const Declaration &declaration : declarations)
    if (declaration.copy == &copy)
      own.push_back(declaration.name);
  for (const GivenValue &value : copy.given) {
    if (!is_contained(own, value.name)) {
      error(value.nameOffset, "'" + copy.name + "' declares no parameter '" + value.name + "'" +
                                  suggestNames(value.name, own) + "; it declares " +
                                  (own.empty() ? "none" : join(own, ", ")));
      return false;
    }
    if (is_contained(seen, value.name)) {
      error(value.nameOffset, "parameter '" + value.name + "' is given twice");
      return false;
    }
    seen.push_back(value.name);
  }
  return true;
}

bool ParameterTable::parseAllowed(Lexer &lexer, Declaration &declaration, ErrorSink error) {
  if (!lexer.takeIf("["))
    return parseAllowedItem(lexer, declaration, /*rangeOnly=*/true, error);
  do {
    if (!parseAllowedItem(lexer, declaration, /*rangeOnly=*/false, error))
      return false;
  } while (lexer.takeIf(","));
  return expect(lexer, "]", "after the allowed values", error);
}

bool ParameterTable::parseAlternatives(Lexer &lexer, Declaration &declaration, ErrorSink error) {
  if (!expect(lexer, "[", "after 'alternatives'", error))
    return false;
  do {
    if (!skipValue(lexer, declaration.alternatives.emplace_back(), error))
      return false;
  } while (lexer.takeIf(","));
  return expect(lexer, "]", "after the alternatives", error);
}

bool ParameterTable::parseAllowedItem(Lexer &lexer, Declaration &declaration, bool rangeOnly,
                                      ErrorSink error) {
  Declaration::Allowed allowed;
  if (!skipValue(lexer, allowed.low, error))
    return false;
  if (rangeOnly && !lexer.peek().is(".."))
    return expect(lexer, "..", "after the low end of a range (a list of values is `[a, b]`)",
                  error);
  size_t range = lexer.offset();
  if (lexer.takeIf("..")) {
    if (declaration.kind != ValueKind::Integer) {
      error(range, "only an int parameter has a range, '" + declaration.name + "' is of kind " +
                       stringifyValueKind(declaration.kind));
      return false;
    }
    size_t offset;
    if (!skipValue(lexer, offset, error))
      return false;
    allowed.high = offset;
    if (lexer.takeIf("step")) {
      if (!skipValue(lexer, offset, error))
        return false;
      allowed.step = offset;
    }
  }
  declaration.allowed.push_back(allowed);
  return true;
}

bool ParameterTable::skipValue(Lexer &lexer, size_t &offset, ErrorSink error) {
  offset = lexer.offset();
  auto any = [](StringRef, size_t, bool) { return Value::integer(0); };
  return Evaluator(lexer, any, error, depth).declarationValue(/*live=*/false).has_value();
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// The copy of a file that an offset is in; null in another file.
const File *ParameterTable::findCopy(size_t offset) const {
  const File &file = files->findByOffset(offset);
  return file.isCopy() ? &file : nullptr;
}

/// What a name stands for in a copy: its own parameter, or else that of the source.
std::optional<size_t> ParameterTable::find(StringRef name, const File *copy) const {
  for (const File *scope : {copy, static_cast<const File *>(nullptr)})
    for (const auto &[index, declaration] : enumerate(declarations))
      if (declaration.name == name && declaration.copy == scope)
        return index;
  return std::nullopt;
}

std::string ParameterTable::explainUnknown(StringRef name, const File *copy) const {
  std::string message = ("unknown parameter '" + name + "'").str();
  std::vector<StringRef> names;
  for (const Declaration &declaration : declarations)
    if (!declaration.copy || declaration.copy == copy)
      names.push_back(declaration.name);
  if (names.empty())
    return message + "; the source declares none";
  return message + suggestNames(name, names) + "; known are " + join(names, ", ");
}

std::optional<Value> ParameterTable::lookup(StringRef name, size_t offset, ErrorSink error) const {
  const File *copy = findCopy(offset);
  if (std::optional<size_t> index = find(name, copy))
    return entries[*index].value;
  error(offset, explainUnknown(name, copy));
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// What a given value may look like.
static StringRef describeLiteral(ValueKind kind) {
  switch (kind) {
  case ValueKind::Integer:
    return "an integer";
  case ValueKind::Boolean:
    return "true or false";
  case ValueKind::Type:
    return "a type such as bf16";
  case ValueKind::Name:
    return "a name of letters, digits and underscores";
  }
  return {};
}

bool ParameterTable::define(ArrayRef<Define> defines, DefineErrorSink error) {
  for (const Define &define : defines) {
    std::optional<size_t> index = find(define.first);
    if (!index) {
      error(define, explainUnknown(define.first), std::nullopt);
      return false;
    }
    const Declaration &declaration = declarations[*index];
    std::optional<Value> value = parseLiteral(declaration.kind, define.second);
    if (!value) {
      error(define,
            "parameter '" + declaration.name + "' takes " + describeLiteral(declaration.kind) +
                ", got '" + define.second + "'",
            declaration.nameOffset);
      return false;
    }
    entries[*index] = {State::Bound, value, &define};
  }
  return true;
}

bool ParameterTable::bind(const RuleBook &rules, ErrorSink error, DefineErrorSink defineError,
                          PlaceErrorSink ruleError) {
  Binding given{rules, error, defineError, ruleError};
  SaveAndRestore<const Binding *> bound(binding, &given);
  if (!checkRules())
    return false;
  for (size_t i = 0; i < declarations.size(); ++i)
    if (!evaluateParameter(i))
      return false;
  for (size_t i = 0; i < declarations.size(); ++i)
    if (!checkAllowed(i) || !bindAlternatives(i))
      return false;
  // What the import of a copy gives is no parameter of the source.
  std::vector<Parameter> all = std::move(parameters);
  parameters.clear();
  for (auto [declaration, parameter] : zip_equal(declarations, all))
    if (!declaration.copy)
      parameters.push_back(std::move(parameter));
  return chooseSchedules() && chooseInstead() && chooseForm();
}

std::optional<Value> ParameterTable::resolve(StringRef name, const File *copy, size_t offset,
                                             bool needed, ErrorSink error) {
  std::optional<size_t> index = find(name, copy);
  if (!index) {
    error(offset, explainUnknown(name, copy));
    return std::nullopt;
  }
  if (!needed)
    return Value::integer(0);
  if (entries[*index].state == State::Evaluating) {
    error(offset, "the value of parameter '" + name + "' depends on itself");
    return std::nullopt;
  }
  return evaluateParameter(*index);
}

std::optional<Value> ParameterTable::evaluateAt(size_t offset) {
  Lexer lexer(text, offset, text.size());
  auto resolveName = [&](StringRef name, size_t at, bool needed) {
    return resolve(name, findCopy(at), at, needed, binding->error);
  };
  return Evaluator(lexer, resolveName, binding->error, depth).declarationValue();
}

std::optional<Value> ParameterTable::evaluateDefault(const Declaration &declaration) {
  std::optional<size_t> given = declaration.givenOffset;
  std::optional<Value> value = evaluateAt(given ? *given : *declaration.defaultOffset);
  if (!value || value->getKind() == declaration.kind)
    return value;
  std::string own = ("'" + declaration.name + "'").str();
  binding->error(
      given.value_or(declaration.nameOffset),
      "parameter " +
          (given ? describePlace(*files, declaration.name, declaration.nameOffset) : own) +
          " is of kind " + stringifyValueKind(declaration.kind) + ", " +
          (given ? "this is " : "its default is ") + value->str() + " (" +
          stringifyValueKind(value->getKind()) + ")");
  return std::nullopt;
}

std::optional<Value> ParameterTable::evaluateParameter(size_t index) {
  Entry &entry = entries[index];
  if (entry.state == State::Bound)
    return entry.value;
  const Declaration &declaration = declarations[index];
  if (depth >= maxExpressionDepth) {
    binding->error(declaration.nameOffset, "parameters use each other more than " +
                                               Twine(maxExpressionDepth) + " levels deep");
    return std::nullopt;
  }
  ++depth;
  entry.state = State::Evaluating;
  std::optional<Value> value = declaration.givenOffset || declaration.defaultOffset
                                   ? evaluateDefault(declaration)
                                   : chooseValue(index);
  --depth;
  entry.state = value ? State::Bound : State::Failed;
  entry.value = value;
  return value;
}

std::optional<bool> ParameterTable::matches(const Value &value, const Declaration::Allowed &allowed,
                                            std::vector<std::string> &texts) {
  ErrorSink error = binding->error;
  std::optional<Value> low = evaluateAt(allowed.low);
  if (!low)
    return std::nullopt;
  if (low->getKind() != value.getKind()) {
    error(allowed.low, "expected a value of kind " + stringifyValueKind(value.getKind()) +
                           ", got " + low->str());
    return std::nullopt;
  }
  texts.push_back(low->str());
  if (!allowed.high)
    return *low == value;
  std::optional<Value> high = evaluateAt(*allowed.high), step = Value::integer(1);
  if (allowed.step)
    step = evaluateAt(*allowed.step);
  if (!high || !step)
    return std::nullopt;
  if (high->getKind() != ValueKind::Integer || step->getKind() != ValueKind::Integer ||
      step->getInteger() < 1 || high->getInteger() < low->getInteger()) {
    error(allowed.low, "a range goes from an integer up to another, by a step of at least 1; got " +
                           low->str() + ".." + high->str() + " step " + step->str());
    return std::nullopt;
  }
  texts.back() += ".." + high->str();
  if (allowed.step)
    texts.back() += " step " + step->str();
  // Unsigned: the distance of two 64-bit integers may not fit in a signed one.
  uint64_t distance = static_cast<uint64_t>(value.getInteger()) - low->getInteger();
  return value.getInteger() >= low->getInteger() && value.getInteger() <= high->getInteger() &&
         distance % step->getInteger() == 0;
}

/// Reports that the value of a parameter is not one of those that are allowed, as `rule` has them.
void ParameterTable::refuseValue(size_t index, const Twine &rule) {
  const Declaration &declaration = declarations[index];
  const Entry &entry = entries[index];
  std::string what =
      ("parameter '" + declaration.name + "' cannot be " + entry.value->str() + "; " + rule).str();
  if (entry.define)
    binding->defineError(*entry.define, what, declaration.nameOffset);
  else if (entry.rule)
    binding->ruleError(entry.rule->getPlace(), what);
  else if (declaration.givenOffset)
    binding->error(*declaration.givenOffset,
                   "parameter " + describePlace(*files, declaration.name, declaration.nameOffset) +
                       " cannot be " + entry.value->str() + "; " + rule);
  else
    binding->error(declaration.nameOffset, "the default of parameter '" + declaration.name +
                                               "' is " + entry.value->str() +
                                               ", which is not allowed; " + rule);
}

/// Whether a parameter may be `value`; what is allowed is appended to `texts`.
std::optional<bool> ParameterTable::isAllowed(const Declaration &declaration, const Value &value,
                                              std::vector<std::string> &texts) {
  bool isAllowed = declaration.allowed.empty();
  for (const Declaration::Allowed &allowed : declaration.allowed) {
    std::optional<bool> matched = matches(value, allowed, texts);
    if (!matched)
      return std::nullopt;
    isAllowed |= *matched;
  }
  // Allowed values may be computed, and then be the same.
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return isAllowed;
}

bool ParameterTable::checkAllowed(size_t index) {
  const Declaration &declaration = declarations[index];
  const Entry &entry = entries[index];
  std::vector<std::string> texts;
  std::optional<bool> allowed = isAllowed(declaration, *entry.value, texts);
  if (!allowed)
    return false;
  if (!*allowed) {
    refuseValue(index, "allowed: " + join(texts, ", "));
    return false;
  }
  parameters.push_back({declaration.name.str(),
                        declaration.nameOffset,
                        *entry.value,
                        std::move(texts),
                        declaration.documentation.str(),
                        declaration.alike,
                        {},
                        entry.rule,
                        entry.define != nullptr,
                        any_of(binding->rules.getRules(), [&](const Rule &rule) {
                          return rule.find(declaration.name) != nullptr;
                        })});
  return true;
}

std::optional<Value> ParameterTable::evaluateAlternative(const Declaration &declaration,
                                                         size_t offset) {
  std::optional<Value> value = evaluateAt(offset);
  if (!value || value->getKind() == declaration.kind)
    return value;
  binding->error(offset, "expected a value of kind " + stringifyValueKind(declaration.kind) +
                             ", got " + value->str());
  return std::nullopt;
}

/// An alternative that a rule has, which is allowed.
std::optional<Value> ParameterTable::evaluateAlternative(const Declaration &declaration,
                                                         const Rule &rule, StringRef text) {
  std::optional<Value> value = evaluateTaken(declaration, rule, text);
  std::vector<std::string> texts;
  std::optional<bool> allowed = value ? isAllowed(declaration, *value, texts) : std::nullopt;
  if (!allowed || *allowed)
    return allowed ? value : std::nullopt;
  binding->ruleError(rule.getPlace(), "parameter '" + declaration.name + "' cannot be " +
                                          value->str() + "; allowed: " + join(texts, ", "));
  return std::nullopt;
}

/// Evaluates the alternatives of a parameter that is bound: those of the rule that chose it, or of
/// its declaration. Those that are alike count once.
bool ParameterTable::bindAlternatives(size_t index) {
  const Declaration &declaration = declarations[index];
  std::vector<std::string> &alternatives = parameters[index].alternatives;
  auto add = [&](const std::optional<Value> &value) {
    if (value && !is_contained(alternatives, value->str()))
      alternatives.push_back(value->str());
    return value.has_value();
  };
  if (const Rule *rule = entries[index].rule)
    for (const auto &[name, values] : rule->alternatives)
      if (name == declaration.name)
        return all_of(values, [&, rule = rule](const std::string &text) {
          return add(evaluateAlternative(declaration, *rule, text));
        });
  return all_of(declaration.alternatives,
                [&](size_t offset) { return add(evaluateAlternative(declaration, offset)); });
}
