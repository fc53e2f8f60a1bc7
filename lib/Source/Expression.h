//===- Expression.h - Values and expressions of .tile parameters ----------===//
//
// The lexer and the evaluator behind `param` declarations and `$(...)`. Pure
// text: no MLIR here.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_SOURCE_EXPRESSION_H
#define TESSERA_LIB_SOURCE_EXPRESSION_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include <cstdint>
#include <optional>
#include <string>

namespace tessera::source {

enum class ValueKind { Integer, Boolean, Type, Name };

/// "int", "bool", "type" or "name", as a declaration spells it.
llvm::StringRef stringifyValueKind(ValueKind kind);
std::optional<ValueKind> symbolizeValueKind(llvm::StringRef text);

/// A parameter's value: a 64-bit integer, a bool, a scalar type or a name (one of a few choices).
class Value {
public:
  static Value integer(int64_t value) { return {ValueKind::Integer, value, {}}; }
  static Value boolean(bool value) { return {ValueKind::Boolean, value, {}}; }
  static Value type(llvm::StringRef spelling) { return {ValueKind::Type, 0, spelling.str()}; }
  static Value name(llvm::StringRef text) { return {ValueKind::Name, 0, text.str()}; }

  ValueKind getKind() const { return kind; }
  int64_t getInteger() const { return number; }
  bool getBoolean() const { return number != 0; }
  /// The spelling of a type, or a name.
  llvm::StringRef getText() const { return text; }
  /// How an integer follows from extents, as JSON: "SQ" in quotes, or ["mul", "B", 4]. Empty where
  /// it depends on none.
  const std::string &getTerm() const { return term; }
  Value withTerm(std::string newTerm) const {
    Value result = *this;
    result.term = std::move(newTerm);
    return result;
  }

  /// What a substitution puts into the text.
  std::string str() const;

  bool operator==(const Value &other) const {
    return kind == other.kind && number == other.number && text == other.text;
  }
  bool operator!=(const Value &other) const { return !(*this == other); }

private:
  Value(ValueKind kind, int64_t number, std::string text)
      : kind(kind), number(number), text(std::move(text)) {}

  ValueKind kind;
  int64_t number;
  std::string text, term;
};

/// True for the scalar types a `type` parameter may name: those of elements, f64, index and iN.
bool isTypeName(llvm::StringRef text);

/// Reads a literal of `kind` ("128", "true", "bf16", "relu"); nothing when `text` is not one.
std::optional<Value> parseLiteral(ValueKind kind, llvm::StringRef text);

struct Token {
  enum Kind { End, Identifier, Integer, String, Punctuation, Invalid };
  Kind kind = End;
  llvm::StringRef text;

  bool is(llvm::StringRef spelling) const {
    return (kind == Identifier || kind == Punctuation) && text == spelling;
  }
};

/// Tokens of `buffer` between two offsets; whitespace and `//` comments are skipped.
class Lexer {
public:
  Lexer(llvm::StringRef buffer, size_t begin, size_t end)
      : buffer(buffer.take_front(end)), position(begin) {
    advance();
  }

  const Token &peek() const { return token; }
  Token take() {
    Token taken = token;
    consumedEnd = position;
    advance();
    return taken;
  }
  /// Takes the next token when it is spelled so.
  bool takeIf(llvm::StringRef spelling) {
    if (!token.is(spelling))
      return false;
    take();
    return true;
  }
  /// Offset of the next token in the buffer.
  size_t offset() const { return offsetOf(token); }
  size_t offsetOf(const Token &of) const { return of.text.data() - buffer.data(); }
  /// One past the last token taken.
  size_t end() const { return consumedEnd; }

private:
  void advance();

  llvm::StringRef buffer;
  size_t position;
  size_t consumedEnd = 0;
  Token token;
};

/// Receives an error at a byte offset of the source.
using ErrorSink = llvm::function_ref<void(size_t offset, const llvm::Twine &message)>;

/// Receives a comparison of what extents decide, as Value::getTerm has terms, and what it gave.
using ComparisonSink = llvm::function_ref<void(llvm::StringRef term, bool holds)>;

/// Gives the value of a parameter, or reports why there is none. When `needed` is false only the
/// name is checked and the value does not matter.
using NameResolver =
    llvm::function_ref<std::optional<Value>(llvm::StringRef name, size_t offset, bool needed)>;

/// How deeply expressions and parameters that use each other may nest.
constexpr unsigned maxExpressionDepth = 200;

/// Evaluates expressions: integers, `true`, `false`, types, "names" and parameters; `?:`, `||`,
/// `&&`,
/// `==`, `!=`, `<`, `<=`, `>`, `>=`, `+`, `-`, `*`, `/`, `%`, `!`; min, max and ceildiv. Integers
/// are 64 bits wide and an overflow is an error; `/` and `%` round towards zero. What `?:`, `||`
/// and `&&` do not choose is checked for syntax and names only.
class Evaluator {
public:
  /// `depth` is shared by evaluations that cause each other. `compared` may be null.
  Evaluator(Lexer &lexer, NameResolver resolve, ErrorSink error, unsigned &depth,
            ComparisonSink compared = nullptr)
      : lexer(lexer), resolve(resolve), error(error), depth(depth), compared(compared) {}

  /// An expression, up to the first token that cannot continue it.
  std::optional<Value> expression(bool live = true);

  /// What stands in a declaration: a literal, `$NAME` or `$(expression)`.
  std::optional<Value> declarationValue(bool live = true);

private:
  std::optional<Value> binary(int minPrecedence, bool live);
  std::optional<Value> unary(bool live);
  std::optional<Value> primary(bool live);
  std::optional<Value> nameLiteral(const Token &token);
  std::optional<Value> call(const Token &function, bool live);
  std::optional<Value> applyBinary(const Token &op, const Value &lhs, const Value &rhs);
  std::optional<Value> applyInteger(const Token &op, const Value &lhs, const Value &rhs);
  std::optional<Value> computeInteger(const Token &op, int64_t lhs, int64_t rhs);
  bool expect(llvm::StringRef spelling);
  bool isKind(const Value &value, ValueKind kind, const Token &op);
  std::optional<Value> fail(size_t offset, const llvm::Twine &message) {
    error(offset, message);
    return std::nullopt;
  }

  Lexer &lexer;
  NameResolver resolve;
  ErrorSink error;
  unsigned &depth;
  ComparisonSink compared;
};

} // namespace tessera::source

#endif // TESSERA_LIB_SOURCE_EXPRESSION_H
