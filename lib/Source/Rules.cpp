//===- Rules.cpp - Which values free parameters take ----------------------===//

#include "lib/Source/Rules.h"
#include "lib/Support/Json.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace tessera;
using namespace tessera::source;

bool Rule::isFor(const File &file) const {
  StringRef name = file.name;
  return file.rulesName == source ||
         (name.consume_back(source) && (name.empty() || name.ends_with("/")));
}

const std::string *Rule::find(StringRef name) const {
  auto found = find_if(takes, [&](const auto &taken) { return taken.first == name; });
  return found == takes.end() ? nullptr : &found->second;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// The lines where the objects of the root's array begin.
static std::vector<unsigned> findRows(StringRef text) {
  constexpr unsigned depthOfRows = 3;
  std::vector<unsigned> lines;
  unsigned line = 1, depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    line += c == '\n';
    if (c == '\\' && inString)
      ++i;
    else if (c == '"')
      inString = !inString;
    else if (inString)
      continue;
    else if ((c == '{' || c == '[') && ++depth == depthOfRows && c == '{')
      lines.push_back(line);
    else if (c == '}' || c == ']')
      --depth;
  }
  return lines;
}

/// "128", "true" or a text as it is; nothing for other values.
static std::optional<std::string> toText(const json::Value &value) {
  if (std::optional<StringRef> text = value.getAsString())
    return text->str();
  if (std::optional<bool> truth = value.getAsBoolean())
    return *truth ? "true" : "false";
  if (std::optional<int64_t> number = asInteger(value))
    return std::to_string(*number);
  return std::nullopt;
}

/// Appends the strings of an array.
static bool readTexts(const json::Value &value, std::vector<std::string> &texts) {
  const json::Array *array = value.getAsArray();
  if (!array)
    return false;
  for (const json::Value &element : *array) {
    std::optional<StringRef> text = element.getAsString();
    if (!text)
      return false;
    texts.push_back(text->str());
  }
  return true;
}

/// Reads the alternatives of what a rule takes.
static bool readAlternatives(const json::Value &value, Rule &rule) {
  const json::Object *object = value.getAsObject();
  if (!object)
    return false;
  for (const auto &[name, listed] : *object) {
    const json::Array *array = listed.getAsArray();
    if (!array || array->empty())
      return false;
    auto &alternatives = rule.alternatives.emplace_back(StringRef(name).str(), 0).second;
    for (const json::Value &element : *array) {
      std::optional<std::string> text = toText(element);
      if (!text)
        return false;
      alternatives.push_back(std::move(*text));
    }
  }
  return true;
}

/// Reads values of parameters by name, in the order of the names.
static bool readValues(const json::Value &value,
                       std::vector<std::pair<std::string, std::string>> &values) {
  const json::Object *object = value.getAsObject();
  if (!object || object->empty())
    return false;
  for (const auto &[name, taken] : *object) {
    std::optional<std::string> text = toText(taken);
    if (!text)
      return false;
    values.emplace_back(StringRef(name).str(), std::move(*text));
  }
  llvm::sort(values);
  return true;
}

/// Reads what a rule takes.
static bool readTakes(const json::Value &value, Rule &rule) {
  if (!readValues(value, rule.takes))
    return false;
  for (auto [name, member] : {std::pair("schedule", &rule.schedule), {"form", &rule.form}})
    if (const std::string *text = rule.find(name)) {
      *member = *text;
      erase_if(rule.takes, [&, name = name](const auto &taken) { return taken.first == name; });
    }
  return true;
}

/// Reads the lists of what is taken instead.
static bool readInstead(const json::Value &value, Rule &rule) {
  const json::Array *array = value.getAsArray();
  return array && !array->empty() && all_of(*array, [&](const json::Value &element) {
           return readValues(element, rule.instead.emplace_back());
         });
}

/// Reads a member of a row; false where its value is of another kind, or nobody knows it.
static bool readMember(StringRef name, const json::Value &value, Rule &rule) {
  std::string note;
  auto readText = [&](std::string &text) {
    std::optional<StringRef> given = value.getAsString();
    text = given.value_or("").str();
    return given && !given->empty();
  };
  if (name == "source")
    return readText(rule.source);
  if (name == "kernel")
    return readText(rule.kernel);
  if (name == "card")
    return readText(rule.card);
  if (name == "why" || name == "record")
    return readText(note);
  if (name == "when")
    return readTexts(value, rule.when);
  if (name == "extents")
    return readTexts(value, rule.extents);
  if (name == "alternatives")
    return readAlternatives(value, rule);
  if (name == "instead")
    return readInstead(value, rule);
  return name == "take" && readTakes(value, rule);
}

/// Reports an error, and is false.
static bool refuse(PlaceErrorSink error, const Place &place, const Twine &message) {
  error(place, message);
  return false;
}

bool RuleBook::readRow(const json::Value &row, Rule rule, StringRef defaultCard,
                       PlaceErrorSink error) {
  const json::Object *members = row.getAsObject();
  StringRef form =
      "a rule is {\"source\": \"file.tile\", \"when\": [\"expression\", ...], "
      "\"take\": {\"NAME\": value}}, where \"kernel\", \"extents\", \"card\", "
      "\"alternatives\", \"why\" and \"record\" may stand too, and \"instead\": [{\"NAME\": "
      "value}, ...] in place of \"take\"";
  if (!members)
    return refuse(error, rule.getPlace(), form);
  for (const auto &[name, value] : *members)
    if (!readMember(name, value, rule))
      return refuse(error, rule.getPlace(), "member '" + StringRef(name) + "': " + form);
  bool takes = !rule.takes.empty() || !rule.schedule.empty() || !rule.form.empty();
  if (rule.source.empty() || takes == !rule.instead.empty())
    return refuse(error, rule.getPlace(), form);
  if (rule.kernel.empty() != rule.schedule.empty())
    return refuse(error, rule.getPlace(),
                  "a rule that takes a schedule names a kernel, and no other does");
  for (const auto &[name, values] : rule.alternatives)
    if (!rule.find(name))
      return refuse(error, rule.getPlace(),
                    "a rule has alternatives of what it takes, and it does not take '" + name +
                        "'");
  for (const File &file : files->getFiles())
    if (rule.isFor(file) && !file.isCopy())
      rule.of = &file;
  StringRef asked = card.empty() ? defaultCard : StringRef(card);
  if (rule.of && (rule.card.empty() || rule.card == asked))
    rules.push_back(std::move(rule));
  return true;
}

bool RuleBook::readFile(const RulesFile &file, PlaceErrorSink error) {
  Place top{file.name, 1, 1};
  Expected<json::Value> parsed = parseJson(file.text);
  if (!parsed)
    return refuse(error, top, "the rules are no JSON: " + toString(parsed.takeError()));
  const json::Object *root = parsed->getAsObject();
  std::optional<int64_t> version;
  if (root && root->getString("format") == StringRef("tessera-rules"))
    version = root->getInteger("version");
  if (version && version != 1)
    return refuse(error, top,
                  "the rules are of version " + Twine(*version) +
                      ", and this compiler reads version 1");
  const json::Array *rows = root ? root->getArray("rules") : nullptr;
  if (!rows || !version)
    return refuse(error, top,
                  "a file of rules is {\"format\": \"tessera-rules\", \"version\": 1, "
                  "\"rules\": [...]}");
  std::vector<unsigned> lines = findRows(file.text);
  for (auto [index, row] : enumerate(*rows)) {
    Rule rule;
    rule.file = file.name;
    rule.line = index < lines.size() ? lines[index] : 1;
    rule.isUsers = file.isUsers;
    if (!readRow(row, std::move(rule), root->getString("default_card").value_or(""), error))
      return false;
  }
  return true;
}

bool RuleBook::read(const Files &files, const RuleOptions &options, PlaceErrorSink error) {
  this->files = &files;
  card = options.card;
  extents = options.extents;
  return all_of(files.getRules(), [&](const RulesFile &file) { return readFile(file, error); });
}

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

std::optional<bool> RuleBook::doesHold(const Rule &rule, HoldsFunction holds) const {
  for (const std::vector<std::string> *list : {&rule.when, &rule.extents})
    for (const std::string &expression : *list) {
      std::optional<bool> truth = holds(rule, expression);
      if (!truth || !*truth)
        return truth;
    }
  return true;
}

/// Whether a rule counts before another, where both hold.
bool RuleBook::precedes(const Rule &rule, const Rule &other) const {
  if (rule.of != other.of && files->doesImport(*rule.of, *other.of))
    return true;
  if (rule.of != other.of && files->doesImport(*other.of, *rule.of))
    return false;
  return rule.countConditions() > other.countConditions();
}

std::optional<const Rule *> RuleBook::choose(function_ref<bool(const Rule &)> isMeant,
                                             const Twine &what, HoldsFunction holds,
                                             PlaceErrorSink error) const {
  SmallVector<const Rule *> held;
  for (bool isUsers : {true, false}) {
    for (const Rule &rule : rules) {
      if (rule.isUsers != isUsers || !isMeant(rule))
        continue;
      std::optional<bool> truth = doesHold(rule, holds);
      if (!truth)
        return std::nullopt;
      if (*truth)
        held.push_back(&rule);
    }
    if (!held.empty())
      break;
  }
  const Rule *best = nullptr;
  for (const Rule *rule : held)
    if (!best || precedes(*rule, *best))
      best = rule;
  for (const Rule *rule : held)
    if (rule != best && !precedes(*best, *rule)) {
      error(rule->getPlace(), "two rules with as many conditions choose " + what +
                                  ": this one and " + best->describePlace() +
                                  "; give one of them a condition more");
      return std::nullopt;
    }
  return best;
}
