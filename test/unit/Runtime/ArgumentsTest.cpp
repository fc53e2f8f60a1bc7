//===- ArgumentsTest.cpp - What a launch refuses --------------------------===//

#include "LaunchFixture.h"

using namespace tessera::runtime;
using namespace tessera::runtime::test;
namespace json = llvm::json;

namespace {
class ArgumentsTest : public LaunchFixture {};
} // namespace
TEST_F(ArgumentsTest, RefusesTypes) {
  arguments.arguments[TestArguments::Q].type = TESSERA_TYPE_F16;
  EXPECT_EQ(launchChecked(arguments),
            "kernel 'attend': argument 'q': is a tensor of f16; the kernel takes a tensor of bf16");
  EXPECT_EQ(status, TESSERA_RUNTIME_TYPE_MISMATCH);
  arguments.arguments[TestArguments::Q].type = TESSERA_TYPE_SCALAR_F32;
  EXPECT_EQ(launchChecked(arguments),
            "kernel 'attend': argument 'q': is a scalar of f32; the kernel takes a tensor of bf16");
}

TEST_F(ArgumentsTest, RefusesCounts) {
  arguments.arguments.pop_back();
  EXPECT_EQ(launchChecked(arguments), "kernel 'attend' takes 5 arguments; 4 were given");
}

TEST_F(ArgumentsTest, RefusesRanks) {
  arguments.shapes[TestArguments::K].pop_back();
  arguments.update();
  EXPECT_EQ(launchChecked(arguments), "kernel 'attend': argument 'k': has rank 3; the kernel takes "
                                      "rank 4, [B, HK, SQ, 128]");
  EXPECT_EQ(status, TESSERA_RUNTIME_INVALID_ARGUMENT);
}

TEST_F(ArgumentsTest, RefusesStaticExtents) {
  arguments.shapes[TestArguments::Q][3] = 64;
  EXPECT_EQ(launchChecked(arguments),
            "kernel 'attend': argument 'q': dimension 3 has extent 64; this kernel is compiled for "
            "128 there, [B, H, SQ, 128]");
}

TEST_F(ArgumentsTest, RefusesDifferentExtentsOfOneName) {
  arguments.shapes[TestArguments::O][2] = 301;
  EXPECT_EQ(
      launchChecked(arguments),
      "kernel 'attend': argument 'o': dimension 2, 'SQ', has extent 301, but 'SQ' is 300 in an "
      "earlier argument; the kernel takes [B, H, SQ, 128], which is [2, 4, 300, 128] here");
}

TEST_F(ArgumentsTest, RefusesExtentsThatNoDeviceHas) {
  arguments.shapes[TestArguments::Q][2] = int64_t(1) << 31;
  EXPECT_EQ(
      launchChecked(arguments),
      "kernel 'attend': argument 'q': dimension 2 has extent 2147483648; an extent is at least "
      "1 and below 2^31");
  arguments.shapes[TestArguments::Q][2] = -1;
  EXPECT_NE(launchChecked(arguments), "");
}

TEST_F(ArgumentsTest, RefusesAnExtentOfZeroOutsideTheGrid) {
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

TEST_F(ArgumentsTest, RefusesRequirements) {
  arguments.shapes[TestArguments::K][1] = 3;
  EXPECT_EQ(launchChecked(arguments),
            "kernel 'attend': 'HK' is 3 and 'H' is 4; 'HK' must divide 'H'");
}

TEST_F(ArgumentsTest, RefusesRequirementsWithAFactor) {
  json::Value description = makeBundle();
  json::Array *requirements = getKernel(description).getArray("requirements");
  (*(*requirements)[0].getAsObject())["divisor"] = json::Object{{"dim", "HK"}, {"factor", 2}};
  arguments.shapes[TestArguments::K][1] = 2;
  EXPECT_EQ(launch(*load(description), arguments), "");
  arguments.shapes[TestArguments::K][1] = 4;
  EXPECT_EQ(launch(*load(description), arguments),
            "kernel 'attend': 'HK' is 4 and 'H' is 4; 2 times 'HK' must divide 'H'");
}

TEST_F(ArgumentsTest, RefusesWhatANumberDoesNotDivide) {
  json::Value description = makeBundle();
  json::Array *requirements = getKernel(description).getArray("requirements");
  (*requirements)[0] = json::Object{{"divisor", 2}, {"dividend", "H"}};
  EXPECT_EQ(launch(*load(description), arguments), "");
  (*requirements)[0] = json::Object{{"divisor", 8}, {"dividend", "H"}};
  EXPECT_EQ(launch(*load(description), arguments),
            "kernel 'attend': 'H' is 4 and must be a multiple of 8: its source requires it, or "
            "bulk stores do, which write 16 bytes at a time; for these use store = direct");
}

TEST_F(ArgumentsTest, RefusesExtentsAboveABound) {
  json::Value description = makeBundle();
  json::Array *requirements = getKernel(description).getArray("requirements");
  requirements->push_back(json::Object{{"dim", "H"}, {"at_most", 4}});
  EXPECT_EQ(launch(*load(description), arguments), "");
  requirements->back() = json::Object{{"dim", "H"}, {"at_most", 3}};
  EXPECT_EQ(launch(*load(description), arguments),
            "kernel 'attend': 'H' of argument 'q' is 4 and must be at most 3, as its tiles or "
            "tensor maps reach no further");
}

TEST_F(ArgumentsTest, RefusesScalarsThatAreNotAboveABound) {
  json::Value description = makeBundle();
  (*(*getKernel(description).getArray("arguments"))[TestArguments::Scale].getAsObject())["above"] =
      0.25;
  std::unique_ptr<Bundle> bundle = load(description);
  auto launchWith = [&](float scale) {
    arguments.arguments[TestArguments::Scale].scalar.f32 = scale;
    return launch(*bundle, arguments);
  };
  // The plan of the first launch is found by the others, whose layouts are the same.
  EXPECT_EQ(launchWith(0.5), "");
  auto refusal = [](llvm::StringRef value) {
    return ("kernel 'attend': argument 'scale': is " + value +
            "; the kernel takes finite numbers above 0.25")
        .str();
  };
  EXPECT_EQ(launchWith(0.25), refusal("0.25"));
  EXPECT_EQ(launchWith(-1), refusal("-1"));
  EXPECT_EQ(launchWith(std::numeric_limits<float>::infinity()), refusal("inf"));
  EXPECT_EQ(launchWith(std::numeric_limits<float>::quiet_NaN()), refusal("nan"));
  EXPECT_EQ(status, TESSERA_RUNTIME_INVALID_ARGUMENT);
  EXPECT_EQ(launchWith(1), "");
}

TEST_F(ArgumentsTest, RefusesStrides) {
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

TEST_F(ArgumentsTest, StrideZeroIsForReadingOnly) {
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

TEST_F(ArgumentsTest, RefusesResultsInMemoryOfOthers) {
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

TEST_F(ArgumentsTest, ChecksWhatOnlyTheAddressesChange) {
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

TEST_F(ArgumentsTest, ResultsMayInterleaveWithOthers) {
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

TEST_F(ArgumentsTest, RefusesResultsThatShareMemoryWithThemselves) {
  arguments.strides[TestArguments::O] = {300 * 4 * 128, 128, 4 * 128 - 8, 1};
  EXPECT_EQ(launchChecked(arguments),
            "kernel 'attend': argument 'o': elements at different indices share memory, so that "
            "results would overwrite each other; pass a tensor whose strides keep them apart");
  // Windows of what is only read may overlap.
  arguments.strides[TestArguments::O] = {300 * 4 * 128, 128, 4 * 128, 1};
  arguments.strides[TestArguments::Q] = {128, 128, 64, 1};
  EXPECT_EQ(launchChecked(arguments), "");
}

TEST_F(ArgumentsTest, RefusesStridesThatDoNotFitTheirParameter) {
  json::Value description = makeBundle();
  (*getKernel(description).getArray("launch_parameters"))[5] =
      json::Object{{"kind", "stride"}, {"argument", "o"}, {"dim", 0}, {"type", "i32"}};
  arguments.strides[TestArguments::O][0] = int64_t(1) << 32;
  EXPECT_EQ(launch(*load(description), arguments),
            "kernel 'attend': argument 'o': dimension 0 has stride 4294967296; this kernel takes "
            "32-bit strides");
}

TEST_F(ArgumentsTest, RefusesAddresses) {
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

TEST_F(ArgumentsTest, TakesPinnedMemory) {
  arguments.arguments[TestArguments::LSE].pointer = fake::kPinnedMemory;
  EXPECT_EQ(launchChecked(arguments), "");
}

TEST_F(ArgumentsTest, RefusesGridsThatTheHardwareCannotNumber) {
  for (int i : {TestArguments::Q, TestArguments::K, TestArguments::O, TestArguments::LSE})
    arguments.shapes[i][0] = 65536;
  EXPECT_EQ(launchChecked(arguments),
            "kernel 'attend': the grid has 65536 blocks in dimension z; the hardware takes at most "
            "65535: split the call");
}

TEST_F(ArgumentsTest, FlattensGridsThatTheHardwareCannotNumber) {
  json::Value description = makeBundle();
  json::Object &kernel = getKernel(description);
  kernel["flat"] = true;
  kernel["cluster"] = json::Array{2, 1, 1};
  auto launchWith = [&](int64_t batches) {
    for (int i : {TestArguments::Q, TestArguments::K, TestArguments::O, TestArguments::LSE})
      arguments.shapes[i][0] = batches;
    return launch(*load(description), arguments);
  };
  ASSERT_EQ(launchWith(65535), "");
  EXPECT_EQ(fake::getState().launches.back().grid, (std::array<unsigned, 3>{6, 4, 65535}));
  ASSERT_EQ(launchWith(65536), "");
  EXPECT_EQ(fake::getState().launches.back().grid, (std::array<unsigned, 3>{6 * 4 * 65536, 1, 1}));
  EXPECT_EQ(launchWith(1 << 27),
            "kernel 'attend': the grid has 6 x 4 x 134217728 tiles; a launch counts at most "
            "2147483647 in all: split the call");
}

TEST_F(ArgumentsTest, RefusesDevices) {
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

TEST_F(ArgumentsTest, NamesTheDriversErrors) {
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

TEST_F(ArgumentsTest, AFailedLoadIsTriedAgain) {
  std::unique_ptr<Bundle> bundle = load(makeBundle());
  fake::getState().failing = "cuModuleGetFunction";
  EXPECT_NE(launch(*bundle, arguments), "");
  EXPECT_EQ(fake::getState().moduleUnloads, 1u);
  fake::getState().failing = "";
  EXPECT_EQ(launch(*bundle, arguments), "");
}
