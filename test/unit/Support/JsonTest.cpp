//===- JsonTest.cpp - Texts that nest ---------------------------*- C++ -*-===//

#include "lib/Support/Json.h"
#include <gtest/gtest.h>

using namespace tessera;

static std::string nest(unsigned levels, const char *open, const char *close) {
  std::string text;
  for (unsigned i = 0; i < levels; ++i)
    text += open;
  text += "1";
  for (unsigned i = 0; i < levels; ++i)
    text += close;
  return text;
}

static std::string errorOf(llvm::StringRef text) {
  llvm::Expected<llvm::json::Value> value = parseJson(text);
  return value ? "" : llvm::toString(value.takeError());
}

TEST(Json, NestsUpToTheLimit) {
  EXPECT_EQ(errorOf(nest(kMaxJsonDepth, "[", "]")), "");
  EXPECT_EQ(errorOf(nest(kMaxJsonDepth, "{\"a\":", "}")), "");
  EXPECT_EQ(errorOf("[\n" + nest(kMaxJsonDepth, "[", "]") + "]"),
            "[2:128]: more than 128 levels of arrays and objects");
  EXPECT_NE(errorOf(std::string(1000000, '[')), "");
}

TEST(Json, BracketsInStringsDoNotNest) {
  std::string brackets(1000, '[');
  EXPECT_EQ(errorOf("[\"" + brackets + "\"]"), "");
  EXPECT_EQ(errorOf("[\"\\\"" + brackets + "\"]"), "");
  EXPECT_EQ(errorOf("[" + nest(100, "[", "]") + "," + nest(100, "[", "]") + "]"), "");
}
