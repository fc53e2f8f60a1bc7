//===- Expansion.cpp - Substitution of parameters in a source -------------===//

#include "lib/Source/Expansion.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace tessera::source;

//===----------------------------------------------------------------------===//
// ColumnMap
//===----------------------------------------------------------------------===//

void ColumnMap::addReplacement(unsigned line, unsigned originalColumn, unsigned originalLength,
                               unsigned expandedLength) {
  unsigned expanded = toExpanded(line, originalColumn);
  replacements.push_back({line, originalColumn, originalLength, expanded, expandedLength});
}

unsigned ColumnMap::toOriginal(unsigned line, unsigned column) const {
  auto after = partition_point(replacements, [&](const Replacement &replacement) {
    return std::pair(replacement.line, replacement.expanded) <= std::pair(line, column);
  });
  if (after == replacements.begin() || std::prev(after)->line != line)
    return column;
  const Replacement &last = *std::prev(after);
  if (column < last.expanded + last.expandedLength)
    return last.original;
  return column - (last.expanded + last.expandedLength) + last.original + last.originalLength;
}

unsigned ColumnMap::toExpanded(unsigned line, unsigned column) const {
  auto after = partition_point(replacements, [&](const Replacement &replacement) {
    return std::pair(replacement.line, replacement.original) <= std::pair(line, column);
  });
  if (after == replacements.begin() || std::prev(after)->line != line)
    return column;
  const Replacement &last = *std::prev(after);
  if (column < last.original + last.originalLength)
    return last.expanded;
  return column - (last.original + last.originalLength) + last.expanded + last.expandedLength;
}

//===----------------------------------------------------------------------===//
// Expander
//===----------------------------------------------------------------------===//

namespace {
/// Copies a source from left to right, replacing what has to be replaced.
class Expander {
public:
  Expander(StringRef text, const ParameterTable &table, ErrorSink error)
      : text(text), table(table), error(error) {}

  std::optional<Expansion> run() {
    for (const Declaration &declaration : table.getDeclarations()) {
      copyUpTo(declaration.begin);
      blankUpTo(declaration.end);
    }
    bool lineStart = true;
    while (position < text.size()) {
      StringRef rest = text.substr(position);
      if (lineStart && startsDeclaration(rest)) {
        error(position + rest.find("param"),
              "`param` declarations stand at the top of a source, before everything else");
        return std::nullopt;
      }
      lineStart = rest.front() == '\n';
      if (!isSubstitution(rest))
        copyUpTo(position + getCopyLength(rest));
      else if (!substitute())
        return std::nullopt;
    }
    return std::move(result);
  }

private:
  static bool isNameChar(char c) { return (c >= 'A' && c <= 'Z') || isDigit(c) || c == '_'; }

  static bool startsDeclaration(StringRef rest) {
    rest = rest.ltrim(" \t");
    return rest.consume_front("param") && (rest.starts_with(" ") || rest.starts_with("\t"));
  }

  static bool isSubstitution(StringRef rest) {
    return rest.size() > 1 && rest[0] == '$' &&
           (rest[1] == '(' || (isNameChar(rest[1]) && !isDigit(rest[1])));
  }

  /// A comment, a string or one character.
  static size_t getCopyLength(StringRef rest) {
    if (rest.starts_with("//"))
      return std::min(rest.find('\n'), rest.size());
    if (rest.front() != '"')
      return 1;
    for (size_t i = 1; i < rest.size() && rest[i] != '\n'; ++i) {
      if (rest[i] == '"')
        return i + 1;
      if (rest[i] == '\\' && i + 1 < rest.size() && rest[i + 1] != '\n')
        ++i;
    }
    return 1;
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

  bool substitute() {
    size_t end = text.find('\n', position);
    std::optional<Value> value;
    StringRef rest = text.slice(position, end);
    size_t consumed;
    if (rest[1] != '(') {
      StringRef name = rest.drop_front().take_while(isNameChar);
      value = table.lookup(name, position + 1, error);
      consumed = name.size() + 1;
    } else {
      Lexer lexer(text, position, std::min(end, text.size()));
      auto resolve = [&](StringRef name, size_t offset, bool) {
        return table.lookup(name, offset, error);
      };
      unsigned depth = 0;
      value = Evaluator(lexer, resolve, error, depth).declarationValue();
      consumed = lexer.end() - position;
    }
    if (!value)
      return false;
    std::string replacement = value->str();
    result.columns.addReplacement(line, position - lineBegin + 1, consumed, replacement.size());
    result.text += replacement;
    position += consumed;
    return true;
  }

  StringRef text;
  const ParameterTable &table;
  ErrorSink error;
  Expansion result;
  size_t position = 0, lineBegin = 0;
  unsigned line = 1;
};
} // namespace

std::optional<Expansion> tessera::source::expand(StringRef text, const ParameterTable &table,
                                                 ErrorSink error) {
  return Expander(text, table, error).run();
}
