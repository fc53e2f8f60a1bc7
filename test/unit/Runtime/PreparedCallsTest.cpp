//===- PreparedCallsTest.cpp - What calls of frameworks launch ------------===//

#include "LaunchFixture.h"

#include "lib/CAPI/PreparedCalls.h"

#include <utility>

using namespace tessera;
using namespace tessera::runtime;
using namespace tessera::runtime::test;

namespace {

/// The test kernel, with q and k as tensors of calls, and o and lse as their results.
class PreparedCallsTest : public LaunchFixture {
protected:
  void SetUp() override {
    LaunchFixture::SetUp();
    test = this;
    bundle = load(makeBundle());
    for (auto index : {TestArguments::O, TestArguments::LSE})
      results.push_back(toLayout(index));
    for (auto index : {TestArguments::Q, TestArguments::K})
      call.tensors.push_back({toLayout(index), arguments.arguments[index].pointer});
    call.numbers = {0.125};
    calls.setResolver(resolve);
  }

  CallLayout toLayout(TestArguments::Index index) const {
    CallLayout layout = {};
    const tessera_argument &argument = arguments.arguments[index];
    layout.type = argument.type;
    layout.rank = argument.rank;
    layout.is_aligned = 1;
    std::copy_n(argument.shape, argument.rank, layout.extents);
    std::copy_n(argument.strides, argument.rank, layout.strides);
    return layout;
  }

  static int resolve(const char *, const tessera_call_layout *, size_t,
                     tessera_call_recipe *recipe) {
    ++test->asked;
    if (test->clearsMeanwhile)
      test->calls.clear();
    if (!test->refusal.empty()) {
      recipe->error = test->refusal.c_str();
      return 1;
    }
    auto *kernel = reinterpret_cast<tessera_kernel *>(&test->bundle->getKernels()[0]);
    for (auto [i, step] : llvm::enumerate(test->steps)) {
      const auto &operands =
          llvm::is_contained(test->apart, i) ? test->operandsApart : test->operands;
      step = {kernel, nullptr, operands.data(), operands.size(), step.is_beside};
    }
    recipe->steps = test->steps.data();
    recipe->step_count = test->steps.size();
    recipe->results = test->results.data();
    recipe->result_count = test->results.size();
    recipe->temporaries = test->temporaries.data();
    recipe->temporary_count = test->temporaries.size();
    recipe->copies = test->copies.data();
    recipe->copy_count = test->copies.size();
    recipe->views = test->views.data();
    recipe->view_count = test->views.size();
    recipe->free = test->free.data();
    recipe->free_count = test->free.size();
    recipe->followings = test->followings.data();
    recipe->following_count = test->followings.size();
    recipe->is_final = test->isFinal;
    return 0;
  }

  std::shared_ptr<const PreparedCall> find(llvm::StringRef text = "a") {
    return calls.find(text, call, problem);
  }
  CallProblem launch(uint64_t workspace = 0, void *stream = nullptr) {
    std::vector<uint64_t> ofResults, ofCopies;
    for (size_t i = 0; i < results.size(); ++i)
      ofResults.push_back(kResult + i * kApart);
    for (size_t i = 0; i < copies.size(); ++i)
      ofCopies.push_back(kCopy + i * kApart);
    return find()->launch(call, {ofResults, ofCopies, workspace}, -1, stream);
  }
  static const fake::LaunchRecord &last() { return fake::getState().launches.back(); }
  /// The address of the tensor map that is a parameter of the last launch.
  static uint64_t addressOf(unsigned parameter) {
    return fake::getState().encodes[last().get<uint32_t>(parameter)].address;
  }

  static constexpr uint64_t kResult = fake::kMemory + (1 << 28), kApart = 1 << 24,
                            kCopy = fake::kMemory + (1 << 29);
  static PreparedCallsTest *test;
  std::unique_ptr<Bundle> bundle;
  PreparedCalls calls;
  CallArguments call;
  CallProblem problem;
  std::vector<CallLayout> results, temporaries;
  std::vector<tessera_call_copy> copies;
  std::vector<tessera_call_view> views;
  std::vector<tessera_call_free> free;
  std::vector<tessera_call_following> followings;
  std::vector<tessera_call_operand> operands = {{TESSERA_CALL_TENSOR, 0},
                                                {TESSERA_CALL_TENSOR, 1},
                                                {TESSERA_CALL_RESULT, 0},
                                                {TESSERA_CALL_RESULT, 1},
                                                {TESSERA_CALL_NUMBER, 0}};
  /// The same with temporaries in place of results, and the steps that have these.
  std::vector<tessera_call_operand> operandsApart = {{TESSERA_CALL_TENSOR, 0},
                                                     {TESSERA_CALL_TENSOR, 1},
                                                     {TESSERA_CALL_TEMPORARY, 0},
                                                     {TESSERA_CALL_TEMPORARY, 1},
                                                     {TESSERA_CALL_NUMBER, 0}};
  std::vector<size_t> apart;
  std::vector<tessera_call_step> steps = {{}};
  std::string refusal;
  bool isFinal = true, clearsMeanwhile = false;
  unsigned asked = 0;
};

PreparedCallsTest *PreparedCallsTest::test = nullptr;

} // namespace

TEST_F(PreparedCallsTest, FindsAgain) {
  auto first = find();
  ASSERT_TRUE(first) << problem.text;
  call.tensors[0].address += 1 << 12;
  call.numbers[0] = 3;
  EXPECT_EQ(find(), first);
  EXPECT_EQ(asked, 1u);
  EXPECT_EQ(calls.findKnown(makeCallKey("a", call.tensors)), first);
}

TEST_F(PreparedCallsTest, AsksForWhatDiffers) {
  ASSERT_TRUE(find());
  auto isOther = [&](llvm::function_ref<void(CallLayout &)> change) {
    CallArguments before = call;
    change(call.tensors[1].layout);
    bool isKnown = calls.findKnown(makeCallKey("a", call.tensors)) != nullptr;
    call = before;
    return !isKnown;
  };
  EXPECT_FALSE(isOther([](CallLayout &) {}));
  EXPECT_TRUE(isOther([](CallLayout &layout) { layout.type = TESSERA_TYPE_F16; }));
  EXPECT_TRUE(isOther([](CallLayout &layout) { layout.type = 0; }));
  EXPECT_TRUE(isOther([](CallLayout &layout) { layout.rank = 3; }));
  EXPECT_TRUE(isOther([](CallLayout &layout) { layout.is_aligned = 0; }));
  for (int dim = 0; dim < 4; ++dim) {
    EXPECT_TRUE(isOther([&](CallLayout &layout) { layout.extents[dim] += 8; })) << dim;
    EXPECT_TRUE(isOther([&](CallLayout &layout) { layout.strides[dim] += 8; })) << dim;
  }
  EXPECT_FALSE(calls.findKnown(makeCallKey("b", call.tensors)));
  call.tensors.emplace_back();
  EXPECT_FALSE(calls.findKnown(makeCallKey("a", call.tensors)));
}

TEST_F(PreparedCallsTest, KeepsNothingThatIsNotFinal) {
  isFinal = false;
  EXPECT_TRUE(find() && find());
  EXPECT_EQ(asked, 2u);
}

TEST_F(PreparedCallsTest, Forgets) {
  ASSERT_TRUE(find());
  unsigned before = calls.getGeneration();
  calls.clear();
  EXPECT_NE(calls.getGeneration(), before);
  EXPECT_FALSE(calls.findKnown(makeCallKey("a", call.tensors)));
  // What was asked for before is not kept behind.
  clearsMeanwhile = true;
  EXPECT_TRUE(find());
  EXPECT_FALSE(calls.findKnown(makeCallKey("a", call.tensors)));
}

TEST_F(PreparedCallsTest, KeepsRefusalsToThemselves) {
  refusal = "no such variant";
  EXPECT_FALSE(find());
  EXPECT_EQ(problem.text, "no such variant");
  refusal.clear();
  EXPECT_TRUE(find());
}

TEST_F(PreparedCallsTest, RefusesLayoutsThatTheKernelDoes) {
  call.tensors[1].layout.extents[2] = 299;
  EXPECT_FALSE(find());
  EXPECT_EQ(problem.status, TESSERA_RUNTIME_INVALID_ARGUMENT);
  EXPECT_NE(problem.text.find("argument 'k': dimension 2, 'SQ', has extent 299"), std::string::npos)
      << problem.text;
}

TEST_F(PreparedCallsTest, LaunchesWithTheAddressesOfTheCall) {
  for (uint64_t moved : {0, 1 << 13}) {
    for (CallTensor &tensor : call.tensors)
      tensor.address += moved;
    call.numbers[0] += moved;
    ASSERT_FALSE(launch());
    EXPECT_EQ(addressOf(0), call.tensors[0].address);
    EXPECT_EQ(addressOf(1), call.tensors[1].address);
    EXPECT_EQ(last().get<uint64_t>(2), kResult);
    EXPECT_EQ(last().get<uint64_t>(3), kResult + kApart);
    EXPECT_EQ(last().get<float>(7), call.numbers[0]);
  }
  EXPECT_EQ(asked, 1u);
}

TEST_F(PreparedCallsTest, RefusesAddressesThatTheKernelDoes) {
  ASSERT_FALSE(launch());
  call.tensors[0].address += 8;
  EXPECT_NE(launch().text.find("is no multiple of 16 bytes"), std::string::npos);
  call.tensors[0].address = 0;
  EXPECT_NE(launch().text.find("the address is null"), std::string::npos);
  call.tensors[0].address = kResult;
  EXPECT_EQ(launch().status, TESSERA_RUNTIME_INVALID_ARGUMENT); // o would be stored there.
  EXPECT_EQ(fake::getState().launches.size(), 1u);
}

TEST_F(PreparedCallsTest, RefusesNumbersThatDoNotFit) {
  call.numbers[0] = 1e300;
  EXPECT_FALSE(find());
  EXPECT_EQ(problem.text, "argument 'scale' is 1e+300, which does not fit in f32");
  call.numbers[0] = 1;
  ASSERT_FALSE(launch());
  call.numbers[0] = -1e39;
  EXPECT_EQ(launch().text, "argument 'scale' is -1e+39, which does not fit in f32");
}

TEST_F(PreparedCallsTest, GivesTemporariesTheirPlaces) {
  // In the order of the recipe, at multiples of 256 bytes.
  CallLayout bytes = {};
  bytes.type = TESSERA_TYPE_I8;
  bytes.rank = 1;
  bytes.extents[0] = 100;
  bytes.strides[0] = 1;
  temporaries = {bytes, results[1]};
  operands[3] = {TESSERA_CALL_TEMPORARY, 1};
  results.pop_back();
  ASSERT_TRUE(find()) << problem.text;
  EXPECT_EQ(find()->getWorkspaceBytes(), 256u + countBytes(temporaries[1]));
  constexpr uint64_t kWorkspace = fake::kMemory + (1 << 27);
  ASSERT_FALSE(launch(kWorkspace));
  EXPECT_EQ(last().get<uint64_t>(3), kWorkspace + 256);
}

TEST_F(PreparedCallsTest, TakesCopies) {
  copies = {{1, call.tensors[1].layout}};
  operands[1] = {TESSERA_CALL_COPY, 0};
  // The tensor itself may lie as no kernel takes it.
  call.tensors[1].layout.strides[3] = 2;
  ASSERT_TRUE(find()) << problem.text;
  ASSERT_FALSE(launch());
  EXPECT_EQ(addressOf(1), kCopy);
}

TEST_F(PreparedCallsTest, TakesViews) {
  // Of a tensor that lies as no kernel takes it, of memory of the call, and of a view.
  views = {{{TESSERA_CALL_TENSOR, 1}, call.tensors[1].layout, 0},
           {{TESSERA_CALL_RESULT, 1}, results[1], 0},
           {{TESSERA_CALL_VIEW, 1}, results[1], 0}};
  operands[1] = {TESSERA_CALL_VIEW, 0};
  operands[3] = {TESSERA_CALL_VIEW, 2};
  call.tensors[1].layout.strides[3] = 2;
  results[1].rank = 1;
  results[1].extents[0] = 1 << 20;
  ASSERT_TRUE(find()) << problem.text;
  for (uint64_t moved : {0, 1 << 13}) {
    call.tensors[1].address += moved;
    ASSERT_FALSE(launch());
    EXPECT_EQ(addressOf(1), call.tensors[1].address);
    EXPECT_EQ(last().get<uint64_t>(3), kResult + kApart);
  }
}

TEST_F(PreparedCallsTest, TakesViewsBehindTheirMemory) {
  // Offsets of views of views add up.
  views = {{{TESSERA_CALL_TENSOR, 1}, call.tensors[1].layout, /*offset=*/512},
           {{TESSERA_CALL_RESULT, 1}, results[1], /*offset=*/256},
           {{TESSERA_CALL_VIEW, 1}, results[1], /*offset=*/16}};
  operands[1] = {TESSERA_CALL_VIEW, 0};
  operands[3] = {TESSERA_CALL_VIEW, 2};
  ASSERT_TRUE(find()) << problem.text;
  ASSERT_FALSE(launch());
  EXPECT_EQ(addressOf(1), call.tensors[1].address + 512);
  EXPECT_EQ(last().get<uint64_t>(3), kResult + kApart + 272);
}

TEST_F(PreparedCallsTest, PreparesOthersOfAFamily) {
  // Of as many queries as keys, 8 at least, in strides that are multiples of 8.
  const int64_t before = call.tensors[0].layout.extents[2];
  free = {{{TESSERA_CALL_TENSOR, 0, 2, 0}, 8, before, 1, -1},
          {{TESSERA_CALL_TENSOR, 1, 2, 0}, 8, before, 1, 0},
          {{TESSERA_CALL_TENSOR, 1, 1, 1}, 1, 1 << 20, 8, -1}};
  followings = {{{TESSERA_CALL_RESULT, 0, 2, 0}, 0, 1, 0},
                {{TESSERA_CALL_RESULT, 1, 2, 0}, 0, 1, 0}};
  ASSERT_TRUE(find()) << problem.text;
  auto ask = [&](int64_t rows, int64_t keys, int64_t step) {
    CallArguments own = call;
    own.tensors[0].layout.extents[2] = rows;
    own.tensors[1].layout.extents[2] = keys;
    own.tensors[1].layout.strides[1] += step;
    return calls.findAlike("a", own);
  };
  auto alike = ask(before - 10, before - 10, 16);
  ASSERT_TRUE(alike);
  EXPECT_EQ(alike, ask(before - 10, before - 10, 16));
  for (const CallLayout &layout : alike->getResults())
    EXPECT_EQ(layout.extents[2], before - 10);
  EXPECT_FALSE(ask(before - 10, before - 9, 0));  // They are equal,
  EXPECT_FALSE(ask(before + 1, before + 1, 0));   // within bounds,
  EXPECT_FALSE(ask(before - 10, before - 10, 4)); // and multiples.
  call.tensors[1].layout.extents[3] -= 8;         // Other numbers are no free ones.
  EXPECT_FALSE(ask(before - 10, before - 10, 0));
  call.tensors[1].layout.extents[3] += 8;
  call.tensors[0].layout.strides[2] += 8;
  EXPECT_FALSE(ask(before - 10, before - 10, 0));
  call.tensors[0].layout.strides[2] -= 8;
  for (auto change : {&CallLayout::type, &CallLayout::rank, &CallLayout::is_aligned}) {
    int32_t &number = call.tensors[1].layout.*change, own = std::exchange(number, 0);
    EXPECT_FALSE(ask(before - 10, before - 10, 0));
    number = own;
  }
  EXPECT_FALSE(calls.findAlike("b", call));
  for (CallTensor &tensor : call.tensors)
    tensor.layout.extents[2] = before - 20;
  ASSERT_FALSE(launch());
  EXPECT_EQ(asked, 1u);
  calls.clear();
  EXPECT_FALSE(ask(before - 10, before - 10, 16));
}

TEST_F(PreparedCallsTest, KeepsManyFamilies) {
  const int64_t before = call.tensors[0].layout.extents[2];
  constexpr unsigned kCount = 200;
  free = {{{TESSERA_CALL_TENSOR, 0, 2, 0}, 8, before, 1, -1},
          {{TESSERA_CALL_TENSOR, 1, 2, 0}, 8, before, 1, 0}};
  followings = {{{TESSERA_CALL_RESULT, 0, 2, 0}, 0, 1, 0},
                {{TESSERA_CALL_RESULT, 1, 2, 0}, 0, 1, 0}};
  for (int64_t rows : {before, before - 10}) {
    CallArguments own = call;
    for (unsigned i = 0; i < kCount; ++i) {
      own.tensors[0].layout.extents[2] = own.tensors[1].layout.extents[2] = rows;
      own.tensors[1].layout.strides[1] += 8;
      ASSERT_TRUE(calls.find("a", own, problem)) << problem.text;
    }
    EXPECT_EQ(asked, kCount);
  }
}

TEST_F(PreparedCallsTest, FillsResultsWithZeros) {
  std::vector<char> memory(countBytes(results[1]), 1);
  results[1].fill = TESSERA_CALL_FILL_ZERO;
  std::vector<uint64_t> addresses = {kResult, reinterpret_cast<uint64_t>(memory.data())};
  ASSERT_FALSE(find()->launch(call, {addresses, {}, 0}, -1, nullptr));
  EXPECT_EQ(llvm::count(memory, 0), static_cast<int64_t>(memory.size()));
}

TEST_F(PreparedCallsTest, FillsTemporariesWithZeros) {
  temporaries = {results[1], results[1]};
  temporaries[1].fill = TESSERA_CALL_FILL_ZERO;
  uint64_t bytes = countBytes(results[1]), apart = llvm::alignTo(bytes, PreparedCall::kAlignment);
  std::vector<char> memory(apart + bytes, 1);
  std::vector<uint64_t> addresses = {kResult, kResult + kApart};
  auto workspace = reinterpret_cast<uint64_t>(memory.data());
  ASSERT_FALSE(find()->launch(call, {addresses, {}, workspace}, -1, nullptr));
  EXPECT_EQ(llvm::count(memory, 0), static_cast<int64_t>(bytes));
}

TEST_F(PreparedCallsTest, LaunchesOnTheStreamOfTheCall) {
  for (uintptr_t number : {1, 2, 1}) {
    auto *stream = reinterpret_cast<void *>(number);
    ASSERT_FALSE(launch(0, stream));
    EXPECT_EQ(last().stream, stream);
  }
  EXPECT_EQ(asked, 1u);
}

TEST_F(PreparedCallsTest, LaunchesBesideTheStreamOfTheCall) {
  steps.resize(3);
  steps[1].is_beside = 1;
  std::vector<cuda::Stream> sides;
  for (uintptr_t number : {1, 3, 1}) {
    fake::getState().launches.clear();
    fake::getState().waits.clear();
    auto *stream = reinterpret_cast<cuda::Stream>(number);
    ASSERT_FALSE(launch(0, stream));
    const auto &launches = fake::getState().launches;
    ASSERT_EQ(launches.size(), 3u);
    EXPECT_EQ(launches[0].stream, stream);
    EXPECT_EQ(launches[2].stream, stream);
    sides.push_back(static_cast<cuda::Stream>(launches[1].stream));
    std::vector<std::pair<cuda::Stream, cuda::Stream>> waits = {{sides.back(), stream},
                                                                {stream, sides.back()}};
    EXPECT_EQ(fake::getState().waits, waits);
  }
  EXPECT_EQ(sides[0], sides[2]);
  EXPECT_EQ(
      std::set<cuda::Stream>({reinterpret_cast<cuda::Stream>(uintptr_t(1)),
                              reinterpret_cast<cuda::Stream>(uintptr_t(3)), sides[0], sides[1]})
          .size(),
      4u);
}

TEST_F(PreparedCallsTest, WaitsBeforeTheFirstStepThatMeetsOneBeside) {
  steps.resize(4);
  steps[1].is_beside = 1;
  temporaries = results;
  // Steps that read the same tensors do not meet.
  for (auto [others, launched] :
       {std::pair<std::vector<size_t>, size_t>{{1}, 4}, {{1, 3}, 3}, {{1, 2}, 2}}) {
    apart = others;
    calls.clear();
    fake::getState().launches.clear();
    fake::getState().launchesBefore.clear();
    ASSERT_FALSE(launch(kCopy));
    EXPECT_EQ(fake::getState().launchesBefore, (std::vector<size_t>{1, launched}));
  }
}

TEST_F(PreparedCallsTest, LaunchesNothingBesideTheStreamOfEachThread) {
  steps.resize(3);
  steps[1].is_beside = 1;
  fake::getState().waits.clear();
  ASSERT_FALSE(launch(0, cuda::kStreamPerThread));
  for (const fake::LaunchRecord &each : fake::getState().launches)
    EXPECT_EQ(each.stream, cuda::kStreamPerThread);
  EXPECT_TRUE(fake::getState().waits.empty());
}

TEST_F(PreparedCallsTest, WaitsForWhatRunsBesideAlsoWhereAStepFails) {
  steps.resize(2);
  steps[0].is_beside = 1;
  ASSERT_FALSE(launch());
  fake::getState().waits.clear();
  fake::getState().failing = "cuLaunchKernelEx";
  fake::getState().failure = 1;
  EXPECT_TRUE(launch());
  EXPECT_EQ(fake::getState().waits.size(), 2u);
}

TEST_F(PreparedCallsTest, IsCaptured) {
  // Also a first call, which loads the kernel.
  auto *stream = reinterpret_cast<void *>(uintptr_t(1));
  for (unsigned count : {1, 2}) {
    fake::beginCapture(stream);
    EXPECT_FALSE(launch(0, stream));
    fake::destroyGraph(fake::endCapture());
    EXPECT_EQ(fake::getState().launches.size(), count);
  }
}
