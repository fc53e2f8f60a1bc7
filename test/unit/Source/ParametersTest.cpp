//===- ParametersTest.cpp - Declarations and what is bound to them --------===//

#include "lib/Source/Parameters.h"
#include "llvm/ADT/StringExtras.h"
#include <gtest/gtest.h>

using namespace tessera::source;

namespace {
/// "A=1 B=true" for the bound parameters, or the first error.
std::string bindText(llvm::StringRef text, std::vector<Define> defines = {}) {
  std::string failure;
  auto error = [&](size_t offset, const llvm::Twine &message) {
    failure = std::to_string(offset) + ": " + message.str();
  };
  auto defineError = [&](const Define &define, const llvm::Twine &message, std::optional<size_t>) {
    failure = "-D " + define.first + ": " + message.str();
  };
  Files files;
  bool isRead = files.read(text, "test.tile", {}, [](const Place &, const llvm::Twine &) {});
  EXPECT_TRUE(isRead);
  ParameterTable table;
  bool bound =
      table.parse(files, error) && table.define(defines, defineError) &&
      table.bind(RuleBook(), error, defineError, [](const Place &, const llvm::Twine &) {});
  EXPECT_EQ(bound, failure.empty());
  if (!bound)
    return failure;
  std::vector<std::string> parts;
  for (const Parameter &parameter : table.getParameters())
    parts.push_back(parameter.name + "=" + parameter.value.str() +
                    (parameter.alternatives.empty()
                         ? ""
                         : "[" + llvm::join(parameter.alternatives, ",") + "]"));
  return llvm::join(parts, " ");
}
} // namespace

TEST(Parameters, DefaultsInAnyOrder) {
  EXPECT_EQ(
      bindText("param B : int = $(2 * A)\nparam A : int = 3 // three\nparam C : bool = $(A < B)"),
      "B=6 A=3 C=true");
  EXPECT_EQ(bindText("// nothing here\nparam"),
            "21: the name of a parameter consists of upper-case "
            "letters, digits and underscores, got ''");
  EXPECT_EQ(bindText("tile.kernel"), "");
}

TEST(Parameters, DefinesReplaceDefaults) {
  llvm::StringRef text = "param A : int = 1\nparam B : int = $A\nparam T : type = f16\n"
                         "param F : name = \"none\" in [\"none\", \"relu\"]";
  EXPECT_EQ(bindText(text), "A=1 B=1 T=f16 F=none");
  EXPECT_EQ(bindText(text, {{"A", "5"}}), "A=5 B=5 T=f16 F=none");
  EXPECT_EQ(bindText(text, {{"A", "5"}, {"A", "6"}, {"T", "bf16"}, {"F", "relu"}}),
            "A=6 B=6 T=bf16 F=relu");
  EXPECT_EQ(bindText(text, {{"A", "x"}}), "-D A: parameter 'A' takes an integer, got 'x'");
  EXPECT_EQ(bindText(text, {{"T", "vector"}}),
            "-D T: parameter 'T' takes a type such as bf16, got 'vector'");
  EXPECT_EQ(bindText(text, {{"F", "tanh"}}),
            "-D F: parameter 'F' cannot be tanh; allowed: none, relu");
}

TEST(Parameters, AlternativesAreValuesThatDiffer) {
  llvm::StringRef text = "param D : int = 64\n"
                         "param BM : int = 128 in 64..256 step 64 "
                         "alternatives [$(D <= 64 ? 256 : 128), 128, 192] alike \"rows\"";
  EXPECT_EQ(bindText(text), "D=64 BM=128[256,128,192]");
  EXPECT_EQ(bindText(text, {{"D", "128"}, {"BM", "64"}}), "D=128 BM=64[128,192]");
  EXPECT_EQ(bindText("param A : bool = true alternatives [true, 1]"),
            "42: expected a value of kind bool, got 1");
  EXPECT_EQ(bindText("param A : bool = true alternatives [B]"),
            "36: expected a value (a 64-bit integer, true, false, a type such as bf16, a name in "
            "quotes, $NAME or $(expression)), got 'B'");
  std::string rule =
      "; a declaration is `param NAME : int|bool|type|name = value [in [values] | in "
      "low..high [step n]] [alternatives [values]] [alike] [\"text\"]`";
  EXPECT_EQ(bindText("param A : int = 1 alternatives 2"),
            "31: expected '[' after 'alternatives'" + rule);
  EXPECT_EQ(bindText("param A : int = 1 alternatives [2 3]"),
            "34: expected ']' after the alternatives" + rule);
}

TEST(Parameters, UnknownNamesSuggestTheNearest) {
  llvm::StringRef text = "param CAUSAL : bool = false\nparam BM : int = 1";
  EXPECT_EQ(bindText(text, {{"CASUAL", "true"}}),
            "-D CASUAL: unknown parameter 'CASUAL'; did you mean "
            "'CAUSAL'?; known are CAUSAL, BM");
  EXPECT_EQ(bindText(text, {{"bm", "1"}}),
            "-D bm: unknown parameter 'bm'; did you mean 'BM'?; known are CAUSAL, BM");
  EXPECT_EQ(bindText(text, {{"WINDOW", "1"}}),
            "-D WINDOW: unknown parameter 'WINDOW'; known are CAUSAL, BM");
  EXPECT_EQ(bindText("", {{"A", "1"}}), "-D A: unknown parameter 'A'; the source declares none");
}

TEST(Parameters, AllowedValues) {
  llvm::StringRef text = "param A : int = 64 in [64, 80..112 step 16, 256]";
  EXPECT_EQ(bindText(text, {{"A", "96"}}), "A=96");
  EXPECT_EQ(bindText(text, {{"A", "256"}}), "A=256");
  EXPECT_EQ(bindText(text, {{"A", "97"}}),
            "-D A: parameter 'A' cannot be 97; allowed: 64, 80..112 step 16, 256");
  EXPECT_EQ(bindText("param A : int = 5 in 1..4"),
            "6: the default of parameter 'A' is 5, which is not allowed; allowed: 1..4");
  EXPECT_EQ(bindText("param A : int = 5 in 1..$B\nparam B : int = 8"), "A=5 B=8");
  EXPECT_EQ(bindText("param A : int = 9223372036854775806 in "
                     "-9223372036854775808..9223372036854775807 step 2"),
            "A=9223372036854775806");
  EXPECT_EQ(bindText("param A : int = 1 in 4..1"),
            "21: a range goes from an integer up to another, by "
            "a step of at least 1; got 4..1 step 1");
  EXPECT_EQ(bindText("param A : int = 1 in 1..4 step 0"),
            "21: a range goes from an integer up to another, by a step of at least 1; got 1..4 "
            "step 0");
  EXPECT_EQ(bindText("param A : int = 1 in [true]"), "22: expected a value of kind int, got true");
  EXPECT_EQ(bindText("param A : bool = true in true..false"),
            "29: only an int parameter has a range, 'A' is of kind bool");
}

TEST(Parameters, MalformedDeclarations) {
  std::string form =
      "; a declaration is `param NAME : int|bool|type|name = value [in [values] | in "
      "low..high [step n]] [alternatives [values]] [alike] [\"text\"]`";
  EXPECT_EQ(bindText("param A int = 1"), "8: expected ':' after the name of a parameter" + form);
  EXPECT_EQ(bindText("param A : int"),
            "13: expected '=' and a default after the kind of a parameter" + form);
  EXPECT_EQ(bindText("param A : int = 1 in 3"),
            "22: expected '..' after the low end of a range (a list "
            "of values is `[a, b]`)" +
                form);
  EXPECT_EQ(bindText("param A : int = 1 in [1, 2"),
            "26: expected ']' after the allowed values" + form);
  EXPECT_EQ(bindText("param A : float = 1"),
            "10: a parameter is of kind int, bool, type or name, got 'float'; other numbers "
            "are scalar arguments of a kernel (%eps: f32) or constants");
  EXPECT_EQ(bindText("param a : int = 1"),
            "6: the name of a parameter consists of upper-case letters, "
            "digits and underscores, got 'a'");
  EXPECT_EQ(bindText("param A : int = 1\nparam A : int = 1"),
            "24: parameter 'A' is declared twice");
  EXPECT_EQ(bindText("param A : int = true"),
            "6: parameter 'A' is of kind int, its default is true (bool)");
  EXPECT_EQ(bindText("param A : int = B"),
            "16: expected a value (a 64-bit integer, true, false, a type such as bf16, a name in "
            "quotes, $NAME or $(expression)), got 'B'");
  EXPECT_EQ(bindText("param A : int = $B"),
            "17: unknown parameter 'B'; did you mean 'A'?; known are A");
}

TEST(Parameters, CyclesAndDepth) {
  EXPECT_EQ(bindText("param A : int = $B\nparam B : int = $(A + 1)"),
            "37: the value of parameter 'A' depends on itself");
  EXPECT_EQ(bindText("param A : int = $B\nparam B : int = $(A + 1)", {{"A", "1"}}), "A=1 B=2");
  std::string chain, many;
  for (int i = 0; i < 250; ++i)
    chain += "param A" + std::to_string(i) + " : int = $A" + std::to_string(i + 1) + "\n";
  EXPECT_NE(bindText(chain + "param A250 : int = 1").find("levels deep"), std::string::npos);
  for (int i = 0; i < 257; ++i)
    many += "param A" + std::to_string(i) + " : int = 1\n";
  EXPECT_NE(bindText(many).find("a source declares at most 256 parameters"), std::string::npos);
}
