//===- EmitUnits.cpp - Neighbours in global memory, at once ---------------===//
//
// Where a layout gives a thread neighbours, 16 bytes are moved at once, or as many
// as the rows of the view start at. 16-bit accumulators are exchanged within quads
// before they are stored, so that a thread has 16 bytes of one row.
//
//===----------------------------------------------------------------------===//

#include "passes/LowerToLLVM/GlobalAccess.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tessera;
using hop::FragmentLayout;

//===----------------------------------------------------------------------===//
// Units
//===----------------------------------------------------------------------===//

/// Visits the units of a tile, row by row. What units of a row have in common is computed once.
void Emitter::forEachUnit(const Access &access, RankedTensorType type,
                          function_ref<void(const Unit &)> visit) {
  FragmentLayout layout(type);
  int64_t count = access.unit, columnAxis = type.getRank() - 1;
  auto isTrue = [&](LLVM::ICmpPredicate predicate, Value a, Value b) {
    return toI32(LLVM::ICmpOp::create(builder, loc, predicate, a, b));
  };
  auto both = [&](Value a, Value b) -> Value { return LLVM::AndOp::create(builder, loc, a, b); };
  struct Row {
    Value address, inside;
  };
  llvm::SmallDenseMap<int64_t, Row> rows;
  Place start = placeOf(access, 0, 0);
  Value left = LLVM::SubOp::create(builder, loc, access.columns, start.column);
  for (int64_t i = 0; i < layout.size(); i += count) {
    int64_t rowOffset = access.row ? layout.offset(i, 0) : 0,
            columnOffset = layout.offset(i, columnAxis);
    auto [entry, isNew] = rows.try_emplace(rowOffset);
    Row &row = entry->second;
    if (isNew) {
      Place place = placeOf(access, rowOffset, 0);
      row.address = addressOf(access, place);
      row.inside = place.row ? toI32(isBelow(place.row, access.rows)) : i32(1);
      for (Value inside : {access.outerInside, place.inside})
        if (inside)
          row.inside = both(row.inside, toI32(inside));
    }
    Unit unit{i, row.address, columnOffset * access.elementBytes, row.inside, {}, {}};
    if (!access.columnsStarted) // what is before the first column are whole units
      unit.whole = both(unit.whole,
                        isTrue(LLVM::ICmpPredicate::sge, add(start.column, columnOffset), i32(0)));
    if (!access.columnsInside) {
      Value started = unit.whole;
      unit.whole = both(started, isTrue(LLVM::ICmpPredicate::sge, left, i32(columnOffset + count)));
      if (!access.unitsWhole) {
        unit.partial = both(started, LLVM::XOrOp::create(builder, loc, unit.whole, i32(1)));
        unit.left = add(left, -columnOffset);
      }
    }
    visit(unit);
  }
}

std::string tessera::writeText(bool adds, int64_t elements, int64_t bits) {
  std::string vector = elements > 1 ? llvm::formatv(".v{0}", elements).str() : std::string();
  return adds ? llvm::formatv("red.relaxed.gpu.global.add{0}.f32", vector).str()
              : llvm::formatv("st.global{0}.b{1}", vector, bits).str();
}

namespace {
/// A unit of which some elements are outside the view, in the text of its instructions.
struct PartialUnit {
  std::string move; ///< one element
  bool loads;
  int64_t word; ///< the first of its registers, and their number
  int64_t words;
  std::string address;
  std::string left;      ///< how many of its elements are inside
  int64_t offset, bytes; ///< from the address, and of an element
};
} // namespace

/// Instructions on the elements of a unit for which `p` holds. 16-bit elements are halves of a
/// register, 8-bit ones a quarter, and those of 64 bits take two.
static std::string movePartialUnit(const PartialUnit &unit) {
  std::string text;
  for (int64_t i = 0; i < unit.words * hopper::registerBytes / unit.bytes; ++i) {
    std::string own = llvm::formatv("${0}", unit.word + i * unit.bytes / hopper::registerBytes),
                part = own, before, after;
    int64_t bit = i * unit.bytes % hopper::registerBytes * 8;
    if (unit.bytes == 1) {
      part = "byte";
      (unit.loads ? after : before) =
          unit.loads ? llvm::formatv("@q bfi.b32 {0}, byte, {0}, {1}, 8;\n", own, bit).str()
                     : llvm::formatv("bfe.u32 byte, {0}, {1}, 8;\n", own, bit).str();
    } else if (unit.bytes == 2) {
      part = bit ? "hi" : "lo";
      before = bit ? "" : llvm::formatv("mov.b32 {{lo, hi}, {0};\n", own).str();
      after = bit && unit.loads ? llvm::formatv("mov.b32 {0}, {{lo, hi};\n", own).str() : "";
    } else if (unit.bytes == 8) {
      part = "pair";
      std::string both = llvm::formatv("{{{0}, ${1}}", own, unit.word + i * 2 + 1);
      (unit.loads ? after : before) =
          unit.loads ? "@q mov.b64 " + both + ", pair;\n" : "mov.b64 pair, " + both + ";\n";
    }
    std::string place = llvm::formatv("[{0}+{1}]", unit.address, unit.offset + unit.bytes * i);
    text += before;
    text += llvm::formatv("setp.gt.and.s32 q, {0}, {1}, p;\n@q {2} {3}, {4};\n", unit.left, i,
                          unit.move, unit.loads ? part : place, unit.loads ? place : part);
    text += after;
  }
  return text;
}

/// Registers of `movePartialUnit`.
static std::string declarePartial(int64_t bytes) {
  return std::string("{\n.reg .pred p, q;\n.reg .b16 lo, hi;\n") + (bytes == 1 ? ".reg .b32 byte;\n"
                                                                    : bytes == 8
                                                                        ? ".reg .b64 pair;\n"
                                                                        : "");
}

/// "v4.b32", "v2.b32" or "b32"
static std::string vectorType(int64_t words) {
  return words == 1 ? "b32" : llvm::formatv("v{0}.b32", words).str();
}

Emitter::Values Emitter::loadUnits(const Access &access, RankedTensorType type) {
  Values words;
  int64_t count = access.unit * access.elementBytes / hopper::registerBytes;
  SmallVector<Type> results(count, builder.getI32Type());
  std::string outputs;
  for (int64_t i = 0; i < count; ++i)
    outputs += "=r,";
  forEachUnit(access, type, [&](const Unit &unit) {
    std::string text = declarePartial(unit.partial ? access.elementBytes : 4);
    text += llvm::formatv("setp.ne.b32 p, ${0}, 0;\n", count + 1);
    for (int64_t i = 0; i < count; ++i)
      text += llvm::formatv("mov.b32 ${0}, 0;\n", i);
    text += llvm::formatv("@p ld.global.{0} {1}, [${2}+{3}];\n", vectorType(count),
                          vectorOf(0, count), count, unit.offset);
    Values operands = {unit.row, unit.whole};
    if (unit.partial) {
      text += llvm::formatv("setp.ne.b32 p, ${0}, 0;\n", count + 2);
      text += movePartialUnit({"ld.global.b" + std::to_string(8 * access.elementBytes),
                               /*loads=*/true, 0, count, llvm::formatv("${0}", count),
                               llvm::formatv("${0}", count + 3), unit.offset, access.elementBytes});
      operands.append({unit.partial, unit.left});
    }
    llvm::append_range(words, assembly(text + "}", outputs + (unit.partial ? "l,r,r,r" : "l,r"),
                                       operands, results));
  });
  return hop::isPacked(type) ? words : splitWords(words, type.getElementType());
}

void Emitter::storeUnits(const Access &access, Value stored) {
  auto type = cast<RankedTensorType>(stored.getType());
  Values words = elements(stored);
  if (!hop::isPacked(type))
    words = joinWords(words);
  Value owner;
  if (type.getRank() == 1)
    owner = toI32(LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq,
                                       sharerOf(hop::getLayout(type)), i32(0)));
  forEachUnit(access, type, [&](const Unit &unit) {
    auto mine = [&](Value flag) -> Value {
      return owner ? Value(LLVM::AndOp::create(builder, loc, flag, owner)) : flag;
    };
    ArrayRef<Value> moved =
        ArrayRef(words).slice(unit.element * access.elementBytes / 4,
                              access.unit * access.elementBytes / hopper::registerBytes);
    storeUnit(access, unit.row, unit.offset, moved, mine(unit.whole));
    if (unit.partial)
      storePartialUnit(access, unit.row, unit.offset, moved, mine(unit.partial), unit.left);
  });
}

/// Exchanges 4x4 values within each quad: lane q gives units[j] to lane j and gets lane j's
/// units[q] as units[j].
void Emitter::transposeQuad(MutableArrayRef<Value> units) {
  for (int64_t distance : {1, 2}) {
    Value bit = LLVM::AndOp::create(builder, loc, thread.lane, i32(distance));
    Value isOdd = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, bit, i32(0));
    for (int64_t low : {0, 1, 2, 3}) {
      if (low & distance)
        continue;
      int64_t high = low | distance;
      auto select = [&](Value a, Value b) -> Value {
        return LLVM::SelectOp::create(builder, loc, isOdd, a, b);
      };
      Value sent = select(units[low], units[high]), kept = select(units[high], units[low]);
      Value got = shuffle("bfly", sent, i32(distance));
      units[low] = select(got, kept);
      units[high] = select(kept, got);
    }
  }
}

/// After the exchange lane q of a quad holds 16 bytes of each kQuadBytes of the row: from column 8q
/// on, or 16q where elements have 8 bits.
void Emitter::storePackedRows(const Access &access, Value stored) {
  auto type = cast<RankedTensorType>(stored.getType());
  int64_t columns = type.getDimSize(1), unit = hopper::widestAccess / access.elementBytes;
  int64_t words = columns * access.elementBytes / kQuadBytes * hopper::lanesPerRow; // of a row
  const Values packed = elements(stored);
  Value laneColumn = add(access.column, mul(access.threadColumn, unit / 2));
  for (int64_t half = 0; half < 2 * type.getDimSize(0) / hopper::mmaRows; ++half) {
    int64_t block = half / 2, parity = half % 2;
    Place place = placeOf(access, hopper::mmaRows * block + 8 * parity, 0);
    place.column = {};
    Value rowInside = inBounds(access, place);
    for (int64_t word = 0; word < words; word += hopper::lanesPerRow) {
      SmallVector<Value> four;
      for (int64_t j = 0; j < hopper::lanesPerRow; ++j)
        four.push_back(packed[(block * words + word + j) * 2 + parity]);
      transposeQuad(four);
      if (access.elementBytes == 1)
        joinPairs(four);
      place.column = add(laneColumn, word * unit);
      Value started = rowInside;
      if (!access.columnsStarted) { // what is before the first column are whole units
        Value test =
            LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::sge, place.column, i32(0));
        started = LLVM::AndOp::create(builder, loc, rowInside, toI32(test));
      }
      storeExchanged(access, place, started, four);
    }
  }
}

/// Stores a unit at `address` + `offset`.
void Emitter::storeUnit(const Access &access, Value address, int64_t offset, ArrayRef<Value> unit,
                        Value whole) {
  int64_t count = unit.size();
  std::string place = offset ? llvm::formatv("[$0+{0}]", offset).str() : "[$0]", constraints = "l";
  Values operands = {address};
  llvm::append_range(operands, unit);
  operands.push_back(whole);
  for (int64_t i = 0; i <= count; ++i)
    constraints += ",r";
  assembly("{\n.reg .pred p;\nsetp.ne.b32 p, $" + Twine(count + 1) + ", 0;\n@p " +
               writeText(access.adds, count, 32) + " " + place + ", " + vectorOf(1, count) + ";\n}",
           constraints, operands, {});
}

/// The last unit of a row: of its elements the first `left` are stored.
void Emitter::storePartialUnit(const Access &access, Value address, int64_t offset,
                               ArrayRef<Value> unit, Value partial, Value left) {
  int64_t count = unit.size();
  std::string constraints = "l";
  Values operands = {address};
  llvm::append_range(operands, unit);
  operands.append({partial, left});
  for (int64_t i = 0; i < count + 2; ++i)
    constraints += ",r";
  PartialUnit moved{writeText(access.adds, 1, 8 * access.elementBytes),
                    /*loads=*/false,
                    1,
                    count,
                    "$0",
                    llvm::formatv("${0}", count + 2),
                    offset,
                    access.elementBytes};
  assembly(declarePartial(access.elementBytes) +
               llvm::formatv("setp.ne.b32 p, ${0}, 0;\n", count + 1).str() +
               movePartialUnit(moved) + "}",
           constraints, operands, {});
}

/// Stores 16 bytes of an accumulator's row from `place`: at once where they are inside, else one
/// by one.
void Emitter::storeExchanged(const Access &access, const Place &place, Value rowInside,
                             ArrayRef<Value> unit) {
  Value address = addressOf(access, place);
  Value whole = rowInside;
  if (!access.columnsInside) {
    Value end = add(place.column, hopper::widestAccess / access.elementBytes);
    Value fits = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::sle, end, access.columns);
    whole = LLVM::AndOp::create(builder, loc, rowInside, toI32(fits));
  }
  storeUnit(access, address, 0, unit, whole);
  if (access.columnsInside || access.unitsWhole)
    return;
  Value partial = LLVM::AndOp::create(builder, loc, rowInside,
                                      LLVM::XOrOp::create(builder, loc, whole, i32(1)));
  Value left = LLVM::SubOp::create(builder, loc, access.columns, place.column);
  storePartialUnit(access, address, 0, unit, partial, left);
}
