//===- Expansion.h - Substitution of parameters in a source ---------------===//
//
// Replaces `$NAME` and `$(expression)` by values and blanks the lines that
// `$if expression`, `$elif expression`, `$else` and `$end` leave out, and those
// of `$if expression:` and `$else:`. Keeps lines one to one and remembers where
// columns went. Pure text: no MLIR here.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOURCE_EXPANSION_H
#define TESSERA_LIB_SOURCE_EXPANSION_H

#include "lib/Source/Parameters.h"

namespace tessera::source {

/// Maps columns between a source and its expansion. Lines and columns count from 1, columns in
/// bytes.
class ColumnMap {
public:
  /// Records that `originalLength` bytes at `originalColumn` of `line` became `expandedLength`
  /// bytes. Calls come in the order of the text.
  void addReplacement(unsigned line, unsigned originalColumn, unsigned originalLength,
                      unsigned expandedLength);

  /// The column of the source for a column of the expansion; within a replaced text, where the
  /// substitution starts.
  unsigned toOriginal(unsigned line, unsigned column) const {
    return map(line, column, &Replacement::expanded, &Replacement::original);
  }

  /// The column of the expansion for a column of the source; within a substitution, where its
  /// replacement starts.
  unsigned toExpanded(unsigned line, unsigned column) const {
    return map(line, column, &Replacement::original, &Replacement::expanded);
  }

private:
  struct Span {
    unsigned begin, length;
  };
  struct Replacement {
    unsigned line;
    Span original, expanded;
  };
  unsigned map(unsigned line, unsigned column, Span Replacement::*from,
               Span Replacement::*to) const;
  std::vector<Replacement> replacements;
};

struct Expansion {
  /// The source with imports, declarations, directives and lines left out blanked and substitutions
  /// replaced; as many lines as before.
  std::string text;
  ColumnMap columns;
};

/// Expands the text of `files` with the bound parameters of `table`, which was parsed from them.
/// What a copy of a file defines is called otherwise, as File::prefix says, also where it is used.
/// A `$` in a string or a comment, or before anything but `(`, an upper-case letter or an
/// underscore, stays (`%a$b` is a name of MLIR). An expression ends on the line where it starts.
/// Returns nothing after an error.
std::optional<Expansion> expand(const Files &files, const ParameterTable &table, ErrorSink error);

/// The length of what starts a text: a comment, a string or one character. A string without its end
/// goes to the end of the line.
size_t getLexicalLength(llvm::StringRef rest);

} // namespace tessera::source

#endif // TESSERA_LIB_SOURCE_EXPANSION_H
