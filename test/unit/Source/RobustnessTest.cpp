//===- RobustnessTest.cpp - Damaged sources are refused, not crashed on ---===//

#include "tessera/Compiler.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <gtest/gtest.h>
#include <random>

using namespace tessera;

namespace {
/// Reads a source and expects that it is accepted or refused with at least one error.
void expectHandled(const std::string &source) {
  unsigned errors = 0;
  SourceInfo info = inspect(source, "damaged.tile", {}, [&](const Diagnostic &diagnostic) {
    errors += diagnostic.severity == Severity::Error;
  });
  if (info.status == CompileStatus::Success)
    EXPECT_EQ(errors, 0u) << source;
  else
    EXPECT_GT(errors, 0u) << source;
}

/// Every source of the repository's kernels.
std::vector<std::string> getKernels() {
  std::vector<std::string> sources;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(TESSERA_KERNELS_DIR, error), end; it != end && !error;
       it.increment(error))
    if (llvm::StringRef(it->path()).ends_with(".tile"))
      sources.push_back((*llvm::MemoryBuffer::getFile(it->path()))->getBuffer().str());
  EXPECT_FALSE(error);
  EXPECT_GE(sources.size(), 2u);
  return sources;
}
} // namespace

TEST(Robustness, Truncated) {
  for (const std::string &source : getKernels())
    for (size_t length = 0; length < source.size(); length += 61)
      expectHandled(source.substr(0, length));
}

TEST(Robustness, LinesShuffled) {
  std::mt19937 random(1);
  for (const std::string &source : getKernels()) {
    llvm::SmallVector<llvm::StringRef> lines;
    llvm::StringRef(source).split(lines, '\n');
    for (int round = 0; round < 20; ++round) {
      std::shuffle(lines.begin(), lines.end(), random);
      expectHandled(llvm::join(lines, "\n"));
    }
    // Two lines exchanged leave most of the source as it was.
    for (int round = 0; round < 60; ++round) {
      lines.clear();
      llvm::StringRef(source).split(lines, '\n');
      std::swap(lines[random() % lines.size()], lines[random() % lines.size()]);
      expectHandled(llvm::join(lines, "\n"));
    }
  }
}

TEST(Robustness, BytesChanged) {
  std::mt19937 random(2);
  const llvm::StringRef bytes = "$()[]{}<>%!#@\"\\:,=?-0179xAZaz \n\t\0\xff";
  for (const std::string &source : getKernels())
    for (int round = 0; round < 300; ++round) {
      std::string damaged = source;
      for (int change = 0; change < 1 + round % 4; ++change)
        damaged[random() % damaged.size()] = bytes[random() % bytes.size()];
      expectHandled(damaged);
    }
}

TEST(Robustness, DeepNesting) {
  for (const char *open :
       {"(", "[", "{", "<", "tuple<", "module {", "() -> (", "$(", "$if true\n"}) {
    std::string source;
    for (int i = 0; i < 50000; ++i)
      source += open;
    expectHandled(source);
    expectHandled("!a = " + source);
    expectHandled("\"op\"() {a = " + source);
  }
}

TEST(Robustness, LongChains) {
  const int count = 200000;
  auto repeat = [](llvm::StringRef text) {
    std::string repeated;
    for (int i = 0; i < count; ++i)
      repeated += text;
    return repeated;
  };
  expectHandled("module attributes {tile.x = affine_map<(d0) -> (" + repeat("-") + "d0)>} {}");
  expectHandled("module attributes {tile.x = affine_map<(d0) -> (" + repeat("d0 + ") + "d0)>} {}");
  expectHandled("module attributes {tile.x = " + repeat("@a::") + "@a} {}");
  expectHandled("module attributes {tile.x = " + repeat("() -> ") + "()} {}");
  expectHandled(repeat("^bb0:"));
  expectHandled(repeat("\n"));
  std::string aliases = "!a0 = i32\n";
  for (int i = 0; i < count; ++i)
    aliases += "!a" + std::to_string(i + 1) + " = tuple<!a" + std::to_string(i) + ">\n";
  expectHandled(aliases + "module attributes {x = !a" + std::to_string(count) + "} {}");
}
