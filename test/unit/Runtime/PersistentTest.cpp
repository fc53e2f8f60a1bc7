//===- PersistentTest.cpp - Persistent grids and workspaces ---------------===//

#include "PersistentFixture.h"

#include <algorithm>
#include <set>
#include <thread>

using namespace tessera::runtime;
using namespace tessera::runtime::test;
namespace json = llvm::json;

using PersistentTest = PersistentFixture;

//===----------------------------------------------------------------------===//
// Grids
//===----------------------------------------------------------------------===//

TEST_F(PersistentTest, HasABlockForEachMultiprocessorAtMost) {
  EXPECT_EQ(gridOfLaunch(), (std::array<unsigned, 3>{24, 1, 1}));
  fake::getState().multiprocessors = 24;
  EXPECT_EQ(gridOfLaunch(), (std::array<unsigned, 3>{24, 1, 1}));
  fake::getState().multiprocessors = 7;
  EXPECT_EQ(gridOfLaunch(), (std::array<unsigned, 3>{7, 1, 1}));
  EXPECT_EQ(fake::getState().occupancyQueries, 0u);
}

TEST_F(PersistentTest, CountsClusters) {
  kernel()["cluster"] = json::Array{2, 1, 1};
  EXPECT_EQ(gridOfLaunch(), (std::array<unsigned, 3>{48, 1, 1}));
  EXPECT_EQ(fake::getState().launches.back().cluster, (std::array<unsigned, 3>{2, 1, 1}));
  // An odd multiprocessor stays idle.
  fake::getState().multiprocessors = 15;
  EXPECT_EQ(gridOfLaunch(), (std::array<unsigned, 3>{14, 1, 1}));
  // Two blocks may fit on a multiprocessor, but one is what the kernel counts on.
  fake::getState().activeClusters = 14;
  EXPECT_EQ(gridOfLaunch(), (std::array<unsigned, 3>{14, 1, 1}));
  fake::getState().activeClusters = 5;
  EXPECT_EQ(gridOfLaunch(), (std::array<unsigned, 3>{10, 1, 1}));
}

TEST_F(PersistentTest, AsksTheDriverOnce) {
  kernel()["cluster"] = json::Array{4, 1, 1};
  std::unique_ptr<Bundle> bundle = load();
  ASSERT_EQ(launch(*bundle), "");
  fake::State &state = fake::getState();
  EXPECT_EQ(state.occupancyQueries, 1u);
  unsigned attributes = state.attributeQueries, streams = state.captureQueries;
  ASSERT_EQ(launch(*bundle), "");
  EXPECT_EQ(state.occupancyQueries, 1u);
  EXPECT_EQ(state.attributeQueries, attributes);
  EXPECT_EQ(state.captureQueries, streams + 1); // Each launch asks whether it is captured.
  EXPECT_EQ(state.memory.size(), 1u);
  EXPECT_EQ(llvm::cantFail(bundle->getKernels()[0].getCapacity(0)), 132u);
  EXPECT_EQ(state.occupancyQueries, 1u);
}

TEST_F(PersistentTest, EmptyGridLaunchesNothing) {
  for (int i : {TestArguments::Q, TestArguments::K, TestArguments::O, TestArguments::LSE})
    arguments.shapes[i][2] = 0;
  EXPECT_EQ(launch(*load()), "");
  EXPECT_TRUE(fake::getState().launches.empty());
  EXPECT_TRUE(fake::getState().memory.empty());
}

TEST_F(PersistentTest, TakesGridsBeyondTheHardwaresInYAndZ) {
  for (int i : {TestArguments::Q, TestArguments::K, TestArguments::O, TestArguments::LSE})
    arguments.shapes[i][0] = 65536;
  EXPECT_EQ(gridOfLaunch(), (std::array<unsigned, 3>{132, 1, 1}));
  for (int i : {TestArguments::Q, TestArguments::K, TestArguments::O, TestArguments::LSE}) {
    arguments.shapes[i][0] = 1 << 30;
    arguments.strides[i][0] = 8;
  }
  EXPECT_EQ(launch(*load()),
            "kernel 'attend': the grid has 3 x 4 x 1073741824 tiles; a launch counts at "
            "most 2147483647 in all: split the call");
  EXPECT_EQ(status, TESSERA_RUNTIME_INVALID_ARGUMENT);
}

TEST_F(PersistentTest, RefusesDevicesWithoutRoomForACluster) {
  kernel()["cluster"] = json::Array{8, 1, 1};
  fake::getState().activeClusters = 0;
  EXPECT_EQ(launch(*load()), "kernel 'attend': no cluster of 8 blocks fits on device 0; compile "
                             "with a smaller cluster");
  EXPECT_EQ(status, TESSERA_RUNTIME_NO_DEVICE);
  fake::getState().failing = "cuOccupancyMaxActiveClusters";
  EXPECT_EQ(launch(*load()), "kernel 'attend': cuOccupancyMaxActiveClusters: "
                             "CUDA_ERROR_INVALID_VALUE (invalid argument)");
}

TEST_F(PersistentTest, OnlyPersistentKernelsHaveACapacity) {
  kernel().erase("persistent");
  std::unique_ptr<Bundle> bundle = load();
  EXPECT_EQ(takeText(bundle->getKernels()[0].getCapacity(0).takeError()),
            "kernel 'attend' is not persistent: its grid does not depend on the device");
  EXPECT_EQ(status, TESSERA_RUNTIME_INVALID_ARGUMENT);
}

//===----------------------------------------------------------------------===//
// Workspaces
//===----------------------------------------------------------------------===//

TEST_F(PersistentTest, EachStreamHasAWorkspace) {
  std::unique_ptr<Bundle> bundle = load();
  std::set<uint64_t> workspaces;
  for (uintptr_t stream : {0x100, 0x200, 0x0}) {
    ASSERT_EQ(launch(*bundle, stream), "");
    uint64_t workspace = lastWorkspace();
    EXPECT_TRUE(workspaces.insert(workspace).second);
    EXPECT_EQ(fake::getState().memory.at(workspace), kBytes);
    EXPECT_EQ(fake::getState().zeroed.count(workspace), 1u);
    ASSERT_EQ(launch(*bundle, stream), "");
    EXPECT_EQ(lastWorkspace(), workspace);
  }
  EXPECT_EQ(fake::getState().memory.size(), 3u);
  bundle.reset();
  EXPECT_TRUE(fake::getState().memory.empty());
}

TEST_F(PersistentTest, EachContextAndKernelHasAWorkspace) {
  json::Object second = kernel();
  second["name"] = "second";
  description.getAsObject()->getArray("kernels")->push_back(std::move(second));
  std::unique_ptr<Bundle> bundle = load();
  ASSERT_EQ(launch(*bundle), "");
  ASSERT_FALSE(bundle->getKernels()[1].launch(-1, nullptr, arguments.arguments));
  for (int i = 0; i < TestArguments::Scale; ++i)
    arguments.arguments[i].pointer += fake::kMemory;
  ASSERT_EQ(launch(*bundle, 0, /*device=*/1), "");
  EXPECT_EQ(fake::getState().memory.size(), 3u);
  bundle.reset();
  EXPECT_TRUE(fake::getState().memory.empty());
}

TEST_F(PersistentTest, SeveralWorkspacesAreApart) {
  kernel()
      .getArray("launch_parameters")
      ->push_back(json::Object{{"kind", "workspace"}, {"bytes", 1000}});
  fake::getState().parameterSizes.push_back(8);
  std::unique_ptr<Bundle> bundle = load();
  ASSERT_EQ(launch(*bundle), "");
  EXPECT_EQ(fake::getState().launches.back().get<uint64_t>(kWorkspace + 1), lastWorkspace() + 256);
  EXPECT_EQ(fake::getState().memory.at(lastWorkspace()), 1256u);
}

/// Their number is a launch's, and more of them take other memory.
TEST_F(PersistentTest, TicketsLieBehindWorkspaces) {
  auto tiles = [](json::Value extent, int64_t divisor) {
    return json::Object{{"extent", std::move(extent)}, {"divisor", divisor}};
  };
  json::Array views{json::Array{tiles("B", 1), tiles("SQ", 16)}, json::Array{tiles(5, 2)}};
  json::Array &parameters = *kernel().getArray("launch_parameters");
  parameters.push_back(json::Object{{"kind", "tickets"}, {"views", std::move(views)}});
  parameters.push_back(json::Object{{"kind", "workspace"}, {"bytes", 300}});
  for (int i = 0; i < 2; ++i)
    fake::getState().parameterSizes.push_back(8);
  std::unique_ptr<Bundle> bundle = load();
  const KernelInfo &info = bundle->getInfo().kernels[0];
  EXPECT_EQ(info.parameters[kWorkspace + 1].workspaceOffset, 768u);
  EXPECT_EQ(info.workspaceBytes, 768u);
  ASSERT_EQ(launch(*bundle), "");
  const fake::LaunchRecord &record = fake::getState().launches.back();
  EXPECT_EQ(record.get<uint64_t>(kWorkspace + 1), lastWorkspace() + 768);
  EXPECT_EQ(record.get<uint64_t>(kWorkspace + 2), lastWorkspace() + 256);
  DimValues dims;
  llvm::cantFail(checkArguments(info, arguments.arguments, dims));
  auto extentOf = [&](llvm::StringRef name) {
    return dims[llvm::find(info.dims, name) - info.dims.begin()];
  };
  uint64_t tickets = extentOf("B") * llvm::divideCeil(extentOf("SQ"), 16) + 3;
  EXPECT_EQ(fake::getState().memory.at(lastWorkspace()), 768 + 4 * tickets);
  EXPECT_EQ(fake::getState().zeroed.count(lastWorkspace()), 1u);
}

TEST_F(PersistentTest, TooManyTickets) {
  json::Array views{json::Array{json::Object{{"extent", 2147483647}, {"divisor", 1}}},
                    json::Array{json::Object{{"extent", 1}, {"divisor", 1}}}};
  kernel()
      .getArray("launch_parameters")
      ->push_back(json::Object{{"kind", "tickets"}, {"views", std::move(views)}});
  EXPECT_EQ(launch(*load()), "kernel 'attend': the tiles that it adds to in a fixed order are 2^31 "
                             "or more: split the call");
}

TEST_F(PersistentTest, ThreadsDoNotShareTheStreamOfEachThread) {
  std::unique_ptr<Bundle> bundle = load();
  constexpr uintptr_t kPerThread = 2;
  for (int i = 0; i < 3; ++i)
    std::thread([&] {
      for (int launches = 0; launches < 2; ++launches)
        llvm::cantFail(bundle->getKernels()[0].launch(0, reinterpret_cast<void *>(kPerThread),
                                                      arguments.arguments));
    }).join();
  std::set<uint64_t> workspaces;
  for (const fake::LaunchRecord &record : fake::getState().launches)
    workspaces.insert(workspaceOf(record));
  EXPECT_EQ(fake::getState().launches.size(), 6u);
  EXPECT_EQ(workspaces.size(), 3u);
}

TEST_F(PersistentTest, ThreadsShareTheWorkspaceOfAStream) {
  std::unique_ptr<Bundle> bundle = load();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (uintptr_t i = 0; i < 200; ++i)
        llvm::cantFail(bundle->getKernels()[0].launch(0, reinterpret_cast<void *>(0x100 * (i % 5)),
                                                      arguments.arguments));
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(fake::getState().memory.size(), 5u);
  ASSERT_EQ(fake::getState().launches.size(), 800u);
  for (const fake::LaunchRecord &record : fake::getState().launches)
    ASSERT_EQ(fake::getState().zeroed.count(workspaceOf(record)), 1u);
}

TEST_F(PersistentTest, NamesTheDriversErrorsAndTriesAgain) {
  std::unique_ptr<Bundle> bundle = load();
  fake::getState().failing = "cuMemAlloc";
  EXPECT_EQ(launch(*bundle), "kernel 'attend': cuMemAlloc of 12 bytes of workspace: "
                             "CUDA_ERROR_INVALID_VALUE (invalid argument)");
  EXPECT_EQ(status, TESSERA_RUNTIME_DRIVER_ERROR);
  fake::getState().failing = "cuMemsetD8Async";
  EXPECT_EQ(launch(*bundle), "kernel 'attend': cuMemsetD8Async of the workspace: "
                             "CUDA_ERROR_INVALID_VALUE (invalid argument)");
  EXPECT_TRUE(fake::getState().memory.empty());
  EXPECT_TRUE(fake::getState().streams.empty());
  fake::getState().failing = "cuStreamGetCaptureInfo";
  EXPECT_EQ(launch(*bundle), "cuStreamGetCaptureInfo: CUDA_ERROR_INVALID_VALUE (invalid argument)");
  fake::getState().failing = "";
  EXPECT_EQ(launch(*bundle), "");
  EXPECT_EQ(fake::getState().launches.size(), 1u);
}

TEST_F(PersistentTest, TheFakeDriverSetsPagesToZero) {
  const cuda::Driver &driver = fake::getTable();
  constexpr size_t kBytes = 1 << 20, kCleared = kBytes - 100;
  cuda::DevicePointer address = 0;
  ASSERT_EQ(driver.memAlloc(&address, kBytes), 0);
  ASSERT_EQ(driver.memsetD8Async(address, 0xFF, kBytes, nullptr), 0);
  ASSERT_EQ(driver.memsetD8Async(address, 0, kCleared, nullptr), 0);
  const char *memory = reinterpret_cast<const char *>(address);
  EXPECT_EQ(std::count(memory, memory + kCleared, 0), ptrdiff_t(kCleared));
  EXPECT_EQ(std::count(memory + kCleared, memory + kBytes, char(0xFF)), 100);
  EXPECT_EQ(driver.memFree(address), 0);
}

//===----------------------------------------------------------------------===//
// Timelines
//===----------------------------------------------------------------------===//

TEST_F(PersistentTest, ReadsATimelineAndClearsIt) {
  fake::getState().parameterSizes.push_back(8);
  kernel()
      .getArray("launch_parameters")
      ->push_back(json::Object{{"kind", "timeline"}, {"bytes", 100}});
  std::unique_ptr<Bundle> bundle = load();
  Kernel &timed = bundle->getKernels()[0];
  EXPECT_EQ(timed.getKernelInfo()->timelineBytes, 100u);
  EXPECT_EQ(timed.getKernelInfo()->timelineOffset, 256u);
  // Nothing was launched on the stream yet.
  EXPECT_EQ(llvm::cantFail(timed.readTimeline(-1, nullptr)), std::vector<char>(100));
  ASSERT_EQ(launch(*bundle), "");
  auto *memory =
      reinterpret_cast<char *>(fake::getState().launches.back().get<uint64_t>(kWorkspace + 1));
  EXPECT_EQ(reinterpret_cast<uint64_t>(memory), lastWorkspace() + 256);
  memory[0] = 7;
  memory[99] = 8;
  std::vector<char> contents = llvm::cantFail(timed.readTimeline(-1, nullptr));
  EXPECT_EQ(contents.size(), 100u);
  EXPECT_EQ(contents.front(), 7);
  EXPECT_EQ(contents.back(), 8);
  EXPECT_EQ(llvm::cantFail(timed.readTimeline(-1, nullptr)), std::vector<char>(100));
}

TEST_F(PersistentTest, HasNoTimelineUnlessCompiledIn) {
  EXPECT_EQ(takeText(load()->getKernels()[0].readTimeline(-1, nullptr).takeError()),
            "kernel 'attend' records no timeline; compile it with --instrument=timeline");
  EXPECT_EQ(status, TESSERA_RUNTIME_INVALID_ARGUMENT);
}
