//===- Slips.cpp - What the author of a source meant ----------------------===//

#include "lib/Source/Slips.h"
#include "dialects/Tile/Tile.h"
#include "lib/Source/Forms.h"
#include "lib/Source/Parameters.h"
#include "lib/Support/ElementTypes.h"
#include "lib/Support/NearestNames.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::source;

static bool isWord(char c) {
  return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$' || c == '-';
}

/// The token that begins at `offset`: a name with what marks it (%, !, #, @, ^), a string, an
/// arrow, a keyword or a character.
static StringRef tokenAt(StringRef text, size_t offset) {
  StringRef rest = text.substr(offset);
  if (rest.empty())
    return rest;
  if (rest.starts_with("->"))
    return rest.take_front(2);
  if (rest.front() == '"')
    return rest.take_front(std::min(rest.find_first_of("\"\n", 1), rest.size() - 1) + 1);
  size_t size = StringRef("%!#@^").contains(rest.front());
  while (size < rest.size() && isWord(rest[size]) && !rest.substr(size).starts_with("->"))
    ++size;
  return rest.take_front(std::max<size_t>(size, llvm::getNumBytesForUTF8(rest.front())));
}

/// Where the next token begins: behind blanks and comments.
static size_t skipBlanks(StringRef text, size_t offset) {
  while (true) {
    offset = std::min(text.find_first_not_of(" \t\r\n", offset), text.size());
    if (!text.substr(offset).starts_with("//"))
      return offset;
    offset = std::min(text.find('\n', offset), text.size());
  }
}

/// Where the token before `offset` ends: before blanks and lines of comments.
static size_t findEnd(StringRef text, size_t offset) {
  while (true) {
    StringRef before = text.take_front(offset).rtrim();
    size_t line = before.rfind('\n') + 1;
    if (!before.substr(line).ltrim().starts_with("//"))
      return before.size();
    offset = line;
  }
}

namespace {
/// One error of the parser, and the rules that know what was meant.
class SlipExplainer {
public:
  SlipExplainer(StringRef text, size_t offset, StringRef message, MLIRContext &context)
      : text(text), message(message), context(context), next(skipBlanks(text, offset)),
        token(tokenAt(text, next)) {
    slip.offset = offset;
  }

  std::optional<Slip> explain();

private:
  bool say(const Twine &words) {
    slip.message = words.str();
    return true;
  }
  /// The text between the first two of `quote` in the message.
  StringRef getQuoted(char quote) const { return message.split(quote).second.split(quote).first; }
  std::vector<StringRef> collect(char mark) const;
  StringRef findOperation(size_t end) const;
  size_t getIndent(size_t offset) const;
  std::string describeToken() const;

  bool explainOperation();
  bool explainValue();
  bool explainUse();
  bool explainAlias();
  bool explainType();
  bool explainConstant();
  bool explainBraces();
  bool explainExpected();
  std::string getHint(StringRef operation) const;

  StringRef text, message;
  MLIRContext &context;
  /// Where the parser's next token begins, and that token.
  size_t next;
  StringRef token;
  Slip slip;
};
} // namespace

/// The names before the error that begin with `mark`, each once.
std::vector<StringRef> SlipExplainer::collect(char mark) const {
  std::vector<StringRef> names;
  for (size_t at = text.find(mark); at < slip.offset; at = text.find(mark, at + 1))
    if (StringRef name = tokenAt(text, at); name.size() > 1 && !llvm::is_contained(names, name))
      names.push_back(name);
  return names;
}

/// The last known operation before `end`; empty where none is near.
StringRef SlipExplainer::findOperation(size_t end) const {
  constexpr size_t farthest = 4096;
  StringRef before = text.take_front(end);
  for (size_t dot = before.rfind('.'); dot != StringRef::npos && end - dot < farthest;
       dot = before.take_front(dot).rfind('.')) {
    size_t begin = dot;
    while (begin > 0 && llvm::isAlpha(text[begin - 1]))
      --begin;
    StringRef name = tokenAt(text, begin);
    bool isType = begin > 0 && StringRef("!#%@").contains(text[begin - 1]);
    if (!isType && RegisteredOperationName::lookup(name, &context))
      return name;
  }
  return {};
}

/// "'%acc'", or what ends before there is a token.
std::string SlipExplainer::describeToken() const {
  if (token.empty())
    return "the end of the source";
  if (text.slice(slip.offset, next).contains('\n'))
    return "the end of the line";
  return ("'" + token + "'").str();
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

bool SlipExplainer::explainOperation() {
  if (!message.contains("is unknown") && !message.starts_with("Dialect `"))
    return false;
  StringRef name = tokenAt(text, slip.offset);
  size_t behind = skipBlanks(text, slip.offset + name.size());
  if (tokenAt(text, behind) == "=") {
    StringRef value = text.substr(skipBlanks(text, behind + 1));
    bool isAlias = value.starts_with("tensor") || value.starts_with("!");
    return say("the name of a " +
               Twine(isAlias ? "type begins with !: !" : "value begins with %: %") + name);
  }
  auto [dialect, rest] = name.split('.');
  std::vector<StringRef> known = getSourceOperations(context), bare;
  for (StringRef operation : known) {
    auto [itsDialect, itsName] = operation.split('.');
    if (rest.empty() && itsName == name)
      return say("there is no operation '" + name + "'; did you mean '" + operation + "'?");
    if (itsDialect == dialect)
      bare.push_back(operation);
  }
  std::string message = ("there is no operation '" + name + "'").str();
  std::string suggestion = suggestNames(name, bare.empty() ? known : bare, 3);
  if (suggestion.empty() && bare.empty() && !rest.empty())
    suggestion = "; kernels have operations of tile, arith, math, scf and func";
  return say(message + suggestion);
}

bool SlipExplainer::explainValue() {
  if (!message.starts_with("use of undeclared SSA value name"))
    return false;
  StringRef name = tokenAt(text, slip.offset);
  // Where it is defined elsewhere, that is what matters.
  for (size_t at = text.find(name); at != StringRef::npos; at = text.find(name, at + 1)) {
    if (at == slip.offset || tokenAt(text, at) != name)
      continue;
    size_t behind = skipBlanks(text, at + name.size());
    if (behind >= text.size() || (text[behind] != '=' && text[behind] != ':'))
      continue;
    slip.noteOffset = at;
    slip.note = at > slip.offset ? "it is defined here, behind its use"
                                 : "the one that is defined here ends with its region; a loop or "
                                   "an scf.if gives it on by scf.yield";
    return say("there is no value '" + name + "' at this place");
  }
  std::vector<StringRef> known = collect('%');
  return say("there is no value '" + name + "'" + suggestNames(name, known, 3));
}

/// A value of one type that is used as one of another.
bool SlipExplainer::explainUse() {
  if (!message.starts_with("use of value '"))
    return false;
  auto [value, types] = message.drop_front(strlen("use of value '")).split("' expects different ");
  auto [wanted, given] = types.split('\'').second.split("' vs '");
  if (given.empty())
    return false;
  StringRef type = given.take_front(given.rfind('\''));
  std::string words = ("'" + value + "' is " + type + ", and " + wanted + " is used here").str();
  if (wanted == "index" && type == "i64")
    words += "; a constant is one as in `arith.constant 0 : index`, another number by "
             "arith.index_cast";
  else if (wanted == "index" && type.starts_with("i"))
    words += "; it becomes one by arith.index_cast";
  return say(words);
}

bool SlipExplainer::explainAlias() {
  if (!message.starts_with("undefined symbol alias id"))
    return false;
  // It is reported at the name or at what marks it.
  size_t mark = text.find_last_of("!#", slip.offset + 1);
  if (mark == StringRef::npos)
    return false;
  StringRef name = tokenAt(text, mark);
  std::vector<StringRef> known = collect(name.front());
  llvm::erase(known, name);
  return say("there is no type '" + name + "'" + suggestNames(name, known, 3));
}

//===----------------------------------------------------------------------===//
// Types and constants
//===----------------------------------------------------------------------===//

bool SlipExplainer::explainType() {
  if (message.starts_with("unknown  type `") && message.contains("in dialect `tile`"))
    return say("there is no type '!tile." + message.split('`').second.split('`').first +
               "'; the dialect has !tile." + tile::ViewType::getMnemonic());
  if (message.starts_with("expected 'x' in dimension list"))
    return say("the sizes of a tensor have x between them, as in tensor<128x64xf32>; got " +
               describeToken());
  if (!message.starts_with("expected non-function type"))
    return false;
  // Behind a dimension list the parser stops inside of a word.
  StringRef name =
      tokenAt(text, next).drop_while([](char c) { return llvm::isDigit(c) || c == 'x'; });
  if (name.empty() || !llvm::isAlpha(name.front()))
    return say("expected a type, got " + describeToken());
  std::vector<StringRef> aliases = collect('!');
  if (llvm::is_contained(aliases, ("!" + name).str()))
    return say("the name of a type begins with !: !" + name);
  static const std::pair<StringRef, StringRef> others[] = {
      {"bool", "i1"},  {"double", "f64"}, {"float", "f32"}, {"fp16", "f16"},   {"fp32", "f32"},
      {"half", "f16"}, {"int", "i32"},    {"long", "i64"},  {"uint32", "i32"}, {"size_t", "index"}};
  std::vector<StringRef> known = {"f64", "i1", "index", "tensor"};
  for (const ElementType &type : elementTypes) {
    if (name == type.torchName)
      return say("there is no type '" + name + "'; did you mean '" + type.name + "'?");
    known.push_back(type.name);
  }
  for (auto [other, ours] : others)
    if (name == other)
      return say("there is no type '" + name + "'; did you mean '" + ours + "'?");
  return say("there is no type '" + name + "'" + suggestNames(name, known, 3));
}

/// The parser reports a number that does not fit its type at the token behind both.
bool SlipExplainer::explainConstant() {
  if (!message.contains("value not valid for specified type") &&
      !message.starts_with("integer literal not valid for specified type"))
    return false;
  size_t begin = text.take_front(slip.offset).rfind("arith.constant");
  if (begin == StringRef::npos)
    return false;
  StringRef constant = text.slice(begin, slip.offset).take_until([](char c) { return c == '\n'; });
  auto [number, type] = constant.drop_front(strlen("arith.constant")).split(':');
  number = number.trim();
  slip.offset = begin;
  if (number.contains_insensitive("dense"))
    return say("the numbers do not fit the type '" + type.trim() + "'");
  if (type.contains("tensor") || type.trim().starts_with("!"))
    return say("a constant tile has its number in dense, as in `arith.constant dense<" + number +
               "> :" + type + "`");
  return say("'" + number + "' is no number of type " + type.trim() +
             "; floating-point numbers have a point, integers none");
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

/// Column at which the statement begins that `offset` is in: a line that begins with a brace, or
/// the line of the operation, which may have gone on to another one.
size_t SlipExplainer::getIndent(size_t offset) const {
  auto measure = [&](size_t at) {
    size_t begin = text.take_front(at).rfind('\n') + 1;
    return text.find_first_not_of(" \t", begin) - begin;
  };
  size_t begin = text.take_front(offset).rfind('\n') + 1;
  StringRef operation = findOperation(offset);
  bool startsWithBrace = text.substr(begin).ltrim(" \t").starts_with("}");
  return measure(startsWithBrace || operation.empty() ? offset : operation.data() - text.data());
}

/// A brace that is missing, or one too many. Which one is missing, indentation tells.
bool SlipExplainer::explainBraces() {
  if (!message.starts_with("expected operation name in quotes"))
    return false;
  std::vector<size_t> open;
  for (size_t at = skipBlanks(text, 0); at < next; at = skipBlanks(text, at)) {
    StringRef current = tokenAt(text, at);
    if (current == "{")
      open.push_back(at);
    if (current == "}" && !open.empty()) {
      size_t begin = open.back();
      open.pop_back();
      bool isFirst = text.slice(text.take_front(at).rfind('\n') + 1, at).trim().empty();
      if (isFirst && getIndent(at) < getIndent(begin)) {
        slip.offset = begin;
        return say("this '{' has no '}'");
      }
    }
    at += current.size();
  }
  if (token == "}" && open.empty()) {
    slip.offset = next;
    return say("this '}' closes nothing");
  }
  if (token.empty() && !open.empty()) {
    slip.offset = open.back();
    return say("this '{' has no '}'");
  }
  slip.offset = next;
  return say("expected an operation, got " + describeToken());
}

/// What the token tells of the rule that was missed; empty for nothing.
std::string SlipExplainer::getHint(StringRef operation) const {
  if (token.empty())
    return {};
  bool isNumber = llvm::isDigit(token.front()), isName = llvm::isAlpha(token.front());
  if (token == "/")
    return "; extents are divided by ceildiv";
  if (message.contains("expected SSA operand")) {
    if (isNumber)
      return "; a number becomes a value by arith.constant, as in `%c0 = arith.constant 0 : index`";
    if (token == "(")
      return "; operands have no brackets around them";
    if (isName && !text.substr(next + token.size()).starts_with("("))
      return "; values begin with %";
  }
  if (message.contains("expected ']'") && isName)
    return "; values begin with %";
  if (operation == "arith.constant" && isParameterName(token))
    return ("; the value of a parameter is $" + token).str();
  return {};
}

/// Whatever the parser expected: what it got, and how the operation is written.
bool SlipExplainer::explainExpected() {
  StringRef wanted = message;
  bool isComment = token == "#" || text.substr(next).starts_with("/*");
  if (isComment)
    return say("a comment begins with //");
  if (text.substr(next).starts_with("\xEF\xBB\xBF"))
    return say("a byte order mark has no meaning here; save the source as UTF-8 without one");
  if (message == "unexpected character")
    return say(describeToken() + " has no meaning here; one operation stands in a line");
  if (message.starts_with("expected integer number of results"))
    return say(
        "a value and its operation have = between them, as in `%a = arith.addf %b, %c : !T`");
  if (message.starts_with("custom op '"))
    wanted = message.split("' ").second;
  else if (message.starts_with("expected SSA operand"))
    wanted = "expected a value";
  else if (message.starts_with("expected attribute value"))
    wanted = "expected a number, a string or another constant";
  if (!wanted.starts_with("expected "))
    return false;
  // What is missing at the end of a line is missing there, not at the next token.
  size_t end = findEnd(text, next);
  StringRef quoted = wanted.split('\'').second.split('\'').first;
  bool isTypo = quoted.size() > 2 && !suggestNames(token, quoted).empty();
  slip.offset = isTypo || !text.slice(end, next).contains('\n') ? next : end;
  StringRef operation = findOperation(slip.offset);
  std::string words = (wanted + ", got " + describeToken() + getHint(operation)).str();
  if (std::string form = getForm(operation, context); !form.empty())
    words += ("; " + operation + " is written `" + form + "`").str();
  return say(words);
}

std::optional<Slip> SlipExplainer::explain() {
  if (explainOperation() || explainValue() || explainUse() || explainAlias() || explainType() ||
      explainConstant() || explainBraces() || explainExpected())
    return slip;
  return std::nullopt;
}

std::optional<Slip> tessera::source::explainSlip(StringRef text, size_t offset, StringRef message,
                                                 MLIRContext &context) {
  return SlipExplainer(text, offset, message, context).explain();
}
