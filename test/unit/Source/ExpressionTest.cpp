//===- ExpressionTest.cpp - Values and expressions of parameters ----------===//

#include "lib/Source/Expression.h"
#include <gtest/gtest.h>

using namespace tessera::source;

namespace {
/// The outcome of evaluating a text: what it prints as, or "offset: message".
std::string evaluate(llvm::StringRef text) {
  std::string failure;
  auto error = [&](size_t offset, const llvm::Twine &message) {
    failure = std::to_string(offset) + ": " + message.str();
  };
  auto resolve = [&](llvm::StringRef name, size_t offset, bool) -> std::optional<Value> {
    if (name == "D")
      return Value::integer(128);
    if (name == "CAUSAL")
      return Value::boolean(true);
    if (name == "T")
      return Value::type("bf16");
    error(offset, "unknown " + name);
    return std::nullopt;
  };
  Lexer lexer(text, 0, text.size());
  unsigned depth = 0;
  std::optional<Value> value = Evaluator(lexer, resolve, error, depth).expression();
  EXPECT_EQ(depth, 0u);
  EXPECT_EQ(value.has_value(), failure.empty());
  if (!value)
    return failure;
  return lexer.peek().kind == Token::End ? value->str() : "left over: " + lexer.peek().text.str();
}
} // namespace

TEST(Expression, Arithmetic) {
  EXPECT_EQ(evaluate("1 + 2 * 3"), "7");
  EXPECT_EQ(evaluate("(1 + 2) * 3"), "9");
  EXPECT_EQ(evaluate("10 - 3 - 2"), "5");
  EXPECT_EQ(evaluate("7 / 2 * 2"), "6");
  EXPECT_EQ(evaluate("-7 / 2"), "-3");
  EXPECT_EQ(evaluate("-7 % 3"), "-1");
  EXPECT_EQ(evaluate("- - 5"), "5");
  EXPECT_EQ(evaluate("D // a comment\n / 2"), "64");
}

TEST(Expression, Functions) {
  EXPECT_EQ(evaluate("min(3, 4)"), "3");
  EXPECT_EQ(evaluate("max(3, 4)"), "4");
  EXPECT_EQ(evaluate("min(max(1, D), 200)"), "128");
  EXPECT_EQ(evaluate("ceildiv(7, 2)"), "4");
  EXPECT_EQ(evaluate("ceildiv(8, 2)"), "4");
  EXPECT_EQ(evaluate("ceildiv(-7, 2)"), "-3");
  EXPECT_EQ(evaluate("ceildiv(-7, -2)"), "4");
  EXPECT_EQ(evaluate("gcd(1, 2)"), "0: unknown function 'gcd'; known are min, max and ceildiv");
  EXPECT_EQ(evaluate("min(1)"), "5: expected ',', got ')'");
}

TEST(Expression, LogicAndComparisons) {
  EXPECT_EQ(evaluate("1 < 2 && 2 <= 2 && 3 > 2 && 2 >= 2 && 1 != 2 && 1 == 1"), "true");
  EXPECT_EQ(evaluate("!CAUSAL || false"), "false");
  EXPECT_EQ(evaluate("true || false && false"), "true");
  EXPECT_EQ(evaluate("1 + 1 == 2"), "true");
  EXPECT_EQ(evaluate("T == bf16"), "true");
  EXPECT_EQ(evaluate("T == f16"), "false");
  EXPECT_EQ(evaluate("\"relu\" == \"gelu\""), "false");
  EXPECT_EQ(evaluate("D ? 1 : 2"), "2: '?' takes bool operands, got 128 (int)");
  EXPECT_EQ(evaluate("T < 1"), "2: '<' takes int operands, got bf16 (type)");
  EXPECT_EQ(evaluate("1 == true"),
            "2: '==' compares values of one kind, got 1 (int) and true (bool)");
}

TEST(Expression, ConditionalChoosesAndSkips) {
  EXPECT_EQ(evaluate("D <= 64 ? 128 : CAUSAL ? 112 : 176"), "112");
  EXPECT_EQ(evaluate("CAUSAL ? 1 : 1 / 0"), "1");
  EXPECT_EQ(evaluate("CAUSAL || 1 / 0 == 1"), "true");
  EXPECT_EQ(evaluate("!CAUSAL && 1 / 0 == 1"), "false");
  EXPECT_EQ(evaluate("CAUSAL ? 1 : UNKNOWN"), "13: unknown UNKNOWN");
  EXPECT_EQ(evaluate("CAUSAL ? 1"), "10: expected ':', got the end");
}

TEST(Expression, Overflow) {
  EXPECT_EQ(evaluate("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(evaluate("9223372036854775808"),
            "0: '9223372036854775808' is not a 64-bit decimal integer");
  EXPECT_EQ(evaluate("9223372036854775807 + 1"),
            "20: '+' of 9223372036854775807 and 1 does not fit in 64 bits");
  EXPECT_EQ(evaluate("(-9223372036854775807 - 1) / -1"),
            "27: '/' of -9223372036854775808 and -1 does not fit in 64 bits");
  EXPECT_EQ(evaluate("(-9223372036854775807 - 1) % -1"),
            "27: '%' of -9223372036854775808 and -1 does not fit in 64 bits");
  EXPECT_EQ(evaluate("4294967296 * 4294967296"),
            "11: '*' of 4294967296 and 4294967296 does not fit in 64 bits");
  EXPECT_EQ(evaluate("ceildiv(1, 0)"), "0: 'ceildiv' divides by zero");
  EXPECT_EQ(evaluate("1 % 0"), "2: '%' divides by zero");
}

TEST(Expression, Malformed) {
  EXPECT_EQ(evaluate(""), "0: expected an integer, true, false, a type, a parameter or '(', got "
                          "the end");
  EXPECT_EQ(evaluate("1 +"), "3: expected an integer, true, false, a type, a parameter or '(', got "
                             "the end");
  EXPECT_EQ(evaluate("(1"), "2: expected ')', got the end");
  EXPECT_EQ(evaluate("$D"), "0: inside $(...) a parameter is named without '$'");
  EXPECT_EQ(evaluate("0x10"), "0: '0x10' is not a 64-bit decimal integer");
  EXPECT_EQ(evaluate("\"a b\""), "0: a name consists of letters, digits and underscores, got "
                                 "\"a b\"");
  EXPECT_EQ(evaluate("1 2"), "left over: 2");
}

TEST(Expression, DeepNestingIsRefused) {
  std::string refused = ": expression nests more than 200 levels deep";
  EXPECT_EQ(evaluate(std::string(100000, '(')), "200" + refused);
  EXPECT_EQ(evaluate(std::string(100000, '-') + "1"), "199" + refused);
  std::string sum = "1";
  for (int i = 0; i < 10000; ++i)
    sum += "+1";
  EXPECT_EQ(evaluate(sum), "10001");
}

TEST(Value, Literals) {
  EXPECT_EQ(parseLiteral(ValueKind::Integer, "-3"), Value::integer(-3));
  EXPECT_FALSE(parseLiteral(ValueKind::Integer, "3.0"));
  EXPECT_FALSE(parseLiteral(ValueKind::Integer, ""));
  EXPECT_EQ(parseLiteral(ValueKind::Boolean, "false"), Value::boolean(false));
  EXPECT_FALSE(parseLiteral(ValueKind::Boolean, "0"));
  EXPECT_EQ(parseLiteral(ValueKind::Type, "i32"), Value::type("i32"));
  for (const char *text : {"i0", "i065", "i65", "i", "float", "tensor<4xf32>", ""})
    EXPECT_FALSE(parseLiteral(ValueKind::Type, text)) << text;
  EXPECT_EQ(parseLiteral(ValueKind::Name, "relu_2"), Value::name("relu_2"));
  EXPECT_FALSE(parseLiteral(ValueKind::Name, "2relu"));
  EXPECT_FALSE(parseLiteral(ValueKind::Name, ""));
  EXPECT_NE(Value::type("f16"), Value::name("f16"));
}
