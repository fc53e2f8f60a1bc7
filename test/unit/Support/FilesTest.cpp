//===- FilesTest.cpp - Reading and writing what is no regular file --------===//

#include "lib/Support/Files.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>

using namespace tessera;

namespace {
class Files : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("tessera-files", root));
  }
  void TearDown() override { llvm::sys::fs::remove_directories(root); }

  std::string path(llvm::StringRef name) {
    llvm::SmallString<128> result(root);
    llvm::sys::path::append(result, name);
    return std::string(result);
  }
  static std::string read(llvm::StringRef path) {
    auto buffer = readInput(path);
    return buffer ? (*buffer)->getBuffer().str() : buffer.getError().message();
  }
  unsigned countFiles() {
    std::error_code error;
    unsigned count = 0;
    for (llvm::sys::fs::directory_iterator it(root, error), end; it != end; it.increment(error))
      ++count;
    return count;
  }

  llvm::SmallString<128> root;
};
} // namespace

TEST_F(Files, ReadsWhatItWrites) {
  EXPECT_FALSE(writeOutput(path("a"), "text"));
  EXPECT_EQ(read(path("a")), "text");
  EXPECT_FALSE(writeOutput(path("a"), ""));
  EXPECT_EQ(read(path("a")), "");
  EXPECT_FALSE(replaceOutput(path("a"), "again"));
  EXPECT_EQ(read(path("a")), "again");
  EXPECT_EQ(countFiles(), 1u);
  EXPECT_EQ(read(path("none")), "No such file or directory");
  EXPECT_EQ(read(root), "Is a directory");
}

TEST_F(Files, ReadsPipesToTheirEnd) {
  std::string text(200000, 'x');
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  std::thread writer([&] { llvm::consumeError(writeOutput(path("pipe"), text)); });
  EXPECT_EQ(read(path("pipe")), text);
  writer.join();
  EXPECT_EQ(read("/dev/null"), "");
  EXPECT_EQ(read("/dev/zero"), "File too large");
}

TEST_F(Files, SaysWhatCannotBeWritten) {
  EXPECT_EQ(toString(writeOutput("/dev/full", "text")),
            "cannot write '/dev/full': No space left on device");
  EXPECT_EQ(toString(writeOutput(path("none/a"), "text")),
            "cannot write '" + path("none/a") + "': No such file or directory");
  EXPECT_EQ(toString(replaceOutput(path("none/a"), "text")),
            "cannot write '" + path("none/a") + "': No such file or directory");
  EXPECT_FALSE(writeOutput("/dev/null", "text"));
  EXPECT_EQ(countFiles(), 0u);
}
