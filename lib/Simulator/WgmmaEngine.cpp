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
/// Between rows of B. Not a power of two: a column of it would use few sets of the host's cache.
constexpr unsigned kStepB = kMaxN + 8;
/// Rows that are multiplied at a time, which share what is read of B. They are rows of one warp.
constexpr unsigned kRowsAtOnce = 4, kColumnsAtOnce = 8;

inline float elementValue(const uint8_t *p, WgmmaType t) {
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

template <WgmmaType type>
void unpackElements(const uint8_t *p, double *out, size_t step) {
  constexpr unsigned bytes = wgmmaTypeBytes(type);
  for (unsigned k = 0; k < 16 / bytes; ++k)
    out[k * step] = elementValue(p + k * bytes, type);
}

void unpackUnit(const uint8_t *p, WgmmaType t, double *out, size_t step) {
  switch (t) {
  case WgmmaType::F16:
    return unpackElements<WgmmaType::F16>(p, out, step);
  case WgmmaType::BF16:
    return unpackElements<WgmmaType::BF16>(p, out, step);
  case WgmmaType::TF32:
    return unpackElements<WgmmaType::TF32>(p, out, step);
  case WgmmaType::E4M3:
  case WgmmaType::E5M2:
    const float *table = fp8Table(t);
    for (unsigned k = 0; k < 16; ++k)
      out[k * step] = table[p[k]];
  }
}

/// Adds the products of rows of A, kMaxK apart, and B to rows of `acc`, kMaxN apart. Each sum is of
/// one order. Products of operands are exact in double precision.
inline __attribute__((always_inline)) void multiplyRows(double *acc, const double *a,
                                                        const double *b, unsigned n, unsigned k) {
  for (unsigned column = 0; column < n; column += kColumnsAtOnce) {
    double sums[kRowsAtOnce][kColumnsAtOnce];
    for (unsigned row = 0; row < kRowsAtOnce; ++row)
      for (unsigned j = 0; j < kColumnsAtOnce; ++j)
        sums[row][j] = acc[row * kMaxN + column + j];
    for (unsigned x = 0; x < k; ++x)
      for (unsigned row = 0; row < kRowsAtOnce; ++row)
        for (unsigned j = 0; j < kColumnsAtOnce; ++j)
          sums[row][j] += a[row * kMaxK + x] * b[x * kStepB + column + j];
    for (unsigned row = 0; row < kRowsAtOnce; ++row)
      for (unsigned j = 0; j < kColumnsAtOnce; ++j)
        acc[row * kMaxN + column + j] = sums[row][j];
  }
}
void multiplyPlain(double *acc, const double *a, const double *b, unsigned n, unsigned k) {
  multiplyRows(acc, a, b, n, k);
}
#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void multiplyAvx(double *acc, const double *a, const double *b,
                                                     unsigned n, unsigned k) {
  multiplyRows(acc, a, b, n, k);
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
  template <typename Visit>
  void forFragments(unsigned row, double *acc, Visit visit);
  void loadRows(unsigned row, double *acc);
  void storeRows(unsigned row, double *acc);
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
  checkArray(cluster, *op.inst, *what == 'A' ? 0 : 1, offset, 16, &warp(0), -1);
  Conflict c = cta.shadow.read(offset, 16, access, op.order);
  if (c.hazard != Hazard::None && !reported) {
    reported = true;
    reportConflict(cluster, c, access, false, &warp(0), op.inst, -1);
  }
  return cta.shared.data() + offset;
}

/// A goes to out[row][k] (row stride kMaxK), B to out[k][n] (row stride kStepB).
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
  size_t mnStep = isA ? kMaxK : 1, kStep = isA ? 1 : kStepB;
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

/// Calls `visit(words, acc)` with what the four lanes of each row from `row` on have of eight
/// columns: their words, as many for a lane as there are registers, and the columns of `acc`.
/// Register r of lane l is row l/4 + 8 (r / 2 % 2), columns 8 (r / 4) + 2 (l % 4) + r % 2 (PTX ISA
/// 9.7.15.5.2); packed f16 has two columns a register.
template <typename Visit>
void Engine::forFragments(unsigned row, double *acc, Visit visit) {
  const Op *ops = &cluster.run->program->ops[op.inst->opBegin];
  uint32_t *regs = warp(row / 16).regs.data();
  unsigned lane = row % 8 * 4, half = row / 8 % 2, each = info.accF16 ? 1 : 2;
  for (unsigned r = half * each, column = 0; r < info.accRegs; r += 2 * each, column += 8) {
    uint32_t *words[2] = {regs + ops[r].offset + lane, regs + ops[r + each - 1].offset + lane};
    for (unsigned k = 0; k < kRowsAtOnce; ++k)
      for (unsigned l = 0; l < 4; ++l)
        visit(words[0][4 * k + l], words[1][4 * k + l], acc + k * kMaxN + column + 2 * l);
  }
}

/// The accumulators of rows from `row` on.
void Engine::loadRows(unsigned row, double *acc) {
  if (!op.scaleD[0]) {
    for (unsigned k = 0; k < kRowsAtOnce; ++k)
      std::fill_n(acc + k * kMaxN, info.n, 0.0);
  } else if (info.accF16) {
    forFragments(row, acc, [](uint32_t &word, uint32_t &, double *c) {
      c[0] = f16ToFloat(word & 0xffff);
      c[1] = f16ToFloat(word >> 16);
    });
  } else {
    forFragments(row, acc, [](uint32_t &even, uint32_t &odd, double *c) {
      c[0] = bitCast<float>(even);
      c[1] = bitCast<float>(odd);
    });
  }
}

void Engine::storeRows(unsigned row, double *acc) {
  if (info.accF16)
    forFragments(row, acc, [](uint32_t &word, uint32_t &, const double *c) {
      word = encodeFloat(c[0], kF16, Rounding::Nearest, false) |
             encodeFloat(c[1], kF16, Rounding::Nearest, false) << 16;
    });
  else
    forFragments(row, acc, [](uint32_t &even, uint32_t &odd, const double *c) {
      even = bitCast<uint32_t>(canonical(float(c[0])));
      odd = bitCast<uint32_t>(canonical(float(c[1])));
    });
}

void Engine::run() {
  thread_local std::vector<double> storage(kRows * kMaxK + kMaxK * kStepB + kRowsAtOnce * kMaxN);
  double *a = storage.data(), *b = a + kRows * kMaxK, *acc = b + kMaxK * kStepB;
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
  for (unsigned row = 0; row < kRows; row += kRowsAtOnce) {
    loadRows(row, acc);
    multiply(acc, a + row * kMaxK, b, info.n, info.k);
    storeRows(row, acc);
  }
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
