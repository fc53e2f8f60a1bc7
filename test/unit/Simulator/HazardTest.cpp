//===- HazardTest.cpp - What is reported, and what is not -----------------===//
#include "RunPtx.h"
#include "gtest/gtest.h"

using namespace tessera::sim;
using namespace tessera::sim::test;

static LaunchSetup warps(unsigned n) {
  LaunchSetup s;
  s.threads = 32 * n;
  return s;
}
/// Runs over several seeds; true when some seed reports the kind.
static bool finds(llvm::StringRef body, DiagKind kind, LaunchSetup s = {}) {
  for (s.seed = 0; s.seed < 12; ++s.seed) {
    Result r = runPtx(body, s);
    EXPECT_EQ(r.error, "");
    if (r.has(kind))
      return true;
  }
  return false;
}
static std::string reports(llvm::StringRef body, LaunchSetup s = {}) {
  for (s.seed = 0; s.seed < 12; ++s.seed)
    if (Result r = runPtx(body, s); !r.error.empty() || !r.report.ok())
      return r.text();
  return "";
}

static const char *kWarp = "mov.u32 %r1, smem; shr.u32 %r2, %r0, 5; and.b32 %r3, %r0, 31; "
                           "setp.eq.u32 %p1, %r2, 0; setp.eq.u32 %p2, %r3, 0;";
static std::string with(const char *body) { return std::string(kWarp) + body; }

TEST(Hazard, SharedMemoryRace) {
  EXPECT_TRUE(finds(with("@%p1 st.shared.u32 [%r1], %r0; @!%p1 st.shared.u32 [%r1], %r0;"),
                    DiagKind::Race, warps(2)));
  EXPECT_EQ(
      reports(with("@%p1 st.shared.u32 [%r1], %r0; bar.sync 0; @!%p1 ld.shared.u32 %r4, [%r1];"),
              warps(2)),
      "");
  // Different bytes of a word do not race.
  EXPECT_EQ(reports(with("add.u32 %r4, %r1, %r2; st.shared.u8 [%r4], %r2;"), warps(4)), "");
  // Nor do atomics.
  EXPECT_EQ(reports(with("@%p1 st.shared.u32 [%r1], %r0; bar.sync 0; red.shared.add.u32 [%r1], 1;"),
                    warps(4)),
            "");
}

TEST(Hazard, UninitialisedReads) {
  EXPECT_TRUE(finds(with("ld.shared.u32 %r4, [%r1];"), DiagKind::UninitialisedShared));
  EXPECT_TRUE(finds("add.u32 %r4, %r5, 1;", DiagKind::UninitialisedRegister));
  EXPECT_TRUE(finds("@%p7 add.u32 %r4, %r0, 1;", DiagKind::UninitialisedRegister));
  // Copies carry undefined bits without harm; using them is the error.
  EXPECT_EQ(reports("mov.u32 %r4, %r5; mov.b64 %d1, {%r4, %r0};"), "");
  EXPECT_TRUE(
      finds("mov.u32 %r4, %r5; st.global.u32 [%d0], %r4;", DiagKind::UninitialisedRegister));
  EXPECT_TRUE(finds("setp.lt.u32 %p1, %r0, 3; @%p1 mov.u32 %r4, 1; st.global.u32 [%d0], %r4;",
                    DiagKind::UninitialisedRegister));
}

/// One half of a pair may be undefined where the other alone is used.
TEST(Hazard, UninitialisedHalves) {
  auto use = [](const char *operation) {
    return std::string("cvt.u16.u32 %h1, %r0; mov.b32 %r4, {%h1, %h2}; mov.b32 %r6, %r4; ") +
           operation + " st.global.u32 [%d0], %r5;";
  };
  for (const char *ofLow : {"shl.b32 %r5, %r6, 16;", "and.b32 %r5, %r6, 0xff00;",
                            "mov.b32 {%h3, %h4}, %r6; cvt.u32.u16 %r5, %h3;",
                            "prmt.b32 %r5, %r6, 0, 0x7771;", "prmt.b32 %r5, 0, %r6, 0x4504;"})
    EXPECT_EQ(reports(use(ofLow)), "") << ofLow;
  for (const char *ofHigh :
       {"shl.b32 %r5, %r6, 15;", "shr.u32 %r5, %r6, 16;", "and.b32 %r5, %r6, -65536;",
        "and.b32 %r5, %r6, 0x1ffff;", "mov.b32 {%h3, %h4}, %r6; cvt.u32.u16 %r5, %h4;",
        "mov.b32 %r5, %r6;", "prmt.b32 %r5, %r6, 0, 0x7772;", "prmt.b32 %r5, %r6, 0, 0x7720;",
        "prmt.b32 %r5, %r6, 0, %r0;", "prmt.b32.b4e %r5, %r6, 0, 0;"})
    EXPECT_TRUE(finds(use(ofHigh), DiagKind::UninitialisedRegister)) << ofHigh;
}

TEST(Hazard, BoundsAndAlignment) {
  EXPECT_TRUE(finds("ld.global.u32 %r1, [%d0+256];", DiagKind::OutOfBounds));
  EXPECT_TRUE(finds("mov.u32 %r1, smem; st.shared.u32 [%r1+1024], %r0;", DiagKind::OutOfBounds));
  EXPECT_TRUE(finds("ld.global.u32 %r1, [%d0+2];", DiagKind::Misaligned));
  EXPECT_TRUE(finds("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d0+8];", DiagKind::Misaligned));
}

TEST(Hazard, NamedBarriers) {
  EXPECT_TRUE(finds(with("@%p1 bra A; bar.sync 1, 96; bra B;\nA: bar.sync 1, 64;\nB:"),
                    DiagKind::NamedBarrierCount, warps(2)));
  EXPECT_TRUE(finds(with("@%p1 bar.arrive 1, 64; @%p1 bar.arrive 1, 64;"),
                    DiagKind::NamedBarrierCount, warps(2)));
  EXPECT_TRUE(finds(with("@%p1 bar.sync 1, 64;"), DiagKind::Deadlock, warps(2)));
  EXPECT_TRUE(finds(with("@%p2 bar.sync 1, 32;"), DiagKind::DivergentAligned));
  EXPECT_EQ(
      reports(with("@%p1 bra A; bar.arrive 1, 64; bra B;\nA: bar.sync 1, 64;\nB: bar.sync 0;"),
              warps(2)),
      "");
}

static const char *kInit = "@%p1 bra I; bra J;\nI: @%p2 mbarrier.init.shared::cta.b64 [%r1], 1; "
                           "fence.mbarrier_init.release.cluster;\nJ: bar.sync 0;\n";
static std::string barrier(const char *body) { return std::string(kWarp) + kInit + body; }
#define WAIT(label, parity)                                                                        \
  label ": mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1], " parity "; @!%p3 bra " label ";"  \
        "\n"

TEST(Hazard, Mbarriers) {
  EXPECT_TRUE(finds(with(WAIT("L", "0")), DiagKind::UninitialisedBarrier));
  EXPECT_TRUE(finds(barrier(WAIT("L", "0")), DiagKind::Deadlock, warps(2)));
  EXPECT_TRUE(finds(with("@%p2 mbarrier.init.shared::cta.b64 [%r1], 0;"), DiagKind::BarrierMisuse));
  EXPECT_TRUE(finds(
      barrier(
          "setp.eq.and.u32 %p4, %r0, 0, %p2; @%p4 mbarrier.arrive.shared::cta.b64 _, [%r1], 2;"),
      DiagKind::OverArrival));
  EXPECT_TRUE(
      finds(barrier("@!%p1 bra X;\nst.shared.u32 [%r1], %r0;\nX:"), DiagKind::BarrierMisuse));
  EXPECT_EQ(
      reports(barrier("@!%p1 bra W; @%p2 mbarrier.arrive.shared::cta.b64 _, [%r1]; bra X;\n" WAIT(
                  "W", "0") "X:"),
              warps(2)),
      "");
  // The waiter for phase 0 may find phase 1 complete as well, and wait for ever.
  EXPECT_TRUE(
      finds(barrier("@!%p1 bra W; @%p2 mbarrier.arrive.shared::cta.b64 _, [%r1]; @%p2 "
                    "mbarrier.arrive.shared::cta.b64 _, [%r1]; bra X;\n" WAIT("W", "0") "X:"),
            DiagKind::ParityAliasing, warps(2)));
  // An arrival orders what came before it; a relaxed one does not.
  EXPECT_EQ(reports(barrier("@!%p1 bra W; @%p2 st.shared.u32 [%r1+16], %r0; @%p2 "
                            "mbarrier.arrive.shared::cta.b64 _, [%r1]; bra X;\n" WAIT(
                                "W", "0") "ld.shared.u32 %r5, [%r1+16];\nX:"),
                    warps(2)),
            "");
}

TEST(Hazard, AsyncProxy) {
  std::string load = barrier("");
  const char *copy =
      "@!%p1 bra W; @!%p2 bra X;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 64;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+128], [%d0], 64, "
      "[%r1];\nbra X;\n";
  // Reading before the copy has landed: old data at best.
  EXPECT_TRUE(finds(load + copy + "W: ld.shared.u32 %r5, [%r1+128];\nX: bar.sync 0;" WAIT("Z", "0"),
                    DiagKind::UninitialisedShared, warps(2)));
  std::string filled = load + "add.u32 %r6, %r1, %r0; @%p1 st.shared.u8 [%r6+128], %r0; @%p1 "
                              "st.shared.u8 [%r6+160], %r0; fence.proxy.async; bar.sync 0;\n";
  EXPECT_EQ(reports(filled + copy + "W:\nX: bar.sync 0;\n" WAIT("Z", "0"), warps(2)), "");
  EXPECT_TRUE(
      finds(filled + copy + "W: ld.shared.u32 %r5, [%r1+128];\nX: bar.sync 0;\n" WAIT("Z", "0"),
            DiagKind::SlotOverwritten, warps(2)));
  EXPECT_TRUE(
      finds(filled + copy + "W:\nX: bar.sync 0; ld.shared.u32 %r5, [%r1+128];\n" WAIT("Z", "0"),
            DiagKind::SlotOverwritten, warps(2)));
  EXPECT_EQ(reports(load + copy + WAIT("W", "0") "ld.shared.u32 %r5, [%r1+128];\nX:", warps(2)),
            "");
  EXPECT_TRUE(finds(load + copy + "W:\nX:", DiagKind::PendingAtExit, warps(2)));
  std::string store = with("st.shared.u32 [%r1+128], %r0; bar.warp.sync -1;");
  const char *bulk = "@!%p2 bra X; cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r1+128], "
                     "16; cp.async.bulk.commit_group;"
                     "cp.async.bulk.wait_group.read 0;\nX:";
  std::string fill = with("shl.b32 %r4, %r3, 2; add.u32 %r4, %r4, %r1; st.shared.u32 [%r4+128], "
                          "%r0; bar.warp.sync -1;");
  EXPECT_TRUE(finds(fill + bulk, DiagKind::MissingProxyFence));
  EXPECT_EQ(reports(fill + "fence.proxy.async.shared::cta; bar.warp.sync -1;" + bulk), "");
  EXPECT_TRUE(finds(fill + "fence.proxy.async; @!%p2 bra X; "
                           "cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r1+128], 16;"
                           "cp.async.bulk.commit_group; st.shared.u32 [%r1+128], %r0; "
                           "cp.async.bulk.wait_group.read 0;\nX:",
                    DiagKind::SlotOverwritten) ||
              finds(fill + "fence.proxy.async; @!%p2 bra X; "
                           "cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r1+128], 16;"
                           "cp.async.bulk.commit_group; st.shared.u32 [%r1+128], %r0; "
                           "cp.async.bulk.wait_group.read 0;\nX:",
                    DiagKind::Race));
}

/// Warp 1 runs `consumer` on what a copy has filled, and arrives in it; then warp 0 fills the same
/// bytes again.
static std::string refilled(const char *consumer) {
  const char *copy = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 128;\n"
                     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+128], "
                     "[%d0], 128, [%r1];\n";
  std::string text =
      with("@%p1 bra I; bra J;\nI: @%p2 mbarrier.init.shared::cta.b64 [%r1], 1; @%p2 "
           "mbarrier.init.shared::cta.b64 [%r1+8], 32; fence.mbarrier_init.release.cluster;\n"
           "J: bar.sync 0; shl.b32 %r4, %r3, 2; add.u32 %r4, %r4, %r1;\n@!%p1 bra C;\n"
           "@!%p2 bra X;\n");
  text += copy;
  text += "E: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1+8], 0; @!%p3 bra E;\n";
  text += copy;
  text += "bra X;\nC:\n" WAIT("F", "0");
  text += consumer;
  return text + "X: bar.sync 0;\n" WAIT("H", "1");
}
#define ARRIVE "mbarrier.arrive.shared::cta.b64 _, [%r1+8];\n"

TEST(Hazard, ReadsThatAnArrivalOvertakes) {
  auto check = [](const char *consumer, bool isOvertaken) {
    LaunchSetup s = warps(2);
    std::string text = refilled(consumer);
    if (isOvertaken)
      EXPECT_TRUE(finds(text, DiagKind::OvertakenRead, s)) << consumer;
    else
      EXPECT_EQ(reports(text, s), "") << consumer;
  };
  check("ld.shared.u32 %r5, [%r4+128];\n" ARRIVE, true);
  check("ld.shared.u32 %r5, [%r4+128]; fence.proxy.async.shared::cta;\n" ARRIVE, false);
  check("ld.shared.u32 %r5, [%r4+128];\n" ARRIVE "fence.proxy.async.shared::cta;\n", true);
  // Arithmetic can be put off.
  check("ld.shared.u32 %r5, [%r4+128]; add.u32 %r5, %r5, 1;\n" ARRIVE, true);
  check("ld.shared.u32 %r5, [%r4+128]; st.shared.u32 [%r4+512], %r5;\n" ARRIVE, false);
  check("ld.shared.u32 %r5, [%r4+128]; shfl.sync.idx.b32 %r5, %r5, 0, 31, -1;\n" ARRIVE, false);
  check("ld.shared.u32 %r5, [%r4+128]; setp.eq.u32 %p4, %r5, 1; @%p4 bra Y;\nY:\n" ARRIVE, false);
  // What arithmetic has made of a value comes from it.
  check("ld.shared.u32 %r5, [%r4+128]; mul.lo.u32 %r6, %r5, 3; mov.b64 %d1, {%r6, %r0}; "
        "st.shared.u64 [%r1+512], %d1;\n" ARRIVE,
        false);
  check("ld.shared.u32 %r5, [%r4+128]; mov.u32 %r6, %r5; mov.u32 %r6, 0; "
        "st.shared.u32 [%r4+512], %r6;\n" ARRIVE,
        true);
  // Each lane takes its own.
  check("ld.shared.u32 %r5, [%r4+128]; @%p2 st.shared.u32 [%r4+512], %r5;\n" ARRIVE, true);
  check("ld.shared.u32 %r5, [%r4+128]; @%p2 st.shared.u32 [%r4+512], %r5; "
        "@!%p2 st.shared.u32 [%r4+512], %r5;\n" ARRIVE,
        false);
  // One register of a load is as good as all of them, but not one load as good as another.
  check("and.b32 %r6, %r4, -16; ld.shared.v4.u32 {%r5, %r7, %r8, %r9}, [%r6+128]; "
        "st.shared.u32 [%r4+512], %r8;\n" ARRIVE,
        false);
  check("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [%r1+128]; "
        "st.shared.u32 [%r4+512], %r5;\n" ARRIVE,
        false);
  check("ld.shared.u32 %r5, [%r4+128]; ld.shared.u32 %r6, [%r1+128]; "
        "st.shared.u32 [%r4+512], %r6;\n" ARRIVE,
        true);
  // A barrier waits for nothing; what is taken behind it and before the arrival is.
  check("ld.shared.u32 %r5, [%r4+128]; bar.sync 1, 32;\n" ARRIVE, true);
  check("ld.shared.u32 %r5, [%r4+128]; bar.sync 1, 32; st.shared.u32 [%r4+512], %r5;\n" ARRIVE,
        false);
  check("ld.shared.u32 %r5, [%r4+128];\n" ARRIVE "st.shared.u32 [%r4+512], %r5;\n", true);
}

TEST(Hazard, OvertakenReadsAmongThoseOfManyWarps) {
  // Warp 1 reads first, four others the same word behind it, of which the last one arrives.
  auto consumer = [](const char *taken) {
    return std::string("setp.eq.u32 %p4, %r2, 1; setp.eq.u32 %p5, %r2, 5;\n@!%p4 bra Y;\n"
                       "ld.shared.u32 %r5, [%r4+128];\n") +
           taken +
           "Y: bar.sync 1, 160;\n@%p4 bra Z;\nld.shared.u32 %r6, [%r4+128]; "
           "shfl.sync.idx.b32 %r6, %r6, 0, 31, -1;\nZ: bar.sync 2, 160;\n@!%p5 bra X;\n" ARRIVE;
  };
  LaunchSetup s = warps(6);
  EXPECT_TRUE(finds(refilled(consumer("").c_str()), DiagKind::OvertakenRead, s));
  std::string taken = consumer("shfl.sync.idx.b32 %r5, %r5, 0, 31, -1;\n");
  EXPECT_EQ(reports(refilled(taken.c_str()), s), "");
}

TEST(Hazard, ReportsWhatOvertakesARead) {
  LaunchSetup s = warps(2);
  Result r = runPtx(refilled("ld.shared.u32 %r5, [%r4+128];\n" ARRIVE), s);
  ASSERT_TRUE(r.has(DiagKind::OvertakenRead)) << r.text();
  for (const char *part :
       {"asynchronous write of shared memory offset 128 while a read by warp 1 may be under way",
        "note: the read is at PTX line", "note: what does not wait for it is at PTX line"})
    EXPECT_NE(r.text().find(part), std::string::npos) << part << "\n" << r.text();
}

TEST(Hazard, RegisterPool) {
  EXPECT_TRUE(finds("setmaxnreg.inc.sync.aligned.u32 256;", DiagKind::RegisterPool, warps(8)));
  EXPECT_TRUE(finds("setmaxnreg.dec.sync.aligned.u32 256;", DiagKind::RegisterPool, warps(32)));
}

TEST(Hazard, DeadlockNamesEverything) {
  LaunchSetup s = warps(2);
  Result r = runPtx(barrier(WAIT("L", "0")), s);
  std::string text = r.text();
  EXPECT_NE(text.find("wants the phase with parity 0 to complete, the barrier is in phase 0 "
                      "(parity 0); 1 of 1 arrivals and 0 bytes are missing"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("each of warps 0 to 1 waits for mbarrier shared memory offset 0"),
            std::string::npos)
      << text;
}
