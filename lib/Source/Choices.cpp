//===- Choices.cpp - What rules choose for the parameters of a source -----===//

#include "lib/Source/Parameters.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace tessera::source;

std::string Parameter::describeOrigin() const {
  if (rule)
    return rule->describePlace();
  return isGiven ? "given" : "default";
}

/// "D = 64, CAUSAL = true": what the definitions set.
std::string ParameterTable::describeGiven() const {
  std::vector<std::string> texts;
  for (auto [declaration, entry] : zip_equal(declarations, entries))
    if (entry.define)
      texts.push_back((declaration.name + " = " + entry.value->str()).str());
  return texts.empty() ? "the defaults of the others" : join(texts, ", ");
}

//===----------------------------------------------------------------------===//
// Expressions of rules
//===----------------------------------------------------------------------===//

/// Keeps a comparison of extents that has decided a choice, once.
void ParameterTable::addComparison(StringRef term, bool holds) {
  if (none_of(comparisons, [&](const auto &known) { return known.first == term; }))
    comparisons.emplace_back(term.str(), holds);
}

/// The value of an expression of a rule, of parameters and extents.
std::optional<Value> ParameterTable::evaluateIn(const Rule &rule, StringRef expression) {
  auto error = [&](size_t offset, const Twine &message) {
    binding->ruleError(rule.getPlace(), "'" + expression + "': " + message);
  };
  auto resolveName = [&](StringRef name, size_t at, bool needed) -> std::optional<Value> {
    if (!find(name))
      for (const auto &[extent, size] : binding->rules.getExtents())
        if (extent == name)
          return Value::integer(size).withTerm("\"" + extent + "\"");
    return resolve(name, /*copy=*/nullptr, at, needed, error);
  };
  Lexer lexer(expression, 0, expression.size());
  auto compared = [&](StringRef term, bool holds) { addComparison(term, holds); };
  std::optional<Value> value = Evaluator(lexer, resolveName, error, depth, compared).expression();
  // What is computed of extents is so for these.
  if (value && !value->getTerm().empty())
    addComparison(("[\"eq\", " + value->getTerm() + ", " + value->str() + "]"), true);
  if (!value || lexer.peek().kind == Token::End)
    return value ? value->withTerm("") : value;
  error(lexer.offset(), "an expression ends before '" + lexer.peek().text + "'");
  return std::nullopt;
}

/// Whether a condition is about an extent that nobody gave.
bool ParameterTable::asksForUnknownExtent(const Rule &rule, StringRef expression) const {
  if (!is_contained(rule.extents, expression))
    return false;
  Lexer lexer(expression, 0, expression.size());
  for (; lexer.peek().kind != Token::End; lexer.take()) {
    StringRef name = lexer.peek().text;
    auto isName = [&](const auto &extent) { return extent.first == name; };
    if (isParameterName(name) && !find(name) && none_of(binding->rules.getExtents(), isName))
      return true;
  }
  return false;
}

std::optional<bool> ParameterTable::isTrue(const Rule &rule, StringRef expression) {
  if (asksForUnknownExtent(rule, expression))
    return false;
  std::optional<Value> value = evaluateIn(rule, expression);
  if (!value)
    return std::nullopt;
  if (value->getKind() == ValueKind::Boolean)
    return value->getBoolean();
  binding->ruleError(rule.getPlace(),
                     "the condition '" + expression + "' is no bool; compare it, as in 'D <= 128'");
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

/// Refuses values of a rule for parameters that the source does not have or leave free.
bool ParameterTable::checkTaken(const Rule &rule,
                                ArrayRef<std::pair<std::string, std::string>> values) {
  for (const auto &[name, taken] : values) {
    std::optional<size_t> index = find(name);
    if (!index) {
      binding->ruleError(rule.getPlace(), explainUnknown(name));
      return false;
    }
    const Declaration &declaration = declarations[*index];
    const File &file = files->findByOffset(declaration.nameOffset);
    // The default that an importer gives counts before the rules for what it imports.
    if (declaration.defaultOffset && !(&file != rule.of && files->doesImport(file, *rule.of))) {
      binding->ruleError(rule.getPlace(), "parameter '" + name + "' is not free: '" + file.name +
                                              "' gives it a default, which rules do not replace");
      return false;
    }
  }
  return true;
}

bool ParameterTable::checkRules() {
  return all_of(binding->rules.getRules(), [&](const Rule &rule) {
    return checkTaken(rule, rule.takes) &&
           all_of(rule.instead, [&](const auto &values) { return checkTaken(rule, values); });
  });
}

/// What a rule takes for a parameter: a value, or an expression of others.
std::optional<Value> ParameterTable::evaluateTaken(const Declaration &declaration, const Rule &rule,
                                                   StringRef taken) {
  if (std::optional<Value> literal = parseLiteral(declaration.kind, taken))
    return literal;
  std::optional<Value> value = evaluateIn(rule, taken);
  if (!value || value->getKind() == declaration.kind)
    return value;
  binding->ruleError(rule.getPlace(), "parameter '" + declaration.name + "' is of kind " +
                                          stringifyValueKind(declaration.kind) +
                                          ", the rule takes " + value->str() + " (" +
                                          stringifyValueKind(value->getKind()) + ")");
  return std::nullopt;
}

/// Of the rules that `isMeant` takes the one that counts, null where none holds.
std::optional<const Rule *> ParameterTable::chooseRule(function_ref<bool(const Rule &)> isMeant,
                                                       const Twine &what) {
  return binding->rules.choose(
      isMeant, what + " with " + describeGiven(),
      [&](const Rule &rule, StringRef expression) { return isTrue(rule, expression); },
      binding->ruleError);
}

std::optional<Value> ParameterTable::chooseValue(size_t index) {
  const Declaration &declaration = declarations[index];
  std::optional<const Rule *> rule =
      chooseRule([&](const Rule &rule) { return rule.find(declaration.name) != nullptr; },
                 "parameter '" + declaration.name + "'");
  if (!rule)
    return std::nullopt;
  if (!*rule) {
    binding->error(declaration.nameOffset, "no rule chooses parameter '" + declaration.name +
                                               "', which has no default, with " + describeGiven() +
                                               "; give it, or add a rule");
    return std::nullopt;
  }
  entries[index].rule = *rule;
  return evaluateTaken(declaration, **rule, *(*rule)->find(declaration.name));
}

/// Finds the rule for the schedule of each kernel that rules name.
bool ParameterTable::chooseSchedules() {
  std::vector<std::string> kernels;
  for (const Rule &rule : binding->rules.getRules())
    if (!rule.kernel.empty() && !is_contained(kernels, rule.kernel))
      kernels.push_back(rule.kernel);
  for (const std::string &kernel : kernels) {
    std::optional<const Rule *> rule =
        chooseRule([&](const Rule &rule) { return rule.kernel == kernel; },
                   "the schedule of kernel '" + kernel + "'");
    if (!rule)
      return false;
    if (*rule)
      schedules.push_back({kernel, *rule});
  }
  return true;
}

/// Finds the rule by which another source serves in place of this one.
bool ParameterTable::chooseForm() {
  auto isForm = [&](const Rule &rule) {
    return !rule.form.empty() && rule.of == &files->getMain();
  };
  std::optional<const Rule *> rule = chooseRule(isForm, "the form of the source");
  form = rule.value_or(nullptr);
  return rule.has_value();
}

/// Adds what a rule takes instead, unless a parameter of it is given or an importer's.
bool ParameterTable::addInstead(const Rule &rule) {
  std::vector<std::vector<Define>> added;
  for (const auto &values : rule.instead) {
    std::vector<Define> &defines = added.emplace_back();
    for (const auto &[name, text] : values) {
      if (!entries[*find(name)].rule)
        return true;
      std::optional<Value> value = evaluateAlternative(declarations[*find(name)], rule, text);
      if (!value)
        return false;
      defines.emplace_back(name, value->str());
    }
  }
  append_range(instead, std::move(added));
  return true;
}

/// Finds the rules for what is taken instead: of each file one, as the kernels of each may lack
/// room, and those of an importer first.
bool ParameterTable::chooseInstead() {
  return all_of(reverse(files->getFiles()), [&](const File &file) {
    std::optional<const Rule *> rule =
        chooseRule([&](const Rule &rule) { return rule.of == &file && !rule.instead.empty(); },
                   "what is taken instead");
    return rule && (!*rule || addInstead(**rule));
  });
}
