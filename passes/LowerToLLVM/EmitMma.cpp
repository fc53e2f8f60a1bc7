//===- EmitMma.cpp - wgmma ------------------------------------------------===//
//
// A product is one block of inline assembly for each 64 rows and up to 256 columns, or as many as
// the registers leave room for with which a thread starts: fence, one wgmma.mma_async for each 32
// bytes of K, and a commit after the last. The accumulators are tied in and out, so nothing moves
// between (PTX ISA 9.7.15).
//
//===----------------------------------------------------------------------===//

#include "dialects/Hop/Machine.h"
#include "dialects/Hop/RegisterPool.h"
#include "dialects/Tile/ScheduleFields.h"
#include "passes/Analysis/PtxasRegisters.h"
#include "passes/LowerToLLVM/Emitter.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;

/// A shared-memory operand: the low word of its descriptor and what is added to it for each
/// step along K and for other rows or columns, in bytes.
struct Emitter::Operand {
  Value low;
  uint32_t high;
  hop::SharedLayout layout;
  bool kMajor;

  /// Byte offset of K step `k`, one wgmma deep, and row or column `other` of the other dimension.
  int64_t offset(int64_t k, int64_t other) const {
    if (kMajor) {
      int64_t byte = k * hopper::mmaDepthBytes;
      return byte / layout.swizzle * layout.chunkBytes() + byte % layout.swizzle +
             other * layout.swizzle;
    }
    return k * hopper::mmaDepthBytes / layout.elementBytes * layout.swizzle +
           other / layout.chunkColumns() * layout.chunkBytes();
  }
};

/// One block of assembly: 64 x n += 64 x k by k x n.
struct Emitter::Product {
  int64_t n;
  int64_t kFirst, kSteps; ///< of all steps along K those that the block takes
  Type elementType;       ///< of a and b
  Values accumulator;     ///< n / 2 registers, or none to start at 0
  Values registersA;      ///< 4 for each K step, or none for shared memory
  bool copiesA = false;   ///< the registers are read while the product is in flight
  const Operand *a = nullptr;
  const Operand *b = nullptr;
  int64_t row = 0, column = 0; ///< of the block in the whole product
};

/// Matrix descriptor (PTX ISA 9.7.15.5.1.2): address, leading and stride byte offsets over 16,
/// swizzle mode in bits 62-63.
Emitter::Operand Emitter::sharedOperand(Value value, bool kMajor) {
  SharedPlace tile = sharedTiles.find(value)->second;
  const hop::SharedLayout &layout = tile.layout;
  // A leading offset exists along the contiguous dimension, from chunk to chunk; K-major
  // operands of one swizzle span do not use it.
  int64_t leading = kMajor ? 16 : layout.chunkBytes();
  Operand operand;
  operand.layout = layout;
  operand.kMajor = kMajor;
  operand.high = static_cast<uint32_t>(layout.atomBytes() >> 4) | layout.descriptorMode() << 30;
  // 18 bits: in a cluster the bits above hold the rank of the thread block.
  Value masked = LLVM::AndOp::create(builder, loc, tile.address, i32(0x3FFFF));
  Value address = LLVM::LShrOp::create(builder, loc, masked, i32(4));
  operand.low = LLVM::OrOp::create(builder, loc, address, i32((leading >> 4) << 16));
  return operand;
}

/// The name that wgmma has for the type of its operands.
static StringRef nameOfOperands(Type element) {
  if (tile::isByteFloat(element))
    return isa<Float8E4M3FNType>(element) ? "e4m3" : "e5m2";
  return element.isF32() ? "tf32" : element.isBF16() ? "bf16" : "f16";
}

/// The wgmma instructions of a product along K, whose operands A and B begin at `firstA` and
/// `firstB` of an assembly text (PTX ISA 9.7.15.5.2).
void Emitter::printSteps(llvm::raw_ostream &os, const Product &product, int64_t firstA,
                         int64_t firstB) {
  int64_t bits = product.elementType.getIntOrFloatBitWidth();
  std::string registers;
  for (int64_t i = 0; i < product.n / 2; ++i)
    registers += llvm::formatv("{0}${1}", i ? ", " : "", i).str();
  auto descriptor = [&](StringRef name, int64_t operand, const Operand &shared, int64_t k,
                        int64_t other) {
    os << llvm::formatv("add.u32 low, ${0}, {1};\nmov.b32 high, {2};\nmov.b64 {3}, {{low, high};\n",
                        operand, shared.offset(k, other) >> 4, static_cast<int64_t>(shared.high),
                        name);
  };
  for (int64_t k = 0; k < product.kSteps; ++k) {
    std::string a = "da";
    if (product.a) {
      descriptor("da", firstA, *product.a, product.kFirst + k, product.row);
    } else if (product.copiesA) {
      a = llvm::formatv("{{a{0}, a{1}, a{2}, a{3}}", 4 * k, 4 * k + 1, 4 * k + 2, 4 * k + 3).str();
    } else {
      a = llvm::formatv("{{${0}, ${1}, ${2}, ${3}}", firstA + 4 * k, firstA + 4 * k + 1,
                        firstA + 4 * k + 2, firstA + 4 * k + 3)
              .str();
    }
    descriptor("db", firstB, *product.b, product.kFirst + k, product.column);
    bool fromZero = k == 0 && product.accumulator.empty();
    os << llvm::formatv(
        "wgmma.mma_async.sync.aligned.m64n{0}k{1}.f32.{2}.{2} {{{3}}, {4}, db, {5}, 1, 1",
        product.n, hopper::mmaDepth(bits), nameOfOperands(product.elementType), registers, a,
        fromZero ? "none" : "all");
    // Transposition is said of operands in shared memory only.
    if (product.a && hopper::mmaTransposes(bits))
      os << (product.a->kMajor ? ", 0" : ", 1");
    if (hopper::mmaTransposes(bits))
      os << (product.b->kMajor ? ", 0" : ", 1");
    os << ";\n";
  }
}

Emitter::Values Emitter::emitProduct(const Product &product, bool commit) {
  int64_t count = product.n / 2;
  // Operands after the outputs: tied accumulators, then A's registers or descriptor, then B's.
  int64_t next = 2 * count;
  SmallVector<Type> types(count, builder.getF32Type());
  Values operands = product.accumulator;
  if (operands.empty())
    operands.assign(count, undef(builder.getF32Type()));
  std::string constraints;
  for (int64_t i = 0; i < count; ++i)
    constraints += i ? ",=f" : "=f";
  for (int64_t i = 0; i < count; ++i)
    constraints += llvm::formatv(",{0}", i).str();
  int64_t firstA = next;
  for (Value value : product.registersA)
    operands.push_back(value), constraints += ",r", ++next;
  if (product.a)
    operands.push_back(product.a->low), constraints += ",r", ++next;
  int64_t firstB = next;
  operands.push_back(product.b->low);
  constraints += ",r";

  std::string text = "{\n.reg .pred none, all;\n.reg .b32 zero, low, high;\n.reg .b64 da, db;\n"
                     "mov.b32 zero, 0;\nsetp.ne.b32 none, zero, 0;\nsetp.eq.b32 all, zero, 0;\n";
  llvm::raw_string_ostream os(text);
  if (product.copiesA) {
    os << llvm::formatv(".reg .b32 a<{0}>;\n", product.registersA.size());
    for (size_t i = 0; i < product.registersA.size(); ++i)
      os << llvm::formatv("mov.b32 a{0}, ${1};\n", i, firstA + i);
  }
  os << "wgmma.fence.sync.aligned;\n";
  printSteps(os, product, firstA, firstB);
  if (commit)
    os << "wgmma.commit_group.sync.aligned;\n";
  os << "}";
  return assembly(text, constraints, operands, types);
}

/// ptxas assembles no wgmma whose accumulators have no room in the registers with which a thread
/// starts, whatever its role has later (C7602).
int64_t Emitter::mostColumns() {
  int64_t entry = hop::entryRegisters(hop::getRegisterRequests(kernel));
  int64_t fitting = 2 * (entry - kBesideAccumulators);
  return std::clamp<int64_t>(fitting, hopper::mmaColumns, hopper::mostMmaColumns);
}

/// Columns of one instruction of a product of `n` columns: equal parts that start where chunks of
/// `b` do, or whole chunks but for the last part.
int64_t Emitter::columnsAtOnce(int64_t n, const Operand &b) {
  int64_t chunk = b.kMajor ? hopper::mmaColumns : b.layout.chunkColumns(), most = mostColumns();
  for (int64_t parts = llvm::divideCeil(n, most); parts * hopper::mmaColumns <= n; ++parts)
    if (n % (parts * hopper::mmaColumns) == 0 && (parts == 1 || n / parts % chunk == 0))
      return n / parts;
  return std::max(chunk, most / chunk * chunk);
}

LogicalResult Emitter::emitIssue(hop::MmaIssueOp op) {
  RankedTensorType tile = op.getFlight().getType().getTile();
  int64_t m = tile.getDimSize(0), n = tile.getDimSize(1);
  auto sharedA = dyn_cast<hop::SharedType>(op.getA().getType());
  hop::SharedType typeB = op.getB().getType();
  Operand b = sharedOperand(op.getB(), op.getTransposeB());
  std::optional<Operand> a;
  Values registersA, accumulator;
  if (sharedA)
    a = sharedOperand(op.getA(), !op.getTransposeA());
  else
    registersA = elements(op.getA());
  if (op.getAcc())
    accumulator = elements(op.getAcc());

  int64_t k = typeB.getTile().getDimSize(op.getTransposeB() ? 1 : 0);
  int64_t kSteps = k / hopper::mmaDepth(typeB.getTile().getElementTypeBitWidth());
  int64_t width = columnsAtOnce(n, b), parts = llvm::divideCeil(n, width);
  int64_t blocks = m / hopper::mmaRows;
  // What a role hands on behind its product (hop-fill-products) it has computed right before: in
  // two pieces of assembly, of which ptxas computes the operands of the second one under the first.
  bool byHalves = kernel.getSchedule().getPlacement() == tile::PlacementKind::divided &&
                  op.getCopiesA() && kSteps % 2 == 0;
  int64_t halves = byHalves ? 2 : 1, steps = kSteps / halves;
  Values result(blocks * (n / 2));
  for (int64_t i = 0; i < halves * blocks * parts; ++i) {
    int64_t half = i / (blocks * parts), block = i / parts % blocks, part = i % parts;
    Product product;
    product.column = width * part;
    product.n = std::min(width, n - product.column);
    product.kFirst = half * steps;
    product.kSteps = steps;
    product.elementType = typeB.getTile().getElementType();
    product.a = a ? &*a : nullptr;
    product.b = &b;
    product.copiesA = op.getCopiesA();
    product.row = hopper::mmaRows * block;
    size_t first = block * (n / 2) + product.column / 2;
    if (const Values &sums = half ? result : accumulator; !sums.empty())
      product.accumulator.assign(sums.begin() + first, sums.begin() + first + product.n / 2);
    if (!a) // 4 registers for each step
      product.registersA.assign(registersA.begin() + 4 * (block * kSteps + product.kFirst),
                                registersA.begin() + 4 * (block * kSteps + product.kFirst + steps));
    Values values = emitProduct(product, i + 1 == halves * blocks * parts);
    llvm::copy(values, result.begin() + first);
  }
  bind(op.getFlight(), std::move(result));
  return success();
}

/// Ends the block behind a branch that is never taken, to a block that uses `tiles`. ptxas moves
/// wgmma.wait_group and products up over arithmetic, but not into another block, and the use keeps
/// the arithmetic in this one. The other block has a wait of its own, and each place another block:
/// ptxas serialises the products of a loop that it can leave with some in flight (C7515).
void Emitter::emitBlockEnd(ValueRange tiles) {
  std::string text = "wgmma.wait_group.sync.aligned 0;", constraints = "r";
  Values operands = {sharedBase};
  for (Value element : flatValues(tiles)) {
    operands.push_back(element);
    constraints += element.getType().isF32() ? ",f" : ",r";
    text += llvm::formatv("\nst.volatile.shared.b32 [$0], ${0};", operands.size() - 1).str();
  }
  // The size of the dynamic shared memory, which holds the tiles, is not 0; ptxas does not know.
  Value size = intrinsic("llvm.nvvm.read.ptx.sreg.dynamic_smem_size", builder.getI32Type(), {});
  // LLVM would know the outcome of a condition that it has seen. No size of it is odd either.
  int64_t seen = kernel.getSchedule().getFields().leadsAlone() ? blockEnds++ : 0;
  Value never = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, size,
                                     i32(seen ? 2 * seen - 1 : 0));
  Block *next = splitBlock();
  Block *cold = builder.createBlock(&function.getBody());
  assembly(text, constraints, operands, {});
  LLVM::ReturnOp::create(builder, loc, ValueRange());
  builder.setInsertionPointToEnd(next->getPrevNode());
  LLVM::CondBrOp::create(builder, loc, never, cold, next);
  builder.setInsertionPointToStart(next);
}

/// The wait is tied to the accumulators it completes, and takes A's registers so that they
/// live until here.
LogicalResult Emitter::emitWait(hop::MmaWaitOp op) {
  if (!op.getBehind().empty())
    emitBlockEnd(op.getBehind());
  Values operands = flatValues(op.getFlights());
  size_t count = operands.size();
  std::string constraints;
  for (size_t i = 0; i < count; ++i)
    constraints += i ? ",=f" : "=f";
  for (size_t i = 0; i < count; ++i)
    constraints += llvm::formatv(",{0}", i).str();
  for (Value kept : op.getKept())
    for (Value element : elements(kept)) {
      operands.push_back(element);
      constraints += ",r";
    }
  SmallVector<Type> types(count, builder.getF32Type());
  Values results = assembly("wgmma.wait_group.sync.aligned " + Twine(op.getPending()) + ";",
                            constraints, operands, types);
  setFlatValues(op.getTiles(), results);
  return success();
}
