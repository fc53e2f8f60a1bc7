//===- LaunchTest.cpp - Argument checks, tensor maps, caches, launches ----===//

#include "FakeDriver.h"
#include "TestBundle.h"

#include "lib/Runtime/DeviceBuffer.h"
#include "lib/Runtime/Error.h"
#include "lib/Runtime/Launch.h"

#include "gtest/gtest.h"

#include <thread>

using namespace tessera::runtime;
using namespace tessera::runtime::test;
namespace json = llvm::json;

namespace {

class LaunchTest : public testing::Test {
protected:
  void SetUp() override {
    fake::reset();
    fake::setCurrentDevice(0);
    fake::getState().parameterSizes = kParameterSizes;
  }

  /// A bundle over the fake driver.
  std::unique_ptr<Bundle> load(const json::Value &description) {
    return llvm::cantFail(Bundle::create(toText(description), &fake::getTable()));
  }

  /// The error of launching `arguments`: "" for none, otherwise its text; its status in `status`.
  std::string launch(Bundle &bundle, const TestArguments &arguments, int device = -1) {
    status = TESSERA_RUNTIME_SUCCESS;
    std::string text;
    llvm::handleAllErrors(bundle.getKernels()[0].launch(device, nullptr, arguments.arguments),
                          [&](const RuntimeError &error) {
                            status = error.getStatus();
                            text = error.getText();
                          });
    return text;
  }

  std::string launchChecked(const TestArguments &arguments) {
    std::string text = launch(*load(makeBundle()), arguments);
    EXPECT_EQ(text.empty(), fake::getState().launches.size() == 1u);
    return text;
  }

  tessera_runtime_status status = TESSERA_RUNTIME_SUCCESS;
  TestArguments arguments;
};

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
// Refusals
//===----------------------------------------------------------------------===//

TEST_F(LaunchTest, RefusesTypes) {
  arguments.arguments[TestArguments::Q].type = TESSERA_TYPE_F16;
  EXPECT_EQ(launchChecked(arguments),
            "kernel 'attend': argument 'q': is a tensor of f16; the kernel takes a tensor of bf16");
  EXPECT_EQ(status, TESSERA_RUNTIME_TYPE_MISMATCH);
  arguments.arguments[TestArguments::Q].type = TESSERA_TYPE_SCALAR_F32;
  EXPECT_EQ(launchChecked(arguments),
            "kernel 'attend': argument 'q': is a scalar of f32; the kernel takes a tensor of bf16");
}

TEST_F(LaunchTest, RefusesCounts) {
  arguments.arguments.pop_back();
  EXPECT_EQ(launchChecked(arguments), "kernel 'attend' takes 5 arguments; 4 were given");
}

TEST_F(LaunchTest, RefusesRanks) {
  arguments.shapes[TestArguments::K].pop_back();
  arguments.update();
  EXPECT_EQ(launchChecked(arguments), "kernel 'attend': argument 'k': has rank 3; the kernel takes "
                                      "rank 4, [B, HK, SQ, 128]");
  EXPECT_EQ(status, TESSERA_RUNTIME_INVALID_ARGUMENT);
}

TEST_F(LaunchTest, RefusesStaticExtents) {
  arguments.shapes[TestArguments::Q][3] = 64;
  EXPECT_EQ(launchChecked(arguments),
            "kernel 'attend': argument 'q': dimension 3 has extent 64; this kernel is compiled for "
            "128 there, [B, H, SQ, 128]");
}

TEST_F(LaunchTest, RefusesDifferentExtentsOfOneName) {
  arguments.shapes[TestArguments::O][2] = 301;
  EXPECT_EQ(
      launchChecked(arguments),
      "kernel 'attend': argument 'o': dimension 2, 'SQ', has extent 301, but 'SQ' is 300 in an "
      "earlier argument; the kernel takes [B, H, SQ, 128], which is [2, 4, 300, 128] here");
}

TEST_F(LaunchTest, RefusesExtentsThatNoDeviceHas) {
  arguments.shapes[TestArguments::Q][2] = int64_t(1) << 31;
  EXPECT_EQ(
      launchChecked(arguments),
      "kernel 'attend': argument 'q': dimension 2 has extent 2147483648; an extent is at least "
      "1 and below 2^31");
  arguments.shapes[TestArguments::Q][2] = -1;
  EXPECT_NE(launchChecked(arguments), "");
}

TEST_F(LaunchTest, RefusesAnExtentOfZeroOutsideTheGrid) {
  json::Value description = makeBundle();
  (*getKernel(description).getArray("arguments"))[1] =
      json::Object{{"name", "k"},       {"kind", "view"},
                   {"element", "bf16"}, {"dims", json::Array{"B", "HK", "SK", 128}},
                   {"access", "read"},  {"alignment", 16}};
  getKernel(description).getArray("dims")->push_back("SK");
  arguments.shapes[TestArguments::K][2] = 0;
  EXPECT_EQ(launch(*load(description), arguments),
            "kernel 'attend': the extent 'SK' is 0; an extent is at least 1");
}

TEST_F(LaunchTest, RefusesRequirements) {
  arguments.shapes[TestArguments::K][1] = 3;
  EXPECT_EQ(launchChecked(arguments),
            "kernel 'attend': 'HK' is 3 and 'H' is 4; 'HK' must divide 'H'");
}

TEST_F(LaunchTest, RefusesRequirementsWithAFactor) {
  json::Value description = makeBundle();
  json::Array *requirements = getKernel(description).getArray("requirements");
  (*(*requirements)[0].getAsObject())["divisor"] = json::Object{{"dim", "HK"}, {"factor", 2}};
  arguments.shapes[TestArguments::K][1] = 2;
  EXPECT_EQ(launch(*load(description), arguments), "");
  arguments.shapes[TestArguments::K][1] = 4;
  EXPECT_EQ(launch(*load(description), arguments),
            "kernel 'attend': 'HK' is 4 and 'H' is 4; 2 times 'HK' must divide 'H'");
}

TEST_F(LaunchTest, RefusesRowsThatBulkStoresWouldWriteBehind) {
  json::Value description = makeBundle();
  json::Array *requirements = getKernel(description).getArray("requirements");
  (*requirements)[0] = json::Object{{"divisor", 2}, {"dividend", "H"}};
  EXPECT_EQ(launch(*load(description), arguments), "");
  (*requirements)[0] = json::Object{{"divisor", 8}, {"dividend", "H"}};
  EXPECT_EQ(launch(*load(description), arguments),
            "kernel 'attend': 'H' is 4 and must be a multiple of 8, for bulk stores write 16 bytes "
            "at a time; with store = direct it may be anything");
}

TEST_F(LaunchTest, RefusesExtentsAboveABound) {
  json::Value description = makeBundle();
  json::Array *requirements = getKernel(description).getArray("requirements");
  requirements->push_back(json::Object{{"dim", "H"}, {"at_most", 4}});
  EXPECT_EQ(launch(*load(description), arguments), "");
  requirements->back() = json::Object{{"dim", "H"}, {"at_most", 3}};
  EXPECT_EQ(launch(*load(description), arguments),
            "kernel 'attend': 'H' is 4 and must be at most 3, the width of its tiles");
}

TEST_F(LaunchTest, RefusesStrides) {
  arguments.strides[TestArguments::Q][3] = 2;
  EXPECT_EQ(
      launchChecked(arguments),
      "kernel 'attend': argument 'q': the innermost dimension has stride 2; its elements must "
      "be contiguous (stride 1): pass a copy with that layout");
  arguments.strides[TestArguments::Q][3] = 1;
  arguments.strides[TestArguments::Q][2] = 508;
  EXPECT_EQ(
      launchChecked(arguments),
      "kernel 'attend': argument 'q': dimension 2 has stride 508 (1016 bytes); strides must be "
      "multiples of 8 elements (16 bytes): pad the dimension inside it");
  arguments.strides[TestArguments::Q][2] = -512;
  EXPECT_EQ(launchChecked(arguments), "kernel 'attend': argument 'q': dimension 2 has stride -512; "
                                      "strides are not negative");
  arguments.strides[TestArguments::Q][2] = int64_t(1) << 60;
  EXPECT_EQ(launchChecked(arguments),
            "kernel 'attend': argument 'q': dimension 2 has extent 300 and stride "
            "1152921504606846976, more than an address space");
}

TEST_F(LaunchTest, StrideZeroIsForReadingOnly) {
  arguments.strides[TestArguments::K][1] = 0;
  EXPECT_EQ(launchChecked(arguments), "");
  fake::reset();
  fake::setCurrentDevice(0);
  arguments.strides[TestArguments::O][1] = 0;
  EXPECT_EQ(launchChecked(arguments),
            "kernel 'attend': argument 'o': dimension 1 has stride 0, so that results would "
            "overwrite each other; pass a tensor that is not expanded");
}

/// What is said of the two tensors that share memory, and of the one of them that is written.
static std::string sharing(llvm::StringRef first, llvm::StringRef second, llvm::StringRef written) {
  return llvm::formatv("kernel 'attend': arguments '{0}' and '{1}' share memory, and the kernel "
                       "writes '{2}'; pass a tensor of its own",
                       first, second, written);
}

TEST_F(LaunchTest, RefusesResultsInMemoryOfOthers) {
  uint64_t &q = arguments.arguments[TestArguments::Q].pointer;
  uint64_t &k = arguments.arguments[TestArguments::K].pointer;
  uint64_t &o = arguments.arguments[TestArguments::O].pointer;
  uint64_t &lse = arguments.arguments[TestArguments::LSE].pointer;
  constexpr uint64_t bytes = 2 * 4 * 300 * 128 * 2; // of q and o
  uint64_t apart = o;
  k = q; // Two that are read.
  EXPECT_EQ(launch(*load(makeBundle()), arguments), "");
  k = apart + bytes;
  o = q;
  EXPECT_EQ(launch(*load(makeBundle()), arguments), sharing("q", "o", "o"));
  o = q + bytes - 16;
  EXPECT_EQ(launch(*load(makeBundle()), arguments), sharing("q", "o", "o"));
  o = q + bytes;
  EXPECT_EQ(launch(*load(makeBundle()), arguments), "");
  o = q - bytes;
  EXPECT_EQ(launch(*load(makeBundle()), arguments), "");
  o = q - bytes + 16;
  EXPECT_EQ(launch(*load(makeBundle()), arguments), sharing("q", "o", "o"));
  o = apart;
  lse = o + 256;
  EXPECT_EQ(launch(*load(makeBundle()), arguments), sharing("o", "lse", "lse"));
  // What has no elements shares none.
  for (int i : {TestArguments::Q, TestArguments::O, TestArguments::LSE})
    arguments.shapes[i][0] = 0;
  arguments.shapes[TestArguments::K][0] = 0;
  EXPECT_EQ(launch(*load(makeBundle()), arguments), "");
}

TEST_F(LaunchTest, ChecksWhatOnlyTheAddressesChange) {
  std::unique_ptr<Bundle> bundle = load(makeBundle());
  auto launchWith = [&](uint64_t q, uint64_t o) {
    EXPECT_EQ(launch(*bundle, arguments), "");
    uint64_t &address = arguments.arguments[TestArguments::Q].pointer;
    uint64_t &result = arguments.arguments[TestArguments::O].pointer;
    uint64_t oldAddress = std::exchange(address, q), oldResult = std::exchange(result, o);
    std::string text = launch(*bundle, arguments);
    address = oldAddress;
    result = oldResult;
    return text;
  };
  uint64_t q = arguments.arguments[TestArguments::Q].pointer;
  uint64_t o = arguments.arguments[TestArguments::O].pointer;
  EXPECT_EQ(launchWith(q + 256, o), "");
  EXPECT_EQ(launchWith(q + 8, o),
            "kernel 'attend': argument 'q': the address 0x12000000008 is no multiple of 16 bytes; "
            "pass a tensor that begins at one");
  EXPECT_EQ(launchWith(0, o),
            "kernel 'attend': argument 'q': the address is null; pass a device address");
  EXPECT_EQ(launchWith(q, q + 256), sharing("q", "o", "o"));
  // One result after the other, without a copy of the arguments that the same layout shares.
  arguments.arguments[TestArguments::Q].type = TESSERA_TYPE_F16;
  EXPECT_EQ(launch(*bundle, arguments), "kernel 'attend': argument 'q': is a tensor of f16; the "
                                        "kernel takes a tensor of bf16");
  EXPECT_EQ(status, TESSERA_RUNTIME_TYPE_MISMATCH);
  arguments.arguments[TestArguments::Q].type = TESSERA_TYPE_BF16;
  arguments.arguments[TestArguments::Q].rank = 3;
  EXPECT_NE(launch(*bundle, arguments), "");
  arguments.arguments[TestArguments::Q].rank = 4;
  arguments.arguments[TestArguments::K].strides = nullptr;
  EXPECT_NE(launch(*bundle, arguments), "");
}

TEST_F(LaunchTest, ResultsMayInterleaveWithOthers) {
  // q and o are the halves of the rows of one array, [B, S, H, 2, D].
  for (int i : {TestArguments::Q, TestArguments::O})
    arguments.strides[i] = {300 * 4 * 256, 256, 4 * 256, 1};
  uint64_t q = arguments.arguments[TestArguments::Q].pointer;
  uint64_t &o = arguments.arguments[TestArguments::O].pointer;
  for (int64_t rows : {-1, 0, 1, 5}) {
    o = q + rows * 512 + 256;
    EXPECT_EQ(launch(*load(makeBundle()), arguments), "") << rows;
    o = q + rows * 512 + 240;
    EXPECT_EQ(launch(*load(makeBundle()), arguments), sharing("q", "o", "o")) << rows;
  }
  // Each head of o lies in the gap behind all heads of q.
  arguments.strides[TestArguments::Q] = {300 * 4 * 256, 128, 4 * 256, 1};
  arguments.strides[TestArguments::O] = {300 * 4 * 256, 128, 4 * 256, 1};
  o = q + 1024;
  EXPECT_EQ(launch(*load(makeBundle()), arguments), "");
  arguments.strides[TestArguments::O][1] = 136;
  EXPECT_EQ(launch(*load(makeBundle()), arguments), sharing("q", "o", "o"));
}

TEST_F(LaunchTest, RefusesResultsThatShareMemoryWithThemselves) {
  arguments.strides[TestArguments::O] = {300 * 4 * 128, 128, 4 * 128 - 8, 1};
  EXPECT_EQ(launchChecked(arguments),
            "kernel 'attend': argument 'o': elements at different indices share memory, so that "
            "results would overwrite each other; pass a tensor whose strides keep them apart");
  // Windows of what is only read may overlap.
  arguments.strides[TestArguments::O] = {300 * 4 * 128, 128, 4 * 128, 1};
  arguments.strides[TestArguments::Q] = {128, 128, 64, 1};
  EXPECT_EQ(launchChecked(arguments), "");
}

TEST_F(LaunchTest, RefusesStridesThatDoNotFitTheirParameter) {
  json::Value description = makeBundle();
  (*getKernel(description).getArray("launch_parameters"))[5] =
      json::Object{{"kind", "stride"}, {"argument", "o"}, {"dim", 0}, {"type", "i32"}};
  arguments.strides[TestArguments::O][0] = int64_t(1) << 32;
  EXPECT_EQ(launch(*load(description), arguments),
            "kernel 'attend': argument 'o': dimension 0 has stride 4294967296; this kernel takes "
            "32-bit strides");
}

TEST_F(LaunchTest, RefusesAddresses) {
  uint64_t &pointer = arguments.arguments[TestArguments::Q].pointer;
  pointer += 8;
  EXPECT_EQ(launchChecked(arguments),
            "kernel 'attend': argument 'q': the address 0x12000000008 is no multiple of 16 bytes; "
            "pass a tensor that begins at one");
  pointer = 0;
  EXPECT_EQ(launchChecked(arguments),
            "kernel 'attend': argument 'q': the address is null; pass a device address");
  pointer = 0x1000;
  EXPECT_EQ(launchChecked(arguments),
            "kernel 'attend': argument 'q': the address 0x1000 is not memory that CUDA knows "
            "(cuPointerGetAttribute: CUDA_ERROR_INVALID_VALUE (invalid argument)); pass a device "
            "address");
  pointer = 2 * fake::kMemory;
  EXPECT_EQ(launchChecked(arguments),
            "kernel 'attend': argument 'q' lies on device 1; the launch is on device 0");
}

TEST_F(LaunchTest, TakesPinnedMemory) {
  arguments.arguments[TestArguments::LSE].pointer = fake::kPinnedMemory;
  EXPECT_EQ(launchChecked(arguments), "");
}

TEST_F(LaunchTest, RefusesGridsThatTheHardwareCannotNumber) {
  for (int i : {TestArguments::Q, TestArguments::K, TestArguments::O, TestArguments::LSE})
    arguments.shapes[i][0] = 65536;
  EXPECT_EQ(launchChecked(arguments),
            "kernel 'attend': the grid has 65536 blocks in dimension z; the hardware takes at most "
            "65535: split the call");
}

TEST_F(LaunchTest, RefusesDevices) {
  fake::getState().capabilityMajor = 10;
  EXPECT_EQ(launchChecked(arguments),
            "the bundle is compiled for sm_90a; device 0 (Fake Hopper) has "
            "compute capability 10.0");
  EXPECT_EQ(status, TESSERA_RUNTIME_NO_DEVICE);
  fake::getState().capabilityMajor = 9;
  fake::getState().sharedMemory = 100 * 1024;
  EXPECT_EQ(
      launchChecked(arguments),
      "kernel 'attend' needs 164000 bytes of shared memory; a block on device 0 (Fake Hopper) "
      "has at most 102400");
}

TEST_F(LaunchTest, NamesTheDriversErrors) {
  fake::getState().failing = "cuModuleLoadDataEx";
  EXPECT_EQ(launchChecked(arguments),
            "cuModuleLoadDataEx of the cubin for sm_90a (the assembler's log): "
            "CUDA_ERROR_INVALID_VALUE (invalid argument)");
  EXPECT_EQ(status, TESSERA_RUNTIME_DRIVER_ERROR);
  fake::getState().failing = "cuTensorMapEncodeTiled";
  EXPECT_EQ(
      launchChecked(arguments),
      "kernel 'attend': argument 'q': cuTensorMapEncodeTiled with address 0x12000000000, "
      "element bf16, dims [64, 300, 2, 4, 2], byte strides [1024, 128, 256, 307200], box [64, "
      "64, 2, 1, 1], swizzle mode 3: CUDA_ERROR_INVALID_VALUE (invalid argument)");
  fake::getState().failing = "cuLaunchKernelEx";
  EXPECT_EQ(launchChecked(arguments),
            "kernel 'attend': cuLaunchKernelEx of 3x4x2 blocks of 384 threads with 164000 bytes of "
            "shared memory: CUDA_ERROR_INVALID_VALUE (invalid argument)");
  fake::getState().failing = "cuFuncSetAttribute";
  EXPECT_EQ(launchChecked(arguments),
            "kernel 'attend': cuFuncSetAttribute of 164000 bytes of shared memory: "
            "CUDA_ERROR_INVALID_VALUE (invalid argument)");
}

TEST_F(LaunchTest, AFailedLoadIsTriedAgain) {
  std::unique_ptr<Bundle> bundle = load(makeBundle());
  fake::getState().failing = "cuModuleGetFunction";
  EXPECT_NE(launch(*bundle, arguments), "");
  EXPECT_EQ(fake::getState().moduleUnloads, 1u);
  fake::getState().failing = "";
  EXPECT_EQ(launch(*bundle, arguments), "");
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
