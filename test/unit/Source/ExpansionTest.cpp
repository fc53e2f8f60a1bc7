//===- ExpansionTest.cpp - Substitution and the mapping of columns --------===//

#include "lib/Source/Expansion.h"
#include <gtest/gtest.h>

using namespace tessera::source;

namespace {
struct Outcome {
  std::string text, failure;
  ColumnMap columns;
};

Outcome expandText(llvm::StringRef text) {
  Outcome outcome;
  auto error = [&](size_t offset, const llvm::Twine &message) {
    outcome.failure = std::to_string(offset) + ": " + message.str();
  };
  auto noDefines = [](const Define &, const llvm::Twine &, std::optional<size_t>) {};
  Files files;
  bool isRead = files.read(text, "test.tile", {}, [](const Place &, const llvm::Twine &) {});
  EXPECT_TRUE(isRead);
  ParameterTable table;
  auto noRules = [](const Place &, const llvm::Twine &) {};
  if (!table.parse(files, error) || !table.bind(RuleBook(), error, noDefines, noRules))
    return outcome;
  if (std::optional<Expansion> expansion = expand(files, table, error)) {
    outcome.text = expansion->text;
    outcome.columns = expansion->columns;
    EXPECT_EQ(llvm::StringRef(outcome.text).count('\n'), text.count('\n'));
  }
  return outcome;
}

/// Expands `body` under `A = 4096` and `F = false`, which take the first line.
Outcome expandBody(const std::string &body) {
  std::string header = "param A : int = 4096 param F : bool = false";
  Outcome outcome = expandText(header + "\n" + body);
  if (!outcome.text.empty()) {
    EXPECT_EQ(outcome.text.substr(0, header.size() + 1), std::string(header.size(), ' ') + "\n");
    outcome.text.erase(0, header.size() + 1);
  }
  return outcome;
}
} // namespace

TEST(Expansion, Substitutes) {
  EXPECT_EQ(expandBody("tensor<$Ax$AxbF16>").text, "tensor<4096x4096xbF16>");
  EXPECT_EQ(expandBody("$(A / 2)$F").text, "2048false");
  EXPECT_EQ(expandBody("%a$b $ $1 \"$A\" // $A $UNKNOWN\n$A").text,
            "%a$b $ $1 \"$A\" // $A $UNKNOWN\n4096");
  EXPECT_EQ(expandBody("x \"\\\"$A\" \"open $A").text, "x \"\\\"$A\" \"open $A");
}

TEST(Expansion, KeepsLinesOfDeclarations) {
  EXPECT_EQ(expandText("// head\nparam A : int =\n  1 // one\n  in [1] \"text\"\n$A\n").text,
            "// head\n               \n          \n               \n1\n");
}

TEST(Expansion, Errors) {
  EXPECT_EQ(expandBody("$B").failure,
            "45: unknown parameter 'B'; did you mean 'A'?; known are A, F");
  EXPECT_EQ(expandBody("$(A +\n1)").failure,
            "49: expected an integer, true, false, a type, a parameter or '(', got the end");
  EXPECT_EQ(expandBody("x\n  param B : int = 1").failure,
            "48: `param` declarations stand at the top of a source, before everything else");
}

TEST(Expansion, Conditionals) {
  EXPECT_EQ(expandBody("$if F\na\n$elif A > 1\nb\n$else\nc\n$end\nd").text,
            "     \n \n           \nb\n     \n \n    \nd");
  EXPECT_EQ(expandBody("$if !F\na\n$elif A > 1\nb\n$else\nc\n$end").text,
            "      \na\n           \n \n     \n \n    ");
  EXPECT_EQ(expandBody("$if F\n$if !F\n$UNKNOWN\n$else\na\n$end\n$else\nb\n$end // F").text,
            "     \n      \n        \n     \n \n    \n     \nb\n         ");
}

TEST(Expansion, ConditionalsOfOneLine) {
  EXPECT_EQ(expandBody("$if !F: $A\n$if F: $UNKNOWN\nb").text, "        4096\n               \nb");
  EXPECT_EQ(expandBody("$if F: a\n$else: b : i32\n").text, "        \n       b : i32\n");
  EXPECT_EQ(expandBody("$if !F: a\n$else: $A").text, "        a\n         ");
  EXPECT_EQ(expandBody("$if (F ? F : !F): a : i32").text, "                  a : i32");
  EXPECT_EQ(expandBody("$if F\n$if !F: a\n$else: b\n$else\nc\n$end").text,
            "     \n         \n        \n     \nc\n    ");
}

TEST(Expansion, ConditionalErrors) {
  EXPECT_EQ(expandBody("$else: a").failure, "44: `$else:` has no `$if ...:` in the line above");
  EXPECT_EQ(expandBody("$if F: a\n\n$else: a").failure,
            "54: `$else:` has no `$if ...:` in the line above");
  EXPECT_EQ(expandBody("$if F: a\n$else: a\n$else: a").failure,
            "62: `$else:` has no `$if ...:` in the line above");
  EXPECT_EQ(expandBody("$if F\n$elif F: a\n$end").failure, "57: unexpected ':' after `$elif`");
  EXPECT_EQ(expandBody("$if A: a").failure, "48: `$if` takes a condition, got 4096 (int)");
  EXPECT_EQ(expandBody("$if F\n").failure, "44: `$if` has no `$end`");
  EXPECT_EQ(expandBody("$end").failure, "44: `$end` has no `$if`");
  EXPECT_EQ(expandBody("$else").failure, "44: `$else` has no `$if`");
  EXPECT_EQ(expandBody("$if F\n$else\n$else\n$end").failure, "56: `$else` has no `$if`");
  EXPECT_EQ(expandBody("$if F\n$else\n$elif F\n$end").failure, "56: `$elif` has no `$if`");
  EXPECT_EQ(expandBody("$if A\n$end").failure, "48: `$if` takes a condition, got 4096 (int)");
  EXPECT_EQ(expandBody("$if F F\n$end").failure, "50: unexpected 'F' after `$if`");
  EXPECT_EQ(expandBody("$if F\n$if B\n$end\n$end").failure,
            "54: unknown parameter 'B'; did you mean 'A'?; known are A, F");
}

TEST(ColumnMap, MapsBothWays) {
  Outcome outcome = expandBody("x\nab $A cd $(A * 10) e\ny");
  ASSERT_EQ(outcome.text, "x\nab 4096 cd 40960 e\ny");
  const ColumnMap &columns = outcome.columns;
  const unsigned line = 3;
  auto expectPair = [&](unsigned original, unsigned expanded) {
    EXPECT_EQ(columns.toOriginal(line, expanded), original) << expanded;
    EXPECT_EQ(columns.toExpanded(line, original), expanded) << original;
  };
  expectPair(1, 1);
  expectPair(4, 4);   // $A
  expectPair(6, 8);   // the space after it
  expectPair(7, 9);   // c
  expectPair(10, 12); // $(A * 10)
  expectPair(20, 18); // e
  EXPECT_EQ(columns.toOriginal(line, 7), 4u);
  EXPECT_EQ(columns.toOriginal(line, 16), 10u);
  EXPECT_EQ(columns.toExpanded(line, 5), 4u);
  EXPECT_EQ(columns.toExpanded(line, 18), 12u);
  for (unsigned other : {1u, 2u, 4u, 100u}) {
    EXPECT_EQ(columns.toOriginal(other, 9), 9u);
    EXPECT_EQ(columns.toExpanded(other, 9), 9u);
  }
}
