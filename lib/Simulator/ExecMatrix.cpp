//===- ExecMatrix.cpp - ldmatrix, stmatrix, movmatrix (PTX ISA 9.7.14.5) ---===//
#include "lib/Simulator/Lanes.h"
#include "lib/Simulator/Memory.h"
#include "llvm/Support/FormatVariadic.h"

using namespace tessera::sim;
using namespace tessera::sim::detail;
using llvm::StringRef;

namespace {

/// select: matrices; aux: transposed. Lane 8m + r gives the address of row r of matrix m. Lane l of
/// register m holds row l/4, elements 2 (l % 4) and the next; transposed, rows and columns change
/// places.
bool rowPlace(Exec &exec, const Inst &inst, unsigned addressOperand, unsigned lane, AccessKind kind,
              Place &p) {
  uint64_t address = addressAt(exec, inst, addressOperand, lane);
  if (address % 16) {
    exec.report(DiagKind::Misaligned, inst,
                llvm::formatv("row address {0:x} is not a multiple of 16", address).str(), lane);
    return false;
  }
  if (!resolveShared(exec, inst, address, 16, lane, true, p))
    return false;
  noteShared(exec, inst, p, 16, lane, kind, false);
  return true;
}

Step ldmatrix(Exec &exec, const Inst &inst) {
  unsigned n = inst.select;
  for (unsigned m = 0; m < n; ++m) {
    uint16_t rows[8][8] = {};
    for (unsigned r = 0; r < 8; ++r) {
      Place p;
      if (rowPlace(exec, inst, n, 8 * m + r, AccessKind::Read, p))
        memcpy(rows[r], p.data, 16);
    }
    uint32_t v[kLanes];
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      unsigned x = lane / 4, y = 2 * (lane % 4);
      v[lane] = inst.aux ? rows[y][x] | uint32_t(rows[y + 1][x]) << 16
                         : rows[x][y] | uint32_t(rows[x][y + 1]) << 16;
    }
    exec.store(inst, m, v);
  }
  beginRead(exec, inst, exec.active);
  return Step::Next;
}

Step stmatrix(Exec &exec, const Inst &inst) {
  for (unsigned m = 0; m < inst.select; ++m) {
    uint16_t rows[8][8];
    const uint32_t *v = exec.src<uint32_t>(inst, m + 1);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      unsigned x = lane / 4, y = 2 * (lane % 4);
      (inst.aux ? rows[y][x] : rows[x][y]) = uint16_t(v[lane]);
      (inst.aux ? rows[y + 1][x] : rows[x][y + 1]) = uint16_t(v[lane] >> 16);
    }
    for (unsigned r = 0; r < 8; ++r) {
      Place p;
      if (rowPlace(exec, inst, 0, 8 * m + r, AccessKind::Write, p))
        memcpy(p.data, rows[r], 16);
    }
  }
  exec.cluster->event();
  return Step::Next;
}

Step movmatrix(Exec &exec, const Inst &inst) {
  const uint32_t *a = exec.src<uint32_t>(inst, 1);
  uint32_t r[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    unsigned x = lane / 4, y = 2 * (lane % 4);
    auto at = [&](unsigned row, unsigned column) {
      return a[row * 4 + column / 2] >> (column % 2 * 16) & 0xffff;
    };
    r[lane] = at(y, x) | at(y + 1, x) << 16;
  }
  exec.store(inst, 0, r);
  return Step::Next;
}

} // namespace

bool tessera::sim::detail::decodeMatrix(Decoder &d, StringRef opcode) {
  bool load = opcode == "ldmatrix";
  if (!load && opcode != "stmatrix" && opcode != "movmatrix")
    return false;
  const auto &o = d.s->operands;
  if (!d.take("sync") || !d.take("aligned") || !d.take("m8n8"))
    return d.refuse("in this form is not modelled");
  d.inst.flags |= FlagAligned | FlagCounted;
  if (opcode == "movmatrix") {
    d.inst.fn = &movmatrix;
    return d.take("trans") && d.take("b16") && d.count(2) && d.dst(o[0], Ty::B32) &&
           d.src(o[1], Ty::B32);
  }
  unsigned n = d.takeNumber("x");
  if (n != 1 && n != 2 && n != 4)
    return d.refuse("needs .x1, .x2 or .x4");
  d.inst.select = n;
  d.inst.aux = d.take("trans");
  Space space = d.take("shared") || d.take("shared::cta") ? Space::Shared : Space::Generic;
  if (space == Space::Generic)
    return d.refuse("needs a shared memory address");
  if (!d.take("b16") || !d.count(2))
    return d.refuse("in this form is not modelled");
  if (load) {
    d.inst.fn = &ldmatrix;
    return d.vectorOf(o[0], n, Ty::B32, true) && d.address(o[1], space);
  }
  d.inst.fn = &stmatrix;
  return d.address(o[0], space) && d.vectorOf(o[1], n, Ty::B32, false);
}
