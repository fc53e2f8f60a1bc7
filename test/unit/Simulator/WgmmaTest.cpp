//===- WgmmaTest.cpp - Every operand mode of wgmma, fed by TMA ------------===//
#include "lib/Simulator/Numeric.h"
#include "lib/Simulator/Simulator.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <cstring>

using namespace tessera::sim;
using namespace tessera::sim::detail;

namespace {

struct Mode {
  std::string type; ///< f16, bf16, tf32, e4m3, e5m2
  unsigned bytes;
  unsigned swizzle;    ///< 0, 32, 64, 128
  bool aMajor, bMajor; ///< MN-major
  bool aInRegs;
  bool accF16;
};

uint32_t encode(float v, const std::string &t) {
  if (t == "f16")
    return floatToF16(v);
  if (t == "bf16")
    return floatToBf16(v);
  if (t == "tf32")
    return bitCast<uint32_t>(v);
  return encodeFloat(v, t == "e4m3" ? kE4M3 : kE5M2, Rounding::Nearest, true);
}

constexpr unsigned kN = 64;

/// An operand of `rows` x k in global memory (K-major) or k x rows (MN-major), and the instructions
/// that load it to `smem`.
struct OperandPlan {
  TensorMapDesc map;
  std::string loads;                            ///< with the tensor map's address in %d{map}
  uint32_t bytes = 0;                           ///< of shared memory
  uint32_t leading = 16, stride = 0, step = 32; ///< descriptor; bytes from one k-step to the next
};

OperandPlan plan(const Mode &m, bool mnMajor, unsigned rows, unsigned k, uint32_t base,
                 unsigned mapReg) {
  OperandPlan p;
  unsigned unit = m.swizzle ? m.swizzle : 16; // bytes of a box row
  unsigned inner = mnMajor ? rows : k, outer = mnMajor ? k : rows;
  p.map.type = m.bytes == 1   ? TensorElement::U8
               : m.bytes == 2 ? TensorElement::BF16
                              : TensorElement::F32;
  p.map.dims = {inner, outer};
  p.map.strides = {uint64_t(inner) * m.bytes};
  p.map.box = {unit / m.bytes, outer};
  p.map.swizzle = m.swizzle == 128 ? 3 : m.swizzle == 64 ? 2 : m.swizzle == 32 ? 1 : 0;
  unsigned boxBytes = unit * outer;
  for (unsigned x = 0; x < inner; x += unit / m.bytes) {
    p.loads += llvm::formatv("add.u32 %r9, %r1, {0}; mov.u32 %r8, {1};\n"
                             "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx:"
                             ":bytes [%r9], [%d{2}, {{%r8, %r7}], [%r2];\n",
                             base + p.bytes, x, mapReg)
                   .str();
    p.bytes += boxBytes;
  }
  if (!mnMajor) {
    p.stride = 8 * unit;
    p.leading = m.swizzle ? 16 : boxBytes;
    p.step = m.swizzle ? 32 : 2 * boxBytes;
  } else if (m.swizzle) {
    p.leading = boxBytes;
    p.stride = 8 * unit;
    p.step = 16 * unit;
  } else {
    p.stride = boxBytes;
    p.leading = 128;
    p.step = 256;
  }
  return p;
}

std::string check(const Mode &m) {
  unsigned kStep = 32 / m.bytes,
           steps = m.swizzle > 32 && !m.aMajor && !m.bMajor ? m.swizzle / 32 : 2;
  if (m.swizzle == 32 && !(m.aMajor && m.bMajor))
    steps = 1; // a row of 32 bytes is one k-step
  if (m.swizzle > 32 && (m.aMajor != m.bMajor))
    steps = m.swizzle / 32;
  unsigned k = kStep * steps;
  std::vector<float> a(64 * k), b(kN * k);
  for (size_t x = 0; x < a.size(); ++x)
    a[x] = float(int(x * 7 % 9) - 4);
  for (size_t x = 0; x < b.size(); ++x)
    b[x] = float(int(x * 5 % 7) - 3);

  GlobalMemory memory;
  auto upload = [&](const std::vector<float> &v, unsigned rows, bool mnMajor, const char *name) {
    std::vector<uint8_t> raw(v.size() * m.bytes);
    for (unsigned r = 0; r < rows; ++r)
      for (unsigned c = 0; c < k; ++c) {
        uint32_t bits = encode(v[r * k + c], m.type);
        memcpy(&raw[(mnMajor ? c * rows + r : r * k + c) * m.bytes], &bits, m.bytes);
      }
    uint64_t address = llvm::cantFail(memory.allocate(raw.size(), name));
    llvm::cantFail(memory.write(address, raw));
    return address;
  };
  uint64_t ga = upload(a, 64, m.aMajor, "a"), gb = upload(b, kN, m.bMajor, "b");
  uint64_t out = llvm::cantFail(memory.allocate(128 * 32 * 4, "out"));
  OperandPlan pa = plan(m, m.aMajor, 64, k, 0, 1), pb = plan(m, m.bMajor, kN, k, 32768, 2);
  pa.map.globalAddress = ga;
  pb.map.globalAddress = gb;

  unsigned regs = m.accF16 ? kN / 4 : kN / 2;
  std::string ptx =
      ".version 8.3\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 smem[];\n"
      ".visible .entry k(.param .align 64 .b8 ma[128], .param .align 64 .b8 mb[128], .param .u64 "
      "out, .param .u64 ga)\n{\n"
      ".reg .b32 %r<32>; .reg .b64 %d<16>; .reg .b32 %c<64>; .reg .f32 %f<64>; .reg .b32 %a<4>; "
      ".reg .pred %p<4>;\n"
      "mov.u32 %r1, smem; mov.u32 %r0, %tid.x; add.u32 %r2, %r1, 65536; mov.b64 %d1, ma; "
      "cvta.param.u64 %d1, %d1;\n"
      "mov.b64 %d2, mb; cvta.param.u64 %d2, %d2; mov.u32 %r7, 0; setp.ne.u32 %p1, %r0, 0; @%p1 bra "
      "W;\n"
      "mbarrier.init.shared::cta.b64 [%r2], 1; fence.mbarrier_init.release.cluster;\n";
  ptx += llvm::formatv("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], {0};\n",
                       pa.bytes + pb.bytes)
             .str() +
         pa.loads + pb.loads;
  ptx +=
      "W: bar.sync 0;\nL: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra L;\n";
  uint64_t swizzleBits = m.swizzle == 128 ? 1 : m.swizzle == 64 ? 2 : m.swizzle == 32 ? 3 : 0;
  auto descriptor = [&](const OperandPlan &p, uint32_t base, unsigned step, const char *reg) {
    uint64_t high =
        swizzleBits << 62 | uint64_t(p.stride >> 4) << 32 | uint64_t(p.leading >> 4) << 16;
    return llvm::formatv("add.u32 %r10, %r1, {0}; and.b32 %r10, %r10, 262143; shr.u32 %r10, %r10, "
                         "4; cvt.u64.u32 {1}, %r10; or.b64 {1}, {1}, {2};\n",
                         base + step * p.step, reg, int64_t(high))
        .str();
  };
  std::string acc;
  for (unsigned r = 0; r < regs; ++r)
    acc += llvm::formatv("{0}%{1}{2}", r ? ", " : "", m.accF16 ? "c" : "f", r).str();
  // Registers of A: row l/4 + 8 (r & 1), bytes 4 (l % 4) + 16 (r / 2) of the row's 32.
  std::string prologue = "shr.u32 %r11, %r0, 5; and.b32 %r12, %r0, 31; shr.u32 %r13, %r12, 2; "
                         "mad.lo.u32 %r13, %r11, 16, %r13; and.b32 %r14, %r12, 3;\n"
                         "ld.param.u64 %d7, [ga];\n";
  ptx += prologue;
  for (unsigned s = 0; s < steps; ++s) {
    std::string first = "%d3";
    if (m.aInRegs) {
      for (unsigned r = 0; r < 4; ++r)
        ptx += llvm::formatv(
                   "add.u32 %r15, %r13, {0}; mul.lo.u32 %r15, %r15, {1}; mad.lo.u32 %r15, %r14, 4, "
                   "%r15; add.u32 %r15, %r15, {2};"
                   "cvt.u64.u32 %d8, %r15; add.u64 %d8, %d8, %d7; ld.global.u32 %a{3}, [%d8];\n",
                   8 * (r & 1), k * m.bytes, s * 32 + 16 * (r / 2), r)
                   .str();
      first = "{%a0, %a1, %a2, %a3}";
    } else {
      ptx += descriptor(pa, 0, s, "%d3");
    }
    ptx += descriptor(pb, 32768, s, "%d4");
    ptx += "wgmma.fence.sync.aligned;\n";
    std::string tail = m.bytes != 2 ? ""
                       : m.aInRegs
                           ? llvm::formatv(", {0}", int(m.bMajor)).str()
                           : llvm::formatv(", {0}, {1}", int(m.aMajor), int(m.bMajor)).str();
    ptx +=
        llvm::formatv(
            "wgmma.mma_async.sync.aligned.m64n{0}k{1}.{2}.{3}.{3} {{{4}}, {5}, %d4, {6}, 1, 1{7};\n"
            "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n",
            kN, kStep, m.accF16 ? "f16" : "f32", m.type, acc, first, s ? 1 : 0, tail)
            .str();
  }
  ptx += "ld.param.u64 %d5, [out]; mul.wide.u32 %d6, %r0, 128; add.u64 %d5, %d5, %d6;\n";
  for (unsigned r = 0; r < regs; ++r)
    ptx +=
        llvm::formatv("st.global.b32 [%d5+{0}], %{1}{2};\n", 4 * r, m.accF16 ? "c" : "f", r).str();
  ptx += "ret;\n}\n";

  auto module = parseModule(ptx, "wgmma.ptx");
  if (!module)
    return llvm::toString(module.takeError());
  Launch launch;
  launch.kernel = "k";
  launch.block = {128, 1, 1};
  launch.dynamicSharedBytes = 65536 + 16;
  launch.memory = &memory;
  launch.params.resize(272);
  auto encodedA = llvm::cantFail(encodeTensorMap(pa.map)),
       encodedB = llvm::cantFail(encodeTensorMap(pb.map));
  memcpy(&launch.params[0], encodedA.data(), 128);
  memcpy(&launch.params[128], encodedB.data(), 128);
  memcpy(&launch.params[256], &out, 8);
  memcpy(&launch.params[264], &ga, 8);
  auto report = run(*module, launch, Options());
  if (!report)
    return llvm::toString(report.takeError());
  std::string text;
  llvm::raw_string_ostream os(text);
  report->print(os);
  if (!report->ok())
    return text;
  std::vector<uint32_t> result(128 * 32);
  llvm::cantFail(memory.read(out, {reinterpret_cast<uint8_t *>(result.data()), result.size() * 4}));
  for (unsigned t = 0; t < 128; ++t)
    for (unsigned q = 0; q < kN / 2; ++q) {
      unsigned row = t / 32 * 16 + t % 32 / 4 + 8 * (q / 2 % 2),
               column = q / 4 * 8 + t % 4 * 2 + q % 2;
      float expected = 0;
      for (unsigned x = 0; x < k; ++x)
        expected += a[row * k + x] * b[column * k + x];
      uint32_t bits = result[t * 32 + (m.accF16 ? q / 2 : q)];
      float got = m.accF16 ? f16ToFloat(bits >> (q % 2 * 16) & 0xffff) : bitCast<float>(bits);
      if (got != expected)
        return llvm::formatv("row {0} column {1}: {2}, expected {3}", row, column, got, expected)
            .str();
    }
  return "";
}

TEST(Wgmma, EveryOperandMode) {
  static const std::pair<const char *, unsigned> types[] = {
      {"f16", 2}, {"bf16", 2}, {"tf32", 4}, {"e4m3", 1}, {"e5m2", 1}};
  unsigned tested = 0;
  for (auto [type, bytes] : types)
    for (unsigned swizzle : {0, 32, 64, 128})
      for (unsigned majors = 0; majors < (bytes == 2 ? 4u : 1u); ++majors)
        for (bool regs : {false, true})
          for (bool accF16 : {false, true}) {
            Mode m{type, bytes, swizzle, bool(majors & 1), bool(majors & 2), regs, accF16};
            if ((accF16 && (m.type == "bf16" || m.type == "tf32")) || (regs && m.aMajor))
              continue;
            EXPECT_EQ(check(m), "") << type << " swizzle " << swizzle << " majors " << majors
                                    << " regs " << regs << " f16 " << accF16;
            ++tested;
          }
  EXPECT_GE(tested, 60u);
}

} // namespace
