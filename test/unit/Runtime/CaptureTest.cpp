//===- CaptureTest.cpp - Launches that CUDA graphs capture ----------------===//

#include "PersistentFixture.h"

#include <thread>

using namespace tessera::runtime;
using namespace tessera::runtime::test;
namespace json = llvm::json;

namespace {

class CaptureTest : public PersistentFixture {
protected:
  static constexpr uintptr_t kStream = 0x100;

  void beginCapture() { fake::beginCapture(reinterpret_cast<void *>(kStream)); }

  /// A graph of `count` launches, which are to succeed.
  std::unique_ptr<fake::CapturedGraph> capture(Bundle &bundle, unsigned count = 1) {
    beginCapture();
    for (unsigned i = 0; i < count; ++i)
      EXPECT_EQ(launch(bundle, kStream), "");
    return fake::endCapture();
  }

  void TearDown() override { EXPECT_EQ(fake::getState().callsInDestructors, 0u); }
};

} // namespace

TEST_F(CaptureTest, NeedsNoLaunchBefore) {
  std::unique_ptr<Bundle> bundle = load();
  kernel()["cluster"] = json::Array{2, 1, 1};
  std::unique_ptr<fake::CapturedGraph> graph = capture(*bundle);
  EXPECT_EQ(graph->objects.size(), 1u);
  EXPECT_EQ(fake::getState().moduleLoads, 1u);
  EXPECT_EQ(fake::getState().zeroed.count(lastWorkspace()), 1u);
  EXPECT_TRUE(fake::getState().streams.empty());
  fake::destroyGraph(std::move(graph));
}

TEST_F(CaptureTest, LeavesTheThreadsCaptureModeAsItWas) {
  std::unique_ptr<Bundle> bundle = load();
  beginCapture();
  ASSERT_EQ(launch(*bundle, kStream), "");
  cuda::DevicePointer address = 0;
  EXPECT_EQ(fake::getTable().memAlloc(&address, 1), 900);
  fake::destroyGraph(fake::endCapture());
}

TEST_F(CaptureTest, EachLaunchHasAWorkspaceOfItsOwn) {
  std::unique_ptr<Bundle> bundle = load();
  ASSERT_EQ(launch(*bundle, kStream), "");
  std::unique_ptr<fake::CapturedGraph> first = capture(*bundle, 2), second = capture(*bundle);
  std::set<uint64_t> workspaces;
  for (const fake::LaunchRecord &record : fake::getState().launches)
    workspaces.insert(workspaceOf(record));
  EXPECT_EQ(workspaces.size(), 4u);
  ASSERT_EQ(launch(*bundle, kStream), "");
  EXPECT_EQ(lastWorkspace(), workspaceOf(fake::getState().launches.front()));
  fake::destroyGraph(std::move(first));
  fake::destroyGraph(std::move(second));
}

TEST_F(CaptureTest, AGraphGivesItsWorkspacesBack) {
  std::unique_ptr<Bundle> bundle = load();
  for (unsigned i = 0; i < 5; ++i)
    fake::destroyGraph(capture(*bundle, 2));
  EXPECT_EQ(fake::getState().memory.size(), 2u);
  bundle.reset();
  EXPECT_TRUE(fake::getState().memory.empty());
  EXPECT_EQ(fake::getState().moduleUnloads, 1u);
}

TEST_F(CaptureTest, AGraphOutlivesTheBundle) {
  std::unique_ptr<Bundle> bundle = load();
  std::unique_ptr<fake::CapturedGraph> graph = capture(*bundle);
  bundle.reset();
  EXPECT_EQ(fake::getState().moduleUnloads, 0u);
  EXPECT_EQ(fake::getState().memory.size(), 1u);
  // The driver's thread may not unload the module; whoever loads or destroys the next one does.
  fake::destroyGraph(std::move(graph));
  EXPECT_EQ(fake::getState().moduleUnloads, 0u);
  bundle = load();
  ASSERT_EQ(launch(*bundle), "");
  EXPECT_EQ(fake::getState().moduleUnloads, 1u);
  EXPECT_EQ(fake::getState().memory.size(), 1u);
  EXPECT_EQ(fake::getState().memory.count(lastWorkspace()), 1u);
}

TEST_F(CaptureTest, AGraphKeepsTheModuleOfKernelsWithoutWorkspaces) {
  kernel().getArray("launch_parameters")->pop_back();
  fake::getState().parameterSizes.pop_back();
  std::unique_ptr<Bundle> bundle = load();
  std::unique_ptr<fake::CapturedGraph> graph = capture(*bundle);
  EXPECT_TRUE(fake::getState().memory.empty());
  bundle.reset();
  EXPECT_EQ(fake::getState().moduleUnloads, 0u);
  fake::destroyGraph(std::move(graph));
  load().reset();
  EXPECT_EQ(fake::getState().moduleUnloads, 1u);
}

TEST_F(CaptureTest, OtherThreadsMayLaunchForTheFirstTimeMeanwhile) {
  std::unique_ptr<Bundle> bundle = load();
  beginCapture();
  std::thread([&] { EXPECT_EQ(launch(*bundle, /*stream=*/0x200, /*device=*/0), ""); }).join();
  EXPECT_TRUE(fake::endCapture()->objects.empty());
}

TEST_F(CaptureTest, ThreadsCaptureAndDestroyBesideLaunches) {
  std::unique_ptr<Bundle> bundle = load();
  std::vector<std::unique_ptr<fake::CapturedGraph>> graphs;
  for (unsigned i = 0; i < 100; ++i)
    graphs.push_back(capture(*bundle));
  std::thread destroyer([&] {
    for (std::unique_ptr<fake::CapturedGraph> &graph : graphs)
      fake::destroyGraph(std::move(graph));
  });
  for (unsigned i = 0; i < 100; ++i)
    ASSERT_EQ(launch(*bundle, 0x200 + i), "");
  destroyer.join();
  EXPECT_EQ(fake::getState().memory.size(), 200u);
}

TEST_F(CaptureTest, NamesTheDriversErrorsAndLosesNoMemory) {
  std::unique_ptr<Bundle> bundle = load();
  for (const char *function :
       {"cuThreadExchangeStreamCaptureMode", "cuStreamCreate", "cuStreamSynchronize",
        "cuUserObjectCreate", "cuGraphRetainUserObject"}) {
    beginCapture();
    fake::getState().failing = function;
    EXPECT_NE(launch(*bundle, kStream).find(function), std::string::npos) << function;
    EXPECT_EQ(status, TESSERA_RUNTIME_DRIVER_ERROR);
    fake::getState().failing = "";
    fake::destroyGraph(fake::endCapture());
  }
  EXPECT_TRUE(fake::getState().launches.empty());
  fake::destroyGraph(capture(*bundle));
  EXPECT_EQ(fake::getState().memory.size(), 1u);
}

TEST_F(CaptureTest, RecordsTimelinesWhereItsStreamIsRead) {
  fake::getState().parameterSizes.push_back(8);
  kernel()
      .getArray("launch_parameters")
      ->push_back(json::Object{{"kind", "timeline"}, {"bytes", 100}});
  std::unique_ptr<Bundle> bundle = load();
  std::unique_ptr<fake::CapturedGraph> graph = capture(*bundle);
  const fake::LaunchRecord &record = fake::getState().launches.back();
  auto *timeline = reinterpret_cast<char *>(record.get<uint64_t>(kWorkspace + 1));
  EXPECT_NE(reinterpret_cast<uint64_t>(timeline), lastWorkspace() + 256);
  timeline[0] = 7;
  void *stream = reinterpret_cast<void *>(kStream);
  EXPECT_EQ(llvm::cantFail(bundle->getKernels()[0].readTimeline(-1, stream)).front(), 7);
  fake::destroyGraph(std::move(graph));
}
