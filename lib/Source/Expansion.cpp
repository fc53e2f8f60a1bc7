//===- Expansion.cpp - Substitution of parameters in a source -------------===//

#include "lib/Source/Expansion.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace tessera::source;

//===----------------------------------------------------------------------===//
// ColumnMap
//===----------------------------------------------------------------------===//

void ColumnMap::addReplacement(unsigned line, unsigned originalColumn, unsigned originalLength,
                               unsigned expandedLength) {
  unsigned expanded = toExpanded(line, originalColumn);
  replacements.push_back({line, {originalColumn, originalLength}, {expanded, expandedLength}});
}

unsigned ColumnMap::map(unsigned line, unsigned column, Span Replacement::*from,
                        Span Replacement::*to) const {
  auto after = partition_point(replacements, [&](const Replacement &replacement) {
    return std::pair(replacement.line, (replacement.*from).begin) <= std::pair(line, column);
  });
  if (after == replacements.begin() || std::prev(after)->line != line)
    return column;
  const Span &ofFrom = (*std::prev(after)).*from, &ofTo = (*std::prev(after)).*to;
  unsigned end = ofFrom.begin + ofFrom.length;
  return column < end ? ofTo.begin : column - end + ofTo.begin + ofTo.length;
}

/// Of the names of functions, kernels, sequences and aliases.
static bool isIdentifierChar(char c) { return isAlnum(c) || c == '_' || c == '.' || c == '$'; }

/// The name at the beginning of `text`, with its sigil.
static StringRef takeName(StringRef text) {
  return text.take_front(1 + text.drop_front().take_while(isIdentifierChar).size());
}

/// What an expanded text defines, as takeName has it.
static StringSet<> findDefinitions(StringRef text) {
  StringSet<> names;
  SmallVector<StringRef> lines;
  text.split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef line : lines) {
    line = line.ltrim();
    bool isSymbol = any_of(ArrayRef<StringRef>{"func.func ", "tile.kernel ", "tile.sequence "},
                           [&](StringRef keyword) { return line.starts_with(keyword); });
    if (isSymbol && line.contains('@'))
      names.insert(takeName(line.drop_front(line.find('@'))));
    else if (line.starts_with("!") || line.starts_with("#"))
      if (StringRef name = takeName(line); line.drop_front(name.size()).ltrim().starts_with("="))
        names.insert(name);
  }
  return names;
}

size_t tessera::source::getLexicalLength(StringRef rest) {
  bool isString = rest.starts_with("\"");
  if (!isString && !rest.starts_with("//"))
    return 1;
  size_t lineEnd = std::min(rest.find('\n'), rest.size());
  for (size_t i = 1; isString && i < lineEnd; ++i) {
    if (rest[i] == '"')
      return i + 1;
    if (rest[i] == '\\')
      ++i;
  }
  return lineEnd;
}

//===----------------------------------------------------------------------===//
// Expander
//===----------------------------------------------------------------------===//

namespace {
/// Copies a source from left to right, replacing what has to be replaced.
class Expander {
public:
  Expander(const Files &files, const ParameterTable &table, ErrorSink error)
      : files(files), text(files.getText()), table(table), error(error),
        names(files.getFiles().size()) {}

  std::optional<Expansion> run() {
    for (const File &file : files.getFiles())
      if ((file.isCopy() && !findNames(file)) || !expandFile(file))
        return std::nullopt;
    return std::move(result);
  }

private:
  /// Finds the names that begin otherwise in the whole than in the text of a copy.
  bool findNames(const File &copy) {
    Expander alone(files, table, error);
    alone.position = alone.lineBegin = copy.begin;
    if (!alone.expandFile(copy))
      return false;
    StringSet<> &own = names[files.indexOf(copy)];
    own = findDefinitions(alone.result.text);
    for (const File &inner : files.getFiles())
      if (inner.isCopy() && inner.importer == files.indexOf(copy))
        for (StringRef name : names[files.indexOf(inner)].keys())
          own.insert((name.take_front() + inner.prefixInImporter + name.drop_front()).str());
    return true;
  }

  /// An open `$if`.
  struct Block {
    size_t offset;
    /// Whether the lines around it are kept.
    bool outer;
    /// Whether the lines that follow are kept, a branch was, and `$else` came.
    bool active = false, taken = false, inElse = false;
  };

  bool expandFile(const File &file) {
    current = &file;
    blankUpTo(file.body);
    for (auto [begin, end] : table.getPlaces())
      if (begin >= file.body && begin < file.end) {
        copyUpTo(begin);
        blankUpTo(end);
      }
    while (position < file.end)
      if (!expandLine())
        return false;
    if (blocks.empty())
      return true;
    error(blocks.back().offset, "`$if` has no `$end`");
    return false;
  }

  static bool isNameChar(char c) { return (c >= 'A' && c <= 'Z') || isDigit(c) || c == '_'; }

  static bool isSubstitution(StringRef rest) {
    return rest.size() > 1 && rest[0] == '$' &&
           (rest[1] == '(' || (isNameChar(rest[1]) && !isDigit(rest[1])));
  }

  void copyUpTo(size_t end) {
    StringRef copied = text.slice(position, end);
    result.text += copied;
    skip(copied);
  }

  void blankUpTo(size_t end) {
    StringRef blanked = text.slice(position, end);
    for (char c : blanked)
      result.text += c == '\n' ? '\n' : ' ';
    skip(blanked);
  }

  void skip(StringRef consumed) {
    position += consumed.size();
    size_t newline = consumed.rfind('\n');
    line += consumed.count('\n');
    if (newline != StringRef::npos)
      lineBegin = position - (consumed.size() - newline - 1);
  }

  /// Expands from here through the end of the line.
  bool expandLine() {
    size_t end = std::min(text.find('\n', position), text.size());
    StringRef indented = text.slice(position, end).ltrim(" \t");
    bool isLineStart = position == lineBegin;
    StringRef keyword = indented.take_while([](char c) { return c == '$' || isAlpha(c); });
    if (isLineStart && (keyword == "$import" || keyword == "$rules")) {
      error(end - indented.size(),
            "imports and names of rules stand at the top of a source, before its parameters and "
            "everything else");
      return false;
    }
    if (isLineStart && isDirective(keyword)) {
      size_t begin = end - indented.size();
      Lexer lexer(text, begin + keyword.size(), end);
      std::optional<bool> keepsRest = applyDirective(keyword, begin, lexer);
      if (!keepsRest)
        return false;
      blankUpTo(*keepsRest ? lexer.end() : end);
    } else if (!isActive()) {
      blankUpTo(end);
    } else if (isLineStart && keyword == "param" && indented != keyword) {
      error(end - indented.size(),
            "`param` declarations stand at the top of a source, before everything else");
      return false;
    }
    while (position < end) {
      StringRef rest = text.slice(position, end);
      if (isSubstitution(rest)) {
        if (!substitute(rest))
          return false;
        continue;
      }
      copyUpTo(position + getLexicalLength(rest));
      if (current->isCopy() && StringRef("@!#").contains(rest.front()) &&
          names[files.indexOf(*current)].contains(readName(rest)))
        addPrefix();
    }
    copyUpTo(std::min(end + 1, text.size()));
    return true;
  }

  bool isActive() const { return blocks.empty() || blocks.back().active; }

  static bool isDirective(StringRef keyword) {
    return keyword == "$if" || keyword == "$elif" || keyword == "$else" || keyword == "$end";
  }

  /// Whether what stands behind the directive, after a colon, is kept; nothing after an error.
  std::optional<bool> applyDirective(StringRef keyword, size_t offset, Lexer &lexer) {
    bool isSingleElse = keyword == "$else" && lexer.takeIf(":");
    if (keyword == "$if") {
      blocks.push_back({offset, isActive()});
    } else if (isSingleElse) {
      if (!single || singleLine + 1 != line) {
        error(offset, "`$else:` has no `$if ...:` in the line above");
        return std::nullopt;
      }
      return single->outer && !single->taken;
    } else if (blocks.empty() || (keyword != "$end" && blocks.back().inElse)) {
      error(offset, "`" + keyword + "` has no `$if`");
      return std::nullopt;
    }
    Block &block = blocks.back();
    if (keyword == "$end") {
      blocks.pop_back();
    } else {
      bool open = block.outer && !block.taken;
      bool condition = true;
      if (keyword != "$else" && !evaluateCondition(keyword, lexer, open, condition))
        return std::nullopt;
      block.active = open && condition;
      block.taken |= block.active;
      block.inElse = keyword == "$else";
    }
    if (keyword == "$if" && lexer.takeIf(":")) {
      single = blocks.pop_back_val();
      singleLine = line;
      return single->active;
    }
    if (lexer.peek().kind == Token::End)
      return false;
    error(lexer.offset(), "unexpected '" + lexer.peek().text + "' after `" + keyword + "`");
    return std::nullopt;
  }

  /// Reads the condition of `$if` or `$elif`; only its syntax and names count unless `live`.
  bool evaluateCondition(StringRef keyword, Lexer &lexer, bool live, bool &condition) {
    size_t offset = lexer.offset();
    std::optional<Value> value = evaluate(lexer, &Evaluator::expression, live);
    if (!value)
      return false;
    if (live && value->getKind() != ValueKind::Boolean) {
      error(offset, "`" + keyword + "` takes a condition, got " + value->str() + " (" +
                        stringifyValueKind(value->getKind()) + ")");
      return false;
    }
    condition = value->getBoolean();
    return true;
  }

  std::optional<Value> evaluate(Lexer &lexer, std::optional<Value> (Evaluator::*method)(bool),
                                bool live) {
    auto resolve = [&](StringRef name, size_t offset, bool) {
      return table.lookup(name, offset, error);
    };
    unsigned depth = 0;
    Evaluator evaluator(lexer, resolve, error, depth);
    return (evaluator.*method)(live);
  }

  /// The value of the substitution at the beginning of `rest`, a part of the text, and its length.
  std::optional<Value> readSubstitution(StringRef rest, size_t &length) {
    size_t begin = rest.data() - text.data();
    if (rest[1] != '(') {
      StringRef name = rest.drop_front().take_while(isNameChar);
      length = name.size() + 1;
      return table.lookup(name, begin + 1, error);
    }
    Lexer lexer(text, begin, begin + rest.size());
    std::optional<Value> value = evaluate(lexer, &Evaluator::declarationValue, /*live=*/true);
    length = lexer.end() - begin;
    return value;
  }

  /// The name at the beginning of `rest`, with what is substituted in it.
  std::string readName(StringRef rest) {
    std::string name = rest.take_front().str();
    rest = rest.drop_front();
    while (!rest.empty()) {
      size_t length = 1;
      if (isSubstitution(rest)) {
        std::optional<Value> value = readSubstitution(rest, length);
        if (!value)
          break;
        name += value->str();
      } else if (isIdentifierChar(rest.front())) {
        name += rest.front();
      } else {
        break;
      }
      rest = rest.drop_front(length);
    }
    return name;
  }

  /// Begins the name that follows with the prefix of the copy.
  void addPrefix() {
    result.columns.addReplacement(line, position - lineBegin + 1, 0, current->prefix.size());
    result.text += current->prefix;
  }

  bool substitute(StringRef rest) {
    size_t consumed;
    std::optional<Value> value = readSubstitution(rest, consumed);
    if (!value)
      return false;
    std::string replacement = value->str();
    result.columns.addReplacement(line, position - lineBegin + 1, consumed, replacement.size());
    result.text += replacement;
    position += consumed;
    return true;
  }

  const Files &files;
  StringRef text;
  const ParameterTable &table;
  ErrorSink error;
  Expansion result;
  /// Of each file that is a copy, the names that get its prefix; and the file that is expanded.
  std::vector<StringSet<>> names;
  const File *current = nullptr;
  SmallVector<Block> blocks;
  /// The last `$if` of one line, which `$else:` in the line behind it belongs to.
  std::optional<Block> single;
  unsigned singleLine = 0;
  size_t position = 0, lineBegin = 0;
  unsigned line = 1;
};
} // namespace

std::optional<Expansion> tessera::source::expand(const Files &files, const ParameterTable &table,
                                                 ErrorSink error) {
  return Expander(files, table, error).run();
}
