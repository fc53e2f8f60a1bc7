//===- WgmmaEngine.cpp - Execution of wgmma -------------------------------===//
//
// The products of one instruction and the accumulator are summed in double precision and rounded
// once. The machine aligns the products to the largest one and truncates, so results agree within
// the bounds that docs/simulator.md states.
//
//===----------------------------------------------------------------------===//
#include "lib/Simulator/Async.h"
#include "lib/Simulator/Memory.h"
#include "lib/Simulator/Numeric.h"
#include "lib/Simulator/Wgmma.h"
#include "llvm/Support/FormatVariadic.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;

namespace {

constexpr unsigned kRows = 64, kMaxN = 256, kMaxK = 32;

float elementValue(const uint8_t *p, WgmmaType t) {
  switch (t) {
  case WgmmaType::F16: {
    uint16_t h;
    memcpy(&h, p, 2);
    return f16ToFloat(h);
  }
  case WgmmaType::BF16: {
    uint16_t h;
    memcpy(&h, p, 2);
    return bf16ToFloat(h);
  }
  case WgmmaType::TF32: {
    uint32_t u; // the 13 low bits are ignored
    memcpy(&u, p, 4);
    return bitCast<float>(u & 0xffffe000);
  }
  case WgmmaType::E4M3:
    return tessera::sim::detail::decodeFloat(*p, kE4M3);
  case WgmmaType::E5M2:
    return tessera::sim::detail::decodeFloat(*p, kE5M2);
  }
  return 0;
}

/// fp8 values by pattern, filled once.
const float *fp8Table(WgmmaType t) {
  struct Tables {
    float e4m3[256], e5m2[256];
    Tables() {
      for (unsigned k = 0; k < 256; ++k) {
        e4m3[k] = tessera::sim::detail::decodeFloat(k, kE4M3);
        e5m2[k] = tessera::sim::detail::decodeFloat(k, kE5M2);
      }
    }
  };
  static const Tables tables;
  return t == WgmmaType::E4M3 ? tables.e4m3 : tables.e5m2;
}

void unpackUnit(const uint8_t *p, WgmmaType t, double *out, size_t step) {
  unsigned bytes = wgmmaTypeBytes(t);
  if (bytes == 1) {
    const float *table = fp8Table(t);
    for (unsigned k = 0; k < 16; ++k)
      out[k * step] = table[p[k]];
    return;
  }
  for (unsigned k = 0; k < 16 / bytes; ++k)
    out[k * step] = elementValue(p + k * bytes, t);
}

void multiplyPlain(double *acc, const double *a, const double *b, unsigned n, unsigned k) {
  for (unsigned x = 0; x < k; ++x) {
    double s = a[x];
    const double *row = b + size_t(x) * kMaxN;
    for (unsigned j = 0; j < n; ++j)
      acc[j] += s * row[j];
  }
}
#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void multiplyAvx(double *acc, const double *a, const double *b,
                                                     unsigned n, unsigned k) {
  for (unsigned x = 0; x < k; ++x) {
    double s = a[x];
    const double *row = b + size_t(x) * kMaxN;
    for (unsigned j = 0; j < n; ++j)
      acc[j] += s * row[j];
  }
}
#endif
void multiply(double *acc, const double *a, const double *b, unsigned n, unsigned k) {
#if defined(__x86_64__)
  static const bool fast = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (fast)
    return multiplyAvx(acc, a, b, n, k);
#endif
  multiplyPlain(acc, a, b, n, k);
}

class Engine {
public:
  Engine(Cluster &cluster, Cta &cta, unsigned groupIndex)
      : cluster(cluster), cta(cta), group(cta.groups[groupIndex]), firstWarp(groupIndex * 4),
        op(group.ops.front()), info(cluster.run->program->wgmmas[op.inst->aux]) {
    access.agent = group.agent;
    access.epoch = uint32_t(group.firstSeq + 1);
    access.site = op.inst - cluster.run->program->insts.data();
    access.async = true;
  }

  void run();

private:
  Cluster &cluster;
  Cta &cta;
  Warpgroup &group;
  unsigned firstWarp;
  WgmmaOp &op;
  const WgmmaInfo &info;
  Access access;
  bool reported = false;

  Warp &warp(unsigned w) { return *cta.warps[firstWarp + w]; }
  void report(DiagKind kind, const llvm::Twine &message) {
    addDiagnostic(cluster, kind, &warp(0), op.inst, -1, message);
  }
  const uint8_t *unit(uint32_t address, const char *what);
  void loadShared(uint64_t desc, bool isA, double *out);
  void loadRegisters(double *out);
};

const uint8_t *Engine::unit(uint32_t address, const char *what) {
  static const uint8_t zeros[16] = {};
  if (address < kSharedBase || address - kSharedBase + 16 > cta.shared.size()) {
    if (!reported)
      report(DiagKind::OutOfBounds,
             llvm::formatv("operand {0} reaches shared memory address {1:x} (offset {2}), outside "
                           "of the CTA's {3} bytes",
                           what, address, int64_t(address) - kSharedBase, cta.shared.size())
                 .str());
    reported = true;
    return zeros;
  }
  uint32_t offset = address - kSharedBase;
  Conflict c = cta.shadow.read(offset, 16, access, op.order);
  if (c.hazard != Hazard::None && !reported) {
    reported = true;
    reportConflict(cluster, c, access, false, &warp(0), op.inst, -1);
  }
  return cta.shared.data() + offset;
}

/// A goes to out[row][k] (row stride kMaxK), B to out[k][n] (row stride kMaxN).
void Engine::loadShared(uint64_t desc, bool isA, double *out) {
  MatrixDescriptor d(desc);
  WgmmaType t = WgmmaType(isA ? info.typeA : info.typeB);
  unsigned rows = isA ? kRows : info.n, perUnit = 16 / wgmmaTypeBytes(t);
  bool mnMajor = isA ? info.transA : info.transB;
  const char *what = isA ? "A" : "B";
  if (d.baseOffset)
    report(DiagKind::BadDescriptor,
           llvm::formatv("descriptor of {0}: base offset {1} is not modelled", what, d.baseOffset)
               .str());
  else if (d.patternRow())
    report(DiagKind::BadDescriptor,
           llvm::formatv("descriptor of {0}: the tile starts {1} bytes after a multiple of {2}, "
                         "after which the pattern of its {3}-byte swizzle repeats, and the base "
                         "offset says 0",
                         what, d.start % (128u << d.swizzle), 128u << d.swizzle, 16u << d.swizzle)
               .str());
  size_t mnStep = isA ? kMaxK : 1, kStep = isA ? 1 : kMaxN;
  if (!mnMajor) {
    for (unsigned mn = 0; mn < rows; ++mn)
      for (unsigned u = 0; u < 2; ++u)
        unpackUnit(unit(d.kMajor(mn, u), what), t, out + mn * mnStep + u * perUnit * kStep, kStep);
    return;
  }
  for (unsigned k = 0; k < info.k; ++k)
    for (unsigned u = 0; u < rows / perUnit; ++u)
      unpackUnit(unit(d.mnMajor(u, k), what), t, out + k * kStep + u * perUnit * mnStep, mnStep);
}

/// The fragment of A (PTX ISA 9.7.15.5.2): register r of lane l holds row l/4 + 8 (r & 1), and 32
/// bits of the row's bytes from 4 (l % 4) + 16 (r / 2).
void Engine::loadRegisters(double *out) {
  WgmmaType t = WgmmaType(info.typeA);
  unsigned bytes = wgmmaTypeBytes(t), per = 4 / bytes;
  const Program &p = *cluster.run->program;
  for (unsigned w = 0; w < 4; ++w)
    for (unsigned r = 0; r < 4; ++r) {
      const Op &o = p.ops[op.inst->opBegin + info.accRegs + r];
      const uint32_t *v = o.offset & Op::Constant ? &p.constants[o.offset & ~Op::Constant]
                                                  : &warp(w).regs[o.offset];
      for (unsigned l = 0; l < kLanes; ++l) {
        unsigned row = 16 * w + l / 4 + 8 * (r & 1), k = (l % 4) * per + (r / 2) * 4 * per;
        uint8_t raw[4];
        memcpy(raw, &v[l], 4);
        for (unsigned x = 0; x < per; ++x)
          out[row * kMaxK + k + x] = elementValue(raw + x * bytes, t);
      }
    }
}

void Engine::run() {
  thread_local std::vector<double> storage(kRows * kMaxK + kMaxK * kMaxN + kRows * kMaxN);
  double *a = storage.data(), *b = a + kRows * kMaxK, *acc = b + kMaxK * kMaxN;
  for (unsigned w = 1; w < 4; ++w)
    if (op.descA[w] != op.descA[0] || op.descB[w] != op.descB[0] || op.scaleD[w] != op.scaleD[0]) {
      report(DiagKind::WarpgroupMismatch,
             "the warps of the warpgroup give different descriptors or scale-d");
      break;
    }
  if (info.aRegs)
    loadRegisters(a);
  else
    loadShared(op.descA[0], true, a);
  loadShared(op.descB[0], false, b);
  if (info.scaleA * info.scaleB < 0)
    for (unsigned k = 0; k < kRows * kMaxK; ++k)
      a[k] = -a[k];

  const Program &p = *cluster.run->program;
  // Accumulator fragment: register r of lane l is row l/4 + 8 (r / 2 % 2), columns 8 (r / 4) + 2 (l
  // % 4) + r % 2; packed f16 has two columns a register.
  auto forAccumulators = [&](auto fn) {
    for (unsigned w = 0; w < 4; ++w)
      for (unsigned r = 0; r < info.accRegs; ++r) {
        const Op &o = p.ops[op.inst->opBegin + r];
        uint32_t *v = &warp(w).regs[o.offset];
        for (unsigned l = 0; l < kLanes; ++l) {
          unsigned q = info.accF16 ? 2 * r : r;
          unsigned row = 16 * w + l / 4 + 8 * (q / 2 % 2),
                   column = 8 * (q / 4) + 2 * (l % 4) + q % 2;
          fn(v[l], acc + row * kMaxN + column);
        }
      }
  };
  bool accumulate = op.scaleD[0];
  forAccumulators([&](uint32_t &reg, double *c) {
    if (info.accF16) {
      c[0] = accumulate ? f16ToFloat(reg & 0xffff) : 0.0f;
      c[1] = accumulate ? f16ToFloat(reg >> 16) : 0.0f;
    } else {
      c[0] = accumulate ? bitCast<float>(reg) : 0.0f;
    }
  });
  for (unsigned row = 0; row < kRows; ++row)
    multiply(acc + row * kMaxN, a + row * kMaxK, b, info.n, info.k);
  forAccumulators([&](uint32_t &reg, double *c) {
    if (info.accF16)
      reg = encodeFloat(c[0], kF16, Rounding::Nearest, false) |
            encodeFloat(c[1], kF16, Rounding::Nearest, false) << 16;
    else
      reg = bitCast<uint32_t>(canonical(float(c[0])));
  });
}

} // namespace

bool tessera::sim::detail::wgmmaReady(const Warpgroup &g) {
  return !g.ops.empty() && g.ops.front().issued == 15;
}

void tessera::sim::detail::completeWgmma(Cluster &cluster, Cta &cta, unsigned groupIndex) {
  Warpgroup &g = cta.groups[groupIndex];
  Engine(cluster, cta, groupIndex).run();
  g.ops.pop_front();
  ++g.firstSeq;
  ++g.completed;
  ++cluster.wgmmas;
  cluster.event();
}
