//===- ParserTest.cpp - PTX syntax ----------------------------------------===//
#include "RunPtx.h"
#include "gtest/gtest.h"

using namespace tessera::sim;
using namespace tessera::sim::test;

static std::string parseError(llvm::StringRef text) {
  auto m = parseModule(text, "t.ptx");
  return m ? "" : llvm::toString(m.takeError());
}

TEST(Parser, PtxKernel) {
  auto m =
      parseModule(".version 8.3\n.target sm_90a\n.address_size 64\n"
                  ".shared .align 8 .b64 bar[2];\n.extern .shared .align 1024 .b8 dyn[];\n"
                  ".visible .entry k(.param .u32 a, .param .align 64 .b8 map[128], .param "
                  ".u64 .ptr .global .align 16 p)\n"
                  ".reqntid 128, 1, 1\n.maxnreg 96\n.minnctapersm 2\n.reqnctapercluster 2, 1, 1\n"
                  "{ .reg .b32 %r<3>; mov.u32 %r1, bar; mov.u32 %r2, dyn; ret; }\n");
  ASSERT_TRUE(bool(m)) << llvm::toString(m.takeError());
  const PtxKernel *k = m->kernel("k");
  ASSERT_NE(k, nullptr);
  ASSERT_EQ(k->params.size(), 3u);
  EXPECT_EQ(k->params[1].offset, 64u);
  EXPECT_EQ(k->params[2].offset, 192u);
  EXPECT_EQ(k->paramBytes, 200u);
  EXPECT_EQ(k->staticSharedBytes, 16u);
  EXPECT_TRUE(k->usesDynamicShared);
  EXPECT_EQ(k->reqntid.x, 128u);
  EXPECT_EQ(k->reqCluster.x, 2u);
  EXPECT_EQ(k->maxnreg, 96u);
  EXPECT_EQ(k->minBlocks, 2u);
}

TEST(Parser, BlocksHaveTheirOwnNames) {
  Result r = runPtx("mov.u32 %r1, 1;\n{ .reg .b32 %q<2>; .reg .pred p; mov.u32 %q1, 0; setp.eq.u32 "
                    "p, %r0, %r0; @p bra DONE; trap;\nDONE: mov.u32 %r1, 5; }\n"
                    "{ .reg .pred p; setp.ne.u32 p, %r0, %r0; @p bra DONE; add.u32 %r1, %r1, "
                    "1;\nDONE: }\nst.global.u32 [%d0], %r1;");
  ASSERT_TRUE(r.report.ok()) << r.text();
  EXPECT_EQ(r.out[0], 6u);
}

TEST(Parser, LiteralsAndInitialisers) {
  EXPECT_EQ(evaluate1("mov.u32 %r3, 0x1F;", 0), 31u);
  EXPECT_EQ(evaluate1("mov.u32 %r3, 017;", 0), 15u);
  EXPECT_EQ(evaluate1("mov.u32 %r3, 0b101;", 0), 5u);
  EXPECT_EQ(evaluate1("mov.u32 %r3, -1;", 0), 0xffffffffu);
  EXPECT_EQ(evaluate1("mov.f32 %r3, 1.5;", 0), 0x3fc00000u);
  EXPECT_EQ(evaluate1("mov.f32 %r3, 0f3F800000;", 0), 0x3f800000u);
}

TEST(Parser, Errors) {
  EXPECT_NE(parseError(".version 8.3\n.entry k() { mov.u32 %r1, ; }")
                .find("t.ptx:2: expected an operand"),
            std::string::npos);
  EXPECT_NE(parseError(".entry k() { @%p bra X; }").find("not a predicate"), std::string::npos);
  EXPECT_NE(parseError(".entry k() { .reg .v2 .b32 %v; }").find("vector registers"),
            std::string::npos);
  EXPECT_NE(parseError(".entry k() {").find("end of file"), std::string::npos);
}

TEST(Decoder, RefusesWhatItDoesNotModel) {
  EXPECT_NE(runPtx("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f1};")
                .error.find("'mma.sync"),
            std::string::npos);
  EXPECT_NE(runPtx("add.wild.u32 %r1, %r0, 1;").error.find("modifier .wild"), std::string::npos);
  EXPECT_NE(runPtx("bra NOWHERE;").error.find("label 'NOWHERE' is not defined"), std::string::npos);
  EXPECT_NE(runPtx("add.u32 %d1, %r0, 1;").error.find("wrong size"), std::string::npos);
  EXPECT_NE(runPtx("mov.u32 %r1, %envreg3;").error.find("special register"), std::string::npos);
}
