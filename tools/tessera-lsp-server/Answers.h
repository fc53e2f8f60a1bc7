//===- Answers.h - What MLIR's server does not know of a text -------------===//
//
// Parameters, the fields of schedules, dimensions, and the operations of the dialect in the words
// of its .td files.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_LSP_ANSWERS_H
#define TESSERA_TOOLS_LSP_ANSWERS_H

#include "lib/Source/Parameters.h"
#include "llvm/Support/JSON.h"
#include <optional>

namespace tessera {

/// A position of LSP, from 0.
struct Position {
  int64_t line = 0, character = 0;
};

/// A parameter that a text may use.
struct KnownParameter {
  std::string name, description;
  /// The place of its declaration; the file is empty where it has no URI.
  std::string uri;
  Position place;
};

class Answers {
public:
  Answers() = default;
  explicit Answers(llvm::StringRef text) : text(text.str()) {}

  /// Takes the parameters that `table` has bound; the main file of `files` is the document `uri`.
  void setParameters(const source::Files &files, const source::ParameterTable &table,
                     llvm::StringRef uri);
  /// Keeps what another version knew, while this one cannot be read.
  void takeParameters(const Answers &other) { parameters = other.parameters; }

  /// The result of a request, for the document `uri`; nothing where it is the server's to answer.
  std::optional<llvm::json::Value> answer(llvm::StringRef method, llvm::StringRef uri,
                                          Position position) const;

  /// Leaves out of a completion at `position` what only passes write and what has no machine code.
  void filterCompletion(llvm::json::Value &result, Position position) const;

private:
  /// The word around a position, and the text of its line before the word.
  struct Cursor {
    llvm::StringRef before, word;
    Position start; ///< of the word
  };
  Cursor look(Position position) const;
  const KnownParameter *findParameter(const Cursor &cursor) const;
  std::optional<llvm::StringRef> findScheduleStart(const Cursor &cursor) const;
  std::vector<std::string> listDims() const;
  std::optional<Position> findDim(llvm::StringRef name) const;
  bool isDim(const Cursor &cursor) const;
  std::optional<llvm::json::Value> hover(const Cursor &cursor) const;
  std::optional<llvm::json::Value> define(const Cursor &cursor, llvm::StringRef uri) const;
  std::optional<llvm::json::Value> complete(const Cursor &cursor) const;

  std::string text;
  std::vector<KnownParameter> parameters;
};

} // namespace tessera

#endif // TESSERA_TOOLS_LSP_ANSWERS_H
