//===- Expression.cpp - Values and expressions of .tile parameters --------===//

#include "lib/Source/Expression.h"
#include "lib/Support/ElementTypes.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace llvm;
using namespace tessera::source;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

StringRef tessera::source::stringifyValueKind(ValueKind kind) {
  switch (kind) {
  case ValueKind::Integer:
    return "int";
  case ValueKind::Boolean:
    return "bool";
  case ValueKind::Type:
    return "type";
  case ValueKind::Name:
    return "name";
  }
  return {};
}

std::optional<ValueKind> tessera::source::symbolizeValueKind(StringRef text) {
  return StringSwitch<std::optional<ValueKind>>(text)
      .Case("int", ValueKind::Integer)
      .Case("bool", ValueKind::Boolean)
      .Case("type", ValueKind::Type)
      .Case("name", ValueKind::Name)
      .Default(std::nullopt);
}

std::string Value::str() const {
  switch (kind) {
  case ValueKind::Integer:
    return std::to_string(number);
  case ValueKind::Boolean:
    return number ? "true" : "false";
  case ValueKind::Type:
  case ValueKind::Name:
    return text;
  }
  return {};
}

bool tessera::source::isTypeName(StringRef text) {
  if (getElementType(text) || text == "f64" || text == "index")
    return true;
  unsigned width;
  return text.consume_front("i") && !text.starts_with("0") && !text.getAsInteger(10, width) &&
         width <= 64;
}

std::optional<Value> tessera::source::parseLiteral(ValueKind kind, StringRef text) {
  int64_t number;
  switch (kind) {
  case ValueKind::Integer:
    if (text.getAsInteger(10, number))
      return std::nullopt;
    return Value::integer(number);
  case ValueKind::Boolean:
    if (text != "true" && text != "false")
      return std::nullopt;
    return Value::boolean(text == "true");
  case ValueKind::Type:
    if (!isTypeName(text))
      return std::nullopt;
    return Value::type(text);
  case ValueKind::Name:
    if (text.empty() || isDigit(text.front()) ||
        !all_of(text, [](char c) { return isAlnum(c) || c == '_'; }))
      return std::nullopt;
    return Value::name(text);
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Lexer
//===----------------------------------------------------------------------===//

void Lexer::advance() {
  while (position < buffer.size()) {
    if (isSpace(buffer[position]))
      ++position;
    else if (buffer.substr(position).starts_with("//"))
      position = std::min(buffer.find('\n', position), buffer.size());
    else
      break;
  }
  StringRef rest = buffer.substr(position);
  if (rest.empty()) {
    token = {Token::End, rest};
    return;
  }
  char first = rest.front();
  if (isAlpha(first) || first == '_') {
    token = {Token::Identifier, rest.take_while([](char c) { return isAlnum(c) || c == '_'; })};
  } else if (isDigit(first)) {
    token = {Token::Integer, rest.take_while([](char c) { return isAlnum(c) || c == '_'; })};
  } else if (first == '"') {
    size_t close = rest.find_first_of("\"\n", 1);
    bool closed = close != StringRef::npos && rest[close] == '"';
    token = {closed ? Token::String : Token::Invalid,
             closed ? rest.take_front(close + 1) : rest.take_front(1)};
  } else {
    constexpr StringLiteral two[] = {"&&", "||", "==", "!=", "<=", ">=", ".."};
    bool isTwo = any_of(two, [&](StringRef spelling) { return rest.starts_with(spelling); });
    bool isOne = StringRef("()[]{}<>+-*/%!?:,=$").contains(first);
    size_t size = isTwo ? 2 : isOne ? 1 : getNumBytesForUTF8(first);
    token = {isTwo || isOne ? Token::Punctuation : Token::Invalid, rest.take_front(size)};
  }
  position += token.text.size();
}

//===----------------------------------------------------------------------===//
// Evaluator
//===----------------------------------------------------------------------===//

/// How an error names the token it met.
static std::string describe(const Token &token) {
  return token.kind == Token::End ? "the end" : ("'" + token.text + "'").str();
}

bool Evaluator::expect(StringRef spelling) {
  if (lexer.takeIf(spelling))
    return true;
  error(lexer.offset(), "expected '" + spelling + "', got " + describe(lexer.peek()));
  return false;
}

bool Evaluator::isKind(const Value &value, ValueKind kind, const Token &op) {
  if (value.getKind() == kind)
    return true;
  error(lexer.offsetOf(op), "'" + op.text + "' takes " + stringifyValueKind(kind) +
                                " operands, got " + value.str() + " (" +
                                stringifyValueKind(value.getKind()) + ")");
  return false;
}

std::optional<Value> Evaluator::declarationValue(bool live) {
  if (lexer.takeIf("$")) {
    if (lexer.takeIf("(")) {
      std::optional<Value> value = expression(live);
      if (!value || !expect(")"))
        return std::nullopt;
      return value;
    }
    Token name = lexer.take();
    if (name.kind != Token::Identifier)
      return fail(lexer.offsetOf(name), "'$' is followed by a parameter's name or '('");
    return resolve(name.text, lexer.offsetOf(name), live);
  }
  bool negative = lexer.takeIf("-");
  Token token = lexer.take();
  std::string text = (negative ? "-" : "") + token.text.str();
  if (token.kind == Token::Integer)
    if (std::optional<Value> value = parseLiteral(ValueKind::Integer, text))
      return value;
  if (token.kind == Token::String && !negative)
    return nameLiteral(token);
  if (token.kind == Token::Identifier && !negative) {
    if (std::optional<Value> value = parseLiteral(ValueKind::Boolean, text))
      return value;
    if (std::optional<Value> value = parseLiteral(ValueKind::Type, text))
      return value;
  }
  return fail(lexer.offsetOf(token),
              "expected a value (a 64-bit integer, true, false, a type such as bf16, a name in "
              "quotes, $NAME or $(expression)), got " +
                  describe(token));
}

std::optional<Value> Evaluator::expression(bool live) {
  if (depth >= maxExpressionDepth)
    return fail(lexer.offset(),
                "expression nests more than " + Twine(maxExpressionDepth) + " levels deep");
  ++depth;
  scope_exit restore([&] { --depth; });
  std::optional<Value> condition = binary(/*minPrecedence=*/1, live);
  if (!condition || !lexer.peek().is("?"))
    return condition;
  Token question = lexer.take();
  if (live && !isKind(*condition, ValueKind::Boolean, question))
    return std::nullopt;
  bool chosen = condition->getBoolean();
  std::optional<Value> then = expression(live && chosen);
  if (!then || !expect(":"))
    return std::nullopt;
  std::optional<Value> otherwise = expression(live && !chosen);
  if (!otherwise)
    return std::nullopt;
  return chosen ? then : otherwise;
}

/// 0 for a token that is no binary operator.
static int getPrecedence(const Token &token) {
  if (token.kind != Token::Punctuation)
    return 0;
  return StringSwitch<int>(token.text)
      .Case("||", 1)
      .Case("&&", 2)
      .Cases({"==", "!="}, 3)
      .Cases({"<", "<=", ">", ">="}, 4)
      .Cases({"+", "-"}, 5)
      .Cases({"*", "/", "%"}, 6)
      .Default(0);
}

std::optional<Value> Evaluator::binary(int minPrecedence, bool live) {
  std::optional<Value> lhs = unary(live);
  while (lhs) {
    int precedence = getPrecedence(lexer.peek());
    if (precedence == 0 || precedence < minPrecedence)
      return lhs;
    Token op = lexer.take();
    bool isLogical = op.text == "&&" || op.text == "||";
    if (live && isLogical && !isKind(*lhs, ValueKind::Boolean, op))
      return std::nullopt;
    bool decided = isLogical && lhs->getBoolean() == (op.text == "||");
    std::optional<Value> rhs = binary(precedence + 1, live && !decided);
    if (!rhs)
      return std::nullopt;
    if (live && !decided)
      lhs = applyBinary(op, *lhs, *rhs);
  }
  return lhs;
}

std::optional<Value> Evaluator::applyBinary(const Token &op, const Value &lhs, const Value &rhs) {
  if (op.text == "&&" || op.text == "||") {
    if (!isKind(rhs, ValueKind::Boolean, op))
      return std::nullopt;
    return rhs;
  }
  if (op.text == "==" || op.text == "!=") {
    if (lhs.getKind() != rhs.getKind())
      return fail(lexer.offsetOf(op), "'" + op.text + "' compares values of one kind, got " +
                                          lhs.str() + " (" + stringifyValueKind(lhs.getKind()) +
                                          ") and " + rhs.str() + " (" +
                                          stringifyValueKind(rhs.getKind()) + ")");
    if (lhs.getKind() == ValueKind::Integer)
      return applyInteger(op, lhs, rhs);
    return Value::boolean((lhs == rhs) == (op.text == "=="));
  }
  if (!isKind(lhs, ValueKind::Integer, op) || !isKind(rhs, ValueKind::Integer, op))
    return std::nullopt;
  return applyInteger(op, lhs, rhs);
}

/// `["mul", left, right]`; empty where neither depends on extents.
static std::string joinTerms(StringRef op, const Value &lhs, const Value &rhs) {
  if (lhs.getTerm().empty() && rhs.getTerm().empty())
    return "";
  StringRef name = StringSwitch<StringRef>(op)
                       .Case("+", "add")
                       .Case("-", "sub")
                       .Case("*", "mul")
                       .Case("/", "floordiv")
                       .Case("%", "mod")
                       .Case("<", "lt")
                       .Case("<=", "le")
                       .Case(">", "gt")
                       .Case(">=", "ge")
                       .Case("==", "eq")
                       .Case("!=", "ne")
                       .Default(op);
  auto spell = [](const Value &value) {
    return value.getTerm().empty() ? value.str() : value.getTerm();
  };
  return ("[\"" + name + "\", " + spell(lhs) + ", " + spell(rhs) + "]").str();
}

std::optional<Value> Evaluator::applyInteger(const Token &op, const Value &lhs, const Value &rhs) {
  std::optional<Value> value = computeInteger(op, lhs.getInteger(), rhs.getInteger());
  std::string term = joinTerms(op.text, lhs, rhs);
  if (!value || term.empty())
    return value;
  if (value->getKind() == ValueKind::Integer)
    return value->withTerm(std::move(term));
  if (compared)
    compared(term, value->getBoolean());
  return value;
}

std::optional<Value> Evaluator::computeInteger(const Token &op, int64_t lhs, int64_t rhs) {
  if (op.text == "==" || op.text == "!=")
    return Value::boolean((lhs == rhs) == (op.text == "=="));
  if (op.text == "<")
    return Value::boolean(lhs < rhs);
  if (op.text == "<=")
    return Value::boolean(lhs <= rhs);
  if (op.text == ">")
    return Value::boolean(lhs > rhs);
  if (op.text == ">=")
    return Value::boolean(lhs >= rhs);
  int64_t result = 0;
  bool overflow = false;
  if (op.text == "+") {
    overflow = AddOverflow(lhs, rhs, result);
  } else if (op.text == "-") {
    overflow = SubOverflow(lhs, rhs, result);
  } else if (op.text == "*") {
    overflow = MulOverflow(lhs, rhs, result);
  } else {
    if (rhs == 0)
      return fail(lexer.offsetOf(op), "'" + op.text + "' divides by zero");
    overflow = lhs == std::numeric_limits<int64_t>::min() && rhs == -1;
    if (!overflow && op.text == "ceildiv")
      result = lhs / rhs + (lhs % rhs != 0 && (lhs < 0) == (rhs < 0));
    else if (!overflow)
      result = op.text == "/" ? lhs / rhs : lhs % rhs;
  }
  if (overflow)
    return fail(lexer.offsetOf(op), "'" + op.text + "' of " + Twine(lhs) + " and " + Twine(rhs) +
                                        " does not fit in 64 bits");
  return Value::integer(result);
}

std::optional<Value> Evaluator::unary(bool live) {
  if (!lexer.peek().is("-") && !lexer.peek().is("!"))
    return primary(live);
  if (depth >= maxExpressionDepth)
    return fail(lexer.offset(),
                "expression nests more than " + Twine(maxExpressionDepth) + " levels deep");
  ++depth;
  scope_exit restore([&] { --depth; });
  Token op = lexer.take();
  std::optional<Value> operand = unary(live);
  if (!operand || !live)
    return operand;
  if (op.text == "!") {
    if (!isKind(*operand, ValueKind::Boolean, op))
      return std::nullopt;
    return Value::boolean(!operand->getBoolean());
  }
  if (!isKind(*operand, ValueKind::Integer, op))
    return std::nullopt;
  return applyInteger(op, Value::integer(0), *operand);
}

std::optional<Value> Evaluator::primary(bool live) {
  if (lexer.takeIf("(")) {
    std::optional<Value> value = expression(live);
    if (!value || !expect(")"))
      return std::nullopt;
    return value;
  }
  Token token = lexer.take();
  size_t offset = lexer.offsetOf(token);
  if (token.kind == Token::Integer) {
    if (std::optional<Value> value = parseLiteral(ValueKind::Integer, token.text))
      return value;
    return fail(offset, "'" + token.text + "' is not a 64-bit decimal integer");
  }
  if (token.kind == Token::String)
    return nameLiteral(token);
  if (token.kind != Token::Identifier) {
    if (token.is("$"))
      return fail(offset, "inside $(...) a parameter is named without '$'");
    return fail(offset, "expected an integer, true, false, a type, a parameter or '(', got " +
                            describe(token));
  }
  if (lexer.peek().is("("))
    return call(token, live);
  for (ValueKind kind : {ValueKind::Boolean, ValueKind::Type})
    if (std::optional<Value> value = parseLiteral(kind, token.text))
      return value;
  return resolve(token.text, offset, live);
}

std::optional<Value> Evaluator::nameLiteral(const Token &token) {
  if (std::optional<Value> value =
          parseLiteral(ValueKind::Name, token.text.drop_front().drop_back()))
    return value;
  return fail(lexer.offsetOf(token),
              "a name consists of letters, digits and underscores, got " + token.text);
}

std::optional<Value> Evaluator::call(const Token &function, bool live) {
  if (!function.is("min") && !function.is("max") && !function.is("ceildiv"))
    return fail(lexer.offsetOf(function),
                "unknown function '" + function.text + "'; known are min, max and ceildiv");
  lexer.take();
  std::optional<Value> lhs = expression(live);
  if (!lhs || !expect(","))
    return std::nullopt;
  std::optional<Value> rhs = expression(live);
  if (!rhs || !expect(")"))
    return std::nullopt;
  if (!live)
    return lhs;
  if (!isKind(*lhs, ValueKind::Integer, function) || !isKind(*rhs, ValueKind::Integer, function))
    return std::nullopt;
  if (function.is("ceildiv"))
    return applyInteger(function, *lhs, *rhs);
  bool takeLeft = (lhs->getInteger() < rhs->getInteger()) == function.is("min");
  return (takeLeft ? lhs : rhs)->withTerm(joinTerms(function.text, *lhs, *rhs));
}
