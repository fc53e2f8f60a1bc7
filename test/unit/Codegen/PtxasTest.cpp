//===- PtxasTest.cpp - The search for ptxas -------------------------------===//

#include "lib/Codegen/Ptxas.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace tessera;

TEST(Ptxas, ParsesVersions) {
  EXPECT_EQ(parseToolkitVersion("Cuda compilation tools, release 12.9, V12.9.86"),
            llvm::VersionTuple(12, 9));
  EXPECT_EQ(parseToolkitVersion("Cuda compilation tools, release 13.0, V13.0.88\nBuild"),
            llvm::VersionTuple(13, 0));
  EXPECT_TRUE(parseToolkitVersion("").empty());
  EXPECT_TRUE(parseToolkitVersion("release of something").empty());
  EXPECT_TRUE(parseToolkitVersion("release 12.x").empty());
}

namespace {
/// A directory tree with programs called ptxas, and an environment that names only it.
class PtxasSearch : public testing::Test {
protected:
  void SetUp() override {
    for (const char *name : {"PATH", "CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "TMPDIR"}) {
      const char *value = getenv(name);
      saved.emplace_back(name, value ? std::optional<std::string>(value) : std::nullopt);
      unsetenv(name);
    }
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("tessera-ptxas", root));
    setenv("PATH", path("bin").c_str(), 1);
  }

  void TearDown() override {
    for (auto &[name, value] : saved)
      value ? setenv(name, value->c_str(), 1) : unsetenv(name);
    llvm::sys::fs::remove_directories(root);
  }

  std::string path(llvm::StringRef relative) {
    llvm::SmallString<128> result(root);
    llvm::sys::path::append(result, relative);
    return std::string(result);
  }

  void install(llvm::StringRef relative, llvm::StringRef script) {
    std::string file = path(relative);
    llvm::sys::fs::create_directories(llvm::sys::path::parent_path(file));
    std::error_code error;
    llvm::raw_fd_ostream stream(file, error);
    ASSERT_FALSE(error);
    stream << "#!/bin/sh\n" << script << "\n";
    stream.close();
    llvm::sys::fs::setPermissions(file, llvm::sys::fs::all_all);
  }

  void installRelease(llvm::StringRef relative, llvm::StringRef release) {
    install(relative, ("echo 'Cuda compilation tools, release " + release + ", V'").str());
  }

  std::string find(llvm::StringRef requested = "") {
    llvm::Expected<Ptxas> found = findPtxas(requested, path("toolkit"));
    if (!found)
      return llvm::toString(found.takeError());
    llvm::StringRef result = found->path;
    result.consume_front(root.str());
    return result.str();
  }

  llvm::SmallString<128> root;
  std::vector<std::pair<const char *, std::optional<std::string>>> saved;
};
} // namespace

TEST_F(PtxasSearch, PrefersPathThenTheToolkitThenWheels) {
  installRelease("venv/lib/python3.11/site-packages/nvidia/cuda_nvcc/bin/ptxas", "12.9");
  setenv("VIRTUAL_ENV", path("venv").c_str(), 1);
  installRelease("cuda/bin/ptxas", "12.4");
  setenv("CUDA_HOME", path("cuda").c_str(), 1);
  EXPECT_EQ(find(), "/cuda/bin/ptxas");
  installRelease("bin/ptxas", "12.3");
  EXPECT_EQ(find(), "/bin/ptxas");
}

TEST_F(PtxasSearch, PassesOverWhatIsTooOld) {
  installRelease("bin/ptxas", "11.8");
  installRelease("cuda/bin/ptxas", "12.4");
  setenv("CUDA_PATH", path("cuda").c_str(), 1);
  EXPECT_EQ(find(), "/cuda/bin/ptxas");
}

TEST_F(PtxasSearch, DoesNotPassOverTheOneRequested) {
  installRelease("bin/ptxas", "13.0");
  installRelease("old/ptxas", "12.2");
  EXPECT_NE(find(path("old/ptxas")).find("(of CUDA 12.2)"), std::string::npos);
  EXPECT_NE(find(path("none/ptxas")).find("which does not exist"), std::string::npos);
}

TEST_F(PtxasSearch, SearchesAVirtualEnvironment) {
  installRelease("venv/lib/python3.13/site-packages/nvidia/cu13/bin/ptxas", "13.1");
  setenv("VIRTUAL_ENV", path("venv").c_str(), 1);
  EXPECT_EQ(find(), "/venv/lib/python3.13/site-packages/nvidia/cu13/bin/ptxas");
}

TEST_F(PtxasSearch, AsksPython) {
  install("bin/python3", "echo '" + path("site-packages") + "'");
  installRelease("site-packages/nvidia/cuda_nvcc/bin/ptxas", "12.8");
  EXPECT_EQ(find(), "/site-packages/nvidia/cuda_nvcc/bin/ptxas");
}

TEST_F(PtxasSearch, RunsWithFilesInMemory) {
  install("bin/ptxas",
          "if [ \"$1\" = --version ]; then echo release 12.6,; exit; fi\n"
          "for last; do :; done\ncat \"$3\" > \"$last\"; echo said; echo \"$last\" > " +
              path("name"));
  llvm::Expected<Ptxas> ptxas = findPtxas("");
  ASSERT_TRUE(static_cast<bool>(ptxas));
  setenv("PATH", "/bin:/usr/bin", 1);
  setenv("TMPDIR", path("none").c_str(), 1);
  llvm::Expected<PtxasRun> run = runPtxas(*ptxas, "ptx\n.loc 1 2 3\n", {});
  ASSERT_TRUE(static_cast<bool>(run));
  EXPECT_EQ(run->exitCode, 0);
  EXPECT_EQ(run->log, "said\n");
  EXPECT_EQ(run->cubin, "ptx\n//.loc 1 2 3\n");
  auto name = llvm::MemoryBuffer::getFile(path("name"));
  ASSERT_TRUE(static_cast<bool>(name));
  EXPECT_TRUE((*name)->getBuffer().starts_with("/proc/" + std::to_string(getpid()) + "/"));
  EXPECT_FALSE(llvm::sys::fs::exists((*name)->getBuffer().trim()));
}

TEST_F(PtxasSearch, SaysWhereItLooked) {
  std::string message = find();
  for (const char *part :
       {"PATH", "CUDA_HOME", "CUDA_PATH", "toolkit", "nvidia-cuda-nvcc", "--ptxas"})
    EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
}

TEST_F(PtxasSearch, KeepsLineInfoOnRequest) {
  install("bin/ptxas", "if [ \"$1\" = --version ]; then echo release 12.6,; exit; fi\n"
                       "for last; do :; done\n/bin/cat \"$4\" > \"$last\"");
  llvm::Expected<Ptxas> ptxas = findPtxas("");
  ASSERT_TRUE(static_cast<bool>(ptxas));
  llvm::Expected<PtxasRun> run = runPtxas(*ptxas, ".loc 1 2 3\n", {"-lineinfo"});
  ASSERT_TRUE(static_cast<bool>(run));
  EXPECT_EQ(run->cubin, ".loc 1 2 3\n");
}
