//===- ByteLayoutTest.cpp - Elements of 8 bits in the registers of wgmma --===//

#include "dialects/Hop/FragmentLayout.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"
#include <map>
#include <set>

using namespace mlir;
using namespace tessera;
using hop::LayoutAttr;

namespace {
using Place = std::pair<int64_t, int64_t>;

class ByteLayoutTest : public ::testing::Test {
protected:
  ByteLayoutTest() { context.loadDialect<tile::TileDialect, hop::HopDialect>(); }

  /// Calls `test` with the shape of every tile of a wgmma that has an 8-bit A operand.
  template <typename Test>
  void forEachShape(Test test) {
    for (int64_t rows : {64, 128, 192, 256})
      for (int64_t columns = 32; columns <= 256; columns += 32)
        test(rows, columns);
  }

  hop::FragmentLayout fragment(int64_t rows, int64_t columns, LayoutAttr layout) {
    return hop::FragmentLayout(
        RankedTensorType::get({rows, columns}, Float8E4M3FNType::get(&context), layout));
  }

  /// The place of element `i` of a thread of the first warp.
  static Place placeOf(const hop::FragmentLayout &fragment, int64_t lane, int64_t i) {
    Place place = {fragment.offset(i, 0), fragment.offset(i, 1)};
    for (const hop::LayoutDigit &digit : fragment.getLayoutAttr().getLanes()) {
      place.first += lane % digit.extent * digit.steps[0];
      place.second += lane % digit.extent * digit.steps[1];
      lane /= digit.extent;
    }
    return place;
  }

  MLIRContext context;
};

/// PTX ISA, Figure "WGMMA .m64nNk32 register fragment layout for matrix A".
TEST_F(ByteLayoutTest, OperandIsThatOfTheManual) {
  forEachShape([&](int64_t rows, int64_t columns) {
    hop::FragmentLayout operand = fragment(rows, columns, LayoutAttr::getByteOperand(&context));
    ASSERT_EQ(operand.size(), rows * columns / 128);
    for (int64_t lane = 0; lane < 32; ++lane)
      for (int64_t i = 0; i < operand.size(); ++i) {
        int64_t ofBlock = columns / 2, block = i / ofBlock, a = i % ofBlock % 16,
                step = i % ofBlock / 16;
        Place expected = {64 * block + lane / 4 + (a % 8 >= 4 ? 8 : 0),
                          32 * step + lane % 4 * 4 + a % 4 + (a >= 8 ? 16 : 0)};
        EXPECT_EQ(placeOf(operand, lane, i), expected);
      }
  });
}

/// No element changes its thread between an accumulator and the words of its bytes.
TEST_F(ByteLayoutTest, AccumulatorKeepsItsElements) {
  forEachShape([&](int64_t rows, int64_t columns) {
    hop::FragmentLayout words = fragment(rows, columns, LayoutAttr::getByteAccumulator(&context)),
                        given = fragment(rows, columns, LayoutAttr::getAccumulator(&context));
    for (int64_t lane = 0; lane < 32; ++lane) {
      std::set<Place> of[2];
      for (int64_t i = 0; i < words.size(); ++i) {
        of[0].insert(placeOf(words, lane, i));
        of[1].insert(placeOf(given, lane, i));
      }
      EXPECT_EQ(of[0], of[1]);
    }
  });
}

/// The register that holds columns of an accumulator is read as that of other columns: of the same
/// rows, and in all tiles in the order that hop.transpose writes.
TEST_F(ByteLayoutTest, ColumnsOfTheAccumulatorInTheOrderOfTheOperand) {
  forEachShape([&](int64_t rows, int64_t columns) {
    hop::FragmentLayout words = fragment(rows, columns, LayoutAttr::getByteAccumulator(&context)),
                        operand = fragment(rows, columns, LayoutAttr::getByteOperand(&context));
    std::map<int64_t, int64_t> held; // by the column that is read
    for (int64_t lane = 0; lane < 32; ++lane)
      for (int64_t i = 0; i < words.size(); ++i) {
        Place has = placeOf(words, lane, i), read = placeOf(operand, lane, i);
        EXPECT_EQ(has.first, read.first);
        EXPECT_EQ(held.try_emplace(read.second, has.second).first->second, has.second);
      }
    ASSERT_EQ(static_cast<int64_t>(held.size()), columns);
    for (auto [read, has] : held) {
      int64_t l = read % 16 / 4, b = read % 4 / 2, e = read % 2;
      EXPECT_EQ(has, read / 16 * 16 + 8 * b + 2 * l + e);
    }
  });
}

/// The exchange of hop.rearrange: registers and lanes from which the bytes of each register come.
TEST_F(ByteLayoutTest, PairsComeFromTwoLanes) {
  hop::FragmentLayout words = fragment(64, 32, LayoutAttr::getByteAccumulator(&context)),
                      operand = fragment(64, 32, LayoutAttr::getByteOperand(&context));
  std::map<Place, std::pair<int64_t, int64_t>> owner; // lane and element
  for (int64_t lane = 0; lane < 32; ++lane)
    for (int64_t i = 0; i < words.size(); ++i)
      owner[placeOf(words, lane, i)] = {lane, i};
  for (int64_t lane = 0; lane < 32; ++lane)
    for (int64_t i = 0; i < operand.size(); ++i) {
      auto [from, element] = owner.at(placeOf(operand, lane, i));
      int64_t l = lane % 4, byte = i % 4;
      EXPECT_EQ(from, lane - l + 2 * (l % 2) + byte / 2);
      EXPECT_EQ(element, i / 4 * 4 + 2 * (l / 2) + byte % 2);
    }
}
} // namespace
