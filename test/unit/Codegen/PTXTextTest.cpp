//===- PTXTextTest.cpp - The index over PTX text --------------------------===//

#include "lib/Codegen/PTXText.h"
#include <gtest/gtest.h>

using namespace tessera;

static const char *const ptx = R"(.version 8.3
.target sm_90a
.visible .entry first(
	.param .u64 first_param_0
)
.reqntid 128
{
	.loc	1 10 3
	ld.param.b64 	%rd1, [first_param_0];
$L__tmp0:
	.loc	2 20 0                          // other.tile:20:0
	@%p1 bra 	$L__BB0_1; // ex2.approx.f32 in a comment
	ex2.approx.ftz.f32 	%r1, %r2;
{
	.reg .pred p; setp.ne.b32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r1}, %rd1, %rd1, p, 1, 1, 0, 0;
}
	wgmma.commit_group.sync.aligned;
	@%p2 cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {0}], [%r2];
	ret;
}
.visible .entry second()
{
	ret;
again: mbarrier.try_wait.parity.shared::cta.b64 p, [%r1], %r2;
	cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%rd1, {0}], [%r1];
	cp.async.bulk.commit_group;
	cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r1], %r2;
	mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], %r2;
	bar.sync 1, 256; barrier.sync.aligned 0;
	shfl.sync.idx.b32 %r1|%p1, %r2, 0, 31, -1;
	barriers.of.no.ptx;
}
	.file	1 "dir/a.tile"
	.file	2 "other.tile"
	.section	.debug_macinfo	{	}
)";

static unsigned lineOf(llvm::StringRef needle) {
  llvm::StringRef text(ptx);
  return text.take_front(text.find(needle)).count('\n') + 1;
}

TEST(PTXText, MapsLinesToTheSource) {
  PTXText text(ptx);
  std::optional<SourcePosition> position = text.position(lineOf("ld.param"));
  ASSERT_TRUE(position.has_value());
  EXPECT_EQ(position->file, "dir/a.tile");
  EXPECT_EQ(position->line, 10u);
  EXPECT_EQ(position->column, 3u);
  position = text.position(lineOf("ex2.approx.ftz"));
  ASSERT_TRUE(position.has_value());
  EXPECT_EQ(position->file, "other.tile");
  EXPECT_EQ(position->line, 20u);
  EXPECT_EQ(position->column, 1u);
}

TEST(PTXText, HasNoPositionWithoutLoc) {
  PTXText text(ptx);
  EXPECT_FALSE(text.position(0).has_value());
  EXPECT_FALSE(text.position(1).has_value());
  EXPECT_FALSE(text.position(lineOf("again:")).has_value());
  EXPECT_FALSE(text.position(100000).has_value());
}

TEST(PTXText, NamesTheKernelOfALine) {
  PTXText text(ptx);
  EXPECT_EQ(text.kernelAt(1), "");
  EXPECT_EQ(text.kernelAt(lineOf("ex2.approx.ftz")), "first");
  EXPECT_EQ(text.kernelAt(lineOf("again:")), "second");
  EXPECT_EQ(text.kernelAt(lineOf(".section")), "");
  EXPECT_EQ(text.kernelAt(100000), "");
}

TEST(PTXText, CountsInstructions) {
  PTXText text(ptx);
  InstructionCounts first = text.counts("first");
  EXPECT_EQ(first.exponentials, 1u);
  EXPECT_EQ(first.wgmma, 1u);
  EXPECT_EQ(first.tmaLoads, 1u);
  EXPECT_EQ(first.tmaStores, 0u);
  EXPECT_EQ(first.barriers, 0u);
  InstructionCounts second = text.counts("second");
  EXPECT_EQ(second.wgmma, 0u);
  EXPECT_EQ(second.tmaLoads, 0u);
  EXPECT_EQ(second.tmaStores, 1u);
  EXPECT_EQ(second.tmaReductions, 1u);
  EXPECT_EQ(second.mbarrierWaits, 1u);
  EXPECT_EQ(second.mbarrierArrives, 1u);
  EXPECT_EQ(second.barriers, 2u);
  EXPECT_EQ(second.shuffles, 1u);
  EXPECT_EQ(text.counts("third").barriers, 0u);
}

TEST(PTXText, RemovesLineInfoLineForLine) {
  std::string without = withoutLineInfo(ptx);
  EXPECT_EQ(llvm::StringRef(without).count('\n'), llvm::StringRef(ptx).count('\n'));
  PTXText text(without);
  EXPECT_FALSE(text.position(lineOf("ld.param")).has_value());
  EXPECT_EQ(text.counts("first").wgmma, 1u);
  EXPECT_EQ(withoutLineInfo("no newline"), "no newline");
  EXPECT_EQ(withoutLineInfo(""), "");
}
