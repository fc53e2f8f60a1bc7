//===- SequenceTest.cpp - Calls that launch several kernels ---------------===//

#include "PersistentFixture.h"

#include "llvm/Support/MathExtras.h"

using namespace tessera::runtime;
using namespace tessera::runtime::test;
namespace json = llvm::json;

namespace {

/// Twice the test kernel, whose workspace is that of PersistentFixture: from q and k to a workspace
/// of bf16, and from there to o. Its dimensions and arguments are those of the kernel.
constexpr const char *kSequence = R"({
  "name": "twice",
  "derived_dims": [{"name": "ROWS", "factors": ["B", "H", 3], "divisor": 5}],
  "workspaces": [
    {"name": "between", "element": "bf16", "dims": ["B", "H", "SQ", 128]},
    {"name": "sum", "element": "f32", "dims": ["ROWS", 3], "zeroed": true}],
  "launches": [
    {"kernel": "attend", "arguments": ["q", "k", "between", "lse", "scale"]},
    {"kernel": "attend", "arguments": ["between", "k", "o", "lse", "scale"]}]
})";

class SequenceTest : public PersistentFixture {
protected:
  static constexpr uintptr_t kStream = 0x100;
  /// [2, 4, 300, 128] of bf16, and ceil(24 / 5) rows of 4 elements of f32, as 3 become 4.
  static constexpr uint64_t kBetween = 2 * 4 * 300 * 128 * 2, kCallBytes = kBetween + 5 * 16;
  static constexpr unsigned kOutput = 2; ///< the kernel's parameter with the address of its result

  void SetUp() override {
    PersistentFixture::SetUp();
    json::Object &bundle = *description.getAsObject();
    bundle["version"] = 2;
    json::Value twice = llvm::cantFail(json::parse(kSequence));
    for (llvm::StringRef shared : {"dims", "arguments"})
      (*twice.getAsObject())[shared] = *kernel().get(shared);
    bundle["sequences"] = json::Array{std::move(twice)};
  }

  json::Object &sequence() {
    return *(*description.getAsObject()->getArray("sequences"))[0].getAsObject();
  }
  std::string call(Bundle &bundle, uintptr_t stream = 0,
                   std::optional<LentMemory> lent = std::nullopt) {
    return takeText(bundle.getKernels().back().launch(-1, reinterpret_cast<void *>(stream),
                                                      arguments.arguments, lent));
  }
  /// Where the last call has its workspace.
  static uint64_t getBetween() {
    auto &launches = fake::getState().launches;
    return launches[launches.size() - 2].get<uint64_t>(kOutput);
  }
  std::string read() {
    return takeText(Bundle::create(toText(description), &fake::getTable()).takeError());
  }
};

} // namespace

TEST_F(SequenceTest, LaunchesInOrder) {
  std::unique_ptr<Bundle> bundle = load();
  ASSERT_EQ(bundle->getKernels().size(), 2u);
  ASSERT_EQ(call(*bundle, kStream), "");
  auto &launches = fake::getState().launches;
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0].stream, reinterpret_cast<void *>(kStream));
  EXPECT_EQ(launches[1].get<uint64_t>(kOutput), arguments.arguments[TestArguments::O].pointer);
  // The first map of the second launch is over the workspace.
  const fake::EncodeRecord &map = fake::getState().encodes[launches[1].get<uint32_t>(0)];
  EXPECT_EQ(map.address, getBetween());
  EXPECT_EQ(map.strides[0], 256u);
}

TEST_F(SequenceTest, TakesKernelsOfSeveralImages) {
  json::Object &object = *description.getAsObject();
  object["version"] = 4;
  object["further_images"] = json::Array{json::Object{{"kind", "cubin"}, {"base64", "YWI="}}};
  json::Object other(kernel());
  other["name"] = "other";
  other["image"] = 1;
  object.getArray("kernels")->push_back(std::move(other));
  (*(*sequence().getArray("launches"))[1].getAsObject())["kernel"] = "other";
  std::unique_ptr<Bundle> bundle = load();
  ASSERT_EQ(call(*bundle, kStream), "");
  EXPECT_EQ(fake::getState().moduleLoads, 2u);
  EXPECT_EQ(fake::getState().moduleOf, (std::vector<uintptr_t>{1, 2}));
  bundle.reset();
  EXPECT_EQ(fake::getState().moduleUnloads, 2u);
  EXPECT_TRUE(fake::getState().memory.empty());
}

TEST_F(SequenceTest, UnloadsWhatWasLoadedBeforeAnImageFailed) {
  json::Object &object = *description.getAsObject();
  object["version"] = 4;
  object["further_images"] = json::Array{json::Object{{"kind", "cubin"}, {"base64", "YWI="}}};
  fake::getState().mostModules = 1;
  std::unique_ptr<Bundle> bundle = load();
  EXPECT_NE(call(*bundle, kStream).find("cuModuleLoadDataEx of the cubin"), std::string::npos);
  EXPECT_EQ(fake::getState().moduleUnloads, 1u);
}

TEST_F(SequenceTest, KeepsAWorkspaceForEachStream) {
  std::unique_ptr<Bundle> bundle = load();
  ASSERT_EQ(call(*bundle, kStream), "");
  uint64_t first = getBetween();
  EXPECT_EQ(fake::getState().memory.at(first), kCallBytes);
  ASSERT_EQ(call(*bundle, kStream), "");
  EXPECT_EQ(getBetween(), first);
  ASSERT_EQ(call(*bundle, 0x200), "");
  EXPECT_NE(getBetween(), first);
  // That of the kernel is another, and zero.
  EXPECT_EQ(fake::getState().zeroed.count(workspaceOf(fake::getState().launches[0])), 1u);
  bundle.reset();
  EXPECT_TRUE(fake::getState().memory.empty());
}

TEST_F(SequenceTest, AllocatesAgainForMore) {
  std::unique_ptr<Bundle> bundle = load();
  ASSERT_EQ(call(*bundle, kStream), "");
  uint64_t small = getBetween();
  for (auto &shape : {TestArguments::Q, TestArguments::K, TestArguments::O, TestArguments::LSE})
    arguments.shapes[shape][0] = 8;
  ASSERT_EQ(call(*bundle, kStream), "");
  uint64_t large = getBetween();
  EXPECT_NE(large, small);
  EXPECT_GE(fake::getState().memory.at(large), 4 * kBetween);
  for (auto &shape : {TestArguments::Q, TestArguments::K, TestArguments::O, TestArguments::LSE})
    arguments.shapes[shape][0] = 1;
  ASSERT_EQ(call(*bundle, kStream), "");
  EXPECT_EQ(getBetween(), large);
}

TEST_F(SequenceTest, TakesLentMemory) {
  std::unique_ptr<Bundle> bundle = load();
  Kernel &kernel = bundle->getKernels().back();
  EXPECT_EQ(llvm::cantFail(kernel.getWorkspaceBytes(arguments.arguments)), kCallBytes);
  std::vector<char> memory(kCallBytes + 256);
  uint64_t address = llvm::alignTo(reinterpret_cast<uint64_t>(memory.data()), 256);
  ASSERT_EQ(call(*bundle, kStream, LentMemory{address, kCallBytes}), "");
  EXPECT_EQ(getBetween(), address);
  // Only the kernel's own workspace was allocated.
  EXPECT_EQ(fake::getState().memory.size(), 1u);
  EXPECT_EQ(call(*bundle, kStream, LentMemory{address, kCallBytes - 1}),
            "sequence 'twice': the workspace has 614479 bytes; this call needs 614480");
  EXPECT_NE(call(*bundle, kStream, LentMemory{address + 16, kCallBytes})
                .find("is no multiple of 256 bytes"),
            std::string::npos);
  EXPECT_EQ(call(*bundle, kStream, LentMemory{0, 0}),
            "sequence 'twice': the workspace has 0 bytes; this call needs 614480");
}

TEST_F(SequenceTest, EachCapturedCallHasAWorkspaceOfItsOwn) {
  std::unique_ptr<Bundle> bundle = load();
  fake::beginCapture(reinterpret_cast<void *>(kStream));
  ASSERT_EQ(call(*bundle, kStream), "");
  uint64_t first = getBetween();
  ASSERT_EQ(call(*bundle, kStream), "");
  EXPECT_NE(getBetween(), first);
  fake::destroyGraph(fake::endCapture());
  fake::beginCapture(reinterpret_cast<void *>(kStream));
  ASSERT_EQ(call(*bundle, kStream), "");
  uint64_t third = getBetween();
  EXPECT_TRUE(fake::getState().memory.count(third));
  // 2 of the sequence, and of the kernel one for each of two launches of two calls.
  EXPECT_EQ(fake::getState().memory.size(), 6u);
  fake::destroyGraph(fake::endCapture());
}

TEST_F(SequenceTest, IsCalledASequenceInWhatItRefuses) {
  std::unique_ptr<Bundle> bundle = load();
  arguments.arguments[TestArguments::Q].rank = 1;
  EXPECT_EQ(call(*bundle), "sequence 'twice': argument 'q': has rank 1; the sequence takes rank 4, "
                           "[B, H, SQ, 128]");
  arguments.update();
  arguments.shapes[TestArguments::Q][3] = 64;
  EXPECT_EQ(call(*bundle), "sequence 'twice': argument 'q': dimension 3 has extent 64; this "
                           "sequence is compiled for 128 there, [B, H, SQ, 128]");
}

TEST_F(SequenceTest, LaunchesAllOrNone) {
  std::unique_ptr<Bundle> bundle = load();
  arguments.shapes[TestArguments::K][1] = 3;
  EXPECT_EQ(call(*bundle), "kernel 'attend': 'HK' is 3 and 'H' is 4; 'HK' must divide 'H'");
  arguments.shapes[TestArguments::K][1] = 2;
  arguments.arguments[TestArguments::K].pointer = 16; // What CUDA does not know.
  EXPECT_NE(call(*bundle).find("is not memory that CUDA knows"), std::string::npos);
  arguments.arguments[TestArguments::K].pointer = arguments.arguments[TestArguments::O].pointer;
  EXPECT_EQ(call(*bundle), "sequence 'twice': arguments 'k' and 'o' share memory, and the sequence "
                           "writes 'o'; pass a tensor of its own");
  EXPECT_TRUE(fake::getState().launches.empty());
}

TEST_F(SequenceTest, RefusesWhatOverflows) {
  sequence()["derived_dims"] = json::Array{
      json::Object{{"name", "ROWS"}, {"factors", json::Array{"SQ", 1 << 30}}, {"divisor", 1}}};
  EXPECT_EQ(call(*load()), "sequence 'twice': the extent 'ROWS' of its workspaces is 2^31 or more: "
                           "split the call");
  sequence()["derived_dims"] = json::Array{
      json::Object{{"name", "ROWS"}, {"factors", json::Array{1 << 30}}, {"divisor", 1}}};
  json::Object &workspace = *(*sequence().getArray("workspaces"))[1].getAsObject();
  workspace["dims"] = json::Array{"ROWS", "ROWS"};
  EXPECT_EQ(call(*load()),
            "sequence 'twice': the workspace 'sum' takes more than an address space: "
            "split the call");
}

TEST_F(SequenceTest, HasNoGridAndNoTimeline) {
  std::unique_ptr<Bundle> bundle = load();
  Kernel &kernel = bundle->getKernels().back();
  EXPECT_EQ(
      takeText(kernel.getCapacity(-1).takeError()),
      "sequence 'twice' launches several kernels, of which each has a grid of its own; ask one "
      "of 'attend'");
  EXPECT_EQ(
      takeText(kernel.readTimeline(-1, nullptr).takeError()),
      "sequence 'twice' launches several kernels, of which each has a timeline of its own; ask "
      "one of 'attend'");
}

TEST_F(SequenceTest, IsReadFromVersion2On) {
  (*description.getAsObject())["version"] = 1;
  EXPECT_EQ(load()->getKernels().size(), 1u);
}

TEST_F(SequenceTest, ReaderNamesWhatIsDamaged) {
  auto damage = [&](json::Object &object, llvm::StringRef member, json::Value value) {
    json::Value kept = std::move(object[member]);
    object[member] = std::move(value);
    std::string text = read();
    object[member] = std::move(kept);
    return text;
  };
  auto entry = [&](llvm::StringRef list) -> json::Object & {
    return *(*sequence().getArray(list))[0].getAsObject();
  };
  EXPECT_NE(damage(entry("launches"), "kernel", "other").find("names no entry of \"kernels\""),
            std::string::npos);
  EXPECT_NE(damage(entry("launches"), "arguments", json::Array{"q"}).find("as many names as"),
            std::string::npos);
  EXPECT_NE(damage(entry("launches"), "arguments", json::Array{"q", "k", "x", "lse", "scale"})
                .find("names no argument and no workspace"),
            std::string::npos);
  EXPECT_NE(
      damage(entry("workspaces"), "dims", json::Array{"N"}).find("names no entry of \"dims\""),
      std::string::npos);
  EXPECT_NE(damage(entry("workspaces"), "element", "f7").find("expected the type of elements"),
            std::string::npos);
  EXPECT_NE(damage(entry("derived_dims"), "factors", json::Array{}).find("at least one extent"),
            std::string::npos);
  EXPECT_NE(damage(sequence(), "launches", json::Array{}).find("at least one launch"),
            std::string::npos);
}
