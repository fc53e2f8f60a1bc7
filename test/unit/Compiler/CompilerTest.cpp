//===- CompilerTest.cpp - The C++ interface of the compiler ---------------===//

#include "tessera/Compiler.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <gtest/gtest.h>
#include <set>
#include <thread>

using namespace tessera;

static const char *const source = R"(param N : int = 64 in [64, 128] "columns"

tile.kernel @product(%a: !tile.view<[M, $N], f16>, %b: !tile.view<[64, $N], f16>, %c: !tile.view<[M, 64], f32>)
    grid(%m = M ceildiv 128) {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %row = arith.muli %m, %c128 : index
  %at = tile.load %a[%row, %c0] : !tile.view<[M, $N], f16> -> tensor<128x$(N)xf16>
  %bt = tile.load %b[%c0, %c0] : !tile.view<[64, $N], f16> -> tensor<64x$(N)xf16>
  %btt = tile.transpose %bt : tensor<64x$(N)xf16> -> tensor<$(N)x64xf16>
  %ct = tile.dot %at, %btt : tensor<128x$(N)xf16>, tensor<$(N)x64xf16> -> tensor<128x64xf32>
  tile.store %ct, %c[%row, %c0] : tensor<128x64xf32>, !tile.view<[M, 64], f32>
}

tile.kernel @copy(%a: !tile.view<[M, 64], f16>, %c: !tile.view<[M, 64], f16>) grid(%m = M ceildiv 64) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %m, %c64 : index
  %t = tile.load %a[%row, %c0] : !tile.view<[M, 64], f16> -> tensor<64x64xf16>
  tile.store %t, %c[%row, %c0] : tensor<64x64xf16>, !tile.view<[M, 64], f16>
}
)";

namespace {
class CompilerTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("tessera-compiler", directory));
  }
  void TearDown() override { llvm::sys::fs::remove_directories(directory); }

  CompileResult run(const std::string &text = source) {
    diagnostics.clear();
    return compile(text, "test.tile", options,
                   [this](const Diagnostic &diagnostic) { diagnostics.push_back(diagnostic); });
  }

  bool has(Severity severity) const {
    for (const Diagnostic &diagnostic : diagnostics)
      if (diagnostic.severity == severity)
        return true;
    return false;
  }

  std::string path(llvm::StringRef name) {
    llvm::SmallString<128> result(directory);
    llvm::sys::path::append(result, name);
    return std::string(result);
  }

  std::set<std::string> files(llvm::StringRef name) {
    std::set<std::string> result;
    std::error_code error;
    for (llvm::sys::fs::directory_iterator it(path(name), error), end; it != end && !error;
         it.increment(error))
      result.insert(llvm::sys::path::filename(it->path()).str());
    return result;
  }

  llvm::SmallString<128> directory;
  CompileOptions options;
  std::vector<Diagnostic> diagnostics;
};
} // namespace

TEST_F(CompilerTest, BindsAndPrints) {
  options.emit = EmitKind::Tile;
  options.defines = {{"N", "128"}};
  CompileResult result = run();
  EXPECT_EQ(result.status, CompileStatus::Success);
  EXPECT_TRUE(diagnostics.empty());
  EXPECT_NE(result.output.find("tensor<128x128xf16>"), std::string::npos);
  EXPECT_NE(result.output.find("@copy"), std::string::npos);
}

TEST_F(CompilerTest, CompilesOneKernel) {
  options.emit = EmitKind::Tile;
  options.kernel = "product";
  CompileResult result = run();
  EXPECT_EQ(result.status, CompileStatus::Success);
  EXPECT_EQ(result.output.find("@copy"), std::string::npos);
  options.kernel = "produkt";
  result = run();
  EXPECT_EQ(result.status, CompileStatus::UsageError);
  EXPECT_TRUE(result.output.empty());
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_EQ(diagnostics[0].message, "the source has no kernel 'produkt'; it has product, copy");
}

TEST_F(CompilerTest, OverridesTheSchedule) {
  options.emit = EmitKind::Scheduled;
  options.kernel = "product";
  options.schedule = "consumers=1";
  CompileResult result = run();
  EXPECT_EQ(result.status, CompileStatus::Success);
  EXPECT_NE(result.output.find("consumers = 1"), std::string::npos) << result.output;
  EXPECT_FALSE(has(Severity::Remark));
  options.remarks = true;
  run();
  EXPECT_TRUE(has(Severity::Remark));
  options.schedule = "konsumers=1";
  result = run();
  EXPECT_EQ(result.status, CompileStatus::UsageError);
  EXPECT_TRUE(has(Severity::Error));
}

TEST_F(CompilerTest, TellsErrorsApart) {
  options.emit = EmitKind::Tile;
  options.defines = {{"N", "65"}};
  EXPECT_EQ(run().status, CompileStatus::UsageError);
  options.defines = {{"K", "64"}};
  EXPECT_EQ(run().status, CompileStatus::UsageError);
  options.defines.clear();
  EXPECT_EQ(run("tile.kernel @k(").status, CompileStatus::SourceError);
  ASSERT_FALSE(diagnostics.empty());
  EXPECT_EQ(diagnostics[0].file, "test.tile");
  EXPECT_EQ(diagnostics[0].line, 1u);
  EXPECT_EQ(run("").status, CompileStatus::SourceError);
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_EQ(diagnostics[0].message, "the source has no kernel; write one with tile.kernel");
  options.emit = EmitKind::Scheduled;
  options.schedule = "consumers=4";
  options.kernel = "product";
  EXPECT_EQ(run().status, CompileStatus::SourceError);
  ASSERT_FALSE(diagnostics.empty());
  EXPECT_EQ(diagnostics[0].line, 3u);
  EXPECT_EQ(diagnostics[0].message.find("see current operation"), std::string::npos);
}

TEST_F(CompilerTest, TellsRefusalsApart) {
  options.emit = EmitKind::Scheduled;
  options.kernel = "product";
  auto kindOf = [&](const std::string &schedule, const std::string &text) {
    options.schedule = schedule;
    EXPECT_EQ(run(text).status, CompileStatus::SourceError);
    return diagnostics.empty() ? RefusalKind::None : diagnostics.front().kind;
  };
  EXPECT_EQ(kindOf("", "tile.kernel @product("), RefusalKind::None);
  EXPECT_EQ(kindOf("consumers=4", source), RefusalKind::Unsupported);
  EXPECT_EQ(kindOf("consumers=2,consumer_registers=24", source), RefusalKind::Registers);
  // 2 tiles of 128 x 1024 and 64 x 1024 numbers of 16 bits.
  std::string wide = source;
  for (size_t place; (place = wide.find("128] \"columns\"")) != std::string::npos;)
    wide.replace(place, 3, "1024");
  options.defines = {{"N", "1024"}};
  EXPECT_EQ(kindOf("", wide), RefusalKind::SharedMemory);
}

TEST_F(CompilerTest, ReportsFilesItCannotRead) {
  CompileResult result = compileFile(path("none.tile"), options,
                                     [this](const Diagnostic &d) { diagnostics.push_back(d); });
  EXPECT_EQ(result.status, CompileStatus::UsageError);
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_EQ(diagnostics[0].file, path("none.tile"));
  EXPECT_EQ(compileFile(path("none.tile"), options, nullptr).status, CompileStatus::UsageError);
}

TEST_F(CompilerTest, DumpsWhatPassesChange) {
  // A stage that leaves these kernels as they are, and one of which the last pass changes a kernel.
  options.emit = EmitKind::Tile;
  options.dumpDir = path("dump/deep");
  EXPECT_EQ(run().status, CompileStatus::Success);
  EXPECT_EQ(files("dump/deep"),
            (std::set<std::string>{"00-source.copy.mlir", "00-source.product.mlir"}));
  options.emit = EmitKind::Chosen;
  options.kernel = "copy";
  options.dumpDir = path("dump/chosen");
  EXPECT_EQ(run().status, CompileStatus::Success);
  std::set<std::string> dumped = files("dump/chosen");
  EXPECT_EQ(dumped.size(), 2u);
  EXPECT_EQ(*dumped.begin(), "00-source.copy.mlir");
  EXPECT_TRUE(llvm::StringRef(*dumped.rbegin()).ends_with("-tile-choose-schedule.copy.mlir"));
  auto file = llvm::MemoryBuffer::getFile(path("dump/deep/00-source.copy.mlir"));
  ASSERT_TRUE(static_cast<bool>(file));
  EXPECT_TRUE((*file)->getBuffer().contains("@copy"));
  EXPECT_FALSE((*file)->getBuffer().contains("@product"));
  // What was dumped is a source again.
  EXPECT_EQ(run((*file)->getBuffer().str()).status, CompileStatus::Success);
}

TEST_F(CompilerTest, RefusesADumpThatCannotBeWritten) {
  options.emit = EmitKind::Tile;
  options.dumpDir = "/dev/null/dump";
  EXPECT_EQ(run().status, CompileStatus::UsageError);
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_NE(diagnostics[0].message.find("/dev/null/dump"), std::string::npos);
}

TEST_F(CompilerTest, WritesAReproducer) {
  options.emit = EmitKind::Scheduled;
  options.kernel = "product";
  options.schedule = "consumers=4";
  options.reproducer = path("reproducer.mlir");
  EXPECT_EQ(run().status, CompileStatus::SourceError);
  auto file = llvm::MemoryBuffer::getFile(options.reproducer);
  ASSERT_TRUE(static_cast<bool>(file));
  EXPECT_TRUE((*file)->getBuffer().contains("tile-choose-schedule"));
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_NE(diagnostics[0].message.find("no schedule"), std::string::npos);
  options.reproducer = "/dev/null/reproducer.mlir";
  EXPECT_EQ(run().status, CompileStatus::SourceError);
  ASSERT_EQ(diagnostics.size(), 2u);
  EXPECT_NE(diagnostics[1].message.find(options.reproducer), std::string::npos);
}

TEST_F(CompilerTest, RunsInSeveralThreads) {
  std::vector<std::string> outputs(4);
  std::vector<std::thread> threads;
  for (std::string &output : outputs)
    threads.emplace_back([&output] {
      CompileOptions own;
      own.emit = EmitKind::Tile;
      for (unsigned i = 0; i < 8; ++i)
        output = compile(source, "test.tile", own, nullptr).output;
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &output : outputs)
    EXPECT_EQ(output, outputs[0]);
  EXPECT_FALSE(outputs[0].empty());
}
