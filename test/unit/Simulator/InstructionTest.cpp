//===- InstructionTest.cpp - What instructions compute --------------------===//
#include "RunPtx.h"
#include "lib/Simulator/Numeric.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>
#include <set>

using namespace tessera::sim;
using namespace tessera::sim::test;
using detail::bitCast;

static uint32_t f(float x) { return bitCast<uint32_t>(x); }

TEST(Integer, Arithmetic) {
  EXPECT_EQ(evaluate1("mul.hi.u32 %r3, %r1, %r2;", 0xffffffff, 0xffffffff), 0xfffffffeu);
  EXPECT_EQ(evaluate1("mul.hi.s32 %r3, %r1, %r2;", 0xffffffff, 2), 0xffffffffu);
  EXPECT_EQ(evaluate1("add.sat.s32 %r3, %r1, %r2;", 0x7fffffff, 5), 0x7fffffffu);
  EXPECT_EQ(evaluate1("div.s32 %r3, %r1, %r2;", uint32_t(-7), 2), uint32_t(-3));
  EXPECT_EQ(evaluate1("rem.s32 %r3, %r1, %r2;", uint32_t(-7), 2), uint32_t(-1));
  EXPECT_EQ(evaluate1("div.s32 %r3, %r1, %r2;", 0x80000000, uint32_t(-1)), 0x80000000u);
  EXPECT_EQ(evaluate1("sad.u32 %r3, %r1, %r2, 10;", 3, 7), 14u);
  EXPECT_EQ(evaluate1("add.cc.u32 %r4, %r1, %r2; addc.u32 %r3, 0, 0;", 0xffffffff, 1), 1u);
  EXPECT_EQ(evaluate1("sub.cc.u32 %r4, %r1, %r2; subc.u32 %r3, 10, 0;", 1, 2), 9u);
  EXPECT_EQ(evaluate1("dp4a.s32.u32 %r3, %r1, %r2, 1;", 0x000000ff, 0x00000002), uint32_t(-1));
  EXPECT_EQ(evaluate1("min.s32 %r3, %r1, %r2;", uint32_t(-1), 1), uint32_t(-1));
  EXPECT_EQ(evaluate1("min.relu.s32 %r3, %r1, %r2;", uint32_t(-1), 1), 0u);
  EXPECT_EQ(evaluate1("max.relu.s32 %r3, %r1, %r2;", uint32_t(-1), 5), 5u);
  EXPECT_EQ(evaluate1("min.s16x2 %r3, %r1, %r2;", 0xffff0005, 0x00010003), 0xffff0003u);
  EXPECT_EQ(evaluate1("max.relu.s16x2 %r3, %r1, %r2;", 0xffff0005, 0xfffe0003), 0x00000005u);
  EXPECT_EQ(evaluate1("add.u16x2 %r3, %r1, %r2;", 0xffff0005, 0x00010003), 0x00000008u);
  EXPECT_EQ(evaluate1("min.u32 %r3, %r1, %r2;", uint32_t(-1), 1), 1u);
  EXPECT_EQ(evaluate1("mov.b32 {%h1, %h2}, %r1; mul.wide.s16 %r3, %h1, %h2;", 0xfffe0003),
            uint32_t(-6));
  EXPECT_EQ(evaluate1("mov.b32 {%h1, %h2}, %r1; add.s16 %h3, %h1, %h2; cvt.s32.s16 %r3, %h3;",
                      0x7fff0001),
            0xffff8000u);
}

TEST(Bits, FieldsAndShifts) {
  EXPECT_EQ(evaluate1("bfe.u32 %r3, %r1, 8, 8;", 0x12345678), 0x56u);
  EXPECT_EQ(evaluate1("bfe.s32 %r3, %r1, 4, 8;", 0x00000f80), 0xfffffff8u);
  EXPECT_EQ(evaluate1("bfe.s32 %r3, %r1, 28, 8;", 0x80000000), 0xfffffff8u);
  EXPECT_EQ(evaluate1("bfi.b32 %r3, %r1, %r2, 8, 4;", 0xff, 0), 0xf00u);
  EXPECT_EQ(evaluate1("bfind.u32 %r3, %r1;", 0x00010000), 16u);
  EXPECT_EQ(evaluate1("bfind.s32 %r3, %r1;", 0xffffffff), 0xffffffffu);
  EXPECT_EQ(evaluate1("bfind.shiftamt.u32 %r3, %r1;", 1), 31u);
  EXPECT_EQ(evaluate1("shl.b32 %r3, %r1, %r2;", 1, 40), 0u);
  EXPECT_EQ(evaluate1("shr.s32 %r3, %r1, %r2;", 0x80000000, 40), 0xffffffffu);
  EXPECT_EQ(evaluate1("shf.l.wrap.b32 %r3, %r1, %r2, 8;", 0x11223344, 0x55667788), 0x66778811u);
  EXPECT_EQ(evaluate1("shf.r.clamp.b32 %r3, %r1, %r2, 40;", 0x11223344, 0x55667788), 0x55667788u);
  EXPECT_EQ(evaluate1("lop3.b32 %r3, %r1, %r2, 0xff, 0x96;", 0x0f0f, 0x3333),
            0x0f0fu ^ 0x3333u ^ 0xffu);
  EXPECT_EQ(evaluate1("prmt.b32 %r3, %r1, %r2, 0x7610;", 0x44332211, 0x88776655), 0x88772211u);
  EXPECT_EQ(evaluate1("prmt.b32 %r3, %r1, %r2, 0xba98;", 0x80ff017f, 0), 0xffff0000u);
  EXPECT_EQ(evaluate1("prmt.b32.rc16 %r3, %r1, %r2, 1;", 0x44332211, 0), 0x44334433u);
  EXPECT_EQ(evaluate1("brev.b32 %r3, %r1;", 1), 0x80000000u);
  EXPECT_EQ(evaluate1("popc.b32 %r3, %r1;", 0xf0f0), 8u);
  EXPECT_EQ(evaluate1("clz.b32 %r3, %r1;", 0), 32u);
}

TEST(Float, ModifiersAndSpecialValues) {
  uint32_t nan = 0x7fc00000, tiny = 0x00000001;
  EXPECT_EQ(evaluate1("add.f32 %r3, %r1, %r2;", tiny, tiny), 2u);
  EXPECT_EQ(evaluate1("add.ftz.f32 %r3, %r1, %r2;", tiny, tiny), 0u);
  EXPECT_EQ(evaluate1("add.sat.f32 %r3, %r1, %r2;", f(3), f(4)), f(1));
  EXPECT_EQ(evaluate1("add.sat.f32 %r3, %r1, %r2;", nan, f(4)), f(0));
  EXPECT_EQ(evaluate1("max.f32 %r3, %r1, %r2;", nan, f(4)), f(4));
  EXPECT_EQ(evaluate1("max.NaN.f32 %r3, %r1, %r2;", nan, f(4)), 0x7fffffffu);
  EXPECT_EQ(evaluate1("min.f32 %r3, %r1, %r2;", f(0.0f), f(-0.0f)), f(-0.0f));
  EXPECT_EQ(evaluate1("add.rz.f32 %r3, %r1, %r2;", f(1), f(0x1.8p-24f)), f(1));
  EXPECT_EQ(evaluate1("add.rp.f32 %r3, %r1, %r2;", f(1), f(0x1p-30f)), f(0x1.000002p0f));
  EXPECT_EQ(evaluate1("add.rm.f32 %r3, %r1, %r2;", f(-1), f(-0x1p-30f)), f(-0x1.000002p0f));
  EXPECT_EQ(evaluate1("fma.rn.f32 %r3, %r1, %r2, 0fBF800000;", f(0x1.000002p0f), f(0x1.000002p0f)),
            f(0x1p-22f));
  EXPECT_EQ(evaluate1("div.rn.f32 %r3, %r1, %r2;", f(1), f(3)), f(1.0f / 3));
  EXPECT_EQ(evaluate1("rcp.approx.ftz.f32 %r3, %r1;", f(0)), f(INFINITY));
  EXPECT_EQ(evaluate1("ex2.approx.ftz.f32 %r3, %r1;", f(-INFINITY)), 0u);
  EXPECT_EQ(evaluate1("lg2.approx.ftz.f32 %r3, %r1;", f(8)), f(3));
  EXPECT_EQ(evaluate1("copysign.f32 %r3, %r1, %r2;", f(-1), f(5)), f(-5));
  EXPECT_EQ(evaluate1("testp.notanumber.f32 %p1, %r1; selp.u32 %r3, 1, 0, %p1;", nan), 1u);
  EXPECT_EQ(evaluate1("cvt.f64.f32 %g1, %r1; cvt.f64.f32 %g2, %r2; fma.rn.f64 %g3, %g1, %g2, %g1; "
                      "cvt.rn.f32.f64 %r3, %g3;",
                      f(3), f(4)),
            f(15));
}

/// A divisor above 2^126 gives 0, and full scales it (PTX ISA 9.7.3.8).
TEST(Float, DivisionsOfLargeDivisors) {
  EXPECT_EQ(evaluate1("div.approx.ftz.f32 %r3, %r1, %r2;", f(0x1p127f), f(0x1p126f)), f(2));
  EXPECT_EQ(evaluate1("div.approx.ftz.f32 %r3, %r1, %r2;", f(0x1p127f), f(0x1p127f)), f(0));
  EXPECT_EQ(evaluate1("div.approx.f32 %r3, %r1, %r2;", f(-0x1p127f), f(0x1p127f)), f(-0.0f));
  EXPECT_EQ(evaluate1("div.approx.ftz.f32 %r3, %r1, %r2;", f(INFINITY), f(0x1p127f)), 0x7fffffffu);
  EXPECT_EQ(evaluate1("div.approx.ftz.f32 %r3, %r1, %r2;", f(3), f(INFINITY)), f(0));
  EXPECT_EQ(evaluate1("div.full.ftz.f32 %r3, %r1, %r2;", f(0x1p127f), f(0x1p127f)), f(1));
  EXPECT_EQ(evaluate1("div.full.ftz.f32 %r3, %r1, %r2;", f(0x1p-100f), f(0x1p127f)), f(0));
}

/// Results of `code` for 0.7 and 1.3, with a seed that moves them if it should.
static std::vector<float> approximate(llvm::StringRef code, uint64_t seed, bool moves = true) {
  LaunchSetup setup;
  setup.threads = 32;
  setup.seed = seed;
  setup.moveApproximations = moves;
  setup.in = {f(0.7f), f(1.3f)};
  setup.in.resize(64);
  Result r = runPtx(("ld.global.v2.u32 {%r1, %r2}, [%d0]; mul.wide.u32 %d1, %r0, 4; "
                     "add.u64 %d1, %d0, %d1; bar.sync 0; " +
                     code + " st.global.u32 [%d1], %r3;")
                        .str(),
                    setup);
  EXPECT_TRUE(r.report.ok()) << r.text();
  std::vector<float> values;
  for (uint32_t bits : llvm::ArrayRef(r.out).take_front(32)) {
    float value;
    memcpy(&value, &bits, 4);
    values.push_back(value);
  }
  return values;
}

/// The seed moves an approximation within its error, and all lanes and all times alike.
TEST(Float, ApproximationsMoveWithTheSeed) {
  struct {
    llvm::StringRef code;
    double exact, error;
  } cases[] = {{"div.approx.f32 %r3, %r1, %r2;", 0.7f / double(1.3f), 0x1p-23},
               {"rcp.approx.f32 %r3, %r2;", 1 / double(1.3f), 0x1p-23},
               {"sqrt.approx.f32 %r3, %r1;", std::sqrt(double(0.7f)), 0x1p-23},
               {"rsqrt.approx.f32 %r3, %r1;", 1 / std::sqrt(double(0.7f)), 0x1p-22},
               {"ex2.approx.f32 %r3, %r1;", std::exp2(double(0.7f)), 0x1p-22},
               {"lg2.approx.f32 %r3, %r1;", std::log2(double(0.7f)), 0x1p-22},
               {"sin.approx.f32 %r3, %r1;", std::sin(double(0.7f)), 0x1p-20}};
  for (const auto &[code, exact, error] : cases) {
    std::set<float> seen;
    for (uint64_t seed = 0; seed < 8; ++seed) {
      std::vector<float> values = approximate(code, seed);
      EXPECT_EQ(values, approximate(code, seed)) << code.str();
      EXPECT_EQ(std::set<float>(values.begin(), values.end()).size(), 1u) << code.str();
      EXPECT_NEAR(values.front(), exact, error * std::max(1.0, std::fabs(exact))) << code.str();
      seen.insert(values.front());
    }
    EXPECT_GT(seen.size(), 1u) << code.str();
    EXPECT_EQ(approximate(code, 5, /*moves=*/false), approximate(code, 0)) << code.str();
  }
}

TEST(Half, PackedArithmetic) {
  EXPECT_EQ(evaluate1("add.f16x2 %r3, %r1, %r2;", 0x3c004000, 0x3c003c00), 0x40004200u);
  EXPECT_EQ(evaluate1("fma.rn.bf16x2 %r3, %r1, %r2, %r1;", 0x3f804000, 0x40003f80), 0x40404080u);
  EXPECT_EQ(evaluate1("max.f16x2 %r3, %r1, %r2;", 0x7e003c00, 0x3c004000), 0x3c004000u);
  EXPECT_EQ(evaluate1("fma.rn.relu.f16x2 %r3, %r1, %r2, %r1;", 0xbc003c00, 0x3c003c00),
            0x00004000u);
}

TEST(Convert, RoundingSaturationPacking) {
  EXPECT_EQ(evaluate1("cvt.rn.bf16x2.f32 %r3, %r1, %r2;", f(1), f(-2)), 0x3f80c000u);
  EXPECT_EQ(evaluate1("cvt.rn.f16x2.f32 %r3, %r1, %r2;", f(65536), f(0x1p-25f)), 0x7c000000u);
  EXPECT_EQ(evaluate1("cvt.rni.s32.f32 %r3, %r1;", f(2.5f)), 2u);
  EXPECT_EQ(evaluate1("cvt.rzi.s32.f32 %r3, %r1;", f(-2.9f)), uint32_t(-2));
  EXPECT_EQ(evaluate1("cvt.rzi.u32.f32 %r3, %r1;", f(-5)), 0u);
  EXPECT_EQ(evaluate1("cvt.rzi.s32.f32 %r3, %r1;", f(1e20f)), 0x7fffffffu);
  EXPECT_EQ(evaluate1("cvt.rzi.s32.f32 %r3, %r1;", 0x7fc00000), 0u);
  EXPECT_EQ(evaluate1("cvt.rmi.f32.f32 %r3, %r1;", f(-1.5f)), f(-2));
  EXPECT_EQ(evaluate1("cvt.rn.f32.s32 %r3, %r1;", uint32_t(-16777217)), f(-16777216));
  EXPECT_EQ(evaluate1("cvt.rz.f32.u32 %r3, %r1;", 0xffffffff), 0x4f7fffffu);
  EXPECT_EQ(evaluate1("cvt.sat.u8.s32 %r3, %r1;", 300), 255u);
  EXPECT_EQ(evaluate1("cvt.s32.s8 %r3, %r1;", 0x80), 0xffffff80u);
  EXPECT_EQ(evaluate1("cvt.u16.u32 %h1, %r1; cvt.u32.u16 %r3, %h1;", 0x12345678), 0x5678u);
  EXPECT_EQ(
      evaluate1("cvt.rn.satfinite.e4m3x2.f32 %h1, %r1, %r2; cvt.u32.u16 %r3, %h1;", f(1000), f(-1)),
      0x7eb8u);
  EXPECT_EQ(evaluate1("cvt.u16.u32 %h1, %r1; cvt.rn.f16x2.e4m3x2 %r3, %h1;", 0x7eb8), 0x5f00bc00u);
  EXPECT_EQ(evaluate1("cvt.rna.tf32.f32 %r3, %r1;", f(1 + 0x1p-11f)), f(1 + 0x1p-10f));
  EXPECT_EQ(evaluate1("cvt.rn.tf32.f32 %r3, %r1;", f(1 + 0x1p-11f)), f(1));
  EXPECT_EQ(evaluate1("cvt.rn.tf32.f32 %r3, %r1;", f(1 + 0x3p-11f)), f(1 + 0x4p-11f));
  EXPECT_EQ(evaluate1("mov.b32 {%h1, %h2}, %r1; cvt.f32.f16 %r3, %h1;", 0x3c00), f(1));
  EXPECT_EQ(evaluate1("mov.b32 {%h1, %h2}, %r1; cvt.f32.bf16 %r3, %h2;", 0x40000000), f(2));
}

TEST(Select, Comparisons) {
  EXPECT_EQ(evaluate1("setp.lt.s32 %p1, %r1, %r2; selp.u32 %r3, 1, 2, %p1;", uint32_t(-1), 1), 1u);
  EXPECT_EQ(evaluate1("setp.lo.u32 %p1, %r1, %r2; selp.u32 %r3, 1, 2, %p1;", uint32_t(-1), 1), 2u);
  EXPECT_EQ(evaluate1("setp.gt.f32 %p1|%p2, %r1, %r2; selp.u32 %r3, 1, 2, %p2;", f(1), f(2)), 1u);
  EXPECT_EQ(evaluate1("setp.ltu.f32 %p1, %r1, %r2; selp.u32 %r3, 1, 2, %p1;", 0x7fc00000, f(2)),
            1u);
  EXPECT_EQ(
      evaluate1(
          "setp.ne.u32 %p0, %r1, %r1; setp.eq.or.u32 %p1, %r1, %r2, !%p0; selp.u32 %r3, 1, 2, %p1;",
          1, 2),
      1u);
  EXPECT_EQ(evaluate1("set.eq.u32.u32 %r3, %r1, %r2;", 4, 4), 0xffffffffu);
  EXPECT_EQ(evaluate1("slct.u32.s32 %r3, 7, 9, %r1;", uint32_t(-1)), 9u);
}

TEST(Warp, ShuffleVoteMatch) {
  LaunchSetup s;
  Result r = runPtx("shfl.sync.down.b32 %r1|%p1, %r0, 4, 31, -1; @!%p1 mov.u32 %r1, 1000; "
                    "mul.wide.u32 %d1, %r0, 4; add.u64 %d1, %d0, %d1;"
                    "st.global.u32 [%d1], %r1;",
                    s);
  ASSERT_TRUE(r.report.ok()) << r.text();
  EXPECT_EQ(r.out[0], 4u);
  EXPECT_EQ(r.out[27], 31u);
  EXPECT_EQ(r.out[28], 1000u);
  r = runPtx("and.b32 %r1, %r0, 3; match.sync.any.b32 %r2, %r1, -1; setp.lt.u32 %p1, %r0, 5; "
             "vote.sync.ballot.b32 %r3, %p1, -1;"
             "redux.sync.add.u32 %r4, %r0, -1; mul.wide.u32 %d1, %r0, 4; add.u64 %d1, %d0, %d1; "
             "st.global.u32 [%d1], %r2;"
             "setp.eq.u32 %p2, %r0, 0; @%p2 st.global.v2.u32 [%d0+128], {%r3, %r4};",
             s);
  ASSERT_TRUE(r.report.ok()) << r.text();
  EXPECT_EQ(r.out[1], 0x22222222u);
  EXPECT_EQ(r.out[32], 31u);
  EXPECT_EQ(r.out[33], 496u);
}

TEST(Control, DivergenceReconverges) {
  // Lanes leave the loop one after the other; the vote after it needs all of them.
  Result r =
      runPtx("mov.u32 %r1, 0;\nL: add.u32 %r1, %r1, 1; setp.le.u32 %p1, %r1, %r0; @%p1 bra L;\n"
             "vote.sync.all.pred %p2, %p1, -1; selp.u32 %r2, 1, %r1, %p2;"
             "mul.wide.u32 %d1, %r0, 4; add.u64 %d1, %d0, %d1; st.global.u32 [%d1], %r2;");
  ASSERT_TRUE(r.report.ok()) << r.text();
  for (unsigned k = 0; k < 32; ++k)
    EXPECT_EQ(r.out[k], k + 1);
  r = runPtx("and.b32 %r1, %r0, 3;\nts: .branchtargets A, B, C, D;\nbrx.idx %r1, ts;\n"
             "A: mov.u32 %r2, 10; bra E;\nB: mov.u32 %r2, 11; bra E;\nC: mov.u32 %r2, 12; bra "
             "E;\nD: mov.u32 %r2, 13;\nE:\n"
             "bar.warp.sync -1; mul.wide.u32 %d1, %r0, 4; add.u64 %d1, %d0, %d1; st.global.u32 "
             "[%d1], %r2;");
  ASSERT_TRUE(r.report.ok()) << r.text();
  for (unsigned k = 0; k < 32; ++k)
    EXPECT_EQ(r.out[k], 10 + k % 4);
}

TEST(Memory, AtomicsAndReductions) {
  LaunchSetup s;
  s.threads = 64;
  s.in = {5, 0, 0, 100};
  Result r = runPtx(
      "atom.global.add.u32 %r1, [%d0], 1; red.global.max.u32 [%d0+4], %r0; atom.global.inc.u32 "
      "%r2, [%d0+8], 9;"
      "red.global.add.f32 [%d0+16], 0f3F000000; atom.global.cas.b32 %r3, [%d0+12], 100, %r0;",
      s);
  ASSERT_TRUE(r.report.ok()) << r.text();
  EXPECT_EQ(r.out[0], 69u);
  EXPECT_EQ(r.out[1], 63u);
  EXPECT_EQ(r.out[2], 4u);
  EXPECT_EQ(r.out[4], f(32));
}

TEST(Async, BulkCopiesAndCpAsync) {
  LaunchSetup s;
  s.in.assign(64, 7);
  Result r =
      runPtx("mov.u32 %r1, smem; setp.ne.u32 %p1, %r0, 0; @%p1 bra "
             "W;\nmbarrier.init.shared::cta.b64 [%r1+512], 1; fence.proxy.async.shared::cta;\n"
             "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1+512], 64;\n"
             "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], "
             "[%d0], 64, [%r1+512];\nW: bar.sync 0;\n"
             "L: mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r1+512], 0; @!%p2 bra L;\n"
             "@%p1 bra X;\nld.shared.u32 %r2, [%r1+60]; add.u32 %r2, %r2, 1; st.shared.u32 "
             "[%r1+60], %r2;\nfence.proxy.async;\n"
             "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d0], [%r1], "
             "64;\ncp.async.bulk.commit_group;\n"
             "cp.async.bulk.wait_group 0;\nX:",
             s);
  ASSERT_TRUE(r.report.ok()) << r.text();
  EXPECT_EQ(r.out[0], 14u);
  EXPECT_EQ(r.out[15], 15u);
  EXPECT_EQ(r.out[16], 7u);
  r = runPtx("mov.u32 %r1, smem; shl.b32 %r2, %r0, 2; add.u32 %r2, %r2, %r1; mul.wide.u32 %d1, "
             "%r0, 4; add.u64 %d1, %d0, %d1;\n"
             "cp.async.ca.shared.global [%r2], [%d1], 4; cp.async.commit_group; "
             "cp.async.wait_group 0; bar.sync 0;\n"
             "xor.b32 %r3, %r0, 31; shl.b32 %r3, %r3, 2; add.u32 %r3, %r3, %r1; ld.shared.u32 %r4, "
             "[%r3]; add.u32 %r4, %r4, %r0;"
             "st.global.u32 [%d1], %r4;",
             s);
  ASSERT_TRUE(r.report.ok()) << r.text();
  EXPECT_EQ(r.out[3], 10u);
}

TEST(Matrix, LoadAndStoreAreInverse) {
  for (const char *trans : {"", ".trans"}) {
    std::string t = trans;
    Result r = runPtx("mov.u32 %r1, smem; shl.b32 %r2, %r0, 4; add.u32 %r2, %r2, %r1; mul.lo.u32 "
                      "%r3, %r0, 3; add.u32 %r4, %r0, 77;"
                      "mov.u32 %r5, 1; mov.u32 %r6, 2; stmatrix.sync.aligned.m8n8.x4" +
                      t +
                      ".shared.b16 [%r2], {%r3, %r4, %r5, %r6};"
                      "bar.warp.sync -1; ldmatrix.sync.aligned.m8n8.x4" +
                      t +
                      ".shared.b16 {%r7, %r8, %r9, %r10}, [%r2];"
                      "sub.u32 %r7, %r7, %r3; sub.u32 %r8, %r8, %r4; or.b32 %r7, %r7, %r8; "
                      "mul.wide.u32 %d1, %r0, 4; add.u64 %d1, %d0, %d1;"
                      "st.global.u32 [%d1], %r7;");
    ASSERT_TRUE(r.report.ok()) << r.text();
    for (unsigned k = 0; k < 32; ++k)
      EXPECT_EQ(r.out[k], 0u);
  }
}

TEST(Cluster, DistributedSharedMemory) {
  LaunchSetup s;
  s.grid = s.cluster = {2, 1, 1};
  Result r = runPtx(
      "mov.u32 %r1, smem; mov.u32 %r2, %cluster_ctarank; xor.b32 %r3, %r2, 1; "
      "mapa.shared::cluster.u32 %r4, %r1, %r3;"
      "setp.ne.u32 %p1, %r0, 0; add.u32 %r5, %r2, 40; @!%p1 st.shared::cluster.u32 [%r4], %r5;"
      "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; @%p1 bra X;\nld.shared.u32 "
      "%r6, [%r1];"
      "mul.wide.u32 %d1, %r2, 4; add.u64 %d1, %d0, %d1; st.global.u32 [%d1], %r6;\nX:",
      s);
  ASSERT_TRUE(r.report.ok()) << r.text();
  EXPECT_EQ(r.out[0], 41u);
  EXPECT_EQ(r.out[1], 40u);
}

TEST(Cluster, StoreAsync) {
  // CTA 1 gets 7 from CTA 0, and each counts what it is sent on its own mbarrier.
  const char *kStart =
      "mov.u32 %r1, smem; mov.u32 %r2, %cluster_ctarank; setp.eq.u32 %p1, %r0, 0; "
      "setp.eq.u32 %p2, %r2, 0; setp.ne.u32 %p3, %r2, 0;"
      "@%p1 mbarrier.init.shared::cta.b64 [%r1], 1; fence.mbarrier_init.release.cluster; "
      "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 4;"
      "barrier.cluster.arrive; barrier.cluster.wait;";
  const char *kSend =
      "and.pred %p4, %p1, %p2; mov.u32 %r9, 0;"
      "SEND:\nmapa.shared::cluster.u32 %r3, %r1, %r9; add.u32 %r4, %r9, 7;"
      "@%p4 st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r3+16], %r4, [%r3];"
      "add.u32 %r9, %r9, 1; setp.lt.u32 %p5, %r9, 2; @%p5 bra SEND;";
  const char *kReceive = "WAIT:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p6, "
                         "[%r1], 0; @!%p6 bra WAIT;";
  const char *kRead =
      "ld.shared.u32 %r5, [%r1+16]; mul.wide.u32 %d1, %r2, 4; add.u64 %d1, %d0, %d1;"
      "@%p1 st.global.u32 [%d1], %r5; barrier.cluster.arrive; barrier.cluster.wait;";
  LaunchSetup setup;
  setup.grid = setup.cluster = {2, 1, 1};
  for (setup.seed = 0; setup.seed < 8; ++setup.seed) {
    Result result = runPtx(std::string(kStart) + kSend + kReceive + kRead, setup);
    EXPECT_TRUE(result.report.ok()) << result.text();
    EXPECT_EQ(result.out[0], 7u);
    EXPECT_EQ(result.out[1], 8u);
  }
  // Without the wait nothing orders the write and the read.
  Result early = runPtx(std::string(kStart) + kSend + kRead, setup);
  EXPECT_TRUE(early.has(DiagKind::UninitialisedShared) || early.has(DiagKind::Race))
      << early.text();
}

TEST(Copies, OfTF32Round) {
  // As measured on an H200, the words that a copy reads and what it writes.
  constexpr std::pair<uint32_t, uint32_t> words[] = {
      {0x3f800000, 0x3f800000}, {0x3f800001, 0x3f800000}, {0x3f800fff, 0x3f800000},
      {0x3f801000, 0x3f800000}, {0x3f801001, 0x3f802000}, {0x3f801fff, 0x3f802000},
      {0x3f802fff, 0x3f802000}, {0x3f803000, 0x3f804000}, {0x3f803001, 0x3f804000},
      {0xbf801000, 0xbf800000}, {0xbf801001, 0xbf802000}, {0xbf803000, 0xbf804000},
      {0x7f7fffff, 0x7f800000}, {0x7f800000, 0x7f800000}, {0x7fffffff, 0x7fffe000},
      {0x7f800001, 0x7fffe000}, {0xffc00000, 0x7fffe000}, {0x00001000, 0x00000000},
      {0x00001001, 0x00002000}, {0x007fffff, 0x00800000}};
  LaunchSetup setup;
  for (auto [read, written] : words)
    setup.in.push_back(read);
  setup.in.resize(32);
  setup.map.emplace();
  setup.map->type = TensorElement::TF32;
  setup.map->dims = {32};
  setup.map->box = {32};
  Result result = runPtx(R"(
    mov.b64 %d1, map; cvta.param.u64 %d1, %d1; mov.u32 %r1, smem;
    setp.ne.u32 %p1, %r0, 0;
    @%p1 bra JOIN;
    mbarrier.init.shared::cta.b64 [%r1+512], 1;
    fence.mbarrier_init.release.cluster; fence.proxy.async;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1+512], 128;
    cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%d1, {0}], [%r1+512];
JOIN: bar.sync 0;
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1+512], 0;
    @!%p2 bra WAIT;
    shl.b32 %r2, %r0, 2; add.u32 %r2, %r2, %r1; ld.shared.u32 %r3, [%r2];
    mul.wide.u32 %d2, %r0, 4; add.u64 %d2, %d2, %d0; st.global.u32 [%d2], %r3;)",
                         setup);
  ASSERT_TRUE(result.error.empty() && result.report.ok()) << result.text();
  for (auto [i, word] : llvm::enumerate(words))
    EXPECT_EQ(result.out[i], word.second) << std::hex << word.first;
}
