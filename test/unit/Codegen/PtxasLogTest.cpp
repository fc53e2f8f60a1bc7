//===- PtxasLogTest.cpp - The parser of what ptxas prints -----------------===//

#include "lib/Codegen/PtxasLog.h"
#include <gtest/gtest.h>

using namespace tessera;

TEST(PtxasLog, ReadsResources) {
  PtxasLog log =
      parsePtxasLog("ptxas info    : 0 bytes gmem\n"
                    "ptxas info    : Compiling entry function 'a' for 'sm_90a'\n"
                    "ptxas info    : Function properties for a\n"
                    "    144 bytes stack frame, 224 bytes spill stores, 132 bytes spill loads\n"
                    "ptxas info    : Used 168 registers, used 16 barriers, 8 bytes smem\n"
                    "ptxas info    : Compile time = 213.437 ms\n"
                    "ptxas info    : Compiling entry function 'b' for 'sm_90a'\n"
                    "ptxas info    : Function properties for b\n"
                    "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                    "ptxas info    : Used 8 registers\n");
  ASSERT_EQ(log.functions.size(), 2u);
  const PtxasFunction *a = log.find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_TRUE(a->entry);
  EXPECT_EQ(a->registers, 168u);
  EXPECT_EQ(a->barriers, 16u);
  EXPECT_EQ(a->stackBytes, 144u);
  EXPECT_EQ(a->spillStoreBytes, 224u);
  EXPECT_EQ(a->spillLoadBytes, 132u);
  const PtxasFunction *b = log.find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->registers, 8u);
  EXPECT_EQ(b->barriers, 0u);
  EXPECT_EQ(b->spillStoreBytes, 0u);
  EXPECT_EQ(log.find("c"), nullptr);
  for (const PtxasMessage &message : log.messages)
    EXPECT_EQ(message.verdict, PtxasVerdict::Info) << message.text;
}

TEST(PtxasLog, KnowsTheCodes) {
  struct {
    const char *code;
    PtxasVerdict verdict;
  } cases[] = {{"C7504", PtxasVerdict::Slow},   {"C7508", PtxasVerdict::Slow},
               {"C7509", PtxasVerdict::Slow},   {"C7510", PtxasVerdict::Slow},
               {"C7511", PtxasVerdict::Slow},   {"C7512", PtxasVerdict::Slow},
               {"C7513", PtxasVerdict::Slow},   {"C7514", PtxasVerdict::Slow},
               {"C7515", PtxasVerdict::Slow},   {"C7516", PtxasVerdict::Slow},
               {"C7517", PtxasVerdict::Remark}, {"C7518", PtxasVerdict::Slow},
               {"C7519", PtxasVerdict::Remark}, {"C7520", PtxasVerdict::Slow},
               {"C7600", PtxasVerdict::Warning}};
  for (auto [code, verdict] : cases) {
    PtxasLog log =
        parsePtxasLog("ptxas info    : (" + std::string(code) + ") something in function 'k'\n");
    ASSERT_EQ(log.messages.size(), 1u) << code;
    EXPECT_EQ(log.messages[0].code, code);
    EXPECT_EQ(log.messages[0].verdict, verdict) << code;
    EXPECT_EQ(log.messages[0].function, "k") << code;
    EXPECT_EQ(log.messages[0].text, "something in function 'k'");
    if (verdict != PtxasVerdict::Slow)
      continue;
    EXPECT_FALSE(explainPtxasCode(code).meaning.empty()) << code;
    EXPECT_FALSE(explainPtxasCode(code).help.empty()) << code;
  }
}

TEST(PtxasLog, JudgesUnknownCodesByTheirText) {
  PtxasLog log = parsePtxasLog(
      "ptxas info    : (C7999) Potential Performance Loss: wgmma.mma_async instructions are "
      "serialized\n"
      "ptxas info    : Potential Performance Loss: 'setmaxnreg' ignored to allow debugging.\n");
  ASSERT_EQ(log.messages.size(), 2u);
  EXPECT_EQ(log.messages[0].verdict, PtxasVerdict::Slow);
  EXPECT_EQ(log.messages[1].verdict, PtxasVerdict::Slow);
  EXPECT_FALSE(explainPtxasCode("C7999").meaning.empty());
}

TEST(PtxasLog, FindsLines) {
  PtxasLog log = parsePtxasLog(
      "ptxas info    : (C7517) warpgroup.wait is injected in around line 39 by compiler in "
      "function 'k'\n"
      "ptxas info    : (C7513) instructions are serialized in the function 'k' in line 12\n"
      "ptxas info    : (C7513) instructions are serialized in the function 'k' in line 0\n"
      "ptxas info    : (C7513) instructions are serialized in the function 'k'\n"
      "ptxas a b.ptx, line 30; error   : Unknown modifier '.bar'\n"
      "ptxas a b.ptx, line 31; warning : Something\n");
  ASSERT_EQ(log.messages.size(), 6u);
  unsigned lines[] = {39, 12, 0, 0, 30, 31};
  for (unsigned i = 0; i < 6; ++i)
    EXPECT_EQ(log.messages[i].ptxLine, lines[i]) << i;
  EXPECT_EQ(log.messages[4].verdict, PtxasVerdict::Error);
  EXPECT_EQ(log.messages[4].text, "Unknown modifier '.bar'");
  EXPECT_EQ(log.messages[5].verdict, PtxasVerdict::Warning);
}

TEST(PtxasLog, KeepsWhatItDoesNotKnow) {
  PtxasLog log = parsePtxasLog("ptxas fatal   : Ptx assembly aborted due to errors\n"
                               "Segmentation fault\n"
                               "\n"
                               "ptxas\n"
                               "ptxas info    :\n"
                               "ptxas info    : (C75\n"
                               "ptxas info    : Function properties for\n"
                               "  bytes stack frame, x bytes spill stores\n");
  ASSERT_GE(log.messages.size(), 2u);
  EXPECT_EQ(log.messages[0].verdict, PtxasVerdict::Error);
  EXPECT_EQ(log.messages[1].verdict, PtxasVerdict::Warning);
  EXPECT_EQ(log.messages[1].text, "Segmentation fault");
}
