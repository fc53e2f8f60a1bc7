//===- Guard.cpp - What is kept from MLIR's parser ------------------------===//

#include "lib/Source/Guard.h"
#include "lib/Source/Expansion.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace tessera::source;

// Kernels are far from these limits.
/// MLIR's parser and printer recurse into what nests.
static constexpr int64_t maxBracketDepth = 256;
static constexpr int64_t maxAliases = 1024;
/// Types and attributes that an alias stands for, all inner aliases written out: what a diagnostic
/// prints.
static constexpr uint64_t maxAliasSize = 1 << 20;
/// The parser makes room for as many results as a number names.
static constexpr uint64_t maxResults = 1 << 16;
/// Reading digits takes quadratic time, and so does arithmetic on wide integers.
static constexpr size_t maxDigits = 128;
static constexpr uint64_t maxIntegerWidth = 128;

static bool isWordChar(char c) { return isAlnum(c) || c == '_' || c == '$' || c == '.'; }

/// Why a builtin type or attribute is not read, or an empty string.
static StringRef getRefusal(StringRef word) {
  return StringSwitch<StringRef>(word)
      .Cases({"affine_map", "affine_set"}, "affine maps or sets")
      .Cases({"dense_resource", "sparse"}, "resources or sparse constants")
      .Cases({"complex", "memref", "opaque", "strided", "tuple", "vector"},
             "types or attributes of this kind")
      .Case("distinct", "distinct attributes")
      .Default("");
}

namespace {
class Guard {
public:
  Guard(StringRef text, ErrorSink error) : text(text), error(error) {}

  bool run() {
    while (position < text.size()) {
      StringRef rest = text.substr(position);
      char first = rest.front();
      size_t length = getLexicalLength(rest);
      bool isWord = isWordChar(first) || first == extraChar();
      if (isWord)
        length = rest.take_while([&](char c) { return isWordChar(c) || c == extraChar(); }).size();
      bool isBlank = isSpace(first) || rest.starts_with("//");
      if (!isBlank && isLineStart && endsDefinition())
        defined = {};
      if (!checkToken(rest, rest.take_front(length)))
        return false;
      if (isWord)
        context = previousChar() == '%' ? Context::Value : Context::None;
      else if (!isBlank)
        context = context == Context::Value && (first == '#' || first == ':') ? Context::Results
                                                                              : Context::None;
      isLineStart = first == '\n' || (isLineStart && isSpace(first));
      position += length;
      if (!isBlank)
        end = position;
    }
    return true;
  }

private:
  bool fail(const Twine &message) {
    error(position, message);
    return false;
  }

  /// Whether the definition of an alias is over where a line starts: outside of its brackets, and
  /// behind no sign after which it goes on.
  bool endsDefinition() const {
    StringRef before = text.take_front(end);
    return depth <= definitionDepth && !before.ends_with("=") && !before.ends_with(":") &&
           !before.ends_with(",") && !before.ends_with("->");
  }

  char previousChar() const { return position > 0 ? text[position - 1] : ' '; }
  bool isAfterSigil() const { return StringRef("%@^!#").contains(previousChar()); }
  /// Names may hold a dash, shapes a question mark.
  char extraChar() const { return isAfterSigil() ? '-' : '?'; }

  bool checkToken(StringRef rest, StringRef token) {
    char first = token.front();
    if (isWordChar(first) || first == '?')
      return checkWord(token, rest.drop_front(token.size()));
    if (first == '!' || first == '#')
      return checkAlias(rest);
    if (rest.starts_with("{-#"))
      return fail("a source holds no resources");
    bool isArrow = first == '>' && position > 0 && text[position - 1] == '-';
    if (StringRef("([{<").contains(first) && ++depth > maxBracketDepth)
      return fail("brackets nest more than " + Twine(maxBracketDepth) + " levels deep");
    if (StringRef(")]}>").contains(first) && depth > 0 && !isArrow)
      --depth;
    return true;
  }

  /// A name, keyword, number or shape. Sigils stand before it, as tokens of their own.
  bool checkWord(StringRef word, StringRef after) {
    uint64_t number;
    if (context == Context::Results && isDigit(word.front()) &&
        (word.take_while(isDigit).getAsInteger(10, number) || number >= maxResults))
      return fail("an operation has less than " + Twine(maxResults) + " results");
    if (isAfterSigil())
      return true;
    if (isDigit(word.front()) && word.size() > maxDigits)
      return fail("a number has at most " + Twine(maxDigits) + " digits");
    return checkType(word, after);
  }

  bool checkType(StringRef word, StringRef after) {
    StringRef refusal = getRefusal(word);
    if (!refusal.empty() && (after.ltrim().starts_with("<") || word == "distinct"))
      return fail("a source holds no " + refusal + "; no operation of a kernel takes them");
    if (word == "array" && after.ltrim().starts_with("<")) {
      StringRef element = after.ltrim().drop_front().ltrim().take_while(isWordChar);
      if (!StringSwitch<bool>(element)
               .Cases({"i8", "i16", "i32", "i64", "f32", "f64"}, true)
               .Default(false))
        return fail("an `array` holds i8, i16, i32, i64, f32 or f64");
    }
    // The element type of 64x?xi8 stands behind its dimensions.
    StringRef type = word;
    while (!type.empty() && (isDigit(type.front()) || type.front() == '?')) {
      StringRef dim = type.take_while([](char c) { return isDigit(c) || c == '?'; });
      if (!type.drop_front(dim.size()).starts_with("x"))
        return true;
      type = type.drop_front(dim.size() + 1);
    }
    uint64_t width;
    if (!type.consume_front("si") && !type.consume_front("ui") && !type.consume_front("i"))
      return true;
    if (!type.empty() && all_of(type, isDigit) &&
        (type.getAsInteger(10, width) || width > maxIntegerWidth))
      return fail("an integer has at most " + Twine(maxIntegerWidth) + " bits");
    return true;
  }

  /// `!name` or `#name`: the start of a definition, or a use.
  bool checkAlias(StringRef rest) {
    StringRef name = rest.drop_front().take_while(isWordChar);
    if (name.empty() || (rest.front() == '#' && isDigit(name.front())))
      return true;
    name = rest.take_front(name.size() + 1);
    if (isLineStart && rest.drop_front(name.size()).ltrim().starts_with("=")) {
      if (aliases.size() >= maxAliases)
        return fail("a source defines at most " + Twine(maxAliases) + " aliases");
      defined = name;
      definitionDepth = depth;
      aliases[name] = 1;
      return true;
    }
    auto use = aliases.find(name);
    if (use == aliases.end() || defined.empty())
      return true;
    uint64_t &size = aliases[defined];
    size = SaturatingAdd(size, use->second);
    if (size > maxAliasSize)
      return fail("alias '" + defined + "' stands for more than " + Twine(maxAliasSize) +
                  " types and attributes");
    return true;
  }

  StringRef text;
  ErrorSink error;
  size_t position = 0;
  /// Where the last token ended that is no space or comment.
  size_t end = 0;
  int64_t depth = 0;
  bool isLineStart = true;
  /// What the last token was: the name of a value, or the sign after it in `%x#2`, which uses a
  /// result, and in `%x:2 = ...`, which defines two.
  enum class Context { None, Value, Results } context = Context::None;
  /// The alias that is being defined, the brackets around it, and the size of each alias.
  StringRef defined;
  int64_t definitionDepth = 0;
  StringMap<uint64_t> aliases;
};
} // namespace

bool tessera::source::checkParsable(StringRef text, ErrorSink error) {
  // MLIR's lexer passes over them, so that words would look other than they are read.
  if (size_t place = text.find('\0'); place != StringRef::npos) {
    error(place, "a source is text, and this is a NUL byte");
    return false;
  }
  return Guard(text, error).run();
}
