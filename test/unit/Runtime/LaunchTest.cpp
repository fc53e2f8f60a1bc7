//===- LaunchTest.cpp - Tensor maps, caches, launches -----------------------===//

#include "LaunchFixture.h"

#include "lib/Runtime/DeviceBuffer.h"

#include <thread>

using namespace tessera::runtime;
using namespace tessera::runtime::test;
namespace json = llvm::json;

namespace {
class LaunchTest : public LaunchFixture {};
} // namespace

//===----------------------------------------------------------------------===//
// What reaches the driver
//===----------------------------------------------------------------------===//

TEST_F(LaunchTest, PassesParametersInOrder) {
  ASSERT_EQ(launchChecked(arguments), "");
  const fake::LaunchRecord &record = fake::getState().launches[0];
  EXPECT_EQ(record.symbol, "attend_entry");
  EXPECT_EQ(record.grid, (std::array<unsigned, 3>{3, 4, 2}));
  EXPECT_EQ(record.block, (std::array<unsigned, 3>{384, 1, 1}));
  EXPECT_EQ(record.cluster, (std::array<unsigned, 3>{1, 1, 1}));
  EXPECT_EQ(record.sharedMemory, 164000u);
  EXPECT_EQ(record.get<uint64_t>(0), 0u); // the number of the encoded map
  EXPECT_EQ(record.get<uint64_t>(1), 1u);
  EXPECT_EQ(record.get<uint64_t>(2), arguments.arguments[TestArguments::O].pointer);
  EXPECT_EQ(record.get<uint64_t>(3), arguments.arguments[TestArguments::LSE].pointer);
  EXPECT_EQ(record.get<int32_t>(4), 300);
  EXPECT_EQ(record.get<int64_t>(5), 4 * 128);
  EXPECT_EQ(record.get<int64_t>(6), 2);
  EXPECT_EQ(record.get<float>(7), 0.125f);
  EXPECT_EQ(fake::getState().sharedMemoryRequests, std::vector<int>{164000});
}

TEST_F(LaunchTest, EncodesTheRecipe) {
  ASSERT_EQ(launchChecked(arguments), "");
  ASSERT_EQ(fake::getState().encodes.size(), 2u);
  const fake::EncodeRecord &q = fake::getState().encodes[0], &k = fake::getState().encodes[1];
  EXPECT_EQ(q.dataType, 9); // CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
  EXPECT_EQ(q.swizzle, 3);
  EXPECT_EQ(q.l2Promotion, 2);
  EXPECT_EQ(q.interleave, 0);
  EXPECT_EQ(q.oobFill, 0);
  EXPECT_EQ(q.address, arguments.arguments[TestArguments::Q].pointer);
  EXPECT_EQ(q.dims, (std::vector<uint64_t>{64, 300, 2, 4, 2}));
  EXPECT_EQ(q.strides, (std::vector<uint64_t>{1024, 128, 256, 307200}));
  EXPECT_EQ(q.box, (std::vector<uint32_t>{64, 64, 2, 1, 1}));
  EXPECT_EQ(q.elementStrides, (std::vector<uint32_t>{1, 1, 1, 1, 1}));
  EXPECT_EQ(k.swizzle, 2);
  EXPECT_EQ(k.dims, (std::vector<uint64_t>{32, 300, 4, 2, 2}));
  EXPECT_EQ(k.strides, (std::vector<uint64_t>{512, 64, 256, 153600}));
}

TEST_F(LaunchTest, StridesOfExtentOneAreIgnored) {
  for (int i : {TestArguments::Q, TestArguments::K, TestArguments::O}) {
    arguments.shapes[i][0] = 1;
    arguments.strides[i][0] = -7;
  }
  arguments.shapes[TestArguments::LSE][0] = 1;
  ASSERT_EQ(launchChecked(arguments), "");
  EXPECT_EQ(fake::getState().encodes[0].strides[3], 128u);
}

TEST_F(LaunchTest, StridesThatWrapLeadBack) {
  json::Value description = makeBundle();
  json::Object &map = *(*getKernel(description).getArray("launch_parameters"))[0].getAsObject();
  (*map.getArray("dims"))[1].getAsObject()->insert({"wraps", true});
  ASSERT_EQ(launch(*load(description), arguments), "");
  uint64_t stride = fake::getState().encodes[0].strides[0];
  EXPECT_EQ(stride, (uint64_t(1) << 34) - 1024);
  EXPECT_EQ((stride << 30) + (uint64_t(1024) << 30), 0u);
}

TEST_F(LaunchTest, LetsOnlyKernelsThatWaitBeginEarly) {
  json::Value description = makeBundle();
  ASSERT_EQ(launch(*load(description), arguments), "");
  EXPECT_FALSE(fake::getState().launches[0].pdl);
  getKernel(description)["pdl"] = true;
  getKernel(description)["cluster"] = json::Array{1, 2, 1};
  ASSERT_EQ(launch(*load(description), arguments), "");
  EXPECT_TRUE(fake::getState().launches[1].pdl);
  EXPECT_EQ(fake::getState().launches[1].cluster, (std::array<unsigned, 3>{1, 2, 1}));
}

TEST_F(LaunchTest, RequestsAClusterOnlyWhenThereIsOne) {
  json::Value description = makeBundle();
  getKernel(description)["cluster"] = json::Array{1, 2, 1};
  ASSERT_EQ(launch(*load(description), arguments), "");
  EXPECT_EQ(fake::getState().launches[0].cluster, (std::array<unsigned, 3>{1, 2, 1}));
}

TEST_F(LaunchTest, LaunchesWholeClusters) {
  ASSERT_EQ(launch(*load(makeBundle()), arguments), "");
  json::Value description = makeBundle();
  getKernel(description)["cluster"] = json::Array{2, 1, 1};
  ASSERT_EQ(launch(*load(description), arguments), "");
  auto [x, y, z] = fake::getState().launches[0].grid;
  EXPECT_EQ(fake::getState().launches[1].grid, (std::array<unsigned, 3>{2 * x, y, z}));
}

TEST_F(LaunchTest, AllowsClustersThatNotAllDevicesHave) {
  json::Value description = makeBundle();
  getKernel(description)["cluster"] = json::Array{8, 1, 1};
  ASSERT_EQ(launch(*load(description), arguments), "");
  EXPECT_EQ(fake::getState().largeClusters, 0u);
  getKernel(description)["cluster"] = json::Array{16, 1, 1};
  ASSERT_EQ(launch(*load(description), arguments), "");
  EXPECT_EQ(fake::getState().largeClusters, 1u);
  EXPECT_EQ(fake::getState().launches[1].grid[0], 2 * fake::getState().launches[0].grid[0]);
}

TEST_F(LaunchTest, DefaultSharedMemoryIsNotRequested) {
  json::Value description = makeBundle();
  getKernel(description)["shared_memory"] = 48 * 1024;
  ASSERT_EQ(launch(*load(description), arguments), "");
  EXPECT_TRUE(fake::getState().sharedMemoryRequests.empty());
}

TEST_F(LaunchTest, EmptyGridLaunchesNothing) {
  for (int i : {TestArguments::Q, TestArguments::K, TestArguments::O, TestArguments::LSE}) {
    arguments.shapes[i][2] = 0;
    arguments.arguments[i].pointer = 0;
  }
  EXPECT_EQ(launch(*load(makeBundle()), arguments), "");
  EXPECT_TRUE(fake::getState().launches.empty());
  EXPECT_EQ(fake::getState().moduleLoads, 0u);
}

//===----------------------------------------------------------------------===//
// Caches, contexts, threads
//===----------------------------------------------------------------------===//

TEST_F(LaunchTest, EncodesOnceForEachAddressShapeAndStrides) {
  std::unique_ptr<Bundle> bundle = load(makeBundle());
  auto encodesOf = [&] {
    size_t before = fake::getState().encodes.size();
    EXPECT_EQ(launch(*bundle, arguments), "");
    return fake::getState().encodes.size() - before;
  };
  EXPECT_EQ(encodesOf(), 2u);
  unsigned queries = fake::getState().pointerQueries;
  EXPECT_EQ(encodesOf(), 0u);
  EXPECT_EQ(fake::getState().pointerQueries, queries);
  arguments.arguments[TestArguments::Q].pointer += 256;
  EXPECT_EQ(encodesOf(), 1u);
  EXPECT_EQ(fake::getState().launches.back().get<uint64_t>(0), 2u);
  arguments.strides[TestArguments::K][0] += 8;
  EXPECT_EQ(encodesOf(), 1u);
  arguments.arguments[TestArguments::Q].pointer -= 256;
  EXPECT_LE(encodesOf(), 1u); // 1 when the two addresses share a slot
  EXPECT_EQ(fake::getState().moduleLoads, 1u);
  uint64_t map = fake::getState().launches.back().get<uint64_t>(0);
  EXPECT_EQ(fake::getState().encodes[map].address, arguments.arguments[TestArguments::Q].pointer);
}

TEST_F(LaunchTest, ManyAddressesGetTheirOwnMaps) {
  std::unique_ptr<Bundle> bundle = load(makeBundle());
  uint64_t base = arguments.arguments[TestArguments::Q].pointer;
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 300; ++i) {
      arguments.arguments[TestArguments::Q].pointer = base + 16 * i;
      ASSERT_EQ(launch(*bundle, arguments), "");
      uint64_t map = fake::getState().launches.back().get<uint64_t>(0);
      ASSERT_EQ(fake::getState().encodes[map].address, base + 16 * i);
    }
}

TEST_F(LaunchTest, LayoutsHaveParametersOfTheirOwn) {
  std::unique_ptr<Bundle> bundle = load(makeBundle());
  auto &batches = arguments.shapes;
  int64_t &stride = arguments.strides[TestArguments::O][0];
  int64_t dense = stride;
  // More layouts than are remembered, of which each comes again at once and later.
  for (int round = 0; round < 4; ++round)
    for (int i = 1; i <= 300; ++i) {
      for (int argument = 0; argument < TestArguments::Scale; ++argument)
        batches[argument][0] = i;
      stride = dense + 8 * (round / 2);
      arguments.arguments[TestArguments::Scale].scalar.f32 = i;
      for (int again = 0; again < 2; ++again) {
        ASSERT_EQ(launch(*bundle, arguments), "");
        const fake::LaunchRecord &record = fake::getState().launches.back();
        ASSERT_EQ(record.grid[2], static_cast<unsigned>(i));
        ASSERT_EQ(record.get<float>(7), static_cast<float>(i));
        uint64_t map = record.get<uint64_t>(0);
        ASSERT_EQ(fake::getState().encodes[map].dims.back(), static_cast<uint64_t>(i));
      }
    }
}

TEST_F(LaunchTest, LoadsOneModuleForEachDevice) {
  std::unique_ptr<Bundle> bundle = load(makeBundle());
  ASSERT_EQ(launch(*bundle, arguments), "");
  for (int i = 0; i < TestArguments::Scale; ++i)
    arguments.arguments[i].pointer += fake::kMemory;
  ASSERT_EQ(launch(*bundle, arguments, /*device=*/1), "");
  ASSERT_EQ(launch(*bundle, arguments, /*device=*/1), "");
  EXPECT_EQ(fake::getState().moduleLoads, 2u);
  EXPECT_EQ(fake::getState().launches[0].device, 0);
  EXPECT_EQ(fake::getState().launches[1].device, 1);
  cuda::Context current = nullptr;
  fake::getTable().ctxGetCurrent(&current);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(current), 1u); // device 0 again
  bundle.reset();
  EXPECT_EQ(fake::getState().moduleUnloads, 2u);
}

TEST_F(LaunchTest, UsesThePrimaryContextWhenNoneIsCurrent) {
  fake::setCurrentDevice(-1);
  EXPECT_EQ(launch(*load(makeBundle()), arguments, /*device=*/0), "");
  EXPECT_EQ(launch(*load(makeBundle()), arguments),
            "no CUDA context is current on this thread; name a device number instead");
  EXPECT_EQ(status, TESSERA_RUNTIME_NO_DEVICE);
  EXPECT_EQ(launch(*load(makeBundle()), arguments, /*device=*/2),
            "there is no CUDA device 2; this machine has 2");
}

TEST_F(LaunchTest, ThreadsShareAKernel) {
  std::unique_ptr<Bundle> bundle = load(makeBundle());
  constexpr int kThreads = 4, kLaunches = 200;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      TestArguments own;
      uint64_t &pointer = own.arguments[TestArguments::Q].pointer;
      for (int i = 0; i < kLaunches; ++i) {
        pointer = fake::kMemory + 0x1000000 + 16 * (i % 7) + 4096 * t;
        own.arguments[TestArguments::Scale].scalar.f32 = static_cast<float>(pointer & 0xffff);
        llvm::cantFail(bundle->getKernels()[0].launch(0, nullptr, own.arguments));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(fake::getState().moduleLoads, 1u);
  ASSERT_EQ(fake::getState().launches.size(), size_t(kThreads * kLaunches));
  for (const fake::LaunchRecord &record : fake::getState().launches) {
    uint64_t address = fake::getState().encodes[record.get<uint64_t>(0)].address;
    ASSERT_EQ(static_cast<float>(address & 0xffff), record.get<float>(7));
  }
}

TEST_F(LaunchTest, PrepareLoadsTheModule) {
  std::unique_ptr<Bundle> bundle = load(makeBundle());
  EXPECT_FALSE(bundle->getKernels()[0].prepare(0));
  EXPECT_EQ(fake::getState().moduleLoads, 1u);
  ASSERT_EQ(launch(*bundle, arguments), "");
  EXPECT_EQ(fake::getState().moduleLoads, 1u);
}

//===----------------------------------------------------------------------===//
// Device memory
//===----------------------------------------------------------------------===//

TEST_F(LaunchTest, DeviceBufferCopies) {
  fake::setCurrentDevice(-1);
  DeviceBuffer buffer = llvm::cantFail(DeviceBuffer::allocate(fake::getTable(), 0, 4));
  std::vector<char> out(4);
  EXPECT_FALSE(buffer.upload({'a', 'b', 'c', 'd'}));
  EXPECT_FALSE(buffer.download(out));
  EXPECT_EQ(out, (std::vector<char>{'a', 'b', 'c', 'd'}));
  EXPECT_EQ(llvm::toString(buffer.upload({'a'})), "1 bytes for a buffer of 4");
  fake::getState().failing = "cuCtxSynchronize";
  EXPECT_EQ(llvm::toString(buffer.download(out)),
            "cuCtxSynchronize: CUDA_ERROR_INVALID_VALUE (invalid argument)");
}
